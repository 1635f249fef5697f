"""Long lists of siblings as strips of cells: a drawing stays small however many nodes a scene has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from iceexplore.render.scenes._cells import CellBlock
from iceexplore.render.scenes._scene import Scene, SceneNode
from iceexplore.render.scenes._style import style

__all__ = ["MOST_SIBLINGS", "size_shade", "strip_block", "with_strips"]

#: Up to `MOST_SIBLINGS` siblings are all drawn as cards; of a longer list, only about `_CARDS` are.
MOST_SIBLINGS, _CARDS = 30, 12
#: Maximum number of changed or damaged siblings that are drawn as cards.
_CHANGED_CARDS = 24
_CHANGE = {"added": 1, "removed": 2}
_POINTERS = ("snapshot", "branch", "tag", "metadata")


def size_shade(size: int | None) -> int:
    """Return the shade of a size in bytes: a step for each power of ten from 10 kB to 100 MB; 2 if it is unknown."""
    return 2 if size is None else max(0, min(5, len(str(max(0, size))) - 4))


def strip_block(nodes: Sequence[SceneNode]) -> CellBlock:
    """Return nodes as cells: a node that represents many has its own cells, any other is one cell."""
    names: dict[str, int] = {}
    kinds, shades, changes = bytearray(), bytearray(), bytearray()
    for node in nodes:
        if node.cells is not None:
            own = [names.setdefault(name, len(names)) for name in node.cells.names]
            kinds += bytes(own[kind] for kind in node.cells.kinds)
            shades += node.cells.shades
            changes += node.cells.changes
            continue
        kinds.append(names.setdefault("pruned" if "pruned" in node.marks else node.kind, len(names)))
        shades.append(size_shade(node.size))
        changes.append(
            next((_CHANGE[mark] for mark in _CHANGE if mark in node.marks and "carried" not in node.marks), 0)
        )
    return CellBlock(bytes(shades), bytes(kinds), bytes(changes), tuple(names) or ("more",))


def with_strips(scene: Scene) -> Scene:
    """Return a scene in which no node has many more than `MOST_SIBLINGS` children; strips of cells replace others.

    Cards go to damaged or changed nodes first, then to nodes with children or edges, then to the last snapshots and
    refs or the first nodes of other kinds.
    """
    long = {p: nodes for p, nodes in scene.children.items() if sum(n.cells is None for n in nodes) > MOST_SIBLINGS}
    if not long:
        return scene
    ends = {end for edge in scene.edges for end in (edge.source, edge.target)}
    children: dict[str | None, list[SceneNode]] = dict(scene.children)
    for parent, nodes in long.items():
        cards = _cards(nodes, ends, {node.id for node in nodes if scene.children.get(node.id)})
        # Nodes that are already folded into cells join the strip, but a fold of carried-over entries stays separate.
        own = [node for node in nodes if node.cells is not None and "carried" in node.marks]
        kept = {node.id for node in (*cards, *own)}
        children[parent] = [*cards, _strip(parent, [node for node in nodes if node.id not in kept]), *own]
    out: list[SceneNode] = []
    queue = list(reversed(children.get(None, [])))
    while queue:
        node = queue.pop()
        out.append(node)
        queue += reversed(children.get(node.id, []))
    ids = {node.id for node in out}
    edges = tuple(e for e in scene.edges if e.source in ids and e.target in ids)
    return replace(scene, nodes=tuple(out), edges=edges)


def _cards(nodes: Sequence[SceneNode], ends: set[str], parents: set[str]) -> list[SceneNode]:
    """Return the siblings that are drawn as cards, changed ones first."""
    plain = [node for node in nodes if node.cells is None]
    changed = [node for node in plain if _is_changed(node)]
    first = changed[: _CARDS if len(changed) == len(plain) else _CHANGED_CARDS]
    known = {node.id for node in first}

    def rank(place: int) -> tuple[bool, bool, int]:
        node = plain[place]
        return node.id not in parents, node.id not in ends, -place if node.kind in _POINTERS else place

    ranked = [i for i in sorted(range(len(plain)), key=rank) if plain[i].id not in known]
    others = sorted(ranked[: max(0, _CARDS - len(first))])  # in the order of the scene
    return [*first, *(plain[i] for i in others)]


def _is_changed(node: SceneNode) -> bool:
    """Return whether a node is damaged, or added or removed by its snapshot."""
    return "problem" in node.marks or bool(node.marks & {"added", "removed"} and "carried" not in node.marks)


def _strip(parent: str | None, rest: Sequence[SceneNode]) -> SceneNode:
    count = sum(1 if node.cells is None else node.count for node in rest)
    return SceneNode(
        id=f"strip\x00{parent}",
        kind="more",
        label=f"+{count:,} more",
        lines=tuple(_kinds(rest)),
        marks=frozenset({"problem"}) if any("problem" in node.marks for node in rest) else frozenset(),
        parent=parent,
        level=min(node.level for node in rest),
        cells=strip_block(rest),
        count=count,
    )


def _kinds(rest: Iterable[SceneNode]) -> list[str]:
    """Return texts such as "5 data files" for the most frequent kinds of nodes.

    If one cell of a fold represents several nodes, their kinds are not known; then return the fold's own lines.
    """
    counts: Counter[str] = Counter()
    for node in rest:
        if node.cells is None:
            counts[node.kind] += 1
        elif node.count == len(node.cells):
            counts.update(node.cells.names[kind] for kind in node.cells.kinds)
        else:
            return list(node.lines)
    return [f"{n:,} {_plural(kind, n)}" for kind, n in counts.most_common(3)]


def _plural(kind: str, count: int) -> str:
    title = style(kind).title
    return title[0].lower() + title[1:] + ("" if count == 1 else "es" if title.endswith("ch") else "s")
