"""The state of a table: a metadata file, one of its snapshots, and the manifest reader. Immutable."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from iceexplore.delta import DELTA_LOG, table_document
from iceexplore.errors import Problems, TableChangedError, UnsupportedError, problem
from iceexplore.manifests import Manifest, ManifestReader
from iceexplore.metadata import Schema, Snapshot, TableMetadata, parse_table_metadata
from iceexplore.storage import CatalogLike, Opened, SourceLike, Storage, open_source, reopen

__all__ = ["TableState", "open_state", "refreshed", "state_of"]


@dataclass(frozen=True, eq=False)
class TableState:
    """The state that a `Table` shows; all higher-level packages read the table through it. Immutable.

    Attributes
    ----------
    opened
        The opened source: storage, metadata document and how it was found.
    snapshot
        The selected snapshot; None for a table without one.
    schema
        The schema for reading that snapshot.
    ref
        The branch or tag by which the snapshot was selected, if any.
    travel
        A phrase that describes a time-travelled state; None for the current state.
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
        """The catalog's identifier, the name of the folder or zip, or the last part of the location."""
        return self.opened.name_of(self.metadata.location, "table")

    @property
    def storage(self) -> Storage:
        """The storage that the table's files are read from."""
        return self.opened.storage

    @property
    def metadata_location(self) -> str:
        """The metadata file's location, as the table spells it."""
        return self.opened.metadata_location

    @property
    def format_badges(self) -> tuple[str, ...]:
        """The badges on a table's card: Iceberg's format version or, for a Delta table, its version and table feature.

        A simulation continues a Delta table as an Iceberg table, whose badges name the Delta version it started from.
        """
        iceberg = f"Iceberg v{self.metadata.format_version}"
        if DELTA_LOG not in self.metadata.properties:
            return (iceberg,)
        at, simulated = self.snapshot, False
        while at is not None and not _is_delta_version(at):
            at = None if at.parent_snapshot_id is None else self.metadata.snapshot(at.parent_snapshot_id)
            simulated = True
        version = "" if at is None else f" version {at.snapshot_id}"
        return (iceberg, f"from Delta{version}") if simulated else (f"Delta{version}", "adaptiveMetadata")

    @property
    def format_name(self) -> str:
        """The table's format in captions: Iceberg's version or, for a Delta table, Delta and its table feature.

        If a simulation has continued a Delta table as an Iceberg table, both formats are named.
        """
        iceberg = f"Iceberg v{self.metadata.format_version}"
        if DELTA_LOG not in self.metadata.properties:
            return iceberg
        delta = "Delta (adaptiveMetadata)"
        return delta if all(map(_is_delta_version, self.metadata.snapshots)) else f"{delta}, then {iceberg}"

    def refuse_delta(self, what: str) -> None:
        """Raise an error if this is a Delta table; ``what`` says what is not possible, and what to do instead."""
        if self.opened.is_delta:
            raise UnsupportedError(f"{self.name} is a Delta table: {what}")

    def root(self, snapshot: Snapshot | None = None) -> Manifest | None:
        """Return the manifest list or root manifest of a snapshot (default: the selected one); None if it has none."""
        wanted = snapshot or self.snapshot
        return None if wanted is None else self.reader.root(wanted)

    def leaves(
        self,
        snapshot: Snapshot | None = None,
        *,
        rows: Iterable[int] | None = None,
        parts: frozenset[str] = frozenset({"entries"}),
    ) -> Iterator[Manifest]:
        """Yield the live leaf manifests of a snapshot, in the order of its root.

        ``rows`` selects some of them by their row numbers in the root. Without it, a V4 root's own files come first,
        as one more leaf: see `ManifestReader.leaves`.
        """
        root = self.root(snapshot)
        if root is not None:
            yield from self.reader.leaves(root, None if rows is None else list(rows), parts=parts)

    def showing(self, snapshot: Snapshot | None, schema: Schema, *, ref: str | None, travel: str | None) -> TableState:
        """Return a state of the same metadata file at another snapshot; the cache of manifests is shared."""
        return replace(self, snapshot=snapshot, schema=schema, ref=ref, travel=travel)


def _is_delta_version(snapshot: Snapshot) -> bool:
    """Return whether a snapshot of a Delta table is one of its versions, not one that a simulation committed."""
    return snapshot.snapshot_id == snapshot.sequence_number


def state_of(
    opened: Opened, *, strict: bool = False, travel: str | None = None, before: TableState | None = None
) -> TableState:
    """Return the current state of an opened source.

    Parameters
    ----------
    before
        An earlier state of the same table, whose leaf manifests need not be built again.

    Raises
    ------
    FormatError
        The document is not table metadata or, with ``strict``, has any fault.
    """
    problems = Problems(strict=strict)
    for item in opened.problems:
        problems.add(item)
    if opened.is_delta and not opened.document:
        opened = replace(opened, document=table_document(opened.storage, opened.storage.folder, problems))
    metadata = parse_table_metadata(opened.document, opened.metadata_location, problems)

    def guessed(location: str, prefix: str, folder: str) -> None:
        text = "No known prefix matches this location: the file was found in the table's folder by the end of its path."
        problems.add(problem("location-guessed", location, text, found=folder, expected=prefix))

    opened.storage.on_rescue = guessed
    return TableState(
        opened=opened,
        metadata=metadata,
        snapshot=metadata.snapshot(),
        schema=metadata.schema(),
        problems=problems,
        reader=ManifestReader(opened.storage, metadata, problems, None if before is None else before.reader),
        notes=opened.notes,
        ref="main" if "main" in metadata.refs else None,
        travel=travel,
    )


def open_state(
    source: SourceLike,
    *,
    catalog: CatalogLike | None = None,
    moved: Mapping[str, str | os.PathLike[str]] | None = None,
    version: int | str | None = None,
    allow: object = (),
    properties: Mapping[str, str] | None = None,
    strict: bool = False,
) -> TableState:
    """Find a table's metadata (`iceexplore.storage.open_source`) and read it: one JSON file, nothing else."""
    opened = open_source(
        source, catalog=catalog, moved=moved, version=version, allow=allow, properties=properties, strict=strict
    )
    return state_of(opened, strict=strict)


def refreshed(state: TableState) -> TableState:
    """Open the source again and return a new state with the newest metadata.

    Raises
    ------
    TableChangedError
        The source now has a different table, with a different ``table-uuid`` (spec, "Table Metadata": ``table-uuid``).
    """
    source = state.opened.source
    new = state_of(reopen(source), strict=state.problems.strict)
    old_uuid, new_uuid = state.metadata.table_uuid, new.metadata.table_uuid
    if old_uuid and new_uuid and old_uuid != new_uuid:
        raise TableChangedError(
            f"{state.name}: the table at {new.metadata_location} has table-uuid {new_uuid}, this one has {old_uuid}: "
            "the table was dropped and created again. Open it again with ix.open(...)."
        )
    return new
