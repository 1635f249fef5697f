"""Sets of positions, few and many, and position delete files that hold more rows than memory would."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap, BitMap64

from iceexplore.arrow import build
from iceexplore.deletes import FILE_PATH_ID, POS_ID, PositionSet, bitmap_of, read_positions
from iceexplore.deletes import _positions as module
from iceexplore.errors import MemoryLimitError
from iceexplore.storage import Storage

SCHEMA = build.schema(
    [
        pa.field("file_path", pa.string(), metadata={"PARQUET:field_id": str(FILE_PATH_ID)}),
        pa.field("pos", pa.int64(), metadata={"PARQUET:field_id": str(POS_ID)}),
    ]
)
some = st.lists(st.integers(0, 300) | st.integers(0, 1 << 40), max_size=60)


def store(folder: Path, *tables: pa.Table, **how: Any) -> tuple[Storage, str]:
    out = io.BytesIO()
    with pq.ParquetWriter(out, SCHEMA, compression="zstd", **how) as writer:
        for table in tables:
            writer.write_table(table)
    (folder / "d.parquet").write_bytes(out.getvalue())
    return Storage(str(folder)), str(folder / "d.parquet")


def rows(path: str, positions: Any) -> pa.Table:
    return pa.table([pa.repeat(pa.scalar(path), len(positions)), pa.array(positions, pa.int64())], schema=SCHEMA)


@given(some, some, st.integers(0, 310), st.integers(0, 310), st.booleans())
def test_both_forms_give_the_same(values: list[int], others: list[int], start: int, rows: int, runs: bool) -> None:
    wanted = {*values, *(range(100, 290) if runs else ())}
    array = np.array(sorted(wanted), dtype=np.int64)
    forms = [PositionSet(array), PositionSet(BitMap64(wanted))]
    if not wanted or max(wanted) < 1 << 32:
        forms.append(PositionSet(BitMap(wanted)))
    assert bitmap_of(array) == bitmap_of(array[::-1]) == BitMap64(wanted)
    for form in forms:
        assert len(form) == len(wanted)
        assert form.bitmap() == BitMap64(wanted)
        assert form.count(start) == sum(p < start for p in wanted)
        marks = np.zeros(rows, dtype=np.bool_)
        form.mark(marks, start)
        assert marks.tolist() == [start + i in wanted for i in range(rows)]
        asked = np.array(others, dtype=np.int64)
        assert form.among(asked).tolist() == [o in wanted for o in others]
        form.bitmap().add(7)
        assert (7 in form.bitmap()) == (7 in wanted)  # a copy
        for other in forms:
            assert PositionSet.union([form, PositionSet(np.array([5])), other]).bitmap() == BitMap64({*wanted, 5})


@pytest.mark.parametrize("plain", [4, 1 << 22])
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(-2, 9)), max_size=40), st.integers(1, 7))
def test_rows_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, plain: int, given_rows: list[tuple[str, int]], size: int
) -> None:
    """Unsorted, doubled and negative, in row groups of any size; as plain numbers and as bitmaps."""
    table = build.table([[p for p, _ in given_rows], [n for _, n in given_rows]], schema=SCHEMA)
    parts = [table.slice(at, size) for at in range(0, len(table), size)]
    storage, location = store(tmp_path_factory.mktemp("t"), *parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_PLAIN_ROWS", plain)
        found = {path: list(positions.bitmap()) for path, positions in read_positions(storage, location).items()}
    wanted = {p: sorted({n for q, n in given_rows if q == p and n >= 0}) for p, _ in given_rows}
    assert found == {path: positions for path, positions in wanted.items() if positions}


def test_many_rows_of_run_lengths_are_held_as_bitmaps(tmp_path: Path) -> None:
    """Eight million rows in some 100 KB: as numbers they take 64 MB, and a hundred million were refused."""
    path = "s3://bucket/" + "x" * 100
    dictionary = pa.DictionaryArray.from_arrays(np.zeros(1_000_000, dtype=np.int32), pa.array([path])).cast(pa.string())
    parts = [
        pa.table([dictionary, pa.array(np.arange(i * 1_000_000, (i + 1) * 1_000_000))], schema=SCHEMA) for i in range(8)
    ]
    storage, location = store(
        tmp_path, *parts, use_dictionary=["file_path"], column_encoding={"pos": "DELTA_BINARY_PACKED"}
    )
    assert Path(location).stat().st_size < 200_000
    before = pa.total_allocated_bytes()
    [(name, positions)] = read_positions(storage, location).items()
    assert (name, len(positions), positions.count(5_999_999)) == (path, 8_000_000, 5_999_999)
    assert positions.nbytes < 100_000
    assert pa.total_allocated_bytes() - before < 1_000_000


def test_a_dictionary_is_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch of a row group comes with its dictionary: of 20 batches these took 20 times the paths' memory."""
    monkeypatch.setattr("iceexplore.storage._budget._given", 64 << 20)
    paths = [f"s3://bucket/{i:06}/" + "x" * 400 for i in range(10_000)]
    names = pa.DictionaryArray.from_arrays(np.repeat(np.arange(10_000, dtype=np.int32), 130), pa.array(paths))
    schema = SCHEMA.set(0, SCHEMA.field(0).with_type(names.type))
    table = pa.table([names, pa.array(np.tile(np.arange(130), 10_000))], schema=schema)
    location = str(tmp_path / "d.parquet")
    pq.write_table(table, location, row_group_size=2_000_000, dictionary_pagesize_limit=1 << 28, store_schema=False)
    found = read_positions(Storage(str(tmp_path)), location)
    assert list(found) == paths
    assert {len(p) for p in found.values()} == {130}


def test_positions_far_apart_are_refused_where_they_take_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PLAIN_ROWS", 1 << 16)
    monkeypatch.setattr("iceexplore.storage._budget._given", 64 << 20)
    step = np.arange(1_200_000, dtype=np.int64) << 17
    storage, location = store(tmp_path, rows("a", step), column_encoding={"pos": "DELTA_BINARY_PACKED"},
                              use_dictionary=["file_path"])  # fmt: skip
    with pytest.raises(MemoryLimitError, match=r"the deleted positions would take .*memory_limit\('8 GiB'\)"):
        read_positions(storage, location)
