"""Layout (b) of the proposal: partition values in the struct of their source column, read back from the files."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import iceexplore as ix
from iceexplore.commits import check_rules
from iceexplore.errors import UnsupportedError
from iceexplore.manifests.model._field_ids import partition_offset, partition_part

TS = 2  # the column's id; 10,000 + 200 x 2 = 10,400 is that of its struct


def table(flush: int = 0, **layout: Any) -> Any:
    s = ix.empty(
        {"id": "long", "ts": "timestamptz"},
        partition_by=["day(ts)", "bucket(4, ts)", "bucket(8, id)"],
        format_version=4,
        partition_storage="source",
        flush_data_files=flush,
        seed=1,
        **layout,
    )
    for day in (1, 2):
        s.append(pa.table({"id": [day], "ts": pa.array([dt.datetime(2024, 5, day)], pa.timestamp("us", "UTC"))}))
    return s


def structs(path: Path, column: str) -> tuple[dict[str, int], list[Any]]:
    """Return the ids of a column's statistics by name, and their values, as pyarrow alone reads them."""
    found: Any = pq.read_table(path)["content_stats"].combine_chunks()
    struct = found.field(column)
    ids = {f.name: int((f.metadata or {})[b"PARQUET:field_id"]) for f in struct.type}
    return ids, struct.to_pylist()


def test_files_and_manifests_have_the_fields_of_the_document() -> None:
    s = table()
    leaf = next(w.real for w in s.writes if w.kind == "manifest")
    ids, values = structs(Path(leaf), "ts")
    assert values[0]["partition_1000_ts_day"] == dt.date(2024, 5, 1)
    assert ids["partition_1000_ts_day"] == 10_440 and ids["partition_1001_ts_bucket_4"] == 10_444
    assert not any("bound" in name for name in ids if name.startswith("partition"))
    assert structs(Path(leaf), "id")[0]["partition_1002_id_bucket_8"] == 10_248
    root = [w.real for w in s.writes if w.kind == "manifest-list"][-1]
    ids, values = structs(Path(root), "ts")
    names = {name: i for name, i in ids.items() if name.startswith("partition_1000")}
    assert names == {
        "partition_1000_ts_day_lower_bound": 10_441,
        "partition_1000_ts_day_upper_bound": 10_442,
        "partition_1000_ts_day_null_count": 10_443,
    }
    assert sorted(v["partition_1000_ts_day_lower_bound"] for v in values) == [dt.date(2024, 5, 1), dt.date(2024, 5, 2)]


@pytest.mark.parametrize("flush", [0, 100])
@pytest.mark.parametrize("manifest_format", ["parquet", "avro"])
def test_tuples_and_bounds_come_back(flush: int, manifest_format: str) -> None:
    s = table(flush, manifest_format=manifest_format)
    plain = ix.empty(
        {"id": "long", "ts": "timestamptz"},
        partition_by=["day(ts)", "bucket(4, ts)", "bucket(8, id)"],
        format_version=4,
        seed=1,
    )
    for day in (1, 2):
        plain.append(pa.table({"id": [day], "ts": pa.array([dt.datetime(2024, 5, day)], pa.timestamp("us", "UTC"))}))
    assert s.inspect.data_files.arrow()["partition"].to_pylist() == (
        plain.inspect.data_files.arrow()["partition"].to_pylist()
    )
    assert check_rules(s.state) == [] and not s.problems
    assert len(s.plan("id = 1").files) == 1


def test_older_manifests_keep_their_bounds_when_the_root_is_written_again() -> None:
    s = table()
    s.append(pa.table({"id": [3], "ts": pa.array([dt.datetime(2024, 5, 3)], pa.timestamp("us", "UTC"))}))
    root = s.state.root()
    bucket = next(e.expr_id for e in s.metadata.expressions if e.source_ids == (1,))
    assert root.stats(bucket).lower.null_count == 0 and root.stats(bucket).upper.null_count == 0
    plan = s.plan("id = 3")  # the bucket and the bounds of id prune the two older manifests
    assert len(plan.roots[0].kept) == 1


def test_the_sample_with_two_transforms_of_one_column() -> None:
    t = ix.sample("trips")
    s = t.simulate(format_version=4, partition_storage="source", seed=1)
    s.append(files=2, rows=10)
    s.rewrite_manifests()
    old = {f["file_path"]: f["partition"] for f in t.inspect.data_files.arrow().to_pylist()}
    new = {f["file_path"]: f["partition"] for f in s.inspect.data_files.arrow().to_pylist()}
    assert len(new) == len(old) + 2
    for path, partition in old.items():
        assert {k: v for k, v in new[path].items() if v is not None} == {
            k: v for k, v in partition.items() if v is not None
        }
    assert check_rules(s.state) == []


def test_what_has_no_place_is_refused() -> None:
    s = ix.empty({f"c{i}": "int" for i in range(41)}, format_version=4, partition_storage="source", seed=1)
    s.evolve_spec(add=[f"bucket(4, c{i})" for i in range(41)])
    with pytest.raises(UnsupportedError, match="1000 to 1039"):
        s.append(files=1, rows=1)


def test_offsets_are_inverse() -> None:
    for field_id in (999, 1000, 1020, 1039, 1040, -5):
        for part in ("value", "lower", "upper", "null_count"):
            offset = partition_offset(field_id, part)
            assert (offset is None) == (not 1000 <= field_id < 1040)
            assert offset is None or partition_part(offset) == (field_id, part)
    assert [partition_part(o) for o in (-1, 0, 9, 39, 200)] == [None] * 5
