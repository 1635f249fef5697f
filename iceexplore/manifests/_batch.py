"""Entries to write: content entries with their typed statistics and partition tuples, as columns, for any dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyColumn, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import FormatError
from iceexplore.manifests._manifest import Manifest
from iceexplore.manifests.model._arrow import whole
from iceexplore.manifests.model._content_entry import ENTRY_SCHEMA

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["EntryBatch", "concat_batches", "stats_type"]

_COUNTS = ("value_count", "null_count", "nan_count", "column_size", "average_length", "max_length")


def stats_type(bound: pa.DataType) -> pa.StructType:
    """Return the type of the statistics of a column whose bounds have this Arrow type."""
    fields = [pa.field("lower", bound), pa.field("upper", bound)]
    fields += [pa.field(name, pa.int64()) for name in _COUNTS]
    return pa.struct([*fields, pa.field("tight_bounds", pa.bool_())])


@dataclass(frozen=True)
class EntryBatch:
    """Content entries with everything that a writer needs.

    Attributes
    ----------
    entries
        Table of `ENTRY_SCHEMA`. A value that readers inherit is null.
    stats
        By field id (V4: or expression id), an array of `stats_type` with one item per entry, null if an entry has none.
        Manifests have aggregated statistics, including those of partition fields (by expression id). Files have only
        statistics of columns, in every dialect: their partition values are in `partition`.
    partition
        The partition tuples: a struct with children by partition field id (``"1000"``), with the fields of all specs of
        the entries. Null for manifests and entries of unpartitioned specs; None if no entry has a tuple.
    """

    entries: pa.Table
    stats: Mapping[int, pa.StructArray] = field(default_factory=dict)
    partition: pa.StructArray | None = None

    def __post_init__(self) -> None:
        lengths = {len(array) for array in self.stats.values()} | {self.entries.num_rows}
        if self.partition is not None:
            lengths.add(len(self.partition))
        if len(lengths) > 1:
            raise ValueError(f"the parts of a batch have different numbers of rows: {sorted(lengths)}")

    def __len__(self) -> int:
        return int(self.entries.num_rows)

    @classmethod
    def empty(cls) -> EntryBatch:
        """Return a batch without entries."""
        return _EMPTY

    @classmethod
    def of_rows(cls, rows: Sequence[Mapping[str, Any]], **parts: Any) -> EntryBatch:
        """Return a batch of a few entries given as dictionaries; missing fields are null."""
        filled = [{"ordinal": i, **row} for i, row in enumerate(rows)]
        return cls(pa.Table.from_pylist(filled, schema=ENTRY_SCHEMA), **parts)

    @classmethod
    def of(cls, manifest: Manifest, field_ids: Iterable[int] | None = None) -> EntryBatch:
        """Return everything a manifest holds, as read (after inheritance); damaged bounds become null.

        Parameters
        ----------
        field_ids
            The columns whose statistics to include; by default all.
        """
        wanted = manifest.stat_field_ids() if field_ids is None else list(field_ids)
        stats = {}
        for s in manifest.stats_of(wanted):  # bounds of columns in no schema (reserved ones) stay binary
            kind = stats_type(s.lower.type)
            counts = [s.value_count, s.null_count, s.nan_count, s.column_size, s.average_length, s.max_length]
            arrays = [s.lower, s.upper, *counts, s.tight_bounds]
            stats[s.field_id] = pa.StructArray.from_arrays(arrays, fields=list(kind))
        return cls(manifest.entries, {i: stats[i] for i in wanted}, manifest.partition())

    def take(self, rows: Sequence[int] | npt.NDArray[Any] | AnyArray) -> EntryBatch:
        """Return the entries at these positions, in this order."""
        indices = rows if isinstance(rows, pa.Array) else pa.array(rows, pa.int64())
        partition = None if self.partition is None else self.partition.take(indices)
        return EntryBatch(self.entries.take(indices), self._stats_by(lambda batch: batch.take(indices)), partition)

    def filter(self, mask: AnyColumn) -> EntryBatch:
        """Return the entries for which the mask is true."""
        mask = whole(mask) if isinstance(mask, pa.ChunkedArray) else mask  # a chunked mask would give chunked columns
        partition = None if self.partition is None else self.partition.filter(mask)
        return EntryBatch(self.entries.filter(mask), self._stats_by(lambda batch: batch.filter(mask)), partition)

    def _stats_by(self, some: Callable[[pa.RecordBatch], pa.RecordBatch]) -> dict[int, pa.StructArray]:
        """Apply a selection to the statistics of all columns at once, as one call per column is slow in wide tables."""
        if not self.stats:
            return {}
        together = pa.RecordBatch.from_arrays(list(self.stats.values()), names=[""] * len(self.stats))
        columns = cast("list[pa.StructArray]", some(together).columns)
        return dict(zip(self.stats, columns, strict=True))

    def with_columns(self, **columns: Any) -> EntryBatch:
        """Return the batch with these columns of the entries replaced, by an array or by one value for all entries."""
        arrays = []
        for f in ENTRY_SCHEMA:
            value = columns.get(f.name, self.entries.column(f.name))
            if not isinstance(value, (pa.Array, pa.ChunkedArray)):
                value = pa.repeat(pa.scalar(value, f.type), len(self))
            arrays.append(value)
        unknown = set(columns) - set(ENTRY_SCHEMA.names)
        if unknown:
            raise ValueError(f"a content entry has no columns {sorted(unknown)}")
        return EntryBatch(pa.Table.from_arrays(arrays, schema=ENTRY_SCHEMA), self.stats, self.partition)


_EMPTY = EntryBatch(ENTRY_SCHEMA.empty_table())


def concat_batches(batches: Iterable[EntryBatch]) -> EntryBatch:
    """Concatenate batches; ``ordinal`` is renumbered, statistics and tuples are merged by id."""
    parts = [b for b in batches if len(b)]
    if not parts:
        return EntryBatch.empty()
    if len(parts) > 1:
        return EntryBatch(_united_entries(parts), _united_stats(parts), _united_partition(parts))
    return parts[0].with_columns(ordinal=pa.array(np.arange(len(parts[0]), dtype=np.int64)))


def _united_entries(parts: list[EntryBatch]) -> pa.Table:
    """Concatenate entries into one chunk per column. All-null columns and ordinals are rebuilt instead of copied."""
    rows = sum(len(b) for b in parts)
    given = [n for n in ENTRY_SCHEMA.names if any(b.entries.column(n).null_count < len(b) for b in parts)]
    names = [n for n in given if n != "ordinal"]
    found = pa.concat_tables([b.entries.select(names) for b in parts]).combine_chunks()
    columns = {name: found.column(name) for name in names} | {"ordinal": pa.array(np.arange(rows, dtype=np.int64))}
    arrays = [columns[f.name] if f.name in columns else pa.nulls(rows, f.type) for f in ENTRY_SCHEMA]
    return pa.Table.from_arrays(arrays, schema=ENTRY_SCHEMA)


def _united_stats(parts: list[EntryBatch]) -> dict[int, pa.StructArray]:
    out = {}
    for field_id in sorted({i for b in parts for i in b.stats}):
        kinds = [b.stats[field_id].type for b in parts if field_id in b.stats]
        kind = kinds[-1] if len(set(kinds)) == 1 else stats_type(_wider([k.field("lower").type for k in kinds]))
        arrays = [b.stats[field_id].cast(kind) if field_id in b.stats else pa.nulls(len(b), kind) for b in parts]
        out[field_id] = cast(pa.StructArray, whole(build.chunked_array(arrays, kind)))
    return out


def _united_partition(parts: list[EntryBatch]) -> pa.StructArray | None:
    kinds: dict[str, list[pa.DataType]] = {}
    for b in parts:
        for child in () if b.partition is None else b.partition.type:
            kinds.setdefault(child.name, []).append(child.type)
    if not kinds:
        return None
    kind = pa.struct([pa.field(name, _wider(types)) for name, types in kinds.items()])
    arrays = []
    for b in parts:
        if b.partition is None:
            arrays.append(pa.nulls(len(b), kind))
            continue
        children = []
        for child in kind:
            at = b.partition.type.get_field_index(child.name)
            found = pa.nulls(len(b), child.type) if at < 0 else pc.struct_field(b.partition, [at]).cast(child.type)
            children.append(found)
        mask = b.partition.is_null()
        arrays.append(pa.StructArray.from_arrays(children, fields=list(kind), mask=mask))
    return cast(pa.StructArray, whole(build.chunked_array(arrays, kind)))


def _wider(types: list[pa.DataType]) -> pa.DataType:
    """Return the type to which all of these types can be promoted; null types are ignored."""
    known = [t for t in types if not pa.types.is_null(t)] or types
    if len(set(known)) == 1:
        return known[0]
    schemas = [pa.schema([pa.field("x", t)]) for t in known]
    try:
        return cast(pa.DataType, pa.unify_schemas(schemas, promote_options="permissive").field("x").type)
    except pa.ArrowException:
        found = ", ".join(sorted(set(map(str, known))))
        raise FormatError(f"entries have values of incompatible types in one column: {found}") from None
