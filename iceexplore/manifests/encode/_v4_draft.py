"""Manifests of the V4 draft (TrackedFile): one row has a data file and its deletion vector, or a manifest and its DV.

Iceberg main: ``TrackedFile``, ``Tracking``, ``DeletionVector``, ``ManifestInfo``.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError, UnsupportedError
from iceexplore.manifests._batch import EntryBatch
from iceexplore.manifests.encode._checks import required, statuses
from iceexplore.manifests.encode._content_stats import content_stats
from iceexplore.manifests.encode._fields import Pair, field, list_of, nested, retyped, table_of
from iceexplore.manifests.encode._v4_proposal import stats_pairs, tuple_pair
from iceexplore.manifests.model._arrow import whole
from iceexplore.manifests.model._content_entry import ContentType, Status, live
from iceexplore.metadata import TableMetadata

__all__ = ["draft_table"]

_int32, _int64 = pa.int32(), pa.int64()
_MANIFESTS = pa.array([int(ContentType.DATA_MANIFEST), int(ContentType.DELETE_MANIFEST)], _int32)
#: Field 157: the format version of the written files.
_FORMAT_VERSION = 4


def draft_table(batch: EntryBatch, *, metadata: TableMetadata, snapshot_id: int | None) -> pa.Table:
    """Return the records of a manifest.

    A live deletion vector is written to its data file's row (as MODIFIED, if the file existed before and the vector did
    not), a live manifest DV to its manifest's row. DELETED vectors are not written: the draft has no row for them.

    Raises
    ------
    UnsupportedError
        A vector whose file or manifest is not in the batch, or a manifest DV that is not inline.
    OptionError
        Two live vectors of one file or manifest, or a required value that is null.
    """
    kinds = whole(batch.entries["content_type"])
    is_vector = pc.equal(kinds, int(ContentType.POSITION_DELETE))
    is_manifest_dv = pc.equal(kinds, int(ContentType.MANIFEST_DV))
    alive = live(batch.entries)
    vectors = batch.entries.filter(pc.and_(is_vector, alive))
    manifest_dvs = batch.entries.filter(pc.and_(is_manifest_dv, alive))
    batch = batch.filter(pc.invert(pc.or_(is_vector, is_manifest_dv)))
    if snapshot_id is not None:
        batch = batch.with_columns(snapshot_id=pc.fill_null(batch.entries["snapshot_id"], snapshot_id))
    entries, rows = batch.entries, len(batch)
    kinds = whole(entries["content_type"])
    vector_at = _places(entries, pc.equal(kinds, int(ContentType.DATA)), vectors, "data file")
    dv_at = _places(entries, pc.is_in(kinds, _MANIFESTS), manifest_dvs, "manifest")
    tracking = _tracking(entries, vectors, vector_at)
    attached = _attached(vectors, vector_at)
    info = _manifest_info(entries, manifest_dvs, dv_at)
    pairs: list[Pair | None] = [
        retyped(field(147, "tracking", tracking.type, required=True), tracking),
        (field(134, "content_type", _int32, required=True), kinds),
        (field(157, "format_version", _int32, required=True), pa.repeat(pa.scalar(_FORMAT_VERSION, _int32), rows)),
        (field(100, "location", pa.string(), required=True), required(entries, "location")),
        (field(101, "file_format", pa.string(), required=True), required(entries, "file_format")),
        (field(103, "record_count", _int64, required=True), required(entries, "record_count")),
        (field(104, "file_size_in_bytes", _int64, required=True), required(entries, "file_size_in_bytes")),
        (field(141, "spec_id", _int32), whole(entries["partition_spec_id"])),
        tuple_pair(batch, metadata),
        content_stats(batch, metadata, "tuple", field_id=146, draft=True),
        (field(140, "sort_order_id", _int32), whole(entries["sort_order_id"])),
        None if attached is None else retyped(field(148, "deletion_vector", attached.type), attached),
        None if info is None else retyped(field(150, "manifest_info", info.type), info),
        (field(131, "key_metadata", pa.binary()), whole(entries["key_metadata"])),
        _list(entries, 132, "split_offsets", 133, _int64),
        _list(entries, 135, "equality_ids", 136, _int32),
    ]
    return table_of(pair for pair in pairs if pair is not None)


def _list(entries: pa.Table, field_id: int, name: str, element_id: int, kind: pa.DataType) -> Pair:
    made = list_of(element_id, kind)
    return field(field_id, name, made), whole(entries[name]).cast(made)


def _places(entries: pa.Table, wanted: pa.BooleanArray, vectors: pa.Table, what: str) -> AnyArray:
    """Return, for each row, the position of its vector in ``vectors``; null if it has none."""
    referenced = whole(vectors["referenced_file"])
    if pc.count_distinct(referenced, mode="all").as_py() < len(referenced):
        counts = pc.value_counts(referenced)
        twice = next(c["values"].as_py() for c in counts if c["counts"].as_py() > 1)
        raise OptionError(f"two live deletion vectors of {what} {twice}: a row of the V4 draft can have only one")
    files = pc.if_else(wanted, whole(entries["location"]), pa.scalar(None, pa.string()))
    lost = pc.invert(pc.is_in(referenced, files.drop_null()))
    if pc.any(lost).as_py():
        name = referenced[pc.index(lost, True).as_py()].as_py()
        raise UnsupportedError(f"the V4 draft stores a deletion vector with its {what}, but {name} is not in the batch")
    return pc.index_in(files, referenced, skip_nulls=True)


def _taken(vectors: pa.Table, name: str, at: AnyArray) -> AnyArray:
    return whole(vectors[name]).take(at)


def _tracking(entries: pa.Table, vectors: pa.Table, at: AnyArray) -> pa.StructArray:
    status = statuses(entries, draft=True)
    changed = pc.and_(
        pc.equal(status, int(Status.EXISTING)),
        pc.fill_null(pc.equal(_taken(vectors, "status", at), int(Status.ADDED)), False),
    )
    pairs: list[Pair] = [
        (
            field(0, "status", _int32, required=True),
            pc.if_else(changed, pa.scalar(int(Status.MODIFIED), _int32), status),
        ),
        (field(1, "snapshot_id", _int64), whole(entries["snapshot_id"])),
        (field(3, "sequence_number", _int64), whole(entries["sequence_number"])),
        (field(4, "file_sequence_number", _int64), whole(entries["file_sequence_number"])),
        (field(5, "dv_snapshot_id", _int64), _taken(vectors, "snapshot_id", at)),
        (field(142, "first_row_id", _int64), whole(entries["first_row_id"])),
    ]
    return nested(pairs, len(entries))


def _attached(vectors: pa.Table, at: AnyArray) -> pa.StructArray | None:
    """Return 148, the deletion vectors of data files; None if there are none."""
    if not len(vectors):
        return None
    held = whole(vectors["deletion_vector"])
    pairs: list[Pair] = [
        (field(155, "location", pa.string(), required=True), _taken(vectors, "location", at)),
        (field(144, "offset", _int64, required=True), pc.struct_field(held, "offset").take(at)),
        (field(145, "size_in_bytes", _int64, required=True), pc.struct_field(held, "size_in_bytes").take(at)),
        (field(156, "cardinality", _int64, required=True), _taken(vectors, "record_count", at)),
        (field(149, "key_metadata", pa.binary()), _taken(vectors, "key_metadata", at)),
    ]
    return nested(pairs, len(at), at.is_null())


def _manifest_info(entries: pa.Table, manifest_dvs: pa.Table, at: AnyArray) -> pa.StructArray | None:
    """Return 150, the counts of manifests; None if there are none. 520 and 521 are 0, as no entry is REPLACED."""
    held = whole(entries["manifest_stats"])
    if held.null_count == len(entries):
        return None
    inline = pc.struct_field(whole(manifest_dvs["deletion_vector"]), "inline_content")
    if inline.null_count:
        raise UnsupportedError("the V4 draft stores manifest DVs inline; a Puffin blob cannot be stored in it")
    none = {520: "replaced_files_count", 521: "replaced_rows_count"}
    pairs = [(f.with_nullable(False), a) for f, a in stats_pairs(cast(pa.StructArray, held))]
    lowest = pc.coalesce(pairs[-1][1], whole(entries["sequence_number"]))  # where null, use the manifest's number
    zero = {i: pa.array(np.zeros(len(entries), np.int64), _int32 if i == 520 else _int64) for i in none}
    extra = [(field(i, name, zero[i].type, required=True), zero[i]) for i, name in none.items()]
    pairs = [*pairs[:3], extra[0], *pairs[3:6], extra[1], (pairs[-1][0], lowest)]
    pairs += [
        (field(522, "dv", pa.binary()), inline.take(at)),
        (field(523, "dv_cardinality", _int64), _taken(manifest_dvs, "record_count", at)),
    ]
    return nested(pairs, len(entries), held.is_null())
