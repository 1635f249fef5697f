"""`t.rules()`: every rule of the tree, kept or broken, with the document's sentence."""

from __future__ import annotations

import pytest

import iceexplore as ix
from iceexplore.commits import check_rules, checked_rules, rule_report
from iceexplore.errors import RULES, OptionError
from tests.commits.rules.test_check_rules import edited, is_named, make_lab, with_root


def test_a_sound_table_keeps_every_rule() -> None:
    s = ix.empty({"id": "long"}, format_version=4, seed=1)
    assert s.rules().ok and len(s.rules().rules) == 0 and "no snapshot" in repr(s.rules())
    s.append(files=2, rows=10)
    report = s.rules()
    assert report.ok and report.rules == checked_rules(s.state) and report.broken == ()
    rows = report.arrow.to_pylist()
    assert all(r["kept"] and r["violations"] == 0 and r["where"] is None for r in rows)
    by_rule = {r["rule"]: r for r in rows}
    assert by_rule["one-root"]["quote"] == "Every snapshot has exactly one Root Manifest in the metadata tree"
    text, page = repr(report), report._repr_html_()
    assert f"{len(rows)} of {len(rows)} rules" in text and "exactly one Root Manifest" in page
    assert len(report.to_pandas()) == len(rows)


def test_a_broken_rule_is_listed_with_its_place(tmp_path_factory: pytest.TempPathFactory) -> None:
    lab = make_lab(tmp_path_factory.mktemp("report"))
    state = with_root(lab.state, lambda b: edited(b, is_named("R2"), split_offsets=[9, 4]))
    report = rule_report(state)
    assert [r.id for r in report.broken] == ["split-offsets"] and not report.ok
    (row,) = [r for r in report.arrow.to_pylist() if not r["kept"]]
    assert row["violations"] == 1 and row["where"].endswith("#entry 3") == (row["where"][-1] == "3")
    assert row["quote"] == "Must be sorted ascending" and "Broken" in repr(report)
    assert report.breaks == tuple(check_rules(state))
    assert rule_report(state, relaxed=["split-offsets"]).ok
    with pytest.raises(OptionError, match="unknown rule"):
        rule_report(state, relaxed=["no-such"])


def test_below_v4_fewer_rules_apply() -> None:
    s = ix.empty({"id": "long"}, format_version=2, seed=1)
    s.append(files=1, rows=1)
    found = {r.id for r in s.rules().rules}
    assert "duplicate-file" in found and "one-root" in found and "affinity" not in found


def test_a_tree_of_the_draft_quotes_the_draft() -> None:
    s = ix.empty({"id": "long"}, dialect="v4-draft", seed=1)
    s.append(files=2, rows=10)
    shown = {r["rule"]: (r["quote"], r["source"]) for r in s.rules().arrow.to_pylist()}
    for rule in RULES.values():
        if rule.id in shown and rule.draft_quote:
            assert shown[rule.id] == (rule.draft_quote, rule.draft_source) and rule.draft
            assert rule.quote != rule.draft_quote
    assert shown["split-offsets"][1] == "V4 draft, Tracked Files (apache/iceberg#16025)"
    assert shown["stats-cover"][0].startswith("Lower bounds must be less than or equal to")
    assert not [rule for rule, (_, source) in shown.items() if source.startswith("V4 proposal")]
    plain = ix.empty({"id": "long"}, seed=1)
    plain.append(files=1, rows=1)
    assert {r.source for r in plain.rules().rules if r.id == "split-offsets"} == {RULES["split-offsets"].source}
