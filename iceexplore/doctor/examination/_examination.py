"""One examination of a table: the examined snapshots, the entries of their manifests, and the findings so far."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.doctor.model._finding import MOST_PLACES, Finding, Since, finding_of
from iceexplore.errors import IceexploreError, Problem, Problems
from iceexplore.graph import Removals, TableState, live_manifests
from iceexplore.manifests import ContentType, Manifest, ManifestReader, live, whole
from iceexplore.metadata import Snapshot, in_order
from iceexplore.storage import canonical

__all__ = [
    "ColumnBounds",
    "Examination",
    "LeafPlace",
    "Level",
    "LiveFiles",
    "engine_of",
    "since_snapshot",
]

Level = Literal["metadata", "files", "rows"]

#: With more manifest entries than this, the decoded manifests do not fit into the cache.
_MANY_ENTRIES = 500_000

#: The columns of `iceexplore.manifests.ENTRY_SCHEMA` that `Examination.files` keeps of every entry, because checks need
#: them to compare entries of different manifests.
_KEPT = (
    "ordinal",
    "status",
    "content_type",
    "location",
    "file_format",
    "deletion_vector",
    "record_count",
    "file_size_in_bytes",
    "snapshot_id",
    "sequence_number",
    "partition_spec_id",
    "referenced_file",
    "first_row_id",
    "column_files",
)


@dataclass(frozen=True)
class LeafPlace:
    """One leaf manifest, and the roots that list it.

    Attributes
    ----------
    root, row
        The oldest examined root that lists the manifest, and the index of the row that lists it in ``root.entries``.
    snapshots
        The ids of the examined snapshots whose roots list the manifest.
    """

    root: Manifest
    row: int
    snapshots: tuple[int, ...]


@dataclass(frozen=True)
class LiveFiles:
    """The entries, live or not, of all examined leaf manifests, and the files that V4 roots list directly.

    Attributes
    ----------
    entries
        A table of some columns of `iceexplore.manifests.ENTRY_SCHEMA`, plus ``leaf`` (int32: index in ``leaves``) and
        ``live`` (bool).
    leaves
        The manifests' locations, and the snapshots that list each of them.
    lost
        The indices, in `leaves`, of the manifests that could not be read, or could be read only in part.
    """

    entries: pa.Table
    leaves: tuple[tuple[str, tuple[int, ...]], ...]
    lost: frozenset[int] = frozenset()

    @cached_property
    def leaf(self) -> npt.NDArray[np.int32]:
        """The column ``leaf``; its values ascend."""
        return np.asarray(self.entries["leaf"])

    @cached_property
    def starts(self) -> npt.NDArray[np.int64]:
        """For each manifest in `leaves`, the index of its first row in `entries`; last, the number of all rows."""
        return np.searchsorted(self.leaf, np.arange(len(self.leaves) + 1))

    @cached_property
    def ordinals(self) -> npt.NDArray[np.int64]:
        """The column ``ordinal``: the position of each entry in its manifest, from 0."""
        return np.asarray(self.entries["ordinal"])

    @cached_property
    def kinds(self) -> npt.NDArray[np.int32]:
        """The content type of each entry; ``DATA`` for an entry without one, as in version 1."""
        return np.asarray(pc.fill_null(self.entries["content_type"], int(ContentType.DATA)))

    @property
    def locations(self) -> AnyArray:
        """The column ``location``."""
        return whole(self.entries["location"])

    @cached_property
    def same(self) -> npt.NDArray[np.int64]:
        """For each row, a number that is equal for equal locations; -1 where the row has no location.

        Locations are numbered in the order in which they first occur. Several checks look for repeated locations, and
        compare these numbers instead of long strings.
        """
        return np.asarray(pc.fill_null(self.locations.dictionary_encode().indices, -1)).astype(np.int64)

    @cached_property
    def alive(self) -> npt.NDArray[np.bool_]:
        """A mask of the entries that are live: the column ``live``, with False instead of null."""
        return np.asarray(pc.fill_null(self.entries["live"], False))

    def place(self, row: int) -> str:
        """Return the place of one row as text: its manifest's location, ``#entry`` and its position in the manifest."""
        leaf = self.leaves[self.entries["leaf"][row].as_py()][0]
        return f"{leaf}#entry {self.entries['ordinal'][row].as_py()}"

    def snapshots(self, rows: Iterable[int]) -> tuple[int, ...]:
        """Return the ids of the snapshots that list at least one manifest to which one of these rows belongs.

        The ids are in no particular order.

        Parameters
        ----------
        rows
            Indices of rows in `entries`.
        """
        leaves = build.to_pylist(pc.unique(self.entries["leaf"].take(pa.array(list(rows), pa.int64()))))
        return tuple({s for leaf in leaves for s in self.leaves[leaf][1]})


@dataclass
class ColumnBounds:
    """The numbers of live data files of the state's snapshot that have bounds of each column. Empty files are left out.

    Attributes
    ----------
    files
        The number of data files with rows.
    bare
        The number of these files that have no metrics of any column.
    bounded
        By field id, the number of data files that have a lower and an upper bound.
    valued
        By field id, the number of data files with values that are neither null nor NaN.
    """

    files: int = 0
    bare: int = 0
    bounded: Counter[int] = field(default_factory=Counter)
    valued: Counter[int] = field(default_factory=Counter)


@dataclass
class Examination:
    """One run of the doctor: the table that is examined, and the findings so far.

    Parameters
    ----------
    state
        The table's state. Its list of problems is used by this examination only; the checks turn these problems into
        findings.
    snapshots
        The snapshots to examine, oldest first.
    level
        How much the checks read: ``metadata`` (no data and delete files), ``files`` (these files are opened, too) or
        ``rows`` (all their rows are read, too).
    """

    state: TableState
    snapshots: tuple[Snapshot, ...]
    level: Level
    findings: list[Finding] = field(default_factory=list)
    #: The checks that could not be done: the name of each, and the reason.
    unknown: dict[str, str] = field(default_factory=dict)
    #: For each column, the number of live data files that have bounds of it. `check_leaves` counts these files, because
    #: it decodes the column statistics of all leaf manifests.
    metrics: ColumnBounds = field(default_factory=ColumnBounds)
    #: A function that waits for the plan of ``rewrite_data_files``, which a thread makes while other checks run, and
    #: returns the plan; None if it was not begun.
    rewrite_plan: Callable[[], Any] | None = None
    #: The time from which ages are computed, in milliseconds since the epoch.
    now_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000)

    @classmethod
    def of(cls, state: TableState, snapshots: Sequence[Snapshot], level: Level) -> Examination:
        """Begin an examination of some of the table's snapshots.

        Its list of problems is a new one, so that ``state.problems`` does not change during the examination. The new
        list begins with a copy of the problems that were found while the table was read before.

        Parameters
        ----------
        snapshots
            The snapshots to examine, in any order.
        """
        problems = Problems(state.problems.met())
        reader = ManifestReader(state.storage, state.metadata, problems)
        return cls(replace(state, problems=problems, reader=reader), tuple(in_order(snapshots)), level)

    def with_problems(self, problems: Problems) -> Examination:
        """Return a copy of this examination that adds the problems found while reading manifests to ``problems``.

        The original examination adds such problems to its own ``state.problems``.

        The copy does not read manifest lists (v1 to v3) again, as there may be many: it has those of this examination.
        It does read V4 root manifests again. These may list data and delete files directly, and problems found in the
        column statistics of such files, when the copy decodes them, must also be added to ``problems``.
        """
        state = self.state
        reader = ManifestReader(state.storage, state.metadata, problems)
        other = replace(self, state=replace(state, reader=reader, problems=problems))
        other.roots = {
            s.snapshot_id: reader.root(s) if self.roots[s.snapshot_id].dialect.has_root_manifest
            else self.roots[s.snapshot_id]
            for s in self.snapshots
        }  # fmt: skip
        return other

    # Results of the checks --------------------------------------------------------------------------------------------

    def report(self, item: Problem | Finding, **how: Any) -> None:
        """Add a finding, or convert a problem to a finding and add it.

        If the finding has affected snapshots but no refs, the branches and tags that point to these snapshots are set
        as its refs.

        Parameters
        ----------
        how
            For a problem: arguments of `finding_of`, for example ``modes`` and ``snapshots``. Ignored for a finding.
        """
        made = item if isinstance(item, Finding) else finding_of(item, **how)
        if made.snapshots and not made.refs:
            made = replace(made, refs=self.refs_of(made.snapshots))
        self.findings.append(made)

    def cannot_know(self, check: str, why: str) -> None:
        """Record that a check could not be done."""
        self.unknown.setdefault(check, why)

    # Parts of the table -----------------------------------------------------------------------------------------------

    def refs_of(self, snapshots: Iterable[int]) -> tuple[str, ...]:
        """Return the branches and tags that point to one of these snapshots."""
        wanted = set(snapshots)
        return tuple(name for name, ref in self.state.metadata.refs.items() if ref.snapshot_id in wanted)

    @cached_property
    def roots(self) -> dict[int, Manifest]:
        """The manifest list or root manifest of each snapshot, by snapshot id; damaged ones have no entries."""
        return {s.snapshot_id: self.state.reader.root(s) for s in self.snapshots}

    @cached_property
    def entry_count(self) -> int:
        """The number of live entries in all examined leaf manifests, according to the counts in the roots.

        A manifest that several roots list is counted once. A manifest for which the root states no counts adds 0.

        The number is 0 if reading a root raises an error. That happens only if the table was opened with ``strict``,
        which raises problems as errors. The checks read the roots too, and handle this error.
        """
        try:
            rows = [(root.entries["location"], whole(root.entries["manifest_stats"])) for root in self.roots.values()]
        except IceexploreError:
            return 0
        if not rows:
            return 0
        names = pa.concat_arrays([whole(location) for location, _ in rows])
        parts = [pc.struct_field(stats, f"{kind}_files_count") for _, stats in rows for kind in ("added", "existing")]
        counts = pa.concat_arrays(parts[0::2]), pa.concat_arrays(parts[1::2])
        first = np.unique(np.asarray(names.dictionary_encode().indices.fill_null(-1)), return_index=True)[1]
        return sum(int(np.asarray(pc.fill_null(some, 0), np.int64)[first].clip(0, 1 << 40).sum()) for some in counts)

    @property
    def is_large(self) -> bool:
        """True if the decoded manifests do not fit into the cache."""
        return self.entry_count > _MANY_ENTRIES

    def release_memory(self) -> None:
        """Give memory that Arrow no longer uses back to the system, if the table is large.

        After a check of a large table, most of the memory is no longer used. For a small table, Arrow keeps it for the
        next check, which is faster than requesting and clearing memory again.
        """
        if self.is_large:
            pa.default_memory_pool().release_unused()

    @cached_property
    def leaf_places(self) -> tuple[LeafPlace, ...]:
        """The leaf manifests for which at least one examined root has a live entry, with the snapshots of these roots.

        A leaf manifest that several roots list occurs once, except if manifest DVs (V4) of these roots remove different
        entries from it. It then occurs once for each different set of removed entries.
        """
        first: dict[tuple[str, frozenset[str]], tuple[Manifest, int]] = {}
        listing: dict[tuple[str, frozenset[str]], list[int]] = {}
        spelled = cache(canonical)  # many roots list the same manifests: convert each location only once
        for snapshot_id, root in self.roots.items():
            rows = live_manifests(root)
            removals = Removals(root)
            names = root.entries["location"].take(pa.array(rows, pa.int64())).to_pylist()
            for row, name in zip(rows, names, strict=True):
                if not name:
                    continue
                key = spelled(name), removals.of(name).identity
                first.setdefault(key, (root, row))
                listing.setdefault(key, []).append(snapshot_id)
        return tuple(LeafPlace(*first[key], tuple(dict.fromkeys(listing[key]))) for key in first)

    def leaves(self, parts: frozenset[str] = frozenset({"entries"})) -> Iterator[tuple[Manifest, tuple[int, ...]]]:
        """Yield every examined leaf manifest with the ids of the snapshots that list it.

        A V4 root may list data and delete files directly. For each such root, a `Manifest` with only the root's entries
        of these files is yielded, before all leaf manifests.

        Parameters
        ----------
        parts
            The parts of each leaf manifest to decode now: any of ``entries``, ``partition`` (partition tuples) and
            ``stats`` (column statistics). Other parts are decoded when they are first used.
        """
        for snapshot_id, root in self.roots.items():
            own = self.state.reader.direct(root)
            if own is not None:
                yield own, (snapshot_id,)
        places = self.leaf_places
        found = self.state.reader.leaves_of(((p.root, p.row) for p in places), parts)
        for place, leaf in zip(places, found, strict=True):
            yield leaf, place.snapshots

    @cached_property
    def files(self) -> LiveFiles:
        """The entries of all examined leaf manifests, in one table; the manifests are read when it is first needed."""
        tables: list[pa.Table] = []
        leaves: list[tuple[str, tuple[int, ...]]] = []
        lost: set[int] = set()
        for leaf, snapshots in self.leaves():
            if not leaf.dialect or any(item.code == "manifest-salvaged" for item in leaf.problems):
                lost.add(len(leaves))
            table = leaf.entries.select(list(_KEPT))
            mask = live(leaf.entries)
            table = table.append_column("leaf", pa.repeat(pa.scalar(len(leaves), pa.int32()), len(table)))
            tables.append(table.append_column("live", mask))
            leaves.append((leaf.location, snapshots))
        if not tables:
            return LiveFiles(_no_entries(), ())
        columns = {}
        for name in tables[0].column_names:  # joined one by one, so that at most one column is in memory twice
            column = pa.concat_tables([table.select([name]) for table in tables], promote_options="permissive")
            columns[name] = column.column(0).combine_chunks()
            tables = [table.drop_columns([name]) for table in tables]
        return LiveFiles(pa.table(columns), tuple(leaves), frozenset(lost))

    def live_data(self) -> npt.NDArray[np.int64]:
        """Return the rows of `files` that are live data files."""
        entries = self.files.entries
        kinds = pc.equal(pc.fill_null(entries["content_type"], int(ContentType.DATA)), int(ContentType.DATA))
        return np.flatnonzero(np.asarray(pc.fill_null(pc.and_(entries["live"], kinds), False)))

    def rows_of(self, snapshot: Snapshot) -> npt.NDArray[np.int64]:
        """Return the rows of `files` that are live in a snapshot."""
        mine = np.zeros(len(self.files.leaves), bool)
        mine[self.leaves_listed(snapshot.snapshot_id)] = True
        if not len(mine):
            return np.zeros(0, np.int64)
        return np.flatnonzero(self.files.alive & mine[self.files.leaf])

    def leaves_listed(self, snapshot_id: int) -> list[int]:
        """Return the indices in ``files.leaves`` of the manifests that a snapshot lists."""
        return self._leaves_of.get(snapshot_id, [])

    @cached_property
    def _leaves_of(self) -> dict[int, list[int]]:
        """By snapshot id, the indices in ``files.leaves`` of the manifests that the snapshot lists."""
        out: dict[int, list[int]] = {}
        for number, (_, snapshots) in enumerate(self.files.leaves):
            for snapshot_id in snapshots:
                out.setdefault(snapshot_id, []).append(number)
        return out

    def partition_keys(self, rows: npt.NDArray[np.int64]) -> dict[int, str]:
        """Return a text with the spec id and the partition tuple of each given entry, by the entry's row number.

        Two entries have equal texts if they are in the same partition of the same spec. `files` does not keep partition
        tuples, so the manifests of these entries are read again.

        Parameters
        ----------
        rows
            The row numbers of the entries in ``files.entries``.
        """
        leaf = self.files.leaf
        specs = self.files.entries["partition_spec_id"]
        out: dict[int, str] = {}
        for number, manifest in self.leaves_again(leaf[rows].tolist(), frozenset({"entries", "partition"})):
            mine = rows[leaf[rows] == number]
            tuples = manifest.partition()
            some = None if tuples is None else tuples.take(pa.array(mine - self.files.starts[number]))
            values = [None] * len(mine) if some is None else build.to_pylist(some)
            out |= {row: f"{specs[row].as_py()} {value}" for row, value in zip(mine.tolist(), values, strict=True)}
        return out

    def leaves_again(self, numbers: Iterable[int], parts: frozenset[str]) -> Iterator[tuple[int, Manifest]]:
        """Read some of the manifests in `files` again; yield the index of each in ``files.leaves``, and the manifest.

        The indices ascend, in whatever order ``numbers`` are.

        Parameters
        ----------
        numbers
            The indices, in ``files.leaves``, of the manifests to read.
        parts
            Any of ``entries``, ``partition`` and ``stats``: the parts of each manifest to decode.
        """
        wanted = set(numbers)
        own = 0
        for root in self.roots.values():
            direct = self.state.reader.direct(root)
            if direct is not None:
                if own in wanted:
                    yield own, direct
                own += 1
        chosen = [number for number in range(len(self.leaf_places)) if own + number in wanted]
        places = ((self.leaf_places[number].root, self.leaf_places[number].row) for number in chosen)
        for number, leaf in zip(chosen, self.state.reader.leaves_of(places, parts), strict=True):
            yield own + number, leaf

    def places(self, rows: npt.NDArray[np.int64]) -> tuple[str, ...]:
        """Return the places of some entries as texts (see `LiveFiles.place`), at most the first `MOST_PLACES`.

        Parameters
        ----------
        rows
            The indices of these entries in ``files.entries``.
        """
        return tuple(self.files.place(int(row)) for row in rows[:MOST_PLACES])


def since_snapshot(snapshot: Snapshot) -> Since:
    """Return a `Since` for a fault that was introduced by the commit that made this snapshot."""
    return Since(snapshot.snapshot_id, snapshot.timestamp_ms, snapshot.operation, engine_of(snapshot))


def engine_of(snapshot: Snapshot) -> str | None:
    """Return the engine that wrote a snapshot, as the summary names it: ``spark 4.1.4``; None if it is not named."""
    summary = snapshot.summary or {}
    name = summary.get("engine-name") or ("spark" if "spark.app.id" in summary else None)
    version = summary.get("engine-version")
    return None if name is None else f"{name} {version}" if version else name


def attempt(examination: Examination, check: str, run: Callable[[Examination], object]) -> None:
    """Run a check; if it raises an `IceexploreError`, record that the check could not be done, and why."""
    try:
        run(examination)
    except IceexploreError as error:
        examination.cannot_know(check, str(error))
    examination.release_memory()


def _no_entries() -> pa.Table:
    from iceexplore.manifests import ENTRY_SCHEMA

    table = ENTRY_SCHEMA.empty_table().select(list(_KEPT))
    return table.append_column("leaf", pa.array([], pa.int32())).append_column("live", pa.array([], pa.bool_()))
