"""Two plans side by side."""

from __future__ import annotations

import pytest

from iceexplore.errors import OptionError
from tests.planning import plan_lab as lab


def test_of_two_filters_each_file_is_told_by_who_reads_it() -> None:
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
    for words in ("region = 'a'", "region = 'b'", "a alone", "data files read"):
        assert words in text
    assert "<table" in html
    empty = table.plan("id < 0")
    assert "data files read" in repr(empty.compare(empty))


def test_only_plans_are_compared() -> None:
    plan = lab.filled("v2", appends=1).plan()
    with pytest.raises(OptionError, match="takes another plan"):
        plan.compare("region = 'a'")  # type: ignore[arg-type]
