"""Spark with Iceberg's runtime reads what labs write, row for row, and commits to them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import iceexplore as ix
from tests.helpers.sampling import one_of
from tests.spark.conftest import Warehouse

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]  # py4j leaves sockets open

SCHEMA = {
    "id": "long", "i": "int", "s": "string", "x": "double", "f": "float", "b": "boolean", "d": "date",
    "ts": "timestamp", "tz": "timestamptz", "n": "decimal(9, 2)", "w": "binary", "u": "uuid", "k": "fixed[3]",
    "tags": "list<string>", "at": "struct<lat: double, name: string>", "m": "map<string, int>",
}  # fmt: skip
#: Every transform, of every kind of column that it takes; but for the identity of a fixed: Iceberg's runtime (1.11,
#: ``InternalReader``) looks for a length before the bytes of an Avro ``fixed``, and cannot read such manifests, its own
#: among them.
PARTITIONS = (
    "bucket(2, id)", "bucket(2, s)", "bucket(2, u)", "bucket(2, n)", "bucket(2, d)", "bucket(2, ts)", "bucket(2, w)",
    "truncate(3, s)", "truncate(10, id)", "truncate(50, n)", "truncate(1, w)", "year(d)", "month(ts)", "day(tz)",
    "hour(ts)", "b", "i",
)  # fmt: skip


def some(first: int, count: int) -> pa.Table:
    """Rows of every type, with nulls, NaN and -0."""
    ids = range(first, first + count)
    start = dt.datetime(1969, 12, 31, 20)
    nan = float("nan")
    columns: dict[str, list[Any]] = {
        "id": list(ids),
        "i": [None if i % 5 == 0 else -i for i in ids],
        "s": [None if i % 6 == 0 else f"naïve-{i % 3}-{i}" for i in ids],
        "x": [[-0.0, 0.0, nan, float("-inf"), None, i / 3][i % 6] for i in ids],
        "f": [[nan, -0.5, None][i % 3] for i in ids],
        "b": [[True, False, None][i % 3] for i in ids],
        "d": [None if i % 7 == 0 else dt.date(1969, 12, 28) + dt.timedelta(i) for i in ids],
        "ts": [None if i % 8 == 0 else start + dt.timedelta(minutes=97 * i, microseconds=i) for i in ids],
        "tz": [(start + dt.timedelta(hours=5 * i)).replace(tzinfo=dt.UTC) for i in ids],
        "n": [None if i % 9 == 0 else Decimal(-100 * i + 7).scaleb(-2) for i in ids],
        "w": [None if i % 4 == 0 else bytes([i % 256, 255]) for i in ids],
        "u": [None if i % 5 == 1 else bytes([i % 256] * 16) for i in ids],
        "k": [f"{i:03}"[:3].encode() for i in ids],
        "tags": [None if i % 4 == 0 else [f"t{j}" for j in range(i % 3)] for i in ids],
        "at": [None if i % 5 == 0 else {"lat": i / 2, "name": None} for i in ids],
        "m": [None if i % 3 == 0 else [("a", i)] for i in ids],
    }
    kinds = {
        "i": pa.int32(), "f": pa.float32(), "n": pa.decimal128(9, 2), "u": pa.binary(16), "k": pa.binary(3),
        "ts": pa.timestamp("us"), "tz": pa.timestamp("us", "UTC"), "m": pa.map_(pa.string(), pa.int32()),
    }  # fmt: skip
    return pa.table({name: pa.array(values, kinds.get(name)) for name, values in columns.items()})


def plain(value: Any) -> Any:
    """One form of what the two libraries give."""
    if isinstance(value, float):
        return str(value)
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(tuple(v) if isinstance(v, tuple) else v) for v in value]
    return value


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """Rows by id, with UUIDs as Spark has them."""
    out = []
    for row in table.to_pylist():
        if isinstance(row["u"], bytes):
            h = row["u"].hex()
            row["u"] = "-".join((h[:8], h[8:12], h[12:16], h[16:20], h[20:]))
        if row["ts"] is not None:
            row["ts"] = row["ts"].replace(tzinfo=None)
        out.append({k: plain(v) for k, v in row.items()})
    return sorted(out, key=lambda row: row["id"])


_VERSIONS_AND_MODES = [
    (1, "copy-on-write"), (1, "merge-on-read"), (2, "merge-on-read"), (2, "copy-on-write"), (3, "merge-on-read"),
    (3, "copy-on-write"),
]  # fmt: skip


@pytest.mark.parametrize(("version", "mode"), one_of(3, _VERSIONS_AND_MODES))
def test_spark_reads_what_labs_write(warehouse: Warehouse, tmp_path: Path, version: int, mode: str) -> None:
    properties = {f"write.{o}.mode": mode for o in ("delete", "update", "merge")}
    lab = ix.create(
        tmp_path / "t",
        SCHEMA,
        partition_by=PARTITIONS[version % 3 :: 3],
        sort_by=["x desc nulls last", "truncate(2, s)"],
        format_version=version,
        properties=properties,
    )
    expected = []
    for step in (
        lambda: lab.append(some(0, 40)),
        lambda: lab.delete("id between 5 and 12 or s like 'naïve-1%'"),
        lambda: lab.update({"x": lambda rows: pc.add(rows["x"], 1.0), "b": None}, "id > 30"),
        lambda: lab.merge(some(35, 20), on=["id"]),
        lambda: lab.compact(paths=lab.inspect.data_files()["file_path"].tolist()),
        lambda: lab.overwrite(some(200, 3), "b"),
    ):
        step()
        expected.append((lab.metadata_location, rows_of(lab.to_arrow())))
    for location, rows in expected:
        theirs = warehouse.session.read.format("iceberg").load(location).toArrow()
        assert rows_of(theirs) == rows
    # Files are where Spark's own writer would put their rows: filters on sources of partitions find them.
    rows = expected[-1][1]
    table = warehouse.session.read.format("iceberg").load(str(tmp_path / "t"))
    for row in rows[:: max(1, len(rows) // 5)]:
        for name in ("id", "s", "d", "u", "n"):
            if row[name] is not None:
                found = table.filter(table[name] == row[name]).select("id").toArrow()["id"].to_pylist()
                assert row["id"] in found, name


@pytest.mark.parametrize("version", one_of(2, [3, 2]))
def test_spark_commits_to_a_lab_and_the_lab_goes_on(warehouse: Warehouse, tmp_path: Path, version: int) -> None:
    schema = {"id": "long", "kind": "string"}
    lab = ix.create(tmp_path / "t", schema, partition_by="kind", format_version=version)
    lab.append({"id": [1, 2], "kind": ["a", "b"]})
    session = warehouse.session
    new = session.createDataFrame([(3, "a"), (4, "c")], "id long, kind string")
    new.write.format("iceberg").mode("append").save(str(tmp_path / "t"))
    lab.delete("id = 1")
    lab.update({"kind": "z"}, "id = 4")
    found = session.read.format("iceberg").load(str(tmp_path / "t")).toArrow().to_pylist()
    assert (
        {r["id"]: r["kind"] for r in found}
        == {2: "b", 3: "a", 4: "z"}
        == {r["id"]: r["kind"] for r in lab.to_arrow().to_pylist()}
    )
    assert len(lab.snapshots) == 4 and not len(lab.orphan_files())


def test_rows_compacted_before_the_upgrade_keep_their_last_change(warehouse: Warehouse, tmp_path: Path) -> None:
    """Spec, "Row Lineage": null is the data sequence number; Java takes the file's (docs/scan-plans.md, Limits)."""
    lab = ix.create(tmp_path / "t", {"id": "long"}, format_version=2)
    for number in range(2):
        lab.append({"id": [number]})
    lab.compact()
    lab.upgrade(3)
    lab.append({"id": [2]})
    names = ["id", "_row_id", "_last_updated_sequence_number"]
    theirs = warehouse.session.read.format("iceberg").load(lab.metadata_location).select(*names).toArrow()
    ours = lab.to_arrow(columns=names)
    assert sorted(ours.to_pydict()["_row_id"]) == sorted(theirs.to_pydict()["_row_id"]) == [0, 1, 2]
    assert dict(zip(ours["id"].to_pylist(), ours[names[2]].to_pylist(), strict=True)) == {0: 2, 1: 2, 2: 4}
    assert dict(zip(theirs["id"].to_pylist(), theirs[names[2]].to_pylist(), strict=True)) == {0: 3, 1: 3, 2: 4}
