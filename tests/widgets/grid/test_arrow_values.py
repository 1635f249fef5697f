"""Arrow columns as Python values: the same as Arrow's own, without a scalar for each."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.widgets.grid._arrow_values import array_values
from iceexplore.widgets.grid._cells import cell
from iceexplore.widgets.grid._table import ArrowTable, FrameTable

PAIRS = pa.map_(pa.string(), pa.list_(pa.int64()))
EVERY: dict[str, tuple[pa.DataType, list[Any]]] = {
    "text": (pa.string(), ["a", None, ""]),
    "struct": (pa.struct([("x", pa.int32()), ("y", pa.struct([("z", pa.string())]))]), [{"x": 1}, None, {"y": {}}]),
    "list": (pa.list_(pa.float64()), [[1.5, None], None, []]),
    "large": (pa.large_list(pa.string()), [["a"], None, ["b", "c"]]),
    "map": (PAIRS, [[("a", [1, 2]), ("b", None)], None, []]),
    "time": (pa.timestamp("us", "UTC"), [0, None, 86_400_000_001]),
    "empty": (pa.struct([]), [{}, None, {}]),
}


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("part", [slice(0, 3), slice(1, 3), slice(2, 2)])
def test_values_are_those_of_arrow(name: str, part: slice) -> None:
    kind, values = EVERY[name]
    array = pa.array(values, kind)[part]
    assert [None if v is pd.NA else v for v in array_values(array)] == build.to_pylist(array)


def test_an_arrow_table_shows_what_its_frame_does() -> None:
    made = pa.table({name: pa.array(values, kind) for name, (kind, values) in EVERY.items()})
    table = ArrowTable(made)
    frame = FrameTable(made.to_pandas(types_mapper=pd.ArrowDtype))
    assert (table.names, table.right, len(table)) == (frame.names, frame.right, len(frame))
    for at in (slice(0, 3), slice(1, 2)):
        shown = [
            [[cell(v) for v in column] for column in one.values(at, None, range(len(EVERY)))] for one in (table, frame)
        ]
        assert shown[0] == shown[1]
    pd.testing.assert_frame_equal(pd.DataFrame(table.frame()), frame.frame())


def test_a_manifest_of_several_roots_is_decoded_once() -> None:
    state = ix.sample("trips")._state
    by_place: dict[str, list[Any]] = {}
    for snapshot in state.metadata.snapshots:
        for leaf in state.leaves(snapshot):
            by_place.setdefault(leaf.location, []).append(leaf)
    several = [leaves for leaves in by_place.values() if len(leaves) > 1]
    assert several
    shared = [leaves for leaves in several if leaves[0].entries is leaves[1].entries]
    assert shared
    for leaves in shared:
        assert leaves[0].claims is not leaves[1].claims
        assert leaves[0]._mapped is leaves[1]._mapped
