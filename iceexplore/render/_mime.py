"""Strings that notebooks draw according to their MIME type."""

from __future__ import annotations

import base64
import re

from iceexplore.render import _escape as escape
from iceexplore.render._measure import elide

__all__ = ["FONT", "Mermaid", "Svg", "svg_image"]

FONT = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,'DejaVu Sans',sans-serif"

#: Smallest scale to which a drawing shrinks to fit the page; if that is not enough, it scrolls, to stay readable.
_SMALLEST = 0.72
#: Matches the beginning of a picture up to its ``viewBox``, so that its size can be replaced.
_SIZE = re.compile(r'<svg xmlns="[^"]*" width="[^"]*" height="[^"]*" (viewBox=)')


def svg_image(svg: str, alt: str) -> str:
    """Return an ``<img>`` with the SVG as data, since untrusted notebooks strip inline SVG."""
    data = base64.b64encode(svg.encode("utf-8")).decode("ascii")
    width = svg.width if isinstance(svg, Svg) else None
    size = (
        "max-width:100%" if width is None else f"width:100%;max-width:{width:.0f}px;min-width:{width * _SMALLEST:.0f}px"
    )
    return (
        f'<div style="overflow-x:auto"><img src="data:image/svg+xml;base64,{data}" '
        f'alt="{escape.attribute(escape.shorten(alt, 300))}" style="{size};height:auto;margin:0"></div>'
    )


class Svg(str):
    """An SVG document as text, which a notebook shows as an image."""

    caption: str
    width: float | None

    def __new__(cls, text: str, *, caption: str = "", width: float | None = None) -> Svg:
        self = super().__new__(cls, text)
        self.caption = caption
        self.width = width
        return self

    def slide(self, title: str = "", caption: str = "") -> Svg:
        """Return the picture, with its legend, on a page of 1920 x 1080 with a title and a caption above it.

        The page has the theme of the picture.

        Parameters
        ----------
        title
            The title; by default that of the picture.
        """
        width, height, margin, top = 1920, 1080, 64, 172
        title = title or self.caption
        room = width - 2 * margin
        inside = f'<svg x="{margin}" y="{top}" width="{room}" height="{height - top - margin // 2}" '
        picture = _SIZE.sub(lambda found: inside + found[1], self, count=1)
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="{FONT}">',
            f"<title>{escape.svg(escape.shorten(title, 300))}</title>",
            f'<rect class="ix-paper" width="{width}" height="{height}"/>',
        ]
        for words, css, size, y in ((title, "ix-title", 44, 92), (caption, "ix-muted", 22, 136)):
            shown = escape.svg(elide(escape.visible(words), size, room, bold=size == 44))
            lines.append(f'<text class="{css}" x="{margin}" y="{y}" font-size="{size}">{shown}</text>')
        return Svg("\n".join([*lines, picture, "</svg>"]), caption=title, width=width)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": svg_image(self, self.caption)}


class Mermaid(str):
    """A Mermaid diagram as text, drawn by notebooks: JupyterLab by MIME type, others by the Markdown fence.

    The MIME bundle has no ``text/html``, which would take precedence over Mermaid.
    """

    __slots__ = ()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        text = str(self)
        return {
            "text/plain": text,
            "text/markdown": f"```mermaid\n{text}\n```\n",
            "text/vnd.mermaid": text,
        }
