"""Plans of random tables against a brute-force reader: nothing with a matching row is pruned, the rows are the same.

For each table and filter: every file, and every row group, with a row that a plain reader selects is in the plan; files
that match wholly do; a residual selects of a file what the filter selects; what is read is what the plain reader reads,
value by value, deletes applied.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from iceexplore.arrow import build
from iceexplore.graph import TableState, travel
from iceexplore.planning import ScanPlan, plan_scan, row_groups_of
from iceexplore.reading import count_rows, head, to_arrow
from tests.helpers.oracle_filters import Tree, columns_of, filters, to_pyiceberg, to_sql, truth
from tests.helpers.sampling import one_of
from tests.helpers.tables.oracle_tables import ALL, random_table, small_row_groups
from tests.planning.brute_force import BruteFile, brute_force, by_id, same_value, selects

#: Of each state.
FILTERS = 5
#: A table is some ten commits, half a second: of the examples that a profile asks for each version has its share.
#: Shrinking one would take minutes, and the messages say what is wrong.
few = settings(
    max_examples=max(4, settings().max_examples // 15),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


@pytest.mark.parametrize("version", one_of(2, ALL))
@few
@given(data=st.data())
def test_plans_against_brute_force(version: str, data: st.DataObject) -> None:
    with small_row_groups():
        table = random_table(data.draw, version)
    try:
        states = [table._state]
        older = [s.snapshot_id for s in table._state.metadata.snapshots]
        if older:
            states.append(travel(table._state, snapshot=data.draw(st.sampled_from(older))))
        for state in states:
            files = brute_force(state)
            check_everything(state, files)
            for _ in range(FILTERS):
                tree = data.draw(filters(state.schema))
                as_text = data.draw(st.booleans())
                where = to_sql(tree) if as_text else to_pyiceberg(tree, columns_of(state.schema))
                check(state, files, tree, where)
        assert not list(table._state.problems), table._state.problems
    finally:
        table.close()


def check_everything(state: TableState, files: dict[str, BruteFile]) -> None:
    """Without a filter: every live file, wholly, and every row that is left."""
    plan = plan_scan(state)
    assert sorted(build.to_pylist(plan.files.files.entries["location"])) == sorted(files)
    assert all(plan.files.whole.to_pylist())
    left = {(f.location, at) for f in files.values() for at, _ in f.live_rows()}
    check_rows(state, files, None, left)
    assert len(head(state, 3)) == min(3, len(left))


def check(state: TableState, files: dict[str, BruteFile], tree: Tree, where: Any) -> None:
    """One filter."""
    selected = {f.location: {at for at, row in enumerate(f.rows) if truth(tree, row)} for f in files.values()}
    left = {(at, pos) for at, found in selected.items() for pos in found - files[at].deleted}
    plan = plan_scan(state, where)
    planned = build.to_pylist(plan.files.files.entries["location"])
    assert len(set(planned)) == len(planned)
    assert {at for at, _ in left} <= set(planned), f"pruned with a matching row: {to_sql(tree)}"
    for i, location in enumerate(planned):
        file = files[location]
        if plan.files.whole[i].as_py():
            assert len(selected[location]) == len(file.rows), f"not wholly: {to_sql(tree)}"
        residual = plan.files.residuals[plan.files.residual[i].as_py()]
        values = [by_id(state.schema, row) for row in file.rows]
        bound = {at for at, row in enumerate(values) if selects(plan.filter.expression, row)}
        assert bound == selected[location], f"bound to another meaning: {to_sql(tree)}"
        asked = {at for at, row in enumerate(values) if selects(residual, row)}
        assert asked == selected[location], f"residual {residual}: {to_sql(tree)}"
    check_row_groups(state, plan, selected, tree)
    check_rows(state, files, where, left)


def check_row_groups(state: TableState, plan: ScanPlan, selected: dict[str, set[int]], tree: Tree) -> None:
    """No row group with a matching row is ruled out, deleted rows among them; the row groups are the file's."""
    planned = plan.files.files.entries["location"].to_pylist()
    begin: dict[int, int] = {}
    for row in row_groups_of(state, plan.files, bloom=True).to_pylist():
        first = begin.get(row["file"], 0)
        begin[row["file"]] = first + row["rows"]
        hit = selected[planned[row["file"]]] & set(range(first, first + row["rows"]))
        assert row["may"] or not hit, f"row group {row} has rows {hit}: {to_sql(tree)}"
        assert row["may"] or row["why"]
    assert [begin[i] for i in range(len(planned))] == plan.files.files.entries["record_count"].to_pylist()


def check_rows(state: TableState, files: dict[str, BruteFile], where: Any, left: set[tuple[str, int]]) -> None:
    """What is read is what is left, in every column."""
    names = [f.name for f in state.schema.fields]
    found = to_arrow(state, where, [*names, "_file", "_pos"]).to_pylist()
    assert len(found) == len({(r["_file"], r["_pos"]) for r in found})
    assert {(r["_file"], r["_pos"]) for r in found} == left
    for row in found:
        expected = files[row["_file"]].rows[row["_pos"]]
        for name in names:
            assert same_value(row[name], expected[name]), (name, row[name], expected[name])
    assert int(count_rows(state, where)) == len(left)
