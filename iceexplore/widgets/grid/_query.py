"""Parse and validate the browser's queries for pages of a table: sort order, filters, columns, page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeGuard

from iceexplore.errors import OptionError

__all__ = ["Filter", "GridQuery", "MAX_COLUMNS", "OPERATORS", "Order"]

#: Maximum number of columns on a page; the user can choose others in the column menu.
MAX_COLUMNS = 60
#: The operators of filters. ``contains``, ``=`` and ``!=`` ignore case when they compare text.
OPERATORS = ("contains", "=", "!=", "<", "<=", ">", ">=", "null", "not null")
_MAX_FILTERS = 20
_MAX_TEXT = 10_000
_KEYS = frozenset({"n", "of", "table", "page", "sort", "filters", "columns", "node"})


@dataclass(frozen=True)
class Filter:
    """A condition on a column, given by index; ``column=None`` means any column (``contains`` only)."""

    column: int | None
    op: str
    value: str = ""

    def sent(self) -> dict[str, Any]:
        """Return the filter in the form that the browser sends and receives."""
        return {"column": self.column, "op": self.op, "value": self.value}


@dataclass(frozen=True)
class Order:
    """The filters and the sort order of a table's rows."""

    sort: tuple[int, Literal["asc", "desc"]] | None = None
    filters: tuple[Filter, ...] = ()


@dataclass(frozen=True)
class GridQuery:
    """A request for a page; see `GridPanel`."""

    of: str
    table: str
    n: int = 0
    page: int = 0
    order: Order = Order()
    columns: tuple[int, ...] | None = None
    node: str | None = None

    @classmethod
    def parse(cls, raw: object) -> GridQuery:
        """Parse a request from the browser.

        Raises
        ------
        OptionError
            The request is invalid.
        """
        if not isinstance(raw, Mapping) or not set(raw) <= _KEYS:
            raise _refused(raw, f"has only the keys {', '.join(sorted(_KEYS))}")
        of, table, node = raw.get("of"), raw.get("table"), raw.get("node")
        if not (_is_text(of) and _is_text(table) and (node is None or _is_text(node))):
            raise _refused(raw, "needs text for of, table and node")
        n, page = raw.get("n", 0), raw.get("page", 0)
        if not _is_number(n) or not _is_number(page):
            raise _refused(raw, "needs integers from 0 for n and page")
        columns = raw.get("columns")
        if columns is not None and (
            not isinstance(columns, list)
            or not 0 < len(columns) <= MAX_COLUMNS
            or not all(_is_number(c) for c in columns)
        ):
            raise _refused(raw, f"shows one to {MAX_COLUMNS} columns, by their indexes from 0")
        order = Order(_sort(raw), _filters(raw))
        shown = None if columns is None else tuple(sorted(set(columns)))
        return cls(of, table, n, page, order, shown, node)

    def renumbered(self, names: Sequence[str], others: Sequence[str]) -> GridQuery:
        """Return the query for a different table, whose columns have other indexes.

        Conditions, sort order and columns that refer to a column the other table lacks are dropped.

        Parameters
        ----------
        names
            The columns of the table to which the query refers.
        others
            The columns of the other table.
        """
        places = {i: others.index(name) for i, name in enumerate(names) if name in others}
        sort = self.order.sort
        filters = tuple(
            replace(f, column=None if f.column is None else places[f.column])
            for f in self.order.filters
            if f.column is None or f.column in places
        )
        order = Order((places[sort[0]], sort[1]) if sort is not None and sort[0] in places else None, filters)
        shown = None if self.columns is None else tuple(places[c] for c in self.columns if c in places) or None
        return replace(self, order=order, columns=shown)

    def sent(self) -> dict[str, Any]:
        """Return the part of the query that the answer repeats."""
        return {
            "n": self.n,
            "of": self.of,
            "table": self.table,
            "sort": None if self.order.sort is None else list(self.order.sort),
            "filters": [f.sent() for f in self.order.filters],
            "node": self.node,
        }


def _sort(raw: Mapping[str, Any]) -> tuple[int, Literal["asc", "desc"]] | None:
    value = raw.get("sort")
    if value is None:
        return None
    if isinstance(value, list | tuple) and len(value) == 2 and _is_number(value[0]) and value[1] in ("asc", "desc"):
        return value[0], value[1]
    raise _refused(raw, 'sorts by [index of a column, "asc" or "desc"]')


def _filters(raw: Mapping[str, Any]) -> tuple[Filter, ...]:
    value = raw.get("filters")
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > _MAX_FILTERS:
        raise _refused(raw, f"has a list of at most {_MAX_FILTERS} filters")
    found = []
    for one in value:
        if not isinstance(one, Mapping) or not set(one) <= {"column", "op", "value"}:
            raise _refused(raw, "has filters with column, op and value")
        column, op, text = one.get("column"), one.get("op"), one.get("value", "")
        if not (column is None or _is_number(column)) or op not in OPERATORS or not _is_text(text):
            raise _refused(raw, f"has filters with a column's index, one of {', '.join(OPERATORS)}, and text")
        if column is None and op != "contains":
            raise _refused(raw, f"supports only contains for any column; {op!r} needs one column")
        found.append(Filter(column, op, text))
    return tuple(found)


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and len(value) <= _MAX_TEXT


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _refused(raw: object, rule: str) -> OptionError:
    return OptionError(f"a table's query {rule}; got {str(raw)[:200]}")
