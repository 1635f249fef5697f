"""Temporary folders: clear errors if there is no space, and cleanup even after a killed process.

A folder that its process removes at exit stays behind if the process is killed. So each folder is locked as long as its
process lives, and the next process of the same user that creates a folder removes those that are no longer locked. A
lock is safer than a process id: ids are reused, and mean nothing to the containers that share a ``/tmp``.
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

#: The system's file locks; on Windows no folder is locked, so the folders of killed processes are not removed.
_LOCKS: Any = importlib.import_module("fcntl") if os.name == "posix" else None
#: Names of folders that their process has locked; folders of earlier versions and folders that could not be locked
#: have other names and are never swept.
_SWEPT = re.compile(r"iceexplore-(?:overlay|zip|table|copy)-locked-[A-Za-z0-9_]{8}")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)
#: Minimum seconds between two sweeps (removals of abandoned folders): listing 100,000 names takes a tenth of a second.
_PAUSE = 60.0
_DAY = 86_400.0
_last_sweep: dict[str, float] = {}
_sweeping = threading.Lock()


class TemporaryFolder:
    """A folder of this process in the system's temporary folder.

    Parameters
    ----------
    kind
        The folder's content, which becomes a part of its name.
    what
        What needs the folder, for the error: ``"the simulation"``.
    instead
        The user's alternative to setting TMPDIR, for the error: ``"give overlay="``.

    Attributes
    ----------
    path
        The real path: the system's temporary folder may itself be a link (macOS).

    Raises
    ------
    TemporaryFolderError
        The folder cannot be created.
    """

    def __init__(
        self, kind: Literal["overlay", "zip", "table", "view", "copy"], what: str, *, instead: str | None = None
    ) -> None:
        with temporary_room(what, instead=instead):
            parent = tempfile.gettempdir()
            _sweep(parent)
            made = os.path.realpath(tempfile.mkdtemp(prefix=f"iceexplore-{kind}-", dir=parent))
        # Rename the folder only once it is locked, so that no process takes it for an abandoned one.
        self.path, self._lock = _locked(made, kind)
        self._owner = os.getpid()

    def remove(self) -> None:
        """Remove the folder and its content; do nothing in a forked process, which does not own it."""
        if os.getpid() != self._owner:
            return
        shutil.rmtree(self.path, ignore_errors=True)
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)

    def remove_with(self, owner: object) -> weakref.finalize:  # type: ignore[type-arg]
        """Remove the folder when ``owner`` is collected or the process exits; return the finalizer, to call earlier."""
        return weakref.finalize(owner, self.remove)


def _locked(made: str, kind: str) -> tuple[str, int | None]:
    name = f"iceexplore-{kind}-locked-{made[-8:]}"
    return _renamed(made, name) if _SWEPT.fullmatch(name) else (made, None)


def _renamed(made: str, name: str) -> tuple[str, int | None]:
    """Lock a folder, rename it as locked, and return the new path; if that fails, keep the old name, unlocked."""
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
    """Return a descriptor that holds the folder's lock; None if it is taken or not supported (NFS)."""
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
    """Remove the folders of killed processes of this user; skip those that cannot be removed."""
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
    lock = _lock_of(path)  # locks only real folders: links are not followed
    if lock is None:
        return
    try:
        held, there = os.fstat(lock), os.lstat(path)
        same = (held.st_dev, held.st_ino) == (there.st_dev, there.st_ino)
        old = not least_age or time.time() - there.st_mtime >= least_age
        if same and old and stat.S_ISDIR(there.st_mode) and there.st_uid == os.getuid():
            shutil.rmtree(path, ignore_errors=True)  # does not follow links
    finally:
        os.close(lock)


@contextmanager
def folder_beside(target: str) -> Iterator[str]:
    """Create a hidden folder beside ``target``, to be renamed to it; remove it at the end if it still exists.

    A killed process leaves its folder behind. The next call for the same target removes that folder if it is unlocked
    and a day old: on file systems shared between machines, the locks of other machines may be invisible.
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
    """Turn an OSError from the temporary folder into a `TemporaryFolderError`; see `no_room`."""
    try:
        yield
    except OSError as e:
        if isinstance(e, IceexploreError):  # some IceexploreErrors are OSErrors
            raise
        raise no_room(e, what, instead=instead) from e


def no_room(error: OSError, what: str, *, instead: str | None = None) -> TemporaryFolderError:
    """Return the error for a temporary folder that is full, read-only or missing; it names the setting to change."""
    setting = "set the environment variable TMPDIR to a folder with free space and start Python again"
    advice = f"{setting}, or {instead}" if instead else setting
    try:
        place = f"the temporary folder {tempfile.gettempdir()}"
    except OSError:  # Python found no writable folder
        return TemporaryFolderError(f"{what} needs a temporary folder, and none is writable: {advice}")
    why = error.strerror or short_message(error)
    if error.errno in _FULL:
        return TemporaryFolderError(f"{what} does not fit: {place} is full ({why}). Make room there, or {advice}")
    if error.errno in _DENIED:
        return TemporaryFolderError(f"{what} cannot be written: {place} is read-only for this user ({why}); {advice}")
    return TemporaryFolderError(f"{what} cannot be written: {place} cannot be used ({why}); {advice}")
