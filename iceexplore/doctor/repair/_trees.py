"""Write the V4 trees that a repair edits, each as a change to the tree of its parent snapshot.

A commit turns the live files of its parent snapshot into those of a new snapshot. So a damaged tree is written again by
applying the difference between these two sets of files to the parent's tree, as a commit would. This produces correct
statuses, manifest DVs, counts, statistics and affiliations. Snapshots are written oldest first. If a snapshot is
written again, its child snapshots must be written again, too, because their trees list manifests by name, and its
manifests have new names.
"""

from __future__ import annotations

import copy
import uuid
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.commits import (
    Change,
    CommitWriter,
    LayoutOptions,
    Sandbox,
    apply_to_root,
    check_rules,
    keys_of,
    rules_violated_by,
)
from iceexplore.doctor.repair._compacted import compacted_files, lost_manifests, without_keys
from iceexplore.doctor.repair._corrections import Corrections
from iceexplore.doctor.repair._draft import Draft, number_in, set_totals
from iceexplore.doctor.repair._sound_values import SoundValues, with_sound_types
from iceexplore.doctor.repair._tree_edits import TreeEdit
from iceexplore.doctor.repair._tree_entries import Part, live_files, parts_of, sound_files, tidy
from iceexplore.errors import IceexploreError, Problems
from iceexplore.graph import TableState, live_manifests, state_of
from iceexplore.manifests import ContentType, EntryBatch, Manifest, ManifestReader, Status, concat_batches, live, whole
from iceexplore.manifests.rules import MANIFESTS, Rows
from iceexplore.metadata import Snapshot, in_order
from iceexplore.storage import canonical

__all__ = ["write_trees"]


def write_trees(draft: Draft, sandbox: Sandbox) -> None:
    """Write the trees that a draft changes, and update the trees' locations in the draft's document.

    Raises
    ------
    IceexploreError
        A tree cannot be written, for example because a required value of an entry cannot be restored.
    """
    _Trees(draft, sandbox).write()


class _Trees:
    """Writes the trees that a repair changes, and the trees of other snapshots that must be written again, too.

    If the tree of a snapshot is written again, its manifests have new names. So the trees of child snapshots must be
    written again, because they list these manifests. Faulty trees of parents are also written again (see `_shares`).
    """

    def __init__(self, draft: Draft, sandbox: Sandbox) -> None:
        self.draft = draft
        self.sandbox = sandbox
        state = draft.state
        self.reader = ManifestReader(state.storage, state.metadata, Problems())
        self.corrections = Corrections()
        #: Ids of parent snapshots with manifests that cannot be read. The trees of their child snapshots cannot be
        #: written as changes to the parents' trees, so `TreeEdit` writes them.
        self.lost: set[int] = set()
        #: By snapshot id: the canonical locations of the snapshot's lost manifests, and the entries that were recovered
        #: for them.
        self.recovered: dict[int, tuple[frozenset[str], EntryBatch]] = {}
        kept = [s for s in state.metadata.snapshots if s.snapshot_id not in draft.dropped_snapshots]
        self.snapshots = {s.snapshot_id: s for s in in_order(kept)}
        roots = {i: self.reader.root(s) for i, s in self.snapshots.items()}
        self.roots = {i: root for i, root in roots.items() if root.dialect}
        self.trees = {i: with_sound_types(root) for i, root in self.roots.items() if root.dialect.has_root_manifest}

    def write(self) -> None:
        """Write the trees that `_wanted` names, oldest first, and enter their locations and totals in the metadata."""
        wanted = self._wanted()
        values = {number_in(v, "snapshot-id"): v for v in self.draft.snapshots()}
        for snapshot_id, snapshot in self.snapshots.items():
            if snapshot_id in wanted and snapshot_id in values:
                location, files = self._written(snapshot)
                one = values[snapshot_id]
                one["root-manifest"] = location
                one.pop("manifest-list", None)
                one.pop("manifests", None)
                set_totals(one, [files])

    # The snapshots to write -------------------------------------------------------------------------------------------

    def _wanted(self) -> set[int]:
        """Return the ids of the snapshots whose trees must be written again, and fill `corrections` and `lost`.

        A tree must be written again for one of three reasons:

        - The repair edits it.
        - The tree of a child snapshot must be written again, and this tree has faults of its own (see `_shares`).
        - The tree of the parent snapshot must be written again.

        A tree of the V4 draft spec is written without the tree of its parent, so only the first reason applies to it.

        `corrections` gets the corrected values of the trees that the repair edits. `lost` gets the parent snapshots
        whose manifests cannot be read.
        """
        edited = [i for i in self.trees if self._is_edited(i)]
        wanted = set(edited)
        for snapshot_id in edited:
            for part in self._parts(self.snapshots[snapshot_id], None):
                self.corrections.add(part.read, part.made)
        todo = list(edited)
        while todo:
            child = todo.pop()
            parent = self._parent(self.snapshots[child])
            if parent is None or self._is_draft(child) or parent.snapshot_id in wanted | self.lost:
                continue
            if not self._is_readable(parent):
                self.lost.add(parent.snapshot_id)
            elif parent.snapshot_id in self.trees and not self._is_draft(parent.snapshot_id) and self._shares(parent):
                wanted.add(parent.snapshot_id)
                todo.append(parent.snapshot_id)
        for snapshot_id, snapshot in self.snapshots.items():
            if snapshot.parent_snapshot_id in wanted and snapshot_id in self.trees and not self._is_draft(snapshot_id):
                wanted.add(snapshot_id)
        return wanted

    def _is_edited(self, snapshot_id: int) -> bool:
        root, draft = self.trees[snapshot_id], self.draft
        if snapshot_id in draft.rewritten_roots or canonical(root.location) in draft.leaf_edits:
            return True
        names = build.to_pylist(root.entries["location"].take(pa.array(live_manifests(root), pa.int64())))
        return any(canonical(n or "") in draft.leaf_edits or canonical(n or "") in draft.dropped_leaves for n in names)

    def _is_draft(self, snapshot_id: int) -> bool:
        """Return whether a snapshot's tree follows the V4 draft spec instead of the proposal."""
        root = self.trees.get(snapshot_id)
        return root is not None and bool(root.dialect.deletion_vectors_on_entries)

    def _parent(self, snapshot: Snapshot) -> Snapshot | None:
        return self.snapshots.get(snapshot.parent_snapshot_id or -1)

    def _is_readable(self, snapshot: Snapshot) -> bool:
        """Return whether all manifests of a snapshot can be read, except those that the draft leaves out."""
        root = self.roots.get(snapshot.snapshot_id)
        if root is None:
            return False
        names = build.to_pylist(root.entries["location"])
        rows = [r for r in live_manifests(root) if canonical(names[r] or "") not in self.draft.dropped_leaves]
        return all(leaf.dialect for leaf in (self.reader.leaves(root, rows) if rows else ()))

    def _shares(self, snapshot: Snapshot) -> bool:
        """Return whether a snapshot's tree has faults, so that it must be written again before the tree of its child.

        It has faults if it cannot be read, if reading it reports an error or a warning, if it breaks a rule of the
        format, or if an entry has wrong values that the repair has corrected for the same file in the tree of a later
        snapshot (see `Corrections.concerned`).
        """
        root, state = self.trees[snapshot.snapshot_id], self.draft.state
        problems = Problems()
        reader = ManifestReader(state.storage, state.metadata, problems)
        try:
            files = live_files(reader, reader.root(snapshot))
            broken = check_rules(state, snapshot, relaxed=_relaxed(root))
        except IceexploreError:
            return True
        found = any(item.severity in ("error", "warning") for item in problems)
        return found or bool(broken) or len(self.corrections.concerned(files)) > 0

    # Writing a tree ---------------------------------------------------------------------------------------------------

    def _parts(self, snapshot: Snapshot, corrections: Corrections | None) -> list[Part]:
        values = SoundValues(self.draft.state, self._files_before(snapshot), self.sandbox)
        return parts_of(self.draft, self.reader, snapshot, values, corrections)

    def _files_before(self, snapshot: Snapshot) -> EntryBatch:
        """Return the live entries of the parent snapshot, without those that have faulty values (see `sound_files`).

        A repair copies values from these entries into the snapshot's entries for the same files. The result is empty if
        the snapshot has no parent, or if the parent has expired or cannot be read.
        """
        parent = self._parent(snapshot)
        if parent is None or parent.snapshot_id in self.lost or not self._is_readable(parent):
            return EntryBatch.empty()
        root = self.trees.get(parent.snapshot_id, self.roots[parent.snapshot_id])
        return sound_files(self.draft.state, self.reader, root, self.draft.dropped_leaves)

    def _written(self, snapshot: Snapshot) -> tuple[str, EntryBatch]:
        """Write a snapshot's tree; return the location of its root, and its live files."""
        parts = self._parts(snapshot, self.corrections)
        removed = self._removed_before(snapshot)
        for part in parts:
            part.remove(removed.get(part.name, []))
        parts += self._recovered_parts(snapshot, parts)
        tidy(parts)
        base = None if self._is_draft(snapshot.snapshot_id) else self._base_of(snapshot)
        if base is None:
            root, before = self.trees[snapshot.snapshot_id], self._files_before(snapshot)
            names = self._names(snapshot)
            return TreeEdit(self.sandbox, self.draft.state, snapshot, root, parts, before, names).write()
        files = concat_batches([p.made.filter(live(p.made.entries)) for p in parts])
        # The new root stores partition values in the same way as the old root. If the old root lists no files directly,
        # it has no partition values, so the new root stores them in the same way as the first V4 leaf.
        storage = [p.manifest.partition_storage for p in parts if p.manifest.dialect.has_root_manifest]
        return self._replayed(snapshot, files, base, storage[0] if storage else "derived")

    def _recovered_parts(self, snapshot: Snapshot, parts: list[Part]) -> list[Part]:
        """Return the files that a snapshot's lost manifests listed, as one part; an empty list if there are none.

        The new root lists these files directly. They are found in one of two ways:

        - If the commit of this snapshot was a compaction and wrote the lost manifests, it merged manifests of the
          parent snapshot, which list the same files (see `compacted_files`).
        - If one of the lost manifests is also lost in the parent snapshot, the files that were recovered for the parent
          are taken.

        Files that are in ``parts`` already are left out. If a manifest DV removed entries of a lost manifest, it is
        unknown which files these entries were for, so these files are live again.
        """
        root = self.trees[snapshot.snapshot_id]
        lost = lost_manifests(self.draft, root)
        if not lost:
            return []
        found = [compacted_files(self.draft, self.reader, snapshot)]
        names, inherited = self.recovered.get(snapshot.parent_snapshot_id or -1, (frozenset(), EntryBatch.empty()))
        if names & lost.keys():
            found.append(inherited)
        made = concat_batches(found)
        for part in parts:
            made = without_keys(made, keys_of(part.made.entries))
        self.recovered[snapshot.snapshot_id] = frozenset(lost), made
        return [Part(root, None, made, made)] if len(made) else []

    def _base_of(self, snapshot: Snapshot) -> TableState | None:
        """Return the state of the table at the parent of a snapshot.

        If the parent's tree was written again in this repair, the state has the new tree. If the snapshot has no
        parent, the state is that of a table without a current snapshot. The result is None if the parent has expired or
        cannot be read.
        """
        opened = replace(self.sandbox.state.opened, document=copy.deepcopy(self.draft.document))
        state = state_of(opened)
        if snapshot.parent_snapshot_id is None:
            return replace(state, snapshot=None)
        parent = state.metadata.snapshot(snapshot.parent_snapshot_id)
        if parent is None or parent.snapshot_id in self.lost or parent.snapshot_id not in self.roots:
            return None
        return state.showing(parent, state.schema, ref=None, travel=None)

    def _removed_before(self, snapshot: Snapshot) -> dict[str, list[int]]:
        """Return the positions of the entries that the parent's manifest DVs remove, by canonical leaf location.

        A commit does not make removed entries live again, so the snapshot's tree must remove these entries, too.
        """
        parent = self._parent(snapshot)
        root = None if parent is None or parent.snapshot_id in self.lost else self.trees.get(parent.snapshot_id)
        if root is None or not root.dv_rows:
            return {}
        names = build.to_pylist(root.entries["location"])
        rows = [r for r in live_manifests(root) if canonical(names[r] or "") in root.dv_rows]
        out: dict[str, list[int]] = {}
        for leaf in self.reader.leaves(root, rows) if rows else ():
            gone = leaf.entries["ordinal"].filter(leaf.entries["manifest_dv"].is_valid())
            out[canonical(leaf.location)] = build.to_pylist(gone)
        return out

    def _replayed(
        self, snapshot: Snapshot, files: EntryBatch, base: TableState, storage: str
    ) -> tuple[str, EntryBatch]:
        """Write a snapshot's tree as a change to the tree of its parent, as a commit would.

        The change is the difference between the live files of the parent and those of the snapshot.

        Parameters
        ----------
        files
            The live files of the snapshot after the repair.
        base
            The state of the table at the parent, as `_base_of` returns it.
        storage
            How the new root stores partition values (see `Manifest.partition_storage`).

        Returns
        -------
        tuple
            The location of the new root, and ``files``.
        """
        root = self.trees[snapshot.snapshot_id]
        at = base.root()
        before = EntryBatch.empty() if at is None else live_files(base.reader, at)
        change = _change(before, files, snapshot)
        change = replace(change, rewrite_manifests=_replaced(root, at))
        writer = CommitWriter(
            storage=self.sandbox.storage,
            base=base,
            options=_options(root, storage),
            snapshot_id=snapshot.snapshot_id,
            sequence_number=snapshot.sequence_number,
            first_row_id=snapshot.first_row_id,
            timestamp_ms=snapshot.timestamp_ms,
            attempt=1,
            names=self._names(snapshot),
        )
        return apply_to_root(change, writer).root_location, files

    def _names(self, snapshot: Snapshot) -> Random:
        """Return a random number generator for the names of a snapshot's new files.

        Its seed is made from the location of the metadata file and the snapshot id, so that two plans for the same
        metadata file have the same file names.
        """
        seed = uuid.uuid5(uuid.NAMESPACE_URL, f"{self.draft.state.metadata_location}#tree {snapshot.snapshot_id}")
        return Random(seed.int)  # noqa: S311  makes names, not secrets


def _change(before: EntryBatch, after: EntryBatch, snapshot: Snapshot) -> Change:
    """Return the change that a commit must make to turn the live files ``before`` into the live files ``after``.

    Parameters
    ----------
    before
        The live files of the parent snapshot.
    after
        The live files of the snapshot. Files that are not in ``before`` are the added files.
    snapshot
        The snapshot that the commit creates. The change has the same operation, or ``overwrite`` if the operation is
        unknown. An added file whose sequence number is lower than that of the snapshot keeps its number. All other
        added files inherit the number of the snapshot.
    """
    old, new = keys_of(before.entries), keys_of(after.entries)
    added = after.filter(pc.invert(pc.is_in(new, value_set=old)))
    gone = before.entries.filter(pc.invert(pc.is_in(old, value_set=new)))
    r = Rows(gone)
    vector = r.is_kind(ContentType.POSITION_DELETE) & r.has_vector
    data = _texts(gone["location"], r.is_kind(ContentType.DATA))
    deletes = _texts(gone["location"], ~r.is_kind(ContentType.DATA) & ~vector)
    replaced = [n for n in _texts(gone["referenced_file"], vector) if n not in set(data)]
    # An added file whose sequence number is null inherits the number of its commit. But a compaction may give its new
    # files an older number, so that deletes committed in the meantime still apply to them. Such a number is kept.
    number = added.entries["sequence_number"]
    older = pc.fill_null(pc.less(number, snapshot.sequence_number), False)
    added = added.with_columns(
        status=None,
        snapshot_id=None,
        file_sequence_number=None,
        sequence_number=pc.if_else(older, number, pa.scalar(None, pa.int64())),
        manifest_dv=None,
    )
    operation: Any = snapshot.operation if snapshot.operation in ("append", "replace", "delete") else "overwrite"
    return Change(operation, added, tuple(data), tuple(deletes), tuple(replaced))


def _texts(names: pa.ChunkedArray[Any], mask: np.ndarray) -> list[str]:
    return list(dict.fromkeys(build.to_pylist(whole(names).filter(pa.array(mask)))))


def _replaced(root: Manifest, base: Manifest | None) -> tuple[str, ...]:
    """Return the locations of the manifests that a snapshot's commit merged into others.

    These are the manifests that are live in ``base``, and that ``root`` marks as DELETED.

    Parameters
    ----------
    root
        The root manifest of the snapshot.
    base
        The root manifest or manifest list of the parent snapshot. If it is None, the result is empty.
    """
    if base is None:
        return ()
    r = Rows(root.entries)
    gone = r.is_kind(*MANIFESTS) & (r.status == Status.DELETED)
    names = _texts(root.entries["location"], gone)
    there = set(build.to_pylist(base.entries["location"].take(pa.array(live_manifests(base), pa.int64()))))
    return tuple(name for name in names if name in there)


def _options(root: Manifest, storage: str) -> LayoutOptions:
    """Return options for writing a new root in the same way as the old one was written.

    If the old root lists data files only in leaves, the new root does, too. The same applies to delete files.

    Parameters
    ----------
    root
        The old root.
    storage
        How the new root stores partition values (see `Manifest.partition_storage`).
    """
    r = Rows(root.entries)
    data = r.live & r.is_kind(ContentType.DATA)
    deletes = r.live & r.is_kind(ContentType.POSITION_DELETE, ContentType.EQUALITY_DELETE)
    owned = r.live & r.is_kind(ContentType.DELETE_MANIFEST) & r.referenced
    given: dict[str, Any] = {
        "manifest_format": root.file_format,
        "partition_storage": storage,
        "dv_attached": _is_attached(root),
        "affinity": "all" if owned.any() else "none",
    }
    if not data.any() and (r.live & r.is_kind(ContentType.DATA_MANIFEST)).any():
        given["flush_data_files"] = 0
    if not deletes.any() and (r.live & r.is_kind(ContentType.DELETE_MANIFEST)).any():
        given["flush_delete_files"] = 0
    return LayoutOptions.of(4, **given)


def _is_attached(root: Manifest) -> bool:
    r = Rows(root.entries)
    return bool((r.is_kind(*MANIFESTS) & r.has_vector).any())


def _relaxed(root: Manifest) -> tuple[str, ...]:
    return rules_violated_by(LayoutOptions.of(4, dv_attached=True)) if _is_attached(root) else ()
