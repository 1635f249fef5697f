"""Synthetic rows of manifests to write: a table with a column of every type and a spec for every transform."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.commits import upgrade
from iceexplore.errors import Problems
from iceexplore.manifests import ENTRY_SCHEMA, EntryBatch, Manifest, ManifestReader, stats_type
from iceexplore.metadata import (
    PrimitiveType,
    Snapshot,
    TableMetadata,
    arrow_type,
    parse_table_metadata,
    result_type,
)

TYPES = (
    "boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz", "string", "uuid",
    "fixed[4]", "binary", "decimal(9,2)", "decimal(38,3)", "timestamp_ns", "timestamptz_ns", "geometry",
)  # fmt: skip
#: Types that PyIceberg 0.12 and version 2 have.
V2_TYPES = frozenset(TYPES[:15])
#: Column id by type.
COLUMNS = {name: number for number, name in enumerate(TYPES, 1)}
NESTED = 30  # a column inside a struct
IDENTITY, DERIVED, SEVERAL, UNPARTITIONED, DROPPED = range(5)

_INT, _LONG = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "int": _INT,
    "long": _LONG,
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "date": _INT,
    "time": st.integers(0, 86_399_999_999),
    "timestamp": _LONG,
    "timestamptz": _LONG,
    "timestamp_ns": _LONG,
    "timestamptz_ns": _LONG,
    "string": st.text(max_size=6),
    "uuid": st.binary(min_size=16, max_size=16),
    "fixed[4]": st.binary(min_size=4, max_size=4),
    "binary": st.binary(max_size=6),
    "decimal(9,2)": st.decimals("-9999999.99", "9999999.99", places=2),
    "decimal(38,3)": st.decimals(-(10**30), 10**30, places=3),
    "geometry": st.lists(st.floats(-180, 180), min_size=2, max_size=4).map(
        lambda xs: pa.array(xs, pa.float64()).buffers()[1].to_pybytes()[: 8 * len(xs)]  # type: ignore[union-attr]
    ),
}
_STORED = {"date": pa.int32()} | dict.fromkeys(
    ("time", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"), pa.int64()
)


#: So many examples are a few seconds for a module of many parameters.
FEW = settings(max_examples=max(10, settings().max_examples // 4))


def typed(name: str, values: list[Any]) -> pa.Array:
    """An array of a type's values, those of dates and times as the integers that are stored."""
    kind = arrow_type(PrimitiveType(name))
    return pa.array(values, _STORED[name]).view(kind) if name in _STORED else pa.array(values, kind)


def document(version: int = 3) -> dict[str, Any]:
    """Table metadata of this version; of version 4 with expressions."""
    names = [t for t in TYPES if version > 2 or t in V2_TYPES]
    fields: list[dict[str, Any]] = [
        {
            "id": COLUMNS[t],
            "name": t.partition("(")[0].partition("[")[0] + f"_{COLUMNS[t]}",
            "required": False,
            "type": t,
        }
        for t in names
    ]
    inner = [{"id": NESTED, "name": "b.c", "required": False, "type": "long"}]
    fields.append({"id": 29, "name": "a", "required": False, "type": {"type": "struct", "fields": inner}})

    def spec(spec_id: int, *parts: tuple[str, str, list[int]]) -> dict[str, Any]:
        made = []
        for transform, name, sources in parts:
            source = {"source-id": sources[0]} if len(sources) == 1 else {"source-ids": sources}
            made.append({"name": name, "transform": transform, **source, "field-id": next(counter)})
        return {"spec-id": spec_id, "fields": made}

    counter = itertools.count(1000)
    identities = [("identity", f"p {t}", [COLUMNS[t]]) for t in names if t != "geometry"]
    derived = [
        ("bucket[16]", "b", [COLUMNS["long"]]),
        ("truncate[4]", "t", [COLUMNS["string"]]),
        ("truncate[10]", "td", [COLUMNS["decimal(9,2)"]]),
        ("year", "y", [COLUMNS["date"]]),
        ("month", "m", [COLUMNS["timestamp"]]),
        ("day", "d", [COLUMNS["timestamptz"]]),
        ("void", "v", [COLUMNS["int"]]),
    ]
    made = {
        "format-version": min(version, 3),
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": "memory://t",
        "last-sequence-number": 9,
        "last-updated-ms": 1,
        "last-column-id": NESTED,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}],
        "current-schema-id": 0,
        "partition-specs": [
            spec(IDENTITY, *identities),
            spec(DERIVED, *derived),
            spec(
                SEVERAL,
                ("bucket[8]", "two", [COLUMNS["int"], COLUMNS["string"]]),
                ("hour", "h", [COLUMNS["timestamp"]]),
            ),
            spec(UNPARTITIONED),
            spec(DROPPED, ("identity", "gone", [99])),
        ],
        "default-spec-id": 0,
        "last-partition-id": 1100,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "next-row-id": 0,
        "properties": {},
        "snapshots": [],
    }
    return upgrade(made, 4) if version == 4 else made


def metadata(version: int = 3) -> TableMetadata:
    """The same, parsed."""
    return parse_table_metadata(document(version), "memory://t/metadata/v1.metadata.json", Problems(strict=True))


@st.composite
def stats(draw: st.DrawFn, name: str, rows: int) -> pa.StructArray:
    """Statistics of a column of this type, at least one row with any."""
    value = VALUES[name]
    ends = [draw(st.none() | st.tuples(value, value)) for _ in range(rows)]
    counts = st.none() | st.integers(0, 2**40)
    lower = typed(name, [e and e[0] for e in ends])
    kind = stats_type(lower.type)
    arrays = [lower, typed(name, [e and e[1] for e in ends])]
    arrays += [pa.array([draw(counts) for _ in range(rows)], pa.int64()) for _ in range(4)]
    arrays += [
        pa.array([draw(st.none() | st.integers(0, 2**31 - 1)) for _ in range(rows)], pa.int64()) for _ in range(2)
    ]
    tight = pa.array([draw(st.none() | st.booleans()) for _ in range(rows)], pa.bool_())
    return pa.StructArray.from_arrays([*arrays, tight], fields=list(kind))


@st.composite
def batches(
    draw: st.DrawFn,
    table: TableMetadata,
    specs: tuple[int, ...],
    *,
    kinds: tuple[int, ...] = (0,),
    types: tuple[str, ...] = TYPES,
    nan: bool = False,
) -> EntryBatch:
    """Rows of files with partition tuples and statistics of some columns."""
    rows = draw(st.integers(1, 3))
    number = st.integers(0, 2**60)
    made = []
    for row in range(rows):
        kind = draw(st.sampled_from(kinds))
        status = draw(st.integers(0, 2))
        vector = kind == 1 and table.format_version > 2
        made.append(
            {
                "content_type": kind,
                "location": f"memory://t/data/{draw(st.text(max_size=4))}-{row}",
                "file_format": "puffin" if vector else draw(st.sampled_from(("parquet", "orc", "avro"))),
                "status": status,
                "snapshot_id": draw(number),
                "sequence_number": draw(st.none() | number if status == 1 else number),
                "file_sequence_number": draw(number),
                "partition_spec_id": draw(st.sampled_from(specs)),
                "sort_order_id": draw(st.none() | st.integers(0, 9)) if kind == 0 else None,
                "record_count": draw(number),
                "file_size_in_bytes": draw(number),
                "referenced_file": f"memory://t/data/r{row}" if kind == 1 else None,
                "deletion_vector": {"offset": draw(number), "size_in_bytes": draw(number)} if vector else None,
                "key_metadata": draw(st.none() | st.binary(max_size=3)),
                "split_offsets": draw(st.none() | st.lists(number, max_size=3)),
                "equality_ids": draw(st.lists(st.integers(1, 2**31 - 1), min_size=1, max_size=3))
                if kind == 2
                else None,
                "first_row_id": draw(st.none() | number) if kind == 0 and table.format_version > 2 else None,
            }
        )
    chosen = draw(st.lists(st.sampled_from(types), unique=True, max_size=4))
    columns = {COLUMNS[t]: draw(stats(t, rows)) for t in chosen}
    if draw(st.booleans()):
        columns[NESTED] = draw(stats("long", rows))
    ids = pa.array([m["partition_spec_id"] for m in made])  # type: ignore[misc]
    return EntryBatch.of_rows(made, stats=columns, partition=draw(partitions(table, specs, ids, nan=nan)))


@st.composite
def partitions(draw: st.DrawFn, table: TableMetadata, specs: tuple[int, ...], ids: pa.Array, *, nan: bool) -> Any:
    """Tuples for rows of these specs, as a manifest holds them; None where no spec has a field."""
    columns, names = [], []
    known = table.all_fields()
    partitioned = pa.array([False] * len(ids))
    for spec_id in sorted(set(specs)):
        spec = table.spec(spec_id)
        assert spec is not None
        here = pc.equal(ids, spec_id)
        if spec.fields:
            partitioned = pc.or_(partitioned, here)
        for f in spec.fields:
            source = known.get(f.source_id)
            kind = result_type(f.transform, source[1].type if source else None)
            if f.transform == "void" or str(kind) == "unknown":
                array = build.nulls(len(ids), arrow_type(kind))
            else:
                value = VALUES[str(kind)]
                if nan and str(kind) in ("float", "double"):
                    value |= st.just(float("nan"))
                array = typed(str(kind), [draw(st.none() | value) if ok else None for ok in here.to_pylist()])
            columns.append(array)
            names.append(str(f.field_id))
    if not columns:
        return None
    return pa.StructArray.from_arrays(columns, names=names, mask=pc.invert(partitioned))


#: Made-up numbers contradict each other; what is written and read back is the same all the same.
CONTRADICTIONS = {
    "bounds-untrue", "count-mismatch", "entry-invalid", "equality-ids-invalid", "sequence-number",
    "split-offsets-invalid",
}  # fmt: skip


class Memory:
    """A storage of bytes in memory, as far as a reader of manifests asks for one."""

    _counter = itertools.count()

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.identity = f"memory-{next(self._counter)}"

    def key(self, location: str) -> str:
        return self.identity

    def fingerprint(self, location: str) -> None:
        return None

    def read(self, location: str, *, kind: str, offset: int = 0, length: int | None = None) -> bytes:
        return self.files[location]


def read_leaf(data: bytes, table: TableMetadata, entry: EntryBatch, dialect: str) -> Manifest:
    """What our reader makes of a manifest's bytes, under this entry of its root; no problem may be met."""
    storage = Memory()
    location = entry.entries["location"][0].as_py()
    storage.files[location] = data
    reader = ManifestReader(storage, table, Problems())  # type: ignore[arg-type]  # has what it uses
    root = Manifest("memory://t/root", entry.entries, dialect=dialect, is_root=True)
    leaf = reader.leaf(root, 0, {"entries", "partition", "stats"})
    assert {p.code for p in (*leaf.problems, *reader.problems)} <= CONTRADICTIONS
    return leaf


def read_root(data: bytes, table: TableMetadata, snapshot_id: int = 7) -> Manifest:
    """What our reader makes of a manifest list's or root manifest's bytes."""
    storage = Memory()
    storage.files["memory://t/metadata/root"] = data
    reader = ManifestReader(storage, table, Problems(strict=True))  # type: ignore[arg-type]  # has what it uses
    root = reader.root(
        Snapshot(snapshot_id, None, 9, 1, "memory://t/metadata/root", None, None, None, None, None, None, {})
    )
    assert {p.code for p in root.problems} <= CONTRADICTIONS
    return root


def same(found: pa.Array, wanted: pa.Array) -> None:
    """Two arrays are equal, value by value, also where a NaN is one."""
    assert found.type == wanted.type or pa.types.is_null(wanted.type), (found.type, wanted.type)
    if pa.types.is_floating(found.type):
        bits = pa.int32() if found.type == pa.float32() else pa.int64()
        found, wanted = found.view(bits), wanted.view(bits)
    assert found.to_pylist() == wanted.to_pylist() if pa.types.is_null(wanted.type) else found.equals(wanted), (
        found.to_pylist(),
        wanted.to_pylist(),
    )


def column(batch: EntryBatch, name: str) -> pa.Array:
    """A column of the entries as one array."""
    return batch.entries[name].combine_chunks() if len(batch) else ENTRY_SCHEMA.field(name).type
