"""Icons for the kinds of nodes: outlines in a 16 × 16 square, drawn in the kind's colour."""

from __future__ import annotations

__all__ = ["ICONS"]

#: For each shape, the path data to fill and the path data to stroke.
ICONS: dict[str, tuple[str, str]] = {
    "grid": ("M2 3h12v3.5H2z", "M2 3h12v10.5H2zM2 6.5h12M2 10h12M7 6.5v7"),
    "page": ("M10 1.8v3.4h3.4z", "M3.5 1.8h6.5l3.4 3.4v9H3.5zM6 8h5M6 11h5"),
    "flag": ("M4 2.2h9l-2.4 3 2.4 3H4z", "M4 2v12.5"),
    "tag": ("", "M2 8l5-5h6.6v10H7zM10.6 8h.01"),
    "circle": ("M8 5a3 3 0 1 0 .01 0z", "M8 1.8a6.2 6.2 0 1 0 .01 0z"),
    "hexagon": ("M8 1.5l5.8 3.2v6.6L8 14.5l-5.8-3.2V4.7z", ""),
    "hexagon-open": ("M8 6a2 2 0 1 0 .01 0z", "M8 1.5l5.8 3.2v6.6L8 14.5l-5.8-3.2V4.7z"),
    "list": ("M2 2.5h12v3H2z", "M2 2.5h12v11H2zM4.5 8.3h7M4.5 11h7"),
    "list-cut": ("M2 13.5V2.5h12z", "M2 2.5h12v11H2z"),
    "dots": ("M5 5.2h2v2H5zM9 5.2h2v2H9zM7 8.8h2v2H7z", "M8 1.8a6.2 6.2 0 1 0 .01 0z"),
    "rows": ("M2.5 6.2h11v3.6h-11z", "M2.5 2.5h11v11h-11z"),
    "cross": ("", "M2.5 2.5h11v11h-11zM5.5 5.5l5 5M10.5 5.5l-5 5"),
    "unequal": ("", "M2.5 2.5h11v11h-11zM5 6.6h6M5 9.4h6M9.8 4.6L6.2 11.4"),
    "bars": ("M2.5 9h2.6v5H2.5zM6.7 5h2.6v9H6.7zM10.9 2h2.6v12h-2.6z", ""),
    "eye": ("M8 6a2 2 0 1 0 .01 0z", "M1.5 8S4.1 3.5 8 3.5 14.5 8 14.5 8 11.9 12.5 8 12.5 1.5 8 1.5 8z"),
    "clock": ("", "M8 1.8a6.2 6.2 0 1 0 .01 0zM8 4.5V8l2.5 2"),
    "code": ("", "M5 4.5L1.8 8 5 11.5M11 4.5L14.2 8 11 11.5M9.4 3L6.6 13"),
    "more": ("M3 6.8h2.4v2.4H3zM6.8 6.8h2.4v2.4H6.8zM10.6 6.8H13v2.4h-2.4z", ""),
}
