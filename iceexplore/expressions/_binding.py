"""Bind conditions to a schema: names become field ids, literals become stored values, ``not`` is resolved.

A condition becomes an expression that selects the rows for which the condition is true or, inside ``not``, the rows for
which it is false. Rows for which it is unknown (SQL's third value) are not selected in either case. So ``x = null``
selects nothing, and neither does ``not x = null``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from iceexplore.expressions._literals import COMPARABLE, Cut, locate
from iceexplore.expressions._model import (
    NEVER,
    Always,
    Applied,
    Expression,
    FieldValue,
    Op,
    Predicate,
    all_of,
    any_of,
    on_value,
    value_text,
)
from iceexplore.expressions._tokens import Place
from iceexplore.expressions._unbound import (
    Both,
    Call,
    Compare,
    Condition,
    Either,
    Member,
    Name,
    Negation,
    Operand,
    Prefix,
    Test,
    Value,
)
from iceexplore.metadata import (
    SQL_FUNCTIONS,
    ListType,
    MapType,
    NestedField,
    Schema,
    StructType,
    function_type,
    type_base,
)

__all__ = [
    "Binder",
    "Column",
    "Columns",
    "METADATA_COLUMNS",
    "check_comparable",
    "leaf",
]

#: Metadata columns (spec, "Reserved Field IDs").
METADATA_COLUMNS = (
    "_deleted", "_file", "_last_updated_sequence_number", "_partition", "_pos", "_row_id", "_spec_id",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Column:
    """A field of a schema with its path of names through structs."""

    field: NestedField
    path: tuple[str, ...]
    quoted: bool = False

    @property
    def name(self) -> str:
        """The dotted name; ambiguous parts are in backticks."""
        return ".".join(f"`{p.replace('`', '``')}`" if self.quoted or "." in p or "`" in p else p for p in self.path)


class Columns:
    """The columns of a schema that a filter may use.

    A name refers to the column with exactly this spelling if there is one; otherwise letter case is ignored, as in
    Spark. A column with dots in its own name takes precedence over one inside a struct, unless the parts are quoted
    separately.
    """

    def __init__(self, schema: Schema) -> None:
        self._columns = list(_columns(schema.fields, ()))
        self._exact: dict[str, list[Column]] = {}
        self._folded: dict[str, list[Column]] = {}
        for column in self._columns:
            dotted = ".".join(column.path)
            self._exact.setdefault(dotted, []).append(column)
            self._folded.setdefault(dotted.casefold(), []).append(column)
        self._schema = schema
        self._found: dict[tuple[tuple[str, ...], tuple[bool, ...]], Column] = {}

    def find(self, name: Name) -> Column:
        """Return the column with a name.

        Raises
        ------
        OptionError
            There is no such column, several columns differ only in letter case, or the column is in a list or map.
        """
        key = name.parts, name.quoted
        if key not in self._found:
            self._found[key] = self._find(name)
        return self._found[key]

    def every(self) -> Iterator[Column]:
        """Yield all columns; those inside a struct follow the struct."""
        return map(self._told_apart, self._columns)

    def _find(self, name: Name) -> Column:
        dotted = ".".join(name.parts)
        found = self._exact.get(dotted) or self._folded.get(dotted.casefold(), [])
        same = [c for c in found if tuple(p.casefold() for p in c.path) == tuple(p.casefold() for p in name.parts)]
        if any(name.quoted) and same:
            found = same
        elif found:
            found = [c for c in found if len(c.path) == min(len(c.path) for c in found)]
        if not found:
            raise name.at.error(self._missing(dotted))
        if len(found) > 1:
            raise name.at.error(
                f"column {dotted!r} is ambiguous if letter case is ignored: {', '.join(c.name for c in found)}"
            )
        return self._told_apart(found[0])

    def _told_apart(self, column: Column) -> Column:
        """Mark the column as quoted if its unquoted name would refer to another column."""
        alike = self._folded[".".join(column.path).casefold()]
        return replace(column, quoted=any(len(c.path) < len(column.path) for c in alike))

    def _missing(self, dotted: str) -> str:
        for full, field in self._schema.walk():
            if full.casefold() == dotted.casefold():
                return f"column {full!r} (field {field.field_id}) is inside a list or map, so a row has several values"
        if dotted.partition(".")[0].casefold() in METADATA_COLUMNS:
            return (
                f"{dotted!r} is a metadata column, which filters do not support; name it in columns=, and select among "
                "the returned rows"
            )
        names = [c.name for c in self._columns]
        folded = {n.casefold(): n for n in reversed(names)}
        # Also try the last part of the name alone: users often forget the struct that a column is in.
        for column in reversed(self._columns):
            folded.setdefault(column.path[-1].casefold(), column.name)
        close = dict.fromkeys(folded[f] for f in get_close_matches(dotted.casefold()[:200], folded, 3, 0.5))
        hint = f"nearest: {', '.join(close)}" if close else f"there are {', '.join(names[:20]) or 'none'}"
        return f"no column {dotted!r}; {hint}"


def _columns(fields: tuple[NestedField, ...], path: tuple[str, ...]) -> Iterator[Column]:
    for field in fields:
        here = (*path, field.name)
        yield Column(field, here)
        match field.type:
            case StructType(children):
                yield from _columns(children, here)
            case ListType() | MapType():
                continue


_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!=", "<=>": "<=>"}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_PREFIXED = frozenset(("string", "binary"))


class Binder:
    """Binds conditions to the columns of a schema."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def bind(self, node: Condition, wanted: bool) -> Expression:
        """Return an expression that selects the rows for which a condition has the truth value ``wanted``."""
        match node:
            case Negation(child):
                return self.bind(child, not wanted)
            case Both(children) | Either(children):
                join = all_of if isinstance(node, Both) == wanted else any_of
                return join(*[self.bind(c, wanted) for c in children])
            case Compare(left=left, right=right):
                return self._on_call(self._compare(node, wanted), left, right)
            case Member(operand=operand):
                return self._on_call(self._member(node, wanted), operand)
            case Test(operand=operand):
                return self._on_call(self._test(node, wanted), operand)
            case Prefix(operand=operand):
                return self._on_call(self._prefix(node, wanted), operand)
            case Call():
                raise node.at.error(f"{node.at.quoted} alone is not a condition: compare it with a literal")
            case Value(kind, value):
                if kind == "null":
                    return NEVER
                if kind != "boolean":
                    raise node.at.error(f"{node.at.quoted} alone is not a condition: compare a column with it")
                return Always(value is wanted)
        column = self._columns.find(node)
        if type_base(column.field.type) != "boolean":
            raise node.at.error(
                f"column {column.name!r} is {column.field.type}, not boolean: compare it with something"
            )
        return leaf(column, "=" if wanted else "!=", node.at, not wanted, True)

    def _column(self, operand: Operand, at: Place) -> Column:
        if isinstance(operand, Value):
            raise at.error("two literals are compared: a column is missing")
        return self._find(operand)

    def _find(self, operand: Name | Call) -> Column:
        """Return the column with this name; for a function, a column that represents its result."""
        if isinstance(operand, Name):
            return self._columns.find(operand)
        value = self._applied(operand)
        text = value_text(value)
        return Column(NestedField(0, text, value.type), (text,), quoted=False)

    def _applied(self, call: Call) -> Applied:
        column = self._columns.find(call.argument)
        kind = function_type(call.function, [column.field.type])
        if kind is None:
            accepts = f"; it accepts {SQL_FUNCTIONS[call.function].accepts}" if call.function in SQL_FUNCTIONS else ""
            raise call.at.error(
                f"{call.at.quoted} is not possible: column {column.name!r} is {column.field.type}{accepts}"
            )
        return Applied(call.function, (FieldValue(column.field.field_id, column.name, column.field.type),), kind)

    def _on_call(self, found: Expression, *operands: Operand) -> Expression:
        """Apply the predicates to the result of a function, if one of the operands is a function call."""
        call = next((o for o in operands if isinstance(o, Call)), None)
        return found if call is None else on_value(found, self._applied(call))

    def _compare(self, node: Compare, wanted: bool) -> Expression:
        left, op, right = node.left, node.op, node.right
        if isinstance(left, Value):
            if isinstance(right, Value):
                return _constant(node, left, right, wanted)
            left, op, right = right, _FLIPPED[op], left
        column = self._column(left, node.at)
        if not isinstance(right, Value):
            self._find(right)
            raise right.at.error("two columns are compared: compare a column with a literal (strings in '...')")
        return self.compared(column, op, right, node.at, wanted)

    def compared(self, column: Column, op: str, value: Value, at: Place, wanted: bool) -> Expression:
        """Bind the comparison of a column with a literal; select the rows for which its truth value is ``wanted``."""
        negated = not wanted
        if op == "<=>":
            if value.kind == "null":
                return leaf(column, "is-null" if wanted else "not-null", at, negated)
            equal = self.compared(column, "=", value, at, wanted)
            return equal if wanted else any_of(equal, leaf(column, "is-null", at, negated))
        if value.kind == "null":
            check_comparable(column, value.at)
            return NEVER
        cut = _located(column, value)
        if op in ("=", "!="):
            if not cut.exact:
                return NEVER if (op == "=") == wanted else leaf(column, "not-null", at, negated)
            return leaf(column, "=" if (op == "=") == wanted else "!=", at, negated, cut.below)
        floating = type_base(column.field.type) in ("float", "double")
        nan = leaf(column, "is-nan", at, negated) if floating and negated else NEVER
        return any_of(_ordered(column, op if wanted else _OPPOSITE[op], cut, at, negated), nan)

    def _member(self, node: Member, wanted: bool) -> Expression:
        if isinstance(node.operand, Value):
            raise node.operand.at.error("a column is missing before 'in'")
        column = self._find(node.operand)
        check_comparable(column, node.operand.at)
        return self.among(column, node.items, node.negated, node.at, wanted)

    def among(self, column: Column, items: Sequence[Value], negated: bool, at: Place, wanted: bool) -> Expression:
        """Bind ``in`` (``not in`` if negated); select the rows for which its truth value is ``wanted``."""
        cuts = [_located(column, v) for v in items if v.kind != "null"]
        values = list(dict.fromkeys(c.below for c in cuts if c.exact))
        outside = negated == wanted
        if outside and any(v.kind == "null" for v in items):
            return NEVER  # SQL: "not in" is never true if the list has a null, which might equal any value
        inverted = not wanted
        if not values:
            return leaf(column, "not-null", at, inverted) if outside else NEVER
        if len(values) == 1:
            return leaf(column, "!=" if outside else "=", at, inverted, values[0])
        return leaf(column, "not-in" if outside else "in", at, inverted, *values)

    def _test(self, node: Test, wanted: bool) -> Expression:
        yes = node.negated != wanted
        inverted = not wanted
        if isinstance(node.operand, Value):
            return _tested(node, node.operand, yes)
        column = self._find(node.operand)
        base = type_base(column.field.type)
        match node.what:
            case "null":
                return leaf(column, "is-null" if yes else "not-null", node.at, inverted)
            case "nan":
                if base not in ("float", "double"):
                    raise node.operand.at.error(
                        f"column {column.name!r} is {column.field.type}: only float and double have NaN"
                    )
                return leaf(column, "is-nan" if yes else "not-nan", node.at, inverted)
        if base != "boolean":
            raise node.operand.at.error(f"column {column.name!r} is {column.field.type}, not boolean")
        value = node.what == "true"
        if yes:
            return leaf(column, "=", node.at, inverted, value)
        return any_of(leaf(column, "!=", node.at, inverted, value), leaf(column, "is-null", node.at, inverted))

    def _prefix(self, node: Prefix, wanted: bool) -> Expression:
        if isinstance(node.operand, Value):
            raise node.operand.at.error("no column is given: write strings in single quotes, columns without")
        column = self._find(node.operand)
        base = type_base(column.field.type)
        if base not in _PREFIXED:
            raise node.operand.at.error(
                f"column {column.name!r} is {column.field.type}: only string and binary columns have prefixes"
            )
        if node.prefix.kind == "null":
            return NEVER
        return self.begins(column, node.prefix, node.negated, node.at, wanted)

    def begins(self, column: Column, prefix: Value, negated: bool, at: Place, wanted: bool) -> Expression:
        """Bind a prefix test (its opposite if negated); select the rows for which its truth value is ``wanted``."""
        found = _located(column, prefix).below
        outside = negated == wanted
        if not found:  # every value begins with the empty prefix
            return NEVER if outside else leaf(column, "not-null", at, not wanted)
        return leaf(column, "not-starts-with" if outside else "starts-with", at, not wanted, found)


def leaf(column: Column, op: Op, at: Place, negated: bool, *literals: Any) -> Predicate:
    """Return a predicate on a column; its text is the part of the filter at ``at``."""
    text = f"not ({at.quoted})" if negated else at.quoted
    return Predicate(column.field.field_id, op, literals, column.name, column.field.type, text)


def _ordered(column: Column, op: str, cut: Cut, at: Place, negated: bool) -> Expression:
    if cut.exact:
        return leaf(column, op, at, negated, cut.below)  # type: ignore[arg-type]
    less = op in ("<", "<=")
    edge = cut.below if less else cut.above
    if edge is None:
        return NEVER
    if (cut.above if less else cut.below) is None:  # the literal is outside the type's range: all values match
        return leaf(column, "not-null", at, negated)
    return leaf(column, "<=" if less else ">=", at, negated, edge)


def check_comparable(column: Column, at: Place) -> None:
    """Raise `OptionError` if values of a column cannot be compared."""
    kind = column.field.type
    if isinstance(kind, StructType | ListType | MapType) or type_base(kind) not in COMPARABLE:
        inner = " or compare the columns inside it" if isinstance(kind, StructType) else ""
        raise at.error(
            f"column {column.name!r} is {type_base(kind)}, which cannot be compared: use is null or is not null{inner}"
        )


def _located(column: Column, value: Value) -> Cut:
    check_comparable(column, value.at)
    try:
        return locate(value, column.field.type)
    except ValueError as error:
        raise value.at.error(
            f"the filter does not fit the schema: column {column.name!r} is {column.field.type}; {error}"
        ) from None


def _constant(node: Compare, left: Value, right: Value, wanted: bool) -> Expression:
    """Evaluate a comparison of two literals, such as ``1 = 1``."""
    if "null" in (left.kind, right.kind):
        both = left.kind == right.kind
        return Always(both == wanted) if node.op == "<=>" else NEVER
    if left.kind != right.kind or left.kind not in ("number", "text", "boolean"):
        raise node.at.error("two literals are compared: a column is missing")
    a, b = left.value, right.value
    found = {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "!=": a != b}.get(node.op, a == b)
    return Always(bool(found) == wanted)


def _tested(node: Test, value: Value, yes: bool) -> Expression:
    """Evaluate a test of a literal, such as ``null is null``."""
    match node.what:
        case "null":
            return Always((value.kind == "null") == yes)
        case "nan":
            return Always((value.kind == "nan") == yes)
    return Always((value.kind == "boolean" and value.value is (node.what == "true")) == yes)
