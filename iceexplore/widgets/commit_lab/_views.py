"""The display of a step of the commit lab: trees before and after, sentences, tables; then rules and costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import traitlets

from iceexplore.errors import IceexploreError, OptionError
from iceexplore.widgets.commit_lab._report import Report, bars, compared, costs_sent
from iceexplore.widgets.commit_lab._session import Line, Session, Step
from iceexplore.widgets.commit_lab._tree import SideTree
from iceexplore.widgets.core._escape_text import signs
from iceexplore.widgets.core._table_widget import shown
from iceexplore.widgets.grid._panel import GridPart

if TYPE_CHECKING:
    import pandas as pd

    from iceexplore.widgets.grid._table import GridTable

__all__ = ["CommitShown"]

_GRID = "commit"
_SIDES = ("before", "after")
_START = {
    "id": "",
    "title": "The table now",
    "text": ["Choose an operation and apply it. This is a simulation: the table is never written."],
    "after": "Now",
}
_CAPTIONS = {"before": "Before: − removed, = kept", "after": "After: + added, − removed, = kept"}
#: Placeholders for answers.
_WAITING = {"checked": "Checking the rules …", "compared": "Running the same operation in another layout …"}
_CANCELLED = "The step is done, but reading its result was cancelled. Select the step above to read it."
_NOTHING: dict[str, Any] = {"nodes": {}, "roots": [], "expanded": []}


class CommitShown(GridPart):
    """The display of a step. Grid ``"commit"`` has the tables of the step whose id is ``of`` (`Report.frame`).

    Attributes
    ----------
    commit_report
        The last step done: ``id``, ``title``, ``text`` (sentences), captions of the trees ``before`` and ``after``, and
        when ready ``checked`` (a sentence about rules), ``compared`` (one about costs) and ``costs`` (blocks).
    commit_before_nodes, commit_before_roots, commit_before_expanded
        The tree before the step; ``commit_after_*`` is the tree after it.
    """

    commit_report = traitlets.Dict().tag(sync=True)
    commit_before_nodes = traitlets.Dict().tag(sync=True)
    commit_before_roots = traitlets.List(traitlets.Unicode()).tag(sync=True)
    commit_before_expanded = traitlets.List(traitlets.Unicode()).tag(sync=True)
    commit_after_nodes = traitlets.Dict().tag(sync=True)
    commit_after_roots = traitlets.List(traitlets.Unicode()).tag(sync=True)
    commit_after_expanded = traitlets.List(traitlets.Unicode()).tag(sync=True)

    def _prepare(self) -> None:
        super()._prepare()
        self._shown: Step | None = None
        self._reports: dict[str, Report] = {}
        self._known: dict[str, dict[str, Any]] = {}
        self._sides: dict[str, SideTree] = {}
        self._growing = False

    def _begin(self) -> None:
        super()._begin()
        self.observe(self._on_commit_cancelled, "cancelled")
        for side in _SIDES:
            self.observe(self._on_commit_expanded, f"commit_{side}_expanded")

    def close(self) -> None:
        """Remove the widget and release its simulations."""
        super().close()
        self._shown, self._reports, self._known, self._sides = None, {}, {}, {}

    def _report(self, step: Step) -> Report:
        return self._reports.setdefault(step.id, Report(step))

    def _show(self, session: Session) -> None:
        """Show the session's last step: its trees first, then rules and costs, which take longer."""
        self._shown, step, line = session.step, session.step, session.line
        table = session.table.state

        def read() -> tuple[dict[str, SideTree], dict[str, dict[str, Any]], dict[str, Any]]:
            if step is None:
                sides = {"after": SideTree(table, None, None, "after")}
                return sides, {"after": sides["after"].first()}, _START
            report = self._report(step)
            sides = dict(zip(_SIDES, report.sides, strict=True))
            grown = {name: side.first() for name, side in sides.items()}
            sent = {"id": step.id, "title": step.title, "text": report.text(), **_CAPTIONS}
            return sides, grown, sent | _WAITING | self._known.get(step.id, {})

        def show(made: tuple[dict[str, SideTree], dict[str, dict[str, Any]], dict[str, Any]]) -> None:
            self._sides, grown, report = made
            with self.hold_sync():  # one message, so that both sides are of the same step
                self.commit_report = report
                for name in _SIDES:
                    self._grown(name, grown.get(name, _NOTHING))
            if step is not None:
                self._more(session, line, step)

        self._do("commit", "Reading", read, show)

    def _more(self, session: Session, line: Line, step: Step) -> None:
        """Compute the rules and the costs of the step shown, which may take a while."""
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
            self._do("commit:rules", "Checking the rules", rules, show)
        if "costs" not in known:
            self._do("commit:costs", "Running the same operation in another layout", costs, show)

    @shown
    def _on_commit_cancelled(self, change: Any) -> None:
        """Replace placeholders for answers that will not come."""
        step = self._shown
        if step is not None and self.commit_report.get("id") != step.id:
            self._report(step)
            with self.hold_sync():
                self.commit_report = {"id": step.id, "title": step.title, "text": [_CANCELLED]}
                for name in _SIDES:
                    self._grown(name, _NOTHING)
            return
        waiting = {name for name, text in _WAITING.items() if self.commit_report.get(name) == text}
        if waiting:
            self.commit_report = {**self.commit_report, **dict.fromkeys(waiting, "")}

    def _grown(self, side: str, grown: Mapping[str, Any]) -> None:
        self._growing = True
        try:
            for name, value in grown.items():
                setattr(self, f"commit_{side}_{name}", value)
        finally:
            self._growing = False

    @shown
    def _on_commit_expanded(self, change: Any) -> None:
        if self._growing:
            return
        side = change["name"].split("_")[1]
        tree, wanted = self._sides.get(side), list(change["new"])
        nodes = getattr(self, f"commit_{side}_nodes")
        if tree is None or all(i in nodes and nodes[i]["children"] is not None for i in wanted):
            return

        def show(grown: dict[str, Any]) -> None:
            with self.hold_sync():
                self._grown(side, grown)

        self._do(f"commit:{side}", "Reading", lambda: tree.grow(wanted), show)

    def _grid_frame(self, grid: str, of: str, table: str) -> pd.DataFrame | GridTable:
        if grid != _GRID:
            return super()._grid_frame(grid, of, table)
        if of not in self._reports:
            raise OptionError(f"step {of[:40]!r} no longer exists")
        return self._reports[of].frame(table)
