"""Texts that a notebook draws: a `str` that also says what it is."""

from __future__ import annotations

import base64
from typing import Any

from iceexplore.render import _escape as escape

__all__ = ["Mermaid", "Svg", "svg_image"]


def svg_image(svg: str, alt: str, *, natural_size: bool = False) -> str:
    """An ``<img>`` with the SVG inside: what survives in an untrusted notebook, where inline SVG is stripped.

    With ``natural_size`` a wide drawing scrolls sideways instead of shrinking until nobody can read it.
    """
    data = base64.b64encode(svg.encode("utf-8")).decode("ascii")
    width = "none" if natural_size else "100%"
    image = (
        f'<img src="data:image/svg+xml;base64,{data}" alt="{escape.attribute(escape.shorten(alt, 300))}" '
        f'style="max-width:{width};height:auto;margin:0">'
    )
    return f'<div style="overflow-x:auto">{image}</div>' if natural_size else image


class Svg(str):
    """An SVG document as text, to write to a file as it is. A notebook shows it as an image."""

    caption: str

    def __new__(cls, text: str, *, caption: str = "") -> Svg:
        self = super().__new__(cls, text)
        self.caption = caption
        return self

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": svg_image(self, self.caption, natural_size=True)}


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
