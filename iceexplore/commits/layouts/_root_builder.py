"""Collect what a commit changes in a root manifest: statuses of the base's rows, new rows, and new files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyColumn, build
from iceexplore.arrow import compute as pc
from iceexplore.commits.live_files._locate import live_manifests, readable
from iceexplore.commits.model._writer import CommitWriter
from iceexplore.graph import TableState
from iceexplore.manifests import (
    ContentType,
    EntryBatch,
    Manifest,
    Status,
    bool_array,
    live,
    manifest_entry,
    root_batch,
    upgrade_entries,
    whole,
    write_manifest,
)

__all__ = [
    "DROPPED",
    "Draft",
    "NewDv",
    "NewFile",
    "bare_position_deletes",
    "begin",
    "chunks",
    "numbers",
]

_MANIFESTS = pa.array([int(ContentType.DATA_MANIFEST), int(ContentType.DELETE_MANIFEST)], pa.int32())
_COUNTED = {"added": Status.ADDED, "existing": Status.EXISTING, "deleted": Status.DELETED}


def upgraded_rows(state: TableState, root: Manifest, *, derived: bool = True) -> EntryBatch:
    """Convert the rows of a manifest list to rows of a V4 root, for the first V4 commit after an upgrade.

    V4 requires the counts of each manifest, but early manifest lists may lack some (spec: "When null, assume
    non-zero"). A manifest without these counts is read to compute them.

    Parameters
    ----------
    derived
        Whether to keep the bounds of partition fields with other transforms than identity. The V4 draft cannot store
        these bounds.

    Raises
    ------
    FormatError
        A manifest that has to be read is damaged.
    """
    return upgrade_entries(_counted(state, root, EntryBatch(root.entries)), state.metadata, derived=derived)


def _counted(state: TableState, root: Manifest, batch: EntryBatch) -> EntryBatch:
    """Return ``batch``, the rows of a root or manifest list, with no missing count in the rows of manifests.

    A manifest whose row lacks a count of its entries or their rows is read, and its entries are counted.
    """
    stated = build.to_pylist(batch.entries["manifest_stats"])
    is_leaf = bool_array(pc.is_in(batch.entries["content_type"], _MANIFESTS)).tolist()
    lacking = [
        i
        for i, stats in enumerate(stated)
        if is_leaf[i] and (stats is None or any(value is None for value in stats.values()))
    ]
    if not lacking:
        return batch
    for row, leaf in zip(lacking, state.reader.leaves(root, lacking), strict=True):
        given = {k: v for k, v in (stated[row] or {}).items() if v is not None}
        stated[row] = {**_counts(readable(leaf)), **given}
    counts = [sum(s[f"{name}_files_count"] for name in _COUNTED) if s else None for s in stated]
    return batch.with_columns(
        manifest_stats=pa.array(stated, batch.entries.schema.field("manifest_stats").type),
        record_count=pc.coalesce(batch.entries["record_count"], pa.array(counts, pa.int64())),
    )


def _counts(leaf: Manifest) -> dict[str, Any]:
    entries = leaf.entries
    # The V4 draft stores a DV in its data file's entry, so a manifest's counts do not include DVs.
    if leaf.dialect.deletion_vectors_on_entries:
        entries = entries.filter(pc.not_equal(entries["content_type"], int(ContentType.POSITION_DELETE)))
    status = np.asarray(whole(entries["status"]).fill_null(int(Status.EXISTING)))
    rows = np.asarray(whole(entries["record_count"]).fill_null(0))
    sequence = np.asarray(whole(entries["sequence_number"]).fill_null(0))[status != Status.DELETED]
    out: dict[str, Any] = {"min_sequence_number": int(sequence.min()) if len(sequence) else 0}
    for name, wanted in _COUNTED.items():
        out[f"{name}_files_count"] = int((status == wanted).sum())
        out[f"{name}_rows_count"] = int(rows[status == wanted].sum())
    return out


#: The value in `Draft.row_status` for a row of the base that the new root does not list. Other rows have
#: `Status.EXISTING`, `Status.DELETED` or, in the V4 draft, `Status.REPLACED`.
DROPPED = -1
_ALL_PARTS = frozenset({"entries", "partition", "stats"})
#: The value of format_version (field id 157 in the V4 draft) for files that were written before V4.
_BEFORE_V4 = 0
#: A retry reuses a leaf of an earlier attempt if the leaf's entries would have the same values in these columns.
#: Statistics are not compared, because entries for the same files have the same statistics.
_IDENTITY = ("location", "status", "snapshot_id", "sequence_number", "file_sequence_number", "referenced_file",
             "deletion_vector", "first_row_id", "format_version", "column_files")  # fmt: skip


@dataclass
class NewFile:
    """A new file of a commit. ``data`` is kept until the commit is checked and the file is written, then it is None."""

    location: str
    length: int
    kind: str
    data: bytes | None = field(repr=False)


@dataclass
class NewDv:
    """A manifest DV that the commit adds to the root.

    Attributes
    ----------
    leaf
        The row, in the base's root, of the manifest from which the DV removes entries.
    bitmap
        The removed positions, a `pyroaring.BitMap`.
    status, snapshot_id, sequence_number
        The DV's own values, not those of the manifest.
    attach
        Whether the DV is attached to the manifest's row, instead of being a separate row.
    place
        The location of the Puffin file, and the DV's offset and size in it; None for an inline DV.
    """

    leaf: int
    bitmap: Any
    status: Status
    snapshot_id: int
    sequence_number: int
    attach: bool = False
    place: tuple[str, int, int] | None = None


@dataclass
class Draft:
    """A root manifest under construction.

    Attributes
    ----------
    root
        The root manifest or manifest list of the base (the state to build on); None if there is no snapshot yet.
    rows
        The rows of ``root`` as V4 content entries, in the same order (below V4, converted by `upgraded_rows`).
    kind, row_status
        For each of these rows, the content type, and the status in the new root or `DROPPED`.
    dvs
        For each live manifest that has manifest DVs, by its row: the rows of these DVs. If a DV is attached to the
        manifest's row, that row is the first in the list.
    attached
        For each manifest whose attached DV changes, by its row: the DV to attach, or None to remove the attached DV.
    changed
        Row numbers of the manifests from which this commit removes entries; compaction skips these manifests.
    moved
        For each data manifest that compaction replaced, by location: the new location, or None if no entries remained.
    fresh
        For each new data manifest to which this commit moves data files from the root: its location, and the locations
        of these data files.
    made
        New rows for the root.
    vectors
        New manifest DVs. When the root is finished, they become rows or are attached to rows.
    files
        New files (leaves and Puffin files), which are written at the end.
    unnumbered
        For each new data manifest, by location: how many rows of the files in it need row ids.
    hidden
        Only for the V4 draft. For each manifest from which this commit removes entries, by its row: two encoded
        bitmaps. The first has the positions of entries that are deleted, and the second those of entries that the
        commit lists again elsewhere. If there are no such positions, the bitmap is None.
    affiliate_new
        Whether the DVs that this commit adds must be written to affiliated delete manifests, each of which has only
        deletes for the files of one data manifest. This is true with the option ``affinity="some"`` if there would
        otherwise be more unaffiliated delete manifests than the option ``unaffiliated_manifests`` allows.
    """

    writer: CommitWriter
    root: Manifest | None
    rows: EntryBatch
    kind: np.ndarray
    row_status: np.ndarray
    dvs: dict[int, list[int]] = field(default_factory=dict)
    attached: dict[int, dict[str, object] | None] = field(default_factory=dict)
    changed: set[int] = field(default_factory=set)
    moved: dict[str, str | None] = field(default_factory=dict)
    fresh: list[tuple[str, AnyArray]] = field(default_factory=list)
    made: list[EntryBatch] = field(default_factory=list)
    vectors: list[NewDv] = field(default_factory=list)
    files: list[NewFile] = field(default_factory=list)
    unnumbered: dict[str, int] = field(default_factory=dict)
    hidden: dict[int, tuple[bytes | None, bytes | None]] = field(default_factory=dict)
    affiliate_new: bool = False

    def standing(self, *kinds: int) -> np.ndarray:
        """Return the row numbers, in the base's root, of the rows of these content types that stay live.

        Rows that this commit has removed, replaced or moved to a leaf so far are not included.
        """
        return np.flatnonzero((self.row_status == Status.EXISTING) & np.isin(self.kind, [int(k) for k in kinds]))

    def row(self, index: int) -> dict[str, object]:
        """Return one of the base's rows as a dictionary. This is slow: use it only for manifests and their DVs."""
        found: dict[str, object] = self.rows.entries.slice(index, 1).to_pylist()[0]
        return found

    def location(self, index: int) -> str:
        """Return the location of the file or manifest in row ``index`` of the base's root."""
        return str(self.rows.entries["location"][index].as_py())

    def drop_leaf(self, row: int) -> None:
        """Mark a manifest and its manifest DVs as DELETED in the new root.

        This is for a manifest without live entries, or whose live entries this commit writes to a new manifest. ``row``
        is the manifest's row in the base's root.
        """
        for r in [row, *self.dvs.get(row, ())]:
            self.row_status[r] = Status.DELETED

    def leaf_rows(self, row: int) -> EntryBatch | None:
        """Return the live entries of a leaf as EXISTING, with statistics, so that they can be written to a new leaf.

        ``row`` is the leaf's row in the base's root. If the leaf lists a live position delete file (from v2), return
        None: V4 has no entries for such files, so the leaf cannot be rewritten. The sort order ids of delete files
        become null, because V4 allows a sort order id only for data files ("Can only be set if content_type is 0").
        """
        assert self.root is not None
        leaf = readable(self.writer.base.reader.leaf(self.root, row, _ALL_PARTS))
        batch = EntryBatch.of(leaf).filter(live(leaf.entries))
        if bool_array(bare_position_deletes(batch.entries)).any():
            return None
        is_data = pc.equal(batch.entries["content_type"], int(ContentType.DATA))
        order = pc.if_else(is_data, batch.entries["sort_order_id"], pa.scalar(None, pa.int32()))
        return batch.with_columns(status=int(Status.EXISTING), manifest_dv=None, sort_order_id=order)

    def add_leaf(
        self, batch: EntryBatch, *, content: ContentType, status: Status, referenced_file: str | None = None
    ) -> str:
        """Add a new leaf manifest, and the root's row for it; return the leaf's location.

        If an earlier attempt wrote a leaf with the same entries, that leaf is reused.

        Parameters
        ----------
        batch
            The entries of the leaf, at least one; all must have the same partition spec.
        content, status
            The content type of the leaf, and the status of its row in the root.
        referenced_file
            For a delete manifest: the location of the data manifest with which it is affiliated, or None.
        """
        w, spec_id = self.writer, int(batch.entries["partition_spec_id"][0].as_py())
        leaf_content: Literal["data", "delete"] = "data" if content == ContentType.DATA_MANIFEST else "delete"
        batch = batch.with_columns(ordinal=pa.array(np.arange(len(batch))))
        key = f"leaf {leaf_content} {spec_id} {_digest(batch.entries)}"

        def make() -> NewFile:
            data = write_manifest(
                batch,
                content=leaf_content,
                metadata=w.base.metadata,
                spec_id=spec_id,
                dialect=w.options.dialect,
                manifest_format=w.options.manifest_format,
                partition_storage=w.options.partition_storage,
                snapshot_id=w.snapshot_id,
                relative_to=w.base.metadata.location,
            )
            location = w.new_location(leaf_content, f".{w.options.manifest_format}")
            return NewFile(location, len(data), "manifest", data)

        made = w.once(key, make)
        self.files.append(made)
        if content == ContentType.DATA_MANIFEST:
            null = np.asarray(whole(batch.entries["first_row_id"]).is_null())
            null &= numbers(batch.entries["content_type"]) == ContentType.DATA
            self.unnumbered[made.location] = int(numbers(batch.entries["record_count"])[null].sum())
        # The V4 draft stores a DV in its data file's entry, so a manifest's counts do not include DVs.
        if w.options.deletion_vectors_on_entries:
            batch = batch.filter(pa.array(numbers(batch.entries["content_type"]) != ContentType.POSITION_DELETE))
        self.made.append(
            manifest_entry(
                batch,
                location=made.location,
                length=made.length,
                content=leaf_content,
                metadata=w.base.metadata,
                spec_id=spec_id,
                dialect=w.options.dialect,
                status=int(status),
                snapshot_id=w.snapshot_id,
                sequence_number=w.sequence_number,
                referenced_file=referenced_file,
            )
        )
        return made.location

    def add_file(self, name: str, suffix: str, kind: str, data: bytes) -> str:
        """Add a new file that is not a leaf, such as a Puffin file, and return its location.

        The file is only written later, by `write_files`. If an earlier attempt of this commit already added a file with
        the same ``name`` and ``data``, that file is reused.

        Parameters
        ----------
        name, suffix
            The end of the new file's name, which is ``<uuid>-<name><suffix>``.
        kind
            The type of the file for the storage, such as ``puffin``.
        data
            The file's content.
        """
        key = f"{name} {hashlib.blake2b(data, digest_size=16).hexdigest()}"
        w = self.writer
        made = w.once(key, lambda: NewFile(w.new_location(name, suffix), len(data), kind, data))
        self.files.append(made)
        return made.location

    def write_files(self) -> None:
        """Write the new files, except for those that an earlier attempt already wrote."""
        for new in self.files:
            if new.data is not None:
                self.writer.write(new.location, new.data, kind=new.kind)
                new.data = None


def begin(writer: CommitWriter) -> Draft:
    """Return a `Draft` without changes: the base's live rows are EXISTING, and rows that are not live are dropped.

    Raises
    ------
    FormatError
        The base's root is damaged.
    """
    state = writer.base
    root = state.root()
    if root is None:
        rows = EntryBatch.empty()
    elif readable(root).dialect in ("v4-proposal", "v4-draft"):
        rows = _counted(state, root, root_batch(root))
    else:
        rows = upgraded_rows(state, root, derived=writer.options.uses_expressions)
        rows = rows.with_columns(format_version=_BEFORE_V4)
    entries = rows.entries
    alive = bool_array(live(entries))
    kind = numbers(entries["content_type"])
    draft = Draft(writer, root, rows, kind, np.where(alive, int(Status.EXISTING), DROPPED).astype(np.int8))
    leaves = live_manifests(entries, (ContentType.DATA_MANIFEST, ContentType.DELETE_MANIFEST))
    names = entries["location"].take(pa.array(leaves, pa.int64()))
    vectors = draft.standing(ContentType.MANIFEST_DV)
    at = pc.index_in(entries["referenced_file"].take(pa.array(vectors)), value_set=whole(names))
    for row, place in zip(vectors.tolist(), at.to_pylist(), strict=True):
        if place is None:
            draft.row_status[row] = DROPPED  # the manifest that this DV references is not live
        else:
            draft.dvs.setdefault(leaves[place], []).append(row)
    bearing = bool_array(whole(entries["deletion_vector"]).is_valid())
    for row in leaves:
        if bearing[row]:
            draft.dvs.setdefault(row, []).insert(0, row)
    return draft


def chunks(batch: EntryBatch, size: int) -> Iterable[EntryBatch]:
    """Yield a batch in parts of about equal size, each with at most ``size`` rows of one spec, ordered by spec id."""
    specs = numbers(batch.entries["partition_spec_id"])
    for spec in np.unique(specs):
        rows = np.flatnonzero(specs == spec)
        for part in np.array_split(rows, -(-len(rows) // size)):
            yield batch.take(pa.array(part))


def numbers(column: AnyColumn) -> np.ndarray:
    """Return a column of integers as a numpy int64 array; null becomes 0."""
    filled = pc.fill_null(column, 0)
    return np.asarray(whole(filled) if isinstance(filled, pa.ChunkedArray) else filled, dtype=np.int64)


def bare_position_deletes(entries: pa.Table) -> AnyArray:
    """Return a mask of the entries of position delete files; deletion vectors are not included."""
    position = whole(pc.equal(entries["content_type"], int(ContentType.POSITION_DELETE)))
    return pc.and_(position, whole(entries["deletion_vector"]).is_null())


def _digest(entries: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    columns = entries.select(_IDENTITY).combine_chunks()
    with pa.ipc.new_stream(sink, columns.schema) as stream:
        stream.write_table(columns)
    return hashlib.blake2b(sink.getvalue(), digest_size=16).hexdigest()
