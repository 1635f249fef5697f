"""Random filters as SQL text, each with its meaning of a row: true, false or None, by Python's own comparisons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from iceexplore.expressions import And, Expression, Or, Predicate
from tests.helpers.filter_types import NAMES, Row, kind_of

#: True, false, or None for unknown.
Meaning = Callable[[Row], bool | None]

OPS: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    "=": lambda a, b: a == b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<>": lambda a, b: a != b,
}  # fmt: skip
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def both(a: bool | None, b: bool | None) -> bool | None:
    return False if a is False or b is False else None if a is None or b is None else True


def either(a: bool | None, b: bool | None) -> bool | None:
    return True if a or b else None if a is None or b is None else False


def inverse(a: bool | None) -> bool | None:
    return None if a is None else not a


def written(name: str, draw: st.DrawFn) -> str:
    """A name in one of its spellings."""
    if name == "odd.name":
        return draw(st.sampled_from(['"odd.name"', "`odd.name`", "odd.name"]))
    parts = name.split(".")
    return draw(
        st.sampled_from([name, ".".join(f"`{p}`" for p in parts), ".".join(f'"{p}"' for p in parts), name.upper()])
    )


@st.composite
def leaf(draw: st.DrawFn, names: list[str] | None = None) -> tuple[str, Meaning]:
    name = draw(st.sampled_from(names or NAMES))
    kind, column = kind_of(name), written(name, draw)
    if not names and name == "b":
        column = draw(st.sampled_from(["b", "`b`"]))
    literal = st.sampled_from([*kind.literals, ("null", None)])
    shapes = ["compare"] * 4 + ["safe", "in", "between", "null"]
    shapes += ["nan"] * 2 if kind.type in ("float", "double") else []
    shapes += ["like", "starts"] * 2 if kind.type == "string" else []
    shapes += ["bare", "is"] * 2 if kind.type == "boolean" else []
    negated = draw(st.booleans())
    no = "not " if negated else ""

    def value(row: Row) -> Any:
        return None if row[name] is None else kind.key(row[name])

    def turned(meaning: Meaning) -> Meaning:
        return (lambda row: inverse(meaning(row))) if negated else meaning

    def compared(op: str, right: Any) -> Meaning:
        return lambda row: None if value(row) is None or right is None else OPS[op](value(row), right)

    match draw(st.sampled_from(shapes)):
        case "compare":
            op, (text, right) = draw(st.sampled_from(sorted(OPS))), draw(literal)
            if draw(st.booleans()):
                return f"{text} {FLIPPED.get(op, op)} {column}", compared(op, right)
            return f"{column} {op} {text}", compared(op, right)
        case "safe":
            text, right = draw(literal)
            sign = draw(st.sampled_from(["<=>", "is not distinct from"]))
            return f"{column} {sign} {text}", lambda row: value(row) == right
        case "in":
            items = draw(st.lists(literal, min_size=1, max_size=12))

            def among(row: Row) -> bool | None:
                out: bool | None = False
                for _, right in items:
                    out = either(out, compared("=", right)(row))
                return out

            return f"{column} {no}in ({', '.join(t for t, _ in items)})", turned(among)
        case "between":
            (a, low), (b, high) = draw(literal), draw(literal)
            inside: Meaning = lambda row: both(compared(">=", low)(row), compared("<=", high)(row))  # noqa: E731
            return f"{column} {no}between {a} and {b}", turned(inside)
        case "null":
            text = draw(st.sampled_from([f"{column} is {no}null", f"{no}isnull({column})"]))
            return text, turned(lambda row: row[name] is None)
        case "nan":
            text = draw(st.sampled_from([f"{column} is {no}nan", f"{no}isnan({column})", f"{no}is_nan({column})"]))
            return text, turned(lambda row: row[name] is not None and row[name] != row[name])
        case "like":
            prefix = draw(st.sampled_from(["", "a", "a%", "日", "it''s", "A"]))
            plain = prefix.replace("''", "'")
            escape, after = draw(st.sampled_from([("\\", ""), ("!", " escape '!'")]))
            end = draw(st.sampled_from(["%", "", "%%"]))
            text = f"{column} {no}like '{prefix.replace('%', escape + '%')}{end}'{after}"
            fits = (lambda v: v.startswith(plain)) if end else (lambda v: v == plain)
            return text, turned(lambda row: None if row[name] is None else fits(row[name]))
        case "starts":
            call = draw(st.sampled_from(["startswith", "STARTS_WITH"]))
            return f"{no}{call}({column}, 'a')", turned(
                lambda row: None if row[name] is None else row[name].startswith("a")
            )
        case "is":
            truth = draw(st.booleans())
            return f"{column} is {no}{str(truth).lower()}", turned(lambda row: row[name] is truth)
    return f"{no}{column}", turned(lambda row: row[name])


def filters(names: list[str] | None = None, max_leaves: int = 5) -> st.SearchStrategy[tuple[str, Meaning]]:
    """Texts of filters, and what they mean."""

    @st.composite
    def joined(draw: st.DrawFn, inner: st.SearchStrategy[tuple[str, Meaning]]) -> tuple[str, Meaning]:
        parts = draw(st.lists(inner, min_size=1, max_size=3))
        word = draw(st.sampled_from(["and", "OR"]))
        join = both if word == "and" else either
        negated = draw(st.booleans())

        def meaning(row: Row) -> bool | None:
            out = parts[0][1](row)
            for _, part in parts[1:]:
                out = join(out, part(row))
            return inverse(out) if negated else out

        return f"{'not ' if negated else ''}(" + f" {word} ".join(f"({t})" for t, _ in parts) + ")", meaning

    return st.recursive(leaf(names), joined, max_leaves=max_leaves)


def bare(expression: Expression) -> Any:
    """Without texts, and with nothing twice: other notations keep neither."""
    match expression:
        case And(children) | Or(children):
            parts = {bare(c) for c in children}
            return parts.pop() if len(parts) == 1 else (type(expression).__name__, frozenset(parts))
        case Predicate():
            return expression.field_id, expression.op, frozenset(expression.literals)
    return expression
