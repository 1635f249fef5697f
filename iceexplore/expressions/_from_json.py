"""Bind the JSON of expressions to a schema: the form of ``format/expressions-spec.md``, and that of REST scan planning.

The spec's logic has two values: every predicate is true or false for every row. A comparison with a constant is false
for a null, and its negation true; so ``not-eq``, ``not-in`` and ``not-starts-with`` are true for nulls, unlike in SQL
text. The expressions of this package have three values, so such a negation is converted with ``or x is null``.
REST's older predicates (``term`` and ``value``) have the same logic (spec, "Compatibility with REST catalog
expressions").
"""

from __future__ import annotations

import json as jsonlib
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

import numpy as np

from iceexplore.errors import FormatError, OptionError
from iceexplore.expressions._binding import Binder, Column, Columns, check_comparable, leaf
from iceexplore.expressions._literals import COMPARABLE, locate
from iceexplore.expressions._model import (
    Always,
    And,
    Applied,
    Comparison,
    Computed,
    Conditional,
    Constant,
    Expression,
    FieldValue,
    Op,
    Or,
    Predicate,
    ValueExpression,
    all_of,
    any_of,
    columns_of,
    on_value,
    value_text,
)
from iceexplore.expressions._temporal_literals import read_date, read_time, read_timestamp
from iceexplore.expressions._tokens import MAX_LENGTH, Place
from iceexplore.expressions._unbound import Name, Value
from iceexplore.metadata import (
    SQL_FUNCTIONS,
    TRANSFORMS,
    NestedField,
    PrimitiveType,
    Schema,
    Type,
    default_from_json,
    function_type,
    is_known_type,
    parse_transform,
    parse_type,
    type_base,
)
from iceexplore.render import escape

__all__ = ["expression_from_json", "is_json"]

#: Maximum depth of nested objects; a chain of ``and``, or of ``or``, counts as one level.
MAX_DEPTH = 64
#: Maximum number of objects and literals.
MAX_NODES = 200_000
#: Limits for displayed texts: the length of a constant, and the number of constants of a list.
_SHOWN = 60
_NAMED = 5

_BOOLEAN = PrimitiveType("boolean")
_NUMBERS = frozenset(("int", "long", "float", "double"))
#: Types whose values are compared with each other (spec, "Comparisons": aligned by type promotion).
_FAMILIES = (
    _NUMBERS, frozenset(("int", "long", "decimal")), frozenset(("date", "timestamp", "timestamp_ns")),
    frozenset(("timestamptz", "timestamptz_ns")), frozenset(("binary", "fixed")),
)  # fmt: skip
_TESTS: dict[str, Op] = {
    "is-null": "is-null", "not-null": "not-null", "is-nan": "is-nan", "not-nan": "not-nan",
}  # fmt: skip
_COMPARISONS: dict[str, Op] = {
    "lt": "<", "lt-eq": "<=", "gt": ">", "gt-eq": ">=", "eq": "=", "not-eq": "!=", "starts-with": "starts-with",
    "not-starts-with": "not-starts-with",
}  # fmt: skip
_FLIPPED: dict[str, Op] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_KEYS = {"not": {"child"}, "and": {"left", "right"}, "or": {"left", "right"}}
_TYPES = sorted({*_KEYS, *_TESTS, *_COMPARISONS, "in", "not-in"})


def is_json(where: object) -> bool:
    """Return whether a filter is the JSON of an expression: parsed JSON, or a text that begins with a brace."""
    return isinstance(where, (Mapping, bool)) or (isinstance(where, str) and where.lstrip()[:1] == "{")


def expression_from_json(schema: Schema, json: object) -> Expression:
    """Convert the JSON of an expression to an expression over field ids.

    Parameters
    ----------
    schema
        The schema that names and ids are looked up in.
    json
        Text, or the parsed object: either a predicate of Iceberg's expressions spec, with the functions of
        ``iceberg_functions`` and some of ``sql_functions``, or a predicate of REST scan planning (``term``, ``value``),
        as Iceberg's ``ExpressionParser`` and PyIceberg's ``model_dump_json`` write it.

    Returns
    -------
    Expression
        The expression selects the rows for which the predicate is true, in the spec's two-valued logic: a null is not
        equal to any constant, so ``not-eq``, ``not-in`` and ``not-starts-with`` select nulls.

    Raises
    ------
    OptionError
        The JSON is not a predicate; a column, type or function is unknown; types cannot be compared; or it is longer
        than a million characters, nested deeper than 64 objects, or has more than 200,000 parts.
    """
    if isinstance(json, str):
        json = _parsed(json)
    try:
        return _Reader(schema).predicate(json, True, 0)
    except RecursionError:
        raise OptionError("the expression is nested too deeply for the remaining stack: simplify it") from None


def _parsed(text: str) -> object:
    if len(text) > MAX_LENGTH:
        raise OptionError(f"the expression has {len(text):,} characters, more than {MAX_LENGTH:,}: split it")
    try:
        return jsonlib.loads(text, parse_constant=_no_constant, object_pairs_hook=_distinct)
    except RecursionError:
        raise OptionError(f"the expression is nested deeper than {MAX_DEPTH} objects: simplify it") from None
    except ValueError as error:
        raise OptionError(f"the filter begins like JSON but cannot be parsed: {escape.visible(str(error))}") from None


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON; NaN and infinity cannot be constants in a comparison")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) < len(pairs):
        raise ValueError("an object has the same key twice")
    return out


def _show(json: object) -> str:
    try:
        text = jsonlib.dumps(json, ensure_ascii=False, default=repr)
    except (ValueError, TypeError, RecursionError):
        text = repr(type(json))
    return escape.visible(escape.shorten(text, _SHOWN))


def _wrong(message: str, json: object = ...) -> OptionError:
    shown = "" if json is ... else f": {_show(json)}"
    return OptionError(f"the expression is not valid: {message}{shown}")


def _alike(one: Type, other: Type) -> bool:
    a, b = type_base(one), type_base(other)
    return a == b or any(a in family and b in family for family in _FAMILIES)


def _place(text: str) -> Place:
    return Place(text, 0, len(text))


def _is_literal(json: object) -> bool:
    return not isinstance(json, Mapping) or json.get("type") == "literal"


class _Reader:
    def __init__(self, schema: Schema) -> None:
        self._columns = Columns(schema)
        self._by_id: dict[int, Column] | None = None
        self._binder = Binder(self._columns)
        self._nodes = 0

    def predicate(self, json: object, wanted: bool, depth: int) -> Expression:
        """Return an expression that selects the rows for which a predicate has the truth value ``wanted``."""
        self._count(depth)
        if isinstance(json, bool):
            return Always(json is wanted)
        if not isinstance(json, Mapping):
            raise _wrong("a predicate must be true, false or an object", json)
        kind = self._kind(json)
        if kind == "literal" and isinstance(json.get("value"), bool):  # Iceberg's ExpressionParser accepts this
            return Always(json["value"] is wanted)
        match kind:
            case "not":
                self._keys(json, "child")
                return self.predicate(json["child"], not wanted, depth + 1)
            case "and" | "or":
                join = all_of if (kind == "and") == wanted else any_of
                found = join(*[self.predicate(part, wanted, depth + 1) for part in self._chain(json, kind)])
                return _plainer(found) if isinstance(found, And) else found
        if kind in _TESTS:
            return self._test(json, _TESTS[kind], wanted, depth)
        if kind in _COMPARISONS:
            return self._comparison(json, _COMPARISONS[kind], wanted, depth)
        if kind in ("in", "not-in"):
            return self._member(json, kind == "not-in", wanted, depth)
        if kind in ("reference", "apply", "literal", "transform"):
            raise _wrong(f"a value ({kind}) alone is not a predicate: compare it, for example with eq", json)
        raise _wrong(f"unknown type {_show(kind)}; types of predicates are {', '.join(_TYPES)}")

    def _count(self, depth: int) -> None:
        self._nodes += 1
        if depth > MAX_DEPTH:
            raise OptionError(f"the expression is nested deeper than {MAX_DEPTH} objects: simplify it")
        if self._nodes > MAX_NODES:
            raise OptionError(f"the expression has more than {MAX_NODES:,} parts: split it")

    def _kind(self, json: Mapping[Any, Any]) -> str:
        kind = json.get("type")
        if not isinstance(kind, str):
            raise _wrong("an object needs a text 'type'", json)
        return kind.lower().replace("_", "-")

    def _keys(self, json: Mapping[Any, Any], *names: str, also: Sequence[str] = ()) -> None:
        missing = [n for n in names if n not in json]
        if missing:
            raise _wrong(f"{_show(json.get('type'))} needs {missing[0]!r}", json)
        unknown = [k for k in json if k != "type" and k not in names and k not in also]
        if unknown:
            raise _wrong(f"{_show(json.get('type'))} has the unknown key {_show(unknown[0])}")

    def _chain(self, json: Mapping[Any, Any], kind: str) -> list[object]:
        """Return the operands of a chain of ``and`` or ``or`` from left to right, however they are nested."""
        out: list[object] = []
        stack: list[object] = [json]
        while stack:
            node = stack.pop()
            if isinstance(node, Mapping) and self._kind(node) == kind:
                self._count(0)
                self._keys(node, "left", "right")
                stack += (node["right"], node["left"])
            else:
                out.append(node)
        return out

    def _test(self, json: Mapping[Any, Any], op: Op, wanted: bool, depth: int) -> Expression:
        column, value = self._operand(self._child(json), depth + 1)
        words = {"is-null": "is null", "not-null": "is not null", "is-nan": "is nan", "not-nan": "is not nan"}
        at = _place(f"{column.name if value is None else value_text(value)} {words[op]}")
        if op.endswith("nan") and type_base(column.field.type) not in ("float", "double"):
            raise at.error(f"{column.name!r} is {column.field.type}: only float and double have NaN")
        opposite: dict[Op, Op] = {
            "is-null": "not-null", "not-null": "is-null", "is-nan": "not-nan", "not-nan": "is-nan",
        }  # fmt: skip
        return _of(leaf(column, op if wanted else opposite[op], at, not wanted), value)

    def _child(self, json: Mapping[Any, Any], *more: str) -> object:
        name = "term" if "term" in json else "child"
        self._keys(json, name, *more)
        return _term(json["term"]) if name == "term" else json["child"]

    def _comparison(self, json: Mapping[Any, Any], op: Op, wanted: bool, depth: int) -> Expression:
        if "term" in json:
            self._keys(json, "term", "value")
            left, right = _term(json["term"]), json["value"]
        else:
            self._keys(json, "left", "right")
            left, right = json["left"], json["right"]
        prefix = op.endswith("starts-with")
        if _is_literal(left):
            if _is_literal(right):
                hint = 'a text is a constant; a column is {"type": "reference", "name": "..."}'
                raise _wrong(f"two constants are compared ({hint})", json)
            if prefix:
                raise _wrong("the prefix must be a constant on the right", json)
            left, op, right = right, _FLIPPED[op], left
        column, value = self._operand(left, depth + 1)
        if not _is_literal(right):
            if prefix:
                raise _wrong("the prefix must be a constant on the right", json)
            return self._of_values(column, value, op, right, wanted, depth)
        name = column.name if value is None else value_text(value)
        positive = not (op == "!=" or op == "not-starts-with")
        wanted = wanted == positive  # two-valued: each negative test is the negation of the positive one
        if prefix:
            at = _place(f"{'' if positive else 'not '}startswith({name}, {_shown(right)})")
            literal = self._literal(right, column.field.type, at)
            if type_base(column.field.type) != "string":
                raise at.error(f"{column.name!r} is {column.field.type}: only strings have prefixes")
            found = self._binder.begins(column, literal, False, at, wanted)
        else:
            sign = op if positive else "<>"
            at = _place(f"{name} {sign} {_shown(right)}")
            check_comparable(column, at)
            literal = self._literal(right, column.field.type, at)
            found = self._binder.compared(column, "=" if op == "!=" else op, literal, at, wanted)
        return _of(found if wanted else any_of(found, leaf(column, "is-null", at, True)), value)

    def _of_values(
        self, column: Column, value: ValueExpression | None, op: Op, other: object, wanted: bool, depth: int
    ) -> Expression:
        """Bind a comparison of two values, neither of which is a constant."""
        left = self._as_value(column, value)
        right = self._value(other, depth + 1)
        if not _alike(left.type, right.type) or type_base(left.type) not in COMPARABLE:
            raise _wrong(f"{value_text(left)} is {left.type} and {value_text(right)} is {right.type}: not comparable")
        compared = Comparison("=" if op == "!=" else op, left, right, _BOOLEAN)
        yes = wanted != (op == "!=")
        text = value_text(compared) if yes else f"not ({value_text(compared)})"
        return _of(Predicate(0, "=", (yes,), "", _BOOLEAN, text), compared)

    def _member(self, json: Mapping[Any, Any], negated: bool, wanted: bool, depth: int) -> Expression:
        column, value = self._operand(self._child(json, "values"), depth + 1)
        values, declared = json["values"], None
        if isinstance(values, Mapping):
            if self._kind(values) != "literals":
                raise _wrong("'values' must be a list, or an object of type literals", values)
            self._keys(values, "values", "data-type")
            declared, values = values["data-type"], values["values"]
        if not isinstance(values, (list, tuple)):
            raise _wrong("'values' must be a list", values)
        name = column.name if value is None else value_text(value)
        more = f", … {len(values) - _NAMED:,} more" if len(values) > _NAMED else ""
        listed = ", ".join(_shown(v) for v in values[:_NAMED])
        at = _place(f"{name} {'not ' if negated else ''}in ({listed}{more})")
        check_comparable(column, at)
        literals = []
        for item in values:
            self._count(0)
            if declared is not None:
                item = {"type": "literal", "value": item, "data-type": declared}
            literals.append(self._literal(item, column.field.type, at))
        wanted = wanted != negated
        found = self._binder.among(column, literals, False, at, wanted)
        return _of(found if wanted else any_of(found, leaf(column, "is-null", at, True)), value)

    # Values

    def _operand(self, json: object, depth: int) -> tuple[Column, ValueExpression | None]:
        """Return a predicate's column and None; for a computed value, a column that represents it, and the value."""
        if isinstance(json, Mapping) and self._kind(json) == "reference":
            return self._reference(json), None
        if _is_literal(json):
            raise _wrong("a constant is tested, but only values of columns can be tested", json)
        value = self._value(json, depth)
        if isinstance(value, FieldValue):  # identity(x) is x
            return self._of_id(value.field_id, json), None
        text = value_text(value)
        return Column(NestedField(0, text, value.type), (text,)), value

    def _reference(self, json: Mapping[Any, Any]) -> Column:
        self._count(0)
        if "id" in json:
            self._keys(json, "id")
            number = json["id"]
            if not isinstance(number, int) or isinstance(number, bool):
                raise _wrong("the id of a reference must be a whole number", json)
            return self._of_id(number, json)
        key = "term" if "term" in json else "name"
        self._keys(json, key)
        name = json[key]
        if not isinstance(name, str):
            raise _wrong("the name of a reference must be text", json)
        return self._columns.find(Name((name,), (False,), _place(name)))

    def _of_id(self, number: int, json: object) -> Column:
        if self._by_id is None:
            self._by_id = {c.field.field_id: c for c in self._columns.every()}
        if number not in self._by_id:
            raise _wrong(f"the schema has no column with id {number} outside of lists and maps", json)
        return self._by_id[number]

    def _as_value(self, column: Column, value: ValueExpression | None) -> ValueExpression:
        if value is not None:
            return value
        kind = column.field.type
        if not isinstance(kind, PrimitiveType):
            raise _wrong(f"column {column.name!r} is {type_base(kind)}: only primitive values can be compared")
        return FieldValue(column.field.field_id, column.name, kind)

    def _value(self, json: object, depth: int, wanted: Type | None = None) -> ValueExpression:
        """Bind a value; ``wanted`` is the type of a constant that does not state its own."""
        self._count(depth)
        if _is_literal(json):
            return self._constant(json, wanted)
        assert isinstance(json, Mapping)
        match self._kind(json):
            case "reference":
                return self._as_value(self._reference(json), None)
            case "apply":
                return self._applied(json, depth)
            case "transform":
                self._keys(json, "transform", "term")
                if not isinstance(json["transform"], str):
                    raise _wrong("'transform' must be text", json)
                text = str(parse_transform(json["transform"]))
                return self._called(text, [self._value(_term(json["term"]), depth + 1)])
        raise _wrong("a value must be a constant, or an object of type literal, reference or apply", json)

    def _applied(self, json: Mapping[Any, Any], depth: int) -> ValueExpression:
        self._keys(json, "function", "arguments")
        catalog, name = _function(json["function"])
        given = json["arguments"]
        if not isinstance(given, (list, tuple)):
            raise _wrong("'arguments' must be a list", given)
        if catalog == "iceberg_functions":
            if name == "if_else":
                return self._conditional(given, depth)
            known = {c.name: c for c in TRANSFORMS if not c.is_void}
            if name not in known:
                raise _wrong(f"iceberg_functions has no {_show(name)}; it has if_else, {', '.join(known)}")
            if known[name].width_name is None:
                return self._called(name, [self._value(a, depth + 1) for a in given])
            if len(given) != 2:
                raise _wrong(f"{name} needs two arguments, the parameter and the value", given)
            width = given[0].get("value") if isinstance(given[0], Mapping) and _is_literal(given[0]) else given[0]
            if not isinstance(width, int) or isinstance(width, bool) or not 0 < width < 2**31:
                raise _wrong(f"the parameter of {name} must be a whole number above 0", given[0])
            return self._called(f"{name}[{width}]", [self._value(given[1], depth + 1)])
        if catalog == "sql_functions":
            if name not in SQL_FUNCTIONS:
                raise _wrong(f"the function {_show(name)} is not supported; use one of {', '.join(SQL_FUNCTIONS)}")
            return self._called(name, self._together(given, depth))
        if catalog is None:
            raise _wrong(
                f"function {_show(name)} without a catalog is a user-defined function of the table's catalog, which "
                'is not loaded; for a built-in one write {"catalog": "sql_functions", "identifier": [...]} or '
                '"iceberg_functions"'
            )
        raise _wrong(f"functions of the catalog {_show(catalog)} are not known here: only those of iceberg_functions "
                     "and sql_functions")  # fmt: skip

    def _called(self, function: str, arguments: list[ValueExpression]) -> ValueExpression:
        kind = function_type(function, [a.type for a in arguments])
        if kind is None:
            types = ", ".join(str(a.type) for a in arguments) or "no arguments"
            hint = f": it accepts {SQL_FUNCTIONS[function].accepts}" if function in SQL_FUNCTIONS else ""
            raise _wrong(f"{function} cannot be applied to {types}{hint}")
        if parse_transform(function).is_identity:
            return arguments[0]
        if not _use_columns(arguments):
            raise _wrong(f"{function} is applied to constants only: write its result")
        return Applied(function, tuple(arguments), kind)

    def _conditional(self, given: Sequence[object], depth: int) -> ValueExpression:
        if len(given) != 3:
            raise _wrong("if_else needs three arguments: a predicate and two values", list(given))
        condition = self.predicate(given[0], True, depth + 1)
        one, other = self._together(given[1:], depth)
        if str(one.type) != str(other.type):
            raise _wrong(f"the values of if_else are {one.type} and {other.type}: they must have one type")
        return Conditional(condition, one, other, one.type)

    def _together(self, given: Sequence[object], depth: int) -> list[ValueExpression]:
        """Bind arguments of the same type; constants without a type get the type of the first argument that has one."""
        out: list[ValueExpression | None] = [None if _is_literal(a) else self._value(a, depth + 1) for a in given]
        kind = next((v.type for v in out if v is not None), None)
        return [self._value(a, depth + 1, kind) if v is None else v for a, v in zip(given, out, strict=True)]

    # Constants

    def _constant(self, json: object, wanted: Type | None) -> Constant:
        value = json.get("value") if isinstance(json, Mapping) else json
        declared = isinstance(json, Mapping) and json.get("data-type") is not None
        if declared or wanted is None:
            kind = _data_type(json["data-type"]) if isinstance(json, Mapping) and declared else _natural(value)
        else:
            kind = wanted
        at = _place(_shown(json))
        try:
            cut = locate(self._literal(json, kind, at), kind)
        except ValueError as error:
            raise at.error(str(error)) from None
        if not cut.exact:
            raise at.error(f"the constant is not a {kind}")
        return Constant(cut.below, kind)

    def _literal(self, json: object, kind: Type, at: Place) -> Value:
        """Return a constant as a literal to compare with values of a type."""
        declared = None
        if isinstance(json, Mapping):
            if self._kind(json) != "literal":
                raise at.error("a constant is expected here")
            self._keys(json, "value", also=("data-type",))
            if json.get("data-type") is not None:
                declared = _data_type(json["data-type"])
            json = json["value"]
        if json is None:
            raise at.error("null cannot be a constant in a comparison: use is-null or not-null")
        if isinstance(json, float) and not math.isfinite(json):
            raise at.error("NaN and infinity cannot be constants in a comparison; test for NaN with is-nan")
        if declared is not None and not _alike(declared, kind):
            raise at.error(f"a constant of type {declared} cannot be compared with {kind}")
        try:
            return _read(json, declared or kind, declared is not None, at)
        except (FormatError, ValueError, InvalidOperation, OverflowError) as error:
            reason = str(error) if isinstance(error, (FormatError, ValueError)) else "the type has no such value"
            raise at.error(f"the constant does not fit {declared or kind}: {reason}") from None


def _plainer(both: And) -> Expression:
    """Simplify a conjunction that contains ``x is not null`` to the form that SQL filters have.

    Drop ``or x is null`` from its other parts. Then drop ``x is not null`` itself if another part is a negative
    comparison of ``x``, which is not true for a null anyway.
    """
    there = {_subject(c) for c in both.children if _op(c) == "not-null"}
    if not there:
        return both
    parts, implied = [], set()
    for child in both.children:
        if isinstance(child, Or):
            child = any_of(*(c for c in child.children if _op(c) != "is-null" or _subject(c) not in there))
        if _op(child) in ("!=", "not-in", "not-starts-with"):
            implied.add(_subject(child))
        parts.append(child)
    return all_of(*(c for c in parts if _op(c) != "not-null" or _subject(c) not in implied))


def _op(expression: Expression) -> str | None:
    if isinstance(expression, Computed):
        expression = expression.predicate
    return expression.op if isinstance(expression, Predicate) else None


def _subject(expression: Expression) -> object:
    match expression:
        case Computed(value=value):
            return value
        case Predicate(field_id=field_id):
            return field_id
    return None


def _use_columns(values: Sequence[ValueExpression]) -> bool:
    """Return whether values depend on a column."""
    return any(columns_of(on_value(Predicate(0, "is-null"), v)) for v in values)


def _of(expression: Expression, value: ValueExpression | None) -> Expression:
    return expression if value is None else on_value(expression, value)


def _term(json: object) -> object:
    """Return REST's term as a value: a name, a reference, or a transform of a term."""
    if isinstance(json, str):
        return {"type": "reference", "name": json}
    if isinstance(json, Mapping) and json.get("type") in ("reference", "transform"):
        return json
    raise _wrong("a term must be a name, or an object of type reference or transform", json)


def _function(json: object) -> tuple[str | None, str]:
    """Return the catalog and the name of a function; only a user-defined function may have a namespace in its name."""
    catalog: object = None
    if isinstance(json, Mapping):
        unknown = [k for k in json if k not in ("catalog", "identifier")]
        if unknown:
            raise _wrong(f"a function has the unknown key {_show(unknown[0])}")
        catalog, json = json.get("catalog"), json.get("identifier")
    parts = [json] if isinstance(json, str) else json
    if not isinstance(parts, (list, tuple)) or not parts or not all(isinstance(p, str) and p for p in parts):
        raise _wrong("a function must be a name, a list of names, or an object with 'identifier'", json)
    if catalog is not None and not isinstance(catalog, str):
        raise _wrong("the catalog of a function must be text", catalog)
    name = ".".join(parts)
    if catalog in ("iceberg_functions", "sql_functions") and len(parts) > 1:
        raise _wrong(f"{catalog} has no namespaces: {_show(name)}")
    return catalog, name


def _data_type(json: object) -> Type:
    try:
        kind = parse_type(json) if isinstance(json, str) else None
    except FormatError as error:
        raise _wrong(str(error)) from None
    if kind is None or not is_known_type(kind) or type_base(kind) not in COMPARABLE:
        raise _wrong("'data-type' must be a primitive type whose values can be compared", json)
    return kind


def _natural(value: object) -> Type:
    match value:
        case bool():
            return _BOOLEAN
        case int():
            return PrimitiveType("int" if -(2**31) <= value < 2**31 else "long")
        case float():
            return PrimitiveType("double")
        case str():
            return PrimitiveType("string")
    raise _wrong("a constant must be true, false, a number or text, or an object of type literal", value)


def _read(json: Any, kind: Type, declared: bool, at: Place) -> Value:  # noqa: ANN401
    """Read a constant in the single-value serialization of a type (spec, Appendix D)."""
    base = type_base(kind)
    number = isinstance(json, (int, float)) and not isinstance(json, bool)
    if number and not declared and base in (*_NUMBERS, "decimal"):
        return Value("number", Decimal(json), at) if isinstance(json, int) else Value("float", json, at)
    if isinstance(json, str):
        match base:
            case "date":
                return Value("date", read_date(json), at)
            case "time":
                return Value("time", read_time(json), at)
            case "timestamp" | "timestamptz" | "timestamp_ns" | "timestamptz_ns":
                nanos, zoned = read_timestamp(json)
                if zoned != ("tz" in base):
                    raise ValueError(f"a {base} must be written with{'' if 'tz' in base else 'out'} an offset from UTC")
                return Value("timestamptz" if zoned else "timestamp", nanos, at)
            case "decimal":
                value = Decimal(json)
                if not value.is_finite():
                    raise ValueError(f"{json!r} is not a number")
                return Value("number", value, at)
    value = default_from_json(kind, json)
    match base:
        case "int" | "long":
            return Value("number", Decimal(value), at)
        case "float":
            single = float(np.float32(value))
            if not math.isfinite(single):
                raise ValueError("it is outside the range of float")
            return Value("number", Decimal(single), at)
        case "double":
            return Value("number", Decimal(float(value)), at)
        case "string":
            return Value("text", value, at)
        case "boolean":
            return Value("boolean", value, at)
        case "uuid":
            return Value("uuid", value.bytes, at)
        case "binary" | "fixed":
            return Value("bytes", value, at)
    raise ValueError(f"a constant of type {kind} is not written like this")


def _shown(json: object) -> str:
    value = json.get("value") if isinstance(json, Mapping) else json
    if isinstance(value, str):
        return "'" + escape.shorten(value, _SHOWN).replace("'", "''") + "'"
    return _show(value)
