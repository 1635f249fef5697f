"""Back and forward: what is a step, what is not, and two views of one model."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.widgets import Explorer, Timeline
from iceexplore.widgets.navigation import _history
from iceexplore.widgets.navigation._history import MOST_STEPS, HistoryPanel
from iceexplore.widgets.tree._panel import TreePanel


@pytest.fixture
def w(monkeypatch: pytest.MonkeyPatch) -> Iterator[Explorer]:
    made = Explorer(ix.sample("trips"))
    assert made.settle(60)
    monkeypatch.setattr(_history, "_ONE_MOVE", 0.0)  # each snapshot is a step, but where a test says otherwise
    yield made
    made.close()


def ids(w: Explorer) -> list[str]:
    return [one["id"] for one in w.snapshots]


def spots(w: Explorer) -> int:
    return len(w._panel(HistoryPanel)._spots)


def place(w: Explorer) -> tuple[str, str, str, str]:
    assert w.settle(60)
    chosen = w.selection
    return w.tab, chosen["snapshot"], chosen["against"], chosen["node"]


def test_node_snapshot_tab_and_comparison_are_steps(w: Explorer) -> None:
    places = [place(w)]
    w.select("table")
    places.append(place(w))
    w.select(snapshot=ids(w)[3], node=f"snapshot:{ids(w)[3]}")
    places.append(place(w))
    w.tab = "scan"
    places.append(place(w))
    w.select(against=ids(w)[1])
    places.append(place(w))
    assert len(set(places)) == 5 and w.history["forward"] == ""
    for expected in places[-2::-1]:
        w.back()
        assert place(w) == expected
    assert w.history["back"] == "" and w.history["forward"] == "Tree · trips"
    w.back()
    assert place(w) == places[0], "nothing is before the beginning"
    for expected in places[1:]:
        w.forward()
        assert place(w) == expected
    w.forward()
    assert place(w) == places[-1]
    w.back()
    w.tab = "rows"
    assert w.history["forward"] == "", "another way has begun"
    assert w.error == {}


def test_the_node_that_follows_a_snapshot_is_no_step(w: Explorer) -> None:
    first = place(w)
    assert first[3].startswith("snapshot:")
    w.select(snapshot=ids(w)[4])
    assert place(w)[3] == f"snapshot:{ids(w)[4]}", "Python has selected it"
    assert spots(w) == 2
    w.back()
    assert place(w) == first
    assert spots(w) == 2 and w.history["forward"]
    # a node of another snapshot brings its snapshot with it
    w.select(f"root:{ids(w)[2]}")
    assert place(w)[1:] == (ids(w)[2], "", f"root:{ids(w)[2]}")
    w.back()
    assert place(w) == first


def test_a_way_through_snapshots_is_one_step(w: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_history, "_ONE_MOVE", 3600.0)
    first = place(w)
    for one in ids(w)[:6]:
        w.select(snapshot=one)
    assert place(w)[1] == ids(w)[5]
    assert spots(w) == 2
    w.back()
    assert place(w) == first
    w.forward()
    place(w)
    w.select("table")
    w.back()
    assert place(w)[1] == ids(w)[5]
    w.back()
    assert place(w) == first
    for one in (ids(w)[2], first[1]):
        w.select(snapshot=one)
    assert place(w) == first
    assert spots(w) == 1, "a way that ends where it began"


def test_what_is_cancelled_is_no_step(w: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    first = place(w)
    forest = w._panel(TreePanel).forest
    monkeypatch.setattr(forest, "grow", lambda _: time.sleep(0.3))
    w.select(snapshot=ids(w)[1])
    w.cancelled += 1
    monkeypatch.undo()
    assert place(w) == first
    assert spots(w) == 1 and w.history == {"back": "", "forward": ""}


def test_it_is_bounded_and_asked_for_by_the_browser(w: Explorer) -> None:
    for i in range(MOST_STEPS + 20):
        w.tab = ("scan", "rows")[i % 2]
    assert spots(w) == MOST_STEPS
    w.history_asked = {"n": 3, "by": -1, "earlier": [{"n": 1, "by": -1}, {"n": 2, "by": -1}]}
    assert w.settle(60)
    assert w._panel(HistoryPanel)._now == MOST_STEPS - 4, "each request counts, although a notebook has merged them"
    wrong: list[Any] = [0, 2, "back", None, [1]]
    for i, by in enumerate(wrong):
        w.history_asked = {"n": 4 + i, "by": by}
        assert "by must be -1 or 1" in w.error["text"]


def test_linked_widgets_are_in_step(w: Explorer) -> None:
    line = Timeline(ix.sample("trips"), selection=w)
    first = place(w)
    line.select(snapshot=ids(w)[0])
    assert place(w)[1] == ids(w)[0]
    w.back()
    assert place(w) == first and line.selection == w.selection
    line.close()


def test_descriptions_are_those_of_what_was_shown(w: Explorer) -> None:
    w.select("table")
    place(w)
    w.tab = "scan"
    place(w)
    node: Any = w.nodes["table"]["label"]
    assert w.history["back"] == f"Tree · {node}"
    w.back()
    assert w.history["forward"] == f"Scan · {node}"
