"""``files``, ``entries`` and related tables: manifest entries with Spark's columns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyField
from iceexplore.arrow import compute as pc
from iceexplore.graph import TableState
from iceexplore.inspect._by_leaf import LeafMaker
from iceexplore.inspect._metrics import metrics_of, metrics_struct, metrics_type
from iceexplore.inspect._partition import PartitionUnion, partition_union
from iceexplore.inspect._source import ALL, DATA, DELETES, wanted
from iceexplore.manifests import ContentType, Manifest, Status, live, whole

__all__ = [
    "ENTRIES",
    "FILES",
    "STATISTICS",
    "count_entries",
    "count_files",
    "entries_maker",
    "entries_schema",
    "files_maker",
    "files_schema",
    "live_position_deletes",
    "live_rows",
]

_COUNTS = pa.map_(pa.int32(), pa.int64())
_BOUNDS = pa.map_(pa.int32(), pa.binary())
_MAPS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")

_METRICS = "readable_metrics"

#: Columns of ``files`` that are computed from column statistics.
STATISTICS = frozenset((*_MAPS, _METRICS))
#: The tables of files: whether they show every snapshot, and the content types of their manifests.
FILES: dict[str, tuple[bool, frozenset[int]]] = {
    "files": (False, ALL),
    "data_files": (False, DATA),
    "delete_files": (False, DELETES),
    "all_files": (True, ALL),
    "all_data_files": (True, DATA),
    "all_delete_files": (True, DELETES),
}
#: The tables of entries, and whether they show every snapshot.
ENTRIES = {"entries": False, "all_entries": True}


def _file_fields(state: TableState) -> list[AnyField]:
    """Return the columns of a file (Java: ``DataFile.getType``)."""
    union = partition_union(state.metadata)
    return [
        pa.field("content", pa.int32()),
        pa.field("file_path", pa.string()),
        pa.field("file_format", pa.string()),
        pa.field("spec_id", pa.int32()),
        *([pa.field("partition", union.type)] if union else []),
        pa.field("record_count", pa.int64()),
        pa.field("file_size_in_bytes", pa.int64()),
        *[pa.field(name, _BOUNDS if name.endswith("bounds") else _COUNTS) for name in _MAPS],
        pa.field("key_metadata", pa.binary()),
        pa.field("split_offsets", pa.list_(pa.int64())),
        pa.field("equality_ids", pa.list_(pa.int32())),
        pa.field("sort_order_id", pa.int32()),
        pa.field("first_row_id", pa.int64()),
        pa.field("referenced_data_file", pa.string()),
        pa.field("content_offset", pa.int64()),
        pa.field("content_size_in_bytes", pa.int64()),
    ]


def _metrics_field(state: TableState) -> AnyField:
    return pa.field(_METRICS, metrics_type(metrics_of(state.metadata.schema())))


def files_schema(state: TableState) -> pa.Schema:
    """Return the columns of ``files``."""
    return pa.schema([*_file_fields(state), _metrics_field(state)])


def entries_schema(state: TableState) -> pa.Schema:
    """Return the columns of ``entries``."""
    return pa.schema(
        [
            pa.field("status", pa.int32()),
            pa.field("snapshot_id", pa.int64()),
            pa.field("sequence_number", pa.int64()),
            pa.field("file_sequence_number", pa.int64()),
            pa.field("data_file", pa.struct(_file_fields(state))),
            _metrics_field(state),
        ]
    )


def live_rows(leaf: Manifest, contents: frozenset[int] = ALL) -> AnyArray | None:
    """Return a mask of a leaf's live entries that belong in manifests of these content types; None if all do."""
    mask = live(leaf.entries)
    kinds = wanted(leaf, contents)
    if kinds is not None:
        mask = pc.and_(mask, kinds)
    return None if bool(np.asarray(mask).all()) else mask


def live_position_deletes(leaf: Manifest, union: PartitionUnion) -> pa.Table:
    """Return a delete manifest's live POSITION_DELETE entries, files and vectors, with their partition."""
    rows = leaf.entries
    if union:
        rows = rows.append_column("partition", union.struct(leaf))
    mask = live_rows(leaf)
    rows = rows if mask is None else rows.filter(mask)
    return rows.filter(pc.equal(rows.column("content_type"), int(ContentType.POSITION_DELETE)))


class _Builder:
    """Builds the columns of the tables of files and entries, for one manifest at a time."""

    def __init__(self, state: TableState, fields: list[AnyField] | None = None) -> None:
        self.fields = _file_fields(state) if fields is None else fields
        self.union = partition_union(state.metadata)
        self.metrics = metrics_of(state.metadata.schema())
        self.problems = state.problems

    def file(self, leaf: Manifest) -> list[AnyArray]:
        """Return the columns of a manifest's files."""
        entries = leaf.entries

        def own(name: str) -> AnyArray:
            return whole(entries.column(name))

        names = {f.name for f in self.fields}
        vector = own("deletion_vector")
        columns: dict[str, AnyArray] = {
            "content": own("content_type"),
            "file_path": own("location"),
            "file_format": pc.utf8_upper(own("file_format")),
            "spec_id": own("partition_spec_id"),
            "referenced_data_file": own("referenced_file"),
            "content_offset": pc.struct_field(vector, "offset"),
            "content_size_in_bytes": pc.struct_field(vector, "size_in_bytes"),
        }
        if names.intersection(_MAPS):
            maps = leaf.stat_maps()
            columns |= {name: whole(maps.column(name)) for name in _MAPS}
        if self.union and "partition" in names:
            columns["partition"] = self.union.struct(leaf)
        return [columns[f.name] if f.name in columns else own(f.name) for f in self.fields]

    def readable(self, leaf: Manifest, kind: pa.StructType) -> pa.StructArray:
        """Return ``readable_metrics`` as an array of ``kind``, its type in the table's schema."""
        return metrics_struct(leaf, self.metrics, kind, self.problems)


def files_maker(state: TableState, schema: pa.Schema, contents: frozenset[int]) -> LeafMaker:
    """Return the function that yields a row per live file; in ``schema``, ``readable_metrics`` must be last."""
    wanted_fields = [f for f in schema if f.name != _METRICS]
    builder = _Builder(state, wanted_fields)
    metrics = _METRICS in schema.names

    def make(_root: Manifest, leaf: Manifest) -> Iterator[pa.Table]:
        columns = builder.file(leaf)
        if metrics:
            columns.append(builder.readable(leaf, schema.field(_METRICS).type))
        made = pa.Table.from_arrays(columns, schema=schema)
        mask = live_rows(leaf, contents)
        yield made if mask is None else made.filter(mask)

    return make


def count_files(_root: Manifest, leaf: Manifest, contents: frozenset[int]) -> int:
    """Count the rows that `files_maker` yields."""
    mask = live_rows(leaf, contents)
    return len(leaf) if mask is None else int(pc.sum(mask).as_py() or 0)


def count_entries(_root: Manifest, leaf: Manifest) -> int:
    """Count the rows that `entries_maker` yields."""
    return len(leaf)


def entries_maker(state: TableState, schema: pa.Schema) -> LeafMaker:
    """Return the function that yields a row for each entry of a manifest, including deleted entries.

    If a manifest DV removes an entry of a V4 leaf, the row has status 2 and the id of the snapshot that wrote the
    vector, as if that snapshot had rewritten the manifest (which a v3 commit does). If a vector was merged with an
    older one, all its removals have the newer snapshot.
    """
    builder = _Builder(state)

    def make(root: Manifest, leaf: Manifest) -> Iterator[pa.Table]:
        own = {name: whole(leaf.entries.column(name)) for name in schema.names[:4]}
        own |= _removed(root, leaf)
        file = pa.StructArray.from_arrays(builder.file(leaf), fields=list(schema.field("data_file").type))
        metrics = builder.readable(leaf, schema.field(_METRICS).type)
        yield pa.Table.from_arrays([*own.values(), file, metrics], schema=schema)

    return make


def _removed(root: Manifest, leaf: Manifest) -> dict[str, AnyArray]:
    """Return status and snapshot with the removals of manifest DVs applied; an empty dict if none removes an entry."""
    vector, status = whole(leaf.entries.column("manifest_dv")), whole(leaf.entries.column("status"))
    if vector.null_count == len(vector):
        return {}
    mine = root.entries.filter(pc.equal(root.entries.column("content_type"), int(ContentType.MANIFEST_DV)))
    place = pc.index_in(vector, value_set=whole(mine.column("ordinal")))
    snapshot = whole(leaf.entries.column("snapshot_id"))
    gone = pc.and_(pc.is_valid(vector), pc.fill_null(pc.not_equal(status, int(Status.DELETED)), True))
    by = pc.coalesce(whole(mine.column("snapshot_id")).take(place), snapshot)
    return {
        "status": pc.if_else(gone, pa.scalar(int(Status.DELETED), pa.int32()), status),
        "snapshot_id": pc.if_else(gone, by, snapshot),
    }
