"""Every Avro file of the real tables: both decoders, value by value, and against fastavro by itself."""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path
from typing import Any

import fastavro
import pytest

from iceexplore.arrow import build
from iceexplore.errors import FileMissingError, FormatError, UnsupportedError
from iceexplore.formats import AVRO_MAGIC, index_blocks, read_header
from iceexplore.manifests import Manifest, open_manifest
from iceexplore.manifests.decode._avro import decode_blocks, decode_bulk
from iceexplore.manifests.model._field_ids import MAP_IDS
from iceexplore.manifests.model._reader_schema import reader_schema_of
from iceexplore.storage import CACHE

pytestmark = pytest.mark.corpus

#: Files that datafusion refuses, and that go the slow way: two have a snapshot id of more than 64 bits.
MAX_REFUSED = 5


@cache
def avro_files(corpus: Path) -> list[Path]:
    found = []
    for path in sorted(p for p in corpus.rglob("*") if p.is_file()):
        with path.open("rb") as file:
            if file.read(4) == AVRO_MAGIC:
                found.append(path)
    return found


class Loose:
    """A storage of local files, as `open_manifest` needs it."""

    identity = "corpus"

    def key(self, location: str) -> str:
        return self.identity

    def fingerprint(self, location: str) -> None:
        return None

    def stat(self, location: str) -> Any:
        class Info:
            size, etag, modified_ms = Path(location).stat().st_size, None, None

        return Info

    def read(self, location: str, *, kind: str, offset: int = 0, length: int | None = None) -> bytes:
        return Path(location).read_bytes()


def test_both_decoders_agree_on_every_file(corpus: Path) -> None:
    compared, refused = 0, []
    for path in avro_files(corpus):
        data = path.read_bytes()
        header = read_header(data, str(path))
        reader_schema = reader_schema_of(header.schema, str(path))
        index = index_blocks(data, header, str(path))
        columns = reader_schema.arrow.names
        slow = decode_blocks(data, header, index, reader_schema, columns, str(path))
        bulk = decode_bulk(data, header, index, reader_schema, columns, str(path))
        if bulk is None:
            if not slow.faults:
                refused.append(path)
            continue
        assert bulk.equals(slow.table), path
        compared += 1
    assert compared > 600
    assert len(refused) <= MAX_REFUSED, refused


def test_every_manifest_and_list_opens_and_equals_fastavro(corpus: Path) -> None:
    CACHE.clear()
    opened = {"list": 0, "manifest": 0}
    for path in avro_files(corpus):
        try:
            manifest = open_manifest(Loose(), str(path))  # type: ignore[arg-type]  # has what it uses
        except (FormatError, UnsupportedError):
            assert "bad_avro" in str(path) or "/data/" in str(path), path
            continue
        rows = fastavro_rows(path)
        opened["list" if manifest.is_root else "manifest"] += 1
        assert len(manifest) == len(rows), path
        manifest.entries.validate(full=True)
        (check_list if manifest.is_root else check_manifest)(manifest, rows, path)
    assert opened["list"] > 280
    assert opened["manifest"] > 300


def fastavro_rows(path: Path) -> list[Any]:
    data = path.read_bytes()
    # fastavro refuses a null default of a long; the same number of bytes without it
    data = data.replace(b'"type":"long","default":null', b'"type":"long"               ')
    return list(fastavro.reader(io.BytesIO(data)))


def check_list(manifest: Manifest, rows: list[Any], path: Path) -> None:
    entries = manifest.entries.to_pylist()
    for entry, row in zip(entries, rows, strict=True):
        assert entry["location"] == row["manifest_path"], path
        assert entry["file_size_in_bytes"] == row["manifest_length"], path
        assert entry["content_type"] == row.get("content", 0) + 3, path
        assert entry["sequence_number"] == row.get("sequence_number", 0), path
        added = row.get("added_files_count", row.get("added_data_files_count"))
        assert entry["manifest_stats"]["added_files_count"] == added, path
        summaries = None if row.get("partitions") is None else [s.get("lower_bound") for s in row["partitions"]]
        given = entry["partition_summaries"]
        assert (None if given is None else [s["lower_bound"] for s in given]) == summaries, path


def check_manifest(manifest: Manifest, rows: list[Any], path: Path) -> None:
    maps = manifest.stat_maps()
    for name in MAP_IDS:
        written = [row["data_file"].get(name) for row in rows]
        expected = [None if m is None else [(p["key"], p["value"]) for p in m] for m in written]
        assert maps[name].to_pylist() == expected, (path, name)
    for entry, row in zip(manifest.entries.to_pylist(), rows, strict=True):
        file = row["data_file"]
        assert entry["status"] == row["status"], path
        assert entry["snapshot_id"] == row.get("snapshot_id"), path
        for name, key in {
            "location": "file_path",
            "record_count": "record_count",
            "file_size_in_bytes": "file_size_in_bytes",
            "split_offsets": "split_offsets",
            "equality_ids": "equality_ids",
            "sort_order_id": "sort_order_id",
            "referenced_file": "referenced_data_file",
            "first_row_id": "first_row_id",
        }.items():
            assert entry[name] == file.get(key), (path, name)
    tuples = manifest.partition()
    widths = {len(row["data_file"].get("partition") or {}) for row in rows}
    if tuples is None:
        assert widths <= {0}, path
    else:
        tuples.validate(full=True)
        for value, row in zip(build.to_pylist(tuples), rows, strict=True):
            stored = list(row["data_file"]["partition"].values())
            assert [v is None for v in value.values()] == [v is None for v in stored], path
            for ours, theirs in zip(value.values(), stored, strict=True):
                if isinstance(theirs, (str, bool, bytes)):
                    assert ours == theirs, path


def test_a_missing_file_is_reported(corpus: Path) -> None:
    from iceexplore.storage import open_source

    opened = open_source(str(corpus / "duckdb" / "partition_bigint"))
    with pytest.raises(FileMissingError):
        open_manifest(opened.storage, f"{opened.document['location']}/metadata/none.avro")
