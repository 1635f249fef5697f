"""The deleted rows of a snapshot's data files, as its delete manifests state them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray
from iceexplore.graph._root import bools, live_manifests
from iceexplore.graph._state import TableState
from iceexplore.graph.tree._labels import kind_of_entry
from iceexplore.manifests import ContentType, Manifest, live
from iceexplore.metadata import Snapshot
from iceexplore.storage import is_local

__all__ = ["deleted_rows"]

#: Deleted rows are not counted if that takes reading more entries of delete manifests than this or, in a remote table,
#: more delete manifests.
_MOST_ENTRIES = 10_000
_MOST_REMOTE = 4

Paths = Callable[[Manifest, Sequence[dict[str, Any]], AnyArray], Sequence[str | None]]


def deleted_rows(state: TableState, snapshot: Snapshot, paths: Paths) -> Mapping[str, int]:
    """Return the numbers of deleted rows by data file location, from deletes that apply to a single data file.

    The result is empty if counting would read many delete manifests. Equality deletes, and position deletes for several
    data files, are not counted, nor are vectors in a data file's own entry, which states no count.

    Parameters
    ----------
    paths
        Returns, for each delete, the only data file to which it applies, or None.
    """
    root = state.root(snapshot)
    if root is None:
        return {}
    rows = live_manifests(root, {int(ContentType.DELETE_MANIFEST)})
    stats = root.entries["manifest_stats"].take(pa.array(rows, pa.int64())).to_pylist()
    counts = [
        sum((one or {}).get(f"{status}_files_count") or 0 for status in ("added", "existing", "deleted"))
        for one in stats
    ]
    if sum(counts) > _MOST_ENTRIES or (len(rows) > _MOST_REMOTE and not is_local(root.location)):
        return {}
    places = [root] if any(root.entries["content_type"].to_numpy() == int(ContentType.POSITION_DELETE)) else []
    found: dict[str, dict[str, int]] = {"deletion-vector": {}, "position-delete": {}}
    for manifest in (*places, *(state.reader.leaves(root, rows) if rows else ())):
        mask = bools(live(manifest.entries))
        mask &= manifest.entries["content_type"].to_numpy() == int(ContentType.POSITION_DELETE)
        take = pa.array(np.flatnonzero(mask), pa.int64())
        records = manifest.entries.take(take).to_pylist()
        for record, path in zip(records, paths(manifest, records, take), strict=True):
            sums = found[kind_of_entry(record)]
            if path is not None and record["record_count"] is not None:
                sums[path] = sums.get(path, 0) + int(record["record_count"])
    # Spec, "Scan Planning": position delete files are ignored for a data file with a deletion vector.
    return found["position-delete"] | found["deletion-vector"]
