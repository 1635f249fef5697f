"""Cells that represent folded rows of a root or manifest, computed from columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from iceexplore.arrow import compute as pc
from iceexplore.graph._root import bools
from iceexplore.graph.tree._entries import Rows
from iceexplore.manifests import ContentType, Manifest, Status, live
from iceexplore.metadata import Snapshot
from iceexplore.render import CellBlock

__all__ = ["MOST_STRIP_CELLS", "folded_cells"]

#: Maximum number of cells in a strip. If there are more rows, each cell represents several.
MOST_STRIP_CELLS = 600
#: Kinds of cells: first one for each content type, then deletion vectors, and entries that an earlier snapshot removed.
_KINDS = (
    "data-file",
    "position-delete",
    "equality-delete",
    "data-manifest",
    "delete-manifest",
    "manifest-dv",
    "deletion-vector",
    "removed earlier",
)
_VECTOR, _GONE = 6, 7
_COLUMNS = ["content_type", "status", "snapshot_id", "file_size_in_bytes", "deletion_vector", "manifest_dv"]


def folded_cells(manifest: Manifest, rows: Rows, snapshot: Snapshot) -> tuple[CellBlock, Rows]:
    """Return cells for rows, and the first row of each cell; if there are too many rows, each cell has several."""
    per = max(1, -(-len(rows) // MOST_STRIP_CELLS))
    starts = np.arange(0, len(rows), per)
    part = manifest.entries.select(_COLUMNS).take(pa.array(rows, pa.int64()))
    content = np.asarray(pc.fill_null(part["content_type"], 0).to_numpy()).astype(np.int64)
    kind = np.clip(content, 0, int(ContentType.MANIFEST_DV))
    vector = pc.struct_field(part["deletion_vector"], "size_in_bytes")
    kind[(kind == ContentType.POSITION_DELETE) & bools(pc.is_valid(part["deletion_vector"]))] = _VECTOR
    own = bools(pc.equal(part["snapshot_id"], snapshot.snapshot_id))
    is_live = bools(live(part))
    added = own & is_live & bools(pc.equal(part["status"], int(Status.ADDED)))
    removed = ~is_live & (own | manifest.is_root | bools(pc.is_valid(part["manifest_dv"])))
    kind[~is_live & ~removed] = _GONE
    change = np.where(removed, 2, np.where(added, 1, 0))
    size = pc.fill_null(pc.coalesce(vector, part["file_size_in_bytes"]), 0).to_numpy()
    counts = np.diff(np.append(starts, len(rows)))
    mean = np.add.reduceat(np.asarray(size).astype(np.float64), starts) / counts if len(rows) else np.zeros(0)
    shades = np.clip(np.floor(np.log10(np.maximum(mean, 1))) - 3, 0, 5)
    block = CellBlock(
        bytes(shades.astype(np.uint8)),
        bytes(kind[starts].astype(np.uint8)),
        bytes((np.maximum.reduceat(change, starts) if len(rows) else change).astype(np.uint8)),
        _KINDS,
    )
    return block, rows[starts]
