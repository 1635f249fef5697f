"""Damaged V4 manifests: nothing but problems and our errors, whatever byte is wrong; and both decoders agree."""

from __future__ import annotations

import contextlib
import datetime as dt
import random
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.errors import IceexploreError
from iceexplore.formats import index_blocks, read_header
from iceexplore.manifests import Manifest, ManifestReader, encode_manifest_dv, open_manifest
from iceexplore.manifests.decode._avro import BULK_BYTES, FastavroDecoder, decode, decode_bulk
from iceexplore.manifests.decode._file import PARTS
from iceexplore.manifests.model._reader_schema import reader_schema_of
from iceexplore.storage import CACHE
from tests.helpers import v4_files as v4
from tests.manifests.test_v4_draft import manifest as draft_manifest
from tests.manifests.test_v4_draft import tracked, vector
from tests.manifests.test_v4_proposal import LOW, STATS, Table, root_of, stats_row


def _show(manifest: Manifest) -> None:
    """Everything that a manifest can be asked."""
    manifest.entries.to_pylist()
    partition = manifest.partition()
    assert partition is None or len(build.to_pylist(partition)) == len(manifest)
    manifest.stat_maps().to_pylist()
    for field_id in manifest.stat_field_ids():
        stats = manifest.stats(field_id)
        assert len(stats.lower) == len(stats.upper_raw) == len(stats.null_count) == len(manifest)
        stats.lower_raw.to_pylist(), stats.value_count.to_pylist(), stats.lower_damaged.to_pylist()


def _read_all(reader: ManifestReader) -> None:
    root = root_of(reader)
    _show(root)
    for leaf in reader.leaves(root):
        _show(leaf)
    assert all(p.text and p.where for p in reader.problems)


def _proposal(folder: Path, writer: str) -> Table:
    table = Table(folder, writer)
    rows = [stats_row(i, LOW, partition_spec_id=1) for i in range(4)]
    leaf, length = table.write("a", v4.proposal(STATS), rows, "data")
    vectors = v4.dv_row(leaf, encode_manifest_dv(BitMap([1])))
    table.root([stats_row(9, LOW), v4.manifest_row(leaf, length, 4), vectors], v4.proposal(STATS))
    return table


def _draft(folder: Path, writer: str) -> Table:
    table = Table(folder, writer)
    fields = v4.draft(STATS, [v4.F(1000, "at_day", "date"), v4.F(1001, "name", "string")])
    kept = {"at_day": dt.date(2024, 1, 1), "name": "x"}
    stats = stats_row(0, LOW)["content_stats"]
    rows = [tracked(i, spec_id=1, partition=kept, deletion_vector=vector(i), content_stats=stats) for i in range(3)]
    leaf, length = table.write("a", fields, rows, "data")
    table.root([draft_manifest(leaf, length, dv=encode_manifest_dv(BitMap([2])))], v4.draft())
    return table


MAKERS = {"proposal": _proposal, "draft": _draft}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Table]:
    return {
        (dialect, writer): make(tmp_path_factory.mktemp(f"{dialect}-{writer}"), writer)
        for dialect, make in MAKERS.items()
        for writer in v4.WRITERS
    }


@hypothesis.given(
    which=st.sampled_from([(d, w) for d in MAKERS for w in v4.WRITERS]),
    leaf=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_no_damage_raises_anything_but_our_errors(
    tables: dict[tuple[str, str], Table], which: tuple[str, str], leaf: bool, seed: int
) -> None:
    rng, table = random.Random(seed), tables[which]
    path = table.folder / "metadata" / ("a" if leaf else f"root.{which[1]}")
    before = path.read_bytes()
    data = bytearray(before)
    match rng.choice(["flip", "flip", "flip", "truncate", "zero", "insert", "empty"]):
        case "flip":
            for _ in range(rng.randint(1, 8)):
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        case "truncate":
            del data[rng.randrange(len(data)) :]
        case "zero":
            at = rng.randrange(len(data))
            data[at : at + 64] = bytes(len(data[at : at + 64]))
        case "insert":
            at = rng.randrange(len(data))
            data[at:at] = rng.randbytes(rng.randint(1, 100))
        case "empty":
            data.clear()
    CACHE.clear()
    try:
        path.write_bytes(data)
        reader = table.reader()
        _read_all(reader)
        with contextlib.suppress(IceexploreError):
            _show(open_manifest(reader.storage, str(path)))
    finally:
        path.write_bytes(before)


@pytest.mark.parametrize("dialect", MAKERS)
def test_the_undamaged_ones_are_fine(tables: dict[tuple[str, str], Table], dialect: str) -> None:
    for writer in v4.WRITERS:
        CACHE.clear()
        reader = tables[dialect, writer].reader()
        _read_all(reader)
        assert list(reader.problems) == []


@pytest.mark.parametrize("dialect", MAKERS)
def test_avro_and_parquet_read_the_same(tables: dict[tuple[str, str], Table], dialect: str) -> None:
    CACHE.clear()
    readers = [tables[dialect, writer].reader() for writer in v4.WRITERS]
    one, two = (list(reader.leaves(root_of(reader)))[-1] for reader in readers)
    same = one.entries.drop_columns(["location", "referenced_file"])
    assert same.equals(two.entries.drop_columns(["location", "referenced_file"]))
    assert one.stat_maps().to_pylist() == two.stat_maps().to_pylist()
    first, second = one.partition(), two.partition()
    assert first is not None
    assert second is not None
    assert first.equals(second)


@pytest.mark.parametrize("make", [lambda i: stats_row(i, LOW) if i % 3 else v4.data_row(i)])
def test_bulk_and_row_by_row_decoding_agree(make: Any) -> None:
    fields = v4.proposal(STATS, partition=[v4.F(1000, "d", "date")])
    rows = [make(i) for i in range(700)]
    data = v4.avro(fields, rows, interval=20_000, content="data")
    header = read_header(data, "f")
    reader_schema = reader_schema_of(header.schema, "f")
    for columns in (reader_schema.arrow.names, [c for c in reader_schema.arrow.names if not c.startswith("sstats")]):
        slow = decode(data, header, reader_schema, columns, "f", decoders=(FastavroDecoder(),))
        fast = decode_bulk(data, header, index_blocks(data, header, "f"), reader_schema, columns, "f")
        assert slow.faults == ()
        assert fast is not None
        assert fast.equals(slow.table)
        assert len(slow.table) == 700


def test_text_that_is_no_utf8_is_a_problem(tmp_path: Path) -> None:
    table = Table(tmp_path, "parquet")
    fields = v4.proposal([v4.column_stats(2, "binary")])
    fields = [v4.F(100, "location", "binary") if f.field_id == 100 else f for f in fields]
    rows = [v4.data_row(0, location=b"\xff\xfe", content_stats={"c2": {"lower_bound": b"\xff"}})]
    data = v4.parquet(fields, rows, format_version="4", content="data")
    leaf = table.put("a", data)
    reader = table.root([v4.manifest_row(leaf, len(data), 1)])
    made = reader.leaf(root_of(reader), 0)
    assert [p.code for p in made.problems] == ["value-undecodable"]
    assert made.stats(2).lower_damaged.to_pylist() == [True]
    assert made.stats(2).lower_raw.to_pylist() == [b"\xff"]


@pytest.mark.parametrize("count", [200, 20_000])
@pytest.mark.parametrize("parts", [{"entries"}, {"entries", "partition", "stats"}], ids=["entries", "all"])
@pytest.mark.parametrize("damaged", ["stats", "entries"])
def test_damaged_statistics_cost_no_entry(tmp_path: Path, count: int, parts: set[str], damaged: str) -> None:
    table = Table(tmp_path, "parquet")
    rows = [stats_row(i, LOW, partition_spec_id=0) for i in range(count)]
    leaf, length = table.write("a", v4.proposal(STATS), rows, "data")
    assert (length < BULK_BYTES) == (count == 200), "one that is decoded at once, and one that is not"
    reader = table.root([v4.manifest_row(leaf, length, count)])
    whole = reader.leaf(root_of(reader), 0, PARTS)
    path = table.folder / "metadata" / "a"
    data = bytearray(path.read_bytes())
    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    named = next(c for name, c in columns.items() if name.endswith("lower_bound" if damaged == "stats" else "location"))
    at = named.dictionary_page_offset or named.data_page_offset
    data[at : at + named.total_compressed_size] = b"\xff" * named.total_compressed_size
    path.write_bytes(data)
    CACHE.clear()
    reader = table.reader()
    made = reader.leaf(root_of(reader), 0, parts)
    if damaged == "entries":
        assert len(made) == 0
    else:
        assert made.entries.equals(whole.entries)
        assert len(whole.stats(1).lower_raw.drop_null()) == count
        assert len(made.stats(1).lower_raw.drop_null()) == 0
        _show(made)
    assert [p.code for p in reader.problems] == ["file-corrupt"]
    assert "Parquet page" in next(iter(reader.problems)).text
    CACHE.clear()
    with pytest.raises(IceexploreError, match="Parquet page"):
        _show(table.reader(strict=True).leaf(root_of(table.reader()), 0, parts))


def test_a_truncated_identity_partition_is_reported_and_does_not_prune(tmp_path: Path) -> None:
    table = Table(tmp_path, "parquet")
    low = {2: "aver", 101: dt.date(2024, 1, 2)}
    cut, sound = stats_row(0, low, partition_spec_id=1), stats_row(1, low, partition_spec_id=1)
    cut["content_stats"]["c2"]["upper_bound"] = "aves"
    fields = v4.proposal([v4.column_stats(2, "string"), v4.column_stats(101, "date")])
    leaf, length = table.write("a", fields, [cut, sound], "data")
    table.root([v4.manifest_row(leaf, length, 2)])
    t = ix.open(table.folder)
    want = {"name = 'average'": [0], "name = 'aver'": [0, 1], "name != 'aver'": [0], "name = 'b'": []}
    for where, files in want.items():
        tasks = t.plan(where).tasks
        assert sorted(int(p[-13:-8]) for p in tasks["file_path"]) == files, where
    (item,) = t.problems
    assert (item.code, item.where, item.field) == ("entry-invalid", f"{leaf}#entry 0", "149 content_stats")
    assert "field 'name' must have one value" in item.text
