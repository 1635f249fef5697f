"""Check entries of different manifests against each other: duplicate files, dangling deletes, row ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.doctor.checks._deletes import respelled
from iceexplore.doctor.examination._examination import Examination
from iceexplore.doctor.model._finding import Finding, finding_of
from iceexplore.errors import problem
from iceexplore.formats import PUFFIN
from iceexplore.manifests import ContentType
from iceexplore.metadata import Snapshot

__all__ = ["check_entries"]

Rows = npt.NDArray[np.int64]


def check_entries(examination: Examination) -> None:
    """Report entries that contradict each other, for example two live entries of the same data file.

    `_overwritten` compares the entries of all examined snapshots with each other. The other checks compare the entries
    that are live in the same snapshot. If several snapshots have the same contradiction, it is one finding.
    """
    made: dict[tuple[str, str, str | None], Finding] = {}
    for finding in (*_overwritten(examination), *_each_snapshot(examination)):
        key = finding.code, finding.where, finding.field
        old = made.get(key)
        # A fault in several snapshots becomes one finding, with the text, count and places in the newest of them.
        if old is not None:
            finding = replace(finding, snapshots=tuple(dict.fromkeys((*old.snapshots, *finding.snapshots))))
        made[key] = finding
    for finding in made.values():
        examination.report(finding)


def _each_snapshot(examination: Examination) -> Iterator[Finding]:
    for snapshot in examination.snapshots:
        rows = examination.rows_of(snapshot)
        yield from _twice(examination, snapshot, rows)
        yield from _vectors(examination, snapshot, rows)
        yield from _row_ids(examination, snapshot, rows)
        yield from _specs(examination, snapshot, rows)


def _of_type(examination: Examination, rows: Rows, *kinds: ContentType) -> Rows:
    values = np.asarray(pc.fill_null(examination.files.entries["content_type"], int(ContentType.DATA)))
    return rows[np.isin(values[rows], [int(k) for k in kinds])]


def _texts(examination: Examination, name: str, rows: Rows) -> AnyArray:
    return examination.files.entries[name].take(pa.array(rows, pa.int64())).combine_chunks()


def _twice(examination: Examination, snapshot: Snapshot, rows: Rows) -> Iterator[Finding]:
    data = _of_type(examination, rows, ContentType.DATA)
    text = "{value} is live {count} times: readers return its rows that many times."
    same = examination.files.same[data]
    yield from _repeated(examination, snapshot, data, same, "location", "file-twice", "100 file_path", text)


def _repeated(
    examination: Examination, snapshot: Snapshot, rows: Rows, same: Rows, name: str, code: str, field: str, text: str
) -> Iterator[Finding]:
    """Report entries that have the same value in a column whose values must be unique; one finding for all of them.

    Parameters
    ----------
    rows
        The row numbers, in `Examination.files`, of the entries to compare.
    same
        An array as long as ``rows``. Entries with the same value have the same number in it; an entry without a value
        has -1.
    name
        The name of this column in ``Examination.files.entries``.
    code, field
        The code and the field of the finding, such as ``dv-twice`` and ``143 referenced_data_file``.
    text
        The text of the finding. In it, ``{value}`` is replaced by the first repeated value, and ``{count}`` by the
        number of entries that have this value.
    """
    counts = np.bincount(same[same >= 0])
    several = np.flatnonzero(counts > 1)
    if not len(several):
        return
    again = np.isin(same, several)
    hit = rows[again]
    value = examination.files.entries[name][int(hit[0])].as_py()
    count = int(counts[same[again][0]])
    place = examination.files.place(int(hit[0]))
    item = problem(code, place, text.format(value=value, count=count), field=field, found=count, expected=1)
    yield finding_of(
        item, snapshots=(snapshot.snapshot_id,), places=examination.places(hit), count=len(several), rows=hit
    )


def _vectors(examination: Examination, snapshot: Snapshot, rows: Rows) -> Iterator[Finding]:
    """Check for data files with several live deletion vectors, and for deletion vectors whose data file is not live."""
    deletes = _of_type(examination, rows, ContentType.POSITION_DELETE)
    named = _texts(examination, "referenced_file", deletes)
    vector = np.asarray(pc.is_valid(named)) & _is_vector(examination, deletes)
    deletes, named = deletes[vector], named.filter(pa.array(vector))
    if not len(deletes):
        return
    text = "{value} has {count} live deletion vectors (spec: at most one)."
    same = np.asarray(named.dictionary_encode().indices).astype(np.int64)
    yield from _repeated(
        examination, snapshot, deletes, same, "referenced_file", "dv-twice", "143 referenced_data_file", text
    )
    data = _texts(examination, "location", _of_type(examination, rows, ContentType.DATA))
    lost = np.flatnonzero(~np.asarray(pc.is_in(named, data)))
    if len(lost):
        lost = lost[~np.asarray(respelled(named, data))[lost]]  # left out: the data file is live under another path
    if len(lost):
        hit = deletes[lost]
        text = (
            f"The data file {named[int(lost[0])].as_py()} is not live, but its deletion vector is: the vector "
            "should have been removed with the data file."
        )
        item = problem("delete-dangling", examination.files.place(int(hit[0])), text, field="143 referenced_data_file")
        yield finding_of(
            item,
            modes=(46, 55),
            snapshots=(snapshot.snapshot_id,),
            places=examination.places(hit),
            count=len(hit),
            rows=hit,
        )


def _is_vector(examination: Examination, rows: Rows) -> npt.NDArray[np.bool_]:
    entries = examination.files.entries
    formats = pc.fill_null(pc.equal(entries["file_format"], PUFFIN.name), False)
    vectors = pc.or_(formats, entries["deletion_vector"].is_valid())
    return np.asarray(vectors)[rows]


def _row_ids(examination: Examination, snapshot: Snapshot, rows: Rows) -> Iterator[Finding]:
    """Check the row ids of live data files (field 142, first_row_id), if the table has row lineage.

    A file's row ids must not be negative, must be below the table's next-row-id, and must not overlap with the row ids
    of another file.
    """
    metadata = examination.state.metadata
    if not metadata.has_row_lineage:
        return
    data = _of_type(examination, rows, ContentType.DATA)
    first, count = (_texts(examination, name, data) for name in ("first_row_id", "record_count"))
    known = np.flatnonzero(np.asarray(pc.and_(pc.is_valid(first), pc.is_valid(count))))
    if not len(known):
        return
    data = data[known]
    starts = np.asarray(first.take(build.array(known)), np.int64)
    counts = np.asarray(count.take(build.array(known)), np.int64)
    # For each first row id, the largest row count that can be added to it: larger sums do not fit into 64 bits, and
    # would become negative.
    room = np.iinfo(np.int64).max - np.maximum(starts, 0)
    ends = starts + np.minimum(counts, room)

    def found(
        code: str, mask: npt.NDArray[np.bool_], text: str, modes: tuple[int, ...], expected: object
    ) -> Iterator[Finding]:
        hit = np.flatnonzero(mask)
        if len(hit):
            row = int(hit[0])
            item = problem(
                code,
                examination.files.place(int(data[row])),
                text,
                field="142 first_row_id",
                found=int(starts[row]),
                expected=expected,
            )
            yield finding_of(
                item,
                modes=modes,
                snapshots=(snapshot.snapshot_id,),
                places=examination.places(data[hit]),
                count=len(hit),
                rows=data[hit],
            )

    yield from found("row-ids-twice", starts < 0, "A data file has a negative first row id.", (60,), "0 or more")
    following = metadata.next_row_id
    if following is not None:
        text = f"Data files have row ids at or above next-row-id {following}: new rows get the same ids."
        yield from found("row-ids-beyond", (ends > following) | (counts > room), text, (23,), f"below {following}")
    order = np.argsort(starts, kind="stable")
    reach = np.maximum.accumulate(ends[order])
    taken = np.zeros(len(order), bool)
    taken[order[1:]] = starts[order][1:] < reach[:-1]
    text = "Data files share row ids with another live data file: readers that track rows by id mix up these rows."
    yield from found("row-ids-twice", taken & (starts >= 0), text, (23, 60, 65), "row ids that no other file has")


def _specs(examination: Examination, snapshot: Snapshot, rows: Rows) -> Iterator[Finding]:
    """Check for delete files that apply to nothing because no live data file has their partition spec.

    Equality deletes of an unpartitioned spec are left out: they apply to data files of all specs.
    """
    metadata = examination.state.metadata
    known = [s.spec_id for s in metadata.partition_specs]
    unpartitioned = [s.spec_id for s in metadata.partition_specs if s.is_unpartitioned]
    deletes = _of_type(examination, rows, ContentType.POSITION_DELETE, ContentType.EQUALITY_DELETE)
    deletes = deletes[~_is_vector(examination, deletes)]
    data = _of_type(examination, rows, ContentType.DATA)
    if not len(deletes) or not len(data):
        return
    specs = [np.asarray(pc.fill_null(_texts(examination, "partition_spec_id", some), -1)) for some in (deletes, data)]
    alone = np.isin(specs[0], known) & ~np.isin(specs[0], specs[1])
    alone &= (examination.files.kinds[deletes] == int(ContentType.POSITION_DELETE)) | ~np.isin(specs[0], unpartitioned)
    if alone.any():
        hit = deletes[alone]
        numbers = np.unique(specs[0][alone]).tolist()
        listed = ", ".join(map(str, numbers))
        were = "1 delete file was" if len(hit) == 1 else f"{len(hit):,} delete files were"
        of = f"partition spec {listed}" if len(numbers) == 1 else f"the partition specs {listed}"
        text = (
            f"{were} written for {of}, which no live data file has: deletes apply only to data files of their own spec "
            "and partition, so they delete nothing."
        )
        item = problem(
            "delete-no-effect", examination.files.place(int(hit[0])), text, field="502 partition_spec_id", found=listed
        )
        yield finding_of(
            item, snapshots=(snapshot.snapshot_id,), places=examination.places(hit), count=len(hit), rows=hit
        )


def _overwritten(examination: Examination) -> Iterator[Finding]:
    """Check for entries of the same data file that state different sizes or row counts.

    Either the file was overwritten in place, or one of the entries is wrong. All entries of the examined manifests are
    compared, including entries that are not live.
    """
    files = examination.files
    entries = files.entries
    data = np.flatnonzero((files.kinds == int(ContentType.DATA)) & (files.same >= 0))
    data = data[(np.bincount(files.same[data]) > 1)[files.same[data]]]
    if not len(data):
        return
    table = entries.select(["location", "file_size_in_bytes", "record_count"]).take(build.array(data))
    sums = table.group_by("location", use_threads=False).aggregate(
        [(name, how) for name in ("file_size_in_bytes", "record_count") for how in ("min", "max")]
    )
    differs = pc.or_(
        pc.not_equal(sums["file_size_in_bytes_min"], sums["file_size_in_bytes_max"]),
        pc.not_equal(sums["record_count_min"], sums["record_count_max"]),
    )
    changed = sums.filter(pc.fill_null(differs, False))
    if not len(changed):
        return
    hit = np.flatnonzero(np.asarray(pc.is_in(entries["location"], changed["location"].combine_chunks())))
    one = changed.slice(0, 1).to_pylist()[0]
    sizes, counts = (
        [one[f"{name}_{how}"] for how in ("min", "max")] for name in ("file_size_in_bytes", "record_count")
    )
    found = f"{sizes[0]} and {sizes[1]} bytes, {counts[0]} and {counts[1]} rows"
    text = (
        f"Manifest entries for the file {one['location']} state different sizes or row counts: the file was "
        "overwritten, or an entry is wrong."
    )
    item = problem(
        "file-overwritten", examination.files.place(int(hit[0])), text, field="104 file_size_in_bytes", found=found
    )
    yield finding_of(
        item, snapshots=examination.files.snapshots(hit), places=examination.places(hit), count=len(changed), rows=hit
    )
