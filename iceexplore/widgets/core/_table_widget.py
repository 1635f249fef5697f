"""What every widget is: the table, the selection, work in a thread, errors that are shown, and HTML without a kernel.

A widget is put together of parts (`TreePart`, `TimelinePart`, ...), each a subclass of `Face` with traits of its own.
The explorer has them all, a widget of its own has one.
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

__all__ = ["Face", "shown"]

Part = TypeVar("Part", bound="Face")

#: What ipywidgets has for other widgets, and code that styles many at once gives to all.
_IGNORED = ("style",)
#: The widgets of a table: what one reads, others may show.
_faces: WeakKeyDictionary[TableState, WeakSet[Face]] = WeakKeyDictionary()


def shown(handler: Callable[[Part, Any], None]) -> Callable[[Part, Any], None]:
    """A trait's callback, on the thread that owns the widget: a callback of the user's own widgets may have set it on
    another. An exception in one is swallowed by the kernel: show it in the widget instead."""

    @wraps(handler)
    def wrapped(self: Part, change: Any) -> None:
        self._work.call(lambda: called(self, change))

    def called(self: Part, change: Any) -> None:
        self.error = {}  # of what was asked before
        try:
            handler(self, change)
        except Exception as error:
            self._fail(error)

    return wrapped


class Face(anywidget.AnyWidget):
    """A widget of a table. All its state is in plain traits, so that a view can be made from them without Python.

    Parameters
    ----------
    table
        A Table, or a table's state.
    selection
        Another widget, whose selection this one shares; or what to select at first.

    Raises
    ------
    OptionError, SnapshotNotFoundError
        That is no table, the table has no such snapshot, or an argument is not known or has no such value.

    Attributes
    ----------
    selection
        See `iceexplore.widgets.Selection`. ``ipywidgets.link((a, "selection"), (b, "selection"))`` links two widgets.
    busy
        What is being done, empty when nothing is.
    error
        ``text`` and ``advice`` of what went wrong last; empty when the last answer was right.
    answered
        How many requests of the browser have been answered: it notices a kernel that does not.
    cancelled
        The browser counts this up to have everything dropped that is being read.
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

    def __init__(self, table: Any, *, selection: Face | Mapping[str, str] | None = None, **traits: Any) -> None:
        state = _state_of(table)
        _check_names(type(self), traits)
        self._state = state
        self._table = table
        self._work = Work(self._fail, self._idle)
        self._link: traitlets.link | None = None
        self._own_layout = "layout" not in traits
        start = first_selection(state)
        if selection is not None:
            start |= selection.selection if isinstance(selection, Face) else _right(selection)
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
            raise OptionError(f"{name} of {type(self).__name__} is not to be given: it is made of the table")
        try:
            super().__init__(**first, **traits)
        except traitlets.TraitError as error:
            raise OptionError(str(error)) from error
        if isinstance(selection, Face):
            self._link = traitlets.link((selection, "selection"), (self, "selection"))
        self.observe(self._on_selection, "selection")
        self.observe(self._on_cancelled, "cancelled")
        self.on_msg(lambda *_: self._answer())  # the browser asks whether somebody is there
        note_widget(self)
        _faces.setdefault(state, WeakSet()).add(self)
        self._begin()

    # What a part adds -------------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Set what is no trait. A part calls that of the next first."""

    def _first(self, selection: Mapping[str, str]) -> dict[str, Any]:
        """The traits to begin with: ``super()._first(selection) | {...}``. Reads no more than one metadata file."""
        return {}

    def _begin(self) -> None:
        """Observe traits, and ask for what is to be read at first. A part calls that of the next first."""

    def _on_selected(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """The selection is another, of snapshots that exist. A part calls that of the next first."""

    def _has_read(self) -> None:
        """This widget, or another of the same table, has read something."""

    def _no_kernel_html(self) -> str:
        """What is shown where no kernel runs: inline styles only, no ``<svg>``, ``<style>`` or script."""
        return card_html(table_card(self._state))

    # For the notebook -------------------------------------------------------------------------------------------------

    def select(self, node: str | TreeNode | None = None, *, snapshot: Any = None, against: Any = None) -> None:
        """Select a node, a snapshot, or one to compare with; what is not given stays.

        Parameters
        ----------
        node
            A node, or its id.
        snapshot, against
            A snapshot or its id; ``""`` for ``against``: none.

        Raises
        ------
        OptionError
            That is no node, or no snapshot's id.
        SnapshotNotFoundError
            The table has no such snapshot; the nearest are listed.
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
        """The snapshot that is selected."""
        text = self.selection["snapshot"]
        return self._snapshot_of(text) if text else None

    def settle(self, timeout: float | None = None) -> bool:
        """Wait until everything asked for is shown; False if that takes longer than ``timeout`` seconds."""
        return self._work.settle(timeout)

    def close(self) -> None:
        """Take the widget away, and stop reading."""
        if hasattr(self, "_work"):  # ipywidgets closes what was never made, too
            self._work.close()
            _faces.get(self._state, WeakSet()).discard(self)
            if self._link is not None:
                self._link.unlink()
                self._link = None
            self.unobserve_all()
            if self._own_layout and self.comm is not None:
                self.layout.close()  # a model of its own, which ipywidgets would keep
        super().close()

    # For the parts ----------------------------------------------------------------------------------------------------

    def _snapshot_of(self, text: str) -> Snapshot:
        """A snapshot by its id in digits; OptionError or SnapshotNotFoundError if there is none."""
        number = id_of(text)
        if number is None:
            raise OptionError(
                f"snapshot {text[:40]!r} is no snapshot id (a whole number); t.snapshots and t.refs list those of "
                f"{self._state.name}"
            )
        return snapshot_of(self._state.metadata, number, self._state.name)

    def _checked(self, selection: dict[str, str]) -> dict[str, str]:
        """A selection of snapshots that the table has, each id as the table spells it; what is no text stays."""
        out = dict(selection)
        for key in ("snapshot", "against"):
            if isinstance(text := out.get(key), str) and text:
                out[key] = str(self._snapshot_of(text).snapshot_id)
        return out

    def _on_each(self, name: str, heard: Callable[[Mapping[str, Any]], None]) -> None:
        """Call ``heard`` with each thing that the browser asks by a trait, none twice.

        Notebooks join changes of a trait while the kernel is busy: the last, numbered ``n``, has those before it in
        ``earlier``.
        """
        last = 0

        def on_asked(change: Any) -> None:
            nonlocal last
            asked = dict(change["new"])
            told = asked.pop("earlier", [])
            dicts = [one for one in told if isinstance(one, dict)] if isinstance(told, list) else []
            missed = [one for one in dicts if isinstance(one.get("n"), int) and one["n"] > last]
            last = asked["n"] if isinstance(asked.get("n"), int) else last
            for one in [*missed, asked]:
                heard(one)

        self.observe(on_asked, name)

    def _do(self, slot: str, what: str, read: Callable[[], Any], show: Callable[[Any], None]) -> None:
        """Call ``read`` in the worker's thread and ``show`` with its result here, unless the slot was asked again.

        What takes long is a generator: it yields how far it is, for ``busy``, and can be cancelled there.
        """
        self.busy = f"{what} …"
        self._work.submit(slot, read, show, self._say)

    def _say(self, text: str) -> None:
        self.busy = text

    def _idle(self) -> None:
        self.busy = ""
        self._answer()
        for face in list(_faces.get(self._state, ())):
            face._has_read()

    def _answer(self) -> None:
        self.answered += 1

    @traitlets.validate("selection")
    def _right_selection(self, proposal: Any) -> dict[str, str]:
        """What the browser or a link selects; that of an unknown snapshot never comes to be, so no link breaks."""
        try:
            self._accepted = self._checked(proposal["value"])
        except IceexploreError as error:
            self._work.call(partial(self._fail, error))
        return self._accepted

    def _on_selection(self, change: Any) -> None:
        if change["new"] != change["old"]:  # the browser's may be refused: then its error stays
            self._on_other_selection(change)

    @shown
    def _on_other_selection(self, change: Any) -> None:
        self._on_selected(change["old"], change["new"])
        if self._work.quiet:
            self._answer()  # nothing is to be read for it

    @shown
    def _on_cancelled(self, change: Any) -> None:
        self._work.cancel()

    def _fail(self, error: Exception) -> None:
        text, advice = words_of(error)
        self.error = {"text": signs_of_lines(text[:2000]), "advice": advice}
        self.answered += 1

    def _handle_msg(self, msg: dict[str, Any]) -> None:
        # JupyterLab sends what widgets say to a subshell of the kernel, a thread of its own: two threads that set the
        # selection of linked widgets would leave them apart.
        self._work.call(lambda: super(Face, self)._handle_msg(msg))

    # Without a kernel -------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        # In a terminal the card alone would not say what it stands in for.
        first = f"{type(self).__name__}: a widget, which JupyterLab and Notebook 7 show; here is its table's card."
        return f"{first}\n\n{card_text(table_card(self._state))}"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """The widget, and its content as it is without a kernel."""
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
    """What is to be selected, as it was given; OptionError if nothing can be selected so."""
    try:
        Selection().validate(None, selection)
    except traitlets.TraitError as error:
        raise OptionError(str(error)) from None
    return dict(selection)


def _check_names(widget: type[Face], given: Iterable[str]) -> None:
    """Refuse arguments that are no traits: ipywidgets would take them, and do nothing."""
    traits = (name for name in widget.class_trait_names() if not name.startswith("_"))
    known = list(dict.fromkeys(["selection", *traits, *_IGNORED]))
    for name in given:
        if name not in known and not name.startswith("_"):
            from iceexplore.errors import nearest

            raise OptionError(f"{widget.__name__} has no argument {name!r}; {nearest(name, known)}")
