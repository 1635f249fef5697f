"""Change detection: which files a snapshot, or all between two states, added and removed, and what had to be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.commits.change_detection._root import RootReading, read_root
from iceexplore.commits.layouts._root_builder import numbers
from iceexplore.commits.model._options import DvEncoding
from iceexplore.errors import OptionError
from iceexplore.graph import TableState, diff, file_changes, to_frame
from iceexplore.manifests import ENTRY_SCHEMA, Manifest, Status, live
from iceexplore.metadata import Snapshot
from iceexplore.render import Card, CardTable, card_html, card_text
from iceexplore.storage import canonical

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Changes", "MetadataRead", "bare_leaves", "changes_between", "changes_of", "is_at"]

Role = Literal["root", "previous root", "manifest", "manifest DV"]


@dataclass(frozen=True)
class MetadataRead:
    """A metadata file that detection needs, whether or not it was read before.

    Attributes
    ----------
    role
        The snapshot's root (or manifest list), the one of the snapshot before, a manifest, or a Puffin file with
        manifest DVs.
    names_only
        It was read for the names of files alone: how many changed, and in which manifests, the roots had said.
    """

    location: str
    role: Role
    names_only: bool = False


@dataclass(frozen=True, eq=False)
class Changes:
    """The files that were added and removed.

    Attributes
    ----------
    title
        Of what, one line.
    files_arrow
        A row per file added or removed; columns as `iceexplore.graph.Diff.files_arrow` has them. Of a removed file
        that stood in a root itself ``snapshot_id`` is that of the snapshot that removed it.
    read
        The metadata files that had to be read, in order.
    doubts
        Why the root can be read in another way, or the snapshot's summary counts other files: sentences. There are none
        where all rules were kept.
    """

    title: str
    files_arrow: pa.Table
    read: tuple[MetadataRead, ...]
    doubts: tuple[str, ...] = ()

    @property
    def files(self) -> pd.DataFrame:
        """Files added and removed: content, location, rows, bytes, for a DV its data file and offset."""
        return to_frame(self.files_arrow)

    @property
    def unambiguous(self) -> bool:
        """Whether what was read admits one reading only."""
        return not self.doubts

    @property
    def root_alone(self) -> bool:
        """Whether the snapshot's own root said what changed: more was read for names alone, if at all."""
        return all(r.role in ("root", "manifest DV") or r.names_only for r in self.read)

    def locations(self, change: Literal["added", "removed"]) -> list[str]:
        """The locations of files added, or removed; vectors that share a Puffin file have the same."""
        if change not in ("added", "removed"):
            raise OptionError(f"change={change!r}: choose 'added' or 'removed'")
        mine = self.files_arrow.filter(pc.equal(self.files_arrow["change"], change))
        return [str(x) for x in mine["location"].to_pylist()]

    def card(self) -> Card:
        """The changes as a card, for text and HTML alike."""
        grouped = self.files_arrow.group_by(["content", "change"]).aggregate(
            [("location", "count", pc.CountOptions(mode="all")), ("record_count", "sum"), ("size_in_bytes", "sum")]
        )
        rows = [
            (f"{r['content']}s", r["change"], *(f"{r[n] or 0:,}" for n in _COUNTED))
            for r in sorted(grouped.to_pylist(), key=lambda r: (r["content"] or "", r["change"]))
        ]
        said = "the root alone" if self.root_alone else " and ".join(_roles(r for r in self.read if not r.names_only))
        named = _roles(r for r in self.read if r.names_only)
        facts = [("Told by", said)]
        if named:
            facts.append(("Read for names", ", ".join(named)))
        facts.append(("Unambiguous", "yes" if self.unambiguous else "no"))
        columns = ("", "change", "files", "rows", "bytes")
        tables = [CardTable("Files", columns, tuple(rows), right=frozenset((2, 3, 4)))] if rows else []
        read = tuple((r.role, "names" if r.names_only else "changes", r.location) for r in self.read)
        tables.append(CardTable("Read", ("", "for", "location"), read, open=False, code=frozenset((2,))))
        return Card(f"Changes {self.title}", facts=tuple(facts), tables=tuple(tables), notes=self.doubts)

    def __repr__(self) -> str:
        return card_text(self.card())

    def _repr_html_(self) -> str:
        return card_html(self.card())


#: Entries of a summary (spec, "Optional Snapshot Summary Fields"): which change, and whether of data files.
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
    state: TableState, snapshot: Snapshot | None = None, *, dv_encoding: DvEncoding | None = None
) -> Changes:
    """What a snapshot did, read from its root.

    A root of the V4 proposal tells it by its statuses and manifest DVs; the manifests that it names are read for the
    names of files alone. The parent's root is read too where a manifest DV leaves no trace of the one that it
    replaced. A manifest list (v1-v3, ``v4-java``) tells which manifests the snapshot wrote, and their entries tell the
    rest. Of the V4 draft the roots of the snapshot and its parent are compared: what the draft's ``tracking`` says of
    the change of a manifest DV is not used.

    Where a root bends rules, files are those that the rules would have, and `Changes.doubts` say why that may be
    wrong; `changes_between` the parent and the snapshot is right whatever the root says.

    Parameters
    ----------
    snapshot
        By default the state's.
    dv_encoding
        How the writer shows that a manifest DV changed (`LayoutOptions.dv_encoding`): with ``removed`` and ``delta`` a
        single ADDED vector is a manifest's first, and nothing else is read to be sure. None: not known.

    Raises
    ------
    OptionError
        No such encoding.
    IceexploreError
        A manifest DV could not be read.
    """
    if dv_encoding is not None and dv_encoding not in get_args(DvEncoding):
        raise OptionError(f"dv_encoding={dv_encoding!r}: one of {', '.join(map(repr, get_args(DvEncoding)))}, or None")
    wanted = snapshot or state.snapshot
    if wanted is None:
        return Changes(f"of {state.name}, which has no snapshot", _table([]), ())
    root = state.reader.root(wanted)
    title = f"of {state.name} in snapshot {wanted.snapshot_id}"
    if root.dialect == "v4-draft":
        return _of_draft(state, wanted, title)
    own = MetadataRead(root.location, "root")
    if root.dialect != "v4-proposal":
        return _of_list(state, root, wanted, title)
    said = read_root(state, root, wanted, dv_encoding)
    leaves = [*said.added_leaves, *(row for row in {**said.gone, **said.back} if row not in said.added_leaves)]
    parts = [
        file_changes("removed", root.entries.take(pa.array(said.removed_rows))),
        file_changes("added", root.entries.take(pa.array(said.added_rows))),
    ]
    doubts = [*_unreadable(root), *_without_parent(root, wanted), *said.doubts]
    for row, leaf in zip(leaves, bare_leaves(state, root, leaves), strict=True):
        parts += _of_leaf(said, row, leaf)
        doubts += _unreadable(leaf)
    reads = [own]
    if said.previous is not None:
        reads.append(MetadataRead(said.previous, "previous root"))
    reads += [MetadataRead(name, "manifest DV") for name in dict.fromkeys(said.puffins)]
    reads += [MetadataRead(_name(root, row), "manifest", names_only=True) for row in leaves]
    found = _table(parts)
    return Changes(title, found, tuple(reads), (*doubts, *_against_summary(wanted, found)))


def changes_between(a: TableState, b: TableState) -> Changes:
    """What changed from one state to another, of one table or of two, by comparing their roots (`graph.diff`).

    Manifests that both roots name with the same manifest DV are not read. A file that was added and removed in between
    is in neither, and not among the changes.
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


def _of_draft(state: TableState, snapshot: Snapshot, title: str) -> Changes:
    now = state.showing(snapshot, state.schema, ref=None, travel=None)
    parent = snapshot.parent_snapshot_id
    found = None if parent is None else state.metadata.snapshot(parent)
    doubts: tuple[str, ...] = ()
    if parent is not None and found is None:
        doubts = (f"The parent snapshot, {parent}, has expired: all files of the snapshot are shown as added.",)
    made = changes_between(state.showing(found, state.schema, ref=None, travel=None), now)
    return Changes(title, made.files_arrow, made.read, doubts)


def _of_list(state: TableState, root: Manifest, snapshot: Snapshot, title: str) -> Changes:
    """What the manifests say that a snapshot wrote (spec, "Manifest Entry Fields": status and snapshot id)."""
    mine = numbers(root.entries["snapshot_id"]) == snapshot.snapshot_id
    unknown = np.asarray(pc.is_null(root.entries["snapshot_id"]))  # v1 may leave it out
    rows = np.flatnonzero(mine | unknown).tolist()
    parts, doubts = [], [*_unreadable(root), *_without_parent(root, snapshot)]
    for row, leaf in zip(rows, state.reader.leaves(root, rows) if rows else (), strict=True):
        entries, status = leaf.entries, numbers(leaf.entries["status"])
        own = numbers(entries["snapshot_id"]) == snapshot.snapshot_id
        for change, wanted in (("removed", Status.DELETED), ("added", Status.ADDED)):
            parts.append(file_changes(change, entries.filter(pa.array(own & (status == wanted)))))
        odd = (own & (status == Status.EXISTING)) | (~own & (status == Status.DELETED) & bool(mine[row]))
        if odd.any():
            doubts.append(f"{int(odd.sum())} entries of {leaf.location} are EXISTING or DELETED by the wrong snapshot.")
        doubts += _unreadable(leaf)
    reads = [MetadataRead(root.location, "root"), *(MetadataRead(_name(root, row), "manifest") for row in rows)]
    found = _table(parts)
    return Changes(title, found, tuple(reads), (*doubts, *_against_summary(snapshot, found)))


def _without_parent(root: Manifest, snapshot: Snapshot) -> Iterator[str]:
    """That a snapshot without a parent has what was there before it."""
    if snapshot.parent_snapshot_id is None:
        before = np.asarray(live(root.entries)) & (numbers(root.entries["snapshot_id"]) != snapshot.snapshot_id)
        if before.any():
            yield f"The snapshot has no parent, and {int(before.sum()):,} rows of its root are of other snapshots."


def _against_summary(snapshot: Snapshot, found: pa.Table) -> Iterator[str]:
    """Counts of the snapshot's summary that are others than those found (metadata that was edited, say)."""
    change, is_data = found["change"], pc.equal(found["content"], "data file")
    for name, wanted, data in _SUMMARY:
        said = (snapshot.summary or {}).get(name, "")
        mine = pc.and_(pc.equal(change, wanted), is_data if data else pc.invert(is_data))
        count = pc.sum(mine).as_py() or 0
        if said.isascii() and said.isdecimal() and len(said) < 20 and int(said) != count:
            yield f"The snapshot's summary says {name}={said}, and {count:,} were found."


def bare_leaves(state: TableState, root: Manifest, rows: list[int]) -> Iterable[Manifest]:
    """Manifests of a root as they are stored: no vector is read for them."""
    if not rows:
        return ()
    entries = root.entries.take(pa.array(rows, pa.int64()))
    at = ENTRY_SCHEMA.get_field_index("deletion_vector")
    kind = ENTRY_SCHEMA.field("deletion_vector").type
    entries = entries.set_column(at, ENTRY_SCHEMA.field(at), pa.nulls(len(entries), kind))
    bare = Manifest(root.location, entries, dialect=root.dialect, is_root=True)
    return state.reader.leaves(bare, list(range(len(rows))))


def _of_leaf(said: RootReading, row: int, leaf: Manifest) -> Iterator[pa.Table]:
    entries = leaf.entries
    alive = np.asarray(live(entries))
    ordinals = np.asarray(pc.fill_null(entries["ordinal"], 0))
    if row in said.added_leaves:
        new = alive & ~is_at(ordinals, said.hidden.get(row))
        yield file_changes("added", entries.filter(pa.array(new)))
    for change, positions in (("removed", said.gone.get(row)), ("added", said.back.get(row))):
        if positions:
            yield file_changes(change, entries.filter(pa.array(alive & is_at(ordinals, positions))))


def is_at(ordinals: np.ndarray, positions: Any) -> np.ndarray:
    """Which ordinals are among the positions, of which there may be far more than a leaf has."""
    mask = np.zeros(len(ordinals), np.bool_)
    if positions is None or not len(ordinals):
        return mask
    from pyroaring import BitMap

    last = int(ordinals.max())
    held = np.asarray((positions & BitMap(range(last + 1))).to_array(), dtype=np.int64)
    there = np.zeros(last + 1, np.bool_)
    there[held] = True
    found: np.ndarray = there[ordinals]
    return found


def _unreadable(manifest: Manifest) -> list[str]:
    return [f"{manifest.location}: {p.text}" for p in manifest.problems if p.severity == "error"]


def _name(root: Manifest, row: int) -> str:
    return str(root.entries["location"][row].as_py())


def _table(parts: list[pa.Table]) -> pa.Table:
    return pa.concat_tables([file_changes("added", ENTRY_SCHEMA.empty_table()), *parts]).combine_chunks()
