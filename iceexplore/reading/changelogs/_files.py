"""Compare snapshots by data files: added files, removed files, and files whose deletes changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import FormatError, UnsupportedError
from iceexplore.formats import PUFFIN
from iceexplore.graph import TableState
from iceexplore.manifests import ContentType, EntryBatch, Manifest, Status, bool_array, concat_batches, whole
from iceexplore.planning import Filter, equality_columns, match_deletes
from iceexplore.reading._position_deletes import position_index
from iceexplore.reading.row_history._history import DATA, DELETES, LeafKey, Step, file_keys, is_damaged, read_leaves

__all__ = ["FileChanges", "begin_after", "changes_of_entries", "changes_of_step"]


#: Advice for errors: a snapshot's changes can no longer be read if its parent has expired.
def begin_after(number: int) -> str:
    """Return the advice to leave out the changes of a snapshot whose parent has expired."""
    return (
        f"To leave out what snapshot {number} changed, begin with it, changes({number}, to, rows=True): "
        "a range does not include the changes of its first snapshot"
    )


#: Matches a location's scheme and authority; the deletes of a moved table may still have the old ones.
_AUTHORITY = r"^(?:[A-Za-z][A-Za-z0-9+.\-]*:)?(?://[^/]*)?"


@dataclass(frozen=True)
class FileChanges:
    """The data files that one snapshot affects.

    Attributes
    ----------
    added, removed
        Files that only the snapshot has, and files that only its parent has. A data file whose column files differ (V4
        draft) is in both, with different values.
    kept
        Files in both, whose deleted rows may differ.
    """

    added: EntryBatch
    removed: EntryBatch
    kept: EntryBatch


def changes_of_step(before: Step | None, after: Step, wanted: Filter) -> FileChanges:
    """Compare a snapshot with its parent without reading shared manifests, except for files whose deletes changed.

    Parameters
    ----------
    before
        None if the snapshot is the table's first.
    wanted
        Files in which no row can match are left out.

    Raises
    ------
    FormatError
        A required manifest is damaged.
    """
    for step in (before, after):
        if step is not None and not step.readable:
            raise _damage(step, step.root)
    old_data = {} if before is None else before.data
    new = _files(after, after.data.keys() - old_data.keys(), wanted.stats_ids)
    old = (
        EntryBatch.empty() if before is None else _files(before, old_data.keys() - after.data.keys(), wanted.stats_ids)
    )
    added = _once(new.filter(pc.invert(pc.is_in(_versions(new), value_set=_versions(old)))))
    removed = _once(old.filter(pc.invert(pc.is_in(_versions(old), value_set=_versions(new)))))
    kept = EntryBatch.empty() if before is None else _kept(before, after, added, wanted)
    return FileChanges(_matching(added, after, wanted), _matching(removed, after, wanted), kept)


def changes_of_entries(after: Step, wanted: Filter) -> FileChanges:
    """Return what a snapshot's own entries say it added and removed, for snapshots whose parent has expired.

    Raises
    ------
    UnsupportedError
        The snapshot has deletes, or a V4 root: the rows of its parent are unknown.
    FormatError
        A required manifest is damaged.
    """
    if not after.readable:
        raise _damage(after, after.root)
    number = after.snapshot.snapshot_id
    if after.deletes or after.root.dialect.has_root_manifest:
        raise UnsupportedError(
            f"the parent of snapshot {number} has expired: the rows that the snapshot deleted are unknown. "
            f"{begin_after(number)}"
        )
    rows = {row: key for key, row in after.data.items()}
    ours = [k for row, k in rows.items() if after.root.entries["snapshot_id"][row].as_py() == number]
    parts: dict[Status, list[EntryBatch]] = {Status.ADDED: [], Status.DELETED: []}
    order = sorted(after.data[k] for k in ours)
    leaves = after.state.reader.leaves(after.root, order, parts=frozenset({"entries", "partition", "stats"}))
    for leaf in leaves if order else ():
        if is_damaged(leaf):
            raise _damage(after, leaf)
        mine = pc.and_(pc.equal(leaf.entries["snapshot_id"], number), pc.equal(leaf.entries["content_type"], 0))
        mine = pc.and_(mine, pc.fill_null(pc.not_equal(leaf.entries["file_format"], PUFFIN.name), True))
        for status, found in parts.items():
            mask = bool_array(pc.and_(mine, pc.equal(leaf.entries["status"], int(status))))
            found.append(EntryBatch.of(leaf, wanted.stats_ids).filter(pa.array(mask)))
    added, removed = (_matching(concat_batches(found), after, wanted) for found in parts.values())
    return FileChanges(added, removed, EntryBatch.empty())


def _files(step: Step, keys: Iterable[LeafKey], stats: Iterable[int]) -> EntryBatch:
    """Return the live data files of some manifests."""
    found = []
    for _, leaf, batch in read_leaves(step, sorted(keys, key=lambda k: step.data[k]), DATA, stats=stats):
        if is_damaged(leaf):
            raise _damage(step, leaf)
        found.append(batch)
    return concat_batches(found)


def _deletes(step: Step, keys: Collection[LeafKey]) -> EntryBatch:
    found = []
    for _, leaf, batch in read_leaves(step, keys, DELETES, partition=False):
        if is_damaged(leaf):
            raise _damage(step, leaf)
        found.append(batch)
    return concat_batches(found)


def _kept(before: Step, after: Step, added: EntryBatch, wanted: Filter) -> EntryBatch:
    """Return the files in both snapshots whose applicable deletes differ between the two."""
    new_keys = after.deletes.keys() - before.deletes.keys()
    old_keys = before.deletes.keys() - after.deletes.keys()
    if not (new_keys or old_keys):
        return EntryBatch.empty()
    new, old = _deletes(after, new_keys), _deletes(before, old_keys)
    come, gone = _without(new, old), _without(old, new)
    if not (len(come) or len(gone)):
        return EntryBatch.empty()
    names = _concerned(after, [come, gone])
    fresh = _names(added)
    rows = [after.deletes[k] for k in new_keys if after.deletes[k] >= 0]
    old_rows = [before.deletes[k] for k in old_keys if before.deletes[k] >= 0]
    ids = sorted({*wanted.stats_ids, *equality_columns(after.state, rows), *equality_columns(before.state, old_rows)})
    found = []
    for _, leaf, batch in read_leaves(after, after.data, DATA, stats=ids):
        if is_damaged(leaf):
            raise _damage(after, leaf)
        locations = whole(batch.entries["location"])
        mask = ~bool_array(pc.is_in(locations, value_set=fresh))
        if names is not None:
            mask &= bool_array(pc.is_in(_bare(locations, after.state), value_set=names))
        candidates = _matching(batch.filter(pa.array(mask)), after, wanted)
        if len(candidates):
            hit = _hit(after, candidates, rows) | _hit(before, candidates, old_rows)
            found.append(candidates.filter(pa.array(hit)))
    return _once(concat_batches(found))


def _hit(step: Step, files: EntryBatch, manifests: list[int]) -> npt.NDArray[np.bool_]:
    matched = match_deletes(step.state, files, manifests=manifests)
    some: npt.NDArray[np.bool_] = bool_array(matched.vector.is_valid())
    for lists in (matched.positions, matched.equality):
        some = some | bool_array(pc.greater(pc.list_value_length(lists), 0))
    return some


def _concerned(step: Step, batches: Iterable[EntryBatch]) -> AnyArray | None:
    """Return the data files that position deletes reference, in `_bare` form; None if there are equality deletes."""
    names: list[AnyArray] = []
    for batch in batches:
        entries = batch.entries
        if pc.any(pc.equal(entries["content_type"], int(ContentType.EQUALITY_DELETE))).as_py():
            return None
        referenced = whole(entries["referenced_file"])
        names.append(referenced.drop_null())
        for row in entries.filter(referenced.is_null()).select(["location", "file_format"]).to_pylist():
            paths = position_index(step.state, row["location"], row["file_format"]).paths
            names.append(pa.array(list(paths), pa.string()))
    return _bare(pa.concat_arrays(names), step.state) if names else pa.array([], pa.string())


def _bare(locations: AnyArray, state: TableState) -> AnyArray:
    """Return locations without scheme and authority; for a moved table only file names, because paths may differ."""
    if state.storage.moved:
        return pc.replace_substring_regex(locations, "^.*/", "")
    return pc.replace_substring_regex(locations, _AUTHORITY, "")


def _without(batch: EntryBatch, other: EntryBatch) -> EntryBatch:
    keys, others = file_keys(batch.entries), file_keys(other.entries)
    return batch.filter(pc.invert(pc.is_in(keys, value_set=others)))


def _names(batch: EntryBatch) -> AnyArray:
    return whole(batch.entries["location"])


def _versions(batch: EntryBatch) -> AnyArray:
    """Return a key per file that changes with its values: its location and those of its column files (V4 draft)."""
    held, names = whole(batch.entries["column_files"]), _names(batch)
    if held.null_count == len(held):
        return names
    files = [sorted(str(f["location"]) for f in found or ()) for found in build.to_pylist(held)]
    return pc.binary_join_element_wise(names, pa.array(["\x1f".join(found) for found in files]), "\x1f")


def _once(batch: EntryBatch) -> EntryBatch:
    """Return each file once, even if several entries list it."""
    codes = np.asarray(_names(batch).dictionary_encode(null_encoding="encode").indices)
    first = np.sort(np.unique(codes, return_index=True)[1])
    return batch if len(first) == len(batch) else batch.take(pa.array(first))


def _matching(batch: EntryBatch, step: Step, wanted: Filter) -> EntryBatch:
    if not len(batch):
        return batch
    may, _ = wanted.evaluate(batch, step.state.metadata)
    return batch if may.true_count == len(batch) else batch.filter(may)


def _damage(step: Step, manifest: Manifest) -> FormatError:
    why = next((p.text for p in manifest.problems), "some entries are missing")
    return FormatError(
        f"the changes of snapshot {step.snapshot.snapshot_id} are unknown: {why}", location=manifest.location or None
    )
