"""Parts that all SVG pictures share: numbers, texts, and checks of a picture's options."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from iceexplore.errors import OptionError
from iceexplore.render import _escape as escape

__all__ = ["FONT", "Theme", "check_theme", "check_width", "number", "text"]

Theme: TypeAlias = Literal["auto", "light", "dark"]

FONT = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,'DejaVu Sans',sans-serif"


def number(value: float, digits: int = 1) -> str:
    """Return a coordinate or length as short text: ``12.5``, ``12``."""
    return f"{value:.{digits}f}".rstrip("0").rstrip(".")


def text(x: float, y: float, content: str, css: str, size: float, more: str = "") -> str:
    """Return a text element with escaped content, empty for an empty text; ``more`` are further attributes."""
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
