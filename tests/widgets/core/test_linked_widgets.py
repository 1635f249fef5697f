"""Widgets that share a selection, are made again from their traits, and leave nothing behind."""

from __future__ import annotations

import asyncio
import gc
import inspect
import re
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterator
from types import SimpleNamespace
from typing import Any

import anywidget
import ipywidgets
import pytest
from ipywidgets.embed import embed_data

import iceexplore as ix
from iceexplore.widgets import CommitLab, DeletionVectors, Explorer, FileMap, Problems, ScanLab, Timeline
from iceexplore.widgets.core._worker import Work
from iceexplore.widgets.grid._panel import GridPanel
from iceexplore.widgets.tree._panel import TreePanel


@pytest.fixture
def table() -> ix.Table:
    return ix.sample("trips")


@pytest.fixture
def made() -> Iterator[Callable[..., Any]]:
    widgets: list[Any] = []

    def make(kind: Any, *args: Any, **options: Any) -> Any:
        widgets.append(kind(*args, **options))
        assert widgets[-1].settle(60)
        return widgets[-1]

    yield make
    for widget in reversed(widgets):
        widget.close()


def workers() -> set[threading.Thread]:
    return {t for t in threading.enumerate() if t.name.startswith("iceexplore-widget")}


def test_a_shared_selection_goes_both_ways(table: ix.Table, made: Any) -> None:
    explorer = made(Explorer, table)
    timeline = made(Timeline, table, selection=explorer)
    first, last = table.snapshots[0].snapshot_id, table.snapshots[-1].snapshot_id
    assert timeline.selection == explorer.selection
    timeline.select(snapshot=first)
    assert explorer.settle(60)
    assert explorer.snapshot is timeline.snapshot is table.metadata.snapshot(first)
    assert f"root:{first}" in explorer.nodes
    explorer.select(snapshot=last, against=first)
    assert timeline.settle(60)
    assert timeline.selection["against"] == str(first)
    assert explorer.settle(60)


@pytest.mark.parametrize("link", [ipywidgets.link, ipywidgets.dlink])
def test_links_of_ipywidgets(table: ix.Table, made: Any, link: Any) -> None:
    a, b = made(Timeline, table), made(Timeline, table)
    tied = link((a, "selection"), (b, "selection"))
    seen: list[str] = []
    b.observe(lambda change: seen.append(change["new"]["snapshot"]), "selection")
    first = str(table.snapshots[0].snapshot_id)
    a.select(snapshot=first)
    assert b.selection["snapshot"] == first
    assert seen == [first]
    tied.unlink()
    a.select(snapshot=table.snapshots[1].snapshot_id)
    assert b.selection["snapshot"] == first


def test_what_the_browser_says_in_another_thread_is_done_in_the_owner_s(table: ix.Table, made: Any) -> None:
    """JupyterLab sends it to a subshell of the kernel, while what was read is shown in the kernel's own thread."""
    first = str(table.snapshots[0].snapshot_id)

    async def kernel() -> list[int]:
        explorer = made(Explorer, table)
        timeline = made(Timeline, table, selection=explorer)
        seen: list[int] = []
        explorer.observe(lambda _: seen.append(threading.get_ident()), "selection")
        state = {"selection": {**timeline.selection, "snapshot": first}}
        message = {"content": {"data": {"method": "update", "state": state, "buffer_paths": []}}, "buffers": []}
        await asyncio.to_thread(timeline._handle_msg, message)
        while not seen:
            await asyncio.sleep(0.01)
        timeline._handle_msg({"content": {"data": {"method": "custom", "content": {"ping": True}}}, "buffers": []})
        assert timeline.answered > 0, "in the owner's own thread it is done at once"
        assert explorer.settle(60)
        assert explorer.selection == timeline.selection
        assert f"root:{first}" in explorer.nodes
        return seen

    assert set(asyncio.run(asyncio.wait_for(kernel(), 60))) == {threading.get_ident()}


def test_what_a_callback_in_another_thread_sets_is_read_in_the_owner_s(table: ix.Table, made: Any) -> None:
    """A widget of the user's own (a slider, say) is heard in a subshell's thread, and sets a selection there."""
    ids = [s.snapshot_id for s in table.snapshots]

    async def kernel() -> tuple[set[int], list[Any]]:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
        faults: list[Any] = []
        seen: set[int] = set()
        explorer = made(Explorer, table)
        explorer.observe(lambda _: seen.add(threading.get_ident()), ["busy", "nodes", "detail", "error", "scripts"])

        def callback() -> bool:
            for i in range(40):
                explorer.select(snapshot=ids[i % len(ids)])
            explorer.tab = "scan"
            settled = explorer.settle(60) and f"root:{ids[39 % len(ids)]}" in explorer.nodes
            explorer.selection = {**explorer.selection, "snapshot": "17"}
            return settled and explorer.settle(60)

        assert await asyncio.to_thread(callback), "settle() waits there, too"
        assert "17" in explorer.error["text"]
        return seen, faults

    seen, faults = asyncio.run(asyncio.wait_for(kernel(), 60))
    assert seen == {threading.get_ident()}
    assert faults == []


def test_nonsense_is_taken_back_in_both(table: ix.Table, made: Any) -> None:
    explorer = made(Explorer, table)
    timeline = made(Timeline, table, selection=explorer)
    right = dict(explorer.selection)
    timeline.selection = {**right, "snapshot": "17"}
    assert timeline.selection == explorer.selection == right
    assert "17" in (timeline.error or explorer.error)["text"]


@pytest.mark.parametrize("name", ["snapshot", "against"])
def test_an_unknown_snapshot_is_reported_at_once(table: ix.Table, made: Any, name: str) -> None:
    explorer, timeline = made(Explorer, table), made(Timeline, table)
    tied = ipywidgets.link((explorer, "selection"), (timeline, "selection"))
    right = dict(explorer.selection)
    wrong = str(table.snapshots[0].snapshot_id + 1)
    near = str(table.snapshots[0].snapshot_id)
    for text, error in (("nonsense", ix.OptionError), (wrong, ix.SnapshotNotFoundError)):
        with pytest.raises(error, match=near if text == wrong else r"t\.snapshots"):
            explorer.select(**{name: text})
        with pytest.raises(error):
            Timeline(table, selection={name: text})
    assert explorer.selection == timeline.selection == right
    assert explorer.error == timeline.error == {}
    tied.unlink()


def test_what_the_browser_may_not_select_is_taken_back_there_too(
    table: ix.Table, made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    explorer = made(Explorer, table)
    right = dict(explorer.selection)
    sent: list[Any] = []
    monkeypatch.setattr(Explorer, "send_state", lambda self, key=None: sent.append((key, dict(self.selection))))
    answered = explorer.answered
    explorer.set_state({"selection": {**right, "snapshot": "17"}})
    assert explorer.settle(60)
    assert ("selection", right) in sent
    assert explorer.selection == right
    assert "no snapshot 17" in explorer.error["text"]
    assert explorer.answered > answered
    explorer.set_state({"selection": {**right, "node": "table"}})
    assert explorer.settle(60)
    assert (explorer.error, explorer.selection["node"]) == ({}, "table")


def test_one_that_lacks_a_snapshot_stays_where_it_is(table: ix.Table, made: Any) -> None:
    other = ix.empty({"id": "long"})
    other.append(files=1, rows=1)
    a, b = made(Timeline, table), made(Timeline, other.table)
    stays = dict(b.selection)
    tied = ipywidgets.dlink((a, "selection"), (b, "selection"))
    a.select(snapshot=table.snapshots[0])
    assert (a.error, b.selection) == ({}, stays)
    assert str(table.snapshots[0].snapshot_id) in b.error["text"]
    tied.unlink()


def test_an_observer_s_fault_is_no_fault_of_ours(table: ix.Table, made: Any) -> None:
    widget = made(Explorer, table)

    def bad() -> None:
        raise ValueError("my callback broke")

    def wrong() -> None:
        widget.select(snapshot="x")

    def ours() -> None:
        widget._panel(TreePanel).forest.scene(None)

    yours = "Your function that observes this widget (later, line "
    for i, (function, message, whose) in enumerate(
        (
            (bad, "ValueError: my callback broke", yours),
            (wrong, "OptionError: snapshot 'x'", yours),
            (ours, "'limits'", ""),
        )
    ):

        def later(change: Any, function: Callable[[], None] = function) -> None:
            if change["new"]["node"] != change["old"]["node"]:  # which goes with the snapshot, once that is read
                function()

        widget.observe(later, "selection")
        widget.select(snapshot=table.snapshots[i])
        assert widget.settle(60)
        assert widget.error["text"].startswith(whose)
        assert message in widget.error["text"]
        assert ("bug in iceexplore" in widget.error["advice"]) == (not whose)
        widget.unobserve(later, "selection")


@pytest.mark.parametrize("which", [0, 1])
def test_one_of_two_is_closed(table: ix.Table, made: Any, which: int) -> None:
    explorer = made(Explorer, table)
    timeline = made(Timeline, table, selection=explorer)
    pair = [explorer, timeline]
    pair[which].close()
    left = pair[1 - which]
    left.select(snapshot=table.snapshots[0].snapshot_id)
    assert left.settle(60)
    assert left.error == {}
    left.close()
    assert [str(s.snapshot_id) for s in table.snapshots] == [s["id"] for s in left.snapshots]


def test_made_again_from_its_traits(table: ix.Table, made: Any) -> None:
    explorer = made(Explorer, table)
    explorer.select(f"root:{table.snapshots[1].snapshot_id}", snapshot=table.snapshots[1].snapshot_id)
    assert explorer.settle(60)
    again = made(Explorer, table, selection=explorer.get_state()["selection"])
    kept = explorer.get_state()
    for name in ("selection", "nodes", "roots", "expanded", "detail", "snapshots", "badges", "title"):
        assert again.get_state()[name] == kept[name], name


def test_a_page_of_ipywidgets_own(table: ix.Table, made: Any) -> None:
    """As `ipywidgets.embed` and nbconvert ask for it: what has its default is left out."""
    widgets = [
        made(kind, table) for kind in (Explorer, FileMap, Timeline, ScanLab, CommitLab, Problems, DeletionVectors)
    ]
    for widget in widgets:
        state = embed_data(views=[widget])["manager_state"]["state"]
        assert {"title", "selection"} <= state[widget.model_id]["state"].keys()


def test_no_method_hides_one_of_ipywidgets() -> None:
    base = anywidget.AnyWidget
    theirs = {name for name in dir(base) if inspect.isfunction(inspect.getattr_static(base, name))}
    for kind in (Explorer, FileMap, Timeline, ScanLab, CommitLab, Problems, DeletionVectors):
        ours = [cls for cls in kind.__mro__ if cls.__module__.startswith("iceexplore.")]
        hidden = {(cls.__name__, name) for cls in ours for name in vars(cls).keys() & theirs}
        assert {name for _, name in hidden} <= {"__init__", "__repr__", "close", "_handle_msg", "_repr_mimebundle_"}, (
            hidden
        )


def test_what_is_closed_holds_nothing(table: ix.Table) -> None:
    before = dict(ipywidgets.widgets.widget._instances)
    for _ in range(3):
        explorer = Explorer(table)
        timeline = Timeline(table, selection=explorer)
        assert explorer.settle(60)
        known = weakref.ref(timeline)
        timeline.close()
        explorer.close()
    del explorer, timeline
    assert dict(ipywidgets.widgets.widget._instances) == before
    gc.collect()
    assert known() is None


def test_what_is_closed_keeps_no_tables(table: ix.Table) -> None:
    explorer = Explorer(table)
    assert explorer.settle(60)
    grid = explorer._panel(GridPanel)
    assert grid._tables
    explorer.close()
    assert not grid._tables


def test_no_thread_stays_when_nothing_is_read(table: ix.Table, made: Any) -> None:
    before = workers()  # of widgets that other tests made and did not settle
    explorer = made(Explorer, table)
    explorer.select("table")
    assert workers() - before
    assert explorer.settle(60)
    end = time.monotonic() + 10
    while workers() - before and time.monotonic() < end:
        time.sleep(0.01)
    assert workers() <= before


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """A notebook that runs a cell: its id, and the request's."""
    import IPython

    def run(name: str, request: str) -> None:
        parent = {"header": {"msg_id": request}, "metadata": {"cellId": name}}
        monkeypatch.setattr(IPython, "get_ipython", lambda: SimpleNamespace(get_parent=lambda: parent))

    return run


def test_a_cell_that_runs_again_closes_what_it_made(table: ix.Table, cell: Any) -> None:
    before = len(ipywidgets.widgets.widget._instances)
    cell("a", "1")
    first, second = Timeline(table), Timeline(table)
    cell("b", "2")
    other = Timeline(table)
    cell("a", "3")
    third = Timeline(table)
    assert [w.comm is None for w in (first, second, other, third)] == [True, True, False, False]
    cell("a", "4")
    fourth = Timeline(table)
    assert third.comm is None
    for widget in (other, fourth):
        widget.close()
    assert len(ipywidgets.widgets.widget._instances) == before


def test_long_work_lets_others_have_their_turn_and_ends_when_cancelled() -> None:
    order: list[Any] = []
    ended = threading.Event()
    work = Work(lambda error: pytest.fail(str(error)), lambda: None)

    def long() -> Iterator[int]:
        try:
            for i in range(1_000):
                if i == 3:
                    work_asked.wait(10)
                yield i
        finally:
            ended.set()

    work_asked = threading.Event()
    work.submit("long", long, order.append, order.append)
    while 1 not in order:
        work.deliver()
    work.submit("short", lambda: "short", order.append)
    work_asked.set()
    while "short" not in order:
        work.deliver()
    assert order.index("short") < 8
    work.cancel()
    assert work.settle(10)
    assert ended.wait(10)
    count = len(order)
    work.deliver()
    assert len(order) == count < 1_000


def test_work_that_waits_for_others_goes_on_once_they_are_done() -> None:
    order: list[Any] = []
    work = Work(lambda error: pytest.fail(str(error)), lambda: order.append("idle"))

    def steps(name: str, count: int) -> Iterator[str]:
        yield from (f"{name} {i}" for i in range(count))

    work.submit(
        "figures", lambda: steps("figures", 3), lambda _: order.append("figures"), order.append, after_others=True
    )
    while "figures 0" not in order:
        work.deliver()
    work.submit("check", lambda: steps("check", 4), lambda _: order.append("check"), order.append)
    assert work.settle(10)
    first = order.index("check 0")
    assert order[first : first + 5] == ["check 0", "check 1", "check 2", "check 3", "check"], "not in turn with figures"
    assert order[-2:] == ["figures", "idle"]
    assert order.count("idle") == 1
    work.submit("figures", lambda: steps("more", 2), order.append, after_others=True)
    work.submit("figures", lambda: steps("newest", 1), lambda _: order.append("newest"), after_others=True)
    assert work.settle(10)
    assert order[-2:] == ["newest", "idle"]
    work.submit("check", lambda: steps("check", 1), order.append)
    work.submit("figures", lambda: steps("never", 1), lambda _: order.append("never"), after_others=True)
    work.cancel()
    assert work.quiet
    assert work.settle(10)
    assert "never" not in order


def is_quiet(work: Work) -> bool:
    """Return the property anew: a type checker takes it for constant."""
    return work.quiet


def test_in_a_kernel_work_that_waits_for_others_begins_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    monkeypatch.setattr("iceexplore.widgets.core._worker._PAUSE", 0.2)
    order: list[Any] = []

    async def until(text: str) -> None:
        for _ in range(500):
            if text in order:
                return
            await asyncio.sleep(0.01)
        raise AssertionError(order)

    async def notebook() -> None:
        work = Work(lambda error: pytest.fail(str(error)), lambda: None)
        work.submit("figures", lambda: "figures", order.append)
        await until("figures")
        work.submit("gains", lambda: iter(("gain", "gain")), order.append, after_others=True)
        work.submit("gains", lambda: "gains", order.append, after_others=True)
        await asyncio.sleep(0.05)
        assert order == ["figures"]
        assert not is_quiet(work)
        work.submit("check", lambda: "check", order.append)
        await until("gains")
        assert order == ["figures", "check", "gains"]
        for _ in range(500):
            if is_quiet(work):
                break
            await asyncio.sleep(0.01)
        assert is_quiet(work)
        work.submit("check", lambda: "again", order.append)
        await until("again")
        work.submit("gains", lambda: "at once", order.append, after_others=True)
        assert work.settle(10), "a cell that waits does not wait for the pause"
        assert order[-1] == "at once"
        work.submit("gains", lambda: "never", order.append, after_others=True)
        work.cancel()
        assert is_quiet(work)
        await asyncio.sleep(0.3)
        assert order[-1] == "at once"
        work.close()

    asyncio.run(notebook())


def test_long_work_has_a_result_and_says_how_far_it_is() -> None:
    message: list[Any] = []
    failures: list[Exception] = []
    work = Work(failures.append, lambda: message.append("idle"))

    def steps() -> Generator[str, None, int]:
        yield "one"
        yield "two"
        return 7

    work.submit("a", steps, message.append, message.append)
    assert work.settle(10)
    assert message == ["one", "two", 7, "idle"]

    def broken() -> Iterator[str]:
        yield "one"
        raise ZeroDivisionError

    work.submit("a", broken, message.append, message.append)
    assert work.settle(10)
    assert [type(e) for e in failures] == [ZeroDivisionError]
    assert message[4:] == ["one", "idle"]
    work.close()
    work.submit("a", steps, message.append, message.append)
    assert work.settle(1)
    assert len(message) == 6


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (Timeline, {"selection": 5}, "a selection has the keys snapshot, against, node; got 5"),
        (Timeline, {"selection": {"x": 1}}, "got {'x': 1}"),
        (Timeline, {"selection": {"node": 5}}, "a selection's node must be text"),
        (Timeline, {"measure": "weight"}, "'rows', 'files', 'bytes'"),
        (Timeline, {"title": "mine"}, "Timeline takes no argument title"),
        (Timeline, {"nonsense": 1}, "Timeline has no argument 'nonsense'"),
        (Timeline, {"selction": {}}, "Timeline has no argument 'selction'; nearest: selection"),
        (ScanLab, {"scan_filter": 5}, "expected a unicode string, not the int 5"),
        (ScanLab, {"scan_filtr": "id = 1"}, "ScanLab has no argument 'scan_filtr'; nearest: scan_filter"),
        (DeletionVectors, {"vector_of": "x"}, "expected a dict, not the str 'x'"),
        (Explorer, {"tabs": "scan"}, "Explorer has no argument 'tabs'; nearest: tab"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_in_words(
    table: ix.Table, kind: Any, given: Any, message: str
) -> None:
    with pytest.raises(ix.OptionError, match=re.escape(message)):
        kind(table, **given)


def test_what_is_no_node_is_not_selected(table: ix.Table, made: Any) -> None:
    timeline = made(Timeline, table)
    before = timeline.selection
    with pytest.raises(ix.OptionError, match="a selection's node must be text"):
        timeline.select(5)
    assert timeline.selection == before


@pytest.mark.filterwarnings("ignore:Passing unrecognized arguments")
def test_arguments_of_ipywidgets_are_its_own(table: ix.Table, made: Any) -> None:
    for kind in (Timeline, Explorer):
        widget = made(kind, table, layout={"width": "50%"}, tooltip="a table", tabbable=True, style={})
        assert (widget.layout.width, widget.tooltip, widget.tabbable) == ("50%", "a table", True)
