"""Temporary folders: errors of ours where there is no room for them, and an end also after a process that was killed.

A folder that is removed when its owner ends stays behind if the owner is killed. So each is locked for as long as its
process lives, and whoever makes the next one removes those of the same user that nobody has locked any more. A lock
says this better than a process id: ids are used again, and mean nothing to the containers that share a ``/tmp``.
"""

from __future__ import annotations

import errno
import importlib
import os
import re
import shutil
import stat
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Literal

from iceexplore.errors import IceexploreError, TemporaryFolderError
from iceexplore.storage.stores._faults import short_message

__all__ = ["TemporaryFolder", "folder_beside", "no_room", "temporary_room"]

#: The system's locks; on Windows nothing is locked, and so nothing is swept.
_LOCKS: Any = importlib.import_module("fcntl") if os.name == "posix" else None
#: Names of folders whose process holds a lock on them; those of earlier versions, and those that could not be locked,
#: are called otherwise and are never swept.
_SWEPT = re.compile(r"iceexplore-(?:overlay|zip|table|copy)-locked-[A-Za-z0-9_]{8}")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)
#: Seconds until a process looks again: a folder of a hundred thousand names takes a tenth of a second to look through.
_PAUSE = 60.0
_DAY = 86_400.0
_last_sweep: dict[str, float] = {}
_sweeping = threading.Lock()


class TemporaryFolder:
    """A folder of this process in the system's temporary one.

    Parameters
    ----------
    kind
        What it holds; a part of its name.
    what
        What cannot be done without it, for the error: ``"the simulation"``.
    instead
        What besides TMPDIR the user can set, for the error: ``"give overlay="``.

    Attributes
    ----------
    path
        The real path: the system's temporary folder may itself be a link (macOS).

    Raises
    ------
    TemporaryFolderError
        It cannot be made.
    """

    def __init__(
        self, kind: Literal["overlay", "zip", "table", "copy"], what: str, *, instead: str | None = None
    ) -> None:
        with temporary_room(what, instead=instead):
            parent = tempfile.gettempdir()
            _sweep(parent)
            made = os.path.realpath(tempfile.mkdtemp(prefix=f"iceexplore-{kind}-", dir=parent))
        # It gets its swept name when it is locked already: nobody sees it under that name without its lock.
        self.path, self._lock = _locked(made, kind)
        self._owner = os.getpid()

    def remove(self) -> None:
        """Remove it and what is in it; in a process that was forked it is somebody else's, and stays."""
        if os.getpid() != self._owner:
            return
        shutil.rmtree(self.path, ignore_errors=True)
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)

    def remove_with(self, owner: object) -> weakref.finalize:  # type: ignore[type-arg]
        """Remove it with the last reference to ``owner``, or at the end of the process; calling the result does now."""
        return weakref.finalize(owner, self.remove)


def _locked(made: str, kind: str) -> tuple[str, int | None]:
    name = f"iceexplore-{kind}-locked-{made[-8:]}"
    return _renamed(made, name) if _SWEPT.fullmatch(name) else (made, None)


def _renamed(made: str, name: str) -> tuple[str, int | None]:
    """Lock a folder and give it the name under which it is swept; if that cannot be, it keeps its own."""
    lock = _lock_of(made)
    if lock is None:
        return made, None
    path = os.path.join(os.path.dirname(made), name)
    try:
        if os.path.lexists(path):
            raise FileExistsError(path)
        os.rename(made, path)
    except OSError:
        os.close(lock)
        return made, None
    return path, lock


def _lock_of(folder: str) -> int | None:
    """A descriptor that holds the folder's lock; None if it is held, or cannot be had (NFS locks no folders)."""
    if _LOCKS is None:
        return None
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        _LOCKS.flock(descriptor, _LOCKS.LOCK_EX | _LOCKS.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _sweep(parent: str) -> None:
    """Remove what killed processes of this user left; whatever is in the way of that stays where it is."""
    if _LOCKS is None:
        return
    with _sweeping:
        now = time.monotonic()
        if now - _last_sweep.get(parent, -_PAUSE) < _PAUSE:
            return
        _last_sweep[parent] = now
    try:
        with os.scandir(parent) as found:
            names = [e.name for e in found if _SWEPT.fullmatch(e.name)]
    except OSError:
        return
    for name in names:
        with suppress(OSError):
            _sweep_one(os.path.join(parent, name))


def _sweep_one(path: str, least_age: float = 0) -> None:
    lock = _lock_of(path)  # of a folder alone: a link is not followed
    if lock is None:
        return
    try:
        held, there = os.fstat(lock), os.lstat(path)
        same = (held.st_dev, held.st_ino) == (there.st_dev, there.st_ino)
        old = not least_age or time.time() - there.st_mtime >= least_age
        if same and old and stat.S_ISDIR(there.st_mode) and there.st_uid == os.getuid():
            shutil.rmtree(path, ignore_errors=True)  # follows no links
    finally:
        os.close(lock)


@contextmanager
def folder_beside(target: str) -> Iterator[str]:
    """Make a hidden folder beside ``target``, to be renamed to it; what is still there at the end is removed.

    A process that is killed leaves its folder. The next one for the same target removes it if nobody has it locked
    and it has been there for a day: not every file system that machines share shows the locks of the others.
    """
    parent, name = os.path.split(target)
    start = f".{name[:80]}-iceexplore-"
    if _LOCKS is not None:
        with suppress(OSError), os.scandir(parent) as found:
            pattern = re.compile(re.escape(start) + r"locked-[A-Za-z0-9_]{8}")
            for path in [e.path for e in found if pattern.fullmatch(e.name)]:
                with suppress(OSError):
                    _sweep_one(path, least_age=_DAY)
    made = tempfile.mkdtemp(prefix=start, dir=parent)
    path, lock = _renamed(made, f"{start}locked-{made[-8:]}")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        if lock is not None:
            os.close(lock)


@contextmanager
def temporary_room(what: str, *, instead: str | None = None) -> Iterator[None]:
    """Turn the system's refusal to write into its temporary folder into an error of ours; see `no_room`."""
    try:
        yield
    except OSError as e:
        if isinstance(e, IceexploreError):  # some of ours are both
            raise
        raise no_room(e, what, instead=instead) from e


def no_room(error: OSError, what: str, *, instead: str | None = None) -> TemporaryFolderError:
    """Our error for a temporary folder that is full, read-only or not there: what it is, and what to set."""
    setting = "set the environment variable TMPDIR to a folder with room and start Python again"
    advice = f"{setting}, or {instead}" if instead else setting
    try:
        place = f"the temporary folder {tempfile.gettempdir()}"
    except OSError:  # none of those that Python tries can be written to
        return TemporaryFolderError(f"{what} needs a temporary folder, and no folder here can be one: {advice}")
    why = error.strerror or short_message(error)
    if error.errno in _FULL:
        return TemporaryFolderError(f"{what} does not fit: {place} is full ({why}). Make room there, or {advice}")
    if error.errno in _DENIED:
        return TemporaryFolderError(f"{what} cannot be written: {place} is read-only for this user ({why}); {advice}")
    return TemporaryFolderError(f"{what} cannot be written: {place} cannot be used ({why}); {advice}")
