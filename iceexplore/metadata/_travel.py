"""Choose the schema that a state of the table is read with."""

from __future__ import annotations

from iceexplore.metadata.document._model import Snapshot, TableMetadata
from iceexplore.metadata.types._types import Schema

__all__ = ["schema_at"]


def schema_at(metadata: TableMetadata, snapshot: Snapshot | None, ref: str | None = None) -> Schema:
    """Return the schema to read a snapshot with: its own if it has a schema id.

    A branch, given by ``ref``, is read with the table's current schema (Java: ``SnapshotUtil.schemaFor``), a tag with
    its snapshot's. v1 snapshots may have no schema id: then it is the current schema.
    """
    if snapshot is None:
        return metadata.schema()
    if ref is not None and ref in metadata.refs and metadata.refs[ref].type == "branch":
        return metadata.schema()
    return metadata.schema(snapshot.schema_id)
