"""Python 3.11 in Spark's workers: a zip on the path is read again when it has changed, not before each task."""

from __future__ import annotations

import os
import sys
import zipimport
from typing import Any

__all__ = ["in_worker", "read_zips_once"]


def in_worker() -> bool:
    """Whether this process is a worker of Spark's: nobody's notebook."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return getattr(spec, "name", "") in ("pyspark.daemon", "pyspark.worker")


def read_zips_once(cls: Any = zipimport.zipimporter) -> None:
    """Let importers of zips that did not change keep what they know when caches are invalidated.

    PySpark's worker invalidates them before each task, and has a dozen importers of zips: PySpark itself, one for each
    of its packages, Spark's core, and what ``--packages`` brought, of which Iceberg's runtime has 26,000 names. Up to
    Python 3.11 each of them reads all names anew, in Python: a quarter to half a second of each task
    (``benchmarks/results/scan.md``). From 3.12 on nothing is read before something is looked for (CPython's gh-103200).
    """
    plain = cls.invalidate_caches
    known: dict[str, tuple[tuple[int, int], dict[str, Any]]] = {}

    def invalidate_caches(self: Any) -> None:
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
