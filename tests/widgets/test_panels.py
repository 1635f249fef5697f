"""How widgets are made of panels: traits, the order of calls, and panels without a widget."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anywidget
import pytest
import traitlets

import iceexplore as ix
from iceexplore.storage import CACHE
from iceexplore.widgets import (
    CommitLab,
    DeletionVectors,
    Explorer,
    FileMap,
    Problems,
    Rows,
    ScanLab,
    TableWidget,
    Timeline,
)
from iceexplore.widgets.core import _preload as preloads
from iceexplore.widgets.core._panel import Panel, PanelHost, SyncedTrait
from iceexplore.widgets.core._preload import manifests_ahead, preload
from iceexplore.widgets.core._room import RoomTraits
from iceexplore.widgets.core._scripted import ScriptedWidget
from iceexplore.widgets.timeline._panel import TimelinePanel

WIDGETS = (CommitLab, DeletionVectors, Explorer, FileMap, Problems, Rows, ScanLab, Timeline)


class DiaryPanel(Panel):
    """A panel that notes what it is called for."""

    diary = SyncedTrait(traitlets.List(traitlets.Unicode()))
    wish = SyncedTrait(traitlets.Unicode("none"))

    def first(self, selection: Mapping[str, str]) -> dict[str, Any]:
        return {"diary": ["first"]}

    def begin(self) -> None:
        self.host.observe(lambda change: self.note(change["new"]), "wish")
        self.note("begin")

    def on_selected(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        self.note(f"{type(self).__name__} {new['node']}")

    def on_cancelled(self, selection: Mapping[str, str]) -> None:
        self.note(f"cancelled at {selection['node']}")

    def on_failed(self) -> None:
        self.note("failed")

    def close(self) -> None:
        self.note("close")

    def no_kernel_html(self) -> str:
        return f"<p>{len(self.diary)} notes</p>"

    def note(self, text: str) -> None:
        self.diary = [*self.diary, text]


class FollowingPanel(Panel):
    """A panel that uses the one before it."""

    def __init__(self, host: PanelHost) -> None:
        super().__init__(host)
        self.before = host.panel(DiaryPanel)

    def on_selected(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        self.before.note("after it")
        if new["node"] == "broken":
            raise ZeroDivisionError("on purpose")

    def on_cancelled(self, selection: Mapping[str, str]) -> None:
        self.before.note("cancelled after it")


class Diary(TableWidget):
    panels = (DiaryPanel, FollowingPanel)


class MoreDiary(Diary):
    wishes = traitlets.Int().tag(sync=True)


@pytest.fixture
def table() -> ix.Table:
    return ix.sample("trips")


@pytest.fixture
def make(table: ix.Table) -> Iterator[Callable[..., Any]]:
    made: list[TableWidget] = []

    def one(kind: type[TableWidget], **traits: Any) -> Any:
        made.append(kind(table, **traits))
        assert made[-1].settle(60)
        return made[-1]

    yield one
    for widget in made:
        widget.close()


def test_a_panel_s_traits_are_the_widget_s(make: Any) -> None:
    one, other = make(Diary, wish="a"), make(Diary)
    assert {"diary", "wish"} <= Diary.class_traits(sync=True).keys()
    assert {"diary", "wish"} <= one.get_state().keys()
    assert (one.diary, one.wish) == (["first", "begin"], "a")
    one.wish = "b"
    assert (one.diary[-1], one._panel(DiaryPanel).wish) == ("b", "b")
    assert (other.diary, other.wish) == (["first", "begin"], "none"), "two widgets share nothing"
    with pytest.raises(ix.OptionError, match="wish"):
        make(Diary, wish=7)
    with pytest.raises(ix.OptionError, match="takes no argument diary"):
        make(Diary, diary=[])


def test_a_subclass_keeps_the_panels(make: Any) -> None:
    more = make(MoreDiary, wish="a", wishes=2)
    assert (more.diary, more.wish, more.wishes) == (["first", "begin"], "a", 2)
    assert "diary" not in TableWidget.class_traits()


def test_a_subclass_adds_panels(make: Any) -> None:
    both = type("Both", (Explorer,), {"panels": (*Explorer.panels, DiaryPanel)})
    made = make(both)
    assert made.diary[:2] == ["first", "begin"]
    assert made.nodes and "diary" not in Explorer.class_traits()


def test_panels_are_called_in_order(make: Any) -> None:
    widget = make(Diary)
    widget.select("table")
    assert widget.diary[2:] == ["DiaryPanel table", "after it"]
    widget.cancelled += 1
    assert widget.diary[4:] == ["cancelled at table", "cancelled after it"]
    widget.select("broken")
    assert widget.diary[-2:] == ["after it", "failed"]
    assert widget.error["text"] == "ZeroDivisionError: on purpose"
    assert widget._no_kernel_html().endswith("<p>9 notes</p>")
    widget.close()
    assert widget.diary[-1] == "close"


def test_a_name_is_taken_once() -> None:
    class TitledPanel(Panel):
        title = SyncedTrait(traitlets.Unicode())

    class OtherPanel(Panel):
        wish = SyncedTrait(traitlets.Int())

    for panels, name in (((TitledPanel,), "title"), ((DiaryPanel, OtherPanel), "wish")):
        with pytest.raises(TypeError, match=rf"Wrong\.{name} already exists"):
            type("Wrong", (TableWidget,), {"panels": panels})


def test_a_panel_comes_after_those_that_it_uses(table: ix.Table) -> None:
    class Wrong(TableWidget):
        panels = (FollowingPanel, DiaryPanel)

    with pytest.raises(LookupError, match="Wrong has no DiaryPanel; list it in panels, before"):
        Wrong(table)


@pytest.mark.parametrize("kind", WIDGETS)
def test_widgets_are_composed(kind: type[TableWidget]) -> None:
    ours = [cls for cls in kind.__mro__ if cls.__module__.startswith("iceexplore.")]
    assert ours == [kind, TableWidget, RoomTraits, ScriptedWidget]
    assert not any(issubclass(panel, traitlets.HasTraits) for panel in kind.panels)
    own = {"parts", "tab", "scripts"} if kind is Explorer else set()
    theirs = {name for panel in kind.panels for name in panel.traits()}
    base = {"script", "title", "badges", "styles", "caption", "selection", "busy", "error", "answered", "cancelled"}
    base |= RoomTraits.class_traits(sync=True).keys()
    names = kind.class_traits(sync=True).keys() - anywidget.AnyWidget.class_traits().keys()
    assert names == own | theirs | base


class BareHost:
    """A host without a widget, a thread and a browser: what is run is done at once."""

    def __init__(self, table: ix.Table, kind: type[Panel]) -> None:
        self.table, self.state, self.tab = table, table.state, None
        self.selection = {"snapshot": str(table.snapshots[-1].snapshot_id), "against": "", "node": "table"}
        self.widget = SimpleNamespace(**{name: trait.default() for name, trait in kind.traits().items()})
        self.hold_sync = nullcontext
        self.ran: list[str] = []

    def panel(self, kind: type[Panel]) -> Panel:
        raise LookupError(f"no {kind.__name__}: this host has one panel")

    def run(self, slot: str, what: str, read: Callable[[], Any], show: Callable[[Any], None]) -> None:
        self.ran.append(what)
        show(read())


def test_a_panel_needs_no_widget(table: ix.Table) -> None:
    host = BareHost(table, TimelinePanel)
    panel = TimelinePanel(host)  # type: ignore[arg-type]  # the part of a host that a timeline uses
    for name, value in panel.first(host.selection).items():
        setattr(host.widget, name, value)
    panel.begin()
    assert [s["id"] for s in panel.snapshots] == [str(s.snapshot_id) for s in table.snapshots]
    old = dict(host.selection)
    host.selection = {**old, "against": str(table.snapshots[0].snapshot_id)}
    panel.on_selected(old, host.selection)
    assert host.ran == ["Comparing two snapshots"]
    assert host.widget.comparison["against"] == host.selection["against"]
    assert {row[0]: row[1] for row in panel.comparison["rows"]}["data files"] > 0
    panel.on_selected(host.selection, old)
    assert panel.comparison == {}


def test_a_kernel_imports_what_requests_need_once_the_widget_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("imported_later", "that_fails", "imported_after_it")
    for name in names:
        (tmp_path / f"{name}.py").write_text("raise OSError" if name == "that_fails" else "")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(preloads, "_AFTER", 0.0)
    steps: list[str] = []

    def ahead() -> Iterator[str]:
        for name in names:
            steps.append(name)
            yield name
        raise OSError

    preload(names, ahead)
    assert not sys.modules.keys() & set(names) and not steps, "a script imports and reads what it uses"

    async def kernel() -> None:
        preload(names, ahead)
        while len(steps) < len(names):
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(kernel(), 60))
    assert names[0] in sys.modules and names[1] not in sys.modules
    for panel in Explorer.panels:
        assert all(find_spec(name) for name in panel.later), panel


def test_small_local_manifests_are_read_ahead() -> None:
    CACHE.clear()
    state = ix.sample("trips").state
    steps = list(manifests_ahead(state, state.snapshot))
    root = state.root()
    assert root is not None and len(steps) == len(root) > 1
    seen = set(state.reader.seen)
    assert seen == {root.location}, "what is checked has been looked at, not decoded"
    before = sum(read.kind == "manifest" for read in state.storage.reads)
    assert len(list(state.leaves(parts=frozenset({"entries", "partition", "stats"})))) == len(steps)
    assert sum(read.kind == "manifest" for read in state.storage.reads) == before > 0
    assert list(state.reader.warm(root, 1_000)) == [], "too many bytes"
    assert list(manifests_ahead(state, None)) == []
