"""A scene that notebooks show as a picture, with its text below."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from iceexplore.render._html import details, html_lines
from iceexplore.render._mime import Mermaid, Svg, svg_image
from iceexplore.render._svg_parts import Theme
from iceexplore.render.scenes._graphviz import graphviz
from iceexplore.render.scenes._mermaid import mermaid
from iceexplore.render.scenes._scene import Scene
from iceexplore.render.scenes._svg import svg
from iceexplore.render.scenes._text import text

if TYPE_CHECKING:
    from graphviz import Digraph

__all__ = ["SceneDrawing"]


@dataclass(frozen=True)
class SceneDrawing:
    """A tree that is shown as a static picture, without folds that the reader could open."""

    scene: Scene

    def to_text(self) -> str:
        """Return the tree as lines with box-drawing branches; control characters are escaped."""
        return text(self.scene)

    def to_svg(self, theme: Theme = "auto") -> Svg:
        """Return the tree as a standalone SVG; ``theme`` is ``auto`` (follows the viewer), ``light`` or ``dark``."""
        return svg(self.scene, theme=theme)

    def to_mermaid(self, max_nodes: int = 150) -> Mermaid:
        """Return the tree as a Mermaid flowchart, within Mermaid's limits."""
        return mermaid(self.scene, max_nodes=max_nodes)

    def to_graphviz(self) -> Digraph:
        """Return a ``graphviz.Digraph``; its ``.source`` is DOT text, ``.render()`` needs the program dot."""
        return graphviz(self.scene)

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        plain = self.to_text()
        image = svg_image(self.to_svg(), f"{self.scene.title}: {self.scene.description}")
        return {"text/plain": plain, "text/html": image + details("The tree as text", html_lines(plain))}
