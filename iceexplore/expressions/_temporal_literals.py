"""Dates, times and timestamps as people write them in a filter, exact to the nanosecond."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from iceexplore.errors import FormatError
from iceexplore.metadata import parse_date, time_nanos

__all__ = ["DAY", "read_date", "read_time", "read_timestamp"]

#: Nanoseconds.
DAY = 86_400_000_000_000
_SECOND = 1_000_000_000
_TIMESTAMP = re.compile(
    r"""(?P<date>[+-]?\d{4,6}-\d\d-\d\d)
    (?:[T ]\s*(?P<time>\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)
    (?:\s*(?P<zone>Z|z|UTC|GMT|(?P<sign>[+-])(?P<hours>\d\d)(?::?(?P<minutes>\d\d))?|[A-Za-z][\w+-]*(?:/[\w+-]+)+))?)?""",
    re.VERBOSE | re.ASCII,
)


def read_date(text: str) -> int:
    """Days since 1970-01-01.

    Raises
    ------
    ValueError
        Not ``2024-05-17``, or a day that no calendar has.
    """
    try:
        return parse_date(text.strip())
    except FormatError as error:
        raise ValueError(error.reason) from None


def read_time(text: str) -> int:
    """Nanoseconds since midnight.

    Raises
    ------
    ValueError
        Not ``14:30``, ``14:30:00`` or with up to nine digits of the second.
    """
    try:
        return time_nanos(text.strip())
    except FormatError as error:
        raise ValueError(error.reason) from None


def read_timestamp(text: str) -> tuple[int, bool]:
    """Nanoseconds since 1970-01-01T00:00, and whether a zone was given (they are UTC's then).

    A date alone is its midnight. Zones: ``Z``, ``UTC``, ``+02:00``, ``Europe/Berlin``; of an hour that a zone has twice
    it is the first one, as in Spark.

    Raises
    ------
    ValueError
        Anything else.
    """
    match = _TIMESTAMP.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no timestamp like '2024-05-17 14:30:00' or '2024-05-17T14:30:00+02:00'")
    nanos = read_date(match["date"]) * DAY + (read_time(match["time"]) if match["time"] else 0)
    zone = match["zone"]
    if zone is None:
        return nanos, False
    if match["sign"]:
        hours, minutes = int(match["hours"]), int(match["minutes"] or 0)
        if hours > 18 or minutes > 59:
            raise ValueError(f"{zone} is no offset of a zone")
        offset = (hours * 3600 + minutes * 60) * _SECOND
        return nanos + offset * (1 if match["sign"] == "-" else -1), True
    return nanos if "/" not in zone else nanos - _offset(zone, nanos), True


def _offset(zone: str, nanos: int) -> int:
    try:
        local = datetime(1970, 1, 1) + timedelta(seconds=nanos // _SECOND)
        found = local.replace(tzinfo=ZoneInfo(zone)).utcoffset()
    except (KeyError, ValueError, OverflowError, OSError) as error:
        raise ValueError(f"{zone} is no zone of a timestamp: {error}") from None
    return 0 if found is None else int(found.total_seconds()) * _SECOND
