"""Lineage as data: the tables that a query reads, and the columns from which its columns are computed."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["ALL_COLUMNS", "ColumnSource", "OutputColumn", "QueryLineage", "TableReference"]

#: The name that represents all columns of a table in place of a star if the columns are unknown.
ALL_COLUMNS = "*"


@dataclass(frozen=True)
class TableReference:
    """A table or view that a query reads, with its name resolved.

    Attributes
    ----------
    written
        The name as the query spells it.
    catalog
        The catalog; None means the catalog in which the view is stored.
    namespace
        The namespace; None if the query names none and the view stores no default.
    columns
        The columns that the query reads, in the order in which it names them; ``*`` for all of them.
    """

    written: str
    catalog: str | None
    namespace: tuple[str, ...] | None
    name: str
    columns: tuple[str, ...] = ()

    @property
    def identifier(self) -> tuple[str, ...]:
        """Namespace and name."""
        return (*(self.namespace or ()), self.name)

    def __str__(self) -> str:
        return ".".join((*((self.catalog,) if self.catalog is not None else ()), *self.identifier))


@dataclass(frozen=True)
class ColumnSource:
    """A column of a table from which an output column is computed; ``column`` may be ``*``."""

    table: str
    column: str


@dataclass(frozen=True)
class OutputColumn:
    """A column of the view.

    Attributes
    ----------
    name
        The name in the view's schema if the number of columns matches, else the name in the query; ``*`` for a star
        whose columns are unknown.
    expression
        Its SQL, without comments; empty for a column of a star.
    sources
        The columns from which it is computed, including those in its subqueries and windows, but not those in the
        query's filters and joins.
    certain
        False if the query alone does not determine the sources: several tables may have a column of an unqualified
        name, or the columns of a star were taken from the view's schema.
    unchanged
        True if it is a table's column that no expression has changed, neither in this query nor in its subqueries.
    type
        The Iceberg type of its expression if that is a count, a condition, or a cast to a type that Iceberg has; None
        for all other expressions, whose types depend on the sources or the engine.
    """

    name: str
    expression: str
    sources: tuple[ColumnSource, ...] = ()
    certain: bool = True
    unchanged: bool = False
    type: str | None = None


@dataclass(frozen=True)
class QueryLineage:
    """The tables and columns that a query reads.

    Attributes
    ----------
    notes
        Sentences on what could not be resolved.
    """

    tables: tuple[TableReference, ...] = ()
    columns: tuple[OutputColumn, ...] = ()
    notes: tuple[str, ...] = field(default=())
