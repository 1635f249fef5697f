"""Errors in filters show the line, with carets under the word; hostile texts."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyiceberg import expressions as ex

from iceexplore.errors import OptionError
from iceexplore.expressions import And, Or, Predicate, bind_filter, expression_sql
from iceexplore.metadata import parse_schema
from iceexplore.planning import evaluate
from tests.helpers.hangs import ends


def field(number: int, name: str, kind: Any) -> dict[str, Any]:
    return {"id": number, "name": name, "type": kind, "required": False}


LIST = {"type": "list", "element-id": 11, "element": "int", "element-required": False}
POINT = {
    "type": "struct",
    "fields": [field(8, "Longitude", "double"), field(9, "name", "string"), field(10, "tags", LIST)],
}
FIELDS = [
    field(1, "id", "long"), field(2, "day", "date"), field(3, "ts", "timestamptz"), field(4, "flag", "boolean"),
    field(5, "price", "decimal(9,2)"), field(6, "text", "string"), field(7, "point", POINT), field(12, "a.b", "int"),
    field(13, "a", {"type": "struct", "fields": [field(14, "b", "int"), field(15, "C", "int"), field(16, "c", "int")]}),
    field(17, "key", "uuid"), field(18, "raw", "fixed[2]"), field(19, "any", "variant"), field(20, "none", "unknown"),
    field(21, "local", "timestamp"), field(22, "名前", "string"), field(23, "shape", "geometry"),
    field(24, "f", "float"),
]  # fmt: skip
SCHEMA = parse_schema({"type": "struct", "schema-id": 0, "fields": FIELDS})


def message(where: Any) -> str:
    with pytest.raises(OptionError) as caught:
        bind_filter(SCHEMA, where)
    return str(caught.value)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("idd = 1",
         "no column 'idd'; nearest: id\n"
         "  idd = 1\n  ^^^"),
        ("id = 5 and longitud > 3",
         "no column 'longitud'; nearest: point.Longitude\n"
         "  id = 5 and longitud > 3\n             ^^^^^^^^"),
        ("point.lon = 1",
         "no column 'point.lon'; nearest: point.Longitude, point.name, point\n"
         "  point.lon = 1\n  ^^^^^^^^^"),
        ("id = = 1",
         "the filter cannot be parsed at character 5: expected a value after =, not =\n"
         "  id = = 1\n       ^"),
        ("id =",
         "the filter cannot be parsed at character 4: expected a value after =, but the text ends\n"
         "  id =\n      ^"),
        ("(id = 1",
         "the filter cannot be parsed at character 7: expected ')' after the condition, but the text ends\n"
         "  (id = 1\n         ^"),
        ("id = 1 day = 2",
         "the filter cannot be parsed at character 7: expected 'and', 'or' or the end, not day\n"
         "  id = 1 day = 2\n         ^^^"),
        ("id = 1 && flag",
         "the filter cannot be parsed at character 7: write `and`\n"
         "  id = 1 && flag\n         ^^"),
        ("id in (1, 2",
         "the filter cannot be parsed at character 11: expected ')' after the list, but the text ends\n"
         "  id in (1, 2\n             ^"),
        ("",
         "the filter cannot be parsed at character 0: the filter is empty; write a condition like id > 5\n"
         "  \n  ^"),
        ("text = 'abc",
         "the filter cannot be parsed at character 7: unterminated string: missing '\n"
         "  text = 'abc\n         ^"),
        ("id = 1 or\nflag and\n  nope = 2",
         "no column 'nope'; nearest: none, point.name\n"
         "    nope = 2\n    ^^^^"),
        ("day = '2024-13-01'",
         "the filter does not fit the schema: column 'day' is date; 2024-13-01 is not a date\n"
         "  day = '2024-13-01'\n        ^^^^^^^^^^^^"),
        ("day = date '2024-13-01'",
         "'2024-13-01' cannot be read as date: 2024-13-01 is not a date\n"
         "  day = date '2024-13-01'\n             ^^^^^^^^^^^^"),
        ("id = 'abc'",
         "the filter does not fit the schema: column 'id' is long; 'abc' is not a number\n"
         "  id = 'abc'\n       ^^^^^"),
        ("名前 = 1 and x = 2",
         "the filter does not fit the schema: column '名前' is string; a number cannot be compared with it; write "
         "'abc'\n"
         "  名前 = 1 and x = 2\n         ^"),
        (ex.EqualTo("idd", 5),
         "no column 'idd'; nearest: id\n"
         "  idd = 5\n  ^^^"),
        (ex.And(ex.IsNull("id"), ex.In("id", ["x", "y"])),
         "the filter does not fit the schema: column 'id' is long; 'x' is not a number\n"
         "  id in ('x', 'y')\n         ^^^"),
    ],
)  # fmt: skip
def test_the_picture(where: Any, expected: str) -> None:
    assert message(where) == expected


@pytest.mark.parametrize(
    ("where", "word", "expected"),
    [
        ("year(ts) = 2024", "year", "function year is not supported"),
        ("isnam(f)", "isnam", "did you mean isnan"),
        ("id = (select 1)", "select", "subqueries are not supported"),
        ("id in (select 1)", "select", "subqueries are not supported"),
        ("(select 1) = id", "select", "subqueries are not supported"),
        ("exists (select 1)", "exists", "subqueries are not supported"),
        ("id + 1 = 2", "+", "arithmetic is not supported"),
        ("id = point.Longitude", "point.Longitude", "two columns are compared"),
        ('text = "abc"', '"abc"', "no column 'abc'"),
        ("_file is not null and id = 1", "_file", "name it in columns="),
        ("_Partition.day = 1", "_Partition.day", "name it in columns="),
        ("id in (1, day)", "day", "not a column"),
        ("text like '%x'", "'%x'", "only 'abc%'"),
        ("text like 'a_c%'", "'a_c%'", "only 'abc%'"),
        ("text like 'a!' escape '!'", "'a!'", "escape character !"),
        ("text ilike 'x'", "ilike", "ilike is not supported"),
        ("id like '5%'", "id", "only string and binary"),
        ("case when id = 1 then true end", "case", "case is not supported"),
        ("ts > interval 1 day", "interval", "intervals are not supported"),
        ("point.tags.element = 1", "point.tags.element", "is inside a list or map"),
        ("point.tags = 1", "1", "is list, which cannot be compared"),
        ("point = 1", "1", "or compare the columns inside it"),
        ("any = 1", "1", "is variant, which cannot be compared"),
        ("shape < 1", "1", "is geometry, which cannot be compared"),
        ("none in (1)", "none", "is unknown, which cannot be compared"),
        ("any = null", "null", "is variant, which cannot be compared"),
        ("a.d = 1", "a.d", "nearest: a.C"),
        ("A.\"c\" = 1", 'A."c"', "ambiguous if letter case is ignored: a.C, a.c"),
        ("id", "id", "not boolean"),
        ("'abc'", "'abc'", "alone is not a condition"),
        ("id is nan", "id", "only float and double have NaN"),
        ("f = cast('nan' as double)", "cast('nan' as double)", "write isnan(x)"),
        ("f < 'NaN'", "'NaN'", "write isnan(x)"),
        ("key = 'abc'", "'abc'", "'abc' is not a UUID"),
        ("raw = x'00'", "x'00'", "the column's values have 2 bytes, but the literal has 1"),
        ("raw = x'0g'", "x'0g'", "not a binary literal"),
        ("text = x'00'", "x'00'", "a binary literal cannot be compared with it"),
        ("text = 5", "5", "write 'abc'"),
        ("ts > 5", "5", "write timestamp"),
        ("local = '2024-01-01T00:00:00Z'", "'2024-01-01T00:00:00Z'", "no time zone"),
        ("day = '2024-01-01 10:00:00'", "'2024-01-01 10:00:00'", "a date has no time"),
        ("ts = '2024-01-01 00:00:00 No/Where'", "'2024-01-01 00:00:00 No/Where'", "No/Where is not a valid time zone"),
        ("ts = '2024-01-01T00:00:00 ../../etc/passwd'", "'2024-01-01T00:00:00 ../../etc/passwd'", "is not a timestamp"),
        ("ts = '2024-01-01T24:00:00'", "'2024-01-01T24:00:00'", "is not an ISO time"),
        ("id = cast(1.5 as int)", "1.5", "not a whole number"),
        ("id = cast('5' as money)", "money", "is not a type"),
        ("cast(id as int) = 5", "cast(id as", "columns cannot be cast"),
        ("id::int = 5", "id::", "columns cannot be cast"),
        ("id = 5x", "5x", "is not a number"),
        ("id = ?", "?", "parameters are not supported"),
        ("id = :x", ":", "parameters are not supported"),
        ("point.tags[0] = 1", "[", "elements of lists"),
        ("(id = 1) = true", "=", "a condition cannot be compared"),
        ("flag = (id = 1)", "=", "expected ')' after the value"),
        ("id not 5", "5", "'in', 'between' or 'like' after 'not'"),
        ("id between 1, 2", ",", "'and' between the two values"),
        ("id is 5", "5", "null, nan, true, false"),
        ("id = 1; drop table t", "drop", "or the end"),
        ("and id = 1", "and", "expected a column or a value"),
        ("id in ()", ")", "expected a value"),
        ("'a' < date '2024-01-01'", "'a' < date '2024-01-01'", "a column is missing"),
        ("'a' in ('a')", "'a'", "a column is missing"),
        ("startswith('a', text)", "text", "not a column"),
        ("id = #5", "#", "expected a value after ="),
        ("id = 5 and €", "€", "unexpected character"),
        ("text = '\ud800'", "'⟨U+D800⟩'", "lone surrogate"),
    ],
)  # fmt: skip
def test_the_word_and_the_reason(where: str, word: str, expected: str) -> None:
    first, line, carets = message(where).rsplit("\n", 2)
    assert expected in first
    begin = carets.index("^")
    assert line[begin:].startswith(word[:2])
    assert len(carets) - begin == len(word)


def test_control_characters_are_shown() -> None:
    for where in ("\x1b[31mx = 1", "id = '\x1b]0;x\x07'", "\u202eid = 1", "id = \x00", '"\x1b[2J" = 1'):
        shown = message(where)
        assert not set(shown) & {"\x1b", "\x07", "\u202e", "\x00"}
    (p,) = (bind_filter(SCHEMA, "text = '\x1b[31m'"),)
    assert isinstance(p, Predicate)
    assert "\x1b" not in p.text
    assert p.literals == ("\x1b[31m",)
    assert "\x1b" not in expression_sql(p)


def test_names() -> None:
    def found(text: str) -> tuple[int, str]:
        p = bind_filter(SCHEMA, text)
        assert isinstance(p, Predicate)
        return p.field_id, p.name

    assert found("a.b = 1") == found('"a.b" = 1') == found("`A.B` = 1") == (12, "`a.b`")
    assert found('"a"."b" = 1') == found("`a`.b = 1") == (14, "`a`.`b`")
    assert found("a.C = 1") == (15, "a.C")
    assert found("a.c = 1") == (16, "a.c")
    assert found("POINT.longitude = 1") == (8, "point.Longitude")
    assert found('"point.Longitude" = 1') == (8, "point.Longitude")
    assert found("名前 = 'x'") == (22, "名前")
    assert found("point is null") == (7, "point")
    assert found("point.tags is not null") == (10, "point.tags")
    assert found("any is null") == (19, "any")
    assert found("day = '2024-01-01'") == (2, "day")  # words of types are names, too
    assert found("key = 'F79C3E09-677c-4bbd-a479-3f349cb785e7'") == (17, "key")


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("f > 0.5 and id <> 3 or not f < 1",
         "((f > 0.5D AND NOT isnan(f)) AND id <> 3) OR (f >= 1.0D AND NOT isnan(f)) OR isnan(f)"),
        ("`a`.`b` = 1 and point.name = 'it''s \\'", "`a`.`b` = 1 AND point.name = 'it\\'s \\\\'"),
        ("ts >= '2024-01-01T02:00:00+02:00'", "ts >= TIMESTAMP '2024-01-01T00:00:00+00:00'"),
        ("local = '2024-01-01' and day <= '2024-02-29'",
         "local = TIMESTAMP_NTZ '2024-01-01T00:00:00' AND day <= DATE '2024-02-29'"),
        ("price in (1.5, 2, 1.005)", "price IN (1.50, 2.00)"),
        ("raw = x'00ff' and text not like 'a%'", "raw = X'00FF' AND NOT startswith(text, 'a')"),
        ("key = 'F79C3E09-677c-4bbd-a479-3f349cb785e7'", "key = 'f79c3e09-677c-4bbd-a479-3f349cb785e7'"),
        ("名前 = '\n'", "`名前` = '\\u000a'"),
        ("f = cast('-inf' as double) or f is not nan", "f = CAST('-Infinity' AS DOUBLE) OR NOT isnan(f)"),
        ("id < 1e30", "id IS NOT NULL"),
        ("id = null", "false"),
    ],
)  # fmt: skip
def test_sql_for_spark(text: str, sql: str) -> None:
    assert expression_sql(bind_filter(SCHEMA, text)) == sql


def test_texts_of_terms() -> None:
    found = bind_filter(SCHEMA, "id  between 1\n and 5 and not (flag or text = 'x')")
    assert isinstance(found, And)
    assert [p.text for p in found.children if isinstance(p, Predicate)] == [
        "id between 1 and 5", "id between 1 and 5", "not (flag)", "not (text = 'x')",
    ]  # fmt: skip


HOSTILE = {
    "parentheses": "(" * 100_000,
    "closed": "(" * 50_000 + "flag" + ")" * 50_000,
    "closing": ")" * 100_000,
    "calls": "date(" * 50_000,
    "casts": "id = 1" + "::int" * 20_000,
    "nots": "not " * 50_000 + "flag",
    "minuses": "id = " + "- " * 100_000 + "1",
    "name": "x" * 999_999,
    "dots": "a" + ".a" * 50_000,
    "long": "x" * 1_000_001,
    "quotes": "'" * 999_999,
    "comments": "/*" * 400_000,
    "digits": "id = " + "9" * 900_000,
    "decimal": "price = 0." + "9" * 900_000,
    "float": "f = 1" + "0" * 900_000,
    "exponent": "id = 1e999999999999999999",
    "exponents": "f < 1e-999999999 and price > -1e999999999 and id < 1e999999",
    "cast": "id = cast('1e99999999' as bigint)",
    "scale": "price = cast(0.1 as decimal(9,999999999999))",
    "date": "day = '" + "2" * 900_000 + "'",
    "time": "ts = '2024-01-01 " + " " * 900_000 + "x'",
    "like": "text like '" + "\\\\" * 400_000 + "%'",
}


def refusal(text: str) -> str:
    """The error's text, empty where the text is a filter; any other error is raised."""
    try:
        bind_filter(SCHEMA, text)
    except OptionError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts(name: str) -> None:
    with ends():
        assert len(refusal(HOSTILE[name])) < 2_000


def test_long_chains() -> None:
    found = bind_filter(SCHEMA, " or ".join(f"id = {i}" for i in range(10_000)))
    assert isinstance(found, Or)
    assert len(found.children) == 10_000
    several = bind_filter(SCHEMA, f"id in ({', '.join(map(str, range(50_000)))})")
    assert isinstance(several, Predicate)
    assert len(several.literals) == 50_000
    assert len(several.text) <= 200


@pytest.mark.parametrize("spare", [60, 100, 150, 250])
def test_a_stack_that_is_nearly_full(spare: int) -> None:
    """In the thread of a caller that has few frames left: an error of ours or an answer."""
    out: list[Any] = []

    def deep(n: int) -> None:
        if n:
            return deep(n - 1)
        try:
            out.append(bind_filter(SCHEMA, "(" * 60 + "flag" + ")" * 60))
        except OptionError as error:
            out.append(error)
        return None

    thread = threading.Thread(target=deep, args=(sys.getrecursionlimit() - spare,))
    thread.start()
    thread.join()
    assert len(out) == 1


@pytest.mark.parametrize(
    "build",
    [
        lambda e, i: (ex.And if i % 2 else ex.Or)(e, ex.EqualTo("id", i)),
        lambda e, i: (ex.And if i % 2 else ex.Or)(ex.EqualTo("id", i), e),
    ],
)
def test_deep_expressions(build: Callable[[Any, int], Any]) -> None:
    where: Any = ex.EqualTo("id", 0)
    for i in range(500):
        where = build(where, i)
    assert "nested deeper than 64" in message(where)


@pytest.mark.parametrize("where", [7, None, b"id = 1", ["id"]])
def test_neither_text_nor_expression(where: Any) -> None:
    assert "give text or an expression of pyiceberg.expressions" in message(where)


def test_bound_expressions_are_refused() -> None:
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField

    bound = ex.EqualTo("id", 1).bind(Schema(NestedField(1, "id", LongType(), required=False)))
    assert "unbound" in message(bound)


WORDS = st.sampled_from(
    [
        "id", "flag", "text", "point.name", "a.b", "\"", "`", "'", "(", ")", ",", ".", "=", "==", "<>", "<",
        "<=>", ">=", "and", "or", "not", "in", "is", "null", "nan", "like", "'a%'", "between", "5", "-1.5",
        "1e9\n", "true", "date", "'2024-01-01'", "timestamp", "cast", "as", "int", "::", "x'00'", "isnan",
        "startswith", "escape", "distinct", "from", "[", "]", "+", ";", "--", "/*", "*/", "\n\n", "\u001b", "€",
        "名前", "select", "case",
    ]
)  # fmt: skip


@given(st.lists(WORDS, max_size=12).map(" ".join) | st.text(max_size=30))
@example("id = .")
@example("a. = 1")
@example("id in (1,)")
@example("- = 1")
@example("x''")
def test_no_text_raises_anything_else(text: str) -> None:
    refused = refusal(text)
    assert "\x1b" not in refused
    if not refused:
        assert evaluate(bind_filter(SCHEMA, text), pa.table({"none": [None]})).null_count == 0


def test_values_of_another_type_are_an_error() -> None:
    table = pa.table({"id": ["x"]}, schema=pa.schema([pa.field("id", pa.string(), metadata={"PARQUET:field_id": "1"})]))
    with pytest.raises(pa.ArrowInvalid):
        evaluate(bind_filter(SCHEMA, "id = 1"), table)
