"""Spark: sessions, scans, distributed metadata, verification, changelogs, and data files written by its workers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from iceexplore.on_spark._zips import in_worker, read_zips_once

if TYPE_CHECKING:
    from iceexplore.on_spark._changelog import changelog
    from iceexplore.on_spark._compact import compact_files
    from iceexplore.on_spark._findings import FINDING_SCHEMA
    from iceexplore.on_spark._merge_source import merge_source
    from iceexplore.on_spark._metadata import metadata_frame
    from iceexplore.on_spark._register import register
    from iceexplore.on_spark._rows_changed import changed_rows, kept_rows, lineage_columns
    from iceexplore.on_spark._rows_found import find_positions, only_rows
    from iceexplore.on_spark._scan import scan
    from iceexplore.on_spark._session import spark
    from iceexplore.on_spark._session_info import SessionInfo
    from iceexplore.on_spark._shipped import ShippedState, check_reach, ship, taken
    from iceexplore.on_spark._types import SparkColumns, spark_type
    from iceexplore.on_spark._verify import verify, verify_here
    from iceexplore.on_spark._write import write_files

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
    "verify_here",
    "write_files",
]

if sys.version_info < (3, 12) and in_worker():
    read_zips_once()

# A worker that reads a scan's files imports a module of this package, and should not pay for the writer's and the
# verifier's, which stand on everything: that would double what a new worker takes until it reads.
_LAZY = {
    "FINDING_SCHEMA": "_findings",
    "SessionInfo": "_session_info",
    "ShippedState": "_shipped",
    "SparkColumns": "_types",
    "changed_rows": "_rows_changed",
    "changelog": "_changelog",
    "check_reach": "_shipped",
    "compact_files": "_compact",
    "find_positions": "_rows_found",
    "kept_rows": "_rows_changed",
    "lineage_columns": "_rows_changed",
    "merge_source": "_merge_source",
    "metadata_frame": "_metadata",
    "only_rows": "_rows_found",
    "register": "_register",
    "scan": "_scan",
    "ship": "_shipped",
    "spark": "_session",
    "spark_type": "_types",
    "taken": "_shipped",
    "verify": "_verify",
    "verify_here": "_verify",
    "write_files": "_write",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
