"""Two texts compared line by line: unified, or side by side. The texts are untrusted, and escaped when displayed."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher, unified_diff

from iceexplore.errors import OptionError
from iceexplore.render import escape

__all__ = ["SideBySide", "UnifiedDiff", "side_by_side", "unified"]

#: The maximum number of lines that are compared, and of characters of a line that are displayed.
_MOST_LINES = 5_000
_MOST_CHARACTERS = 1_000
#: The maximum number of lines that are displayed, and the width of a column in plain text.
_SHOWN = 400
_WIDTH = 58

_ADDED = "rgba(46,160,67,.18)"
_REMOVED = "rgba(218,54,51,.18)"
_MONO = "font-family:ui-monospace,monospace;font-size:12px;line-height:1.45"
_CELL = "padding:0 8px;vertical-align:top;text-align:left;white-space:pre-wrap;overflow-wrap:anywhere"


@dataclass(frozen=True)
class UnifiedDiff:
    """A unified diff, as version control shows it. ``lines`` is unescaped; the display is escaped."""

    lines: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.lines)

    def __repr__(self) -> str:
        shown = [escape.text(_short(line)) for line in self.lines[:_SHOWN]]
        return "\n".join([*shown, *_rest(len(self.lines))]) or "no line differs"

    def _repr_html_(self) -> str:
        out = []
        for line in self.lines[:_SHOWN]:
            head = line.startswith(("+++", "---", "@@"))
            colour = "" if head else {"+": _ADDED, "-": _REMOVED}.get(line[:1], "")
            style = f"background:{colour}" if colour else "opacity:.7" if head else ""
            out.append(f'<div style="white-space:pre-wrap;{style}">{escape.html(_short(line))}</div>')
        out += [f"<div>{escape.html(line)}</div>" for line in _rest(len(self.lines))]
        return f'<div style="{_MONO}">{"".join(out) or "No line differs."}</div>'


@dataclass(frozen=True)
class SideBySide:
    """Two texts side by side: each row has a sign, the old line and the new line, or None for a missing line.

    The signs are ``=``, ``!`` (changed), ``-`` (removed) and ``+`` (added). Rows are unescaped; the display is escaped.
    """

    titles: tuple[str, str]
    rows: tuple[tuple[str, str | None, str | None], ...]

    def __repr__(self) -> str:
        e = escape.text
        out = [f"  {e(_short(self.titles[0]))[:_WIDTH]:{_WIDTH}}   {e(_short(self.titles[1]))[:_WIDTH]}".rstrip()]
        for sign, old, new in self.rows[:_SHOWN]:
            cells = [_wrapped(text) for text in (old, new)]
            for i in range(max(map(len, cells))):
                left, right = (cell[i] if i < len(cell) else "" for cell in cells)
                mark = " " if sign == "=" else sign
                out.append(f"{mark if i == 0 else ' '} {left:{_WIDTH}} │ {right}".rstrip())
        return "\n".join([*out, *_rest(len(self.rows))])

    def _repr_html_(self) -> str:
        e = escape.html
        heads = "".join(f'<th style="{_CELL};font-weight:600">{e(_short(title))}</th>' for title in self.titles)
        out = []
        for sign, old, new in self.rows[:_SHOWN]:
            cells = []
            for text, colour in ((old, _REMOVED), (new, _ADDED)):
                shade = f";background:{colour}" if sign != "=" and text is not None else ""
                cells.append(f'<td style="{_CELL}{shade};width:50%">{"" if text is None else e(_short(text))}</td>')
            mark = "" if sign == "=" else e(sign)
            out.append(f'<tr style="background:transparent"><td style="{_CELL}">{mark}</td>{"".join(cells)}</tr>')
        out += [f'<tr><td colspan="3" style="{_CELL}">{e(line)}</td></tr>' for line in _rest(len(self.rows))]
        return (
            f'<table style="{_MONO};border-collapse:collapse;width:100%;max-width:1200px"><thead><tr>'
            f'<th style="{_CELL}"></th>{heads}</tr></thead><tbody>{"".join(out)}</tbody></table>'
        )


def unified(old: str, new: str, titles: tuple[str, str], context: int) -> UnifiedDiff:
    """Return the unified diff of two texts.

    Raises
    ------
    OptionError
        A text has too many lines.
    """
    lines = unified_diff(_lines(old), _lines(new), _short(titles[0]), _short(titles[1]), lineterm="", n=context)
    return UnifiedDiff(tuple(lines))


def side_by_side(old: str, new: str, titles: tuple[str, str]) -> SideBySide:
    """Return two texts side by side. Raises the same errors as `unified`."""
    return SideBySide(titles, tuple(_rows(_lines(old), _lines(new))))


def _rows(old: list[str], new: list[str]) -> Iterator[tuple[str, str | None, str | None]]:
    for tag, i, j, k, m in SequenceMatcher(None, old, new).get_opcodes():
        if tag == "equal":
            yield from (("=", a, b) for a, b in zip(old[i:j], new[k:m], strict=True))
            continue
        both = min(j - i, m - k)
        yield from (("!", a, b) for a, b in zip(old[i : i + both], new[k : k + both], strict=True))
        yield from (("-", a, None) for a in old[i + both : j])
        yield from (("+", None, b) for b in new[k + both : m])


def _lines(text: str) -> list[str]:
    """Split a text at newlines only; other line-end characters are kept, so that differences in them are visible."""
    found = text.split("\n")
    if len(found) > _MOST_LINES:
        raise OptionError(f"the SQL has {len(found):,} lines; at most {_MOST_LINES:,} are compared line by line")
    return found


def _short(line: str) -> str:
    return escape.shorten(line.expandtabs(4), _MOST_CHARACTERS)


def _wrapped(text: str | None) -> list[str]:
    if text is None:
        return [""]
    shown = escape.text(_short(text))
    options = {"drop_whitespace": False, "replace_whitespace": False, "break_on_hyphens": False}
    return textwrap.wrap(shown, _WIDTH, **options) or [""]  # type: ignore[arg-type]


def _rest(lines: int) -> list[str]:
    return [f"… {lines - _SHOWN:,} more lines"] if lines > _SHOWN else []
