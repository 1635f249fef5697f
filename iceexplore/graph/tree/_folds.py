"""Summaries of folded rows: totals and a few names, computed from columns."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyChunkedArray, AnyColumn
from iceexplore.arrow import compute as pc
from iceexplore.graph._card import human_bytes
from iceexplore.graph._root import FILES, MANIFESTS, Removals
from iceexplore.graph.tree._entries import Rows
from iceexplore.graph.tree._labels import amount, basename
from iceexplore.manifests import ContentType, Manifest, Status
from iceexplore.metadata import Snapshot

__all__ = ["summary", "whole_column"]

#: Maximum number of names in a summary.
_NAMED = 20


def whole_column(column: AnyChunkedArray) -> AnyArray:
    """Return a column as one array."""
    whole: AnyColumn = column.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def summary(manifest: Manifest, rows: Rows, snapshot: Snapshot) -> tuple[list[str], dict[str, Any]]:
    """Summarize some rows: files or manifests, rows, bytes, changes by this snapshot, and a few names.

    Returns the lines for the node, and its fields.
    """
    part = manifest.entries.take(pa.array(rows, pa.int64()))
    # The size of a vector is that of its blob, as several vectors may share a Puffin file.
    size = pc.sum(pc.coalesce(pc.struct_field(part["deletion_vector"], "size_in_bytes"), part["file_size_in_bytes"]))
    size = size.as_py()
    fields: dict[str, Any] = {"names": [basename(v) for v in part["location"].slice(0, _NAMED).to_pylist()]}
    kinds = np.asarray(pc.fill_null(part["content_type"], -1).to_numpy())
    manifests = np.isin(kinds, sorted(MANIFESTS))
    words = []
    if manifests.any():
        fields["files"], text = _files(part.filter(pa.array(manifests)), Removals(manifest))
        words.append(text if manifests.all() else f"{amount(int(manifests.sum()), 'manifest')} of {text}")
    if vectors := int((kinds == ContentType.MANIFEST_DV).sum()):
        words.append(amount(vectors, "manifest DV"))
    if manifest.is_root and (files := int(np.isin(kinds, sorted(FILES)).sum())):
        words.append(amount(files, "file"))
    if not manifests.any():
        counted = part.filter(pa.array(kinds == ContentType.DATA)) if manifest.is_root else part
        count = pc.sum(counted["record_count"]).as_py()
        words += [] if count is None else [amount(count, "row")]
        fields["record_count"] = count
    if size is not None:
        words.append(human_bytes(size))
        fields["file_size_in_bytes"] = size
    lines = [" · ".join(words)]
    if not manifest.is_root:
        hidden = part.num_rows - part["manifest_dv"].null_count
        own = pc.equal(part["snapshot_id"], snapshot.snapshot_id)
        changes = []
        for status, key, word in ((Status.ADDED, "added", "+{:,} added"), (Status.DELETED, "deleted", "{:,} removed")):
            n = pc.sum(pc.and_(own, pc.equal(part["status"], int(status)))).as_py() or 0
            fields[key] = n
            if n:
                changes.append(word.format(n))
        if hidden:
            fields["removed_entries"] = hidden
            changes.append(f"{hidden:,} removed by a manifest DV")
        lines.append(" · ".join(changes))
    return lines, fields


def _files(manifests: pa.Table, removed: Removals) -> tuple[int, str]:
    """Count the live files in some manifests of a root: files as written minus those that manifest DVs remove.

    Files of unknown number are left out of the count: those of a manifest without counts, and those that a manifest DV
    without a number of positions removes.
    """
    stats = whole_column(manifests["manifest_stats"])
    counted = [cast(pa.StructArray, stats).field(f"{s}_files_count") for s in ("added", "existing")]
    files = sum(pc.sum(column).as_py() or 0 for column in counted)
    gone = [removed.of(place).entries for place in manifests["location"].to_pylist()] if removed else []
    files -= sum(n for n in gone if n is not None)
    limits = {(False, False): "", (True, False): "at least ", (False, True): "at most ", (True, True): "about "}
    limit = limits[any(column.null_count for column in counted), None in gone]
    return files, f"{limit}{amount(files, 'file')}"
