"""Open every data and delete file of a snapshot, slice by slice, and compare it with the metadata."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.errors import IceexploreError, OptionError
from iceexplore.formats import FileFacts
from iceexplore.graph import TableState, live_manifests
from iceexplore.inspect import DIRECT, ROOT
from iceexplore.manifests import EntryBatch, Manifest, live
from iceexplore.storage import progress, result_of
from iceexplore.verification._cross_file import beside, judged
from iceexplore.verification._deletes import Puffins, check_equality, check_positions, check_vector
from iceexplore.verification._findings import FINDING_SCHEMA, Checked, Place
from iceexplore.verification._footers import check_column_files, check_columns, check_entry, check_footer, quiet
from iceexplore.verification._row_lineage import LiveIds, check_kept_ids, claim_row_ids
from iceexplore.verification._values import check_values

__all__ = ["Level", "Slice", "check_slice", "joined", "slices_of", "verify_local", "verify_steps"]

#: How files are verified: their footers and delete files, or also their rows.
Level = Literal["footers", "data"]
#: Results of checks by manifest, checked entries and, if the row ids of live rows are checked, snapshot.
Known = dict[tuple[str, bytes, int | None], pa.Table]

#: Entries per slice, the unit that one thread checks and that progress counts.
_SLICE = {"footers": 64, "data": 8}
#: Maximum number of slices of one manifest.
_MOST_SLICES = 4_096
_THREADS = 8


@dataclass(frozen=True)
class Slice:
    """A range of a manifest's entries.

    ``row`` is the manifest's row in the root, which is the manifest list or V4's root manifest. It is `DIRECT` for the
    file entries in a root manifest itself, and `ROOT` for the problems of the root. If ``stop`` is None, the range
    extends to the manifest's end.
    """

    row: int
    start: int = 0
    stop: int | None = None


def slices_of(state: TableState, level: Level) -> list[Slice]:
    """Cut all live manifests into slices, using the counts in the root. No leaf manifest is read.

    Raises
    ------
    OptionError
        The level is unknown.
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
        # The last slice extends to the manifest's end, because the counts may be unknown or wrong.
        known = None if any(k is None or k < 0 for k in kinds) else sum(k or 0 for k in kinds)
        found += _cut(row, known, level)
    return found


def _cut(row: int, count: int | None, level: Level) -> list[Slice]:
    # A wrong count may be in the billions: then the slices are larger, and most of them are empty.
    size = max(_SLICE[level], -(-(count or 0) // _MOST_SLICES))
    starts = range(0, max(count or 0, 1), size)
    return [Slice(row, at, None if at == starts[-1] else at + size) for at in starts]


def joined(slices: Sequence[Slice]) -> tuple[Slice, ...]:
    """Join adjacent slices of one manifest, which keeps the data sent to workers small."""
    out: list[Slice] = []
    for piece in slices:
        if out and out[-1].row == piece.row and out[-1].stop == piece.start:
            out[-1] = Slice(piece.row, out[-1].start, piece.stop)
        else:
            out.append(piece)
    return tuple(out)


def check_slice(state: TableState, piece: Slice, level: Level, known: Known | None = None) -> pa.Table:
    """Check the live files of a slice and return a table of `CHECKED_SCHEMA`.

    A failure in one file never prevents the check of the others.

    Parameters
    ----------
    known
        A dictionary of results for the same files in other snapshots, to which new results are added: most manifests
        are listed in the roots of many snapshots.
    """
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
    by_rows = level == "data" and state.metadata.has_row_lineage
    # which rows, and so which row ids, are live depends on the snapshot's deletes
    snapshot = state.snapshot.snapshot_id if by_rows and state.snapshot is not None else None
    key = leaf.location, rows.tobytes(), snapshot
    if known is None:
        return pa.concat_tables([out.table(), _check_files(calm, leaf, rows, level, by_rows)])
    if key not in known:
        known[key] = _check_files(calm, leaf, rows, level, by_rows)
    return pa.concat_tables([out.table(), known[key]])


def _check_files(
    calm: TableState, leaf: Manifest, rows: npt.NDArray[np.int64], level: Level, by_rows: bool
) -> pa.Table:
    """Check the files in some rows of a manifest; with ``by_rows``, also the row ids of their live rows."""
    out = Checked()
    batch = _batch(leaf, rows, level)
    puffins = Puffins(calm)
    live_ids = LiveIds(calm, batch) if by_rows else None
    for i in range(len(batch)):
        file = batch.take(pa.array([i], pa.int64()))
        entry = file.entries.to_pylist()[0]
        place = Place(
            entry["location"] or "", entry["content_type"], leaf.location, entry["ordinal"], entry["snapshot_id"]
        )
        try:
            found = _check(calm, place, file, entry, level, puffins, out)
            if entry["content_type"] == 0 and found is not None:
                check_kept_ids(calm, place, entry, found, out)
                if live_ids is None:
                    claim_row_ids(calm, place, entry, found, out)
                else:
                    live_ids.claim(i, place, entry, found, out)
        except IceexploreError as error:
            out.fail(place, error)
        except Exception as error:  # an unforeseen failure becomes a finding, and the other files are still checked
            text = f"The check failed: {type(error).__name__}: {error}"
            out.say(place, "unsupported", text)
    return out.table()


_PARTS = frozenset({"entries", "partition", "stats"})


def _batch(leaf: Manifest, rows: npt.NDArray[np.int64], level: Level) -> EntryBatch:
    batch = EntryBatch.of(leaf, None if level == "data" else _path_bounds(leaf))
    return batch.take(pa.array(rows, pa.int64()))


def _path_bounds(leaf: Manifest) -> list[int]:
    """Return the field ids whose metrics the level "footers" compares: the ``file_path`` of position deletes."""
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
) -> FileFacts | None:
    """Check one file and return the facts in its footer; None for a deletion vector or a file that cannot be opened."""
    check_entry(state, place, entry, out)
    vector = entry["deletion_vector"]
    if entry["content_type"] == 1 and vector is not None and any(v is not None for v in vector.values()):
        check_vector(state, place, entry, puffins, out)
        return None
    found = check_footer(state, place, entry, out)
    if entry["content_type"] == 0:
        check_column_files(state, place, entry, out)
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


#: Fields whose problems are found twice, when a manifest is read and when each file is verified. Those found when the
#: manifest is read are dropped.
_REPORTED_BY_FILE = frozenset(
    {"100 file_path", "103 record_count", "104 file_size_in_bytes", "132 split_offsets", "135 equality_ids"}
)


def _add_problems(manifest: Manifest, out: Checked) -> None:
    for item in manifest.problems:
        if item.field in _REPORTED_BY_FILE:
            continue
        out.add(Place(item.where, None, manifest.location), item)


def verify_local(state: TableState, *, level: Level = "footers", known: Known | None = None) -> pa.Table:
    """Run the checks in threads of this process and return a table of `FINDING_SCHEMA`; see `verify_steps`."""
    return result_of(verify_steps(state, level=level, known=known))


def verify_steps(
    state: TableState, *, level: Level = "footers", known: Known | None = None
) -> Generator[float, None, pa.Table]:
    """Run the checks in steps: yield the completed share, from 0 to 1, and return the table.

    A progress bar is shown in interactive sessions. If the generator is closed, checks that have begun are finished.

    Parameters
    ----------
    known
        A dictionary in which results are kept for calls with other snapshots of the same table.

    Raises
    ------
    OptionError
        The level is unknown.
    """
    slices = slices_of(state, level)
    found = []
    with (
        ThreadPoolExecutor(max(_THREADS, state.storage.readers), thread_name_prefix="iceexplore-verify") as pool,
        progress(len(slices), "slices of manifests") as step,
    ):
        for table in pool.map(lambda piece: check_slice(state, piece, level, known), slices):
            found.append(table)
            step()
            yield len(found) / len(slices)
    if not found:
        return FINDING_SCHEMA.empty_table()
    return judged(state, beside(pa.concat_tables(found).combine_chunks()))
