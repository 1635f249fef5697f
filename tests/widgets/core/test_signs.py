"""Characters that act, in names and values: seen as signs, copied as they are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

import iceexplore as ix
from iceexplore.widgets import CommitLab, Explorer, ScanLab
from iceexplore.widgets.core._escape_text import signs_of_lines, signs_of_page
from iceexplore.widgets.saved_page._redact import BLANK, PageRedactor
from iceexplore.widgets.tree._side_tree import SideTree

TURNED = "\u202eevil branch"
SHOWN = "⟨U+202E⟩evil branch"
NODE = "ref:%E2%80%AEevil%20branch"


@pytest.fixture(scope="module")
def table() -> ix.Table:
    s = ix.empty({"id": "long", TURNED: "string"}, format_version=2, partition_by=TURNED)
    s.append(pd.DataFrame({"id": [1], TURNED: ["a\u2066b\n"]}))
    s.branch(TURNED)
    s.set_properties({TURNED: "one\ntwo\u202e"})
    return s.table


@pytest.fixture
def widget(table: ix.Table) -> Iterator[Explorer]:
    made = Explorer(table)
    assert made.settle(60)
    yield made
    made.close()


def show(widget: Explorer, node: str, tab: str | None = None) -> None:
    widget.select(node)
    assert widget.settle(60)
    if tab is not None:
        n = widget.pages.get("detail", {}).get("n", 0) + 1
        widget.query = {"detail": {"n": n, "of": node, "table": tab, "page": 0}}
        assert widget.settle(60)
    assert widget.error == {}


def copied(widget: Explorer, monkeypatch: pytest.MonkeyPatch, **more: Any) -> str:
    sent: list[dict[str, Any]] = []
    monkeypatch.setattr(type(widget), "send", lambda _, content, buffers=None: sent.append(content))
    page = widget.pages["detail"]
    widget._handle_custom_msg({"grid": "detail", "n": 1, "of": page["of"], "table": page["table"], **more}, [])
    assert widget.settle(60)
    return str(sent[-1]["text"])


def test_no_name_acts_in_tree_and_details(widget: Explorer) -> None:
    assert widget.nodes[NODE]["label"] == SHOWN
    assert widget.nodes[NODE]["tooltip"].startswith(SHOWN)
    show(widget, NODE)
    assert widget.detail["title"] == SHOWN
    assert dict(f[:2] for f in widget.detail["facts"])["name"] == SHOWN
    assert ["name", SHOWN, TURNED] in widget.detail["facts"], "what is copied is the name"
    for node in [i for i in widget.nodes if not i.startswith("more:")]:
        show(widget, node)
        state = {name: getattr(widget, name) for name in ("title", "badges", "nodes", "snapshots", "pages")}
        text = json.dumps([state, {k: v for k, v in widget.detail.items() if k not in ("facts", "more", "copy")}])
        assert "\\u202e" not in text.replace("\\\\u202e", ""), "but in the JSON page, escaped"
        assert all("\u202e" not in f[0] + f[1] for part in ("facts", "more") for f in widget.detail[part])


def test_what_is_copied_has_no_signs(widget: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    show(widget, "table", "refs")
    names = [c["name"] for c in widget.pages["detail"]["columns"]]
    column = names.index("name")
    row = [r[column] for r in widget.pages["detail"]["rows"]].index(SHOWN)
    assert widget.pages["detail"]["nodes"][row] == NODE
    assert copied(widget, monkeypatch, want="cell", row=row, column=column) == TURNED
    assert json.loads(copied(widget, monkeypatch, want="row", row=row))["name"] == TURNED
    assert TURNED in copied(widget, monkeypatch, want="csv")


def test_json_says_the_same(widget: Explorer, table: ix.Table) -> None:
    show(widget, "metadata", "json")
    text = widget.pages["detail"]["text"]
    assert "\u202e" not in text
    assert TURNED in json.loads(text)["refs"]
    assert signs_of_page({"text": '{\n "a": "\U000e0041"\n}'})["text"] == '{\n "a": "\\udb40\\udc41"\n}'
    assert signs_of_lines("one\n\u202etwo\ud800") == "one\n⟨U+202E⟩two⟨U+D800⟩"


def test_the_tree_of_a_plan(table: ix.Table) -> None:
    lab = ScanLab(table, scan_filter="id = 1")
    assert lab.settle(60)
    assert lab.error == {}
    assert "⟨U+2066⟩" in json.dumps(lab.scan_nodes, ensure_ascii=False)
    assert not {"\u202e", "\u2066"} & set(json.dumps(lab.scan_nodes, ensure_ascii=False))
    lab.close()


def acting(*parts: Any) -> set[str]:
    """What acts in anything that is sent."""
    return {"\u202e", "\u2066"} & set(json.dumps(parts, ensure_ascii=False))


def test_the_words_of_a_plan(table: ix.Table) -> None:
    text = f"`{TURNED}` = 'a\u2066b\n'"
    lab = ScanLab(table, scan_filter=text)
    assert lab.settle(60) and lab.error == {}
    lab.scan_draft = {"n": 1, "text": f"`{TURNED}` = ", "at": len(TURNED) + 5}
    for n, want in enumerate(("examples", "advice", "count")):
        lab.scan_ask = {"n": n, "want": want}
    lab.select(next(i for i in lab.scan_nodes if i.startswith("file:")))
    assert lab.settle(60) and lab.error == {}
    assert lab.scan_plan["error"] == "" and lab.scan_why["blocks"] and lab.scan_advice["blocks"]
    assert TURNED in lab.scan_plan["filter"], "what is typed stays"
    assert TURNED in json.dumps(lab.scan_examples["columns"], ensure_ascii=False), "what is put in when it is chosen"
    plan = {k: v for k, v in lab.scan_plan.items() if k not in ("filter", "python")}
    advice = [block for block in lab.scan_advice["blocks"] if block[0] != "code"]
    texts = (plan, advice, lab.scan_why, lab.scan_count, lab.scan_hint["error"])
    assert not acting(*texts)
    assert "⟨U+202E⟩" in json.dumps(texts, ensure_ascii=False)
    for wrong in (f"`{TURNED}x` = 1", f"`{TURNED}` = = 1"):
        lab.scan_filter = wrong
        lab.scan_draft = {"n": 2, "text": wrong, "at": 0}
        assert lab.settle(60) and lab.error == {}
        assert "⟨U+202E⟩" in lab.scan_plan["error"]
        assert not acting(lab.scan_plan["error"], lab.scan_hint["error"])
    lab.close()


def test_the_words_of_a_commit(table: ix.Table) -> None:
    lab = CommitLab(table)

    def ask(**more: Any) -> None:
        lab.commit_asked = {"n": lab.commit_asked.get("n", 0) + 1, **more}
        assert lab.settle(60) and lab.error == {}

    def apply(operation: str, **values: Any) -> None:
        ask(do="apply", operation=operation, values=values, layout={}, rival="")

    ask(do="show")
    fields = [f for o in lab.commit_form["operations"] for f in o["fields"]]
    labels = [[f["label"], f["help"], f["more"], [label for _, label in f["choices"] or ()]] for f in fields]
    assert not acting(labels) and "⟨U+202E⟩" in json.dumps(labels, ensure_ascii=False)
    assert acting([f["choices"] for f in fields]), "what is chosen stays"
    apply("set_properties", name="\u202enew", value="\u2066", remove=False)
    assert lab.commit_refused == {} and "new" in " ".join(lab.commit_report["text"])
    assert not acting(lab.commit_report)
    apply("overwrite", by="filter", where=f"`{TURNED}x` = 1", files=1, rows=1)
    assert "branchx" in lab.commit_refused["text"] and not acting(lab.commit_refused)
    ask(do="fork", name="\u202eother")
    assert "⟨U+202E⟩other" in lab.commit_line["lines"] and not acting(lab.commit_line["lines"])
    lab.close()


def test_a_ref_that_both_sides_have_stays(table: ix.Table) -> None:
    nodes = SideTree(table.state, table.state, None, "after").first()["nodes"]
    assert nodes[NODE]["marks"] == []


def test_what_is_left_out_of_a_page_is_left_out_of_copies() -> None:
    facts = [["x", SHOWN, TURNED], ["s3.secret-access-key", SHOWN, TURNED], [f"{SHOWN} id", "7"]]
    detail = {"id": "t", "kind": "data-file", "title": "", "path": SHOWN, "copy": TURNED, "tables": [], "facts": facts}
    out = PageRedactor(frozenset({"credentials", "values", "paths"}), [f"{TURNED} id"]).detail(detail)
    assert out["facts"] == [["x", BLANK, BLANK], ["s3.secret-access-key", BLANK], [f"{SHOWN} id", BLANK]]
    assert "evil" not in json.dumps({**out, "facts": []})
