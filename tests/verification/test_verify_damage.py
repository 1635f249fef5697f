"""Each kind of damage to a healthy table is found, as what it is, and nothing else."""

from __future__ import annotations

import itertools
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import StringType

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.commits import CommitWriter
from iceexplore.deletes import encode_deletion_vector, read_deletion_vector
from iceexplore.errors import PROBLEM_KINDS, OptionError
from iceexplore.inspect import ROOT
from iceexplore.manifests import EntryBatch, write_manifest, write_manifest_list
from iceexplore.verification import joined, slices_of
from tests.helpers.folders import local

SCHEMA = {"id": "long", "kind": "string", "price": "double", "at": "timestamp"}
ROWS = 40


def frame(start: int = 0) -> pa.Table:
    """Some rows, with a null and a NaN."""
    price = np.linspace(-2.5, 9.5, ROWS)
    price[3] = np.nan
    at = np.datetime64("2024-01-01", "us") + np.arange(ROWS) * np.timedelta64(37, "h")
    return pa.table(
        {
            "id": pa.array(np.arange(start, start + ROWS)),
            "kind": [f"kind {i % 4}" for i in range(ROWS)],
            "price": pa.array(price, from_pandas=False),
            "at": pa.array(at, mask=np.arange(ROWS) == 5),
        }
    )


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Tables with every kind of delete, saved with their data."""
    folder = tmp_path_factory.mktemp("healthy")
    out = {}
    for name, version, by in (("v2", 2, ()), ("v2-parts", 2, ("kind", "month(at)")), ("v3", 3, ()), ("v4", 4, "kind")):
        s = ix.empty(SCHEMA, partition_by=by, format_version=version, location=f"/warehouse/{name}", seed=name)
        s.append(frame())
        s.append(frame(ROWS))
        path = s.inspect.data_files()["file_path"][0]
        s.row_delta(deletes={path: [0, 2]})
        if name == "v2":
            s.row_delta(equality=pd.DataFrame({"id": [7, 8]}))
        s.save(folder / name, data="copy")
        out[name] = folder / name
    return out


@pytest.fixture
def copied(healthy: dict[str, Path], tmp_path: Path) -> Callable[[str], Path]:
    """A table of one's own to break."""

    def copy(name: str) -> Path:
        shutil.copytree(healthy[name], tmp_path / name)
        return tmp_path / name

    return copy


def real(folder: Path, content: int) -> Path:
    """Where a file of a content really is: the first."""
    t = ix.open(folder)
    files = t.inspect.files.arrow()
    rows = files.filter(pc.equal(files["content"], content))
    return Path(t.state.storage.resolve(rows["file_path"][0].as_py()))


def found(folder: Path, level: str = "footers") -> list[tuple[str, str | None]]:
    """Codes and fields of what is found; the latter without the column's name."""
    rows = ix.open(folder).verify(level=level).to_dict("records")  # type: ignore[call-overload]
    for row in rows:
        assert row["severity"] in ("error", "warning", "info")
        assert row["code"] in PROBLEM_KINDS
        assert row["text"]
    return sorted((row["code"], None if pd.isna(row["field"]) else row["field"]) for row in rows)


def rewritten(folder: Path, content: int, change: Callable[[EntryBatch], EntryBatch]) -> None:
    """Let a manifest of data (3) or deletes (4) say something else; its length in the list stays right."""
    t = ix.open(folder)
    state = t.state
    root = state.root()
    assert root is not None
    rows = EntryBatch.of(root, ())
    row = rows.entries["content_type"].to_pylist().index(content)
    leaf = state.reader.leaf(root, row, {"entries", "partition", "stats"})
    data = write_manifest(
        change(EntryBatch.of(leaf)), content="data" if content == 3 else "delete", metadata=state.metadata,
        spec_id=leaf.entries["partition_spec_id"][0].as_py(), dialect=leaf.dialect,
    )  # fmt: skip
    Path(state.storage.resolve(leaf.location)).write_bytes(data)
    sizes = rows.entries["file_size_in_bytes"].to_pylist()
    sizes[row] = len(data)
    made = rows.with_columns(file_size_in_bytes=pa.array(sizes, pa.int64()))
    snapshot = state.snapshot
    assert snapshot is not None
    listed = write_manifest_list(
        made, metadata=state.metadata, dialect=root.dialect, snapshot_id=snapshot.snapshot_id,
        parent_snapshot_id=snapshot.parent_snapshot_id, sequence_number=snapshot.sequence_number or 0,
    )  # fmt: skip
    Path(state.storage.resolve(root.location)).write_bytes(listed)


def columns(**values: Any) -> Callable[[EntryBatch], EntryBatch]:
    """Entries that say other values."""
    return lambda batch: batch.with_columns(**values)


def stats(field_id: int, **values: Any) -> Callable[[EntryBatch], EntryBatch]:
    """Statistics of a column that say other values."""

    def change(batch: EntryBatch) -> EntryBatch:
        old = batch.stats[field_id]
        arrays = [
            pa.array([values[f.name]] * len(old), f.type) if f.name in values else pc.struct_field(old, [i])
            for i, f in enumerate(old.type)
        ]
        made = pa.StructArray.from_arrays(arrays, fields=list(old.type))
        return EntryBatch(batch.entries, {**batch.stats, field_id: made}, batch.partition)

    return change


@pytest.mark.parametrize("name", ["v2", "v2-parts", "v3", "v4"])
def test_healthy_tables_have_no_findings(healthy: dict[str, Path], name: str) -> None:
    assert found(healthy[name]) == []
    assert found(healthy[name], "data") == []


@pytest.mark.parametrize("layout", [{"flush_data_files": 5}, {"dialect": "v4-java"}, {"manifest_format": "parquet"}])
def test_healthy_simulations_of_v4_have_no_findings(layout: dict[str, Any]) -> None:
    """Leaves and files in the root, manifest DVs, vectors."""
    s = ix.empty(SCHEMA, partition_by=["kind", "bucket(3, id)"], format_version=4, **layout)
    for i in range(3):
        s.append(frame(i))
    paths = s.inspect.data_files()["file_path"].tolist()
    s.delete_files([paths[0], paths[-3]])
    s.row_delta(deletes={paths[5]: [0, 1]})
    assert s.verify(level="data").empty


@pytest.mark.parametrize("content", [0, 1, 2])
@pytest.mark.parametrize("damage", ["missing", "truncated", "longer", "other"])
def test_files_that_are_not_as_they_were(copied: Callable[[str], Path], content: int, damage: str) -> None:
    folder = copied("v2")
    file = real(folder, content)
    data = file.read_bytes()
    expected: list[tuple[str, str | None]]
    match damage:
        case "missing":
            file.unlink()
            expected = [("file-missing", None)]
        case "truncated":
            file.write_bytes(data[: len(data) // 2])
            expected = [("file-truncated", "file_size_in_bytes")]
        case "longer":
            file.write_bytes(data[:4] + b"\0" * 10 + data[4:])
            expected = [("count-mismatch", "file_size_in_bytes")]
        case _:
            file.write_bytes(b"PK\3\4" + data[4:])
            expected = [("file-corrupt", None)]
    if damage == "longer":  # every column chunk moved: what is in the file shows when it is read
        assert expected[0] in found(folder)
        return
    assert found(folder) == expected


@pytest.mark.parametrize("codec", ["uncompressed", "zstd"])
def test_a_changed_byte_of_a_column_without_statistics(tmp_path: Path, codec: str) -> None:
    """Values in lists have no bounds: what is wrong with them is known by reading them, and by checksums alone."""
    lab = ix.create(
        tmp_path / "t", {"id": "long", "xs": "list<long>"}, properties={"write.parquet.compression-codec": codec}
    )
    lab.append({"id": [1, 2], "xs": [[10, 20], [30]]})
    assert found(tmp_path / "t", "data") == []
    file = real(tmp_path / "t", 0)
    group = pq.read_metadata(file).row_group(0)
    chunk = next(group.column(i) for i in range(2) if "xs" in group.column(i).path_in_schema)
    data = bytearray(file.read_bytes())
    data[(chunk.dictionary_page_offset or chunk.data_page_offset) + chunk.total_compressed_size - 1] ^= 1
    file.write_bytes(data)
    assert found(tmp_path / "t", "data") == [("file-corrupt", None)]


@pytest.mark.parametrize("lost", ["column", "id"])
def test_a_column_that_the_file_lacks(tmp_path: Path, lost: str) -> None:
    """Another file in its place, or one that was written anew without ids: every reader shows nulls."""
    lab = ix.create(tmp_path / "t", {"id": "long", "x": "double", "city": "string"}, partition_by="city")
    lab.append({"id": [1, 2], "x": [0.5, None], "city": ["a", "a"]})
    file = real(tmp_path / "t", 0)
    rows = pq.read_table(file).drop_columns(["city"])  # the partition says it
    where = rows.schema.get_field_index("x")
    if lost == "column":
        rows = rows.drop_columns(["x"])
    else:
        rows = rows.set_column(where, pa.field("x", pa.float64()), rows["x"])
    pq.write_table(rows, file)
    assert ("count-mismatch", "value_count of x (2)") in found(tmp_path / "t", "data")
    assert not any("city" in (field or "") for _, field in found(tmp_path / "t", "data"))


def test_one_files_fault_does_not_stop_the_others(copied: Callable[[str], Path]) -> None:
    folder = copied("v2")
    for content in (0, 1, 2):
        real(folder, content).unlink()
    assert found(folder) == [("file-missing", None)] * 3


def test_a_manifest_that_is_gone(copied: Callable[[str], Path]) -> None:
    folder = copied("v2")
    t = ix.open(folder)
    Path(t.state.storage.resolve(t.inspect.manifests()["path"][0])).unlink()
    assert ("file-missing", None) in found(folder)


def test_a_record_count(copied: Callable[[str], Path]) -> None:
    folder = copied("v2")
    rewritten(folder, 3, columns(record_count=ROWS + 1))
    # by the file, and by the list's count of rows
    assert found(folder) == [("count-mismatch", "record_count"), ("totals-differ", "512 added_rows_count")]


@pytest.mark.parametrize("offsets", [[4, 4], [10**9], [5], [-4]])
def test_split_offsets(copied: Callable[[str], Path], offsets: list[int]) -> None:
    folder = copied("v2")
    rewritten(folder, 3, columns(split_offsets=pa.array([offsets], pa.list_(pa.int64()))))
    assert found(folder) == [("split-offsets-invalid", "split_offsets")]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (stats(1, lower=1000), [("bounds-untrue", "lower_bound of id (1)")]),
        (stats(1, upper=5), [("bounds-untrue", "upper_bound of id (1)")]),
        (stats(1, lower=-5, upper=10**6), []),
        (stats(2, lower="kind 1"), [("bounds-untrue", "lower_bound of kind (2)")]),
        (stats(2, lower="k", upper="l"), []),
        (stats(3, lower=0.0), [("bounds-untrue", "lower_bound of price (3)")]),
        (stats(3, nan_count=0), [("count-mismatch", "nan_count of price (3)")]),
        (stats(4, null_count=0), [("count-mismatch", "null_count of at (4)")]),
        (stats(4, value_count=1), [("count-mismatch", "value_count of at (4)")]),
        (stats(4, value_count=None, null_count=None, lower=None, upper=None), []),
    ],
)
def test_statistics(copied: Callable[[str], Path], change: Any, expected: list[Any]) -> None:
    folder = copied("v2")
    rewritten(folder, 3, change)
    assert found(folder, "data") == expected
    assert found(folder) == [], "that takes reading"


@pytest.mark.parametrize(("at", "value", "field"), [(0, "kind 9", "kind"), (0, None, "kind"), (1, 640, "at_month")])
def test_partition_values(copied: Callable[[str], Path], at: int, value: Any, field: str) -> None:
    folder = copied("v2-parts")

    def change(batch: EntryBatch) -> EntryBatch:
        tuples = batch.partition
        assert tuples is not None
        arrays = [pc.struct_field(tuples, [i]) for i in range(tuples.type.num_fields)]
        first = np.arange(len(batch)) == 0
        arrays[at] = pc.if_else(pa.array(first), pa.scalar(value, arrays[at].type), arrays[at])
        return EntryBatch(batch.entries, batch.stats, pa.StructArray.from_arrays(arrays, fields=list(tuples.type)))

    rewritten(folder, 3, change)
    assert ("partition-untrue", f"partition.{field}") in found(folder, "data")
    # The list's summary is of the tuples as they were.
    assert {code for code, _ in found(folder, "data")} == {"partition-untrue", "summary-untrue"}


@pytest.mark.parametrize(("direction", "nulls"), [("asc", "nulls-first"), ("desc", "nulls-last")])
def test_a_sort_order_that_is_only_claimed(tmp_path: Path, direction: str, nulls: str) -> None:
    s = ix.empty(SCHEMA, format_version=2, location="/warehouse/sorted")
    s.append(frame())
    s.save(tmp_path / "t", data="copy")
    metadata = max((tmp_path / "t" / "metadata").glob("*.metadata.json"))
    document = json.loads(metadata.read_text())
    fields = [
        {"transform": "bucket[2]", "source-id": 2, "direction": "asc", "null-order": "nulls-first"},
        {"transform": "day", "source-id": 4, "direction": direction, "null-order": nulls},
        {"transform": "identity", "source-id": 3, "direction": direction, "null-order": nulls},
    ]
    document["sort-orders"].append({"order-id": 1, "fields": fields})
    metadata.write_text(json.dumps(document))
    rewritten(tmp_path / "t", 3, columns(sort_order_id=1))
    claim = ("sort-order-untrue", "sort_order_id")
    assert found(tmp_path / "t", "data") == [claim]
    file = real(tmp_path / "t", 0)
    table = pq.read_table(file)

    def key(i: int) -> tuple[Any, ...]:
        """As the spec has it: NaN above all numbers."""
        row = table.slice(i, 1).to_pylist()[0]
        bucket = BucketTransform(2).transform(StringType())(row["kind"])
        sign, null = (1 if direction == "asc" else -1), (-1 if nulls == "nulls-first" else 1)
        day = (null, 0) if row["at"] is None else (0, sign * row["at"].toordinal())
        price = (sign, 0.0) if math.isnan(row["price"]) else (0, sign * row["price"])
        return bucket, day, price

    order = sorted(range(table.num_rows), key=key)
    pq.write_table(table.take(order), file)
    assert claim not in found(tmp_path / "t", "data")
    pq.write_table(table.take([*order[:-2], order[-1], order[-2]]), file)
    assert claim in found(tmp_path / "t", "data")


def test_field_ids(copied: Callable[[str], Path]) -> None:
    folder = copied("v2")
    file = real(folder, 0)
    table = pq.read_table(file)

    def with_ids(ids: list[int] | None) -> None:
        fields = [
            pa.field(f.name, f.type, metadata=None if ids is None else {"PARQUET:field_id": str(ids[i])})
            for i, f in enumerate(table.schema)
        ]
        pq.write_table(pa.table(table.columns, schema=pa.schema(fields)), file)

    with_ids(None)
    assert ("data-no-field-ids", "schema.name-mapping.default") in found(folder)
    with_ids([1, 2, 3, 77])
    assert ("field-id-unknown", "last-column-id") in found(folder)


@pytest.mark.parametrize(
    ("column", "kind", "stored"),
    [
        ("id", pa.string(), "BYTE_ARRAY String"),
        ("id", pa.decimal128(19, 0), "Decimal(precision=19, scale=0)"),
        ("kind", pa.binary(), None),
        ("price", pa.float32(), None),
        ("at", pa.int64(), "INT64"),
    ],
)
def test_types_that_are_not_the_tables(
    copied: Callable[[str], Path], column: str, kind: pa.DataType, stored: str | None
) -> None:
    """A stored type that is neither promotable nor an older writers' form is reported; readers may cast it silently."""
    folder = copied("v2")
    file = real(folder, 0)
    table = pq.ParquetFile(file).read()
    at = table.schema.get_field_index(column)
    values = table[column].cast(kind, safe=False)
    pq.write_table(table.set_column(at, table.schema.field(at).with_type(kind), values), file)
    rows = ix.open(folder).verify()
    rows = rows[rows["code"] == "stored-type"]
    if stored is None:
        assert len(rows) == 0
    else:
        assert rows["field"].tolist() == [f"{column} ({at + 1})"]
        assert stored in rows["found"].iloc[0]


def test_a_field_id_of_two_columns(copied: Callable[[str], Path]) -> None:
    folder = copied("v2")
    file = real(folder, 0)
    table = pq.ParquetFile(file).read()
    again = table.schema.field("id").with_name("again")
    pq.write_table(table.append_column(again, table["id"]), file)
    assert ("field-id-twice", "field id 1") in found(folder)


@pytest.mark.parametrize("values", [{"sequence_number": 99}, {"first_row_id": -5}, {"first_row_id": 10**6}])
def test_counters_of_the_table(copied: Callable[[str], Path], values: dict[str, int]) -> None:
    folder = copied("v3")

    def change(batch: EntryBatch) -> EntryBatch:
        arrays = {name: pa.array([value] * len(batch), pa.int64()) for name, value in values.items()}
        return batch.with_columns(**arrays)

    rewritten(folder, 3, change)
    above = {("sequence-number", "3 sequence_number")} if "sequence_number" in values else set()  # the manifest's
    assert set(found(folder)) == {("metadata-invalid", next(iter(values))), *above}


def test_a_required_column_with_nulls(tmp_path: Path) -> None:
    s = ix.empty({"id": "long", "at": "timestamp"}, location="/warehouse/t")
    s.append(pa.table({"id": [1, 2, 3], "at": pa.array([None, None, 4], pa.timestamp("us"))}))
    s.save(tmp_path / "t", data="copy")
    path = local(ix.open(tmp_path / "t").metadata_location)
    path = tmp_path / "t" / "metadata" / path.name
    document = json.loads(path.read_text())
    for schema in document["schemas"]:
        schema["fields"][1]["required"] = True
    path.write_text(json.dumps(document))
    assert found(tmp_path / "t") == []
    assert found(tmp_path / "t", "data") == [("null-in-required", "at (2)")]


def test_position_deletes_as_readers_want_them(copied: Callable[[str], Path]) -> None:
    folder = copied("v2")
    file = real(folder, 1)
    table = pq.read_table(file)

    def says(rows: pa.Table) -> list[tuple[str, str | None]]:
        pq.write_table(rows, file)
        return [f for f in found(folder) if f[1] != "file_size_in_bytes"]

    assert says(table) == []
    assert says(table.take(pa.array([1, 0]))) == [("sort-order-untrue", "file_path, pos")]
    assert says(pa.table(table.columns, names=table.column_names)) == [("data-no-field-ids", None)]


def test_a_position_delete_past_the_end_and_one_of_no_file(copied: Callable[[str], Path]) -> None:
    folder = copied("v2")
    file = real(folder, 1)
    table = pq.read_table(file)
    named = table["file_path"][0].as_py()

    def says(paths: list[str], positions: list[int]) -> list[tuple[str, str | None]]:
        columns = [pa.array(paths), pa.array(positions, pa.int64())]
        pq.write_table(build.table(columns, schema=table.schema), file)
        return [f for f in found(folder) if f[1] != "file_size_in_bytes"]

    assert says([named, named], [0, 2]) == []
    assert says([named, named], [0, ROWS]) == [("delete-position", "pos")]
    assert ("delete-position", "pos") in says([named, named], [-1, 2])
    gone = named.rsplit("/", 1)[0] + "/gone.parquet"
    assert ("delete-dangling", "file_path") in says([gone, named], [0, 2])
    assert ("delete-path", "file_path") in says(["file:" + named, named], [0, 2])


def vector(folder: Path) -> tuple[Path, int, int, Any]:
    """A deletion vector: file, offset, size, bitmap."""
    t = ix.open(folder)
    row = t.inspect.deletion_vectors.arrow().to_pylist()[0]
    at = row["content_offset"], row["content_size_in_bytes"]
    bitmap = read_deletion_vector(t.state.storage, row["file_path"], *at)
    return Path(t.state.storage.resolve(row["file_path"])), *at, bitmap


@pytest.mark.parametrize("name", ["v3", "v4"])
def test_deletion_vectors(copied: Callable[[str], Path], name: str) -> None:
    folder = copied(name)
    file, offset, size, bitmap = vector(folder)
    data = file.read_bytes()

    def with_blob(blob: bytes) -> list[tuple[str, str | None]]:
        assert len(blob) == size
        file.write_bytes(data[:offset] + blob + data[offset + size :])
        return found(folder)

    assert with_blob(encode_deletion_vector(bitmap)) == []
    flipped = bytearray(encode_deletion_vector(bitmap))
    flipped[-1] ^= 1
    assert with_blob(bytes(flipped)) == [("file-corrupt", "deletion-vector-v1")]
    past = type(bitmap)([0, 5000])
    assert with_blob(encode_deletion_vector(past)) == [("delete-position", "pos")]
    file.write_bytes(data[:-30])
    assert found(folder) == [("file-truncated", "file_size_in_bytes")]
    file.unlink()
    assert found(folder) == [("file-missing", None)]


def test_what_a_vectors_entry_says(copied: Callable[[str], Path]) -> None:
    folder = copied("v3")
    rewritten(folder, 4, columns(record_count=7))
    assert ("count-mismatch", "record_count") in found(folder)
    assert ("puffin-blob-invalid", "cardinality") in found(folder)
    rewritten(folder, 4, columns(record_count=2, referenced_file="/warehouse/v3/data/gone.parquet"))
    assert set(found(folder)) == {
        ("delete-dangling", "referenced_data_file"),
        ("puffin-blob-invalid", "referenced-data-file"),
    }


@pytest.mark.parametrize("ids", [[], [99], [3]])
def test_equality_ids(copied: Callable[[str], Path], ids: list[int]) -> None:
    folder = copied("v2")

    def change(batch: EntryBatch) -> EntryBatch:
        old = batch.entries["equality_ids"].to_pylist()
        return batch.with_columns(equality_ids=pa.array([ids if o else o for o in old], pa.list_(pa.int32())))

    t = ix.open(folder)
    assert t.inspect.manifests.arrow().num_rows >= 3
    root = t.state.root()
    assert root is not None
    for row, content in enumerate(root.entries["content_type"].to_pylist()):
        leaf = t.state.reader.leaf(root, row)
        if content == 4 and 2 in leaf.entries["content_type"].to_pylist():
            break
    else:
        pytest.fail("a table with equality deletes")
    _rewrite_row(folder, row, change)
    assert found(folder) == [("equality-ids-invalid", "equality_ids")]


def _rewrite_row(folder: Path, row: int, change: Callable[[EntryBatch], EntryBatch]) -> None:
    """As `rewritten`, of the manifest in this row; its length may change."""
    state = ix.open(folder).state
    root = state.root()
    assert root is not None
    leaf = state.reader.leaf(root, row, {"entries", "partition", "stats"})
    data = write_manifest(
        change(EntryBatch.of(leaf)), content="delete", metadata=state.metadata, spec_id=0, dialect=leaf.dialect
    )
    Path(state.storage.resolve(leaf.location)).write_bytes(data)
    made = EntryBatch.of(root, ())
    sizes = made.entries["file_size_in_bytes"].to_pylist()
    sizes[row] = len(data)
    snapshot = state.snapshot
    assert snapshot is not None
    listed = write_manifest_list(
        made.with_columns(file_size_in_bytes=pa.array(sizes, pa.int64())), metadata=state.metadata,
        dialect=root.dialect, snapshot_id=snapshot.snapshot_id, parent_snapshot_id=snapshot.parent_snapshot_id,
        sequence_number=snapshot.sequence_number or 0,
    )  # fmt: skip
    Path(state.storage.resolve(root.location)).write_bytes(listed)


def test_a_file_that_is_live_twice(copied: Callable[[str], Path]) -> None:
    folder = copied("v2")

    def change(batch: EntryBatch) -> EntryBatch:
        return batch.take([0, 0])

    rewritten(folder, 3, change)
    # the list counts entries, and rows
    assert {code for code, _ in found(folder)} == {"file-twice", "count-mismatch", "totals-differ"}


def test_row_ids_that_two_files_take(copied: Callable[[str], Path]) -> None:
    """Duplicates are reported once, for the later file, however many ranges of row ids the two files share."""
    folder = copied("v3")
    files = ix.open(folder).inspect.data_files().set_index("first_row_id")["file_path"]
    rewritten(folder, 3, columns(first_row_id=pa.array([ROWS // 2], pa.int64())))  # the second append's
    rows = ix.open(folder).verify()
    assert list(rows["code"]) == ["row-ids-twice"]
    assert rows["location"][0] == files[ROWS]
    assert rows["text"][0].startswith(f"{ROWS // 2} rows have row ids that are also used in {files[0]} ")
    assert (rows["found"][0], rows["expected"][0]) == (str(ROWS // 2), f"at least {ROWS}")


def say_lineage(folder: Path, name: str, values: list[int | None]) -> None:
    """Let the newest data file's rows say another lineage."""
    t = ix.open(folder)
    [place] = [t.state.storage.resolve(p) for p in t.inspect.data_files()["file_path"] if p.endswith("last.parquet")]
    table = pq.read_table(place)
    at = table.schema.get_field_index(name)
    pq.write_table(table.set_column(at, table.schema.field(at), pa.array(values, pa.int64())), place)


#: Of three rows, moved from a file of eight (ids 0 to 7, of commit 1) by commit 2: what they say, what is found.
_LINEAGES: dict[str, tuple[str, list[int | None], tuple[str, str, str] | None]] = {
    "as it should be": ("_row_id", [0, 1, 2], None),
    "inherited": ("_row_id", [0, None, 2], None),
    "the same twice": ("_row_id", [2, 1, 2], ("row-ids-twice", "2", "once")),
    "another live row's": ("_row_id", [0, 6, 2], ("row-ids-twice", "6", "at least 8")),
    "several live rows'": ("_row_id", [3, 5, 7], ("row-ids-twice", "3", "at least 8")),
    "not given out": ("_row_id", [0, 1, 11], ("row-ids-beyond", "11", "0 to 10")),
    "negative": ("_row_id", [-4, 1, 2], ("row-ids-beyond", "-4", "0 to 10")),
    "a commit to come": ("_last_updated_sequence_number", [1, 2, 3], ("last-updated-beyond", "3", "0 to 2")),
}


@pytest.mark.parametrize("case", _LINEAGES)
def test_lineage_that_is_untrue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    """Rows that were moved keep their ids; where they were they are deleted."""
    monkeypatch.setattr(CommitWriter, "new_location", named_last(CommitWriter.new_location))
    modes = {"write.update.mode": "merge-on-read"}
    lab = ix.create(tmp_path / "t", {"id": "long", "x": "long"}, format_version=3, properties=modes)
    lab.append({"id": list(range(8)), "x": [0] * 8})
    lab.update({"x": 1}, "id < 3")
    name, values, expected = _LINEAGES[case]
    say_lineage(tmp_path / "t", name, values)
    rows = ix.open(tmp_path / "t").verify(level="data")
    mine = rows[rows["field"].isin([name, "first_row_id"])]
    reported = list(mine[["code", "found", "expected"]].itertuples(index=False, name=None))
    assert reported == ([] if expected is None else [expected])
    assert set(mine["code"]) <= PROBLEM_KINDS.keys()


def named_last(new_location: Any) -> Any:
    """Data files by the order in which they are made: ``first.parquet``, ``last.parquet``."""
    names = iter(["first", "last"])

    def named(self: Any, kind: str, suffix: str, **how: Any) -> str:
        made = str(new_location(self, kind, suffix, **how))
        return f"{made.rpartition('/')[0]}/{next(names)}.parquet" if kind == "data" else made

    return named


def test_an_unknown_level(healthy: dict[str, Path]) -> None:
    with pytest.raises(OptionError, match="level='all': choose 'footers' or 'data'"):
        ix.open(healthy["v2"]).verify(level="all")  # type: ignore[call-overload]


def test_synthetic_files_are_reported_as_such() -> None:
    s = ix.empty({"id": "long"}, format_version=2)
    s.append(files=2, rows=10)
    rows = s.verify()
    assert list(rows["code"]) == ["file-missing"] * 2
    assert "A simulation (append(files=...)) added this synthetic file" in rows["text"][0]


def test_slices_cover_every_entry_once_and_traveljoined() -> None:
    s = ix.empty({"id": "long"}, format_version=2)
    for _ in range(2):
        s.append(files=70, rows=1)
    for level in ("footers", "data"):
        slices = slices_of(s.state, level)
        root, *files = slices
        assert root.row == ROOT
        for row in (0, 1):
            mine = [piece for piece in files if piece.row == row]
            assert mine[0].start == 0
            assert mine[-1].stop is None
            assert all(a.stop == b.start for a, b in itertools.pairwise(mine))
            assert len(mine) == (2 if level == "footers" else 9)
        assert [len(joined(files)), len(joined(slices))] == [2, 3]
    assert len(s.verify()) == 140
