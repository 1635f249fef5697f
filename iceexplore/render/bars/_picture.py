"""What shows itself as bars: in a notebook an image with its numbers as text under it."""

from __future__ import annotations

from typing import Any

from iceexplore.render._html import details, html_lines
from iceexplore.render._mime import Svg, svg_image
from iceexplore.render.bars._bars import BarChart, bars_text, spoken
from iceexplore.render.bars._svg import bars_svg
from iceexplore.render.scenes._svg import Theme

__all__ = ["BarPicture"]


class BarPicture:
    """The faces of a bar chart."""

    def chart(self) -> BarChart:
        """The bars as plain data."""
        raise NotImplementedError

    def to_svg(self, theme: Theme = "auto", *, width: float | None = None) -> Svg:
        """The bars as a standalone SVG.

        Parameters
        ----------
        theme
            ``auto`` follows the viewer, or ``light``, ``dark``.
        width
            Pixels, at least 400; by default 700, and more where there are more than four columns.

        Raises
        ------
        OptionError
            An unknown theme, or a width out of range.
        """
        chart = self.chart()
        return bars_svg(chart, theme=theme, width=width or max(700.0, 140.0 * (len(chart.columns) + 1)))

    def to_text(self) -> str:
        """The bars as lines of text; nothing in it can drive a terminal."""
        return bars_text(self.chart())

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        plain = self.to_text()
        chart = self.chart()
        pre = html_lines(plain)
        image = svg_image(self.to_svg(), f"{chart.title}. {spoken(chart)}")
        return {"text/plain": plain, "text/html": image + details("The numbers as text", pre)}
