"""The widget as its panels see it: table, selection, work in a thread, errors, and the panels themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import ReferenceType, WeakKeyDictionary, WeakSet, ref

from traitlets import Bunch

from iceexplore.errors import OptionError
from iceexplore.graph import TableState, TreeNode, snapshot_of, travel
from iceexplore.metadata import Snapshot
from iceexplore.widgets.core._error_messages import words_of
from iceexplore.widgets.core._escape_text import signs_of_lines
from iceexplore.widgets.core._ids import id_of
from iceexplore.widgets.core._panel import Panel, TableLike
from iceexplore.widgets.core._preload import manifests_ahead, preload
from iceexplore.widgets.core._selection import valid_selection
from iceexplore.widgets.core._worker import Work

if TYPE_CHECKING:
    import anywidget

__all__ = ["WidgetHost"]

P = TypeVar("P", bound=Panel)

#: The hosts of each table state, because what one widget reads may change what others show.
_hosts: WeakKeyDictionary[TableState, WeakSet[WidgetHost]] = WeakKeyDictionary()


class WidgetHost:
    """A `PanelHost` for a widget, which holds its panels and its worker.

    Parameters
    ----------
    widget
        The widget, a `TableWidget`; it need not be initialized yet.
    table, state
        The table or state that was passed to the widget, and the table's state.
    """

    def __init__(self, widget: anywidget.AnyWidget, table: TableLike, state: TableState) -> None:
        self._widget, self._table, self._state = widget, table, state
        self.work = Work(self.fail, self.finish)
        self.panels: list[Panel] = []

    def make(self, kinds: Iterable[type[Panel]]) -> None:
        """Create the panels; each can use those before it."""
        for kind in kinds:
            self.panels.append(kind(self))

    def begin(self) -> None:
        """Start the panels, and register to be notified when other widgets of the table have read something."""
        _hosts.setdefault(self._state, WeakSet()).add(self)
        for panel in self.panels:
            panel.begin()
        preload((name for panel in self.panels for name in panel.later), partial(_read_ahead, ref(self)))

    def close(self) -> None:
        """Stop reading, and release what the panels hold."""
        self.work.close()
        _hosts.get(self._state, WeakSet()).discard(self)
        for panel in self.panels:
            panel.close()

    def first(self, selection: Mapping[str, str]) -> dict[str, Any]:
        """Return the initial values of the panels' traits."""
        return {name: value for panel in self.panels for name, value in panel.first(selection).items()}

    def settle(self, timeout: float | None) -> bool:
        """Wait until all requests are answered and shown; return False if that takes more than ``timeout`` seconds."""
        return all(panel.settle(timeout) for panel in self.panels) and self.work.settle(timeout)

    # What panels use: see `PanelHost` ---------------------------------------------------------------------------------

    @property
    def widget(self) -> anywidget.AnyWidget:
        """The widget, whose attributes are the panels' traits."""
        return self._widget

    @property
    def table(self) -> TableLike:
        """The table or table's state that was passed to the widget."""
        return self._table

    @property
    def state(self) -> TableState:
        """The table's state."""
        return self._state

    @property
    def selection(self) -> dict[str, str]:
        """The widget's selection."""
        return dict(self._widget.selection)

    @selection.setter
    def selection(self, selection: dict[str, str]) -> None:
        self._widget.selection = selection

    @property
    def snapshot(self) -> Snapshot | None:
        """The selected snapshot; None if there is none."""
        text = self._widget.selection["snapshot"]
        return self.snapshot_of(text) if text else None

    @property
    def tab(self) -> str | None:
        """The key of the tab shown; None in a widget without tabs."""
        tab: str | None = getattr(self._widget, "tab", None)
        return tab

    def select(
        self,
        node: str | TreeNode | None = None,
        *,
        snapshot: Snapshot | int | str | None = None,
        against: Snapshot | int | str | None = None,
    ) -> None:
        """Select a node or snapshots."""
        chosen = self.selection
        if node is not None:
            chosen["node"] = node.id if isinstance(node, TreeNode) else node
        for key, value in (("snapshot", snapshot), ("against", against)):
            if value is not None:
                chosen[key] = str(getattr(value, "snapshot_id", value))
        if node is None and against is not None and chosen["against"]:
            chosen["node"] = f"snapshot:{chosen['snapshot']}"  # the first table of its details is the comparison
        self.selection = self.checked(valid_selection(chosen))

    def snapshot_of(self, text: str) -> Snapshot:
        """Return a snapshot by its id in decimal; raise OptionError or SnapshotNotFoundError if there is none."""
        number = id_of(text)
        if number is None:
            raise OptionError(
                f"snapshot {text[:40]!r} is not a snapshot id (an integer); t.snapshots and t.refs list those of "
                f"{self._state.name}"
            )
        return snapshot_of(self._state.metadata, number, self._state.name)

    def state_at(self, snapshot: str) -> TableState:
        """Return the table's state at the snapshot with this decimal id; the widget's own state if it is empty."""
        own = self._state.snapshot
        if not snapshot or (own is not None and str(own.snapshot_id) == snapshot):
            return self._state
        return travel(self._state, snapshot=self.snapshot_of(snapshot).snapshot_id)

    def panel(self, kind: type[P]) -> P:
        """Return the widget's panel of a class.

        Raises
        ------
        LookupError
            No panel of this class precedes the calling one in the widget's ``panels``.
        """
        for panel in self.panels:
            if isinstance(panel, kind):
                return panel
        name = type(self._widget).__name__
        raise LookupError(f"{name} has no {kind.__name__}; list it in panels, before the panel that uses it")

    def observe(self, handler: Callable[[Any], None], *names: str) -> None:
        """Call a handler with each change of the traits of these names."""
        self._widget.observe(handler, list(names))

    def observe_requests(self, handler: Callable[[Mapping[str, Any]], None], name: str) -> None:
        """Call a handler once with each request that the browser makes through a trait.

        While the kernel is busy, notebooks merge changes of a trait: the last one, with number ``n``, has the requests
        before it in ``earlier``.
        """
        last = 0

        def on_asked(change: Bunch) -> None:
            nonlocal last
            asked = dict(change["new"])
            before = asked.pop("earlier", [])
            dicts = [one for one in before if isinstance(one, dict)] if isinstance(before, list) else []
            missed = [one for one in dicts if isinstance(one.get("n"), int) and one["n"] > last]
            last = asked["n"] if isinstance(asked.get("n"), int) else last
            for one in [*missed, asked]:
                handler(one)

        self.observe(on_asked, name)

    def on_message(self, handler: Callable[[Any], None]) -> None:
        """Call a handler with each message from the browser."""
        self._widget.on_msg(lambda _widget, content, _buffers: handler(content))

    def send(self, content: Mapping[str, object]) -> None:
        """Send a message to the browser."""
        self._widget.send(content)

    def hold_sync(self) -> AbstractContextManager[None]:
        """Send the traits set within the context as one message."""
        held: AbstractContextManager[None] = self._widget.hold_sync()
        return held

    def run(self, slot: str, what: str, read: Callable[[], Any], show: Callable[[Any], None]) -> None:
        """Call ``read`` in the worker thread, then ``show`` with its result in the widget's thread.

        If the slot gets a newer request meanwhile, ``show`` is not called. For long work, ``read`` is a generator
        function that yields its progress as text for ``busy``; it can be cancelled at each step.
        """

        def count(done: int, total: int, things: str) -> None:
            unit = "" if what.endswith(things) else f" {things}"
            self._say(f"{what}: {done:,} of {total:,}{unit} …")

        self._say(f"{what} …")
        self.work.submit(slot, read, show, self._say, count)

    def run_silently(
        self, slot: str, read: Callable[[], Any], show: Callable[[Any], None], *, after_others: bool = False
    ) -> None:
        """Do the same as `run`, without ``busy``; with ``after_others``, let other work come before each step."""
        self.work.submit(slot, read, show, after_others=after_others)

    def _say(self, text: str) -> None:
        self._widget.busy = text

    def call(self, act: Callable[[], None]) -> None:
        """Call a function in the widget's thread; at once if the caller is in that thread."""
        self.work.call(act)

    def shown(self, act: Callable[[], None]) -> None:
        """Do the same as `call`, remove the last request's error, and show exceptions in the widget."""

        def called() -> None:
            self._widget.error = {}
            self._attempt(act)

        self.call(called)

    def _attempt(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:
            self.fail(error)

    def answer(self) -> None:
        """Report to the browser that a request has been answered."""
        self._widget.answered += 1

    def finish(self) -> None:
        """Report that no work is left, to the browser and to all panels of the table's widgets."""
        self._widget.busy = ""
        self.answer()
        for host in list(_hosts.get(self._state, ())):
            for panel in host.panels:
                panel.on_read()

    def fail(self, error: Exception) -> None:
        """Show an error in the widget."""
        for panel in self.panels:
            panel.on_failed()
        text, advice = words_of(error)
        self._widget.error = {"text": signs_of_lines(text[:2000]), "advice": advice}
        self.answer()

    # What the widget uses ---------------------------------------------------------------------------------------------

    def checked(self, selection: dict[str, str]) -> dict[str, str]:
        """Return a selection with its snapshot ids in canonical form; values that are not text stay unchanged.

        Raises
        ------
        OptionError, SnapshotNotFoundError
            A snapshot id is invalid, or there is no such snapshot.
        """
        out = dict(selection)
        for key in ("snapshot", "against"):
            if isinstance(text := out.get(key), str) and text:
                out[key] = str(self.snapshot_of(text).snapshot_id)
        return out

    def selected(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """Show a new selection."""
        for panel in self.panels:
            panel.on_selected(old, new)
        if self.work.quiet:
            self.answer()  # nothing has to be read for the new selection

    def cancelled(self) -> None:
        """Cancel all reads. A panel's exception is shown, and the other panels react nevertheless."""
        selection = self.selection
        self.work.cancel()
        for panel in self.panels:
            self._attempt(partial(panel.on_cancelled, selection))


def _read_ahead(host: ReferenceType[WidgetHost]) -> Iterator[None]:
    one = host()
    if one is not None:
        yield from manifests_ahead(one.state, one.snapshot)
