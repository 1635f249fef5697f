"""Make the figure of manifests from the manifest list or root, and that of clustering from the bounds of columns."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.doctor.figures._figure import FigureBar, HealthFigure, Shown
from iceexplore.doctor.health._columns import DEPTH
from iceexplore.doctor.health._finding import first_number
from iceexplore.graph import TableState, amount, human_bytes, live_manifests
from iceexplore.manifests import ContentType, whole
from iceexplore.planning import Clustering, FileTasks
from iceexplore.render import escape

__all__ = ["clustering_figure", "manifests_figure", "sorted_by", "unread_manifests"]

_SHOWN_MANIFESTS = 12
_SHOWN_COLUMNS = 20


def manifests_figure(state: TableState, tasks: FileTasks) -> HealthFigure:
    """Return the figure of the sizes and live entries of the snapshot's manifests; the smallest manifests come first.

    Parameters
    ----------
    tasks
        The data files of a full scan. They are counted to find the number of live entries of each data manifest for
        which the manifest list or root does not state this number.
    """
    title = "Manifests"
    root = state.root()
    places = [] if root is None else live_manifests(root)
    if root is None or not places:
        verdict = "The snapshot has no manifests." if state.snapshot is not None else "There is no snapshot."
        return HealthFigure(key="manifests", title=title, verdict=verdict)
    entries = root.entries.take(build.array(places))
    sizes = np.asarray(pc.fill_null(whole(entries["file_size_in_bytes"]), 0)).astype(np.int64)
    stats = whole(entries["manifest_stats"])
    live, rows = (_sum(stats, (f"added_{what}_count", f"existing_{what}_count")) for what in ("files", "rows"))
    deletes = pc.equal(whole(entries["content_type"]), int(ContentType.DELETE_MANIFEST))
    of_root = np.asarray(tasks.root_row.drop_null()).astype(np.int64)
    counted = np.bincount(of_root, minlength=len(root))[np.array(places)].astype(np.int64)
    live = pc.coalesce(live, pc.if_else(deletes, pa.scalar(None, pa.int64()), pa.array(counted)))
    table = build.table(
        {
            "manifest_path": whole(entries["location"]),
            "content": pc.if_else(deletes, "deletes", "data"),
            "bytes": sizes,
            "entries": live,
            "rows": rows,
            "deleted_entries": pc.struct_field(stats, "deleted_files_count"),
            "root_row": np.array(places, np.int64),
        }
    )
    faults = _faults(state)
    properties = dict(state.metadata.properties)
    target = int(first_number(properties, "commit.manifest.target-size-bytes", 8 << 20).value)
    least = int(first_number(properties, "commit.manifest.min-count-to-merge", 100).value)
    small = int((sizes < target // 2).sum())
    order = np.argsort(sizes, kind="stable")
    bars = tuple(
        FigureBar(
            str(one["manifest_path"] or "").rpartition("/")[2] or "no location",
            (
                (float(one["bytes"]), human_bytes(one["bytes"])),
                None if one["entries"] is None else (float(max(0, one["entries"])), f"{one['entries']:,}"),
            ),
            note="cannot be read" if one["manifest_path"] in faults else str(one["content"]),
            show=Shown("manifests", of=one["root_row"]),
        )
        for one in build.to_pylist(table.take(build.array(order[:_SHOWN_MANIFESTS])))
    )
    notes = []
    if len(places) > len(bars):
        notes.append(f"Only the {len(bars)} smallest manifests are drawn.")
    if unread := unread_manifests(state):
        notes.append(unread)
    half = human_bytes(target // 2)
    of = f"half of the target of {human_bytes(target)}"
    if small:
        verdict = (
            f"{small:,} of {amount(len(places), 'manifest')} {'is' if small == 1 else 'are'} smaller than {half}, "
            f"{of}; commits merge manifests once there are {least:,}."
        )
    else:
        verdict = f"None of {amount(len(places), 'manifest')} is smaller than {half}, {of}."
    return HealthFigure(
        key="manifests",
        title=title,
        verdict=verdict,
        attention=small >= least,
        columns=("bytes", "live entries"),
        bars=bars,
        rows=table.take(build.array(order)),
        show=Shown("manifests", (("length", "<", str(target // 2)),)) if small else None,
        notes=tuple(notes),
    )


def _faults(state: TableState) -> set[str]:
    """Return the locations of files in which reading has found errors, such as missing or damaged manifests."""
    return {p.where.partition("#")[0] for p in state.problems.met() if p.severity == "error"}


def unread_manifests(state: TableState) -> str:
    """Return how many of the snapshot's manifests cannot be read in full, as a sentence; empty for none."""
    root = state.root()
    faults = _faults(state)
    if root is None or not faults:
        return ""
    if root.location in faults:
        return f"{'The root' if state.metadata.may_have_root_manifests else 'The manifest list'} cannot be read."
    lost = len(faults.intersection(build.to_pylist(root.entries["location"].take(live_manifests(root)))))
    return f"{amount(lost, 'manifest')} cannot be read." if lost else ""


def _sum(stats: AnyArray, names: Iterable[str]) -> AnyArray:
    """Return, for each manifest, the sum of two of its counts; null where one of the two is unknown.

    Parameters
    ----------
    stats
        The counts of each manifest that the manifest list or root states: the column ``manifest_stats``.
    names
        The names of the two counts.
    """
    first, second = (pc.struct_field(stats, name) for name in names)
    return pc.add(first, second)


def sorted_by(state: TableState) -> list[str]:
    """Return the names of the columns by which the table's sort order sorts, the first sort field first."""
    metadata = state.metadata
    order = next((o for o in metadata.sort_orders if o.order_id == metadata.default_sort_order_id), None)
    names = {f.field_id: name for name, f in state.schema.walk()}
    sources = (i for f in (() if order is None else order.fields) for i in f.source_ids)
    return [names[i] for i in sources if i in names]


def clustering_figure(state: TableState, found: Clustering) -> HealthFigure:
    """Return the figure of clustering: how many data files may contain the same value of a column.

    The figure has a row per column, with the average and the maximum number of files. A note marks columns of the
    table's sort order, for example "no. 1 of the sort order".

    Parameters
    ----------
    found
        The measured clustering of the columns.
    """
    title, notes = "Clustering", found.notes
    if not found.files:
        return HealthFigure(key="clustering", title=title, verdict="There are no data files.")
    if not len(found.columns):
        verdict = "No column has bounds in the metadata: how values are spread over files is unknown."
        return HealthFigure(key="clustering", title=title, verdict=verdict, notes=notes)
    order = sorted_by(state)
    table = build.to_pylist(found.columns)
    parted = found.columns["partition_average_depth"].null_count < len(table)
    bars = tuple(
        FigureBar(
            row["column"],
            (
                (row["average_depth"], f"{row['average_depth']:,.1f}"),
                *(((row["partition_average_depth"], f"{row['partition_average_depth']:,.1f}"),) if parted else ()),
                (float(row["max_depth"]), f"{row['max_depth']:,}"),
            ),
            note=f"no. {order.index(row['column']) + 1} of the sort order" if row["column"] in order else "",
            show=Shown("ranges", of=row["column"]),
        )
        for row in table[:_SHOWN_COLUMNS]
    )
    first = next((row for name in order for row in table if row["column"] == name), None)
    named = first or min(table, key=lambda row: row["average_depth"])
    depth = named["partition_average_depth"] if parted else named["average_depth"]
    shown = escape.shorten(named["column"], 100)
    files = f"{named['average_depth']:,.1f} of {amount(named['files'], 'file')}"
    inner = f", {depth:,.1f} within its partition" if parted else ""
    if first is not None:
        verdict = f"The table is sorted by {shown}: a value of this column lies in {files} on average{inner}."
    else:
        why = "No column of the sort order was measured" if order else "The table has no sort order"
        verdict = (
            f"{why}; the column with the least overlap is {shown}, a value of which lies in {files} on average{inner}."
        )
    return HealthFigure(
        key="clustering",
        title=title,
        verdict=verdict,
        attention=first is not None and depth >= DEPTH,
        columns=("average files", *(("within a partition",) if parted else ()), "most files"),
        bars=bars,
        rows=found.columns,
        show=Shown("ranges", of=named["column"]),
        notes=notes,
    )
