"""Equality deletes as a left anti join (spec, "Equality Delete Files").

Values are equal as in Java's ``StructLikeSet``: null is null, NaN is NaN, and -0.0 is not 0.0. Keys are read here, each
once; where a key has no null it is compared by ``=``, so that Spark can join by a plain integer, which is fastest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from iceexplore.metadata import NestedField, type_base
from iceexplore.on_spark._scan_frames import arrow_frame
from iceexplore.on_spark._session_info import SessionInfo
from iceexplore.on_spark._types import SparkColumns
from iceexplore.reading import Output, TaskReader

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["without_equal"]

_MASK = "_iceexplore_mask"
#: Bytes of keys that go to every worker; more are shuffled.
_BROADCAST = 48 << 20


def without_equal(
    session: Any,
    info: SessionInfo,
    reader: TaskReader,
    paths: Mapping[int, tuple[NestedField, ...]],
    masks: Mapping[int, Sequence[int]],
    frame: DataFrame,
    number: Column,
    column: Callable[[Sequence[NestedField]], Column],
) -> DataFrame:
    """The rows that no equality delete removes.

    Parameters
    ----------
    masks
        For each delete whether it is in each set of deletes.
    number
        A row's set.
    column
        A row's value, by the path to its field.

    Raises
    ------
    FormatError, UnsupportedError, FileMissingError
        A delete cannot be read.
    """
    by_ids: dict[tuple[int, ...], list[int]] = {}
    for n in sorted(masks):
        entry = reader.tasks.matched.deletes.entries["equality_ids"][n].as_py()
        by_ids.setdefault(tuple(sorted(set(entry or ()))), []).append(n)
    for turn, (ids, deletes) in enumerate(by_ids.items()):
        frame = _without(session, info, reader, paths, masks, frame, number, column, ids, deletes, f"k{turn}_")
    return frame


def _without(
    session: Any,
    info: SessionInfo,
    reader: TaskReader,
    paths: Mapping[int, tuple[NestedField, ...]],
    masks: Mapping[int, Sequence[int]],
    frame: DataFrame,
    number: Column,
    column: Callable[[Sequence[NestedField]], Column],
    ids: tuple[int, ...],
    deletes: list[int],
    prefix: str,
) -> DataFrame:
    from pyspark.sql import functions as f
    from pyspark.sql import types as t

    wanted = SparkColumns([Output(f"{prefix}{i}", paths[i]) for i in ids], info.version)
    some = any(not all(masks[n]) for n in deletes)
    parts = []
    for n in deletes:
        table = reader.equality.values(n, ids, paths)
        bits = sum(1 << i for i, there in enumerate(masks[n]) if there)
        parts.append(table.append_column(_MASK, pa.array(np.full(table.num_rows, bits, dtype=np.int64))))
    both = pa.concat_tables(parts)
    nulls = [both.column(at).null_count > 0 for at in range(len(ids))]
    shown = wanted.of(pa.Table.from_arrays(both.columns[: len(ids)], schema=_schema(both, len(ids))))
    fields = list(wanted.schema.fields)
    floats = [at for at, i in enumerate(ids) if type_base(paths[i][-1].type) in ("float", "double")]
    for at in floats:
        name = f"{prefix}{ids[at]}_negative"
        shown = shown.append_column(name, _negative_zero(shown.column(at)))
        fields.append(t.StructField(name, t.BooleanType(), True))
    keys = shown.append_column(_MASK, both.column(_MASK))
    fields.append(t.StructField(_MASK, t.LongType(), True))
    keys = _distinct(keys, some)
    there = arrow_frame(session, info, keys, t.StructType(fields))
    if keys.nbytes <= _BROADCAST:
        there = f.broadcast(there)
    conditions = []
    for at, i in enumerate(ids):
        mine, theirs = column(paths[i]), f.col(f"{prefix}{i}")
        conditions.append(mine.eqNullSafe(theirs) if nulls[at] else mine == theirs)
        if at in floats:
            negative = f.coalesce((mine == f.lit(0.0)) & mine.cast("string").startswith("-"), f.lit(False))
            conditions.append(negative == f.col(f"{prefix}{i}_negative"))
    if some:
        shifted = f.call_function("shiftright", f.col(_MASK), number.cast("int"))
        conditions.append(shifted.bitwiseAND(f.lit(1).cast("bigint")) == f.lit(1).cast("bigint"))
    else:
        there = there.drop(_MASK)
    condition = conditions[0]
    for one in conditions[1:]:
        condition = condition & one
    return frame.join(there, condition, "left_anti")


def _schema(table: pa.Table, columns: int) -> pa.Schema:
    return pa.schema([table.schema.field(i) for i in range(columns)])


def _negative_zero(column: pa.ChunkedArray) -> pa.Array:
    """Where a number is -0.0, which Spark's joins take for 0.0."""
    values = np.asarray(column.fill_null(1.0))
    return pa.array((values == 0) & np.signbit(values))


def _distinct(keys: pa.Table, masked: bool) -> pa.Table:
    """Each key once, in all of its sets. Keys of the types that Arrow cannot group stay as they are."""
    names = [n for n in keys.column_names if n != _MASK]
    try:
        if not masked:
            return keys.group_by(names).aggregate([(_MASK, "max")]).rename_columns([*names, _MASK])
        grouped = keys.group_by([*names, _MASK]).aggregate([])
        return grouped.select([*names, _MASK])
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return keys
