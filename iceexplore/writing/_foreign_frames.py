"""Convert data frames of other libraries: lazy frames are collected, then Arrow C streams become Arrow tables."""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow as pa

from iceexplore.errors import OptionError

__all__ = ["RowsLike", "collected", "foreign_frame", "is_lazy"]

#: Rows as users give them: an Arrow table, a data frame of any library, or columns of Python values by name. The type
#: is ``Any``, because the libraries have no class in common, and only Arrow is imported here.
RowsLike: TypeAlias = Any

_STREAM = "__arrow_c_stream__"


def is_lazy(given: object) -> bool:
    """Return whether this is a frame that is not computed yet, such as a LazyFrame of Polars or Narwhals."""
    # Check the class: a Spark Column returns something for any attribute. Spark's frames have no collect_schema.
    kind = type(given)
    return all(hasattr(kind, name) for name in ("collect", "collect_schema")) and not hasattr(kind, _STREAM)


def collected(given: RowsLike) -> RowsLike:
    """Compute a lazy frame; return anything else unchanged.

    Raises
    ------
    OptionError
        The library of the frame could not compute it.
    """
    if not is_lazy(given):
        return given
    try:
        return given.collect()
    except Exception as error:  # the library may raise anything for the user's query
        raise OptionError(f"the rows cannot be computed: {type(given).__name__}.collect() failed: {error}") from error


def foreign_frame(given: RowsLike) -> RowsLike:
    """Convert an object with ``__arrow_c_stream__`` to an Arrow table, after collecting it if it is a lazy frame.

    Other objects are returned unchanged. So are pandas frames, because their nulls and index need special handling.

    Raises
    ------
    OptionError
        The object cannot be converted to an Arrow table.
    """
    given = collected(given)
    kind = type(given)
    is_pandas = hasattr(kind, "iloc") and hasattr(kind, "columns")
    if isinstance(given, pa.Table) or is_pandas or not hasattr(kind, _STREAM):
        return given
    try:
        return pa.table(given)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise OptionError(f"the rows cannot be converted to an Arrow table: {error}") from error
