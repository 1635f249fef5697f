"""How the methods of a table are called: what names a state, and names that are deprecated."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import iceexplore as ix
from iceexplore import verification
from iceexplore.errors import OptionError, renamed_arguments


@pytest.fixture(scope="module")
def trips() -> ix.Table:
    return ix.sample("trips")


def test_at_takes_a_snapshot_an_id_a_ref_and_a_table_alike(trips: ix.Table) -> None:
    old = trips.snapshots[2]
    for named in (old, old.snapshot_id, str(old.snapshot_id), trips.at(snapshot=old.snapshot_id)):
        assert trips.at(named).snapshot == old
    ref = next(iter(trips.refs))
    assert trips.at(ref).snapshot == trips.at(ref=ref).snapshot


def test_at_takes_one_argument_only(trips: ix.Table) -> None:
    with pytest.raises(OptionError, match=r"at\(\) takes one argument: give 'main' or version=, not both"):
        trips.at("main", version=3)
    with pytest.raises(OptionError, match=r"at\(\) takes exactly one of"):
        trips.at()


def test_diff_changes_and_plan_take_the_same_names_of_states(trips: ix.Table) -> None:
    old = trips.snapshots[1]
    named: list[Any] = [old, old.snapshot_id, trips.at(old)]
    assert len({trips.diff(one).title() for one in named}) == 1
    assert len({str(trips.changes(one, "main").files) for one in named}) == 1
    first = trips.snapshots[0]
    plans = [trips.plan(from_snapshot=f, to_snapshot=o) for f, o in
             ((first, old), (first.snapshot_id, old.snapshot_id), (trips.at(first), trips.at(old)))]  # fmt: skip
    texts = [repr(plan).split("\n") for plan in plans]
    same = [[line for line in text if "Planned in" not in line] for text in texts]
    assert same[0] == same[1] == same[2]


def test_changes_from_none_are_from_the_empty_table(trips: ix.Table) -> None:
    made = trips.changes(None, "main").files
    assert set(made["change"]) == {"added"}
    live = set(trips.inspect.files()["file_path"])
    assert set(made["location"]) == live


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda t: t.diff(None), "diff"),
        (lambda t: t.diff(3.5), "diff"),
        (lambda t: t.changes(3.5, "main"), "changes"),
        (lambda t: t.changes(1.5), "changes"),
        (lambda t: t.at(2.5), "at"),
        (lambda t: t.scan(None, snapshot=2.5), "scan"),
        (lambda t: t.simulate().rollback(2.5), "rollback"),
        (lambda t: t.simulate().tag("x", 2.5), "tag"),
        (lambda t: t.simulate().cherry_pick(None), "cherry_pick"),
    ],
)
def test_a_wrong_state_names_the_call(trips: ix.Table, call: Any, name: str) -> None:
    with pytest.raises(OptionError, match=rf"^{name}\(\): "):
        call(trips)


def test_a_filter_is_called_where_and_its_old_name_warns(trips: ix.Table) -> None:
    wanted = trips.to_arrow("trip_id < 20").num_rows
    for name in ("plan", "head", "count", "to_arrow", "to_pandas", "rows", "scan", "changes"):
        assert "where" in inspect.signature(getattr(ix.Table, name)).parameters, name
    old: Any = trips
    with pytest.warns(DeprecationWarning, match=r"count\(filter=...\) is deprecated: use where="):
        assert old.count(filter="trip_id < 20") == wanted
    assert trips.count(where="trip_id < 20") == wanted
    with pytest.raises(OptionError, match="give where= alone"):
        old.count(filter="a", where="b")


def test_old_names_warn() -> None:
    s: Any = ix.empty({"id": "long"})
    with pytest.warns(DeprecationWarning, match=r"relayout\(\) is deprecated: use set_layout\(\)"):
        assert s.relayout(flush_data_files=7).flush_data_files == 7
    with pytest.warns(DeprecationWarning, match="style='proposal'"):
        assert s.tree(style="seed").to_text() == s.tree(style="proposal").to_text()


def test_old_names_of_packages_warn() -> None:
    for package, old, new in (
        (ix.graph, "SeedTree", "ProposalDiagram"),
        (ix.graph, "build_seed_tree", "build_proposal_diagram"),
        (ix.reading, "MADE_UP_FOLDER", "SYNTHETIC_FOLDER"),
        (ix.reading, "is_made_up", "is_synthetic"),
        (ix.widgets, "Face", "TableWidget"),
        (ix.planning, "Evidence", "ColumnMetrics"),
        (ix.commits, "BENT_RULES", "VIOLATED_RULES"),
        (ix.commits, "BentLeaf", "ViolatingLeaf"),
        (ix.commits, "bent_commit", "commit_violating_rules"),
        (ix.commits, "bent_dv", "manifest_dv_entry"),
        (ix.commits, "bent_rules", "rules_violated_by"),
    ):
        with pytest.warns(DeprecationWarning, match=f"{old} is deprecated: import {new} from"):
            assert getattr(package, old) is getattr(package, new)
        with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
            _ = package.no_such_name
    with pytest.warns(DeprecationWarning, match="import it from iceexplore.expressions"):
        assert ix.planning.Predicate is ix.expressions.Predicate
    for old in ("verify_local", "verify_here"):
        with pytest.warns(DeprecationWarning, match=f"{old} is deprecated: import verify_local from iceexplore.verif"):
            assert getattr(ix.on_spark, old) is verification.verify_local
    options: Any = ix.commits.LayoutOptions.of(4)
    with pytest.warns(DeprecationWarning, match=r"use replace\(\)"):
        assert options.but(leaf_entries=7) == options.replace(leaf_entries=7)
    with pytest.warns(DeprecationWarning, match="use Rule.id"):
        assert ix.commits.rule("dv-struct").name == "dv-struct"


def test_a_renamed_argument_keeps_the_signature() -> None:
    @renamed_arguments(old="new")
    def call(new: int = 1) -> int:
        """Return it."""
        return new

    assert call() == 1
    assert call(2) == 2
    assert str(inspect.signature(call)) == "(new: 'int' = 1) -> 'int'"
