"""Data files and deletes made by hand, and the spec's rules of which delete applies to which, one pair at a time."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.deletes import FILE_PATH_ID
from iceexplore.errors import Problems
from iceexplore.manifests import EntryBatch, stats_type
from iceexplore.metadata import parse_table_metadata
from iceexplore.planning import MatchedDeletes
from iceexplore.planning.delete_index._delete_files import gathered
from iceexplore.planning.delete_index._match import DeleteIndex

DATA, POSITION, EQUALITY = 0, 1, 2
#: id, name and x, by column id.
COLUMNS: dict[int, pa.DataType] = {1: pa.int64(), 2: pa.string(), 3: pa.float64()}
#: Partition field ids of each spec: 0 has none, 2 has a void field alone, 4 is of another transform of the same column.
SPECS: dict[int, tuple[str, ...]] = {0: (), 1: ("1000", "1001"), 2: ("1002",), 3: ("1003",), 4: ("1000",)}
TUPLES = {"1000": pa.string(), "1001": pa.float64(), "1002": pa.string(), "1003": pa.int64()}


@dataclass
class Stats:
    """Statistics of a column; None where there is none."""

    lower: Any = None
    upper: Any = None
    values: int | None = None
    nulls: int | None = None
    nans: int | None = None
    tight: bool | None = None

    def record(self) -> dict[str, Any]:
        return {"lower": self.lower, "upper": self.upper, "value_count": self.values, "null_count": self.nulls,
                "nan_count": self.nans, "tight_bounds": self.tight}  # fmt: skip


@dataclass
class Entry:
    """A data file or a delete."""

    kind: int = DATA
    location: str = "/t/a"
    sequence: int | None = 1
    spec: int = 0
    place: dict[str, Any] = field(default_factory=dict)
    referenced: str | None = None
    vector: bool = False
    ids: tuple[int, ...] = ()
    stats: dict[int, Stats] = field(default_factory=dict)
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    count: int = 10


def metadata(properties: dict[str, str] | None = None, required: bool = False, since: int = 0) -> Any:
    """The metadata of a table whose column id may be required, from schema ``since`` on; earlier schemas lack it."""
    fields = [("id", 1, "long"), ("name", 2, "string"), ("x", 3, "double")]
    schema: dict[str, Any] = {"type": "struct", "schema-id": since, "fields": [
        {"id": i, "name": n, "type": t, "required": required and i == 1} for n, i, t in fields]}  # fmt: skip
    earlier = [{**schema, "schema-id": i, "fields": schema["fields"][1:]} for i in range(since)]

    def spec(number: int, *made: tuple[int, int, str]) -> dict[str, Any]:
        return {"spec-id": number, "fields": [
            {"field-id": f, "source-id": s, "name": f"p{f}", "transform": t} for f, s, t in made]}  # fmt: skip

    specs = [spec(0), spec(1, (1000, 2, "identity"), (1001, 3, "identity")), spec(2, (1002, 2, "void")),
             spec(3, (1003, 1, "mystery[4]")), spec(4, (1000, 2, "identity"))]  # fmt: skip
    document = {
        "format-version": 3, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "/t",
        "last-sequence-number": 9, "last-updated-ms": 1, "last-column-id": 3,
        "schemas": [*earlier, schema],
        "current-schema-id": since, "partition-specs": specs, "default-spec-id": 1, "last-partition-id": 1003,
        "sort-orders": [{"order-id": 0, "fields": []}], "default-sort-order-id": 0, "next-row-id": 0,
        "properties": properties or {},
    }  # fmt: skip
    return parse_table_metadata(document, "/t/metadata/v1.metadata.json", Problems(strict=True))


def state(**how: Any) -> Any:
    """A state without a snapshot: as much of it as matching asks for."""
    made = metadata(**how)
    storage = SimpleNamespace(moved={}, prefixes=())
    how = {"problems": Problems(), "root": lambda: None, "reader": None, "storage": storage}
    return SimpleNamespace(metadata=made, schema=made.schema(), **how)


def batch(entries: Sequence[Entry]) -> EntryBatch:
    rows = [
        {
            "content_type": e.kind, "location": e.location, "file_format": "puffin" if e.vector else "parquet",
            "status": 1, "sequence_number": e.sequence, "partition_spec_id": e.spec, "record_count": e.count,
            "referenced_file": e.referenced, "equality_ids": list(e.ids) or None,
            "deletion_vector": {"offset": 4, "size_in_bytes": 40, "inline_content": None} if e.vector else None,
        }
        for e in entries
    ]  # fmt: skip
    stats = {}
    for column in sorted({c for e in entries for c in e.stats}):
        kind = stats_type(pa.binary() if column == FILE_PATH_ID else COLUMNS[column])
        found = [e.stats.get(column) for e in entries]
        stats[column] = pa.array([None if s is None else s.record() for s in found], kind)
    used = {key for e in entries for key in SPECS.get(e.spec, ())}
    children = {k: pa.array([e.place.get(k) for e in entries], TUPLES[k]) for k in sorted(used)}
    partition = pa.StructArray.from_arrays(list(children.values()), names=list(children)) if children else None
    return EntryBatch.of_rows(rows, stats=stats, partition=partition)


def matched(files: Sequence[Entry], deletes: Sequence[Entry], *, filter: Any = None, of: Any = None) -> MatchedDeletes:  # noqa: A002
    return DeleteIndex(of or state(), batch(files), gathered([batch(deletes)] if deletes else []), filter).result()


def by_file(made: MatchedDeletes) -> list[tuple[str | None, set[str], set[str]]]:
    """For each data file the vector, position and equality delete files, by location."""
    names = made.deletes.entries["location"].to_pylist()
    return [
        (None if v is None else names[v], {names[i] for i in p}, {names[i] for i in e})
        for v, p, e in zip(
            build.to_pylist(made.vector), build.to_pylist(made.positions), build.to_pylist(made.equality), strict=True
        )
    ]


def same_value(a: Any, b: Any) -> bool:
    """Equality of partition values: Java's ``doubleToLongBits`` for floats."""
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or struct.pack(">d", a) == struct.pack(">d", b)
    return bool(a == b)


def same_partition(a: Entry, b: Entry) -> bool:
    return a.spec == b.spec and all(same_value(a.place.get(k), b.place.get(k)) for k in SPECS[a.spec])


def scoped(file: Entry, delete: Entry) -> bool:
    """The spec's "Scan Planning", without bounds and without the rule that a vector replaces position deletes."""
    ours, theirs = file.sequence or 0, delete.sequence or 0
    if delete.kind == EQUALITY:
        wide = delete.spec in (0, 2)
        return ours < theirs and (wide or same_partition(file, delete))
    named = delete.referenced is None or delete.referenced == file.location
    return ours <= theirs and named and same_partition(file, delete)


def in_path_bounds(file: Entry, delete: Entry) -> bool:
    bounds = delete.stats.get(FILE_PATH_ID)
    if delete.referenced is not None or bounds is None or bounds.lower is None or bounds.upper is None:
        return True
    low, high = bounds.lower.decode(), bounds.upper.decode()
    return low > high or (low <= file.location and (file.location <= high or file.location.startswith(high)))


def can_contain(file: Entry, delete: Entry) -> bool:
    """Java's ``DeleteFileIndex.canContainEqDeletesForFile``, for optional columns without NaN."""
    for column in delete.ids:
        ours, theirs = file.stats.get(column, Stats()), delete.stats.get(column, Stats())
        if ours.nulls != 0 and theirs.nulls != 0:
            continue
        if ours.nulls is not None and ours.nulls == ours.values and theirs.nulls == 0:
            return False
        if theirs.nulls is not None and theirs.nulls == theirs.values and ours.nulls == 0:
            return False
        if None in (ours.lower, ours.upper, theirs.lower, theirs.upper):
            continue
        if ours.lower > theirs.upper or theirs.lower > ours.upper:
            return False
    return True


def naive(files: Sequence[Entry], deletes: Sequence[Entry]) -> list[tuple[str | None, set[str], set[str]]]:
    """All rules, pair by pair; bounds as Java compares them."""
    out = []
    for f in files:
        mine = [d for d in deletes if scoped(f, d)]
        vectors = [d for d in mine if d.vector and d.referenced is not None]
        newest = max(vectors, key=lambda d: (d.sequence or 0, deletes.index(d)), default=None)
        positions = {d.location for d in mine if d.kind == POSITION and not d.vector and in_path_bounds(f, d)}
        equality = {d.location for d in mine if d.kind == EQUALITY and can_contain(f, d)}
        out.append((None if newest is None else newest.location, set() if newest else positions, equality))
    return out
