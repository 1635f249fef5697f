"""Inheritance: values that a manifest's entries take from the manifest's own entry in its root.

Spec, "Manifest Inheritance", "Sequence Number Inheritance", "First Row ID Inheritance"; where the spec is open, as in
Java (``InheritableMetadataFactory.BaseInheritableMetadata``, ``ManifestReader.idAssigner``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyChunkedArray, AnyColumn
from iceexplore.arrow import compute as pc
from iceexplore.manifests.model._arrow import whole
from iceexplore.manifests.model._content_entry import ENTRY_SCHEMA, ContentType, Status
from iceexplore.metadata import Snapshot

__all__ = ["Parent", "inherit", "inherit_root", "replace", "row_ids"]


@dataclass(frozen=True)
class Parent:
    """Values that the entries of a manifest inherit; they come from the manifest's own entry in its root."""

    snapshot_id: int | None
    sequence_number: int | None
    partition_spec_id: int | None
    first_row_id: int | None
    content_type: int
    unpartitioned: int | None = None  # the spec of V4 entries without a spec id


def replace(entries: pa.Table, columns: Mapping[str, AnyColumn]) -> pa.Table:
    """Return the entries with some columns replaced."""
    return pa.Table.from_arrays(
        [columns.get(f.name, entries.column(f.name)) for f in ENTRY_SCHEMA], schema=ENTRY_SCHEMA
    )


def _filled(column: AnyChunkedArray, where: AnyChunkedArray | None, value: int | None) -> AnyChunkedArray:
    if value is None or not column.null_count:
        return column
    filler = pa.scalar(value, column.type)
    if where is None:
        return pc.fill_null(column, filler)
    return pc.if_else(pc.and_(column.is_null(), where), filler, column)


def inherit(entries: pa.Table, parent: Parent, *, own_specs: bool = False) -> pa.Table:
    """Fill the values that a leaf's entries inherit; with ``own_specs`` (V4), entries do not inherit the spec id."""
    # v1 has no sequence numbers (all are 0); since v2 only ADDED entries inherit one.
    everywhere = parent.sequence_number == 0
    added = None if everywhere else pc.equal(entries["status"], int(Status.ADDED))
    spec = pa.scalar(parent.partition_spec_id, pa.int32())
    specs: AnyColumn = pa.repeat(spec, len(entries))
    if own_specs:
        specs = _filled(entries["partition_spec_id"], None, parent.unpartitioned)
    return replace(
        entries,
        {
            "snapshot_id": _filled(entries["snapshot_id"], None, parent.snapshot_id),
            "sequence_number": _filled(entries["sequence_number"], added, parent.sequence_number),
            "file_sequence_number": _filled(entries["file_sequence_number"], added, parent.sequence_number),
            "partition_spec_id": specs,
            "first_row_id": row_ids(entries, parent),
        },
    )


def row_ids(entries: pa.Table, parent: Parent) -> AnyArray:
    """Return ``first_row_id`` after inheritance.

    A null becomes the manifest's first row id plus the record counts of the earlier entries with null; DELETED entries
    are skipped. In a manifest without ``first_row_id`` (a delete manifest, or one written before v3), all are null.
    """
    if parent.first_row_id is None or parent.content_type != ContentType.DATA_MANIFEST:
        return pa.nulls(len(entries), pa.int64())
    return _counted(entries, parent.first_row_id)


def inherit_root(entries: pa.Table, snapshot: Snapshot, unpartitioned: int | None) -> pa.Table:
    """Fill the values that a V4 root's entries inherit from the snapshot; data files get row ids as in a leaf."""
    added = pc.equal(entries["status"], int(Status.ADDED))
    # A null spec id means the unpartitioned spec, except for a manifest written by V4: its entries may have many specs.
    one_spec = pc.or_(
        pc.less(entries["content_type"], int(ContentType.DATA_MANIFEST)),
        pc.fill_null(pc.equal(entries["format_version"], 0), False),
    )
    specs = entries["partition_spec_id"]
    if unpartitioned is not None and specs.null_count:
        specs = pc.if_else(pc.and_(specs.is_null(), one_spec), pa.scalar(unpartitioned, pa.int32()), specs)
    columns: dict[str, AnyColumn] = {
        "snapshot_id": _filled(entries["snapshot_id"], None, snapshot.snapshot_id),
        "sequence_number": _filled(entries["sequence_number"], added, snapshot.sequence_number),
        "file_sequence_number": _filled(entries["file_sequence_number"], added, snapshot.sequence_number),
        "partition_spec_id": specs,
    }
    if snapshot.first_row_id is not None:
        columns["first_row_id"] = _counted(entries, snapshot.first_row_id)
    return replace(entries, columns)


def _counted(entries: pa.Table, first: int) -> AnyArray:
    given = whole(entries["first_row_id"])
    unset = np.asarray(given.is_null()) & (np.asarray(pc.fill_null(entries["status"], 0)) != Status.DELETED)
    unset &= np.asarray(pc.fill_null(entries["content_type"], -1)) == ContentType.DATA
    counts = np.where(unset, np.asarray(pc.fill_null(entries["record_count"], 0)), 0)
    before = np.cumsum(counts) - counts
    return pc.coalesce(pa.array(before + np.int64(first), mask=~unset), given)
