"""Check files against each other: delete positions, deletes of data files that are not live, overlapping row ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceexplore.arrow import compute as pc
from iceexplore.errors import FileMissingError, IceexploreError, OutsideRootsError
from iceexplore.graph import TableState
from iceexplore.verification._findings import CHECKED_SCHEMA, FINDING_SCHEMA, Checked, Place, Role
from iceexplore.verification._row_lineage import first_of_each, judge_row_ids, taken_before

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["JUDGED_SCHEMA", "beside", "judged", "suspects"]

#: `CHECKED_SCHEMA` plus columns that are aggregated over all rows with the same key. For a data file: its row count,
#: the alphabetically first and last spelling of its location, and the numbers of its live entries and deletion vectors.
#: If the two spellings differ, the rows belong to two files, for example in two buckets, and are not judged. For a
#: range of row ids: the greatest end of the ranges that begin before it, and the file whose range ends there.
JUDGED_SCHEMA = pa.schema(
    [
        *CHECKED_SCHEMA,
        pa.field("data_rows", pa.int64()),
        pa.field("data_named", pa.string()),
        pa.field("data_named_too", pa.string()),
        pa.field("data_count", pa.int64()),
        pa.field("vector_count", pa.int64()),
        pa.field("before_end", pa.int64()),
        pa.field("before_named", pa.string()),
    ]
)


def beside(checked: pa.Table) -> pa.Table:
    """Return the rows as `JUDGED_SCHEMA`, adding the columns that depend on other rows with the same key."""
    role = checked["role"]
    data, vector = pc.equal(role, Role.DATA), pc.equal(role, Role.VECTOR)
    table = checked.append_column("data_rows", pc.if_else(data, checked["rows"], pa.scalar(None, pa.int64())))
    table = table.append_column("data_named", pc.if_else(data, checked["named"], pa.scalar(None, pa.string())))
    table = table.append_column("data_named_too", table["data_named"])
    table = table.append_column("data_count", pc.cast(data, pa.int64()))
    table = table.append_column("vector_count", pc.cast(vector, pa.int64()))
    wanted: list[Any] = [
        ("data_rows", "max"),
        ("data_named", "min"),
        ("data_named_too", "max"),
        ("data_count", "sum"),
        ("vector_count", "sum"),
    ]
    sums = table.group_by("key", use_threads=False).aggregate(wanted)
    place = pc.index_in(checked["key"], value_set=sums["key"].combine_chunks())
    columns = [sums[f"{name}_{how}"].take(place) for name, how in wanted]
    made = pa.Table.from_arrays([*checked.columns, *columns, *taken_before(checked)], names=JUDGED_SCHEMA.names)
    return made.cast(JUDGED_SCHEMA)


def suspects(checked: DataFrame) -> DataFrame:
    """Compute the rows of `JUDGED_SCHEMA` on Spark, and return only those that may become findings."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    same = Window.partitionBy("key")
    # The order and the maximum must be those of `taken_before`.
    before = same.orderBy("first_id", "named", "manifest", "entry").rowsBetween(Window.unboundedPreceding, -1)
    taken = f.max(f.when(f.col("role") == Role.IDS, f.struct("end_id", "named"))).over(before)
    data = f.col("role") == Role.DATA
    frame = checked.select(
        "*",
        f.max(f.when(data, f.col("rows"))).over(same).alias("data_rows"),
        f.min(f.when(data, f.col("named"))).over(same).alias("data_named"),
        f.max(f.when(data, f.col("named"))).over(same).alias("data_named_too"),
        f.sum(f.when(data, 1).otherwise(0)).over(same).alias("data_count"),
        f.sum(f.when(f.col("role") == Role.VECTOR, 1).otherwise(0)).over(same).alias("vector_count"),
        taken["end_id"].alias("before_end"),
        taken["named"].alias("before_named"),
    )
    claim = f.col("role").isin(Role.POSITIONS, Role.VECTOR)
    ids = f.col("role") == Role.IDS
    found = frame.where(
        (f.col("role") == Role.FINDING)
        | (
            ids
            & (f.col("first_id") < f.col("before_end"))
            & (f.col("before_named") != f.col("named"))
            & (f.col("rows") == 1)
        )
        | (data & ((f.col("data_count") > 1) | (f.col("vector_count") > 1)))
        | (
            claim
            & (
                (f.col("data_count") == 0)
                | (f.col("rows") > f.coalesce("data_rows", f.col("rows")))
                | (f.col("named") != f.col("data_named"))
            )
        )
    )
    # The selection must be that of `first_of_each`.
    pair = Window.partitionBy("role", "named", "manifest", "entry", "before_named").orderBy("first_id")
    return found.withColumn("nth", f.row_number().over(pair)).where(~ids | (f.col("nth") == 1)).drop("nth")


def judged(state: TableState, rows: pa.Table) -> pa.Table:
    """Return the findings (`FINDING_SCHEMA`) that follow from rows of `JUDGED_SCHEMA`.

    If a delete file names a data file that is not live, check whether that file exists in the storage.
    """
    plain = pc.equal(rows["role"], Role.FINDING)
    out = Checked()
    asked = rows.filter(pc.invert(plain)).to_pylist()
    for row in first_of_each([row for row in asked if row["role"] == Role.IDS]):
        judge_row_ids(_place(row), row, out)
    for row in asked:
        place = _place(row)
        if row["role"] == Role.IDS:
            continue
        if row["data_named"] != row["data_named_too"]:
            continue
        if row["role"] == Role.DATA:
            _judge_data(place, row, out)  # if a file is live twice, each of its entries is reported
        elif row["data_count"]:
            _judge_claim(place, row, out)
        else:
            _judge_dangling(state, place, row, out)
    parts = (rows.filter(plain), out.table())
    return pa.concat_tables([part.select(FINDING_SCHEMA.names) for part in parts])


def _place(row: dict[str, Any]) -> Place:
    return Place(row["location"], row["content"], row["manifest"], row["entry"], row["snapshot_id"])


def _judge_data(place: Place, row: dict[str, Any], out: Checked) -> None:
    if row["data_count"] > 1:
        text = f"The file has {row['data_count']} live entries: readers return its rows that many times."
        out.say(place, "file-twice", text, field="file_path", found=row["data_count"], expected=1)
    if row["vector_count"] > 1:
        text = f"The data file has {row['vector_count']} deletion vectors (spec: at most one per snapshot)."
        out.say(place, "dv-twice", text, field="referenced_data_file", found=row["vector_count"], expected=1)


def _judge_claim(place: Place, row: dict[str, Any], out: Checked) -> None:
    if row["data_rows"] is not None and row["rows"] > row["data_rows"]:
        last = row["rows"] - 1
        text = f"Position {last:,} of {row['named']} is deleted, but the file has only {row['data_rows']:,} rows."
        out.say(place, "delete-position", text, field="pos", found=last, expected=f"below {row['data_rows']}")
    if row["named"] != row["data_named"]:
        text = (
            "The delete spells its data file's location differently than the manifest: engines that compare "
            "locations as text do not apply it."
        )
        out.say(place, "delete-path", text, field="file_path", found=row["named"], expected=row["data_named"])


def _judge_dangling(state: TableState, place: Place, row: dict[str, Any], out: Checked) -> None:
    """Report deletes of a data file that is not live.

    Position deletes often name files that are no longer live; this is not reported while the file exists. If the file
    is missing from the storage, the delete has an outdated path, belongs to another table, or was left behind. Deletion
    vectors are always reported, because they have to be removed together with their data file.
    """
    named = row["named"]
    if row["role"] == Role.VECTOR:
        text = f"The deletion vector refers to {named}, which is not live: it was not removed with its data file."
        out.say(place, "delete-dangling", text, field="referenced_data_file", found=named)
        return
    try:
        state.storage.stat(named)
    except (FileMissingError, OutsideRootsError) as error:
        lost = "does not exist" if isinstance(error, FileMissingError) else "is neither live nor in the table's folder"
        text = (
            f"Rows of {named} are deleted, but this file {lost}: the path is outdated or belongs to another table, "
            "or the delete was left behind."
        )
        out.say(place, "delete-dangling", text, field="file_path", found=named)
    except IceexploreError as error:
        out.fail(place, error)
