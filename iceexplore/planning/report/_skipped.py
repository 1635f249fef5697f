"""List the manifests, data files and row groups that a plan skips.

Each is listed with the place where planning found the metadata that excludes it: the manifest list (or the root
manifest of V4), a leaf manifest, or the footer of a data file. It is also listed with the term of the filter that
matches none of its rows, such as ``id > 9``; a manifest that is skipped because it is empty has no term.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.manifests import Manifest, whole
from iceexplore.planning.evaluators._explain import explain_files, explain_manifests
from iceexplore.planning.report._levels import pruned_counts, root_level
from iceexplore.planning.scan._files import leaves_of, parts_of, pruned_of
from iceexplore.planning.scan._manifests import RootScan

if TYPE_CHECKING:
    from iceexplore.planning.scan._result import PlannedScan

__all__ = ["SKIPPED_SCHEMA", "skipped_files", "skipped_manifests", "skipped_table"]

#: The columns that explain why a manifest, data file or row group is skipped. They are copied from the results of
#: `explain_files` and `explain_manifests`, and from ``plan.row_groups``.
_WHY = ("term", "by", "column", "lower", "upper", "null_count", "why")
SKIPPED_SCHEMA = build.schema(
    [
        ("level", pa.string()), ("kind", pa.string()), ("name", pa.string()), ("root_row", pa.int64()),
        ("ordinal", pa.int64()), ("files", pa.int64()), ("rows", pa.int64()), ("bytes", pa.int64()),
        ("term", pa.string()), ("by", pa.string()), ("column", pa.string()), ("lower", pa.string()),
        ("upper", pa.string()), ("null_count", pa.int64()), ("why", pa.string()),
    ]
)  # fmt: skip


def skipped_table(plan: PlannedScan) -> pa.Table:
    """Return a table of `SKIPPED_SCHEMA` with one row per manifest, data file and row group that the plan skips.

    An incremental plan has several roots (manifest lists or root manifests). For each root, the skipped manifests come
    first, then the skipped data files. The row groups of all files are last.

    ``root_row`` is the row of the manifest in the root; for a data file or a row group, it is that of the manifest that
    lists the file. It is null for files that a V4 root lists itself. ``ordinal`` is the position, from 0, of a data
    file among the stored rows of its manifest, or of a row group in its file; it is null for manifests.

    The first call evaluates the filter again on each manifest of which some files are skipped, because the plan keeps
    only the files that it reads. Later calls return the same table.
    """
    return plan.once("skipped", lambda: _skipped_table(plan))


def _skipped_table(plan: PlannedScan) -> pa.Table:
    found: list[pa.Table] = []
    for index, scan in enumerate(plan.roots):
        if len(scan.pruned):
            found.append(skipped_manifests(plan, scan))
        counts = {leaf.root_row: leaf for leaf in plan.leaves if leaf.scan == index}
        rows = [row for row, leaf in counts.items() if row is not None and leaf.kept_files < leaf.files]
        ids = plan.filter.stats_ids
        for leaf in leaves_of(plan.state, scan, parts_of(ids), rows, ids):
            if counts[leaf.root_row].kept_files < counts[leaf.root_row].files:
                found.append(skipped_files(plan, scan, leaf))
    if plan.row_groups is not None:
        found.append(_row_groups(plan))
    return pa.concat_tables([SKIPPED_SCHEMA.empty_table(), *found]).combine_chunks()


def skipped_manifests(plan: PlannedScan, scan: RootScan) -> pa.Table:
    """List the data manifests that the plan skips in one root, as a table of `SKIPPED_SCHEMA`.

    A root is a manifest list or V4 root manifest. The manifests are in the same order as in the root.
    """
    entries = scan.root.entries.take(build.array(scan.pruned))
    files, rows, size = zip(*pruned_counts(scan), strict=True)
    filled = scan.filled[~(scan.filled & scan.may)]
    why = explain_manifests(plan.state, scan.root, scan.pruned, plan.filter)
    columns: dict[str, Any] = {name: whole(why[name]) for name in _WHY}
    empty = pa.array(~filled)
    for name in _WHY:
        columns[name] = pc.if_else(empty, pa.scalar(None, columns[name].type), columns[name])
    columns["by"] = pc.if_else(empty, "counts", columns["by"])
    columns["why"] = pc.if_else(empty, "It has no live files.", columns["why"])
    return _table(
        len(entries), level=root_level(plan), kind="manifest", name=entries["location"], root_row=pa.array(scan.pruned),
        files=pa.array(files, pa.int64()), rows=pa.array(rows, pa.int64()), bytes=pa.array(size, pa.int64()), **columns,
    )  # fmt: skip


def skipped_files(plan: PlannedScan, scan: RootScan, leaf: Manifest) -> pa.Table:
    """List the skipped data files of one manifest, as a table of `SKIPPED_SCHEMA`.

    The files are in the same order as in the manifest.

    Parameters
    ----------
    scan
        The manifest list or V4 root manifest that lists the manifest.
    leaf
        The manifest. For files that a V4 root manifest lists itself, a `Manifest` object that contains these files.
    """
    level = root_level(plan) if leaf.root_row is None else "leaf manifest"
    batch, rows = pruned_of(plan.state, scan, leaf, plan.filter)
    why = explain_files(plan.filter, batch, plan.state.metadata, rows)
    entries = batch.entries.take(rows)
    return _table(
        len(entries), level=level, kind="data file", name=entries["location"],
        root_row=pa.scalar(leaf.root_row, pa.int64()), ordinal=entries["ordinal"], files=1,
        rows=entries["record_count"], bytes=entries["file_size_in_bytes"], **{name: why[name] for name in _WHY},
    )  # fmt: skip


def _row_groups(plan: PlannedScan) -> pa.Table:
    assert plan.row_groups is not None
    gone = plan.row_groups.filter(pc.invert(pc.fill_null(plan.row_groups["may"], True)))
    names = whole(plan.files.files.entries["location"]).take(whole(gone["file"]))
    root_row = plan.files.root_row.take(whole(gone["file"]))
    return _table(
        len(gone), level="row group", kind="row group", name=names, root_row=root_row, ordinal=gone["row_group"],
        rows=gone["rows"], bytes=gone["bytes"], **{name: gone[name] for name in _WHY},
    )  # fmt: skip


def _table(count: int, **columns: Any) -> pa.Table:
    arrays = []
    for field in SKIPPED_SCHEMA:
        value = columns.get(field.name)
        if not isinstance(value, (pa.Array, pa.ChunkedArray)):
            value = build.repeat(value if isinstance(value, pa.Scalar) else pa.scalar(value, field.type), count)
        arrays.append(value.cast(field.type) if value.type != field.type else value)
    return pa.Table.from_arrays(arrays, schema=SKIPPED_SCHEMA)
