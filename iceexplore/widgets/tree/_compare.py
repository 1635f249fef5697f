"""Compare two snapshots of a table for the tree: entries added, removed and carried over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyChunkedArray, build
from iceexplore.arrow import compute as pc
from iceexplore.graph import Diff, TableState, TreeNode, diff, row_keys, travel
from iceexplore.manifests import ENTRY_SCHEMA, ContentType, live
from iceexplore.metadata import in_order
from iceexplore.render import Mark

__all__ = ["Comparison", "in_age"]

_MARKS: tuple[Mark, ...] = ("added", "removed", "carried")
_FILES = (int(ContentType.DATA), int(ContentType.POSITION_DELETE), int(ContentType.EQUALITY_DELETE))


def in_age(state: TableState, one: int, other: int) -> tuple[int, int]:
    """Return two snapshot ids, the older snapshot first, because changes are described from the older to the newer."""
    for snapshot in in_order({s.snapshot_id: s for s in state.metadata.snapshots}.values()):
        if snapshot.snapshot_id in (one, other):
            return (one, other) if snapshot.snapshot_id == one else (other, one)
    return one, other


class Comparison:
    """The differences between two snapshots of one table.

    The roots show which manifests were added, removed or carried over, without reading any manifest. Files are compared
    by reading the differing manifests (`iceexplore.graph.diff`), which happens when a manifest is unfolded, or if a V4
    root lists files directly, as these may have moved to a leaf.

    Parameters
    ----------
    before, after
        Snapshot ids. ``after`` is the one shown and may be the older one. Added and removed always refer to the change
        from the older to the newer one.
    """

    def __init__(self, state: TableState, before: int, after: int) -> None:
        self.pair = (before, after)
        self.in_age = in_age(state, before, after)
        self._state = state
        self._diff: Diff | None = None

    @cached_property
    def _rows(self) -> list[tuple[str, Mark]]:
        """The node ids of the roots' entries with their marks: added, removed, then carried over."""
        tables, keys, rows = [], [], []
        for snapshot_id in self.pair:
            snapshot = self._state.metadata.snapshot(snapshot_id)
            root = None if snapshot is None else self._state.root(snapshot)
            entries = ENTRY_SCHEMA.empty_table() if root is None else root.entries
            mine = np.flatnonzero(np.asarray(live(entries).to_numpy(zero_copy_only=False)))
            tables.append(entries.take(pa.array(mine, pa.int64())))
            keys.append(row_keys(tables[-1]))
            rows.append(mine)
        out: dict[Mark, list[str]] = {mark: [] for mark in _MARKS}
        newer = self.pair.index(self.in_age[1])
        sides: tuple[tuple[int, Mark], ...] = ((newer, "added"), (1 - newer, "removed"))
        for side, mark in sides:
            shared = np.asarray(pc.is_in(keys[side], value_set=keys[1 - side]).to_numpy(zero_copy_only=False))
            kinds = tables[side]["content_type"].to_numpy()
            moved = self._moved(tables[side], ~shared & np.isin(kinds, _FILES))
            for row, kind, same, elsewhere in zip(rows[side].tolist(), kinds.tolist(), shared, moved, strict=True):
                is_manifest = kind in (ContentType.DATA_MANIFEST, ContentType.DELETE_MANIFEST)
                node_id = f"{'manifest' if is_manifest else 'file'}:{self.pair[side]}:{row}"
                if not same and not elsewhere:
                    out[mark].append(node_id)
                elif side == 1:  # entries in both appear once, as those of the snapshot shown
                    out["carried"].append(node_id)
        return [(node_id, mark) for mark in _MARKS for node_id in out[mark]]

    def _moved(self, entries: pa.Table, candidates: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[bool]:
        """Return which files of a root are unchanged because the other snapshot lists them in a leaf manifest."""
        if not candidates.any():
            return [False] * entries.num_rows
        changes = self._changes(entries.filter(pa.array(candidates))["location"])
        vectors = entries["deletion_vector"]
        offsets = pc.struct_field(vectors, "offset").to_pylist()
        places = entries["location"].to_pylist()
        return [
            bool(c) and (place, offset) not in changes
            for c, place, offset in zip(candidates.tolist(), places, offsets, strict=True)
        ]

    def _changes(self, locations: AnyChunkedArray) -> dict[tuple[str | None, int | None], str]:
        """Return which of these files were added or removed, by location and, for a deletion vector, offset."""
        if self._diff is None:
            before, after = (travel(self._state, snapshot=snapshot_id) for snapshot_id in self.in_age)
            self._diff = diff(before, after)
        files = self._diff.files_arrow
        hit = files.filter(pc.is_in(files["location"], value_set=pa.array(build.to_pylist(locations), pa.string())))
        places, offsets, changes = (build.to_pylist(hit[name]) for name in ("location", "content_offset", "change"))
        return {(place, offset): change for place, offset, change in zip(places, offsets, changes, strict=True)}

    @property
    def total(self) -> int:
        """The number of distinct entries of the two roots."""
        return len(self._rows)

    def root_nodes(self, node: Callable[[str], TreeNode], limit: int) -> list[TreeNode]:
        """Return the first entries of the two roots, changed ones first; ``node`` returns a node by its id."""
        return [_marked(node(node_id), mark) for node_id, mark in self._rows[:limit]]

    def marked(self, nodes: Sequence[TreeNode]) -> list[TreeNode]:
        """Return the nodes, with the comparison's marks on the nodes of files."""
        files = [n for n in nodes if n.id.startswith("file:")]
        if not files:
            return list(nodes)
        changes = self._changes(pa.chunked_array([[n.location for n in files]], pa.string()))
        out = []
        for node in nodes:
            if node.id.startswith("file:"):
                vector = node.fields.get("deletion_vector") or {}
                change = changes.get((node.location, vector.get("offset")))
                node = _marked(node, "added" if change == "added" else "removed" if change == "removed" else "carried")
            out.append(node)
        return out

    def words(self) -> dict[str, str]:
        """Return texts by mark that count the roots' entries and, once the differing manifests are read, the files."""
        marks = [mark for _, mark in self._rows]
        files = None if self._diff is None else self._diff.files_arrow["change"]
        out: dict[str, str] = {}
        for mark, word in zip(_MARKS, ("added", "removed", "carried over"), strict=True):
            count = marks.count(mark)
            parts = [f"{count:,} {'manifest' if count == 1 else 'manifests'}"]
            if files is not None and mark != "carried":
                n = pc.sum(pc.equal(files, word)).as_py() or 0
                parts.append(f"{n:,} {'file' if n == 1 else 'files'}")
            out[mark] = f"{', '.join(parts)} {word}"
        return out


def _marked(node: TreeNode, mark: Mark) -> TreeNode:
    return replace(node, marks=(node.marks - set(_MARKS)) | {mark})
