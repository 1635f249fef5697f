"""Columns of a decoded file, found by field id and brought to the type that the content entry has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.errors import Problem, problem
from iceexplore.manifests.model._record_shape import PARTITION

__all__ = ["Columns", "HAS_TUPLE", "as_pairs", "bool_array", "offsets_of", "to_text", "unnest", "whole"]


#: Column that says which rows have a partition tuple, where it may be null: a null in a tuple is a value.
HAS_TUPLE = "p_there"


def whole(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array; without a copy if it is one already (``combine_chunks`` always copies)."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def unnest(table: pa.Table) -> pa.Table:
    """Make the children of ``s…`` columns (records that may be null) columns."""
    while any(name[0] == "s" for name in table.column_names):
        arrays: list[Any] = []
        names: list[str] = []
        for name, column in zip(table.column_names, table.columns, strict=True):
            if name[0] == "s" and pa.types.is_struct(column.type):
                if name == f"s{PARTITION}":
                    arrays.append(column.is_valid())
                    names.append(HAS_TUPLE)
                arrays += whole(column).flatten()
                names += [child.name for child in column.type]
            elif name[0] != "s":
                arrays.append(column)
                names.append(name)
        table = pa.table(arrays, names=names)
    return table


def bool_array(mask: pa.Array | pa.ChunkedArray) -> np.ndarray[Any, Any]:
    """A mask as numpy's; null is false."""
    filled = pc.fill_null(mask, False)
    return np.asarray(whole(filled) if isinstance(filled, pa.ChunkedArray) else filled)


def to_text(array: pa.Array) -> tuple[pa.Array, bool]:
    """Binary to string; bytes that are no UTF-8 are replaced, and the second value is then true."""
    try:
        return array.cast(pa.string()), False
    except pa.ArrowInvalid:  # a damaged column: the one case where values become Python objects
        texts = [None if v is None else bytes(v).decode("utf-8", "replace") for v in array.to_pylist()]
        return pa.array(texts, pa.string()), True


class Columns:
    """The columns of a table by field id; missing ones are null.

    What does not fit the type asked for is null, or replaced, and noted in ``problems``.
    """

    def __init__(self, table: pa.Table, location: str) -> None:
        self.table = table
        self.location = location
        self.problems: list[Problem] = []

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def get(self, field_id: int | str, kind: pa.DataType) -> pa.Array:
        """The column with this id (in a struct of V4: ``"5_0"``) as an array of this type."""
        name = f"f{field_id}"
        index = self.table.schema.get_field_index(name)
        if index < 0:
            return pa.nulls(len(self), kind)
        array = whole(self.table.column(index))
        if array.type == kind:
            return array
        try:
            if pa.types.is_string(kind) and pa.types.is_binary(array.type):
                array, damaged = to_text(array)
                if damaged:
                    self._note(field_id, "text that is no UTF-8")
                return array
            return array.cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            self._note(field_id, f"values of {array.type} that are no {kind}")
        try:
            return _each(array, kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            return pa.nulls(len(self), kind)

    def _note(self, field_id: int | str, what: str) -> None:
        self.problems.append(
            problem("value-undecodable", self.location, f"Field {field_id} has {what}.", field=str(field_id))
        )


def _each(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Value by value, null for those that do not fit (only a damaged column comes here)."""
    out = []
    for value in array:
        try:
            out.append(value.cast(kind).as_py())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            out.append(None)
    return pa.array(out, kind)


def as_pairs(array: pa.Array, value: pa.DataType) -> pa.ListArray:
    """A statistics map, as a list of pairs or a real map, as ``list<struct<key: int32, value>>``."""
    kind = pa.list_(pa.struct([pa.field("key", pa.int32()), pa.field("value", value)]))
    if array.type == kind:
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), kind)
    if pa.types.is_map(array.type):
        array = _plain(array)
    if not (pa.types.is_list(array.type) and pa.types.is_struct(array.type.value_type)):
        raise pa.ArrowInvalid(f"{array.type} is no map")
    keys, values = array.values.flatten()
    pairs = pa.StructArray.from_arrays([_cast(keys, pa.int32()), _cast(values, value)], fields=list(kind.value_type))
    return pa.ListArray.from_arrays(offsets_of(array), pairs)


def offsets_of(array: pa.ListArray | pa.MapArray) -> pa.Array:
    """Offsets with the nulls in them, as ``from_arrays`` takes them."""
    offsets = array.offsets
    if not array.null_count:
        return offsets
    starts = pc.if_else(array.is_valid(), offsets[:-1], pa.scalar(None, pa.int32()))
    return pa.concat_arrays([starts, offsets[-1:]])


def _plain(array: pa.MapArray) -> pa.ListArray:
    pairs = pa.StructArray.from_arrays([array.keys, array.items], names=["key", "value"])
    return pa.ListArray.from_arrays(offsets_of(array), pairs)


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_binary(array.type) and pa.types.is_integer(kind):  # an Avro map's keys are text
        array = array.cast(pa.string())
    return array if array.type == kind else array.cast(kind)
