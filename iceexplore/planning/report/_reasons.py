"""Summarize why a plan skips manifests and files: one row per reason, with the number of items."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.planning.evaluators._explain import reasons_of_files
from iceexplore.planning.model._groups import counted
from iceexplore.planning.report._skipped import skipped_manifests
from iceexplore.planning.scan._files import leaves_of, parts_of, pruned_of

if TYPE_CHECKING:
    from iceexplore.planning.scan._result import PlannedScan

__all__ = ["REASONS_SCHEMA", "skip_reasons"]

REASONS_SCHEMA = build.schema(
    [
        ("kind", pa.string()), ("term", pa.string()), ("by", pa.string()), ("items", pa.int64()),
        ("files", pa.int64()), ("bytes", pa.int64()),
    ]
)  # fmt: skip


def skip_reasons(plan: PlannedScan) -> Generator[str, None, pa.Table]:
    """Count the items that a plan skips, by kind, deciding term and kind of evidence; yield the progress as text.

    The reasons that skip most files come first. ``kind``, ``term`` and ``by`` have the values of `skipped_table`, but
    no texts about single files are made, so a million files take only a second or two. ``files`` is null for manifests
    whose root does not count files, and 0 for row groups; ``bytes`` is null for all manifests.
    """
    found: dict[tuple[str, str | None, str | None], list[int | None]] = {}

    def add(key: tuple[str, str | None, str | None], items: int, files: int | None, size: int | None) -> None:
        held = found.setdefault(key, [0, 0, 0])
        for i, value in enumerate((items, files, size)):
            before = held[i]
            held[i] = None if before is None or value is None else before + value

    ids = plan.filter.stats_ids
    for index, scan in enumerate(plan.roots):
        if len(scan.pruned):
            for row in build.to_pylist(skipped_manifests(plan, scan).select(["term", "by", "files"])):
                add(("manifest", row["term"], row["by"]), 1, row["files"], None)
        counts = {leaf.root_row: leaf for leaf in plan.leaves if leaf.scan == index}
        rows = [row for row, leaf in counts.items() if row is not None and leaf.kept_files < leaf.files]
        done = 0
        for leaf in leaves_of(plan.state, scan, parts_of(ids), rows, ids):
            done += leaf.root_row is not None  # a V4 root, too, is a leaf here if it lists files
            if counts[leaf.root_row].kept_files == counts[leaf.root_row].files:
                continue
            batch, pruned = pruned_of(plan.state, scan, leaf, plan.filter)
            picked = batch.take(pruned)
            sizes = counted(picked, "file_size_in_bytes")
            codes, reasons = reasons_of_files(plan.filter, picked, plan.state.metadata)
            for number, (term, by) in enumerate(reasons):
                mine = codes == number
                count = int(mine.sum())
                if count:
                    add(("data file", term, by), count, count, int(sizes[mine].sum()))
            if rows:
                yield f"Counting reasons: {done:,} of {len(rows):,} manifests"
    if plan.row_groups is not None:
        gone = plan.row_groups.filter(pc.invert(pc.fill_null(plan.row_groups["may"], True)))
        for row in build.to_pylist(gone.select(["term", "by", "bytes"])):
            add(("row group", row["term"], row["by"]), 1, 0, row["bytes"])
    records: list[dict[str, Any]] = [
        {"kind": kind, "term": term, "by": by, "items": items, "files": files, "bytes": size}
        for (kind, term, by), (items, files, size) in found.items()
    ]
    records.sort(key=lambda r: -(r["files"] or r["items"]))
    return pa.Table.from_pylist(records, schema=REASONS_SCHEMA)
