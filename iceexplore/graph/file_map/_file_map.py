"""A table's files as a picture, in one snapshot or several: a row per partition, a cell per file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.errors import OptionError, whole_number
from iceexplore.graph._card import human_bytes
from iceexplore.graph._frame import to_frame
from iceexplore.graph._state import TableState
from iceexplore.graph._travel import travel
from iceexplore.graph.file_map._cells import MOST_CELLS, MOST_GROUPS, CellGroup, FileCells, file_cells
from iceexplore.graph.file_map._live_files import FILE_KINDS, live_files
from iceexplore.graph.tree._labels import amount, short_time
from iceexplore.render import (
    LEVELS,
    CellBlock,
    CellMap,
    CellRow,
    Svg,
    Theme,
    cells_svg,
    cells_text,
    details,
    html_lines,
    svg_image,
)

if TYPE_CHECKING:
    import pandas as pd

    from iceexplore.metadata import Snapshot

__all__ = ["CellColor", "FileMap", "cell_legend", "cell_shades", "file_map", "group_note"]

CellColor = Literal["size", "age", "deletes"]
#: Maximum number of snapshots in a picture.
_MOST_FRAMES = 12


def cell_shades(cells: FileCells, color: CellColor) -> bytes:
    """Return the shade of each cell by ``color``: stronger for larger or newer files, or for more deleted rows."""
    top = LEVELS - 1
    if color == "size":
        logs = np.log(np.maximum(cells.size, 1))
        low, high = (float(logs.min()), float(logs.max())) if len(logs) else (0.0, 0.0)
        share = (logs - low) / (high - low) if high > low else np.full(len(logs), 0.6)
    elif color == "age":
        oldest = max(1, int(cells.age.max(initial=1)))
        share = 1 - cells.age / oldest
    else:
        # Shade 0 means no deletes; the others are five steps of the share of deleted rows (a half if it is unknown).
        known = np.where(cells.deleted < 0, 500, cells.deleted)
        return bytes(np.where(known > 0, np.clip(-(-known // 200), 1, top), 0).astype(np.uint8))
    return bytes(np.clip(np.floor(share * LEVELS), 0, top).astype(np.uint8))


def cell_legend(cells: FileCells, color: CellColor) -> list[str]:
    """Return lines that explain the cells and their shades, and say what is missing."""
    out = []
    if color == "size" and len(cells.size):
        low, high = int(cells.size.min()), int(cells.size.max())
        sizes = human_bytes(high) if low == high else f"from {human_bytes(low)} (faint) to {human_bytes(high)} (strong)"
        out.append(f"Shade: file size, {sizes}.")
    elif color == "age" and len(cells.age):
        out.append(f"Shade: age, from {amount(int(cells.age.max(initial=0)), 'snapshot')} (faint) to new (strong).")
    elif color == "deletes" and len(cells.age):
        out.append("Shade: share of a file's rows that are deleted; the faintest has none.")
        if cells.shared_deletes:
            files = amount(cells.shared_deletes, "delete file")
            out.append(f"Not counted: {files} that may apply to several data files.")
    if cells.most > 1:
        out.append(f"A cell is up to {cells.most:,} files.")
    if cells.unread:
        out.append(f"Incomplete: {amount(cells.unread, 'manifest')} cannot be read.")
    return out


def group_note(group: CellGroup) -> str:
    """Return the numbers of a group: ``12 files · 3,400 rows · 1.5 MiB · 2 delete files``."""
    if not (group.files or group.deletes):
        return "no files"
    words = [amount(group.files, "file"), amount(group.rows, "row"), human_bytes(group.size)]
    words += [amount(group.deletes, "delete file")] if group.deletes else []
    return " · ".join(words)


@dataclass(frozen=True)
class FileMap:
    """A picture of a table's files, by partition, in one snapshot or several: see `file_map`.

    In a notebook it is shown as an image; ``print`` shows its last snapshot as text.

    Attributes
    ----------
    snapshots
        The snapshots, oldest first.
    cells
        The cells of each snapshot.
    color
        The measure that shades the cells.
    """

    state: TableState = field(repr=False)
    snapshots: tuple[Snapshot, ...]
    cells: tuple[FileCells, ...] = field(repr=False)
    color: CellColor

    @property
    def partitions(self) -> pd.DataFrame:
        """The partitions in the last snapshot: files, rows, bytes, delete files, and files it added and removed."""
        groups = self.cells[-1].groups if self.cells else ()
        names = ("files", "rows", "size", "deletes", "added", "removed")
        columns: dict[str, AnyArray] = {"partition": pa.array([g.label for g in groups], pa.string())}
        columns |= {name: pa.array([getattr(g, name) for g in groups], pa.int64()) for name in names}
        return to_frame(build.table(columns))

    @cached_property
    def _map(self) -> CellMap:
        labels: dict[str, None] = {}
        for cells in self.cells:
            labels |= dict.fromkeys(group.label for group in cells.groups)
        blocks = [_blocks(cells, self.color) for cells in self.cells]
        last = {g.label: g for g in self.cells[-1].groups} if self.cells else {}
        nothing = CellBlock(b"", b"", b"", FILE_KINDS)
        rows = [
            CellRow(
                label or "unpartitioned",
                group_note(last[label]) if label in last else "no files",
                tuple(of.get(label, nothing) for of in blocks),
            )
            for label in labels
        ]
        heads = [
            f"{s.operation or 'no operation'} {short_time(s.timestamp_ms)} · {amount(cells.total, 'file')}"
            for s, cells in zip(self.snapshots, self.cells, strict=True)
        ]
        count = amount(self.cells[-1].total, "file") if self.cells else "no snapshot"
        words = f"{count} in {amount(self.cells[-1].partitions, 'partition')}" if last and any(last) else count
        legend = dict.fromkeys(line for cells in self.cells for line in cell_legend(cells, self.color))
        if len(self.cells) > 1:  # each snapshot has its own range: explain only the last one's
            legend = dict.fromkeys(cell_legend(self.cells[-1], self.color))
        return CellMap(f"Files of {self.state.name}", words, tuple(heads), tuple(rows), tuple(legend))

    def to_svg(self, theme: Theme = "auto") -> Svg:
        """Return the picture as a standalone SVG. ``theme``: ``auto`` follows the viewer, or ``light``, ``dark``."""
        return cells_svg(self._map, theme=theme)

    def to_text(self) -> str:
        """Return the last snapshot as text, a line per partition, with control characters made visible."""
        return cells_text(self._map)

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        plain = self.to_text()
        image = svg_image(self.to_svg(), f"{self._map.title}: {self._map.description}")
        return {"text/plain": plain, "text/html": image + details("The files as text", html_lines(plain))}


def _blocks(cells: FileCells, color: CellColor) -> Mapping[str, CellBlock]:
    """Return the cells of each group, by its label."""
    shades, kinds = cell_shades(cells, color), bytes(cells.kind.astype(np.uint8))
    changes = bytes(cells.change.astype(np.uint8))
    out, begin = {}, 0
    for group in cells.groups:
        mine = slice(begin, begin + group.cells)
        begin += group.cells
        out[group.label] = CellBlock(shades[mine], kinds[mine], changes[mine], FILE_KINDS)
    return out


def file_map(state: TableState, snapshots: int = 1, color: CellColor = "size") -> FileMap:
    """Return the picture of a state's files.

    Parameters
    ----------
    snapshots
        How many snapshots to show side by side: the state's own, and earlier ones evenly spaced over its ancestors.
    color
        The measure that shades the cells: ``size``, ``age`` (in snapshots) or ``deletes`` (share of deleted rows).

    Raises
    ------
    OptionError
        An argument is out of range.
    """
    if color not in get_args(CellColor):
        raise OptionError(f"color={color!r}: choose one of {', '.join(map(repr, get_args(CellColor)))}")
    count = whole_number("snapshots", snapshots, least=1)
    if count > _MOST_FRAMES:
        raise OptionError(f"snapshots={count}: a picture shows at most {_MOST_FRAMES} snapshots")
    chosen = _chosen(state, count)
    cells = tuple(
        file_cells(live_files(travel(state, snapshot=s.snapshot_id)), MOST_CELLS // len(chosen), MOST_GROUPS)
        for s in chosen
    )
    return FileMap(state, tuple(chosen), cells, color)


def _chosen(state: TableState, count: int) -> Sequence[Snapshot]:
    """Return the state's snapshot and some ancestors, evenly spaced, oldest first."""
    line: list[Snapshot] = []
    at = state.snapshot
    seen: set[int] = set()
    while at is not None and at.snapshot_id not in seen:  # damaged parent ids may form cycles
        seen.add(at.snapshot_id)
        line.insert(0, at)
        at = None if at.parent_snapshot_id is None else state.metadata.snapshot(at.parent_snapshot_id)
    if len(line) <= count:
        return line
    places = {round(i * (len(line) - 1) / max(1, count - 1)) for i in range(count)} if count > 1 else {len(line) - 1}
    return [line[i] for i in sorted(places)]
