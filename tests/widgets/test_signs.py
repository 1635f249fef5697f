"""Characters that act, in names and values: seen as signs, copied as they are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

import iceexplore as ix
from iceexplore.widgets import Explorer, ScanLab
from iceexplore.widgets._commit_tree import SideTree
from iceexplore.widgets._saved_redact import BLANK, PageRedactor
from iceexplore.widgets._signs import signs_of_lines, signs_of_page

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
    widget._on_message(widget, {"grid": "detail", "n": 1, "of": page["of"], "table": page["table"], **more}, [])
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


def test_a_ref_that_both_sides_have_stays(table: ix.Table) -> None:
    nodes = SideTree(table.state, table.state, None, "after").first()["nodes"]
    assert nodes[NODE]["marks"] == []


def test_what_is_left_out_of_a_page_is_left_out_of_copies() -> None:
    facts = [["x", SHOWN, TURNED], ["s3.secret-access-key", SHOWN, TURNED], [f"{SHOWN} id", "7"]]
    detail = {"id": "t", "kind": "data-file", "title": "", "path": SHOWN, "copy": TURNED, "tables": [], "facts": facts}
    out = PageRedactor(frozenset({"credentials", "values", "paths"}), [f"{TURNED} id"]).detail(detail)
    assert out["facts"] == [["x", BLANK, BLANK], ["s3.secret-access-key", BLANK], [f"{SHOWN} id", BLANK]]
    assert "evil" not in json.dumps({**out, "facts": []})
