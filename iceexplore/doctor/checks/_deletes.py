"""Check deletes against their data files: missing fields, old paths, deletes that are too old or wrongly removed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.doctor.examination._examination import Examination
from iceexplore.doctor.model._finding import Finding, finding_of
from iceexplore.errors import Problem, problem
from iceexplore.formats import PUFFIN
from iceexplore.graph import amount
from iceexplore.manifests import ContentType, Status
from iceexplore.metadata import Snapshot

__all__ = ["check_deletes", "respelled"]

Rows = npt.NDArray[np.int64]

#: The maximum number of files of one commit whose partitions are compared to find the deletes that the commit dropped.
_MOST_COMPARED = 10_000


def check_deletes(examination: Examination) -> None:
    """Report faults of deletes in each examined snapshot; a fault that several snapshots share is one finding."""
    made: dict[tuple[str, str, str | None], Finding] = {}
    for snapshot in examination.snapshots:
        rows = examination.rows_of(snapshot)
        for finding in (
            *_incomplete_vectors(examination, snapshot, rows),
            *_respelled(examination, snapshot, rows),
            *_too_old(examination, snapshot, rows),
            *_dropped(examination, snapshot),
        ):
            key = finding.code, finding.where, finding.field
            old = made.get(key)
            # A fault in several snapshots becomes one finding, with the text, count and places in the newest of them.
            made[key] = finding if old is None else replace(finding, snapshots=(*old.snapshots, *finding.snapshots))
    for finding in made.values():
        examination.report(finding)


def respelled(named: AnyArray, live: AnyArray) -> pa.BooleanArray:
    """Return a mask of the paths in ``named`` that are outdated paths of files in ``live``.

    A path is outdated if it is not in ``live``, but a path in ``live`` has the same last two components: the name of
    the folder and of the file. Moving or copying a table changes only the beginning of its paths.
    """
    tails = pc.unique(_tails(live))
    return pc.and_(pc.invert(pc.is_in(named, live)), pc.is_in(_tails(named), tails))


def _tails(places: AnyArray) -> AnyArray:
    """Return the last two components of each path: the name of the folder and of the file, as in ``data/a.parquet``."""
    return pc.replace_substring_regex(places, "^.*/([^/]*/[^/]*)$", "\\1")


def _incomplete_vectors(examination: Examination, snapshot: Snapshot, rows: Rows) -> Iterator[Finding]:
    """Check for entries of deletion vectors that lack field 143, 144 or 145: the data file, the offset or the size."""
    entries = examination.files.entries
    rows = rows[np.asarray(pc.fill_null(pc.equal(entries["file_format"], PUFFIN.name), False))[rows]]
    if not len(rows):
        return
    some = entries.select(["content_type", "referenced_file", "deletion_vector"]).take(build.array(rows))
    vectors = some["deletion_vector"].combine_chunks()
    due = pc.fill_null(pc.equal(some["content_type"], int(ContentType.POSITION_DELETE)), False)
    outside = pc.is_null(pc.struct_field(vectors, "inline_content"))
    lacking = np.asarray(pc.and_(due, outside))
    what = (
        ("143 referenced_data_file", "delete-scope", some["referenced_file"], "the data file"),
        ("144 content_offset", "entry-invalid", pc.struct_field(vectors, "offset"), "the offset in the Puffin file"),
        ("145 content_size_in_bytes", "entry-invalid", pc.struct_field(vectors, "size_in_bytes"), "the size"),
    )
    for field, code, values, name in what:
        hit = rows[lacking & np.asarray(pc.is_null(values))]
        if len(hit):
            which = amount(len(hit), "deletion vector does", "deletion vectors do")
            text = f"{which} not state {name}: readers cannot apply them, or refuse the table."
            item = problem(code, examination.files.place(int(hit[0])), text, field=field)
            yield _found(examination, item, hit, snapshot, modes=(48,))


def _respelled(examination: Examination, snapshot: Snapshot, rows: Rows) -> Iterator[Finding]:
    """Check for deletes that name a data file (field id 143) by an outdated path, while it is live under another path.

    Engines that compare paths do not apply such deletes.
    """
    entries = examination.files.entries
    kinds = np.asarray(pc.fill_null(entries["content_type"], int(ContentType.DATA)))[rows]
    deletes = rows[kinds == int(ContentType.POSITION_DELETE)]
    deletes = deletes[np.asarray(entries["referenced_file"].is_valid())[deletes]]
    if not len(deletes):
        return
    named, live = (
        entries[name].take(build.array(some)).combine_chunks()
        for name, some in (("referenced_file", deletes), ("location", rows[kinds == int(ContentType.DATA)]))
    )
    if pc.all(pc.is_in(named, live)).as_py():
        return
    hit = deletes[np.asarray(respelled(named, live))]
    if len(hit):
        old = entries["referenced_file"][int(hit[0])].as_py()
        text = (
            f"{amount(len(hit), 'delete file names', 'delete files name')} data files by outdated paths, such as "
            f"{old}: engines that compare paths do not apply these deletes, and deleted rows come back."
        )
        item = problem(
            "delete-path", examination.files.place(int(hit[0])), text, field="143 referenced_data_file", found=old
        )
        yield _found(examination, item, hit, snapshot)


def _too_old(examination: Examination, snapshot: Snapshot, rows: Rows) -> Iterator[Finding]:
    """Check for deletes that are older than every data file of their spec, and therefore apply to none.

    An equality delete applies to older data files only, a position delete also to those of its own commit (spec, "Scan
    Planning"). Equality deletes of an unpartitioned spec apply to data files of all specs.
    """
    entries = examination.files.entries
    some = entries.select(["content_type", "partition_spec_id", "sequence_number", "file_format"]).take(
        build.array(rows)
    )
    numbers = np.asarray(pc.fill_null(some["sequence_number"], -1))
    kinds = np.asarray(pc.fill_null(some["content_type"], int(ContentType.DATA)))
    specs = np.asarray(pc.fill_null(some["partition_spec_id"], -1))
    vectors = np.asarray(pc.fill_null(pc.equal(some["file_format"], PUFFIN.name), False))
    data = kinds == int(ContentType.DATA)
    equality = kinds == int(ContentType.EQUALITY_DELETE)
    deletes = (equality | ((kinds == int(ContentType.POSITION_DELETE)) & ~vectors)) & (numbers > 0)
    if not deletes.any() or not data.any():
        return
    whole = {s.spec_id for s in examination.state.metadata.partition_specs if s.is_unpartitioned}
    old = np.zeros(len(rows), bool)
    for spec in np.unique(specs[deletes]).tolist():
        mine = deletes & (specs == spec)
        for which, all_specs, latest in ((mine & equality, spec in whole, 0), (mine & ~equality, False, -1)):
            ages = numbers[data if all_specs else data & (specs == spec)]
            # If no live data file has this partition spec, nothing is compared here: `check_entries` reports deletes
            # whose spec no live data file has.
            if len(ages) and ages.min() >= 0:
                # `ages.min()` is the sequence number of the oldest data file. An equality delete is too old if its own
                # sequence number is less than or equal to this number, a position delete only if it is less.
                old |= which & (numbers <= ages.min() + latest)
    hit = rows[old]
    if len(hit):
        text = (
            "1 delete file is older than every data file that it could apply to: it deletes nothing, and every scan "
            "opens it."
            if len(hit) == 1
            else f"{len(hit):,} delete files are older than every data file that they could apply to: they delete "
            "nothing, and every scan opens them."
        )
        found = int(numbers[old][0])
        item = problem(
            "delete-dangling", examination.files.place(int(hit[0])), text, field="3 sequence_number", found=found
        )
        yield _found(examination, item, hit, snapshot, modes=(45,))


def _dropped(examination: Examination, snapshot: Snapshot) -> Iterator[Finding]:
    """Check for deletes that a commit removed, although they apply to data files that the same commit added.

    A compaction gives its new data files the sequence number of the snapshot from which it started. Deletes that other
    writers commit while it runs have higher sequence numbers. They apply to the new data files, so the compaction must
    not remove them.

    For each removed delete file, the manifests that the commit wrote have an entry with the status DELETED, and with
    the id of the commit's snapshot. Only entries with the id of ``snapshot`` are examined. Delete files that name their
    data file (field 143) are left out: they apply to no other data file.
    """
    entries = examination.files.entries
    own = pc.equal(entries["snapshot_id"], snapshot.snapshot_id)
    kinds = np.asarray(pc.fill_null(entries["content_type"], int(ContentType.DATA)))
    gone = pc.and_(own, pc.equal(entries["status"], int(Status.DELETED)))
    deletes = np.flatnonzero(
        np.asarray(pc.fill_null(gone, False))
        & np.isin(kinds, [int(ContentType.POSITION_DELETE), int(ContentType.EQUALITY_DELETE)])
        & np.asarray(entries["referenced_file"].is_null())
    )
    if not len(deletes) or not snapshot.sequence_number:
        return
    older = pc.less(entries["sequence_number"], snapshot.sequence_number)
    added = pc.and_(pc.and_(own, older), pc.equal(entries["status"], int(Status.ADDED)))
    data = np.flatnonzero(np.asarray(pc.fill_null(added, False)) & (kinds == int(ContentType.DATA)))
    if not len(data):
        return
    if len(data) + len(deletes) > _MOST_COMPARED:
        examination.cannot_know(
            "deletes that a compaction dropped", f"the commit changed more than {_MOST_COMPARED:,} files"
        )
        return
    keys = examination.partition_keys(np.concatenate([deletes, data]))
    numbers = np.asarray(pc.fill_null(entries["sequence_number"], -1))
    oldest: dict[str, int] = {}
    for row in data.tolist():
        oldest[keys[row]] = min(int(numbers[row]), oldest.get(keys[row], 1 << 62))
    whole = {s.spec_id for s in examination.state.metadata.partition_specs if s.is_unpartitioned}
    specs = np.asarray(pc.fill_null(entries["partition_spec_id"], -1))
    hit: list[int] = []
    for row in deletes.tolist():
        equality = kinds[row] == int(ContentType.EQUALITY_DELETE)
        least = min(oldest.values()) if equality and specs[row] in whole else oldest.get(keys[row])
        if least is not None and numbers[row] >= least + int(equality):
            hit.append(row)
    if hit:
        text = (
            "The commit compacted data files; the new files have an older sequence number than the commit. It also "
            f"removed {amount(len(hit), 'delete file that applies', 'delete files that apply')} to the new files: rows "
            "that were deleted while the compaction ran are back."
        )
        found, expected = int(numbers[hit[0]]), f"at most {int(numbers[data].min())}"
        item = problem(
            "deletes-dropped",
            examination.files.place(hit[0]),
            text,
            field="3 sequence_number",
            found=found,
            expected=expected,
        )
        yield _found(examination, item, np.array(hit), snapshot)


def _found(
    examination: Examination, item: Problem, hit: Rows, snapshot: Snapshot, modes: tuple[int, ...] | None = None
) -> Finding:
    return finding_of(
        item, snapshots=(snapshot.snapshot_id,), places=examination.places(hit), count=len(hit), modes=modes, rows=hit
    )
