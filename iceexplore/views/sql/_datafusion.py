"""The SQL of DataFusion as a dialect of sqlglot, and notes on what it may compute differently from other engines.

DataFusion parses PostgreSQL's syntax, so the dialect is sqlglot's for PostgreSQL, except for what PostgreSQL lacks or
DataFusion defines differently: time formats, casts that return null, differences between dates.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from iceexplore.render import escape

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["DATAFUSION", "datafusion_notes", "define_datafusion", "function_names"]

DATAFUSION = "datafusion"
#: The maximum number of names in a note.
_MOST = 8
#: Functions with the same results in DataFusion, by the names of sqlglot's classes. All others get a note.
_ALIKE = frozenset(
    {
        "Abs", "Acos", "And", "Any", "Array", "Asin", "Atan", "Atan2", "Avg", "Between", "Case", "Cast", "Ceil",
        "Coalesce", "Concat", "Corr", "Cos", "Count", "CountIf", "CovarPop", "CovarSamp", "CumeDist",
        "CurrentDate", "CurrentTimestamp", "DateDiff", "DateStrToDate", "DateTrunc", "Day", "DayOfMonth",
        "DenseRank", "Exists", "Exp", "FirstValue", "Floor", "Grouping", "Hour", "If", "IntDiv", "LTrim", "Lag",
        "LastValue", "Lead", "Length", "Lower", "Max", "Median", "Min", "Minute", "Mod", "Month", "NthValue",
        "Ntile", "Nullif", "Or", "Pad", "PercentRank", "Pi", "Pow", "Quarter", "RTrim", "Rank", "Repeat",
        "Replace", "Reverse", "RowNumber", "SafeDivide", "Sign", "Sin", "Sqrt", "StartsWith", "Stddev",
        "StddevPop", "StddevSamp", "StrPosition", "Sum", "Tan", "TimeStrToTime", "TimestampTrunc", "Trim",
        "TryCast", "TsOrDsToDate", "TsOrDsToTimestamp", "Upper", "Variance", "VariancePop", "Xor", "Year",
    }
)  # fmt: skip
#: Functions with the same results if these arguments are positive integers.
_POSITIVE = {"Left": ("expression",), "Right": ("expression",), "Substring": ("start", "length")}
#: Units of EXTRACT, and directives of time formats, that all engines understand alike.
_UNITS = frozenset({"DAY", "HOUR", "MINUTE", "MONTH", "QUARTER", "YEAR"})
_FORMAT = re.compile(r"(?:%[YmdHMS](?:strict)?|[^%A-Za-z])*")
#: Notations of dates and times that all engines accept.
_ISO = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d:\d\d(\.\d{1,6})?)?")
#: Iceberg's text types, and the types whose casts to text give the same text in all engines.
_TEXT = frozenset({"string"})
_WRITTEN_ALIKE = frozenset({"date", "decimal", "int", "long", "string"})


@cache
def define_datafusion() -> str:
    """Register the dialect with sqlglot; return its name."""
    from sqlglot import Dialect, exp
    from sqlglot.dialects.postgres import Postgres

    if Dialect.get(DATAFUSION) is not None:  # a newer sqlglot has its own
        return DATAFUSION

    def time_to_str(generator: Any, node: exp.Expr) -> str:  # noqa: ANN401  (sqlglot's generators)
        return str(generator.func("TO_CHAR", node.this, generator.format_time(node)))

    def date_diff(generator: Any, node: exp.Expr) -> str:  # noqa: ANN401
        unit = str(node.args.get("unit") or "DAY").upper()
        if unit.strip("'\"") != "DAY":
            generator.unsupported(f"the difference of dates in the unit {unit}")
        dates = (exp.cast(exp.cast(side.copy(), "date"), "int") for side in (node.this, node.expression))
        return " - ".join(generator.sql(date) for date in dates)

    def to_date(generator: Any, node: exp.Expr) -> str:  # noqa: ANN401
        if node.args.get("format") is None:
            return str(generator.sql(exp.cast(node.this.copy(), "date")))
        return str(generator.func("TO_DATE", node.this, generator.format_time(node)))

    def int_div(generator: Any, node: exp.Expr) -> str:  # noqa: ANN401
        whole = (exp.cast(side.copy(), "bigint") for side in (node.this, node.expression))
        return " / ".join(generator.sql(side) for side in whole)

    generator = type(
        "Generator",
        (Postgres.Generator,),
        {
            "TRANSFORMS": {
                **Postgres.Generator.TRANSFORMS,
                exp.AnyValue: lambda g, e: g.func("FIRST_VALUE", e.this),
                exp.CountIf: lambda g, e: f"COUNT(*) FILTER(WHERE {g.sql(e, 'this')})",
                exp.DateDiff: date_diff,
                exp.Hour: lambda g, e: f"EXTRACT(HOUR FROM {g.sql(e, 'this')})",
                exp.IntDiv: int_div,
                exp.Minute: lambda g, e: f"EXTRACT(MINUTE FROM {g.sql(e, 'this')})",
                exp.Second: lambda g, e: f"EXTRACT(SECOND FROM {g.sql(e, 'this')})",
                exp.StrToDate: to_date,
                exp.TimeToStr: time_to_str,
                exp.TryCast: lambda g, e: g.cast_sql(e, safe_prefix="TRY_"),
                exp.TsOrDsToDate: to_date,
            },
        },
    )
    # Time formats use strftime's notation, as in sqlglot's trees.
    type("DataFusion", (Postgres,), {"Generator": generator, "TIME_MAPPING": {}})
    assert Dialect.get(DATAFUSION) is not None
    return DATAFUSION


def datafusion_notes(tree: exp.Expr, types: Mapping[str, Collection[str]] | None = None) -> Iterator[str]:
    """Yield notes on what DataFusion may compute differently from the engine for which a query was written.

    Parameters
    ----------
    types
        Iceberg's types, without parameters, of the sources' columns and struct fields, by name in lower case.
    """
    from sqlglot import exp

    known = types or {}
    names: dict[str, None] = {}
    for node in tree.find_all(exp.Func):
        if not isinstance(node, (exp.Anonymous, exp.Cast)) and not _is_alike(node):
            names.setdefault(node.sql_name().lower())
    if names:
        shown = ", ".join(escape.shorten(name, 40) for name in list(names)[:_MOST])
        more = " …" if len(names) > _MOST else ""
        yield f"Functions whose results in DataFusion have not been compared with other engines': {shown}{more}."
    casts = list(tree.find_all(exp.Cast))
    to_text = [node for node in casts if node.to.this in exp.DataType.TEXT_TYPES]
    if not all(_all_of(node.this, known, _WRITTEN_ALIKE) for node in to_text):
        yield "CAST to text: engines write times, floating-point numbers and booleans differently."
    others: list[Any] = [node for node in casts if node not in to_text]
    others += tree.find_all(exp.TimeStrToTime, exp.TsOrDsToDate, exp.TsOrDsToTimestamp)
    if not all(_all_of(node.this, known, None) for node in others):
        yield "CAST of text: engines accept different notations, and what DataFusion refuses may become null."
    divided = (column.name.lower() for one in tree.find_all(exp.Avg, exp.Div) for column in one.find_all(exp.Column))
    if any("decimal" in found for found in known.values()) and any(
        "decimal" in known.get(c, "decimal") for c in divided
    ):
        yield "Averages and quotients of decimals: the last digit is truncated where other engines round."


def _is_alike(node: exp.Func) -> bool:
    """Return whether DataFusion is known to give the same results for a function."""
    from sqlglot import exp

    name = type(node).__name__
    if name in _ALIKE:
        return True
    if name in _POSITIVE:
        given = (node.args.get(key) for key in _POSITIVE[name])
        return all(one is None or (isinstance(one, exp.Literal) and one.is_int and int(one.this) > 0) for one in given)
    if isinstance(node, exp.Extract):
        return str(node.this).upper() in _UNITS
    if isinstance(node, (exp.TimeToStr, exp.StrToDate)):
        form = node.args.get("format")
        return isinstance(form, exp.Literal) and _FORMAT.fullmatch(str(form.this)) is not None
    return False


def _all_of(node: exp.Expr, known: Mapping[str, Collection[str]], wanted: Collection[str] | None) -> bool:
    """Return whether all columns in an expression have known and wanted types.

    If ``wanted`` is None, every type but text is wanted, and the expression's string literals must be dates or times in
    ISO notation.
    """
    from sqlglot import exp

    for column in node.find_all(exp.Column):
        found = known.get(column.name.lower())
        if not found or any(one in _TEXT if wanted is None else one not in wanted for one in found):
            return False
    return wanted is not None or not any(
        one.is_string and _ISO.fullmatch(str(one.this)) is None for one in node.find_all(exp.Literal)
    )


def function_names(tree: exp.Expr) -> list[str]:
    """Return the functions that a query calls, as sqlglot names them."""
    from sqlglot import exp

    found = (str(f.this) if isinstance(f, exp.Anonymous) else f.sql_name() for f in tree.find_all(exp.Func))
    return list(dict.fromkeys(name.lower() for name in found))
