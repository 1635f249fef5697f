"""A table from nothing: what a simulation starts from that has no table."""

from __future__ import annotations

import json
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from iceexplore.commits._new_document import new_table_document
from iceexplore.commits._schema_evolution import evolve_schema
from iceexplore.commits._spec_evolution import evolve_spec
from iceexplore.errors import OptionError
from iceexplore.graph import TableState, open_state
from iceexplore.metadata import Type

__all__ = ["empty_state"]

#: 2026-01-01, UTC: an empty table is the same each time it is made.
_CREATED_MS = 1_767_225_600_000


def empty_state(
    schema: Mapping[str, str | Mapping[str, Any] | Type],
    *,
    partition_by: str | Iterable[str] = (),
    format_version: int = 4,
    location: str = "/warehouse/db/events",
    properties: Mapping[str, str] | None = None,
) -> TableState:
    """The state of a new table without a snapshot; its metadata file is in a temporary folder that goes with it.

    Parameters
    ----------
    schema
        Types by column name: ``{"id": "long", "tags": "list<string>"}``; columns are optional.
    partition_by
        Partition fields: ``"day(ts)"``, ``"bucket(16, id)"``, ``"region"``.
    location
        Where the table would be.

    Raises
    ------
    OptionError, RuleError
        The schema or the spec makes no sense.
    """
    if not schema:
        raise OptionError("schema={}: a table has a column at least")
    bare: Any = {"format_version": format_version, "location": location, "timestamp_ms": _CREATED_MS}
    fields = [partition_by] if isinstance(partition_by, str) else list(partition_by)
    made = evolve_schema(new_table_document(schema={"fields": []}, **bare, expressions=False), add=schema)
    columns = next(s for s in made["schemas"] if s["schema-id"] == made["current-schema-id"])
    plain = new_table_document(schema=columns, **bare, expressions=False)
    if fields:
        below = {**plain, "format-version": min(format_version, 3)}
        made = evolve_spec(below, add=fields)
        spec = next(s for s in made["partition-specs"] if s["spec-id"] == made["default-spec-id"])
        document = new_table_document(schema=columns, partition_spec=spec["fields"], properties=properties, **bare)
    else:
        document = new_table_document(schema=columns, properties=properties, **bare)
    folder = Path(tempfile.mkdtemp(prefix="iceexplore-"))
    (folder / "metadata").mkdir()
    (folder / "metadata" / "v1.metadata.json").write_text(json.dumps(document), encoding="utf-8")
    state = open_state(folder, moved={location: str(folder)})
    weakref.finalize(state.storage, shutil.rmtree, folder, True)
    # Where its one file is for the time being is no news to anybody.
    return replace(state, opened=replace(state.opened, name=None, notes=()), notes=())
