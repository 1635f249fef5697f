"""Read and write manifests of all versions, in Avro and Parquet, as content entries."""

from __future__ import annotations

from iceexplore.manifests._batch import EntryBatch, concat_batches, stats_type
from iceexplore.manifests._manifest import Manifest, joined_stats
from iceexplore.manifests._manifest_dv import (
    decode_manifest_dv,
    encode_manifest_dv,
    manifest_dv_form,
    read_manifest_dv,
)
from iceexplore.manifests._reader import ManifestReader, open_manifest
from iceexplore.manifests._root_v4 import root_batch
from iceexplore.manifests.column_stats._maps import ColumnStats
from iceexplore.manifests.decode._avro import slow_work
from iceexplore.manifests.decode._role import role_of
from iceexplore.manifests.encode._aggregate import manifest_entry
from iceexplore.manifests.encode._upgrade import upgrade_entries
from iceexplore.manifests.encode._write import write_manifest, write_manifest_list
from iceexplore.manifests.model._arrow import bool_array, offsets_of, whole
from iceexplore.manifests.model._content_entry import (
    COLUMN_FILE,
    CONTENT_NAMES,
    ENTRY_SCHEMA,
    MANIFEST_STATS,
    PARTITION_SUMMARY,
    ContentType,
    Status,
    column_file_rows,
    live,
)
from iceexplore.manifests.model._field_ids import field_id
from iceexplore.manifests.model._header import ManifestHeader
from iceexplore.manifests.redaction._manifest_file import redact_manifest
from iceexplore.manifests.redaction._redactor import Redactor

__all__ = [
    "COLUMN_FILE",
    "CONTENT_NAMES",
    "ColumnStats",
    "ContentType",
    "ENTRY_SCHEMA",
    "EntryBatch",
    "MANIFEST_STATS",
    "Manifest",
    "ManifestHeader",
    "ManifestReader",
    "PARTITION_SUMMARY",
    "Redactor",
    "Status",
    "bool_array",
    "column_file_rows",
    "concat_batches",
    "decode_manifest_dv",
    "encode_manifest_dv",
    "field_id",
    "joined_stats",
    "live",
    "manifest_dv_form",
    "manifest_entry",
    "offsets_of",
    "open_manifest",
    "read_manifest_dv",
    "redact_manifest",
    "role_of",
    "root_batch",
    "slow_work",
    "stats_type",
    "upgrade_entries",
    "whole",
    "write_manifest",
    "write_manifest_list",
]
