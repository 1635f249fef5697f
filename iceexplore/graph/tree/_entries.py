"""Nodes of content entries: manifests, vectors and files in a root, files in a leaf. Only shown rows become objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, plain_value
from iceexplore.arrow import compute as pc
from iceexplore.errors import Problem
from iceexplore.graph._root import FILES, Removals, Removed, bools, direct_places, live_manifests
from iceexplore.graph._state import TableState
from iceexplore.graph.tree._deleted_rows import deleted_rows
from iceexplore.graph.tree._labels import (
    Labels,
    file_headline,
    file_lines,
    kind_of_entry,
    manifest_headline,
    manifest_lines,
    name,
)
from iceexplore.graph.tree._nodes import TreeNode
from iceexplore.graph.tree._ranges import partition_ranges, range_text
from iceexplore.manifests import ContentType, Manifest, Status, whole
from iceexplore.metadata import PartitionSpec, Snapshot, Type, human_value, parse_transform, result_type
from iceexplore.render import Mark

__all__ = ["EntryNodes", "ProblemIndex", "Rows", "is_manifest"]

Rows = npt.NDArray[np.int64]

#: Field id of the column of position delete files that has the data file's path (spec, "Reserved Field IDs":
#: ``file_path``).
_FILE_PATH_ID = 2147483546
_MANIFESTS = (int(ContentType.DATA_MANIFEST), int(ContentType.DELETE_MANIFEST))
_GONE = (Status.DELETED, Status.REPLACED)
#: The line shown for files of a Delta table that are not in a tree yet.
_LOGGED = "in the Delta log, not in the tree yet"
_LEVEL_OF_MANIFESTS = 4
_LEVEL_OF_FILES = 5


def is_manifest(content_type: int | None) -> bool:
    """Return whether an entry of a root is a manifest; in V4 it may also be a file or a vector."""
    return content_type in _MANIFESTS


class ProblemIndex:
    """The problems found so far, indexed by file, so that the problems of a node are found quickly."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self._by_file: dict[str, list[Problem]] = {}
        for problem in problems:
            self._by_file.setdefault(problem.where.partition("#")[0], []).append(problem)
            if "#" in problem.where:
                self._by_file.setdefault(problem.where, []).append(problem)

    def at(self, where: str | None) -> tuple[Problem, ...]:
        """Return the problems of a file with all its parts, or of one part (``location#entry 3``)."""
        return tuple(self._by_file.get(where, ())) if where else ()

    @property
    def files(self) -> list[str]:
        """The files that have problems."""
        return [where for where in self._by_file if "#" not in where]

    def ordinals(self, location: str) -> list[int]:
        """Return the ordinals of a manifest's entries that have problems."""
        heads = [p.where.partition("#entry ")[2] for p in self._by_file.get(location, ()) if "#entry " in p.where]
        return [int(h) for h in heads if h.isascii() and h.isdigit() and len(h) < 19]


class EntryNodes:
    """Builds the nodes of entries for one table state."""

    def __init__(self, state: TableState, labels: Labels) -> None:
        self._state = state
        self._labels = labels
        self._columns = state.metadata.all_fields()
        self._several_specs = len(state.metadata.partition_specs) > 1
        self._deleted: dict[int, Mapping[str, int]] = {}

    def leaf(self, root: Manifest, row: int) -> Manifest:
        """Return the leaf manifest of a root's row, reading it unless it is cached."""
        return self._state.reader.leaf(root, row, frozenset({"entries", "partition"}))

    def rank(
        self, manifest: Manifest, snapshot: Snapshot, problems: ProblemIndex, referenced: AnyArray | None = None
    ) -> Rows:
        """Return all rows, the most relevant first.

        The order is: entries with problems, those that the snapshot changed, targets of shown deletes, others.
        """
        entries = manifest.entries
        own = bools(whole(pc.not_equal(entries["status"], int(Status.EXISTING))))
        if not manifest.is_root:  # statuses in a leaf are those of the snapshot that wrote it, perhaps an older one
            own &= bools(whole(pc.equal(entries["snapshot_id"], snapshot.snapshot_id)))
            own |= bools(whole(pc.is_valid(entries["manifest_dv"])))
        rank = np.where(own, 1, 3)
        if manifest.is_root:  # manifests and manifest DVs come before the root's own files
            rank += bools(whole(pc.is_in(entries["content_type"], pa.array(sorted(FILES), pa.int32())))) & ~own
        if referenced is not None and len(referenced):
            hit = bools(pc.is_in(entries["location"], value_set=referenced))
            rank = np.where(hit, np.minimum(rank, 2), rank)
        rank = np.where(self.damaged(manifest, problems), 0, rank)
        return np.argsort(rank, kind="stable").astype(np.int64)

    def damaged(self, manifest: Manifest, problems: ProblemIndex) -> npt.NDArray[np.bool_]:
        """Return a mask of the rows with problems: of the entry itself, or of the file that it refers to."""
        entries = manifest.entries
        own = pc.is_in(entries["ordinal"], value_set=pa.array(problems.ordinals(manifest.location), pa.int64()))
        # Metadata files can have locations with lone surrogates, but Arrow columns cannot: no entry matches them.
        files = [name for name in problems.files if name.encode("utf-8", "ignore").decode() == name]
        return bools(pc.or_(own, pc.is_in(entries["location"], value_set=pa.array(files, pa.string()))))

    def nodes(
        self,
        parent: str,
        manifest: Manifest,
        snapshot: Snapshot,
        rows: Rows,
        problems: ProblemIndex,
        at: tuple[int, ...],
    ) -> list[TreeNode]:
        """Return the nodes of some rows of a root or leaf; ``at`` (snapshot id, leaf row) begins the nodes' ids."""
        take = pa.array(rows, pa.int64())
        records = manifest.entries.take(take).to_pylist()
        partitions, keys = self._partitions(manifest, records, take)
        deleted = self._deleted_rows(snapshot) if any(r["content_type"] == ContentType.DATA for r in records) else {}
        paths = self.single_paths(manifest, records, take)
        removed = Removals(manifest)
        ranges: list[list[dict[str, Any]]] = [[] for _ in records]
        if manifest.is_root:
            ranges = partition_ranges(manifest, take, records, self._state.metadata)
        reasons = self._reasons(manifest, snapshot, records, take)
        out = []
        for i, (row, entry) in enumerate(zip(rows.tolist(), records, strict=True)):
            if is_manifest(entry["content_type"]):
                gone = removed.of(entry["location"])
                out.append(self._manifest(parent, snapshot, row, entry, problems, ranges[i], gone))
            else:
                own = problems.at(f"{manifest.location}#entry {entry['ordinal']}")
                about = (partitions[i], keys[i], paths[i], deleted.get(entry["location"]), problems, own, reasons[i])
                node = self._file(parent, snapshot, (*at, row), entry, *about)
                if manifest.composed is not None and entry["ordinal"] >= manifest.composed.logged_from:
                    node = replace(node, lines=(*node.lines, _LOGGED))
                out.append(node)
        return out

    def _manifest(
        self,
        parent: str,
        snapshot: Snapshot,
        row: int,
        entry: dict[str, Any],
        problems: ProblemIndex,
        ranges: list[dict[str, Any]],
        removed: Removed,
    ) -> TreeNode:
        kind = kind_of_entry(entry)
        found = problems.at(entry["location"])
        stats = entry["manifest_stats"] or {}
        counts = [stats.get(f"{status}_files_count") for status in ("added", "existing", "deleted")]
        marks: set[Mark] = {"folded", _mark(entry, snapshot)}
        if found:
            marks.add("problem")
        fields = {**_fields(entry), "partitions": ranges}
        if removed.rows:
            fields |= {"removed_entries": removed.entries, "manifest_dvs": list(removed.rows)}
        texts = [range_text(s) for s in ranges]
        return TreeNode(
            id=f"manifest:{snapshot.snapshot_id}:{row}",
            kind=kind,
            label=name(self._labels, kind, entry["location"]),
            lines=manifest_lines(entry, self._labels, texts, own="added" in marks, removed=removed),
            badge=f"spec {entry['partition_spec_id']}" if self._several_specs else None,
            level=_LEVEL_OF_MANIFESTS,
            parent=parent,
            marks=frozenset(marks),
            fields=fields,
            location=entry["location"],
            problems=found,
            child_count=None if None in counts else sum(c for c in counts if c is not None),
            headline=manifest_headline(entry, own="added" in marks),
            partition=" · ".join(texts),
        )

    def _file(
        self,
        parent: str,
        snapshot: Snapshot,
        at: tuple[int, ...],
        entry: dict[str, Any],
        partition: dict[str, str],
        key: str | None,
        path: str | None,
        deleted: int | None,
        problems: ProblemIndex,
        own: tuple[Problem, ...],
        reason: tuple[str, bool] | None,
    ) -> TreeNode:
        kind = kind_of_entry(entry)
        inline = kind == "manifest-dv" and (entry["deletion_vector"] or {}).get("inline_content") is not None
        location = None if inline else entry["location"]  # an inline vector has no file of its own
        found = (*problems.at(location), *own)
        marks: set[Mark] = set()
        if reason is not None:
            marks |= {"removed"} if reason[1] else {"removed", "carried"}
        elif len(at) == 2:  # an entry in a root
            marks.add(_mark(entry, snapshot))
        elif entry["status"] in _GONE:
            marks |= {"removed"} if entry["snapshot_id"] == snapshot.snapshot_id else {"removed", "carried"}
        else:
            marks.add(_mark(entry, snapshot))
        if found:
            marks.add("problem")
        fields = {**_fields(entry), "partition": partition}
        if path is not None and entry["referenced_file"] is None:
            fields["referenced_file"] = path
        metadata = self._state.metadata
        if kind != "data-file" or "removed" in marks:
            deleted = None
        lines = file_lines(entry, kind, self._labels, partition, metadata, path, deleted)
        if reason is not None:
            fields["removed_by"] = reason[0]
            lines = (*lines, reason[0])
        return TreeNode(
            id="file:" + ":".join(map(str, at)),
            kind=kind,
            label="Inline manifest DV" if inline else name(self._labels, kind, entry["location"]),
            lines=lines,
            level=_LEVEL_OF_FILES if len(at) == 3 else _LEVEL_OF_MANIFESTS,
            parent=parent,
            marks=frozenset(marks),
            fields=fields,
            location=location,
            problems=found,
            headline=file_headline(entry, kind, metadata, path, deleted),
            partition=", ".join(f"{k}={v}" for k, v in partition.items()),
            partition_key=key,
        )

    def _reasons(
        self, leaf: Manifest, snapshot: Snapshot, records: Sequence[Mapping[str, Any]], take: AnyArray
    ) -> list[tuple[str, bool] | None]:
        """Return why records are not live in the snapshot, and whether this snapshot removed them.

        The reason is either a manifest DV, or that the root no longer lists the leaf (whose files may be in another
        leaf). A manifest DV includes the removals of the DV that it replaces. So comparing it with the parent
        snapshot's shows which removals are new, however changes of vectors are encoded.
        """
        out: list[tuple[str, bool] | None] = [None] * len(records)
        root = self._state.root(snapshot) if leaf.root_row is not None else None
        if root is not None and leaf.root_row not in live_manifests(root):
            return [("its manifest was removed from the root", False)] * len(records)
        hit = [i for i, record in enumerate(records) if record["manifest_dv"] is not None]
        if not hit:
            return out
        before = bools(self._removed_before(leaf, snapshot).take(take))
        for i in hit:
            text = f"removed by manifest DV, root entry {records[i]['manifest_dv']}"
            out[i] = (text, not before[i])
        return out

    def _removed_before(self, leaf: Manifest, snapshot: Snapshot) -> AnyArray:
        """Return a mask of a leaf's entries that a manifest DV in the parent snapshot's root already removed."""
        nothing = pa.array(np.zeros(len(leaf), dtype=np.bool_))
        parent = snapshot.parent_snapshot_id
        known = None if parent is None else self._state.metadata.snapshot(parent)
        root = None if known is None else self._state.root(known)
        if root is None or not Removals(root).of(leaf.location).rows:
            return nothing
        rows = live_manifests(root)
        places = root.entries["location"].take(pa.array(rows, pa.int64())).to_pylist()
        row = next((r for r, place in zip(rows, places, strict=True) if place == leaf.location), None)
        old = None if row is None else self._state.reader.leaf(root, row)
        if old is None or len(old) != len(leaf):
            return nothing
        return whole(pc.is_valid(old.entries["manifest_dv"]))

    def _spec(self, entry: Mapping[str, Any]) -> PartitionSpec | None:
        spec_id = entry["partition_spec_id"]
        return None if spec_id is None else self._state.metadata.spec(spec_id)

    def _partitions(
        self, manifest: Manifest, records: Sequence[dict[str, Any]], take: AnyArray
    ) -> tuple[list[dict[str, str]], list[str | None]]:
        """Return, for each record, its partition values as text by field name, and the key of its partition."""
        out: list[dict[str, str]] = [{} for _ in records]
        values: list[dict[str, Any]] = [{} for _ in records]
        taken = self._tuples(manifest, take)
        if taken is None:
            return out, [self._partition_key(record, {}) for record in records]
        for f in taken.type:
            column = taken.field(f.name)
            for i, (text, record) in enumerate(zip(out, records, strict=True)):
                spec = self._spec(record) if record["content_type"] in FILES else None
                part = next((p for p in spec.fields if str(p.field_id) == f.name), None) if spec else None
                if part is None or parse_transform(part.transform).is_void:
                    continue
                value = plain_value(column[i]) if taken[i].is_valid else None
                text[part.name] = human_value(self._result_type(part.transform, part.source_ids), part.transform, value)
                values[i][f.name] = value
        return out, [self._partition_key(record, found) for record, found in zip(records, values, strict=True)]

    def _partition_key(self, record: Mapping[str, Any], values: Mapping[str, Any]) -> str | None:
        """Return a key that identifies a file's partition by spec and values; None if the values are not known."""
        spec = self._spec(record) if record["content_type"] in FILES else None
        known = spec is not None and (spec.is_unpartitioned or values)
        return f"{record['partition_spec_id']} {sorted(values.items())!r}" if known else None

    def _deleted_rows(self, snapshot: Snapshot) -> Mapping[str, int]:
        """Return the deleted rows of a snapshot's data files by location; they are counted only once."""
        if snapshot.snapshot_id not in self._deleted:
            self._deleted[snapshot.snapshot_id] = deleted_rows(self._state, snapshot, self.single_paths)
        return self._deleted[snapshot.snapshot_id]

    def _tuples(self, manifest: Manifest, take: AnyArray) -> pa.StructArray | None:
        """Return the partition tuples of some rows; in a root, rows that are not files have null."""
        if not manifest.is_root:
            values = manifest.partition()
            return None if values is None else values.take(take)
        direct = self._state.reader.direct(manifest)
        values = None if direct is None else direct.partition()
        if direct is None or values is None:
            return None
        return values.take(direct_places(manifest, direct).take(take))

    def _result_type(self, transform: str, source_ids: Sequence[int]) -> Type:
        column = self._columns.get(source_ids[0]) if source_ids else None
        return result_type(transform, column[1].type if column else None)

    def single_paths(self, manifest: Manifest, records: Sequence[dict[str, Any]], take: AnyArray) -> list[str | None]:
        """Return the data file that each record names: its referenced file, or its file_path bounds if they are equal.

        Java: ``ContentFileUtil.referencedDataFile``; Iceberg 1.7 and earlier wrote no ``referenced_data_file``.
        """
        paths: list[str | None] = [r["referenced_file"] for r in records]
        open_ = [
            i
            for i, r in enumerate(records)
            if paths[i] is None and kind_of_entry(r) == "position-delete" and not manifest.is_root
        ]
        if open_:
            stats = manifest.stats(_FILE_PATH_ID)
            wanted = take.take(pa.array(open_, pa.int64()))
            # Raw bounds: no schema of the table has the reserved columns, so decoded bounds may be missing.
            lower, upper = stats.lower_raw.take(wanted).to_pylist(), stats.upper_raw.take(wanted).to_pylist()
            for i, low, high in zip(open_, lower, upper, strict=True):
                if low is not None and low == high:
                    with suppress(UnicodeDecodeError):
                        paths[i] = bytes(low).decode("utf-8")
        return paths


def _mark(entry: Mapping[str, Any], snapshot: Snapshot) -> Mark:
    """Return the change that the snapshot made to an entry, by its status."""
    if entry["status"] in _GONE:
        return "removed"
    own = entry["status"] == Status.ADDED and entry["snapshot_id"] in (None, snapshot.snapshot_id)
    # V4 draft: the snapshot added a column file to an existing data file, whose entry is new.
    updated = bool(entry["column_files"]) and entry["column_files_snapshot_id"] == snapshot.snapshot_id
    return "added" if own or updated else "carried"


def _fields(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry's non-null fields by their spec names, with statuses and content types as words."""
    out = {k: v for k, v in entry.items() if v is not None and k not in ("partition_summaries", "deletion_vector")}
    for key, names in (("content_type", ContentType), ("status", Status)):
        with suppress(KeyError, ValueError):
            out[key] = names(out[key]).name
    vector = entry["deletion_vector"]
    if vector is not None:
        out["deletion_vector"] = {k: v for k, v in vector.items() if v is not None}
    return out
