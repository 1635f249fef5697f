"""What a filter says before its names are columns: the parsed text, or a PyIceberg expression taken apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from iceexplore.expressions._tokens import Place

__all__ = ["Both", "Compare", "Condition", "Either", "Member", "Name", "Negation", "Operand", "Prefix", "Test", "Value",
           "ValueKind"]  # fmt: skip

ValueKind: TypeAlias = Literal[
    "null", "number", "text", "boolean", "bytes", "date", "time", "timestamp", "timestamptz", "uuid", "nan", "float",
    "stored", "infinity",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Name:
    """A column as it was written: its parts, and whether each was quoted."""

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
        ``timestamptz``: nanoseconds since 1970-01-01T00:00 (UTC). ``uuid``, ``bytes``: bytes. ``stored``: an int as
        Iceberg stores values of the column's type. ``null``, ``nan``: None.
    """

    kind: ValueKind
    value: Any
    at: Place


Operand: TypeAlias = Name | Value


@dataclass(frozen=True, slots=True)
class Compare:
    """``<  <=  >  >=  =  !=  <=>`` of two operands."""

    op: str
    left: Operand
    right: Operand
    at: Place


@dataclass(frozen=True, slots=True)
class Member:
    """``in`` and ``not in``."""

    operand: Operand
    items: tuple[Value, ...]
    negated: bool
    at: Place


@dataclass(frozen=True, slots=True)
class Test:
    """``is [not]`` null, nan, true, false: never unknown itself."""

    operand: Operand
    what: Literal["null", "nan", "true", "false"]
    negated: bool
    at: Place


@dataclass(frozen=True, slots=True)
class Prefix:
    """Whether a text begins with another."""

    operand: Operand
    prefix: Value
    negated: bool
    at: Place


@dataclass(frozen=True, slots=True)
class Negation:
    """``not``."""

    child: Condition
    at: Place


@dataclass(frozen=True, slots=True)
class Both:
    """``and`` of two or more."""

    children: tuple[Condition, ...]
    at: Place


@dataclass(frozen=True, slots=True)
class Either:
    """``or`` of two or more."""

    children: tuple[Condition, ...]
    at: Place


#: An operand alone: a boolean column, true, false or null.
Condition: TypeAlias = Compare | Member | Test | Prefix | Negation | Both | Either | Name | Value
