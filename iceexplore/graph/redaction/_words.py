"""Words that the formats define and that reveal nothing about a table: kept where all other text may be redacted.

Sources: the Iceberg spec, its configuration page for properties, and Java's ``SnapshotSummary`` for summaries.
"""

from __future__ import annotations

import re

from iceexplore.formats import FILE_FORMATS

__all__ = [
    "COLUMN_PROPERTIES",
    "COUNTS",
    "HEADER_NUMBERS",
    "LOCATION_PROPERTIES",
    "PROPERTIES",
    "SUMMARY_WORDS",
    "TYPE",
    "UUID",
    "WHOLE",
    "WORDS",
    "is_setting",
]

WHOLE = re.compile(r"-?\d{1,25}", re.A)
UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
TYPE = re.compile(
    r"boolean|int|long|float|double|date|time|timestamp|timestamptz|timestamp_ns|timestamptz_ns|string|uuid|binary"
    r"|variant|unknown|geometry|geography|fixed\[\s*\d{1,9}\s*\]|decimal\(\s*\d{1,3}\s*,\s*-?\d{1,3}\s*\)"
    r"|(?:geometry|geography)\((?:OGC:CRS84|(?:EPSG|srid):\d{1,6})(?:,\s*(?:spherical|vincenty|thomas|andoyer|karney))?\)"
)

WORDS = frozenset(
    [
        "struct",
        "list",
        "map",
        "asc",
        "desc",
        "nulls-first",
        "nulls-last",
        "branch",
        "tag",
        "append",
        "replace",
        "overwrite",
        "delete",
        "data",
        "deletes",
        "root",
        "deletion-vector-v1",
        "apache-datasketches-theta-v1",
        "position",
        "equality",
        "reference",
        "literal",
        "apply",
        "identity",
        "null",
        "lz4",
        "zstd",
        *(word for f in FILE_FORMATS for word in (f.name, f.name.upper())),
        "metadata",
        "METADATA",
    ]
)

#: Integer entries of a snapshot's summary.
COUNTS = frozenset(
    f"{what}-{of}"
    for what in ("added", "deleted", "removed", "total", "replaced", "kept", "created", "changed")
    for of in [
        "data-files",
        "delete-files",
        "records",
        "files-size",
        "position-deletes",
        "equality-deletes",
        "position-delete-files",
        "equality-delete-files",
        "eq-delete-files",
        "pos-delete-files",
        "dvs",
        "manifests-count",
        "files",
        "manifests",
    ]
) | frozenset(
    [
        "deleted-duplicate-files",
        "changed-partition-count",
        "manifests-created",
        "manifests-kept",
        "manifests-replaced",
        "entries-processed",
        "added-rows",
        "source-snapshot-id",
        "published-wap-id",
        "replace-partitions",
        "flink.max-committed-checkpoint-id",
        "flink.operator-id",
    ]
)

#: Other summary entries, each with a pattern for the values that are kept.
SUMMARY_WORDS = {
    "operation": re.compile("append|replace|overwrite|delete"),
    "partition-summaries-included": re.compile("true|false"),
    "replace-partitions": re.compile("true|false"),
    "engine-name": re.compile(
        "spark|flink|trino|presto|hive|impala|dremio|snowflake|duckdb|daft|polars|pyiceberg|iceexplore|iceberg|athena|"
        "starrocks|doris|clickhouse|databricks|kafka-connect|delta",
        re.I,
    ),
    "engine-version": re.compile(r"\d{1,4}(?:\.\d{1,4}){0,3}(?:-SNAPSHOT)?", re.A),
    "iceberg-version": re.compile(
        r"(?:Apache Iceberg )?(?:unspecified|\d{1,4}(?:\.\d{1,4}){0,3}(?:-SNAPSHOT)?)(?: \(commit [0-9a-f]{40}\))?",
        re.A,
    ),
    "spark.app.id": re.compile(r"local-\d{10,14}|application_\d{10,14}_\d{1,9}|app-\d{14}-\d{1,9}", re.A),
    "created-by": re.compile(r"Iceberg|iceexplore(?: \d{1,4}(?:\.\d{1,4}){0,3})?", re.A),
    "trino_version": re.compile(r"\d{1,4}", re.A),
}

#: Numeric entries of a manifest's key-value metadata.
HEADER_NUMBERS = frozenset(
    [
        "partition-spec-id",
        "schema-id",
        "format-version",
        "snapshot-id",
        "parent-snapshot-id",
        "sequence-number",
        "first-row-id",
    ]
)

LOCATION_PROPERTIES = frozenset(
    ["write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path", "location"]
)

#: Prefixes of properties that apply to one column; the column's name follows the prefix.
COLUMN_PROPERTIES = (
    "write.metadata.metrics.column.",
    "write.parquet.bloom-filter-enabled.column.",
    "write.parquet.bloom-filter-fpp.column.",
    "write.parquet.bloom-filter-ndv.column.",
    "write.parquet.stats-enabled.column.",
)

#: Properties of Iceberg's configuration page whose values are numbers, switches or one of a few words.
PROPERTIES = frozenset(
    [
        "format-version",
        "read.split.target-size",
        "read.split.metadata-target-size",
        "read.split.planning-lookback",
        "read.split.open-file-cost",
        "read.parquet.vectorization.enabled",
        "read.parquet.vectorization.batch-size",
        "read.orc.vectorization.enabled",
        "read.orc.vectorization.batch-size",
        "read.data-planning-mode",
        "read.delete-planning-mode",
        "write.format.default",
        "write.delete.format.default",
        "write.parquet.row-group-size-bytes",
        "write.parquet.page-size-bytes",
        "write.parquet.page-row-limit",
        "write.parquet.dict-size-bytes",
        "write.parquet.compression-codec",
        "write.parquet.compression-level",
        "write.parquet.page-version",
        "write.parquet.bloom-filter-max-bytes",
        "write.parquet.row-group-check-min-record-count",
        "write.parquet.row-group-check-max-record-count",
        "write.parquet.shred-variants",
        "write.avro.compression-codec",
        "write.avro.compression-level",
        "write.orc.stripe-size-bytes",
        "write.orc.block-size-bytes",
        "write.orc.compression-codec",
        "write.orc.compression-strategy",
        "write.orc.bloom.filter.fpp",
        "write.delete.parquet.compression-codec",
        "write.delete.parquet.compression-level",
        "write.delete.parquet.row-group-size-bytes",
        "write.delete.avro.compression-codec",
        "write.delete.orc.compression-codec",
        "write.metadata.compression-codec",
        "write.metadata.metrics.max-inferred-column-defaults",
        "write.metadata.metrics.default",
        "write.target-file-size-bytes",
        "write.delete.target-file-size-bytes",
        "write.distribution-mode",
        "write.delete.distribution-mode",
        "write.update.distribution-mode",
        "write.merge.distribution-mode",
        "write.wap.enabled",
        "write.summary.partition-limit",
        "write.metadata.delete-after-commit.enabled",
        "write.metadata.previous-versions-max",
        "write.spark.fanout.enabled",
        "write.spark.accept-any-schema",
        "write.object-storage.enabled",
        "write.object-storage.partitioned-paths",
        "write.delete.mode",
        "write.delete.isolation-level",
        "write.update.mode",
        "write.update.isolation-level",
        "write.merge.mode",
        "write.merge.isolation-level",
        "write.delete.granularity",
        "write.upsert.enabled",
        "write.manifest.compression-codec",
        "commit.retry.num-retries",
        "commit.retry.min-wait-ms",
        "commit.retry.max-wait-ms",
        "commit.retry.total-timeout-ms",
        "commit.status-check.num-retries",
        "commit.status-check.min-wait-ms",
        "commit.status-check.max-wait-ms",
        "commit.status-check.total-timeout-ms",
        "commit.manifest.target-size-bytes",
        "commit.manifest.min-count-to-merge",
        "commit.manifest-merge.enabled",
        "history.expire.max-snapshot-age-ms",
        "history.expire.min-snapshots-to-keep",
        "history.expire.max-ref-age-ms",
        "compatibility.snapshot-id-inheritance.enabled",
        "gc.enabled",
        "engine.hive.enabled",
        "ndv",
        "cardinality",
        "created-by",
        "snapshot-id",
    ]
)
_SETTING = re.compile(
    r"-?\d{1,20}(?:\.\d{1,10})?|true|false|none|null|hash|range|parquet|avro|orc|puffin|uncompressed|snappy|gzip|zstd"
    r"|lz4|brotli|zlib|lzo|deflate|speed|compression|full|counts|truncate\(\d{1,9}\)|copy-on-write|merge-on-read"
    r"|serializable|snapshot|auto|local|distributed|partition|file|v1|v2",
    re.I | re.A,
)


def is_setting(value: str) -> bool:
    """Return whether the value of a known property is a number, a switch or a known word."""
    return _SETTING.fullmatch(value) is not None
