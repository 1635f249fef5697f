"""Functions in expressions (``format/expressions-spec.md``): partition transforms and some functions of SQL.

Functions have the same names in a table's ``expressions`` as in filter expressions: a transform has its text,
``bucket[16]``, and a SQL function its name, ``lower``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from iceexplore.arrow import AnyArray
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError
from iceexplore.metadata.transforms._registry import parse_transform
from iceexplore.metadata.types._arrow import arrow_type
from iceexplore.metadata.types._parameters import type_base
from iceexplore.metadata.types._types import PrimitiveType, Type

__all__ = ["SQL_FUNCTIONS", "SqlFunction", "apply_function", "function_type"]

_INT = PrimitiveType("int")
_STRING = PrimitiveType("string")


@dataclass(frozen=True)
class SqlFunction:
    """A function of the SQL standard (the catalog ``sql_functions``).

    Attributes
    ----------
    result
        A function from the types of the arguments to the type of the result; None if it does not accept them.
    """

    name: str
    accepts: str
    result: Callable[[Sequence[Type]], Type | None]
    apply: Callable[[Sequence[AnyArray]], AnyArray]


def _of_text(result: Type) -> Callable[[Sequence[Type]], Type | None]:
    return lambda types: result if [type_base(t) for t in types] == ["string"] else None


def _of_text_or_bytes(types: Sequence[Type]) -> Type | None:
    return _INT if len(types) == 1 and type_base(types[0]) in ("string", "binary", "fixed") else None


def _alike(types: Sequence[Type]) -> Type | None:
    return types[0] if types and len({str(t) for t in types}) == 1 else None


_ONE_TEXT = "one string"
#: Case conversion and lengths are by Unicode code points; engines differ for some letters (the Turkish dotted I).
SQL_FUNCTIONS = {
    f.name: f
    for f in (
        SqlFunction("lower", _ONE_TEXT, _of_text(_STRING), lambda a: pc.utf8_lower(a[0])),
        SqlFunction("upper", _ONE_TEXT, _of_text(_STRING), lambda a: pc.utf8_upper(a[0])),
        SqlFunction("trim", _ONE_TEXT, _of_text(_STRING), lambda a: pc.utf8_trim(a[0], " ")),
        SqlFunction("char_length", _ONE_TEXT, _of_text(_INT), lambda a: pc.utf8_length(a[0])),
        SqlFunction("character_length", _ONE_TEXT, _of_text(_INT), lambda a: pc.utf8_length(a[0])),
        SqlFunction("octet_length", "one string or binary", _of_text_or_bytes, lambda a: pc.binary_length(a[0])),
        SqlFunction("coalesce", "values of one type", _alike, lambda a: pc.coalesce(*a)),
    )
}


def function_type(function: str, arguments: Sequence[Type]) -> Type | None:
    """Return the type of a function's result; None if it does not accept the arguments or is not known."""
    if function in SQL_FUNCTIONS:
        return SQL_FUNCTIONS[function].result(arguments)
    transform = parse_transform(function)
    if len(arguments) != 1 or not transform.is_known or transform.is_void or not transform.accepts(arguments[0]):
        return None
    return transform.result_type(arguments[0])


def apply_function(function: str, types: Sequence[Type], arguments: Sequence[AnyArray]) -> AnyArray:
    """Return the results of a function for arrays, in the Arrow type of `function_type`.

    Parameters
    ----------
    types, arguments
        The arguments' types, and an array with the values of each, of the corresponding Arrow type.

    Raises
    ------
    OptionError
        The function is not known, does not accept the arguments, or a result does not fit its type.
    """
    result = function_type(function, types)
    if result is None:
        raise OptionError(f"{function} is not a function of {', '.join(map(str, types))}")
    if function not in SQL_FUNCTIONS:
        return parse_transform(function).apply(types[0], arguments[0])
    found: AnyArray = SQL_FUNCTIONS[function].apply(arguments)
    return found if pa.types.is_null(found.type) else found.cast(arrow_type(result))
