"""Remove files from a V4 root and its leaves, and add files to the root or to new leaves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyChunkedArray
from iceexplore.arrow import compute as pc
from iceexplore.commits.layouts._root_builder import Draft, bare_position_deletes, chunks, numbers
from iceexplore.commits.layouts._root_manifest_dvs import change_dvs
from iceexplore.commits.live_files._locate import (
    Found,
    data_leaf_of,
    find_data_files,
    find_files,
    live_manifests,
    texts,
)
from iceexplore.commits.model._change import Change
from iceexplore.errors import RuleError
from iceexplore.manifests import ContentType, EntryBatch, Status, bool_array, concat_batches, whole
from iceexplore.metadata import TableMetadata

__all__ = [
    "add_delete_leaves",
    "add_files",
    "affiliated_leaves",
    "counts_partitions",
    "owners_of",
    "refuse_change",
    "take_leaves",
    "take_out",
]


def owners_of(draft: Draft, batch: EntryBatch) -> AnyArray:
    """Return, for each DV or equality delete, the location of the data manifest to which it belongs.

    A delete manifest can be affiliated with a data manifest if all of its entries belong to this data manifest. A DV
    belongs to the data manifest that lists its data file. If compaction replaced this data manifest, the location of
    the new one is returned; if the commit moved the data file from the root to a new data manifest, the location of the
    latter. The location is null for other DVs, such as those of data files that the root lists directly. It is also
    null for equality deletes, because they apply to a partition or to the whole table. If there are DVs, the data
    manifests of the base are read to find their data files.

    Parameters
    ----------
    batch
        The entries of the DVs and equality deletes.
    """
    files = whole(batch.entries["referenced_file"])
    names = np.full(len(batch), None, dtype=object)
    vectors = numbers(batch.entries["content_type"]) == ContentType.POSITION_DELETE
    wanted = files.filter(pa.array(vectors))
    if not len(wanted):
        return pa.nulls(len(batch), pa.string())
    found = np.full(len(wanted), None, dtype=object)
    if draft.root is not None:
        rows = data_leaf_of(draft.writer.base.reader, draft.root, wanted)
        for row in np.unique(rows[rows >= 0]).tolist():
            location = draft.location(row)
            found[rows == row] = draft.moved.get(location, location)
    for location, held in draft.fresh:
        found[np.asarray(pc.is_in(wanted, value_set=held))] = location
    names[vectors] = found
    return pa.array(names, pa.string())


def add_delete_leaves(draft: Draft, batch: EntryBatch, status: Status, *, affiliate: bool) -> int:
    """Write DVs and equality deletes to new leaves.

    The option ``affiliated_manifests`` is the maximum number of delete manifests that are affiliated with the same data
    manifest. If a data manifest already has this many, and ``status`` is EXISTING, they are replaced: they become
    DELETED, and the new leaves list their entries together with the new ones. The proposal expects this: "Flushing the
    data files or DVs from the root to leaf manifests will require leaf delete manifests to be rewritten" ("Optional
    Affinity").

    Parameters
    ----------
    batch
        The entries of the DVs and equality deletes.
    status
        The status of the new leaves in the root: ADDED if the commit adds the entries, EXISTING if it moves them from
        the root or from older leaves.
    affiliate
        Whether each DV that belongs to a data manifest (see `owners_of`) is written to a leaf that is affiliated with
        this data manifest. All other entries are written to unaffiliated leaves.

    Returns
    -------
    int
        How many unaffiliated leaves were written.
    """
    o = draft.writer.options
    owners = owners_of(draft, batch) if affiliate else pa.nulls(len(batch), pa.string())
    coded = owners.dictionary_encode()
    groups = np.asarray(pc.fill_null(coded.indices, -1))
    merge = status == Status.EXISTING and o.affiliated_manifests and bool((groups >= 0).any())
    held = affiliated_leaves(draft) if merge else {}
    loose = 0
    for group in np.unique(groups).tolist():
        owner = None if group < 0 else str(coded.dictionary[group].as_py())
        rows = batch.take(pa.array(np.flatnonzero(groups == group)))
        there = [] if owner is None else held.get(owner, [])
        if there and len(there) >= o.affiliated_manifests:
            more = take_leaves(draft, there)
            rows = rows if more is None else concat_batches([more, rows])
        for part in chunks(rows, o.leaf_entries):
            draft.add_leaf(part, content=ContentType.DELETE_MANIFEST, status=status, referenced_file=owner)
            loose += owner is None
    return loose


def affiliated_leaves(draft: Draft) -> dict[str, list[int]]:
    """Return the affiliated delete manifests of each data manifest.

    Delete manifests from which this commit removes entries are left out, and so are those that it adds.

    Returns
    -------
    dict[str, list[int]]
        The row numbers of the delete manifests in the base's root, by the location of the data manifest. If compaction
        replaced the data manifest, this is the location of the new one.
    """
    rows = [row for row in draft.standing(ContentType.DELETE_MANIFEST).tolist() if row not in draft.changed]
    owners = draft.rows.entries["referenced_file"].take(pa.array(rows, pa.int64())).to_pylist()
    out: dict[str, list[int]] = {}
    for row, owner in zip(rows, owners, strict=True):
        now = draft.moved.get(owner, owner) if owner else None
        if now:
            out.setdefault(now, []).append(row)
    return out


def take_leaves(draft: Draft, rows: list[int]) -> EntryBatch | None:
    """Mark leaves as DELETED and return their live entries, to be written to new leaves.

    Leaves that list position delete files from v2 are skipped, because V4 cannot write such entries: these leaves stay
    live, and their entries are not returned.

    Parameters
    ----------
    rows
        The row numbers of the leaves in the base's root.

    Returns
    -------
    EntryBatch or None
        The entries; None if there are none.
    """
    parts = []
    for row in rows:
        batch = draft.leaf_rows(row)
        if batch is not None:
            draft.drop_leaf(row)
            parts.append(batch)
    batch = concat_batches(parts)
    return batch if len(batch) else None


_DELETES = (ContentType.POSITION_DELETE, ContentType.EQUALITY_DELETE)
_PARTITION_LIMIT = "write.summary.partition-limit"


def counts_partitions(metadata: TableMetadata) -> bool:
    """Return whether a table property asks for summaries of individual changed partitions."""
    return metadata.properties.get(_PARTITION_LIMIT, "0") != "0"


def refuse_change(draft: Draft, change: Change) -> None:
    """Refuse a change that is invalid in itself, or contradicts the rows of the base's root; leaves are not read.

    Raises
    ------
    RuleError
        ``duplicate-file``: a file is added twice, added and removed in the same commit, or already listed directly in
        the base's root (a file that is live in a leaf is not detected, because all leaves would have to be read);
        ``deletes-need-v2``: a position delete file is added; ``one-dv``: two DVs are added for one data file, or a DV
        is added for a data file that already has one in the base's root, and the change does not replace the old DV;
        ``orphan-dv``: a DV is added for a data file that this commit removes.
    """
    entries = change.added.entries
    if not len(entries):
        return
    if bool_array(bare_position_deletes(entries)).any():
        raise RuleError("deletes-need-v2", "a V4 table allows deletion vectors, but no new position delete files")
    kind = numbers(entries["content_type"])
    _refuse_listed(draft, change, entries.filter(pa.array(kind != ContentType.POSITION_DELETE)))
    targets = entries["referenced_file"].filter(pa.array(kind == ContentType.POSITION_DELETE))
    if not len(targets):
        return
    _refuse("one-dv", "two deletion vectors for one data file", _repeated(targets))
    _refuse(
        "orphan-dv", "a deletion vector for a data file that this commit removes", _common(targets, change.remove_data)
    )
    standing = draft.rows.entries.take(pa.array(draft.standing(ContentType.POSITION_DELETE)))["referenced_file"]
    there = standing.filter(pc.invert(pc.is_in(standing, value_set=texts(change.replace_dvs))))
    _refuse(
        "one-dv",
        "a data file already has a deletion vector; list the data file in replace_dvs",
        _common(targets, there),
    )


def _refuse_listed(draft: Draft, change: Change, entries: pa.Table) -> None:
    names = entries["location"]
    if not len(names):
        return
    _refuse("duplicate-file", "files are added twice", _repeated(names))
    both = [*change.remove_data, *change.remove_deletes]
    _refuse("duplicate-file", "files are removed and added in one commit", _common(names, both))
    standing = draft.standing(ContentType.DATA, ContentType.EQUALITY_DELETE)
    there = draft.rows.entries["location"].take(pa.array(standing))
    _refuse("duplicate-file", "files are already in the table", _common(names, there))


def _repeated(names: AnyChunkedArray) -> list[str]:
    counts = pc.value_counts(whole(names))
    twice = pc.greater(counts.field("counts"), 1)
    return [str(x) for x in counts.field("values").filter(twice).to_pylist()]


def _common(names: AnyChunkedArray, others: Sequence[str] | AnyChunkedArray) -> list[str]:
    wanted = others if isinstance(others, pa.ChunkedArray) else texts(others)
    return [str(x) for x in names.filter(pc.is_in(names, value_set=wanted)).to_pylist()]


def _refuse(rule: str, text: str, names: Sequence[str]) -> None:
    if names:
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        raise RuleError(rule, f"{text}: {shown}")


def take_out(draft: Draft, change: Change) -> EntryBatch:
    """Remove the change's files: rows of the root become DELETED, and manifest DVs remove entries from leaves.

    Returns
    -------
    EntryBatch
        The removed entries, without statistics; they include the DVs of removed data files. Entries removed from leaves
        have partition tuples only if the table's properties ask for summaries of partitions.

    Raises
    ------
    RuleError
        ``files-exist``: files to remove are not live in the base, and the change's ``ignore_missing`` is false.
    """
    if draft.root is None:
        _refuse_missing(change, [*change.remove_data, *change.remove_deletes, *change.replace_dvs])
        return EntryBatch.empty()
    if not (change.remove_data or change.remove_deletes or change.replace_dvs):
        return EntryBatch.empty()
    reader, root = draft.writer.base.reader, draft.root
    tuples = counts_partitions(draft.writer.base.metadata)
    data = find_data_files(reader, root, texts(change.remove_data), change.data_manifests, tuples=tuples)
    _refuse_missing(change, _missing(change.remove_data, data, "location"))
    deletes = find_files(
        reader,
        root,
        texts(change.remove_deletes),
        _DELETES,
        texts([*change.remove_data, *change.replace_dvs]),
        rows=_delete_leaves(draft, change, data),
        tuples=tuples,
    )
    _refuse_missing(change, _missing(change.remove_deletes, deletes, "location"))
    owed = [name for name in change.replace_dvs if name not in set(change.remove_data)]
    _refuse_missing(change, _missing(owed, deletes, "referenced_file"), "no live deletion vectors to replace exist for")
    removed: dict[int, np.ndarray] = {}
    for found in (data, deletes):
        draft.row_status[found.ordinal[found.root_row < 0]] = Status.DELETED
        for row in np.unique(found.root_row[found.root_row >= 0]).tolist():
            removed[row] = found.ordinal[found.root_row == row]
    change_dvs(draft, removed)
    return concat_batches([data.batch, deletes.batch])


def _delete_leaves(draft: Draft, change: Change, data: Found) -> list[int] | None:
    """Return which delete manifests have to be searched for the deletes that a change removes.

    If the change names deletes to remove, or DVs to replace, all delete manifests have to be searched. If it names only
    data files, only the DVs of these files are searched for. These DVs can only be in delete manifests that are
    unaffiliated, or affiliated with a data manifest that lists one of the files.

    Parameters
    ----------
    data
        The data files to remove, and the leaves that list them.

    Returns
    -------
    list[int] or None
        Row numbers in the base's root; None for all delete manifests.
    """
    if change.remove_deletes or change.replace_dvs:
        return None
    touched = {draft.location(row) for row in np.unique(data.root_row[data.root_row >= 0]).tolist()}
    leaves = live_manifests(draft.rows.entries, (ContentType.DELETE_MANIFEST,))
    owners = draft.rows.entries["referenced_file"].take(pa.array(leaves, pa.int64())).to_pylist()
    return [row for row, owner in zip(leaves, owners, strict=True) if owner is None or owner in touched]


def _missing(wanted: Sequence[str], found: Found, column: str) -> list[str]:
    names = texts(wanted)
    there = pc.is_in(names, value_set=whole(found.batch.entries[column]))
    return [str(x) for x in names.filter(pc.invert(there)).to_pylist()]


def _refuse_missing(change: Change, names: Sequence[str], text: str = "files to remove are not live") -> None:
    if not change.ignore_missing:
        _refuse("files-exist", text, names)


def add_files(draft: Draft, added: EntryBatch) -> EntryBatch:
    """Add data files and deletes to the root, or to new leaves if there are too many of them.

    If there are more data files than the option ``flush_data_files``, all of them are written to new leaves; otherwise,
    the root lists them directly. The same applies to DVs and equality deletes with ``flush_delete_files``.

    In new leaves, sequence numbers that ``added`` does not set are null: readers use the sequence number of the leaf's
    row in the root instead. So the leaves do not depend on the commit's sequence number, and a retry of the commit can
    reuse them.

    Parameters
    ----------
    added
        The entries of the data files, DVs and equality deletes, as in `Change.added`.

    Returns
    -------
    EntryBatch
        The entries in ``added``, with the status ADDED.
    """
    o, w = draft.writer.options, draft.writer
    kind = numbers(added.entries["content_type"])
    fresh = added.with_columns(status=int(Status.ADDED), manifest_dv=None)
    data, deletes = fresh.filter(pa.array(kind == 0)), fresh.filter(pa.array(kind != 0))
    direct = []
    if len(data) > o.flush_data_files:
        for part in chunks(data, o.leaf_entries):
            draft.add_leaf(part, content=ContentType.DATA_MANIFEST, status=Status.ADDED)
    else:
        direct.append(data)
    if len(deletes) > o.flush_delete_files:
        affiliate = o.affinity == "all" or draft.affiliate_new
        add_delete_leaves(draft, deletes, Status.ADDED, affiliate=affiliate)
    else:
        direct.append(deletes)
    rows = concat_batches(direct)
    if len(rows):
        sequence = pc.fill_null(rows.entries["sequence_number"], w.sequence_number)
        rows = rows.with_columns(
            snapshot_id=w.snapshot_id, sequence_number=sequence, file_sequence_number=w.sequence_number
        )
        draft.made.append(rows)
    return fresh
