"""Remove files from a root of the V4 draft and its leaves, change deletion vectors and column files, and add files.

In the V4 draft, a data file's entry includes its deletion vector and column files. A commit that changes one of them
lists the data file again, as MODIFIED in the root or in a new leaf. If the previous entry is in the root, it gets the
status REPLACED. If it is in a leaf, the leaf's manifest DV removes it, and the leaf's row in the root records its
position in ``replaced_positions``. Positions of removed data files are recorded in ``deleted_positions``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.commits.layouts._draft_column_files import with_column_files
from iceexplore.commits.layouts._root_builder import DROPPED, Draft, numbers
from iceexplore.commits.live_files._locate import find_data_files, find_files, live_manifests, readable, texts
from iceexplore.commits.model._change import Change
from iceexplore.deletes import encode_mumbling
from iceexplore.errors import RuleError
from iceexplore.manifests import (
    ContentType,
    EntryBatch,
    Status,
    concat_batches,
    live,
    read_manifest_dv,
    whole,
)

__all__ = ["Taken", "add_draft_files", "draft_chunks", "hide", "only_data", "refuse_in_draft", "take_out_of_draft"]

_ALL_PARTS = frozenset({"entries", "partition", "stats"})
_VECTOR, _DATA = int(ContentType.POSITION_DELETE), int(ContentType.DATA)
_DELETES = (ContentType.POSITION_DELETE, ContentType.EQUALITY_DELETE)
_TO_CHANGE = "deletion vectors or column files are added for data files that are not live"
_TO_REPLACE = "no live deletion vectors to replace exist for"


@dataclass(frozen=True)
class Taken:
    """The files that a commit removes, and the new entries for data files that it changes without removing them.

    Attributes
    ----------
    removed
        The old entries of the removed files: data files with their deletion vectors, replaced deletion vectors, delete
        files.
    modified
        The new entries: with the status MODIFIED for the data files whose deletion vector or column files change, and
        with the status EXISTING for the deletion vectors that these data files keep.
    """

    removed: EntryBatch
    modified: EntryBatch


def refuse_in_draft(change: Change) -> None:
    """Refuse a change that a table of the V4 draft cannot contain.

    Raises
    ------
    RuleError
        ``no-new-equality-deletes``: the change adds equality deletes, which the V4 draft allows only in delete
        manifests from before V4.
    """
    kinds = numbers(change.added.entries["content_type"])
    if (kinds == ContentType.EQUALITY_DELETE).any():
        raise RuleError(
            "no-new-equality-deletes",
            "the V4 draft allows no new equality deletes: delete rows by position (row_delta(deletes=...), or "
            "the delete of a lab), or choose dialect='v4-proposal'",
        )


def only_data(batch: EntryBatch) -> EntryBatch:
    """Return a batch without the entries of deletion vectors, which the V4 draft stores in data files' entries."""
    return batch.filter(pa.array(numbers(batch.entries["content_type"]) != _VECTOR))


def take_out_of_draft(draft: Draft, change: Change) -> Taken:
    """Remove from the new root and its leaves the entries of files that the change removes, and outdated entries.

    An entry is outdated if the change adds, replaces or removes the deletion vector of its data file, or adds column
    files to it. The data file then needs a new entry, which is returned and must be added with `add_draft_files`.

    An entry in the root becomes DELETED, or REPLACED if it is outdated. An entry in a leaf is removed by the leaf's
    manifest DV.

    Raises
    ------
    RuleError
        ``files-exist``: a file to remove or change is not live in the base, or a data file whose deletion vector is to
        be replaced has none. If the change has ``ignore_missing``, only missing data files to change are errors.
    """
    added = change.added.entries
    kind = numbers(added["content_type"])
    new = set(build.to_pylist(added["location"].filter(pa.array(kind == _DATA))))
    targets = build.to_pylist(added["referenced_file"].filter(pa.array(kind == _VECTOR)))
    gone = set(change.remove_data)
    updated = build.to_pylist(change.column_files.entries["location"])
    of_vectors = {*targets, *change.replace_dvs}
    changed = [n for n in dict.fromkeys([*targets, *change.replace_dvs, *updated]) if n not in gone | new]
    wanted = list(dict.fromkeys([*change.remove_data, *changed]))
    if draft.root is None:
        refuse_missing([*change.remove_data, *change.remove_deletes], change.ignore_missing)
        refuse_missing(changed, text=_TO_CHANGE)
        return Taken(EntryBatch.empty(), EntryBatch.empty())
    if not wanted and not change.remove_deletes:
        return Taken(EntryBatch.empty(), EntryBatch.empty())
    parts, leaves, found = _data(draft, wanted, gone, change.data_manifests)
    refuse_missing([n for n in wanted if n not in found and n in gone], change.ignore_missing)
    refuse_missing([n for n in changed if n not in found], text=_TO_CHANGE)
    old, in_leaves = _old_deletes(draft, change, wanted)
    refuse_missing(_absent(change.remove_deletes, old), change.ignore_missing)
    both = concat_batches([*parts, old])
    kinds = numbers(both.entries["content_type"])
    vectors = both.filter(pa.array(kinds == _VECTOR))
    owed = [n for n in change.replace_dvs if n not in gone]
    refuse_missing(_absent(owed, vectors, "referenced_file"), change.ignore_missing, _TO_REPLACE)
    for leaf, (deleted, replaced) in {**leaves, **in_leaves}.items():
        hide(draft, leaf, deleted, replaced)
    keeps = np.asarray(pc.is_in(both.entries["location"], value_set=texts(changed))) & (kinds == _DATA)
    data = both.filter(pa.array(keeps)).with_columns(status=int(Status.MODIFIED), manifest_dv=None)
    stay = texts([n for n in updated if n not in of_vectors and n not in gone])
    stays = np.asarray(pc.is_in(both.entries["referenced_file"], value_set=stay)) & (kinds == _VECTOR)
    kept = both.filter(pa.array(stays)).with_columns(status=int(Status.EXISTING), manifest_dv=None)
    modified = concat_batches([with_column_files(data, change.column_files, draft.writer), kept])
    return Taken(both.filter(pa.array(~(keeps | stays))), modified)


def refuse_missing(names: Iterable[str], ignore: bool = False, text: str = "files to remove are not live") -> None:
    """Refuse a commit because files are missing, unless ``ignore`` is true.

    Parameters
    ----------
    names
        The locations of the missing files. If there are none, nothing happens.
    text
        The start of the error message, which is followed by the locations.

    Raises
    ------
    RuleError
        ``files-exist``: there are missing files, and ``ignore`` is false.
    """
    missing = list(names)
    if missing and not ignore:
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise RuleError("files-exist", f"{text}: {', '.join(missing[:5])}{more}")


def _absent(wanted: Iterable[str], found: EntryBatch, column: str = "location") -> list[str]:
    there = set(build.to_pylist(found.entries[column]))
    return [name for name in wanted if name not in there]


#: For each leaf, by its row in the root: the positions that a commit deletes, and the positions that it replaces.
_Positions = dict[int, "tuple[set[int], set[int]]"]


def _data(
    draft: Draft, wanted: list[str], gone: set[str], manifests: frozenset[str] | None
) -> tuple[list[EntryBatch], _Positions, set[str]]:
    """Find the entries of data files and their deletion vectors, and mark those in the root as DELETED or REPLACED.

    Entries in leaves are only found: the caller must remove them with `hide`.

    Parameters
    ----------
    wanted
        The locations of the data files that the commit removes or changes.
    gone
        The locations of the data files that the commit removes. Their entries become DELETED. Those of the other data
        files in ``wanted`` become REPLACED, because the commit lists these files again.
    manifests
        Locations of the data manifests to search first; the others are searched only if a file is not in these. None
        searches all.

    Returns
    -------
    list[EntryBatch]
        The old entries of the data files and their deletion vectors.
    dict
        For each leaf that lists some of the data files, by its row in the base's root: the set of the positions of
        files in ``gone``, and the set of the positions of the other files.
    set[str]
        The locations of the data files that were found.
    """
    assert draft.root is not None
    reader, root, entries = draft.writer.base.reader, draft.root, draft.rows.entries
    found = find_data_files(reader, root, texts(wanted), manifests, tuples=False)
    names: set[str] = set(build.to_pylist(found.batch.entries["location"]))
    parts: list[EntryBatch] = []
    leaves: _Positions = {}
    direct = found.ordinal[found.root_row < 0]
    if len(direct):
        here = entries["location"].take(pa.array(direct))
        vectors = draft.standing(_VECTOR)
        mine = np.asarray(pc.is_in(entries["referenced_file"].take(pa.array(vectors)), value_set=whole(here)))
        rows = np.sort(np.concatenate([direct, vectors[mine]]))
        named = pc.coalesce(entries["referenced_file"], entries["location"]).take(pa.array(rows))
        removed = np.asarray(pc.is_in(named, value_set=texts(gone)))
        draft.row_status[rows] = np.where(removed, int(Status.DELETED), int(Status.REPLACED))
        parts.append(draft.rows.take(pa.array(rows)))
    for row in np.unique(found.root_row[found.root_row >= 0]).tolist():
        leaf = readable(reader.leaf(root, row, _ALL_PARTS))
        ordinals = pa.array(found.ordinal[found.root_row == row])
        mask = pc.and_(live(leaf.entries), pc.is_in(leaf.entries["ordinal"], value_set=ordinals))
        batch = EntryBatch.of(leaf).filter(mask)
        if not leaf.dialect.has_root_manifest:
            batch = batch.with_columns(format_version=0)
        parts.append(batch)
        deleted, replaced = leaves.setdefault(row, (set(), set()))
        data = only_data(batch).entries.select(["ordinal", "location"]).to_pylist()
        for entry in data:
            (deleted if entry["location"] in gone else replaced).add(int(entry["ordinal"]))
    return parts, leaves, names


def _old_deletes(draft: Draft, change: Change, data: list[str]) -> tuple[EntryBatch, _Positions]:
    """Find the entries that a commit must remove from delete manifests that were written before V4.

    These are the entries of the delete files that the change removes, and of the deletion vectors of the data files in
    ``data``. ``data`` has the locations of the data files that the commit removes or lists again. A data file that is
    listed again needs no entry in a delete manifest any more: in the V4 draft, its own entry includes its deletion
    vector.

    Returns
    -------
    EntryBatch
        The entries.
    dict
        For each delete manifest that lists some of them, by its row in the base's root: the set of their positions, and
        an empty set (of the positions to record as replaced; there are none).
    """
    assert draft.root is not None
    leaves = live_manifests(draft.rows.entries, (ContentType.DELETE_MANIFEST,))
    if not leaves:
        return EntryBatch.empty(), {}
    found = find_files(
        draft.writer.base.reader, draft.root, texts(change.remove_deletes), _DELETES, texts(data), rows=leaves
    )
    keep = found.root_row >= 0
    at: _Positions = {}
    for row, ordinal in zip(found.root_row[keep].tolist(), found.ordinal[keep].tolist(), strict=True):
        at.setdefault(row, (set(), set()))[0].add(ordinal)
    return found.batch.filter(pa.array(keep)), at


def hide(draft: Draft, leaf: int, deleted: set[int], replaced: set[int]) -> None:
    """Add positions to a leaf's manifest DV, and record them for the leaf's row in the new root.

    Parameters
    ----------
    leaf
        The leaf's row in the base's root.
    deleted
        The positions of entries that the commit removes (for the field ``deleted_positions``).
    replaced
        The positions of entries that the commit lists again elsewhere (for the field ``replaced_positions``).
    """
    from pyroaring import BitMap

    assert draft.root is not None
    w, state = draft.writer, BitMap()
    for before in draft.dvs.get(leaf, ()):
        state |= read_manifest_dv(w.base.storage, draft.root, before)
        if before != leaf:
            draft.row_status[before] = DROPPED
    state |= BitMap(deleted | replaced)
    draft.changed.add(leaf)
    draft.hidden[leaf] = (_bitmap(deleted), _bitmap(replaced))
    location = draft.location(leaf)
    made: dict[str, object] = {
        "content_type": int(ContentType.MANIFEST_DV),
        "location": location,
        "status": int(Status.ADDED),
        "snapshot_id": w.snapshot_id,
        "sequence_number": w.sequence_number,
        "file_sequence_number": w.sequence_number,
        "record_count": len(state),
        "referenced_file": location,
        "deletion_vector": {"offset": None, "size_in_bytes": None, "inline_content": encode_mumbling(state)},
    }
    draft.made.append(EntryBatch.of_rows([made]))


def _bitmap(positions: set[int]) -> bytes | None:
    from pyroaring import BitMap

    return encode_mumbling(BitMap(positions)) if positions else None


def add_draft_files(draft: Draft, added: EntryBatch, modified: EntryBatch) -> EntryBatch:
    """Add new and modified entries to the root, or to new leaves if their data files exceed the flush threshold.

    Returns
    -------
    EntryBatch
        The entries of the added files, for rule checks and the snapshot's summary.
    """
    o, w = draft.writer.options, draft.writer
    kind = numbers(added.entries["content_type"])
    fresh = added.with_columns(status=int(Status.ADDED), manifest_dv=None)
    vectors = fresh.filter(pa.array(kind == _VECTOR)).with_columns(snapshot_id=w.snapshot_id)
    kept = numbers(modified.entries["content_type"]) == _VECTOR
    data = concat_batches([fresh.filter(pa.array(kind == _DATA)), modified.filter(pa.array(~kept))])
    rows = _with_vectors(data, concat_batches([vectors, modified.filter(pa.array(kept))]))
    if len(data) > o.flush_data_files:
        for part in draft_chunks(rows, o.leaf_entries):
            draft.add_leaf(part, content=ContentType.DATA_MANIFEST, status=Status.ADDED)
    elif len(rows):
        mine = pa.array(numbers(rows.entries["status"]) == Status.ADDED)
        sequence = pc.fill_null(rows.entries["sequence_number"], w.sequence_number)
        rows = rows.with_columns(
            snapshot_id=pc.if_else(mine, pa.scalar(w.snapshot_id, pa.int64()), rows.entries["snapshot_id"]),
            sequence_number=sequence,
            file_sequence_number=pc.if_else(
                mine, pa.scalar(w.sequence_number, pa.int64()), rows.entries["file_sequence_number"]
            ),
        )
        draft.made.append(rows)
    return fresh


def _with_vectors(data: EntryBatch, vectors: EntryBatch) -> EntryBatch:
    """Return the data files followed by their deletion vectors, which get the spec ids of their data files."""
    if not len(vectors):
        return data
    at = pc.index_in(whole(vectors.entries["referenced_file"]), value_set=whole(data.entries["location"]))
    specs = whole(data.entries["partition_spec_id"]).take(at)
    return concat_batches([data, vectors.with_columns(partition_spec_id=specs)])


def draft_chunks(batch: EntryBatch, size: int) -> Iterator[EntryBatch]:
    """Yield data files with their deletion vectors in parts of about equal size.

    Each part has at most ``size`` data files, all of the same partition spec.
    """
    is_data = numbers(batch.entries["content_type"]) == _DATA
    specs = numbers(batch.entries["partition_spec_id"])
    vectors = np.flatnonzero(~is_data)
    at = pc.index_in(
        batch.entries["referenced_file"], value_set=whole(batch.entries["location"].filter(pa.array(is_data)))
    )
    # For each deletion vector, the row of its data file in the batch.
    owner = np.flatnonzero(is_data)[numbers(at)[vectors]] if len(vectors) else vectors
    for spec in np.unique(specs[is_data]):
        rows = np.flatnonzero((specs == spec) & is_data)
        for part in np.array_split(rows, -(-len(rows) // size)):
            yield batch.take(pa.array(np.concatenate([part, vectors[np.isin(owner, part)]])))
