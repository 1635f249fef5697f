"""Data files of any shape in a table of any schema, to be read as the table's."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import iceexplore as ix
from iceexplore.commits import new_table_document
from iceexplore.manifests import EntryBatch
from iceexplore.metadata import NestedField
from iceexplore.reading import read_data_file

ID = b"PARQUET:field_id"


def field(number: int, name: str, kind: Any, **more: Any) -> dict[str, Any]:
    """A field of a schema's JSON."""
    return {"id": number, "name": name, "required": False, "type": kind, **more}


def struct(*fields: Mapping[str, Any]) -> dict[str, Any]:
    """A struct's JSON."""
    return {"type": "struct", "fields": list(fields)}


def listed(number: int, kind: Any) -> dict[str, Any]:
    """A list's JSON."""
    return {"type": "list", "element-id": number, "element": kind, "element-required": False}


def mapped(key_id: int, key: Any, value_id: int, value: Any) -> dict[str, Any]:
    """A map's JSON."""
    return {
        "type": "map", "key-id": key_id, "key": key, "value-id": value_id, "value": value, "value-required": False
    }  # fmt: skip


def stored(number: int | None, name: str, kind: pa.DataType, *, nullable: bool = True) -> pa.Field:
    """A column of a file."""
    return pa.field(name, kind, nullable, None if number is None else {ID: str(number)})


def table_of(
    folder: Path,
    fields: Sequence[Mapping[str, Any]],
    *,
    version: int = 3,
    properties: Mapping[str, str] | None = None,
    spec: Sequence[Mapping[str, Any]] = (),
    older: Sequence[Sequence[Mapping[str, Any]]] = (),
) -> ix.Table:
    """A table without a snapshot; ``older`` are schemas that it had before."""
    document = new_table_document(
        format_version=version,
        location=str(folder),
        schema={"type": "struct", "fields": list(fields)},
        partition_spec=spec,
        properties=properties,
        timestamp_ms=0,
        expressions=version < 4,
    )
    for i, had in enumerate(older, 1):
        document["schemas"].append({"type": "struct", "schema-id": i, "fields": list(had)})
    (folder / "metadata").mkdir(parents=True, exist_ok=True)
    (folder / "data").mkdir(exist_ok=True)
    (folder / "metadata" / "v1.metadata.json").write_text(json.dumps(document))
    return ix.open(folder)


def put(folder: Path, table: pa.Table, name: str = "a.parquet", **how: Any) -> str:
    """Write a data file; its location."""
    path = folder / "data" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, **how)
    return str(path)


def entry(location: str, rows: int | None, *, partition: Any = None, **more: Any) -> EntryBatch:
    """A data file's entry."""
    row = {"content_type": 0, "location": location, "record_count": rows, "partition_spec_id": 0, **more}
    return EntryBatch.of_rows([row], partition=partition)


def read(
    t: ix.Table, file: EntryBatch, fields: Sequence[NestedField] | None = None, **how: Any
) -> list[dict[str, Any]]:
    """The rows of a data file, without ``_pos``, which is checked."""
    wanted = t._state.schema.fields if fields is None else fields
    tables = list(read_data_file(t._state, file, wanted, **how))
    rows: list[dict[str, Any]] = []
    for table in tables:
        table.validate(full=True)
        assert table.column_names[-1] == "_pos"
        if "row_groups" not in how:
            assert table.columns[-1].to_pylist() == list(range(len(rows), len(rows) + table.num_rows))
        rows += table.select(range(table.num_columns - 1)).to_pylist()
    return rows
