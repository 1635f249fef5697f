"""Making Spark know the format ``iceexplore``."""

from __future__ import annotations

from typing import Any

from iceexplore.on_spark.environment._info import SessionInfo

__all__ = ["register"]


def register(session: Any) -> None:
    """Let a session read tables by ``spark.read.format("iceexplore")``; `iceexplore.spark` does it by itself.

    ``load`` takes a table's folder or metadata file, as `iceexplore.open` does. Options: ``snapshot-id``,
    ``as-of-timestamp`` (milliseconds, or text like ``2024-05-01 12:00``; without zone UTC), ``branch`` or ``tag``;
    ``columns`` (names with commas between them, one in backquotes may have commas itself; Spark itself does not tell
    which columns it needs, so naming them spares reading the others; metadata columns too), ``filter`` (as for
    `iceexplore.Table.plan`), ``split-size``
    (bytes), ``allow`` (a location that may be read besides the table's own, or a JSON list of them, as for
    `iceexplore.open`). Options with a dot in them are properties of the storage (``s3.endpoint``). Deletes of every
    kind are applied. With ``spark.sql.python.filterPushdown.enabled`` (Spark 4.1; on in a session that
    `iceexplore.spark` made) comparisons of ``where`` prune as ``filter`` does.

    What ``session.newSession()`` makes is to be registered by itself. Spark's SQL takes no path in place of a table's
    name: ``CREATE TEMPORARY VIEW trips USING iceexplore OPTIONS (path '...')``.

    Spark has a Python process read each split: iceexplore must be installed where the workers run. A table is opened
    and planned when Spark plans the query: one of a DataFrame that is kept shows what has been committed since, unless
    a snapshot is named.

    Raises
    ------
    UnsupportedError
        Spark is older than 4.0, which has no Python data sources.

    Examples
    --------
    >>> ix.on_spark.register(spark)
    >>> spark.read.format("iceexplore").option("columns", "id, _file").load("s3://lake/db/trips").where("id > 7")
    """
    SessionInfo.of(session).need((4, 0), 'spark.read.format("iceexplore") (t.scan(spark) does without)')
    from iceexplore.on_spark.data_source._reader import IceexploreSource

    session.dataSource.register(IceexploreSource)
