"""Derive from DataFusion's optimized plan what a query needs from each table: columns, a filter, a number of rows.

The filter only reduces what is read: DataFusion evaluates the query's conditions again. So the filter can leave out
conditions that its notation cannot express. If a query scans a table twice, there is a filter only if both scans have
the same one.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from iceexplore.expressions import name_sql

__all__ = ["Needs", "is_simple", "needs_of"]

#: Tests for the types whose values DataFusion and Iceberg compare alike. Floating-point types are left out because of
#: NaN.
_COMPARED = (pa.types.is_integer, pa.types.is_date, pa.types.is_string, pa.types.is_decimal, pa.types.is_timestamp)
_OPERATORS = ("=", "<", "<=", ">", ">=")
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
#: Nodes of a plan that keep the order of rows.
_SIMPLE = frozenset({"Filter", "Limit", "Projection", "SubqueryAlias", "TableScan"})
_SCAN = re.compile(r"\s*TableScan: (?P<name>\S+?)(?: projection=(?P<columns>\[.*?\]))?(?:, .*)?$")
#: The maximum number of plan nodes, and of values in an ``IN`` list, that are examined.
_MOST_NODES = 20_000
_MOST_VALUES = 1000


@dataclass(frozen=True)
class Needs:
    """The columns, rows and conditions that a query needs from a table.

    Attributes
    ----------
    columns
        Positions of columns; empty if only the number of rows is needed.
    where
        A filter in the notation of `iceexplore.Table.plan`; None for all rows.
    limit
        The number of rows after which reading may stop; None for all.
    """

    columns: frozenset[int] = frozenset()
    where: str | None = None
    limit: int | None = None

    def joined(self, other: Needs) -> Needs:
        """Return needs that cover these and the ``other`` ones, for two scans of a table."""
        same = self.where == other.where
        return Needs(self.columns | other.columns, self.where if same else None)


def needs_of(
    plan: Any,  # noqa: ANN401  (DataFusion's LogicalPlan)
    schemas: Mapping[str, tuple[pa.Schema, Sequence[str]]],
) -> dict[str, Needs]:
    """Return what a plan needs from each table; tables that it does not scan are left out.

    Parameters
    ----------
    schemas
        For each table, the columns as DataFusion knows them, and the names of these columns in the table.
    """
    found: dict[str, Needs] = {}
    seen: Counter[str] = Counter()
    for name, one in _scans(plan, schemas):
        found[name] = found[name].joined(one) if name in found else one
        seen[name] += 1
    for name, columns in _listed(plan, schemas, seen):
        found[name] = found.get(name, Needs()).joined(Needs(columns))
    return found


def _listed(
    plan: Any,  # noqa: ANN401
    schemas: Mapping[str, tuple[pa.Schema, Sequence[str]]],
    seen: Counter[str],
) -> Iterator[tuple[str, frozenset[int]]]:
    """Yield tables with more scans in the plan's text than among its nodes (``seen``), with the columns of all scans.

    Subqueries inside expressions are not nodes and appear only in the plan's text. If a string literal in the query
    happens to look like a scan, this can only add columns.
    """
    lines: dict[str, list[str]] = {}
    for line in plan.display_indent().splitlines():
        match = _SCAN.match(line)
        if match is not None and match["name"] in schemas:
            lines.setdefault(match["name"], []).append(match["columns"] or "?")
    for name, (schema, _) in schemas.items():
        # The text may be incomplete: if it has no scan of a table, assume that all columns are scanned.
        listed = lines.get(name, ["?"])
        if len(listed) <= seen[name]:
            continue
        columns: set[int] = set()
        for text in listed:
            named = [] if text == "[]" else text[1:-1].split(", ")
            known = all(schema.names.count(one) == 1 for one in named)
            columns |= {schema.names.index(one) for one in named} if known else set(range(len(schema)))
        yield name, frozenset(columns)


def is_simple(plan: Any) -> bool:  # noqa: ANN401  (DataFusion's LogicalPlan)
    """Return whether a plan only filters and projects: then a single thread preserves the order of rows."""
    return all(type(node.to_variant()).__name__ in _SIMPLE for node, _ in _walk(plan))


def _walk(plan: Any) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401
    """Yield each node of a plan and, if its parent is a filter, that filter's predicate."""
    waiting = [(plan, None)]
    left = _MOST_NODES
    while waiting and left:
        left -= 1
        node, above = waiting.pop()
        yield node, above
        variant = node.to_variant()
        is_filter = type(variant).__name__ == "Filter"
        waiting += [(child, variant.predicate() if is_filter else None) for child in node.inputs()]


def _scans(
    plan: Any,  # noqa: ANN401
    schemas: Mapping[str, tuple[pa.Schema, Sequence[str]]],
) -> Iterator[tuple[str, Needs]]:
    from datafusion.expr import Expr

    for node, predicate in _walk(plan):
        scan = node.to_variant()
        if type(scan).__name__ != "TableScan" or scan.table_name() not in schemas:
            continue
        schema, names = schemas[scan.table_name()]
        projection = scan.projection()
        every = range(len(schema))
        needs = Needs(frozenset(every if projection is None else (index for index, _ in projection)))
        conditions = [] if predicate is None else list(_conjuncts(Expr(predicate)))
        conditions += [part for one in scan.filters() for part in _conjuncts(Expr(one))]
        texts = [text for one in conditions if (text := _condition(one, schema, names)) is not None]
        if texts:
            needs = replace(needs, where=" and ".join(sorted(texts)))
        yield scan.table_name(), replace(needs, limit=None if conditions else scan.fetch())


def _conjuncts(expression: Any) -> Iterator[Any]:  # noqa: ANN401  (DataFusion's Expr)
    waiting = [expression]
    while waiting:
        one = waiting.pop()
        if one.variant_name() == "BinaryExpr" and one.rex_call_operator() == "AND":
            waiting += one.rex_call_operands()
        else:
            yield one


def _condition(
    expression: Any,  # noqa: ANN401
    schema: pa.Schema,
    names: Sequence[str],
) -> str | None:
    """Return a condition on one column as a filter's text; None if it has no equivalent."""
    kind = expression.variant_name()
    if kind not in ("BinaryExpr", "InList", "IsNull", "IsNotNull"):
        return None
    operands = expression.rex_call_operands()
    kinds = [one.variant_name() for one in operands]
    operator = expression.rex_call_operator()
    if kind == "BinaryExpr" and kinds == ["Literal", "Column"]:
        operands, operator = operands[::-1], _MIRRORED.get(operator, operator)
        kinds.reverse()
    if kinds[:1] != ["Column"] or set(kinds[1:]) - {"Literal"} or len(operands) > _MOST_VALUES:
        return None
    name = operands[0].to_variant().name()
    if schema.names.count(name) != 1:
        return None
    column = name_sql(names[schema.names.index(name)])
    if kind in ("IsNull", "IsNotNull"):
        return f"{column} is {'not ' if kind == 'IsNotNull' else ''}null"
    values = [_literal(one.python_value(), schema.field(name).type) for one in operands[1:]]
    if not values or None in values:
        return None
    if kind == "InList":
        negated = "NOT" in str(operator).upper() or " NOT IN " in str(expression)
        return None if negated else f"{column} in ({', '.join(str(value) for value in values)})"
    return f"{column} {operator} {values[0]}" if operator in _OPERATORS else None


def _literal(scalar: Any, kind: pa.DataType) -> str | None:  # noqa: ANN401  (a pyarrow scalar)
    """Return a literal in a filter's notation; None if the literal is null, or if its type is not the column's type."""
    if not isinstance(scalar, pa.Scalar) or not scalar.is_valid or not any(test(kind) for test in _COMPARED):
        return None
    value = scalar.as_py()
    if pa.types.is_string(kind) and isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if scalar.type != kind:
        return None
    if isinstance(value, (dt.date, dt.datetime)):
        return f"'{value.isoformat()}'" if not pa.types.is_timestamp(kind) or kind.unit == "us" else None
    return str(value)
