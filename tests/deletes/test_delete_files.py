"""Position and equality delete files in all three formats, by field id; and files that lie."""

from __future__ import annotations

import datetime as dt
import io
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from iceexplore.arrow import build
from iceexplore.deletes import FILE_PATH_ID, POS_ID, ROW_ID, read_equality_deletes, read_position_deletes
from iceexplore.errors import FormatError, IceexploreError
from iceexplore.formats import field_id
from iceexplore.metadata import parse_schema
from iceexplore.storage import Storage

PATHS = ["s3://b/a.parquet", None, "s3://b/b.parquet"]
POSITIONS = [0, 1, 1 << 40]


def with_id(name: str, kind: pa.DataType, number: int | None) -> pa.Field:
    return pa.field(name, kind, metadata=None if number is None else {"PARQUET:field_id": str(number)})


def store(folder: Path, data: bytes, name: str = "deletes.bin") -> tuple[Storage, str]:
    path = folder / name
    path.write_bytes(data)
    return Storage(str(folder)), str(path)


def parquet(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def avro(fields: list[dict[str, Any]], rows: list[dict[str, Any]], codec: str = "deflate") -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, {"type": "record", "name": "table", "fields": fields}, rows, codec=codec)
    return out.getvalue()


def position_file(form: str, *, ids: bool = True, names: tuple[str, str] = ("file_path", "pos")) -> bytes:
    path_id, pos_id = (FILE_PATH_ID, POS_ID) if ids else (None, None)
    if form == "avro":
        found = [("null", "string"), ("long",)]
        fields: list[dict[str, Any]] = [
            {"name": names[0], "type": list(found[0]), **({"field-id": path_id} if ids else {})},
            {"name": names[1], "type": "long", **({"field-id": pos_id} if ids else {})},
        ]
        return avro(fields, [dict(zip(names, pair, strict=True)) for pair in zip(PATHS, POSITIONS, strict=True)])
    schema = pa.schema([with_id(names[0], pa.string(), path_id), with_id(names[1], pa.int64(), pos_id)])
    table = build.table([PATHS, POSITIONS], schema=schema)
    if form == "parquet":
        return parquet(table)
    out = io.BytesIO()
    orc.write_table(table, out)  # writes no attributes: read by name
    return out.getvalue()


@pytest.mark.parametrize("form", ["parquet", "orc", "avro"])
def test_position_deletes(tmp_path: Path, form: str) -> None:
    storage, location = store(tmp_path, position_file(form))
    table = read_position_deletes(storage, location, "PARQUET")  # the content decides
    assert table.schema == build.schema([("file_path", pa.string()), ("pos", pa.int64())])
    assert table.to_pylist() == [
        {"file_path": "s3://b/a.parquet", "pos": 0},
        {"file_path": "s3://b/b.parquet", "pos": 1 << 40},
    ]
    assert {r.kind for r in storage.reads} <= {"delete-file", "stat"}


@pytest.mark.parametrize("form", ["parquet", "avro"])
def test_ids_win_over_names(tmp_path: Path, form: str) -> None:
    storage, location = store(tmp_path, position_file(form, names=("pos", "file_path")))
    assert read_position_deletes(storage, location)["pos"].to_pylist() == [0, 1 << 40]


@pytest.mark.parametrize("form", ["parquet", "avro"])
def test_names_where_there_are_no_ids(tmp_path: Path, form: str) -> None:
    storage, location = store(tmp_path, position_file(form, ids=False))
    assert read_position_deletes(storage, location).num_rows == 2


def test_the_deleted_row_is_kept(tmp_path: Path) -> None:
    row = pa.struct([with_id("id", pa.int32(), 1), with_id("name", pa.string(), 2)])
    fields = [with_id("file_path", pa.string(), FILE_PATH_ID), with_id("pos", pa.int64(), POS_ID)]
    schema = pa.schema([*fields, with_id("row", row, ROW_ID)])
    table = build.table([["a", None], [1, 2], [{"id": 7, "name": "x"}, None]], schema=schema)
    storage, location = store(tmp_path, parquet(table))
    found = read_position_deletes(storage, location)
    assert build.to_pylist(found["row"]) == [{"id": 7, "name": "x"}]
    assert field_id(found.schema.field("row").type.field("name")) == 2


def test_not_a_position_delete_file(tmp_path: Path) -> None:
    storage, location = store(tmp_path, parquet(pa.table({"id": [1]})))
    with pytest.raises(FormatError, match="no column file_path"):
        read_position_deletes(storage, location)
    # with ids, a column that merely has the name is another one
    schema = pa.schema([with_id("file_path", pa.string(), 1), with_id("pos", pa.int64(), 2)])
    storage, location = store(tmp_path, parquet(build.table([["a"], [1]], schema=schema)))
    with pytest.raises(FormatError, match="no column file_path"):
        read_position_deletes(storage, location)


@pytest.mark.parametrize(
    "data", [b"", b"PFA1", b"hello", b"PAR1" + bytes(20), b"ORC" + bytes(40), b"Obj\x01" + bytes(9)]
)
def test_other_files(tmp_path: Path, data: bytes) -> None:
    storage, location = store(tmp_path, data)
    with pytest.raises(FormatError):
        read_position_deletes(storage, location, "parquet")


SCHEMA = parse_schema(
    {
        "type": "struct",
        "schema-id": 0,
        "fields": [
            {"id": 1, "name": "id", "type": "long", "required": True},
            {"id": 2, "name": "when", "type": "timestamptz", "required": False},
            {"id": 3, "name": "price", "type": "decimal(9,2)", "required": False},
            {"id": 4, "name": "key", "type": "uuid", "required": False},
            {"id": 5, "name": "day", "type": "date", "required": False},
            {
                "id": 6,
                "name": "inner",
                "required": False,
                "type": {
                    "type": "struct",
                    "fields": [{"id": 7, "name": "renamed", "type": "double", "required": False}],
                },
            },
        ],
    }
)
WHEN = dt.datetime(2024, 2, 29, 12, 30, 15, 250_000, tzinfo=dt.UTC)
EXPECTED = {
    "id": [1, 2],
    "when": [WHEN, None],
    "price": [Decimal("12.34"), None],
    "key": [bytes(range(16)), None],
    "day": [dt.date(1969, 12, 31), None],
    "inner": [{"renamed": 1.5}, None],
    "gone": ["x", "y"],
}


def equality_parquet() -> bytes:
    inner = pa.struct([with_id("old", pa.float32(), 7)])
    schema = pa.schema(
        [
            with_id("was_id", pa.int32(), 1),
            with_id("when", pa.timestamp("us", "UTC"), 2),
            with_id("price", pa.decimal128(7, 2), 3),
            with_id("key", pa.binary(16), 4),
            with_id("day", pa.date32(), 5),
            with_id("inner", inner, 6),
            with_id("gone", pa.string(), 99),
        ]
    )
    columns = [*list(EXPECTED.values())[:5], [{"old": 1.5}, None], EXPECTED["gone"]]
    return parquet(build.table(columns, schema=schema))


def equality_avro() -> bytes:
    inner = {"type": "record", "name": "r6", "fields": [{"name": "old", "type": ["null", "float"], "field-id": 7}]}
    price = {"type": "fixed", "size": 4, "name": "d", "logicalType": "decimal", "precision": 7, "scale": 2}
    fields = [
        {"name": "was_id", "type": "int", "field-id": 1},
        {
            "name": "when",
            "type": ["null", {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True}],
            "field-id": 2,
        },
        {"name": "price", "type": ["null", price], "field-id": 3},
        {"name": "key", "type": ["null", {"type": "fixed", "size": 16, "name": "u"}], "field-id": 4},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}], "field-id": 5},
        {"name": "inner", "type": ["null", inner], "field-id": 6},
        {"name": "gone", "type": "string", "field-id": 99},
    ]
    rows = [
        {"was_id": 1, "when": WHEN, "price": Decimal("12.34"), "key": bytes(range(16)), "day": dt.date(1969, 12, 31),
         "inner": {"old": 1.5}, "gone": "x"},
        {"was_id": 2, "gone": "y"},
    ]  # fmt: skip
    return avro(fields, rows)


@pytest.mark.parametrize("data", [equality_parquet(), equality_avro()], ids=["parquet", "avro"])
def test_equality_deletes_take_names_and_types_of_the_schema(tmp_path: Path, data: bytes) -> None:
    storage, location = store(tmp_path, data)
    table = read_equality_deletes(storage, location, "PARQUET", SCHEMA)
    assert table.to_pydict() == EXPECTED
    assert [field_id(f) for f in table.schema] == [1, 2, 3, 4, 5, 6, 99]
    assert table.schema.field("id").type == pa.int64()
    assert table.schema.field("price").type == pa.decimal128(9, 2)
    assert table.schema.field("inner").type.field("renamed").type == pa.float64()


def test_equality_deletes_in_orc_without_ids(tmp_path: Path) -> None:
    out = io.BytesIO()
    columns = {"id": pa.array([1], pa.int32()), "when": pa.array([WHEN], pa.timestamp("ns", "UTC")), "other": ["x"]}
    orc.write_table(build.table(columns), out)
    storage, location = store(tmp_path, out.getvalue())
    table = read_equality_deletes(storage, location, "orc", SCHEMA)
    assert table.to_pydict() == {"id": [1], "when": [WHEN], "other": ["x"]}
    assert table.schema.field("when").type == pa.timestamp("us", "UTC")


def test_equality_values_that_do_not_fit(tmp_path: Path) -> None:
    schema = pa.schema([with_id("id", pa.string(), 1)])
    storage, location = store(tmp_path, parquet(build.table([["not a number"]], schema=schema)))
    with pytest.raises(FormatError, match="column id"):
        read_equality_deletes(storage, location, "parquet", SCHEMA)


@pytest.mark.corpus
def test_every_real_delete_file(corpus: Path) -> None:
    """Record counts of the manifests are those of the files, for every delete file of Impala's tables."""
    import iceexplore

    checked = {"parquet": 0, "orc": 0}
    for folder in sorted((corpus / "impala").glob("iceberg_v2*")):
        try:
            table = iceexplore.open(folder)
        except IceexploreError:
            continue
        files = table.inspect.delete_files.arrow()
        storage = table._state.storage
        schema = table._state.schema
        for row in files.to_pylist():
            form = row["file_format"].lower()
            if row["content"] == 1 and form != "puffin":
                found = read_position_deletes(storage, row["file_path"], form)
                nulls = row["record_count"] - found.num_rows
                assert nulls == 0 or folder.name == "iceberg_v2_null_delete_record", row["file_path"]
                checked[form] += 1
            elif row["content"] == 2:
                equality = read_equality_deletes(storage, row["file_path"], form, schema)
                # edited by hand: the file has two rows, its manifest says one
                edited = folder.name == "iceberg_v2_delete_equality_nulls"
                assert equality.num_rows == row["record_count"] + edited, row["file_path"]
                assert set(row["equality_ids"]) <= {field_id(f) for f in equality.schema}
                checked[form] += 1
    assert checked["parquet"] > 20
    assert checked["orc"] >= 5


@pytest.mark.corpus
def test_rows_without_a_path_delete_nothing(corpus: Path) -> None:
    folder = corpus / "impala/iceberg_v2_null_delete_record"
    expected = {"first_and_last": 1, "three_nulls": 0, "single": 0, "last": 1, "first": 1}
    for name, rows in expected.items():
        (path,) = [
            p for p in folder.rglob("delete*.parq") if p.stem.removeprefix("delete_").removeprefix("null_") == name
        ]
        found = read_position_deletes(Storage(str(folder)), str(path))
        assert found.num_rows == rows, name
        assert found["file_path"].null_count == 0
