"""What the metadata tables are made of: leaf manifests of one snapshot, or of every snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from iceexplore.graph import TableState
from iceexplore.manifests import ContentType, Manifest

__all__ = ["ALL", "DATA", "DELETES", "reachable_leaves", "snapshot_leaves"]

DATA = frozenset({int(ContentType.DATA_MANIFEST)})
DELETES = frozenset({int(ContentType.DELETE_MANIFEST)})
ALL = DATA | DELETES


def _ordinals(root: Manifest, contents: frozenset[int], seen: set[str]) -> list[int]:
    """The rows of a root that are manifests of these kinds and not seen yet."""
    kinds = root.entries.column("content_type").to_pylist()
    places = root.entries.column("location").to_pylist()
    out = []
    for ordinal, (kind, place) in enumerate(zip(kinds, places, strict=True)):
        if kind in contents and place not in seen:
            seen.add(place)
            out.append(ordinal)
    return out


def snapshot_leaves(state: TableState, contents: frozenset[int], parts: Iterable[str]) -> Iterator[Manifest]:
    """The leaf manifests of the state's snapshot."""
    root = state.root()
    if root is not None:
        yield from state.leaves(ordinals=_ordinals(root, contents, set()), parts=frozenset(parts))


def reachable_leaves(state: TableState, contents: frozenset[int], parts: Iterable[str]) -> Iterator[Manifest]:
    """The leaf manifests of every snapshot in the metadata, each once (as Java's ``reachableManifests``)."""
    seen: set[str] = set()
    for snapshot in state.metadata.snapshots:
        root = state.root(snapshot)
        if root is not None:
            yield from state.leaves(snapshot, ordinals=_ordinals(root, contents, seen), parts=frozenset(parts))
