"""Scans on Spark of data files of any shape: evolution, defaults, mappings, identity values, odd names and types."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import iceexplore as ix
from iceexplore.on_spark import SessionInfo
from tests.helpers.tables.data_table import field, listed, mapped, put, stored, struct, table_of
from tests.spark.conftest import Warehouse
from tests.spark.scans.test_scan import own, plan_of, same

pytestmark = pytest.mark.spark


def table(
    folder: Path,
    fields: Sequence[Mapping[str, Any]],
    files: Mapping[str, pa.Table],
    *,
    partitions: Mapping[str, Any] | None = None,
    **how: Any,
) -> ix.Simulation:
    """A simulated table of these data files."""
    s = table_of(folder, fields, **how).simulate()
    entries = []
    for name, rows in files.items():
        location = put(folder, rows, name)
        entry = {
            "location": location,
            "record_count": rows.num_rows,
            "file_size_in_bytes": Path(location).stat().st_size,
        }
        entries.append({**entry, "partition": partitions[name]} if partitions else entry)
    s.append(entries)
    return s


def rows(schema: Sequence[pa.Field], *columns: Sequence[Any]) -> pa.Table:
    return pa.Table.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=pa.schema(schema)
    )


def native(frame: Any) -> None:
    assert "MapInArrow" not in plan_of(frame)


def test_schema_evolution_at_every_depth(warehouse: Warehouse, tmp_path: Path) -> None:
    fields = [
        field(1, "big", "long"),
        field(2, "new name", "double"),
        field(3, "money", "decimal(18, 2)"),
        field(9, "swap", "string"),
        field(8, "swapped", "string"),
        field(4, "s", struct(field(42, "b", "long"), field(41, "renamed", "string"), field(43, "added", "int"))),
        field(5, "l", listed(51, struct(field(52, "x", "long")))),
        field(6, "m", mapped(61, "string", 62, struct(field(63, "y", "double")))),
        field(7, "day", "timestamp"),
        field(10, "none of it", struct(field(101, "z", "int"))),
        field(11, "only new", struct(field(113, "n", "int"))),
    ]
    inner = pa.struct([stored(41, "a", pa.string()), stored(42, "b", pa.int32()), stored(44, "gone", pa.int32())])
    schema = [
        stored(9, "swapped", pa.string()),
        stored(8, "swap", pa.string()),
        stored(1, "small", pa.int32()),
        stored(2, "big", pa.float32()),
        stored(3, "money", pa.decimal128(9, 2)),
        stored(4, "s", inner),
        stored(5, "l", pa.list_(pa.field("element", pa.struct([stored(52, "w", pa.int32())])))),
        stored(6, "m", pa.map_(pa.string(), pa.struct([stored(63, "q", pa.float32())]))),
        stored(7, "day", pa.date32()),
        stored(12, "dropped", pa.string()),
        stored(11, "only new", pa.struct([stored(112, "was", pa.int32())])),
    ]
    old = rows(
        schema,
        ["9", None], ["8", "8b"], [1, None], [0.1, None], [Decimal("1.25"), None],
        [{"a": "x", "b": 5, "gone": 1}, None], [[{"w": 1}, None], None], [{"k": {"q": 0.5}, "n": None}, None],
        [dt.date(1500, 1, 1), None], ["d", "d"], [{"was": 1}, None],
    )  # fmt: skip
    new = rows([stored(1, "big", pa.int64())], [7])
    s = table(tmp_path, fields, {"old.parquet": old, "new.parquet": new})
    frame = s.scan(warehouse.session)
    native(frame)
    same(frame, own(s))
    same(s.scan(warehouse.session, "s.renamed = 'x' and big = 1"), own(s, "s.renamed = 'x' and big = 1"))
    same(s.scan(warehouse.session, columns=["s.b", "swap"]), own(s, columns=["s.b", "swap"]))


DEFAULTS = {
    "boolean": True, "int": 5, "long": -7, "float": 0.5, "double": 1.25, "decimal(9, 2)": "1.20", "date": "1500-01-02",
    "timestamp": "2024-01-01T00:00:00.000001", "timestamptz": "2024-01-01T00:00:00.000001+00:00", "string": "it's",
    "uuid": "00000000-0000-0000-0000-0000000000ff", "fixed[2]": "00ff", "binary": "00ff10",
    "time": "01:02:03.000004",
}  # fmt: skip


def test_initial_defaults(warehouse: Warehouse, tmp_path: Path) -> None:
    fields = [field(1, "id", "long")]
    kinds = enumerate(DEFAULTS.items(), 2)
    fields += [field(n, f"c{n}", kind, **{"initial-default": value}) for n, (kind, value) in kinds]
    s = table(tmp_path, fields, {"a.parquet": rows([stored(1, "id", pa.int64())], [1, 2])})
    frame = s.scan(warehouse.session)
    native(frame)
    same(frame, own(s))
    same(s.scan(warehouse.session, "c6 = 1.25"), own(s, "c6 = 1.25"))


def test_name_mapping_and_files_without_ids(warehouse: Warehouse, tmp_path: Path) -> None:
    fields = [field(1, "id", "long"), field(2, "name", "string")]
    file = rows([pa.field("key", pa.int64()), pa.field("name", pa.string())], [1, 2], ["a", "b"])
    mapping = '[{"field-id": 1, "names": ["id", "key"]}, {"field-id": 2, "names": ["name"]}]'
    s = table(tmp_path / "m", fields, {"a.parquet": file}, properties={"schema.name-mapping.default": mapping})
    frame = s.scan(warehouse.session)
    native(frame)
    same(frame, own(s))
    plain = table(tmp_path / "p", fields, {"a.parquet": file})
    same(plain.scan(warehouse.session), own(plain))


def test_identity_values_of_files_without_the_column(warehouse: Warehouse, tmp_path: Path) -> None:
    fields = [field(1, "id", "long"), field(2, "kind", "string"), field(3, "day", "date")]
    spec = [
        {"source-id": 2, "field-id": 1000, "name": "kind", "transform": "identity"},
        {"source-id": 3, "field-id": 1001, "name": "day", "transform": "identity"},
    ]
    one = rows([stored(1, "id", pa.int64())], [1, 2])
    files = {f"kind={k}/a b%20c.parquet": one for k in ("x", "y", "z")}
    with_column = rows([stored(1, "id", pa.int64()), stored(2, "kind", pa.string())], [1], ["its own"])
    partitions = {name: {"kind": name[5], "day": dt.date(1500, 1, 1)} for name in files}
    partitions["kind=x/b.parquet"] = {"kind": "x", "day": None}
    s = table(tmp_path, fields, {**files, "kind=x/b.parquet": with_column}, partitions=partitions, spec=spec)
    frame = s.scan(warehouse.session)
    native(frame)
    same(frame, own(s))
    same(s.scan(warehouse.session, "kind = 'y'", ["id", "_partition"]), own(s, "kind = 'y'", ["id", "_partition"]))
    same(s.scan(warehouse.session, partition={"kind": "z"}), own(s, "kind = 'z'"))


def test_what_only_workers_read(warehouse: Warehouse, tmp_path: Path) -> None:
    fields = [field(1, "a", "long"), field(2, "A", "string")]
    schema = [stored(1, "a", pa.int64()), stored(2, "A", pa.string())]
    cased = table(tmp_path / "c", fields, {"a.parquet": rows(schema, [1], ["x"])})
    for frame in (cased.scan(warehouse.session),):
        assert "MapInArrow" in plan_of(frame)
        same(frame, own(cased))
    # In the file alone: the table's own columns are kept apart.
    only = table(tmp_path / "f", fields[:1], {"a.parquet": rows(schema, [1], ["x"])})
    same(only.scan(warehouse.session), own(only))
    hidden = table(
        tmp_path / "h", fields[:1],
        {n: rows(schema[:1], [i]) for i, n in enumerate(("_a.parquet", ".b.parquet", "c*{d}.parquet", "é?.parquet"))},
    )  # fmt: skip
    same(hidden.scan(warehouse.session), own(hidden))
    assert hidden.scan(warehouse.session).count() == 4


def test_types_as_they_are_shown(warehouse: Warehouse, tmp_path: Path) -> None:
    kinds = {
        "time": pa.array([1, None], pa.time64("us")),
        "timestamp_ns": pa.array([1, -1], pa.timestamp("ns")),
        "timestamptz_ns": pa.array([1, -1], pa.timestamp("ns", "UTC")),
        "uuid": pa.array([bytes(range(16)), None], pa.binary(16)),
        "fixed[3]": pa.array([b"abc", None], pa.binary(3)),
        "timestamptz": pa.array([-62135596800000000, 5], pa.timestamp("us", "UTC")),
        "timestamp": pa.array([-62135596800000000, 5], pa.timestamp("us")),
        "binary": pa.array([b"", None]),
    }
    fields = [field(n, f"c{n}", kind) for n, kind in enumerate(kinds, 1)]
    stored_as = [stored(n, f"c{n}", array.type) for n, array in enumerate(kinds.values(), 1)]  # type: ignore[attr-defined]
    file = pa.Table.from_arrays(list(kinds.values()), schema=pa.schema(stored_as))  # type: ignore[arg-type]
    s = table(tmp_path, fields, {"a.parquet": file})
    frame = s.scan(warehouse.session)
    native(frame)
    same(frame, own(s))
    assert [f.dataType.simpleString() for f in frame.schema] == [
        "bigint", "bigint", "bigint", "string", "binary", "timestamp", "timestamp_ntz", "binary",
    ]  # fmt: skip
    same(s.scan(warehouse.session, "c4 = '00010203-0405-0607-0809-0a0b0c0d0e0f'"), own(s).slice(0, 1))


def test_int96_is_read_by_workers(warehouse: Warehouse, tmp_path: Path) -> None:
    t = table_of(tmp_path, [field(1, "at", "timestamptz")])
    moment = rows([stored(1, "at", pa.timestamp("us", "UTC"))], [5, -62135596800000000])
    location = put(tmp_path, moment, use_deprecated_int96_timestamps=True)
    s = t.simulate()
    s.append([{"location": location, "record_count": 2, "file_size_in_bytes": Path(location).stat().st_size}])
    same(s.scan(warehouse.session), own(s))


def test_equality_deletes_of_every_kind(warehouse: Warehouse, tmp_path: Path) -> None:
    nan = float("nan")
    columns: dict[str, tuple[str, list[Any]]] = {
        "d": ("double", [0.0, -0.0, nan, None, 1.0]),
        "n": ("string", ["a", None, "b", "c", "a"]),
    }
    fields = [field(i, name, kind) for i, (name, (kind, _)) in enumerate(columns.items(), 1)]
    schema = [stored(1, "d", pa.float64()), stored(2, "n", pa.string())]
    file = rows(schema, *[values for _, values in columns.values()])
    for turn, key in enumerate(({"d": [-0.0]}, {"d": [0.0]}, {"d": [nan]}, {"d": [None]}, {"n": [None, "a"]})):
        s = table(tmp_path / str(turn), fields, {"a.parquet": file, "b.parquet": file})
        s.row_delta(equality=key)
        s.append([{**_entry(tmp_path / str(turn), file, "c.parquet")}])
        s.row_delta(equality={"d": [1.0], "n": ["a"]})
        frame = s.scan(warehouse.session)
        native(frame)
        same(frame, own(s))


LEAST, MOST = -(2**63), 2**63 - 1


@pytest.mark.parametrize(
    ("kind", "held", "first", "second"),
    [
        ("long", [None, LEAST, LEAST + 1, LEAST + 64, -1, 0, 63, 64, MOST], [LEAST + 1, LEAST + 64], [LEAST]),
        ("long", [None, LEAST, MOST, MOST - 1, MOST - 64, -65, 0], [MOST], [MOST - 64]),
        ("long", [None, -130, -129, -128, -65, -64, -63, -1, 0, 1, MOST], [-129, -64, 0], [-128, 1]),
        ("int", [None, *range(-200, 200)], list(range(-150, 150, 7)), list(range(-151, 151, 11))),
        ("int", [None, -(2**31), 2**31 - 1, 5], [2**31 - 1], [2**31 - 1, 2**31 - 64]),
        (
            "date",
            [None, *map(dt.date.fromordinal, range(719_100, 719_300))],
            [dt.date(1970, 1, 1)],
            [dt.date(1969, 12, 30)],
        ),
    ],
)
def test_equality_deletes_of_numbers_close_together_are_bits(
    warehouse: Warehouse, tmp_path: Path, kind: str, held: list[Any], first: list[Any], second: list[Any]
) -> None:
    types = {"long": pa.int64(), "int": pa.int32(), "date": pa.date32()}
    file = rows([stored(1, "k", types[kind]), stored(2, "n", pa.int64())], held, list(range(len(held))))  # type: ignore[arg-type]
    s = table(tmp_path, [field(1, "k", kind), field(2, "n", "long")], {"a.parquet": file})
    s.row_delta(equality={"k": first})
    for name in ("b.parquet", "c.parquet"):  # the files have different sets of deletes
        s.append([_entry(tmp_path, file, name)])
    s.row_delta(equality={"k": second})
    s.append([_entry(tmp_path, file, "d.parquet")])
    frame = s.scan(warehouse.session, columns=["n", "_file"])
    native(frame)
    assert "LeftAnti" not in plan_of(frame)
    same(frame, own(s, columns=["n", "_file"]))
    # The first delete is of file a alone, the second of all but d: what is left by counting.
    a, all_but_d = (len(set(held) - set(gone)) for gone in ([*first, *second], second))
    assert own(s).num_rows == a + 2 * all_but_d + len(held)


@pytest.mark.parametrize("key", [{"k": [LEAST, MOST]}, {"k": [None, 0]}, {"k": [0], "n": [4]}])
def test_equality_deletes_that_bits_cannot_hold_are_joined(
    warehouse: Warehouse, tmp_path: Path, key: dict[str, list[Any]]
) -> None:
    file = rows([stored(1, "k", pa.int64()), stored(2, "n", pa.int64())], [None, LEAST, -1, MOST, 0], list(range(5)))
    s = table(tmp_path, [field(1, "k", "long"), field(2, "n", "long")], {"a.parquet": file, "b.parquet": file})
    s.row_delta(equality=key)
    s.row_delta(equality={"k": [-1]})
    frame = s.scan(warehouse.session)
    native(frame)
    same(frame, own(s))


def _entry(folder: Path, file: pa.Table, name: str) -> dict[str, Any]:
    location = put(folder, file, name)
    return {
        "location": location,
        "record_count": file.num_rows,
        "file_size_in_bytes": Path(location).stat().st_size,
    }


def test_as_spark_3_5_would(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its DataFrames have no scalar subqueries, and take no Arrow tables."""
    info = dataclasses.replace(SessionInfo.of(warehouse.session), version=(3, 5))
    monkeypatch.setattr(SessionInfo, "of", classmethod(lambda cls, session: info))
    for name in ("v3_dv", "equality_deletes", "v2_pos_file"):
        t = ix.open(warehouse.path(name))
        frame = t.scan(warehouse.session, columns=["*", "_file", "_row_id"])
        native(frame)
        same(frame, own(t, columns=["*", "_file", "_row_id"]))
