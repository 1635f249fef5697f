"""Objects shown as bar charts: in a notebook, an image with its numbers as text below."""

from __future__ import annotations

from iceexplore.render._html import details, html_lines
from iceexplore.render._mime import Svg, svg_image
from iceexplore.render._svg_parts import Theme
from iceexplore.render.bars._bars import BarChart, bars_text, spoken
from iceexplore.render.bars._svg import bars_svg

__all__ = ["BarPicture"]


class BarPicture:
    """A base class for objects shown as a bar chart."""

    def chart(self) -> BarChart:
        """Return the bars as plain data."""
        raise NotImplementedError

    def to_svg(self, theme: Theme = "auto", *, width: float | None = None) -> Svg:
        """Return the bars as a standalone SVG.

        Parameters
        ----------
        theme
            ``auto`` (follows the viewer's settings), ``light`` or ``dark``.
        width
            Width in pixels, at least 400; by default 700, or more if there are more than four columns.

        Raises
        ------
        OptionError
            The theme is unknown, or the width out of range.
        """
        chart = self.chart()
        return bars_svg(chart, theme=theme, width=width or max(700.0, 140.0 * (len(chart.columns) + 1)))

    def to_text(self) -> str:
        """Return the bars as lines of text, with control characters made visible."""
        return bars_text(self.chart())

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        plain = self.to_text()
        chart = self.chart()
        pre = html_lines(plain)
        image = svg_image(self.to_svg(), f"{chart.title}. {spoken(chart)}")
        return {"text/plain": plain, "text/html": image + details("The numbers as text", pre)}
