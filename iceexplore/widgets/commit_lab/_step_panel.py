"""The result of a step of the commit lab: trees before and after, sentences, tables; then rules and costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import traitlets

from iceexplore.errors import IceexploreError
from iceexplore.widgets.commit_lab._figures import step_figure
from iceexplore.widgets.commit_lab._report import Report, bars, compared, costs_sent, headline_sent
from iceexplore.widgets.commit_lab._session import Line, Session, Step
from iceexplore.widgets.commit_lab._step_tables import StepTables
from iceexplore.widgets.core._escape_text import signs
from iceexplore.widgets.core._panel import Panel, PanelHost, SyncedTrait
from iceexplore.widgets.grid._panel import GridPanel
from iceexplore.widgets.tree._side_tree import SideTree
from iceexplore.widgets.tree._sides import SIDES, Sides

if TYPE_CHECKING:
    from iceexplore.graph import TableState

__all__ = ["StepPanel"]

_GRID = "commit"
_START = {
    "id": "",
    "title": "The table now",
    "text": ["Choose an operation and apply it. This is a simulation: the table is never written."],
    "after": "Now",
}
_CAPTIONS = {"before": "Before: − removed, = kept", "after": "After: + added, − removed, = kept"}
#: Texts that are shown until the results are computed.
_WAITING = {"checked": "Checking the rules …", "compared": "Running the same operation in another layout …"}
_CANCELLED = "The step is done, but reading its result was cancelled. Select the step above to read it."


class StepPanel(Panel):
    """The result of a step. Grid ``"commit"`` has its tables, and those of the items of its trees (`StepTables`).

    Attributes
    ----------
    commit_report
        The last step done: ``id``, ``title``, ``text`` (sentences), captions of the trees ``before`` and ``after``, and
        when ready ``figure`` (SVG, the same as text, and the width in pixels), ``headline`` (parts: what was written,
        and what the next plan reads), ``checked`` (a sentence about rules), ``compared`` (one about costs) and
        ``costs`` (blocks).
    commit_item
        The item of the trees whose tables are shown: ``side``, ``node``, ``table`` (its key); each may be missing, see
        `StepTables`.
    commit_before_nodes, commit_before_roots, commit_before_expanded
        The tree before the step; ``commit_after_*`` is the tree after it.
    """

    commit_report = SyncedTrait(traitlets.Dict())
    commit_item = SyncedTrait(traitlets.Dict())
    commit_before_nodes = SyncedTrait(traitlets.Dict())
    commit_before_roots = SyncedTrait(traitlets.List(traitlets.Unicode()))
    commit_before_expanded = SyncedTrait(traitlets.List(traitlets.Unicode()))
    commit_after_nodes = SyncedTrait(traitlets.Dict())
    commit_after_roots = SyncedTrait(traitlets.List(traitlets.Unicode()))
    commit_after_expanded = SyncedTrait(traitlets.List(traitlets.Unicode()))

    def __init__(self, host: PanelHost) -> None:
        super().__init__(host)
        self._shown: Step | None = None
        self._reports: dict[str, Report] = {}
        host.panel(GridPanel).add(_GRID, StepTables(self._reports))
        self._known: dict[str, dict[str, Any]] = {}
        self._sides = Sides(self, "commit")

    def begin(self) -> None:
        """Answer requests to unfold nodes."""
        self._sides.begin()

    def close(self) -> None:
        """Release the simulations."""
        self._shown, self._known = None, {}
        self._sides.close()
        self._reports.clear()

    def _report(self, step: Step) -> Report:
        return self._reports.setdefault(step.id, Report(step))

    def show(self, session: Session) -> None:
        """Show the session's last step: its figure and headline first, then its trees, then rules and costs."""
        self._shown, step, line = session.step, session.step, session.line
        table = session.table.state
        known = self._known.setdefault("" if step is None else step.id, {})

        def read() -> tuple[dict[str, Any], dict[str, Any]]:
            sent: dict[str, Any] = _START
            if step is not None:
                sent = {"id": step.id, "title": step.title, "text": self._report(step).text(), **_CAPTIONS, **_WAITING}
            return sent, {} if "figure" in known else self._picture(step, table)

        def show(made: tuple[dict[str, Any], dict[str, Any]]) -> None:
            report, picture = made
            known.update(picture)
            with self.host.hold_sync():
                if report["id"] != self.commit_report.get("id"):
                    self.commit_item = {}  # it belongs to a different step
                    self._sides.clear()
                self.commit_report = report | known
            self._draw_trees(step, table)
            if step is not None:
                self._more(session, line, step)

        self.host.run("commit", "Reading", read, show)

    def _picture(self, step: Step | None, table: TableState) -> dict[str, Any]:
        """Return the figure and the headline, which sums up the costs."""
        report = None if step is None else self._report(step)
        before, after = (None, table) if report is None else (report.before, report.after)
        made: dict[str, Any] = {}
        try:
            drawn = step_figure(before, after)
            made["figure"] = None if drawn is None else list(drawn)
            made["headline"] = [] if report is None else headline_sent(report)
        except IceexploreError as error:  # a damaged table: the trees show what can be read
            made.setdefault("figure", None)
            made["headline"] = [signs(f"The figure cannot be drawn: {error}")]
        return made

    def _draw_trees(self, step: Step | None, table: TableState) -> None:
        """Show the trees before and after the step; without a step, the table's tree."""

        def read() -> tuple[dict[str, SideTree], dict[str, dict[str, Any]]]:
            if step is None:
                sides = {"after": SideTree(table, None, None, "after")}
            else:
                sides = dict(zip(SIDES, self._report(step).sides, strict=True))
            return sides, {name: side.first() for name, side in sides.items()}

        def show(made: tuple[dict[str, SideTree], dict[str, dict[str, Any]]]) -> None:
            with self.host.hold_sync():  # one message, so that both sides are of the same step
                self._sides.show(*made)

        self.host.run("commit:trees", "Reading the trees", read, show)

    def _more(self, session: Session, line: Line, step: Step) -> None:
        """Check the rules and compute the costs of the step shown, which may take a while."""
        report = self._report(step)
        known = self._known.setdefault(step.id, {})

        def show(made: dict[str, Any]) -> None:
            known.update(made)
            if self.commit_report.get("id") == step.id:
                self.commit_report = {**self.commit_report, **made}

        def rules() -> dict[str, Any]:
            try:
                return {"checked": report.checked()}
            except IceexploreError as error:  # a damaged table: the step's result is shown nevertheless
                why = str(error).removeprefix("rules cannot be checked: ")
                return {"checked": signs(f"Rules cannot be checked: {why}")}

        def costs() -> dict[str, Any]:
            try:
                twin = session.twin(line, step)
                return {"costs": costs_sent(bars(report, twin)), "compared": signs(compared(report, twin))}
            except IceexploreError as error:
                return {"compared": signs(f"The operation could not be run in another layout. {error}")}

        if "checked" not in known:
            self.host.run("commit:rules", "Checking the rules", rules, show)
        if "costs" not in known:
            self.host.run("commit:costs", "Running the same operation in another layout", costs, show)

    def on_cancelled(self, selection: Mapping[str, str]) -> None:
        """Replace the placeholders for results that will not be computed."""
        step = self._shown
        if step is not None and (self.commit_report.get("id") != step.id or not self.commit_after_roots):
            self._report(step)
            with self.host.hold_sync():
                self.commit_report = {"id": step.id, "title": step.title, "text": [_CANCELLED]}
                self._sides.clear()
            return
        waiting = {name for name, text in _WAITING.items() if self.commit_report.get(name) == text}
        if waiting:
            self.commit_report = {**self.commit_report, **dict.fromkeys(waiting, "")}
