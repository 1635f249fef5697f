"""What the browser asks of a table: which, how sorted, filtered, and which page. Nonsense is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard

from iceexplore.errors import OptionError

__all__ = ["Filter", "GridQuery", "MAX_COLUMNS", "OPERATORS", "Order"]

#: Columns that a page has at most; the others are in its menu of columns.
MAX_COLUMNS = 60
#: How a filter compares. ``contains`` and ``=`` compare text without regard to case.
OPERATORS = ("contains", "=", "<", ">", "null", "not null")
_MAX_FILTERS = 20
_MAX_TEXT = 10_000
_KEYS = frozenset({"n", "of", "table", "page", "sort", "filters", "columns", "node"})


@dataclass(frozen=True)
class Filter:
    """A condition on one column, by its place in the table; ``column=None``: on any column (``contains`` only)."""

    column: int | None
    op: str
    value: str = ""

    def sent(self) -> dict[str, Any]:
        """As the browser has it."""
        return {"column": self.column, "op": self.op, "value": self.value}


@dataclass(frozen=True)
class Order:
    """Which rows of a table, and in which order."""

    sort: tuple[int, Literal["asc", "desc"]] | None = None
    filters: tuple[Filter, ...] = ()


@dataclass(frozen=True)
class GridQuery:
    """A page asked for: see `GridPart`."""

    of: str
    table: str
    n: int = 0
    page: int = 0
    order: Order = Order()
    columns: tuple[int, ...] | None = None
    node: str | None = None

    @classmethod
    def parse(cls, raw: Any) -> GridQuery:
        """Take apart what the browser set.

        Raises
        ------
        OptionError
            It is no query.
        """
        if not isinstance(raw, Mapping) or not set(raw) <= _KEYS:
            raise _refused(raw, f"has the keys {', '.join(sorted(_KEYS))}")
        of, table, node = raw.get("of"), raw.get("table"), raw.get("node")
        if not (_is_text(of) and _is_text(table) and (node is None or _is_text(node))):
            raise _refused(raw, "names of, table and node by text")
        n, page = raw.get("n", 0), raw.get("page", 0)
        if not _is_number(n) or not _is_number(page):
            raise _refused(raw, "counts n and page in whole numbers from 0")
        columns = raw.get("columns")
        if columns is not None and (
            not isinstance(columns, list)
            or not 0 < len(columns) <= MAX_COLUMNS
            or not all(_is_number(c) for c in columns)
        ):
            raise _refused(raw, f"shows one to {MAX_COLUMNS} columns, by their places from 0")
        order = Order(_sort(raw), _filters(raw))
        shown = None if columns is None else tuple(sorted(set(columns)))
        return cls(of, table, n, page, order, shown, node)

    def sent(self) -> dict[str, Any]:
        """What a page says of the query that it answers."""
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
    raise _refused(raw, 'sorts by [place of a column, "asc" or "desc"]')


def _filters(raw: Mapping[str, Any]) -> tuple[Filter, ...]:
    value = raw.get("filters")
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > _MAX_FILTERS:
        raise _refused(raw, f"has a list of at most {_MAX_FILTERS} filters")
    found = []
    for one in value:
        if not isinstance(one, Mapping) or not set(one) <= {"column", "op", "value"}:
            raise _refused(raw, "has filters of column, op and value")
        column, op, text = one.get("column"), one.get("op"), one.get("value", "")
        if not (column is None or _is_number(column)) or op not in OPERATORS or not _is_text(text):
            raise _refused(raw, f"has filters by a column's place, one of {', '.join(OPERATORS)}, and text")
        if column is None and op != "contains":
            raise _refused(raw, f"asks whether any column contains a text; {op!r} needs one column")
        found.append(Filter(column, op, text))
    return tuple(found)


def _is_text(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and len(value) <= _MAX_TEXT


def _is_number(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _refused(raw: Any, rule: str) -> OptionError:
    return OptionError(f"a table's query {rule}; this is {str(raw)[:200]}")
