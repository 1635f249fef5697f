"""Make findings of health checks: thresholds with their sources, and a severity that depends on the cost for a scan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from iceexplore.doctor.examination._examination import Examination
from iceexplore.doctor.maintenance._plan import DEFAULT, Threshold
from iceexplore.doctor.model._finding import Finding, finding_of
from iceexplore.doctor.model._hits import Hits
from iceexplore.errors import Effect, problem
from iceexplore.graph import human_bytes
from iceexplore.planning import SplitOptions

__all__ = ["DOCTOR", "OPEN_COST", "PROPERTY", "SPLIT_SIZE", "Waste", "first_number", "health_finding"]

#: Texts for the source of a threshold that is not Iceberg's default (`DEFAULT`): a table property sets it, or the
#: doctor chooses it because Iceberg has no property for it.
PROPERTY, DOCTOR = "table property", "the doctor's default"
SPLIT_SIZE, OPEN_COST = "read.split.target-size", "read.split.open-file-cost"


def first_number(properties: dict[str, str], name: str, default: int) -> Threshold:
    """Return a table property as a threshold; Iceberg's default if the property is not set or not a whole number."""
    text = properties.get(name, "")
    if text.isascii() and text.isdecimal() and len(text) < 19:
        return Threshold(name, text, PROPERTY)
    return Threshold(name, str(default), DEFAULT)


class Waste:
    """The rule that makes a fault ``slow``: without the fault, a scan would need at least one fewer read task.

    The cost of reading a file is counted as in Spark's planner: its bytes, but at least
    ``read.split.open-file-cost``. Readers hardly notice a fault that costs less than one task
    (``read.split.target-size``): its severity is ``untidy``.
    """

    def __init__(self, examination: Examination) -> None:
        properties = examination.state.metadata.properties
        options = SplitOptions.of(properties)
        self.open_cost = options.open_file_cost
        self.task = options.size
        self.source = PROPERTY if SPLIT_SIZE in properties else DEFAULT

    def severity(self, saved: float) -> Effect:
        """Return the severity of a fault: ``slow`` if it costs a scan at least one read task, ``untidy`` if less.

        Parameters
        ----------
        saved
            The cost of the fault for a scan, in bytes, which the scan would save without the fault.
        """
        return "slow" if saved >= self.task else "untidy"

    def __str__(self) -> str:
        size = f"{SPLIT_SIZE} = {self.task} ({human_bytes(self.task)})"
        return f"severity slow if a scan wastes at least {size}, {self.source}"


def health_finding(
    examination: Examination,
    code: str,
    where: str,
    text: str,
    *,
    found: object,
    thresholds: Sequence[Threshold],
    field: str | None = None,
    severity: Effect | None = None,
    waste: Waste | None = None,
    count: int = 1,
    places: Iterable[str] = (),
    snapshots: Iterable[int] | None = None,
    hits: Hits | None = None,
) -> Finding:
    """Return a finding of a health check.

    Parameters
    ----------
    thresholds
        The thresholds that were exceeded, each with its source; they become the finding's ``expected``.
    severity
        The severity; by default that of the code.
    waste
        The estimated waste from which the severity was derived, if any.
    snapshots
        The ids of the affected snapshots; by default, the id of the state's snapshot.
    hits
        All data files that the finding is about; None if ``places`` names all of them. Data files whose manifest
        entries are known are given as positions in manifests, which saves comparing long locations. Other data files
        are given by their locations.
    """
    expected = "; ".join(map(str, (*thresholds, *(() if waste is None else (waste,)))))
    item = problem(code, where, text, field=field, found=found, expected=expected)
    snapshot = examination.state.snapshot
    shown = () if snapshot is None else (snapshot.snapshot_id,)
    of = shown if snapshots is None else snapshots
    made = finding_of(item, snapshots=of, count=count, places=places, hits=hits)
    return made if severity is None else replace(made, severity=severity)
