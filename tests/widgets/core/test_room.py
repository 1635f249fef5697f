"""The room that widgets take, as traits: height, size of text, what is collapsed, and what a cell's next run keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import traitlets

import iceexplore as ix
from iceexplore.errors import OptionError
from iceexplore.widgets import Explorer, Problems, ScanLab, Timeline
from iceexplore.widgets.core._keys import KEYS, keys_markdown

DOCS = Path(__file__).parents[3] / "docs" / "explorer.md"


@pytest.fixture(scope="module")
def table() -> ix.Table:
    return ix.sample("trips")


@pytest.fixture
def made() -> Iterator[Callable[..., Any]]:
    """Makes widgets that are closed at the end."""
    widgets: list[Any] = []

    def make(kind: Any, *args: Any, **kwargs: Any) -> Any:
        widgets.append(kind(*args, **kwargs))
        return widgets[-1]

    yield make
    for one in widgets:
        one.close()


@pytest.mark.parametrize(
    ("given", "length"),
    [
        (None, ""), ("", ""), (700, "700px"), (700.5, "700.5px"), ("700px", "700px"), (" 80VH ", "80vh"),
        ("40em", "40em"), (".5in", ".5in"), ("90dvh", "90dvh"), (200, "200px"), (10_000, "10000px"),
    ],
)  # fmt: skip
def test_a_height_is_pixels_or_a_length(table: ix.Table, made: Any, given: Any, length: str) -> None:
    assert made(Explorer, table, height=given).height == length


@pytest.mark.parametrize(
    "given",
    [
        True, 0, -700, 199, 10_001, float("nan"), float("inf"), "tall", "700", "80 %", "0vh", "-3em", "calc(80vh)",
        "700px;color:red", "1e9px", [700], b"700px", "9" * 400 + "vh",
    ],
)  # fmt: skip
def test_what_is_no_height_is_refused(table: ix.Table, made: Any, given: Any) -> None:
    with pytest.raises(OptionError, match="not a height: give pixels, from 200 to 10,000, or a CSS length"):
        Explorer(table, height=given)
    widget = made(Explorer, table, height="50vh")
    with pytest.raises(traitlets.TraitError, match="not a height"):
        widget.height = given
    assert widget.height == "50vh"


def test_the_room_of_other_widgets(table: ix.Table, made: Any) -> None:
    assert made(ScanLab, table, height=500).height == "500px"
    assert made(table.explore, height="70vh", text_size=130).text_size == 130
    with pytest.raises(OptionError, match="Timeline takes no height"):
        Timeline(table, height=500)
    for size in (84, 201, "big"):
        with pytest.raises(OptionError, match="text_size"):
            Problems(table, text_size=size)


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A notebook that runs a cell: the request's id."""
    import IPython

    def run(request: str) -> None:
        parent = {"header": {"msg_id": request}, "metadata": {"cellId": "of test_room"}}
        monkeypatch.setattr(IPython, "get_ipython", lambda: SimpleNamespace(get_parent=lambda: parent))

    return run


def test_a_cell_that_runs_again_keeps_the_room(table: ix.Table, made: Any, cell: Any) -> None:
    cell("1")
    first, line = made(Explorer, table, height=700), made(Timeline, table)
    first.height, first.text_size, first.collapsed, line.collapsed = "834px", 150, True, True
    first.details_hidden = True
    cell("2")
    again, other = made(Explorer, table, height=700), made(Timeline, table)
    assert first.comm is None
    assert (again.height, again.text_size, again.head_collapsed, again.collapsed) == ("834px", 150, None, True)
    assert again.details_hidden is True
    assert (other.collapsed, other.text_size) == (True, None)
    cell("3")
    once_more = made(Explorer, table, height=700)
    assert once_more.height == "834px", "what was kept is kept on"
    cell("4")
    assert made(Explorer, table, height=500).height == "500px", "the cell was changed"
    cell("5")
    assert made(Explorer, table, height=500).text_size is None


def test_the_page_about_the_explorer_lists_the_keys() -> None:
    text = DOCS.read_text(encoding="utf-8")
    begin, end = "<!-- keys -->\n\n", "\n\n<!-- end of keys -->"
    assert begin in text and end in text
    assert text.split(begin)[1].split(end)[0] == keys_markdown()


def test_a_widget_lists_the_keys_that_it_has(table: ix.Table, made: Any) -> None:
    def places(widget: Any) -> set[str]:
        return {place for place, _ in widget.shortcuts}

    every = {place.name for place in KEYS}
    assert places(made(Explorer, table)) == every
    assert len(every) == len(KEYS)
    line = places(made(Timeline, table))
    assert {"Timeline"} < line < every
    assert "Timeline" not in places(made(ScanLab, table)) and "Range map: the edges of the range" not in line
