"""Nodes of content entries: manifests in a root, files in a leaf. Objects are made only for the rows that are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.errors import Problem
from iceexplore.graph._nodes import TreeNode
from iceexplore.graph._state import TableState
from iceexplore.graph._tree_labels import Labels, file_lines, kind_of_entry, manifest_lines, name
from iceexplore.manifests import ContentType, Manifest, Status
from iceexplore.metadata import PartitionSpec, Snapshot, decode_values, human_value, result_type
from iceexplore.render import Mark

__all__ = ["EntryNodes", "ProblemIndex", "Rows", "is_manifest"]

Rows = npt.NDArray[np.int64]

#: Position delete files hold the data file's path in this column (spec, "Reserved Field IDs": ``file_path``).
_FILE_PATH_ID = 2147483546
_MANIFESTS = (int(ContentType.DATA_MANIFEST), int(ContentType.DELETE_MANIFEST))
_LEVEL_OF_MANIFESTS = 4
_LEVEL_OF_FILES = 5


def is_manifest(content_type: int | None) -> bool:
    """Whether an entry of a root is a manifest (and not, as in V4, a file or a vector)."""
    return content_type in _MANIFESTS


class ProblemIndex:
    """The problems met so far by file, looked up once instead of once a node."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self._by_file: dict[str, list[Problem]] = {}
        for problem in problems:
            self._by_file.setdefault(problem.where.partition("#")[0], []).append(problem)
            if "#" in problem.where:
                self._by_file.setdefault(problem.where, []).append(problem)

    def at(self, where: str | None) -> tuple[Problem, ...]:
        """The problems of a file with all its parts, or of one part (``location#entry 3``)."""
        return tuple(self._by_file.get(where, ())) if where else ()

    @property
    def files(self) -> list[str]:
        """The files that have problems."""
        return [where for where in self._by_file if "#" not in where]

    def ordinals(self, location: str) -> list[int]:
        """The ordinals of a manifest's entries that have problems of their own."""
        heads = [p.where.partition("#entry ")[2] for p in self._by_file.get(location, ()) if "#entry " in p.where]
        return [int(h) for h in heads if h.isascii() and h.isdigit() and len(h) < 19]


class EntryNodes:
    """Makes the nodes of entries of one table state."""

    def __init__(self, state: TableState, labels: Labels) -> None:
        self._state = state
        self._labels = labels
        self._columns = state.metadata.all_fields()
        self._several_specs = len(state.metadata.partition_specs) > 1

    def leaf(self, root: Manifest, row: int) -> Manifest:
        """The leaf manifest of a root's row; read if nobody has."""
        ordinal = root.entries["ordinal"][row].as_py()
        return self._state.reader.leaf(root, ordinal, frozenset({"entries", "partition"}))

    def rank(
        self, manifest: Manifest, snapshot: Snapshot, problems: ProblemIndex, referenced: pa.Array | None = None
    ) -> Rows:
        """Every row, the most telling first: damaged, changed by the snapshot, hit by a shown delete, the rest."""
        entries = manifest.entries
        own = pc.fill_null(pc.equal(entries["snapshot_id"], snapshot.snapshot_id), False)
        if not manifest.is_root:
            changed = pc.fill_null(pc.not_equal(entries["status"], int(Status.EXISTING)), False)
            own = pc.and_(own, changed)
        rank = np.where(_bools(own), 1, 3)
        if referenced is not None and len(referenced):
            hit = _bools(pc.is_in(entries["location"], value_set=referenced))
            rank = np.where(hit, np.minimum(rank, 2), rank)
        rank = np.where(self.damaged(manifest, problems), 0, rank)
        return np.argsort(rank, kind="stable").astype(np.int64)

    def damaged(self, manifest: Manifest, problems: ProblemIndex) -> npt.NDArray[np.bool_]:
        """Which rows have problems: of their own, or of the file that they name."""
        entries = manifest.entries
        own = pc.is_in(entries["ordinal"], value_set=pa.array(problems.ordinals(manifest.location), pa.int64()))
        return _bools(pc.or_(own, pc.is_in(entries["location"], value_set=pa.array(problems.files, pa.string()))))

    def nodes(
        self,
        parent: str,
        manifest: Manifest,
        snapshot: Snapshot,
        rows: Rows,
        problems: ProblemIndex,
        at: tuple[int, ...],
    ) -> list[TreeNode]:
        """The nodes of some rows of a root or leaf. Ids begin with ``at``: the snapshot's id, the leaf's row."""
        take = pa.array(rows, pa.int64())
        records = manifest.entries.take(take).to_pylist()
        partitions = self._partitions(manifest, records, take)
        paths = self._single_paths(manifest, records, take)
        out = []
        for row, entry, partition, path in zip(rows.tolist(), records, partitions, paths, strict=True):
            if is_manifest(entry["content_type"]):
                out.append(self._manifest(parent, snapshot, row, entry, problems))
            else:
                own = problems.at(f"{manifest.location}#entry {entry['ordinal']}")
                out.append(self._file(parent, snapshot, (*at, row), entry, partition, path, problems, own))
        return out

    def _manifest(
        self, parent: str, snapshot: Snapshot, row: int, entry: dict[str, Any], problems: ProblemIndex
    ) -> TreeNode:
        kind = kind_of_entry(entry)
        found = problems.at(entry["location"])
        stats = entry["manifest_stats"] or {}
        counts = [stats.get(f"{status}_files_count") for status in ("added", "existing", "deleted")]
        marks: set[Mark] = {"folded"}
        marks.add("added" if entry["snapshot_id"] == snapshot.snapshot_id else "carried")
        if found:
            marks.add("problem")
        summaries = self._summaries(entry)
        return TreeNode(
            id=f"manifest:{snapshot.snapshot_id}:{row}",
            kind=kind,
            label=name(self._labels, kind, entry["location"]),
            lines=manifest_lines(entry, self._labels, [_range(s) for s in summaries], own="added" in marks),
            badge=f"spec {entry['partition_spec_id']}" if self._several_specs else None,
            level=_LEVEL_OF_MANIFESTS,
            parent=parent,
            marks=frozenset(marks),
            fields={**_fields(entry), "partitions": summaries},
            location=entry["location"],
            problems=found,
            child_count=None if None in counts else sum(c for c in counts if c is not None),
        )

    def _file(
        self,
        parent: str,
        snapshot: Snapshot,
        at: tuple[int, ...],
        entry: dict[str, Any],
        partition: dict[str, str],
        path: str | None,
        problems: ProblemIndex,
        own: tuple[Problem, ...],
    ) -> TreeNode:
        kind = kind_of_entry(entry)
        found = (*problems.at(entry["location"]), *own)
        changed = entry["status"] in (Status.ADDED, Status.DELETED)
        marks: set[Mark] = set()
        if changed and entry["snapshot_id"] == snapshot.snapshot_id:
            marks.add("added" if entry["status"] == Status.ADDED else "removed")
        elif entry["status"] == Status.DELETED:
            marks |= {"removed", "carried"}
        else:
            marks.add("carried")
        if found:
            marks.add("problem")
        fields = {**_fields(entry), "partition": partition}
        if path is not None and entry["referenced_file"] is None:
            fields["referenced_file"] = path
        return TreeNode(
            id="file:" + ":".join(map(str, at)),
            kind=kind,
            label=name(self._labels, kind, entry["location"]),
            lines=file_lines(entry, kind, self._labels, partition, self._state.metadata, path),
            level=_LEVEL_OF_FILES if len(at) == 3 else _LEVEL_OF_MANIFESTS,
            parent=parent,
            marks=frozenset(marks),
            fields=fields,
            location=entry["location"],
            problems=found,
        )

    def _spec(self, entry: Mapping[str, Any]) -> PartitionSpec | None:
        spec_id = entry["partition_spec_id"]
        return None if spec_id is None else self._state.metadata.spec(spec_id)

    def _partitions(
        self, manifest: Manifest, records: Sequence[dict[str, Any]], take: pa.Array
    ) -> list[dict[str, str]]:
        """Per record: partition field's name and value, for people."""
        out: list[dict[str, str]] = [{} for _ in records]
        values = None if manifest.is_root else manifest.partition()
        if values is None:
            return out
        taken = values.take(take)
        for f in values.type:
            column = taken.field(f.name)
            for i, (text, record) in enumerate(zip(out, records, strict=True)):
                spec = self._spec(record)
                part = next((p for p in spec.fields if str(p.field_id) == f.name), None) if spec else None
                if part is None or part.transform == "void":
                    continue
                value = _python(column[i]) if taken[i].is_valid else None
                text[part.name] = human_value(self._result_type(part.transform, part.source_ids), part.transform, value)
        return out

    def _result_type(self, transform: str, source_ids: Sequence[int]) -> Any:
        column = self._columns.get(source_ids[0]) if source_ids else None
        return result_type(transform, column[1].type if column else None)

    def _summaries(self, entry: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The partition summaries of a manifest with their bounds decoded (spec, "Manifest Lists": 507)."""
        spec = self._spec(entry)
        summaries = entry["partition_summaries"] or []
        out: list[dict[str, Any]] = []
        for field, summary in zip(spec.fields if spec else (), summaries, strict=False):
            if summary is None or field.transform == "void":
                continue
            kind = self._result_type(field.transform, field.source_ids)
            raw = [summary["lower_bound"], summary["upper_bound"]]
            values, _ = decode_values(kind, pa.array(raw, pa.binary()))
            lower, upper = (
                None if b is None else human_value(kind, field.transform, _python(v))
                for b, v in zip(raw, values, strict=True)
            )
            out.append(
                {
                    "name": field.name,
                    "lower_bound": lower,
                    "upper_bound": upper,
                    "contains_null": summary["contains_null"],
                    "contains_nan": summary["contains_nan"],
                }
            )
        return out

    def _single_paths(self, manifest: Manifest, records: Sequence[dict[str, Any]], take: pa.Array) -> list[str | None]:
        """The data file that each record is about: as it says, or because its file_path bounds are one and the same.

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
            # As written: the reserved columns are in no schema of the table, so these bounds may stay binary.
            lower, upper = stats.lower_raw.take(wanted).to_pylist(), stats.upper_raw.take(wanted).to_pylist()
            for i, low, high in zip(open_, lower, upper, strict=True):
                if low is not None and low == high:
                    with suppress(UnicodeDecodeError):
                        paths[i] = bytes(low).decode("utf-8")
        return paths


def _bools(values: Any) -> npt.NDArray[np.bool_]:
    return np.asarray(values.to_numpy(zero_copy_only=False) if isinstance(values, pa.Array) else values.to_numpy())


def _python(value: pa.Scalar) -> Any:
    """The scalar in Python; the number behind it where Python's calendar does not reach."""
    try:
        return value.as_py()
    except (ValueError, OverflowError):
        return value.value


def _range(summary: Mapping[str, Any]) -> str:
    lower, upper = summary["lower_bound"], summary["upper_bound"]
    nulls = " or null" if summary["contains_null"] else ""
    if lower is None and upper is None:
        return f"{summary['name']}={'null' if nulls else '?'}"
    return f"{summary['name']}={lower}{nulls}" if lower == upper else f"{summary['name']} {lower} – {upper}{nulls}"


def _fields(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry's fields in the spec's words, statuses and types by name, without what is null."""
    out = {k: v for k, v in entry.items() if v is not None and k not in ("partition_summaries", "deletion_vector")}
    for key, names in (("content_type", ContentType), ("status", Status)):
        with suppress(KeyError, ValueError):
            out[key] = names(out[key]).name
    vector = entry["deletion_vector"]
    if vector is not None:
        out["deletion_vector"] = {k: v for k, v in vector.items() if v is not None}
    return out
