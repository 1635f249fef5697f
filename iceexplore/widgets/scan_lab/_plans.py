"""The plans of the scan lab, with a cache of the latest ones."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import traitlets

from iceexplore.graph import TableState, travel
from iceexplore.widgets.grid._panel import GridPart

if TYPE_CHECKING:
    from iceexplore.planning import PlanNodes, ScanPlan

__all__ = ["Asked", "ScanPlans", "ShownPlan"]

_KEPT = 2


class Asked(NamedTuple):
    """The inputs of a plan."""

    snapshot: str
    filter: str
    columns: tuple[str, ...]
    row_groups: bool


@dataclass(frozen=True, eq=False)
class ShownPlan:
    """A plan and its number, by which the browser refers to it."""

    number: str
    asked: Asked
    plan: ScanPlan
    nodes: PlanNodes


class ScanPlans(GridPart):
    """The inputs and their plan, a base class of `iceexplore.widgets.scan_lab._panel.ScanPart`."""

    scan_filter = traitlets.Unicode().tag(sync=True)
    scan_columns = traitlets.List(traitlets.Unicode()).tag(sync=True)
    scan_row_groups = traitlets.Bool().tag(sync=True)

    def _prepare(self) -> None:
        super()._prepare()
        self._scan_lock = threading.Lock()
        self._plans: OrderedDict[Asked, ShownPlan] = OrderedDict()
        self._plan_count = 0

    @property
    def plan(self) -> ScanPlan | None:
        """The plan of the current inputs, created on first access; None without a filter.

        Raises
        ------
        OptionError
            The filter or a column is invalid.
        """
        return self._plan_of(self._asked()).plan if self.scan_filter.strip() else None

    def _asked(self) -> Asked:
        return Asked(
            self.selection["snapshot"], self.scan_filter.strip(), tuple(self.scan_columns), self.scan_row_groups
        )

    def _state_at(self, snapshot: str) -> TableState:
        own = self._state.snapshot
        if not snapshot or (own is not None and str(own.snapshot_id) == snapshot):
            return self._state
        return travel(self._state, snapshot=self._snapshot_of(snapshot).snapshot_id)

    def _plan_of(self, asked: Asked) -> ShownPlan:
        """Return a plan; the latest ones are cached."""
        from iceexplore.planning import PlanNodes, plan_scan

        with self._scan_lock:  # used by the worker and the notebook; the second waits and finds the plan
            if asked not in self._plans:
                state = self._state_at(asked.snapshot)
                columns = asked.columns or None
                plan = plan_scan(state, asked.filter, columns=columns, row_groups=asked.row_groups)
                self._plan_count += 1
                self._plans[asked] = ShownPlan(str(self._plan_count), asked, plan, PlanNodes(plan))
            self._plans.move_to_end(asked)
            while len(self._plans) > _KEPT:
                self._plans.popitem(last=False)
            return self._plans[asked]
