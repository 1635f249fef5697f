"""Write random data to files that would otherwise be synthetic, so that engines can read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyListType, AnyMapType, build
from iceexplore.arrow import compute as pc
from iceexplore.commits.added_files._synthetic import Counts, null_share
from iceexplore.commits.added_files._synthetic_partitions import Constraint
from iceexplore.commits.added_files._synthetic_values import line_of, values_on
from iceexplore.commits.model._writer import CommitWriter
from iceexplore.errors import OptionError, UnsupportedError
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch
from iceexplore.metadata import ListType, MapType, NestedField, StructType, arrow_type, type_base
from iceexplore.writing import DataFile, file_schema, write_data_files

__all__ = ["MOST_ROWS", "materialized_files"]

#: Limits of one call with ``materialize=True``: the total number of rows, of values (rows times columns), and of files.
MOST_ROWS = 5_000_000
_MOST_VALUES = 100_000_000
_MOST_FILES = 10_000


def materialized_files(state: TableState, counts: Counts, writer: CommitWriter, rng: np.random.Generator) -> EntryBatch:
    """Write Parquet files with random rows that fit the partitions, and return entries with the rows' statistics.

    Raises
    ------
    OptionError
        More than `MOST_ROWS` rows, 10,000 files, or 100 million values would be written.
    UnsupportedError
        A required column has a type for which no random values can be generated (variant, geometry, geography,
        unknown).
    """
    total = int(counts.rows.sum())
    width = max(1, sum(1 for _ in state.schema.walk()))
    if total > MOST_ROWS or len(counts.of) > _MOST_FILES or total * width > _MOST_VALUES:
        raise OptionError(
            f"{len(counts.of):,} files with {total:,} rows in total and {width} columns are too many to materialize: "
            f"at most {_MOST_FILES:,} files, {MOST_ROWS:,} rows and {_MOST_VALUES:,} values per commit"
        )
    _check(state.schema.fields)
    wanted = file_schema(state.schema)
    files = []
    for rows, place in zip(counts.rows.tolist(), counts.of.tolist(), strict=True):
        maker = _Rows(counts.constraints, place, writer.timestamp_ms, rng)
        arrays = [maker.column(f, rows, to.type) for f, to in zip(state.schema.fields, wanted, strict=True)]
        partition = None if counts.tuples is None else counts.tuples.slice(place, 1)
        files.append(DataFile(counts.spec, pa.Table.from_arrays(arrays, schema=wanted), partition))
    return write_data_files(state, writer, files, counts.columns)


def _check(fields: Sequence[NestedField]) -> None:
    """Refuse required columns of types for which no random values can be generated, such as variant or geometry.

    Fields of structs are checked, too, but not the elements of lists, or the keys and values of maps.
    """
    for f in fields:
        match f.type:
            case StructType(children):
                _check(children)
            case ListType() | MapType():
                pass
            case _ if f.required and type_base(f.type) in ("variant", "geometry", "geography", "unknown"):
                raise UnsupportedError(
                    f"column {f.name!r} is required, but random values of {f.type} are not supported"
                )


class _Rows:
    """A generator of random columns for one file."""

    def __init__(self, constraints: dict[int, Constraint], place: int, now_ms: int, rng: np.random.Generator) -> None:
        self.constraints, self.place, self.now_ms, self.rng = constraints, place, now_ms, rng

    def column(self, f: NestedField, rows: int, target: pa.DataType) -> AnyArray:
        """Return random values for a column or nested field; structs are never null, but their fields may be.

        Parameters
        ----------
        f
            The column or nested field.
        rows
            The number of values.
        target
            The Arrow type of the result.
        """
        match f.type:
            case StructType(children):
                arrays = [self.column(c, rows, target.field(i).type) for i, c in enumerate(children)]
                mask = (
                    None if arrays else pa.repeat(pa.scalar(False), rows)
                )  # for a struct without fields, the mask tells Arrow the length
                return pa.StructArray.from_arrays(arrays, fields=list(cast(pa.StructType, target)), mask=mask)
            case ListType(element):
                offsets = self._offsets(rows)
                return build.list_array(
                    offsets,
                    self.column(element, offsets[-1].as_py(), cast(AnyListType, target).value_type),
                    type=target,
                )
            case MapType(key, value):
                # The keys in a map must differ; with at most one entry per map, they do.
                offsets = self._offsets(rows, most=1)
                size = offsets[-1].as_py()
                keys = self.column(key, size, cast(AnyMapType, target).key_type)
                return build.map_array(
                    offsets, keys, self.column(value, size, cast(AnyMapType, target).item_type), type=target
                )
        if type_base(f.type) in ("variant", "geometry", "geography", "unknown"):
            return build.nulls(rows, target)
        return _stored(self._values(f, rows), target)

    def _offsets(self, rows: int, most: int = 3) -> AnyArray:
        lengths = self.rng.integers(0, most, rows, endpoint=True)
        return pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))

    def _values(self, f: NestedField, rows: int) -> AnyArray:
        found = self.constraints.get(f.field_id)
        if found is None:
            low, high = line_of(f.type, f.field_id, self.now_ms)
            values = values_on(f.type, self.rng.integers(low, high, rows, endpoint=True))
            share = 0.0 if f.required else null_share(f.field_id)
            if share:
                values = pc.if_else(pa.array(self.rng.random(rows) < share), pa.scalar(None, values.type), values)
            return values
        kind = arrow_type(f.type)
        if found.null[self.place]:
            return build.nulls(rows, kind)
        if found.exact[self.place].is_valid:
            return pa.repeat(found.exact[self.place], rows)
        prefix = None if found.prefix is None else pa.repeat(found.prefix[self.place], rows)
        if found.pools is not None:
            return values_on(f.type, self.rng.choice(found.pools[self.place], rows), prefix)
        low, high = int(found.low[self.place]), int(found.high[self.place])
        return values_on(f.type, self.rng.integers(low, high, rows, endpoint=True), prefix)


def _stored(values: AnyArray, target: pa.DataType) -> AnyArray:
    if isinstance(target, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(target, values.cast(target.storage_type))
    return values if values.type == target else values.cast(target)
