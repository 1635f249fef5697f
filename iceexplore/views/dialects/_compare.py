"""Compare the SQL of two dialects of one version: whether they store the same query, and where they differ.

Both queries are normalized: table names resolved, translated into one dialect, names in lower case, equivalent
notations unified. Then their trees are compared like two versions in one dialect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from iceexplore.errors import OptionError, UnsupportedError
from iceexplore.render import Card, CardTable, CardText, card_html, card_text
from iceexplore.views._model import Representation, ViewVersion
from iceexplore.views._state import ViewState
from iceexplore.views.lineage._placed import PlacedQuery, placed_query
from iceexplore.views.sql._changes import SqlChange, query_changes
from iceexplore.views.sql._datafusion import define_datafusion
from iceexplore.views.sql._parse import ParsedQuery, UnparsedQuery, parse_query, quiet
from iceexplore.views.sql._translate import GENERATOR_ERRORS

__all__ = ["DialectComparison", "compare_dialects", "dialect_pairs"]

_SHOWN = 60


@dataclass(frozen=True)
class DialectComparison:
    """Two dialects of one version, compared.

    Attributes
    ----------
    a, b
        The dialects.
    same_query
        True if both become the same syntax tree; False if the trees differ; None if one query cannot be parsed or
        translated.
    changes
        The changes that turn the query in ``a`` into the query in ``b``, both in a common notation.
    note
        Why the dialects cannot be compared.
    """

    a: str
    b: str
    same_query: bool | None
    changes: tuple[SqlChange, ...] = ()
    note: str = ""
    title: str = field(default="", repr=False)
    texts: tuple[str, str] = field(default=("", ""), repr=False)

    def card(self) -> Card:
        """Return the comparison as a card, for text and HTML."""
        answer = {True: "the same query", False: "different queries", None: "not comparable"}[self.same_query]
        rows = tuple((change.clause, change.text) for change in self.changes[:_SHOWN])
        more = f"first {_SHOWN} of {len(self.changes):,}" if len(self.changes) > _SHOWN else ""
        notes = [self.note] if self.note else []
        if self.same_query is False:
            notes.append("Different syntax trees may still be equivalent queries.")
        return Card(
            f"{self.title}: {self.a} and {self.b}",
            badges=(answer,),
            texts=tuple(
                CardText(f"SQL, {name}", text) for name, text in zip((self.a, self.b), self.texts, strict=True)
            ),
            tables=(CardTable("Where they differ", ("part", f"from {self.a} to {self.b}"), rows, more),)
            if rows
            else (),
            notes=tuple(notes),
        )

    def __repr__(self) -> str:
        return card_text(self.card())

    def _repr_html_(self) -> str:
        return card_html(self.card())


def compare_dialects(state: ViewState, a: str | None = None, b: str | None = None) -> DialectComparison:
    """Compare two stored dialects of the selected version, by default the only two that it stores.

    Raises
    ------
    OptionError
        A dialect is not stored, or it is not clear which two are meant.
    """
    version = state.version
    stored = () if version is None else version.dialects
    listed = ", ".join(map(repr, stored)) or "none"
    wanted = [name for name in (a, b) if name is not None]
    if not all(isinstance(name, str) for name in wanted):
        raise OptionError(f"a dialect is given by its name, one of {listed}")
    others = [name for name in stored if name.lower() not in {one.lower() for one in wanted}]
    if len(wanted) < 2:
        if len(others) != 2 - len(wanted):
            raise OptionError(f"{state.name} stores its query in {len(stored)} dialects: give two of {listed}")
        wanted += others
    assert version is not None or not stored
    found = [None if version is None else version.representation(name) for name in wanted]
    for name, one in zip(wanted, found, strict=True):
        if one is None:
            raise OptionError(f"{state.name} does not store its query in the dialect {name!r}; it stores {listed}")
    assert version is not None
    first, second = (one for one in found if one is not None)
    return _compared(version, first, second, f"{state.name} version {version.version_id}")


def dialect_pairs(version: ViewVersion, name: str) -> Iterator[DialectComparison]:
    """Compare the first stored dialect of a version with each of the others."""
    stored = [version.representation(dialect) for dialect in version.dialects]
    known = [one for one in stored if one is not None]
    for other in known[1:]:
        yield _compared(version, known[0], other, f"{name} version {version.version_id}")


def _compared(version: ViewVersion, one: Representation, other: Representation, title: str) -> DialectComparison:
    names = one.dialect or "?", other.dialect or "?"
    texts = one.sql or "", other.sql or ""
    trees = []
    for r in (one, other):
        tree = _common_form(version, r, title)
        if isinstance(tree, UnparsedQuery):
            return DialectComparison(*names, None, (), f"{r.dialect}: {tree.why}", title, texts)
        trees.append(tree)
    try:
        changes = tuple(query_changes(trees[0], trees[1]))
    except RecursionError:
        return DialectComparison(*names, None, (), "the SQL is nested too deeply", title, texts)
    return DialectComparison(*names, not changes, changes, "", title, texts)


def _common_form(version: ViewVersion, r: Representation, title: str) -> ParsedQuery | UnparsedQuery:
    """Return a query in DataFusion's SQL, with resolved names and normalized notation."""
    # Engines name their catalogs differently, so tables are compared by namespace and name.
    placed = placed_query(r.sql or "", r.dialect, version.catalog_of(r), version.namespace_of(r), title)
    if isinstance(placed, UnparsedQuery):
        return placed
    text = _with_names(placed)
    if isinstance(text, UnparsedQuery):
        return text
    parsed = parse_query(text, define_datafusion())
    if isinstance(parsed, UnparsedQuery):
        return parsed
    try:
        with quiet():
            return ParsedQuery(_plain(parsed.tree), parsed.dialect)
    except RecursionError:
        return UnparsedQuery("its SQL is nested too deeply")
    except GENERATOR_ERRORS as error:
        return UnparsedQuery(f"sqlglot cannot write its SQL ({type(error).__name__})")


def _with_names(placed: PlacedQuery) -> str | UnparsedQuery:
    names = [".".join(reference.identifier).lower() for reference, _ in placed.tables]
    states = ["" if one is None else f"@{one.value}" for _, one in placed.tables]
    try:
        return placed.sql([a + b for a, b in zip(names, states, strict=True)], define_datafusion(), ())
    except UnsupportedError as error:
        return UnparsedQuery(str(error))


def _plain(tree: Any) -> Any:  # noqa: ANN401  (a syntax tree, and its nodes)
    """Unify equivalent notations: positions in GROUP BY, redundant aliases, the order of operands."""
    from sqlglot import exp

    for select in tree.find_all(exp.Select):
        _expand_positions(select)
        sources = [s for s in (select.args.get("from_") or select.args.get("from"),) if s is not None]
        single = len(sources) == 1 and not select.args.get("joins") and not select.args.get("laterals")
        name = sources[0].this.alias_or_name if single else ""
        if single and name and select.find_ancestor(exp.Select) is None and not list(_inner_queries(select)):
            for column in select.find_all(exp.Column):
                if column.table == name:
                    column.set("table", None)
            if isinstance(sources[0].this, exp.Table):
                sources[0].this.set("alias", None)
        for item in list(select.expressions):
            if isinstance(item, exp.Alias) and isinstance(item.this, exp.Column) and item.alias == item.this.name:
                item.replace(item.this)
    for join in tree.find_all(exp.Join):
        if str(join.args.get("kind") or "").upper() in ("INNER", "OUTER"):
            join.set("kind", None)
    for count in tree.find_all(exp.Count):
        if isinstance(count.this, exp.Literal):
            count.set("this", exp.Star())
    while isinstance(tree, exp.Subquery) and not tree.alias:
        tree = tree.this
    for node in reversed(list(tree.walk())):  # from the leaves up
        simple = _ordered(node)
        if simple is not node:
            if node is tree:
                tree = simple
            else:
                node.replace(simple)
    return tree


def _inner_queries(select: Any) -> Iterable[Any]:  # noqa: ANN401  (sqlglot's nodes)
    from sqlglot import exp

    return (one for one in select.find_all(exp.Select) if one is not select)


def _expand_positions(select: Any) -> None:  # noqa: ANN401  (a sqlglot node)
    from sqlglot import exp

    def at(item: Any) -> Any:  # noqa: ANN401
        if isinstance(item, exp.Literal) and item.is_int and 0 < int(item.this) <= len(select.expressions):
            return select.expressions[int(item.this) - 1].unalias().copy()
        return item

    group = select.args.get("group")
    aliases = {one.alias.lower(): one.this for one in select.expressions if isinstance(one, exp.Alias)}
    if group is not None:
        keys = [at(one) for one in group.expressions]
        # GROUP BY may use an alias from the SELECT list: replace the alias by its expression.
        keys = [
            aliases[key.name.lower()].copy() if isinstance(key, exp.Column) and key.name.lower() in aliases else key
            for key in keys
        ]
        group.set("expressions", keys)
    order = select.args.get("order")
    for item in order.expressions if order is not None else ():
        if isinstance(item, exp.Ordered):
            item.set("this", at(item.this))


def _ordered(node: Any) -> Any:  # noqa: ANN401  (a sqlglot node)
    """Return a node in normal form: operands of symmetric operators sorted, comparisons as less-than, fewer casts."""
    from sqlglot import exp

    if isinstance(node, exp.Paren) and not isinstance(node.this, (exp.Binary, exp.Query)):
        return node.this
    mirrored = {exp.GT: exp.LT, exp.GTE: exp.LTE}.get(type(node))
    if mirrored is not None:
        return mirrored(this=node.expression, expression=node.this)
    if isinstance(node, (exp.EQ, exp.NEQ, exp.NullSafeEQ)):
        sides: Sequence[Any] = sorted((node.this, node.expression), key=_sql)
        return type(node)(this=sides[0].copy(), expression=sides[1].copy())
    if isinstance(node, (exp.And, exp.Or)) and type(node.parent) is not type(node):
        operands = sorted(node.flatten(), key=_sql)
        found = operands[0].copy()
        for operand in operands[1:]:
            found = type(node)(this=found, expression=operand.copy())
        return found
    # sqlglot adds such casts for some dialects.
    inner = node.this
    if isinstance(node, exp.Cast) and isinstance(inner, exp.Cast) and type(node) is type(inner) and node.to == inner.to:
        return inner
    if isinstance(node, exp.TimeToStr) and isinstance(inner, exp.Cast) and inner.is_type("timestamp"):
        node.set("this", inner.this)
    return node


def _sql(node: Any) -> str:  # noqa: ANN401  (a sqlglot node)
    return str(node.sql())
