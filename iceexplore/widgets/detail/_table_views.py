"""How the tables of nodes are shown: essential columns first, codes by name, partitions as ``k=v``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.graph import DeletedRows, TableState, deleted_rows, snapshot_change
from iceexplore.inspect import Inspect, partition_texts
from iceexplore.manifests import CONTENT_NAMES, Status
from iceexplore.widgets.changes._tables import is_changes
from iceexplore.widgets.grid._table import Columns
from iceexplore.widgets.grid._view import Derived, Look, TableView, looks_of

__all__ = ["shown_columns", "view_of"]

_FIRST: dict[str, tuple[str, ...]] = {
    "files": (
        "file_path", "content", "partition", "record_count", "file_size_in_bytes", "deleted_rows", "snapshot_id",
    ),
    "entries": (
        "file_path", "status", "content", "partition", "record_count", "file_size_in_bytes", "snapshot_id",
    ),
    "leaf": (
        "file", "status", "content", "partition", "record_count", "file_size_in_bytes", "removed_by", "referenced_file",
        "snapshot_id", "sequence_number",
    ),
    "content_entries": (
        "location", "status", "content_type", "partition", "record_count", "file_size_in_bytes", "referenced_file",
        "snapshot_id", "sequence_number",
    ),
    "manifests": (
        "path", "content", "length", "added_data_files_count", "existing_data_files_count", "deleted_data_files_count",
        "added_delete_files_count", "existing_delete_files_count", "deleted_delete_files_count", "added_snapshot_id",
    ),
    "partitions": (
        "partition", "file_count", "record_count", "total_data_file_size_in_bytes", "position_delete_record_count",
        "equality_delete_record_count", "last_updated_at",
    ),
    "snapshots": ("committed_at", "snapshot_id", "operation", "summary", "parent_id"),
    "columns": (
        "column", "type", "lower", "upper", "value_count", "null_count", "nan_count", "column_size",
    ),
    "puffin_blobs": (
        "type", "columns", "length", "ndv", "cardinality", "referenced_data_file", "compression_codec", "snapshot_id",
    ),
    "metadata_log_entries": ("file", "timestamp", "latest_snapshot_id", "latest_schema_id", "latest_sequence_number"),
}  # fmt: skip
_CHANGES = ("location", "change", "content", "partition", "record_count", "size_in_bytes", "referenced_file")
#: Tables whose first column does not name the rows.
_NAMELESS = frozenset({"snapshots", "partitions", "puffin_blobs", "history", "schemas", "specs", "sort_orders"})
_CONTENT = {0: "data", 1: "position deletes", 2: "equality deletes"}
_MANIFEST_CONTENT = {0: "data", 1: "deletes"}
_STATUS = {status.value: status.name for status in Status}
#: Columns that the table of entries shows from its struct ``data_file``, and whether they are right-aligned.
_FILE = {
    "content": False,
    "file_path": False,
    "partition": False,
    "record_count": True,
    "file_size_in_bytes": True,
    "spec_id": True,
}


def view_of(state: TableState, key: str, names: Sequence[str], deletes: Callable[[], DeletedRows]) -> TableView:
    """Return how to show a table of a node.

    Parameters
    ----------
    key, names
        The key of the table, and the names of its columns.
    deletes
        A function that returns the deleted rows of the snapshot's data files; the table of files calls it.
    """
    derived: list[Derived] = []
    if key == "entries":
        derived = [Derived(n, ("data_file",), partial(_of_file, n), right) for n, right in _FILE.items()]
    elif key == "files":
        derived = [Derived("deleted_rows", ("content", "file_path", "content_offset"), _Deleted(deletes), True)]
    every = [*names, *(one.name for one in derived)]
    looks = looks_of(every)
    words = {"content": _MANIFEST_CONTENT if key == "manifests" else _CONTENT, "content_type": CONTENT_NAMES}
    if key in ("files", "entries", "manifests", "content_entries"):
        looks |= {name: Look("code", words=w) for name, w in {**words, "status": _STATUS}.items() if name in every}
    if key == "snapshots":
        looks["summary"] = Look("text", sources=("operation", "summary"), texts=_changes)
    if key == "files":
        looks["content"] = Look("text", sources=("content", "content_offset"), texts=_contents)
    if "partition" in every and not is_changes(key):
        spec = next((name for name in ("spec_id", "partition_spec_id") if name in every), None)
        sources = ("partition",) if spec is None else ("partition", spec)
        looks["partition"] = Look("text", sources=sources, texts=partial(_partitions, state, sources))
    first = _CHANGES if is_changes(key) else _FIRST.get(key, ())
    return TableView(first, head=key not in _NAMELESS, looks=looks, derived=tuple(derived))


def shown_columns(state: TableState, key: str) -> list[str]:
    """Return the columns of a snapshot's metadata table in the order in which a grid numbers them; reads nothing."""
    names = [field.name for field in Inspect(state)[key].schema]
    if key == "files":
        names.insert(-1, "snapshot_id")  # as `load_table` adds it, before the metrics
    view = view_of(state, key, names, lambda: deleted_rows(state))
    return [names[part] if isinstance(part, int) else part.name for part in view.arrange(names)]


def _of_file(name: str, rows: Columns) -> AnyArray:
    file = rows.column(rows.names.index("data_file"))
    if not any(field.name == name for field in file.type):
        return build.nulls(len(file), pa.null())  # an unpartitioned table
    made: AnyArray = pc.struct_field(file, name)
    return made


class _Deleted:
    """The deleted rows of data files; null for delete files, and where the metadata does not state them."""

    def __init__(self, deletes: Callable[[], DeletedRows]) -> None:
        self._deletes = deletes

    def __call__(self, rows: Columns) -> AnyArray:
        content, path, offset = (
            rows.column(rows.names.index(name)) for name in ("content", "file_path", "content_offset")
        )
        known = pc.and_(pc.equal(content, 0), pc.is_null(offset))  # an entry with its own vector has no count
        counts = self._deletes().of(path)
        made: AnyArray = pc.if_else(pc.fill_null(known, False), counts, pa.scalar(None, pa.int64()))
        return made


def _contents(rows: Columns) -> AnyArray:
    """Return the kinds of files by name: a deletion vector has the content of position deletes, and an offset."""
    content, offset = (rows.column(rows.names.index(name)) for name in ("content", "content_offset"))
    names = pa.array([_CONTENT.get(i) for i in range(max(_CONTENT) + 1)], pa.string())
    known = pc.index_in(content, value_set=pa.array(range(len(names)), pa.int32()).cast(content.type))
    is_vector = pc.and_(pc.is_valid(offset), pc.equal(content, 1))
    made: AnyArray = pc.if_else(pc.fill_null(is_vector, False), "deletion vector", names.take(known))
    return made


def _changes(rows: Columns) -> AnyArray:
    operations, summaries = (build.to_pylist(rows.column(rows.names.index(n))) for n in ("operation", "summary"))
    texts = [
        " · ".join(snapshot_change(operation, dict(summary or ())).words())
        for operation, summary in zip(operations, summaries, strict=True)
    ]
    return pa.array(texts, pa.string())


def _partitions(state: TableState, sources: tuple[str, ...], rows: Columns) -> AnyArray:
    values, *specs = (rows.column(rows.names.index(name)) for name in sources)
    if not pa.types.is_struct(values.type):
        return build.nulls(len(values), pa.string())
    made = partition_texts(values, specs[0].cast(pa.int32()) if specs else None, state.metadata)
    gone = np.asarray(values.is_null().to_numpy(zero_copy_only=False))
    text: AnyArray = pc.if_else(pa.array(~gone), made, pa.scalar(None, pa.string()))
    return text
