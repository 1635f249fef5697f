"""The partition column of a table with many specs, and its sums, against a plain count in Python."""

from __future__ import annotations

import importlib
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import iceexplore as ix
from iceexplore.errors import Problems
from iceexplore.inspect._metrics import metrics_of
from iceexplore.inspect._partition import PartitionUnion, partition_union
from iceexplore.inspect._partitions import _groups
from iceexplore.metadata import TableMetadata, parse_table_metadata


def metadata(specs: list[list[tuple[int, str, str, int]]], columns: list[tuple[int, str, str]]) -> TableMetadata:
    schema = {
        "type": "struct",
        "schema-id": 0,
        "fields": [{"id": i, "name": n, "required": False, "type": k} for i, n, k in columns],
    }
    document: dict[str, Any] = {
        "format-version": 2,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": "/t",
        "last-sequence-number": 0,
        "last-updated-ms": 1,
        "last-column-id": 100,
        "schemas": [schema],
        "current-schema-id": 0,
        "partition-specs": [
            {
                "spec-id": i,
                "fields": [{"field-id": f, "name": n, "transform": t, "source-id": s} for f, n, t, s in fields],
            }
            for i, fields in enumerate(specs)
        ],
        "default-spec-id": len(specs) - 1,
        "last-partition-id": 2000,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
    }
    return parse_table_metadata(document, "/t/metadata/v1.metadata.json", Problems())


COLUMNS = [(1, "id", "long"), (2, "kind", "string"), (3, "day", "date"), (4, "uid", "uuid")]


def names_and_types(union: PartitionUnion) -> dict[str, str]:
    return {f.name: str(f.type) for f in union.type}


def test_the_newest_spec_names_a_field_and_void_keeps_the_type() -> None:
    union = partition_union(
        metadata([[(1000, "old", "bucket[4]", 2), (1001, "day", "day", 3)], [(1000, "new", "void", 2)]], COLUMNS)
    )
    assert union.ids == (1000, 1001)
    assert names_and_types(union) == {"new": "int32", "day": "date32[day]"}


def test_fields_by_id_whatever_the_order_of_specs() -> None:
    union = partition_union(metadata([[(1002, "b", "identity", 2)], [(1001, "a", "identity", 1)]], COLUMNS))
    assert list(names_and_types(union)) == ["a", "b"]


def test_a_field_of_a_column_that_is_gone_is_left_out() -> None:
    union = partition_union(metadata([[(1000, "gone", "identity", 99)]], COLUMNS))
    assert not union
    assert union.type.num_fields == 0


def test_two_fields_of_one_name() -> None:
    union = partition_union(metadata([[(1000, "t", "truncate[1]", 2)], [(1001, "t", "truncate[10]", 2)]], COLUMNS))
    assert list(names_and_types(union)) == ["t", "t_1001"]


def test_an_unknown_transform_shows_as_text_and_a_uuid_too() -> None:
    union = partition_union(metadata([[(1000, "z", "zorder", 1), (1001, "u", "identity", 4)]], COLUMNS))
    assert names_and_types(union) == {"z": "string", "u": "string"}


def test_metrics_are_sorted_by_utf16_and_leave_variants_out() -> None:
    columns = [(1, "\U0001f9ca", "int"), (2, "\ufb01", "int"), (3, "v", "variant"), (4, "a", "int")]
    found = [m.name for m in metrics_of(metadata([[]], columns).schema())]
    assert found == ["a", "\U0001f9ca", "\ufb01"]  # Java compares surrogates, which are below U+FB01


def test_groups_tell_nan_null_and_minus_zero_and_narrow_specs_apart() -> None:
    values = [float("nan"), float("nan"), 0.0, -0.0, None, None, None]
    width = [1, 1, 1, 1, 1, 0, 1]
    struct = pa.StructArray.from_arrays([pa.array(values, pa.float64())], names=["d"])
    rows = pa.table({"width": pa.array(width, pa.int32()), "partition": struct})
    group, first = _groups(rows, PartitionUnion((1000,), struct.type))
    together = defaultdict(list)
    for row, number in enumerate(group):
        together[int(number)].append(row)
    assert sorted(together.values()) == [[0, 1], [2], [3], [4, 6], [5]]
    assert all(int(group[row]) == number for number, row in enumerate(first))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_partitions_are_the_sums_of_files(tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    for name in ("generate", "_columns", "_entries", "_schemas", "_template"):
        sys.modules.pop(name, None)
    generate = importlib.import_module("generate")

    shape = generator_shape(generate, version)
    t = ix.open(generate.generate(shape, tmp_path / "t"))
    sums: dict[Any, list[int]] = defaultdict(lambda: [0] * 5)
    newest: dict[Any, int] = defaultdict(int)
    times = {s.snapshot_id: s.timestamp_ms for s in t.snapshots}
    for row in t.inspect.entries.arrow().to_pylist():
        file = row["data_file"]
        key = tuple(file["partition"].values())
        if row["status"] == 2:
            continue
        newest[key] = max(newest[key], times[row["snapshot_id"]])
        one = [file["record_count"], 1, file["file_size_in_bytes"], 0, 0]
        if file["content"] == 1:
            one = [0, 0, 0, file["record_count"], 1]
        sums[key] = [a + b for a, b in zip(sums[key], one, strict=True)]
    found = t.inspect.partitions.arrow().to_pylist()
    assert len(found) == len(sums)
    for row in found:
        key = tuple(row["partition"].values())
        assert list(row.values())[2:7] == sums[key]
        assert row["last_updated_at"].timestamp() == pytest.approx(newest[key] / 1000)
        assert times[row["last_updated_snapshot_id"]] == newest[key]
    assert not list(t.problems)


def generator_shape(generate: Any, version: int) -> Any:
    deletes = 0 if version == 1 else 40
    return generate.Shape(files=300, deletes=deletes, manifests=6, columns=6, partitioned=True, format_version=version)


def test_narrow_specs_have_their_own_width() -> None:
    m = metadata([[(1000, "a", "identity", 1)], [(1000, "a", "identity", 1), (1001, "b", "identity", 2)]], COLUMNS)
    union = partition_union(m)
    assert [union.width(s) for s in m.partition_specs] == [1, 2]
    assert union.width(None) == 0
