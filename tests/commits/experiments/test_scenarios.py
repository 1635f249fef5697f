"""The proposal's scenarios of change detection: what must hold of each form, whatever the bytes."""

from __future__ import annotations

from typing import Any

import pytest

import iceexplore as ix
from iceexplore.commits import ChangeScenarios, changes_of
from iceexplore.errors import OptionError


@pytest.fixture(scope="module")
def found() -> ChangeScenarios:
    return ix.change_scenarios()


@pytest.fixture(scope="module")
def rows(found: ChangeScenarios) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = found.arrow.to_pylist()
    return made


def of(rows: list[dict[str, Any]], scenario: int, form: str) -> dict[str, Any]:
    (row,) = [r for r in rows if r["scenario"].startswith(str(scenario)) and r["form"] == form]
    return row


def numbers(row: dict[str, Any]) -> tuple[int, ...]:
    return tuple(row[n] for n in ("added", "removed", "found_added", "found_removed"))


def test_every_scenario_has_its_forms_and_each_encoding(rows: list[dict[str, Any]]) -> None:
    assert len(rows) == 5 + 3 * 3 * 2
    assert all(r["root_bytes"] > 0 and r["puffin_bytes"] == 0 for r in rows)
    # Only a rewritten manifest, and one for new files, is written; a change of a manifest writes none.
    assert {r["scenario"][0] for r in rows if r["manifest_bytes"]} == {"2", "3"}


def test_by_rule_every_encoding_is_unambiguous(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if row["form"] == "by rule":
            assert row["unambiguous"] and row["right"] and row["right_by_entries"], row
            assert numbers(row)[:2] == numbers(row)[2:] == {"1": (0, 3), "2": (0, 0), "3": (5, 1)}[row["scenario"][0]]
            needed = row["encoding"] == "replace" and row["scenario"][0] != "2"
            assert row["read_to_know"] == (["root", "previous root"] if needed else ["root"])
            assert row["root_alone"] is not needed
            assert bool(row["violates"]) <= row["attached"]


def test_option_1_is_right_as_the_document_reads_it(rows: list[dict[str, Any]]) -> None:
    row = of(rows, 1, "proposal, option 1")
    assert numbers(row) == (0, 3, 0, 3)
    assert row["unambiguous"] and row["root_alone"] and row["violates"] == ["leaf-change-by-dv"]


def test_option_1_shows_nothing_to_who_takes_a_deleted_manifest_for_a_compacted_one(
    rows: list[dict[str, Any]],
) -> None:
    row = of(rows, 1, "proposal, option 1, read according to the rules")
    assert numbers(row) == (0, 3, 0, 0)
    assert not row["unambiguous"] and row["violates"] == ["leaf-change-by-dv"]


def test_the_rest_deleted_by_a_vector_of_the_change_is_found_with_a_doubt(rows: list[dict[str, Any]]) -> None:
    row = of(rows, 1, "proposal, option 2")
    assert numbers(row) == (0, 3, 0, 3)
    assert row["right"] and not row["unambiguous"] and row["violates"] == ["leaf-change-by-dv", "orphan-dv"]


def test_both_options_of_scenario_1_take_similar_room() -> None:
    """The proposal: "Both options can work and will likely have similar storage sizes."."""
    for scale in (1, 50):
        rows = ix.change_scenarios(scale=scale).arrow.to_pylist()
        sizes = [of(rows, 1, f"proposal, option {n}")["root_bytes"] for n in (1, 2)]
        assert max(sizes) < 1.05 * min(sizes)


def test_a_rewritten_manifest_that_is_added_looks_like_an_append(rows: list[dict[str, Any]]) -> None:
    row = of(rows, 2, "proposal")
    assert numbers(row) == (0, 0, 3, 0)
    assert not row["unambiguous"] and row["violates"] == ["added-is-change"]


def test_a_rewrite_with_changes_is_misread_by_the_root(rows: list[dict[str, Any]]) -> None:
    row = of(rows, 3, "proposal, with changes")
    assert numbers(row) == (5, 1, 7, 0)
    assert not row["unambiguous"] and row["violates"] == ["added-is-change", "leaf-change-by-dv"]


def test_what_the_proposal_means_is_there_for_who_opens_the_manifests(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        assert row["right_by_entries"], row
    # That takes the manifest that was rewritten and the new one, where the root by rule says that nothing changed.
    assert {r["opened_by_entries"] for r in rows if r["scenario"][0] == "2" and r["form"] == "by rule"} == {2}
    assert all(not r["read_for_names"] for r in rows if r["scenario"][0] == "2" and r["form"] == "by rule")


def test_it_shows_itself(found: ChangeScenarios) -> None:
    text, page = repr(found), found._repr_html_()
    assert "Scenario 2: a manifest is rewritten" in text and "root, previous root" in text
    assert "leaf-change-by-dv, orphan-dv" in page and "<table" in page
    assert len(found.to_pandas()) == found.arrow.num_rows


def test_a_scale_has_an_end() -> None:
    with pytest.raises(OptionError, match=r"at most 10,000"):
        ix.change_scenarios(scale=10**30)


def test_more_entries_and_vectors_in_puffin_files() -> None:
    rows = ix.change_scenarios(scale=20, inline_dv_bytes=0, manifest_format="avro").arrow.to_pylist()
    for row in rows:
        assert numbers(row)[:2] == {"1": (0, 60), "2": (0, 0), "3": (100, 20)}[row["scenario"][0]]
        if row["form"] == "by rule":
            assert row["unambiguous"], row
            written = not row["attached"] and row["scenario"][0] != "2"
            assert (row["puffin_bytes"] > 0) >= written
            if written:
                assert "manifest DV" in row["read_to_know"]


def test_the_two_readings_of_a_deleted_manifest_part_at_a_compaction() -> None:
    s = ix.empty({"id": "long"}, format_version=4, flush_data_files=0, seed=1)
    s.append(files=4, rows=1)
    s.append(files=2, rows=1)
    s.rewrite_manifests([str(p) for p in s.inspect.manifests.arrow()["path"].to_pylist()])
    assert changes_of(s.state).files_arrow.num_rows == 0 and changes_of(s.state).unambiguous
    other = changes_of(s.state, deleted_manifests="removed")
    assert len(other.locations("removed")) == 6 and "then these entries were not removed" in other.doubts[0]
    with pytest.raises(OptionError, match="'compacted' or 'removed'"):
        changes_of(s.state, deleted_manifests="lost")  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [{"scale": 0}, {"scale": 1.5}, {"dv_encoding": "delta"}, {"colour": 1}])
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        ix.change_scenarios(**wrong)
