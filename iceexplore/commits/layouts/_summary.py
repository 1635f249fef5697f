"""Build a snapshot's summary (spec, "Optional Snapshot Summary Fields") as Java's ``SnapshotSummary`` does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyColumn
from iceexplore.arrow import compute as pc
from iceexplore.manifests import ContentType, EntryBatch, concat_batches, whole
from iceexplore.metadata import Snapshot, TableMetadata
from iceexplore.writing import partition_path

__all__ = ["summary_of"]

_TOTALS = (
    ("total-records", "added-records", "deleted-records"),
    ("total-files-size", "added-files-size", "removed-files-size"),
    ("total-data-files", "added-data-files", "deleted-data-files"),
    ("total-delete-files", "added-delete-files", "removed-delete-files"),
    ("total-position-deletes", "added-position-deletes", "removed-position-deletes"),
    ("total-equality-deletes", "added-equality-deletes", "removed-equality-deletes"),
)

#: The keys of the counts, in the order in which Java writes them. The summary of the whole commit and the summary of
#: each changed partition have the same keys.
_METRICS = (
    "added-data-files",
    "deleted-data-files",
    "added-equality-delete-files",
    "removed-equality-delete-files",
    "added-position-delete-files",
    "removed-position-delete-files",
    "added-delete-files",
    "removed-delete-files",
    "added-dvs",
    "removed-dvs",
    "added-records",
    "deleted-records",
    "added-files-size",
    "removed-files-size",
    "added-position-deletes",
    "removed-position-deletes",
    "added-equality-deletes",
    "removed-equality-deletes",
)

_LONG = range(1 << 63)


def summary_of(
    *,
    added: EntryBatch,
    removed: EntryBatch,
    metadata: TableMetadata,
    parent: Snapshot | None,
    further: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return a commit's summary without ``operation``: files, records and bytes added and removed, and the totals.

    Counts of 0 are left out, except ``changed-partition-count``. A total is computed from the total in the parent's
    summary, and left out if that is missing or not a number (Java, ``SnapshotProducer.updateTotal``). The summary has
    an entry for each changed partition (``partitions.<path>``) if the number of changed partitions is at most the table
    property ``write.summary.partition-limit``, by default 0.

    Parameters
    ----------
    added, removed
        The DATA, POSITION_DELETE and EQUALITY_DELETE entries that the commit added and removed, with their partition
        tuples. Column statistics are not used.
    metadata
        The table's metadata, for its partition specs and properties.
    parent
        The snapshot that the commit builds on; None for a table's (or branch's) first snapshot.
    further
        Additional entries of the summary, which override the computed ones.
    """
    limit = _limit(metadata.properties.get("write.summary.partition-limit"))
    both = concat_batches([_bare(added), _bare(removed)])
    is_new = np.arange(len(both)) < len(added)
    out = _metrics(both, is_new)
    groups = _partition_groups(both)
    count = int(groups.max()) + 1 if len(groups) else 0
    specs = both.entries["partition_spec_id"]
    if count and (count <= limit or len(specs.unique()) > 1):
        groups, paths = _by_path(both, groups, metadata)
        count = len(paths)
        if count <= limit:
            out["partition-summaries-included"] = "true"
            for group, path in enumerate(paths):
                if path:
                    mask = groups == group
                    metrics = _metrics(both.filter(pa.array(mask)), is_new[mask])
                    out[f"partitions.{path}"] = ",".join(f"{k}={v}" for k, v in metrics.items())
    out["changed-partition-count"] = str(count)
    out |= _totals(out, None if parent is None else parent.summary or {})
    return out | dict(further or {})


def _limit(text: str | None) -> int:
    return int(text) if text is not None and text.isascii() and text.isdecimal() and len(text) < 10 else 0


def _bare(batch: EntryBatch) -> EntryBatch:
    return EntryBatch(batch.entries, {}, batch.partition)


def _numbers(column: AnyColumn) -> np.ndarray:
    return np.asarray(pc.fill_null(column, 0), dtype=np.int64)


def _metrics(batch: EntryBatch, is_new: np.ndarray) -> dict[str, str]:
    entries = batch.entries
    kind = _numbers(entries["content_type"])
    vectors = whole(entries["deletion_vector"])
    is_dv = np.asarray(vectors.is_valid())
    inside = _numbers(pc.struct_field(vectors, "size_in_bytes"))
    # For a DV, count only the bytes of its blob, not of the whole Puffin file (Java: ScanTaskUtil.contentSizeInBytes).
    size = np.where(is_dv, inside, _numbers(entries["file_size_in_bytes"]))
    rows = _numbers(entries["record_count"])
    found: dict[str, int] = {}
    for prefix, data_prefix, mine in (("added", "added", is_new), ("removed", "deleted", ~is_new)):
        data = mine & (kind == ContentType.DATA)
        positions = mine & (kind == ContentType.POSITION_DELETE)
        equality = mine & (kind == ContentType.EQUALITY_DELETE)
        found[f"{data_prefix}-data-files"] = int(data.sum())
        found[f"{data_prefix}-records"] = int(rows[data].sum())
        found[f"{prefix}-files-size"] = int(size[data | positions | equality].sum())
        found[f"{prefix}-delete-files"] = int((positions | equality).sum())
        found[f"{prefix}-dvs"] = int((positions & is_dv).sum())
        found[f"{prefix}-position-delete-files"] = int((positions & ~is_dv).sum())
        found[f"{prefix}-position-deletes"] = int(rows[positions].sum())
        found[f"{prefix}-equality-delete-files"] = int(equality.sum())
        found[f"{prefix}-equality-deletes"] = int(rows[equality].sum())
    return {key: str(found[key]) for key in _METRICS if found[key] > 0}


def _partition_groups(batch: EntryBatch) -> np.ndarray:
    """Return a group number for each row, from 0: rows with the same spec and partition tuple have the same number."""
    if not len(batch):
        return np.zeros(0, dtype=np.int64)
    columns = [whole(batch.entries["partition_spec_id"]), *_children(batch)]
    codes = [np.asarray(c.dictionary_encode(null_encoding="encode").indices) for c in columns]
    _, groups = np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)
    return np.asarray(groups, dtype=np.int64).reshape(-1)


def _children(batch: EntryBatch) -> Iterator[AnyArray]:
    for child in [] if batch.partition is None else batch.partition.flatten():
        if not pa.types.is_null(child.type):
            yield child


def _by_path(batch: EntryBatch, groups: np.ndarray, metadata: TableMetadata) -> tuple[np.ndarray, list[str]]:
    """Merge the groups of rows from `_partition_groups` whose partitions have the same path.

    The path of a partition is its values as text, such as ``day=2024-01-01/kind=a``. A table with several specs can
    have partitions of different specs with the same path.

    Parameters
    ----------
    groups
        The group number of each row.

    Returns
    -------
    numpy.ndarray, list[str]
        The new group number of each row; and the path of each new group, in the order of their numbers. The path is
        empty for an unpartitioned spec.
    """
    _, first = np.unique(groups, return_index=True)
    paths = [partition_path(batch, int(row), metadata) for row in first]
    distinct = list(dict.fromkeys(paths))
    place = {path: i for i, path in enumerate(distinct)}
    return np.array([place[p] for p in paths], dtype=np.int64)[groups], distinct


def _totals(found: Mapping[str, str], before: Mapping[str, str] | None) -> dict[str, str]:
    out = {}
    for total, plus, minus in _TOTALS:
        text = "0" if before is None else before.get(total, "")
        if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) in _LONG):
            continue
        value = int(text) + int(found.get(plus, 0)) - int(found.get(minus, 0))
        if value >= 0:
            out[total] = str(value)
    return out
