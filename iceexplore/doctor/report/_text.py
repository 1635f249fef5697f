"""A report as text and HTML: the findings, the worst first, each with what was found, its meaning and the remedy."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Protocol

from iceexplore.doctor.model._finding import LISTED_SINCE, Finding, snapshots_text
from iceexplore.graph import amount
from iceexplore.metadata import TableMetadata, format_ms
from iceexplore.render import escape

__all__ = [
    "COLOURS",
    "LINE",
    "MONO",
    "ReportLike",
    "SIGNS",
    "WORDS",
    "affected_text",
    "finding_lines",
    "report_headline",
    "report_html",
    "report_notes",
    "report_scope",
    "report_text",
]

_SHOWN = 20
_OPEN = 3
_WIDTH = 100
_LABEL = 9
WORDS = {"fail": "readers fail", "wrong": "wrong rows or numbers", "slow": "slow", "untidy": "untidy"}
SIGNS = {"fail": "✖", "wrong": "✖", "slow": "▲", "untidy": "·"}
COLOURS = {"fail": "#c62828", "wrong": "#c62828", "slow": "#b45309", "untidy": "#607d8b"}
LINE = "rgba(128,128,128,.35)"
MONO = "font-family:ui-monospace,monospace"
_DEEPER = {
    "metadata": "Data and delete files were not opened: check(level='files') opens them.",
    "files": "Rows were not read: check(level='rows') reads them.",
}


class ReportLike(Protocol):
    """The attributes of a report that its text and HTML need."""

    @property
    def table(self) -> str: ...
    @property
    def location(self) -> str: ...
    @property
    def level(self) -> str: ...
    @property
    def snapshots(self) -> tuple[int, ...]: ...
    @property
    def findings(self) -> tuple[Finding, ...]: ...
    @property
    def unknown(self) -> Mapping[str, str]: ...
    @property
    def seconds(self) -> float: ...
    @property
    def metadata(self) -> TableMetadata | None: ...
    @property
    def opened(self) -> bool: ...
    @property
    def kind(self) -> str: ...
    @property
    def versions(self) -> tuple[int, ...]: ...
    @property
    def names(self) -> frozenset[str]: ...
    def by_severity(self) -> dict[str, int]: ...


def report_headline(report: ReportLike) -> str:
    """Return the number of findings of each severity, as text."""
    if not report.opened:
        return f"the {report.kind} cannot be opened"
    counts = report.by_severity()
    return ", ".join(f"{n:,} × {WORDS[name]}" for name, n in counts.items()) or "nothing found"


def report_scope(report: ReportLike) -> str:
    """Return a text with the level of an examination, the number of examined snapshots, and the duration in seconds.

    For a view, the number is that of its versions. If the table could not be opened, the text is only the duration.
    """
    if not report.opened:
        return f"{report.seconds:.1f} s"
    if report.kind == "view":
        count = len(report.versions)
        return f"level {report.level}, {count:,} version{'' if count == 1 else 's'}, {report.seconds:.1f} s"
    total = "" if report.metadata is None else f"of {len({s.snapshot_id for s in report.metadata.snapshots}):,} "
    return f"level {report.level}, {len(report.snapshots):,} {total}snapshots, {report.seconds:.1f} s"


def report_notes(report: ReportLike) -> Iterator[str]:
    """Yield unescaped sentences about checks that could not be done, and about what a deeper level would check."""
    for name, why in report.unknown.items() if report.opened else ():
        yield f"Not checked: {name}. {why[:1].upper()}{why[1:]}"
    if report.opened and report.kind == "table" and report.level in _DEEPER:
        yield _DEEPER[report.level]


def finding_lines(one: Finding) -> Iterator[tuple[str, str]]:
    """Yield the lines about a finding, each as a label and a text, both unescaped."""
    yield "What", one.text
    yield "Where", one.where + (f" and {one.count - 1:,} more" if one.count > 1 else "")
    parts = [f"found {one.found}"] if one.found is not None else []
    parts += [f"expected {one.expected}"] if one.expected is not None else []
    if parts:
        yield "Evidence", ", ".join(parts) + (f" ({one.field})" if one.field else "")
    if one.means:
        yield "Means", one.means
    yield "Do", one.advice
    affected = affected_text(one)
    if affected:
        yield "Affects", affected
    since = one.since
    if since is not None and since.snapshot_id is not None:
        when = "" if since.timestamp_ms is None else f" of {format_ms(since.timestamp_ms)}"
        how = "" if since.operation is None else f", {since.operation}"
        who = "" if since.engine is None else f" by {since.engine}"
        listed = ", the first that lists it" if one.code in LISTED_SINCE else ""
        late = ", at the latest" if since.at_latest else ""
        yield "Since", f"snapshot {since.snapshot_id}{when}{how}{who}{listed}{late}"
    elif since is not None and since.metadata_file is not None:
        yield "Since", since.metadata_file.rpartition("/")[2] + (", at the latest" if since.at_latest else "")
    elif since is not None:
        yield "Since", "a snapshot that has expired"
    if one.reported:
        yield "Reported", ", ".join(one.reported)
    for more in one.follows:
        yield "Causes", more.text + (f" ({more.count:,} places)" if more.count > 1 else "")


def affected_text(one: Finding) -> str:
    """Return, as unescaped text, the snapshots, refs, rows and partitions that a finding affects; empty if unknown."""
    parts = []
    if one.snapshots:
        parts.append(snapshots_text(one.snapshots, one.refs))
    rows = "" if one.rows is None else amount(one.rows, "row") if one.rows else "no rows"
    partitions = _partitions_text(one)
    return "; ".join(
        [*parts, *([" in ".join(part for part in (rows, partitions) if part)] if rows or partitions else [])]
    )


def _partitions_text(one: Finding) -> str:
    count, shown = one.partition_count, one.partitions
    # If a partition has several fields, commas separate these. Then semicolons separate the partitions.
    mark = "; " if any(", " in text for text in shown) else ", "
    names = mark.join(shown)
    if count is None:
        return f"partitions {names} and possibly others" if shown else ""
    if count == 1 and shown:
        return f"partition {names}"
    more = f" and {count - len(shown):,} more" if count > len(shown) else ""
    return f"{amount(count, 'partition')}{f': {names}{more}' if shown else ''}" if count else ""


def _notes(report: ReportLike) -> Iterator[str]:
    if len(report.findings) > _SHOWN:
        yield f"{len(report.findings) - _SHOWN:,} more findings: report.to_pandas() has all of them."
    yield from report_notes(report)


def report_text(report: ReportLike) -> str:
    """Return the report as plain text, with control characters made visible."""
    e = escape.text
    out = [f"Check of {e(report.table)}: {report_headline(report)}", e(report.location), report_scope(report)]
    for number, one in enumerate(report.findings[:_SHOWN], 1):
        out += ["", f"{SIGNS[one.severity]} {number}. {one.title}  [{one.severity}: {one.code}]"]
        for label, text in finding_lines(one):
            lines = textwrap.wrap(e(text), _WIDTH - _LABEL - 4, break_on_hyphens=False, break_long_words=False)
            out += [f"    {label if i == 0 else '':<{_LABEL}}{line}" for i, line in enumerate(lines or [""])]
    notes = [e(note) for note in _notes(report)]
    if notes:
        out += ["", *(f"ℹ {note}" for note in notes)]
    return "\n".join(line.rstrip() for line in out)


def report_html(report: ReportLike) -> str:
    """Return the report as HTML with inline styles only, for a notebook."""
    e = escape.html
    out = [
        f'<div style="border:1px solid {LINE};border-radius:6px;padding:12px 16px;max-width:960px;'
        'font-family:system-ui,sans-serif;font-size:13px;line-height:1.5;overflow-wrap:anywhere">'
        f'<div style="font-size:16px;font-weight:600">Check of {e(report.table)}: {report_headline(report)}</div>'
        f'<div style="{MONO};font-size:12px;opacity:.8">{e(report.location)}</div>'
        f'<div style="font-size:12px;opacity:.8;margin-bottom:6px">{e(report_scope(report))}</div>'
    ]
    for number, one in enumerate(report.findings[:_SHOWN], 1):
        colour = COLOURS[one.severity]
        rows = "".join(
            '<tr><td style="vertical-align:top;padding:1px 12px 1px 0;opacity:.75;white-space:nowrap;text-align:left">'
            f"{label}</td>"
            f'<td style="text-align:left;padding:1px 0{";" + MONO + ";font-size:12px" if label == "Where" else ""}">'
            f"{e(text)}</td></tr>"
            for label, text in finding_lines(one)
        )
        out.append(
            f'<details{" open" if number <= _OPEN else ""} style="border-left:4px solid {colour};padding:2px 10px;'
            f'margin:8px 0"><summary style="cursor:pointer;font-weight:600">{e(one.title)} '
            f'<span style="font-weight:400;opacity:.8">{WORDS[one.severity]} · {one.code}</span></summary>'
            f'<table style="border:none;border-collapse:collapse;background:none">{rows}</table></details>'
        )
    out += [f'<div style="margin-top:6px;font-size:12px;opacity:.8">ℹ {e(note)}</div>' for note in _notes(report)]
    return "".join(out) + "</div>"
