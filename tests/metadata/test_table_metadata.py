"""Table metadata: what is read, what is filled, what is a problem, and that nothing else is ever raised."""

from __future__ import annotations

import copy
import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from iceexplore.errors import FormatError, IceexploreError, Problems, UnsupportedError
from iceexplore.metadata import (
    Ref,
    Snapshot,
    SortField,
    TableMetadata,
    format_sort_order,
    format_spec,
    in_order,
    name_mapping,
    parse_name_mapping,
    parse_sort_order,
    parse_spec,
    parse_table_metadata,
    parse_version,
    partition_type,
    schema_at,
)

LOCATION = "s3://bucket/db/t/metadata/v7.metadata.json"


def document() -> dict[str, Any]:
    """A v3 table with everything in it."""
    return {
        "format-version": 3,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": "s3://bucket/db/t",
        "last-sequence-number": 2,
        "last-updated-ms": 1700000000000,
        "last-column-id": 4,
        "next-row-id": 30,
        "current-schema-id": 1,
        "schemas": [
            {"type": "struct", "schema-id": 0,
             "fields": [{"id": 1, "name": "id", "required": True, "type": "int"},
                        {"id": 4, "name": "gone", "required": False, "type": "string"}]},
            {"type": "struct", "schema-id": 1, "identifier-field-ids": [1],
             "fields": [{"id": 1, "name": "id", "required": True, "type": "long"},
                        {"id": 2, "name": "ts", "required": False, "type": "timestamptz"},
                        {"id": 3, "name": "my col", "required": False, "type": "decimal(9, 2)"}]},
        ],
        "default-spec-id": 1,
        "partition-specs": [
            {"spec-id": 0, "fields": [{"source-id": 4, "field-id": 1000, "name": "gone", "transform": "identity"}]},
            {"spec-id": 1, "fields": [
                {"source-id": 2, "field-id": 1001, "name": "ts_day", "transform": "day"},
                {"source-id": 1, "field-id": 1002, "name": "id_bucket", "transform": "bucket[16]"},
                {"source-ids": [1, 2], "field-id": 1003, "name": "z", "transform": "zorder[4]"}]},
        ],
        "last-partition-id": 1003,
        "default-sort-order-id": 1,
        "sort-orders": [
            {"order-id": 0, "fields": []},
            {"order-id": 1, "fields": [
                {"transform": "truncate[4]", "source-id": 3, "direction": "desc", "null-order": "nulls-last"}]},
        ],
        "properties": {"owner": "me", "schema.name-mapping.default": '[{"field-id": 1, "names": ["id", "key"]}]'},
        "current-snapshot-id": 22,
        "refs": {"main": {"snapshot-id": 22, "type": "branch", "min-snapshots-to-keep": 3},
                 "old": {"snapshot-id": 11, "type": "tag", "max-ref-age-ms": 1000}},
        "snapshots": [
            {"snapshot-id": 11, "timestamp-ms": 1600000000000, "summary": {"operation": "append"},
             "manifest-list": "s3://bucket/db/t/metadata/a.avro", "schema-id": 0, "parent-snapshot-id": -1},
            {"snapshot-id": 22, "parent-snapshot-id": 11, "sequence-number": 2, "timestamp-ms": 1700000000000,
             "summary": {"operation": "overwrite", "total-records": "30"}, "schema-id": 1, "first-row-id": 0,
             "added-rows": 30, "key-id": "k", "manifest-list": "s3://bucket/db/t/metadata/b.avro", "odd": 1},
        ],
        "snapshot-log": [{"timestamp-ms": 1600000000000, "snapshot-id": 11},
                         {"timestamp-ms": 1650000000000, "snapshot-id": 99},
                         {"timestamp-ms": 1700000000000, "snapshot-id": 22}],
        "metadata-log": [{"timestamp-ms": 1600000000000, "metadata-file": "s3://bucket/db/t/metadata/v6.metadata.json"}],
        "statistics": [{"snapshot-id": 99, "statistics-path": "s3://x.stats", "file-size-in-bytes": 10,
                        "file-footer-size-in-bytes": 5,
                        "blob-metadata": [{"type": "ndv", "snapshot-id": 99, "sequence-number": 1, "fields": [1],
                                           "properties": {"ndv": "7"}}]}],
        "partition-statistics": [{"snapshot-id": 22, "statistics-path": "s3://y.parquet", "file-size-in-bytes": 20}],
        "encryption-keys": [{"key-id": "k", "encrypted-key-metadata": "AA=="}],
        "key-of-the-future": {"a": 1},
    }  # fmt: skip


def parsed(json: Any) -> tuple[TableMetadata, Problems]:
    problems = Problems()
    return parse_table_metadata(json, LOCATION, problems), problems


def test_everything_is_read() -> None:
    json = document()
    m, problems = parsed(json)
    assert not problems
    assert (m.format_version, m.location, m.last_sequence_number, m.next_row_id) == (3, "s3://bucket/db/t", 2, 30)
    assert m.raw is json
    assert m.raw["key-of-the-future"] == {"a": 1}
    assert [f.name for f in m.schema().fields] == ["id", "ts", "my col"]
    old, new = m.snapshots
    assert (old.parent_snapshot_id, old.sequence_number, old.operation) == (None, 0, "append")
    assert (new.parent_snapshot_id, new.first_row_id, new.added_rows, new.key_id) == (11, 0, 30, "k")
    assert new.raw["odd"] == 1
    assert m.snapshot() == new
    assert m.refs["main"] == Ref("main", "branch", 22, min_snapshots_to_keep=3)
    assert m.refs["old"] == Ref("old", "tag", 11, max_ref_age_ms=1000)
    assert [e.snapshot_id for e in m.snapshot_log] == [11, 99, 22]
    assert parse_version(m.metadata_log[0].metadata_file) == 6
    assert m.statistics[0].blob_metadata[0].properties == {"ndv": "7"}
    assert m.partition_statistics[0].file_size_in_bytes == 20
    assert m.encryption_keys[0]["key-id"] == "k"
    assert m.sort_orders[1].fields == (SortField("truncate[4]", (3,), "desc", "nulls-last"),)
    spec = m.spec()
    assert spec is not None
    assert spec.fields[2].source_ids == (1, 2)
    assert name_mapping(m) == [{"field-id": 1, "names": ["id", "key"]}]


def test_words_for_specs_and_orders() -> None:
    m, _ = parsed(document())
    spec, old = m.spec(1), m.spec(0)
    assert spec is not None
    assert old is not None
    assert format_spec(spec, m.schema()) == "days(ts), bucket(16, id), zorder[4](id, ts)"
    assert format_spec(old, m.schema()) == "#4"
    assert format_spec(old, m) == "gone"
    assert format_spec(parse_spec([]), m) == "unpartitioned"
    assert format_sort_order(m.sort_orders[1], m) == "truncate(4, `my col`) DESC NULLS LAST"
    assert format_sort_order(m.sort_orders[0], m) == "unsorted"
    assert str(partition_type(spec, m)) == "struct<ts_day: date, id_bucket: int, z: string>"
    # the source column is only in the older schema
    assert str(partition_type(old, m)) == "struct<gone: string>"
    dropped = parse_spec([{"source-id": 77, "name": "x", "transform": "identity"}])
    assert str(partition_type(dropped, m)) == "struct<x: unknown>"
    assert dropped.fields[0].field_id == 1000


def test_schema_at() -> None:
    m, _ = parsed(document())
    old, new = m.snapshots
    assert schema_at(m, old).schema_id == 0
    assert schema_at(m, old, "old").schema_id == 0
    assert schema_at(m, new).schema_id == 1
    assert schema_at(m, None).schema_id == 1
    m2, _ = parsed(document() | {"refs": {"b": {"snapshot-id": 11, "type": "branch"}}})
    assert schema_at(m2, m2.snapshots[0], "b").schema_id == 1
    assert set(m2.refs) == {"main", "b"}
    no_id = Snapshot(1, None, 0, 0, None, None, None, None)
    assert schema_at(m, no_id).schema_id == 1


def v1() -> dict[str, Any]:
    return {
        "format-version": 1, "location": "/t", "last-updated-ms": 1, "last-column-id": 1,
        "schema": {"type": "struct", "fields": [{"id": 1, "name": "a", "required": False, "type": "date"}]},
        "partition-spec": [{"source-id": 1, "name": "a_year", "transform": "year"},
                           {"source-id": 1, "name": "a_month", "transform": "month"}],
        "current-snapshot-id": 5,
        "snapshots": [{"snapshot-id": 5, "timestamp-ms": 1, "manifests": ["/t/m0.avro", "/t/m1.avro"]}],
    }  # fmt: skip


def test_v1_as_written_before_v2() -> None:
    m, problems = parsed(v1())
    assert not problems
    assert (m.table_uuid, m.current_schema_id, m.default_spec_id, m.last_sequence_number) == (None, 0, 0, 0)
    spec = m.spec()
    assert spec is not None
    assert [f.field_id for f in spec.fields] == [1000, 1001]
    assert m.snapshots[0].manifests == ("/t/m0.avro", "/t/m1.avro")
    assert m.snapshots[0].summary is None
    assert m.refs == {"main": Ref("main", "branch", 5)}
    assert m.sort_orders[0].order_id == 0


def test_a_manifest_list_wins_over_inline_manifests() -> None:
    json = v1()
    json["snapshots"][0]["manifest-list"] = "/t/list.avro"
    m, problems = parsed(json)
    assert not problems
    assert (m.snapshots[0].manifest_list, m.snapshots[0].manifests) == ("/t/list.avro", None)


@pytest.mark.parametrize("value", [-1, None])
def test_no_current_snapshot(value: int | None) -> None:
    json = document() | {"current-snapshot-id": value, "refs": {}, "snapshot-log": []}  # as Java removes a main branch
    m, problems = parsed(json)
    assert not problems
    assert m.current_snapshot_id is None
    assert m.snapshot() is None
    assert m.refs == {}


def test_v4_may_leave_the_location_out() -> None:
    json = document() | {"format-version": 4}
    del json["location"]
    m, problems = parsed(json)
    assert not problems
    assert m.location == "s3://bucket/db/t"


def test_v4_expressions() -> None:
    json = document() | {"format-version": 4}
    json["expressions"] = [
        {"expr-id": 101, "expr": {"transform": "bucket[4]", "source-id": 1}, "name": "b", "partition-field-id": 1001},
        {"expr-id": 102, "expr": {"transform": "day", "source-ids": [2], "partition-field-id": 1002}, "name": "d"},
    ]
    json["partition-specs"][1]["fields"] = [{"expr-id": 101}, {"expr-id": 102}]
    m, problems = parsed(json)
    assert not problems
    spec = m.spec()
    assert spec is not None
    assert format_spec(spec, m) == "bucket(4, id), days(ts)"
    assert [(f.field_id, f.name) for f in spec.fields] == [(1001, "b"), (1002, "d")]
    json["partition-specs"][1]["fields"] = [{"expr-id": 5}]
    assert [p.field for p in parsed(json)[1]] == ["expr-id"]


@pytest.mark.parametrize(
    ("path", "value", "where", "field"),
    [
        (["current-schema-id"], 9, "", "current-schema-id"),
        (["default-spec-id"], 9, "", "default-spec-id"),
        (["default-sort-order-id"], 9, "", "default-sort-order-id"),
        (["current-snapshot-id"], 11, "#ref main", "current-snapshot-id"),
        (["refs", "old", "snapshot-id"], 9, "#ref old", "snapshot-id"),
        (["refs", "old", "type"], "twig", "#ref old", "type"),
        (["schemas", 1, "fields", 2, "id"], 1, "#schema 1", "id"),
        (["snapshots", 1, "snapshot-id"], True, "", "snapshot-id"),
        (["snapshots", 1, "timestamp-ms"], "x", "#snapshot 22", "timestamp-ms"),
        (["snapshots", 1, "manifest-list"], None, "#snapshot 22", "manifest-list"),
        (["snapshots", 1, "sequence-number"], 2**63, "#snapshot 22", "sequence-number"),
        (["snapshots", 1, "summary"], [], "#snapshot 22", "summary"),
        (["table-uuid"], 3, "", "table-uuid"),
        (["table-uuid"], None, "", "table-uuid"),
        (["next-row-id"], None, "", "next-row-id"),
        (["last-column-id"], 2**31, "", "last-column-id"),
        (["last-updated-ms"], False, "", "last-updated-ms"),
        (["format-version"], None, "", "format-version"),
        (["format-version"], -2, "", "format-version"),
        (["snapshots"], {}, "", "snapshots"),
        (["properties"], [], "", "properties"),
        (["sort-orders", 1, "fields", 0, "direction"], "up", "", "direction"),
        (["statistics", 0, "statistics-path"], None, "", "statistics-path"),
        (["encryption-keys", 0, "key-id"], 1, "", "key-id"),
        (["metadata-log", 0], 1, "", "metadata-log entry"),
        (["partition-specs", 1, "fields", 0, "source-id"], None, "#spec 1", "source-id"),
        (["partition-specs", 1, "fields", 1, "field-id"], 1001, "#spec 1", "field-id"),
        (["snapshots", 1, "schema-id"], 9, "#snapshot 22", "schema-id"),
        (["schemas", 1, "type"], None, "#schema 1", "type"),
        (["snapshots", 0, "parent-snapshot-id"], 22, "#snapshot 11", "parent-snapshot-id"),
        (["snapshots", 1, "parent-snapshot-id"], 22, "#snapshot 22", "parent-snapshot-id"),
        (["snapshots", 1, "sequence-number"], 3, "#snapshot 22", "sequence-number"),
        (["next-row-id"], 29, "#snapshot 22", "next-row-id"),
    ],
)  # fmt: skip
def test_one_fault_is_one_error(path: list[Any], value: Any, where: str, field: str) -> None:
    json = document()
    target = json
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    m, problems = parsed(json)
    assert isinstance(m, TableMetadata)
    found = [p for p in problems if (p.where, p.field) == (LOCATION + where, field)]
    assert found, list(problems)
    assert {p.severity for p in problems} == {"error"}
    assert {p.code for p in problems} == {"metadata-invalid"}
    with pytest.raises(FormatError):
        parse_table_metadata(json, LOCATION, Problems(strict=True))


@pytest.mark.parametrize(
    ("path", "value", "where", "field"),
    [
        (["snapshots", 0, "sequence-number"], 2, "#snapshot 22", "sequence-number"),  # the parent's
        (["snapshot-log", 0, "timestamp-ms"], 1650000060001, "", "snapshot-log"),
        (["metadata-log", 0, "metadata-file"], LOCATION, "", "metadata-log"),
    ],
)
def test_what_is_suspicious_is_a_warning(path: list[Any], value: Any, where: str, field: str) -> None:
    json = document()
    target = json
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    _, problems = parsed(json)
    assert [(p.severity, p.where, p.field) for p in problems] == [("warning", LOCATION + where, field)]


@pytest.mark.parametrize("prefix", ["file:", "file://", ""])
def test_a_log_that_lists_its_own_file_however_it_is_spelled(prefix: str) -> None:
    json, own = document(), "/w/t/metadata/v7.metadata.json"
    json["metadata-log"][0]["metadata-file"] = prefix + own
    problems = Problems()
    parse_table_metadata(json, own, problems)
    assert [(p.field, p.found) for p in problems] == [("metadata-log", prefix + own)]


def test_sound_histories_are_no_problem() -> None:
    json = document()
    json["snapshot-log"][0]["timestamp-ms"] = 1650000060000  # clocks differ by a minute
    json["snapshots"][1]["parent-snapshot-id"] = 99  # expired
    _, problems = parsed(json)
    assert list(problems) == []
    old = document() | {"format-version": 1}
    old["snapshots"][1]["sequence-number"] = 9  # v1 has none
    assert not parsed(old)[1]


def test_numbers_of_many_snapshots_are_one_problem() -> None:
    json = document() | {"last-sequence-number": 1, "next-row-id": 5}
    later = {"snapshot-id": 33, "parent-snapshot-id": 22, "sequence-number": 3}
    json["snapshots"].append(json["snapshots"][1] | later)
    _, problems = parsed(json)
    assert [(p.where.rpartition("#")[2], p.field) for p in problems] == [
        ("snapshot 33", "sequence-number"), ("snapshot 22", "next-row-id")
    ]  # fmt: skip
    assert all("one of 2 such" in p.text for p in problems)


def test_a_long_cycle_is_one_problem_and_soon_found() -> None:
    json = document() | {"last-sequence-number": 0}
    one = {"timestamp-ms": 1, "manifest-list": "x", "schema-id": 1, "summary": {}}
    json["snapshots"] += [{**one, "snapshot-id": 100 + i, "parent-snapshot-id": 101 + i % 5000} for i in range(5001)]
    json["snapshots"][1]["sequence-number"] = 0
    _, problems = parsed(json)
    (found,) = problems
    assert found.where.endswith("#snapshot 101") and "through 4999 others" in found.text


def test_a_missing_current_snapshot_is_reported_once() -> None:
    json = document() | {"current-snapshot-id": 9}
    del json["refs"]
    m, problems = parsed(json)
    assert [p.field for p in problems] == ["current-snapshot-id"]
    assert m.snapshot() is None


def test_missing_keys_are_reported_together() -> None:
    json = document()
    for key in ("schemas", "sort-orders", "table-uuid"):
        del json[key]
    _, problems = parsed(json)
    texts = [p.text for p in problems if "lacks the required keys" in p.text]
    assert texts == ["table metadata v3 lacks the required keys table-uuid, schemas, sort-orders"]


def test_numbers_as_strings_are_reported_and_used() -> None:
    json = document() | {"last-column-id": "4", "last-updated-ms": 1.7e12}
    m, problems = parsed(json)
    assert (m.last_column_id, m.last_updated_ms) == (4, 1_700_000_000_000)
    assert [p.field for p in problems] == ["last-updated-ms", "last-column-id"]


def test_unsigned_snapshot_ids_still_find_their_snapshot() -> None:
    text = json.dumps(document()).replace('-id": 22', '-id": 9876543210123456789')
    m, problems = parsed(json.loads(text))
    assert problems
    assert m.current_snapshot_id == 9876543210123456789 - 2**64
    snapshot = m.snapshot()
    assert snapshot is not None
    assert m.snapshot(9876543210123456789) is snapshot
    assert m.snapshot(snapshot.snapshot_id) is snapshot


def test_the_rest_of_a_damaged_schema_is_shown() -> None:
    json = document()
    json["schemas"][1]["fields"] += [{"name": "no id", "required": True, "type": "int"}, 7]
    json["schemas"][0] = "no schema"
    m, problems = parsed(json)
    assert [f.name for f in m.schema().fields] == ["id", "ts", "my col"]
    assert [s.schema_id for s in m.schemas] == [1]
    assert len(problems) == 4  # and snapshot 11 names schema 0


def test_a_schema_nested_too_deeply_is_left_out() -> None:
    nested: Any = "int"
    for i in range(300):
        nested = {"type": "list", "element-id": i + 10, "element": nested, "element-required": False}
    json = document()
    json["schemas"][1]["fields"][0]["type"] = nested
    m, problems = parsed(json)
    assert [s.schema_id for s in m.schemas] == [0]
    assert "nested deeper" in next(iter(problems)).text


def test_warnings_do_not_stop_strict_reading() -> None:
    json = document()
    json["properties"] = {"a": 1, "schema.name-mapping.default": '{"fields": [{"field-id": 1, "names": ["a"]}]}'}
    problems = Problems(strict=True)
    m = parse_table_metadata(json, LOCATION, problems)
    assert [p.severity for p in problems] == ["warning", "warning"]
    assert m.properties["a"] == "1"
    assert name_mapping(m) == [{"field-id": 1, "names": ["a"]}]


@pytest.mark.parametrize(
    "text", ["", "3", "{}", '[{"names": 3}]', '[{"names": ["a"], "field-id": true}]', "[" * 10_000, '[{"fields": 1}]']
)
def test_broken_name_mappings(text: str) -> None:
    with pytest.raises(FormatError):
        parse_name_mapping(text)
    m, problems = parsed(document() | {"properties": {"schema.name-mapping.default": text}})
    assert name_mapping(m) is None
    assert [p.severity for p in problems] == ["warning"]


@pytest.mark.parametrize("json", [None, [], 3, "x", {}, {"a": 1}, {"view-uuid": "x", "format-version": 1}])
def test_what_is_no_table_is_refused(json: Any) -> None:
    with pytest.raises(FormatError) as caught:
        parsed(json)
    assert caught.value.code == "metadata-invalid"
    assert caught.value.location == LOCATION


@pytest.mark.parametrize("version", [5, 42, 2**31])
def test_versions_of_the_future_are_refused(version: int) -> None:
    with pytest.raises(UnsupportedError, match=rf"format-version {version} .* reads 1 to 4"):
        parsed(document() | {"format-version": version})


def test_a_version_that_is_no_number_is_inferred_from_the_keys() -> None:
    m, problems = parsed(document() | {"format-version": 2**70})
    assert m.format_version == 3
    assert [p.field for p in problems] == ["format-version"]


def test_a_stub_without_version_or_schema_is_shown() -> None:
    """BigQuery's v0.metadata.json."""
    m, problems = parsed({"properties": {"bigquery-table-id": "x"}, "current-snapshot-id": -1})
    assert (m.format_version, m.schemas, m.snapshots, m.current_snapshot_id) == (1, (), (), None)
    assert m.location == "s3://bucket/db/t"
    assert len(problems) == 1


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("v3.metadata.json", 3),
        ("s3://b/t/metadata/v12.gz.metadata.json", 12),
        ("v12.metadata.json.gz", 12),
        ("C:\\t\\metadata\\v4.metadata.json", 4),
        ("00003-8b2c-77.metadata.json", 3),
        ("a/00017-x.gz.metadata.json", 17),
        ("00017-x.metadata.json.gz", 17),
        ("v1749025517.metadata.json", 1749025517),
        ("v2.zstd.metadata.json", 2),
        ("vfinal.metadata.json", None),
        ("v3.metadata.json.crc", None),
        ("v3/metadata.json", None),
        ("metadata.json", None),
        (".v3.metadata.json", None),
        ("v" + "9" * 5000 + ".metadata.json", None),
    ],
)
def test_parse_version(name: str, version: int | None) -> None:
    assert parse_version(name) == version


def test_parts_alone_are_strict() -> None:
    with pytest.raises(FormatError):
        parse_spec([{"name": "x"}])
    with pytest.raises(FormatError):
        parse_sort_order({"order-id": "1", "fields": []})
    whole = {"spec-id": 4, "fields": [{"source-id": 1, "field-id": 1000, "name": "x", "transform": "void"}]}
    assert parse_spec(whole).spec_id == 4
    assert parse_spec(whole["fields"], 4) == parse_spec(whole)
    assert parse_spec(whole).is_unpartitioned


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(["struct", "long", "decimal(99,-1)", "fixed[99999999999]", "-1", "\ud800"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["type", "fields", "id", "name", "x"]) | st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


def places(json: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = json.items() if isinstance(json, dict) else enumerate(json) if isinstance(json, list) else ()
    return [path] + [p for key, value in items for p in places(value, (*path, key))]


PLACES = places(document())


@given(st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from(["set", "drop", "twice"]), ANY_JSON), max_size=4))
def test_any_mutation_gives_metadata_or_an_error_of_ours(mutations: list[tuple[tuple[Any, ...], str, Any]]) -> None:
    json: Any = document()
    for path, how, value in mutations:
        if not path:
            json = value if how == "set" else json
            continue
        try:
            target = json
            for step in path[:-1]:
                target = target[step]
            if how == "set":
                target[path[-1]] = copy.deepcopy(value)
            elif how == "drop":
                del target[path[-1]]
            else:
                target.append(copy.deepcopy(target[path[-1]]))
        except (KeyError, IndexError, TypeError, AttributeError):
            continue  # an earlier mutation took the place away
    try:
        m, problems = parsed(json)
    except IceexploreError:
        return
    # what was read can be used
    list(m.schema().walk())
    m.all_fields()
    m.snapshot()
    name_mapping(m)
    for spec in m.partition_specs:
        format_spec(spec, m)
        partition_type(spec, m)
    for order in m.sort_orders:
        format_sort_order(order, m)
    for snapshot in m.snapshots:
        schema_at(m, snapshot)
        assert -(2**63) <= snapshot.snapshot_id < 2**63
    str(problems.to_records())


def test_records_show_themselves_in_few_words() -> None:
    m, _ = parsed(document())
    assert repr(m) == (
        "<TableMetadata v3 of s3://bucket/db/t: 2 schemas, 2 partition specs, 2 sort orders, 2 snapshots, 2 refs>"
    )
    assert (
        repr(m.spec()) == "<PartitionSpec 1: days(#2) as ts_day, bucket(16, #1) as id_bucket, zorder[4](#1, #2) as z>"
    )
    assert repr(m.sort_orders) == "(<SortOrder 0: unsorted>, <SortOrder 1: truncate(4, #3) DESC NULLS LAST>)"
    line = "2023-11-14 22:13:20.000 UTC, sequence number 2, parent 11"
    assert repr(m.snapshot()) == f"<Snapshot 22: overwrite, {line}>"
    assert "total-records  30" in str(m.snapshot())
    snapshot, schema = m.snapshot(), m.schema()
    assert snapshot is not None
    assert "total-records" in snapshot._repr_html_() and "decimal(9,2)" in schema._repr_html_()
    assert [line.split() for line in repr(schema).splitlines()[-3:]] == [
        ["1", "id", "long", "required"], ["2", "ts", "timestamptz"], ["3", "my", "col", "decimal(9,2)"]
    ]  # fmt: skip


def test_what_shows_itself_is_escaped_and_ends() -> None:
    hostile = "\x1b[2J<script>\u202e"
    fields = [{"id": i, "name": f"{hostile}{i}", "required": False, "type": "int"} for i in range(1, 3001)]
    json = document() | {"schemas": [{"type": "struct", "schema-id": 1, "fields": fields}]}
    json["snapshots"][1]["summary"] = {"operation": hostile, **{f"{hostile}{i}": "v" * 5000 for i in range(3000)}}
    json["partition-specs"][1]["fields"] = [
        {"source-id": i, "field-id": 1000 + i, "name": f"{hostile}{i}", "transform": "identity"} for i in range(1, 3001)
    ]
    m, _ = parsed(json)
    snapshot, schema = m.snapshot(), m.schema()
    assert snapshot is not None
    for text in (*map(repr, (m, schema, snapshot, m.spec())), str(snapshot)):
        assert "\x1b" not in text and "\u202e" not in text and text.count("\n") < 250
    for html in (schema._repr_html_(), snapshot._repr_html_()):
        assert "<script>" not in html and len(html) < 2_000_000


def test_a_thousand_problems_are_not_printed_at_once() -> None:
    from iceexplore.errors import problem

    found = Problems(problem("file-missing", f"f{i}", "It is gone.") for i in range(1000))
    assert repr(found).count("\n") == 50 and repr(found).endswith("… 950 more of 1,000: list(...) returns all of them")


def test_of_one_millisecond_parents_come_first() -> None:
    def made(number: int, parent: int | None, ms: int, sequence: int = 0) -> Snapshot:
        return Snapshot(number, parent, sequence, ms, None, (), None, None)

    def ids(*snapshots: Snapshot, **how: Any) -> list[int]:
        return [s.snapshot_id for s in in_order(snapshots, **how)]

    assert ids(made(1, 2, 5), made(2, 3, 5), made(3, None, 5), made(4, 1, 4)) == [4, 3, 2, 1]
    assert ids(made(1, 2, 5, 7), made(2, 3, 5, 8)) == [1, 2]  # a number says more
    assert ids(made(1, 2, 3, 8), made(2, None, 5, 7), by_number=True) == [2, 1]
    assert sorted(ids(made(1, 2, 5), made(2, 1, 5))) == [1, 2]  # a cycle
    long = [made(i, i + 1, 5) for i in range(20_000)]
    assert ids(*long) == list(range(20_000))[::-1]
