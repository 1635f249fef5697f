"""The state of a table: one metadata file, one snapshot of it, and the reader behind them. Immutable."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from iceexplore.errors import Problems, TableChangedError, problem
from iceexplore.manifests import Manifest, ManifestReader
from iceexplore.metadata import Schema, Snapshot, TableMetadata, parse_table_metadata
from iceexplore.storage import Opened, Storage, open_source, reopen

__all__ = ["TableState", "open_state", "refreshed", "state_of"]


@dataclass(frozen=True, eq=False)
class TableState:
    """What a `Table` shows: everything above the storage asks this, and nothing changes it.

    Attributes
    ----------
    opened
        How the metadata file was found.
    snapshot
        The snapshot that is shown; None for a table without one.
    schema
        The schema to read that snapshot with.
    ref
        The branch or tag through which the snapshot was picked, if any.
    travel
        How this state was picked out of its metadata file, a phrase for people; None for the current state.
    """

    opened: Opened
    metadata: TableMetadata
    snapshot: Snapshot | None
    schema: Schema
    problems: Problems
    reader: ManifestReader
    notes: tuple[str, ...] = ()
    ref: str | None = None
    travel: str | None = None

    def __repr__(self) -> str:
        at = "no snapshot" if self.snapshot is None else f"snapshot {self.snapshot.snapshot_id}"
        return f"<TableState {self.name!r}, v{self.metadata.format_version}, {at}>"

    @property
    def name(self) -> str:
        """The catalog's identifier, or the last part of the location."""
        return self.opened.name or self.metadata.location.rstrip("/").rpartition("/")[2] or "table"

    @property
    def storage(self) -> Storage:
        """Where the bytes come from."""
        return self.opened.storage

    @property
    def metadata_location(self) -> str:
        """The metadata file, as the table spells it."""
        return self.opened.metadata_location

    def root(self, snapshot: Snapshot | None = None) -> Manifest | None:
        """The manifest list or root manifest of a snapshot (by default the one shown); None without a snapshot."""
        wanted = snapshot or self.snapshot
        return None if wanted is None else self.reader.root(wanted)

    def leaves(
        self,
        snapshot: Snapshot | None = None,
        *,
        rows: Iterable[int] | None = None,
        parts: frozenset[str] = frozenset({"entries"}),
    ) -> Iterator[Manifest]:
        """The live leaf manifests of a snapshot, in the order of its root; ``rows`` of the root picks some of them.

        Of a V4 root the view of its own files comes first, unless ``rows`` are given: see `ManifestReader.leaves`.
        """
        root = self.root(snapshot)
        if root is not None:
            yield from self.reader.leaves(root, None if rows is None else list(rows), parts=parts)

    def showing(self, snapshot: Snapshot | None, schema: Schema, *, ref: str | None, travel: str | None) -> TableState:
        """The same metadata file at another snapshot; everything already read stays read."""
        return replace(self, snapshot=snapshot, schema=schema, ref=ref, travel=travel)


def state_of(opened: Opened, *, strict: bool = False, travel: str | None = None) -> TableState:
    """The current state of what was opened.

    Raises
    ------
    FormatError
        The document is no table metadata at all; with ``strict``, any fault.
    """
    problems = Problems(strict=strict)
    for item in opened.problems:
        problems.add(item)
    metadata = parse_table_metadata(opened.document, opened.metadata_location, problems)

    def guessed(location: str, prefix: str, folder: str) -> None:
        text = "No known prefix fits the location: the file was found by the end of its path, under the table's folder."
        problems.add(problem("location-guessed", location, text, found=folder, expected=prefix))

    opened.storage.on_rescue = guessed
    return TableState(
        opened=opened,
        metadata=metadata,
        snapshot=metadata.snapshot(),
        schema=metadata.schema(),
        problems=problems,
        reader=ManifestReader(opened.storage, metadata, problems),
        notes=opened.notes,
        ref="main" if "main" in metadata.refs else None,
        travel=travel,
    )


def open_state(
    source: Any,
    *,
    catalog: Any = None,
    moved: Mapping[str, str | os.PathLike[str]] | None = None,
    version: int | str | None = None,
    allow: Any = (),
    properties: Mapping[str, str] | None = None,
    strict: bool = False,
) -> TableState:
    """Find a table's metadata (`iceexplore.storage.open_source`) and read it: one JSON file, nothing more."""
    opened = open_source(
        source, catalog=catalog, moved=moved, version=version, allow=allow, properties=properties, strict=strict
    )
    return state_of(opened, strict=strict)


def refreshed(state: TableState) -> TableState:
    """Ask the source again: a new state, of the newest metadata.

    Raises
    ------
    TableChangedError
        Another table (another ``table-uuid``) stands there now (spec, "Table Metadata": ``table-uuid``).
    """
    source = state.opened.source
    new = state_of(reopen(source), strict=state.problems.strict)
    old_uuid, new_uuid = state.metadata.table_uuid, new.metadata.table_uuid
    if old_uuid and new_uuid and old_uuid != new_uuid:
        raise TableChangedError(
            f"{state.name}: the table at {new.metadata_location} has table-uuid {new_uuid}, this one has {old_uuid}: "
            "it was dropped and created again. Open it anew with ix.open(...)."
        )
    return new
