"""Filters bound and evaluated, against the meaning of their texts row by row; in other words they mean the same."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given

from iceexplore.expressions import (
    Always,
    And,
    Expression,
    Or,
    Predicate,
    bind_filter,
    expression_pyiceberg,
    expression_sql,
    negated,
    predicates,
)
from iceexplore.planning import evaluate
from tests.helpers.filter_texts import Meaning, bare, both, either, filters
from tests.helpers.filter_types import KINDS, NAMES, ROWS, SCHEMA, Row, table_of

TABLE = table_of(ROWS)


def naive(expression: Expression, i: int, columns: dict[int, list[Any]]) -> bool | None:
    """What an expression is of a row, predicate by predicate."""
    match expression:
        case Always(value):
            return value
        case And(children) | Or(children):
            out: bool | None = isinstance(expression, And)
            for child in children:
                out = (both if isinstance(expression, And) else either)(out, naive(child, i, columns))
            return out
    assert isinstance(expression, Predicate)
    value = columns[expression.field_id][i]
    nan = isinstance(value, float) and value != value
    match expression.op:
        case "is-null" | "not-null":
            return (value is None) == (expression.op == "is-null")
        case "is-nan" | "not-nan":
            return nan == (expression.op == "is-nan")
    if value is None:
        return None
    x: Any = expression.literals[0]
    match expression.op:
        case "in" | "not-in":
            return (value in expression.literals) == (expression.op == "in")
        case "starts-with" | "not-starts-with":
            return bool(value.startswith(x)) == (expression.op == "starts-with")
        case "=" | "!=":
            return bool(value == x) == (expression.op == "=")
    if nan:
        return False
    return bool({"<": value < x, "<=": value <= x, ">": value > x, ">=": value >= x}[expression.op])


def stored(rows: list[Row]) -> dict[int, list[Any]]:
    """The values of the rows by field id, as literals are stored."""
    names = {(f.field_id): n for n, f in SCHEMA.walk()}
    return {number: [r[name] for r in rows] for number, name in names.items() if rows and name in rows[0]}


@given(wanted=filters())
def test_against_the_meaning_of_the_text(wanted: tuple[str, Meaning]) -> None:
    text, meaning = wanted
    expression = bind_filter(SCHEMA, text)
    found = evaluate(expression, TABLE)
    assert found.null_count == 0
    assert found.to_pylist() == [meaning(row) is True for row in ROWS], text
    for p in predicates(expression):
        assert all(x is not None and x == x for x in p.literals)
        assert len(set(p.literals)) == len(p.literals)
        assert p.text


@given(wanted=filters())
def test_negation(wanted: tuple[str, Meaning]) -> None:
    """``not (...)`` selects the rows for which the text is false; so does the expression negated, of its own."""
    text, meaning = wanted
    columns = stored(ROWS)
    opposite = bind_filter(SCHEMA, f"not ({text})")
    assert evaluate(opposite, TABLE).to_pylist() == [meaning(row) is False for row in ROWS], text
    expression = bind_filter(SCHEMA, text)
    found = [naive(expression, i, columns) for i in range(len(ROWS))]
    assert evaluate(expression, TABLE).to_pylist() == [x is True for x in found]
    assert evaluate(negated(expression), TABLE).to_pylist() == [x is False for x in found]
    assert evaluate(negated(negated(expression)), TABLE).to_pylist() == [x is True for x in found]


@given(wanted=filters())
def test_equivalent_texts_mean_the_same(wanted: tuple[str, Meaning]) -> None:
    expression = bind_filter(SCHEMA, wanted[0])
    assert bare(bind_filter(SCHEMA, expression_sql(expression, "sql"))) == bare(expression)
    assert bare(bind_filter(SCHEMA, expression_pyiceberg(expression))) == bare(expression)
    assert expression_sql(expression)


@given(wanted=filters())
def test_however_the_values_are_held(wanted: tuple[str, Meaning]) -> None:
    """Dictionaries, extension types, other widths, chunks: the same rows."""
    expression = bind_filter(SCHEMA, wanted[0])
    plain = evaluate(expression, TABLE)
    held = TABLE
    for i, field in enumerate(TABLE.schema):
        column = TABLE.column(i).combine_chunks()
        match field.name:
            case "s" | "l":
                column = column.dictionary_encode()
            case "u":
                column = pa.ExtensionArray.from_storage(pa.uuid(), column)
            case "y":
                column = column.cast(pa.large_binary())
            case "x":
                column = column.cast(pa.binary(2))
            case "odd.name":
                column = column.cast(pa.string_view())
        held = held.set_column(i, pa.field(field.name, column.type, metadata=field.metadata), column)
    assert evaluate(expression, held) == plain
    chunked = pa.concat_tables([held.slice(0, 3), held.slice(3, 0), held.slice(3)])
    assert evaluate(expression, chunked) == plain
    assert evaluate(expression, TABLE.select(TABLE.column_names[::-1])) == plain


@given(wanted=filters())
def test_columns_that_are_not_there_are_null(wanted: tuple[str, Meaning]) -> None:
    text, meaning = wanted
    row = dict.fromkeys(NAMES)
    assert evaluate(bind_filter(SCHEMA, text), pa.table({"other": [1]})).to_pylist() == [meaning(row) is True], text


def test_long_lists() -> None:
    """Lists go to a hash table, where -0.0 has to be 0.0 and decimals have their column's scale."""
    for name in ("i", "l", "f", "d", "c", "s", "t", "day"):
        kind = KINDS[name]
        filler = {"s": "'no {}'", "t": "'1980-01-01 00:00:00.{:06}'", "day": "'1980-01-{:02}'"}.get(name, "{}.5")
        for text, literal in kind.literals:
            others = ", ".join(filler.format(n) for n in range(10, 30))
            found = evaluate(bind_filter(SCHEMA, f"{name} in ({others}, {text})"), TABLE).to_pylist()
            assert found == [r[name] is not None and kind.key(r[name]) == literal for r in ROWS], (name, text)
