"""Split the text of a filter into words, literals and signs.

Strings follow standard SQL: ``''`` is a quote, and a backslash has no special meaning. Names are quoted with double
quotes (SQL) or backticks (Spark). Few words are reserved (such as ``and`` and ``in``), so ``date = 5`` and ``order >
3`` need no quotes.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

from iceexplore.errors import OptionError
from iceexplore.render import escape

__all__ = [
    "MAX_LENGTH",
    "Place",
    "Token",
    "scan",
    "tokens_of",
]

#: Number of characters shown on either side of a marked word.
_AROUND = 60
_SHOWN = 200
#: Maximum length of a message, which may contain names and literals of any length.
_LONGEST = 600


@dataclass(frozen=True, slots=True)
class Place:
    """The characters ``start`` to ``end`` (exclusive) of a text."""

    text: str
    start: int
    end: int

    def to(self, other: Place) -> Place:
        """Return the place from the beginning of this one to the end of another."""
        return Place(self.text, self.start, other.end)

    @property
    def quoted(self) -> str:
        """The text at this place on one line, with control characters escaped and a long middle left out."""
        return escape.visible(escape.shorten(" ".join(self.text[self.start : self.end].split()), _SHOWN))

    def error(self, message: str) -> OptionError:
        """Return an error with ``message`` (escaped by this method), and below it the text with carets at the place."""
        return OptionError(f"{escape.visible(escape.shorten(message, _LONGEST))}\n{self.picture()}")

    def unparsable(self, message: str) -> OptionError:
        """Return the error that the text is not a valid filter."""
        return self.error(f"the filter cannot be parsed at character {self.start}: {message}")

    def picture(self) -> str:
        """Return the line of the text, shortened around this place, followed by a line of carets."""
        first = self.text.rfind("\n", 0, self.start) + 1
        last = self.text.find("\n", self.start)
        last = len(self.text) if last < 0 else last
        end = max(min(self.end, last), self.start)
        left, right = max(first, self.start - _AROUND), min(last, max(end, self.start + 1) + _AROUND)
        shown_end = min(end, self.start + 2 * _AROUND)
        before = ("…" if left > first else "") + escape.visible(self.text[left : self.start])
        word = escape.visible(self.text[self.start : shown_end])
        after = escape.visible(self.text[shown_end : min(right, shown_end + _AROUND)])
        after += "…" if min(right, shown_end + _AROUND) < last else ""
        return f"  {before}{word}{after}\n  {' ' * _width(before)}{'^' * max(1, _width(word))}"


def _width(text: str) -> int:
    """Return the width in a terminal: wide characters take two columns, combining ones none."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in ("W", "F") else 1 for c in text
    )


#: Maximum length of a filter's text; a list of 20,000 UUIDs fits.
MAX_LENGTH = 1_000_000
_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
    |(?P<bytes>[xX]'[^']*')
    |(?P<string>'[^']*(?:''[^']*)*')
    |(?P<name>"[^"]*(?:""[^"]*)*"|`[^`]*(?:``[^`]*)*`)
    |(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\w*)
    |(?P<word>[^\W\d][\w$]*)
    |(?P<sign><=>|<=|>=|<>|!=|==|::|&&|\|\||[-=<>!(),.;+*/%\[\]{}?:|&^~@$\#\\])""",
    re.VERBOSE | re.DOTALL,
)
_OPENED = {"'": "unterminated string: missing '", '"': 'unterminated name: missing "',
           "`": "unterminated name: missing `", "/": "unterminated comment: missing */"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Token:
    """A token; ``text`` is the content of a quoted name or string, or a word in lower case."""

    kind: Literal["word", "name", "number", "string", "bytes", "sign", "end"]
    text: str
    at: Place


def tokens_of(text: str) -> list[Token]:
    """Return the tokens of a text, followed by one of kind ``end``.

    Raises
    ------
    OptionError
        There is an unexpected character, an unterminated string, name or comment, or more than `MAX_LENGTH` characters.
    """
    if len(text) > MAX_LENGTH:
        raise OptionError(f"the filter has {len(text):,} characters, more than {MAX_LENGTH:,}: split it")
    out, at = scan(text)
    if at < len(text):
        raise Place(text, at, at + 1).unparsable(_OPENED.get(text[at], f"unexpected character {text[at]!r}"))
    out.append(Token("end", "", Place(text, len(text), len(text))))
    return out


def scan(text: str) -> tuple[list[Token], int]:
    """Return the valid tokens at the beginning of a text, and the position at which the rest is invalid, or the end."""
    out: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or (match[0] == "/" and text.startswith("/*", at)):
            break
        at = match.end()
        kind = match.lastgroup
        if kind == "space":
            continue
        found = match[0]
        if kind == "string" or kind == "name":
            found = found[1:-1].replace(found[0] * 2, found[0])
        elif kind == "bytes":
            found = found[2:-1]
        elif kind == "word":
            found = found.lower()
        out.append(Token(kind, found, Place(text, match.start(), at)))  # type: ignore[arg-type]
    return out, at
