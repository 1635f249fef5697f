"""A card: the facts about one thing as headings, names with values, and small tables, in text and in HTML.

The HTML uses only inline ``style=``, tables and ``<details>``, which also survive in an untrusted notebook, and
transparent or inherited colours, so that it fits light and dark pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from iceexplore.render import escape
from iceexplore.render._html import html_lines

__all__ = ["Card", "CardTable", "CardText", "card_html", "card_text"]

#: Maximum length of a text in HTML, in characters; a longer one loses its middle.
_MOST = 1_000
#: Maximum number of lines of a text that are shown, and of characters of a line.
_LINES = 60
_LINE_LENGTH = 400
_SIGN = {"error": "✖", "warning": "▲", "info": "ℹ"}
_EDGE = {"error": "#c62828", "warning": "#e65100", "info": "#0277bd"}
_MONO = "font-family:ui-monospace,monospace;"
_GREY = "rgba(128,128,128,.16)"
_LINE = "rgba(128,128,128,.35)"


@dataclass(frozen=True)
class CardTable:
    """A small table under a heading.

    Columns whose indices are in ``code`` are monospaced, and those in ``right`` are right-aligned.
    """

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    open: bool = True
    code: frozenset[int] = frozenset()
    right: frozenset[int] = frozenset()


@dataclass(frozen=True)
class CardText:
    """A text of several lines under a heading, such as a query; of a long text, only the beginning is shown."""

    heading: str
    text: str
    note: str = ""
    open: bool = True

    def lines(self) -> list[str]:
        """Return the lines to show, unescaped; if some are left out, the last line counts their characters."""
        found = self.text[: _LINES * _LINE_LENGTH].expandtabs(4).splitlines()
        shown = [line if len(line) <= _LINE_LENGTH else line[: _LINE_LENGTH - 1] + "…" for line in found[:_LINES]]
        left = len(self.text) - sum(len(line) + 1 for line in found[:_LINES])
        return [*shown, f"… {left:,} more characters"] if len(found) > _LINES or left > 0 else shown


@dataclass(frozen=True)
class Card:
    """The content of a card: unescaped strings."""

    title: str
    badges: tuple[str, ...] = ()
    subtitle: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    tables: tuple[CardTable, ...] = ()
    texts: tuple[CardText, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[tuple[str, str, str], ...] = ()  # each one's severity, text and location


def card_text(card: Card) -> str:
    """Return the card as plain text, with control characters made visible."""
    e = escape.text
    lines = [e(card.title) + "".join(f"  [{e(b)}]" for b in card.badges)]
    if card.subtitle:
        lines.append(e(card.subtitle))
    width = max((len(k) for k, _ in card.facts), default=0)
    lines.extend(f"  {e(k):<{width}}  {e(v)}" for k, v in card.facts)
    for text in card.texts:
        lines += ["", e(text.heading) + (f"  ({e(text.note)})" if text.note else "")]
        lines.extend("  " + e(line) for line in text.lines())
    for table in card.tables:
        lines.append("")
        lines.append(e(table.heading) + (f"  ({e(table.note)})" if table.note else ""))
        lines.extend("  " + line for line in _text_table(table))
    if card.problems:
        lines += ["", f"Problems ({len(card.problems)})"]
        lines.extend(f"  {_SIGN.get(s, '•')} {e(s)}: {e(t)}  {e(w)}" for s, t, w in card.problems)
    if card.notes:
        lines += ["", *(f"ℹ {e(n)}" for n in card.notes)]
    return "\n".join(line.rstrip() for line in lines)


def _text_table(table: CardTable) -> list[str]:
    table = _without_empty(table)
    rows = [tuple(escape.text(c) for c in r) for r in (table.columns, *table.rows)]
    widths = [min(60, max(len(r[i]) for r in rows)) for i in range(len(table.columns))]

    def line(row: Sequence[str]) -> str:
        cells = (_cut(c, w) for c, w in zip(row, widths, strict=True))
        return "  ".join(
            f"{c:>{w}}" if i in table.right else f"{c:<{w}}" for i, (c, w) in enumerate(zip(cells, widths, strict=True))
        ).rstrip()

    return [line(rows[0]), "  ".join("─" * w for w in widths), *map(line, rows[1:])]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _clipped(value: object) -> str:
    """Return escaped HTML; the middle of a very long text is cut out (the card's text form keeps it)."""
    return escape.html(escape.shorten(value, _MOST))


def card_html(card: Card) -> str:
    """Return the card as HTML."""
    e = _clipped
    badges = "".join(
        f'<span style="display:inline-block;margin-left:8px;padding:1px 8px;border:1px solid {_LINE};'
        "border-radius:10px;"
        f'font-size:11px;font-weight:500;background:{_GREY}">{e(b)}</span>'
        for b in card.badges
    )
    out = [
        f'<div style="border:1px solid {_LINE};border-radius:6px;padding:12px 16px;max-width:960px;'
        'font-family:system-ui,sans-serif;font-size:13px;line-height:1.5;overflow-wrap:anywhere">',
        f'<div style="font-size:16px;font-weight:600">{e(card.title)}{badges}</div>',
    ]
    if card.subtitle:
        out.append(f'<div style="{_MONO}font-size:12px;opacity:.8">{e(card.subtitle)}</div>')
    if card.facts:
        cells = "".join(
            f'<div style="margin:6px 28px 0 0"><div style="font-size:11px;opacity:.75">{e(k)}</div>'
            f'<div style="font-weight:500">{e(v)}</div></div>'
            for k, v in card.facts
        )
        out.append(f'<div style="display:flex;flex-wrap:wrap;margin-bottom:6px">{cells}</div>')
    if card.problems:
        out.append(_problems_html(card.problems))
    out.extend(_text_html(t) for t in card.texts)
    out.extend(_table_html(t) for t in card.tables)
    out.extend(f'<div style="margin-top:8px;font-size:12px;opacity:.8">ℹ {e(n)}</div>' for n in card.notes)
    out.append("</div>")
    return "".join(out)


def _problems_html(problems: Sequence[tuple[str, str, str]]) -> str:
    e = _clipped
    items = "".join(
        f'<div style="border-left:3px solid {_EDGE.get(s, _LINE)};padding:2px 8px;margin:4px 0;background:{_GREY}">'
        f"<b>{_SIGN.get(s, '•')} {e(s)}</b> {e(t)}"
        f'<div style="font-family:ui-monospace,monospace;font-size:11px;opacity:.8">{e(w)}</div></div>'
        for s, t, w in problems
    )
    return (
        f'<details style="margin-top:8px" open><summary style="cursor:pointer"><b>Problems</b> ({len(problems)})'
        f"</summary>{items}</details>"
    )


def _text_html(text: CardText) -> str:
    note = f' <span style="opacity:.75;font-size:12px">{_clipped(text.note)}</span>' if text.note else ""
    return (
        f'<details style="margin-top:8px"{" open" if text.open else ""}><summary style="cursor:pointer">'
        f"<b>{_clipped(text.heading)}</b>{note}</summary>{html_lines(chr(10).join(text.lines()))}</details>"
    )


def _without_empty(table: CardTable) -> CardTable:
    """Return the table without columns that are empty in every row."""
    kept = [i for i in range(len(table.columns)) if any(row[i] for row in table.rows)]
    return replace(
        table,
        columns=tuple(table.columns[i] for i in kept),
        rows=tuple(tuple(row[i] for i in kept) for row in table.rows),
        code=frozenset(n for n, i in enumerate(kept) if i in table.code),
        right=frozenset(n for n, i in enumerate(kept) if i in table.right),
    )


def _table_html(table: CardTable) -> str:
    table = _without_empty(table)
    e = _clipped

    def cell(tag: str, i: int, text: str) -> str:
        style = f"text-align:{'right' if i in table.right else 'left'};padding:2px 12px 2px 0;vertical-align:top;"
        style += (f"{_MONO}font-size:12px;" if i in table.code else "font-size:13px;") if tag == "td" else ""
        style += "font-weight:500;opacity:.75;font-size:11px;" if tag == "th" else ""
        return f'<{tag} style="{style}">{e(text)}</{tag}>'

    head = "".join(cell("th", i, c) for i, c in enumerate(table.columns))
    rows = ("".join(cell("td", i, c) for i, c in enumerate(r)) for r in table.rows)
    body = "".join(f'<tr style="background:transparent">{cells}</tr>' for cells in rows)
    note = f' <span style="opacity:.75;font-size:12px">{e(table.note)}</span>' if table.note else ""
    return (
        f'<details style="margin-top:8px"{" open" if table.open else ""}><summary style="cursor:pointer">'
        f"<b>{e(table.heading)}</b>{note}</summary>"
        f'<table style="border-collapse:collapse;margin:2px 0 0 14px;width:auto"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></details>"
    )
