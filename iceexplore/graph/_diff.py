"""Differences between two table states: files, rows, deletes, manifests, schema, spec, properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyChunkedArray, build
from iceexplore.arrow import compute as pc
from iceexplore.graph._frame import to_frame
from iceexplore.graph._partition_text import KnownTexts, partition_texts
from iceexplore.graph._root import MANIFESTS, Removals, direct_places, live_manifests, row_keys
from iceexplore.graph._snapshot_change import SnapshotChange
from iceexplore.graph._state import TableState
from iceexplore.manifests import ENTRY_SCHEMA, ContentType, Manifest, column_file_rows, live, whole
from iceexplore.metadata import properties_changes, schema_changes, spec_changes
from iceexplore.render import Card, CardTable, card_html, card_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Diff", "by_location", "diff", "entry_changes", "file_changes", "files_change", "rows_changed"]

_COLUMNS = [
    "content_type",
    "location",
    "file_format",
    "partition_spec_id",
    "record_count",
    "file_size_in_bytes",
    "referenced_file",
    "deletion_vector",
    "snapshot_id",
    "sequence_number",
]
_FILES = build.schema(
    [
        ("change", pa.string()),
        ("content", pa.string()),
        ("location", pa.string()),
        ("file_format", pa.string()),
        ("spec_id", pa.int32()),
        ("record_count", pa.int64()),
        ("size_in_bytes", pa.int64()),
        ("referenced_file", pa.string()),
        ("content_offset", pa.int64()),
        ("snapshot_id", pa.int64()),
        ("sequence_number", pa.int64()),
    ]
)
#: Where a file is listed: the row of its manifest in the root (-1: the file is in the root itself), its row in that
#: manifest or root, and its partition.
_PLACES = build.schema([("root_row", pa.int32()), ("row", pa.int64()), ("partition", pa.string())])
_CONTENT = {
    ContentType.DATA: "data file",
    ContentType.POSITION_DELETE: "position delete file",
    ContentType.EQUALITY_DELETE: "equality delete file",
}
_DV = "deletion vector"
#: The V4 draft has no content type for column files; comparisons use this one.
_COLUMN_FILE, _COLUMN_FILE_TYPE = "column file", 100
_MANIFEST_DV = "manifest DV"


@dataclass(frozen=True, eq=False)
class Diff:
    """The difference between two table states, ``a`` (before) and ``b`` (after).

    Attributes
    ----------
    files_arrow
        A row for each added or removed file.
    manifests_arrow
        A row for each manifest and manifest DV (V4) of either root; ``change`` is added, removed or carried over.
    read
        The manifests that were read for the comparison, besides the two roots.
    places_arrow
        Where each file of ``files_arrow`` is listed, in ``a`` if it was removed and in ``b`` if it was added:
        ``root_row`` (the row of its manifest in the root; -1 if the file is in the root itself), ``row`` (its row in
        that manifest or root) and ``partition`` as text, empty if partitions were not requested.
    """

    a: TableState
    b: TableState
    files_arrow: pa.Table
    manifests_arrow: pa.Table
    _carried: Callable[[], dict[str, tuple[int, int]]] = field(repr=False)
    read: tuple[str, ...] = ()
    places_arrow: pa.Table = field(default_factory=_PLACES.empty_table, repr=False)

    @property
    def files(self) -> pd.DataFrame:
        """The added and removed files: content, location, rows, bytes, and for a DV its data file and offset."""
        return to_frame(self.files_arrow)

    @property
    def manifests(self) -> pd.DataFrame:
        """The manifests and manifest DVs that were added, removed or carried over."""
        return to_frame(self.manifests_arrow)

    @cached_property
    def carried(self) -> dict[str, tuple[int, int]]:
        """The numbers of files and rows that both states share, by kind of content.

        Counts come from the root where it states them. Delete manifests, and data manifests from which a manifest DV
        removes entries, are read.
        """
        return self._carried()

    @cached_property
    def schema(self) -> list[Any]:
        """The changes to the schema, matched by field id: a renamed column does not count as dropped and added."""
        return list(schema_changes(self.a.schema, self.b.schema))

    @cached_property
    def spec(self) -> list[Any]:
        """The changes of the default partition spec, by partition field id."""
        a, b = self.a.metadata.spec(), self.b.metadata.spec()
        return [] if a is None or b is None else list(spec_changes(a, b))

    @cached_property
    def properties(self) -> list[Any]:
        """The table properties that were set, changed or removed.

        Properties belong to the metadata file: if the two states are snapshots in the same one, no property differs.
        """
        return list(properties_changes(self.a.metadata.properties, self.b.metadata.properties))

    @cached_property
    def counts_arrow(self) -> pa.Table:
        """A row per kind of content: files, rows and bytes added and removed, and files and rows carried over."""
        rows = []
        t = self.files_arrow
        for content in (*_CONTENT.values(), _DV, _COLUMN_FILE):
            mine = t.filter(pc.equal(t["content"], content))
            if content == _COLUMN_FILE and not mine.num_rows:
                continue
            row: dict[str, Any] = {"content": content}
            for change in ("added", "removed"):
                part = mine.filter(pc.equal(mine["change"], change))
                row[f"{change}_files"] = part.num_rows
                row[f"{change}_rows"] = pc.sum(part["record_count"]).as_py() or 0
                row[f"{change}_bytes"] = pc.sum(part["size_in_bytes"]).as_py() or 0
            row["carried_over_files"], row["carried_over_rows"] = self.carried.get(content, (0, 0))
            rows.append(row)
        return pa.Table.from_pylist(rows)

    @property
    def rows(self) -> tuple[int, int]:
        """The numbers of rows added and removed, as metadata counts them.

        A row counts as removed once: when it is deleted or, if it never was, when its file is removed. So deletes that
        were removed with their data files, or merged into new deletes, are not counted again. If a deletion vector is
        removed and its data file stays, the vector's rows count as added. An equality delete counts as one row.
        """
        return self.change.rows

    @cached_property
    def change(self) -> SnapshotChange:
        """What changed, counted from the files by the rules that `snapshot_change` applies to a summary."""
        return files_change(self.files_arrow)

    @property
    def unread(self) -> tuple[str, ...]:
        """The files that the comparison needed but could not read, or only in part; if any, counts may be wrong."""
        needed = {m.location for m in (self.a.root(), self.b.root()) if m is not None} | set(self.read)
        known = (p for state in (self.a, self.b) for p in state.problems.met())
        lost = {p.where.partition("#")[0] for p in known if p.severity == "error" or p.code == "manifest-salvaged"}
        return tuple(sorted(needed & lost))

    @property
    def counts(self) -> pd.DataFrame:
        """`counts_arrow` as a data frame."""
        return to_frame(self.counts_arrow)

    @property
    def is_empty(self) -> bool:
        """True if no file, schema, spec or property differs."""
        return not (self.files_arrow.num_rows or self.schema or self.spec or self.properties)

    def title(self) -> str:
        """Return one line that names the two states."""
        return f"{_label(self.a)} → {_label(self.b)}"

    def card(self) -> Card:
        """Return the difference as a card, for text and HTML."""
        rows = [
            (
                f"{r['content']}s",
                f"+{r['added_files']:,}",
                f"−{r['removed_files']:,}",
                f"{r['carried_over_files']:,}",
                f"+{r['added_rows']:,}",
                f"−{r['removed_rows']:,}",
                f"+{r['added_bytes']:,}",
            )
            for r in self.counts_arrow.to_pylist()
            if r["added_files"] or r["removed_files"] or r["carried_over_files"]
        ]
        columns = ("", "added", "removed", "carried over", "rows added", "rows removed", "bytes added")
        facts = [("Rows", "+{:,} −{:,}".format(*self.rows))]
        vectors = pc.equal(self.manifests_arrow["content"], _MANIFEST_DV)
        for heading, chosen in (("Manifests", pc.invert(vectors)), ("Manifest DVs", vectors)):
            change = self.manifests_arrow.filter(chosen)["change"].to_pylist()
            n = {kind: change.count(kind) for kind in ("added", "removed", "carried over")}
            if change or heading == "Manifests":
                facts.append((heading, f"+{n['added']} −{n['removed']}, {n['carried over']} carried over"))
        tables = [CardTable("Files", columns, tuple(rows), right=frozenset(range(1, 7)))]
        for heading, changes in (("Schema", self.schema), ("Partitioning", self.spec), ("Properties", self.properties)):
            if changes:
                tables.append(CardTable(heading, ("change",), tuple((c.text,) for c in changes)))
            else:
                facts.append((heading, "same"))
        return Card(f"Diff {self.title()}", facts=tuple(facts), tables=tuple(tables))

    def __repr__(self) -> str:
        return card_text(self.card())

    def _repr_html_(self) -> str:
        return card_html(self.card())


def diff(a: TableState, b: TableState, *, partitions: bool = False) -> Diff:
    """Compare two states of one table, or of two tables.

    Leaf manifests are immutable, so a manifest in both roots with the same manifest DV is carried over without reading
    it. Only manifests in one root, and those from which the two roots remove different entries, are read: the cost
    grows with the change, not with the table. A file moved between root and leaf, or between leaves, is not a change.

    Parameters
    ----------
    partitions
        Whether to read the partition of each file, for `Diff.places_arrow`.
    """
    root_a, root_b = a.root(), b.root()
    by_a, by_b = by_location(root_a), by_location(root_b)
    both = {loc for loc in by_a.keys() & by_b.keys() if a.storage.key(loc) == b.storage.key(loc)}
    # Equal locations mean equal files only within one storage, or between a table and its simulation, which shares the
    # table's manifests.
    same_storage = bool(both)
    shared = both
    if both and root_a is not None and root_b is not None:
        gone_a, gone_b = Removals(root_a), Removals(root_b)
        shared = {loc for loc in both if gone_a.of(loc).identity == gone_b.of(loc).identity}
    rows_a = {loc: i for loc, i in by_a.items() if loc not in shared}
    rows_b = {loc: i for loc, i in by_b.items() if loc not in shared}
    left, right = (
        _files(state, root, list(rows.values()), partitions)
        for state, root, rows in ((a, root_a, rows_a), (b, root_b, rows_b))
    )
    key_a, key_b = _keys(left), _keys(right)
    in_both_b = pc.is_in(key_b, value_set=key_a)
    removed = left.filter(pc.invert(pc.is_in(key_a, value_set=key_b)))
    added = right.filter(pc.invert(in_both_b))
    files = pa.concat_tables([file_changes("removed", removed), file_changes("added", added)])
    # A partial, not a closure, because a Diff must be picklable.
    files_of_both = right.filter(pc.and_(in_both_b, pc.not_equal(right["content_type"], _COLUMN_FILE_TYPE)))
    carried = partial(_all_carried, _count(files_of_both), b, [by_b[loc] for loc in shared])
    places = pa.concat_tables([part.select(_PLACES.names) for part in (removed, added)])
    return Diff(a, b, files, _manifests(root_a, root_b, same_storage), carried, tuple({**rows_a, **rows_b}), places)


def by_location(root: Manifest | None) -> dict[str, int]:
    """Return the rows of a root's live manifests, by location."""
    if root is None:
        return {}
    rows = live_manifests(root)
    places = root.entries["location"].take(pa.array(rows, pa.int64())).to_pylist()
    return {place: row for row, place in zip(rows, places, strict=True) if place is not None}


def _files(state: TableState, root: Manifest | None, rows: list[int], partitions: bool) -> pa.Table:
    """Return the live data and delete files of a root itself and of some of its manifests, with the `_PLACES` columns.

    Parameters
    ----------
    rows
        The row numbers of these manifests in the root.
    """
    parts = []
    known: KnownTexts | None = {} if partitions else None
    if root is not None:
        direct = state.reader.direct(root)
        wanted = frozenset({"entries", "partition"}) if partitions else frozenset({"entries"})
        leaves = state.reader.leaves(root, rows, wanted) if rows else ()
        if direct is not None:
            own = np.flatnonzero(np.asarray(direct_places(root, direct).is_valid()))
            parts.append(_placed(state, direct, -1, own, known))
        for row, leaf in zip(rows, leaves, strict=True):
            parts.append(_placed(state, leaf, row, np.arange(len(leaf)), known))
    if parts:
        return pa.concat_tables(parts)
    return build.schema([*(ENTRY_SCHEMA.field(c) for c in _COLUMNS), *_PLACES]).empty_table()


def _placed(
    state: TableState, manifest: Manifest, root_row: int, rows: npt.NDArray[np.int64], known: KnownTexts | None
) -> pa.Table:
    """Return the live files of a manifest, with the `_PLACES` columns.

    Parameters
    ----------
    rows
        The row of each entry in the manifest or root, as in the ids of tree nodes.
    known
        Texts of partition values (`partition_texts`); None to leave partitions empty.
    """
    count = len(manifest)
    named = len(rows) == count  # in a root whose content types contradict each other, the files' rows are unknown
    empty = pa.array([""] * count, pa.string()) if known is None else None
    places: dict[str, AnyArray] = {
        "root_row": pa.array(np.full(count, root_row), pa.int32()),
        "row": pa.array(rows, pa.int64()) if named else pa.nulls(count, pa.int64()),
        "partition": partition_texts(manifest, state.metadata, known) if empty is None else empty,
    }
    chosen = manifest.entries.select(_COLUMNS)
    for name, column in places.items():
        chosen = chosen.append_column(_PLACES.field(name), column)
    mask = live(manifest.entries)
    held = manifest.entries["column_files"]
    if held.null_count < count:
        return pa.concat_tables(
            [chosen.filter(mask), _column_files(manifest.entries.filter(mask), chosen.filter(mask))]
        )
    return chosen if mask.true_count == count else chosen.filter(mask)


def _column_files(entries: pa.Table, chosen: pa.Table) -> pa.Table:
    """Return the column files of some entries as separate files, each listed where its data file is."""
    found = column_file_rows(entries)
    of = chosen.take(found["entry"])
    newest = pc.equal(found["location"], _newest(entries).take(found["entry"]))
    since = entries["column_files_snapshot_id"].take(found["entry"])
    given = {
        "content_type": pa.repeat(pa.scalar(_COLUMN_FILE_TYPE, pa.int32()), len(found)),
        "location": found["location"],
        "file_format": found["file_format"],
        "file_size_in_bytes": found["file_size_in_bytes"],
        "referenced_file": of["location"],
        "deletion_vector": pa.nulls(len(found), of.schema.field("deletion_vector").type),
        "snapshot_id": pc.if_else(newest, since, pa.scalar(None, pa.int64())),
        "sequence_number": pa.nulls(len(found), pa.int64()),
    }
    return pa.Table.from_arrays([given.get(f.name, of[f.name]) for f in of.schema], schema=of.schema)


def _newest(entries: pa.Table) -> AnyArray:
    """Return the location of each entry's newest column file, the only one whose snapshot the entry states."""
    lists = whole(entries["column_files"])
    last = pc.if_else(pc.greater(pc.list_value_length(lists), 0), lists, None)
    return pa.array([None if files is None else files[-1]["location"] for files in build.to_pylist(last)], pa.string())


def _keys(files: pa.Table) -> AnyChunkedArray:
    # Many DVs share one Puffin file: location and offset identify a DV.
    offset = pc.struct_field(files["deletion_vector"], "offset")
    return pc.binary_join_element_wise(
        pc.cast(files["content_type"], pa.string()),
        files["location"],
        pc.fill_null(pc.cast(offset, pa.string()), ""),
        "\x1f",
        null_handling="replace",
        null_replacement="",
    )


def _content(files: pa.Table) -> AnyChunkedArray:
    names = pa.array(list(_CONTENT.values()))
    known = pc.and_(pc.greater_equal(files["content_type"], 0), pc.less(files["content_type"], len(names)))
    kinds = pc.if_else(known, files["content_type"], None)
    named = pc.if_else(pc.equal(files["content_type"], _COLUMN_FILE_TYPE), _COLUMN_FILE, pc.take(names, kinds))
    return pc.if_else(pc.is_valid(files["deletion_vector"]), _DV, named)


def file_changes(change: str, files: pa.Table) -> pa.Table:
    """Return file entries as rows of `Diff.files_arrow`."""
    dv = files["deletion_vector"]
    size = pc.coalesce(pc.struct_field(dv, "size_in_bytes"), files["file_size_in_bytes"])
    columns = {
        "change": pa.array([change] * files.num_rows, pa.string()),
        "content": _content(files),
        "location": files["location"],
        "file_format": files["file_format"],
        "spec_id": files["partition_spec_id"],
        "record_count": files["record_count"],
        "size_in_bytes": size,
        "referenced_file": files["referenced_file"],
        "content_offset": pc.struct_field(dv, "offset"),
        "snapshot_id": files["snapshot_id"],
        "sequence_number": files["sequence_number"],
    }
    return build.table(columns).cast(_FILES)


def entry_changes(before: pa.Table, after: pa.Table) -> pa.Table:
    """Return the files in which two tables of live entries differ, as rows of `Diff.files_arrow`.

    Column files (V4 draft) count as separate files.
    """
    left, right = (
        pa.concat_tables([chosen, _column_files(entries, chosen)])
        for entries, chosen in ((t, t.select(_COLUMNS)) for t in (before, after))
    )
    key_left, key_right = _keys(left), _keys(right)
    removed = left.filter(pc.invert(pc.is_in(key_left, value_set=key_right)))
    added = right.filter(pc.invert(pc.is_in(key_right, value_set=key_left)))
    return pa.concat_tables([file_changes("removed", removed), file_changes("added", added)])


def files_change(files: pa.Table) -> SnapshotChange:
    """Add up rows of `Diff.files_arrow`; see `Diff.rows` for how table rows are counted."""
    grouped = files.group_by(["change", "content"], use_threads=False).aggregate(
        [("location", "count", pc.CountOptions(mode="all")), ("record_count", "sum"), ("size_in_bytes", "sum")]
    )
    sums = {(r["change"], r["content"] or ""): r for r in build.to_pylist(grouped.to_struct_array())}
    kinds = {content for _, content in sums}
    data = _CONTENT[ContentType.DATA]

    def both(column: str, *contents: str) -> tuple[int, int]:
        added, removed = (
            sum(r[column] or 0 for c in contents if (r := sums.get((change, c))) is not None)
            for change in ("added", "removed")
        )
        return added, removed

    return SnapshotChange(
        data_files=both("location_count", data),
        delete_files=both("location_count", *(kinds - {data, _COLUMN_FILE})),
        rows=rows_changed({kind: both("record_count_sum", kind) for kind in kinds}),
        bytes=both("size_in_bytes_sum", *kinds),
    )


def rows_changed(records: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    """Return how many rows were added and removed, from the added and removed record counts of each kind of content.

    See `Diff.rows` for the rules.
    """
    data, positions, equality = (records.get(_CONTENT[kind], (0, 0)) for kind in ContentType if kind in _CONTENT)
    vectors = records.get(_DV, (0, 0))
    gone = data[1] + vectors[0] + positions[0] + equality[0]
    back = max(0, vectors[1] - gone)
    return data[0] + back, max(0, gone - vectors[1] - positions[1])


def _count(files: pa.Table) -> dict[str, tuple[int, int]]:
    table = build.table({"content": _content(files), "rows": files["record_count"]})
    grouped = table.group_by("content", use_threads=False)
    return {
        r["content"]: (r["rows_count"], r["rows_sum"] or 0)
        for r in grouped.aggregate([("rows", "sum"), (("rows"), "count", pc.CountOptions(mode="all"))]).to_pylist()
    }


def _summed(a: dict[str, tuple[int, int]], b: dict[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    out = dict(a)
    for content, (n, rows) in b.items():
        before = out.get(content, (0, 0))
        out[content] = (before[0] + n, before[1] + rows)
    return out


def _all_carried(moved: dict[str, tuple[int, int]], state: TableState, rows: list[int]) -> dict[str, tuple[int, int]]:
    return _summed(moved, _carried_over(state, state.root(), rows))


def _carried_over(state: TableState, root: Manifest | None, rows: list[int]) -> dict[str, tuple[int, int]]:
    """Count the live files of manifests in both roots: from the root's counts where they suffice, else by reading."""
    if root is None or not rows:
        return {}
    removed = Removals(root)
    must_read = []
    files = total = 0
    picked = root.entries.select(["content_type", "location", "manifest_stats"]).take(pa.array(rows, pa.int64()))
    for row, entry in zip(rows, picked.to_pylist(), strict=True):
        stats = entry["manifest_stats"] or {}
        counts = [stats.get(f"{status}_{unit}_count") for unit in ("files", "rows") for status in ("added", "existing")]
        # A null count means unknown, a delete manifest's counts do not distinguish kinds of deletes, and a root does
        # not state the rows of the entries that a manifest DV removes.
        if entry["content_type"] != ContentType.DATA_MANIFEST or None in counts or removed.of(entry["location"]).rows:
            must_read.append(row)
            continue
        added, existing, added_rows, existing_rows = (c or 0 for c in counts)
        files, total = files + added + existing, total + added_rows + existing_rows
    out = {"data file": (files, total)} if files or total else {}
    for leaf in state.reader.leaves(root, must_read) if must_read else ():
        out = _summed(out, _count(leaf.entries.filter(live(leaf.entries)).select(_COLUMNS)))
    return out


def _manifests(a: Manifest | None, b: Manifest | None, same_storage: bool) -> pa.Table:
    live_rows = [_live_root(root) for root in (a, b)]
    keys = [row_keys(rows) for rows in live_rows]
    parts = []
    for change, rows, mine, others in zip(("removed", "added"), live_rows, keys, reversed(keys), strict=True):
        is_shared = pc.and_(pc.is_in(mine, value_set=others), same_storage)
        stats, vector = rows["manifest_stats"], rows["deletion_vector"]
        is_vector = pc.equal(rows["content_type"], ContentType.MANIFEST_DV)
        content = pc.if_else(pc.equal(rows["content_type"], ContentType.DELETE_MANIFEST), "deletes", "data")
        bytes_ = pc.coalesce(
            pc.struct_field(vector, "size_in_bytes"), pc.binary_length(pc.struct_field(vector, "inline_content"))
        )
        part = build.table(
            {
                "change": pc.if_else(is_shared, "carried over", change),
                "content": pc.if_else(is_vector, _MANIFEST_DV, content),
                "location": rows["location"],
                "length": pc.coalesce(bytes_, rows["file_size_in_bytes"]),
                "spec_id": rows["partition_spec_id"],
                "added_snapshot_id": rows["snapshot_id"],
                "added_files_count": pc.struct_field(stats, "added_files_count"),
                "existing_files_count": pc.struct_field(stats, "existing_files_count"),
                "deleted_files_count": pc.struct_field(stats, "deleted_files_count"),
                "referenced_file": rows["referenced_file"],
                "removed_entries": pc.if_else(is_vector, rows["record_count"], pa.scalar(None, pa.int64())),
            }
        )
        # List an entry of both states only once, as it is in the second state.
        parts.append(part.filter(pc.invert(is_shared)) if change == "removed" else part)
    return pa.concat_tables(parts)


def _live_root(root: Manifest | None) -> pa.Table:
    """Return the live manifests and manifest DVs of a root."""
    if root is None:
        return ENTRY_SCHEMA.empty_table()
    kinds = pa.array([*MANIFESTS, int(ContentType.MANIFEST_DV)], pa.int32())
    mine = pc.and_(live(root.entries), whole(pc.is_in(root.entries["content_type"], kinds)))
    return root.entries.filter(mine).combine_chunks()


def _label(state: TableState) -> str:
    snapshot = "no snapshot" if state.snapshot is None else f"snapshot {state.snapshot.snapshot_id}"
    ref = f" ({state.ref})" if state.ref else ""
    return f"{state.name} {snapshot}{ref}"
