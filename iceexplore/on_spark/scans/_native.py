"""Read a group of Parquet or ORC files of one physical schema with plain Spark: columns by name, deletes applied.

The bits of deleted rows are one flat array of longs. A row finds its bit by its index in the file, which Spark's reader
provides as a column of the read schema (``_metadata.row_index`` is slower), plus the offset of the file's bits, a
partition value. ``benchmarks/results/scan.md`` compares the alternatives for deletes and their costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.expressions import ALWAYS
from iceexplore.formats import format_named
from iceexplore.graph import TableState
from iceexplore.metadata import NestedField, StructType
from iceexplore.on_spark.environment._info import SessionInfo
from iceexplore.on_spark.scans._equality_deletes import EqualityScan
from iceexplore.on_spark.scans._groups import PLACED, Group, ScanParts
from iceexplore.on_spark.scans._literals import condition_column
from iceexplore.on_spark.scans._lookups import (
    FILE_COLUMN,
    Lookups,
    few_listings,
    hadoop_path,
    link_options,
    read_options,
)
from iceexplore.on_spark.scans._position_deletes import kept_by_place
from iceexplore.on_spark.scans._projection import absent
from iceexplore.on_spark.transport._columns import SparkColumns, spark_type
from iceexplore.planning import partition_columns
from iceexplore.reading import (
    DELETED,
    FILE,
    LAST_UPDATED,
    PARTITION,
    POS,
    ROW_ID,
    SPEC_ID,
    Output,
    TaskReader,
    arrow_field,
    with_ancestors,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["ROW_INDEX", "group_rows"]

#: Spark's internal name (``FileFormat.ROW_INDEX_TEMPORARY_COLUMN_NAME``, since 3.4).
ROW_INDEX = "_tmp_metadata_row_index"
_BEGIN = "_iceexplore_begin"
_SET = "_iceexplore_set"


def group_rows(
    session: SparkSession,
    info: SessionInfo,
    state: TableState,
    reader: TaskReader,
    parts: ScanParts,
    group: Group,
    outputs: Sequence[Output],
) -> DataFrame:
    """Return the rows of a group with deletes and the filter applied, and the selected columns."""
    return _GroupScan(session, info, state, reader, parts, group).rows(outputs)


class _GroupScan:
    def __init__(
        self,
        session: SparkSession,
        info: SessionInfo,
        state: TableState,
        reader: TaskReader,
        parts: ScanParts,
        group: Group,
    ) -> None:
        self.session = session
        self.info = info
        self.state = state
        self.reader = reader
        self.parts = parts
        self.group = group
        self.files = reader.tasks.files.take(pa.array(group.rows, pa.int64()))
        self.lookups = Lookups(session, info)
        self.numbers: dict[str, list[int | None]] = {}
        self.looks_up = False

    def rows(self, outputs: Sequence[Output]) -> DataFrame:
        """Return the rows of the group."""
        from pyspark.sql import functions as f
        from pyspark.sql import types as t

        group, entries = self.group, self.files.entries
        ids = {x.field_id for x in self.parts.fields}
        needs_index = bool(group.words) or bool(ids & PLACED)
        if group.words:
            sizes = [len(group.words[row]) for row in group.rows]
            self.numbers[_BEGIN] = [0, *np.cumsum(sizes).tolist()[:-1]]
        masks = self._masks()
        columns = {x.field_id: self._column(x, entries) for x in self.parts.fields}
        kept = None
        if group.words:
            flat = np.concatenate([group.words[row] for row in group.rows])
            words = self.lookups.array(pa.array(flat), t.LongType())
            kept = kept_by_place(words, self._number(_BEGIN), f.col(ROW_INDEX))
        frame = self.lookups.join(self._read(needs_index))
        if kept is not None:
            frame = frame.filter(kept)
        shown = [column.alias(_name(number)) for number, column in columns.items()]
        if masks is not None and any(len(set(m)) > 1 for m in masks.values()):
            shown.append(self._number(_SET).alias(_SET))
        frame = frame.select(*shown)
        tasks = self.reader.tasks
        asked = tasks.residuals[0] if tasks.residuals else ALWAYS
        whole = pc.all(tasks.whole.take(pa.array(group.rows, pa.int64()))).as_py()
        if asked != ALWAYS and not whole:
            frame = frame.filter(condition_column(asked, self._by_id, self.info.version))
        if masks is not None:
            deletes = EqualityScan(
                self.session, self.info, self.reader, self.parts.paths, masks, f.col(_SET), self._by_path
            )
            frame = deletes.without(frame)
        return frame.select(*[self._by_path(o.path).alias(o.name) for o in outputs])

    # Reading ----------------------------------------------------------------------------------------------------------

    def _read(self, needs_index: bool) -> DataFrame:
        from pyspark.sql import types as t

        locations = build.to_pylist(self.files.entries["location"])
        reals = [self.state.storage.resolve(x) for x in locations]
        fields = [p.read for p in self.group.columns.values() if p is not None and p.read is not None]
        if needs_index:
            fields.append(t.StructField(ROW_INDEX, t.LongType(), True))
        varied = [name for name, values in self.numbers.items() if len(set(values)) > 1]
        if not varied and not (self.looks_up and len(reals) > 1):
            options = {"recursiveFileLookup": "true"}
            paths = [hadoop_path(self.session, real) for real in reals]
        else:
            folders = [f"{FILE_COLUMN}={i}" for i in range(len(reals))] if self.looks_up else [""] * len(reals)
            for name in varied:
                shown = ["__HIVE_DEFAULT_PARTITION__" if v is None else str(v) for v in self.numbers[name]]
                folders = [f"{a}/{name}={b}".lstrip("/") for a, b in zip(folders, shown, strict=True)]
            if self.looks_up:
                fields.append(t.StructField(FILE_COLUMN, t.IntegerType(), True))
            fields += [t.StructField(name, t.LongType(), True) for name in varied]
            options, paths = link_options(self.session, self.info, reals, folders)
        options |= read_options(reals)
        known = format_named(self.group.format)
        assert known is not None  # only formats that plain Spark reads are grouped
        reader = self.session.read.schema(t.StructType(fields)).options(**options)
        with few_listings(self.session, self.info, reals):
            frame: DataFrame = reader.format(known.spark_source).load(paths)
        return frame

    def _number(self, name: str) -> Column:
        """Return a Column with a number per file."""
        from pyspark.sql import functions as f

        values = self.numbers[name]
        return f.col(name) if len(set(values)) > 1 else f.lit(values[0]).cast("bigint")

    def _value(self, values: AnyArray, output: Output) -> Column:
        """Return a Column with one value per file, of any type, looked up in an array."""
        from pyspark.sql import functions as f

        columns = SparkColumns([output], self.info.version)
        shown = columns.of(pa.table([values], schema=pa.schema([arrow_field(output.field)]))).column(0)
        array = self.lookups.array(shown.combine_chunks(), columns.schema.fields[0].dataType)
        self.looks_up = True
        return f.get(array, f.col(FILE_COLUMN) if len(values) > 1 else f.lit(0))

    # Columns ----------------------------------------------------------------------------------------------------------

    def _column(self, field: NestedField, entries: pa.Table) -> Column:
        from pyspark.sql import functions as f

        number = field.field_id
        if number == POS.field_id:
            return f.col(ROW_INDEX)
        if number == DELETED.field_id:
            return f.lit(False)
        if number == SPEC_ID.field_id:
            self.numbers["_iceexplore_spec"] = entries["partition_spec_id"].to_pylist()
            return self._number("_iceexplore_spec").cast("int")
        if number == FILE.field_id:
            return self._value(entries["location"].combine_chunks(), Output(FILE.name, (FILE,)))
        if number == PARTITION.field_id:
            if isinstance(field.type, StructType) and not field.type.fields:
                return f.lit(None).cast(spark_type(field.type, self.info.version))
            return self._value(self._tuples(field), Output(PARTITION.name, (field,)))
        if number in (ROW_ID.field_id, LAST_UPDATED.field_id):
            return self._lineage(number, entries)
        projection = self.group.columns[number]
        if projection is not None and projection.read is not None:
            return projection.make(f.col(_quoted(projection.read.name)))
        given = self._identity(field)
        plain = absent(field, self.info.version)
        if given is None:
            return plain
        values, gives = given
        value = self._value(values, Output("x", (field,)))
        if all(gives):
            return value
        if field.initial_default is None:
            return f.coalesce(value, plain)
        # A null in the tuple is the column's value; the default applies to files whose spec lacks the column.
        name = f"_iceexplore_gives_{field.field_id}"
        self.numbers[name] = [int(g) for g in gives]
        return f.when(self._number(name) == 1, value).otherwise(plain)

    def _lineage(self, number: int, entries: pa.Table) -> Column:
        """Return a lineage column: null without a first row id, else stored or inherited (spec, "Row Lineage")."""
        from pyspark.sql import functions as f

        self.numbers["_iceexplore_first"] = entries["first_row_id"].to_pylist()
        first = self._number("_iceexplore_first")
        if number == ROW_ID.field_id:
            inherited = first + f.col(ROW_INDEX)
        else:
            self.numbers["_iceexplore_sequence"] = entries["sequence_number"].to_pylist()
            inherited = self._number("_iceexplore_sequence")
        stored = self.group.columns.get(number)
        if stored is not None and stored.read is not None:
            inherited = f.coalesce(stored.make(f.col(_quoted(stored.read.name))), inherited)
        return f.when(first.isNotNull(), inherited)

    def _identity(self, field: NestedField) -> tuple[AnyArray, list[bool]] | None:
        """Return a column's values from identity partition fields, and which files have one; None if none has."""
        values: list[Any] = [None] * len(self.files)
        held = self.files.partition
        kind = arrow_field(field).type
        specs = self.files.entries["partition_spec_id"].to_pylist()
        found = False
        for number in set(specs):
            spec = self.state.metadata.spec(number) if number is not None else None
            for column in partition_columns(self.state.metadata, spec) if spec is not None else ():
                source = column.source
                if not column.transform.is_identity or source is None or source.field_id != field.field_id:
                    continue
                at = -1 if held is None else held.type.get_field_index(column.key)
                if held is None or at < 0:
                    continue
                found = True
                for i in range(len(values)):
                    if specs[i] == number and (values[i] is None or not values[i].is_valid):
                        values[i] = pc.struct_field(held, [at])[i]
        if not found:
            return None
        stored = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
        cast = [None if v is None or not v.is_valid else v.cast(stored).as_py() for v in values]
        array = pa.array(cast, stored)
        gives = [v is not None for v in values]
        if isinstance(kind, pa.BaseExtensionType):
            array = pa.ExtensionArray.from_storage(kind, array)
        return array, gives

    def _tuples(self, field: NestedField) -> AnyArray:
        """Return the ``_partition`` value of each file."""
        assert isinstance(field.type, StructType)
        target = arrow_field(field).type
        held = self.files.partition
        children = []
        for i, child in enumerate(field.type.fields):
            to = target.field(i).type
            at = -1 if held is None else held.type.get_field_index(str(child.field_id))
            if held is None or at < 0:
                children.append(build.nulls(len(self.files), to))
            else:
                children.append(pc.struct_field(held, [at]).cast(to))
        if not children:
            return build.nulls(len(self.files), target)
        return pa.StructArray.from_arrays(children, fields=list(target))

    def _by_path(self, path: Sequence[NestedField]) -> Column:
        from pyspark.sql import functions as f

        column = f.col(_name(path[0].field_id))
        for inner in path[1:]:
            column = column.getField(inner.name)
        return column

    def _by_id(self, number: int) -> Column:
        path = with_ancestors(self.parts.fields, number)
        assert path is not None
        return self._by_path(path)

    # Deletes ----------------------------------------------------------------------------------------------------------

    def _masks(self) -> dict[int, list[int]] | None:
        """Return, for each equality delete, which sets of deletes contain it (0 or 1 per set); None without deletes.

        Files with the same deletes share a set, and each file has the number of its set. The bits of a key show in
        which sets it deletes rows.
        """
        if not self.group.equality:
            return None
        sets: dict[tuple[int, ...], int] = {}
        own: list[int | None] = []
        for row in self.group.rows:
            own.append(sets.setdefault(self.reader.equality.numbers(row), len(sets)))
        self.numbers[_SET] = own
        deletes = {n for s in sets for n in s}
        return {n: [int(n in s) for s in sets] for n in deletes}


def _name(number: int) -> str:
    return f"c{number}"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
