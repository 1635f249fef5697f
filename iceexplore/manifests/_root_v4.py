"""The V4 root manifest: all of its rows after inheritance, and the files that it lists directly, as a leaf."""

from __future__ import annotations

from typing import cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyChunkedArray
from iceexplore.arrow import compute as pc
from iceexplore.errors import Problems
from iceexplore.manifests._batch import EntryBatch
from iceexplore.manifests._manifest import Manifest
from iceexplore.manifests._manifest_dv import stray_problems
from iceexplore.manifests.checks._entries import root_entry_problems, snapshot_problems
from iceexplore.manifests.checks._known_numbers import spec_problems, status_problems
from iceexplore.manifests.checks._v4 import affinity_problems, key_problems, root_problems
from iceexplore.manifests.decode._file import Loader, Part
from iceexplore.manifests.decode._inherit import inherit_root
from iceexplore.manifests.model._arrow import bool_array
from iceexplore.manifests.model._locations import absolute_entries
from iceexplore.manifests.model._table_context import TableTypes
from iceexplore.manifests.rules._rows import FILES, MANIFESTS
from iceexplore.metadata import Snapshot

__all__ = ["direct_view", "is_direct", "is_manifest", "root_batch", "v4_root"]

_MANIFESTS, _FILES = (pa.array([int(kind) for kind in kinds], pa.int32()) for kinds in (MANIFESTS, FILES))


def is_manifest(entries: pa.Table) -> AnyChunkedArray:
    """Return a mask of the entries that are manifests."""
    return pc.is_in(entries["content_type"], _MANIFESTS)


def is_direct(entries: pa.Table) -> AnyChunkedArray:
    """Return a mask of the entries that are files."""
    return pc.is_in(entries["content_type"], _FILES)


def v4_root(
    location: str, part: Part, snapshot: Snapshot | None, meaning: TableTypes, load: Loader, report: Problems
) -> Manifest:
    """Return a V4 root manifest from its decoded entries; without a snapshot nothing is inherited."""
    head, entries = part.head, part.table
    problems = [*part.problems, *root_problems(location, entries, head.dialect)]
    problems += status_problems(location, entries, head.dialect)
    if meaning.location is not None:
        entries, more = absolute_entries(entries, meaning.location, location)
        problems += more
    problems += [*stray_problems(entries, location), *affinity_problems(location, entries)]
    if snapshot is not None:
        entries = inherit_root(entries, snapshot, meaning.unpartitioned)
        problems += snapshot_problems(location, entries, snapshot.sequence_number)
        problems += root_entry_problems(location, entries, meaning.types)
        problems += spec_problems(location, entries.filter(is_direct(entries)), meaning.specs, "spec_id")
        problems += key_problems(location, head.header.metadata, "root", head.dialect)
    return Manifest(
        location,
        entries,
        dialect=head.dialect,
        is_root=True,
        header=head.header,
        length=head.length,
        problems=tuple(problems),
        reader_schema=head.reader_schema,
        load=load,
        meaning=meaning,
        report=report,
        stored=head.rows,
        composed=head.composed,
    )


def direct_view(root: Manifest) -> Manifest | None:
    """Return a leaf of the files that a V4 root lists directly; None if there are none."""
    if not root.dialect.has_root_manifest:
        return None
    mask = is_direct(root.entries)
    return root.only(cast(pa.BooleanArray, mask.combine_chunks())) if pc.any(mask).as_py() else None


def root_batch(root: Manifest) -> EntryBatch:
    """Return everything that a V4 root holds, with the partition tuples of the files that it lists directly."""
    batch, direct = EntryBatch.of(root), direct_view(root)
    tuples = None if direct is None else direct.partition()
    if tuples is None:
        return batch
    files = bool_array(is_direct(root.entries))
    return EntryBatch(batch.entries, batch.stats, tuples.take(pa.array(np.cumsum(files) - 1, mask=~files)))
