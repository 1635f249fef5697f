"""Compute new values of columns: constants, or functions of the rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray
from iceexplore.errors import OptionError
from iceexplore.writing._foreign_frames import RowsLike
from iceexplore.writing._from_python import plain_values

__all__ = ["is_array", "set_values"]


def set_values(table: pa.Table, given: Mapping[str, Any], *, what: str = "set") -> dict[str, Any]:
    """Return new columns: constants are repeated, functions are called with the old rows.

    Parameters
    ----------
    what
        The name of the caller's parameter, for error messages.

    Raises
    ------
    OptionError
        A function does not return one value per row, or Arrow cannot represent its values.
    """
    out: dict[str, Any] = {}
    for name, value in given.items():
        found = value(table) if callable(value) else value
        if not is_array(found):
            out[name] = [found] * table.num_rows
            continue
        if (dimensions := getattr(found, "ndim", 1)) != 1:
            raise OptionError(
                f"{what}: the function of {name!r} returns an array of {dimensions} dimensions: "
                "expected one value per row"
            )
        if len(found) != table.num_rows:
            raise OptionError(f"{what}: {len(found)} values of {name!r} for {table.num_rows} rows: give one per row")
        out[name] = found if isinstance(found, (pa.Array, pa.ChunkedArray)) else _arrow(name, found, what)
    return out


def is_array(value: object) -> bool:
    """Return whether the value is an array (of Arrow, NumPy or pandas) with values for several rows."""
    # Check the class: a Spark Column returns something for any attribute.
    return isinstance(value, (pa.Array, pa.ChunkedArray, np.ndarray)) or hasattr(type(value), "iloc")


def _arrow(name: str, values: RowsLike, what: str) -> AnyArray:
    try:
        # NaN means null only in pandas.
        return plain_values(values, from_pandas=hasattr(values, "iloc"))
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise OptionError(
            f"{what}: the function of {name!r} returns values that Arrow cannot represent: {error}"
        ) from None
