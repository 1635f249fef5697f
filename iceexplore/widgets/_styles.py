"""Icons and colours by kind of node, mark and operation: those of the drawn tree."""

from __future__ import annotations

from typing import Any

from iceexplore.render import ICONS, MARKS, STYLE

__all__ = ["styles"]

_OPERATIONS = {"append": "added", "delete": "removed", "overwrite": "problem", "replace": "carried"}


def styles() -> dict[str, Any]:
    """By kind, ``mark:<mark>`` and ``operation:<operation>``: title, icon or sign, colours."""
    kinds: dict[str, Any] = {
        kind: {"title": s.title, "icon": list(ICONS.get(s.shape, ("", ""))), "light": s.stroke, "dark": s.dark_stroke}
        for kind, s in STYLE.items()
    }
    marks = {
        f"mark:{k}": {"title": m.title, "sign": m.sign, "light": m.light, "dark": m.dark} for k, m in MARKS.items()
    }
    operations = {f"operation:{name}": marks[f"mark:{mark}"] for name, mark in _OPERATIONS.items()}
    return kinds | marks | operations
