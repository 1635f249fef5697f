"""Partition transforms of several columns: made, committed, read back (proposal, "bucket16(a, b)")."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import iceexplore as ix
from iceexplore.arrow import AnyArray, build
from iceexplore.commits import check_rules
from iceexplore.errors import IceexploreError, OptionError, RuleError
from iceexplore.metadata import PrimitiveType, parse_transform

ROWS = pa.table({"a": [1, 2, None, 1], "b": ["x", "y", None, "x"]})


def partitions(t: Any) -> list[Any]:
    return [next(iter(p.values())) for p in build.to_pylist(t.inspect.data_files.arrow()["partition"])]


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("flush", [0, 100])
def test_a_table_partitioned_by_two_columns(version: int, flush: int) -> None:
    layout: Any = {"flush_data_files": flush} if version == 4 else {}
    s = ix.empty(
        {"a": "int", "b": "string"}, partition_by=["bucket(16, a, b)"], format_version=version, seed=1, **layout
    )
    s.append(ROWS)
    found = partitions(s)
    assert len(found) == 3 and None in found and all(p is None or 0 <= p < 16 for p in found)
    s.append(files=2, rows=10)
    assert len(partitions(s)) == 5 and check_rules(s.state) == [] and not s.problems
    assert s.to_arrow(where="a = 2").num_rows == 1
    raw: Any = s.metadata.raw
    if version == 4:
        (made,) = raw["expressions"]
        assert made["expr"] == {"source-ids": [1, 2], "transform": "bucket[16]"} and made["partition-field-id"] == 1000
    else:
        assert raw["partition-specs"][0]["fields"][0]["source-ids"] == [1, 2]
        s.upgrade(4)
        s.append(ROWS)
        assert partitions(s).count(None) == 2 and check_rules(s.state) == []


def test_specs_evolve_by_it() -> None:
    s = ix.empty({"a": "int", "b": "string"}, format_version=4, seed=1)
    s.append(ROWS)
    s.evolve_spec(add=["bucket[4](a, b)"])
    assert s.spec is not None
    assert [f.name for f in s.spec.fields] == ["a_b_bucket_4"]
    with pytest.raises(RuleError, match="already partition field"):
        s.evolve_spec(add=["bucket(4, a, b)"])
    s.evolve_spec(add=[("bucket(4, b, a)", "other")], remove=["bucket(4, a, b)"])
    assert s.spec is not None
    assert [(f.name, f.source_ids) for f in s.spec.fields] == [("other", (2, 1))]


@pytest.mark.parametrize(
    ("term", "version", "error", "text"),
    [
        ("bucket(16, a, b)", 2, RuleError, "format version 3"),
        ("bucket(16, a, a)", 4, RuleError, "twice"),
        ("bucket(16, a, c)", 4, RuleError, "no column 'c'"),
        ("truncate(16, a, b)", 4, OptionError, "bucket (count, column, ...)"),
        ("day(a, b)", 4, OptionError, "is not a transform of a column"),
        ("bucket(a, b)", 4, OptionError, "is not a transform of a column"),
    ],
)
def test_what_is_refused(term: str, version: int, error: type[IceexploreError], text: str) -> None:
    with pytest.raises(error) as raised:
        ix.empty({"a": "int", "b": "string"}, partition_by=[term], format_version=version)
    assert text in str(raised.value)


def test_layout_b_has_no_place_for_it() -> None:
    layout: Any = {"partition_storage": "source"}
    s = ix.empty({"a": "int", "b": "string"}, partition_by=["bucket(16, a, b)"], format_version=4, seed=1, **layout)
    with pytest.raises(IceexploreError, match="transform of several columns"):
        s.append(ROWS)


@given(st.lists(st.tuples(st.none() | st.integers(-(2**31), 2**31 - 1), st.none() | st.text()), max_size=5))
def test_buckets_depend_on_each_row_alone(rows: list[tuple[int | None, str | None]]) -> None:
    kinds = [PrimitiveType("int"), PrimitiveType("string")]

    def of(some: list[Any]) -> list[Any]:
        columns: list[AnyArray] = [
            pa.array([r[0] for r in some], pa.int32()),
            pa.array([r[1] for r in some], pa.string()),
        ]
        return build.to_pylist(parse_transform("bucket[7]").apply_several(kinds, columns))

    whole = of(rows)
    assert whole == [of([row])[0] for row in rows]
    assert all((b is None) == (row == (None, None)) and (b is None or 0 <= b < 7) for b, row in zip(whole, rows))
