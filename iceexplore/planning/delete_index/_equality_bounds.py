"""Compare metrics of equality columns, to find equality deletes that certainly match no row of a data file."""

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

#: A number above every rank. The ends of an interval (`Intervals`) are not bounds, but the ranks of bounds: their
#: positions if the bounds of all data files and deletes are sorted together. If the bounds of a file or a delete are
#: unknown, its interval goes from 0 to `END`, so that it includes every rank.
END = 1 << 31
#: The length to which writers truncate string and binary bounds by default (``write.metadata.metrics.default`` is
#: ``truncate(16)``).
_USUAL_CUT = 16
_METRICS = "write.metadata.metrics."


@dataclass(frozen=True, eq=False)
class Intervals:
    """Intervals from the lower to the upper bound of one column: one for each data file and one for each delete.

    If the interval of a data file and that of a delete do not overlap, the delete cannot match a row of the file, apart
    from rows in which the column is null or NaN. The ends of an interval are ranks, not values: all bounds of the data
    files and of the deletes are sorted together, and the lowest has rank 0.

    Attributes
    ----------
    file_low, file_high, delete_low, delete_high
        The ends of the intervals, both included. If the bounds are unknown, the interval goes from 0 to ``1 << 31``
        (`END`), so that it overlaps every interval that is not empty. If all values are certainly null or NaN, the
        interval is empty: its low end is `END` + 1, and its high end is -1.
    file_extra, delete_extra
        Whether the column may contain nulls or NaN: 1 for nulls, 2 for NaN, 3 for both, otherwise 0. A null in a delete
        matches a null in a data file, and NaN matches NaN. Both arrays are None if nulls and NaN need not be compared,
        as for ``file_path``.
    used
        One boolean per delete: whether the column is one of its equality columns. If this is false, the column cannot
        exclude the delete. None if it is true for all deletes.
    """

    file_low: Ints
    file_high: Ints
    delete_low: Ints
    delete_high: Ints
    file_extra: Ints | None = None
    delete_extra: Ints | None = None
    used: Mask | None = field(default=None)

    def apart(self, files: Ints, deletes: Ints) -> Mask:
        """Return which pairs of a data file and a delete certainly have no value of the column in common.

        The result is a mask with one boolean per pair. It is false if the column is not one of the delete's equality
        columns, because its values then do not matter for the delete.

        Parameters
        ----------
        files, deletes
            The pairs: pair ``i`` is the data file with the index ``files[i]`` in `file_low`, and the delete with the
            index ``deletes[i]`` in `delete_low`. Both arrays have the same length.
        """
        out: Mask = self.file_low[files] > self.delete_high[deletes]
        out |= self.delete_low[deletes] > self.file_high[files]
        if self.file_extra is not None and self.delete_extra is not None:
            out &= (self.file_extra[files] & self.delete_extra[deletes]) == 0
        if self.used is not None:
            out &= self.used[deletes]
        return out

    def widened(self) -> Intervals:
        """Return wider intervals, which can be compared by their ends alone.

        The ends of an interval are integers from 0 to `END`, in the same order as the values that they represent. In
        the result, the attributes that add conditions to the comparison of the ends (`file_extra`, `delete_extra` and
        `used`) are None. So that no match is missed, two kinds of deletes get the widest interval, 0 to `END`: those
        that may match a null or NaN of some data file, and those for which the column is not an equality column. A data
        file that has only nulls and NaN has an empty interval. It becomes 0 to 0, so that it overlaps the widest one.

        If the new intervals of a file and a delete do not overlap, the two certainly have no value in common. If they
        overlap, the two may still have no value in common. To find out, call `apart` on the old intervals.

        If one of the three attributes is already None, the old intervals are returned unchanged.
        """
        if self.file_extra is None or self.delete_extra is None or self.used is None:
            return self
        shared = int(np.bitwise_or.reduce(self.file_extra)) if len(self.file_extra) else 0
        wide = ~self.used | ((self.delete_extra & shared) != 0)
        # If a data file has only nulls and NaN, its interval is empty. Replace it by 0 to 0: an empty interval overlaps
        # no other, but some deletes may apply to the file. These are the deletes that do not compare this column, and
        # those that may match a null or NaN of some data file. Such deletes (mask `wide`) get the interval 0 to `END`,
        # which overlaps 0 to 0.
        empty = self.file_low > self.file_high
        return Intervals(
            np.where(empty, 0, self.file_low), np.where(empty, 0, self.file_high),
            np.where(wide, 0, self.delete_low), np.where(wide, END, self.delete_high),
        )  # fmt: skip


def equality_intervals(
    metadata: TableMetadata, files: EntryBatch, deletes: EntryBatch, column: int, used: Mask
) -> Intervals | None:
    """Return, for one column, the interval from the lower to the upper bound in each data file and in each delete.

    If the interval of a data file and that of a delete do not overlap, the delete cannot match a row of the file, apart
    from nulls and NaN: see `Intervals`. Bounds that may be truncated count as unknown: see `trusted`. Return None if
    the column cannot exclude any delete. This is so if the data files or the deletes have no metrics of the column, or
    if no delete has it as an equality column.

    Parameters
    ----------
    files, deletes
        The entries of the data files and of the deletes, with their column metrics.
    column
        The column's field id.
    used
        One boolean per delete: whether the column is one of its equality columns.
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
    """Return the intervals of one column in all data files, or in all deletes, and whether nulls or NaN may occur.

    An interval goes from the rank of the lower bound to the rank of the upper bound. If one of the two is unknown, it
    goes from 0 to `END`. It is empty if all values are certainly null or NaN.

    The result is three arrays: the lower ends, the upper ends, and numbers that tell whether nulls or NaN may occur (1
    for nulls, 2 for NaN, 3 for both, otherwise 0). For data files, they become `Intervals.file_low`,
    `Intervals.file_high` and `Intervals.file_extra`; for deletes, the corresponding attributes, such as
    `Intervals.delete_low`.

    Parameters
    ----------
    stats
        The column's metrics: one row per data file, or one row per delete.
    low, high
        Ranks of the lower and of the upper bounds in ``stats``; -1 where a bound is unknown.
    required
        Whether the column can never be null, so that a missing null count means that there are no nulls.
    """
    # If only one of the two bounds is known, it is not used, as in Java. Nor are bounds in the wrong order.
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
    """Return the metrics ``stats`` of a column, with null in place of each bound that may not be exact.

    A bound is exact if it is the lowest or the highest value in the file. A truncated bound is not trusted, because
    some writers truncate an upper bound without incrementing it, so that it is below the highest value. Lower bounds
    are treated in the same way. A bound is replaced by null in these cases:

    - It is NaN, which is not a valid bound.
    - The metrics have the field ``tight_bounds`` (V4), and it is false.
    - It may be truncated: it has a length to which writers truncate bounds, such as 16 characters (see `cut_off`), and
      ``tight_bounds`` is not true.
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
    """Raise each upper bound of a string or binary column above the longer values that begin with the bound.

    Some writers truncate an upper bound without incrementing its last character. For example, the highest value in a
    delete file is ``abcdef``, but the upper bound is ``abcd``. Because ``abcdef`` is above ``abcd``, a filter for
    ``abcdef`` would wrongly exclude the delete file. So U+10FFFF, the highest code point, is appended four times to
    ``abcd``, and the raised bound is above ``abcdef``. To a binary bound, 64 bytes of 0xff are appended instead. A
    value that begins with the old bound is above the raised one only if it continues with all these characters or
    bytes, and then with more. This is very unlikely.

    Parameters
    ----------
    stats
        The metrics of one column. They are returned unchanged if the column has another type.
    """
    children: dict[str, AnyArray] = {f.name: pc.struct_field(stats, [i]) for i, f in enumerate(stats.type)}
    upper = children["upper"]
    if pa.types.is_string(upper.type):
        # The upper bound may have been truncated without being incremented. Then longer texts that begin with it may
        # occur. To raise the bound above them, append U+10FFFF, the highest code point, four times. Such a text is
        # above the raised bound only if it continues with four U+10FFFF and then more characters, which is very
        # unlikely.
        children["upper"] = pc.binary_join_element_wise(upper, "\U0010ffff" * 4, "")
    elif pa.types.is_binary(upper.type):
        children["upper"] = pc.binary_join_element_wise(upper, b"\xff" * 64, b"")
    else:
        return stats
    return pa.StructArray.from_arrays(list(children.values()), fields=list(stats.type))


def cut_off(metadata: TableMetadata, column: int | None, values: AnyArray) -> Mask:
    """Return a mask of the bounds of a column: True for those that may be truncated, judging by their length.

    A string or binary bound may be truncated if it has one of the lengths to which writers truncate bounds: see
    `_cuts`. Bounds of other types are never truncated.

    Parameters
    ----------
    column
        The column's field id; None for the bounds of ``file_path``.
    values
        Lower or upper bounds of the column.
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
    """Return the lengths to which writers may have truncated the bounds of a column.

    One is Iceberg's default, 16. Two table properties may set others: ``write.metadata.metrics.default`` for all
    columns, and ``write.metadata.metrics.column.NAME`` for the column NAME. If the value of such a property is
    ``truncate(n)``, the result includes ``n``.

    ``column`` is the column's field id. It is None for the column ``file_path`` of position delete files; then only the
    first property is read.
    """
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
    """Raise each upper bound of a string or binary column above the longer values that begin with the bound.

    This is needed because a writer may have truncated a bound without incrementing its last character.

    A string bound is converted to binary, and one byte, 0xff, is appended. One is enough, because UTF-8 does not
    contain this byte. A binary value may contain it, so 64 bytes of 0xff are appended to a binary bound. A value is
    above the raised bound only if it continues with all of these and then with more, which is very unlikely. Bounds of
    other types are not changed.
    """
    if pa.types.is_string(upper.type):
        # If a writer truncated the bound without incrementing its last character, it may be below the column's highest
        # value. With one byte 0xff appended, it is above all texts that begin with it, because UTF-8 does not contain
        # this byte. So it is above all values of the column.
        return pc.binary_join_element_wise(upper.cast(pa.binary()), b"\xff", b"")
    if pa.types.is_binary(upper.type):
        return pc.binary_join_element_wise(upper, b"\xff" * 64, b"")
    return upper
