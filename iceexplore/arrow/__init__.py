"""Arrow as the rest of the package sees it: names for its generic classes, and its functions with exact types.

`compute` has the functions of ``pyarrow.compute`` (``from iceexplore.arrow import compute as pc``), `build` those of
``pyarrow`` that make arrays, types and tables and are typed too narrowly elsewhere. Nothing is wrapped: at run time the
names are pyarrow's own. The types are for the checker, which knows the rest of pyarrow from ``pyarrow-stubs``.
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
    Int32s,
    Int64s,
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
    "Int32s",
    "Int64s",
    "Strings",
    "build",
    "compute",
]
