"""Detect the files added and removed by a snapshot or between two states; list the metadata files read for this."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import pyarrow as pa

from iceexplore.arrow import compute as pc
from iceexplore.commits.change_detection._draft import read_tracking
from iceexplore.commits.change_detection._leaves import bare_leaves, is_at
from iceexplore.commits.change_detection._root import DeletedManifests, RootReading, read_root
from iceexplore.commits.layouts._root_builder import numbers
from iceexplore.commits.model._options import DvEncoding
from iceexplore.errors import OptionError
from iceexplore.graph import TableState, diff, entry_changes, file_changes, to_frame
from iceexplore.manifests import ENTRY_SCHEMA, Manifest, Status, live
from iceexplore.metadata import Snapshot
from iceexplore.render import Card, CardTable, card_html, card_text
from iceexplore.storage import canonical

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Changes", "MetadataRead", "changes_between", "changes_of"]

Role = Literal["root", "previous root", "manifest", "manifest DV"]


@dataclass(frozen=True)
class MetadataRead:
    """A metadata file that change detection used, whether it read the file from storage or took it from the cache.

    Attributes
    ----------
    role
        What the file is: the snapshot's root (or manifest list), the parent's root (or manifest list), a manifest, or a
        Puffin file with manifest DVs.
    names_only
        Whether the file was read only for the names of data and delete files, because the roots already showed which
        entries changed.
    """

    location: str
    role: Role
    names_only: bool = False


@dataclass(frozen=True, eq=False)
class Changes:
    """The files that were added and removed, and the metadata that was read to find them.

    Attributes
    ----------
    title
        The table and snapshots that the changes belong to, in one line.
    files_arrow
        One row per file added or removed, with the columns of `iceexplore.graph.Diff.files_arrow`. For a removed file
        that was listed directly in a root, ``snapshot_id`` is the id of the snapshot that removed it.
    read
        The metadata files that had to be read, in the order in which they were needed.
    doubts
        Reasons, as sentences, why the result may be wrong: the metadata can also be interpreted differently, a file
        could not be read completely, or counts in the snapshot's summary differ from the result. Empty if there are
        none.
    """

    title: str
    files_arrow: pa.Table
    read: tuple[MetadataRead, ...]
    doubts: tuple[str, ...] = ()

    @property
    def files(self) -> pd.DataFrame:
        """The files added and removed: content, location, rows, bytes, and for a DV its data file and offset."""
        return to_frame(self.files_arrow)

    @property
    def unambiguous(self) -> bool:
        """Whether nothing suggests that the result may be wrong, that is, whether `doubts` is empty."""
        return not self.doubts

    @property
    def root_alone(self) -> bool:
        """Whether the snapshot's root and its manifest DVs showed which entries changed.

        If so, manifests were read only for the names of the files, and the parent's root was not read.
        """
        return all(r.role in ("root", "manifest DV") or r.names_only for r in self.read)

    def locations(self, change: Literal["added", "removed"]) -> list[str]:
        """Return the locations of the added or removed files; the location of a DV is its Puffin file."""
        if change not in ("added", "removed"):
            raise OptionError(f"change={change!r}: choose 'added' or 'removed'")
        mine = self.files_arrow.filter(pc.equal(self.files_arrow["change"], change))
        return [str(x) for x in mine["location"].to_pylist()]

    def card(self) -> Card:
        """Return the changes as a card, for text and HTML."""
        grouped = self.files_arrow.group_by(["content", "change"], use_threads=False).aggregate(
            [("location", "count", pc.CountOptions(mode="all")), ("record_count", "sum"), ("size_in_bytes", "sum")]
        )
        rows = [
            (f"{r['content']}s", r["change"], *(f"{r[n] or 0:,}" for n in _COUNTED))
            for r in sorted(grouped.to_pylist(), key=lambda r: (r["content"] or "", r["change"]))
        ]
        source = "the root alone" if self.root_alone else " and ".join(_roles(r for r in self.read if not r.names_only))
        named = _roles(r for r in self.read if r.names_only)
        facts = [("Determined from", source)]
        if named:
            facts.append(("Read only for file names", ", ".join(named)))
        facts.append(("Unambiguous", "yes" if self.unambiguous else "no"))
        columns = ("", "change", "files", "rows", "bytes")
        tables = [CardTable("Files", columns, tuple(rows), right=frozenset((2, 3, 4)))] if rows else []
        read = tuple((r.role, "names" if r.names_only else "changes", r.location) for r in self.read)
        tables.append(CardTable("Metadata read", ("", "read for", "location"), read, open=False, code=frozenset((2,))))
        return Card(f"Changes {self.title}", facts=tuple(facts), tables=tuple(tables), notes=self.doubts)

    def __repr__(self) -> str:
        return card_text(self.card())

    def _repr_html_(self) -> str:
        return card_html(self.card())


#: Counts in a snapshot's summary (spec, "Optional Snapshot Summary Fields"). Each item is the key in the summary,
#: whether "added" or "removed" files are counted, and whether these are data files (True) or delete files (False).
_SUMMARY = (
    ("added-data-files", "added", True),
    ("deleted-data-files", "removed", True),
    ("added-delete-files", "added", False),
    ("removed-delete-files", "removed", False),
)
_COUNTED = ("location_count", "record_count_sum", "size_in_bytes_sum")


def _roles(reads: Iterable[MetadataRead]) -> list[str]:
    counts: dict[str, int] = {}
    for r in reads:
        counts[r.role] = counts.get(r.role, 0) + 1
    return [role if n == 1 else f"{n:,} {role}s" for role, n in counts.items()]


def changes_of(
    state: TableState,
    snapshot: Snapshot | None = None,
    *,
    dv_encoding: DvEncoding | None = None,
    deleted_manifests: DeletedManifests = "compacted",
) -> Changes:
    """Detect what a snapshot changed, from its root.

    Where the changes are recorded depends on the root:

    - In a root of the V4 proposal, the statuses of the entries and the manifest DVs show which entries changed. Leaf
      manifests are read only to learn the names of the files. If a manifest DV may have replaced an older DV that the
      root no longer lists, the parent's root is read, too, and the two DVs are compared.
    - In a root of the V4 draft, the statuses of the entries show the changes to the root itself. The changes to leaf
      manifests are shown by the positions of removed and replaced entries, which the root records in the field
      ``tracking``. If positions are missing, the root is compared with the parent's root.
    - A manifest list (v1-v3, ``v4-java``) shows which manifests the snapshot wrote. These manifests are read, and the
      statuses of their entries show the changes.

    A root that violates rules is interpreted as if it followed them. Then the result may be wrong, and `Changes.doubts`
    says why. `changes_between` does not rely on statuses: to use it instead, call it with the table's state at the
    parent snapshot and the state at this snapshot.

    Parameters
    ----------
    snapshot
        The snapshot whose changes to detect; by default the state's snapshot.
    dv_encoding
        How the writer of a V4 proposal's root records that a manifest DV changed (`LayoutOptions.dv_encoding`); None if
        this is not known. With ``removed`` or ``delta``, a root that lists a new DV also lists the older DV that it
        replaces or extends. If a manifest has only one DV in the root, and this DV is ADDED, then there was no older
        one. The parent's root is not read in this case.
    deleted_manifests
        What it means if a root of the V4 proposal marks a manifest as DELETED. ``compacted``: its live entries were
        moved to other manifests, as the rules require. ``removed``: its live entries were removed from the table, as in
        an option that the proposal discusses (change detection, scenario 1, option 1).

    Raises
    ------
    OptionError
        ``dv_encoding`` or ``deleted_manifests`` has an unknown value.
    IceexploreError
        The root, a manifest or a manifest DV cannot be read.
    """
    if dv_encoding is not None and dv_encoding not in get_args(DvEncoding):
        raise OptionError(f"dv_encoding={dv_encoding!r}: one of {', '.join(map(repr, get_args(DvEncoding)))}, or None")
    if deleted_manifests not in get_args(DeletedManifests):
        raise OptionError(f"deleted_manifests={deleted_manifests!r}: choose 'compacted' or 'removed'")
    wanted = snapshot or state.snapshot
    if wanted is None:
        return Changes(f"of {state.name}, which has no snapshot", _table([]), ())
    root = state.reader.root(wanted)
    title = f"of {state.name} in snapshot {wanted.snapshot_id}"
    if root.dialect == "v4-draft":
        return _of_draft(state, root, wanted, title)
    own = MetadataRead(root.location, "root")
    if root.dialect != "v4-proposal":
        return _of_list(state, root, wanted, title)
    reading = read_root(state, root, wanted, dv_encoding, deleted_manifests)
    leaves = list(dict.fromkeys((*reading.added_leaves, *reading.gone, *reading.back)))
    parts = [
        file_changes("removed", root.entries.take(pa.array(reading.removed_rows))),
        file_changes("added", root.entries.take(pa.array(reading.added_rows))),
    ]
    doubts = [*_unreadable(root), *_without_parent(root, wanted), *reading.doubts]
    for row, leaf in zip(leaves, bare_leaves(state, root, leaves), strict=True):
        parts += _of_leaf(reading, row, leaf)
        doubts += _unreadable(leaf)
    reads = [own]
    if reading.previous is not None:
        reads.append(MetadataRead(reading.previous, "previous root"))
    reads += [MetadataRead(name, "manifest DV") for name in dict.fromkeys(reading.puffins)]
    reads += [MetadataRead(_name(root, row), "manifest", names_only=True) for row in leaves]
    found = _table(parts)
    return Changes(title, found, tuple(reads), (*doubts, *_against_summary(wanted, found)))


def changes_between(a: TableState, b: TableState) -> Changes:
    """Detect what changed from state ``a`` to state ``b``, by comparing their roots (`graph.diff`).

    The states may belong to the same table or to two tables. Manifests that both roots list with the same manifest DV
    are not read. The result does not contain files that were added after ``a`` but removed before ``b``.
    """
    found = diff(a, b)
    reads: list[MetadataRead] = []
    vectors: list[str] = []
    roles: tuple[tuple[TableState, Role], ...] = ((b, "root"), (a, "previous root"))
    for state, role in roles:
        root = state.root()
        if root is None:
            continue
        reads.append(MetadataRead(root.location, role))
        rows = [row for name in found.read for row in root.dv_rows.get(canonical(name), ())]
        picked = root.entries.select(["location", "deletion_vector"]).take(pa.array(rows, pa.int64())).to_pylist()
        vectors += [e["location"] for e in picked if e["deletion_vector"]["inline_content"] is None]
    reads += [MetadataRead(name, "manifest DV") for name in dict.fromkeys(vectors)]
    reads += [MetadataRead(name, "manifest") for name in found.read]
    return Changes(f"from {found.title()}", found.files_arrow, tuple(dict.fromkeys(reads)))


def _of_draft(state: TableState, root: Manifest, snapshot: Snapshot, title: str) -> Changes:
    tracked = None if state.opened.is_delta else read_tracking(state, root, snapshot)
    if tracked is not None:
        found = entry_changes(*tracked.sides).combine_chunks()
        leaves = [*tracked.named, *tracked.read]
        doubts = [
            *_unreadable(root),
            *_without_parent(root, snapshot),
            *(d for leaf in leaves for d in _unreadable(leaf)),
        ]
        reads = [MetadataRead(root.location, "root")]
        reads += [MetadataRead(leaf.location, "manifest", names_only=True) for leaf in tracked.named]
        reads += [MetadataRead(leaf.location, "manifest") for leaf in tracked.read]
        return Changes(title, found, tuple(reads), (*doubts, *_against_summary(snapshot, found)))
    return _compared(state, snapshot, title)


def _compared(state: TableState, snapshot: Snapshot, title: str) -> Changes:
    """Detect a snapshot's changes by comparing its root with the root of its parent snapshot.

    If the parent snapshot has expired, all files of the snapshot count as added, and `Changes.doubts` mentions it.
    """
    now = state.showing(snapshot, state.schema, ref=None, travel=None)
    parent = snapshot.parent_snapshot_id
    found = None if parent is None else state.metadata.snapshot(parent)
    doubts: tuple[str, ...] = ()
    if parent is not None and found is None:
        doubts = (f"The parent snapshot, {parent}, has expired: all files of the snapshot are shown as added.",)
    made = changes_between(state.showing(found, state.schema, ref=None, travel=None), now)
    return Changes(title, made.files_arrow, made.read, doubts)


def _of_list(state: TableState, root: Manifest, snapshot: Snapshot, title: str) -> Changes:
    """Detect a snapshot's changes from its manifest list (``root``).

    A manifest is read if its row in the list has the snapshot's id or, as v1 allows, no snapshot id. The entries
    that have the snapshot's id and the status ADDED or DELETED are the changes (spec, "Manifest Entry Fields"). If
    entries have a wrong status or snapshot id, `Changes.doubts` mentions it.
    """
    mine = numbers(root.entries["snapshot_id"]) == snapshot.snapshot_id
    unknown = np.asarray(pc.is_null(root.entries["snapshot_id"]))  # the snapshot id is optional in a v1 manifest list
    rows = np.flatnonzero(mine | unknown).tolist()
    parts, doubts = [], [*_unreadable(root), *_without_parent(root, snapshot)]
    for row, leaf in zip(rows, state.reader.leaves(root, rows) if rows else (), strict=True):
        entries, status = leaf.entries, numbers(leaf.entries["status"])
        own = numbers(entries["snapshot_id"]) == snapshot.snapshot_id
        for change, wanted in (("removed", Status.DELETED), ("added", Status.ADDED)):
            parts.append(file_changes(change, entries.filter(pa.array(own & (status == wanted)))))
        odd = (own & (status == Status.EXISTING)) | (~own & (status == Status.DELETED) & bool(mine[row]))
        if odd.any():
            doubts.append(f"{int(odd.sum())} entries of {leaf.location} have a wrong status or snapshot id.")
        doubts += _unreadable(leaf)
    reads = [MetadataRead(root.location, "root"), *(MetadataRead(_name(root, row), "manifest") for row in rows)]
    found = _table(parts)
    return Changes(title, found, tuple(reads), (*doubts, *_against_summary(snapshot, found)))


def _without_parent(root: Manifest, snapshot: Snapshot) -> Iterator[str]:
    """Yield a sentence for `Changes.doubts` if a snapshot has no parent, but its root has entries of other snapshots.

    Only live entries count. A first snapshot should have added all of its entries itself.
    """
    if snapshot.parent_snapshot_id is None:
        before = np.asarray(live(root.entries)) & (numbers(root.entries["snapshot_id"]) != snapshot.snapshot_id)
        if before.any():
            yield f"The snapshot has no parent, but {int(before.sum()):,} root entries belong to other snapshots."


def _against_summary(snapshot: Snapshot, found: pa.Table) -> Iterator[str]:
    """Compare the counts of files in the snapshot's summary with the detected changes.

    Yield a sentence for `Changes.doubts` for each count that differs.

    Parameters
    ----------
    found
        The detected changes, with the columns of `Changes.files_arrow`.
    """
    found = found.filter(pc.not_equal(found["content"], "column file"))
    change, is_data = found["change"], pc.equal(found["content"], "data file")
    for name, wanted, data in _SUMMARY:
        stated = (snapshot.summary or {}).get(name, "")
        mine = pc.and_(pc.equal(change, wanted), is_data if data else pc.invert(is_data))
        count = pc.sum(mine).as_py() or 0
        if stated.isascii() and stated.isdecimal() and len(stated) < 20 and int(stated) != count:
            yield f"The snapshot's summary has {name}={stated}, but {count:,} were found."


def _of_leaf(reading: RootReading, row: int, leaf: Manifest) -> Iterator[pa.Table]:
    entries = leaf.entries
    alive = np.asarray(live(entries))
    ordinals = np.asarray(pc.fill_null(entries["ordinal"], 0))
    if row in reading.added_leaves:
        new = alive & ~is_at(ordinals, reading.hidden.get(row))
        yield file_changes("added", entries.filter(pa.array(new)))
    for change, positions in (("removed", reading.gone.get(row)), ("added", reading.back.get(row))):
        if positions:
            yield file_changes(change, entries.filter(pa.array(alive & is_at(ordinals, positions))))


def _unreadable(manifest: Manifest) -> list[str]:
    return [f"{manifest.location}: {p.text}" for p in manifest.problems if p.severity == "error"]


def _name(root: Manifest, row: int) -> str:
    return str(root.entries["location"][row].as_py())


def _table(parts: list[pa.Table]) -> pa.Table:
    return pa.concat_tables([file_changes("added", ENTRY_SCHEMA.empty_table()), *parts]).combine_chunks()
