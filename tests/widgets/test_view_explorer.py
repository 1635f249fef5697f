"""The explorer of views: its timeline, the content of its tabs, highlighted SQL, and the page without a kernel."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from ipywidgets import DOMWidget
from ipywidgets.widgets.widget import _instances

import iceexplore as ix
from iceexplore.widgets import ViewExplorer
from iceexplore.widgets.core._bundle import sent_script
from iceexplore.widgets.core._room import RoomTraits
from iceexplore.widgets.view_explorer._sql_tokens import MOST_HIGHLIGHTED, sql_pieces
from tests.helpers.hangs import ends
from tests.helpers.hostile import HOSTILE
from tests.views.test_view_hostile import IN_HTML, hostile_view
from tests.views.view_documents import log, schema, version, view, write_view
from tests.widgets.core.test_static import Tags

OLD = "SELECT day, count(*) AS trips\nFROM t\nGROUP BY day"
NEW = OLD.replace("FROM t", "FROM t WHERE fare > 0")


@pytest.fixture
def daily(tmp_path: Path) -> ix.View:
    """A view of two versions, rolled back to the first."""
    columns = [{"id": 1, "name": "date", "required": False, "type": "date"}]
    made = view(
        [version(1, {"spark": OLD, "trino": OLD}), version(2, {"spark": NEW}, **{"schema-id": 2})], 1, 2, 1,
        schemas=[schema(1), schema(2, *columns)],
    )  # fmt: skip
    return ix.open_view(write_view(tmp_path / "daily", made))


def shown(widget: ViewExplorer, tab: str | None = None) -> list[Any]:
    """Return the blocks of a tab."""
    if tab is not None:
        widget.tab = tab
    assert widget.settle(60)
    assert widget.content["tab"] == widget.tab
    blocks: list[Any] = widget.content["blocks"]
    return blocks


def texts(blocks: Any) -> Iterator[str]:
    """Yield all texts in blocks."""
    if isinstance(blocks, str):
        yield blocks
    else:
        for one in blocks.values() if isinstance(blocks, dict) else blocks if isinstance(blocks, Sequence) else ():
            yield from texts(one)


def test_the_timeline_is_the_version_log(daily: ix.View) -> None:
    w = daily.explore()
    assert [(one["id"], one["mark"]) for one in w.entries] == [("1", ""), ("2", ""), ("1", "rolled back")]
    assert w.entry == 2 and w.version == daily.version
    assert w.entries[1]["words"].startswith(
        f"Version 2 · current from {w.entries[1]['time']} until {w.entries[2]['time']}"
    )
    assert "rolled back" in w.entries[2]["words"] and "Spark 4.1.0" in w.entries[2]["words"]
    w.select(2)
    assert (w.entry, w.version) == (1, daily.versions[1])
    w.select(daily.versions[0], against="2")
    assert (w.entry, w.against, w.tab) == (2, 1, "compare")
    with pytest.raises(ix.SnapshotNotFoundError, match="no version 7"):
        w.select(7)
    assert daily.at(2).explore().entry == 1


def test_entries_that_are_odd(tmp_path: Path) -> None:
    document = view([version(2), version(3), version(4)], 2, 3) | {"version-log": log(1, 2, 3)}
    w = ix.open_view(write_view(tmp_path / "v", document)).explore()
    marks = [(one["id"], one["mark"]) for one in w.entries]
    assert marks == [("1", "expired"), ("2", ""), ("3", ""), ("4", "not in the log")]
    w.entry = 0
    assert shown(w) == [] and w.version is None
    assert "it was current from" in w.error["text"] and "another version" in w.error["advice"]
    w.entry = 3
    assert shown(w) and w.error == {}
    empty = ix.open_view(write_view(tmp_path / "e", view() | {"versions": [], "version-log": []})).explore()
    assert (empty.entries, empty.entry) == ([], -1)
    assert list(texts(shown(empty))) == ["p", "note", "This version stores no SQL."]


def test_a_thousand_versions(tmp_path: Path) -> None:
    made = [version(i, f"SELECT {i} AS day, 1 AS trips") for i in range(1, 1_201)]
    w = ix.open_view(write_view(tmp_path / "v", view(made))).explore()
    assert (len(w.entries), w.left_out, w.entry) == (1_000, 200, 999)
    with pytest.raises(ix.OptionError, match="left out of the timeline"):
        w.select(1)
    assert len(json.dumps(w.get_state(), default=str)) < 1_000_000


def test_sql_and_its_translation(daily: ix.View) -> None:
    w = daily.explore()
    heads = [block[1] for block in shown(w) if block[0] == "h"]
    assert heads == [["spark", ["badge", "as stored"]], ["trino", ["badge", "as stored"]]]
    assert w.content["blocks"][1][2] == OLD
    w.dialect = "duckdb"
    first, note, sql = shown(w)[:3]
    assert first == ["h", ["duckdb", ["badge", "translated from spark by sqlglot, not stored"]]]
    assert "check results" in note[1][0][1] and "COUNT(*) AS trips" in sql[2]
    w.dialect = "trino"
    assert len([block for block in shown(w) if block[0] == "sql"]) == 2, "a stored dialect is not translated"
    assert w.content["key"] == "2 trino", "as viewExplorer.js computes it"
    w.dialect = "klingon"
    assert "does not know" in shown(w)[1][1][0][1] and w.error == {}


def test_versions_are_compared(daily: ix.View) -> None:
    w = daily.explore()
    blocks = shown(w, "compare")
    assert blocks[0] == ["h", ["Version 2 → version 1"]], "with the change before"
    w.against = 0
    assert "No differences" in blocks_text(shown(w)), "the log's first and last entry are the same version"
    w.entry, w.against = 0, 1
    blocks = shown(w)
    assert blocks[0] == ["h", ["Version 1 → version 2"]], "from the older to the newer"
    rows = next(block for block in blocks if block[0] == "diff")[2]
    assert ["!", "FROM t", "FROM t WHERE fare > 0"] in rows and ["=", "GROUP BY day", "GROUP BY day"] in rows
    text = blocks_text(blocks)
    for words in ("filter added: fare > 0", "trino removed", "day renamed to date", "trips dropped"):
        assert words in text, text
    w.entry, w.against = 0, -1
    assert "first change" in blocks_text(shown(w))


def test_long_lines_are_formatted_before_they_are_compared(tmp_path: Path) -> None:
    long = OLD.replace("\n", " ") + " HAVING count(*) > 10 AND max(fare) < 3"
    other = long.replace("10", "20")
    made = view([version(1, {"spark": long, "odd": long}), version(2, {"spark": other, "odd": other})])
    blocks = shown(ViewExplorer(ix.open_view(write_view(tmp_path / "v", made)), tab="compare"))
    formatted, stored = [block[2] for block in blocks if block[0] == "diff"]
    assert sum(row[0] != "=" for row in formatted) == 1 and len(formatted) > 5
    assert stored == [["!", long, other]], "sqlglot does not know the dialect"
    assert sum("Formatted by sqlglot" in text for text in texts(blocks)) == 1


def test_lineage_problems_and_details(daily: ix.View, tmp_path: Path) -> None:
    table = ix.empty({"day": "date", "fare": "double"})
    table.save(tmp_path / "t")
    w = daily.explore(tables={"prod.db.t": str(tmp_path / "t")})
    blocks = shown(w, "lineage")
    kind, light, dark, alt = blocks[0]
    assert kind == "picture" and light.startswith("<svg") and light != dark and alt.startswith("daily: ")
    assert "prod.db.t" in blocks_text(blocks[1:]), "also as text"
    w.select(2)
    assert "WHERE fare" in shown(w)[0][1], "of the selected version"
    assert "spark query of version 2 returns 2 columns" in blocks_text(shown(w, "problems"))
    text = blocks_text(shown(w, "details"))
    for words in ("Default namespace", "engine-version", "Trips by day", '"schema-id": 2', daily.location):
        assert words in text
    assert w.error == {}


def test_problems_are_found_when_their_tab_is_shown(tmp_path: Path) -> None:
    made = view([version(1, {"spark": OLD, "trino": "SELECT 1 AS day"}), version(2, OLD)], 2, 1)
    w = ix.open_view(write_view(tmp_path / "v", made)).explore()
    assert w.parts[3] == ["problems", "Problems"]
    text = blocks_text(shown(w, "problems"))
    assert "view-columns-differ" in text and "trino query of version 1 returns 1 columns" in text
    assert "Not checked: prod.db.t" in text, "the source cannot be found"
    count = len(ix.open_view(tmp_path / "v").check())
    assert w.parts[3] == ["problems", f"Problems ({count})"]
    w.select(2)
    assert "No problems" in blocks_text(shown(w)) and w.parts[3] == ["problems", "Problems"], "of the selected version"
    w.select(1)
    assert shown(w) and w.parts[3] == ["problems", f"Problems ({count})"], "also when it is shown again"


def test_sources_are_opened_only_on_request(daily: ix.View) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("opened")

    w = ViewExplorer(daily, open_source=refuse)
    shown(w, "compare"), shown(w, "details")
    assert w.error == {}
    assert shown(w, "lineage") == [] and "opened" in w.error["text"]
    w.tab = "sql"
    assert shown(w) and w.error == {}, "the rest still works"


def test_arguments(daily: ix.View) -> None:
    for wrong in (ix.sample("trips"), "daily", None):
        with pytest.raises(ix.OptionError, match="takes a View"):
            ViewExplorer(wrong)
    with pytest.raises(ix.OptionError, match="no argument 'tabs'"):
        ViewExplorer(daily, tabs="sql")
    with pytest.raises(ix.OptionError):
        ViewExplorer(daily, tab="rows")
    assert "Its view:" in repr(ViewExplorer(daily, dialect="trino"))
    widget = daily.explore(height=640, text_size=150)
    assert (widget.height, widget.text_size, widget.head_collapsed) == ("640px", 150, None)
    with pytest.raises(ix.OptionError, match="not a height"):
        daily.explore(height="tall")


def test_closed_widgets_leave_no_models(daily: ix.View) -> None:
    before = set(_instances)
    w = daily.explore()
    assert w.settle(60) and len(set(_instances) - before) == 2, "itself and its layout"
    w.close()
    assert set(_instances) == before


def test_what_is_shown_without_a_kernel(daily: ix.View, tmp_path: Path) -> None:
    w = daily.explore()
    for tab, _ in w.parts:
        shown(w, tab)
    data, _ = w._repr_mimebundle_()
    tags = Tags(data["text/html"])
    assert not tags.tags & {"svg", "style", "script"} and {"img", "details", "pre"} <= tags.tags
    for words in ("GROUP BY", "rolled back", "Lineage: Version 1", "filter removed: fare > 0"):
        assert words in tags.text
    w.save_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "img-src data:" in page and "GROUP" in page and "script" not in Tags(page).tags
    with pytest.raises(FileExistsError):
        w.save_html(tmp_path / "page.html")
    w.save_html(tmp_path / "page.html", overwrite=True)
    w.close()
    w.close()


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_texts(name: str, tmp_path: Path) -> None:
    w = hostile_view(HOSTILE[name], tmp_path / "v").explore()
    for tab in ("sql", "compare", "lineage", "details"):
        shown(w, tab)
        assert w.error == {}
        json.dumps(w.get_state(), default=str).encode("utf-8")
    html = w._no_kernel_html(every=True)
    assert not [sign for sign in IN_HTML if sign in html.replace('<img src="data:image/svg+xml;base64,', "")]
    page = tmp_path / "page.html"
    w.save_html(page)
    assert "onerror" not in Tags(page.read_text(encoding="utf-8")).attributes
    w.close()


SQL = """SELECT "a b", `c`, t.select, sum(x) -- no 'string'
FROM t /* 'a' */ WHERE y = 'it''s' AND z >= 1.5e3"""


def test_pieces_of_sql() -> None:
    def pieces(kind: str, text: str = SQL, dialect: str = "trino") -> list[str]:
        return [piece for found, piece in sql_pieces(text, dialect) if found == kind]

    assert pieces("keyword") == ["SELECT", "FROM", "WHERE", "AND"]
    assert pieces("function") == ["sum"]
    assert pieces("comment") == ["-- no 'string'", "/* 'a' */"]
    assert (pieces("string"), pieces("name"), pieces("number")) == (["'it''s'"], ['"a b"', "`c`"], ["1.5e3"])
    assert pieces("string", dialect="Spark") == ['"a b"', "'it''s'"]
    assert pieces("string", r"'\' || 'x'") == [r"'\'", "'x'"]
    assert pieces("string", r"'\'' || 'x'", "spark") == [r"'\''", "'x'"]


def test_any_text_is_split_into_itself_in_linear_time() -> None:
    bits = ["'", '"', "`", "\\", "--", "/*", "*/", "1", ".", "e", "_", "(", "\n", "é", "\ud800", "''", "x'", " "]
    for bit in [*bits, *HOSTILE.values(), *(a + b for a in bits for b in bits)]:
        text = (bit * 100)[:100]
        for dialect in ("spark", "trino"):
            assert "".join(piece for _, piece in sql_pieces(text, dialect)) == text
    with ends():
        for text in ("'" * MOST_HIGHLIGHTED, "1" * (MOST_HIGHLIGHTED - 1) + "x", "'\\" * (MOST_HIGHLIGHTED // 2)):
            sql_pieces(text, "spark"), sql_pieces(text, "trino")
    assert sql_pieces("SELECT " * MOST_HIGHLIGHTED, "spark") == [("", "SELECT " * MOST_HIGHLIGHTED)]


def test_the_script_is_small_and_its_types_name_every_trait() -> None:
    assert ViewExplorer.view_script == sent_script("viewExplorer.viewExplorerView")
    assert len(ViewExplorer._esm) < 20_000
    text = files("iceexplore.widgets").joinpath("static", "types.d.ts").read_text(encoding="utf-8")
    body = re.search(r"export interface ViewTraits \{\n(.*?)\n\}\n", text, re.DOTALL)
    assert body
    described = set(re.findall(r"^  (\w+)\??:", body[1], re.MULTILINE))
    synced = set(ViewExplorer.class_trait_names(sync=True)) - set(DOMWidget.class_trait_names(sync=True))
    shells = {
        "script",
        "title",
        "badges",
        "busy",
        "error",
        "answered",
        "cancelled",
        *RoomTraits.class_trait_names(sync=True),
    }
    assert described | shells == {name for name in synced if not name.startswith("_")}


def blocks_text(blocks: list[Any]) -> str:
    """Return all texts of blocks, in one line."""
    return " ".join(texts(blocks))
