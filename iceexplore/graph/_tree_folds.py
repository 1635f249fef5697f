"""What a fold says of the rows that it hides: sums and a few names, by columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.graph._card import human_bytes
from iceexplore.graph._tree_entries import Rows, is_manifest
from iceexplore.graph._tree_labels import amount, basename
from iceexplore.manifests import Manifest, Status
from iceexplore.metadata import Snapshot

__all__ = ["summary", "whole_column"]

#: So many names are kept.
_NAMED = 20


def whole_column(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    whole = column.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def summary(manifest: Manifest, rows: Rows, snapshot: Snapshot) -> tuple[list[str], dict[str, Any]]:
    """What some rows hold, in sums: files or manifests, rows, bytes, changes of this snapshot; a few names."""
    part = manifest.entries.take(pa.array(rows, pa.int64()))
    size = pc.sum(part["file_size_in_bytes"]).as_py()
    fields: dict[str, Any] = {"names": [basename(v) for v in part["location"].slice(0, _NAMED).to_pylist()]}
    lines = []
    types = set(pc.unique(part["content_type"]).to_pylist())
    if types and all(map(is_manifest, types)):
        stats = whole_column(part["manifest_stats"])
        live = [stats.field(f"{s}_files_count") for s in ("added", "existing")]
        unknown = any(column.null_count for column in live)
        files = sum(pc.sum(column).as_py() or 0 for column in live)
        words = [f"{'at least ' if unknown else ''}{amount(files, 'file')}"]
        fields["files"] = files
    else:
        count = pc.sum(part["record_count"]).as_py()
        words = [] if count is None else [amount(count, "row")]
        fields["record_count"] = count
    if size is not None:
        words.append(human_bytes(size))
        fields["file_size_in_bytes"] = size
    lines.append(" · ".join(words))
    if not manifest.is_root:
        own = pc.equal(part["snapshot_id"], snapshot.snapshot_id)
        changes = []
        for status, sign, word in ((Status.ADDED, "+", "added"), (Status.DELETED, "−", "deleted")):
            n = pc.sum(pc.and_(own, pc.equal(part["status"], int(status)))).as_py() or 0
            fields[word] = n
            if n:
                changes.append(f"{sign}{n:,} {word}")
        lines.append(" · ".join(changes))
    return lines, fields
