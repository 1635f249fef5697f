"""The card of a loose file, a file opened without its table. Importing this module registers `loose_card`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from iceexplore.arrow import AnyScalar
from iceexplore.errors import IceexploreError
from iceexplore.formats import field_id
from iceexplore.graph import human_bytes
from iceexplore.inspect.loose._file import LooseFile
from iceexplore.metadata import Schema
from iceexplore.render import Card, CardTable, card_of, escape
from iceexplore.storage import JsonValue

__all__ = ["loose_card"]

_ROWS = 10
_COLUMNS = 12
_CELL = 60
_VALUE = 300


@card_of.register
def loose_card(file: LooseFile) -> Card:
    """Return a loose file's card: kind, header, first records and problems, as plain text that is not escaped yet."""
    scalars = [(k, v) for k, v in file.header.items() if not isinstance(v, (Mapping, list))]
    facts = [("size", human_bytes(file.size)) if file.size is not None else ("size", "unknown")]
    facts += [(k, _text(v, 80)) for k, v in scalars if v not in (None, "")]
    tables = [t for t in (_records(file), _vectors(file), _schema(file.schema), _pairs(file.header)) if t is not None]
    return Card(
        title=file.location.rstrip("/").rpartition("/")[2] or file.location,
        badges=(file.kind,),
        subtitle=file.location,
        facts=tuple(facts),
        tables=tuple(tables),
        problems=tuple((p.severity, p.text, p.where) for p in file.problems),
    )


def _records(file: LooseFile) -> CardTable | None:
    try:
        table = file.arrow()
    except IceexploreError as error:
        if any(p.severity == "error" for p in file.problems):  # the card lists the fault among its problems
            return None
        return CardTable("Records", ("error",), ((_text(error, _VALUE),),))
    if not table.num_columns:
        return None
    shown = table.slice(0, _ROWS)
    names = shown.schema.names[:_COLUMNS]
    rows = tuple(zip(*([_cell(v) for v in shown.column(i)] for i in range(len(names))), strict=True))
    parts = [f"{table.num_rows:,} rows"]
    if table.num_rows > _ROWS:
        parts.append(f"first {_ROWS} shown")
    if table.num_columns > _COLUMNS:
        parts.append(f"+{table.num_columns - _COLUMNS} more columns")
    right = frozenset(i for i in range(len(names)) if pa.types.is_integer(shown.schema.field(i).type))
    return CardTable("Records", tuple(names), rows, note=", ".join(parts), right=right)


def _vectors(file: LooseFile) -> CardTable | None:
    """Return a table of the decoded manifest DVs, as their raw bytes are unreadable."""
    if file.kind != "root manifest":
        return None
    try:
        found = file.manifest_deletion_vectors()
    except IceexploreError:
        return None
    if not len(found):
        return None
    rows = []
    for row in found.slice(0, _ROWS).to_pylist():
        count = row["stated_cardinality"] if row["cardinality"] is None else row["cardinality"]
        place = row["fault"] or row["form"] or f"{row['file_path']} at {row['offset']}"
        listed = "" if row["positions"] is None else ", ".join(map(str, row["positions"][:_CELL]))
        values = (row["manifest"] or "", "" if count is None else count, listed)
        rows.append((*(_text(v, _CELL) for v in values), _text(place, _VALUE)))
    note = f"{len(found):,} vectors" + (f", first {_ROWS} shown" if len(found) > _ROWS else "")
    names = ("manifest", "removes", "positions", "encoding, location or fault")
    return CardTable("Manifest deletion vectors", names, tuple(rows), note=note, right=frozenset({1}))


def _cell(value: AnyScalar) -> str:
    if not value.is_valid:
        return ""
    if pa.types.is_timestamp(value.type):
        return str(value)
    try:
        plain = value.as_py()
    except (ValueError, OverflowError):  # dates that Python cannot represent, text that is not UTF-8
        return str(value.type)
    return _text(plain.hex() if isinstance(plain, bytes) else plain, _CELL)


def _schema(schema: object) -> CardTable | None:
    rows: Iterable[tuple[str, str, str]]
    if isinstance(schema, Schema):
        rows = [(str(f.field_id), name, str(f.type)) for name, f in schema.walk()]
    elif isinstance(schema, pa.Schema):
        rows = [("" if field_id(f) is None else str(field_id(f)), f.name, str(f.type)) for f in schema]
    elif isinstance(schema, dict) and isinstance(schema.get("fields"), list):
        fields = [f for f in schema["fields"] if isinstance(f, dict)]
        rows = [(_text(f.get("field-id", ""), 20), _text(f.get("name"), _CELL), _avro(f.get("type"))) for f in fields]
    else:
        return None
    kept = [(a, _text(b, _CELL), _text(c, _CELL)) for a, b, c in rows]
    note = f"{len(kept)} fields" if len(kept) > 1 else ""
    return CardTable("Schema", ("id", "name", "type"), tuple(kept[:200]), note=note, open=False, code=frozenset({1, 2}))


def _avro(kind: JsonValue) -> str:
    if isinstance(kind, list):
        return " or ".join(_avro(k) for k in kind[:8])
    if isinstance(kind, dict):
        return str(kind.get("logicalType") or kind.get("type"))
    return str(kind)


def _pairs(header: Mapping[str, Any]) -> CardTable | None:
    rows: list[tuple[str, str]] = []
    for key, value in header.items():
        if isinstance(value, Mapping):
            inside = key in ("metadata", "properties")
            rows += [(k if inside else f"{key}.{k}", _text(v, _VALUE)) for k, v in value.items()]
        elif isinstance(value, list):
            rows.append((key, f"{len(value):,} items" if len(value) > 3 else _text(value, _VALUE)))
    if not rows:
        return None
    return CardTable("Header", ("key", "value"), tuple(rows[:200]), open=False, code=frozenset({1}))


def _text(value: object, limit: int) -> str:
    return escape.shorten(value, limit)
