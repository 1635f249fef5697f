"""The commit operations that labs perform on rows, by name; each returns a function that makes the change.

They take the arguments of `Lab`'s methods, and check the engine before the commit begins. All other operations of a lab
are those of simulations (`iceexplore.commits.OPERATIONS`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from iceexplore.commits import Change, CommitWriter, LocationsLike, MakeChange, append, compact, update_columns
from iceexplore.errors import OptionError
from iceexplore.expressions import FilterLike
from iceexplore.labs._merge import merge_rows
from iceexplore.labs._operations import delete_rows, engine_of, overwrite_rows, update_rows
from iceexplore.labs._rewrite import mode_of
from iceexplore.labs._spark_rows import compact_on_spark
from iceexplore.labs._write import write_rows
from iceexplore.writing import RowsLike

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ROW_OPERATIONS"]


def _append(rows: RowsLike) -> MakeChange:
    return lambda w: append(w.base, w, write_rows(w.base, w, rows))


def _overwrite(rows: RowsLike, where: FilterLike | None = None) -> MakeChange:
    engine = engine_of(rows=rows)
    return lambda w: overwrite_rows(w.base, w, rows, where, engine=engine)


def _delete(where: FilterLike | None, *, spark: SparkSession | None = None) -> MakeChange:
    engine = engine_of(spark)
    return lambda w: delete_rows(w.base, w, where, engine=engine)


def _update(
    set: Mapping[str, Any],  # noqa: A002
    where: FilterLike | None = None,
    *,
    spark: SparkSession | None = None,
) -> MakeChange:
    engine = engine_of(spark)
    return lambda w: update_rows(w.base, w, set, where, engine=engine)


def _merge(
    rows: RowsLike,
    on: str | Iterable[str],
    *,
    matched: Literal["update", "delete"] | None = "update",
    not_matched: Literal["insert"] | None = "insert",
    where: FilterLike | None = None,
) -> MakeChange:
    return lambda w: merge_rows(w.base, w, rows, on, matched=matched, not_matched=not_matched, where=where)


def _compact(
    where: FilterLike | None = None, *, spark: SparkSession | None = None, read: bool | None = None, **how: Any
) -> MakeChange:
    if read is False:
        raise OptionError("read=False creates files without rows and is only for simulations")
    if spark is not None:
        engine_of(spark)
        return lambda w: compact_on_spark(spark, w.base, w, where=where, **how)
    # read=True: without it, files whose data is missing are compacted by metadata alone, as in simulations; in a lab,
    # that would lose rows.
    return lambda w: compact(w.base, w, where=where, read=True, **how)


def _update_columns(
    columns: Mapping[str, Any], paths: LocationsLike | None = None, *, where: FilterLike | None = None
) -> MakeChange:
    given: Any = columns
    if not isinstance(given, Mapping):
        raise OptionError(
            f"columns={given!r}: give values by column; column names alone create synthetic column files, which are "
            "only for simulations"
        )

    def make(writer: CommitWriter) -> Change:
        isolation = mode_of(writer.base, "update")[1]
        return replace(update_columns(writer.base, writer, given, paths, where=where), isolation=isolation)

    return make


#: By the operation's name: a function that takes its arguments and returns the function that makes the change.
ROW_OPERATIONS: dict[str, Callable[..., MakeChange]] = {
    "append": _append,
    "compact": _compact,
    "delete": _delete,
    "merge": _merge,
    "overwrite": _overwrite,
    "update": _update,
    "update_columns": _update_columns,
}
