"""Compare two queries as syntax trees, clause by clause, and describe the changes in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Literal

from iceexplore.render import escape
from iceexplore.views.sql._parse import ParsedQuery, sql_text

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["SqlChange", "query_changes"]

Kind = Literal["added", "changed", "moved", "removed", "renamed"]

#: The maximum number of characters of SQL in the text of a change.
_SHOWN = 120
#: The names of clauses to display, by sqlglot's argument names.
_CLAUSES = {
    "cluster": "CLUSTER BY",
    "distinct": "DISTINCT",
    "distribute": "DISTRIBUTE BY",
    "group": "GROUP BY",
    "having": "HAVING filter",
    "hint": "hint",
    "laterals": "lateral views",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "order": "ORDER BY",
    "pivots": "PIVOT",
    "qualify": "QUALIFY filter",
    "sample": "TABLESAMPLE",
    "sort": "SORT BY",
    "where": "filter",
    "windows": "WINDOW",
}
_FILTERS = ("where", "having", "qualify")


@dataclass(frozen=True)
class SqlChange:
    """A change of one part of a query.

    Attributes
    ----------
    kind
        ``added``, ``removed``, ``changed``, ``renamed`` or ``moved``.
    clause
        The part: ``column``, ``source``, ``filter``, ``WITH``, ``GROUP BY`` and so on.
    old, new
        The part's SQL before and after, without comments; None where the query does not have the part.
    text
        A sentence for the user.
    """

    kind: Kind
    clause: str
    old: str | None
    new: str | None
    text: str


def query_changes(old: ParsedQuery, new: ParsedQuery) -> list[SqlChange]:
    """Return the changes from one query to another; an empty list if only formatting and comments differ.

    Raises
    ------
    RecursionError
        A query is nested too deeply.
    """
    if old.tree == new.tree:
        return []
    return _Comparison(old.dialect, new.dialect).changes(old.tree, new.tree)


class _Comparison:
    """Compares parts of two queries; each method returns at least one change for parts that differ."""

    def __init__(self, old_dialect: str, new_dialect: str) -> None:
        self._old, self._new = old_dialect, new_dialect

    def changes(self, old: exp.Expr, new: exp.Expr, where: str = "") -> list[SqlChange]:
        from sqlglot import exp

        old, new = _bare(old), _bare(new)
        if old == new:
            return []
        if isinstance(old, exp.Select) and isinstance(new, exp.Select):
            found = [*self._with(old, new, where), *self._columns(old, new, where), *self._sources(old, new, where)]
            done = {"expressions", "from", "from_", "joins", "with", "with_"}
            return [*found, *self._clauses(old, new, done, where)] or [self._whole(old, new, where)]
        if isinstance(old, exp.SetOperation) and type(old) is type(new):
            assert isinstance(new, exp.SetOperation)
            found = [*self._with(old, new, where), *self._parts(old, new, where)]
            return [*found, *self._clauses(old, new, {"this", "expression", "with", "with_"}, where)] or [
                self._whole(old, new, where)
            ]
        return [self._whole(old, new, where)]

    # ------------------------------------------------------------------------------------------------------------------

    def _with(self, old: exp.Expr, new: exp.Expr, where: str) -> list[SqlChange]:
        before, after = ({cte.alias: cte.this for cte in _ctes(tree)} for tree in (old, new))
        found: list[SqlChange] = []
        for name, query in after.items():
            if name not in before:
                found.append(self._change("added", "WITH", None, query, f"WITH {name} added", where))
            elif query != before[name]:
                found += self.changes(before[name], query, f"{where}in WITH {name}: ")
        for name, query in before.items():
            if name not in after:
                found.append(self._change("removed", "WITH", query, None, f"WITH {name} removed", where))
        was, now = (_arg(tree, "with_") for tree in (old, new))
        if not found and was != now:  # RECURSIVE, the order, or duplicate names differ
            found.append(self._change("changed", "WITH", was, now, "WITH changed", where, show=True))
        return found

    def _columns(self, old: exp.Select, new: exp.Select, where: str) -> list[SqlChange]:
        if old.expressions == new.expressions:
            return []
        before, after = (_named(tree.expressions) for tree in (old, new))
        if before is None or after is None:
            return self._sequence("column", old.expressions, new.expressions, where)
        found: list[SqlChange] = []
        added = [name for name in after if name not in before]
        removed = [name for name in before if name not in after]
        twins = {before[name].unalias(): name for name in reversed(removed)}
        places = list(before)
        for place, name in enumerate(after):
            column = after[name]
            twin = twins.pop(column.unalias(), None) if name in added else None
            if twin is not None:
                text = f"column {twin} renamed to {name}"
                found.append(self._change("renamed", "column", before[twin], column, text, where))
            elif name in added:
                # If a name is missing on either side, columns are matched by position.
                twin = places[place] if place < len(places) else None
                if twin is None or twin not in removed or (_is_named(before[twin]) and _is_named(column)):
                    continue
                found.append(
                    self._change("changed", "column", before[twin], column, "column changed", where, show=True)
                )
            else:
                continue
            added.remove(name)
            removed.remove(twin)
        for name, column in after.items():
            if name in added:
                text = f"column {name} added"
                show = self._sql(column, self._new) != name
                found.append(self._change("added", "column", None, column, text, where, show=show))
            elif name in before and before[name] != column:
                text = f"column {name} changed"
                found.append(self._change("changed", "column", before[name], column, text, where, show=True))
        found += [
            self._change("removed", "column", before[name], None, f"column {name} removed", where) for name in removed
        ]
        common = [name for name in after if name in before]
        if common != [name for name in before if name in after]:
            text = f"columns reordered: {escape.shorten(', '.join(after), _SHOWN)}"
            found.append(SqlChange("moved", "column", None, None, f"{where}{text}"))
        return found

    def _sources(self, old: exp.Select, new: exp.Select, where: str) -> list[SqlChange]:
        from sqlglot import exp

        before, after = (_source_list(tree) for tree in (old, new))
        if before == after:
            return []
        was, now = (_named(items) for items in (before, after))
        if was is None or now is None:
            return self._sequence("source", before, after, where)
        found: list[SqlChange] = []
        for name, source in now.items():
            if name not in was:
                show = self._sql(source, self._new) != name
                found.append(self._change("added", "source", None, source, f"source {name} added", where, show=show))
                continue
            if was[name] == source:
                continue
            one, other = was[name], source
            inner = [side.this if isinstance(side, exp.Join) else side for side in (one, other)]
            # If the join of a subquery is unchanged, the difference is inside the subquery.
            nested = all(isinstance(side, exp.Subquery) for side in inner)
            if nested and _outside(one) == _outside(other) and _outside(inner[0]) == _outside(inner[1]):
                found += self.changes(inner[0].this, inner[1].this, f"{where}in subquery {name}: ")
            else:
                found.append(self._change("changed", "source", one, other, f"source {name} changed", where, show=True))
        found += [
            self._change(
                "removed",
                "source",
                source,
                None,
                f"source {name} removed",
                where,
                show=self._sql(source, self._old) != name,
            )
            for name, source in was.items()
            if name not in now
        ]
        return found or [
            SqlChange(
                "moved", "source", None, None, f"{where}sources reordered: {escape.shorten(', '.join(now), _SHOWN)}"
            )
        ]

    def _parts(self, old: exp.SetOperation, new: exp.SetOperation, where: str) -> list[SqlChange]:
        before, after = _operands(old), _operands(new)
        if before == after:
            return []
        name = type(new).__name__.upper()
        if len(before) == len(after):
            pairs = enumerate(zip(before, after, strict=True), 1)
            return [one for n, (a, b) in pairs for one in self.changes(a, b, f"{where}in part {n} of {name}: ")]
        return self._sequence(f"part of {name}", before, after, where)

    def _clauses(self, old: exp.Expr, new: exp.Expr, done: set[str], where: str) -> list[SqlChange]:
        """Compare all remaining arguments, including unknown ones, so that no difference is missed."""
        from sqlglot import exp

        found: list[SqlChange] = []
        for key in dict.fromkeys((*old.args, *new.args)):
            before, after = old.args.get(key), new.args.get(key)
            if key in done or (before or None) == (after or None):
                continue
            clause = _CLAUSES.get(key, key.strip("_").replace("_", " "))
            if key == "distinct" and isinstance(new, exp.SetOperation):
                name = type(new).__name__.upper()
                text = f"{name} ALL became {name}" if after else f"{name} became {name} ALL"
                found.append(SqlChange("changed", name, None, None, f"{where}{text}"))
                continue
            if key in _FILTERS:
                found += self._sequence(clause, _conjuncts(before), _conjuncts(after), where, ordered=False)
            elif key == "group" and before and after and _only_expressions(before) and _only_expressions(after):
                found += self._sequence(clause, before.expressions, after.expressions, where, ordered=False)
            else:
                kind: Kind = "added" if not before else "removed" if not after else "changed"
                found.append(self._change(kind, clause, before, after, f"{clause} {kind}", where, show=True))
        return found

    def _sequence(
        self, clause: str, old: Sequence[exp.Expr], new: Sequence[exp.Expr], where: str, *,
        ordered: bool = True,
    ) -> list[SqlChange]:  # fmt: skip
        """Return the changes between two lists of items; an old and a new item at one position form one change."""
        before, after = [self._sql(item, self._old) for item in old], [self._sql(item, self._new) for item in new]
        pairs = _replaced(before, after) if ordered else _exchanged(before, after)
        found = []
        for was, now in pairs:
            kind: Kind = "added" if was is None else "removed" if now is None else "changed"
            found.append(self._change(kind, clause, was, now, f"{clause} {kind}", where, show=True))
        if not found:
            found.append(SqlChange("moved", clause, None, None, f"{where}{clause} reordered"))
        return found

    def _whole(self, old: exp.Expr, new: exp.Expr, where: str) -> SqlChange:
        return self._change("changed", "query", old, new, "query changed", where, show=True)

    def _change(
        self, kind: Kind, clause: str, old: Any, new: Any, text: str, where: str, *, show: bool = False  # noqa: ANN401
    ) -> SqlChange:  # fmt: skip
        """Return a change from ``old`` to ``new``, each given as a syntax tree, a list of trees, or SQL text."""
        was, now = self._sql(old, self._old), self._sql(new, self._new)
        if show:
            parts = (" ".join(part.split()).removeprefix(clause).strip() for part in (was, now))
            shown = [escape.shorten(part, _SHOWN) for part in parts if part]
            text += ": " + " → ".join(shown) if shown else ""
        return SqlChange(kind, clause, was or None, now or None, f"{where}{text}")

    @staticmethod
    def _sql(part: Any, dialect: str) -> str:  # noqa: ANN401  (an argument of a syntax tree may be anything)
        from sqlglot import exp

        if isinstance(part, (list, tuple)):
            return ", ".join(_Comparison._sql(one, dialect) for one in part)
        if isinstance(part, exp.Expression):
            return sql_text(part, dialect).strip()
        return "" if part is None else str(part)


def _bare(tree: exp.Expr) -> exp.Expr:
    """Return a query without the parentheses around it."""
    from sqlglot import exp

    while isinstance(tree, (exp.Subquery, exp.Paren)) and not tree.alias and set(_given(tree)) <= {"this"}:
        tree = tree.this
    return tree


def _given(tree: exp.Expr) -> Iterator[str]:
    return (key for key, value in tree.args.items() if value)


def _arg(tree: exp.Expr, key: str) -> Any:  # noqa: ANN401  (an argument of a syntax tree may be anything)
    """Return an argument of a syntax node; its name ends with an underscore in newer versions of sqlglot."""
    return tree.args.get(key) or tree.args.get(key.rstrip("_"))


def _ctes(tree: exp.Expr) -> list[exp.Expr]:
    found = _arg(tree, "with_")
    return [] if found is None else list(found.expressions)


def _named(items: Iterable[exp.Expr]) -> dict[str, exp.Expr] | None:
    """Return items by alias or name, or by SQL text if they have neither; None if two items have the same key."""
    found: dict[str, exp.Expr] = {}
    for item in items:
        name = item.alias_or_name if _is_named(item) else sql_text(item, "")
        if not name or name in found:
            return None
        found[name] = item
    return found


def _is_named(item: exp.Expr) -> bool:
    """Return whether a column or source has an alias, or is itself a table or column with a name (not a star)."""
    from sqlglot import exp

    inner = item.this if isinstance(item, exp.Join) else item
    return bool(inner.alias or (isinstance(inner, (exp.Column, exp.Table)) and inner.name and inner.name != "*"))


def _source_list(tree: exp.Select) -> list[exp.Expr]:
    first = _arg(tree, "from_")
    return [*([] if first is None else [first.this]), *(tree.args.get("joins") or [])]


def _outside(source: exp.Expr) -> dict[str, Any]:
    """Return the arguments of a join without the joined source."""
    return {key: value for key, value in source.args.items() if key != "this" and value}


def _operands(tree: exp.Expr) -> list[exp.Expr]:
    """Return the parts of a chain of one set operation, such as the three queries of ``a UNION b UNION c``."""
    found: list[exp.Expr] = []
    at = tree
    while type(at) is type(tree) and at.args.get("distinct") == tree.args.get("distinct"):
        found.append(_bare(at.args["expression"]))
        at = at.this
    return [_bare(at), *reversed(found)]


def _conjuncts(clause: Any) -> list[exp.Expr]:  # noqa: ANN401  (an argument of a syntax tree may be anything)
    from sqlglot import exp

    if clause is None:
        return []
    found: list[exp.Expr] = []
    waiting = [clause.this]
    while waiting:
        node = waiting.pop()
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, exp.And):
            waiting += [node.expression, node.this]
        else:
            found.append(node)
    return found


def _only_expressions(clause: exp.Expr) -> bool:
    return set(_given(clause)) <= {"expressions"}


def _exchanged(old: Sequence[str], new: Sequence[str]) -> list[tuple[str | None, str | None]]:
    """Return the items that differ between unordered collections; a single old and new item form one change."""
    gone, come = list((Counter(old) - Counter(new)).elements()), list((Counter(new) - Counter(old)).elements())
    if len(gone) == len(come) == 1:
        return [(gone[0], come[0])]
    return [*((None, one) for one in come), *((one, None) for one in gone)]


def _replaced(old: Sequence[str], new: Sequence[str]) -> list[tuple[str | None, str | None]]:
    """Return the items that differ between two sequences, as pairs of old and new; None where either is missing."""
    found: list[tuple[str | None, str | None]] = []
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=len(old) > 1000).get_opcodes():
        if tag == "equal":
            continue
        both = min(j - i, m - k)
        found += list(zip(old[i : i + both], new[k : k + both], strict=True))
        found += [(one, None) for one in old[i + both : j]]
        found += [(None, one) for one in new[k + both : m]]
    return found
