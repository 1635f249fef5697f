"""A cursor over the tokens of a filter's text."""

from __future__ import annotations

from iceexplore.errors import OptionError
from iceexplore.expressions._parse_place import Place
from iceexplore.expressions._tokens import Token

__all__ = ["Cursor", "HELP"]

#: What to write instead of a sign that has no place in a filter.
HELP = {
    "&&": "write and", "&": "write and", "||": "write or (texts cannot be joined)", "|": "write or",
    "?": "parameters are not supported: write the value", ":": "parameters are not supported: write the value",
    "[": "elements of lists and maps cannot be filtered by", "{": "only columns and literals can be compared",
    ";": "one condition is expected",
    **dict.fromkeys("+-*/%^~", "arithmetic is not supported: compare the column itself with a literal"),
}  # fmt: skip


class Cursor:
    """Reads tokens one after the other."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._next = 0

    def here(self) -> Token:
        """The next token."""
        return self._tokens[self._next]

    def last(self) -> Place:
        """Where the token before stands."""
        return self._tokens[max(self._next - 1, 0)].at

    def peek(self, ahead: int = 1) -> Token:
        """A token further on."""
        return self._tokens[min(self._next + ahead, len(self._tokens) - 1)]

    def take(self) -> Token:
        """The next token, and go on."""
        token = self.here()
        self._next += token.kind != "end"
        return token

    def word(self, *words: str) -> bool:
        """Take these words if they come next."""
        if all((t := self.peek(i)).kind == "word" and t.text == word for i, word in enumerate(words)):
            self._next += len(words)
            return True
        return False

    def sign(self, sign: str) -> bool:
        """Take this sign if it comes next."""
        if self.here().kind == "sign" and self.here().text == sign:
            self._next += 1
            return True
        return False

    def expect(self, sign: str, where: str) -> None:
        """Take this sign, which must come next."""
        if not self.sign(sign):
            raise self.unexpected(f"'{sign}' {where}")

    def unexpected(self, wanted: str) -> OptionError:
        """The error that something else comes next than what is wanted."""
        token = self.here()
        if token.kind == "end":
            return token.at.unparsable(f"{wanted} is expected, the text ends")
        if token.kind == "sign" and token.text in HELP:
            return token.at.unparsable(HELP[token.text])
        return token.at.unparsable(f"{wanted} is expected, not {token.at.said}")
