"""A place in a filter's text: what stands there, and errors that point at it."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from iceexplore.errors import OptionError
from iceexplore.render import escape

__all__ = ["Place"]

#: Characters of a line shown to either side of a word that is pointed at.
_AROUND = 60
_SHOWN = 200
#: Characters of a message: names and literals in it may be of any length.
_LONGEST = 600


@dataclass(frozen=True, slots=True)
class Place:
    """Characters ``start`` to ``end`` (exclusive) of a text."""

    text: str
    start: int
    end: int

    def to(self, other: Place) -> Place:
        """From here to the end of another place."""
        return Place(self.text, self.start, other.end)

    @property
    def said(self) -> str:
        """What stands there, on one line, without characters that act, its middle left out where it is long."""
        return escape.visible(escape.shorten(" ".join(self.text[self.start : self.end].split()), _SHOWN))

    def error(self, message: str) -> OptionError:
        """The error that says ``message`` (escaped here) and shows the line with carets under the place."""
        return OptionError(f"{escape.visible(escape.shorten(message, _LONGEST))}\n{self.picture()}")

    def unparsable(self, message: str) -> OptionError:
        """The error of a text that is no filter."""
        return self.error(f"the filter cannot be parsed at character {self.start}: {message}")

    def picture(self) -> str:
        """The line, cut to what stands around the place, and a line of carets."""
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
    """Columns in a terminal: wide characters take two, combining ones none."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in ("W", "F") else 1 for c in text
    )
