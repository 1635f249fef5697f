"""Parse the times before which files or snapshots count as old, and write times in Spark SQL and Python."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from iceexplore.errors import OptionError
from iceexplore.graph import to_ms

__all__ = ["before_ms", "python_datetime", "spark_timestamp"]

_AGE = re.compile(r"\s*(\d{1,9})\s*(ms|s|m|h|d|w)\s*", re.ASCII)
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}


def before_ms(older_than: object, now_ms: int) -> int:
    """Convert an age (``"3d"``, ``"36h"``, a timedelta) or a time to a time in milliseconds since the epoch.

    An age is subtracted from ``now_ms``.

    Raises
    ------
    OptionError
        The argument is neither an age nor a time.
    """
    if isinstance(older_than, timedelta):
        return now_ms - older_than // timedelta(milliseconds=1)
    if isinstance(older_than, str) and (age := _AGE.fullmatch(older_than)):
        return now_ms - int(age[1]) * _UNITS[age[2]]
    try:
        return to_ms(older_than)
    except OptionError:
        raise OptionError(
            f"older_than={older_than!r}: give an age ('3d', '36h', a timedelta), or a time (a datetime, ISO text or "
            "milliseconds since the epoch)"
        ) from None


def spark_timestamp(ms: int) -> str:
    """Return a time as a literal of Spark SQL, in UTC, so that the session's time zone does not change it.

    Raises
    ------
    OptionError
        The time is not in the years 1 to 9999.
    """
    return f"TIMESTAMP '{_utc(ms):%Y-%m-%d %H:%M:%S}.{ms % 1000:03d}Z'"


def python_datetime(ms: int) -> str:
    """Return a time as a Python expression: ``datetime.fromisoformat('2024-01-31T12:00:00.000+00:00')``.

    Raises
    ------
    OptionError
        The time is not in the years 1 to 9999.
    """
    return f"datetime.fromisoformat('{_utc(ms):%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}+00:00')"


def _utc(ms: int) -> datetime:
    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms // 1000 * 1000)
    except OverflowError:
        raise OptionError(f"older_than: {ms} milliseconds since the epoch is not in the years 1 to 9999") from None
