"""The V4 proposal: roots, leaves, inheritance, statistics, rebuilt tuples; against files written by hand."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iceexplore.arrow import build
from iceexplore.errors import OptionError, Problems
from iceexplore.manifests import ENTRY_SCHEMA, EntryBatch, Manifest, ManifestReader, live, open_manifest
from iceexplore.metadata import PrimitiveType, encode_value, parse_table_metadata
from iceexplore.storage import CACHE, open_source
from tests.helpers import v4_files as v4

EXISTING, ADDED, DELETED = 0, 1, 2

FIELDS = [
    {"id": 1, "name": "id", "required": False, "type": "long"},
    {"id": 2, "name": "name", "required": False, "type": "string"},
    {"id": 3, "name": "at", "required": False, "type": "timestamp"},
    {"id": 4, "name": "price", "required": False, "type": "decimal(9,2)"},
    {"id": 5, "name": "key", "required": False, "type": "uuid"},
    {"id": 6, "name": "ratio", "required": False, "type": "double"},
    {"id": 7, "name": "place", "required": False, "type": "geometry"},
    {"id": 8, "name": "clock", "required": False, "type": "time"},
]


class Table:
    """A V4 table folder: manifests file by file, then the root."""

    def __init__(self, folder: Path, writer: str) -> None:
        CACHE.clear()
        self.folder = folder / "t"
        (self.folder / "metadata").mkdir(parents=True)
        self.writer = writer
        self.document: dict[str, Any] = {
            "format-version": 4,
            "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
            "location": str(self.folder),
            "last-sequence-number": 7,
            "last-updated-ms": 1_600_000_000_000,
            "last-column-id": 110,
            "schemas": [{"type": "struct", "schema-id": 0, "fields": FIELDS}],
            "current-schema-id": 0,
            "partition-specs": [
                {"spec-id": 0, "fields": []},
                {"spec-id": 1, "fields": [{"expr-id": 101}, {"name": "name", "field-id": 1001, "source-id": 2,
                                                             "transform": "identity"}]},
                {"spec-id": 2, "fields": [{"name": "id_bucket", "field-id": 1002, "source-id": 1,
                                           "transform": "bucket[8]"}]},
            ],
            "expressions": [
                {"expr-id": 101, "expr": {"source-id": 3, "transform": "day"}, "name": "at_day",
                 "partition-field-id": 1000},
                {"expr-id": 102, "expr": {"source-id": 2, "function": "lower"}, "name": "name_lower"},
            ],
            "default-spec-id": 1,
            "last-partition-id": 1002,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
            "next-row-id": 1000,
            "current-snapshot-id": 77,
            "snapshots": [],
        }  # fmt: skip

    def write(self, name: str, fields: list[v4.F], rows: list[Any], content: str, **more: Any) -> tuple[str, int]:
        if fields[0].name == "type":  # the proposal's second table
            rows = [{("type" if k == "content_type" else k): value for k, value in r.items()} for r in rows]
        data = v4.WRITERS[self.writer](fields, rows, content=content, format_version="4", **more)
        return self.put(name, data), len(data)

    def put(self, name: str, data: bytes) -> str:
        path = self.folder / "metadata" / name
        path.write_bytes(data)
        return str(path)

    def root(self, rows: list[Any], fields: list[v4.F] | None = None, *, key: str = "root-manifest") -> ManifestReader:
        location, _ = self.write(f"root.{self.writer}", fields or v4.proposal(), rows, "root")
        self.document["snapshots"] = [
            {
                "snapshot-id": 77,
                "sequence-number": 7,
                "timestamp-ms": 1_600_000_000_000,
                key: location,
                "first-row-id": 500,
                "summary": {},
            }
        ]
        return self.reader()

    def reader(self, *, strict: bool = False) -> ManifestReader:
        self.put("v1.metadata.json", json.dumps(self.document).encode())
        opened = open_source(str(self.folder))
        metadata = parse_table_metadata(opened.document, opened.metadata_location, Problems())
        return ManifestReader(opened.storage, metadata, Problems(strict=strict))


@pytest.fixture(params=["avro", "parquet"])
def table(request: Any, tmp_path: Path) -> Table:
    return Table(tmp_path, request.param)


def root_of(reader: ManifestReader) -> Manifest:
    snapshot = reader.metadata.snapshot()
    assert snapshot is not None
    return reader.root(snapshot)


@pytest.mark.parametrize("key", ["root-manifest", "manifest-list"])
@pytest.mark.parametrize("table2", [False, True])
def test_all_types_in_a_root(table: Table, key: str, table2: bool) -> None:
    leaf, length = table.write("a", v4.proposal(table2=table2), [v4.data_row(0), v4.data_row(1)], "data")
    rows = [
        v4.data_row(5, sort_order_id=3, split_offsets=[4, 90], key_metadata=b"k"),
        {
            **v4.data_row(6),
            "content_type": 1,
            "deletion_vector": {"offset": 4, "size_in_bytes": 44},
            "referenced_file": "s3://b/t/data/00005.parquet",
            "file_format": "PUFFIN",
        },
        {**v4.data_row(7, version_info=v4.versions(EXISTING, None, 6)), "content_type": 2, "equality_ids": [1, 2]},
        v4.manifest_row(leaf, length, 2, first_row_id=40),
        v4.manifest_row("s3://b/t/d", 9, 1, kind=4, status=DELETED, referenced_file=leaf),
        v4.dv_row(leaf, bytes.fromhex("3a30000001000000000000001000000001 00".replace(" ", "")), location=None),
    ]
    reader = table.root(rows, v4.proposal(table2=table2), key=key)
    root = root_of(reader)
    assert list(reader.problems) == []
    assert (root.dialect, root.is_root, root.root_row) == ("v4-proposal", True, None)
    assert root.entries.schema.equals(ENTRY_SCHEMA)
    got = root.entries.to_pylist()
    assert [e["content_type"] for e in got] == [0, 1, 2, 3, 4, 5]
    assert [e["status"] for e in got] == [1, 1, 0, 1, 2, 1]
    assert [e["file_format"] for e in got] == ["parquet", "puffin", "parquet", "parquet", "parquet", "puffin"]
    assert [e["partition_spec_id"] for e in got] == [0] * 6
    assert got[0] == {
        **dict.fromkeys(ENTRY_SCHEMA.names),
        "ordinal": 0,
        "content_type": 0,
        "location": "s3://b/t/data/00005.parquet",
        "file_format": "parquet",
        "status": 1,
        "snapshot_id": 77,
        "sequence_number": 7,
        "file_sequence_number": 7,
        "partition_spec_id": 0,
        "sort_order_id": 3,
        "record_count": 15,
        "file_size_in_bytes": 1005,
        "key_metadata": b"k",
        "split_offsets": [4, 90],
        "first_row_id": 500,
    }
    assert got[1]["deletion_vector"] == {"offset": 4, "size_in_bytes": 44, "inline_content": None}
    assert got[2]["equality_ids"] == [1, 2]
    assert got[3]["manifest_stats"]["added_files_count"] == 2
    assert got[3]["first_row_id"] == 40
    assert got[4]["referenced_file"] == leaf
    assert got[5]["location"] == leaf  # an inline one has none of its own
    # sequence numbers are inherited by ADDED entries alone, the snapshot by all
    assert [e["sequence_number"] for e in got] == [7, 7, 6, 7, None, 7]
    assert [e["snapshot_id"] for e in got] == [77] * 6

    direct = reader.direct(root)
    assert direct is not None
    assert direct.entries["ordinal"].to_pylist() == [0, 1, 2]
    assert (direct.is_root, direct.root_row, direct.dialect) == (False, None, "v4-proposal")
    leaves = list(reader.leaves(root))  # the direct view, then what is not DELETED
    assert [(m.root_row, len(m)) for m in leaves] == [(None, 3), (3, 2)]
    assert leaves[1].entries["manifest_dv"].to_pylist() == [None, 5]
    assert live(leaves[1].entries).to_pylist() == [True, False]
    assert leaves[1].entries["first_row_id"].to_pylist() == [40, 50]
    assert [len(m) for m in reader.leaves(root, [3])] == [2]
    with pytest.raises(OptionError, match="is not a manifest"):
        reader.leaf(root, 0)


def test_the_metadata_of_v4(table: Table) -> None:
    table.root([v4.data_row(0)])
    table.document["snapshots"][0]["manifest-list"] = "s3://b/old.avro"
    inside = {"source-id": 2, "transform": "truncate[3]", "name": "short", "partition-field-id": 1007}
    table.document["expressions"].append({"expr-id": 103, "expr": inside})  # as the proposal's example has it
    problems = Problems()
    metadata = parse_table_metadata(table.document, "m", problems)
    assert list(problems) == []
    snapshot = metadata.snapshot()
    assert snapshot is not None
    assert snapshot.root_location == str(table.folder / "metadata" / f"root.{table.writer}")
    found = [(e.expr_id, e.transform, e.source_ids, e.name, e.partition_field_id) for e in metadata.expressions]
    assert found == [
        (101, "day", (3,), "at_day", 1000),
        (102, "lower", (2,), "name_lower", None),
        (103, "truncate[3]", (2,), "short", 1007),
    ]
    spec = metadata.spec(1)
    assert spec is not None
    assert [(f.field_id, f.name, f.transform, f.source_ids) for f in spec.fields] == [
        (1000, "at_day", "day", (3,)),
        (1001, "name", "identity", (2,)),
    ]


def test_a_root_with_files_alone_and_one_with_manifests_alone(table: Table) -> None:
    reader = table.root([v4.data_row(0)])
    assert [m.root_row for m in reader.leaves(root_of(reader))] == [None]
    leaf, length = table.write("a", v4.proposal(), [v4.data_row(0)], "data")
    CACHE.clear()
    reader = table.root([v4.manifest_row(leaf, length, 1)])
    assert reader.direct(root_of(reader)) is None
    assert [m.root_row for m in reader.leaves(root_of(reader))] == [0]


def test_inheritance_and_row_ids(table: Table) -> None:
    own = v4.versions(EXISTING, 5, 2)
    leaf_rows = [
        v4.data_row(0),
        v4.data_row(1, version_info=own, first_row_id=900),
        v4.data_row(2, status=DELETED),
        v4.data_row(3, status=EXISTING),
    ]
    leaf, length = table.write("a", v4.proposal(), leaf_rows, "data")
    stats = {"added_files_count": 1, "existing_files_count": 2, "deleted_files_count": 1}
    rows = [
        v4.data_row(0),
        v4.manifest_row(
            leaf, length, 4, manifest_stats=stats, version_info=v4.versions(EXISTING, 66, 6), first_row_id=100
        ),
        {**v4.data_row(1), "content_type": 2, "equality_ids": [1]},
        v4.data_row(2, first_row_id=3),
        v4.data_row(4),
    ]
    reader = table.root(rows)
    root = root_of(reader)
    # 10 records in the first; the equality delete and the one with an id of its own take no part
    assert root.entries["first_row_id"].to_pylist() == [500, 100, None, 3, 510]
    entries = reader.leaf(root, 1).entries
    assert entries["snapshot_id"].to_pylist() == [66, 5, 66, 66]
    assert entries["sequence_number"].to_pylist() == [6, 2, None, None]
    assert entries["file_sequence_number"].to_pylist() == [6, 2, None, None]
    assert entries["first_row_id"].to_pylist() == [100, 900, None, 110]
    assert [(p.code, p.where) for p in reader.problems] == [("sequence-number", f"{leaf}#entry 3")]


POINT = b"\x00" * 16
STATS = [
    v4.column_stats(1, "int"),  # older than the schema's long
    v4.column_stats(2, "string"),
    v4.column_stats(3, "timestamp"),
    v4.column_stats(4, "decimal(9,2)"),
    v4.column_stats(5, "uuid"),
    v4.column_stats(6, "float"),
    v4.column_stats(7, "binary"),
    v4.column_stats(8, "time"),
    v4.column_stats(101, "date"),
    v4.column_stats(102, "string"),
]
LOW = {
    1: 5,
    2: "a",
    3: dt.datetime(2024, 1, 2, 3),
    4: Decimal("-1.50"),
    5: b"\x01" * 16,
    6: 0.5,
    7: POINT,
    8: dt.time(1, 2, 3),
    101: dt.date(2024, 1, 2),
    102: "a",
}
TYPES = {
    **{f["id"]: PrimitiveType(str(f["type"])) for f in FIELDS},
    101: PrimitiveType("date"),
    102: PrimitiveType("string"),
}


def stats_row(number: int, low: dict[int, Any], **more: Any) -> dict[str, Any]:
    counts = {
        "value_count": 10,
        "null_count": 2,
        "nan_count": 1,
        "average_uncompressed_length": 6,
        "max_uncompressed_length": 9,
        "tight_bounds": True,
    }
    stats = {f"c{i}": {"lower_bound": v, "upper_bound": v, **counts} for i, v in low.items()}
    return v4.data_row(number, content_stats=stats, **more)


def test_typed_statistics(table: Table) -> None:
    rows = [stats_row(0, LOW), v4.data_row(1), stats_row(2, {1: 9})]
    leaf, length = table.write("a", v4.proposal(STATS), rows, "data")
    reader = table.root([v4.manifest_row(leaf, length, 3)])
    manifest = reader.leaf(root_of(reader), 0)
    assert manifest.stat_field_ids() == sorted(LOW)
    for field_id, value in LOW.items():
        stats = manifest.stats(field_id)
        kind = TYPES[field_id]
        assert stats.type == kind
        got = stats.lower.to_pylist()
        assert got[:2] == [value, None]
        assert stats.upper.to_pylist() == got
        if field_id != 7:
            raw = encode_value(kind, value)
            assert stats.lower_raw.to_pylist()[0] == raw
        else:
            assert stats.lower_raw.to_pylist()[0] == POINT
        assert stats.value_count.to_pylist()[:2] == [10, None]
        assert stats.null_count.to_pylist()[:2] == [2, None]
        assert stats.nan_count.to_pylist()[:2] == [1, None]
        assert stats.average_length.to_pylist()[:2] == [6, None]
        assert stats.max_length.to_pylist()[:2] == [9, None]
        assert stats.tight_bounds.to_pylist()[:2] == [True, None]
        assert stats.column_size.null_count == 3
        assert stats.lower_damaged.true_count == stats.upper_damaged.true_count == 0
    assert manifest.stats(1).lower.type == pa.int64()
    assert manifest.stats(6).lower.type == pa.float64()
    absent = manifest.stats(99)
    assert (absent.type, absent.lower.null_count) == (None, 3)
    maps = manifest.stat_maps()
    assert dict(build.to_pylist(maps["value_counts"])[0]) == dict.fromkeys(LOW, 10)
    assert maps["lower_bounds"].to_pylist()[1] is None
    assert dict(build.to_pylist(maps["lower_bounds"])[2]) == {1: (9).to_bytes(8, "little")}
    assert maps["column_sizes"].null_count == 3
    assert list(reader.problems) == []


def test_statistics_and_tuples_of_a_root(table: Table) -> None:
    leaf, length = table.write("a", v4.proposal(), [v4.data_row(0)], "data")
    low = {1: 1, 2: "x", 101: dt.date(2024, 5, 1)}
    rows = [
        v4.manifest_row(leaf, length, 1, content_stats={"c1": {"lower_bound": 1, "upper_bound": 90}}),
        stats_row(2, low, partition_spec_id=1),
        v4.dv_row(leaf, None, status=DELETED),
        v4.data_row(3),
    ]
    reader = table.root(rows, v4.proposal(STATS))
    root = root_of(reader)
    assert root.stats(1).lower.to_pylist() == [1, 1, None, None]
    assert root.stats(1).upper.to_pylist() == [90, 1, None, None]
    direct = reader.direct(root)
    assert direct is not None
    assert direct.stats(1).lower.to_pylist() == [1, None]
    tuples = direct.partition()
    assert tuples is not None
    assert build.to_pylist(tuples) == [{"1000": dt.date(2024, 5, 1), "1001": "x"}, None]
    whole_root = root.partition()
    assert whole_root is not None
    assert build.to_pylist(whole_root) == [None, {"1000": dt.date(2024, 5, 1), "1001": "x"}, None, None]
    batch = EntryBatch.of(direct)
    assert sorted(batch.stats) == [1, 2, 101]
    assert len(batch.partition or []) == 2


def test_tuples_are_rebuilt_and_united(table: Table) -> None:
    stats = [
        v4.column_stats(1, "long", derived="int"),  # layout (b): the bucket is in the source column's struct
        v4.column_stats(2, "string"),
        v4.column_stats(101, "date"),
    ]
    day = dt.date(2024, 1, 2)

    def row(number: int, spec: int, found: dict[str, Any]) -> dict[str, Any]:
        return v4.data_row(number, partition_spec_id=spec, content_stats=found)

    rows = [
        row(0, 1, {"c101": {"lower_bound": day}, "c2": {"lower_bound": "x"}}),
        row(1, 1, {"c101": {"lower_bound": day, "upper_bound": day}, "c2": {"lower_bound": "y", "upper_bound": "y"}}),
        row(2, 1, {"c2": {"null_count": 3}}),  # both null: the value is null
        row(3, 2, {"c1": {"lower_bound": 70, "upper_bound": 90, "derived_value": 6}}),
        row(4, 0, {"c2": {"lower_bound": "no partition"}}),
    ]
    leaf, length = table.write("a", v4.proposal(stats), rows, "data")
    reader = table.root([v4.manifest_row(leaf, length, 5)])
    made = reader.leaf(root_of(reader), 0).partition()
    assert made is not None
    assert [f.name for f in made.type] == ["1000", "1001", "1002"]
    assert [f.type for f in made.type] == [pa.date32(), pa.string(), pa.int32()]
    assert build.to_pylist(made) == [
        {"1000": day, "1001": "x", "1002": None},
        {"1000": day, "1001": "y", "1002": None},
        {"1000": None, "1001": None, "1002": None},
        {"1000": None, "1001": None, "1002": 6},
        None,
    ]
    assert list(reader.problems) == []


def test_a_kept_tuple_counts(table: Table) -> None:
    partition = [v4.F(1001, "name", "string"), v4.F(1000, "d", "date")]
    fields = v4.proposal([v4.column_stats(2, "string")], partition=partition)
    rows = [
        v4.data_row(0, partition_spec_id=1, partition={"name": "kept"}, content_stats={"c2": {"lower_bound": "k"}}),
        v4.data_row(1, partition_spec_id=1, content_stats={"c2": {"lower_bound": "rebuilt"}}),
        v4.data_row(2, partition_spec_id=1, partition={}, content_stats={"c2": {"lower_bound": "no value"}}),
    ]
    leaf, length = table.write("a", fields, rows, "data")
    reader = table.root([v4.manifest_row(leaf, length, 3)])
    made = reader.leaf(root_of(reader), 0).partition()
    assert made is not None
    assert [v["1001"] for v in build.to_pylist(made)] == ["kept", "rebuilt", None]


def test_bounds_that_do_not_fit_are_damaged_and_kept(table: Table) -> None:
    stats = [v4.column_stats(1, "string"), v4.column_stats(8, "long"), v4.column_stats(55, "date")]
    low = {1: "no number", 8: 99_999_999_999_999, 55: dt.date(2020, 1, 1)}
    leaf, length = table.write("a", v4.proposal(stats), [stats_row(0, low)], "data")
    reader = table.root([v4.manifest_row(leaf, length, 1)])
    manifest = reader.leaf(root_of(reader), 0)
    wrong = manifest.stats(1)
    assert (wrong.lower.to_pylist(), wrong.lower_damaged.to_pylist()) == ([None], [True])
    assert wrong.lower_raw.to_pylist() == [b"no number"]
    clock = manifest.stats(8)
    assert (clock.lower.to_pylist(), clock.lower_damaged.to_pylist()) == ([None], [True])
    unknown = manifest.stats(55)  # in no schema: the file's own type
    assert (unknown.type, unknown.lower.to_pylist()) == (PrimitiveType("date"), [dt.date(2020, 1, 1)])


def test_geometry_as_a_struct_is_bytes(table: Table) -> None:
    base = 10_000 + 200 * 7
    corner = [v4.F(base + i, name, "double") for i, name in ((10, "x"), (11, "y"), (12, "z"))]
    children = [v4.F(base + 1, "lower_bound", corner), v4.F(base + 4, "value_count", "long")]
    fields = v4.proposal([v4.column_stats(7, "binary", children=children)])
    rows = [
        v4.data_row(0, content_stats={"c7": {"lower_bound": {"x": 1.0, "y": 2.0}, "value_count": 1}}),
        v4.data_row(1, content_stats={"c7": {"lower_bound": {"x": 1.0, "y": 2.0, "z": 3.0}}}),
        v4.data_row(2),
    ]
    leaf, length = table.write("a", fields, rows, "data")
    reader = table.root([v4.manifest_row(leaf, length, 3)])
    stats = reader.leaf(root_of(reader), 0).stats(7)
    xy, xyz = (pa.array(v, pa.float64()).buffers()[1].to_pybytes() for v in ([1.0, 2.0], [1.0, 2.0, 3.0]))  # type: ignore[union-attr]
    assert build.to_pylist(stats.lower) == [xy[:16], xyz[:24], None]
    assert build.to_pylist(stats.value_count) == [1, None, None]


def test_files_without_ids_are_read_by_name(table: Table) -> None:
    leaf, length = table.write("a", v4.proposal(STATS), [stats_row(0, LOW)], "data", ids=False)
    reader = table.root([v4.manifest_row(leaf, length, 1)])
    manifest = reader.leaf(root_of(reader), 0)
    assert [p.code for p in manifest.problems] == ["avro-no-field-ids"]
    assert manifest.entries["location"].to_pylist() == ["s3://b/t/data/00000.parquet"]
    assert manifest.entries["sequence_number"].to_pylist() == [7]
    assert manifest.stat_field_ids() == []  # names of columns are no ids


def test_relative_locations(table: Table) -> None:
    rows = [v4.data_row(0, location="data/a.parquet"), v4.data_row(1, location="data/../../b.parquet")]
    _, length = table.write("leaf", v4.proposal(), rows, "data")
    reader = table.root([v4.manifest_row("metadata/leaf", length, 2), v4.data_row(3, location="/abs/c.parquet")])
    root = root_of(reader)
    at = str(table.folder)
    assert root.entries["location"].to_pylist() == [f"{at}/metadata/leaf", "/abs/c.parquet"]
    leaf = reader.leaf(root, 0)
    assert leaf.entries["location"][0].as_py() == f"{at}/data/a.parquet"
    assert [(p.code, p.found) for p in leaf.problems] == [("location-invalid", "data/../../b.parquet")]


def test_counts_are_of_the_entries_as_written(table: Table) -> None:
    leaf, length = table.write("a", v4.proposal(), [v4.data_row(i) for i in range(3)], "data")
    reader = table.root([v4.manifest_row(leaf, length + 1, 2)])
    assert [p.code for p in reader.leaf(root_of(reader), 0).problems] == ["count-mismatch", "count-mismatch"]


def test_roots_and_leaves_in_each_others_place(table: Table) -> None:
    root_like, length = table.write("r", v4.proposal(), [v4.data_row(0)], "root")
    nested, nested_length = table.write("n", v4.proposal(), [v4.data_row(0), v4.dv_row("x", b"")], "data")
    rows = [v4.manifest_row(root_like, length, 1), v4.data_row(1, content_type=9)]
    stats = {"added_files_count": 2, "existing_files_count": 0, "deleted_files_count": 0}
    reader = table.root([*rows, v4.manifest_row(nested, nested_length, 2, manifest_stats=stats)])
    root = root_of(reader)
    assert [(p.field, p.found) for p in reader.leaf(root, 2).problems] == [("134 content_type", "5")]
    assert [p.code for p in root.problems] == ["file-corrupt"]
    assert root.problems[0].field == "134 content_type"
    assert [p.text for p in reader.leaf(root, 0).problems] == ["The file is a root manifest, not a manifest."]


def test_loose_files(table: Table) -> None:
    leaf, _ = table.write("a", v4.proposal(STATS), [stats_row(0, LOW), v4.data_row(1)], "data")
    storage = table.root([v4.manifest_row(leaf, 1, 1), v4.data_row(3)]).storage
    made = open_manifest(storage, leaf)
    assert (made.dialect, made.is_root, len(made)) == ("v4-proposal", False, 2)
    for field_id, value in LOW.items():
        assert made.stats(field_id).lower.to_pylist() == [value, None]
    assert made.stats(4).type == PrimitiveType("decimal(9,2)")
    assert made.partition() is None
    root = open_manifest(storage, str(table.folder / "metadata" / f"root.{table.writer}"))
    assert (root.is_root, root.entries["snapshot_id"].to_pylist()) == (True, [None, None])


@pytest.mark.parametrize("ids", [True, False])
def test_a_parquet_manifest_list_has_its_summaries(tmp_path: Path, ids: bool) -> None:
    """What Java's main branch writes today (``v4-java``): a v3-shaped list, in Parquet."""
    table = Table(tmp_path, "parquet")
    summary = [
        v4.F(509, "contains_null", "boolean", True),
        v4.F(518, "contains_nan", "boolean"),
        v4.F(510, "lower_bound", "binary"),
        v4.F(511, "upper_bound", "binary"),
    ]
    fields = [
        v4.F(500, "manifest_path", "string", True),
        v4.F(501, "manifest_length", "long", True),
        v4.F(502, "partition_spec_id", "int", True),
        v4.F(517, "content", "int", True),
        v4.F(503, "added_snapshot_id", "long", True),
        v4.F(507, "partitions", [summary, 508]),
    ]
    found = {"contains_null": True, "contains_nan": None, "lower_bound": b"\x01", "upper_bound": b"\x02"}
    row = {
        "manifest_path": "metadata/m0.parquet",
        "manifest_length": 9,
        "partition_spec_id": 1,
        "content": 1,
        "added_snapshot_id": 77,
        "partitions": [found, found],
    }
    table.put("list", v4.parquet(fields, [row], ids=ids))
    snapshot = {"snapshot-id": 77, "sequence-number": 7, "timestamp-ms": 1, "manifest-list": "metadata/list"}
    table.document["snapshots"] = [snapshot]
    root = root_of(table.reader())
    assert (root.dialect, root.is_root) == ("v4-java", True)
    (entry,) = root.entries.to_pylist()
    assert entry["partition_summaries"] == [found, found]
    assert entry["location"] == f"{table.folder}/metadata/m0.parquet"
    assert entry["content_type"] == 4
