"""Range maps: the files that a range lights up are those that a plan with this range reads."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.errors import IceexploreError, OptionError
from iceexplore.graph import TableState, open_state
from iceexplore.metadata import PrimitiveType
from iceexplore.planning import RangeMap, ScanPlan, cells_of, exact_cells, plan_scan, range_columns
from iceexplore.planning.range_map._build import _labels
from iceexplore.planning.range_map._live_files import planned_rows
from iceexplore.planning.range_map._stops import Stops
from tests.helpers.oracle_filters import filters, to_sql
from tests.helpers.tables.oracle_tables import ALL, random_table

#: Shrinking an example would take minutes, and the messages say what is wrong.
few = settings(
    max_examples=max(3, settings().max_examples // 20),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


def files_read(plan: ScanPlan) -> list[tuple[int, int]]:
    """Return the manifest's row and the ordinal of each file that a plan reads."""
    rows = [-1 if r is None else r for r in build.to_pylist(plan.files.root_row)]
    return sorted(zip(rows, build.to_pylist(plan.files.files.entries["ordinal"]), strict=True))


def lit_files(found: RangeMap, lower: int | None, upper: int | None) -> list[tuple[int, int]]:
    at = np.flatnonzero(found.lit(lower, upper)).tolist()
    rows, ordinals = build.to_pylist(found.files.root_row), build.to_pylist(found.files.ordinal)
    return sorted((rows[i], ordinals[i]) for i in at)


def check(state: TableState, where: str | None, column: str, pairs: list[tuple[int | None, int | None]]) -> RangeMap:
    """Compare what some pairs of edges light up with plans of the filters that the map gives for them."""
    plan = plan_scan(state, where)
    found = plan.range_map(column)
    read = found.verdict < 2
    assert np.array_equal(np.flatnonzero(read), np.sort(np.asarray(planned_rows(plan, found.files))))
    count = len(found.stops)
    for lower, upper in pairs:
        ends = tuple(None if at is None or not count else at % count for at in (lower, upper))
        text = found.filter_text(*ends)
        again = plan_scan(state, text)
        assert lit_files(found, *ends) == files_read(again), f"{where} on {column}: {text}"
    return found


EDGES = st.lists(st.tuples(st.none() | st.integers(0, 500), st.none() | st.integers(0, 500)), min_size=2, max_size=4)


@pytest.mark.parametrize("version", ALL)
@few
@given(data=st.data())
def test_files_of_random_tables_are_lit_as_they_are_planned(version: str, data: st.DataObject) -> None:
    table = random_table(data.draw, version)
    try:
        state = table._state
        for column in range_columns(state.schema):
            where = data.draw(st.none() | filters(state.schema).map(to_sql))
            check(state, where, column, data.draw(EDGES))
    finally:
        table.close()


@pytest.mark.corpus
def test_files_of_real_tables_are_lit_as_they_are_planned(corpus: Path) -> None:
    expected = json.loads((corpus / "expected.json").read_text())
    shown = 0
    for number, (folder, facts) in enumerate(sorted(expected.items())):
        if number % 4 or not facts["metadata"] or (facts.get("data_files") or 0) > 500:
            continue
        try:
            state = open_state(corpus / folder / facts["metadata"])
        except IceexploreError:
            continue
        for column in list(range_columns(state.schema))[:3]:
            found = check(state, None, column, [(1, None), (0, 2)])
            shown += bool((found.kind == 0).any())
            ElementTree.fromstring(found.to_svg())
    assert shown > 5


# The picture ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trips() -> ix.Table:
    return ix.sample("trips")


def test_the_edges_are_the_filters(trips: ix.Table) -> None:
    found = trips.plan("started_at >= '2024-05-01' and rider = 'guest'").range_map()
    assert (found.column, found.upper, found.rest) == ("started_at", None, "rider = 'guest'")
    assert found.lower is not None
    assert found.labels[found.lower].startswith("2024-05-01")
    assert files_read(trips.plan(found.filter_text(found.lower, None))) == lit_files(found, found.lower, None)
    assert found.counts["files"].sum() == len(found)
    assert found.counts["files"][:2].sum() == len(trips.plan("started_at >= '2024-05-01' and rider = 'guest'"))


@pytest.mark.parametrize(
    ("where", "column", "edges"),
    [
        ("fare > 10", "fare", (">", None)),
        ("fare between 10 and 20", "fare", (">=", "<=")),
        ("fare < 20 and fare < 15", "fare", (None, "<")),
        ("fare > 3 or rider = 'guest'", "fare", (None, None)),
        ("fare in (3, 4)", "fare", (None, None)),
        ("fare = 3", "fare", (">=", "<=")),
        ("rider = 'guest'", "fare", (None, None)),
        ("true", "started_at", (None, None)),
    ],
)
def test_comparisons_in_the_conjunction_are_edges(
    trips: ix.Table, where: str, column: str, edges: tuple[str | None, str | None]
) -> None:
    found = trips.plan(where).range_map(None if where == "true" else column)
    ops = (
        None if found.lower is None else found.stops.lower_ops[found.lower],
        None if found.upper is None else found.stops.upper_ops[found.upper],
    )
    assert (found.column, ops) == (column, edges)
    again = trips.plan(found.filter_text(found.lower, found.upper))
    assert files_read(again) == files_read(trips.plan(where))


def test_a_map_of_one_partition_has_no_filter_text() -> None:
    table = ix.empty({"region": "string", "a": "long"}, partition_by=["region"])
    table.append(pd.DataFrame({"region": ["x", "y"], "a": [1, 2]}))
    found = table.plan("a >= 1", partition={"region": "x"}).range_map()
    assert found.lit(found.lower, None).tolist() == [True, False]
    with pytest.raises(OptionError, match=r"partition .*'x'.* plan\('a >= 1', partition=\{'region': 'x'\}\)"):
        found.filter_text(found.lower, None)


def test_files_without_bounds_and_of_nulls_are_apart() -> None:
    table = ix.empty({"a": "long", "b": "string"}, properties={"write.metadata.metrics.column.b": "none"})
    table.append(pd.DataFrame({"a": [1, 5], "b": ["x", "y"]}))
    table.append(pd.DataFrame({"a": pd.array([None, None], "Int64"), "b": ["x", "y"]}))
    found = table.plan("a > 3").range_map()
    assert found.kind.tolist() == [0, 2]
    assert found.lit(None, None).tolist() == [True, True]
    assert found.lit(found.lower, None).tolist() == [True, False]
    assert "Only nulls: 1 skipped" in found.to_svg()
    bare = table.plan("b > 'x'").range_map("b")
    assert bare.kind.tolist() == [1, 1]
    assert "no bounds" in bare.to_text()
    assert "No file has usable bounds of b" in table.plan().range_map("b").description + " ".join(
        table.plan().range_map("b").notes
    )


def test_many_files_are_counted_per_cell() -> None:
    table = ix.empty({"a": "long"}, partition_by=["bucket(4, a)"])
    table.append(files=2000, rows=10)
    plan = table.plan("a > 1000")
    for by in ("range", "partition", "snapshot"):
        found = plan.range_map(by=by)
        cells = cells_of(found)
        assert found.is_binned
        assert cells.items is None
        assert cells.rows <= 48
        assert cells.count.sum() == (found.kind == 0).sum()
        assert cells.size.sum() == found.bytes[found.kind == 0].sum()
        exact = exact_cells(found)
        lit = (exact.open > 0) & (exact.last > 3) & (exact.first <= 40)
        assert exact.count[lit].sum() + (found.lit(3, 40) & (found.kind == 1)).sum() == found.lit(3, 40).sum()
        drawn = (cells.open > 0) & (cells.last > 3) & (cells.first <= 40)
        assert cells.count[drawn].sum() >= exact.count[lit].sum(), "rounded outwards"
        assert len(found.to_svg()) < 200_000


def test_the_picture_is_plain_svg_in_both_themes(trips: ix.Table) -> None:
    found = trips.plan("fare > 10").range_map(by="partition")
    for theme in ("auto", "light", "dark"):
        root = ElementTree.fromstring(found.to_svg(theme, width=900))
        assert root.get("role") == "img"
        assert "trips: values of fare in 12 files" in "".join(root.itertext())
    assert "prefers-color-scheme" not in found.to_svg("light")
    assert "data:image/svg+xml;base64," in found._repr_mimebundle_()["text/html"]
    for wrong in ({"theme": "blue"}, {"width": 10}):
        with pytest.raises(OptionError):
            found.to_svg(**wrong)


def test_hostile_names_and_values_are_text() -> None:
    name = "<img src=x onerror=alert(1)>\x1b[2J"
    table = ix.empty({name: "string"})
    for value in ("<script>alert(1)</script>\u202e", "zz\x00"):
        table.append(pd.DataFrame({name: [value]}))
    found = table.plan().range_map(name)
    svg, text = found.to_svg(), found.to_text()
    ElementTree.fromstring(svg)
    assert "<script" not in svg
    assert "<img" not in svg
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert len(table.plan(found.filter_text(1, 1))) == 1


def test_wrong_columns_are_named(trips: ix.Table) -> None:
    plan = trips.plan()
    with pytest.raises(OptionError, match=r"no column 'fares', .*; nearest: fare"):
        plan.range_map("fares")
    with pytest.raises(OptionError, match="choose 'range', 'partition' or 'snapshot'"):
        plan.range_map(by="size")  # type: ignore[arg-type]
    empty = ix.empty({"a": "long"})
    assert len(empty.plan("a > 1").range_map()) == 0
    assert "0 of 0 files" in empty.plan("a > 1").range_map().to_text()


def test_labels_of_floats_have_the_digits_that_distinguish_them() -> None:
    def labels(values: list[float], kind: str) -> tuple[str, ...]:
        return _labels(Stops(tuple(values), (), (), ()), PrimitiveType(kind))

    single = [float(np.float32(v)) for v in (0.1, 1.3, 12.9)]
    assert labels(single, "float") == ("0.1", "1.3", "12.9")
    assert labels([0.1 + 0.2, 1.0, 2.5], "double") == ("0.3", "1", "2.5")
    near = [1.00000001, 1.00000002, 1.00000003]
    assert len(set(labels(near, "double"))) == 3
    assert labels([0.5, 2.25], "double") == ("0.5", "2.25")
