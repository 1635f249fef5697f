"""Differences between two table states: files, rows, deletes, manifests, schema, spec, properties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceexplore.arrow import AnyChunkedArray, build
from iceexplore.arrow import compute as pc
from iceexplore.graph._frame import to_frame
from iceexplore.graph._root import MANIFESTS, Removals, live_manifests, row_keys
from iceexplore.graph._state import TableState
from iceexplore.manifests import ENTRY_SCHEMA, ContentType, Manifest, live, whole
from iceexplore.metadata import properties_changes, schema_changes, spec_changes
from iceexplore.render import Card, CardTable, card_html, card_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Diff", "diff", "file_changes"]

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
_CONTENT = {
    ContentType.DATA: "data file",
    ContentType.POSITION_DELETE: "position delete file",
    ContentType.EQUALITY_DELETE: "equality delete file",
}
_DV = "deletion vector"
_MANIFEST_DV = "manifest DV"


@dataclass(frozen=True, eq=False)
class Diff:
    """The difference of two table states, ``a`` (before) and ``b`` (after).

    Attributes
    ----------
    files_arrow
        A row for each added or removed file.
    manifests_arrow
        A row for each manifest and manifest DV (V4) of either root; ``change`` is added, removed or carried over.
    read
        The manifests that were read for the comparison, besides the two roots.
    """

    a: TableState
    b: TableState
    files_arrow: pa.Table
    manifests_arrow: pa.Table
    _carried: Callable[[], dict[str, tuple[int, int]]] = field(repr=False)
    read: tuple[str, ...] = ()

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
        """The number of files and rows that both states have, by content.

        Counts come from the roots where these suffice. Leaves with deletes, and leaves with entries that a manifest DV
        removes, are read.
        """
        return self._carried()

    @cached_property
    def schema(self) -> list[Any]:
        """The changes of the schema by field id: a renamed column is not a dropped and an added one."""
        return list(schema_changes(self.a.schema, self.b.schema))

    @cached_property
    def spec(self) -> list[Any]:
        """The changes of the default partition spec, by partition field id."""
        a, b = self.a.metadata.spec(), self.b.metadata.spec()
        return [] if a is None or b is None else list(spec_changes(a, b))

    @cached_property
    def properties(self) -> list[Any]:
        """The table properties set, changed and removed. They belong to the metadata file, not to a snapshot."""
        return list(properties_changes(self.a.metadata.properties, self.b.metadata.properties))

    @cached_property
    def counts_arrow(self) -> pa.Table:
        """A row per content: added and removed files, rows and bytes, and files and rows carried over."""
        rows = []
        t = self.files_arrow
        for content in (*_CONTENT.values(), _DV):
            mine = t.filter(pc.equal(t["content"], content))
            row: dict[str, Any] = {"content": content}
            for change in ("added", "removed"):
                part = mine.filter(pc.equal(mine["change"], change))
                row[f"{change}_files"] = part.num_rows
                row[f"{change}_rows"] = pc.sum(part["record_count"]).as_py() or 0
                row[f"{change}_bytes"] = pc.sum(part["size_in_bytes"]).as_py() or 0
            row["carried_over_files"], row["carried_over_rows"] = self.carried.get(content, (0, 0))
            rows.append(row)
        return pa.Table.from_pylist(rows)

    @cached_property
    def rows(self) -> tuple[int, int]:
        """The rows that came and went, as metadata counts them: a row goes once, when it is deleted or with its file.

        Deletes that went with their data files, or were merged into new ones, are not counted again. Rows come back
        when a deletion vector is removed and their file stays. An equality delete counts as one row.
        """
        files = self.files_arrow

        def total(change: str, *contents: str) -> int:
            chosen = pc.and_(pc.equal(files["change"], change), pc.is_in(files["content"], pa.array(contents)))
            return pc.sum(files.filter(chosen)["record_count"]).as_py() or 0

        data, positions, equality = (_CONTENT[kind] for kind in ContentType if kind in _CONTENT)
        gone = total("removed", data) + total("added", _DV, positions, equality)
        vectors = total("removed", _DV)
        back = max(0, vectors - gone)
        return total("added", data) + back, max(0, gone - vectors - total("removed", positions))

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


def diff(a: TableState, b: TableState) -> Diff:
    """Compare two states, of one table or of two.

    Leaf manifests are immutable, so a manifest in both roots with the same manifest DV is carried over without reading
    it. Only manifests in one root, and those from which the two roots remove different entries, are read: the cost
    grows with the change, not with the table. A file moved between root and leaf, or between leaves, is not a change.
    """
    root_a, root_b = a.root(), b.root()
    by_a, by_b = _by_location(root_a), _by_location(root_b)
    both = {loc for loc in by_a.keys() & by_b.keys() if a.storage.key(loc) == b.storage.key(loc)}
    # Equal locations mean equal files only within one storage, or for a simulation, which shares its table's manifests.
    same_storage = bool(both)
    shared = both
    if both and root_a is not None and root_b is not None:
        gone_a, gone_b = Removals(root_a), Removals(root_b)
        shared = {loc for loc in both if gone_a.of(loc).identity == gone_b.of(loc).identity}
    rows_a = {loc: i for loc, i in by_a.items() if loc not in shared}
    rows_b = {loc: i for loc, i in by_b.items() if loc not in shared}
    left, right = _files(a, root_a, list(rows_a.values())), _files(b, root_b, list(rows_b.values()))
    key_a, key_b = _keys(left), _keys(right)
    in_both_b = pc.is_in(key_b, value_set=key_a)
    removed = left.filter(pc.invert(pc.is_in(key_a, value_set=key_b)))
    added = right.filter(pc.invert(in_both_b))
    files = pa.concat_tables([file_changes("removed", removed), file_changes("added", added)])
    # Not a closure: a Diff must be picklable.
    carried = partial(_all_carried, _count(right.filter(in_both_b)), b, [by_b[loc] for loc in shared])
    return Diff(a, b, files, _manifests(root_a, root_b, same_storage), carried, tuple({**rows_a, **rows_b}))


def _by_location(root: Manifest | None) -> dict[str, int]:
    """Return the rows of a root's live manifests, by location."""
    if root is None:
        return {}
    rows = live_manifests(root)
    places = root.entries["location"].take(pa.array(rows, pa.int64())).to_pylist()
    return {place: row for row, place in zip(rows, places, strict=True) if place is not None}


def _files(state: TableState, root: Manifest | None, rows: list[int]) -> pa.Table:
    """Return the live data and delete files in a root itself and in some of its manifests."""
    parts = []
    if root is not None:
        direct = state.reader.direct(root)
        leaves = state.reader.leaves(root, rows) if rows else ()
        for part in (*([direct] if direct is not None else []), *leaves):
            parts.append(part.entries.filter(live(part.entries)).select(_COLUMNS))
    if parts:
        return pa.concat_tables(parts)
    return pa.schema([ENTRY_SCHEMA.field(c) for c in _COLUMNS]).empty_table()


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
    return pc.if_else(pc.is_valid(files["deletion_vector"]), _DV, pc.take(names, kinds))


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


def _count(files: pa.Table) -> dict[str, tuple[int, int]]:
    grouped = build.table({"content": _content(files), "rows": files["record_count"]}).group_by("content")
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
        # An entry that both states have is listed once, as it is in the second state.
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
