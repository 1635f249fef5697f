"""Puffin and delete files that we write: read back by our readers and by PyIceberg's, and refused where they lie."""

from __future__ import annotations

import datetime as dt
import io
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from iceexplore.deletes import (
    DELETION_VECTOR,
    NewBlob,
    new_dv_blob,
    read_deletion_vector,
    read_equality_deletes,
    read_position_deletes,
    read_puffin_blob,
    read_puffin_footer,
    write_equality_deletes,
    write_position_deletes,
    write_puffin,
)
from iceexplore.errors import OptionError
from iceexplore.formats import field_id
from iceexplore.metadata import NestedField, PrimitiveType, Schema, parse_schema
from iceexplore.storage import Storage


def store(folder: Path, data: bytes) -> tuple[Storage, str]:
    path = folder / "made.bin"
    path.write_bytes(data)
    return Storage(str(folder)), str(path)


def test_vectors_come_back_from_a_puffin_file(tmp_path: Path) -> None:
    from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
    from pyiceberg.table.puffin import PuffinFile

    vectors = {"s3://b/ä.parquet": BitMap64([0, 5, 70_000]), "s3://b/b.parquet": BitMap64(range(1000))}
    data, places = write_puffin([new_dv_blob(v, k) for k, v in vectors.items()], created_by="iceexplore test")
    storage, location = store(tmp_path, data)
    footer = read_puffin_footer(storage, location)
    assert footer.problems == ()
    assert footer.properties == {"created-by": "iceexplore test"}
    assert [(b.offset, b.length) for b in footer.blobs] == places
    for blob, (path, vector) in zip(footer.blobs, vectors.items(), strict=True):
        assert (blob.type, blob.fields) == (DELETION_VECTOR, (2147483645,))
        assert (blob.snapshot_id, blob.sequence_number, blob.compression_codec) == (-1, -1, None)
        assert (blob.referenced_data_file, blob.cardinality) == (path, len(vector))
        assert read_deletion_vector(storage, location, blob.offset, blob.length) == vector
    theirs = {v.referenced_data_file: v for v in deletion_vectors_from_puffin_file(PuffinFile(data))}
    assert {k: v.to_vector().to_pylist() for k, v in theirs.items()} == {k: list(v) for k, v in vectors.items()}


@given(
    st.lists(st.tuples(st.text(max_size=8), st.binary(max_size=40), st.lists(st.integers(1, 99), max_size=3))),
    st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
)
def test_any_blobs_come_back(tmp_path_factory: Any, items: list[Any], properties: dict[str, str]) -> None:
    blobs = [NewBlob(kind or "x", data, tuple(ids), 7, 8, properties) for kind, data, ids in items]
    data, places = write_puffin(blobs, properties=properties)
    storage, location = store(tmp_path_factory.mktemp("puffin"), data)
    footer = read_puffin_footer(storage, location)
    assert footer.properties == properties
    assert [(b.offset, b.length) for b in footer.blobs] == places
    assert [(b.type, b.fields, b.properties) for b in footer.blobs] == [(b.type, b.fields, properties) for b in blobs]
    assert [read_puffin_blob(storage, location, b) for b in footer.blobs] == [b.data for b in blobs]


def test_position_deletes_are_sorted_and_have_bounds(tmp_path: Path) -> None:
    data = write_position_deletes(["b", "a", "b", "a"], [3, 9, 1, 0])
    storage, location = store(tmp_path, data)
    assert read_position_deletes(storage, location).to_pydict() == {
        "file_path": ["a", "a", "b", "b"],
        "pos": [0, 9, 1, 3],
    }
    file = pq.ParquetFile(io.BytesIO(data))
    assert [field_id(f) for f in file.schema_arrow] == [2147483546, 2147483545]
    path, pos = (file.metadata.row_group(0).column(i).statistics for i in range(2))
    assert (path.min, path.max, pos.min, pos.max) == ("a", "b", 0, 9)  # type: ignore[union-attr]
    assert file.metadata.metadata == {b"delete-type": b"position"}


@pytest.mark.parametrize(
    ("paths", "positions", "message"),
    [
        (["a"], [1, 2], "1 paths but 2 positions"),
        (["a"], [-1], "below 0"),
        (["a", None], [1, 2], "missing"),
        (["a", "a"], [1, 1], "twice"),
    ],
)
def test_position_deletes_that_make_no_sense(paths: Any, positions: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        write_position_deletes(paths, positions)


TYPES: list[tuple[str, Any]] = [
    ("boolean", True),
    ("int", 1),
    ("long", 1 << 40),
    ("float", 1.5),
    ("double", 2.5),
    ("date", dt.date(2024, 1, 1)),
    ("time", dt.time(1, 2, 3, 4)),
    ("timestamp", dt.datetime(2024, 1, 1, 2, 3, 4, 5)),
    ("timestamptz", dt.datetime(2024, 1, 1, 2, 3, 4, 5, dt.UTC)),
    ("string", "ü"),
    ("binary", b"\0\1"),
    ("fixed[3]", b"abc"),
    ("uuid", bytes(range(16))),
    ("decimal(9,2)", Decimal("1.25")),
    ("decimal(18,2)", Decimal("-1.25")),
    ("decimal(38,2)", Decimal("12345678901234567890123.25")),
]


def schema_of(types: list[str]) -> Schema:
    fields = [{"id": 10 + i, "name": f"c{i}", "type": t, "required": False} for i, t in enumerate(types)]
    return parse_schema({"type": "struct", "schema-id": 0, "fields": fields})


def test_equality_deletes_of_every_type_come_back(tmp_path: Path) -> None:
    schema = schema_of([t for t, _ in TYPES])
    table = pa.table({f"c{i}": [v, None] for i, (_, v) in enumerate(TYPES)})
    data = write_equality_deletes(table, schema, [10, 11])
    storage, location = store(tmp_path, data)
    back = read_equality_deletes(storage, location, "parquet", schema)
    assert back.to_pydict() == {f"c{i}": [v, None] for i, (_, v) in enumerate(TYPES)}
    assert [field_id(f) for f in back.schema] == [f.field_id for f in schema.fields]
    parquet = pq.ParquetFile(io.BytesIO(data))
    assert parquet.metadata.metadata[b"delete-field-ids"] == b"10,11"  # type: ignore[index]
    stored = [parquet.schema.column(i) for i in range(len(TYPES))]
    physical = {t: c.physical_type for (t, _), c in zip(TYPES, stored, strict=True)}
    assert physical["decimal(9,2)"] == "INT32"  # spec, Appendix A, "Parquet"
    assert physical["decimal(18,2)"] == "INT64"
    assert physical["uuid"] == "FIXED_LEN_BYTE_ARRAY"


@pytest.mark.parametrize(
    ("columns", "ids", "message"),
    [
        ({"c0": [1]}, [11], "no column with the equality id 11"),
        ({"c0": [1]}, [], "no equality ids"),
        ({"other": [1]}, [10], "no column 'other'"),
        ({"c0": ["x"]}, [10], "does not fit"),
    ],
)
def test_equality_deletes_that_make_no_sense(columns: Any, ids: list[int], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        write_equality_deletes(pa.table(columns), schema_of(["int", "long"]), ids)


def test_a_nested_column_is_refused() -> None:
    kind = {"type": "list", "element-id": 5, "element": "int", "element-required": False}
    schema = parse_schema(
        {
            "type": "struct",
            "schema-id": 0,
            "fields": [
                {"id": 1, "name": "a", "type": kind, "required": False},
                {"id": 2, "name": "b", "type": "int", "required": False},
            ],
        }
    )
    with pytest.raises(OptionError, match="lists and maps"):
        write_equality_deletes(pa.table({"a": [[1]], "b": [1]}), schema, [2])


def test_unknown_columns_are_not_in_equality_deletes() -> None:
    fields = (NestedField(1, "id", PrimitiveType("long"), False), NestedField(2, "u", PrimitiveType("unknown"), False))
    table = pa.table({"id": pa.array([1], pa.int64()), "u": pa.nulls(1)})
    written = pq.read_schema(io.BytesIO(write_equality_deletes(table, Schema(0, fields), [1])))
    assert written.names == ["id"]
    with pytest.raises(OptionError, match="column u is of type unknown"):
        write_equality_deletes(table, Schema(0, fields), [2])
