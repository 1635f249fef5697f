"""Parse a view's SQL into a syntax tree with sqlglot, within limits, or say why that is impossible.

The text comes from strangers: its length is limited before it is parsed, sqlglot's warnings (which would print it) are
silenced, and the query is never run.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from iceexplore.render import escape
from iceexplore.views.sql._datafusion import define_datafusion

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["ParsedQuery", "UnparsedQuery", "format_sql", "known_dialect", "parse_query", "quiet", "sql_text"]

#: The maximum length of a query that is parsed; longer ones are compared as text only. Real queries have a few thousand
#: characters.
MOST_CHARACTERS = 200_000
#: The maximum number of parser steps: a constant, plus a number per token. Queries that people and engines write need
#: one or two steps per token.
_STEPS = 50_000
_STEPS_PER_TOKEN = 20
#: Names of dialects as engines write them, with sqlglot's names.
_NAMES = {
    "athena": "athena",
    "aws-athena": "athena",
    "databricks-sql": "databricks",
    "dremio-sql": "dremio",
    "google-bigquery": "bigquery",
    "hiveql": "hive",
    "postgresql": "postgres",
    "prestodb": "presto",
    "prestosql": "presto",
    "spark-sql": "spark",
    "spark3": "spark",
    "sparksql": "spark",
    "starburst": "trino",
}


@dataclass(frozen=True)
class ParsedQuery:
    """A query as a syntax tree; ``dialect`` is sqlglot's name for its dialect."""

    tree: exp.Query
    dialect: str


@dataclass(frozen=True)
class UnparsedQuery:
    """A query without a syntax tree, with the reason as a clause."""

    why: str


def known_dialect(name: str | None) -> str | None:
    """Return sqlglot's name for a dialect, compared without regard to case; None if sqlglot does not know it."""
    # The package comes first: if one thread imports the package and another one of its modules, which import each
    # other, both imports can fail, and sqlglot stays broken in the process.
    from sqlglot import Dialect

    define_datafusion()
    plain = (name or "").strip().lower().replace("_", "-").replace(" ", "-")
    plain = _NAMES.get(plain, plain)
    return plain if plain and plain.isalnum() and len(plain) < 40 and Dialect.get(plain) is not None else None


def parse_query(text: str, dialect: str | None) -> ParsedQuery | UnparsedQuery:
    """Parse the text of one query; if that fails, the result has the reason."""
    try:
        from sqlglot import exp
        from sqlglot.errors import ParseError, SqlglotError
    except ImportError:
        return UnparsedQuery("sqlglot is not installed: pip install sqlglot")
    name = known_dialect(dialect)
    if not dialect:
        return UnparsedQuery("its SQL has no dialect")
    if name is None:
        return UnparsedQuery(f"sqlglot does not know the dialect {escape.shorten(dialect, 40)!r}")
    if len(text) > MOST_CHARACTERS:
        return UnparsedQuery(f"its SQL has more than {MOST_CHARACTERS:,} characters")
    try:
        with quiet():
            statements = _statements(text, name)
    except _TooManyStepsError:
        return UnparsedQuery("parsing its SQL takes sqlglot too long")
    except _CompiledParserError:
        return UnparsedQuery("sqlglot's compiled parser cannot be limited: pip uninstall sqlglotc")
    except ParseError as error:
        first = (error.errors or [{}])[0]
        place = f" (line {first['line']}, column {first['col']})" if first.get("line") else ""
        what = escape.shorten(first.get("description") or "it cannot be parsed", 120)
        if "<class" in what or "<Token" in what:  # the message shows internal objects of sqlglot
            what = "a part of it is missing or misplaced"
        return UnparsedQuery(f"its SQL is not valid {name}, according to sqlglot: {what}{place}")
    except RecursionError:
        return UnparsedQuery("its SQL is nested too deeply")
    except (SqlglotError, ValueError, ArithmeticError, LookupError, TypeError, AttributeError) as error:
        # sqlglot raises any of these on some malformed texts.
        return UnparsedQuery(f"sqlglot cannot parse its SQL ({type(error).__name__})")
    if len(statements) != 1:
        return UnparsedQuery(f"its SQL has {len(statements)} statements instead of one")
    if not isinstance(statements[0], exp.Query):
        return UnparsedQuery("its SQL is not a SELECT statement")
    return ParsedQuery(statements[0], name)


class _TooManyStepsError(Exception):
    """Parsing took more steps than any real query needs."""


class _CompiledParserError(Exception):
    """No class can inherit from the parser, because it is compiled."""


def _statements(text: str, dialect: str) -> list[exp.Expr]:
    """Parse the statements of a text, in a limited number of steps."""
    from sqlglot import Dialect

    made = Dialect.get_or_raise(dialect)
    tokens = made.tokenize(text)
    try:
        parser = _bounded(made.parser_class)(dialect=made)
    except TypeError as error:
        raise _CompiledParserError from error
    parser.steps_left = _STEPS + _STEPS_PER_TOKEN * len(tokens)
    return [one for one in parser.parse(tokens, text) if one is not None]


@cache
def _bounded(parser: Any) -> Any:  # noqa: ANN401  (a class that is made here)
    """Return one of sqlglot's parsers that gives up after a number of steps.

    sqlglot parses some texts in exponential time: after "a JOIN b JOIN c …" it looks for the conditions of nested
    joins, and tries again without them. Each token that it takes, or takes back, is a call of ``_advance``.
    """

    def advance(self: Any, times: int = 1) -> None:  # noqa: ANN401
        self.steps_left -= 1
        if self.steps_left < 0:
            raise _TooManyStepsError
        parser._advance(self, times)

    return type(parser)(f"Bounded{parser.__name__}", (parser,), {"_advance": advance, "steps_left": 0})


def sql_text(node: exp.Expr, dialect: str, *, pretty: bool = False) -> str:
    """Return the SQL of a syntax tree without comments.

    Raises
    ------
    RecursionError
        The tree is nested too deeply.
    """
    with quiet():
        return node.sql(dialect=dialect, pretty=pretty, comments=False)


def format_sql(text: str, dialect: str | None) -> str | None:
    """Return a query formatted by sqlglot, one clause a line; None if it cannot be parsed."""
    parsed = parse_query(text, dialect)
    if isinstance(parsed, UnparsedQuery):
        return None
    try:
        return sql_text(parsed.tree, parsed.dialect, pretty=True)
    except RecursionError:
        return None


@contextmanager
def quiet() -> Iterator[None]:
    """Silence sqlglot's logger, which would print parts of the SQL to the terminal."""
    logger = logging.getLogger("sqlglot")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before
