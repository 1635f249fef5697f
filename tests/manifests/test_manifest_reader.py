"""The reader: content entries, inheritance, parts, the cache, missing and foreign files."""

from __future__ import annotations

import io
import json
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iceexplore.arrow import build
from iceexplore.errors import FileMissingError, FormatError
from iceexplore.manifests import ENTRY_SCHEMA, ContentType, ManifestReader, Status, _reader, open_manifest
from iceexplore.manifests.decode import _file as _source
from iceexplore.metadata import Snapshot
from iceexplore.storage import CACHE

EXISTING, ADDED, DELETED = 0, 1, 2


def current(reader: ManifestReader) -> Snapshot:
    snapshot = reader.metadata.snapshot()
    assert snapshot is not None
    return snapshot


def only_leaf(reader: ManifestReader, **more: Any) -> Any:
    return reader.leaf(reader.root(current(reader)), 0, **more)


def test_manifest_list_as_content_entries(table: Any, make: Any) -> None:
    data = table.manifest("a.avro", [make("entry")(1)])
    summary = {"contains_null": True, "contains_nan": None, "lower_bound": b"\x01", "upper_bound": None}
    counts = {"added_files_count": 1, "existing_files_count": 0, "deleted_files_count": 2}
    table.snapshot(
        make("listed")(data, **counts, added_rows_count=11, partitions=[summary], first_row_id=5, key_metadata=b"k"),
        make("listed")("gone.parquet", content=1, added_snapshot_id=3, sequence_number=2, added_files_count=1),
    )
    root = table.reader()
    root = root.root(current(root))
    assert root.is_root
    assert root.dialect == "v3"
    assert root.entries.schema.equals(ENTRY_SCHEMA)
    first, second = root.entries.to_pylist()
    size = Path(data).stat().st_size
    assert first == {
        **dict.fromkeys(ENTRY_SCHEMA.names),
        "ordinal": 0,
        "content_type": ContentType.DATA_MANIFEST,
        "location": data,
        "file_format": "avro",
        "status": Status.ADDED,
        "snapshot_id": 77,
        "sequence_number": 7,
        "file_sequence_number": 7,
        "partition_spec_id": 0,
        "record_count": 3,
        "file_size_in_bytes": size,
        "first_row_id": 5,
        "key_metadata": b"k",
        "partition_summaries": [summary],
        "manifest_stats": {
            **counts,
            "added_rows_count": 11,
            "existing_rows_count": None,
            "deleted_rows_count": None,
            "min_sequence_number": 3,
        },
    }
    assert (second["content_type"], second["status"], second["file_format"]) == (4, EXISTING, "parquet")
    assert second["record_count"] is None  # two of the counts are unknown
    assert second["partition_summaries"] is None


def test_inheritance(table: Any, make: Any) -> None:
    entry = make("entry")
    rows = [
        entry(0),
        entry(1, status=EXISTING, snapshot_id=5, sequence_number=2, file_sequence_number=3),
        entry(2, status=EXISTING),
        entry(3, status=DELETED, snapshot_id=6),
        entry(4, sequence_number=4),
    ]
    table.snapshot(make("listed")(table.manifest("a.avro", rows), partition_spec_id=0))
    entries = only_leaf(table.reader()).entries
    assert entries["snapshot_id"].to_pylist() == [77, 5, 77, 6, 77]
    # null and ADDED inherits; an EXISTING entry without one stays without (spec, "Sequence Number Inheritance")
    assert entries["sequence_number"].to_pylist() == [7, 2, None, None, 4]
    assert entries["file_sequence_number"].to_pylist() == [7, 3, None, None, 7]
    assert entries["partition_spec_id"].to_pylist() == [0] * 5
    assert entries["ordinal"].to_pylist() == [0, 1, 2, 3, 4]
    assert entries["file_format"].to_pylist() == ["parquet"] * 5


def test_first_row_ids(table: Any, make: Any) -> None:
    entry, schema = make("entry"), make("entry_schema")([], version=3)
    rows = [
        entry(0),
        entry(1, first_row_id=900),
        entry(2, status=DELETED, snapshot_id=1),
        entry(3, status=EXISTING),
        entry(4),
    ]
    manifest = table.manifest("a.avro", rows, schema=schema, format_version="3")
    table.snapshot(make("listed")(manifest, first_row_id=100), make("listed")(manifest, content=0))
    reader = table.reader()
    root = reader.root(current(reader))
    # 10 + n records each; the one with an id of its own and the deleted one take no part
    assert reader.leaf(root, 0).entries["first_row_id"].to_pylist() == [100, 900, None, 110, 123]
    # Java: without first_row_id in the list, all are null
    assert reader.leaf(root, 1).entries["first_row_id"].to_pylist() == [None] * 5


def test_v1_reads_as_zero(table: Any, make: Any) -> None:
    rows = [make("entry")(0, status=EXISTING, snapshot_id=4)]
    manifest = table.manifest("a.avro", rows, schema=make("entry_schema")([], version=1), format_version="1")
    table.snapshot(make("listed")(manifest, sequence_number=0))
    leaf = only_leaf(table.reader())
    assert leaf.dialect == "v1"
    row = leaf.entries.to_pylist()[0]
    assert (row["content_type"], row["sequence_number"], row["file_sequence_number"]) == (0, 0, 0)


def test_early_v2_has_one_sequence_number(table: Any, make: Any) -> None:
    schema = make("entry_schema")([])
    schema["fields"] = [f for f in schema["fields"] if f["field-id"] != 4]
    rows = [make("entry")(0), make("entry")(1, status=EXISTING, sequence_number=3)]
    table.snapshot(make("listed")(table.manifest("a.avro", rows, schema=schema)))
    assert only_leaf(table.reader()).entries["file_sequence_number"].to_pylist() == [7, 3]


def test_deletion_vector(table: Any, make: Any) -> None:
    rows = [
        make("entry")(
            0, content=1, file_format="PUFFIN", content_offset=4, content_size_in_bytes=40, referenced_data_file="d"
        ),
        make("entry")(1, content=2, equality_ids=[1, 2]),
    ]
    manifest = table.manifest("d.avro", rows, schema=make("entry_schema")([], version=3), format_version="3")
    table.snapshot(make("listed")(manifest, content=1))
    dv, equality = only_leaf(table.reader()).entries.to_pylist()
    assert dv["deletion_vector"] == {"offset": 4, "size_in_bytes": 40, "inline_content": None}
    assert (dv["file_format"], dv["referenced_file"], dv["content_type"]) == ("puffin", "d", 1)
    assert equality["deletion_vector"] is None
    assert equality["equality_ids"] == [1, 2]


def test_small_manifest_is_read_once(table: Any, make: Any) -> None:
    table.snapshot(make("listed")(table.manifest("a.avro", [make("entry")(i) for i in range(5)])))
    reader = table.reader()
    leaf = only_leaf(reader)
    assert leaf.stats(1).value_count.to_pylist() == [10, 11, 12, 13, 14]
    assert leaf.partition() is None
    only_leaf(reader, parts={"entries", "partition", "stats"})
    assert table.reads("manifest") == ["a.avro"]
    assert table.reads("manifest-list") == ["snap-77.avro"]


def test_large_manifest_decodes_what_is_asked_for(table: Any, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    decode = vars(_source)["decode"]  # not a name that the module exports

    def spy(data: Any, header: Any, reader_schema: Any, columns: list[str], location: str) -> Any:
        asked.append(columns)
        return decode(data, header, reader_schema, columns, location)

    monkeypatch.setattr(_source, "BULK_BYTES", 0)
    monkeypatch.setattr(_source, "decode", spy)
    schema = make("entry_schema")([make("optional")(1000, "p", "long")])
    rows = [make("entry")(i, partition={"p": i}) for i in range(5)]
    table.document["partition-specs"][0]["fields"] = [
        {"field-id": 1000, "name": "p", "transform": "identity", "source-id": 1}
    ]
    table.snapshot(make("listed")(table.manifest("a.avro", rows, schema=schema)))
    reader = table.reader()
    root = reader.root(current(reader))
    asked.clear()
    leaf = reader.leaf(root, 0)
    assert not {"f125", "f128", "p1000"} & set(asked[0])
    assert leaf.partition().to_pylist() == [{"1000": i} for i in range(5)]
    assert asked[1] == ["p1000"]
    leaf.stats(1)
    leaf.stats(2)
    assert set(asked[2]) == {"f108", "f109", "f110", "f137", "f125", "f128"}
    assert len(asked) == 3
    CACHE.clear()
    asked.clear()
    reader.leaf(root, 0, parts={"entries", "partition", "stats"}).stats(1)
    assert len(asked) == 1


def test_missing_manifest_is_a_problem_and_the_rest_is_shown(table: Any, make: Any) -> None:
    gone = str(table.folder / "metadata" / "gone.avro")
    table.snapshot(make("listed")(gone), make("listed")(table.manifest("a.avro", [make("entry")(1)])))
    reader = table.reader()
    missing, there = reader.leaves(reader.root(current(reader)))
    assert len(missing) == 0
    assert missing.entries.schema.equals(ENTRY_SCHEMA)
    assert [p.code for p in missing.problems] == ["file-missing"]
    assert missing.stats(1).lower.to_pylist() == []
    assert missing.partition() is None
    assert len(there) == 1
    assert [(p.code, p.where) for p in reader.problems] == [("file-missing", gone)]
    with pytest.raises(FileMissingError):
        list(table.reader(strict=True).leaves(reader.root(current(reader))))


def test_missing_manifest_list(table: Any, make: Any) -> None:
    table.snapshot()
    Path(table.document["snapshots"][0]["manifest-list"]).unlink()
    reader = table.reader()
    root = reader.root(current(reader))
    assert (len(root), root.is_root) == (0, True)
    assert [p.code for p in reader.problems] == ["file-missing"]


def test_truncated_manifest_is_salvaged(table: Any, make: Any) -> None:
    rows = [make("entry")(i) for i in range(200)]
    data = make("avro")(make("entry_schema")([]), rows, interval=2000, format_version="2")
    location = table.write("a.avro", data[: len(data) // 2])
    table.snapshot(make("listed")(location, added_files_count=200, existing_files_count=0, deleted_files_count=0))
    reader = table.reader()
    leaf = only_leaf(reader)
    names = leaf.entries["location"].to_pylist()
    assert 20 < len(names) < 180
    assert names == [f"file-{i:05d}.parquet" for i in range(len(names))]
    # the count is not flagged: the loss is already reported
    assert [p.code for p in leaf.problems] == ["file-truncated", "manifest-salvaged"]
    CACHE.clear()
    with pytest.raises(FormatError):
        only_leaf(table.reader(strict=True))


def test_foreign_file(table: Any, make: Any) -> None:
    foreign = table.write("a.avro", b"<html>403 Forbidden</html>")
    wrong = table.write(
        "b.avro", make("avro")({"type": "record", "name": "r", "fields": [make("field")(1, "a", "int")]}, [{"a": 1}])
    )
    sealed = table.write("c.avro", b"AGS1" + bytes(100))
    table.snapshot(*(make("listed")(x) for x in (foreign, wrong, sealed)))
    reader = table.reader()
    leaves = list(reader.leaves(reader.root(current(reader))))
    assert [p.code for leaf in leaves for p in leaf.problems] == ["file-corrupt", "file-corrupt", "unsupported"]


def test_list_and_manifest_mixed_up(table: Any, make: Any) -> None:
    table.snapshot()
    snap = table.document["snapshots"][0]["manifest-list"]
    table.snapshot(make("listed")(snap))
    reader = table.reader()
    assert [p.code for p in only_leaf(reader).problems][-1] == "file-corrupt"


def test_v4_dialects_are_recognized_by_their_ids(table: Any, make: Any) -> None:
    field = make("field")
    proposal = [field(134, "content_type", "int"), field(100, "location", "string")]
    tracking = {"type": "record", "name": "t", "fields": [field(0, "status", "int")]}
    row = {"content_type": 0, "location": "x"}
    a = table.write("a.avro", make("avro")({"type": "record", "name": "e", "fields": proposal}, [row]))
    draft = [field(147, "tracking", tracking), *proposal]
    b = table.write(
        "b.avro", make("avro")({"type": "record", "name": "e", "fields": draft}, [{**row, "tracking": {"status": 1}}])
    )
    table.snapshot(make("listed")(a), make("listed")(b))
    reader = table.reader()
    leaves = list(reader.leaves(reader.root(current(reader))))
    assert [leaf.dialect for leaf in leaves] == ["v4-proposal", "v4-draft"]
    assert [leaf.entries["status"].to_pylist() for leaf in leaves] == [[None], [1]]


def test_counts_and_length_are_checked(table: Any, make: Any) -> None:
    rows = [make("entry")(0), make("entry")(1, status=DELETED, snapshot_id=1)]
    manifest = table.manifest("a.avro", rows)
    table.snapshot(
        make("listed")(manifest, added_files_count=2, existing_files_count=0, deleted_files_count=1),
        make("listed")(table.manifest("b.avro", rows), manifest_length=5),
    )
    reader = table.reader()
    first, second = reader.leaves(reader.root(current(reader)))
    assert [(p.field, p.found, p.expected) for p in first.problems] == [("504 added_files_count", "2", "1")]
    size = str(Path(manifest).stat().st_size)
    assert [(p.field, p.found, p.expected) for p in second.problems] == [("501 manifest_length", "5", size)]
    assert {p.code for p in reader.problems} == {"count-mismatch"}


def test_a_manifest_that_is_listed_twice_is_a_problem(table: Any, make: Any) -> None:
    manifest = table.manifest("a.avro", [make("entry")(0)])
    table.snapshot(make("listed")(manifest), make("listed")(manifest), make("listed")(manifest + "x"))
    reader = table.reader()
    problems = reader.root(current(reader)).problems
    assert [(p.code, p.where, p.found) for p in problems] == [("file-twice", manifest, "2")]


def test_kind_and_spec_are_held_against_the_manifest(table: Any, make: Any) -> None:
    table.snapshot(
        make("listed")(table.manifest("a.avro", [make("entry")(0)], partition_spec_id="0"), content=1),
        make("listed")(table.manifest("b.avro", [make("entry")(0)], partition_spec_id="0"), partition_spec_id=3),
        make("listed")(table.manifest("c.avro", [make("entry")(0, content=1)])),
        make("listed")(table.manifest("d.avro", [make("entry")(0)], partition_spec_id="x")),
    )
    reader = table.reader()
    problems = [[(p.field, p.found) for p in leaf.problems] for leaf in reader.leaves(reader.root(current(reader)))]
    content = "517 content"
    assert problems == [
        [(content, "deletes")], [("502 partition_spec_id", "3")], [(content, "data")],
        [("partition-spec-id", "x")],
    ]  # fmt: skip


def found_in(table: Any, make: Any, *rows: Any, snapshot: int = 7, **listed: Any) -> list[tuple[str, str, str | None]]:
    """The problems of a manifest of these entries: code, the part of the place after the file, what was found."""
    manifest = table.manifest("a.avro", rows, schema=make("entry_schema")([], version=3))
    table.snapshot(make("listed")(manifest, **listed), **{"sequence-number": snapshot})
    reader = table.reader()
    only_leaf(reader)
    return [(p.code, p.where.rpartition("/")[2].partition("#")[2], p.found) for p in reader.problems]


def test_sequence_numbers_that_cannot_be(table: Any, make: Any) -> None:
    entry, code = make("entry"), "sequence-number"
    old = entry(0, status=EXISTING, snapshot_id=1, sequence_number=5, file_sequence_number=5)
    late = entry(1, status=EXISTING, snapshot_id=1, sequence_number=8, file_sequence_number=5)
    lost = entry(2, status=EXISTING, snapshot_id=1)
    gone = entry(3, status=DELETED, snapshot_id=77)
    assert found_in(table, make, old, entry(4), gone) == []  # an added one inherits, a deleted one matters to nobody
    assert found_in(table, make, old, entry(4), late) == [(code, "entry 2", "8")]
    assert found_in(table, make, old, lost) == [(code, "entry 1", None)]
    assert found_in(table, make, old, min_sequence_number=6) == [(code, "", "6")]
    assert found_in(table, make, old, snapshot=6) == [(code, "entry 0", "7")]
    assert found_in(table, make, old, lost, snapshot=0, sequence_number=0, min_sequence_number=0) == []  # from v1


def test_entries_that_contradict_themselves(table: Any, make: Any) -> None:
    entry = make("entry")
    assert found_in(table, make, entry(0, split_offsets=[4, 999]), entry(1, split_offsets=[])) == []
    past = [entry(0), entry(1, split_offsets=[4, 1001]), entry(2, split_offsets=[4, 5000])]
    assert found_in(table, make, *past) == [("split-offsets-invalid", "entry 1", "[4, 1001]")]
    assert found_in(table, make, entry(0), entry(1, record_count=-1)) == [("count-mismatch", "entry 1", "-1")]
    again = [entry(0), entry(0), entry(0, status=DELETED, snapshot_id=77)]
    assert found_in(table, make, *again) == [("file-twice", "", "file-00000.parquet")]
    assert found_in(table, make, *again[1:]) == []


def test_equality_deletes_without_columns(table: Any, make: Any) -> None:
    def delete(*ids: int, **more: Any) -> Any:
        return make("entry")(0, content=2, equality_ids=list(ids), **more)

    assert found_in(table, make, delete(1), delete(2, 1), content=1) == []
    assert found_in(table, make, delete(1), delete(), content=1) == [("equality-ids-invalid", "entry 1", "[]")]
    assert found_in(table, make, delete(1), delete(1, 9), content=1) == [("equality-ids-invalid", "entry 1", "[1, 9]")]
    assert found_in(table, make, delete(status=DELETED, snapshot_id=77), content=1) == []


def test_statistics_that_contradict_themselves(table: Any, make: Any) -> None:
    def bounds(low: int, high: int) -> dict[str, Any]:
        ends = {"lower_bounds": low, "upper_bounds": high}
        return {name: [{"key": 1, "value": end.to_bytes(8, "little")}] for name, end in ends.items()}

    nulls = {"null_value_counts": [{"key": 1, "value": 13}, {"key": 2, "value": 0}]}
    entry = make("entry")
    rows = [entry(0), entry(1, **bounds(7, 6)), entry(2, **nulls), entry(3, **nulls), entry(4, **bounds(9, 0))]
    table.snapshot(make("listed")(table.manifest("a.avro", rows)))
    reader = table.reader()
    leaf = only_leaf(reader)
    assert list(reader.problems) == []  # before anybody asks for them
    for _ in range(2):
        list(leaf.stats_of([1, 2]))
    found = sorted((p.code, p.severity, p.where.rpartition("#")[2]) for p in reader.problems)
    assert found == [("bounds-untrue", "warning", "entry 1"), ("count-mismatch", "warning", "entry 2")]


def test_null_counts_mean_unknown(table: Any, make: Any) -> None:
    table.snapshot(make("listed")(table.manifest("a.avro", [make("entry")(0)])))
    reader = table.reader()
    only_leaf(reader)
    assert list(reader.problems) == []


@pytest.fixture
def by_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """As large manifests are read, and those that are far away."""
    monkeypatch.setattr(_reader, "_FEW", 0)


def test_threads_are_for_what_is_large_or_far(table: Any, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table.snapshot(*(make("listed")(table.manifest(f"{i}.avro", [make("entry")(i)])) for i in range(3)))
    reader = table.reader()
    root = reader.root(current(reader))

    def readers() -> set[str]:
        CACHE.clear()
        seen = set()
        read = reader.storage.read

        def noting(location: str, **more: Any) -> Any:
            seen.add(threading.current_thread().name.rsplit("_", 1)[0])
            return read(location, **more)

        with monkeypatch.context() as patch:
            patch.setattr(reader.storage, "read", noting)
            assert len(list(reader.leaves(root))) == 3
        return seen

    here, elsewhere = {threading.current_thread().name}, {"iceexplore-manifests"}
    size = sum(root.entries["file_size_in_bytes"].to_pylist())
    assert readers() == here
    with monkeypatch.context() as patch:
        patch.setattr(_reader, "_FEW", size - 1)
        assert readers() == elsewhere
    with monkeypatch.context() as patch:
        patch.setattr(reader.storage, "folder", "s3://bucket/t")
        assert readers() == elsewhere


@pytest.mark.usefixtures("by_threads")
def test_leaves_come_in_order_whichever_is_read_first(table: Any, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table.snapshot(*(make("listed")(table.manifest(f"{i:02d}.avro", [make("entry")(i)])) for i in range(12)))
    reader = table.reader()
    root = reader.root(current(reader))
    read = reader.storage.read

    def slow(location: str, **more: Any) -> bytes:
        time.sleep(0.03 if location.endswith("0.avro") else 0)
        data: bytes = read(location, **more)
        return data

    monkeypatch.setattr(reader.storage, "read", slow)
    names = [leaf.entries["location"][0].as_py() for leaf in reader.leaves(root)]
    assert names == [f"file-{i:05d}.parquet" for i in range(12)]
    some = [leaf.entries["location"][0].as_py() for leaf in reader.leaves(root, [5, 2])]
    assert some == ["file-00005.parquet", "file-00002.parquet"]


@pytest.mark.usefixtures("by_threads")
def test_closed_generator_reads_no_more(table: Any, make: Any) -> None:
    table.snapshot(*(make("listed")(table.manifest(f"{i:02d}.avro", [make("entry")(i)])) for i in range(60)))
    reader = table.reader()
    leaves = reader.leaves(reader.root(current(reader)))
    next(leaves)
    leaves.close()
    time.sleep(0.3)
    assert len(table.reads("manifest")) <= 10


def test_inline_manifests_of_v1(table: Any, make: Any) -> None:
    schema = make("entry_schema")([], version=1)
    a = table.manifest(
        "a.avro", [make("entry")(0, snapshot_id=76)], schema=schema, format_version="1", partition_spec_id="3"
    )
    b = table.manifest("b.avro", [make("entry")(1, snapshot_id=77)], schema=schema, format_version="1")
    common = {"sequence-number": 0, "timestamp-ms": 1_600_000_000_000}
    table.document["format-version"] = 1
    table.document["partition-specs"].append({"spec-id": 3, "fields": []})
    table.document["snapshots"] = [
        {**common, "snapshot-id": 76, "manifests": [a]},
        {**common, "snapshot-id": 77, "parent-snapshot-id": 76, "manifests": [a, b, str(table.folder / "gone.avro")]},
    ]
    reader = table.reader()
    root = reader.root(current(reader))
    assert (root.dialect, root.is_root, root.header.format) == ("inline", True, "inline")
    rows = root.entries.to_pylist()
    assert [r["snapshot_id"] for r in rows] == [76, 77, 77]
    assert [r["status"] for r in rows] == [EXISTING, ADDED, ADDED]
    assert [r["partition_spec_id"] for r in rows] == [3, 0, 0]
    assert rows[0]["file_size_in_bytes"] == Path(a).stat().st_size
    assert rows[0]["record_count"] is None
    assert [p.code for p in root.problems] == ["file-missing"]
    assert reader.leaf(root, 1).entries["sequence_number"].to_pylist() == [0]


def test_file_without_ids_is_read_by_name(table: Any, make: Any) -> None:
    def strip(node: Any) -> Any:
        if isinstance(node, dict):
            return {k: strip(v) for k, v in node.items() if k not in ("field-id", "element-id")}
        return [strip(v) for v in node] if isinstance(node, list) else node

    with_ids = table.manifest("a.avro", [make("entry")(i) for i in range(3)])
    without = table.manifest("b.avro", [make("entry")(i) for i in range(3)], schema=strip(make("entry_schema")([])))
    table.snapshot(make("listed")(with_ids), make("listed")(without))
    reader = table.reader()
    a, b = reader.leaves(reader.root(current(reader)))
    assert [p.code for p in b.problems] == ["avro-no-field-ids"]
    assert a.entries.equals(b.entries)
    assert a.stat_maps().equals(b.stat_maps())


def test_record_that_may_be_null_and_real_maps(table: Any, make: Any) -> None:
    """Two shapes that no Java writes, but that the Avro of other writers allows."""
    schema = make("entry_schema")([])
    data = schema["fields"][-1]
    for f in data["type"]["fields"]:
        if f["name"] == "value_counts":
            f["type"] = ["null", {"type": "map", "values": "long"}]
    schema["fields"][-1] = {**data, "type": ["null", data["type"]]}
    rows = [make("entry")(i, value_counts={"1": i, "2": 7}) for i in range(3)]
    table.snapshot(make("listed")(table.manifest("a.avro", rows, schema=schema)))
    leaf = only_leaf(table.reader())
    assert leaf.entries["location"].to_pylist() == [f"file-{i:05d}.parquet" for i in range(3)]
    assert leaf.stats(1).value_count.to_pylist() == [0, 1, 2]
    assert leaf.stats(2).value_count.to_pylist() == [7, 7, 7]
    assert leaf.stats(2).lower.to_pylist() == ["a00000", "a00001", "a00002"]


def test_text_that_is_no_utf8(table: Any, make: Any) -> None:
    data = make("avro")(make("entry_schema")([]), [make("entry")(1)], codec="null", format_version="2")
    location = table.write("a.avro", data.replace(b"file-00001", b"file-\xff0001"))
    table.snapshot(make("listed")(location))
    leaf = only_leaf(table.reader())
    assert leaf.entries["location"].to_pylist() == ["file-�0001.parquet"]
    assert [(p.code, p.field) for p in leaf.problems] == [("value-undecodable", "100")]


def parquet_manifest(partitioned: bool) -> bytes:
    """A v4-java manifest in Parquet, as Java's main branch writes it: nested, with field ids."""

    def f(field_id: int, name: str, kind: pa.DataType) -> pa.Field:
        return pa.field(name, kind, metadata={"PARQUET:field_id": str(field_id)})

    counts = build.map_(f(119, "key", pa.int32()).with_nullable(False), f(120, "value", pa.int64()))
    bounds = build.map_(f(126, "key", pa.int32()).with_nullable(False), f(127, "value", pa.binary()))
    tuple_ = [f(102, "partition", pa.struct([f(1000, "day", pa.date32())]))] if partitioned else []
    data = pa.struct(
        [
            f(134, "content", pa.int32()),
            f(100, "file_path", pa.string()),
            f(101, "file_format", pa.string()),
            *tuple_,
            f(103, "record_count", pa.int64()),
            f(104, "file_size_in_bytes", pa.int64()),
            f(109, "value_counts", counts),
            f(125, "lower_bounds", bounds),
        ]
    )
    schema = pa.schema(
        [
            f(0, "status", pa.int32()),
            f(1, "snapshot_id", pa.int64()),
            f(3, "sequence_number", pa.int64()),
            f(4, "file_sequence_number", pa.int64()),
            f(2, "data_file", data),
        ]
    )
    rows = []
    for i in range(3):
        file = {
            "content": 0,
            "file_path": f"f{i}",
            "file_format": "parquet",
            "record_count": i,
            "file_size_in_bytes": 9,
        }
        file |= {"value_counts": [(1, i)], "lower_bounds": [(1, i.to_bytes(8, "little"))]}
        file |= {"partition": {"day": 19_000 + i}} if partitioned else {}
        rows.append(
            {"status": 1, "snapshot_id": None, "sequence_number": None, "file_sequence_number": None, "data_file": file}
        )
    out = io.BytesIO()
    made = pa.Table.from_pylist(rows, schema=schema).replace_schema_metadata(
        {"format-version": "4", "partition-spec-id": "0", "content": "data"}
    )
    pq.write_table(made, out)
    return out.getvalue()


@pytest.mark.parametrize("partitioned", [False, True])
def test_parquet_manifest(table: Any, make: Any, partitioned: bool) -> None:
    if partitioned:
        table.document["partition-specs"][0]["fields"] = [
            {"field-id": 1000, "name": "day", "transform": "day", "source-id": 1}
        ]
    table.snapshot(make("listed")(table.write("x-m0.parquet", parquet_manifest(partitioned))))
    reader = table.reader()
    leaf = only_leaf(reader)
    assert list(reader.problems) == []
    assert (leaf.dialect, leaf.header.format, leaf.header.content) == ("v4-java", "parquet", "data")
    assert leaf.entries["location"].to_pylist() == ["f0", "f1", "f2"]
    assert leaf.entries["sequence_number"].to_pylist() == [7, 7, 7]
    stats = leaf.stats(1)
    assert stats.lower.to_pylist() == [0, 1, 2]
    assert stats.value_count.to_pylist() == [0, 1, 2]
    assert stats.upper.to_pylist() == [None] * 3
    days = leaf.partition()
    assert (days is not None) == partitioned
    if days is not None:
        assert days.field(0).type == pa.date32()
        assert days.field(0).cast(pa.int32()).to_pylist() == [19_000, 19_001, 19_002]


def test_damaged_parquet_manifest(table: Any, make: Any) -> None:
    data = parquet_manifest(False)
    table.snapshot(make("listed")(table.write("x-m0.parquet", data[: len(data) // 2] + data[-8:])))
    assert [p.code for p in only_leaf(table.reader()).problems] == ["file-corrupt"]


def test_v4_java_in_avro_leaves_partition_out(table: Any, make: Any) -> None:
    schema = make("entry_schema")([], version=3)
    data = schema["fields"][-1]["type"]
    data["fields"] = [f for f in data["fields"] if f["field-id"] != 102]
    table.snapshot(make("listed")(table.manifest("a.avro", [make("entry")(0)], schema=schema, format_version="4")))
    leaf = only_leaf(table.reader())
    assert leaf.dialect == "v4-java"
    assert leaf.partition() is None
    assert len(leaf) == 1


def test_loose_manifest(table: Any, make: Any) -> None:
    schema = make("entry_schema")([make("optional")(1000, "p", "long")])
    location = table.write(
        "a.avro",
        make("avro")(
            schema,
            [make("entry")(i, partition={"p": i}) for i in range(2)],
            format_version="2",
            partition_spec_id="4",
            # some writers put the whole object, not the fields alone
            partition_spec=json.dumps(
                {"spec-id": 4, "fields": [{"field-id": 1000, "name": "p", "transform": "identity", "source-id": 1}]}
            ),
        ),
    )
    table.snapshot()
    reader = table.reader()
    loose = open_manifest(reader.storage, location)
    assert not loose.is_root
    assert loose.entries["snapshot_id"].to_pylist() == [None, None]
    assert loose.entries["partition_spec_id"].to_pylist() == [4, 4]
    partition = loose.partition()
    assert partition is not None
    assert build.to_pylist(partition) == [{"1000": 0}, {"1000": 1}]
    root = open_manifest(reader.storage, table.document["snapshots"][0]["manifest-list"])
    assert root.is_root
    with pytest.raises(FileMissingError):
        open_manifest(reader.storage, str(table.folder / "metadata" / "no.avro"))


@pytest.mark.parametrize("value", ["x", "", "1.5", "--3", "9" * 40])
def test_malformed_header_keys_are_tolerated(table: Any, make: Any, value: str) -> None:
    table.manifest("a.avro", [make("entry")(0)])
    location = table.manifest(
        "b.avro", [make("entry")(0)], partition_spec_id=value, schema_id=value, partition_spec=value, content=value
    )
    table.snapshot(make("listed")(location))
    reader = table.reader()
    assert open_manifest(reader.storage, location).header.spec_id is None
    assert len(only_leaf(reader)) == 1
    keys = ["partition-spec", "schema-id", "partition-spec-id", "content"]
    assert [(p.field, p.severity) for p in reader.problems] == [(key, "warning") for key in keys]


def test_files_with_equal_headers_share_them_and_count_their_memory(table: Any, make: Any) -> None:
    names = ("a.avro", "b.avro")
    table.snapshot(*(make("listed")(table.manifest(name, [make("entry")(i)])) for i, name in enumerate(names)))
    reader = table.reader()
    root = reader.root(current(reader))
    CACHE.clear()
    before = CACHE.bytes
    one, other = (
        _source.Source(reader.storage, root.entries["location"][row].as_py(), kind="manifest").parts(_source.PARTS)
        for row in range(2)
    )
    assert one["entries"].head.reader_schema is other["entries"].head.reader_schema
    assert one["entries"].head.header.schema is other["entries"].head.header.schema
    assert one["entries"].table["location"] != other["entries"].table["location"]
    # one entry of a few hundred bytes takes some tens of kilobytes, most of it for the objects of its arrays
    assert 20_000 < (CACHE.bytes - before) / 2 < 150_000
