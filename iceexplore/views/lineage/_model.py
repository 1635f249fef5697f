"""Lineage as data: the tables that a query reads, and the columns that its columns are made of."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["ALL_COLUMNS", "ColumnSource", "OutputColumn", "QueryLineage", "TableReference"]

#: The name of a source column where a star reads all columns of a table whose columns are unknown.
ALL_COLUMNS = "*"


@dataclass(frozen=True)
class TableReference:
    """A table or view that a query reads, with its name resolved.

    Attributes
    ----------
    written
        As the query names it.
    catalog
        None: the catalog in which the view is stored.
    namespace
        None where the query names none, and the view stores no default.
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
    """A column of a table that an output column is made of; ``column`` may be ``*``."""

    table: str
    column: str


@dataclass(frozen=True)
class OutputColumn:
    """A column of the view.

    Attributes
    ----------
    name
        From the view's schema if the number of columns fits, else from the query; ``*`` for the columns of a star that
        are unknown.
    expression
        Its SQL, without comments; empty for a column of a star.
    sources
        The columns that it is made of, also those that subqueries and windows in it read; filters and joins of the
        query are not included.
    certain
        False if the query alone does not show the sources: an unqualified name that several tables may have, or the
        columns of a star, taken from the view's schema.
    """

    name: str
    expression: str
    sources: tuple[ColumnSource, ...] = ()
    certain: bool = True


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
