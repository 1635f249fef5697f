"""Small pieces of HTML that survive an untrusted notebook: inline ``style=``, tables, ``<details>`` and data images.

Nothing uses ``<style>``, ids, roles or inline SVG, which sanitisers strip. Colours are inherited, or transparent greys
that suit light and dark pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from iceexplore.render import _escape as escape

__all__ = ["Html", "details", "html_lines", "html_page", "html_table"]

_FONT = "font-family:system-ui,-apple-system,'Segoe UI',Roboto,sans-serif"
_RULE = "1px solid rgba(128,128,128,.35)"
_CELL = f"padding:4px 12px 4px 0;border:none;border-bottom:{_RULE};text-align:left;vertical-align:top"
_NUMBER = (
    f"padding:4px 12px 4px 0;border:none;border-bottom:{_RULE};text-align:right;white-space:nowrap;"
    "font-variant-numeric:tabular-nums"
)
_MUTED = "opacity:.72"
_MAX_CELL = 400


class Html(str):
    """Text that is already HTML: helpers insert it unchanged and escape everything else."""

    __slots__ = ()


def _content(value: object) -> str:
    if isinstance(value, Html):
        return str(value)
    return "" if value is None else escape.html(escape.shorten(value, _MAX_CELL))


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _shown(value: object) -> object:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**15 else value


def html_table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], caption: str | None = None, *, limit: int = 200
) -> Html:
    """Return a table: cells escaped unless `Html`, numbers right-aligned, rows beyond ``limit`` only counted."""
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


def details(summary: object, body: Html, *, opened: bool = False) -> Html:
    """Return a collapsible section that works without scripts."""
    return Html(
        f'<details{" open" if opened else ""} style="{_FONT};font-size:13px;margin:8px 0">'
        f'<summary style="cursor:pointer">{_content(summary)}</summary>{body}</details>'
    )


def html_lines(text: str) -> Html:
    """Return preformatted lines, each escaped on its own, because escaping would replace line breaks by signs."""
    lines = "\n".join(escape.html(line) for line in text.split("\n"))
    return Html(f'<pre style="overflow-x:auto;line-height:1.35">{lines}</pre>')


def html_page(title: str, body: str, *, images: bool = False) -> str:
    """Return a whole HTML page that makes no requests and runs no scripts; with ``images``, it may contain images."""
    policy = f"default-src 'none'; style-src 'unsafe-inline'{'; img-src data:' if images else ''}"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape.html(title)}</title></head><body>{body}</body></html>\n"
    )
