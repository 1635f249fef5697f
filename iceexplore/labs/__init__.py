"""Real tables with real data: made, written and committed to a folder or a catalog."""

from __future__ import annotations

__all__: list[str] = []
