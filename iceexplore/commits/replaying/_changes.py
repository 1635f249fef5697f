"""Find the files that a snapshot added and removed.

To find them, the live files of the snapshot are compared with those of an earlier snapshot. This works for the tables
of every writer: it does not matter which entries have the status ADDED, or whether entries of removed files have the
status DELETED or are left out. Manifests that both snapshots list with the same manifest DVs are not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.commits.live_files._locate import readable
from iceexplore.errors import UnsupportedError
from iceexplore.graph import Removals, TableState, live_manifests
from iceexplore.manifests import ContentType, EntryBatch, Manifest, bool_array, concat_batches, live, whole
from iceexplore.metadata import Snapshot
from iceexplore.storage import canonical

__all__ = ["Moves", "file_keys", "manifests_of", "moves_between"]

_ALL = frozenset({"entries", "partition", "stats"})


@dataclass(frozen=True)
class Moves:
    """The files added and removed between two snapshots.

    Attributes
    ----------
    added
        Entries of the added files, with statistics and partition tuples; a file that is listed twice is included once.
    removed
        Entries of the removed files, without statistics and partition tuples.
    new_manifests
        Whether the later snapshot lists a manifest that the earlier one does not.
    twice
        How many added entries were left out because their file is listed twice.
    """

    added: EntryBatch
    removed: EntryBatch
    new_manifests: bool
    twice: int = 0

    def of(self, kind: ContentType, *, removed: bool = False, vectors: bool | None = None) -> EntryBatch:
        """Return the added files of a content type, or with ``removed`` the removed ones.

        ``vectors`` limits position deletes: True selects only DVs, False only delete files, and None both.
        """
        batch = self.removed if removed else self.added
        mask = bool_array(pc.equal(batch.entries["content_type"], int(kind)))
        if vectors is not None:
            mask &= bool_array(whole(batch.entries["deletion_vector"]).is_valid()) == vectors
        return batch.filter(pa.array(mask))


def file_keys(entries: pa.Table) -> AnyArray:
    """Return a key that identifies each file: content type and location, and for a DV its offset in the Puffin file."""
    offset = pc.struct_field(whole(entries["deletion_vector"]), "offset").cast(pa.string())
    kind = whole(entries["content_type"]).cast(pa.string())
    return pc.binary_join_element_wise(
        kind, whole(entries["location"]), offset, "\x1f", null_handling="replace", null_replacement=""
    )


def manifests_of(root: Manifest | None) -> Mapping[tuple[str, frozenset[str]], int]:
    """Return a dictionary with an item for each live manifest that a root lists.

    The value is the row number of the manifest's entry in ``root.entries``. The key is a pair: the manifest's location,
    and a set that identifies the manifest DVs that apply to the manifest. If the dictionaries of two roots have a key
    in common, this manifest has the same live entries in both. If ``root`` is None, the dictionary is empty.
    """
    if root is None:
        return {}
    rows, removals = live_manifests(root), Removals(root)
    names = root.entries["location"].take(pa.array(rows, pa.int64())).to_pylist()
    return {(canonical(n), removals.of(n).identity): row for n, row in zip(names, rows, strict=True) if n}


def moves_between(state: TableState, before: Snapshot | None, after: Snapshot) -> Moves:
    """Return the files that are live in only one of two snapshots: in ``after`` (added) or in ``before`` (removed).

    A manifest that both snapshots list with the same manifest DVs is not read, because its live entries are the same in
    both.

    Parameters
    ----------
    before
        The earlier snapshot; if None, every live file of ``after`` counts as added.
    after
        The later snapshot.

    Raises
    ------
    FormatError
        A manifest that must be read is missing or damaged.
    UnsupportedError
        A data file of ``after`` has column files (V4 draft), which a replay cannot repeat. Data files in manifests that
        are not read are not checked.
    """
    old = None if before is None else state.root(before)
    new = state.root(after)
    left, right = manifests_of(old), manifests_of(new)
    was = [
        EntryBatch(leaf.entries.filter(mask))
        for leaf, mask in _leaves(state, old, [row for key, row in left.items() if key not in right], stats=False)
    ]
    removed = concat_batches(was)
    known = file_keys(removed.entries)
    seen = [_no_keys()]
    added: list[tuple[EntryBatch, AnyArray]] = []
    twice = 0
    for leaf, mask in _leaves(state, new, [row for key, row in right.items() if key not in left], stats=True):
        _refuse_column_files(leaf.entries.filter(mask))
        keys = file_keys(leaf.entries)
        seen.append(keys.filter(mask))
        rows = np.flatnonzero(bool_array(mask) & ~bool_array(pc.is_in(keys, value_set=known)))
        once = _first_of_each(keys.take(build.array(rows)), added)
        twice += len(rows) - len(once)
        if len(once):
            added.append((EntryBatch.of(leaf).take(pa.array(rows[once])), keys.take(pa.array(rows[once]))))
    now = whole(pa.chunked_array(seen))
    gone = removed.filter(pc.invert(pc.is_in(known, value_set=now)))
    new_manifests = bool({name for name, _ in right} - {name for name, _ in left})
    fresh = _with_sizes(state, concat_batches(batch for batch, _ in added))
    return Moves(fresh, gone, new_manifests, twice)


def _refuse_column_files(entries: pa.Table) -> None:
    held = entries["column_files"]
    if held.null_count < len(held) and pc.any(pc.greater(pc.list_value_length(held), 0)).as_py():
        at = pc.index(pc.greater(pc.fill_null(pc.list_value_length(held), 0), 0), True).as_py()
        raise UnsupportedError(
            f"{entries['location'][at].as_py()} has column files (V4 draft), which a replay cannot repeat. To "
            "commit on top of this table, use simulate(); to merge column files into data files, use compact()"
        )


def _with_sizes(state: TableState, batch: EntryBatch) -> EntryBatch:
    """Return the entries with the sizes of all files.

    If an entry does not record the size of its file, the storage is asked for it. In the V4 draft, for example, the
    entries of deletion vectors do not record a file size.
    """
    sizes = whole(batch.entries["file_size_in_bytes"])
    lacking = pc.and_(sizes.is_null(), batch.entries["location"].is_valid())
    places = build.to_pylist(pc.unique(batch.entries["location"].filter(lacking)))
    if not places:
        return batch
    found = pa.array([state.storage.stat(place).size for place in places], pa.int64())
    at = pc.index_in(whole(batch.entries["location"]), value_set=pa.array(places, pa.string()))
    looked_up = found.take(at)
    return batch.with_columns(file_size_in_bytes=pc.coalesce(sizes, looked_up))


def _no_keys() -> AnyArray:
    return pa.array([], pa.string())


def _first_of_each(keys: AnyArray, before: list[tuple[EntryBatch, AnyArray]]) -> np.ndarray:
    """Return the indices of the keys that occur for the first time.

    Parameters
    ----------
    keys
        The keys of the files in one batch of entries, from `file_keys`.
    before
        The batches before this one, each with the keys of its files.
    """
    _, first = np.unique(np.asarray(keys.dictionary_encode().indices), return_index=True)
    fresh = np.ones(len(keys), np.bool_)
    for _, others in before:
        fresh &= ~bool_array(pc.is_in(keys, value_set=others))
    first = np.sort(first)
    kept: np.ndarray = first[fresh[first]]
    return kept


def _leaves(
    state: TableState, root: Manifest | None, rows: list[int], *, stats: bool
) -> list[tuple[Manifest, pa.BooleanArray]]:
    if root is None:
        return []
    direct = state.reader.direct(readable(root))
    parts = _ALL if stats else frozenset({"entries"})
    found = [] if direct is None else [direct]
    found += state.reader.leaves(root, rows, parts=parts) if rows else ()
    out = []
    for leaf in map(readable, found):
        kinds = pc.less_equal(leaf.entries["content_type"], int(ContentType.EQUALITY_DELETE))
        out.append((leaf, pa.array(bool_array(pc.and_(live(leaf.entries), kinds)))))
    return out
