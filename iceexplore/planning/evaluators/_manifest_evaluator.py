"""Select the manifests that may list files that a scan needs, by partition summaries or by V4 column metrics."""

from __future__ import annotations

from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyListArray, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError
from iceexplore.expressions import Computed, Predicate
from iceexplore.graph import TableState
from iceexplore.manifests import Manifest, whole
from iceexplore.metadata import (
    PartitionField,
    PartitionSpec,
    TableMetadata,
    arrow_type,
    decode_values,
    is_known_transform,
    parse_transform,
    partition_type,
    result_type,
)
from iceexplore.planning.evaluators._column_metrics import ColumnMetrics, Mask
from iceexplore.planning.evaluators._file_evaluator import (
    MetricsSource,
    evaluate_inclusive,
    is_partition_value,
    ordered_argument,
    partition_questions,
    statistics_source,
    top_level_ids,
    transformed,
    trusted_rows,
    value_source,
)
from iceexplore.planning.evaluators._filter import Filter, tuple_predicate
from iceexplore.planning.evaluators._metrics_evaluator import may_match
from iceexplore.planning.evaluators._partition_values import partition_columns
from iceexplore.planning.evaluators._projection import project

__all__ = ["ManifestMetricsSources", "may_hold"]

_Rows = npt.NDArray[Any]


def may_hold(
    state: TableState, root: Manifest, rows: _Rows, wanted: Filter, *, files: Literal["data", "deletes"] = "data"
) -> pa.BooleanArray:
    """Return which of the given manifests may list a file that a scan needs.

    The manifests are not read. Only the metrics in ``root`` are used: the partition summaries in a manifest list, or
    the column metrics in a V4 root manifest.

    Parameters
    ----------
    root
        The manifest list or V4 root manifest that lists the manifests.
    rows
        The row numbers, in ``root``, of the manifests.
    wanted
        The filter of the scan.
    files
        ``data`` for manifests of data files: the scan needs a data file if a row may match the filter.

        ``deletes`` for manifests of delete files: the scan needs a delete file if it may apply to a row that matches.
        In this case, only the metrics of partition fields are used. Column metrics describe the contents of the delete
        files: file paths, positions and, in equality delete files, also columns that do not identify the deleted rows.
        An unpartitioned spec has no partition fields, so a manifest of such a spec is always kept. A V4 manifest may
        hold deletes of several specs, so in V4, a partition field is used only if every spec of the table has it.

    Returns
    -------
    pyarrow.BooleanArray
        One value per element of ``rows``: False only if the manifest certainly lists no file that the scan needs.

    Raises
    ------
    OptionError
        ``files`` is neither ``data`` nor ``deletes``.
    """
    if files not in ("data", "deletes"):
        raise OptionError(f"files={files!r}: choose 'data' or 'deletes'")
    sources = ManifestMetricsSources(state, root, rows, statistics=files == "data")
    return pa.array(evaluate_inclusive(wanted.expression, len(rows), sources) & sources.may_have(wanted))


class ManifestMetricsSources:
    """The metrics of manifests: partition summaries in a manifest list, or column metrics in a V4 root manifest.

    Call the object with a predicate: it returns the metrics that may prove, for some manifests, that no row matches.
    The manifests are not read.

    Parameters
    ----------
    root
        The manifest list or V4 root manifest that has the metrics.
    rows
        The row numbers, in ``root``, of the manifests. All returned metrics have one row per manifest, in this order.
    statistics
        False to return only the metrics of partition fields. True to return also the metrics that a V4 root manifest
        has of columns, and of transforms such as ``day(ts)`` that the table metadata (V4) lists under the key
        ``expressions``.
    """

    def __init__(self, state: TableState, root: Manifest, rows: _Rows, *, statistics: bool = True) -> None:
        self._metadata: TableMetadata = state.metadata
        self._root = root
        self._rows = np.asarray(rows, np.int64)
        self._statistics = statistics
        # True for delete manifests in a V4 root manifest. Callers pass ``statistics=False`` for delete manifests, and
        # only for these, because column metrics of delete files do not describe the deleted rows.
        #
        # A V4 delete manifest may hold deletes of several partition specs. If one of these specs lacks a partition
        # field, the root manifest's metrics of this field do not describe the deletes of that spec, and thus prove
        # nothing about the manifest. So if `_mixed` is true, a partition field is used only if every spec of the table
        # has it (see `_bounds`).
        self._mixed = not statistics and root.dialect.has_root_manifest
        self._expressions = frozenset(e.expr_id for e in state.metadata.expressions)
        self._columns: dict[int, ColumnMetrics | None] = {}
        self._fields: dict[int, dict[str, ColumnMetrics]] = {}
        numbers = np.asarray(pc.fill_null(whole(root.entries["partition_spec_id"]), -1))[self._rows]
        found = ((state.metadata.spec(n), numbers == n) for n in np.unique(numbers).tolist())
        self.specs: list[tuple[PartitionSpec, Mask]] = [(spec, mine) for spec, mine in found if spec is not None]

    def __call__(self, p: Predicate | Computed) -> list[MetricsSource]:
        """Return the metrics that may prove, for some manifests, that no row satisfies ``p``.

        For a predicate on a column, such as ``id = 5``, these are the metrics of the partition fields that are computed
        from ``id``, such as ``bucket[16](id)``. If two partition specs have such a field, the list has an element for
        each spec. If the object was made with ``statistics=True``, the list also has the metrics of ``id``, and of
        transforms of ``id``, in a V4 root manifest (see the method `statistics`).

        For a comparison of a computed value, such as ``day(ts) = date '2024-05-17'``, these are the metrics of the
        partition fields that store ``day(ts)``. With ``statistics=True``, those of ``day(ts)`` and ``ts`` in a V4 root
        manifest follow (see `_about_value`).
        """
        if isinstance(p, Computed):
            return self._about_value(p)
        out = []
        for spec, mine in self.specs:
            for column, may, _ in partition_questions(p, spec, self._metadata):
                found = self.fields(spec, mine).get(column.key) if self._bounds(column.field) else None
                if found is not None:
                    field = column.field
                    where = trusted_rows(found, mine, field.transform, p.field_id, self._metadata)
                    out.append(
                        MetricsSource(may, None, found, where, "partition", field.name, field.transform, column.type)
                    )
        return out + self.statistics(p) if self._statistics else out

    def _about_value(self, p: Computed) -> list[MetricsSource]:
        """Return the metrics that may prove, for some manifests, that no row satisfies ``p``.

        The left side of ``p`` is a computed value, as in ``day(ts) = date '2024-05-17'``. For this example, the result
        begins with the metrics of the partition fields that store ``day(ts)``. If the object was made with
        ``statistics=True``, metrics from a V4 root manifest follow: first those of ``day(ts)``, which exist only if the
        table metadata lists ``day(ts)`` under the key ``expressions`` (V4 proposal), then those of the column ``ts``,
        converted to metrics of ``day(ts)``.
        """
        out = []
        for spec, mine in self.specs:
            for column in partition_columns(self._metadata, spec):
                if is_partition_value(p.value, column) and self._bounds(column.field):
                    found = self.fields(spec, mine).get(column.key)
                    if found is not None:
                        out.append(value_source(p, found, mine, column, self._metadata))
        if not self._statistics:
            return out
        evidence = [self._column(number) for number in p.ids]
        ordered = ordered_argument(p.value)
        metrics = None if ordered is None else self._column(ordered.field_id)
        evidence.append(None if metrics is None else transformed(p, metrics))
        return out + [statistics_source(p, e) for e in evidence if e is not None]

    def statistics(self, p: Predicate) -> list[MetricsSource]:
        """Return the metrics of the column that ``p`` compares, and of its transforms, from a V4 root manifest.

        For ``id = 5``, the first element has the metrics of ``id``. It is followed by one element for each transform of
        ``id`` that has metrics, such as ``bucket[16](id)``. In such an element, the predicate is not ``p`` but its
        projection to the transform: here, that the bucket of ``id`` is the bucket of 5. Metrics of a transform exist
        only if the table metadata (V4) lists the transform under the key ``expressions``.

        The list is empty for a manifest list, and if neither the column nor any transform of it has metrics.
        """
        out = []
        found = self._column(p.field_id)
        if found is not None:
            out.append(MetricsSource(p, None, found, None, "statistics", p.name, "identity", p.type))
        for e in self._metadata.expressions:
            if e.source_ids != (p.field_id,) or p.type is None or parse_transform(e.transform).is_identity:
                continue
            may = project(p, e.transform, p.type, strict=False)
            found = None if may is None else self._column(e.expr_id)
            if found is not None:
                kind = result_type(e.transform, p.type)
                name = e.name or f"{e.transform}({p.name})"
                where = trusted_rows(found, None, e.transform, p.field_id, self._metadata)
                out.append(MetricsSource(may, None, found, where, "statistics", name, e.transform, kind))
        return out

    def may_have(self, wanted: Filter) -> Mask:
        """Return a mask, one value per manifest: whether it may hold a file with the partition values of a filter.

        The partition values are ``wanted.partition``, a dictionary by partition field name. A partition field that is
        not in the dictionary may have any value. If the dictionary is empty, the mask is True for all manifests.
        Otherwise, it is False only where a partition field's metrics, in the manifest list or V4 root manifest, prove
        that no file has the given value.
        """
        may = np.ones(len(self._rows), np.bool_)
        for spec, mine in self.specs if wanted.partition else ():
            for column in partition_columns(self._metadata, spec):
                found = None
                if column.field.name in wanted.partition and self._bounds(column.field):
                    found = self.fields(spec, mine).get(column.key)
                if found is not None:
                    p = tuple_predicate(column, wanted.partition[column.field.name])
                    may &= ~mine | may_match(p, found)
        return may

    def _bounds(self, field: PartitionField) -> bool:
        """Return whether the metrics of a partition field describe all files of a manifest.

        If they describe only some of the files, they prove nothing about the manifest. This happens only in V4, where a
        delete manifest may hold deletes of several specs: the metrics of a field describe all of these deletes only if
        every spec of the table has a field with the same source columns and transform. For data manifests, and for all
        manifests before V4, the result is True.
        """
        same = (field.source_ids, field.transform)
        specs = self._metadata.partition_specs
        return not self._mixed or all(any((f.source_ids, f.transform) == same for f in s.fields) for s in specs)

    def _column(self, number: int) -> ColumnMetrics | None:
        """Return the metrics that a V4 root manifest has of a column or a transform, one row per manifest.

        The result is None if there are no such metrics, as always in a manifest list.

        Parameters
        ----------
        number
            The field id of a column. For a transform, such as ``day(ts)``: the id with which the table metadata (V4)
            lists it under the key ``expressions``.
        """
        if number not in self._columns:
            found = self._root.stats(number)
            given = (found.value_count, found.lower, found.null_count)
            made = None
            if not pa.types.is_nested(found.lower.type) and any(a.null_count < len(a) for a in given):
                nested = number not in top_level_ids(self._metadata) | self._expressions
                names = ["lower", "upper", "value_count", "null_count", "nan_count"]
                stats = pa.StructArray.from_arrays([getattr(found, n) for n in names], names)
                made = ColumnMetrics.of_stats(stats.take(build.array(self._rows)), nested=nested)
            self._columns[number] = made
        return self._columns[number]

    def fields(self, spec: PartitionSpec, mine: Mask) -> dict[str, ColumnMetrics]:
        """Return the metrics of a spec's partition fields, with one row per manifest.

        They come from the manifest list (`_summaries`) or from the V4 root manifest (`_derived`). The keys are the ids
        of the partition fields, as text. Fields without metrics are left out.

        Parameters
        ----------
        mine
            One value per manifest: True if the manifest list or V4 root manifest states that the manifest has this
            spec. Callers must use only the rows of these manifests.
        """
        if spec.spec_id not in self._fields:
            self._fields[spec.spec_id] = self._summaries(spec, mine) or self._derived(spec)
        return self._fields[spec.spec_id]

    def _derived(self, spec: PartitionSpec) -> dict[str, ColumnMetrics]:
        """Return the metrics that a V4 root manifest has for the partition fields of a spec.

        The keys are the ids of the partition fields, as text. A V4 root manifest has metrics of columns, and of the
        transforms that the table metadata lists under the key ``expressions``. For a field with the transform
        ``identity``, the result has the metrics of its source column. For a field such as ``bucket[16](id)``, it has
        the metrics of the item in ``expressions`` with the same transform and source column. Fields without metrics,
        fields with several source columns and fields with an unknown transform are left out.
        """
        out = {}
        for f in spec.fields:
            if len(f.source_ids) != 1 or not is_known_transform(f.transform):
                continue
            expressions = (
                e.expr_id
                for e in self._metadata.expressions
                if (e.source_ids, e.transform) == (f.source_ids, f.transform)
            )
            number = f.source_id if parse_transform(f.transform).is_identity else next(expressions, None)
            found = None if number is None else self._column(number)
            if found is not None:
                out[str(f.field_id)] = found
        return out

    def _summaries(self, spec: PartitionSpec, mine: Mask) -> dict[str, ColumnMetrics]:
        """Convert the partition summaries in a manifest list to metrics of a spec's partition fields.

        The keys are the ids of the partition fields, as text. The metrics have one row per manifest. All metrics in a
        row are unknown if the manifest has another spec, or if the number of its summaries differs from the number of
        the spec's fields. If this is so for all manifests, the result is empty. So it is always empty for a V4 root
        manifest, which has no partition summaries. Fields of type ``unknown`` are left out.

        Parameters
        ----------
        mine
            One value per manifest: True if the manifest list states that the manifest has this spec.
        """
        column = whole(self._root.entries["partition_summaries"]).take(build.array(self._rows))
        lengths = np.asarray(pc.fill_null(pc.list_value_length(column), 0))
        there = mine & (lengths == len(spec.fields))
        if not spec.fields or not there.any():
            return {}
        flat = cast(AnyListArray, column.filter(pa.array(there))).flatten()
        places = np.where(there, np.cumsum(there) - 1, -1)
        out = {}
        for i, (f, typed) in enumerate(zip(spec.fields, partition_type(spec, self._metadata).fields, strict=True)):
            if pa.types.is_null(arrow_type(typed.type)):
                continue
            part = flat.take(build.array(np.arange(i, len(flat), len(spec.fields))))
            raw = {child.name: pc.struct_field(part, [j]) for j, child in enumerate(part.type)}
            lower, upper = (decode_values(typed.type, raw[n])[0] for n in ("lower_bound", "upper_bound"))
            unbounded = np.asarray(raw["lower_bound"].is_null())
            found = ColumnMetrics.of_summaries(lower, upper, raw["contains_null"], raw["contains_nan"], unbounded)
            out[str(f.field_id)] = found.take(places)
        return out
