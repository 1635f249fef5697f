"""Icons and colours by kind of node, mark and operation, the same as in drawn trees."""

from __future__ import annotations

from typing import Any

from iceexplore.render import ICONS, MARKS, STYLE

__all__ = ["styles"]

_OPERATIONS = {"append": "added", "delete": "removed", "overwrite": "problem", "replace": "carried"}

#: The corners of a shape of radius 1 around (0, 0), with y pointing down; operations not listed are circles.
_CORNERS = {
    "delete": [[-1, -0.8], [1, -0.8], [0, 1]],
    "overwrite": [[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]],
    "replace": [[0, -1.1], [1.1, 0], [0, 1.1], [-1.1, 0]],
}


def styles() -> dict[str, Any]:
    """Return title, layer, icon, sign, corners and colours by kind, ``mark:<mark>`` and ``operation:<operation>``.

    The key ``""`` holds the style of everything else.
    """
    kinds: dict[str, Any] = {
        kind: {
            "title": s.title,
            "layer": s.layer,
            "icon": list(ICONS.get(s.shape, ("", ""))),
            "light": s.stroke,
            "dark": s.dark_stroke,
            "fills": [s.fill, s.dark_fill],
        }
        for kind, s in STYLE.items()
    }
    marks = {
        f"mark:{k}": {"title": m.title, "sign": m.sign, "light": m.light, "dark": m.dark} for k, m in MARKS.items()
    }
    operations = {
        f"operation:{name}": marks[f"mark:{mark}"] | ({"corners": _CORNERS[name]} if name in _CORNERS else {})
        for name, mark in _OPERATIONS.items()
    }
    return {"": {"light": "#616161", "dark": "#bdbdbd"}} | kinds | marks | operations
