"""Write the texts in the nodes of a drawn plan, such as ``3 of 12 manifests read``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from iceexplore.graph import human_bytes, percent

if TYPE_CHECKING:
    from iceexplore.planning.scan._files import LeafScan
    from iceexplore.planning.scan._manifests import RootScan
    from iceexplore.planning.scan._result import PlannedScan

__all__ = ["amount", "basename", "damage", "file_lines", "held", "leaf_lines", "root_lines", "share_of"]


def amount(count: int, one: str) -> str:
    """Return a count with its noun: ``1 file``, ``2,000 files``."""
    return f"{count:,} {one}" if count == 1 else f"{count:,} {one}s"


def share_of(part: float, whole: float) -> str:
    """Return a share as text: ``33 %``; ``< 1 %`` and ``> 99 %`` where rounding would show 0 % or 100 %."""
    if 0 < part < 0.005 * whole:
        return "< 1 %"
    if 0.995 * whole < part < whole:
        return "> 99 %"
    return percent(part / whole)


def basename(location: str | None) -> str:
    """Return the last part of a location, such as the name of a file; ``(no location)`` if there is none."""
    if not location:
        return "(no location)"
    return location.rstrip("/").rpartition("/")[2] or location


def held(rows: int | None, size: int | None, files: int | None = None) -> str:
    """Return a text such as ``12 files · 60 rows · 2.4 KiB``; a parameter that is None is left out.

    Parameters
    ----------
    rows, files
        The numbers of rows and files.
    size
        The number of bytes.
    """
    parts = [
        None if files is None else amount(files, "file"),
        None if rows is None else amount(rows, "row"),
        None if size is None else human_bytes(size),
    ]
    return " · ".join(p for p in parts if p)


def damage(plan: PlannedScan) -> str:
    """Return a warning to append to the summary of a plan; empty if no problem was found.

    The warning is that rows may be wrong or missing in the result of the scan, for one of two reasons:

    - Manifests or manifest lists (V4: root manifests) cannot be read in full. ``plan.notes`` names these files.
    - All of them can be read, but the metadata has problems, such as contradictions. ``plan.doubts`` describes them.
    """
    known = 0 if plan.appends is None else len(plan.appends.notes)
    if len(plan.notes) <= known:
        return "; rows may be wrong or missing (see the plan's .doubts)" if plan.doubts else ""
    read = [leaf for leaf in plan.leaves if leaf.root_row is not None]
    lost = sum(1 for leaf in read if not leaf.readable)
    if lost:
        return f"; incomplete, as {lost:,} of {amount(len(read), 'manifest')} cannot be read in full"
    return "; incomplete, as not all of the metadata could be read"


def root_lines(scan: RootScan, own: LeafScan | None, snapshot: bool) -> tuple[str, ...]:
    """Return the lines of text in the node of a root (manifest list or V4 root manifest).

    An example is ``3 of 12 manifests read``.

    Parameters
    ----------
    scan
        The root, with its data manifests and which of them the plan reads.
    own
        How many data files a V4 root lists itself, and how many of these the plan reads; None if it lists none.
    snapshot
        True to begin with a line that shows the id of the root's snapshot.
    """
    lines = [f"snapshot {scan.snapshot.snapshot_id}"] if snapshot else []
    if len(scan.rows):
        lines.append(f"{len(scan.kept):,} of {amount(len(scan.rows), 'manifest')} read")
    if own is not None and own.files:
        lines.append(f"in the root itself: {own.kept_files:,} of {amount(own.files, 'file')} read")
    if any(p.severity == "error" for p in scan.root.problems):
        lines.append("only partly readable")
    return tuple(lines) if lines else ("no data files",)


def leaf_lines(leaf: LeafScan) -> tuple[str, ...]:
    """Return the lines of text in the node of a data manifest.

    They show how many of its data files the plan reads, such as ``3 of 12 files read``, and the size of the manifest
    itself. One more line is added if the manifest is only partly readable.
    """
    lines = [f"{leaf.kept_files:,} of {amount(leaf.files, 'file')} read", human_bytes(leaf.length)]
    return tuple(lines) if leaf.readable else (*lines, "only partly readable")


def file_lines(task: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the lines of text in the node of a data file that is read.

    They show its partition, its rows and bytes, the number of deletes that apply, how many row groups are read, and the
    residual filter, such as ``to check: id > 9``: what remains of the filter without the terms that the partition
    values prove true or false. A line is left out if there is nothing to show, as when no delete applies or when the
    residual is the whole filter.

    Parameters
    ----------
    task
        The dictionary that `task_records` returns for the file.
    """
    lines = [] if task["partition"] in (None, "unpartitioned") else [task["partition"]]
    lines.append(held(task["rows"] or 0, task["bytes"] or 0))
    if task["deletes"]:
        lines.append("1 delete applies" if task["deletes"] == 1 else f"{task['deletes']:,} deletes apply")
    if task.get("row_groups"):
        lines.append(f"{task['row_groups_read']:,} of {amount(task['row_groups'], 'row group')} read")
    if task["left"]:
        lines.append(f"to check: {task['left']}")
    return tuple(lines)
