"""Check the metadata file: report the problems found while reading it, and contradictions that readers ignore."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from iceexplore.doctor.checks._metadata_file import missing_metadata
from iceexplore.doctor.examination._examination import Examination
from iceexplore.doctor.model._finding import finding_of
from iceexplore.errors import IceexploreError, Problem, problem
from iceexplore.metadata import TableMetadata, format_ms, parse_transform
from iceexplore.storage import same_location, survey_folder

__all__ = ["check_document"]

#: Field ids from this one on are reserved (spec, "Reserved Field IDs").
_RESERVED = 2147483447
#: The size of a metadata file, in bytes, above which reading it takes most of the time of planning a scan. The limit
#: is the doctor's own: no table property sets it.
LARGE_METADATA = 16 << 20
#: The clocks of two writers may differ by this many milliseconds.
_CLOCKS_MS = 60_000
#: A gzip file of at most this many bytes cannot hold a large document: gzip makes text at most about a thousand times
#: smaller.
_SMALL_PACKED = LARGE_METADATA >> 10


def check_document(examination: Examination) -> None:
    """Report faults of the metadata file."""
    state = examination.state
    known = {s.snapshot_id for s in state.metadata.snapshots}
    for item in (p for p in state.problems if p.where.partition("#")[0] == state.metadata_location):
        part = item.where.partition("#")[2]
        of = _snapshot_of(part)
        snapshots = (of,) if of in known else ()
        if part.startswith("ref "):
            name = part.removeprefix("ref ")
            examination.report(item, modes=(16,), snapshots=snapshots, refs=(name,))
        elif item.code == "file-missing" and not part:  # the catalog sent a file's content, but there is no such file
            examination.report(_gone(examination), modes=(5,))
        elif (
            "next-row-id" in (item.field or "").split(", ") and not part
        ):  # Java cannot read a v3 metadata file without next-row-id
            examination.report(replace(finding_of(item), severity="fail"))
        else:
            examination.report(item, snapshots=snapshots)
    for item in _more(examination):
        of = _snapshot_of(item.where.partition("#")[2])
        examination.report(item, snapshots=(of,) if of in known else ())


def _gone(examination: Examination) -> Problem:
    state = examination.state
    place = state.storage.resolve(state.metadata_location)
    found = survey_folder(state.storage, place.rpartition("/")[0], place, "catalog")
    return missing_metadata(found)


def _snapshot_of(part: str) -> int | None:
    number = part.removeprefix("snapshot ")
    return int(number) if part.startswith("snapshot ") and number.lstrip("-").isdigit() else None


def _more(examination: Examination) -> Iterator[Problem]:
    state = examination.state
    metadata, where = state.metadata, state.metadata_location
    yield from _times(metadata, where)
    yield from _snapshots(metadata, where)
    yield from _columns(metadata, where)
    yield from _sources(metadata, where)
    raw = metadata.raw
    if metadata.requires_snapshot_parts and metadata.current_snapshot_id is not None and "refs" not in raw:
        text = "The table has no refs: readers use current-snapshot-id as the head of the branch main."
        yield problem("metadata-incomplete", where, text, field="refs")
    size = _size(examination)
    if size >= LARGE_METADATA:
        text = f"The metadata file is {size / 2**20:,.0f} MiB large: every reader loads it before it can plan a scan."
        yield problem(
            "metadata-large", where, text, found=size, expected=f"below {LARGE_METADATA}, iceexplore's default"
        )


def _size(examination: Examination) -> int:
    """Return the size in bytes of the metadata file's JSON text, which is larger than the file if it is compressed.

    The last four bytes of a gzip file state the size of the text. They are read only if the file has more than
    `_SMALL_PACKED` bytes, because the text of a smaller file cannot reach `LARGE_METADATA`. If they are not read, or
    cannot be read, return the size of the compressed file. Return 0 if the metadata file has not been read at all.
    """
    state = examination.state
    where = state.metadata_location
    size = max((r.length for r in state.storage.reads if same_location(r.location, where)), default=0)
    if size > _SMALL_PACKED and ".gz" in where.rpartition("/")[2]:
        try:
            tail = state.storage.read(where, kind="metadata", offset=size - 4, length=4)
        except IceexploreError as error:
            examination.cannot_know("the size of the metadata file", str(error))
            return size
        return max(size, int.from_bytes(bytes(tail), "little"))  # gzip's last field, ISIZE
    return size


def _times(metadata: TableMetadata, where: str) -> Iterator[Problem]:
    """Check for times in the metadata file that contradict each other.

    ``last-updated-ms`` must not be before the time of a snapshot or log entry, and a snapshot must not be before its
    parent. Differences of up to `_CLOCKS_MS` are ignored.
    """
    updated = metadata.last_updated_ms
    newest = max(
        (
            *(s.timestamp_ms for s in metadata.snapshots),
            *(e.timestamp_ms for e in metadata.snapshot_log),
            *(e.timestamp_ms for e in metadata.metadata_log),
        ),
        default=None,
    )
    if updated is not None and newest is not None and updated < newest - _CLOCKS_MS:
        text = (
            f"last-updated-ms ({format_ms(updated)}) is before the newest time in the snapshots, the snapshot log and "
            f"the metadata log ({format_ms(newest)})."
        )
        yield problem(
            "metadata-times", where, text, field="last-updated-ms", found=updated, expected=f"at least {newest}"
        )
    by_id = {s.snapshot_id: s for s in metadata.snapshots}
    for s in metadata.snapshots:
        parent = None if s.parent_snapshot_id is None else by_id.get(s.parent_snapshot_id)
        if parent is not None and s.timestamp_ms < parent.timestamp_ms - _CLOCKS_MS:
            text = (
                f"Snapshot {s.snapshot_id} is from {format_ms(s.timestamp_ms)}, before its parent "
                f"({format_ms(parent.timestamp_ms)}): time travel to a timestamp may find the wrong snapshot."
            )
            place = f"{where}#snapshot {s.snapshot_id}"
            yield problem("metadata-times", place, text, field="timestamp-ms", found=s.timestamp_ms)


def _snapshots(metadata: TableMetadata, where: str) -> Iterator[Problem]:
    for s in metadata.snapshots:
        place = f"{where}#snapshot {s.snapshot_id}"
        if s.raw.get("parent-snapshot-id") == -1:
            text = f"Snapshot {s.snapshot_id} has parent -1 instead of none: readers look for a snapshot -1."
            yield problem("metadata-incomplete", place, text, field="parent-snapshot-id", found=-1)
        if s.summary is None:
            text = f"Snapshot {s.snapshot_id} has no summary."
            if metadata.requires_snapshot_parts:
                yield problem("metadata-incomplete", place, text, field="summary")
        elif s.operation is None:
            text = f"The summary of snapshot {s.snapshot_id} has no operation."
            yield problem("metadata-incomplete", place, text, field="operation")
        if s.schema_id is None and metadata.requires_snapshot_parts:
            text = f"Snapshot {s.snapshot_id} has no schema-id: iceexplore shows it with the table's current schema."
            yield problem("metadata-incomplete", place, text, field="schema-id")


def _columns(metadata: TableMetadata, where: str) -> Iterator[Problem]:
    last = metadata.last_column_id
    for schema in metadata.schemas:
        place = f"{where}#schema {schema.schema_id}"
        for name, found in schema.walk():
            number = found.field_id
            if number == 0 or number >= _RESERVED:
                text = (
                    f"Column {name!r} has field id {number}, which is {'not positive' if number == 0 else 'reserved'}."
                )
                yield problem("field-id-reserved", place, text, field="id", found=number)
            elif last is not None and number > last:
                text = (
                    f"Column {name!r} has field id {number}, above last-column-id {last}: a new column may get the "
                    "same field id."
                )
                yield problem("field-id-reserved", place, text, field="last-column-id", found=last, expected=number)


def _sources(metadata: TableMetadata, where: str) -> Iterator[Problem]:
    """Check for partition fields whose source column the current schema lacks."""
    current = {f.field_id for _, f in metadata.schema().walk()}
    if not current:
        return
    for spec in metadata.partition_specs:
        gone = [f for f in spec.fields if not parse_transform(f.transform).is_void and not set(f.source_ids) <= current]
        if gone:
            names = ", ".join(f.name for f in gone)
            text = f"Partition spec {spec.spec_id} has fields whose source columns were dropped: {names}."
            place = f"{where}#spec {spec.spec_id}"
            yield problem("spec-source-dropped", place, text, field="source-id", found=gone[0].source_ids[0])
