"""Plan ``rewrite_position_delete_files``: the delete files that Spark's procedure would rewrite or turn into vectors.

Java: ``BinPackRewritePositionDeletePlanner``, ``SparkRewritePositionDeleteRunner`` (1.11).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, Strings, build
from iceexplore.arrow import compute as pc
from iceexplore.commits import NothingToDo, Sandbox, rewrite_position_deletes
from iceexplore.doctor.maintenance._files import contradictions, strict
from iceexplore.doctor.maintenance._grouped_plan import GroupedPlan
from iceexplore.doctor.maintenance._plan import MaintenanceCost, T, Wrap, procedure_filter, spark_call, sql_text
from iceexplore.doctor.maintenance._size_based import (
    SIZE_OPTIONS,
    Longs,
    ProcedureOptions,
    SizeRules,
    group_table,
    packed,
    summed,
)
from iceexplore.expressions import FilterLike
from iceexplore.graph import TableState, amount, human_bytes, live_manifests
from iceexplore.manifests import ContentType, EntryBatch, bool_array, live, whole
from iceexplore.planning import (
    DeleteFiles,
    FileTasks,
    MatchedDeletes,
    SplitOptions,
    combined_by_group,
    content_sizes,
    counted,
    live_deletes,
    make_filter,
    partition_codes,
    partition_texts,
)
from iceexplore.reading import position_index
from iceexplore.render import CardTable

__all__ = ["RewritePositionDeletesPlan", "plan_rewrite_position_deletes"]

#: Java: ``TableProperties.DELETE_TARGET_FILE_SIZE_BYTES_DEFAULT``.
_TARGET = 64 * 1024 * 1024
#: By default, delete files that may name several data files are opened only if there are at most this many of them.
_MOST_OPENED = 100
#: The assumed maximum size, in bytes, of the footer of a Parquet file of position deletes.
_FOOTER = 2048
#: The assumed maximum number of bytes per row in a small Parquet file of position deletes.
_ROW = 8


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RewritePositionDeletesPlan(GroupedPlan[T]):
    """The position delete files that ``rewrite_position_delete_files`` would rewrite now, and their groups.

    In version 2, the position delete files of a partition are merged, and positions in data files that are no longer
    live are dropped. From version 3 on, new deletion vectors replace position delete files and existing deletion
    vectors; if no position delete file passes the filter, nothing is rewritten. In every version, files are rewritten
    only if they are too small or too large, and if they form a group with enough files or bytes. The option
    ``rewrite_all`` lifts these conditions. The thresholds are in `reasons`.

    In the simulated table, the position delete files of the plan are read, and their positions are written to new
    delete files or deletion vectors. Existing deletion vectors stay as they are.

    Attributes
    ----------
    groups
        A row per group. An Arrow table: ``group`` (from 1), ``partition`` (text), ``files``, ``bytes``, ``rows`` and
        ``added_files``.
    candidates
        The number of position delete files and deletion vectors that pass the filter.
    to_vectors
        True if the new deletes are deletion vectors.
    accuracy
        How accurate the planned number of new files is: ``exactly``, or ``at least`` if a delete file that may name
        several data files was not opened.
    """

    procedure = "rewrite_position_delete_files"
    title = "Rewrite position delete files"

    to_vectors: bool = False
    _deletes: EntryBatch
    _referenced: AnyArray
    _group: Longs
    _why: AnyArray
    _pairs: pa.Table

    @property
    def nothing(self) -> bool:
        """True if no delete file is rewritten."""
        return not len(self._deletes)

    @property
    def rewritten_delete_files(self) -> int:
        """The number of delete files and deletion vectors that are rewritten (``rewritten_delete_files_count``)."""
        return len(self._deletes)

    @property
    def rewritten_bytes(self) -> int:
        """The total bytes of the rewritten delete files and deletion vectors (``rewritten_bytes_count``).

        For a deletion vector, this is the length of the vector, not that of its Puffin file.
        """
        return int(pc.sum(self.groups["bytes"]).as_py() or 0)

    @property
    def added_delete_files(self) -> int:
        """The number of new delete files or deletion vectors (``added_delete_files_count``)."""
        return int(pc.sum(self.groups["added_files"]).as_py() or 0)

    @property
    def text(self) -> str:
        """A sentence about what the procedure would do."""
        candidates = amount(
            self.candidates, "position delete file or deletion vector", "position delete files and deletion vectors"
        )
        if self.nothing:
            return f"none of {candidates} is rewritten"
        about = "" if self.accuracy == "exactly" else f"{self.accuracy} "
        return (
            f"{self.rewritten_delete_files:,} of {candidates} ({human_bytes(self.rewritten_bytes)}) in "
            f"{amount(len(self.groups), 'group')} become "
            f"{about}{amount(self.added_delete_files, 'deletion vector' if self.to_vectors else 'delete file')}"
        )

    @cached_property
    def files(self) -> pa.Table:
        """A row per position delete file or deletion vector that is rewritten.

        An Arrow table: ``group``, ``file_path``, ``kind`` (``position`` or ``vector``), ``referenced_data_file`` (null
        if it may apply to several), ``spec_id``, ``rows``, ``bytes`` and ``why`` (``too small``, ``too large``).
        """
        entries = self._deletes.entries
        vector = np.asarray(whole(entries["deletion_vector"]).is_valid())
        return build.table(
            {
                "group": self._group + 1,
                "file_path": entries["location"],
                "kind": pa.array(np.where(vector, "vector", "position"), pa.string()),
                "referenced_data_file": self._referenced,
                "spec_id": entries["partition_spec_id"],
                "rows": entries["record_count"],
                "bytes": content_sizes(self._deletes),
                "why": self._why,
            }
        )

    @cached_property
    def data_files(self) -> pa.Table:
        """A row per live data file that is named by a position delete file or deletion vector that is rewritten.

        An Arrow table: ``file_path`` and ``delete_files``, the number of rewritten position delete files and deletion
        vectors that name the data file. Delete files that may name several data files are counted only if the plan
        opened them.
        """
        counted_ = self._pairs.group_by("file_path", use_threads=False).aggregate([("delete", "count_distinct")])
        return counted_.rename_columns(["file_path", "delete_files"]).sort_by("file_path")

    def _details(self) -> dict[str, Any]:
        return {
            **super()._details(),
            "rewritten_delete_files": self.rewritten_delete_files,
            "rewritten_bytes": self.rewritten_bytes,
            "added_delete_files": self.added_delete_files,
            "to_vectors": self.to_vectors,
        }

    def _tables(self) -> tuple[CardTable, ...]:
        return (group_table(self.groups, ("rows", "added_files")),)

    def _commit(self, sandbox: Sandbox) -> None:
        plain = self._deletes.entries.filter(whole(self._deletes.entries["deletion_vector"]).is_null())
        paths = build.to_pylist(plain["location"])
        try:
            sandbox.commit(lambda writer: rewrite_position_deletes(writer.base, writer, paths))
        except NothingToDo:  # new files would not be fewer than the old ones, and would have the same positions
            return


def plan_rewrite_position_deletes(
    state: TableState,
    wrap: Wrap[T],
    *,
    where: FilterLike | None = None,
    read: bool | None = None,
    **options: object,
) -> RewritePositionDeletesPlan[T]:
    """Plan ``rewrite_position_delete_files``. This reads the manifests and some delete files.

    Parameters and errors are those of `Maintenance.rewrite_position_delete_files`.
    """
    given = ProcedureOptions(options, SIZE_OPTIONS, state.metadata.properties)
    rules = SizeRules.of(given, "write.delete.target-file-size-bytes", _TARGET)
    wanted = make_filter(state.metadata, state.schema, where)
    reading = strict(state)
    found = live_deletes(reading)
    mine = found.vector | found.position
    if where is not None:
        # The column metrics of position delete files do not describe columns of the table. So the filter is evaluated
        # by the partition values only, and the batch has no metrics.
        by_tuple = EntryBatch(found.batch.entries, {}, found.batch.partition)
        mine &= np.asarray(wanted.evaluate(by_tuple, state.metadata)[0]).astype(np.bool_)
    rows, group = _grouped(found, np.flatnonzero(mine), rules)
    to_vectors = state.metadata.has_deletion_vectors
    if to_vectors and not (found.position & mine).any():
        rows, group = rows[:0], group[:0]
    deletes = EntryBatch(found.batch.entries, {}, found.batch.partition).take(build.array(rows))
    sizes = content_sizes(deletes)
    count = int(group.max(initial=-1)) + 1
    size = summed(group, sizes, count)
    pairs, unknown = _named(reading, found, rows, read)
    task, combined = _combined(state, deletes, sizes, group, rules.split_size(size))
    made = _added(state, pairs, unknown, task, combined, group, to_vectors=to_vectors)
    why = np.where(sizes < rules.least, "too small", np.where(sizes > rules.most, "too large", ""))
    sql = procedure_filter(wanted.expression) if where is not None else None
    return RewritePositionDeletesPlan(
        state=state,
        wrap=wrap,
        reasons=tuple(given.thresholds),
        cost=MaintenanceCost(
            files_read=len(rows),
            bytes_read=int(size.sum()),
            files_written=int(made.sum()),
            bytes_written=_bytes(deletes, sizes, int(made.sum()), to_vectors=to_vectors),
            files_freed=len(rows),
            bytes_freed=int(size.sum()),
        ),
        calls=(
            spark_call(
                state,
                "rewrite_position_delete_files",
                options=given.sql(),
                where=None if sql is None else sql_text(sql),
            ),
        ),
        notes=contradictions(reading),
        groups=_group_table(state, deletes, group, sizes, made),
        candidates=int(mine.sum()),
        to_vectors=to_vectors,
        accuracy="at least" if len(unknown) else "exactly",
        _deletes=deletes,
        _referenced=found.referenced.take(build.array(rows)),
        _group=group,
        _why=pa.array(why, pa.string()),
        _pairs=pairs,
    )


def _grouped(found: DeleteFiles, rows: Longs, rules: SizeRules) -> tuple[Longs, Longs]:
    """Select the delete files and deletion vectors to rewrite, and group them.

    Parameters
    ----------
    found
        All live deletes of the snapshot.
    rows
        The row numbers, in ``found``, of the delete files and deletion vectors that may be rewritten.
    rules
        The thresholds of the selection and of the groups.

    Returns
    -------
    tuple of numpy.ndarray
        Two arrays with one item per selected delete file or deletion vector, sorted by group: its row number in
        ``found``, and the number of its group, from 0.
    """
    batch = EntryBatch(found.batch.entries, {}, found.batch.partition).take(build.array(rows))
    sizes = content_sizes(batch)
    # Iceberg's Java planner ignores partition specs here: files of different specs whose partition tuples are equal are
    # in the same partition. So the partitions are computed as if all files had the same spec.
    place = partition_codes(batch.with_columns(partition_spec_id=0))
    mine = np.arange(len(rows)) if rules.rewrite_all else np.flatnonzero(rules.outside(sizes))
    mine = mine[np.argsort(place[mine], kind="stable")]
    group = packed(sizes[mine], place[mine], rules.max_group_bytes, rules.max_group_files)
    count = int(group.max(initial=-1)) + 1
    number, size = np.bincount(group, minlength=count).astype(np.int64), summed(group, sizes[mine], count)
    keep = np.ones(count, dtype=np.bool_) if rules.rewrite_all else rules.worth(number, size)
    order = rules.arranged(number[keep], size[keep])
    place_of = np.full(count, -1, dtype=np.int64)
    place_of[np.flatnonzero(keep)[order]] = np.arange(len(order))
    mine, group = mine[keep[group]], place_of[group[keep[group]]]
    by_group = np.argsort(group, kind="stable")
    return rows[mine[by_group]], group[by_group]


def _named(state: TableState, found: DeleteFiles, rows: Longs, read: bool | None) -> tuple[pa.Table, Longs]:
    """Find the live data files to which each rewritten delete file or deletion vector refers.

    Parameters
    ----------
    found
        All live deletes of the snapshot.
    rows
        The row numbers, in ``found``, of the deletes that are rewritten.
    read
        Whether to open position delete files that may refer to several data files. None: open them only if there are at
        most `_MOST_OPENED` of them.

    Returns
    -------
    pyarrow.Table
        A row per pair of a delete and a live data file to which it refers: ``delete`` (the delete's index in ``rows``)
        and ``file_path`` (the location of the data file).
    numpy.ndarray
        The indices in ``rows`` of the position delete files whose data files are unknown: those that may refer to
        several data files and were not opened.
    """
    referenced = found.referenced.take(build.array(rows))
    one = np.asarray(referenced.is_valid())
    several = np.flatnonzero(~one)
    places, names = [np.flatnonzero(one)], [referenced.drop_null()]
    if read is not False and (read or len(several) <= _MOST_OPENED):
        entries = found.batch.entries.select(["location", "file_format"]).take(build.array(rows[several]))
        for at, entry in zip(several.tolist(), build.to_pylist(entries), strict=True):
            paths = list(position_index(state, entry["location"], entry["file_format"]).paths)
            places.append(np.full(len(paths), at))
            names.append(pa.array(paths, pa.string()))
        several = several[:0]
    pairs = build.table({"delete": np.concatenate(places), "file_path": pa.chunked_array(names, pa.string())})
    return (pairs.filter(pc.is_in(pairs["file_path"], value_set=_live_data(state))) if len(rows) else pairs), several


def _live_data(state: TableState) -> Strings:
    """Return the locations of the live data files."""
    root = state.root()
    if root is None:
        return pa.array([], pa.string())
    direct = state.reader.direct(root)
    leaves = state.reader.leaves(root, live_manifests(root, {int(ContentType.DATA_MANIFEST)}), parts={"entries"})
    found = []
    for leaf in [*([] if direct is None else [direct]), *leaves]:
        is_data = bool_array(pc.equal(leaf.entries["content_type"], int(ContentType.DATA)))
        found.append(leaf.entries["location"].filter(pa.array(is_data & bool_array(live(leaf.entries)))))
    return whole(pa.chunked_array([chunk for column in found for chunk in column.chunks], pa.string()))


def _combined(
    state: TableState, deletes: EntryBatch, sizes: Longs, group: Longs, split_size: Longs
) -> tuple[Longs, Longs]:
    """Split the delete files of each group, and combine the splits into tasks, as Spark does.

    Parameters
    ----------
    deletes
        The delete files and deletion vectors that are rewritten, sorted by group.
    sizes, group
        For each of them, its bytes and the number of its group, from 0.
    split_size
        For each group, the maximum bytes of a split and of a task.

    Returns
    -------
    tuple of numpy.ndarray
        Two arrays with one item per split: the index of its delete file in ``deletes``, and the number of its task,
        from 0.
    """
    count = len(deletes)
    none = pa.array([[]] * count, pa.list_(pa.int32()))
    files = EntryBatch(deletes.with_columns(file_size_in_bytes=pa.array(sizes, pa.int64())).entries)
    tasks = FileTasks(
        files,
        pa.nulls(count, pa.int64()),
        pa.array([True] * count, pa.bool_()),
        pa.array([0] * count, pa.int32()),
        matched=MatchedDeletes(vector=pa.nulls(count, pa.int32()), positions=none, equality=none),
    )
    lookback = SplitOptions.of(state.metadata.properties).lookback
    return combined_by_group(tasks, group, split_size, lookback=lookback)


def _added(
    state: TableState,
    pairs: pa.Table,
    unknown: Longs,
    task: Longs,
    combined: Longs,
    group: Longs,
    *,
    to_vectors: bool,
) -> Longs:
    """Return the number of new delete files or deletion vectors of each group.

    Spark rewrites each group in tasks. A task collects the positions of its old delete files. For each live data file
    in which there are such positions, it writes one new delete file or deletion vector. There is one exception: a task
    writes a single delete file for all data files if the table property ``write.delete.granularity`` is ``partition``
    and ``to_vectors`` is false.

    Parameters
    ----------
    pairs, unknown
        The results of `_named`.
    task, combined
        The results of `_combined`.
    group
        For each old delete file, the number of its group.
    to_vectors
        True if the new deletes are deletion vectors.
    """
    count = int(group.max(initial=-1)) + 1
    if not count:
        return np.zeros(0, dtype=np.int64)
    by_task = build.table({"delete": task, "combined": combined})
    per_file = (
        pairs.join(by_task, "delete", join_type="inner")
        .group_by(["combined", "file_path"], use_threads=False)
        .aggregate([])
    )
    written = np.asarray(per_file["combined"]).astype(np.int64)
    granularity = state.metadata.properties.get("write.delete.granularity", "file")
    if granularity.lower() == "partition" and not to_vectors:
        written = np.unique(written)
    # If it is unknown to which data files a delete file applies, the task that reads it counts as writing one file.
    maybe = np.unique(combined[np.isin(task, unknown)])
    written = np.concatenate([written, np.setdiff1d(maybe, written)])
    of_task = np.zeros(int(combined.max(initial=-1)) + 1, dtype=np.int64)
    of_task[combined] = group[task]
    return np.bincount(of_task[written], minlength=count).astype(np.int64)


def _bytes(deletes: EntryBatch, sizes: Longs, made: int, *, to_vectors: bool) -> int:
    """Estimate the total bytes of the new delete files or deletion vectors.

    A small deletion vector has 40 bytes plus two per position (spec, "deletion-vector-v1").

    A small position delete file is hardly larger than its footer. Each new file is assumed to have a footer as large as
    the smallest footer of the old files. The footer of a file that refers to a single data file is larger, because it
    has the full path of the data file as bounds.

    Parameters
    ----------
    deletes
        The old delete files and deletion vectors.
    sizes
        For each of them, its bytes.
    made
        The number of new delete files or deletion vectors.
    to_vectors
        True if the new deletes are deletion vectors.
    """
    if not len(sizes):
        return 0
    if to_vectors:
        return 40 * made + 2 * int(counted(deletes, "record_count").sum())
    positions = np.maximum(sizes - _FOOTER, np.minimum(_ROW * counted(deletes, "record_count"), sizes // 4))
    return int(positions.sum()) + made * int((sizes - positions).min())


def _group_table(state: TableState, deletes: EntryBatch, group: Longs, sizes: Longs, made: Longs) -> pa.Table:
    count = len(made)
    first = np.searchsorted(group, np.arange(count))
    return build.table(
        {
            "group": np.arange(1, count + 1),
            "partition": partition_texts(state, deletes.take(build.array(first))),
            "files": np.bincount(group, minlength=count),
            "bytes": summed(group, sizes, count),
            "rows": summed(group, counted(deletes, "record_count"), count),
            "added_files": made,
        }
    )
