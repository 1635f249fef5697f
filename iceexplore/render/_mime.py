"""Texts that a notebook draws: a `str` that also says what it is."""

from __future__ import annotations

import base64
from typing import Any

from iceexplore.render import _escape as escape

__all__ = ["Mermaid", "Svg", "svg_image"]


def svg_image(svg: str, alt: str) -> str:
    """An ``<img>`` with the SVG inside: what survives in an untrusted notebook, where inline SVG is stripped."""
    data = base64.b64encode(svg.encode("utf-8")).decode("ascii")
    return (
        f'<img src="data:image/svg+xml;base64,{data}" alt="{escape.attribute(escape.shorten(alt, 300))}" '
        'style="max-width:100%;height:auto">'
    )


class Svg(str):
    """An SVG document as text. In a notebook it is shown as an image; save it with ``write_text``."""

    title: str

    def __new__(cls, text: str, *, title: str = "") -> Svg:
        self = super().__new__(cls, text)
        self.title = title
        return self

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": svg_image(self, self.title)}


class Mermaid(str):
    """A Mermaid diagram as text. A notebook draws it: JupyterLab by its own type, others by the Markdown fence.

    There is no ``text/html`` in the bundle: it would outrank Mermaid.
    """

    __slots__ = ()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        text = str(self)
        return {
            "text/plain": text,
            "text/markdown": f"```mermaid\n{text}\n```\n",
            "text/vnd.mermaid": text,
        }
