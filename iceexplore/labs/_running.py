"""Marks of running commits in a folder, so that the search for orphan files skips their files.

A commit holds a lock on its mark file. The system releases the lock when the process ends, however it ends, so a mark
without a lock belongs to a killed commit.
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
except ImportError:  # Windows: every mark counts as locked, see `oldest_running`
    fcntl = None

__all__ = ["MARK", "Turn", "is_mark", "oldest_running", "running"]

#: Suffix of the names of mark files: ``metadata/.<uuid>.commit``.
MARK = ".commit"
_POLL_SECONDS = 0.005


def is_mark(name: str) -> bool:
    """Return whether a file is a mark, by its name."""
    return name.startswith(".") and name.endswith(MARK)


@contextmanager
def running(folder: str) -> Iterator[None]:
    """Mark a commit as running in a metadata folder while the block runs.

    Raises
    ------
    StorageError
        The folder does not exist or cannot be written.
    """
    path = os.path.join(folder, f".{uuid.uuid4()}{MARK}")
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    except OSError as e:
        raise StorageError(f"cannot commit: {folder} is not writable ({e.strerror})") from e
    try:
        if fcntl is not None:
            with suppress(OSError):  # the file system has no locks: every mark counts as locked, as on Windows
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        with suppress(FileNotFoundError):
            os.unlink(path)
        os.close(descriptor)


def oldest_running(folder: str) -> int | None:
    """Return when the oldest running commit began, in milliseconds since the epoch; None if none is running.

    On Windows and on file systems without locks of this kind, every mark counts as the mark of a running commit.
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
    """A queue of the writers of one machine: a lock on the metadata folder.

    Commits are correct without it. But a writer whose commit lost to another waits for its turn, so that many writers
    do not repeat all their work each time one of them commits.
    """

    def __init__(self) -> None:
        self._descriptor: int | None = None

    @property
    def taken(self) -> bool:
        """Whether this writer has its turn."""
        return self._descriptor is not None

    def take(self, folder: str, seconds: float) -> bool:
        """Wait up to this many seconds for the turn; return False if it did not come or locks are not supported."""
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
            except OSError:  # the file system does not support locks on folders
                os.close(descriptor)
                return False
            self._descriptor = descriptor
            return True

    def end(self) -> None:
        """Release the turn for the next writer."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
