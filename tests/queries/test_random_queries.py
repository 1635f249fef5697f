"""Random queries: filters, joins, WITH queries, subqueries and set operations, with the rows of SQLite."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pytest

from tests.queries.test_view_rows import Warehouse, in_sqlite, ordered

_COLUMNS = {"t": ("id", "day", "fare", "city", "rider_id", "paid"), "r": ("id", "name")}
_TEXTS = {"city": ("'Oslo'", "'Bergen'", "'x'"), "name": ("'Ada'", "'Bo'", "'Z'")}
_OPERATIONS = ("UNION", "UNION ALL", "EXCEPT", "INTERSECT")
_NUMBERS = {"id": 130, "fare": 30, "paid": 16, "rider_id": 4}


class Queries:
    """Makes queries from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def _literal(self, column: str) -> str:
        if column == "day":
            return f"DATE '2024-01-0{self._random.randint(1, 6)}'"
        return (
            self._random.choice(_TEXTS[column]) if column in _TEXTS else str(self._random.randint(-1, _NUMBERS[column]))
        )

    def condition(self, alias: str, depth: int = 0) -> str:
        """Make a condition on columns of ``t`` (trips) or ``r`` (riders)."""
        choose, chance = self._random.choice, self._random.random()
        column = choose(_COLUMNS[alias])
        if depth < 2 and chance < 0.4:
            parts = [self.condition(alias, depth + 1) for _ in range(2)]
            return f"({choose((' AND ', ' OR ')).join(parts)})"
        if chance < 0.48:
            return f"NOT ({self.condition(alias, depth + 1)})"
        if chance < 0.58:
            return f"{alias}.{column} IS {choose(('', 'NOT '))}NULL"
        if chance < 0.7:
            listed = ", ".join(self._literal(column) for _ in range(self._random.randint(1, 6)))
            return f"{alias}.{column} {choose(('', 'NOT '))}IN ({listed})"
        if chance < 0.78:
            return f"{alias}.{column} BETWEEN {self._literal(column)} AND {self._literal(column)}"
        sides = [f"{alias}.{column}", self._literal(column)]
        self._random.shuffle(sides)
        return choose(("=", "<>", "<", "<=", ">", ">=")).join((f"{sides[0]} ", f" {sides[1]}"))

    def query(self) -> tuple[str, str]:
        """Make a query; return it with the columns of its view."""
        where, choose = self.condition, self._random.choice
        join = choose(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
        found = choose(
            (
                (f"SELECT t.id, t.city FROM trips t WHERE {where('t')}", "a long, b string"),
                (
                    "SELECT t.city, count(*), sum(t.rider_id), min(t.fare) FROM trips t "
                    f"WHERE {where('t')} GROUP BY t.city",
                    "a string, b long, c long, d double",
                ),
                (
                    f"SELECT t.id, r.name FROM trips t {join} riders r ON t.rider_id = r.id AND {where(choose('tr'))} "
                    f"WHERE {where(choose('tr'))}",
                    "a long, b string",
                ),
                (
                    f"WITH t AS (SELECT * FROM trips t WHERE {where('t')}) SELECT t.id, r.id, (SELECT count(*) FROM t) "
                    f"FROM t, t r WHERE t.id = r.id + 1 AND {where('t')}",
                    "a long, b long, c long",
                ),
                (
                    f"SELECT t.id FROM trips t WHERE {where('t')} AND t.fare > "
                    f"(SELECT avg(t.fare) FROM trips t WHERE {where('t')})",
                    "a long",
                ),
                (
                    f"SELECT t.id FROM trips t WHERE {choose(('', 'NOT '))}EXISTS "
                    f"(SELECT 1 FROM riders r WHERE r.id = t.rider_id AND {where('r')}) AND {where('t')}",
                    "a long",
                ),
                (
                    f"SELECT t.id FROM trips t WHERE {where('t')} {choose(_OPERATIONS)} "
                    f"SELECT t.id FROM trips t WHERE {where('t')}",
                    "a long",
                ),
            )
        )
        return found


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Warehouse, sqlite3.Connection]:
    made = Warehouse(Path(tmp_path_factory.mktemp("random")))
    return made, in_sqlite(made)


@pytest.mark.parametrize("seed", range(3))
def test_random_queries_have_the_rows_of_sqlite(both: tuple[Warehouse, sqlite3.Connection], seed: int) -> None:
    warehouse, oracle = both
    queries, with_rows = Queries(seed), 0
    for _ in range(25):
        sql, columns = queries.query()
        rows = warehouse.view(sql, columns).to_arrow().to_pylist()
        expected = oracle.execute(sql.replace("DATE '", "'")).fetchall()
        assert ordered([tuple(row.values()) for row in rows]) == ordered(expected), sql
        with_rows += bool(expected)
    assert with_rows > 8
