"""Estimate text widths without a font, for positions that are computed in Python: estimates must not be too small.

The widths are those of DejaVu Sans, the widest of the usual interface fonts; texts in other fonts leave some space.
"""

from __future__ import annotations

import unicodedata

__all__ = ["elide", "text_width", "wrapped"]

_WIDTHS: dict[str, float] = {}
for _chars, _width in (
    ("ijl'|", 0.30),
    ("I!., :;·", 0.34),
    ("()[]-/\\ftr_", 0.40),
    ('csvxyzJ?"^*`{}', 0.56),
    ("abdeghknopqu0123456789FEL$LTZ…", 0.64),
    ("ABCDGHKNOPQRSUVXY&", 0.74),
    ("mMwW@%+−<>=~", 0.90),
):
    for _c in _chars:
        _WIDTHS[_c] = _width

_BOLD = 1.13


def _char(c: str) -> float:
    width = _WIDTHS.get(c)
    if width is None:
        if unicodedata.combining(c):
            width = 0.0
        else:
            width = 1.05 if unicodedata.east_asian_width(c) in "WF" or ord(c) > 0x2FFF else 0.72
        if len(_WIDTHS) < 5000:
            _WIDTHS[c] = width
    return width


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Return the width in pixels at a font size in pixels."""
    return sum(map(_char, text)) * size * (_BOLD if bold else 1.0)


def elide(text: str, size: float, limit: float, *, bold: bool = False) -> str:
    """Return the text if it fits into ``limit`` pixels, else its beginning and end around an ellipsis."""
    if len(text) > 2000:  # no screen shows more, and a name may take 100 kB
        text = text[:1000] + text[-1000:]
        fits = False
    else:
        fits = text_width(text, size, bold=bold) <= limit
    if fits:
        return text
    room = limit / (size * (_BOLD if bold else 1.0)) - _char("…")
    head, tail = 0, len(text)
    while head < tail:
        # Keep characters from both ends in turn, beginning at the end: in a path, that is the file's name.
        step = _char(text[tail - 1])
        if step > room:
            break
        room -= step
        tail -= 1
        if head >= tail:
            break
        step = _char(text[head])
        if step > room:
            break
        room -= step
        head += 1
    return text[:head] + "…" + text[tail:]


def wrapped(text: str, size: float, limit: float, most: int) -> list[str]:
    """Wrap text to at most ``most`` lines of ``limit`` pixels; the last line is cut if necessary."""
    if len(text) <= 2000 and text_width(text, size) <= limit:
        return [text]
    lines: list[str] = []
    words = text.split(" ")
    for i, word in enumerate(words):
        if lines and text_width(f"{lines[-1]} {word}", size) <= limit:
            lines[-1] += " " + word
        elif len(lines) == most:
            lines[-1] = elide(" ".join([lines[-1], *words[i:]]), size, limit)
            break
        elif word:
            lines.append(word)
    return [elide(line, size, limit) for line in lines]
