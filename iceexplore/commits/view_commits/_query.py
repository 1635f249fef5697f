"""Build the query of a view's version from the arguments that the user gives."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import EllipsisType
from typing import Any, TypeAlias

from iceexplore.commits.added_files._from_records import refuse_half_characters
from iceexplore.commits.view_commits._columns import view_columns
from iceexplore.errors import OptionError, Problems, RuleError, mapping_of, text_of, texts_of
from iceexplore.metadata import Schema
from iceexplore.render import escape
from iceexplore.views import (
    ALL_COLUMNS,
    Representation,
    UnparsedQuery,
    ViewVersion,
    parse_view_metadata,
    query_lineage,
)
from iceexplore.writing import SchemaLike

__all__ = [
    "Keep",
    "NamespaceLike",
    "SqlLike",
    "ViewQuery",
    "given_namespace",
    "given_sql",
    "query_columns",
    "view_query",
]

#: The SQL of one query, whose dialect is given by the argument ``dialect``; or the SQL by dialect.
SqlLike: TypeAlias = str | Mapping[str, str]
#: A namespace: ``"db"``, ``"a.b"``, or a sequence of its parts. If a part contains a dot, give a sequence.
NamespaceLike: TypeAlias = str | Sequence[str]
#: The type of ``...``, the default of arguments that keep the view's value.
Keep: TypeAlias = EllipsisType
#: The beginning of a CREATE or ALTER VIEW statement. Such a statement is refused, because a view stores only a query.
_CREATE = re.compile(r"\s*(create|alter)\s+(or\s+replace\s+)?(\w+\s+)?view\b", re.IGNORECASE)


@dataclass(frozen=True)
class ViewQuery:
    """The query that a new version of a view stores.

    Attributes
    ----------
    sql
        The SQL of each dialect, in the order in which the version lists the dialects.
    columns
        The schema of the rows that the query returns. The schema id has no meaning here: it is assigned when the schema
        is added to a view.
    default_catalog
        The catalog of tables that the SQL names without a catalog; None means the catalog of the view.
    default_namespace
        The parts of the namespace of tables that the SQL names without a namespace; may be empty.
    summary
        The version's summary, such as ``{"engine-name": "Spark"}``.
    """

    sql: Mapping[str, str]
    columns: Schema
    default_catalog: str | None = None
    default_namespace: tuple[str, ...] = ()
    summary: Mapping[str, str] = field(default_factory=dict)

    def representations(self) -> list[dict[str, str]]:
        """Return the list ``representations`` of a version's JSON: one object for each dialect, with its SQL."""
        return [{"type": "sql", "sql": text, "dialect": dialect} for dialect, text in self.sql.items()]

    def check(self) -> None:
        """Check that no two dialects differ only in case, and that the SQL fits ``columns``.

        SQL does not fit if it returns more or fewer columns. It is not checked if its text does not show how many it
        returns, as with ``SELECT *``.

        Raises
        ------
        RuleError
            ``view-one-sql-per-dialect`` or ``view-columns``
        """
        _refuse_twice(self.sql)
        _check_columns(self, self.columns)


def view_query(
    document: Mapping[str, Any] | None,
    sql: SqlLike,
    schema: SchemaLike = None,
    *,
    dialect: str | None = None,
    default_catalog: str | Keep | None = ...,
    default_namespace: NamespaceLike | Keep = ...,
    summary: Mapping[str, str] | None = None,
) -> ViewQuery:
    """Build the query that a new version of a view stores.

    Parameters
    ----------
    document
        The view's metadata, for the defaults of other arguments; None for a new view.
    sql
        One SQL text in ``dialect``, or SQL texts by dialect.
    schema
        The columns, in a form that `view_columns` accepts; required for a new view. If None, the schema is that of a
        version with the same SQL for the same dialects. If there is no such version, it is that of the current version;
        then the text of the SQL must show that it returns columns with the same names, which ``SELECT *`` does not.
    dialect
        The dialect of a single SQL text. It may be None if the current version has SQL in only one dialect, which is
        then used. If ``sql`` has texts by dialect, it must be None.
    default_catalog, default_namespace
        The catalog and namespace of tables that the SQL names without them. ``...`` takes those of the current version;
        for a new view, no default is stored. A catalog of None is the catalog of the view.
    summary
        The version's summary, such as ``{"engine-name": "Spark"}``; empty by default.

    Raises
    ------
    OptionError, RuleError
        An argument is invalid or missing.
    """
    before = None if document is None else parse_view_metadata(document, str(document.get("location")), Problems())
    current = None if before is None else before.version()
    texts = given_sql(sql, dialect, () if current is None else current.dialects)
    if schema is None:
        if before is None:
            raise OptionError("schema: give the columns of the view: {'day': 'date', 'trips': 'long'}")
        earlier = next((v for v in reversed(before.versions) if _sql_of(v) == list(texts.items())), None)
        columns = None if earlier is None else before.schema(earlier)
        if columns is None:
            columns = _kept_columns(texts, before.schema(current))
    else:
        columns = view_columns(schema, *(() if before is None else (before.schemas, before.schema(current))))
    if default_catalog is ...:
        catalog = None if current is None else current.catalog_of()
    else:
        catalog = default_catalog
        if catalog is not None:
            refuse_half_characters(catalog, "default_catalog")
            text_of("default_catalog", catalog, "a catalog's name, or None for the catalog of the view")
    if default_namespace is ...:
        namespace = () if current is None else current.namespace_of() or ()
    else:
        namespace = given_namespace(default_namespace)
    given = mapping_of("summary", summary, "{'engine-name': 'Spark', 'engine-version': '4.1.0'}", values=str)
    query = ViewQuery(texts, columns, catalog, namespace, given)
    query.check()
    return query


def _sql_of(version: ViewVersion) -> list[tuple[str | None, str | None]]:
    return [(r.dialect, r.sql) for r in version.representations]


def given_sql(given: SqlLike, dialect: str | None = None, known: Sequence[str] = ()) -> dict[str, str]:
    """Validate a user's SQL, and return it by dialect.

    Parameters
    ----------
    given
        One SQL text in ``dialect``, or SQL texts by dialect.
    dialect
        The dialect of a single text; None for the only dialect in ``known``, which must then have exactly one. For
        texts by dialect, it must be None.
    known
        The dialects of the view's current version; empty for a new view.

    Raises
    ------
    OptionError
        The dialect of a single text is missing, ``dialect`` is given for texts by dialect, or no text is given. Or a
        text or a dialect's name is empty or contains a lone surrogate, or a text is a CREATE or ALTER VIEW statement.
    RuleError
        ``view-one-sql-per-dialect``: two dialects differ only in case.
    """
    if isinstance(given, str):
        if dialect is None and len(known) != 1:
            stored = f" (the view has {', '.join(map(_short, known[:5]))})" if known else ""
            raise OptionError(f"in which dialect is the SQL? give dialect='spark', or {{'spark': sql}}{stored}")
        found = {known[0] if dialect is None else text_of("dialect", dialect, "a dialect such as 'spark'"): given}
    else:
        if dialect is not None:
            raise OptionError("dialect= is for a single text; a dictionary already has the dialects as its keys")
        found = mapping_of("sql", given, "{'spark': 'SELECT 1 AS one'}", values=str)
        if not found:
            raise OptionError("sql: give at least one query: {'spark': 'SELECT 1 AS one'}")
    for name, text in found.items():
        if not name.strip():
            raise OptionError("sql: a dialect's name is empty; give, for example, {'spark': sql}")
        refuse_half_characters(name, "the dialect")
        refuse_half_characters(text, "the SQL")
        if not text.strip():
            raise OptionError(f"the SQL for {_short(name)} is empty: give a SELECT statement")
        if _CREATE.match(text):
            raise OptionError(f"the SQL for {_short(name)} is a CREATE VIEW statement: give only the query after AS")
    _refuse_twice(found)
    return {str(name): str(text) for name, text in found.items()}


def _refuse_twice(sql: Mapping[str, str]) -> None:
    """Refuse SQL for two dialects whose names differ only in case, such as ``spark`` and ``Spark``.

    Raises
    ------
    RuleError
        ``view-one-sql-per-dialect``
    """
    names = [name.lower() for name in sql]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise RuleError("view-one-sql-per-dialect", f"there are several queries for the dialect {_short(twice)!r}")


def given_namespace(given: NamespaceLike, what: str = "default_namespace") -> tuple[str, ...]:
    """Return the parts of a namespace: ``"a.b"`` is split at dots, and a sequence already has the parts.

    An empty text or sequence means no namespace and returns ``()``.

    Parameters
    ----------
    what
        The name of the user's argument, for error messages.

    Raises
    ------
    OptionError
        A part is empty or contains a lone surrogate, or ``given`` is neither a text nor a sequence of texts.
    """
    parts: Any = tuple(given.split(".")) if isinstance(given, str) else texts_of(what, given, "('a', 'b')")
    parts = () if parts == ("",) else parts
    for part in parts:
        refuse_half_characters(part, what)
        if not part:
            raise OptionError(f"{what}={given!r}: a part of the namespace is empty")
    return tuple(parts)


def query_columns(sql: str, dialect: str) -> tuple[str, ...] | None:
    """Return the names of the columns that a query returns.

    The result is None if the query's text does not show them (``SELECT *``), or if the text is too complex or cannot be
    parsed as SQL of the dialect.
    """
    stored = Representation("sql", sql, dialect)
    version = ViewVersion(1, 0, 0, {}, (stored,), default_namespace=())
    query = query_lineage(version, stored)
    if isinstance(query, UnparsedQuery) or not query.columns or any(c.name == ALL_COLUMNS for c in query.columns):
        return None
    return tuple(c.name for c in query.columns)


def _check_columns(query: ViewQuery, schema: Schema) -> None:
    """Refuse a schema that does not have as many columns as the SQL of a query returns.

    SQL whose text does not show how many columns it returns, as with ``SELECT *``, is not checked.

    Raises
    ------
    RuleError
        ``view-columns``
    """
    wanted = [f.name for f in schema.fields]
    for dialect, text in query.sql.items():
        found = query_columns(text, dialect)
        if found is not None and len(found) != len(wanted):
            raise RuleError(
                "view-columns",
                f"the {_short(dialect)} query returns {_listed(found)}, but the schema has {_listed(wanted)}; "
                "give schema= with a type for each column",
            )


def _kept_columns(sql: Mapping[str, str], schema: Schema | None) -> Schema:
    """Return ``schema``, after checking that the SQL of each dialect returns columns with the same names.

    The names must also have the same order; their case may differ.

    Parameters
    ----------
    schema
        The schema of the view's current version; None if it has none.

    Raises
    ------
    OptionError
        ``schema`` is None, the SQL returns columns with other names, or its text does not show the names, as with
        ``SELECT *``.
    """
    example = "schema={'day': 'date', 'trips': 'long'}"
    if schema is None:
        raise OptionError(f"the view has no schema: give one, such as {example}")
    wanted = [f.name.lower() for f in schema.fields]
    for dialect, text in sql.items():
        found = query_columns(text, dialect)
        if found is None:
            raise OptionError(
                f"the columns of the {_short(dialect)} query cannot be known from its text: give {example}, or "
                "keep the view's columns with schema=v.schema"
            )
        if [name.lower() for name in found] != wanted:
            raise OptionError(
                f"the {_short(dialect)} query returns {_listed(found)}, but the view has {_listed(wanted)}: "
                f"give {example}"
            )
    return schema


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(_short, names[:5])) + (" …" if len(names) > 5 else "")
    return f"{len(names)} column{'' if len(names) == 1 else 's'} ({shown})"


def _short(name: str) -> str:
    return escape.shorten(name, 60)
