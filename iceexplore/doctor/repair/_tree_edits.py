"""Repair a V4 tree without the tree of its parent snapshot.

This is for trees of the V4 draft spec, and for snapshots whose parent has expired or cannot be read.

Leaves with edited entries are written under new names. The root's rows for all manifests are recomputed, and each
manifest's DVs are merged into one.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.commits import Sandbox, keys_of, metadata_folder
from iceexplore.doctor.repair._tree_entries import Part
from iceexplore.graph import TableState
from iceexplore.manifests import (
    ContentType,
    EntryBatch,
    Manifest,
    Status,
    concat_batches,
    encode_manifest_dv,
    live,
    manifest_entry,
    root_batch,
    whole,
    write_manifest,
)
from iceexplore.manifests.rules import Rows
from iceexplore.metadata import Snapshot
from iceexplore.storage import canonical

__all__ = ["TreeEdit"]

_LIVE = (Status.EXISTING, Status.ADDED, Status.MODIFIED)


@dataclass
class TreeEdit:
    """Writes the tree of one snapshot with edited entries.

    Attributes
    ----------
    parts
        The leaves, and the files that the root lists directly, with their entries after the repair.
    parent
        The live entries of the parent snapshot that have no faulty values. Values are copied from these entries into
        entries for the same files. Empty if there is no parent, or if it has expired or cannot be read.
    names
        The random number generator from which the names of new files are made.
    """

    sandbox: Sandbox
    state: TableState
    snapshot: Snapshot
    root: Manifest
    parts: list[Part]
    parent: EntryBatch
    names: Random
    #: The new locations of leaves that were written again, by their canonical old locations.
    _moved: dict[str, str] = field(default_factory=dict)

    @cached_property
    def _rows(self) -> EntryBatch:
        return root_batch(self.root)

    def write(self) -> tuple[str, EntryBatch]:
        """Write the tree; return the location of its root, and its live files."""
        in_draft = self.root.dialect.deletion_vectors_on_entries
        leaves = [(p, self._restored(p)) for p in self.parts if p.row is not None]
        own = [self._restored(p) for p in self.parts if p.row is None]
        rows: list[EntryBatch] = []
        files = [batch.filter(live(batch.entries)) for batch in own]
        for part, made in leaves:
            batch = _with_their_files(made) if in_draft else made
            if len(batch):
                rows += self._leaf(part, batch)
                files.append(batch.filter(live(batch.entries)))
        rows += [_with_their_files(batch) if in_draft else self._with_statuses(batch) for batch in own]
        whole_root = self._affiliated(concat_batches(rows))
        data = self._bytes(whole_root, "root", self.state.metadata.default_spec_id)
        location = self._new_location("root", self.root)
        self.sandbox.storage.write(location, data, kind="manifest-list")
        return location, concat_batches(files)

    def _new_location(self, kind: str, like: Manifest) -> str:
        name = uuid.UUID(int=self.names.getrandbits(128), version=4)
        return f"{metadata_folder(self.state)}/{name}-{kind}.{like.file_format}"

    def _bytes(self, batch: EntryBatch, content: str, spec_id: int, leaf: Manifest | None = None) -> bytes:
        form = self.root if leaf is None else leaf
        return write_manifest(
            batch,
            content=content,
            metadata=self.state.metadata,
            spec_id=spec_id,
            dialect=form.dialect,
            manifest_format=form.file_format,
            partition_storage=form.partition_storage,
            snapshot_id=self.snapshot.snapshot_id if leaf is None else None,
        )

    def _leaf(self, part: Part, batch: EntryBatch) -> list[EntryBatch]:
        """Write a leaf again if its entries were edited.

        Return its row in the root, followed by the row of its manifest DV if there is one.
        """
        assert part.row is not None
        stated = self._rows.take([part.row])
        row: dict[str, Any] = build.to_pylist(stated.entries)[0]
        content = "delete" if _holds_deletes(batch) else "data"
        location, length = part.manifest.location, part.manifest.length
        if batch is not part.read:
            location = self._new_location(content, part.manifest)
            data = self._bytes(batch, content, int(row["partition_spec_id"] or 0), part.manifest)
            self.sandbox.storage.write(location, data, kind="manifest")
            length = len(data)
            self._moved[part.name] = location
        elif not part.manifest.dialect.has_root_manifest and row["manifest_stats"] is not None:
            return [stated.with_columns(deletion_vector=None), *self._vector(part, batch, location)]
        status = int(Status.ADDED if row["snapshot_id"] == self.snapshot.snapshot_id else Status.EXISTING)
        if self.root.dialect.deletion_vectors_on_entries and row["status"] in _LIVE:
            status = int(row["status"])
        made = manifest_entry(
            # The leaf's counts and statistics in the root describe all entries that the leaf stores, including those
            # that a manifest DV removes. So ``manifest_dv``, which marks the removed entries, is cleared here.
            batch.filter(pa.array(~Rows(batch.entries, part.manifest.dialect).carried)).with_columns(manifest_dv=None),
            location=location,
            length=length,
            content=content,
            metadata=self.state.metadata,
            spec_id=int(row["partition_spec_id"] or 0),
            dialect=self.root.dialect,
            status=status,
            snapshot_id=row["snapshot_id"],
            sequence_number=row["sequence_number"],
            referenced_file=row["referenced_file"] if content == "delete" else None,
            first_row_id=row["first_row_id"] if content == "data" else None,
        )
        return [made, *self._vector(part, batch, location)]

    def _vector(self, part: Part, batch: EntryBatch, location: str) -> list[EntryBatch]:
        """Return the root's row for the manifest DV of a leaf, as a list of one batch; empty if no entry is removed.

        The new manifest DV replaces all manifest DVs of the leaf. It also removes the entries that the manifest DVs of
        the parent snapshot remove. Its positions are those in the leaf after the repair: if a repair has left out the
        leaf's first entry, the entry that was at position 5 is now at position 4.

        Parameters
        ----------
        part
            The leaf.
        batch
            The leaf's entries after the repair. ``ordinal`` is an entry's position in the leaf before the repair, and
            ``manifest_dv`` is not null if a manifest DV removes the entry.
        location
            The location of the leaf after the repair.
        """
        from pyroaring import BitMap

        entries = batch.entries
        stored = np.unique(np.asarray(entries["ordinal"], np.int64))
        gone = np.unique(np.asarray(entries["ordinal"].filter(entries["manifest_dv"].is_valid()), np.int64))
        if not len(gone):
            return []
        bitmap = BitMap(np.searchsorted(stored, gone).tolist())
        # The snapshot id and the sequence number of the new manifest DV are copied from the leaf's newest manifest DV
        # in the old root. If only the parent's root has a manifest DV for this leaf, they are copied from the leaf's
        # own row in the old root.
        of_leaf = self.root.dv_rows.get(part.name) or [part.row or 0]
        columns = ["status", "snapshot_id", "sequence_number", "partition_spec_id"]
        newest = max(
            build.to_pylist(self.root.entries.select(columns).take(pa.array(of_leaf, pa.int64()))),
            key=lambda row: row["sequence_number"] or 0,
        )
        of_this = newest["snapshot_id"] == self.snapshot.snapshot_id
        return [
            EntryBatch.of_rows(
                [
                    {
                        "content_type": int(ContentType.MANIFEST_DV),
                        "location": location,
                        "file_format": "puffin",
                        "status": int(Status.ADDED if of_this else Status.EXISTING),
                        "snapshot_id": newest["snapshot_id"],
                        "sequence_number": newest["sequence_number"],
                        "file_sequence_number": newest["sequence_number"],
                        "partition_spec_id": newest["partition_spec_id"] or 0,
                        "record_count": len(bitmap),
                        "referenced_file": location,
                        "deletion_vector": {"inline_content": encode_manifest_dv(bitmap)},
                    }
                ]
            )
        ]

    def _restored(self, part: Part) -> EntryBatch:
        """Return the entries of a part, with impossible statuses changed to EXISTING or ADDED.

        A status is impossible if the spec does not define its number, or if it is REPLACED, but no live entry lists the
        file (see `_in_vain`).

        - If the parent snapshot lists the file, the status becomes EXISTING. The snapshot id and the sequence numbers
          are copied from the parent's entry, because a commit overwrites them when it marks an entry REPLACED.
        - If not, REPLACED becomes ADDED. An undefined status becomes ADDED if the entry has no sequence number, or if
          its snapshot id is that of this snapshot. Otherwise it becomes EXISTING.

        Entries that become ADDED also get a snapshot id and sequence numbers if they have none.
        """
        batch = part.made
        r = Rows(batch.entries)
        strange = ~np.isin(r.status, [int(s) for s in Status])
        replaced = self._in_vain(batch)
        if not (strange | replaced).any():
            return batch
        places = np.asarray(
            pc.fill_null(pc.index_in(keys_of(batch.entries), value_set=keys_of(self.parent.entries)), -1), np.int64
        )
        known = (strange | replaced) & (places >= 0)
        number = self.snapshot.sequence_number
        if part.row is not None:
            number = self.root.entries["sequence_number"][part.row].as_py()
        # If an entry has an undefined status and no sequence number, its status must have been ADDED: only ADDED
        # entries may have a null sequence number, to inherit the number of the manifest.
        new = ~known & (replaced | (strange & (r.null("sequence_number") | self._is_mine(r))))
        columns: dict[str, Any] = {
            "status": np.where(new, int(Status.ADDED), np.where(known | strange, int(Status.EXISTING), r.status))
        }
        before = self.parent.entries.take(build.array(places, mask=~known))
        for name in ("snapshot_id", "sequence_number", "file_sequence_number"):
            given = whole(batch.entries[name])
            own = number if name != "snapshot_id" else self.snapshot.snapshot_id
            given = pc.if_else(pa.array(new), pc.fill_null(given, pa.scalar(own, given.type)), given)
            columns[name] = pc.if_else(pa.array(known), whole(before[name]), given)
        columns["status"] = pa.array(columns["status"].astype(np.int32))
        return batch.with_columns(**columns)

    def _is_mine(self, r: Rows) -> npt.NDArray[np.bool_]:
        mine: npt.NDArray[np.bool_] = r.ints("snapshot_id", -1) == self.snapshot.snapshot_id
        return mine

    def _in_vain(self, batch: EntryBatch) -> npt.NDArray[np.bool_]:
        """Return a mask of the entries that are wrongly marked REPLACED by the commit of this snapshot.

        REPLACED means that another entry of the same tree now lists the file. The mark is wrong if no live entry of the
        tree lists it.
        """
        r = Rows(batch.entries)
        replaced: npt.NDArray[np.bool_] = (r.status == Status.REPLACED) & self._is_mine(r)
        if not replaced.any():
            return replaced
        names = [p.made.entries["location"].filter(live(p.made.entries)) for p in self.parts]
        alive = pa.chunked_array([c for n in names for c in n.chunks], pa.string()).combine_chunks()
        replaced &= ~np.asarray(pc.is_in(batch.entries["location"], value_set=alive))
        return replaced

    def _with_statuses(self, batch: EntryBatch) -> EntryBatch:
        """Return the files that the root lists directly, with correct statuses.

        A live file is ADDED if its snapshot id is that of this snapshot, and otherwise EXISTING. An entry that is not
        live, such as a DELETED one, is kept only if its snapshot id is that of this snapshot: what earlier commits
        removed is not repeated.
        """
        r = Rows(batch.entries)
        mine = self._is_mine(r)
        status = np.where(r.live, np.where(mine, int(Status.ADDED), int(Status.EXISTING)), r.status).astype(np.int32)
        return batch.with_columns(status=pa.array(status)).filter(pa.array(r.live | mine))

    def _affiliated(self, rows: EntryBatch) -> EntryBatch:
        """Return a root's rows, with updated references from delete manifests to data manifests.

        The row of a delete manifest may name a data manifest in ``referenced_file``. If this data manifest has a new
        location, the name is replaced with this location. If it is no longer in the root, the name is removed.
        """
        r = Rows(rows.entries)
        deletes = r.is_kind(ContentType.DELETE_MANIFEST)
        if not (deletes & r.referenced).any():
            return rows
        data = set(build.to_pylist(rows.entries["location"].filter(pa.array(r.is_kind(ContentType.DATA_MANIFEST)))))
        owners = build.to_pylist(rows.entries["referenced_file"])
        for row in np.flatnonzero(deletes).tolist():
            owner = self._moved.get(canonical(owners[row] or ""), owners[row])
            owners[row] = owner if owner in data else None
        return rows.with_columns(referenced_file=pa.array(owners, pa.string()))


def _holds_deletes(batch: EntryBatch) -> bool:
    return not Rows(batch.entries).is_kind(ContentType.DATA).any()


def _with_their_files(batch: EntryBatch) -> EntryBatch:
    """Remove deletion vectors whose data files are not in the same batch. This is for trees of the V4 draft spec."""
    r = Rows(batch.entries)
    vectors = r.is_kind(ContentType.POSITION_DELETE) & r.has_vector
    data = batch.entries["location"].filter(pa.array(r.is_kind(ContentType.DATA))).combine_chunks()
    lost: npt.NDArray[np.bool_] = vectors & ~np.asarray(pc.is_in(batch.entries["referenced_file"], value_set=data))
    return batch if not lost.any() else batch.filter(pa.array(~lost))
