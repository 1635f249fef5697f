"""The rows that match a filter, each with its fate: whether it is live, or which commit deleted or moved it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import traitlets
from traitlets import Bunch

from iceexplore.errors import OptionError
from iceexplore.graph import TableState, amount, json_safe
from iceexplore.widgets.core._blocks import Block
from iceexplore.widgets.core._bundle import sent_script
from iceexplore.widgets.core._error_messages import unread
from iceexplore.widgets.core._escape_text import signs_of_lines
from iceexplore.widgets.core._panel import Panel, PanelHost, SyncedTrait, shown
from iceexplore.widgets.core._static_html import blocks_html
from iceexplore.widgets.core._table_widget import TableWidget
from iceexplore.widgets.grid._panel import GridPanel, GridSource
from iceexplore.widgets.grid._table import ArrowTable
from iceexplore.widgets.grid._view import TableView
from iceexplore.widgets.rows._matches import is_cheap, matches_text
from iceexplore.widgets.rows._stories import condition_of, fate_words, nodes_of_places, rows_sent, story_sent
from iceexplore.widgets.scan_lab._texts import python_text
from iceexplore.widgets.scan_lab._typing import FilterBoxPanel

if TYPE_CHECKING:
    import pandas as pd

    from iceexplore.reading import RowPlaces

__all__ = ["Rows", "RowsPanel"]

_GRID = "rows"
#: Maximum number of rows that are shown with a filter, and without one.
MOST_ROWS, FIRST_ROWS = 1_000, 100
_COLUMNS = 60
_KEPT = 2
_LONGEST = 100_000
_ASKS = ("examples", "find", "first", "value", "count", "story")


class RowsPanel(Panel):
    """The panel that shows the rows that match a filter, including deleted rows, with their values and fates.

    Without a filter, it shows the first rows of the snapshot if that is cheap. Its grid is ``"rows"``.

    Attributes
    ----------
    rows_filter
        The filter, as for `iceexplore.Table.rows`; empty for the first rows.
    rows_history
        Whether to search removed files, too.
    rows_answer
        The answer. It repeats ``filter``, ``history`` and ``snapshot`` of the request. For an invalid filter, it also
        has ``error``. After a search, it has ``of``, the number of the result, which is the owner of its table in the
        grid; ``headline``; ``note``, how many rows match; ``blocks``, the history of the first rows; and ``python``.
        If nothing was searched, it has ``blocks``, the reason, and ``more``, the label of a button to search anyway.
    rows_count
        The number of matching live rows, counted on request: ``of``, the number of the result, and ``text``.
    rows_ask
        The browser's last request of another kind: ``n``, incremented; ``want``: "examples", "find" (search again),
        "first" (read the first rows even if that is not cheap), "count", "value" with ``column`` and ``value``, or
        "story" with ``of`` and ``row``, the row's number in the table; and ``earlier``, the requests before it, as a
        notebook may merge several changes of this trait into one.
    rows_story
        The history of the row that was selected in the table: ``of`` and ``row`` of the request, and ``blocks``.
    """

    later = ("iceexplore.reading", "pyarrow.parquet")

    rows_filter = SyncedTrait(traitlets.Unicode())
    rows_history = SyncedTrait(traitlets.Bool())
    rows_answer = SyncedTrait(traitlets.Dict())
    rows_count = SyncedTrait(traitlets.Dict())
    rows_ask = SyncedTrait(traitlets.Dict())
    rows_story = SyncedTrait(traitlets.Dict())

    def __init__(self, host: PanelHost) -> None:
        super().__init__(host)
        self._box = host.panel(FilterBoxPanel)
        self._results: OrderedDict[str, Found] = OrderedDict()
        self._count = 0
        host.panel(GridPanel).add(_GRID, RowTables(self.result))

    def begin(self) -> None:
        """Show rows; answer requests."""
        self.host.observe(self._on_input, "rows_filter", "rows_history")
        self.host.observe_requests(self._on_ask, "rows_ask")
        if self.host.tab is not None:
            self.host.observe(self._on_tab, "tab")
        self._follow()

    def close(self) -> None:
        """Release the rows."""
        self._results.clear()

    def result(self, number: str) -> Found:
        """Return the result with a number.

        Raises
        ------
        OptionError
            The result is no longer cached.
        """
        found = self._results.get(number)
        if found is None:
            raise OptionError("these rows are no longer available: search again")
        return found

    @property
    def found(self) -> RowPlaces | None:
        """The rows that are shown; None before the first search."""
        shown_now = self._results.get(self.rows_answer.get("of", ""))
        return None if shown_now is None else shown_now.places

    # What is asked ----------------------------------------------------------------------------------------------------

    def _visible(self) -> bool:
        return self.host.tab in (None, "rows")

    @shown
    def _on_tab(self, change: Bunch) -> None:
        self._follow()

    @shown
    def _on_input(self, change: Bunch) -> None:
        self._search()

    def on_selected(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """Search in the newly selected snapshot."""
        if old["snapshot"] != new["snapshot"]:
            self._follow()

    def on_cancelled(self, selection: Mapping[str, str]) -> None:
        """Show that the search was cancelled."""
        if self._visible() and not self._answers(self.rows_answer):
            note: list[Block] = [["p", [["note", "Cancelled."]]]]
            self.rows_answer = {**self._asked(), "blocks": note, "more": "Search again"}

    def _asked(self) -> dict[str, Any]:
        chosen = self.host.selection["snapshot"]
        return {"filter": self.rows_filter.strip(), "history": self.rows_history, "snapshot": chosen}

    def _answers(self, answer: Mapping[str, Any]) -> bool:
        """Return whether an answer belongs to the current request."""
        return all(answer.get(key) == value for key, value in self._asked().items())

    def _follow(self) -> None:
        """Search for the selected snapshot if the tab is shown."""
        if self._visible():
            if not self._answers(self.rows_answer):
                self._search()
            self._box.follow()

    @shown
    def _on_ask(self, ask: Mapping[str, Any]) -> None:
        acts: dict[str, Callable[[], None]] = {
            "examples": self._box.request_examples, "find": self._search, "first": lambda: self._search(forced=True),
            "value": lambda: self._set_value(ask), "count": self._count_rows, "story": lambda: self._show_story(ask),
        }  # fmt: skip
        act = acts.get(str(ask.get("want")))
        if act is None:
            raise OptionError(f"rows_ask={str(ask)[:200]}: want must be one of {', '.join(_ASKS)}")
        act()

    def _set_value(self, ask: Mapping[str, Any]) -> None:
        column, value = ask.get("column"), ask.get("value")
        if not isinstance(column, str) or not isinstance(value, str):
            raise OptionError(f"rows_ask={str(ask)[:200]}: give column and value (text)")
        condition = condition_of(column, value)
        if condition == self.rows_filter:
            self._search()
        else:
            self.rows_filter = condition

    # Answers ----------------------------------------------------------------------------------------------------------

    def _search(self, *, forced: bool = False) -> None:
        asked = self._asked()
        text, history, snapshot = asked["filter"], asked["history"], asked["snapshot"]

        def read() -> Generator[str, None, tuple[dict[str, Any], Found | None]]:
            from iceexplore.reading import find_rows

            state = self.host.state_at(snapshot)
            if not text and not forced and (history or not is_cheap(state)):
                note = "Type a filter, or read the first rows: this opens data files."
                return {"blocks": [["p", [["note", note]]]], "more": "Show the first rows"}, None
            names = [f.name for f in state.schema.fields[:_COLUMNS]]
            most = MOST_ROWS if text else FIRST_ROWS
            try:
                yield "Looking at the metadata …"
                note = matches_text(state, text)
                yield "Looking for rows …"
                found = find_rows(state, text or None, columns=names, history=history, limit=most)
            except OptionError as fault:
                return {"error": signs_of_lines(str(fault)[:_LONGEST])}, None
            own = self.host.state.snapshot
            at = "" if own is None or str(own.snapshot_id) == snapshot else f".at(snapshot={snapshot})"
            call = [*([python_text(text)] if text else []), *(["history=True"] if history else [])]
            yield "Reading the history of the rows …"
            missed = _missed(state, found)
            answer = {
                "headline": _headline(found, bool(text)) + (", incomplete ▲" if missed else ""),
                "note": f"▲ Rows may be missing: {missed}." if missed else note,
                "blocks": rows_sent(found),
                "python": str(json_safe(f"t{at}.rows({', '.join(call)})")),
            }
            return answer, Found(found, missed)

        def show(result: tuple[dict[str, Any], Found | None]) -> None:
            answer, found = result
            if found is not None:
                self._count += 1
                answer["of"] = str(self._count)
                self._results[answer["of"]] = found
                while len(self._results) > _KEPT:
                    self._results.popitem(last=False)
            self.rows_answer = {**asked, **answer}

        self.host.run("rows", "Looking for rows", read, show)

    def _count_rows(self) -> None:
        asked, of = self._asked(), self.rows_answer.get("of", "")

        def read() -> str:
            from iceexplore.reading import count_rows

            return count_rows(self.host.state_at(asked["snapshot"]), asked["filter"] or None).explain()

        def show(text: str) -> None:
            self.rows_count = {"of": of, "text": signs_of_lines(text)}

        self.host.run("rows-count", "Counting rows", read, show)

    def _show_story(self, ask: Mapping[str, Any]) -> None:
        of, row = ask.get("of"), ask.get("row")
        if not isinstance(of, str) or type(row) is not int:
            raise OptionError(f"rows_ask={str(ask)[:200]}: give of (text) and row (an integer)")
        places = self.result(of).places
        if not 0 <= row < len(places):
            raise OptionError(f"there is no row {row} among {len(places):,} rows")

        def show(blocks: list[Block]) -> None:
            self.rows_story = {"of": of, "row": row, "blocks": blocks}

        self.host.run("rows-story", "Reading the history of the row", lambda: story_sent(places, row), show)

    def no_kernel_html(self) -> str:
        """Return the histories of the rows as HTML."""
        return blocks_html(self.rows_answer.get("blocks", ()))


def _headline(found: RowPlaces, filtered: bool) -> str:
    """Return how many rows were found, by fate."""
    fates = [place.fate.kind for place in found]
    kinds = [f"{fates.count(kind):,} {fate_words(kind, fates.count(kind))}" for kind in dict.fromkeys(fates)]
    text = amount(len(fates), "row") + (f": {', '.join(kinds)}" if kinds else "")
    if found.complete:
        return text
    return f"A preview, the first {text}" if filtered else f"The first {text}"


def _missed(state: TableState, found: RowPlaces) -> str:
    """Return why rows may be missing: files that the search could not read; empty if it read all."""
    parts = []
    if text := unread(state, state.snapshot):
        parts.append(text)
    elif found.history:
        errors = {p.where.partition("#")[0] for p in state.problems.met() if p.severity == "error"}
        if others := errors - set(found.unread) - {state.metadata_location}:
            parts.append(f"{amount(len(others), 'file')} of earlier snapshots cannot be read")
    if found.unread:
        parts.append(f"{amount(len(found.unread), 'data file')} cannot be read")
    return "; ".join(parts)


@dataclass(frozen=True)
class Found:
    """The places of found rows, and the reason why rows may be missing; an empty reason if the search was complete."""

    places: RowPlaces
    missed: str


class RowTables(GridSource):
    """The tables of found rows. A table's owner is the number of the search's result.

    Parameters
    ----------
    result
        A function that returns a result by its number.
    """

    def __init__(self, result: Callable[[str], Found]) -> None:
        self._result = result

    numbered = True

    def frame(self, of: str, table: str) -> pd.DataFrame | ArrowTable:
        """Return a table of the places of the found rows, with values, fates, and what deleted or moved each row."""
        found = self._result(of).places
        if table != "rows":
            raise OptionError(f"rows found have no table {table[:40]!r}")
        return ArrowTable(_in_order(found.to_arrow(), found.columns))

    def view(self, of: str, table: str, names: Sequence[str]) -> TableView:
        """Return a view that leaves the columns in their order; the first column names the rows."""
        return TableView(every=True)

    def preview(self, of: str, table: str, rows: int) -> str:
        """Return a note if there may be more rows."""
        return "" if self._result(of).places.complete else "preview: there are more"

    def none(self, of: str, table: str) -> str:
        """Return the text for a filter that no row matches."""
        return "No rows match."

    def unread(self, of: str, table: str) -> str:
        """Return why rows may be missing."""
        return self._result(of).missed

    def nodes(self, of: str, table: str, rows: Sequence[int]) -> Sequence[str | None]:
        """Return the node of each row's file: in the snapshot shown or, if it was removed, in the one that added it."""
        found = self._result(of).places
        return nodes_of_places(found.state, [found[row] for row in rows])

    def docs(self, of: str, table: str) -> Mapping[str, str]:
        """Return what the columns about fates mean."""
        return _DOCS


_DOCS = {
    "_fate": "live, deleted, moved (rewritten into another file), removed (with its file) or unknown",
    "_fate_at": "when the row was deleted, moved or removed",
    "_fate_operation": "operation of the commit that deleted, moved or removed the row",
    "_fate_snapshot_id": "snapshot in which the row was deleted, moved or removed",
    "_deleted_by": "delete file or Puffin file that deletes the row",
    "_delete_kind": "kind of the delete that deletes the row",
    "_moved_to_file": "file in which the row continues",
    "_moved_to_pos": "position of the row in the file in which it continues",
    "_moved_to_guess": "whether the move is a guess from equal values, because the table has no row ids",
    "_file": "data file of the row",
    "_pos": "position in the file, from 0",
    "_row_id": "row id (format version 3 and later)",
    "_added_at": "when the file was added",
    "_story": "the row's fate in a sentence",
}
_LAST = (
    "_fate_at", "_fate_operation", "_fate_snapshot_id", "_deleted_by", "_delete_kind", "_delete_offset", "_deletes",
    "_moved_to_file", "_moved_to_pos", "_moved_to_guess", "_file", "_pos", "_row_id", "_last_updated_sequence_number",
    "_added_at", "_added_operation", "_added_snapshot_id", "_story",
)  # fmt: skip


def _in_order(table: pa.Table, values: Sequence[str]) -> pa.Table:
    """Return the table with its columns reordered: the first value, the fate, the other values, then the rest."""
    own = [name for name in values if name not in (*_LAST, "_fate")]
    names = [*own[:1], "_fate", *own[1:], *_LAST]
    # Leave out columns that are null in every row.
    shown = [name for name in names if name not in _LAST or table[name].null_count < table.num_rows]
    return table.select(shown if table.num_rows else names)


class Rows(TableWidget):
    """A widget that finds rows by a filter, and shows what happened to them: ``Rows(table, rows_filter="id = 7")``.

    ``w.rows_filter = "..."`` searches again, ``w.found`` is the `iceexplore.reading.RowPlaces`.
    """

    panels = (GridPanel, FilterBoxPanel, RowsPanel)

    view_script = sent_script("rows.rowsView")

    @property
    def found(self) -> RowPlaces | None:
        """The rows that are shown; None before the first search."""
        return self._panel(RowsPanel).found
