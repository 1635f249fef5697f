"""Changes by rows against Spark: its own changelog of tables without deletes, else the difference of two reads."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import iceexplore as ix
from iceexplore.storage import canonical
from tests.helpers.sampling import one_of
from tests.spark.conftest import Warehouse
from tests.spark.session import MERGE_ON_READ, Spark

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]  # py4j leaves sockets open

COPY_ON_WRITE: dict[str, Any] = dict.fromkeys(MERGE_ON_READ, "copy-on-write")


def rows(table: pa.Table) -> Counter[tuple[str, ...]]:
    return Counter(tuple(map(repr, row)) for row in zip(*(c.to_pylist() for c in table.columns), strict=True))


def write(spark: Spark, name: str, version: int, **modes: Any) -> None:
    """Inserts, deletes, updates, a merge, an overwrite, a compaction, a row that comes back, equal rows."""
    spark.create(name, "id bigint, x string, d double", partition="x", version=version, **modes)
    table = f"cat.db.{name}"
    spark.insert(name, "(1, 'a', 1.0), (2, 'a', double('NaN')), (3, 'b', null), (4, 'b', -0.0)")
    spark.insert(name, "(5, 'a', 5.0), (6, null, 6.0), (7, 'b', 7.0)")
    spark.sql(f"DELETE FROM {table} WHERE id = 1")
    spark.sql(f"UPDATE {table} SET d = 20.0 WHERE id = 2")
    spark.sql(
        f"MERGE INTO {table} t USING (SELECT 3L AS id, 'c' AS x, 30.0D AS d UNION ALL SELECT 8L, 'c', 8.0D) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    spark.call(f"rewrite_data_files(table => 'db.{name}', options => map('rewrite-all', 'true'))")
    spark.insert(name, "(1, 'a', 1.0)")
    spark.sql(f"UPDATE {table} SET d = 21.0 WHERE id = 2")
    spark.sql(f"DELETE FROM {table} WHERE id IN (1, 5)")
    spark.sql(f"INSERT OVERWRITE {table} SELECT 9L, 'z', 9.0D")


def pairs(t: ix.Table) -> list[tuple[int | None, int]]:
    """Ranges of snapshots: from (exclusive), to."""
    ids = [s.snapshot_id for s in t.snapshots]
    return [(None, ids[-1]), (ids[0], ids[-1]), (ids[1], ids[5]), (ids[3], ids[6])]


def changelog(spark: Spark, name: str, start: int | None, end: int, **arguments: str) -> pa.Table:
    options = {"end-snapshot-id": str(end)} | ({} if start is None else {"start-snapshot-id": str(start)})
    given = ", ".join(f"'{k}', '{v}'" for k, v in options.items())
    more = "".join(f", {key} => {value}" for key, value in arguments.items())
    spark.call(f"create_changelog_view(table => 'db.{name}', changelog_view => 'seen', options => map({given}){more})")
    return spark.sql("SELECT * FROM seen").toArrow()  # type: ignore[no-any-return]


@pytest.mark.parametrize("version", one_of(3, [3, 1, 2]))
def test_copy_on_write_as_spark_has_it(warehouse: Warehouse, version: int) -> None:
    spark, name = Spark(warehouse.session), f"changes_cow_v{version}"
    write(spark, name, version, **COPY_ON_WRITE)
    t = ix.open(warehouse.path(name))
    for start, end in pairs(t):
        plain = changelog(spark, name, start, end)
        assert rows(t.changes(start, end, rows=True)) == rows(plain)
        updates = changelog(spark, name, start, end, identifier_columns="array('id')")
        assert rows(t.changes(start, end, rows=True, identifier_columns=["id"])) == rows(updates)
        assert "UPDATE_AFTER" in updates["_change_type"].to_pylist()
        off = changelog(spark, name, start, end, identifier_columns="array('id')", compute_updates="false")
        found = t.changes(start, end, rows=True, identifier_columns=["id"], compute_updates=False)
        assert rows(found) == rows(off)
        net = changelog(spark, name, start, end, net_changes="true")
        assert rows(t.changes(start, end, rows=True, net_changes=True)) == rows(net)


def test_carried_over_rows_of_one_identifier_are_no_hindrance(warehouse: Warehouse) -> None:
    """Java refuses, where they are not equal (docs/scan-plans.md, Limits)."""
    spark, name = Spark(warehouse.session), "changes_one_identifier"
    spark.create(name, "id bigint, x string", version=3, **COPY_ON_WRITE)
    spark.sql(f"INSERT INTO cat.db.{name} SELECT /*+ coalesce(1) */ * FROM VALUES (1, 'a'), (1, 'b'), (2, 'c')")
    spark.sql(f"UPDATE cat.db.{name} SET x = 'z' WHERE x = 'a'")
    t = ix.open(warehouse.path(name))
    start, end = (s.snapshot_id for s in t.snapshots)
    with pytest.raises(Exception, match="getResult"):  # the view is made, and cannot be read
        changelog(spark, name, start, end, identifier_columns="array('id')")
    for how in ({}, {"spark": warehouse.session}):
        found = t.changes(start, end, rows=True, identifier_columns=["id"], **how)
        table = found if isinstance(found, pa.Table) else found.toArrow()
        changes = [(r["id"], r["x"], r["_change_type"]) for r in table.to_pylist()]
        assert sorted(changes) == [(1, "a", "UPDATE_BEFORE"), (1, "z", "UPDATE_AFTER")]


@pytest.mark.parametrize("version", one_of(2, [3, 2]))
def test_merge_on_read_as_two_reads_differ(warehouse: Warehouse, version: int) -> None:
    """Java refuses these tables: each snapshot's changes are what two reads of Spark's differ by."""
    spark, name = Spark(warehouse.session), f"changes_mor_v{version}"
    write(spark, name, version, **MERGE_ON_READ)
    t = ix.open(warehouse.path(name))
    before: Counter[tuple[str, ...]] = Counter()
    deleted = 0
    for snapshot in t.snapshots:
        after = rows(spark.sql(f"SELECT * FROM cat.db.{name} VERSION AS OF {snapshot.snapshot_id}").toArrow())
        expected = {(*row, repr("INSERT")): n for row, n in (after - before).items()}
        expected |= {(*row, repr("DELETE")): n for row, n in (before - after).items()}
        found = t.changes(snapshot.snapshot_id, rows=True)
        assert rows(found.select(["id", "x", "d", "_change_type"])) == expected, snapshot.operation
        if any(e["content"] != 0 for e in t.at(snapshot=snapshot.snapshot_id).inspect.files().to_dict("records")):
            deleted += 1
        before = after
    assert deleted, "the table has no deletes: the test would show nothing"


@pytest.mark.parametrize("version", one_of(2, [3, 2]))
def test_rows_live_where_spark_finds_them(warehouse: Warehouse, version: int) -> None:
    """``_file`` and ``_pos`` of live rows, and of version 3 the row ids, as Spark has them."""
    spark, name = Spark(warehouse.session), f"places_mor_v{version}"
    write(spark, name, version, **MERGE_ON_READ)
    t = ix.open(warehouse.path(name))
    more = ", _row_id, _last_updated_sequence_number" if version > 2 else ""
    for snapshot in t.snapshots:
        theirs = spark.sql(
            f"SELECT id, _file, _pos{more} FROM cat.db.{name} VERSION AS OF {snapshot.snapshot_id}"
        ).toArrow()
        expected = Counter(
            (row[0], canonical(row[1]), *row[2:]) for row in zip(*(c.to_pylist() for c in theirs.columns), strict=True)
        )
        at = t.at(snapshot=snapshot.snapshot_id)
        for history in (False, True):
            ours = Counter(
                (p.values["id"], canonical(p.file), p.position, *((p.row_id, p.last_updated) if more else ()))
                for p in at.rows(None, columns=["id"], history=history).live
            )
            assert ours == expected


@pytest.mark.parametrize("column", one_of(3, ["a`b", "a.b", "id.x"]))
def test_columns_have_any_names(warehouse: Warehouse, column: str) -> None:
    spark, name = Spark(warehouse.session), f"changes_named_{column.encode().hex()}"
    quoted = "`" + column.replace("`", "``") + "`"
    spark.create(name, f"id bigint, {quoted} bigint", **COPY_ON_WRITE)
    spark.sql(f"INSERT INTO cat.db.{name} SELECT /*+ coalesce(1) */ id, id + 5 FROM range(3)")
    spark.sql(f"DELETE FROM cat.db.{name} WHERE id = 1")
    t = ix.open(warehouse.path(name))
    for how in ({}, {"net_changes": True}, {"identifier_columns": [column]}, {"columns": [column]}):
        here = t.changes(None, "main", rows=True, **how)
        there = t.changes(None, "main", rows=True, spark=warehouse.session, **how).toArrow()
        assert rows(there) == rows(here) and there.column_names == here.column_names
    assert t.changes(None, "main", rows=True, spark=warehouse.session).count() == 4
