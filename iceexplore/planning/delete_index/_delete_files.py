"""The live deletes of a state that may concern some data files, as one batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.deletes import FILE_PATH_ID
from iceexplore.graph import TableState, live_manifests
from iceexplore.manifests import ContentType, EntryBatch, Manifest, bool_array, concat_batches, live, whole
from iceexplore.planning.delete_index._codes import Ints, Mask
from iceexplore.planning.delete_index._delete_manifests import concerned

__all__ = ["DeleteFiles", "gathered", "live_deletes", "path_bounds"]

_DELETES = pa.array([int(ContentType.POSITION_DELETE), int(ContentType.EQUALITY_DELETE)], pa.int32())
#: From this version on position deletes are mostly vectors, which need no statistics.
_VECTORS_FROM = 3


@dataclass(frozen=True, eq=False)
class DeleteFiles:
    """Live delete files and deletion vectors, a row each.

    Attributes
    ----------
    batch
        Their entries and tuples; statistics of ``file_path`` and of equality columns.
    vector, position, equality
        bool: what each is. A vector is a position delete with a place in a file, or one that is a Puffin file.
    sequence
        Data sequence numbers; null counts as 0.
    referenced
        The one data file that a delete names, by ``referenced_file`` or by equal bounds of ``file_path``.
    by_bounds
        bool: `referenced` is told by bounds alone.
    skipped
        How many manifests of deletes were not read: none of their deletes can apply.
    """

    batch: EntryBatch
    vector: Mask
    position: Mask
    equality: Mask
    sequence: Ints
    referenced: pa.StringArray
    by_bounds: Mask
    skipped: int = 0

    def __len__(self) -> int:
        return len(self.batch)


def live_deletes(
    state: TableState, *, manifests: Iterable[int] | None = None, files: EntryBatch | None = None
) -> DeleteFiles:
    """Read the deletes of a state's snapshot; the root's own are always among them.

    Parameters
    ----------
    manifests
        Rows of the root; by default all that may hold deletes: manifests of deletes, and in the V4 draft, where a
        vector stands on the entry of its data file, those of data.
    files
        Manifests whose deletes surely apply to none of these data files are not read.
    """
    root = state.root()
    if root is None:
        return gathered([], 0)
    if manifests is None:
        kinds = {int(ContentType.DELETE_MANIFEST)}
        if root.dialect == "v4-draft":
            kinds.add(int(ContentType.DATA_MANIFEST))
        rows = live_manifests(root, kinds)
    else:
        rows = [int(row) for row in manifests]
    kept = rows if files is None else concerned(state, root, rows, files)
    parts = {"entries", "partition"} | ({"stats"} if state.metadata.format_version < _VECTORS_FROM else set())
    direct = state.reader.direct(root)
    leaves = state.reader.leaves(root, kept, parts=parts) if kept else ()
    found = [_of_leaf(leaf) for leaf in chain([] if direct is None else [direct], leaves)]
    return gathered([b for b in found if b is not None], len(rows) - len(kept))


def _of_leaf(leaf: Manifest) -> EntryBatch | None:
    """The live deletes of one manifest, with the statistics that matching looks at."""
    entries = leaf.entries
    mask = bool_array(pc.is_in(entries["content_type"], _DELETES)) & bool_array(live(entries))
    if not mask.any():
        return None
    mine = entries.filter(pa.array(mask))
    by_value = pc.equal(mine["content_type"], int(ContentType.EQUALITY_DELETE))
    ids = set(pc.unique(pc.list_flatten(mine["equality_ids"].filter(by_value))).drop_null().to_pylist())
    by_position = bool_array(pc.invert(by_value)) & ~_is_vector(mine)
    if (by_position & bool_array(mine["referenced_file"].is_null())).any():
        ids.add(FILE_PATH_ID)
    batch = EntryBatch.of(leaf, sorted(ids))
    return batch if mask.all() else batch.filter(pa.array(mask))


def _is_vector(entries: pa.Table) -> Mask:
    place = whole(entries["deletion_vector"])
    puffin = bool_array(pc.equal(entries["file_format"], "puffin"))
    by_position = bool_array(pc.equal(entries["content_type"], int(ContentType.POSITION_DELETE)))
    vector: Mask = by_position & (bool_array(place.is_valid()) | puffin)
    return vector


def gathered(batches: list[EntryBatch], skipped: int = 0) -> DeleteFiles:
    """Deletes as a batch to be matched."""
    batch = concat_batches(batches)
    entries = batch.entries
    equality = bool_array(pc.equal(entries["content_type"], int(ContentType.EQUALITY_DELETE)))
    vector = _is_vector(entries)
    said = whole(entries["referenced_file"])
    said = pc.if_else(pc.equal(said, ""), pa.scalar(None, pa.string()), said)
    named = pc.coalesce(said, _one_path(batch))
    by_bounds = bool_array(said.is_null()) & bool_array(named.is_valid())
    return DeleteFiles(
        batch,
        vector,
        ~vector & ~equality,
        equality,
        np.asarray(pc.fill_null(whole(entries["sequence_number"]), 0)),
        pc.if_else(pa.array(equality), pa.scalar(None, pa.string()), named),
        by_bounds & ~equality,
        skipped,
    )


def _one_path(batch: EntryBatch) -> pa.StringArray:
    """The path that both bounds of ``file_path`` are (Java: ``ContentFileUtil.referencedDataFile``)."""
    low, high = path_bounds(batch)
    return pc.if_else(pc.fill_null(pc.equal(low, high), False), low, pa.scalar(None, pa.string()))


def path_bounds(batch: EntryBatch) -> tuple[pa.StringArray, pa.StringArray]:
    """The bounds of ``file_path``; null where there are none, or where they are no text."""
    stats = batch.stats.get(FILE_PATH_ID)
    if stats is None:
        return pa.nulls(len(batch), pa.string()), pa.nulls(len(batch), pa.string())
    low, high = (_text(pc.struct_field(stats, name)) for name in ("lower", "upper"))
    return low, high


def _text(values: pa.Array) -> pa.StringArray:
    try:
        return values.cast(pa.binary()).cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # a damaged one among them: each by itself
        return pa.array([_decoded(v) for v in values.to_pylist()], pa.string())


def _decoded(value: object) -> str | None:
    try:
        return value.decode() if isinstance(value, bytes) else None
    except UnicodeDecodeError:
        return None
