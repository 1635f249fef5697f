"""Metadata tables that are made manifest by manifest: here in threads, or wherever else manifests are read."""

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

#: Makes rows of a leaf; given its root and the leaf.
LeafMaker: TypeAlias = Callable[[Manifest, Manifest], Iterable[pa.Table]]

#: How many rows that makes.
LeafCount: TypeAlias = Callable[[Manifest, Manifest], int]

#: Instead of a row of a root: the files that stand in the root itself, and the root as a whole.
DIRECT, ROOT = -1, -2


@dataclass(frozen=True)
class LeafPlace:
    """A manifest to read: its row in the root of a snapshot (or `DIRECT`, `ROOT`), and its bytes, 0 if not known."""

    snapshot: Snapshot
    row: int
    size: int


@dataclass(frozen=True)
class ByLeaf:
    """A metadata table whose rows come from one manifest at a time.

    Attributes
    ----------
    maker
        Given a state and the table's schema, what makes rows of a leaf.
    every
        Of the manifests of every snapshot, each once; else of the state's snapshot.
    contents
        Content types of the manifests.
    parts
        Of manifests, what is decoded at once.
    root
        The root has rows of its own: the maker is given it as a leaf, first.
    statistics
        Columns that need the part ``stats``, where the maker can leave out columns; else it makes all.
    count
        How many rows it makes of a leaf of which only the part ``entries`` is decoded; None: that cannot be told.
    """

    maker: Callable[[TableState, pa.Schema], LeafMaker]
    every: bool = False
    contents: frozenset[int] = ALL
    parts: tuple[str, ...] = ("entries", "partition", "stats")
    root: bool = False
    statistics: frozenset[str] = frozenset()
    count: LeafCount | None = None

    def narrowed(self, schema: pa.Schema, columns: Collection[str]) -> tuple[ByLeaf, pa.Schema]:
        """What makes these columns alone, and the schema to give to its maker; that may be of more than these."""
        if not self.statistics:
            return self, schema
        kept = pa.schema([f for f in schema if f.name in columns])
        parts = self.parts if self.statistics.intersection(columns) else tuple(p for p in self.parts if p != "stats")
        return replace(self, parts=parts), kept

    def build(self, state: TableState, schema: pa.Schema) -> Iterator[pa.Table]:
        """All of it, in this process."""
        make = self.maker(state, schema)
        for above, leaf in self.leaves(state, self.parts):
            yield from make(above, leaf)

    def leaves(self, state: TableState, parts: Collection[str]) -> Iterator[tuple[Manifest, Manifest]]:
        """The manifests that it is made of, each with its root; where the root has rows of its own, it comes first."""
        root = state.root() if self.root else None
        if root is not None:
            yield root, root
        yield from (reachable_leaves if self.every else snapshot_leaves)(state, self.contents, parts)

    def places(self, state: TableState) -> list[LeafPlace]:
        """The manifests that it is made of, in order: roots are read, no leaf is."""
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
        """The root and the leaf of a place.

        Raises
        ------
        FormatError
            The root is not what it was when the places were looked up.
        """
        root = state.root(snapshot)
        if root is None or row >= len(root):
            raise FormatError(f"no row {row}", location=snapshot.root_location)
        if row == ROOT:
            return root, root
        leaf = state.reader.direct(root) if row == DIRECT else state.reader.leaf(root, row, self.parts)
        if leaf is None:
            raise FormatError("no files stand in the root itself", location=root.location)
        return root, leaf
