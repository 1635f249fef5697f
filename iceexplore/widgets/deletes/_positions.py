"""Summaries of a set of deleted positions: a picture as a few numbers, runs, Roaring containers, encoded sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.deletes import (
    MUMBLING_POSITIONS,
    Bitmap,
    encode_deletion_vector,
    encode_mumbling,
    write_position_deletes,
)
from iceexplore.errors import IceexploreError
from iceexplore.graph import amount
from iceexplore.widgets.core._blocks import Block

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "MAX_CELLS",
    "MAX_LISTED",
    "containers",
    "encodings",
    "groups",
    "listed",
    "picture",
    "run_count",
    "vector_texts",
]


def vector_texts(vector: Mapping[str, Any]) -> dict[str, Any]:
    """Return the texts of `DeletesPanel.vector`, computed from its other values.

    ``headline``; ``label`` of the picture and ``legend`` below it; ``facts`` as blocks; ``unread``: the label of a
    button that reads the data file's footer, or empty if there is none.
    """
    rows = vector["rows"]
    picture, entries = vector["picture"], vector["kind"] == "manifest-dv"
    size, width, deleted = int(picture["size"]), picture["width"], int(vector["cardinality"])
    headline = "Nothing is deleted by position"
    if deleted:
        unit = ("entry", "entries") if entries else ("row",)
        of = "" if rows is None else f" of {amount(int(rows), *unit)} ({_share(deleted, int(rows))})"
        span = f"positions {int(vector['first']):,} to {int(vector['last']):,}"
        headline = f"{deleted:,} deleted{of} · {amount(int(vector['runs']), 'range')} · {span}"
    square = "one position" if width == 1 else f"{width:,} positions; the darker, the more are deleted"
    lines = "; lines mark the start of row groups" if len(vector["borders"]) > 1 else ""
    known = vector["borders_from"]
    return {
        "headline": headline,
        "label": f"{deleted:,} of {int(size if rows is None else rows):,} positions deleted, listed in the table below",
        "legend": f"Each square is {square}; {size:,} positions in total{lines}.",
        "facts": _facts(vector),
        "unread": "" if known == "footer" or entries or not rows else "Read row groups from the data file's footer",
    }


def _facts(vector: Mapping[str, Any]) -> list[Block]:
    sizes = [(e["name"], e["bytes"] and int(e["bytes"]), e["note"]) for e in vector["encodings"]]
    most = max(1, *(size or 0 for _, size, _ in sizes))
    rows = [
        [[name], ["–" if size is None else f"{size:,} B"], [["bars", [["bytes", (size or 0) / most]]]], [note]]
        for name, size, note in sizes
    ]
    kinds = ", ".join(f"{n:,} {kind}" for kind, n in vector["containers"].items())
    about = " The positions of row groups are estimated from the split offsets."
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


#: Maximum number of cells of a picture.
MAX_CELLS = 4_000
#: Maximum number of positions or runs that are listed, as a few bytes may encode billions.
MAX_LISTED = 1_000_000
#: Maximum number of positions that are written to measure the size of a position delete file; with more positions, the
#: size is estimated.
_WRITTEN = 200_000
_SAFE = 2**53


def picture(bitmap: Bitmap, size: int) -> dict[str, Any]:
    """Return ``size``, ``width`` and ``cells``: the number of deleted positions in each range of ``width`` positions.

    The ranges go from 0 to ``size``; there are at most 4,000. Numbers that JavaScript would round are text.
    """
    width = max(1, -(-size // MAX_CELLS))
    count = -(-size // width)
    cells = [bitmap.range_cardinality(i * width, min(size, (i + 1) * width)) for i in range(count)]
    return {"size": _safe(size), "width": width, "cells": [min(c, _SAFE - 1) for c in cells]}


def groups(bitmap: Bitmap, starts: Sequence[int], size: int) -> list[list[int]]:
    """Return the rows and deleted rows of each row group, given the first position of each."""
    ends = [*starts[1:], size]
    return [[end - start, bitmap.range_cardinality(start, end)] for start, end in zip(starts, ends, strict=True)]


def run_count(bitmap: Bitmap) -> int:
    """Return the number of runs of consecutive positions."""
    return len(bitmap) - int(bitmap.intersection_cardinality(bitmap.shift(1)))


def containers(bitmap: Bitmap) -> dict[str, int]:
    """Return the number of Roaring containers by kind (RoaringFormatSpec).

    Each holds the positions of a range of 65,536 as an array, a bitmap or runs.
    """
    found = bitmap.get_statistics()
    return {kind: found[f"n_{name}_containers"] for kind, name in _CONTAINERS.items()}


_CONTAINERS = {"array": "array", "bitmap": "bitset", "run": "run"}


def encodings(bitmap: Bitmap, size: int, path: str) -> list[dict[str, Any]]:
    """Return the size of the positions in every encoding: ``name``, ``bytes`` (None if not encodable), ``note``.

    Parameters
    ----------
    size
        The number of the data file's rows or, if that is unknown, one more than the last position; a bitset has a bit
        for each.
    path
        The location of the data file; a position delete file stores it with each position.
    """
    from pyroaring import BitMap

    small = len(bitmap) == 0 or bitmap.max() < MUMBLING_POSITIONS
    found: list[dict[str, Any]] = []
    try:
        whole = len(encode_deletion_vector(bitmap))
        found.append({"name": "Deletion vector", "bytes": whole, "note": "roaring, with runs"})
    except IceexploreError as error:
        found.append({"name": "Deletion vector", "bytes": None, "note": str(error)[:200]})
    if small:
        found.append({"name": "Mumbling", "bytes": len(encode_mumbling(BitMap(bitmap))), "note": "V4, inline"})
    else:
        found.append({"name": "Mumbling", "bytes": None, "note": f"holds positions below {MUMBLING_POSITIONS:,}"})
    found.append({"name": "Bitset", "bytes": _safe(-(-size // 8)), "note": "one bit per row"})
    estimated = len(bitmap) > _WRITTEN
    positions = np.asarray(bitmap[:_WRITTEN].to_array(), dtype=np.uint64).astype(np.int64)
    size_of = len(write_position_deletes(pa.repeat(pa.scalar(path), len(positions)), pa.array(positions)))
    if estimated:
        size_of = round(size_of * len(bitmap) / _WRITTEN)
    note = f"Parquet, estimated from the first {_WRITTEN:,}" if estimated else "Parquet, zstd"
    found.append({"name": "Position delete file", "bytes": _safe(size_of), "note": note})
    return found


def listed(bitmap: Bitmap, table: str, starts: Sequence[int]) -> pd.DataFrame:
    """Return the first million positions or runs as a table.

    Columns: position and, if row groups are known, row_group; for runs first, last and positions.
    """
    import pandas as pd

    if table == "runs":
        moved = bitmap.shift(1)
        first, ends = _array((bitmap - moved)[:MAX_LISTED]), _array((moved - bitmap)[:MAX_LISTED])
        return pd.DataFrame({"first": first, "last": ends - 1, "positions": ends - first})
    some = _array(bitmap[:MAX_LISTED])
    frame = pd.DataFrame({"position": some})
    if starts:
        group = np.searchsorted(np.asarray(starts, dtype=np.uint64), some, side="right") - 1
        return frame.assign(row_group=group)
    return frame


def _array(bitmap: Bitmap) -> npt.NDArray[np.uint64]:
    return np.asarray(bitmap.to_array(), dtype=np.uint64)


def _safe(number: int) -> int | str:
    return number if number < _SAFE else str(number)
