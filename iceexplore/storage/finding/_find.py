"""Find the table in a folder or, if there is none, describe what the folder holds."""

from __future__ import annotations

import difflib
import os
import re
import zlib
from collections.abc import Generator
from dataclasses import dataclass

from iceexplore.errors import (
    AccessDeniedError,
    FileMissingError,
    FormatError,
    IceexploreError,
    MetadataNotFoundError,
    StorageError,
    UnsupportedError,
)
from iceexplore.storage._location import basename, dirname, is_local, join, relative_to
from iceexplore.storage._storage import Storage
from iceexplore.storage.finding._choose import Pick, Picker
from iceexplore.storage.finding._kinds import TABLE, DocumentKind
from iceexplore.storage.finding._versions import HINT, is_metadata_name
from iceexplore.storage.stores._backend import Entry

__all__ = ["FoundFolder", "find_table", "found_folder", "missing_path", "table_folder", "tables_below"]

_MOST_LOOSE = 64
#: The folder of a Delta table's log. The package `delta` defines the same name, but must not be imported here.
_DELTA_LOG = "_delta_log"
#: Java, PyIceberg and Spark write the UUID among the first keys of a metadata file; early drafts of views have none.
_HEAD = 4096
_TELLING = re.compile(rb'"(table-uuid|current-snapshot-id|view-uuid|current-version-id|version-log)"\s*:')
_OF_TABLES = (b"table-uuid", b"current-snapshot-id")


def table_folder(metadata_file: str) -> str:
    """Return the folder of a metadata file's table: the parent of ``metadata/``, otherwise the file's own folder.

    For a local folder whose name only ends in ``metadata`` (as copies often do), the result is also the parent if
    ``data/`` is beside that folder.
    """
    folder = dirname(metadata_file)
    parent, name = dirname(folder), basename(folder)
    if name == "metadata" or (name.endswith("metadata") and is_local(parent) and os.path.isdir(join(parent, "data"))):
        return parent
    return folder


def find_table(storage: Storage, picker: Picker, root: str, version: int | str | None) -> tuple[str, Pick]:
    """Find the table or view (see `Picker.kind`) in a folder; return its own folder and the chosen metadata file.

    The folder may be a table's, its metadata folder, one with loose metadata files, or one with a single table in it.

    Raises
    ------
    MetadataNotFoundError
        The folder has no table, or several; the message says what it contains.
    UnsupportedError
        The folder is that of a view where a table is wanted, or the reverse.
    """
    for folder in (join(root, "metadata"), root):
        pick = picker.in_folder(folder, version)
        if pick is not None:
            return (root if folder != root else table_folder(pick.real)), pick
    try:
        entries = storage.entries(root)
    except FileMissingError:
        raise missing_path(storage, root) from None
    for entry in entries:
        if entry.is_folder and basename(entry.real).endswith("metadata"):
            pick = picker.in_folder(entry.real, version) or _loose(picker, storage.entries(entry.real), version)
            if pick is not None:
                return root, pick
    pick = _loose(picker, entries, version)
    if pick is not None:
        return table_folder(pick.real), pick
    if picker.kind == TABLE and any(e.is_folder and basename(e.real) == _DELTA_LOG for e in entries):
        return root, Pick(join(root, _DELTA_LOG), {}, ("Metadata: made from the Delta log.",))
    # Listing a folder of a remote store costs a request.
    depth, folders, most = (6, 2_000, 100) if is_local(root) else (3, 50, 20)
    below = list(tables_below(storage, entries, depth, folders, most))
    tables, views = ([one.place for one in below if one.is_view == is_view] for is_view in (False, True))
    kind = picker.kind
    wanted = tables if kind == TABLE else views
    if len(wanted) == 1:
        folder, pick = find_table(storage, picker, wanted[0], version)
        name = relative_to(folder, root) or basename(folder)
        note = f"{name} is the only {kind.name} under the folder that was opened."
        return folder, Pick(pick.real, pick.document, (*pick.notes, note))
    inside = next((e for e in entries if e.is_folder and basename(e.real) == "metadata"), None)
    metadata = storage.entries(inside.real) if inside else []
    error = MetadataNotFoundError(_what_is_there(root, entries, metadata, tables, views, kind))
    error.tables = tuple(tables)
    raise error


def _loose(picker: Picker, entries: list[Entry], version: int | str | None) -> Pick | None:
    """Return the newest metadata among JSON files with other names; None if there is none."""
    files = [e.real for e in entries if not e.is_folder and basename(e.real).endswith((".json", ".json.gz"))]
    files = [f for f in files if not basename(f).startswith(".")]
    if isinstance(version, str):
        files = [f for f in files if basename(f) == basename(version)]
    if not files or len(files) > _MOST_LOOSE:
        return None
    try:
        return picker.newest_of(files)
    except (FormatError, UnsupportedError) as e:
        # Report damaged JSON and, where a table is wanted, views; ignore other kinds of JSON files.
        if isinstance(e, FormatError) and e.code == picker.kind.code and not isinstance(version, str):
            return None
        raise


@dataclass(frozen=True)
class FoundFolder:
    """A folder of a table or view."""

    place: str
    is_view: bool


def tables_below(
    storage: Storage, entries: list[Entry], depth: int, folders: int, most: int
) -> Generator[FoundFolder, None, bool]:
    """Search the folders in ``entries`` and all folders below them; yield those of tables and views, nearest first.

    Parameters
    ----------
    depth, folders, most
        The maximum numbers of levels to search, of folders to list, and of tables and views to find.

    Returns
    -------
    bool
        True if everything was searched, False if a limit ended the search.
    """
    level = [e for e in entries if e.is_folder]
    for _ in range(depth):
        below: list[Entry] = []
        for entry in level:
            name = basename(entry.real)
            if name.startswith((".", "__MACOSX")):
                continue
            folders -= 1
            if folders < 0 or most <= 0:
                return False
            try:
                inside = storage.entries(entry.real)
                found = found_folder(storage, entry.real, inside)
                if found is not None:
                    most -= 1
                    yield found
                else:
                    below += [e for e in inside if e.is_folder]
            except (FileMissingError, AccessDeniedError, StorageError):
                continue
        level = below
    return not level


def found_folder(storage: Storage, place: str, entries: list[Entry]) -> FoundFolder | None:
    """Return a folder with these entries as the folder of a table or of a view; None if it is neither.

    Metadata files of tables and of views have the same names. If the beginning of a file does not show which it is, it
    counts as a table's.
    """
    folders = {basename(entry.real) for entry in entries if entry.is_folder}
    for entry in entries:
        name = basename(entry.real)
        if not entry.is_folder and is_metadata_name(name):
            return FoundFolder(place, _is_view(storage, entry))
        if entry.is_folder and name == "metadata":
            inside = [e for e in storage.entries(entry.real) if not e.is_folder]
            files = [e for e in inside if is_metadata_name(basename(e.real))]
            # A Delta table whose manifests form a V4 tree has a metadata folder, but no metadata file.
            if files or _DELTA_LOG in folders or any(basename(e.real) == HINT for e in inside):
                return FoundFolder(place, bool(files) and _is_view(storage, files[0]))
    return None


def _is_view(storage: Storage, file: Entry) -> bool:
    try:
        head = storage.read(file.real, kind="metadata", length=min(_HEAD, file.size or 0))
        if head[:2] == b"\x1f\x8b":
            head = zlib.decompressobj(wbits=31).decompress(head, _HEAD)
    except (IceexploreError, zlib.error):
        return False
    found = _TELLING.search(head)
    return found is not None and found[1] not in _OF_TABLES


def missing_path(storage: Storage, place: str) -> MetadataNotFoundError:
    """Return the error for a path that does not exist; for local paths it lists the nearest names."""
    text = f"{place} does not exist"
    if is_local(place):
        parent = dirname(place)
        while not os.path.isdir(parent) and dirname(parent) != parent:
            parent = dirname(parent)
        try:
            names = os.listdir(parent)
        except OSError:
            names = []
        wanted = (relative_to(place, parent) or "").split("/")[0]
        near = difflib.get_close_matches(wanted, names, 4, 0.5)
        text += f"; {parent} has {', '.join(near)}" if near else f"; the nearest existing folder is {parent}"
        if "/" not in place.removeprefix(os.getcwd() + "/") and "." in basename(place):
            text += ". If this is the name of a catalog's table, pass catalog="
    return MetadataNotFoundError(text)


def _what_is_there(
    root: str, entries: list[Entry], metadata: list[Entry], tables: list[str], views: list[str], kind: DocumentKind
) -> str:
    if tables or views:
        parts = [_counted(root, found, what) for found, what in ((tables, "table"), (views, "view")) if found]
        wanted, other = (tables, views) if kind == TABLE else (views, tables)
        first = relative_to((wanted or other)[0], root) or (wanted or other)[0]
        how = "Open one of them, such as" if wanted else f"{kind.other.call} opens one of them, such as"
        return (
            f"{root} is not a {kind.name}; it looks like a warehouse with {' and '.join(parts)}. {how} {first}; "
            f"ix.open_catalog({root!r}) shows all of them"
        )
    names_there = [basename(e.real) + ("/" if e.is_folder else "") for e in entries]
    start = f"no Iceberg {kind.name} in {root}"
    for mark, what in (("_delta_log/", "a Delta Lake table"), (".hoodie/", "a Hudi table")):
        if mark in names_there:
            return f"{start}: this is {what} (it has {mark} and no metadata/)"
    if metadata:
        some = ", ".join(basename(e.real) for e in metadata[:5]) + (" …" if len(metadata) > 5 else "")
        return f"{start}: metadata/ has no *.metadata.json, only {len(metadata)} other files: {some}"
    # The package `formats` lists the same suffixes, but this package must not import that one.
    for end, what in ((".parquet", "Parquet"), (".orc", "ORC"), (".avro", "Avro"), (".csv", "CSV")):
        count = sum(n.lower().endswith(end) for n in names_there)
        if count:
            start += f": it holds {count} {what} files and no {kind.name} metadata (metadata/*.metadata.json)"
            return start + ("; ix.open_file(path) shows a single manifest" if what == "Avro" else "")
    if not names_there:
        return f"{start}: the folder is empty"
    there = ", ".join(names_there[:12]) + (" …" if len(names_there) > 12 else "")
    return f"{start}: it has neither metadata/*.metadata.json nor other {kind.name} metadata. It contains: {there}"


def _counted(root: str, found: list[str], what: str) -> str:
    names = ", ".join(relative_to(one, root) or one for one in found[:20]) + (" …" if len(found) > 20 else "")
    return f"{len(found)} {what}{'' if len(found) == 1 else 's'}: {names}"
