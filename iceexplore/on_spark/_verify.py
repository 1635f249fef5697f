"""Every data and delete file of a snapshot opened and held against what metadata says of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from iceexplore.errors import IceexploreError, OptionError
from iceexplore.graph import TableState, live_manifests
from iceexplore.inspect import DIRECT, ROOT
from iceexplore.manifests import EntryBatch, Manifest, live
from iceexplore.on_spark.environment._info import SessionInfo
from iceexplore.on_spark.transport._arrow_schema import for_spark, spark_schema
from iceexplore.on_spark.transport._bundles import frame_of, parallelism
from iceexplore.on_spark.transport._state import ShippedState, check_reach, ship
from iceexplore.storage import progress
from iceexplore.verification import (
    CHECKED_SCHEMA,
    FINDING_SCHEMA,
    Checked,
    Footer,
    LiveIds,
    Place,
    Puffins,
    beside,
    check_columns,
    check_entry,
    check_equality,
    check_footer,
    check_positions,
    check_values,
    check_vector,
    claim_row_ids,
    judged,
    quiet,
    suspects,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Level", "check_slice", "slices_of", "verify", "verify_here"]

Level = Literal["footers", "data"]

#: Entries of one slice: what one thread checks at a time, and progress counts.
_SLICE = {"footers": 64, "data": 8}
#: Slices of one manifest.
_MOST_SLICES = 4_096
#: Slices of one Spark task, about; tasks at most: each is sent the list of all.
_TASKS_PER_WORKER = 8
_MOST_TASKS = 20_000
_THREADS = 8


@dataclass(frozen=True)
class Slice:
    """Some entries of a manifest: its row in the root (or `DIRECT`, `ROOT`), and which of them; no end: to the last."""

    row: int
    start: int = 0
    stop: int | None = None


def slices_of(state: TableState, level: Level) -> list[Slice]:
    """The work: every live manifest cut into slices. The root is read, no leaf.

    Raises
    ------
    OptionError
        An unknown level.
    """
    if level not in _SLICE:
        raise OptionError(f"level={level!r}: choose 'footers' or 'data'")
    calm = quiet(state)
    root = calm.root()
    if root is None:
        return []
    direct = calm.reader.direct(root)
    found = [Slice(ROOT)]
    if direct is not None:
        found += _cut(DIRECT, len(direct), level)
    rows = live_manifests(root)
    stats = root.entries["manifest_stats"].take(pa.array(rows, pa.int64())).to_pylist()
    for row, counts in zip(rows, stats, strict=True):
        kinds = [(counts or {}).get(f"{kind}_files_count") for kind in ("added", "existing", "deleted")]
        # Of a manifest whose counts are not known, or wrong, the last slice goes to its end.
        known = None if any(k is None or k < 0 for k in kinds) else sum(k or 0 for k in kinds)
        found += _cut(row, known, level)
    return found


def _cut(row: int, count: int | None, level: Level) -> list[Slice]:
    # A count that is wrong may be of billions: then slices are larger, and most of them are of nothing.
    size = max(_SLICE[level], -(-(count or 0) // _MOST_SLICES))
    starts = range(0, max(count or 0, 1), size)
    return [Slice(row, at, None if at == starts[-1] else at + size) for at in starts]


def _joined(slices: Sequence[Slice]) -> tuple[Slice, ...]:
    """Slices that follow each other in one manifest as one: what is sent stays small."""
    out: list[Slice] = []
    for piece in slices:
        if out and out[-1].row == piece.row and out[-1].stop == piece.start:
            out[-1] = Slice(piece.row, out[-1].start, piece.stop)
        else:
            out.append(piece)
    return tuple(out)


def check_slice(state: TableState, piece: Slice, level: Level) -> pa.Table:
    """Check the live files of a slice: a table of `CHECKED_SCHEMA`. One file's fault never stops the others."""
    out = Checked()
    calm = quiet(state)
    root = calm.root()
    if root is None:
        return out.table()
    if piece.row == ROOT:
        _add_problems(root, out)
        return out.table()
    leaf = calm.reader.direct(root) if piece.row == DIRECT else calm.reader.leaf(root, piece.row, _PARTS)
    if leaf is None:
        return out.table()
    if piece.start == 0 and piece.row != DIRECT:
        _add_problems(leaf, out)
        for item in leaf.untrue_claims():
            out.add(Place(item.where, None, leaf.location), item)
    mask = np.asarray(live(leaf.entries))
    mask[: piece.start] = False
    if piece.stop is not None:
        mask[piece.stop :] = False
    rows = np.flatnonzero(mask)
    if not len(rows):
        return out.table()
    batch = _batch(leaf, rows, level)
    puffins = Puffins(calm)
    live_ids = LiveIds(calm, batch) if level == "data" and state.metadata.has_row_lineage else None
    for i in range(len(batch)):
        file = batch.take(pa.array([i], pa.int64()))
        entry = file.entries.to_pylist()[0]
        place = Place(
            entry["location"] or "", entry["content_type"], leaf.location, entry["ordinal"], entry["snapshot_id"]
        )
        try:
            found = _check(calm, place, file, entry, level, puffins, out)
            if entry["content_type"] == 0 and found is not None:
                if live_ids is None:
                    claim_row_ids(calm, place, entry, found, out)
                else:
                    live_ids.claim(i, place, entry, found, out)
        except IceexploreError as error:
            out.fail(place, error)
        except Exception as error:  # what no check foresaw is this file's fault, not the end of the others
            text = f"The check failed: {type(error).__name__}: {error}"
            out.say(place, "unsupported", text)
    return out.table()


_PARTS = frozenset({"entries", "partition", "stats"})


def _batch(leaf: Manifest, rows: Any, level: Level) -> EntryBatch:
    batch = EntryBatch.of(leaf, None if level == "data" else _path_bounds(leaf))
    return batch.take(pa.array(rows, pa.int64()))


def _path_bounds(leaf: Manifest) -> list[int]:
    """Of footers alone the bounds of the paths in position deletes are what is compared."""
    from iceexplore.deletes import FILE_PATH_ID

    return [i for i in leaf.stat_field_ids() if i == FILE_PATH_ID]


def _check(
    state: TableState,
    place: Place,
    file: EntryBatch,
    entry: dict[str, Any],
    level: Level,
    puffins: Puffins,
    out: Checked,
) -> Footer | None:
    """The file's footer, if it is one that has one and can be opened."""
    check_entry(state, place, entry, out)
    vector = entry["deletion_vector"]
    if entry["content_type"] == 1 and vector is not None and any(v is not None for v in vector.values()):
        check_vector(state, place, entry, puffins, out)
        return None
    found = check_footer(state, place, entry, out)
    if entry["content_type"] == 0:
        out.data(place, entry["record_count"] if found is None else found.rows)
    if found is None:
        return None
    if entry["content_type"] == 1:
        check_positions(state, place, file, entry, found, out)
        return found
    check_columns(state, place, found, out)
    if entry["content_type"] == 2:
        check_equality(state, place, entry, found, out)
    if level == "data":
        check_values(state, place, file, found.ids, out)
    return found


#: What reading says of a manifest's entries, and verifying of each file: once is enough.
_TOLD_BY_FILE = frozenset(
    {"100 file_path", "103 record_count", "104 file_size_in_bytes", "132 split_offsets", "135 equality_ids"}
)


def _add_problems(manifest: Manifest, out: Checked) -> None:
    for item in manifest.problems:
        if item.field in _TOLD_BY_FILE:
            continue
        out.add(Place(item.where, None, manifest.location), item)


@dataclass(frozen=True)
class _Check:
    """What a worker does with its slices."""

    state: ShippedState
    level: Level

    def __call__(self, slices: Sequence[Slice]) -> Iterator[pa.Table]:
        state = self.state.open()
        for piece in slices:
            yield check_slice(state, piece, self.level)


@dataclass(frozen=True)
class _Judge:
    """What a worker does with rows that may be findings."""

    state: ShippedState

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        state = self.state.open()
        for batch in batches:
            made = judged(state, pa.Table.from_batches([batch]))
            yield from for_spark(made).to_batches()


def verify(state: TableState, session: Any, *, level: Level = "footers") -> DataFrame:
    """Open every live data and delete file on Spark's workers: ``t.verify(spark)``.

    Parameters
    ----------
    session
        A Spark session, 3.5 or later, also of Spark Connect.
    level
        As `iceexplore.Table.verify`.

    Returns
    -------
    DataFrame
        Findings, of `FINDING_SCHEMA`; nothing is opened before it is run, and each run opens all files again.

    Raises
    ------
    OptionError
        No session, or an unknown level.
    UnsupportedError
        A storage that cannot go to other processes; files that only this machine sees.
    """
    info = SessionInfo.of(session)
    slices = slices_of(state, level)
    check_reach(state, info)
    if not slices:
        return session.createDataFrame([], spark_schema(FINDING_SCHEMA))
    parts = min(len(slices), _MOST_TASKS, max(parallelism(session, info) * _TASKS_PER_WORKER, len(slices) // 256))
    edges = [len(slices) * i // parts for i in range(parts + 1)]
    # Slices of one manifest side by side: who has decoded it goes on with it.
    bundles = [_joined(slices[a:b]) for a, b in pairwise(edges)]
    shipped = ship(state)
    checked = frame_of(session, bundles, _Check(shipped, level), CHECKED_SCHEMA)
    judge = _Judge(shipped)

    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return judge(batches)

    return suspects(checked).mapInArrow(make, spark_schema(FINDING_SCHEMA))


def verify_here(state: TableState, *, level: Level = "footers") -> pa.Table:
    """The same in threads of this process: a table of `FINDING_SCHEMA`. A person sees a bar.

    Raises
    ------
    OptionError
        An unknown level.
    """
    slices = slices_of(state, level)
    found = []
    with (
        ThreadPoolExecutor(max(_THREADS, state.storage.readers), thread_name_prefix="iceexplore-verify") as pool,
        progress(len(slices), "slices of manifests") as step,
    ):
        for table in pool.map(lambda piece: check_slice(state, piece, level), slices):
            found.append(table)
            step()
    if not found:
        return FINDING_SCHEMA.empty_table()
    return judged(state, beside(pa.concat_tables(found).combine_chunks()))
