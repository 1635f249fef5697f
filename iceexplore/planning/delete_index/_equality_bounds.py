"""Compare bounds and counts of equality columns between data files and delete files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray
from iceexplore.arrow import compute as pc
from iceexplore.manifests import EntryBatch, bool_array
from iceexplore.metadata import TableMetadata, type_base
from iceexplore.planning.delete_index._codes import Ints, Mask, ranks
from iceexplore.planning.evaluators._file_evaluator import always_required

__all__ = ["END", "Intervals", "cut_off", "equality_intervals", "reaching", "trusted"]

#: A number above every rank.
END = 1 << 31
#: The length to which writers truncate strings by default (``write.metadata.metrics.default``).
_USUAL_CUT = 16
_METRICS = "write.metadata.metrics."


@dataclass(frozen=True, eq=False)
class Intervals:
    """Lower and upper bounds of one column in data files and in deletes, as ranks among all of these bounds.

    Attributes
    ----------
    file_low, file_high, delete_low, delete_high
        Ranks of the bounds, which are inclusive: 0 and `END` if the bounds are unknown; `END` + 1 and -1 if all values
        are certainly null or NaN.
    file_extra, delete_extra
        0, plus 1 if there may be nulls, plus 2 if there may be NaN. Null equals null, and NaN equals NaN.
        None for locations, which are neither null nor NaN, and in the result of `widened`.
    used
        One boolean per delete: whether the column is one of its equality columns. None if all deletes are compared.
    """

    file_low: Ints
    file_high: Ints
    delete_low: Ints
    delete_high: Ints
    file_extra: Ints | None = None
    delete_extra: Ints | None = None
    used: Mask | None = field(default=None)

    def apart(self, files: Ints, deletes: Ints) -> Mask:
        """Return a mask: True where ``files[i]`` and ``deletes[i]`` certainly have no value of the column in common.

        ``files`` and ``deletes`` are row numbers; both arrays have the same length.
        """
        out: Mask = self.file_low[files] > self.delete_high[deletes]
        out |= self.delete_low[deletes] > self.file_high[files]
        if self.file_extra is not None and self.delete_extra is not None:
            out &= (self.file_extra[files] & self.delete_extra[deletes]) == 0
        if self.used is not None:
            out &= self.used[deletes]
        return out

    def widened(self) -> Intervals:
        """Return intervals that are widened so that `file_extra`, `delete_extra` and `used` need not be checked.

        If a file and a delete may have a value in common, their widened intervals overlap. The intervals of other pairs
        may overlap, too.
        """
        if self.file_extra is None or self.delete_extra is None or self.used is None:
            return self
        shared = int(np.bitwise_or.reduce(self.file_extra)) if len(self.file_extra) else 0
        wide = ~self.used | ((self.delete_extra & shared) != 0)
        # A file with only nulls and NaN has no interval, and gets an arbitrary one. This is safe: all deletes that may
        # match its nulls or NaN are in `wide`, and overlap everything. If the interval overlaps that of another delete,
        # the pair is merely not excluded here.
        empty = self.file_low > self.file_high
        return Intervals(
            np.where(empty, 0, self.file_low), np.where(empty, 0, self.file_high),
            np.where(wide, 0, self.delete_low), np.where(wide, END, self.delete_high),
        )  # fmt: skip


def equality_intervals(
    metadata: TableMetadata, files: EntryBatch, deletes: EntryBatch, column: int, used: Mask
) -> Intervals | None:
    """Return the intervals of one equality column; None if they cannot exclude any pair.

    Parameters
    ----------
    used
        Which deletes have the column among their equality columns. Pairs with other deletes are not
        excluded.
    """
    ours, theirs = files.stats.get(column), deletes.stats.get(column)
    if ours is None or theirs is None or not used.any():
        return None
    sides = [trusted(metadata, column, s) for s in (ours, theirs)]
    bounds = [pc.struct_field(s, name) for s in sides for name in ("lower", "upper")]
    bounds[1::2] = [_beyond(b) for b in bounds[1::2]]
    order = ranks(*bounds)
    if order is None:
        order = [np.full(len(b), -1, dtype=np.int64) for b in bounds]
    required = always_required(metadata, column)
    file_low, file_high, file_extra = _side(sides[0], order[0], order[1], required)
    delete_low, delete_high, delete_extra = _side(sides[1], order[2], order[3], required)
    return Intervals(file_low, file_high, delete_low, delete_high, file_extra, delete_extra, used)


def _side(stats: pa.StructArray, low: Ints, high: Ints, required: bool) -> tuple[Ints, Ints, Ints]:
    """Return the arrays ``low``, ``high`` and ``extra`` of `Intervals`, for either the data files or the deletes.

    Parameters
    ----------
    low, high
        Ranks of the bounds; -1 where a bound is unknown.
    required
        Whether the column can never be null, so that a missing null count means that there are no nulls.
    """
    # A lower bound without an upper one, or the reverse, proves nothing (as in Java). Nor do bounds in the wrong order.
    known = (low >= 0) & (high >= low)
    low, high = np.where(known, low, 0), np.where(known, high, END)
    values, nulls, nans = (pc.struct_field(stats, n) for n in ("value_count", "null_count", "nan_count"))
    floating = pa.types.is_floating(pc.struct_field(stats, "lower").type)
    extra = np.zeros(len(stats), dtype=np.int64)
    extra[bool_array(pc.greater(nulls, 0)) if required else ~bool_array(pc.equal(nulls, 0))] |= 1
    none = bool_array(pc.equal(nulls, values))
    if floating:
        extra[~bool_array(pc.equal(nans, 0))] |= 2
        none |= bool_array(pc.equal(pc.add(pc.fill_null(nulls, 0), nans), values))
    none &= bool_array(pc.greater(values, 0)) & (extra != 0)
    return np.where(none, END + 1, low), np.where(none, -1, high), extra


def trusted(metadata: TableMetadata, column: int, stats: pa.StructArray) -> pa.StructArray:
    """Return column metrics in which untrusted bounds are null.

    Bounds are not trusted if they are NaN or marked as not tight (V4), or if they may be truncated and are not marked
    as tight.
    """
    children: dict[str, AnyArray] = {f.name: pc.struct_field(stats, [i]) for i, f in enumerate(stats.type)}
    loose = bool_array(pc.invert(children["tight_bounds"]))
    sure = bool_array(children["tight_bounds"])
    for name in ("lower", "upper"):
        values = children[name]
        doubtful = loose | (cut_off(metadata, column, values) & ~sure)
        if pa.types.is_floating(values.type):
            doubtful = doubtful | bool_array(pc.is_nan(values))
        if doubtful.any():
            children[name] = pc.if_else(pa.array(doubtful), pa.scalar(None, values.type), values)
    return pa.StructArray.from_arrays(list(children.values()), fields=list(stats.type))


def reaching(stats: pa.StructArray) -> pa.StructArray:
    """Return metrics in which the upper bounds of texts and bytes also include all longer values that begin with them.

    A writer may have truncated a bound, to an unknown length, without incrementing it, and no delete may be missed
    because of that.
    """
    children: dict[str, AnyArray] = {f.name: pc.struct_field(stats, [i]) for i, f in enumerate(stats.type)}
    upper = children["upper"]
    if pa.types.is_string(upper.type):
        # The highest code point, four times: hardly any text that begins with the bound is above this.
        children["upper"] = pc.binary_join_element_wise(upper, "\U0010ffff" * 4, "")
    elif pa.types.is_binary(upper.type):
        children["upper"] = pc.binary_join_element_wise(upper, b"\xff" * 64, b"")
    else:
        return stats
    return pa.StructArray.from_arrays(list(children.values()), fields=list(stats.type))


def cut_off(metadata: TableMetadata, column: int | None, values: AnyArray) -> Mask:
    """Return which text or binary bounds may be truncated, judging by their length.

    Table properties and writers' defaults state the lengths to which bounds are truncated.
    """
    if pa.types.is_string(values.type):
        length = pc.utf8_length(values)
    elif pa.types.is_binary(values.type):
        known = None if column is None else metadata.all_fields().get(column)
        if known is not None and type_base(known[1].type) not in ("binary", "fixed", "string"):
            return np.zeros(len(values), dtype=bool)
        length = pc.binary_length(values)
    else:
        return np.zeros(len(values), dtype=bool)
    lengths = pa.array(sorted(_cuts(metadata, column)), pa.int64())
    return bool_array(pc.is_in(length.cast(pa.int64()), value_set=lengths))


def _cuts(metadata: TableMetadata, column: int | None) -> set[int]:
    """Return the lengths to which bounds may be truncated: the usual one, and those in the table's properties."""
    properties: Mapping[str, Any] = metadata.properties
    known = None if column is None else metadata.all_fields().get(column)
    modes = [properties.get(_METRICS + "default")]
    if known is not None:
        modes.append(properties.get(f"{_METRICS}column.{known[0]}"))
    out = {_USUAL_CUT}
    for mode in modes:
        number = str(mode or "").lower().removeprefix("truncate(").removesuffix(")")
        if number.isascii() and number.isdigit() and len(number) < 10:
            out.add(int(number))
    return out


def _beyond(upper: AnyArray) -> AnyArray:
    """Raise upper bounds of text or bytes so that they include longer values that begin with them.

    A writer may have truncated a bound without incrementing its last character. Text is converted to binary.
    """
    if pa.types.is_string(upper.type):
        # 0xff is above every byte of UTF-8.
        return pc.binary_join_element_wise(upper.cast(pa.binary()), b"\xff", b"")
    if pa.types.is_binary(upper.type):
        return pc.binary_join_element_wise(upper, b"\xff" * 64, b"")
    return upper
