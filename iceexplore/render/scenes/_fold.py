"""Fold large scenes: share a budget of nodes fairly, and replace the rest by "+N more"."""

from __future__ import annotations

from collections.abc import Sequence

from iceexplore.render.scenes._scene import Scene, SceneNode

__all__ = ["fold", "share"]


def share(counts: Sequence[int], budget: int) -> list[int]:
    """Return how many nodes of each group to show within ``budget``: all of small groups, equally many of large ones.

    A group that is not shown completely takes one more node, for its "+N more". Every group takes at least one node,
    possibly only its "+N more", even if the budget is smaller than the number of groups.
    """
    if sum(counts) <= budget:
        return list(counts)
    low, high = 0, max(counts, default=0)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(n, middle) + (n > middle) for n in counts) <= budget:
            low = middle
        else:
            high = middle - 1
    return [min(n, low) for n in counts]


def fold(scene: Scene, max_nodes: int) -> Scene:
    """Return the scene with about ``max_nodes`` nodes, the rest folded into "+N more" under their parents."""
    if len(scene.nodes) <= max_nodes:
        return scene
    sizes = _subtree_sizes(scene)
    kept: list[SceneNode] = []
    ids: set[str] = set()
    frontier: list[str | None] = [None]
    while frontier:
        groups = [(parent, scene.children.get(parent, [])) for parent in frontier]
        groups = [(parent, nodes) for parent, nodes in groups if nodes]
        room = max(0, max_nodes - len(kept))
        # A large layer takes only half of the remaining budget if there are layers below, so that these get some, too.
        deeper = any(scene.children.get(node.id) for _, nodes in groups for node in nodes)
        total = sum(len(nodes) for _, nodes in groups)
        budget = room if not deeper or total * 2 <= room else max(1, room // 2)
        frontier = []
        for (parent, nodes), n in zip(groups, share([len(nodes) for _, nodes in groups], budget), strict=True):
            for node in nodes[:n]:
                kept.append(node)
                ids.add(node.id)
                frontier.append(node.id)
            rest = nodes[n:]
            if rest:
                kept.append(_more(parent, rest, sizes))
                ids.add(kept[-1].id)
    edges = tuple(e for e in scene.edges if e.source in ids and e.target in ids)
    return Scene(scene.title, scene.description, tuple(kept), edges)


def _more(parent: str | None, rest: Sequence[SceneNode], sizes: dict[str, int]) -> SceneNode:
    nodes = sum(sizes[node.id] for node in rest)
    lines = tuple(node.label for node in rest if node.kind == "more")[:1]
    if nodes > len(rest):
        lines = (f"with {nodes:,} nodes in all", *lines)
    return SceneNode(
        id=f"fold\x00{parent}",
        kind="more",
        label=f"+{len(rest):,} more",
        lines=lines,
        marks=frozenset({"folded"}),
        parent=parent,
        level=min(node.level for node in rest),
    )


def _subtree_sizes(scene: Scene) -> dict[str, int]:
    sizes = {node.id: 1 for node in scene.nodes}
    for node in reversed(scene.nodes):  # parents come before their children
        if node.parent is not None:
            sizes[node.parent] += sizes[node.id]
    return sizes
