"""Plan ``rewrite_data_files``: the files and groups that Spark's procedure would rewrite now.

Java: ``BinPackRewriteFilePlanner``, ``SparkShufflingDataRewritePlanner``, ``SparkBinPackFileRewriteRunner`` and
``RewriteDataFilesSparkAction`` (1.11).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from iceexplore.arrow import Strings, build, join_texts
from iceexplore.arrow import compute as pc
from iceexplore.commits import Change, CommitWriter, Sandbox, find_files, merged_groups, start_sandbox
from iceexplore.doctor.maintenance._dangling import dangling, dropped_by_commit, removes_dangling
from iceexplore.doctor.maintenance._files import contradictions, strict
from iceexplore.doctor.maintenance._grouped_plan import GroupedPlan
from iceexplore.doctor.maintenance._plan import MaintenanceCost, T, Wrap, procedure_filter, spark_call, sql_text
from iceexplore.doctor.maintenance._size_based import (
    SIZE_OPTIONS,
    Accuracy,
    Longs,
    Mask,
    ProcedureOptions,
    SizeRules,
    group_table,
    packed,
    summed,
)
from iceexplore.errors import OptionError, whole_number_of
from iceexplore.expressions import FilterLike
from iceexplore.graph import TableState, amount, human_bytes
from iceexplore.manifests import EntryBatch, bool_array, concat_batches, whole
from iceexplore.planning import (
    FileTasks,
    SplitOptions,
    Stretches,
    combined_by_group,
    content_sizes,
    counted,
    delete_counts,
    deleted_rows,
    known_deleted_rows,
    live_deletes,
    partition_codes,
    partition_texts,
    plan_scan,
)
from iceexplore.reading import deleted_positions
from iceexplore.render import CardTable
from iceexplore.writing import default_order

if TYPE_CHECKING:
    from iceexplore.planning import ScanPlan

__all__ = ["RewriteDataFilesPlan", "Strategy", "plan_rewrite_data_files"]

Strategy = Literal["binpack", "sort"]

_OPTIONS = (
    *SIZE_OPTIONS, "delete-file-threshold", "delete-ratio-threshold", "max-files-to-rewrite", "output-spec-id",
    "remove-dangling-deletes", "use-starting-sequence-number", "partial-progress.enabled",
    "partial-progress.max-commits", "partial-progress.max-failed-commits", "max-concurrent-file-group-rewrites",
)  # fmt: skip
_INT_MAX = 2**31 - 1
_SHOWN_COMMITS = 20
#: The accuracy of the number of new files. A key is a pair: whether there may be more new files than planned, and
#: whether there may be fewer.
_ACCURACY: dict[tuple[bool, bool], Accuracy] = {
    (False, False): "exactly", (True, False): "at least", (False, True): "at most", (True, True): "about",
}  # fmt: skip
#: Java: ``TableProperties.WRITE_TARGET_FILE_SIZE_BYTES_DEFAULT``.
_TARGET = 512 * 1024 * 1024


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RewriteDataFilesPlan(GroupedPlan[T]):
    """The data files that ``rewrite_data_files`` would rewrite now, and their groups.

    Spark's planner puts the files of a partition into groups in the order in which it reads them. The plan assumes that
    it reads the manifests in the order of the manifest list. In fact, Spark reads several manifests at the same time,
    so the order of the files differs from run to run. This changes the groups only if the files of a partition do not
    fit into one group (``max-file-group-size-bytes``), or if there are more files than ``max-files-to-rewrite``.

    In the simulated table, the new files are synthetic: no data file is read or written. They have the partition spec
    of the old files and their merged column metrics. Their row counts leave out rows that are deleted by position.
    Equality deletes are assumed to match no row.

    Attributes
    ----------
    strategy
        ``binpack`` or ``sort``.
    groups
        A row per group, in the order of execution. An Arrow table: ``group`` (from 1), ``partition`` (text; ``other
        specs`` if the group has files of other specs than the table's default), ``files``, ``bytes``, ``rows``,
        ``deletes`` (the number of deletes that apply to a file, summed over the files), ``deleted_rows`` (those removed
        by deletion vectors, and by position delete files for a single data file), ``why`` (the rules that select the
        group), ``split_size`` (the bytes that one task reads), ``expected_files`` (the planner's estimate of the number
        of new files) and ``added_files`` (their number in this plan).
    candidates
        The number of data files that pass the filter.
    removed_delete_files
        The number of deletes that are removed: deletion vectors of the rewritten files, and dangling deletes
        (``removed_delete_files_count``).
    commits
        A row per commit that the procedure makes. There may be several with ``partial-progress.enabled``, and otherwise
        there is one. An Arrow table: ``commit`` (from 1), ``groups`` (their number), ``first_group``, ``last_group``,
        ``files``, ``bytes`` and ``added_files``.
    accuracy
        How accurate the planned number of new files is:

        - ``exactly``: none of the following applies. (Still, there may be more files: see `added_data_files`.)
        - ``at least``: Spark may write more files. Some group has files whose partition spec is not that of the new
          files, or not the table's default. The rows of such a group may go to several partitions, and each of these
          gets a file of its own.
        - ``at most``: Spark may write fewer files, because deletes may leave no rows for a new file, or because a sort
          may find too few distinct values for the planned number of files.
        - ``about``: Spark may write more or fewer files, because both ``at least`` and ``at most`` apply, or because
          the groups depend on the order in which Spark reads the manifests.
    """

    procedure = "rewrite_data_files"
    title = "Rewrite data files"

    strategy: Strategy = "binpack"
    removed_delete_files: int = 0
    commits: pa.Table = field(repr=False)
    _tasks: FileTasks
    _groups: _Groups
    _dangling: tuple[str, ...] = ()
    _sequence: int | None = None

    @property
    def nothing(self) -> bool:
        """True if no file is rewritten."""
        return not len(self._groups.rows)

    @property
    def tasks(self) -> FileTasks:
        """The data files that pass the filter, with the deletes that apply to them."""
        return self._tasks

    @property
    def rewritten_data_files(self) -> int:
        """The number of data files that are rewritten (``rewritten_data_files_count``)."""
        return len(self._groups.rows)

    @property
    def rewritten_bytes(self) -> int:
        """The bytes of the rewritten data files (``rewritten_bytes_count``)."""
        return int(self._groups.size.sum())

    @property
    def added_data_files(self) -> int:
        """The number of new files (``added_data_files_count``).

        There may be more: a writer begins another file when its output exceeds the size halfway between target and
        maximum. The plan cannot foresee this, because it depends on how the rows are encoded.
        """
        return int(pc.sum(self.groups["added_files"]).as_py() or 0)

    @property
    def text(self) -> str:
        """A sentence about what the procedure would do."""
        if self.nothing:
            return f"none of {amount(self.candidates, 'data file')} is rewritten"
        about = "" if self.accuracy == "exactly" else f"{self.accuracy} "
        removed = f"; {amount(self.removed_delete_files, 'delete file')} removed" if self.removed_delete_files else ""
        several = f" and {amount(len(self.commits), 'commit')}" if len(self.commits) > 1 else ""
        return (
            f"{amount(self.rewritten_data_files, 'data file')} of {self.candidates:,} "
            f"({human_bytes(self.rewritten_bytes)}) in {amount(len(self.groups), 'group')}{several} become "
            f"{about}{amount(self.added_data_files, 'file')}{removed}"
        )

    @cached_property
    def files(self) -> pa.Table:
        """A row per data file that is rewritten.

        An Arrow table: ``group``, ``file_path``, ``partition``, ``spec_id``, ``rows``, ``bytes``, ``deletes``,
        ``deleted_rows`` (as in `groups`) and ``why`` (the thresholds that select the file; empty with ``rewrite_all``).
        """
        mine = self._tasks.take(build.array(self._groups.rows))
        entries = mine.files.entries
        return build.table(
            {
                "group": self._groups.group + 1,
                "file_path": entries["location"],
                "partition": partition_texts(self.state, mine.files),
                "spec_id": entries["partition_spec_id"],
                "rows": entries["record_count"],
                "bytes": entries["file_size_in_bytes"],
                "deletes": delete_counts(mine.matched).count,
                "deleted_rows": known_deleted_rows(mine),
                "why": _listed(self._groups.why, ("too small", "too large", "deletes", "delete ratio")),
            }
        )

    def rows(self, chosen: Mask) -> Longs:
        """Return the row numbers, in `tasks`, of the files in the groups that the mask ``chosen`` selects."""
        found: Longs = self._groups.rows[chosen[self._groups.group]]
        return found

    def _details(self) -> dict[str, Any]:
        return {
            **super()._details(),
            "strategy": self.strategy,
            "rewritten_data_files": self.rewritten_data_files,
            "rewritten_bytes": self.rewritten_bytes,
            "added_data_files": self.added_data_files,
            "removed_delete_files": self.removed_delete_files,
            "commits": build.to_pylist(self.commits),
        }

    def _tables(self) -> tuple[CardTable, ...]:
        groups = group_table(self.groups, ("why", "added_files"))
        return (groups, _commit_table(self.commits)) if len(self.commits) > 1 else (groups,)

    def after(self, commits: int) -> T:
        """Return the simulated table after the first commits of the plan; `table` is the table after all of them.

        Parameters
        ----------
        commits
            The number of these first commits, from 0.

        Raises
        ------
        OptionError
            The plan has fewer commits.
        """
        whole_number_of("commits", commits, 0)
        if commits > len(self.commits):
            raise OptionError(f"commits={commits}: the plan has only {amount(len(self.commits), 'commit')}")
        if commits == len(self.commits):
            return self.table
        sandbox = start_sandbox(self.state)
        self._commit_first(sandbox, commits)
        return self.wrap(sandbox)

    def _commit(self, sandbox: Sandbox) -> None:
        self._commit_first(sandbox, len(self.commits))

    def _commit_first(self, sandbox: Sandbox, commits: int) -> None:
        for row in build.to_pylist(self.commits.slice(0, commits)):
            last = row["commit"] == len(self.commits)
            start, stop = np.searchsorted(self._groups.group, [row["first_group"] - 1, row["last_group"]]).tolist()
            sandbox.commit(partial(self._change, start, stop, self._dangling if last else ()))

    def _change(self, start: int, stop: int, dangling: tuple[str, ...], writer: CommitWriter) -> Change:
        """Return a change that replaces some files by synthetic ones; deletes are read, but no data files.

        Parameters
        ----------
        start, stop
            Which files to replace: those from index ``start`` up to, but not including, index ``stop`` in the list of
            all files that the plan rewrites, sorted by group.
        dangling
            The locations of dangling delete files to remove.
        """
        state = writer.base
        mine = self._tasks.take(build.array(self._groups.rows[start:stop]))
        names = whole(mine.files.entries["location"])
        listed = build.to_pylist(names)
        found, _ = find_files(state, listed, stats=True)
        found = found.take(pc.index_in(names, whole(found.entries["location"])))
        positions = deleted_positions(state, mine.files, mine.matched)
        # Each new file stays in the partition of the files that it replaces. A group with files of several partitions
        # is possible if their specs are not the default spec.
        place = partition_codes(mine.files)
        order = np.lexsort((place, self._groups.group[start:stop]))
        group, place = self._groups.group[start:stop][order], place[order]
        begins = np.ones(len(order), dtype=np.bool_)
        begins[1:] = (group[1:] != group[:-1]) | (place[1:] != place[:-1])
        part, first = np.cumsum(begins) - 1, np.flatnonzero(begins)
        bytes_ = summed(part, counted(mine.files, "file_size_in_bytes")[order], len(first))
        wanted = np.asarray(self.groups["added_files"])[group[first]]
        share = bytes_ / np.maximum(1, self._groups.size[group[first]])
        many = np.maximum(1, np.rint(wanted * share)).astype(np.int64)
        added = merged_groups(state, writer, found.take(order), part, positions, many, self._sequence)
        return Change(
            "replace",
            added,
            remove_data=tuple(listed),
            remove_deletes=dangling,
            base_snapshot_id=None if self.state.snapshot is None else self.state.snapshot.snapshot_id,
            isolation="snapshot",
            conflict_files=frozenset(listed),
        )


def plan_rewrite_data_files(
    state: TableState,
    wrap: Wrap[T],
    *,
    where: FilterLike | None = None,
    strategy: Strategy = "binpack",
    sort_order: str | None = None,
    scan: ScanPlan | None = None,
    **options: object,
) -> RewriteDataFilesPlan[T]:
    """Plan ``rewrite_data_files``. This reads the manifests, and no data or delete file.

    All parameters but ``scan``, and the errors, are those of `Maintenance.rewrite_data_files`.

    Parameters
    ----------
    scan
        The plan of a scan with the filter ``where``. Its table state must be a result of `strict`, so that a manifest
        that cannot be read raises an error instead of counting as empty. If ``scan`` is None, the scan is planned here,
        which takes most of the time.
    """
    if strategy not in ("binpack", "sort"):
        raise OptionError(f"strategy={strategy!r}: give 'binpack' or 'sort'")
    if strategy == "binpack" and sort_order is not None:
        raise OptionError("sort_order= needs strategy='sort'")
    if strategy == "sort" and sort_order is None and default_order(state.metadata) is None:
        raise OptionError("strategy='sort': the table has no sort order; give sort_order=")
    known = _OPTIONS if strategy == "binpack" else (*_OPTIONS, "compression-factor")
    given = ProcedureOptions(options, known, state.metadata.properties)
    rules = SizeRules.of(given, "write.target-file-size-bytes", _TARGET)
    delete_files = given.number("delete-file-threshold", _INT_MAX, least=0, most=_INT_MAX)
    ratio = given.ratio("delete-ratio-threshold", 0.3)
    limit = given.number_if_given("max-files-to-rewrite", _INT_MAX)
    output_spec = state.metadata.default_spec_id
    if "output-spec-id" in given.given:
        output_spec = given.number("output-spec-id", output_spec, least=0)
        if state.metadata.spec(output_spec) is None:
            raise OptionError(f"output-spec-id={output_spec}: the table has no such partition spec")
    if scan is None:
        scan = plan_scan(strict(state), where)
    reading, tasks = scan.state, scan.files
    groups = _grouped(reading, tasks, rules, delete_files, ratio, limit)
    spread = _added(reading, tasks, groups, rules, strategy, output_spec)
    starting = given.flag("use-starting-sequence-number", True)
    sequence = None
    if state.snapshot is not None and state.metadata.has_deletes:
        sequence = (state.snapshot.sequence_number or 0) if starting else state.metadata.last_sequence_number + 1
    removed, dangles = _removed(
        reading, tasks, groups, sequence, where, dangling_too=given.flag("remove-dangling-deletes")
    )
    sql = procedure_filter(scan.filter.expression) if where is not None else None
    commits, progress = _commits(given, groups, spread)
    return RewriteDataFilesPlan(
        state=state,
        wrap=wrap,
        reasons=tuple(given.thresholds),
        cost=_cost(tasks, groups, spread),
        calls=(
            spark_call(
                state,
                "rewrite_data_files",
                strategy=None if strategy == "binpack" else sql_text(strategy),
                sort_order=None if sort_order is None else sql_text(sort_order),
                where=None if sql is None else sql_text(sql),
                options=given.sql(),
            ),
        ),
        notes=(*scan.notes, *_notes(given, groups), *progress, *contradictions(reading)),
        strategy=strategy,
        groups=_group_table(state, tasks, groups, rules, spread),
        candidates=len(tasks),
        removed_delete_files=removed,
        commits=commits,
        accuracy=spread.accuracy,
        _tasks=tasks,
        _groups=groups,
        _dangling=dangles,
        _sequence=sequence if starting else None,
    )


@dataclass(frozen=True)
class _Groups:
    """The files that are rewritten, group by group.

    Attributes
    ----------
    rows, group
        For each file, its row number in the `FileTasks` of the plan, and the number of its group, from 0.
    count, size
        For each group, the number of its files, and their total bytes.
    why
        Four masks of the files. They select the files that are too small; that are too large; that have too many
        deletes (``delete-file-threshold``); and that have too high a share of deleted rows
        (``delete-ratio-threshold``).
    rules
        Four masks of the groups. They select the groups that are rewritten because they have enough files; because they
        have enough bytes; because one of their files has too many deletes; and because one of their files has too high
        a share of deleted rows.
    mixed
        For each group, whether it has files of partition specs other than the table's default.
    ordered
        True if the groups are the same in whatever order Spark reads the manifests. This is so if all files are listed
        in one manifest, or if each partition forms one group and ``max-files-to-rewrite`` leaves out no file.
    """

    rows: Longs
    group: Longs
    count: Longs
    size: Longs
    why: tuple[Mask, Mask, Mask, Mask]
    rules: tuple[Mask, Mask, Mask, Mask]
    mixed: Mask
    ordered: bool


def _grouped(
    state: TableState, tasks: FileTasks, rules: SizeRules, delete_files: int, ratio: float, limit: int
) -> _Groups:
    """Select the files to rewrite, and group them (``BinPackRewriteFilePlanner.plan``).

    Parameters
    ----------
    tasks
        The files that may be rewritten, with the deletes that apply to them.
    delete_files
        ``delete-file-threshold``: files with at least this number of deletes are selected.
    ratio
        ``delete-ratio-threshold``: files are selected if at least this fraction of their rows is known to be deleted.
    limit
        ``max-files-to-rewrite``: the maximum number of files to rewrite.
    """
    sizes = counted(tasks.files, "file_size_in_bytes")
    records = counted(tasks.files, "record_count")
    deletes = delete_counts(tasks.matched).count
    many = deletes >= delete_files
    with np.errstate(divide="ignore", invalid="ignore"):
        dead = (deletes > 0) & (known_deleted_rows(tasks) / records >= ratio)
    wanted = np.ones(len(tasks), dtype=np.bool_) if rules.rewrite_all else rules.outside(sizes) | many | dead
    place, mixed = _partitions(state, tasks.files)
    rows = np.flatnonzero(wanted)
    rows = rows[np.argsort(place[rows], kind="stable")]
    group = packed(sizes[rows], place[rows], rules.max_group_bytes, rules.max_group_files)
    ordered = int(group.max(initial=-1)) + 1 == len(np.unique(place[rows])) and len(rows) <= limit
    if not rules.rewrite_all:
        count, size = _counts(group, sizes[rows])
        keep = rules.worth(count, size) | _some(group, many[rows]) | _some(group, dead[rows])
        rows, group = rows[keep[group]], (np.cumsum(keep) - 1)[group[keep[group]]]
    rows, group = rows[:limit], group[:limit]  # max-files-to-rewrite may leave out some files of a group
    order = rules.arranged(*_counts(group, sizes[rows]))
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order))
    group = number[group]
    by_group = np.argsort(group, kind="stable")
    rows, group = rows[by_group], group[by_group]
    count, size = _counts(group, sizes[rows])
    several = count > 1
    return _Groups(
        rows, group, count, size,
        why=(sizes[rows] < rules.least, sizes[rows] > rules.most, many[rows], dead[rows]),
        rules=(
            several & (count >= rules.min_input_files),
            (several & (size > rules.target)) | (size > rules.most),
            _some(group, many[rows]),
            _some(group, dead[rows]),
        ),
        mixed=_some(group, mixed[rows]),
        ordered=ordered or pc.count_distinct(tasks.root_row, mode="all").as_py() <= 1,
    )  # fmt: skip


def _counts(group: Longs, sizes: Longs) -> tuple[Longs, Longs]:
    """Return, for each group, the number of its files and their total bytes.

    Parameters
    ----------
    group
        For each file, the number of its group, from 0.
    sizes
        For each file, its bytes.
    """
    groups = int(group.max(initial=-1)) + 1
    return np.bincount(group, minlength=groups).astype(np.int64), summed(group, sizes, groups)


def _some(group: Longs, mask: Mask) -> Mask:
    """Return a mask of the groups with at least one file that ``mask`` selects; ``group`` is each file's group."""
    out = np.zeros(int(group.max(initial=-1)) + 1, dtype=np.bool_)
    out[group[mask]] = True
    return out


def _all(group: Longs, mask: Mask) -> Mask:
    """Return a mask of the groups in which ``mask`` selects every file; ``group`` is each file's group."""
    return ~_some(group, ~mask)


def _partitions(state: TableState, files: EntryBatch) -> tuple[Longs, Mask]:
    """Return, for each file, a number that identifies its partition, and whether its spec is not the table's default.

    As in Java, one partition has both the files of other specs than the default one, and the files of the default spec
    whose partition values are all null. Its number is -1.
    """
    metadata = state.metadata
    spec = metadata.spec()
    numbers = np.asarray(pc.fill_null(whole(files.entries["partition_spec_id"]), -1))
    nulls = np.ones(len(files), dtype=np.bool_)
    for each in () if spec is None else spec.fields:
        at = -1 if files.partition is None else files.partition.type.get_field_index(str(each.field_id))
        if at >= 0 and files.partition is not None:
            nulls &= np.asarray(pc.is_null(pc.struct_field(files.partition, [at])))
    other = numbers != metadata.default_spec_id
    codes = partition_codes(files)
    codes[other | nulls] = -1
    return codes, other


@dataclass(frozen=True)
class _Spread:
    """The new files of a plan.

    Attributes
    ----------
    files
        For each group, the number of files that it becomes.
    accuracy
        The accuracy of these numbers; see `RewriteDataFilesPlan`.
    bytes
        The estimated total bytes of the new files of all groups.
    """

    files: Longs
    accuracy: Accuracy
    bytes: int


def _chosen(tasks: FileTasks, rows: Longs) -> FileTasks:
    """Return the files with the given row numbers in ``tasks``, and the deletes that apply to them.

    If ``rows`` has all row numbers in ascending order, ``tasks`` itself is returned, because a copy of a million files
    would take half a gigabyte.
    """
    every = len(rows) == len(tasks) and bool((rows == np.arange(len(rows))).all())
    return tasks if every else tasks.take(build.array(rows))


def _added(
    state: TableState, tasks: FileTasks, groups: _Groups, rules: SizeRules, strategy: Strategy, output_spec: int
) -> _Spread:
    """Estimate the number of new files of each group, and the bytes of all new files.

    For ``binpack``, each task that Spark plans for a group writes one file, unless all rows of the task are deleted.
    For ``sort``, Spark divides the sorted rows of a group into ranges of values, and writes one file for each range.
    The number of ranges is the expected number of files, or lower if the rows have too few distinct values.

    Parameters
    ----------
    rules
        The size thresholds, from which the expected number of files and the bytes of a task follow.
    output_spec
        The id of the partition spec of the new files.
    """
    if not len(groups.rows):
        return _Spread(np.zeros(0, dtype=np.int64), "exactly", 0)
    mine = _chosen(tasks, groups.rows)
    records = counted(mine.files, "record_count")
    filled = records > known_deleted_rows(mine)
    moved, unsure = _moved(mine, groups, output_spec), ~_keep_rows(mine, groups)
    expected = np.where(_some(groups.group, filled), rules.expected_files(groups.size), 0)
    if strategy == "sort":
        made = expected
        unsure |= expected > 1
    else:
        lookback = SplitOptions.of(state.metadata.properties).lookback
        task, combined = combined_by_group(mine, groups.group, rules.split_size(groups.size), lookback=lookback)
        with_rows = filled[task]
        _, one = np.unique(combined[with_rows], return_index=True)
        made = np.bincount(groups.group[task[with_rows][one]], minlength=len(groups.count)).astype(np.int64)
        made = np.where(moved, np.maximum(made, expected), made)
        unsure |= (made > 1) & ~_all(groups.group, _keeps_rows(mine))
    unsure &= made > 0
    left = np.maximum(records - deleted_rows(mine)[0], 0)
    size = (counted(mine.files, "file_size_in_bytes") * left / np.maximum(records, 1)).sum()
    more, fewer = bool((moved | groups.mixed).any()), bool(unsure.any())
    return _Spread(made, _ACCURACY[more, fewer] if groups.ordered else "about", int(size))


def _moved(tasks: FileTasks, groups: _Groups, output_spec: int) -> Mask:
    """Return a mask of the groups whose rows Spark has to distribute to the partitions of another spec.

    These are the groups whose first file does not have the spec of the new files, ``output_spec``.
    """
    first = np.searchsorted(groups.group, np.arange(len(groups.count)))
    moved: Mask = np.asarray(pc.fill_null(whole(tasks.files.entries["partition_spec_id"]), -1))[first] != output_spec
    return moved


def _keeps_rows(tasks: FileTasks) -> Mask:
    """Return a mask of the files that certainly have at least one row that is not deleted.

    No equality delete applies to such a file, and it has more rows than its deletes by position can remove.
    """
    matched = tasks.matched
    removes = counted(matched.deletes, "record_count")
    vector = np.asarray(pc.fill_null(matched.vector, -1)).astype(np.int64)
    most = Stretches.of(matched.positions).totals(removes)
    most[vector >= 0] = removes[vector[vector >= 0]]
    keeps: Mask = (counted(tasks.files, "record_count") > most) & (Stretches.of(matched.equality).size == 0)
    return keeps


def _keep_rows(tasks: FileTasks, groups: _Groups) -> Mask:
    """Return a mask of the groups that certainly have at least one row that is not deleted.

    This is certain if it is certain for one file of the group (`_keeps_rows`). It is also certain if no equality delete
    applies to a file of the group, and the group has more rows than its deletes by position can remove.
    """
    count = len(groups.count)
    matched = tasks.matched
    own = np.asarray(matched.vector.is_valid())
    pairs = [np.stack([groups.group[own], np.asarray(matched.vector.drop_null()).astype(np.int64)])]
    size = np.asarray(pc.list_value_length(matched.positions)).astype(np.int64)
    flat = np.asarray(pc.list_flatten(matched.positions)).astype(np.int64)
    pairs.append(np.stack([np.repeat(groups.group, size), flat]))
    group, delete = np.unique(np.concatenate(pairs, axis=1), axis=1)
    removed = summed(group, counted(matched.deletes, "record_count")[delete], count)
    equality = _some(groups.group, Stretches.of(matched.equality).size > 0)
    few: Mask = summed(groups.group, counted(tasks.files, "record_count"), count) > removed
    return _some(groups.group, _keeps_rows(tasks)) | (few & ~equality)


def _removed(
    state: TableState,
    tasks: FileTasks,
    groups: _Groups,
    sequence: int | None,
    where: FilterLike | None,
    *,
    dangling_too: bool,
) -> tuple[int, tuple[str, ...]]:
    """Return the number of deletes that the rewrite removes, and the locations of dangling delete files to remove.

    The number counts the deletion vectors of the rewritten files. If ``dangling_too`` is true, it also counts dangling
    deletes, that is, deletes that apply to no data file after the rewrite (`dangling`). But it does not count deletes
    that the commit drops in any case because of their age (`dropped_by_commit`).

    Parameters
    ----------
    sequence
        The data sequence number of the new files; None in version 1.
    where
        The filter that the files in ``tasks`` pass; None if ``tasks`` has all live data files. With a filter, the
        other data files are looked up in the manifests, because deletes that apply to them are not dangling.
    dangling_too
        Whether the rewrite also removes dangling deletes (``remove-dangling-deletes``). It has no effect on tables in
        which Spark does not look for them (`removes_dangling`).
    """
    vector = tasks.matched.vector.take(build.array(groups.rows))
    vectors = len(vector) - vector.null_count
    if not dangling_too or not removes_dangling(state.metadata) or not len(groups.rows):
        return vectors, ()
    every = tasks if where is None else plan_scan(state).files
    names = whole(tasks.files.entries["location"]).take(build.array(groups.rows))
    gone = bool_array(pc.is_in(whole(every.files.entries["location"]), names))
    found = live_deletes(state)
    stays = ~dropped_by_commit(state, found, every, gone, names)
    stays &= ~(found.vector & bool_array(pc.is_in(found.referenced, names)))
    # The new files of a group are in the group's partition, so the group's first old file represents them here. Groups
    # with files of other specs are left out of `first`, because it is unknown to which partitions their rows go.
    first = groups.rows[np.searchsorted(groups.group, np.flatnonzero(~groups.mixed))]
    new = tasks.files.take(build.array(first))
    data = concat_batches([every.files.filter(pa.array(~gone)), new])
    numbers = np.asarray(pc.fill_null(whole(data.entries["sequence_number"]), 0)).astype(np.int64)
    numbers[len(numbers) - len(new) :] = 0 if sequence is None else sequence
    lost = dangling(state.metadata, found, data, numbers) & stays
    locations = whole(found.batch.entries["location"]).filter(pa.array(lost & ~found.vector))
    return vectors + int(lost.sum()), tuple(dict.fromkeys(build.to_pylist(locations)))


def _cost(tasks: FileTasks, groups: _Groups, spread: _Spread) -> MaintenanceCost:
    """Return what the rewrite reads and writes; the old files are freed when the snapshots that need them expire."""
    mine = tasks.matched.take(build.array(groups.rows))
    used = [mine.vector.drop_null(), *(pc.list_flatten(lists) for lists in (mine.positions, mine.equality))]
    deletes = np.unique(np.concatenate([np.asarray(u).astype(np.int64) for u in used]))
    read = int(groups.size.sum())
    extra = int(content_sizes(mine.deletes)[deletes].sum())
    return MaintenanceCost(
        len(groups.rows) + len(deletes), read + extra, int(spread.files.sum()), spread.bytes, len(groups.rows), read
    )


def _notes(options: ProcedureOptions, groups: _Groups) -> list[str]:
    """Return notes on what may differ between runs and between versions of Iceberg."""
    notes = []
    if not groups.ordered:
        notes.append(
            "Spark reads several manifests at the same time: the grouping of a partition's files can differ from "
            "run to run."
        )
    if "max-file-group-input-files" in options.given:
        notes.append("Iceberg 1.11 and earlier refuse the option max-file-group-input-files.")
    return notes


def _commits(options: ProcedureOptions, groups: _Groups, spread: _Spread) -> tuple[pa.Table, list[str]]:
    """Return the table `RewriteDataFilesPlan.commits`, and notes about the commits.

    With partial progress, Spark commits after each batch of completed groups, at most ``max-commits`` times. Java:
    ``RewriteDataFilesSparkAction``, ``BaseCommitService``.

    Raises
    ------
    OptionError
        An option is not a number that Spark's procedure takes.
    """
    count = len(groups.count)
    partly = options.flag("partial-progress.enabled")
    most = options.number("partial-progress.max-commits", 10, most=_INT_MAX) if partly else 1
    failures = options.number_if_given("partial-progress.max-failed-commits", most, least=-_INT_MAX, most=_INT_MAX)
    parallel = options.number_if_given("max-concurrent-file-group-rewrites", 5, most=_INT_MAX)
    each = max(1, -(-count // most))
    first = np.arange(0, count, each)
    last = np.minimum(first + each, count)
    table = build.table(
        {
            "commit": np.arange(1, len(first) + 1),
            "groups": last - first,
            "first_group": first + 1,
            "last_group": last,
            "files": np.add.reduceat(groups.count, first) if count else groups.count,
            "bytes": np.add.reduceat(groups.size, first) if count else groups.size,
            "added_files": np.add.reduceat(spread.files, first) if count else spread.files,
        }
    )
    if not partly or not count:
        return table, []
    notes = []
    if len(first) > 1 and parallel > 1:
        notes.append(
            f"Spark rewrites {parallel} groups at the same time and commits groups as they finish: which groups share "
            "a commit can vary between runs. With max_concurrent_file_group_rewrites=1, the commits are as planned."
        )
    # Java computes that there will be min(groups, max-commits) commits. But it puts ceil(groups / max-commits) groups
    # into each commit, so there may be fewer: with 12 groups and at most 10 commits, 6 commits of 2 groups.
    uncounted = min(count, most) - len(first)
    if uncounted > 0:
        other = "other one" if uncounted == 1 else f"other {uncounted:,}"
        failed = f"reports the {other} as failed"
        says = f"{failed}, and fails after its last commit" if uncounted > failures else f"{failed} in its log"
        notes.append(
            f"The procedure makes only {len(first):,} of the {min(count, most):,} commits that it expects. It {says}."
        )
    return table, notes


def _commit_table(commits: pa.Table) -> CardTable:
    rows = build.to_pylist(commits.slice(0, _SHOWN_COMMITS))
    names = ("commit", "groups", "files", "size", "new files")
    return CardTable(
        "Commits",
        names,
        tuple(
            (
                str(row["commit"]),
                f"{row['first_group']:,} to {row['last_group']:,}" if row["groups"] > 1 else f"{row['first_group']:,}",
                f"{row['files']:,}",
                human_bytes(row["bytes"]),
                f"{row['added_files']:,}",
            )
            for row in rows
        ),
        note=f"the first {_SHOWN_COMMITS} of {len(commits):,}; plan.commits has all"
        if len(commits) > len(rows)
        else "",
        right=frozenset({0, 2, 3, 4}),
    )


_RULES = ("number of files", "bytes", "deletes", "delete ratio")


def _listed(masks: Sequence[Mask], names: Sequence[str]) -> Strings:
    """Return, for each file or group, the names of the masks that select it, separated by commas.

    Parameters
    ----------
    masks
        Masks of the same files or groups.
    names
        The name of each mask.
    """
    parts = [pc.if_else(pa.array(m), n, pa.scalar(None, pa.string())) for m, n in zip(masks, names, strict=True)]
    return join_texts(parts, ", ")


def _group_table(state: TableState, tasks: FileTasks, groups: _Groups, rules: SizeRules, spread: _Spread) -> pa.Table:
    count = len(groups.count)
    first = groups.rows[np.searchsorted(groups.group, np.arange(count))]
    texts = partition_texts(state, tasks.files.take(build.array(first)))
    names = pc.if_else(pa.array(groups.mixed), "other specs", texts) if count else texts
    if rules.rewrite_all:
        why: Strings = pa.array(["rewrite-all"] * count, pa.string())
    else:
        why = _listed(groups.rules, _RULES)
    records = counted(tasks.files, "record_count")[groups.rows]
    deletes = delete_counts(tasks.matched).count[groups.rows]
    dead = known_deleted_rows(tasks)[groups.rows]
    return build.table(
        {
            "group": np.arange(1, count + 1),
            "partition": names,
            "files": groups.count,
            "bytes": groups.size,
            "rows": summed(groups.group, records, count),
            "deletes": summed(groups.group, deletes, count),
            "deleted_rows": summed(groups.group, dead, count),
            "why": why,
            "split_size": rules.split_size(groups.size),
            "expected_files": rules.expected_files(groups.size),
            "added_files": spread.files,
        }
    )
