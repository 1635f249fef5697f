"""Survey the metadata files of a table that cannot be opened: which exist, and which can be read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from iceexplore.errors import IceexploreError, Problems
from iceexplore.storage._catalog import SourceLike, from_catalog, from_table, is_table
from iceexplore.storage._catalog_contents import CatalogLike
from iceexplore.storage._location import basename, canonical, dirname, is_local, join
from iceexplore.storage._moved import Moves
from iceexplore.storage._roots import allowed_places
from iceexplore.storage._storage import Storage
from iceexplore.storage.finding._choose import Picker
from iceexplore.storage.finding._document import MAX_METADATA_BYTES
from iceexplore.storage.finding._find import table_folder
from iceexplore.storage.finding._open import spelled
from iceexplore.storage.finding._opened import max_metadata_bytes
from iceexplore.storage.finding._versions import HINT, MetadataVersion, hinted_names, is_metadata_name, parse_name
from iceexplore.storage.stores._remote import FileIOBackend

__all__ = ["MetadataSurvey", "survey", "survey_folder"]

#: Maximum number of metadata files to try, newest first: files may be large, and if these are damaged, all may be.
_MOST_TRIED = 20
_HINT_BYTES = 64 << 10


@dataclass(frozen=True)
class MetadataSurvey:
    """All metadata files in a folder whose current metadata file cannot be read.

    Attributes
    ----------
    named_by
        What points to the metadata file: ``catalog``, ``hint`` or ``path``; None where only a folder is known.
    wanted
        The location of that file; None where only a folder is known.
    folder
        The folder that was listed.
    exists
        True if the wanted file exists, False if not, None if that is unknown.
    files
        The metadata files in the folder, oldest first; empty where there are none, or where listing failed.
    readable
        The newest that can be read, None if none of the newest 20 can.
    unlisted
        Why the folder could not be listed, None if it was.
    """

    named_by: str | None
    wanted: str | None
    folder: str
    exists: bool | None
    files: tuple[MetadataVersion, ...]
    readable: MetadataVersion | None
    unlisted: str | None = None

    def newer(self) -> tuple[MetadataVersion, ...]:
        """Return the files whose number is larger than that of the wanted file."""
        number = None if self.wanted is None else parse_name(self.wanted)
        return tuple(f for f in self.files if number is not None and f.number is not None and f.number > number)

    def older(self) -> tuple[MetadataVersion, ...]:
        """Return the files that are neither newer than the wanted one nor the wanted one itself."""
        newer = set(self.newer())
        name = None if self.wanted is None else basename(self.wanted)
        return tuple(f for f in self.files if f not in newer and f.name != name)


def survey(
    source: SourceLike,
    *,
    catalog: CatalogLike | None = None,
    moved: Mapping[str, str | os.PathLike[str]] | None = None,
    allow: object = (),
    properties: Mapping[str, str] | None = None,
) -> MetadataSurvey | None:
    """Survey the metadata files of a table that `open_source` could not open; the arguments are the same.

    Returns
    -------
    MetadataSurvey or None
        None where no folder is known: the catalog failed, or the source is a zip, or neither a path nor a table.
    """
    moves, more = Moves(moved), allowed_places(allow)
    try:
        if is_table(source) or catalog is not None:
            table = from_table(source) if is_table(source) else from_catalog(source, catalog, properties or {})
            wanted = canonical(table.metadata_location)
            wanted = moves.apply(wanted) or wanted
            storage = Storage(
                table_folder(wanted),
                moves=moves,
                allow=more,
                properties=properties,
                backend=FileIOBackend(table.file_io),
            )
            return survey_folder(storage, dirname(wanted), wanted, "catalog", max_metadata_bytes(properties))
        if not isinstance(source, (str, os.PathLike)):
            return None
        place = canonical(spelled(os.fspath(source)))
        place = moves.apply(place) or place
        most = max_metadata_bytes(properties)
        if is_metadata_name(basename(place)) or place.endswith((".json", ".json.gz")):
            storage = Storage(dirname(place), moves=moves, allow=more, properties=properties)
            return survey_folder(storage, dirname(place), place, "path", most)
        if place.endswith(".zip") or (is_local(place) and not os.path.isdir(place)):
            return None
        storage = Storage(place, moves=moves, allow=more, properties=properties)
        for folder in (join(place, "metadata"), place):
            hinted = _hinted(storage, folder)
            found = survey_folder(storage, folder, hinted, None if hinted is None else "hint", most)
            if found.files or hinted is not None:
                return found
        return found
    except IceexploreError:
        return None


def survey_folder(
    storage: Storage, folder: str, wanted: str | None, named_by: str | None, max_bytes: int = MAX_METADATA_BYTES
) -> MetadataSurvey:
    """List the metadata files of a folder, and find the newest that can be read; locations are real ones."""
    unlisted = None
    entries = []
    try:
        entries = [e for e in storage.entries(folder) if not e.is_folder and is_metadata_name(basename(e.real))]
    except IceexploreError as error:
        unlisted = str(error)
    versions = [MetadataVersion(parse_name(e.real), storage.unresolve(e.real), e.size, e.modified_ms) for e in entries]
    files = sorted(versions, key=lambda f: (-1 if f.number is None else f.number, f.modified_ms or 0, f.name))
    exists: bool | None = None
    if wanted is not None:
        try:
            exists = storage.find(wanted) is not None
        except IceexploreError:
            exists = None
    return MetadataSurvey(
        named_by=named_by,
        wanted=None if wanted is None else storage.unresolve(wanted),
        folder=storage.unresolve(folder),
        exists=exists,
        files=tuple(files),
        readable=next(_readable(storage, folder, files, max_bytes), None),
        unlisted=unlisted,
    )


def _readable(storage: Storage, folder: str, files: list[MetadataVersion], max_bytes: int) -> Iterator[MetadataVersion]:
    picker = Picker(storage, Problems(), max_bytes)
    for file in files[: -_MOST_TRIED - 1 : -1]:
        try:
            picker.load(join(folder, file.name))
        except IceexploreError:
            continue
        yield file


def _hinted(storage: Storage, folder: str) -> str | None:
    """Return the metadata file that a version hint names, as a real location; None without a usable hint."""
    try:
        data = storage.read_real(join(folder, HINT), kind="metadata", most=_HINT_BYTES)
    except IceexploreError:
        return None
    _, names = hinted_names(data[:4096].decode("utf-8", "replace"))
    return join(folder, names[0]) if names else None
