"""A file for the user that is written whole or not at all: what was there stays until all of the new one is written."""

from __future__ import annotations

import os
import tempfile
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from iceexplore.errors import AccessDeniedError, IceexploreError, OptionError, StorageError
from iceexplore.storage._location import basename, canonical, check_host, dirname, is_local, is_uri, join
from iceexplore.storage.output._writable import ExistsError

__all__ = ["path_here", "place_to_write", "whole_file"]


def place_to_write(path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """The path with ``~`` expanded, if a file can be written there: to be asked before much is read for it.

    Of a ``file:`` URI it is the URI's path, see `path_here`.

    Raises
    ------
    OptionError
        That is no path on this machine, its folder is not there, or a folder (or what else is no file) stands in
        its place.
    ExistsError
        A file is there and ``overwrite`` is false. It is a FileExistsError, too.
    """
    try:
        target = Path(path_here(path)).expanduser()
    except RuntimeError as e:  # the home of nobody
        raise OptionError(f"path={path!r}: give the file to write, as in 'trips.html' ({e})") from e
    try:
        if target.is_dir():
            raise OptionError(f"{target} is a folder: name a file in it")
        if not target.parent.is_dir():
            raise OptionError(f"there is no folder {target.parent}: make it first, or choose another")
        if not overwrite and os.path.lexists(target):
            raise _there(target)
        if target.exists() and not target.is_file():
            raise OptionError(f"{target} is no ordinary file: it is not replaced, choose another name")
    except IceexploreError:  # some are OSErrors, too
        raise
    except OSError as e:  # a name too long, a folder that may not be looked into
        raise _refused(target, e) from e
    return target


def path_here(path: str | os.PathLike[str]) -> str:
    """The path, of a ``file:`` URI the URI's: percent signs in it are decoded, unless what they spell is there.

    Raises
    ------
    OptionError
        It is a URI of another place, or what no path can be.
    """
    given: Any = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(given, str):
        raise OptionError(f"path={path!r}: give the file to write, as in 'trips.html', or the folder")
    place: str = given
    if is_uri(place):
        place = canonical(check_host(place))
        if not is_local(place):
            raise OptionError(
                f"path={path!r} is a URI, and what is written goes to this machine's disk: give a path there"
            )
        place = _decoded(place)
    try:
        bytes_of = os.fsencode(place)
    except UnicodeEncodeError:
        bytes_of = b"\0"
    if b"\0" in bytes_of:
        raise OptionError(f"path={path!r} has a character that no path can have: a NUL or half a character")
    return place


def _decoded(place: str) -> str:
    """A URI's path without its percent signs; where a file or its folder is spelled with them, as `open` takes it."""
    if "\0" in place or os.path.exists(place):
        return place
    folder = dirname(place)
    if not os.path.exists(folder):
        folder = urllib.parse.unquote(folder, errors="surrogateescape")
    return join(folder, urllib.parse.unquote(basename(place), errors="surrogateescape"))


@contextmanager
def whole_file(path: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[IO[bytes]]:
    """A file to write and read: a temporary one beside ``path``, which takes its place once the block has ended well.

    Raises
    ------
    OptionError, ExistsError
        See `place_to_write`.
    StorageError, AccessDeniedError
        The disk refuses it: what was there is untouched.
    """
    target = place_to_write(path, overwrite=overwrite)
    real = os.path.realpath(target)  # of a link, what it leads to
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name[:80]}-", dir=os.path.dirname(real))
        with os.fdopen(handle, "w+b") as file:
            yield file
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)  # mkstemp makes it the user's alone
        if overwrite:
            os.replace(temporary, real)
        else:
            _rename_new(temporary, target)
    except IceexploreError:  # some are OSErrors, too
        raise
    except OSError as e:
        raise _refused(target, e) from e
    finally:
        if temporary is not None:
            with suppress(FileNotFoundError):
                os.unlink(temporary)


def _rename_new(temporary: str, target: Path) -> None:
    """Rename without replacing a file that came meanwhile; plain rename where the file system has no hard links."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise _there(target) from None
    except OSError:
        os.replace(temporary, target)


def _refused(target: Path, error: OSError) -> IceexploreError:
    kind = AccessDeniedError if isinstance(error, PermissionError) else StorageError
    reason = error.strerror or type(error).__name__
    return kind(f"{target} could not be written ({reason}), and nothing was changed: choose another place")


def _there(target: Path) -> ExistsError:
    return ExistsError(f"{target} is there already; overwrite=True replaces it")
