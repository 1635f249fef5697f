"""Build range maps.

A range map shows the range of a column's values in each live file, together with the range that the filter selects.
Users can move the edges of the filter's range to certain values of the column, called stops. This module chooses the
stops. For each file, it determines to which stops an edge can be moved so that the plan still reads the file.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, PlainValue, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError, nearest
from iceexplore.expressions import ALWAYS, And, Expression, Or, expression_sql, literal_sql
from iceexplore.manifests import EntryBatch
from iceexplore.metadata import NestedField, PrimitiveType, Schema, Type, human_value, parse_transform, type_base
from iceexplore.planning.evaluators._column_metrics import ColumnMetrics, Mask
from iceexplore.planning.evaluators._file_evaluator import (
    FileMetricsSources,
    always_required,
    evaluate_inclusive,
    top_level_ids,
)
from iceexplore.planning.evaluators._filter import Filter, same_partition
from iceexplore.planning.evaluators._manifest_evaluator import ManifestMetricsSources, may_hold
from iceexplore.planning.model._groups import GROUPINGS, counted
from iceexplore.planning.range_map._live_files import LiveFiles, finished, planned_rows, read_live_files
from iceexplore.planning.range_map._range_map import DRAWN, RangeBy, RangeMap
from iceexplore.planning.range_map._spans import Spans, StopPredicates
from iceexplore.planning.range_map._stops import RangeFilter, Stops, range_filter, stops_of

if TYPE_CHECKING:
    from iceexplore.planning.scan._result import PlannedScan

__all__ = ["default_column", "range_columns", "range_map_of", "range_map_steps"]

#: What a plan does with a file, as indices in `VERDICTS`, a tuple of texts: read the file, of which every row matches;
#: read it and filter its rows; skip it with its manifest; or skip it because of its partition values or its column
#: metrics.
_WHOLE, _READ, _MANIFEST, _PARTITION, _METRICS = range(5)
#: Approximate maximum number of stops (values to which a user can move an end of the filter's range, such as the 5 in
#: ``id >= 5``). The first number is for up to `DRAWN` files, and the second for more files: a file's range is drawn
#: from stop to stop, so with fewer stops, more files have equal ranges and can be drawn as one rectangle. The literals
#: of the filter itself are stops too, but are not counted.
_STOPS, _STOPS_OF_MANY = 240, 96
#: Maximum number of characters in the label of a stop (a value to which a user can move an end of the filter's range,
#: such as the 5 in ``id >= 5``); longer labels are cut off.
_LONGEST = 60
#: Stops are values to which a user can move an end of the filter's range, such as the 5 in ``id >= 5``. In a float or
#: double column, their labels are rounded if any of them has more than `_SHORT_NUMBER` characters. At least
#: `_LEAST_DIGITS` significant digits are kept, and more if different labels would otherwise become equal.
_LEAST_DIGITS, _SHORT_NUMBER = 6, 10
#: Matches a timestamp in ISO 8601, in UTC or without a time zone. Group 1 is the date, group 2 the hours and minutes.
_TIME = re.compile(r"^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(?::\d\d)?(?:\.\d+)?(?:\+00:00)?$")
_UNORDERED = ("unknown", "variant", "geometry", "geography")
_Ints = npt.NDArray[np.int64]


def range_columns(schema: Schema) -> dict[str, NestedField]:
    """Return, by dotted name, the columns that are outside of lists and maps and whose values have an order."""
    repeated: list[str] = []
    out = {}
    for name, f in schema.walk():
        if any(name.startswith(f"{outer}.") for outer in repeated):
            continue
        if isinstance(f.type, PrimitiveType):
            if type_base(f.type) not in _UNORDERED:
                out[name] = f
        elif not hasattr(f.type, "fields"):
            repeated.append(name)
    return out


def default_column(plan: PlannedScan) -> str | None:
    """Return the dotted name of the column that a range map shows if the user has not chosen one.

    A range map is a picture of the range of values that the column has in each file.

    The result is the first column in the filter. If the filter has none, it is the first source column of the default
    sort order; else the first source column of the default partition spec; else the first column of the schema. Columns
    are considered only if `range_columns` returns them. If it returns none, the result is None.
    """
    columns = range_columns(plan.state.schema)
    by_id = {f.field_id: name for name, f in columns.items()}
    metadata = plan.state.metadata
    order = next((o for o in metadata.sort_orders if o.order_id == metadata.default_sort_order_id), None)
    spec = metadata.spec(metadata.default_spec_id)
    sources = [i for f in (order.fields if order else ()) for i in f.source_ids]
    sources += [i for f in (spec.fields if spec else ()) for i in f.source_ids]
    chosen = [*(name for name in plan.filter.names if name in columns), *(by_id[i] for i in sources if i in by_id)]
    return next(iter([*chosen, *columns]), None)


def range_map_of(plan: PlannedScan, column: str | None = None, by: RangeBy = "range") -> RangeMap:
    """Return a picture of the range of values that a column has in each file that the plan reads or skips.

    The files are all live data files; for an incremental plan, all files that the planned snapshots added. All data
    manifests are read, but no data file.

    Parameters
    ----------
    column
        The name of a column; for a column inside a struct, a dotted name such as ``address.city``. By default, the
        column that `default_column` chooses: the first one in the filter or, if there is none, the first one in the
        table's sort order, in its partition fields or in its schema.
    by
        The order of files: by the start of their ``range``, by their ``partition``, or by the ``snapshot`` that added
        them, the oldest first.

    Raises
    ------
    OptionError
        The column is unknown, is inside a list or map, or has values without an order; or ``by`` is none of the three.
    """
    field = _column(plan, column)
    _check_by(by)
    return range_map_from(plan, field, by, finished(read_live_files(plan, range_ids(plan, field[1]))))


def range_map_steps(
    plan: PlannedScan, column: str | None, by: RangeBy, known: dict[Any, LiveFiles]
) -> Generator[str, None, RangeMap]:
    """Build the map that `range_map_of` returns, in steps: yield texts about the progress, then return the map.

    Parameters
    ----------
    column, by
        See `range_map_of`.
    known
        A cache for the live files of one table state. Pass an empty dictionary in the first call, and the same one in
        later calls. It has at most one item. The key is a set of field ids, and the value is the live files, read with
        the column metrics of these fields. If the key contains all field ids that the map needs, these files are used.
        Otherwise, all data manifests are read again, and the item is replaced.
    """
    field = _column(plan, column)
    _check_by(by)
    ids = range_ids(plan, field[1])
    key = frozenset(ids)
    found = next((files for have, files in known.items() if have >= key), None)
    if found is None:
        found = yield from read_live_files(plan, ids)
        # Drop the metadata of live files from an earlier call: for a large table, it takes a lot of memory.
        known.clear()
        known[key] = found
    yield "Comparing bounds"
    return range_map_from(plan, field, by, found)


def _check_by(by: str) -> None:
    if by not in get_args(RangeBy):
        raise OptionError(f"by={str(by)[:40]!r}: choose 'range', 'partition' or 'snapshot'")


def _column(plan: PlannedScan, column: str | None) -> tuple[str, NestedField]:
    known = range_columns(plan.state.schema)
    name = default_column(plan) if column is None else column
    if name is None:
        raise OptionError("the table has no column whose values have an order")
    if name not in known:
        near = nearest(str(name), [*known])
        raise OptionError(
            f"there is no column {str(name)[:80]!r}, or it is inside a list or map, or its values have no order; {near}"
        )
    return name, known[name]


def range_ids(plan: PlannedScan, field: NestedField) -> list[int]:
    """Return the ids of all columns and expressions whose metrics are needed for the range map of a column.

    A range map is a picture of the range of values that the column ``field`` has in each file. The ids are the field
    ids of ``field`` and of the filter's columns. The filter may also compare a computed value such as ``day(ts)``. If
    the V4 table metadata has this expression in its list ``expressions``, the expression's id is included, too.
    """
    return sorted({field.field_id, *plan.filter.stats_ids})


def range_map_from(plan: PlannedScan, named: tuple[str, NestedField], by: RangeBy, files: LiveFiles) -> RangeMap:
    """Return the range map for live files whose metadata has already been read.

    A range map is a picture of the range of values that each file has in one column.

    Parameters
    ----------
    named
        The dotted name of this column, and the column itself.
    by
        The order in which the picture shows the files, see `range_map_of`.
    files
        All live files of the plan, with the metrics of the columns and expressions whose ids `range_ids` returns.
    """
    name, f = named
    state, metadata = plan.state, plan.state.metadata
    edges = range_filter(plan.filter.expression, f.field_id)
    batch = files.batch
    sources = FileMetricsSources(batch, metadata)
    metrics = _metrics(batch, f.field_id, plan)
    stops, predicates = _stops(plan, name, f, edges, metrics, sources, many=len(files) > DRAWN)
    spans = predicates.spans(len(files), sources).and_(_of_manifests(plan, files, predicates))
    count = len(stops)
    nothing = np.zeros(len(files), np.bool_) if metrics is None else metrics.nothing
    kind = np.where(nothing, 2, np.where(spans.known, 0, 1)).astype(np.int64)
    rest = Filter(plan.filter.text, edges.rest, plan.filter.partition)
    group = _grouped(plan, by, batch)
    literals = tuple(_literal(v, f.type) for v in stops.values)
    return RangeMap(
        title=state.name,
        column=name,
        filter=plan.filter.text,
        by=by,
        stops=stops,
        labels=_labels(stops, f.type),
        literals=literals,
        lower=None if edges.lower is None else stops.index(edges.lower.literals[0]),
        upper=None if edges.upper is None else stops.index(edges.upper.literals[0]),
        rest=_rest_text(edges.rest),
        first=np.where(kind == 2, count, spans.first),
        last=np.where(kind == 2, 0, spans.last),
        kind=kind,
        open=_left(plan, files, rest, sources),
        verdict=_verdicts(plan, files),
        rows=counted(batch, "record_count"),
        bytes=counted(batch, "file_size_in_bytes"),
        group=group[0],
        groups=group[1],
        files=files,
        notes=_notes(files, name, metrics, count),
        partition=plan.filter.partition,
    )


def _literal(value: PlainValue, kind: Type) -> str:
    """Return a value of a column of type ``kind`` as an SQL literal.

    A value of type float is written with only the digits that a 32-bit float needs, as in ``CAST(1.3 AS FLOAT)``.
    """
    if type_base(kind) == "float" and isinstance(value, float) and np.isfinite(value):
        return f"CAST({np.float32(value)!s} AS FLOAT)"
    return literal_sql(value, kind, "sql")


def _labels(stops: Stops, kind: Type) -> tuple[str, ...]:
    """Return a short text for each stop, for display.

    A stop is a value of the column to which an edge of the filter's range can be moved.

    Floats are rounded (`_rounded`). Texts of more than 60 characters are shortened to 60, with an ellipsis at the end.
    Timestamps are written without seconds, as ``2024-05-17 06:30``, and those at midnight as the date only. But if this
    makes many timestamps look the same (if the number of different texts is at most 90 % of the number of stops), all
    of them keep their full texts.
    """
    texts = [human_value(kind, "identity", v) for v in stops.values]
    if type_base(kind) in ("float", "double"):
        texts = _rounded(stops.values, texts, single=type_base(kind) == "float")
    if type_base(kind).startswith("timestamp"):
        short = [_TIME.sub(lambda m: m[1] if m[2] == "00:00" else f"{m[1]} {m[2]}", text) for text in texts]
        texts = short if len(set(short)) > 0.9 * len(texts) else texts
    return tuple(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…" for text in texts)


def _rounded(values: Sequence[Any], texts: list[str], *, single: bool) -> list[str]:
    """Return short texts for floating-point numbers, rounded to as few significant digits as possible, at least six.

    Values with different full texts must have different rounded texts. If no number of digits up to 16 achieves this,
    or if no full text has more than ten characters, return the full texts.

    Parameters
    ----------
    values, texts
        The numbers and their full texts. If ``single`` is true, ``texts`` is ignored, and the full texts are built from
        ``values``.
    single
        True for Iceberg's type float (32 bits), False for double.
    """
    # The 32-bit float 1.3 is 1.2999999523162842 as a Python float, which has 64 bits. So convert the numbers to NumPy's
    # `float32`, which formats this number as 1.3.
    if single:
        texts = [str(np.float32(v)) for v in values]
    for digits in range(_LEAST_DIGITS, 17):
        if max(map(len, texts), default=0) <= _SHORT_NUMBER:
            break
        short = [f"{v:.{digits}g}" for v in values]
        if len(set(short)) == len(set(texts)):
            return short
    return texts


def _rest_text(rest: Expression) -> str:
    """Return ``rest``, the filter's conditions other than its range of the column that the range map shows, as SQL.

    For the column ``id`` and the filter ``id > 5 and (a = 1 or b = 2)``, the result is ``(a = 1 or b = 2)``. An ``or``
    is in parentheses, so that callers can append more conditions with ``and``. The text is empty if there are no other
    conditions.
    """
    parts = rest.children if isinstance(rest, And) else () if rest == ALWAYS else (rest,)
    texts = [(part, expression_sql(part, "sql")) for part in parts]
    return " and ".join(f"({text})" if isinstance(part, Or) else text for part, text in texts)


def _metrics(batch: EntryBatch, field_id: int, plan: PlannedScan) -> ColumnMetrics | None:
    stats = batch.stats.get(field_id)
    if stats is None or not len(batch):
        return None
    nested = field_id not in top_level_ids(plan.state.metadata)
    required = not nested and always_required(plan.state.metadata, field_id)
    records: AnyArray = batch.entries["record_count"].combine_chunks()
    return ColumnMetrics.of_stats(stats, records, nested=nested, required=required)


def _stops(
    plan: PlannedScan,
    name: str,
    f: NestedField,
    edges: RangeFilter,
    metrics: ColumnMetrics | None,
    sources: FileMetricsSources,
    *,
    many: bool,
) -> tuple[Stops, StopPredicates]:
    """Choose the stops of a column: the values to which users can move an edge (an end) of the filter's range.

    Users do this in a range map, a picture of the filter's range and of the range of the column's values in each file.
    The picture shows which files the plan reads for the range.

    Also return two predicates per stop: for a lower and for an upper edge at this stop. For the stop 5 of the column
    ``id``, these are usually ``id >= 5`` and ``id <= 5``.

    The present edges of the filter's range are always stops. Another value is left out if one of its two predicates
    cannot be projected to a partition field of the column, although predicates of other stops can. An example is a
    value for which the transform ``truncate`` overflows. With an edge at such a value, the partition field excludes no
    files, so the plan could read more files than with a wider range. This would confuse users.

    Parameters
    ----------
    name, f
        The dotted name of the column, and the column itself.
    edges
        The filter, split into a range of the column and other conditions.
    metrics
        The column's metrics, one row per file; None if there are none.
    sources
        The partition values and column metrics of the files, to determine the stops to leave out. Without bounds in
        ``metrics``, the stops are chosen from the values of an identity partition field of the column.
    many
        True if the range map has more than `DRAWN` files. Then at most about 96 stops are chosen, otherwise at most
        about 240, not counting the present edges.
    """
    sides = [] if metrics is None or pa.types.is_nested(metrics.lower.type) else [metrics.lower, metrics.upper]
    sides = sides if sides and any(len(s) > s.null_count for s in sides) else _identities(plan, f, sources)
    found = None
    if sides and not pa.types.is_null(sides[0].type):
        found = stops_of(f.type, sides[0], sides[-1], edges, _STOPS_OF_MANY if many else _STOPS)
    if found is None:
        found = stops_of_edges(edges)
    predicates = StopPredicates.of(found, f.field_id, name, f.type)
    if len(found):
        proofs = [w for p in (predicates.lower[len(found) // 2], predicates.lower[0]) for w in sources(p)]
        edges_at = {found.index(p.literals[0]) for p in (edges.lower, edges.upper) if p is not None}
        useless = predicates.unusable(proofs) - edges_at
        if useless:
            found = found.without(useless)
            predicates = StopPredicates.of(found, f.field_id, name, f.type)
    return found, predicates


def stops_of_edges(edges: RangeFilter) -> Stops:
    """Return the edges of the filter's range as the only stops: for ``id >= 5 and id < 9``, the stops 5 and 9.

    In a range map, a picture of each file's range of values of a column, users can move the edges of the filter's
    range. The values to which an edge can be moved are called stops. Usually, more of them are chosen from the column's
    bounds in the data files (`stops_of`). This function is for a column without usable bounds.
    """
    pairs = sorted({p.literals[0] for p in (edges.lower, edges.upper) if p is not None})
    kind = pa.array(pairs)
    if not pairs:
        return Stops((), (), (), ())
    found = stops_of(PrimitiveType("string"), kind, kind, edges, max(2, len(pairs)))
    assert found is not None
    return found


def _identities(plan: PlannedScan, f: NestedField, sources: FileMetricsSources) -> list[AnyArray]:
    """Return lower and upper bounds of the column ``f``, taken from an identity partition field of this column.

    They are used if no file has bounds of the column. All rows of a file have the same value of the field, so this
    value is both the lower and the upper bound. The list has the same array twice, with one value per file; null for a
    file without a value. The list is empty if no partition spec has such a field, or if all of its values are null.

    Parameters
    ----------
    sources
        The partition values of the files.
    """
    for spec in plan.state.metadata.partition_specs:
        for field in spec.fields:
            if field.source_ids == (f.field_id,) and parse_transform(field.transform).is_identity:
                found = sources.value(str(field.field_id))
                if found is not None and len(found) > found.null_count:
                    return [found, found]
    return []


def _of_manifests(plan: PlannedScan, files: LiveFiles, predicates: StopPredicates) -> Spans:
    """Return, for each file, the range of stops that are within the bounds of the manifest that lists the file.

    A stop is a value to which users can move an edge of the filter's range. The bounds are those of the partition
    summaries in the manifest list, or those of the column metrics in the V4 root manifest. For example, with the stops
    0, 10, 20 and 30, and a manifest with the bounds 10 and 20, the range is from index 1 up to, but not including,
    index 3. The plan skips the manifest if the lower edge is above 20, or if the upper edge is below 10.

    The range includes all stops if there are no such bounds, or if a V4 root manifest lists the file itself.

    Parameters
    ----------
    predicates
        Two predicates per stop: for a lower and for an upper edge of the filter's range at this stop.
    """
    count = len(predicates.lower)
    total = len(files)
    out = Spans(np.zeros(total, np.int64), np.full(total, count), np.zeros(total, np.bool_))
    for index, scan in enumerate(plan.roots):
        mine = np.flatnonzero((np.asarray(files.root) == index) & (np.asarray(files.root_row) >= 0))
        if not len(mine) or not len(scan.rows):
            continue
        found = predicates.spans(len(scan.rows), ManifestMetricsSources(plan.state, scan.root, scan.rows))
        places = np.searchsorted(scan.rows, np.asarray(files.root_row)[mine])
        one = found.take(places)
        out.first[mine], out.last[mine], out.known[mine] = one.first, one.last, one.known
    return out


def _left(plan: PlannedScan, files: LiveFiles, rest: Filter, sources: FileMetricsSources) -> Mask:
    """Return a mask, one value per file: whether the file may have a row that matches ``rest``.

    The value is False if the file's partition tuple and column metrics prove that no row matches, or if the manifest
    list (V4: the root manifest) proves it for the manifest that lists the file.

    Parameters
    ----------
    rest
        The filter without its range of the column that the range map shows. If this is the column ``id``, and the
        filter is ``id > 5 and a = 1``, then ``rest`` is ``a = 1``.
    sources
        The partition values and column metrics of the files.
    """
    out = _may(rest, files.batch, plan, sources)
    for index, scan in enumerate(plan.roots):
        mine = (np.asarray(files.root) == index) & (np.asarray(files.root_row) >= 0)
        if mine.any() and len(scan.rows):
            may = scan.filled & np.asarray(may_hold(plan.state, scan.root, scan.rows, rest))
            out[mine] &= may[np.searchsorted(scan.rows, np.asarray(files.root_row)[mine])]
    return out


def _may(wanted: Filter, batch: EntryBatch, plan: PlannedScan, sources: FileMetricsSources) -> Mask:
    out = evaluate_inclusive(wanted.expression, len(batch), sources)
    if wanted.partition:
        same, is_known = same_partition(wanted.partition, batch, plan.state.metadata, sources)
        out &= same | ~is_known
    return out


def _verdicts(plan: PlannedScan, files: LiveFiles) -> _Ints:
    """Return, for each file, whether the plan reads it, or why the plan skips it, as an index in `VERDICTS`.

    A file may be skipped for several reasons. The result is then the first of these: the manifest that lists the file
    is skipped, because the manifest list or V4 root manifest excludes it; the file's partition tuple excludes the file;
    the file's column metrics exclude the file.
    """
    out = np.full(len(files), _METRICS, np.int64)
    by_tuple = FileMetricsSources(files.batch, plan.state.metadata, statistics=False)
    out[~_may(plan.filter, files.batch, plan, by_tuple)] = _PARTITION
    for index, scan in enumerate(plan.roots):
        gone = np.isin(np.asarray(files.root_row), scan.pruned) & (np.asarray(files.root) == index)
        out[gone] = _MANIFEST
    out[np.asarray(planned_rows(plan, files))] = np.where(np.asarray(plan.files.whole), _WHOLE, _READ)
    return out


def _grouped(plan: PlannedScan, by: RangeBy, batch: EntryBatch) -> tuple[_Ints, tuple[str, ...]]:
    if by == "range" or not len(batch):
        return np.zeros(len(batch), np.int64), ("",)
    found = GROUPINGS[by](plan.state, batch)
    return found.codes, tuple(build.to_pylist(found.columns.column(0)))


def _notes(files: LiveFiles, name: str, metrics: ColumnMetrics | None, stops: int) -> tuple[str, ...]:
    out = []
    if files.unreadable:
        many = f"{files.unreadable:,} manifests" if files.unreadable > 1 else "1 manifest"
        out.append(f"{many} cannot be read in full: some files are not shown.")
    if not stops:
        out.append(f"No file has usable bounds of {name}: they are missing, or cannot be ordered.")
    elif metrics is not None and pa.types.is_string(metrics.lower.type):
        lengths = pc.utf8_length(metrics.lower)
        longest = pc.max(lengths).as_py() or 0
        cut = pc.sum(pc.equal(lengths, longest)).as_py() or 0
        if longest >= 16 and cut:
            effect = "an upper bound is then rounded up, so it may be above all values of the file"
            out.append(f"Bounds seem to be truncated to {longest} characters: {effect}.")
    return tuple(out)
