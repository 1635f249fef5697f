"""The tree of a table: metadata files, snapshots, refs, manifest lists, manifests and files, read when unfolded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

from iceexplore.errors import OptionError, whole_number
from iceexplore.graph._state import TableState
from iceexplore.graph._travel import snapshot_of
from iceexplore.graph.tree._labels import Labels, amount
from iceexplore.graph.tree._nodes import TreeNode
from iceexplore.graph.tree._shown import Depth, Shown, TreeOptions, shown_nodes
from iceexplore.graph.tree._source import FoldedRows, NodeSource
from iceexplore.render import (
    Mermaid,
    Scene,
    SceneEdge,
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

__all__ = ["Tree", "build_tree", "chosen_snapshots"]

#: Number of children shown when a node is unfolded.
_PAGE = 50


class Tree:
    """A view of a table's tree with some nodes shown and the rest folded. Immutable; unfolding returns a new tree.

    Nodes are read when the tree is first used (`nodes`, any ``to_*`` method, or its display in a notebook). Any node of
    the table can be looked up by id, shown or not: see `node` and `children`.
    """

    def __init__(self, source: NodeSource, options: TreeOptions, expanded: Mapping[str, int] | None = None) -> None:
        self._source = source
        self._options = options
        self._expanded = dict(expanded or {})

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_shown"}  # read again after unpickling

    @cached_property
    def _shown(self) -> Shown:
        return shown_nodes(self._source, self._options, self._expanded)

    @property
    def nodes(self) -> tuple[TreeNode, ...]:
        """The shown nodes, parents before their children."""
        return tuple(self._shown.nodes.values())

    @property
    def edges(self) -> tuple[SceneEdge, ...]:
        """The relations besides parent and child: refs to snapshots, deletes to the files they apply to."""
        return tuple(self._shown.edges)

    def node(self, node_id: str) -> TreeNode:
        """Return the node with this id, shown or not, reading its manifest if necessary.

        Raises
        ------
        OptionError
            The table has no such node.
        """
        node_id = _id(node_id)
        found = self._shown.nodes.get(node_id) or self._source.find(node_id)
        if found is None:
            raise self._unknown(node_id)
        return found

    def children(
        self, node_id: str, *, offset: int = 0, limit: int = 200, changed_first: bool = False
    ) -> list[TreeNode]:
        """Return a page of a node's children (shown or not) or of the nodes in a fold; reads the files it needs.

        Parameters
        ----------
        changed_first
            Begin with the entries of a root or manifest that the snapshot itself added or removed.

        Raises
        ------
        OptionError
            The table has no such node, or the offset or limit is negative.
        """
        offset, limit = whole_number("offset", offset), whole_number("limit", limit)
        node_id = _id(node_id)
        hidden = self._shown.hidden.get(node_id)
        if hidden is not None:
            return hidden(offset, limit)
        if node_id not in self._shown.nodes and not self._source.has(node_id):
            raise self._unknown(node_id)
        return self._source.children(node_id, offset, limit, changed_first=changed_first)

    def folded(self, node_id: str, offset: int) -> FoldedRows | None:
        """Return a root's or manifest's children from ``offset`` on as cells; None for any other node.

        The order is the same as in ``children(changed_first=True)``. No nodes are built.
        """
        return self._source.folded(_id(node_id), whole_number("offset", offset))

    def _unknown(self, node_id: str) -> OptionError:
        some = ", ".join(list(self._shown.nodes)[:6])
        return OptionError(f"the tree of {self._source.state.name} has no node {node_id!r}; ids look like {some}")

    def expand(self, node_id: str, *, limit: int = _PAGE) -> Tree:
        """Return a tree that shows ``limit`` more children of this node or, if it is a fold, more of its nodes.

        Raises
        ------
        OptionError
            This tree does not show the node, or the limit is less than 1.
        """
        limit = whole_number("limit", limit, least=1)
        node_id = _id(node_id)
        node = self._shown.nodes.get(node_id)
        if node is None:
            raise OptionError(f"this tree does not show a node {node_id!r}; .nodes lists the shown ones")
        target = node_id
        if node_id.startswith("more:") and node.parent is not None:
            target = node.parent
        shown = 0 if target in ("table", "metadata") else self._shown.counts.get(target, 0)
        shown = max(shown, self._expanded.get(target, 0))
        return Tree(self._source, self._options, {**self._expanded, target: shown + limit})

    def find(self, words: str) -> list[TreeNode]:
        """Return the shown nodes whose label, location, lines or fields contain the words, ignoring case."""
        wanted = str(words).casefold()
        return [
            node
            for node in self.nodes
            if wanted in "\n".join([node.label, node.location or "", *node.lines, str(dict(node.fields))]).casefold()
        ]

    def scene(self) -> Scene:
        """Return the nodes and edges in the form that renderers take."""
        state, nodes = self._source.state, self.nodes
        total = len(self._source.snapshots)
        here = [n for n in nodes if n.kind == "snapshot"]
        words = [state.format_name]
        if len(here) == 1:
            words.append(f"snapshot {here[0].fields['snapshot-id']}, one of {total}" if total > 1 else "one snapshot")
        else:
            words.append(f"{len(here)} of {amount(total, 'snapshot')}" if here else "no snapshot")
        if len(state.problems):
            words.append(amount(len(state.problems), "problem"))
        title = f"{state.name} · {state.travel}" if state.travel else state.name
        return Scene(title, " · ".join(words), tuple(n.scene_node() for n in nodes), self.edges)

    def to_text(self) -> str:
        """Return the tree as lines with box-drawing branches; control characters are escaped."""
        return text(self.scene())

    def to_svg(self, theme: Theme = "auto") -> Svg:
        """Return the tree as a standalone SVG. ``theme``: ``auto`` follows the viewer, or ``light``, ``dark``."""
        return svg(self.scene(), theme=theme)

    def to_mermaid(self, max_nodes: int = 150) -> Mermaid:
        """Return the tree as a Mermaid flowchart, within Mermaid's limits."""
        return mermaid(self.scene(), max_nodes=max_nodes)

    def to_graphviz(self) -> Digraph:
        """Return a ``graphviz.Digraph``; its ``.source`` is DOT text, ``.render()`` needs the program dot."""
        return graphviz(self.scene())

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        scene = self.scene()
        plain = text(scene)
        image = svg_image(svg(scene), f"{scene.title}: {scene.description}")
        pre = html_lines(plain)
        return {"text/plain": plain, "text/html": image + details("The tree as text", pre)}


def build_tree(
    state: TableState,
    *,
    snapshots: Literal["current", "all"] | int | str | Iterable[int] | None = None,
    depth: Depth = "manifests",
    labels: Labels = "short",
    max_nodes: int = 150,
) -> Tree:
    """Return the tree of a table state.

    With the defaults, displaying it reads one manifest list and nothing else.

    Parameters
    ----------
    snapshots
        ``current`` (the state's snapshot), ``all``, a snapshot id, several ids, or a small number for the last N
        snapshots. A number that is the id of a snapshot means that snapshot.
    depth
        ``snapshots`` reads no further files; ``manifests`` reads manifest lists; ``files`` reads, in addition, those
        manifests whose files fit into the tree.
    labels
        ``short`` (file names), ``full`` (locations, sequence numbers), ``counts`` (no names).
    max_nodes
        Approximate number of nodes to show; the rest is folded into "+N more" nodes that summarize it.

    Raises
    ------
    OptionError
        An argument has no valid value.
    SnapshotNotFoundError
        No such snapshot; the message lists the nearest ones.
    """
    _check("depth", depth, get_args(Depth))
    _check("labels", labels, get_args(Labels))
    max_nodes = whole_number("max_nodes", max_nodes, least=1)
    source = NodeSource(state, labels)
    return Tree(source, TreeOptions(chosen_snapshots(source, snapshots), depth, max_nodes))


def _check(option: str, value: str, accepted: tuple[str, ...]) -> None:
    if value not in accepted:
        raise OptionError(f"{option}={value!r}: choose one of {', '.join(map(repr, accepted))}")


def chosen_snapshots(source: NodeSource, snapshots: object) -> tuple[int, ...]:
    """Return the ids of the snapshots that an argument selects; see `build_tree`."""
    state = source.state
    every = [s.snapshot_id for s in source.snapshots]
    match snapshots:
        case None | "current":
            return () if state.snapshot is None else (state.snapshot.snapshot_id,)
        case "all":
            return tuple(every)
        case bool():
            pass
        case int():
            if snapshots not in every and 1 <= snapshots <= 100_000:
                return tuple(every[-snapshots:])
            return (snapshot_of(state.metadata, snapshots, state.name).snapshot_id,)
        case str():
            if snapshots.lstrip("-").isdecimal():
                return (snapshot_of(state.metadata, int(snapshots), state.name).snapshot_id,)
        case Iterable():
            ids = list(snapshots)
            if all(isinstance(i, int) and not isinstance(i, bool) for i in ids):
                return tuple(snapshot_of(state.metadata, i, state.name).snapshot_id for i in ids)
    raise OptionError(
        f"snapshots={snapshots!r}: give 'current', 'all', a snapshot id, several ids, or a number for the last N"
    )


def _id(given: object) -> str:
    if not isinstance(given, str):
        raise OptionError(f"{given!r} is not a node id: give a text such as 'table'; .nodes lists the shown nodes")
    return given
