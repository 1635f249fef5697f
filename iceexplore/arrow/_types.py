"""Names for Arrow's generic classes in annotations.

``pyarrow-stubs`` declares pyarrow's classes as generic, but at run time they cannot be subscripted. The names for
arrays say what the elements are: `Strings` is used instead of `pa.StringArray`, because `Strings` also accepts columns
of tables, whose element types the checker cannot know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

__all__ = [
    "AnyArray",
    "AnyChunkedArray",
    "AnyColumn",
    "AnyDecimalType",
    "AnyDictionaryArray",
    "AnyExtensionArray",
    "AnyField",
    "AnyListArray",
    "AnyListType",
    "AnyListViewArray",
    "AnyMapArray",
    "AnyMapType",
    "AnyScalar",
    "Binaries",
    "DynamicArray",
    "DynamicScalar",
    "DynamicType",
    "Int32s",
    "Int64s",
    "PlainValue",
    "Strings",
]

#: A value of any Iceberg type as a Python object (None, bool, int, float, Decimal, str, bytes, UUID, dates and times,
#: lists, dictionaries) or as a NumPy or pandas object. Its type is known only at run time, from the table's schema.
PlainValue: TypeAlias = Any
#: An array whose class depends on its type at run time (struct, list, map, extension). In the stubs, `pa.Array` lacks
#: the attributes of these subclasses. The same holds for scalars and types.
DynamicArray: TypeAlias = Any
DynamicScalar: TypeAlias = Any
DynamicType: TypeAlias = Any

if TYPE_CHECKING:
    from pyarrow import lib

    AnyArray: TypeAlias = pa.Array[Any]
    AnyChunkedArray: TypeAlias = pa.ChunkedArray[Any]
    AnyColumn: TypeAlias = AnyArray | AnyChunkedArray
    AnyDecimalType: TypeAlias = pa.Decimal128Type[Any, Any]
    AnyDictionaryArray: TypeAlias = pa.DictionaryArray[Any, Any]
    AnyExtensionArray: TypeAlias = pa.ExtensionArray[Any]
    AnyField: TypeAlias = pa.Field[Any]
    AnyListArray: TypeAlias = pa.ListArray[Any]
    AnyListType: TypeAlias = pa.ListType[Any]
    AnyListViewArray: TypeAlias = pa.ListViewArray[Any]
    AnyMapArray: TypeAlias = pa.MapArray[Any, Any]
    AnyMapType: TypeAlias = pa.MapType[Any, Any, Any]
    AnyScalar: TypeAlias = pa.Scalar[Any]

    Binaries: TypeAlias = pa.Array[pa.Scalar[lib.BinaryType]]
    Int32s: TypeAlias = pa.Array[pa.Scalar[lib.Int32Type]]
    Int64s: TypeAlias = pa.Array[pa.Scalar[lib.Int64Type]]
    Strings: TypeAlias = pa.Array[pa.Scalar[lib.StringType]]
else:
    AnyArray = Binaries = Int32s = Int64s = Strings = pa.Array
    AnyChunkedArray = pa.ChunkedArray
    AnyColumn = pa.Array | pa.ChunkedArray
    AnyDecimalType = pa.Decimal128Type
    AnyDictionaryArray = pa.DictionaryArray
    AnyExtensionArray = pa.ExtensionArray
    AnyField = pa.Field
    AnyListArray = pa.ListArray
    AnyListType = pa.ListType
    AnyListViewArray = pa.ListViewArray
    AnyMapArray = pa.MapArray
    AnyMapType = pa.MapType
    AnyScalar = pa.Scalar
