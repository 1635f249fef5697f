"""Find the commit that introduced each fault, with as few reads as possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.doctor.examination._examination import Examination, since_snapshot
from iceexplore.doctor.model._finding import LISTED_SINCE, Finding, Since
from iceexplore.errors import PROBLEM_KINDS, IceexploreError, Problems
from iceexplore.manifests import Manifest, ManifestReader
from iceexplore.metadata import Snapshot, ancestry, in_order, parse_table_metadata, parse_version
from iceexplore.storage import canonical, parse_document

__all__ = ["Dates"]

T = TypeVar("T")
#: Identifies a fault of a metadata file: the problem's code, its field, and the kind of the file's part (see `_part`).
_Key = tuple[str, str | None, str]
#: Codes of faults that no commit introduces: a file was deleted, moved or truncated outside any commit, and the
#: metadata does not record when.
_UNDATED = frozenset({"file-missing", "outside-roots", "table-moved", "location-guessed", "hint-invalid", "hint-stale"})
#: Columns of manifest lists on which readers rely. Each later manifest list copies their values for a manifest, so a
#: wrong value was introduced by the first list that has it.
_CARRIED = ("file_size_in_bytes", "sequence_number", "manifest_stats", "partition_summaries", "partition_spec_id")


class Dates:
    """Finds the commits that introduced the faults of one examination.

    A manifest never changes. The snapshot that added a manifest therefore introduced its faults, and those of its
    entries.

    A manifest list has a row for each manifest, and the next list copies the rows of the manifests that it keeps. For a
    fault in such a row, bisection over the ancestors of the snapshot finds the first list that has the row.

    For a fault of the metadata file, bisection over the metadata log finds the first metadata file that has the fault.

    A fault may be older than the commit that is found, if older manifest lists or metadata files are lost, or if the
    metadata log no longer names them: see `Since.at_latest`.
    """

    def __init__(self, examination: Examination) -> None:
        self._examination = examination
        self._documents: dict[str, frozenset[_Key] | None] = {}

    def dated(self, finding: Finding) -> Finding:
        """Return a finding, and those in its `follows`, with the commit that introduced each.

        The ids of their affected snapshots are sorted, oldest first.
        """
        follows = tuple(self.dated(one) for one in finding.follows)
        since = finding.since or self._since(finding)
        snapshots = tuple(sorted(finding.snapshots, key=lambda one: self._order.get(one, -1)))
        return replace(finding, since=since, snapshots=snapshots, follows=follows)

    def _since(self, finding: Finding) -> Since | None:
        if finding.code in LISTED_SINCE and canonical(finding.where) in self._rows:
            return self._of_manifest(canonical(finding.where))
        # A table's health declines over many commits: no single commit introduces such a finding.
        if finding.code in _UNDATED or PROBLEM_KINDS[finding.code].health:
            return None
        if finding.location.endswith((".json", ".gz")):
            return self._of_document(finding)
        name = canonical(finding.location)
        if name in self._rows:
            listed = (finding.field or "").startswith("5")  # the field ids 500 to 519 are those of manifest lists
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
    def _order(self) -> dict[int, int]:
        return {snapshot.snapshot_id: place for place, snapshot in enumerate(self._line)}

    @cached_property
    def _rows(self) -> dict[str, tuple[Snapshot, int]]:
        """For each manifest, by canonical location: the newest examined snapshot that lists it, and its row there.

        The row is an index in the manifest list or root of that snapshot.
        """
        found: dict[str, tuple[Snapshot, int]] = {}
        for snapshot in self._examination.snapshots:
            for row, name in enumerate(
                build.to_pylist(self._examination.roots[snapshot.snapshot_id].entries["location"])
            ):
                if name:
                    found[canonical(name)] = snapshot, row
        return found

    def _row_named(self, finding: Finding, snapshot: Snapshot) -> str | None:
        """Return the canonical location of a manifest: the one whose row in the snapshot's manifest list has the fault.

        Return None if the finding is about the whole list, if the list has no such row, or if the row has no location.
        """
        kind, _, number = finding.where.partition("#")[2].partition(" ")
        root = self._examination.roots.get(snapshot.snapshot_id)
        if kind != "entry" or not number.isdecimal() or root is None or int(number) >= len(root.entries):
            return None
        name = root.entries["location"][int(number)].as_py()
        return canonical(name) if name and canonical(name) in self._rows else None

    def _of_manifest(self, name: str) -> Since:
        """Return the snapshot that added a manifest, as the manifest's row in the manifest list states it.

        If the table no longer has this snapshot, return the first snapshot that lists the manifest.
        """
        snapshot, row = self._rows[name]
        added_by = self._root(snapshot).entries["snapshot_id"][row].as_py()
        known = next((s for s in self._line if s.snapshot_id == added_by), None)
        return self._first_list(snapshot, name, None) if known is None else since_snapshot(known)

    def _of_row(self, name: str) -> Since:
        """Return the commit that first wrote the row that a manifest has in the newest examined manifest list.

        Earlier rows of the manifest that have other values in the columns `_CARRIED` are not the same row.
        """
        snapshot, row = self._rows[name]
        return self._first_list(snapshot, name, self._root(snapshot).entries.select(list(_CARRIED)).slice(row, 1))

    def _first_list(self, snapshot: Snapshot, name: str, values: pa.Table | None) -> Since:
        """Return the commit of the first ancestor whose manifest list has a row for a manifest.

        If values are given, the row must have these values in the columns `_CARRIED`. An ancestor that has expired may
        have had the row earlier: return an empty `Since` if this cannot be excluded.
        """
        unread: set[int] = set()

        def has(one: Snapshot) -> bool:
            root = self._root(one)
            if not root.dialect:
                unread.add(one.snapshot_id)
                return False
            names = build.to_pylist(root.entries["location"])
            row = next((i for i, other in enumerate(names) if other and canonical(other) == name), None)
            if row is None or values is None:
                return row is not None
            return bool(root.entries.select(list(_CARRIED)).slice(row, 1).to_pylist() == values.to_pylist())

        line = list(ancestry(self._examination.state.metadata, snapshot))[::-1]
        first = _first(line, has) or snapshot
        if first is line[0] and first.parent_snapshot_id not in (None, -1) and not self._adds(first, name):
            return Since()  # unknown: the parent has expired, and may have had the fault
        return replace(since_snapshot(first), at_latest=bool(unread))

    def _adds(self, snapshot: Snapshot, name: str) -> bool:
        entries = self._root(snapshot).entries.select(["location", "snapshot_id"]).to_pylist()
        return any(
            row["snapshot_id"] == snapshot.snapshot_id and row["location"] and canonical(row["location"]) == name
            for row in entries
        )

    def _root(self, snapshot: Snapshot) -> Manifest:
        """Return a snapshot's manifest list or root manifest.

        For a snapshot that is not examined, it is read here, and problems found in it are not reported.
        """
        found = self._examination.roots.get(snapshot.snapshot_id)
        return self._quiet.root(snapshot) if found is None else found

    @cached_property
    def _quiet(self) -> ManifestReader:
        state = self._examination.state
        return ManifestReader(state.storage, state.metadata, Problems())

    def _of_document(self, finding: Finding) -> Since:
        """Return the first metadata file that has a fault of the examined metadata file.

        The files that the metadata log names are searched, and then the examined file. If parsing cannot find the
        fault, return the examined file, with ``at_latest=True``.
        """
        metadata = self._examination.state.metadata
        key = finding.code, finding.field, _part(finding.where)
        if key not in _problems_of(dict(metadata.raw), finding.location):
            # Parsing does not find this fault, so it cannot be searched for in older metadata files.
            return Since(metadata_file=finding.location, at_latest=True)
        files = [*(e.metadata_file for e in metadata.metadata_log), finding.location]
        unread = False

        def has(location: str) -> bool:
            nonlocal unread
            found = self._logged(location)
            unread |= found is None
            return location == finding.location or (found is not None and key in found)

        first = _first(files, has) or finding.location
        # Older files, which the log no longer names, may have had the fault, too.
        trimmed = first == files[0] and (parse_version(first) or 0) > 1
        return Since(metadata_file=first, at_latest=unread or trimmed)

    def _logged(self, location: str) -> frozenset[_Key] | None:
        """Return the faults of an older metadata file, which the metadata log names; None if it cannot be read."""
        if location not in self._documents:
            try:
                content = self._examination.state.storage.read(location, kind="metadata")
                document, _ = parse_document(content, location)
                self._documents[location] = _problems_of(document, location)
            except IceexploreError:
                self._documents[location] = None
        return self._documents[location]


def _part(where: str) -> str:
    """Return the kind of the file's part that a place names: ``ref`` for ``v5.metadata.json#ref audited``."""
    return where.partition("#")[2].split(" ")[0]


def _problems_of(document: dict[str, Any], location: str) -> frozenset[_Key]:
    problems = Problems()
    try:
        parse_table_metadata(document, location, problems)
    except IceexploreError:
        return frozenset()
    return frozenset((p.code, p.field, _part(p.where)) for p in problems)


def _first(line: Sequence[T], has: Callable[[T], bool]) -> T | None:
    """Return the first item for which ``has`` is true; None if there is none.

    Bisection finds the item. It requires that, if ``has`` is true for an item, it is also true for all later items.
    """
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
