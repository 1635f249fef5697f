"""Filter expressions: parse them, bind them to a schema, and export them to other engines."""

from iceexplore.expressions._binding import METADATA_COLUMNS, Column, Columns
from iceexplore.expressions._completion import Choice, Completion, complete_filter
from iceexplore.expressions._export import expression_pyiceberg, expression_sql, literal_sql, name_sql
from iceexplore.expressions._filter import bind_filter
from iceexplore.expressions._from_json import expression_from_json, is_json
from iceexplore.expressions._literals import COMPARABLE
from iceexplore.expressions._model import (
    ALWAYS,
    NEVER,
    Always,
    And,
    Applied,
    Comparison,
    Computed,
    Conditional,
    Constant,
    Expression,
    FieldValue,
    FilterLike,
    Op,
    Or,
    Predicate,
    ValueExpression,
    all_of,
    any_of,
    columns_of,
    computed,
    negated,
    predicates,
    value_text,
)
from iceexplore.expressions._parser import parse_filter
from iceexplore.expressions._temporal_literals import read_date, read_time, read_timestamp
from iceexplore.expressions._to_json import expression_to_json

__all__ = [
    "ALWAYS",
    "Always",
    "And",
    "Applied",
    "COMPARABLE",
    "Choice",
    "Column",
    "Columns",
    "Comparison",
    "Completion",
    "Computed",
    "Conditional",
    "Constant",
    "Expression",
    "FieldValue",
    "FilterLike",
    "METADATA_COLUMNS",
    "NEVER",
    "Op",
    "Or",
    "Predicate",
    "ValueExpression",
    "all_of",
    "any_of",
    "bind_filter",
    "columns_of",
    "complete_filter",
    "computed",
    "expression_from_json",
    "expression_pyiceberg",
    "expression_sql",
    "expression_to_json",
    "is_json",
    "literal_sql",
    "name_sql",
    "negated",
    "parse_filter",
    "predicates",
    "read_date",
    "read_time",
    "read_timestamp",
    "value_text",
]
