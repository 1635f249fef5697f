"""The words, literals and signs of a filter's text.

Strings are standard SQL's: ``''`` stands for a quote, a backslash for itself. Names are quoted with double quotes
(SQL) or backticks (Spark). No word is reserved where only a column can stand, so ``date = 5`` and ``order > 3`` need
no quotes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from iceexplore.errors import OptionError
from iceexplore.expressions._parse_place import Place

__all__ = ["MAX_LENGTH", "Token", "scan", "tokens_of"]

#: Characters of a filter's text: a list of 20,000 UUIDs fits.
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
_OPENED = {"'": "a text is never closed: ' is missing", '"': 'a name is never closed: " is missing',
           "`": "a name is never closed: ` is missing", "/": "a comment is never closed: */ is missing"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Token:
    """One of them; ``text`` is a quoted name's or string's content, a word in lower case (`at` has it as written)."""

    kind: Literal["word", "name", "number", "string", "bytes", "sign", "end"]
    text: str
    at: Place


def tokens_of(text: str) -> list[Token]:
    """The tokens of a text, and one of kind ``end``.

    Raises
    ------
    OptionError
        A character that stands nowhere in SQL, something that is never closed, more than `MAX_LENGTH` characters.
    """
    if len(text) > MAX_LENGTH:
        raise OptionError(f"the filter has {len(text):,} characters, more than {MAX_LENGTH:,}: split it")
    out, at = scan(text)
    if at < len(text):
        raise Place(text, at, at + 1).unparsable(_OPENED.get(text[at], f"{text[at]!r} stands nowhere in a filter"))
    out.append(Token("end", "", Place(text, len(text), len(text))))
    return out


def scan(text: str) -> tuple[list[Token], int]:
    """The tokens of a text as far as there are any, and where that is: its end, or the character that is wrong."""
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
