"""What the metadata tables are made of: leaf manifests of one snapshot, or of every snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from iceexplore.graph import TableState
from iceexplore.manifests import ContentType, Manifest
from iceexplore.metadata import Snapshot
from iceexplore.storage import progress

__all__ = ["ALL", "DATA", "DELETES", "every_root", "in_parallel", "reachable_leaves", "snapshot_leaves"]

DATA = frozenset({int(ContentType.DATA_MANIFEST)})
DELETES = frozenset({int(ContentType.DELETE_MANIFEST)})
ALL = DATA | DELETES

_WORKERS = 8  # reads wait for the storage

_In = TypeVar("_In")
_Out = TypeVar("_Out")


def in_parallel(work: Callable[[_In], _Out], items: Iterable[_In]) -> Iterator[_Out]:
    """The results of some reads in the order of the items; the first error ends the rest."""
    waiting = list(items)
    if len(waiting) < 2:
        yield from map(work, waiting)
        return
    pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="iceexplore-inspect")
    try:
        with progress(len(waiting), "files") as step:
            for result in pool.map(work, waiting):
                yield result
                step()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def every_root(state: TableState) -> Iterator[tuple[Snapshot, Manifest]]:
    """The root of every snapshot in the metadata, in its order."""

    def read(snapshot: Snapshot) -> tuple[Snapshot, Manifest | None]:
        return snapshot, state.root(snapshot)

    for snapshot, root in in_parallel(read, state.metadata.snapshots):
        if root is not None:
            yield snapshot, root


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
    for snapshot, root in every_root(state):
        yield from state.leaves(snapshot, ordinals=_ordinals(root, contents, seen), parts=frozenset(parts))
