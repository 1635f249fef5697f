"""The doctor in the explorer: checks, findings with their chains and nodes, repairs, and what goes wrong meanwhile."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.doctor import Report
from iceexplore.errors import FormatError, OptionError, problem
from iceexplore.widgets import Explorer, Problems
from iceexplore.widgets.problems import _repair
from iceexplore.widgets.problems._doctor_panel import DoctorPanel
from iceexplore.widgets.problems._findings import findings_sent
from tests.doctor import file_damages, manifest_damages  # noqa: F401 (they register their damages)
from tests.doctor.damages import DAMAGES, document_path, edit_json, file_paths, healthy
from tests.helpers.hostile import HOSTILE

Opened = Callable[..., Any]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Make a widget of a table with some damages."""
    made: list[Any] = []

    def make(kind: Any, *names: str) -> Any:
        folder = healthy(tmp_path)
        by_name = {one.name: one for one in DAMAGES}
        for name in names:
            by_name[name].damage(folder)
        made.append(kind(ix.open(folder)))
        assert made[-1].settle(60)
        return made[-1]

    yield make
    for widget in made:
        widget.close()


def ask(widget: Any, do: str, **more: str) -> None:
    widget.doctor_asked = {"n": widget.doctor_asked.get("n", 0) + 1, "do": do, **more}
    assert widget.settle(60)


def test_a_check_finds_what_the_doctor_finds(opened: Opened, tmp_path: Path) -> None:
    widget = opened(Explorer, "summary_totals_wrong", "data_file_gone")
    assert (widget.doctor_report, widget.report) == ({}, None)
    ask(widget, "check", level="metadata", snapshots="all")
    report = ix.open(tmp_path / "t").check(snapshots="all")
    sent = widget.doctor_report
    assert [(f["code"], f["severity"]) for f in sent["findings"]] == [(f.code, f.severity) for f in report]
    assert [f["code"] for f in sent["findings"]] == ["file-missing", "totals-differ"]
    assert sent["counts"] == {"fail": 1, "wrong": 1, "slow": 0, "untidy": 0}
    assert sent["sums"]["wrong"] == "1 × wrong rows or numbers"
    assert sent["scope"].startswith("level metadata, 4 of 4 snapshots, ")
    assert ["problems", "Health (2)"] in widget.parts
    assert widget.busy == ""
    assert widget.report.findings == report.findings


def test_from_a_finding_to_its_node_and_its_commit(opened: Opened, tmp_path: Path) -> None:
    widget = opened(Explorer, "data_file_gone", "summary_totals_wrong")
    (gone,) = [p for p in file_paths(tmp_path / "t") if not p.exists()]
    ask(widget, "check", level="metadata", snapshots="all")
    missing, totals = widget.doctor_report["findings"]
    widget.selection = {**widget.selection, **missing["node"]}
    assert widget.settle(60)
    assert widget.selected.location.endswith(gone.name)
    newest = str(ix.open(tmp_path / "t").snapshot.snapshot_id)  # type: ignore[union-attr]
    assert totals["since"] == {"snapshot": newest, "node": f"snapshot:{newest}"}
    assert dict(totals["lines"])["Since"].startswith(f"snapshot {newest} of ")
    assert missing["since"] is None, "nothing records when a file was deleted"
    assert {"Where", "Do", "Affects"} <= dict(missing["lines"]).keys()
    assert [words[:17] for words, _ in missing["affected"]] == ["Snapshot 4 of 4, "]
    assert missing["affected"][0][1] == {"snapshot": newest, "node": f"snapshot:{newest}"}
    begun = totals["affected"][0]
    assert begun[1] == totals["since"] and begun[0].startswith(("First: ", "Snapshot "))


def test_a_fault_of_an_older_snapshot_is_shown_in_its_tree(opened: Opened) -> None:
    widget = opened(Explorer, "old_list_gone")
    ask(widget, "check", level="metadata", snapshots="all")
    (finding,) = widget.doctor_report["findings"]
    assert finding["node"]["node"] == f"root:{finding['node']['snapshot']}"
    assert finding["node"]["snapshot"] != widget.selection["snapshot"]
    widget.selection = {**widget.selection, **finding["node"]}
    assert widget.settle(60)
    assert widget.error == {}
    assert widget.selected.id == finding["node"]["node"]


def test_a_check_of_one_snapshot_names_those_left_out(opened: Opened) -> None:
    widget = opened(Problems)
    ask(widget, "check", level="metadata", snapshots="current")
    assert widget.doctor_report["scope"].endswith(" · 3 not checked")
    assert widget.doctor_report["left_out"] == 3
    ask(widget, "check", level="metadata", snapshots="all")
    assert "not checked" not in widget.doctor_report["scope"]
    assert widget.doctor_report["left_out"] == 0


def test_a_check_marks_the_snapshots_with_faults_in_the_timeline(opened: Opened) -> None:
    widget = opened(Explorer, "path_live_twice")
    met = dict(widget.broken)
    ask(widget, "check", level="metadata", snapshots="all")
    found = widget.doctor_report["broken"]
    assert widget.broken == {**met, **found}
    assert set(found.values()) == {"1 × wrong rows or numbers"}
    (finding,) = [one for one in widget._panel(DoctorPanel).report.findings if one.severity == "wrong"]
    assert set(found) == set(map(str, finding.snapshots))


def test_what_follows_is_folded_under_its_cause(opened: Opened) -> None:
    widget = opened(Problems, "path_live_twice")
    ask(widget, "check", level="metadata", snapshots="current")
    (finding,) = widget.doctor_report["findings"]
    assert finding["code"] == "file-twice"
    assert finding["count"] == 2
    assert len(finding["places"]) >= 2 and all(node for _, node in finding["places"])
    assert {more["code"] for more in finding["follows"]} == {"totals-differ"}
    assert finding["chain"].endswith(" from this")


def test_a_repair_is_shown_as_a_difference_and_as_code(opened: Opened, tmp_path: Path) -> None:
    widget = opened(Explorer, "data_file_gone", "summary_totals_wrong")
    ask(widget, "check", level="metadata", snapshots="all")
    ask(widget, "repair")
    plan = widget.repair_plan
    assert plan["of"] == widget.doctor_report["id"]
    assert plan["headline"] == "Repair of t: 2 steps. Rows of the current snapshot: 17 before, 16 after."
    (gone,) = [p.name for p in file_paths(tmp_path / "t") if not p.exists()]
    marks = {i: set(node["marks"]) for i, node in widget.repair_before_nodes.items() if i.startswith("file:")}
    (removed,) = [i for i, mark in marks.items() if "removed" in mark]
    assert gone in widget.repair_before_nodes[removed]["tooltip"]
    after = "\n".join(n["tooltip"] for i, n in widget.repair_after_nodes.items() if i.startswith("file:"))
    assert gone not in after
    assert plan["sql"] == ("-- 1. Recompute manifest lists\nCALL <catalog>.system.rewrite_manifests('<table>');\n")
    assert "2. Remove entries of missing files" in plan["python"]
    (tmp_path / "there").mkdir()
    exec(compile(plan["python"].replace('"fixed"', repr(str(tmp_path / "fixed"))), "copied", "exec"), {})
    assert ix.open(tmp_path / "fixed").count() == 16
    mended = widget.report.repair().table
    assert isinstance(mended, ix.Simulation)
    assert (mended.count(), mended.check().ok) == (16, True)
    node = next(i for i, n in widget.repair_after_nodes.items() if n["kind"].endswith("manifest") and not n["children"])
    widget.repair_after_expanded = [*widget.repair_after_expanded, node]
    assert widget.settle(60)
    assert widget.repair_after_nodes[node]["children"]
    ask(widget, "check", level="metadata", snapshots="current")
    assert (widget.repair_plan, widget.repair_after_roots) == ({}, []), "it was of the other report"


def test_what_no_plan_mends_is_listed_with_the_reason(opened: Opened) -> None:
    widget = opened(Problems, "field_id_twice")
    ask(widget, "check", level="metadata", snapshots="current")
    ask(widget, "repair")
    heads = [block[1] for block in widget.repair_plan["blocks"] if block[0] == "h"]
    assert heads[-1] == ["Not mended: 2 findings"]
    assert widget.repair_plan["headline"].startswith("Repair of t: nothing can be mended.")
    assert widget.repair_plan["note"].startswith("The trees are the same")
    assert widget.repair_plan["sql"] == ""


def test_trees_that_cannot_be_compared_are_shown_unmarked(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*given: Any) -> None:
        raise FormatError("nothing to compare")

    monkeypatch.setattr(_repair, "diff", refused)
    widget = opened(Problems, "data_file_gone")
    ask(widget, "check", level="metadata", snapshots="current")
    ask(widget, "repair")
    assert widget.repair_plan["note"] == "The trees cannot be compared: nothing to compare"
    assert widget.repair_before_roots == widget.repair_after_roots == ["metadata"]


def test_progress_is_shown_and_a_check_can_be_cancelled(opened: Opened) -> None:
    widget = opened(Problems)
    shown: list[str] = []
    widget.observe(lambda change: shown.append(change["new"]), "busy")
    ask(widget, "check", level="files", snapshots="current")
    assert shown[:2] == ["Checking the table …", "Check 1 of 9: the metadata file …"]
    assert "Opening files: 100 % …" in shown
    report = widget.doctor_report
    assert (report["level"], report["findings"]) == ("files", [])
    widget.doctor_asked = {"n": 9, "do": "check", "level": "rows", "snapshots": "all"}
    widget.cancelled += 1
    assert widget.settle(60)
    assert (widget.busy, widget.error) == ("", {})
    assert widget.doctor_report == report, "the report before it stays"


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"do": "repair"}, "Check the table first"),
        ({"do": "check", "level": "deep"}, "level='deep': choose one of"),
        ({"do": "check", "level": "files", "snapshots": "<b>"}, "snapshots='<b>': choose 'current' or 'all'"),
        ({"do": "format c:"}, "choose 'check' or 'repair'"),
    ],
)
def test_an_impossible_request_is_refused_in_the_widget(asked: dict[str, str], text: str) -> None:
    widget = Problems(ix.empty({"a": "long"}))
    assert widget.settle(60)
    widget.doctor_asked = {"n": 1, **asked}
    assert widget.settle(60)
    assert text in widget.error["text"]
    ask(widget, "check", level="metadata", snapshots="current")
    assert widget.error == {}
    assert widget.doctor_report["id"] == "1"
    widget.close()


def test_a_check_that_fails_is_an_error_in_the_widget(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    widget = opened(Problems)

    def refused(*args: object, **given: object) -> Iterator[str]:
        yield "…"
        raise OptionError("on purpose")

    monkeypatch.setattr("iceexplore.doctor.examine_in_steps", refused)
    ask(widget, "check", level="metadata", snapshots="current")
    assert widget.error["text"] == "on purpose"
    assert widget.doctor_report == {}


def test_without_a_kernel_the_report_is_html(opened: Opened) -> None:
    widget = opened(Problems, "data_file_gone")
    assert "Not checked for problems yet." in widget._repr_mimebundle_()[0]["text/html"]
    ask(widget, "check", level="metadata", snapshots="current")
    html = widget._repr_mimebundle_()[0]["text/html"]
    assert "A file that the table references is missing" in html
    assert "Not checked for problems yet." not in html
    assert "<style" not in html and "<script" not in html


def test_many_findings_and_names_that_would_be_code() -> None:
    table = ix.sample("trips")
    report = table.check(snapshots="current")
    names = [name for name in HOSTILE.values() if name] * 60
    hostile = [
        replace(report.findings[0], text=name, where=f"{name}#entry {i}", found=name, refs=(name,), snapshots=(1,))
        for i, name in enumerate(names)
    ]
    many = replace(report, findings=tuple(hostile), unknown={"a check": HOSTILE["bidi"]})
    sent = findings_sent(many, table.state, table.snapshot)
    assert len(sent["findings"]) == 200
    assert sent["more"].startswith(f"and {len(hostile) - 200:,} more")
    assert sent["counts"]["untidy"] == len(hostile)
    text = json.dumps(sent)
    assert len(text) < 2_000_000
    text.encode()
    assert not any(f"\\u{code}" in text for code in ("202e", "2066", "0000", "001b", "d800"))


def test_names_in_copied_code_cannot_leave_their_place(tmp_path: Path) -> None:
    folder = healthy(tmp_path)
    edit_json(
        document_path(folder),
        lambda d: d["refs"].update({"x`; DROP TABLE t; --\n'": {"snapshot-id": 5, "type": "tag"}}),
    )
    widget = Problems(ix.open(folder))
    ask(widget, "check", level="metadata", snapshots="current")
    ask(widget, "repair")
    assert "DROP TAG IF EXISTS `x``; DROP TABLE t; --\n'`;" in widget.repair_plan["sql"]
    compile(widget.repair_plan["python"], "copied", "exec")
    widget.close()


def test_problems_met_stay_in_a_list_of_their_own(opened: Opened) -> None:
    widget = opened(Problems)
    widget._host.state.problems.add(problem("file-missing", "s3://x/y", "It is not there."))
    widget.read_all += 1
    assert widget.settle(60)
    ask(widget, "check", level="metadata", snapshots="current")
    assert isinstance(widget.report, Report)
    assert widget.problems["counts"]["error"] == 1


def saved_traits(page: Path) -> dict[str, Any]:
    block = re.search(r'<script type="application/json" id="ice-data">(.*?)</script>', page.read_text(), re.DOTALL)
    assert block
    traits: dict[str, Any] = json.loads(block[1])["traits"]
    return traits


def test_a_saved_page_has_the_findings(opened: Opened, tmp_path: Path) -> None:
    widget = opened(Explorer, "data_file_gone", "path_live_twice")
    first = saved_traits(widget.save_html(tmp_path / "first.html").path)
    assert (dict(first["parts"])["problems"], first["doctor_report"]) == ("Health", {})
    ask(widget, "check", level="metadata", snapshots="current")
    (gone,) = {p.name for p in file_paths(tmp_path / "t") if not p.exists()}
    report = widget.doctor_report
    page = widget.save_html(tmp_path / "page.html", redact=False).path
    traits = saved_traits(page)
    assert dict(traits["parts"])["problems"] == f"Health ({len(report['findings'])})"
    assert traits["doctor_report"]["findings"] == report["findings"]
    assert "doctor_asked" not in traits, "which would need Python"
    assert "Findings: level metadata" in page.read_text().split("<noscript>")[1]
    for redact in ("paths", ["values"], True):
        page = widget.save_html(tmp_path / "page.html", redact=redact, overwrite=True).path
        assert gone.removesuffix(".parquet") not in page.read_text()
        hidden = saved_traits(page)["doctor_report"]["findings"]
        assert [f["code"] for f in hidden] == [f["code"] for f in report["findings"]]
        assert [f["node"] for f in hidden] == [f["node"] for f in report["findings"]]
        assert [[m["node"] for m in f["follows"]] for f in hidden] == [
            [m["node"] for m in f["follows"]] for f in report["findings"]
        ]
    small = widget.save_html(tmp_path / "page.html", max_bytes=1_000, overwrite=True)
    assert "Left out to limit the size of this page: the figures of Health." in small.left_out
    assert "problems" not in dict(saved_traits(small.path)["parts"])
