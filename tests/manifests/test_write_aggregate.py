"""The entry of a manifest in its root: counts and summaries as Java has them, statistics that cover every entry."""

from __future__ import annotations

import math
import struct
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceexplore.arrow import build
from iceexplore.errors import OptionError
from iceexplore.manifests import EntryBatch, live, manifest_entry, stats_type, upgrade_entries
from iceexplore.metadata import TableMetadata, decode_value, encode_value, result_type
from tests.manifests import write_cases as cases

V3, V4 = cases.metadata(3), cases.metadata(4)


def entry(batch: EntryBatch, table: TableMetadata, dialect: str, **more: Any) -> EntryBatch:
    given = {
        "location": "memory://t/m.avro", "length": 5, "content": "data", "spec_id": cases.UNPARTITIONED, "status": 1,
        "snapshot_id": 7, "sequence_number": None,
    }  # fmt: skip
    return manifest_entry(batch, metadata=table, dialect=dialect, **{**given, **more})


def order(value: Any) -> Any:
    """A key by which values of one type are in the spec's order: floats by their total order, text by its bytes."""
    if isinstance(value, float):
        (bits,) = struct.unpack("<q", struct.pack("<d", value))
        return bits if bits >= 0 else bits ^ 0x7FFF_FFFF_FFFF_FFFF
    return value.encode() if isinstance(value, str) else value


def plain(array: pa.Array) -> list[Any]:
    """Values that Python can order: integers for dates and times."""
    if pa.types.is_temporal(array.type):
        array = array.view(pa.int32() if pa.types.is_date(array.type) else pa.int64())
    return list(array.to_pylist())


@cases.FEW
@given(data=st.data())
def test_statistics_cover(data: st.DataObject) -> None:
    """Against a plain loop over the entries, column by column."""
    specs = (cases.IDENTITY, cases.DERIVED, cases.SEVERAL, cases.UNPARTITIONED)
    chosen = tuple(data.draw(st.lists(st.sampled_from(specs), min_size=1, max_size=2, unique=True)))
    batch = data.draw(cases.batches(V4, chosen, nan=True))
    made = entry(batch, V4, "v4-proposal").stats
    rows = [i for i, ok in enumerate(live(batch.entries).to_pylist()) if ok]
    spec_ids = batch.entries["partition_spec_id"].to_pylist()
    sources = {f.source_id: str(f.field_id) for f in V4.partition_specs[cases.IDENTITY].fields}
    for column_id in (*cases.COLUMNS.values(), cases.NESTED):
        if column_id == cases.COLUMNS["geometry"]:
            continue
        given = batch.stats.get(column_id)
        lowers, uppers, known = [], [], bool(rows)
        for row in rows:
            held = None if given is None else given.slice(row, 1)
            if spec_ids[row] == cases.IDENTITY and column_id in sources:
                assert batch.partition is not None
                value = plain(pc.struct_field(batch.partition, sources[column_id]).slice(row, 1))[0]
                if value is not None:
                    lowers.append(value)
                    uppers.append(value)
                continue
            parts = {} if held is None else dict(zip([c.name for c in held.type], held.flatten(), strict=True))
            counts = {
                n: parts[n][0].as_py() if n in parts else None for n in ("value_count", "null_count", "nan_count")
            }
            nothing = (
                counts["value_count"] is not None
                and counts["null_count"] is not None
                and (counts["value_count"] == counts["null_count"] + (counts["nan_count"] or 0))
            )
            lower = plain(parts["lower"])[0] if parts else None
            upper = plain(parts["upper"])[0] if parts else None
            known = known and (nothing or (lower is not None and upper is not None))
            lowers += [] if lower is None else [lower]
            uppers += [] if upper is None else [upper]
        found = made.get(column_id)
        low, high = (None, None) if found is None else (plain(pc.struct_field(found, n))[0] for n in ("lower", "upper"))
        if known and lowers and uppers:
            assert low is not None and order(low) == min(map(order, lowers))
            assert high is not None and order(high) == max(map(order, uppers))
        if low is not None:
            assert all(order(low) <= order(v) for v in lowers)
        if not known:
            assert low is None or high is None
        if given is not None and not (cases.IDENTITY in chosen and column_id in sources):
            for name in ("value_count", "null_count", "nan_count"):
                counted = [pc.struct_field(given, name)[row].as_py() for row in rows]
                total = sum(counted) if rows and None not in counted else None
                assert (None if found is None else pc.struct_field(found, name)[0].as_py()) == total


@cases.FEW
@given(data=st.data())
def test_derived_columns_and_summaries_cover(data: st.DataObject) -> None:
    batch = data.draw(cases.batches(V4, (cases.DERIVED,)))
    spec = V4.spec(cases.DERIVED)
    assert spec is not None and batch.partition is not None
    made = entry(batch, V4, "v4-proposal", spec_id=cases.DERIVED).stats
    below = entry(batch, V3, "v3", spec_id=cases.DERIVED)
    summaries = below.entries["partition_summaries"][0].as_py()
    alive = live(batch.entries)
    expressions = {e.partition_field_id: e.expr_id for e in V4.expressions}
    upgraded = upgrade_entries(below, V4).stats
    types = {i: f.type for i, (_, f) in V4.all_fields().items()}
    for f, summary in zip(spec.fields, summaries, strict=True):
        values = pc.struct_field(batch.partition, str(f.field_id))
        assert summary["contains_null"] == (values.null_count > 0)
        assert summary["contains_nan"] is False
        kind = result_type(f.transform, types[f.source_id])
        held = [v for v in plain(values) if v is not None]  # all entries, DELETED ones too
        ends = (min(held, key=order), max(held, key=order)) if held else (None, None)
        raw = [None if v is None else encode_value(kind, v) for v in ends]
        assert [summary["lower_bound"], summary["upper_bound"]] == raw
        if f.transform == "void":
            continue
        live_values = values.filter(alive)
        some = [v for v in plain(live_values) if v is not None]
        found = made.get(expressions[f.field_id])
        if len(live_values):
            assert found is not None
            ends = (min(some, key=order), max(some, key=order)) if some else (None, None)
            assert (plain(pc.struct_field(found, "lower"))[0], plain(pc.struct_field(found, "upper"))[0]) == ends
            records = batch.entries["record_count"].combine_chunks().filter(alive)
            nulls = [max(1, r) for r, v in zip(build.to_pylist(records), plain(live_values), strict=True) if v is None]
            assert pc.struct_field(found, "null_count")[0].as_py() == sum(nulls)
        after = upgraded[expressions[f.field_id]]
        lower = plain(pc.struct_field(after, "lower"))[0]
        assert (None if lower is None else encode_value(kind, lower)) == raw[0]
        assert pc.struct_field(after, "null_count")[0].as_py() == (None if values.null_count else 0)


def one(rows: list[dict[str, Any]], kind: pa.DataType, **more: Any) -> dict[str, Any] | None:
    """The aggregated statistics of a column of doubles (or of ``column_id``) over these rows."""
    column_id = more.pop("column_id", cases.COLUMNS["double"])
    entries = [
        {
            "content_type": 0,
            "location": f"f{i}",
            "status": 1,
            "record_count": 1,
            "partition_spec_id": cases.UNPARTITIONED,
        }
        for i in range(len(rows))
    ]
    batch = EntryBatch.of_rows(entries, stats={column_id: pa.array(rows, stats_type(kind))})
    made = entry(batch, V4, "v4-proposal").stats.get(column_id)
    return None if made is None else made[0].as_py()  # type: ignore[return-value]


def test_floats_go_by_the_total_order_and_a_nan_bound_is_no_bound() -> None:
    double = pa.float64()
    found = one([{"lower": 0.0, "upper": 0.0}, {"lower": -0.0, "upper": -0.0}], double)
    assert found is not None
    assert math.copysign(1, found["lower"]) == -1 and math.copysign(1, found["upper"]) == 1
    assert one([{"lower": math.nan, "upper": 1.0}, {"lower": 0.0, "upper": 2.0}], double) == dict.fromkeys(
        [c.name for c in stats_type(double)]
    ) | {"upper": 2.0}


def test_an_entry_of_nulls_alone_has_no_bounds_to_lack() -> None:
    nulls = {"value_count": 3, "null_count": 3}
    found = one([nulls, {"lower": 1.0, "upper": 2.0, "value_count": 2, "null_count": 0}], pa.float64())
    assert found is not None
    assert (found["lower"], found["upper"], found["value_count"], found["null_count"]) == (1.0, 2.0, 5, 3)
    found = one([{"value_count": 3, "null_count": 2}, {"lower": 1.0, "upper": 2.0}], pa.float64())
    assert found is None  # one value is not known, nor are the counts of the other


def test_lengths_are_weighed_by_values_that_are_there() -> None:
    text = pa.string()
    tight = {"null_count": 0, "tight_bounds": True}
    rows = [
        tight | {"value_count": 4, "null_count": 1, "average_length": 10, "max_length": 12, "lower": "a", "upper": "b"},
        tight | {"value_count": 1, "average_length": 2, "max_length": 2, "lower": "é", "upper": "é"},
    ]
    found = one(rows, text, column_id=cases.COLUMNS["string"])
    assert found is not None
    assert (found["average_length"], found["max_length"], found["tight_bounds"]) == (8, 12, True)
    assert (found["lower"], found["upper"]) == ("a", "é")  # by bytes


def point(*xs: float) -> bytes:
    return struct.pack(f"<{len(xs)}d", *xs)


@pytest.mark.parametrize(
    ("lowers", "united"),
    [
        ([point(1, 5), point(2, 3)], point(1, 3)),
        ([point(1, 5, 9), point(2, 3, 4)], point(1, 3, 4)),
        ([point(1, 5, math.nan, 2), point(2, 3, math.nan, 1)], point(1, 3, math.nan, 1)),
        ([point(1, 5), point(2, 3, 4)], None),
        ([point(1, math.nan), point(2, 3)], None),
        ([point(1, 5, 1, 1), point(1, 5, math.nan, 1)], None),
        ([b"\0" * 15, b"\0" * 15], None),
    ],
)
def test_geometry_is_united_when_it_is_understood(lowers: list[bytes], united: bytes | None) -> None:
    found = one([{"lower": v, "value_count": 1} for v in lowers], pa.binary(), column_id=cases.COLUMNS["geometry"])
    assert found is not None and found["lower"] == united


def test_counts_and_sequence_numbers_as_java() -> None:
    base = {"content_type": 0, "location": "f", "partition_spec_id": cases.UNPARTITIONED}
    rows = [
        {**base, "status": 1, "record_count": 1},
        {**base, "status": 0, "record_count": 10, "sequence_number": 4},
        {**base, "status": 2, "record_count": 100, "sequence_number": 2},  # gone: its number does not count
        {**base, "status": 1, "record_count": 1000, "sequence_number": 6},
    ]
    made = entry(EntryBatch.of_rows(rows), V3, "v3", first_row_id=50, status=0, sequence_number=9)
    (row,) = made.entries.to_pylist()
    assert row["manifest_stats"] == {
        "added_files_count": 2, "existing_files_count": 1, "deleted_files_count": 1, "added_rows_count": 1001,
        "existing_rows_count": 10, "deleted_rows_count": 100, "min_sequence_number": 4,
    }  # fmt: skip
    assert (row["record_count"], row["file_format"], row["first_row_id"], row["partition_summaries"]) == (
        4,
        "avro",
        50,
        [],
    )
    added = entry(EntryBatch.of_rows(rows[:1]), V4, "v4-proposal", content="delete", referenced_file="leaf")
    (row,) = added.entries.to_pylist()
    assert row["manifest_stats"]["min_sequence_number"] is None  # inherited, with the manifest's own
    assert (row["content_type"], row["referenced_file"], row["partition_summaries"]) == (4, "leaf", None)
    with pytest.raises(OptionError, match="no status"):
        entry(EntryBatch.of_rows([{**base, "status": None}]), V3, "v3")
    with pytest.raises(OptionError, match="'data' or 'delete'"):
        entry(EntryBatch.empty(), V3, "v3", content="root")


def test_upgrade_keeps_identity_bounds_with_the_source_column() -> None:
    spec = V4.spec(cases.IDENTITY)
    assert spec is not None
    types = {i: f.type for i, (_, f) in V4.all_fields().items()}
    summaries: list[dict[str, Any]] = []
    for f in spec.fields:
        name = str(types[f.source_id])
        low = {"double": struct.pack("<d", 1.5), "string": b"a"}.get(name)
        summaries.append(
            {"contains_null": name == "string", "contains_nan": name == "double" or None, "lower_bound": low}
        )
    row = {
        "content_type": 3, "location": "m", "partition_spec_id": cases.IDENTITY, "record_count": 3, "snapshot_id": 7,
        "sequence_number": 5, "partition_summaries": summaries,
    }  # fmt: skip
    plain_row = {**row, "partition_spec_id": cases.UNPARTITIONED, "partition_summaries": []}
    dropped = {**row, "partition_spec_id": cases.DROPPED, "partition_summaries": [{"contains_null": True}]}
    made = upgrade_entries(EntryBatch.of_rows([plain_row, row, dropped]), V4)
    assert made.entries["status"].to_pylist() == [0, 0, 0]
    assert made.entries["file_sequence_number"].to_pylist() == [5, 5, 5]
    assert made.entries["partition_summaries"].null_count == 3
    text = build.to_pylist(made.stats[cases.COLUMNS["string"]])
    assert text[0] is None and text[2] is None
    assert (text[1]["lower"], text[1]["upper"], text[1]["null_count"]) == ("a", None, None)
    double = build.to_pylist(made.stats[cases.COLUMNS["double"]])[1]
    assert (double["lower"], double["null_count"], double["nan_count"]) == (1.5, 0, None)
    number = build.to_pylist(made.stats[cases.COLUMNS["float"]])[1]
    assert number["nan_count"] is None  # unknown: assumed
    assert decode_value(types[cases.COLUMNS["double"]], summaries[4]["lower_bound"]) == 1.5
    with pytest.raises(OptionError, match="lacks a count"):
        upgrade_entries(EntryBatch.of_rows([{**row, "record_count": None}]), V4)
    with pytest.raises(OptionError, match="no expression"):
        upgrade_entries(EntryBatch.of_rows([{**row, "partition_spec_id": cases.DERIVED}]), V3)
