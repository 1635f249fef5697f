"""Metadata tables that are built one manifest at a time, in local threads or on remote workers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from iceexplore.errors import FormatError
from iceexplore.graph import TableState
from iceexplore.inspect._source import ALL, reachable_leaves, reachable_rows, snapshot_leaves, snapshot_rows
from iceexplore.manifests import Manifest, whole
from iceexplore.metadata import Snapshot

__all__ = ["ByLeaf", "DIRECT", "LeafCount", "LeafMaker", "LeafPlace", "ROOT"]

#: A function that yields the table's rows for one leaf manifest, given the root and the leaf.
LeafMaker: TypeAlias = Callable[[Manifest, Manifest], Iterable[pa.Table]]

#: A function that returns the number of rows that a `LeafMaker` yields for the same root and leaf.
LeafCount: TypeAlias = Callable[[Manifest, Manifest], int]

#: Special row numbers: the root's own file entries (V4), which are read like a leaf, and the whole root.
DIRECT, ROOT = -1, -2


@dataclass(frozen=True)
class LeafPlace:
    """A manifest to read: its row in the root (or `DIRECT`, `ROOT`) and its size in bytes, 0 if unknown."""

    snapshot: Snapshot
    row: int
    size: int


@dataclass(frozen=True)
class ByLeaf:
    """A metadata table whose rows come from one manifest at a time.

    Attributes
    ----------
    maker
        A function that takes a state and the table's schema, and returns the `LeafMaker` that yields a leaf's rows.
    every
        True if the table reads the manifests of every snapshot, each once, not only those of the state's snapshot.
    contents
        Content types of the manifests to read.
    parts
        Parts of a manifest that are decoded up front.
    root
        True if the table has rows for the root itself: the root is then passed as the first leaf.
    statistics
        The columns that need the part ``stats``, if the maker can leave out columns; empty if it always yields every
        column.
    count
        A function that counts the rows that the maker yields for a leaf, decoding only its part ``entries``; None if
        they cannot be counted from the entries.
    """

    maker: Callable[[TableState, pa.Schema], LeafMaker]
    every: bool = False
    contents: frozenset[int] = ALL
    parts: tuple[str, ...] = ("entries", "partition", "stats")
    root: bool = False
    statistics: frozenset[str] = frozenset()
    count: LeafCount | None = None

    def narrowed(self, schema: pa.Schema, columns: Collection[str]) -> tuple[ByLeaf, pa.Schema]:
        """Return a copy that decodes only what these columns need, and the schema for its maker.

        If the maker cannot leave out columns, both are unchanged.
        """
        if not self.statistics:
            return self, schema
        kept = pa.schema([f for f in schema if f.name in columns])
        parts = self.parts if self.statistics.intersection(columns) else tuple(p for p in self.parts if p != "stats")
        return replace(self, parts=parts), kept

    def build(self, state: TableState, schema: pa.Schema) -> Iterator[pa.Table]:
        """Yield the table's rows, manifest by manifest, read in this process."""
        make = self.maker(state, schema)
        for above, leaf in self.leaves(state, self.parts):
            yield from make(above, leaf)

    def leaves(self, state: TableState, parts: Collection[str]) -> Iterator[tuple[Manifest, Manifest]]:
        """Yield the manifests to read, each with its root; a root with rows of its own comes first."""
        root = state.root() if self.root else None
        if root is not None:
            yield root, root
        yield from (reachable_leaves if self.every else snapshot_leaves)(state, self.contents, parts)

    def places(self, state: TableState) -> list[LeafPlace]:
        """Return the manifests to read, in order. Reads roots only."""
        found = []
        if self.root and state.snapshot is not None and state.root() is not None:
            found.append(LeafPlace(state.snapshot, ROOT, 0))
        for snapshot, root, direct, rows in (reachable_rows if self.every else snapshot_rows)(state, self.contents):
            if direct:
                found.append(LeafPlace(snapshot, DIRECT, 0))
            sizes = np.asarray(whole(root.entries.column("file_size_in_bytes")).fill_null(0))
            found += [LeafPlace(snapshot, row, int(sizes[row])) for row in rows]
        return found

    def read(self, state: TableState, snapshot: Snapshot, row: int) -> tuple[Manifest, Manifest]:
        """Read the root and the leaf that a `LeafPlace` refers to.

        Raises
        ------
        FormatError
            The root has changed since the places were listed.
        """
        root = state.root(snapshot)
        if root is None or row >= len(root):
            raise FormatError(f"the root has no row {row}", location=snapshot.root_location)
        if row == ROOT:
            return root, root
        leaf = state.reader.direct(root) if row == DIRECT else state.reader.leaf(root, row, self.parts)
        if leaf is None:
            raise FormatError("the root itself holds no files", location=root.location)
        return root, leaf
