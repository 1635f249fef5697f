"""Write a report as a standalone page: one HTML file in the explorer's design, without scripts or requests."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator

from iceexplore.doctor.model._finding import Finding
from iceexplore.doctor.repair._plan_text import PlanLike, plan_section
from iceexplore.doctor.report._text import (
    SIGNS,
    WORDS,
    ReportLike,
    finding_lines,
    report_headline,
    report_notes,
    report_scope,
)
from iceexplore.render import escape

__all__ = ["CSS", "page", "report_page", "report_section"]

_OPEN = 3
#: Colours, sizes and fonts are the same as in the widgets' style sheet. They are repeated here, because the widgets'
#: package imports this package and cannot be imported by it.
CSS = """
:root { --ice-paper: #ffffff; --ice-ink: #1c2430; --ice-muted: #566171; --ice-accent: #0369a1; --ice-error: #b3261e;
  --ice-warning: #a14a08; --ice-line: color-mix(in srgb, var(--ice-ink) 15%, var(--ice-paper)); color-scheme: light; }
html { background: #f4f6f8; }
body { margin: 0; padding: 16px; font: 13px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { box-sizing: border-box; max-width: 1100px; margin: 0 auto; padding: 10px 14px 14px;
  border: 1px solid var(--ice-line); border-radius: 8px;
  background: var(--ice-paper); color: var(--ice-ink); overflow-wrap: anywhere; }
h1 { margin: 0; font-size: 15px; line-height: 1.4; font-weight: 600; }
h2 { margin: 0; font-size: 13px; }
.where, code { font: 12px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
.note { color: var(--ice-muted); font-size: 12px; }
.badge { padding: 0 7px; border: 1px solid var(--ice-line); border-radius: 9px; color: var(--ice-muted);
  font-size: 11px; line-height: 16px; font-weight: 400; white-space: nowrap; }
details { margin: 8px 0; }
summary { min-height: 24px; line-height: 24px; font-weight: 600; cursor: pointer; }
summary:focus-visible { outline: 2px solid var(--ice-accent); border-radius: 4px; }
.sign { font-weight: 700; }
.fail .sign, .wrong .sign { color: var(--ice-error); }
.slow .sign { color: var(--ice-warning); }
.untidy .sign { color: var(--ice-muted); }
dl { margin: 2px 0 0 14px; padding: 6px 10px; border: 1px solid var(--ice-line); border-radius: 6px; }
dl > div { display: grid; grid-template-columns: 72px minmax(0, 1fr); gap: 8px; }
dt { color: var(--ice-muted); font-size: 12px; line-height: 19px; }
dd { margin: 0; }
table { width: 100%; margin: 8px 0; border-collapse: collapse; }
th, td { padding: 4px 14px 4px 0; border-top: 1px solid var(--ice-line); text-align: left; vertical-align: top; }
th { border: 0; color: var(--ice-muted); font-size: 11px; font-weight: 400; }
td details { margin: 0; }
@media (prefers-color-scheme: dark) {
  :root { --ice-paper: #11161d; --ice-ink: #e6ebf1; --ice-muted: #9fabb9; --ice-accent: #4fc3f7; --ice-error: #ff8a80;
    --ice-warning: #ffb74d; color-scheme: dark; }
  html { background: #0b0f14; }
}
@media (max-width: 480px) { dl > div { grid-template-columns: minmax(0, 1fr); gap: 0; } }
@media print {
  :root { --ice-paper: #ffffff; --ice-ink: #1c2430; --ice-muted: #566171; --ice-error: #b3261e;
    --ice-warning: #a14a08; }
  html { background: none; } main { border: 0; } dl { break-inside: avoid; }
}
"""


def page(title: str, body: str, *notes: str) -> str:
    """Return a whole HTML page that makes no requests and runs no scripts: only its own styles are allowed.

    Parameters
    ----------
    title
        The title as plain text; this function escapes the title and the notes.
    body
        HTML without inline styles.
    notes
        Sentences at the end.
    """
    digest = base64.b64encode(hashlib.sha256(CSS.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    footer = "".join(f'<p class="note">{escape.html(note)}</p>' for note in notes)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape.html(title)}</title>\n<style>{CSS}</style>\n</head>\n"
        f"<body>\n<main>{body}{footer}</main>\n</body>\n</html>\n"
    )


def report_page(report: ReportLike, *notes: str, plan: PlanLike | None = None) -> str:
    """Return a report as an HTML page with all findings and, if a plan is given, with the steps of the repair."""
    e = escape.html
    head = (
        f"<h1>Check of {e(report.table)}: {e(report_headline(report))}</h1>"
        f'<div class="where">{e(report.location)}</div><div class="note">{e(report_scope(report))}</div>'
    )
    mending = "" if plan is None else f"<h2>Mending</h2>{plan_section(plan)}"
    return page(f"Check of {report.table}", head + report_section(report) + mending, *notes)


def report_section(report: ReportLike) -> str:
    """Return the findings and notes of a report as HTML that `page` takes as its body."""
    parts = [_finding(number, one) for number, one in enumerate(report.findings, 1)]
    return "".join([*parts, *(f'<p class="note">{escape.html(note)}</p>' for note in report_notes(report))])


def _finding(number: int, one: Finding) -> str:
    places = "" if one.count == 1 else f' <span class="badge">{one.count:,} places</span>'
    return (
        f'<details class="{one.severity}"{" open" if number <= _OPEN else ""}>'
        f'<summary><span class="sign">{SIGNS[one.severity]}</span> {escape.html(one.title)} '
        f'<span class="badge">{WORDS[one.severity]}</span> <span class="badge">{one.code}</span>{places}</summary>'
        f"<dl>{''.join(_lines(one))}</dl></details>"
    )


def _lines(one: Finding) -> Iterator[str]:
    for label, text in finding_lines(one):
        look = ' class="where"' if label == "Where" else ""
        yield f"<div><dt>{label}</dt><dd{look}>{escape.html(text)}</dd></div>"
