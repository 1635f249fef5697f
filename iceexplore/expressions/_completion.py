"""Complete the text of a filter while it is typed: columns, operators, values, ``and``, ``or``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from iceexplore.errors import OptionError
from iceexplore.expressions._binding import Column, Columns
from iceexplore.expressions._export import name_sql
from iceexplore.expressions._literals import COMPARABLE
from iceexplore.expressions._tokens import MAX_LENGTH, Place, Token, scan
from iceexplore.expressions._unbound import Name
from iceexplore.metadata import ListType, MapType, Schema, StructType, Type, type_base

__all__ = ["Choice", "Completion", "complete_filter"]

Values: TypeAlias = Callable[[int], Sequence[str]]
_State: TypeAlias = Literal[
    "column", "path", "operator", "value", "list", "next", "between", "test", "denied", "connective"
]

_MOST = 50
_COMPARISONS = frozenset(("=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>"))
_TYPED = frozenset(("date", "time", "timestamp", "timestamp_ntz", "timestamp_ltz", "timestamptz", "uuid", "cast"))
_OPERATORS = (
    ("=", "equal"), ("<>", "not equal"), (">=", "at least"), (">", "more than"), ("<=", "at most"), ("<", "less than"),
    ("between", "… and …"), ("in (", "one of"),
)  # fmt: skip
_TESTS = (("is null", "has no value"), ("is not null", "has a value"))


@dataclass(frozen=True)
class Choice:
    """A completion: its text, a short note for the user, and what kind of text it is."""

    text: str
    note: str
    kind: Literal["column", "operator", "value", "word"]


@dataclass(frozen=True)
class Completion:
    """Completions that can replace the characters ``start`` to ``end`` (exclusive) of a text."""

    start: int
    end: int
    choices: tuple[Choice, ...]


def complete_filter(
    schema: Schema, text: str, at: int, values: Values = lambda _: (), *, most: int = _MOST
) -> Completion:
    """Return completions at the cursor: first those that begin with the typed word, then those that contain it.

    Parameters
    ----------
    text, at
        The filter, and the position of the cursor: 0 is before the first character.
    values
        A function that takes a column's field id and returns example values of the column, as SQL literals.
    most
        Maximum number of completions.

    Raises
    ------
    OptionError
        The text is longer than a filter may be.
    """
    if len(text) > MAX_LENGTH:
        raise OptionError(f"the filter has {len(text):,} characters, more than {MAX_LENGTH:,}: split it")
    before = text[: max(0, min(at, len(text)))]
    start, tokens = _typed(before)
    word = before[start:]
    columns = Columns(schema)
    state, column = _walk(tokens, columns)
    found = _choices(columns, state, column, values, bool(word))
    key = word.strip("'\"`").casefold()
    first = [c for c in found if _key(c).startswith(key)]
    rest = [c for c in found if key and key in _key(c) and c not in first]
    choices = [*first, *rest][:most]
    if len(choices) == 1 and choices[0].text == word:
        choices = []
    return Completion(start, len(before), tuple(choices))


def _key(choice: Choice) -> str:
    return choice.text.strip("'\"`").casefold()


def _typed(before: str) -> tuple[int, list[Token]]:
    """Return the beginning of the word being typed, and the tokens before it. A quote may still be open."""
    tokens, end = scan(before)
    if end < len(before):
        return end, tokens
    last = tokens[-1] if tokens else None
    if last is None or last.at.end < end:
        return end, tokens
    unfinished = last.kind in ("word", "number") or (last.kind == "sign" and last.text in ("<", ">", "!"))
    return (last.at.start, tokens[:-1]) if unfinished else (end, tokens)


def _walk(tokens: Sequence[Token], columns: Columns) -> tuple[_State, Column | None]:
    """Return what kind of token is expected next, and for which column (None if unknown)."""
    state: _State = "column"
    path: list[Token] = []
    inside = between = False  # inside the list of "in"; before the first value of "between"
    for token in tokens:
        word = token.text if token.kind == "word" else ""
        sign = token.text if token.kind == "sign" else ""
        match state:
            case "column" | "path" if token.kind in ("word", "name") and word not in ("not", "and", "or"):
                path, state = [*(path if state == "path" else ()), token], "operator"
            case "operator" if sign == ".":
                state = "path"
            case "operator" if sign in _COMPARISONS:
                state = "value"
            case "operator" if sign == "(":
                state = "column"  # a call: startswith(name, ...)
            case "operator" if sign == ",":
                state = "value"
            case "operator" if word:
                state = _after_word(word)
                between = word == "between"
                inside = False
            case "operator" if sign == ")":
                state = "connective"
            case "list" if sign == "(":
                state, inside = "value", True
            case "value" if token.kind in ("number", "string", "bytes") or (word and word not in _TYPED):
                state = "next" if inside else "between" if between else "connective"
                between = False
            case "next":
                state = "value" if sign == "," else "connective"
            case "between":
                state = "value"
            case "test" | "denied":
                state = "denied" if word == "not" else "connective"
            case "connective" if word in ("and", "or"):
                state, path, inside = "column", [], False
    return state, _column(path, columns)


def _after_word(word: str) -> _State:
    match word:
        case "is":
            return "test"
        case "in":
            return "list"
        case "between" | "like":
            return "value"
        case "and" | "or":
            return "column"
    return "operator"


def _column(path: Sequence[Token], columns: Columns) -> Column | None:
    if not path:
        return None
    parts = tuple(t.at.text[t.at.start : t.at.end] if t.kind == "word" else t.text for t in path)
    name = Name(parts, tuple(t.kind == "name" for t in path), Place("", 0, 0))
    try:
        return columns.find(name)
    except OptionError:
        return None


def _choices(columns: Columns, state: _State, column: Column | None, values: Values, begun: bool) -> list[Choice]:
    match state:
        case "column" | "path":
            words = [Choice("not", "negates a condition", "word")] if begun else []
            every = (Choice(name_sql(c.name), str(c.field.type)[:60], "column") for c in columns.every())
            return [*every, *words]
        case "operator":
            return list(_operators(None if column is None else column.field.type))
        case "value":
            return [] if column is None else list(_values(column, values))
        case "list":
            return [Choice("(", "a list", "operator")]
        case "next":
            return [Choice(",", "another value", "word"), Choice(")", "the end of the list", "word")]
        case "between":
            return [Choice("and", "up to", "word")]
        case "test":
            return [Choice("null", "has no value", "word"), Choice("not null", "has a value", "word")]
        case "denied":
            return [Choice("null", "has a value", "word")]
    return [Choice("and", "both", "word"), Choice("or", "one of them", "word")]


def _operators(kind: Type | None) -> Iterator[Choice]:
    nested = isinstance(kind, StructType | ListType | MapType)
    base = "" if kind is None or nested else type_base(kind)
    if kind is None or base in COMPARABLE:
        for text, note in _OPERATORS:
            if base != "boolean" or text in ("=", "<>"):
                yield Choice(text, note, "operator")
    if base == "string":
        yield Choice("like", "begins with: 'abc%'", "operator")
    for text, note in _TESTS:
        yield Choice(text, note, "operator")
    if base in ("float", "double"):
        yield Choice("is nan", "is not a number", "operator")


def _values(column: Column, values: Values) -> Iterator[Choice]:
    kind = column.field.type
    if isinstance(kind, StructType | ListType | MapType):
        return
    if type_base(kind) == "boolean":
        yield Choice("true", "", "value")
        yield Choice("false", "", "value")
        return
    for text in values(column.field.field_id):
        yield Choice(text, "in this table", "value")
