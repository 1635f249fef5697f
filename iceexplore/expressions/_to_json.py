"""Write expressions as JSON: in the form of ``format/expressions-spec.md``, or of REST scan planning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any, Literal, TypeAlias
from uuid import UUID

import numpy as np

from iceexplore.arrow import PlainValue
from iceexplore.errors import OptionError, nearest
from iceexplore.expressions._export import path_of
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
    Or,
    Predicate,
    ValueExpression,
)
from iceexplore.metadata import (
    StructType,
    Type,
    decimal_parameters,
    default_to_json,
    format_value,
    parse_transform,
    type_base,
)

__all__ = ["expression_to_json"]

Json: TypeAlias = dict[str, Any] | bool

_OPS = {
    "<": "lt", "<=": "lt-eq", ">": "gt", ">=": "gt-eq", "=": "eq", "!=": "not-eq", "in": "in", "not-in": "not-in",
}  # fmt: skip
#: Types of constants that need no "data-type", because the JSON value itself shows them.
_PLAIN = frozenset(("boolean", "double", "int", "long", "string"))
_EXACT = Context(prec=200)


def expression_to_json(
    expression: Expression,
    *,
    form: Literal["spec", "rest"] = "spec",
    references: Literal["name", "id"] = "name",
) -> Json:
    """Return the JSON of an expression, for ``json.dumps``.

    In the spec's two-valued logic, a null satisfies ``not-eq``, ``not-in`` and ``not-starts-with``; in SQL it does not.
    So each of these is written together with ``not-null``, and the JSON selects the same rows.

    Parameters
    ----------
    form
        ``spec`` writes Iceberg's expressions spec. ``rest`` writes the older form of REST scan planning, with ``term``
        and ``value``, which catalogs and PyIceberg read; its only functions are partition transforms.
    references
        ``name`` writes the names of columns, as in a query; ``id`` writes their field ids, as in a stored expression
        (only for ``spec``). In ``spec``, a column is always identified by its id if its name is ambiguous.

    Raises
    ------
    OptionError
        The expression cannot be written in this form: it has a prefix of binary values or (``rest`` only) a function
        that is not a partition transform; a column has no type; or ``form`` or ``references`` is invalid.
    """
    if form not in ("spec", "rest"):
        raise OptionError(f"form={form!r}: {nearest(str(form), ['spec', 'rest'])}")
    if references not in ("name", "id") or (references == "id" and form == "rest"):
        raise OptionError(f"references={references!r}: choose 'name' or 'id'; form='rest' allows only 'name'")
    return _Writer(form == "rest", references == "id").predicate(expression)


class _Writer:
    def __init__(self, rest: bool, by_id: bool) -> None:
        self._rest = rest
        self._by_id = by_id

    def predicate(self, expression: Expression) -> Json:
        match expression:
            case Always(value):
                return value
            case And(children):
                return _chain("and", [self.predicate(c) for c in children])
            case Or(children):
                return _chain("or", [self.predicate(c) for c in children])
            case Computed(predicate, Comparison() as value):
                return self._comparison(predicate, value)
            case Computed(predicate, value):
                return self._compared(predicate, self._value(value))
        return self._compared(expression, self._reference(expression.field_id, expression.name))

    def _compared(self, p: Predicate, operand: object) -> Json:
        if p.op in ("is-null", "not-null", "is-nan", "not-nan"):
            return self._test(p.op, operand)
        if p.type is None:
            raise OptionError(f"{p.text or p.name}: the type of the column is not known")
        if any(isinstance(v, float) and math.isinf(v) for v in p.literals):
            return self._infinite(p, operand)
        if p.op in ("starts-with", "not-starts-with"):
            if type_base(p.type) != "string":
                raise OptionError(f"{p.text or p.name}: in JSON, only strings have prefixes")
            out = self._one(p.op, operand, p.literals[0], p.type)
        elif p.op in ("in", "not-in"):
            out = self._several(_OPS[p.op], operand, p.literals, p.type)
        else:
            out = self._one(_OPS[p.op], operand, p.literals[0], p.type)
        negative = p.op in ("!=", "not-in", "not-starts-with")
        return _chain("and", [self._test("not-null", operand), out]) if negative else out

    def _comparison(self, p: Predicate, value: Comparison) -> Json:
        """Write a comparison of two values. Its result is true or false, never unknown."""
        if self._rest:
            raise OptionError(f"{p.text}: in REST's form, a value can be compared only with a constant")
        yes = p.literals[0] is (p.op == "=")
        out = {"type": _OPS[value.op], "left": self._value(value.left), "right": self._value(value.right)}
        return out if yes else {"type": "not", "child": out}

    def _infinite(self, p: Predicate, operand: object) -> Json:
        """Write a comparison with infinity, which JSON cannot express, as one with the greatest finite number."""
        assert p.type is not None
        most = float(np.finfo(np.float32 if type_base(p.type) == "float" else np.float64).max)

        def equal(x: float) -> Json:
            if math.isinf(x):
                return self._one("gt" if x > 0 else "lt", operand, math.copysign(most, x), p.type)
            return self._one("eq", operand, x, p.type)

        there = [self._test("not-null", operand)]
        number = [*there, self._test("not-nan", operand)]
        x = p.literals[0]
        match p.op:
            case "=" | "in":
                return _chain("or", [equal(x) for x in p.literals])
            case "!=" | "not-in":
                others: list[Json] = [{"type": "not", "child": equal(x)} for x in p.literals]
                return _chain("and", there + others)
            case "<" | ">":
                if (x > 0) != (p.op == "<"):
                    return False
                return self._one("lt-eq" if x > 0 else "gt-eq", operand, math.copysign(most, x), p.type)
        return _chain("and", number) if (x > 0) == (p.op == "<=") else equal(x)

    def _test(self, op: str, operand: object) -> Json:
        return {"type": op, "term" if self._rest else "child": operand}

    def _one(self, op: str, operand: object, value: PlainValue, kind: Type | None) -> Json:
        if self._rest:
            return {"type": op, "term": operand, "value": _literal(value, kind)}
        return {"type": op, "left": operand, "right": _typed(value, kind)}

    def _several(self, op: str, operand: object, values: Sequence[PlainValue], kind: Type) -> Json:
        plain = [_literal(v, kind) for v in values]
        if self._rest:
            return {"type": op, "term": operand, "values": plain}
        typed: object = plain
        if type_base(kind) not in _PLAIN:
            typed = {"type": "literals", "values": plain, "data-type": str(kind)}
        return {"type": op, "child": operand, "values": typed}

    def _reference(self, field_id: int, name: str) -> object:
        path = path_of(name)
        if self._rest:
            return ".".join(path)
        # Backticks mean that a part contains a dot or a backtick, or that the plain name refers to another column.
        if self._by_id or "`" in name:
            return {"type": "reference", "id": field_id}
        return {"type": "reference", "name": ".".join(path)}

    def _value(self, value: ValueExpression) -> Any:  # noqa: ANN401
        match value:
            case FieldValue(field_id, name):
                return self._reference(field_id, name)
            case Constant(constant, kind):
                return _typed(constant, kind)
            case Applied(function, arguments):
                return self._applied(function, arguments)
            case Conditional(condition, one, other):
                return self._call("iceberg_functions", "if_else", self.predicate(condition), self._value(one),
                                  self._value(other))  # fmt: skip
        raise OptionError("a comparison is a predicate, not a value")  # filters in SQL or JSON never contain one

    def _applied(self, function: str, arguments: Sequence[ValueExpression]) -> Json:
        transform = parse_transform(function)
        if self._rest:
            inner = arguments[0]
            if not transform.is_known or not isinstance(inner, FieldValue):
                raise OptionError(f"{function}: in REST's form, only partition transforms of columns can be compared")
            return {"type": "transform", "transform": function, "term": self._value(inner)}
        values = [self._value(a) for a in arguments]
        if not transform.is_known:
            return self._call("sql_functions", function, *values)
        name, _, width = function.partition("[")
        return self._call("iceberg_functions", name, *([int(width.rstrip("]"))] if width else []), *values)

    def _call(self, catalog: str, name: str, *arguments: object) -> Json:
        if self._rest:
            raise OptionError(f"{name}: in REST's form, only partition transforms of columns can be compared")
        function = {"catalog": catalog, "identifier": [name]}
        return {"type": "apply", "function": function, "arguments": list(arguments)}


def _chain(op: str, parts: Sequence[Json]) -> Json:
    """Join two or more parts in a shallow tree, because readers walk it recursively."""
    if len(parts) == 1:
        return parts[0]
    middle = (len(parts) + 1) // 2
    return {"type": op, "left": _chain(op, parts[:middle]), "right": _chain(op, parts[middle:])}


def _typed(value: PlainValue, kind: Type | None) -> object:
    plain = _literal(value, kind)
    if kind is None or type_base(kind) in _PLAIN:
        return plain
    return {"type": "literal", "value": plain, "data-type": str(kind)}


def _literal(value: PlainValue, kind: Type | None) -> object:
    """Return a stored value in the single-value serialization (spec, Appendix D)."""
    if kind is None or isinstance(kind, StructType):
        return value
    base = type_base(kind)
    if base == "decimal":
        parameters = decimal_parameters(kind)
        scale = 0 if parameters is None else parameters[1]
        return format(_EXACT.quantize(value, Decimal(1).scaleb(-scale)), "f")
    if base == "time":
        return format_value(kind, value)
    if base == "uuid":
        return str(UUID(bytes=bytes(value)))
    if base == "float":
        return float(str(np.float32(value)))  # the shortest number that reads as the same float
    return default_to_json(kind, value)
