"""Relative locations of V4: the examples of the spec, and that what is made relative is resolved to the same."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceexplore.arrow import build
from iceexplore.manifests.model._locations import absolute, relative
from iceexplore.metadata import relative_location, resolved_location

# Spec, "Path Resolution": the table of examples (but for a path that begins with a slash, which is one on a local disk)
EXAMPLES = [
    ("s3://bucket/db/table", "data/00000-0.parquet", "s3://bucket/db/table/data/00000-0.parquet"),
    ("s3://bucket/db/table", "hdfs://wh/db/table/data/0.parquet", "hdfs://wh/db/table/data/0.parquet"),
    ("s3://bucket/db/table/", "data/00000-0.parquet", "s3://bucket/db/table//data/00000-0.parquet"),
    ("/local/table", "/elsewhere/0.parquet", "/elsewhere/0.parquet"),
]
PARTS = st.lists(st.sampled_from(["data", "a b", "x:y", "%25", ".", "..", "", "ü"]), min_size=1, max_size=4).map(
    "/".join
)
TABLES = st.sampled_from(["s3://b/t", "s3://b/t/", "/tmp/t", "file:/t", ""])


@pytest.mark.parametrize(("table", "path", "resolved"), EXAMPLES)
def test_the_examples_of_the_spec(table: str, path: str, resolved: str) -> None:
    assert resolved_location(path, table) == resolved
    assert build.to_pylist(absolute(pa.array([path]), table, "")[0]) == [resolved]


@given(TABLES, PARTS)
def test_what_is_made_relative_is_resolved_to_the_same(table: str, rest: str) -> None:
    location = f"{table}/{rest}"
    short = relative_location(location, table)
    assert build.to_pylist(relative(pa.array([location]), table)) == [short]
    if table:
        assert resolved_location(short, table) == location
        assert build.to_pylist(absolute(pa.array([short]), table, "")[0]) == [location]
    assert not short.startswith("/") or short == location
    assert short == location or ".." not in short.split("/")


def test_other_tables_are_not_below() -> None:
    assert relative_location("s3://b/table2/x", "s3://b/table") == "s3://b/table2/x"
    assert build.to_pylist(relative(pa.array(["s3://b/table2/x", None]), "s3://b/table")) == ["s3://b/table2/x", None]
