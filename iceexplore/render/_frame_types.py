"""pandas frames and series that print safely. This module is imported only when needed, because it imports pandas."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from iceexplore.errors import visible

__all__ = ["ShownFrame", "ShownSeries"]

#: Jupyter typesets ``$...$`` and ``\\(...\\)`` in HTML as formulas, but not if each sign is in an element of its own.
_MATH = re.compile(r"[$\\]")
_STYLE = re.compile(r"(<style.*?</style>)", re.S)


def _lines(text: str) -> str:
    """Return multi-line text with control characters made visible; pandas itself escapes line breaks inside values."""
    return "\n".join(map(visible, text.split("\n")))


def _html(text: str) -> str:
    """Return pandas' HTML, whose values are already escaped, with control characters made visible and no formulas."""
    parts = _STYLE.split(_lines(text))
    return "".join(p if i % 2 else _MATH.sub(lambda m: f"<span>{m[0]}</span>", p) for i, p in enumerate(parts))


def _given(text: str, buf: Any) -> str | None:
    """Return the text, or write it to the caller's buffer or file."""
    if buf is None:
        return text
    if hasattr(buf, "write"):
        buf.write(text)
    else:
        with open(buf, "w", encoding="utf-8") as out:
            out.write(text)
    return None


class ShownSeries(pd.Series):
    """A column of a `ShownFrame`."""

    @property
    def _constructor(self) -> Any:
        return ShownSeries

    @property
    def _constructor_expanddim(self) -> Any:
        return ShownFrame

    def __repr__(self) -> str:
        return _lines(super().__repr__())

    def to_string(self, buf: Any = None, **options: Any) -> Any:
        """Return pandas' text with control characters made visible."""
        return _given(_lines(super().to_string(None, **options)), buf)

    def value_counts(self, *args: Any, **options: Any) -> Any:
        """Return pandas' counts as a `ShownSeries`."""
        return ShownSeries(super().value_counts(*args, **options))


class ShownFrame(pd.DataFrame):
    """A data frame that prints escape sequences, bidi overrides and NUL as visible signs."""

    @property
    def _constructor(self) -> Any:
        return ShownFrame

    @property
    def _constructor_sliced(self) -> Any:
        return ShownSeries

    def __repr__(self) -> str:
        return _lines(super().__repr__())

    def _repr_html_(self) -> str | None:
        made: str | None = super()._repr_html_()  # type: ignore[misc]
        return None if made is None else _html(made)

    def to_string(self, buf: Any = None, **options: Any) -> Any:
        """Return pandas' text with control characters made visible."""
        return _given(_lines(super().to_string(None, **options)), buf)

    def to_html(self, buf: Any = None, **options: Any) -> Any:
        """Return pandas' HTML with control characters made visible."""
        return _given(_html(super().to_html(None, **options)), buf)
