"""Search for a text in a column's values as cells display them, using Arrow on the whole column."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyExtensionArray, AnyListArray, AnyMapArray, build
from iceexplore.arrow import compute as pc
from iceexplore.widgets.grid._cells import text_of

__all__ = ["contains"]

_SAMPLE = 10_000  # the number of values sampled to detect columns with many equal values
#: Python and Arrow write different numbers with an exponent; between these bounds, neither uses one.
_LEAST, _MOST = 1e-4, 1e10
#: From this value on, Python uses an exponent for integral numbers too.
_MOST_WHOLE = 1e16
_HEX = np.array([f"{byte:02x}" for byte in range(256)], dtype="S2").view(np.uint16)
_DAY_AND_TIME = re.compile(r"(?<=\d\d-\d\d)T", re.IGNORECASE)


def contains(column: AnyArray, text: str) -> pa.BooleanArray:
    """Return whether each value, as displayed, contains the text; a nested value does if any value inside it does."""
    kind = column.type
    no = pa.array(np.zeros(len(column), dtype=np.bool_))
    if pa.types.is_null(kind):
        return no
    if pa.types.is_struct(kind):
        for child in cast(pa.StructArray, column).flatten():
            no = pc.or_(no, pc.fill_null(contains(child, text), False))
        return no
    if pa.types.is_map(kind):
        starts = np.asarray(cast(AnyListArray, column).offsets)
        hit = [
            pc.fill_null(contains(part, text), False)
            for part in (cast(AnyMapArray, column).keys, cast(AnyMapArray, column).items)
        ]
        return _any_within(column, starts, pc.or_(*hit))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _any_within(
            column,
            np.asarray(cast(AnyListArray, column).offsets),
            pc.fill_null(contains(cast(AnyListArray, column).values, text), False),
        )
    if isinstance(kind, pa.UuidType):
        return _found(_uuids(cast(AnyExtensionArray, column).storage), text, "-0123456789abcdef", column)
    if isinstance(column, pa.ExtensionArray):
        return contains(column.storage, text)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return _found(_hexadecimal(column), re.sub("^0?x", "", text.lower()), "0123456789abcdef", column)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pc.match_substring(column, text, ignore_case=True)
    if pa.types.is_timestamp(kind):
        text = _DAY_AND_TIME.sub(" ", text)  # accept a "T" between date and time, which nested values show
    if not set(text.lower()) <= _written_with(kind):
        return no  # no value of this type has these characters: avoids converting millions of numbers to text
    if pa.types.is_integer(kind):
        return _digits_contain(column, text)
    cased = text.lower() != text.upper()  # ignoring case is slower, so do it only if the text has letters
    return pc.match_substring(_as_shown(column), text, ignore_case=cased)


def _any_within(column: AnyArray, offsets: npt.NDArray[Any], hit: pa.BooleanArray) -> pa.BooleanArray:
    """Return, for each list, whether any of its elements is a hit, using cumulative sums at the list's offsets."""
    sums = np.concatenate(([0], np.cumsum(np.asarray(hit.to_numpy(zero_copy_only=False)), dtype=np.int64)))
    above: pa.BooleanArray = pa.array(sums[offsets[1:]] > sums[offsets[:-1]])
    return above


def _digits_contain(column: AnyArray, digits: str) -> pa.BooleanArray:
    """Return whether integers contain these digits; if many values repeat, each is converted to text once."""
    if len(column) > _SAMPLE and len(column.slice(0, _SAMPLE).unique()) < _SAMPLE // 10:
        column = column.dictionary_encode()
        return pc.match_substring(column.dictionary.cast(pa.string()), digits).take(column.indices)
    return pc.match_substring(column.cast(pa.string()), digits)


def _written_with(kind: pa.DataType) -> set[str]:
    """Return all characters, in lower case, that the text of a value of this type may contain."""
    if pa.types.is_integer(kind):
        return set("-0123456789")
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return set("+-.0123456789einfa")
    if pa.types.is_boolean(kind):
        return set("truefals")
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        return set("-0123456789:.+ ")
    return set(map(chr, range(128)))


# The text of cells ----------------------------------------------------------------------------------------------------


def _as_shown(column: AnyArray) -> AnyArray:
    """Return the text that `text_of` returns for each value; Arrow converts types for which the two agree."""
    kind = column.type
    try:
        if pa.types.is_floating(kind):
            return _floats(column.cast(pa.float64()))
        if pa.types.is_timestamp(kind) and kind.tz in (None, "UTC"):
            # Arrow is ten times slower for timestamps with a zone.
            text = _clock(column.view(pa.timestamp(kind.unit)), pa.timestamp)
            return text if kind.tz is None else pc.binary_join_element_wise(text, "+00:00", "")
        if pa.types.is_time(kind):
            return _clock(column, lambda unit: pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit))
        if pa.types.is_boolean(kind) or pa.types.is_date(kind) or pa.types.is_decimal(kind):
            return column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        pass  # a value does not fit into the target type: convert with Python instead
    return pa.array([text_of(v) for v in column.to_pylist()], pa.string())


def _floats(column: AnyArray) -> AnyArray:
    values = column.to_numpy(zero_copy_only=False)
    size = np.abs(values)
    text = column.cast(pa.string())
    whole = (np.floor(values) == values) & (size < _MOST_WHOLE)
    if whole.any():
        numbers = pa.array(np.where(whole, values, 0).astype(np.int64)).cast(pa.string())
        text = pc.if_else(pa.array(whole), pc.binary_join_element_wise(numbers, ".0", ""), text)
    odd = np.where(whole, (values == 0) & np.signbit(values), (size < _LEAST) | (size >= _MOST))
    if odd.any():
        unique, places = np.unique(values[odd].view(np.int64), return_inverse=True)  # as integers, since -0.0 == 0.0
        words = pa.array(list(map(repr, unique.view(np.float64).tolist())), pa.string())
        text = pc.replace_with_mask(text, build.array(odd), words.take(build.array(places)))
    return text


def _clock(column: AnyArray, kind: Callable[[Any], pa.DataType]) -> AnyArray:
    """Return times in Python's format: without a fraction of a second if that is 0, else with six or nine digits."""
    text: AnyArray | None = None
    for unit in ("ns", "us", "s"):
        if unit == "ns" and column.type.unit != "ns":
            continue
        rounded = column.cast(kind(unit), safe=False)
        if text is None:
            text = rounded.cast(pa.string())
            column = rounded
            continue
        same = pc.equal(rounded.cast(column.type), column)
        if pc.any(same).as_py():
            text = pc.if_else(same, rounded.cast(pa.string()), text)
    return cast(AnyArray, text)


def _found(shown: AnyArray, text: str, written: str, column: AnyArray) -> pa.BooleanArray:
    """Return whether the non-null values of a column contain a text.

    Parameters
    ----------
    shown
        The values as text.
    written
        The characters of which these texts consist.
    """
    if not set(text.lower()) <= set(written):
        return pa.array(np.zeros(len(column), dtype=np.bool_))
    return pc.and_(column.is_valid(), pc.match_substring(shown, text.lower()))


def _hexadecimal(column: AnyArray) -> AnyArray:
    """Return bytes in hexadecimal, two digits each; arbitrary text for null."""
    column = column.cast(pa.large_binary())
    _, offsets, data = column.buffers()
    ends = build.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    written = _HEX[build.frombuffer(data or pa.py_buffer(b""), np.uint8)[ends[0] : ends[-1]]].tobytes()
    return pa.LargeStringArray.from_buffers(len(column), pa.py_buffer((ends - ends[0]) * 2), pa.py_buffer(written))


def _uuids(column: AnyArray) -> AnyArray:
    """Return UUIDs of 16 bytes in their text form; arbitrary text for null."""
    values = build.frombuffer(column.buffers()[1], np.uint8)[column.offset * 16 :][: len(column) * 16]
    digits = _HEX[values].view(np.uint8).reshape(len(column), 32)
    written = np.full((len(column), 36), ord("-"), dtype=np.uint8)
    for at, (start, end) in enumerate(((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))):
        written[:, start + at : end + at] = digits[:, start:end]
    ends = np.arange(len(column) + 1, dtype=np.int64) * 36
    return pa.LargeStringArray.from_buffers(len(column), build.py_buffer(ends), build.py_buffer(written.tobytes()))
