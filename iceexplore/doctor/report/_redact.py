"""Redact credentials, values, paths and names in a report, so that it can be shown to others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from iceexplore.doctor.model._finding import Finding, Since
from iceexplore.doctor.repair._plan_text import PlanLike
from iceexplore.doctor.repair._registry import UNREPAIRABLE
from iceexplore.doctor.repair._step import Step, Unrepaired
from iceexplore.doctor.report._text import ReportLike
from iceexplore.errors import PROBLEM_KINDS
from iceexplore.graph import REDACTIONS, Redaction
from iceexplore.metadata import TableMetadata

__all__ = [
    "redacted_identifier",
    "redacted_plan",
    "redacted_report",
    "redacted_source",
    "redaction_note",
    "redaction_of",
]

R = TypeVar("R", bound=ReportLike)

_OPERATIONS = frozenset({"append", "replace", "overwrite", "delete"})
#: The pattern of a field of the spec in `Finding.field`, such as "103 record_count" or "total-records". Any other text
#: in `Finding.field` may contain the name of a column, and is redacted if names are.
_SPEC_FIELD = re.compile(r"\d{1,4} [a-z_]+|[a-z][a-z-]*")
_WHOLE = re.compile(r"-?\d{1,20}", re.ASCII)
#: The kind of an object in a file, as in ``#entry 3``.
_KIND = re.compile(r"[a-z][a-z-]*")


def redaction_note(kinds: frozenset[str]) -> str:
    """Return the note at the end of a page: a list of the kinds of content that are redacted on the page."""
    return f"Created by iceexplore. Redacted: {', '.join(kind for kind in REDACTIONS if kind in kinds) or 'nothing'}."


def redaction_of(report: ReportLike, kinds: frozenset[str]) -> Redaction:
    """Return a redaction of these kinds of content (`iceexplore.graph.REDACTIONS`) that knows a report's column names.

    To show a report together with its repair plan, pass the same redaction to `redacted_report` and `redacted_plan`. It
    replaces each location and name by the same text in both.
    """
    return Redaction(kinds, _names_of(report))


def redacted_report(report: R, kinds: frozenset[str], it: Redaction | None = None) -> R:
    """Return a report in which the given kinds of content (`iceexplore.graph.REDACTIONS`) are redacted.

    Codes, counts, ids and times are kept, and so are the titles, meanings and advice that belong to codes. Equal
    locations and names stay equal, so that findings about one file can still be recognized.

    Parameters
    ----------
    it
        A redaction that is also used for other objects, such as the repair plan of the report, so that equal locations
        and names stay equal in all of them. None to make one for this report only.
    """
    if not kinds:
        return report
    it = redaction_of(report, kinds) if it is None else it
    columns = _names_of(report)
    changed = {
        "table": it.name(report.table) if it.names else _text(it, report.table),
        "location": it.location(report.location),
        "findings": tuple(_finding(it, one, columns) for one in report.findings),
        "unknown": {name: it.text(why) for name, why in report.unknown.items()},
    }
    made: R = replace(report, **changed)  # type: ignore[type-var]
    return made


@dataclass(frozen=True)
class _ShownPlan:
    """A repair plan whose texts are redacted, with the attributes that its text and HTML need."""

    name: str
    steps: tuple[Step, ...]
    unrepaired: tuple[Unrepaired, ...]
    rows_before: int | None
    rows_after: int | None


def redacted_plan(plan: PlanLike, report: ReportLike, it: Redaction) -> PlanLike:
    """Return a repair plan in which the table's name, texts, SQL statements and Python code are redacted.

    The titles of the steps, codes and counts are kept.

    Parameters
    ----------
    report
        The report for which the repair was planned. Its metadata has the names of the columns.
    it
        The redaction that is also used for the report, as `redaction_of` returns it.
    """
    columns = frozenset(() if report.metadata is None else _columns(report.metadata))

    def reason(one: Unrepaired) -> str:
        known = one.reason in UNREPAIRABLE.values() or one.reason == PROBLEM_KINDS[one.finding.code].remedy
        return one.reason if known else it.text(one.reason)

    return _ShownPlan(
        it.name(plan.name) if it.names else _text(it, plan.name),
        tuple(
            replace(s, text=it.text(s.text), sql=tuple(map(it.text, s.sql)), python=tuple(map(it.text, s.python)))
            for s in plan.steps
        ),
        tuple(Unrepaired(_finding(it, one.finding, columns), reason(one)) for one in plan.unrepaired),
        plan.rows_before,
        plan.rows_after,
    )


def redacted_source(it: Redaction, source: str) -> str:
    """Redact the name of a catalog, or the folder that was searched."""
    return it.location(source) if "/" in source else redacted_identifier(it, source)


def redacted_identifier(it: Redaction, name: str) -> str:
    """Redact the identifier of a table or namespace.

    If the tables were found by searching a folder, the identifier of a table is its path in this folder, such as
    ``sales/orders``. If paths are redacted, but names are not, only the last component, here ``orders``, is kept.
    """
    if it.names:
        return it.name(name)
    folder, slash, last = name.rpartition("/")
    return (it.location(folder) if it.paths else it.secretless(folder)) + slash + _text(it, last)


def _names_of(report: ReportLike) -> frozenset[str]:
    return report.names | frozenset(() if report.metadata is None else _columns(report.metadata))


def _text(it: Redaction, text: str) -> str:
    """Redact the credentials in a text and, if ``it`` redacts paths, also the paths.

    The text must not contain values of columns, which this function does not redact. An example is the name of a table.
    """
    return it.without_paths(it.secretless(text), it.location) if it.paths else it.secretless(text)


def _columns(metadata: TableMetadata) -> Iterator[str]:
    for name, _ in metadata.all_fields().values():
        yield from (name, name.rpartition(".")[2])
    for spec in metadata.partition_specs:
        yield from (one.name for one in spec.fields)


def _finding(it: Redaction, one: Finding, columns: frozenset[str]) -> Finding:
    kind = PROBLEM_KINDS[one.code]
    return replace(
        one,
        where=_place(it, one.where),
        text=it.text(one.text),
        field=None if one.field is None else _field(it, one.field, columns),
        found=None if one.found is None else it.text(one.found),
        expected=None if one.expected is None else it.text(one.expected),
        means=one.means if one.means == kind.means else it.text(one.means),
        advice=one.advice if one.advice == kind.remedy else it.text(one.advice),
        places=tuple(_place(it, place) for place in one.places),
        refs=tuple(map(it.name, one.refs)),
        # A partition such as "day=2024-05-01" has names and values. So no partition is listed if either is redacted.
        partitions=() if it.blanks else tuple(map(it.text, one.partitions)),
        since=None if one.since is None else _since(it, one.since),
        follows=tuple(_finding(it, more, columns) for more in one.follows),
    )


def _place(it: Redaction, where: str) -> str:
    location, _, part = where.rpartition("#")
    kind, space, value = part.partition(" ")
    # In "data/a.avro#entry 3", a kind and a name follow the last number sign, and the location ends there. Otherwise,
    # the number sign is a part of the location: "1.avro" in "data/a#1.avro" is no kind and name, and neither is
    # "b c/a.avro" in "data#b c/a.avro", because only the names of refs and columns can contain a slash.
    if not space or not _KIND.fullmatch(kind) or ("/" in value and kind not in ("ref", "column")):
        return it.location(where)
    return f"{it.location(location)}#{kind} {value if _WHOLE.fullmatch(value) else it.key(value)}"


def _field(it: Redaction, field: str, columns: frozenset[str]) -> str:
    is_own = _SPEC_FIELD.fullmatch(field) and field not in columns
    return field if is_own or not it.names else it.text(field)


def _since(it: Redaction, since: Since) -> Since:
    operation, engine, file = since.operation, since.engine, since.metadata_file
    return replace(
        since,
        operation=operation if operation is None or operation in _OPERATIONS else it.text(operation),
        engine=None if engine is None else it.text(engine),
        metadata_file=None if file is None else it.location(file),
    )
