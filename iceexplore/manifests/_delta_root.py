"""Roots of Delta tables: the root of a stored tree, or a root composed in memory from a tree and later commits.

RFC ``iceberg-v4-metadata.md``, "Reader Requirements" and "Backreferences": the state of a version is the newest tree at
or before it, without the entries that later ``remove`` actions name by leaf and row, and with the files of later
``add`` actions. In a composed root, removed entries are recorded in manifest DVs, and added files become entries of the
root itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.delta import BackReference, Commit, FileAction, Tree, commit_version, commits_since
from iceexplore.manifests._delta_form import DeltaForm, with_columns
from iceexplore.manifests._manifest_dv import decode_manifest_dv, encode_manifest_dv
from iceexplore.manifests.decode._file import Composition, Head, Part, Source
from iceexplore.manifests.decode._v1_v3 import entry_table
from iceexplore.manifests.model._arrow import HAS_TUPLE, whole
from iceexplore.manifests.model._content_entry import ENTRY_SCHEMA, ContentType, Status
from iceexplore.manifests.model._field_ids import STATS_OFFSETS
from iceexplore.manifests.model._header import ManifestHeader
from iceexplore.manifests.model._reader_schema import PartitionColumn, ReaderSchema, StatsColumn
from iceexplore.metadata import Dialect, Type, arrow_type, resolved_location, type_base
from iceexplore.storage import CACHE, Storage, canonical

if TYPE_CHECKING:
    from pyroaring import BitMap

__all__ = ["composed_root", "tree_root"]

_int32, _int64 = pa.int32(), pa.int64()
#: Types whose JSON bounds are exact: Delta truncates those of timestamps to milliseconds, and binaries have none.
_BOUNDED = frozenset({"int", "long", "float", "double", "string", "date", "decimal"})
_PARTS = frozenset({"entries", "partition", "stats"})


def tree_root(
    form: DeltaForm, part: Part, storage: Storage, location: str, version: int, older: Iterable[tuple[int, str]]
) -> Part:
    """Return the entries of a tree's root, with the versions that added them.

    Delta Lake 4.4 marks every entry as ADDED. In the result, a data file is ADDED if its sequence number is the
    version, and a manifest is ADDED if no older root lists it.

    Parameters
    ----------
    version
        The version of the table that the root describes.
    older
        Version and location of earlier roots, newest first.
    """
    made = form.adapted("entries", part, storage, location)
    entries = made.table
    kinds, status = np.asarray(entries["content_type"]), np.asarray(pc.fill_null(entries["status"], 0)).copy()
    numbers = np.asarray(pc.fill_null(entries["sequence_number"], -1)).copy()
    leaves = {canonical(text) for text in _locations(entries, kinds == ContentType.DATA_MANIFEST)}
    first = dict.fromkeys(leaves, version)
    for number, place in older:
        listed = _listed(form, storage, place) & leaves
        leaves &= listed
        first.update(dict.fromkeys(listed, number))
        if not leaves:
            break
    of_leaf = np.isin(kinds, [ContentType.DATA_MANIFEST, ContentType.MANIFEST_DV])
    own = np.flatnonzero(of_leaf)
    numbers[own] = [first.get(canonical(text), version) for text in _locations(entries, of_leaf)]
    alive = np.isin(status, [Status.ADDED, Status.EXISTING])
    status[alive] = np.where(numbers[alive] == version, Status.ADDED, Status.EXISTING)
    versions = pa.array(numbers, _int64, mask=numbers < 0)
    columns: dict[str, AnyArray] = {"status": pa.array(status, _int32), "snapshot_id": versions}
    for name in ("sequence_number", "file_sequence_number"):
        columns[name] = pc.coalesce(whole(entries[name]), versions)
    return replace(made, table=with_columns(entries, columns))


def _locations(entries: pa.Table, mask: np.ndarray[Any, Any]) -> list[str]:
    return [text or "" for text in whole(entries["location"]).filter(pa.array(mask)).to_pylist()]


def _listed(form: DeltaForm, storage: Storage, location: str) -> set[str]:
    """Return the canonical locations of the leaves that a root lists."""
    entries = Source(storage, location, kind="manifest-list").parts({"entries"})["entries"].table
    kinds = np.asarray(entries["content_type"])
    return {
        canonical(resolved_location(t, form.location)) for t in _locations(entries, kinds == ContentType.DATA_MANIFEST)
    }


def composed_root(
    form: DeltaForm, storage: Storage, location: str, older: Callable[[int], Iterable[tuple[int, str]]]
) -> tuple[Part, Callable[[str], Part]]:
    """Compose the root of a table version that has no tree; return its entries, and a loader for its other parts.

    Parameters
    ----------
    location
        The location of the version's commit.
    older
        A function that returns version and location of the roots before a version, newest first.

    Raises
    ------
    IceexploreError
        A commit that is needed, or the tree's root, is missing or damaged.
    """

    def load() -> _Composed:
        version = commit_version(location)
        assert version is not None
        tree, commits = commits_since(storage, location)
        state = _State(form, storage, version)
        if tree is not None:
            state.begin(tree, older(tree.version + 1))
        for commit in commits:
            state.apply(commit)
        return state.parts(location, tree, commits)

    key = ("delta-root", storage.key(location), location, storage.fingerprint(location))
    made = CACHE.get_or_load(key, load, lambda found: sum(p.nbytes for p in found.parts.values()))
    return made.parts["entries"], made.parts.__getitem__


@dataclass(frozen=True)
class _Composed:
    parts: Mapping[str, Part]


@dataclass
class _Leaf:
    """A leaf of the tree: its row in the root, and the positions that commits removed from it.

    ``before`` is the manifest DV that the tree has for the leaf. ``changed`` is true if any commit removed further
    positions, ``changed_last`` if the last commit did.
    """

    location: str
    row: int
    removed: BitMap | None = None
    before: bytes | None = None
    changed: bool = False
    changed_last: bool = False


@dataclass
class _State:
    """The state of a table while commits are applied to a tree."""

    form: DeltaForm
    storage: Storage
    version: int
    base: dict[str, Part] = field(default_factory=dict)
    leaves: dict[str, _Leaf] = field(default_factory=dict)
    #: ``direct``: the rows of the data files in the tree's root, by location. ``gone``: for each of these rows that a
    #: commit removed, the version of that commit.
    direct: dict[str, int] = field(default_factory=dict)
    gone: dict[int, int] = field(default_factory=dict)
    #: Files of the log by location: the action, and the version that added or last changed the file.
    files: dict[str, tuple[FileAction, int]] = field(default_factory=dict)
    #: Files of the log that the last commit removed.
    dropped: list[tuple[FileAction, int]] = field(default_factory=list)

    def begin(self, tree: Tree, older: Iterable[tuple[int, str]]) -> None:
        """Start from a tree."""
        place = resolved_location(tree.location, self.form.location)
        source = Source(self.storage, place, kind="manifest-list", version=tree.size)
        got = source.parts(_PARTS)
        self.base = {n: self.form.adapted(n, got[n], self.storage, place) for n in ("partition", "stats")}
        self.base["entries"] = tree_root(self.form, got["entries"], self.storage, place, tree.version, older)
        entries = self.base["entries"].table
        kinds = entries["content_type"].to_pylist()
        vectors = entries["deletion_vector"].to_pylist()
        for row, (kind, text) in enumerate(zip(kinds, entries["location"].to_pylist(), strict=True)):
            if kind == ContentType.DATA_MANIFEST and text:
                self.leaves[canonical(text)] = _Leaf(text, row)
            elif kind == ContentType.DATA and text:
                self.direct[canonical(text)] = row
        for row, kind in enumerate(kinds):
            if kind == ContentType.MANIFEST_DV:
                leaf = self.leaves.get(canonical(entries["location"][row].as_py() or ""))
                content = (vectors[row] or {}).get("inline_content")
                if leaf is not None and content is not None:
                    leaf.before = content

    def apply(self, commit: Commit) -> None:
        """Apply a commit, removals first: a changed deletion vector is a removal and an addition of its data file."""
        last = commit.version == self.version
        if last:
            self.dropped = []
        unknown: dict[str, FileAction] = {}
        for action in commit.files:
            if not action.adds or action.back_reference is not None:
                self._remove(action, commit.version, last, unknown)
        for action in commit.files:
            if action.adds:
                place = self._place(action)
                if place in self.direct and self.direct[place] not in self.gone:
                    self.gone[self.direct[place]] = commit.version
                unknown.pop(place, None) if action.back_reference is not None else None
                self.files[place] = (action, commit.version)
        if unknown:
            self._remove_by_path(unknown, last)

    def _place(self, action: FileAction) -> str:
        return canonical(resolved_location(action.location, self.form.location))

    def _remove(self, action: FileAction, version: int, last: bool, unknown: dict[str, FileAction]) -> None:
        place = self._place(action)
        if place in self.files:
            found = self.files.pop(place)
            if last:
                self.dropped.append(found)
            return
        reference = action.back_reference
        leaf = None if reference is None else self._leaf(reference)
        if leaf is not None and reference is not None:
            self._mark(leaf, reference.position, last)
        elif place in self.direct:
            self.gone[self.direct[place]] = version
        elif not action.adds:
            unknown[place] = action

    def _leaf(self, reference: BackReference) -> _Leaf | None:
        return self.leaves.get(canonical(resolved_location(reference.manifest, self.form.location)))

    def _mark(self, leaf: _Leaf, position: int, last: bool) -> None:
        from pyroaring import BitMap

        if leaf.removed is None:
            leaf.removed = BitMap() if leaf.before is None else decode_manifest_dv(leaf.before, location=leaf.location)
        leaf.removed.add(position)
        leaf.changed, leaf.changed_last = True, leaf.changed_last or last

    def _remove_by_path(self, wanted: dict[str, FileAction], last: bool) -> None:
        """Remove entries that an action names by path only, not by leaf and row; this searches all leaves."""
        for leaf in self.leaves.values():
            source = Source(self.storage, leaf.location, kind="manifest")
            part = self.form.adapted("entries", source.parts({"entries"})["entries"], self.storage, leaf.location)
            data = part.table.filter(pc.equal(part.table["content_type"], int(ContentType.DATA)))
            for row, text in enumerate(data["location"].to_pylist()):
                if canonical(text or "") in wanted:
                    self._mark(leaf, data["ordinal"][row].as_py(), last)

    # ------------------------------------------------------------------------------------------------------------------

    def parts(self, location: str, tree: Tree | None, commits: list[Commit]) -> _Composed:
        """Return the three parts of the root."""
        head = self.base["entries"].head if self.base else _empty_head(self.form)
        stored = head.rows
        logged = [*self.files.values()]
        kept = self._kept()
        numbers = [commit.version for commit in commits]
        added = self._added(logged, stored, dropped=False, first=min(numbers, default=0))
        dropped = self._added(self.dropped, stored + len(logged), dropped=True, first=0)
        entries = pa.concat_tables([kept, *self._manifest_dvs(), *added, *dropped]).combine_chunks()
        entries = entries.take(build.array(np.argsort(entries["ordinal"].to_numpy(), kind="stable")))
        actions = [action for action, _ in [*logged, *self.dropped]]
        partition, problems = self._partition(actions, location)
        stats, columns = self._stats(actions, head.reader_schema, stored)
        fields = tuple(PartitionColumn(n, int(n[1:]), n, None) for n in partition.column_names if n != HAS_TUPLE)
        schema = replace(head.reader_schema, partition=fields, stats=columns)
        length = head.length + sum(commit.length for commit in commits)
        files = (
            []
            if tree is None
            else [(resolved_location(tree.location, self.form.location), self.base["entries"].head.length)]
        )
        files += [(commit.location, commit.length) for commit in commits]
        composed = Composition(stored, tuple(files))
        head = replace(head, reader_schema=schema, rows=stored + len(actions), length=length, composed=composed)
        known = self.base["entries"].problems if self.base else ()
        return _Composed({
            "entries": Part(head, entries, (*known, *problems)),
            "partition": Part(head, partition, ()),
            "stats": Part(head, stats, ()),
        })  # fmt: skip

    def _kept(self) -> pa.Table:
        """Return the tree's entries, without removed ones; those that the last commit removed stay, as DELETED."""
        if not self.base:
            return ENTRY_SCHEMA.empty_table()
        entries = self.base["entries"].table
        ordinals = np.asarray(entries["ordinal"])
        gone = {int(ordinals[row]): version for row, version in self.gone.items()}
        status = np.asarray(pc.fill_null(entries["status"], 0)).copy()
        snapshot = entries["snapshot_id"].to_pylist()
        status[status == Status.ADDED] = Status.EXISTING  # the tree's version, an older one than this, added it
        keep = np.ones(len(entries), dtype=np.bool_)
        for row, ordinal in enumerate(ordinals.tolist()):
            if ordinal in gone:
                keep[row] = gone[ordinal] == self.version
                status[row], snapshot[row] = Status.DELETED, gone[ordinal]
        replaced = {leaf.location for leaf in self.leaves.values() if leaf.changed}
        for row, kind in enumerate(entries["content_type"].to_pylist()):
            if kind == ContentType.MANIFEST_DV and entries["location"][row].as_py() in replaced:
                keep[row] = False
        columns: dict[str, AnyArray] = {
            "status": pa.array(status, _int32),
            "snapshot_id": pa.array(snapshot, _int64),
        }
        return with_columns(entries, columns).filter(pa.array(keep))

    def _manifest_dvs(self) -> list[pa.Table]:
        """Return the manifest DVs of the leaves from which commits removed entries."""
        changed = [leaf for leaf in self.leaves.values() if leaf.changed and leaf.removed is not None]
        if not changed:
            return []
        entries = self.base["entries"].table
        rows = len(changed)
        contents = [encode_manifest_dv(leaf.removed) for leaf in changed if leaf.removed is not None]
        numbers = pa.array([self.version if leaf.changed_last else None for leaf in changed], _int64)
        status = [Status.ADDED if leaf.changed_last else Status.EXISTING for leaf in changed]
        before = whole(entries["snapshot_id"]).take(pa.array([leaf.row for leaf in changed]))
        columns: dict[str, AnyArray] = {
            "ordinal": whole(entries["ordinal"]).take(pa.array([leaf.row for leaf in changed])),
            "content_type": pa.repeat(pa.scalar(int(ContentType.MANIFEST_DV), _int32), rows),
            "location": pa.array([leaf.location for leaf in changed], pa.string()),
            "referenced_file": pa.array([leaf.location for leaf in changed], pa.string()),
            "status": pa.array([int(s) for s in status], _int32),
            "record_count": pa.array([len(leaf.removed or ()) for leaf in changed], _int64),
            "deletion_vector": _vectors([None] * rows, [None] * rows, contents),
            **{n: pc.coalesce(numbers, before) for n in ("snapshot_id", "sequence_number", "file_sequence_number")},
        }
        return [entry_table(rows, columns)]

    def _added(self, files: list[tuple[FileAction, int]], start: int, *, dropped: bool, first: int) -> list[pa.Table]:
        """Return the entries of files in the log, and of their deletion vectors."""
        if not files:
            return []
        rows = len(files)
        actions = [action for action, _ in files]
        versions = pa.array([version for _, version in files], _int64)
        added = pa.array([version if a.added_in is None else a.added_in for a, version in files], _int64)
        ordinals = pa.array(np.arange(start, start + rows, dtype=np.int64))
        location = pa.array([resolved_location(a.location, self.form.location) for a in actions], pa.string())
        now = pa.scalar(self.version, _int64)

        def status(numbers: AnyArray) -> AnyArray:
            if dropped:
                return pa.repeat(pa.scalar(int(Status.DELETED), _int32), rows)
            return pc.if_else(pc.equal(numbers, now), int(Status.ADDED), int(Status.EXISTING)).cast(_int32)

        gone = pa.repeat(now, rows) if dropped else None
        data: dict[str, AnyArray] = {
            "ordinal": ordinals,
            "content_type": pa.repeat(pa.scalar(int(ContentType.DATA), _int32), rows),
            "location": location,
            "file_format": pa.repeat(pa.scalar("parquet"), rows),
            "status": status(added),
            "snapshot_id": added if gone is None else gone,
            "sequence_number": added,
            "file_sequence_number": added,
            "partition_spec_id": self.form.spec_ids(added),
            "record_count": pa.array([a.rows for a in actions], _int64),
            "file_size_in_bytes": pa.array([a.size for a in actions], _int64),
            "first_row_id": pa.array([a.first_row_id for a in actions], _int64),
        }
        made = [entry_table(rows, data)]
        with_vector = [i for i, a in enumerate(actions) if a.vector is not None]
        if with_vector:
            at = pa.array(with_vector)
            vectors = [a.vector for a in actions if a.vector is not None]
            where = [
                self.form.vector_file(resolved_location(v.location, self.form.location), self.storage) for v in vectors
            ]
            numbers = versions.take(at)
            made.append(entry_table(len(at), {
                "ordinal": ordinals.take(at),
                "content_type": pa.repeat(pa.scalar(int(ContentType.POSITION_DELETE), _int32), len(at)),
                "location": pa.array(where, pa.string()),
                "file_format": pa.repeat(pa.scalar("puffin"), len(at)),
                "status": status(versions).take(at),
                "snapshot_id": numbers if gone is None else gone.take(at),
                "sequence_number": numbers,
                "file_sequence_number": numbers,
                "partition_spec_id": data["partition_spec_id"].take(at),
                "record_count": pa.array([v.cardinality for v in vectors], _int64),
                "referenced_file": location.take(at),
                "deletion_vector": _vectors([v.offset for v in vectors], [v.size_in_bytes for v in vectors], None),
            }))  # fmt: skip
        return made

    def _partition(self, actions: list[FileAction], location: str) -> tuple[pa.Table, tuple[Any, ...]]:
        names = {f.physical for f in self.form.fields}
        texts = {n: pa.array([a.partition.get(n) for a in actions], pa.string()) for n in names}
        made, problems = self.form.typed(texts, len(actions), location)
        base = self.base.get("partition")
        if base is None:
            return made, tuple(problems)
        columns = [n for n in made.column_names if n in base.table.column_names]
        parts = [made.select(columns).cast(base.table.select(columns).schema), base.table.select(columns)]
        return pa.concat_tables([parts[1], parts[0]]).combine_chunks(), tuple(problems)

    def _stats(
        self, actions: list[FileAction], schema: ReaderSchema, stored: int
    ) -> tuple[pa.Table, tuple[StatsColumn, ...]]:
        """Return the part ``stats``: the tree's statistics and those of the log's files."""
        base = self.base["stats"].table if self.base else pa.table({"": pa.nulls(stored)}).select([])
        columns = {c.column: c for c in schema.stats}
        arrays: dict[str, AnyArray] = {n: whole(base.column(n)) for n in base.column_names}
        for name, (column_id, kind) in self.form.columns.items():
            for statistic, values in _statistics(actions, name, kind).items():
                key = f"c{column_id}_{STATS_OFFSETS[statistic]}"
                before = arrays.get(key)
                if before is None:
                    before = build.nulls(stored, values.type)
                    columns[key] = StatsColumn(key, column_id, STATS_OFFSETS[statistic], None)
                elif before.type != values.type:
                    continue
                arrays[key] = pa.concat_arrays([before, values])
        for key, array in arrays.items():
            if len(array) == stored:
                arrays[key] = pa.concat_arrays([array, build.nulls(len(actions), array.type)])
        rows = stored + len(actions)
        table = pa.table(arrays) if arrays else pa.table({"": pa.nulls(rows)}).select([])
        return table, tuple(columns[key] for key in arrays if key in columns)


def _statistics(actions: list[FileAction], name: str, kind: Type) -> dict[str, AnyArray]:
    """Return the log's statistics of one column for some files, without values that do not fit the column's type."""
    if type_base(kind) not in _BOUNDED or not actions:
        return {}
    target = arrow_type(kind)
    out: dict[str, AnyArray] = {}
    for statistic, key in (("lower", "minValues"), ("upper", "maxValues")):
        values = [_bound(_of(a.stats, key, name), target) for a in actions]
        if any(value is not None for value in values):
            out[statistic] = pa.array(values, target)
    counts = [_of(a.stats, "nullCount", name) for a in actions]
    nulls = [c if type(c) is int and 0 <= c < 1 << 63 else None for c in counts]
    if any(count is not None for count in nulls):
        out["null_count"] = pa.array(nulls, _int64)
    if out:
        out["tight_bounds"] = pa.array([a.stats.get("tightBounds") is True for a in actions], pa.bool_())
    return out


def _of(stats: Mapping[str, Any], key: str, name: str) -> object:
    found = stats.get(key)
    return found.get(name) if isinstance(found, dict) else None


def _bound(value: object, target: pa.DataType) -> object:
    """Convert a bound to its column's type; None (unknown) if it does not fit."""
    try:
        if pa.types.is_string(target):
            return value if isinstance(value, str) else None
        if pa.types.is_date(target):
            return date.fromisoformat(value) if isinstance(value, str) else None
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            return None
        if pa.types.is_floating(target):
            value = float(value)
        elif pa.types.is_decimal(target):
            value = Decimal(value)
        return pa.scalar(value, target).as_py()
    except (ValueError, OverflowError, pa.ArrowException):
        return None


def _vectors(
    offsets: Iterable[int | None], sizes: Iterable[int | None], contents: list[bytes] | None
) -> pa.StructArray:
    kind = ENTRY_SCHEMA.field("deletion_vector").type
    first, second = pa.array(list(offsets), _int64), pa.array(list(sizes), _int64)
    inline = pa.nulls(len(first), pa.binary()) if contents is None else pa.array(contents, pa.binary())
    return pa.StructArray.from_arrays([first, second, inline], fields=list(kind))


def _empty_head(form: DeltaForm) -> Head:
    schema = ReaderSchema(None, pa.schema([]), frozenset(), (), True, frozenset(), "v4-draft", ())
    return Head(ManifestHeader(format="parquet"), schema, Dialect.V4_DRAFT, True, 0)
