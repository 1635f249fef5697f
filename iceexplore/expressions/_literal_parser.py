"""Convert the literals of a filter's text, and the patterns of ``like``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from uuid import UUID

from iceexplore.expressions._temporal_literals import read_date, read_time, read_timestamp
from iceexplore.expressions._tokens import Place, Token
from iceexplore.expressions._unbound import Compare, Condition, Operand, Prefix, Value

__all__ = ["cast_value", "like", "number_value", "prefix_of", "text_value", "typed_value"]

_NUMBER = re.compile(r"((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(bd|[lsydf])?", re.IGNORECASE)
_INTEGERS = {"tinyint": 8, "smallint": 16, "int": 32, "integer": 32, "bigint": 64, "long": 64}
_FLOATS = frozenset(("double", "float", "real"))
_TEXTS = frozenset(("string", "varchar", "text", "char"))
_ZONED = {"timestamptz": "timestamptz", "timestamp_ltz": "timestamptz", "timestamp_ntz": "timestamp"}
_LIKE = "only 'abc%' (what begins with abc) and patterns without wildcards are supported"
_EXACT = Context(prec=10_000)


def number_value(token: Token, sign: int) -> Value:
    """Convert ``5``, ``1.5`` or ``1e3``; Spark's suffixes are accepted, and ``F`` means a literal of type float."""
    match = _NUMBER.fullmatch(token.text)
    if match is None:
        raise token.at.unparsable(
            f"{token.at.quoted} is not a number; a name that begins with a digit needs double quotes"
        )
    try:
        value = Decimal(match[1])
    except InvalidOperation:
        raise token.at.unparsable("the number's exponent is too large for any column") from None
    value = value.copy_negate() if sign < 0 else value
    return _single(value, token.at) if (match[2] or "").lower() == "f" else Value("number", value, token.at)


def text_value(token: Token) -> Value:
    """Convert ``'text'`` or ``x'00ff'``."""
    if token.kind == "string":
        return Value("text", token.text, token.at)
    try:
        return Value("bytes", bytes.fromhex(token.text if " " not in token.text else "?"), token.at)
    except ValueError:
        reason = f"{token.at.quoted} is not a binary literal: write two hexadecimal digits per byte"
        raise token.at.unparsable(reason) from None


def typed_value(name: str, inner: Value, at: Place) -> Value:
    """Convert ``date '2024-05-17'`` or ``date('2024-05-17')``."""
    return cast_value(name, (), inner, at, at)


def cast_value(name: str, numbers: Sequence[str], inner: Value, word: Place, at: Place) -> Value:
    """Convert a literal to a type.

    Raises
    ------
    OptionError
        Literals cannot be cast to this type, or the type has no value that corresponds to the literal.
    """
    known = {"date", "time", "timestamp", "uuid", "binary", "decimal", "numeric", "boolean", *_ZONED, *_INTEGERS,
             *_FLOATS, *_TEXTS}  # fmt: skip
    if name not in known:
        possible = ", ".join(sorted(known))
        raise word.unparsable(f"{name} is not a type to which literals can be cast; use one of {possible}")
    try:
        return inner if inner.kind == "null" else _cast(name, numbers, inner, at)
    except (ValueError, InvalidOperation, OverflowError) as error:
        reason = str(error) if type(error) is ValueError else "the type has no such value"
        raise inner.at.error(f"{inner.at.quoted} cannot be read as {name}: {reason}") from None


def _cast(name: str, numbers: Sequence[str], inner: Value, at: Place) -> Value:
    kind, value = inner.kind, inner.value
    if name in _TEXTS and kind == "text":
        return Value("text", value, at)
    if name == "binary" and kind in ("text", "bytes"):
        return Value("bytes", value.encode() if kind == "text" else value, at)
    if name == "boolean" and (kind == "boolean" or (kind == "text" and value.strip().lower() in ("true", "false"))):
        return Value("boolean", value if kind == "boolean" else value.strip().lower() == "true", at)
    if name in _FLOATS and kind in ("nan", "infinity"):
        return Value(kind, value, at)
    if name in _FLOATS | {"decimal", "numeric"} | _INTEGERS.keys() and kind in ("number", "text"):
        return _number(name, numbers, value, at)
    if kind == "text":
        match name:
            case "date":
                return Value("date", read_date(value), at)
            case "time":
                return Value("time", read_time(value), at)
            case "uuid":
                return Value("uuid", UUID(value).bytes, at)
        if name == "timestamp" or name in _ZONED:
            nanos, zoned = read_timestamp(value)
            if name == "timestamp_ntz" and zoned:
                raise ValueError("a timestamp without zone must not have an offset")
            return Value(_ZONED.get(name, "timestamptz" if zoned else "timestamp"), nanos, at)  # type: ignore[arg-type]
    if kind in ("date", "timestamp", "timestamptz", "time") and name == kind:
        return Value(kind, value, at)
    raise ValueError(f"a {kind} cannot be converted to {name}")


def _number(name: str, numbers: Sequence[str], given: Decimal | str, at: Place) -> Value:
    if name in _FLOATS and isinstance(given, str) and given.strip().lower().lstrip("+-") in ("nan", "inf", "infinity"):
        word = given.strip().lower()
        return Value("nan", None, at) if "nan" in word else Value("infinity", -1 if word[0] == "-" else 1, at)
    value = Decimal(given.strip()) if isinstance(given, str) else given
    if not value.is_finite():
        raise ValueError(f"a {name} must be finite")
    if name in _INTEGERS:
        limit = 2 ** (_INTEGERS[name] - 1)
        if abs(value.adjusted()) > 40 or value != value.to_integral_value() or not -limit <= value < limit:
            raise ValueError("it is not a whole number in the type's range")
    elif name in ("float", "real"):
        return _single(value, at)
    elif name == "double":
        value = Decimal(float(value))
        if not value.is_finite():
            raise ValueError("it is outside the type's range")
    elif numbers:
        scale = int(numbers[1]) if len(numbers) > 1 else 0
        if scale > 38 or value.adjusted() > 400:
            raise ValueError("a decimal can have at most 38 digits")
        value = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _EXACT)
    return Value("number", value, at)


def _single(value: Decimal, at: Place) -> Value:
    """Round a number to single precision, and return the result as an exact decimal."""
    import numpy as np

    with np.errstate(over="ignore"):
        rounded = float(np.float32(float(value)))
    if rounded in (float("inf"), float("-inf")):
        raise at.error("the number is outside the range of float")
    return Value("number", Decimal(rounded), at)


def like(operand: Operand, pattern: Value, escape: Value | None, negated: bool, at: Place) -> Condition:
    """Convert a ``like`` pattern whose only wildcard is a ``%`` at its end.

    Raises
    ------
    OptionError
        The pattern is not supported.
    """
    sign = "\\"
    if escape is not None:
        if escape.kind != "text" or len(escape.value) != 1:
            raise escape.at.unparsable("escape takes one character, like '!'")
        sign = escape.value
    if pattern.kind == "null":
        return Prefix(operand, pattern, negated, at)
    if pattern.kind != "text":
        raise pattern.at.unparsable("like takes a string: like 'abc%'")
    text, plain, i = pattern.value, [], 0
    while i < len(text):
        if text[i] == sign:
            if text[i + 1 : i + 2] not in ("%", "_", sign):
                raise pattern.at.error(f"the escape character {sign} must precede %, _ or itself")
            i += 1
        elif text[i] in "%_":
            break
        plain.append(text[i])
        i += 1
    prefix = Value("text", "".join(plain), pattern.at)
    rest = text[i:]
    if not rest:
        return Compare("!=" if negated else "=", operand, prefix, at)
    if rest.strip("%"):
        raise pattern.at.error(f"the pattern {pattern.at.quoted} is not supported: {_LIKE}")
    return Prefix(operand, prefix, negated, at)


def prefix_of(operand: Operand, prefix: Value, at: Place) -> Condition:
    """Convert ``startswith``.

    Raises
    ------
    OptionError
        The prefix is neither text nor bytes nor null.
    """
    if prefix.kind not in ("text", "bytes", "null"):
        raise prefix.at.unparsable("a prefix must be a string like 'abc' or bytes like x'00ff'")
    return Prefix(operand, prefix, False, at)
