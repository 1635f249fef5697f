"""Run a view on Spark: this library scans the tables, at any snapshot, and Spark runs the query on the scans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iceexplore.errors import FormatError, UnsupportedError
from iceexplore.on_spark import SessionInfo, scan, spark_type
from iceexplore.queries._plan import ViewPlan
from iceexplore.render import escape

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["view_on_spark"]


def view_on_spark(plan: ViewPlan, session: SparkSession) -> DataFrame:
    """Return the rows of a view as a Spark DataFrame with the columns of the view's schema.

    Raises
    ------
    UnsupportedError
        sqlglot cannot translate the query to Spark's SQL, Spark refuses it, or the session is Spark Connect before
        4.0, which cannot use data frames in a query.
    FormatError
        The query and the view's schema have different numbers of columns.
    """
    info = SessionInfo.of(session)
    if info.connect:
        info.need((4, 0), "running views over Spark Connect")
    frames: dict[str, DataFrame] = {}
    names = []
    for number, source in enumerate(plan.sources):
        # In the text, {name} is a placeholder that Spark replaces with the data frame passed under this name, which it
        # registers as a temporary view.
        name = f"iceexplore_{number}_source"
        if source.view is not None:
            frames[name] = view_on_spark(source.view, session)
        else:
            assert source.table is not None
            frames[name] = scan(source.table, session)
        names.append(name)
    text = plan.query.sql(names, "spark").replace("{", "{{").replace("}", "}}")
    for name in names:
        text = text.replace(f"`{name}`", f"{{{name}}}")
    try:
        made = session.sql(text, **frames)
        found = len(made.columns)
    except Exception as error:
        from pyspark.errors import PySparkException

        if not isinstance(error, PySparkException):
            raise
        shown = escape.shorten(" ".join(str(error).split()), 400)
        raise UnsupportedError(f"Spark cannot run {plan.state.name}: {shown}") from error
    schema = plan.state.schema
    if schema is None:
        return made
    if found != len(schema.fields):
        raise FormatError(
            f"the {plan.dialect} query of {plan.state.name} returns {found:,} columns, but the view's schema has "
            f"{len(schema.fields):,}",
            location=plan.state.metadata_location,
            code="view-columns-differ",
        )
    unique = made.toDF(*(f"c{i}" for i in range(found)))
    columns = [
        unique[f"c{i}"].cast(spark_type(field.type, info.version)).alias(field.name)
        for i, field in enumerate(schema.fields)
    ]
    return unique.select(*columns)
