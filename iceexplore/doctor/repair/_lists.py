"""Write manifest lists of v1 to v3 and their manifests again, with a draft's edits; write each file only once."""

from __future__ import annotations

import copy
from typing import Any

import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.commits import Sandbox, metadata_folder
from iceexplore.doctor.repair._draft import ALL_PARTS, Draft, set_totals
from iceexplore.manifests import (
    ContentType,
    EntryBatch,
    Manifest,
    ManifestReader,
    concat_batches,
    manifest_entry,
    write_manifest,
    write_manifest_list,
)
from iceexplore.metadata import Snapshot
from iceexplore.storage import canonical

__all__ = ["ListWriter"]


class ListWriter:
    """Writes the manifest lists that a draft changes."""

    def __init__(self, draft: Draft, sandbox: Sandbox) -> None:
        self.draft = draft
        self.state = draft.state
        self.sandbox = sandbox
        self._written: dict[str, tuple[str, int, EntryBatch]] = {}

    def write(self, snapshot: Snapshot, values: dict[str, Any]) -> None:
        """Write a snapshot's manifest list again if the draft changes it.

        Parameters
        ----------
        values
            The snapshot's object in the metadata. It gets the new location of the manifest list, and new totals.

        Raises
        ------
        IceexploreError
            A manifest or list cannot be written, for example because a required value is missing.
        """
        reader = self.state.reader
        root = reader.root(snapshot)
        if root.dialect.has_root_manifest or not root.dialect:
            return
        names = [canonical(name or "") for name in build.to_pylist(root.entries["location"])]
        changed = self.draft.leaf_edits.keys() | self.draft.recovered.keys() | self.draft.dropped_leaves
        edited = any(name in changed for name in names)
        if not (edited or snapshot.snapshot_id in self.draft.rewritten_roots):
            return
        corrected = self._with_sequence_numbers(root)
        rows = []
        batches = []
        for ordinal, name in enumerate(names):
            if name in self.draft.dropped_leaves:
                continue
            row, batch = self._write_leaf(corrected, ordinal, name)
            if row is not None and batch is not None:
                rows.append(row)
                batches.append(batch)
        dialect = root.dialect if root.dialect != "inline" else "v1"
        data = write_manifest_list(
            concat_batches(rows) if rows else EntryBatch.empty(),
            metadata=self.state.metadata,
            dialect=dialect,
            snapshot_id=snapshot.snapshot_id,
            parent_snapshot_id=snapshot.parent_snapshot_id,
            sequence_number=snapshot.sequence_number or 0,
            first_row_id=snapshot.first_row_id,
        )
        location = self._new_location(f"snap {snapshot.snapshot_id}", f"snap-{snapshot.snapshot_id}", ".avro")
        self.sandbox.storage.write(location, data, kind="manifest-list")
        values["manifest-list"] = location
        values.pop("manifests", None)
        set_totals(values, batches)

    def _with_sequence_numbers(self, root: Manifest) -> Manifest:
        """Return a manifest list in which each manifest has the sequence number of the snapshot that added it.

        If the table lacks this snapshot, the manifest keeps its sequence number.
        """
        known = {s.snapshot_id: s.sequence_number for s in self.state.metadata.snapshots if s.sequence_number}
        entries = root.entries
        given = entries["sequence_number"].to_pylist()
        right = [
            n if i is None else known.get(i, n) for i, n in zip(entries["snapshot_id"].to_pylist(), given, strict=True)
        ]
        if right == given:
            return root
        column = entries.schema.get_field_index("sequence_number")
        other = copy.copy(root)
        other.entries = entries.set_column(column, "sequence_number", pa.array(right, pa.int64()))
        return other

    def _write_leaf(self, root: Manifest, ordinal: int, name: str) -> tuple[EntryBatch | None, EntryBatch | None]:
        """Write a manifest again if the draft edits it, and return its row and its entries.

        Parameters
        ----------
        root
            The manifest list.
        ordinal, name
            The manifest's row number in this list, and its canonical location.

        Returns
        -------
        tuple
            The manifest's row for the new manifest list, and the manifest's entries. Both are None if the manifest has
            no entries any more. If the manifest cannot be read and no entries were recovered for it, the row is the
            same as in ``root``, and the batch of entries is empty.
        """
        stated = build.to_pylist(root.entries.slice(ordinal, 1))[0]
        metadata = self.state.metadata
        # The manifest is read again, because its entries inherit the sequence number of its row in the manifest list,
        # and this number may have been corrected.
        reader = ManifestReader(self.state.storage, metadata, copy.copy(self.state.problems))
        dialect = root.dialect if root.dialect != "inline" else "v1"
        if name in self._written:
            location, length, batch = self._written[name]
        else:
            edits = self.draft.leaf_edits.get(name)
            if name in self.draft.recovered:
                edits, batch = edits or [], self.draft.recovered[name]
                location, length = stated["location"], 0
            else:
                leaf = reader.leaf(root, ordinal, ALL_PARTS)
                if not leaf.dialect:  # unreadable, and not to be repaired: the manifest's row stays as it is
                    return EntryBatch(root.entries.slice(ordinal, 1)), EntryBatch.empty()
                batch = EntryBatch.of(leaf) if edits is not None else EntryBatch.of(leaf, ())
                location, length = leaf.location, leaf.length
            if edits is not None:
                for edit in edits:
                    batch = edit(batch)
                if len(batch):
                    data = write_manifest(
                        batch,
                        content=_content_of(batch),
                        metadata=metadata,
                        spec_id=stated["partition_spec_id"],
                        dialect=dialect,
                        snapshot_id=stated["snapshot_id"],
                    )
                    location, length = self._new_location(name, "m0", ".avro"), len(data)
                    self.sandbox.storage.write(location, data, kind="manifest")
            self._written[name] = location, length, batch
        if not len(batch):
            return None, None
        row = manifest_entry(
            batch,
            location=location,
            length=length,
            content=_content_of(batch),
            metadata=metadata,
            spec_id=stated["partition_spec_id"],
            dialect=dialect,
            status=stated["status"],
            snapshot_id=stated["snapshot_id"],
            sequence_number=stated["sequence_number"],
            first_row_id=stated["first_row_id"],
        )
        return row, batch

    def _new_location(self, of: str, kind: str, suffix: str) -> str:
        return self.draft.new_location(of, metadata_folder(self.state), f"-{kind}{suffix}")


def _content_of(batch: EntryBatch) -> str:
    """Return the content of a manifest, ``data`` or ``delete``, as its first entry shows.

    The header of the manifest and its row in the manifest list may be wrong.
    """
    return "data" if batch.entries["content_type"][0].as_py() in (None, ContentType.DATA) else "delete"
