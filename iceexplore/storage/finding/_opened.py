"""The arguments of opening a table, and the opened table."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from iceexplore.errors import OptionError, OutsideRootsError, Problem, Problems
from iceexplore.storage._location import canonical, within
from iceexplore.storage._moved import find_moves
from iceexplore.storage._storage import Storage
from iceexplore.storage.finding._choose import Pick
from iceexplore.storage.finding._document import MAX_METADATA_BYTES
from iceexplore.storage.finding._kinds import TABLE, DocumentKind
from iceexplore.storage.finding._versions import parse_name

if TYPE_CHECKING:
    from pyiceberg.table import Table as PyIcebergTable

__all__ = ["Opened", "Source", "learn_moves", "make_opened", "max_metadata_bytes"]


@dataclass(frozen=True)
class Source:
    """The arguments of `open_source`, kept so that the table can be opened again."""

    source: Any
    catalog: Any = None
    moved: Mapping[str, str | os.PathLike[str]] | None = None
    version: int | str | None = None
    allow: tuple[str, ...] = ()
    properties: Mapping[str, str] | None = field(default=None, repr=False)  # may hold secrets
    strict: bool = False
    kind: DocumentKind = TABLE
    #: Returns the newest state of a table that is being committed to, instead of opening the source again.
    newest: Callable[[], Opened] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Opened:
    """The metadata file of a table or view, found and parsed.

    Attributes
    ----------
    metadata_location
        The location of the metadata file, in the table's spelling.
    document
        The JSON document, as it is in the file.
    name
        The identifier in the catalog, or the folder's name.
    notes
        Sentences for the user: the chosen metadata file and why, and the prefixes that moved.
    version
        The number of the metadata file, from its name.
    catalog_table
        The PyIceberg Table from which it was opened; None if it was opened in another way.
    source
        The arguments of `open_source`.
    is_delta
        True for a Delta table. Its document is empty here; `iceexplore.delta` makes one from the table's log.
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
    is_delta: bool = False

    def name_of(self, location: str, default: str) -> str:
        """Return `name` or, if there is none, the last part of the table's ``location``; ``default`` without either."""
        return self.name or location.rstrip("/").rpartition("/")[2] or default


def make_opened(
    storage: Storage,
    pick: Pick,
    notes: tuple[str, ...],
    problems: Problems,
    asked: Source,
    name: str | None,
    table: PyIcebergTable | None,
) -> Opened:
    """Return the opened table for a chosen metadata file."""
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
        is_delta=not pick.document,
    )


def learn_moves(storage: Storage, pick: Pick) -> tuple[str, ...]:
    """Record in the storage which prefixes have moved according to a metadata file; return notes for the card."""

    def exists(real: str) -> bool:
        if not any(within(canonical(real), root) for root in storage.roots):
            return False
        try:
            return storage.find(real) is not None
        except OutsideRootsError:  # a redirect to another host: something exists, and reading it reports the refusal
            return True

    return find_moves(pick.document, pick.real, storage.folder, storage.moves, exists, storage.index)


def max_metadata_bytes(properties: Mapping[str, str] | None) -> int:
    """Return the maximum size of a metadata file after decompression, in bytes."""
    value = (properties or {}).get("iceexplore.max-metadata-bytes", MAX_METADATA_BYTES)
    try:
        return int(value)
    except ValueError:
        raise OptionError(f"iceexplore.max-metadata-bytes must be a number of bytes, not {value!r}") from None
