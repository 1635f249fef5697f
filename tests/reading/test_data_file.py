"""Data files as a schema sees them: types, evolution, name mappings, defaults, partition values, row lineage."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.reading import FILE, LAST_UPDATED, ROW_ID, SPEC_ID, pruned, read_data_file
from tests.helpers.tables.data_table import entry, field, listed, mapped, put, read, stored, struct, table_of

UTC = dt.UTC
MORNING = dt.datetime(2024, 5, 6, 7, 8, 9, 123456)
UUID = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")

CASES: dict[str, tuple[pa.Array, Any, list[Any], dict[str, Any]]] = {
    "int to long": (pa.array([1, None], pa.int32()), "long", [1, None], {}),
    "short to int": (pa.array([1, None], pa.int16()), "int", [1, None], {}),
    "float to double": (pa.array([1.5, None], pa.float32()), "double", [1.5, None], {}),
    "wider decimal": (pa.array([Decimal("1.50")], pa.decimal128(9, 2)), "decimal(18,2)", [Decimal("1.50")], {}),
    "decimal in bytes": (pa.array([Decimal("-1.50")], pa.decimal128(20, 2)), "decimal(20,2)", [Decimal("-1.50")], {}),
    "decimal as int32": (
        pa.array([Decimal("-1.50")], pa.decimal128(9, 2)), "decimal(9,2)", [Decimal("-1.50")],
        {"store_decimal_as_integer": True},
    ),
    "decimal as int64": (
        pa.array([Decimal("-1.50")], pa.decimal128(18, 2)), "decimal(30,2)", [Decimal("-1.50")],
        {"store_decimal_as_integer": True},
    ),
    "date to timestamp": (pa.array([dt.date(2024, 5, 6)]), "timestamp", [dt.datetime(2024, 5, 6)], {}),
    "date to timestamp_ns": (pa.array([dt.date(2024, 5, 6)]), "timestamp_ns", ["2024-05-06"], {}),
    "time in ms": (pa.array([dt.time(7, 8, 9, 123000)], pa.time32("ms")), "time", [dt.time(7, 8, 9, 123000)], {}),
    "time in ns": (pa.array([dt.time(7, 8, 9, 123456)], pa.time64("ns")), "time", [dt.time(7, 8, 9, 123456)], {}),
    "timestamp in ms": (
        pa.array([MORNING.replace(microsecond=123000)], pa.timestamp("ms")), "timestamp",
        [MORNING.replace(microsecond=123000)], {},
    ),
    "timestamp in ns": (pa.array([MORNING], pa.timestamp("ns")), "timestamp", [MORNING], {}),
    "timestamp as INT96": (
        pa.array([MORNING], pa.timestamp("us")), "timestamp", [MORNING], {"use_deprecated_int96_timestamps": True}
    ),
    "timestamp as INT96, far out": (
        pa.array([dt.datetime(9999, 1, 1)], pa.timestamp("us")), "timestamp", [dt.datetime(9999, 1, 1)],
        {"use_deprecated_int96_timestamps": True},
    ),
    "timestamp_ns": (pa.array([1], pa.timestamp("ns")), "timestamp_ns", ["1970-01-01T00:00:00.000000001"], {}),
    "timestamptz": (
        pa.array([MORNING.replace(tzinfo=UTC)], pa.timestamp("us", "UTC")), "timestamptz",
        [MORNING.replace(tzinfo=UTC)], {},
    ),
    "timestamptz stored without zone": (
        pa.array([MORNING], pa.timestamp("us")), "timestamptz", [MORNING.replace(tzinfo=UTC)], {}
    ),
    "uuid": (pa.ExtensionArray.from_storage(pa.uuid(), pa.array([UUID.bytes, None], pa.binary(16))), "uuid",
             [UUID.bytes, None], {}),
    "uuid as fixed": (pa.array([UUID.bytes], pa.binary(16)), "uuid", [UUID.bytes], {}),
    "fixed": (pa.array([b"abc", None], pa.binary(3)), "fixed[3]", [b"abc", None], {}),
    "string in bytes": (pa.array([b"abc", None], pa.binary()), "string", ["abc", None], {}),
    "large string": (pa.array(["abc", None], pa.large_string()), "string", ["abc", None], {}),
    "string view": (pa.array(["abc", None], pa.string_view()), "string", ["abc", None], {}),
    "dictionary": (pa.array(["abc", None]).dictionary_encode(), "string", ["abc", None], {}),
    "large list": (pa.array([[1], None, []], pa.large_list(pa.int32())), listed(9, "long"), [[1], None, []], {}),
    "binary": (pa.array([b"\xff", None], pa.binary()), "binary", [b"\xff", None], {}),
    "geometry": (pa.array([b"\x01\x01", None], pa.binary()), "geometry", [b"\x01\x01", None], {}),
    "unknown": (pa.array([None, None], pa.null()), "unknown", [None, None], {}),
    "unknown to int": (pa.array([None, None], pa.null()), "int", [None, None], {}),
    "boolean": (pa.array([True, None]), "boolean", [True, None], {}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("nested", [False, True])
def test_types_come_as_the_schema_has_them(tmp_path: Path, case: str, nested: bool) -> None:
    array, kind, wanted, how = CASES[case]
    if nested:
        inner = pa.StructArray.from_arrays([array], fields=[stored(2, "was", array.type)])
        t = table_of(tmp_path, [field(1, "s", struct(field(2, "x", kind)))])
        data = pa.Table.from_arrays([inner], schema=pa.schema([stored(1, "s", inner.type)]))
    else:
        t = table_of(tmp_path, [field(1, "x", kind)])
        data = pa.Table.from_arrays([array], schema=pa.schema([stored(1, "was", array.type)]))
    location = put(tmp_path, data, store_schema="large" in case or "dict" in case or "view" in case, **how)
    rows = read(t, entry(location, len(array)))
    found = [row["s"]["x"] if nested else row["x"] for row in rows]
    if wanted and isinstance(wanted[0], str) and "timestamp" in str(kind):
        found = [np.datetime64(v.value if hasattr(v, "value") else v, "ns") for v in found]
        wanted = [np.datetime64(v, "ns") for v in wanted]
    assert found == wanted


def test_columns_go_by_id_at_every_depth(tmp_path: Path) -> None:
    point = pa.struct([stored(4, "x", pa.int32()), stored(5, "y", pa.int32())])
    old = pa.schema([
        stored(1, "a", pa.int64()),
        stored(2, "b", pa.string()),
        stored(3, "points", pa.list_(stored(6, "element", point))),
        stored(7, "m", build.map_(stored(8, "key", pa.string(), nullable=False), stored(9, "value", point))),
    ])  # fmt: skip
    rows = [
        {"a": 1, "b": "one", "points": [{"x": 1, "y": 2}, None], "m": [("k", {"x": 3, "y": 4}), ("l", None)]},
        {"a": None, "b": None, "points": None, "m": None},
        {"a": 3, "b": "three", "points": [], "m": []},
    ]
    location = put(tmp_path, pa.Table.from_pylist(rows, schema=old), row_group_size=2)  # type: ignore[arg-type]
    # b renamed to a; a dropped and added again; y is x; x gone, z new with a default; the map's values cut
    t = table_of(tmp_path, [
        field(10, "b", "long", **{"initial-default": 7}),
        field(3, "places", listed(6, struct(
            field(11, "z", "string", **{"initial-default": "here"}), field(5, "x", "long")))),
        field(2, "a", "string"),
        field(7, "m", mapped(8, "string", 9, struct(field(4, "first", "int")))),
        field(12, "s", struct(field(13, "inner", "int", **{"initial-default": 5}))),
        field(14, "req", "int", required=True),
    ])  # fmt: skip
    found = read(t, entry(location, 3))
    assert found == [
        {"b": 7, "places": [{"z": "here", "x": 2}, None], "a": "one", "m": [("k", {"first": 3}), ("l", None)],
         "s": None, "req": None},
        {"b": 7, "places": None, "a": None, "m": None, "s": None, "req": None},
        {"b": 7, "places": [], "a": "three", "m": [], "s": None, "req": None},
    ]  # fmt: skip
    assert read(t, entry(location, 3), row_groups=[1]) == found[2:]
    assert read(t, entry(location, 3), batch_rows=1) == found
    only = pruned(t._state.schema.fields, {2})
    assert read(t, entry(location, 3), only) == [{"a": r["a"]} for r in found]
    assert read(t, entry(location, 3), []) == [{}, {}, {}]


def test_a_struct_without_stored_fields_is_null_where_the_file_says(tmp_path: Path) -> None:
    kind = pa.struct([stored(2, "x", pa.int32())])
    data = pa.table([pa.array([{"x": 1}, None], kind)], schema=pa.schema([stored(1, "s", kind)]))
    t = table_of(tmp_path, [field(1, "s", struct(field(3, "new", "int", **{"initial-default": 4})))])
    assert read(t, entry(put(tmp_path, data), 2)) == [{"s": {"new": 4}}, {"s": None}]


DEFAULTS = [
    ("boolean", True, True), ("int", 3, 3), ("long", 3, 3), ("float", 1.5, 1.5), ("double", 1.5, 1.5),
    ("decimal(9,2)", "1.50", Decimal("1.50")), ("date", "2024-05-06", dt.date(2024, 5, 6)),
    ("time", "07:08:09.123456", dt.time(7, 8, 9, 123456)), ("timestamp", "2024-05-06T07:08:09.123456", MORNING),
    ("timestamptz", "2024-05-06T07:08:09.123456+00:00", MORNING.replace(tzinfo=UTC)), ("string", "é", "é"),
    ("uuid", str(UUID), UUID.bytes), ("fixed[2]", "0aff", b"\x0a\xff"), ("binary", "0aff", b"\x0a\xff"),
]  # fmt: skip


def test_added_columns_have_their_initial_default(tmp_path: Path) -> None:
    fields = [field(i + 2, f"c{i}", kind, **{"initial-default": d}) for i, (kind, d, _) in enumerate(DEFAULTS)]
    nanos = field(90, "ns", "timestamp_ns", **{"initial-default": "2024-05-06T07:08:09.123456789"})
    t = table_of(tmp_path, [field(1, "id", "int"), *fields, nanos, field(91, "s", struct(*[
        {**f, "id": f["id"] + 100} for f in fields]), **{"initial-default": {}})])  # fmt: skip
    data = pa.table([pa.array([1, 2], pa.int32())], schema=pa.schema([stored(1, "id", pa.int32())]))
    table = pa.concat_tables(read_data_file(t._state, entry(put(tmp_path, data), 2), t._state.schema.fields))
    for i, (_, _, wanted) in enumerate(DEFAULTS):
        assert table[f"c{i}"].to_pylist() == [wanted, wanted]
        assert [v[f"c{i}"] for v in build.to_pylist(table["s"])] == [wanted, wanted]
    assert table["ns"].cast(pa.int64()).to_pylist() == [1714979289123456789] * 2


# Files without ids ---------------------------------------------------------------------------------------------------

PLAIN = pa.table({
    "id": pa.array([1, 2]), "s": pa.array([{"a": 1, "b": "x"}, None]), "l": pa.array([[{"a": 5}], []]),
    "m": pa.array([[("k", {"a": 6})], []], pa.map_(pa.string(), pa.struct([("a", pa.int64())]))),
})  # fmt: skip
NESTED = [
    field(1, "key", "long"),
    field(2, "s", struct(field(3, "a", "long"), field(4, "c", "string"))),
    field(5, "l", listed(6, struct(field(7, "a", "long")))),
    field(8, "m", mapped(9, "string", 10, struct(field(11, "z", "long")))),
]
MAPPING = [
    {"field-id": 1, "names": ["id", "key"]},
    {"field-id": 2, "names": ["s"], "fields": [{"names": ["a"]}, {"field-id": 4, "names": ["b", "c"]}]},
    {"field-id": 5, "names": ["l"], "fields": [
        {"field-id": 6, "names": ["element"], "fields": [{"field-id": 7, "names": ["a"]}]}]},
    {"field-id": 8, "names": ["m"], "fields": [
        {"field-id": 9, "names": ["key"]},
        {"field-id": 10, "names": ["value"], "fields": [{"field-id": 11, "names": ["a", "z"]}]}]},
]  # fmt: skip


def test_a_name_mapping_gives_ids_at_every_depth(tmp_path: Path) -> None:
    t = table_of(tmp_path, NESTED, properties={"schema.name-mapping.default": json.dumps(MAPPING)})
    location = put(tmp_path, PLAIN)
    assert read(t, entry(location, 2)) == [
        {"key": 1, "s": {"a": None, "c": "x"}, "l": [{"a": 5}], "m": [("k", {"z": 6})]},
        {"key": 2, "s": None, "l": [], "m": []},
    ]
    assert not t.problems


def test_without_a_mapping_names_are_those_of_the_schema_and_that_is_a_problem(tmp_path: Path) -> None:
    t = table_of(tmp_path, NESTED)
    assert read(t, entry(put(tmp_path, PLAIN), 2))[0] == {
        "key": None, "s": {"a": 1, "c": None}, "l": [{"a": 5}], "m": [("k", {"z": None})]
    }  # fmt: skip
    assert [p.code for p in t.problems] == ["data-no-field-ids"]


def test_a_mapping_that_contradicts_the_schema_counts_as_none(tmp_path: Path) -> None:
    wrong = [{"field-id": 1, "names": ["id"]}, {"field-id": 3, "names": ["s"]}]
    t = table_of(tmp_path, NESTED, properties={"schema.name-mapping.default": json.dumps(wrong)})
    assert read(t, entry(put(tmp_path, PLAIN), 2))[0]["s"] == {"a": 1, "c": None}
    assert {p.code for p in t.problems} == {"metadata-invalid", "data-no-field-ids"}


def test_a_mapping_names_columns_without_an_id_beside_others(tmp_path: Path) -> None:
    schema = pa.schema([stored(1, "x", pa.int64()), stored(None, "y", pa.int64()), stored(None, "x2", pa.int64())])
    data = pa.table([pa.array([1]), pa.array([2]), pa.array([3])], schema=schema)
    mapping = [{"field-id": 1, "names": ["x2"]}, {"field-id": 2, "names": ["y"]}]
    fields = [field(1, "x", "long"), field(2, "y", "long")]
    t = table_of(tmp_path, fields, properties={"schema.name-mapping.default": json.dumps(mapping)})
    assert read(t, entry(put(tmp_path, data), 1)) == [{"x": 1, "y": 2}]


# Partition values, lineage, places -----------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", [True, False])
def test_identity_values_replace_columns_that_the_file_lacks(tmp_path: Path, ids: bool) -> None:
    fields = [
        field(1, "id", "long"), field(2, "day", "string", **{"initial-default": "never"}),
        field(3, "s", struct(field(4, "region", "string"), field(5, "x", "int"))), field(6, "ts", "timestamp"),
    ]  # fmt: skip
    spec = [
        {"source-id": 2, "transform": "identity", "name": "day"},
        {"source-id": 4, "transform": "identity", "name": "s.region"},
        {"source-id": 1, "transform": "bucket[4]", "name": "b"},
        {"source-id": 6, "transform": "day", "name": "ts_day"},
    ]
    t = table_of(tmp_path, fields, spec=spec)
    given = {"1000": "mon", "1001": "eu", "1002": 3, "1003": dt.date(2024, 1, 1)}
    tuple_ = pa.array([given], pa.struct([("1000", pa.string()), ("1001", pa.string()), ("1002", pa.int32()),
                                          ("1003", pa.date32())]))  # fmt: skip
    data = pa.table([pa.array([1])], schema=pa.schema([stored(1 if ids else None, "id", pa.int64())]))
    found = read(t, entry(put(tmp_path, data), 1, partition=tuple_))
    assert found == [{"id": 1, "day": "mon", "s": {"region": "eu", "x": None}, "ts": None}]
    # A value in the file wins over the tuple; a null in the tuple is the value, not the default.
    both = pa.table([pa.array([1]), pa.array(["file"])],
                    schema=pa.schema([stored(1, "id", pa.int64()), stored(2, "day", pa.string())]))  # fmt: skip
    assert read(t, entry(put(tmp_path, both), 1, partition=tuple_))[0]["day"] == "file"
    nothing = pa.array([dict.fromkeys(given)], tuple_.type)
    assert read(t, entry(put(tmp_path, data, "n.parquet"), 1, partition=nothing))[0]["day"] is None
    assert read(t, entry(put(tmp_path, data, "n.parquet"), 1))[0]["day"] == "never"


@pytest.mark.parametrize("mapped_names", [True, False])
def test_identity_values_come_before_what_a_name_finds(tmp_path: Path, mapped_names: bool) -> None:
    fields = [field(1, "id", "long"), field(2, "day", "string"),
              field(3, "s", struct(field(4, "region", "string"), field(5, "x", "long")))]  # fmt: skip
    spec = [{"source-id": 2, "transform": "identity", "name": "day"},
            {"source-id": 4, "transform": "identity", "name": "s.region"}]  # fmt: skip
    mapping = [{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["day"]},
               {"field-id": 3, "names": ["s"], "fields": [{"field-id": 4, "names": ["region"]},
                                                          {"field-id": 5, "names": ["x"]}]}]  # fmt: skip
    properties = {"schema.name-mapping.default": json.dumps(mapping)} if mapped_names else None
    t = table_of(tmp_path, fields, spec=spec, properties=properties)
    tuple_ = pa.array([{"1000": "mon", "1001": "eu"}], pa.struct([("1000", pa.string()), ("1001", pa.string())]))
    data = pa.table({"id": [1], "day": ["file"], "s": [{"region": "file", "x": 7}]})
    found = read(t, entry(put(tmp_path, data), 1, partition=tuple_))
    assert found == [{"id": 1, "day": "mon", "s": {"region": "eu", "x": 7}}]
    assert read(t, entry(put(tmp_path, data), 1)) == [{"id": 1, "day": "file", "s": {"region": "file", "x": 7}}]


WRONG: dict[str, tuple[pa.Array, Any]] = {
    "double under float": (pa.array([1e300]), "float"),
    "double under float, that fits": (pa.array([1.5]), "float"),
    "int under string": (pa.array([5], pa.int32()), "string"),
    "long under timestamp": (pa.array([5]), "timestamp"),
    "long under int": (pa.array([5]), "int"),
    "int under double": (pa.array([5], pa.int32()), "double"),
    "string under long": (pa.array(["5"]), "long"),
    "string under date": (pa.array(["2024-01-01"]), "date"),
    "boolean under int": (pa.array([True]), "int"),
    "int under boolean": (pa.array([1], pa.int32()), "boolean"),
    "timestamp under date": (pa.array([MORNING]), "date"),
    "timestamp under long": (pa.array([MORNING]), "long"),
    "date under timestamptz": (pa.array([dt.date(2024, 1, 1)]), "timestamptz"),
    "another scale": (pa.array([Decimal("1.50")]), "decimal(9,3)"),
    "decimal under double": (pa.array([Decimal("1.50")]), "double"),
    "large list of ints under strings": (pa.array([[5]], pa.large_list(pa.int32())), listed(9, "string")),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("nested", [False, True])
def test_types_that_are_not_promoted_are_refused(tmp_path: Path, case: str, nested: bool) -> None:
    array, kind = WRONG[case]
    fields = [field(1, "s", struct(field(2, "x", kind))) if nested else field(2, "x", kind), field(3, "y", "long")]
    t = table_of(tmp_path, fields)
    column, of = array, stored(2, "x", array.type)
    if nested:
        column = pa.StructArray.from_arrays([array], fields=[of])
        of = stored(1, "s", column.type)
    data = pa.Table.from_arrays([column, pa.array([1])], schema=pa.schema([of, stored(3, "y", pa.int64())]))
    file = entry(put(tmp_path, data), 1)
    with pytest.raises(ix.FormatError, match=r"'(s\.)?x' is stored as .*a\.parquet") as caught:
        read(t, file)
    assert caught.value.code == "stored-type"
    assert read(t, file, pruned(t._state.schema.fields, {3})) == [{"y": 1}]


def test_a_required_column_that_a_file_lacks_is_a_problem(tmp_path: Path) -> None:
    t = table_of(tmp_path, [field(1, "id", "long"), {**field(2, "must", "string"), "required": True},
                            {**field(3, "has", "string", **{"initial-default": "d"}), "required": True}])  # fmt: skip
    data = pa.table([pa.array([1])], schema=pa.schema([stored(1, "id", pa.int64())]))
    assert read(t, entry(put(tmp_path, data), 1)) == [{"id": 1, "must": None, "has": "d"}]
    assert [(p.code, p.field) for p in t.problems] == [("null-in-required", "must")]


def test_row_lineage_is_inherited_where_null(tmp_path: Path) -> None:
    t = table_of(tmp_path, [field(1, "id", "long")])
    schema = pa.schema([
        stored(1, "id", pa.int64()), stored(2147483540, "_row_id", pa.int64()),
        stored(2147483539, "_last_updated_sequence_number", pa.int64()),
    ])  # fmt: skip
    data = pa.table([pa.array([1, 2]), pa.array([None, 5]), pa.array([3, None])], schema=schema)
    location = put(tmp_path, data)
    wanted = [ROW_ID, LAST_UPDATED, FILE, SPEC_ID]
    found = read(t, entry(location, 2, first_row_id=100, sequence_number=9), wanted)
    assert [(r["_row_id"], r["_last_updated_sequence_number"]) for r in found] == [(100, 3), (5, 9)]
    assert [(r["_file"], r["_spec_id"]) for r in found] == [(location, 0)] * 2
    # A file without a first row id has neither, whatever is in it (spec, "Row Lineage").
    found = read(t, entry(location, 2, sequence_number=9), wanted)
    assert [(r["_row_id"], r["_last_updated_sequence_number"]) for r in found] == [(None, None)] * 2
    plain = put(tmp_path, data.select(["id"]), "b.parquet")
    found = read(t, entry(plain, 2, first_row_id=100, sequence_number=9), wanted)
    assert [(r["_row_id"], r["_last_updated_sequence_number"]) for r in found] == [(100, 9), (101, 9)]


# Faults --------------------------------------------------------------------------------------------------------------


def test_variants_are_bytes_and_shredded_ones_refused_alone(tmp_path: Path) -> None:
    t = table_of(tmp_path, [field(1, "id", "long"), field(2, "v", "variant")])
    plain = pa.struct([stored(None, "metadata", pa.binary()), stored(None, "value", pa.binary())])
    schema = pa.schema([stored(1, "id", pa.int64()), stored(2, "v", plain)])
    value = {"metadata": b"\x01\x00", "value": b"\x0c\x01"}
    data = pa.table([pa.array([1, 2]), pa.array([value, None], plain)], schema=schema)
    assert read(t, entry(put(tmp_path, data), 2)) == [{"id": 1, "v": value}, {"id": 2, "v": None}]
    shredded = pa.struct([*plain, stored(None, "typed_value", pa.int64())])
    schema = pa.schema([stored(1, "id", pa.int64()), stored(2, "v", shredded)])
    data = pa.table([pa.array([1]), pa.array([{**value, "typed_value": 3}], shredded)], schema=schema)
    location = put(tmp_path, data)
    with pytest.raises(ix.UnsupportedError, match=r"'v' is a variant that is shredded.*columns="):
        read(t, entry(location, 1))
    assert read(t, entry(location, 1), pruned(t._state.schema.fields, {1})) == [{"id": 1}]


def test_a_type_that_is_not_known_is_a_problem_and_refused_alone(tmp_path: Path) -> None:
    t = table_of(tmp_path, [field(1, "id", "long"), field(2, "q", "quaternion")])
    assert [(p.code, p.field) for p in t.problems] == [("unsupported", "type")]
    schema = pa.schema([stored(1, "id", pa.int64()), stored(2, "q", pa.int64())])
    location = put(tmp_path, pa.table([pa.array([1]), pa.array([2])], schema=schema))
    with pytest.raises(ix.UnsupportedError, match=r"'q' has type 'quaternion'.*columns="):
        read(t, entry(location, 1))
    assert read(t, entry(location, 1), pruned(t._state.schema.fields, {1})) == [{"id": 1}]


def test_values_that_do_not_fit_name_column_and_file(tmp_path: Path) -> None:
    t = table_of(tmp_path, [field(1, "id", "int")])
    data = pa.table([pa.array([1 << 40])], schema=pa.schema([stored(1, "id", pa.int64())]))
    location = put(tmp_path, data)
    with pytest.raises(ix.FormatError, match=r"column 'id'.*a\.parquet"):
        read(t, entry(location, 1))


def test_another_number_of_rows_than_the_manifest_says_is_a_problem(tmp_path: Path) -> None:
    t = table_of(tmp_path, [field(1, "id", "long")])
    data = pa.table([pa.array([1, 2])], schema=pa.schema([stored(1, "id", pa.int64())]))
    assert read(t, entry(put(tmp_path, data), 5)) == [{"id": 1}, {"id": 2}]
    assert read(t, entry(put(tmp_path, data), 5), []) == [{}, {}]
    assert [(p.code, p.found, p.expected) for p in t.problems] == [("count-mismatch", "2", "5")]


def test_only_what_is_needed_is_read(tmp_path: Path) -> None:
    t = table_of(tmp_path, [field(1, "id", "long"), field(2, "blob", "binary")])
    noise = np.random.default_rng(0).bytes(64_000_000)
    blobs = [noise[i * 64_000 : (i + 1) * 64_000] for i in range(1000)]
    schema = pa.schema([stored(1, "id", pa.int64()), stored(2, "blob", pa.binary())])
    location = put(tmp_path, pa.table([pa.array(range(1000)), pa.array(blobs)], schema=schema), row_group_size=100)
    t.reads.clear()
    assert len(read(t, entry(location, 1000), pruned(t._state.schema.fields, {1}))) == 1000
    assert t.reads.bytes < 1_200_000
    t.reads.clear()
    batches = read_data_file(t._state, entry(location, 1000), t._state.schema.fields, batch_rows=100)
    next(batches)
    assert t.reads.bytes < 40_000_000
    batches.close()  # type: ignore[attr-defined]


def test_of_a_large_row_group_the_first_rows_alone_are_fetched(tmp_path: Path) -> None:
    t = table_of(tmp_path, [field(1, "id", "long"), field(2, "blob", "binary")])
    noise = np.random.default_rng(0).bytes(32_000_000)
    blobs = [noise[i * 1000 : (i + 1) * 1000] for i in range(32_000)]
    schema = pa.schema([stored(1, "id", pa.int64()), stored(2, "blob", pa.binary())])
    location = put(tmp_path, pa.table([pa.array(range(32_000)), pa.array(blobs)], schema=schema))
    t.reads.clear()
    batches = read_data_file(t._state, entry(location, 32_000), t._state.schema.fields, batch_rows=100)
    assert next(batches).column(0).to_pylist() == list(range(100))
    assert t.reads.bytes < 4_000_000
    rest = pa.concat_tables(batches)
    assert rest["id"].to_pylist() == rest["_pos"].to_pylist() == list(range(100, 32_000))
    assert rest["blob"].to_pylist() == blobs[100:]
