"""Change table metadata as parsed JSON (a "document"), and prepare the document for the next metadata file.

A document is never modified. Each function returns a new document, which shares unchanged objects (snapshots, schemas,
...) with the old one, so that even with 10,000 snapshots only a list of references is copied. Unknown keys are kept,
and keys keep their order; new keys come last.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from iceexplore.errors import FormatError, RuleError, SnapshotNotFoundError, mapping_of, texts_of

__all__ = [
    "Json",
    "ancestors",
    "current_snapshot_id",
    "entries",
    "format_version",
    "next_document",
    "now_or",
    "read_properties",
    "set_properties",
    "snapshots_by_id",
    "the_snapshot",
    "whole_number",
    "with_values",
]

#: Property names that control a commit and are never stored (Java: ``TableProperties.RESERVED_PROPERTIES``).
_RESERVED = frozenset(
    (
        "format-version", "uuid", "snapshot-count", "current-snapshot-id", "current-snapshot-summary",
        "current-snapshot-timestamp-ms", "current-schema", "default-partition-spec", "default-sort-order",
    )
)  # fmt: skip


def set_properties(
    document: Mapping[str, Any],
    *,
    set: Mapping[str, str] | None = None,  # noqa: A002 (the keyword in ALTER TABLE)
    remove: Iterable[str] = (),
) -> Json:
    """Return a document with some table properties set and others removed.

    As in Java, names in ``remove`` of properties that the table does not have are ignored.

    Raises
    ------
    OptionError
        ``set`` is not a mapping, or ``remove`` is not a list of names.
    RuleError
        ``reserved-property``: a name is reserved, a name or value is not a string, or a name is both set and
        removed.
    """
    given: dict[Any, Any] = mapping_of("properties", set, "{'owner': 'me'}", keys=object)
    gone = texts_of("remove", remove, "['owner']")
    for name, value in given.items():
        if name in _RESERVED:
            hint = ": upgrade() raises the format version" if name == "format-version" else ""
            raise RuleError("reserved-property", f"{name!r} is reserved and cannot be set as a table property{hint}")
        if not isinstance(name, str) or not isinstance(value, str):
            text = f"names and values of properties are strings, but {name!r} was given as {value!r}"
            raise RuleError("reserved-property", text)
        if name in gone:
            raise RuleError("reserved-property", f"{name!r} cannot be both set and removed")
    properties = {name: value for name, value in read_properties(document).items() if name not in gone}
    return with_values(document, properties={**properties, **given})


Json = dict[str, Any]
#: The default of ``write.metadata.previous-versions-max`` (the maximum number of entries in ``metadata-log``), as in
#: Java.
_PREVIOUS_VERSIONS_MAX = 100


def format_version(document: Mapping[str, Any]) -> int:
    """Return the document's ``format-version``.

    Raises
    ------
    FormatError
        The version is not 1 to 4. Such a document can be displayed, but not changed by a commit.
    """
    version = document.get("format-version")
    if type(version) is not int or not 1 <= version <= 4:
        raise _damaged(
            f"format-version is {version!r}, not 1 to 4: no commit can be made on this table", "format-version"
        )
    return version


def with_values(document: Mapping[str, Any], /, **changes: Any) -> Json:
    """Return a copy of a document with changed values: ``last_column_id=7``, for example, sets ``last-column-id``."""
    return {**document, **{key.replace("_", "-"): value for key, value in changes.items()}}


def entries(document: Mapping[str, Any], key: str) -> list[Json]:
    """Return the objects in a document's list, such as ``snapshots``, as a new list; empty if the key is absent.

    Raises
    ------
    FormatError
        The value is not a list of objects.
    """
    found = document.get(key)
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise _damaged(f"{key} must be a list of objects: no commit can be made on this table", key)
    return list(found)


def whole_number(document: Mapping[str, Any], key: str, default: int) -> int:
    """Return an integer such as ``last-column-id``, or ``default`` if the key is absent.

    Raises
    ------
    FormatError
        The value is not an integer.
    """
    found = document.get(key)
    if found is None:
        return default
    if type(found) is not int:
        raise _damaged(f"{key} must be a whole number, found {str(found)[:40]!r}", key)
    return found


def current_snapshot_id(document: Mapping[str, Any]) -> int | None:
    """Return the current snapshot's id; None if ``current-snapshot-id`` is missing, null or -1."""
    found = whole_number(document, "current-snapshot-id", -1)
    return None if found == -1 else found


def snapshots_by_id(document: Mapping[str, Any]) -> dict[int, Json]:
    """Return the JSON objects of a document's snapshots, by snapshot id.

    Raises
    ------
    FormatError
        A snapshot has no id.
    """
    out = {}
    for snapshot in entries(document, "snapshots"):
        if type(snapshot.get("snapshot-id")) is not int:
            raise _damaged("a snapshot lacks snapshot-id: no commit can be made on this table", "snapshot-id")
        out[snapshot["snapshot-id"]] = snapshot
    return out


def the_snapshot(snapshots: Mapping[int, Json], snapshot_id: int) -> Json:
    """Return the snapshot with this id.

    Raises
    ------
    SnapshotNotFoundError
        The table has no such snapshot; the message lists the newest ones.
    """
    if snapshot_id not in snapshots:
        newest = ", ".join(map(str, list(snapshots)[-5:])) or "none"
        raise SnapshotNotFoundError(f"the table has no snapshot {snapshot_id}; the newest are {newest}")
    return snapshots[snapshot_id]


def ancestors(snapshots: Mapping[int, Json], snapshot_id: int | None) -> Iterator[Json]:
    """Yield a snapshot, its parent and so on, until a parent is missing from ``snapshots`` or was already yielded."""
    seen: set[int] = set()
    while snapshot_id is not None and snapshot_id in snapshots and snapshot_id not in seen:
        seen.add(snapshot_id)
        yield snapshots[snapshot_id]
        snapshot_id = whole_number(snapshots[snapshot_id], "parent-snapshot-id", -1)


def read_properties(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table properties as a new dictionary.

    Raises
    ------
    FormatError
        ``properties`` is not an object.
    """
    found = document.get("properties")
    if found is not None and not isinstance(found, dict):
        raise _damaged("properties must be an object", "properties")
    return dict(found or {})


def now_or(timestamp_ms: int | None) -> int:
    """Return the given time, or the system clock's time if it is None, in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000 if timestamp_ms is None else timestamp_ms


def next_document(document: Mapping[str, Any], *, previous_location: str | None, timestamp_ms: int) -> Json:
    """Return the document to write to the next metadata file.

    Parameters
    ----------
    document
        The old document with the commit's changes applied, except that ``last-updated-ms`` still has the old value.
    previous_location
        The metadata file that the commit builds on. It is added to ``metadata-log`` with the old ``last-updated-ms``;
        the oldest entries beyond ``write.metadata.previous-versions-max`` (100 by default, at least 1) are dropped.
        None for a table's first file.
    timestamp_ms
        The time of the commit. The new ``last-updated-ms`` is this time, but never less than the old one or the newest
        entry of ``snapshot-log`` (spec, "Table Metadata Fields"; Java's ``TableMetadata`` refuses earlier times).
    """
    log = entries(document, "metadata-log")
    before = whole_number(document, "last-updated-ms", 0)
    if previous_location is not None:
        log.append({"timestamp-ms": before, "metadata-file": previous_location})
        log = log[-_previous_versions_max(document) :]
    history = entries(document, "snapshot-log")
    newest = whole_number(history[-1], "timestamp-ms", 0) if history else 0
    return with_values(document, last_updated_ms=max(before, newest, timestamp_ms), metadata_log=log)


def _previous_versions_max(document: Mapping[str, Any]) -> int:
    text = read_properties(document).get("write.metadata.previous-versions-max")
    try:
        return _PREVIOUS_VERSIONS_MAX if text is None else max(1, int(text))
    except (TypeError, ValueError):
        name = "write.metadata.previous-versions-max"
        raise _damaged(f"the table property {name} must be a whole number, found {text!r}", name) from None


def _damaged(text: str, field: str) -> FormatError:
    return FormatError(text, field=field, code="metadata-invalid")
