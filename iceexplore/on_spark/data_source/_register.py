"""Register the format ``iceexplore`` with Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iceexplore.on_spark.environment._info import SessionInfo

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(session: SparkSession) -> None:
    """Let a session read tables by ``spark.read.format("iceexplore")``; `iceexplore.spark` does this automatically.

    ``load`` takes a table's folder or metadata file, like `iceexplore.open`. All kinds of deletes are applied. Options:

    - ``snapshot-id``, ``as-of-timestamp`` (milliseconds, or text such as ``2024-05-01 12:00``, in UTC unless a zone is
      given), ``branch`` or ``tag``;
    - ``columns``: names separated by commas, metadata columns included; names in backquotes may contain commas. Spark
      does not tell a data source which columns it needs, so this avoids reading the others;
    - ``filter``, as for `iceexplore.Table.plan`;
    - ``split-size``, in bytes;
    - ``allow``: a location that may be read besides the table's own, or a JSON list, as for `iceexplore.open`;
    - names that contain a dot are properties of the storage (``s3.endpoint``).

    With ``spark.sql.python.filterPushdown.enabled`` (Spark 4.1; on in sessions that `iceexplore.spark` starts),
    comparisons in ``where`` prune like ``filter``.

    A session from ``session.newSession()`` has to be registered separately. Spark SQL does not accept a path instead of
    a table name; use ``CREATE TEMPORARY VIEW trips USING iceexplore OPTIONS (path '...')``.

    Python processes read the splits, so iceexplore must be installed where the workers run. The table is opened and
    planned each time Spark plans a query, so a DataFrame that you keep shows later commits, unless it names a snapshot.

    Raises
    ------
    UnsupportedError
        Spark is older than 4.0, which has no Python data sources.

    Examples
    --------
    >>> ix.on_spark.register(spark)
    >>> spark.read.format("iceexplore").option("columns", "id, _file").load("s3://lake/db/trips").where("id > 7")
    """
    SessionInfo.of(session).need((4, 0), 'spark.read.format("iceexplore") (unlike t.scan(spark))')
    from iceexplore.on_spark.data_source._reader import IceexploreSource

    session.dataSource.register(IceexploreSource)
