"""Panels: plain objects that a widget is made of, each with its own state and its traits.

A widget lists the classes of its panels; the explorer has all of them, a separate widget one or two. A panel knows its
widget only as a `PanelHost`, and other panels only if it asks the host for them (`PanelHost.panel`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from copy import deepcopy
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeAlias, TypeVar, overload

import traitlets
from traitlets import Bunch

if TYPE_CHECKING:
    import anywidget

    from iceexplore.graph import TableState, TreeNode
    from iceexplore.metadata import Snapshot

__all__ = ["Panel", "PanelHost", "SyncedTrait", "TableLike", "shown"]

#: A `Table`, `Simulation` or `Lab`, whose modules this package may not import, or the state of one.
TableLike: TypeAlias = Any

T = TypeVar("T")
P = TypeVar("P", bound="Panel")


class PanelHost(Protocol):
    """The part of a widget that its panels use.

    Attributes
    ----------
    widget
        The object that has the panels' traits (see `SyncedTrait`). Panels use it in no other way.
    table, state
        The table or state that was passed to the widget, and the table's state.
    selection
        See `iceexplore.widgets.Selection`.
    """

    @property
    def widget(self) -> anywidget.AnyWidget: ...

    @property
    def table(self) -> TableLike: ...

    @property
    def state(self) -> TableState: ...

    selection: dict[str, str]

    @property
    def snapshot(self) -> Snapshot | None:
        """The selected snapshot; None if there is none."""

    @property
    def tab(self) -> str | None:
        """The key of the tab shown in the explorer; None in a widget without tabs, whose panels are all visible."""

    def select(
        self,
        node: str | TreeNode | None = None,
        *,
        snapshot: Snapshot | int | str | None = None,
        against: Snapshot | int | str | None = None,
    ) -> None:
        """Select a node or snapshots; see `iceexplore.widgets.TableWidget.select`."""

    def snapshot_of(self, text: str) -> Snapshot:
        """Return a snapshot by its id in decimal; raise OptionError or SnapshotNotFoundError if there is none."""

    def state_at(self, snapshot: str) -> TableState:
        """Return the table's state at the snapshot with this decimal id; the widget's own state if it is empty."""

    def panel(self, kind: type[P]) -> P:
        """Return the widget's panel of a class, which must precede the calling one in ``panels``."""

    def observe(self, handler: Callable[[Any], None], *names: str) -> None:
        """Call a handler with each change of the traits of these names."""

    def observe_requests(self, handler: Callable[[Mapping[str, Any]], None], name: str) -> None:
        """Call a handler once with each request that the browser makes through a trait, even if several were merged."""

    def on_message(self, handler: Callable[[Any], None]) -> None:
        """Call a handler with each message from the browser."""

    def send(self, content: Mapping[str, object]) -> None:
        """Send a message to the browser."""

    def hold_sync(self) -> AbstractContextManager[None]:
        """Send the traits set within the context as one message."""

    def run(self, slot: str, what: str, read: Callable[[], Any], show: Callable[[Any], None]) -> None:
        """Call ``read`` in the worker thread, then ``show`` with its result in the widget's thread.

        A slot is a name for requests of which only the newest is answered. For long work, ``read`` is a generator
        function that yields its progress as text for ``busy``; it can be cancelled at each step.
        """

    def run_silently(
        self, slot: str, read: Callable[[], Any], show: Callable[[Any], None], *, after_others: bool = False
    ) -> None:
        """Do the same as `run`, without ``busy``, for work that the user has not requested.

        Parameters
        ----------
        after_others
            Let each step wait until there has been no other work for a moment: what the user requests comes first.
        """

    def call(self, act: Callable[[], None]) -> None:
        """Call a function in the widget's thread; at once if the caller is in that thread."""

    def shown(self, act: Callable[[], None]) -> None:
        """Do the same as `call`, remove the last request's error, and show exceptions in the widget."""

    def answer(self) -> None:
        """Report to the browser that a request has been answered."""

    def finish(self) -> None:
        """Report that no work is left: ``busy`` ends, and panels learn that something may have been read."""

    def fail(self, error: Exception) -> None:
        """Show an error in the widget."""


class SyncedTrait(Generic[T]):
    """A trait that a panel declares in its class body, and that its widget has: ``nodes = SyncedTrait(Dict())``.

    The browser and the notebook see the widget's trait. In the panel, ``self.nodes`` reads and sets it.
    """

    def __init__(self, trait: traitlets.TraitType[T, Any]) -> None:
        self._trait = trait.tag(sync=True)
        self._name = ""

    def __set_name__(self, owner: type[Panel], name: str) -> None:
        self._name = name

    @overload
    def __get__(self, panel: None, owner: type[Panel]) -> Self: ...

    @overload
    def __get__(self, panel: Panel, owner: type[Panel]) -> T: ...

    def __get__(self, panel: Panel | None, owner: type[Panel]) -> Self | T:
        if panel is None:
            return self
        value: T = getattr(panel.host.widget, self._name)
        return value

    def __set__(self, panel: Panel, value: T) -> None:
        setattr(panel.host.widget, self._name, value)

    def made(self) -> traitlets.TraitType[Any, Any]:
        """Return a new trait for a class of widgets; a trait object belongs to one class."""
        return deepcopy(self._trait)


class Panel:
    """A panel of a widget. The widget calls these methods for its panels in the order of its ``panels``.

    Parameters
    ----------
    host
        The panel's widget. The widget's traits can be used from `begin` on.

    Attributes
    ----------
    later
        Modules that the panel's requests import; a kernel imports them soon after the widget is created.
    """

    later: ClassVar[tuple[str, ...]] = ()

    def __init__(self, host: PanelHost) -> None:
        self.host = host

    @classmethod
    def traits(cls) -> dict[str, traitlets.TraitType[Any, Any]]:
        """Return new traits for a widget with this panel, by name."""
        found = {name: value for kind in reversed(cls.__mro__) for name, value in vars(kind).items()}
        return {name: value.made() for name, value in found.items() if isinstance(value, SyncedTrait)}

    def first(self, selection: Mapping[str, str]) -> dict[str, Any]:
        """Return the initial values of traits. This may read at most one metadata file."""
        return {}

    def begin(self) -> None:
        """Observe traits and request the first reads."""

    def on_selected(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """React to a new selection, whose snapshots exist."""

    def on_cancelled(self, selection: Mapping[str, str]) -> None:
        """React to the cancelling of all reads.

        Parameters
        ----------
        selection
            What was selected when the reads were cancelled; a panel before this one may have changed it since.
        """

    def on_read(self) -> None:
        """React to a completed read of this or another widget of the same table."""

    def on_failed(self) -> None:
        """React to a failed request, before its error is shown."""

    def settle(self, timeout: float | None) -> bool:
        """Wait for the panel's own workers; return False if that takes more than ``timeout`` seconds."""
        return True

    def close(self) -> None:
        """Release what the panel holds, as a notebook's ``Out`` still references the closed widget."""

    def no_kernel_html(self) -> str:
        """Return HTML shown without a kernel: inline styles only, no ``<svg>``, ``<style>`` or script."""
        return ""


def shown(handler: Callable[[P, Any], None]) -> Callable[[P, Any], None]:
    """Decorate a panel's handler: run it on the widget's thread, and show its exceptions in the widget.

    A callback of the user's own widgets may set the trait on another thread, and the kernel would swallow exceptions.
    """

    @wraps(handler)
    def wrapped(self: P, change: Bunch) -> None:
        self.host.shown(lambda: handler(self, change))

    return wrapped
