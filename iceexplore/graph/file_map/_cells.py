"""The cells of a file map: each represents one file or, if there are too many files for that, several."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from iceexplore.graph.file_map._live_files import ADDED, REMOVED, LiveFiles
from iceexplore.graph.tree._labels import amount

__all__ = ["CellGroup", "FileCells", "MOST_CELLS", "MOST_GROUPS", "file_cells"]

Ints = npt.NDArray[np.int64]

#: The approximate maximum number of cells. If there are more files, each cell represents several.
MOST_CELLS = 2_400
#: Maximum number of groups. If there are more partitions, neighbouring ones are merged.
MOST_GROUPS = 24


_COLUMNS = ("kind", "change", "size", "age", "deleted", "rows", "manifest", "row")


@dataclass(frozen=True)
class CellGroup:
    """A partition, or neighbouring ones if there are too many: its label, live files, and number of cells.

    Attributes
    ----------
    label
        A label from `LiveFiles.labels`; for several partitions, the first and last label and their number.
    files, rows, size
        The number of live data files, the rows that the metadata states for them, and the bytes of all live files.
    deletes
        The number of live delete files and vectors.
    added, removed
        The numbers of files of any kind that the snapshot added and removed.
    cells
        The number of the group's cells, which come right after those of the previous group.
    """

    label: str
    files: int
    rows: int
    size: int
    deletes: int
    added: int
    removed: int
    cells: int


@dataclass(frozen=True)
class FileCells:
    """Cells of files, in the order of their groups.

    Attributes
    ----------
    groups
        The partitions, in their order.
    partitions
        The number of partitions.
    files
        The number of files in each cell. The files of a cell are of one kind and share one change: all were carried
        over, added or removed.
    kind, change
        As in `LiveFiles`.
    size, age
        The mean size in bytes and age in snapshots of each cell's files.
    deleted
        The share of each cell's rows that are deleted, per mille; -1 if there are deletes and their number is unknown.
    rows
        The rows of each cell.
    manifest, row
        Where the first file of each cell is listed, as in `LiveFiles`.
    most
        The maximum number of files in a cell.
    total
        The number of live files.
    shared_deletes, unread
        As in `LiveFiles`.
    """

    groups: tuple[CellGroup, ...]
    partitions: int
    files: Ints
    kind: Ints
    change: Ints
    size: Ints
    age: Ints
    deleted: Ints
    rows: Ints
    manifest: Ints
    row: Ints
    most: int
    total: int
    shared_deletes: int
    unread: int


def file_cells(found: LiveFiles, most: int = MOST_CELLS, groups: int = MOST_GROUPS) -> FileCells:
    """Return the cells of files: about ``most`` cells in at most ``groups`` groups."""
    count = len(found.kind)
    shown, label_of = _groups(found, groups)
    group = label_of[found.partition] if count else found.partition
    per = max(1, -(-count // max(1, most)))
    # Sorting changes the order only within merged partitions. If cells have several files, changed files are sorted
    # apart, so that they get cells without other files.
    keys = (found.change, found.kind, group) if per > 1 else (found.kind, group)
    order = np.lexsort(keys)
    columns = {name: getattr(found, name)[order] for name in _COLUMNS}
    group = group[order]
    starts = _starts(np.stack([group, columns["kind"], columns["change"]]), per) if count else np.zeros(0, np.int64)
    files = np.diff(np.append(starts, count))

    def sums(values: Ints) -> Ints:
        return np.add.reduceat(values, starts) if count else values

    total_rows = sums(columns["rows"])
    gone = sums(np.maximum(columns["deleted"], 0))
    unknown = sums((columns["deleted"] < 0).astype(np.int64)) > 0
    # At least 1 if any row is deleted; a vector may hold more positions than its file has rows.
    share = np.clip(-(-1000 * gone // np.maximum(total_rows, 1)), 0, 1000)
    sizes = np.bincount(group[starts], minlength=len(shown))
    made = []
    for i, (label, cells) in enumerate(zip(shown, sizes, strict=True)):
        mine = slice(*np.searchsorted(group, [i, i + 1]))
        live = columns["change"][mine] != REMOVED
        data = live & (columns["kind"][mine] == 0)
        made.append(
            CellGroup(
                label,
                files=int(data.sum()),
                rows=int(columns["rows"][mine][data].sum()),
                size=int(columns["size"][mine][live].sum()),
                deletes=int(live.sum() - data.sum()),
                added=int((columns["change"][mine] == ADDED).sum()),
                removed=int((~live).sum()),
                cells=int(cells),
            )
        )
    return FileCells(
        groups=tuple(made),
        partitions=found.partitions,
        files=files,
        kind=columns["kind"][starts],
        change=columns["change"][starts],
        size=sums(columns["size"]) // np.maximum(files, 1),
        age=sums(columns["age"]) // np.maximum(files, 1),
        deleted=np.where(unknown & (gone == 0), -1, share),
        rows=total_rows,
        manifest=columns["manifest"][starts],
        row=columns["row"][starts],
        most=per,
        total=len(found),
        shared_deletes=found.shared_deletes,
        unread=found.unread,
    )


def _groups(found: LiveFiles, most: int) -> tuple[list[str], Ints]:
    """Return the labels of the groups, and the group of each partition; too many partitions are merged."""
    count = found.partitions
    if count <= most:
        return found.labels(range(count)), np.arange(count)
    groups = np.arange(count) * most // count
    first = np.searchsorted(groups, np.arange(most))
    last = np.append(first[1:], count) - 1
    heads, tails = found.labels(first.tolist()), found.labels(last.tolist())
    pairs = zip(heads, tails, (last - first + 1).tolist(), strict=True)
    return [f"{a} … {b} ({amount(n, 'partition')})" if n > 1 else a for a, b, n in pairs], groups


def _starts(keys: Ints, per: int) -> Ints:
    """Return where cells begin: where a key changes, and after every ``per`` files."""
    count = keys.shape[1]
    begins = np.append(True, (keys[:, 1:] != keys[:, :-1]).any(axis=0))
    run = np.maximum.accumulate(np.where(begins, np.arange(count), 0))
    return np.flatnonzero((np.arange(count) - run) % per == 0)
