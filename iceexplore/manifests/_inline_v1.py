"""Roots of v1 snapshots that list their manifests inline: built from the manifests' headers, as there is no root file.

Spec, "Snapshots": ``manifests`` is a list of locations. Java (``BaseSnapshot.cacheManifests``) assumes spec id 0,
sequence number 0 and unknown counts. The spec id is also in each manifest's header and is taken from there if present.
"""

from __future__ import annotations

import pyarrow as pa

from iceexplore.errors import IceexploreError, Problem, Problems
from iceexplore.formats import read_header
from iceexplore.manifests._manifest import Manifest
from iceexplore.manifests.model._content_entry import ENTRY_SCHEMA, ContentType, Status
from iceexplore.manifests.model._header import ManifestHeader
from iceexplore.metadata import Snapshot, TableMetadata
from iceexplore.storage import Storage

__all__ = ["inline_root"]

#: Number of bytes to read first for a header, which has about 5 kB, but more if the table has many columns.
_FIRST_BYTES = 64 * 1024


def inline_root(storage: Storage, metadata: TableMetadata, snapshot: Snapshot) -> Manifest:
    """Return a root built from the manifests that a v1 snapshot lists; this reads their sizes and headers."""
    problems: list[Problem] = []
    rows = []
    for ordinal, location in enumerate(snapshot.manifests or ()):
        size, spec_id = None, 0
        try:
            size = storage.stat(location).size
            spec_id = _spec_id(storage, location, size)
        except IceexploreError as error:
            problems.append(Problems().add_error(error, location))
        added_by = _first_with(metadata, snapshot, location)
        rows.append(
            {
                "ordinal": ordinal,
                "content_type": int(ContentType.DATA_MANIFEST),  # v1 has no delete files
                "location": location,
                "file_format": "avro",
                "status": int(Status.ADDED if added_by == snapshot.snapshot_id else Status.EXISTING),
                "snapshot_id": added_by,
                "sequence_number": 0,
                "file_sequence_number": 0,
                "partition_spec_id": spec_id,
                "file_size_in_bytes": size,
                "manifest_stats": {"min_sequence_number": 0},
            }
        )
    where = f"{metadata.location}#snapshot {snapshot.snapshot_id}"
    return Manifest(
        where,
        pa.Table.from_pylist(rows, schema=ENTRY_SCHEMA),
        dialect="inline",
        is_root=True,
        header=ManifestHeader(format="inline"),
        problems=tuple(problems),
    )


def _spec_id(storage: Storage, location: str, size: int | None) -> int:
    """Return ``partition-spec-id`` of a manifest's header; 0 if missing."""
    length = _FIRST_BYTES if size is None else min(size, _FIRST_BYTES)
    data = storage.read(location, kind="manifest", offset=0, length=length)
    try:
        header = read_header(data, location)
    except IceexploreError:
        if size is None or size <= _FIRST_BYTES:
            raise
        header = read_header(storage.read(location, kind="manifest"), location)
    return ManifestHeader.of("", header.metadata, header.codec, "avro").spec_id or 0


def _first_with(metadata: TableMetadata, snapshot: Snapshot, location: str) -> int:
    """Return the id of the snapshot that added a manifest: the oldest ancestor that lists it inline.

    Java uses the given snapshot, which would mark every manifest as added in every snapshot.
    """
    found, at = snapshot.snapshot_id, snapshot
    for _ in metadata.snapshots:
        parent = None if at.parent_snapshot_id is None else metadata.snapshot(at.parent_snapshot_id)
        if parent is None or location not in (parent.manifests or ()):
            break
        found, at = parent.snapshot_id, parent
    return found
