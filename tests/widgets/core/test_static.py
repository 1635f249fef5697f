"""Where no kernel runs: each widget's content as plain HTML."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import iceexplore as ix
from iceexplore.widgets import DeletionVectors, Explorer, Problems, ScanLab, Timeline

HOSTILE = "<img src=x onerror=alert(1)></script><svg onload=alert(1)>"


class Tags(HTMLParser):
    """The tags and attributes of some HTML, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def shown(widget: Any) -> Tags:
    assert widget.settle(60)
    data, _ = widget._repr_mimebundle_()
    widget.close()
    return Tags(data["text/html"])


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> ix.Table:
    """A table with markup in every name and a manifest that is gone."""
    made = ix.empty({"id": "long", HOSTILE: "string"}, format_version=2)
    made.append(pd.DataFrame({"id": [1], HOSTILE: [HOSTILE]}))
    made.set_properties({HOSTILE: HOSTILE})
    made.branch(HOSTILE)
    folder = tmp_path_factory.mktemp("hostile") / "table"
    made.save(folder)
    next(p for p in folder.rglob("*.avro") if not p.name.startswith("snap-")).unlink()
    return ix.open(folder)


def test_nothing_that_a_sanitizer_takes_out(hostile: ix.Table) -> None:
    problems = Problems(hostile)
    problems.read_all += 1
    for widget in (Explorer(hostile), Timeline(hostile), ScanLab(hostile, scan_filter="id = 1"), problems):
        tags = shown(widget)
        assert not tags.tags & {"script", "style", "svg", "iframe", "object", "link"}
        assert not {name for name in tags.attributes if name.startswith("on") or name in ("id", "role", "class")}
        assert "alert" not in str(tags.attributes)


def test_the_explorer_has_tree_timeline_and_details() -> None:
    table = ix.sample("trips")
    text = shown(Explorer(table)).text
    for snapshot in table.snapshots:
        assert str(snapshot.snapshot_id) in text
    assert "total-data-files" in text
    assert "referenced_file" in text, "a column of the table"


def test_problems_and_deletes(hostile: ix.Table) -> None:
    problems = Problems(hostile)
    problems.read_all += 1
    assert "file-missing" in shown(problems).text
    table = ix.sample("trips")
    vector = next(node for node in table.tree(depth="files").nodes if node.kind == "deletion-vector")
    widget = DeletionVectors(table, selection={"node": vector.id})
    assert widget.settle(60)
    rows = len(widget.selected)  # type: ignore[arg-type]
    text = shown(widget).text
    assert "cardinality" in text
    assert str(rows) in text


def test_nobody_has_looked_for_problems_yet() -> None:
    table = ix.sample("trips")
    first = Problems(table)  # as it is shown, before anything is read
    problems = Problems(table)
    assert problems.settle(60)
    for widget in (first, problems):
        html = widget._no_kernel_html()
        assert "<p>Not checked for problems yet.</p>" in html
        assert "No problems" not in html
        assert "<caption" not in html
    problems.read_all += 1
    assert "No problems in what has been read: " in shown(problems).text
    first.close()
    assert "there is no snapshot." in shown(Problems(ix.empty({"id": "long"}))).text


def test_a_path_is_no_page(tmp_path: Path) -> None:
    with pytest.raises(ix.OptionError, match=r"ix\.open"):
        Timeline(tmp_path)
