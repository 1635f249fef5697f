"""Rows and footers of Parquet, ORC and Avro files: field ids, limits, and damage that must not end the process."""

from __future__ import annotations

import io
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import orc

from iceexplore.arrow import build
from iceexplore.errors import FormatError, IceexploreError, UnsupportedError
from iceexplore.formats import field_id, read_orc_footer, read_parquet_footer, read_rows, sniff
from iceexplore.storage import RangeFile, Storage
from tests.helpers.varints import varint

ROWS = 2000


def table(rows: int = ROWS) -> pa.Table:
    struct = pa.struct([pa.field("x", pa.int32(), metadata={"PARQUET:field_id": "4"})])
    schema = build.schema(
        [
            pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"}),
            pa.field("name", pa.string(), metadata={"PARQUET:field_id": "2"}),
            pa.field("s", struct, metadata={"PARQUET:field_id": "3"}),
        ]
    )
    return build.table(
        [range(rows), [f"n{i % 9}" for i in range(rows)], [{"x": i} for i in range(rows)]], schema=schema
    )


AVRO_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "t",
    "fields": [
        {"name": "id", "type": "long", "field-id": 1},
        {"name": "name", "type": ["null", "string"], "field-id": 2},
        {"name": "tags", "type": {"type": "array", "items": "string", "element-id": 4}, "field-id": 3},
        {"name": "m", "type": {"type": "map", "values": "int", "key-id": 6, "value-id": 7}, "field-id": 5},
    ],
}


def make(form: str) -> bytes:
    out = io.BytesIO()
    match form:
        case "parquet":
            pq.write_table(table(), out, row_group_size=500, compression="zstd", store_schema=False)
        case "parquet-plain":
            pq.write_table(table(), out, compression="none", use_dictionary=False)
        case "orc":
            orc.write_table(table(), out, compression="ZLIB")
        case "orc-plain":
            orc.write_table(table(), out, compression="UNCOMPRESSED")
        case "avro":
            rows = [{"id": i, "name": None if i % 3 else "x", "tags": ["a"], "m": {"k": i}} for i in range(ROWS)]
            fastavro.writer(out, AVRO_SCHEMA, rows, codec="deflate")
    return out.getvalue()


FORMS = {form: make(form) for form in ("parquet", "parquet-plain", "orc", "orc-plain", "avro")}


def store(folder: Path, data: bytes) -> tuple[Storage, str]:
    path = folder / "f.bin"
    path.write_bytes(data)
    return Storage(str(folder)), str(path)


@pytest.mark.parametrize("form", FORMS)
def test_rows(tmp_path: Path, form: str) -> None:
    storage, location = store(tmp_path, FORMS[form])
    found = read_rows(storage, location, kind="data")
    assert found.num_rows == ROWS
    assert found["id"].to_pylist() == list(range(ROWS))
    if form == "avro":
        assert found.slice(0, 2).to_pylist() == [
            {"id": 0, "name": "x", "tags": ["a"], "m": [("k", 0)]},
            {"id": 1, "name": None, "tags": ["a"], "m": [("k", 1)]},
        ]
        assert [
            field_id(found.schema.field("m").type.key_field),
            field_id(found.schema.field("m").type.item_field),
        ] == [6, 7]
    if not form.startswith("orc"):  # pyarrow writes no ORC attributes
        assert [field_id(f) for f in found.schema][:2] == [1, 2]


def test_sniff() -> None:
    assert [sniff(data[:64]) for data in FORMS.values()] == ["parquet", "parquet", "orc", "orc", "avro"]
    assert sniff(b"\xef\xbb\xbf \n{") == "json"
    assert sniff(b"\x00\x00\x00\x0c\xd1\xd3\x39\x64") == "deletion-vector"
    assert sniff(b"") is sniff(b"hello") is None


def test_an_empty_file_is_reported_as_empty(tmp_path: Path) -> None:
    storage, location = store(tmp_path, b"")
    with pytest.raises(FormatError, match="is empty") as caught:
        read_rows(storage, location, kind="data", stated="parquet")
    assert caught.value.code == "file-truncated"


@pytest.mark.parametrize("form", ["parquet", "orc", "avro"])
def test_more_rows_than_the_limit(tmp_path: Path, form: str) -> None:
    storage, location = store(tmp_path, FORMS[form])
    with pytest.raises(UnsupportedError, match="of memory"):
        read_rows(storage, location, kind="data", limit=5_000)


def test_run_lengths_that_claim_too_much(tmp_path: Path) -> None:
    """A few kilobytes of runs: 200 million equal rows are 1.6 GB, and are not unpacked."""
    out = io.BytesIO()
    batch = pa.table({"id": pa.array([7] * 1_000_000, pa.int64())})
    with pq.ParquetWriter(out, batch.schema, compression="zstd") as writer:
        for _ in range(20):
            writer.write_table(batch)
    assert len(out.getvalue()) < 100_000
    storage, location = store(tmp_path, out.getvalue())
    before = pa.total_allocated_bytes()
    with pytest.raises(UnsupportedError):
        read_rows(storage, location, kind="data", limit=10_000_000)
    assert pa.total_allocated_bytes() - before < 30_000_000


def test_avro_lists_that_take_no_bytes(tmp_path: Path) -> None:
    fields = [{"name": "a", "type": {"type": "array", "items": "null"}}]
    out = io.BytesIO()
    fastavro.writer(out, {"type": "record", "name": "t", "fields": fields}, [{"a": [None] * 5}])
    storage, location = store(tmp_path, out.getvalue())
    with pytest.raises(UnsupportedError, match="no bytes"):
        read_rows(storage, location, kind="data")


@pytest.mark.parametrize(
    "kind",
    [
        ["null", "int", "string"],
        {"type": "record", "name": "t", "fields": [{"name": "again", "type": ["null", "t"]}]},
        "unheard-of",
        {"type": "fixed", "name": "f", "size": -1},
        {"type": "enum", "name": "e", "symbols": []},
        {"type": "record", "name": "r", "fields": 5},
        7,
        None,
    ],
)
def test_avro_schemas_that_are_not_read(tmp_path: Path, kind: Any) -> None:
    import json

    schema = json.dumps({"type": "record", "name": "t", "fields": [{"name": "a", "type": kind}]}).encode()
    head = b"Obj\x01\x02" + b"\x16avro.schema" + _long(len(schema)) + schema + b"\x00" + bytes(16)
    storage, location = store(tmp_path, head)
    with pytest.raises(IceexploreError):
        read_rows(storage, location, kind="data")


def test_avro_schema_too_deep(tmp_path: Path) -> None:
    schema = b'{"type":"record","name":"t","fields":[{"name":"a","type":'
    schema += b'{"type":"array","items":' * 500 + b'"int"' + b"}" * 500 + b"}]}"
    head = b"Obj\x01\x02" + b"\x16avro.schema" + _long(len(schema)) + schema + b"\x00" + bytes(16)
    storage, location = store(tmp_path, head)
    with pytest.raises(UnsupportedError, match="too deep"):
        read_rows(storage, location, kind="data")


def _long(value: int) -> bytes:
    value <<= 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def test_avro_named_type_used_twice_and_maps_by_arrays(tmp_path: Path) -> None:
    inside = [
        {"name": "key", "type": "int", "field-id": 10},
        {"name": "value", "type": ["null", "uu"], "field-id": 11},
    ]
    pair = {"type": "record", "name": "kv", "fields": inside}
    fields = [
        {"name": "u", "type": {"type": "fixed", "name": "uu", "size": 2}, "field-id": 1},
        {"name": "m", "type": {"type": "array", "items": pair, "logicalType": "map"}, "field-id": 2},
        {"name": "e", "type": {"type": "enum", "name": "ee", "symbols": ["A", "B"]}},
        {"name": "l", "type": {"type": "array", "items": "kv"}},
    ]
    out = io.BytesIO()
    item = {"key": 5, "value": b"xy"}
    row = {"u": b"ab", "m": [item, {"key": 6, "value": None}], "e": "B", "l": [item]}
    fastavro.writer(out, {"type": "record", "name": "t", "fields": fields}, [row])
    storage, location = store(tmp_path, out.getvalue())
    assert read_rows(storage, location, kind="data").to_pylist() == [
        {"u": b"ab", "m": [(5, b"xy"), (6, None)], "e": "B", "l": [item]}
    ]


# ---------------------------------------------------------------------------------------------------------------------


def test_parquet_footer(tmp_path: Path) -> None:
    storage, location = store(tmp_path, FORMS["parquet"])
    footer = read_parquet_footer(storage, location)
    assert (footer.rows, footer.row_groups) == (ROWS, 4)
    assert [(c.path, c.field_id, c.physical_type) for c in footer.columns] == [
        ("id", 1, "INT64"),
        ("name", 2, "BYTE_ARRAY"),
        ("s.x", 4, "INT32"),
    ]
    assert footer.columns[1].logical_type == "String"
    first = footer.chunks.slice(0, 1).to_pylist()[0]
    assert (first["row_group"], first["column"], first["field_id"], first["num_values"]) == (0, "id", 1, 500)
    assert (first["min"], first["max"], first["null_count"], first["compression"]) == ("0", "499", 0, "ZSTD")
    assert first["compressed_bytes"] > 0
    assert "pyarrow" in footer.created_by or "parquet-cpp" in footer.created_by


def test_orc_footer(tmp_path: Path) -> None:
    storage, location = store(tmp_path, FORMS["orc"])
    footer = read_orc_footer(storage, location)
    assert (footer.rows, footer.stripes) == (ROWS, 1)
    assert [c.path for c in footer.columns] == ["id", "name", "s.x"]
    assert footer.compression.lower() == "zlib"


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_a_footer_costs_the_end_of_the_file(tmp_path: Path, form: str) -> None:
    out = io.BytesIO()
    rng = random.Random(1)
    big = pa.table({"id": [rng.randbytes(8) for _ in range(300_000)]})
    pq.write_table(big, out) if form == "parquet" else orc.write_table(big, out)
    storage, location = store(tmp_path, out.getvalue())
    size = len(out.getvalue())
    assert size > 2_000_000
    footer: Any = (read_parquet_footer if form == "parquet" else read_orc_footer)(storage, location)
    assert footer.rows == 300_000
    assert {r.kind for r in storage.reads} <= {"data-footer", "stat"}
    assert sum(r.length for r in storage.reads) < 200_000
    assert min(r.offset for r in storage.reads if r.length) > size - 200_000


def test_parquet_statistics_of_another_type_do_not_end_the_process(tmp_path: Path) -> None:
    """Thrift: the column chunk's type is field 1 of its metadata; pyarrow 26's accessors abort where it is another."""
    rng = random.Random(7)
    base = FORMS["parquet"]
    storage, location = store(tmp_path, base)
    size = read_parquet_footer(storage, location).footer_size
    survived = 0
    for _ in range(150):
        changed = bytearray(base)
        changed[rng.randrange(len(base) - 8 - size, len(base) - 8)] ^= 1 << rng.randrange(8)
        storage, location = store(tmp_path, bytes(changed))
        try:
            read_parquet_footer(storage, location)
        except IceexploreError:
            continue
        survived += 1
    assert survived  # harmless changes read on


def test_a_deep_orc_schema_ends_a_helper_not_us(tmp_path: Path) -> None:
    """200,000 lists in each other overflow the stack of Arrow's ORC reader."""
    storage, location = store(tmp_path, deep_orc(200_000))
    with pytest.raises(FormatError, match="crash"):
        read_orc_footer(storage, location)
    storage, location = store(tmp_path, FORMS["orc"])
    assert read_orc_footer(storage, location).rows == ROWS  # by a new helper


def deep_orc(depth: int) -> bytes:
    def number(key: int, value: int) -> bytes:
        return varint(key << 3) + varint(value)

    def sub(key: int, value: bytes) -> bytes:
        return varint(key << 3 | 2) + varint(len(value)) + value

    types = [number(1, 12) + sub(2, varint(1)) + sub(3, b"a")]
    types += [number(1, 10) + sub(2, varint(i + 2)) for i in range(depth)] + [number(1, 4)]
    footer = number(1, 3) + number(2, 3) + b"".join(sub(4, t) for t in types) + number(6, 0)
    postscript = number(1, len(footer)) + number(2, 0) + sub(4, b"") + number(5, 0) + sub(8000, b"ORC")
    return b"ORC" + footer + postscript + bytes([len(postscript)])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    form=st.sampled_from(sorted(FORMS)),
    cut=st.none() | st.floats(0, 1),
    flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 7)), max_size=5),
    near_end=st.booleans(),
)
def test_damaged_files_raise_only_our_errors(
    tmp_path: Path, form: str, cut: float | None, flips: list[tuple[float, int]], near_end: bool
) -> None:
    data = bytearray(FORMS[form])
    for where, bit in flips:
        span = min(600, len(data)) if near_end else len(data)
        data[len(data) - span + int(where * span)] ^= 1 << bit
    if cut is not None:
        data = data[: int(cut * len(data))]
    storage, location = store(tmp_path, bytes(data))
    readers: list[Any] = [lambda s, p: read_rows(s, p, kind="data")]
    if form.startswith("parquet"):
        readers.append(read_parquet_footer)
    if form.startswith("orc"):
        readers.append(read_orc_footer)
    for read in readers:
        try:
            read(storage, location)
        except IceexploreError:
            continue


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(magic=st.sampled_from([b"PAR1", b"ORC", b"Obj\x01", b""]), body=st.binary(max_size=300), tail=st.booleans())
def test_random_bytes(tmp_path: Path, magic: bytes, body: bytes, tail: bool) -> None:
    storage, location = store(tmp_path, magic + body + (magic if tail else b""))
    for read in (lambda: read_rows(storage, location, kind="data"), lambda: read_parquet_footer(storage, location),
                 lambda: read_orc_footer(storage, location)):  # fmt: skip
        with pytest.raises(IceexploreError):
            read()


@pytest.mark.skipif(sys.platform == "win32", reason="no RLIMIT_AS")
def test_hostile_files_in_little_memory(tmp_path: Path) -> None:
    """A thousand damaged files under a limit of address space: no crash, no bare error, no gigabytes."""
    for form, data in FORMS.items():
        (tmp_path / form).write_bytes(data)
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", _HOSTILE, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.split()[-1]) < 600_000, done.stdout  # kilobytes resident at the most


_HOSTILE = """
import random, resource, sys
from pathlib import Path
from iceexplore.errors import IceexploreError
from iceexplore.formats import read_rows
from iceexplore.storage import Storage
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
folder = Path(sys.argv[1])
storage = Storage(str(folder))
rng = random.Random(3)
for form in ("parquet", "parquet-plain", "orc-plain", "avro"):
    base = (folder / form).read_bytes()
    for _ in range(250):
        data = bytearray(base)
        for _ in range(rng.randrange(1, 6)):
            data[rng.randrange(len(data))] = rng.choice([0, 0xFF, 0x7F, 0x80, rng.randrange(256)])
        (folder / "x").write_bytes(data)
        try:
            read_rows(storage, str(folder / "x"), kind="data")
        except IceexploreError:
            pass
        storage.reads.clear()
# Not ru_maxrss where there is better: it begins with what the process held that started this one.
status = Path("/proc/self/status")
lines = status.read_text().splitlines() if status.exists() else []
peak = [line.split()[1] for line in lines if line.startswith("VmHWM")]
print(peak[0] if peak else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_a_far_file_is_fetched_once(tmp_path: Path) -> None:
    """Chunks are looked at before Arrow reads them; each was fetched by both, with a request of its own."""
    rng = np.random.default_rng(1)
    texts = [rng.bytes(40).hex() for _ in range(40_000)]
    path = tmp_path / "d.parquet"
    columns = {name: texts[::step] for name, step in (("a", 1), ("b", -1))}
    pq.write_table(pa.table(columns), path, row_group_size=10_000, use_dictionary=False)
    data = path.read_bytes()
    fetched: list[int] = []

    def fetch(offset: int, length: int) -> bytes:
        fetched.append(length)
        return data[offset : offset + length]

    file = RangeFile(fetch, len(data), str(path), far=True)
    assert read_rows(Storage(str(tmp_path)), str(path), kind="data", file=file).to_pydict() == columns
    assert len(fetched) <= 2
    assert sum(fetched) <= len(data) + (64 << 10)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is the kernel's on Linux alone")
def test_the_helper_has_its_memory_for_the_file(tmp_path: Path) -> None:
    """Of the limit on its memory an idle helper takes little: an allocator's arena took nearly all of it."""
    from iceexplore.formats._helper import _FOOTER_MEMORY, _HELPER

    storage, location = store(tmp_path, FORMS["orc"])
    read_rows(storage, location, kind="data")
    read_orc_footer(storage, location)
    assert _HELPER.process is not None
    status = Path(f"/proc/{_HELPER.process.pid}/status").read_text()
    taken = next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmData"))
    assert taken < _FOOTER_MEMORY // 2
