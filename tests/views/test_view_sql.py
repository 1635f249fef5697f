"""`v.sql`: the stored text of a dialect, or a translation that is labelled as such."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.views.sql._parse import ParsedQuery, parse_query
from tests.helpers.hostile import HOSTILE
from tests.views.test_view_hostile import IN_HTML, IN_TEXT
from tests.views.view_documents import version, view, write_view


def of(folder: Path, sql: Any) -> ix.View:
    """A view with this SQL."""
    return ix.open_view(write_view(folder, view([version(1, sql)])))


def test_a_stored_text_is_returned_as_it_is(tmp_path: Path) -> None:
    text = "SELECT  a -- why\nFROM t;"
    found = of(tmp_path / "v", {"spark": text, "trino": "SELECT 1"}).sql("SPARK")
    assert found == text and isinstance(found, str)
    assert (found.dialect, found.translated_from, found.notes) == ("spark", None, ())
    assert repr(found) == f"-- spark, as stored\n{text}"


def test_a_translation_is_labelled(tmp_path: Path) -> None:
    found = of(tmp_path / "v", "SELECT `a b`, my_udf(x) FROM t /* comment */").sql("trino")
    assert found.split() == ["SELECT", '"a', 'b",', "MY_UDF(x)", "FROM", "t"]
    assert (found.dialect, found.translated_from) == ("trino", "spark")
    assert found.notes[0].startswith("sqlglot translates syntax and functions; check results")
    assert found.notes[1] == "Functions that sqlglot does not know were not translated: my_udf."
    assert repr(found).startswith("-- trino, translated from spark by sqlglot\n-- sqlglot translates")
    assert "translated from spark" in found._repr_html_()


def test_what_a_dialect_lacks_is_noted(tmp_path: Path) -> None:
    found = of(tmp_path / "v", {"snowflake": "SELECT a FROM t PIVOT (SUM(x) FOR y IN ('a', 'b'))"}).sql("mysql")
    assert any(note.startswith("Not supported in mysql: ") for note in found.notes)


def test_the_first_dialect_that_can_be_parsed_is_translated(tmp_path: Path) -> None:
    v = of(tmp_path / "v", {"nosuch": "SELECT 1", "spark": "SELECT FROM", "trino": "SELECT 3"})
    found = v.sql("duckdb")
    assert (found.translated_from, found.split()) == ("trino", ["SELECT", "3"])
    with pytest.raises(ix.OptionError, match="does not store its query in the dialect 'duckdb'; it stores"):
        v.sql("duckdb", translate=False)
    with pytest.raises(ix.OptionError, match=r"'zzz'; it stores .*, and sqlglot does not know the dialect"):
        v.sql("zzz")
    with pytest.raises(ix.OptionError, match=r"cannot be translated \(nosuch: sqlglot does not know the dialect"):
        of(tmp_path / "w", {"nosuch": "SELECT 1"}).sql("duckdb")
    with pytest.raises(ix.OptionError, match="in 3 dialects: give one of 'nosuch', 'spark', 'trino'"):
        v.sql()
    none = ix.open_view(write_view(tmp_path / "e", {**view(), "versions": []}))
    with pytest.raises(ix.OptionError, match="'spark'; it stores none"):
        none.sql("spark")


def test_without_sqlglot_stored_texts_remain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    v = of(tmp_path / "v", "SELECT 1")
    monkeypatch.setitem(sys.modules, "sqlglot.dialects.dialect", None)
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    assert v.sql("spark") == v.sql() == "SELECT 1"
    with pytest.raises(ix.OptionError, match="To translate it, pip install sqlglot"):
        v.sql("trino")


def test_sqlglot_is_imported_by_several_threads_at_once() -> None:
    code = """
        import sys, threading
        from iceexplore.views.sql._parse import known_dialect, parse_query
        start = threading.Barrier(2)
        found = [None, None]
        def ask(place, question, *given):
            start.wait()
            found[place] = question(*given)
        both = [(0, known_dialect, "spark"), (1, parse_query, "SELECT 1", "trino")]
        threads = [threading.Thread(target=ask, args=one) for one in both]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        import sqlglot
        print(found[0], type(found[1]).__name__, hasattr(sqlglot, "dialects"))
    """
    done = subprocess.run([sys.executable, "-c", dedent(code)], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == ["spark", "ParsedQuery", "True"], done.stderr


def test_a_comment_cannot_break_out(tmp_path: Path) -> None:
    found = of(tmp_path / "v", "SELECT 1 -- */ ; DROP TABLE t /*").sql("trino")
    assert isinstance(parse_query(found, "trino"), ParsedQuery) and "DROP" not in found


def test_copies(tmp_path: Path) -> None:
    found = of(tmp_path / "v", "SELECT 1").sql("trino")
    for other in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert other == found and repr(other) == repr(found) and other.notes == found.notes


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_texts(name: str, tmp_path: Path) -> None:
    text = HOSTILE[name].replace("'", "").replace("`", "")
    v = of(tmp_path / "v", {"spark": f"SELECT '{text}' AS `{text}x`, `f{text}`(1) FROM t", "odd": HOSTILE[name]})
    found = [v.sql("spark"), v.sql("odd")]
    try:
        found.append(v.sql("duckdb"))
    except ix.OptionError as error:
        assert not [sign for sign in IN_TEXT if sign in str(error)]  # noqa: PT017  (some texts cannot be parsed)
    for one in found:
        assert not [sign for sign in IN_TEXT if sign in repr(one)]
        assert not [sign for sign in IN_HTML if sign in one._repr_html_()]
