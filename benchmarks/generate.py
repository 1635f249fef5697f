"""Generate valid Iceberg metadata of any size, without a single data file.

Run ``python benchmarks/generate.py --help``, or call `generate`. Each manifest is one commit, so the table has a
history, too: first appends of data files, then row deltas with deletes (position delete files in v2, each for one data
file; deletion vectors in v3, 100 per Puffin file). Generated tables are kept in ``benchmarks/data``, named by their
shape.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
from generator.columns import columns
from generator.entries import Layout, data_entries, delete_entries, partition_summaries
from generator.schemas import manifest_list_schema

__all__ = ["Shape", "generate"]

DATA = Path(__file__).parent / "data"
FIRST_SNAPSHOT = 4_611_686_018_427_387_904  # of 19 digits: a float would lose the last ones
FIRST_COMMIT_MS = 1_735_689_600_000  # 2025-01-01


@dataclass(frozen=True)
class Shape:
    """What to generate.

    Attributes
    ----------
    files
        Data files.
    deletes
        Delete files; each applies to one data file. None takes a tenth of the files (none in v1, which has no deletes).
    columns
        Columns, all with statistics.
    manifests
        Manifests, of data and deletes together, shared out by their numbers of files.
    partitioned
        By ``day(ts)`` and ``region``.
    format_version
        1, 2 or 3.
    """

    files: int = 100_000
    deletes: int | None = None
    columns: int = 10
    manifests: int = 11
    partitioned: bool = False
    format_version: int = 2

    @property
    def delete_files(self) -> int:
        """The number of delete files, with the default filled in."""
        if self.deletes is not None:
            return self.deletes
        return 0 if self.format_version == 1 else self.files // 10

    @property
    def name(self) -> str:
        """A folder name that tells shapes apart."""
        kind = "-partitioned" if self.partitioned else ""
        return f"v{self.format_version}-{self.files}-{self.delete_files}-{self.columns}c-{self.manifests}m{kind}"

    def check(self) -> None:
        """Refuse what cannot be made.

        Raises
        ------
        ValueError
            The numbers contradict each other.
        """
        if self.format_version not in (1, 2, 3):
            raise ValueError(f"format version {self.format_version}: generate.py writes 1, 2 and 3")
        if self.format_version == 1 and self.delete_files:
            raise ValueError("version 1 has no delete files: leave --deletes out or set it to 0")
        if not 0 <= self.delete_files <= self.files:
            raise ValueError(f"{self.delete_files} delete files for {self.files} data files: at most one for each")
        if self.files < 1 or self.columns < 3 or self.manifests < (2 if self.delete_files else 1):
            raise ValueError("at least 1 data file, 3 columns, and a manifest each for data and deletes")


@dataclass
class _Table:
    """What one run knows while it writes."""

    shape: Shape
    folder: Path
    manifests: list[dict[str, Any]] = field(default_factory=list)  # entries of the newest manifest list, newest first
    snapshots: list[dict[str, Any]] = field(default_factory=list)
    totals: dict[str, int] = field(default_factory=dict)
    next_row_id: int = 0

    @property
    def location(self) -> str:
        return self.folder.resolve().as_uri()

    @property
    def layout(self) -> Layout:
        shape = self.shape
        return Layout(shape.format_version, shape.partitioned, columns(shape.columns), self.location)

    @property
    def spec(self) -> list[dict[str, Any]]:
        if not self.shape.partitioned:
            return []
        return [
            {"name": "ts_day", "transform": "day", "source-id": 2, "field-id": 1000},
            {"name": "region", "transform": "identity", "source-id": 3, "field-id": 1001},
        ]

    @property
    def schema(self) -> dict[str, Any]:
        fields = [{"id": c.field_id, "name": c.name, "required": False, "type": c.type} for c in self.layout.columns]
        return {"type": "struct", "schema-id": 0, "fields": fields}


def generate(shape: Shape | None = None, out: Path | None = None) -> Path:
    """Write a table's metadata, unless it is there already; return the newest metadata file.

    Raises
    ------
    ValueError
        The shape contradicts itself.
    """
    shape = shape or Shape()
    shape.check()
    table = _Table(shape, Path(out) if out is not None else DATA / shape.name)
    metadata_file = table.folder / "metadata" / f"v{shape.manifests}.metadata.json"
    if metadata_file.exists() and json.loads(metadata_file.read_bytes())["location"] == table.location:
        return metadata_file
    (table.folder / "metadata").mkdir(parents=True, exist_ok=True)
    delete_manifests = 0
    if shape.delete_files:
        delete_manifests = max(1, round(shape.manifests * shape.delete_files / (shape.files + shape.delete_files)))
    for files in np.array_split(np.arange(shape.files), shape.manifests - delete_manifests):
        _commit(table, files, deletes=False)
    if delete_manifests:
        deleted_from = np.arange(shape.delete_files) * shape.files // shape.delete_files
        for part in np.array_split(np.arange(shape.delete_files), delete_manifests):
            _commit(table, deleted_from[part], deletes=True, numbers=part)
    partial = metadata_file.with_suffix(".partial")
    partial.write_text(json.dumps(_document(table), indent=1))
    os.replace(partial, metadata_file)  # the last file written: it marks the table as whole
    (table.folder / "metadata" / "version-hint.text").write_text(str(shape.manifests))
    return metadata_file


def _commit(table: _Table, files: Any, *, deletes: bool, numbers: Any = None) -> None:
    """One manifest, one manifest list, one snapshot."""
    version = table.shape.format_version
    layout = table.layout
    sequence = len(table.snapshots) + 1
    snapshot_id = FIRST_SNAPSHOT + sequence
    manifest = table.folder / "metadata" / f"{sequence:05d}-m0.avro"
    template, values, record_counts = (
        delete_entries(layout, files, numbers, snapshot_id) if deletes else data_entries(layout, files, snapshot_id)
    )
    metadata = {
        "schema": json.dumps(table.schema),
        "schema-id": "0",
        "partition-spec": json.dumps(table.spec),
        "partition-spec-id": "0",
        "format-version": str(version),
        **({} if version == 1 else {"content": "deletes" if deletes else "data"}),
    }
    body = template.container(values, metadata)
    manifest.write_bytes(body)
    row_count = int(record_counts.sum())
    entry = {
        "manifest_path": f"{table.location}/metadata/{manifest.name}",
        "manifest_length": len(body),
        "partition_spec_id": 0,
        "content": int(deletes),
        "sequence_number": sequence,
        "min_sequence_number": sequence,
        "added_snapshot_id": snapshot_id,
        "added_files_count": len(files),
        "existing_files_count": 0,
        "deleted_files_count": 0,
        "added_rows_count": row_count,
        "existing_rows_count": 0,
        "deleted_rows_count": 0,
        "partitions": partition_summaries(layout, files),
        "key_metadata": None,
        "first_row_id": None if deletes else table.next_row_id,
    }
    table.manifests.insert(0, entry)
    list_name = f"snap-{snapshot_id}-1.avro"
    _write_list(table, list_name, snapshot_id, sequence)
    _add_snapshot(table, list_name, snapshot_id, sequence, len(files), row_count, deletes)


def _write_list(table: _Table, name: str, snapshot_id: int, sequence: int) -> None:
    version = table.shape.format_version
    metadata = {
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": str(snapshot_id - 1) if table.snapshots else "null",
        "sequence-number": str(sequence),
        "format-version": str(version),
    }
    out = io.BytesIO()
    fastavro.writer(out, manifest_list_schema(version), table.manifests, codec="deflate", metadata=metadata)
    (table.folder / "metadata" / name).write_bytes(out.getvalue())


def _add_snapshot(
    table: _Table, list_name: str, snapshot_id: int, sequence: int, files: int, row_count: int, deletes: bool
) -> None:
    version = table.shape.format_version
    if deletes:
        kind = "added-dvs" if version >= 3 else "added-position-delete-files"
        added = {"added-delete-files": files, kind: files, "added-position-deletes": row_count}
        totals = {"total-delete-files": files, "total-position-deletes": row_count}
    else:
        added = {"added-data-files": files, "added-records": row_count}
        totals = {"total-data-files": files, "total-records": row_count}
    for key in ("total-data-files", "total-records", "total-delete-files", "total-position-deletes"):
        table.totals[key] = table.totals.get(key, 0) + totals.get(key, 0)
    summary = {k: str(v) for k, v in {**added, **table.totals, "total-equality-deletes": 0}.items()}
    snapshot: dict[str, Any] = {
        "snapshot-id": snapshot_id,
        "timestamp-ms": FIRST_COMMIT_MS + 3_600_000 * sequence,
        "summary": {"operation": "overwrite" if deletes else "append", **summary},
        "manifest-list": f"{table.location}/metadata/{list_name}",
        "schema-id": 0,
    }
    if version > 1:
        snapshot["sequence-number"] = sequence
    if table.snapshots:
        snapshot["parent-snapshot-id"] = table.snapshots[-1]["snapshot-id"]
    if version >= 3:
        added_rows = 0 if deletes else row_count
        snapshot |= {"first-row-id": table.next_row_id, "added-rows": added_rows}
        table.next_row_id += added_rows
    table.snapshots.append(snapshot)


def _document(table: _Table) -> dict[str, Any]:
    shape, last = table.shape, table.snapshots[-1]
    document: dict[str, Any] = {
        "format-version": shape.format_version,
        "table-uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, shape.name)),
        "location": table.location,
        "last-updated-ms": last["timestamp-ms"],
        "last-column-id": shape.columns,
        "schemas": [table.schema],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": table.spec}],
        "default-spec-id": 0,
        "last-partition-id": 999 + len(table.spec),
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {"owner": "benchmarks"},
        "current-snapshot-id": last["snapshot-id"],
        "refs": {"main": {"snapshot-id": last["snapshot-id"], "type": "branch"}},
        "snapshots": table.snapshots,
        "snapshot-log": [{k: s[k] for k in ("snapshot-id", "timestamp-ms")} for s in table.snapshots],
        "metadata-log": [],
        "statistics": [],
        "partition-statistics": [],
    }
    if shape.format_version == 1:
        document |= {"schema": table.schema, "partition-spec": table.spec}
    else:
        document["last-sequence-number"] = len(table.snapshots)
    if shape.format_version >= 3:
        document["next-row-id"] = table.next_row_id
    return document


def _main() -> None:
    parser = argparse.ArgumentParser(description="Write valid Iceberg metadata of any size, without data files.")
    default = Shape()
    parser.add_argument("--files", type=int, default=default.files, help="data files (%(default)s)")
    parser.add_argument("--deletes", type=int, help="delete files (a tenth of the data files; none in v1)")
    parser.add_argument("--columns", type=int, default=default.columns, help="columns with statistics (%(default)s)")
    parser.add_argument(
        "--manifests", type=int, default=default.manifests, help="manifests, a commit each (%(default)s)"
    )
    parser.add_argument("--partitioned", action="store_true", help="partition by day(ts) and region")
    parser.add_argument("--format-version", type=int, default=default.format_version, help="1, 2 or 3 (%(default)s)")
    parser.add_argument("--out", type=Path, help="folder of the table (benchmarks/data/<shape>)")
    options = vars(parser.parse_args())
    out = options.pop("out")
    start = time.perf_counter()
    try:
        path = generate(Shape(**options), out)
    except ValueError as error:
        parser.error(str(error))
    print(f"{path}  ({time.perf_counter() - start:.1f} s)")


if __name__ == "__main__":
    _main()
