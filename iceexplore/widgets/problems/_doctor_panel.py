"""Examine the table, list what is broken and since when, and show what a repair would change."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any

import traitlets

from iceexplore.errors import OptionError
from iceexplore.widgets.core._panel import Panel, PanelHost, SyncedTrait
from iceexplore.widgets.problems._findings import findings_sent
from iceexplore.widgets.problems._repair import plan_sent, sides_of
from iceexplore.widgets.tree._sides import Sides

if TYPE_CHECKING:
    from iceexplore.doctor import RepairPlan, Report

__all__ = ["DoctorPanel"]

_SNAPSHOTS = ("current", "all")
#: Severities of findings, worst first: a copy of `iceexplore.doctor.EFFECTS`, as that package is imported only if
#: needed.
_EFFECTS = ("fail", "wrong", "slow", "untidy")
_CAPTIONS = {"before": "Now: − removed, = kept", "after": "Repaired: + added, − removed, = kept"}
_UNCHECKED = "Check the table first: the repair is planned from the findings."


class DoctorPanel(Panel):
    """The doctor's panel: it runs a check, and plans the repair of what the check found.

    Attributes
    ----------
    doctor_asked
        The browser's last request: ``do`` is ``check`` (with ``level`` and ``snapshots``, as in
        `iceexplore.Table.check`) or ``repair``. The trait `cancelled` stops both.
    doctor_running
        Whether a check is running or a repair is being planned; until it ends, the browser does not request another.
    doctor_report
        The last report; empty before the first. ``id``, ``level`` and ``snapshots``; ``scope``, what was examined, as
        text; ``left_out``, the number of snapshots that were not examined; ``broken``, the numbers of findings as text
        by the id of the affected snapshot, for `TimelinePanel.broken`; ``counts``, the numbers of findings by severity,
        and ``sums``, the same as text; ``findings``; ``more``, a text about findings that are not listed; and
        ``notes``, what could not be checked. A finding has a stable ``id``, ``code``, ``title``, ``severity``,
        ``text``, ``lines`` (pairs of label and text), ``node`` (what to select to see its place; None if there is no
        node for it), ``since`` (what to select to see the snapshot that introduced it; None if unknown), ``places``,
        and ``follows``, the findings that it causes.
    doctor_effects
        The severities shown.
    doctor_draft
        What the user has chosen in the browser: ``tab``, ``level`` and ``snapshots``.
    repair_plan
        The repair plan: ``of``, the id of the report that it repairs; ``headline``; ``blocks``, the steps; ``python``;
        ``sql``; ``before`` and ``after``, the captions of the two trees; and ``note``, a sentence about the trees.
    repair_draft
        The selected node of each tree, ``before`` and ``after``.
    repair_before_nodes, repair_before_roots, repair_before_expanded
        The tree before the repair; the traits ``repair_after_*`` are the tree of the repaired, simulated table.
    """

    later = ("iceexplore.doctor",)

    doctor_asked = SyncedTrait(traitlets.Dict())
    doctor_running = SyncedTrait(traitlets.Bool(False))
    doctor_report = SyncedTrait(traitlets.Dict())
    doctor_effects = SyncedTrait(traitlets.List(traitlets.Unicode(), list(_EFFECTS)))
    doctor_draft = SyncedTrait(traitlets.Dict())
    repair_plan = SyncedTrait(traitlets.Dict())
    repair_draft = SyncedTrait(traitlets.Dict())
    repair_before_nodes = SyncedTrait(traitlets.Dict())
    repair_before_roots = SyncedTrait(traitlets.List(traitlets.Unicode()))
    repair_before_expanded = SyncedTrait(traitlets.List(traitlets.Unicode()))
    repair_after_nodes = SyncedTrait(traitlets.Dict())
    repair_after_roots = SyncedTrait(traitlets.List(traitlets.Unicode()))
    repair_after_expanded = SyncedTrait(traitlets.List(traitlets.Unicode()))

    def __init__(self, host: PanelHost) -> None:
        super().__init__(host)
        self.report: Report | None = None
        self.plan: RepairPlan | None = None
        self._count = 0
        self._sides = Sides(self, "repair")

    def begin(self) -> None:
        """Answer requests."""
        self.host.observe_requests(self._on_asked, "doctor_asked")
        self._sides.begin()

    def close(self) -> None:
        """Release the report, the simulation and its trees."""
        self.report = self.plan = None
        self._sides.close()

    def no_kernel_html(self) -> str:
        """Return the report as HTML; empty before a check."""
        return "" if self.report is None else self.report._repr_html_()

    def _on_asked(self, asked: Mapping[str, Any]) -> None:
        self.host.shown(lambda: self._answer(asked))

    def _answer(self, asked: Mapping[str, Any]) -> None:
        if asked.get("do") == "check":
            self.check(asked.get("level", "metadata"), asked.get("snapshots", "current"))
        elif asked.get("do") == "repair":
            self.repair()
        else:
            raise OptionError(f"doctor_asked={str(asked.get('do'))[:40]!r}: choose 'check' or 'repair'")

    def check(self, level: Any, snapshots: Any) -> None:  # noqa: ANN401  the browser may send anything
        """Examine the table in the worker, step by step, and show the report.

        Raises
        ------
        OptionError
            The level or the choice of snapshots is unknown.
        """
        from iceexplore.doctor import check_options, examine_in_steps, verify_here

        check_options(level, None, ())
        if snapshots not in _SNAPSHOTS:
            raise OptionError(f"snapshots={str(snapshots)[:40]!r}: choose 'current' or 'all'")
        state, shown = self.host.state, self.host.snapshot
        # If the widget was made from a Table, `plan.table` is a Simulation, whose class is in a higher layer; hence
        # `getattr`.
        after_commits = getattr(self.host.table, "_shown_after", lambda sandbox: sandbox.state)

        def read() -> Generator[str, None, tuple[Report, dict[str, Any]]]:
            report = yield from examine_in_steps(
                state, level=level, verify=verify_here(), snapshots=snapshots, show=after_commits
            )
            return report, findings_sent(report, state, shown)

        def show(made: tuple[Report, dict[str, Any]]) -> None:
            self.report, sent = made
            self.plan = None
            self._count += 1
            with self.host.hold_sync():
                self.doctor_running = False
                self.doctor_report = {"id": str(self._count), "snapshots": snapshots, **sent}
                self.repair_plan = {}
                self._sides.clear()

        self.doctor_running = True
        self.host.run("doctor", "Checking the table", read, show)

    def repair(self) -> None:
        """Plan the repair of the last report's findings, and show its steps and the trees before and after it.

        Raises
        ------
        OptionError
            The table has not been checked yet.
        """
        report, state = self.report, self.host.state
        if report is None:
            raise OptionError(_UNCHECKED)
        of, snapshots = self.doctor_report["id"], self.doctor_report["snapshots"]

        def read() -> Generator[str, None, Any]:
            plan = report.repair()
            yield "Counting the rows …"  # the plan counts rows when it is first shown
            sent = plan_sent(plan, state, level=report.level, snapshots=snapshots)
            yield "Comparing the trees …"
            return plan, sent, *sides_of(plan, state)

        def show(made: Any) -> None:  # noqa: ANN401
            self.plan, sent, trees, grown, note = made
            with self.host.hold_sync():  # one message, so that the steps and both trees are of the same plan
                self.doctor_running = False
                self.repair_plan = {"of": of, **sent, **_CAPTIONS, "note": note}
                self._sides.show(trees, grown)

        self.doctor_running = True
        self.host.run("doctor", "Planning the repair", read, show)

    def on_cancelled(self, selection: Mapping[str, str]) -> None:
        """Accept requests again."""
        self.doctor_running = False

    def on_failed(self) -> None:
        """Accept requests again, because it may be a check or a repair that failed."""
        self.doctor_running = False
