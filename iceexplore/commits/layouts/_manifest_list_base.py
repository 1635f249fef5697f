"""Read the manifest list that a commit builds on; refuse a list that cannot be read completely."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyChunkedArray, build
from iceexplore.arrow import compute as pc
from iceexplore.commits.model._writer import CommitWriter
from iceexplore.errors import Problems, UnsupportedError
from iceexplore.manifests import (
    MANIFEST_STATS,
    ContentType,
    EntryBatch,
    Manifest,
    concat_batches,
    manifest_entry,
    whole,
)

__all__ = ["ListBase", "has_live", "read_base", "readable"]

_ALL_PARTS = frozenset({"entries", "partition", "stats"})


@dataclass(frozen=True)
class ListBase:
    """The manifest list of the state that a commit builds on, and access to the manifests in it.

    Attributes
    ----------
    root
        The manifest list as read; None for a table without a snapshot.
    rows
        The list's rows; counts that are missing but needed in the new list are filled in.
    """

    writer: CommitWriter
    root: Manifest | None
    rows: EntryBatch

    def ordinals(self, content: ContentType, *, live: bool) -> list[int]:
        """Return the row numbers of manifests of a content type; with ``live``, of those that may have live entries."""
        mask = np.asarray(pc.equal(self.rows.entries["content_type"], int(content)))
        return [int(i) for i in np.flatnonzero(mask & has_live(self.rows.entries["manifest_stats"]) if live else mask)]

    def leaves(self, ordinals: Iterable[int]) -> Iterator[tuple[int, Manifest]]:
        """Yield the manifests in these rows of the list, each with its row number."""
        wanted = list(ordinals)
        if self.root is not None and wanted:
            leaves = self.writer.base.reader.leaves(self.root, wanted)
            for ordinal, leaf in zip(wanted, leaves, strict=True):
                yield ordinal, readable(leaf)

    def whole_leaf(self, ordinal: int) -> EntryBatch:
        """Return all entries of one manifest, with partition tuples and statistics.

        ``ordinal`` is the position, in the manifest list, of the row for the manifest.
        """
        if self.root is None:
            raise IndexError(ordinal)
        return EntryBatch.of(readable(self.writer.base.reader.leaf(self.root, ordinal, _ALL_PARTS)))


def readable(manifest: Manifest) -> Manifest:
    """Return the manifest unchanged; raise if it was not read completely, because a commit would lose unread entries.

    Raises
    ------
    IceexploreError
        The manifest could not be read completely.
    """
    strict = Problems(strict=True)
    for item in manifest.problems:
        if item.severity == "error" or item.code == "manifest-salvaged":
            strict.add(replace(item, severity="error"))
    return manifest


def has_live(stats: AnyChunkedArray | pa.StructArray) -> np.ndarray:
    """Return a mask of the manifests that may have live entries, by their ``manifest_stats``."""
    # If a count is unknown, assume that it is not zero (spec, "Manifest Lists").
    added, existing = (pc.fill_null(pc.struct_field(stats, f"{n}_files_count"), 1) for n in ("added", "existing"))
    return np.asarray(pc.greater(pc.add(added, existing), 0))


def read_base(writer: CommitWriter) -> ListBase:
    """Read the manifest list of the state that the commit builds on (``writer.base``).

    Raises
    ------
    UnsupportedError
        The state has a root manifest instead, and a table cannot be downgraded.
    IceexploreError
        The list cannot be read completely.
    """
    root = writer.base.root()
    if root is None:
        return ListBase(writer, None, EntryBatch.empty())
    if root.dialect.has_root_manifest:
        raise UnsupportedError(
            f"{root.location} is a root manifest ({root.dialect}); {writer.options.dialect} needs a manifest list: "
            "a table cannot be downgraded. Simulate from a state before the upgrade."
        )
    readable(root)
    return ListBase(writer, root, _with_counts(writer, root))


def _with_counts(writer: CommitWriter, root: Manifest) -> EntryBatch:
    """Return the rows of a manifest list (``root``), with the counts of files and rows in each manifest.

    A manifest whose row lacks a count is read, and its entries are counted. Counts may be missing only in v1: they are
    optional in a v1 manifest list. Also, a v1 snapshot may have no manifest list but name its manifests in the table
    metadata; ``root`` is then made from these names and has no counts. If ``root`` is a v1 manifest list and the new
    list is also v1, missing counts stay missing.
    """
    rows = EntryBatch(root.entries)
    if root.dialect == "v1" == writer.options.dialect:
        return rows
    stats = whole(rows.entries["manifest_stats"])
    unknown = stats.is_null()
    for child in MANIFEST_STATS:
        unknown = pc.or_(unknown, pc.struct_field(stats, child.name).is_null())
    if not pc.any(unknown).as_py():
        return rows
    made = []
    for ordinal, lacks in enumerate(unknown.to_pylist()):
        row = rows.take([ordinal])
        made.append(_counted(writer, root, row, ordinal) if lacks else row)
    return concat_batches(made)


def _counted(writer: CommitWriter, root: Manifest, row: EntryBatch, ordinal: int) -> EntryBatch:
    stated = build.to_pylist(row.entries)[0]
    leaf = readable(writer.base.reader.leaf(root, ordinal, _ALL_PARTS))
    counted = manifest_entry(
        EntryBatch.of(leaf, ()),
        location=leaf.location,
        length=leaf.length,
        content="data" if stated["content_type"] == ContentType.DATA_MANIFEST else "delete",
        metadata=writer.base.metadata,
        spec_id=stated["partition_spec_id"],
        dialect=writer.options.dialect,
        status=stated["status"],
        snapshot_id=stated["snapshot_id"],
        sequence_number=stated["sequence_number"],
    ).entries
    lowest = stated["manifest_stats"] and stated["manifest_stats"]["min_sequence_number"]
    stats = build.to_pylist(counted["manifest_stats"])[0]
    if lowest is not None:
        stats["min_sequence_number"] = lowest
    return row.with_columns(
        manifest_stats=pa.array([stats], MANIFEST_STATS),
        partition_summaries=pc.coalesce(row.entries["partition_summaries"], counted["partition_summaries"]),
        record_count=counted["record_count"],
        file_size_in_bytes=leaf.length,
    )
