"""The card: what it says of a table, and that no name in a table becomes markup or drives a terminal."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.graph import human_bytes, table_card, totals
from iceexplore.render import Card, CardTable, card_html, card_text
from tests.helpers.hostile import HOSTILE

TAGS = {
    "div",
    "span",
    "b",
    "details",
    "summary",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "br",
    "code",
    "p",
    "small",
}


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def _table(folder: Path, **changes: Any) -> ix.Table:
    document = {
        "format-version": 2,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": str(folder),
        "last-sequence-number": 1,
        "last-updated-ms": 1_700_000_000_000,
        "last-column-id": 1,
        "current-schema-id": 0,
        "schemas": [
            {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "x", "required": True, "type": "long"}]}
        ],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
    } | changes
    (folder / "metadata").mkdir(parents=True, exist_ok=True)
    (folder / "metadata" / "v1.metadata.json").write_text(json.dumps(document))
    return ix.open(folder)


@pytest.mark.parametrize("text", [pytest.param(s, id=name) for name, s in HOSTILE.items() if s.strip()])
def test_no_name_becomes_markup(tmp_path: Path, text: str) -> None:
    snapshot = {
        "snapshot-id": 17,
        "sequence-number": 1,
        "timestamp-ms": 1_700_000_000_000,
        "manifest-list": f"{tmp_path}/metadata/snap-17.avro",
        "summary": {"operation": text, "added-records": text, "total-records": text},
        "schema-id": 0,
    }
    fields = [{"id": 1, "name": text, "required": False, "type": text, "doc": text}]
    t = _table(
        tmp_path,
        schemas=[{"type": "struct", "schema-id": 0, "fields": fields}],
        snapshots=[snapshot],
        refs={text: {"snapshot-id": 17, "type": "branch"}},
        properties={text: text},
        **{
            "current-snapshot-id": 17,
            "partition-specs": [
                {"spec-id": 0, "fields": [{"source-id": 1, "field-id": 1000, "name": text, "transform": text}]}
            ],
        },
    )
    for shown in (t._repr_html_(), t.snapshots._repr_html_(), t.refs._repr_html_(), t.diff(t)._repr_html_()):
        parser = _Tags()
        parser.feed(shown)
        assert parser.tags <= TAGS
        assert parser.attributes <= {"style", "open"}
    for text in (repr(t), repr(t.snapshots), repr(t.refs), repr(t.problems)):
        assert not [c for c in text if ord(c) < 32 and c != "\n"], text
        assert "\x1b" not in text and "\u202e" not in text


def test_what_it_says() -> None:
    t = ix.sample("trips")
    text = repr(t)
    m = t.metadata
    assert f"Iceberg v{m.format_version}" in text
    assert str(t.snapshot.snapshot_id) in text  # type: ignore[union-attr]
    for _, field in t.schema.walk():
        assert field.name in text
    for name in t.refs:
        assert name in text
    assert "was station" in text and "was int" in text and "added in schema" in text
    assert "months(started_at)" in text
    parser = _Tags()
    parser.feed(t._repr_html_())
    for word in ("started_at", "was station", str(m.table_uuid), "main"):
        assert word in parser.text


def test_totals_equal_the_files_of_every_snapshot() -> None:
    t = ix.sample("trips")
    for snapshot in t.snapshots:
        then = t.at(snapshot=snapshot.snapshot_id)
        files = then.inspect.files.arrow().to_pylist()
        sums = totals(then.state)
        assert sums["data_files"] == sum(f["content"] == 0 for f in files)
        assert sums["records"] == sum(f["record_count"] for f in files if f["content"] == 0)
        assert sums["delete_files"] == sum(f["content"] != 0 for f in files)
        assert sums["position_deletes"] == sum(f["record_count"] for f in files if f["content"] == 1)


def test_totals_without_a_summary_come_from_the_manifest_list(tmp_path: Path) -> None:
    t = ix.sample("trips")
    snapshot = t.state.snapshot
    assert snapshot is not None
    from dataclasses import replace

    bare = replace(t.state, snapshot=replace(snapshot, summary=None))
    got, want = totals(bare), totals(t.state)
    assert {k: got[k] for k in ("data_files", "records")} == {k: want[k] for k in ("data_files", "records")}
    assert got["bytes"] is None
    assert "unknown" in repr(ix.Table(bare))


def test_an_empty_table_says_so(tmp_path: Path) -> None:
    text = repr(_table(tmp_path))
    assert "nothing has been committed" in text
    assert "unpartitioned" in text
    assert "unsorted" in text


def test_problems_are_on_the_card(tmp_path: Path) -> None:
    t = _table(tmp_path, **{"current-schema-id": 7})
    assert t.problems
    assert "Problems (1)" in repr(t)
    parser = _Tags()
    parser.feed(t._repr_html_())
    assert "current-schema-id" in parser.text


def test_sizes() -> None:
    assert [human_bytes(n) for n in (0, 1023, 1024, 1536, 5 * 2**30)] == [
        "0 B",
        "1,023 B",
        "1.0 KiB",
        "1.5 KiB",
        "5.0 GiB",
    ]


def test_a_very_long_name_is_shown_by_its_ends() -> None:
    name = "a<" + "x" * 10_000 + ">z"
    table = CardTable(name, ("n",), ((name,),), note=name)
    card = Card(name, badges=(name,), facts=((name, name),), tables=(table,), problems=(("error", name, name),))
    html = card_html(card)
    assert html.count("a&lt;xx") == html.count("xx&gt;z") == 9
    assert "x" * 1_000 not in html
    assert name in card_text(card), "as text it is whole"


def test_main_is_among_the_refs_of_a_card_however_many_there_are() -> None:
    from dataclasses import replace

    from iceexplore.metadata import Ref

    state = ix.sample("trips").state
    assert state.snapshot is not None
    many = {f"tag-{n:03}": Ref(f"tag-{n:03}", "tag", state.snapshot.snapshot_id) for n in range(1000)}
    refs = {**many, "other": Ref("other", "branch", state.snapshot.snapshot_id), **state.metadata.refs}
    table = next(
        t for t in table_card(replace(state, metadata=replace(state.metadata, refs=refs))).tables if t.heading == "Refs"
    )
    assert [row[0] for row in table.rows[:4]] == ["main", "other", "promotion", "tag-000"]
    assert len(table.rows) == 20 and table.note == "1,004 in total, 20 shown: see t.refs"
