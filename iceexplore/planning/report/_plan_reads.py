"""What planning looked at: roots, manifests, and what else the storage served for it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from iceexplore.planning.scan._result import PlannedScan

__all__ = ["READS_SCHEMA", "reads_table"]

READS_SCHEMA = pa.schema(
    [
        ("kind", pa.string()), ("location", pa.string()), ("bytes", pa.int64()), ("ms", pa.float64()),
        ("cached", pa.bool_()),
    ]
)  # fmt: skip


def reads_table(plan: PlannedScan) -> pa.Table:
    """A row per file, of `READS_SCHEMA`. What was in the cache already took no time; ``bytes`` are those of a manifest
    as a whole, of a footer or a vector those that were read."""
    return plan.once("reads", lambda: _reads_table(plan))


def _reads_table(plan: PlannedScan) -> pa.Table:
    by_place: dict[str, list[Any]] = defaultdict(list)
    for read in plan.log:
        if not read.cached:
            by_place[read.location].append(read)
    rows: list[dict[str, Any]] = []

    def add(kind: str, location: str, length: int | None) -> None:
        found = by_place.pop(location, [])
        ms = sum(r.seconds for r in found) * 1000
        rows.append({"kind": kind, "location": location, "bytes": length, "ms": ms, "cached": not found})

    for index, scan in enumerate(plan.roots):
        add("root", scan.root.location, scan.root.length)
        for leaf in plan.leaves:
            if leaf.scan == index and leaf.root_row is not None:
                add("data manifest", leaf.location, leaf.length)
    if plan.delete_rows:
        picked = plan.roots[0].root.entries.select(["location", "file_size_in_bytes"])
        for record in picked.take(pa.array(plan.delete_rows, pa.int64())).to_pylist():
            add("delete manifest", record["location"], record["file_size_in_bytes"])
    for location, found in by_place.items():
        size, ms = sum(r.length for r in found), sum(r.seconds for r in found) * 1000
        rows.append({"kind": found[0].kind, "location": location, "bytes": size, "ms": ms, "cached": False})
    return pa.Table.from_pylist(rows, schema=READS_SCHEMA)
