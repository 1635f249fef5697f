"""Columns of a decoded file, found by field id and converted to the types of content entries."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyChunkedArray, AnyColumn, AnyListArray, AnyMapArray, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import Problem, problem
from iceexplore.manifests.model._record_shape import PARTITION

__all__ = ["Columns", "HAS_TUPLE", "as_pairs", "bool_array", "offsets_of", "to_text", "unnest", "whole"]


#: Column with a mask of the rows that have a partition tuple: null fields do not show this, as null is a valid value.
HAS_TUPLE = "p_there"


def whole(column: AnyChunkedArray) -> AnyArray:
    """Return a column as one array, without a copy if it has one chunk (``combine_chunks`` always copies)."""
    # pyarrow-stubs declares a chunk as a chunked array
    return cast(AnyArray, column.chunk(0)) if column.num_chunks == 1 else column.combine_chunks()


def unnest(table: pa.Table) -> pa.Table:
    """Replace ``s…`` columns (nullable records) by columns of their children."""
    while any(name[0] == "s" for name in table.column_names):
        arrays: list[Any] = []
        names: list[str] = []
        for name, column in zip(table.column_names, table.columns, strict=True):
            if name[0] == "s" and pa.types.is_struct(column.type):
                if name == f"s{PARTITION}":
                    arrays.append(column.is_valid())
                    names.append(HAS_TUPLE)
                arrays += cast(pa.StructArray, whole(column)).flatten()
                names += [child.name for child in column.type]
            elif name[0] != "s":
                arrays.append(column)
                names.append(name)
        table = pa.table(arrays, names=names)
    return table


def bool_array(mask: AnyColumn) -> np.ndarray[Any, Any]:
    """Return a mask as a numpy array; null becomes false."""
    filled = pc.fill_null(mask, False) if mask.null_count else mask
    return np.asarray(whole(filled) if isinstance(filled, pa.ChunkedArray) else filled)


def to_text(array: AnyArray) -> tuple[AnyArray, bool]:
    """Convert binary to string. Invalid UTF-8 is replaced, and the second value is then true."""
    try:
        return array.cast(pa.string()), False
    except pa.ArrowInvalid:  # a damaged column: slow, through Python objects
        texts = [None if v is None else bytes(v).decode("utf-8", "replace") for v in array.to_pylist()]
        return pa.array(texts, pa.string()), True


class Columns:
    """The columns of a table by field id; missing ones are null.

    Values that do not fit the requested type become null or are replaced, and are reported in ``problems``.
    """

    def __init__(self, table: pa.Table, location: str) -> None:
        self.table = table
        self.location = location
        self.problems: list[Problem] = []

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def get(self, field_id: int | str, kind: pa.DataType) -> AnyArray:
        """Return the column with this id as an array of this type; ``"5_0"`` is field 0 of the V4 struct 5."""
        name = f"f{field_id}"
        index = self.table.schema.get_field_index(name)
        if index < 0:
            return build.nulls(len(self), kind)
        array = whole(self.table.column(index))
        if array.type == kind:
            return array
        try:
            if pa.types.is_string(kind) and pa.types.is_binary(array.type):
                array, damaged = to_text(array)
                if damaged:
                    self._note(field_id, "text that is not valid UTF-8")
                return array
            return array.cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            self._note(field_id, f"values of {array.type} that do not fit {kind}")
        try:
            return _each(array, kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            return build.nulls(len(self), kind)

    def _note(self, field_id: int | str, what: str) -> None:
        self.problems.append(
            problem("value-undecodable", self.location, f"Field {field_id} has {what}.", field=str(field_id))
        )


def _each(array: AnyArray, kind: pa.DataType) -> AnyArray:
    """Cast one value at a time, with null for those that do not fit. Slow, for damaged columns only."""
    out = []
    for value in array:
        try:
            out.append(value.cast(kind).as_py())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            out.append(None)
    return pa.array(out, kind)


def as_pairs(array: AnyArray, value: pa.DataType) -> AnyListArray:
    """Convert a statistics map, stored as a list of pairs or as a map, to ``list<struct<key: int32, value>>``."""
    kind = pa.list_(pa.struct([pa.field("key", pa.int32()), pa.field("value", value)]))
    if array.type == kind:
        return cast(AnyListArray, array)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), kind)
    if pa.types.is_map(array.type):
        array = _plain(cast(AnyMapArray, array))
    if not (pa.types.is_list(array.type) and pa.types.is_struct(array.type.value_type)):
        raise pa.ArrowInvalid(f"{array.type} is not a map")
    keys, values = cast(pa.StructArray, cast(AnyListArray, array).values).flatten()
    pairs = pa.StructArray.from_arrays([_cast(keys, pa.int32()), _cast(values, value)], fields=list(kind.value_type))
    return build.list_array(offsets_of(cast(AnyListArray, array)), pairs)


def offsets_of(array: AnyListArray | AnyMapArray) -> AnyArray:
    """Return a list array's offsets, null for null lists, as ``from_arrays`` expects them."""
    offsets = array.offsets
    if not array.null_count:
        return offsets
    starts = pc.if_else(array.is_valid(), offsets[:-1], pa.scalar(None, pa.int32()))
    return pa.concat_arrays([starts, offsets[-1:]])


def _plain(array: AnyMapArray) -> AnyListArray:
    pairs = pa.StructArray.from_arrays([array.keys, array.items], names=["key", "value"])
    return build.list_array(offsets_of(array), pairs)


def _cast(array: AnyArray, kind: pa.DataType) -> AnyArray:
    if pa.types.is_binary(array.type) and pa.types.is_integer(kind):  # keys of an Avro map are strings
        array = array.cast(pa.string())
    return array if array.type == kind else array.cast(kind)
