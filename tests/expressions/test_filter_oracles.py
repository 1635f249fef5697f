"""Filters against other readers of the same text: SQLite, DataFusion, PyIceberg's parser, sqlglot's."""

from __future__ import annotations

import sqlite3
from typing import Any

import datafusion
import pyarrow as pa
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg import expressions as ex
from pyiceberg.expressions import parser as pyiceberg_parser
from sqlglot import exp

from iceexplore.expressions import Or, bind_filter, parse_filter
from iceexplore.expressions._unbound import Both, Compare, Condition, Either, Negation
from iceexplore.planning import evaluate
from tests.helpers.filter_texts import bare
from tests.helpers.filter_types import ROWS, SCHEMA, table_of

TABLE = table_of(ROWS)
#: Texts that mean the same everywhere: no NaN, no infinity, no literal of another type.
PLAIN = {
    "i": ["5", "-1", "2147483647", "0", "3000000000"],
    "l": ["5", "-1", "9223372036854775807", "1"],
    "s": ["'a'", "'ab'", "'it''s'", "''", "'a%b'", "'日本'"],
    "c": ["1.00", "1.01", "-0.01", "1"],
    "day": ["date '2024-01-01'", "date '1969-12-31'"],
    "t": ["timestamp '2024-01-01 12:00:00'", "timestamp '2024-01-01 12:00:00.000001'"],
    "b": ["true", "false"],
}
LOGIC = ["i", "l", "s"]


# DataFusion cannot plan ``i is distinct from 5 and i is null``: SQLite alone is asked that.
@st.composite
def leaf(draw: st.DrawFn, names: list[str], sqlite: bool) -> str:
    name = draw(st.sampled_from(names))
    literal = st.sampled_from(PLAIN[name])
    no = draw(st.sampled_from(["", "not "]))
    match draw(st.sampled_from(["compare", "compare", "in", "between", "null", "like"] + ["distinct"] * sqlite)):
        case "compare":
            op, value = draw(st.sampled_from(["<", "<=", ">", ">=", "=", "<>", "!="])), draw(literal)
            return draw(st.sampled_from([f"{name} {op} {value}", f"{value} {op} {name}", f"{name} {op} null"]))
        case "in":
            items = draw(st.lists(literal | st.just("null"), min_size=1, max_size=4))
            return f"{name} {no}in ({', '.join(items)})"
        case "between":
            return f"{name} {no}between {draw(literal)} and {draw(literal)}"
        case "distinct":
            return f"{name} is {no}distinct from {draw(literal)}"
        case "like" if "s" in names:
            pattern = draw(st.sampled_from(["'a%'", "'%'", "'ab'", "'日%'"]))
            return f"s {no}like {pattern}"
    return f"{name} is {no}null"


def _chain(parts: list[str], words: list[str]) -> str:
    return parts[0] + "".join(word + part for word, part in zip(words, parts[1:], strict=False))


def conditions(names: list[str], sqlite: bool = True) -> st.SearchStrategy[str]:
    """Without superfluous parentheses: what binds stronger is up to the reader."""

    def joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        words = st.lists(st.sampled_from([" and ", " or "]), min_size=3, max_size=3)
        several = st.builds(_chain, st.lists(inner, min_size=2, max_size=4), words)
        one = [inner.map(lambda t: f"not ({t})"), inner.map(lambda t: f"({t})"), inner.map(lambda t: f"not {t}")]
        return st.one_of(several, *one)

    return st.recursive(leaf(names, sqlite), joined, max_leaves=6)


def selected(text: str) -> list[int]:
    found = evaluate(bind_filter(SCHEMA, text), TABLE).to_pylist()
    return [i for i, hit in enumerate(found) if hit]


@given(text=conditions(LOGIC))
def test_sqlite(text: str) -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("create table t (row integer, i integer, l integer, s text)")
    connection.execute("pragma case_sensitive_like = on")
    connection.executemany(
        "insert into t values (?, ?, ?, ?)", [(n, r["i"], r["l"], r["s"]) for n, r in enumerate(ROWS)]
    )
    expected = [n for (n,) in connection.execute(f"select row from t where {text} order by row")]
    connection.close()
    assert selected(text) == expected, text


@pytest.fixture(scope="module")
def context() -> datafusion.SessionContext:
    names = list(PLAIN)
    columns: dict[str, pa.Array] = {n: TABLE.column(n).combine_chunks() for n in names}
    # DataFusion holds timestamps of literals in nanoseconds: those beyond stay out of this comparison.
    columns["t"] = pa.array(
        [None if r["t"] is None or abs(r["t"]) > 2**53 else r["t"] for r in ROWS], pa.int64()
    ).cast(pa.timestamp("us"))  # fmt: skip
    # DataFusion 55 simplifies ``i in (1) and i not in (1)`` to false, but it is null where i is, as is its negation.
    # Without passes of the optimizer, DataFusion evaluates what is written.
    out = datafusion.SessionContext(datafusion.SessionConfig().set("datafusion.optimizer.max_passes", "0"))
    out.register_record_batches("t", [[pa.record_batch({"row": pa.array(range(len(ROWS))), **columns})]])
    return out


@given(text=conditions(list(PLAIN), sqlite=False))
def test_datafusion(context: datafusion.SessionContext, text: str) -> None:
    rows = [{**r, "t": None if r["t"] is None or abs(r["t"]) > 2**53 else r["t"]} for r in ROWS]
    found = evaluate(bind_filter(SCHEMA, text), table_of(rows)).to_pylist()
    batches = context.sql(f"select row from t where {text} order by row").collect()
    expected = [n for batch in batches for n in batch.column(0).to_pylist()]
    assert [i for i, hit in enumerate(found) if hit] == expected, text


def shape(node: Condition) -> Any:
    """And, or, not and comparisons as a tree; parentheses leave no trace."""
    match node:
        case Both(children) | Either(children):
            flat: list[Any] = []
            name = "and" if isinstance(node, Both) else "or"
            for child in map(shape, children):
                flat += child[1] if child[0] == name else [child]
            return name, flat
        case Negation(child):
            inner = shape(child)
            return inner[1] if inner[0] == "not" else ("not", inner)
        case Compare(op, left, right):
            return op, left.at.quoted, right.at.quoted
    raise AssertionError(node)


def sqlglot_shape(node: Any) -> Any:
    match node:
        case exp.Paren():
            return sqlglot_shape(node.this)
        case exp.And() | exp.Or():
            name = "and" if isinstance(node, exp.And) else "or"
            flat: list[Any] = []
            for child in map(sqlglot_shape, (node.left, node.right)):
                flat += child[1] if child[0] == name else [child]
            return name, flat
        case exp.Not():
            inner = sqlglot_shape(node.this)
            return inner[1] if inner[0] == "not" else ("not", inner)
    signs = {exp.EQ: "=", exp.NEQ: "!=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.NullSafeEQ: "<=>"}
    return signs[type(node)], node.left.sql(), node.right.sql()


@st.composite
def chains(draw: st.DrawFn, depth: int = 0) -> str:
    """Comparisons joined without regard to what binds stronger."""
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        word = draw(st.sampled_from(["", "", "not ", "not not "]))
        inner = depth < 3 and draw(st.booleans())
        op = draw(st.sampled_from(["=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>"]))
        parts.append(word + (f"({draw(chains(depth + 1))})" if inner else f"i {op} {draw(st.integers(0, 9))}"))
        parts.append(draw(st.sampled_from(["and", "or", "AND", "Or"])))
    return " ".join(parts[:-1])


@given(text=chains())
def test_what_binds_stronger_is_as_in_sqlglot(text: str) -> None:
    assert shape(parse_filter(text)) == sqlglot_shape(sqlglot.parse_one(text, into=exp.Condition, dialect="spark"))


@pytest.mark.parametrize(
    "text",
    [
        "i = 5", "i == 5", "i != 5", "i <> 5", "i < 5", "i <= 5", "i > 5", "i >= 5", "i in (1, 2, 3)",
        "i not in (1, 2)",
        "s like 'a%'", "s not like 'a%'", "s = 'its'", "s is null", "s is not null",
        "d is nan", "d is not nan", "i = 5 and s = 'a' or l = 7", "not (i = 5 or l > 2)", "i between 1 and 5", "true",
        "false", "d > 1.5", "l < -3", "day = '2024-01-01'", "t >= '2024-01-01T12:00:00'",
        "tz < '2024-01-01T14:00:00+02:00'", "u = '00010203-0405-0607-0809-0a0b0c0d0e0f'", "c = 1.01", "b = true",
        "i is null and (l = 1 or l = 2)", "i < 99999999999", "p.i = 3", "clock > '12:00:00'", "5 < i",
    ],
)  # fmt: skip
def test_texts_that_pyiceberg_reads_too(text: str) -> None:
    theirs = pyiceberg_parser.parse(text)
    assert bare(bind_filter(SCHEMA, text)) == bare(bind_filter(SCHEMA, theirs))


@pytest.mark.parametrize(
    ("where", "text"),
    [
        (ex.EqualTo("i", 5), "i = 5"),
        (ex.NotEqualTo("s", "it's"), "s != 'it''s'"),
        (ex.In("i", [3, 1, 2]), "i in (1, 2, 3)"),
        (ex.NotIn("s", ["a", "b"]), "s not in ('a', 'b')"),
        (ex.Not(ex.In("s", ["a", "b"])), "s not in ('a', 'b')"),
        (ex.IsNull("p.i"), "p.i is null"),
        (ex.NotNull("p"), "p is not null"),
        (ex.IsNaN("f"), "isnan(f)"),
        (ex.NotNaN("f"), "not isnan(f)"),
        (ex.StartsWith("s", "a"), "s like 'a%'"),
        (ex.NotStartsWith("s", "a"), "s not like 'a%'"),
        (ex.And(ex.GreaterThan("l", 2), ex.Or(ex.EqualTo("b", True), ex.AlwaysFalse())), "l > 2 and b"),
        (ex.LessThan("y", b"\x00\xff"), "y < x'00ff'"),
        (ex.EqualTo("f", 0.1), "f = 0.1F"),  # a Python float takes the column's precision, as in Iceberg
        (ex.EqualTo("tz", 1_704_110_400_000_000), "tz = '2024-01-01T12:00:00Z'"),
        (ex.EqualTo("day", 19723), "day = '2024-01-01'"),
        (ex.EqualTo("I", 5), "i = 5"),
    ],
)
def test_pyiceberg_expressions(where: Any, text: str) -> None:
    assert bare(bind_filter(SCHEMA, where)) == bare(bind_filter(SCHEMA, text))


def test_long_chains_of_pyiceberg_expressions() -> None:
    where: Any = ex.EqualTo("l", 0)
    for n in range(1, 5_000):
        where = ex.Or(where, ex.EqualTo("l", n))
    found = bind_filter(SCHEMA, where)
    assert isinstance(found, Or)
    assert len(found.children) == 5_000
