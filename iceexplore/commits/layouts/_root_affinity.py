"""Delete manifests, affiliated to the data manifest of their files or not (proposal, "Optional Affinity")."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.commits.layouts._root_builder import Draft, chunks, numbers
from iceexplore.commits.live_files._locate import data_leaf_of
from iceexplore.manifests import ContentType, EntryBatch, Status, whole

__all__ = ["add_delete_leaves", "owners_of"]


def owners_of(draft: Draft, batch: EntryBatch) -> pa.Array:
    """The data manifest, in the new root, of the data file of each deletion vector; null where there is none.

    Null too for equality deletes: their reach is a partition, or the table, and not the files of one manifest.
    The data manifests of the base are read for it.
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


def add_delete_leaves(draft: Draft, batch: EntryBatch, status: Status, *, affiliate: bool) -> None:
    """Write deletes to leaves: by data manifest, or (what has none, or all) to unaffiliated ones."""
    size = draft.writer.options.leaf_entries
    owners = owners_of(draft, batch) if affiliate else pa.nulls(len(batch), pa.string())
    coded = owners.dictionary_encode()
    groups = np.asarray(pc.fill_null(coded.indices, -1))
    for group in np.unique(groups).tolist():
        owner = None if group < 0 else str(coded.dictionary[group].as_py())
        for part in chunks(batch.take(pa.array(np.flatnonzero(groups == group))), size):
            draft.add_leaf(part, content=ContentType.DELETE_MANIFEST, status=status, referenced_file=owner)
