"""Check for columns without bounds, and for files that are not sorted or whose ranges overlap."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.doctor.examination._examination import Examination
from iceexplore.doctor.health._finding import DOCTOR, PROPERTY, Waste, health_finding
from iceexplore.doctor.maintenance._files import strict
from iceexplore.doctor.maintenance._plan import DEFAULT, Threshold
from iceexplore.doctor.maintenance._size_based import Longs
from iceexplore.doctor.model._finding import Finding
from iceexplore.doctor.model._hits import Hits
from iceexplore.graph import amount
from iceexplore.manifests import ContentType, EntryBatch, bool_array, concat_batches, live, whole
from iceexplore.metadata import parse_transform
from iceexplore.planning import counted, plan_scan
from iceexplore.writing import StatColumn, default_order, stat_columns

__all__ = ["DEPTH", "check_bounds", "check_sort_order"]

_DEFAULT_MODE = "write.metadata.metrics.default"
_COLUMN_MODE = "write.metadata.metrics.column."
_INFERRED = "write.metadata.metrics.max-inferred-column-defaults"
#: The ranges of a column in data files overlap too much if a filter for one value has to read at least this many files
#: on average. Reading two is normal: even in a sorted table, adjacent files may share a boundary value. Iceberg has no
#: limit for this. The number is the minimum number of files that ``rewrite_data_files`` rewrites together (Java:
#: ``MIN_INPUT_FILES_DEFAULT``).
DEPTH = 5
_SHOWN = 10


def check_bounds(examination: Examination) -> Iterator[Finding]:
    """Yield a finding for each reason why columns have no bounds in any data file."""
    state = examination.state
    metrics, metadata = examination.metrics, state.metadata
    if not metrics.files:
        return
    spec = metadata.spec()
    partitioned = {
        i for f in (spec.fields if spec else ()) if parse_transform(f.transform).is_identity for i in f.source_ids
    }
    why: dict[tuple[str, Threshold], list[str]] = defaultdict(list)
    for column in stat_columns(metadata, metadata.schema()):
        number = column.field.field_id
        if column.repeated or number in partitioned or metrics.bounded[number]:
            continue  # elements of lists and maps have no bounds; columns with an identity partition need none
        reason = _reason(metadata.properties, column, bool(metrics.valued[number]), bool(metrics.bare))
        if reason is not None:
            why[reason].append(".".join(column.path))
    for (reason_text, limit), names in why.items():
        shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else "")
        text = (
            f"No data file has bounds of {amount(len(names), 'column')} ({shown}): {reason_text}. Filters on "
            f"{'it' if len(names) == 1 else 'them'} read every file."
        )
        yield health_finding(
            examination,
            "bounds-off",
            state.metadata_location,
            text,
            field="125 lower_bounds",
            found=f"0 of {amount(metrics.files, 'data file')}",
            thresholds=(limit,),
            count=len(names),
            places=[f"{state.metadata_location}#column {name}" for name in names[:_SHOWN]],
        )


def _reason(properties: object, column: StatColumn, valued: bool, bare: bool) -> tuple[str, Threshold] | None:
    """Return why no data file has bounds of a column, and the table property, or its default, that is responsible.

    The property is one of those that set the column's metrics mode, such as ``write.metadata.metrics.default``.

    Return None if the column needs no bounds: its metrics mode asks for bounds, but every file has metrics, and none of
    these shows a value of the column that is neither null nor NaN.

    Parameters
    ----------
    properties
        The table properties.
    valued
        Whether the metrics of any data file show values of the column that are neither null nor NaN.
    bare
        Whether any data file has rows, but no metrics of any column.
    """
    given = dict(properties) if isinstance(properties, dict) else {}
    name = _COLUMN_MODE + ".".join(column.path)
    if column.mode in ("none", "counts"):
        if name in given:
            limit = Threshold(name, given[name], PROPERTY)
        elif _DEFAULT_MODE in given:
            limit = Threshold(_DEFAULT_MODE, given[_DEFAULT_MODE], PROPERTY)
        else:
            limit = Threshold(_INFERRED, given.get(_INFERRED, "100"), PROPERTY if _INFERRED in given else DEFAULT)
        return f"the metrics mode is {column.mode}, because of {limit.name}", limit
    mode = f"{column.mode}({column.length})" if column.length else column.mode
    source = PROPERTY if name in given or _DEFAULT_MODE in given else DEFAULT
    limit = Threshold(name if name in given else _DEFAULT_MODE, mode, source)
    if not column.bounded:
        return f"writers record no bounds for columns of type {column.type}", limit
    if valued or bare:
        return "the writer of the files recorded none, although the metrics mode asks for them", limit
    return None


def check_sort_order(examination: Examination) -> Iterator[Finding]:
    """Check whether data files are sorted by the table's sort order.

    Yield a finding if the ``sort_order_id`` of any data file is not that of the table's sort order. Yield another one
    if a filter for one value of the first sort column would have to read many files: `DEPTH` or more on average. This
    second check is made only if the first sort field has one column and a transform that preserves order.
    """
    state = examination.state
    order = default_order(state.metadata)
    if order is None or state.snapshot is None:
        return
    current = state.snapshot.snapshot_id
    batch = concat_batches(
        EntryBatch.of(leaf, ()).filter(
            pc.and_(
                live(leaf.entries),
                pc.equal(pc.fill_null(leaf.entries["content_type"], int(ContentType.DATA)), int(ContentType.DATA)),
            )
        )
        for leaf, of in examination.leaves()
        if current in of
    )
    if not len(batch):
        return
    setting = Threshold("default-sort-order-id", str(order.order_id), "table metadata")
    other = ~bool_array(pc.fill_null(pc.equal(batch.entries["sort_order_id"], order.order_id), False))
    if other.any():
        yield _unsorted(examination, batch, np.flatnonzero(other), setting)
    first = order.fields[0]
    if len(first.source_ids) != 1 or not parse_transform(first.transform).preserves_order:
        return
    column = state.metadata.schema().by_id().get(first.source_ids[0])
    if column is not None:
        sizes = counted(batch, "file_size_in_bytes")
        yield from _overlap(examination, column[0], sizes, setting)


def _unsorted(examination: Examination, batch: EntryBatch, rows: Longs, setting: Threshold) -> Finding:
    number = batch.entries["sort_order_id"][int(rows[0])].as_py()
    text = (
        f"{len(rows):,} of {amount(len(batch), 'data file')} are not marked as sorted by the table's sort "
        f"order {setting.value}: engines cannot rely on the order of their rows."
    )
    names = list(map(str, build.to_pylist(batch.entries["location"].take(build.array(rows[:_SHOWN])))))
    return health_finding(
        examination,
        "files-unsorted",
        names[0],
        text,
        field="140 sort_order_id",
        found="none" if number is None else number,
        thresholds=(setting,),
        count=len(rows),
        places=names,
        hits=Hits(files=(whole(batch.entries["location"]).take(build.array(rows)),)),
    )


def _overlap(examination: Examination, name: str, sizes: Longs, setting: Threshold) -> Iterator[Finding]:
    """Yield a finding if a filter for one value of a column has to read `DEPTH` or more files on average.

    In a partitioned table, only files of the same partition are counted.

    Parameters
    ----------
    name
        The name of the column: the first one of the table's sort order.
    sizes
        The size of each data file of the snapshot, in bytes.
    setting
        The id of the table's sort order, as a threshold for the finding.
    """
    state = examination.state
    measured = build.to_pylist(plan_scan(strict(state)).clustering([name]).columns)
    if not measured or state.snapshot is None:
        return
    row = measured[0]
    mean, most = (row[f"partition_{how}_depth"] or row[f"{how}_depth"] for how in ("average", "max"))
    if mean < DEPTH:
        return
    waste = Waste(examination)
    within, each = (" within partitions", " per partition") if row["partition_average_depth"] else ("", "")
    text = (
        f"The table is sorted by {name}, but the ranges of {name} in its data files overlap{within}: a filter for "
        f"one value reads {mean:,.1f} files{each} on average, and {most:,} in the worst case."
    )
    yield health_finding(
        examination,
        "ranges-overlap",
        examination.roots[state.snapshot.snapshot_id].location,
        text,
        field="125 lower_bounds",
        found=f"depth {mean:,.1f}",
        thresholds=(Threshold("overlap depth", str(DEPTH), f"{DOCTOR}, like Iceberg's min-input-files"), setting),
        # The waste is the cost of all files but two that a filter for one value has to read. Reading two is normal:
        # even in a sorted table, adjacent files may share a boundary value.
        severity=waste.severity((mean - 2) * float(np.maximum(sizes, waste.open_cost).mean())),
        waste=waste,
        count=row["files"],
    )
