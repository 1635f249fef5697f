"""The base class of all widgets of a table: its panels, the selection, and HTML without a kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import traitlets
from traitlets import Bunch

from iceexplore.errors import IceexploreError, OptionError
from iceexplore.graph import TableState, TreeNode, card_html, card_text, format_ms, table_card
from iceexplore.metadata import Snapshot
from iceexplore.storage import is_catalog, not_a_table
from iceexplore.widgets.core._cell_reruns import note_widget
from iceexplore.widgets.core._escape_text import signs
from iceexplore.widgets.core._host import WidgetHost
from iceexplore.widgets.core._panel import Panel, TableLike
from iceexplore.widgets.core._room import RoomTraits
from iceexplore.widgets.core._scripted import ScriptedWidget
from iceexplore.widgets.core._selection import Selection, first_selection, valid_selection
from iceexplore.widgets.core._styles import styles

__all__ = ["TableWidget"]

P = TypeVar("P", bound=Panel)

#: Arguments that other widgets of ipywidgets have, accepted for code that styles many widgets at once.
_IGNORED = ("style",)


class TableWidget(RoomTraits, ScriptedWidget):
    """A widget of a table, made of panels.

    All state is in plain traits, so that a view can be rendered from them without Python. A subclass lists its panels;
    their traits become its own.

    Parameters
    ----------
    table
        A Table, or a table's state.
    selection
        Another widget whose selection this one shares, or the initial selection.
    height, text_size, head_collapsed
        See `iceexplore.widgets.core._room.RoomTraits`.

    Raises
    ------
    OptionError, SnapshotNotFoundError
        ``table`` is not a table, the table has no such snapshot, or an argument is unknown or invalid.

    Attributes
    ----------
    panels
        The classes of the widget's panels, each after those that it uses.
    resizable
        Whether the widget can use more height than its content needs.
    selection
        See `iceexplore.widgets.Selection`. ``ipywidgets.link((a, "selection"), (b, "selection"))`` links two widgets.
    caption
        The selected snapshot and its date, as a caption of pictures.
    busy
        A description of the running work; empty if there is none.
    error
        ``text`` and ``advice`` of the last error; empty if the last request succeeded.
    answered
        The number of browser requests answered, by which the browser notices an unresponsive kernel.
    cancelled
        The browser increments this to cancel all running reads.
    """

    panels: ClassVar[tuple[type[Panel], ...]] = ()
    resizable: ClassVar[bool] = True

    title = traitlets.Unicode().tag(sync=True)
    badges = traitlets.List(traitlets.Unicode()).tag(sync=True)
    styles = traitlets.Dict().tag(sync=True)
    caption = traitlets.Unicode().tag(sync=True)
    selection = Selection().tag(sync=True)
    busy = traitlets.Unicode().tag(sync=True)
    error = traitlets.Dict().tag(sync=True)
    answered = traitlets.Int().tag(sync=True)
    cancelled = traitlets.Int().tag(sync=True)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # The browser mirrors the traits of a widget's class, so a panel's traits are added as if the class declared
        # them. Classes that anywidget derives for each widget have no ``panels`` of their own.
        inherited = {panel for base in cls.__mro__[1:] for panel in vars(base).get("panels", ())}
        for panel in vars(cls).get("panels", ()):
            if panel in inherited:
                continue
            for name, trait in panel.traits().items():
                if hasattr(cls, name):
                    raise TypeError(f"{cls.__name__}.{name} already exists; rename the trait of {panel.__name__}")
                trait.class_init(cls, name)
                setattr(cls, name, trait)
        super().__init_subclass__(**kwargs)

    if TYPE_CHECKING:  # the panels' traits, which only their classes declare

        def __getattr__(self, name: str) -> Any: ...  # noqa: ANN401  traits of any type

        def __setattr__(self, name: str, value: object) -> None: ...

    def __init__(
        self, table: TableLike, *, selection: TableWidget | Mapping[str, str] | None = None, **traits: Any
    ) -> None:
        state = _state_of(table)
        _check_names(type(self), traits)
        if traits.get("height") and not self.resizable:
            raise OptionError(f"{type(self).__name__} takes no height: it is as high as its content")
        self._host = WidgetHost(self, table, state)
        self._link: traitlets.link | None = None
        self._own_layout = "layout" not in traits
        start = first_selection(state)
        if selection is not None:
            start |= selection.selection if isinstance(selection, TableWidget) else valid_selection(selection)
        self._accepted = start = self._host.checked(start)
        self._host.make(self.panels)
        first = {
            "title": signs(state.name),
            "badges": _badges(table, state),
            "styles": styles(),
            "caption": self._caption_of(start),
            "selection": start,
            **self._host.first(start),
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
        self.on_msg(lambda *_: self._host.answer())  # the browser checks whether the kernel responds
        note_widget(self)
        self._begin()

    def _begin(self) -> None:
        """Let the panels begin. A widget with traits of its own observes them here."""
        self._host.begin()

    def _panel(self, kind: type[P]) -> P:
        """Return the panel of a class."""
        return self._host.panel(kind)

    # For the notebook -------------------------------------------------------------------------------------------------

    def select(
        self,
        node: str | TreeNode | None = None,
        *,
        snapshot: Snapshot | int | str | None = None,
        against: Snapshot | int | str | None = None,
    ) -> None:
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
        self._host.select(node, snapshot=snapshot, against=against)

    @property
    def snapshot(self) -> Snapshot | None:
        """The selected snapshot; None if there is none."""
        return self._host.snapshot

    def settle(self, timeout: float | None = None) -> bool:
        """Wait until all requests are answered and shown; return False if that takes more than ``timeout`` seconds."""
        return self._host.settle(timeout)

    def close(self) -> None:
        """Remove the widget, stop reading, and release what it holds, as a notebook's ``Out`` still references it."""
        if "_host" in vars(self):  # ipywidgets also closes widgets whose construction failed
            self._host.close()
            if self._link is not None:
                self._link.unlink()
                self._link = None
            self.unobserve_all()
            if self._own_layout and self.comm is not None:
                self.layout.close()  # ipywidgets would keep this separate model
        super().close()

    # The selection ----------------------------------------------------------------------------------------------------

    @traitlets.validate("selection")
    def _right_selection(self, proposal: Bunch) -> dict[str, str]:
        """Validate a selection from the browser or a link; reject unknown snapshots, so that no link breaks."""
        try:
            self._accepted = self._host.checked(proposal["value"])
        except IceexploreError as error:
            self._host.call(partial(self._host.fail, error))
        return self._accepted

    def _on_selection(self, change: Bunch) -> None:
        self.caption = self._caption_of(change["new"])
        if change["new"] != change["old"]:  # equal if the browser's selection was rejected: its error stays
            self._host.shown(lambda: self._host.selected(change["old"], change["new"]))

    def _caption_of(self, selection: Mapping[str, str]) -> str:
        """Return a description of the selected snapshot, as a caption for pictures."""
        found = self._host.snapshot_of(selection["snapshot"]) if selection["snapshot"] else None
        if found is None:
            return "no snapshot"
        return signs(
            f"snapshot {found.snapshot_id} · {found.operation or 'no operation'} · {format_ms(found.timestamp_ms)}"
        )

    def _on_cancelled(self, change: Bunch) -> None:
        self._host.shown(self._host.cancelled)

    def _handle_msg(self, msg: dict[str, Any]) -> None:
        # JupyterLab delivers widget messages to a subshell of the kernel, a separate thread. Two threads that set the
        # selection of linked widgets could leave them with different ones.
        self._host.call(lambda: super(TableWidget, self)._handle_msg(msg))

    # Without a kernel -------------------------------------------------------------------------------------------------

    def _no_kernel_html(self) -> str:
        """Return the HTML shown without a kernel: inline styles only, no ``<svg>``, ``<style>`` or script."""
        card = card_html(table_card(self._host.state))
        return card + "".join(panel.no_kernel_html() for panel in self._host.panels)

    def __repr__(self) -> str:
        # In a terminal, the card alone would not explain that it replaces a widget.
        first = f"{type(self).__name__} is a widget for JupyterLab and Notebook 7. Its table:"
        return f"{first}\n\n{card_text(table_card(self._host.state))}"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:  # noqa: ANN401  anywidget's, which may be None
        """Return the widget's bundle, with text and HTML for use without a kernel."""
        made: Any = super()._repr_mimebundle_(**kwargs)
        if made is None:
            return None
        data, metadata = made if isinstance(made, tuple) else (made, {})
        return {**data, "text/plain": repr(self), "text/html": self._no_kernel_html()}, metadata


def _state_of(table: TableLike) -> TableState:
    state = table if isinstance(table, TableState) else getattr(table, "state", None)
    if not isinstance(state, TableState):
        catalog = getattr(getattr(table, "listing", table), "catalog", table)  # unwrap what `open_catalog` returned
        if is_catalog(catalog):
            raise OptionError(f"a widget takes a Table: {not_a_table('this', catalog, 'catalog')}")
        raise OptionError(f"a widget takes a Table (ix.open(...)), not {type(table).__name__}")
    return state


def _badges(table: TableLike, state: TableState) -> list[str]:
    """Return the badges: the table's format, the version that a simulation writes, and the target of time travel."""
    version, badges = state.metadata.format_version, list(state.format_badges)
    if hasattr(table, "overlay"):  # a simulation
        coming = table.options.format_version
        badges.append("Simulation" if coming <= version else f"Simulation: writes v{coming}")
    return [*badges, *([signs(state.travel)] if state.travel else [])]


def _check_names(widget: type[TableWidget], given: Iterable[str]) -> None:
    """Raise an error for arguments that are not traits, which ipywidgets would silently ignore."""
    traits = (name for name in widget.class_trait_names() if not name.startswith("_"))
    known = list(dict.fromkeys(["selection", *traits, *_IGNORED]))
    for name in given:
        if name not in known and not name.startswith("_"):
            from iceexplore.errors import nearest

            raise OptionError(f"{widget.__name__} has no argument {name!r}; {nearest(name, known)}")
