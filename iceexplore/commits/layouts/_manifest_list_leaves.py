"""Write the manifests of a manifest list: new ones for new files, and filtered or merged versions of old ones."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.commits.layouts._manifest_list_base import ListBase
from iceexplore.commits.model._writer import CommitWriter
from iceexplore.errors import RuleError
from iceexplore.manifests import (
    ContentType,
    EntryBatch,
    Status,
    concat_batches,
    live,
    manifest_entry,
    whole,
    write_manifest,
)

__all__ = [
    "Filtered",
    "LeafContent",
    "chunks_by_spec",
    "filter_leaves",
    "merge_leaves",
    "new_leaves",
    "write_leaf",
]


@dataclass
class Merged:
    """The new list's rows after a merge of manifests, and how many manifests and entries were merged."""

    rows: list[EntryBatch] = field(default_factory=list)
    replaced: int = 0
    entries: int = 0


def merge_leaves(base: ListBase, wanted: tuple[str, ...] | bool) -> Merged:
    """Merge manifests of the same content (data or deletes) and the same partition spec.

    The new manifests list the live entries, as EXISTING, and each has at most ``leaf_entries`` (a layout option) of
    them. Manifests that are not merged stay in the list, except for those without live entries.

    Parameters
    ----------
    wanted
        Locations of the manifests to merge. ``False`` chooses none. ``True`` chooses, for each content and spec, all
        manifests with DELETED entries, because a merge leaves these entries out. It also chooses the manifests with
        fewer live entries than ``leaf_entries``, if merging all of these manifests reduces their number.

    Raises
    ------
    RuleError
        ``files-exist``: a manifest to merge is not in the manifest list.
    """
    chosen = _worth_it(base) if wanted is True else _named(base, wanted or ())
    groups: dict[tuple[int, int], list[int]] = {}
    listed = base.rows.entries.select(["content_type", "partition_spec_id", "manifest_stats"]).to_pylist()
    for i in chosen:
        groups.setdefault((listed[i]["content_type"], listed[i]["partition_spec_id"]), []).append(i)
    out = Merged(replaced=len(chosen))
    for (content_type, spec_id), ordinals in sorted(groups.items()):
        _merge(base, ordinals, "data" if content_type == ContentType.DATA_MANIFEST else "delete", spec_id, out)
    taken = set(chosen)
    for i in range(len(base.rows)):
        if i not in taken and any(_live_count(listed[i]["manifest_stats"])):
            out.rows.append(base.rows.take([i]))
    return out


def _merge(base: ListBase, ordinals: list[int], content: LeafContent, spec_id: int, out: Merged) -> None:
    size = base.writer.options.leaf_entries
    columns = ["location", "snapshot_id", "sequence_number", "first_row_id"]
    sources = base.rows.entries.select(columns).take(pa.array(ordinals)).to_pylist()
    digest = hashlib.sha1(repr(sources).encode(), usedforsecurity=False).hexdigest()
    waiting = EntryBatch.empty()
    chunk = 0

    def write(batch: EntryBatch) -> None:
        nonlocal chunk
        key = f"merged:{content}:{spec_id}:{size}:{digest}:{chunk}"
        out.rows.append(write_leaf(base.writer, key, batch, content, spec_id))
        out.entries += len(batch)
        chunk += 1

    for ordinal in ordinals:
        stored = base.whole_leaf(ordinal)
        more = stored.filter(live(stored.entries)).with_columns(status=int(Status.EXISTING))
        waiting = concat_batches([waiting, more])
        while len(waiting) >= size:
            write(_rows(waiting, 0, size))
            waiting = _rows(waiting, size, len(waiting))
    if len(waiting):
        write(waiting)


def _rows(batch: EntryBatch, start: int, stop: int) -> EntryBatch:
    return batch.take(pa.array(np.arange(start, stop)))


def _live_count(stats: dict[str, int | None]) -> tuple[int, int]:
    """Return the counts of added and existing entries; an unknown count is taken as 1."""
    added, existing = stats["added_files_count"], stats["existing_files_count"]
    return (1 if added is None else added), (1 if existing is None else existing)


def _named(base: ListBase, wanted: tuple[str, ...] | bool) -> list[int]:
    locations = base.rows.entries["location"].to_pylist()
    names = () if isinstance(wanted, bool) else wanted
    missing = [n for n in names if n not in set(locations)]
    if missing:
        raise RuleError("files-exist", f"not in the manifest list: {', '.join(missing[:5])}; see inspect.manifests()")
    return [i for i, location in enumerate(locations) if location in set(names)]


def _worth_it(base: ListBase) -> list[int]:
    size = base.writer.options.leaf_entries
    listed = base.rows.entries.select(["content_type", "partition_spec_id", "manifest_stats"]).to_pylist()
    groups: dict[tuple[int, int], list[int]] = {}
    for i, row in enumerate(listed):
        small = sum(_live_count(row["manifest_stats"])) < size
        if small or row["manifest_stats"]["deleted_files_count"]:
            groups.setdefault((row["content_type"], row["partition_spec_id"]), []).append(i)
    chosen = []
    for rows in groups.values():
        total = sum(sum(_live_count(listed[i]["manifest_stats"])) for i in rows)
        fewer = -(-total // size) < len(rows)
        chosen += [i for i in rows if fewer or listed[i]["manifest_stats"]["deleted_files_count"]]
    return sorted(chosen)


LeafContent = Literal["data", "delete"]


def new_leaves(writer: CommitWriter, batch: EntryBatch, content: LeafContent) -> list[EntryBatch]:
    """Write the entries of new files to manifests, one or more per spec; return the rows that list these manifests.

    The entries are ADDED with null sequence numbers, so that a retry can reuse the manifest (spec, "Sequence Number
    Inheritance"). If ``batch`` has a data sequence number for a file, as after a compaction, this number is written.
    """
    rows = []
    for spec_id, chunk, part in chunks_by_spec(batch, writer.options.leaf_entries):
        added = part.with_columns(
            status=int(Status.ADDED),
            snapshot_id=writer.snapshot_id,
            file_sequence_number=None,
            first_row_id=None,
            manifest_dv=None,
        )
        key = f"new:{content}:{spec_id}:{chunk}:{_digest(part)}"
        rows.append(write_leaf(writer, key, added, content, spec_id))
    return rows


def _digest(batch: EntryBatch) -> str:
    """Return a digest of the entries, by which a retry recognizes a manifest with these entries as already written."""
    named = batch.entries.select(["location", "referenced_file", "record_count", "sequence_number"]).combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, named.schema) as out:
        out.write_table(named)
    return hashlib.sha1(sink.getvalue(), usedforsecurity=False).hexdigest()


def chunks_by_spec(batch: EntryBatch, size: int) -> Iterator[tuple[int, int, EntryBatch]]:
    """Yield the entries of each partition spec in chunks of at most ``size`` entries.

    Each item consists of the spec id, the chunk's number within the spec, and the chunk's entries.
    """
    specs = whole(batch.entries["partition_spec_id"])
    for spec_id in build.to_pylist(specs.unique()):
        rows = np.flatnonzero(np.asarray(pc.equal(specs, spec_id)))
        for chunk, start in enumerate(range(0, len(rows), size)):
            yield spec_id, chunk, batch.take(pa.array(rows[start : start + size]))


def write_leaf(writer: CommitWriter, key: str, batch: EntryBatch, content: LeafContent, spec_id: int) -> EntryBatch:
    """Write a manifest, unless an earlier attempt of the commit already wrote it under the same ``key``.

    Return the row that lists the manifest in the new manifest list.
    """
    options, metadata = writer.options, writer.base.metadata

    def make() -> tuple[str, int]:
        data = write_manifest(
            batch,
            content=content,
            metadata=metadata,
            spec_id=spec_id,
            dialect=options.dialect,
            manifest_format=options.manifest_format,
            snapshot_id=writer.snapshot_id,
        )
        location = writer.new_location("m0", f".{options.manifest_format}")
        writer.write(location, data, kind="manifest")
        return location, len(data)

    location, length = writer.once(key, make)
    return manifest_entry(
        batch,
        location=location,
        length=length,
        content=content,
        metadata=metadata,
        spec_id=spec_id,
        dialect=options.dialect,
        status=int(Status.ADDED),
        snapshot_id=writer.snapshot_id,
        sequence_number=writer.sequence_number,
    )


@dataclass
class Filtered:
    """The rows of a manifest list after entries were removed from some of its manifests, and the removed entries.

    Attributes
    ----------
    rows
        The rows of all manifests that `filter_leaves` was given, in the old order. The row of a rewritten manifest
        takes the place of the old one. This includes the rows of manifests from which this commit removed the last live
        entry.
    removed
        The removed entries, without statistics.
    replaced
        How many manifests were rewritten.
    """

    rows: list[EntryBatch] = field(default_factory=list)
    removed: list[EntryBatch] = field(default_factory=list)
    replaced: int = 0


def filter_leaves(
    base: ListBase,
    ordinals: Iterable[int],
    content: LeafContent,
    goes: Callable[[pa.Table], np.ndarray],
    *,
    manifests: Collection[str] | None = None,
) -> Filtered:
    """Remove entries from manifests, rewriting only manifests that list any of them (Java: ``ManifestFilterManager``).

    In a rewritten manifest, the remaining entries are EXISTING, and the removed entries are DELETED, with the new
    snapshot's id. All have the sequence numbers that they had, or inherited, in the old manifest. Entries that older
    snapshots DELETED are left out.

    Parameters
    ----------
    ordinals
        The rows of the base's list whose manifests to filter.
    goes
        A function that returns a mask of the entries to remove; the mask is ignored for entries that are not live.
    manifests
        Locations of the manifests to read; all others stay as they are. By default, all are read.
    """
    out, kept = Filtered(), list[int]()
    names = base.rows.entries["location"]
    every = list(ordinals)
    skipped = set() if manifests is None else {i for i in every if names[i].as_py() not in manifests}
    leaves = base.leaves(i for i in every if i not in skipped)
    for ordinal in every:
        if ordinal in skipped:
            kept.append(ordinal)
            continue
        _, leaf = next(leaves)
        alive = np.asarray(live(leaf.entries))
        mask = goes(leaf.entries) & alive
        if not mask.any():
            kept.append(ordinal)
            continue
        row, removed = _without(base, ordinal, mask, content)
        out.rows += [base.rows.take(kept), row]  # rows are taken in batches, because taking them one by one is slow
        kept = []
        out.removed.append(removed)
        out.replaced += 1
    out.rows.append(base.rows.take(kept))
    return out


def _without(base: ListBase, ordinal: int, mask: np.ndarray, content: LeafContent) -> tuple[EntryBatch, EntryBatch]:
    writer = base.writer
    listed = base.rows.entries.slice(ordinal, 1).to_pylist()[0]
    stored = base.whole_leaf(ordinal)
    alive = live(stored.entries)
    gone = mask[np.asarray(alive)]
    batch = stored.filter(alive)
    going = pa.array(gone)
    batch = batch.with_columns(
        ordinal=pa.array(np.arange(len(batch))),
        status=pc.if_else(going, pa.scalar(int(Status.DELETED), pa.int32()), int(Status.EXISTING)).cast(pa.int32()),
        snapshot_id=pc.if_else(going, pa.scalar(writer.snapshot_id, pa.int64()), batch.entries["snapshot_id"]),
    )
    # A retry may reuse the new manifest only if it would have the same content. That depends on the old manifest, on
    # the removed entries, and on these values in the old manifest's row of the list, which entries inherit.
    inherited = [listed[n] for n in ("snapshot_id", "sequence_number", "first_row_id", "partition_spec_id")]
    digest = hashlib.sha1(mask.tobytes(), usedforsecurity=False).hexdigest()
    key = f"filtered:{listed['location']}:{inherited}:{digest}"
    row = write_leaf(writer, key, batch, content, listed["partition_spec_id"])
    return row, EntryBatch(batch.entries.filter(going), {}, _tuples(batch, going))


def _tuples(batch: EntryBatch, mask: pa.BooleanArray) -> pa.StructArray | None:
    return None if batch.partition is None else batch.partition.filter(mask)
