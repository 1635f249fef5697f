"""The transforms year, month, day and hour: dates and timestamps as whole units of time since 1970."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, PlainValue
from iceexplore.errors import OptionError
from iceexplore.metadata.transforms._projection import Op, Projection, distinct, project_ordered
from iceexplore.metadata.transforms._transform import Preimage, Transform, base_in, whole_number
from iceexplore.metadata.types._parameters import type_base
from iceexplore.metadata.types._types import PrimitiveType, Type
from iceexplore.metadata.values._human import day_text, format_value, year_text
from iceexplore.metadata.values._stored_integers import integers_of
from iceexplore.metadata.values._temporal import INSTANT_UNITS

__all__ = ["DayTransform", "HourTransform", "MonthTransform", "TimeTransform", "YearTransform"]

_Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
_INT = PrimitiveType("int")
_DAY = 86_400
_TIMESTAMPS = frozenset(INSTANT_UNITS)
_DATES_AND_TIMESTAMPS = _TIMESTAMPS | {"date"}


@dataclass(frozen=True)
class TimeTransform(Transform):
    """The number of whole units of time from 1970 to a date or timestamp."""

    is_time: ClassVar[bool] = True
    preserves_order: ClassVar[bool] = True
    own_text: ClassVar[bool] = True

    @abstractmethod
    def numbers(self, source: Type, stored: _Numbers) -> _Numbers:
        """Return the unit's number for each stored date (days) or timestamp (microseconds or nanoseconds)."""

    @abstractmethod
    def starts(self, source: Type, numbers: _Numbers) -> _Numbers:
        """Return the first stored date or timestamp of each unit.

        Raises
        ------
        ValueError
            The start of a unit is beyond the range of the column's type.
        """

    @abstractmethod
    def number_text(self, number: int) -> str:
        """Format the number of a unit, as in partition paths: ``2024-01`` for a month."""

    @abstractmethod
    def parse_text(self, text: str) -> PlainValue:
        """Parse a text in the form of `number_text`; return the stored result.

        Raises
        ------
        ValueError
            The text does not have this form.
        """

    def accepts(self, source: Type) -> bool:
        """Return whether the type is a date or a timestamp."""
        return base_in(source, _DATES_AND_TIMESTAMPS)

    def result_type(self, source: Type | None) -> Type:
        """Return int."""
        return _INT

    def _apply(self, source: Type, values: AnyArray) -> AnyArray:
        if not self.accepts(source):
            raise OptionError(f"{self.name} of {source}: the transform accepts only dates and timestamps")
        numbers = self.numbers(source, integers_of(values))
        if len(numbers) and max(-int(numbers.min()) - 1, int(numbers.max())) >= 2**31:
            # The spec's "Partition Transforms": the result is an int.
            raise OptionError(f"{self.name} of a {source}: {self.name}s since 1970 do not fit in an int")
        return pa.array(numbers.astype(np.int32), mask=np.asarray(values.is_null()))

    def _project(
        self, op: Op, literals: tuple[Any, ...], source: Type, apply: Callable[[Any], Any], *, strict: bool
    ) -> Projection | None:
        out = project_ordered(op, literals, apply, _INT, strict=strict)
        return None if out is None else _before_1970(out, strict)

    def to_human_string(self, type_: Type, value: PlainValue) -> str:
        """Format a unit: ``2024-01`` for a month, ``2024-01-01-05`` for an hour."""
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            return self.number_text(int(value))
        return format_value(type_, value)

    def preimage(self, source: Type, values: AnyArray) -> Preimage | None:
        """Return the first and last stored date or timestamp of each unit."""
        numbers = integers_of(values)
        return Preimage(self.starts(source, numbers), self.starts(source, numbers + 1) - 1)


@dataclass(frozen=True)
class _CalendarTransform(TimeTransform):
    """Units of one or several months."""

    months: ClassVar[int]
    same_for_timestamps: ClassVar[bool] = True

    def numbers(self, source: Type, stored: _Numbers) -> _Numbers:
        days = stored // _day_size(source)
        return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) // self.months

    def starts(self, source: Type, numbers: _Numbers) -> _Numbers:
        days = (numbers * self.months).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
        return _scaled(days, _day_size(source))

    def scalar_function(self, source: Type) -> Callable[[Any], Any] | None:
        """Return the function from a stored date or timestamp to the number of its unit."""
        if not self.accepts(source):
            return None
        size, months = _day_size(source), self.months
        return lambda value: _month_of(value // size) // months

    def parse_value(self, value: PlainValue) -> PlainValue:
        """Return the number of a unit, given its text, a date, or the number."""
        if isinstance(value, date):
            return ((value.year - 1970) * 12 + value.month - 1) // self.months
        return self.parse_text(value) if isinstance(value, str) else whole_number(value)

    def preimage(self, source: Type, values: AnyArray) -> Preimage | None:
        """Return the first and last stored date or timestamp of each unit."""
        numbers = integers_of(values)
        if _greatest(numbers) > 12 * 300_000:
            raise ValueError("the date is too far from 1970")
        return super().preimage(source, values)

    def refines(self, other: Transform, source: Type) -> bool:
        """Return True for a longer unit whose beginnings are also beginnings of this unit."""
        return isinstance(other, _CalendarTransform) and self.months < other.months and other.months % self.months == 0


@dataclass(frozen=True)
class _ClockTransform(TimeTransform):
    """Units of the same length, a day or a part of it."""

    seconds: ClassVar[int]

    def numbers(self, source: Type, stored: _Numbers) -> _Numbers:
        return stored // self._size(source)

    def starts(self, source: Type, numbers: _Numbers) -> _Numbers:
        return _scaled(numbers, self._size(source))

    def _size(self, source: Type) -> int:
        """Return the length of a unit in the column's stored units; for dates, these are days."""
        return self.seconds * INSTANT_UNITS[type_base(source)] if base_in(source, _TIMESTAMPS) else 1

    def scalar_function(self, source: Type) -> Callable[[Any], Any] | None:
        """Return the function from a stored date or timestamp to the number of its unit."""
        if not self.accepts(source):
            return None
        size = self._size(source)
        return lambda value: value // size

    def refines(self, other: Transform, source: Type) -> bool:
        """Return True if the other transform is month or year, or if its unit is a longer multiple of this one."""
        if isinstance(other, _ClockTransform):
            return self.seconds < other.seconds and other.seconds % self.seconds == 0
        return isinstance(other, _CalendarTransform)


@dataclass(frozen=True)
class YearTransform(_CalendarTransform):
    """Years since 1970."""

    name: ClassVar[str] = "year"
    spark_name: ClassVar[str | None] = "years"
    aliases: ClassVar[tuple[str, ...]] = ("years",)
    months: ClassVar[int] = 12

    def number_text(self, number: int) -> str:
        """Format as ``2024``."""
        return year_text(1970 + number)

    def parse_text(self, text: str) -> int:
        """Parse ``2024``."""
        return int(text) - 1970

    def parse_value(self, value: PlainValue) -> PlainValue:
        """Return the number of years since 1970; refuse a number that is probably meant as a calendar year."""
        number = super().parse_value(value)
        if not isinstance(value, (date, str)) and 1000 <= number <= 9999:
            text = f"years are stored as a count from 1970, so {number} means {number + 1970}: write {str(number)!r}"
            raise ValueError(text)
        return number


@dataclass(frozen=True)
class MonthTransform(_CalendarTransform):
    """Months since 1970-01."""

    name: ClassVar[str] = "month"
    spark_name: ClassVar[str | None] = "months"
    aliases: ClassVar[tuple[str, ...]] = ("months",)
    months: ClassVar[int] = 1

    def number_text(self, number: int) -> str:
        """Format as ``2024-05``."""
        return f"{year_text(1970 + number // 12)}-{number % 12 + 1:02d}"

    def parse_text(self, text: str) -> int:
        """Parse ``2024-05``."""
        year, month = text.split("-")
        return (int(year) - 1970) * 12 + _within(int(month), 1, 12) - 1


@dataclass(frozen=True)
class DayTransform(_ClockTransform):
    """Days since 1970-01-01, as a date."""

    name: ClassVar[str] = "day"
    spark_name: ClassVar[str | None] = "days"
    aliases: ClassVar[tuple[str, ...]] = ("days", "date")
    same_for_timestamps: ClassVar[bool] = True
    seconds: ClassVar[int] = _DAY

    def result_type(self, source: Type | None) -> Type:
        """Return date, even if the writer stored an int (spec, "Partition Transforms", note 1)."""
        return PrimitiveType("date")

    def _project(
        self, op: Op, literals: tuple[Any, ...], source: Type, apply: Callable[[Any], Any], *, strict: bool
    ) -> Projection | None:
        if base_in(source, _TIMESTAMPS):
            return super()._project(op, literals, source, apply, strict=strict)
        return Projection(op, literals, source)  # a date is its own day; Java's projection is wider than needed

    def number_text(self, number: int) -> str:
        """Format as ``2024-05-17``."""
        return day_text(number)

    def parse_text(self, text: str) -> PlainValue:
        """Return the text unchanged: dates are parsed by their type."""
        return text

    def parse_value(self, value: PlainValue) -> PlainValue:
        """Return the date of a datetime; other values are returned unchanged, as dates are parsed by their type."""
        return value.date() if isinstance(value, datetime) else value


@dataclass(frozen=True)
class HourTransform(_ClockTransform):
    """Hours since 1970-01-01T00."""

    name: ClassVar[str] = "hour"
    spark_name: ClassVar[str | None] = "hours"
    aliases: ClassVar[tuple[str, ...]] = ("hours", "date_hour")
    seconds: ClassVar[int] = 3600

    def accepts(self, source: Type) -> bool:
        """Return whether the type is a timestamp."""
        return base_in(source, _TIMESTAMPS)

    def number_text(self, number: int) -> str:
        """Format as ``2024-05-17-06``."""
        return f"{day_text(number // 24)}-{number % 24:02d}"

    def parse_text(self, text: str) -> int:
        """Parse ``2024-05-17-06`` or ``2024-05-17T06``."""
        return self._number(datetime.strptime(text, "%Y-%m-%d-%H" if "T" not in text else "%Y-%m-%dT%H"))

    def parse_value(self, value: PlainValue) -> PlainValue:
        """Return the number of an hour, given its text, a datetime, or the number."""
        if isinstance(value, datetime):
            return self._number(value)
        return self.parse_text(value) if isinstance(value, str) else whole_number(value)

    @staticmethod
    def _number(value: datetime) -> int:
        return (value.date() - date(1970, 1, 1)).days * 24 + value.hour


def _day_size(source: Type) -> int:
    """Return the length of a day in the column's stored units."""
    return _DAY * INSTANT_UNITS[type_base(source)] if base_in(source, _TIMESTAMPS) else 1


def _greatest(numbers: _Numbers) -> int:
    """Return the greatest absolute value of the numbers; 0 if there are none."""
    return max(abs(int(numbers.min())), abs(int(numbers.max()))) if len(numbers) else 0


def _scaled(numbers: _Numbers, size: int) -> _Numbers:
    if _greatest(numbers) * size >= 2**63:
        raise ValueError("out of the range of the column's type")
    return numbers * size


def _within(value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        raise ValueError(f"{value} is not between {low} and {high}")
    return value


def _month_of(days: int) -> int:
    """Return the months since 1970-01 (Hinnant, "chrono-compatible date algorithms")."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    return (era * 400 + year_of_era - 1970) * 12 + (5 * day_of_year + 2) // 153 + 2  # the year begins in March


def _before_1970(p: Projection, strict: bool) -> Projection:
    """Widen a projection for old files: up to Iceberg 0.10, results before 1970 could be one unit too high.

    Only times that are a whole number of units from 1970 had correct results. Java:
    ``ProjectionUtil.fixInclusiveTimeProjection`` and ``fixStrictTimeProjection``.
    """
    x: Any = p.literals[0] if p.literals else 0
    match p.op:
        case "<" | "<=" if not strict and x < 0:
            return Projection(p.op, (x + 1,), _INT)
        case ">" | ">=" if strict and x <= 0:
            return Projection(p.op, (x + 1,), _INT)
        case "=" | "in" | "!=" | "not-in" if any(v < 0 for v in p.literals):
            wide = distinct(v + more for v in p.literals for more in ((0, 1) if v < 0 else (0,)))
            return Projection("in" if p.op in ("=", "in") else "not-in", wide, _INT)
    return p
