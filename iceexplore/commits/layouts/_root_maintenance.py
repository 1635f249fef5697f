"""Flush files from the root to leaves, and compact leaves, as part of a commit (proposal, "Manifest Compaction").

Leaves written by compaction list only EXISTING entries. Therefore, leaves from which the commit removes entries are not
compacted, and files that the commit adds are not included. Compacted leaves and their manifest DVs become DELETED in
the root. If compaction replaces a data manifest, its affiliated delete manifests become affiliated with the new data
manifest. For this, only the rows of the delete manifests in the root change: all files of the old data manifest are in
the same new one, so the delete manifests need not be split.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from iceexplore.commits.layouts._root_builder import DROPPED, Draft, chunks, numbers
from iceexplore.commits.layouts._root_files import add_delete_leaves, affiliated_leaves, owners_of, take_leaves
from iceexplore.commits.model._change import Change
from iceexplore.errors import RuleError
from iceexplore.manifests import ContentType, EntryBatch, Status, concat_batches, whole

__all__ = [
    "Leaf",
    "chosen_leaves",
    "compact_leaves",
    "flush_root",
    "named_leaves",
]

_DELETES = (ContentType.POSITION_DELETE, ContentType.EQUALITY_DELETE)


def flush_root(draft: Draft, change: Change) -> None:
    """Move data files and deletes of the base from the root to new leaves, if the root would list too many otherwise.

    The maximum number of data files that the root lists directly is the option ``flush_data_files``. Files that this
    commit adds to the root count as well. If there would be more, all data files of the base are moved. The same
    applies to DVs and equality deletes with ``flush_delete_files``.

    In addition, delete manifests are rewritten if there are more of them than the options ``unaffiliated_manifests``
    and ``affiliated_manifests`` allow (see `LayoutOptions`).
    """
    o = draft.writer.options
    kind = numbers(change.added.entries["content_type"])
    data, deletes = int((kind == ContentType.DATA).sum()), int((kind != ContentType.DATA).sum())
    rows = draft.standing(ContentType.DATA)
    if len(rows) and len(rows) + (data if data <= o.flush_data_files else 0) > o.flush_data_files:
        for part in chunks(_leaving(draft, rows), o.leaf_entries):
            location = draft.add_leaf(part, content=ContentType.DATA_MANIFEST, status=Status.EXISTING)
            draft.fresh.append((location, whole(part.entries["location"])))
    in_leaves = deletes > o.flush_delete_files
    rows = draft.standing(*_DELETES)
    if len(rows) + (0 if in_leaves else deletes) <= o.flush_delete_files:
        rows = rows[:0]
    new = change.added.filter(pa.array(kind != ContentType.DATA)) if in_leaves else None
    _flush_deletes(draft, rows, 0 if new is None else sum(1 for _ in chunks(new, o.leaf_entries)))
    _merge_affiliated(draft)


def _leaving(draft: Draft, rows: np.ndarray) -> EntryBatch:
    draft.row_status[rows] = DROPPED
    return draft.rows.take(pa.array(rows)).with_columns(status=int(Status.EXISTING), manifest_dv=None)


def _flush_deletes(draft: Draft, rows: np.ndarray, coming: int) -> None:
    """Move deletes from the root to new delete manifests, which are affiliated with data manifests or not.

    The option ``affinity`` has three values:

    - ``all``: DVs are moved to affiliated delete manifests, except that a DV whose data file is listed directly in the
      root stays in the root. Equality deletes are moved to unaffiliated delete manifests.
    - ``none``: All deletes are moved to unaffiliated delete manifests.
    - ``some``: As ``none``, if the new root has at most ``unaffiliated_manifests`` unaffiliated delete manifests
      afterwards. Otherwise, the entries of the old unaffiliated delete manifests are written to new delete manifests
      together with the deletes to move. These new delete manifests are affiliated, except those for equality deletes
      and for DVs of data files that the root lists directly.

    Parameters
    ----------
    rows
        The row numbers, in the base's root, of the deletes to move.
    coming
        The number of delete manifests that will be written for the deletes that this commit adds; 0 if these deletes
        are listed directly in the root. With ``some``, these delete manifests count as unaffiliated, so that old ones
        may be rewritten even if there are no deletes to move.
    """
    o = draft.writer.options
    if o.affinity == "all":
        batch = draft.rows.take(pa.array(rows))
        equality = numbers(batch.entries["content_type"]) == ContentType.EQUALITY_DELETE
        owned = np.asarray(owners_of(draft, batch).is_valid())
        # DVs of data files that the root lists directly stay in the root: they belong to no data manifest yet.
        going = rows[owned | equality]
        if len(going):
            add_delete_leaves(draft, _leaving(draft, going), Status.EXISTING, affiliate=True)
        return
    batch = _leaving(draft, rows)
    wanted = sum(1 for _ in chunks(batch, o.leaf_entries)) if len(rows) else 0
    loose = _unaffiliated(draft)
    if o.affinity == "none" or len(loose) + wanted + coming <= o.unaffiliated_manifests or not wanted + coming:
        if wanted:
            add_delete_leaves(draft, batch, Status.EXISTING, affiliate=False)
        return
    parts = [batch]
    for row in loose:
        # A commit cannot rewrite a manifest from which it also removes entries (rule leaf-change-by-dv).
        held = None if row in draft.changed else draft.leaf_rows(row)
        if held is not None:
            draft.drop_leaf(row)
            parts.append(held)
    batch = concat_batches(parts)
    left = add_delete_leaves(draft, batch, Status.EXISTING, affiliate=True) if len(batch) else 0
    draft.affiliate_new = left + len(_unaffiliated(draft)) + coming > o.unaffiliated_manifests


def _unaffiliated(draft: Draft) -> list[int]:
    """Return the row numbers of unaffiliated delete manifests in the base's root that also stay in the new root."""
    owner = whole(draft.rows.entries["referenced_file"])
    return [row for row in draft.standing(ContentType.DELETE_MANIFEST).tolist() if not owner[row].is_valid]


def _merge_affiliated(draft: Draft) -> None:
    """Merge the affiliated delete manifests of each data manifest that has more than ``affiliated_manifests`` of them.

    With 0 for this option, nothing is merged. Delete manifests that this commit adds, or from which it removes entries,
    are neither counted nor merged; a later commit can merge them.
    """
    limit = draft.writer.options.affiliated_manifests
    for owner, rows in affiliated_leaves(draft).items() if limit else ():
        if len(rows) > limit:
            batch = take_leaves(draft, rows)
            if batch is not None:
                for part in chunks(batch, draft.writer.options.leaf_entries):
                    draft.add_leaf(
                        part, content=ContentType.DELETE_MANIFEST, status=Status.EXISTING, referenced_file=owner
                    )


@dataclass(frozen=True)
class Leaf:
    """A live manifest in the root that the commit builds on, with the facts that compaction needs.

    Attributes
    ----------
    row, location
        The manifest's row in the root, and its location.
    group
        The spec id, and for a delete manifest, the location of the data manifest with which it is affiliated (None if
        it is unaffiliated). Only leaves that agree in both are merged.
    stored
        The number of entries in the manifest; None if its row in the root lacks counts.
    removed
        The number of entries that the leaf's manifest DVs remove. Only DVs in separate rows are counted. The number of
        entries that an attached DV removes is unknown until it is decoded; a leaf with only an attached DV gets the
        number 1, to show that it has a DV.
    """

    row: int
    location: str
    group: tuple[int, str | None]
    stored: int | None
    removed: int

    @property
    def left(self) -> int | None:
        """The number of entries that remain, computed as ``stored`` less ``removed``; None if ``stored`` is unknown."""
        return None if self.stored is None else max(0, self.stored - self.removed)


def compact_leaves(draft: Draft, change: Change) -> None:
    """Merge and rewrite leaves: those that the change lists, and those that the layout options select.

    See `Change.rewrite_manifests`, and the options ``compact_leaves`` and ``rewrite_leaf_at`` of `LayoutOptions`.

    Raises
    ------
    RuleError
        ``files-exist``: a manifest that the change lists for rewriting is not in the root.
    """
    named = named_leaves(draft, change)
    for content in (ContentType.DATA_MANIFEST, ContentType.DELETE_MANIFEST):
        for part in chosen_leaves(draft, change, content, named):
            _rewrite(draft, content, part)


def chosen_leaves(draft: Draft, change: Change, content: ContentType, named: Collection[int]) -> list[list[Leaf]]:
    """Choose the leaves to rewrite, and group those that are to be merged into one new leaf.

    Leaves from which this commit removes entries are not chosen.

    Parameters
    ----------
    content
        The content type of the leaves: DATA_MANIFEST or DELETE_MANIFEST.
    named
        The result of `named_leaves`: the row numbers of the leaves that the change lists for rewriting. Call
        `named_leaves` before any leaf is rewritten: afterwards, a rewritten leaf is no longer live, and `named_leaves`
        would raise an error for it.

    Returns
    -------
    list[list[Leaf]]
        The groups of leaves; a group of one leaf is rewritten alone.
    """
    o = draft.writer.options
    if draft.root is None or not (change.rewrite_manifests or o.compact_leaves or o.rewrite_leaf_at is not None):
        return []
    leaves = [leaf for leaf in _leaves(draft, content) if leaf.row not in draft.changed]
    must = {leaf.row for leaf in leaves if leaf.row in named or _worn(draft, leaf)}
    may = _small(draft, leaves)
    if change.rewrite_manifests is True:
        must |= {leaf.row for leaf in leaves if leaf.removed or _is_old(draft, leaf)}
        may = may or {leaf.row for leaf in leaves if _is_small(draft, leaf)}
    chosen = [leaf for leaf in leaves if leaf.row in must | may]
    return [part for part in _bins(chosen, o.leaf_entries) if len(part) > 1 or part[0].row in must]


def named_leaves(draft: Draft, change: Change) -> set[int]:
    """Return the row numbers, in the base's root, of the manifests that a change lists for rewriting.

    Raises
    ------
    RuleError
        ``files-exist``: a listed manifest is not in the root.
    """
    names = change.rewrite_manifests
    if isinstance(names, bool) or not names:
        return set()
    places = {draft.location(row): row for row in _standing(draft)}
    missing = [name for name in names if name not in places]
    if missing:
        raise RuleError("files-exist", f"manifests to rewrite are not in the root: {', '.join(missing[:5])}")
    return {places[name] for name in names}


def _standing(draft: Draft) -> list[int]:
    rows: list[int] = draft.standing(ContentType.DATA_MANIFEST, ContentType.DELETE_MANIFEST).tolist()
    return rows


def _leaves(draft: Draft, content: ContentType) -> Iterator[Leaf]:
    rows = draft.standing(content)
    columns = ["location", "partition_spec_id", "referenced_file", "manifest_stats"]
    held = draft.rows.entries.take(pa.array(rows)).select(columns).to_pylist()
    counts = draft.rows.entries["record_count"]
    for row, entry in zip(rows.tolist(), held, strict=True):
        stats = entry["manifest_stats"] or {}
        parts = [stats.get(f"{name}_files_count") for name in ("added", "existing", "deleted")]
        stored = None if None in parts else sum(p for p in parts if p is not None)
        removed = sum(counts[r].as_py() or 0 for r in draft.dvs.get(row, ()) if r != row)
        attached = row in draft.dvs.get(row, ())
        owner = entry["referenced_file"]
        group = (entry["partition_spec_id"], draft.moved.get(owner, owner) if owner else None)
        yield Leaf(row, entry["location"], group, stored, removed or int(attached))


def _worn(draft: Draft, leaf: Leaf) -> bool:
    share = draft.writer.options.rewrite_leaf_at
    return share is not None and leaf.stored is not None and 0 < leaf.stored * share <= leaf.removed


def _is_small(draft: Draft, leaf: Leaf) -> bool:
    return leaf.left is not None and leaf.left * 2 <= draft.writer.options.leaf_entries


def _small(draft: Draft, leaves: list[Leaf]) -> set[int]:
    least = draft.writer.options.compact_leaves
    small = {leaf.row for leaf in leaves if _is_small(draft, leaf)}
    return small if least and len(small) >= least else set()


def _is_old(draft: Draft, leaf: Leaf) -> bool:
    assert draft.root is not None
    return draft.writer.base.reader.leaf(draft.root, leaf.row).dialect != draft.writer.options.dialect


def _bins(leaves: list[Leaf], size: int) -> Iterator[list[Leaf]]:
    """Divide leaves into groups, each of which can be merged into one leaf of up to ``size`` entries.

    All leaves in a group have the same spec; delete manifests in a group are affiliated with the same data manifest, or
    all unaffiliated (`Leaf.group`). A leaf with more than ``size`` entries is in a group of its own. A leaf whose
    number of entries is unknown counts as ``size`` entries.
    """
    groups: dict[tuple[int, str | None], list[Leaf]] = {}
    for leaf in leaves:
        groups.setdefault(leaf.group, []).append(leaf)
    for group in groups.values():
        part: list[Leaf] = []
        held = 0
        for leaf in group:
            left = size if leaf.left is None else leaf.left
            if part and held + left > size:
                yield part
                part, held = [], 0
            part.append(leaf)
            held += left
        yield part


def _rewrite(draft: Draft, content: ContentType, leaves: list[Leaf]) -> None:
    read: list[tuple[Leaf, EntryBatch]] = []
    for leaf in leaves:
        batch = draft.leaf_rows(leaf.row)
        if batch is not None:
            read.append((leaf, batch))
    rows = concat_batches([batch for _, batch in read])
    location = None
    if len(rows):
        owner = leaves[0].group[1] if content == ContentType.DELETE_MANIFEST else None
        location = draft.add_leaf(rows, content=content, status=Status.EXISTING, referenced_file=owner)
    for leaf, _ in read:
        draft.drop_leaf(leaf.row)
        if content == ContentType.DATA_MANIFEST:
            draft.moved[leaf.location] = location
