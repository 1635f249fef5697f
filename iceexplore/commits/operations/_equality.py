"""Equality deletes: rows deleted by the values of some columns, in files that are there already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from iceexplore.commits.model._writer import CommitWriter
from iceexplore.deletes import write_equality_deletes
from iceexplore.errors import OptionError
from iceexplore.graph import TableState
from iceexplore.manifests import ContentType, EntryBatch, concat_batches
from iceexplore.metadata import ListType, MapType, Schema, StructType
from iceexplore.planning import partition_columns, tuples_of
from iceexplore.writing import (
    StatColumn,
    arrow_frame,
    bounds_of,
    column_values,
    fit_columns,
    split_by_partition,
    stat_columns,
    stats_arrays,
)

__all__ = ["EqualityDeletes", "equality_deletes"]


@dataclass(frozen=True)
class EqualityDeletes:
    """Checked equality deletes: one file for each part."""

    schema: Schema
    spec_id: int
    ids: tuple[int, ...]
    parts: tuple[tuple[pa.StructArray | None, pa.Table], ...]
    columns: tuple[StatColumn, ...]

    def write(self, writer: CommitWriter) -> EntryBatch:
        """Write the files; their entries."""
        batches = []
        for partition, table in self.parts:
            data = write_equality_deletes(table, self.schema, self.ids)
            location = writer.new_location("eq-deletes", ".parquet", folder="data")
            writer.write(location, data, kind="delete-file")
            row = {
                "content_type": int(ContentType.EQUALITY_DELETE),
                "location": location,
                "file_format": "parquet",
                "partition_spec_id": self.spec_id,
                "record_count": table.num_rows,
                "file_size_in_bytes": len(data),
                "equality_ids": list(self.ids),
            }
            stats = stats_arrays(self.columns, [self._stats(table)])
            batches.append(EntryBatch.of_rows([row], stats=stats, partition=partition))
        return concat_batches(batches)

    def _stats(self, table: pa.Table) -> dict[int, dict[str, Any]]:
        out: dict[int, dict[str, Any]] = {}
        for column in self.columns:
            values = column_values(table, column)
            low, high, nan = bounds_of(column, values)
            out[column.field.field_id] = {
                "lower": low, "upper": high, "nan_count": nan, "value_count": len(values),
                "null_count": values.null_count,
            }  # fmt: skip
        return out


def equality_deletes(state: TableState, given: Any, partition: Mapping[str, Any] | None) -> EqualityDeletes:
    """Check equality deletes, and say in which partitions they apply.

    Parameters
    ----------
    given
        A frame, or values by column: every column counts, null equals null.
    partition
        Where they apply, by partition field; see `row_delta`.

    Raises
    ------
    OptionError
        No rows, unknown columns, structs, lists or maps, values that do not fit; or it is not clear where they apply.
    """
    table = fit_columns(arrow_frame(given, state.schema), state.schema, complete=False)
    if not table.num_rows or not table.num_columns:
        raise OptionError("equality: no values are given")
    fields = [f for f in state.schema.fields if f.name in table.column_names]
    for f in fields:
        if isinstance(f.type, (StructType, ListType, MapType)):
            raise OptionError(
                f"equality: column {f.name!r} is a {f.type}: only plain columns take part in equality deletes"
            )
    ids = tuple(f.field_id for f in fields)
    columns = tuple(c for c in stat_columns(state.metadata, state.schema) if c.field.field_id in ids)
    spec = state.metadata.spec()
    if spec is None:
        raise OptionError("the table's default partition spec is missing: files cannot be added")
    of_spec = partition_columns(state.metadata, spec)
    if partition is not None:
        if not of_spec:
            raise OptionError("equality_partition is given, and the table is not partitioned")
        parts: list[tuple[pa.StructArray | None, pa.Table]] = [
            (tuples_of(of_spec, [partition], "equality_partition"), table)
        ]
    elif all(c.field.transform == "void" or (c.source is not None and c.source.field_id in ids) for c in of_spec):
        parts = list(split_by_partition(table, state.schema, of_spec))
    else:
        plain = next((s for s in state.metadata.partition_specs if not s.fields), None)
        if plain is None:
            names = ", ".join(c.field.name for c in of_spec)
            raise OptionError(
                f"in which partitions do the equality deletes apply? Give equality_partition= ({names}), or also the "
                "columns that the partitions are made of; global ones need an unpartitioned spec, which the table lacks"
            )
        spec, parts = plain, [(None, table)]
    return EqualityDeletes(state.schema, spec.spec_id, ids, tuple(parts), columns)
