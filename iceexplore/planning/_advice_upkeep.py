"""What neglect costs a scan: statistics that are missing or cut, small files, deletes, scattered manifests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.graph import human_bytes
from iceexplore.manifests import EntryBatch, whole
from iceexplore.planning._advice_spread import Reading
from iceexplore.planning._advice_sql import call, options, set_property
from iceexplore.planning._expression import Predicate
from iceexplore.planning._layout_groups import partition_codes
from iceexplore.planning._table_layout import deleted_rows, small_limit
from iceexplore.planning._tasks import FileTasks

__all__ = [
    "Kind",
    "Suggestion",
    "amount",
    "cut_bounds",
    "deletes",
    "missing_bounds",
    "scattered_manifests",
    "small_files",
]

Kind: TypeAlias = Literal[
    "bounds", "deletes", "filter", "manifests", "metrics", "old-spec", "partition", "small-files", "sort"
]
Mask: TypeAlias = npt.NDArray[np.bool_]

#: ``rewrite_data_files`` leaves fewer small files alone (Java: ``MIN_INPUT_FILES_DEFAULT``).
_MIN_INPUT_FILES = 5
#: The share of rows deleted from which rewriting the data is worth more than rewriting the deletes
#: (Java: ``DELETE_RATIO_THRESHOLD_DEFAULT``).
_DELETED = 0.3
#: Bounds of fewer characters are hardly cut: ``write.metadata.metrics.default`` is ``truncate(16)``.
_SHORTEST_CUT = 4


@dataclass(frozen=True)
class Suggestion:
    """One thing that would help.

    Attributes
    ----------
    kind
        ``sort``, ``partition``, ``old-spec``, ``metrics``, ``bounds``, ``small-files``, ``deletes``, ``manifests``, or
        ``filter`` for what only another filter can change.
    title, why
        A phrase; and sentences with the numbers behind it.
    unit
        What is counted: ``data files``, ``delete files`` or ``manifests``.
    before, after
        What the plan reads now, and would read; None where nothing can be said.
    basis
        ``estimate``, ``at most`` (a limit that the gain does not pass), or ``exact``.
    statements
        SQL for Spark, to be read before it is run.
    assumes
        What the estimate takes for granted.
    column
        The filter's column that it is about.
    """

    kind: Kind
    title: str
    why: str
    before: Reading | None = None
    after: Reading | None = None
    unit: str = "data files"
    basis: Literal["estimate", "at most", "exact"] = "estimate"
    statements: tuple[str, ...] = ()
    assumes: str = ""
    column: str | None = None

    @property
    def files_saved(self) -> int:
        """Fewer files to open; 0 where nothing can be said."""
        return 0 if self.before is None or self.after is None else self.before.files - self.after.files

    @property
    def bytes_saved(self) -> int:
        """Fewer bytes to read; 0 where nothing can be said."""
        return 0 if self.before is None or self.after is None else self.before.bytes - self.after.bytes

    @property
    def helps(self) -> bool:
        """Whether it saves more than the files that it adds would cost to open; true where nothing can be said."""
        return self.before is None or self.after is None or self.after.cost < self.before.cost


def missing_bounds(
    table: str, column: str, stats: pa.StructArray | None, files: EntryBatch, left: Mask, kept: Mask, now: Reading
) -> Iterator[Suggestion]:
    """Files of which nobody wrote bounds of a column: no filter on it prunes them.

    Parameters
    ----------
    left, kept
        The files that partition fields leave of the filter, and those that are read.
    """
    count = len(files)
    if stats is None:
        known, empty = np.zeros(count, dtype=np.bool_), np.zeros(count, dtype=np.bool_)
    else:
        lower, upper, values, nulls = (
            pc.struct_field(stats, n) for n in ("lower", "upper", "value_count", "null_count")
        )
        known = _mask(pc.and_(pc.is_valid(lower), pc.is_valid(upper)))
        empty = _mask(pc.equal(values, nulls))  # nothing but nulls has no bounds
    missing = left & ~known & ~empty
    hit = missing & kept
    if not hit.any():
        return
    sizes = np.asarray(pc.fill_null(whole(files.entries["file_size_in_bytes"]), 0)).astype(np.int64)
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
        "their metrics mode was none or counts, or their writer keeps none.",
        now,
        after,
        statements=(
            set_property(table, name, "truncate(16)"),
            call("rewrite_data_files", table, options=options(rewrite_all="true")),
        ),
        assumes="" if share is None else f"bounds would prune these files as they prune the others ({1 - share:.0%})",
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
    """Text bounds that were cut (``truncate(16)``) where the literal goes on: neighbours look the same."""
    lower, upper = (pc.struct_field(stats, n) for n in ("lower", "upper"))
    if not pa.types.is_string(lower.type):
        return
    lengths = pc.utf8_length(lower)
    longest = pc.max(lengths).as_py()
    full = pc.sum(pc.equal(lengths, longest)).as_py() or 0
    if longest is None or longest < _SHORTEST_CUT or full * 2 < len(lower) - lower.null_count:
        return
    hit = np.zeros(len(files), dtype=np.bool_)
    for p in terms:
        for literal in p.literals if p.op in ("=", "in", "starts-with", "<", "<=", ">", ">=") else ():
            if not isinstance(literal, str) or len(literal) <= longest:
                continue
            head = literal[:longest]
            following = head[:-1] + chr(min(ord(head[-1]) + 1, 0x10FFFF)) if ord(head[-1]) != 0xD7FF else head
            hit |= _mask(pc.or_kleene(pc.equal(lower, head), pc.equal(upper, following)))
    hit &= kept
    if not hit.any():
        return
    sizes = np.asarray(pc.fill_null(whole(files.entries["file_size_in_bytes"]), 0)).astype(np.int64)
    gone, lost = int(hit.sum()), int(sizes[hit].sum())
    yield Suggestion(
        "bounds",
        f"keep whole bounds of {column}",
        f"bounds of {column} are cut after {longest} characters, and what is compared goes on: {gone:,} files "
        f"({human_bytes(lost)}) have a bound that begins with the same {longest} characters.",
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


def small_files(table: str, properties: Any, tasks: FileTasks) -> Iterator[Suggestion]:
    """Files below the size that ``rewrite_data_files`` calls small, in partitions that have five or more."""
    sizes = np.asarray(pc.fill_null(whole(tasks.files.entries["file_size_in_bytes"]), 0)).astype(np.int64)
    limit = small_limit(properties)
    small = sizes < limit
    codes = partition_codes(tasks.files)
    counts = np.bincount(codes[small], minlength=int(codes.max(initial=-1)) + 1)
    held = np.bincount(codes[small], weights=sizes[small], minlength=len(counts))
    worth = counts >= _MIN_INPUT_FILES
    fewer = int((counts - np.maximum(1, np.ceil(held / (limit / 0.75))))[worth].sum())
    if fewer <= 0:
        return
    total = int(sizes.sum())
    many = int(counts[worth].sum())
    yield Suggestion(
        "small-files",
        "compact small files",
        f"{many:,} of the {len(tasks):,} files read are smaller than {human_bytes(limit)}, in "
        f"{amount(int(worth.sum()), 'partition')} with {_MIN_INPUT_FILES} of them or more.",
        Reading(len(tasks), total),
        Reading(len(tasks) - fewer, total),
        statements=(call("rewrite_data_files", table),),
        assumes="rewritten files are as large together as the old ones",
    )


def deletes(table: str, format_version: int, tasks: FileTasks) -> Iterator[Suggestion]:
    """Deletes that every scan has to read and apply."""
    entries = tasks.matched.deletes.entries
    if not len(entries):
        return
    vector = whole(entries["deletion_vector"])
    own = pc.coalesce(pc.struct_field(vector, "size_in_bytes"), whole(entries["file_size_in_bytes"]), 0)
    size, count = int(pc.sum(own).as_py() or 0), len(entries)
    gone, touched = deleted_rows(tasks)
    rows, bytes_ = (
        np.asarray(pc.fill_null(whole(tasks.files.entries[n]), 0)).astype(np.float64)
        for n in ("record_count", "file_size_in_bytes")
    )
    dead = float((bytes_ * np.minimum(gone / np.maximum(rows, 1), 1.0)).sum())
    equality = pc.sum(pc.equal(entries["content_type"], 2)).as_py() or 0
    share = float(gone.sum()) / max(1.0, float(rows[touched].sum()))
    data = Reading(len(tasks), int(bytes_.sum()))
    said = f"{count:,} deletes ({human_bytes(size)}) apply to {int(touched.sum()):,} of the {len(tasks):,} files read"
    said += f" and remove {gone.sum():,.0f} of their rows ({share:.1%})." if gone.any() else "."
    if equality:
        said += f" {equality:,} of them are equality deletes, which have to be compared with every row."
    before = Reading(data.files + count, data.bytes + size)
    positions = int(pc.sum(pc.is_null(pc.struct_field(vector, "size_in_bytes"))).as_py() or 0) - equality
    if equality or share >= _DELETED:
        yield Suggestion(
            "deletes",
            "rewrite data files with deletes",
            said,
            before,
            Reading(data.files, round(data.bytes - dead)),
            unit="data and delete files",
            statements=(call("rewrite_data_files", table, options=options(delete_file_threshold=1)),),
            assumes="bytes go with rows; a position that two delete files name counts twice"
            + ("; rows that equality deletes remove are not counted" if equality else ""),
        )
    elif positions > 1:
        merged = int(touched.sum()) if format_version >= 3 else len(np.unique(partition_codes(tasks.files)[touched]))
        if merged < count:
            yield Suggestion(
                "deletes",
                "rewrite position deletes",
                said,
                before,
                Reading(data.files + merged, data.bytes + size),
                unit="data and delete files",
                statements=(call("rewrite_position_delete_files", table),),
                assumes="one deletion vector a data file" if format_version >= 3 else "one delete file a partition",
            )


def scattered_manifests(
    table: str, read: int, hold: int, length: int, total: int, files: int, all_files: int, *, prunes: bool
) -> Iterator[Suggestion]:
    """Manifests that are read for few files each.

    Parameters
    ----------
    read, hold, length
        Manifests read, those of them that hold a file that is read, and the bytes of all that are read.
    total
        Manifests of data files in the root.
    files, all_files
        Data files read, and those of the table, in manifests.
    prunes
        Whether the filter says anything of partitions: if not, no order of the manifests helps.
    """
    if not prunes or not files or all_files <= 0 or not total:
        return
    needed = max(1, int(np.ceil(files / (all_files / total))))
    if read < 2 * needed + 2:
        return
    yield Suggestion(
        "manifests",
        "cluster manifests by partition",
        f"{read:,} of {total:,} manifests are read ({human_bytes(length)}), {hold:,} of them hold one of the {files:,} "
        f"files: as many would fit in {needed:,}.",
        Reading(read, length),
        Reading(needed, round(length * needed / read)),
        unit="manifests",
        statements=(call("rewrite_manifests", table),),
        assumes="manifests stay as many; files of one partition stand together",
    )


def amount(count: int, one: str) -> str:
    """``1 file``, ``2 files``."""
    return f"{count:,} {one}" if count == 1 else f"{count:,} {one}s"


def _mask(values: pa.Array) -> Mask:
    return np.asarray(pc.fill_null(values, False).to_numpy(zero_copy_only=False)).astype(np.bool_)
