"""The files of a snapshot as columns: partition, size, age and deletes, without a Python object per file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyChunkedArray, AnyColumn, build, plain_value
from iceexplore.arrow import compute as pc
from iceexplore.graph._diff import by_location
from iceexplore.graph._root import FILES, Removals, bools, live_manifests
from iceexplore.graph._state import TableState
from iceexplore.graph._travel import travel
from iceexplore.manifests import ContentType, Manifest, Status, live, whole
from iceexplore.metadata import TableMetadata, Type, human_value, in_order, parse_transform, result_type

__all__ = ["ADDED", "CARRIED", "DeletedRows", "FILE_KINDS", "LiveFiles", "REMOVED", "deleted_rows", "live_files"]

Ints = npt.NDArray[np.int64]

#: What the snapshot did with a file.
CARRIED, ADDED, REMOVED = 0, 1, 2
#: The kinds of files, named as in `TreeNode.kind`; columns hold indexes into this.
FILE_KINDS = ("data-file", "position-delete", "equality-delete", "deletion-vector")
_DATA, _POSITIONS, _EQUALITY, _VECTOR = range(4)
#: Field id of the column of position delete files that has the data file's path (spec, "Reserved Field IDs":
#: ``file_path``).
_FILE_PATH_ID = 2147483546
_ORDERED = ("kind", "change", "partition", "rows", "size", "deleted", "age", "manifest", "row", "ordinal")
_COLUMNS = (
    "ordinal",
    "content_type",
    "location",
    "status",
    "snapshot_id",
    "sequence_number",
    "partition_spec_id",
    "record_count",
    "file_size_in_bytes",
    "referenced_file",
    "deletion_vector",
)


@dataclass(frozen=True)
class LiveFiles:
    """The files of a snapshot and those that it removed, a row each, ordered by partition, kind and age.

    Attributes
    ----------
    kind
        Indexes into `FILE_KINDS`.
    change
        `ADDED` or `REMOVED` by the snapshot, or `CARRIED`. Removed files are not live.
    partition
        The index of each file's partition, in the order of partitions; see `labels`.
    rows, size
        The row count and the bytes that the metadata states; 0 if it states none. A deletion vector has the size of its
        blob.
    deleted
        How many rows of a data file are removed by deletes that apply to this file alone (its deletion vector, or
        position delete files); -1 if there are such deletes but the number is not stated, 0 for other files.
    age
        How many snapshots ago the file was added, counting those in the metadata; if an expired snapshot added it, the
        number of all snapshots.
    manifest, row
        The row of its manifest in the snapshot's root (-1 for a file in the root itself), and its row in that manifest
        or root. For removed files, the root is the parent snapshot's.
    ordinal
        The ordinal of its entry as written, which a data file may share with its deletion vector.
    shared_deletes
        The number of live delete files that may apply to several data files, which ``deleted`` does not count.
    unread
        The number of manifests that could not be read, whose files are missing here.
    """

    kind: Ints
    change: Ints
    partition: Ints
    rows: Ints
    size: Ints
    deleted: Ints
    age: Ints
    manifest: Ints
    row: Ints
    ordinal: Ints
    shared_deletes: int
    unread: int
    _tuples: _Tuples = field(repr=False)

    def __len__(self) -> int:
        """Return the number of live files."""
        return int((self.change != REMOVED).sum())

    @property
    def partitions(self) -> int:
        """The number of partitions."""
        return len(self._tuples.first)

    def only(self, manifest: Ints, ordinal: Ints) -> LiveFiles:
        """Return only some of the live data files, selected by their entries.

        Parameters
        ----------
        manifest, ordinal
            Values of the columns with these names.
        """
        per = 1 + max(int(self.ordinal.max(initial=0)), int(ordinal.max(initial=0)))
        kept = (self.kind == _DATA) & (self.change != REMOVED)
        kept &= np.isin(self.manifest * per + self.ordinal, manifest * per + ordinal)
        used, partition = np.unique(self.partition[kept], return_inverse=True)
        columns = {name: getattr(self, name)[kept] for name in _ORDERED} | {"partition": partition.astype(np.int64)}
        return replace(self, **columns, _tuples=self._tuples.only(used))

    def labels(self, partitions: Iterable[int]) -> list[str]:
        """Return partitions as text: ``day=2026-01-01, city=Oslo``; empty for files of an unpartitioned spec."""
        return [self._tuples.label(i) for i in partitions]


def live_files(state: TableState) -> LiveFiles:
    """Return the files of a state's snapshot. Reads its manifests, and those that only its parent snapshot lists."""
    root, snapshot = state.root(), state.snapshot
    now: list[_Part] = []
    before: list[_Part] = []
    unread = 0
    if root is not None and snapshot is not None:
        places = by_location(root)
        now = list(_parts(state, root, list(places.values()), CARRIED))
        unread = sum(part.is_unread for part in now)
        before = _removed(state, places, now)
    parts = [part for part in (*now, *before) if part.entries.num_rows]
    if not parts:
        empty = _Tuples(state.metadata, [], [])
        nothing = dict.fromkeys(_ORDERED, np.zeros(0, np.int64))
        return LiveFiles(**nothing, shared_deletes=0, unread=unread, _tuples=empty)
    entries = pa.concat_tables([part.entries for part in parts])
    change = np.repeat([part.change for part in parts], [part.entries.num_rows for part in parts]).astype(np.int64)
    if snapshot is not None:
        own = bools(pc.equal(entries["snapshot_id"], snapshot.snapshot_id))
        own &= bools(pc.equal(entries["status"], int(Status.ADDED)))
        change = np.where((change == CARRIED) & own, ADDED, change)
    kind = _kinds(entries)
    tuples = _Tuples(state.metadata, parts, _ints(entries, "partition_spec_id"))
    deleted, shared = _deleted(entries, kind, change, parts)
    sequence = _ints(entries, "sequence_number")
    # Order by partition, kind and age: new files come last, and removed files stay where they were, so that a file
    # keeps its place while the table grows.
    order = np.lexsort((sequence, kind, tuples.index))
    vector = entries["deletion_vector"]
    size = pc.coalesce(pc.struct_field(vector, "size_in_bytes"), entries["file_size_in_bytes"])
    columns = {
        "kind": kind,
        "change": change,
        "partition": tuples.index,
        "rows": np.maximum(_ints(entries, "record_count"), 0),
        "size": np.maximum(_numbers(size), 0),
        "deleted": deleted,
        "age": _ages(state, _ints(entries, "snapshot_id")),
        "manifest": np.repeat([part.row for part in parts], [part.entries.num_rows for part in parts]),
        "row": np.concatenate([part.rows for part in parts]),
        "ordinal": _ints(entries, "ordinal"),
    }
    ordered = {name: column[order].astype(np.int64, copy=False) for name, column in columns.items()}
    return LiveFiles(**ordered, shared_deletes=shared, unread=unread, _tuples=tuples)


# Reading --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Part:
    """Some files of one manifest or root: their entries, their rows there, partition tuples, and changes."""

    row: int
    leaf: Manifest
    entries: pa.Table
    rows: Ints
    tuples: pa.StructArray | None
    change: int

    @property
    def is_unread(self) -> bool:
        return not len(self.leaf) and any(p.severity == "error" for p in self.leaf.problems)

    def chosen(self, mask: npt.NDArray[np.bool_], change: int) -> _Part:
        """Return a part with only some of the files."""
        kept = pa.array(np.flatnonzero(mask), pa.int64())
        tuples = None if self.tuples is None else self.tuples.take(kept)
        return _Part(self.row, self.leaf, self.entries.take(kept), self.rows[mask], tuples, change)


def _parts(state: TableState, root: Manifest, rows: list[int], change: int) -> Iterator[_Part]:
    """Yield the live files in a root itself and in some of its manifests."""
    direct = state.reader.direct(root)
    if direct is not None:
        kinds = pa.array(sorted(FILES), pa.int32())
        places = np.flatnonzero(bools(whole(pc.is_in(root.entries["content_type"], kinds))))
        yield _part(-1, direct, places if len(places) == len(direct) else np.arange(len(direct)), change)
    leaves = state.reader.leaves(root, rows, parts=frozenset({"entries", "partition"})) if rows else ()
    for row, leaf in zip(rows, leaves, strict=True):
        yield _part(row, leaf, np.arange(len(leaf)), change)


def _part(row: int, leaf: Manifest, places: Ints, change: int) -> _Part:
    mask = bools(live(leaf.entries))
    entries, tuples = leaf.entries.select(_COLUMNS), leaf.partition()
    made = _Part(row, leaf, entries, places.astype(np.int64), tuples, change)
    return made if mask.all() else made.chosen(mask, change)


def _removed(state: TableState, places: Mapping[str, int], now: Sequence[_Part]) -> list[_Part]:
    """Return the parent snapshot's files that this one lacks. Reads only manifests that the two do not share."""
    snapshot = state.snapshot
    parent = None if snapshot is None else snapshot.parent_snapshot_id
    if parent is None or state.metadata.snapshot(parent) is None:
        return []
    root, old = state.root(), travel(state, snapshot=parent).root()
    if root is None or old is None or not (len(old) and old.dialect):
        return []
    gone, gone_before = Removals(root), Removals(old)
    earlier = by_location(old)
    shared = {p for p in earlier.keys() & places.keys() if gone.of(p).identity == gone_before.of(p).identity}
    mine = [part.entries for part in now if part.row < 0 or part.leaf.location not in shared]
    here = _file_keys(pa.concat_tables(mine)) if mine else pa.chunked_array([pa.array([], pa.string())])
    found = []
    for part in _parts(state, old, [row for place, row in earlier.items() if place not in shared], REMOVED):
        lost = ~bools(pc.is_in(_file_keys(part.entries), value_set=whole(here)))
        if lost.any():
            found.append(part.chosen(lost, REMOVED))
    return found


def _file_keys(entries: pa.Table) -> AnyChunkedArray:
    """Return keys that identify files: the location and, for a blob in a Puffin file, its offset."""
    offset = pc.cast(pc.struct_field(entries["deletion_vector"], "offset"), pa.string())
    is_data = pc.equal(entries["content_type"], int(ContentType.DATA))  # the vector of a data file may change
    offset = pc.if_else(is_data, pa.scalar("", pa.string()), pc.fill_null(offset, ""))
    return pc.binary_join_element_wise(
        entries["location"], offset, "\x1f", null_handling="replace", null_replacement=""
    )


# Columns --------------------------------------------------------------------------------------------------------------


def _numbers(column: AnyColumn) -> Ints:
    """Return a column of integers, with -1 for null."""
    filled = pc.fill_null(column, -1)
    return np.asarray(filled.to_numpy(zero_copy_only=False)).astype(np.int64, copy=False)


def _ints(entries: pa.Table, name: str) -> Ints:
    return _numbers(pc.cast(entries[name], pa.int64()))


def _kinds(entries: pa.Table) -> Ints:
    """Return indexes into `FILE_KINDS`."""
    content = _ints(entries, "content_type")
    has_vector = bools(pc.is_valid(entries["deletion_vector"])) & (content == ContentType.POSITION_DELETE)
    known = {int(ContentType.POSITION_DELETE): _POSITIONS, int(ContentType.EQUALITY_DELETE): _EQUALITY}
    kinds = np.full(len(content), _DATA)
    for number, kind in known.items():
        kinds[content == number] = kind
    kinds[has_vector] = _VECTOR
    return kinds.astype(np.int64)


def _deleted(entries: pa.Table, kind: Ints, change: Ints, parts: Sequence[_Part]) -> tuple[Ints, int]:
    """Return the deleted rows of each data file, and the number of delete files that may apply to several files.

    Spec, "Scan Planning": position delete files are ignored for a data file with a deletion vector.
    """
    out = np.zeros(len(kind), np.int64)
    attached = (kind == _DATA) & bools(pc.is_valid(entries["deletion_vector"]))
    out[attached] = -1  # V4 draft: the vector is in the data file's entry, which does not state its cardinality
    deletes = (kind != _DATA) & (change != REMOVED)
    shared = int((deletes & (kind == _EQUALITY)).sum())
    if not (deletes & (kind != _EQUALITY)).any():
        return out, shared
    named = whole(pc.coalesce(entries["referenced_file"], _single_paths(entries, kind, parts)))
    counts = _ints(entries, "record_count")
    # If two entries have the same location (after a wrong commit), the first gets the deletes.
    data = np.flatnonzero((kind == _DATA) & (change != REMOVED))
    targets = entries["location"].take(pa.array(data, pa.int64()))
    for one in (_POSITIONS, _VECTOR):
        rows = np.flatnonzero(deletes & (kind == one) & bools(pc.is_valid(named)))
        shared += int((deletes & (kind == one)).sum()) - len(rows)
        if not len(rows):
            continue
        paths, places = named.take(pa.array(rows, pa.int64())), whole(targets)
        found = _first_of(paths, places)
        if found.null_count:  # the table may have been moved by editing its metadata: ignore scheme and host
            found = pc.coalesce(found, _first_of(_bare(paths), _bare(places)))
        hit = bools(pc.is_valid(found))
        at = data[np.asarray(pc.fill_null(found, 0).to_numpy(zero_copy_only=False))[hit]]
        total = np.zeros(len(kind), np.int64)
        np.add.at(total, at, np.maximum(counts[rows][hit], 0))
        touched = np.zeros(len(kind), np.bool_)
        touched[at] = True
        out = np.where(touched, np.where(total > 0, total, -1), out)
    return out, shared


def _first_of(wanted: AnyArray, places: AnyArray) -> AnyArray:
    """Return, for each wanted value, the index of the first of ``places`` that equals it; null if none does.

    Few values are wanted and there are many places: selecting the places that equal any wanted value first takes a
    third of the time.
    """
    near = build.array(np.flatnonzero(bools(pc.is_in(places, value_set=wanted))))
    found: AnyArray = near.take(pc.index_in(wanted, value_set=places.take(near)))
    return found


@dataclass(frozen=True)
class DeletedRows:
    """Numbers of rows that deletes for a single data file remove from it (`LiveFiles.deleted`), by location.

    Attributes
    ----------
    paths
        The data files that such deletes name, each once.
    counts
        The deleted rows of each; -1 if the metadata does not state them.
    complete
        Whether all delete manifests could be read.
    """

    paths: AnyArray
    counts: Ints
    complete: bool

    def of(self, locations: AnyArray) -> AnyArray:
        """Return the deleted rows of data files, by location; null where they are not known."""
        if not self.complete:
            return build.nulls(len(locations), pa.int64())
        if not len(self.paths):
            return pa.array(np.zeros(len(locations), np.int64))
        found: AnyArray = pc.index_in(locations, value_set=self.paths)
        if found.null_count:  # compare without scheme and host, as `_deleted` does
            missing = pa.array(np.flatnonzero(bools(found.is_null())), pa.int64())
            bare = pc.index_in(_bare(locations.take(missing)), value_set=_bare(self.paths))
            found = pc.replace_with_mask(found, found.is_null(), bare)
        hit = bools(found.is_valid())
        counts = self.counts[np.asarray(pc.fill_null(found, 0).to_numpy(zero_copy_only=False))]
        return pa.array(np.where(hit, counts, 0), mask=hit & (counts < 0))


def deleted_rows(state: TableState) -> DeletedRows:
    """Return the deleted rows of a snapshot's data files, from its deletion vectors and position delete files.

    Only the root and delete manifests are read. They also list the vectors of V4 tables, including tables that Java
    writes. Vectors in the entries of data files (V4 draft) are not counted.
    """
    root = state.root()
    parts: list[_Part] = []
    if root is not None:
        rows = live_manifests(root, (int(ContentType.DELETE_MANIFEST),))
        parts = list(_parts(state, root, rows, CARRIED))
    unread = any(part.is_unread for part in parts)
    parts = [part for part in parts if part.entries.num_rows]
    if not parts:
        return DeletedRows(pa.array([], pa.string()), np.zeros(0, np.int64), not unread)
    entries = pa.concat_tables([part.entries for part in parts])
    kind = _kinds(entries)
    named = whole(pc.coalesce(entries["referenced_file"], _single_paths(entries, kind, parts)))
    rows_of = _ints(entries, "record_count")
    chosen = np.flatnonzero(bools(pc.is_valid(named)) & ((kind == _POSITIONS) | (kind == _VECTOR)))
    encoded = named.take(pa.array(chosen, pa.int64())).dictionary_encode()
    place = np.asarray(encoded.indices.to_numpy(zero_copy_only=False)).astype(np.int64)
    count = len(encoded.dictionary)
    out = np.zeros(count, np.int64)
    for one in (_POSITIONS, _VECTOR):  # a data file with a vector ignores position delete files
        mine = kind[chosen] == one
        total = np.zeros(count, np.int64)
        np.add.at(total, place[mine], np.maximum(rows_of[chosen][mine], 0))
        touched = np.zeros(count, np.bool_)
        touched[place[mine]] = True
        out = np.where(touched, np.where(total > 0, total, -1), out)
    return DeletedRows(encoded.dictionary, out, not unread)


def _bare(locations: AnyArray) -> AnyArray:
    """Return the paths of locations, like `iceexplore.storage.path_only`, for a whole column."""
    return pc.replace_substring_regex(locations, r"^(?:[A-Za-z0-9+.-]+://[^/]*|file:)", "")


def _single_paths(entries: pa.Table, kind: Ints, parts: Sequence[_Part]) -> AnyChunkedArray:
    """Return, for position delete files without ``referenced_file``, the data file if their bounds show a single one.

    Java: ``ContentFileUtil.referencedDataFile``; Iceberg 1.7 and earlier wrote no ``referenced_data_file``.
    """
    bare = (kind == _POSITIONS) & bools(pc.is_null(entries["referenced_file"]))
    out: list[AnyArray] = []
    begin = 0
    for part in parts:
        count = part.entries.num_rows
        mine = bare[begin : begin + count]
        begin += count
        if part.row < 0 or not mine.any():
            out.append(pa.nulls(count, pa.string()))
            continue
        stats, rows = part.leaf.stats(_FILE_PATH_ID), pa.array(part.rows, pa.int64())
        low, high = stats.lower_raw.take(rows), stats.upper_raw.take(rows)
        same = pc.and_(pc.equal(low, high), pa.array(mine))
        out.append(_as_text(pc.if_else(same, low, pa.scalar(None, low.type))))
    return pa.chunked_array(out, pa.string())


def _as_text(raw: AnyArray) -> AnyArray:
    try:
        return pc.cast(raw, pa.string())
    except pa.ArrowInvalid:  # a bound that is not UTF-8 names no file
        return pa.nulls(len(raw), pa.string())


def _ages(state: TableState, added: Ints) -> Ints:
    """Return how many snapshots ago files were added."""
    order = [s.snapshot_id for s in in_order(state.metadata.snapshots)]
    place = {snapshot_id: i for i, snapshot_id in enumerate(order)}
    now = len(order) - 1 if state.snapshot is None else place.get(state.snapshot.snapshot_id, len(order) - 1)
    ids, inverse = np.unique(added, return_inverse=True)
    ages = [max(0, now - place[i]) if i in place else len(order) for i in ids.tolist()]
    return np.array(ages, np.int64)[inverse]


# Partitions -----------------------------------------------------------------------------------------------------------


class _Tuples:
    """The distinct partition tuples of files, ordered by spec and value; labels are made when they are needed.

    Attributes
    ----------
    index
        The partition of each file.
    first
        The index of one file of each partition.
    """

    def __init__(self, metadata: TableMetadata, parts: Sequence[_Part], specs: Ints | Sequence[int]) -> None:
        self._metadata, self._specs = metadata, np.asarray(specs, np.int64)
        self._columns = _columns(parts)
        codes = self._specs - self._specs.min(initial=0)
        for column in self._columns.values():
            encoded = whole(column).dictionary_encode(null_encoding="encode")
            values = np.asarray(encoded.indices.to_numpy(zero_copy_only=False)).astype(np.int64)
            # Number the codes anew after each field, so that products cannot overflow.
            _, codes = np.unique(codes * (len(encoded.dictionary) + 1) + values, return_inverse=True)
        _, first, index = np.unique(codes, return_index=True, return_inverse=True)
        order = self._order(first)
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        self.index: Ints = rank[index] if len(index) else index
        self.first: Ints = first[order]

    def _order(self, first: Ints) -> Ints:
        """Return the order of partitions: the oldest spec first, then by value."""
        take = pa.array(first, pa.int64())
        keys: dict[str, AnyArray] = {"spec": pa.array(self._specs[first], pa.int64())}
        keys |= {name: whole(column).take(take) for name, column in self._columns.items()}
        table = build.table(keys)
        by = [(name, "ascending") for name in keys]
        return np.asarray(pc.sort_indices(table, sort_keys=by)).astype(np.int64)

    def only(self, partitions: Ints) -> _Tuples:
        """Return only some of the partitions."""
        made = copy(self)
        made.first = self.first[partitions]
        return made

    @cached_property
    def _fields(self) -> Mapping[int, tuple[tuple[str, str, Type, str], ...]]:
        """The fields of each spec: id, name, type and transform."""
        columns = self._metadata.all_fields()
        out = {}
        for spec in self._metadata.partition_specs:
            fields = []
            for f in spec.fields:
                if parse_transform(f.transform).is_void:
                    continue
                source = columns.get(f.source_ids[0]) if f.source_ids else None
                kind = result_type(f.transform, source[1].type if source else None)
                fields.append((str(f.field_id), f.name, kind, f.transform))
            out[spec.spec_id] = tuple(fields)
        return out

    def label(self, partition: int) -> str:
        """Return a partition as text."""
        row = int(self.first[partition])
        out = []
        for field_id, name, kind, transform in self._fields.get(int(self._specs[row]), ()):
            column = self._columns.get(field_id)
            value = None if column is None else plain_value(column[row])
            out.append(f"{name}={human_value(kind, transform, value)}")
        return ", ".join(out)


def _columns(parts: Sequence[_Part]) -> dict[str, AnyChunkedArray]:
    """Return the partition fields of all parts by field id; null where a part has no such field."""
    types: dict[str, pa.DataType] = {}
    for part in parts:
        for f in part.tuples.type if part.tuples is not None else ():
            # A field may have several types, for example after its source was promoted. Its values are then ordered
            # and grouped as text, which is good enough.
            types[f.name] = f.type if types.setdefault(f.name, f.type) == f.type else pa.string()
    out: dict[str, list[AnyArray]] = {name: [] for name in types}
    for part in parts:
        count = part.entries.num_rows
        own = {} if part.tuples is None else {f.name: i for i, f in enumerate(part.tuples.type)}
        fields = [] if part.tuples is None else part.tuples.flatten()
        for name, kind in types.items():
            found = fields[own[name]] if name in own else build.nulls(count, kind)
            out[name].append(found if found.type == kind else _text(found))
    return {name: build.chunked_array(arrays, types[name]) for name, arrays in out.items()}


def _text(values: AnyArray) -> AnyArray:
    try:
        return pc.cast(values, pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # binary values, which Arrow does not write as text
        return pa.array([None if v is None else str(v) for v in values.to_pylist()], pa.string())
