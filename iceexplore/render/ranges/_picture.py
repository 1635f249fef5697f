"""Objects shown as ranges: in a notebook, an image with a text below."""

from __future__ import annotations

from iceexplore.render._html import details, html_lines
from iceexplore.render._mime import Svg, svg_image
from iceexplore.render._svg_parts import Theme
from iceexplore.render.ranges._ranges import RangeChart, ranges_text, spoken_ranges
from iceexplore.render.ranges._svg import ranges_svg

__all__ = ["RangePicture"]


class RangePicture:
    """A base class for objects shown as ranges."""

    def chart(self) -> RangeChart:
        """Return the ranges as plain data."""
        raise NotImplementedError

    def to_svg(self, theme: Theme = "auto", *, width: float = 800.0) -> Svg:
        """Return the ranges as a standalone SVG.

        Parameters
        ----------
        theme
            ``auto`` (follows the viewer's settings), ``light`` or ``dark``.
        width
            Width in pixels, at least 400.

        Raises
        ------
        OptionError
            The theme is unknown, or the width out of range.
        """
        return ranges_svg(self.chart(), theme=theme, width=width)

    def to_text(self) -> str:
        """Return the ranges as lines of text, with control characters made visible."""
        return ranges_text(self.chart())

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        chart = self.chart()
        plain = ranges_text(chart)
        image = svg_image(ranges_svg(chart), f"{chart.title}. {spoken_ranges(chart)}")
        return {"text/plain": plain, "text/html": image + details("The picture as text", html_lines(plain))}
