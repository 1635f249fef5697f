"""Translate the errors that other libraries raise for untrusted bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from iceexplore.errors import FormatError, IceexploreError, UnsupportedError

__all__ = ["foreign"]


@contextmanager
def foreign(what: str, location: str) -> Iterator[None]:
    """Turn any exception of a library that reads ``what`` into `FormatError` or `UnsupportedError`.

    Libraries that decode untrusted bytes raise nearly anything (ArrowInvalid, OSError, KeyError, OverflowError,
    MemoryError from a claimed size, RecursionError …), so all of them are caught here, and nowhere else.
    """
    try:
        yield
    except IceexploreError:
        raise
    except NotImplementedError as error:
        raise UnsupportedError(f"{what}: {_first_line(error)} · in {location}") from error
    except Exception as error:
        raise FormatError(f"{what} cannot be read: {_first_line(error)}", location=location) from error


def _first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return (text[0] if text else type(error).__name__)[:300]
