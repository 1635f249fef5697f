"""Saved histories of V4 by an independent reader: rules, key-values and rows, of nothing but the bytes in the folder.

It uses pyarrow, fastavro and pyroaring, and for the draft's bitmaps our decoder alone (no other one is published).
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap, BitMap64

import iceexplore as ix
from iceexplore.deletes import decode_mumbling

UPDATED = 2_147_483_539
DATA, VECTOR, EQUALITY, DATA_MANIFEST, DELETE_MANIFEST, MANIFEST_DV = range(6)
LIVE = (0, 1, 4)


class Reader:
    """Reads the snapshots of a saved table, and collects what is wrong in its trees."""

    def __init__(self, metadata: str) -> None:
        self.document = json.loads(Path(metadata).read_text())
        self.folder = Path(self.document["location"].removeprefix("file://"))
        self.wrong: list[str] = []

    def path(self, location: str) -> Path:
        location = location.removeprefix("file://")
        return Path(location) if location.startswith("/") else self.folder / location

    def manifest(self, location: str, content: str) -> list[dict[str, Any]]:
        """The rows of a manifest, whose key-values must say what it is."""
        data = self.path(location).read_bytes()
        if data[:4] == b"PAR1":
            file = pq.ParquetFile(io.BytesIO(data))
            keys = {k.decode(): v.decode() for k, v in (file.metadata.metadata or {}).items() if k != b"ARROW:schema"}
            rows = file.read().to_pylist()
        else:
            found = fastavro.reader(io.BytesIO(data))
            keys = {k: v for k, v in found.metadata.items() if not k.startswith("avro.")}
            rows = list(found)
        if (keys.get("format-version"), keys.get("content")) != ("4", content):
            self.wrong.append(f"{location}: key-values {keys}")
        return rows

    def check(self, holds: object, what: str) -> None:
        if not holds:
            self.wrong.append(what)

    def sized(self, entry: dict[str, Any]) -> None:
        size = self.path(entry["location"]).stat().st_size
        self.check(size == entry["file_size_in_bytes"], f"{entry['location']}: {size} bytes")

    def bitmap(self, data: bytes) -> BitMap:
        if data[4:8] == b"\xd1\xd3\x39\x64":
            return BitMap(BitMap64.deserialize(data[8:-4]))
        return BitMap.deserialize(data)

    def blob(self, vector: dict[str, Any], location: str) -> bytes:
        if vector.get("inline_content") is not None:
            return bytes(vector["inline_content"])
        data = self.path(location).read_bytes()
        self.check(data[:4] == b"PFA1", f"{location} is not a Puffin file")
        return data[vector["offset"] : vector["offset"] + vector["size_in_bytes"]]

    # Trees

    def rows(self, snapshot: dict[str, Any]) -> Counter[tuple[Any, ...]]:
        """The live rows of a snapshot: data files, their column files by position, without deleted positions."""
        location = snapshot.get("root-manifest") or snapshot["manifest-list"]
        root = self.manifest(location, "root")
        self.check("root-manifest" not in snapshot or "manifest-list" not in snapshot, "two roots")
        live = list(self.draft(root, snapshot) if "tracking" in root[0] else self.proposal(root, snapshot))
        names = [entry["location"] for entry, _ in live]
        self.check(len(set(names)) == len(names), f"{location}: a file is live twice")
        counted: Counter[tuple[Any, ...]] = Counter()
        for entry, gone in live:
            self.check(not gone or gone.max() < entry["record_count"], f"{entry['location']}: vector out of range")
            table = self.merged(entry)
            keep = [i not in gone for i in range(table.num_rows)]
            counted.update(tuple(row.values()) for row in table.filter(pa.array(keep, pa.bool_())).to_pylist())
        return counted

    def merged(self, entry: dict[str, Any]) -> pa.Table:
        """The columns of a data file by field id, newer ones from its column files, and when each row was updated."""
        self.sized(entry)
        file = by_id(pq.read_table(self.path(entry["location"])))
        self.check(file[next(iter(file))].length() == entry["record_count"], f"{entry['location']}: rows")
        numbers = file.pop(UPDATED, None)
        seen: set[int] = set()
        for one in entry.get("column_files") or ():
            self.sized(one)
            newer = by_id(pq.read_table(self.path(one["location"])))
            ids = set(one["field_ids"])
            self.check(ids <= newer.keys() and not ids & seen, f"{one['location']}: columns {sorted(ids)}")
            seen |= ids
            for number in ids:
                self.check(len(newer[number]) == entry["record_count"], f"{one['location']}: rows")
                if number == UPDATED:
                    numbers = newer[number]
                else:
                    file[number] = newer[number]
        own = pa.scalar(entry["sequence"], pa.int64())
        updated = pa.nulls(entry["record_count"], pa.int64()) if numbers is None else numbers
        names = [str(number) for number in sorted(file)]
        columns: list[Any] = [*(file[n] for n in sorted(file)), pc.coalesce(updated, own)]
        return pa.table(columns, names=[*names, "updated"])

    def proposal(self, root: list[dict[str, Any]], snapshot: dict[str, Any]) -> Iterator[tuple[dict[str, Any], BitMap]]:
        """Live data files with the positions deleted in them."""
        live = [row for row in root if row["version_info"]["status"] != 2]
        removed = {
            row["referenced_file"]: self.bitmap(self.blob(row["deletion_vector"], row["location"]))
            for row in live
            if row["content_type"] == MANIFEST_DV
        }
        found: list[dict[str, Any]] = []
        for row in root:
            kind, info = row["content_type"], row["version_info"]
            where = row["location"]
            self.check(info["status"] in (0, 1, 2), f"{where}: status {info['status']}")
            self.check((row.get("deletion_vector") is not None) == (kind in (VECTOR, MANIFEST_DV)), f"{where}: vector")
            self.check(
                (row.get("manifest_stats") is not None) == (kind in (DATA_MANIFEST, DELETE_MANIFEST)), f"{where}: stats"
            )
            self.check(kind not in (VECTOR, MANIFEST_DV) or row.get("referenced_file"), f"{where}: references nothing")
            self.check(kind in range(6), f"{where}: type {kind}")
            self.check(
                (info["sequence_number"] or 0) <= snapshot["sequence-number"], f"{where}: newer than the snapshot"
            )
        for row in live:
            kind, own = row["content_type"], row["version_info"]
            if kind in (DATA, VECTOR):
                found.append({**row, "sequence": own["sequence_number"] or snapshot["sequence-number"]})
            if kind not in (DATA_MANIFEST, DELETE_MANIFEST):
                continue
            self.sized(row)
            self.check(own["sequence_number"] == own["file_sequence_number"], f"{row['location']}: two numbers")
            leaf = self.manifest(row["location"], "data" if kind == DATA_MANIFEST else "delete")
            counts = Counter((e["version_info"] or {}).get("status") for e in leaf)
            stats = row["manifest_stats"]
            stated = [stats[f"{name}_files_count"] for name in ("existing", "added", "deleted")]
            self.check(stated == [counts[0], counts[1], counts[2]], f"{row['location']}: counts {stated}")
            for at, entry in enumerate(leaf):
                mine = (DATA,) if kind == DATA_MANIFEST else (VECTOR, EQUALITY)
                self.check(entry["content_type"] in mine, f"{row['location']}#{at}: type {entry['content_type']}")
                if at not in removed.get(row["location"], ()) and entry["version_info"]["status"] != 2:
                    number = entry["version_info"]["sequence_number"] or own["sequence_number"]
                    found.append({**entry, "sequence": number})
        vectors = {
            e["referenced_file"]: self.bitmap(self.blob(e["deletion_vector"], e["location"]))
            for e in found
            if e["content_type"] == VECTOR
        }
        data = {e["location"]: e for e in found if e["content_type"] == DATA}
        self.check(vectors.keys() <= data.keys(), "a vector without its data file")
        yield from ((entry, vectors.get(name, BitMap())) for name, entry in data.items())

    def draft(self, root: list[dict[str, Any]], snapshot: dict[str, Any]) -> Iterator[tuple[dict[str, Any], BitMap]]:
        """Live data files with the positions deleted in them."""
        entries: list[tuple[dict[str, Any], int]] = []
        replaced: set[str] = set()
        modified: set[str] = set()
        for row in root:
            tracking, kind = row["tracking"], row["content_type"]
            self.check(tracking["status"] in range(5), f"{row['location']}: status {tracking['status']}")
            self.check(kind in (DATA, DATA_MANIFEST), f"{row['location']}: type {kind}")
            self.check((row.get("manifest_info") is not None) == (kind == DATA_MANIFEST), f"{row['location']}: info")
            if kind == DATA:
                entries.append((row, snapshot["sequence-number"]))
                if tracking["status"] == 3:
                    replaced.add(row["location"])
                continue
            if tracking["status"] not in LIVE:
                continue
            self.sized(row)
            gone, new = row["manifest_info"].get("dv"), tracking.get("replaced_positions")
            removed = decode_mumbling(gone) if gone else BitMap()
            leaf = self.manifest(row["location"], "data")
            self.check(not removed or removed.max() < len(leaf), f"{row['location']}: manifest DV out of range")
            hidden = decode_mumbling(new) if new else BitMap()
            self.check(hidden <= removed, f"{row['location']}: replaced positions are live")
            replaced |= {leaf[at]["location"] for at in hidden}
            inherited = tracking["sequence_number"] or snapshot["sequence-number"]
            entries += [(entry, inherited) for at, entry in enumerate(leaf) if at not in removed]
        for entry, inherited in entries:
            tracking = entry["tracking"]
            vector = entry.get("deletion_vector")
            self.check(entry["content_type"] == DATA, f"{entry['location']}: type {entry['content_type']}")
            has = bool(entry.get("column_files"))
            self.check(has == (tracking.get("latest_column_file_snapshot_id") is not None), f"{entry['location']}: 160")
            if tracking["status"] not in LIVE:
                continue
            if tracking["status"] == 4:
                modified.add(entry["location"])
            gone = BitMap() if vector is None else self.bitmap(self.blob(vector, vector["location"]))
            self.check(vector is None or len(gone) == vector["cardinality"], f"{entry['location']}: cardinality")
            yield {**entry, "sequence": tracking["sequence_number"] or inherited}, gone
        self.check(replaced <= modified, f"replaced without a new entry: {sorted(replaced - modified)}")


def by_id(table: pa.Table) -> dict[int, Any]:
    return {int((f.metadata or {})[b"PARQUET:field_id"]): table.column(i) for i, f in enumerate(table.schema)}


def rows_of(start: int, count: int) -> pa.Table:
    ids = range(start, start + count)
    return pa.table({"id": ids, "kind": ["ab"[i % 2] for i in ids], "price": [float(i) for i in ids]})


LAYOUTS: dict[str, dict[str, Any]] = {
    "proposal in the root": {"dialect": "v4-proposal"},
    "proposal in leaves": {"dialect": "v4-proposal", "flush_data_files": 0, "flush_delete_files": 0},
    "proposal as Avro": {
        "dialect": "v4-proposal",
        "flush_data_files": 1,
        "manifest_format": "avro",
        "inline_dv_bytes": 0,
    },
    "draft in the root": {"dialect": "v4-draft"},
    "draft in leaves": {"dialect": "v4-draft", "flush_data_files": 0},
    "draft as Avro": {"dialect": "v4-draft", "flush_data_files": 1, "manifest_format": "avro"},
}


#: The others are for long runs.
ALWAYS = ("proposal as Avro", "draft in leaves")


@pytest.mark.parametrize("name", [n if n in ALWAYS else pytest.param(n, marks=pytest.mark.long) for n in LAYOUTS])
def test_an_independent_reader_finds_no_broken_rule(name: str, tmp_path: Path) -> None:
    layout = LAYOUTS[name]
    s = ix.empty({"id": "long", "kind": "string", "price": "double"}, partition_by=["kind"], seed=1, **layout)
    s.append(rows_of(0, 8))
    s.append(rows_of(8, 6))
    first, second = (str(p) for p in s.inspect.data_files.arrow()["file_path"].to_pylist()[:2])
    s.row_delta(deletes={first: [0, 2]})
    if layout["dialect"] == "v4-draft":
        assert s.update_columns({"price": -1.0}, second) is not None
        assert s.update_columns({"price": lambda t: pc.multiply(t["price"], 10.0)}, where="price > 5") is not None
        assert s.update_columns({"price": 0.5}, where="id = 1") is not None
        assert s.update_columns({"price": 0.5}, where="id = 99") is None
    s.row_delta(rows_of(20, 2), deletes={second: [1]})
    s.delete_files(first)
    s.rewrite_manifests()
    s.append(rows_of(30, 1))
    saved = s.save(tmp_path / "t")
    reader = Reader(saved.metadata_location)
    columns = ["id", "kind", "price", "_last_updated_sequence_number"]
    for snapshot in reader.document["snapshots"]:
        ours = s.at(snapshot=snapshot["snapshot-id"]).to_arrow(columns=columns)
        assert reader.rows(snapshot) == Counter(tuple(row.values()) for row in ours.to_pylist())
    assert reader.wrong == []
    assert all(older < newer for older, newer in pairwise(x["timestamp-ms"] for x in reader.document["snapshots"]))
    assert ix.open(saved.metadata_location).rules().ok


def test_the_reader_notices_what_is_broken(tmp_path: Path) -> None:
    s = ix.empty({"id": "long", "price": "double"}, seed=1, **LAYOUTS["draft in leaves"])
    s.append(pa.table({"id": range(4), "price": [1.0] * 4}))
    s.update_columns({"price": 2.0}, where="id = 1")
    saved = s.save(tmp_path / "t")
    (newer,) = (tmp_path / "t" / "data").glob("*columns*")
    pq.write_table(pq.read_table(newer).slice(1), newer)
    for leaf in (tmp_path / "t" / "metadata").glob("*-data.parquet"):
        pq.write_table(pq.read_table(leaf).replace_schema_metadata(), leaf)
    reader = Reader(saved.metadata_location)
    for snapshot in reader.document["snapshots"]:
        with suppress(pa.ArrowInvalid):  # columns of different lengths
            reader.rows(snapshot)
    for what in ("key-values {}", f"{newer.name}: rows", f"{newer.name}: {newer.stat().st_size} bytes"):
        assert any(what in text for text in reader.wrong), what
