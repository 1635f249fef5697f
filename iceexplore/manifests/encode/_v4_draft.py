"""Manifests of the V4 draft (TrackedFile): one row has a data file and its deletion vector, or a manifest and its DV.

Iceberg main: ``TrackedFile``, ``Tracking``, ``DeletionVector``, ``ManifestInfo``. Manifest DVs are written as the draft
of September 2026 specifies, as Mumbling bitmaps. Their header has the cardinality, so field 523 is not written
(apache/iceberg#18138). Other encodings that earlier commits left are converted.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyListArray, build
from iceexplore.arrow import compute as pc
from iceexplore.deletes import encode_mumbling
from iceexplore.errors import OptionError, UnsupportedError
from iceexplore.manifests._batch import EntryBatch
from iceexplore.manifests._manifest_dv import decode_manifest_dv, manifest_dv_form
from iceexplore.manifests.encode._checks import required, statuses
from iceexplore.manifests.encode._content_stats import content_stats
from iceexplore.manifests.encode._fields import Pair, field, list_of, nested, retyped, table_of
from iceexplore.manifests.encode._v4_proposal import stats_pairs, tuple_pair
from iceexplore.manifests.model._arrow import offsets_of, whole
from iceexplore.manifests.model._content_entry import COLUMN_FILE, ContentType, Status, live
from iceexplore.manifests.model._field_ids import COLUMN_FILE_NAMES
from iceexplore.manifests.model._locations import relative
from iceexplore.manifests.model._table_context import TableTypes
from iceexplore.metadata import TableMetadata

__all__ = ["draft_table"]

_int32, _int64 = pa.int32(), pa.int64()
_MANIFESTS = pa.array([int(ContentType.DATA_MANIFEST), int(ContentType.DELETE_MANIFEST)], _int32)
#: The format version (field 157) of files that are not known to have an older one.
_FORMAT_VERSION = 4


def draft_table(
    batch: EntryBatch, *, metadata: TableMetadata, snapshot_id: int | None, relative_to: str | None = None
) -> pa.Table:
    """Return the records of a manifest.

    A deletion vector is written to its data file's row, a manifest DV to its manifest's row. Live vectors go to live
    rows, which become MODIFIED if the file or manifest existed before and the vector did not. Vectors that are not live
    go to rows that are not live; if there is no such row, they are not written, as the draft has no place for them.

    Parameters
    ----------
    relative_to
        The table's location: locations below it are written relative to it. With None, all are written unchanged.

    Raises
    ------
    UnsupportedError
        A live vector whose file or manifest is not in the batch, or a manifest DV that is not inline.
    OptionError
        Two live vectors of one file or manifest, a manifest DV with a position of 2,097,152 or above, or a required
        value that is null.
    """
    kinds = whole(batch.entries["content_type"])
    is_vector = pc.equal(kinds, int(ContentType.POSITION_DELETE))
    is_manifest_dv = pc.equal(kinds, int(ContentType.MANIFEST_DV))
    vectors = batch.entries.filter(is_vector)
    manifest_dvs = batch.entries.filter(is_manifest_dv)
    batch = batch.filter(pc.invert(pc.or_(is_vector, is_manifest_dv)))
    if snapshot_id is not None:
        batch = batch.with_columns(snapshot_id=pc.fill_null(batch.entries["snapshot_id"], snapshot_id))
    entries = batch.entries
    kinds = whole(entries["content_type"])
    vector_at = _places(entries, pc.equal(kinds, int(ContentType.DATA)), vectors, "data file")
    dv_at = _places(entries, pc.is_in(kinds, _MANIFESTS), manifest_dvs, "manifest")
    tracking = _tracking(entries, vectors, vector_at, manifest_dvs, dv_at)
    attached = _attached(vectors, vector_at, relative_to)
    info = _manifest_info(entries, manifest_dvs, dv_at)
    pairs: list[Pair | None] = [
        retyped(field(147, "tracking", tracking.type, required=True), tracking),
        (field(134, "content_type", _int32, required=True), kinds),
        (
            field(157, "format_version", _int32, required=True),
            pc.fill_null(whole(entries["format_version"]), _FORMAT_VERSION),
        ),
        (field(100, "location", pa.string(), required=True), relative(required(entries, "location"), relative_to)),
        (field(101, "file_format", pa.string(), required=True), required(entries, "file_format")),
        (field(103, "record_count", _int64, required=True), required(entries, "record_count")),
        (field(104, "file_size_in_bytes", _int64, required=True), required(entries, "file_size_in_bytes")),
        (field(141, "spec_id", _int32), _spec_ids(entries, metadata)),
        tuple_pair(batch, metadata),
        content_stats(batch, metadata, "tuple", field_id=146, draft=True),
        (field(140, "sort_order_id", _int32), whole(entries["sort_order_id"])),
        None if attached is None else retyped(field(148, "deletion_vector", attached.type), attached),
        None if info is None else retyped(field(150, "manifest_info", info.type), info),
        (field(131, "key_metadata", pa.binary()), whole(entries["key_metadata"])),
        _list(entries, 132, "split_offsets", 133, _int64),
        _list(entries, 135, "equality_ids", 136, _int32),
        _column_files(entries, relative_to),
    ]
    return table_of(pair for pair in pairs if pair is not None)


def _spec_ids(entries: pa.Table, metadata: TableMetadata) -> AnyArray:
    """Return field 141, the spec ids: null for the spec without fields, which readers assume where the id is null."""
    held, without = whole(entries["partition_spec_id"]), TableTypes.of(metadata).unpartitioned
    found = None if without is None else metadata.spec(without)
    if found is None or found.fields:
        return held
    return pc.if_else(pc.equal(held, found.spec_id), pa.scalar(None, _int32), held)


def _column_files(entries: pa.Table, relative_to: str | None) -> Pair | None:
    """Return field 158, the column files of data files; None if there are none."""
    given = cast(AnyListArray, whole(entries["column_files"]))
    if given.null_count == len(given):
        return None
    items = cast(pa.StructArray, given.values)
    values = {f.name: pc.struct_field(items, [i]) for i, f in enumerate(COLUMN_FILE)}
    values["location"] = relative(values["location"], relative_to)
    lists = {"field_ids": list_of(163, _int32), "split_offsets": list_of(169, _int64)}
    pairs: list[Pair] = []
    for name, number in COLUMN_FILE_NAMES.items():
        array = values[name]
        kind = lists.get(name, array.type)
        needed = name not in ("key_metadata", "split_offsets")
        pairs.append((field(number, name, kind, required=needed), array if array.type == kind else array.cast(kind)))
    made = nested(pairs, len(items))
    element = field(159, "element", made.type, required=True)
    kind = pa.list_(element)
    made_list = build.list_array(offsets_of(given), made).cast(kind)
    return field(158, "column_files", kind), made_list


def _list(entries: pa.Table, field_id: int, name: str, element_id: int, kind: pa.DataType) -> Pair:
    made = list_of(element_id, kind)
    return field(field_id, name, made), whole(entries[name]).cast(made)


def _places(entries: pa.Table, wanted: pa.BooleanArray, vectors: pa.Table, what: str) -> AnyArray:
    """Return, for each row, the position of its vector in ``vectors``; null if it has none."""
    alive = live(vectors)
    referenced = whole(vectors["referenced_file"].filter(alive))
    if len(pc.unique(referenced)) < len(referenced):
        counts = pc.value_counts(referenced)
        twice = next(c["values"].as_py() for c in counts if c["counts"].as_py() > 1)
        raise OptionError(f"two live deletion vectors of {what} {twice}: a row of the V4 draft can have only one")
    files = pc.if_else(wanted, whole(entries["location"]), pa.scalar(None, pa.string()))
    standing = live(entries)
    lost = pc.invert(pc.is_in(referenced, files.filter(standing).drop_null()))
    if pc.any(lost).as_py():
        name = referenced[pc.index(lost, True).as_py()].as_py()
        raise UnsupportedError(f"the V4 draft stores a deletion vector with its {what}, but {name} is not in the batch")
    return pc.index_in(_keyed(files, standing), _keyed(whole(vectors["referenced_file"]), alive), skip_nulls=True)


def _keyed(names: AnyArray, alive: pa.BooleanArray) -> AnyArray:
    """Prefix each name with a sign for live or not: a REPLACED and a MODIFIED row may have the same location."""
    return pc.binary_join_element_wise(pc.if_else(alive, pa.scalar("+"), pa.scalar("-")), names, "")


def _taken(vectors: pa.Table, name: str, at: AnyArray) -> AnyArray:
    return whole(vectors[name]).take(at)


def _tracking(
    entries: pa.Table, vectors: pa.Table, at: AnyArray, manifest_dvs: pa.Table, dv_at: AnyArray
) -> pa.StructArray:
    status = statuses(entries, draft=True)
    fresh = [
        pc.fill_null(pc.equal(_taken(held, "status", places), int(Status.ADDED)), False)
        for held, places in ((vectors, at), (manifest_dvs, dv_at))
    ]
    changed = pc.and_(pc.equal(status, int(Status.EXISTING)), pc.or_(*fresh))
    since = pc.coalesce(_taken(vectors, "snapshot_id", at), _taken(manifest_dvs, "snapshot_id", dv_at))
    pairs: list[Pair] = [
        (
            field(0, "status", _int32, required=True),
            pc.if_else(changed, pa.scalar(int(Status.MODIFIED), _int32), status),
        ),
        (field(1, "snapshot_id", _int64), whole(entries["snapshot_id"])),
        (field(3, "sequence_number", _int64), whole(entries["sequence_number"])),
        (field(4, "file_sequence_number", _int64), whole(entries["file_sequence_number"])),
        (field(5, "dv_snapshot_id", _int64), since),
        (field(142, "first_row_id", _int64), whole(entries["first_row_id"])),
        (field(6, "deleted_positions", pa.binary()), whole(entries["deleted_positions"])),
        (field(7, "replaced_positions", pa.binary()), whole(entries["replaced_positions"])),
        (field(160, "latest_column_file_snapshot_id", _int64), whole(entries["column_files_snapshot_id"])),
    ]
    if pairs[-1][1].null_count == len(entries):
        pairs.pop()  # no column files
    return nested(pairs, len(entries))


def _attached(vectors: pa.Table, at: AnyArray, relative_to: str | None) -> pa.StructArray | None:
    """Return field 148, the deletion vectors of data files; None if there are none."""
    if at.null_count == len(at):
        return None
    held = whole(vectors["deletion_vector"])
    pairs: list[Pair] = [
        (field(155, "location", pa.string(), required=True), relative(_taken(vectors, "location", at), relative_to)),
        (field(144, "offset", _int64, required=True), pc.struct_field(held, "offset").take(at)),
        (field(145, "size_in_bytes", _int64, required=True), pc.struct_field(held, "size_in_bytes").take(at)),
        (field(156, "cardinality", _int64, required=True), _taken(vectors, "record_count", at)),
        (field(149, "key_metadata", pa.binary()), _taken(vectors, "key_metadata", at)),
    ]
    return nested(pairs, len(at), at.is_null())


def _manifest_info(entries: pa.Table, manifest_dvs: pa.Table, at: AnyArray) -> pa.StructArray | None:
    """Return field 150, the counts of manifests; None if there are none.

    Fields 520 and 521 are 0, because no entry is REPLACED.
    """
    held = whole(entries["manifest_stats"])
    if held.null_count == len(entries):
        return None
    inline = pc.struct_field(whole(manifest_dvs["deletion_vector"]), "inline_content").take(at)
    if inline.null_count > at.null_count:
        raise UnsupportedError("the V4 draft stores manifest DVs inline; a Puffin blob cannot be stored in it")
    none = {520: "replaced_files_count", 521: "replaced_rows_count"}
    pairs = [(f.with_nullable(False), a) for f, a in stats_pairs(cast(pa.StructArray, held))]
    lowest = pc.coalesce(pairs[-1][1], whole(entries["sequence_number"]))  # the manifest's own number replaces null
    zero = {i: pa.array(np.zeros(len(entries), np.int64), _int32 if i == 520 else _int64) for i in none}
    extra = [(field(i, name, zero[i].type, required=True), zero[i]) for i, name in none.items()]
    pairs = [*pairs[:3], extra[0], *pairs[3:6], extra[1], (pairs[-1][0], lowest)]
    pairs.append((field(522, "dv", pa.binary()), _as_mumbling(inline)))
    return nested(pairs, len(entries), held.is_null())


def _as_mumbling(bitmaps: AnyArray) -> AnyArray:
    """Return manifest DVs as Mumbling bitmaps; those that already have this encoding are not changed."""
    made = [
        None
        if data is None
        else data
        if manifest_dv_form(data) == "Mumbling"
        else encode_mumbling(decode_manifest_dv(data))
        for data in build.to_pylist(bitmaps)
    ]
    return pa.array(made, pa.binary())
