"""Find the tree node of a problem from its location, with or without a part such as ``#entry 3``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from iceexplore.arrow import AnyChunkedArray, build
from iceexplore.arrow import compute as pc
from iceexplore.graph import TableState, json_safe
from iceexplore.manifests import ContentType, Manifest, whole
from iceexplore.metadata import Snapshot
from iceexplore.widgets.core._ids import id_of

__all__ = ["Coverage", "Place", "coverage", "places_of"]

#: Maximum number of snapshots whose roots (manifest lists or root manifests) are searched, the shown snapshot first.
_MAX_ROOTS = 50
_MANIFESTS = (int(ContentType.DATA_MANIFEST), int(ContentType.DELETE_MANIFEST))


@dataclass(frozen=True)
class Place:
    """A node, the snapshot in whose tree it is (empty for any), and the snapshot that added it (None if unknown)."""

    node: str
    snapshot: str = ""
    since: int | None = None


@dataclass(frozen=True)
class Coverage:
    """How many of a snapshot's manifests have been read, and their total number, None if the root is unreadable."""

    read: int
    manifests: int | None


def coverage(state: TableState, root: Manifest | None) -> Coverage:
    """Return how many of a root's manifests this table's reader has read, and how many there are."""
    if root is None:
        return Coverage(0, 0)
    if not root.dialect:
        return Coverage(0, None)
    mine = root.entries.filter(pc.is_in(root.entries["content_type"], value_set=pa.array(_MANIFESTS, pa.int32())))
    named = set(mine["location"].to_pylist()) - {None}
    return Coverage(len(named & state.reader.seen), len(named))


def places_of(state: TableState, shown: Snapshot | None, wheres: Iterable[str]) -> dict[str, Place]:
    """Return the node of each problem by its ``where``; search only files already read, and the root of ``shown``.

    Parameters
    ----------
    shown
        The snapshot whose tree is searched first.
    wheres
        Values of `iceexplore.errors.Problem.where`: a location, optionally followed by ``#entry 3`` or
        ``#snapshot 17``.
    """
    found: dict[str, Place] = {}
    left: dict[str, list[str]] = {}
    for where in wheres:
        location, _, part = where.partition("#")
        place = _in_metadata(state, location, part)
        if place is None:
            left.setdefault(str(json_safe(location)), []).append(where)  # Arrow cannot hold lone surrogates
        else:
            found[where] = place
    for snapshot, root in _roots(state, shown):
        if not left:
            break
        _in_root(state, snapshot, root, left, found)
    return found


def _in_metadata(state: TableState, location: str, part: str) -> Place | None:
    metadata = state.metadata
    kind, _, number = part.partition(" ")
    if location in (state.metadata_location, metadata.location):
        snapshot = id_of(number) if kind == "snapshot" else None
        if snapshot is not None and metadata.snapshot(snapshot) is not None:
            return Place(f"snapshot:{number}", number)
        return Place("metadata")
    for i, statistics in enumerate(metadata.statistics):
        if statistics.statistics_path == location and metadata.snapshot(statistics.snapshot_id) is not None:
            mine = [s for s in metadata.statistics[:i] if s.snapshot_id == statistics.snapshot_id]
            return Place(f"statistics:{statistics.snapshot_id}:{len(mine)}", str(statistics.snapshot_id))
    return None


def _roots(state: TableState, shown: Snapshot | None) -> Iterable[tuple[Snapshot, Manifest]]:
    """Yield snapshots whose roots have been read, each with its root: the shown snapshot, then the newest first."""
    read = set(state.reader.seen)
    others = [s for s in reversed(state.metadata.snapshots) if s.root_location in read and s is not shown]
    for snapshot in [*([shown] if shown is not None else []), *others][:_MAX_ROOTS]:
        root = state.root(snapshot)
        if root is not None:
            yield snapshot, root


def _in_root(
    state: TableState, snapshot: Snapshot, root: Manifest, left: dict[str, list[str]], found: dict[str, Place]
) -> None:
    """Move the problems found in one snapshot's tree from ``left`` to ``found``.

    The search covers the root, its entries, and the entries of manifests that have been read.
    """
    at = str(snapshot.snapshot_id)
    for where in left.pop(root.location, []):
        row = _entry(where)
        place = f"root:{at}"
        if row is not None and row < len(root):
            is_manifest = root.entries["content_type"][row].as_py() in _MANIFESTS
            place = f"{'manifest' if is_manifest else 'file'}:{at}:{row}"
        found[where] = Place(place, at, snapshot.snapshot_id)
    read = set(state.reader.seen)
    entries = root.entries.select(["content_type", "location", "snapshot_id"])
    leaves = []
    for row in _rows(entries["location"], [*left, *read]):
        kind, location, since = (column[row].as_py() for column in entries.columns)
        if kind not in _MANIFESTS:
            for where in left.pop(location, []):
                found[where] = Place(f"file:{at}:{row}", at, since)
            continue
        if location in read:
            leaves.append(row)
        for where in left.pop(location, []):
            ordinal = _entry(where)
            places = [] if ordinal is None else _rows(state.reader.leaf(root, row).entries["ordinal"], [ordinal])
            node = f"file:{at}:{row}:{places[0]}" if places else f"manifest:{at}:{row}"
            found[where] = Place(node, at, since)
    for row in leaves:
        if not left:
            return
        files = state.reader.leaf(root, row).entries
        for i in _rows(files["location"], list(left)):
            for where in left.pop(files["location"][i].as_py(), []):
                found[where] = Place(f"file:{at}:{row}:{i}", at, files["snapshot_id"][i].as_py())


def _rows(column: AnyChunkedArray, values: list[Any]) -> list[int]:
    """Return the numbers of the rows that contain one of these values."""
    wanted = pa.array(values, column.type)
    return [int(i) for i in build.to_pylist(pc.indices_nonzero(pc.is_in(whole(column), value_set=wanted)))]


def _entry(where: str) -> int | None:
    text = where.partition("#entry ")[2]
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None
