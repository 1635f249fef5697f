"""Compute the column metrics of new files, in the modes that the properties ``write.metadata.metrics.*`` set."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyColumn, AnyScalar, build
from iceexplore.arrow import compute as pc
from iceexplore.manifests import stats_type
from iceexplore.metadata import (
    ListType,
    MapType,
    NestedField,
    Schema,
    StructType,
    TableMetadata,
    Type,
    arrow_type,
    incremented,
    parse_transform,
    type_base,
)

__all__ = ["StatColumn", "bounds_as", "bounds_of", "stat_columns", "stats_arrays", "truncate_lower", "truncate_upper"]

Mode = Literal["none", "counts", "truncate", "full"]
_TRUNCATE = re.compile(r"truncate\((\d{1,9})\)", re.IGNORECASE)
#: By default, this many columns have metrics (Java: ``TableProperties.METRICS_MAX_INFERRED_COLUMN_DEFAULTS_DEFAULT``).
_INFERRED = 100
#: Types that have counts, but no comparable bounds.
_UNBOUNDED = frozenset(("geography", "geometry", "unknown", "variant"))


@dataclass(frozen=True)
class StatColumn:
    """A leaf column that may have statistics.

    Attributes
    ----------
    path
        Field names (and ``element``, ``key``, ``value``) from the top level.
    repeated
        Whether it is inside a list or map: such columns have counts, but no bounds (Java: ``ParquetMetrics``).
    mode, length
        The metrics mode from the properties, and the length in ``truncate(length)``.
    """

    field: NestedField
    path: tuple[str, ...]
    repeated: bool
    mode: Mode
    length: int

    @property
    def type(self) -> Type:
        """The column's type."""
        return self.field.type

    @property
    def bounded(self) -> bool:
        """Whether the column has bounds."""
        return self.mode in ("truncate", "full") and not self.repeated and type_base(self.type) not in _UNBOUNDED

    @property
    def cut(self) -> int | None:
        """The length in characters or bytes to which bounds are truncated; None if they are not."""
        return self.length if self.mode == "truncate" and type_base(self.type) in ("binary", "string") else None


def stat_columns(metadata: TableMetadata, schema: Schema) -> list[StatColumn]:
    """Return the leaf columns of a schema and their metrics modes (Java: ``MetricsConfig.fromProperties``).

    Columns of type `unknown` are not in data files, so they have no metrics. The bounds of identity partition columns
    are never truncated, because they are the partition value (V4 proposal: "identity partition strings untruncated").
    """
    properties = metadata.properties
    default = _mode(properties.get("write.metadata.metrics.default"))
    inferred = _INFERRED
    text = properties.get("write.metadata.metrics.max-inferred-column-defaults", "")
    if text.isascii() and text.isdecimal():
        inferred = int(text)
    spec = metadata.spec()
    whole = {f.source_id for f in spec.fields if parse_transform(f.transform).is_identity} if spec else set()
    out = []
    for i, (path, field, repeated) in enumerate(_leaves((), schema.fields, False)):
        if type_base(field.type) == "unknown":
            continue
        given = _mode(properties.get("write.metadata.metrics.column." + ".".join(path)))
        late: tuple[Mode, int] = ("none", 0) if i >= inferred else ("truncate", 16)
        mode, length = given or default or late
        if field.field_id in whole and mode == "truncate":
            mode = "full"
        out.append(StatColumn(field, path, repeated, mode, length))
    return out


def _mode(text: str | None) -> tuple[Mode, int] | None:
    if text is None:
        return None
    lower = text.strip().lower()
    if lower in ("none", "counts", "full"):
        return lower, 0  # type: ignore[return-value]
    match = _TRUNCATE.fullmatch(lower)
    return ("truncate", int(match[1])) if match and int(match[1]) > 0 else None


def _leaves(
    path: tuple[str, ...], fields: Sequence[NestedField], repeated: bool
) -> Iterator[tuple[tuple[str, ...], NestedField, bool]]:
    for f in fields:
        here = (*path, f.name)
        match f.type:
            case StructType(children):
                yield from _leaves(here, children, repeated)
            case ListType(element):
                yield from _leaves(here, (element,), True)
            case MapType(key, value):
                yield from _leaves(here, (key, value), True)
            case _:
                yield here, f, repeated


def truncate_lower(values: AnyArray, length: int) -> AnyArray:
    """Return strings or binaries truncated to a length; they stay lower bounds."""
    if pa.types.is_string(values.type):
        return pc.utf8_slice_codeunits(values, 0, length)
    return pc.binary_slice(values, 0, length)


def truncate_upper(values: AnyArray, length: int) -> AnyArray:
    """Return strings or binaries truncated to a length and incremented, so that they stay upper bounds.

    A value without an upper bound of that length becomes null. The results are those of Java's
    ``UnicodeUtil.truncateStringMax`` and ``BinaryUtil.truncateBinaryMax``.
    """
    cut = truncate_lower(values, length)
    if pc.all(pc.fill_null(pc.equal(cut, values), True)).as_py():
        return values
    encoded = values.dictionary_encode()
    raised = [
        None if v is None or len(v) <= length else incremented(v[:length]) for v in encoded.dictionary.to_pylist()
    ]
    short = [v if v is not None and len(v) <= length else r
             for v, r in zip(encoded.dictionary.to_pylist(), raised, strict=True)]  # fmt: skip
    return build.array(short, values.type).take(encoded.indices)


def bounds_of(column: StatColumn, values: AnyColumn) -> tuple[AnyScalar, AnyScalar, int | None]:
    """Return the lower bound, the upper bound and the NaN count of values, ignoring nulls.

    Without bounds, both are null scalars; for types without NaN, the count is None. ``values`` must have the column's
    Arrow type. NaN is never a bound (spec, "Data File Fields", note on bounds).
    """
    kind = arrow_type(column.type)
    nan: int | None = None
    if pa.types.is_floating(values.type):
        is_nan = pc.fill_null(pc.is_nan(values), False)
        nan = pc.sum(is_nan).as_py() or 0
        values = values.filter(pc.invert(is_nan)) if nan else values
    none = pa.scalar(None, kind)
    if not column.bounded or len(values) == values.null_count:
        return none, none, nan
    found = pc.min_max(values)
    low, high = found["min"], found["max"]
    if nan is not None:  # -0 sorts below 0 (spec, "Sorting"), but compares equal
        low = pa.scalar(-0.0, kind) if low.as_py() == 0 else low
        high = pa.scalar(0.0, kind) if high.as_py() == 0 else high
    return *bounds_as(column, low, high), nan


def bounds_as(column: StatColumn, low: AnyScalar, high: AnyScalar) -> tuple[AnyScalar, AnyScalar]:
    """Return bounds truncated as the column's mode requires."""
    if column.cut is None:
        return low, high
    kind = arrow_type(column.type)
    below = truncate_lower(pa.array([low.as_py()], kind), column.cut)[0]
    return below, truncate_upper(pa.array([high.as_py()], kind), column.cut)[0]


def stats_arrays(columns: Sequence[StatColumn], rows: Sequence[Mapping[int, Mapping[str, Any]]]) -> dict[int, Any]:
    """Return the metrics of several files as Arrow struct arrays by field id, with one item per file.

    Parameters
    ----------
    rows
        For each file, by field id: any of ``lower``, ``upper`` (Arrow scalars or Python values), ``value_count``,
        ``null_count``, ``nan_count``, ``column_size``, ``average_length``, ``max_length``, ``tight_bounds``.
    """
    out = {}
    for column in columns:
        number = column.field.field_id
        kind = stats_type(arrow_type(column.type))
        found = [row.get(number) for row in rows]
        if not any(found):
            continue
        children = []
        for child in kind:
            children.append(_column([None if f is None else f.get(child.name) for f in found], child.type))
        mask = pa.array([f is None for f in found])
        out[number] = pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
    return out


def _column(values: list[Any], kind: pa.DataType) -> AnyArray:
    # Arrow scalars are not converted to Python values, because Python has no type for nanoseconds.
    pieces = [v.cast(kind) if isinstance(v, pa.Scalar) else pa.scalar(v, kind) for v in values]
    return pa.array(pieces, kind) if pieces else pa.array([], kind)
