"""Spark: sessions, scans, distributed metadata, verification, changelogs, and data files written by its workers."""

from __future__ import annotations

from iceexplore.on_spark._session import spark
from iceexplore.on_spark._session_info import SessionInfo
from iceexplore.on_spark._shipped import ShippedState, check_reach, ship, taken

__all__ = ["SessionInfo", "ShippedState", "check_reach", "ship", "spark", "taken"]
