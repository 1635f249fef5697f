"""The reader of a table's manifests: roots and leaves with inheritance, in parallel; and loose files."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Collection, Generator, Hashable, Iterable, Iterator
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from typing import Any

import pyarrow as pa

from iceexplore.arrow import AnyColumn, Int64s, build
from iceexplore.arrow import compute as pc
from iceexplore.delta import commit_version
from iceexplore.errors import FormatError, IceexploreError, OptionError, Problem, Problems, problem
from iceexplore.manifests._delta_form import DeltaForm
from iceexplore.manifests._delta_root import composed_root, tree_root
from iceexplore.manifests._inline_v1 import inline_root
from iceexplore.manifests._manifest import Manifest
from iceexplore.manifests._manifest_dv import apply_manifest_dvs
from iceexplore.manifests._root_v4 import direct_view, is_manifest, v4_root
from iceexplore.manifests.checks._claims import RootClaims
from iceexplore.manifests.checks._entries import added_problems, entry_problems, snapshot_problems
from iceexplore.manifests.checks._known_numbers import (
    leaf_number_problems,
    list_number_problems,
    spec_problems,
    status_problems,
)
from iceexplore.manifests.checks._manifest import (
    count_problems,
    header_problems,
    kind_problems,
    length_problems,
    other_snapshot_problems,
    repeated_problems,
    summary_problems,
)
from iceexplore.manifests.checks._totals import total_problems
from iceexplore.manifests.checks._v4 import key_problems, leaf_problems
from iceexplore.manifests.column_stats._kept_columns import KeptColumns
from iceexplore.manifests.column_stats._maps import MapStats
from iceexplore.manifests.decode._avro import expect_files
from iceexplore.manifests.decode._file import PARTS, Loader, Part, Source
from iceexplore.manifests.decode._inherit import Parent, inherit, replace
from iceexplore.manifests.decode._role import role_of
from iceexplore.manifests.model._arrow import whole
from iceexplore.manifests.model._content_entry import ContentType, Status, live
from iceexplore.manifests.model._header import ManifestHeader
from iceexplore.manifests.model._locations import absolute_entries
from iceexplore.manifests.model._table_context import TableTypes
from iceexplore.metadata import Dialect, Snapshot, TableMetadata, parse_schema, parse_spec
from iceexplore.storage import CACHE, Storage, canonical, in_order, is_local, progress

__all__ = ["ManifestReader", "open_manifest"]

#: The first format version with relative locations.
_RELATIVE_FROM = 4
#: Total bytes of local manifests up to which starting threads costs more than it saves.
_FEW = 1 << 20
#: The columns of a leaf's row in the root that are needed to read the leaf. Partition summaries are left out, because
#: they are slow to convert.
_OF_PARENT = [
    "location",
    "content_type",
    "snapshot_id",
    "sequence_number",
    "partition_spec_id",
    "first_row_id",
    "file_size_in_bytes",
    "manifest_stats",
]
#: Limits of the cache of built manifests: total size of their files in bytes, and number of manifests.
_KEPT_BYTES, _KEPT = 8 << 20, 256
#: Approximate ratio of a decoded manifest's memory to its file size.
_DECODED = 8
_MANIFEST_TYPES = (ContentType.DATA_MANIFEST, ContentType.DELETE_MANIFEST)
#: Dialects whose manifests have one content type and one spec, both stated in the manifest list.
_LISTED_DIALECTS = frozenset({"v1", "v2", "v3"})


class ManifestReader:
    """Reads the manifests of one table.

    Parameters
    ----------
    storage
        The storage with the table's files.
    metadata
        The table's metadata, for specs and the types of columns.
    problems
        The list to which problems are added; if it is strict, they are raised.
    before
        The reader of an earlier state of the same table. If both would build equal leaves, they share those that roots
        list in equal rows.

    Attributes
    ----------
    seen
        The locations of all roots and leaves returned so far, damaged or not, read or cached.
    """

    def __init__(
        self, storage: Storage, metadata: TableMetadata, problems: Problems, before: ManifestReader | None = None
    ) -> None:
        self.storage = storage
        self.metadata = metadata
        self.problems = problems
        self.seen: set[str] = set()
        self._meaning = TableTypes.of(metadata)
        self._delta = DeltaForm.of(metadata)
        shares = before is not None and before._reads_as(self)
        self._twins: _Kept = before._twins if before is not None and shares else _Kept()
        self._kept = _Kept()

    def _reads_as(self, other: ManifestReader) -> bool:
        """Return whether another reader would build the same leaves from the same files and rows."""
        return (
            self.storage is other.storage
            and self._delta is None
            and other._delta is None
            and self._meaning == other._meaning
            and self.metadata.format_version == other.metadata.format_version
        )

    def root(self, snapshot: Snapshot) -> Manifest:
        """Return a snapshot's manifest list or root manifest; for inline manifests of v1, a root that lists them.

        For a file that is missing or damaged, return a manifest without entries and report a `Problem`.

        Raises
        ------
        IceexploreError
            The file is missing or damaged, and problems are strict.
        """
        location = self.root_location(snapshot)
        if location is None and snapshot.manifests is not None:
            return self._noted(inline_root(self.storage, self.metadata, snapshot))
        if not location:
            where = f"{self.metadata.location}#snapshot {snapshot.snapshot_id}"
            text = "The snapshot has no manifest list, no root manifest and no manifests."
            return self._noted(Manifest.empty("", (problem("metadata-invalid", where, text),), is_root=True))
        try:
            part, load = self._root_part(location)
        except IceexploreError as error:
            return self._noted(Manifest.empty(location, (_problem_of(error, location),), is_root=True))
        key = (location, snapshot.snapshot_id)
        found = self._kept.get(key, part)
        return self._noted(found or self._kept.put(key, part, self._made_root(location, part, snapshot, load)))

    def listed_specs(self, snapshot: Snapshot) -> frozenset[int | None] | None:
        """Return the partition spec ids in a snapshot's manifest list, with None if some manifest has no recorded id.

        The list is decoded but not checked: with checks, this would take twice as long. Return None for a root
        manifest, for inline manifests, and for a missing or damaged list, which `root` reports.
        """
        location = self.root_location(snapshot)
        if not location or self._delta is not None:
            return None
        try:
            part, _ = self._root_part(location)
        except IceexploreError:
            return None
        if part.problems or not part.head.is_root or part.head.dialect.has_root_manifest:
            return None
        return frozenset(build.to_pylist(pc.unique(part.table["partition_spec_id"])))

    def _root_part(self, location: str) -> tuple[Part, Loader]:
        if self._delta is not None and commit_version(location) is not None:
            return composed_root(self._delta, self.storage, location, self._older_trees)
        source = Source(self.storage, location, kind="manifest-list")
        part = source.parts({"entries"})["entries"]
        return part, _loader(source, {"entries": part}, self._delta)

    def _older_trees(self, version: int) -> Iterator[tuple[int, str]]:
        """Yield version and root location of each tree that a Delta table has before a version, newest first."""
        for snapshot in sorted(self.metadata.snapshots, key=lambda s: -s.snapshot_id):
            location = self.root_location(snapshot) if snapshot.snapshot_id < version else None
            if location and commit_version(location) is None:
                yield snapshot.snapshot_id, location

    def root_location(self, snapshot: Snapshot) -> str | None:
        """Return the location of a snapshot's manifest list or root, spelled as in `seen`; None if there is none."""
        return snapshot.root_location

    def _made_root(self, location: str, part: Part, snapshot: Snapshot, load: Loader) -> Manifest:
        if part.head.dialect.has_root_manifest:
            if self._delta is not None and commit_version(location) is None and self._delta.wrote(part.head):
                version = snapshot.snapshot_id
                part = tree_root(self._delta, part, self.storage, location, version, self._older_trees(version))
            made = v4_root(location, part, snapshot, self._meaning, load, self.problems)
            return self._compared(made, snapshot)
        if not part.head.is_root:
            item = problem("file-corrupt", location, "The file is a manifest, not a manifest list.")
            return Manifest.empty(location, (item,), is_root=True)
        relative_to = self.metadata.location if self._may_be_relative(part.head.dialect) else None
        number = snapshot.sequence_number
        made = _root_manifest(location, part, snapshot.snapshot_id, number, relative_to, metadata=self.metadata)
        return self._compared(made, snapshot)

    def direct(self, root: Manifest) -> Manifest | None:
        """Return the files in a V4 root itself as a leaf whose ordinals are those of the root.

        Return None if the root lists no files directly, as is always so below V4.
        """
        return direct_view(root)

    def leaf(self, root: Manifest, row: int, parts: Iterable[str] = frozenset({"entries"})) -> Manifest:
        """Return the manifest in one row of a root, with its entries after inheritance from that row.

        In V4, the column ``manifest_dv`` marks entries that the root's manifest DVs remove; they are not left out.

        Parameters
        ----------
        row
            The row in ``root.entries``; it must be a manifest.
        parts
            Any of ``entries``, ``partition``, ``stats``: the parts to decode now. Others are decoded when needed, which
            reads the file again unless it is small.

        Raises
        ------
        OptionError
            The row is not a manifest.
        IceexploreError
            The file is missing or damaged, and problems are strict.
        """
        return self._noted(self._leaf(root, row, _Wanted(frozenset(parts))))

    def leaves(
        self,
        root: Manifest,
        rows: Iterable[int] | None = None,
        parts: Iterable[str] = frozenset({"entries"}),
        columns: Collection[int] | None = None,
    ) -> Iterator[Manifest]:
        """Yield the manifests of a root in order. Reads ahead in threads, except small local manifests.

        Closing the generator cancels reads that have not started.

        Parameters
        ----------
        rows
            Rows of ``root.entries``; each leaf has its row as ``Manifest.root_row``. By default, the files in the root
            itself come first (`direct`), then every manifest that is not DELETED.
        columns
            With the part ``stats``: the columns whose statistics are needed; do not request those of other columns from
            the leaves. If they are all cached, the part is not decoded again. If the statistics of all manifests would
            not fit into the cache, only these columns are cached.
        """
        wanted = _Wanted(frozenset(parts), None if columns is None else frozenset(columns))
        if rows is None:
            own = self.direct(root)
            if own is not None:
                yield own
        order = _manifest_rows(root) if rows is None else list(rows)
        if len(order) < 2 or self._at_hand(root, order):
            yield from (self._noted(self._leaf(root, o, wanted)) for o in order)
            return
        sizes = [max(0, size) for size in build.to_pylist(pc.fill_null(_sizes(root, order), 0))]
        expect_files(sizes)
        wanted = replace_fields(wanted, transient=columns is not None and self._are_many(root, sizes))
        with progress(len(order), "manifests") as step:
            for leaf in self._ahead(((root, row) for row in order), wanted):
                yield leaf
                step()

    def leaves_of(
        self, places: Iterable[tuple[Manifest, int]], parts: Iterable[str] = frozenset({"entries"})
    ) -> Generator[Manifest, None, None]:
        """Yield manifests of several roots, in the order of ``places``. Reads ahead in threads.

        Closing the generator cancels reads that have not started.

        Parameters
        ----------
        places
            Pairs of a root and one of its rows; consumed lazily, as manifests are read ahead.
        """
        return self._ahead(places, _Wanted(frozenset(parts)))

    def warm(self, root: Manifest, most: int) -> Generator[None, None, None]:
        """Decode the manifests of a root into the cache, one per step, so that later calls need not read them.

        `problems` and `seen` do not change, because they describe what users have looked at. Nothing is decoded if the
        root does not state the size of every manifest, if the sizes add up to more than ``most`` bytes, or if the
        decoded manifests would take more than half of the cache.
        """
        order = _manifest_rows(root)
        sizes = build.to_pylist(pc.fill_null(_sizes(root, order), 0))
        if min(sizes, default=0) <= 0 or sum(sizes) > min(most, CACHE.max_bytes // 2 // _DECODED):
            return
        for row in order:
            self._leaf(root, row, _Wanted(PARTS))
            yield

    def _ahead(self, places: Iterable[tuple[Manifest, int]], wanted: _Wanted) -> Generator[Manifest, None, None]:
        def read(place: tuple[Manifest, int]) -> Manifest:
            return self._leaf(*place, wanted)

        def weigh(place: tuple[Manifest, int]) -> int:
            root, row = place
            return _DECODED * max(0, root.entries["file_size_in_bytes"][row].as_py() or 0)

        found = in_order(read, places, width=self.storage.readers, weigh=weigh, name="iceexplore-manifests")
        try:
            for leaf in found:
                yield self._noted(leaf)
        finally:
            found.close()

    def _at_hand(self, root: Manifest, order: list[int]) -> bool:
        """Return whether reading all of these manifests takes less time than starting threads."""
        if not is_local(self.storage.folder):
            return False
        sizes = _sizes(root, order)
        return sizes.null_count == 0 and int(pc.sum(sizes).as_py()) <= _FEW

    def _are_many(self, root: Manifest, sizes: Iterable[int]) -> bool:
        """Return whether the decoded statistics maps of these manifests would fill most of the cache; V4 has none."""
        return not root.dialect.has_root_manifest and _DECODED * sum(sizes) > CACHE.max_bytes // 2

    def _may_be_relative(self, dialect: Dialect) -> bool:
        """Return whether locations may be relative, which is new in V4.

        The V4 manifests that Java writes today look like older ones, so the table's format version decides.
        """
        version_4 = self.metadata.format_version >= _RELATIVE_FROM
        return dialect.has_root_manifest or (dialect is Dialect.V4_JAVA and version_4)

    def _compared(self, root: Manifest, snapshot: Snapshot) -> Manifest:
        """Compare a root with its snapshot (id and summary); return the root with a problem for each contradiction."""
        found = other_snapshot_problems(root.location, root.header, snapshot.snapshot_id)
        # In a Delta table, deletion vectors are on the entries of data files, even if the root is of the proposal's
        # dialect.
        form = root.dialect if self._delta is None else Dialect.V4_DRAFT
        found += total_problems(root.location, root.entries, form, root.dv_rows, snapshot.summary)
        root.problems = (*root.problems, *found)
        root.claims = RootClaims(root, self._meaning)
        return root

    def _noted(self, manifest: Manifest) -> Manifest:
        for item in manifest.problems:
            self.problems.add(item)
        self.seen.add(manifest.location)
        return manifest

    def _leaf(self, root: Manifest, index: int, wanted: _Wanted) -> Manifest:
        row = root.row(index, _OF_PARENT)
        location = row["location"]
        if root.dialect.has_root_manifest and row["content_type"] not in _MANIFEST_TYPES:
            found = row["content_type"]
            raise OptionError(f"row {index} of {root.location} is not a manifest but has content type {found}")
        if not location:
            where = f"{root.location}#entry {index}"
            item = problem("file-corrupt", where, "The entry has no location.")
            return Manifest.empty("", (item,), root_row=index)
        parent = Parent(
            row["snapshot_id"],
            row["sequence_number"],
            row["partition_spec_id"],
            row["first_row_id"],
            row["content_type"],
            self._meaning.unpartitioned,
        )
        source = Source(self.storage, location, kind="manifest", version=row["file_size_in_bytes"])
        kept = KeptColumns(source.key)
        parts = wanted.parts
        kinds = {i: self._meaning.types.get(i) for i in wanted.columns or ()}
        if wanted.columns is not None and "stats" in parts and kept.has(kinds):
            parts = parts - {"stats"}
        try:
            got, problems = _parts(source, parts, {"stats"} if wanted.transient else ())
        except IceexploreError as error:
            return Manifest.empty(location, (_problem_of(error, location),), root_row=index)
        part = got["entries"]
        rows = part.table.num_rows
        if wanted.transient and "stats" in got and kept.takes(rows, kinds) and got["stats"].table.num_rows == rows:
            # Decode here, in a thread that reads ahead, so that few manifests have their maps in memory at a time.
            kept.keep(kinds, MapStats(got.pop("stats").table))
        key = (root.location, index, location)
        found = self._kept.get(key, part, root)
        if found is not None:
            return found
        # Many roots list the same manifest in equal rows. The resulting `Manifest` objects share their content and
        # differ only in the root, unless a root also has manifest DVs for the manifest.
        vectors = root.dv_rows.get(canonical(location), []) if root.dialect.has_root_manifest else []
        same = None if vectors else (location, *_plain(row))
        twin = None if same is None else self._twins.get(same, part)
        if twin is not None:
            return self._kept.put(key, part, twin.under(root, index, self.problems), root)
        load = _loader(source, got, self._delta)
        part = load("entries")
        head = part.head
        if head.is_root:
            what = "root manifest" if head.dialect.has_root_manifest else "manifest list"
            item = problem("file-corrupt", location, f"The file is a {what}, not a manifest.")
            return Manifest.empty(location, (item,), root_row=index)
        problems += part.problems
        problems += length_problems(location, row["file_size_in_bytes"], head.length)
        if head.whole:
            problems += count_problems(location, row["manifest_stats"], part.table, head.dialect)
        if head.dialect in _LISTED_DIALECTS:
            problems += header_problems(location, head.header)
            problems += kind_problems(
                location, parent.content_type, parent.partition_spec_id, head.header.spec_id, part.table
            )
            problems += leaf_number_problems(location, part.table)
        entries = inherit(part.table, parent, own_specs=head.dialect.has_root_manifest)
        if head.dialect.has_root_manifest:
            content = "delete" if parent.content_type == ContentType.DELETE_MANIFEST else "data"
            problems += key_problems(location, head.header.metadata, content, head.dialect)
            problems += status_problems(location, entries, head.dialect)
            problems += leaf_problems(location, parent.content_type, entries, head.dialect)
            problems += spec_problems(location, entries, self._meaning.specs, "spec_id")
        if self._may_be_relative(head.dialect):
            entries, more = absolute_entries(entries, self.metadata.location, location)
            problems += more
        least = (row["manifest_stats"] or {}).get("min_sequence_number")
        problems += entry_problems(location, entries, parent.sequence_number, least, self._meaning.types)
        if vectors:
            removed, more = apply_manifest_dvs(self.storage, root, vectors, entries["ordinal"], head.rows, location)
            problems += more
            entries = entries if removed is None else replace(entries, {"manifest_dv": removed})
        made = Manifest(
            location,
            entries,
            dialect=head.dialect,
            header=head.header,
            length=head.length,
            problems=tuple(problems),
            reader_schema=head.reader_schema,
            load=load,
            meaning=self._meaning,
            spec_id=parent.partition_spec_id,
            report=self.problems,
            root_row=index,
            stored=head.rows,
            claims=root.claims,
            kept_columns=kept,
        )
        if same is not None:
            self._twins.put(same, part, made)
        return self._kept.put(key, part, made, root)


class _Kept:
    """A cache of recently built manifests; each is valid only with the decoded part and the root it was built from.

    If the file has changed or was evicted from the cache of files, its part is a new object. The total size of the
    files is limited, because decoded manifests take about ten times as much memory.
    """

    def __init__(self) -> None:
        self._made: OrderedDict[Any, tuple[Part, Manifest | None, Manifest]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:  # pickled without content: in another process, the cache starts empty
        return _Kept, ()

    def get(self, key: Hashable, part: Part, root: Manifest | None = None) -> Manifest | None:
        """Return the cached manifest if it was built from this part and root, else None."""
        with self._lock:
            found = self._made.get(key)
            if found is None or found[0] is not part or found[1] is not root:
                return None
            self._made.move_to_end(key)
            return found[2]

    def put(self, key: Hashable, part: Part, made: Manifest, root: Manifest | None = None) -> Manifest:
        """Cache a manifest unless it is large, and return it."""
        if part.head.length > _KEPT_BYTES // 4:
            return made
        with self._lock:
            if key in self._made:
                self._drop(key)
            self._made[key] = (part, root, made)
            self._bytes += part.head.length
            while self._bytes > _KEPT_BYTES or len(self._made) > _KEPT:
                self._drop(next(iter(self._made)))
        return made

    def _drop(self, key: Hashable) -> None:
        part, _, _ = self._made.pop(key)
        self._bytes -= part.head.length


def _plain(row: dict[str, Any]) -> Iterator[Any]:
    """Return the values of a root's row in hashable form."""
    return (tuple(value.items()) if isinstance(value, dict) else value for value in row.values())


@dataclass(frozen=True)
class _Wanted:
    """The parts of leaves to decode, the columns whose statistics are needed, and whether to cache only these."""

    parts: frozenset[str]
    columns: frozenset[int] | None = None
    transient: bool = False


def _parts(
    source: Source, names: frozenset[str], unkept: Collection[str] = ()
) -> tuple[dict[str, Part], list[Problem]]:
    """Return the parts of a leaf; if it is damaged, at least its entries, and a problem for the rest."""
    try:
        return source.parts(names | {"entries"}, unkept), []
    except FormatError as error:
        if names <= {"entries"}:
            raise
        return source.parts({"entries"}), [_problem_of(error, source.location)]


def _sizes(root: Manifest, rows: list[int]) -> Int64s:
    """Return the sizes in bytes that a root states for some manifests."""
    return whole(root.entries["file_size_in_bytes"].take(pa.array(rows, pa.int64())))


def _manifest_rows(root: Manifest) -> list[int]:
    """Return the rows of a root's manifests that are not DELETED."""
    if not root.dialect.has_root_manifest:
        return list(range(len(root)))
    mask = pc.and_(is_manifest(root.entries), live(root.entries))
    return [int(i) for i in build.to_pylist(pc.indices_nonzero(mask))]


def open_manifest(storage: Storage, location: str) -> Manifest:
    """Read a loose manifest or manifest list, without inheritance and with the types of its own header.

    Raises
    ------
    IceexploreError
        The file is missing or cannot be read at all.
    """
    info = storage.stat(location)
    source = Source(storage, location, kind="manifest", version=(info.size, info.etag, info.modified_ms))
    part = source.parts({"entries"})["entries"]
    head = part.head
    loader = _loader(source, {"entries": part})
    if head.dialect.has_root_manifest:
        if role_of(part.table, head.dialect, head.header.content, location).is_root:
            return v4_root(location, part, None, TableTypes(), loader, Problems())
        return Manifest(
            location,
            part.table,
            dialect=head.dialect,
            header=head.header,
            length=head.length,
            problems=part.problems,
            reader_schema=head.reader_schema,
            load=loader,
            stored=head.rows,
        )
    if head.is_root:
        return _root_manifest(location, part, head.header.number("snapshot-id"))
    entries = part.table
    columns: dict[str, AnyColumn] = {
        "partition_spec_id": pa.repeat(pa.scalar(head.header.spec_id, pa.int32()), len(entries))
    }
    if head.dialect == "v1":  # v1 has no sequence numbers; they are 0 (spec, "Sequence Number Inheritance")
        columns |= {n: pc.fill_null(entries[n], 0) for n in ("sequence_number", "file_sequence_number")}
    meaning, spec_id = _own_meaning(head.header)
    return Manifest(
        location,
        replace(entries, columns),
        dialect=head.dialect,
        header=head.header,
        length=head.length,
        problems=part.problems,
        reader_schema=head.reader_schema,
        load=loader,
        meaning=meaning,
        spec_id=spec_id,
    )


def _own_meaning(header: ManifestHeader) -> tuple[TableTypes, int | None]:
    """Return the types, spec and spec id that a manifest's own header states; without what cannot be parsed."""
    types, specs, spec_id = {}, {}, header.spec_id if header.spec_id is not None else 0
    with contextlib.suppress(IceexploreError):
        types = {i: f.type for i, (_, f) in parse_schema(header.json("schema")).by_id().items()}
    try:
        specs[spec_id] = parse_spec(header.json("partition-spec"), spec_id)  # a list of fields, or an object
    except IceexploreError:
        return TableTypes(types, {}), None
    return TableTypes(types, specs), spec_id


def _loader(source: Source, got: dict[str, Part], delta: DeltaForm | None = None) -> Loader:
    """Return a loader for a file's parts, which converts manifests written by Delta to the form of other manifests."""

    def load(name: str) -> Part:
        if name not in got:
            got.update(source.parts({name}))
        part = got[name]
        if delta is None or not delta.wrote(part.head):
            return part
        return delta.adapted(name, part, source.storage, source.location)

    return load


def _root_manifest(
    location: str,
    part: Part,
    snapshot_id: int | None,
    sequence_number: int = 0,
    relative_to: str | None = None,
    metadata: TableMetadata | None = None,
) -> Manifest:
    """Return a root from a manifest list; manifests that this snapshot added have status ADDED."""
    head = part.head
    if snapshot_id is None:
        status: AnyColumn = pa.nulls(len(part.table), pa.int32())
    else:
        ours = pc.fill_null(pc.equal(part.table["snapshot_id"], snapshot_id), False)
        status = pc.if_else(ours, pa.scalar(int(Status.ADDED), pa.int32()), int(Status.EXISTING)).cast(pa.int32())
    entries, problems = replace(part.table, {"status": status}), [*part.problems, *repeated_problems(part.table)]
    problems += snapshot_problems(location, entries, sequence_number)
    if metadata is not None:
        numbers = {s.snapshot_id: s.sequence_number for s in metadata.snapshots}
        problems += added_problems(location, entries, numbers, sequence_number)
        problems += summary_problems(location, entries, metadata)
        problems += list_number_problems(location, entries, {s.spec_id for s in metadata.partition_specs})
    if relative_to is not None:
        entries, more = absolute_entries(entries, relative_to, location)
        problems += more
    return Manifest(
        location,
        entries,
        dialect=head.dialect,
        is_root=True,
        header=head.header,
        length=head.length,
        problems=tuple(problems),
        reader_schema=head.reader_schema,
    )


def _problem_of(error: IceexploreError, where: str) -> Problem:
    return Problems().add_error(error, where)
