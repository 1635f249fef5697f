"""The SQL of DataFusion as a dialect of sqlglot, and notes on what it may compute differently from other engines.

DataFusion parses PostgreSQL's syntax, so the dialect is sqlglot's for PostgreSQL, but for what PostgreSQL lacks or
DataFusion defines differently: time formats, casts that return null, differences of dates.
"""

from __future__ import annotations

from collections.abc import Iterator
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
        "DenseRank", "Exists", "Exp", "Extract", "FirstValue", "Floor", "Greatest", "Grouping", "Hour", "If",
        "Initcap", "IntDiv", "LTrim", "Lag", "LastValue", "Lead", "Least", "Left", "Length", "Ln", "Log",
        "Lower", "Max", "Median", "Min", "Minute", "Mod", "Month", "NthValue", "Ntile", "Nullif", "Or", "Pad",
        "PercentRank", "Pi", "Pow", "Quarter", "RTrim", "Rank", "Repeat", "Replace", "Reverse", "Right",
        "Round", "RowNumber", "SafeDivide", "Second", "Sign", "Sin", "Sqrt", "StartsWith", "Stddev",
        "StddevPop", "StddevSamp", "StrPosition", "StrToDate", "Substring", "Sum", "Tan", "TimeStrToTime",
        "TimeToStr", "TimestampTrunc", "Trim", "TryCast", "TsOrDsToDate", "TsOrDsToTimestamp", "Upper",
        "Variance", "VariancePop", "Xor", "Year",
    }
)  # fmt: skip
#: Types whose values engines write differently as text.
_TEXT_NOTE = "CAST to text: engines write times, floating-point numbers and booleans differently."


@cache
def define_datafusion() -> str:
    """Make sqlglot know the dialect; return its name."""
    from sqlglot import exp
    from sqlglot.dialects.dialect import Dialect
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
    # Formats of times are strftime's, as in sqlglot's trees.
    type("DataFusion", (Postgres,), {"Generator": generator, "TIME_MAPPING": {}})
    assert Dialect.get(DATAFUSION) is not None
    return DATAFUSION


def datafusion_notes(tree: exp.Expr) -> Iterator[str]:
    """Yield what DataFusion may compute differently from the engine for which a query was written."""
    from sqlglot import exp

    names: dict[str, None] = {}
    for node in tree.find_all(exp.Func):
        if not isinstance(node, exp.Anonymous) and type(node).__name__ not in _ALIKE:
            names.setdefault(node.sql_name().lower())
    if names:
        shown = ", ".join(escape.shorten(name, 40) for name in list(names)[:_MOST]) + (
            " …" if len(names) > _MOST else ""
        )
        yield f"Functions whose results in DataFusion have not been compared with other engines': {shown}."
    if any(node.to.this in exp.DataType.TEXT_TYPES for node in tree.find_all(exp.Cast)):
        yield _TEXT_NOTE


def function_names(tree: exp.Expr) -> list[str]:
    """Return the functions that a query calls, as sqlglot names them."""
    from sqlglot import exp

    found = (str(f.this) if isinstance(f, exp.Anonymous) else f.sql_name() for f in tree.find_all(exp.Func))
    return list(dict.fromkeys(name.lower() for name in found))
