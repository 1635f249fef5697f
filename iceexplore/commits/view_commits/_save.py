"""Save a view to a folder, for example to keep or send a simulation."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from iceexplore.commits.saving._save import Saved, new_folder
from iceexplore.commits.view_commits._sandbox import encode_metadata
from iceexplore.errors import IceexploreError
from iceexplore.storage import VIEW, parse_document
from iceexplore.views import ViewState

__all__ = ["save_view"]

_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}\.metadata\.json(\.gz)?")


def save_view(
    state: ViewState, path: str | os.PathLike[str], *, location: str | None = None, earlier: Iterable[str] = ()
) -> Saved:
    """Write a view's metadata to a folder, completely or not at all.

    The current metadata file contains all versions that have not expired, so it alone is enough to read the view.

    Parameters
    ----------
    path
        A folder that is empty or does not exist.
    location
        The view's location in the saved metadata: by default ``path``.
    earlier
        Locations of earlier metadata files to write as well, oldest first. Those that cannot be read are not written,
        but listed in `Saved.missing`.

    Raises
    ------
    OptionError
        The folder is not empty, or ``path`` is a URI of another storage.
    StorageError, AccessDeniedError
        The folder cannot be written.
    """
    with new_folder(path) as (building, target):
        new = (location or str(target)).rstrip("/")
        documents, missing = _documents(state, earlier)
        names = _names([*documents])
        folder = building / "metadata"
        folder.mkdir()
        size = files = 0
        for one, document in documents.items():
            size += _write(folder / names[one], encode_metadata({**document, "location": new}, names[one]))
            files += 1
        current = names[state.metadata_location]
        number = current.removeprefix("v").partition(".")[0]
        size += _write(folder / "version-hint.text", (number if number.isdecimal() else current).encode())
        return Saved(target, new, f"{new}/metadata/{current}", files + 1, size, missing)


def _documents(state: ViewState, earlier: Iterable[str]) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Return the metadata documents to write, and the errors for files that cannot be read, both by location.

    The documents are those at the locations ``earlier`` and, last, the current one. If ``earlier`` has the location of
    the current one, the locations after it are ignored.
    """
    found, missing = {}, {}
    for one in earlier:
        if one == state.metadata_location:
            break
        try:
            found[one] = parse_document(state.storage.read(one, kind="metadata"), one, kind=VIEW)[0]
        except IceexploreError as error:
            missing[one] = str(error)
    return {**found, state.metadata_location: state.opened.document}, missing


def _names(locations: list[str]) -> dict[str, str]:
    """Return the file names under which metadata files are saved, by location; the last location is the current one.

    Files of one name in different folders, as after the view has moved, get different names: the newest keeps the name,
    and ``1-``, ``2-`` and so on is put before the others.
    """
    names: dict[str, str] = {}
    for number, location in reversed([*enumerate(locations, 1)]):
        name = wanted = _name(location, number)
        copies = 0
        while name in names.values():
            copies += 1
            name = f"{copies}-{wanted}"
        names[location] = name
    return names


def _name(location: str, number: int) -> str:
    """Return the name under which a metadata file is saved.

    The name at the end of ``location`` is kept if it has the usual form: letters, digits, dots, hyphens or underscores,
    followed by ``.metadata.json`` or ``.metadata.json.gz``. Some catalogs use other names; such a name is replaced by
    ``v<number>.metadata.json``. ``number`` is the position of the file among the saved ones, from 1.
    """
    name = location.rpartition("/")[2]
    return name if _NAME.fullmatch(name) else f"v{number}.metadata.json"


def _write(path: Path, data: bytes) -> int:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return len(data)
