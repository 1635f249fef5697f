"""The metadata of a table while it is repaired: edits of the document, of lists and of manifests, written once."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.commits import Sandbox
from iceexplore.doctor.examination._examination import Examination
from iceexplore.graph import TableState
from iceexplore.manifests import (
    ContentType,
    EntryBatch,
    Manifest,
    ManifestReader,
    concat_batches,
    live,
    manifest_entry,
    write_manifest,
    write_manifest_list,
)
from iceexplore.metadata import Snapshot
from iceexplore.storage import canonical

__all__ = ["ALL_PARTS", "Draft", "LeafEdit", "live_mask", "number_in"]

#: Changes the entries of a manifest; it gets the entries as read, after inheritance.
LeafEdit = Callable[[EntryBatch], EntryBatch]

#: The parts of a manifest that writing it again needs.
ALL_PARTS = frozenset({"entries", "partition", "stats"})


@dataclass
class Draft:
    """Edits that are collected first and written together, so that each file is written once.

    Attributes
    ----------
    state
        The table as it is.
    document
        A copy of its metadata file, which repairs change in place.
    leaf_edits
        By canonical location, the edits of a manifest; a manifest without edits is written again as it was read.
    dropped_leaves
        Canonical locations of manifests to leave out of every list.
    rewritten_roots
        Ids of snapshots whose manifest list is written again.
    dropped_snapshots
        Ids of snapshots to remove.
    recovered
        By canonical location, the entries of lost manifests, which are written again.
    new_files
        By location, delete files to write.
    left
        Why findings are left to a person, by code and place.
    """

    state: TableState
    document: dict[str, Any]
    leaf_edits: dict[str, list[LeafEdit]] = field(default_factory=dict)
    dropped_leaves: set[str] = field(default_factory=set)
    rewritten_roots: set[int] = field(default_factory=set)
    dropped_snapshots: set[int] = field(default_factory=set)
    recovered: dict[str, EntryBatch] = field(default_factory=dict)
    new_files: dict[str, bytes] = field(default_factory=dict)
    left: dict[tuple[str, str], str] = field(default_factory=dict)
    _written: dict[str, tuple[str, int, EntryBatch]] = field(default_factory=dict)

    @classmethod
    def of(cls, state: TableState) -> Draft:
        """Begin a draft without edits."""
        return cls(state, copy.deepcopy(dict(state.opened.document)))

    @cached_property
    def examination(self) -> Examination:
        """The current snapshot as the checks look at it: a table of the entries of all its manifests."""
        snapshot = self.state.snapshot
        return Examination.of(self.state, [] if snapshot is None else [snapshot], "metadata")

    def edit_leaf(self, location: str, edit: LeafEdit | None = None) -> None:
        """Have a manifest written again, with this edit."""
        edits = self.leaf_edits.setdefault(canonical(location), [])
        if edit is not None:
            edits.append(edit)

    def objects(self, key: str) -> list[dict[str, Any]]:
        """Return the objects of a list in the document; there are none if it is no list."""
        found = self.document.get(key)
        return [s for s in found if isinstance(s, dict)] if isinstance(found, list) else []

    def snapshots(self) -> list[dict[str, Any]]:
        """Return the document's snapshots."""
        return self.objects("snapshots")

    def refs(self) -> dict[str, dict[str, Any]]:
        """Return the document's refs that are objects."""
        found = self.document.get("refs")
        return {n: r for n, r in found.items() if isinstance(r, dict)} if isinstance(found, dict) else {}

    # Writing ----------------------------------------------------------------------------------------------------------

    def write(self, sandbox: Sandbox) -> None:
        """Write the edited manifests and lists to a sandbox, and commit the document.

        Raises
        ------
        IceexploreError
            A manifest or list cannot be written, for example because a required value is missing.
        """
        self._drop_snapshots()
        for location, data in self.new_files.items():
            sandbox.storage.write(location, data, kind="delete-file")
        by_id = {s.snapshot_id: s for s in self.state.metadata.snapshots}
        for values in self.snapshots():
            snapshot = by_id.get(number_in(values, "snapshot-id") or 0)
            if snapshot is not None:
                self._write_root(sandbox, snapshot, values)
        document = self.document
        sandbox.commit(document_change=lambda _d, _ms: document, what="repair")

    def _drop_snapshots(self) -> None:
        """Remove the dropped snapshots, and move or remove the refs that point to them."""
        if not self.dropped_snapshots:
            return
        gone = self.dropped_snapshots
        parents = {number_in(s, "snapshot-id"): number_in(s, "parent-snapshot-id") for s in self.snapshots()}

        def surviving(snapshot_id: int | None) -> int | None:
            seen: set[int | None] = set()
            while snapshot_id in gone and snapshot_id not in seen:
                seen.add(snapshot_id)
                snapshot_id = parents.get(snapshot_id)
            return snapshot_id if snapshot_id in parents else None

        document = self.document
        document["snapshots"] = [s for s in self.snapshots() if number_in(s, "snapshot-id") not in gone]
        refs = {}
        for name, ref in self.refs().items():
            at = surviving(number_in(ref, "snapshot-id"))
            if at is not None and (at == ref.get("snapshot-id") or ref.get("type") == "branch"):
                refs[name] = {**ref, "snapshot-id": at}
        if "refs" in document:
            document["refs"] = refs
        at = surviving(number_in(document, "current-snapshot-id"))
        document["current-snapshot-id"] = -1 if at is None else at
        for key in ("snapshot-log", "statistics", "partition-statistics"):
            if isinstance(document.get(key), list):
                document[key] = [e for e in self.objects(key) if number_in(e, "snapshot-id") not in gone]

    def _write_root(self, sandbox: Sandbox, snapshot: Snapshot, values: dict[str, Any]) -> None:
        reader = self.state.reader
        root = reader.root(snapshot)
        if root.dialect.has_root_manifest or not root.dialect:
            return
        names = [canonical(name or "") for name in build.to_pylist(root.entries["location"])]
        changed = self.leaf_edits.keys() | self.recovered.keys() | self.dropped_leaves
        edited = any(name in changed for name in names)
        if not (edited or snapshot.snapshot_id in self.rewritten_roots):
            return
        corrected = self._with_sequence_numbers(root)
        rows = []
        batches = []
        for ordinal, name in enumerate(names):
            if name in self.dropped_leaves:
                continue
            row, batch = self._write_leaf(sandbox, corrected, ordinal, name)
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
        sandbox.storage.write(location, data, kind="manifest-list")
        values["manifest-list"] = location
        values.pop("manifests", None)
        _set_totals(values, batches)

    def _with_sequence_numbers(self, root: Manifest) -> Manifest:
        """Return the list with each manifest's sequence number taken from the snapshot that added the manifest."""
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

    def _write_leaf(
        self, sandbox: Sandbox, root: Manifest, ordinal: int, name: str
    ) -> tuple[EntryBatch | None, EntryBatch | None]:
        """Return the list's row of a manifest, recomputed from its entries, and the entries; None if none is left."""
        stated = build.to_pylist(root.entries.slice(ordinal, 1))[0]
        metadata = self.state.metadata
        # a fresh reader: the row may have another sequence number than the one that is cached
        reader = ManifestReader(self.state.storage, metadata, copy.copy(self.state.problems))
        dialect = root.dialect if root.dialect != "inline" else "v1"
        if name in self._written:
            location, length, batch = self._written[name]
        else:
            edits = self.leaf_edits.get(name)
            if name in self.recovered:
                edits, batch = edits or [], self.recovered[name]
                location, length = stated["location"], 0
            else:
                leaf = reader.leaf(root, ordinal, ALL_PARTS)
                if not leaf.dialect:  # unreadable, and no repair was planned for it: its row stays as it is
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
                    sandbox.storage.write(location, data, kind="manifest")
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
        return self.new_location(of, f"{self.state.metadata.location.rstrip('/')}/metadata", f"-{kind}{suffix}")

    def new_location(self, of: str, folder: str, end: str) -> str:
        """Return a new name, always the same for the same file and metadata file, so that a plan can be repeated."""
        name = uuid.uuid5(uuid.NAMESPACE_URL, f"{self.state.metadata_location}#{of}")
        return f"{folder}/{name}{end}"


def number_in(values: Mapping[str, Any], key: str) -> int | None:
    """Return a whole number of a JSON object; None if it is missing or something else."""
    found = values.get(key)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _content_of(batch: EntryBatch) -> str:
    """Return what a manifest lists, by its entries: its header or its row in the list may be wrong."""
    return "data" if batch.entries["content_type"][0].as_py() in (None, ContentType.DATA) else "delete"


def live_mask(batch: EntryBatch) -> npt.NDArray[np.bool_]:
    """Return which entries of a batch are live."""
    return np.asarray(live(batch.entries))


def _set_totals(values: dict[str, Any], batches: list[EntryBatch]) -> None:
    """Set the totals that a snapshot's summary has, from the live entries of its manifests."""
    summary = values.get("summary")
    if not isinstance(summary, Mapping):
        return
    kinds: list[npt.NDArray[Any]] = []
    records: list[npt.NDArray[Any]] = []
    sizes: list[npt.NDArray[Any]] = []
    for batch in batches:
        entries = batch.entries.filter(pa.array(live_mask(batch)))
        kinds.append(np.asarray(pc.fill_null(entries["content_type"], 0)))
        records.append(np.asarray(pc.fill_null(entries["record_count"], 0)))
        sizes.append(np.asarray(pc.fill_null(entries["file_size_in_bytes"], 0)))
    kind = np.concatenate(kinds) if kinds else np.zeros(0, np.int64)
    record = np.concatenate(records) if records else np.zeros(0, np.int64)
    size = np.concatenate(sizes) if sizes else np.zeros(0, np.int64)
    found = {
        "total-data-files": int((kind == ContentType.DATA).sum()),
        "total-delete-files": int((kind != ContentType.DATA).sum()),
        "total-records": int(record[kind == ContentType.DATA].sum()),
        "total-position-deletes": int(record[kind == ContentType.POSITION_DELETE].sum()),
        "total-equality-deletes": int(record[kind == ContentType.EQUALITY_DELETE].sum()),
        "total-files-size": int(size.sum()),
    }
    values["summary"] = {**summary, **{k: str(v) for k, v in found.items() if k in summary}}
