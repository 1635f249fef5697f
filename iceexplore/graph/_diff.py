"""What changed between two states: files, rows, deletes, manifests, schema, spec, properties."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.graph._frame import to_frame
from iceexplore.graph._state import TableState
from iceexplore.manifests import ContentType, Manifest, Status
from iceexplore.metadata import properties_changes, schema_changes, spec_changes
from iceexplore.render import Card, CardTable, card_html, card_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Diff", "diff"]

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
_FILES = pa.schema(
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


@dataclass(frozen=True, eq=False)
class Diff:
    """The difference of two table states, ``a`` (before) and ``b`` (after).

    Attributes
    ----------
    files_arrow
        A row per file added or removed.
    manifests_arrow
        A row per manifest of either root: ``change`` is added, removed or carried over.
    """

    a: TableState
    b: TableState
    files_arrow: pa.Table
    manifests_arrow: pa.Table
    carried: dict[str, tuple[int, int]]  # content -> (files, rows) that both states have

    @property
    def files(self) -> pd.DataFrame:
        """Files added and removed: content, location, rows, bytes, for a DV its data file and offset."""
        return to_frame(self.files_arrow)

    @property
    def manifests(self) -> pd.DataFrame:
        """Manifests added, removed and carried over."""
        return to_frame(self.manifests_arrow)

    @cached_property
    def schema(self) -> list[Any]:
        """Changes of the schema by field id: a renamed column is not dropped and added."""
        return list(schema_changes(self.a.schema, self.b.schema))

    @cached_property
    def spec(self) -> list[Any]:
        """Changes of the default partition spec, by partition field id."""
        a, b = self.a.metadata.spec(), self.b.metadata.spec()
        return [] if a is None or b is None else list(spec_changes(a, b))

    @cached_property
    def properties(self) -> list[Any]:
        """Table properties set, changed and removed (they belong to the metadata file, not to a snapshot)."""
        return list(properties_changes(self.a.metadata.properties, self.b.metadata.properties))

    @cached_property
    def counts_arrow(self) -> pa.Table:
        """A row per content: files, rows and bytes added and removed, files and rows carried over."""
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

    @property
    def counts(self) -> pd.DataFrame:
        """`counts_arrow` as a data frame."""
        return to_frame(self.counts_arrow)

    @property
    def is_empty(self) -> bool:
        """Nothing differs."""
        return not (self.files_arrow.num_rows or self.schema or self.spec or self.properties)

    def title(self) -> str:
        """One line: what is compared with what."""
        return f"{_label(self.a)} → {_label(self.b)}"

    def card(self) -> Card:
        """The difference as a card, for text and HTML alike."""
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
        change = self.manifests_arrow["change"].to_pylist()
        n = {kind: change.count(kind) for kind in ("added", "removed", "carried over")}
        facts = [("Manifests", f"+{n['added']} −{n['removed']}, {n['carried over']} carried over")]
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

    A manifest that both roots name is carried over and not read: a leaf never changes. Only manifests that one side
    alone has are opened, so the work is that of the change, not of the table.
    """
    root_a, root_b = a.root(), b.root()
    same_storage = a.storage.identity == b.storage.identity
    by_a, by_b = _by_location(root_a), _by_location(root_b)
    shared = set(by_a) & set(by_b) if same_storage else set()
    left = _files(a, [i for loc, i in by_a.items() if loc not in shared])
    right = _files(b, [i for loc, i in by_b.items() if loc not in shared])
    key_a, key_b = _keys(left), _keys(right)
    in_both_b = pc.is_in(key_b, value_set=key_a)
    removed = left.filter(pc.invert(pc.is_in(key_a, value_set=key_b)))
    added = right.filter(pc.invert(in_both_b))
    files = pa.concat_tables([_changed("removed", removed), _changed("added", added)])
    carried = _count(right.filter(in_both_b))
    for content, (n, rows) in _carried_over(b, root_b, [by_b[loc] for loc in shared]).items():
        before = carried.get(content, (0, 0))
        carried[content] = (before[0] + n, before[1] + rows)
    return Diff(a, b, files, _manifests(root_a, root_b, shared), carried)


def _by_location(root: Manifest | None) -> dict[str, int]:
    if root is None:
        return {}
    return {loc: i for i, loc in enumerate(root.entries["location"].to_pylist()) if loc is not None}


def _files(state: TableState, ordinals: list[int]) -> pa.Table:
    """Live data and delete files of some manifests."""
    parts = [
        leaf.entries.filter(pc.not_equal(leaf.entries["status"], Status.DELETED)).select(_COLUMNS)
        for leaf in (state.leaves(ordinals=ordinals) if ordinals else ())
    ]
    if parts:
        return pa.concat_tables(parts)
    from iceexplore.manifests import ENTRY_SCHEMA

    return pa.schema([ENTRY_SCHEMA.field(c) for c in _COLUMNS]).empty_table()


def _keys(files: pa.Table) -> pa.ChunkedArray:
    # Many DVs share one Puffin file: a DV is its file and where it begins.
    offset = pc.struct_field(files["deletion_vector"], "offset")
    return pc.binary_join_element_wise(
        pc.cast(files["content_type"], pa.string()),
        files["location"],
        pc.fill_null(pc.cast(offset, pa.string()), ""),
        "\x1f",
        null_handling="replace",
        null_replacement="",
    )


def _content(files: pa.Table) -> pa.ChunkedArray:
    names = pa.array(list(_CONTENT.values()))
    kinds = pc.if_else(pc.less(files["content_type"], len(names)), files["content_type"], None)
    return pc.if_else(pc.is_valid(files["deletion_vector"]), _DV, pc.take(names, kinds))


def _changed(change: str, files: pa.Table) -> pa.Table:
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
    return pa.table(columns).cast(_FILES)


def _count(files: pa.Table) -> dict[str, tuple[int, int]]:
    grouped = pa.table({"content": _content(files), "rows": files["record_count"]}).group_by("content")
    return {
        r["content"]: (r["rows_count"], r["rows_sum"] or 0)
        for r in grouped.aggregate([("rows", "sum"), (("rows"), "count", pc.CountOptions(mode="all"))]).to_pylist()
    }


def _carried_over(state: TableState, root: Manifest | None, ordinals: Iterable[int]) -> dict[str, tuple[int, int]]:
    """Live files of manifests that both sides have: from the root's counts where they are enough, else by reading."""
    out: dict[str, tuple[int, int]] = {}
    must_read = []
    if root is None:
        return out
    picked = root.entries.select(["content_type", "manifest_stats"]).take(pa.array(list(ordinals), pa.int64()))
    for ordinal, row in zip(ordinals, picked.to_pylist(), strict=True):
        stats = row["manifest_stats"] or {}
        counts = [stats.get(f"{status}_{unit}_count") for unit in ("files", "rows") for status in ("added", "existing")]
        # A null count means unknown, and a delete manifest's counts do not tell its kinds of deletes apart.
        if row["content_type"] != ContentType.DATA_MANIFEST or None in counts:
            must_read.append(ordinal)
            continue
        added, existing, added_rows, existing_rows = (c or 0 for c in counts)
        before = out.get("data file", (0, 0))
        out["data file"] = (before[0] + added + existing, before[1] + added_rows + existing_rows)
    for content, (n, rows) in _count(_files(state, must_read)).items():
        before = out.get(content, (0, 0))
        out[content] = (before[0] + n, before[1] + rows)
    return out


def _manifests(a: Manifest | None, b: Manifest | None, shared: set[str]) -> pa.Table:
    parts = []
    for change, root in (("removed", a), ("added", b)):
        if root is None:
            continue
        t = root.entries
        is_shared = pc.is_in(t["location"], value_set=pa.array(sorted(shared), pa.string()))
        stats = t["manifest_stats"]
        part = pa.table(
            {
                "change": pc.if_else(is_shared, "carried over", change),
                "content": pc.if_else(pc.equal(t["content_type"], ContentType.DELETE_MANIFEST), "deletes", "data"),
                "location": t["location"],
                "length": t["file_size_in_bytes"],
                "spec_id": t["partition_spec_id"],
                "added_snapshot_id": t["snapshot_id"],
                "added_files_count": pc.struct_field(stats, "added_files_count"),
                "existing_files_count": pc.struct_field(stats, "existing_files_count"),
                "deleted_files_count": pc.struct_field(stats, "deleted_files_count"),
            }
        )
        # What both have is listed once, as the second state has it.
        parts.append(part.filter(pc.invert(is_shared)) if change == "removed" and b is not None else part)
    if not parts:
        names = ("change", "content", "location")
        return pa.schema([(n, pa.string()) for n in names]).empty_table()
    return pa.concat_tables(parts)


def _label(state: TableState) -> str:
    snapshot = "no snapshot" if state.snapshot is None else f"snapshot {state.snapshot.snapshot_id}"
    ref = f" ({state.ref})" if state.ref else ""
    return f"{state.name} {snapshot}{ref}"
