"""Parse view metadata of the adopted spec and of early drafts, tolerantly (view spec, "View Metadata")."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from iceexplore.errors import FormatError, Problems, UnsupportedError
from iceexplore.metadata import JsonObjectReader, Reporter, Schema, read_schema
from iceexplore.storage import VIEW, JsonValue
from iceexplore.views._checks import check_view
from iceexplore.views._model import Representation, VersionLogEntry, ViewMetadata, ViewVersion

__all__ = ["LATEST_VIEW_VERSION", "parse_view_metadata"]

LATEST_VIEW_VERSION = 1

T = TypeVar("T")

INT = 31

#: Keys that the adopted spec requires, and keys that early drafts require.
_REQUIRED = ("view-uuid", "format-version", "location", "schemas", "current-version-id", "versions", "version-log")
_REQUIRED_DRAFT = ("format-version", "location", "current-version-id", "versions", "version-log")
#: Keys of representations that only early drafts have.
_DRAFT_KEYS = ("schema-id", "default-catalog", "default-namespace", "field-aliases", "field-docs")


def parse_view_metadata(document: JsonValue, location: str, problems: Problems) -> ViewMetadata:
    """Parse view metadata; invalid values are reported as ``view-invalid`` and replaced by usable ones.

    Parameters
    ----------
    document
        The JSON as Python objects.
    location
        The metadata file's location, used as the problems' node (with ``#version 3`` and the like for parts).
    problems
        Collects the problems.

    Raises
    ------
    FormatError
        The document is not view metadata.
    UnsupportedError
        A ``format-version`` above 1.
    """
    if not VIEW.fits(document):
        raise FormatError("not view metadata: it has no view-uuid, versions or version-log", location=location,
                          code=VIEW.code)  # fmt: skip
    reporter = Reporter(problems, location, VIEW.code)
    keys = JsonObjectReader(document, reporter, "view metadata")
    version = _format_version(keys, location)
    draft = _is_early_draft(document)
    _report_missing(keys, _REQUIRED_DRAFT if draft else _REQUIRED)
    metadata = ViewMetadata(
        format_version=version,
        view_uuid=keys.text("view-uuid"),
        location=keys.text("location") or _folder(location),
        schemas=tuple(_schemas(keys)),
        current_version_id=keys.integer("current-version-id", bits=INT),
        versions=_each(keys, "versions", lambda json, to: _version(json, to, draft)),
        version_log=_each(keys, "version-log", _log_entry),
        properties=keys.string_map("properties"),
        current_schema_id=keys.integer("current-schema-id", bits=INT),
        early_draft=draft,
        raw=document,
    )
    check_view(metadata, reporter)
    return metadata


def _format_version(keys: JsonObjectReader, location: str) -> int:
    number = keys.integer("format-version")
    if number is not None and number > LATEST_VIEW_VERSION:
        raise UnsupportedError(
            f"format-version {number} of the view {location} is not supported: iceexplore reads version "
            f"{LATEST_VIEW_VERSION}, the only one that the view spec defines"
        )
    if number is not None and number < LATEST_VIEW_VERSION:
        keys.reporter.error(f"format-version must be {LATEST_VIEW_VERSION}, found {number}", "format-version")
    return LATEST_VIEW_VERSION


def _is_early_draft(document: JsonValue) -> bool:
    """Return whether a document without view-uuid follows an early draft, rather than having lost the key."""
    if "view-uuid" in document:
        return False
    versions = document.get("versions")
    found = [v for v in versions if isinstance(v, dict)] if isinstance(versions, list) else []
    lists = [r for v in found if isinstance(r := v.get("representations"), list)]
    inner = [r for items in lists for r in items if isinstance(r, dict)]
    if any(key in r for r in inner for key in _DRAFT_KEYS):
        return True
    return not any("schema-id" in v or "default-namespace" in v for v in found)


def _report_missing(keys: JsonObjectReader, required: tuple[str, ...]) -> None:
    """Report all missing required keys as one problem."""
    missing = [key for key in required if keys.json.get(key) is None]
    if missing:
        plural = "s" if len(missing) > 1 else ""
        keys.reporter.error(f"view metadata lacks the required key{plural} {', '.join(missing)}", ", ".join(missing))


def _each(keys: JsonObjectReader, key: str, read: Callable[[JsonValue, Reporter], T | None]) -> tuple[T, ...]:
    found = (read(item, keys.reporter) for item in keys.items(key))
    return tuple(item for item in found if item is not None)


def _schemas(keys: JsonObjectReader) -> Iterator[Schema]:
    for i, json in enumerate(keys.items("schemas")):
        schema_id = json.get("schema-id") if isinstance(json, dict) else None
        part = keys.reporter.at(f"schema {schema_id if type(schema_id) is int else i}")
        try:
            yield read_schema(json, part.error, i)
        except FormatError as error:
            if part.problems is not None and part.problems.strict:
                raise
            part.error(f"a schema cannot be read: {error.reason}", error.field or "schemas")


def _version(json: JsonValue, reporter: Reporter, draft: bool) -> ViewVersion | None:
    named = json.get("version-id") if isinstance(json, dict) else None
    part = reporter.at(f"version {named}") if type(named) is int else reporter
    keys = JsonObjectReader(json, part, "a version" if part is reporter else f"version {named}")
    version_id = keys.integer("version-id", bits=INT, required=True)
    if version_id is None:
        return None
    timestamp = keys.integer("timestamp-ms", required=True)
    for key in ("summary", *(() if draft else ("schema-id", "default-namespace"))):
        if keys.json.get(key) is None:
            part.error(f"{keys.what} lacks {key}", key)
    summary = keys.string_map("summary")
    if draft and summary.get("operation") not in ("create", "replace"):
        found = summary.get("operation")
        shown = "has none" if found is None else f"has {found!r}"
        part.warning(f"the summary's operation must be create or replace, but {keys.what} {shown}", "operation")
    stored = [_representation(item, part) for item in keys.items("representations", required=True)]
    return ViewVersion(
        version_id=version_id,
        timestamp_ms=timestamp or 0,
        schema_id=keys.integer("schema-id", bits=INT),
        summary=summary,
        representations=tuple(r for r in stored if r is not None),
        default_catalog=keys.text("default-catalog"),
        default_namespace=_names(keys, "default-namespace"),
        storage_table=_storage_table(keys),
        parent_version_id=keys.integer("parent-version-id", bits=INT),
        properties=keys.string_map("properties") if keys.json.get("properties") is not None else None,
        raw=keys.json,
    )


def _representation(json: JsonValue, reporter: Reporter) -> Representation | None:
    keys = JsonObjectReader(json, reporter, "a representation")
    if not keys.json:
        if isinstance(json, dict):
            reporter.error("a representation lacks type", "type")
        return None
    kind = keys.text("type", required=True) or "?"
    is_sql = kind == "sql"
    return Representation(
        type=kind,
        sql=keys.text("sql", required=True) if is_sql else _any_text(keys.json.get("sql")),
        dialect=keys.text("dialect", required=True) if is_sql else _any_text(keys.json.get("dialect")),
        schema_id=keys.integer("schema-id", bits=INT) if is_sql else None,
        default_catalog=keys.text("default-catalog") if is_sql else None,
        default_namespace=_names(keys, "default-namespace") if is_sql else None,
        field_aliases=_optional_names(keys, "field-aliases") if is_sql else None,
        field_docs=_optional_names(keys, "field-docs") if is_sql else None,
        raw=keys.json,
    )


def _any_text(value: JsonValue) -> str | None:
    """Return a text value of a representation of unknown type, where other values are not errors."""
    return value if isinstance(value, str) else None


def _names(keys: JsonObjectReader, key: str) -> tuple[str, ...] | None:
    """Return a list of strings, None if missing; items that are not strings are reported and left out."""
    if keys.json.get(key) is None:
        return None
    items = keys.items(key)
    good = tuple(item for item in items if isinstance(item, str))
    if len(good) < len(items):
        keys.reporter.error(f"{key} of {keys.what} must be a list of strings", key)
    return good


def _optional_names(keys: JsonObjectReader, key: str) -> tuple[str | None, ...] | None:
    """Return a list of strings and nulls, None if missing; other items are reported and replaced by null."""
    if keys.json.get(key) is None:
        return None
    items = keys.items(key)
    if any(not isinstance(item, str) and item is not None for item in items):
        keys.reporter.error(f"{key} of {keys.what} must be a list of strings and nulls", key)
    return tuple(item if isinstance(item, str) else None for item in items)


def _storage_table(keys: JsonObjectReader) -> tuple[str, ...] | None:
    if keys.json.get("storage-table") is None:
        return None
    inner = JsonObjectReader(keys.json["storage-table"], keys.reporter, "storage-table")
    name, namespace = inner.text("name", required=True), _names(inner, "namespace")
    if namespace is None:
        inner.items("namespace", required=True)
    return None if name is None else (*(namespace or ()), name)


def _log_entry(json: JsonValue, reporter: Reporter) -> VersionLogEntry | None:
    keys = JsonObjectReader(json, reporter, "version-log entry")
    timestamp = keys.integer("timestamp-ms", required=True)
    version_id = keys.integer("version-id", bits=INT, required=True)
    return None if timestamp is None or version_id is None else VersionLogEntry(timestamp, version_id)


def _folder(location: str) -> str:
    """Return the folder above ``metadata/``, for use as the location if damaged metadata has none."""
    folder = location.rpartition("/")[0]
    return folder.rpartition("/")[0] if folder.endswith("/metadata") else folder
