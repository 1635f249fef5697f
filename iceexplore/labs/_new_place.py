"""Create folders and catalog entries for new tables and views: completely or not at all, and without overwriting."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from iceexplore.errors import CatalogError, OptionError, Unchecked, UnsupportedError
from iceexplore.labs._catalog import CatalogRow
from iceexplore.storage import canonical, check_host, path_here, write_new

__all__ = [
    "A_FOLDER",
    "add_to_catalog",
    "check_empty",
    "check_text",
    "local_folder",
    "path_text",
    "place_in_catalog",
    "spelled",
    "whole_or_nothing",
    "write_first",
]


def write_first(path: str, data: bytes, written: list[str]) -> None:
    """Write the first metadata file; add its path to ``written``, even if an error occurs after it was created."""
    if os.path.lexists(path):
        raise FileExistsError(path)
    try:
        write_new(path, data)
    except FileExistsError:
        raise  # another writer's file
    except BaseException:
        # A new file is linked into place before its folder is flushed, so it may exist despite the error. This call
        # created it if its whole content, which includes the table's UUID, equals ``data``.
        with suppress(OSError), open(path, "rb") as file:
            if file.read(len(data) + 1) == data:
                written.append(path)
        raise
    written.append(path)


def add_to_catalog(row: CatalogRow, location: str, written: list[str]) -> None:
    """Add the table or view to its catalog.

    If that raises an error but the catalog has the entry, or may have it, clear ``written``, so that its metadata file
    is not removed.
    """
    try:
        row.add(location)
    except BaseException:
        try:
            found = row.find()
        except CatalogError:
            found = (
                location  # unknown: keep the file, because a table without its metadata is worse than an orphan file
            )
        if found == location:
            written.clear()
        raise


@contextmanager
def whole_or_nothing(folder: str) -> Iterator[list[str]]:
    """Yield a list for the paths of new files; if the block fails, remove them and the folders that it created."""
    made = [os.path.join(folder, "metadata"), folder]
    while not os.path.lexists(os.path.dirname(made[-1])):
        made.append(os.path.dirname(made[-1]))
    made = [f for f in made if not os.path.lexists(f)]
    written: list[str] = []
    try:
        yield written
    except BaseException:
        metadata = os.path.join(folder, "metadata")
        with suppress(OSError):
            # Keep the table if another writer has committed to it in the meantime.
            if set(os.listdir(metadata)) == {os.path.basename(f) for f in written}:
                for path in reversed(written):
                    os.unlink(path)
        for one in made:
            with suppress(OSError):  # not empty because something else uses it
                os.rmdir(one)
        raise


#: What `path_text` asks for where a folder is wanted.
A_FOLDER = "a folder, as a string or a path object"


def path_text(name: str, given: Unchecked, what: str) -> str:
    """Return a path as a string; refuse anything else."""
    try:
        found = os.fspath(given)
    except TypeError:
        found = None
    if not isinstance(found, str):
        raise OptionError(f"{name}={given!r}: give {what}")
    check_text(name, found)
    return found


def check_text(name: str, text: str) -> None:
    """Refuse a string that no metadata file or catalog can store."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise OptionError(
            f"{name}={text!r} contains a lone surrogate (Python's stand-in for a byte that is not UTF-8), "
            "which table metadata cannot store: choose another name"
        ) from None


def local_folder(path: str) -> str:
    """Return the real path of a local folder."""
    if not path.strip() or "\0" in path:
        raise OptionError(f"path={path!r}: give a folder")
    place = canonical(check_host(path))
    if "://" in place:
        raise UnsupportedError(
            f"{path} is not a local folder: a commit there could be lost to another writer, because commits there "
            "have no put-if-absent; use a folder on this machine, or a PyIceberg catalog (catalog=)"
        )
    return os.path.realpath(os.path.expanduser(canonical(path_here(path))))


def spelled(path: str, folder: str) -> str:
    """Return the location of a local folder as metadata should contain it: a ``file`` URI, as the spec requires.

    The short form ``file:/x`` is kept if it was given. Nothing is percent-encoded: Hadoop's ``Path``, PyIceberg and
    iceberg-rust use the characters of a location as they are. But PyIceberg's ``parse_location`` would cut a URI at
    ``#`` and ``?``, so a folder with one of these stays a plain path, which every reader treats as local.
    """
    if "#" in folder or "?" in folder:
        return folder
    return ("file:" if path[:5].lower() == "file:" and path[5:7] != "//" else "file://") + folder


def place_in_catalog(row: CatalogRow, location: str | None) -> str:
    """Return the location for a new table or view in a catalog; refuse a name that the catalog already has."""
    if row.find() is not None:
        opens = "ix.lab(...) opens an existing lab" if row.kind == "table" else "ix.open_view(...) opens a view"
        raise CatalogError(f"catalog {row.catalog.name} already has a table or view {row.name}; {opens}")
    if not row.catalog.namespace_exists(row.namespace):
        raise CatalogError(
            f"catalog {row.catalog.name} has no namespace {row.namespace}; create it with "
            f"catalog.create_namespace({row.namespace!r})"
        )
    if location is None:
        try:
            location = str(row.catalog._resolve_table_location(None, row.namespace, row.table))
        except ValueError as e:
            raise OptionError(f"{row.name}: the catalog has no warehouse; give location=") from e
    place = canonical(check_host(location))
    if "://" not in place and not os.path.isabs(place):
        raise OptionError(
            f"{location} is relative, but a {row.kind}'s location must not depend on the working folder. Give the "
            f"catalog an absolute warehouse, or location={os.path.abspath(place)!r}"
        )
    if "://" in place:
        raise UnsupportedError(
            f"{location} is not a local folder: {row.kind}s can only be written to local folders, even with a catalog"
        )
    return spelled(location, place.rstrip("/"))


def check_empty(real: str, what: str = "a lab", opens: str = "ix.lab(...) opens an existing lab") -> None:
    """Refuse a folder that is not empty."""
    try:
        found = sorted(os.listdir(real))
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise OptionError(f"{real} is a file: {what} needs a folder") from None
    except OSError as e:
        raise OptionError(f"{real} cannot be listed: {e}") from e
    if found:
        hint = f"; {opens}" if "metadata" in found else ""
        raise OptionError(f"{real} is not empty ({', '.join(found[:3])}): {what} needs an empty folder{hint}")
