"""Faster imports in Spark's workers on Python 3.11: re-read a zip on the path only when it has changed."""

from __future__ import annotations

import os
import sys
import zipimport
from typing import Any

__all__ = ["in_worker", "read_zips_once"]


def in_worker() -> bool:
    """Return whether this process is a Spark worker, not a user's process."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return getattr(spec, "name", "") in ("pyspark.daemon", "pyspark.worker")


def read_zips_once(cls: Any = zipimport.zipimporter) -> None:  # noqa: ANN401  a method is replaced
    """Let the importers of unchanged zips keep their directory when import caches are invalidated.

    PySpark's worker invalidates import caches before each task and has a dozen zip importers: PySpark itself, one for
    each of its packages, Spark's core, and the jars of ``--packages``, of which Iceberg's runtime has 26,000 names. Up
    to Python 3.11 each importer re-reads all names, in Python, which takes a quarter to half a second of each task
    (``benchmarks/results/scan.md``). From 3.12 on, names are read only when something is looked up (CPython gh-103200).
    """
    plain = cls.invalidate_caches
    known: dict[str, tuple[tuple[int, int], dict[str, Any]]] = {}

    def invalidate_caches(self: Any) -> None:  # noqa: ANN401  uses a private attribute
        try:
            found = os.stat(self.archive)
        except OSError:
            known.pop(self.archive, None)
            plain(self)
            return
        version = found.st_mtime_ns, found.st_size
        seen, files = known.get(self.archive, (None, {}))
        if seen == version:
            self._files = files
        else:
            plain(self)
            known[self.archive] = version, self._files

    cls.invalidate_caches = invalidate_caches
