"""Derive a view's next metadata document from its current one, by the rules of Java's ``ViewMetadata.Builder``.

The functions read and write no files, and do not change the documents that they are given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import NoneType
from typing import Any

from iceexplore.commits.view_commits._columns import same_columns
from iceexplore.commits.view_commits._early_draft import draft_version
from iceexplore.commits.view_commits._query import ViewQuery
from iceexplore.errors import (
    FormatError,
    OptionError,
    Problems,
    RuleError,
    SnapshotNotFoundError,
    UnsupportedError,
    mapping_of,
    texts_of,
)
from iceexplore.metadata import schema_to_json
from iceexplore.render import escape
from iceexplore.views import (
    HISTORY_PROPERTY,
    ViewMetadata,
    ViewVersion,
    history_entries,
    parse_view_metadata,
)

__all__ = [
    "DROP_DIALECT_PROPERTY",
    "Json",
    "add_view_dialects",
    "committable_view",
    "last_time_of",
    "new_view_document",
    "replace_view_version",
    "rollback_view",
    "set_view_location",
    "set_view_properties",
]

Json = dict[str, Any]
#: The property (false by default) that allows a new version to drop a dialect of the previous version.
DROP_DIALECT_PROPERTY = "replace.drop-dialect.allowed"
#: The largest value of Iceberg's ``int``.
_INT_MAX = 2**31 - 1


def committable_view(document: Mapping[str, Any], location: str) -> ViewMetadata:
    """Parse the document on which a commit builds; refuse it if no new metadata file can be derived from it.

    Parameters
    ----------
    location
        The location of the metadata file that contains the document, for error messages.

    Raises
    ------
    FormatError
        The document has no ``location`` or no current version, a version or a schema cannot be read, ``versions``,
        ``version-log`` or ``schemas`` is not a list, ``properties`` is not an object, or two versions or two schemas
        have the same id.
    UnsupportedError
        The view's format version is not supported.
    """
    metadata = parse_view_metadata(document, location, Problems())
    fault: str | None = None
    for key, kind in (("versions", list), ("version-log", list), ("schemas", list), ("properties", dict)):
        if not isinstance(document.get(key), (kind, NoneType)):
            fault = f"{key} is not {'a list' if kind is list else 'an object'}"
    for key, read in (("versions", metadata.versions), ("schemas", metadata.schemas)):
        stored = document.get(key)
        if isinstance(stored, list) and len(stored) != len(read):
            fault = f"an item of {key} cannot be read"
    if len({v.version_id for v in metadata.versions}) < len(metadata.versions):
        fault = "several versions have the same id"
    if len({s.schema_id for s in metadata.schemas}) < len(metadata.schemas):
        fault = "several schemas have the same id"
    if metadata.version() is None:
        fault = "it has no current version"
    if not isinstance(document.get("location"), str):
        fault = "it has no location"
    if fault is not None:
        raise FormatError(
            f"{location}: no commit can be made on this metadata: {fault}; v.check() explains its problems",
            location=location,
            code="view-invalid",
        )
    return metadata


def last_time_of(metadata: ViewMetadata) -> int:
    """Return the latest time that the view's metadata stores, in milliseconds; 0 if it stores none."""
    times = [v.timestamp_ms for v in metadata.versions] + [e.timestamp_ms for e in metadata.version_log]
    return max(times, default=0)


def new_view_document(
    query: ViewQuery,
    *,
    location: str,
    view_uuid: str,
    timestamp_ms: int,
    properties: Mapping[str, str] | None = None,
    early_draft: bool = False,
) -> Json:
    """Return the metadata document of a new view with one version; its keys have the same order as in Java.

    Parameters
    ----------
    query
        The query of this version.
    location
        The view's base location.
    view_uuid
        The ``view-uuid``.
    timestamp_ms
        The time of the version, in milliseconds since the epoch.
    properties
        The view's properties.
    early_draft
        Write the form of the early draft of the view spec, which has no ``view-uuid``.

    Raises
    ------
    RuleError, OptionError
        The query or a property is invalid.
    """
    query.check()
    document: Json = {} if early_draft else {"view-uuid": view_uuid}
    document |= {"format-version": 1, "location": location.rstrip("/") or location}
    given = _property_changes(properties, ())[0]
    if given:
        document["properties"] = given
    document |= {
        "schemas": [{**schema_to_json(query.columns), "schema-id": 1 if early_draft else 0}],
        "current-version-id": 1,
        "versions": [],
        "version-log": [],
    }
    document["versions"].append(
        _version_json(query, 1, document["schemas"][0]["schema-id"], timestamp_ms, early_draft, None)
    )
    if early_draft:
        document["current-schema-id"] = 1
    document["version-log"].append({"timestamp-ms": timestamp_ms, "version-id": 1})
    return _built(None, document, {1})


def replace_view_version(
    document: Mapping[str, Any],
    query: ViewQuery,
    *,
    timestamp_ms: int,
    properties: Mapping[str, str] | None = None,
) -> Json:
    """Return a copy of the document whose current version has the given query.

    If the view already has a version with the same query, this version becomes the current one. Otherwise, a new
    version is added. Two versions have the same query if the SQL, the dialects and their order, the default catalog and
    namespace, the schema and the summary are equal. The key ``operation`` of summaries, which the early draft of the
    view spec stores, is not compared. The query's schema is added to the document only if the view has no schema with
    the same columns.

    Parameters
    ----------
    timestamp_ms
        The time of the commit in milliseconds since the epoch, for the new version and for the version log.
    properties
        View properties to set; all others are kept.

    Raises
    ------
    RuleError
        The query or the new version violates ``view-one-sql-per-dialect``, ``view-columns`` or ``view-dialects-kept``.
    OptionError
        A property is invalid.
    FormatError
        The view already has a version with the largest possible id.
    UnsupportedError
        The view is a materialized view.
    """
    query.check()
    before = _read(document)
    current = before.version()
    assert current is not None
    if current.storage_table is not None:
        raise UnsupportedError(
            "this is a materialized view: a new version needs a storage table with the rows of its query, which only "
            "an engine can write"
        )
    out = dict(document)
    given = _property_changes(properties, ())[0]
    if given:
        out["properties"] = {**before.properties, **given}
    schema_id = _schema_id(out, before, query)
    found = next((v for v in before.versions if _is_same(v, query, schema_id)), None)
    added: set[int] = set()
    if found is None:
        new_id = max(v.version_id for v in before.versions) + 1
        if new_id > _INT_MAX:
            raise FormatError(f"the view has version {new_id - 1}, the largest id: no version can be added",
                              field="version-id", code="view-invalid")  # fmt: skip
        made = _version_json(query, new_id, schema_id, timestamp_ms, before.early_draft, current)
        out["versions"] = [*document["versions"], made]
        added = {new_id}
    else:
        new_id = found.version_id
    return _built(before, _with_current(out, before, new_id, schema_id, timestamp_ms), added)


def add_view_dialects(
    document: Mapping[str, Any],
    sql: Mapping[str, str],
    summary: Mapping[str, str],
    *,
    timestamp_ms: int,
    expected: Mapping[str, str] | None = None,
) -> Json:
    """Return a copy of the document with a new current version, which has the current SQL and SQL in further dialects.

    Parameters
    ----------
    sql
        The SQL to add, by dialect.
    summary
        The new version's summary.
    timestamp_ms
        The time of the commit, in milliseconds since the epoch.
    expected
        The SQL, by dialect, from which the user translated the new SQL. It must be the SQL of the current version: if
        another writer has replaced that meanwhile, the translation is outdated, and an error is raised. None skips this
        check.

    Raises
    ------
    RuleError
        ``view-one-sql-per-dialect``: the current version already has SQL in a given dialect. ``view-unchanged``: the
        current version does not have the expected SQL. Other rules as for `replace_view_version`.
    UnsupportedError
        The current version cannot be copied, because it has representations of unknown types, or SQL with different
        default catalogs or namespaces; or the view is a materialized view.
    FormatError
        The current version has no schema, or a version has the largest possible id, so that no version can be added.
    """
    before = _read(document)
    current, schema = before.version(), before.schema(before.version())
    assert current is not None
    if schema is None:
        raise FormatError("the current version has no schema", field="schema-id", code="view-invalid")
    kinds = sorted({r.type for r in current.representations if r.type != "sql"})
    if len({(current.catalog_of(r), current.namespace_of(r)) for r in current.representations}) > 1:
        kinds = ["SQL with different defaults"]
    if kinds:
        shown = escape.shorten(", ".join(kinds), 100)
        raise UnsupportedError(f"the current version has representations that cannot be copied: {shown}")
    stored = {r.dialect or "": r.sql or "" for r in current.sql}
    if expected is not None and stored != dict(expected):
        raise RuleError("view-unchanged", "the SQL from which the translation was made is no longer the current one")
    known = {name.lower() for name in stored}
    twice = next((name for name in sql if name.lower() in known), None)
    if twice is not None:
        found = escape.shorten(twice, 60)
        raise RuleError("view-one-sql-per-dialect", f"the view has SQL for {found!r}: replace() changes it")
    query = ViewQuery({**stored, **sql}, schema, current.catalog_of(), current.namespace_of() or (), summary)
    return replace_view_version(document, query, timestamp_ms=timestamp_ms)


def rollback_view(document: Mapping[str, Any], version_id: int, *, timestamp_ms: int) -> Json:
    """Return a copy of the document in which the given version is current, with a new entry in the version log.

    No entry is added if the version was already current. ``timestamp_ms`` is the time of the entry, in milliseconds
    since the epoch.

    Raises
    ------
    SnapshotNotFoundError
        The view does not have the version.
    RuleError
        ``view-dialects-kept``: the version lacks a dialect of the current version.
    """
    before = _read(document)
    version = before.version(version_id)
    if version is None:
        ids = sorted((v.version_id for v in before.versions), key=lambda i: abs(i - version_id))
        raise SnapshotNotFoundError(
            f"the view has no version {version_id} to roll back to; the nearest: {', '.join(map(str, sorted(ids[:5])))}"
        )
    schema_id = next(iter(version.schema_ids()), None)
    return _built(before, _with_current(dict(document), before, version_id, schema_id, timestamp_ms), set())


def set_view_properties(
    document: Mapping[str, Any],
    properties: Mapping[str, str] | None = None,
    remove: Sequence[str] = (),
) -> Json:
    """Return a copy of the document in which view properties are set and removed.

    Names in ``remove`` that are not properties of the view are ignored.

    Raises
    ------
    OptionError
        A name or value is not a string, a name is both set and removed, or a value is invalid.
    """
    given, gone = _property_changes(properties, remove)
    before = _read(document)
    kept = {name: value for name, value in before.properties.items() if name not in gone}
    out = {**document, "properties": {**kept, **given}}
    if not out["properties"] and "properties" not in document:
        del out["properties"]
    return _built(before, out, frozenset())


def set_view_location(document: Mapping[str, Any], location: str) -> Json:
    """Return a copy of the document with the view's new base location, without a slash at its end."""
    return _built(_read(document), {**document, "location": location.rstrip("/") or location}, frozenset())


def _read(document: Mapping[str, Any]) -> ViewMetadata:
    return parse_view_metadata(document, str(document.get("location")), Problems())


def _schema_id(out: Json, before: ViewMetadata, query: ViewQuery) -> int:
    """Return the id of the view's schema with the query's columns; if there is none, add this schema to ``out``.

    ``before`` is the metadata before the commit, and ``out`` the new document, which is changed in place.
    """
    found = next((s for s in before.schemas if same_columns(s, query.columns)), None)
    if found is not None:
        return found.schema_id
    new_id = max((s.schema_id for s in before.schemas), default=-1) + 1
    out["schemas"] = [*(out.get("schemas") or ()), schema_to_json(replace(query.columns, schema_id=new_id))]
    return new_id


def _is_same(version: ViewVersion, query: ViewQuery, schema_id: int) -> bool:
    """Return whether a version already stores this query (Java: ``ViewMetadata.Builder.sameViewVersion``).

    ``schema_id`` is the id of the view's schema with the query's columns.
    """
    summary = {key: value for key, value in version.summary.items() if key != "operation"}
    stored = [(r.type, r.dialect, r.sql) for r in version.representations]
    return (
        version.storage_table is None
        and stored == [("sql", dialect, text) for dialect, text in query.sql.items()]
        and {(version.catalog_of(r), version.namespace_of(r)) for r in version.representations}
        == {(query.default_catalog, query.default_namespace)}
        and version.schema_ids() == (schema_id,)
        and not any(r.field_aliases or r.field_docs for r in version.representations)
        and summary == {key: value for key, value in query.summary.items() if key != "operation"}
    )


def _version_json(
    query: ViewQuery, version_id: int, schema_id: int, timestamp_ms: int, early_draft: bool, parent: ViewVersion | None
) -> Json:
    if early_draft:
        return draft_version(query, version_id, schema_id, timestamp_ms, parent)
    made: Json = {
        "version-id": version_id,
        "timestamp-ms": timestamp_ms,
        "schema-id": schema_id,
        "summary": dict(query.summary),
    }
    if query.default_catalog is not None:
        made["default-catalog"] = query.default_catalog
    return {**made, "default-namespace": list(query.default_namespace), "representations": query.representations()}


def _with_current(out: Json, before: ViewMetadata, version_id: int, schema_id: int | None, timestamp_ms: int) -> Json:
    """Return the new document ``out``, in which the version is now current and has an entry in the version log.

    ``out`` is changed in place. It remains as it is if the version was already current in the old metadata ``before``.
    """
    if version_id == before.current_version_id:
        return out
    log = out.get("version-log")
    out["version-log"] = [
        *(log if isinstance(log, list) else ()),
        {"timestamp-ms": timestamp_ms, "version-id": version_id},
    ]
    out["current-version-id"] = version_id
    if before.early_draft and schema_id is not None:
        out["current-schema-id"] = schema_id
    return out


def _built(before: ViewMetadata | None, out: Json, added: frozenset[int] | set[int]) -> Json:
    """Check the properties and dialects of the new state, and expire versions (Java: ``ViewMetadata.Builder.build``).

    The number of versions to keep is ``version.history.num-entries`` (10 by default). The current version and the one
    that this commit adds are always kept. If the view has too many versions, those with the lowest ids expire. All
    entries of the version log up to the last entry for an expired version are then removed, so that time travel never
    leads to an expired version.

    Parameters
    ----------
    before
        The metadata before the commit; None for a new view.
    out
        The new document, still with all versions. It is not changed; the result is a copy if versions expire.
    added
        The ids of the versions that the commit adds.

    Raises
    ------
    OptionError
        The compression codec for metadata files or the number of versions to keep is invalid.
    RuleError
        ``view-dialects-kept``: the new current version lacks a dialect of the previous one.
    """
    after = _read(out)
    codec = after.properties.get("write.metadata.compression-codec", "none")
    if codec.lower() not in ("none", "gzip"):
        raise OptionError(
            f"write.metadata.compression-codec={codec!r}: the metadata of views is written with none or gzip"
        )
    if before is not None and after.properties.get(DROP_DIALECT_PROPERTY, "").lower() != "true":
        _check_dialects(before.version(), after.version())
    size = history_entries(after)
    if size is None:
        value = after.properties[HISTORY_PROPERTY]
        raise OptionError(
            f"{HISTORY_PROPERTY}={value!r}: it must be a positive number; "
            f"set_properties({{{HISTORY_PROPERTY!r}: '10'}}) corrects it"
        )
    current = after.current_version_id
    most = max(len({*added, current}), size)
    by_id = {v.version_id: json for v, json in zip(after.versions, out["versions"], strict=True)}
    if len(by_id) <= most:
        return out
    latest = sorted(by_id, reverse=True)[:most]
    kept = [current, *(i for i in latest if i != current)][:most]
    log: list[Any] = []
    for entry in out.get("version-log") or ():
        log = [*log, entry] if isinstance(entry, dict) and entry.get("version-id") in kept else []
    return {**out, "versions": [by_id[i] for i in kept if i is not None], "version-log": log}


def _check_dialects(before: ViewVersion | None, after: ViewVersion | None) -> None:
    assert before is not None
    assert after is not None
    lost = [name for name in before.dialects if after.representation(name) is None]
    if lost:
        shown = ", ".join(escape.shorten(name, 60) for name in lost[:5])
        raise RuleError(
            "view-dialects-kept",
            f"version {after.version_id} has no SQL for {shown}, which version {before.version_id} has, so "
            f"engines that need this SQL could not read the view: give SQL for each dialect, or set the property "
            f"{DROP_DIALECT_PROPERTY} to 'true'",
        )


def _property_changes(properties: Mapping[str, str] | None, remove: Sequence[str]) -> tuple[Json, tuple[str, ...]]:
    given = mapping_of("properties", properties, "{'comment': 'Trips by day'}", values=str)
    gone = texts_of("remove", remove, "['comment']")
    for name in given:
        if name in gone:
            raise OptionError(f"{name!r} cannot be both set and removed")
    return given, gone
