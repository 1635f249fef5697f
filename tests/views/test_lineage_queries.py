"""Lineage of queries of rising difficulty, against tables and columns that were found by hand."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceexplore.views.lineage._model import QueryLineage
from iceexplore.views.lineage._resolve import TooComplexError, resolve_names
from iceexplore.views.sql._parse import ParsedQuery, parse_query

#: Columns of tables, where a query needs them.
KNOWN = {
    "prod.db.trips": ["id", "day", "fare", "rider_id", "city"],
    "prod.db.riders": ["id", "name", "city"],
    "prod.db.points": ["trip_id", "path"],
}


def lineage(sql: str, dialect: str = "spark", known: dict[str, list[str]] | None = None) -> QueryLineage:
    """The lineage of a query whose names are in prod.db."""
    parsed = parse_query(sql, dialect)
    assert isinstance(parsed, ParsedQuery), parsed
    return resolve_names(parsed, "prod", ("db",), known)


#: Query, the tables with the columns that it reads, and its columns with their sources; ``?`` marks what is uncertain.
QUERIES: list[tuple[str, dict[str, str], dict[str, str]]] = [
    ("SELECT day, fare FROM trips", {"trips": "day fare"}, {"day": "trips.day", "fare": "trips.fare"}),
    ("SELECT day AS d, fare * 2 FROM trips t", {"trips": "day fare"}, {"d": "trips.day", "fare * 2": "trips.fare"}),
    ("SELECT count(*) AS n FROM trips WHERE fare > 0", {"trips": "fare"}, {"n": ""}),
    ("SELECT day, sum(fare) AS s FROM trips GROUP BY day HAVING max(city) > 'a' ORDER BY s",
     {"trips": "city day fare"}, {"day": "trips.day", "s": "trips.fare"}),
    ("SELECT date(ts) AS day FROM trips GROUP BY day", {"trips": "ts"}, {"day": "trips.ts"}),
    ("SELECT t.day, r.name FROM trips t JOIN riders r ON t.rider_id = r.id",
     {"riders": "id name", "trips": "day rider_id"}, {"day": "trips.day", "name": "riders.name"}),
    ("SELECT day, name FROM trips JOIN riders ON rider_id = riders.id",
     {"riders": "day id name rider_id", "trips": "day name rider_id"},
     {"day": "riders.day trips.day ?", "name": "riders.name trips.name ?"}),
    ("SELECT x.fare FROM other.trips x, trips y WHERE x.id = y.id",
     {"other.trips": "fare id", "trips": "id"}, {"fare": "other.trips.fare"}),
    ("SELECT fare FROM lake.other.trips", {"lake.other.trips": "fare"}, {"fare": "lake.other.trips.fare"}),
    ("SELECT db.trips.day, other.trips.day AS d FROM db.trips JOIN other.trips ON db.trips.id = other.trips.id",
     {"other.trips": "day id", "trips": "day id"}, {"day": "trips.day", "d": "other.trips.day"}),
    ("SELECT point.x, trips.point.y AS py FROM trips", {"trips": "point"}, {"x": "trips.point", "py": "trips.point"}),
    ("SELECT * FROM trips", {"trips": "*"}, {"*": "trips.*"}),
    ("SELECT *, fare + 1 AS more FROM trips", {"trips": "* fare"}, {"*": "trips.*", "more": "trips.fare"}),
    ("SELECT s.day FROM (SELECT day, fare AS f FROM trips WHERE city = 'x') s WHERE s.f > 1",
     {"trips": "city day fare"}, {"day": "trips.day"}),
    ("SELECT * FROM (SELECT day, fare AS f FROM trips) s", {"trips": "day fare"},
     {"day": "trips.day", "f": "trips.fare"}),
    ("WITH x AS (SELECT day, fare FROM trips) SELECT day, sum(fare) AS s FROM x GROUP BY day",
     {"trips": "day fare"}, {"day": "trips.day", "s": "trips.fare"}),
    ("WITH x AS (SELECT day AS d FROM trips), y AS (SELECT d FROM x) SELECT d AS e FROM y",
     {"trips": "day"}, {"e": "trips.day"}),
    ("WITH x (a, b) AS (SELECT day, fare FROM trips) SELECT b FROM x", {"trips": "day fare"}, {"b": "trips.fare"}),
    ("WITH trips AS (SELECT fare FROM trips) SELECT fare FROM trips", {"trips": "fare"}, {"fare": "trips.fare"}),
    ("SELECT day FROM trips UNION ALL SELECT since FROM riders", {"riders": "since", "trips": "day"},
     {"day": "riders.since trips.day"}),
    ("SELECT day FROM trips EXCEPT (SELECT since FROM riders INTERSECT SELECT at FROM points)",
     {"points": "at", "riders": "since", "trips": "day"}, {"day": "points.at riders.since trips.day"}),
    ("SELECT fare FROM trips WHERE rider_id IN (SELECT id FROM riders WHERE city = 'x')",
     {"riders": "city id", "trips": "fare rider_id"}, {"fare": "trips.fare"}),
    ("SELECT t.fare, (SELECT max(r.name) FROM riders r WHERE r.id = t.rider_id) AS n FROM trips t",
     {"riders": "id name", "trips": "fare rider_id"}, {"fare": "trips.fare", "n": "riders.name"}),
    ("SELECT fare FROM trips t WHERE EXISTS (SELECT 1 FROM riders r WHERE r.id = t.rider_id)",
     {"riders": "id", "trips": "fare rider_id"}, {"fare": "trips.fare"}),
    ("SELECT CASE WHEN city = 'x' THEN fare ELSE tip END AS f FROM trips",
     {"trips": "city fare tip"}, {"f": "trips.city trips.fare trips.tip"}),
    ("SELECT sum(fare) OVER (PARTITION BY city ORDER BY day) AS s FROM trips",
     {"trips": "city day fare"}, {"s": "trips.city trips.day trips.fare"}),
    ("SELECT rank() OVER w AS r FROM trips WINDOW w AS (PARTITION BY city ORDER BY fare)",
     {"trips": "city fare"}, {"r": "trips.city trips.fare"}),
    ("SELECT id, p FROM trips LATERAL VIEW explode(points) e AS p", {"trips": "id points"},
     {"id": "trips.id", "p": "trips.points"}),
    ("SELECT id, k, v FROM trips LATERAL VIEW OUTER explode(tags) e AS k, v", {"trips": "id tags"},
     {"id": "trips.id", "k": "trips.tags", "v": "trips.tags"}),
    ("SELECT a.day FROM (trips a JOIN riders b ON a.rider_id = b.id) JOIN points c ON c.trip_id = a.id",
     {"points": "trip_id", "riders": "id", "trips": "day id rider_id"}, {"day": "trips.day"}),
    ("SELECT transform(tags, x -> upper(x)) AS t FROM trips", {"trips": "tags"}, {"t": "trips.tags"}),
    ("SELECT id FROM trips VERSION AS OF 5", {"trips": "id"}, {"id": "trips.id"}),
    ("SELECT id, 'x' AS kind FROM trips TABLESAMPLE (10 PERCENT)", {"trips": "id"}, {"id": "trips.id", "kind": ""}),
    ("SELECT id FROM range(10)", {}, {"id": " ?"}),
    ("SELECT a FROM (VALUES (1, 2)) v (a, b)", {}, {"a": ""}),
    ("WITH s AS (SELECT city, avg(fare) AS f FROM trips GROUP BY city), r AS (SELECT id, city FROM riders) "
     "SELECT r.id, s.f / (SELECT max(f) FROM s) AS part FROM r LEFT JOIN s ON r.city = s.city "
     "WHERE r.id NOT IN (SELECT rider_id FROM bans)",
     {"bans": "rider_id", "riders": "city id", "trips": "city fare"}, {"id": "riders.id", "part": "trips.fare"}),
]  # fmt: skip


def shown(found: QueryLineage) -> tuple[dict[str, str], dict[str, str]]:
    """A lineage in the form of `QUERIES`."""
    tables = {str(t).removeprefix("prod.").removeprefix("db."): " ".join(sorted(t.columns)) for t in found.tables}
    columns = {}
    for column in found.columns:
        names = (f"{s.table}.{s.column}".removeprefix("prod.").removeprefix("db.") for s in column.sources)
        columns[column.name] = " ".join(sorted(names)) + ("" if column.certain else " ?")
    return dict(sorted(tables.items())), columns


@pytest.mark.parametrize(("sql", "tables", "columns"), QUERIES, ids=range(len(QUERIES)))
def test_lineage_by_hand(sql: str, tables: dict[str, str], columns: dict[str, str]) -> None:
    assert shown(lineage(sql)) == (tables, columns)


@pytest.mark.parametrize(
    ("sql", "dialect", "columns"),
    [
        ("SELECT * FROM trips", "spark", {c: f"trips.{c}" for c in KNOWN["prod.db.trips"]}),
        ("SELECT day, name FROM trips JOIN riders ON rider_id = riders.id", "spark",
         {"day": "trips.day", "name": "riders.name"}),
        ("SELECT * FROM trips JOIN riders USING (id)", "trino",
         {**{c: f"trips.{c}" for c in KNOWN["prod.db.trips"]}, "name": "riders.name", "city": "riders.city"}),
        ("SELECT id, x FROM trips CROSS JOIN UNNEST(ARRAY[fare]) AS u (x)", "trino",
         {"id": "trips.id", "x": "trips.fare"}),
        ("SELECT * EXCEPT (fare, city) FROM trips", "bigquery",
         {"id": "trips.id", "day": "trips.day", "rider_id": "trips.rider_id"}),
        ("SELECT x.* FROM trips JOIN (SELECT * FROM riders) x ON x.id = rider_id", "spark",
         {"id": "riders.id", "name": "riders.name", "city": "riders.city"}),
        ("WITH RECURSIVE r AS (SELECT id, day FROM trips UNION ALL SELECT r.id, t.day FROM r JOIN trips t USING (id)) "
         "SELECT * FROM r", "trino", {"id": "trips.id", "day": "trips.day"}),
        ("SELECT t.id, l.name FROM trips t JOIN LATERAL (SELECT name FROM riders r WHERE r.id = t.rider_id) l ON true",
         "postgres", {"id": "trips.id", "name": "riders.name"}),
        ("SELECT fare AS day, day AS d FROM trips", "spark", {"day": "trips.fare", "d": "trips.day"}),
        ("SELECT fare * 2 AS twice, twice + 1 AS more FROM trips", "spark",
         {"twice": "trips.fare", "more": "trips.fare"}),
        ('SELECT "DAY" FROM TRIPS', "trino", {"DAY": "trips.day"}),
    ],
)  # fmt: skip
def test_known_columns_make_names_certain(sql: str, dialect: str, columns: dict[str, str]) -> None:
    known = {**KNOWN, "prod.db.TRIPS": KNOWN["prod.db.trips"]}
    found = lineage(sql, dialect, known)
    assert all(column.certain for column in found.columns) and not found.notes
    seen = {c.name: " ".join(f"{s.table}.{s.column}".removeprefix("prod.db.").lower() for s in c.sources)
            for c in found.columns}  # fmt: skip
    assert seen == {name: text.lower() for name, text in columns.items()}


def test_what_a_known_table_lacks_is_noted() -> None:
    assert lineage("SELECT t.nothing FROM trips t", known=KNOWN).notes == ("t.nothing is not a column of t",)
    assert lineage("SELECT nothing FROM trips", known=KNOWN).notes == ("no source of the query has the column nothing",)


def test_pivots_are_uncertain() -> None:
    found = lineage("SELECT a FROM trips PIVOT (sum(fare) FOR city IN ('a', 'b'))")
    assert found.tables[0].columns == ("*", "fare", "city") and not found.columns[0].certain


def test_names_are_resolved_by_defaults() -> None:
    parsed = parse_query("SELECT 1 FROM a, b.c, d.e.f, g.h.i.j", "spark")
    assert isinstance(parsed, ParsedQuery)
    for catalog, namespace, texts in (
        ("prod", ("x", "y"), ["prod.x.y.a", "prod.b.c", "d.e.f", "g.h.i.j"]),
        (None, (), ["a", "b.c", "d.e.f", "g.h.i.j"]),
        (None, None, ["a", "b.c", "d.e.f", "g.h.i.j"]),
    ):
        found = resolve_names(parsed, catalog, namespace)
        assert [str(t) for t in found.tables] == texts
        assert [t.written for t in found.tables] == ["a", "b.c", "d.e.f", "g.h.i.j"]
    assert [t.identifier for t in found.tables] == [("a",), ("b", "c"), ("e", "f"), ("h", "i", "j")]


def test_doubling_stars_end() -> None:
    nested = "SELECT a, b FROM t"
    for _ in range(20):
        nested = f"SELECT *, * FROM ({nested}) x"
    with pytest.raises(TooComplexError, match="too many columns"):
        lineage(nested)
    shared = ", ".join(f"x{i} AS (SELECT a.c AS c FROM x{i - 1} a JOIN x{i - 1} b ON a.c = b.c)" for i in range(1, 60))
    found = lineage(f"WITH x0 AS (SELECT c FROM t), {shared} SELECT c FROM x59")
    assert shown(found) == ({"t": "c"}, {"c": "t.c"}), "a WITH query is resolved once, however often it is named"


_WORDS = st.sampled_from(
    re.findall(
        r"\S+",
        "select from where group by having order union all join left on as with a b t u x 1 ( ) , . * + = in exists "
        "over lateral unnest values using distinct case when then end null",
    )
)


@given(st.lists(_WORDS, max_size=30), st.sampled_from(["spark", "trino", "duckdb", "bigquery", "snowflake"]))
def test_any_text(words: list[str], dialect: str) -> None:
    for text in (
        f"select a, t.b from t join u on t.i = u.i {' '.join(words)}",
        f"with x as (select {' '.join(words)}) select * from x",
    ):
        parsed = parse_query(text, dialect)
        if isinstance(parsed, ParsedQuery):
            found = resolve_names(parsed, None, None)
            names = {str(t) for t in found.tables}
            assert all(s.table in names for c in found.columns for s in c.sources)
