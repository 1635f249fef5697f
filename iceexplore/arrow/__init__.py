"""Arrow for the rest of the package: names for its generic classes, and its functions with exact types.

`compute` has the functions of ``pyarrow.compute`` (``from iceexplore.arrow import compute as pc``). `build` has the
functions of ``pyarrow`` that create arrays, types and tables and whose types in ``pyarrow-stubs`` are too narrow.
Nothing is wrapped: at run time the names are pyarrow's own. The types are for the checker, which knows the rest of
pyarrow from ``pyarrow-stubs``.
"""

from iceexplore.arrow import build, compute
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
]
