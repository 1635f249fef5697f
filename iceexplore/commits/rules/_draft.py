"""Rules that only the V4 draft has: on content types, replaced entries, positions in leaves, and timestamps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.commits.rules._entries import RuleBreak, flagged
from iceexplore.commits.rules._view import TreeView
from iceexplore.errors import IceexploreError
from iceexplore.manifests import ContentType, Manifest, ManifestReader, Status, decode_manifest_dv, whole
from iceexplore.manifests.rules import MANIFESTS, Rows
from iceexplore.metadata import Snapshot

if TYPE_CHECKING:
    from pyroaring import BitMap

__all__ = ["content_breaks", "draft_breaks"]

_OF_OLD = (ContentType.POSITION_DELETE, ContentType.EQUALITY_DELETE, ContentType.MANIFEST_DV)


def content_breaks(manifest: Manifest) -> list[RuleBreak]:
    """Return violations of ``draft-content-types`` in a root or leaf of the V4 draft; none for other manifests."""
    if not manifest.dialect.deletion_vectors_on_entries:
        return []
    r = Rows(manifest.entries, manifest.dialect)
    text = "the V4 draft has no entries of this content type"
    return flagged("draft-content-types", manifest.location, r.is_kind(*_OF_OLD) & ~r.carried, text, manifest.entries)


def draft_breaks(reader: ManifestReader, tree: TreeView, parent: Snapshot | None) -> Iterator[RuleBreak]:
    """Yield a snapshot's violations of the rules that only the V4 draft has.

    The snapshot's root must be in the form of the V4 draft.

    Parameters
    ----------
    parent
        The snapshot's parent, if the table still has it.
    """
    root, entries = tree.root, tree.root.entries
    yield from content_breaks(root)
    r = Rows(entries, root.dialect)
    marked = ~r.null("deleted_positions") | ~r.null("replaced_positions")
    yield from flagged(
        "positions-of-manifests",
        root.location,
        marked & ~r.is_kind(*MANIFESTS),
        "it has deleted_positions or replaced_positions, but is not a manifest",
        entries,
    )
    yield from _replaced_rows(tree, r)
    for row in np.flatnonzero(marked & r.is_kind(*MANIFESTS) & r.live).tolist():
        yield from _positions(reader, tree, row)
    if parent is not None and tree.snapshot.timestamp_ms <= parent.timestamp_ms:
        yield RuleBreak(
            "timestamp-order",
            f"snapshot {tree.snapshot.snapshot_id}",
            f"its timestamp-ms, {tree.snapshot.timestamp_ms}, is not above that of its parent, {parent.timestamp_ms}",
        )


def _replaced_rows(tree: TreeView, r: Rows) -> Iterator[RuleBreak]:
    replaced = r.is_kind(ContentType.DATA) & (r.status == Status.REPLACED)
    successors = tree.files["location"].filter(pc.equal(tree.files["status"], int(Status.MODIFIED)))
    known = np.asarray(pc.is_in(whole(r.entries["location"]), value_set=whole(successors)))
    text = "it is REPLACED, but no MODIFIED entry lists its file"
    yield from flagged("replaced-and-modified", tree.root.location, replaced & ~known, text, r.entries)


def _positions(reader: ManifestReader, tree: TreeView, row: int) -> Iterator[RuleBreak]:
    """Check the fields ``deleted_positions`` and ``replaced_positions`` of a leaf's row in the root; yield violations.

    Each field is a bitmap of positions of entries in the leaf. Two rules are checked:

    - ``positions-disjoint``: No position is in both fields, and the leaf's manifest DV contains every position that is
      in one of the fields.
    - ``replaced-and-modified``: If the entry at a replaced position lists a data file, the snapshot has a live entry
      for the same data file.

    Parameters
    ----------
    row
        The number of the leaf's row in the root.
    """
    where = f"{tree.root.location}#entry {row}"
    entry = tree.root.entries.slice(row, 1).select(["location", "deleted_positions", "replaced_positions"])
    (values,) = build.to_pylist(entry)
    try:
        deleted, replaced = (_bitmap(values[name], where) for name in ("deleted_positions", "replaced_positions"))
    except IceexploreError as error:
        yield RuleBreak(
            "positions-disjoint",
            where,
            f"deleted or replaced positions of {values['location']} cannot be read: {error}",
        )
        return
    view = tree.leaves.get(values["location"])
    hidden = None if view is None else view.positions()
    if deleted & replaced:
        text = f"position {(deleted & replaced).min()} of {values['location']} is both deleted and replaced"
        yield RuleBreak("positions-disjoint", where, text)
    if hidden is not None and (deleted | replaced) - hidden:
        first = ((deleted | replaced) - hidden).min()
        text = f"position {first} of {values['location']} is deleted or replaced, but missing from the manifest DV"
        yield RuleBreak("positions-disjoint", where, text)
    leaf = reader.leaf(tree.root, row)
    if leaf.entries["location"].null_count == len(leaf):
        return
    last = int(np.asarray(leaf.entries["ordinal"]).max()) if len(leaf) else -1
    mine = replaced & type(replaced)(range(last + 1))
    held = pc.and_(
        pc.equal(leaf.entries["content_type"], int(ContentType.DATA)),
        pc.is_in(leaf.entries["ordinal"], value_set=pa.array(list(mine), pa.int64())),
    )
    names = leaf.entries["location"].filter(held)
    lost = names.filter(pc.invert(pc.is_in(names, value_set=whole(tree.files["location"]))))
    if len(lost):
        text = f"{values['location']} has a replaced entry of {lost[0].as_py()}, but no live entry lists this file"
        yield RuleBreak("replaced-and-modified", where, text, len(lost))


def _bitmap(data: bytes | None, where: str) -> BitMap:
    from pyroaring import BitMap

    return BitMap() if data is None else decode_manifest_dv(data, location=where)
