"""Leaf manifests of a manifest list: new ones, and old ones written again without what a commit removes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.commits.layouts._manifest_list_base import ListBase
from iceexplore.commits.model._writer import CommitWriter
from iceexplore.manifests import EntryBatch, Status, live, manifest_entry, whole, write_manifest

__all__ = ["Filtered", "LeafContent", "chunks_by_spec", "filter_leaves", "new_leaves", "write_leaf"]

LeafContent = Literal["data", "delete"]


def new_leaves(writer: CommitWriter, batch: EntryBatch, content: LeafContent) -> list[EntryBatch]:
    """Manifests of a commit's new files, per partition spec: the rows of the list that name them.

    The files are ADDED with null sequence numbers, so that a manifest can be used again when the commit is tried
    again (spec, "Sequence Number Inheritance"); an older data sequence number that a file was given is written.
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
    """Which files these are: a change that is made anew for a retry may add others."""
    named = batch.entries.select(["location", "referenced_file", "record_count", "sequence_number"]).combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, named.schema) as out:
        out.write_table(named)
    return hashlib.sha1(sink.getvalue(), usedforsecurity=False).hexdigest()


def chunks_by_spec(batch: EntryBatch, size: int) -> Iterator[tuple[int, int, EntryBatch]]:
    """The rows of each spec, in chunks of so many: spec id, number of the chunk, rows."""
    specs = whole(batch.entries["partition_spec_id"])
    for spec_id in specs.unique().to_pylist():
        rows = np.flatnonzero(np.asarray(pc.equal(specs, spec_id)))
        for chunk, start in enumerate(range(0, len(rows), size)):
            yield spec_id, chunk, batch.take(pa.array(rows[start : start + size]))


def write_leaf(writer: CommitWriter, key: str, batch: EntryBatch, content: LeafContent, spec_id: int) -> EntryBatch:
    """Write a manifest, once under this key, and make the row of the list that names it."""
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
    """What is left of some rows of a list.

    Attributes
    ----------
    rows
        In the old order: as they were, or naming the manifest that replaces theirs. Manifests without live entries
        are left out, unless this commit removed those.
    removed
        The entries removed, without statistics.
    replaced
        How many manifests were written again.
    """

    rows: list[EntryBatch] = field(default_factory=list)
    removed: list[EntryBatch] = field(default_factory=list)
    replaced: int = 0


def filter_leaves(
    base: ListBase, ordinals: Iterable[int], content: LeafContent, goes: Callable[[pa.Table], np.ndarray]
) -> Filtered:
    """Remove entries, as Java's ``ManifestFilterManager``: only manifests that hold one are written again.

    In those, what stays is EXISTING and what goes is DELETED by this snapshot, with the sequence numbers that they
    inherited; what older snapshots had DELETED is left out.

    Parameters
    ----------
    goes
        Which entries of a leaf go; entries that are not live do not count.
    """
    out, kept = Filtered(), list[int]()
    for ordinal, leaf in base.leaves(ordinals):
        alive = np.asarray(live(leaf.entries))
        mask = goes(leaf.entries) & alive
        if not mask.any():
            kept.append(ordinal)
            continue
        row, removed = _without(base, ordinal, mask, content)
        out.rows += [base.rows.take(kept), row]  # at once: one by one they would cost more than the commit
        kept = []
        out.removed.append(removed)
        out.replaced += 1
    out.rows.append(base.rows.take(kept))
    return out


def _without(base: ListBase, ordinal: int, mask: np.ndarray, content: LeafContent) -> tuple[EntryBatch, EntryBatch]:
    writer = base.writer
    said = base.rows.entries.slice(ordinal, 1).to_pylist()[0]
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
    # what is written depends on nothing else: the row gives what entries inherit
    inherited = [said[n] for n in ("snapshot_id", "sequence_number", "first_row_id", "partition_spec_id")]
    digest = hashlib.sha1(mask.tobytes(), usedforsecurity=False).hexdigest()
    key = f"filtered:{said['location']}:{inherited}:{digest}"
    row = write_leaf(writer, key, batch, content, said["partition_spec_id"])
    return row, EntryBatch(batch.entries.filter(going), {}, _tuples(batch, going))


def _tuples(batch: EntryBatch, mask: pa.BooleanArray) -> pa.StructArray | None:
    return None if batch.partition is None else batch.partition.filter(mask)
