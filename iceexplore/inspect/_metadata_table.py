"""A metadata table as an object: call it for a pandas data frame, ``.arrow()`` for an Arrow table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

import pyarrow as pa

from iceexplore.arrow import DynamicType
from iceexplore.errors import OptionError
from iceexplore.graph import TableState, to_frame
from iceexplore.inspect._by_leaf import ByLeaf
from iceexplore.inspect._docs import COLUMN_DOCS
from iceexplore.inspect._essentials import essentials
from iceexplore.inspect._leaf_rows import LeafRows
from iceexplore.manifests import ENTRY_SCHEMA
from iceexplore.render import html_table, shown_frame

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame as SparkFrame
    from pyspark.sql import SparkSession

__all__ = ["Build", "Definition", "FrameTable", "MetadataTable", "OnSpark"]

#: Builds a metadata table on Spark from the state, the session, the table's name, ``flat``, ``columns`` and
#: ``on_error``.
OnSpark: TypeAlias = Callable[..., Any]

#: Reads a metadata table of a state and yields it in parts, all of which have the given schema.
Build: TypeAlias = Callable[[TableState, pa.Schema], Iterable[pa.Table]]


@dataclass(frozen=True)
class Definition:
    """Definition of a metadata table: its name, description and columns, and the function that reads it.

    ``travels`` is True for a table that shows the state's snapshot (like Spark's ``VERSION AS OF``) and False for one
    that shows the whole metadata file. ``spark`` is True for a table that Iceberg's Spark runtime has too. ``by_leaf``
    reads the table one manifest at a time, if that is possible.
    """

    name: str
    doc: str
    schema: Callable[[TableState], pa.Schema]
    build: Build
    travels: bool
    spark: bool = True
    by_leaf: ByLeaf | None = None


class FrameTable:
    """A small table of metadata: call it for a pandas data frame, ``.arrow()`` for an Arrow table.

    Parameters
    ----------
    schema
        A function that returns the columns; it reads nothing.
    build
        A function that reads the table and yields it in parts, all of which have the given schema.
    docs
        A description of each column; a key ``table.column`` applies to that table only.
    """

    def __init__(
        self,
        name: str,
        doc: str,
        schema: Callable[[], pa.Schema],
        build: Callable[[pa.Schema], Iterable[pa.Table]],
        docs: Mapping[str, str],
    ) -> None:
        self._name = name
        self._doc = doc
        self._schema = schema
        self._build = build
        self._docs = docs
        self.__doc__ = doc

    @property
    def name(self) -> str:
        """The table's name."""
        return self._name

    @property
    def schema(self) -> pa.Schema:
        """The table's columns and their types. Reads nothing."""
        return self._schema()

    @property
    def columns(self) -> dict[str, str]:
        """A description of each column, by name. Reads nothing."""
        docs = self._docs
        return {name: docs.get(f"{self.name}.{name}", docs.get(name, "")) for name in self.schema.names}

    def arrow(self, *, flat: bool = False) -> pa.Table:
        """Return the table as Arrow.

        Parameters
        ----------
        flat
            Return one plain column for each field of a struct, named by its path: ``partition.kind``,
            ``readable_metrics.id.lower_bound``. Maps and lists stay.

        Raises
        ------
        IceexploreError
            A file is damaged or cannot be read and the table was opened with ``strict=True``; otherwise the fault is
            added to ``.problems``.
        """
        schema = self.schema
        parts = list(self._build(schema))
        table = pa.concat_tables(parts) if parts else schema.empty_table()
        while flat and any(pa.types.is_struct(f.type) for f in table.schema):
            table = table.flatten()
        return table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the table as an Arrow C stream, for libraries that take one: ``polars.DataFrame(t.inspect.files)``."""
        table: Any = self.arrow()  # pyarrow-stubs leaves the export untyped
        stream: object = table.__arrow_c_stream__(requested_schema)
        return stream

    def __call__(self, *, flat: bool = False) -> pd.DataFrame:
        """Return the table as a pandas data frame with Arrow-backed columns; see `arrow` for ``flat`` and errors."""
        import pandas as pd

        frame: pd.DataFrame = self.arrow(flat=flat).to_pandas(types_mapper=pd.ArrowDtype)
        return shown_frame(frame)

    def _calls(self) -> str:
        return f".inspect.{self.name}()"

    def _rows(self) -> list[tuple[str, str, str]]:
        docs = self.columns
        return [(f.name, _type_name(f.type), docs[f.name]) for f in self.schema]

    def __repr__(self) -> str:
        rows = self._rows()
        name, kind = (max((len(r[i]) for r in rows), default=0) for i in (0, 1))
        lines = [f"{self.name}: {self._doc}", f"  call it for pandas: {self._calls()}"]
        return "\n".join([*lines, *[f"  {n:{name}}  {t:{kind}}  {d}".rstrip() for n, t, d in rows]])

    def _repr_html_(self) -> str:
        caption = f"{self.name}: {self._doc} Call it for pandas: {self._calls()}"
        return str(html_table(("column", "type", "description"), self._rows(), caption))


class MetadataTable(FrameTable):
    """One metadata table of one table, named as in Spark's ``SELECT * FROM db.table.<name>``.

    Nothing is read until it is called.

    Examples
    --------
    >>> t.inspect.files()             # pandas, Arrow-backed: every digit of every integer is kept
    >>> t.inspect.files(flat=True)    # a plain column for each partition field and metric
    >>> t.inspect.files.essentials()  # the columns to look at first, with short names
    >>> t.inspect.files.arrow()       # pyarrow.Table
    >>> t.inspect.files(spark=spark)  # a Spark DataFrame, built by the workers
    """

    def __init__(self, state: TableState, definition: Definition, on_spark: OnSpark | None = None) -> None:
        super().__init__(
            definition.name,
            definition.doc,
            partial(definition.schema, state),
            partial(definition.build, state),
            COLUMN_DOCS,
        )
        self._state = state
        self._definition = definition
        self._on_spark = on_spark

    def by_leaf(self, more: Iterable[str] = ()) -> LeafRows | None:
        """Return an object that builds rows on access; None for a table that is not read one manifest at a time.

        Parameters
        ----------
        more
            For tables of files: additional columns, taken from the manifest entries, such as ``snapshot_id``.

        Raises
        ------
        IceexploreError
            For the same reasons as `arrow`.
        """
        made = self._definition.by_leaf
        if made is None or made.count is None or made.every:
            return None
        fields = [ENTRY_SCHEMA.field(name) for name in more]
        own = list(self.schema)
        return LeafRows(self._state, made, pa.schema([*own[:-1], *fields, *own[-1:]]))  # metrics stay the last column

    @overload
    def __call__(self, *, flat: bool = ..., spark: None = ...) -> pd.DataFrame: ...

    @overload
    def __call__(
        self,
        *,
        flat: bool = ...,
        spark: SparkSession,
        columns: Iterable[str] | None = ...,
        on_error: Literal["raise", "skip"] = ...,
    ) -> SparkFrame: ...

    def __call__(
        self,
        *,
        flat: bool = False,
        spark: Any = None,
        columns: Iterable[str] | None = None,
        on_error: Literal["raise", "skip"] = "raise",
    ) -> pd.DataFrame | SparkFrame:
        """Return the table as a pandas data frame with Arrow-backed columns; see `arrow` for ``flat`` and errors.

        Parameters
        ----------
        spark
            A Spark session: return a Spark data frame, whose manifests the workers read. See
            `iceexplore.on_spark.metadata_frame` for the supported tables and types.
        columns
            On Spark: build only these columns. Spark cannot prune columns that its workers build, so a query becomes
            many times faster if you name only the columns that it needs, above all if statistics are left out.
        on_error
            On Spark, for manifests that cannot be read: fail the query or skip their rows. Workers cannot add to
            ``t.problems``.

        Raises
        ------
        OptionError
            ``spark`` is not a session, a column does not exist, or ``columns`` is given without ``spark``.
        """
        if spark is not None:
            if self._on_spark is None:
                raise OptionError("this metadata table has no Spark support: get it from t.inspect of a Table")
            return self._on_spark(self._state, spark, self.name, flat=flat, columns=columns, on_error=on_error)
        if columns is not None:
            raise OptionError("columns= works on Spark only: give spark=, or select columns of the data frame")
        return super().__call__(flat=flat)

    def essentials(self) -> pd.DataFrame:
        """Return what people look for first, as a pandas data frame that fits a terminal or a notebook cell.

        Rows begin with a short ``name``: the last part of the file's path, with UUIDs cut to eight digits where names
        stay distinct. Codes are words, partitions are text, and columns without values are left out. This is for
        reading: code should use the whole table, whose columns do not depend on its content.

        Raises
        ------
        IceexploreError
            For the same reasons as `arrow`.
        """
        return to_frame(essentials(self.name, self.arrow(), self._state))

    def _calls(self) -> str:
        return f"{super()._calls()}, or with fewer columns .inspect.{self.name}.essentials()"


def _type_name(kind: DynamicType) -> str:
    """Return a short name for an Arrow type."""
    if pa.types.is_struct(kind):
        return "struct"
    if pa.types.is_map(kind):
        return f"map<{kind.key_type}, {kind.item_type}>"
    if pa.types.is_list(kind):
        return f"list<{_type_name(kind.value_type)}>"
    return str(kind)
