"""Change the branches and tags in a document, and the current snapshot (spec, "Snapshot References").

A document without ``refs`` has only ``main``, at ``current-snapshot-id``. A commit to ``main`` does not add ``refs`` to
a v1 document that has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from iceexplore.commits.metadata_updates._document import (
    Json,
    ancestors,
    current_snapshot_id,
    entries,
    format_version,
    now_or,
    snapshots_by_id,
    the_snapshot,
    whole_number,
    with_values,
)
from iceexplore.errors import FormatError, OptionError, RuleError, SnapshotNotFoundError, text_of, whole_number_of

__all__ = [
    "cherry_pick_summary",
    "fast_forward",
    "point_main",
    "read_refs",
    "remove_ref",
    "rollback",
    "set_current_snapshot",
    "set_ref",
    "with_branch_at",
]


def read_refs(document: Mapping[str, Any]) -> dict[str, Json]:
    """Return the JSON objects of the refs, as a new dictionary by name.

    If ``main`` is missing but the table has a current snapshot, ``main`` is added and points to this snapshot.

    Raises
    ------
    FormatError
        ``refs`` is not a JSON object whose values are objects.
    """
    found = document.get("refs") or {}
    if not isinstance(found, dict) or not all(isinstance(ref, dict) for ref in found.values()):
        raise FormatError("refs must be an object whose values are objects", field="refs", code="metadata-invalid")
    current = current_snapshot_id(document)
    if current is not None and "main" not in found:
        return {"main": {"snapshot-id": current, "type": "branch"}, **found}
    return dict(found)


def point_main(document: Mapping[str, Any], snapshot_id: int, timestamp_ms: int) -> Json:
    """Return a document whose ``main`` points to a snapshot; update ``current-snapshot-id`` and ``snapshot-log``."""
    entry = {"timestamp-ms": timestamp_ms, "snapshot-id": snapshot_id}
    out = with_values(
        document, current_snapshot_id=snapshot_id, snapshot_log=[*entries(document, "snapshot-log"), entry]
    )
    if format_version(document) == 1 and "refs" not in document:
        return out  # do not add refs to a v1 document: v1 does not require refs, and old readers do not know them
    return with_branch_at({**out, "refs": read_refs(document)}, "main", snapshot_id)


def with_branch_at(document: Mapping[str, Any], name: str, snapshot_id: int) -> Json:
    """Return a document in which a branch points to a snapshot.

    A branch that does not exist is created. An existing branch keeps its retention settings.

    Raises
    ------
    RuleError
        ``ref-type``: the ref is a tag.
    """
    refs = read_refs(document)
    ref = refs.get(name, {"snapshot-id": snapshot_id, "type": "branch"})
    if ref.get("type") == "tag":
        raise RuleError("ref-type", f"{name!r} is a tag: commit to a branch, or move the tag with set_ref")
    refs[name] = {**ref, "snapshot-id": snapshot_id}
    return with_values(document, refs=refs)


def set_ref(
    document: Mapping[str, Any],
    *,
    name: str,
    snapshot_id: int,
    type: Literal["branch", "tag"] = "branch",  # noqa: A002 (the name of the key in the JSON)
    min_snapshots_to_keep: int | None = None,
    max_snapshot_age_ms: int | None = None,
    max_ref_age_ms: int | None = None,
    timestamp_ms: int | None = None,
) -> Json:
    """Return a document in which a branch or tag is created, moved, or gets different retention settings.

    Retention settings that are not given are kept. Moving ``main`` makes the snapshot current, with an entry in
    ``snapshot-log`` at ``timestamp_ms`` (the system clock by default; never before the newest entry).

    Raises
    ------
    SnapshotNotFoundError
        The table has no such snapshot.
    RuleError
        ``main-branch`` (main as a tag), ``ref-type`` (a branch cannot become a tag or vice versa),
        ``ref-retention`` (a value is not above 0, or a tag gets a setting other than ``max_ref_age_ms``).
    OptionError
        The name is empty or not a string, the type is unknown, or a retention setting is not an integer.
    """
    text_of("name", name, "the name of a branch or tag")
    if type not in ("branch", "tag"):
        raise OptionError(f"type={type!r}: choose 'branch' or 'tag'")
    the_snapshot(snapshots_by_id(document), snapshot_id)
    refs = read_refs(document)
    if name == "main" and type == "tag":
        raise RuleError("main-branch", "'main' must be a branch and cannot be a tag")
    if name in refs and refs[name].get("type", "branch") != type:
        raise RuleError(
            "ref-type", f"{name!r} is a {refs[name].get('type')}: remove it before creating a {type} of this name"
        )
    retention = {
        "min-snapshots-to-keep": min_snapshots_to_keep,
        "max-snapshot-age-ms": max_snapshot_age_ms,
        "max-ref-age-ms": max_ref_age_ms,
    }
    given = {key: whole_number_of(key, value) for key, value in retention.items() if value is not None}
    for key, value in given.items():
        if value <= 0:
            raise RuleError("ref-retention", f"{key} of {name!r} must be above 0, not {value}")
        if type == "tag" and key != "max-ref-age-ms":
            raise RuleError("ref-retention", f"{name!r} is a tag: {key} can only be set for branches")
    out: Mapping[str, Any] = document
    if name == "main" and snapshot_id != current_snapshot_id(document):
        out = point_main(document, snapshot_id, _time_of_change(document, timestamp_ms))
        refs = read_refs(out)
    refs[name] = {**refs.get(name, {}), "snapshot-id": snapshot_id, "type": type, **given}
    return with_values(out, refs=refs)


def remove_ref(document: Mapping[str, Any], *, name: str) -> Json:
    """Return a document without a branch or tag. Its snapshots remain until they expire.

    Raises
    ------
    RuleError
        ``main-branch``: main is never removed.
    SnapshotNotFoundError
        There is no such ref; the message lists the existing ones.
    """
    if name == "main":
        raise RuleError("main-branch", "'main' cannot be removed")
    refs = read_refs(document)
    _known_ref(refs, name)
    del refs[name]
    return with_values(document, refs=refs)


def set_current_snapshot(document: Mapping[str, Any], *, snapshot_id: int, timestamp_ms: int | None = None) -> Json:
    """Return a document whose ``main`` points to a given snapshot (Java: ``setCurrentSnapshot``).

    Unlike for `rollback`, the snapshot need not be an ancestor of the current one. If it already is the current one,
    nothing changes.

    Parameters
    ----------
    timestamp_ms
        The time of the new entry in ``snapshot-log``, in milliseconds since the epoch; None means the current time. If
        the log's newest entry has a later time, that time is used instead.

    Raises
    ------
    SnapshotNotFoundError
        The table has no such snapshot.
    """
    the_snapshot(snapshots_by_id(document), snapshot_id)
    if snapshot_id == current_snapshot_id(document):
        return dict(document)
    return point_main(document, snapshot_id, _time_of_change(document, timestamp_ms))


def rollback(
    document: Mapping[str, Any],
    *,
    snapshot_id: int | None = None,
    older_than_ms: int | None = None,
    timestamp_ms: int | None = None,
) -> Json:
    """Return a document whose ``main`` points to an ancestor of the current snapshot (Java: ``rollbackTo``).

    Takes exactly one of ``snapshot_id`` and ``older_than_ms``; the latter selects the newest ancestor whose timestamp
    is earlier. ``timestamp_ms`` is the time of the rollback (the system clock by default).

    Raises
    ------
    OptionError
        Both or neither of the two arguments are given.
    RuleError
        ``rollback-ancestor``: the snapshot is not an ancestor of the current one (`set_current_snapshot` accepts any
        snapshot), or no ancestor is older than ``older_than_ms``.
    SnapshotNotFoundError
        The table has no such snapshot.
    """
    if (snapshot_id is None) == (older_than_ms is None):
        raise OptionError("rollback takes exactly one of snapshot_id and older_than_ms")
    snapshots = snapshots_by_id(document)
    line = list(ancestors(snapshots, current_snapshot_id(document)))
    if older_than_ms is not None:
        older = [s for s in line if whole_number(s, "timestamp-ms", 0) < older_than_ms]
        if not older:
            raise RuleError(
                "rollback-ancestor",
                f"no ancestor of the current snapshot is older than {older_than_ms} (milliseconds since the epoch)",
            )
        snapshot_id = max(older, key=lambda s: whole_number(s, "timestamp-ms", 0))["snapshot-id"]
    assert snapshot_id is not None
    the_snapshot(snapshots, snapshot_id)
    if all(s["snapshot-id"] != snapshot_id for s in line):
        raise RuleError(
            "rollback-ancestor",
            f"snapshot {snapshot_id} is not an ancestor of the current one, "
            f"{current_snapshot_id(document)}; set_current_snapshot accepts any snapshot",
        )
    return set_current_snapshot(document, snapshot_id=snapshot_id, timestamp_ms=timestamp_ms)


def fast_forward(document: Mapping[str, Any], *, name: str, to: str, timestamp_ms: int | None = None) -> Json:
    """Return a document whose branch ``name`` points to the snapshot of the ref ``to``.

    The snapshot to which the branch currently points must be that snapshot or an ancestor of it. A branch that does not
    exist is created (Java: ``fastForwardBranch``).

    Raises
    ------
    RuleError
        ``fast-forward-ancestor``: the branch's current snapshot is not an ancestor of the snapshot of ``to``.
        ``ref-type``: ``name`` is a tag.
    SnapshotNotFoundError
        There is no ref ``to``.
    """
    text_of("name", name, "the name of a branch")
    refs = read_refs(document)
    _known_ref(refs, to)
    target = whole_number(refs[to], "snapshot-id", -1)
    if name in refs:
        if refs[name].get("type") == "tag":
            raise RuleError("ref-type", f"{name!r} is a tag: only branches are fast-forwarded")
        here = refs[name].get("snapshot-id")
        if all(s["snapshot-id"] != here for s in ancestors(snapshots_by_id(document), target)):
            raise RuleError(
                "fast-forward-ancestor",
                f"{name!r} is at snapshot {here}, which is not an ancestor of {to!r} (snapshot {target})",
            )
    return set_ref(document, name=name, snapshot_id=target, timestamp_ms=timestamp_ms)


def cherry_pick_summary(document: Mapping[str, Any], *, snapshot_id: int) -> dict[str, str] | None:
    """Check that a snapshot can be cherry-picked, and return entries for the new snapshot's summary.

    A cherry-pick commits the changes of a snapshot that is not in ``main``'s history (the picked snapshot) to ``main``
    again, as a new snapshot. The picked snapshot must be an append, or an overwrite of whole partitions, which has
    ``replace-partitions=true`` in its summary (Java: ``CherryPickOperation``). The parent of such an overwrite must be
    in ``main``'s history. The caller must check that the replaced partitions have not changed since the parent.

    If the picked snapshot is a child of the current one, no new snapshot is needed, and its operation does not matter:
    `set_current_snapshot` can make it current.

    Parameters
    ----------
    snapshot_id
        The id of the picked snapshot.

    Returns
    -------
    dict[str, str] or None
        Under ``source-snapshot-id``, the id of the picked snapshot; if its summary has a ``wap.id``, also this id under
        ``published-wap-id``. None for a child of the current snapshot.

    Raises
    ------
    RuleError
        ``cherry-pick``: the snapshot is neither an append nor an overwrite of whole partitions, is in ``main``'s
        history, was already picked, or has a ``wap.id`` that was already published; or the parent of an overwrite is
        not in ``main``'s history.
    SnapshotNotFoundError
        The table has no such snapshot.
    """
    snapshots = snapshots_by_id(document)
    picked = the_snapshot(snapshots, snapshot_id)
    current = current_snapshot_id(document)
    line = list(ancestors(snapshots, current))
    summary = _summary(picked)
    wap_id = summary.get("wap.id")
    published = [_summary(s).get(key) for s in line for key in ("wap.id", "published-wap-id")]
    if any(s["snapshot-id"] == snapshot_id for s in line):
        raise RuleError("cherry-pick", f"snapshot {snapshot_id} is already an ancestor of the current one")
    if wap_id and wap_id in published:
        raise RuleError("cherry-pick", f"the changes of WAP id {wap_id!r} were already published")
    parent = picked.get("parent-snapshot-id")
    if parent == current:
        return None
    for ancestor in line:
        if _summary(ancestor).get("source-snapshot-id") == str(snapshot_id):
            raise RuleError(
                "cherry-pick", f"snapshot {snapshot_id} was already picked, as snapshot {ancestor['snapshot-id']}"
            )
    operation = summary.get("operation")
    replaces = operation == "overwrite" and summary.get("replace-partitions") == "true"
    if operation != "append" and not replaces:
        raise RuleError(
            "cherry-pick",
            f"snapshot {snapshot_id} has the operation {operation!r}: only an append, an overwrite of whole "
            "partitions, or a child of the current snapshot can be picked",
        )
    if replaces and parent is not None and all(s["snapshot-id"] != parent for s in line):
        raise RuleError(
            "cherry-pick",
            f"snapshot {snapshot_id} overwrites partitions on top of snapshot {parent}, "
            "which is not an ancestor of the current one",
        )
    return {"source-snapshot-id": str(snapshot_id), **({"published-wap-id": wap_id} if wap_id else {})}


def _summary(snapshot: Json) -> Json:
    found = snapshot.get("summary") or {}
    if not isinstance(found, dict):
        raise FormatError("the summary of a snapshot must be an object", field="summary", code="metadata-invalid")
    return found


def _time_of_change(document: Mapping[str, Any], timestamp_ms: int | None) -> int:
    log = entries(document, "snapshot-log")
    return max(now_or(timestamp_ms), whole_number(log[-1], "timestamp-ms", 0) if log else 0)


def _known_ref(refs: Mapping[str, Json], name: object) -> None:
    if not isinstance(name, str) or name not in refs:
        raise SnapshotNotFoundError(f"the table has no ref {name!r}; refs: {', '.join(refs) or 'none'}")
