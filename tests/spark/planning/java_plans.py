"""Plans of Iceberg's Java library, asked through the gateway of a Spark session."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from iceexplore.storage import canonical
from tests.helpers.oracle_filters import Tree


@dataclass(frozen=True)
class JavaTask:
    """A ``FileScanTask``: its deletes as (location, offset of a vector), its residual as text."""

    location: str
    deletes: frozenset[tuple[str, int | None]]
    residual: str


def java_plan(session: Any, table: Any, tree: Tree | None, columns: dict[str, str]) -> dict[str, JavaTask]:
    """``table.newScan().filter(...).planFiles()``, by what each location means."""
    scan = table.newScan()
    if tree is not None:
        scan = scan.filter(java_expression(session, tree, columns))
    planned = scan.planFiles()
    out = {}
    try:
        each = planned.iterator()
        while each.hasNext():
            task = each.next()
            location = canonical(task.file().location())
            deletes = frozenset((canonical(d.location()), d.contentOffset()) for d in task.deletes())
            out[location] = JavaTask(location, deletes, task.residual().toString())
    finally:
        planned.close()
    return out


def java_expression(session: Any, tree: Tree, columns: dict[str, str], negated: bool = False) -> Any:
    """The filter in the words of ``org.apache.iceberg.expressions.Expressions``.

    Java makes ``a <= b`` of ``not (a > b)``, also where ``a`` is NaN; the expectation notes that.
    """
    make: Any = session._jvm.org.apache.iceberg.expressions.Expressions
    op: str = tree[0]
    if op == "not":
        return java_expression(session, tree[1], columns, not negated)
    if op in ("and", "or"):
        first, *rest = (java_expression(session, child, columns, negated) for child in tree[1])
        for other in rest:
            first = getattr(make, op if not negated else "or" if op == "and" else "and")(first, other)
        return first
    found = _predicate(session, make, tree, columns)
    if not negated:
        return found
    found = getattr(make, "not")(found)
    ordered = columns[tree[1]] in ("float", "double") and op in ("<", "<=", ">", ">=", "between")
    return getattr(make, "or")(found, make.isNaN(tree[1])) if ordered else found


def _predicate(session: Any, make: Any, tree: Tree, columns: dict[str, str]) -> Any:
    op: str = tree[0]
    name = tree[1]
    given = [_literal(session, x, columns[name]) for x in tree[2:]]
    none = {"is null": "isNull", "is not null": "notNull", "is nan": "isNaN", "is not nan": "notNaN"}
    if op in none:
        return getattr(make, none[op])(name)
    if op in ("in", "not in"):
        values = session._jvm.java.util.ArrayList()
        for value in given:
            values.add(value)
        return getattr(make, "in" if op == "in" else "notIn")(name, values)
    if op == "between":
        low, high = make.greaterThanOrEqual(name, given[0]), make.lessThanOrEqual(name, given[1])
        return getattr(make, "and")(low, high)
    one = {
        "<": "lessThan", "<=": "lessThanOrEqual", ">": "greaterThan", ">=": "greaterThanOrEqual", "=": "equal",
        "!=": "notEqual", "like": "startsWith", "not like": "notStartsWith",
    }  # fmt: skip
    return getattr(make, one[op])(name, given[0])


def _literal(session: Any, value: Any, base: str) -> Any:
    """A value as Java's literals take it: texts are cast to the column's type."""
    if base == "uuid":
        from uuid import UUID

        return str(UUID(bytes=value))
    match value:
        case dt.date() | dt.time():
            return value.isoformat()
        case Decimal():
            return str(value)
        case bytes():
            return session._jvm.java.nio.ByteBuffer.wrap(value)
    return value
