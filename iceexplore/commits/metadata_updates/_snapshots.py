"""Create a snapshot's JSON object, and add it to a document (spec, "Table Metadata Fields").

Fields of the document that depend on its snapshots, such as ``refs`` and ``last-sequence-number``, are updated, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iceexplore.commits.metadata_updates._document import Json, entries, format_version, whole_number, with_values
from iceexplore.commits.metadata_updates._refs import point_main, with_branch_at
from iceexplore.errors import FormatError, OptionError, RuleError

__all__ = ["add_snapshot", "snapshot_json"]

_OPERATIONS = ("append", "replace", "overwrite", "delete")
#: The clock skew allowed between two writers, in milliseconds. An entry of ``snapshot-log`` may be earlier than the
#: entry before it by at most this time. If the difference is larger, Java refuses to read the metadata file.
_CLOCK_SKEW_MS = 60_000


def snapshot_json(
    *,
    format_version: int,
    snapshot_id: int,
    timestamp_ms: int,
    operation: str,
    root_location: str,
    summary: Mapping[str, str] | None = None,
    parent_snapshot_id: int | None = None,
    sequence_number: int = 0,
    schema_id: int | None = None,
    root_manifest: bool = False,
    first_row_id: int | None = None,
    added_rows: int | None = None,
    key_id: str | None = None,
) -> Json:
    """Return a snapshot's JSON object, with the keys that the format version has, in Java's order.

    Parameters
    ----------
    root_location
        Location of the manifest list or, with ``root_manifest`` (V4 proposal), of the root manifest.
    summary
        Further entries of the snapshot's summary. The first entry is always ``operation``, with the value of the
        argument of this name; a key ``operation`` in ``summary`` is ignored.
    sequence_number
        The snapshot's sequence number; ignored in v1, where snapshots have none.
    first_row_id, added_rows
        Required from v3 on (spec, "Snapshot Row IDs"); ignored below v3.
    key_id
        The encryption key of the manifest list (v3 and later).

    Raises
    ------
    OptionError
        The operation is not in the spec, row ids are missing in v3 or later, or a root manifest is given below v4.
    """
    if operation not in _OPERATIONS:
        raise OptionError(f"operation={operation!r}: choose one of {', '.join(_OPERATIONS)}")
    if root_manifest and format_version < 4:
        raise OptionError(f"a snapshot of format version {format_version} has a manifest list, not a root manifest")
    if format_version >= 3 and (first_row_id is None or added_rows is None):
        raise OptionError(f"a snapshot of format version {format_version} needs first_row_id and added_rows")
    out: Json = {"sequence-number": sequence_number} if format_version >= 2 else {}
    out["snapshot-id"] = snapshot_id
    if parent_snapshot_id is not None:
        out["parent-snapshot-id"] = parent_snapshot_id
    out["timestamp-ms"] = timestamp_ms
    out["summary"] = {"operation": operation, **{k: v for k, v in (summary or {}).items() if k != "operation"}}
    out["root-manifest" if root_manifest else "manifest-list"] = root_location
    if schema_id is not None:
        out["schema-id"] = schema_id
    if format_version >= 3:
        out["first-row-id"] = first_row_id
        out["added-rows"] = added_rows
        if key_id is not None:
            out["key-id"] = key_id
    return out


def add_snapshot(document: Mapping[str, Any], *, snapshot: Mapping[str, Any], ref: str | None = "main") -> Json:
    """Return a document to which a snapshot is added, with a branch that points to it.

    ``refs`` is updated: a branch that does not exist is created, and an existing one keeps its retention settings. For
    ``main``, ``current-snapshot-id`` and ``snapshot-log`` are updated, too. From v2 on, ``last-sequence-number``
    becomes the snapshot's sequence number. From v3 on, ``next-row-id`` becomes the snapshot's ``first-row-id`` plus its
    ``added-rows``, whatever the branch (spec, "Row Lineage").

    Parameters
    ----------
    snapshot
        The snapshot's JSON object, as returned by `snapshot_json`.
    ref
        The branch to move to the snapshot. With None, no ref points to the snapshot: it is only staged ("write, audit,
        publish").

    Raises
    ------
    OptionError
        ``snapshot`` lacks an integer id, timestamp or (from v2 on) sequence number.
    FormatError
        Not enough row ids are left, or a value in the document has the wrong type.
    RuleError
        ``snapshot-id-unique``, ``sequence-increases``, ``row-ids-assigned``, ``snapshot-log-order``, ``ref-type``
        (the ref is a tag).
    """
    version = format_version(document)
    snapshots = entries(document, "snapshots")
    snapshot_id = _required(snapshot, "snapshot-id")
    timestamp_ms = _required(snapshot, "timestamp-ms")
    if any(s.get("snapshot-id") == snapshot_id for s in snapshots):
        raise RuleError("snapshot-id-unique", f"the table already has a snapshot {snapshot_id}: choose another id")
    out = with_values(document, snapshots=[*snapshots, dict(snapshot)])
    if version >= 2:
        out["last-sequence-number"] = _next_sequence_number(document, snapshot)
    elif whole_number(snapshot, "sequence-number", 0):
        raise RuleError(
            "sequence-increases",
            f"snapshot {snapshot_id} has sequence number {snapshot['sequence-number']}, but format version 1 has none",
        )
    if version >= 3:
        out["next-row-id"] = _next_row_id(document, snapshot)
    if ref is None:
        return out
    if ref == "main":
        _check_log(document, snapshot_id, timestamp_ms)
        return point_main(out, snapshot_id, timestamp_ms)
    return with_branch_at(out, ref, snapshot_id)


def _next_sequence_number(document: Mapping[str, Any], snapshot: Mapping[str, Any]) -> int:
    last = whole_number(document, "last-sequence-number", 0)
    number = _required(snapshot, "sequence-number")
    if number <= last:
        raise RuleError(
            "sequence-increases",
            f"snapshot {snapshot['snapshot-id']} has sequence number {number}, which must be above the table's "
            f"last-sequence-number, {last}",
        )
    return number


def _next_row_id(document: Mapping[str, Any], snapshot: Mapping[str, Any]) -> int:
    expected = whole_number(document, "next-row-id", 0)
    first, added = snapshot.get("first-row-id"), snapshot.get("added-rows")
    if type(first) is not int or type(added) is not int or first < expected or added < 0:
        raise RuleError(
            "row-ids-assigned",
            f"snapshot {snapshot['snapshot-id']} has first-row-id {first} and added-rows {added}: first-row-id must be "
            f"at least the table's next-row-id, {expected}, and added-rows at least 0",
        )
    if first + added >= 2**63:
        raise FormatError(
            f"next-row-id is {expected}: not enough row ids are left for {added} rows",
            field="next-row-id",
            code="metadata-invalid",
        )
    return first + added


def _check_log(document: Mapping[str, Any], snapshot_id: int, timestamp_ms: int) -> None:
    log = entries(document, "snapshot-log")
    last = whole_number(log[-1], "timestamp-ms", 0) if log else timestamp_ms
    if timestamp_ms < last - _CLOCK_SKEW_MS:
        raise RuleError(
            "snapshot-log-order",
            f"snapshot {snapshot_id} is from {timestamp_ms} ms, more than a minute before the newest entry of "
            f"snapshot-log, {last} ms: give it a later timestamp",
        )


def _required(snapshot: Mapping[str, Any], key: str) -> int:
    if type(snapshot.get(key)) is not int:
        raise OptionError(f"the snapshot needs an integer {key}, found {snapshot.get(key)!r}")
    found: int = snapshot[key]
    return found
