"""Source of the tree's nodes: each is built on demand from the metadata, a root or a leaf manifest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from iceexplore.graph._root import root_counts
from iceexplore.graph._state import TableState
from iceexplore.graph._travel import format_ms
from iceexplore.graph.tree._entries import EntryNodes, ProblemIndex, Rows, is_manifest
from iceexplore.graph.tree._folded_cells import folded_cells
from iceexplore.graph.tree._labels import Labels, amount, name, short_time, snapshot_lines, wrapped
from iceexplore.graph.tree._nodes import NodeId, TreeNode
from iceexplore.manifests import Manifest
from iceexplore.metadata import MetadataLogEntry, Ref, Snapshot, in_order
from iceexplore.render import CellBlock, Mark, style

__all__ = ["FoldedRows", "NodeSource"]

T = TypeVar("T")


class NodeSource:
    """Builds the nodes of one table state by id, reading only the files that each node needs."""

    def __init__(self, state: TableState, labels: Labels) -> None:
        self.state = state
        self.labels = labels
        self.entries = EntryNodes(state, labels)

    # What exists, without reading a manifest -------------------------------------------------------------------------

    @cached_property
    def snapshots(self) -> list[Snapshot]:
        """Every snapshot once, oldest first."""
        unique = {s.snapshot_id: s for s in reversed(self.state.metadata.snapshots)}
        return in_order(reversed(unique.values()))

    @cached_property
    def refs(self) -> list[Ref]:
        """Branches before tags, ``main`` first."""
        return sorted(self.state.metadata.refs.values(), key=lambda r: (r.type, r.name != "main", r.name))

    @property
    def log(self) -> list[MetadataLogEntry]:
        """Earlier metadata files, newest first."""
        return list(reversed(self.state.metadata.metadata_log))

    def problems(self) -> ProblemIndex:
        """Return the problems found so far."""
        return ProblemIndex(list(self.state.problems))

    # Nodes -----------------------------------------------------------------------------------------------------------

    def table(self) -> TreeNode:
        """Return the node of the table."""
        m = self.state.metadata
        summary = (self.state.snapshot.summary if self.state.snapshot else None) or {}
        totals = [
            amount(int(value), word)
            for key, word in (("total-data-files", "data file"), ("total-records", "row"))
            if (value := str(summary.get(key, ""))).isascii() and value.isdigit() and len(value) < 19
        ]
        lines = (amount(len(m.snapshots), "snapshot"), " · ".join(totals))
        return TreeNode(
            id="table",
            kind="table",
            label=self.state.name,
            lines=tuple(filter(None, lines)),
            badge=f"v{m.format_version}",
            level=0,
            parent=None,
            fields={
                "location": m.location,
                "format-version": m.format_version,
                "table-uuid": m.table_uuid,
                "last-sequence-number": m.last_sequence_number,
                "current-snapshot-id": m.current_snapshot_id,
                "next-row-id": m.next_row_id,
                "properties": dict(m.properties),
            },
            location=m.location,
            child_count=1 + len(m.metadata_log),
        )

    def metadata(self) -> TreeNode:
        """Return the node of the current metadata file."""
        m, location = self.state.metadata, self.state.metadata_location
        found = self.problems().at(location)
        words = ["current"] if self.state.travel is None else []
        words += [short_time(m.last_updated_ms)] if m.last_updated_ms is not None else []
        return TreeNode(
            id="metadata",
            kind="metadata",
            label=name(self.labels, "metadata", location),
            lines=(" · ".join(words),) if words else (),
            level=1,
            parent="table",
            marks=frozenset[Mark]({"problem"} if found else ()),
            fields={
                "last-updated-ms": m.last_updated_ms,
                "last-column-id": m.last_column_id,
                "current-schema-id": m.current_schema_id,
                "schemas": len(m.schemas),
                "default-spec-id": m.default_spec_id,
                "partition-specs": len(m.partition_specs),
                "default-sort-order-id": m.default_sort_order_id,
                "snapshots": len(m.snapshots),
                "refs": len(m.refs),
                "snapshot-log": len(m.snapshot_log),
                "metadata-log": len(m.metadata_log),
                "statistics": len(m.statistics),
            },
            location=location,
            problems=found,
            child_count=len(self.snapshots) + len(m.refs),
        )

    def logged(self, index: int) -> TreeNode:
        """Return the node of an earlier metadata file, given its index in the metadata log (0 is the oldest)."""
        entry = self.state.metadata.metadata_log[index]
        return TreeNode(
            id=f"metadata:{index}",
            kind="metadata",
            label=name(self.labels, "metadata", entry.metadata_file),
            lines=(short_time(entry.timestamp_ms),),
            level=1,
            parent="table",
            marks=frozenset({"carried"}),
            fields={"timestamp-ms": entry.timestamp_ms, "metadata-file": entry.metadata_file},
            location=entry.metadata_file,
        )

    def ref(self, ref: Ref) -> TreeNode:
        """Return the node of a branch or tag."""
        known = self.state.metadata.snapshot(ref.snapshot_id) is not None
        fields = {
            "name": ref.name,
            "type": ref.type,
            "snapshot-id": ref.snapshot_id,
            "min-snapshots-to-keep": ref.min_snapshots_to_keep,
            "max-snapshot-age-ms": ref.max_snapshot_age_ms,
            "max-ref-age-ms": ref.max_ref_age_ms,
        }
        return TreeNode(
            id=NodeId.ref(ref.name),
            kind=ref.type,
            label=ref.name,
            lines=() if known else (f"points to snapshot {ref.snapshot_id}, which is not in the metadata",),
            level=2,
            parent="metadata",
            marks=frozenset[Mark](() if known else {"problem"}),
            fields={k: v for k, v in fields.items() if v is not None},
        )

    def snapshot(self, snapshot: Snapshot) -> TreeNode:
        """Return the node of a snapshot."""
        where = f"{self.state.metadata_location}#snapshot {snapshot.snapshot_id}"
        found = self.problems().at(where)
        fields = {
            "snapshot-id": snapshot.snapshot_id,
            "parent-snapshot-id": snapshot.parent_snapshot_id,
            "sequence-number": snapshot.sequence_number,
            "timestamp-ms": snapshot.timestamp_ms,
            "committed": format_ms(snapshot.timestamp_ms),
            "manifest-list": snapshot.manifest_list,
            "root-manifest": None if snapshot.root_location == snapshot.manifest_list else snapshot.root_location,
            "schema-id": snapshot.schema_id,
            "first-row-id": snapshot.first_row_id,
            "added-rows": snapshot.added_rows,
            "key-id": snapshot.key_id,
            "summary": dict(snapshot.summary or {}),
        }
        statistics = [s for s in self.state.metadata.statistics if s.snapshot_id == snapshot.snapshot_id]
        marks: set[Mark] = {"folded"}
        if found:
            marks.add("problem")
        return TreeNode(
            id=f"snapshot:{snapshot.snapshot_id}",
            kind="snapshot",
            label=f"Snapshot {snapshot.snapshot_id}",
            lines=snapshot_lines(snapshot),
            level=2,
            parent="metadata",
            marks=frozenset(marks),
            fields={k: v for k, v in fields.items() if v is not None},
            location=snapshot.root_location,
            problems=found,
            child_count=1 + len(statistics),
        )

    def statistics(self, snapshot: Snapshot) -> list[TreeNode]:
        """Return the nodes of a snapshot's statistics files."""
        found = [s for s in self.state.metadata.statistics if s.snapshot_id == snapshot.snapshot_id]
        problems = self.problems()
        return [
            TreeNode(
                id=f"statistics:{snapshot.snapshot_id}:{i}",
                kind="statistics",
                label=s.statistics_path if self.labels == "full" else style("statistics").title,
                lines=(amount(len(s.blob_metadata), "blob"),),
                level=3,
                parent=f"snapshot:{snapshot.snapshot_id}",
                fields={
                    "statistics-path": s.statistics_path,
                    "file-size-in-bytes": s.file_size_in_bytes,
                    "blob-metadata": [{"type": b.type, "fields": list(b.fields)} for b in s.blob_metadata],
                },
                location=s.statistics_path,
                marks=frozenset[Mark]({"problem"} if problems.at(s.statistics_path) else ()),
                problems=problems.at(s.statistics_path),
            )
            for i, s in enumerate(found)
        ]

    def root(self, snapshot: Snapshot, manifest: Manifest | None = None) -> TreeNode:
        """Return the node of a snapshot's manifest list or root manifest; with counts only if ``manifest`` is given."""
        location = snapshot.root_location
        kind = "manifest-list"
        lines: tuple[str, ...] = ()
        fields: dict[str, Any] = {"manifest-list": location}
        count = None
        if manifest is not None:
            if manifest.dialect.has_root_manifest:
                kind, fields = "root-manifest", {"root-manifest": location}
            count = manifest.entries.num_rows
            held = root_counts(manifest)
            words = [amount(n, one) for one, n in held.items()] or [amount(0, "manifest")]
            lines = tuple(wrapped([*words, f"{manifest.length:,} B"] if manifest.length else words, " · "))
            fields |= {"dialect": manifest.dialect, "length": manifest.length, "entries": count}
            if manifest.composed is not None:
                lines = (*lines, "composed from a tree and the Delta log")
        inline = location is None and snapshot.manifests is not None
        label = style(kind).title  # not the file name, which only repeats the snapshot's id and is in `location`
        if inline:
            label = "Manifests listed in the snapshot"
        elif self.labels == "full":
            label = location or label
        found = self.problems().at(location)
        marks: set[Mark] = {"folded"}
        if found:
            marks.add("problem")
        return TreeNode(
            id=f"root:{snapshot.snapshot_id}",
            kind=kind,
            label=label,
            lines=lines,
            level=3,
            parent=f"snapshot:{snapshot.snapshot_id}",
            marks=frozenset(marks),
            fields=fields,
            location=location,
            problems=found,
            child_count=count,
        )

    # By id -----------------------------------------------------------------------------------------------------------

    def find(self, node_id: str) -> TreeNode | None:
        """Return the node with this id, reading the files it needs; None if there is none."""
        parsed = NodeId.parse(node_id)
        if parsed is None:
            return None
        m = self.state.metadata
        if parsed.kind == "table":
            return self.table()
        if parsed.kind == "metadata":
            if not parsed.parts:
                return self.metadata()
            return self.logged(parsed.parts[0]) if 0 <= parsed.parts[0] < len(m.metadata_log) else None
        if parsed.kind == "ref":
            return self.ref(m.refs[parsed.name]) if parsed.name in m.refs else None
        snapshot = m.snapshot(parsed.parts[0])
        if snapshot is None:
            return None
        if parsed.kind == "snapshot":
            return self.snapshot(snapshot)
        if parsed.kind == "root":
            return self.root(snapshot, self.state.root(snapshot))
        if parsed.kind == "statistics":
            nodes = self.statistics(snapshot)
            return nodes[parsed.parts[1]] if 0 <= parsed.parts[1] < len(nodes) else None
        return self._entry(snapshot, parsed)

    def has(self, node_id: str) -> bool:
        """Return whether a node with this id exists, without building it if it is a manifest or file."""
        parsed = NodeId.parse(node_id)
        if parsed is None or parsed.kind not in ("manifest", "file"):
            return self.find(node_id) is not None
        snapshot = self.state.metadata.snapshot(parsed.parts[0])
        return snapshot is not None and self._place(snapshot, parsed) is not None

    def _entry(self, snapshot: Snapshot, parsed: NodeId) -> TreeNode | None:
        place = self._place(snapshot, parsed)
        if place is None:
            return None
        manifest, row, parent, at = place
        return self.entries.nodes(parent, manifest, snapshot, np.array([row]), self.problems(), at)[0]

    def _place(self, snapshot: Snapshot, parsed: NodeId) -> tuple[Manifest, int, str, tuple[int, ...]] | None:
        """Return where an entry is: its manifest, its row there, its parent's id, and the first parts of its own id."""
        manifest = self.state.root(snapshot)
        row, parent = parsed.parts[1], f"root:{snapshot.snapshot_id}"
        at: tuple[int, ...] = (snapshot.snapshot_id,)
        if manifest is None or not 0 <= row < manifest.entries.num_rows:
            return None
        leads = is_manifest(manifest.entries["content_type"][row].as_py())
        if len(parsed.parts) == 3:
            if not leads:
                return None
            parent, at = f"manifest:{snapshot.snapshot_id}:{row}", (*at, row)
            manifest, row, leads = self.entries.leaf(manifest, row), parsed.parts[2], False
            if not 0 <= row < manifest.entries.num_rows:
                return None
        return (manifest, row, parent, at) if leads == (parsed.kind == "manifest") else None

    def children(self, node_id: str, offset: int, limit: int, *, changed_first: bool = False) -> list[TreeNode]:
        """Return a page of a node's children in stored order or, on request, those that the snapshot changed first."""
        parsed = NodeId.parse(node_id)
        makers: list[Callable[[], TreeNode]]
        if parsed is None:
            return []
        page = slice(offset, offset + limit)
        if parsed.kind == "table":
            log = self.state.metadata.metadata_log
            makers = [self.metadata, *(_bind(self.logged, i) for i in range(len(log) - 1, -1, -1))]
            return [make() for make in makers[page]]
        if parsed.kind == "metadata" and not parsed.parts:
            after = slice(max(0, offset - len(self.refs)), max(0, offset + limit - len(self.refs)))
            return [*map(self.ref, self.refs[page]), *map(self.snapshot, self.snapshots[after])]
        snapshot = self.state.metadata.snapshot(parsed.parts[0]) if parsed.parts else None
        if snapshot is None or parsed.kind in ("metadata", "file", "statistics", "ref"):
            return []
        if parsed.kind == "snapshot":
            # In V4, only reading the file shows whether it is a manifest list or a root manifest; below, it is a list.
            read = self.state.root(snapshot) if self.state.metadata.may_have_root_manifests else None
            return [self.root(snapshot, read), *self.statistics(snapshot)][page]
        place = self._inside(snapshot, parsed)
        if place is None:
            return []
        manifest, at = place
        rows = np.arange(manifest.entries.num_rows)
        if changed_first:
            rows = self._changed_first(manifest, snapshot)
        rows = rows[page]
        return self.entries.nodes(node_id, manifest, snapshot, rows, self.problems(), at)

    def folded(self, node_id: str, offset: int) -> FoldedRows | None:
        """Return the children of a root or manifest from ``offset`` on as cells, in `_changed_first` order."""
        parsed = NodeId.parse(node_id)
        snapshot = self.state.metadata.snapshot(parsed.parts[0]) if parsed and parsed.parts else None
        if parsed is None or snapshot is None or parsed.kind not in ("root", "manifest"):
            return None
        place = self._inside(snapshot, parsed)
        if place is None:
            return None
        manifest, at = place
        rest = self._changed_first(manifest, snapshot)[offset:]
        block, rows = folded_cells(manifest, rest, snapshot)
        return FoldedRows(len(rest), block, rows.tolist(), ":".join(map(str, at)))

    def _inside(self, snapshot: Snapshot, parsed: NodeId) -> tuple[Manifest, tuple[int, ...]] | None:
        """Return the root or manifest of a node, and the first parts of its children's ids; None if there is none."""
        manifest = self.state.root(snapshot)
        at: tuple[int, ...] = (snapshot.snapshot_id,)
        if manifest is None or parsed.kind == "root":
            return None if manifest is None else (manifest, at)
        row = parsed.parts[1]
        if not (0 <= row < manifest.entries.num_rows and is_manifest(manifest.entries["content_type"][row].as_py())):
            return None
        return self.entries.leaf(manifest, row), (*at, row)

    def _changed_first(self, manifest: Manifest, snapshot: Snapshot) -> Rows:
        # Ignore problems, so that the order does not change if more are found while other files are read.
        return self.entries.rank(manifest, snapshot, ProblemIndex(()))


@dataclass(frozen=True)
class FoldedRows:
    """Folded children of a node, as cells.

    Attributes
    ----------
    count
        The number of children.
    cells
        The cells that represent them.
    rows
        For each cell, the row of its first child.
    below
        The part of the children's ids between kind and row.
    """

    count: int
    cells: CellBlock
    rows: list[int]
    below: str


def _bind(make: Callable[[T], TreeNode], argument: T) -> Callable[[], TreeNode]:
    return lambda: make(argument)
