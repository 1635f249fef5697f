"""`v.diff`: SQL by dialect as trees or texts, columns by field id, defaults and properties, in text and HTML."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from tests.helpers.hangs import ends
from tests.helpers.hostile import HOSTILE
from tests.views.test_view_hostile import IN_HTML, IN_TEXT
from tests.views.view_documents import EXAMPLE_REPLACED, cleaned, schema, version, view, write_view

QUERY = "SELECT day, count(*) AS trips\nFROM t\nGROUP BY day"


def made(folder: Path, old: Any, new: Any, **changes: Any) -> ix.View:
    """A view of two versions with these SQL texts."""
    return ix.open_view(write_view(folder, view([version(1, old), version(2, new, **changes)])))


def test_versions_are_compared(tmp_path: Path) -> None:
    filtered = QUERY.replace("FROM t", "FROM t WHERE fare > 0")
    v = made(tmp_path / "daily", {"spark": QUERY, "trino": QUERY, "duckdb": QUERY},
             {"spark": filtered, "trino": QUERY.replace("\n", " "), "presto": QUERY})  # fmt: skip
    d = v.diff(1, 2)
    assert d.dialects == {"spark": "changed", "trino": "formatting", "duckdb": "removed", "presto": "added"}
    assert [(c.kind, c.clause, c.old, c.new, c.text) for c in d.changes] == [
        ("added", "filter", None, "fare > 0", "filter added: fare > 0")
    ]
    assert (d.same_query, d.is_empty, d.schema, d.properties, d.defaults) == (False, False, [], [], [])
    shown = repr(d)
    for text in ("Diff daily version 1 → daily version 2", "changed: 1 change", "filter added: fare > 0", "removed",
                 "same query: only formatting or comments differ", "-FROM t\n", "+FROM t WHERE fare > 0"):  # fmt: skip
        assert text in shown
    assert "filter added: fare &gt; 0" in d._repr_html_()


def test_what_diff_takes(tmp_path: Path) -> None:
    v = made(tmp_path / "v", "SELECT 1 AS a", "SELECT 2 AS a")
    texts = ["column a changed: 1 AS a → 2 AS a"]
    for a, b in ((1, 2), ("1", "2"), (v.versions[0], v.versions[1]), (v.at(1), v.at(2)), (1, None), (v.at(1), None)):
        assert [c.text for c in v.diff(a, b).changes] == texts
    assert [c.text for c in v.at(1).diff(2).changes] == ["column a changed: 2 AS a → 1 AS a"]
    other = ix.open_view(write_view(tmp_path / "other", view([version(1, "SELECT 3 AS a")])))
    assert "other version 1 → v version 2" in v.diff(other).title()
    with pytest.raises(ix.SnapshotNotFoundError):
        v.diff(1, 9)
    for wrong in (None, 1.5, "x", True, object()):
        with pytest.raises(ix.OptionError):
            v.diff(wrong)  # type: ignore[arg-type]


def test_the_same_version_and_the_same_query(tmp_path: Path) -> None:
    v = made(tmp_path / "v", QUERY, "-- by day\n" + QUERY.lower().replace("count", "COUNT"))
    same, formatted = v.diff(1, 1), v.diff(1, 2)
    assert same.is_empty and same.same_query and not same.changes
    assert formatted.dialects == {"spark": "formatting"} and formatted.same_query and not formatted.is_empty


def test_what_is_unknown_is_not_called_the_same(tmp_path: Path) -> None:
    for n, (old, new) in enumerate([("SELECT FROM", "SELECT WHERE"), ("SELECT 1", "SELECT 1 1 1")]):
        d = made(tmp_path / str(n), old, new).diff(1)
        assert d.dialects == {"spark": "text"} and d.same_query is None and d.changes == ()
        assert "texts differ; compared as text, because" in repr(d) and f"-{old}" in repr(d)
    d = made(tmp_path / "x", {"nosuch": "a"}, {"nosuch": "b"}).diff(1)
    assert "sqlglot does not know the dialect 'nosuch'" in repr(d)
    d = made(tmp_path / "y", {"spark": "SELECT 1"}, {"trino": "SELECT 1"}).diff(1)
    assert d.same_query is None, "dialects are not translated"


def test_without_sqlglot_texts_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    d = made(tmp_path / "v", "SELECT 1", "SELECT 2").diff(1)
    assert d.dialects == {"spark": "text"} and "sqlglot is not installed" in repr(d)
    with pytest.raises(ix.OptionError, match=r"pretty=True is impossible .* sqlglot is not installed"):
        d.unified(pretty=True)
    assert made(tmp_path / "w", "SELECT 1", "SELECT 1").diff(1).same_query


def test_a_changed_default_changes_what_names_refer_to(tmp_path: Path) -> None:
    v = made(tmp_path / "v", QUERY, QUERY, **{"default-namespace": ["other", "db"], "default-catalog": None})
    d = v.diff(1, 2)
    assert d.defaults == ["default catalog changed from prod to the view's own",
                          "default namespace changed from db to other.db"]  # fmt: skip
    assert d.same_query is False and d.dialects == {"spark": "same"}
    assert "default namespace changed" in repr(d)


def test_columns_are_compared_by_field_id(tmp_path: Path) -> None:
    wider = schema(2, {"id": 1, "name": "on", "required": False, "type": "timestamp"},
                   {"id": 3, "name": "fares", "required": False, "type": "double"})  # fmt: skip
    made_ = view([version(1), version(2, **{"schema-id": 2})], schemas=[schema(1), wider])
    v = ix.open_view(write_view(tmp_path / "v", made_))
    assert [c.text for c in v.diff(1).schema] == ["day renamed to on", "on promoted from date to timestamp",
                                                  "fares added, double", "trips dropped, was long"]  # fmt: skip


def test_properties_of_two_metadata_files(tmp_path: Path) -> None:
    folder = write_view(tmp_path / "v", view())
    write_view(folder, view(properties={"comment": "Trips", "owner": "me"}), "v2.metadata.json")
    new = ix.open_view(folder)
    d = new.diff(ix.open_view(folder, version=1))
    assert [c.text for c in d.properties] == ["comment changed from Trips by day to Trips", "owner set to me"]
    assert not d.is_empty and d.same_query
    early = cleaned(EXAMPLE_REPLACED)
    early["versions"][1]["properties"] = {"a": "1"}
    v = ix.open_view(write_view(tmp_path / "early", early))
    assert [c.text for c in v.diff(1, 2).properties] == ["a set to 1"], "versions of early drafts have their own"


def test_the_example_of_the_early_draft(tmp_path: Path) -> None:
    d = ix.open_view(write_view(tmp_path / "common_view", cleaned(EXAMPLE_REPLACED))).diff(1, 2)
    assert d.dialects == {"presto": "removed", "spark": "added"}
    assert [c.text for c in d.schema] == ["c1 renamed to my_cnt", "my_cnt promoted from int to long",
                                          "c2 dropped, was string"]  # fmt: skip
    assert 'SELECT "count"(*) my_cnt' in repr(d)
    assert [line for line in d.unified().lines if line[0] in "+-"][2:] == ["-SELECT *", '+SELECT "count"(*) my_cnt']


def test_unified_and_side_by_side(tmp_path: Path) -> None:
    v = made(tmp_path / "v", "SELECT a\nFROM t\nWHERE x", "SELECT b\nFROM t")
    d = v.diff(1, 2)
    assert d.unified().lines == ("--- v version 1, spark", "+++ v version 2, spark", "@@ -1,3 +1,2 @@", "-SELECT a",
                                 "+SELECT b", " FROM t", "-WHERE x")  # fmt: skip
    assert d.unified(context=0).lines[2:] == ("@@ -1 +1 @@", "-SELECT a", "+SELECT b", "@@ -3 +2,0 @@", "-WHERE x")
    both = d.side_by_side("SPARK")
    assert both.rows == (("!", "SELECT a", "SELECT b"), ("=", "FROM t", "FROM t"), ("-", "WHERE x", None))
    assert d.side_by_side(pretty=True).rows[:2] == (("=", "SELECT", "SELECT"), ("!", "  a", "  b"))
    assert "no line differs" in repr(v.diff(1, 1).unified())
    lines = repr(both).splitlines()
    assert lines[1].startswith("! SELECT a") and lines[1].endswith("│ SELECT b") and lines[3].startswith("- WHERE x")
    assert "background" in both._repr_html_() and "background" in d.unified()._repr_html_()


def test_which_dialect_is_meant(tmp_path: Path) -> None:
    two = {"spark": "SELECT 1", "trino": "SELECT 1"}
    d = made(tmp_path / "v", two, {**two, "presto": "SELECT 2"}).diff(1)
    with pytest.raises(ix.OptionError, match=r"have 2 dialects in common: give dialect=, one of 'spark', 'trino'$"):
        d.unified()
    with pytest.raises(
        ix.OptionError, match="v version 1 does not store the dialect 'presto'; it stores 'spark', 'trino'"
    ):
        d.unified("presto")
    for wrong in (5, b"x"):
        with pytest.raises(ix.OptionError):
            d.unified(wrong)  # type: ignore[arg-type]
    for context in (-1, 1.5, True):
        with pytest.raises(ix.OptionError, match="context="):
            d.unified("spark", context=context)  # type: ignore[arg-type]
    apart = made(tmp_path / "w", two, {"presto": "SELECT 2", "duckdb": "SELECT 2"}).diff(1)
    none = "no dialect in common, .*: w version 1 stores 'spark', 'trino'; w version 2 stores 'presto', 'duckdb'"
    with pytest.raises(ix.OptionError, match=none):
        apart.side_by_side()
    more = made(tmp_path / "x", {**two, "presto": "SELECT 2"}, {**two, "duckdb": "SELECT 2"}).diff(1)
    with pytest.raises(ix.OptionError, match=r"have 2 dialects in common: give dialect=, one of 'spark', 'trino'$"):
        more.unified()


def test_line_ends_are_differences_of_the_text(tmp_path: Path) -> None:
    d = made(tmp_path / "v", "SELECT a\nFROM t", "SELECT a\r\nFROM t").diff(1)
    assert d.dialects == {"spark": "formatting"} and d.side_by_side().rows[0] == ("!", "SELECT a", "SELECT a\r")
    assert "SELECT a␍" in repr(d.side_by_side())


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_texts(name: str, tmp_path: Path) -> None:
    text = HOSTILE[name]
    old, new = (
        {text: f"{text}{i}", "spark": f"SELECT '{text}' AS `{text}`, {i} FROM t", "trino": f"{i}{text}"} for i in (1, 2)
    )
    column = {"id": 1, "name": text, "required": False, "type": "int"}
    document = view([version(1, old), version(2, new, **{"schema-id": 2, "default-namespace": [text]})],
                    schemas=[schema(1), schema(2, column)], location=f"/{text}")  # fmt: skip
    d = ix.open_view(write_view(tmp_path / "v", document)).diff(1, 2)
    parts = [d, *(view_ for dialect in ("spark", "trino") for view_ in (d.unified(dialect), d.side_by_side(dialect)))]
    texts = [*map(repr, parts), *(repr(one) for one in d.sql if len(text) < 1000)]
    pages = [one._repr_html_() for one in parts]
    assert [sign for output in texts for sign in IN_TEXT if sign in output] == []
    assert [sign for output in pages for sign in IN_HTML if sign in output] == []
    assert all(len(output) < 100_000 for output in pages)


def test_large_queries_are_compared_within_limits(tmp_path: Path) -> None:
    long = "SELECT 1,\n" * 4_000
    with ends():
        d = made(tmp_path / "v", long + "2", "0 " + long + "3").diff(1)
        assert d.dialects == {"spark": "text"} and len(repr(d)) < 30_000
        assert len(repr(d.side_by_side())) < 100_000 and "more lines" in repr(d.side_by_side())
        huge = made(tmp_path / "w", "x\n" * 6_000, "y\n" * 6_000).diff(1)
        assert "more than" not in repr(huge) and "texts differ" in repr(huge)
        with pytest.raises(ix.OptionError, match="has 6,001 lines; at most 5,000"):
            huge.unified()
