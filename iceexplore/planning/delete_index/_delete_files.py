"""Read the live delete files and deletion vectors of a snapshot as one batch.

If data files are given, manifests whose deletes certainly apply to none of these files are not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyListArray, Strings, build
from iceexplore.arrow import compute as pc
from iceexplore.deletes import FILE_PATH_ID
from iceexplore.formats import PUFFIN
from iceexplore.graph import TableState, live_manifests
from iceexplore.manifests import ContentType, EntryBatch, Manifest, bool_array, concat_batches, live, whole
from iceexplore.metadata import PartitionSpec, Type, decode_values, partition_type
from iceexplore.planning.delete_index._codes import Ints, Mask, ranks
from iceexplore.planning.evaluators._manifest_evaluator import ManifestMetricsSources

__all__ = [
    "DeleteFiles",
    "concerned",
    "gathered",
    "live_deletes",
    "path_bounds",
]


def concerned(state: TableState, root: Manifest, rows: list[int], files: EntryBatch) -> list[int]:
    """Return which manifests may hold a delete that applies to one of the data files, without reading the manifests.

    A manifest is left out for one of these reasons:

    - All data files have higher sequence numbers than the manifest. No delete in it has a higher sequence number than
      the manifest, and a delete does not apply to newer data files.
    - In versions 1 to 3, no data file can be in the same partition as a delete in the manifest. This is so if no data
      file has the manifest's partition spec. It is also so if the manifest's summary of some partition field includes
      no value of the data files with this spec. For example, the summary of ``day`` goes from 1 to 3 May, and all data
      files are of 7 May. If the spec is unpartitioned, the manifest is not left out for this reason, because its
      equality deletes apply to the data files of all specs.
    - In V4, no data file can be in the same partition as a delete in the manifest. A root manifest has no partition
      summaries, but column metrics, which may prove the same: see `_near_by_statistics`.

    Parameters
    ----------
    root
        The manifest list or, in V4, the root manifest.
    rows
        The manifests to check, as row numbers in the root. The result contains those that are not left out.
    files
        The data files.
    """
    if not len(files) or not rows:
        return []
    at = np.array(rows, dtype=np.int64)
    picked = root.entries.take(build.array(at))
    oldest = pc.min(pc.fill_null(files.entries["sequence_number"], 0)).as_py()
    keep = ~bool_array(pc.less(picked["sequence_number"], oldest))
    if not root.dialect.has_root_manifest:
        numbers = np.asarray(pc.fill_null(whole(picked["partition_spec_id"]), -1))
        for number in np.unique(numbers).tolist():
            spec = state.metadata.spec(number)
            if spec is not None and not spec.is_unpartitioned:
                mine = numbers == number
                keep[mine] &= _near(state, picked.filter(pa.array(mine)), spec, files)
    else:
        keep &= _near_by_statistics(state, root, at, files)
    return [int(row) for row in at[keep]]


def _near_by_statistics(state: TableState, root: Manifest, rows: Ints, files: EntryBatch) -> Mask:
    """Return which manifests of a V4 root manifest may hold a delete that applies to one of the data files.

    The root manifest has metrics for each manifest, which give bounds of partition values, such as ``day(ts)``. The
    result is False for a manifest only if all of these conditions hold:

    - For some partition field, the values of all data files are outside the manifest's bounds. So no data file is in
      the same partition as a delete that these bounds cover.
    - All data files have the spec that the root manifest names for the manifest. The manifest may also hold deletes of
      other specs, which the bounds may not cover, but these do not apply to data files of this spec.
    - All specs of the table are partitioned. Otherwise the manifest may hold equality deletes of an unpartitioned spec,
      which apply to data files of all specs.

    A partition field is ignored if its value is null or NaN for one of the data files. In V4, partition values are
    derived from the metrics of a data file, and null may mean that this was not possible.

    Parameters
    ----------
    root
        The root manifest.
    rows
        The row numbers, in ``root``, of the manifests to check. The result has one boolean for each.
    files
        The data files.
    """
    near = np.ones(len(rows), dtype=bool)
    numbers = pc.unique(whole(files.entries["partition_spec_id"])).to_pylist()
    spec = state.metadata.spec(numbers[0]) if len(numbers) == 1 and numbers[0] is not None else None
    if spec is None or files.partition is None or any(s.is_unpartitioned for s in state.metadata.partition_specs):
        return near
    named = whole(root.entries["partition_spec_id"]).take(build.array(rows))
    mine = bool_array(pc.equal(named, spec.spec_id))
    if not mine.any():
        return near
    sources = ManifestMetricsSources(state, root, rows, statistics=False)
    for key, evidence in sources.fields(spec, mine).items():
        index = files.partition.type.get_field_index(key)
        values = None if index < 0 else pc.unique(pc.struct_field(files.partition, [index]))
        if values is None or values.null_count:
            continue
        if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
            continue
        order = ranks(evidence.lower, evidence.upper, values)
        if order is not None:
            near &= ~mine | _between(*order)
    return near


def _between(lowest: Ints, highest: Ints, values: Ints) -> Mask:
    """Return which ranges contain at least one of the values.

    The range ``i`` goes from ``lowest[i]`` to ``highest[i]``, both included. If ``lowest[i]`` is negative, the range
    has no lower limit; if ``highest[i]`` is negative, it has no upper limit. Negative ``values`` are ignored. All three
    arrays contain ranks from one call of `ranks`, in which -1 means null or NaN.
    """
    highest = np.where(highest < 0, np.iinfo(np.int64).max, highest)
    there = np.sort(values[values >= 0])
    found: Mask = np.searchsorted(there, lowest, "left") < np.searchsorted(there, highest, "right")
    return found


def _near(state: TableState, manifests: pa.Table, spec: PartitionSpec, files: EntryBatch) -> Mask:
    """Return which manifests may hold a delete in the same partition as one of the data files.

    The result has one boolean per manifest. It is false if, for some partition field, the partition summary of the
    manifest includes no value of the data files. It is also false if no data file has the spec ``spec``.

    Parameters
    ----------
    manifests
        The manifests to check, as rows of the manifest list; all have the spec ``spec``.
    spec
        A partition spec.
    files
        Data files of any spec. Those with another spec than ``spec`` are ignored.
    """
    near = np.ones(len(manifests), dtype=bool)
    same = pc.fill_null(pc.equal(whole(files.entries["partition_spec_id"]), spec.spec_id), False)
    tuples = None if files.partition is None else files.partition.filter(same)
    if not same.true_count:
        return ~near
    summaries = whole(manifests["partition_summaries"])
    there = bool_array(pc.equal(pc.list_value_length(summaries), len(spec.fields)))
    if tuples is None or not there.any():
        return near
    flat = cast(AnyListArray, summaries.filter(pa.array(there))).flatten()
    for i, (field, typed) in enumerate(zip(spec.fields, partition_type(spec, state.metadata).fields, strict=True)):
        index = tuples.type.get_field_index(str(field.field_id))
        if index < 0:
            continue
        values = pc.unique(pc.struct_field(tuples, [index]))
        one = flat.take(build.array(np.arange(i, len(flat), len(spec.fields))))
        near[there] &= _has_one(cast(pa.StructArray, one), typed.type, values)
    return near


def _has_one(summary: pa.StructArray, kind: Type, values: AnyArray) -> Mask:
    """Return, for each partition summary, whether it may include at least one of the values.

    The result is false only if the values are certainly not included, because deleted rows would reappear if a delete
    manifest were skipped wrongly. So a missing bound counts as no limit. (The spec takes it to mean that all values are
    null or NaN, but the writer may have left it out for another reason.) If a bound cannot be decoded, or if the bounds
    are in the wrong order, the result is true.

    Parameters
    ----------
    summary
        The summaries of one partition field, one per manifest.
    kind
        The type of the partition field.
    values
        Values of the partition field. If they contain null, a summary with ``contains_null`` includes it; for NaN,
        ``contains_nan`` is used in the same way. A missing flag counts as true.
    """
    low, low_damaged = decode_values(kind, pc.struct_field(summary, "lower_bound"))
    high, high_damaged = decode_values(kind, pc.struct_field(summary, "upper_bound"))
    order = ranks(low, high, values)
    if order is None:
        return np.ones(len(summary), dtype=bool)
    lowest, highest, there = order
    turned = (highest >= 0) & (lowest > highest)  # bounds in the wrong order prove nothing, so the manifest is kept
    found = _between(lowest, highest, there)
    found |= bool_array(low_damaged) | bool_array(high_damaged) | turned
    if values.null_count:
        found |= bool_array(pc.fill_null(pc.struct_field(summary, "contains_null"), True))
    if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
        found |= bool_array(pc.fill_null(pc.struct_field(summary, "contains_nan"), True))
    return found


_DELETES = pa.array([int(ContentType.POSITION_DELETE), int(ContentType.EQUALITY_DELETE)], pa.int32())


@dataclass(frozen=True, eq=False)
class DeleteFiles:
    """Live delete files and deletion vectors, one row each.

    Attributes
    ----------
    batch
        The manifest entries and partition tuples of the deletes. Column metrics are included for equality columns, and
        for the column ``file_path`` of position delete files.
    vector, position, equality
        Masks of the deletion vectors, of the position delete files and of the equality delete files. A deletion vector
        is an entry with the content type POSITION_DELETE that has a value in the field ``deletion_vector``, or whose
        file format is Puffin.
    sequence
        Data sequence numbers; null counts as 0.
    referenced
        Location of the data file to which all positions in a deletion vector or position delete file belong. It is the
        value of the entry's field 143, ``referenced_data_file`` (the column ``referenced_file`` of `batch`). If that is
        missing or empty, it is the lower bound of ``file_path``, provided that the upper bound is equal. It is null if
        neither is known, and for equality deletes.
    by_bounds
        True where `referenced` was read from the bounds of ``file_path``.
    skipped
        Number of manifests that were not read, because none of their deletes can apply to the data files for which the
        deletes were requested.
    """

    batch: EntryBatch
    vector: Mask
    position: Mask
    equality: Mask
    sequence: Ints
    referenced: AnyArray
    by_bounds: Mask
    skipped: int = 0

    def __len__(self) -> int:
        return len(self.batch)


def live_deletes(
    state: TableState,
    *,
    manifests: Iterable[int] | None = None,
    files: EntryBatch | None = None,
    loaded: Mapping[int, Manifest] = MappingProxyType({}),
) -> DeleteFiles:
    """Read the live delete files and deletion vectors of a state's snapshot.

    Manifests are listed in the snapshot's root: its manifest list or, in V4, its root manifest. A root manifest may
    also hold deletes itself. These are always included in the result.

    Parameters
    ----------
    manifests
        Row numbers, in the root, of the manifests to read; by default all that may hold deletes. These are the delete
        manifests and, in V4, also the data manifests, because V4 stores deletion vectors on the entries of data files.
    files
        Data files. A manifest is skipped if its deletes certainly apply to none of these files: see `concerned`. If
        ``files`` is None, no manifest is skipped.
    loaded
        Manifests that have already been read, by row number in the root. They are not read again.
    """
    root = state.root()
    if root is None:
        return gathered([], 0)
    if manifests is None:
        kinds = {int(ContentType.DELETE_MANIFEST)}
        if root.dialect.deletion_vectors_on_entries:
            kinds.add(int(ContentType.DATA_MANIFEST))
        rows = live_manifests(root, kinds)
    else:
        rows = [int(row) for row in manifests]
    kept = rows if files is None else concerned(state, root, rows, files)
    parts = {"entries", "partition"} | (set() if state.metadata.has_deletion_vectors else {"stats"})
    direct = state.reader.direct(root)
    unread = [row for row in kept if row not in loaded]
    leaves = state.reader.leaves(root, unread, parts=parts, columns={FILE_PATH_ID}) if unread else ()
    there = [loaded[row] for row in kept if row in loaded]
    found = [_of_leaf(leaf) for leaf in chain([] if direct is None else [direct], there, leaves)]
    return gathered([b for b in found if b is not None], len(rows) - len(kept))


def _of_leaf(leaf: Manifest) -> EntryBatch | None:
    """Return the live delete files and deletion vectors of one manifest; None if there are none.

    The result includes the column metrics that show which data files the deletes can match: the metrics of all equality
    columns and, if ``referenced_file`` is null for a position delete file, the metrics of ``file_path``.
    """
    entries = leaf.entries
    mask = bool_array(pc.is_in(entries["content_type"], _DELETES)) & bool_array(live(entries))
    if not mask.any():
        return None
    mine = entries.filter(pa.array(mask))
    by_value = pc.equal(mine["content_type"], int(ContentType.EQUALITY_DELETE))
    ids = set(build.to_pylist(pc.unique(pc.list_flatten(mine["equality_ids"].filter(by_value))).drop_null()))
    by_position = bool_array(pc.invert(by_value)) & ~_is_vector(mine)
    if (by_position & bool_array(mine["referenced_file"].is_null())).any():
        ids.add(FILE_PATH_ID)
    batch = EntryBatch.of(leaf, sorted(ids))
    return batch if mask.all() else batch.filter(pa.array(mask))


def _is_vector(entries: pa.Table) -> Mask:
    """Return which entries are deletion vectors.

    These are entries with the content type POSITION_DELETE that have a value in the field ``deletion_vector``, or whose
    file format is Puffin.
    """
    place = whole(entries["deletion_vector"])
    puffin = bool_array(pc.equal(entries["file_format"], PUFFIN.name))
    by_position = bool_array(pc.equal(entries["content_type"], int(ContentType.POSITION_DELETE)))
    vector: Mask = by_position & (bool_array(place.is_valid()) | puffin)
    return vector


def gathered(batches: list[EntryBatch], skipped: int = 0) -> DeleteFiles:
    """Concatenate batches of deletes, and find out the kind and the referenced data file of each delete.

    ``skipped`` is the number of manifests that were not read: see `DeleteFiles`.
    """
    batch = concat_batches(batches)
    entries = batch.entries
    equality = bool_array(pc.equal(entries["content_type"], int(ContentType.EQUALITY_DELETE)))
    vector = _is_vector(entries)
    given = whole(entries["referenced_file"])
    given = pc.if_else(pc.equal(given, ""), pa.scalar(None, pa.string()), given)
    named = pc.coalesce(given, _one_path(batch))
    by_bounds = bool_array(given.is_null()) & bool_array(named.is_valid())
    return DeleteFiles(
        batch,
        vector,
        ~vector & ~equality,
        equality,
        np.asarray(pc.fill_null(whole(entries["sequence_number"]), 0)),
        pc.if_else(pa.array(equality), pa.scalar(None, pa.string()), named),
        by_bounds & ~equality,
        skipped,
    )


def _one_path(batch: EntryBatch) -> Strings:
    """Return, for each entry, the bound of ``file_path`` if its lower and upper bound are equal; otherwise null.

    If the bounds of a position delete file are equal, and are not truncated, all its rows belong to the one data file
    at this location (Java: ``ContentFileUtil.referencedDataFile``). This function does not check whether the bounds may
    be truncated: `DeleteIndex.of_partition` deals with that case.
    """
    low, high = path_bounds(batch)
    return pc.if_else(pc.fill_null(pc.equal(low, high), False), low, pa.scalar(None, pa.string()))


def path_bounds(batch: EntryBatch) -> tuple[Strings, Strings]:
    """Return the lower and the upper bounds of the column ``file_path`` of position delete files, as two arrays.

    Each array has one location per delete in ``batch``; null where the bound is missing or is not UTF-8.
    """
    stats = batch.stats.get(FILE_PATH_ID)
    if stats is None:
        return pa.nulls(len(batch), pa.string()), pa.nulls(len(batch), pa.string())
    low, high = (_text(pc.struct_field(stats, name)) for name in ("lower", "upper"))
    return low, high


def _text(values: AnyArray) -> Strings:
    """Convert bounds to text; null where they are not UTF-8."""
    try:
        return values.cast(pa.binary()).cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # at least one bound is not UTF-8: decode each by itself
        return pa.array([_decoded(v) for v in values.to_pylist()], pa.string())


def _decoded(value: object) -> str | None:
    try:
        return value.decode() if isinstance(value, bytes) else None
    except UnicodeDecodeError:
        return None
