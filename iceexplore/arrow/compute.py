# mypy: disable-error-code="overload-cannot-match,misc,type-var"
"""The functions of ``pyarrow.compute``, with correct types.

The types in ``pyarrow-stubs`` are too narrow: they refuse Python values that Arrow accepts, and declare results as
arrays although chunked inputs give chunked results. Here, each function that the package uses has a correct type:

- the result of a function of single rows is chunked if any input is, else an array if any input is, else a scalar;
  aggregates return a scalar or an array;
- the element type is declared for masks, counts and indices, and where it equals the first input's; else it is Any.

Nothing is wrapped: at run time these names are pyarrow's functions. To add a function, add it to ``__all__``, to the
declarations and to the imports at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, overload

import pyarrow as pa
from pyarrow.compute import CountOptions, Expression

from iceexplore.arrow._types import AnyArray, AnyChunkedArray, AnyColumn, AnyListArray, AnyScalar

__all__ = [
    "CountOptions",
    "Expression",
    "abs",
    "add",
    "all",
    "and_",
    "and_kleene",
    "and_not",
    "any",
    "array_sort_indices",
    "binary_join_element_wise",
    "binary_length",
    "binary_slice",
    "case_when",
    "cast",
    "coalesce",
    "count_distinct",
    "cumulative_sum",
    "dictionary_encode",
    "divide",
    "drop_null",
    "ends_with",
    "equal",
    "extract_regex",
    "fill_null",
    "greater",
    "greater_equal",
    "if_else",
    "index",
    "index_in",
    "indices_nonzero",
    "invert",
    "is_finite",
    "is_in",
    "is_nan",
    "is_null",
    "is_valid",
    "less",
    "less_equal",
    "list_element",
    "list_flatten",
    "list_parent_indices",
    "list_value_length",
    "make_struct",
    "map_lookup",
    "match_substring",
    "match_substring_regex",
    "max",
    "max_element_wise",
    "mean",
    "min",
    "min_element_wise",
    "min_max",
    "multiply",
    "not_equal",
    "or_",
    "or_kleene",
    "rank",
    "replace_substring",
    "replace_substring_regex",
    "replace_with_mask",
    "run_end_decode",
    "sort_indices",
    "split_pattern",
    "starts_with",
    "struct_field",
    "subtract",
    "sum",
    "take",
    "unique",
    "utf8_length",
    "utf8_lower",
    "utf8_rtrim",
    "utf8_slice_codeunits",
    "utf8_trim",
    "utf8_upper",
    "value_counts",
    "xor",
]

if TYPE_CHECKING:
    import datetime as dt
    from decimal import Decimal

    _Array = TypeVar("_Array", bound=AnyArray, covariant=True)
    _Scalar = TypeVar("_Scalar", bound=AnyScalar)
    _Of = TypeVar("_Of", bound=AnyScalar)
    _Same = TypeVar("_Same", bound=AnyArray | AnyChunkedArray | AnyScalar)

    #: The values that Arrow accepts where a scalar is expected.
    _Value: TypeAlias = AnyScalar | bool | int | float | str | bytes | Decimal | dt.date | dt.time | dt.timedelta | None

    class _Ends(Protocol):
        """A struct scalar with the smallest and the largest value of a column: ``min`` and ``max``."""

        def __getitem__(self, name: str) -> AnyScalar: ...
        def as_py(self) -> dict[str, Any]: ...

    class _Unary(Protocol[_Array, _Scalar]):
        """A row-by-row function of one input, with options. The result has the same form as the input."""

        @overload
        def __call__(self, x: AnyChunkedArray, /, *options: Any, **more: Any) -> pa.ChunkedArray[_Scalar]: ...
        @overload
        def __call__(self, x: AnyArray, /, *options: Any, **more: Any) -> _Array: ...
        @overload
        def __call__(self, x: _Value, /, *options: Any, **more: Any) -> _Scalar: ...

    class _Function(Protocol[_Array, _Scalar]):
        """A row-by-row function of several inputs. The result is chunked if any input is, else an array if any is."""

        @overload
        def __call__(self, x: AnyChunkedArray, /, *more: Any, **options: Any) -> pa.ChunkedArray[_Scalar]: ...
        @overload
        def __call__(self, x: Any, y: AnyChunkedArray, /, *more: Any, **options: Any) -> pa.ChunkedArray[_Scalar]: ...
        @overload
        def __call__(
            self, x: Any, y: Any, z: AnyChunkedArray, /, *more: Any, **options: Any
        ) -> pa.ChunkedArray[_Scalar]: ...
        @overload
        def __call__(self, x: AnyArray, /, *more: AnyArray | _Value, **options: Any) -> _Array: ...
        @overload
        def __call__(self, x: _Value, y: AnyArray, /, *more: AnyArray | _Value, **options: Any) -> _Array: ...
        @overload
        def __call__(
            self, x: _Value, y: _Value, z: AnyArray, /, *more: AnyArray | _Value, **options: Any
        ) -> _Array: ...
        @overload
        def __call__(self, x: _Value, /, *more: _Value, **options: Any) -> _Scalar: ...

    class _Keeping(Protocol):
        """A function whose result has the shape and the element type of its first input."""

        def __call__(self, x: _Same, /, *more: Any, **options: Any) -> _Same: ...

    class _Filling(Protocol):
        """A function that replaces values of its first input by one value or by the values of another column."""

        @overload
        def __call__(self, x: pa.Array[_Of], y: AnyChunkedArray, /, *more: Any) -> pa.ChunkedArray[_Of]: ...
        @overload
        def __call__(self, x: _Same, y: Any, /, *more: Any) -> _Same: ...

    class _Encoding(Protocol):
        """A function that returns the dictionary encoding of a column."""

        @overload
        def __call__(self, x: AnyArray, /, **options: Any) -> pa.DictionaryArray[Any, Any]: ...
        @overload
        def __call__(self, x: AnyChunkedArray, /, **options: Any) -> AnyChunkedArray: ...

    _Mask = _Unary[pa.BooleanArray, pa.BooleanScalar]
    _Logic = _Function[pa.BooleanArray, pa.BooleanScalar]
    _Column = _Unary[AnyArray, AnyScalar]
    _Values = _Function[AnyArray, AnyScalar]

    def all(x: AnyColumn, /, **options: Any) -> pa.BooleanScalar: ...
    def any(x: AnyColumn, /, **options: Any) -> pa.BooleanScalar: ...
    def sum(x: AnyColumn, /, **options: Any) -> AnyScalar: ...
    def max(x: AnyColumn, /, **options: Any) -> AnyScalar: ...
    def min(x: AnyColumn, /, **options: Any) -> AnyScalar: ...
    def mean(x: AnyColumn, /, **options: Any) -> AnyScalar: ...
    def min_max(x: AnyColumn, /, **options: Any) -> _Ends: ...
    def count_distinct(x: AnyColumn, /, mode: str = "only_valid") -> pa.Int64Scalar: ...
    def index(x: AnyColumn, value: Any, /) -> pa.Int64Scalar: ...
    def unique(x: AnyColumn, /) -> AnyArray: ...
    def value_counts(x: AnyColumn, /) -> pa.StructArray: ...
    def indices_nonzero(x: AnyColumn, /) -> pa.UInt64Array: ...
    def rank(x: AnyColumn, /, **options: Any) -> pa.UInt64Array: ...
    def sort_indices(
        x: AnyColumn | pa.Table | pa.RecordBatch, /, sort_keys: Any = ..., **options: Any
    ) -> pa.UInt64Array: ...

    and_: _Logic
    and_kleene: _Logic
    and_not: _Logic
    ends_with: _Mask
    equal: _Logic
    greater: _Logic
    greater_equal: _Logic
    invert: _Mask
    is_finite: _Mask
    is_in: _Mask
    is_nan: _Mask
    is_null: _Mask
    is_valid: _Mask
    less: _Logic
    less_equal: _Logic
    match_substring: _Mask
    match_substring_regex: _Mask
    not_equal: _Logic
    or_: _Logic
    or_kleene: _Logic
    starts_with: _Mask
    xor: _Logic

    index_in: _Unary[pa.Int32Array, pa.Int32Scalar]

    extract_regex: _Unary[pa.StructArray, pa.StructScalar]
    make_struct: _Function[pa.StructArray, pa.StructScalar]

    split_pattern: _Unary[AnyListArray, AnyScalar]

    array_sort_indices: _Unary[pa.UInt64Array, pa.UInt64Scalar]

    add: _Values
    binary_join_element_wise: _Values
    binary_length: _Column
    case_when: _Values
    cast: _Column
    coalesce: _Values
    cumulative_sum: _Column
    divide: _Values
    if_else: _Values
    list_element: _Values
    list_flatten: _Column
    list_parent_indices: _Column
    list_value_length: _Column
    map_lookup: _Column
    max_element_wise: _Values
    min_element_wise: _Values
    multiply: _Values
    run_end_decode: _Column
    struct_field: _Column
    subtract: _Values
    take: _Values
    utf8_length: _Column

    abs: _Keeping
    binary_slice: _Keeping
    drop_null: _Keeping
    replace_substring: _Keeping
    replace_substring_regex: _Keeping
    replace_with_mask: _Keeping
    utf8_lower: _Keeping
    utf8_rtrim: _Keeping
    utf8_slice_codeunits: _Keeping
    utf8_trim: _Keeping
    utf8_upper: _Keeping

    fill_null: _Filling

    dictionary_encode: _Encoding
else:
    from pyarrow.compute import (
        abs,
        add,
        all,
        and_,
        and_kleene,
        and_not,
        any,
        array_sort_indices,
        binary_join_element_wise,
        binary_length,
        binary_slice,
        case_when,
        cast,
        coalesce,
        count_distinct,
        cumulative_sum,
        dictionary_encode,
        divide,
        drop_null,
        ends_with,
        equal,
        extract_regex,
        fill_null,
        greater,
        greater_equal,
        if_else,
        index,
        index_in,
        indices_nonzero,
        invert,
        is_finite,
        is_in,
        is_nan,
        is_null,
        is_valid,
        less,
        less_equal,
        list_element,
        list_flatten,
        list_parent_indices,
        list_value_length,
        make_struct,
        map_lookup,
        match_substring,
        match_substring_regex,
        max,
        max_element_wise,
        mean,
        min,
        min_element_wise,
        min_max,
        multiply,
        not_equal,
        or_,
        or_kleene,
        rank,
        replace_substring,
        replace_substring_regex,
        replace_with_mask,
        run_end_decode,
        sort_indices,
        split_pattern,
        starts_with,
        struct_field,
        subtract,
        sum,
        take,
        unique,
        utf8_length,
        utf8_lower,
        utf8_rtrim,
        utf8_slice_codeunits,
        utf8_trim,
        utf8_upper,
        value_counts,
        xor,
    )
