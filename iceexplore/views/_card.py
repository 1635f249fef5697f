"""The card of a view, and one-line texts of its records; names and queries are untrusted, and `render` escapes them."""

from __future__ import annotations

from collections.abc import Sized

from iceexplore.metadata import Schema, format_ms
from iceexplore.render import Card, CardTable, CardText, escape, line_of
from iceexplore.views._model import Representation, ViewMetadata, ViewVersion
from iceexplore.views._state import ViewState
from iceexplore.views._travel import view_clock

__all__ = ["fields_table", "sql_texts", "versions_table", "view_card"]

_SHOWN_VERSIONS = 8
_SHOWN_FIELDS = 40
_SHOWN_PROBLEMS = 20
_SHOWN_TEXTS = 8


def view_card(state: ViewState) -> Card:
    """Return the view's card: facts, the SQL of each dialect, columns, versions and problems."""
    m, version = state.metadata, state.version
    problems = tuple((p.severity, f"{p.text} [{p.code}]", p.where) for p in list(state.problems)[:_SHOWN_PROBLEMS])
    left = len(state.problems) - len(problems)
    if left > 0:
        problems = (*problems, ("info", f"{left:,} more problems: see v.problems", ""))
    schema = state.schema
    badges = [f"Iceberg view v{m.format_version}", *(["early draft"] if m.early_draft else [])]
    if version is not None and version.storage_table is not None:
        badges.append("materialized (proposal)")
    return Card(
        title=state.name,
        badges=(*badges, *((state.travel,) if state.travel else ())),
        subtitle=m.location,
        facts=tuple(_facts(state)),
        texts=() if version is None else sql_texts(version),
        tables=(*(() if schema is None else (fields_table(schema, len(m.schemas)),)), versions_table(state)),
        notes=(f"Metadata file: {state.metadata_location}", *state.notes, *_clock_note(m)),
        problems=problems,
    )


def _facts(state: ViewState) -> list[tuple[str, str]]:
    m, version = state.metadata, state.version
    facts: list[tuple[str, str]] = []
    if version is None:
        facts.append(("Version", "none is current" if m.versions else "none: the metadata has no versions"))
    else:
        facts += [("Version", str(version.version_id)), ("Created", format_ms(version.timestamp_ms))]
        named = (("Operation", version.operation), ("Engine", version.engine))
        facts += [(label, value) for label, value in named if value]
        facts.append(("Dialects", ", ".join(version.dialects) or "none"))
        catalog, namespace = version.catalog_of(), version.namespace_of()
        facts.append(("Default catalog", "the view's own" if catalog is None else catalog))
        facts.append(("Default namespace", "not stored" if namespace is None else ".".join(namespace) or "(empty)"))
        if version.storage_table is not None:
            facts.append(("Storage table", f"{'.'.join(version.storage_table)} (see v.freshness())"))
    comment = m.properties.get("comment")
    if comment:
        facts.append(("Comment", comment))
    if m.view_uuid:
        facts.append(("View UUID", m.view_uuid))
    return facts


def _clock_note(m: ViewMetadata) -> tuple[str, ...]:
    if not m.versions or m.version_log:
        return ()
    return ("The view has no version-log: at(timestamp=) uses the times at which the versions were created.",)


def sql_texts(version: ViewVersion) -> tuple[CardText, ...]:
    """Return the SQL of each dialect as texts for a card."""
    stored = version.sql
    shown = [CardText(f"SQL, {r.dialect or 'unknown dialect'}", r.sql or "") for r in stored[:_SHOWN_TEXTS]]
    more = len(stored) - len(shown)
    return (*shown, CardText(f"{more:,} more dialects", "v.inspect.representations()", open=False)) if more else tuple(
        shown
    )  # fmt: skip


def fields_table(schema: Schema, schemas: int) -> CardTable:
    """Return the columns of a schema as a table for a card."""
    every = list(schema.walk())
    rows = tuple(
        (str(f.field_id), name, escape.shorten(str(f.type), 80), "required" if f.required else "", f.doc or "")
        for name, f in every[:_SHOWN_FIELDS]
    )
    note = f"schema {schema.schema_id}, one of {schemas}"
    if len(every) > len(rows):
        note += f"; {len(every) - len(rows)} more columns: v.inspect.schemas()"
    columns = ("id", "column", "type", "", "doc")
    return CardTable("Columns", columns, rows, note, code=frozenset({1, 2}), right=frozenset({0}))


def versions_table(state: ViewState, most: int = _SHOWN_VERSIONS) -> CardTable:
    """Return the latest entries of the version log as a table for a card, with rollbacks marked."""
    entries, from_log = view_clock(state.metadata)
    by_id = {v.version_id: v for v in reversed(state.metadata.versions)}
    seen: set[int] = set()
    marks = []
    for entry in entries:
        marks.append("rolled back to" if entry.version_id in seen else "")
        seen.add(entry.version_id)
    rows = []
    shown_id = None if state.version is None else state.version.version_id
    for entry, mark in list(zip(entries, marks, strict=True))[: -most - 1 : -1]:
        version = by_id.get(entry.version_id)
        here = "▶ " if entry.version_id == shown_id else ""
        what = "expired" if version is None else ", ".join(x for x in (version.operation, version.engine) if x)
        dialects = "" if version is None else ", ".join(version.dialects)
        rows.append((here + str(entry.version_id), format_ms(entry.timestamp_ms), mark, what, dialects))
    note = f"{_count(state.metadata.versions, 'version')}, {_count(entries, 'change')}"
    note += f", last {len(rows)} shown" if len(entries) > len(rows) else ""
    heading = "current from" if from_log else "created"
    return CardTable(
        "Versions", ("version", heading, "", "made by", "dialects"), tuple(rows), note, code=frozenset({0})
    )


def _count(of: Sized, what: str) -> str:
    return f"{len(of):,} {what}{'' if len(of) == 1 else 's'}"


@line_of.register
def _version_line(version: ViewVersion) -> str:
    """Return a line with a version's id, time, engine and dialects."""
    parts = [format_ms(version.timestamp_ms), version.operation, version.engine, ", ".join(version.dialects)]
    shown = ", ".join(escape.shorten(part, 80) for part in parts if part)
    return escape.text(f"<ViewVersion {version.version_id}: {shown}>")


@line_of.register
def _representation_line(r: Representation) -> str:
    """Return a line with a representation's dialect and the beginning of its SQL."""
    shown = escape.shorten(" ".join((r.sql or "")[:400].split()), 100)
    return escape.text(f"<Representation {escape.shorten(r.dialect or r.type, 40)}: {shown}>")


@line_of.register
def _metadata_line(m: ViewMetadata) -> str:
    """Return a line that counts the parts of a view's metadata file."""
    parts = f"{_count(m.schemas, 'schema')}, {_count(m.versions, 'version')}, {_count(m.version_log, 'change')}"
    return escape.text(f"<ViewMetadata of {escape.shorten(m.location, 200)}: {parts}>")
