"""Give the rest of the package a better typed pyarrow: names for its generic classes, and exact function types.

`compute` has the functions of ``pyarrow.compute`` (``from iceexplore.arrow import compute as pc``). `build` has
functions that create arrays, types and tables, where ``pyarrow-stubs`` declares them too narrowly. At run time, nearly
all of these names are pyarrow's own functions. Their declarations are for the type checker, which takes the rest of
pyarrow from ``pyarrow-stubs``.
"""

from iceexplore.arrow import build, compute
from iceexplore.arrow._join import join_texts
from iceexplore.arrow._plain import plain_value
from iceexplore.arrow._types import (
    AnyArray,
    AnyChunkedArray,
    AnyColumn,
    AnyDecimalType,
    AnyDictionaryArray,
    AnyExtensionArray,
    AnyField,
    AnyListArray,
    AnyListType,
    AnyListViewArray,
    AnyMapArray,
    AnyMapType,
    AnyScalar,
    Binaries,
    DynamicArray,
    DynamicScalar,
    DynamicType,
    Int32s,
    Int64s,
    PlainValue,
    Strings,
)

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
    "build",
    "compute",
    "join_texts",
    "plain_value",
]
