"""The keyboard shortcuts: the sheet that ``?`` opens and the table in ``docs/explorer.md`` are generated from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["KEYS", "Key", "Place", "keys_markdown", "keys_sent"]


@dataclass(frozen=True)
class Key:
    """Some keys that do the same, and what they do."""

    keys: tuple[str, ...]
    what: str


@dataclass(frozen=True)
class Place:
    """A part of widgets, with its keys. Widgets that have any of ``traits`` have this part; without traits, all do."""

    name: str
    traits: tuple[str, ...]
    keys: tuple[Key, ...]


#: On a Mac, both ⌘ and Ctrl work where a key is named Ctrl.
KEYS = (
    Place(
        "Everywhere outside of text fields",
        (),
        (
            Key(("?",), "List the keys; Escape closes the list"),
            Key(("Tab", "Shift+Tab"), "Go to the next or previous control"),
        ),
    ),
    Place(
        "Parts of the explorer",
        ("parts",),
        (Key(("F6", "Shift+F6"), "Go to the next or previous part: timeline, tabs, content, details, table"),),
    ),
    Place(
        "Explorer",
        ("history",),
        (
            Key(("Alt+Left", "Alt+Right"), "Go back or forward: node, snapshot, comparison and tab"),
            Key((".",), "Hide the details beside the tree, or show them"),
            Key(("Ctrl+K",), "Go to the field that finds and does things, also from a text field"),
        ),
    ),
    Place(
        "Find",
        ("history",),
        (
            Key(("Down", "Up"), "Choose a result"),
            Key(("Enter",), "Go to the chosen result, else to the first one"),
            Key(("Escape",), "Close the results; again: empty the field and leave it"),
        ),
    ),
    Place(
        "Tabs",
        ("parts", "commit_form", "scan_plan", "problems"),
        (
            Key(("Left", "Right"), "Choose the tab before or after"),
            Key(("Home", "End"), "Choose the first or last tab"),
        ),
    ),
    Place(
        "Edges between parts, and the lower edge of the widget",
        (),
        (
            Key(("Left", "Right", "Up", "Down"), "Move the edge"),
            Key(("Home", "End"), "Move it as far as possible"),
            Key(("Enter",), "Reset it to its initial position"),
        ),
    ),
    Place(
        "Timeline",
        ("snapshots",),
        (
            Key(("Left", "Right"), "Select the earlier or later snapshot"),
            Key(("Page Down", "Page Up"), "Go back or forward by ten snapshots"),
            Key(("Home", "End"), "Select the first or last snapshot"),
            Key(("Shift+Left", "Shift+Right"), "Compare with the earlier or later snapshot"),
            Key(("Space",), "Play through the history, or pause"),
            Key(("+", "-", "0"), "Zoom in, zoom out, show all snapshots"),
            Key(("Escape",), "End playing and comparing"),
        ),
    ),
    Place(
        "Tree",
        ("nodes", "scan_nodes", "commit_before_nodes", "repair_before_nodes"),
        (
            Key(("Up", "Down"), "Go to the node above or below"),
            Key(("Right", "Left"), "Unfold or fold the node; then go to its first child or parent"),
            Key(("Page Up", "Page Down", "Home", "End"), "Go up or down by a page, to the first or last node"),
            Key(("Enter", "Space"), "Select the node"),
            Key(("/",), "Go to the tree's own search, if it has one"),
            Key(("a letter",), "Go to the next node whose name begins with it"),
            Key(("+", "-", "0"), "Zoom in, zoom out, fit the picture"),
            Key(("Shift+Left", "Shift+Right", "Shift+Up", "Shift+Down"), "Move the picture"),
        ),
    ),
    Place(
        "Details",
        ("detail",),
        (Key(("Escape",), "Close the explanation of a field; in a narrow widget, close the details"),),
    ),
    Place(
        "Tables",
        ("pages",),
        (
            Key(("Left", "Right", "Up", "Down"), "Go to another cell; Up from the first row: to the header"),
            Key(("Home", "End"), "Go to the first or last cell of the row"),
            Key(("Ctrl+Home", "Ctrl+End"), "Go to the first or last cell of the page"),
            Key(("Page Down", "Page Up"), "Turn to the next or previous page"),
            Key(("Enter",), "Open the row; in the header: sort"),
            Key(("Ctrl+C",), "Copy the cell"),
        ),
    ),
    Place(
        "File map",
        ("file_map",),
        (
            Key(("Left", "Right", "Up", "Down"), "Go to another file"),
            Key(("Page Up", "Page Down", "Home", "End"), "Move by ten rows, or to the first or last file"),
            Key(("Enter", "Space"), "Select the file in the tree"),
        ),
    ),
    Place(
        "Filter",
        ("scan_filter", "rows_filter"),
        (
            Key(("Down", "Up"), "Choose a completion"),
            Key(("Enter",), "Take the completion; without one: apply the filter"),
            Key(("Ctrl+Space",), "Show completions"),
            Key(("Escape",), "Close the completions"),
        ),
    ),
    Place(
        "Range map: the edges of the range",
        ("scan_range",),
        (
            Key(("Left", "Right"), "Move the edge by a step; Page Up and Page Down by more"),
            Key(("Home", "End"), "Move it as far as possible"),
            Key(("Delete",), "Open the range on this side"),
            Key(("Enter",), "Plan with the range"),
            Key(("Escape",), "Revert to the range of the plan"),
        ),
    ),
)


def keys_sent(has: Callable[[str], bool]) -> list[list[object]]:
    """Return the places of a widget as the browser gets them: each a title, and pairs of keys and what they do.

    Parameters
    ----------
    has
        A function that returns whether the widget has a trait.
    """
    places = (place for place in KEYS if not place.traits or any(map(has, place.traits)))
    return [[place.name, [[list(key.keys), key.what] for key in place.keys]] for place in places]


def keys_markdown() -> str:
    """Return all keys as the table in ``docs/explorer.md``."""
    lines = ["| where | keys | what they do |", "|---|---|---|"]
    for place in KEYS:
        for i, key in enumerate(place.keys):
            lines.append(f"| {'' if i else place.name} | {', '.join(f'`{k}`' for k in key.keys)} | {key.what} |")
    return "\n".join(lines)
