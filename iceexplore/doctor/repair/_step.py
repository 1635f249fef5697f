"""One step of a repair plan, as data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from iceexplore.doctor.model._finding import Finding

__all__ = ["Step", "Unrepaired"]


@dataclass(frozen=True)
class Step:
    """One step of a repair.

    Attributes
    ----------
    title
        The step in a few words.
    text
        What the step changes, and why the change is right.
    codes, modes
        The problem codes that the step mends, and the numbers of the failure modes that it mends
        (``docs/doctor.md`` lists them).
    places
        The number of places (files, entries or parts of the metadata file) that the step changes.
    certain
        True if the repaired values can be derived from other files or metadata of the table; False for a guess.
    rows_back, rows_lost
        ``rows_back``: the number of rows that readers return again after the step. ``rows_lost``: the number of rows
        that the repaired table no longer lists. Each is None if unknown.
    snapshots, refs
        Ids of the snapshots that need the step, oldest first, and the branches and tags that point to one of them;
        empty for a step about the metadata file alone.
    rows_concerned
        The sum of `Finding.rows` over the findings that the step mends. The faults concern at most this number of rows,
        because a row that several findings concern is counted several times. None if `Finding.rows` is None for one of
        them.
    expirable
        True if these snapshots can be expired instead: none of them is current, and no branch or tag points to one.
    effective
        False if all findings that the step was planned for still remain after it.
    sql, python
        How to do the step with SQL statements of Spark, and with calls of PyIceberg or of Iceberg's Java API; empty if
        there are no such statements or calls.
    """

    title: str
    text: str
    codes: tuple[str, ...]
    modes: tuple[int, ...]
    places: int
    certain: bool
    rows_back: int | None = 0
    rows_lost: int | None = 0
    sql: tuple[str, ...] = ()
    python: tuple[str, ...] = ()
    effective: bool = True
    snapshots: tuple[int, ...] = ()
    refs: tuple[str, ...] = ()
    rows_concerned: int | None = None
    expirable: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes as a dictionary for JSON: tuples become lists."""
        values = asdict(self)
        for name in ("codes", "modes", "sql", "python", "snapshots", "refs"):
            values[name] = list(values[name])
        return values


@dataclass(frozen=True)
class Unrepaired:
    """A finding that the plan does not mend.

    Attributes
    ----------
    finding
        The finding.
    reason
        A text that says why no step mends the finding, or what the user can do about it.
    """

    finding: Finding
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Return the code and the place of the finding, and the reason, as a dictionary for JSON."""
        return {"code": self.finding.code, "where": self.finding.where, "reason": self.reason}
