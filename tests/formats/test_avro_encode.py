"""Records that are encoded column by column are the bytes that fastavro writes record by record."""

from __future__ import annotations

import io
import itertools
import random
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from iceexplore.formats import encode_records

NUMBERS = [0, -1, 1, 63, 64, -64, -65, 8191, 8192, 2**31 - 1, -(2**31), 2**62, 2**63 - 1, -(2**63)]


def _made(rng: random.Random, depth: int, names: list[int]) -> tuple[Any, pa.DataType, Any]:
    """An Avro type, Arrow's, and what makes values of it."""
    kinds = ["int", "long", "boolean", "float", "double", "bytes", "string", "fixed"]
    kind = rng.choice([*kinds, "record", "array", "null"] if depth else kinds)
    names[0] += 1
    if kind == "int":
        return kind, pa.int32(), lambda: rng.choice([n for n in NUMBERS if abs(n) <= 2**31 - 1])
    if kind == "long":
        return kind, pa.int64(), lambda: rng.choice(NUMBERS)
    if kind == "boolean":
        return kind, pa.bool_(), lambda: rng.random() < 0.5
    if kind in ("float", "double"):
        return kind, pa.float32() if kind == "float" else pa.float64(), lambda: rng.choice([0.0, -1.5, 1e30])
    if kind in ("bytes", "string"):
        return kind, pa.binary(), lambda: b"ab\0c"[: rng.randrange(4)] * rng.choice([1, 50])
    if kind == "fixed":
        return {"type": "fixed", "name": f"x{names[0]}", "size": 5}, pa.binary(5), lambda: rng.randbytes(5)
    if kind == "record":
        name = f"r{names[0]}"
        parts = [_made(rng, depth - 1, names) for _ in range(rng.randrange(1, 4))]
        fields = [{"name": f"f{i}", "type": p[0]} for i, p in enumerate(parts)]
        arrow = pa.struct([pa.field(f"f{i}", p[1]) for i, p in enumerate(parts)])
        avro = {"type": "record", "name": name, "fields": fields}
        return avro, arrow, lambda: {f"f{i}": p[2]() for i, p in enumerate(parts)}
    avro, arrow, make = _made(rng, depth - 1, names)  # type: ignore[assignment]
    if kind == "array":
        items = {"type": "array", "items": avro}
        return items, pa.list_(arrow), lambda: [make() for _ in range(rng.choice([0, 1, 70]))]
    if isinstance(avro, list):
        return avro, arrow, make
    union = ["null", avro] if rng.random() < 0.5 else [avro, "null"]
    return union, arrow, lambda: None if rng.random() < 0.4 else make()


def _text(schema: Any, value: Any) -> Any:
    """A value as fastavro takes it: text as text."""
    if value is None:
        return None
    if isinstance(schema, list):
        return _text(next(s for s in schema if s != "null"), value)
    kind = schema["type"] if isinstance(schema, dict) else schema
    if kind == "record":
        return {f["name"]: _text(f["type"], value[f["name"]]) for f in schema["fields"]}
    if kind == "array":
        return [_text(schema["items"], v) for v in value]
    return value.decode() if kind == "string" else value


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("count", [0, 1, 40])
def test_columns_and_records_give_the_same_bytes(seed: int, count: int) -> None:
    rng, names = random.Random(seed), [0]
    parts = [_made(rng, 3, names) for _ in range(4)]
    schema = {"type": "record", "name": "top", "fields": [{"name": f"f{i}", "type": p[0]} for i, p in enumerate(parts)]}
    rows = [{f"f{i}": p[2]() for i, p in enumerate(parts)} for _ in range(count)]
    table = pa.Table.from_pylist(rows, pa.schema([pa.field(f"f{i}", p[1]) for i, p in enumerate(parts)]))
    parsed: Any = fastavro.parse_schema(schema)
    written = []
    for row in rows:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, _text(schema, row))
        written.append(out.getvalue())
    # Slices, and tables of several chunks, begin in the middle of Arrow's buffers.
    chunks = pa.concat_tables([table.slice(0, count // 3), table.slice(count // 3)])
    for given, expected in ((table, written), (chunks, written), (table.slice(count // 2), written[count // 2 :])):
        data, starts = encode_records(schema, given)
        assert [data[a:b] for a, b in itertools.pairwise(starts)] == expected


def test_what_cannot_be_written_is_refused() -> None:
    for kind, values in (("long", [None]), ({"type": "map", "values": "int"}, [1]), (["int", "long"], [1])):
        schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": kind}]}
        with pytest.raises(ValueError, match=r"null|Avro type|union"):
            encode_records(schema, pa.table({"a": pa.array(values)}))
