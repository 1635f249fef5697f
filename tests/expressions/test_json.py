"""The JSON of expressions: round trips, the spec's logic row by row, PyIceberg's evaluator, hostile input."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg import expressions as ex
from pyiceberg.expressions.visitors import expression_evaluator
from pyiceberg.schema import Schema as PySchema
from pyiceberg.typedef import Record
from pyiceberg.types import DoubleType, LongType, StringType
from pyiceberg.types import NestedField as PyField

import iceexplore as ix
from iceexplore.errors import OptionError
from iceexplore.expressions import (
    Always,
    Computed,
    Predicate,
    bind_filter,
    columns_of,
    expression_from_json,
    expression_pyiceberg,
    expression_sql,
    expression_to_json,
    negated,
    predicates,
)
from iceexplore.metadata import parse_schema, parse_transform
from iceexplore.planning import evaluate
from tests.helpers.filter_texts import Meaning, filters
from tests.helpers.filter_types import ROWS, SCHEMA, table_of

TABLE = table_of(ROWS)
Json = Any

SMALL = parse_schema(
    {
        "type": "struct",
        "schema-id": 0,
        "fields": [
            {"id": 1, "name": "i", "type": "int", "required": False},
            {"id": 2, "name": "d", "type": "double", "required": False},
            {"id": 3, "name": "s", "type": "string", "required": False},
            {"id": 4, "name": "t", "type": "string", "required": False},
            {"id": 5, "name": "day", "type": "date", "required": False},
            {"id": 6, "name": "l", "type": "long", "required": False},
            {"id": 7, "name": "at", "type": "struct", "fields": [], "required": False}
            | {"type": {"type": "struct", "fields": [{"id": 8, "name": "x", "type": "int", "required": False}]}},
        ],
    }
)
NAN = float("nan")
VALUES: dict[str, list[Any]] = {
    "i": [None, -1, 0, 1, 5, 2**31 - 1],
    "d": [None, -1.5, -0.0, 0.0, 1.0, 5.0, NAN, float("inf")],
    "s": [None, "", "a", "A", "ab", "Ab", "日本"],
    "t": [None, "", "a", "ab", "日"],
    "day": [None, 0, 19_000, 19_001, -1],
    "l": [None, -1, 0, 1, 5, 2**40],
}
COLUMNS = {"i": pa.int32(), "d": pa.float64(), "s": pa.string(), "t": pa.string(), "day": pa.date32(), "l": pa.int64()}
SMALL_ROWS = [
    {name: values[(n * (k + 3) + n // 7 + k) % len(values)] for k, (name, values) in enumerate(VALUES.items())}
    for n in range(240)
]


def _small() -> pa.Table:
    fields = [
        pa.field(name, kind, metadata={"PARQUET:field_id": str(SMALL_ID[name])}) for name, kind in COLUMNS.items()
    ]
    columns = [pa.array([r[f.name] for r in SMALL_ROWS], f.type) for f in fields]
    return pa.table(columns, schema=pa.schema(fields))


SMALL_ID = {"i": 1, "d": 2, "s": 3, "t": 4, "day": 5, "l": 6}
SMALL_TABLE = _small()


def ref(name: str) -> Json:
    return {"type": "reference", "name": name}


def call(catalog: str, name: str, *arguments: Json) -> Json:
    return {"type": "apply", "function": {"catalog": catalog, "identifier": [name]}, "arguments": list(arguments)}


# Round trips


@given(wanted=filters())
def test_the_json_of_a_filter_selects_its_rows(wanted: tuple[str, Meaning]) -> None:
    expression = bind_filter(SCHEMA, wanted[0])
    for form in ("spec", "rest"):
        if any(p.op.endswith("starts-with") and str(p.type) == "binary" for p in predicates(expression)):
            with pytest.raises(OptionError, match="only strings have prefixes"):
                expression_to_json(expression, form=form)
            continue
        found = expression_to_json(expression, form=form)
        text = json.dumps(found, allow_nan=False)
        again = bind_filter(SCHEMA, text if text[0] == "{" else found)
        assert evaluate(again, TABLE).equals(evaluate(expression, TABLE)), text
        # Written and read once more, nothing is added.
        assert expression_to_json(bind_filter(SCHEMA, found), form=form) == expression_to_json(again, form=form)


@given(wanted=filters())
def test_references_by_id(wanted: tuple[str, Meaning]) -> None:
    expression = bind_filter(SCHEMA, wanted[0])
    try:
        found = expression_to_json(expression, references="id")
    except OptionError:
        return
    assert '"name"' not in json.dumps(found)
    assert evaluate(bind_filter(SCHEMA, found), TABLE).equals(evaluate(expression, TABLE))


def test_filters_of_sql_and_of_json_differ_for_nulls_only() -> None:
    wrote = expression_to_json(bind_filter(SMALL, "i <> 5"))
    bare = {"type": "not-eq", "left": ref("i"), "right": 5}
    assert wrote == {"type": "and", "left": {"type": "not-null", "child": ref("i")}, "right": bare}
    of_sql = evaluate(bind_filter(SMALL, "i <> 5"), SMALL_TABLE).to_pylist()
    of_json = evaluate(bind_filter(SMALL, bare), SMALL_TABLE).to_pylist()
    for row, a, b in zip(SMALL_ROWS, of_sql, of_json, strict=True):
        assert b == (a or row["i"] is None)
    assert expression_sql(bind_filter(SMALL, wrote), "sql") == "i <> 5"


# The spec's logic, in plain Python


def _same(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is None and b is None
    return bool((a != a and b != b) or a == b)


def _compare(op: str, a: Any, b: Any) -> bool:
    unordered = a is None or b is None or a != a or b != b
    match op:
        case "eq":
            return _same(a, b)
        case "not-eq":
            return not _same(a, b)
        case "lt" | "gt":
            return not unordered and bool(a < b if op == "lt" else a > b)
        case "lt-eq":
            return _same(a, b) or _compare("lt", a, b)
    return _same(a, b) or _compare("gt", a, b)


def _value(node: Json, row: dict[str, Any]) -> Any:
    if not isinstance(node, dict):
        return node
    match node["type"]:
        case "literal":
            return node["python"]
        case "reference":
            return row[node["name"]]
    name, arguments = node["function"]["identifier"][0], node["arguments"]
    if name == "if_else":
        return _value(arguments[1] if _true(arguments[0], row) else arguments[2], row)
    values = [_value(a, row) for a in arguments]
    if name == "coalesce":
        return next((v for v in values if v is not None), None)
    if values[-1] is None:
        return None
    match name:
        case "lower" | "upper":
            return getattr(values[0], name)()
        case "char_length":
            return len(values[0])
        case "octet_length":
            return len(values[0].encode())
        case "identity":
            return values[0]
        case "truncate" if isinstance(values[1], str):
            return values[1][: values[0]]
        case "truncate":
            return values[1] - values[1] % values[0]
        case "bucket":
            apply = parse_transform(f"bucket[{values[0]}]").scalar_function(SMALL.fields[2].type)
            assert apply is not None
            return apply(values[1])
    raise AssertionError(name)


def _true(node: Json, row: dict[str, Any]) -> bool:
    if isinstance(node, bool):
        return node
    kind = node["type"]
    match kind:
        case "not":
            return not _true(node["child"], row)
        case "and" | "or":
            sides = [_true(node[side], row) for side in ("left", "right")]
            return all(sides) if kind == "and" else any(sides)
        case "is-null" | "not-null":
            return bool((_value(node["child"], row) is None) == (kind == "is-null"))
        case "is-nan" | "not-nan":
            value = _value(node["child"], row)
            return bool((value is not None and value != value) == (kind == "is-nan"))
        case "in" | "not-in":
            value = _value(node["child"], row)
            return bool(any(_same(value, v) for v in node["values"]) == (kind == "in"))
        case "starts-with" | "not-starts-with":
            value = _value(node["left"], row)
            return bool((value is not None and value.startswith(node["right"])) == (kind == "starts-with"))
    return _compare(kind, _value(node["left"], row), _value(node["right"], row))


_TEXTS = ["", "a", "A", "ab", "日"]
_NUMBERS = [-1, 0, 1, 5, 3]


def texts(depth: int) -> st.SearchStrategy[Json]:
    plain = st.sampled_from([ref("s"), ref("t")])
    if not depth:
        return plain
    inner = texts(depth - 1)
    return st.one_of(
        plain,
        st.builds(lambda f, x: call("sql_functions", f, x), st.sampled_from(["lower", "upper"]), inner),
        st.builds(lambda n, x: call("iceberg_functions", "truncate", n, x), st.sampled_from([1, 2]), inner),
        st.builds(lambda x, y: call("sql_functions", "coalesce", x, y), inner, st.sampled_from(_TEXTS)),
        st.builds(
            lambda c, x, y: call("iceberg_functions", "if_else", c, x, y),
            predicates_of(depth - 1), inner, inner | st.sampled_from(_TEXTS),
        ),
    )  # fmt: skip


def numbers(depth: int) -> st.SearchStrategy[Json]:
    plain = st.sampled_from([ref("i"), ref("l"), ref("d")])
    if not depth:
        return plain
    whole = st.sampled_from([ref("i"), ref("l")])
    return st.one_of(
        plain,
        st.builds(lambda f, x: call("sql_functions", f, x), st.sampled_from(["char_length", "octet_length"]),
                  texts(depth - 1)),
        st.builds(lambda n, x: call("iceberg_functions", "truncate", n, x), st.sampled_from([2, 10]), whole),
        st.builds(lambda n, x: call("iceberg_functions", "bucket", n, x), st.sampled_from([2, 16]), texts(0)),
        st.builds(lambda x: call("iceberg_functions", "identity", x), plain),
    )  # fmt: skip


def predicates_of(depth: int) -> st.SearchStrategy[Json]:
    ops = st.sampled_from(["lt", "lt-eq", "gt", "gt-eq", "eq", "not-eq"])
    starts = st.sampled_from(["starts-with", "not-starts-with"])
    sets, tests = st.sampled_from(["in", "not-in"]), st.sampled_from(["is-null", "not-null"])
    number, text = numbers(depth), texts(depth)

    def compare(op: str, left: Json, right: Json) -> Json:
        return {"type": op, "left": left, "right": right}

    leaves = st.one_of(
        st.builds(compare, ops, number, st.sampled_from(_NUMBERS)),
        st.builds(compare, ops, st.sampled_from(_NUMBERS), number),
        st.builds(compare, ops, number, number),
        st.builds(compare, ops, text, st.sampled_from(_TEXTS)),
        st.builds(compare, ops, text, text),
        st.builds(compare, starts, text, st.sampled_from(_TEXTS)),
        st.builds(lambda op, x, v: {"type": op, "child": x, "values": v}, sets, number,
                  st.lists(st.sampled_from(_NUMBERS), max_size=3)),
        st.builds(lambda op, x, v: {"type": op, "child": x, "values": v}, sets, text,
                  st.lists(st.sampled_from(_TEXTS), max_size=3)),
        st.builds(lambda op, x: {"type": op, "child": x}, tests, number | text),
        st.builds(lambda op: {"type": op, "child": ref("d")}, st.sampled_from(["is-nan", "not-nan"])),
        st.booleans(),
    )  # fmt: skip
    if not depth:
        return leaves
    inner = predicates_of(depth - 1)
    return st.one_of(
        leaves,
        st.builds(lambda c: {"type": "not", "child": c}, inner),
        st.builds(lambda op, a, b: {"type": op, "left": a, "right": b}, st.sampled_from(["and", "or"]), inner, inner),
    )


@given(wanted=predicates_of(2))
def test_against_the_words_of_the_spec(wanted: Json) -> None:
    expression = expression_from_json(SMALL, wanted)
    meant = [_true(wanted, row) for row in SMALL_ROWS]
    assert evaluate(expression, SMALL_TABLE).to_pylist() == meant
    assert evaluate(expression_from_json(SMALL, {"type": "not", "child": wanted}), SMALL_TABLE).to_pylist() == [
        not m for m in meant
    ]
    again = expression_from_json(SMALL, json.dumps(expression_to_json(expression)) if meant else wanted)
    assert evaluate(again, SMALL_TABLE).to_pylist() == meant


def test_a_negated_comparison_of_a_function() -> None:
    lower = call("sql_functions", "lower", ref("s"))
    expression = expression_from_json(SMALL, {"type": "eq", "left": lower, "right": "a"})
    assert isinstance(expression, Computed)
    assert set(columns_of(expression)) == {3}
    found = evaluate(negated(expression), SMALL_TABLE).to_pylist()
    assert found == [row["s"] is not None and row["s"].lower() != "a" for row in SMALL_ROWS]
    assert expression_sql(expression, "sql") == "lower(s) = 'a'"
    with pytest.raises(OptionError, match="columns only"):
        expression_pyiceberg(expression)


# PyIceberg's own evaluator has the same two values


def _pyiceberg() -> st.SearchStrategy[ex.BooleanExpression]:
    compare: list[Callable[[str, Any], ex.BooleanExpression]] = [
        ex.EqualTo, ex.NotEqualTo, ex.LessThan, ex.LessThanOrEqual, ex.GreaterThan, ex.GreaterThanOrEqual,
    ]  # fmt: skip
    number = st.tuples(st.sampled_from(["l", "d"]), st.sampled_from([-1, 0, 1, 5]))
    text = st.tuples(st.just("s"), st.sampled_from(_TEXTS))
    leaves: st.SearchStrategy[ex.BooleanExpression] = st.one_of(
        st.builds(lambda op, pair: op(*pair), st.sampled_from(compare), number | text),
        st.builds(lambda op, v: op("s", v), st.sampled_from([ex.StartsWith, ex.NotStartsWith]), st.just("a")),
        st.builds(lambda op, v: op("l", v), st.sampled_from([ex.In, ex.NotIn]),
                  st.sets(st.sampled_from([-1, 0, 5]), min_size=1)),
        st.builds(lambda op, name: op(name), st.sampled_from([ex.IsNull, ex.NotNull]),
                  st.sampled_from(["l", "d", "s"])),
    )  # fmt: skip
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(ex.Not, inner), st.builds(ex.And, inner, inner), st.builds(ex.Or, inner, inner)
        ),
        max_leaves=5,
    )


@given(wanted=_pyiceberg())
def test_the_json_of_pyiceberg(wanted: ex.BooleanExpression) -> None:
    text = wanted.model_dump_json()
    expression = bind_filter(SMALL, text if text[0] == "{" else json.loads(text))
    names = ["l", "d", "s"]
    schema = PySchema(
        PyField(6, "l", LongType(), required=False),
        PyField(2, "d", DoubleType(), required=False),
        PyField(3, "s", StringType(), required=False),
    )
    meant = expression_evaluator(schema, wanted, case_sensitive=True)
    rows = [{n: v for n, v in row.items() if n in names} for row in SMALL_ROWS]
    # A NaN is below nothing here, and PyIceberg compares it with Python's operators, which say the same.
    assert evaluate(expression, SMALL_TABLE).to_pylist() == [meant(Record(*(r[n] for n in names))) for r in rows]


# Hostile and wrong JSON


def _deep(levels: int) -> str:
    return '{"type":"not","child":' * levels + "true" + "}" * levels


EQ = {"type": "eq", "left": ref("i"), "right": 5}
WRONG: dict[str, tuple[Any, str]] = {
    "no JSON": ("{type: eq}", "cannot be parsed"),
    "NaN": ('{"type":"eq","left":{"type":"reference","name":"d"},"right":NaN}', "NaN is not JSON"),
    "infinite": ({"type": "lt", "left": ref("d"), "right": float("inf")}, "infinity"),
    "a huge number": ('{"type":"eq","left":1' + "0" * 5000 + "}", "cannot be parsed"),
    "a key twice": ('{"type":"not","type":"and","child":true}', "same key twice"),
    "too deep": (_deep(100), "nested deeper than 64"),
    "far too deep": (_deep(20_000), "nested"),
    "too long": ('{"type":"' + "x" * 1_000_001, "more than 1,000,000"),
    "null": ({"type": "eq", "left": ref("i"), "right": None}, "use is-null"),
    "a list": ({"type": "not", "child": []}, "a predicate must be true, false or an object"),
    "no type": ({"left": 1}, "needs a text 'type'"),
    "an unknown type": ({"type": "like", "left": ref("s"), "right": "a"}, "unknown type"),
    "an unknown key": (EQ | {"case": 1}, "unknown key"),
    "a missing key": ({"type": "eq", "left": ref("i")}, "needs 'right'"),
    "a value alone": (ref("i"), "is not a predicate"),
    "two constants": ({"type": "eq", "left": "i", "right": 5}, "two constants"),
    "an unknown column": ({"type": "eq", "left": ref("x"), "right": 5}, "no column 'x'"),
    "an unknown id": ({"type": "eq", "left": {"type": "reference", "id": 99}, "right": 5}, "no column with id 99"),
    "an id of text": ({"type": "eq", "left": {"type": "reference", "id": "1"}, "right": 5}, "whole number"),
    "text for a number": ({"type": "eq", "left": ref("i"), "right": "5"}, "does not fit int"),
    "a number for text": ({"type": "eq", "left": ref("s"), "right": 5}, "does not fit string"),
    "a wrong type": (
        {"type": "eq", "left": ref("s"), "right": {"type": "literal", "value": 5, "data-type": "int"}},
        "cannot be compared",
    ),
    "no such type": (
        {"type": "eq", "left": ref("s"), "right": {"type": "literal", "value": 5, "data-type": "blob"}},
        "'data-type' must be",
    ),
    "columns of two kinds": ({"type": "eq", "left": ref("s"), "right": ref("i")}, "not comparable"),
    "a struct": ({"type": "eq", "left": ref("at"), "right": 5}, "cannot be compared"),
    "structs": ({"type": "eq", "left": ref("at"), "right": ref("at")}, "only primitive"),
    "a prefix of a number": ({"type": "starts-with", "left": ref("i"), "right": "a"}, "does not fit int"),
    "nan of a number": ({"type": "is-nan", "child": ref("i")}, "only float and double"),
    "values of no list": ({"type": "in", "child": ref("i"), "values": 5}, "must be a list"),
    "a function without a catalog": (
        {"type": "eq", "left": {"type": "apply", "function": "lower", "arguments": [ref("s")]}, "right": "a"},
        "user-defined function",
    ),
    "another catalog": ({"type": "eq", "left": call("main", "f", ref("s")), "right": "a"}, "catalog"),
    "an unknown function": (
        {"type": "eq", "left": call("sql_functions", "md5", ref("s")), "right": "a"},
        "not supported",
    ),
    "an unknown transform": (
        {"type": "eq", "left": call("iceberg_functions", "zorder", ref("s")), "right": "a"},
        "iceberg_functions has no",
    ),
    "void": ({"type": "is-null", "child": call("iceberg_functions", "void", ref("s"))}, "iceberg_functions has no"),
    "a function of a wrong type": (
        {"type": "eq", "left": call("sql_functions", "lower", ref("i")), "right": "a"},
        "lower cannot be applied to int",
    ),
    "no width": ({"type": "eq", "left": call("iceberg_functions", "bucket", ref("s")), "right": 1}, "two arguments"),
    "a width of 0": (
        {"type": "eq", "left": call("iceberg_functions", "bucket", 0, ref("s")), "right": 1},
        "whole number above 0",
    ),
    "if_else of two": (
        {"type": "eq", "left": call("iceberg_functions", "if_else", True, ref("s"), ref("i")), "right": "a"},
        "must have one type",
    ),
    "a value as condition": (
        {"type": "eq", "left": call("iceberg_functions", "if_else", ref("s"), "a", "b"), "right": "a"},
        "is not a predicate",
    ),
    "REST's term as a number": ({"type": "eq", "term": 5, "value": 5}, "a term must be a name"),
    "REST's key and the spec's": ({"type": "eq", "term": "i", "right": 5}, "needs 'value'"),
    "constants only": ({"type": "is-null", "child": call("sql_functions", "lower", "A")}, "constants only"),
    "a control character": ({"type": "eq", "left": ref("\x1b[31m"), "right": 5}, "no column"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_json_is_refused(name: str) -> None:
    given_, message = WRONG[name]
    with pytest.raises(OptionError) as raised:
        bind_filter(SMALL, given_)
    assert message in str(raised.value)
    assert "\x1b" not in str(raised.value)
    assert len(str(raised.value)) < 2000


def test_too_many_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iceexplore.expressions._from_json.MAX_NODES", 1000)
    with pytest.raises(OptionError, match="more than 1,000 parts"):
        bind_filter(SMALL, {"type": "in", "child": ref("i"), "values": [1] * 1001})


def test_a_long_chain() -> None:
    chain: Json = EQ
    for n in range(3000):
        chain = {"type": "or", "left": chain, "right": {"type": "eq", "left": ref("i"), "right": n}}
    found = expression_from_json(SMALL, chain)
    wrote = json.dumps(expression_to_json(found))
    assert evaluate(bind_filter(SMALL, wrote), SMALL_TABLE).equals(evaluate(found, SMALL_TABLE))


_WORDS = ["eq", "and", "not", "in", "reference", "literal", "apply", "is-null", "literals", "transform"]
_KEYS = ["type", "left", "right", "child", "values", "term", "value", "name", "function", "arguments"]
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["i", "s"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(_KEYS), inner | st.sampled_from(_WORDS), max_size=4)
    ),
    max_leaves=12,
)


@given(junk=JUNK)
def test_any_json_gives_an_expression_or_our_error(junk: Json) -> None:
    try:
        found = expression_from_json(SMALL, junk)
    except OptionError:
        return
    assert isinstance(found, (Always, Predicate)) or evaluate(found, SMALL_TABLE) is not None


# Wherever a filter is accepted


def test_a_table_takes_json_wherever_it_takes_a_filter() -> None:
    t = ix.sample("trips")
    sql = "rider <> 'guest' and km > 3"
    wanted = t.plan(sql).filter.to_json()
    rows = t.to_arrow(sql)
    assert rows.num_rows
    for where in (wanted, json.dumps(wanted, indent=2)):
        assert t.to_arrow(where).equals(rows)
        assert t.count(where) == rows.num_rows
        assert len(t.plan(where).tasks) == len(t.plan(sql).tasks)
        assert t.plan(where).filter.text == "rider <> 'guest' AND km > 3.0D"
    with pytest.raises(OptionError, match="cannot be written as an expression"):
        t.plan(sql, partition={"started_at_month": "2024-05"}).filter.to_json()


def test_functions_prune_by_partition_and_by_bounds() -> None:
    t = ix.sample("trips")
    day = call("iceberg_functions", "day", ref("started_at"))
    month = call("iceberg_functions", "month", ref("started_at"))
    lower = call("sql_functions", "lower", ref("rider"))
    every = t.to_arrow()
    days = [str(v)[:10] for v in every["started_at"].to_pylist()]
    for wanted, meant in (
        ({"type": "eq", "left": day, "right": "2024-05-01"}, [d == "2024-05-01" for d in days]),
        ({"type": "lt", "left": day, "right": "2024-04-21"}, [d < "2024-04-21" for d in days]),
        ({"type": "eq", "left": month, "right": 652}, [d[:7] == "2024-05" for d in days]),
        ({"type": "eq", "left": lower, "right": "guest"}, [r == "guest" for r in every["rider"].to_pylist()]),
    ):
        plan = t.plan(wanted)
        assert t.to_arrow(wanted).num_rows == sum(meant), wanted
        if "lower" not in json.dumps(wanted):
            assert len(plan.tasks) < len(t.plan().tasks)
            assert any("day(started_at)" in why or "month" in why for why in plan.skipped["why"])
        plan.advice(), plan.tree(), plan.waterfall(), plan.tasks
    with pytest.raises(OptionError, match="not by functions"):
        t.maintenance().rewrite_data_files({"type": "eq", "left": day, "right": "2024-05-01"})
