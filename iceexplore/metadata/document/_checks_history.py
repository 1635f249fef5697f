"""Check the snapshots and logs of one metadata file for contradictions: parents, sequence numbers, row ids, times.

Only faults that no correct writer produces are reported. These are valid: expired parents, snapshots without
sequence numbers (read as 0, also in an upgraded table), clocks that differ by a minute.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from iceexplore.metadata.document._json_object import Reporter
from iceexplore.metadata.document._model import Snapshot, TableMetadata
from iceexplore.storage import same_location

__all__ = ["check_history"]

#: Java accepts log entries out of order by this much: clocks of two writers differ.
_CLOCKS_MS = 60_000


def check_history(metadata: TableMetadata, location: str, reporter: Reporter) -> None:
    """Report snapshots that are their own ancestors, impossible sequence numbers and row ids, and logs out of order."""
    by_id = {s.snapshot_id: s for s in metadata.snapshots}
    for cycle in _cycles(by_id):
        text = "is its own parent" if len(cycle) == 1 else f"is its own ancestor, through {len(cycle) - 1} others"
        reporter.at(f"snapshot {cycle[0]}").error(
            f"snapshot {cycle[0]} {text}: its history has no beginning", "parent-snapshot-id"
        )
    if metadata.format_version > 1:
        _check_sequence_numbers(metadata, by_id, reporter)
    if metadata.format_version > 2:
        _check_row_ids(metadata, reporter)
    _check_logs(metadata, location, reporter)


def _cycles(by_id: Mapping[int, Snapshot]) -> Iterator[list[int]]:
    done: set[int] = set()
    for start in by_id:
        way: dict[int, None] = {}
        at: int | None = start
        while at is not None and at in by_id and at not in done and at not in way:
            way[at] = None
            at = by_id[at].parent_snapshot_id
        if at in way:
            ids = list(way)
            yield ids[ids.index(at) :]
        done.update(way)


def _check_sequence_numbers(metadata: TableMetadata, by_id: Mapping[int, Snapshot], reporter: Reporter) -> None:
    last = metadata.last_sequence_number
    later = [s for s in metadata.snapshots if s.sequence_number > last]
    if later:
        newest = max(later, key=lambda s: s.sequence_number)
        reporter.at(f"snapshot {newest.snapshot_id}").error(
            f"sequence-number of snapshot {newest.snapshot_id} is {newest.sequence_number}{_others(later)}, but "
            f"the table's last-sequence-number is {last}: Iceberg's Java refuses the table",
            "sequence-number",
        )
    for s in metadata.snapshots:
        part = reporter.at(f"snapshot {s.snapshot_id}")
        parent = None if s.parent_snapshot_id is None else by_id.get(s.parent_snapshot_id)
        if parent is not None and parent is not s and 0 < s.sequence_number <= parent.sequence_number:
            part.warning(
                f"sequence-number of snapshot {s.snapshot_id} is {s.sequence_number}, not greater than "
                f"{parent.sequence_number} of its parent {parent.snapshot_id}: deletes may apply to the wrong files",
                "sequence-number",
            )


def _check_row_ids(metadata: TableMetadata, reporter: Reporter) -> None:
    following = metadata.next_row_id
    if following is None:  # a missing next-row-id has been reported
        return
    ends = [(s, s.first_row_id + (s.added_rows or 0)) for s in metadata.snapshots if s.first_row_id is not None]
    later = [(s, end) for s, end in ends if end > following]
    if later:
        newest, end = max(later, key=lambda pair: pair[1])
        reporter.at(f"snapshot {newest.snapshot_id}").error(
            f"snapshot {newest.snapshot_id} assigned row ids up to {end - 1}{_others(later)}, but next-row-id "
            f"of the table is {following}: ids will be assigned twice",
            "next-row-id",
        )


def _others(found: list[Any]) -> str:
    """Return a suffix with the number of such snapshots: one problem reports them all, as there may be 100,000."""
    return "" if len(found) == 1 else f" (one of {len(found)} such snapshots)"


def _check_logs(metadata: TableMetadata, location: str, reporter: Reporter) -> None:
    for key, times in (
        ("snapshot-log", [e.timestamp_ms for e in metadata.snapshot_log]),
        ("metadata-log", [e.timestamp_ms for e in metadata.metadata_log]),
    ):
        back = sum(after < before - _CLOCKS_MS for before, after in pairwise(times))
        if back:
            reporter.warning(f"{key} is out of order: {back} of its entries are older than the entry before", key)
    name = location.rpartition("/")[2]  # compare names first: normalizing locations is slow, and logs are long
    own = [e.metadata_file for e in metadata.metadata_log if e.metadata_file.endswith(name)]
    if found := [place for place in own if same_location(place, location)]:
        text = "metadata-log should list earlier metadata files, but lists this file itself"
        reporter.warning(text, "metadata-log", found=found[0])
