"""Labs: created in an empty folder or a catalog, and gone on with."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from iceexplore.commits import LayoutOptions, MetadataNames, new_table
from iceexplore.errors import CatalogError, OptionError, UnsupportedError, mapping_of
from iceexplore.graph import open_state
from iceexplore.labs._catalog import CatalogPointer, CatalogRow, loaded_catalog
from iceexplore.labs._committer import LAB_PROPERTY, LabCommitter, check_lab, layout_text, options_of
from iceexplore.labs._pointer import HINT, FolderPointer
from iceexplore.storage import FolderStorage, canonical, check_host, path_here, replace_file, write_new

__all__ = ["create_lab", "open_lab"]


def create_lab(
    path: str | os.PathLike[str],
    schema: Any,
    *,
    partition_by: str | Iterable[str] | None = (),
    sort_by: str | Iterable[str] | None = (),
    format_version: int = 2,
    properties: Mapping[str, str] | None = None,
    catalog: Any = None,
    location: str | None = None,
    layout: Mapping[str, Any] | None = None,
) -> LabCommitter:
    """Create a table and give its writer; see `iceexplore.create`."""
    options = LayoutOptions.of(format_version, **(layout or {}))
    given = mapping_of("properties", properties, "{'write.delete.mode': 'merge-on-read'}", keys=object)
    if LAB_PROPERTY in given:
        raise OptionError(f"properties: {LAB_PROPERTY} is set by ix.create itself")
    row = None
    if catalog is None:
        if location is not None:
            raise OptionError("location= belongs to catalog=: without one, path is where the table is")
        given_path = _path_text("path", path, "a folder")
        location = _spelled(given_path, _folder(given_path))
    else:
        row = CatalogRow(loaded_catalog(catalog), _path_text("path", path, "the table's name, 'db.table'"))
        location = _place(row, None if location is None else _path_text("location", location, "a folder"))
    _check_text("location", location)  # its beginning may be the working folder's
    real = canonical(location)
    _check_empty(real)
    document = new_table(
        schema,
        partition_by=partition_by,
        sort_by=sort_by,
        format_version=options.format_version,
        location=location,
        properties={**given, LAB_PROPERTY: layout_text(options)},
        table_uuid=str(uuid.uuid4()),
        expressions=options.has_root_manifest,
    )
    data = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    if row is None:
        name = "v1.metadata.json"
    else:
        name = f"00000-{uuid.uuid4()}.metadata.json"
    with _whole_or_nothing(real) as written:
        try:
            _write_first(os.path.join(real, "metadata", name), data, written)
            if row is None:
                hint = os.path.join(real, "metadata", HINT)
                replace_file(hint, b"1")
                written.append(hint)
        except FileExistsError as e:
            raise OptionError(f"{location}: another writer created a table there at the same time") from e
        except OSError as e:
            raise OptionError(f"{location}: a table cannot be created there: {e}") from e
        if row is None:
            return open_lab(real)
        _add(row, f"{location.rstrip('/')}/metadata/{name}", written)
    return open_lab(row.name, catalog=row.catalog)


def _write_first(path: str, data: bytes, written: list[str]) -> None:
    """Write the first metadata file, and note it before anything can fail after its name is there."""
    if os.path.lexists(path):
        raise FileExistsError(path)
    try:
        write_new(path, data)
    except FileExistsError:
        raise  # another writer's
    except BaseException:
        # The folder's flush comes after the link: the file may be there. It is ours if it has our table's uuid.
        with suppress(OSError), open(path, "rb") as file:
            if file.read(len(data) + 1) == data:
                written.append(path)
        raise
    written.append(path)


def _add(row: CatalogRow, location: str, written: list[str]) -> None:
    """Add the table to its catalog. Its metadata file stays if the catalog has the table in spite of an error."""
    try:
        row.add(location)
    except BaseException:
        try:
            found = row.find()
        except CatalogError:
            found = location  # not known: a table without its metadata would be worse than a file without a table
        if found == location:
            written.clear()
        raise


@contextmanager
def _whole_or_nothing(folder: str) -> Iterator[list[str]]:
    """Remove the files that are noted in the list, and the folders that were not there before, if the block fails."""
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
            # Whoever has committed to it meanwhile keeps it.
            if set(os.listdir(metadata)) == {os.path.basename(f) for f in written}:
                for path in reversed(written):
                    os.unlink(path)
        for one in made:
            with suppress(OSError):  # not empty: it has something of another's
                os.rmdir(one)
        raise


def open_lab(source: Any, *, catalog: Any = None, allow: Any = ()) -> LabCommitter:
    """The writer of a table that `create_lab` made; see `iceexplore.lab`."""
    row = None
    if catalog is not None:
        catalog = loaded_catalog(catalog)
        row = CatalogRow(catalog, source)
    state = open_state(source, catalog=catalog, allow=allow)
    check_lab(state)
    storage = FolderStorage(state.storage)
    if row is not None:
        pointer: Any = CatalogPointer(storage, row, state.metadata_location)
    elif MetadataNames.of(state.metadata_location).by_version:
        pointer = FolderPointer(storage, state.metadata_location)
    else:
        raise OptionError(
            f"{state.metadata_location} is of a lab in a catalog, which alone may move it on: "
            "ix.lab('db.table', catalog=...)"
        )
    lab = LabCommitter(state, options_of(state), pointer, storage)
    lab.refresh()
    return lab


def _path_text(name: str, given: Any, what: str) -> str:
    """A path as text."""
    try:
        found = os.fspath(given)
    except TypeError:
        found = None
    if not isinstance(found, str):
        raise OptionError(f"{name}={given!r}: give {what}, as text or a path")
    _check_text(name, found)
    return found


def _check_text(name: str, text: str) -> None:
    """Refuse what no metadata file and no catalog can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise OptionError(
            f"{name}={text!r} has half a character (a lone surrogate, Python's sign for a byte that is no UTF-8), "
            "which a table's metadata cannot hold: choose another name"
        ) from None


def _folder(path: str) -> str:
    """A local folder as the table is to spell it."""
    if not path.strip() or "\0" in path:
        raise OptionError(f"path={path!r}: give a folder")
    place = canonical(check_host(path))
    if "://" in place:
        raise UnsupportedError(
            f"{path} is no local folder: a commit there can be lost to another writer, as nothing is put only where "
            "there is nothing yet; use a folder of this machine, or a catalog of PyIceberg (catalog=)"
        )
    return os.path.realpath(os.path.expanduser(canonical(path_here(path))))


def _spelled(path: str, folder: str) -> str:
    """Return a local folder as the table spells it: a URI, as the spec asks for, with the scheme as it was given.

    Nothing is percent-encoded: Hadoop's ``Path``, PyIceberg and iceberg-rust take the characters of a location as they
    are. PyIceberg's ``parse_location`` would cut a URI at ``#`` and ``?``, though, so that a folder with one of these
    stays a plain path, which every reader takes for a local one.
    """
    if "#" in folder or "?" in folder:
        return folder
    return ("file:" if path[:5].lower() == "file:" and path[5:7] != "//" else "file://") + folder


def _place(row: CatalogRow, location: str | None) -> str:
    """Where a table of a catalog goes."""
    if row.find() is not None:
        raise CatalogError(f"catalog {row.catalog.name} has a table {row.name} already; ix.lab(...) goes on with a lab")
    if not row.catalog.namespace_exists(row.namespace):
        raise CatalogError(
            f"catalog {row.catalog.name} has no namespace {row.namespace}; make it by "
            f"catalog.create_namespace({row.namespace!r})"
        )
    if location is None:
        try:
            location = str(row.catalog._resolve_table_location(None, row.namespace, row.table))
        except ValueError as e:
            raise OptionError(f"{row.name}: the catalog has no warehouse to put it in; give location=") from e
    place = canonical(check_host(location))
    if "://" not in place and not os.path.isabs(place):
        raise OptionError(
            f"{location} is relative: a table's location must mean the same from everywhere. Give the catalog an "
            f"absolute warehouse, or location={os.path.abspath(place)!r}"
        )
    if "://" in place:
        raise UnsupportedError(f"{location} is no local folder: labs are written to local folders, also with a catalog")
    return _spelled(location, place.rstrip("/"))


def _check_empty(real: str) -> None:
    """Refuse a folder in which there is anything."""
    try:
        found = sorted(os.listdir(real))
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise OptionError(f"{real} is a file: a lab needs a folder") from None
    except OSError as e:
        raise OptionError(f"{real} cannot be looked into: {e}") from e
    if found:
        is_table = "metadata" in found
        hint = "; ix.lab(...) goes on with a lab" if is_table else ""
        raise OptionError(f"{real} is not empty ({', '.join(found[:3])}): a lab is created in an empty folder{hint}")
