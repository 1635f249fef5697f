"""A disk on which there is little room."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["little_room"]


@contextmanager
def little_room(size: int = 1000) -> Iterator[None]:
    """No file can grow beyond so many bytes."""
    import resource  # not on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
