"""Create a new, empty table, for example for a simulation that does not start from an existing one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from iceexplore.commits.added_files._from_records import refuse_half_characters
from iceexplore.commits.metadata_updates._new_table import new_table_document
from iceexplore.commits.metadata_updates._schema import evolve_schema, first_schema
from iceexplore.commits.metadata_updates._spec_and_sort_order import evolve_spec, set_sort_order
from iceexplore.commits.metadata_updates._virtual_columns import evolve_virtual_columns
from iceexplore.errors import OptionError, items_of, mapping_of, texts_of, version_of
from iceexplore.graph import TableState, open_state
from iceexplore.storage import TemporaryFolder, temporary_room
from iceexplore.writing import SchemaLike, given_schema

__all__ = ["empty_state", "new_table"]

#: 2026-01-01, UTC: a fixed time, so that empty tables with the same arguments are identical.
_CREATED_MS = 1_767_225_600_000


def empty_state(
    schema: SchemaLike,
    *,
    partition_by: str | Iterable[str] | None = (),
    format_version: int = 4,
    location: str = "/warehouse/db/events",
    properties: Mapping[str, str] | None = None,
    virtual_columns: str | Iterable[str | tuple[str, str]] | None = (),
    expressions: bool = True,
) -> TableState:
    """Return the state of a new table without a snapshot.

    The metadata file is in a temporary folder, which is removed together with the state.

    Parameters
    ----------
    schema
        The table's schema, in one of these forms: a dictionary of types by column name, such as
        ``{"id": "long", "tags": "list<string>"}`` (all columns are optional then); an iceexplore, PyIceberg or PyArrow
        schema; or a data frame or Arrow table, of which only the schema is used.
    partition_by
        Partition fields: ``"day(ts)"``, ``"bucket(16, id)"``, ``"region"``.
    location
        The table's location, as recorded in the metadata file.
    virtual_columns
        Functions of columns for which files store statistics (V4): ``"lower(name)"`` (`evolve_virtual_columns`).
    expressions
        In version 4, whether partition specs reference expressions. False writes them in the form of v3, as
        in the dialect ``v4-java``.

    Raises
    ------
    OptionError, RuleError
        The schema, the spec or the location is invalid.
    """
    refuse_half_characters(location, "location")
    document = new_table(
        schema,
        partition_by=partition_by,
        format_version=format_version,
        location=location,
        properties=properties,
        virtual_columns=virtual_columns,
        timestamp_ms=_CREATED_MS,
        expressions=expressions,
    )
    what = "the new table"
    temporary = TemporaryFolder("table", what)
    folder = Path(temporary.path)
    try:
        with temporary_room(what):
            (folder / "metadata").mkdir()
            (folder / "metadata" / "v1.metadata.json").write_text(json.dumps(document), encoding="utf-8")
        state = open_state(folder, moved={location: str(folder)})
    except BaseException:
        temporary.remove()
        raise
    temporary.remove_with(state.storage)
    # The name and the notes are dropped, because they would show the temporary folder.
    return replace(state, opened=replace(state.opened, name=None, notes=()), notes=())


def new_table(
    schema: SchemaLike,
    *,
    partition_by: str | Iterable[str] | None = (),
    sort_by: str | Iterable[str] | None = (),
    format_version: int,
    location: str,
    properties: Mapping[str, str] | None = None,
    table_uuid: str | None = None,
    timestamp_ms: int | None = None,
    virtual_columns: str | Iterable[str | tuple[str, str]] | None = (),
    expressions: bool = True,
) -> dict[str, Any]:
    """Return the metadata document of a new, empty table, from a schema, spec and sort order as users write them.

    Parameters
    ----------
    schema, partition_by, virtual_columns
        As for `empty_state`.
    sort_by
        Sort fields (`set_sort_order`): ``"ts desc nulls last"``, ``"bucket(16, id)"``.
    location, properties, table_uuid, timestamp_ms, expressions
        As for `new_table_document`.

    Raises
    ------
    OptionError, RuleError
        The schema, the spec or the sort order is invalid.
    """
    format_version = version_of(format_version)
    given = given_schema(schema, format_version)
    added = {} if given else mapping_of("schema", schema, "{'id': 'long', 'ts': 'timestamp'}, or a PyArrow schema")
    if not (given.fields if given else added):
        raise OptionError("schema: a table needs at least one column")
    bare: Any = {"format_version": format_version, "location": location, "timestamp_ms": timestamp_ms}
    fields = items_of("partition_by", () if partition_by is None else partition_by, "['day(ts)', 'bucket(16, id)']")
    order = texts_of("sort_by", () if sort_by is None else sort_by, "['ts desc', 'id']")
    made = new_table_document(schema={"fields": []}, **bare, expressions=False)
    if given:
        columns = first_schema(made, given)
    else:
        made = evolve_schema(made, add=added)
        columns = next(s for s in made["schemas"] if s["schema-id"] == made["current-schema-id"])
    spec: list[Any] = []
    if fields:
        plain = new_table_document(schema=columns, **bare, expressions=False)
        made = evolve_spec({**plain, "format-version": min(format_version, 3)}, add=fields)
        spec = next(s for s in made["partition-specs"] if s["spec-id"] == made["default-spec-id"])["fields"]
    document = new_table_document(
        schema=columns,
        partition_spec=spec,
        properties=properties,
        table_uuid=table_uuid,
        expressions=expressions,
        **bare,
    )
    if virtual_columns:
        document = evolve_virtual_columns(document, add=virtual_columns)
    return set_sort_order(document, fields=order) if order else document
