"""Edges from deletes to the files and manifests that they apply to, among the nodes that are shown."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from iceexplore.graph.tree._labels import basename
from iceexplore.graph.tree._nodes import TreeNode
from iceexplore.metadata import TableMetadata
from iceexplore.render import SceneEdge
from iceexplore.storage import path_only

__all__ = ["MOST_TARGETS", "applies_edges", "applies_to"]

#: Maximum number of edges of a delete that applies to several files. If it would have more, none is drawn; the lines of
#: its node describe the files to which it applies.
MOST_TARGETS = 12
_DELETES = ("deletion-vector", "position-delete", "equality-delete", "manifest-dv", "delete-manifest")


def applies_edges(nodes: Iterable[TreeNode], metadata: TableMetadata, *, most: int = MOST_TARGETS) -> list[SceneEdge]:
    """Return an edge from each live delete to each file or manifest that it applies to, where both are shown.

    Spec, "Scan Planning": the data file's sequence number must not exceed the delete's, and must be smaller than an
    equality delete's; position deletes are ignored for a file that has a deletion vector; a delete that names no data
    file applies to all data files of its partition or, if it is an equality delete of an unpartitioned spec, of the
    table. In V4, a manifest DV applies to a leaf, and so does a delete manifest with a referenced file. If no shown
    data file has the exact location, the only one with the same path (but another scheme or host) is used, as in
    `iceexplore.planning.match_deletes`.

    Parameters
    ----------
    most
        Maximum number of edges of a delete that names no file; it gets none if there would be more.
    """
    live = [n for n in nodes if n.id[:5] in ("file:", "manif") and "removed" not in n.marks]
    if not any(n.kind in _DELETES for n in live):
        return []
    files: dict[str, dict[str, TreeNode]] = {}
    manifests: dict[str, dict[str, TreeNode]] = {}
    bare: dict[str, set[str]] = {}
    partitions: dict[tuple[str, str | None], list[TreeNode]] = {}
    for node in live:
        if node.kind == "data-file":
            for key in dict.fromkeys((node.partition_key, None)):
                partitions.setdefault((_snapshot(node), key), []).append(node)
        if node.kind != "deletion-vector" and node.location:
            places = files if node.kind == "data-file" else manifests if node.id.startswith("manif") else {}
            places.setdefault(node.location, {})[_snapshot(node)] = node
            if node.kind == "data-file":
                bare.setdefault(path_only(node.location), set()).add(node.location)

    def meant(node: TreeNode) -> str:
        path = applies_to(node) or ""
        alike = bare.get(path_only(path), ()) if path and path not in files else ()
        return next(iter(alike)) if len(alike) == 1 else path

    def several(node: TreeNode) -> list[TreeNode]:
        """Return the files that a delete applies to if it names none; an empty list if there are too many."""
        equality, snapshot = node.kind == "equality-delete", _snapshot(node)
        spec = metadata.spec(node.fields.get("partition_spec_id", -1))
        if spec is None or (node.partition_key is None and not spec.is_unpartitioned):
            return []
        everywhere = equality and spec.is_unpartitioned
        found = (
            file
            for file in partitions.get((snapshot, None if everywhere else node.partition_key), ())
            if _sequence(file) <= _sequence(node) - equality and (equality or (snapshot, file.location) not in vectors)
        )
        some = list(islice(found, most + 1))
        return some if len(some) <= most else []

    vectors = {(_snapshot(node), meant(node)) for node in live if node.kind == "deletion-vector"}
    edges = []
    for node in live:
        if node.kind not in _DELETES:
            continue
        path, snapshot = meant(node), _snapshot(node)
        if node.kind == "equality-delete" or (node.kind == "position-delete" and not path):
            edges += [_edge(node, target) for target in several(node)]
            continue
        found = (files if node.kind in ("deletion-vector", "position-delete") else manifests).get(path)
        if not found or (node.kind == "position-delete" and (snapshot, path) in vectors):
            continue
        # Prefer this snapshot's node of the file; if it is folded as carried over, take another snapshot's.
        target = found.get(snapshot) or next(iter(found.values()))
        if target.kind != "data-file" or _sequence(target) <= _sequence(node):
            edges.append(_edge(node, target))
    return edges


def applies_to(node: TreeNode) -> str | None:
    """Return the location of the one file or leaf that a delete applies to; None if it names none."""
    if node.kind not in ("deletion-vector", "position-delete", "manifest-dv", "delete-manifest"):
        return None
    path = node.fields.get("referenced_file")
    if path is None and node.kind == "manifest-dv":
        path = node.fields.get("location")  # an inline vector has the leaf's location
    return path if isinstance(path, str) else None


def _edge(node: TreeNode, target: TreeNode) -> SceneEdge:
    return SceneEdge(node.id, target.id, "applies-to", f"applies to {basename(target.location)}")


def _snapshot(node: TreeNode) -> str:
    return node.id.split(":")[1]


def _sequence(node: TreeNode) -> int:
    return node.fields.get("sequence_number") or 0
