"""Rows to be written: content entries with their typed statistics and partition tuples, columnar, of any dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.errors import FormatError
from iceexplore.manifests._manifest import Manifest
from iceexplore.manifests.model._arrow import whole
from iceexplore.manifests.model._content_entry import ENTRY_SCHEMA

__all__ = ["EntryBatch", "concat_batches", "stats_type"]

_COUNTS = ("value_count", "null_count", "nan_count", "column_size", "average_length", "max_length")


def stats_type(bound: pa.DataType) -> pa.StructType:
    """The statistics of a column whose bounds have this Arrow type."""
    fields = [pa.field("lower", bound), pa.field("upper", bound)]
    fields += [pa.field(name, pa.int64()) for name in _COUNTS]
    return pa.struct([*fields, pa.field("tight_bounds", pa.bool_())])


@dataclass(frozen=True)
class EntryBatch:
    """Content entries with everything that a writer needs.

    Attributes
    ----------
    entries
        Table of `ENTRY_SCHEMA`. A null that inheritance fills is written as null.
    stats
        By field id (or expression id, V4): an array of `stats_type`, one per entry, null where an entry has none.
        Of manifests the aggregated statistics, of partition fields (by expression id) too; of files those of the
        columns alone: the partition tuple holds the rest, whatever the dialect.
    partition
        The tuples: children by partition field id (``"1000"``), united over the specs of the rows. None where no row
        has one; null for manifests and for rows of unpartitioned specs.
    """

    entries: pa.Table
    stats: Mapping[int, pa.StructArray] = field(default_factory=dict)
    partition: pa.StructArray | None = None

    def __post_init__(self) -> None:
        lengths = {len(array) for array in self.stats.values()} | {self.entries.num_rows}
        if self.partition is not None:
            lengths.add(len(self.partition))
        if len(lengths) > 1:
            raise ValueError(f"the parts of a batch have {sorted(lengths)} rows")

    def __len__(self) -> int:
        return int(self.entries.num_rows)

    @classmethod
    def empty(cls) -> EntryBatch:
        """No rows."""
        return cls(ENTRY_SCHEMA.empty_table())

    @classmethod
    def of_rows(cls, rows: Sequence[Mapping[str, Any]], **parts: Any) -> EntryBatch:
        """A few rows given as dictionaries; what is not named is null."""
        filled = [{"ordinal": i, **row} for i, row in enumerate(rows)]
        return cls(pa.Table.from_pylist(filled, schema=ENTRY_SCHEMA), **parts)

    @classmethod
    def of(cls, manifest: Manifest, field_ids: Iterable[int] | None = None) -> EntryBatch:
        """Everything that a manifest holds, as read (after inheritance); damaged bounds are left out.

        Parameters
        ----------
        field_ids
            The columns whose statistics are wanted; all of them by default.
        """
        wanted = manifest.stat_field_ids() if field_ids is None else list(field_ids)
        stats = {}
        for s in manifest.stats_of(wanted):  # of a column in no schema (a reserved one, say) the bounds stay binary
            kind = stats_type(s.lower.type)
            counts = [s.value_count, s.null_count, s.nan_count, s.column_size, s.average_length, s.max_length]
            arrays = [s.lower, s.upper, *counts, s.tight_bounds]
            stats[s.field_id] = pa.StructArray.from_arrays(arrays, fields=list(kind))
        return cls(manifest.entries, {i: stats[i] for i in wanted}, manifest.partition())

    def take(self, rows: Any) -> EntryBatch:
        """The rows at these places, in this order."""
        indices = rows if isinstance(rows, pa.Array) else pa.array(rows, pa.int64())
        partition = None if self.partition is None else self.partition.take(indices)
        return EntryBatch(self.entries.take(indices), self._stats_by(lambda batch: batch.take(indices)), partition)

    def filter(self, mask: pa.BooleanArray) -> EntryBatch:
        """The rows where the mask is true."""
        mask = whole(mask) if isinstance(mask, pa.ChunkedArray) else mask  # a chunked mask makes chunked columns
        partition = None if self.partition is None else self.partition.filter(mask)
        return EntryBatch(self.entries.filter(mask), self._stats_by(lambda batch: batch.filter(mask)), partition)

    def _stats_by(self, some: Callable[[pa.RecordBatch], pa.RecordBatch]) -> dict[int, pa.StructArray]:
        """Some rows of the statistics, of all columns at once: a call for each would cost a wide table the most."""
        if not self.stats:
            return {}
        together = pa.RecordBatch.from_arrays(list(self.stats.values()), names=[""] * len(self.stats))
        return dict(zip(self.stats, some(together).columns, strict=True))

    def with_columns(self, **columns: Any) -> EntryBatch:
        """Other values in these columns of the entries: an array, or one value for every row."""
        arrays = []
        for f in ENTRY_SCHEMA:
            value = columns.get(f.name, self.entries.column(f.name))
            if not isinstance(value, (pa.Array, pa.ChunkedArray)):
                value = pa.repeat(pa.scalar(value, f.type), len(self))
            arrays.append(value)
        unknown = set(columns) - set(ENTRY_SCHEMA.names)
        if unknown:
            raise ValueError(f"a content entry has no {sorted(unknown)}")
        return EntryBatch(pa.Table.from_arrays(arrays, schema=ENTRY_SCHEMA), self.stats, self.partition)


def concat_batches(batches: Iterable[EntryBatch]) -> EntryBatch:
    """One batch after the other; ``ordinal`` is counted anew, columns are united by id."""
    parts = [b for b in batches if len(b)]
    if not parts:
        return EntryBatch.empty()
    if len(parts) > 1:
        return EntryBatch(_united_entries(parts), _united_stats(parts), _united_partition(parts))
    return parts[0].with_columns(ordinal=pa.array(np.arange(len(parts[0]), dtype=np.int64)))


def _united_entries(parts: list[EntryBatch]) -> pa.Table:
    """One chunk per column. Many columns are null throughout, and ordinals are counted anew: these are not copied."""
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
        out[field_id] = whole(pa.chunked_array(arrays, kind))
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
    return whole(pa.chunked_array(arrays, kind))


def _wider(types: list[pa.DataType]) -> pa.DataType:
    """The type that holds the values of all of them (promotions; a null type gives way)."""
    known = [t for t in types if not pa.types.is_null(t)] or types
    if len(set(known)) == 1:
        return known[0]
    schemas = [pa.schema([pa.field("x", t)]) for t in known]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field("x").type
    except pa.ArrowException:
        found = ", ".join(sorted(set(map(str, known))))
        raise FormatError(f"entries of one column have values of types that do not go together: {found}") from None
