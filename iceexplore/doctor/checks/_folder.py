"""Check the folder of metadata files: the version hint, newer files, other tables' files, and lost commits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from iceexplore.doctor.checks._metadata_file import files_to_compare
from iceexplore.doctor.examination._examination import Examination
from iceexplore.doctor.model._finding import finding_of
from iceexplore.errors import FileMissingError, IceexploreError, OutsideRootsError, Problem, problem
from iceexplore.graph import TableState, amount
from iceexplore.metadata import format_ms
from iceexplore.storage import MetadataVersion, OverlayStorage, list_versions, parse_document, same_location

__all__ = ["check_folder"]

HINT = "version-hint.text"
#: The maximum number of other metadata files to open.
_MOST_OPENED = 20
_BY_VERSION = re.compile(r"v\d+(?:\.gz)?\.metadata\.json(?:\.gz)?")


def check_folder(examination: Examination) -> None:
    """Report contradictions between the examined metadata file, the version hint and other metadata files.

    Also report other files of the folder that could not be read, a metadata file whose name does not fit its
    compression, and a table that was moved.
    """
    state = examination.state
    # Problems of other files in the folder, found when the metadata file was chosen: a wrong version hint, or metadata
    # files that are ambiguous or cannot be read.
    met = [
        p for p in state.problems if p.where.partition("#")[0] != state.metadata_location and _in_folder(state, p.where)
    ]
    of_hint = [p for p in met if p.where.endswith(HINT)]
    for item in met:
        if item not in of_hint:
            examination.report(item)
    versions = None
    try:
        versions = [] if state.storage.is_extracted else list_versions(state.opened)
    except IceexploreError as error:
        examination.cannot_know("metadata files in the folder", str(error))
    if _is_simulated(state):
        of_hint = []
    hint = list(_hint(state, versions)) if versions else []
    for item in of_hint if not hint else ():
        examination.report(item, modes=(12,))
    if not versions:
        return
    for item in (*hint, *_compression(state), *_moved(state)):
        examination.report(item)
    reported = {state.storage.place(item.where) for item in met}
    versions = [v for v in versions if state.storage.place(v.location) not in reported]
    documents = _documents(examination, versions)
    for item in (*_uuids(state, documents), *_newer(state, documents), *_lost(state, documents)):
        examination.report(item)


def _in_folder(state: TableState, where: str) -> bool:
    # In a moved table, `where` may be a location from before the move, as the metadata has it, or a real location.
    # `Storage.place` converts either kind to a real location, so that the folders can be compared.
    folder = state.storage.place(state.metadata_location).rpartition("/")[0]
    return where.endswith((HINT, ".json", ".gz")) and state.storage.place(where).rpartition("/")[0] == folder


def _is_simulated(state: TableState) -> bool:
    """Return whether a simulation wrote the metadata file: the version hint then belongs to the original table."""
    return isinstance(state.storage, OverlayStorage) and state.storage.has(state.metadata_location)


# The hint -------------------------------------------------------------------------------------------------------------


def _hint(state: TableState, versions: Sequence[MetadataVersion]) -> Iterator[Problem]:
    """Check the version hint: it must exist and name the newest metadata file.

    It is checked only for tables that need it: those that are not in a catalog, and whose metadata files are named by
    their version (``v3.metadata.json``). Simulated tables are not checked.

    Parameters
    ----------
    versions
        All metadata files of the table.
    """
    name = state.metadata_location.rpartition("/")[2]
    if not _BY_VERSION.fullmatch(name) or state.opened.catalog_table is not None:
        return
    if _is_simulated(state):
        return
    storage = state.storage
    folder = storage.folder_of(state.metadata_location)
    place = f"{state.metadata_location.rpartition('/')[0]}/{HINT}"
    newest = max((v.number for v in versions if v.number is not None and _BY_VERSION.fullmatch(v.name)), default=None)
    try:
        text = storage.read_real(f"{folder}/{HINT}", kind="metadata", most=64 << 10).decode("utf-8", "replace").strip()
    except FileMissingError:
        missing = "There is no version-hint.text: some engines cannot open the table, others list the folder each time."
        yield problem("hint-missing", place, missing, expected=newest)
        return
    except IceexploreError as error:
        yield problem("hint-invalid", place, f"version-hint.text cannot be read: {error}", expected=newest)
        return
    if not text:
        missing = "version-hint.text is empty: some engines cannot open the table, others list the folder each time."
        yield problem("hint-missing", place, missing, expected=newest)
        return
    if not text.isdigit():
        yield problem(
            "hint-invalid", place, "version-hint.text holds no version number.", found=text[:80], expected=newest
        )
        return
    number = int(text[:18])
    known = {v.number for v in versions}
    if number not in known:
        yield problem(
            "hint-invalid",
            place,
            "version-hint.text names a version that does not exist.",
            found=number,
            expected=newest,
        )
    elif newest is not None and number < newest:
        missing = (
            f"version-hint.text names version {number}, but {newest} exists: readers that trust the hint see old rows."
        )
        yield problem("hint-stale", place, missing, found=number, expected=newest)


def _compression(state: TableState) -> Iterator[Problem]:
    """Check whether the name of the metadata file shows if it is compressed: ``.gz`` in the name of gzip files only.

    Iceberg Java decides by the name whether to decompress the file, and fails if the name is wrong.
    """
    location = state.metadata_location
    try:
        head = state.storage.read(location, kind="metadata", offset=0, length=4)
    except (IceexploreError, TypeError):
        return
    packed = bytes(head[:2]) == b"\x1f\x8b"
    named = ".gz" in location.rpartition("/")[2]
    if packed != named:
        has, lacks = ("gzip", "does not say so") if packed else ("plain JSON", "names gzip")
        text = (
            f"The metadata file is {has}, but its name {lacks}: Iceberg's Java library chooses the codec by the name, "
            "and fails."
        )
        yield problem("metadata-compression", location, text, found=has, expected="gzip" if named else "plain JSON")


def _moved(state: TableState) -> Iterator[Problem]:
    moved = dict(state.storage.moved)
    if moved:
        old, new = next(iter(moved.items()))
        text = (
            "The table was copied or moved, but its metadata still has the old absolute paths: other engines look for "
            "its files in the old place."
        )
        yield problem("table-moved", state.metadata_location, text, found=old, expected=new)


# Other metadata files -------------------------------------------------------------------------------------------------

Document = tuple[MetadataVersion, dict[str, Any]]


def _documents(examination: Examination, versions: Sequence[MetadataVersion]) -> list[Document]:
    """Open and parse metadata files of the table other than the examined one, and return them.

    At most `_MOST_OPENED` are opened (`files_to_compare` chooses them). Files that cannot be read are reported and left
    out.

    Parameters
    ----------
    versions
        The metadata files to choose from. The examined one may be among them.
    """
    state = examination.state
    others, left_out = files_to_compare(state.opened, versions, _MOST_OPENED)
    if left_out is not None:
        examination.cannot_know("some of the other metadata files", left_out)
    found: list[Document] = []
    for version in others:
        try:
            document, _ = parse_document(state.storage.read(version.location, kind="metadata"), version.location)
        except IceexploreError as error:
            item = problem(
                "file-corrupt",
                version.location,
                f"Another metadata file of the table cannot be read: {error}",
                severity="warning",
            )
            examination.report(replace(finding_of(item, modes=(10, 13)), severity="untidy"))
            continue
        found.append((version, document))
    return found


def _uuids(state: TableState, documents: Sequence[Document]) -> Iterator[Problem]:
    own = (state.metadata.table_uuid or "").lower()
    for version, document in documents:
        uuid = document.get("table-uuid")
        if own and isinstance(uuid, str) and uuid.lower() != own:
            text = (
                f"{version.name}, in the same folder, has another table-uuid: two tables share the folder, or the "
                "table was dropped and created again. Cleaning up one of them may remove files of the other."
            )
            yield problem("table-uuid-differs", version.location, text, field="table-uuid", found=uuid, expected=own)
            return


def _newer(state: TableState, documents: Sequence[Document]) -> Iterator[Problem]:
    """Report a newer metadata file: one whose metadata log names the metadata file that is examined.

    The catalog or the version hint then points to an old state of the table. Only one such file is reported.
    """
    number = state.opened.version
    for version, document in documents:
        log = document.get("metadata-log")
        names = [e.get("metadata-file") for e in log if isinstance(e, dict)] if isinstance(log, list) else []
        follows = any(isinstance(n, str) and same_location(n, state.metadata_location) for n in names)
        if not follows or document.get("table-uuid") != state.metadata.raw.get("table-uuid"):
            continue
        if number is not None and version.number is not None and version.number < number:
            continue
        lacking = _snapshot_ids(document) - {s.snapshot_id for s in state.metadata.snapshots}
        text = (
            f"{version.name} was written after this metadata file and continues its history"
            + (f" with {amount(len(lacking), 'more snapshot')}" if lacking else "")
            + ": the catalog or version hint points to an old state, and maintenance may remove newer files."
        )
        yield problem("metadata-newer", state.metadata_location, text, found=version.name)
        return


def _lost(state: TableState, documents: Sequence[Document]) -> Iterator[Problem]:
    """Report the first commit that was lost because another commit overwrote it.

    Each metadata file that the metadata log names is compared with the next one in the log; the last one is compared
    with the examined metadata file. A commit is lost if the current snapshot of a file is missing from the next file:
    even a rollback and the expiration of snapshots keep the snapshot that was current until then. So the commit that
    wrote the next file was not based on the file before it.

    If no lost commit is found, `_unlogged` checks the metadata files that the log does not name.

    Parameters
    ----------
    documents
        The other metadata files that were opened. Files of the log that are not among them are skipped.
    """
    logged = [e.metadata_file for e in state.metadata.metadata_log]
    by_place = {version.location: document for version, document in documents}

    def document_of(location: str) -> dict[str, Any] | None:
        return next((d for place, d in by_place.items() if same_location(place, location)), None)

    chain = [document_of(location) for location in logged] + [dict(state.metadata.raw)]
    for before, after, location in zip(chain, chain[1:], logged, strict=False):
        if before is None or after is None or before.get("table-uuid") != after.get("table-uuid"):
            continue
        current = before.get("current-snapshot-id")
        if not isinstance(current, int) or current == -1 or current in _snapshot_ids(after):
            continue
        if not _list_exists(state, before, current):
            continue  # the snapshot's manifest list does not exist: the table was rolled back because of this
        yield _lost_problem(state, location, before, current)
        return
    yield from _unlogged(state, documents, logged)


def _unlogged(state: TableState, documents: Sequence[Document], logged: Sequence[str]) -> Iterator[Problem]:
    """Report an older metadata file that the metadata log does not name and whose current snapshot the table lacks.

    Such a file is left if two commits were based on the same metadata file: the table has only the changes of one of
    them, and the file has the changes of the other, which are lost. Only the first such file is reported.

    Parameters
    ----------
    documents
        The other metadata files that were opened.
    logged
        The locations of the metadata files that the metadata log names.
    """
    known = {s.snapshot_id for s in state.metadata.snapshots} | {e.snapshot_id for e in state.metadata.snapshot_log}
    oldest = min((s.timestamp_ms for s in state.metadata.snapshots), default=None)
    number = state.opened.version
    for version, document in documents:
        if any(same_location(version.location, place) for place in logged):
            continue
        if document.get("table-uuid") != state.metadata.raw.get("table-uuid"):
            continue
        if number is None or version.number is None or version.number > number:
            continue
        current = document.get("current-snapshot-id")
        snapshot = next((s for s in _snapshots(document) if s.get("snapshot-id") == current), None)
        when = None if snapshot is None else snapshot.get("timestamp-ms")
        if not isinstance(current, int) or current in known or not isinstance(when, int) or oldest is None:
            continue
        if when > oldest and len(logged) and version.number >= _first_number(logged):
            if not _list_exists(state, document, current):
                continue
            yield _lost_problem(state, version.location, document, current)
            return


def _first_number(logged: Sequence[str]) -> int:
    numbers = [int(m[1]) for place in logged if (m := re.match(r"v?(\d+)", place.rpartition("/")[2]))]
    return min(numbers, default=0)


def _lost_problem(state: TableState, location: str, before: dict[str, Any], current: int) -> Problem:
    snapshot = next((s for s in _snapshots(before) if s.get("snapshot-id") == current), {})
    when = snapshot.get("timestamp-ms")
    time = f" of {format_ms(when)}" if isinstance(when, int) else ""
    text = (
        f"Snapshot {current}{time} was current in {location.rpartition('/')[2]}, but is missing from the "
        "table. No commit removes the current snapshot, so another writer must have overwritten the commit "
        f"that wrote that file: the changes of snapshot {current} are lost."
    )
    return problem("snapshot-lost", location, text, field="current-snapshot-id", found=current)


def _list_exists(state: TableState, document: dict[str, Any], snapshot_id: int) -> bool:
    mine = [s for s in _snapshots(document) if s.get("snapshot-id") == snapshot_id]
    lists = [s.get("root-manifest") or s.get("manifest-list") for s in mine]
    try:
        return not lists or not isinstance(lists[0], str) or state.storage.exists(lists[0])
    except OutsideRootsError:
        # The manifest list is outside the folders from which the table's files may be read: the table is a copy, and
        # this manifest list was not copied.
        return False
    except IceexploreError:
        return True


def _snapshots(document: dict[str, Any]) -> list[dict[str, Any]]:
    found = document.get("snapshots")
    return [s for s in found if isinstance(s, dict)] if isinstance(found, list) else []


def _snapshot_ids(document: dict[str, Any]) -> set[int]:
    return {i for s in _snapshots(document) if isinstance(i := s.get("snapshot-id"), int)}
