"""Tables made of metadata files and what they name: enough for everything below the manifests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"


def document(location: str, **changes: Any) -> dict[str, Any]:
    """Valid table metadata of format version 2, without snapshots."""
    fields = [{"id": 1, "name": "x", "required": False, "type": "long"}]
    return {
        "format-version": 2,
        "table-uuid": UUID,
        "location": location,
        "last-sequence-number": 0,
        "last-updated-ms": 1_700_000_000_000,
        "last-column-id": 1,
        "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        **changes,
    }


def snapshots(*manifest_lists: str) -> dict[str, Any]:
    """The keys of metadata with a snapshot per manifest list; the last is current."""
    return {
        "current-snapshot-id": len(manifest_lists),
        "snapshots": [
            {"snapshot-id": i, "sequence-number": i, "timestamp-ms": 1_700_000_000_000 + i, "manifest-list": path}
            for i, path in enumerate(manifest_lists, 1)
        ],
    }


def log(*files: str) -> dict[str, Any]:
    """The key of metadata that names earlier metadata files."""
    return {"metadata-log": [{"timestamp-ms": 1_600_000_000_000 + i, "metadata-file": f} for i, f in enumerate(files)]}


def make_table(folder: Path, metadata: dict[str, Any], files: dict[str, bytes] | None = None) -> Path:
    """Write a table's folder: what is in ``metadata/`` by name (documents, text or bytes), and other files."""
    (folder / "metadata").mkdir(parents=True, exist_ok=True)
    for name, content in metadata.items():
        data = content if isinstance(content, bytes) else content.encode() if isinstance(content, str) else None
        (folder / "metadata" / name).write_bytes(json.dumps(content).encode() if data is None else data)
    for name, data in (files or {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def name_of(opened: Any) -> str:
    """The name of the metadata file that was taken."""
    return str(opened.metadata_location.rpartition("/")[2])
