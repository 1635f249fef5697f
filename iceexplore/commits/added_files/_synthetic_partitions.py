"""Constraints from partition tuples: the values that columns of a file in that partition may have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.commits.added_files._synthetic_values import DAY, Numbers, line_of, values_on
from iceexplore.errors import OptionError
from iceexplore.metadata import (
    INSTANT_UNITS,
    NestedField,
    Type,
    apply_transform,
    arrow_type,
    decimal_parameters,
    integers_of,
    transform_parts,
    type_base,
    unscaled,
)
from iceexplore.planning import PartitionColumn

__all__ = ["Constraint", "constraints_of"]

#: How many values are kept per bucket, and how many are tried to find one.
_KEPT = 8
_TRIES = 1 << 19


@dataclass
class Constraint:
    """The values that a column may have, per partition tuple.

    Attributes
    ----------
    null
        Whether the column is null in every row.
    low, high
        First and last number on the type's line (`line_of`).
    exact
        The only value, in the column's Arrow type; null if there may be several.
    prefix
        The prefix of every string or binary; None if there is none.
    pools
        Numbers on the line whose values are in the tuple's buckets; None without a bucket transform.
    """

    null: np.ndarray[Any, Any]
    low: Numbers
    high: Numbers
    exact: pa.Array
    prefix: pa.Array | None = None
    pools: list[Numbers] | None = None


def constraints_of(
    columns: Sequence[PartitionColumn], tuples: pa.StructArray, now_ms: int, rng: np.random.Generator
) -> dict[int, Constraint]:
    """Return the constraints of each source column, by its field id.

    Raises
    ------
    OptionError
        No row can have a tuple, for example a day and an hour of another day.
    """
    by_source: dict[int, list[int]] = {}
    for i, column in enumerate(columns):
        if column.source is not None:
            by_source.setdefault(column.source.field_id, []).append(i)
    out = {}
    for number, places in by_source.items():
        source = columns[places[0]].source
        assert source is not None
        given = [(columns[i], pc.struct_field(tuples, [i])) for i in places]
        given = [(c, v) for c, v in given if transform_parts(c.field.transform)[0] != "void"]
        if given:
            out[number] = _constraint(source, given, len(tuples), now_ms, rng)
    return out


def _constraint(
    source: NestedField,
    given: list[tuple[PartitionColumn, pa.Array]],
    count: int,
    now_ms: int,
    rng: np.random.Generator,
) -> Constraint:
    nulls = [np.asarray(v.is_null()) for c, v in given if _is_plain(c)]
    null = nulls[0] if nulls else np.zeros(count, dtype=bool)
    for other in nulls[1:]:
        if not np.array_equal(null, other):
            at = int(np.flatnonzero(null != other)[0])
            raise _impossible(source, given, at, "one is null, another is not")
    if source.required and null.any():
        raise _impossible(source, given, int(np.flatnonzero(null)[0]), "the column is required")
    first, last = line_of(source.type, source.field_id, now_ms)
    narrow = any(transform_parts(c.field.transform)[0] not in ("bucket", "void") and _is_plain(c) for c, _ in given)
    bucketed = any(transform_parts(c.field.transform)[0] == "bucket" for c, _ in given)
    if bucketed and not narrow and type_base(source.type) in ("int", "long"):
        last = 2**31 - 1  # finding values for many buckets needs a wide range
    made = Constraint(
        null, np.full(count, first, np.int64), np.full(count, last, np.int64), pa.nulls(count, arrow_type(source.type))
    )
    unbounded = True
    for column, values in given:
        unbounded = _narrowed(made, source.type, column, values, unbounded)
    exact = np.asarray(made.exact.is_valid())
    for column, values in given:
        if exact.any() and _is_plain(column):
            got = apply_transform(column.field.transform, source.type, made.exact)
            same = np.asarray(pc.fill_null(pc.equal(got, values.cast(got.type)), True))
            if not same.all():
                raise _impossible(source, given, int(np.flatnonzero(~same)[0]), "they come from different values")
    if (wrong := np.flatnonzero((made.low > made.high) & ~null & ~exact)).size:
        raise _impossible(source, given, int(wrong[0]), "no value matches all of them")
    buckets = [(c, v) for c, v in given if transform_parts(c.field.transform)[0] == "bucket"]
    if buckets:
        made.pools = _pools(made, source, buckets, rng)
    return made


def _is_plain(column: PartitionColumn) -> bool:
    """Return whether the transform is null if and only if its column is null."""
    name, width = transform_parts(column.field.transform)
    return width is not None or name in ("identity", "year", "month", "day", "hour")


def _narrowed(made: Constraint, kind: Type, column: PartitionColumn, values: pa.Array, unbounded: bool) -> bool:
    """Narrow a constraint by one partition field; return whether its interval is still the type's default."""
    name, width = transform_parts(column.field.transform)
    base = type_base(kind)
    if name == "identity":
        made.exact = pc.coalesce(values.cast(made.exact.type), made.exact)
    elif name in ("year", "month", "day", "hour"):
        low, high = _instants(name, base, integers_of(values), column)
        return _cut(made, low, high, unbounded)
    elif name == "truncate" and width and base in ("int", "long"):
        start = integers_of(values)
        top = 2**31 - 1 if base == "int" else 2**63 - 1
        return _cut(made, start, np.minimum(start, top - width + 1) + width - 1, unbounded)
    elif name == "truncate" and width and base == "decimal":
        scale = (decimal_parameters(kind) or (1, 0))[1]
        numbers = [0 if v is None else unscaled(v, scale) for v in values.to_pylist()]
        if any(not -(2**63) <= n < 2**63 - width for n in numbers):
            raise OptionError(f"partition field {column.field.name}: synthetic decimals have at most 18 digits")
        start = np.array(numbers, dtype=np.int64)
        return _cut(made, start, start + width - 1, unbounded)
    elif name == "truncate" and width and base in ("string", "binary"):
        _prefixed(made, values, width, column)
    return unbounded


def _cut(made: Constraint, low: Numbers, high: Numbers, unbounded: bool) -> bool:
    made.low = low if unbounded else np.maximum(made.low, low)
    made.high = high if unbounded else np.minimum(made.high, high)
    return False


def _instants(name: str, base: str, numbers: Numbers, column: PartitionColumn) -> tuple[Numbers, Numbers]:
    """Return the first and last date or instant of each year, month, day or hour."""
    unit = INSTANT_UNITS.get(base, 1)
    if name in ("year", "month"):
        code = "Y" if name == "year" else "M"
        if len(numbers) and np.abs(numbers).max() > 12 * 300_000:
            raise OptionError(f"partition field {column.field.name}: the date is too far from 1970")
        days = numbers.astype(f"datetime64[{code}]").astype("datetime64[D]").astype(np.int64)
        ends = (numbers + 1).astype(f"datetime64[{code}]").astype("datetime64[D]").astype(np.int64)
        size = 1 if base == "date" else DAY * unit
        low, high = _times(days, size, column), _times(ends, size, column) - 1
        return low, high
    size = 1 if base == "date" else (DAY if name == "day" else 3600) * unit
    return _times(numbers, size, column), _times(numbers + 1, size, column) - 1


def _times(numbers: Numbers, size: int, column: PartitionColumn) -> Numbers:
    if len(numbers) and max(abs(int(numbers.min())), abs(int(numbers.max()))) * size >= 2**63:
        raise OptionError(f"partition field {column.field.name}: out of the range of the column's type")
    return numbers * size


def _prefixed(made: Constraint, values: pa.Array, width: int, column: PartitionColumn) -> None:
    """Constrain strings: values of the full width are prefixes, shorter ones are exact values."""
    text = pa.types.is_string(values.type)
    length = pc.utf8_length(values) if text else pc.binary_length(values)
    if (long := pc.fill_null(pc.greater(length, width), False)).true_count:
        at = long.to_pylist().index(True)
        raise OptionError(
            f"partition field {column.field.name}: {values[at].as_py()!r} is not a value of {column.field.transform}"
        )
    whole = pc.less(length, width)
    made.exact = pc.coalesce(made.exact, pc.if_else(whole, values, pa.scalar(None, values.type)))
    if made.prefix is None:
        made.prefix = pc.fill_null(values, "" if text else b"")
        return
    pairs = list(zip(made.prefix.to_pylist(), pc.fill_null(values, "" if text else b"").to_pylist(), strict=True))
    for a, b in pairs:
        if not (a.startswith(b) or b.startswith(a)):
            raise OptionError(f"partition field {column.field.name}: no value starts with both {a!r} and {b!r}")
    made.prefix = pa.array([max(pair, key=len) for pair in pairs], values.type)


def _pools(
    made: Constraint, source: NestedField, buckets: list[tuple[PartitionColumn, pa.Array]], rng: np.random.Generator
) -> list[Numbers]:
    """Return numbers on the line whose values are in each tuple's buckets."""
    count = len(made.low)
    wanted = np.stack([integers_of(v) for _, v in buckets], axis=1)
    open_ = ~made.null & ~np.asarray(made.exact.is_valid())
    prefixes = [None] * count if made.prefix is None else made.prefix.to_pylist()
    groups: dict[Any, list[int]] = {}
    for i in np.flatnonzero(open_).tolist():
        groups.setdefault((int(made.low[i]), int(made.high[i]), prefixes[i]), []).append(i)
    pools = [np.zeros(0, np.int64)] * count
    for (low, high, prefix), members in groups.items():
        missing = {tuple(wanted[i].tolist()) for i in members}
        found: dict[tuple[int, ...], set[int]] = {key: set() for key in missing}
        size, tried = min(_TRIES, 8 * len(missing) + 64), 0
        while tried < _TRIES and any(not f for f in found.values()):
            everything = high - low < size
            numbers = np.arange(low, high + 1) if everything else rng.integers(low, high, size, endpoint=True)
            heads = None if prefix is None else pa.array([prefix] * len(numbers), made.exact.type)
            values = values_on(source.type, numbers, heads)
            got = [integers_of(apply_transform(c.field.transform, source.type, values)) for c, _ in buckets]
            for number, key in zip(numbers.tolist(), zip(*(g.tolist() for g in got), strict=True), strict=True):
                if key in found and len(found[key]) < _KEPT:
                    found[key].add(number)
            tried, size = tried + size, min(_TRIES, size * 4)
            if everything:
                break
        for i in members:
            key = tuple(wanted[i].tolist())
            if not found[key]:
                raise _impossible(source, buckets, i, "no value in these buckets was found")
            pools[i] = np.array(sorted(found[key]), dtype=np.int64)
    return pools


def _impossible(source: NestedField, given: list[tuple[PartitionColumn, pa.Array]], at: int, why: str) -> OptionError:
    given_values = ", ".join(f"{c.field.name}={v[at].as_py()!r}" for c, v in given)
    return OptionError(f"no row of {source.name} has {given_values}: {why}")
