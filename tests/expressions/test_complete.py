"""What can come next in a filter that is being typed: always something that the parser then takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import iceexplore as ix
from iceexplore.expressions import ALWAYS, Completion, bind_filter, complete_filter
from iceexplore.metadata import ListType, NestedField, PrimitiveType, Schema, StructType
from iceexplore.planning import examples_of, plan_scan
from tests.helpers.tables.plan_table import filled

LONG, STRING, DOUBLE = (PrimitiveType(n) for n in ("long", "string", "double"))
HOSTILE = "<img src=x onerror=alert(1)>"
#: A column with dots in its own name beside a struct of the same names, quotes, markup, a word of SQL.
SCHEMA = Schema(
    0,
    (
        NestedField(1, "id", LONG, True),
        NestedField(2, "a.b", STRING),
        NestedField(3, "a", StructType((NestedField(4, "b", DOUBLE), NestedField(5, "c", LONG)))),
        NestedField(6, 'say "hi"', STRING),
        NestedField(7, HOSTILE, STRING),
        NestedField(8, "order", LONG),
        NestedField(9, "flag", PrimitiveType("boolean")),
        NestedField(10, "tags", ListType(NestedField(11, "element", STRING))),
        NestedField(12, "day", PrimitiveType("date")),
        NestedField(13, "it's", STRING),
        NestedField(14, "`tick`", LONG),
    ),
)
VALUES = {1: ("1", "20"), 2: ("'x'", "'it''s'"), 12: ("'2024-01-01'",)}


def complete(text: str, at: int | None = None) -> Completion:
    return complete_filter(SCHEMA, text, len(text) if at is None else at, lambda i: VALUES.get(i, ()))


def texts(text: str) -> list[str]:
    return [c.text for c in complete(text).choices]


def accepted(text: str, choice: str) -> str:
    found = complete(text)
    return text[: found.start] + choice + text[found.end :]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("", "id"),
        ("i", "id"),
        ("not (", "id"),
        ("id > 1 and ", "id"),
        ("startswith(", "id"),
        ("id ", "="),
        ("id >", ">="),
        ("id <", "<>"),
        ("id = ", "1"),
        ("id = 2", "20"),
        ("id in", "in ("),
        ("id in (", "1"),
        ("id in (1, ", "1"),
        ("id in (1 ", ","),
        ("id in (1) ", "and"),
        ("id between ", "1"),
        ("id between 1 ", "and"),
        ("id between 1 and ", "1"),
        ("id between 1 and 2 o", "or"),
        ("id is ", "null"),
        ("id is not ", "null"),
        ("(id > 1) a", "and"),
        ("flag = ", "true"),
        ("flag ", "="),
        ('"a.b" = ', "'x'"),
        ('"a.b" = \'i', "'it''s'"),
        ("day > date ", "'2024-01-01'"),
        ("a.", "id"),
        ('"say', '"say ""hi"""'),
        ("ord", '"order"'),
        ("tags ", "is null"),
        ("id = 1 or -- why\n da", "day"),
    ],
)
def test_what_comes_next(text: str, first: str) -> None:
    assert texts(text)[0] == first


def test_values_follow_their_column_alone() -> None:
    assert texts("order = ") == texts("nothing = ") == texts("tags = ") == []
    assert texts("id = 1 and day = ") == ["'2024-01-01'"]
    assert [c.kind for c in complete("id = ").choices] == ["value", "value"]


def test_a_choice_that_is_there_already_is_none() -> None:
    assert texts("id") == []
    assert texts("id = 20") == []


def test_every_column_is_offered_as_the_parser_reads_it() -> None:
    expected = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14}
    names = [c.text for c in complete("").choices if c.kind == "column"]
    bound = [bind_filter(SCHEMA, f"{name} is null").field_id for name in names]  # type: ignore[union-attr]
    assert sorted(bound) == sorted(expected)
    for name in names:
        assert complete(f"{name} ").choices, name
        assert texts(f"{name} ")[-1] in ("is not null", "is nan")


def test_the_cursor_is_inside_a_word() -> None:
    text = "i > 5 and day > '2024-01-01'"
    found = complete(text, 1)
    assert (found.start, found.end) == (0, 1)
    assert found.choices[0].text == "id"
    assert accepted("id > 1 an", "and") == "id > 1 and"


def test_words_inside_come_after_words_that_begin_so() -> None:
    schema = Schema(0, tuple(NestedField(i, name, LONG) for i, name in enumerate(("old_day", "day", "days"), 1)))
    assert [c.text for c in complete_filter(schema, "day", 3).choices] == ["day", "days", "old_day"]


@given(st.text(alphabet="iday ab.()<>=!,'\"`-/*12né\x00\ud800\U0001f600", max_size=40), st.integers(-5, 50))
def test_any_text_at_any_place(text: str, at: int) -> None:
    found = complete(text, at)
    assert 0 <= found.start <= found.end <= len(text)
    assert len(found.choices) <= 50


@given(st.lists(st.integers(0, 5), max_size=9))
def test_choices_lead_to_a_filter(picks: list[int]) -> None:
    """Whoever takes one choice after the other never meets what the parser calls wrong, only what is unfinished."""
    text = ""
    for pick in picks:
        choices = complete(text).choices
        if not choices:
            text += "1 "
            continue
        text = accepted(text, choices[pick % len(choices)].text) + " "
    try:
        bind_filter(SCHEMA, text)
    except ix.OptionError as error:
        reason = str(error).partition("\n")[0]
        allowed = ("the text ends", "is empty", "not boolean", "does not fit", "not 1", "cannot be compared")
        assert any(words in reason for words in (*allowed, ", not and", "have prefixes")), (text, reason)


def test_too_long() -> None:
    with pytest.raises(ix.OptionError, match="characters"):
        complete_filter(SCHEMA, "x" * 1_000_001, 5)


def test_examples_are_filters_that_fit(some_table: ix.Table) -> None:
    table = some_table
    found = examples_of(table.state)
    assert found.filters
    for text in found.filters:
        assert len(plan_scan(table.state, text)) >= 1, text
    by_name = {f.field_id: name for name, f in table.schema.walk()}
    for field_id, values in found.values.items():
        for value in values:
            assert bind_filter(table.schema, f"{by_name[field_id]} = {value}") != ALWAYS


@pytest.fixture(params=["sample", "v4"])
def some_table(request: pytest.FixtureRequest) -> ix.Table:
    return ix.sample("trips") if request.param == "sample" else filled("v4-leaves")


def test_no_examples_of_an_empty_table() -> None:
    assert examples_of(ix.empty({"id": "long"}).state).filters == ()
