"""Find files that a filter cannot prune because bounds are missing or truncated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray
from iceexplore.arrow import compute as pc
from iceexplore.expressions import Predicate
from iceexplore.graph import amount, human_bytes, percent
from iceexplore.manifests import EntryBatch
from iceexplore.metadata import incremented
from iceexplore.planning.advice._axis import cut_length
from iceexplore.planning.advice._spread import Mask, Reading
from iceexplore.planning.advice._suggestion import Suggestion, call, options, set_property
from iceexplore.planning.model._groups import counted

__all__ = ["cut_bounds", "missing_bounds"]


def missing_bounds(
    table: str, column: str, stats: pa.StructArray | None, files: EntryBatch, left: Mask, kept: Mask, now: Reading
) -> Iterator[Suggestion]:
    """Suggest writing bounds for files that lack bounds of a column, so that filters can prune them.

    Yield nothing if the plan reads no such file. A file in which the column is null or NaN in every row does not count:
    it cannot have bounds. The saving is estimated from the files that remain after partition pruning and have bounds:
    the filter is assumed to prune the same share of the files without bounds, once bounds are written for them. If no
    remaining file has bounds, the saving is unknown.

    Parameters
    ----------
    table, column
        The names of the table and of the column.
    stats
        The column's metrics, one row for each of ``files``; None if no file has any.
    files
        All live data files.
    left, kept
        Masks of the files that remain after partition pruning, and of the files that the plan reads.
    now
        The number of data files that the plan reads, and their bytes.
    """
    count = len(files)
    if stats is None:
        known, empty = np.zeros(count, dtype=np.bool_), np.zeros(count, dtype=np.bool_)
    else:
        lower, upper, values, nulls, nans = (
            pc.struct_field(stats, n) for n in ("lower", "upper", "value_count", "null_count", "nan_count")
        )
        known = _mask(pc.and_(pc.is_valid(lower), pc.is_valid(upper)))
        # A file in which all values of the column are null or NaN has no bounds, whatever the table's metrics
        # properties are. So its bounds do not count as missing.
        empty = _mask(pc.equal(values, pc.add(nulls, pc.fill_null(nans, 0))))
    missing = left & ~known & ~empty
    hit = missing & kept
    if not hit.any():
        return
    sizes = counted(files, "file_size_in_bytes")
    pool = left & known
    share = float((pool & kept).sum()) / float(pool.sum()) if pool.any() else None
    gone, lost = int(hit.sum()), int(sizes[hit].sum())
    after = (
        None if share is None else Reading(now.files - round(gone * (1 - share)), now.bytes - round(lost * (1 - share)))
    )
    name = f"write.metadata.metrics.column.{column}"
    yield Suggestion(
        "metrics",
        f"write bounds of {column}",
        f"{gone:,} of the {now.files:,} files read ({human_bytes(lost)}) have no bounds of {column}: "
        "when they were written, the column's metrics mode was none or counts, or the writer wrote no bounds.",
        now,
        after,
        statements=(
            set_property(table, name, "truncate(16)"),
            call("rewrite_data_files", table, options=options(rewrite_all="true")),
        ),
        assumes=""
        if share is None
        else "bounds would prune the same share of these files as of the files that have bounds "
        f"({percent(1 - share)})",
        column=column,
    )


def cut_bounds(
    table: str,
    column: str,
    terms: Sequence[Predicate],
    stats: pa.StructArray,
    files: EntryBatch,
    kept: Mask,
    now: Reading,
) -> Iterator[Suggestion]:
    """Suggest writing full bounds of a string column if truncated bounds may be the reason why files are not pruned.

    For example, bounds are truncated to four characters, and the filter is ``name = 'abcdefgh'``. A file has the lower
    bound ``abcd``, which is also the beginning of ``abcdefgh``. So the bound does not show whether the lowest value in
    the file is below or above ``abcdefgh``. The full bound might exclude the file.

    Yield one suggestion, which counts the files that have such a bound; or nothing if there are none.

    Parameters
    ----------
    table, column
        The names of the table and of the column.
    terms
        The filter's predicates on the column.
    stats
        The column's metrics, one row for each of ``files``.
    files
        All live data files.
    kept
        Mask of the files that the plan reads.
    now
        The number of data files that the plan reads, and their bytes.
    """
    lower, upper = (pc.struct_field(stats, n) for n in ("lower", "upper"))
    if not pa.types.is_string(lower.type):
        return
    longest = cut_length(lower)
    if longest is None:
        return
    hit = np.zeros(len(files), dtype=np.bool_)
    for p in terms:
        for literal in p.literals if p.op in ("=", "in", "starts-with", "<", "<=", ">", ">=") else ():
            if not isinstance(literal, str) or len(literal) <= longest:
                continue
            head = literal[:longest]
            # Find the files with a bound that truncation made useless for the literal in the filter. `head` is the
            # literal, truncated like the bounds: ``abcd`` for ``abcdefgh``. If the lowest value in a file begins with
            # `head`, its lower bound is `head`. If the highest value begins with `head` and is longer, its upper bound
            # is `head` with the last character incremented: ``abce``. Neither bound shows whether this lowest or
            # highest value is below or above the literal.
            hit |= _mask(pc.equal(lower, head))
            following = incremented(head)
            if following is not None:
                hit |= _mask(pc.equal(upper, following))
    hit &= kept
    if not hit.any():
        return
    sizes = counted(files, "file_size_in_bytes")
    gone, lost = int(hit.sum()), int(sizes[hit].sum())
    yield Suggestion(
        "bounds",
        f"write full bounds of {column}",
        f"bounds of {column} are truncated to {longest} characters, but the filter has longer values: "
        f"in {amount(gone, 'file')} ({human_bytes(lost)}), the lowest or highest value may begin with the same "
        f"{longest} characters as a value in the filter, so the truncated bound cannot exclude the file.",
        now,
        Reading(now.files - gone, now.bytes - lost),
        basis="at most",
        statements=(
            set_property(table, f"write.metadata.metrics.column.{column}", "full"),
            call("rewrite_data_files", table, options=options(rewrite_all="true")),
        ),
        assumes="none of these files holds a matching value",
        column=column,
    )


def _mask(values: AnyArray) -> Mask:
    """Convert booleans to a numpy mask; null becomes False."""
    return np.asarray(pc.fill_null(values, False).to_numpy(zero_copy_only=False)).astype(np.bool_)
