"""The tab Rows: rows with their fates and the values of deleted rows, in a grid and as histories."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import iceexplore as ix
from iceexplore._samples import sample_path
from iceexplore.expressions import Predicate, bind_filter
from iceexplore.widgets import Explorer, Rows
from iceexplore.widgets.rows import _matches
from iceexplore.widgets.rows._matches import matches_text
from iceexplore.widgets.rows._stories import condition_of, fate_words
from tests.helpers.hostile import HOSTILE

SCHEMA = ix.empty({"c": "string"}).schema


@pytest.fixture(scope="module")
def table() -> ix.Table:
    return ix.sample("trips")


@pytest.fixture
def rows(table: ix.Table) -> Iterator[Rows]:
    made = Rows(table)
    yield settled(made)
    made.close()


def settled(widget: Any) -> Any:
    assert widget.settle(60)
    assert widget.busy == "" and widget.error == {}
    return widget


def ask(widget: Any, want: str, **more: Any) -> Any:
    widget.rows_ask = {"n": widget.rows_ask.get("n", 0) + 1, "want": want, **more}
    return settled(widget)


def search(widget: Any, text: str, history: bool = False) -> dict[str, Any]:
    widget.rows_history = history
    widget.rows_filter = text
    settled(widget)
    return dict(widget.rows_answer)


def shown(widget: Any) -> list[dict[str, Any]]:
    """The rows of the grid's first page."""
    widget.query = {"rows": {"of": widget.rows_answer["of"], "table": "rows", "n": 1}}
    page = settled(widget).pages["rows"]
    names = [page["columns"][i]["name"] for i in page["shown"]]
    return [dict(zip(names, row, strict=True)) for row in page["rows"]]


def words(blocks: Any) -> str:
    """Every word of what Python says, in order."""
    if isinstance(blocks, str):
        return blocks
    if isinstance(blocks, dict):
        return ""
    return " ".join(words(b) for b in blocks)


def test_the_first_rows_are_there_without_a_request(rows: Rows, table: ix.Table) -> None:
    answer = rows.rows_answer
    assert answer["headline"].startswith("The first 100 rows: ")
    assert answer["note"] == "By metadata, 566 to 660 live rows match.", "a delete file may delete any number of rows"
    assert table.count() == 643
    assert shown(rows)[0]["_fate"] in ("live", "deleted")
    assert rows.pages["rows"]["preview"] == "preview: there are more"
    assert rows.found is not None and len(rows.found) == 100


def test_no_data_file_is_opened_where_that_is_not_cheap(table: ix.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_matches, "_MOST_FILES", 1)
    fresh = ix.sample("trips")
    made = settled(Rows(fresh))
    assert "of" not in made.rows_answer and made.rows_answer["more"] == "Show the first rows"
    assert not {read.kind for read in fresh.reads} & {"data-footer", "data"}
    ask(made, "first")
    assert made.rows_answer["headline"].startswith("The first 100 rows")
    made.close()


def test_deleted_rows_have_their_values_and_what_deleted_them(rows: Rows, table: ix.Table) -> None:
    answer = search(rows, "trip_id < 400")
    found = shown(rows)
    assert answer["headline"] == "339 rows: 315 live, 24 deleted"
    deleted = [row for row in found if row["_fate"] == "deleted"]
    assert deleted and all(row["trip_id"] and row["_deleted_by"] and row["_fate_snapshot_id"] for row in deleted)
    live = {row["trip_id"] for row in found if row["_fate"] == "live"}
    scanned = {str(i) for i in table.to_arrow("trip_id < 400", "trip_id")["trip_id"].to_pylist()}
    assert live <= scanned and not {row["trip_id"] for row in deleted} & scanned
    # sorted, filtered and exported as other grids
    names = [column["name"] for column in rows.pages["rows"]["columns"]]
    rows.query = {"rows": {"of": answer["of"], "table": "rows", "n": 2,
                           "filters": [{"column": names.index("_fate"), "op": "=", "value": "deleted"}]}}  # fmt: skip
    page = settled(rows).pages["rows"]
    assert page["total"] == 24
    assert page["columns"][0]["head"], "the first value names the row"


def test_rows_no_longer_live_are_counted_by_commit(rows: Rows, table: ix.Table) -> None:
    text = "start_station = 'Museum'"
    blocks = search(rows, text, history=True)["blocks"]
    of = next(i for i, block in enumerate(blocks) if words(block) == "p Rows no longer live, by commit:")
    lines = blocks[of + 1][1]
    counted = {part[2]["snapshot"]: item[3] for item in lines for part in item if part[0] == "go"}
    noted = [words(item) for item in lines if "newer versions" in words(item)]
    assert noted and all(" overwrite " in line for line in noted), "an update deletes rows that are still there"
    expected: dict[str, dict[str, int]] = {}
    for row in table.rows(text, history=True).to_arrow().to_pylist():
        if row["_fate"] != "live":
            kinds = expected.setdefault(str(row["_fate_snapshot_id"]), {})
            kinds[row["_fate"]] = kinds.get(row["_fate"], 0) + 1
    assert len(expected) > 1, "several commits deleted such rows"
    assert counted == {
        k: ", ".join(f"{n} {fate_words(kind, n)}" for kind, n in sorted(v.items())) for k, v in expected.items()
    }
    assert "10 removed with their files" in counted.values()
    order = [table.metadata.snapshot(int(snapshot)) for snapshot in counted]
    assert [s.sequence_number for s in order if s] == sorted(s.sequence_number for s in order if s)
    live = search(rows, "trip_id = 423")["blocks"]
    assert "by commit" not in words(live)


def test_each_row_leads_to_its_file(rows: Rows, table: ix.Table) -> None:
    search(rows, "trip_id = 95", history=True)
    shown(rows)
    assert rows.found is not None
    tree = table.tree()
    for node, place in zip(rows.pages["rows"]["nodes"], rows.found, strict=True):
        assert node is not None and tree.node(node).location == place.file


def test_a_row_and_its_fate(rows: Rows, table: ix.Table) -> None:
    search(rows, "trip_id = 95", history=True)
    blocks = rows.rows_answer["blocks"]
    text = words(blocks)
    place = table.rows("trip_id = 95", history=True)[0]
    assert "1 row" in text and "trip_id = 95" in text and place.fate.kind in text
    assert f"position {place.position}" in text and "deleted by vector" in text
    lists = [block[1] for block in blocks if block[0] == "list"]
    targets = [part[2] for items in lists for item in items for part in item if part[0] == "go"]
    tree = table.tree()
    assert {tree.node(t["node"]).location for t in targets if t["node"].startswith("file:")} == {place.file}
    assert {t["snapshot"] for t in targets if t["node"].startswith("snapshot:")} == {
        str(e.by.snapshot_id) for e in place.events
    }
    assert shown(rows)[0]["_fate"] == "deleted"
    assert rows.rows_answer["python"] == 't.rows("trip_id = 95", history=True)'
    rows.select(targets[1]["node"], snapshot=targets[1]["snapshot"])
    settled(rows)
    assert rows.rows_answer["snapshot"] == targets[1]["snapshot"], "rows are those of the snapshot shown"


def test_a_value_is_found_in_a_column(rows: Rows) -> None:
    ask(rows, "value", column="rider", value="guest")
    assert rows.rows_filter == "rider = 'guest'"
    assert {row["rider"] for row in shown(rows)} == {"guest"}


def test_rows_that_are_not_there(rows: Rows) -> None:
    answer = search(rows, "trip_id = -1")
    assert (answer["headline"], answer["note"]) == ("0 rows", "By metadata, 0 live rows match.")
    assert shown(rows) == [] and rows.pages["rows"]["none"] == "No rows match."
    answer = search(rows, "trip_i = 1")
    assert "trip_id" in answer["error"] and "of" not in answer


def test_how_many_rows_match_is_never_wrong(table: ix.Table) -> None:
    for text in ("", "started_at >= '2024-05-01'", "trip_id < 50", "rider = 'guest'", "km > 1e9", "trip_id is null"):
        note = matches_text(table.state, text)
        numbers = [int(word.replace(",", "")) for word in note.replace("at most ", "0 ").split() if word[:1].isdigit()]
        assert min(numbers) <= table.count(text or None) <= max(numbers), note


def test_counting(rows: Rows, table: ix.Table) -> None:
    search(rows, "rider = 'guest'")
    ask(rows, "count")
    assert rows.rows_count == {"of": rows.rows_answer["of"], "text": table.count("rider = 'guest'").explain()}


def test_the_explorer_reads_rows_when_the_tab_is_shown() -> None:
    widget = settled(Explorer(ix.sample("trips")))
    assert [key for key, _ in widget.parts][:3] == ["tree", "files", "rows"]
    assert widget.rows_answer == {}
    widget.tab = "rows"
    settled(widget)
    assert "rows" in widget.scripts and widget.found_rows is not None
    first = widget.rows_answer["of"]
    widget.select(snapshot=widget.snapshots[0]["id"])
    settled(widget)
    assert widget.rows_answer["of"] != first and widget.rows_answer["snapshot"] == widget.snapshots[0]["id"]
    widget.close()


def test_cancelled_rows_can_be_asked_for_again(rows: Rows) -> None:
    rows.rows_filter = "km > 5"
    rows.cancelled += 1
    settled(rows)
    assert rows.rows_answer["more"] == "Search again" and "Cancelled." in words(rows.rows_answer["blocks"])
    ask(rows, "first")
    assert rows.rows_answer["of"]


@pytest.mark.parametrize(
    ("trait", "value"),
    [
        ("rows_ask", {"want": "everything"}),
        ("rows_ask", {"want": ["find"]}),
        ("rows_ask", {"want": "value", "column": 5, "value": "5"}),
        ("rows_ask", {"want": "value", "column": "trip_id"}),
        ("query", {"rows": {"of": "99", "table": "rows", "n": 1}}),
        ("query", {"rows": {"of": "1", "table": "nothing", "n": 1}}),
    ],
)
def test_nonsense_from_the_browser_is_shown(rows: Rows, trait: str, value: Any) -> None:
    setattr(rows, trait, value)
    assert rows.settle(60)
    assert rows.error["text"]
    assert "bug in iceexplore" not in rows.error["advice"]


def test_hostile_values_and_unreadable_files(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"id": "long", "text": "string"})
    texts = [text for text in HOSTILE.values() if "\ud800" not in text]
    lab.append({"id": list(range(len(texts))), "text": texts})
    lab.append({"id": [1000], "text": ["x"]})
    widget = settled(Rows(ix.open(tmp_path / "t")))
    assert {row["_fate"] for row in shown(widget)} == {"live"}
    sent = json.dumps([widget.pages["rows"], widget.rows_answer["blocks"]], ensure_ascii=False)
    assert not {"\u202e", "\x1b", "\u2066"} & set(sent)
    next(path for path in (tmp_path / "t").rglob("*.parquet") if "delete" not in path.name).unlink()
    answer = search(widget, "id >= 0")
    assert "of" in answer
    shown(widget)
    page = widget.pages["rows"]
    assert "Rows may be missing: 1 data file cannot be read." in (page.get("lacks"), page.get("none"))
    assert answer["headline"].endswith(", incomplete ▲")
    widget.close()


def test_a_search_offers_to_include_removed_files(rows: Rows) -> None:
    blocks = search(rows, "trip_id = 5")["blocks"]
    assert rows.rows_answer["headline"] == "0 rows"
    (traits,) = [part[2] for block in blocks for part in block[1] if part[0] == "set"]
    assert traits == {"rows_history": True}
    some = [words(block) for block in search(rows, "start_station = 'Museum'")["blocks"]]
    lacking = next(i for i, text in enumerate(some) if "are not included" in text)
    assert some[lacking - 2] == "p Rows no longer live, by commit:", "it is beside the counts, not below the histories"
    search(rows, "trip_id = 5")
    rows.rows_history = True
    settled(rows)
    assert rows.rows_answer["headline"] == "1 row: 1 removed with its file"
    assert not [
        part for block in rows.rows_answer["blocks"] if block[0] == "p" for part in block[1] if part[0] == "set"
    ]


@pytest.mark.parametrize("history", [False, True])
def test_rows_of_manifests_that_cannot_be_read_are_not_none(tmp_path: Path, history: bool) -> None:
    folder = Path(shutil.copytree(sample_path("trips"), tmp_path / "trips"))
    for path in folder.rglob("*.avro"):
        if not path.name.startswith("snap-"):
            path.unlink()
    widget = settled(Rows(ix.open(folder)))
    answer = search(widget, "trip_id < 100", history)
    assert answer["headline"] == "0 rows, incomplete ▲"
    assert answer["note"].endswith("of the files listed in the manifest list cannot be read.")
    assert shown(widget) == [] and widget.pages["rows"]["none"].startswith("No rows: ")
    widget.close()


@pytest.mark.parametrize(
    ("value", "condition"),
    [
        ("95", "c = 95"), ("-1.5e3", "c = -1.5e3"), ("Oslo", "c = 'Oslo'"), ("it's", "c = 'it''s'"), (" 7 ", "c = 7"),
        ("null", "c is null"), ("true", "c = true"), ("'95'", "c = '95'"), ("2024-05-01", "c = '2024-05-01'"),
        ("1 or 1 = 1", "c = '1 or 1 = 1'"), ("inf", "c = 'inf'"), ("1_000", "c = '1_000'"), ("'", "c = ''''"),
        ("'a' or 'b'", "c = '''a'' or ''b'''"),
    ],
)  # fmt: skip
def test_conditions(value: str, condition: str) -> None:
    assert condition_of("c", value) == condition


@given(st.text(max_size=20))
def test_a_value_is_never_more_than_a_value(value: str) -> None:
    """Of a text column: one comparison, with what was written, unless that is a number or `true`."""
    try:
        bound = bind_filter(SCHEMA, condition_of("c", value))
    except ix.OptionError:
        assert value.strip()[:1] in "0123456789+-.'tTfF", "a number, or true, is no text"
        return
    assert isinstance(bound, Predicate)
    assert bound.op == "is-null" or bound.literals in ((value,), (value.strip()[1:-1].replace("''", "'"),))


def test_a_row_of_the_table_has_its_own_history_in_any_order(table: ix.Table) -> None:
    widget = Rows(table, rows_filter="start_station = 'Museum'", rows_history=True)
    assert widget.settle(60)
    of = widget.rows_answer["of"]
    widget.query = {"rows": {"n": 1, "of": of, "table": "rows", "sort": [0, "desc"]}}
    assert widget.settle(60)
    page = widget.pages["rows"]
    number, found = page["numbers"][0], widget.found
    assert number != 0 and found is not None and page["rows"][0][0] == str(found[number].values["trip_id"])
    widget.rows_ask = {"n": 1, "want": "story", "of": of, "row": number}
    assert widget.settle(60)
    assert (widget.rows_story["of"], widget.rows_story["row"]) == (of, number)
    (_, head), (_, events) = widget.rows_story["blocks"]
    assert f"trip_id = {page['rows'][0][0]}," in head[2]
    assert events
    widget.rows_ask = {"n": 2, "want": "story", "of": of, "row": 10_000}
    assert widget.settle(60)
    assert "there is no row 10000" in widget.error["text"]
    assert "removed with their files" in widget.rows_answer["headline"]
    widget.close()
