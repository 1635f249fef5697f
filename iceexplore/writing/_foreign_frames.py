"""Data frames of other libraries: what gives Arrow's C stream is an Arrow table, lazy ones once they are collected."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from iceexplore.errors import OptionError

__all__ = ["collected", "foreign_frame", "is_lazy"]

_STREAM = "__arrow_c_stream__"


def is_lazy(given: Any) -> bool:
    """Whether it is a frame that is yet to be computed, as LazyFrames of Polars and Narwhals are."""
    # The class is asked: a Spark Column has whatever attribute it is asked for. Spark's frames have no collect_schema.
    kind = type(given)
    return all(hasattr(kind, name) for name in ("collect", "collect_schema")) and not hasattr(kind, _STREAM)


def collected(given: Any) -> Any:
    """A lazy frame, computed; anything else as it is.

    Raises
    ------
    OptionError
        Its library could not compute it.
    """
    if not is_lazy(given):
        return given
    try:
        return given.collect()
    except Exception as error:  # whatever the library raises: it is the user's own query
        raise OptionError(f"the rows could not be computed: {type(given).__name__}.collect() says: {error}") from error


def foreign_frame(given: Any) -> Any:
    """An Arrow table of whatever has ``__arrow_c_stream__``, lazy frames collected; anything else as it is.

    Pandas' frames stay: their nulls and index have rules of their own.

    Raises
    ------
    OptionError
        It does not make an Arrow table.
    """
    given = collected(given)
    kind = type(given)
    is_pandas = hasattr(kind, "iloc") and hasattr(kind, "columns")
    if isinstance(given, pa.Table) or is_pandas or not hasattr(kind, _STREAM):
        return given
    try:
        return pa.table(given)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise OptionError(f"the rows do not make an Arrow table: {error}") from error
