"""What was asked for, and what was opened."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from iceexplore.errors import OptionError, OutsideRootsError, Problem, Problems
from iceexplore.storage._moved import find_moves
from iceexplore.storage._storage import Storage
from iceexplore.storage.finding._choose import Pick
from iceexplore.storage.finding._document import MAX_METADATA_BYTES
from iceexplore.storage.finding._versions import parse_name

__all__ = ["Opened", "Source", "learn_moves", "make_opened", "max_metadata_bytes"]


@dataclass(frozen=True)
class Source:
    """What was asked for, so that it can be asked again."""

    source: Any
    catalog: Any = None
    moved: Mapping[str, str | os.PathLike[str]] | None = None
    version: int | str | None = None
    allow: tuple[str, ...] = ()
    properties: Mapping[str, str] | None = field(default=None, repr=False)  # may hold secrets
    strict: bool = False
    #: What finds the newest state, where that is not to open the same once more: of a table that is committed to.
    newest: Callable[[], Opened] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Opened:
    """A table's metadata file, found and parsed.

    Attributes
    ----------
    metadata_location
        As the table would spell it.
    document
        The JSON as written.
    name
        The catalog's identifier, or the folder's name.
    notes
        Sentences for people: which metadata file was taken and why, which prefixes moved.
    version
        The number of the metadata file, from its name.
    catalog_table
        The PyIceberg Table that it came from, if it came from one.
    source
        What was asked for.
    """

    storage: Storage
    metadata_location: str
    document: dict[str, Any] = field(repr=False)
    name: str | None
    notes: tuple[str, ...]
    problems: tuple[Problem, ...]
    version: int | None
    catalog_table: Any | None
    source: Source


def make_opened(
    storage: Storage,
    pick: Pick,
    notes: tuple[str, ...],
    problems: Problems,
    asked: Source,
    name: str | None,
    table: Any,
) -> Opened:
    """What was opened, from the file that was taken."""
    return Opened(
        storage=storage,
        metadata_location=storage.unresolve(pick.real),
        document=pick.document,
        name=name,
        notes=(*pick.notes, *notes),
        problems=tuple(problems),
        version=parse_name(pick.real),
        catalog_table=table,
        source=asked,
    )


def learn_moves(storage: Storage, pick: Pick) -> tuple[str, ...]:
    """Tell the storage which prefixes have moved, by what a metadata file says; sentences for the card."""

    def exists(real: str) -> bool:
        if not any(real.startswith(r) for r in storage.roots):
            return False
        try:
            return storage.find(real) is not None
        except OutsideRootsError:  # a redirect to another host: something is there, and who reads it is told
            return True

    return find_moves(pick.document, pick.real, storage.folder, storage.moves, exists, storage.index)


def max_metadata_bytes(properties: Mapping[str, str] | None) -> int:
    """How large a metadata file may be, decompressed."""
    value = (properties or {}).get("iceexplore.max-metadata-bytes", MAX_METADATA_BYTES)
    try:
        return int(value)
    except ValueError:
        raise OptionError(f"iceexplore.max-metadata-bytes is a number of bytes, not {value!r}") from None
