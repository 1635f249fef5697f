"""Strings that notebooks draw according to their MIME type."""

from __future__ import annotations

import base64

from iceexplore.render import _escape as escape

__all__ = ["Mermaid", "Svg", "svg_image"]


#: Smallest scale to which a drawing shrinks to fit the page; a wider one scrolls, to stay readable.
_SMALLEST = 0.72


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
