"""Format the values of columns as text, with the same result as `Transform.to_human_string`.

Arrow is faster than Python, so it formats all values for which its text is known to be the same. Python formats the
others, each distinct value once.
"""

from __future__ import annotations

import pyarrow as pa

from iceexplore.arrow import AnyArray, Strings
from iceexplore.arrow import compute as pc
from iceexplore.metadata import PrimitiveType, Type, arrow_type, parse_transform, type_base

__all__ = ["human_texts", "shown"]

#: The first and the last second of the years 1 to 9999, in seconds since 1970. In these years, Arrow's text for a
#: timestamp is in ISO 8601. If any timestamp of a column is in another year, Python formats the whole column
#: (`_by_value`).
_FIRST, _LAST = -62_135_596_800, 253_402_300_799
#: In a sentence, a value is cut off after this many characters.
_LONGEST = 60


def human_texts(values: AnyArray, kind: Type | None, transform: str = "identity") -> Strings:
    """Return the values as text; null stays null.

    Parameters
    ----------
    kind
        The Iceberg type of the values. If it is None, it is derived from the Arrow type where possible. Values whose
        type remains unknown may be formatted with ``str``.
    transform
        For values of a partition field, its transform, because the text depends on it: with ``month``, the stored
        number 652 becomes ``2024-05``.
    """
    found = values.type
    if pa.types.is_null(found):
        return pa.nulls(len(values), pa.string())
    if not parse_transform(transform).own_text:
        if pa.types.is_string(found):
            return values
        if pa.types.is_integer(found) and (kind is None or type_base(kind) in ("int", "long")):
            return values.cast(pa.string())
        if pa.types.is_boolean(found):
            return values.cast(pa.string())
        # The text must be the same as that of Python's `Decimal`. Arrow is faster, and writes the same text if the
        # number needs no exponent, which is certain up to a scale of 6. With a larger scale, Python writes small
        # numbers with an exponent, such as 1E-7, so columns with such a scale are formatted in Python (`_by_value`).
        if pa.types.is_decimal(found) and found.scale <= 6:
            return values.cast(pa.string())
        if pa.types.is_floating(found):
            return _floats(values, kind)
        if pa.types.is_timestamp(found) and _plain_years(values):
            return _timestamps(values)
    return _by_value(values, kind, transform)


def shown(texts: Strings, quoted: bool) -> Strings:
    """Prepare texts for use in a sentence: cut off long texts, and add quotes.

    Of a text with more than 60 characters, the first 60 are kept, followed by ``…``. Null stays null.

    Parameters
    ----------
    quoted
        Whether to put each text in single quotes. Callers pass True for the values of a string column.
    """
    if (pc.max(pc.utf8_length(texts)).as_py() or 0) > _LONGEST:
        cut = pc.binary_join_element_wise(pc.utf8_slice_codeunits(texts, 0, _LONGEST), "…", "")
        texts = pc.if_else(pc.fill_null(pc.greater(pc.utf8_length(texts), _LONGEST), False), cut, texts)
    return pc.binary_join_element_wise("'", texts, "'", "") if quoted else texts


def _by_value(values: AnyArray, kind: Type | None, transform: str) -> Strings:
    """Format values as text in Python, without Arrow's functions; each distinct value is formatted only once.

    Null stays null.

    Parameters
    ----------
    kind
        The Iceberg type of the values. If it is None, it is derived from the Arrow type. If that is not possible, each
        value is formatted with ``str``.
    transform
        The transform of the partition field that has the values; ``identity`` for values of a column.
    """
    encoded = values.dictionary_encode()
    distinct = encoded.dictionary
    if pa.types.is_date32(distinct.type):
        distinct = distinct.cast(pa.int32())
    elif pa.types.is_temporal(distinct.type):
        distinct = distinct.cast(pa.int64())
    type_ = kind if kind is not None else _kind_of(values.type)
    if type_ is None:
        texts = [str(v) for v in distinct.to_pylist()]
    else:
        to_text = parse_transform(transform).to_human_string
        texts = [to_text(type_, v) for v in distinct.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices)


def _kind_of(found: pa.DataType) -> Type | None:
    """Return the Iceberg type whose values have this Arrow type.

    Only int, long, double, binary, date, time and the timestamp types are considered. The result is None if none of
    them has this Arrow type.
    """
    names = ("int", "long", "date", "time", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns", "double")
    return next((PrimitiveType(n) for n in (*names, "binary") if arrow_type(PrimitiveType(n)) == found), None)


def _floats(values: AnyArray, kind: Type | None) -> Strings:
    """Format floats as Java does; null stays null.

    If the absolute value is at least 0.001 and below 1,000,000, Arrow's cast to text gives the same digits as Java;
    only ``.0`` must be added to whole numbers. All other values, including NaN, are formatted in Python (`_by_value`),
    because from 10,000,000 on, and below 0.001 except for zero, Java writes an exponent: ``1.0E7`` where Arrow writes
    ``10000000``. From 1,000,000 to 10,000,000, Java writes no exponent, and formatting in Python is not necessary: it
    gives the same text, only more slowly.
    """
    magnitude = pc.abs(values)
    plain = pc.and_(pc.greater_equal(magnitude, 1e-3), pc.less(magnitude, 1e6))
    plain = pc.fill_null(plain, True)
    texts = values.cast(pa.string())
    texts = pc.if_else(pc.match_substring(texts, "."), texts, pc.binary_join_element_wise(texts, "0", "."))
    if pc.all(plain).as_py() is not False:
        return texts
    others = _by_value(values.filter(pc.invert(plain)), kind, "identity")
    return pc.replace_with_mask(texts, pc.invert(plain), others)


def _plain_years(values: AnyArray) -> bool:
    """Return whether all timestamps, except nulls, are in the years 1 to 9999.

    Arrow formats timestamps in these years in ISO 8601. If any timestamp is in another year, Python formats all of them
    (`_by_value`).
    """
    ends = pc.min_max(values.cast(pa.int64()))
    if not ends["min"].is_valid:
        return True
    unit = {"us": 10**6, "ns": 10**9}.get(values.type.unit, 1)
    return bool(ends["min"].as_py() >= _FIRST * unit and ends["max"].as_py() // unit <= _LAST)


def _timestamps(values: AnyArray) -> Strings:
    """Format timestamps in ISO 8601 with as many fractional digits as needed, in UTC if they have a time zone."""
    plain = values.cast(pa.int64()).cast(pa.timestamp(values.type.unit)).cast(pa.string())
    texts = pc.utf8_rtrim(pc.utf8_rtrim(pc.replace_substring(plain, " ", "T"), "0"), ".")
    return pc.binary_join_element_wise(texts, "+00:00", "") if values.type.tz is not None else texts
