"""The omnibox: what it finds among files, snapshots, rows and actions, and what it says where there is nothing."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.widgets import Explorer
from iceexplore.widgets.navigation._actions import ACTIONS, matching_actions
from iceexplore.widgets.tree._search import Search


@pytest.fixture
def w() -> Iterator[Explorer]:
    made = Explorer(ix.sample("trips"))
    assert made.settle(60)
    yield made
    made.close()


def ask(w: Explorer, text: Any) -> dict[str, list[Any]]:
    """Return the results by group, without the number of them in its title."""
    w.omni = {"n": w.omni.get("n", 0) + 1, "text": text}
    assert w.settle(60)
    assert w.omni_found.get("n") == w.omni["n"] or w.error
    return {title.partition(",")[0]: results for title, results in w.omni_found.get("groups", [])}


def test_files_by_path_and_partition(w: Explorer) -> None:
    found = ask(w, "m1.avro")
    assert list(found) == ["Files"] and w.omni_found["busy"] is False
    (name, note, does) = found["Files"][0]
    assert name.endswith("m1.avro") and note.startswith("manifest · ")
    w.select(**does["select"])
    assert w.settle(60)
    assert str(w.selected.location).endswith("m1.avro")
    assert [hit for hit in w.found["hits"] if hit.startswith("manifest:")], "they are marked in the tree"
    found = ask(w, "2024-03-01")
    assert all(does["select"]["node"].startswith("file:") for _, _, does in found["Files"])
    every = ask(w, "PARQUET")
    assert len(every["Files"]) == 8
    assert re.fullmatch(r"Files, 8 of \d+", w.omni_found["groups"][-1][0])
    found = ask(w, "promotion")
    assert "Files" not in found, "a branch is no file"
    assert "promotion" in found["Snapshots"][0][0]
    ask(w, "")
    assert w.found["hits"] == [] and w.search["text"] == ""


def test_snapshots_by_number_id_operation_date_and_ref(w: Explorer) -> None:
    last = w.snapshots[-1]
    for text in (last["id"], last["id"][:9], "12", "main", "main delete", last["time"][:19]):
        first = ask(w, text)["Snapshots"][0]
        assert first[2]["select"]["snapshot"] == last["id"], text
    assert ask(w, "promotion")["Snapshots"][0][0].startswith("7/12 · promotion")
    appends = ask(w, "append")["Snapshots"]
    assert len(appends) == sum(one["operation"] == "append" for one in w.snapshots)
    numbers = [int(name.partition("/")[0]) for name, _, _ in appends]
    assert numbers == sorted(numbers, reverse=True), "the newest first"
    assert len(ask(w, last["time"][:10])["Snapshots"]) == 8
    assert any(title == "Snapshots, 8 of 12" for title, _ in w.omni_found["groups"])


def test_rows_by_a_filter(w: Explorer) -> None:
    found = ask(w, "  trip_id = 95 ")
    ((name, _, does),) = found["Rows"]
    assert name == "Find rows where trip_id = 95"
    assert does == {"set": {"rows_filter": "trip_id = 95", "tab": "rows"}}
    for trait, value in does["set"].items():
        setattr(w, trait, value)
    assert w.settle(60)
    assert w.rows_answer["filter"] == "trip_id = 95" and w.found_rows is not None
    assert "Rows" not in ask(w, "trip_id")
    assert "Rows" not in ask(w, "no_column = 3")
    assert "Not a valid filter: " in w.omni_found["note"] and "no_column" in w.omni_found["note"]
    assert "Rows" in ask(w, "rider is null or trip_id between 3 and 5")


def test_actions(w: Explorer) -> None:
    def names(text: str) -> list[str]:
        return [name for name, _, _ in ask(w, text).get("Actions", [])]

    assert names("")[:3] == ["Compare with the parent", "Go to the tab Tree", "Go to the tab Files"]
    assert names("tab sc") == ["Go to the tab Scan"]
    assert names("projector") == ["Full screen, or leave it", "Larger text"]
    assert "Stop comparing" not in names("compar")
    parent = ask(w, "compare parent")["Actions"][0][2]["select"]
    w.select(**parent)
    assert w.settle(60)
    assert w.selection["against"] == w.snapshots[-2]["id"]
    assert names("stop")[0] == "Stop comparing"
    w.select(**ask(w, "stop")["Actions"][0][2]["select"])
    assert w.selection["against"] == ""
    first = w.snapshots[0]["id"]
    w.select(snapshot=first)
    assert w.settle(60)
    assert "Compare with the parent" not in names("compare"), "it has none"


def test_buttons_that_actions_press_are_in_the_scripts() -> None:
    """By their names; the browser tests press them."""
    scripts = "".join(
        one.read_text(encoding="utf-8") for one in files("iceexplore.widgets").joinpath("static").iterdir()
        if one.name.endswith(".js")
    )  # fmt: skip
    pressed = [name for action in ACTIONS for name in action.press]
    assert len(pressed) > 10
    for name in pressed:
        verb, _, rest = name.partition(" the ")
        known = f'"{name}"' in scripts or (verb in ("Collapse", "Expand") and f'"{rest}"' in scripts)
        assert known, name


def test_what_was_searched_where_nothing_is_found(w: Explorer) -> None:
    assert ask(w, "no such thing") == {}
    assert w.omni_found["note"] == (
        "Nothing found in 12 snapshots, 3 refs, the actions, and the names and partitions in 4 of 4 manifests. "
        "Not searched: files of other snapshots, and rows (a filter such as id = 17 finds them)."
    )
    ask(w, "m1.avro")
    assert w.omni_found["note"] == ""


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "trips"
    shutil.copytree(_folder(), folder)
    root = ix.open(folder).state.root()
    assert root is not None
    (folder / "metadata" / Path(root.entries["location"][0].as_py()).name).unlink()
    widget = Explorer(ix.open(folder))
    assert widget.settle(60)
    ask(widget, "no such thing")
    assert "Incomplete: 1 of the files listed in the manifest list cannot be read." in widget.omni_found["note"]
    ask(widget, "parquet")
    assert widget.omni_found["note"].startswith("Incomplete: "), "also where something was found"
    widget.close()


def _folder() -> Path:
    return Path(str(files("iceexplore"))) / "data" / "trips"


def test_a_search_is_cancelled(w: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    held = threading.Event()
    step = Search.step

    def slow(self: Search, seconds: float = 0.25) -> None:
        step(self, -1)  # one manifest
        if self.searched > 1:
            held.wait(20)

    monkeypatch.setattr(Search, "step", slow)
    w.omni = {"n": 1, "text": "no such thing"}
    assert w.omni_found["busy"] and w.omni_found["note"].startswith("Searching files: ")
    for _ in range(400):
        if w.found.get("n") == w.search["n"]:
            break
        threading.Event().wait(0.02)
        w.settle(0.02)
    w.cancelled += 1
    held.set()
    assert w.settle(60)
    assert w.omni_found["busy"] is False
    assert re.search(r"Cancelled: [1-4] of 4 manifests searched\.", w.omni_found["note"]), w.omni_found["note"]


def test_what_is_asked_wrongly(w: Explorer) -> None:
    for wrong in (7, None, "x" * 1001):
        ask(w, wrong)
        assert "give n, and text of at most 1,000 characters" in w.error["text"]
    assert ask(w, "main")["Snapshots"] and w.error == {}


def test_words_of_actions_begin_with_what_is_typed() -> None:
    assert [one.title for one in matching_actions(ACTIONS, "text siz")] == [
        "Larger text", "Smaller text", "Text size 100 %",
    ]  # fmt: skip
    assert matching_actions(ACTIONS, "ext") == []
