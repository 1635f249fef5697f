"""Evaluate predicates on column metrics, to prove that no row matches or that every row does.

The rules are those of Iceberg's ``InclusiveMetricsEvaluator``, ``StrictMetricsEvaluator`` and ``ManifestEvaluator``,
except that a null satisfies only ``is-null`` and ``not-nan``. (Iceberg's evaluators let nulls also match ``!=``,
``not in`` and ``not starts with``. In SQL, nulls do not match these, so Iceberg's evaluators keep some files that have
no matching row in SQL.) The metrics are Arrow columns with one row per file or manifest, so a predicate is evaluated on
all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyScalar, PlainValue, build
from iceexplore.arrow import compute as pc
from iceexplore.expressions import Always, And, Computed, Expression, Or, Predicate
from iceexplore.planning.evaluators._column_metrics import ColumnMetrics, Mask, aligned, known

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["all_masks", "any_mask", "bounds_deny", "counts_deny", "may_match", "must_match", "satisfied", "walk"]

_TESTS = frozenset(("is-null", "not-null", "is-nan", "not-nan"))
_REFUSED = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, TypeError, ValueError, OverflowError)
#: If an ``in`` list of strings, binary values or decimals has at most this many items, each item is compared with a
#: file's bounds. Of a longer list, only the lowest and the highest item are compared, to save time. (Lists of integers,
#: floats, dates and times have no limit: they are compared with a faster search. The limit is Java's
#: ``IN_PREDICATE_LIMIT``; Java compares no item of a longer list, and keeps the file.)
_LONG_LIST = 200


def walk(expression: Expression, rows: int, leaf: Callable[[Predicate | Computed], Mask]) -> Mask:
    """Evaluate an expression as a mask: evaluate each comparison in it, and combine the masks with ``and`` and ``or``.

    Parameters
    ----------
    rows
        The length of each mask: the number of files, of manifests, or of table rows.
    leaf
        A function that evaluates one comparison as a mask. It is not called for the constants: ``true`` becomes a mask
        in which every element is True, and ``false`` one in which every element is False.
    """
    match expression:
        case Always(value):
            return np.full(rows, value)
        case And(children):
            return all_masks([walk(c, rows, leaf) for c in children], rows)
        case Or(children):
            return any_mask([walk(c, rows, leaf) for c in children], rows)
    return leaf(expression)


def all_masks(masks: Iterable[Mask], rows: int) -> Mask:
    """Combine masks with ``and``. If there is no mask, the result has ``rows`` elements that are True."""
    out = np.ones(rows, np.bool_)
    for mask in masks:
        out &= mask
    return out


def any_mask(masks: Iterable[Mask], rows: int) -> Mask:
    """Combine masks with ``or``. If there is no mask, the result has ``rows`` elements that are False."""
    out = np.zeros(rows, np.bool_)
    for mask in masks:
        out |= mask
    return out


def may_match(p: Predicate, e: ColumnMetrics) -> Mask:
    """Return a mask, one value per file or manifest: False only where its metrics prove that no row matches ``p``."""
    return ~(counts_deny(p, e) | bounds_deny(p, e))


def counts_deny(p: Predicate, e: ColumnMetrics) -> Mask:
    """Return a mask, one value per file or manifest: True where null and NaN counts prove that no row matches.

    For example, no row matches ``id != 5`` if ``id`` is null in all rows, because null satisfies no comparison, not
    even ``!=``, as in SQL. Bounds are not used, see `bounds_deny`.

    Parameters
    ----------
    p
        A predicate on a column.
    e
        The column's metrics in each file or manifest. Only those about nulls and NaN are used.
    """
    match p.op:
        case "is-null":
            return e.no_null
        case "not-null" | "!=" | "not-in" | "not-starts-with":
            return e.all_null
        case "is-nan":
            return e.no_nan | e.all_null
        case "not-nan":
            # Nulls satisfy not-nan. So to prove that no row matches, every row must be NaN. For a column inside a
            # struct, `all_nan` ignores the rows in which the struct is null, so also require that no row is null.
            return e.all_nan & e.no_null
    return e.nothing


def bounds_deny(p: Predicate, e: ColumnMetrics) -> Mask:
    """Return a mask, one value per file or manifest: True where the column's bounds prove that no row matches.

    For ``is-null``, ``not-null``, ``is-nan`` and ``not-nan``, every value of the mask is False. `counts_deny` evaluates
    these. For other predicates, if the metrics are partition values (``e.exact`` is True) instead of bounds, the
    predicate is evaluated on these values.

    Parameters
    ----------
    p
        A predicate on a column.
    e
        The column's bounds, or the partition values, of each file or manifest.
    """
    no = np.zeros(len(e), np.bool_)
    if p.op in _TESTS:
        return no
    if e.exact:
        found = satisfied(p, e.lower)
        return no if found is None else ~found
    sides = _sides(p, e)
    if sides is None:
        return no
    low, high, literals = sides
    x: Any = literals[0] if literals else None
    match p.op:
        case "<":
            return known(pc.greater_equal(low, x))
        case "<=":
            return known(pc.greater(low, x))
        case ">":
            return known(pc.less_equal(high, x))
        case ">=":
            return known(pc.less(high, x))
        case "=" | "in":
            return _outside(low, high, literals)
        case "!=" | "not-in":
            return known(pc.equal(low, high)) & _among(low, literals) & e.no_nan
        case "starts-with":
            return _apart(low, high, x.as_py())
    return _starts(low, x.as_py()) & _starts(high, x.as_py())


def must_match(p: Predicate, e: ColumnMetrics) -> Mask:
    """Return a mask, one value per file or manifest: True only where its metrics prove that every row matches ``p``."""
    match p.op:
        case "is-null":
            return e.all_null
        case "not-null":
            return e.no_null
        case "is-nan":
            return e.all_nan & e.no_null
        case "not-nan":
            return e.no_nan | e.all_null
    no = np.zeros(len(e), np.bool_)
    if e.exact:
        found = satisfied(p, e.lower)
        return no if found is None else found
    sides = _sides(p, e)
    if sides is None:
        return e.all_nan & e.no_null if p.op in ("!=", "not-in") else no
    low, high, literals = sides
    x: Any = literals[0] if literals else None
    match p.op:
        case "!=" | "not-in":
            out = _each_outside(low, high, literals) | e.all_nan
            return out & e.no_null if literals else no
        case "not-starts-with":
            return _apart(low, high, x.as_py()) & e.no_null
        case "<":
            out = known(pc.less(high, x))
        case "<=":
            out = known(pc.less_equal(high, x))
        case ">":
            out = known(pc.greater(low, x))
        case ">=":
            out = known(pc.greater_equal(low, x))
        case "=" | "in":
            out = known(pc.equal(low, high)) & _among(low, literals)
        case _:
            out = _starts(low, x.as_py()) & _starts(high, x.as_py())
    return out & e.no_null & e.no_nan


def satisfied(p: Predicate, values: AnyArray) -> Mask | None:
    """Return a mask, one element per value: whether the value satisfies the predicate.

    Null satisfies ``is-null`` and, as null is not NaN, ``not-nan``. It satisfies no comparison, not even ``!=``, as in
    SQL. The result is None if the values have a type that cannot be compared with the predicate's literals.
    """
    null: Mask = np.asarray(values.is_null())
    nan: Mask = known(pc.is_nan(values)) if pa.types.is_floating(values.type) else np.zeros(len(values), np.bool_)
    out: Mask
    match p.op:
        case "is-null":
            return null
        case "not-null":
            return ~null
        case "is-nan":
            return nan
        case "not-nan":
            return ~nan
    plain = aligned(values, p.type)
    literals = None if plain is None else _scalars(p, plain.type)
    if plain is None or literals is None:
        return None
    x: Any = literals[0] if literals else None
    match p.op:
        case "=" | "in":
            return _among(plain, literals)
        case "!=" | "not-in":
            out = ~_among(plain, literals) & ~null
            return out
        case "starts-with":
            return _starts(plain, x.as_py())
        case "not-starts-with":
            out = ~_starts(plain, x.as_py()) & ~null
            return out
    compare = {"<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}[p.op]
    out = known(compare(plain, x)) & ~nan
    return out


def _sides(p: Predicate, e: ColumnMetrics) -> tuple[AnyArray, AnyArray, list[AnyScalar]] | None:
    """Return the lower bounds, the upper bounds and the predicate's literals, converted so that Arrow can compare them.

    The result is None if the bounds or a literal cannot be converted.
    """
    low, high = aligned(e.lower, p.type), aligned(e.upper, p.type)
    literals = None if low is None else _scalars(p, low.type)
    return None if low is None or high is None or literals is None else (low, high, literals)


def _scalars(p: Predicate, kind: pa.DataType) -> list[AnyScalar] | None:
    """Convert the predicate's literals to ``kind``, the Arrow type of the bounds or values to compare them with.

    A decimal with more digits than ``kind`` allows is converted to a wider decimal type instead. The result is None if
    a literal cannot be converted, or if Arrow cannot compare the wider decimal type with ``kind``.
    """
    try:
        return [_scalar(v, kind) for v in p.literals]
    except _REFUSED:
        return None


def _scalar(value: PlainValue, kind: pa.DataType) -> AnyScalar:
    if pa.types.is_int64(kind):
        value = int(value)  # convert boolean literals to integers, as `comparable` has converted boolean bounds
    if pa.types.is_decimal(kind):
        try:
            return pa.scalar(value, kind)
        except pa.ArrowInvalid:
            # The literal has more digits than the type of the bounds (`kind`) allows, so convert it to a decimal type
            # with enough digits. Then compare it with a null of type `kind`, only as a test: if Arrow cannot compare
            # the two types, this raises an error, and `_scalars` returns None.
            own = build.scalar(value)
            pc.equal(pa.scalar(None, kind), own)
            return own
    return pa.scalar(value, kind)


def _among(values: AnyArray, literals: list[AnyScalar]) -> Mask:
    """Return a mask, one element per value: True if the value equals one of the literals; False for null."""
    if len(literals) > 8 and all(x.type == values.type for x in literals):
        wanted = pa.array([x.as_py() for x in literals], values.type)
        if pa.types.is_floating(values.type):
            # `is_in` takes -0.0 and 0.0 for different values, so add 0, which turns -0.0 into 0.0.
            zero = pa.scalar(0, values.type)
            values, wanted = pc.add(values, zero), pc.add(wanted, zero)
        return known(pc.is_in(values, value_set=wanted))
    out = np.zeros(len(values), np.bool_)
    for x in literals:
        out |= known(pc.equal(values, x))
    return out


def _outside(low: AnyArray, high: AnyArray, literals: list[AnyScalar]) -> Mask:
    """Return a mask, one value per file or manifest: True where its bounds prove that no value equals any literal.

    This is so if no literal is between the bounds. But if there are more than 200 literals (`_LONG_LIST`) that are
    strings, binary values or decimals, only the lowest and the highest are compared with the bounds, to save time. The
    mask is then True only where all literals are below the lower bound, or all are above the upper bound. (Java has the
    same limit, but does not prune at all with a longer list.)
    """
    if len(literals) > 8 and (pa.types.is_integer(low.type) or pa.types.is_floating(low.type)):
        return _none_between(low, high, np.sort(np.array([x.as_py() for x in literals])))
    if len(literals) > _LONG_LIST:
        ordered = sorted(literals, key=lambda x: x.as_py())
        return known(pc.greater(low, ordered[-1])) | known(pc.less(high, ordered[0]))
    return _each_outside(low, high, literals)


def _none_between(low: AnyArray, high: AnyArray, ordered: npt.NDArray[Any]) -> Mask:
    """Return a mask, one value per file or manifest: True where none of the given numbers is between its bounds.

    The numbers are in ``ordered``, in ascending order. For each file, the first number that is at least the lower bound
    is looked up. If it is above the upper bound, or if there is no such number, no number is between the bounds.
    """
    floor = np.asarray(pc.fill_null(low, ordered[0].item()))
    first = np.searchsorted(ordered, floor)
    beyond = first == len(ordered)
    after = pa.array(ordered[np.minimum(first, len(ordered) - 1)])
    out: Mask = beyond | known(pc.less(high, after))
    return out


def _each_outside(low: AnyArray, high: AnyArray, literals: list[AnyScalar]) -> Mask:
    """Return a mask, one value per file or manifest: True where its bounds prove that no value equals a literal.

    This is so if no literal is between the bounds. Every literal is compared with the bounds, so a long list takes
    much time: `_outside` avoids this.
    """
    out = np.ones(len(low), np.bool_)
    for x in literals:
        out &= known(pc.greater(low, x)) | known(pc.less(high, x))
    return out


def _starts(values: AnyArray, prefix: str | bytes) -> Mask:
    """Return a mask, one element per value: True if the value begins with the prefix; False for null."""
    return known(pc.starts_with(values, prefix))


def _apart(low: AnyArray, high: AnyArray, prefix: str | bytes) -> Mask:
    """Return a mask, one value per file or manifest: True where the bounds exclude every value with this prefix.

    For the prefix ``ice``, this is so if the first three characters of the lower bound are above ``ice``, or if those
    of the upper bound are below it.
    """
    cut = pc.utf8_slice_codeunits if pa.types.is_string(low.type) else pc.binary_slice
    x = pa.scalar(prefix, low.type)
    return known(pc.greater(cut(low, 0, len(prefix)), x)) | known(pc.less(cut(high, 0, len(prefix)), x))
