"""Views run with DataFusion and by Spark over our scans, compared with Spark's answers to the same SQL."""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import iceexplore as ix
from tests.helpers.sampling import one_of
from tests.spark.conftest import Warehouse
from tests.spark.session import arrow
from tests.views.view_documents import schema, version, view, write_view

#: A query, and the columns of the view. Spark runs the text itself, on Iceberg's runtime.
QUERIES = [
    (
        "SELECT * FROM cat.db.view_rides",
        "id long, city string, fare double, paid decimal(9,2), ts timestamptz, day date, tags list<string>",
    ),
    (
        "SELECT CITY AS c, count(*) n, sum(paid) s, avg(fare) FROM cat.db.view_rides r GROUP BY 1 HAVING count(*) > 1",
        "c string, n long, s decimal(19,2), a double",
    ),
    (
        "SELECT id, ROW_NUMBER() OVER (PARTITION BY city ORDER BY fare DESC, id) FROM cat.db.view_rides",
        "id long, n int",
    ),
    (
        "SELECT id, id / 3, id DIV 3, id % 3, fare / nullif(id - 2, 0) FROM cat.db.view_rides WHERE id > 0",
        "id long, a double, b long, c long, d double",
    ),
    (
        "SELECT id, date_format(ts, 'yyyy-MM-dd HH:mm'), year(ts), hour(ts), datediff(day, DATE "
        "'2024-01-01'), day + INTERVAL 3 DAY FROM cat.db.view_rides",
        "id long, f string, y int, h int, d int, e date",
    ),
    (
        "SELECT id, concat(city, '-', id), substring(city, 2), lower(city), nvl(city, '?'), city <=> "
        "NULL FROM cat.db.view_rides",
        "id long, a string, b string, c string, d string, e boolean",
    ),
    (
        "SELECT id, tags[0], city IN ('Oslo', 'Rome'), CASE WHEN fare > 5 THEN 'x' END FROM cat.db.view_rides",
        "id long, t string, b boolean, x string",
    ),
    (
        "WITH o AS (SELECT * FROM cat.db.view_rides WHERE City = 'Oslo') SELECT a.id, b.id FROM o a "
        "LEFT JOIN o b ON a.id = b.id + 2",
        "a long, b long",
    ),
    (
        "SELECT id FROM cat.db.view_rides WHERE day >= '2024-01-02' AND ts < TIMESTAMP '2024-01-04 "
        "05:00:00' ORDER BY fare, id LIMIT 4",
        "id long",
    ),
    (
        "SELECT id FROM cat.db.view_rides WHERE fare > (SELECT avg(fare) FROM cat.db.view_rides) EXCEPT SELECT 5L",
        "id long",
    ),
    (
        "SELECT city, day, count(distinct id), max(fare), grouping(day) FROM cat.db.view_rides GROUP "
        "BY CUBE (city, day)",
        "c string, d date, n long, m double, g int",
    ),
    (
        "SELECT date_trunc('MONTH', ts), count_if(fare > 3), min(day), stddev(fare) FROM cat.db.view_rides GROUP BY 1",
        "m timestamptz, n long, d date, s double",
    ),
]


@pytest.fixture(scope="module")
def rides(warehouse: Warehouse) -> Iterator[Warehouse]:
    """A table of two appends and position deletes."""
    session = warehouse.session
    session.sql(
        "CREATE TABLE cat.db.view_rides (id bigint, city string, fare double, paid decimal(9,2), ts timestamp, "
        "day date, "
        "tags array<string>) USING iceberg PARTITIONED BY (city) "
        "TBLPROPERTIES ('format-version'='2', 'write.delete.mode'='merge-on-read')"
    )
    for start in (0, 10):
        rows = ", ".join(
            f"({i}, {('NULL', repr('Oslo'), repr('Bergen'))[i % 3]}, {('NULL' if i == 7 else i * 1.25)}, {i}.5, "
            f"TIMESTAMP '2024-01-0{1 + i % 5} 0{i % 10}:30:00', DATE '2024-01-0{1 + i % 5}', array('t{i}'))"
            for i in range(start, start + 10)
        )
        session.sql(f"INSERT INTO cat.db.view_rides VALUES {rows}")
    session.sql("DELETE FROM cat.db.view_rides WHERE id IN (4, 14)")
    yield warehouse
    session.sql("DROP TABLE cat.db.view_rides")


def made(rides: Warehouse, sql: str, columns: str) -> ix.View:
    """A view in the warehouse's folder."""
    fields = [
        {"id": i, "name": name, "required": False, "type": kind if kind != "list<string>" else
         {"type": "list", "element-id": 100 + i, "element": "string", "element-required": False}}
        for i, (name, _, kind) in enumerate((one.partition(" ") for one in columns.split(", ")), 1)
    ]  # fmt: skip
    document = view([version(1, sql, **{"default-catalog": "cat"})], schemas=[schema(1, *fields)])
    return ix.open_view(write_view(rides.folder / "db" / "a_view", document))


def rows(table: Any) -> list[Any]:
    """Rows in an order of their own; floating-point numbers as far as sums in any order agree."""

    def plain(value: Any) -> Any:
        value = round(value, 9) if isinstance(value, float) else value
        return value.astimezone(dt.UTC) if isinstance(value, dt.datetime) else value

    return sorted(([plain(value) for value in row.values()] for row in table.to_pylist()), key=repr)


@pytest.mark.parametrize(("sql", "columns"), one_of(2, QUERIES), ids=range(len(QUERIES)))
def test_rows_are_sparks(rides: Warehouse, sql: str, columns: str) -> None:
    v = made(rides, sql, columns)
    frame = rides.session.sql(sql)
    expected = rows(arrow(frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))))
    assert expected
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "v|a_view: CAST to text")
        local = v.to_arrow()
    assert rows(local) == expected
    if QUERIES.index((sql, columns)) % 2:  # half of them: a query on Spark takes long
        return
    scanned = v.scan(rides.session)
    assert scanned.columns == local.column_names
    assert rows(arrow(scanned)) == expected


def test_spark_reads_any_state_and_leaves_nothing(rides: Warehouse) -> None:
    table = ix.open(rides.folder / "db" / "view_rides")
    first = table.snapshots[0].snapshot_id
    before = temporary_views(rides)
    v = made(
        rides, "SELECT city, '{x} {{' AS text, count(*) FROM view_rides GROUP BY city", "c string, t string, n long"
    )
    then = v.scan(rides.session, tables_at={"db.view_rides": first})
    sql = f"SELECT city, '{{x}} {{{{' t, count(*) n FROM cat.db.view_rides VERSION AS OF {first} GROUP BY city"
    assert rows(arrow(then)) == rows(arrow(rides.session.sql(sql)))
    assert rows(v.to_arrow(tables_at={"db.view_rides": first})) == rows(arrow(then))
    simulated = table.simulate()
    simulated.delete_where("city = 'Oslo'")
    left = v.scan(rides.session, tables={"db.view_rides": simulated})
    assert {row["c"] for row in left.collect()} == {None, "Bergen"}
    simulated.close()
    assert temporary_views(rides) == before


def temporary_views(warehouse: Warehouse) -> set[str]:
    """Return the names of the session's temporary views; other tests of the same session leave some, too."""
    # The catalog's API lists the whole namespace, and fails on a table of another test that it cannot describe.
    listed = warehouse.session.sql("SHOW VIEWS").where("isTemporary").collect()
    return {row.viewName for row in listed}


def test_what_spark_refuses_is_our_error(rides: Warehouse) -> None:
    v = made(rides, "SELECT no_such(id) FROM view_rides", "id long")
    with pytest.raises(ix.UnsupportedError, match=r"Spark cannot run a_view: .*no_such"):
        v.scan(rides.session)
    v = made(rides, "SELECT id, city FROM view_rides", "id long")
    with pytest.raises(ix.FormatError, match="returns 2 columns, but the view's schema has 1"):
        v.scan(rides.session)
