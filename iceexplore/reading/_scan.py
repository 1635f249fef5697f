"""Read a scan into one table: data files are read in parallel and returned in the order of the plan."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.errors import (
    FormatError,
    IceexploreError,
    MemoryLimitError,
    OptionError,
    OutsideRootsError,
    Problems,
    warn_caller,
    whole_number,
)
from iceexplore.expressions import FilterLike
from iceexplore.graph import TableState, live_manifests, to_frame
from iceexplore.manifests import ContentType
from iceexplore.planning import FileTasks, Filter, ScanPlan, doubts_of, plan_scan
from iceexplore.reading._outside import outside_error
from iceexplore.reading._tasks import FileRows, TaskReader, few_rows, outputs_of
from iceexplore.reading.columns._wanted import LAST_UPDATED, ROW_ID
from iceexplore.storage import DATA_RATIO, FLOOR, Budget, is_local, memory_limit, progress

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "DATA_MANIFESTS",
    "Doubts",
    "OnError",
    "checked_on_error",
    "file_rows",
    "head",
    "planned",
    "row_stream",
    "some_manifests",
    "to_arrow",
]

OnError = Literal["raise", "skip"]

#: Files up to this size are read completely, in threads; larger ones one by one, in batches.
_SMALL_BYTES = 32 << 20
_SMALL_ROWS = 1 << 20
#: Limit for the total size of files that are read ahead; a minimum number of files is always allowed.
_AHEAD_BYTES = 128 << 20
_ALWAYS_AHEAD = 4
#: Smaller parts of the result are combined up to this size; combining all rows at the end would take twice the memory.
_PART_ROWS = 1 << 16
DATA_MANIFESTS = frozenset({int(ContentType.DATA_MANIFEST)})
_DELETE_MANIFESTS = frozenset({int(ContentType.DELETE_MANIFEST)})
_ROW_COUNTS = ("added_rows_count", "existing_rows_count")
_LEAST_SHARE = 8 << 20
_LINEAGE = frozenset({ROW_ID.field_id, LAST_UPDATED.field_id})
_ADVICE = "on_error='skip' leaves out what cannot be read"


def checked_on_error(on_error: str) -> OnError:
    """Return a valid ``on_error``.

    Raises
    ------
    OptionError
        It is neither ``"raise"`` nor ``"skip"``.
    """
    if on_error == "raise":
        return "raise"
    if on_error == "skip":
        return "skip"
    raise OptionError(f"on_error={on_error!r}: choose 'raise' or 'skip'")


class Doubts:
    """Warns of reasons why rows may be wrong, before and after they are read; each kind of reason only once.

    Parameters
    ----------
    lineage
        Whether row ids are read.
    """

    def __init__(self, *, lineage: bool = False) -> None:
        self._lineage = lineage
        self._warned: set[object] = set()

    def warn(self, plan: ScanPlan) -> None:
        """Warn of problems found since the last call: in the metadata and, once files have been read, in the files."""
        for kind, text in doubts_of(plan, lineage=self._lineage).items():
            if kind not in self._warned:
                self._warned.add(kind)
                warn_caller(text)


def planned(
    state: TableState,
    where: FilterLike | Filter | None,
    partition: Mapping[str, Any] | None,
    on_error: OnError,
    doubts: Doubts,
    root_rows: Collection[int] | None = None,
) -> ScanPlan:
    """Plan a scan whose rows will be read.

    Parameters
    ----------
    doubts
        Warns of contradictions in the metadata (an error with a strict table).
    root_rows
        Plan only these manifests of the root.

    Raises
    ------
    FormatError
        Manifests cannot be read, so that rows would be missing, or deleted rows would reappear. With ``"skip"``, this
        is a warning.
    """
    plan = plan_scan(state, where, partition=partition, root_rows=root_rows)
    if plan.notes and on_error == "raise":
        location = state.metadata_location if state.snapshot is None else state.snapshot.root_location
        refused = [p.text for p in state.problems if p.code == "outside-roots"]  # each text says which allow= is needed
        raise FormatError(f"{'; '.join([*plan.notes, *refused[:1]])} ({_ADVICE})", location=location)
    for note in plan.notes:
        warn_caller(note)
    doubts.warn(plan)
    return plan


def to_arrow(
    state: TableState,
    where: FilterLike | Filter | None = None,
    columns: str | Iterable[str] | None = None,
    *,
    limit: int | None = None,
    partition: Mapping[str, Any] | None = None,
    on_error: str = "raise",
    max_bytes: int | None = None,
) -> pa.Table:
    """Return the rows of a table as Arrow; see `iceexplore.Table.to_arrow`."""
    limit = None if limit is None else min(whole_number("limit", limit), sys.maxsize)
    given = max_bytes is not None
    max_bytes = memory_limit() if max_bytes is None else whole_number("max_bytes", max_bytes)
    skip = checked_on_error(on_error)
    outputs = outputs_of(state, columns)
    found: list[pa.Table] = []
    rows = size = 0
    doubts = Doubts(lineage=any(o.field.field_id in _LINEAGE for o in outputs))
    for manifests in some_manifests(state, limit, filtered=where is not None or partition is not None):
        plan = planned(state, where, partition, skip, doubts, manifests)
        tasks = plan.files
        reader = TaskReader(state, tasks, outputs)
        if not found:
            found.append(reader.schema.empty_table())
        expansion = _Expansion(state, tasks)
        for order, parallel in _orders(reader, limit, rows):
            parts = file_rows(reader, order, parallel=parallel, on_error=skip, batch_rows=few_rows(limit))
            for row, part in parts:
                table = part.table if limit is None else part.table.slice(0, limit - rows)
                rows += table.num_rows
                size += table.nbytes
                if size > max_bytes:
                    more = "max_bytes=" if given else "max_bytes=, or iceexplore.memory_limit('8 GiB')"
                    raise MemoryLimitError(
                        f"the rows take more than {max_bytes:,} bytes of memory: read fewer columns or rows "
                        f"(columns=, filter, limit=), or allow more ({more})"
                    )
                if not given:
                    expansion.count(row, table.nbytes)
                if table.num_rows:
                    found.append(table)
                if rows == limit:
                    parts.close()
                    break
            if rows == limit:
                break
        doubts.warn(plan)
        if rows == limit:
            break
    if not outputs:
        return pa.table({"": pa.nulls(rows)}).select([])
    return _joined(found)


def row_stream(state: TableState) -> pa.RecordBatchReader:
    """Return a reader of the table's rows that reads batches as they are consumed; errors are those of `to_arrow`.

    Planning errors are raised at once. An unreadable file raises an error when its rows are consumed: one of Arrow or
    of the consumer, which quotes the original error.
    """
    doubts = Doubts()
    plan = planned(state, None, None, "raise", doubts)
    reader = TaskReader(state, plan.files, outputs_of(state, None))

    def batches() -> Iterator[pa.RecordBatch]:
        for _, part in file_rows(reader, range(len(plan)), parallel=True):
            yield from part.table.to_batches()
        doubts.warn(plan)

    return pa.RecordBatchReader.from_batches(reader.schema, batches())


def _orders(reader: TaskReader, limit: int | None, have: int) -> Iterator[tuple[range, bool]]:
    """Yield ranges of tasks to read in order, and whether to read ahead in threads.

    With a limit, the first files that have enough rows according to their entries are read ahead if they are remote;
    more follow one by one if deletes or a filter remove too many rows.
    """
    total = len(reader.tasks)
    if limit is None:
        yield range(total), True
        return
    if limit == have:
        return
    first = 0
    if not is_local(reader.state.storage.folder):
        counts = pc.fill_null(reader.tasks.files.entries["record_count"], 0).to_numpy()
        first = int(np.searchsorted(np.cumsum(np.maximum(counts, 0)), limit - have)) + 1
    if 1 < first <= total:
        yield range(first), True
        yield range(first, total), False
    else:
        yield range(total), False


def some_manifests(state: TableState, limit: int | None, *, filtered: bool) -> Iterator[list[int] | None]:
    """Yield groups of manifests to plan one after another until there are enough rows; None for all at once.

    If deletes may apply, all manifests are planned together, because matching needs every delete manifest.
    """
    root = None if limit is None else state.root()
    if root is None or limit is None or not root.dialect.is_published or live_manifests(root, _DELETE_MANIFESTS):
        yield None
        return
    order = live_manifests(root, DATA_MANIFESTS)
    if not order:
        yield None
        return
    stats = root.entries["manifest_stats"].to_pylist()
    rows = [sum((stats[row] or {}).get(name) or 0 for name in _ROW_COUNTS) for row in order]
    at = 0
    if not filtered:
        at = min(len(order), int(np.searchsorted(np.cumsum(rows), limit)) + 1)
        yield order[:at]
    width = 1
    while at < len(order):
        yield order[at : at + width]
        at += width
        width *= 2


class _Expansion:
    """Limits the memory for a small file's rows, in proportion to the file's size; counts one file at a time."""

    def __init__(self, state: TableState, tasks: FileTasks) -> None:
        self._state, self._tasks = state, tasks
        self._row, self._size = -1, 0
        self._budget: Budget | None = None

    def count(self, row: int, size: int) -> None:
        """Count bytes of rows of a file; raise `MemoryLimitError` if they are too many."""
        if row != self._row:
            self._row, self._size, self._budget = row, 0, None
        self._size += size
        if self._size <= FLOOR:
            return
        if self._budget is None:  # request the file's size from the storage only once, and only if needed
            location = self._tasks.files.entries["location"][row].as_py()
            self._budget = Budget(location, self._state.storage.stat(location).size, ratio=DATA_RATIO)
        self._budget.reserve(self._size - self._budget.used, "the rows")


def _joined(parts: list[pa.Table]) -> pa.Table:
    """Concatenate the parts and combine small neighbours into one chunk. Empties the list to free memory."""
    parts.reverse()
    out, small, rows = [], [parts.pop()], 0
    while parts:
        part = parts.pop()
        if rows + part.num_rows > _PART_ROWS:
            out.append(_one(small))
            small, rows = [], 0
        small.append(part)
        rows += part.num_rows
    return pa.concat_tables([*out, _one(small)])


def _one(parts: list[pa.Table]) -> pa.Table:
    return parts[0] if len(parts) == 1 else pa.concat_tables(parts).combine_chunks()


def head(
    state: TableState,
    n: int = 10,
    where: FilterLike | Filter | None = None,
    columns: str | Iterable[str] | None = None,
    *,
    partition: Mapping[str, Any] | None = None,
    on_error: str = "raise",
) -> pd.DataFrame:
    """Return the first rows of a table as a data frame; see `iceexplore.Table.head`."""
    return to_frame(to_arrow(state, where, columns, limit=n, partition=partition, on_error=on_error))


def file_rows(
    reader: TaskReader,
    rows: range | list[int],
    *,
    parallel: bool,
    on_error: OnError = "raise",
    batch_rows: int | None = None,
) -> Generator[tuple[int, FileRows], None, None]:
    """Yield the rows of some tasks in order, each part with the number of its task.

    Parameters
    ----------
    parallel
        Read small files ahead in threads.
    on_error
        ``"skip"`` leaves out what cannot be read: a problem per file states how many rows are missing, and a warning
        follows at the end, or when the generator is closed.
    batch_rows
        Maximum number of rows of a file that are processed at a time if it is not read ahead.

    Raises
    ------
    FormatError, UnsupportedError, FileMissingError
        A file cannot be read; the message mentions ``on_error``.
    """
    lost = _Lost(reader.state)
    files = reader.tasks.files.entries
    try:
        with progress(len(rows), "data files") as step, _Ahead(reader, rows if parallel else (), batch_rows) as ahead:
            for row in rows:
                read = 0
                try:
                    for part in ahead.parts(row):
                        read += part.read
                        yield row, part
                except IceexploreError as error:
                    if on_error == "raise":
                        raise _advised(error, reader) from error
                    entry = files.slice(row, 1).select(["location", "record_count"]).to_pylist()[0]
                    lost.add(error, entry["location"], (entry["record_count"] or 0) - read)
                step()
    finally:
        lost.warn()


class _Ahead:
    """Reads small files ahead."""

    def __init__(self, reader: TaskReader, rows: range | list[int] | tuple[()], batch_rows: int | None = None) -> None:
        self._reader = reader
        self._batch_rows = batch_rows
        sizes = reader.tasks.files.entries["file_size_in_bytes"]
        counts = reader.tasks.files.entries["record_count"]
        small = (
            (pc.fill_null(sizes, 0).to_numpy() <= _SMALL_BYTES) & (pc.fill_null(counts, 0).to_numpy() <= _SMALL_ROWS)
        ).tolist()
        self._left = deque(row for row in rows if small[row])
        self._sizes = build.to_pylist(pc.fill_null(sizes, 0))
        self._width = max(min(16, 2 * (os.cpu_count() or 1) + 2), reader.state.storage.readers)
        self._pool = ThreadPoolExecutor(self._width, "iceexplore-read") if len(self._left) > 1 else None
        self._asked: dict[int, Future[tuple[list[FileRows], Iterator[FileRows]]]] = {}
        self._bytes = 0
        #: The number of bytes decoded ahead for each file: together at most an eighth of the memory limit, or
        #: `_LEAST_SHARE` for each if that is more.
        self._share = max(_LEAST_SHARE, memory_limit() // 8 // (2 * self._width))

    def __enter__(self) -> _Ahead:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def parts(self, row: int) -> Iterator[FileRows]:
        """Yield the rows of a task."""
        if self._pool is not None:
            while self._left and len(self._asked) < 2 * self._width and self._fits(self._left[0]):
                one = self._left.popleft()
                self._asked[one] = self._pool.submit(self._begun, one)
                self._bytes += self._sizes[one]
        future = self._asked.pop(row, None)
        if future is not None:
            self._bytes -= self._sizes[row]
        if future is None:
            yield from self._reader.read(row, batch_rows=self._batch_rows)
            return
        ready, more = future.result()
        ready.reverse()
        while ready:
            yield ready.pop()
        yield from more

    def _fits(self, row: int) -> bool:
        """Return whether a file may be read ahead now: a few always may, more while the total size is small."""
        return len(self._asked) < _ALWAYS_AHEAD or self._bytes + self._sizes[row] <= _AHEAD_BYTES

    def _begun(self, row: int) -> tuple[list[FileRows], Iterator[FileRows]]:
        """Return a small file's rows; if decoding makes them large, the first ones and an iterator over the rest."""
        more = self._reader.read(row)
        ready: list[FileRows] = []
        left = self._share
        while left > 0:
            part = next(more, None)
            if part is None:
                return ready, iter(())
            ready.append(part)
            left -= part.table.nbytes
        return ready, more


class _Lost:
    """Counts the files and rows that are left out."""

    def __init__(self, state: TableState) -> None:
        self._state = state
        self._files = 0
        self._rows = 0

    def add(self, error: IceexploreError, location: str, rows: int) -> None:
        """Count a file that could not be read completely, and add a problem."""
        self._files += 1
        self._rows += max(0, rows)
        item = Problems().add_error(error, location)
        self._state.problems.add(replace(item, text=f"{item.text} ({max(0, rows):,} rows are left out)"))

    def warn(self) -> None:
        """Warn once about all files and rows that were left out."""
        if self._files:
            what = f"{self._files:,} data file{'s' if self._files > 1 else ''} could not be read"
            warn_caller(f"{what}: {self._rows:,} rows are left out; see .problems of the table for details")


def _advised(error: IceexploreError, reader: TaskReader) -> IceexploreError:
    """Return the error with advice added."""
    if isinstance(error, OutsideRootsError):
        return outside_error(error, reader.state.storage, reader.tasks)
    if isinstance(error, FormatError):
        reason = f"{error.reason} ({_ADVICE})"
        return FormatError(reason, location=error.location, offset=error.offset, field=error.field, code=error.code)
    return type(error)(f"{error} ({_ADVICE})")
