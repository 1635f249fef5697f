"""Sort rows in a table's sort order (spec, "Sorting")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError
from iceexplore.metadata import Schema, SortField, SortOrder, TableMetadata, apply_transform

__all__ = ["default_order", "order_keys", "sorted_rows"]

Keys = np.ndarray[Any, np.dtype[np.int64]]


def default_order(metadata: TableMetadata) -> SortOrder | None:
    """Return the table's default sort order; None if it is unsorted."""
    found = next((o for o in metadata.sort_orders if o.order_id == metadata.default_sort_order_id), None)
    return found if found is not None and found.fields else None


def sorted_rows(
    table: pa.Table, schema: Schema, order: SortOrder, values_of: Callable[[pa.Table, Schema, int], AnyArray | None]
) -> pa.Table:
    """Return the rows in a sort order; the sort is stable.

    Parameters
    ----------
    values_of
        A function that returns the values of the table's column with a field id, such as `columns_at`.

    Raises
    ------
    OptionError
        A transform is unknown, or the table no longer has a source column.
    """
    keys = [key for field in order.fields for key in _field_keys(table, schema, field, values_of)]
    rows = np.lexsort(keys[::-1])
    return table if (rows[1:] > rows[:-1]).all() else table.take(build.array(rows))


def _field_keys(
    table: pa.Table, schema: Schema, field: SortField, values_of: Callable[[pa.Table, Schema, int], AnyArray | None]
) -> tuple[Keys, Keys]:
    source = schema.find(field.source_ids[0]) if len(field.source_ids) == 1 else None
    values = None if source is None else values_of(table, schema, field.source_ids[0])
    if source is None or values is None:
        raise OptionError(
            f"the sort order uses {field.transform} of column {field.source_ids}, which is not in the schema: "
            "choose another sort order with set_sort_order(...)"
        )
    return order_keys(
        apply_transform(field.transform, source.type, values),
        descending=field.direction.lower() == "desc",
        nulls_last=field.null_order.lower() == "nulls-last",
    )


def order_keys(values: AnyArray, *, descending: bool = False, nulls_last: bool = False) -> tuple[Keys, Keys]:
    """Return two integer arrays to sort by: the first separates nulls from other values, the second ranks the values.

    Floats are sorted in the order of IEEE 754's ``totalOrder`` (spec: "-NaN < -Infinity < -value < -0 < 0 < value <
    Infinity < NaN"). The position of nulls does not depend on the direction.
    """
    null = np.asarray(values.is_null()).astype(np.int64)
    if len(values) == 0:
        return null, null
    keys = _float_keys(values) if pa.types.is_floating(values.type) else _ranks(values)
    keys = np.where(null, 0, ~keys if descending else keys)
    return null if nulls_last else -null, keys


def _float_keys(values: AnyArray) -> Keys:
    plain = np.asarray(pc.fill_null(values, 0.0))
    bits = plain.view(np.int64 if plain.dtype == np.float64 else np.int32).astype(np.int64)
    magnitude = np.int64(0x7FFF_FFFF_FFFF_FFFF if plain.dtype == np.float64 else 0x7FFF_FFFF)
    # For negative numbers, a larger magnitude means a smaller number.
    keys: Keys = np.where(bits < 0, bits ^ magnitude, bits)
    return keys


def _ranks(values: AnyArray) -> Keys:
    kind = values.type
    if pa.types.is_null(kind):
        return np.zeros(len(values), np.int64)
    if pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    return np.asarray(pc.rank(values, sort_keys="ascending", tiebreaker="dense")).astype(np.int64)
