"""The appearance of each kind of node: colour, shape and sign (never only a colour)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["KindStyle", "MARKS", "Mark", "MarkStyle", "PAPER", "PRUNED", "Palette", "STYLE", "style"]

Mark = Literal["added", "removed", "carried", "problem", "folded", "pruned"]


@dataclass(frozen=True)
class KindStyle:
    """The appearance of a kind of node.

    Attributes
    ----------
    title, layer
        The kind's name for a legend, and the heading of its layer.
    sign
        One character for text outputs.
    shape
        The outline of its icon, a key of `ICONS`.
    mermaid, graphviz
        Brackets of Mermaid's node shape; Graphviz's shape name.
    fill, stroke, dark_fill, dark_stroke
        Colours as ``#rrggbb``, for light and dark themes.
    """

    title: str
    layer: str
    sign: str
    shape: str
    mermaid: tuple[str, str]
    graphviz: str
    fill: str
    stroke: str
    dark_fill: str
    dark_stroke: str


@dataclass(frozen=True)
class MarkStyle:
    """The appearance of a mark: its sign, its meaning, and its colours in light and dark themes."""

    sign: str
    title: str
    light: str
    dark: str


@dataclass(frozen=True)
class Palette:
    """The colours of everything except nodes."""

    paper: str
    ink: str
    muted: str
    line: str


#: The colours of snapshots, manifests, data files, delete files and deletion vectors are those of the V4 proposal.
STYLE: dict[str, KindStyle] = {
    "table": KindStyle(
        "Table", "Table", "▦", "grid", ("[(", ")]"), "cylinder", "#eceff1", "#37474f", "#1f2a30", "#b0bec5"
    ),
    "metadata": KindStyle(
        "Metadata file", "Metadata", "▤", "page", ("[/", "/]"), "note", "#e8eaf6", "#283593", "#1b2042", "#9fa8da"
    ),
    "branch": KindStyle(
        "Branch", "Snapshots", "⚑", "flag", (">", "]"), "cds", "#e0f2f1", "#00695c", "#0c2f2b", "#80cbc4"
    ),
    "tag": KindStyle("Tag", "Snapshots", "⌂", "tag", (">", "]"), "cds", "#e0f2f1", "#00695c", "#0c2f2b", "#80cbc4"),
    "snapshot": KindStyle(
        "Snapshot", "Snapshots", "●", "circle", ("([", "])"), "ellipse", "#e1f5fe", "#01579b", "#0c2b3e", "#4fc3f7"
    ),
    "root-manifest": KindStyle(
        "Root manifest", "Root", "⬢", "hexagon", ("{{", "}}"), "hexagon", "#f3e5f5", "#4a148c", "#2b1a39", "#ce93d8"
    ),
    "manifest-list": KindStyle(
        "Manifest list",
        "Manifest list",
        "⬡",
        "hexagon-open",
        ("{{", "}}"),
        "hexagon",
        "#fff3e0",
        "#e65100",
        "#38230f",
        "#ffb74d",
    ),
    "data-manifest": KindStyle(
        "Data manifest", "Manifests", "■", "list", ("[[", "]]"), "folder", "#e8f5e8", "#1b5e20", "#14301a", "#81c784"
    ),
    "delete-manifest": KindStyle(
        "Delete manifest",
        "Manifests",
        "◪",
        "list-cut",
        ("[\\", "\\]"),
        "component",
        "#ffebee",
        "#c62828",
        "#3b1518",
        "#ef9a9a",
    ),
    "manifest-dv": KindStyle(
        "Manifest deletion vector",
        "Manifests",
        "◍",
        "dots",
        ("(", ")"),
        "octagon",
        "#fed7aa",
        "#ea580c",
        "#43210b",
        "#fb923c",
    ),
    "data-file": KindStyle(
        "Data file", "Files", "▭", "rows", ("[", "]"), "box", "#fff8e1", "#f57f17", "#352a0b", "#ffd54f"
    ),
    "position-delete": KindStyle(
        "Position delete file",
        "Files",
        "✕",
        "cross",
        ("[/", "\\]"),
        "house",
        "#fce4ec",
        "#ad1457",
        "#3a1226",
        "#f48fb1",
    ),
    "equality-delete": KindStyle(
        "Equality delete file",
        "Files",
        "≠",
        "unequal",
        ("[\\", "/]"),
        "invhouse",
        "#efebe9",
        "#5d4037",
        "#2e2421",
        "#bcaaa4",
    ),
    "deletion-vector": KindStyle(
        "Deletion vector", "Files", "◍", "dots", ("(", ")"), "octagon", "#ffebee", "#c62828", "#3b1518", "#ef9a9a"
    ),
    "statistics": KindStyle(
        "Statistics file", "Snapshots", "∑", "bars", ("[", "]"), "tab", "#f1f8e9", "#558b2f", "#223012", "#aed581"
    ),
    "view": KindStyle("View", "View", "◇", "eye", ("{{", "}}"), "diamond", "#e8eaf6", "#3949ab", "#1b2042", "#9fa8da"),
    "view-version": KindStyle(
        "Version", "Versions", "●", "clock", ("([", "])"), "ellipse", "#e1f5fe", "#01579b", "#0c2b3e", "#4fc3f7"
    ),
    "view-sql": KindStyle("SQL", "SQL", "▤", "code", ("[/", "/]"), "note", "#e0f2f1", "#00695c", "#0c2f2b", "#80cbc4"),
    "more": KindStyle("Folded", "", "…", "more", ("(", ")"), "plaintext", "#f5f5f5", "#757575", "#22272b", "#9e9e9e"),
}

_OTHER = KindStyle("Other", "", "·", "circle", ("[", "]"), "box", "#f5f5f5", "#616161", "#22272b", "#bdbdbd")

MARKS: dict[Mark, MarkStyle] = {
    "added": MarkStyle("+", "added by the snapshot", "#1b7f3b", "#56d364"),
    "removed": MarkStyle("−", "removed by the snapshot", "#b3261e", "#ff8a80"),
    "carried": MarkStyle("=", "carried over from an earlier snapshot", "#6b7280", "#9aa4b2"),
    "problem": MarkStyle("!", "problem", "#b45309", "#ffb020"),
    "folded": MarkStyle("…", "folded", "#6b7280", "#9aa4b2"),
    "pruned": MarkStyle("⊘", "skipped, not read", "#6b7280", "#9aa4b2"),
}

#: Fill and stroke (light, dark) of nodes that a filter skips; they replace the colours of the node's kind.
PRUNED: dict[str, tuple[str, str]] = {"light": ("#f4f5f7", "#9aa4b2"), "dark": ("#1a2028", "#7b8797")}

PAPER: dict[str, Palette] = {
    "light": Palette("#ffffff", "#1c2430", "#525d6c", "#aab4c0"),
    "dark": Palette("#11161d", "#e8edf3", "#9aa6b4", "#4b5766"),
}


def style(kind: str) -> KindStyle:
    """Return the style of a kind; a neutral one for an unknown kind."""
    return STYLE.get(kind, _OTHER)
