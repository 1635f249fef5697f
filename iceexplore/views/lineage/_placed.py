"""Write a view's query with its tables renamed, in the dialect of the engine that will run it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from iceexplore.errors import UnsupportedError
from iceexplore.render import escape
from iceexplore.views.lineage._model import TableReference
from iceexplore.views.lineage._resolve import TooComplexError, table_nodes
from iceexplore.views.sql._datafusion import datafusion_notes, function_names
from iceexplore.views.sql._parse import ParsedQuery, UnparsedQuery, parse_query, quiet
from iceexplore.views.sql._translate import GENERATOR_ERRORS

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["PlacedQuery", "SourceVersion", "placed_query"]


@dataclass(frozen=True)
class SourceVersion:
    """The state of a table that the query itself asks for: ``VERSION AS OF`` or ``TIMESTAMP AS OF``."""

    kind: str
    value: str


class PlacedQuery:
    """A query whose tables can be renamed; each occurrence of a table gets a separate name.

    Attributes
    ----------
    tables
        For each occurrence of a table: the table, and the state that the query asks for, or None.
    functions
        The functions that the query calls, as sqlglot names them.
    """

    def __init__(self, tree: exp.Expr, nodes: Sequence[tuple[exp.Expr, TableReference]], name: str) -> None:
        self._tree, self._nodes, self._name = tree, [node for node, _ in nodes], name
        self.tables = tuple((reference, _version_of(node, name)) for node, reference in nodes)
        self.functions = tuple(function_names(tree))

    def notes(self, types: Mapping[str, Collection[str]]) -> tuple[str, ...]:
        """Return what DataFusion may compute differently; see `datafusion_notes`. Call this before `sql`."""
        return tuple(datafusion_notes(self._tree, types))

    def sql(self, names: Sequence[str], dialect: str, columns: Iterable[str] | None = None) -> str:
        """Return the query in a dialect. May be called once.

        Parameters
        ----------
        names
            A new name for each occurrence of a table.
        columns
            The names of the tables' columns and struct fields, if the target distinguishes case: names in the query,
            which other engines match regardless of case, are then spelled like these.

        Raises
        ------
        UnsupportedError
            sqlglot cannot write the query in this dialect.
        """
        from sqlglot import exp
        from sqlglot.errors import ErrorLevel
        from sqlglot.errors import UnsupportedError as Untranslatable

        aliases = self._rename(names)
        for column in list(self._tree.find_all(exp.Column)):
            _requalify(column, aliases)
        if columns is not None:
            self._respell(columns, set(names))
            _name_columns(self._tree)
        how: dict[str, Any] = {"dialect": dialect, "comments": False, "identify": True, "normalize_functions": "lower"}
        try:
            with quiet():
                return self._tree.sql(**how, unsupported_level=ErrorLevel.RAISE)
        except Untranslatable as error:
            what = "; ".join(line for line in str(error).splitlines() if line.strip())
            why = escape.shorten(what, 300) or "a part of it has no equivalent"
        except RecursionError:
            why = "it is nested too deeply"
        except GENERATOR_ERRORS as error:
            why = type(error).__name__
        raise UnsupportedError(f"sqlglot cannot write the query of {self._name} in {dialect}: {why}")

    def _rename(self, names: Sequence[str]) -> list[tuple[tuple[str, ...], str]]:
        """Rename the tables; return, for each table without an alias, the parts of its old name and its new alias."""
        from sqlglot import exp

        blocks = [node.find_ancestor(exp.Select) for node in self._nodes]
        found = []
        given = [
            (id(table.find_ancestor(exp.Select)), table.alias.lower())
            for table in self._tree.find_all(exp.Table, exp.Subquery, exp.Lateral, exp.Unnest)
            if table.alias
        ]
        unnamed = [
            (id(block), node.name.lower()) for block, node in zip(blocks, self._nodes, strict=True) if not node.alias
        ]
        for node, block, name, (reference, _) in zip(self._nodes, blocks, names, self.tables, strict=True):
            if not node.alias:
                # Queries refer to a table by the last part of its name. Two tables may share it: a.t JOIN b.t.
                key = (id(block), node.name.lower())
                alias = name if unnamed.count(key) > 1 or key in given else node.name
                parts = (*((reference.catalog,) if reference.catalog is not None else ()), *reference.identifier)
                found.append((tuple(part.lower() for part in parts), alias))
                node.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
            node.set("this", exp.to_identifier(name, quoted=True))
            for key_name in ("db", "catalog", "version", "when"):
                node.set(key_name, None)
        return found

    def _respell(self, columns: Iterable[str], fixed: set[str]) -> None:
        from sqlglot import exp

        spelled: dict[str, set[str]] = {}
        for name in columns:
            spelled.setdefault(name.lower(), set()).add(name)
        for identifier in self._tree.find_all(exp.Identifier):
            name = str(identifier.this)
            known = spelled.get(name.lower(), {name.lower()})
            if name in fixed or name in known:
                continue
            if len(known) == 1:  # columns that differ only in case stay as written
                identifier.set("this", next(iter(known)))


def placed_query(text: str, dialect: str | None, catalog: str | None, namespace: tuple[str, ...] | None, name: str
                 ) -> PlacedQuery | UnparsedQuery:  # fmt: skip
    """Parse a query so that its tables can be renamed; if that fails, the result has the reason."""
    parsed = parse_query(text, dialect)
    if isinstance(parsed, UnparsedQuery):
        return parsed
    from sqlglot import exp

    try:
        copy = ParsedQuery(parsed.tree.copy(), parsed.dialect)
        nodes = table_nodes(copy, catalog, namespace)
    except RecursionError:
        return UnparsedQuery("its SQL is nested too deeply")
    except TooComplexError as error:
        return UnparsedQuery(str(error))
    found = {id(node) for node, _ in nodes}
    queries = {cte.alias.lower() for cte in copy.tree.find_all(exp.CTE)}
    for table in copy.tree.find_all(exp.Table):
        is_query = not table.args.get("db") and table.name.lower() in queries
        if id(table) not in found and not is_query and isinstance(table.this, exp.Identifier):
            return UnparsedQuery(f"it is not known what {escape.shorten(table.name, 60)!r} refers to")
    return PlacedQuery(copy.tree, nodes, name)


def _requalify(column: exp.Column, aliases: list[tuple[tuple[str, ...], str]]) -> None:
    """Replace the name of a table in front of a column by the alias that the table now has."""
    from sqlglot import exp

    parts = [part.name for part in column.parts]
    for length in range(len(parts) - 1, 0, -1):
        wanted = tuple(part.lower() for part in parts[:length])
        matching = list({alias for name, alias in aliases if name[-length:] == wanted})
        if len(matching) != 1:
            continue
        if length == 1 and matching[0] == parts[0]:
            return
        rest = [part.copy() for part in column.parts[length:]]
        alias = exp.to_identifier(matching[0], quoted=True)
        if len(rest) == 1:
            column.replace(exp.Column(this=rest[0], table=alias))
        else:
            column.replace(exp.Dot.build([exp.Column(this=rest[0], table=alias), *rest[1:]]))
        return


def _name_columns(tree: Any) -> None:  # noqa: ANN401  (a syntax tree)
    """Give each column of a query's result a distinct name, so that another query can read from it."""
    from sqlglot import exp

    while not isinstance(tree, exp.Select):
        if not isinstance(tree, (exp.SetOperation, exp.Subquery, exp.Paren)):
            return
        tree = tree.this
    taken: set[str] = set()
    for number, item in enumerate(list(tree.expressions)):
        if item.is_star or isinstance(item, exp.Aliases):
            return
        name = item.alias or (item.name if isinstance(item, (exp.Column, exp.Dot)) else "")
        if not name or name.lower() in taken:
            name = f"column_{number}"
            while name in taken:
                name += "_"
            item.replace(exp.alias_(item.unalias().copy(), name, quoted=True))
        taken.add(name.lower())


def _version_of(table: exp.Expr, name: str) -> SourceVersion | None:
    from sqlglot import exp

    version = table.args.get("version")
    if version is None and table.args.get("when") is None:
        return None
    how: dict[str, Any] = {} if version is None else version.args
    value, kind = how.get("expression"), str(how.get("this") or "").upper()
    if not isinstance(value, exp.Literal) or str(how.get("kind")).upper() != "AS OF" or not kind:
        shown = escape.shorten(table.sql(), 80)
        raise UnsupportedError(
            f"{name} reads {shown}: only VERSION AS OF and TIMESTAMP AS OF with a literal can be followed here"
        )
    return SourceVersion(kind, str(value.this))
