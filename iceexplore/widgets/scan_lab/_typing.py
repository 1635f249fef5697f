"""Support for typing a filter in the scan lab: errors, completions, and examples."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import traitlets

from iceexplore.errors import OptionError
from iceexplore.graph import TableState, json_safe
from iceexplore.widgets.core._escape_text import signs, signs_of_lines
from iceexplore.widgets.core._table_widget import shown
from iceexplore.widgets.core._worker import Work
from iceexplore.widgets.scan_lab._plans import ScanPlans

if TYPE_CHECKING:
    from iceexplore.expressions import Completion
    from iceexplore.planning import Examples

__all__ = ["ScanTyping"]

_LONGEST = 100_000
_COLUMNS = 1000
#: The introduction to the examples.
_WORDS: dict[str, Any] = {
    "blocks": [
        [
            "p",
            [
                ["b", "Which files does a query read?"],
                "Type a filter above; planning reads no data. Or try one of these:",
            ],
        ]
    ]
}


class ScanTyping(ScanPlans):
    """The filter box, a base class of `iceexplore.widgets.scan_lab._panel.ScanPart`."""

    scan_draft = traitlets.Dict().tag(sync=True)
    scan_hint = traitlets.Dict().tag(sync=True)
    scan_examples = traitlets.Dict(_WORDS).tag(sync=True)

    def _prepare(self) -> None:
        super()._prepare()
        self._hints = Work(self._fail, self._answer)  # a separate worker, so that typing does not wait for reads
        self._examples_lock = threading.Lock()
        self._examples: dict[str, Examples] = {}

    def _begin(self) -> None:
        super()._begin()
        self.observe(self._on_scan_draft, "scan_draft")

    def settle(self, timeout: float | None = None) -> bool:
        """Wait until all requests are answered and shown; return False if that takes more than ``timeout`` seconds."""
        return self._hints.settle(timeout) and super().settle(timeout)

    def close(self) -> None:
        """Remove the widget and stop reading."""
        if hasattr(self, "_hints"):
            self._hints.close()
        super().close()

    @shown
    def _on_scan_draft(self, change: Any) -> None:
        draft = self.scan_draft
        text, at, number = draft.get("text"), draft.get("at"), draft.get("n")
        if not isinstance(text, str) or type(at) is not int or type(number) is not int:
            raise OptionError(f"scan_draft={str(draft)[:200]}: give n, text and at (an integer from 0)")
        snapshot = self.selection["snapshot"]

        def read() -> dict[str, Any]:
            from iceexplore.expressions import Completion, complete_filter
            from iceexplore.planning import make_filter

            state = self._state_at(snapshot)
            place = _characters(text, at)
            error, found = "", Completion(place, place, ())
            try:
                values = self._examples_of(snapshot, state).values
                found = complete_filter(state.schema, text, place, lambda i: values.get(i, ()))
                if text.strip():
                    make_filter(state.metadata, state.schema, text)
            except OptionError as fault:
                error = str(fault)
            choices = [[json_safe(c.text), signs(c.note), json_safe(_put(text, found, c.text))] for c in found.choices]
            unfinished = "the text ends" in error.partition("\n")[0]
            words = {"error": signs_of_lines(error[:_LONGEST]), "unfinished": unfinished}
            start, end = (_units(text[:to]) for to in (found.start, found.end))
            asked = {"n": number, "text": text, "at": at, "start": start, "end": end}
            return {**asked, "choices": choices, **words}

        def show(hint: dict[str, Any]) -> None:
            self.scan_hint = hint

        self._hints.submit("hint", read, show)

    def _examples_of(self, snapshot: str, state: TableState) -> Examples:
        from iceexplore.planning import examples_of

        with self._examples_lock:
            if snapshot not in self._examples:
                self._examples = {snapshot: examples_of(state)}
            return self._examples[snapshot]

    def _ask_examples(self, ask: Mapping[str, Any]) -> None:
        snapshot = self.selection["snapshot"]

        def read() -> dict[str, Any]:
            from iceexplore.expressions import complete_filter

            state = self._state_at(snapshot)
            columns = complete_filter(state.schema, "", 0, most=_COLUMNS).choices
            made = self._examples_of(snapshot, state)
            return {
                **_WORDS,
                "snapshot": snapshot,
                "columns": [[json_safe(c.text), signs(c.note)] for c in columns if c.kind == "column"],
                "names": [json_safe(f.name) for f in state.schema.fields[:_COLUMNS]],
                "filters": [*(json_safe(f) for f in made.filters), "true"],
            }

        def show(found: dict[str, Any]) -> None:
            self.scan_examples = found

        self._hints.submit("examples", read, show)


def _put(text: str, found: Completion, choice: str) -> str:
    """Return the replacement of the text from ``start`` to ``end`` for a choice, with spaces between words."""
    before, after = text[: found.start], text[found.end :]
    first = "" if not before or before[-1].isspace() or before.endswith("(") else " "
    return first + choice + ("" if choice.endswith("(") or after.startswith(" ") else " ")


def _units(text: str) -> int:
    """Return the length of a text in UTF-16 units, which browsers count."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _characters(text: str, units: int) -> int:
    """Return the number of characters before a position given in UTF-16 units."""
    before = text.encode("utf-16-le", "surrogatepass")[: 2 * max(0, units)]
    return len(before.decode("utf-16-le", "surrogatepass"))
