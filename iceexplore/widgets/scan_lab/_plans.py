"""The plans of the scan lab, with a cache of the latest ones."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from iceexplore.errors import OptionError

if TYPE_CHECKING:
    from iceexplore.graph import TableState
    from iceexplore.planning import PlanNodes, ScanPlan

__all__ = ["Asked", "PlanCache", "ShownPlan"]

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


class PlanCache:
    """The latest plans, each made once.

    Parameters
    ----------
    state_at
        A function that returns the table's state at a snapshot, given by its id in decimal.
    """

    def __init__(self, state_at: Callable[[str], TableState]) -> None:
        self._state_at = state_at
        self._lock = threading.Lock()
        self._plans: OrderedDict[Asked, ShownPlan] = OrderedDict()
        self._count = 0

    def plan(self, asked: Asked) -> ShownPlan:
        """Return the plan for these inputs.

        Raises
        ------
        OptionError
            The filter or a column is invalid.
        """
        from iceexplore.planning import PlanNodes, plan_scan

        with self._lock:  # the worker and the notebook may both ask for a plan; the second waits and finds it
            if asked not in self._plans:
                state = self._state_at(asked.snapshot)
                columns = asked.columns or None
                plan = plan_scan(state, asked.filter, columns=columns, row_groups=asked.row_groups)
                self._count += 1
                self._plans[asked] = ShownPlan(str(self._count), asked, plan, PlanNodes(plan))
            self._plans.move_to_end(asked)
            while len(self._plans) > _KEPT:
                self._plans.popitem(last=False)
            return self._plans[asked]

    def numbered(self, number: str) -> ShownPlan:
        """Return the plan with this number.

        Raises
        ------
        OptionError
            The plan is no longer cached.
        """
        found = next((s for s in self._plans.values() if s.number == number), None)
        if found is None:
            raise OptionError("this plan is no longer available: plan again")
        return found
