"""The explorer: tree and details side by side, a slider over the snapshots, the tables of what is selected."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import anywidget
import traitlets

from iceexplore.errors import IceexploreError, OptionError
from iceexplore.graph import TableState, TreeNode, card_html, card_text, format_ms, json_safe, table_card
from iceexplore.metadata import Snapshot
from iceexplore.render import ICONS, MARKS, STYLE
from iceexplore.widgets._assets import script, style_sheet
from iceexplore.widgets._cells import page_of
from iceexplore.widgets._detail import detail_of, load_table, tables_of
from iceexplore.widgets._forest import Forest, Growth
from iceexplore.widgets._work import Work

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Explorer", "explore"]

_KEPT_FRAMES = 4
_OPERATIONS = {"append": "added", "delete": "removed", "overwrite": "problem", "replace": "carried"}

Handler = TypeVar("Handler", bound=Callable[..., None])


def _shown(handler: Handler) -> Handler:
    """An exception in a trait's callback is swallowed by the kernel: show it in the widget instead."""

    @wraps(handler)
    def wrapped(self: Explorer, change: Any) -> None:
        try:
            handler(self, change)
        except Exception as error:
            self._fail(error)

    return wrapped  # type: ignore[return-value]


class Explorer(anywidget.AnyWidget):
    """A table to walk through, in a notebook.

    State is in plain traits, so a view can be made from them without Python, and a notebook can set them:
    ``w.snapshot_id = "17"``, ``w.selected_id = "root:17"``. Reading happens in a thread; `settle` waits for it.

    Attributes
    ----------
    snapshot_id
        The snapshot shown, as text (JavaScript cannot hold an int64).
    selected_id
        The node selected: see `iceexplore.graph.TreeNode`.
    expanded
        The nodes unfolded.
    query, page
        The page of a table asked for, and the one shown; both numbered by ``n``.
    """

    _esm = script("dom.js", "detail.js", "timeline.js", "tree.js", "explorer.js")
    _css = style_sheet("explorer.css")

    title = traitlets.Unicode().tag(sync=True)
    badges = traitlets.List(traitlets.Unicode()).tag(sync=True)
    styles = traitlets.Dict().tag(sync=True)
    snapshots = traitlets.List(traitlets.Dict()).tag(sync=True)
    snapshot_id = traitlets.Unicode().tag(sync=True)
    nodes = traitlets.Dict().tag(sync=True)
    roots = traitlets.List(traitlets.Unicode()).tag(sync=True)
    expanded = traitlets.List(traitlets.Unicode()).tag(sync=True)
    selected_id = traitlets.Unicode().tag(sync=True)
    detail = traitlets.Dict().tag(sync=True)
    query = traitlets.Dict().tag(sync=True)
    page = traitlets.Dict().tag(sync=True)
    busy = traitlets.Unicode().tag(sync=True)
    error = traitlets.Dict().tag(sync=True)
    answered = traitlets.Int().tag(sync=True)

    def __init__(self, table: Any) -> None:
        state = self._state = _state_of(table)
        self._forest = Forest(state)
        self._work = Work(self._fail, self._idle)
        self._limits: dict[str, int] = {}
        self._frames: OrderedDict[tuple[str, str], pd.DataFrame] = OrderedDict()
        self._lock = threading.Lock()
        self._applying = False
        shown = state.snapshot.snapshot_id if state.snapshot else None
        start = self._forest.start(shown)
        chosen = "table" if shown is None else f"snapshot:{shown}"
        super().__init__(
            title=json_safe(state.name),
            badges=[f"Iceberg v{state.metadata.format_version}", *([state.travel] if state.travel else [])],
            styles=_styles(),
            snapshots=_snapshots(state),
            snapshot_id="" if shown is None else str(shown),
            nodes=start.nodes,
            roots=start.roots,
            expanded=start.expanded,
            selected_id=chosen,
            detail=detail_of(self._forest.node(chosen)),
        )
        self.observe(self._on_snapshot, "snapshot_id")
        self.observe(self._on_expanded, "expanded")
        self.observe(self._on_selected, "selected_id")
        self.observe(self._on_query, "query")
        self._load_page(chosen, None, 0)

    # For the notebook ------------------------------------------------------------------------------------------------

    @property
    def selected(self) -> TreeNode:
        """The selected node, with everything known of it."""
        return self._forest.node(self.selected_id)

    @property
    def selected_table(self) -> pd.DataFrame | None:
        """The whole table whose page is shown, as a data frame; None where what is selected has none."""
        node = self.selected
        keys = [t.key for t in tables_of(node)]
        if not keys:
            return None
        key = self.page.get("table") if self.page.get("node") == node.id else None
        return self._frame(node.id, key if key in keys else keys[0])

    def settle(self, timeout: float | None = None) -> bool:
        """Wait until everything asked for is shown; False if that takes longer than ``timeout`` seconds."""
        return self._work.settle(timeout)

    def close(self) -> None:
        """Take the widget away, and stop reading."""
        if hasattr(self, "_work"):  # ipywidgets closes what was never made, too
            self._work.close()
        super().close()

    # What the browser asks -------------------------------------------------------------------------------------------

    @_shown
    def _on_snapshot(self, change: Any) -> None:
        if self._applying:
            return
        before = _id(change["old"])
        after = _snapshot_of(self._state, self.snapshot_id)
        selected = self.selected_id

        def read() -> tuple[Growth, str]:
            return self._forest.start(after.snapshot_id), self._forest.follow(selected, before, after.snapshot_id)

        def show(result: tuple[Growth, str]) -> None:
            growth, follow = result
            self._apply(growth)
            self.selected_id = follow

        self._do("tree", f"Reading snapshot {after.snapshot_id}", read, show)

    @_shown
    def _on_expanded(self, change: Any) -> None:
        if self._applying:
            return
        wanted = list(self.expanded)
        missing = [i for i in wanted if i.startswith("more:") or (self.nodes.get(i) or {}).get("children") is None]
        if not missing:
            self._idle()
            return
        snapshot_id, limits = _id(self.snapshot_id), dict(self._limits)
        self._do("tree", "Reading", lambda: self._forest.grow(snapshot_id, wanted, limits), self._apply)

    @_shown
    def _on_selected(self, change: Any) -> None:
        wanted = self.selected_id

        def show(node: TreeNode) -> None:
            self.detail = detail_of(node)
            self._load_page(node.id, None, 0)

        self._do("detail", "Reading", lambda: self._forest.node(wanted), show)

    @_shown
    def _on_query(self, change: Any) -> None:
        query = self.query
        table, page = query.get("table"), query.get("page", 0)
        if not isinstance(table, str) or isinstance(page, bool) or not isinstance(page, int):
            raise OptionError(f"query={query!r}: give {{'n': ..., 'table': its name, 'page': a number from 0}}")
        self._load_page(self.selected_id, table, page)

    # Work ------------------------------------------------------------------------------------------------------------

    def _load_page(self, node_id: str, key: str | None, page: int) -> None:
        number = self.query.get("n", 0)

        def read() -> dict[str, Any] | None:
            keys = [t.key for t in tables_of(self._forest.node(node_id))]
            if not keys:
                return None
            table = key or keys[0]
            return {"n": number, "node": node_id, "table": table, **page_of(self._frame(node_id, table), page)}

        def show(result: dict[str, Any] | None) -> None:
            self.page = result or {}

        self._do("page", "Reading", read, show)

    def _frame(self, node_id: str, key: str) -> pd.DataFrame:
        """A table of a node; the last few are kept."""
        at = (node_id, key)
        with self._lock:  # asked by the worker and by `selected_table`: whoever is second waits, and finds it
            if at not in self._frames:
                self._frames[at] = load_table(self._state, self._forest.node(node_id), key)
            self._frames.move_to_end(at)
            while len(self._frames) > _KEPT_FRAMES:
                self._frames.popitem(last=False)
            return self._frames[at]

    def _do(self, slot: str, what: str, read: Callable[[], Any], show: Callable[[Any], None]) -> None:
        self.busy = f"{what} …"
        self.error = {}
        self._work.submit(slot, read, show)

    def _apply(self, growth: Growth) -> None:
        self._applying = True
        try:
            self._limits = growth.limits
            with self.hold_sync():  # one message: the browser never sees half a tree
                self.nodes = growth.nodes
                self.roots = growth.roots
                self.expanded = growth.expanded
        finally:
            self._applying = False

    def _idle(self) -> None:
        self.busy = ""
        self.answered += 1

    def _fail(self, error: Exception) -> None:
        ours = isinstance(error, IceexploreError)
        text = str(error) if ours else f"{type(error).__name__}: {error}"
        advice = "Select something else, or go to another snapshot; the rest still works."
        if not ours:
            advice += " This is a fault in iceexplore: please report it."
        self.error = {"text": json_safe(text[:2000]), "advice": advice}
        self.answered += 1

    # Without a kernel ------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return card_text(table_card(self._state))

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """The widget, and for where no kernel runs the card and the tree, as they are without one."""
        made: Any = super()._repr_mimebundle_(**kwargs)
        if made is None:
            return None
        data, metadata = made if isinstance(made, tuple) else (made, {})
        tree = self._forest.tree._repr_mimebundle_()["text/html"]
        html = card_html(table_card(self._state)) + tree
        return {**data, "text/plain": repr(self), "text/html": html}, metadata


def explore(table: Any) -> Explorer:
    """The explorer of a table, or of a table's state."""
    return Explorer(table)


def _state_of(table: Any) -> TableState:
    state = table if isinstance(table, TableState) else getattr(table, "state", None)
    if not isinstance(state, TableState):
        raise OptionError(f"Explorer takes a Table (ix.open(...)), not {type(table).__name__}")
    return state


def _id(text: Any) -> int | None:
    try:
        return int(text)
    except (TypeError, ValueError):
        return None


def _snapshot_of(state: TableState, text: str) -> Snapshot:
    number = _id(text)
    found = None if number is None else state.metadata.snapshot(number)
    if found is None:
        raise OptionError(f"snapshot_id={text!r}: {state.name} has no such snapshot; .snapshots lists them")
    return found


def _snapshots(state: TableState) -> list[dict[str, Any]]:
    """Every snapshot, oldest first, as the slider needs it."""
    names: dict[int, list[str]] = {}
    for ref in state.metadata.refs.values():
        names.setdefault(ref.snapshot_id, []).append(json_safe(ref.name))
    unique = {s.snapshot_id: s for s in state.metadata.snapshots}
    return [
        {
            "id": str(s.snapshot_id),
            "time": format_ms(s.timestamp_ms).replace(".000 UTC", " UTC"),
            "operation": json_safe((s.operation or "")[:40]),
            "refs": sorted(names.get(s.snapshot_id, []), key=lambda n: (n != "main", n)),
        }
        for s in sorted(unique.values(), key=lambda s: (s.timestamp_ms, s.sequence_number, s.snapshot_id))
    ]


def _styles() -> dict[str, Any]:
    """Icons and colours by kind of node, mark and operation: those of the drawn tree."""
    kinds: dict[str, Any] = {
        kind: {"title": s.title, "icon": list(ICONS.get(s.shape, ("", ""))), "light": s.stroke, "dark": s.dark_stroke}
        for kind, s in STYLE.items()
    }
    marks = {
        f"mark:{k}": {"title": m.title, "sign": m.sign, "light": m.light, "dark": m.dark} for k, m in MARKS.items()
    }
    operations = {f"operation:{name}": marks[f"mark:{mark}"] for name, mark in _OPERATIONS.items()}
    return kinds | marks | operations
