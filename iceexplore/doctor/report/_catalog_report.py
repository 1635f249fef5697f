"""The result of checking many tables: a row per table, worst first."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from iceexplore.doctor.model._finding import EFFECTS
from iceexplore.doctor.report._junit import junit_error, junit_page, junit_suite
from iceexplore.doctor.report._redact import redacted_identifier, redacted_report, redacted_source, redaction_note
from iceexplore.doctor.report._report import Report
from iceexplore.doctor.report._tables_text import tables_html, tables_page, tables_text
from iceexplore.errors import Effect, nearest
from iceexplore.graph import Redaction, redactions
from iceexplore.render import shown_frame

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CATALOG_JSON_VERSION", "CatalogReport", "TableCheck"]

#: The version of the JSON that `CatalogReport.to_json` writes; it changes when a key is renamed or removed.
CATALOG_JSON_VERSION = 1


@dataclass(frozen=True)
class TableCheck:
    """The result of checking one table: a row of the catalog report.

    Attributes
    ----------
    table
        The identifier of the table in the catalog, or its path relative to the searched folder.
    report
        The report; None if the check failed or took too long.
    seconds
        The duration of the check in seconds, including opening the table.
    error
        The reason why the table could not be opened or checked; None if it was checked.
    """

    table: str
    report: Report | None
    seconds: float
    error: str | None

    @classmethod
    def of(cls, table: str, report: Report, seconds: float) -> TableCheck:
        """Return the catalog report's row about a table, made from the table's own report."""
        return cls(table, report, seconds, None if report.opened else report.findings[0].text)

    @classmethod
    def failed(cls, table: str, why: str, seconds: float) -> TableCheck:
        """Return the catalog report's row about a table whose check failed, with the reason."""
        return cls(table, None, seconds, why)

    @property
    def location(self) -> str | None:
        """The location of the examined metadata file; None if there is no report."""
        return None if self.report is None else self.report.location

    @property
    def severity(self) -> Effect | None:
        """The worst severity; ``fail`` for a table that could not be checked, None for one without findings."""
        if self.report is None:
            return "fail"
        return next((name for name in EFFECTS if self.report.by_severity().get(name)), None)

    @property
    def first(self) -> str | None:
        """The text of the worst finding, or the error if there is one; None for a table without findings."""
        if self.error is not None:
            return self.error
        return self.report.findings[0].text if self.report is not None and self.report.findings else None

    def counts(self) -> dict[str, int]:
        """Return the number of findings of each severity; 0 for severities without findings."""
        found = {} if self.report is None else self.report.by_severity()
        return {name: found.get(name, 0) for name in EFFECTS}

    def to_dict(self) -> dict[str, Any]:
        """Return the row, with the table's report, as a dictionary that can be written as JSON."""
        return {
            "table": self.table,
            "location": self.location,
            "severity": self.severity,
            "findings": self.counts(),
            "first": self.first,
            "seconds": round(self.seconds, 3),
            "error": self.error,
            "report": None if self.report is None else self.report.to_dict(),
        }


def _rank(one: TableCheck) -> tuple[Any, ...]:
    severity = len(EFFECTS) if one.severity is None else EFFECTS.index(one.severity)
    return one.error is None, severity, *(-n for n in one.counts().values()), one.table


class CatalogReport:
    """The doctor's findings in the tables of a catalog or warehouse folder. Iterable over tables, worst first.

    Parameters
    ----------
    source
        The catalog's name, or the searched folder.
    options
        The options with which the tables were checked.
    tables
        A row per table.
    unlisted
        Namespaces that could not be listed, with the reasons.
    complete
        False if tables are missing: a limit ended the search, or the check was interrupted.
    seconds
        The duration in seconds.
    """

    def __init__(
        self,
        *,
        source: str,
        options: Mapping[str, Any],
        tables: tuple[TableCheck, ...],
        unlisted: Mapping[str, str],
        complete: bool,
        seconds: float,
    ) -> None:
        self.source = source
        self.options = dict(options)
        self.tables = tuple(sorted(tables, key=_rank))
        self.unlisted = dict(unlisted)
        self.complete = complete
        self.seconds = seconds

    def __iter__(self) -> Iterator[TableCheck]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def __bool__(self) -> bool:
        return True  # otherwise `__len__` would make a report without tables false in ``if report:``

    @cached_property
    def reports(self) -> Mapping[str, Report]:
        """A mapping of table names to reports; tables whose check failed or took too long are not in it."""
        return _Reports({one.table: one.report for one in self.tables if one.report is not None})

    @property
    def ok(self) -> bool:
        """True if every table was checked and none has a finding worse than untidy."""
        return self.exit_code == 0

    @property
    def exit_code(self) -> int:
        """2 if a table could not be listed, opened or checked; else 1 if any report is not `ok`; else 0."""
        if self.unlisted or not self.complete or any(one.error is not None for one in self.tables):
            return 2
        return 0 if all(one.report is not None and one.report.ok for one in self.tables) else 1

    def to_pandas(self) -> pd.DataFrame:
        """Return a row per table, the worst first, with the worst finding and the number of findings per severity."""
        import pandas as pd

        rows = [
            {
                "table": one.table,
                "location": one.location,
                "severity": one.severity,
                **one.counts(),
                "first": one.first,
                "seconds": one.seconds,
                "error": one.error,
            }
            for one in self.tables
        ]
        columns = ["table", "location", "severity", *EFFECTS, "first", "seconds", "error"]
        return shown_frame(pd.DataFrame(rows, columns=columns))

    def to_dict(self) -> dict[str, Any]:
        """Return the catalog report, with the reports of all tables, as a dictionary that can be written as JSON."""
        return {
            "version": CATALOG_JSON_VERSION,
            "source": self.source,
            "options": self.options,
            "ok": self.ok,
            "complete": self.complete,
            "unlisted": self.unlisted,
            "tables": [one.to_dict() for one in self.tables],
            "seconds": round(self.seconds, 3),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> CatalogReport:
        """Rebuild a catalog report from the values that `to_dict` returned.

        The values do not contain the metadata of the tables. So the reports of the tables cannot plan repairs, and
        their timelines have no rows.

        Raises
        ------
        KeyError, TypeError
            ``values`` is not the dictionary of a catalog report, its ``version`` is not `CATALOG_JSON_VERSION`, or
            `Report.from_dict` cannot read the report of a table.
        """
        if values["version"] != CATALOG_JSON_VERSION:
            raise TypeError(f"version {values['version']!r}, not {CATALOG_JSON_VERSION}")
        tables = [
            TableCheck(
                one["table"],
                None if one["report"] is None else Report.from_dict(one["report"]),
                one["seconds"],
                one["error"],
            )
            for one in values["tables"]
        ]
        return cls(
            source=values["source"],
            options=values["options"],
            tables=tuple(tables),
            unlisted=values["unlisted"],
            complete=values["complete"],
            seconds=values["seconds"],
        )

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return the catalog report, with the reports of all tables, as JSON in ASCII.

        The files that `iceexplore.check_catalog` reads and writes with its option ``resume`` have this format.
        """
        return json.dumps(self.to_dict(), indent=indent)

    def __repr__(self) -> str:
        return tables_text(self)

    def _repr_html_(self) -> str:
        return tables_html(self)

    def to_html(self, *, redact: bool | str | Iterable[str] = ("credentials",)) -> str:
        """Return a standalone HTML page with the tables and their findings; it works offline and without scripts.

        Parameters
        ----------
        redact
            Any of ``credentials`` (the default), ``values``, ``paths`` and ``names``, as for `Report.to_html`. If the
            tables were found by searching a folder, the page lists them by their paths in this folder, such as
            ``sales/orders``. In these, ``paths`` redacts the folders, here ``sales``. True means all, False none.

        Raises
        ------
        OptionError
            A redaction is unknown.
        """
        kinds = redactions(redact)
        return tables_page(self._redacted(kinds), redaction_note(kinds))

    def _redacted(self, kinds: frozenset[str]) -> CatalogReport:
        it = Redaction(kinds)
        tables = [
            TableCheck(
                redacted_identifier(it, one.table),
                None if one.report is None else redacted_report(one.report, kinds),
                one.seconds,
                None if one.error is None else it.text(one.error),
            )
            for one in self.tables
        ]
        made = CatalogReport(
            source=redacted_source(it, self.source),
            options=self.options,
            tables=(),
            unlisted={redacted_identifier(it, name): it.text(why) for name, why in self.unlisted.items()},
            complete=self.complete,
            seconds=self.seconds,
        )
        made.tables = tuple(tables)  # keep the order of the original names, not of the redacted ones
        return made

    def to_junit(self) -> str:
        """Return JUnit XML with a test suite for each table, and for each namespace that could not be listed."""
        suites = [
            junit_error(one.table, one.error or "", one.seconds)
            if one.report is None
            else junit_suite(one.report, one.table)
            for one in self.tables
        ]
        return junit_page([*suites, *(junit_error(name, why, 0.0) for name, why in self.unlisted.items())])


class _Reports(dict[str, Report]):
    """A dictionary of table names and reports; the error for an unknown name lists the most similar names."""

    def __missing__(self, name: str) -> Report:
        raise KeyError(f"no table {name!r} has a report; {nearest(str(name), list(self))}")
