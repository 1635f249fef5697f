"""The entries of a root, a snapshot's manifest list or V4 root manifest: manifests and, in V4, files and manifest DVs.

The manifests that a root lists are its leaves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyColumn, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import IceexploreError
from iceexplore.manifests import ContentType, Manifest, live, read_manifest_dv, whole
from iceexplore.storage import canonical

__all__ = [
    "FILES",
    "MANIFESTS",
    "Removals",
    "Removed",
    "bools",
    "direct_places",
    "left_out",
    "live_manifests",
    "removed_counts",
    "removed_rows",
    "root_counts",
    "row_keys",
    "vector_rows",
]

MANIFESTS = frozenset({int(ContentType.DATA_MANIFEST), int(ContentType.DELETE_MANIFEST)})
FILES = frozenset({int(ContentType.DATA), int(ContentType.POSITION_DELETE), int(ContentType.EQUALITY_DELETE)})


@dataclass(frozen=True)
class Removed:
    """The entries of one leaf that its live manifest DVs remove.

    Attributes
    ----------
    rows
        The rows of the root that have these manifest DVs: one row, or two with delta encoding.
    entries
        The number of removed entries, from the root; None if the root does not state it.
    identity
        Identifies these vectors: if two roots have the same identity for a leaf, they remove the same entries of it.
    """

    rows: tuple[int, ...] = ()
    entries: int | None = 0
    identity: frozenset[str] = frozenset()


_NOTHING = Removed()


def live_manifests(root: Manifest, contents: Collection[int] = MANIFESTS) -> list[int]:
    """Return the row numbers of a root's live manifests with one of these content types.

    In a v1-v3 manifest list, every manifest is live.
    """
    kinds = pa.array(sorted(contents), pa.int32())
    mask = pc.and_(live(root.entries), whole(pc.is_in(root.entries["content_type"], kinds)))
    return [int(row) for row in np.flatnonzero(bools(mask))]


class Removals:
    """The live manifest DVs of a root, by leaf. Reads no file: all counts come from the root."""

    def __init__(self, root: Manifest) -> None:
        self._by_leaf: dict[str, Removed] = {}
        if not root.dv_rows:
            return
        # Take the columns once for all leaves, as a root may have thousands.
        every = [row for rows in root.dv_rows.values() for row in rows]
        counts = iter(removed_counts(root, every))
        keys = iter(build.to_pylist(row_keys(root.entries.take(pa.array(every, pa.int64())))))
        for leaf, rows in root.dv_rows.items():
            own = list(islice(counts, len(rows)))
            total = None if None in own else sum(n for n in own if n is not None)
            self._by_leaf[leaf] = Removed(tuple(rows), total, frozenset(islice(keys, len(rows))))

    def of(self, location: str | None) -> Removed:
        """Return what manifest DVs remove from the leaf at a location."""
        return self._by_leaf.get(canonical(location), _NOTHING) if location and self._by_leaf else _NOTHING

    def __bool__(self) -> bool:
        return bool(self._by_leaf)

    @property
    def all(self) -> list[Removed]:
        """What manifest DVs remove, for each leaf that has any."""
        return list(self._by_leaf.values())


def vector_rows(root: Manifest) -> list[int]:
    """Return the rows of a root that have a manifest DV, as an entry of its own or attached to a manifest's entry."""
    entries = root.entries
    kinds = pa.array([*MANIFESTS, int(ContentType.MANIFEST_DV)], pa.int32())
    own = whole(pc.equal(entries["content_type"], int(ContentType.MANIFEST_DV)))
    attached = pc.and_(pc.is_valid(whole(entries["deletion_vector"])), whole(pc.is_in(entries["content_type"], kinds)))
    return [int(row) for row in np.flatnonzero(bools(own) | bools(attached))]


def removed_counts(root: Manifest, rows: list[int]) -> list[int | None]:
    """Return the number of entries that the manifest DV of each given row removes; None if unknown.

    A DV attached to its manifest's entry has no stated count: an inline one is decoded and counted.
    """
    columns = root.entries.select(["content_type", "record_count", "deletion_vector"])
    out: list[int | None] = []
    for row, entry in zip(rows, columns.take(pa.array(rows, pa.int64())).to_pylist(), strict=True):
        count = entry["record_count"]
        if entry["content_type"] != ContentType.MANIFEST_DV:
            count = None
            if (entry["deletion_vector"] or {}).get("inline_content") is not None:
                with suppress(IceexploreError):
                    count = len(read_manifest_dv(None, root, row))  # inline, so no file is read
        out.append(count)
    return out


def removed_rows(root: Manifest) -> npt.NDArray[np.bool_]:
    """Return a mask of the root's rows that are not live and so record a removal."""
    return ~bools(live(root.entries))


def left_out(parent: Manifest, root: Manifest) -> dict[str, int]:
    """Count the live manifests and files in the parent's root that this root does not list, not even as removed."""
    entries = parent.entries
    here = pc.is_in(entries["location"], value_set=whole(root.entries["location"]))
    gone = ~bools(whole(here)) & bools(live(entries))
    out = {}
    for word, kinds in (("manifest", MANIFESTS), ("file", FILES)):
        mine = bools(whole(pc.is_in(entries["content_type"], pa.array(sorted(kinds), pa.int32()))))
        if count := int((gone & mine).sum()):
            out[word] = count
    return out


def root_counts(root: Manifest) -> dict[str, int]:
    """Count a root's live rows by kind, and all other rows as removals; kinds without rows are left out."""
    mask = bools(live(root.entries))
    kinds = np.asarray(pc.fill_null(root.entries["content_type"], -1).to_numpy())
    words = {
        "manifest": np.isin(kinds, sorted(MANIFESTS)),
        "data file": kinds == ContentType.DATA,
        "delete": np.isin(kinds, (int(ContentType.POSITION_DELETE), int(ContentType.EQUALITY_DELETE))),
        "manifest DV": np.zeros(len(root), dtype=np.bool_),
    }
    words["manifest DV"][vector_rows(root)] = True
    out = {word: int((mine & mask).sum()) for word, mine in words.items()}
    out["removal"] = int((~mask).sum())
    return {word: count for word, count in out.items() if count}


def row_keys(entries: pa.Table) -> AnyArray:
    """Return a key that identifies each entry: type, location and, for a vector, its offset and size or its bytes."""
    vector = whole(entries["deletion_vector"])
    offset = pc.cast(pc.struct_field(vector, "offset"), pa.string())
    size = pc.cast(pc.struct_field(vector, "size_in_bytes"), pa.string())
    of_leaf = pc.equal(whole(entries["content_type"]), int(ContentType.MANIFEST_DV))
    return pc.binary_join_element_wise(
        pc.cast(whole(entries["content_type"]), pa.string()),
        whole(entries["location"]),
        offset,
        pc.if_else(pc.is_valid(offset), size, pa.scalar(None, pa.string())),
        _digests(pc.struct_field(vector, "inline_content")),
        pc.if_else(of_leaf, whole(entries["referenced_file"]), ""),
        "\x1f",
        null_handling="replace",
        null_replacement="",
    )


def _digests(inline: AnyArray) -> AnyArray:
    """Return a digest of each inline vector; there are few, at most one for each leaf."""
    if inline.null_count == len(inline):
        return pa.nulls(len(inline), pa.string())
    texts = [None if v is None else hashlib.blake2b(v, digest_size=16).hexdigest() for v in inline.to_pylist()]
    return pa.array(texts, pa.string())


def direct_places(root: Manifest, direct: Manifest) -> AnyArray:
    """Return, for each row of a root that is a file, its row in ``direct``; null for all other rows.

    ``direct`` is the result of `ManifestReader.direct`, which has only the root's own files. If the number of files in
    the root differs from it, all rows are null.
    """
    kinds = pa.array(sorted(FILES), pa.int32())
    mine = bools(whole(pc.is_in(root.entries["content_type"], kinds)))
    if int(mine.sum()) != len(direct):
        return pa.nulls(len(mine), pa.int64())
    return pa.array(np.cumsum(mine) - 1, pa.int64(), mask=~mine)


def bools(values: AnyColumn) -> npt.NDArray[np.bool_]:
    """Return a boolean column as a NumPy mask; null becomes false."""
    return np.asarray(pc.fill_null(values, False).to_numpy(zero_copy_only=False)).astype(np.bool_)
