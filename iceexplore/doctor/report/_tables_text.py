"""The result of checking many tables as text and HTML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from iceexplore.doctor.model._finding import EFFECTS
from iceexplore.doctor.report._page import page, report_section
from iceexplore.doctor.report._report import Report
from iceexplore.doctor.report._text import COLOURS, LINE, MONO, SIGNS, WORDS, report_html
from iceexplore.errors import Effect
from iceexplore.render import escape

__all__ = ["tables_html", "tables_page", "tables_text"]

_SHOWN = 40
_TEXT = 90
_COLUMNS = ("Table", "Found", "Worst finding", "Time")
_CELL = "text-align:left;vertical-align:top;padding:2px 14px 2px 0"


class _Table(Protocol):
    @property
    def table(self) -> str: ...
    @property
    def report(self) -> Report | None: ...
    @property
    def seconds(self) -> float: ...
    @property
    def error(self) -> str | None: ...
    @property
    def location(self) -> str | None: ...
    @property
    def severity(self) -> Effect | None: ...
    @property
    def first(self) -> str | None: ...
    def counts(self) -> dict[str, int]: ...


class _Result(Protocol):
    """The attributes of a catalog report that its text and HTML need."""

    source: str
    complete: bool
    seconds: float
    unlisted: dict[str, str]

    @property
    def tables(self) -> Sequence[_Table]: ...
    @property
    def options(self) -> Mapping[str, object]: ...


def _headline(result: _Result) -> str:
    total = len(result.tables)
    unread = sum(one.error is not None for one in result.tables)
    worst = [one.severity for one in result.tables if one.error is None]
    parts = [f"{unread:,} × could not be read"] if unread else []
    parts += [f"{worst.count(name):,} × {WORDS[name]}" for name in EFFECTS if worst.count(name)]
    tables = f"{total:,} table{'' if total == 1 else 's'}"
    return f"{tables}, {', '.join(parts) or 'nothing found'}"


def _scope(result: _Result) -> str:
    return f"level {result.options.get('level')}, {result.seconds:.1f} s"


def _notes(result: _Result) -> Iterator[str]:
    for name, why in result.unlisted.items():
        yield f"Namespace {name} could not be listed: {why}"
    if not result.complete:
        yield "Some tables are not listed: the check was interrupted, or a limit ended the search through the folder."


def _kind(one: _Table) -> str:
    if one.error is not None:
        return "not read"
    return ", ".join(f"{n} {name}" for name, n in one.counts().items() if n) or "ok"


def tables_text(result: _Result) -> str:
    """Return a catalog report as plain text, with control characters made visible."""
    e = escape.text
    out = [f"Check of {e(result.source)}: {_headline(result)}", _scope(result), ""]
    shown = result.tables[:_SHOWN]
    names = [escape.shorten(e(one.table), 48) for one in shown]
    width = max(map(len, names), default=0)
    kinds = max((len(_kind(one)) for one in shown), default=0)
    for name, one in zip(names, shown, strict=True):
        sign = " " if one.severity is None else SIGNS[one.severity]
        first = "" if one.first is None else escape.shorten(e(one.first), _TEXT)
        out.append(f"{sign} {name:<{width}}  {_kind(one):<{kinds}}  {first}")
    if len(result.tables) > _SHOWN:
        out.append(f"… {len(result.tables) - _SHOWN:,} more: to_pandas() has all of them")
    out += [f"ℹ {e(note)}" for note in _notes(result)]
    return "\n".join(line.rstrip() for line in out)


def tables_html(result: _Result) -> str:
    """Return a catalog report as HTML with inline styles; each table's findings can be unfolded."""
    e = escape.html
    rows = []
    for one in result.tables[:_SHOWN]:
        colour = "inherit" if one.severity is None else COLOURS[one.severity]
        more = one.first or ""
        cell = e(escape.shorten(more, 300))
        if one.report is not None and one.report.findings:
            cell = f'<details><summary style="cursor:pointer">{cell}</summary>{report_html(one.report)}</details>'
        rows.append(
            f'<tr style="border-top:1px solid {LINE}"><td style="{_CELL};{MONO}">{e(one.table)}</td>'
            f'<td style="{_CELL};color:{colour};white-space:nowrap">{e(_kind(one))}</td>'
            f'<td style="{_CELL}">{cell}</td><td style="{_CELL};white-space:nowrap">{one.seconds:.1f} s</td></tr>'
        )
    left = len(result.tables) - _SHOWN
    notes = [f"{left:,} more tables: to_pandas() has all of them."] if left > 0 else []
    notes += list(_notes(result))
    return (
        '<div style="font-family:system-ui,sans-serif;font-size:13px;line-height:1.5;overflow-wrap:anywhere">'
        f'<div style="font-size:16px;font-weight:600">Check of {e(result.source)}: {_headline(result)}</div>'
        f'<div style="font-size:12px;opacity:.8">{e(_scope(result))}</div>'
        '<table style="border:none;border-collapse:collapse;background:none;margin-top:8px"><thead><tr>'
        + "".join(f'<th scope="col" style="{_CELL}">{name}</th>' for name in _COLUMNS)
        + f"</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        + "".join(f'<div style="font-size:12px;opacity:.8">ℹ {e(note)}</div>' for note in notes)
        + "</div>"
    )


def tables_page(result: _Result, *notes: str) -> str:
    """Return a whole HTML page with all tables, whose findings can be unfolded, and with the notes below."""
    e = escape.html
    rows = []
    for one in result.tables:
        cell = e(escape.shorten(one.first or "", 300))
        if one.report is not None and one.report.findings:
            cell = f"<details><summary>{cell}</summary>{report_section(one.report)}</details>"
        severity = one.severity or ""
        sign = "" if one.severity is None else f'<span class="sign">{SIGNS[one.severity]}</span> '
        rows.append(
            f'<tr class="{severity}"><td class="where">{e(one.table)}</td><td>{sign}{e(_kind(one))}</td>'
            f"<td>{cell}</td><td>{one.seconds:.1f} s</td></tr>"
        )
    heads = "".join(f'<th scope="col">{name}</th>' for name in _COLUMNS)
    body = (
        f"<h1>Check of {e(result.source)}: {e(_headline(result))}</h1>"
        f'<div class="note">{e(_scope(result))}</div>'
        f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )
    return page(f"Check of {result.source}", body, *_notes(result), *notes)
