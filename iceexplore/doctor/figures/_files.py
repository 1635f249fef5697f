"""Figures of data files: their sizes, their deletes, and the partitions that they are in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.doctor.figures._delete_groups import DELETE_GROUPS, DeleteGroups
from iceexplore.doctor.figures._figure import FigureBar, HealthFigure, Shown
from iceexplore.doctor.health._files import FEW_PARTITIONS, SKEW
from iceexplore.doctor.maintenance._size_based import Mask, summed
from iceexplore.graph import TableState, amount, human_bytes, percent
from iceexplore.inspect import tuple_texts
from iceexplore.manifests import ContentType, EntryBatch, whole
from iceexplore.planning import (
    FileTasks,
    SplitOptions,
    counted,
    partition_codes,
    partition_texts,
    small_limit,
    target_size,
)

__all__ = ["deletes_figure", "partitions_figure", "sizes_figure"]

#: Java: ``SizeBasedFileRewritePlanner.MIN_INPUT_FILES_DEFAULT``: if a partition has fewer small files, they are
#: not rewritten.
_MIN_INPUT_FILES = 5
#: A bin of the histogram covers sizes from one power of two to the next, such as 1 to 2 MiB. If this would need more
#: bins than the number here, each bin covers two powers of two, such as 1 to 4 MiB.
_MOST_BINS = 16
_SHOWN_PARTITIONS = 10
_DATA = ("content", "=", "0")
_BYTES = "total_data_file_size_in_bytes"
_SORTED = Shown("partitions", largest=_BYTES)
#: The rows of the metadata table ``files`` for each kind of delete, by the name of the group of data files to which
#: deletes of this kind apply. Rows of deletion vectors have a ``content_offset``; rows of delete files have none.
_DELETES = {
    "with a deletion vector": Shown("files", (("content", "=", "1"), ("content_offset", "not null", ""))),
    "with position delete files": Shown("files", (("content", "=", "1"), ("content_offset", "null", ""))),
    "with equality delete files": Shown("files", (("content", "=", "2"),)),
}
#: The figure needs attention if one of these groups has any data file: files to which at least `MANY_DELETES` deletes
#: apply, and files of whose rows at least the share `DELETE_RATIO` is deleted.
_TO_LOOK_AT = (DELETE_GROUPS[5], DELETE_GROUPS[8])


def sizes_figure(state: TableState, tasks: FileTasks) -> HealthFigure:
    """Return the figure with a histogram of the data files' sizes, in which the target size is marked."""
    sizes = counted(tasks.files, "file_size_in_bytes")
    properties = state.metadata.properties
    target, limit = target_size(properties), small_limit(properties)
    if not len(sizes):
        return HealthFigure(key="sizes", title="Sizes of data files", verdict="There are no data files.")
    powers = np.frexp(np.maximum(sizes, 1).astype(np.float64))[1].astype(np.int64) - 1
    low, high = int(powers.min()), int(powers.max())
    step = 1 if high - low < _MOST_BINS else 2
    code = (powers - low) // step
    count = int(code.max()) + 1
    starts = [2 ** (low + step * i) for i in range(count)]
    # The bin that contains the target size is marked. If it lies outside the bins of the files, an empty bin is added.
    of_target = (target.bit_length() - 1 - low) // step
    if not 0 <= of_target < count:
        starts.append(2 ** (low + step * of_target) if low + step * of_target >= 0 else 1)
    order = np.argsort(starts, kind="stable")
    files = np.concatenate([np.bincount(code, minlength=count), np.zeros(len(starts) - count, np.int64)])[order]
    held = np.concatenate([summed(code, sizes, count), np.zeros(len(starts) - count, np.int64)])[order]
    starts = [starts[i] for i in order]
    ends = [2**step * s for s in starts]
    marked = [s <= target < e for s, e in zip(starts, ends, strict=True)]
    bars = [
        FigureBar(
            f"{_bound(s)} to {_bound(e)}",
            ((float(n), f"{n:,}"), (float(b), human_bytes(b))),
            f"target {human_bytes(target)}" if is_target else "",
            Shown("files", (_DATA, ("file_size_in_bytes", ">=", str(s)), ("file_size_in_bytes", "<", str(e))))
            if n
            else None,
        )
        for s, e, n, b, is_target in zip(starts, ends, files.tolist(), held.tolist(), marked, strict=True)
    ]
    small: Mask = sizes < limit
    many = int(small.sum())
    middle = int(np.median(sizes))
    if many:
        verdict = (
            f"{many:,} of {amount(len(sizes), 'data file')} {'is' if many == 1 else 'are'} smaller than "
            f"{human_bytes(limit)}, 75 % of the target of {human_bytes(target)}; the median is {human_bytes(middle)}."
        )
    else:
        verdict = (
            f"No data file is smaller than {human_bytes(limit)}, 75 % of the target of {human_bytes(target)}; the "
            f"median size of {amount(len(sizes), 'data file')} is {human_bytes(middle)}."
        )
    codes = partition_codes(tasks.files)
    # All files with another spec than the table's default spec are counted together here, as a single partition. Java's
    # planner of ``rewrite_data_files`` does the same: see `plan_rewrite_data_files`.
    specs = np.asarray(pc.fill_null(whole(tasks.files.entries["partition_spec_id"]), -1))
    codes[specs != state.metadata.default_spec_id] = len(codes)
    by_partition = np.unique(codes[small], return_counts=True)[1]
    return HealthFigure(
        key="sizes",
        title="Sizes of data files",
        verdict=verdict,
        attention=bool((by_partition >= _MIN_INPUT_FILES).any()),
        columns=("data files", "bytes"),
        bars=tuple(bars),
        rows=build.table({"from_bytes": starts, "to_bytes": ends, "files": files, "bytes": held, "target": marked}),
        show=Shown("files", (_DATA, ("file_size_in_bytes", "<", str(limit)))) if many else None,
    )


def _bound(size: int) -> str:
    return human_bytes(size).replace(".0 ", " ")


def deletes_figure(state: TableState, tasks: FileTasks) -> HealthFigure:
    """Return the figure with the number of data files that have deletes, by kind, and the share of deleted rows."""
    title = "Deletes that apply to data files"
    found = DeleteGroups.of(tasks)
    rows, gone, touched = found.rows, found.gone, found.touched
    if not touched.any():
        verdict = f"No deletes apply to the {amount(len(rows), 'data file')}." if len(rows) else "No data files."
        return HealthFigure(key="deletes", title=title, verdict=verdict)
    matched, masks = tasks.matched, found.masks
    groups = {name: mask for name, mask in masks.items() if mask.any() and name != DELETE_GROUPS[0]}
    on_entries = _on_entries(tasks)
    bars = tuple(
        FigureBar(
            name,
            (
                (float(mask.sum()), f"{int(mask.sum()):,}"),
                (float(rows[mask].sum()), f"{int(rows[mask].sum()):,}"),
                (float(gone[mask].sum()), f"{_rounded(gone[mask].sum()):,}"),
            ),
            # The bar links to the file map, a picture of the data files, which shows the files of the group. A metadata
            # table cannot show only these files: none has a column with the deletes that apply to a data file. In a
            # saved page, bars do not link to the file map. A bar for one kind of delete then links to the deletes of
            # this kind in the table ``files``.
            show=Shown("map", of=name, instead=None if on_entries else _DELETES.get(name)),
        )
        for name, mask in groups.items()
    )
    total, lost = int(rows.sum()), _rounded(gone.sum())
    shared = bool((pc.is_null(matched.referenced)).true_count and masks["with position delete files"].any())
    notes = []
    if shared:
        notes.append("Rows that one delete file removes from several data files are divided evenly among these files.")
    unknown = bool(masks["with equality delete files"].any())
    if unknown:
        notes.append(
            "Rows that equality deletes remove are not counted: the metadata does not state how many there are."
        )
    removed = "an unknown number of rows" if unknown and not lost else f"{lost:,} of {total:,} rows"
    ratio = lost / max(1, total)
    part = f" ({percent(ratio)})" if ratio >= 0.01 else " (less than 1 %)" if lost else ""
    many = int(touched.sum())
    verdict = (
        f"{amount(len(matched.deletes), 'delete')} {'applies' if len(matched.deletes) == 1 else 'apply'} to {many:,} "
        f"of {amount(len(rows), 'data file')}, and {'removes' if len(matched.deletes) == 1 else 'remove'} {removed}"
        f"{part}."
    )
    table = {
        "data_files": list(groups),
        "files": [int(mask.sum()) for mask in groups.values()],
        "rows": [int(rows[mask].sum()) for mask in groups.values()],
        "deleted_rows": [float(gone[mask].sum()) for mask in groups.values()],
    }
    return HealthFigure(
        key="deletes",
        title=title,
        verdict=verdict,
        attention=any(masks[name].any() for name in _TO_LOOK_AT),
        columns=("data files", "rows", "deleted rows"),
        bars=bars,
        rows=build.table(table),
        show=Shown("map", of=DELETE_GROUPS[0]) if on_entries else Shown("files", (("content", "!=", "0"),)),
        notes=tuple(notes),
    )


def _on_entries(tasks: FileTasks) -> bool:
    """Return whether all deletes are V4 deletion vectors, which are stored in the entries of their data files.

    The metadata table ``files`` has no rows for such deletion vectors, so the figure has none to link to.
    """
    content = whole(tasks.matched.deletes.entries["content_type"])
    return bool(pc.all(pc.equal(content, int(ContentType.DATA)), min_count=0).as_py())


def _rounded(value: np.float64 | float) -> int:
    return round(float(value))


def partitions_figure(state: TableState, tasks: FileTasks) -> HealthFigure:
    """Return the figure of the partitions with the most bytes, compared with the median partition."""
    title = "Partitions"
    if all(spec.is_unpartitioned for spec in state.metadata.partition_specs):
        return HealthFigure(key="partitions", title=title, verdict="The table is not partitioned.")
    if not len(tasks):
        return HealthFigure(key="partitions", title=title, verdict="There are no data files.")
    codes = partition_codes(tasks.files)
    count = int(codes.max()) + 1
    sizes, rows = (summed(codes, counted(tasks.files, name), count) for name in ("file_size_in_bytes", "record_count"))
    files = np.bincount(codes, minlength=count).astype(np.int64)
    first = np.full(count, -1, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    order = np.argsort(-sizes, kind="stable")
    examples = tasks.take(build.array(first[order])).files
    specs = whole(examples.entries["partition_spec_id"])
    table = build.table(
        {
            "partition": partition_texts(state, examples),
            "spec_id": specs,
            "files": files[order],
            "rows": rows[order],
            "bytes": sizes[order],
        }
    )
    shown = build.to_pylist(table.slice(0, _SHOWN_PARTITIONS))
    bars = tuple(
        FigureBar(
            str(one["partition"]),
            ((float(one["bytes"]), human_bytes(one["bytes"])), (float(one["files"]), f"{one['files']:,}")),
            show=Shown("partitions", where, instead=_SORTED),
        )
        for one, where in zip(shown, _conditions(state, examples, table), strict=True)
    )
    middle = float(np.median(sizes))
    largest = int(sizes.max())
    name = shown[0]["partition"]
    if count == 1:
        verdict = f"All data files are in one partition, {name}."
    else:
        times = largest / max(middle, 1.0)
        verdict = (
            f"The largest of {count:,} partitions, {name}, has {_times(times)} the bytes of the median partition "
            f"({human_bytes(largest)} and {human_bytes(int(middle))})."
        )
    options = SplitOptions.of(state.metadata.properties)
    skewed = count >= FEW_PARTITIONS and largest > SKEW * middle and largest >= options.size
    least = max(int(SKEW * middle) + 1, options.size)
    show = replace(_SORTED, where=((_BYTES, ">=", str(least)),)) if skewed else _SORTED
    left = count - len(shown)
    notes = (f"Not drawn: {amount(left, 'smaller partition')}.",) if left else ()
    return HealthFigure(
        key="partitions",
        title=title,
        verdict=verdict,
        attention=skewed,
        columns=("bytes", "data files"),
        bars=bars,
        rows=table,
        show=show,
        notes=notes,
    )


def _conditions(state: TableState, files: EntryBatch, table: pa.Table) -> Iterator[tuple[tuple[str, str, str], ...]]:
    """Yield conditions for each of the largest partitions, which select its row in the metadata table ``partitions``.

    A condition is a column, an operator and a value, as in `Shown.where`: for example, ``("partition", "null", "")``.
    At most `_SHOWN_PARTITIONS` partitions have conditions.

    Parameters
    ----------
    files
        One data file of each partition, in the order of ``table``.
    table
        A row for each partition, with its size in the column ``bytes``; the largest partition comes first.
    """
    texts = tuple_texts(files.partition, whole(files.entries["partition_spec_id"]), state.metadata)
    # A displayed metadata table compares texts without regard to case. So a condition for the partition ``city=Rome``
    # would also select ``city=ROME``. If there are such partitions, a second condition compares the size in bytes.
    lower = pc.utf8_lower(texts)
    for row in range(min(len(texts), _SHOWN_PARTITIONS)):
        text = texts[row].as_py()
        here = ("partition", "null", "") if text is None else ("partition", "=", f'"{text}"')
        alike = lower.null_count if text is None else pc.sum(pc.equal(lower, lower[row])).as_py()
        yield (here,) if alike == 1 else (here, (_BYTES, "=", str(table["bytes"][row].as_py())))


def _times(factor: float) -> str:
    return f"{factor:,.0f} times" if factor >= 10 else f"{factor:,.1f} times"
