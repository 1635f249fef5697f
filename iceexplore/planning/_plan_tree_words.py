"""The words on the nodes of a drawn plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from iceexplore.graph import human_bytes

if TYPE_CHECKING:
    from iceexplore.planning._plan_leaves import LeafScan

__all__ = ["amount", "basename", "file_lines", "leaf_lines", "said"]

_BY = {"partition": "by partition values", "bounds": "by bounds", "counts": "by counts", "row-count": "by row count"}


def amount(count: int, one: str) -> str:
    """``1 file``, ``2,000 files``."""
    return f"{count:,} {one}" if count == 1 else f"{count:,} {one}s"


def basename(location: str | None) -> str:
    """The last part of a location."""
    if not location:
        return "(no location)"
    return location.rstrip("/").rpartition("/")[2] or location


def said(term: str | None, by: str | None) -> tuple[str, ...]:
    """The term of the filter that decided, and what it was judged by."""
    return tuple(line for line in (term, _BY.get(by or "", by)) if line)


def leaf_lines(leaf: LeafScan) -> tuple[str, ...]:
    """How many files of a manifest are read, and its bytes."""
    lines = [f"{leaf.kept_files:,} of {amount(leaf.files, 'file')} read", human_bytes(leaf.length)]
    return tuple(lines) if leaf.readable else (*lines, "not all of it could be read")


def file_lines(task: Mapping[str, Any]) -> tuple[str, ...]:
    """Partition, rows and bytes; what is left of the filter."""
    lines = [] if task["partition"] in (None, "unpartitioned") else [task["partition"]]
    lines.append(f"{amount(task['rows'] or 0, 'row')} · {human_bytes(task['bytes'] or 0)}")
    if task["deletes"]:
        lines.append(f"{amount(task['deletes'], 'delete')} apply" if task["deletes"] != 1 else "1 delete applies")
    return tuple(lines)
