"""Rows deleted by value and by position, against brute force."""

from __future__ import annotations

import datetime as dt
import math
import struct as packing
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

import iceexplore as ix
from iceexplore.deletes import encode_bitmap32, encode_deletion_vector, write_position_deletes
from iceexplore.manifests import EntryBatch
from iceexplore.planning import FileTasks, MatchedDeletes
from iceexplore.reading import PositionDeletes, deleted_positions, read_tasks
from tests.helpers.tables.data_table import entry, field, put, stored, struct, table_of

COLUMNS: dict[int, tuple[str, Any, pa.DataType, Any]] = {
    1: ("id", "long", pa.int64(), st.integers(0, 3)),
    2: ("x", "double", pa.float64(), st.sampled_from([0.0, -0.0, 1.5, math.nan])),
    3: ("s", "string", pa.string(), st.sampled_from(["", "a", "b"])),
    4: ("b", "boolean", pa.bool_(), st.booleans()),
    5: ("d", "date", pa.date32(), st.dates(dt.date(2024, 1, 1), dt.date(2024, 1, 2))),
    6: ("f", "fixed[1]", pa.binary(1), st.sampled_from([b"x", b"y"])),
}  # fmt: skip


def _rows(ids: list[int], most: int) -> st.SearchStrategy[list[list[Any]]]:
    one = st.tuples(*[st.none() | COLUMNS[i][3] for i in ids]).map(list)
    return st.lists(one, max_size=most)


@st.composite
def _case(draw: st.DrawFn) -> tuple[list[list[Any]], list[tuple[list[int], list[list[Any]]]]]:
    rows = draw(_rows(list(COLUMNS), 12))
    deletes = []
    for _ in range(draw(st.integers(1, 3))):
        ids = draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=3, unique=True))
        deletes.append((ids, draw(_rows(ids, 5))))
    return rows, deletes


def _key(value: Any) -> Any:
    """As Java's StructLikeSet: null is null, NaN is NaN, -0.0 is not 0.0."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else packing.pack(">d", value)
    return value


def _data(ids: list[int], rows: list[list[Any]]) -> pa.Table:
    arrays = [pa.array([row[i] for row in rows], COLUMNS[n][2]) for i, n in enumerate(ids)]
    return pa.Table.from_arrays(arrays, schema=pa.schema([stored(n, COLUMNS[n][0], COLUMNS[n][2]) for n in ids]))


def matched(deletes: list[dict[str, Any]], *, equality: Any = (), positions: Any = (), vector: Any = None) -> Any:
    """The deletes of one data file."""
    rows = [{"content_type": 2 if "equality_ids" in d else 1, "partition_spec_id": 0, **d} for d in deletes]
    lists = pa.list_(pa.int32())
    return MatchedDeletes(
        EntryBatch.of_rows(rows), pa.array([vector], pa.int32()), pa.array([list(positions)], lists),
        pa.array([list(equality)], lists),
    )  # fmt: skip


def tasks(file: EntryBatch, deletes: MatchedDeletes) -> FileTasks:
    """A task without a filter."""
    return FileTasks(
        file, pa.nulls(1, pa.int64()), pa.array([True]), pa.array([0], pa.int32()), matched=deletes
    )  # fmt: skip


def rows_of(t: ix.Table, file: EntryBatch, deletes: MatchedDeletes, **how: Any) -> list[dict[str, Any]]:
    return [row for table in read_tasks(t._state, tasks(file, deletes), **how) for row in table.to_pylist()]


@given(_case())
def test_equality_deletes_remove_what_brute_force_finds(
    case: tuple[list[list[Any]], list[tuple[list[int], list[list[Any]]]]],
) -> None:
    rows, deletes = case
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        t = table_of(folder, [field(n, c[0], c[1]) for n, c in COLUMNS.items()])
        file = entry(put(folder, _data(list(COLUMNS), rows), row_group_size=5), len(rows))
        entries = [
            {"location": put(folder, _data(ids, keys), f"d{i}.parquet"), "equality_ids": ids}
            for i, (ids, keys) in enumerate(deletes)
        ]
        found = rows_of(t, file, matched(entries, equality=range(len(entries))), columns=["_pos"])
        kept = [i for i, row in enumerate(rows) if not any(_hit(row, ids, keys) for ids, keys in deletes)]
        assert [r["_pos"] for r in found] == kept
        marked = rows_of(t, file, matched(entries, equality=range(len(entries))), columns=["_deleted"])
        assert [r["_deleted"] for r in marked] == [i not in kept for i in range(len(rows))]


def _hit(row: list[Any], ids: list[int], keys: list[list[Any]]) -> bool:
    mine = [_key(row[n - 1]) for n in ids]
    return any(mine == [_key(v) for v in key] for key in keys)


def test_equality_columns_that_were_dropped_added_or_nested(tmp_path: Path) -> None:
    kind = pa.struct([stored(3, "gone", pa.int32()), stored(4, "kept", pa.int32())])
    data = pa.table(
        [pa.array([1, 2, 3, 4]), pa.array([5, 6, None, 8]),
         pa.array([{"gone": 1, "kept": 1}, {"gone": 2, "kept": 2}, None, {"gone": 4, "kept": 4}], kind)],
        schema=pa.schema([stored(1, "id", pa.int64()), stored(2, "old", pa.int64()), stored(5, "s", kind)]),
    )  # fmt: skip
    now = [
        field(1, "id", "long"), field(5, "s", struct(field(4, "kept", "long"))),
        field(6, "new", "string", **{"initial-default": "d"}),
    ]  # fmt: skip
    before = [field(1, "id", "long"), field(2, "old", "long"),
              field(5, "s", struct(field(3, "gone", "int"), field(4, "kept", "int")))]  # fmt: skip
    t = table_of(tmp_path, now, older=[before])
    file = entry(put(tmp_path, data), 4)

    def left(ids: list[int], keys: pa.Table) -> list[int]:
        location = put(tmp_path, keys, f"d{'-'.join(map(str, ids))}.parquet")
        found = rows_of(t, file, matched([{"location": location, "equality_ids": ids}], equality=[0]), columns="id")
        return [r["id"] for r in found]

    assert left([2], pa.table([pa.array([6, None])], schema=pa.schema([stored(2, "old", pa.int64())]))) == [1, 4]
    inner = pa.struct([stored(3, "gone", pa.int32())])
    keys = pa.table([pa.array([{"gone": 4}], inner)], schema=pa.schema([stored(5, "s", inner)]))
    assert left([3], keys) == [1, 2, 3]
    inner = pa.struct([stored(4, "kept", pa.int32())])
    both = pa.table([pa.array([{"kept": 2}, None], inner), pa.array([2, 3])],
                    schema=pa.schema([stored(5, "s", inner), stored(1, "id", pa.int64())]))  # fmt: skip
    assert left([1, 4], both) == [1, 4]
    added = pa.schema([stored(6, "new", pa.string())])
    assert left([6], pa.table([pa.array(["d"])], schema=added)) == []
    assert left([6, 1], pa.table([pa.array(["d", "e"]), pa.array([1, 2])],
                                 schema=pa.schema([*added, stored(1, "id", pa.int64())]))) == [2, 3, 4]  # fmt: skip
    with pytest.raises(ix.FormatError, match="lacks column 'new'"):
        left([6], pa.table([pa.array([1])], schema=pa.schema([stored(1, "id", pa.int64())])))
    with pytest.raises(ix.FormatError, match="no schema of the table"):
        left([77], pa.table([pa.array([1])], schema=pa.schema([stored(77, "id", pa.int64())])))


@pytest.fixture
def ten(tmp_path: Path) -> tuple[ix.Table, EntryBatch]:
    """A table with a file of ten rows, in row groups of three."""
    t = table_of(tmp_path, [field(1, "id", "long")])
    data = pa.table([pa.array(range(10))], schema=pa.schema([stored(1, "id", pa.int64())]))
    return t, entry(put(tmp_path, data, row_group_size=3), 10)


@pytest.mark.parametrize("inline", [None, "portable", "deletion-vector-v1"])
def test_vectors_in_files_and_inline(tmp_path: Path, ten: tuple[ix.Table, EntryBatch], inline: str | None) -> None:
    from pyroaring import BitMap

    t, file = ten
    location = file.entries["location"][0].as_py()
    bitmap = BitMap64([0, 3, 9, 10, 1 << 31])
    data = encode_bitmap32(BitMap(bitmap)) if inline == "portable" else encode_deletion_vector(bitmap)
    place: dict[str, Any] = {"offset": None, "size_in_bytes": None, "inline_content": data}
    if inline is None:
        (tmp_path / "data" / "v.puffin").write_bytes(b"PFA1" + data)
        place = {"offset": 4, "size_in_bytes": len(data), "inline_content": None}
    row = {"location": str(tmp_path / "data" / "v.puffin"), "referenced_file": location, "deletion_vector": place}
    deletes = matched([row], vector=0)
    assert [r["id"] for r in rows_of(t, file, deletes)] == [1, 2, 4, 5, 6, 7, 8]
    assert deleted_positions(t._state, file, deletes) == {location: bitmap}


def test_a_vector_that_claims_any_number_of_positions_is_never_spread(
    tmp_path: Path, ten: tuple[ix.Table, EntryBatch]
) -> None:
    """Even where the entry claims as many rows: 17 billion positions take 137 GB as numbers."""
    t, file = ten
    bitmap = BitMap64()
    bitmap.add_range(2, 1 << 34)
    place = {"offset": None, "size_in_bytes": None, "inline_content": encode_deletion_vector(bitmap)}
    rows = 1 << 34
    location = file.entries["location"][0].as_py()
    row = {"location": None, "referenced_file": location, "deletion_vector": place, "record_count": len(bitmap)}
    claimed = EntryBatch(
        file.entries.set_column(
            file.entries.schema.get_field_index("record_count"), "record_count", pa.array([rows], pa.int64())
        ),
        file.stats,
        file.partition,
    )
    deletes = PositionDeletes(t._state, claimed, matched([row], vector=0))
    marks = np.zeros(10, dtype=np.bool_)
    [(_, positions)] = deletes.of(0)
    positions.mark(marks)
    assert marks.tolist() == [False] * 2 + [True] * 8
    assert deletes.count(0, rows) == len(bitmap)


def test_position_deletes_are_read_once_and_by_what_paths_mean(
    tmp_path: Path, ten: tuple[ix.Table, EntryBatch]
) -> None:
    t, file = ten
    location = file.entries["location"][0].as_py()
    one = write_position_deletes([location, location, "/elsewhere"], np.array([5, 1, 7]))  # type: ignore[arg-type]
    two = write_position_deletes([f"file:{location}", f"file://localhost{location}"], np.array([1, 2]))  # type: ignore[arg-type]
    moved = write_position_deletes([f"hdfs://host:8020{location}", "hdfs://host:8020/x"], np.array([9, 3]))  # type: ignore[arg-type]
    names = []
    for i, data in enumerate((one, two, moved)):
        names.append(str(tmp_path / "data" / f"p{i}.parquet"))
        Path(names[-1]).write_bytes(data)
    rows = [{"location": n} for n in names]
    t.reads.clear()
    assert [r["id"] for r in rows_of(t, file, matched(rows, positions=[0]))] == [0, 2, 3, 4, 6, 7, 8, 9]
    first = sum(r.kind == "delete-file" for r in t.reads)
    assert [r["id"] for r in rows_of(t, file, matched(rows, positions=[0]))] == [0, 2, 3, 4, 6, 7, 8, 9]
    assert sum(r.kind == "delete-file" for r in t.reads) == first
    assert [r["id"] for r in rows_of(t, file, matched(rows, positions=[0, 1]))] == [0, 3, 4, 6, 7, 8, 9]
    assert not t.problems
    assert [r["id"] for r in rows_of(t, file, matched(rows, positions=[2]))] == list(range(9))
    assert [(p.code, p.where) for p in t.problems] == [("delete-path", names[2])]


def test_of_several_files_of_one_path_none_is_taken_for_what_a_delete_names(
    tmp_path: Path, ten: tuple[ix.Table, EntryBatch], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As deletes are matched: whichever of the files a scan has, the others are live as well."""
    t, file = ten
    location = file.entries["location"][0].as_py()
    name = str(tmp_path / "data" / "moved.parquet")
    Path(name).write_bytes(write_position_deletes([f"hdfs://host:8020{location}"], np.array([9])))  # type: ignore[arg-type]
    places = {location: location, f"s3://other{location}": f"s3://other{location}"}
    monkeypatch.setattr("iceexplore.reading._position_deletes.live_places", lambda state, paths: places)
    assert [r["id"] for r in rows_of(t, file, matched([{"location": name}], positions=[0]))] == list(range(10))
    assert not t.problems
