"""Match deletes with the data files to which they apply (spec, "Scan Planning")."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import problem, renamed_arguments
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch, Manifest, bool_array, whole
from iceexplore.planning.delete_index._codes import Ints, Mask, paired_partition_codes
from iceexplore.planning.delete_index._delete_files import DeleteFiles, live_deletes, path_bounds
from iceexplore.planning.delete_index._equality_bounds import Intervals, cut_off, equality_intervals, reaching, trusted
from iceexplore.planning.delete_index._lists import lists_of, no_lists
from iceexplore.planning.delete_index._paths import named_files, path_intervals
from iceexplore.planning.delete_index._scope_join import Found, Scope, joined
from iceexplore.planning.evaluators._filter import Filter
from iceexplore.planning.model._tasks import MatchedDeletes
from iceexplore.storage import path_only

__all__ = ["DeleteIndex", "equality_columns", "match_deletes"]

Pairs = tuple[Ints, Ints]


@renamed_arguments(filter="where")
def match_deletes(
    state: TableState,
    files: EntryBatch,
    *,
    where: Filter | None = None,
    manifests: Iterable[int] | None = None,
    replaced: bool = False,
    loaded: Mapping[int, Manifest] = MappingProxyType({}),
) -> MatchedDeletes:
    """Return the deletes of a state's snapshot that apply to the given data files (spec, "Scan Planning").

    A deletion vector or position delete applies if its data sequence number is not below that of the data file, an
    equality delete if it is above. All apply only within the same spec and partition, except for equality deletes of
    an unpartitioned spec, which are global. A deletion vector replaces all position delete files of its data file. A
    position delete that references one data file applies to no other, and no position delete applies to a data file
    whose location is outside the delete's bounds of ``file_path``. An equality delete does not apply to a data file if
    the bounds and the counts of nulls and NaN prove that no row of the data file equals a row of the delete in the
    equality columns. Bounds are ignored if they are missing, damaged, NaN or possibly truncated: some writers truncate
    an upper bound without incrementing it, so that it is below the highest value. An equality delete file may also have
    other columns than the equality columns; their metrics are ignored.

    If one of these faults is found, a problem that describes it is added to ``state.problems``:

    - Several deletion vectors reference one data file: the newest is used.
    - A deletion vector references no data file: it does not apply.
    - A delete references a data file in another partition, or one with a higher data sequence number: the delete does
      not apply.
    - The location by which a delete references its data file differs from the one in the data file's entry, even after
      both are converted to canonical form (in which ``s3a://b/x`` becomes ``s3://b/x``, for example): the delete
      applies. Two such locations are regarded as the same file if, in a moved table, they resolve to the same real
      file, or if they differ only in scheme or authority and no other live data file can be meant (see `named_files`).

    Parameters
    ----------
    files
        Data files with their partition tuples and, if available, the metrics of the columns that `equality_columns`
        returns.
    where
        The filter of the scan; None if there is no filter. An equality delete is left out if its partition tuple and
        the metrics of its equality columns prove that none of its rows matches the filter. The data rows that it
        removes have the same values, so they do not match the filter either, and the scan does not need the delete. For
        example, a delete on ``id`` whose bounds are 1 and 5 is left out if the filter is ``id > 9``.
    manifests
        Row numbers, in the manifest list (V4: in the root manifest), of the manifests to read; by default all that may
        hold deletes. In V4, these include data manifests, because V4 stores deletion vectors on the entries of data
        files.
    replaced
        Also return the position delete files that a deletion vector replaces, for example in order to remove them.
    loaded
        Manifests that have already been read, by their row numbers in the manifest list or root manifest.

    Returns
    -------
    MatchedDeletes
        One row per data file.
    """
    if not len(files):
        return MatchedDeletes()
    found = live_deletes(state, manifests=manifests, files=files, loaded=loaded)
    return DeleteIndex(state, files, found, where).result(replaced=replaced)


def equality_columns(state: TableState, manifests: Iterable[int] | None = None) -> list[int]:
    """Return the field ids of all columns that live equality deletes compare; `match_deletes` uses their metrics.

    Parameters
    ----------
    manifests
        Row numbers, in the manifest list (V4: in the root manifest), of the manifests to read; by default all that may
        hold deletes.
    """
    found = live_deletes(state, manifests=manifests)
    ids = pc.unique(pc.list_flatten(found.batch.entries["equality_ids"].filter(pa.array(found.equality))))
    return sorted(build.to_pylist(ids.drop_null()))


@dataclass(frozen=True, eq=False)
class DeleteIndex:
    """An index that finds the deletes that apply to each of the given data files, like Java's ``DeleteFileIndex``.

    A data file is identified by its row number in `files`, and a delete by its row number in `found`.

    Attributes
    ----------
    state
        The table state of the snapshot that the data files and deletes belong to. If `result` finds faults in how
        deletes reference data files, it adds them to ``state.problems``.
    files
        The data files.
    found
        The live delete files and deletion vectors of the snapshot.
    filter
        The filter of the scan; None if there is no filter.
    """

    state: TableState
    files: EntryBatch
    found: DeleteFiles
    filter: Filter | None = None

    @cached_property
    def file_sequence(self) -> Ints:
        """Return the data sequence number of each data file (not of the delete files); null counts as 0."""
        return np.asarray(pc.fill_null(whole(self.files.entries["sequence_number"]), 0))

    @cached_property
    def groups(self) -> tuple[Ints, Ints]:
        """Return a number for the partition of each data file, and one for that of each delete, as two arrays.

        A data file and a delete have the same number if their spec ids and partition tuples are equal.
        """
        return paired_partition_codes(self.state.metadata, self.files, self.found.batch)

    @cached_property
    def is_global(self) -> Mask:
        """Return one boolean per delete in `found`: True for global deletes, which apply in every partition.

        These are the equality deletes of an unpartitioned spec.
        """
        specs = np.asarray(pc.fill_null(whole(self.found.batch.entries["partition_spec_id"]), -1))
        wide = [s.spec_id for s in self.state.metadata.partition_specs if s.is_unpartitioned]
        return self.found.equality & np.isin(specs, wide)

    @cached_property
    def ruled_out(self) -> Mask:
        """Return which equality deletes certainly have no row that matches the filter.

        Their partition tuples and the metrics of their equality columns prove this.
        """
        out = np.zeros(len(self.found), dtype=bool)
        rows = np.flatnonzero(self.found.equality)
        if self.filter is None or not len(rows):
            return out
        batch = self.found.batch.take(pa.array(rows))
        stats: dict[int, pa.StructArray] = {}
        for column, values in batch.stats.items():
            known = reaching(trusted(self.state.metadata, column, values))
            matching = pc.if_else(pa.array(_matches_by(batch, column)), known, pa.scalar(None, known.type))
            stats[column] = cast(pa.StructArray, matching)
        may, _ = self.filter.evaluate(EntryBatch(batch.entries, stats, batch.partition), self.state.metadata)
        out[rows] = ~np.asarray(may)
        return out

    @cached_property
    def named(self) -> tuple[Ints, Ints, Mask]:
        """Return all pairs of a data file and a delete that references this file and no other, as three arrays.

        Such a delete is a deletion vector, or a position delete file for a single data file. The arrays have one item
        per pair: the row number of the data file, the row number of the delete, and a boolean. The boolean is True if
        the two form a pair although the location that the delete references differs, even in canonical form, from that
        of the data file. An example is ``s3://a/x`` for ``s3://b/x``; `named_files` describes when such locations form
        a pair. Partitions and sequence numbers are not compared.
        """
        return named_files(self.state, whole(self.files.entries["location"]), self.found.referenced)

    @cached_property
    def in_scope(self) -> Mask:
        """Return a mask of the pairs in `named`: True if partition and sequence number allow the delete to apply.

        Each pair is a data file and a delete that references it. The delete may apply if both have the same partition,
        and if the data file's sequence number is not above the delete's.
        """
        files, deletes, _ = self.named
        near = self.groups[0][files] == self.groups[1][deletes]
        out: Mask = near & (self.file_sequence[files] <= self.found.sequence[deletes])
        return out

    @cached_property
    def vector(self) -> Ints:
        """Return, for each data file, the row number in `found` (all deletes) of its deletion vector, or -1.

        The number is -1 if the data file has none. If a damaged table has several for one data file, the newest counts.
        """
        files, deletes, _ = self.named
        mine = self.in_scope & self.found.vector[deletes]
        files, deletes = files[mine], deletes[mine]
        order = np.lexsort((deletes, self.found.sequence[deletes]))
        out = np.full(len(self.files), -1, dtype=np.int64)
        # If a file has several deletion vectors, the newest is assigned last and replaces the others.
        out[files[order]] = deletes[order]
        return out

    def position_pairs(self) -> list[Found]:
        """Return all pairs of a data file and a position delete file (not a deletion vector) that applies to it.

        The first item of the list has the pairs in which the delete file references a single data file. The second item
        has the pairs of all other position delete files (see the mask `of_partition`), which may apply to any data file
        of their partition. If there are none, the list has only one item. Pairs in which the data file has a deletion
        vector are included, although the vector replaces the position delete file.
        """
        files, deletes, _ = self.named
        mine = self.in_scope & self.found.position[deletes]
        rows = np.flatnonzero(self.of_partition)
        if not len(rows):
            return [(files[mine], deletes[mine])]
        return [(files[mine], deletes[mine]), joined(self.position_scope, self.path_intervals(rows))]

    @cached_property
    def of_partition(self) -> Mask:
        """Return a mask of `found`: True for position delete files that may apply to several data files.

        Such a delete file has no ``referenced_file`` (spec: ``referenced_data_file``), and the bounds of its column
        ``file_path`` are missing or differ. If the bounds are equal, they usually are the location of the only data
        file that it applies to. But if none of `files` has this location, the bounds may be truncated to the common
        beginning of several locations, so the mask is True then, too.
        """
        lost = self.found.by_bounds.copy()
        lost[self.named[1]] = False
        out: Mask = self.found.position & (lost | bool_array(self.found.referenced.is_null()))
        return out

    @property
    def position_scope(self) -> Scope:
        """Return the position delete files that may apply to several data files, and the data files to pair them with.

        These are the deletes for which the mask `of_partition` is True. The function `joined` makes the pairs from the
        returned `Scope`: it pairs each of these deletes with the data files of its partition whose data sequence number
        is not above that of the delete.
        """
        rows = np.flatnonzero(self.of_partition)
        return Scope(self.groups[0], self.file_sequence, self.groups[1], self.found.sequence, rows)

    def path_intervals(self, rows: Ints) -> list[Intervals]:
        """Return intervals that show which deletes may have the location of a data file in ``file_path``.

        The interval of a delete goes from its lower to its upper bound of ``file_path``. The interval of a data file
        contains only the file's location. If the two intervals do not overlap, the delete does not apply to the file.
        If a bound or location cannot be compared safely, for example because it is not normalized, the interval is the
        widest one, which overlaps all others. (This method calls the function of the same name in the module
        ``_paths``, which decides which bounds and locations can be compared.)

        Parameters
        ----------
        rows
            Row numbers, in `found`, of the deletes whose bounds are used. All other deletes get an interval that
            overlaps the interval of every data file, as if their bounds were missing.

        Returns
        -------
        list
            A list of one `Intervals` object, because `joined` expects a list; an empty list if no delete in ``rows``
            has both bounds.
        """
        low, high = path_bounds(self.found.batch)
        mine = np.zeros(len(self.found), dtype=bool)
        mine[rows] = True
        low, high = (pc.if_else(pa.array(mine), b, pa.scalar(None, pa.string())) for b in (low, high))
        if not (bool_array(low.is_valid()) & bool_array(high.is_valid())).any():
            return []
        locations = whole(self.files.entries["location"])
        return [path_intervals(locations, low, high, self._cut, self.state.storage.prefixes)]

    def _cut(self, values: AnyArray) -> Mask:
        """Return one boolean for each of the given bounds of ``file_path``: True if the bound may be truncated.

        This is assumed if its length is one to which writers truncate bounds: see `cut_off`.
        """
        return cut_off(self.state.metadata, None, values)

    @cached_property
    def equality_bounds(self) -> dict[int, Intervals]:
        """Return the bounds of each equality column, in data files and equality deletes, as `Intervals` by field id.

        Equality deletes that the filter excludes (`ruled_out`) are ignored. A column is left out if none of the
        remaining deletes compares it, or if the data files or the deletes have no metrics of it.
        """
        out = {}
        wanted = self.found.equality & ~self.ruled_out
        for column in self.found.batch.stats:
            used = wanted & _matches_by(self.found.batch, column)
            made = equality_intervals(self.state.metadata, self.files, self.found.batch, column, used)
            if made is not None:
                out[column] = made
        return out

    def equality_pairs(self) -> list[Found]:
        """Find the data files to which each equality delete applies.

        Return up to two sets of pairs of a data file and a delete: one set for the deletes that apply only within their
        partition, and one for the global deletes, whose spec is unpartitioned. A pair is left out if the metrics of an
        equality column prove that no row of the data file equals a row of the delete. In a set with too many pairs for
        this comparison, no pair is left out: see `joined`.
        """
        return [joined(scope, list(self.equality_bounds.values())) for scope in self.equality_scopes()]

    def equality_scopes(self) -> list[Scope]:
        """Return the inputs for pairing equality deletes with data files: up to two `Scope` objects.

        The first is for the deletes that apply only within their partition. The second is for the global deletes
        (those of an unpartitioned spec), which apply in all partitions. If there are no deletes of one kind, its
        object is left out. Deletes that the filter excludes (`ruled_out`) are in neither object.
        """
        wanted = self.found.equality & ~self.ruled_out
        # A position delete applies to data files with its own sequence number or a lower one, an equality delete only
        # to files with a lower one. `Scope` uses the rule for position deletes, so subtract 1 from the sequence numbers
        # of equality deletes.
        below = self.found.sequence - 1
        near, wide = np.flatnonzero(wanted & ~self.is_global), np.flatnonzero(wanted & self.is_global)
        # `Scope` pairs a delete only with data files that have the same group number. Usually, each partition has a
        # number of its own (`self.groups`). But the equality deletes of an unpartitioned spec (`wide`) apply in every
        # partition. So to pair these, give all data files and all deletes the same number, 0 (`one`).
        one = np.zeros(len(self.files), dtype=np.int64), np.zeros(len(self.found), dtype=np.int64)
        groups = ((near, self.groups), (wide, one))
        return [Scope(mine, self.file_sequence, theirs, below, rows) for rows, (mine, theirs) in groups if len(rows)]

    def result(self, *, replaced: bool = False) -> MatchedDeletes:
        """Return the deletes that apply to each data file, and record faults as problems of the table state.

        The docstring of `match_deletes` lists the possible faults. Their problems are added to ``state.problems``.

        Parameters
        ----------
        replaced
            If True, the position delete files of a data file are included even if it has a deletion vector, which
            replaces them.
        """
        count = len(self.files)
        if not len(self.found):
            return MatchedDeletes(EntryBatch.empty(), pa.nulls(count, pa.int32()), no_lists(count), no_lists(count))
        self._note()
        vector = self.vector
        positions = lists_of(count, self.position_pairs(), (vector >= 0) & (not replaced))
        equality = lists_of(count, self.equality_pairs(), np.zeros(count, dtype=bool))
        used = np.zeros(len(self.found), dtype=bool)
        used[vector[vector >= 0]] = True
        for each in (positions, equality):
            used[each.values[each.used()]] = True
        renamed = np.cumsum(used) - 1
        batch = EntryBatch(self.found.batch.entries, {}, self.found.batch.partition)
        return MatchedDeletes(
            batch if used.all() else batch.filter(pa.array(used)),
            pa.array(renamed[vector].astype(np.int32), mask=vector < 0),
            positions.array(renamed),
            equality.array(renamed),
            self.found.referenced.filter(pa.array(used)),
        )

    def _note(self) -> None:
        """Add a problem to `state` for each fault in how deletes reference data files.

        For each kind of fault, at most `_MOST_NOTES` problems are added. `match_deletes` lists the kinds.
        """
        nameless = self.found.vector & bool_array(self.found.referenced.is_null())
        for at in np.flatnonzero(nameless)[:_MOST_NOTES].tolist():
            where = self.found.batch.entries["location"][at].as_py()
            text = "A deletion vector references no data file, so it is not applied."
            self.state.problems.add(problem("delete-scope", where, text, field="143 referenced_data_file"))
        files, deletes, otherwise = self.named
        applies = self.in_scope
        taken = self.vector[files]
        double = applies & self.found.vector[deletes] & (taken != deletes)
        for kind, mask in (("otherwise", otherwise & applies), ("apart", ~applies), ("double", double)):
            for at in np.flatnonzero(mask)[:_MOST_NOTES].tolist():
                self._say(kind, int(files[at]), int(deletes[at]), int(mask.sum()))

    def _say(self, kind: str, file: int, delete: int, count: int) -> None:
        """Add a problem about one data file and one delete that references it.

        Parameters
        ----------
        kind
            The kind of fault:

            - ``"otherwise"``: the delete references the data file by another location, such as one with another scheme
              or authority. The two locations differ even after both are converted to canonical form.
            - ``"double"``: the data file has several deletion vectors, and ``delete`` is not the newest one.
            - ``"apart"``: the two have different partitions, or the data file has a higher sequence number than the
              delete.
        file, delete
            The row number of the data file in `files`, and the row number of the delete in `found`.
        count
            The number of pairs of a data file and a delete with this kind of fault. If it is above `_MOST_NOTES`, only
            some of the pairs get a problem, and the text of the problem mentions this number.
        """
        name = self.files.entries["location"][file].as_py()
        where = self.found.batch.entries["location"][delete].as_py()
        referenced = self.found.referenced[delete].as_py()
        more = f" (one of {count} such cases, of which only some are reported)" if count > _MOST_NOTES else ""
        if kind == "otherwise":
            how = (
                "by a location whose scheme or authority differs from that in the file's manifest entry; the delete is "
                "applied because the paths are equal"
            )
            if path_only(referenced) != path_only(name):
                how = (
                    "by a location that differs from the one in the file's manifest entry; the delete is applied "
                    "because both locations resolve to the same file"
                )
            text = f"A delete references its data file {how}{more}."
            field = "143 referenced_data_file"
            item = problem("delete-path", where, text, field=field, found=referenced, expected=name)
        elif kind == "double":
            text = f"Data file {name} has several deletion vectors; the newest is used{more}."
            item = problem("delete-scope", where, text, field="143 referenced_data_file", severity="error")
        else:
            ours, theirs = int(self.file_sequence[file]), int(self.found.sequence[delete])
            why = (
                f"the delete's sequence number {theirs} is below that of the data file, {ours}"
                if theirs < ours
                else "the delete and the data file are in different partitions"
            )
            text = f"A delete that references data file {name} does not apply to it: {why}{more}."
            item = problem("delete-scope", where, text)
        self.state.problems.add(item)


#: Maximum number of problems that are reported for each kind of fault in how deletes reference data files, such as a
#: deletion vector that references no data file. One faulty writer may cause the same fault in thousands of deletes.
_MOST_NOTES = 5


def _matches_by(batch: EntryBatch, column: int) -> Mask:
    """Return which deletes of a batch are equality deletes that compare the column with the field id ``column``."""
    ids = whole(batch.entries["equality_ids"])
    out = np.zeros(len(batch), dtype=bool)
    parents = np.asarray(pc.list_parent_indices(ids))
    out[parents[bool_array(pc.equal(pc.list_flatten(ids), column))]] = True
    return out
