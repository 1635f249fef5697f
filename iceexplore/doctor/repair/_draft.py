"""Collect the edits of a repair to a table's metadata file, manifest lists, V4 trees and manifests."""

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
from iceexplore.doctor.examination._examination import Examination
from iceexplore.graph import TableState
from iceexplore.manifests import ContentType, EntryBatch, live, whole
from iceexplore.storage import canonical

__all__ = ["ALL_PARTS", "Draft", "LeafEdit", "live_mask", "number_in", "set_totals"]

#: A function that takes a manifest's entries, with inherited values filled in, and returns the edited entries.
LeafEdit = Callable[[EntryBatch], EntryBatch]

#: The parts of a manifest that are needed to write it again.
ALL_PARTS = frozenset({"entries", "partition", "stats"})


@dataclass
class Draft:
    """The edits of a repair. They are collected first and written together, so that each file is written only once.

    Attributes
    ----------
    state
        The table before the repair.
    document
        A copy of the table's metadata JSON, which repairs change in place.
    leaf_edits
        The edits of each manifest that must be written again, by its canonical location. With an empty list of edits,
        the manifest is written again with the entries that were read.
    dropped_leaves
        Canonical locations of manifests to leave out of every list and tree.
    rewritten_roots
        Ids of snapshots whose manifest list or tree is written again.
    dropped_snapshots
        Ids of snapshots to remove.
    recovered
        The recovered entries of each lost manifest that is written anew, by the canonical location of the lost file.
    new_files
        The bytes of each delete file to write, by its new location.
    left
        The reasons why findings cannot be repaired automatically, by the code and place of the finding.
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

    @classmethod
    def of(cls, state: TableState) -> Draft:
        """Return a draft for a table, still without edits, with a copy of its metadata JSON as `document`."""
        return cls(state, copy.deepcopy(dict(state.opened.document)))

    @cached_property
    def examination(self) -> Examination:
        """An examination of the current snapshot, with a table of the entries of all its manifests."""
        snapshot = self.state.snapshot
        return Examination.of(self.state, [] if snapshot is None else [snapshot], "metadata")

    @cached_property
    def in_trees_only(self) -> frozenset[str]:
        """The canonical locations of root manifests, and of the manifests that only root manifests list."""
        names: dict[bool, set[str]] = {True: set(), False: set()}
        for snapshot in self.state.metadata.snapshots:
            root = self.state.reader.root(snapshot)
            mine = names[bool(root.dialect.has_root_manifest)]
            mine |= {canonical(n) for n in [root.location, *build.to_pylist(root.entries["location"])] if n}
        return frozenset(names[True] - names[False])

    def edit_leaf(self, location: str, edit: LeafEdit | None = None) -> None:
        """Request that a manifest be written again, with this edit if one is given."""
        edits = self.leaf_edits.setdefault(canonical(location), [])
        if edit is not None:
            edits.append(edit)

    def objects(self, key: str) -> list[dict[str, Any]]:
        """Return the JSON objects in the list at a key of the metadata; empty if the value is not a list."""
        found = self.document.get(key)
        return [s for s in found if isinstance(s, dict)] if isinstance(found, list) else []

    def snapshots(self) -> list[dict[str, Any]]:
        """Return the JSON objects of the metadata's snapshots."""
        return self.objects("snapshots")

    def refs(self) -> dict[str, dict[str, Any]]:
        """Return the JSON objects of the metadata's refs by name; malformed refs are left out."""
        found = self.document.get("refs")
        return {n: r for n, r in found.items() if isinstance(r, dict)} if isinstance(found, dict) else {}

    def new_location(self, of: str, folder: str, end: str) -> str:
        """Return a location for a new file.

        The location depends only on the arguments and on the location of the metadata file, so that plans are
        reproducible.

        Parameters
        ----------
        of
            A text that identifies the file, such as the location of the file that it replaces.
        folder, end
            The folder of the new file, and the end of its name.
        """
        name = uuid.uuid5(uuid.NAMESPACE_URL, f"{self.state.metadata_location}#{of}")
        return f"{folder}/{name}{end}"


def number_in(values: Mapping[str, Any], key: str) -> int | None:
    """Return the whole number at a key of a JSON object; None if the key is missing or its value is something else."""
    found = values.get(key)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def live_mask(batch: EntryBatch) -> npt.NDArray[np.bool_]:
    """Return a mask of a batch's live entries."""
    return np.asarray(live(batch.entries))


def set_totals(values: dict[str, Any], batches: list[EntryBatch]) -> None:
    """Recompute the totals in a snapshot's summary from the live entries of its manifests.

    Totals that the summary does not have are not added.

    Parameters
    ----------
    values
        The snapshot's object in the metadata.
    batches
        The entries of each of the snapshot's manifests.
    """
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
        # The size of a deletion vector is that of its blob, because several vectors may share one Puffin file.
        own = pc.struct_field(whole(entries["deletion_vector"]), "size_in_bytes")
        sizes.append(np.asarray(pc.fill_null(pc.coalesce(own, whole(entries["file_size_in_bytes"])), 0)))
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
