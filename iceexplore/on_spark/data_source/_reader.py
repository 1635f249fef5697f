"""``spark.read.format("iceexplore")``: a Python data source for Spark, planned and read by iceexplore.

Spark creates the source and its plan in a separate Python process beside the driver, and its workers read the splits,
so iceexplore must be installed for all of them. This module is imported only where PySpark is installed.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
import pyspark
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from iceexplore import graph
from iceexplore.errors import FormatError, OptionError, UnsupportedError
from iceexplore.expressions import ALWAYS, Expression, all_of
from iceexplore.on_spark.data_source._pushdown import taken_filter
from iceexplore.on_spark.environment._info import version_of
from iceexplore.on_spark.transport._columns import SparkColumns
from iceexplore.on_spark.transport._splits import Share, fitted, read_share, shares
from iceexplore.on_spark.transport._state import ship
from iceexplore.planning import Filter, make_filter, plan_scan
from iceexplore.reading import outputs_of

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter as SparkFilter

__all__ = ["IceexploreReader", "IceexploreSource", "SharePartition"]

_TRAVEL = ("snapshot-id", "as-of-timestamp", "branch", "tag")
_OPTIONS = ("path", *_TRAVEL, "columns", "filter", "split-size", "allow")
#: Options that Spark itself adds to those of the user, each with the error message for it.
_MADE = {
    "paths": "load takes one table: load each one separately and combine them with union",
    "location": (
        "Spark's catalog does not accept tables of this format; use CREATE TEMPORARY VIEW trips USING iceexplore "
        "OPTIONS (path 'warehouse/db/trips')"
    ),
}
#: The advice for users who try to write, which this format does not support.
_WRITTEN = "ix.create creates a table that iceexplore can write (a lab), and lab.append(frame) adds rows"
_WHOLE = re.compile(r"-?[0-9]{1,19}")
#: A column in ``columns``, with or without backquotes.
_NAME = re.compile(r"\s*(?:(`(?:[^`]|``)*`)\s*(?:,|$)|([^,]*)(?:,|$))")


class IceexploreSource(DataSource):
    """A read-only data source for tables of any format version; see `iceexplore.on_spark.register` for the options."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "iceexplore"

    def schema(self) -> StructType:
        """Return the columns that the options select."""
        return self._columns(self._state()).schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the table's present state.

        Raises
        ------
        OptionError
            The columns of ``schema`` are not those of the table.
        """
        state = self._state()
        columns = self._columns(state)
        if [(f.name, f.dataType.simpleString()) for f in schema] != [
            (f.name, f.dataType.simpleString()) for f in columns.schema
        ]:
            raise OptionError(
                "the columns are not those of the table: omit .schema(...) and select columns by "
                f".option('columns', 'a, b'); it has {columns.schema.simpleString()}"
            )
        return IceexploreReader(state, columns, self.options)

    def writer(self, schema: StructType, overwrite: bool) -> NoReturn:
        """Raise an error, as the format is read-only."""
        raise UnsupportedError(f"format iceexplore is read-only: {_WRITTEN}")

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  (Spark's name)
        """Return a reader that raises an error later, since PySpark loses one raised in this method."""
        return _NoStream()

    def streamWriter(self, schema: StructType, overwrite: bool) -> NoReturn:  # noqa: N802  (Spark's name)
        """Raise an error, as the format is read-only."""
        raise UnsupportedError(f"format iceexplore is read-only: {_WRITTEN}, for a stream in foreachBatch")

    def _state(self) -> graph.TableState:
        return state_of_options(self.options)

    def _columns(self, state: graph.TableState) -> SparkColumns:
        given = self.options.get("columns")
        names = None if given is None else _names_in(given)
        if names == []:  # Spark cannot count rows without columns
            raise OptionError(f"columns={given!r}: expected names separated by commas; omit the option to read all")
        return SparkColumns(outputs_of(state, names), version_of(pyspark.__version__))


class _NoStream(DataSourceStreamReader):
    """A stream reader that raises an error for a new as well as for a resumed stream."""

    def initialOffset(self) -> NoReturn:  # noqa: N802  (Spark's name)
        self.read()

    def latestOffset(self, *_: Any) -> NoReturn:  # noqa: N802  (Spark's name)
        self.read()

    def read(self, *_: Any) -> NoReturn:
        raise UnsupportedError(
            "format iceexplore does not support streams: spark.read reads a table, and "
            "t.changes(..., rows=True, spark=spark) its changes"
        )


def _names_in(given: str) -> list[str]:
    """Return the names in a comma-separated list; names in backquotes (doubled inside) may contain commas."""
    found = [(quoted, plain.strip()) for quoted, plain in _NAME.findall(given)]
    return [quoted[1:-1].replace("``", "`") if quoted else plain for quoted, plain in found if quoted or plain]


def state_of_options(options: Mapping[str, str]) -> graph.TableState:
    """Return the state of the table that the options select.

    Raises
    ------
    OptionError
        An option is unknown or invalid.
    IceexploreError
        The table cannot be opened; see `iceexplore.storage.open_source`.
    """
    unknown = sorted(k for k in options if k not in _OPTIONS and "." not in k)
    if unknown and unknown[0] in _MADE:
        raise OptionError(_MADE[unknown[0]])
    if unknown:
        raise OptionError(f"format iceexplore has no option {unknown[0]!r}; the options are {', '.join(_OPTIONS)}")
    path = options.get("path")
    if not path:
        raise OptionError("format iceexplore needs a table's location: .load('warehouse/db/trips')")
    given = [name for name in _TRAVEL if options.get(name) is not None]
    if len(given) > 1:
        raise OptionError(f"options {' and '.join(given)} exclude each other: give one of them")
    properties = {k: v for k, v in options.items() if "." in k}
    state = graph.open_state(path, allow=_allowed(options.get("allow")), properties=properties or None)
    if state.storage.is_extracted:
        raise UnsupportedError(
            f"{path}: Spark plans in one process and reads in others, but a zip is extracted for the first process "
            "only: extract it and load the folder, or use t = ix.open(...); t.scan(spark)"
        )
    if not given:
        return state
    name, value = given[0], options[given[0]]
    whole = _WHOLE.fullmatch(value.strip()) is not None
    if name == "snapshot-id":
        if not whole:
            raise OptionError(
                f"snapshot-id={value!r} is not a snapshot id; for a branch or tag, use the option branch or tag"
            )
        return graph.travel(state, snapshot=value)
    if name == "as-of-timestamp":
        return graph.travel(state, timestamp=int(value) if whole else value)
    ref = state.metadata.refs.get(value)
    if ref is not None and ref.type != name:
        raise OptionError(f"{value!r} is a {ref.type}, not a {name}: use .option({ref.type!r}, {value!r})")
    return graph.travel(state, ref=value)


def _allowed(given: str | None) -> tuple[str, ...]:
    """Return the locations in the option ``allow``: a single one, or a JSON list."""
    if given is None:
        return ()
    if not given.lstrip().startswith("["):
        return (given,)
    try:
        found = json.loads(given)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(place, str) for place in found):
        raise OptionError(f'allow={given!r}: give a location, or several as JSON: ["s3://lake/raw", "s3://old/db"]')
    return tuple(found)


class SharePartition(InputPartition):
    """The share of the plan that one Spark task reads."""

    def __init__(self, share: Share) -> None:
        super().__init__(None)
        self.share = share


class _Offer:
    """A ``pushFilters`` method that Spark accepts in a reader even if filter pushdown is disabled.

    Spark rejects a reader that overrides ``pushFilters`` if the session has ``spark.sql.python.filterPushdown.enabled``
    off, which is the default. It detects the override by comparing ``__func__``.
    """

    # A static method, because bound methods would compare unequal. Before Spark 4.1 the method does not exist.
    __func__ = staticmethod(DataSourceReader.__dict__.get("pushFilters", lambda: None))

    def __init__(self, take: Callable[[Any], Iterable[Any]]) -> None:
        self._take = take

    def __call__(self, filters: Sequence[SparkFilter]) -> Iterable[Any]:
        return self._take(filters)


class IceexploreReader(DataSourceReader):
    """A reader that plans the scan in Spark's planning process and reads shares of it in the workers."""

    def __init__(self, state: graph.TableState, columns: SparkColumns, options: Mapping[str, str]) -> None:
        self._state: graph.TableState | None = state
        self._shipped = ship(state)
        self._outputs = columns.outputs
        self._version = columns.version
        self._filter = make_filter(state.metadata, state.schema, options.get("filter"))
        size = options.get("split-size")
        if size is not None and not (size.isascii() and size.isdecimal() and 0 < int(size) < 2**62):
            raise OptionError(f"split-size={size!r}: expected a number of bytes")
        self._split_size = None if size is None else int(size)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_state": None}

    @property
    def pushFilters(self) -> Callable[[Any], Iterable[Any]]:  # noqa: N802  (Spark's name)
        """Return the method to which Spark passes filters.

        The method takes over the filters that select exactly the same rows in iceexplore, and returns all others.
        """
        return _Offer(self._take)

    def _take(self, filters: Iterable[Any]) -> list[Any]:
        left = []
        found: Expression = ALWAYS
        for item in filters:
            meaning = taken_filter(item, self._outputs)
            if meaning is None:
                left.append(item)
            else:
                found = all_of(found, meaning)
        if found != ALWAYS:
            text = f"{self._filter.text}, pushed down by Spark"
            self._filter = Filter(text, all_of(self._filter.expression, found))
        return left

    def partitions(self) -> list[InputPartition]:
        """Return the plan's splits.

        Raises
        ------
        FormatError
            Manifests cannot be read, so rows would be missing. Contradictory counts only cause a warning.
        """
        state = self._state or self._shipped.open()
        plan = plan_scan(state, self._filter, split_size=self._split_size)
        if plan.notes:
            raise FormatError("; ".join(plan.notes), location=state.metadata_location)
        for doubt in plan.doubts:  # this runs in a process that Spark starts, so warnings are in the driver's log
            warnings.warn(doubt, stacklevel=2)
        given = self._split_size is not None
        options = plan.options if given else fitted(plan.files, plan.options, os.cpu_count() or 1)
        return [SharePartition(share) for share in shares(plan.files, options)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one share; ``partition`` is None if the plan has no shares."""
        if not isinstance(partition, SharePartition):
            return
        columns = SparkColumns(self._outputs, self._version)
        for table in read_share(self._shipped.open(), partition.share, self._outputs):
            yield from columns.of(table).to_batches()
