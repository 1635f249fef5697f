"""Resolve the names in a query: the tables that it reads, and the columns from which its columns are computed.

The syntax tree is walked from the inside out. A `_Relation` holds the columns that a query, table or function returns,
each with the table columns from which it is computed. The columns of a table are unknown unless they are given, so an
unqualified name may have several candidates: all of them are then listed, and the column is not `certain`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from iceexplore.errors import UnsupportedError
from iceexplore.views.lineage._model import (
    ALL_COLUMNS,
    ColumnSource,
    OutputColumn,
    QueryLineage,
    TableReference,
)
from iceexplore.views.sql._parse import ParsedQuery, sql_text

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["TooComplexError", "resolve_names", "table_nodes"]

#: The maximum number of columns and column sources in one query: each level of nested stars may double them.
_MOST_STEPS = 100_000
#: The maximum number of notes about names.
_MOST_NOTES = 20


class TooComplexError(UnsupportedError):
    """Resolving a query's names would take too long."""


@dataclass(frozen=True)
class _Column:
    """A column of a relation; each of its sources is a pair of a table's index and a column name."""

    name: str
    sources: frozenset[tuple[int, str]] = frozenset()
    certain: bool = True
    expression: Any = None
    #: The index of the table if this column represents all unknown columns of a table.
    star: int | None = None
    #: Whether it is a table's column that no expression has changed.
    unchanged: bool = False


@dataclass(frozen=True)
class _Relation:
    columns: tuple[_Column, ...]

    @property
    def is_known(self) -> bool:
        return all(column.star is None for column in self.columns)


@dataclass(frozen=True)
class _Source:
    """An item of a FROM clause: a relation under an alias; ``parts`` are the parts of a table's name as written."""

    alias: str
    relation: _Relation
    parts: tuple[str, ...] = ()
    #: Columns that USING joins with a column of the same name in an earlier source.
    using: frozenset[str] = frozenset()


@dataclass
class _Scope:
    """The relations, aliases and windows that names in a query block may refer to."""

    ctes: Mapping[str, _Relation]
    outer: _Scope | None
    sources: list[_Source] = field(default_factory=list)
    aliases: dict[str, _Column] = field(default_factory=dict)
    windows: dict[str, _Column] = field(default_factory=dict)


def resolve_names(
    query: ParsedQuery,
    default_catalog: str | None,
    default_namespace: tuple[str, ...] | None,
    known: Mapping[str, Sequence[str]] | None = None,
) -> QueryLineage:
    """Return the tables and columns that a query reads.

    Parameters
    ----------
    default_catalog, default_namespace
        The defaults for references that do not name a catalog or namespace (view spec, "Versions").
    known
        The columns of tables, by the text of their `TableReference`.

    Raises
    ------
    TooComplexError
        The names cannot be resolved within a reasonable time.
    RecursionError
        The query is nested too deeply.
    """
    return _Resolver(query.dialect, default_catalog, default_namespace, known or {}).resolve(query.tree)


def table_nodes(
    query: ParsedQuery, default_catalog: str | None, default_namespace: tuple[str, ...] | None
) -> list[tuple[exp.Expr, TableReference]]:
    """Return the nodes of a query's tree that name a table or view (not a ``WITH`` query), each with the table.

    Raises
    ------
    TooComplexError, RecursionError
        As for `resolve_names`.
    """
    resolver = _Resolver(query.dialect, default_catalog, default_namespace, {})
    references = {str(one): one for one in resolver.resolve(query.tree).tables}
    named = [(node, str(resolver.reference(index))) for node, index in resolver.nodes.values()]
    return [(node, references[name]) for node, name in named]


class _Resolver:
    def __init__(
        self,
        dialect: str,
        catalog: str | None,
        namespace: tuple[str, ...] | None,
        known: Mapping[str, Sequence[str]],
    ) -> None:
        self._dialect = dialect
        self._catalog = catalog
        self._namespace = namespace
        self._known = known
        self._tables: dict[str, int] = {}
        self._references: list[TableReference] = []
        self._read: list[dict[str, str]] = []
        self._notes: dict[str, None] = {}
        self._steps = 0
        #: The nodes that name tables, by identity, with the index of the table.
        self.nodes: dict[int, tuple[exp.Expr, int]] = {}

    def reference(self, index: int) -> TableReference:
        """Return a table by its index."""
        return self._references[index]

    def resolve(self, tree: exp.Expr) -> QueryLineage:
        relation = self._query(tree, _Scope({}, None))
        tables = tuple(
            replace(one, columns=tuple(read.values())) for one, read in zip(self._references, self._read, strict=True)
        )
        columns = tuple(self._output(column) for column in relation.columns)
        return QueryLineage(tables, columns, tuple(self._notes)[:_MOST_NOTES])

    def _output(self, column: _Column) -> OutputColumn:
        sources = sorted(column.sources if column.star is None else {(column.star, ALL_COLUMNS)})
        expression = "" if column.expression is None else sql_text(column.expression, self._dialect)
        found = tuple(ColumnSource(str(self._references[index]), name) for index, name in sources)
        kind = _type_of(column.expression)
        return OutputColumn(column.name, expression, found, column.certain, column.unchanged, kind)

    def _count(self, steps: int) -> None:
        self._steps += steps
        if self._steps > _MOST_STEPS:
            raise TooComplexError("the query has too many columns to resolve their names")

    # Queries ----------------------------------------------------------------------------------------------------------

    def _query(self, tree: exp.Expr, scope: _Scope) -> _Relation:
        """Return a query's result as a relation; ``scope`` is the scope around the query."""
        from sqlglot import exp

        if isinstance(tree, (exp.Subquery, exp.Paren)):
            inner = _Scope(self._ctes(tree, scope), scope.outer, scope.sources)
            if isinstance(tree.this, exp.Table):  # a join in parentheses
                block = _Scope(inner.ctes, scope)
                self._sources_of(tree, tree.this, block)
                return _Relation(tuple(self._star(block)))
            found = self._query(tree.this, inner)
            self._clauses(tree, ("this", "alias", "with", "with_", "joins", "laterals"), inner)
            return _named(found, tree.args.get("alias"))
        if isinstance(tree, exp.Select):
            return self._select(tree, scope)
        if isinstance(tree, exp.SetOperation):
            return self._set_operation(tree, scope)
        if isinstance(tree, exp.Values):
            return self._function(tree, scope)
        if isinstance(tree, exp.Table):
            block = _Scope(scope.ctes, scope)
            self._source(tree, block)
            return _Relation(tuple(self._star(block)))
        self._note(f"a part of the query is not resolved: {type(tree).__name__.upper()}")
        return _Relation(())

    def _ctes(self, tree: exp.Expr, scope: _Scope) -> Mapping[str, _Relation]:
        from sqlglot import exp

        clause = tree.args.get("with_") or tree.args.get("with")
        if clause is None:
            return scope.ctes
        found = dict(scope.ctes)
        for cte in clause.expressions:
            name = cte.alias.lower()
            inner = _Scope(dict(found), scope.outer)
            body = _bare(cte.this)
            if clause.args.get("recursive") and isinstance(body, exp.SetOperation):
                # The recursive part reads what the first part returns.
                first = _named(self._query(body.this, inner), cte.args.get("alias"))
                inner = _Scope({**found, name: first}, scope.outer)
            found[name] = _named(self._query(cte.this, inner), cte.args.get("alias"))
        return found

    def _select(self, tree: exp.Select, around: _Scope) -> _Relation:
        scope = _Scope(self._ctes(tree, around), around if around.sources or around.outer else None)
        first = tree.args.get("from_") or tree.args.get("from")
        self._sources_of(tree, None if first is None else first.this, scope)
        for window in tree.args.get("windows") or ():
            scope.windows[window.name.lower()] = self._sources_in(list(window.args.values()), scope)
        columns: list[_Column] = []
        for projection in tree.expressions:
            made = list(self._projection(projection, scope))
            columns += made
            for column in made:
                if projection.alias and column.name:
                    scope.aliases.setdefault(column.name.lower(), column)
        done = ("expressions", "from", "from_", "joins", "laterals", "with", "with_")
        self._clauses(tree, done, scope)
        return _Relation(tuple(columns))

    def _set_operation(self, tree: exp.SetOperation, around: _Scope) -> _Relation:
        scope = _Scope(self._ctes(tree, around), around.outer, around.sources)
        # A chain of unions is nested on the left; a loop avoids deep recursion.
        parts: list[exp.Expr] = []
        at: exp.Expr = tree
        while type(at) is type(tree) and (at is tree or not (at.args.get("with_") or at.args.get("with"))):
            parts.append(at.args["expression"])
            at = at.this
        relations = [self._query(at, scope), *(self._query(part, scope) for part in reversed(parts))]
        self._clauses(
            tree, ("this", "expression", "with", "with_"), _Scope(scope.ctes, None, aliases=_aliases(relations[0]))
        )
        first = relations[0]
        for other in relations[1:]:
            first = self._merged(first, other)
        return first

    def _merged(self, one: _Relation, other: _Relation) -> _Relation:
        """Return the columns of a set operation, matched by position if the columns of both sides are known."""
        self._count(len(one.columns) + len(other.columns))
        if one.is_known and other.is_known:
            if len(one.columns) != len(other.columns):
                self._note("the parts of a set operation have different numbers of columns")
            pairs = zip(one.columns, other.columns, strict=False)
            merged = [
                replace(
                    a,
                    sources=a.sources | b.sources,
                    certain=a.certain and b.certain,
                    unchanged=a.unchanged and b.unchanged and a.sources == b.sources,
                )
                for a, b in pairs
            ]
            return _Relation((*merged, *one.columns[len(merged) :]))
        if len(one.columns) == len(other.columns) == 1 and one.columns[0].star is not None:
            both = {c.star for c in (*one.columns, *other.columns) if c.star is not None}
            sources = frozenset((index, ALL_COLUMNS) for index in both) | other.columns[0].sources
            return _Relation((replace(one.columns[0], sources=sources, star=None, certain=False, unchanged=False),))
        every = frozenset(source for c in other.columns for source in self._all_of(c))
        return _Relation(
            tuple(replace(c, sources=c.sources | every, certain=False, unchanged=False) for c in one.columns)
        )

    @staticmethod
    def _all_of(column: _Column) -> frozenset[tuple[int, str]]:
        return column.sources if column.star is None else frozenset({(column.star, ALL_COLUMNS)})

    # Sources ----------------------------------------------------------------------------------------------------------

    def _sources_of(self, tree: exp.Expr, first: exp.Expr | None, scope: _Scope) -> None:
        """Add the items of FROM, LATERAL and JOIN to a scope, in this order, and read the conditions of joins."""
        if first is not None:
            self._source(first, scope)
        for lateral in tree.args.get("laterals") or ():
            self._source(lateral, scope)
        for join in tree.args.get("joins") or ():
            using = [one.name for one in join.args.get("using") or ()]
            for name in using:
                self._column_named(name, scope)
            self._source(join.this, scope, using)
            for name in using:
                self._column_in(scope.sources[-1:], name)
            if join.args.get("on") is not None:
                self._sources_in(join.args["on"], scope)

    def _source(self, node: exp.Expr, scope: _Scope, using: Iterable[str] = ()) -> None:
        from sqlglot import exp

        alias = node.args.get("alias")
        name = (node.alias or (node.name if isinstance(node, exp.Table) else "") or "").lower()
        shared = frozenset(one.lower() for one in using)
        if isinstance(node, exp.Table):
            parts = tuple(_parts(node))
            if not parts:  # a function that returns a table
                scope.sources.append(_Source(name, _named(self._function(node, scope), alias), using=shared))
            elif len(parts) == 1 and parts[0].lower() in scope.ctes:
                relation = _named(scope.ctes[parts[0].lower()], alias)
                scope.sources.append(_Source(name, self._pivoted(node, relation, scope), using=shared))
            else:
                relation = _named(self._table(parts, node), alias)
                written = () if node.alias else tuple(part.lower() for part in parts)
                scope.sources.append(_Source(name, self._pivoted(node, relation, scope), written, shared))
            self._sources_of(node, None, scope)  # joins in parentheses are attached to their first table
            return
        if isinstance(node, exp.Lateral):
            if isinstance(node.this, exp.Subquery):
                relation = self._query(node.this, _Scope(scope.ctes, scope.outer, scope.sources))
            else:
                relation = self._function(node, scope)
            scope.sources.append(_Source(name, _named(relation, alias), using=shared))
            return
        if isinstance(node, (exp.Unnest, exp.Values)):
            scope.sources.append(_Source(name, _named(self._function(node, scope), alias), using=shared))
            return
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table) and not node.alias:
            self._sources_of(node, node.this, scope)
            return
        relation = self._query(node, _Scope(scope.ctes, scope.outer))
        scope.sources.append(_Source(name, self._pivoted(node, relation, scope), using=shared))

    def _table(self, parts: tuple[str, ...], node: exp.Expr) -> _Relation:
        reference = self._reference(parts)
        index = self._tables.setdefault(str(reference).lower(), len(self._references))
        self.nodes[id(node)] = node, index
        if index == len(self._references):
            self._references.append(reference)
            self._read.append({})
        columns = self._known.get(str(self._references[index]))
        if columns is None:
            return _Relation((_Column(ALL_COLUMNS, star=index, unchanged=True),))
        self._count(len(columns))
        return _Relation(tuple(_Column(name, frozenset({(index, name)}), unchanged=True) for name in columns))

    def _reference(self, parts: tuple[str, ...]) -> TableReference:
        """Resolve a name: one part is in the default namespace, two have a namespace, more begin with a catalog."""
        written = ".".join(parts)
        if len(parts) == 1:
            return TableReference(written, self._catalog, self._namespace, parts[0])
        if len(parts) == 2:
            return TableReference(written, self._catalog, parts[:1], parts[1])
        return TableReference(written, parts[0], parts[1:-1], parts[-1])

    def _function(self, node: exp.Expr, scope: _Scope) -> _Relation:
        """Return the relation of a function in FROM, whose columns are computed from all columns in its arguments."""
        sources: set[tuple[int, str]] = set()
        certain = True
        for key, value in node.args.items():
            if key != "alias":
                found = self._sources_in(value, scope)
                sources |= found.sources
                certain = certain and found.certain
        alias = node.args.get("alias")
        names = [one.name for one in (alias.args.get("columns") or ())] if alias is not None else []
        if not names and alias is not None and alias.name:
            names = [alias.name]  # BigQuery and DuckDB: the alias names the only column
        if not names:
            return _Relation((_Column(ALL_COLUMNS, frozenset(sources), certain=False),))
        return _Relation(tuple(_Column(name, frozenset(sources), certain) for name in names))

    def _pivoted(self, node: exp.Expr, relation: _Relation, scope: _Scope) -> _Relation:
        """Return a relation after PIVOT or UNPIVOT: any new column may be computed from any of the old ones."""
        pivots = node.args.get("pivots")
        if not pivots:
            return relation
        inner = _Scope(scope.ctes, scope.outer, [_Source("", relation)])
        every = frozenset(source for column in relation.columns for source in self._all_of(column))
        for index, name in every:
            self._read_column(index, name)
        found = self._sources_in(pivots, inner)
        return _Relation((_Column(ALL_COLUMNS, every | found.sources, certain=False),))

    # Columns ----------------------------------------------------------------------------------------------------------

    def _projection(self, node: exp.Expr, scope: _Scope) -> Iterator[_Column]:
        from sqlglot import exp

        if isinstance(node, exp.Star):
            yield from self._without(node, self._star(scope))
            return
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            source = self._source_named([one.name for one in node.parts[:-1]], scope)
            if source is None:
                self._note(f"{node.table}.* names no source of the query")
                return
            yield from self._without(node.this, self._star_of(source))
            return
        if isinstance(node, exp.Aliases):
            found = self._sources_in(node.this, scope)
            yield from (replace(found, name=one.name, expression=node) for one in node.expressions)
            return
        inner = node.unalias()
        if isinstance(inner, exp.Column):
            found = self._column([one.name for one in inner.parts], scope, aliases=False)
        else:
            found = self._sources_in(inner, scope)
        name = node.alias or (node.name if isinstance(node, (exp.Column, exp.Dot)) else "") or node.output_name
        yield replace(found, name=name or sql_text(node, self._dialect), expression=node)

    def _without(self, star: exp.Expr, columns: Iterable[_Column]) -> Iterator[_Column]:
        """Return the columns of a star without those in EXCEPT; REPLACE and RENAME make the columns uncertain."""
        gone = {one.name.lower() for one in star.args.get("except_") or star.args.get("except") or ()}
        changed = bool(star.args.get("replace") or star.args.get("rename"))
        for column in columns:
            if column.name.lower() not in gone or column.star is not None:
                yield replace(column, certain=column.certain and not changed)

    def _star(self, scope: _Scope) -> Iterator[_Column]:
        for source in scope.sources:
            yield from (c for c in self._star_of(source) if c.star is not None or c.name.lower() not in source.using)

    def _star_of(self, source: _Source) -> Iterator[_Column]:
        for column in source.relation.columns:
            self._count(1 + len(column.sources))
            if column.star is not None:
                self._read_column(column.star, ALL_COLUMNS)
            for index, name in column.sources:
                self._read_column(index, name)
            yield replace(column, expression=None)

    def _clauses(self, tree: exp.Expr, done: Sequence[str], scope: _Scope) -> None:
        """Read the columns in all other clauses: filters, grouping, ordering."""
        for key, value in tree.args.items():
            if key not in done and value:
                self._sources_in(value, scope, aliases=True)

    def _sources_in(self, part: Any, scope: _Scope, *, aliases: bool = False) -> _Column:  # noqa: ANN401
        """Return the columns in an expression, or in a list of them, as the sources of an unnamed column."""
        from sqlglot import exp

        sources: set[tuple[int, str]] = set()
        certain = True
        waiting: list[Any] = [part]
        while waiting:
            node = waiting.pop()
            self._count(1)
            if isinstance(node, (list, tuple)):
                waiting += reversed(node)
            elif isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
                found = self._column([one.name for one in node.parts], scope, aliases=aliases)
                sources |= found.sources
                certain = certain and found.certain
            elif isinstance(node, exp.Query):
                inner = self._query(node, scope)
                for column in inner.columns:
                    sources |= self._all_of(column)
                    certain = certain and column.certain
            elif isinstance(node, exp.Expression):
                window = scope.windows.get(node.alias.lower()) if isinstance(node, exp.Window) else None
                if window is not None:
                    sources |= window.sources
                    certain = certain and window.certain
                waiting += reversed(
                    [value for value in node.args.values() if isinstance(value, (list, exp.Expression))]
                )
        self._count(len(sources))
        return _Column("", frozenset(sources), certain)

    def _column(self, parts: list[str], scope: _Scope, *, aliases: bool) -> _Column:
        """Resolve ``a``, ``t.a``, ``db.t.a``, or ``a.b`` where ``a`` is a struct."""
        for length in range(len(parts) - 1, 0, -1):
            source = self._source_named(parts[:length], scope)
            if source is not None:
                found = self._column_in([source], parts[length])
                if found is not None:  # further parts are fields of a struct
                    return found if length == len(parts) - 1 else replace(found, unchanged=False)
                self._note(f"{'.'.join(parts)} is not a column of {'.'.join(parts[:length])}")
                return _Column("", certain=False)
        found = self._column_named(parts[0], scope, aliases=aliases)
        return found if len(parts) == 1 else replace(found, unchanged=False)

    def _source_named(self, qualifier: Sequence[str], scope: _Scope) -> _Source | None:
        """Return the source that a qualifier names, in this block or in one around it."""
        wanted = tuple(part.lower() for part in qualifier)
        at: _Scope | None = scope
        while at is not None:
            for source in at.sources:
                is_alias = len(wanted) == 1 and source.alias == wanted[0]
                if is_alias or (len(wanted) > 1 and source.parts[-len(wanted) :] == wanted):
                    return source
            at = at.outer
        return None

    def _column_named(self, name: str, scope: _Scope, *, aliases: bool = False) -> _Column:
        at: _Scope | None = scope
        alias = scope.aliases.get(name.lower())
        while at is not None:
            surely = [s for s in at.sources if _has(s.relation, name)]
            perhaps = [s for s in at.sources if not s.relation.is_known or _is_pivoted(s.relation)]
            if surely:
                return self._column_in(surely, name) or _Column("")
            # In ORDER BY and GROUP BY, a name refers to a column of the result if no table is known to have the name.
            if alias is not None and (aliases or not perhaps) and at is scope:
                return alias
            if perhaps:
                found = self._column_in(perhaps, name) or _Column("")
                is_certain = len(perhaps) == 1 and alias is None and found.certain
                return replace(found, certain=is_certain)
            at = at.outer
        self._note(f"no source of the query has the column {name}")
        return _Column("", certain=False)

    def _column_in(self, sources: Sequence[_Source], name: str) -> _Column | None:
        """Return a column of some sources: by its name, otherwise as one of the unknown columns of a star."""
        found: set[tuple[int, str]] = set()
        certain, is_there, unchanged = True, False, len(sources) == 1
        for source in sources:
            named = [c for c in source.relation.columns if c.star is None and c.name.lower() == name.lower()]
            if named:
                found |= named[0].sources
                certain, is_there = certain and named[0].certain, True
                unchanged = unchanged and named[0].unchanged
                for index, read in named[0].sources:
                    self._read_column(index, read)
                continue
            for column in source.relation.columns:
                if column.star is not None:
                    found.add((column.star, name))
                    self._read_column(column.star, name)
                    is_there = True
                elif column.name == ALL_COLUMNS:  # the unknown columns of a pivoted relation
                    found |= column.sources
                    certain, is_there, unchanged = False, True, False
        return _Column("", frozenset(found), certain, unchanged=unchanged and len(found) == 1) if is_there else None

    def _read_column(self, index: int, name: str) -> None:
        self._read[index].setdefault(name.lower(), name)

    def _note(self, text: str) -> None:
        self._notes.setdefault(text)


def _parts(table: exp.Expr) -> Iterator[str]:
    """Yield the parts of a table's name; none for a function."""
    from sqlglot import exp

    for part in table.parts:  # type: ignore[attr-defined]
        if not isinstance(part, exp.Identifier):
            return
        yield part.name


def _named(relation: _Relation, alias: Any) -> _Relation:  # noqa: ANN401  (a table alias of a syntax tree, or nothing)
    """Return a relation with the known columns renamed as its alias says."""
    names = (
        [one.name for one in (alias.args.get("columns") or ())] if alias is not None and hasattr(alias, "args") else []
    )
    if not names or not relation.is_known or len(names) != len(relation.columns):
        return relation
    return _Relation(tuple(replace(c, name=name) for c, name in zip(relation.columns, names, strict=True)))


def _bare(tree: exp.Expr) -> exp.Expr:
    from sqlglot import exp

    while isinstance(tree, (exp.Subquery, exp.Paren)):
        tree = tree.this
    return tree


def _aliases(relation: _Relation) -> dict[str, _Column]:
    return {column.name.lower(): column for column in reversed(relation.columns) if column.name}


def _has(relation: _Relation, name: str) -> bool:
    return any(c.star is None and c.name.lower() == name.lower() for c in relation.columns)


def _is_pivoted(relation: _Relation) -> bool:
    return any(c.star is None and c.name == ALL_COLUMNS for c in relation.columns)


def _type_of(expression: Any) -> str | None:  # noqa: ANN401  (a syntax tree, or nothing)
    """Return the Iceberg type of a count, a condition, or a cast to a type that Iceberg has; None for all others."""
    from sqlglot import exp

    if expression is None:
        return None
    node = _bare(expression.unalias())
    if isinstance(node, exp.Count):
        return "long"
    if isinstance(node, (exp.Predicate, exp.And, exp.Or, exp.Not)):
        return "boolean"
    if not isinstance(node, exp.Cast):
        return None
    kinds = exp.DataType.Type
    parameters = [one.name for one in node.to.expressions]
    if node.to.this == kinds.DECIMAL and len(parameters) == 2:
        return f"decimal({parameters[0]}, {parameters[1]})"
    return {
        kinds.BIGINT: "long", kinds.BOOLEAN: "boolean", kinds.DATE: "date", kinds.DOUBLE: "double", kinds.INT: "int",
        kinds.SMALLINT: "int", kinds.TEXT: "string", kinds.TINYINT: "int", kinds.VARCHAR: "string",
    }.get(node.to.this)  # fmt: skip
