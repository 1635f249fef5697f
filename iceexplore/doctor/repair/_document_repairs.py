"""Repairs of the metadata file, mostly with values that can be derived from other values in it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from iceexplore.doctor.maintenance._plan import sql_text
from iceexplore.doctor.model._finding import Finding
from iceexplore.doctor.repair._draft import Draft, number_in
from iceexplore.doctor.repair._step import Step
from iceexplore.storage import canonical

__all__ = [
    "assigned_row_ids",
    "copy_table",
    "drop_duplicate_snapshots",
    "drop_refs",
    "drop_statistics",
    "files_of",
    "forget_parents",
    "forget_schema_ids",
    "keep_root_manifests",
    "leave_out_metadata",
    "raise_last_sequence_number",
    "raise_last_updated",
    "raise_next_row_id",
    "restore_metadata",
    "root_of",
    "sort_snapshot_log",
    "step_of",
    "write_document",
    "write_hint",
]

#: Maximum number of SQL statements in a step; a comment counts those that are left out.
_MOST_STATEMENTS = 20


def step_of(title: str, text: str, found: list[Finding], *, certain: bool = True, **values: Any) -> Step:
    modes = tuple(sorted({m for f in found for m in f.modes}))
    codes = tuple(dict.fromkeys(f.code for f in found))
    return Step(title, text, codes, modes, sum(f.count for f in found), certain, **values)


def files_of(found: Iterable[Finding]) -> set[str]:
    """Return the canonical locations of all files in which findings were made."""
    places = (place for one in found for place in (one.location, *one.hits.by_file()))
    return {canonical(place.partition("#")[0]) for place in places}


def drop_refs(draft: Draft, found: list[Finding]) -> Step:
    """Remove branches and tags of snapshots that the table lacks.

    If the table lacks the current snapshot, the snapshot of the branch ``main`` becomes current; without this branch,
    the newest snapshot does.
    """
    known = {number_in(s, "snapshot-id") for s in draft.snapshots()} - {None}
    refs = draft.refs()
    gone = [name for name, ref in refs.items() if number_in(ref, "snapshot-id") not in known]
    draft.document["refs"] = {name: ref for name, ref in refs.items() if name not in gone}
    if number_in(draft.document, "current-snapshot-id") not in known:
        main = draft.document["refs"].get("main")
        newest = max(draft.snapshots(), key=lambda s: number_in(s, "timestamp-ms") or 0, default={})
        at = main["snapshot-id"] if main else number_in(newest, "snapshot-id") or -1
        draft.document["current-snapshot-id"] = at
        if at != -1:
            draft.document["refs"].setdefault("main", {"snapshot-id": at, "type": "branch"})
    names = ", ".join(gone) or "the current snapshot id"
    text = f"Removes or corrects references to snapshots that the table lacks: {names}."
    sql = []
    for name in gone[:_MOST_STATEMENTS]:
        quoted, kind = name.replace("`", "``"), "TAG" if refs[name].get("type") == "tag" else "BRANCH"
        sql.append(f"ALTER TABLE <table> DROP {kind} IF EXISTS `{quoted}`")
    if len(gone) > len(sql):
        sql.append(f"-- and {len(gone) - len(sql):,} more")
    return step_of("Remove refs to snapshots that the table lacks", text, found, sql=tuple(sql))


def drop_duplicate_snapshots(draft: Draft, found: list[Finding]) -> Step:
    """Remove duplicate snapshots.

    Of the snapshots with the same id, keep the first whose manifest list or root manifest exists or, if there is none,
    the first one.
    """
    kept: dict[int | None, dict[str, Any]] = {}
    dropped = 0
    for one in draft.snapshots():
        key = number_in(one, "snapshot-id")
        if key not in kept:
            kept[key] = one
            continue
        dropped += 1
        if not _has_root(draft, kept[key]) and _has_root(draft, one):
            kept[key] = one
    draft.document["snapshots"] = list(kept.values())
    text = (
        f"Removes {dropped:,} of the snapshots with the same id, and keeps the first whose manifest list or root "
        "manifest exists."
    )
    return step_of("Remove duplicate snapshots", text, found, certain=False, rows_back=None, rows_lost=None)


def root_of(snapshot: dict[str, Any]) -> str | None:
    """Return the location of a snapshot's root manifest or, if it has none, of its manifest list.

    None if the snapshot has neither, as in v1 tables whose snapshots list their manifests themselves, or if the value
    is not a string.

    Parameters
    ----------
    snapshot
        The snapshot's JSON object in the metadata file.
    """
    location = snapshot.get("root-manifest") or snapshot.get("manifest-list")
    return location if isinstance(location, str) else None


def _has_root(draft: Draft, snapshot: dict[str, Any]) -> bool:
    """Return whether the manifest list or root manifest of a snapshot exists; ``snapshot`` is its JSON object."""
    location = root_of(snapshot)
    return location is not None and draft.state.storage.exists(location)


def raise_last_sequence_number(draft: Draft, found: list[Finding]) -> Step:
    """Set last-sequence-number to the highest sequence number that a snapshot has."""
    highest = max((number_in(s, "sequence-number") or 0 for s in draft.snapshots()), default=0)
    draft.document["last-sequence-number"] = highest
    text = f"Sets last-sequence-number to {highest}, the highest sequence number of a snapshot."
    return step_of("Raise last-sequence-number", text, found)


def raise_next_row_id(draft: Draft, found: list[Finding]) -> Step:
    """Set next-row-id above all row ids that snapshots have assigned."""
    end = draft.document["next-row-id"] = assigned_row_ids(draft)
    text = f"Sets next-row-id to {end:,}, the first row id after all ranges that snapshots have assigned."
    return step_of("Raise next-row-id", text, found)


def assigned_row_ids(draft: Draft) -> int:
    """Return the first row id after all ranges of row ids that snapshots have assigned."""
    ranges = ((number_in(s, "first-row-id") or 0, number_in(s, "added-rows") or 0) for s in draft.snapshots())
    return max((0, *(first + added for first, added in ranges)))


def sort_snapshot_log(draft: Draft, found: list[Finding]) -> Step:
    """Sort the snapshot log and the metadata log by time."""
    for key in ("snapshot-log", "metadata-log"):
        if key in draft.document:
            draft.document[key] = sorted(draft.objects(key), key=lambda e: number_in(e, "timestamp-ms") or 0)
    text = "Sorts the snapshot log and the metadata log by timestamp: time travel expects this order."
    return step_of("Sort the logs", text, found)


def forget_parents(draft: Draft, found: list[Finding]) -> Step:
    """Remove parent ids of -1, which mean no parent, and metadata log entries that name the opened metadata file."""
    for one in draft.snapshots():
        if one.get("parent-snapshot-id") == -1:
            del one["parent-snapshot-id"]
    own = draft.state.metadata_location
    if "metadata-log" in draft.document:
        draft.document["metadata-log"] = [e for e in draft.objects("metadata-log") if e.get("metadata-file") != own]
    text = (
        "Removes parent-snapshot-id where it is -1, because a snapshot without a parent has no such field. Also "
        "removes the current metadata file from the metadata log."
    )
    return step_of("Remove wrong parent ids and metadata log entries", text, found)


def forget_schema_ids(draft: Draft, found: list[Finding]) -> Step:
    """Remove the schema ids of snapshots whose schema the table lacks; readers then use the current schema."""
    known = {number_in(s, "schema-id") for s in draft.objects("schemas")}
    for one in draft.snapshots():
        if number_in(one, "schema-id") not in known:
            one.pop("schema-id", None)
    text = "Removes schema-id from snapshots whose schema the table no longer has; readers then use the current schema."
    return step_of("Remove ids of missing schemas from snapshots", text, found, certain=False)


def keep_root_manifests(draft: Draft, found: list[Finding]) -> Step:
    """Remove ``manifest-list`` and ``manifests`` from snapshots that also have a readable root manifest."""
    by_id = {s.snapshot_id: s for s in draft.state.metadata.snapshots}
    for one in draft.snapshots():
        snapshot = by_id.get(number_in(one, "snapshot-id") or 0)
        if snapshot is not None and one.get("root-manifest"):
            root = draft.state.reader.root(snapshot)
            if root.dialect.has_root_manifest:
                one.pop("manifest-list", None)
                one.pop("manifests", None)
    text = (
        "Removes manifest-list from snapshots that also have a root-manifest, because a snapshot may have only one of "
        "the two. Readers that used the manifest list now read the root manifest, and may return different rows."
    )
    return step_of("Keep only the root manifest", text, found, certain=False, rows_back=None, rows_lost=None)


def raise_last_updated(draft: Draft, found: list[Finding]) -> Step:
    """Set last-updated-ms to the newest time in the metadata file."""
    times = [number_in(draft.document, "last-updated-ms")]
    for key in ("snapshots", "snapshot-log", "metadata-log"):
        times += [number_in(e, "timestamp-ms") for e in draft.objects(key)]
    draft.document["last-updated-ms"] = max(t or 0 for t in times)
    return step_of("Raise last-updated-ms", "Sets last-updated-ms to the newest time in the metadata file.", found)


def drop_statistics(draft: Draft, found: list[Finding]) -> Step:
    """Remove from the metadata the statistics files that are missing or wrong, or whose snapshot the table lacks."""
    gone = files_of(found)
    for key in ("statistics", "partition-statistics"):
        if key in draft.document:
            draft.document[key] = [
                e for e in draft.objects(key) if canonical(str(e.get("statistics-path"))) not in gone
            ]
    text = (
        "Removes these statistics files from the metadata. Readers can plan scans without them. The Spark procedure "
        "compute_table_stats writes new ones."
    )
    sql = ("CALL <catalog>.system.compute_table_stats('<table>')",)
    return step_of("Remove statistics files", text, found, sql=sql)


def write_hint(draft: Draft, found: list[Finding]) -> Step:
    """Return the step that rewrites the version hint; the hint is written when the plan is saved."""
    _touch(draft)
    text = "The saved copy gets a version-hint.text that names its metadata file."
    number = (found[0].expected or "").strip()
    python = (f"echo {number} > metadata/version-hint.text",) if number.isdigit() else ()
    return step_of("Rebuild the version hint", text, found, python=python)


def write_document(draft: Draft, found: list[Finding]) -> Step:
    """Write the metadata file again, under a name that shows whether it is compressed."""
    _touch(draft)
    text = "Writes the metadata file again, under a name that shows whether it is compressed."
    return step_of("Rewrite the metadata file", text, found)


def restore_metadata(draft: Draft, found: list[Finding]) -> Step:
    """Go back to the metadata file that the table was opened with, because newer metadata files cannot be read."""
    good = draft.state.metadata_location
    _touch(draft)
    text = (
        f"Goes back to {good.rpartition('/')[2]}, the newest metadata file that can be read. Later commits are lost: "
        "run them again."
    )
    sql = (f"CALL <catalog>.system.register_table('<table>', {sql_text(good)})",)
    python = (f"catalog.register_table('<table>', {good!r})",)
    return step_of(
        "Restore the last good metadata", text, found, rows_back=None, rows_lost=None, sql=sql, python=python
    )


def leave_out_metadata(draft: Draft, found: list[Finding]) -> Step:
    """Return the step that leaves unreadable metadata files, which the table does not need, out of the saved copy.

    `RepairPlan.save` leaves these files out of the new folder and out of the metadata log.
    """
    _touch(draft)
    text = "The saved copy leaves out metadata files that cannot be read, and its metadata log does not list them."
    return step_of("Leave out unreadable metadata files", text, found)


def copy_table(draft: Draft, found: list[Finding]) -> Step:
    """Return the step that copies the table into a new folder; the table is copied when the plan is saved."""
    _touch(draft)
    text = (
        "The plan's save() copies the table into a new folder, and writes the new file locations into the copied "
        "metadata."
    )
    sql = ("CALL <catalog>.system.rewrite_table_path('<table>', '<old prefix>', '<new prefix>')",)
    return step_of("Copy the table", text, found, sql=sql)


def _touch(draft: Draft) -> None:
    """Force the metadata file to be written again, even if no value in it is wrong."""
    draft.document["last-updated-ms"] = (number_in(draft.document, "last-updated-ms") or 0) + 1
