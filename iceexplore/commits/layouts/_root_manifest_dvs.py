"""Remove entries from leaves by manifest DVs, without rewriting the leaves (proposal, "Commit Procedure").

A manifest DV is a bitmap of the positions in a leaf whose entries are removed. When a commit removes further entries,
the option `LayoutOptions.dv_encoding` determines how the root records the change. Its values, ``removed``, ``replace``
and ``delta``, are the encodings that the proposal compares ("Brainstorming about detecting changes").

A DV of up to ``inline_dv_bytes`` is stored inline, that is, in the root itself, as a portable roaring bitmap. Larger
DVs are written to one Puffin file per commit, as blobs of the type ``deletion-vector-v1`` (length, magic and CRC around
a roaring bitmap). This is the only blob type for bitmaps in the Puffin specification, so any reader of DVs can read
these blobs.

By default, each manifest DV has its own row in the root. With the option ``dv_attached``, it is attached: it is stored
in the row of the leaf from which it removes entries (field id 522 in the V4 draft). An attached DV is always inline, as
in the V4 draft, because the row has only one location, which is that of the leaf. Two kinds of DVs still have rows of
their own: with ``removed``, the replaced DV, as DELETED; with ``delta``, the DV of the positions that the commit
removes, as ADDED. A root with attached DVs breaks the rules in `VIOLATED_BY_ATTACHING`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from iceexplore.commits.layouts._root_builder import DROPPED, Draft, NewDv
from iceexplore.deletes import new_dv_blob, write_puffin
from iceexplore.manifests import ContentType, EntryBatch, Status, encode_manifest_dv, read_manifest_dv

if TYPE_CHECKING:
    from pyroaring import BitMap

__all__ = ["VIOLATED_BY_ATTACHING", "change_dvs", "place_dvs"]

#: The rules that ``dv_attached`` breaks: ``added-is-change`` requires the first manifest DV of a leaf to be an ADDED
#: row of the root, and ``dv-struct`` forbids a deletion_vector in an entry for a manifest.
VIOLATED_BY_ATTACHING = ("added-is-change", "dv-struct")


def change_dvs(draft: Draft, removed: Mapping[int, np.ndarray]) -> None:
    """Remove entries from leaves: create their new manifest DVs, which `place_dvs` later adds to the new root.

    Rows of DVs that are replaced become DELETED or dropped, depending on the option ``dv_encoding``.

    Parameters
    ----------
    removed
        The positions of the live entries to remove from each leaf, by the leaf's row number in the base's root.
    """
    for leaf in sorted(removed):
        draft.changed.add(leaf)
        draft.vectors += _changed(draft, leaf, removed[leaf])


def place_dvs(draft: Draft) -> None:
    """Add the new manifest DVs to the root: as rows (inline or in a Puffin file), or attached to the leaves' rows.

    Call this only after compaction and flushing have decided which leaves remain. A leaf may have several DVs, written
    by earlier commits with the ``dv_encoding`` ``delta``. These DVs are merged into one, even if this commit does not
    change the leaf.
    """
    for leaf, dvs in draft.dvs.items():
        if len(dvs) > 1 and leaf not in draft.changed and draft.row_status[leaf] == Status.EXISTING:
            draft.vectors.append(_merged(draft, leaf))
    made = draft.vectors
    _to_puffin(draft, made)
    for dv in made:
        if dv.attach:
            draft.attached[dv.leaf] = _struct(dv)
    rows = [_row(draft, dv) for dv in made if not dv.attach]
    if rows:
        draft.made.append(EntryBatch.of_rows(rows))


def _changed(draft: Draft, leaf: int, ordinals: np.ndarray) -> list[NewDv]:
    from pyroaring import BitMap

    w = draft.writer
    encoding, attach = w.options.dv_encoding, w.options.dv_attached
    gone = BitMap(ordinals.tolist())
    before = draft.dvs.get(leaf, [])
    if encoding == "delta":
        added = NewDv(leaf, gone, Status.ADDED, w.snapshot_id, w.sequence_number)
        as_is = len(before) == 1 and (before[0] == leaf) == attach
        return [added] if as_is or not before else [_merged(draft, leaf), added]
    out = [NewDv(leaf, _state(draft, leaf) | gone, Status.ADDED, w.snapshot_id, w.sequence_number, attach)]
    for row in before:
        if row == leaf:
            draft.attached[leaf] = None
            if encoding == "removed":
                out.append(NewDv(leaf, _read(draft, row), Status.DELETED, w.snapshot_id, _sequence(draft, row)))
        else:
            draft.row_status[row] = Status.DELETED if encoding == "removed" else DROPPED
    return out


def _merged(draft: Draft, leaf: int) -> NewDv:
    """Replace all manifest DVs that a leaf has in the base's root by one DV, which removes the same entries.

    The new root does not list the old DVs. The new DV has the status EXISTING, because merging does not change which
    entries are removed. It has the snapshot id and sequence number of the newest old DV.

    Parameters
    ----------
    leaf
        The leaf's row number in the base's root.
    """
    rows = draft.dvs[leaf]
    state = _state(draft, leaf)
    newest = draft.row(max(rows, key=lambda r: (r != leaf, _sequence(draft, r))))
    for row in rows:
        if row == leaf:
            draft.attached[leaf] = None
        else:
            draft.row_status[row] = DROPPED
    snapshot_id, sequence = newest["snapshot_id"], newest["sequence_number"]
    assert isinstance(snapshot_id, int)
    assert isinstance(sequence, int)
    return NewDv(leaf, state, Status.EXISTING, snapshot_id, sequence, draft.writer.options.dv_attached)


def _state(draft: Draft, leaf: int) -> BitMap:
    from pyroaring import BitMap

    out = BitMap()
    for row in draft.dvs.get(leaf, ()):
        out |= _read(draft, row)
    return out


def _read(draft: Draft, row: int) -> BitMap:
    assert draft.root is not None
    return read_manifest_dv(draft.writer.base.storage, draft.root, row)


def _sequence(draft: Draft, row: int) -> int:
    return int(draft.rows.entries["sequence_number"][row].as_py() or 0)


def _to_puffin(draft: Draft, made: list[NewDv]) -> None:
    from pyroaring import BitMap64

    limit = draft.writer.options.inline_dv_bytes
    large = [dv for dv in made if not dv.attach and len(encode_manifest_dv(dv.bitmap)) > limit]
    if large:
        blobs = [
            new_dv_blob(BitMap64(np.asarray(dv.bitmap.to_array(), dtype=np.uint64)), draft.location(dv.leaf))
            for dv in large
        ]
        data, places = write_puffin(blobs)
        location = draft.add_file("manifest-dvs", ".puffin", "puffin", data)
        for dv, (offset, size) in zip(large, places, strict=True):
            dv.place = (location, offset, size)


def _struct(dv: NewDv) -> dict[str, object]:
    if dv.place is None:
        return {"offset": None, "size_in_bytes": None, "inline_content": encode_manifest_dv(dv.bitmap)}
    return {"offset": dv.place[1], "size_in_bytes": dv.place[2], "inline_content": None}


def _row(draft: Draft, dv: NewDv) -> dict[str, object]:
    leaf = draft.location(dv.leaf)
    length = None
    if dv.place is not None:
        length = next(f.length for f in draft.files if f.location == dv.place[0])
    return {
        "content_type": int(ContentType.MANIFEST_DV),
        "location": leaf if dv.place is None else dv.place[0],
        "file_format": "puffin",
        "status": int(dv.status),
        "snapshot_id": dv.snapshot_id,
        "sequence_number": dv.sequence_number,
        "file_sequence_number": dv.sequence_number,
        "partition_spec_id": draft.rows.entries["partition_spec_id"][dv.leaf].as_py(),
        "record_count": len(dv.bitmap),
        "file_size_in_bytes": length,
        "referenced_file": leaf,
        "deletion_vector": _struct(dv),
    }
