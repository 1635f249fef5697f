"""Check view metadata against itself: references, ids, the version log, dialects, aliases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import TypeVar

from iceexplore.errors import problem
from iceexplore.metadata import Reporter, format_ms
from iceexplore.views._model import ViewMetadata, ViewVersion

__all__ = ["HISTORY_DEFAULT", "HISTORY_PROPERTY", "check_view", "history_entries"]

#: The property that limits how many versions are kept, and Java's default (ViewProperties.VERSION_HISTORY_SIZE).
HISTORY_PROPERTY = "version.history.num-entries"
HISTORY_DEFAULT = 10
T = TypeVar("T")

#: The maximum number of ids to list in a message.
_MOST = 5


def check_view(metadata: ViewMetadata, reporter: Reporter) -> None:
    """Report contradictions in a view's metadata, and violations of the spec."""
    _check_references(metadata, reporter)
    _check_version_ids(metadata, reporter)
    _check_log(metadata, reporter)
    fields = {s.schema_id: len(s.fields) for s in reversed(metadata.schemas)}
    for version in metadata.versions:
        _check_representations(version, fields, reporter.at(f"version {version.version_id}"))
    value = metadata.properties.get(HISTORY_PROPERTY)
    if value is not None and history_entries(metadata) is None:
        reporter.warning(f"the property {HISTORY_PROPERTY} must be a positive number", HISTORY_PROPERTY, found=value)


def history_entries(metadata: ViewMetadata) -> int | None:
    """Return the number of versions to keep, from the view's property or Java's default; None if invalid."""
    value = metadata.properties.get(HISTORY_PROPERTY)
    if value is None:
        return HISTORY_DEFAULT
    text = value.strip()
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 and int(text) > 0 else None


def _check_references(metadata: ViewMetadata, reporter: Reporter) -> None:
    ids = {v.version_id for v in metadata.versions}
    if not metadata.versions:
        if isinstance(metadata.raw.get("versions"), list):
            reporter.error("the view has no versions, so it has no query", "versions")
    elif metadata.current_version_id is not None and metadata.current_version_id not in ids:
        reporter.error(
            f"current-version-id {metadata.current_version_id} is not the id of a version", "current-version-id"
        )
    schemas = {s.schema_id for s in metadata.schemas}
    for version in metadata.versions:
        for schema_id in version.schema_ids():
            if schema_id not in schemas and (schemas or not metadata.early_draft):
                where = reporter.at(f"version {version.version_id}")
                text = f"version {version.version_id} names schema {schema_id}, which the metadata lacks"
                where.error(text, "schema-id")
    if metadata.early_draft and metadata.current_schema_id is not None and metadata.current_schema_id not in schemas:
        reporter.error(f"current-schema-id {metadata.current_schema_id} is not the id of a schema", "current-schema-id")
    for schema_id in _repeated(s.schema_id for s in metadata.schemas):
        reporter.warning(f"several schemas have the id {schema_id}: the first is used", "schemas")


def _check_version_ids(metadata: ViewMetadata, reporter: Reporter) -> None:
    for version_id in _repeated(v.version_id for v in metadata.versions):
        reporter.at(f"version {version_id}").error(
            f"several versions have the id {version_id}: the first is shown", "version-id"
        )
    if reporter.problems is None:
        return
    in_time = sorted(metadata.versions, key=lambda v: v.timestamp_ms)
    # Equal times say nothing about the order: an engine may create two versions within a millisecond.
    bad = [(a, b) for a, b in pairwise(in_time) if b.version_id < a.version_id and b.timestamp_ms > a.timestamp_ms]
    low = [v for v in metadata.versions if v.version_id < 1]
    if bad:
        a, b = bad[0]
        text = f"version {b.version_id} was created after version {a.version_id}, although version ids increase" + (
            f" ({len(bad)} such pairs)" if len(bad) > 1 else ""
        )
        where = reporter.at(f"version {b.version_id}").where
        found = f"{format_ms(b.timestamp_ms)} after {format_ms(a.timestamp_ms)}"
        reporter.problems.add(problem("view-version-ids", where, text, field="version-id", found=found))
    if low:
        where = reporter.at(f"version {low[0].version_id}").where
        text = f"version ids start with 1, but the metadata has {_listed(v.version_id for v in low)}"
        reporter.problems.add(problem("view-version-ids", where, text, field="version-id", expected="1 or more"))
    for version in metadata.versions:
        parent = version.parent_version_id
        if parent is not None and parent >= version.version_id:
            where = reporter.at(f"version {version.version_id}").where
            text = f"the parent of version {version.version_id} must be an earlier version"
            reporter.problems.add(problem("view-version-ids", where, text, field="parent-version-id", found=parent))


def _check_log(metadata: ViewMetadata, reporter: Reporter) -> None:
    if reporter.problems is None or not metadata.versions:
        return
    where, log = reporter.where, metadata.version_log
    if not log:
        if isinstance(metadata.raw.get("version-log"), list):
            text = "the version-log is empty: at(timestamp=) uses the times at which the versions were created"
            reporter.problems.add(problem("view-log-differs", where, text, field="version-log"))
        return
    unordered = [b for a, b in pairwise(log) if b.timestamp_ms < a.timestamp_ms]
    if unordered:
        text = (
            f"the version-log is not in chronological order: {len(unordered)} "
            f"entr{'y is' if len(unordered) == 1 else 'ies are'} earlier than the one before"
        )
        found = f"{unordered[0].timestamp_ms} (version {unordered[0].version_id})"
        reporter.problems.add(problem("view-log-differs", where, text, field="timestamp-ms", found=found))
    last, current = log[-1].version_id, metadata.current_version_id
    if current is not None and last != current:
        text = f"the version-log ends with version {last}, but version {current} is current"
        reporter.problems.add(
            problem("view-log-differs", where, text, field="version-id", found=last, expected=current)
        )
    known = {v.version_id for v in metadata.versions}
    expired = list(dict.fromkeys(e.version_id for e in log if e.version_id not in known))
    if expired:
        what = "a version that" if len(expired) == 1 else f"{len(expired):,} versions that"
        text = f"the version-log names {what} the metadata no longer has: {_listed(expired)}"
        reporter.problems.add(problem("view-version-expired", where, text, field="version-log"))


def _check_representations(version: ViewVersion, fields: dict[int, int], reporter: Reporter) -> None:
    if reporter.problems is None:
        return
    here, number = reporter.where, version.version_id
    if not version.representations and isinstance(version.raw.get("representations"), list):
        reporter.error(f"version {number} has no representations, so it has no query", "representations")
    for dialect in _repeated((r.dialect or "").lower() for r in version.sql):
        text = f"version {number} has several SQL texts for the dialect {dialect!r}: the first is shown"
        reporter.problems.add(problem("view-dialect-twice", here, text, field="dialect", found=dialect))
    unknown = sorted({r.type for r in version.representations if r.type != "sql"})
    if unknown:
        text = f"version {number} has representations of unknown types: {_listed(map(repr, unknown))}"
        reporter.problems.add(problem("view-representation-unknown", here, text, field="type"))
    blank = [r.dialect or "?" for r in version.sql if not (r.sql or "").strip()]
    if blank:
        reporter.error(f"version {number} has an empty SQL text for {_listed(blank)}", "sql")
    if len(version.schema_ids()) > 1:
        reporter.warning(
            f"the representations of version {number} name different schemas: the first is shown", "schema-id",
            found=_listed(version.schema_ids()),
        )  # fmt: skip
    for r in version.representations:
        schema_id = version.schema_id if version.schema_id is not None else r.schema_id
        if schema_id is None or schema_id not in fields:
            continue
        for key, values in (("field-aliases", r.field_aliases), ("field-docs", r.field_docs)):
            if values is not None and len(values) != fields[schema_id]:
                text = f"{key} of version {number} must have one item for each top-level field of schema {schema_id}"
                reporter.problems.add(
                    problem("view-aliases", here, text, field=key, found=len(values), expected=fields[schema_id])
                )


def _repeated(values: Iterable[T]) -> list[T]:
    return [value for value, count in Counter(values).items() if count > 1]


def _listed(values: Iterable[object]) -> str:
    found = list(map(str, values))
    return ", ".join(found[:_MOST]) + (" …" if len(found) > _MOST else "")
