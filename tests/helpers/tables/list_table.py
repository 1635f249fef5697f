"""A table in a folder, committed to by the layout alone: other engines can read it after each commit."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from iceexplore.commits import (
    Applied,
    Change,
    CommitWriter,
    LayoutOptions,
    add_snapshot,
    apply_to_list,
    new_table_document,
    next_document,
    snapshot_json,
    upgrade,
)
from iceexplore.graph import TableState, open_state
from iceexplore.manifests import ContentType, EntryBatch, live, stats_type

SCHEMA: dict[str, Any] = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": False},
        {"id": 2, "name": "kind", "type": "string", "required": False},
        {"id": 3, "name": "x", "type": "double", "required": False},
    ],
}
BY_KIND: list[dict[str, Any]] = [{"source-id": 2, "field-id": 1000, "transform": "identity", "name": "kind"}]
_BUCKET = "s3://bucket/"
_TYPES = {1: pa.int64(), 2: pa.string(), 3: pa.float64()}


class Disk:
    """Writes where the location says; never over a file."""

    def __init__(self) -> None:
        self.written: list[tuple[str, int]] = []

    def write(self, location: str, data: bytes, *, kind: str) -> None:
        path = Path(location)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as out:
            out.write(data)
        self.written.append((kind, len(data)))


class ListLab:
    """One table; `commit` is what a sandbox does, without conflicts."""

    def __init__(
        self,
        folder: Path,
        version: int = 2,
        *,
        spec: Sequence[Mapping[str, Any]] = BY_KIND,
        schema: Mapping[str, Any] = SCHEMA,
        **options: Any,
    ) -> None:
        self.folder = folder
        self.disk = Disk()
        if version == 4:
            options.setdefault("dialect", "v4-java")
        self.given = options
        self.options = LayoutOptions.of(version, **options)
        self.names = Random(7)
        self.version = 0
        self.clock = 1_700_000_000_000
        self.document: dict[str, Any] = dict(
            new_table_document(
                format_version=version,
                location=str(folder),
                schema=schema,
                partition_spec=list(spec),
                table_uuid=str(uuid.UUID(int=5)),
                timestamp_ms=self.clock,
                expressions=False,
            )
        )
        self._publish(self.document)

    @classmethod
    def on(cls, folder: Path, version: int, number: int, **options: Any) -> ListLab:
        """On top of a table that somebody else wrote; ``number`` of its newest metadata file."""
        lab = object.__new__(cls)
        lab.folder, lab.disk, lab.given = folder, Disk(), options
        if version == 4:
            options.setdefault("dialect", "v4-java")
        lab.options = LayoutOptions.of(version, **options)
        lab.names = Random(f"{folder} {number}")
        lab.version = number
        lab.document = json.loads(lab.metadata_path.read_text())
        lab.clock = lab.document["last-updated-ms"]
        return lab

    @property
    def metadata_path(self) -> Path:
        return self.folder / "metadata" / f"v{self.version}.metadata.json"

    @property
    def state(self) -> TableState:
        return open_state(str(self.metadata_path), strict=True)

    def writer(self, *, base: TableState | None = None, attempt: int = 1, **kept: Any) -> CommitWriter:
        base = base or self.state
        version = self.options.format_version
        return CommitWriter(
            storage=self.disk,
            base=base,
            options=self.options,
            snapshot_id=kept.pop("snapshot_id", None) or self.names.getrandbits(62) + 1,
            sequence_number=base.metadata.last_sequence_number + 1 if version > 1 else 0,
            first_row_id=(base.metadata.next_row_id or 0) if version > 2 else None,
            timestamp_ms=self.clock,
            attempt=attempt,
            names=self.names,
            **kept,
        )

    def commit(self, change: Change) -> TableState:
        change = spelled(change)
        writer = self.writer()
        return self.publish(change, writer, apply_to_list(change, writer))

    def publish(self, change: Change, writer: CommitWriter, applied: Applied) -> TableState:
        self.clock += 1000
        parent = writer.base.snapshot
        snapshot = snapshot_json(
            format_version=self.options.format_version,
            snapshot_id=writer.snapshot_id,
            parent_snapshot_id=None if parent is None else parent.snapshot_id,
            sequence_number=writer.sequence_number,
            timestamp_ms=self.clock,
            operation=change.operation,
            summary=applied.summary,
            root_location=applied.root_location,
            schema_id=0,
            root_manifest=self.options.has_root_manifest,
            first_row_id=writer.first_row_id,
            added_rows=applied.added_rows,
        )
        self._publish(add_snapshot(self.document, snapshot=snapshot))
        return self.state

    def upgrade(self, version: int) -> None:
        if version == 4:
            self.given.setdefault("dialect", "v4-java")
        self.options = LayoutOptions.of(version, **self.given)
        self._publish(upgrade(self.document, version, expressions=False))

    def _publish(self, document: Mapping[str, Any]) -> None:
        previous = str(self.metadata_path) if self.version else None
        if previous:
            document = next_document(document, previous_location=previous, timestamp_ms=self.clock)
        self.version += 1
        self.document = dict(document)
        self.metadata_path.parent.mkdir(parents=True, exist_ok=True)
        self.metadata_path.write_text(json.dumps(document))
        (self.metadata_path.parent / "version-hint.text").write_text(str(self.version))

    # files

    def data_file(self, rows: pa.Table, kind: str | None = None, spec_id: int = 0) -> EntryBatch:
        """A real Parquet file with field ids, and its entry."""
        path = self.folder / "data" / f"{uuid.UUID(int=self.names.getrandbits(128), version=4)}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        fields = [pa.field(f["name"], _TYPES[f["id"]], metadata={"PARQUET:field_id": str(f["id"])}) for f in _fields()]
        table = pa.Table.from_arrays([rows[f.name].cast(f.type) for f in fields], schema=pa.schema(fields))
        pq.write_table(table, path, store_schema=False)
        partition = (
            None if kind is None and spec_id == 0 and not self._partitioned() else pa.array([{"1000": kind}], KINDS)
        )
        return EntryBatch.of_rows(
            [entry(str(path), len(table), path.stat().st_size, spec_id)], stats=_stats(table), partition=partition
        )

    def _partitioned(self) -> bool:
        return bool(self.document["partition-specs"][0]["fields"])


KINDS = pa.struct([pa.field("1000", pa.string())])


def _fields() -> list[dict[str, Any]]:
    return list(SCHEMA["fields"])


def _stats(table: pa.Table) -> dict[int, pa.StructArray]:
    out = {}
    for f in _fields():
        column = table[f["name"]]
        values = [v for v in column.to_pylist() if v is not None]
        kind = stats_type(_TYPES[f["id"]])  # type: ignore[arg-type]
        row = {
            "lower": min(values, default=None),
            "upper": max(values, default=None),
            "value_count": len(column),
            "null_count": column.null_count,
            "nan_count": 0 if f["type"] == "double" else None,
            "column_size": 40,
        }
        out[f["id"]] = pa.array([row], kind)
    return out  # type: ignore[return-value]


def at(name: str) -> str:
    """The location of a file that is only a name: V4 would take it as relative to the table."""
    return name if "/" in name else f"{_BUCKET}{name}"


def spelled(change: Change) -> Change:
    """A change whose files are named in short."""

    def named(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(at(n) for n in names)

    return replace(
        change,
        remove_data=named(change.remove_data),
        remove_deletes=named(change.remove_deletes),
        replace_dvs=named(change.replace_dvs),
    )


def entry(location: str, rows: int, size: int = 1000, spec_id: int = 0, **more: Any) -> dict[str, Any]:
    """An entry of a file to be added."""
    if more.get("referenced_file"):
        more["referenced_file"] = at(more["referenced_file"])
    return {
        "content_type": int(ContentType.DATA),
        "location": at(location),
        "file_format": "parquet",
        "partition_spec_id": spec_id,
        "record_count": rows,
        "file_size_in_bytes": size,
        **more,
    }


def batch(rows: Sequence[Mapping[str, Any]], kinds: Sequence[str | None] | None = None) -> EntryBatch:
    """Entries of files that have no data; ``kinds`` are their partitions."""
    partition = None if kinds is None else pa.array([{"1000": k} for k in kinds], KINDS)
    return EntryBatch.of_rows(rows, partition=partition)


def live_rows(state: TableState, *contents: ContentType) -> list[dict[str, Any]]:
    """Live entries of these types (all), as dictionaries, with ``kind`` and the leaf's location."""
    out = []
    for leaf in state.leaves(parts=frozenset({"entries", "partition"})):
        mask = np.asarray(live(leaf.entries))
        tuples = leaf.partition()
        for i in np.flatnonzero(mask):
            row = leaf.entries.slice(int(i), 1).to_pylist()[0]
            row["kind"] = None if tuples is None else (tuples[int(i)].as_py() or {}).get("1000")  # type: ignore[call-overload, union-attr]
            row["leaf"] = leaf.location
            row["location"] = row["location"].removeprefix(_BUCKET)
            row["referenced_file"] = (row["referenced_file"] or "").removeprefix(_BUCKET) or None
            if not contents or row["content_type"] in contents:
                out.append(row)
    return out
