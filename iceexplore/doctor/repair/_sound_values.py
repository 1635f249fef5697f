"""Restore damaged or missing values that the format requires in entries of V4 manifests.

The values are taken from the parent snapshot's entry of the same file or, if the parent has none, from the file itself.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.commits import Sandbox, files_of_paths, unknown_partitions
from iceexplore.deletes import new_dv_blob, read_puffin_footer, widened, write_puffin
from iceexplore.doctor.repair._corrections import with_files_of
from iceexplore.doctor.repair._draft import live_mask
from iceexplore.errors import FormatError, IceexploreError
from iceexplore.graph import TableState
from iceexplore.manifests import ContentType, EntryBatch, Manifest, Status, concat_batches, decode_manifest_dv, whole
from iceexplore.manifests.rules import FILES, Rows, not_allowed
from iceexplore.storage import canonical

__all__ = ["SoundValues", "are_sound", "named_file", "vector_place", "with_row_ids", "with_sound_types"]

Mask = npt.NDArray[np.bool_]


def with_sound_types(manifest: Manifest) -> Manifest:
    """Return a V4 manifest in which each content type that is not allowed is guessed from the entry's other fields.

    An entry with ``equality_ids`` becomes an equality delete, an entry with ``referenced_file`` or ``deletion_vector``
    a position delete, and any other entry a data file. In a root, an entry with ``manifest_stats`` becomes a manifest,
    and an entry that references a live manifest of this root a manifest DV.

    In the V4 draft spec, no entry becomes a delete: a deletion vector is part of the entry of its data file.
    """
    strange = _strange(manifest)
    if not strange.any():
        return manifest
    r = Rows(manifest.entries, manifest.dialect)
    in_draft, is_root = bool(manifest.dialect.deletion_vectors_on_entries), manifest.is_root
    kinds = np.full(len(r), int(ContentType.DATA))
    if not in_draft:
        kinds[~r.null("equality_ids")] = ContentType.EQUALITY_DELETE
        kinds[r.referenced | r.has_vector] = ContentType.POSITION_DELETE
    if is_root:
        kinds[r.counted] = ContentType.DATA_MANIFEST
        kinds[r.counted & r.referenced] = ContentType.DELETE_MANIFEST
        manifests = manifest.entries["location"].filter(pa.array(r.counted & r.live)).combine_chunks()
        of_manifest = np.asarray(pc.is_in(manifest.entries["referenced_file"], value_set=manifests))
        kinds[of_manifest & ~r.counted] = ContentType.MANIFEST_DV
    return manifest.with_content_types(pa.array(np.where(strange, kinds, r.kind).astype(np.int32)))


def with_row_ids(batch: EntryBatch, manifest: Manifest, first: int | None) -> EntryBatch:
    """Return a manifest's entries with corrected first row ids.

    Only data files inherit row ids. When the manifest was read, a data file with a wrong content type therefore
    inherited none, and the data files after it inherited ids that are too low. Now that the content types are
    corrected, the ids are assigned again. Ids that an entry stores instead of inheriting them are kept.

    Parameters
    ----------
    batch
        The manifest's entries, with corrected content types (see `with_sound_types`).
    manifest
        The manifest as it was read, with the wrong content types.
    first
        The first row id of the manifest; if it is None, the entries are returned unchanged.
    """
    if first is None:
        return batch
    strange = np.isin(
        np.asarray(batch.entries["ordinal"], np.int64),
        np.asarray(manifest.entries["ordinal"], np.int64)[_strange(manifest)],
    )
    r = Rows(batch.entries)
    counts, data = r.ints("record_count"), r.is_kind(ContentType.DATA)
    ids = build.to_pylist(batch.entries["first_row_id"])
    # The first row id of the next data file that inherits one. ``read`` is the id that the reader assigned, and
    # ``right`` is the id that it should have assigned.
    read, right = first, first
    for row in np.flatnonzero(data & (r.status != Status.DELETED)).tolist():
        count = int(counts[row])
        skipped = strange[row] and ids[row] is None
        # An id that equals ``read`` was inherited, so it is replaced. Any other id is stored in the entry, and is kept.
        if skipped or ids[row] == read:
            read += 0 if skipped else count
            ids[row] = right
            right += count
    return batch.with_columns(first_row_id=pa.array(ids, pa.int64()))


def _strange(manifest: Manifest) -> Mask:
    """Return a mask of the entries whose content types are not allowed in a V4 manifest.

    In manifests of older versions, the mask is false for all entries.
    """
    r = Rows(manifest.entries, manifest.dialect)
    allowed: tuple[ContentType, ...] = tuple(ContentType) if manifest.is_root else FILES
    out = not_allowed(r, allowed)
    if manifest.dialect.deletion_vectors_on_entries:
        out |= r.is_kind(ContentType.EQUALITY_DELETE) | (r.is_kind(ContentType.POSITION_DELETE) & ~r.carried)
    return out & np.bool_(manifest.dialect.has_root_manifest)


def _unknown_partitions(state: TableState, manifest: Manifest) -> npt.NDArray[np.int64]:
    """Return the positions (column ``ordinal``) of the live entries in which a partition value is unknown.

    A V4 manifest may store a partition value only as a lower and an upper bound, which are then equal. The value is
    unknown if it is missing, or if the two bounds differ. If the manifest is a V4 root, only the files that it lists
    directly are examined.
    """
    seen = state.reader.direct(manifest) if manifest.is_root else manifest
    if seen is None:
        return np.zeros(0, np.int64)
    found: npt.NDArray[np.int64] = np.asarray(seen.entries["ordinal"], np.int64)[
        unknown_partitions(seen, state.metadata)
    ]
    return found


def are_sound(manifest: Manifest, batch: EntryBatch, state: TableState) -> Mask:
    """Return a mask of the entries that are live and have no faulty values.

    A repair can copy values from these entries into entries for the same files in other manifests.

    In a V4 manifest, an entry is faulty if V4 does not allow its content type, if a partition value is unknown, or if
    it has one of the faults that `_damaged` lists. In manifests of older versions, all live entries are selected.

    Parameters
    ----------
    manifest
        The manifest as it was read.
    batch
        All entries of this manifest, in the same order.
    """
    mask = live_mask(batch)
    if manifest.dialect.has_root_manifest:
        mask &= ~(_strange(manifest) | _damaged(batch) | unknown_partitions(manifest, state.metadata))
    return mask


@dataclass
class SoundValues:
    """Replaces values that V4 does not allow in entries.

    Attributes
    ----------
    parent
        The live entries of the parent snapshot that have no faulty values (see `are_sound`). Values are copied from
        these entries into entries for the same files.
    sandbox
        Receives new Puffin files for deletion vectors that are stored inline.
    """

    state: TableState
    parent: EntryBatch
    sandbox: Sandbox

    def of(self, batch: EntryBatch, manifest: Manifest, typed: Manifest) -> EntryBatch:
        """Return a manifest's entries with damaged and missing values restored.

        The values are copied from the entry for the same file in `parent`. If `parent` does not list the file, they are
        read from the file. Fields that V4 does not allow for an entry's content type are set to null. Deletion vectors
        whose data file, offset or size cannot be found are left out.

        Parameters
        ----------
        batch
            The manifest's entries, to which other repairs may have been applied already.
        manifest
            The manifest as it was read.
        typed
            The same manifest with corrected content types, as `with_sound_types` returns it.

        Raises
        ------
        FormatError
            The size or partition of a file is missing, `parent` does not list the file, and the file cannot be read.
        """
        guessed = np.asarray(manifest.entries["ordinal"], np.int64)[_strange(manifest)]
        unknown = _unknown_partitions(self.state, typed)
        ordinals = np.asarray(batch.entries["ordinal"], np.int64)
        damaged = _damaged(batch) | (np.isin(ordinals, [*guessed, *unknown]) & live_mask(batch))
        if damaged.any():
            batch, recalled = self._recalled(batch, damaged)
            unknown = np.setdiff1d(unknown, ordinals[recalled])
            batch = self._with_sizes(self._with_places(batch))
            batch = batch.with_columns(split_offsets=_sound_offsets(batch))
            batch = self._with_partitions(batch, unknown)
            batch = batch.filter(pa.array(~_nowhere(Rows(batch.entries))))
        return _without_foreign_fields(batch)

    def _recalled(self, batch: EntryBatch, mask: Mask) -> tuple[EntryBatch, npt.NDArray[np.int64]]:
        """Copy the values of files from the parent snapshot's entries into the entries that a mask selects.

        Return the new batch, and the indices of the rows into which values were copied. Entries for files that
        `parent` does not list keep their values.
        """
        rows = np.flatnonzero(mask)
        at = np.asarray(pc.fill_null(pc.index_in(_names(batch.take(rows)), value_set=_names(self.parent)), -1))
        rows, at = rows[at >= 0], at[at >= 0]
        return (with_files_of(batch, rows, self.parent.take(at)) if len(rows) else batch), rows

    def _with_places(self, batch: EntryBatch) -> EntryBatch:
        """Return a batch in which deletion vectors have a data file, an offset and a size, where these can be found.

        The values are taken from the footer of the deletion vector's Puffin file. If the footer does not have them, an
        inline deletion vector is written to a new Puffin file. A deletion vector for which neither is possible keeps
        its values.
        """
        r = Rows(batch.entries)
        mask = _nowhere(r)
        if not mask.any():
            return batch
        columns = ["location", "file_size_in_bytes", "referenced_file", "deletion_vector"]
        rows = build.to_pylist(batch.entries.select(columns))
        vectors = build.to_pylist(batch.entries["deletion_vector"])
        for row in np.flatnonzero(mask).tolist():
            rows[row]["referenced_file"] = rows[row]["referenced_file"] or named_file(self.state, rows[row])
            found = vector_place(self.state, rows[row])
            if found.get("offset") is not None and found.get("size_in_bytes") is not None:
                vectors[row] = {**found, "inline_content": None}
            elif found.get("inline_content") is not None and rows[row]["referenced_file"]:
                rows[row]["location"], length, vectors[row] = self._stored(rows[row])
                rows[row]["file_size_in_bytes"] = length
        kind = batch.entries.schema.field("deletion_vector").type
        return batch.with_columns(
            deletion_vector=pa.array(vectors, kind),
            location=pa.array([row["location"] for row in rows], pa.string()),
            referenced_file=pa.array([row["referenced_file"] for row in rows], pa.string()),
            file_size_in_bytes=pa.array([row["file_size_in_bytes"] for row in rows], pa.int64()),
        )

    def _stored(self, row: dict[str, Any]) -> tuple[str, int, dict[str, Any]]:
        """Write a data file's inline deletion vector to a new Puffin file, because only manifest DVs may be inline.

        If its positions cannot be decoded, no file is written, and the values in ``row`` are returned.

        Parameters
        ----------
        row
            The fields of the deletion vector's entry.

        Returns
        -------
        tuple
            The location and the size of the Puffin file, and the entry's new ``deletion_vector``.
        """
        content = row["deletion_vector"]["inline_content"]
        try:
            positions = decode_manifest_dv(content, location=row["location"])
        except IceexploreError:
            return row["location"], row["file_size_in_bytes"], row["deletion_vector"]
        data, [(offset, size)] = write_puffin([new_dv_blob(widened(positions), row["referenced_file"])])
        name = uuid.uuid5(uuid.NAMESPACE_URL, f"{row['referenced_file']}#{content.hex()}")
        location = f"{self.state.metadata.location.rstrip('/')}/data/{name}-deletes.puffin"
        if not self.sandbox.storage.has(location):  # the file may have been written already, for a different snapshot
            self.sandbox.storage.write(location, data, kind="puffin")
        return location, len(data), {"offset": offset, "size_in_bytes": size, "inline_content": None}

    def _with_sizes(self, batch: EntryBatch) -> EntryBatch:
        """Return a batch in which missing file sizes of live entries are filled in with the sizes in the storage.

        Raises
        ------
        FormatError
            The storage cannot find the file.
        """
        r = Rows(batch.entries)
        lacking = np.flatnonzero(r.null("file_size_in_bytes") & r.live)
        if not len(lacking):
            return batch
        sizes = build.to_pylist(batch.entries["file_size_in_bytes"])
        names = build.to_pylist(batch.entries["location"].take(build.array(lacking)))
        for row, name in zip(lacking.tolist(), names, strict=True):
            try:
                sizes[row] = self.state.storage.stat(str(name)).size
            except IceexploreError as error:
                text = f"no entry records the size of {name}, and the file cannot be accessed: {error}"
                raise FormatError(text, location=name, code="entry-invalid") from error
        return batch.with_columns(file_size_in_bytes=pa.array(sizes, pa.int64()))

    def _with_partitions_of(self, batch: EntryBatch, rows: npt.NDArray[np.int64], spec_id: int) -> EntryBatch:
        """Restore the partitions of some data and equality delete files, which have the same partition spec."""
        names = [str(n) for n in build.to_pylist(batch.entries["location"].take(build.array(rows)))]
        try:
            found = files_of_paths(self.state, names, check_duplicates=False, spec_id=spec_id)
        except IceexploreError as error:
            text = f"no entry records the partition of {names[0]}, and it cannot be derived from the file: {error}"
            raise FormatError(text, location=names[0], code="partition-unknown") from error
        given = batch.take(rows)
        return with_files_of(batch, rows, replace(given, stats=found.stats, partition=found.partition))

    def _with_partitions(self, batch: EntryBatch, unknown: npt.NDArray[np.int64]) -> EntryBatch:
        """Return a batch in which unknown partitions of live entries are restored.

        For a data file or an equality delete file, the partition is derived from the file's path and footer (see
        `files_of_paths`), and the column statistics are read from the footer, too. A deletion vector gets the partition
        of the data file that it applies to.

        Parameters
        ----------
        unknown
            The positions (column ``ordinal``) of the entries whose partitions are unknown.

        Raises
        ------
        FormatError
            The partition of a data file or an equality delete file cannot be derived.
        """
        r = Rows(batch.entries)
        lost = np.isin(r.ints("ordinal"), unknown) & r.live
        rows = np.flatnonzero(lost & ~r.is_kind(ContentType.POSITION_DELETE))
        if len(rows):
            specs = r.ints("partition_spec_id", -1)[rows]
            for spec_id in np.unique(specs).tolist():
                batch = self._with_partitions_of(batch, rows[specs == spec_id], spec_id)
        rows = np.flatnonzero(lost & r.is_kind(ContentType.POSITION_DELETE))
        if len(rows):
            files = concat_batches([batch, self.parent])
            data = whole(files.entries["location"])
            at = pc.index_in(batch.entries["referenced_file"].take(build.array(rows)), value_set=data)
            tuples = None if files.partition is None else files.partition.take(whole(at))
            batch = with_files_of(batch, rows, replace(batch.take(rows), partition=tuples))
        return batch


def _names(batch: EntryBatch) -> AnyArray:
    """Return a text for each entry that identifies its file or deletion vector: location, newline, referenced file."""
    nothing = pa.scalar("", pa.string())
    referenced = pc.fill_null(batch.entries["referenced_file"], nothing)
    parts = [whole(pc.fill_null(batch.entries["location"], nothing)), whole(referenced)]
    return pc.binary_join_element_wise(*parts, "\n")


def _damaged(batch: EntryBatch) -> Mask:
    """Return a mask of the live entries that have at least one of the following faults.

    - The file size is missing.
    - The split offsets are impossible (see `_unsorted`).
    - The entry is a deletion vector that is inline, or whose data file, offset or size is missing (see `_nowhere`).
    """
    r = Rows(batch.entries)
    return r.live & (_nowhere(r) | r.null("file_size_in_bytes") | _unsorted(batch))


def _nowhere(r: Rows) -> Mask:
    """Return a mask of the live deletion vectors that are inline, or whose data file, offset or size is missing."""
    placed = r.vector_has("offset") & r.vector_has("size_in_bytes") & ~r.inline & r.referenced
    return r.live & r.is_kind(ContentType.POSITION_DELETE) & ~placed


def _unsorted(batch: EntryBatch) -> Mask:
    """Return a mask of the entries with split offsets that are negative, not ascending, or past the end of the file."""
    lists = whole(batch.entries["split_offsets"])
    out = np.zeros(len(batch), bool)
    if lists.null_count == len(batch):
        return out
    owners = np.asarray(pc.list_parent_indices(lists), np.int64)
    offsets = np.asarray(pc.fill_null(pc.list_flatten(lists), -1), np.int64)
    sizes = np.asarray(pc.fill_null(batch.entries["file_size_in_bytes"], np.iinfo(np.int64).max), np.int64)
    wrong = (offsets < 0) | (offsets >= sizes[owners])
    wrong[1:] |= (owners[1:] == owners[:-1]) & (offsets[1:] <= offsets[:-1])
    out[owners[wrong]] = True
    return out


def _sound_offsets(batch: EntryBatch) -> AnyArray:
    given = whole(batch.entries["split_offsets"])
    found: AnyArray = pc.if_else(pa.array(_unsorted(batch)), pa.scalar(None, given.type), given)
    return found


def _without_foreign_fields(batch: EntryBatch) -> EntryBatch:
    """Return a batch in which fields are null if the format does not allow them for the entry's content type."""
    r = Rows(batch.entries)
    allowed: dict[str, tuple[ContentType, ...]] = {
        "deletion_vector": (ContentType.POSITION_DELETE,),
        "referenced_file": (ContentType.POSITION_DELETE,),
        "equality_ids": (ContentType.EQUALITY_DELETE,),
        "sort_order_id": (ContentType.DATA,),
        "first_row_id": (ContentType.DATA,),
        "manifest_stats": (),
    }
    columns: dict[str, Any] = {}
    for name, kinds in allowed.items():
        surplus = ~r.null(name) & ~(r.is_kind(*kinds) if kinds else np.zeros(len(r), bool))
        if surplus.any():
            given = whole(batch.entries[name])
            columns[name] = pc.if_else(pa.array(surplus), pa.scalar(None, given.type), given)
    return batch.with_columns(**columns) if columns else batch


def vector_place(state: TableState, row: dict[str, Any]) -> dict[str, Any]:
    """Return an entry's ``deletion_vector`` with the offset and size that the footer of its Puffin file states.

    The values are unchanged if the footer cannot be read, or if it does not name the entry's data file exactly once.
    """
    given = dict(row["deletion_vector"] or {})
    if not row["location"] or not row["referenced_file"]:
        return given
    try:
        footer = read_puffin_footer(state.storage, row["location"])
    except IceexploreError:
        return given
    mine = [
        b for b in footer.blobs
        if b.referenced_data_file is not None and canonical(b.referenced_data_file) == canonical(row["referenced_file"])
    ]  # fmt: skip
    if len(mine) == 1:
        given |= {"offset": mine[0].offset, "size_in_bytes": mine[0].length}
    return given


def named_file(state: TableState, row: dict[str, Any]) -> str | None:
    """Return the data file that the footer of a Puffin file names for an entry's deletion vector.

    None if the footer cannot be read or names no data file for this deletion vector.
    """
    vector = row["deletion_vector"]
    if not row["location"] or not vector:
        return None
    try:
        footer = read_puffin_footer(state.storage, row["location"])
    except IceexploreError:
        return None
    place = vector["offset"], vector["size_in_bytes"]
    return next((b.referenced_data_file for b in footer.blobs if (b.offset, b.length) == place), None)
