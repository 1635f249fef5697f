"""Spark: sessions, scans, distributed metadata, verification, changelogs, and data files written by its workers."""

from __future__ import annotations

from iceexplore.on_spark._changelog import changelog
from iceexplore.on_spark._findings import FINDING_SCHEMA
from iceexplore.on_spark._metadata import metadata_frame
from iceexplore.on_spark._register import register
from iceexplore.on_spark._scan import scan
from iceexplore.on_spark._session import spark
from iceexplore.on_spark._session_info import SessionInfo
from iceexplore.on_spark._shipped import ShippedState, check_reach, ship, taken
from iceexplore.on_spark._types import SparkColumns, spark_type
from iceexplore.on_spark._verify import verify, verify_here
from iceexplore.on_spark._write import rows_here, write_files

__all__ = [
    "FINDING_SCHEMA",
    "SessionInfo",
    "ShippedState",
    "SparkColumns",
    "changelog",
    "check_reach",
    "metadata_frame",
    "register",
    "rows_here",
    "scan",
    "ship",
    "spark",
    "spark_type",
    "taken",
    "verify",
    "verify_here",
    "write_files",
]
