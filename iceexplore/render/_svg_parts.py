"""Parts that all SVG pictures share: numbers, texts, and checks of a picture's options."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias, get_args

from iceexplore.errors import OptionError
from iceexplore.render import _escape as escape
from iceexplore.render._mime import FONT, Svg

__all__ = ["FONT", "MARGIN", "Theme", "chart_svg", "check_theme", "check_width", "number", "text"]

Theme: TypeAlias = Literal["auto", "light", "dark"]

#: Space around a chart, in pixels.
MARGIN = 20.0
#: Maximum length of a description in characters, because a screen reader reads all of it.
_SPOKEN = 4000


def number(value: float, digits: int = 1) -> str:
    """Return a coordinate or length as short text: ``12.5``, ``12``."""
    return f"{value:.{digits}f}".rstrip("0").rstrip(".")


def text(x: float, y: float, content: str, css: str, size: float, more: str = "") -> str:
    """Return a text element with escaped content, or an empty string without content; ``more`` are attributes."""
    if not content:
        return ""
    return (
        f'<text class="{css}" x="{number(x)}" y="{number(y)}" font-size="{number(size)}"{more}>'
        f"{escape.svg(content)}</text>"
    )


def check_theme(theme: str) -> None:
    """Raise an error unless a theme is known."""
    if theme not in get_args(Theme):
        raise OptionError(f"unknown theme {theme!r}; choose 'auto', 'light' or 'dark'")


def check_width(width: float) -> None:
    """Raise an error unless a picture of this width in pixels can be drawn."""
    if not 400 <= width <= 10_000:
        raise OptionError(f"width={width!r}: expected 400 to 10000 pixels")


def chart_svg(title: str, spoken: str, css: str, width: float, height: float, parts: Iterable[str]) -> Svg:
    """Return a chart as a picture with a background, and with a title and description for screen readers.

    Parameters
    ----------
    width, height
        The size of the picture in pixels, including its margins.
    parts
        SVG elements; the origin of their coordinates is inside the margin.
    """
    size = f'width="{number(width, 2)}" height="{number(height, 2)}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} '
        f'viewBox="0 0 {number(width, 2)} {number(height, 2)}" role="img" font-family="{FONT}">'
        f"<title>{escape.svg(escape.shorten(title, 300))}</title>"
        f"<desc>{escape.svg(escape.shorten(spoken, _SPOKEN))}</desc><style>{css}</style>"
        f'<rect class="ix-paper" {size} rx="10"/><g transform="translate({number(MARGIN)} {number(MARGIN)})">'
    )
    return Svg("\n".join([head, *filter(None, parts), "</g></svg>"]), caption=title, width=width)
