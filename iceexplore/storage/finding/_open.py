"""Open a table: find its metadata file and its storage from the user's arguments."""

from __future__ import annotations

import os
import re
import urllib.parse
from collections.abc import Mapping

from iceexplore.errors import (
    AccessDeniedError,
    FileMissingError,
    FormatError,
    MetadataNotFoundError,
    OptionError,
    Problems,
    StorageError,
)
from iceexplore.storage._catalog import (
    CatalogTable,
    SourceLike,
    from_catalog,
    from_table,
    is_table,
    version_notes,
)
from iceexplore.storage._catalog_contents import CatalogLike, is_catalog, is_configured, load_named, not_a_table
from iceexplore.storage._catalog_views import from_view, is_catalog_view, view_from_catalog
from iceexplore.storage._location import basename, canonical, check_host, dirname, is_absolute, is_local, is_uri
from iceexplore.storage._moved import Moves, root_properties
from iceexplore.storage._roots import allowed_places
from iceexplore.storage._storage import Storage
from iceexplore.storage._temporary import TemporaryFolder
from iceexplore.storage._zip import ZipLimits, extract_zip, is_zip
from iceexplore.storage.finding._choose import Pick, Picker
from iceexplore.storage.finding._find import find_table, missing_path, table_folder
from iceexplore.storage.finding._history import open_version
from iceexplore.storage.finding._kinds import TABLE, VIEW, DocumentKind
from iceexplore.storage.finding._opened import Opened, Source, learn_moves, make_opened, max_metadata_bytes
from iceexplore.storage.stores._remote import FileIOBackend

__all__ = ["open_source", "reopen", "spelled"]

_EMPTY_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/*")


def open_source(
    source: SourceLike,
    *,
    catalog: CatalogLike | None = None,
    moved: Mapping[str, str | os.PathLike[str]] | None = None,
    version: int | str | None = None,
    allow: object = (),
    properties: Mapping[str, str] | None = None,
    strict: bool = False,
    kind: DocumentKind = TABLE,
) -> Opened:
    """Find the metadata of a table or view and parse it; only one JSON file is read.

    Parameters
    ----------
    source
        A table's folder, a metadata file, or a zip of a table, as a path or URI; with ``catalog=`` a table's name;
        or a PyIceberg Table. For a view, the same with view instead of table.
    catalog
        A PyIceberg catalog, or the name of one.
    moved
        Prefixes as written in the metadata, each with its current location. Moves are found automatically if the files
        prove them.
    version
        A metadata file other than the newest: its number, name or location.
    allow
        One or several locations that may be read besides the table's own (for the rule see `_storage`).
    properties
        For the catalog, PyIceberg's FileIO, or the fsspec file system. ``iceexplore.`` properties set limits:
        ``max-metadata-bytes``, ``zip.max-files``, ``zip.max-bytes``, ``zip.max-ratio``, and ``parallel-reads``, the
        number of concurrent requests to a remote store.
    strict
        Raise the first fault instead of recording it as a `Problem`.
    kind
        `TABLE` or `VIEW`.

    Raises
    ------
    MetadataNotFoundError
        The path does not exist, or has no table or several; the message says what it contains.
    SnapshotNotFoundError
        The version does not exist.
    FormatError, UnsupportedError
        The metadata file is damaged or belongs to the other kind, or the zip is damaged or encrypted.
    AccessDeniedError, StorageError, CatalogError, OutsideRootsError, MissingDependencyError, OptionError
        The storage or the catalog refused or failed, or an argument is invalid.
    """
    is_object = is_table(source) if kind == TABLE else is_catalog_view(source)
    if not is_object and catalog is None:
        if is_catalog(source):
            raise OptionError(not_a_table("this", source, "catalog", kind.name, kind.call))
        if not isinstance(source, (str, os.PathLike)):
            if is_table(source) or is_catalog_view(source):
                raise OptionError(f"this is a {kind.other.name}, not a {kind.name}: {kind.other.call}(...) opens it")
            raise OptionError(
                f"give a path, a URI, a name with catalog=, or a PyIceberg {kind.name.title()}, not "
                f"{type(source).__name__}"
            )
        if _EMPTY_URI.fullmatch(str(source).strip()):
            raise OptionError(
                f"{source!r} has no folder, bucket or host; give a {kind.name} folder, a metadata file or a zip, "
                f"like s3://bucket/db/{kind.name}"
            )
        given, source = source, spelled(os.fspath(source))
        try:
            asked = Source(source, None, moved, version, allowed_places(allow), properties, strict, kind)
            return _open(asked, fresh=False)
        except MetadataNotFoundError as e:
            if isinstance(given, str) and not os.path.exists(source) and is_configured(given):
                loaded = load_named(given, properties or {})
                raise MetadataNotFoundError(not_a_table(given, loaded, repr(given), kind.name, kind.call)) from e
            raise
    return _open(Source(source, catalog, moved, version, allowed_places(allow), properties, strict, kind), fresh=False)


# ----------------------------------------------------------------------------------------------------------------------


def reopen(asked: Source) -> Opened:
    """Open the source again in its current state; a catalog is asked again. Raises the same errors as `open_source`."""
    return _open(asked, fresh=True) if asked.newest is None else asked.newest()


def _open(asked: Source, *, fresh: bool) -> Opened:
    if asked.kind == VIEW:
        if asked.catalog is not None:
            return _open_catalog(view_from_catalog(asked.source, asked.catalog, asked.properties or {}), asked)
        return _open_catalog(from_view(asked.source), asked) if is_catalog_view(asked.source) else _open_path(asked)
    if is_table(asked.source):
        return _open_catalog(from_table(asked.source, fresh=fresh), asked)
    if asked.catalog is not None:
        return _open_catalog(from_catalog(asked.source, asked.catalog, asked.properties or {}), asked)
    return _open_path(asked)


def _open_path(asked: Source) -> Opened:
    problems = Problems(strict=asked.strict)
    moves = Moves(asked.moved)
    place = canonical(asked.source)
    place = moves.apply(place) or place
    name: str | None = None
    temporary: TemporaryFolder | None = None
    storage = Storage(dirname(place), moves=moves, allow=asked.allow, properties=asked.properties)
    is_file = _is_file(storage, place)
    if is_file and _head(storage, place, 4)[:2] == b"PK":
        name = basename(place).removesuffix(".zip")
        temporary = _unzip(storage, place, asked)
        place = temporary.path
        is_file = False
    storage = Storage(
        dirname(place) if is_file else place,
        moves=moves,
        allow=asked.allow,
        properties=asked.properties,
        temporary=temporary,
    )
    picker = Picker(storage, problems, max_metadata_bytes(asked.properties), asked.kind)
    try:
        if is_file:
            folder, pick = table_folder(place), _metadata_file(picker, storage, place, asked.version)
        else:
            folder, pick = find_table(storage, picker, place, asked.version)
    except MetadataNotFoundError as e:
        storage.close()
        raise MetadataNotFoundError(str(e).replace(place, asked.source)) if temporary else e from None
    except BaseException:
        storage.close()
        raise
    storage.set_table_folder(folder, pick.real)
    notes = learn_moves(storage, pick)
    if not is_local(folder):
        bucket = folder.split("/")[:3]
        storage.allow_root(*(p for p in _json_roots(storage, pick) if p.split("/")[:3] == bucket))
    if temporary is None or folder != temporary.path:
        name = basename(folder)
    return make_opened(storage, pick, notes, problems, asked, name or None, None)


def _open_catalog(table: CatalogTable, asked: Source) -> Opened:
    problems = Problems(strict=asked.strict)
    moves = Moves(asked.moved)
    metadata_file = canonical(table.metadata_location)
    metadata_file = moves.apply(metadata_file) or metadata_file
    storage = Storage(
        table_folder(metadata_file),
        moves=moves,
        allow=asked.allow,
        properties=asked.properties,
        backend=None if table.file_io is None else FileIOBackend(table.file_io),
    )
    picker = Picker(storage, problems, max_metadata_bytes(asked.properties), asked.kind)
    try:
        if table.no_file:
            raise FileMissingError(table.no_file)
        pick = picker.load(metadata_file, f"Metadata: {basename(metadata_file)}, from the catalog.")
        first, table = table.file_io, table.read(pick.document)
        if table.file_io is not first:
            storage.read_by(FileIOBackend(table.file_io))
    except (FileMissingError, AccessDeniedError, StorageError) as e:
        document = table.document()
        if document is None:
            raise
        if table.no_file:
            pick = Pick(metadata_file, document, (f"Metadata: as sent by the catalog; {table.no_file}.",))
        else:
            problems.add_error(e, table.metadata_location)
            pick = Pick(metadata_file, document, ("Metadata: as sent by the catalog; its file cannot be read.",))
    location = pick.document.get("location")
    if isinstance(location, str) and location.strip():
        folder = canonical(location)
        moved = moves.apply(folder)
        moves.add(location, moved or folder)
        storage.set_table_folder(moved or folder, pick.real)
    else:
        storage.set_table_folder(storage.folder, pick.real)
    # The locations of a table come from its catalog and are trusted, but a remote table may not read the local disk.
    places = [dirname(metadata_file), *_json_roots(storage, pick), *((table.warehouse,) if table.warehouse else ())]
    storage.allow_root(
        *(p for p in map(canonical, places) if is_absolute(p) and (not is_local(p) or is_local(metadata_file)))
    )
    opened = make_opened(storage, pick, version_notes(), problems, asked, table.name, table.table)
    return opened if asked.version is None else open_version(opened, asked.version)


def _json_roots(storage: Storage, pick: Pick) -> list[str]:
    location = pick.document.get("location")
    places = [location] if isinstance(location, str) and location else []
    places += root_properties(pick.document).values()
    canonicals = [canonical(p) for p in places]
    return [storage.moves.apply(p) or p for p in canonicals]


#: The first bytes of files that are not metadata. The package `formats` has them, too, but this one must not import it.
_NOT_METADATA = {
    b"Obj\x01": "an Avro file",
    b"PAR1": "a Parquet file",
    b"PFA1": "a Puffin file",
    b"ORC": "an ORC file",
}


def _metadata_file(picker: Picker, storage: Storage, real: str, version: int | str | None) -> Pick:
    if version is not None:
        pick = picker.in_folder(dirname(real), version)
        if pick is None:
            raise MetadataNotFoundError(f"no version {version!r}: there are no other metadata files beside {real}")
        return pick
    head = _head(storage, real, max(map(len, _NOT_METADATA)))
    wanted = picker.kind
    for magic, kind in _NOT_METADATA.items():
        if head.startswith(magic):
            raise FormatError(
                f"this is {kind}, not {wanted.name} metadata; open a {wanted.name} by its folder or metadata file, "
                "or show this file without its table: ix.open_file(path)",
                location=real,
                code=wanted.code,
            )
    return picker.load(real, f"Metadata: {basename(real)}, as given.")


def _is_file(storage: Storage, place: str) -> bool:
    """Return whether a source is a file; for remote sources the name decides (object stores have no folders)."""
    if not is_local(place):
        path = place.partition("?")[0] if place.startswith("http") else place  # a signed URL
        return path.endswith((".json", ".json.gz", ".zip"))
    if os.path.isdir(place):
        return False
    if not os.path.exists(place):
        raise missing_path(storage, place)
    return True


def _head(storage: Storage, place: str, length: int) -> bytes:
    if is_local(place):
        with storage.open(place, kind="metadata") as file:
            return file.read(length)
    return b"PK" if place.endswith(".zip") else b""


def _unzip(storage: Storage, place: str, asked: Source) -> TemporaryFolder:
    with storage.local_path(place, kind="other") as path:
        with path.open("rb") as file:
            if not is_zip(file.read(4)):
                raise FormatError("not a zip, though its name or first bytes suggest one", location=asked.source)
        return extract_zip(str(path), ZipLimits.of(asked.properties or {}), name=asked.source)


def spelled(source: str) -> str:
    """Return a user's path, or that of a file URI, as an absolute path with ``~`` expanded; other URIs unchanged."""
    if not source.strip():
        raise OptionError("the path is empty")
    if "\0" in source:
        raise OptionError(f"{source!r} contains a NUL character")
    place = canonical(check_host(source))
    if not is_local(place):
        return source
    if is_uri(source) and not os.path.exists(place) and os.path.exists(decoded := urllib.parse.unquote(place)):
        place = decoded
    return os.path.abspath(os.path.expanduser(place))
