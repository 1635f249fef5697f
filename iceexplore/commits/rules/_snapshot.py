"""Check the root and the leaves of a snapshot, and check that its live files do not contradict each other.

For example, a data file must not be listed twice, and the data file of a deletion vector must be live, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyChunkedArray
from iceexplore.arrow import compute as pc
from iceexplore.commits.rules._entries import RuleBreak, flagged
from iceexplore.commits.rules._view import LeafView, TreeView
from iceexplore.manifests import ContentType, Manifest, bool_array, whole
from iceexplore.manifests.rules import (
    Rows,
    beyond_stored,
    key_faults,
    loosely_affiliated,
    misplaced,
    not_allowed,
    repeated,
)
from iceexplore.metadata import TableMetadata
from iceexplore.storage import canonical

__all__ = ["leaf_breaks", "root_file_breaks", "tree_breaks"]


def root_file_breaks(tree: TreeView) -> list[RuleBreak]:
    """Check that a snapshot references only one root, and check the header of a V4 root manifest.

    A snapshot references more than one root if, for example, its fields ``manifest-list`` and ``root-manifest`` have
    different locations. This is a violation of ``one-root``. Another one is a field ``root-manifest`` with the location
    of a file that is not a root manifest.
    """
    raw, root = tree.snapshot.raw, tree.root
    where = f"snapshot {tree.snapshot.snapshot_id}"
    names = [raw.get(name) for name in ("root-manifest", "manifest-list") if raw.get(name)]
    out = []
    if len(set(names)) > 1 or (names and raw.get("manifests")):
        out.append(RuleBreak("one-root", where, "the snapshot references more than one root"))
    if raw.get("root-manifest") and not tree.v4:
        out.append(
            RuleBreak(
                "one-root",
                root.location,
                "the snapshot references this file as its root manifest, but it is not a root manifest",
            )
        )
    stated = root.header.metadata.get("content", "root")
    if tree.v4 and stated != "root":
        text = f"the root's header has content={stated!r} instead of 'root'"
        return [*out, RuleBreak("one-root", root.location, text)]
    return [*out, *_key_breaks(root, "root")] if tree.v4 else out


def _key_breaks(manifest: Manifest, content: str) -> list[RuleBreak]:
    faults = key_faults(manifest.header.metadata, content, manifest.dialect)
    return [RuleBreak("manifest-keys", manifest.location, text) for _, _, text in faults]


def leaf_breaks(view: LeafView, leaf: Manifest) -> list[RuleBreak]:
    """Check a leaf's header, the content types of its entries, and the positions that manifest DVs remove from it."""
    r, where = Rows(leaf.entries, leaf.dialect), leaf.location
    listed, name = "data", "leaf-data-content"
    if view.kind == ContentType.DELETE_MANIFEST:
        listed, name = "delete", "leaf-delete-content"
    removed = view.positions()
    beyond = []
    if beyond_stored(removed, leaf.stored_rows):
        text = f"a manifest DV removes position {removed.max()}, but the leaf has {leaf.stored_rows} entries"
        beyond.append(RuleBreak("dv-in-range", where, text))
    return [
        *beyond,
        *_key_breaks(leaf, listed),
        *flagged("two-levels", where, not_allowed(r), "it is listed in a leaf", leaf.entries),
        *flagged(name, where, misplaced(r, view.kind), f"it is listed in a {listed} manifest", leaf.entries),
    ]


def tree_breaks(tree: TreeView, metadata: TableMetadata) -> Iterator[RuleBreak]:
    """Yield violations of the rules that compare live files of a snapshot with each other.

    These rules are about data files listed twice, deletion vectors and their data files, row ids, and delete manifests
    affiliated with a data manifest.
    """
    files, root = tree.files, tree.root.location
    kind = np.asarray(whole(files["content_type"]))
    data = files.filter(pa.array(kind == ContentType.DATA))
    vectors = files.filter(pc.and_(whole(files["vector"]), pa.array(kind == ContentType.POSITION_DELETE)))
    for name in _twice(data["location"]):
        yield RuleBreak("duplicate-file", name, "the data file is listed twice in the table")
    for name in _twice(vectors["referenced_file"]):
        yield RuleBreak("one-dv", name, "the data file has two live deletion vectors")
    yield from _vector_breaks(tree, data, vectors)
    yield from _row_id_breaks(data, metadata)
    if tree.v4:
        yield from _affinity_breaks(tree, root)


def _twice(names: AnyChunkedArray) -> list[str]:
    return [str(name) for name in cast(pa.StructArray, repeated(names)).field("values")[:5].to_pylist()]


def _vector_breaks(tree: TreeView, data: pa.Table, vectors: pa.Table) -> Iterator[RuleBreak]:
    at = pc.index_in(whole(vectors["referenced_file"]), value_set=whole(data["location"]))
    # Below V4 a DV may outlive its data file until a cleanup (Java: removeDanglingDeletesFor).
    old = [view.row for view in tree.leaves.values() if view.old]
    strict = np.asarray(pc.invert(pc.is_in(whole(vectors["leaf"]), pa.array(old, pa.int64()))))
    orphan = np.asarray(at.is_null()) & strict & tree.v4
    yield from _named("orphan-dv", vectors, orphan, "its data file is not live")
    rows = data["record_count"].take(at)
    beyond = bool_array(pc.greater(vectors["record_count"], rows))
    yield from _named("dv-in-range", vectors, beyond, "it deletes more rows than its data file has")


def _named(rule: str, vectors: pa.Table, mask: np.ndarray, text: str) -> Iterator[RuleBreak]:
    rows = np.flatnonzero(mask)
    if len(rows):
        first = vectors.slice(int(rows[0]), 1).select(["location", "referenced_file"]).to_pylist()[0]
        more = f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""
        yield RuleBreak(rule, first["location"], f"the DV of {first['referenced_file']}: {text}{more}", len(rows))


def _row_id_breaks(data: pa.Table, metadata: TableMetadata) -> Iterator[RuleBreak]:
    held = data.filter(data["first_row_id"].is_valid())
    held = held.filter(pc.greater(held["record_count"], 0))
    if not len(held):
        return
    held = held.sort_by("first_row_id")
    first = np.asarray(whole(held["first_row_id"]))
    # limit the row counts, because sums beyond 64 bits would become negative
    end = first + np.minimum(whole(held["record_count"]), np.iinfo(np.int64).max - np.maximum(first, 0))
    clash = np.flatnonzero(first[1:] < end[:-1])
    if len(clash):
        name = held["location"][int(clash[0]) + 1].as_py()
        yield RuleBreak("row-ids", name, f"its row ids, from {first[clash[0] + 1]} on, overlap those of another file")
    if metadata.next_row_id is not None and int(end.max()) > metadata.next_row_id:
        name = held["location"][int(end.argmax())].as_py()
        yield RuleBreak(
            "row-ids", name, f"the row id after its last row is {end.max()}, above next-row-id {metadata.next_row_id}"
        )


def _affinity_breaks(tree: TreeView, root: str) -> Iterator[RuleBreak]:
    lost = loosely_affiliated(Rows(tree.root.entries))
    # The row of an affiliated delete manifest contains the location of its data manifest (`LeafView.owner`). The data
    # manifest's own row may spell this location differently: compare canonical locations, as when a snapshot is read.
    owners = {canonical(v.location): v for v in tree.leaves.values() if v.kind == ContentType.DATA_MANIFEST}
    for view in tree.leaves.values():
        if view.owner is None:
            continue
        if lost[view.row]:
            text = f"it is affiliated with {view.owner}, which is not a live data manifest"
            yield RuleBreak("affinity", f"{root}#entry {view.row}", text)
            continue
        mine = tree.files.filter(pc.equal(tree.files["leaf"], view.row))
        theirs = tree.files.filter(pc.equal(tree.files["leaf"], owners[canonical(view.owner)].row))
        vectors = np.asarray(whole(mine["content_type"])) == ContentType.POSITION_DELETE
        within = np.asarray(whole(pc.is_in(mine["referenced_file"], value_set=whole(theirs["location"]))))
        wrong = np.flatnonzero(~(vectors & within))
        if len(wrong):
            name = mine["location"][int(wrong[0])].as_py()
            text = f"{name} is no deletion vector of a file in {view.owner}, with which its manifest is affiliated"
            yield RuleBreak("affinity", view.location, text)
