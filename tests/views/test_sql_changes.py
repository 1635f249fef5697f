"""Queries compared as syntax trees: the changes in words, and that no difference is missed."""

from __future__ import annotations

import logging
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceexplore.views.sql._changes import query_changes
from iceexplore.views.sql._parse import MOST_CHARACTERS, ParsedQuery, UnparsedQuery, format_sql, parse_query


def parsed(text: str, dialect: str = "spark") -> ParsedQuery:
    """The tree of a query."""
    found = parse_query(text, dialect)
    assert isinstance(found, ParsedQuery), found
    return found


def why(text: str, dialect: str | None = "spark") -> str:
    """Why a query has no tree."""
    found = parse_query(text, dialect)
    assert isinstance(found, UnparsedQuery), found
    return found.why


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("select a, b from t", "SELECT  a,\n b -- comment\nFROM t"),
        ("select a from t where x != 1", "/* why */ select a from t where x <> 1"),
        ("(select a from t)", "select a from t"),
        ("select a as x from t", "select a x from t"),
    ],
)
def test_the_same_query(old: str, new: str) -> None:
    assert query_changes(parsed(old), parsed(new)) == []


@pytest.mark.parametrize(
    ("old", "new", "texts"),
    [
        ("select a, b from t", "select a, c from t", ["column c added", "column b removed"]),
        ("select a, b from t", "select a, c, b + 1 as b from t",
         ["column c added", "column b changed: b → b + 1 AS b"]),
        ("select a, b from t", "select a as z, b from t", ["column a renamed to z"]),
        ("select a, b from t", "select b, a from t", ["columns reordered: b, a"]),
        ("select a, sum(x) as s from t", "select a, sum(x) as s, max(x) as m from t", ["column m added: MAX(x) AS m"]),
        ("select count(*) from t", "select count(1) from t", ["column changed: COUNT(*) → COUNT(1)"]),
        ("select * from t", "select count(*) as n from t", ["column changed: * → COUNT(*) AS n"]),
        ("select a, a from t", "select a, b, a from t", ["column added: b"]),
        ("select a from t", "select A from t", ["column A added", "column a removed"]),
        ("select distinct a from t", "select a from t", ["DISTINCT removed"]),
        ("select a from t", "select a from u", ["source u added", "source t removed"]),
        ("select a from t", "select a from db.t", ["source t changed: t → db.t"]),
        ("select a from t", "select a from t join u on t.i = u.i", ["source u added: JOIN u ON t.i = u.i"]),
        ("select a from t join u on t.i = u.i", "select a from t left join u on t.i = u.i",
         ["source u changed: JOIN u ON t.i = u.i → LEFT JOIN u ON t.i = u.i"]),
        ("select a from (select a from t) s", "select a from (select a, b from t) s",
         ["in subquery s: column b added"]),
        ("select a from t version as of 5", "select a from t version as of 6",
         ["source t changed: t VERSION AS OF 5 → t VERSION AS OF 6"]),
        ("select a from t", "select a from t where x > 1 and y = 2", ["filter added: x > 1", "filter added: y = 2"]),
        ("select a from t where x > 1", "select a from t where x > 2", ["filter changed: x > 1 → x > 2"]),
        ("select a from t where x > 1 and y = 2", "select a from t where y = 2", ["filter removed: x > 1"]),
        ("select a from t where x > 1 and y = 2", "select a from t where y = 2 and x > 1", ["filter reordered"]),
        ("select a from t group by a", "select a from t group by a, b", ["GROUP BY added: b"]),
        ("select a from t group by a", "select a from t", ["GROUP BY removed: a"]),
        ("select a from t group by a", "select a from t group by rollup(a)", None),
        ("select a from t group by a having count(*) > 1", "select a from t group by a having count(*) > 2",
         ["HAVING filter changed: COUNT(*) > 1 → COUNT(*) > 2"]),
        ("select a from t order by a", "select a from t order by a desc", ["ORDER BY changed: a → a DESC"]),
        ("select a from t limit 5", "select a from t limit 6", ["LIMIT changed: 5 → 6"]),
        ("select a from t", "with x as (select 1 as q) select a from t", ["WITH x added"]),
        ("with x as (select 1 as q) select q from x", "with x as (select 2 as q) select q from x",
         ["in WITH x: column q changed: 1 AS q → 2 AS q"]),
        ("with x as (select 1), y as (select 2) select 3", "with y as (select 2), x as (select 1) select 3", None),
        ("select 1 union all select 2", "select 1 union select 2", ["UNION ALL became UNION"]),
        ("select 1 union select 2", "select 1 union select 2 union select 3", ["part of UNION added: SELECT 3"]),
        ("select a from t union select b from u", "select a from t union select b from u where x = 1",
         ["in part 2 of UNION: filter added: x = 1"]),
        ("select 1 union select 2", "select 1 intersect select 2", ["query changed: SELECT 1 UNION SELECT 2 → "
         "SELECT 1 INTERSECT SELECT 2"]),
        ("select /*+ BROADCAST(t) */ a from t", "select a from t", ["hint removed: /*+ BROADCAST(t) */"]),
        ("select a from t lateral view explode(x) e as y", "select a from t lateral view explode(z) e as y",
         ["lateral views changed: LATERAL VIEW EXPLODE(x) e AS y → LATERAL VIEW EXPLODE(z) e AS y"]),
        ("select sum(x) over (partition by a) from t", "select sum(x) over (partition by b) from t",
         ["column changed: SUM(x) OVER (PARTITION BY a) → SUM(x) OVER (PARTITION BY b)"]),
    ],
)  # fmt: skip
def test_changes_in_words(old: str, new: str, texts: list[str] | None) -> None:
    found = [change.text for change in query_changes(parsed(old), parsed(new))]
    assert found if texts is None else found == texts
    back = query_changes(parsed(new), parsed(old))
    assert back, "what differs one way differs the other way"
    assert query_changes(parsed(old), parsed(old)) == []


def test_dialects_decide_what_a_text_means() -> None:
    text = 'SELECT "count"(*) AS n FROM t'  # quoted names in Presto are strings in Spark
    assert isinstance(parse_query(text, "presto"), ParsedQuery)
    assert why(text, "spark").startswith("its SQL is not valid spark, according to sqlglot: ")
    assert why(text, "spark").endswith("(line 1, column 16)")
    assert [c.text for c in query_changes(parsed("SELECT `a` FROM t"), parsed('SELECT "a" FROM t', "trino"))] == []
    for name in ("spark-sql", "Spark", "SPARK_SQL", "prestosql", "PostgreSQL"):
        assert isinstance(parse_query("SELECT 1", name), ParsedQuery)


@pytest.mark.parametrize(
    ("text", "dialect", "reason"),
    [
        ("SELECT 1", "dialect\x1b", "sqlglot does not know the dialect"),
        ("SELECT 1", None, "its SQL has no dialect"),
        ("SELECT 1", "", "its SQL has no dialect"),
        ("SELECT FROM WHERE", "spark", "not valid spark, according to sqlglot"),
        ("SELECT 'x", "spark", "sqlglot cannot parse its SQL|not valid spark"),
        ("SELECT 1; DROP TABLE t", "spark", "2 statements instead of one"),
        ("", "spark", "0 statements"),
        ("DROP TABLE t", "spark", "not a SELECT statement"),
        ("CALL x()", "spark", "not a SELECT statement"),
        ("garbage in here", "spark", "not a SELECT statement"),
        ("SELECT " + "(" * 5_000 + "1" + ")" * 5_000, "spark", "nested too deeply"),
        ("SELECT " + "not " * 5_000 + "1", "spark", "nested too deeply"),
        ("SELECT " + "1," * MOST_CHARACTERS + "1", "spark", "more than 200,000 characters"),
        # sqlglot takes exponential time for this.
        ("SELECT 1 FROM t" + " JOIN t" * 60, "spark", "parsing its SQL takes sqlglot too long"),
    ],
)
def test_what_cannot_be_parsed_has_a_reason(text: str, dialect: str | None, reason: str) -> None:
    assert re.search(reason, why(text, dialect)), why(text, dialect)


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        for text in ("ALTER TABLE evil ADD nonsense \x1b[31m", "SELECT 1 FROM", "SHOW evil THINGS \x1b", "SELECT $$"):
            parse_query(text, "spark")
    assert caplog.text == "" and capfd.readouterr() == ("", "")
    assert not logging.getLogger("sqlglot").disabled


def test_without_sqlglot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    assert why("SELECT 1") == "sqlglot is not installed: pip install sqlglot"
    assert format_sql("SELECT 1", "spark") is None


def test_a_parser_that_cannot_be_limited_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    from sqlglot.dialects.spark import Spark

    class Sealed:
        def __init_subclass__(cls) -> None:
            raise TypeError("interpreted classes cannot inherit from compiled")

    monkeypatch.setattr(Spark, "parser_class", Sealed)
    assert why("SELECT 1") == "sqlglot's compiled parser cannot be limited: pip uninstall sqlglotc"


_WORDS = st.sampled_from(
    re.findall(
        r"\S+",
        "select from where group by having order limit union all join left on as with a b t u x 1 2 'é' ( ) , . * + - "
        "= < > and or not in exists case when then else end over partition count sum cast date null distinct -- ; `",
    )
)


@given(st.lists(_WORDS, max_size=25), st.lists(_WORDS, max_size=8), st.sampled_from(["spark", "trino", "duckdb"]))
def test_any_two_texts(words: list[str], more: list[str], dialect: str) -> None:
    base = "select a, count(*) as n from t join u on t.i = u.i where a > 1 group by a"
    one, other = parse_query(f"{base} {' '.join(words)}", dialect), parse_query(f"{base} {' '.join(more)}", dialect)
    if isinstance(one, ParsedQuery) and isinstance(other, ParsedQuery):
        changes = query_changes(one, other)
        assert bool(changes) is (one.tree != other.tree)
        assert all(change.text and len(change.text) < 1000 for change in changes)


def test_long_chains() -> None:
    many = " union all ".join(f"select {i} as x" for i in range(300))
    assert [c.text for c in query_changes(parsed(many), parsed(f"{many} union all select 5"))] == [
        "part of UNION added: SELECT 5"
    ]
    filters = " and ".join(f"x{i} = 1" for i in range(150))
    removed = query_changes(parsed(f"select a from t where {filters}"), parsed("select a from t"))
    assert removed[0].text == "filter removed: x0 = 1"
    assert len(removed) == 150
    columns = ", ".join(f"c{i}" for i in range(3000))
    assert [
        c.text for c in query_changes(parsed(f"select {columns} from t"), parsed(f"select {columns}, z from t"))
    ] == ["column z added"]
