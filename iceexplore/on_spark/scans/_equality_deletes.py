"""Apply equality deletes (spec, "Equality Delete Files"): as a bitset for dense integer keys, else as an anti join.

Equality is that of Java's ``StructLikeSet``: null equals null, NaN equals NaN, and -0.0 does not equal 0.0. The driver
reads the keys, each once. A key without nulls is compared by ``=``, so that Spark can join by a plain integer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyChunkedArray, build
from iceexplore.arrow import compute as pc
from iceexplore.metadata import NestedField, type_base
from iceexplore.on_spark.environment._info import SessionInfo
from iceexplore.on_spark.scans._lookups import Lookups, arrow_frame
from iceexplore.on_spark.scans._position_deletes import KeyBits, kept_by_key, key_bits
from iceexplore.on_spark.transport._columns import SparkColumns
from iceexplore.reading import Output, TaskReader

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["EqualityScan"]

_MASK = "_iceexplore_mask"
#: Maximum number of bytes of keys that are broadcast; more are shuffled.
_BROADCAST = 48 << 20
#: Types whose stored values are integers.
_WHOLE = frozenset(("int", "long", "date"))


@dataclass(frozen=True)
class EqualityScan:
    """The equality deletes of a group of files.

    Attributes
    ----------
    paths
        The columns that they compare, as paths by field id.
    masks
        For each delete, which sets of deletes contain it (0 or 1 per set).
    number
        The number of the set that applies to a row.
    column
        A function that returns the column at the path to a field.
    """

    session: Any
    info: SessionInfo
    reader: TaskReader
    paths: Mapping[int, tuple[NestedField, ...]]
    masks: Mapping[int, Sequence[int]]
    number: Column
    column: Callable[[Sequence[NestedField]], Column]

    def without(self, frame: DataFrame) -> DataFrame:
        """Return the rows that no equality delete removes.

        Raises
        ------
        FormatError, UnsupportedError, FileMissingError
            A delete cannot be read.
        """
        by_ids: dict[tuple[int, ...], list[int]] = {}
        for n in sorted(self.masks):
            entry = self.reader.tasks.matched.deletes.entries["equality_ids"][n].as_py()
            by_ids.setdefault(tuple(sorted(set(entry or ()))), []).append(n)
        for turn, (ids, deletes) in enumerate(by_ids.items()):
            tables = {n: self.reader.equality.values(n, ids, self.paths) for n in deletes}
            bits = self._bits(ids, tables)
            frame = self._joined(frame, ids, tables, f"k{turn}_") if bits is None else self._marked(frame, ids[0], bits)
        return frame

    def _several(self, deletes: Mapping[int, pa.Table]) -> bool:
        """Return whether at least one set of deletes lacks one of these deletes."""
        return any(not all(self.masks[n]) for n in deletes)

    # As bits ----------------------------------------------------------------------------------------------------------

    def _bits(self, ids: tuple[int, ...], tables: Mapping[int, pa.Table]) -> KeyBits | None:
        """Return the keys as a bitset if they are integers and dense enough; else None."""
        if len(ids) > 1 or type_base(self.paths[ids[0]][-1].type) not in _WHOLE:
            return None
        columns = [table.column(0).combine_chunks() for table in tables.values()]
        if any(c.null_count for c in columns):
            return None
        columns = [c.view(pa.int32()) if pa.types.is_date32(c.type) else c for c in columns]
        several = self._several(tables)
        return key_bits(columns, [self.masks[n] if several else (1,) for n in tables])

    def _marked(self, frame: DataFrame, number: int, bits: KeyBits) -> DataFrame:
        from pyspark.sql import functions as f
        from pyspark.sql import types as t

        key = self.column(self.paths[number])
        if type_base(self.paths[number][-1].type) == "date":
            key = f.unix_date(key)
        lookups = Lookups(self.session, self.info)
        words = lookups.array(bits.words, t.LongType())
        several = len(bits.words) > bits.size
        kept = kept_by_key(words, bits, key, self.number if several else None)
        return lookups.join(frame).filter(kept).select(*frame.columns)

    # As a join --------------------------------------------------------------------------------------------------------

    def _joined(self, frame: DataFrame, ids: tuple[int, ...], tables: Mapping[int, pa.Table], prefix: str) -> DataFrame:
        from pyspark.sql import functions as f
        from pyspark.sql import types as t

        wanted = SparkColumns([Output(f"{prefix}{i}", self.paths[i]) for i in ids], self.info.version)
        several = self._several(tables)
        parts = []
        for n, table in tables.items():
            bits = sum(1 << i for i, there in enumerate(self.masks[n]) if there)
            parts.append(table.append_column(_MASK, pa.array(np.full(table.num_rows, bits, dtype=np.int64))))
        both = pa.concat_tables(parts)
        nulls = [both.column(at).null_count > 0 for at in range(len(ids))]
        shown = wanted.of(pa.Table.from_arrays(both.columns[: len(ids)], schema=_schema(both, len(ids))))
        fields = list(wanted.schema.fields)
        floats = [at for at, i in enumerate(ids) if type_base(self.paths[i][-1].type) in ("float", "double")]
        for at in floats:
            name = f"{prefix}{ids[at]}_negative"
            shown = shown.append_column(name, _negative_zero(shown.column(at)))
            fields.append(t.StructField(name, t.BooleanType(), True))
        keys = shown.append_column(_MASK, both.column(_MASK))
        fields.append(t.StructField(_MASK, t.LongType(), True))
        keys = _distinct(keys, several)
        there = arrow_frame(self.session, self.info, keys, t.StructType(fields))
        if keys.nbytes <= _BROADCAST:
            there = f.broadcast(there)
        conditions = []
        for at, i in enumerate(ids):
            mine, theirs = self.column(self.paths[i]), f.col(f"{prefix}{i}")
            conditions.append(mine.eqNullSafe(theirs) if nulls[at] else mine == theirs)
            if at in floats:
                negative = f.coalesce((mine == f.lit(0.0)) & mine.cast("string").startswith("-"), f.lit(False))
                conditions.append(negative == f.col(f"{prefix}{i}_negative"))
        if several:
            shifted = f.call_function("shiftright", f.col(_MASK), self.number.cast("int"))
            conditions.append(shifted.bitwiseAND(f.lit(1).cast("bigint")) == f.lit(1).cast("bigint"))
        else:
            there = there.drop(_MASK)
        condition = conditions[0]
        for one in conditions[1:]:
            condition = condition & one
        return frame.join(there, condition, "left_anti")


def _schema(table: pa.Table, columns: int) -> pa.Schema:
    return pa.schema([table.schema.field(i) for i in range(columns)])


def _negative_zero(column: AnyChunkedArray) -> AnyArray:
    """Return a mask of the numbers that are -0.0, which Spark's joins treat as equal to 0.0."""
    values = np.asarray(pc.fill_null(column, 1.0))
    return build.array((values == 0) & np.signbit(values))


def _distinct(keys: pa.Table, masked: bool) -> pa.Table:
    """Return the keys without duplicates within a set of deletes; unchanged if Arrow cannot group such keys."""
    names = [n for n in keys.column_names if n != _MASK]
    try:
        if not masked:
            return keys.group_by(names, use_threads=False).aggregate([(_MASK, "max")]).rename_columns([*names, _MASK])
        grouped = keys.group_by([*names, _MASK], use_threads=False).aggregate([])
        return grouped.select([*names, _MASK])
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return keys
