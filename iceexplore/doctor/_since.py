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
#: Identifies a fault of a metadata file, to look for the same fault in older metadata files: the problem's code, its
#: field, and the kind of object that has the fault, such as ``ref`` or ``snapshot`` (see `_part`).
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
        """Return a copy of a finding with the commit that introduced the fault, as `Finding.since`.

        The copy's `Finding.snapshots` are sorted, oldest first. The findings in its `Finding.follows` are also replaced
        by such copies.
        """
        follows = tuple(self.dated(one) for one in finding.follows)
        since = finding.since or self._since(finding)
        snapshots = tuple(sorted(finding.snapshots, key=lambda one: self._order.get(one, -1)))
        return replace(finding, since=since, snapshots=snapshots, follows=follows)

    def _since(self, finding: Finding) -> Since | None:
        if finding.code in LISTED_SINCE and canonical(finding.where) in self._rows:
            return self._of_manifest(canonical(finding.where))
        # Health findings, such as many small files, result from many commits: no single commit introduces them.
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
        """Return the canonical location of the manifest that a faulty entry of a manifest list describes.

        For example, if the finding's place is ``snap-1.avro#entry 3``, return the location of the manifest that entry 3
        of the snapshot's manifest list describes. Return None if the place has no ``#entry``, if the list has no such
        entry, or if the entry has no location.
        """
        kind, _, number = finding.where.partition("#")[2].partition(" ")
        root = self._examination.roots.get(snapshot.snapshot_id)
        if kind != "entry" or not number.isdecimal() or root is None or int(number) >= len(root.entries):
            return None
        name = root.entries["location"][int(number)].as_py()
        return canonical(name) if name and canonical(name) in self._rows else None

    def _of_manifest(self, name: str) -> Since:
        """Return the commit that added a manifest.

        The manifest's row in the manifest list has the id of the snapshot that added it. If the table does not have
        this snapshot any more, return the commit of the oldest snapshot that lists the manifest, see `_first_list`.

        Parameters
        ----------
        name
            The manifest's canonical location.
        """
        snapshot, row = self._rows[name]
        added_by = self._root(snapshot).entries["snapshot_id"][row].as_py()
        known = next((s for s in self._line if s.snapshot_id == added_by), None)
        return self._first_list(snapshot, name, None) if known is None else since_snapshot(known)

    def _of_row(self, name: str) -> Since:
        """Return the commit that introduced the values in a manifest's row in the manifest list, see `_first_list`.

        The row is taken from the newest examined manifest list that has the manifest. The returned commit is the first
        whose manifest list has the same values for the manifest in the columns `_CARRIED`.

        Parameters
        ----------
        name
            The manifest's canonical location.
        """
        snapshot, row = self._rows[name]
        return self._first_list(snapshot, name, self._root(snapshot).entries.select(list(_CARRIED)).slice(row, 1))

    def _first_list(self, snapshot: Snapshot, name: str, values: pa.Table | None) -> Since:
        """Return the commit of the oldest snapshot whose manifest list has a manifest.

        Parameters
        ----------
        snapshot
            A snapshot whose manifest list has the manifest. It and its ancestors are searched.
        name
            The manifest's canonical location.
        values
            A table with the columns `_CARRIED` and one row. Manifest lists in which the manifest's row has other values
            are treated as if they did not have the manifest. If None, the values do not matter.

        Returns
        -------
        Since
            The commit; ``at_latest`` is True if a manifest list could not be read. An empty `Since` if the commit is
            unknown: even the oldest ancestor that the table still has lists the manifest, but did not add it, and the
            parent of this ancestor has expired.
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
            return Since()  # unknown: the parent has expired, and its manifest list may have had the fault, too
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
        """Return the oldest metadata file that has the fault which was found in the examined metadata file.

        Metadata files that the metadata log names are parsed, to see whether parsing finds the same fault in them. If
        the fault is not found by parsing, but by another check, return the examined file, with ``at_latest=True``.
        """
        metadata = self._examination.state.metadata
        key = finding.code, finding.field, _part(finding.where)
        if key not in _problems_of(dict(metadata.raw), finding.location):
            # Another check found this fault. Parsing does not find it, and older metadata files are only parsed.
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
        """Return the faults that parsing finds in a metadata file; None if the file cannot be read.

        Each file is read once.

        Parameters
        ----------
        location
            The file's location, as in the metadata log.
        """
        if location not in self._documents:
            try:
                content = self._examination.state.storage.read(location, kind="metadata")
                document, _ = parse_document(content, location)
                self._documents[location] = _problems_of(document, location)
            except IceexploreError:
                self._documents[location] = None
        return self._documents[location]


def _part(where: str) -> str:
    """Return the kind of object at a place in a metadata file: ``ref`` for ``v5.metadata.json#ref audited``.

    Return an empty text if the place is the whole file.
    """
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
