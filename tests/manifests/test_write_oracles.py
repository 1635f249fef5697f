"""What is written is read by others: v1 to v3 by PyIceberg, V4 by plain pyarrow and fastavro by field id."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.deletes import encode_mumbling
from iceexplore.manifests import EntryBatch, stats_type, write_manifest, write_manifest_list
from iceexplore.metadata import TableMetadata, decode_value, encode_values, is_variable_length
from tests.manifests import write_cases as cases

MAPS = (
    ("column_sizes", "column_size"), ("value_counts", "value_count"), ("null_value_counts", "null_count"),
    ("nan_value_counts", "nan_count"), ("lower_bounds", "lower"), ("upper_bounds", "upper"),
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("oracle")


def stat_maps(batch: EntryBatch, row: int, types: dict[int, Any]) -> dict[str, dict[int, Any]]:
    """The six maps that a row should have, made value by value."""
    out: dict[str, dict[int, Any]] = {name: {} for name, _ in MAPS}
    for column_id, stats in batch.stats.items():
        for name, part in MAPS:
            array = pc.struct_field(stats, part)
            if name.endswith("bounds"):
                array = encode_values(types[column_id], array)
            if array[row].is_valid:
                out[name][column_id] = array[row].as_py()
    return out


@pytest.mark.parametrize("dialect", ["v1", "v2", "v3"])
@cases.FEW
@given(data=st.data())
def test_pyiceberg_reads_manifests(dialect: str, folder: Path, data: st.DataObject) -> None:
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.manifest import DataFileContent, ManifestContent, ManifestFile

    table = cases.metadata(2)
    spec_id = data.draw(st.sampled_from((cases.IDENTITY, cases.DERIVED, cases.SEVERAL, cases.UNPARTITIONED)))
    kinds = (0,) if dialect == "v1" or data.draw(st.booleans()) else (1, 2)
    batch = data.draw(cases.batches(table, (spec_id,), kinds=kinds, types=tuple(sorted(cases.V2_TYPES))))
    content = "data" if kinds == (0,) else "delete"
    path = folder / "m.avro"
    path.write_bytes(write_manifest(batch, content=content, metadata=table, spec_id=spec_id, dialect=dialect))
    manifest = ManifestFile.from_args(
        manifest_path=str(path), manifest_length=path.stat().st_size, partition_spec_id=spec_id,
        content=ManifestContent.DATA if content == "data" else ManifestContent.DELETES, sequence_number=9,
        added_snapshot_id=7,
    )  # fmt: skip
    found = manifest.fetch_manifest_entry(PyArrowFileIO(), discard_deleted=False)
    types = {i: f.type for i, (_, f) in table.all_fields().items()}
    assert len(found) == len(batch)
    for row, (entry, wanted) in enumerate(zip(found, batch.entries.to_pylist(), strict=True)):
        file = entry.data_file
        assert (int(entry.status), entry.snapshot_id) == (wanted["status"], wanted["snapshot_id"])
        if dialect != "v1":
            sequence = wanted["sequence_number"]
            assert entry.sequence_number == (9 if sequence is None else sequence)
            assert file.content == DataFileContent(wanted["content_type"])
            assert file.equality_ids == wanted["equality_ids"]
        assert (file.file_path, file.file_format.value.lower()) == (wanted["location"], wanted["file_format"])
        assert (file.record_count, file.file_size_in_bytes) == (wanted["record_count"], wanted["file_size_in_bytes"])
        assert (file.key_metadata, file.split_offsets) == (wanted["key_metadata"], wanted["split_offsets"])
        assert file.sort_order_id == wanted["sort_order_id"]
        for name, values in stat_maps(batch, row, types).items():
            assert (getattr(file, name) or {}) == values, name
        tuples = batch.partition
        for position, child in enumerate(() if tuples is None else tuples.type):
            value = pc.struct_field(tuples, child.name)[row]  # type: ignore[index]
            assert _plain(file.partition[position]) == _stored(value), child.name


def _stored(value: Any) -> Any:
    """A value as PyIceberg holds it: dates and times as integers, UUIDs as bytes."""
    if pa.types.is_temporal(value.type):
        return value.cast(pa.int32() if pa.types.is_date(value.type) else pa.int64()).as_py()
    if pa.types.is_float64(value.type) and value.is_valid:
        with np.errstate(over="ignore"):
            return float(np.float32(value.as_py()))  # PyIceberg 0.12's CythonBinaryDecoder.read_double keeps a float
    return value.as_py()


def _plain(value: Any) -> Any:
    return value.bytes if hasattr(value, "bytes") and not isinstance(value, bytes) else value


@pytest.mark.parametrize("dialect", ["v1", "v2", "v3"])
def test_pyiceberg_reads_manifest_lists(dialect: str, folder: Path) -> None:
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.manifest import read_manifest_list

    stats = {
        "added_files_count": 1, "existing_files_count": 2, "deleted_files_count": 3, "added_rows_count": 10,
        "existing_rows_count": 20, "deleted_rows_count": 30, "min_sequence_number": 4,
    }  # fmt: skip
    summary = {"contains_null": True, "contains_nan": None, "lower_bound": b"\0", "upper_bound": None}
    row = {
        "content_type": 3, "location": "m", "file_size_in_bytes": 5, "partition_spec_id": 1, "snapshot_id": 8,
        "sequence_number": 6, "manifest_stats": stats, "partition_summaries": [summary], "key_metadata": b"k",
    }  # fmt: skip
    rows = [row, {**row, "content_type": 3 if dialect == "v1" else 4, "partition_summaries": None}]
    path = folder / "list.avro"
    data = write_manifest_list(
        EntryBatch.of_rows(rows), metadata=cases.metadata(2), dialect=dialect, snapshot_id=7, parent_snapshot_id=6,
        sequence_number=9,
    )  # fmt: skip
    path.write_bytes(data)
    found = list(read_manifest_list(PyArrowFileIO().new_input(str(path))))
    for number, manifest in enumerate(found):
        assert (manifest.manifest_path, manifest.manifest_length, manifest.partition_spec_id) == ("m", 5, 1)
        assert (manifest.added_snapshot_id, manifest.key_metadata) == (8, b"k")
        assert {k: getattr(manifest, k) for k in stats if k.endswith("count")} == {
            k: v for k, v in stats.items() if k.endswith("count")
        }
        if dialect != "v1":
            assert (manifest.content, manifest.sequence_number, manifest.min_sequence_number) == (number, 6, 4)
        assert (manifest.partitions is None) == (number == 1)
    assert found[0].partitions is not None
    first = found[0].partitions[0]
    assert (first.contains_null, first.contains_nan, first.lower_bound, first.upper_bound) == (True, None, b"\0", None)


def test_key_value_metadata_as_java_writes_it() -> None:
    table = cases.metadata(2)
    row = {
        "content_type": 2, "location": "f", "file_format": "parquet", "status": 1, "snapshot_id": 7, "record_count": 1,
        "file_size_in_bytes": 1, "equality_ids": [1],
    }  # fmt: skip
    made = write_manifest(
        EntryBatch.of_rows([row]), content="delete", metadata=table, spec_id=cases.SEVERAL, dialect="v2"
    )
    reader = fastavro.reader(io.BytesIO(made))
    keys = reader.metadata
    assert (keys["avro.codec"], keys["format-version"], keys["content"]) == ("deflate", "2", "deletes")
    assert (keys["schema-id"], keys["partition-spec-id"]) == ("0", str(cases.SEVERAL))
    assert json.loads(keys["partition-spec"])[0] == {
        "name": "two", "transform": "bucket[8]", "source-ids": [2, 10], "field-id": 1022,
    }  # fmt: skip
    assert json.loads(keys["schema"])["fields"][0] == {
        "id": 1,
        "name": "boolean_1",
        "required": False,
        "type": "boolean",
    }
    schema: Any = reader.writer_schema
    assert schema["name"] == "manifest_entry"
    partition = next(f for f in schema["fields"][-1]["type"]["fields"] if f["name"] == "partition")
    assert [(f["name"], f["field-id"]) for f in partition["type"]["fields"]] == [("two", 1022), ("h", 1023)]


def by_id(table: pa.Table) -> dict[int, pa.ChunkedArray]:
    """Every column and struct field by its id."""
    out: dict[int, pa.ChunkedArray] = {}

    def walk(field: pa.Field, column: pa.ChunkedArray) -> None:
        out[int(field.metadata[b"PARQUET:field_id"])] = column  # type: ignore[index]
        if pa.types.is_struct(field.type):
            for child in field.type:
                walk(child, pa.chunked_array([pc.struct_field(c, child.name) for c in column.chunks], child.type))

    for field in table.schema:
        walk(field, table[field.name])
    return out


@cases.FEW
@given(data=st.data())
def test_pyarrow_reads_v4_by_field_id(data: st.DataObject) -> None:
    table = cases.metadata(4)
    batch = data.draw(cases.batches(table, (cases.DERIVED, cases.SEVERAL), kinds=(0, 1, 2)))
    made = write_manifest(
        batch, content="root", metadata=table, spec_id=None, dialect="v4-proposal", manifest_format="parquet"
    )
    file = pq.ParquetFile(pa.BufferReader(made))
    assert file.metadata.metadata == {b"format-version": b"4", b"content": b"root"}
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    columns = by_id(file.read())
    ids = {
        "content_type": 134, "location": 100, "file_format": 101, "status": 0, "snapshot_id": 1, "sequence_number": 3,
        "file_sequence_number": 4, "partition_spec_id": 148, "sort_order_id": 140, "record_count": 103,
        "file_size_in_bytes": 104, "referenced_file": 143, "key_metadata": 131, "split_offsets": 132,
        "equality_ids": 135, "first_row_id": 142,
    }  # fmt: skip
    for name, field_id in ids.items():
        assert columns[field_id].to_pylist() == batch.entries[name].to_pylist(), name
    vectors = [v and (v["offset"], v["size_in_bytes"]) for v in batch.entries["deletion_vector"].to_pylist()]
    found = columns[147].to_pylist()
    assert [v and (v["offset"], v["size_in_bytes"]) for v in found] == vectors
    for column_id, stats in batch.stats.items():
        for offset, part in ((1, "lower"), (2, "upper"), (3, "tight_bounds"), (4, "value_count"), (5, "null_count"),
                             (6, "nan_count"), (7, "average_length"), (8, "max_length")):  # fmt: skip
            wanted = pc.struct_field(stats, part)
            got = columns.get(10_000 + 200 * column_id + offset)
            if offset in (7, 8) and not is_variable_length(table.all_fields()[column_id][1].type):
                assert got is None
            elif got is None:
                assert wanted.null_count == len(batch)
            else:
                cases.same(got.combine_chunks().cast(wanted.type), wanted)
    check_derived(columns, batch, table)


def check_derived(columns: dict[int, pa.ChunkedArray], batch: EntryBatch, table: TableMetadata) -> None:
    """Derived columns hold the partition values as lower bounds, and count the nulls."""
    spec_ids = batch.entries["partition_spec_id"].combine_chunks()
    records = build.to_pylist(batch.entries["record_count"])
    expressions = {e.partition_field_id: e.expr_id for e in table.expressions}
    for spec in table.partition_specs:
        here = pc.equal(spec_ids, spec.spec_id)
        for f in spec.fields:
            base = 10_000 + 200 * expressions.get(f.field_id, 0)
            if not pc.any(here).as_py():
                continue
            if f.transform == "void":  # it has nothing to say
                assert base not in columns
                continue
            assert batch.partition is not None
            values = pc.struct_field(batch.partition, str(f.field_id))
            cases.same(columns[base].combine_chunks().is_valid(), here)
            if base + 1 in columns:
                cases.same(columns[base + 1].combine_chunks(), values)
            else:
                assert values.null_count == len(batch)
            assert base + 2 not in columns  # the upper bound is the same
            nulls = build.to_pylist(values.is_null())
            wanted = [max(1, r) if null else 0 for null, r in zip(nulls, records, strict=True)]
            found = build.to_pylist(columns[base + 5])
            assert found == [w if ok else None for w, ok in zip(wanted, build.to_pylist(here), strict=True)]


def test_a_partition_value_wins_over_a_truncated_bound() -> None:
    table = cases.metadata(4)
    spec = table.spec(cases.IDENTITY)
    assert spec is not None
    kind = stats_type(pa.string())
    truncated = {"lower": "abc", "upper": "abd", "value_count": 5, "null_count": 2, "tight_bounds": False}
    names = [str(f.field_id) for f in spec.fields]
    text = next(str(f.field_id) for f in spec.fields if f.source_id == cases.COLUMNS["string"])
    tuples = pa.array([{n: "abcdefghijklmnop" if n == text else None for n in names}])
    row = {
        "content_type": 0, "location": "f", "file_format": "parquet", "status": 1, "record_count": 5,
        "file_size_in_bytes": 1, "partition_spec_id": cases.IDENTITY,
    }  # fmt: skip
    batch = EntryBatch.of_rows([row], stats={cases.COLUMNS["string"]: pa.array([truncated], kind)}, partition=tuples)
    made = write_manifest(
        batch, content="data", metadata=table, spec_id=None, dialect="v4-proposal", manifest_format="parquet"
    )
    columns = by_id(pq.read_table(pa.BufferReader(made)))
    base = 10_000 + 200 * cases.COLUMNS["string"]
    assert columns[base].to_pylist()[0] == {
        "lower_bound": "abcdefghijklmnop", "tight_bounds": True, "value_count": 5, "null_count": 0,
    }  # fmt: skip
    long = columns[10_000 + 200 * cases.COLUMNS["long"]].to_pylist()[0]
    assert long == {"null_count": 5}  # a null value: no bound, every row


@pytest.mark.parametrize("manifest_format", ["avro", "parquet"])
def test_draft_rows_hold_their_vectors(manifest_format: str) -> None:
    table = cases.metadata(4)
    data = {
        "content_type": 0, "location": "d", "file_format": "parquet", "status": 0, "snapshot_id": 3,
        "sequence_number": 2, "file_sequence_number": 2, "partition_spec_id": 3, "record_count": 9,
        "file_size_in_bytes": 8,
    }  # fmt: skip
    vector = {
        **data, "content_type": 1, "location": "p", "file_format": "puffin", "status": 1, "snapshot_id": 7,
        "record_count": 4, "referenced_file": "d", "deletion_vector": {"offset": 1, "size_in_bytes": 40},
    }  # fmt: skip
    names = [f"{a}_{b}_count" for b in ("files", "rows") for a in ("added", "existing", "deleted")]
    leaf = {**data, "content_type": 3, "location": "m", "manifest_stats": dict.fromkeys(names, 1)}
    removed = {
        **vector, "content_type": 5, "location": None, "file_format": None, "referenced_file": "m", "record_count": 1,
        "deletion_vector": {"inline_content": BitMap([5]).serialize()},
    }  # fmt: skip
    made = write_manifest(
        EntryBatch.of_rows([leaf, vector, data, removed, {**data, "location": "e"}]), content="root", metadata=table,
        spec_id=None, dialect="v4-draft", manifest_format=manifest_format,
    )  # fmt: skip
    if manifest_format == "parquet":
        rows = pq.read_table(pa.BufferReader(made)).to_pylist()
    else:
        rows = list(fastavro.reader(io.BytesIO(made)))
    assert [r["location"] for r in rows] == ["m", "d", "e"]
    assert [r["tracking"]["status"] for r in rows] == [4, 4, 0]  # MODIFIED: the vectors are new
    assert [r["tracking"]["dv_snapshot_id"] for r in rows] == [7, 7, None]
    assert rows[1]["deletion_vector"] == {
        "location": "p", "offset": 1, "size_in_bytes": 40, "cardinality": 4, "key_metadata": None,
    }  # fmt: skip
    info = rows[0]["manifest_info"]
    assert (info["dv"], info["min_sequence_number"]) == (encode_mumbling(BitMap([5])), 2)
    assert "dv_cardinality" not in info  # 523, which only earlier drafts have
    assert (
        rows[0]["deletion_vector"] is None and rows[2]["deletion_vector"] is None and rows[1]["manifest_info"] is None
    )


def test_bounds_in_the_year_10000_and_beyond_are_written() -> None:
    """No Python date or Decimal is made on the way."""
    table = cases.metadata(3)
    far = cases.typed("date", [2**31 - 1])
    kind = stats_type(far.type)
    stats = pa.StructArray.from_arrays([far, far, *(pa.nulls(1, f.type) for f in list(kind)[2:])], fields=list(kind))
    row = {
        "content_type": 0, "location": "f", "file_format": "parquet", "status": 1, "snapshot_id": 7, "record_count": 5,
        "file_size_in_bytes": 1,
    }  # fmt: skip
    batch = EntryBatch.of_rows([row], stats={cases.COLUMNS["date"]: stats})
    made = write_manifest(batch, content="data", metadata=table, spec_id=cases.UNPARTITIONED, dialect="v3")
    file = next(iter(fastavro.reader(io.BytesIO(made))))["data_file"]
    kind_of_column = table.all_fields()[cases.COLUMNS["date"]][1].type
    raw = {pair["key"]: pair["value"] for pair in file["lower_bounds"]}
    assert str(decode_value(kind_of_column, raw[cases.COLUMNS["date"]])).startswith("5881580")
