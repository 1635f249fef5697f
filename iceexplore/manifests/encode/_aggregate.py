"""A leaf's row in its root: its counts, and the aggregated statistics or partition summaries of its entries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError
from iceexplore.manifests._batch import EntryBatch
from iceexplore.manifests.encode._aggregate_stats import aggregated_stats, extremes
from iceexplore.manifests.encode._partition_tuple import field_type, tuple_column
from iceexplore.manifests.model._arrow import whole
from iceexplore.manifests.model._content_entry import ContentType, Status
from iceexplore.metadata import PrimitiveType, TableMetadata, Type, arrow_type, encode_values

__all__ = [
    "manifest_entry",
]


def partition_summaries(batch: EntryBatch, metadata: TableMetadata, spec_id: int) -> list[dict[str, Any]]:
    """Return a summary for each field of the spec; bounds are not truncated, and ignore nulls and NaN.

    Raises
    ------
    OptionError
        The table has no such spec, or values do not fit their type.
    """
    spec = metadata.spec(spec_id)
    if spec is None:
        raise OptionError(f"the table has no partition spec {spec_id}")
    out = []
    for f in spec.fields:
        type_ = field_type(f, metadata)
        out.append(_summary(tuple_column(batch, f, type_), type_))
    return out


def _summary(values: AnyArray, type_: Type) -> dict[str, Any]:
    contains_null, contains_nan = values.null_count > 0, False
    values = values.drop_null()
    if pa.types.is_floating(values.type):
        nan = pc.is_nan(values)
        contains_nan = bool(pc.any(nan).as_py())
        values = values.filter(pc.invert(nan))
    raw = [None, None]
    if len(values):
        raw = build.to_pylist(encode_values(_stored(type_, values.type), pa.concat_arrays(extremes(values))))
    return {"contains_null": contains_null, "contains_nan": contains_nan, "lower_bound": raw[0], "upper_bound": raw[1]}


def _stored(type_: Type, kind: pa.DataType) -> Type:
    """Return the type by which to encode values: the field's or, if that is unknown, their type in memory."""
    if arrow_type(type_) == kind:
        return type_
    found = next((name for name in _BY_ARROW if arrow_type(PrimitiveType(name)) == kind), "binary")
    return PrimitiveType(found)


_BY_ARROW = (
    "boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz", "timestamp_ns",
    "timestamptz_ns", "string", "uuid", "binary",
)  # fmt: skip
#: The statuses that each count includes. The draft's MODIFIED entries count as existing, its REPLACED ones as deleted.
_COUNTED = {
    "added": (Status.ADDED,),
    "existing": (Status.EXISTING, Status.MODIFIED),
    "deleted": (Status.DELETED, Status.REPLACED),
}


def manifest_entry(
    batch: EntryBatch,
    *,
    location: str,
    length: int,
    content: str,
    metadata: TableMetadata,
    spec_id: int,
    dialect: str,
    status: int,
    snapshot_id: int | None,
    sequence_number: int | None,
    referenced_file: str | None = None,
    first_row_id: int | None = None,
    manifest_format: str | None = None,
) -> EntryBatch:
    """Return the entry of a manifest in its root, computed from its rows.

    Parameters
    ----------
    batch
        The manifest's rows, as written.
    content
        ``data`` or ``delete``.
    dialect
        V4's proposal and draft aggregate statistics (over live entries). The others summarize partitions (over all
        entries, as Java does, so that filters also find a snapshot's deletions).
    sequence_number
        None for a manifest of this commit: it is inherited then, and so is ``min_sequence_number`` if no live entry
        has a number of its own.
    referenced_file
        V4: the data manifest that a delete manifest is affiliated with.
    manifest_format
        ``avro`` or ``parquet``; by default taken from the location's suffix.

    Raises
    ------
    OptionError
        Unknown content, or a row without a status.
    """
    if content not in ("data", "delete"):
        raise OptionError(f"content={content!r}: choose 'data' or 'delete'")
    if manifest_format is None:
        manifest_format = "parquet" if location.endswith(".parquet") else "avro"
    row: dict[str, Any] = {
        "content_type": int(ContentType.DATA_MANIFEST if content == "data" else ContentType.DELETE_MANIFEST),
        "location": location,
        "file_format": manifest_format,
        "status": int(status),
        "snapshot_id": snapshot_id,
        "sequence_number": sequence_number,
        "file_sequence_number": sequence_number,
        "partition_spec_id": spec_id,
        "record_count": len(batch),
        "file_size_in_bytes": length,
        "referenced_file": referenced_file,
        "manifest_stats": _counts(batch, sequence_number),
        "first_row_id": first_row_id,
    }
    if dialect in ("v4-proposal", "v4-draft"):
        return EntryBatch.of_rows([row], stats=aggregated_stats(batch, metadata))
    row["partition_summaries"] = partition_summaries(batch, metadata, spec_id)
    return EntryBatch.of_rows([row])


def _counts(batch: EntryBatch, sequence_number: int | None) -> dict[str, int | None]:
    entries = batch.entries
    status = np.asarray(pc.fill_null(whole(entries["status"]), -1))
    if (status < 0).any():
        raise OptionError(f"row {int(np.flatnonzero(status < 0)[0])} has no status")
    rows = np.asarray(pc.fill_null(whole(entries["record_count"]), 0))
    masks = {name: np.isin(status, [int(s) for s in kinds]) for name, kinds in _COUNTED.items()}
    files = {f"{name}_files_count": int(mask.sum()) for name, mask in masks.items()}
    held = {f"{name}_rows_count": int(rows[mask].sum()) for name, mask in masks.items()}
    # As in Java (ManifestWriter.addEntry): the minimum over live entries that have a number.
    numbers = whole(entries["sequence_number"]).filter(pa.array(masks["added"] | masks["existing"]))
    lowest = pc.min(numbers).as_py()
    return {**files, **held, "min_sequence_number": sequence_number if lowest is None else lowest}
