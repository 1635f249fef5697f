"""What the timeline says in words: of a snapshot, of its picture's signs, and of what differs between two snapshots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iceexplore.graph import human_bytes
from iceexplore.widgets.core._blocks import Block

__all__ = ["difference_sent", "legend_sent", "snapshot_words"]

#: What a bar can show, and how it is said of what went.
_GONE = {"rows": "deleted", "files": "removed", "bytes": "removed"}
#: The shapes that operations have (`_styles`).
_SIGNS = {"append": "●", "overwrite": "■", "delete": "▼", "replace": "◆"}


def snapshot_words(sent: Mapping[str, Any]) -> str:
    """A snapshot as the timeline has it, in a line."""
    changes = [
        _change(measure, *sent[measure]) + ("" if measure == "bytes" else f" {measure}")
        for measure in _GONE
        if any(sent[measure])
    ]
    reached = [] if sent["reached"] else ["no ref reaches it"]
    return " · ".join([sent["time"], sent["operation"] or "no operation", *changes, *reached])


def legend_sent(snapshots: Sequence[Mapping[str, Any]], left_out: int) -> dict[str, list[Block]]:
    """What the picture's signs mean, by what its bars show."""
    operations = {s["operation"] for s in snapshots}
    signs = [[["sign", sign, f"operation:{name}"], f" {name}"] for name, sign in _SIGNS.items() if name in operations]
    if operations - _SIGNS.keys():
        signs.append([["sign", "○", ""], " other"])
    notes = []
    if not all(s["reached"] for s in snapshots):
        notes.append(["hollow: no ref reaches it"])
    if left_out:
        notes.append(["1 earlier one is left out" if left_out == 1 else f"{left_out:,} earlier ones are left out"])
    out = {}
    for measure, gone in _GONE.items():
        most = max((n for s in snapshots for n in s[measure]), default=0)
        height = f"height: {measure} added ↑, {gone} ↓, log scale to {_amount(measure, most)}"
        out[measure] = [["div", parts] for parts in (*signs, *([[height]] if most else []), *notes)]
    return out


def difference_sent(rows: Sequence[Sequence[Any]], unread: int) -> list[Block]:
    """What was added and removed (`TimelinePart.comparison`), and whether that is all."""
    said: list[Block] = []
    for what, more, less in rows:
        change = ["b", _change(what, more, less)]
        said.append(["div", [change] if what == "bytes" else [change, f" {what}"]])
    if unread:
        said.append(["div", [f"▲ not all is known: {unread:,} manifests cannot be read"]])
    return said or [["div", ["nothing differs"]]]


def _change(measure: str, more: int, less: int) -> str:
    """What was added and removed, as +3 −1."""
    sides = (("+", more), ("−", less))
    return " ".join(sign + _amount(measure, n) for sign, n in sides if n)


def _amount(measure: str, n: int) -> str:
    return human_bytes(n) if measure == "bytes" else f"{n:,}"
