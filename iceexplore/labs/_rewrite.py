"""Rows of a table replaced or removed: by rewriting their files (copy-on-write), or by deletes (merge-on-read)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.commits import Change, CommitWriter, Isolation, Operation, row_delta, scoped_to
from iceexplore.errors import FormatError, OptionError, UnsupportedError
from iceexplore.formats import MAX_TABLE_BYTES
from iceexplore.graph import TableState
from iceexplore.labs._write import LINEAGE, LINEAGE_FROM
from iceexplore.manifests import EntryBatch
from iceexplore.planning import FileTasks, Filter, plan_scan
from iceexplore.reading import TaskReader, outputs_of

__all__ = ["Hits", "Rewrite", "change_of", "find_hits", "mode_of", "planned", "rewritten"]

Positions = npt.NDArray[np.int64]
#: Of the rows that are to go (positions in a file), by row of the tasks.
Hits = Mapping[int, Positions]
#: Makes new rows of old ones: (row of the tasks, the rows, their positions). The columns stay.
Replace = Callable[[int, pa.Table, Positions], pa.Table]
_POS = "_pos"


@dataclass(frozen=True)
class Rewrite:
    """What becomes of the files concerned.

    Attributes
    ----------
    gone
        Data files that go as wholes.
    positions
        Rows deleted in data files that stay.
    rows
        To be written anew, with the columns `LINEAGE` in version 3 and later; None if there are none.
    """

    gone: tuple[str, ...] = ()
    positions: Mapping[str, Positions] | None = None
    rows: pa.Table | None = None


def mode_of(state: TableState, operation: Literal["delete", "update", "merge"]) -> tuple[bool, Isolation]:
    """Whether an operation is merge-on-read, and its isolation: the table's ``write.<operation>.mode`` and so on.

    Version 1 has no delete files: there it is always copy-on-write.

    Raises
    ------
    OptionError
        A property has another value.
    """
    properties = state.metadata.properties
    mode = properties.get(f"write.{operation}.mode", "copy-on-write").lower()
    if mode not in ("copy-on-write", "merge-on-read"):
        raise OptionError(f"the table's write.{operation}.mode is {mode!r}: copy-on-write or merge-on-read")
    level = properties.get(f"write.{operation}.isolation-level", "serializable").lower()
    if level not in ("serializable", "snapshot"):
        raise OptionError(f"the table's write.{operation}.isolation-level is {level!r}: serializable or snapshot")
    merge_on_read = mode == "merge-on-read" and state.metadata.format_version > 1
    return merge_on_read, "serializable" if level == "serializable" else "snapshot"


def planned(state: TableState, where: Any) -> tuple[Filter, FileTasks]:
    """The files that may have matching rows.

    Raises
    ------
    FormatError
        Manifests cannot be read: files would be missing, or deleted rows come back.
    OptionError
        The filter makes no sense.
    """
    plan = plan_scan(state, where)
    if plan.notes:
        raise FormatError(" ".join(plan.notes), location=state.metadata_location)
    return plan.filter, plan.files


def find_hits(state: TableState, tasks: FileTasks, *, skip_whole: bool = False) -> dict[int, Positions]:
    """The live rows that match, of the tasks that have any. Only the columns of the filter are read.

    Parameters
    ----------
    skip_whole
        Leave out files all of whose rows match by metadata.
    """
    reader = TaskReader(state, tasks, outputs_of(state, [_POS]))
    whole = tasks.whole.to_pylist()
    found = {}
    for row in range(len(tasks)):
        if skip_whole and whole[row]:
            continue
        parts = [np.asarray(part.table[_POS]) for part in reader.read(row)]
        positions = np.concatenate([np.zeros(0, np.int64), *parts])
        if len(positions):
            found[row] = positions
    return found


def rewritten(
    state: TableState,
    tasks: FileTasks,
    hits: Hits,
    *,
    merge_on_read: bool,
    change: Replace | None = None,
) -> Rewrite:
    """Take rows out of their files, and make new ones of them.

    Parameters
    ----------
    hits
        At least one row of each task named.
    change
        The rows that come in their place; None: none.
    """
    names = tasks.files.entries["location"].to_pylist()
    if merge_on_read and change is None:
        return Rewrite(positions={names[row]: at for row, at in hits.items()})
    out: list[pa.Table] = []
    size = 0
    for row, positions in hits.items():
        for table, at in _rows_of(state, tasks, row):
            hit = np.isin(at, positions)
            parts = [] if merge_on_read else [table.filter(pa.array(~hit))]
            if change is not None and hit.any():
                parts.append(change(row, table.filter(pa.array(hit)), at[hit]))
            size += sum(part.nbytes for part in parts)
            if size > MAX_TABLE_BYTES:
                raise UnsupportedError(
                    f"more than {MAX_TABLE_BYTES:,} bytes of rows were to be written anew in one commit: do it in "
                    "parts, by a narrower filter"
                )
            out += [part for part in parts if part.num_rows]
    rows = pa.concat_tables(out) if out else None
    if merge_on_read:
        return Rewrite(positions={names[row]: at for row, at in hits.items()}, rows=rows)
    return Rewrite(gone=tuple(names[row] for row in hits), rows=rows)


def _rows_of(state: TableState, tasks: FileTasks, row: int) -> Iterator[tuple[pa.Table, Positions]]:
    """Every live row of a file, without its position, and the positions."""
    lineage = LINEAGE if state.metadata.format_version >= LINEAGE_FROM else ()
    one = tasks.take(pa.array([row]))
    every = replace(one, whole=pa.array([True]))
    for part in TaskReader(state, every, outputs_of(state, ["*", *lineage, _POS])).read(0):
        yield part.table.drop_columns([_POS]), np.asarray(part.table[_POS])


def change_of(
    state: TableState,
    writer: CommitWriter,
    tasks: FileTasks,
    rewrite: Rewrite,
    added: EntryBatch,
    *,
    conflicts: Filter,
    isolation: Isolation,
) -> Change:
    """The change of a commit that takes rows out, and adds files.

    Parameters
    ----------
    conflicts
        What was read: with serializable isolation, new rows that may match conflict.
    """
    from pyroaring import BitMap64

    if rewrite.positions:
        deletes = {name: BitMap64(at.tolist()) for name, at in rewrite.positions.items()}
        made = row_delta(state, writer, added if len(added) else None, deletes=deletes, isolation=isolation)
    else:
        base = None if state.snapshot is None else state.snapshot.snapshot_id
        made = Change("append", added, base_snapshot_id=base, isolation=isolation)
    removes = bool(rewrite.gone or rewrite.positions)
    operation: Operation = "overwrite" if removes and len(added) else "delete" if removes else "append"
    return replace(
        made,
        operation=operation,
        remove_data=rewrite.gone,
        # Position delete files of version 2 that concern one of these alone; vectors go with their files anyway.
        remove_deletes=tuple(dict.fromkeys((*made.remove_deletes, *scoped_to(tasks.matched, rewrite.gone)))),
        conflict_files=made.conflict_files | set(rewrite.gone),
        conflict_partitions=None,
        conflict_filter=conflicts,
    )
