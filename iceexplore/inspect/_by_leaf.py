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

#: Yield the table's rows for one leaf manifest; called with the root and the leaf.
LeafMaker: TypeAlias = Callable[[Manifest, Manifest], Iterable[pa.Table]]

#: Return the number of rows that a `LeafMaker` yields for the same root and leaf.
LeafCount: TypeAlias = Callable[[Manifest, Manifest], int]

#: Used in place of the number of a row in the root: for the file entries in the root itself (V4), and for the whole
#: root.
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
        Called with a state and the table's schema; returns the function that yields the rows of a leaf.
    every
        Read each manifest of every snapshot once, instead of those of the state's snapshot.
    contents
        Content types of the manifests to read.
    parts
        Parts of a manifest that are decoded up front.
    root
        The root has rows of its own: the maker gets the root as the first leaf.
    statistics
        Columns that need the part ``stats``, for a maker that can leave out columns. Empty for a maker that always
        yields every column.
    count
        Returns how many rows the maker yields for a leaf of which only the part ``entries`` is decoded; None if that
        cannot be known from the entries.
    """

    maker: Callable[[TableState, pa.Schema], LeafMaker]
    every: bool = False
    contents: frozenset[int] = ALL
    parts: tuple[str, ...] = ("entries", "partition", "stats")
    root: bool = False
    statistics: frozenset[str] = frozenset()
    count: LeafCount | None = None

    def narrowed(self, schema: pa.Schema, columns: Collection[str]) -> tuple[ByLeaf, pa.Schema]:
        """Return a copy restricted to these columns and the schema for its maker, which may have more columns."""
        if not self.statistics:
            return self, schema
        kept = pa.schema([f for f in schema if f.name in columns])
        parts = self.parts if self.statistics.intersection(columns) else tuple(p for p in self.parts if p != "stats")
        return replace(self, parts=parts), kept

    def build(self, state: TableState, schema: pa.Schema) -> Iterator[pa.Table]:
        """Yield the rows of all its manifests, read in this process."""
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
        """Read the root and the leaf of a place.

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
