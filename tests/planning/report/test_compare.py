"""Two plans side by side."""

from __future__ import annotations

import pytest

import iceexplore as ix
from iceexplore.errors import OptionError
from iceexplore.planning.report._compare import PlanComparison
from tests.helpers.hostile import HOSTILE
from tests.helpers.tables import plan_table as lab


def test_comparing_two_filters_lists_each_file_by_who_reads_it() -> None:
    table = lab.with_deletes("v2")
    a, b = table.plan("region = 'a'"), table.plan("day = date '2024-01-01'")
    files = a.compare(b).files
    mine, other = set(lab.planned(a)), set(lab.planned(b))
    for who, wanted in (("both", mine & other), ("a", mine - other), ("b", other - mine)):
        assert set(files[files["read_by"] == who]["file_path"]) == wanted
    alone = files[files["read_by"] == "b"]
    assert alone["residual_a"].isna().all()
    assert set(alone["residual_b"]) == {"true"}


def test_numbers_are_those_of_the_plans() -> None:
    table = lab.with_deletes("v3")
    a, b = table.plan(), table.plan("region = 'a'")
    numbers = a.compare(b).numbers.set_index("number")
    for name, value in a.totals.items():
        if name in numbers.index and value is not None:
            assert numbers.loc[name, "a"] == value
            assert numbers.loc[name, "difference"] == (b.totals[name] or 0) - value
    assert numbers.loc["files", "difference"] == -10


def test_layouts_read_the_same_files_and_other_metadata() -> None:
    where = "day = date '2024-01-03'"
    old = lab.filled("v2")
    new = old.simulate(format_version=4)
    new.rewrite_manifests()
    compared = old.plan(where).compare(new.plan(where))
    assert set(compared.files["read_by"]) == {"both"}
    numbers = compared.numbers.set_index("number")
    assert numbers.loc["files", "difference"] == 0
    assert numbers.loc["metadata_bytes", "difference"] != 0


def test_states_are_compared_too() -> None:
    table = lab.filled("v2", appends=3)
    first = table.at(snapshot=table.metadata.snapshots[0].snapshot_id)
    files = first.plan().compare(table.plan()).files
    assert files["read_by"].value_counts().to_dict() == {"b": 6, "both": 3}


def test_it_shows_itself() -> None:
    table = lab.filled("v2")
    compared = table.plan("region = 'a'").compare(table.plan("region = 'b'"))
    text, html = repr(compared), compared._repr_html_()
    for words in ("region = 'a'", "region = 'b'", "only a", "data files read"):
        assert words in text
    assert "<table" in html
    empty = table.plan("id < 0")
    assert "data files read" in repr(empty.compare(empty))


def test_only_plans_are_compared() -> None:
    plan = lab.filled("v2", appends=1).plan()
    with pytest.raises(OptionError, match="takes another plan"):
        plan.compare("region = 'a'")  # type: ignore[arg-type]


def test_why_the_other_does_not_read_a_file() -> None:
    table = lab.with_deletes("v2")
    a, b = table.plan("region = 'a'"), table.plan("day >= date '2024-01-03' and amount > 30")
    alone = a.compare(b).alone
    assert set(alone["absent"]) == {"skipped"}
    assert alone["why"].notna().all()
    for who, other in (("a", b), ("b", a)):
        mine = alone[alone["read_by"] == who].set_index("file_path")
        assert set(mine.index) == set(lab.planned(a if who == "a" else b)) - set(lab.planned(other))
        skipped = other.skipped[other.skipped["kind"] == "data file"].set_index("name")
        for name in set(mine.index) & set(skipped.index):
            assert mine.loc[name, "why"] == skipped.loc[name, "why"]
            assert mine.loc[name, "term"] == skipped.loc[name, "term"]


@pytest.mark.parametrize("layout", ["v1", "v2", "v4-root", "v4-leaves"])
def test_of_another_snapshot_files_are_not_there(layout: str) -> None:
    table = lab.filled(layout, appends=3)
    first = table.at(snapshot=table.metadata.snapshots[0].snapshot_id)
    compared = first.plan().compare(table.plan("id > 4"))
    assert compared.differences["what"].tolist() == ["filter", "snapshot"]
    alone = compared.alone
    assert set(alone[alone["read_by"] == "b"]["absent"]) == {"not in the other plan's snapshot"}
    assert alone[alone["read_by"] == "b"]["why"].isna().all()
    assert (alone[alone["read_by"] == "a"]["absent"] == "skipped").all()
    assert "The plans differ in filter, snapshot." in compared.summary


def test_a_summary_counts() -> None:
    table = lab.filled("v2")
    same = table.plan("region = 'a'").compare(table.plan("region = 'a'"))
    assert same.summary == "Both plans have the same settings and table state. They read the same files: 5 data files."
    assert len(same.differences) == len(same.alone) == 0
    apart = table.plan("region = 'a'").compare(table.plan("region = 'b' and id > 20"))
    assert "They have no data file in common: plan a reads 5, plan b 3." in apart.summary
    assert "b reads 2 data files fewer, 11 rows fewer" in apart.summary
    more = table.plan("id < 20").compare(table.plan("id < 30"))
    assert "6 data files in both plans, 0 only in plan a, 3 only in plan b." in more.summary
    assert "b reads 3 data files more, 10 rows more" in more.summary


def test_another_layout_version_and_spec() -> None:
    old = lab.filled("v2")
    new = old.simulate(format_version=4)
    new.evolve_spec(remove=["region"])
    new.rewrite_manifests()
    compared = old.plan("id = 3", columns=["id"]).compare(new.plan("id = 3", row_groups=True))
    what = asked(compared)
    assert what["format version"] == ("2", "4")
    assert what["columns"] == ("id", "all")
    assert what["row groups"] == ("not checked", "checked")
    assert "region" in what["partition spec"][0]
    assert "region" not in what["partition spec"][1]
    assert "less metadata." in compared.summary
    text = repr(compared)
    assert "What differs" in text
    assert "partition spec" in text


def test_an_incremental_plan_beside_a_full_one() -> None:
    table = lab.filled("v3", appends=3)
    first = table.metadata.snapshots[0].snapshot_id
    compared = table.plan().compare(table.plan(from_snapshot=first))
    assert asked(compared)["from snapshot"] == ("not incremental", str(first))
    assert set(compared.alone["absent"]) == {"not in the other plan's snapshot"}
    assert compared.files["read_by"].value_counts().to_dict() == {"both": 6, "a": 3}


@pytest.mark.parametrize("name", [n for n in HOSTILE if n not in ("surrogate", "noncharacter", "nul", "empty")])
def test_hostile_values_stay_text(name: str) -> None:
    text = HOSTILE[name][:2000]
    table = ix.empty({"x": "string"}, partition_by="x", format_version=2, seed=1)
    table.append(2, rows=3, partitions=[{"x": text}, {"x": "plain"}])
    quoted = text.replace("'", "''")
    compared = table.plan(f"x = '{quoted}'").compare(table.plan("x = 'plain'"))
    assert set(compared.alone["read_by"]) == {"a", "b"}
    html, plain = compared._repr_html_(), repr(compared)
    for tag in ("<script", "<img src=x", "<svg onload", "<style>*", "<foreignObject", "<b>bold"):
        assert tag not in html
    for sign in "\x1b\x07\x9b\r\x08\u202e\u2066\x00":
        assert sign not in plain


def asked(compared: PlanComparison) -> dict[str, tuple[str, str]]:
    """`differences` by what differs."""
    return {r["what"]: (r["a"], r["b"]) for r in compared.differences.to_dict("records")}
