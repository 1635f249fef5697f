"""Frames print signs for what would act; their values stay as they are."""

from __future__ import annotations

import io
import pickle
from pathlib import Path

import pandas as pd
import pytest

import iceexplore as ix
from iceexplore.render import shown_frame

ACTS = ["\x1b[31m", "\x00", "\u202e", "\u2066", "\r", "\x07", "\u200b", "\x9b31m"]


@pytest.fixture
def hostile() -> pd.DataFrame:
    names = [f"a{sign}b" for sign in ACTS]
    return shown_frame(pd.DataFrame({f"n{s}": pd.Series(names, index=names) for s in ACTS}))


def test_nothing_acts_in_what_is_printed(hostile: pd.DataFrame) -> None:
    some = [
        hostile, hostile.head(2), hostile.T, hostile.iloc[:, 0], hostile.iloc[0], hostile[hostile.columns[:2]],
        hostile.sort_index(), hostile.reset_index(), pd.concat([hostile, hostile]), hostile.iloc[:, 0].to_frame(),
        hostile.groupby(hostile.columns[0]).count(), hostile.copy(), pickle.loads(pickle.dumps(hostile)),
        hostile.iloc[:, 0].value_counts(), hostile.merge(hostile), hostile.set_index(hostile.columns[0]),
    ]  # fmt: skip
    for part in some:
        for text in (repr(part), str(part), part.to_string()):
            assert not any(sign in text for sign in ACTS), type(part)
            assert "\u241b" in text or "U+" in text
        if isinstance(part, pd.DataFrame):
            for text in (part._repr_html_(), part.to_html()):  # type: ignore[operator]
                assert text is not None and not any(sign in text for sign in ACTS)
    out = io.StringIO()
    assert hostile.to_string(out) is None
    assert not any(sign in out.getvalue() for sign in ACTS)


def test_values_stay(hostile: pd.DataFrame, tmp_path: Path) -> None:
    assert hostile.iloc[0, 0] == f"a{ACTS[0]}b"
    assert hostile.columns[0] == f"n{ACTS[0]}"
    assert isinstance(hostile, pd.DataFrame)
    plain = pd.DataFrame(hostile)
    assert hostile.equals(plain) and plain.iloc[:, 0].tolist() == hostile.iloc[:, 0].tolist()
    plain = shown_frame(pd.DataFrame({"a": [1, 2]}))
    assert repr(plain) == repr(pd.DataFrame({"a": [1, 2]}))
    plain.to_string(tmp_path / "x.txt")
    assert (tmp_path / "x.txt").read_text() == plain.to_string()


def test_markup_and_mathematics_are_text() -> None:
    text = shown_frame(pd.DataFrame({"a": ["<b>x</b>", "$x^2$ \\(y\\)"]}))._repr_html_()  # type: ignore[operator]
    assert text is not None
    assert "<b>x" not in text and "$x^2$" not in text and "\\(" not in text


def test_every_frame_of_a_table_is_so(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"id": "long", "city": "string"}, partition_by="city", format_version=2)
    lab.append({"id": [1], "city": ["\x1b[31m\u202ered"]})
    frames = {
        "files": lab.inspect.files(), "partitions": lab.inspect.partitions(), "flat": lab.inspect.files(flat=True),
        "head": lab.head(5), "rows": lab.to_pandas(), "tasks": lab.plan().tasks, "reads": lab.reads.to_pandas(),
        "places": lab.rows("id = 1").to_pandas(), "left": lab.orphan_files(),
    }  # fmt: skip
    for name, frame in frames.items():
        assert type(frame).__name__ == "ShownFrame", name
        for text in (repr(frame), frame._repr_html_(), frame.to_string()):  # type: ignore[operator]
            assert "\x1b" not in text and "\u202e" not in text, name
    assert frames["rows"]["city"][0] == "\x1b[31m\u202ered"
