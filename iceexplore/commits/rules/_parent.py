"""Rules that compare a snapshot with its parent: the root must record exactly the changes of the data."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyColumn
from iceexplore.arrow import compute as pc
from iceexplore.commits.rules._entries import RuleBreak, flagged
from iceexplore.commits.rules._view import LeafView, TreeView, keys_of
from iceexplore.manifests import ContentType, Status, bool_array, whole
from iceexplore.manifests.rules import FILES, MANIFESTS, Rows

__all__ = ["change_breaks"]


def change_breaks(tree: TreeView, parent: TreeView | None) -> Iterator[RuleBreak]:
    """Yield violations of ``added-is-change``, ``deleted-entries``, ``leaf-change-by-dv``, ``compaction-existing``.

    These rules apply only to V4 roots.

    Parameters
    ----------
    parent
        The parent's tree, of any version; None if the snapshot has no parent, so that all of its files are new.
    """
    before = _keys(parent)
    now = whole(tree.files["key"])
    yield from _root_rows(tree, before, now)
    yield from _deleted_rows(tree, parent, before, now)
    known, leaf = _there(now, before), np.asarray(tree.files["leaf"])  # all files at once: a call per leaf is slow
    for view in tree.leaves.values():
        old = None if parent is None else parent.leaves.get(view.location)
        if old is None:
            yield from _new_leaf(view, known[leaf == view.row])
        else:
            yield from _carried_leaf(tree, view, old)
    if parent is not None:
        yield from _dropped_leaves(tree, parent, now)


def _keys(tree: TreeView | None) -> AnyArray:
    return pa.array([], pa.string()) if tree is None else whole(tree.files["key"])


def _there(values: AnyColumn, others: AnyArray) -> np.ndarray:
    return bool_array(pc.is_in(values, value_set=others))


def _root_rows(tree: TreeView, before: AnyArray, now: AnyArray) -> Iterator[RuleBreak]:
    entries, where = tree.root.entries, tree.root.location
    r = Rows(entries)
    known = _there(keys_of(entries), before)
    files = r.is_kind(*FILES)
    added, existing = files & (r.status == Status.ADDED), files & (r.status == Status.EXISTING)
    yield from flagged("added-is-change", where, added & known, "it is ADDED but was live in the parent", entries)
    yield from flagged(
        "added-is-change", where, existing & ~known, "it is EXISTING but was not live in the parent", entries
    )


def _deleted_rows(tree: TreeView, parent: TreeView | None, before: AnyArray, now: AnyArray) -> Iterator[RuleBreak]:
    entries, where = tree.root.entries, tree.root.location
    r = Rows(entries)
    deleted = r.status == Status.DELETED
    files = deleted & r.is_kind(*FILES)
    keys = keys_of(entries)
    yield from flagged(
        "deleted-entries", where, files & ~_there(keys, before), "it is DELETED but was not live in the parent", entries
    )
    yield from flagged("deleted-entries", where, files & _there(keys, now), "it is DELETED but still live", entries)
    leaves = pa.array([] if parent is None else list(parent.leaves), pa.string())
    manifests = deleted & r.is_kind(*MANIFESTS) & ~_there(entries["location"], leaves)
    vectors = deleted & r.is_kind(ContentType.MANIFEST_DV) & ~_there(entries["referenced_file"], leaves)
    text = "it is DELETED but was not live in the parent"
    yield from flagged("deleted-entries", where, manifests | vectors, text, entries)
    if parent is None:
        return
    own = parent.files.filter(pc.equal(parent.files["leaf"], -1))
    gone = ~_there(own["key"], now) & ~_there(own["key"], keys.filter(pa.array(files)))
    if gone.any():
        first = int(np.flatnonzero(gone)[0])
        name = own["location"][first].as_py()
        yield RuleBreak(
            "deleted-entries", where, f"{name} was removed from the parent's root but is not listed as DELETED"
        )


def _new_leaf(view: LeafView, known: np.ndarray) -> Iterator[RuleBreak]:
    """Yield violations of ``added-is-change`` and ``compaction-existing`` by a leaf that is not in the parent's root.

    If the leaf is ADDED in the root, all of its entries must be ADDED, and none may list a file that was live in the
    parent. Otherwise, the leaf must be the result of a compaction: all of its entries must be EXISTING, list files that
    were live in the parent, and not be removed by a manifest DV.

    Parameters
    ----------
    known
        A mask of the leaf's live files: true for those that were live in the parent.
    """
    if view.status == Status.ADDED:
        if known.any() or view.statuses - {Status.ADDED}:
            yield RuleBreak(
                "added-is-change",
                view.location,
                "the manifest is ADDED, but some of its entries are not, or list files that were live before",
            )
        return
    if not known.all() or view.statuses - {Status.EXISTING}:
        yield RuleBreak(
            "compaction-existing",
            view.location,
            "a new manifest is EXISTING, but some of its entries are not, or list files that were not live before",
        )
    if len(view.positions()):
        yield RuleBreak("compaction-existing", view.location, "a manifest written by compaction has a manifest DV")


def _carried_leaf(tree: TreeView, view: LeafView, old: LeafView) -> Iterator[RuleBreak]:
    where = f"{tree.root.location}#entry {view.row}"
    if view.status == Status.ADDED:
        yield RuleBreak("added-is-change", where, f"{view.location} is ADDED but was in the parent's root")
    was, removed = old.positions(), view.positions()
    if was - removed:
        yield RuleBreak("added-is-change", where, f"removed entries of {view.location} are live again")
    new, added = removed - was, view.removed.get(int(Status.ADDED))
    if new and added is None:
        yield RuleBreak(
            "added-is-change", where, f"entries of {view.location} were removed without an ADDED manifest DV"
        )
    if added is not None and not new:
        yield RuleBreak(
            "added-is-change", where, f"{view.location} has an ADDED manifest DV, but no further entries were removed"
        )
    if added is not None and len(view.removed) > 1 and new and added != new:
        yield RuleBreak(
            "added-is-change",
            where,
            f"the ADDED manifest DV of {view.location} does not match the entries that were removed",
        )


def _dropped_leaves(tree: TreeView, parent: TreeView, now: AnyArray) -> Iterator[RuleBreak]:
    rows = [view.row for view in parent.leaves.values() if view.location not in tree.leaves]
    held = parent.files.filter(pc.is_in(parent.files["leaf"], pa.array(rows, pa.int64())))
    gone = ~_there(held["key"], now)
    if gone.any():
        first = int(np.flatnonzero(gone)[0])
        name, row = held["location"][first].as_py(), held["leaf"][first].as_py()
        leaf = next(v.location for v in parent.leaves.values() if v.row == row)
        yield RuleBreak(
            "leaf-change-by-dv", leaf, f"the manifest was replaced or dropped, and {name} is no longer live"
        )
