"""Suggest a sort order, partition fields or metrics with which conditions on one column would skip more files.

If no change would help, explain why.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import compute as pc
from iceexplore.expressions import Expression, Predicate, predicates
from iceexplore.graph import percent
from iceexplore.manifests import EntryBatch, whole
from iceexplore.metadata import TableMetadata, Transform, parse_transform
from iceexplore.planning.advice._partitioning import candidates
from iceexplore.planning.advice._ranges import Wanted, wanted_of
from iceexplore.planning.advice._spread import Files, Mask, Reading, Shares, Spread, sorted_reading
from iceexplore.planning.advice._statistics import cut_bounds, missing_bounds
from iceexplore.planning.advice._suggestion import Suggestion, add_partition_field, amount, call, options, sort
from iceexplore.planning.evaluators._partition_values import partition_columns
from iceexplore.planning.model._tasks import FileTasks

__all__ = [
    "ColumnAdvice",
    "Scene",
    "column_advice",
    "distinct_by_bytes",
]

#: `distinct_by_bytes` estimates the number of distinct values of a column from its size in Parquet files, with these
#: constants. They were measured roughly on a few files: the page headers of a column chunk take ``_HEADERS`` bytes; a
#: dictionary compressed by zstd takes ``_SHORT`` bytes plus the share ``_DICTIONARY`` of its uncompressed size.
_HEADERS = 90.0
_SHORT = 40.0
_DICTIONARY = 0.17
#: `distinct_by_bytes` estimates the number of distinct values in a typical file. If the estimate is at least this
#: share of all values in the file, the function returns None: with so many distinct values, the exact number would
#: hardly change how many files a filter is estimated to read.
_MANY = 0.5


def distinct_by_statistics(metadata: TableMetadata, field_id: int) -> float | None:
    """Return a column's number of distinct values (``ndv``) according to the table's statistics files.

    If several files state it, the file of the newest snapshot is used. The files are compared by the times of their
    snapshots, because the metadata may list them in any order. The result is None if no file states the number.
    """
    ages = {s.snapshot_id: s.timestamp_ms for s in metadata.snapshots}
    for statistics in sorted(metadata.statistics, key=lambda s: ages.get(s.snapshot_id, -1), reverse=True):
        for blob in statistics.blob_metadata:
            text = (blob.properties or {}).get("ndv", "")
            if tuple(blob.fields) == (field_id,) and text.isascii() and text.isdigit() and len(text) < 19:
                return float(text) or None
    return None


def distinct_by_bytes(stats: pa.StructArray, spread: Spread) -> float | None:
    """Estimate a column's number of distinct values in the table from the column's size in bytes in the data files.

    The estimate assumes that a file stores each of its distinct values once, in a dictionary, and an index into the
    dictionary for each row. Files whose ranges of values overlap are assumed to have the same distinct values, and
    other files to have no value in common. The estimate uses only files whose metrics have the column's size, its
    number of values, and a lower and an upper bound that differ.

    Parameters
    ----------
    stats
        The column's metrics, one item per data file: see `EntryBatch.stats`.
    spread
        The column's bounds and share of nulls in the same files.

    Returns
    -------
    float or None
        None if there is no file with these metrics, or if at least half of the values in a typical file seem to be
        distinct (`_MANY`): with so many, the number would hardly change the advice. A typical file has the median of
        the column's sizes and of its numbers of values.
    """
    lower, upper, sizes, values = (pc.struct_field(stats, n) for n in ("lower", "upper", "column_size", "value_count"))
    there = pc.and_(pc.and_(pc.greater(sizes, 0), pc.greater(values, 0)), pc.not_equal(lower, upper))
    mask = pc.fill_null(there, False)
    if not pc.any(mask).as_py():
        return None
    bytes_ = np.asarray(sizes.filter(mask)).astype(np.float64)
    plain = np.asarray(mask).astype(np.bool_)
    rows = np.asarray(values.filter(mask)).astype(np.float64) * (1.0 - spread.nulls[plain])
    width = 8.0
    if pa.types.is_string(lower.type) or pa.types.is_binary(lower.type):
        width = 4.0 + float(pc.mean(pc.binary_length(lower.filter(mask))).as_py())
    size, count = float(np.median(bytes_)), max(1.0, float(np.median(rows)))
    low, high = 1.0, count
    for _ in range(50):  # bisect: with how many distinct values would the column take `size` bytes in a file?
        middle = (low + high) / 2
        dictionary = min(middle * width, _SHORT + middle * width * _DICTIONARY)
        if _HEADERS + dictionary + count * np.ceil(np.log2(max(2.0, middle))) / 8 <= size:
            low = middle
        else:
            high = middle
    if low >= _MANY * count:
        return None
    depth, _ = spread.depth()
    # `low` is the number of distinct values in one file. `depth` is the number of files whose bounds include a
    # value, on average. Assume that files with overlapping bounds have the same distinct values, and that files whose
    # bounds do not overlap have no value in common. Then the files with bounds form (number of files / depth) groups of
    # overlapping files, and each group adds `low` distinct values.
    return max(2.0, low * max(1.0, float(spread.known.sum()) / max(1.0, depth)))


#: Operators for which column metrics hardly ever prune files, with the reason.
_POWERLESS = {
    "!=": "a file is skipped only if every row has this one value",
    "not-in": "a file is skipped only if every row has one of these values",
    "not-null": "a file is skipped only if the column is null in every row",
    "not-nan": "a file is skipped only if the column is NaN in every row",
    "not-starts-with": "only files in which every value begins with the excluded prefix are skipped",
}
_EVEN = "values are spread evenly between the bounds of each file"
#: If at least this share of the rows matches the filter, a note states that a scan could not skip many files even if
#: the table were sorted by the column.
_NEARLY_ALL = 0.9


@dataclass(frozen=True)
class Scene:
    """The plan's data that advice is based on.

    Attributes
    ----------
    metadata
        The table's metadata.
    table
        The table's name.
    batch
        The entries of all live data files, with the metrics of the filter's columns.
    files
        The rows and bytes of each live data file, and an integer that identifies its partition (0, 1, …).
    left
        Mask of the live data files that remain after partition pruning.
    kept
        Mask of the live data files that remain after pruning by partitions and by column metrics.
    tasks
        The data files that the plan reads, with their deletes.
    now
        How many data files the plan reads, and their total size in bytes.
    """

    metadata: TableMetadata
    table: str
    batch: EntryBatch
    files: Files
    left: Mask
    kept: Mask
    tasks: FileTasks
    now: Reading


@dataclass
class ColumnAdvice:
    """Suggestions for one column.

    Attributes
    ----------
    suggestions
        All suggestions, including those that would save too little (`Suggestion.helps` is false).
    clustering
        The column's row in `Advice.clustering`; None if there is no row for this column.
    notes
        Sentences on changes that would not help, with the reasons.
    """

    suggestions: list[Suggestion] = field(default_factory=list)
    clustering: dict[str, Any] | None = None
    notes: list[str] = field(default_factory=list)


def column_advice(scene: Scene, field_id: int, expression: Expression) -> ColumnAdvice:
    """Suggest changes with which a filter's conditions on one column would skip more files.

    These changes are to write missing or longer bounds, to sort by the column, and to partition by it. If none would
    help, the result has notes with the reasons.

    Parameters
    ----------
    scene
        The plan's data that suggestions are based on.
    field_id
        The column's field id.
    expression
        The filter's conditions on the column, joined by AND.
    """
    out = ColumnAdvice()
    terms = list(predicates(expression))
    name = terms[0].name
    stats = scene.batch.stats.get(field_id)
    out.suggestions += missing_bounds(scene.table, name, stats, scene.batch, scene.left, scene.kept, scene.now)
    spread = None if stats is None else Spread.of(stats)
    if stats is None or spread is None:
        if not out.suggestions:
            out.notes.append(
                f"{name} ({terms[0].type}): no file has usable bounds of this column, so the effect of sorting or "
                "partitioning by it is not estimated"
            )
        return out
    out.suggestions += cut_bounds(scene.table, name, terms, stats, scene.batch, scene.kept, scene.now)
    wanted = wanted_of(expression, spread.axis)
    counted = pc.struct_field(stats, "null_count").null_count < len(stats)
    if wanted is None or (wanted.nulls and not counted):
        reason = (
            "tests for NaN use only NaN counts, not bounds"
            if wanted is None
            else "tests for null need null counts, which are missing"
        )
        out.notes.append(f"{name}: {reason}, so the effect of sorting or partitioning by this column is not estimated")
        return out
    distinct = distinct_by_statistics(scene.metadata, field_id)
    guessed = None if distinct else distinct_by_bytes(stats, spread)
    with np.errstate(over="ignore", invalid="ignore"):  # no warning if the difference of two bounds overflows
        _estimates(scene, out, terms[0], spread, wanted, distinct or guessed, guessed=guessed is not None)
    if any(s.helps for s in out.suggestions):
        return out
    if not out.notes:
        out.notes.append(
            f"{name}: the table is already partitioned by it, and rewriting the files of older partition specs would "
            "hardly reduce how many files a scan with this filter reads"
        )
    for p in terms:
        if p.op in _POWERLESS:
            out.notes.append(f"{p.text or p.op}: {_POWERLESS[p.op]}")
    return out


def _estimates(
    scene: Scene,
    out: ColumnAdvice,
    term: Predicate,
    spread: Spread,
    wanted: Wanted,
    distinct: float | None,
    *,
    guessed: bool,
) -> None:
    """Estimate how much sorting or partitioning by a column would help, and add the results to ``out``.

    These results are the column's row of `Advice.clustering`, suggestions, and notes on changes that would not help.

    Parameters
    ----------
    scene
        The plan's data that suggestions are based on.
    out
        The object to which the results are added.
    term
        One of the filter's predicates on the column; the column's name, field id and type are read from it.
    spread
        The column's bounds in all live data files.
    wanted
        The values of the column that the filter selects.
    distinct
        Number of distinct values of the column; None if unknown.
    guessed
        Whether ``distinct`` is an estimate (`distinct_by_bytes`).
    """
    name = term.name
    pool, own = scene.files.take(scene.left), spread.take(scene.left)
    depth, deepest = spread.depth()
    row = {"column": name, "files": len(scene.batch), "with_bounds": int(spread.known.sum()), "depth": depth,
           "deepest": deepest, "reads": _alone(own, pool, wanted), "sorted": None}  # fmt: skip
    out.clustering = row
    if not own.known.any():
        out.notes.append(f"{name}: no file that remains after partition pruning has bounds of this column")
        return
    shares = Shares(own, pool)
    ordered = sorted_reading(shares, wanted, distinct)
    row["sorted"] = ordered.files
    assumes = [_EVEN, "each partition keeps its number of files"]
    if shares.shuffled:
        assumes.append(
            "bounds do not show how values are distributed in a partition, because most of its files have about the "
            "same bounds: the result may differ from this estimate"
        )
    if wanted.points and spread.axis.step != 1:
        rare = (
            "each value of the column occurs in few rows"
            if distinct is None
            else f"about {distinct:,.0f} distinct values, equally frequent"
        )
        assumes.append(rare)
    have = _transforms(scene.metadata, term.field_id)
    if any(transform.is_identity for transform in have):
        if not _of_older_specs(scene):
            out.notes.append(f"{name}: the table is already partitioned by it")
    else:
        out.suggestions.append(
            Suggestion(
                "sort", f"sort by {name}",
                f"a value of {name} is in the ranges of {depth:,.1f} of {len(scene.batch):,} files on average, of "
                f"{deepest:,} at most. If the rows of each partition were sorted by {name}, a scan with this filter "
                f"would read {amount(ordered.files, 'file')} instead of {scene.now.files:,}.",
                scene.now, ordered, assumes="; ".join(assumes), column=name,
                statements=sort(scene.table, name, scene.files, ordered=_sorted_by(scene.metadata, term.field_id)),
            )
        )  # fmt: skip
        if not out.suggestions[-1].helps:
            out.notes.append(_no_order(name, shares, wanted, ordered, scene.now))
    out.suggestions += _partitioning(scene, term, spread, wanted, distinct, have, guessed=guessed)


def _partitioning(
    scene: Scene,
    term: Predicate,
    spread: Spread,
    wanted: Wanted,
    distinct: float | None,
    have: dict[Transform, str],
    *,
    guessed: bool,
) -> Iterator[Suggestion]:
    """Yield suggestions to add a partition field that is derived from the column of the predicate ``term``.

    A field is not suggested if the default spec already has it or a finer one (``hour`` is finer than ``day``). If the
    plan nevertheless reads files of older specs, rewriting these files is suggested instead.

    Parameters
    ----------
    scene, term, spread, wanted, distinct, guessed
        See `_estimates`.
    have
        The partition fields that the default spec derives from the column: the keys are their transforms, the values
        their names.
    """
    if term.type is None:
        return
    old = _of_older_specs(scene)
    for found in candidates(
        term.type, spread, scene.files, scene.left, wanted, distinct, () if old else have, guessed=guessed
    ):
        made = found.transform.to_sql(term.name)
        assumes = _EVEN + (f"; {found.assumes}" if found.assumes else "")
        if found.transform in have or any(there.refines(found.transform, term.type) for there in have):
            if old:
                yield Suggestion(
                    "old-spec", "rewrite files of older partition specs",
                    f"{old:,} of the {scene.now.files:,} files read were written before the table was partitioned by "
                    f"{made}.",
                    scene.now, found.after, assumes=assumes, column=term.name, statements=(
                        call("rewrite_data_files", scene.table, options=options(rewrite_all="true")),
                    ),
                )  # fmt: skip
            continue
        coarser = next((name for there, name in have.items() if found.transform.refines(there, term.type)), None)
        yield Suggestion(
            "partition", f"partition by {made}",
            f"if the table were partitioned by {made}, a scan with this filter would read "
            f"{amount(found.after.files, 'file')} instead of {scene.now.files:,}; the table would have about "
            f"{found.files:,} data files ({len(scene.batch):,} now).",
            scene.now, found.after, assumes=assumes, column=term.name,
            statements=add_partition_field(scene.table, term.name, found.transform, coarser),
        )  # fmt: skip


def _alone(spread: Spread, files: Files, wanted: Wanted) -> int:
    """Return how many files may hold a row that matches the filter's conditions on one column.

    The filter's conditions on other columns are ignored.

    Parameters
    ----------
    spread
        The column's bounds and share of nulls in each file.
    files
        The sizes of the same files.
    wanted
        The values of the column that the filter selects.
    """
    each = Shares(spread, files.apart())
    left = spread.nulls > 0 if wanted.nulls else np.zeros(len(files.rows), dtype=np.bool_)
    for span in wanted.spans:
        left = left | each.touched(span)
    return int(left.sum())


def _no_order(name: str, shares: Shares, wanted: Wanted, ordered: Reading, now: Reading) -> str:
    """Explain in a sentence why sorting by a column does not help.

    There are two possible reasons. Either nearly all rows match the conditions on the column, so that a scan could skip
    few files even after sorting. Or sorting would save too few files to be worth rewriting the table.

    Parameters
    ----------
    name
        The column's name.
    shares
        The distribution of the column's values in the files that remain after partition pruning.
    wanted
        The values of the column that the filter selects.
    ordered
        The number of files that the filter would read after sorting, and their bytes.
    now
        The number of files that it reads now, and their bytes.
    """
    part = shares.nulls if wanted.nulls else np.zeros(shares.files.groups)
    for span in wanted.spans:
        before, until = shares.around(span)
        part = part + (until - before) * (1.0 - shares.nulls)
    rows = shares.files.add(shares.files.rows)
    share = float((np.minimum(part, 1.0) * rows).sum() / max(1.0, rows.sum()))
    if share >= _NEARLY_ALL:
        return (
            f"{name}: about {percent(share)} of the rows match the conditions on this column, so few files could be "
            "skipped even if the table were sorted by it"
        )
    change = "no change" if ordered.files == now.files else f"{now.files:,} now"
    return f"sorting by {name} is not worth a rewrite: {amount(ordered.files, 'file')} would be read ({change})"


def _transforms(metadata: TableMetadata, field_id: int) -> dict[Transform, str]:
    """Return the partition fields of the default spec that are derived from one column.

    The keys of the result are the transforms of these fields, the values their names. For example, in a table that is
    partitioned by ``day(ts)``, the column ``ts`` has the key ``day``, and the value is ``ts_day``.

    Parameters
    ----------
    field_id
        The column's field id.
    """
    spec = metadata.spec()
    fields = [] if spec is None else partition_columns(metadata, spec)
    return {c.transform: c.field.name for c in fields if c.source is not None and c.source.field_id == field_id}


def _of_older_specs(scene: Scene) -> int:
    """Return how many of the data files that the plan reads have a partition spec other than the default spec."""
    numbers = np.asarray(pc.fill_null(whole(scene.tasks.files.entries["partition_spec_id"]), -1))
    return int((numbers != scene.metadata.default_spec_id).sum())


def _sorted_by(metadata: TableMetadata, field_id: int) -> bool:
    """Return whether the table's sort order begins with the column ``field_id`` itself, not a transform of it."""
    order = next((o for o in metadata.sort_orders if o.order_id == metadata.default_sort_order_id), None)
    return bool(order and order.fields and order.fields[0].source_ids[:1] == (field_id,)
                and parse_transform(order.fields[0].transform).is_identity)  # fmt: skip
