"""Filter expressions: parse them, bind them to a schema, and export them to other engines."""

from iceexplore.expressions._binding import METADATA_COLUMNS, Column, Columns, bind_filter
from iceexplore.expressions._completion import Choice, Completion, complete_filter
from iceexplore.expressions._export import expression_pyiceberg, expression_sql, literal_sql, name_sql
from iceexplore.expressions._literals import COMPARABLE
from iceexplore.expressions._model import (
    ALWAYS,
    NEVER,
    Always,
    And,
    Expression,
    FilterLike,
    Op,
    Or,
    Predicate,
    all_of,
    any_of,
    negated,
    predicates,
)
from iceexplore.expressions._parser import parse_filter

__all__ = [
    "ALWAYS",
    "Always",
    "And",
    "COMPARABLE",
    "Choice",
    "Column",
    "Columns",
    "Completion",
    "Expression",
    "FilterLike",
    "METADATA_COLUMNS",
    "NEVER",
    "Op",
    "Or",
    "Predicate",
    "all_of",
    "any_of",
    "bind_filter",
    "complete_filter",
    "expression_pyiceberg",
    "expression_sql",
    "literal_sql",
    "name_sql",
    "negated",
    "parse_filter",
    "predicates",
]
