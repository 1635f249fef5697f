"""A Delta table with a V4 tree in the RFC's form, written with pyarrow and json alone; nothing of the package is used.

RFC ``iceberg-v4-metadata.md``: ``checkpoint`` is an array of actions, manifests have typed partition tuples and counts,
paths in them are plain, and a deletion vector's location is relative. (Delta Lake 4.4 writes another form, which the
tables of the corpus have.)
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap

FEATURES = ["adaptiveMetadata", "columnMapping", "deletionVectors", "rowTracking"]
COLUMNS = [("id", "long", 1), ("day", "date", 2), ("name", "string", 3)]
_TYPES = {"long": pa.int64(), "date": pa.date32(), "string": pa.string()}


def _field(name: str, kind: Any, number: int, *, required: bool = False) -> Any:
    return pa.field(name, kind, nullable=not required, metadata={b"PARQUET:field_id": str(number).encode()})


_TRACKING = pa.struct([
    _field("status", pa.int32(), 0), _field("snapshot_id", pa.int64(), 1), _field("sequence_number", pa.int64(), 3),
    _field("file_sequence_number", pa.int64(), 4), _field("dv_snapshot_id", pa.int64(), 5),
    _field("first_row_id", pa.int64(), 142),
])  # fmt: skip
_VECTOR = pa.struct([
    _field("location", pa.string(), 155), _field("offset", pa.int64(), 144), _field("size_in_bytes", pa.int64(), 145),
    _field("cardinality", pa.int64(), 156),
])  # fmt: skip
_INFO = pa.struct([
    *(_field(f"{s}_files_count", pa.int32(), i) for s, i in (("added", 504), ("existing", 505), ("deleted", 506))),
    *(_field(f"{s}_rows_count", pa.int64(), i) for s, i in (("added", 512), ("existing", 513), ("deleted", 514))),
    _field("min_sequence_number", pa.int64(), 516), _field("dv", pa.binary(), 522),
    _field("dv_cardinality", pa.int64(), 523),
])  # fmt: skip
_PARTITION = pa.struct([_field("day", pa.date32(), 1000)])
MANIFEST = pa.schema([
    _field("tracking", _TRACKING, 147), _field("content_type", pa.int32(), 134), _field("location", pa.string(), 100),
    _field("file_format", pa.string(), 101), _field("record_count", pa.int64(), 103),
    _field("file_size_in_bytes", pa.int64(), 104), _field("spec_id", pa.int32(), 141),
    _field("partition", _PARTITION, 102), _field("deletion_vector", _VECTOR, 148),
    _field("manifest_info", _INFO, 150),
])  # fmt: skip


class DeltaTable:
    """A table of ``id``, ``day`` (the partition column) and ``name``.

    `append`, `remove` and the like return actions for `commit`; `leaf` and `root` write manifests.
    """

    def __init__(self, folder: Path, *, features: Iterable[str] = FEATURES, columns: Any = COLUMNS) -> None:
        self.folder = folder
        self.log = folder / "_delta_log"
        self.log.mkdir(parents=True)
        (folder / "metadata").mkdir()
        self.version = -1
        self.rows = 0
        fields = [
            {"name": name, "type": kind, "nullable": True,
             "metadata": {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{name}"}}
            for name, kind, number in columns
        ]  # fmt: skip
        self.protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [*features]}
        self.about = {
            "id": "11111111-2222-3333-4444-555555555555",
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": ["day"], "configuration": {"delta.columnMapping.maxColumnId": "3"}, "createdTime": 1,
        }  # fmt: skip

    def create(self) -> None:
        """Commit version 0."""
        self.commit({"protocol": self.protocol}, {"metaData": self.about}, operation="CREATE TABLE")

    def commit(self, *actions: Mapping[str, Any], operation: str = "WRITE") -> int:
        """Write the next commit, and return its version."""
        self.version += 1
        info = {"operation": operation, "inCommitTimestamp": 1_790_000_000_000 + self.version, "engineInfo": "by hand"}
        high_water = {"domain": "delta.rowTracking", "configuration": json.dumps({"rowIdHighWaterMark": self.rows - 1})}
        more = [{"domainMetadata": high_water}] if self.rows else []
        lines = [json.dumps(a) for a in [{"commitInfo": info}, *actions, *more]]
        (self.log / f"{self.version:020}.json").write_text("\n".join(lines))
        return self.version

    def append(self, name: str, ids: Iterable[int], day: str | None) -> dict[str, Any]:
        """Write a data file, and return its ``add`` for the next commit."""
        values = [*ids]
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        schema = pa.schema([_field(f"col-{n}", _TYPES[t], i) for n, t, i in COLUMNS if n != "day"])
        texts = pa.array([f"n{v}" for v in values])
        pq.write_table(pa.table([pa.array(values, pa.int64()), texts], schema=schema), path)
        stats = {
            "numRecords": len(values), "minValues": {"col-id": min(values), "col-name": f"n{min(values)}"},
            "maxValues": {"col-id": max(values), "col-name": f"n{max(values)}"},
            "nullCount": {"col-id": 0, "col-name": 0}, "tightBounds": True,
        }  # fmt: skip
        made = {
            "path": quote(name), "partitionValues": {"col-day": day}, "size": path.stat().st_size, "dataChange": True,
            "modificationTime": 1, "stats": json.dumps(stats), "baseRowId": self.rows,
            "defaultRowCommitVersion": self.version + 1,
        }  # fmt: skip
        self.rows += len(values)
        return {"add": made}

    def remove(self, added: Mapping[str, Any], back: tuple[str, int] | None = None) -> dict[str, Any]:
        """Return the ``remove`` of a file, with a back reference to its entry in a leaf."""
        add = added["add"]
        made = {k: add[k] for k in ("path", "partitionValues", "size", "stats", "dataChange")}
        made |= {"deletionVector": add["deletionVector"]} if "deletionVector" in add else {}
        made |= {"backReference": {"manifest": back[0], "pos": back[1]}} if back else {}
        return {"remove": made}

    def with_vector(self, added: Mapping[str, Any], positions: Iterable[int], name: str = "dv.bin") -> dict[str, Any]:
        """Write a deletion vector, and return the file's new ``add``."""
        bitmap = BitMap(positions).serialize()
        content = bytes.fromhex("d1d33964") + struct.pack("<qi", 1, 0) + bitmap
        blob = struct.pack(">i", len(content)) + content + struct.pack(">I", zlib.crc32(content))
        (self.folder / name).write_bytes(b"\x01" + blob)
        vector = {"storageType": "p", "pathOrInlineDv": name, "offset": 1, "sizeInBytes": len(content),
                  "cardinality": len(BitMap(positions))}  # fmt: skip
        return {"add": {**added["add"], "deletionVector": vector}}

    def entry(self, added: Mapping[str, Any], *, status: int = 0) -> dict[str, Any]:
        """Return the manifest entry of an added file."""
        add, vector = added["add"], added["add"].get("deletionVector")
        version = add["defaultRowCommitVersion"]
        day = add["partitionValues"]["col-day"]
        return {
            "tracking": {"status": status, "sequence_number": version, "file_sequence_number": version,
                         "first_row_id": add["baseRowId"], "snapshot_id": 7_000 + version},
            "content_type": 0, "location": self.plain(add["path"]), "file_format": "parquet",
            "record_count": json.loads(add["stats"])["numRecords"], "file_size_in_bytes": add["size"], "spec_id": 0,
            "partition": {"day": None if day is None else pa.scalar(day).cast(pa.date32()).as_py()},
            "deletion_vector": vector and {
                "location": vector["pathOrInlineDv"], "offset": vector["offset"],
                "size_in_bytes": vector["sizeInBytes"] + 8, "cardinality": vector["cardinality"],
            },
        }  # fmt: skip

    @staticmethod
    def plain(path: str) -> str:
        """Return a path of the log as manifests have it."""
        from urllib.parse import unquote

        return unquote(path)

    def leaf(self, name: str, entries: Iterable[Mapping[str, Any]]) -> str:
        """Write a manifest, and return its location."""
        location = f"metadata/{name}.parquet"
        pq.write_table(pa.Table.from_pylist([*entries], schema=MANIFEST), self.folder / location)
        return location

    def listed(self, location: str, removed: Iterable[int] = (), *, status: int = 0) -> dict[str, Any]:
        """Return the root's entry of a leaf, with a manifest DV if entries are removed."""
        rows = pq.read_table(self.folder / location).to_pylist()
        version = max(r["tracking"]["sequence_number"] for r in rows)
        counts = {"added": 0, "existing": 0, "deleted": 0} | {"existing": len(rows)}
        info = {f"{k}_files_count": v for k, v in counts.items()}
        info |= {f"{k}_rows_count": sum(r["record_count"] for r in rows) if v else 0 for k, v in counts.items()}
        gone = BitMap(removed)
        info |= {"min_sequence_number": min(r["tracking"]["sequence_number"] for r in rows)}
        info |= {"dv": gone.serialize(), "dv_cardinality": len(gone)} if gone else {}
        return {
            "tracking": {"status": status, "sequence_number": version, "file_sequence_number": version,
                         "snapshot_id": 7_000 + version},
            "content_type": 3, "location": location, "file_format": "parquet", "record_count": len(rows),
            "file_size_in_bytes": (self.folder / location).stat().st_size, "manifest_info": info,
        }  # fmt: skip

    def checkpoint(self, name: str, entries: Iterable[Mapping[str, Any]], version: int) -> dict[str, Any]:
        """Write a root manifest, and return the ``checkpoint`` action that names it."""
        location = self.leaf(name, entries)
        root = {"path": location, "sizeInBytes": (self.folder / location).stat().st_size, "version": version}
        return {"checkpoint": [
            {"checkpointMetadata": {"version": version}}, {"contentRoot": root}, {"protocol": self.protocol},
            {"metaData": self.about},
        ]}  # fmt: skip

    def standalone(self, version: int, root: Mapping[str, Any], files: Iterable[Mapping[str, Any]] = ()) -> None:
        """Write a standalone checkpoint of a version, and remove the commits up to it."""
        inside = [a for a in root["checkpoint"] if "checkpointMetadata" not in a]
        rows = [{"checkpointMetadata": {"version": version}}, *inside, *files]
        keys = sorted({key for row in rows for key in row})
        columns = {}
        for key in keys:
            values = [row.get(key) for row in rows]
            columns[key] = pa.array([None if v is None else _maps(v) for v in values])
        pq.write_table(pa.table(columns), self.log / f"{version:020}.checkpoint.parquet")
        for number in range(version + 1):
            (self.log / f"{number:020}.json").unlink(missing_ok=True)


def _maps(value: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in value.items() if v is not None and v != {}}
