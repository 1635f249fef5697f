"""Small pieces of HTML that survive an untrusted notebook: inline ``style=``, tables, ``<details>`` and data images.

Nothing here uses ``<style>``, ids, roles or inline SVG, which sanitisers strip. Colours are the page's own, or greys
with an alpha that suit light and dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from iceexplore.render import _escape as escape

__all__ = ["Html", "card", "chip", "details", "html_table", "key_values", "problem_list", "section"]

_FONT = "font-family:system-ui,-apple-system,'Segoe UI',Roboto,sans-serif"
_RULE = "1px solid rgba(128,128,128,.35)"
_CELL = f"padding:4px 12px 4px 0;border:none;border-bottom:{_RULE};text-align:left;vertical-align:top"
_NUMBER = f"padding:4px 12px 4px 0;border:none;border-bottom:{_RULE};text-align:right;font-variant-numeric:tabular-nums"
_MUTED = "opacity:.72"
_MAX_CELL = 400

#: Sign and colour by severity; the greyed reds and ambers are legible on white and on near-black.
_SEVERITY = {"error": ("✖", "#d9453c"), "warning": ("!", "#c77700"), "info": ("i", "#3b82c4")}


class Html(str):
    """Text that already is HTML: helpers put it in as it is. Everything else they escape."""

    __slots__ = ()


def _content(value: Any) -> str:
    if isinstance(value, Html):
        return str(value)
    return "" if value is None else escape.html(escape.shorten(value, _MAX_CELL))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _shown(value: Any) -> Any:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**15 else value


def html_table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], caption: str | None = None, *, limit: int = 200
) -> Html:
    """A plain table. Cells are escaped unless they are `Html`; numbers stand right; rows past ``limit`` are counted."""
    shown: list[Sequence[Any]] = []
    rest = 0
    for row in rows:
        if len(shown) < limit:
            shown.append(row)
        else:
            rest += 1
    numeric = [
        bool(shown) and all(_is_number(row[i]) or row[i] is None for row in shown if i < len(row))
        for i in range(len(columns))
    ]
    out = [f'<table style="{_FONT};font-size:13px;border-collapse:collapse;margin:4px 0">']
    if caption:
        out.append(
            f'<caption style="text-align:left;padding:4px 0;{_MUTED};caption-side:top">{_content(caption)}</caption>'
        )
    heads = "".join(
        f'<th style="{_NUMBER if n else _CELL};font-weight:600">{_content(c)}</th>'
        for c, n in zip(columns, numeric, strict=True)
    )
    out.append(f"<thead><tr>{heads}</tr></thead><tbody>")
    for row in shown:
        cells = "".join(
            f'<td style="{_NUMBER if n else _CELL}">{_content(_shown(v))}</td>'
            for v, n in zip(row, numeric, strict=False)
        )
        out.append(f"<tr>{cells}</tr>")
    if rest:
        out.append(f'<tr><td colspan="{len(columns)}" style="{_CELL};{_MUTED}">+{rest:,} more rows</td></tr>')
    out.append("</tbody></table>")
    return Html("".join(out))


def key_values(rows: Iterable[tuple[str, Any]]) -> Html:
    """Names and values in two columns."""
    name = f"padding:2px 16px 2px 0;border:none;text-align:left;vertical-align:top;white-space:nowrap;{_MUTED}"
    value = "padding:2px 0;border:none;text-align:left;overflow-wrap:anywhere"
    body = "".join(
        f'<tr><td style="{name}">{_content(k)}</td><td style="{value}">{_content(_shown(v))}</td></tr>' for k, v in rows
    )
    return Html(f'<table style="{_FONT};font-size:13px;border-collapse:collapse;margin:2px 0"><tbody>{body}</tbody></table>')


def chip(label: object, colour: str | None = None) -> Html:
    """A short word in a rounded frame. ``colour`` must be our own, never from a table."""
    edge = colour or "rgba(128,128,128,.5)"
    tint = f"color:{colour};" if colour else ""
    return Html(
        f'<span style="{_FONT};font-size:12px;display:inline-block;padding:1px 9px;margin:1px 6px 1px 0;'
        f'border:1px solid {edge};border-radius:10px;{tint}white-space:nowrap">{_content(label)}</span>'
    )


def section(title: str, body: Html) -> Html:
    """A titled part of a card."""
    head = f"{_FONT};font-size:12px;font-weight:600;letter-spacing:.04em;text-transform:uppercase;{_MUTED}"
    return Html(f'<div style="margin:12px 0 0 0"><div style="{head}">{_content(title)}</div>{body}</div>')


def details(summary: object, body: Html, *, open: bool = False) -> Html:
    """A part that unfolds without script."""
    return Html(
        f'<details{" open" if open else ""} style="{_FONT};font-size:13px;margin:8px 0">'
        f'<summary style="cursor:pointer">{_content(summary)}</summary>{body}</details>'
    )


def card(title: object, subtitle: object, sections: Iterable[Html]) -> Html:
    """A framed card with a title line."""
    return Html(
        f'<div style="{_FONT};font-size:13px;line-height:1.45;border:{_RULE};border-radius:10px;'
        'padding:14px 18px;margin:4px 0;max-width:1100px">'
        f'<div style="font-size:18px;font-weight:650;overflow-wrap:anywhere">{_content(title)}</div>'
        f'<div style="{_MUTED};overflow-wrap:anywhere">{_content(subtitle)}</div>{"".join(sections)}</div>'
    )


def problem_list(items: Iterable[tuple[str, str, str]], *, limit: int = 50) -> Html:
    """Problems as (severity, text, where), each with a sign beside its colour."""
    out: list[str] = []
    rest = 0
    for severity, words, where in items:
        if len(out) >= limit:
            rest += 1
            continue
        sign, colour = _SEVERITY.get(severity, _SEVERITY["info"])
        out.append(
            f'<div style="margin:3px 0;padding-left:8px;border-left:3px solid {colour};overflow-wrap:anywhere">'
            f'<b style="color:{colour}">{sign} {_content(severity)}</b> {_content(words)} '
            f'<span style="{_MUTED}">{_content(where)}</span></div>'
        )
    if rest:
        out.append(f'<div style="{_MUTED}">+{rest:,} more</div>')
    return Html(f'<div style="{_FONT};font-size:13px">{"".join(out)}</div>')
