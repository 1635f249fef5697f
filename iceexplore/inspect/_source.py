"""Sources of the metadata tables: leaf manifests of one snapshot, or of every snapshot."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias, TypeVar

import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.graph import Removals, TableState, live_manifests
from iceexplore.manifests import ContentType, Manifest, whole
from iceexplore.metadata import Snapshot
from iceexplore.storage import in_order, is_local, progress

__all__ = [
    "ALL",
    "DATA",
    "DELETES",
    "Rows",
    "every_root",
    "in_parallel",
    "reachable_leaves",
    "reachable_rows",
    "snapshot_leaves",
    "snapshot_rows",
    "wanted",
]

DATA = frozenset({int(ContentType.DATA_MANIFEST)})
DELETES = frozenset({int(ContentType.DELETE_MANIFEST)})
ALL = DATA | DELETES

#: Content types of the files in each kind of manifest.
_FILES_OF = {
    int(ContentType.DATA_MANIFEST): (int(ContentType.DATA),),
    int(ContentType.DELETE_MANIFEST): (int(ContentType.POSITION_DELETE), int(ContentType.EQUALITY_DELETE)),
}
_LEAST = 8  # fewest threads: reads of small files spend more time waiting for the disk than computing

_In = TypeVar("_In")
_Out = TypeVar("_Out")


def in_parallel(state: TableState, work: Callable[[_In], _Out], items: Iterable[_In]) -> Iterator[_Out]:
    """Yield the results of reads in the order of the items; the first error stops the remaining reads."""
    waiting = list(items)
    if len(waiting) < 2:
        yield from map(work, waiting)
        return
    width = max(_LEAST, state.storage.readers)
    found = in_order(work, waiting, width=width, name="iceexplore-inspect")
    try:
        with progress(len(waiting), "files") as step:
            for result in found:
                yield result
                step()
    finally:
        found.close()


def every_root(state: TableState) -> Iterator[tuple[Snapshot, Manifest]]:
    """Yield each snapshot in the metadata with its root, in the metadata's order; skip those without a root."""

    def read(snapshot: Snapshot) -> tuple[Snapshot, Manifest | None]:
        return snapshot, state.root(snapshot)

    for snapshot, root in in_parallel(state, read, state.metadata.snapshots):
        if root is not None:
            yield snapshot, root


#: A snapshot, its root, whether the root's own files are to be read, too, and the root's rows with manifests to read.
Rows: TypeAlias = tuple[Snapshot, Manifest, bool, list[int]]


def snapshot_rows(state: TableState, contents: frozenset[int]) -> Iterator[Rows]:
    """Yield the live leaf manifests of the state's snapshot, as rows of its root."""
    root = state.root()
    if root is not None and state.snapshot is not None:
        rows = [row for row, _ in _distinct(root, contents, set())]
        yield state.snapshot, root, _has_direct(state, root, contents), rows


def reachable_rows(state: TableState, contents: frozenset[int]) -> Iterator[Rows]:
    """Yield the leaf manifests of every snapshot in the metadata, each once (like Java's ``reachableManifests``).

    If several snapshots list a leaf, the one whose manifest DV removes the fewest entries counts. Files in the roots
    themselves (V4) are included.
    """
    seen: set[str] = set()
    waiting: dict[str, tuple[float, Snapshot, int]] = {}  # leaves with a manifest DV in every root read so far
    for snapshot, root in every_root(state):
        removed = Removals(root)
        whole_leaves = []
        for row, place in _distinct(root, contents, seen):
            gone = removed.of(place)
            if not gone.rows:
                seen.add(place)
                waiting.pop(place, None)
                whole_leaves.append(row)
                continue
            least = float("inf") if gone.entries is None else float(gone.entries)
            if place not in waiting or least < waiting[place][0]:
                waiting[place] = (least, snapshot, row)
        yield snapshot, root, _has_direct(state, root, contents), whole_leaves
    for _, snapshot, row in waiting.values():
        found = state.root(snapshot)
        if found is not None:
            yield snapshot, found, False, [row]


def snapshot_leaves(
    state: TableState, contents: frozenset[int], parts: Iterable[str]
) -> Iterator[tuple[Manifest, Manifest]]:
    """Yield the live leaf manifests of the state's snapshot, each with its root.

    A V4 root's own files are yielded first, as one more leaf, whose ``root_row`` is None. It may have files of all
    content types: see `wanted`.
    """
    for _, root, direct, rows in snapshot_rows(state, contents):
        yield from _read(state, root, direct, rows, parts)


def reachable_leaves(
    state: TableState, contents: frozenset[int], parts: Iterable[str]
) -> Iterator[tuple[Manifest, Manifest]]:
    """Yield the leaf manifests of every snapshot in the metadata, each once: see `reachable_rows`."""
    if is_local(state.storage.folder):
        for _, root, direct, rows in reachable_rows(state, contents):
            yield from _read(state, root, direct, rows, parts)
        return
    # Most snapshots add a single manifest, so read ahead across snapshots.
    owners: deque[tuple[Manifest, bool]] = deque()

    def places() -> Iterator[tuple[Manifest, int]]:
        for _, root, direct, rows in reachable_rows(state, contents):
            if direct:
                owners.append((root, True))
            for row in rows:
                owners.append((root, False))
                yield root, row

    def own() -> Iterator[tuple[Manifest, Manifest]]:
        """Yield the own files of those roots that come before the next leaf."""
        while owners and owners[0][1]:
            root, _ = owners.popleft()
            direct = state.reader.direct(root)
            if direct is not None:
                yield root, direct

    for leaf in state.reader.leaves_of(places(), parts=frozenset(parts)):
        yield from own()
        yield owners.popleft()[0], leaf
    yield from own()


def wanted(leaf: Manifest, contents: frozenset[int]) -> AnyArray | None:
    """Return a mask of the entries whose content type belongs in manifests with these contents; None if all do."""
    if contents == ALL or (leaf.root_row is not None and not leaf.dialect.deletion_vectors_on_entries):
        return None
    kinds = pa.array(sorted(kind for c in contents for kind in _FILES_OF[c]), pa.int32())
    return whole(pc.is_in(leaf.entries.column("content_type"), kinds))


def _distinct(root: Manifest, contents: frozenset[int], seen: set[str]) -> list[tuple[int, str]]:
    """Return the row and location of each live manifest of these kinds that is not in ``seen``, each location once.

    In dialects that store deletion vectors on the entries of data files, data manifests hold deletes, too.
    """
    if root.dialect.deletion_vectors_on_entries and contents & DELETES:
        contents = ALL
    rows = live_manifests(root, contents)
    places = build.to_pylist(root.entries.column("location").take(pa.array(rows, pa.int64())))
    found: dict[str, int] = {}
    for row, place in zip(rows, places, strict=True):
        if place not in seen:
            found.setdefault(place, row)
    return [(row, place) for place, row in found.items()]


def _has_direct(state: TableState, root: Manifest, contents: frozenset[int]) -> bool:
    """Return whether the root itself holds files of these kinds."""
    direct = state.reader.direct(root)
    if direct is None:
        return False
    mask = wanted(direct, contents)
    return mask is None or bool(pc.any(mask).as_py())


def _read(
    state: TableState, root: Manifest, direct: bool, rows: list[int], parts: Iterable[str]
) -> Iterator[tuple[Manifest, Manifest]]:
    own = state.reader.direct(root) if direct else None
    if own is not None:
        yield root, own
    if rows:
        for leaf in state.reader.leaves(root, rows, parts=frozenset(parts)):
            yield root, leaf
