"""The range map's Python side: what the browser lights up is what a plan of that range reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

import iceexplore as ix
from iceexplore.widgets import Explorer, ScanLab

FILTER = "started_at >= '2024-05-01' and rider = 'guest'"


@pytest.fixture(scope="module")
def table() -> ix.Table:
    return ix.sample("trips")


@pytest.fixture
def lab(table: ix.Table) -> Iterator[ScanLab]:
    made = ScanLab(table, scan_filter=FILTER)
    assert made.settle(60)
    yield made
    made.close()


def lit(answer: dict[str, Any], lower: int | None, upper: int | None) -> int:
    """Count as `litSum` in ``ranges.js`` does."""
    cells: dict[str, list[int]] = answer.get("exact") or answer["cells"]
    found = zip(cells["open"], cells["first"], cells["last"], cells["count"], strict=True)
    inside = [
        n
        for left, first, last, n in found
        if left and (lower is None or last > lower) and (upper is None or first <= upper)
    ]
    return sum(inside) + sum(int(strip[2]) for strip in answer["strips"])


def text_of(answer: dict[str, Any], lower: int | None, upper: int | None) -> str:
    """Return the filter as `rangeFilter` in ``ranges.js`` does."""
    edges = ["" if lower is None else answer["lows"][lower], "" if upper is None else answer["highs"][upper]]
    return " and ".join(filter(None, [*edges, answer["rest"]])) or "true"


@pytest.mark.parametrize("column", ["started_at", "fare", "rider", "trip_id"])
def test_what_is_lit_is_what_is_planned(lab: ScanLab, table: ix.Table, column: str) -> None:
    lab.scan_range_of = {"column": column, "by": "partition"}
    assert lab.settle(60)
    answer = lab.scan_range
    assert (answer["column"], answer["by"]) == (column, "partition")
    count = len(answer["positions"])
    for lower, upper in [
        (None, None),
        (0, count - 1),
        (count // 2, None),
        (None, count // 3),
        (count // 4, count // 2),
    ]:
        planned = table.plan(text_of(answer, lower, upper))
        assert lit(answer, lower, upper) == len(planned)
    json.dumps(answer, allow_nan=False)


def test_a_range_that_is_planned_is_the_next_map(lab: ScanLab) -> None:
    answer = lab.scan_range
    lab.scan_filter = text_of(answer, 10, 40)
    assert lab.settle(60)
    again = lab.scan_range
    assert again["of"] == lab.scan_plan["of"] != answer["of"]
    assert lab.scan_plan["files"] == lit(answer, 10, 40)
    assert again["lows"][again["lower"]] == answer["lows"][10]
    assert again["highs"][again["upper"]] == answer["highs"][40]
    assert again["positions"] == answer["positions"], "the axis stays where it is"


def test_files_have_nodes_and_names(lab: ScanLab, table: ix.Table) -> None:
    answer = lab.scan_range
    tree = table.tree()
    assert len(answer["nodes"]) == len(answer["locations"]) == 12
    for node, name in zip(answer["nodes"], answer["locations"], strict=True):
        location = tree.node(node).location
        assert location is not None
        assert location.endswith(name)


def test_many_files_are_sent_as_cells() -> None:
    made = ix.empty({"a": "long"})
    made.append(files=3000, rows=10)
    lab = ScanLab(made, scan_filter="a > 100")
    try:
        assert lab.settle(60)
        answer = lab.scan_range
        assert "nodes" not in answer
        assert sum(answer["cells"]["count"]) == sum(answer["exact"]["count"]) == 3000
        for lower, upper in ((20, None), (10, 50)):
            assert lit(answer, lower, upper) == len(made.plan(text_of(answer, lower, upper)))
        assert len(json.dumps(answer)) < 400_000
    finally:
        lab.close()


def test_the_map_is_drawn_only_where_it_is_seen(table: ix.Table) -> None:
    lab = ScanLab(table, scan_filter="fare > 10", scan_view="tree")
    try:
        assert lab.settle(60)
        assert lab.scan_range == {}
        lab.scan_view = "ranges"
        assert lab.settle(60)
        assert lab.scan_range["column"] == "fare"
    finally:
        lab.close()


def test_pictures_and_wrong_requests(lab: ScanLab) -> None:
    lab.scan_picture_asked = {"n": 1, "theme": "dark"}
    assert lab.settle(60)
    assert lab.scan_picture["n"] == 1
    assert lab.scan_picture["svg"].startswith("<svg")
    lab.scan_picture_asked = {"n": 2, "theme": "light", "what": "waterfall"}
    assert lab.settle(60)
    assert lab.scan_picture["n"] == 2
    assert "after pruning data files" in lab.scan_picture["svg"]
    lab.scan_range_of = {"column": 5, "by": "range"}
    assert "give column" in lab.error["text"]
    lab.scan_range_of = {"column": "none", "by": "range"}
    assert lab.settle(60)
    assert lab.scan_range["column"] == "started_at"
    assert "data:image/svg+xml" in lab._repr_mimebundle_()[0]["text/html"]


def test_a_cancelled_map_says_so(table: ix.Table) -> None:
    lab = ScanLab(table, scan_filter="fare > 10")
    try:
        assert lab.settle(60)
        lab.scan_filter = "fare > 11"
        lab.cancelled += 1
        assert lab.settle(60)
        lab.scan_filter = "fare > 12"
        assert lab.settle(60)
        assert lab.scan_range["of"] == lab.scan_plan["of"]
    finally:
        lab.close()


def test_tables_without_files_or_ordered_columns() -> None:
    for made, missed in ((ix.empty({"a": "long"}), ""), (ix.empty({"v": "list<int>"}), "no column")):
        w = Explorer(made, tab="scan", scan_filter="true")
        try:
            assert w.settle(60)
            assert not w.error
            assert missed in w.scan_range.get("missed", "")
        finally:
            w.close()
    made = ix.empty({"a": "long"})
    made.append(pd.DataFrame({"a": [1]}))
    w = Explorer(made, tab="scan", scan_filter="a > 5")
    assert w.settle(60)
    assert lit(w.scan_range, w.scan_range["lower"], None) == 0
    w.close()
