"""Lengths in content_stats: of types of variable length only (proposal, the example of layout (b))."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import iceexplore as ix


@pytest.mark.parametrize("version", [3, 4])
def test_lengths_are_of_types_of_variable_length_only(version: int) -> None:
    schema = {"id": "long", "s": "string", "ts": "timestamptz", "d": "double", "b": "binary"}
    s = ix.empty(schema, format_version=version, flush_data_files=0, seed=1)
    s.append(files=2, rows=100)
    s.append(pa.table({"id": [1, 2], "s": ["a", "bcd"], "ts": pa.array([1, 2], pa.timestamp("us", "UTC"))}))
    if version == 3:
        s.upgrade(4)
        s.rewrite_manifests()
    for path in [w.real for w in s.writes if w.kind in ("manifest", "manifest-list") and w.real.endswith(".parquet")]:
        found = pq.read_table(path)["content_stats"].combine_chunks()
        sized = {f.name for f in found.type if any("length" in child.name for child in f.type)}
        assert sized <= {"s", "b"} and (version == 3 or "s" in sized)
