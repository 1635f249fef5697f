"""Convert dates, times and timestamps between Iceberg's stored integers, Python values and ISO text.

Python's ``date`` and ``datetime`` end at the year 9999 and have microseconds; Iceberg's types have no such limits.
Values that Python's types cannot represent are a ``numpy.datetime64`` of the stored unit, and every function also
accepts the stored integer.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta

import numpy as np

from iceexplore.arrow import PlainValue
from iceexplore.errors import FormatError

__all__ = [
    "DAY_MICROS",
    "INSTANT_UNITS",
    "TIMESTAMP_UNITS",
    "civil_from_days",
    "date_value",
    "days_of",
    "micros_of_time",
    "parse_date",
    "parse_time",
    "parse_timestamp",
    "time_nanos",
    "time_value",
    "timestamp_text",
    "timestamp_value",
    "units_of",
]

DAY_MICROS = 86_400_000_000
#: For each timestamp type, the stored units per second, and whether it has a zone.
TIMESTAMP_UNITS = {
    "timestamp": (1_000_000, False),
    "timestamptz": (1_000_000, True),
    "timestamp_ns": (1_000_000_000, False),
    "timestamptz_ns": (1_000_000_000, True),
}
#: For each timestamp type, the stored units per second.
INSTANT_UNITS = {name: units for name, (units, _) in TIMESTAMP_UNITS.items()}

_EPOCH = datetime(1970, 1, 1)
_MIN_DAY = date.min.toordinal() - date(1970, 1, 1).toordinal()
_MAX_DAY = date.max.toordinal() - date(1970, 1, 1).toordinal()
_DATE = re.compile(r"([+-]?\d{4,9})-(\d\d)-(\d\d)")
_TIME = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?")


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Return year, month and day (proleptic Gregorian) for any number of days from 1970-01-01."""
    # Shifting the year to start in March puts the leap day last (Hinnant, "chrono-compatible date algorithms").
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    return era * 400 + year_of_era + (month <= 2), month, day


def _days_from_civil(year: int, month: int, day: int) -> int:
    if not (1 <= month <= 12 and 1 <= day <= 31):
        raise FormatError(f"{year:04d}-{month:02d}-{day:02d} is not a date", code="value-undecodable")
    shifted = year - (month <= 2)
    era, year_of_era = divmod(shifted, 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    days = era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468
    if civil_from_days(days) != (year, month, day):
        raise FormatError(f"{year:04d}-{month:02d}-{day:02d} is not a date", code="value-undecodable")
    return days


def date_value(days: int) -> date | np.datetime64:
    """Return the date that is ``days`` from 1970-01-01."""
    if _MIN_DAY <= days <= _MAX_DAY:
        return date.fromordinal(days + 719_163)
    return np.datetime64(days, "D")


def days_of(value: PlainValue) -> int:
    """Return the days from 1970-01-01 of a date, ``datetime64`` or integer."""
    if isinstance(value, np.datetime64):
        return int(value.astype("datetime64[D]").astype(np.int64))
    if isinstance(value, date):
        return value.toordinal() - 719_163
    return int(value)


def time_value(micros: int) -> time:
    """Return the time of day that is ``micros`` microseconds after midnight."""
    if not 0 <= micros < DAY_MICROS:
        raise FormatError(f"{micros} microseconds is not a time of day", code="value-undecodable")
    seconds, fraction = divmod(micros, 1_000_000)
    return time(seconds // 3600, seconds // 60 % 60, seconds % 60, fraction)


def micros_of_time(value: PlainValue) -> int:
    """Return the microseconds after midnight of a time or integer."""
    if isinstance(value, time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    return int(value)


def timestamp_value(units: int, base: str) -> datetime | np.datetime64:
    """Return the timestamp of type ``base`` (a key of `TIMESTAMP_UNITS`) that is ``units`` after the epoch."""
    per_second, zoned = TIMESTAMP_UNITS[base]
    if per_second == 1_000_000_000:
        return np.datetime64(units, "ns")
    if not _MIN_DAY <= units // DAY_MICROS <= _MAX_DAY:
        return np.datetime64(units, "us")
    value = _EPOCH + timedelta(microseconds=units)
    return value.replace(tzinfo=UTC) if zoned else value


def units_of(value: PlainValue, base: str) -> int:
    """Return the stored integer of a ``datetime`` (naive is UTC), ``datetime64``, pandas Timestamp or integer."""
    per_second, _ = TIMESTAMP_UNITS[base]
    if value != value:
        return -(2**63)  # NumPy and pandas store NaT as the lowest integer
    if isinstance(value, np.datetime64):
        unit = "ns" if per_second == 1_000_000_000 else "us"
        return int(value.astype(f"datetime64[{unit}]").astype(np.int64))
    if isinstance(value, datetime):
        naive = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        micros = (naive - _EPOCH) // timedelta(microseconds=1)
        # pandas' Timestamp is a datetime with additional nanoseconds; a plain datetime has none.
        return micros if per_second == 1_000_000 else micros * 1000 + int(getattr(naive, "nanosecond", 0))
    return int(value)


def parse_date(text: str) -> int:
    """Return the days from 1970-01-01 of an ISO date (spec Appendix D, "JSON single-value serialization")."""
    match = _DATE.fullmatch(text)
    if match is None:
        raise FormatError(f"{text!r} is not an ISO date", code="value-undecodable")
    return _days_from_civil(int(match[1]), int(match[2]), int(match[3]))


def parse_time(text: str) -> int:
    """Return the microseconds after midnight of an ISO time."""
    return time_nanos(text) // 1000


def parse_timestamp(text: str, base: str) -> int:
    """Return the stored integer of an ISO timestamp; a zone must be UTC."""
    per_second, zoned = TIMESTAMP_UNITS[base]
    plain = text
    if zoned:
        # The spec requires '+00:00'; older writers use Z.
        plain = next((text[: -len(suffix)] for suffix in ("+00:00", "Z") if text.endswith(suffix)), "")
    day, _, clock = plain.partition("T")
    if not clock:
        raise FormatError(f"{text!r} is not a {base}", code="value-undecodable")
    nanos = parse_date(day) * 86_400_000_000_000 + time_nanos(clock)
    units = nanos // (1_000_000_000 // per_second)
    if not -(2**63) <= units < 2**63:
        raise FormatError(f"{text!r} is out of range for a {base}", code="value-undecodable")
    return units


def time_nanos(text: str) -> int:
    """Return the nanoseconds after midnight of an ISO time with up to nine fractional digits."""
    match = _TIME.fullmatch(text)
    if match is None or int(match[1]) > 23 or int(match[2]) > 59 or int(match[3] or 0) > 59:
        raise FormatError(f"{text!r} is not an ISO time", code="value-undecodable")
    seconds = (int(match[1]) * 60 + int(match[2])) * 60 + int(match[3] or 0)
    return seconds * 1_000_000_000 + int((match[4] or "0").ljust(9, "0"))


def timestamp_text(units: int, base: str) -> str:
    """Format as Java's ``DateTimeUtil``: fractional digits only as needed, +00:00 for a zone."""
    per_second, zoned = TIMESTAMP_UNITS[base]
    seconds, fraction = divmod(units, per_second)
    days, seconds = divmod(seconds, 86_400)
    year, month, day = civil_from_days(days)
    digits = f"{fraction:0{len(str(per_second)) - 1}d}".rstrip("0")
    sign = "+" if year > 9999 else ""  # ISO 8601 expanded years, as java.time writes them
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return (
        f"{sign}{_year(year)}-{month:02d}-{day:02d}T{clock}{'.' + digits if digits else ''}{'+00:00' if zoned else ''}"
    )


def _year(year: int) -> str:
    return f"{year:04d}" if year >= 0 else f"-{-year:04d}"
