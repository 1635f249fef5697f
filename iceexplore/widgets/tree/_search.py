"""Search a snapshot for names, paths, ids and partition values, column by column, a few manifests at a time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyScalar, build
from iceexplore.arrow import compute as pc
from iceexplore.graph import TableState, direct_places, live_manifests
from iceexplore.manifests import Manifest, whole
from iceexplore.metadata import human_value, parse_transform, result_type
from iceexplore.widgets.core._error_messages import unread
from iceexplore.widgets.core._ids import ref_id

__all__ = ["Search"]

#: Maximum number of hits that are listed.
LIMIT = 500
#: Maximum number of hits whose locations `Search.names` contains.
_NAMED = 20
#: Maximum number of distinct values of a partition field in a manifest that are formatted for the search; more are
#: searched in their stored form.
_VALUES = 20_000


class Search:
    """A case-insensitive search for a text, in steps of about a quarter of a second.

    Parameters
    ----------
    snapshot_id
        The snapshot whose root and manifests are searched. Ids of other snapshots and names of refs are searched too.
    text
        Part of a path, of an id, of a branch's or tag's name, or of a partition value, also as ``name=value``.

    Attributes
    ----------
    hits
        The node ids (`iceexplore.graph.TreeNode.id`), in the order of the tree.
    names
        The locations of the first hits that are files or manifests, by node id.
    done, more
        Whether the search has ended, and whether it ended because of `LIMIT`.
    searched, manifests
        How many manifests have been searched, and how many there are.
    lacks
        Why the search was incomplete, if files could not be read; known when it has ended.
    """

    def __init__(self, state: TableState, snapshot_id: int | None, text: str) -> None:
        self._state = state
        self._text = text.strip().casefold()
        self._snapshot = None if snapshot_id is None else state.metadata.snapshot(snapshot_id)
        self._root: Manifest | None = None
        self._left: list[int] | None = None  # the rows of the root not searched yet
        self.hits: list[str] = []
        self.names: dict[str, str] = {}
        self.done = self.more = False
        self.searched = self.manifests = 0
        self.lacks = ""

    def step(self, seconds: float = 0.25) -> None:
        """Continue the search for about this many seconds, but search at least one manifest."""
        end = time.monotonic() + seconds
        if self._left is None:
            self._begin()
        while self._left and not self.more and self._snapshot is not None and self._root is not None:
            row = self._left.pop(0)
            leaf = self._state.reader.leaf(self._root, row, frozenset({"entries", "partition"}))
            found = np.flatnonzero(self._matches(leaf, leaf.partition()))
            places = found[: LIMIT + 1].tolist()
            self._take([f"file:{self._snapshot.snapshot_id}:{row}:{i}" for i in places], leaf, places)
            self.searched += 1
            if time.monotonic() > end:
                break
        self.done = self.more or not self._left
        if self.done:
            self.lacks = unread(self._state, self._snapshot)

    def _begin(self) -> None:
        """Search the metadata and the root."""
        self._left = []
        refs = sorted(self._state.metadata.refs.values(), key=lambda r: (r.type, r.name != "main", r.name))
        self._take([ref_id(r.name) for r in refs if self._text in r.name.casefold()])
        snapshots = [s.snapshot_id for s in self._state.metadata.snapshots]
        self._take([f"snapshot:{i}" for i in snapshots if self._text in str(i)])
        if self._snapshot is None:
            return
        self._root = root = self._state.root(self._snapshot)
        if root is None:
            return
        self._left = live_manifests(root)
        found = np.flatnonzero(self._matches(root, self._direct(root)))
        manifests = set(self._left)
        self.manifests = len(manifests)
        places = found[: LIMIT + 1].tolist()
        kinds = (("manifest" if i in manifests else "file", i) for i in places)
        self._take([f"{kind}:{self._snapshot.snapshot_id}:{i}" for kind, i in kinds], root, places)

    def _take(self, found: list[str], manifest: Manifest | None = None, places: Sequence[int] = ()) -> None:
        """Add hits. If they are entries of a manifest, ``places`` are their row numbers in it."""
        room = LIMIT - len(self.hits)
        self.hits += found[:room]
        self.more |= len(found) > room
        if manifest is not None:
            for hit, place in zip(found[: _NAMED - len(self.names)], places, strict=False):
                self.names[hit] = manifest.entries["location"][place].as_py() or ""

    def _matches(self, manifest: Manifest, partition: pa.StructArray | None) -> npt.NDArray[np.bool_]:
        """Return which entries of a root or leaf contain the text."""
        entries = manifest.entries
        out = np.zeros(entries.num_rows, dtype=np.bool_)
        for name in ("location", "referenced_file"):
            hit = pc.match_substring(whole(entries[name]), self._text, ignore_case=True)
            out |= _mask(hit)
        if partition is not None:
            for child in partition.type:
                out |= self._values(child.name, partition.field(child.name)) & _mask(partition.is_valid())
        return out

    def _values(self, field_id: str, column: AnyArray) -> npt.NDArray[np.bool_]:
        """Return which values of a partition field, as displayed, contain the text."""
        known = [f for spec in self._state.metadata.partition_specs for f in spec.fields if str(f.field_id) == field_id]
        if not known or parse_transform(known[-1].transform).is_void:
            return np.zeros(len(column), dtype=np.bool_)
        part = known[-1]
        coded = column.dictionary_encode()
        source = self._state.metadata.all_fields().get(part.source_ids[0]) if part.source_ids else None
        kind = result_type(part.transform, source[1].type if source else None)
        if len(coded.dictionary) <= _VALUES:
            texts = [human_value(kind, part.transform, _plain(value)) for value in coded.dictionary]
        else:
            texts = build.to_pylist(pc.cast(coded.dictionary, pa.string(), safe=False))
        hits = np.array([self._text in f"{part.name}={text}".casefold() for text in texts] or [False], dtype=np.bool_)
        codes = np.asarray(pc.fill_null(coded.indices, 0).to_numpy(zero_copy_only=False))
        found: npt.NDArray[np.bool_] = hits[codes]
        nulls = np.asarray(column.is_null().to_numpy(zero_copy_only=False))
        found[nulls] = self._text in f"{part.name}=null".casefold()
        return found

    def _direct(self, root: Manifest) -> pa.StructArray | None:
        """Return the partition tuples of files listed directly in a V4 root; null for other rows."""
        direct = self._state.reader.direct(root)
        values = None if direct is None else direct.partition()
        return None if direct is None or values is None else values.take(direct_places(root, direct))


def _plain(value: AnyScalar) -> object:
    try:
        return value.as_py()
    except (ValueError, OverflowError):  # beyond Python's calendar: use the stored number
        return cast(pa.TimestampScalar, value).value


def _mask(values: AnyArray) -> npt.NDArray[np.bool_]:
    return np.asarray(pc.fill_null(values, False).to_numpy(zero_copy_only=False)).astype(np.bool_)
