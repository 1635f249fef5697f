"""Suggest maintenance after which scans would read less.

The suggestions are to compact small files, to rewrite deletes, and to rewrite manifests so that the files of a
partition are listed in few manifests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from iceexplore.arrow import compute as pc
from iceexplore.graph import human_bytes, percent
from iceexplore.manifests import whole
from iceexplore.planning.advice._spread import Reading
from iceexplore.planning.advice._suggestion import Suggestion, amount, call, options
from iceexplore.planning.distribution._table_distribution import deleted_rows, small_limit
from iceexplore.planning.model._groups import counted, partition_codes
from iceexplore.planning.model._tasks import FileTasks

__all__ = ["deletes", "scattered_manifests", "small_files"]

#: Compacting the small files of a partition is suggested only if the plan reads at least this many of them. This is the
#: default of ``min-input-files`` of Iceberg's ``rewrite_data_files`` (Java: ``MIN_INPUT_FILES_DEFAULT``).
_MIN_INPUT_FILES = 5
#: Rewriting the data files that have deletes is suggested if position deletes and deletion vectors remove at least this
#: share of the rows in these files. If equality deletes apply to any of the files, it is always suggested. Java applies
#: the same threshold, but to each data file by itself (``DELETE_RATIO_THRESHOLD_DEFAULT``).
_DELETED = 0.3


def small_files(table: str, properties: Mapping[str, str], tasks: FileTasks) -> Iterator[Suggestion]:
    """Suggest compacting small files if the plan reads at least five of them in one partition.

    A file is small if it has less than 75 % of the table's target file size. Five files and 75 % are defaults of
    Iceberg's ``rewrite_data_files`` (``min-input-files`` and ``min-file-size-bytes``). There is no suggestion if
    compaction would not lower the number of files.

    Parameters
    ----------
    table
        The table's name, for the SQL statement.
    properties
        The table's properties, of which one sets the target file size (``write.target-file-size-bytes``).
    tasks
        The data files that the plan reads.
    """
    sizes = counted(tasks.files, "file_size_in_bytes")
    limit = small_limit(properties)
    small = sizes < limit
    codes = partition_codes(tasks.files)
    counts = np.bincount(codes[small], minlength=int(codes.max(initial=-1)) + 1)
    held = np.bincount(codes[small], weights=sizes[small], minlength=len(counts))
    worth = counts >= _MIN_INPUT_FILES
    fewer = int((counts - np.maximum(1, np.ceil(held / max(1.0, limit / 0.75))))[worth].sum())
    if fewer <= 0:
        return
    total = int(sizes.sum())
    many = int(counts[worth].sum())
    yield Suggestion(
        "small-files",
        "compact small files",
        f"{many:,} of the {len(tasks):,} files read are smaller than {human_bytes(limit)} and can be "
        f"compacted. They are in {amount(int(worth.sum()), 'partition')}. Partitions with fewer than "
        f"{_MIN_INPUT_FILES} small files (the default min-input-files of rewrite_data_files) and their files are not "
        "included in these numbers.",
        Reading(len(tasks), total),
        Reading(len(tasks) - fewer, total),
        statements=(call("rewrite_data_files", table),),
        assumes="the total size of rewritten files stays the same",
    )


def deletes(table: str, vectors: bool, tasks: FileTasks) -> Iterator[Suggestion]:
    """Suggest rewriting data files or position delete files, so that scans have fewer deletes to read and apply.

    Rewriting data files is suggested if any equality delete applies to a data file of the plan, or if deletes remove at
    least 30 % of the rows of the data files that have deletes (`_DELETED`). This is Iceberg's default threshold:
    ``rewrite_data_files`` rewrites a file if deletes remove at least this share of its rows. Otherwise, if the plan has
    several position delete files, rewriting them is suggested, provided that the plan would then have fewer delete
    files and deletion vectors in all.

    Parameters
    ----------
    table
        The table's name, for the SQL statement.
    vectors
        Whether rewriting turns position delete files into deletion vectors. It does from format version 3 on.
    tasks
        The data files that the plan reads, with their deletes.
    """
    entries = tasks.matched.deletes.entries
    if not len(entries):
        return
    vector = whole(entries["deletion_vector"])
    own = pc.coalesce(pc.struct_field(vector, "size_in_bytes"), whole(entries["file_size_in_bytes"]), 0)
    size, count = int(pc.sum(own).as_py() or 0), len(entries)
    gone, touched = deleted_rows(tasks)
    rows, bytes_ = (counted(tasks.files, name) for name in ("record_count", "file_size_in_bytes"))
    dead = float((bytes_ * np.minimum(gone / np.maximum(rows, 1), 1.0)).sum())
    equality = pc.sum(pc.equal(entries["content_type"], 2)).as_py() or 0
    share = float(gone.sum()) / max(1.0, float(rows[touched].sum()))
    data = Reading(len(tasks), int(bytes_.sum()))
    one = count == 1
    applies, removes = ("applies", "removes") if one else ("apply", "remove")
    files = f"{int(touched.sum()):,} of the {len(tasks):,} files read"
    why = f"{amount(count, 'delete')} ({human_bytes(size)}) {applies} to {files}"
    why += f" and {removes} {gone.sum():,.0f} of their rows ({percent(share, 1)})." if gone.any() else "."
    if equality:
        are = "is an equality delete" if equality == 1 else "are equality deletes"
        which = "It" if one else f"{equality:,} of them"
        why += f" {which} {are}, which must be compared with every row."
    before = Reading(data.files + count, data.bytes + size)
    positions = int(pc.sum(pc.is_null(pc.struct_field(vector, "size_in_bytes"))).as_py() or 0) - equality
    if equality or share >= _DELETED:
        yield Suggestion(
            "deletes",
            "rewrite data files that have deletes",
            why,
            before,
            Reading(data.files, round(data.bytes - dead)),
            unit="data and delete files",
            statements=(call("rewrite_data_files", table, options=options(delete_file_threshold=1)),),
            assumes="bytes are proportional to rows; a row that two delete files remove counts as two rows"
            + (
                "; the bytes of rows that equality deletes remove are unknown, so the estimate still includes them"
                if equality
                else ""
            ),
        )
    elif positions > 1:
        merged = int(touched.sum()) if vectors else len(np.unique(partition_codes(tasks.files)[touched]))
        if merged < count:
            yield Suggestion(
                "deletes",
                "rewrite position deletes",
                why,
                before,
                Reading(data.files + merged, data.bytes + size),
                unit="data and delete files",
                statements=(call("rewrite_position_delete_files", table),),
                assumes="the rewrite leaves one "
                + ("deletion vector per data file" if vectors else "delete file per partition"),
            )


def scattered_manifests(
    table: str, read: int, hold: int, length: int, total: int, files: int, all_files: int, *, prunes: bool
) -> Iterator[Suggestion]:
    """Suggest clustering manifests by partition if the files to read are scattered over many manifests.

    Let n be the number of manifests that would be needed to list only the files to read, with the table's average
    number of files per manifest. Clustering is suggested if the plan reads at least 2n + 2 manifests: reading only n
    would then save more than half of the manifests, and at least three.

    Parameters
    ----------
    table
        The table's name, for the SQL statement.
    read
        Number of manifests that the plan reads.
    hold
        Number of these manifests that have at least one data file that the plan reads.
    length
        Total size in bytes of the manifests that the plan reads.
    total
        Number of live data manifests in the manifest list or V4 root manifest. For an incremental plan, which has one
        of these for each planned snapshot: the number of data manifests that the planned snapshots added.
    files
        Number of data files that the plan reads, without those that a V4 root manifest lists itself.
    all_files
        Number of live data files of the table (for an incremental plan, of data files that the planned snapshots
        added), without those that a V4 root manifest lists itself.
    prunes
        Whether partition pruning excludes any data file; if not, clustering manifests does not help.
    """
    if not prunes or not files or all_files <= 0 or not total:
        return
    needed = max(1, int(np.ceil(files / (all_files / total))))
    if read < 2 * needed + 2:
        return
    yield Suggestion(
        "manifests",
        "cluster manifests by partition",
        f"{read:,} of {total:,} manifests are read ({human_bytes(length)}), and {hold:,} of them list the "
        f"{files:,} files to read. {amount(needed, 'manifest')} would be enough to list these files.",
        Reading(read, length),
        Reading(needed, round(length * needed / read)),
        unit="manifests",
        statements=(call("rewrite_manifests", table),),
        assumes="the rewrite keeps the number of manifests, and puts all files of a partition into the same manifest",
    )
