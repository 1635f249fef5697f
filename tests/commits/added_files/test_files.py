"""New data files: counts, records, paths, frames."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import Mock
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.commits import CommitWriter, LayoutOptions, append, is_synthetic, new_files
from iceexplore.commits.added_files._synthetic import _newest
from iceexplore.errors import FileMissingError, FormatError, IceexploreError, OptionError, OutsideRootsError, RuleError
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch, ManifestReader
from iceexplore.metadata import apply_transform, arrow_type, parse_type
from tests.commits.operations_table import BY_KIND, NOW, Commits, frame, sandbox, table
from tests.helpers.folders import fresh
from tests.helpers.hangs import ends

TYPES = {
    "i": "int", "l": "long", "d": "date", "t": "timestamptz", "u": "timestamp", "n": "timestamp_ns", "s": "string",
    "y": "binary", "c": "decimal(9,2)", "f": "double", "g": "float", "b": "boolean", "x": "fixed[3]", "z": "uuid",
    "o": "time",
}  # fmt: skip
WIDE = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": i, "name": n, "type": t, "required": False} for i, (n, t) in enumerate(TYPES.items(), 1)],
}
IDS = {name: i for i, name in enumerate(TYPES, 1)}
TRANSFORMED = [
    *[(n, "identity") for n in TYPES],
    *[(n, t) for n in "dtun" for t in ("year", "month", "day")],
    *[(n, "hour") for n in "tun"],
    *[(n, "bucket[16]") for n in "ildtunsycxzo"],
    *[(n, "bucket[5000]") for n in "ls"],
    *[(n, "truncate[3]") for n in "ilcsy"],
    *[(n, "void") for n in "il"],
]


class Memory:
    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def write(self, location: str, data: bytes, *, kind: str) -> None:
        assert location not in self.files
        self.files[location] = data


def writer_of(state: TableState, seed: int = 1) -> CommitWriter:
    options = LayoutOptions.of(state.metadata.format_version)
    return CommitWriter(Memory(), state, options, 5, 1, None, NOW, 1, Random(seed))


def written(writer: CommitWriter) -> dict[str, bytes]:
    assert isinstance(writer.storage, Memory)
    return writer.storage.files


def state_of(*spec: tuple[str, str], schema: Mapping[str, Any] = WIDE, version: int = 3, **more: Any) -> TableState:
    fields = [
        {"source-id": IDS[n], "field-id": 1000 + i, "transform": t, "name": f"p{i}"} for i, (n, t) in enumerate(spec)
    ]
    return table(fresh() / "t", version, schema=schema, spec=fields, **more)


def stat(batch: EntryBatch, name: str, part: str) -> pa.Array:
    array = batch.stats[IDS[name]]
    return pc.struct_field(array, [array.type.get_field_index(part)])


def fits(batch: EntryBatch, spec: list[tuple[str, str]]) -> None:
    """Both bounds of each source column are in the file's partition."""
    assert batch.partition is not None
    for i, (name, transform) in enumerate(spec):
        values = pc.struct_field(batch.partition, [i])
        if transform == "void":
            assert values.null_count == len(values)
            continue
        kind = parse_type(TYPES[name])
        for bound in ("lower", "upper"):
            got = apply_transform(transform, kind, stat(batch, name, bound))
            assert got.equals(values.cast(got.type)), (name, transform, bound)


# Made-up files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "transform"), TRANSFORMED)
def test_made_up_bounds_fit_made_up_partitions(name: str, transform: str) -> None:
    state = state_of((name, transform))
    fits(new_files(state, 40, rows=100, writer=writer_of(state)), [(name, transform)])


@pytest.mark.parametrize(
    ("spec", "given"),
    [
        ([("t", "day")], {"p0": "2024-02-29"}),
        ([("t", "day")], {"p0": date(1969, 12, 31)}),
        ([("t", "hour")], {"p0": "2024-02-29-23"}),
        ([("n", "month")], {"p0": "1969-12"}),
        ([("d", "year")], {"p0": "2024"}),
        ([("d", "year")], {"p0": -1}),
        ([("d", "day"), ("d", "month")], {"p0": "2024-02-29", "p1": "2024-02"}),
        ([("t", "day"), ("t", "bucket[7]")], {"p0": "2024-02-29", "p1": 6}),
        ([("l", "bucket[16]"), ("s", "truncate[3]")], {"p0": 15, "p1": "abc"}),
        ([("s", "truncate[3]")], {"p0": "ab"}),
        ([("s", "truncate[3]")], {"p0": "日本語"}),
        ([("s", "truncate[3]"), ("s", "bucket[4]")], {"p0": "xyz", "p1": 3}),
        ([("i", "truncate[3]")], {"p0": -(2**31) + 2}),
        ([("l", "truncate[3]")], {"p0": -3}),
        ([("c", "truncate[3]")], {"p0": Decimal("-1.50")}),
        ([("s", "identity")], {"p0": "a string that is far longer than sixteen characters"}),
        ([("z", "identity")], {"p0": "12345678-1234-5678-1234-567812345678"}),
        ([("z", "identity"), ("b", "identity")], {"p0": UUID(int=5), "p1": True}),
        ([("u", "identity")], {"p0": "2024-01-01T00:00:00"}),
    ],
)
def test_made_up_bounds_fit_given_partitions(spec: list[tuple[str, str]], given: dict[str, Any]) -> None:
    state = state_of(*spec)
    batch = new_files(state, 20, rows=100, partitions=[given], writer=writer_of(state))
    fits(batch, spec)
    for name, _ in spec:
        assert stat(batch, name, "null_count").to_pylist() == [0] * 20


def test_null_partitions_have_null_columns() -> None:
    spec = [("t", "day"), ("l", "bucket[4]"), ("s", "identity")]
    state = state_of(*spec)
    given = {"p0": None, "p1": None, "p2": None}
    batch = new_files(
        state, 2, rows=7, partitions=[given, {"p0": "2024-01-01", "p1": 1, "p2": "x"}], writer=writer_of(state)
    )
    for name, _ in spec:
        assert stat(batch, name, "null_count").to_pylist() == [7, 0]
        assert stat(batch, name, "lower").is_valid().to_pylist() == [False, True]


@pytest.mark.parametrize(
    ("spec", "given", "message"),
    [
        ([("t", "day")], {}, "lacks partition field 'p0'"),
        ([("t", "day")], {"p0": None, "p1": 3}, "no partition field 'p1'; nearest: p0"),
        ([("t", "day")], {"p0": "yesterday"}, "p0"),
        ([("d", "year")], {"p0": 2024}, "write '2024'"),
        ([("d", "month")], {"p0": "2024-13"}, "between 1 and 12"),
        ([("l", "bucket[4]")], {"p0": 4}, "buckets are 0 to 3"),
        ([("l", "identity")], {"p0": "5"}, "not a valid long"),
        ([("s", "identity")], {"p0": 5}, "not a string"),
        ([("i", "identity")], {"p0": 2**40}, "p0"),
        ([("s", "truncate[3]")], {"p0": "abcd"}, "not a value of truncate"),
        (
            [("d", "day"), ("d", "month")],
            {"p0": "2024-02-29", "p1": "2024-03"},
            "no value of the column matches all of them",
        ),
        ([("s", "identity"), ("s", "bucket[9]")], {"p0": "a", "p1": None}, "one is null, another is not"),
        ([("i", "identity"), ("i", "truncate[5]")], {"p0": 7, "p1": 10}, "different values"),
        ([("l", "void")], {"p0": 1}, "always null"),
        ([], {"p0": 1}, "not partitioned"),
    ],
)
def test_partitions_that_no_row_is_in(spec: list[tuple[str, str]], given: dict[str, Any], message: str) -> None:
    state = state_of(*spec)
    writer = writer_of(state)
    with pytest.raises(OptionError, match=message.replace("[", r"\[")):
        new_files(state, 3, rows=1, partitions=[given], writer=writer)
    assert not written(writer)


@pytest.mark.parametrize("given", [1, 1.5, True, "a", {"p0": "a"}, []])
def test_partitions_are_a_list(given: Any) -> None:
    state = state_of(("s", "identity"))
    with pytest.raises(OptionError, match="give a list of dictionaries"):
        new_files(state, 3, rows=1, partitions=given, writer=writer_of(state))


@pytest.mark.parametrize(
    "how",
    [
        {"files": 0, "rows": 1},
        {"files": -1, "rows": 1},
        {"files": True, "rows": 1},
        {"files": 10**9, "rows": 1},
        {"files": 2},
        {"files": 2, "rows": 0},
        {"files": 2, "rows": [1, 2, 3]},
        {"files": 2, "rows": 1.5},
        {"files": 2, "rows": 1, "bytes_per_row": -1},
        {"files": 2, "rows": 1, "partitions": []},
        {"files": []},
        {"files": [1, 2]},
        {"files": 3.5},
        {"files": None},
        {"files": [], "rows": 5},
        {"files": 2, "rows": 10**9, "materialize": True},
    ],
)
def test_counts_that_make_no_sense(how: dict[str, Any]) -> None:
    state = state_of(("s", "identity"))
    writer = writer_of(state)
    with pytest.raises(OptionError):
        new_files(state, how.pop("files"), writer=writer, **how)
    assert not written(writer)


def test_made_up_files_are_plausible() -> None:
    state = state_of(("s", "identity"), properties={"write.metadata.metrics.column.y": "none"})
    writer = writer_of(state)
    batch = new_files(state, 200, rows=list(range(1, 201)), writer=writer)
    assert not written(writer)
    rows = np.array(batch.entries["record_count"])
    assert rows.tolist() == list(range(1, 201))
    locations = build.to_pylist(batch.entries["location"])
    assert len(set(locations)) == 200
    assert all(is_synthetic(name) and name.startswith(state.metadata.location) for name in locations)
    assert all(UUID(name[-44:-8]).version == 4 for name in locations)
    assert (np.array(batch.entries["file_size_in_bytes"]) > rows).all()
    for name in TYPES:
        if name == "y":
            assert stat(batch, name, "value_count").null_count == 200
            assert stat(batch, name, "lower").null_count == 200
            continue
        values, nulls = np.array(stat(batch, name, "value_count")), np.array(stat(batch, name, "null_count"))
        nans = np.array(pc.fill_null(stat(batch, name, "nan_count"), 0))
        assert (values == rows).all()
        assert (nulls + nans <= values).all()
        low, high = stat(batch, name, "lower"), stat(batch, name, "upper")
        assert build.to_pylist(low.is_valid()) == (nulls + nans < values).tolist()
        assert low.type == arrow_type(parse_type(TYPES[name]))
        pairs = zip(
            low.cast(pa.binary()) if name == "z" else low, high.cast(pa.binary()) if name == "z" else high, strict=True
        )
        assert all(b.as_py() is None or a.as_py() <= b.as_py() for a, b in pairs), name


def test_a_seed_repeats() -> None:
    state = state_of(("t", "day"))
    a, b = (new_files(state, 5, rows=10, writer=writer_of(state, 3)) for _ in range(2))
    assert a.entries.equals(b.entries)
    assert {i: build.to_pylist(s) for i, s in a.stats.items()} == {i: build.to_pylist(s) for i, s in b.stats.items()}
    assert not a.entries.equals(new_files(state, 5, rows=10, writer=writer_of(state, 4)).entries)


def test_bytes_per_row() -> None:
    state = state_of()
    batch = new_files(state, 3, rows=1000, bytes_per_row=50, writer=writer_of(state))
    assert all(50_000 <= size < 53_000 for size in build.to_pylist(batch.entries["file_size_in_bytes"]))


def test_new_files_go_where_the_newest_are(tmp_path: Path) -> None:
    commits = Commits(sandbox(tmp_path / "t", spec=BY_KIND))
    commits.run(append, frame([(1, "seldom", 1.0), (2, "often", 1.0)]))
    commits.run(append, 6, rows=10)
    tuples = commits.change.added.partition
    assert tuples is not None
    assert {t["1000"] for t in build.to_pylist(tuples)} == {"seldom", "often"}


def test_a_million_files_take_seconds() -> None:
    fields = [{"id": i, "name": f"c{i}", "type": t, "required": False}
              for i, t in enumerate(["long", "string", "double", "timestamptz", "date"], 1)]  # fmt: skip
    spec = [{"source-id": 4, "field-id": 1000, "transform": "day", "name": "day"}]
    state = table(fresh() / "t", schema={"type": "struct", "fields": fields}, spec=spec)
    with ends():  # about three seconds
        batch = new_files(state, 1_000_000, rows=1000, writer=writer_of(state))
    assert len(batch) == 1_000_000


# Records -------------------------------------------------------------------------------------------------------------

GOOD = {"location": "/a.parquet", "record_count": 5, "file_size_in_bytes": 100}


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([{**GOOD, "rows": 3}], "unknown key 'rows'"),
        ([{**GOOD, "record_cuont": 3}], "nearest: record_count"),
        ([{"location": "/a", "record_count": 1}], "lacks 'file_size_in_bytes'"),
        ([{**GOOD, "record_count": -1}], "record_count is -1"),
        ([{**GOOD, "record_count": 1.5}], "record_count is 1.5"),
        ([{**GOOD, "record_count": True}], "record_count is True"),
        ([{**GOOD, "file_size_in_bytes": 2**64}], "expected an integer of at least 0"),
        ([{**GOOD, "location": ""}], "location"),
        ([{**GOOD, "file_format": "csv"}], "file_format 'csv'"),
        ([{**GOOD, "split_offsets": [9, 4]}], "ascending"),
        ([{**GOOD, "partition": {"kind": "a"}}], "not partitioned"),
        ([{**GOOD, "lower_bounds": {"idd": 5}}], "no column 'idd'; nearest: id"),
        ([{**GOOD, "lower_bounds": {"id": "five"}}], "lower bound of id"),
        ([{**GOOD, "lower_bounds": {"id": 9}, "upper_bounds": {"id": 5}}], "above the upper bound"),
        ([{**GOOD, "null_value_counts": {"id": 6}}], "6 null and NaN values"),
        ([{**GOOD, "value_counts": {"id": 6}}], "6 values in 5 rows"),
        ([{**GOOD, "null_value_counts": {"id": -1}}], "null_value_counts"),
        ([{**GOOD, "null_value_counts": 5}], "from column names to values"),
        ([GOOD, "/b.parquet"], "give either dictionaries or paths"),
    ],
)
def test_records_that_make_no_sense(records: list[Any], message: str) -> None:
    state = table(fresh() / "t")
    writer = writer_of(state)
    with pytest.raises(OptionError, match=message):
        new_files(state, records, writer=writer)
    assert not written(writer)


@pytest.mark.parametrize(
    ("partition", "message"),
    [(None, "must be a dictionary whose keys"), ({}, "lacks partition field 'kind'"), ({"kind": 5}, "not a string"),
     ({"kind": "a", "knd": 1}, "no partition field 'knd'")],
)  # fmt: skip
def test_partitions_of_records(partition: Any, message: str) -> None:
    state = table(fresh() / "t", spec=BY_KIND)
    with pytest.raises(OptionError, match=message):
        new_files(state, [{**GOOD, "partition": partition}], writer=writer_of(state))
    with pytest.raises(OptionError, match="lacks 'partition'"):
        new_files(state, [GOOD], writer=writer_of(state))


def test_records(tmp_path: Path) -> None:
    commits = Commits(sandbox(tmp_path / "t", spec=BY_KIND))
    record = {
        **GOOD, "partition": {"kind": "a"}, "lower_bounds": {"id": 1, "ts": "2024-01-01T00:00:00+00:00"},
        "upper_bounds": {"id": 2, "ts": datetime(2024, 1, 2, tzinfo=UTC)}, "null_value_counts": {"id": 0, "x": 5},
    }  # fmt: skip
    commits.run(append, [record, {**record, "location": "/b.orc", "partition": {"kind": None}}])
    first, second = commits.entries()
    assert (first["location"], first["record_count"], first["file_format"]) == ("/a.parquet", 5, "parquet")
    assert second["file_format"] == "orc"
    (leaf,) = list(commits.state.leaves(parts=frozenset({"entries", "stats"})))
    assert leaf.stats(1).lower.to_pylist() == [1, 1]
    assert leaf.stats(4).upper.to_pylist() == [datetime(2024, 1, 2, tzinfo=UTC)] * 2
    assert leaf.stats(3).null_count.to_pylist() == [5, 5]
    before = commits.written
    with pytest.raises(RuleError, match=r"twice .*duplicate-file"):
        commits.run(append, [{**record, "location": "/c"}, {**record, "location": "file:///c"}])
    with pytest.raises(RuleError, match=r"already in the table.*duplicate-file"):
        commits.run(append, [{**record, "location": "file:/a.parquet"}])
    assert commits.written == before


# Paths ---------------------------------------------------------------------------------------------------------------


def parquet(path: Path, rows: pa.Table, *, ids: bool = True) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    if ids:
        numbers = {"id": 1, "kind": 2, "x": 3, "ts": 4}
        rows = rows.cast(pa.schema([f.with_metadata({"PARQUET:field_id": str(numbers[f.name])}) for f in rows.schema]))
    pq.write_table(rows, path, row_group_size=4)
    return str(path)


@pytest.mark.parametrize("ids", [True, False])
def test_paths(tmp_path: Path, ids: bool) -> None:
    state = table(tmp_path / "t", spec=BY_KIND)
    rows = frame([(i, "kindly ever after", i / 4 if i else None) for i in range(10)])
    path = parquet(tmp_path / "t" / "data" / "one.parquet", rows, ids=ids)
    batch = new_files(state, [Path(path)], writer=writer_of(state))
    (entry,) = batch.entries.to_pylist()
    assert (entry["record_count"], entry["file_size_in_bytes"]) == (10, Path(path).stat().st_size)
    assert len(entry["split_offsets"]) == 3
    assert batch.partition is not None
    assert build.to_pylist(batch.partition) == [{"1000": "kindly ever after"}]
    numbers = build.to_pylist(batch.stats[1])[0]
    assert (numbers["lower"], numbers["upper"], numbers["value_count"], numbers["null_count"]) == (0, 9, 10, 0)
    xs = build.to_pylist(batch.stats[3])[0]
    assert (xs["lower"], xs["upper"], xs["null_count"], xs["nan_count"]) == (0.25, 2.25, 1, None)
    assert numbers["column_size"] > 0


def test_paths_with_folders(tmp_path: Path) -> None:
    state = table(tmp_path / "t", spec=BY_KIND)
    rows = frame([(1, "b", 1.0)]).drop_columns(["kind"])
    path = parquet(tmp_path / "t" / "data" / "kind=a%2Fb" / "one.parquet", rows)
    batch = new_files(state, path, writer=writer_of(state))
    assert batch.partition is not None
    assert build.to_pylist(batch.partition) == [{"1000": "a/b"}]


def test_paths_that_cannot_be_added(tmp_path: Path) -> None:
    state = table(tmp_path / "t", spec=BY_KIND)
    folder = tmp_path / "t" / "data"
    both = parquet(folder / "both.parquet", frame([(1, "a", 1.0), (2, "b", 1.0)]))
    bare = parquet(folder / "bare.parquet", frame([(1, "a", 1.0)]).drop_columns(["id"]))
    strange = folder / "strange.parquet"
    pq.write_table(pa.table({"zzz": [1]}), strange)
    text = folder / "text.parquet"
    text.write_text("hello")
    outside = parquet(tmp_path / "other" / "x.parquet", frame([(1, "a", 1.0)]))
    cases: list[tuple[Any, type[IceexploreError], str | None]] = [
        ([both], OptionError, "its partition is ambiguous"),
        ([bare], OptionError, "required column 'id'"),
        ([str(strange)], OptionError, "no column of the table"),
        ([str(text)], FormatError, None),
        ([str(folder / "nope.parquet")], FileMissingError, None),
        ([outside], OutsideRootsError, None),
        ([both, f"file://{both}"], RuleError, "duplicate-file"),
    ]
    for paths, error, message in cases:
        with pytest.raises(error, match=message):
            new_files(state, paths, writer=writer_of(state))


# Frames --------------------------------------------------------------------------------------------------------------


def test_frames_have_pyicebergs_statistics(tmp_path: Path) -> None:
    """The same rows written by PyIceberg: the same tuples, counts and bounds, file by file."""
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.partitioning import PartitionSpec as LibrarySpec
    from pyiceberg.schema import Schema as LibrarySchema

    rng = np.random.default_rng(5)
    n = 300
    longs = rng.integers(-(2**40), 2**40, n)
    data = pa.table(
        {
            "i": pa.array(rng.integers(-9, 9, n), pa.int32(), mask=rng.random(n) < 0.2),
            "l": pa.array(longs),
            "d": pa.array(rng.integers(0, 20, n), pa.int32()).cast(pa.date32()),
            "t": pa.array(rng.integers(-(10**15), 10**15, n), pa.int64()).cast(pa.timestamp("us", "UTC")),
            "s": pa.array([["short", "日本語" * 7, "\U0010ffff" * 20, "z" * 40, ""][k] for k in rng.integers(0, 5, n)]),
            "y": pa.array([[b"a", b"\xff" * 20, b"b" * 30][k] for k in rng.integers(0, 3, n)]),
            "c": pa.array([Decimal(int(v)) / 100 for v in rng.integers(-999, 999, n)], pa.decimal128(9, 2)),
            "f": pa.array(rng.normal(size=n)),
            "b": pa.array(rng.random(n) < 0.5),
            "z": pa.array([UUID(int=int(v) % 2**64).bytes for v in longs], pa.binary(16)),
        }
    )
    names = data.column_names
    fields = [{"id": i, "name": n, "type": TYPES[n], "required": False} for i, n in enumerate(names, 1)]
    schema = {"type": "struct", "schema-id": 0, "fields": fields}
    spec = [
        {"source-id": 9, "field-id": 1000, "transform": "identity", "name": "b"},
        {"source-id": 1, "field-id": 1001, "transform": "identity", "name": "i"},
    ]
    catalog = SqlCatalog("x", uri=f"sqlite:///{tmp_path}/x.db", warehouse=f"file://{tmp_path}/w")
    catalog.create_namespace("db")
    theirs = catalog.create_table(
        "db.t",
        LibrarySchema.model_validate(schema),
        partition_spec=LibrarySpec.model_validate({"spec-id": 0, "fields": spec}),
    )
    theirs.append(data.cast(theirs.schema().as_arrow()))
    state = table(tmp_path / "t", schema=schema, spec=spec)
    batch = new_files(state, data, writer=writer_of(state))
    expected = {(f.partition[0], f.partition[1]): f for f in (task.file for task in theirs.scan().plan_files())}
    assert len(batch) == len(expected) > 10
    assert batch.partition is not None
    from iceexplore.metadata import encode_value

    for k, (entry, place) in enumerate(
        zip(build.to_pylist(batch.entries), build.to_pylist(batch.partition), strict=True)
    ):
        want = expected[place["1000"], place["1001"]]
        assert entry["record_count"] == want.record_count
        for number, f in enumerate(fields, 1):
            got = build.to_pylist(batch.stats[number].slice(k, 1))[0]
            assert got["value_count"] == want.value_counts[number]
            assert got["null_count"] == want.null_value_counts[number]
            kind = parse_type(str(f["type"]))
            for side, bounds in (("lower", want.lower_bounds), ("upper", want.upper_bounds)):
                mine = None if got[side] is None else encode_value(kind, got[side])
                # Identity partition columns are not cut here; PyIceberg has no upper bound where none is short enough.
                assert mine == bounds.get(number), (f["name"], side)


def test_nan_and_nested_columns() -> None:
    schema = {
        "type": "struct",
        "fields": [
            {"id": 1, "name": "f", "type": "double", "required": False},
            {"id": 2, "name": "p", "required": False, "type": {"type": "struct", "fields": [
                {"id": 3, "name": "q", "type": "string", "required": False}]}},
            {"id": 4, "name": "v", "required": False, "type": {
                "type": "list", "element-id": 5, "element": "float", "element-required": False}},
            {"id": 6, "name": "m", "required": False, "type": {
                "type": "map", "key-id": 7, "key": "string", "value-id": 8, "value": "int", "value-required": False}},
        ],
    }  # fmt: skip
    state = table(fresh() / "t", schema=schema)
    data = pd.DataFrame(
        {
            "f": [0.0, 1.0, -2.0],
            "p": [{"q": "x"}, None, {"q": None}],
            "v": [[1.0, math.nan], None, []],
            "m": [[("k", 1)], None, [("a", None), ("b", 2)]],
        }
    )
    arrow = pa.table(
        {
            "f": pa.array([0.0, math.nan, -0.0, None]),
            "p": pa.array([{"q": "x"}, None, {"q": None}, {"q": "b"}], pa.struct([("q", pa.string())])),
            "v": pa.array([[1.0, math.nan], None, [], [2.0]], pa.list_(pa.float32())),
            "m": pa.array([[("k", 1)], None, [("a", None), ("b", 2)], []], pa.map_(pa.string(), pa.int32())),
        }
    )
    writer = writer_of(state)
    batch = new_files(state, arrow, writer=writer)
    f = build.to_pylist(batch.stats[1])[0]
    assert (f["value_count"], f["null_count"], f["nan_count"]) == (4, 1, 1)
    assert (math.copysign(1, f["lower"]), math.copysign(1, f["upper"])) == (-1, 1)
    q = build.to_pylist(batch.stats[3])[0]
    assert (q["lower"], q["upper"], q["null_count"]) == ("b", "x", 2)
    for number in (5, 7, 8):
        inner = build.to_pylist(batch.stats[number])[0]
        assert inner["lower"] is None
        assert inner["value_count"] >= 3
    (stored,) = written(writer).values()
    assert build.to_pylist(pq.read_table(io.BytesIO(stored)))[2:] == build.to_pylist(arrow)[2:]
    ids = [int(c.metadata[b"PARQUET:field_id"]) for c in pq.read_schema(io.BytesIO(stored))]  # type: ignore[index]
    assert ids == [1, 2, 4, 6]
    assert len(new_files(state, data, writer=writer)) == 1  # pandas' lists of pairs and dictionaries fit, too


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"id": [1], "knd": ["a"]}, "no column 'knd' in the table; nearest: kind"),
        ({"kind": ["a"]}, "'id' is required but missing"),
        ({"id": [None, 1]}, "'id' is required but has 1 nulls"),
        ({"id": ["5"]}, "column 'id': .* does not fit long"),
        ({"id": [2.5]}, "column 'id': double does not fit long"),
        ({"id": [2**70]}, "column 'id' has values that Arrow cannot represent"),
        ({"id": [1], "kind": [5]}, "column 'kind': .* does not fit string"),
        ({"id": [1], "ts": [datetime(2024, 1, 1)]}, "time zone"),
        ({"id": []}, "id|no rows"),
    ],
)
def test_frames_that_do_not_fit(data: dict[str, Any], message: str) -> None:
    state = table(fresh() / "t")
    writer = writer_of(state)
    given: Any = pd.DataFrame(data)
    if None in data.get("id", ()):
        given = pa.table({"id": pa.array(data["id"], pa.int64())})
    with pytest.raises(OptionError, match=message):
        new_files(state, given, writer=writer)
    assert not written(writer)


@pytest.mark.parametrize(("name", "transform"), TRANSFORMED)
def test_materialized_rows_are_in_their_partitions(name: str, transform: str) -> None:
    state = state_of((name, transform))
    writer = writer_of(state)
    batch = new_files(state, 4, rows=25, materialize=True, writer=writer)
    assert batch.partition is not None
    kind = parse_type(TYPES[name])
    for location, place in zip(
        build.to_pylist(batch.entries["location"]), build.to_pylist(batch.partition), strict=True
    ):
        assert not is_synthetic(location)
        rows = pq.read_table(io.BytesIO(written(writer)[location]))
        assert rows.num_rows == 25
        values = rows[name].combine_chunks()
        if isinstance(values, pa.ExtensionArray):
            values = values.storage
        if transform != "void":
            got = apply_transform(transform, kind, values.cast(arrow_type(kind)))
            assert build.to_pylist(got.unique()) == [place["1000"]]


# Transforms ----------------------------------------------------------------------------------------------------------


@given(st.integers(1 - 10**38, 10**38 - 1), st.integers(1, 2**31 - 1), st.integers(0, 38))
@example(1 - 10**38, 50, 2)
def test_decimals_are_cut_down_exactly(number: int, width: int, scale: int) -> None:
    """All 38 digits; of the lowest ones there is no room for the result."""
    kind = parse_type(f"decimal(38,{scale})")
    exact = Context(prec=40)
    values = pa.array([Decimal(number).scaleb(-scale, exact), None], arrow_type(kind))
    down = number - number % width
    if down <= -(10**38):
        with pytest.raises(OptionError, match="does not fit in"):
            apply_transform(f"truncate[{width}]", kind, values)
    else:
        found = apply_transform(f"truncate[{width}]", kind, values).to_pylist()
        assert found == [Decimal(down).scaleb(-scale, exact), None]


@pytest.mark.parametrize(("name", "transform"), [(n, t) for n, t in TRANSFORMED if t != "void"])
def test_transforms_are_pyicebergs(name: str, transform: str) -> None:
    """Column by column here, value by value there."""
    from pyiceberg.transforms import parse_transform
    from pyiceberg.types import NestedField

    rng = np.random.default_rng(3)
    kind = parse_type(TYPES[name])
    stored = arrow_type(kind)
    numbers = pa.array(rng.integers(-(2**31) + 1, 2**31 - 1, 50))
    pools: dict[str, Any] = {
        "b": [True, False], "s": ["", "a", "日本語日本語", "\U0010ffffabc"], "y": [b"", b"abcdef", b"\xff"],
        "c": [Decimal("-1.51"), Decimal("0.00"), Decimal("7.77")], "x": [b"abc"], "z": [UUID(int=7).bytes],
        "f": [-1.5, 0.0], "g": [0.5],
    }  # fmt: skip
    if name in pools:
        values = pa.array([None, *pools[name]], stored)
    else:
        factor = {"d": 1, "i": 1, "l": 2**20, "t": 10**6, "u": 10**6, "n": 10**9}.get(name, 40)
        small = pc.divide(numbers, 4000) if name == "d" else pc.abs(numbers) if name == "o" else numbers
        values = pa.array(np.array(small) * factor // (2 if name == "o" else 1)).cast(
            pa.int32() if pa.types.is_date32(stored) or pa.types.is_int32(stored) else pa.int64()
        )
        values = pa.concat_arrays([values.cast(stored), build.nulls(1, stored)])
    field = {"id": 1, "name": "x", "required": False, "type": TYPES[name]}
    theirs = parse_transform(transform).transform(NestedField.model_validate(field).field_type)
    plain = values
    if pa.types.is_temporal(stored):
        plain = values.cast(pa.int32() if pa.types.is_date32(stored) else pa.int64())
    got = apply_transform(transform, kind, values)
    if pa.types.is_temporal(got.type):
        got = got.cast(pa.int32() if pa.types.is_date32(got.type) else pa.int64())
    assert build.to_pylist(got) == [None if v is None else theirs(v) for v in build.to_pylist(plain)]


def test_manifests_are_read_until_partitions_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    leaf = Mock(wraps=ManifestReader.leaf)
    monkeypatch.setattr(ManifestReader, "leaf", lambda reader, *args: leaf(reader, *args))
    newest = _newest(ix.sample("trips").state)
    next(newest)
    assert leaf.call_count == 1
    assert 1 + len(list(newest)) == leaf.call_count > 1
