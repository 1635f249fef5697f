"""What is live in a table, by a plain-Python reading of its files: nothing of the package but the bytes."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pyarrow.parquet as pq
from pyroaring import BitMap, BitMap64

import iceexplore as ix

__all__ = ["entries_of", "live_of", "root_of"]

Key = tuple[int, str, int | None]


def _bytes(t: ix.Table, location: str) -> bytes:
    return t.state.storage.read(location, kind="other")


def _whole(t: ix.Table, location: str | None) -> str | None:
    """Relative locations begin in the table's folder."""
    if location is None or "://" in location or location.startswith("/"):
        return location
    return f"{t.location.rstrip('/')}/{location}"


def _positions(data: bytes) -> BitMap:
    """A portable roaring bitmap, or the blob of a Puffin file: length, magic, 64-bit bitmap, checksum."""
    if data[4:8] == b"\xd1\xd3\x39\x64":
        return BitMap(BitMap64.deserialize(data[8:-4]))
    return BitMap.deserialize(data)


def _rows(t: ix.Table, location: str) -> list[dict[str, Any]]:
    """The rows of a V4 manifest (Parquet) or of a v1-v3 one, in one shape; files never change."""
    key = (t.state.storage.identity, location)
    if key not in _READ:
        _READ[key] = _read(t, location)
    return _READ[key]


_READ: dict[tuple[str, str], list[dict[str, Any]]] = {}


def _read(t: ix.Table, location: str) -> list[dict[str, Any]]:
    data = _bytes(t, location)
    if data[:4] == b"PAR1":
        out = []
        for row in pq.read_table(io.BytesIO(data)).to_pylist():
            info, vector = row.get("version_info") or {}, row.get("deletion_vector") or {}
            out.append(
                {
                    "type": row["content_type"],
                    "location": _whole(t, row["location"]),
                    "status": info.get("status"),
                    "snapshot_id": info.get("snapshot_id"),
                    "rows": row["record_count"],
                    "offset": vector.get("offset"),
                    "size": vector.get("size_in_bytes"),
                    "inline": vector.get("inline_content"),
                    "for": _whole(t, row.get("referenced_file")),
                    "stats": row.get("content_stats"),
                }
            )
        return out
    out = []
    for entry in fastavro.reader(io.BytesIO(data)):
        if "manifest_path" in entry:
            out.append({"type": 3 + entry["content"], "location": entry["manifest_path"], "status": 0})
            continue
        f = entry["data_file"]
        out.append(
            {
                "type": f.get("content", 0),
                "location": f["file_path"],
                "status": entry["status"],
                "snapshot_id": entry["snapshot_id"],
                "rows": f["record_count"],
                "offset": f.get("content_offset"),
                "for": f.get("referenced_data_file"),
            }
        )
    return out


def root_of(t: ix.Table, snapshot_id: int) -> list[dict[str, Any]]:
    """The rows of a snapshot's root manifest or manifest list."""
    raw = next(s for s in t.metadata.raw["snapshots"] if s["snapshot-id"] == snapshot_id)
    return _rows(t, str(_whole(t, raw.get("root-manifest") or raw["manifest-list"])))


def entries_of(t: ix.Table, snapshot_id: int) -> list[dict[str, Any]]:
    """Every entry of every live leaf and of the root itself; ``gone``: removed by a manifest DV; ``leaf``: where."""
    root = root_of(t, snapshot_id)
    vectors: dict[str, BitMap] = {}
    for row in root:
        if row["type"] == 5 and row["status"] != 2:
            data = row["inline"]
            if data is None:
                data = _bytes(t, row["location"])[row["offset"] : row["offset"] + row["size"]]
            vectors[row["for"]] = vectors.get(row["for"], BitMap()) | _positions(data)
    out = [{**row, "leaf": None, "ordinal": i, "gone": False} for i, row in enumerate(root) if row["type"] < 3]
    for row in root:
        if row["type"] in (3, 4) and row["status"] != 2:
            gone = vectors.get(row["location"], BitMap())
            for i, entry in enumerate(_rows(t, row["location"])):
                out.append({**entry, "leaf": row["location"], "ordinal": i, "gone": i in gone})
    return out


def live_of(t: ix.Table, snapshot_id: int) -> dict[Key, int]:
    """(content, location, offset) -> rows of every live file."""
    out: dict[Key, int] = {}
    for e in entries_of(t, snapshot_id):
        if e["status"] != 2 and not e["gone"]:
            key = (e["type"], e["location"], e["offset"])
            assert key not in out, f"{key} is live twice"
            out[key] = e["rows"]
    return out
