"""Hostile queries and names: every output shows them, and none acts on them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import iceexplore as ix
from tests.helpers.hostile import HOSTILE
from tests.views.view_documents import schema, version, view, write_view

#: What would act in a terminal, and what would act in a page.
IN_TEXT = ("\x1b", "\x07", "\u202e", "\x00", "\x9b", "\r", "\u2028", "\ud800")
IN_HTML = ("<img", "<script", "</script", "</style", "<b>bold", "<svg", "<table><tr><td href", *IN_TEXT)


def hostile_view(text: str, folder: Path) -> ix.View:
    """A view in which a text is wherever a text can be."""
    column = {"id": 1, "name": text, "required": False, "type": text, "doc": text}
    made = view(
        [
            version(i, {text: text, "spark": f"SELECT '{text}{i}' AS x FROM t"}, **{
                "summary": {"engine-name": text, "operation": text, text: text},
                "default-catalog": text, "default-namespace": [text, text],
                "storage-table": {"namespace": [text], "name": text},
            })
            for i in (1, 2)
        ],
        schemas=[schema(1, column)],
        properties={"comment": text, text: text},
        location=f"/w/{text}",
    )  # fmt: skip
    return ix.open_view(write_view(folder, json.dumps(made)))


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_texts(name: str, tmp_path: Path) -> None:
    v = hostile_view(HOSTILE[name], tmp_path / "v")
    tables = [v.inspect[one]() for one in v.inspect]
    texts = [*map(repr, (v, v.at(1), v.inspect, v.problems, v.metadata, v.versions[0], *tables)),
             *map(repr, v.versions[0].representations)]  # fmt: skip
    pages = [*(one._repr_html_() for one in (v, v.at(1), v.inspect)), *(one.to_html() for one in tables)]
    assert [sign for output in texts for sign in IN_TEXT if sign in output] == []
    assert [sign for output in pages for sign in IN_HTML if sign in output] == []
    assert all(len(page) < 50_000 for page in pages[:3]), "long texts are shortened"
    if name != "surrogate":  # which JSON can hold, and Unicode cannot
        assert v.sql("spark") == f"SELECT '{HOSTILE[name]}2' AS x FROM t", "values are not changed"


def test_errors_show_hostile_names(tmp_path: Path) -> None:
    evil = "e\x1b[31m\u202e"
    v = ix.open_view(write_view(tmp_path / "v", view([version(1, {evil: "SELECT 1", "b": "SELECT 2"})])))
    for how in (lambda: v.sql(), lambda: v.sql(f"{evil}x"), lambda: v.at(evil)):
        with pytest.raises(ix.OptionError) as found:
            how()
        assert "\x1b" not in str(found.value) and "\u202e" not in str(found.value)


def test_a_query_of_a_million_lines_is_shown_in_part(tmp_path: Path) -> None:
    text = "SELECT 1,\n" * 1_000_000
    v = ix.open_view(write_view(tmp_path / "v", view([version(1, text)])))
    for output in (repr(v), v._repr_html_()):
        assert len(output) < 20_000 and "more characters" in output
    assert v.sql() == text
