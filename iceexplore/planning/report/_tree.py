"""Draw a plan as a tree: what is read, what is skipped and why, and which deletes apply to which file."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from iceexplore.errors import OptionError
from iceexplore.planning.report._tree_scene import plan_scene
from iceexplore.render import (
    Mermaid,
    Scene,
    Svg,
    Theme,
    details,
    graphviz,
    html_lines,
    mermaid,
    svg,
    svg_image,
    text,
)

if TYPE_CHECKING:
    from graphviz import Digraph

    from iceexplore.planning.scan._result import PlannedScan

__all__ = ["PlanTree"]


@dataclass(frozen=True, repr=False)
class PlanTree:
    """A plan, drawn as a tree: the table, the manifest list or root manifest, the manifests, data files and deletes.

    The nodes of skipped manifests and files are gray and marked. They show the term of the filter that excludes them,
    such as ``id > 9``, and the bounds or partition values that were compared with it, such as ``bounds: id is 0 to 9``.
    If there are many manifests or files, only some get nodes of their own, and one more node shows the number of the
    others.

    Attributes
    ----------
    plan
        The plan.
    max_nodes
        Approximate maximum number of nodes, at least 8.
    """

    plan: PlannedScan
    max_nodes: int = 60

    def __post_init__(self) -> None:
        if type(self.max_nodes) is not int or self.max_nodes < 8:
            raise OptionError(f"max_nodes={self.max_nodes!r}: give a whole number of at least 8")

    @cached_property
    def _scene(self) -> Scene:
        return plan_scene(self.plan, self.max_nodes)

    def scene(self) -> Scene:
        """Return the nodes and edges of the tree, from which the texts and pictures are made."""
        return self._scene

    def to_text(self) -> str:
        """Return the tree as lines of text; skipped nodes are marked with ⊘."""
        return text(self._scene)

    def to_svg(self, theme: Theme = "auto") -> Svg:
        """Return the tree as a standalone SVG.

        Parameters
        ----------
        theme
            ``light``, ``dark``, or ``auto`` for the theme that the user has set in the browser or system.
        """
        return svg(self._scene, theme=theme)

    def to_mermaid(self, max_nodes: int = 150) -> Mermaid:
        """Return the tree as a Mermaid flowchart.

        Parameters
        ----------
        max_nodes
            Approximate maximum number of nodes. Fewer nodes are drawn if the flowchart would otherwise have more edges
            or more text than Mermaid accepts.
        """
        return mermaid(self._scene, max_nodes=max_nodes)

    def to_graphviz(self) -> Digraph:
        """Return a ``graphviz.Digraph``; ``.source`` is its DOT text, ``.render()`` needs the program ``dot``."""
        return graphviz(self._scene)

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        plain = self.to_text()
        image = svg_image(self.to_svg(), f"{self._scene.title}: {self._scene.description}")
        pre = html_lines(plain)
        return {"text/plain": plain, "text/html": image + details("The plan as text", pre)}
