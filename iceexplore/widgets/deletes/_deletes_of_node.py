"""Read the positions that a node of the tree deletes or, for a data file, those deleted in it."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import compute as pc
from iceexplore.errors import FormatError, IceexploreError, OptionError
from iceexplore.formats import read_parquet_row_groups
from iceexplore.graph import TableState, TreeNode, travel
from iceexplore.manifests import ContentType, EntryBatch, Manifest, read_manifest_dv, whole

__all__ = ["Deletes", "KINDS", "deletes_of", "row_groups"]

#: The kinds of nodes that have positions to show.
KINDS = ("deletion-vector", "position-delete", "manifest-dv", "data-file")
_MAX_PATHS = 200


@dataclass
class Deletes:
    """Deleted positions, with the file that they refer to.

    Attributes
    ----------
    bitmap
        The positions, a `pyroaring.BitMap64`.
    of
        The location of the data file or, for a manifest DV, of the leaf manifest.
    rows
        The number of rows of that data file, or of entries of that manifest; None if unknown.
    written
        The size in bytes of the deletes as stored; None for a data file, or for a delete file that covers several data
        files.
    entry
        The manifest entry of the data file; None if unknown.
    paths
        The data files to which a position delete file applies, each with its number of positions; empty if there is
        only one.
    notes
        Notes to display.
    """

    bitmap: Any
    of: str
    rows: int | None = None
    written: int | None = None
    entry: dict[str, Any] | None = None
    paths: list[tuple[str, int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def deletes_of(state: TableState, node: TreeNode, path: str = "") -> Generator[str, None, Deletes]:
    """Return the positions of a node whose kind is in `KINDS`, yielding progress texts.

    Parameters
    ----------
    path
        For a position delete file, the data file whose deleted positions are returned; by default the one with the most
        of them.

    Raises
    ------
    IceexploreError
        A delete cannot be read.
    OptionError
        The node has no positions.
    """
    from pyroaring import BitMap64

    from iceexplore.reading import read_vector

    ids = [int(part) for part in node.id.split(":")[1:]]
    state = travel(state, snapshot=ids[0])
    root = state.root()
    if root is None or node.kind not in KINDS:
        raise OptionError(f"{node.kind} {node.label!r} has no positions")
    manifest = root if len(ids) == 2 else state.reader.leaf(root, ids[1], frozenset({"entries", "partition"}))
    row = ids[-1]
    entry = manifest.entries.slice(row, 1).to_pylist()[0]
    size = (entry["deletion_vector"] or {}).get("size_in_bytes")
    match node.kind:
        case "manifest-dv":
            found = BitMap64(read_manifest_dv(state.storage, root, row))
            inline = (entry["deletion_vector"] or {}).get("inline_content")
            written = size if inline is None else len(inline)
            return Deletes(found, entry["referenced_file"] or "", _entries_of(state, root, entry), written)
        case "deletion-vector":
            deletes = Deletes(read_vector(state, entry), entry["referenced_file"] or "", written=size)
            recorded, has = entry["record_count"], len(deletes.bitmap)
            if recorded is not None and recorded != has:
                deletes.notes.append(f"The vector deletes {has:,} positions, but the manifest records {recorded:,}.")
        case "position-delete":
            deletes = _of_file(state, entry, path)
        case _:
            yield "Looking for deletes …"
            return _of_data(state, manifest, row, entry)
    deletes.entry = yield from _data_entry(state, root, deletes.of)
    if deletes.entry is None:
        deletes.notes.append("The data file is not in this snapshot, so its number of rows is unknown.")
    else:
        deletes.rows = deletes.entry["record_count"]
    return deletes


def _of_file(state: TableState, entry: dict[str, Any], path: str) -> Deletes:
    """Return the positions that a position delete file deletes in one data file."""
    from iceexplore.reading import position_index

    index = position_index(state, entry["location"], entry["file_format"])
    if not index.paths:
        raise FormatError("the position delete file has no rows", location=entry["location"])
    counts = [len(positions) for positions in index.positions]
    order = sorted(range(len(counts)), key=lambda i: (-counts[i], index.paths[i]))[:_MAX_PATHS]
    at = index.paths.index(path) if path in index.paths else order[0]
    paths = [(index.paths[i], counts[i]) for i in order]
    single = len(counts) == 1
    written = entry["file_size_in_bytes"] if single else None
    left = len(counts) - len(paths)
    note = (
        f"The {_MAX_PATHS} of {len(counts):,} data files with the most deletes are listed; select any other data file "
        "to see its deletes."
    )
    return Deletes(
        index.positions[at].bitmap(),
        index.paths[at],
        written=written,
        paths=[] if single else paths,
        notes=[note] if left else [],
    )


def _of_data(state: TableState, manifest: Manifest, row: int, entry: dict[str, Any]) -> Deletes:
    """Return the positions deleted in a data file by all deletion vectors and position deletes that apply."""
    from pyroaring import BitMap64

    from iceexplore.planning import match_deletes
    from iceexplore.reading import deleted_positions

    tuples = state.reader.direct(manifest) if manifest.is_root else manifest
    files = EntryBatch(manifest.entries.slice(row, 1))
    if tuples is not None:
        at = whole(tuples.entries["ordinal"]).index(pa.scalar(entry["ordinal"], pa.int64())).as_py()
        files = EntryBatch(tuples.entries, {}, tuples.partition()).take(pa.array([at], pa.int64()))
    matched = match_deletes(state, files)
    found = deleted_positions(state, files, matched)
    deletes = Deletes(found.get(entry["location"], BitMap64()), entry["location"], entry["record_count"], entry=entry)
    by_vector = matched.vector.null_count < len(matched.vector)
    files_of = sum(len(m or ()) for m in matched.positions.to_pylist())
    equality = sum(len(m or ()) for m in matched.equality.to_pylist())
    if by_vector:
        deletes.notes.append("Deleted by a deletion vector.")
    elif files_of:
        deletes.notes.append(f"Deleted by {files_of:,} position delete file{'s' if files_of > 1 else ''}.")
    if equality:
        files_word = "equality delete file applies" if equality == 1 else "equality delete files apply"
        deletes.notes.append(f"{equality:,} {files_word} too; the rows deleted can only be found by reading the data.")
    return deletes


def _entries_of(state: TableState, root: Manifest, entry: dict[str, Any]) -> int | None:
    """Return the number of entries stored in a manifest DV's leaf; None if the root does not list the leaf."""
    for row in np.flatnonzero(np.asarray(pc.equal(root.entries["location"], entry["referenced_file"] or ""))):
        if root.entries["content_type"][int(row)].as_py() in (ContentType.DATA_MANIFEST, ContentType.DELETE_MANIFEST):
            last = pc.max(state.reader.leaf(root, int(row)).entries["ordinal"]).as_py()
            return 0 if last is None else int(last) + 1
    return None


def _data_entry(state: TableState, root: Manifest, location: str) -> Generator[str, None, dict[str, Any] | None]:
    """Return a data file's entry, searching manifests already read first; None if no manifest lists it."""
    if not location:
        return None
    kinds, names = (root.entries[name].to_pylist() for name in ("content_type", "location"))
    rows = [row for row, kind in enumerate(kinds) if kind == ContentType.DATA_MANIFEST]
    rows.sort(key=lambda row: names[row] not in state.reader.seen)
    leaves = state.reader.leaves(root, rows)
    found = _named(root, location)
    if found is not None:
        return found
    for done, leaf in enumerate(leaves, 1):
        found = _named(leaf, location)
        if found is not None:
            leaves.close()  # type: ignore[attr-defined]
            return found
        yield f"Looking for the data file: manifest {done:,} of {len(rows):,} …"
    return None


def _named(manifest: Manifest, location: str) -> dict[str, Any] | None:
    same = pc.equal(manifest.entries["location"], location)
    data = pc.equal(manifest.entries["content_type"], int(ContentType.DATA))
    rows = pc.indices_nonzero(pc.and_(same, data))
    found: dict[str, Any] | None = None
    if len(rows):
        found = manifest.entries.take(rows[:1]).to_pylist()[0]
    return found


def row_groups(state: TableState, deletes: Deletes, footer: bool) -> tuple[list[int], str]:
    """Return the positions at which row groups begin, followed by the end of the last one, and where these come from.

    They come from the "footer" or the "split offsets"; both results are empty if the positions are unknown.

    Parameters
    ----------
    footer
        Whether to read the data file's footer. Otherwise the split offsets give approximate positions.
    """
    entry = deletes.entry
    if entry is None or not deletes.rows:
        return [], ""
    if footer:
        try:
            found = read_parquet_row_groups(state.storage, entry["location"], lambda _: ())
        except IceexploreError as error:
            deletes.notes.append(f"The footer could not be read: {error}")
        else:
            edges = np.cumsum([0, *(group.rows for group in found.groups)]).tolist()
            if edges[-1] != deletes.rows:
                text = f"{edges[-1]:,} rows by its footer, {deletes.rows:,} by its manifest"
                deletes.notes.append(f"The file has {text}.")
            return edges if len(edges) > 1 else [], "footer"
    offsets, size = entry["split_offsets"] or [], entry["file_size_in_bytes"] or 0
    if len(offsets) > 1 and offsets[0] >= 0 and offsets == sorted(set(offsets)) and offsets[-1] < size:
        length = size - offsets[0]
        return [*(deletes.rows * (o - offsets[0]) // length for o in offsets), deletes.rows], "split offsets"
    return [], ""
