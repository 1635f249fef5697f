"""A report: findings ranked by their effect on readers, and the checks that could not be done."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from iceexplore.doctor.model._finding import EFFECTS, Finding
from iceexplore.doctor.repair._plan import RepairPlan
from iceexplore.doctor.report._junit import junit_page, junit_suite
from iceexplore.doctor.report._page import report_page
from iceexplore.doctor.report._redact import redacted_plan, redacted_report, redaction_note, redaction_of
from iceexplore.doctor.report._text import report_html, report_text
from iceexplore.errors import OptionError
from iceexplore.graph import redactions
from iceexplore.metadata import TableMetadata, in_order
from iceexplore.render import shown_frame, whole_numbers

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["JSON_VERSION", "Report"]

#: The version of the JSON that `Report.to_json` writes; it changes when a key is renamed or removed.
JSON_VERSION = 1


@dataclass(frozen=True)
class Report:
    """The doctor's findings in a table or view. Iterable over the findings, worst first.

    Attributes
    ----------
    table, location
        The name of the table or view, and the metadata file that was examined.
    format_version
        The format version in the metadata file; None if the table could not be opened.
    level
        ``metadata``, ``files`` or ``rows``.
    snapshots
        The ids of the examined snapshots, oldest first.
    findings
        Root causes; the findings that follow from a cause are in its ``follows``.
    unknown
        Checks that could not be done, with the reasons.
    seconds
        The duration of the examination in seconds.
    metadata
        The examined metadata; None for a view, if the table could not be opened, and in reports that were read from
        JSON.
    opened
        False if the table could not be opened; the only finding then gives the reason.
    kind
        ``table`` or ``view``.
    versions
        The ids of a view's versions; empty for a table.
    names
        Names of a view's columns, for redaction; empty in reports that were read from JSON.
    """

    table: str
    location: str
    format_version: int | None
    level: str
    snapshots: tuple[int, ...]
    findings: tuple[Finding, ...]
    unknown: Mapping[str, str]
    seconds: float
    metadata: TableMetadata | None = field(repr=False, compare=False)
    opened: bool = True
    kind: str = "table"
    versions: tuple[int, ...] = ()
    names: frozenset[str] = field(default=frozenset(), repr=False, compare=False)
    #: Plans the repair; None for a view, if the table could not be opened, and in reports that were read from JSON.
    _mend: Callable[[], RepairPlan] | None = field(default=None, repr=False, compare=False)

    def __getitem__(self, index: int) -> Finding:
        return self.findings[index]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __bool__(self) -> bool:
        return True  # otherwise `__len__` would make a report without findings false in ``if report:``

    @property
    def ok(self) -> bool:
        """True if nothing is worse than untidy: readers neither fail, nor return wrong rows, nor are slow."""
        return all(f.severity == "untidy" for f in self.findings)

    @property
    def exit_code(self) -> int:
        """0 if `ok`, 2 if the table could not be opened, 1 otherwise: the exit status of ``iceexplore check``."""
        return 2 if not self.opened else 0 if self.ok else 1

    def by_severity(self) -> dict[str, int]:
        """Return the number of findings of each severity, worst first; severities without any are left out."""
        counts = Counter(f.severity for f in self.findings)
        return {name: counts[name] for name in EFFECTS if counts[name]}

    def to_pandas(self) -> pd.DataFrame:
        """Return a row per finding: each cause, followed by its consequences.

        For a consequence, ``caused_by`` is the index of its cause in `findings`.
        """
        import pandas as pd

        columns = (
            "severity", "code", "title", "text", "where", "field", "found", "expected", "count", "modes", "snapshots",
            "refs", "rows", "partitions", "partition_count", "since_snapshot_id", "since", "operation", "engine",
            "means", "advice", "caused_by",
        )  # fmt: skip
        rows = []
        for number, one in enumerate(self.findings):
            rows.append(_row(one, None))
            rows += [_row(more, number) for more in one.follows]
        frame = pd.DataFrame([[row[name] for name in columns] for row in rows], columns=list(columns))
        frame["since"] = pd.to_datetime(frame["since"], unit="ms", utc=True)
        for name in ("rows", "partition_count", "since_snapshot_id", "caused_by"):
            frame[name] = whole_numbers(row[name] for row in rows)
        return shown_frame(frame)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a dictionary that can be written as JSON.

        The value of ``version`` is the version of this dictionary's keys, `JSON_VERSION`.
        """
        return {
            "version": JSON_VERSION,
            "table": self.table,
            "metadata_location": self.location,
            "format_version": self.format_version,
            "level": self.level,
            "opened": self.opened,
            "snapshots": list(self.snapshots),
            "ok": self.ok,
            "findings": [f.to_dict() for f in self.findings],
            "not_checked": dict(self.unknown),
            "seconds": round(self.seconds, 3),
            **({"kind": self.kind, "versions": list(self.versions)} if self.kind != "table" else {}),
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return the report as JSON (ASCII, so that characters in names cannot affect a terminal or a page)."""
        return json.dumps(self.to_dict(), indent=indent)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Report:
        """Rebuild a report from the values that `to_dict` returned. It has no `metadata`, so its timeline is empty.

        Raises
        ------
        KeyError, TypeError
            ``values`` is not the dictionary of a report, or its ``version`` is not `JSON_VERSION`.
        """
        if values["version"] != JSON_VERSION:
            raise TypeError(f"version {values['version']!r} of the report, not {JSON_VERSION}")
        return cls(
            table=values["table"],
            location=values["metadata_location"],
            format_version=values["format_version"],
            level=values["level"],
            snapshots=tuple(values["snapshots"]),
            findings=tuple(map(Finding.from_dict, values["findings"])),
            unknown=dict(values["not_checked"]),
            seconds=values["seconds"],
            metadata=None,
            opened=values["opened"],
            kind=values.get("kind", "table"),
            versions=tuple(values.get("versions", ())),
        )

    def timeline(self) -> pd.DataFrame:
        """Return a row per snapshot, oldest first, with the codes of the findings that it introduced or that affect it.

        The result has no rows if the report has no `metadata`.
        """
        import pandas as pd

        rows = []
        for s in () if self.metadata is None else in_order(self.metadata.snapshots):
            begun = [f.code for f in self.findings if f.since is not None and f.since.snapshot_id == s.snapshot_id]
            here = [f.code for f in self.findings if s.snapshot_id in f.snapshots]
            rows.append((s.snapshot_id, s.timestamp_ms, s.operation, begun, here))
        frame = pd.DataFrame(rows, columns=["snapshot_id", "committed_at", "operation", "begins", "affected_by"])
        frame["committed_at"] = pd.to_datetime(frame["committed_at"], unit="ms", utc=True)
        return shown_frame(frame)

    def repair(self) -> RepairPlan:
        """Plan how to mend the table.

        The plan has the steps, a simulation of the mended table, and the findings that no step mends (``unrepaired``).

        The table itself is not changed. The repaired manifests and metadata are written into an overlay. The simulation
        reads a file from the overlay if it is there, and otherwise from the table's storage.

        The steps mend the findings of this report. The repaired table is then checked, and further steps mend the
        faults that this check finds. To mend faults in older snapshots, too, check the table with ``snapshots="all"``.
        To recover the files of lost manifests, the manifests of other snapshots and the data folder are searched. A
        damaged V4 tree is written again, as a change to the tree of its parent snapshot.

        Raises
        ------
        OptionError
            The report was read from JSON, the table could not be opened, or it is a view.
        UnsupportedError
            The table is encrypted.
        """
        if self.kind == "view":
            raise OptionError("views cannot be repaired: the advice of each finding says what to do in an engine")
        if self._mend is None:
            raise OptionError(
                "this report cannot plan a repair, because it has no table: call check() on the opened table, and "
                "repair() on its report"
            )
        return self._mend()

    def __repr__(self) -> str:
        return report_text(self)

    def _repr_html_(self) -> str:
        return report_html(self)

    def to_html(self, *, redact: bool | str | Iterable[str] = ("credentials",), repair: bool = False) -> str:
        """Return the report as a standalone HTML page in the explorer's design, without scripts or requests.

        Parameters
        ----------
        redact
            Any of ``credentials`` (the default), ``values``, ``paths`` and ``names``, as for
            `iceexplore.Table.bundle`. True means all, False none. Codes, meanings, advice, counts, ids and times stay.
        repair
            Whether the page also shows the steps of `repair`; planning them takes time.

        Raises
        ------
        OptionError
            A redaction is unknown; or ``repair`` is true, and `repair` cannot plan a repair.
        UnsupportedError
            ``repair`` is true, and the table is encrypted.
        """
        kinds = redactions(redact)
        it = redaction_of(self, kinds)
        plan = redacted_plan(self.repair(), self, it) if repair else None
        return report_page(redacted_report(self, kinds, it), redaction_note(kinds), plan=plan)

    def to_junit(self) -> str:
        """Return JUnit XML.

        A finding is a failed test if its severity is worse than ``untidy``, and otherwise a passed test. A check that
        could not be done is a skipped test. If the table could not be opened, the only test has an error that gives the
        reason.
        """
        return junit_page([junit_suite(self, self.table)])


def _row(one: Finding, caused_by: int | None) -> dict[str, Any]:
    since = one.since
    return {
        **{name: getattr(one, name) for name in (
            "severity", "code", "title", "text", "where", "field", "found", "expected", "count", "means", "advice",
            "rows", "partition_count",
        )},
        "modes": list(one.modes),
        "snapshots": list(one.snapshots),
        "refs": list(one.refs),
        "partitions": list(one.partitions),
        "since_snapshot_id": None if since is None else since.snapshot_id,
        "since": None if since is None else since.timestamp_ms,
        "operation": None if since is None else since.operation,
        "engine": None if since is None else since.engine,
        "caused_by": caused_by,
    }  # fmt: skip
