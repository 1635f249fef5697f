"""List and open the other metadata files of a table."""

from __future__ import annotations

from iceexplore.errors import FileMissingError, FormatError, Problems, UnsupportedError
from iceexplore.storage._location import basename, canonical, dirname, same_location
from iceexplore.storage._storage import Storage
from iceexplore.storage.finding._choose import Picker, nearest_versions
from iceexplore.storage.finding._opened import Opened, learn_moves, make_opened, max_metadata_bytes
from iceexplore.storage.finding._versions import MetadataVersion, is_metadata_name, match_version, parse_name

__all__ = ["list_versions", "open_version"]


def open_version(opened: Opened, version: int | str) -> Opened:
    """Open another metadata file of the same table, by number, name or location, through the same storage.

    Raises
    ------
    SnapshotNotFoundError
        There is no such version; the message lists the nearest ones.
    FormatError, FileMissingError, AccessDeniedError, StorageError
        The file is damaged or gone (the metadata log may list removed files), or the storage failed.
    """
    problems = Problems(strict=opened.source.strict)
    kind = opened.source.kind
    files = list_versions(opened)
    found = match_version(version, files, same_location)
    if not found:
        raise nearest_versions(version, files, dirname(opened.metadata_location))
    picker = Picker(opened.storage, problems, max_metadata_bytes(opened.source.properties), kind)
    reals = [opened.storage.resolve(f.location) for f in found]
    pick = (
        picker.load(reals[0], f"Metadata: {found[0].name}, from version=.")
        if len(reals) == 1
        else picker.newest_of(reals, one_table=True)
    )
    if pick is None:
        raise FormatError(f"version {version}: its files are not {kind.name} metadata", code=kind.code)
    if opened.catalog_table is None:
        learn_moves(opened.storage, pick)
    return make_opened(opened.storage, pick, (), problems, opened.source, opened.name, opened.catalog_table)


def list_versions(opened: Opened) -> list[MetadataVersion]:
    """Return the table's metadata files by number: those in the folder, and those elsewhere that the log lists.

    Raises
    ------
    AccessDeniedError, StorageError
        Listing the folder failed. If the storage does not support listing, no error is raised.
    """
    storage = opened.storage
    found: dict[str, MetadataVersion] = {}
    folder = storage.folder_of(opened.metadata_location)
    try:
        for entry in storage.entries(folder):
            name = basename(entry.real)
            if not entry.is_folder and (is_metadata_name(name) or name == basename(opened.metadata_location)):
                location = storage.unresolve(entry.real)
                found[canonical(location)] = MetadataVersion(parse_name(name), location, entry.size, entry.modified_ms)
    except (UnsupportedError, FileMissingError):
        pass  # the folder cannot be listed: only the log names earlier files
    listed = bool(found)
    log = opened.document.get("metadata-log")
    for item in log if isinstance(log, list) else []:
        named = item.get("metadata-file") if isinstance(item, dict) else None
        # Leave out files of this folder that only the log names: the listing shows that they were removed.
        if isinstance(named, str) and not (listed and _same_folder(storage, named, folder)):
            found.setdefault(canonical(named), MetadataVersion(parse_name(named), named))
    here = opened.metadata_location
    found.setdefault(canonical(here), MetadataVersion(parse_name(here), here))
    return sorted(found.values(), key=lambda f: (-1 if f.number is None else f.number, f.name))


def _same_folder(storage: Storage, location: str, folder: str) -> bool:
    place = canonical(location)
    return dirname(storage.moves.apply(place) or place) == folder
