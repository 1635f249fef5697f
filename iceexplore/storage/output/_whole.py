"""Files for the user, written completely or not at all: an existing file stays until the new one is complete."""

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
    """Return the path, with ``~`` expanded, if a file can be written there; call it before expensive work.

    A ``file:`` URI gives the URI's path, see `path_here`.

    Raises
    ------
    OptionError
        The path is not on this machine, its folder is missing, or it is a folder or something else that is not a
        regular file.
    ExistsError
        The file exists and ``overwrite`` is false. The error is a FileExistsError, too.
    """
    try:
        target = Path(path_here(path)).expanduser()
    except RuntimeError as e:  # no home folder for this user
        raise OptionError(f"path={path!r}: expected the file to write, as in 'trips.html' ({e})") from e
    try:
        if target.is_dir():
            raise OptionError(f"{target} is a folder: name a file in it")
        if not target.parent.is_dir():
            raise OptionError(f"the folder {target.parent} does not exist: create it first, or choose another")
        if not overwrite and os.path.lexists(target):
            raise _there(target)
        if target.exists() and not target.is_file():
            raise OptionError(f"{target} is not a regular file and will not be replaced: choose another name")
    except IceexploreError:  # some of them are OSErrors, too
        raise
    except OSError as e:  # the name is too long, or the folder may not be read
        raise _refused(target, e) from e
    return target


def path_here(path: str | os.PathLike[str]) -> str:
    """Return a path as a string; for a ``file:`` URI its path, percent-decoded unless the encoded name exists.

    Raises
    ------
    OptionError
        The URI is not local, or the path is invalid.
    """
    given: Any = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(given, str):
        raise OptionError(f"path={path!r}: expected the file to write, as in 'trips.html', or the folder")
    place: str = given
    if is_uri(place):
        place = canonical(check_host(place))
        if not is_local(place):
            raise OptionError(
                f"path={path!r} is a remote URI, but the file is written to the local disk: give a local path"
            )
        place = _decoded(place)
    try:
        bytes_of = os.fsencode(place)
    except UnicodeEncodeError:
        bytes_of = b"\0"
    if b"\0" in bytes_of:
        raise OptionError(f"path={path!r} contains a character that is invalid in a path: a NUL or a lone surrogate")
    return place


def _decoded(place: str) -> str:
    """Return a URI's path percent-decoded, unless the file or its folder exists in the encoded spelling."""
    if "\0" in place or os.path.exists(place):
        return place
    folder = dirname(place)
    if not os.path.exists(folder):
        folder = urllib.parse.unquote(folder, errors="surrogateescape")
    return join(folder, urllib.parse.unquote(basename(place), errors="surrogateescape"))


@contextmanager
def whole_file(path: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[IO[bytes]]:
    """Yield a temporary file beside ``path`` that replaces it when the block ends without an error.

    Raises
    ------
    OptionError, ExistsError
        See `place_to_write`.
    StorageError, AccessDeniedError
        Writing fails; an existing file is left unchanged.
    """
    target = place_to_write(path, overwrite=overwrite)
    real = os.path.realpath(target)  # a link is followed
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name[:80]}-", dir=os.path.dirname(real))
        with os.fdopen(handle, "w+b") as file:
            yield file
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)  # mkstemp creates files that only the user can read
        if overwrite:
            os.replace(temporary, real)
        else:
            _rename_new(temporary, target)
    except IceexploreError:  # some of them are OSErrors, too
        raise
    except OSError as e:
        raise _refused(target, e) from e
    finally:
        if temporary is not None:
            with suppress(FileNotFoundError):
                os.unlink(temporary)


def _rename_new(temporary: str, target: Path) -> None:
    """Rename without replacing a file created meanwhile; a plain rename where hard links are not supported."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise _there(target) from None
    except OSError:
        os.replace(temporary, target)


def _refused(target: Path, error: OSError) -> IceexploreError:
    kind = AccessDeniedError if isinstance(error, PermissionError) else StorageError
    reason = error.strerror or type(error).__name__
    return kind(f"{target} could not be written ({reason}); nothing was changed. Choose another place")


def _there(target: Path) -> ExistsError:
    return ExistsError(f"{target} already exists; overwrite=True replaces it")
