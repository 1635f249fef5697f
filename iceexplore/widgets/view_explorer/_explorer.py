"""The explorer of a view: its versions on a timeline, and tabs with SQL, differences, lineage, problems and details."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from os import PathLike
from typing import Any

import traitlets
from traitlets import Bunch

from iceexplore.errors import IceexploreError, OptionError
from iceexplore.render import Html, card_html, card_text, details, html_page, html_table
from iceexplore.storage import whole_file
from iceexplore.views import OpenSource, ViewState, ViewVersion, view_at, view_card
from iceexplore.widgets.core._blocks import Block
from iceexplore.widgets.core._bundle import sent_script
from iceexplore.widgets.core._cell_reruns import note_widget
from iceexplore.widgets.core._error_messages import words_of
from iceexplore.widgets.core._escape_text import signs, signs_of_lines
from iceexplore.widgets.core._room import RoomTraits
from iceexplore.widgets.core._scripted import ScriptedWidget
from iceexplore.widgets.core._worker import Work
from iceexplore.widgets.view_explorer._blocks import view_blocks_html
from iceexplore.widgets.view_explorer._entries import MOST_ENTRIES, Entry, entries_of, entries_sent, entry_of
from iceexplore.widgets.view_explorer._tabs import (
    compared_blocks,
    details_blocks,
    lineage_blocks,
    problems_blocks,
    sql_blocks,
)

__all__ = ["ViewExplorer", "explore_view"]

_TABS = {
    "sql": "SQL",
    "compare": "Compare",
    "lineage": "Lineage",
    "problems": "Problems",
    "details": "Details",
}
_BUSY = {
    "sql": "Reading the SQL",
    "compare": "Comparing two versions",
    "lineage": "Following the lineage",
    "problems": "Checking the view",
    "details": "Reading the details",
}
_ADVICE = "Choose another version or tab; the rest still works."
#: Dialects offered for translation; any other that sqlglot knows can be set in Python.
_DIALECTS = ("spark", "trino", "duckdb", "snowflake", "bigquery", "postgres", "clickhouse", "mysql")
#: The arguments of the widget; the last one is accepted for code that styles many widgets at once.
_ARGUMENTS = ("entry", "against", "tab", "dialect", "height", "text_size", "head_collapsed", "layout", "style")
#: Maximum number of tab contents that are cached.
_KEPT = 50


class ViewExplorer(RoomTraits, ScriptedWidget):
    """A widget to explore a view in a notebook.

    All state is in plain traits, so the widget can be rendered from them without Python, and a notebook can set them:
    ``w.select(2)``, ``w.tab = "compare"``. Files are read in a separate thread; `settle` waits for it.

    Parameters
    ----------
    view
        A View, or a view's state.
    open_source
        A function that opens the tables and views that the query reads; if it is None, nothing is opened.

    Raises
    ------
    OptionError
        ``view`` is not a view, or an argument is unknown or invalid.

    Attributes
    ----------
    entries
        The timeline, oldest first; see `iceexplore.widgets.view_explorer._entries.entries_sent`.
    entry
        The index of the selected entry; -1 if there is none.
    against
        The index of the entry to compare with; -1 is the change before the selected one.
    parts
        The tabs, each a key and a label.
    tab
        The key of the tab shown: ``sql``, ``compare``, ``lineage``, ``problems`` or ``details``.
    dialect
        The dialect to translate the SQL into; empty for none.
    dialects
        The dialects that the browser offers.
    content
        What is shown: ``tab``, ``key`` (the selection that it belongs to) and ``blocks``.
    """

    view_script = sent_script("viewExplorer.viewExplorerView")

    title = traitlets.Unicode().tag(sync=True)
    badges = traitlets.List(traitlets.Unicode()).tag(sync=True)
    busy = traitlets.Unicode().tag(sync=True)
    error = traitlets.Dict().tag(sync=True)
    answered = traitlets.Int().tag(sync=True)
    cancelled = traitlets.Int().tag(sync=True)
    entries = traitlets.List(traitlets.Dict()).tag(sync=True)
    left_out = traitlets.Int().tag(sync=True)
    entry = traitlets.Int(-1).tag(sync=True)
    against = traitlets.Int(-1).tag(sync=True)
    parts: traitlets.List[Any] = traitlets.List().tag(sync=True)
    tab = traitlets.Enum(list(_TABS), "sql").tag(sync=True)
    dialect = traitlets.Unicode().tag(sync=True)
    dialects = traitlets.List(traitlets.Unicode(), list(_DIALECTS)).tag(sync=True)
    content = traitlets.Dict().tag(sync=True)

    def __init__(self, view: object, *, open_source: OpenSource | None = None, **traits: Any) -> None:
        state = view if isinstance(view, ViewState) else getattr(view, "state", None)
        if not isinstance(state, ViewState):
            raise OptionError(f"a ViewExplorer takes a View (ix.open_view(...)), not {type(view).__name__}")
        for name in traits:
            if name not in _ARGUMENTS:
                raise OptionError(f"ViewExplorer has no argument {name!r}; it has {', '.join(_ARGUMENTS[:-1])}")
        self._state, self._opener = state, open_source
        self._own_layout = "layout" not in traits
        every = entries_of(state.metadata)
        shown = entry_of(state, every)
        first = min(max(0, len(every) - MOST_ENTRIES), max(0, shown))
        self._entries: list[Entry] = every[first : first + MOST_ENTRIES]
        self._made: OrderedDict[tuple[str, str], list[Block]] = OrderedDict()
        self._shown: dict[str, tuple[str, list[Block]]] = {}
        self._counts: dict[str, int] = {}
        self._work = Work(self._fail, self._finish)
        card = view_card(state)
        try:
            super().__init__(
                **{
                    "title": signs(state.name),
                    "badges": [signs(text) for text in card.badges],
                    "entries": entries_sent(self._entries),
                    "left_out": len(every) - len(self._entries),
                    "entry": shown - first if every else -1,
                    "parts": _parts(len(state.problems)),
                    **traits,
                }
            )
        except traitlets.TraitError as error:
            raise OptionError(str(error)) from error
        self.observe(self._on_asked, ["entry", "against", "tab", "dialect"])
        self.observe(self._on_cancelled, "cancelled")
        self.on_msg(lambda *_: self._answer())  # the browser checks whether the kernel responds
        note_widget(self)
        self._show()

    # For the notebook -------------------------------------------------------------------------------------------------

    def select(self, version: ViewVersion | int | str, *, against: ViewVersion | int | str | None = None) -> None:
        """Select the last change to a version and, optionally, the last change to another version to compare it with.

        Raises
        ------
        SnapshotNotFoundError
            The view has no such version.
        OptionError
            An argument is not a version id, or the change is left out of the timeline.
        """
        with self.hold_trait_notifications():
            if against is not None:
                self.against = self._index_of(against)
                self.tab = "compare"
            self.entry = self._index_of(version)

    def _index_of(self, version: ViewVersion | int | str) -> int:
        wanted = version.version_id if isinstance(version, ViewVersion) else version
        found = view_at(self._state, version=wanted).version
        for i in reversed(range(len(self._entries))):
            if found is not None and self._entries[i].version_id == found.version_id:
                return i
        raise OptionError(f"version {wanted} is left out of the timeline, which shows {MOST_ENTRIES:,} changes")

    @property
    def version(self) -> ViewVersion | None:
        """The selected version, for `iceexplore.View.at`; None if it has expired, or if there is none."""
        chosen = self._entry_at(self.entry)
        return None if chosen is None else chosen.version

    def settle(self, timeout: float | None = None) -> bool:
        """Wait until all requests are answered and shown; return False if that takes more than ``timeout`` seconds."""
        return self._work.settle(timeout)

    def save_html(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write the versions, and the content of the tabs opened so far, to one HTML file that works offline.

        The page has no scripts, and makes no requests. Nothing is redacted: SQL and names are in it.

        Raises
        ------
        OptionError
            No file can be written to the path, for example because its folder is missing.
        ExistsError
            The file exists and ``overwrite`` is false. This is also a FileExistsError.
        StorageError, AccessDeniedError
            Writing failed; an existing file is unchanged.
        """
        page = html_page(self._state.name, self._no_kernel_html(every=True), images=True)
        with whole_file(path, overwrite=overwrite) as file:
            file.write(page.encode("utf-8", "backslashreplace"))

    def close(self) -> None:
        """Remove the widget, stop reading, and release what it holds, as a notebook's ``Out`` still references it."""
        if "_work" in vars(self):
            self._work.close()
            self._made.clear()
            self._shown.clear()
            self.unobserve_all()
            if self._own_layout and self.comm is not None:
                self.layout.close()  # a separate model that ipywidgets would keep
        super().close()

    # What is shown ----------------------------------------------------------------------------------------------------

    def _entry_at(self, index: int) -> Entry | None:
        return self._entries[index] if 0 <= index < len(self._entries) else None

    def _before(self) -> int:
        """Return the index of the entry to compare with; -1 if there is none."""
        if self._entry_at(self.against) is not None and self.against != self.entry:
            return self.against
        return self.entry - 1

    def _key(self, tab: str) -> str:
        """Return, as text, what a tab's content depends on; `viewExplorer.js` computes the same text."""
        keys = {"compare": f"{self.entry} {self.against}", "sql": f"{self.entry} {self.dialect}"}
        return keys.get(tab, f"{self.entry}")

    def _state_at(self, index: int) -> ViewState:
        chosen = self._entry_at(index)
        if chosen is None:
            return self._state
        return view_at(self._state, version=chosen.version_id)  # raises an error if it has expired

    def _show(self) -> None:
        """Show the content of the current tab; if it is not cached, the worker makes it."""
        tab, key = self.tab, self._key(self.tab)
        made = self._made.get((tab, key))
        if made is not None:
            self._made.move_to_end((tab, key))
            self._work.submit("content", list, lambda _: self._put(tab, key, made))
            return

        def show(found: list[Block]) -> None:
            self._made[tab, key] = found
            while len(self._made) > _KEPT:
                self._made.popitem(last=False)
            self._put(tab, key, found)

        self._say(f"{_BUSY[tab]} …")
        self._work.submit("content", self._reader(tab), show, self._say)

    def _put(self, tab: str, key: str, found: list[Block]) -> None:
        self._shown[tab] = (key, found)
        if tab == "problems" and key in self._counts:
            self.parts = _parts(self._counts[key])
        self.content = {"tab": tab, "key": key, "blocks": found}

    def _reader(self, tab: str) -> Callable[[], Any]:
        """Return a function that makes a tab's content. The worker calls it, so it uses no traits."""
        entry, before, dialect, key = self.entry, self._before(), self.dialect, self._key(tab)
        if tab == "compare":
            return lambda: self._compared(before, entry)
        made: dict[str, Callable[[ViewState], Any]] = {
            "sql": lambda state: sql_blocks(state, dialect),
            "lineage": lambda state: lineage_blocks(state, self._opener),
            "problems": lambda state: self._checked(state, key),
            "details": details_blocks,
        }
        return lambda: made[tab](self._state_at(entry))

    def _compared(self, before: int, entry: int) -> list[Block]:
        if before < 0:
            return [["p", ["This is the first change: there is none before it to compare with."]]]
        older, newer = sorted((before, entry))
        return compared_blocks(self._state_at(older), self._state_at(newer))

    def _checked(self, state: ViewState, key: str) -> list[Block]:
        from iceexplore.doctor import examine_view

        report = examine_view(state, self._opener)
        blocks = problems_blocks(report)
        self._counts[key] = len(report)
        return blocks

    # Requests ---------------------------------------------------------------------------------------------------------

    def _on_asked(self, change: Bunch) -> None:
        def act() -> None:
            self.error = {}
            try:
                self._show()
            except Exception as error:
                self._fail(error)

        self._work.call(act)

    def _on_cancelled(self, change: Bunch) -> None:
        self._work.call(self._work.cancel)

    def _handle_msg(self, msg: dict[str, Any]) -> None:
        # JupyterLab delivers widget messages to a subshell of the kernel, a separate thread.
        self._work.call(lambda: super(ViewExplorer, self)._handle_msg(msg))

    def _say(self, text: str) -> None:
        self.busy = text

    def _answer(self) -> None:
        self.answered += 1

    def _finish(self) -> None:
        self.busy = ""
        self._answer()

    def _fail(self, error: Exception) -> None:
        text, advice = words_of(error)
        if isinstance(error, IceexploreError):
            advice = _ADVICE
        self.error = {"text": signs_of_lines(text[:2000]), "advice": advice}
        self._put(self.tab, self._key(self.tab), [])
        self._answer()

    # Without a kernel -------------------------------------------------------------------------------------------------

    def _no_kernel_html(self, *, every: bool = False) -> Html:
        """Return the HTML shown without a kernel: inline styles only, no ``<svg>``, ``<style>`` or script."""
        rows = [[one["id"], one["time"], one["mark"], one["words"]] for one in reversed(self.entries)]
        table = html_table(("version", "time", "", "what"), rows, limit=len(rows) if every else 50)
        parts = [card_html(view_card(self._state)), details(f"Versions ({len(rows):,})", table)]
        for tab, label in _TABS.items():
            key, blocks = self._shown.get(tab, ("", []))
            if blocks:
                at = self.entries[self.entry]["words"] if 0 <= self.entry < len(self.entries) else ""
                shown = f"{label}: {at}" if key == self._key(tab) else f"{label} (of an earlier selection)"
                parts.append(details(shown, view_blocks_html(blocks), opened=tab == self.tab))
        return Html("".join(parts))

    def __repr__(self) -> str:
        # In a terminal, the card alone would not explain that it replaces a widget.
        first = "ViewExplorer is a widget for JupyterLab and Notebook 7. Its view:"
        return f"{first}\n\n{card_text(view_card(self._state))}"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:  # noqa: ANN401  anywidget's, which may be None
        """Return the widget's bundle, with text and HTML for use without a kernel."""
        made: Any = super()._repr_mimebundle_(**kwargs)
        if made is None:
            return None
        data, metadata = made if isinstance(made, tuple) else (made, {})
        return {**data, "text/plain": repr(self), "text/html": self._no_kernel_html()}, metadata


def _parts(problems: int) -> list[list[str]]:
    words = {**_TABS, "problems": f"Problems ({problems:,})"} if problems else _TABS
    return [[key, title] for key, title in words.items()]


def explore_view(view: object, open_source: OpenSource | None = None, **options: Any) -> ViewExplorer:
    """Return the explorer of a view or a view's state; ``options`` are the arguments of `ViewExplorer`."""
    return ViewExplorer(view, open_source=open_source, **options)
