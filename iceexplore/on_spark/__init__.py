"""Spark: sessions, scans, distributed metadata, verification, changelogs, and data files written by its workers."""

from __future__ import annotations

__all__: list[str] = []
