"""Views run without Spark: rows compared with SQLite's, states of tables, pruning, dialects, and errors."""

from __future__ import annotations

import datetime as dt
import importlib
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import iceexplore as ix
from iceexplore.queries._needs import Needs
from tests.views.view_documents import schema, version, view, write_view

CITIES = ("Oslo", "Bergen", "Tromsø", None)


def trips(start: int, count: int) -> pa.Table:
    """Rows with nulls and repeated values; ids begin at ``start``."""
    ids = range(start, start + count)
    return pa.table(
        {
            "id": list(ids),
            "Day": [dt.date(2024, 1, 1 + i % 5) for i in ids],
            "fare": [None if i % 7 == 0 else i / 4 for i in ids],
            "city": [CITIES[i % 4] for i in ids],
            "rider_id": pa.array([i % 3 for i in ids], pa.int32()),
            "paid": pa.array([None if i % 5 == 0 else Decimal(i) / 8 for i in ids], pa.decimal128(10, 3)),
        }
    )


class Warehouse:
    """A folder with two tables, in which views are written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        made = ix.create(
            folder / "db" / "trips",
            {
                "id": "long",
                "Day": "date",
                "fare": "double",
                "city": "string",
                "rider_id": "int",
                "paid": "decimal(10,3)",
            },
            partition_by=["city"],
            format_version=2,
        )
        self.january = made.append(trips(0, 30))
        made.delete("id = 3")
        made.append(trips(100, 30))
        self.trips = made.table
        riders = ix.create(folder / "db" / "riders", {"id": "int", "name": "string"}, format_version=2)
        riders.append({"id": [0, 1, 5], "name": ["Ada", "Bo", None]})
        self.riders = riders.table

    def view(self, sql: str | dict[str, str], columns: str, name: str = "v", **changes: Any) -> ix.View:
        """Write a view; ``columns`` are names and types: ``a long, b string``."""
        pairs = [one.split() for one in columns.split(", ")]
        fields = [{"id": i, "name": n, "required": False, "type": kind} for i, (n, kind) in enumerate(pairs, 1)]
        made = view([version(1, sql, **changes)], schemas=[schema(1, *fields)])
        return ix.open_view(write_view(self.folder / "db" / name, made))


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    return Warehouse(tmp_path_factory.mktemp("warehouse"))


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    """Fail on a warning: only what may differ warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "v: Functions .*: round")  # of floating-point numbers, compared below
        yield


@pytest.fixture(scope="module")
def oracle(warehouse: Warehouse) -> sqlite3.Connection:
    return in_sqlite(warehouse)


def in_sqlite(warehouse: Warehouse) -> sqlite3.Connection:
    """The same rows in SQLite."""
    made = sqlite3.connect(":memory:")
    for name, table in (("trips", warehouse.trips), ("riders", warehouse.riders)):
        rows = table.to_arrow()
        made.execute(f"CREATE TABLE {name} ({', '.join(rows.column_names)})")
        values = [tuple(map(plain, row.values())) for row in rows.to_pylist()]
        made.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * rows.num_columns)})", values)
    return made


def plain(value: Any) -> Any:
    """A value as SQLite has it."""
    if isinstance(value, dt.date):
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else int(value) if isinstance(value, bool) else value


def ordered(rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    return sorted((tuple(map(plain, row)) for row in rows), key=repr)


#: Spark's SQL, the columns of the view, and SQLite's SQL where it differs.
QUERIES: list[tuple[str, str, str | None]] = [
    ("SELECT * FROM trips", "id long, day date, fare double, city string, rider int, paid decimal(10,3)", None),
    (
        "SELECT ID, city AS c FROM db.trips WHERE City = 'Oslo' AND fare > 3",
        "id long, c string",
        "SELECT id, city FROM trips WHERE city = 'Oslo' AND fare > 3",
    ),
    ("SELECT id FROM trips WHERE city IS NULL OR fare IS NULL", "id long", None),
    (
        "SELECT id FROM trips WHERE day IN (DATE '2024-01-02', DATE '2024-01-04') AND id BETWEEN 5 AND 120",
        "id long",
        "SELECT id FROM trips WHERE day IN ('2024-01-02', '2024-01-04') AND id BETWEEN 5 AND 120",
    ),
    ("SELECT id FROM trips WHERE city NOT IN ('Oslo') AND NOT fare < 10 AND paid >= 2.5", "id long", None),
    (
        "SELECT city, count(*), count(fare) n, sum(rider_id) FROM trips GROUP BY city",
        "c string, n long, m long, s long",
        None,
    ),
    ("SELECT count(*) FROM trips", "n long", None),
    ("SELECT day, avg(fare) AS f FROM trips GROUP BY day HAVING count(*) > 3 ORDER BY 1", "day date, f double", None),
    ("SELECT t.id, r.name FROM trips t JOIN riders r ON t.rider_id = r.id", "id long, name string", None),
    (
        "SELECT trips.id, riders.id, name FROM db.trips LEFT JOIN db.riders ON db.trips.rider_id = riders.id",
        "a long, b int, c string",
        "SELECT trips.id, riders.id, name FROM trips LEFT JOIN riders ON trips.rider_id = riders.id",
    ),
    ("SELECT a.id FROM trips a JOIN trips b ON a.id = b.id + 1 WHERE a.city = 'Oslo' AND b.fare > 2", "id long", None),
    (
        "WITH t AS (SELECT Day AS d, fare FROM trips WHERE fare > 1) SELECT d, max(fare) FROM t GROUP BY d",
        "d date, m double",
        None,
    ),
    (
        "WITH trips AS (SELECT id FROM trips WHERE id < 9) SELECT x.id FROM trips x JOIN trips y ON x.id = y.id",
        "id long",
        "WITH t AS (SELECT id FROM trips WHERE id < 9) SELECT x.id FROM t x JOIN t y ON x.id = y.id",
    ),
    ("SELECT id FROM trips t WHERE EXISTS (SELECT 1 FROM riders r WHERE r.id = t.rider_id)", "id long", None),
    (
        "SELECT id FROM trips LEFT ANTI JOIN riders ON trips.rider_id = riders.id",
        "id long",
        "SELECT id FROM trips WHERE rider_id NOT IN (SELECT id FROM riders)",
    ),
    ("SELECT id FROM trips WHERE rider_id IN (SELECT id FROM riders WHERE name > 'B')", "id long", None),
    ("SELECT id, (SELECT max(name) FROM riders) FROM trips", "id long, n string", None),
    (
        "WITH t AS (SELECT * FROM trips) SELECT id FROM t WHERE id < 9 AND fare < (SELECT avg(fare) FROM t)",
        "id long",
        None,
    ),
    (
        "SELECT count(*), count(*), id + 1, id + 1 FROM trips GROUP BY id ORDER BY count(*)",
        "a long, b long, c long, d long",
        None,
    ),
    ("SELECT id FROM trips WHERE id < 4 UNION ALL SELECT id FROM riders", "id long", None),
    ("SELECT rider_id FROM trips INTERSECT SELECT id FROM riders", "id int", None),
    ("SELECT id, row_number() OVER (PARTITION BY city ORDER BY id DESC) n FROM trips", "id long, n int", None),
    (
        "SELECT id, sum(rider_id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM trips",
        "id long, n long",
        None,
    ),
    ("SELECT DISTINCT city, rider_id FROM trips", "c string, r int", None),
    (
        "SELECT CASE WHEN fare > 10 THEN 'dear' ELSE 'cheap' END AS k, id / 4 AS q, id % 4 FROM trips",
        "k string, q double, m long",
        "SELECT CASE WHEN fare > 10 THEN 'dear' ELSE 'cheap' END, id / 4.0, id % 4 FROM trips",
    ),
    (
        "SELECT year(day), month(day), count_if(fare > 5), nvl(city, '?') FROM trips GROUP BY 1, 2, 4",
        "y int, m int, n long, c string",
        "SELECT CAST(substr(day, 1, 4) AS INT), CAST(substr(day, 6, 2) AS INT), sum(coalesce(fare > "
        "5, 0)), coalesce(city, '?') FROM trips GROUP BY 1, 2, 4",
    ),
    ("SELECT id, concat(city, '-', 'x') FROM trips", "id long, c string", "SELECT id, city || '-' || 'x' FROM trips"),
    (
        "SELECT upper(city), substring(city, 2, 3), length(city), round(fare, 1) FROM trips WHERE city <> 'Tromsø'",
        "a string, b string, c int, d double",
        "SELECT upper(city), substr(city, 2, 3), length(city), round(fare, 1) FROM trips WHERE city <> 'Tromsø'",
    ),
    (
        "SELECT date_format(day, 'yyyy-MM-dd'), datediff(day, DATE '2024-01-01'), id DIV 4 FROM trips",
        "a string, b int, c long",
        "SELECT day, CAST(julianday(day) - julianday('2024-01-01') AS INT), id / 4 FROM trips",
    ),
    ("SELECT name FROM riders WHERE name <=> NULL", "n string", "SELECT name FROM riders WHERE name IS NULL"),
    ("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r", "n int", None),
    (
        "SELECT city, sum(paid), max(Day) FROM trips GROUP BY ROLLUP (city) HAVING grouping(city) = 1",
        "c string, s decimal(20,3), d date",
        "SELECT NULL, sum(paid), max(day) FROM trips",
    ),
]


@pytest.mark.parametrize(("sql", "columns", "sqlite"), QUERIES, ids=range(len(QUERIES)))
def test_rows_are_those_of_sqlite(
    warehouse: Warehouse, oracle: sqlite3.Connection, sql: str, columns: str, sqlite: str | None
) -> None:
    rows = warehouse.view(sql, columns).to_arrow()
    assert rows.column_names == [one.split()[0] for one in columns.split(", ")]
    expected = oracle.execute(sqlite or sql).fetchall()
    assert expected
    assert ordered([tuple(row.values()) for row in rows.to_pylist()]) == ordered(expected)


def test_order_by_and_limit(warehouse: Warehouse) -> None:
    v = warehouse.view("SELECT id, fare FROM trips ORDER BY fare DESC, id LIMIT 4", "id long, fare double")
    rows: list[dict[str, Any]] = warehouse.trips.to_arrow().to_pylist()
    found = sorted(rows, key=lambda r: (-(r["fare"] or -1), r["id"]))
    assert v.to_arrow()["id"].to_pylist() == [r["id"] for r in found[:4]]
    # Spark orders nulls first, DataFusion last.
    nulls = warehouse.view("SELECT fare FROM trips ORDER BY fare", "fare double").to_arrow()["fare"].to_pylist()
    assert nulls[0] is None
    assert nulls[-1] is not None
    assert list(v.head(2)["id"]) == [r["id"] for r in found[:2]]
    plain_rows = warehouse.view("SELECT * FROM trips", QUERIES[0][1]).head(3)
    assert list(plain_rows["id"]) == warehouse.trips.to_arrow(columns="id", limit=3)["id"].to_pylist()


def test_a_view_over_any_state_of_its_tables(warehouse: Warehouse) -> None:
    v = warehouse.view("SELECT count(*) FROM trips", "n long")

    def count(**how: Any) -> int:
        found: int = v.to_arrow(**how)["n"][0].as_py()
        return found

    first = warehouse.january
    assert count() == 59
    assert count(tables_at={"db.trips": first.snapshot_id}) == 30
    assert count(tables_at={"prod.db.trips": first}) == 30
    assert count(tables_at={"TRIPS": "main"}) == 59
    assert count(tables_at=first.timestamp_ms) == 30
    assert count(tables_at=dt.datetime.fromtimestamp(first.timestamp_ms / 1000, dt.UTC)) == 30
    assert count(tables={"db.trips": warehouse.trips.at(first)}) == 30
    simulated = warehouse.trips.simulate()
    simulated.delete_files(simulated.inspect.files()["file_path"].tolist()[:1])
    assert count(tables={"db.trips": simulated}) < 59
    simulated.close()
    for wrong, error in (
        ("2020-01-01", ix.SnapshotNotFoundError),
        ({"db.trips": 5}, ix.SnapshotNotFoundError),
        ({"db.trips": "audit"}, ix.SnapshotNotFoundError),
        ({"db.trisp": 5}, ix.OptionError),
        ({3: 5}, ix.OptionError),
        ("soon", ix.OptionError),
    ):
        with pytest.raises(error):
            count(tables_at=wrong)


def test_a_query_may_ask_for_a_state_itself(warehouse: Warehouse) -> None:
    then = warehouse.january.snapshot_id
    v = warehouse.view(
        f"SELECT t.id FROM trips VERSION AS OF {then} t LEFT ANTI JOIN trips n ON t.id = n.id", "id long"
    )
    assert v.to_arrow()["id"].to_pylist() == [3]
    time = dt.datetime.fromtimestamp(warehouse.january.timestamp_ms / 1000, dt.UTC).isoformat()
    v = warehouse.view(f"SELECT count(*) FROM trips TIMESTAMP AS OF '{time}'", "n long")
    assert v.to_arrow()["n"].to_pylist() == [30]
    v = warehouse.view("SELECT count(*) FROM trips TIMESTAMP AS OF now()", "n long")
    with pytest.raises(ix.UnsupportedError, match="with a literal"):
        v.to_arrow()


def test_versions_and_views_inside_views(warehouse: Warehouse, tmp_path: Path) -> None:
    inner = warehouse.view("SELECT day, id AS Trip FROM trips WHERE city = 'Oslo'", "Day date, trip int", "oslo")
    v = warehouse.view("SELECT i.TRIP, t.fare FROM oslo i JOIN trips t ON t.id = i.trip", "trip long, fare double")
    rows = v.to_arrow()
    expected = [r for r in warehouse.trips.to_arrow().to_pylist() if r["city"] == "Oslo"]
    assert set(rows["trip"].to_pylist()) == {r["id"] for r in expected}
    assert len(v.to_arrow(tables_at=warehouse.january.timestamp_ms)) < len(expected)
    assert inner.to_arrow().schema.types == [pa.date32(), pa.int32()]
    versions = [version(1, "SELECT id FROM db.riders"), version(2, "SELECT id FROM db.riders WHERE id > 0")]
    one = {"id": 1, "name": "id", "required": False, "type": "int"}
    path = write_view(warehouse.folder / "db" / "two", view(versions, schemas=[schema(1, one)]))
    two = ix.open_view(path)
    assert (len(two.to_arrow()), len(two.at(1).to_arrow())) == (2, 3)
    outer = warehouse.view("SELECT count(*) FROM two", "n long")
    assert outer.to_arrow()["n"].to_pylist() == [2]
    assert outer.to_arrow(tables={"db.two": two.at(1)})["n"].to_pylist() == [3]


def test_simulated_views_and_views_in_catalogs(warehouse: Warehouse, tmp_path: Path) -> None:
    simulated = warehouse.view("SELECT id FROM trips", "id long").simulate()
    simulated.replace("SELECT count(*) AS n FROM trips", {"n": "long"}, dialect="spark")
    assert simulated.to_arrow().to_pylist() == [{"n": 59}]
    simulated.rollback(1)
    assert len(simulated.to_arrow()) == 59
    simulated.close()
    catalog = SqlCatalog("prod", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "w"))
    catalog.create_namespace("db")
    catalog.create_table("db.trips", pa.schema([("id", pa.int64())])).append(pa.table({"id": [1, 2, 3]}))
    v = ix.create_view("db.v", {"spark": "SELECT max(id) AS n FROM trips"}, {"n": "long"}, catalog=catalog)
    assert v.to_arrow().to_pylist() == [{"n": 3}]


def files_read(table: ix.Table, v: ix.View) -> int:
    fresh = ix.open(table.location)
    v.to_arrow(tables={"db.trips": fresh})
    return len(
        {one.location for one in fresh.reads if one.location.endswith(".parquet") and "delete" not in one.location}
    )


def test_only_what_the_query_needs_is_read(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    _local: Any = importlib.import_module("iceexplore.queries._local")
    asked: list[tuple[Any, ...]] = []
    real = _local.to_arrow

    def spy(state: Any, where: Any, columns: Any, **how: Any) -> Any:
        asked.append((where, columns, how["limit"]))
        return real(state, where, columns, **how)

    monkeypatch.setattr(_local, "to_arrow", spy)
    every = files_read(warehouse.trips, warehouse.view("SELECT max(fare) FROM trips", "m double"))
    assert asked.pop() == (None, ["fare"], None)
    v = warehouse.view("WITH t AS (SELECT * FROM trips) SELECT id FROM t WHERE city = 'Oslo' AND fare > 3", "id long")
    assert files_read(warehouse.trips, v) < every
    assert asked.pop() == ("city = 'Oslo'", ["id", "fare", "city"], None), "floats are not pruned: NaN"
    v = warehouse.view("SELECT a.id FROM trips a, trips b WHERE a.id = 1 AND b.id = 2", "id long")
    v.to_arrow()
    assert asked == [(None, ["id"], None)], "one state is read once; filters that differ do not prune"
    asked.clear()
    warehouse.view("SELECT Day FROM trips LIMIT 3", "d date").to_arrow()
    assert asked.pop() == (None, ["Day"], 3)
    warehouse.view("SELECT count(*) FROM trips", "n long").to_arrow()
    assert not asked, "counted from metadata"


def test_needs_are_joined() -> None:
    one, other = Needs(frozenset({1}), "a = 1", 3), Needs(frozenset({2}), "a = 1")
    assert one.joined(other) == Needs(frozenset({1, 2}), "a = 1")
    assert one.joined(Needs(frozenset(), "b = 1")) == Needs(frozenset({1}))


def test_literals_of_a_query_cannot_break_out(warehouse: Warehouse) -> None:
    for text in ("it''s", 'a" or 1=1 --', "x'' or true or ''", "{0}", "\\\\", "%s"):
        v = warehouse.view({"trino": f"SELECT id FROM trips WHERE city = '{text}'"}, "id long")
        assert v.to_arrow().num_rows == 0


def test_columns_of_every_type_that_are_not_needed(tmp_path: Path) -> None:
    types = {
        "id": "long", "tags": "list<string>", "m": "map<string, int>", "p": "struct<x: int, y: list<double>>",
        "u": "uuid", "b": "binary", "f": "fixed[4]", "t": "time", "ts": "timestamp", "tz": "timestamptz",
        "x": "boolean", "g": "float",
    }  # fmt: skip
    lab = ix.create(tmp_path / "db" / "trips", types, format_version=2)
    lab.append([{"id": 1, "tags": ["a"], "m": {"k": 2}, "p": {"x": 3, "y": [1.5]}, "b": b"z"}])
    column = {"id": 1, "name": "n", "required": False, "type": "long"}
    for sql, expected in (
        ("SELECT id FROM trips", 1), ("SELECT count(*) FROM trips", 1), ("SELECT p.x FROM trips", 3),
        ("SELECT t.m['k'] FROM trips t", 2), ("SELECT TRIPS.P.X FROM trips WHERE id = 1", 3),
    ):  # fmt: skip
        path = write_view(tmp_path / "db" / "v", view([version(1, sql)], schemas=[schema(1, column)]))
        assert ix.open_view(path).to_arrow()["n"].to_pylist() == [expected], sql


def test_names_of_columns_that_need_quotes(tmp_path: Path) -> None:
    names = ['a"b', "a b", "Ünï côde", "select", "a`b", "A", "a"]
    lab = ix.create(tmp_path / "db" / "trips", dict.fromkeys(names, "long"), format_version=2)
    lab.append({name: [i, i + 10] for i, name in enumerate(names)})
    fields = [{"id": i, "name": name, "required": False, "type": "long"} for i, name in enumerate(names, 1)]
    listed = ", ".join("`" + name.replace("`", "``") + "`" for name in names)
    for sql in ("SELECT * FROM trips", f"SELECT {listed} FROM trips WHERE `A` = 5 OR `select` >= 13"):
        path = write_view(tmp_path / "db" / "v", view([version(1, sql)], schemas=[schema(1, *fields)]))
        rows = ix.open_view(path).to_arrow()
        assert rows.column_names == names
        assert [c.to_pylist() for c in rows.columns] == [[i, i + 10] for i in range(7)]


def test_dialects_that_are_different_queries_need_a_choice(warehouse: Warehouse) -> None:
    texts = {
        "spark": "SELECT id FROM trips WHERE id > 5",
        "trino": 'SELECT "id" FROM db.trips t WHERE 5 < t.id',
    }
    same = warehouse.view(texts, "id long")
    assert same.compare_dialects().same_query is True
    assert len(same.to_arrow()) == len(same.to_arrow("trino")) == 54
    v = warehouse.view({"spark": "SELECT id / 4 FROM trips", "trino": "SELECT id / 4 FROM trips"}, "q double")
    with pytest.raises(ix.OptionError, match=r"different queries in 'spark' and 'trino' .*choose one with dialect="):
        v.to_arrow()
    assert 129 / 4 in v.to_arrow("spark")["q"].to_pylist()
    assert 129 / 4 not in v.to_arrow("trino")["q"].to_pylist()  # Trino divides integers as integers
    with pytest.raises(ix.OptionError, match="does not store its query in the dialect 'duckdb'"):
        v.to_arrow("duckdb")


ERRORS: list[tuple[str, str, type[Exception], str]] = [
    (
        "SELECT no_such_function(id) FROM trips",
        "id long",
        ix.UnsupportedError,
        r"calls no_such_function, .*v.scan\(spark\)",
    ),
    ("SELECT id FROM gone", "id long", ix.MetadataNotFoundError, r"v reads prod.db.gone, .*tables=\{'db.gone': ...\}"),
    ("SELECT id, fare FROM trips", "id long", ix.FormatError, "returns 2 columns, but the view's schema has 1"),
    ("SELECT id FROM v", "id long", ix.FormatError, "the views form a cycle"),
    ("SELECT nix FROM trips", "id long", ix.UnsupportedError, "DataFusion cannot run v: .*nix"),
    ("SELECT id FROM WHERE", "id long", ix.UnsupportedError, "v cannot be run"),
    ("SELECT city FROM trips WHERE city = 'Oslo'", "id long", ix.UnsupportedError, "Oslo"),
    ("SELECT id FROM 'x.parquet'", "id long", ix.IceexploreError, "run v|v reads"),
    ("SELECT * FROM read_parquet('/etc/passwd')", "id long", ix.IceexploreError, "run v|v reads"),
    ("SELECT date_diff(MONTH, day, day) FROM trips", "id long", ix.UnsupportedError, "difference of dates"),
    (
        "SELECT t.id FROM trips t CROSS JOIN trips CROSS JOIN trips CROSS JOIN trips CROSS JOIN trips",
        "id long",
        ix.MemoryLimitError,
        r"more than 4,194,304 bytes.*v.scan\(spark\)",
    ),
]


@pytest.mark.parametrize(("sql", "columns", "error", "text"), ERRORS)
def test_what_cannot_be_run_says_why(
    warehouse: Warehouse, sql: str, columns: str, error: type[Exception], text: str
) -> None:
    warnings.simplefilter("ignore")  # undone by the fixture
    v = warehouse.view(sql, columns)
    with pytest.raises(error, match=text) as raised:
        v.to_arrow(max_bytes=1 << 22)
    assert isinstance(raised.value, ix.IceexploreError)


def test_what_may_differ_warns(warehouse: Warehouse) -> None:
    v = warehouse.view(
        "SELECT CAST(fare AS STRING), approx_count_distinct(id) FROM trips GROUP BY 1", "d string, n long"
    )
    with pytest.warns(UserWarning, match="v: ") as warned:
        v.to_arrow()
    texts = " ".join(str(one.message) for one in warned)
    assert "approx_distinct" in texts
    assert "CAST to text" in texts
    assert all(one.filename == __file__ for one in warned)
    assert v.sql("datafusion").translated_from == "spark"
    assert any("approx_distinct" in note for note in v.sql("datafusion").notes)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("avg(paid)", "decimals"),
        ("sum(paid) / 2", "decimals"),
        ("avg(fare) + sum(id) / 2", None),
        ("round(sum(fare), 2)", "round"),
        ("max(CAST(city AS int))", "CAST of text"),
        ("max(CAST(id AS int))", None),
        ("max(CAST(day AS string))", None),
        ("max(CAST(ts AS date))", "CAST of text"),
        ("max(substring(city, -2))", "substring"),
        ("max(date_format(day, 'EEEE'))", "time_to_str"),
        ("max(greatest(id, rider_id))", "greatest"),
    ],
)
def test_only_what_may_differ_warns(warehouse: Warehouse, expression: str, text: str | None) -> None:
    inner = "SELECT *, city AS ts FROM trips"
    v = warehouse.view(f"SELECT {expression} FROM ({inner}) t WHERE false", "x string")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        v.to_arrow()
    texts = " ".join(str(one.message) for one in caught)
    assert texts == "" if text is None else text in texts


def test_the_memory_limit_counts_what_is_read(warehouse: Warehouse) -> None:
    v = warehouse.view("SELECT max(id) FROM trips", "m long")
    with pytest.raises(ix.MemoryLimitError, match="needs from its tables take more than 100 bytes"):
        v.to_arrow(max_bytes=100)
    with pytest.raises(ix.OptionError):
        v.to_arrow(limit=-1)


def test_opening_a_table_does_not_import_views() -> None:
    code = "import sys, iceexplore as ix; ix.sample('trips'); print([m for m in sys.modules if 'iceexplore.view' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
