"""Check that rows follow a sort order (spec, "Sorting"): nulls first or last, NaN above all other numbers.

The spec sorts -0 below 0, Spark treats them as equal; both orders are accepted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray
from iceexplore.arrow import compute as pc
from iceexplore.errors import IceexploreError
from iceexplore.metadata import NestedField, TableMetadata, apply_transform, is_known_transform
from iceexplore.planning import comparable

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["OrderCheck", "SortColumn", "sort_columns"]


@dataclass(frozen=True)
class SortColumn:
    """A field of a sort order, with its source column."""

    field: NestedField
    transform: str
    descending: bool
    nulls_first: bool


def sort_columns(metadata: TableMetadata, order_id: int | None) -> list[SortColumn]:
    """Return the columns of a sort order; empty if it is unsorted (0), unknown, or cannot be computed."""
    order = next((o for o in metadata.sort_orders if o.order_id == order_id), None)
    if order is None or not order_id:
        return []
    fields = metadata.all_fields()
    out = []
    for f in order.fields:
        if len(f.source_ids) != 1 or f.source_ids[0] not in fields or not is_known_transform(f.transform):
            return []
        field = fields[f.source_ids[0]][1]
        out.append(SortColumn(field, f.transform, f.direction == "desc", f.null_order == "nulls-first"))
    return out


class OrderCheck:
    """A check of a file's rows, each compared with the one before it.

    Attributes
    ----------
    wrong
        A description of the first row out of order; None while there is none.
    """

    def __init__(self, columns: Sequence[SortColumn]) -> None:
        self._columns = columns
        self._last: list[AnyArray] | None = None
        self.wrong: str | None = None

    def add(self, values: Mapping[int, AnyArray], first: int) -> None:
        """Check the next rows, given as columns by field id; ``first`` is the position of the first of them."""
        if self.wrong is not None or not self._columns:
            return
        try:
            made = [apply_transform(c.transform, c.field.type, values[c.field.field_id]) for c in self._columns]
        except (IceexploreError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
            self._columns = ()
            return
        joined = made if self._last is None else [pa.concat_arrays(p) for p in zip(self._last, made, strict=True)]
        start = first if self._last is None else first - 1
        self._last = [m.slice(len(m) - 1) for m in made]
        rows = len(joined[0])
        after = np.zeros(max(rows - 1, 0), np.bool_)  # whether earlier columns already decide the order
        for column, array in zip(self._columns, joined, strict=True):
            ranks = _ranks(array, column)
            less, more = _compared(ranks)
            bad = np.flatnonzero(less & ~after)
            if len(bad):
                self.wrong = (
                    f"row {start + int(bad[0]) + 1} sorts before row {start + int(bad[0])} by {column.field.name}"
                )
                return
            after |= more | _other_zero(array)


def _other_zero(array: AnyArray) -> npt.NDArray[Any] | bool:
    """Return, for each row after the first, whether it and the previous row are 0 and -0, in either order."""
    if not pa.types.is_floating(array.type):
        return False
    plain = np.asarray(pc.fill_null(array, 1.0))
    found: npt.NDArray[Any] = (plain[1:] == 0) & (plain[:-1] == 0) & (np.signbit(plain[1:]) != np.signbit(plain[:-1]))
    return found


def _ranks(array: AnyArray, column: SortColumn) -> tuple[Any, Any]:
    """Return two ascending sort keys for each row: first its class (null, value or NaN), then its value."""
    null = np.asarray(array.is_null())
    if pa.types.is_floating(array.type):
        nan = np.asarray(pc.fill_null(pc.is_nan(array), False))
        array = pc.if_else(pa.array(nan), pa.scalar(None, array.type), array)
        array = pc.add(array, pa.scalar(0.0, array.type))  # -0 becomes 0
    else:
        nan = np.zeros(len(array), np.bool_)
    sign = -1 if column.descending else 1
    kind = np.where(nan, sign, 0)
    kind[null] = -2 if column.nulls_first else 2
    codes = comparable(array).dictionary_encode()
    order = np.argsort(np.asarray(pc.array_sort_indices(codes.dictionary)))
    places = np.asarray(pc.fill_null(codes.indices, 0)).astype(np.int64)
    value = (order[places] if len(order) else places) * sign
    return kind, np.where(kind == 0, value, 0)


def _compared(keys: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return, for each row after the first, whether it is less than the previous one, and whether it is greater."""
    (kind, value) = keys
    same = kind[1:] == kind[:-1]
    less = (kind[1:] < kind[:-1]) | (same & (value[1:] < value[:-1]))
    more = (kind[1:] > kind[:-1]) | (same & (value[1:] > value[:-1]))
    return less, more
