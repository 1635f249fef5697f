"""What is said of deleted positions: in a line, of their picture, and in tables of bytes and row groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iceexplore.graph import amount
from iceexplore.widgets.core._blocks import Block

__all__ = ["vector_said"]


def vector_said(vector: Mapping[str, Any]) -> dict[str, Any]:
    """The words for `VectorsPart.vector`, of which they are part.

    ``headline``; ``label`` of the picture and ``legend`` below it; ``facts`` as blocks; ``unread``: what can be asked
    for besides, if anything.
    """
    rows = vector["rows"]
    picture, entries = vector["picture"], vector["kind"] == "manifest-dv"
    size, width, deleted = int(picture["size"]), picture["width"], int(vector["cardinality"])
    headline = "Nothing is deleted here by position"
    if deleted:
        unit = ("entry", "entries") if entries else ("row",)
        of = "" if rows is None else f" of {amount(int(rows), *unit)} ({_share(deleted, int(rows))})"
        span = f"positions {int(vector['first']):,} to {int(vector['last']):,}"
        headline = f"{deleted:,} deleted{of} · {amount(int(vector['runs']), 'run')} · {span}"
    square = "one position" if width == 1 else f"{width:,} positions, the stronger the more are deleted"
    lines = "; a line begins a row group" if len(vector["borders"]) > 1 else ""
    known = vector["borders_from"]
    return {
        "headline": headline,
        "label": f"{deleted:,} of {int(size if rows is None else rows):,} positions deleted; the table below has them",
        "legend": f"Each square is {square}; {size:,} in all{lines}.",
        "facts": _facts(vector),
        "unread": "" if known == "footer" or entries or not rows else "Read the row groups from the data file's footer",
    }


def _facts(vector: Mapping[str, Any]) -> list[Block]:
    sizes = [(e["name"], e["bytes"] and int(e["bytes"]), e["note"]) for e in vector["encodings"]]
    most = max(1, *(size or 0 for _, size, _ in sizes))
    rows = [
        [[name], ["–" if size is None else f"{size:,} B"], [["bars", [["bytes", (size or 0) / most]]]], [note]]
        for name, size, note in sizes
    ]
    kinds = ", ".join(f"{n:,} {kind}" for kind, n in vector["containers"].items())
    about = " Row groups are drawn about where the split offsets have them."
    return [
        ["table", [], rows, {"caption": "Bytes by encoding", "columns": ["", "right", "bytes", "evidence"]}],
        ["evidence", [f"Roaring containers: {kinds}.{about if vector['borders_from'] == 'split offsets' else ''}"]],
        *_groups([(int(rows), int(gone)) for rows, gone in vector["groups"]]),
    ]


def _groups(groups: Sequence[tuple[int, int]]) -> list[Block]:
    heads = [["Row group"], ["Rows"], ["Deleted"], ["Share"]]
    rows = [[[str(i)], [f"{n:,}"], [f"{gone:,}"], [_share(gone, n)]] for i, (n, gone) in enumerate(groups)]
    table: Block = ["table", heads, rows, {"columns": ["right"] * 4}]
    return [["fold", [amount(len(groups), "row group")], [table]]] if groups else []


def _share(part: int, whole: int) -> str:
    percent = 100 * part / (whole or 1)
    if 0 < percent < 0.1:
        return "< 0.1 %"
    return f"{percent:.1f} %" if percent < 10 else f"{percent:.0f} %"
