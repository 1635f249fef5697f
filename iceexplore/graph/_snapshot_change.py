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
#: For each summary key, the number to which its value is added, and the side: 0 for added, 1 for removed.
_PLACES = {key: (name, side) for name, sides in _KEYS.items() for side, keys in enumerate(sides) for key in keys}
#: The summary keys that are read.
_COUNTS = frozenset({*_PLACES, "removed-dvs", "removed-position-deletes"})
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


_NOTHING = SnapshotChange((0, 0), (0, 0), (0, 0), (0, 0))


def snapshot_change(operation: str | None, summary: Mapping[str, Any] | None) -> SnapshotChange:
    """Return the change that a summary records; 0 for each count that it lacks.

    A summary counts all rows of removed files, even those that were deleted before, and all rows of new deletes, even
    those merged from older deletes. Rows that were deleted before are subtracted if the summary shows that their
    vectors were merged into new ones or removed with their data files. Removed position delete files are considered
    only for "replace", which changes no rows: other operations may remove such files long after their rows were
    removed.
    """
    counts = {key: _count(text) for key, text in (summary or {}).items() if key in _COUNTS}
    if not counts:
        return _NOTHING
    # Loop over the few counts that are present, not over all keys: timelines do this for 10,000 snapshots.
    found = {name: [0, 0] for name in _KEYS}
    for key, count in counts.items():
        if place := _PLACES.get(key):
            found[place[0]][place[1]] += count
    sums = {name: (min(more, _MOST), min(less, _MOST)) for name, (more, less) in found.items()}
    if operation == "replace" or counts.get("removed-dvs"):
        more, less = sums["rows"]
        sums["rows"] = more, max(0, less - counts.get("removed-position-deletes", 0))
    return SnapshotChange(**sums)


def _count(text: object) -> int:
    """Return a count in a summary; 0 if it is not a plausible number."""
    if not isinstance(text, str) or not (text.isascii() and text.isdecimal()) or len(text) > 18:
        return 0
    return int(text)
