"""Check whether a replay has the same live files as the table, snapshot by snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray
from iceexplore.arrow import compute as pc
from iceexplore.commits.live_files._find import live_files
from iceexplore.commits.replaying._changes import file_keys
from iceexplore.graph import TableState
from iceexplore.manifests import ContentType, EntryBatch, bool_array, whole
from iceexplore.metadata import Snapshot

__all__ = ["differences_of"]

_KINDS = (ContentType.DATA, ContentType.POSITION_DELETE, ContentType.EQUALITY_DELETE)
#: The first format version with deletion vectors. From this version on, a replay writes deletion vectors instead of
#: position delete files.
_DVS_FROM = 3
_SAME = ("partition_spec_id", "record_count", "file_size_in_bytes")


def differences_of(
    table: TableState, replayed: TableState, pairs: Iterable[tuple[Snapshot, Snapshot]]
) -> tuple[str, ...]:
    """Return the differences between snapshots of a table and of its replay, as sentences.

    A snapshot and its replay must have the same live files. Each file must have the same spec, partition tuple and row
    count in both, and the same size in bytes, if the table records it. This is checked for data files, for equality
    delete files, and for deletion vectors of live data files.

    Position delete files are checked only if the replay has a format version below 3. From version 3 on, the replay has
    deletion vectors in place of the table's position delete files; neither these deletion vectors nor the position
    delete files are checked.

    Parameters
    ----------
    pairs
        Snapshots of the table, each with the snapshot that repeats it in the replay.
    """
    return tuple(text for a, b in pairs for text in _differences(table, a, replayed, b))


def _differences(table: TableState, a: Snapshot, replayed: TableState, b: Snapshot) -> Iterator[str]:
    both = ((table, a), (replayed, b))
    was, now = (live_files(s.showing(x, s.schema, ref=None, travel=None), _KINDS) for s, x in both)
    where = f"snapshot {a.snapshot_id}: "
    for kind, what in ((ContentType.DATA, "data file"), (ContentType.EQUALITY_DELETE, "equality delete file")):
        for text in _compared(what, _of(was, kind), _of(now, kind)):
            yield where + text
    old, new = _of(was, ContentType.POSITION_DELETE), _of(now, ContentType.POSITION_DELETE)
    if replayed.metadata.format_version < _DVS_FROM:  # the replay keeps position delete files
        for text in _compared("position delete file", old, new):
            yield where + text
        return
    there = _of(was, ContentType.DATA).entries["location"]
    vectors = old.filter(_is_vector(old))
    applies = pc.is_in(whole(vectors.entries["referenced_file"]), value_set=whole(there))
    vectors = vectors.filter(applies)
    if len(vectors) < len(old) and _is_vector(new).true_count == len(new):
        # The replay replaced the table's position delete files with deletion vectors. Compare only the deletion vectors
        # that are in the original table, too.
        names = file_keys(vectors.entries)
        new = new.filter(pc.is_in(file_keys(new.entries), value_set=names))
        old = vectors
    elif _is_vector(old).true_count == len(old):
        old = vectors
    for text in _compared("deletion vector", old, new):
        yield where + text


def _of(batch: EntryBatch, kind: ContentType) -> EntryBatch:
    return batch.filter(pa.array(bool_array(pc.equal(batch.entries["content_type"], int(kind)))))


def _is_vector(batch: EntryBatch) -> pa.BooleanArray:
    return whole(batch.entries["deletion_vector"]).is_valid()


def _compared(what: str, was: EntryBatch, now: EntryBatch) -> Iterator[str]:
    left, right = file_keys(was.entries), file_keys(now.entries)
    for word, names, others in (("is missing from the replay", left, right), ("is only in the replay", right, left)):
        gone = names.filter(pc.invert(pc.is_in(names, value_set=others)))
        if len(gone):
            more = f" and {len(gone) - 1:,} more" if len(gone) > 1 else ""
            yield f"a {what} {word}: {_name(gone[0])}{more}"
    for names, side in ((left, "the table"), (right, "the replay")):
        if len(names) > len(names.unique()):
            yield f"{side} lists a {what} twice"
    names = left.unique().filter(pc.is_in(left.unique(), value_set=right))
    first, second = was.take(pc.index_in(names, value_set=left)), now.take(pc.index_in(names, value_set=right))
    for column in _SAME:
        stated, replayed = whole(first.entries[column]), whole(second.entries[column])
        # Do not compare sizes that the table does not record, such as those of the V4 draft's deletion vectors. The
        # replay records them, because it looks them up.
        if column == "file_size_in_bytes":
            replayed = pc.if_else(stated.is_null(), stated, replayed)
        wrong = _unequal(stated, replayed)
        if len(wrong):
            yield f"{column} of a {what} differs: {_name(names[int(wrong[0])])}"
    for column in sorted({c.name for b in (first, second) if b.partition is not None for c in b.partition.type}):
        wrong = _unequal(_child(first, column), _child(second, column))
        if len(wrong):
            yield f"partition field {column} of a {what} differs: {_name(names[int(wrong[0])])}"


def _child(batch: EntryBatch, name: str) -> AnyArray:
    at = -1 if batch.partition is None else batch.partition.type.get_field_index(name)
    return pa.nulls(len(batch)) if at < 0 or batch.partition is None else pc.struct_field(batch.partition, [at])


def _unequal(a: AnyArray, b: AnyArray) -> np.ndarray:
    """Return the indices at which two columns differ; two nulls or two NaN are equal."""
    if pa.types.is_null(a.type) or pa.types.is_null(b.type):
        return np.flatnonzero(~(np.asarray(a.is_null()) & np.asarray(b.is_null())))
    b = b.cast(a.type)
    same = bool_array(pc.equal(a, b)) | (np.asarray(a.is_null()) & np.asarray(b.is_null()))
    if pa.types.is_floating(a.type):
        same |= bool_array(pc.is_nan(a)) & bool_array(pc.is_nan(b))
    return np.flatnonzero(~same)


def _name(key: pa.StringScalar) -> str:
    return str(key.as_py()).split("\x1f")[1]
