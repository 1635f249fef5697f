"""Plain values as a column's type has them: what fits is cast, and what would become another value is refused."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.errors import OptionError
from iceexplore.metadata import Type, type_base

__all__ = ["fit_values", "plain_array"]

_DAY_MICROS = 86_400_000_000
#: Of Arrow's decimals the widest: whole numbers and any decimal go through it, and are then checked for room.
_WIDEST = 76

_Test = Callable[[pa.DataType], bool]


def _any_of(*tests: _Test) -> _Test:
    return lambda kind: any(test(kind) for test in tests)


_TEXT = _any_of(pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_BYTES = _any_of(
    pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary
)  # fmt: skip
_NUMBER = _any_of(pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
_INSTANT = _any_of(pa.types.is_timestamp, pa.types.is_date, pa.types.is_integer, _TEXT)

#: The types whose values a column may take, by the base of its type. Arrow casts much more: numbers out of text,
#: truth out of numbers, counts of days out of dates.
_TAKES: dict[str, _Test] = {
    "boolean": pa.types.is_boolean,
    "int": _NUMBER,
    "long": _NUMBER,
    "float": _NUMBER,
    "double": _NUMBER,
    "decimal": _NUMBER,
    "date": _INSTANT,
    "time": _any_of(pa.types.is_time, pa.types.is_integer),
    "timestamp": _INSTANT,
    "timestamptz": _INSTANT,
    "timestamp_ns": _INSTANT,
    "timestamptz_ns": _INSTANT,
    "string": _TEXT,
    "uuid": _any_of(_TEXT, _BYTES),
    "binary": _BYTES,
    "fixed": _BYTES,
}


def plain_array(array: pa.Array) -> pa.Array:
    """Without what only says how values are held: extension types, dictionaries, runs."""
    while True:
        if isinstance(array.type, pa.BaseExtensionType):
            array = array.storage
        elif pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        elif pa.types.is_run_end_encoded(array.type):
            array = pc.run_end_decode(array)
        else:
            return array


def fit_values(array: pa.Array, kind: Type, target: pa.DataType, where: str) -> pa.Array:
    """Values of a primitive type.

    Parameters
    ----------
    array
        As `plain_array` has it.
    target
        The Arrow type of ``kind`` in data files.
    where
        The column, for messages.

    Raises
    ------
    OptionError
        A type whose values are not taken, or a value that is not one of ``kind``.
    """
    base, given = type_base(kind), array.type
    if pa.types.is_null(given):
        return pa.nulls(len(array), target)
    wrong = f"column {where!r}: {given} does not fit {kind}"
    takes = _TAKES.get(base)
    if takes is None:
        if array.null_count < len(array):
            raise OptionError(f"{wrong}: values of this type are not written here")
        return pa.nulls(len(array), target)
    if not takes(given):
        raise OptionError(wrong)
    zone = pa.types.is_timestamp(given) and given.tz is not None
    if pa.types.is_timestamp(given) and zone != base.startswith("timestamptz"):
        raise OptionError(f"{wrong}: one has a time zone, the other has not")
    try:
        if isinstance(target, pa.BaseExtensionType):
            return pa.ExtensionArray.from_storage(target, _cast(array, base, target.storage_type))
        return _cast(array, base, target)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise OptionError(f"{wrong}: {error}") from None


def _cast(array: pa.Array, base: str, target: pa.DataType) -> pa.Array:
    """Arrow's cast, and a ValueError where it says nothing of a value that is lost."""
    given = array.type
    if _TEXT(given):
        array = array.cast(pa.string())
        array.validate(full=True)  # Arrow takes any bytes for text
    match base:
        case "uuid" if _TEXT(given):
            return pa.array([None if v is None else UUID(v).bytes for v in array.to_pylist()], target)
        case "decimal":
            return _decimal(array, target)
        case "float" | "double":
            made = array.cast(target)
            inside = pc.is_finite(array) if pa.types.is_floating(given) else array.is_valid()
            return _all(array, made, pc.or_(pc.invert(inside), pc.is_finite(made)), "is beyond its range")
        case "date" if pa.types.is_timestamp(given):
            made = array.cast(target)
            return _all(array, made, pc.equal(made.cast(given), array), "has a time of day")
        case "time":
            made = array.cast(target)
            micros = made.cast(pa.int64())
            inside = pc.and_(pc.greater_equal(micros, 0), pc.less(micros, _DAY_MICROS))
            return _all(micros, made, inside, f"microseconds after midnight is no time of day: 0 to {_DAY_MICROS - 1}")
    return array.cast(target)


def _decimal(array: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_floating(array.type):
        return array.cast(target)  # rounded: no float is a decimal fraction to begin with
    return array.cast(pa.decimal256(_WIDEST, target.scale)).cast(target)


def _all(array: pa.Array, made: pa.Array, fine: pa.Array, what: str) -> pa.Array:
    """What was made, if every value is fine; null is."""
    wrong = array.filter(pc.invert(fine))
    if len(wrong) > wrong.null_count:
        raise ValueError(f"{wrong.drop_null().cast(pa.string())[0].as_py()} {what}")
    return made
