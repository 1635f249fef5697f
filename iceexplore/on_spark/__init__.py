"""Spark: sessions, and scans, metadata tables, verification, changelogs and writes that its workers carry out."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from iceexplore.on_spark.environment._worker_imports import in_worker, read_zips_once

if TYPE_CHECKING:
    from iceexplore.on_spark._changelog import changelog
    from iceexplore.on_spark._metadata_tables import metadata_frame
    from iceexplore.on_spark._session import spark
    from iceexplore.on_spark._verify import verify
    from iceexplore.on_spark.data_source._register import register
    from iceexplore.on_spark.environment._info import SessionInfo
    from iceexplore.on_spark.scans._scan import scan
    from iceexplore.on_spark.transport._columns import SparkColumns, spark_type
    from iceexplore.on_spark.transport._state import ShippedState, check_reach, ship, taken
    from iceexplore.on_spark.write._compact import compact_files
    from iceexplore.on_spark.write._find_rows import find_positions, only_rows
    from iceexplore.on_spark.write._merge_source import merge_source
    from iceexplore.on_spark.write._rewritten_rows import changed_rows, kept_rows, lineage_columns
    from iceexplore.on_spark.write._write_files import write_files
    from iceexplore.verification import FINDING_SCHEMA

from iceexplore.errors import moved_names

__all__ = [
    "FINDING_SCHEMA",
    "SessionInfo",
    "ShippedState",
    "SparkColumns",
    "changed_rows",
    "changelog",
    "check_reach",
    "compact_files",
    "find_positions",
    "kept_rows",
    "lineage_columns",
    "merge_source",
    "metadata_frame",
    "only_rows",
    "register",
    "scan",
    "ship",
    "spark",
    "spark_type",
    "taken",
    "verify",
    "write_files",
]

if sys.version_info < (3, 12) and in_worker():
    read_zips_once()

# A worker that reads the files of a scan imports a module of this package. This must not import the writer and the
# verifier, which depend on nearly everything else, because a new worker would then take twice as long to start reading.
_LAZY = {
    "FINDING_SCHEMA": "iceexplore.verification",
    "SessionInfo": "iceexplore.on_spark.environment._info",
    "ShippedState": "iceexplore.on_spark.transport._state",
    "SparkColumns": "iceexplore.on_spark.transport._columns",
    "changed_rows": "iceexplore.on_spark.write._rewritten_rows",
    "changelog": "iceexplore.on_spark._changelog",
    "check_reach": "iceexplore.on_spark.transport._state",
    "compact_files": "iceexplore.on_spark.write._compact",
    "find_positions": "iceexplore.on_spark.write._find_rows",
    "kept_rows": "iceexplore.on_spark.write._rewritten_rows",
    "lineage_columns": "iceexplore.on_spark.write._rewritten_rows",
    "merge_source": "iceexplore.on_spark.write._merge_source",
    "metadata_frame": "iceexplore.on_spark._metadata_tables",
    "only_rows": "iceexplore.on_spark.write._find_rows",
    "register": "iceexplore.on_spark.data_source._register",
    "scan": "iceexplore.on_spark.scans._scan",
    "ship": "iceexplore.on_spark.transport._state",
    "spark": "iceexplore.on_spark._session",
    "spark_type": "iceexplore.on_spark.transport._columns",
    "taken": "iceexplore.on_spark.transport._state",
    "verify": "iceexplore.on_spark._verify",
    "write_files": "iceexplore.on_spark.write._write_files",
}

_deprecated = moved_names(
    __name__,
    {"verify_here": "iceexplore.verification:verify_local", "verify_local": "iceexplore.verification:verify_local"},
)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(_LAZY[name]), name)
    return _deprecated(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
