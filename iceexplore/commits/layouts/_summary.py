"""A snapshot's summary (spec, "Optional Snapshot Summary Fields"), as Java's ``SnapshotSummary`` makes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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

#: The order in which Java writes them, of partitions' summaries too.
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
    """What a commit says of itself, without ``operation``: files, records and bytes added and removed, and the totals.

    Counts that are 0 are left out. A total is continued from the parent's summary; where that has none, or one that
    is no number, there is none (Java, ``SnapshotProducer.updateTotal``). The table's property
    ``write.summary.partition-limit`` says up to how many changed partitions are summarised one by one.

    Parameters
    ----------
    added, removed
        The DATA, POSITION_DELETE and EQUALITY_DELETE entries that the commit added, and that it removed. Only
        entries and partition tuples count here, statistics may be left out.
    metadata
        Gives the partition specs, and the property.
    parent
        The snapshot on which the commit builds; None for a table's (or branch's) first.
    further
        Entries that go into the summary as they are; they win.
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


def _numbers(column: pa.ChunkedArray | pa.Array) -> np.ndarray:
    return np.asarray(pc.fill_null(column, 0), dtype=np.int64)


def _metrics(batch: EntryBatch, is_new: np.ndarray) -> dict[str, str]:
    entries = batch.entries
    kind = _numbers(entries["content_type"])
    vectors = whole(entries["deletion_vector"])
    is_dv = np.asarray(vectors.is_valid())
    inside = _numbers(pc.struct_field(vectors, "size_in_bytes"))
    # of a DV its own bytes count, not the file that it shares with others (Java: ScanTaskUtil.contentSizeInBytes)
    size = np.where(is_dv, inside, _numbers(entries["file_size_in_bytes"]))
    rows = _numbers(entries["record_count"])
    found: dict[str, int] = {}
    for said, data_said, mine in (("added", "added", is_new), ("removed", "deleted", ~is_new)):
        data = mine & (kind == ContentType.DATA)
        positions = mine & (kind == ContentType.POSITION_DELETE)
        equality = mine & (kind == ContentType.EQUALITY_DELETE)
        found[f"{data_said}-data-files"] = int(data.sum())
        found[f"{data_said}-records"] = int(rows[data].sum())
        found[f"{said}-files-size"] = int(size[data | positions | equality].sum())
        found[f"{said}-delete-files"] = int((positions | equality).sum())
        found[f"{said}-dvs"] = int((positions & is_dv).sum())
        found[f"{said}-position-delete-files"] = int((positions & ~is_dv).sum())
        found[f"{said}-position-deletes"] = int(rows[positions].sum())
        found[f"{said}-equality-delete-files"] = int(equality.sum())
        found[f"{said}-equality-deletes"] = int(rows[equality].sum())
    return {key: str(found[key]) for key in _METRICS if found[key] > 0}


def _partition_groups(batch: EntryBatch) -> np.ndarray:
    """A number per distinct spec and tuple, from 0, for each row."""
    if not len(batch):
        return np.zeros(0, dtype=np.int64)
    columns = [whole(batch.entries["partition_spec_id"]), *_children(batch)]
    codes = [np.asarray(c.dictionary_encode(null_encoding="encode").indices) for c in columns]
    _, groups = np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)
    return np.asarray(groups, dtype=np.int64).reshape(-1)


def _children(batch: EntryBatch) -> Iterator[pa.Array]:
    for child in [] if batch.partition is None else batch.partition.flatten():
        if not pa.types.is_null(child.type):
            yield child


def _by_path(batch: EntryBatch, groups: np.ndarray, metadata: TableMetadata) -> tuple[np.ndarray, list[str]]:
    """Groups by path: tuples of several specs may have the same one."""
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
