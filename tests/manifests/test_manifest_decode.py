"""The two decoders agree, and damage costs no more than it must."""

from __future__ import annotations

import os
import random
from importlib.metadata import version
from typing import Any

import pyarrow as pa
import pytest

from iceexplore.arrow import build
from iceexplore.errors import FormatError, UnsupportedError
from iceexplore.formats._avro import index_blocks, read_header
from iceexplore.manifests.decode import _avro as _decode
from iceexplore.manifests.model._reader_schema import reader_schema_of


@pytest.fixture(autouse=True)
def _with_datafusion() -> None:
    """Older versions, which PyIceberg's own extra may pin, are not used."""
    if int(version("datafusion").partition(".")[0]) < 54:
        pytest.skip("datafusion 54 or later decodes manifests")


def both(data: bytes) -> tuple[pa.Table | None, _decode.Decoded]:
    header = read_header(data, "f")
    reader_schema = reader_schema_of(header.schema, "f")
    index = index_blocks(data, header, "f")
    columns = reader_schema.arrow.names
    bulk = _decode.decode_bulk(data, header, index, reader_schema, columns, "f")
    return bulk, _decode.decode_blocks(data, header, index, reader_schema, columns, "f")


@pytest.fixture
def partition(make: Any) -> list[dict[str, Any]]:
    return [make("optional")(1000, "p", "long")]


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard", "bzip2", "xz"])
def test_both_decoders_agree_and_keep_the_order(make: Any, partition: Any, codec: str) -> None:
    rows = [make("entry")(i, partition={"p": i % 3 or None}) for i in range(3000)]
    bulk, slow = both(make("avro")(make("entry_schema")(partition), rows, codec=codec, interval=5000))
    assert slow.faults == ()
    assert bulk is not None
    assert bulk.equals(slow.table)
    assert bulk["f103"].to_pylist() == [10 + i for i in range(3000)]
    assert bulk["p1000"].to_pylist() == [i % 3 or None for i in range(3000)]


def test_few_rows_are_python_objects_at_a_time(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    to_batch = _decode._to_batch

    def counted(rows: list[Any], wanted: pa.Schema) -> pa.RecordBatch:
        sizes.append(len(rows))
        return to_batch(rows, wanted)

    monkeypatch.setattr(_decode, "_to_batch", counted)
    data = make("avro")(make("entry_schema")([]), [make("entry")(i) for i in range(2100)], interval=30_000)
    header = read_header(data, "f")
    reader_schema, index = reader_schema_of(header.schema, "f"), index_blocks(data, header, "f")
    found = _decode.decode_blocks(data, header, index, reader_schema, ["f103"], "f").table
    assert found["f103"].to_pylist() == [10 + i for i in range(2100)]
    assert found["f103"].num_chunks == 1
    assert max(sizes) <= 500


def test_groups_of_blocks_come_together_again(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_decode, "GROUP_BYTES", 20_000)
    bulk, slow = both(make("avro")(make("entry_schema")([]), [make("entry")(i) for i in range(2000)], interval=3000))
    assert bulk is not None
    assert bulk.equals(slow.table)


def test_unpartitioned_table_needs_no_fallback(make: Any) -> None:
    """datafusion 54 and later fail on the empty ``partition`` record."""
    bulk, _ = both(make("avro")(make("entry_schema")([]), [make("entry")(1)]))
    assert bulk is not None
    assert bulk.num_rows == 1


def test_null_default_of_a_long_is_nobodys_problem(make: Any) -> None:
    schema = make("list_schema")()
    good = make("avro")(schema, [make("listed")("a.avro")], codec="null")
    text = b'"type": "long", "field-id": 501'
    assert good.count(text) == 1
    # the same length, so that the header's own lengths stay true
    bad = good.replace(
        b'"name": "manifest_length", ' + text, b'"name":"ml","default":null,' + b'"type":"long","field-id":501   '
    )
    assert len(bad) == len(good)
    bulk, slow = both(bad)
    assert bulk is not None
    assert bulk.equals(slow.table)
    assert bulk["f500"].to_pylist() == [b"a.avro"]


@pytest.mark.timeout(60)
def test_bytes_left_in_a_block_do_not_make_datafusion_spin(make: Any) -> None:
    """datafusion 55 never returns from such a block; the reader must neither hang nor believe it."""
    data = bytearray(make("avro")(make("entry_schema")([]), [make("entry")(i) for i in range(20)], codec="null"))
    header = read_header(bytes(data), "f")
    block = index_blocks(bytes(data), header, "f").blocks[0]
    assert data[header.end] == 40  # twenty records, zig-zag
    data[header.end] = 38
    bulk, slow = both(bytes(data))
    assert bulk is None
    assert slow.table.num_rows == 19
    assert "left over" in str(slow.faults[0])
    assert slow.faults[0].offset == block.start  # type: ignore[attr-defined]


@pytest.mark.timeout(60)
def test_file_without_blocks(make: Any) -> None:
    bulk, slow = both(make("avro")(make("entry_schema")([]), []))
    assert bulk is not None
    assert bulk.num_rows == slow.table.num_rows == 0
    assert bulk.schema == slow.table.schema


@pytest.mark.timeout(300)
def test_random_damage_never_hangs_nor_raises_what_is_not_ours(make: Any) -> None:
    good = make("avro")(make("entry_schema")([]), [make("entry")(i) for i in range(50)], codec="null", interval=2000)
    start = read_header(good, "f").end
    dice = random.Random(5)
    damaged = 0
    for _ in range(150):
        data = bytearray(good)
        for _ in range(dice.choice([1, 1, 3])):
            data[dice.randrange(start, len(data))] = dice.choice([0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)])
        try:
            bulk, slow = both(bytes(data))
        except (FormatError, UnsupportedError):
            continue
        damaged += bool(slow.faults)
        if bulk is not None and not slow.faults:
            assert bulk.equals(slow.table)
    assert damaged > 20


def test_damage_in_the_middle_keeps_what_is_around(make: Any) -> None:
    rows = [make("entry")(i) for i in range(500)]
    data = bytearray(make("avro")(make("entry_schema")([]), rows, codec="deflate", interval=4000))
    header = read_header(bytes(data), "f")
    blocks = index_blocks(bytes(data), header, "f").blocks
    assert len(blocks) > 5
    data[blocks[2].start + 10] ^= 0xFF
    data[blocks[2].start + 11] ^= 0xFF
    decoded = _decode.decode(bytes(data), header, reader_schema_of(header.schema, "f"), ["f100"], "f")
    names = [v.decode() for v in build.to_pylist(decoded.table["f100"])]
    before, after = sum(b.count for b in blocks[:2]), sum(b.count for b in blocks[3:])
    expected = [f"file-{i:05d}.parquet" for i in range(500)]
    assert names[:before] == expected[:before]
    assert names[-after:] == expected[-after:]
    assert decoded.lost + len(names) == 500
    assert decoded.faults


def test_temporary_files_are_removed(make: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(_decode, "_MEMORY", str(tmp_path))
    bulk, _ = both(make("avro")(make("entry_schema")([]), [make("entry")(1)]))
    assert bulk is not None
    assert os.listdir(tmp_path) == []


def test_a_full_memory_disk_is_no_error(make: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(_decode, "_MEMORY", str(tmp_path / "is not there"))
    bulk, _ = both(make("avro")(make("entry_schema")([]), [make("entry")(1)]))
    assert bulk is not None


def reader_schema(fields: list[Any]) -> Any:
    return reader_schema_of({"type": "record", "name": "r", "fields": fields}, "f")


def test_recursive_schema() -> None:
    with pytest.raises(FormatError, match="recursive"):
        reader_schema([{"name": "a", "type": ["null", "r"]}])


def test_schema_that_explodes() -> None:
    def level(n: int) -> Any:
        inner = level(n - 1) if n else "int"
        return {
            "type": "record",
            "name": f"l{n}",
            "fields": [{"name": "a", "type": inner}, {"name": "b", "type": f"l{n - 1}" if n else "int"}],
        }

    with pytest.raises(FormatError, match="large"):
        reader_schema([{"name": "a", "type": level(20), "field-id": 1}])


def test_array_of_nothing_cannot_promise_anything() -> None:
    empty = {"type": "record", "name": "e", "fields": []}
    with pytest.raises(FormatError, match="no bytes"):
        reader_schema([{"name": "a", "type": {"type": "array", "items": empty}, "field-id": 1}])


def test_names_count_only_without_ids() -> None:
    old = [("manifest_path", "string"), ("added_data_files_count", "int")]
    by_name = reader_schema([{"name": n, "type": t} for n, t in old])
    assert not by_name.has_ids
    assert by_name.has(500)
    assert by_name.has(504)
    by_id = reader_schema([{"name": n, "type": t, "field-id": i} for (n, t), i in zip(old, (500, 9), strict=True)])
    assert by_id.has_ids
    assert not by_id.has(504)
    mixed = reader_schema([{"name": "x", "type": "int", "field-id": 500}, {"name": "added_files_count", "type": "int"}])
    assert not mixed.has(504)


def test_an_id_given_twice_counts_once() -> None:
    twice = reader_schema(
        [{"name": "a", "type": "int", "field-id": 500}, {"name": "b", "type": "long", "field-id": 500}]
    )
    assert twice.arrow.field("f500").type == pa.int32()
    assert len(twice.arrow) == 2
