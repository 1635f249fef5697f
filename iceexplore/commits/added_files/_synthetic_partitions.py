"""Derive from a partition tuple which values the columns may have in a file of this partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.commits.added_files._synthetic_values import Numbers, line_of, values_on
from iceexplore.errors import OptionError
from iceexplore.metadata import (
    NestedField,
    Preimage,
    arrow_type,
    integers_of,
    type_base,
)
from iceexplore.planning import PartitionColumn

__all__ = ["Constraint", "constraints_of"]

#: The maximum number of values in each pool (see `Constraint.pools`).
_KEPT = 8
#: `_pools` gives up after it has tried about this many random values and found none for some partition tuple.
_TRIES = 1 << 19


@dataclass
class Constraint:
    """The values that one column may have in each of several partitions, which are given by their partition tuples.

    Each attribute has one item per partition; only ``prefix`` and ``pools`` can be None as a whole.

    Attributes
    ----------
    null
        Whether the column is null in every row of the partition.
    low, high
        The lowest and highest possible value, as int64 numbers, which `values_on` converts to the column's type.
    exact
        The only possible value, in the column's Arrow type; null if several values are possible.
    prefix
        The prefix that each string or binary value must have; None if values need no prefix.
    pools
        For each partition, up to eight possible values, which are in the buckets that the partition tuple requires.
        They are int64 numbers from ``low`` to ``high`` in ascending order, which `values_on` converts to the column's
        type. A partition has no numbers if the column is null in every row or has an ``exact`` value. None if the
        column has no bucket transform.
    """

    null: np.ndarray[Any, Any]
    low: Numbers
    high: Numbers
    exact: AnyArray
    prefix: AnyArray | None = None
    pools: list[Numbers] | None = None


def constraints_of(
    columns: Sequence[PartitionColumn], tuples: pa.StructArray, now_ms: int, rng: np.random.Generator
) -> dict[int, Constraint]:
    """Return the values that each source column of a partition field may have in each of the partitions.

    The keys are the field ids of the source columns. Columns that have only void transforms are left out.

    Parameters
    ----------
    columns
        The partition fields, each with its source column.
    tuples
        The partition tuples of the partitions.
    now_ms
        The time of the commit, in milliseconds since 1970. Plausible dates and timestamps are up to 30 days older.
    rng
        The random generator with which values in the required buckets are searched.

    Raises
    ------
    OptionError
        No row can have one of the tuples, for example a day together with an hour of a different day.
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
        given = [(c, v) for c, v in given if not c.transform.is_void]
        if given:
            out[number] = _constraint(source, given, len(tuples), now_ms, rng)
    return out


def _constraint(
    source: NestedField,
    given: list[tuple[PartitionColumn, AnyArray]],
    count: int,
    now_ms: int,
    rng: np.random.Generator,
) -> Constraint:
    nulls = [np.asarray(v.is_null()) for c, v in given if c.transform.is_known]
    null = nulls[0] if nulls else np.zeros(count, dtype=bool)
    for other in nulls[1:]:
        if not np.array_equal(null, other):
            at = int(np.flatnonzero(null != other)[0])
            raise _impossible(source, given, at, "one is null, another is not")
    if source.required and null.any():
        raise _impossible(source, given, int(np.flatnonzero(null)[0]), "the column is required")
    first, last = line_of(source.type, source.field_id, now_ms)
    known = [(c, v, _preimage(c, source, v)) for c, v in given if c.transform.is_known]
    buckets = [(c, v) for c, v, found in known if found is None]
    if buckets and len(buckets) == len(known) and type_base(source.type) in ("int", "long"):
        # If there are many buckets, some of them may contain no number of the usual range, which is small.
        last = 2**31 - 1
    made = Constraint(
        null,
        np.full(count, first, np.int64),
        np.full(count, last, np.int64),
        build.nulls(count, arrow_type(source.type)),
    )
    unbounded = True
    for column, _, found in known:
        if found is not None:
            unbounded = _narrowed(made, found, column, unbounded)
    exact = np.asarray(made.exact.is_valid())
    for column, values, _ in known:
        if exact.any():
            got = column.transform.apply(source.type, made.exact)
            same = np.asarray(pc.fill_null(pc.equal(got, values.cast(got.type)), True))
            if not same.all():
                raise _impossible(source, given, int(np.flatnonzero(~same)[0]), "they require different values")
    if (wrong := np.flatnonzero((made.low > made.high) & ~null & ~exact)).size:
        raise _impossible(source, given, int(wrong[0]), "no value of the column matches all of them")
    if buckets:
        made.pools = _pools(made, source, buckets, rng)
    return made


def _preimage(column: PartitionColumn, source: NestedField, values: AnyArray) -> Preimage | None:
    try:
        return column.transform.preimage(source.type, values)
    except ValueError as error:
        raise OptionError(f"partition field {column.field.name}: {error}") from None


def _narrowed(made: Constraint, found: Preimage, column: PartitionColumn, unbounded: bool) -> bool:
    """Narrow the constraint ``made`` to the values that one more partition field allows.

    Parameters
    ----------
    made
        The constraint, which is changed in place. At first, ``low`` and ``high`` are a default range of plausible
        values. The first range that a partition field requires, such as the seconds of one day, replaces the default
        range. If a further field also requires a range, only the overlap of the two ranges is kept.
    found
        The values that the partition field allows in each partition: a range, one single value, or all values with a
        prefix.
    column
        The partition field, for the error.
    unbounded
        Whether ``low`` and ``high`` are still the default range.

    Returns
    -------
    bool
        Whether ``low`` and ``high`` are still the default range after this call.
    """
    if found.exact is not None:
        made.exact = pc.coalesce(found.exact, made.exact)
    if found.prefix is not None:
        made.prefix = found.prefix if made.prefix is None else _longer(made.prefix, found.prefix, column)
    if found.low is not None and found.high is not None:
        made.low = found.low if unbounded else np.maximum(made.low, found.low)
        made.high = found.high if unbounded else np.minimum(made.high, found.high)
        return False
    return unbounded


def _longer(some: AnyArray, others: AnyArray, column: PartitionColumn) -> AnyArray:
    """Return the longer one of two prefixes for each partition tuple.

    Two partition fields of one column can each require a prefix. For example, if ``truncate[1]`` requires ``a`` and
    ``truncate[3]`` requires ``abc``, then values must start with ``abc``.

    Parameters
    ----------
    some, others
        For each partition tuple, the prefix that one partition field requires, and the prefix that another requires.
    column
        The partition field that requires the prefixes ``others``; it is named in the error.

    Raises
    ------
    OptionError
        No value starts with both prefixes of a tuple, for example ``a`` and ``bcd``.
    """
    pairs = list(zip(build.to_pylist(some), build.to_pylist(others), strict=True))
    for a, b in pairs:
        if not (a.startswith(b) or b.startswith(a)):
            raise OptionError(f"partition field {column.field.name}: no value starts with both {a!r} and {b!r}")
    return build.array([max(pair, key=len) for pair in pairs], some.type)


def _pools(
    made: Constraint, source: NestedField, buckets: list[tuple[PartitionColumn, AnyArray]], rng: np.random.Generator
) -> list[Numbers]:
    """Find, for each partition tuple, some values of a column that are in the tuple's buckets.

    If several partition fields have a bucket transform of this column, such as ``bucket[4]`` and ``bucket[16]``, each
    value is in the right bucket of every field. The values are returned as int64 numbers from ``made.low`` to
    ``made.high`` in ascending order, which `values_on` converts to the column's type. The array of a tuple is empty if
    the column is null in every row of the partition, or has only one possible value there.

    Parameters
    ----------
    made
        The values that the partition fields without a bucket transform allow.
    source
        The column.
    buckets
        The partition fields with a bucket transform of this column, each with its bucket numbers, one per tuple.

    Raises
    ------
    OptionError
        For a tuple, no value in its buckets was found.
    """
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
            got = [integers_of(c.transform.apply(source.type, values)) for c, _ in buckets]
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


def _impossible(source: NestedField, given: list[tuple[PartitionColumn, AnyArray]], at: int, why: str) -> OptionError:
    given_values = ", ".join(f"{c.field.name}={v[at].as_py()!r}" for c, v in given)
    return OptionError(f"no value of column {source.name!r} gives {given_values}: {why}")
