"""Check the sizes of data files, their deletes, and how bytes are distributed over partitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.doctor.examination._examination import Examination
from iceexplore.doctor.health._finding import DOCTOR, OPEN_COST, PROPERTY, Waste, health_finding
from iceexplore.doctor.maintenance._plan import DEFAULT, Threshold
from iceexplore.doctor.maintenance._rewrite_data_files import RewriteDataFilesPlan
from iceexplore.doctor.maintenance._size_based import Longs
from iceexplore.doctor.model._finding import Finding
from iceexplore.doctor.model._hits import Hits
from iceexplore.graph import amount, human_bytes, percent
from iceexplore.manifests import whole
from iceexplore.planning import (
    FileTasks,
    Stretches,
    content_sizes,
    counted,
    known_deleted_rows,
    partition_codes,
    partition_texts,
)

__all__ = [
    "FEW_PARTITIONS",
    "SKEW",
    "check_delete_files",
    "check_delete_ratio",
    "check_equality_deletes",
    "check_skew",
    "check_small_files",
]

#: A data file is reported if at least this many position delete files apply to it. The number is the default of
#: ``min-input-files``: ``rewrite_position_delete_files`` needs this many delete files to merge them (Java:
#: ``SizeBasedFileRewritePlanner.MIN_INPUT_FILES_DEFAULT``).
_MIN_INPUT_FILES = 5
#: A partition is disproportionately large if it has this many times the bytes of the median partition.
SKEW = 10
#: If a table has fewer partitions than this, they are not compared with the median partition: the median of so few
#: sizes means little.
FEW_PARTITIONS = 4


def check_small_files(examination: Examination, plan: RewriteDataFilesPlan[Any]) -> Iterator[Finding]:
    """Check for groups of small files that ``rewrite_data_files`` would combine into fewer files."""
    files, added = (np.asarray(plan.groups[name]) for name in ("files", "added_files"))
    because = plan.groups["why"]
    by_size = pc.or_(pc.match_substring(because, "number of files"), pc.match_substring(because, "bytes"))
    chosen = np.asarray(by_size) & (added < files)  # leaves out groups of large files that would be split
    before, after = int(files[chosen].sum()), int(added[chosen].sum())
    if not before:
        return
    waste = Waste(examination)
    limits = [_limit(plan, name) for name in ("min-input-files", "min-file-size-bytes", "target-file-size-bytes")]
    text = (
        f"{before:,} of {amount(len(plan.tasks), 'data file')} are small, and their partitions have enough "
        f"small files for rewrite_data_files to combine them, into about {after:,}."
    )
    yield health_finding(
        examination,
        "files-small",
        _root(examination),
        text,
        field="104 file_size_in_bytes",
        found=f"{amount(before, 'file')} below {human_bytes(int(limits[1].value))}",
        thresholds=limits,
        severity=waste.severity((before - after) * waste.open_cost),
        waste=waste,
        count=before,
        hits=_hits(examination, plan.tasks, plan.rows(chosen)),
    )


def check_delete_ratio(examination: Examination, plan: RewriteDataFilesPlan[Any]) -> Iterator[Finding]:
    """Check for data files with so many deleted rows that ``rewrite_data_files`` would rewrite them."""
    tasks = plan.tasks
    rows, sizes = (counted(tasks.files, name) for name in ("record_count", "file_size_in_bytes"))
    deleted = known_deleted_rows(tasks)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(rows > 0, deleted / np.maximum(rows, 1), 0.0)
    limit = _limit(plan, "delete-ratio-threshold")
    hit = np.flatnonzero((deleted > 0) & (share >= float(limit.value)))
    waste = Waste(examination)
    dead = float((sizes * share)[hit].sum())
    if dead < waste.open_cost:
        return  # the deleted rows have fewer bytes than opening one file costs: too few for a rewrite to pay off
    text = (
        f"Deletes remove {int(deleted[hit].sum()):,} of the {int(rows[hit].sum()):,} rows of "
        f"{amount(len(hit), 'data file')}: readers read these rows and discard them."
    )
    yield health_finding(
        examination,
        "delete-ratio-high",
        _place(tasks, hit),
        text,
        field="103 record_count",
        found=f"up to {percent(share[hit].max())} of a file's rows",
        thresholds=(limit,),
        severity=waste.severity(dead),
        waste=waste,
        count=len(hit),
        places=_places(tasks, hit),
        hits=_hits(examination, tasks, hit),
    )


def check_delete_files(examination: Examination, plan: RewriteDataFilesPlan[Any]) -> Iterator[Finding]:
    """Check for data files to which many position delete files apply; a data file has at most one deletion vector."""
    tasks = plan.tasks
    count = Stretches.of(tasks.matched.positions).size
    hit = np.flatnonzero(count >= _MIN_INPUT_FILES)
    if not len(hit):
        return
    waste = Waste(examination)
    text = (
        f"{_MIN_INPUT_FILES} position delete files or more apply to each of {amount(len(hit), 'data file')}: readers "
        "open all of them."
    )
    yield health_finding(
        examination,
        "delete-files-many",
        _place(tasks, hit),
        text,
        found=f"up to {int(count.max()):,} for one data file, {count.mean():.1f} on average",
        thresholds=(Threshold("min-input-files", str(_MIN_INPUT_FILES), DEFAULT),),
        severity=waste.severity(float((count[hit] - 1).sum()) * waste.open_cost),
        waste=waste,
        count=len(hit),
        places=_places(tasks, hit),
        hits=_hits(examination, tasks, hit),
    )


def check_equality_deletes(examination: Examination, plan: RewriteDataFilesPlan[Any]) -> Iterator[Finding]:
    """Check whether scans spend more on equality deletes than rewriting the data files to which they apply would cost.

    Both costs are counted in bytes. A scan reads an equality delete file again for each data file to which it applies.
    A rewrite reads and writes each of these data files once. Every file counts as at least
    ``read.split.open-file-cost`` bytes.
    """
    tasks = plan.tasks
    equality = Stretches.of(tasks.matched.equality)
    hit = np.flatnonzero(equality.size > 0)
    if not len(hit):
        return
    waste = Waste(examination)
    read = int(equality.totals(np.maximum(content_sizes(tasks.matched.deletes), waste.open_cost)).sum())
    sizes = np.maximum(counted(tasks.files, "file_size_in_bytes"), waste.open_cost)
    rewrite = 2 * int(sizes[hit].sum())  # a rewrite reads and writes each of these data files once
    if read <= rewrite:
        return
    source = PROPERTY if OPEN_COST in examination.state.metadata.properties else DEFAULT
    text = (
        f"Equality deletes cost each scan {human_bytes(read)}: each delete file is read again for every data file to "
        f"which its deletes apply. Rewriting the {amount(len(hit), 'data file')} once costs "
        f"{human_bytes(rewrite)}."
    )
    yield health_finding(
        examination,
        "equality-deletes-costly",
        _place(tasks, hit),
        text,
        field="134 content",
        found=f"{human_bytes(read)} per scan",
        thresholds=(
            Threshold("cost of the rewrite", str(rewrite), DOCTOR, human_bytes(rewrite)),
            Threshold(OPEN_COST, str(waste.open_cost), source, human_bytes(waste.open_cost)),
        ),
        severity=waste.severity(read),
        waste=waste,
        count=len(hit),
        places=_places(tasks, hit),
        hits=_hits(examination, tasks, hit),
    )


def check_skew(examination: Examination, plan: RewriteDataFilesPlan[Any]) -> Iterator[Finding]:
    """Check for partitions with far more bytes than most others."""
    tasks = plan.tasks
    codes = partition_codes(tasks.files)
    weights = counted(tasks.files, "file_size_in_bytes").astype(np.float64)
    sizes = np.bincount(codes, weights=weights)
    if len(sizes) < FEW_PARTITIONS:
        return
    middle = float(np.median(sizes))
    # A partition smaller than one read task is not reported, however small the others are.
    large = np.flatnonzero((sizes > SKEW * middle) & (sizes >= Waste(examination).task))
    if not len(large):
        return
    largest = int(sizes.argmax())
    first = np.flatnonzero(codes == largest)[:1]
    name = build.to_pylist(partition_texts(examination.state, tasks.take(build.array(first)).files))[0]
    times = sizes[largest] / max(middle, 1.0)
    text = (
        f"{amount(len(large), 'partition')} of {len(sizes):,} {'has' if len(large) == 1 else 'have'} more than {SKEW} "
        f"times the bytes of the median partition; the largest is {name}. Writers, and joins on the partition columns, "
        "wait for the largest partition."
    )
    yield health_finding(
        examination,
        "partition-skew",
        _place(tasks, first),
        text,
        field="102 partition",
        found=f"{human_bytes(int(sizes[largest]))}, {times:,.0f} times the median ({human_bytes(int(middle))})",
        thresholds=(Threshold("largest partition / median", str(SKEW), DOCTOR),),
        count=len(large),
        hits=_hits(examination, tasks, np.flatnonzero(np.isin(codes, large))),
    )


def _limit(plan: RewriteDataFilesPlan[Any], name: str) -> Threshold:
    return next(r for r in plan.reasons if r.name == name)


def _root(examination: Examination) -> str:
    snapshot = examination.state.snapshot
    assert snapshot is not None  # `check_health` runs these checks only if there is a snapshot
    return examination.roots[snapshot.snapshot_id].location


def _hits(examination: Examination, tasks: FileTasks, rows: Longs) -> Hits:
    """Return where some data files are listed: the locations of their manifests, and the positions of their entries.

    Parameters
    ----------
    rows
        The indices of the data files in ``tasks``.
    """
    snapshot = examination.state.snapshot
    assert snapshot is not None  # `check_health` runs these checks only if there is a snapshot
    root = examination.roots[snapshot.snapshot_id]
    of = np.asarray(pc.fill_null(tasks.root_row, -1))[rows]
    ordinals = np.asarray(whole(tasks.files.entries["ordinal"]))[rows]
    numbers = np.unique(of).tolist()
    names = [root.location if number < 0 else root.entries["location"][number].as_py() for number in numbers]
    pairs = zip(numbers, names, strict=True)
    return Hits(entries=tuple((name, ordinals[of == number]) for number, name in pairs))


def _place(tasks: FileTasks, rows: Longs) -> str:
    return _places(tasks, rows)[0]


def _places(tasks: FileTasks, rows: Longs) -> list[str]:
    names = whole(tasks.files.entries["location"]).take(build.array(rows[:10]))
    return [str(name) for name in build.to_pylist(pc.fill_null(names, "a data file without a location"))]
