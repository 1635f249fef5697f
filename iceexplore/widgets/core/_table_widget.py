"""The base class of all widgets: table, selection, work in a thread, display of errors, and HTML without a kernel.

A widget combines parts (`TreePart`, `TimelinePart`, ...), each a subclass of `TableWidget` with its own traits. The
explorer has all of them, a separate widget one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial, wraps
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakSet

import anywidget
import traitlets

from iceexplore.errors import IceexploreError, OptionError
from iceexplore.graph import TableState, TreeNode, card_html, card_text, snapshot_of, table_card
from iceexplore.metadata import Snapshot
from iceexplore.widgets.core._bundle import style_sheet
from iceexplore.widgets.core._cell_reruns import note_widget
from iceexplore.widgets.core._error_messages import words_of
from iceexplore.widgets.core._escape_text import signs, signs_of_lines
from iceexplore.widgets.core._ids import id_of
from iceexplore.widgets.core._selection import Selection, first_selection
from iceexplore.widgets.core._styles import styles
from iceexplore.widgets.core._worker import Work

__all__ = ["TableWidget", "shown"]

Part = TypeVar("Part", bound="TableWidget")

#: Arguments that other widgets of ipywidgets have, accepted for code that styles many widgets at once.
_IGNORED = ("style",)
#: The widgets of a table state, as what one of them reads may change what others show.
_shown_widgets: WeakKeyDictionary[TableState, WeakSet[TableWidget]] = WeakKeyDictionary()


def shown(handler: Callable[[Part, Any], None]) -> Callable[[Part, Any], None]:
    """Decorate a trait's callback: run it on the widget's thread, and show its exceptions in the widget.

    A callback of the user's own widgets may set the trait on another thread, and the kernel would swallow exceptions.
    """

    @wraps(handler)
    def wrapped(self: Part, change: Any) -> None:
        self._work.call(lambda: called(self, change))

    def called(self: Part, change: Any) -> None:
        self.error = {}  # that of the request before
        try:
            handler(self, change)
        except Exception as error:
            self._fail(error)

    return wrapped


class TableWidget(anywidget.AnyWidget):
    """A widget of a table. All state is in plain traits, so that a view can be rendered from them without Python.

    Parameters
    ----------
    table
        A Table, or a table's state.
    selection
        Another widget whose selection this one shares, or the initial selection.

    Raises
    ------
    OptionError, SnapshotNotFoundError
        ``table`` is not a table, the table has no such snapshot, or an argument is unknown or invalid.

    Attributes
    ----------
    selection
        See `iceexplore.widgets.Selection`. ``ipywidgets.link((a, "selection"), (b, "selection"))`` links two widgets.
    busy
        A description of the running work; empty if there is none.
    error
        ``text`` and ``advice`` of the last error; empty if the last request succeeded.
    answered
        The number of browser requests answered, by which the browser notices an unresponsive kernel.
    cancelled
        The browser increments this to cancel all running reads.
    """

    _css = style_sheet()

    title = traitlets.Unicode().tag(sync=True)
    badges = traitlets.List(traitlets.Unicode()).tag(sync=True)
    styles = traitlets.Dict().tag(sync=True)
    selection = Selection().tag(sync=True)
    busy = traitlets.Unicode().tag(sync=True)
    error = traitlets.Dict().tag(sync=True)
    answered = traitlets.Int().tag(sync=True)
    cancelled = traitlets.Int().tag(sync=True)

    def __init__(self, table: Any, *, selection: TableWidget | Mapping[str, str] | None = None, **traits: Any) -> None:
        state = _state_of(table)
        _check_names(type(self), traits)
        self._state = state
        self._table = table
        self._work = Work(self._fail, self._idle)
        self._link: traitlets.link | None = None
        self._own_layout = "layout" not in traits
        start = first_selection(state)
        if selection is not None:
            start |= selection.selection if isinstance(selection, TableWidget) else _right(selection)
        self._accepted = start = self._checked(start)
        self._prepare()
        first = {
            "title": signs(state.name),
            "badges": [f"Iceberg v{state.metadata.format_version}", *([signs(state.travel)] if state.travel else [])],
            "styles": styles(),
            "selection": start,
            **self._first(start),
        }
        for name in first.keys() & traits.keys():
            raise OptionError(f"{type(self).__name__} takes no argument {name}: it is derived from the table")
        try:
            super().__init__(**first, **traits)
        except traitlets.TraitError as error:
            raise OptionError(str(error)) from error
        if isinstance(selection, TableWidget):
            self._link = traitlets.link((selection, "selection"), (self, "selection"))
        self.observe(self._on_selection, "selection")
        self.observe(self._on_cancelled, "cancelled")
        self.on_msg(lambda *_: self._answer())  # the browser checks whether the kernel responds
        note_widget(self)
        _shown_widgets.setdefault(state, WeakSet()).add(self)
        self._begin()

    # Hooks for parts --------------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Set attributes that are not traits. Overrides call ``super()`` first."""

    def _first(self, selection: Mapping[str, str]) -> dict[str, Any]:
        """Return the initial traits: ``super()._first(selection) | {...}``. Reads at most one metadata file."""
        return {}

    def _begin(self) -> None:
        """Observe traits and request the first reads. Overrides call ``super()`` first."""

    def _on_selected(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """React to a new selection, whose snapshots exist. Overrides call ``super()`` first."""

    def _has_read(self) -> None:
        """React to a completed read of this or another widget of the same table."""

    def _no_kernel_html(self) -> str:
        """Return the HTML shown without a kernel: inline styles only, no ``<svg>``, ``<style>`` or script."""
        return card_html(table_card(self._state))

    # For the notebook -------------------------------------------------------------------------------------------------

    def select(self, node: str | TreeNode | None = None, *, snapshot: Any = None, against: Any = None) -> None:
        """Select a node, a snapshot, or a snapshot to compare with; arguments not given stay unchanged.

        Parameters
        ----------
        node
            A node, or its id.
        snapshot, against
            A snapshot or its id; ``against=""`` ends the comparison.

        Raises
        ------
        OptionError
            The value is not a node id, or not a snapshot id.
        SnapshotNotFoundError
            The table has no such snapshot; the message lists the nearest ones.
        """
        chosen = dict(self.selection)
        if node is not None:
            chosen["node"] = node.id if isinstance(node, TreeNode) else node
        for key, value in (("snapshot", snapshot), ("against", against)):
            if value is not None:
                chosen[key] = str(getattr(value, "snapshot_id", value))
        self.selection = self._checked(_right(chosen))

    @property
    def snapshot(self) -> Snapshot | None:
        """The selected snapshot; None if there is none."""
        text = self.selection["snapshot"]
        return self._snapshot_of(text) if text else None

    def settle(self, timeout: float | None = None) -> bool:
        """Wait until all requests are answered and shown; return False if that takes more than ``timeout`` seconds."""
        return self._work.settle(timeout)

    def close(self) -> None:
        """Remove the widget and stop reading."""
        if hasattr(self, "_work"):  # ipywidgets also closes widgets whose construction failed
            self._work.close()
            _shown_widgets.get(self._state, WeakSet()).discard(self)
            if self._link is not None:
                self._link.unlink()
                self._link = None
            self.unobserve_all()
            if self._own_layout and self.comm is not None:
                self.layout.close()  # a separate model that ipywidgets would keep
        super().close()

    # For the parts ----------------------------------------------------------------------------------------------------

    def _snapshot_of(self, text: str) -> Snapshot:
        """Return a snapshot by its id in decimal; raise OptionError or SnapshotNotFoundError if there is none."""
        number = id_of(text)
        if number is None:
            raise OptionError(
                f"snapshot {text[:40]!r} is not a snapshot id (an integer); t.snapshots and t.refs list those of "
                f"{self._state.name}"
            )
        return snapshot_of(self._state.metadata, number, self._state.name)

    def _checked(self, selection: dict[str, str]) -> dict[str, str]:
        """Return a selection with existing snapshots and canonical ids; values that are not text stay unchanged."""
        out = dict(selection)
        for key in ("snapshot", "against"):
            if isinstance(text := out.get(key), str) and text:
                out[key] = str(self._snapshot_of(text).snapshot_id)
        return out

    def _on_each(self, name: str, heard: Callable[[Mapping[str, Any]], None]) -> None:
        """Call ``heard`` once with each request that the browser makes through a trait.

        While the kernel is busy, notebooks merge changes of a trait: the last one, with number ``n``, has the requests
        before it in ``earlier``.
        """
        last = 0

        def on_asked(change: Any) -> None:
            nonlocal last
            asked = dict(change["new"])
            before = asked.pop("earlier", [])
            dicts = [one for one in before if isinstance(one, dict)] if isinstance(before, list) else []
            missed = [one for one in dicts if isinstance(one.get("n"), int) and one["n"] > last]
            last = asked["n"] if isinstance(asked.get("n"), int) else last
            for one in [*missed, asked]:
                heard(one)

        self.observe(on_asked, name)

    def _do(self, slot: str, what: str, read: Callable[[], Any], show: Callable[[Any], None]) -> None:
        """Call ``read`` in the worker thread, then ``show`` with its result in this one, unless the slot is superseded.

        Long work is a generator that yields its progress as text for ``busy``; it can be cancelled at each step.
        """
        self.busy = f"{what} …"
        self._work.submit(slot, read, show, self._say)

    def _say(self, text: str) -> None:
        self.busy = text

    def _idle(self) -> None:
        self.busy = ""
        self._answer()
        for face in list(_shown_widgets.get(self._state, ())):
            face._has_read()

    def _answer(self) -> None:
        self.answered += 1

    @traitlets.validate("selection")
    def _right_selection(self, proposal: Any) -> dict[str, str]:
        """Validate a selection from the browser or a link; reject unknown snapshots, so that no link breaks."""
        try:
            self._accepted = self._checked(proposal["value"])
        except IceexploreError as error:
            self._work.call(partial(self._fail, error))
        return self._accepted

    def _on_selection(self, change: Any) -> None:
        if change["new"] != change["old"]:  # equal if the browser's selection was rejected: its error stays
            self._on_other_selection(change)

    @shown
    def _on_other_selection(self, change: Any) -> None:
        self._on_selected(change["old"], change["new"])
        if self._work.quiet:
            self._answer()  # nothing has to be read for it

    @shown
    def _on_cancelled(self, change: Any) -> None:
        self._work.cancel()

    def _fail(self, error: Exception) -> None:
        text, advice = words_of(error)
        self.error = {"text": signs_of_lines(text[:2000]), "advice": advice}
        self.answered += 1

    def _handle_msg(self, msg: dict[str, Any]) -> None:
        # JupyterLab delivers widget messages to a subshell of the kernel, a separate thread. Two threads that set the
        # selection of linked widgets could leave them with different ones.
        self._work.call(lambda: super(TableWidget, self)._handle_msg(msg))

    # Without a kernel -------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        # In a terminal, the card alone would not explain that it replaces a widget.
        first = f"{type(self).__name__} is a widget for JupyterLab and Notebook 7. Its table:"
        return f"{first}\n\n{card_text(table_card(self._state))}"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Return the widget's bundle, with text and HTML for use without a kernel."""
        made: Any = super()._repr_mimebundle_(**kwargs)
        if made is None:
            return None
        data, metadata = made if isinstance(made, tuple) else (made, {})
        return {**data, "text/plain": repr(self), "text/html": self._no_kernel_html()}, metadata


def _state_of(table: Any) -> TableState:
    state = table if isinstance(table, TableState) else getattr(table, "state", None)
    if not isinstance(state, TableState):
        raise OptionError(f"a widget takes a Table (ix.open(...)), not {type(table).__name__}")
    return state


def _right(selection: Any) -> dict[str, str]:
    """Return a selection unchanged if it is valid, else raise OptionError."""
    try:
        Selection().validate(None, selection)
    except traitlets.TraitError as error:
        raise OptionError(str(error)) from None
    return dict(selection)


def _check_names(widget: type[TableWidget], given: Iterable[str]) -> None:
    """Raise an error for arguments that are not traits, which ipywidgets would silently ignore."""
    traits = (name for name in widget.class_trait_names() if not name.startswith("_"))
    known = list(dict.fromkeys(["selection", *traits, *_IGNORED]))
    for name in given:
        if name not in known and not name.startswith("_"):
            from iceexplore.errors import nearest

            raise OptionError(f"{widget.__name__} has no argument {name!r}; {nearest(name, known)}")
