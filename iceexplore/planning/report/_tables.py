"""Make the tables of a plan: its scan tasks, their deletes, and the files that planning read, such as manifests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.expressions import expression_sql
from iceexplore.manifests import ContentType, whole
from iceexplore.planning.delete_index._lists import Stretches
from iceexplore.planning.model._groups import partition_texts
from iceexplore.planning.model._tasks import MatchedDeletes
from iceexplore.planning.scan._columns import column_bytes
from iceexplore.planning.scan._splits import content_sizes, delete_counts, split_counts

if TYPE_CHECKING:
    from iceexplore.planning.scan._result import PlannedScan

__all__ = [
    "deletes_table",
    "reads_table",
    "task_records",
    "tasks_table",
]

READS_SCHEMA = build.schema(
    [
        ("kind", pa.string()), ("location", pa.string()), ("bytes", pa.int64()), ("ms", pa.float64()),
        ("cached", pa.bool_()),
    ]
)  # fmt: skip


def reads_table(plan: PlannedScan) -> pa.Table:
    """Return a table of `READS_SCHEMA` with one row per file that planning read.

    ``ms`` is the time to read the file, in milliseconds; it is 0 if the file was in the cache. ``bytes`` is the size of
    the file if it is a manifest list, root manifest or manifest. For any other file, ``bytes`` is the number of bytes
    that were read, because usually only a part is read: the footer of a data file, for example, or a deletion vector in
    a Puffin file.
    """
    return plan.once("reads", lambda: _reads_table(plan))


def _reads_table(plan: PlannedScan) -> pa.Table:
    by_place: dict[str, list[Any]] = defaultdict(list)
    for read in plan.log:
        if not read.cached:
            by_place[read.location].append(read)
    rows: list[dict[str, Any]] = []

    def add(kind: str, location: str, length: int | None) -> None:
        found = by_place.pop(location, [])
        ms = sum(r.seconds for r in found) * 1000
        rows.append({"kind": kind, "location": location, "bytes": length, "ms": ms, "cached": not found})

    for index, scan in enumerate(plan.roots):
        add("root", scan.root.location, scan.root.length)
        for leaf in plan.leaves:
            if leaf.scan == index and leaf.root_row is not None:
                add("data manifest", leaf.location, leaf.length)
    if plan.read_delete_rows:
        picked = plan.roots[0].root.entries.select(["location", "file_size_in_bytes"])
        for record in picked.take(pa.array(plan.read_delete_rows, pa.int64())).to_pylist():
            add("delete manifest", record["location"], record["file_size_in_bytes"])
    for location, found in by_place.items():
        size, ms = sum(r.length for r in found), sum(r.seconds for r in found) * 1000
        rows.append({"kind": found[0].kind, "location": location, "bytes": size, "ms": ms, "cached": False})
    return pa.Table.from_pylist(rows, schema=READS_SCHEMA)


def task_records(plan: PlannedScan, tasks: Sequence[int] | npt.NDArray[np.int64]) -> list[dict[str, Any]]:
    """Return rows of `tasks_table` as dictionaries with additional keys.

    Parameters
    ----------
    tasks
        The numbers of the rows. They must be consecutive, such as 4, 5, 6.

    Returns
    -------
    list of dict
        The columns of `tasks_table`, and these keys:

        - ``ordinal``: the position, from 0, of the data file's entry among all entries as they are stored in the
          manifest (or V4 root manifest) that lists it.
        - ``left``: the residual of the file, as SQL, if it is not the whole filter. A residual lacks the terms that the
          file's partition values prove true or false; a reader must test each row with it. None if the residual is the
          whole filter, or if metadata proves that every row matches.
        - ``row_groups``, ``row_groups_read``: the number of row groups in the file, and of those that are read; both
          are 0 if the row groups of the file are unknown. The keys are missing if the plan did not prune row groups.
        - ``why``: why the first skipped row group of the file is skipped: its row in ``plan.row_groups``, as a
          dictionary. None if no row group is skipped.
    """
    if not len(tasks):
        return []
    part = replace(plan, files=plan.files.take(pa.array(tasks, pa.int64())), row_groups=None)
    out: list[dict[str, Any]] = build.to_pylist(tasks_table(part))
    ordinals = build.to_pylist(part.files.files.entries["ordinal"])
    for record, ordinal, number in zip(out, ordinals, build.to_pylist(part.files.residual), strict=True):
        left = part.files.residuals[number]
        partly = not record["whole"] and left != plan.filter.expression
        record |= {"ordinal": ordinal, "left": expression_sql(left, "sql") if partly else None, "why": None}
    if plan.row_groups is None:
        return out
    groups = plan.row_groups.filter(pc.is_in(whole(plan.row_groups["file"]), pa.array(tasks, pa.int64())))
    for record in out:
        record |= {"row_groups": 0, "row_groups_read": 0}
    for group in build.to_pylist(groups):
        record = out[group["file"] - int(tasks[0])]
        if group["row_group"] is None:
            continue
        record["row_groups"] += 1
        record["row_groups_read"] += group["may"] is not False
        if group["may"] is False and record["why"] is None:
            record["why"] = group
    return out


#: Maximum number of delete file names in each of the columns ``position_deletes`` and ``equality_deletes`` of
#: `tasks_table`, summed over all rows (one per data file). If there would be more, each row lists at most
#: its first k delete files: k is this maximum divided by the number of rows, but at least 1.
_MOST_NAMES = 10_000_000


def tasks_table(plan: PlannedScan) -> pa.Table:
    """Return a table with one row per data file that the plan reads.

    The columns include the file's partition, its residual, its number of splits, and the deletes that apply to it. The
    rows are in the order of the manifests in the root (manifest list or V4 root manifest), and of the entries in each
    manifest.
    """
    return plan.once("tasks", lambda: _tasks_table(plan))


def _tasks_table(plan: PlannedScan) -> pa.Table:
    tasks = plan.files
    entries, matched = tasks.files.entries, tasks.matched
    counts = delete_counts(matched)
    names = whole(matched.deletes.entries["location"])
    of_vector = matched.vector
    columns: dict[str, Any] = {
        "file_path": entries["location"],
        "file_format": entries["file_format"],
        "spec_id": entries["partition_spec_id"],
        "partition": partition_texts(plan.state, tasks.files),
        "rows": entries["record_count"],
        "bytes": entries["file_size_in_bytes"],
        "splits": split_counts(tasks, plan.options.size),
        "residual": pa.array([expression_sql(r) for r in tasks.residuals], pa.string()).take(tasks.residual),
        "whole": tasks.whole,
        "deletes": counts.count,
        "delete_bytes": counts.bytes,
        "deletion_vector": names.take(of_vector),
        "deleted_rows": whole(matched.deletes.entries["record_count"]).take(of_vector),
        "position_deletes": Stretches.of(matched.positions).names(names, _MOST_NAMES),
        "equality_deletes": Stretches.of(matched.equality).names(names, _MOST_NAMES),
        "sequence_number": entries["sequence_number"],
        "first_row_id": entries["first_row_id"],
        "snapshot_id": entries["snapshot_id"],
    }
    if plan.columns is not None:
        columns = _placed(columns, "bytes", "column_bytes", column_bytes(plan))
    if plan.row_groups is not None:
        columns |= _row_groups(plan.row_groups, len(tasks))
    return pa.table(columns)


def deletes_table(plan: PlannedScan) -> pa.Table:
    """Return a table with one row per delete file or deletion vector that applies to a data file of the plan."""
    return plan.once("deletes", lambda: _deletes_table(plan))


def _deletes_table(plan: PlannedScan) -> pa.Table:
    matched = plan.files.matched
    deletes = matched.deletes
    entries = deletes.entries
    return build.table(
        {
            "file_path": entries["location"],
            "kind": _kinds(matched),
            "file_format": entries["file_format"],
            "spec_id": entries["partition_spec_id"],
            "partition": partition_texts(plan.state, deletes),
            "tasks": _uses(matched),
            "rows": entries["record_count"],
            "bytes": content_sizes(deletes),
            "offset": pc.struct_field(whole(entries["deletion_vector"]), "offset"),
            "referenced_file": entries["referenced_file"],
            "equality_ids": entries["equality_ids"],
            "sequence_number": entries["sequence_number"],
            "snapshot_id": entries["snapshot_id"],
        }
    )


def _row_groups(table: pa.Table, count: int) -> dict[str, Any]:
    """Return the columns ``row_groups`` and ``row_groups_read`` of `tasks_table`.

    They have one value per data file: the number of its row groups, and the number of those that are read. Both are
    null for a file whose row groups are unknown.

    Parameters
    ----------
    table
        A table of `ROW_GROUP_SCHEMA` with the row groups of all data files in the plan.
    count
        The number of data files in the plan.
    """
    file = np.asarray(whole(table["file"])).astype(np.int64)
    known = np.asarray(whole(table["row_group"]).is_valid())
    may = np.asarray(pc.fill_null(whole(table["may"]), True))
    every = np.bincount(file[known], minlength=count)
    return {
        "row_groups": pa.array(every, pa.int64(), mask=every == 0),
        "row_groups_read": pa.array(np.bincount(file[known & may], minlength=count), pa.int64(), mask=every == 0),
    }


def _kinds(matched: MatchedDeletes) -> AnyArray:
    kinds = np.full(len(matched.deletes), "position", dtype=object)
    vectors = np.asarray(pc.drop_null(matched.vector)).astype(np.int64)
    kinds[vectors] = "vector"
    content = np.asarray(pc.fill_null(whole(matched.deletes.entries["content_type"]), -1))
    kinds[content == ContentType.EQUALITY_DELETE] = "equality"
    return pa.array(kinds, pa.string())


def _uses(matched: MatchedDeletes) -> npt.NDArray[np.int64]:
    """Count the data files to which each delete applies.

    The result has one number per row of ``matched.deletes``, in the same order.
    """
    count = len(matched.deletes)
    out = np.bincount(np.asarray(pc.drop_null(matched.vector)).astype(np.int64), minlength=count).astype(np.int64)
    return out + Stretches.of(matched.positions).uses(count) + Stretches.of(matched.equality).uses(count)


def _placed(columns: dict[str, Any], after: str, name: str, values: object) -> dict[str, Any]:
    out = {}
    for key, value in columns.items():
        out[key] = value
        if key == after:
            out[name] = values
    return out
