"""What a new session is set to where its user says nothing: for one machine, with somebody else's work on it."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from pathlib import Path
from typing import Any

__all__ = ["as_text", "defaults"]

_GIB = 1 << 30
#: A heap that begins small, not with a 64th of the machine's memory, and grows where collections would take half of
#: the time, not a thirteenth, and then by a 33rd of what it may still take, not by a fifth. And old objects are looked
#: through where they fill it, not from 45 % on: each such look begins with a collection, and two at once, which large
#: arrays of Parquet's pages bring about, let G1 double the heap. A scan holds less, and no longer another amount each
#: time; nothing was slower (benchmarks/results/scan.md).
_SMALL_HEAP = (
    "-XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockExperimentalVMOptions -Xms64m -XX:GCTimeRatio=1 "
    "-XX:G1ExpandByPercentOfAvailable=3 -XX:InitiatingHeapOccupancyPercent=80 -XX:-G1UseAdaptiveIHOP"
)
#: A setting as Java reads a properties file: a name, and after a space, ``=`` or ``:`` its value.
_SETTING = re.compile(r"\s*([^\s#!=:][^\s=:]*)(?:\s*[=:]\s*|\s+|$)")


def defaults(spark_home: Path) -> dict[str, str]:
    """Settings, without those that the user's ``spark-defaults.conf`` has: what a builder is given comes before it."""
    cores = os.cpu_count() or 2
    somebody_looks = "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())
    log = Path(__file__).with_name("log4j2.properties").as_uri()
    ours = {
        "spark.master": os.environ.get("MASTER") or "local[*]",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": f"{_heap() >> 20}m",
        "spark.driver.extraJavaOptions": f"{_SMALL_HEAP} -Dlog4j2.configurationFile={log}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": as_text(somebody_looks),
        # Joins and sorts on one machine: Spark's 200 pieces are for clusters.
        "spark.sql.shuffle.partitions": str(max(4, 2 * cores)),
        "spark.sql.python.filterPushdown.enabled": "true",
    }
    said = _names_in(Path(os.environ.get("SPARK_CONF_DIR") or spark_home / "conf") / "spark-defaults.conf")
    return {name: value for name, value in ours.items() if name not in said}


def as_text(value: Any) -> str:
    """A setting's value as Spark writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _names_in(file: Path) -> set[str]:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return set()
    return {found[1] for line in lines if (found := _SETTING.match(line))}


def _heap() -> int:
    """Bytes for Java: a quarter of the memory (of the container), between 1 and 8 GiB; the Python workers need some."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        total = 8 * _GIB
    with contextlib.suppress(OSError, ValueError):
        total = min(total, int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    return max(_GIB, min(8 * _GIB, total // 4))
