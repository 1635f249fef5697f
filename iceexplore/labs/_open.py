"""Create labs in an empty folder or a catalog, and open them again."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, cast

from iceexplore.commits import LayoutOptions, MetadataNames, new_table
from iceexplore.errors import CatalogError, OptionError, Unchecked, UnsupportedError, mapping_of
from iceexplore.graph import open_state
from iceexplore.labs._catalog import CatalogPointer, CatalogRow, loaded_catalog
from iceexplore.labs._committer import LAB_PROPERTY, LabCommitter, check_lab, layout_text, options_of
from iceexplore.labs._pointer import HINT, FolderPointer
from iceexplore.storage import (
    CatalogLike,
    FolderStorage,
    SourceLike,
    canonical,
    check_host,
    path_here,
    replace_file,
    write_new,
)
from iceexplore.writing import SchemaLike

__all__ = ["create_lab", "open_lab"]


def create_lab(
    path: str | os.PathLike[str],
    schema: SchemaLike,
    *,
    partition_by: str | Iterable[str] | None = (),
    sort_by: str | Iterable[str] | None = (),
    format_version: int = 2,
    properties: Mapping[str, str] | None = None,
    catalog: CatalogLike | None = None,
    location: str | None = None,
    layout: Mapping[str, Any] | None = None,
) -> LabCommitter:
    """Create a table and return its writer; see `iceexplore.create`."""
    options = LayoutOptions.of(format_version, **(layout or {}))
    given = mapping_of("properties", properties, "{'write.delete.mode': 'merge-on-read'}", keys=object)
    if LAB_PROPERTY in given:
        raise OptionError(f"properties: {LAB_PROPERTY} is set by ix.create")
    row = None
    if catalog is None:
        if location is not None:
            raise OptionError("location= needs catalog=: without a catalog, path is the table's location")
        given_path = _path_text("path", path, "a folder")
        location = _spelled(given_path, _folder(given_path))
    else:
        row = CatalogRow(loaded_catalog(catalog), _path_text("path", path, "the table's name, 'db.table'"))
        location = _place(row, None if location is None else _path_text("location", location, "a folder"))
    _check_text("location", location)  # the location may include the working directory
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
            raise OptionError(f"{location}: cannot create a table: {e}") from e
        if row is None:
            return open_lab(real)
        _add(row, f"{location.rstrip('/')}/metadata/{name}", written)
    return open_lab(row.name, catalog=row.catalog)


def _write_first(path: str, data: bytes, written: list[str]) -> None:
    """Write the first metadata file, and record it as soon as a file with its name may exist."""
    if os.path.lexists(path):
        raise FileExistsError(path)
    try:
        write_new(path, data)
    except FileExistsError:
        raise  # another writer's file
    except BaseException:
        # The folder is flushed after the link, so the file may exist. It is ours if it has this table's uuid.
        with suppress(OSError), open(path, "rb") as file:
            if file.read(len(data) + 1) == data:
                written.append(path)
        raise
    written.append(path)


def _add(row: CatalogRow, location: str, written: list[str]) -> None:
    """Add the table to its catalog. Its metadata file is kept if the catalog has the table despite an error."""
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
def _whole_or_nothing(folder: str) -> Iterator[list[str]]:
    """Remove the files in the list, and the folders that did not exist before, if the block fails."""
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


def open_lab(source: SourceLike, *, catalog: CatalogLike | None = None, allow: object = ()) -> LabCommitter:
    """Return the writer of a table that `create_lab` created; see `iceexplore.lab`."""
    row = None
    if catalog is not None:
        catalog = loaded_catalog(catalog)
        row = CatalogRow(catalog, cast("str | Sequence[str]", source))
    state = open_state(source, catalog=catalog, allow=allow)
    check_lab(state)
    storage = FolderStorage(state.storage)
    if row is not None:
        pointer: Any = CatalogPointer(storage, row, state.metadata_location)
    elif MetadataNames.of(state.metadata_location).by_version:
        pointer = FolderPointer(storage, state.metadata_location)
    else:
        raise OptionError(
            f"{state.metadata_location} belongs to a lab in a catalog; open it with its catalog: "
            "ix.lab('db.table', catalog=...)"
        )
    lab = LabCommitter(state, options_of(state), pointer, storage)
    lab.refresh()
    return lab


def _path_text(name: str, given: Unchecked, what: str) -> str:
    """Return a path as a string."""
    try:
        found = os.fspath(given)
    except TypeError:
        found = None
    if not isinstance(found, str):
        raise OptionError(f"{name}={given!r}: give {what}, as a string or a path")
    _check_text(name, found)
    return found


def _check_text(name: str, text: str) -> None:
    """Refuse a string that no metadata file or catalog can store."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise OptionError(
            f"{name}={text!r} contains a lone surrogate (Python's stand-in for a byte that is not UTF-8), "
            "which table metadata cannot store: choose another name"
        ) from None


def _folder(path: str) -> str:
    """Return the real path of a local folder."""
    if not path.strip() or "\0" in path:
        raise OptionError(f"path={path!r}: give a folder")
    place = canonical(check_host(path))
    if "://" in place:
        raise UnsupportedError(
            f"{path} is not a local folder: a commit there could be lost to another writer, because it has no "
            "put-if-absent; use a folder on this machine, or a PyIceberg catalog (catalog=)"
        )
    return os.path.realpath(os.path.expanduser(canonical(path_here(path))))


def _spelled(path: str, folder: str) -> str:
    """Return a local folder as the table spells it: a URI, as the spec requires, with the scheme as it was given.

    Nothing is percent-encoded: Hadoop's ``Path``, PyIceberg and iceberg-rust use the characters of a location as they
    are. But PyIceberg's ``parse_location`` would cut a URI at ``#`` and ``?``, so a folder with one of these stays a
    plain path, which every reader treats as local.
    """
    if "#" in folder or "?" in folder:
        return folder
    return ("file:" if path[:5].lower() == "file:" and path[5:7] != "//" else "file://") + folder


def _place(row: CatalogRow, location: str | None) -> str:
    """Return the location of a new table in a catalog."""
    if row.find() is not None:
        raise CatalogError(
            f"catalog {row.catalog.name} already has a table {row.name}; ix.lab(...) opens an existing lab"
        )
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
            f"{location} is relative, but a table's location must not depend on the working folder. Give the catalog "
            f"an absolute warehouse, or location={os.path.abspath(place)!r}"
        )
    if "://" in place:
        raise UnsupportedError(
            f"{location} is not a local folder: labs are written to local folders, also with a catalog"
        )
    return _spelled(location, place.rstrip("/"))


def _check_empty(real: str) -> None:
    """Refuse a folder that is not empty."""
    try:
        found = sorted(os.listdir(real))
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise OptionError(f"{real} is a file: a lab needs a folder") from None
    except OSError as e:
        raise OptionError(f"{real} cannot be listed: {e}") from e
    if found:
        is_table = "metadata" in found
        hint = "; ix.lab(...) opens an existing lab" if is_table else ""
        raise OptionError(f"{real} is not empty ({', '.join(found[:3])}): a lab needs an empty folder{hint}")
