"""``partitions`` on Spark: rows of live files, made by workers, added up by Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceexplore.manifests import ContentType
from iceexplore.on_spark.transport._arrow_schema import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["add_up"]


def add_up(rows: DataFrame, schema: pa.Schema) -> DataFrame:
    """One row per partition that has a live file (Java: ``PartitionsTable``).

    Parameters
    ----------
    rows
        Of `iceexplore.inspect.partition_rows_schema`, with ``leaf`` and ``place``, which say in what order they are.
    schema
        Of the table ``partitions``.
    """
    from pyspark.sql import functions as f

    partitioned = "partition" in rows.columns

    def of(kind: ContentType, value: Any) -> Column:
        return f.coalesce(f.sum(f.when(f.col("content_type") == int(kind), value)), f.lit(0))

    # The newest snapshot that is known; of several entries of that time the first in the order of the manifests.
    newest = f.max(
        f.when(
            f.col("micros").isNotNull(),
            f.struct(
                "micros", (-f.col("leaf")).alias("leaf"), (-f.col("place")).alias("place"), "snapshot_id",
                f.coalesce("partition_spec_id", f.lit(0)).alias("spec_id"),
            ),
        )
    )  # fmt: skip
    by = ["width", "partition"] if partitioned else ["width"]
    records, one = f.coalesce("record_count", f.lit(0)), f.lit(1)
    made = rows.groupBy(*by).agg(
        of(ContentType.DATA, records).alias("record_count"),
        of(ContentType.DATA, one).alias("file_count"),
        of(ContentType.DATA, f.coalesce("file_size_in_bytes", f.lit(0))).alias("total_data_file_size_in_bytes"),
        of(ContentType.POSITION_DELETE, records).alias("position_delete_record_count"),
        of(ContentType.POSITION_DELETE, one).alias("position_delete_file_count"),
        of(ContentType.EQUALITY_DELETE, records).alias("equality_delete_record_count"),
        of(ContentType.EQUALITY_DELETE, one).alias("equality_delete_file_count"),
        newest.alias("newest"),
    )
    made = made.withColumn("spec_id", f.coalesce("newest.spec_id", f.lit(0)))
    made = made.withColumn("last_updated_at", f.timestamp_micros("newest.micros"))
    made = made.withColumn("last_updated_snapshot_id", f.col("newest.snapshot_id"))
    return made.select(*(f.col(field.name).cast(field.dataType) for field in spark_schema(schema)))
