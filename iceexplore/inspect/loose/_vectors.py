"""The manifest deletion vectors of a loose V4 root, decoded: the positions that they remove from each leaf."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.errors import IceexploreError
from iceexplore.manifests import ContentType, Manifest, bool_array, manifest_dv_form, read_manifest_dv, whole

__all__ = ["MAX_LISTED", "VECTORS", "manifest_vectors"]

#: Maximum number of positions listed for one root (4 MB): a few bytes of runs can set 65,536 of them.
MAX_LISTED = 1_000_000
#: Content types of entries that may have a manifest DV.
_BEARERS = pa.array([3, 4, 5], pa.int32())

VECTORS = build.schema(
    [
        pa.field("ordinal", pa.int64()),
        pa.field("manifest", pa.string()),
        pa.field("status", pa.int32()),
        pa.field("form", pa.string()),
        pa.field("size_in_bytes", pa.int64()),
        pa.field("cardinality", pa.int64()),
        pa.field("stated_cardinality", pa.int64()),
        pa.field("positions", pa.list_(pa.uint32())),
        pa.field("file_path", pa.string()),
        pa.field("offset", pa.int64()),
        pa.field("fault", pa.string()),
    ]
)


def manifest_vectors(root: Manifest) -> pa.Table:
    """Decode the manifest DVs of a root, one row each.

    Inline vectors (field 522 of the draft, ``inline_content`` of the proposal) are decoded. For a vector in a Puffin
    file, which is not read, the location and offset are given. Positions are null if listing them would exceed
    `MAX_LISTED`.
    """
    has_vector = bool_array(whole(root.entries["deletion_vector"]).is_valid())
    at = np.flatnonzero(has_vector & bool_array(pc.is_in(root.entries["content_type"], _BEARERS)))
    columns = ["ordinal", "content_type", "location", "status", "record_count", "referenced_file", "deletion_vector"]
    rows: list[dict[str, Any]] = []
    left = MAX_LISTED
    for row, entry in zip(at.tolist(), root.entries.select(columns).take(build.array(at)).to_pylist(), strict=True):
        vector, data = entry["deletion_vector"], entry["deletion_vector"]["inline_content"]
        apart = entry["content_type"] == ContentType.MANIFEST_DV  # else the vector is attached to the manifest's entry
        made: dict[str, Any] = {
            "ordinal": entry["ordinal"],
            "manifest": entry["referenced_file" if apart else "location"],
            "status": entry["status"],
            "stated_cardinality": entry["record_count"] if apart else None,
            "size_in_bytes": vector["size_in_bytes"] if data is None else len(data),
        }
        rows.append(made)
        if data is None and vector["offset"] is not None:
            made |= {"file_path": entry["location"], "offset": vector["offset"]}
            continue
        try:
            bitmap = read_manifest_dv(None, root, row)
        except IceexploreError as error:
            made["fault"] = str(error)
            continue
        made |= {"form": manifest_dv_form(data), "cardinality": len(bitmap)}
        if len(bitmap) <= left:
            left -= len(bitmap)
            made["positions"] = np.asarray(bitmap.to_array(), dtype=np.uint32)
    return pa.Table.from_pylist(rows, schema=VECTORS)
