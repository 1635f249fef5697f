"""Read dates, times and timestamps as people write them in a filter, exact to the nanosecond."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from iceexplore.errors import FormatError
from iceexplore.metadata import parse_date, time_nanos

__all__ = ["DAY", "read_date", "read_time", "read_timestamp"]

#: Nanoseconds per day.
DAY = 86_400_000_000_000
_SECOND = 1_000_000_000
_TIMESTAMP = re.compile(
    r"""(?P<date>[+-]?\d{4,6}-\d\d-\d\d)
    (?:[T ]\s*(?P<time>\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)
    (?:\s*(?P<zone>Z|z|UTC|GMT|(?P<sign>[+-])(?P<hours>\d\d)(?::?(?P<minutes>\d\d))?|[A-Za-z][\w+-]*(?:/[\w+-]+)+))?)?""",
    re.VERBOSE | re.ASCII,
)


def read_date(text: str) -> int:
    """Return the days since 1970-01-01.

    Raises
    ------
    ValueError
        The text does not look like ``2024-05-17``, or the calendar has no such day.
    """
    try:
        return parse_date(text.strip())
    except FormatError as error:
        raise ValueError(error.reason) from None


def read_time(text: str) -> int:
    """Return the nanoseconds since midnight.

    Raises
    ------
    ValueError
        The text does not look like ``14:30`` or ``14:30:00``, or has more than nine fractional digits.
    """
    try:
        return time_nanos(text.strip())
    except FormatError as error:
        raise ValueError(error.reason) from None


def read_timestamp(text: str) -> tuple[int, bool]:
    """Return the nanoseconds since 1970-01-01T00:00 (UTC if a zone is given), and whether a zone is given.

    A date alone means its midnight. Zones are ``Z``, ``UTC``, ``+02:00`` or ``Europe/Berlin``. If an hour occurs twice
    because clocks are set back, the first occurrence is used, as in Spark.

    Raises
    ------
    ValueError
        The text is not a timestamp.
    """
    match = _TIMESTAMP.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a timestamp like '2024-05-17 14:30:00' or '2024-05-17T14:30:00+02:00'")
    nanos = read_date(match["date"]) * DAY + (read_time(match["time"]) if match["time"] else 0)
    zone = match["zone"]
    if zone is None:
        return nanos, False
    if match["sign"]:
        hours, minutes = int(match["hours"]), int(match["minutes"] or 0)
        if hours > 18 or minutes > 59:
            raise ValueError(f"{zone} is not a valid zone offset")
        offset = (hours * 3600 + minutes * 60) * _SECOND
        return nanos + offset * (1 if match["sign"] == "-" else -1), True
    return nanos if "/" not in zone else nanos - _offset(zone, nanos), True


def _offset(zone: str, nanos: int) -> int:
    try:
        local = datetime(1970, 1, 1) + timedelta(seconds=nanos // _SECOND)
        found = local.replace(tzinfo=ZoneInfo(zone)).utcoffset()
    except (KeyError, ValueError, OverflowError, OSError) as error:
        raise ValueError(f"{zone} is not a valid time zone: {error}") from None
    return 0 if found is None else int(found.total_seconds()) * _SECOND
