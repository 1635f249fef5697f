"""Pruning at the edges: integers that wrap around, long lists, dropped columns, partitions by nested fields."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.manifests import ContentType
from iceexplore.planning import make_filter, may_hold
from iceexplore.planning.evaluators._partition_values import partition_keys
from tests.helpers.sampling import one_of
from tests.helpers.tables.oracle_tables import locations

LAYOUTS: list[dict[str, Any]] = [
    {"format_version": 2}, {"format_version": 3}, {"format_version": 4, "flush_data_files": 0, "flush_delete_files": 0},
    {"format_version": 4, "dialect": "v4-java"},
]  # fmt: skip
IDS = ["v2", "v3", "v4", "v4-java"]


def planned(table: Any, where: str) -> set[str]:
    return set(table.plan(where).files.files.entries["location"].to_pylist())


def rows(**columns: pa.Array) -> pa.Table:
    return pa.table(columns)


@pytest.mark.parametrize("layout", LAYOUTS, ids=IDS)
@pytest.mark.parametrize(("kind", "bits"), [("int", 32), ("long", 64)])
@pytest.mark.parametrize("width", one_of(3, [7, 10, 16], 1))
def test_the_lowest_integers_that_truncate_wraps_around(
    layout: dict[str, Any], kind: str, bits: int, width: int
) -> None:
    """Java: ``TruncateUtil`` has no room below the lowest number, so that its tuple is one of the highest."""
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    table = ix.empty({"i": kind}, partition_by=f"truncate({width}, i)", **layout)
    table.append(rows(i=pa.array([low, low + width, -1, 0, high], f"int{bits}")))
    table.append(rows(i=pa.array([low], f"int{bits}")))
    for where, count in (
        ("i < 0", 4), (f"i <= {low + 1}", 2), (f"i = {low}", 2), (f"i in ({low}, 0)", 3), (f"i > {high - 1}", 1),
        ("i >= 0", 2), (f"i <> {low}", 4), (f"i not in ({low}, 0)", 3), (f"i < {low + 2 * width}", 3),
    ):  # fmt: skip
        assert table.count(where) == len(table.to_arrow(where)) == count, where
    if kind == "int":
        table.evolve_schema(update={"i": "long"})
        assert table.count("i < 0") == len(table.to_arrow("i < 0")) == 4
    assert len(planned(table, "i = 5")) < len(planned(table, "true"))
    table.close()


def test_the_lowest_integers_of_a_promoted_column_whose_old_schema_is_removed(tmp_path: Path) -> None:
    """The files still have the partition values that overflowed as ints, and the metadata knows only the long."""
    low = -(1 << 31)
    table = ix.empty({"i": "int"}, partition_by="truncate(10, i)", format_version=2)
    table.append(rows(i=pa.array([low, 5], pa.int32())))
    table.evolve_schema(update={"i": "long"})
    path = table.save(tmp_path / "t").path
    table.close()
    (current,) = (path / "metadata").glob("v3.metadata.json")
    document = json.loads(current.read_bytes())
    assert [s["schema-id"] for s in document["schemas"]] == [0, 1]
    del document["schemas"][0]
    document["snapshots"][0]["schema-id"] = 1
    current.write_text(json.dumps(document))
    opened = ix.open(path)
    assert opened.count("i < 0") == len(opened.to_arrow("i < 0")) == 1
    assert len(planned(opened, "i < 0")) == len(planned(opened, "i = 5")) == 1


@pytest.mark.parametrize("kind", ["string", "binary", "decimal(9,2)", "long"])
def test_lists_of_many_values_are_judged_by_bounds(kind: str) -> None:
    from decimal import Decimal

    def value(n: int) -> Any:
        return {"string": f"{n:05}", "binary": b"%05d" % n, "decimal(9,2)": Decimal(n), "long": n}[kind]

    def listed(numbers: range) -> str:
        literal = {"string": "'{:05}'", "binary": "x'{}'", "decimal(9,2)": "{}", "long": "{}"}[kind]
        given = (value(n).hex() if kind == "binary" else n for n in numbers)
        return ", ".join(literal.format(x) for x in given)

    types = {"string": pa.string(), "binary": pa.binary(), "decimal(9,2)": pa.decimal128(9, 2), "long": pa.int64()}
    table = ix.empty({"x": kind}, format_version=2)
    for first in (0, 1000, 2000):
        table.append(rows(x=pa.array([value(first + i) for i in range(10)], types[kind])))
    names = [name for name, _ in locations(table)]
    assert len(names) == 3
    for numbers, files in ((range(500, 800), 0), (range(900, 1300), 1), (range(2005, 2505), 1), (range(2010, 2500), 0)):
        where = f"x in ({listed(numbers)})"
        assert len(planned(table, where)) == files, (kind, numbers)
        hits = sum(first + i in numbers for first in (0, 1000, 2000) for i in range(10))
        assert table.count(where) == hits
        assert table.count(f"x not in ({listed(numbers)})") == 30 - hits
    table.close()


@pytest.mark.parametrize("layout", LAYOUTS, ids=IDS)
def test_a_dropped_column_that_partitions_old_files(layout: dict[str, Any]) -> None:
    table = ix.empty({"id": "long", "kind": "string"}, partition_by="kind", **layout)
    first = table.append(rows(id=pa.array([1, 2, 3]), kind=pa.array(["a", "b", None])))
    table.evolve_spec(remove=["kind"])
    table.row_delta(equality={"id": [2]})
    table.evolve_schema(drop=["kind"])
    table.append(rows(id=pa.array([3, 4])))
    table.evolve_schema(add={"kind": "string"})  # another column of this name
    table.append(rows(id=pa.array([5]), kind=pa.array(["a"])))
    assert sorted(build.to_pylist(table.to_arrow("id > 0")["id"])) == [1, 3, 3, 4, 5]
    assert table.to_arrow("kind = 'a'")["id"].to_pylist() == [5]
    assert sorted(build.to_pylist(table.to_arrow("kind is null")["id"])) == [1, 3, 3, 4]
    assert len(planned(table, "id = 5")) == 1
    then = table.at(snapshot=first.snapshot_id)
    assert then.to_arrow("kind = 'a'")["id"].to_pylist() == [1]
    assert len(planned(then, "kind = 'a'")) == len(planned(then, "kind is null")) == 1
    table.close()


@pytest.mark.parametrize("layout", LAYOUTS, ids=IDS)
def test_deletes_of_partitions_by_a_nested_field(layout: dict[str, Any]) -> None:
    """A manifest of deletes is passed over by its partitions, and never by its other statistics."""
    kind = pa.struct({"x": pa.int32(), "y": pa.string()})  # type: ignore[arg-type]
    table = ix.empty({"id": "long", "at": "struct<x: int, y: string>"}, partition_by="at.x", **layout)
    points: list[Any] = [{"x": 1, "y": "a"}, {"x": 2, "y": "b"}, {"x": None, "y": "c"}, None]
    table.append(rows(id=pa.array(range(8)), at=pa.array(points * 2, kind)))
    # Deleted by the id alone: what a delete file says of `at.y` would be of rows that it need not have.
    table.row_delta(equality={"id": [0]}, equality_partition={"at.x": 1})
    table.row_delta(equality={"id": [5]}, equality_partition={"at.x": 2})
    table.row_delta(equality={"id": [2, 3]}, equality_partition={"at.x": None})
    for where, left in (
        ("at.x = 1", [4]), ("at.x = 2", [1]), ("at.x is null", [6, 7]), ("at.x is not null", [1, 4]),
        ("at.y = 'a'", [4]), ("at.y = 'c' or at.x > 1", [1, 6]), ("at is null", [7]), ("at.y is null", [7]),
    ):  # fmt: skip
        assert sorted(build.to_pylist(table.to_arrow(where)["id"])) == left, where
        assert table.count(where) == len(left), where
    state = table._state
    root = state.root()
    assert root is not None
    of_deletes = np.flatnonzero(np.asarray(root.entries["content_type"]) == int(ContentType.DELETE_MANIFEST))
    if len(of_deletes) > 1:
        wanted = make_filter(state.metadata, state.schema, "at.x = 1 and at.y = 'nobody'")
        # A V4 root does not say of a nested column that every row is null.
        assert 1 <= sum(build.to_pylist(may_hold(state, root, of_deletes, wanted, files="deletes"))) < len(of_deletes)
    table.close()


def test_partitions_by_dates_that_python_cannot_represent_have_keys() -> None:
    days = pa.array([10**7, -(10**7), 3], pa.int32()).cast(pa.date32())
    partition = pa.StructArray.from_arrays([days], ["1000"])
    table = ix.empty({"d": "date"}, partition_by="d", format_version=2)
    specs = pa.array([0, 0, 0], pa.int32())
    keys = partition_keys(specs, partition, table.metadata)
    assert keys == {(0, "[10000000]"), (0, "[-10000000]"), (0, '["1970-01-04"]')}
    assert partition_keys(specs[:0], partition[:0], table.metadata) == frozenset()
    table.close()
