"""The box in which a filter is typed: errors, completions, and examples."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import traitlets
from traitlets import Bunch

from iceexplore.errors import OptionError
from iceexplore.graph import TableState, json_safe
from iceexplore.widgets.core._escape_text import signs, signs_of_lines
from iceexplore.widgets.core._panel import Panel, PanelHost, SyncedTrait, shown
from iceexplore.widgets.core._worker import Work

if TYPE_CHECKING:
    from iceexplore.expressions import Completion
    from iceexplore.planning import Examples

__all__ = ["FilterBoxPanel"]

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


class FilterBoxPanel(Panel):
    """The box in which a filter is typed.

    Attributes
    ----------
    scan_draft
        What the box in the browser contains: ``n``, incremented; ``text``; and ``at``, the position of the cursor in
        UTF-16 units.
    scan_hint
        The answer. It repeats the draft's ``n``, ``text`` and ``at``, and has ``choices``, the completions, which
        replace the text from ``start`` to ``end``; ``error``, what is wrong with the text; and ``unfinished``, whether
        the text may become valid when more is typed.
    scan_examples
        Filters to try and the columns of the snapshot, as requested by `request_examples`.
    """

    scan_draft = SyncedTrait(traitlets.Dict())
    scan_hint = SyncedTrait(traitlets.Dict())
    scan_examples = SyncedTrait(traitlets.Dict(_WORDS))

    def __init__(self, host: PanelHost) -> None:
        super().__init__(host)
        self._hints = Work(host.fail, host.answer)  # a separate worker, so that typing does not wait for reads
        self._examples_lock = threading.Lock()
        self._examples: dict[str, Examples] = {}

    def begin(self) -> None:
        """Answer each draft with a hint."""
        self.host.observe(self._on_scan_draft, "scan_draft")

    def settle(self, timeout: float | None) -> bool:
        """Wait for hints and examples; return False if that takes more than ``timeout`` seconds."""
        return self._hints.settle(timeout)

    def close(self) -> None:
        """Stop computing hints and examples."""
        self._hints.close()

    def follow(self) -> None:
        """Offer the columns of the selected snapshot, if the columns of a different snapshot are offered now."""
        snapshot = self.host.selection["snapshot"]
        if self.scan_examples.get("snapshot", snapshot) != snapshot:
            self.request_examples()

    @shown
    def _on_scan_draft(self, change: Bunch) -> None:
        draft = self.scan_draft
        text, at, number = draft.get("text"), draft.get("at"), draft.get("n")
        if not isinstance(text, str) or type(at) is not int or type(number) is not int:
            raise OptionError(f"scan_draft={str(draft)[:200]}: give n, text and at (an integer from 0)")
        snapshot = self.host.selection["snapshot"]

        def read() -> dict[str, Any]:
            from iceexplore.expressions import Completion, complete_filter
            from iceexplore.planning import make_filter

            state = self.host.state_at(snapshot)
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

    def request_examples(self) -> None:
        """Make filters to try, and list the columns."""
        snapshot = self.host.selection["snapshot"]

        def read() -> dict[str, Any]:
            from iceexplore.expressions import complete_filter

            state = self.host.state_at(snapshot)
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
    """Return the text to insert for a chosen completion, with spaces where words would touch."""
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
