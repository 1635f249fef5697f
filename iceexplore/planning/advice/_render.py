"""Show advice as text, and as HTML that is also displayed in an untrusted notebook, since it has no scripts."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from iceexplore.graph import human_bytes
from iceexplore.planning.advice._spread import Reading
from iceexplore.planning.advice._suggestion import Suggestion, amount
from iceexplore.render import Html, details, escape, html_table

__all__ = ["advice_html", "advice_text"]

_SHOWN = 20


def advice_text(
    filter_text: str, now: Reading, suggestions: Sequence[Suggestion], clustering: pa.Table, notes: Sequence[str]
) -> str:
    """Return advice as lines of text.

    Terminal control characters are escaped, because names in a table may contain them. The text includes at most
    `_SHOWN` suggestions and at most `_SHOWN` notes.

    Parameters
    ----------
    filter_text
        The filter, as text.
    now
        The number of data files that the plan reads today, and their bytes.
    suggestions, clustering, notes
        The attributes of `Advice` with these names.
    """
    reads = f"{amount(now.files, 'file')}, {human_bytes(now.bytes)}"
    out = [f"Tuning advice for {_cut(filter_text)}; a scan with this filter reads {reads}"]
    for row in clustering.to_pylist():
        out.append("  " + _clustered(row))
    if not suggestions:
        out.append("  no suggestions")
    for i, s in enumerate(suggestions[:_SHOWN], 1):
        numbers = _numbers(s)
        out.append(f"{i}. {_cut(s.title)}" + (f": {numbers}" if numbers else ""))
        out.append(f"   {_cut(s.why, 600)}")
        if s.assumes:
            out.append(f"   assumes: {_cut(s.assumes, 300)}")
        out += [f"   {_cut(line, 600)}" for line in s.statements]
    if len(suggestions) > _SHOWN:
        out.append(f"and {len(suggestions) - _SHOWN} more")
    out += [f"  {_cut(note, 600)}" for note in notes[:_SHOWN]]
    return "\n".join(out)


def advice_html(
    filter_text: str, now: Reading, suggestions: Sequence[Suggestion], clustering: pa.Table, notes: Sequence[str]
) -> str:
    """Return advice as HTML: a table of suggestions, followed by SQL statements that readers can unfold.

    The parameters are those of `advice_text`.
    """
    e = escape.html
    head = (
        f'<div style="font:600 14px system-ui,sans-serif;margin:4px 0">Tuning advice for '
        f"<code>{e(escape.shorten(filter_text, 300))}</code></div>"
        f'<div style="font:13px system-ui,sans-serif;opacity:.8">The plan reads {amount(now.files, "file")}, '
        f"{e(human_bytes(now.bytes))}.</div>"
    )
    lines = [f'<div style="font:13px system-ui,sans-serif">{e(_clustered(r))}</div>' for r in clustering.to_pylist()]
    after = [f'<div style="font:13px system-ui,sans-serif">{e(escape.shorten(n, 600))}</div>' for n in notes[:_SHOWN]]
    if not suggestions:
        lines.append('<div style="font:13px system-ui,sans-serif">No suggestions.</div>')
        return head + "".join(lines + after)
    rows = [
        [i, Html(_title_html(s)), s.unit if s.before else "", _reading(s.before), _reading(s.after), _basis(s)]
        for i, s in enumerate(suggestions[:_SHOWN], 1)
    ]
    table = html_table(["", "suggestion", "counted", "now", "then", "basis"], rows)
    statements = []
    for i, s in enumerate(suggestions[:_SHOWN], 1):
        if s.statements:
            code = "".join(f"{e(escape.shorten(t, 2000))};\n" for t in s.statements)
            title = f"{i}. {escape.shorten(s.title, 120)}: statements for Spark"
            statements.append(details(title, Html(f'<pre style="white-space:pre-wrap">{code}</pre>')))
    return head + "".join(lines) + str(table) + "".join(map(str, statements)) + "".join(after)


def _title_html(s: Suggestion) -> str:
    e = escape.html
    assumes = f'<div style="opacity:.72">assumes: {e(escape.shorten(s.assumes, 300))}</div>' if s.assumes else ""
    return f"<b>{e(escape.shorten(s.title, 160))}</b><div>{e(escape.shorten(s.why, 600))}</div>{assumes}"


def _reading(r: Reading | None) -> str:
    return "" if r is None else f"{r.files:,} · {human_bytes(r.bytes)}"


def _basis(s: Suggestion) -> str:
    return "" if s.before is None or s.after is None else s.basis


def _numbers(s: Suggestion) -> str:
    if s.before is None or s.after is None:
        return ""
    return f"{_reading(s.before)} → {_reading(s.after)} ({s.unit}, {s.basis})"


def _clustered(row: dict[str, object]) -> str:
    name = escape.text(escape.shorten(row["column"], 80))
    text = f"{name}: a value is in the ranges of {row['depth']:,.1f} files on average, of {row['deepest']:,} at most; "
    text += f"partition pruning and the metrics of this column leave {row['reads']:,} of {row['files']:,} files to read"
    return text + (
        f", about {row['sorted']:,} if the rows of each partition were sorted by this column"
        if row["sorted"] is not None
        else ""
    )


def _cut(text: str, limit: int = 200) -> str:
    return escape.text(escape.shorten(text, limit))
