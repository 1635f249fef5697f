"""A reader as plain as the spec's words: every live data file whole, row by row in Python, deletes applied one by one.

It shares with the package what other tests have proven: manifests (entries after inheritance, tuples), and the decoding
of deletion vectors. Nothing is pruned, nothing is vectorised.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from iceexplore.arrow import build
from iceexplore.deletes import read_deletion_vector
from iceexplore.expressions import Always, And, Expression, Or, Predicate
from iceexplore.graph import TableState
from iceexplore.manifests import ContentType, live
from iceexplore.metadata import ListType, MapType, NestedField, Schema, StructType

EPOCH = dt.date(1970, 1, 1)
MIDNIGHT = dt.datetime(1970, 1, 1)


@dataclass
class BruteFile:
    """A live data file: its rows as the table's schema has them, by position, and which of them are deleted."""

    location: str
    rows: list[dict[str, Any]]
    deleted: set[int]
    entry: dict[str, Any]
    partition: tuple[Any, ...]
    raw: list[dict[int, Any]] = field(repr=False, default_factory=list)

    def live_rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Position and row of what is left."""
        return ((i, row) for i, row in enumerate(self.rows) if i not in self.deleted)


def brute_force(state: TableState) -> dict[str, BruteFile]:
    """Every live data file by location."""
    entries = list(_entries(state))
    files: dict[str, BruteFile] = {}
    for entry, partition in entries:
        if entry["content_type"] == ContentType.DATA:
            table = pq.read_table(state.storage.resolve(entry["location"]))
            rows = [_row(state.schema.fields, raw, table.schema) for raw in table.to_pylist()]
            raw = [_all_columns(state, raw, table.schema) for raw in table.to_pylist()]
            files[entry["location"]] = BruteFile(entry["location"], rows, set(), entry, partition, raw)
    for file in files.values():
        file.deleted = _deleted(state, file, entries)
    return files


def _entries(state: TableState) -> Iterator[tuple[dict[str, Any], tuple[Any, ...]]]:
    """Live entries with their tuples."""
    for leaf in state.leaves(parts=frozenset({"entries", "partition"})):
        tuples = leaf.partition()
        alive = live(leaf.entries).to_pylist()
        for i, entry in enumerate(leaf.entries.to_pylist()):
            if alive[i] and entry["content_type"] in (0, 1, 2):
                spec = state.metadata.spec(entry["partition_spec_id"])
                assert spec is not None
                found: Any = {} if tuples is None else tuples[i].as_py() or {}
                yield entry, tuple(found.get(str(f.field_id)) for f in spec.fields)


def _deleted(state: TableState, file: BruteFile, entries: list[tuple[dict[str, Any], tuple[Any, ...]]]) -> set[int]:
    """Positions that are deleted (spec, "Scan Planning", the three lists of when a delete applies)."""
    mine = file.entry
    gone: set[int] = set()
    positions: set[int] = set()
    vector: set[int] | None = None
    for entry, partition in entries:
        same = (entry["partition_spec_id"], _plain(partition)) == (mine["partition_spec_id"], _plain(file.partition))
        if entry["content_type"] == ContentType.POSITION_DELETE:
            if mine["sequence_number"] > entry["sequence_number"]:
                continue
            if entry["deletion_vector"] is not None:
                if entry["referenced_file"] == file.location:
                    at = entry["deletion_vector"]
                    bits = read_deletion_vector(state.storage, entry["location"], at["offset"], at["size_in_bytes"])
                    vector = set(bits)
            elif same:
                table = pq.read_table(state.storage.resolve(entry["location"]))
                for path, pos in zip(build.to_pylist(table["file_path"]), build.to_pylist(table["pos"]), strict=True):
                    if path == file.location:
                        positions.add(pos)
        elif entry["content_type"] == ContentType.EQUALITY_DELETE:
            spec = state.metadata.spec(entry["partition_spec_id"])
            assert spec is not None
            if mine["sequence_number"] < entry["sequence_number"] and (same or not spec.fields):
                gone |= _equal(state, file, entry)
    return gone | (positions if vector is None else vector)


def _plain(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple("NaN" if v != v else v for v in values)


def _equal(state: TableState, file: BruteFile, entry: dict[str, Any]) -> set[int]:
    table = pq.read_table(state.storage.resolve(entry["location"]))
    wanted = entry["equality_ids"]
    names = {_id(f): f.name for f in table.schema}
    keys = {tuple(row[names[i]] for i in wanted) for row in table.to_pylist()}
    return {at for at, row in enumerate(file.raw) if tuple(row.get(i) for i in wanted) in keys}


def _id(f: pa.Field) -> int:
    return int((f.metadata or {})[b"PARQUET:field_id"])


def _row(fields: tuple[NestedField, ...], row: dict[str, Any], stored: Any) -> dict[str, Any]:
    """A row of the file in the columns of a schema, found by field id (spec, "Column Projection")."""
    children = [stored.field(i) for i in range(stored.num_fields)] if isinstance(stored, pa.DataType) else list(stored)
    places = {_id(f): f for f in children}
    out = {}
    for f in fields:
        found = places.get(f.field_id)
        out[f.name] = f.initial_default if found is None else _value(f, row[found.name], found.type)
    return out


def _value(f: NestedField, value: Any, stored: pa.DataType) -> Any:
    if value is None or isinstance(f.type, ListType | MapType):
        return value
    if isinstance(f.type, StructType):
        return _row(f.type.fields, value, stored)
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime) and str(f.type) == "timestamp":
        return dt.datetime.combine(value, dt.time())
    return getattr(value, "bytes", value)  # a UUID


def _all_columns(state: TableState, row: dict[str, Any], stored: pa.Schema) -> dict[int, Any]:
    """Top columns of any schema of the table by field id: an equality delete may name one that is dropped since."""
    places = {_id(f): f.name for f in stored}
    out: dict[int, Any] = {}
    for schema in (*state.metadata.schemas, state.schema):
        for f in schema.fields:
            out[f.field_id] = row[places[f.field_id]] if f.field_id in places else f.initial_default
    return out


# The package's own expressions, row by row ---------------------------------------------------------------------------


def stored_form(value: Any) -> Any:
    """A Python value as the literals of `Predicate` have it."""
    if isinstance(value, dt.datetime):
        since = value.replace(tzinfo=None) - MIDNIGHT
        return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    if isinstance(value, dt.date):
        return (value - EPOCH).days
    if isinstance(value, dt.time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    return value


def by_id(schema: Schema, row: dict[str, Any]) -> dict[int, Any]:
    """The row's values by field id, also those inside structs."""
    out: dict[int, Any] = {}

    def visit(fields: tuple[NestedField, ...], values: dict[str, Any] | None) -> None:
        for f in fields:
            value = None if values is None else values[f.name]
            out[f.field_id] = value
            if isinstance(f.type, StructType):
                visit(f.type.fields, value)

    visit(schema.fields, row)
    return out


def selects(expression: Expression, values: dict[int, Any]) -> bool:
    """Whether a bound expression selects a row, by the words of its documentation."""
    match expression:
        case Always(value):
            return value
        case And(children):
            return all(selects(c, values) for c in children)
        case Or(children):
            return any(selects(c, values) for c in children)
    p = expression
    assert isinstance(p, Predicate)
    value = stored_form(values[p.field_id])
    match p.op:
        case "is-null":
            return value is None
        case "not-null":
            return value is not None
        case "is-nan":
            return value is not None and value != value
        case "not-nan":
            return value is None or value == value
    if value is None:
        return False
    match p.op:
        case "=" | "in":
            return any(value == x for x in p.literals)
        case "!=" | "not-in":
            return all(value != x for x in p.literals)
        case "starts-with":
            return bool(value.startswith(p.literals[0]))
        case "not-starts-with":
            return not value.startswith(p.literals[0])
    (x,) = p.literals
    compare: dict[str, Any] = {"<": value < x, "<=": value <= x, ">": value > x, ">=": value >= x}
    return bool(compare[p.op])


def same_value(a: Any, b: Any) -> bool:
    """Equality that takes NaN for itself and looks inside."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same_value(a[k], b[k]) for k in a)
    if isinstance(a, float) and isinstance(b, float) and a != a:
        return b != b
    if isinstance(a, Decimal) or isinstance(b, Decimal):
        return bool(a == b)
    return type(a) is type(b) and bool(a == b)
