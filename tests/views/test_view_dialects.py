"""Two stored dialects of a version: the same query or not, and where they differ."""

from __future__ import annotations

from pathlib import Path

import pytest

import iceexplore as ix
from tests.views.view_documents import version, view, write_view


def stored(folder: Path, **texts: str) -> ix.View:
    """A view whose version stores these texts."""
    return ix.open_view(write_view(folder / "v", view([version(1, texts)])))


SAME = [
    ("SELECT `day`, sum(fare) AS s FROM trips GROUP BY 1", "select day, sum(fare) s from db.trips group by day"),
    (
        "SELECT day FROM trips WHERE fare > 3 AND city = 'x'",
        "select t.day from other.db.trips t where 'x' = t.city and 3 < t.fare",
    ),
    ("SELECT count(1) n FROM trips", "SELECT COUNT(*) AS n FROM trips"),
    (
        "SELECT t.day, r.name FROM trips t JOIN riders r ON t.id = r.id",
        'SELECT T."day", r.NAME FROM trips t INNER JOIN riders r ON r.id = t.id',
    ),
    ("SELECT date_format(ts, 'yyyy-MM') m FROM trips", "SELECT date_format(ts, '%Y-%m') m FROM trips"),
    ("SELECT arr[0] a FROM trips", "SELECT arr[1] a FROM trips"),
    ("SELECT nvl(day, 1) x FROM trips", "SELECT coalesce(day, 1) x FROM trips"),
    ("SELECT datediff(a, b) d FROM trips", "SELECT date_diff('day', b, a) d FROM trips"),
    ("SELECT day FROM trips ORDER BY day NULLS LAST", "SELECT day FROM trips ORDER BY 1"),
    (
        "WITH x AS (SELECT day FROM trips) SELECT day FROM x -- note",
        "WITH X AS (SELECT day AS day FROM trips)\nSELECT day FROM x",
    ),
    ("SELECT a FROM trips WHERE a = 1 OR (b = 2 AND c > 3)", "SELECT a FROM trips WHERE (3 < c AND 2 = b) OR 1 = a"),
]


@pytest.mark.parametrize(("spark", "trino"), SAME)
def test_the_same_query_in_two_notations(tmp_path: Path, spark: str, trino: str) -> None:
    found = stored(tmp_path, spark=spark, trino=trino).compare_dialects()
    assert (found.same_query, found.changes, found.note) == (True, (), "")
    assert "the same query" in repr(found)


DIFFERENT = [
    ("SELECT day FROM trips WHERE fare > 3", "SELECT day FROM trips WHERE fare > 4", "filter changed"),
    ("SELECT day FROM trips WHERE fare > 3", "SELECT day FROM trips WHERE fare >= 3", "filter changed"),
    ("SELECT day FROM trips", "SELECT day FROM other.trips", "source"),
    ("SELECT day FROM trips ORDER BY day", "SELECT day FROM trips ORDER BY day", "ORDER BY changed"),
    ("SELECT fare / 2 f FROM trips", "SELECT fare / 2 f FROM trips", "column f changed"),
    ("SELECT a FROM trips UNION SELECT b FROM r", "SELECT a FROM trips UNION ALL SELECT b FROM r", "UNION"),
    ("SELECT a, b FROM trips", "SELECT b, a FROM trips", "reordered"),
    ("SELECT a - b x FROM trips", "SELECT b - a x FROM trips", "column x changed"),
    ("SELECT t.a FROM t, r WHERE t.a = r.a", "SELECT r.a FROM t, r WHERE t.a = r.a", "column"),
    ("SELECT a FROM t LEFT JOIN r ON t.a = r.a", "SELECT a FROM t RIGHT JOIN r ON t.a = r.a", "source r changed"),
    ("SELECT a FROM t VERSION AS OF 3", "SELECT a FROM t", "source"),
]


@pytest.mark.parametrize(("spark", "trino", "change"), DIFFERENT)
def test_where_queries_differ(tmp_path: Path, spark: str, trino: str, change: str) -> None:
    found = stored(tmp_path, spark=spark, trino=trino).compare_dialects("TRINO", "spark")
    assert (found.a, found.b, found.same_query) == ("trino", "spark", False)
    assert change in " ".join(one.text for one in found.changes)
    assert "may still be equivalent" in repr(found)


def test_what_cannot_be_compared_says_why(tmp_path: Path) -> None:
    found = stored(tmp_path, spark="SELECT 1", flink="SELECT 1").compare_dialects()
    assert found.same_query is None
    assert "flink: sqlglot does not know the dialect" in found.note
    found = stored(tmp_path, spark="SELECT FROM WHERE", trino="SELECT 1").compare_dialects()
    assert found.same_query is None
    assert "spark: its SQL is not valid" in found.note
    deep = f"SELECT {'(' * 3000}1{')' * 3000}"
    assert stored(tmp_path, spark=deep, trino=deep).compare_dialects().same_query is None


def test_which_dialects_are_meant(tmp_path: Path) -> None:
    three = stored(tmp_path, spark="SELECT 1 a", trino="SELECT 1 a", duckdb="SELECT 2 a")
    assert three.compare_dialects("spark", "trino").same_query is True
    for wrong in ((), ("spark",), ("spark", "hive"), (3, "spark")):
        with pytest.raises(ix.OptionError, match="'spark', 'trino', 'duckdb'"):
            three.compare_dialects(*wrong)
    with pytest.raises(ix.OptionError, match="in 1 dialects"):
        stored(tmp_path / "one", spark="SELECT 1").compare_dialects()


def test_hostile_sql_is_escaped(tmp_path: Path) -> None:
    v = stored(tmp_path, spark="SELECT '<script>\x1b[31m' a FROM t", trino="SELECT '<b>' a FROM t")
    found = v.compare_dialects()
    assert found.same_query is False
    assert "\x1b" not in repr(found)
    assert "<script>" not in found._repr_html_()
