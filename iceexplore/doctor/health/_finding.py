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
PROPERTY, DOCTOR = "table property", "iceexplore's default"
SPLIT_SIZE, OPEN_COST = "read.split.target-size", "read.split.open-file-cost"


def first_number(properties: dict[str, str], name: str, default: int) -> Threshold:
    """Return a table property as a threshold; Iceberg's default if the property is not set or not a whole number."""
    text = properties.get(name, "")
    if text.isascii() and text.isdecimal() and len(text) < 19:
        return Threshold(name, text, PROPERTY)
    return Threshold(name, str(default), DEFAULT)


class Waste:
    """The rule for the severity of a fault that makes scans read more bytes than necessary.

    The severity is ``slow`` if a scan wastes at least the bytes of one read task (``read.split.target-size``). Readers
    hardly notice a smaller waste: the severity is then ``untidy``. As in Spark's planner, a small file counts as
    ``read.split.open-file-cost`` bytes, because opening it takes time, too.

    Attributes
    ----------
    open_cost
        The minimum number of bytes that a file counts as.
    task
        The number of bytes of a read task.
    source
        Where ``task`` comes from: `PROPERTY` if the table sets the property, otherwise `DEFAULT`.
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
            The number of bytes that a scan would save without the fault.
        """
        return "slow" if saved >= self.task else "untidy"

    def __str__(self) -> str:
        size = f"{SPLIT_SIZE} = {self.task} ({human_bytes(self.task)})"
        return f"the severity is 'slow' if a scan wastes one read task or more: {size}, {self.source}"


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
    code
        The code of the fault: a key of `iceexplore.errors.PROBLEM_KINDS`.
    where
        The first place of the fault: the location of a file, perhaps with a suffix such as ``#snapshot 17``.
    text
        A sentence that describes the fault.
    found
        The value that exceeds the thresholds, for display.
    thresholds
        The thresholds, each with its source. Their texts become ``expected`` of the finding.
    field
        The name of the field in the spec that shows the fault, if there is one.
    severity
        The severity; by default that of the code.
    waste
        The rule that ``severity`` follows. Its text is added to ``expected``. None if there is no such rule.
    count
        The number of all places of the fault.
    places
        The first places of the fault; by default only ``where``.
    snapshots
        The ids of the affected snapshots; by default, the id of the snapshot that is examined.
    hits
        All data files with the fault; None if ``places`` has all places. If it is known which manifest entry lists a
        data file, the file is given as the number of this entry: numbers are compared faster than long locations.
        Other data files are given by their locations.
    """
    expected = "; ".join(map(str, (*thresholds, *(() if waste is None else (waste,)))))
    item = problem(code, where, text, field=field, found=found, expected=expected)
    snapshot = examination.state.snapshot
    shown = () if snapshot is None else (snapshot.snapshot_id,)
    of = shown if snapshots is None else snapshots
    made = finding_of(item, snapshots=of, count=count, places=places, hits=hits)
    return made if severity is None else replace(made, severity=severity)
