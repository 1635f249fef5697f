"""Explain why deletes are not applied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import Strings, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import renamed_arguments
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch, bool_array, whole
from iceexplore.metadata import Type, format_value
from iceexplore.planning.delete_index._codes import Mask
from iceexplore.planning.delete_index._delete_files import DeleteFiles, live_deletes, path_bounds
from iceexplore.planning.delete_index._match import DeleteIndex
from iceexplore.planning.delete_index._paths import live_places
from iceexplore.planning.delete_index._scope_join import pieces, total_of
from iceexplore.planning.evaluators._filter import Filter
from iceexplore.planning.model._groups import partition_texts
from iceexplore.planning.model._tasks import MatchedDeletes
from iceexplore.storage import canonical, path_only

__all__ = [
    "UNMATCHED_SCHEMA",
    "applied_of",
    "unmatched_deletes",
]

Reason = tuple[str, str]


@dataclass(frozen=True, eq=False)
class Reasons:
    """Reasons why deletes do not apply to data files.

    `matching` is the delete index that holds the deletes and the data files. In the methods, ``delete`` is a row number
    in ``matching.found``, and ``file`` is a row number in ``matching.files``. A reason is a pair: a code, such as
    ``partition`` (the comment on `UNMATCHED_SCHEMA` lists all codes), and a text for the user.
    """

    matching: DeleteIndex

    def of_vector(self, file: int, delete: int) -> Reason:
        """Return the reason why the delete does not apply: the data file's deletion vector replaces it.

        The delete is a position delete file or, in a damaged table with several deletion vectors for one data file, one
        that is not the newest.
        """
        m = self.matching
        newest = int(m.vector[file])
        place = m.found.batch.entries["location"][newest].as_py()
        if m.found.vector[delete]:
            older, newer = int(m.found.sequence[delete]), int(m.found.sequence[newest])
            text = f"the newest deletion vector (sequence number {newer}) replaces this one (sequence number {older})"
            return "vector", text
        return "vector", f"the data file's deletion vector replaces it: {place}"

    def of_path(self, file: int, delete: int) -> Reason:
        """Explain that the location of the data file is outside the position delete's bounds of ``file_path``."""
        low, high = (b[delete].as_py() for b in path_bounds(self.matching.found.batch))
        return "file-path", f"its bounds of file_path, {low} to {high}, exclude the location of the data file"

    def of_bounds(self, file: int, delete: int) -> Reason:
        """Return the reason why an equality delete does not apply: column metrics exclude all rows of the file."""
        m = self.matching
        pair = np.array([file]), np.array([delete])
        column = next(c for c, found in m.equality_bounds.items() if found.apart(*pair)[0])
        name, f = m.state.metadata.all_fields()[column]
        ours, theirs = self._stats(m.files, file, column), self._stats(m.found.batch, delete, column)
        names = ("data file", "delete file")
        for stats, who, other in ((ours, *names), (theirs, *names[::-1])):
            alike = self._only(stats)
            if alike:
                return "bounds", f"{name} is {alike} in every row of the {who}, and in no row of the {other}"
        a, b = (self._range(s, f.type) for s in (theirs, ours))
        return "bounds", f"its bounds of {name}, {a}, do not overlap those of the data file, {b}"

    @staticmethod
    def _stats(batch: EntryBatch, row: int, column: int) -> dict[str, Any]:
        """Return one file's metrics of one column, such as ``lower`` and ``null_count``.

        ``row`` is the file's row number in ``batch``, and ``column`` is the column's field id. The result is empty if
        the file has no metrics of the column.
        """
        # The cast corrects pyarrow-stubs, which declare that ``as_py`` of a struct returns a list of dictionaries.
        return cast("dict[str, Any] | None", batch.stats[column][row].as_py()) or {}

    @staticmethod
    def _only(stats: dict[str, Any]) -> str:
        """Return which of null and NaN a column consists of in a file: ``"null"``, ``"NaN"`` or ``"null or NaN"``.

        The result is ``""`` if the column has, or may have, other values. ``stats`` has its metrics in the file.
        """
        values, nulls, nans = (stats.get(name) or 0 for name in ("value_count", "null_count", "nan_count"))
        if not values or nulls + nans != values:
            return ""
        return " or ".join(word for word, count in (("null", nulls), ("NaN", nans)) if count)

    @staticmethod
    def _range(stats: dict[str, Any], kind: Type) -> str:
        """Return the lower and the upper bound in ``stats`` as text, such as ``1 to 5``; ``?`` for a missing bound."""
        values = (stats.get("lower"), stats.get("upper"))
        return " to ".join("?" if v is None else format_value(kind, v) for v in values)

    def alone(self, delete: int, live: dict[str, str]) -> Reason:
        """Explain why a delete applies to no data file of the plan.

        There are four possible reasons: the filter, the location that the delete references, the delete's partition and
        the delete's sequence number. The column bounds and null counts of data files are not considered.

        Parameters
        ----------
        live
            The result of `live_places`: locations of live data files, by canonical form. If the delete references one
            data file, ``live`` must include all live data files with the same path (the location without scheme and
            authority). If the delete references no single data file, ``live`` is not used.
        """
        m = self.matching
        if m.ruled_out[delete]:
            return "filter", self._filter_sentence(delete)
        referenced = m.found.referenced[delete].as_py()
        if m.found.vector[delete] and referenced is None:
            return "no-file", "it references no data file"
        if referenced is not None:
            mine = np.flatnonzero(m.named[1] == delete)
            return self._apart(int(m.named[0][mine[0]]), delete) if len(mine) else self._nowhere(referenced, live)
        return self._no_place(delete)

    def _filter_sentence(self, delete: int) -> str:
        """Explain that the filter excludes an equality delete, because it removes no row that matches the filter.

        This follows from the bounds of the delete's equality columns, or from its partition. The text shows the bounds
        if the delete has metrics of these columns, and the partition if its spec is partitioned.
        """
        m = self.matching
        ranges = []
        for column, stats in m.found.batch.stats.items():
            found = cast("dict[str, Any] | None", stats[delete].as_py())
            known = m.state.metadata.all_fields().get(column)
            if found and known and column in (m.found.batch.entries["equality_ids"][delete].as_py() or ()):
                ranges.append(f"{known[0]} {self._range(found, known[1].type)}")
        what = "" if m.filter is None else m.filter.text
        reasons = [f"its metrics show {', '.join(ranges)}"] if ranges else []
        number = m.found.batch.entries["partition_spec_id"][delete].as_py()
        spec = None if number is None else m.state.metadata.spec(number)
        if spec is not None and not spec.is_unpartitioned:
            place = partition_texts(m.state, m.found.batch.take([delete]))[0].as_py()
            reasons.append(f"its partition is {_place(place, number)}")
        return f"the filter {what} excludes it" + (f": {', and '.join(reasons)}" if reasons else "")

    def _apart(self, file: int, delete: int) -> Reason:
        """Explain why a delete does not apply to the data file that it references.

        Either the two are in different partitions, or the delete's sequence number is below that of the data file.
        """
        m = self.matching
        if m.groups[0][file] != m.groups[1][delete]:
            one = partition_texts(m.state, m.files.take([file]))
            other = partition_texts(m.state, m.found.batch.take([delete]))
            specs = [b.entries["partition_spec_id"][i].as_py() for b, i in ((m.found.batch, delete), (m.files, file))]
            return "partition", (
                f"its partition, {_place(other[0].as_py(), specs[0])}, is not that of the data file, "
                f"{_place(one[0].as_py(), specs[1])}"
            )
        return "sequence", (
            f"its sequence number {m.found.sequence[delete]} is below that of the data file, {m.file_sequence[file]}"
        )

    def _nowhere(self, referenced: str, live: dict[str, str]) -> Reason:
        """Explain why the data file that a delete references is not in the plan.

        Parameters
        ----------
        referenced
            The location that the delete references.
        live
            Locations of live data files. The keys are their canonical forms: for example, `canonical` turns
            ``s3a://b/x`` into ``s3://b/x``. All live data files with the same path as ``referenced`` must be included;
            others are ignored. The path is the location without scheme and authority, such as ``/x``.
        """
        if canonical(referenced) in live:
            return "not-in-plan", f"the data file that it references is not in the plan: {referenced}"
        others = [place for place in live if path_only(place) == path_only(referenced)]
        if len(others) > 1:
            return "path", (
                f"{len(others)} live data files have the path of {referenced} with other schemes or authorities, so it "
                "is unclear which one the delete belongs to"
            )
        if others:
            name = live[others[0]]
            return "not-in-plan", f"its data file {name}, which it references as {referenced}, is not in the plan"
        return "dangling", f"the data file that it references is not live: {referenced}"

    def _no_place(self, delete: int) -> Reason:
        """Explain why a delete that may apply to any data file in its partition applies to none of them.

        Either the plan has no data file in the delete's partition, or all data files there have sequence numbers that
        are too high for the delete to apply. For a global equality delete, which applies in every partition, all data
        files of the plan are checked instead.
        """
        m = self.matching
        if m.is_global[delete]:
            mine, where = np.arange(len(m.files)), "the plan"
        else:
            mine, where = np.flatnonzero(m.groups[0] == m.groups[1][delete]), "its partition"
        spec = m.found.batch.entries["partition_spec_id"][delete].as_py()
        if not len(mine):
            text = _place(partition_texts(m.state, m.found.batch.take([delete]))[0].as_py(), spec)
            return "partition", f"no data file of the plan is in its partition, {text}"
        oldest, own = int(m.file_sequence[mine].min()), int(m.found.sequence[delete])
        word = "above" if m.found.equality[delete] else "at or above"
        count = (
            f"the lowest sequence number of the {len(mine):,} data files"
            if len(mine) > 1
            else "the sequence number of the only data file"
        )
        return "sequence", f"its sequence number {own} is not {word} {oldest}, {count} in {where}"


def _place(text: str | None, spec: int | None) -> str:
    """Return a text for a partition and the id of its spec, such as ``day=2024-05-17 (spec 0)``.

    If ``text`` is None or empty, the partition is called ``unpartitioned``.
    """
    return f"{text or 'unpartitioned'} (spec {spec})"


#: Columns of the table that `unmatched_deletes` returns. ``code`` is the reason why the delete is not applied:
#:
#: - ``bounds``: metrics prove that no row of the data file equals a row of the equality delete.
#: - ``dangling``: the referenced data file is not live.
#: - ``file-path``: the data file's location is outside the position delete's bounds of ``file_path``.
#: - ``filter``: no row that the equality delete may remove matches the filter.
#: - ``no-file``: a deletion vector references no data file.
#: - ``not-in-plan``: the referenced data file is live, but not in the plan.
#: - ``partition``: the referenced data file is in another partition than the delete. Or the delete references no single
#:   data file, and no data file of the plan is in its partition.
#: - ``path``: no live data file has the referenced location, but several live data files have the same path, with other
#:   schemes or authorities. So it is unclear which of these the delete references.
#: - ``sequence``: the delete's sequence number is too low for it to apply to the data file, or to any file in its
#:   partition.
#: - ``vector``: the data file's deletion vector replaces the delete (a position delete file or an older
#:   deletion vector).
#: - ``more``: this last row is not about a delete. It gives the number of rows that are not shown because of ``limit``.
UNMATCHED_SCHEMA = build.schema(
    [
        ("delete_file", pa.string()), ("kind", pa.string()), ("sequence_number", pa.int64()),
        ("data_file", pa.string()), ("code", pa.string()), ("reason", pa.string()),
    ]
)  # fmt: skip


@renamed_arguments(filter="where")
def unmatched_deletes(
    state: TableState,
    files: EntryBatch,
    matched: MatchedDeletes,
    *,
    where: Filter | None = None,
    limit: int = 1000,
) -> pa.Table:
    """Return a table that explains why deletes do not apply to data files of a plan.

    The table has two kinds of rows. A row for a single delete explains why it applies to none of the data files. A row
    for a delete and a data file explains why the delete does not apply to this file, although its partition and
    sequence number allow it.

    This reads all manifests that may hold deletes. Some deletes reference a single data file. If any of these applies
    to no data file of the plan, this also reads all live data manifests, to find out whether the referenced file is
    live.

    Parameters
    ----------
    files
        The data files of the plan.
    matched
        The result of `match_deletes` for these files.
    where
        The filter with which `match_deletes` was called; None if there is no filter.
    limit
        Maximum number of rows. If there are more, one more row is added, with the code ``more``: it counts the rows
        that are not shown.

    Returns
    -------
    pyarrow.Table
        The columns are those of `UNMATCHED_SCHEMA`. In a row for a single delete, ``data_file`` is null: the delete
        applies to no data file because of the filter, the location that it references, its partition or its sequence
        number. In a row for a delete and a data file, column metrics prove that the delete removes no row of the file,
        or the file's deletion vector replaces the delete. In the row with the code ``more``, only ``code`` and
        ``reason`` have a value.
    """
    found = live_deletes(state)
    matching = DeleteIndex(state, files, found, where)
    applied = applied_of(found, matched)
    scopes = _Scopes(matching, applied)
    reasons = Reasons(matching)
    idle = np.flatnonzero(~scopes.reached & ~applied)
    named = build.to_pylist(found.referenced.take(build.array(idle[:limit])).drop_null())
    live = live_places(state, {path_only(name) for name in named}) if named else {}
    rows = [_row(matching, d, None, *reasons.alone(d, live)) for d in idle[:limit].tolist()]
    by_position, by_value = scopes.skipped(matched)
    most = limit - len(rows)
    rows += [_row(matching, d, f, *why) for f, d, why in islice(scopes.positions(reasons), min(most, by_position))]
    most = limit - len(rows)
    rows += [_row(matching, d, f, *why) for f, d, why in islice(scopes.equality(reasons), min(most, by_value))]
    more = len(idle) + by_position + by_value - len(rows)
    if more:
        rows.append({"code": "more", "reason": f"number of rows that are not shown because of the limit: {more:,}"})
    return pa.Table.from_pylist(rows, schema=UNMATCHED_SCHEMA)


def _row(m: DeleteIndex, delete: int, file: int | None, code: str, reason: str) -> dict[str, Any]:
    """Return a row of the table that `unmatched_deletes` returns, as a dictionary of its columns.

    Parameters
    ----------
    delete, file
        The delete's row number in ``m.found``, and the data file's row number in ``m.files``. ``file`` is None if the
        row explains why the delete applies to no data file at all.
    code, reason
        Why the delete does not apply: one of the codes of `UNMATCHED_SCHEMA`, and a text.
    """
    kind = "vector" if m.found.vector[delete] else "equality" if m.found.equality[delete] else "position"
    return {
        "delete_file": m.found.batch.entries["location"][delete].as_py(),
        "kind": kind,
        "sequence_number": int(m.found.sequence[delete]),
        "data_file": None if file is None else m.files.entries["location"][file].as_py(),
        "code": code,
        "reason": reason,
    }


def applied_of(found: DeleteFiles, matched: MatchedDeletes) -> Mask:
    """Return a mask of the ``found`` deletes: True for those in ``matched.deletes``, which apply to a data file.

    A delete has different row numbers in ``found`` and in ``matched.deletes``. It is recognized by its location, its
    offset in a Puffin file and the data file that it references.
    """
    keys = [_keys(batch) for batch in (found.batch, matched.deletes)]
    if not len(keys[1]):
        return np.zeros(len(found), dtype=bool)
    return bool_array(pc.is_in(keys[0], value_set=keys[1]))


def _keys(batch: EntryBatch) -> Strings:
    """Return, for each delete, a text that identifies it: its location, offset and referenced data file.

    The location alone is not enough: one Puffin file can contain several deletion vectors, at different offsets.
    """
    location, named = (whole(batch.entries[name]) for name in ("location", "referenced_file"))
    offset = pc.struct_field(whole(batch.entries["deletion_vector"]), "offset").cast(pa.string())
    return pc.binary_join_element_wise(*(pc.fill_null(a, "") for a in (location, offset, named)), "\n")


class _Scopes:
    """Candidate pairs of a data file and a delete: partition and sequence number allow the delete to apply to the file.

    In some candidate pairs, the delete does not apply after all: its bounds exclude the data file, or the data file's
    deletion vector replaces it. A delete that references one data file forms a candidate pair only with this file.
    Equality deletes that the filter excludes form none.
    """

    def __init__(self, matching: DeleteIndex, applied: Mask) -> None:
        self.matching = m = matching
        # Select the position delete files to pair with all data files of their partition, in order to explain why they
        # do not apply to some of these: those that may apply to several data files (`of_partition`).
        #
        # For some of them (`by_bounds`), the two bounds of file_path are equal, but no data file of the plan has this
        # location. Either the bounds are truncated to the common beginning of several locations, or the delete file
        # references a single data file that is not in the plan. If `match_deletes` has found that it applies to a data
        # file of the plan (`applied`), the bounds must be truncated: select it. Otherwise assume that it references a
        # single data file, and leave it out: `Reasons.alone` explains why this file is not in the plan.
        own = m.of_partition & (~m.found.by_bounds | applied)
        position = m.position_scope
        self._position = replace(position, deletes=np.flatnonzero(own))
        self._spans = self._position.spans()
        self._equality = [scope.spans() for scope in m.equality_scopes()]
        self.reached = self._reached()

    def _reached(self) -> Mask:
        """Return a mask: True for each delete that may apply to a data file of the plan.

        Only partitions and sequence numbers are compared. But for a delete that references one data file, only this
        file is considered, and the mask is False for equality deletes that the filter excludes.
        """
        m = self.matching
        out = np.zeros(len(m.found), dtype=bool)
        out[m.named[1][m.in_scope]] = True
        for spans in (self._spans, *self._equality):
            change = np.zeros(len(spans.order) + 1, dtype=np.int64)
            there = spans.stop > spans.start
            np.add.at(change, spans.start[there], 1)
            np.add.at(change, spans.stop[there], -1)
            out[spans.order[np.cumsum(change[:-1]) > 0]] = True
        return out

    def skipped(self, matched: MatchedDeletes) -> tuple[int, int]:
        """Count the pairs in which the delete does not apply to the data file, despite partition and sequence number.

        Partition and sequence number would allow the delete to apply, but its bounds or other metrics exclude the data
        file, or the data file's deletion vector replaces it. Return two numbers of pairs of a data file and a delete:
        one for deletion vectors and position delete files, one for equality deletes. ``matched`` has the deletes that
        do apply.
        """
        by_position, by_value = (
            int(pc.sum(pc.list_value_length(a), min_count=0).as_py()) for a in (matched.positions, matched.equality)
        )
        by_position += matched.vector.is_valid().true_count
        here = int(self.matching.in_scope.sum()) + total_of(self._spans)
        return max(0, here - by_position), max(0, sum(map(total_of, self._equality)) - by_value)

    def positions(self, reasons: Reasons) -> Iterator[tuple[int, int, tuple[str, str]]]:
        """Explain, pair by pair, why deletion vectors and position delete files do not apply to data files.

        A pair of a data file and a delete is explained only if partition and sequence number would allow the delete to
        apply. For each pair, yield the row number of the data file, the row number of the delete, and the reason: a
        code and a text.
        """
        m = self.matching
        files, deletes, _ = m.named
        taken = m.vector
        mine = m.in_scope & (taken[files] >= 0) & (taken[files] != deletes)
        for f, d in zip(files[mine].tolist(), deletes[mine].tolist(), strict=True):
            yield f, d, reasons.of_vector(f, d)
        columns = m.path_intervals(self._position.deletes)
        for files, deletes in pieces(self._spans):
            apart = np.zeros(len(files), dtype=bool)
            for column in columns:
                apart |= column.apart(files, deletes)
            replaced = taken[files] >= 0
            for at in np.flatnonzero(apart | replaced).tolist():
                f, d = int(files[at]), int(deletes[at])
                yield f, d, reasons.of_path(f, d) if apart[at] else reasons.of_vector(f, d)

    def equality(self, reasons: Reasons) -> Iterator[tuple[int, int, tuple[str, str]]]:
        """Explain, pair by pair, why equality deletes do not apply to data files.

        A pair of a data file and a delete is explained only if partition and sequence number would allow the delete to
        apply. For each pair, yield the row number of the data file, the row number of the delete, and the reason: a
        code and a text.
        """
        columns = list(self.matching.equality_bounds.values())
        for spans in self._equality:
            for files, deletes in pieces(spans):
                apart = np.zeros(len(files), dtype=bool)
                for column in columns:
                    apart |= column.apart(files, deletes)
                for at in np.flatnonzero(apart).tolist():
                    f, d = int(files[at]), int(deletes[at])
                    yield f, d, reasons.of_bounds(f, d)
