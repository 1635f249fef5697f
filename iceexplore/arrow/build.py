"""Functions that create Arrow arrays, types, schemas and tables, declared with correct types.

The declarations in ``pyarrow-stubs`` are too narrow. With them, the type checker rejects offsets of an unknown type,
lists of fields with different types, NumPy or chunked arrays as columns of a table, and any `pa.DataType` that comes
from a schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceexplore.arrow._types import (
    AnyArray,
    AnyChunkedArray,
    AnyColumn,
    AnyField,
    AnyListArray,
    AnyListViewArray,
    AnyMapArray,
    AnyMapType,
    AnyScalar,
)

__all__ = [
    "array",
    "chunked_array",
    "frombuffer",
    "list_",
    "list_array",
    "list_view_array",
    "map_",
    "map_array",
    "nulls",
    "py_buffer",
    "repeat",
    "scalar",
    "schema",
    "table",
    "to_pylist",
]

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    def array(values: Iterable[Any], type: pa.DataType | None = None, **options: Any) -> AnyArray: ...
    def chunked_array(arrays: Iterable[Any], type: pa.DataType | None = None) -> AnyChunkedArray: ...
    def frombuffer(buffer: pa.Buffer | None, dtype: Any, count: int = -1, offset: int = 0) -> npt.NDArray[Any]: ...
    def list_(value_type: pa.DataType | AnyField) -> pa.ListType[Any]: ...
    def list_array(
        offsets: Any, values: AnyArray, type: pa.DataType | None = None, *, mask: pa.BooleanArray | None = None
    ) -> AnyListArray: ...
    def list_view_array(
        offsets: Any,
        sizes: Any,
        values: AnyArray,
        type: pa.DataType | None = None,
        *,
        mask: pa.BooleanArray | None = None,
    ) -> AnyListViewArray: ...
    def map_(key_type: pa.DataType | AnyField, item_type: pa.DataType | AnyField) -> AnyMapType: ...
    def map_array(
        offsets: Any,
        keys: AnyArray,
        items: AnyArray,
        type: pa.DataType | None = None,
        pool: None = None,
        mask: pa.BooleanArray | None = None,
    ) -> AnyMapArray: ...
    def nulls(size: int, type: pa.DataType | None = None) -> AnyArray: ...
    def py_buffer(data: Any) -> pa.Buffer: ...
    def repeat(value: Any, size: int) -> AnyArray: ...
    def scalar(value: Any, type: pa.DataType | None = None) -> AnyScalar: ...
    def schema(
        fields: Iterable[Any] | Mapping[str, Any],
        metadata: Mapping[bytes, bytes] | Mapping[str, str] | None = None,
    ) -> pa.Schema: ...
    def table(
        data: Mapping[str, Any] | Sequence[Any],
        names: Sequence[str] | None = None,
        schema: pa.Schema | None = None,
        metadata: Mapping[bytes, bytes] | Mapping[str, str] | None = None,
    ) -> pa.Table: ...
else:
    from numpy import frombuffer
    from pyarrow import array, chunked_array, list_, map_, nulls, py_buffer, repeat, scalar, schema, table

    list_array = pa.ListArray.from_arrays
    list_view_array = pa.ListViewArray.from_arrays
    map_array = pa.MapArray.from_arrays


def to_pylist(column: AnyColumn | pa.Table | pa.RecordBatch) -> list[Any]:
    """Return a column's values, each typed as Any; in ``pyarrow-stubs``, the type says that each may be None."""
    values: list[Any] = column.to_pylist()
    return values
