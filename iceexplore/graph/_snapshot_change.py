"""What a snapshot changed, counted in one way for the card, the tree, the timeline, differences and the explorer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["SnapshotChange", "snapshot_change"]

#: For each number, the summary keys to add up for what was added, and for what was removed (spec, "Optional Snapshot
#: Summary Fields").
_KEYS = {
    "data_files": (("added-data-files",), ("deleted-data-files",)),
    "delete_files": (("added-delete-files",), ("removed-delete-files",)),
    "rows": (("added-records",), ("deleted-records", "added-position-deletes", "added-equality-deletes")),
    "bytes": (("added-files-size",), ("removed-files-size",)),
}
_UNITS = (("data_files", "data file"), ("rows", "row"), ("delete_files", "delete file"))
#: Greater numbers are reduced to this one, the largest integer that JavaScript represents exactly.
_MOST = 2**53 - 1


@dataclass(frozen=True)
class SnapshotChange:
    """What a snapshot added and removed. A deleted row counts as removed once, not again when its file is removed.

    Attributes
    ----------
    data_files, delete_files, rows, bytes
        The numbers added and removed; an equality delete counts as one row.
    """

    data_files: tuple[int, int]
    delete_files: tuple[int, int]
    rows: tuple[int, int]
    bytes: tuple[int, int]

    @property
    def files(self) -> tuple[int, int]:
        """The numbers of data and delete files added and removed."""
        (more, less), (more_deletes, less_deletes) = self.data_files, self.delete_files
        return more + more_deletes, less + less_deletes

    def words(self) -> list[str]:
        """Return what changed as text: ``+3 −1 data files``, ``+20 rows``; counts that are 0 are left out."""
        out = []
        for name, unit in _UNITS:
            more, less = getattr(self, name)
            signs = [f"{sign}{count:,}" for sign, count in (("+", more), ("−", less)) if count]
            if signs:
                out.append(f"{' '.join(signs)} {unit if more + less == 1 else unit + 's'}")
        return out


def snapshot_change(operation: str | None, summary: Mapping[str, Any] | None) -> SnapshotChange:
    """Return the change that a summary records; 0 for each count that it lacks.

    Summaries count the rows of removed files, deleted ones included, and the rows of new deletes, merged ones included.
    Rows that were deleted before are subtracted, if the summary shows that their vectors were merged into new ones or
    removed with their data files. Removed position delete files are considered only for "replace", which changes no
    rows: other operations may remove such files long after their rows were removed.
    """
    recorded = summary or {}
    found = {
        name: [min(sum(_count(recorded.get(key)) for key in keys), _MOST) for keys in sides]
        for name, sides in _KEYS.items()
    }
    if operation == "replace" or _count(recorded.get("removed-dvs")):
        found["rows"][1] = max(0, found["rows"][1] - _count(recorded.get("removed-position-deletes")))
    return SnapshotChange(**{name: (more, less) for name, (more, less) in found.items()})


def _count(text: object) -> int:
    """Return a count in a summary; 0 if it is missing or not a plausible number."""
    if not isinstance(text, str) or not (text.isascii() and text.isdecimal()) or len(text) > 18:
        return 0
    return int(text)
