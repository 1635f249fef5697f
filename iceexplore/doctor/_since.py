"""Date findings: the commit that introduced each fault, found with as few reads as possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

from iceexplore.arrow import build
from iceexplore.doctor.examination._examination import Examination, since_snapshot
from iceexplore.doctor.model._finding import Finding, Since
from iceexplore.errors import IceexploreError, Problems
from iceexplore.metadata import Snapshot, ancestry, in_order, parse_table_metadata
from iceexplore.storage import canonical, parse_document

__all__ = ["Dates"]

T = TypeVar("T")
#: Codes of faults that a commit does not introduce: files are deleted, moved or cut at a time that nothing records.
_UNDATED = frozenset({"file-missing", "outside-roots", "table-moved", "location-guessed", "hint-invalid", "hint-stale"})
#: Columns of a list's row that readers rely on; a row that a later list carries on has the same values.
_CARRIED = ("file_size_in_bytes", "sequence_number", "manifest_stats", "partition_summaries", "partition_spec_id")


class Dates:
    """The commits of one examination's findings.

    A manifest never changes, so that its faults, and those of its entries, date to the snapshot that added it. A row of
    a manifest list is carried from list to list: bisection over the ancestors finds the first list that has it. A fault
    of the metadata file dates to the first file of the metadata log that has it, found by bisection, too. Lists and
    metadata files that are lost end the search: the date is then the latest that is possible.
    """

    def __init__(self, examination: Examination) -> None:
        self._examination = examination

    def dated(self, finding: Finding) -> Finding:
        """Return a finding, and what follows from it, with the commit that introduced it."""
        follows = tuple(self.dated(one) for one in finding.follows)
        since = finding.since or self._since(finding)
        return replace(finding, since=since, follows=follows)

    def _since(self, finding: Finding) -> Since | None:
        if finding.code in _UNDATED:
            return None
        if finding.location.endswith((".json", ".gz")):
            return self._of_document(finding)
        name = canonical(finding.location)
        if name in self._rows:
            listed = (finding.field or "").startswith("5")  # 500 to 519 are fields of manifest lists
            return self._of_row(name) if listed else self._of_manifest(name)
        affected = set(finding.snapshots)
        oldest = next((s for s in self._line if s.snapshot_id in affected), None)
        if oldest is None:
            return None
        row = self._row_named(finding, oldest)
        return since_snapshot(oldest) if row is None else self._of_row(row)

    @cached_property
    def _line(self) -> list[Snapshot]:
        """All snapshots of the table, oldest first."""
        return in_order(self._examination.state.metadata.snapshots)

    @cached_property
    def _rows(self) -> dict[str, tuple[Snapshot, int]]:
        """The newest examined snapshot that lists each manifest, and the manifest's row there."""
        found: dict[str, tuple[Snapshot, int]] = {}
        for snapshot in self._examination.snapshots:
            for row, name in enumerate(
                build.to_pylist(self._examination.roots[snapshot.snapshot_id].entries["location"])
            ):
                if name:
                    found[canonical(name)] = snapshot, row
        return found

    def _row_named(self, finding: Finding, snapshot: Snapshot) -> str | None:
        """Return the manifest of the list's row that a finding is about; None if it is about the whole list."""
        kind, _, number = finding.where.partition("#")[2].partition(" ")
        root = self._examination.roots.get(snapshot.snapshot_id)
        if kind != "entry" or not number.isdecimal() or root is None or int(number) >= len(root.entries):
            return None
        name = root.entries["location"][int(number)].as_py()
        return canonical(name) if name and canonical(name) in self._rows else None

    def _of_manifest(self, name: str) -> Since:
        """Return the snapshot that added a manifest."""
        snapshot, row = self._rows[name]
        added_by = self._examination.roots[snapshot.snapshot_id].entries["snapshot_id"][row].as_py()
        known = next((s for s in self._line if s.snapshot_id == added_by), None)
        return Since() if known is None else since_snapshot(known)

    def _of_row(self, name: str) -> Since:
        """Return the first snapshot whose list has a manifest's row with the same values."""
        snapshot, row = self._rows[name]
        state = self._examination.state
        values = self._examination.roots[snapshot.snapshot_id].entries.select(list(_CARRIED)).slice(row, 1).to_pylist()

        def has(one: Snapshot) -> bool:
            entries = state.reader.root(one).entries
            for i, other in enumerate(build.to_pylist(entries["location"])):
                if other and canonical(other) == name:
                    return bool(entries.select(list(_CARRIED)).slice(i, 1).to_pylist() == values)
            return False

        line = list(ancestry(state.metadata, snapshot))[::-1]
        return since_snapshot(_first(line, has) or snapshot)

    def _of_document(self, finding: Finding) -> Since:
        """Return the first file of the metadata log that has a fault of the metadata file."""
        state = self._examination.state

        def has(location: str) -> bool:
            try:
                content = state.storage.read(location, kind="metadata")
                document, _ = parse_document(content, location)
            except IceexploreError:
                return False
            return _reports(document, location, finding)

        own = Since(metadata_file=finding.location)
        if not _reports(dict(state.metadata.raw), state.metadata_location, finding):
            return own  # parsing alone does not show it
        files = [e.metadata_file for e in state.metadata.metadata_log]
        return Since(metadata_file=_first([*files, finding.location], has) or finding.location)


def _reports(document: dict[str, Any], location: str, finding: Finding) -> bool:
    problems = Problems()
    try:
        parse_table_metadata(document, location, problems)
    except IceexploreError:
        return False
    part = finding.where.partition("#")[2].split(" ")[0]
    return any(
        p.code == finding.code and p.field == finding.field and p.where.partition("#")[2].split(" ")[0] == part
        for p in problems
    )


def _first(line: Sequence[T], has: Callable[[T], bool]) -> T | None:
    """Return the first item of a line that has something which all later ones have, too; None if the last lacks it."""
    low, high = 0, len(line) - 1
    if high < 0 or not has(line[high]):
        return None
    while low < high:
        middle = (low + high) // 2
        if has(line[middle]):
            high = middle
        else:
            low = middle + 1
    return line[low]
