"""Unbound conditions: the parsed text of a filter, or a converted PyIceberg expression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from iceexplore.expressions._tokens import Place

__all__ = ["Both", "Call", "Compare", "Condition", "Either", "Member", "Name", "Negation", "Operand", "Prefix", "Test",
           "Value", "ValueKind"]  # fmt: skip

ValueKind: TypeAlias = Literal[
    "null", "number", "text", "boolean", "bytes", "date", "time", "timestamp", "timestamptz", "uuid", "nan", "float",
    "stored", "infinity",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Name:
    """A column as written: its parts, and whether each was quoted."""

    parts: tuple[str, ...]
    quoted: tuple[bool, ...]
    at: Place


@dataclass(frozen=True, slots=True)
class Value:
    """A literal.

    Attributes
    ----------
    kind, value
        ``number``: ``Decimal``. ``float``: a Python float that takes the precision of its column. ``infinity``: 1 or
        -1. ``date``: days since 1970-01-01. ``time``: nanoseconds since midnight. ``timestamp`` (without zone) and
        ``timestamptz``: nanoseconds since 1970-01-01T00:00 (UTC). ``uuid``, ``bytes``: bytes. ``stored``: an int in
        Iceberg's stored form of the column's type. ``null``, ``nan``: None.
    """

    kind: ValueKind
    value: Any
    at: Place


@dataclass(frozen=True, slots=True)
class Call:
    """A function of a column.

    Attributes
    ----------
    function
        A partition transform in the spec's notation, ``bucket[16]``, or the name of a function of SQL, ``lower``.
    """

    function: str
    argument: Name
    at: Place


Operand: TypeAlias = Name | Value | Call


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison of two operands: ``<  <=  >  >=  =  !=  <=>``."""

    op: str
    left: Operand
    right: Operand
    at: Place


@dataclass(frozen=True, slots=True)
class Member:
    """A membership test: ``in`` and ``not in``."""

    operand: Operand
    items: tuple[Value, ...]
    negated: bool
    at: Place


@dataclass(frozen=True, slots=True)
class Test:
    """A test for null, NaN, true or false (``is [not]``). Its result is never unknown."""

    operand: Operand
    what: Literal["null", "nan", "true", "false"]
    negated: bool
    at: Place


@dataclass(frozen=True, slots=True)
class Prefix:
    """A test of whether a string begins with another."""

    operand: Operand
    prefix: Value
    negated: bool
    at: Place


@dataclass(frozen=True, slots=True)
class Negation:
    """A negation: ``not``."""

    child: Condition
    at: Place


@dataclass(frozen=True, slots=True)
class Both:
    """A conjunction: ``and`` of two or more."""

    children: tuple[Condition, ...]
    at: Place


@dataclass(frozen=True, slots=True)
class Either:
    """A disjunction: ``or`` of two or more."""

    children: tuple[Condition, ...]
    at: Place


#: A `Name` or `Value` alone is a condition if it is a boolean column, true, false or null.
Condition: TypeAlias = Compare | Member | Test | Prefix | Negation | Both | Either | Name | Value | Call
