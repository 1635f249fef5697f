"""Count the manifests, data files and row groups that a plan skips for each reason."""

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
    """Count the manifests, data files and row groups that a plan skips, by the reason why they are skipped.

    Unlike `skipped_table`, this does not write an explanation for each skipped file, so a million files take only a
    second or two.

    Yields
    ------
    str
        The progress, after each manifest of which some files are skipped: ``Counting skipped files by reason: 3 of
        12 manifests read``.

    Returns
    -------
    pyarrow.Table
        Of `REASONS_SCHEMA`: one row per reason. The reasons that skip most files come first. A reason is a combination
        of three columns, as in `skipped_table`:

        - ``kind``: ``manifest``, ``data file`` or ``row group``.
        - ``term``: the part of the filter that no row matches, such as ``id > 9``; null for manifests without a live
          file, empty for row groups without rows.
        - ``by``: the kind of metadata that proves it, such as ``partition`` or ``bounds``.

        The other columns are:

        - ``items``: the number of skipped manifests, data files or row groups.
        - ``files``: for data files, the same number; for manifests, the number of files in them, null if the manifest
          list or root manifest lacks it for one of them; 0 for row groups.
        - ``bytes``: the size of the data files, or the uncompressed size of the row groups; null for manifests.
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
            # Count only manifests. If `root_row` is None, `leaf` is not a manifest, but contains the data files that a
            # V4 root manifest lists itself.
            done += leaf.root_row is not None
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
                yield f"Counting skipped files by reason: {done:,} of {len(rows):,} manifests read"
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
