"""Commits that are going on in a folder: whoever looks for files left behind must leave theirs alone.

A commit holds a lock on a file of its own. The system lets go of it when the process ends, however it ends, so that a
mark without its lock is one of a commit that was killed.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from iceexplore.errors import StorageError

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows: marks count as held, see `oldest_running`
    fcntl = None

__all__ = ["MARK", "Turn", "is_mark", "oldest_running", "running"]

#: Marks are ``metadata/.<uuid>.commit``.
MARK = ".commit"
_POLL_SECONDS = 0.005


def is_mark(name: str) -> bool:
    """Whether a file is a mark, by its name."""
    return name.startswith(".") and name.endswith(MARK)


@contextmanager
def running(folder: str) -> Iterator[None]:
    """While this lasts, a commit is going on in a metadata folder.

    Raises
    ------
    StorageError
        The folder is gone, or cannot be written.
    """
    path = os.path.join(folder, f".{uuid.uuid4()}{MARK}")
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    except OSError as e:
        raise StorageError(f"nothing can be committed: {folder} cannot be written ({e.strerror})") from e
    try:
        if fcntl is not None:
            with suppress(OSError):  # a file system without locks: files of this commit count as left behind
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        with suppress(FileNotFoundError):
            os.unlink(path)
        os.close(descriptor)


def oldest_running(folder: str) -> int | None:
    """When the oldest commit that is still going on began (milliseconds since the epoch); None if none is.

    Where the system has no such locks (Windows) every mark counts.
    """
    found = []
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        with suppress(FileNotFoundError):
            if is_mark(name) and _is_held(path):
                found.append(os.stat(path).st_mtime_ns // 1_000_000)
    return min(found, default=None)


def _is_held(path: str) -> bool:
    if fcntl is None:
        return True
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


class Turn:
    """A queue of the writers of one machine: a lock on the metadata folder itself.

    Commits are right without it. But a writer that was second once takes its turn, so that not every one of many
    writers does all its work for nothing each time another one is first.
    """

    def __init__(self) -> None:
        self._descriptor: int | None = None

    @property
    def taken(self) -> bool:
        """Whether it is this writer's turn."""
        return self._descriptor is not None

    def take(self, folder: str, seconds: float) -> bool:
        """Wait for the turn, at most so long; False if it did not come, or there is no such lock here."""
        if fcntl is None:
            return False
        descriptor = os.open(folder, os.O_RDONLY)
        end = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() < end:
                    time.sleep(_POLL_SECONDS)
                    continue
                os.close(descriptor)
                return False
            except OSError:  # a file system without locks on folders
                os.close(descriptor)
                return False
            self._descriptor = descriptor
            return True

    def end(self) -> None:
        """Let the next one have its turn."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
