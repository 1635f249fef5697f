"""Snapshot summaries of Delta's commits, counted from their actions."""

from __future__ import annotations

from iceexplore.delta._actions import FileAction
from iceexplore.delta._log import Commit

__all__ = ["Totals"]


class Totals:
    """Running totals over the commits of a log.

    Parameters
    ----------
    known
        True if the log begins with version 0, so that totals can be counted; otherwise summaries have no totals.
    """

    def __init__(self, *, known: bool) -> None:
        self._known = known
        self._files = self._rows = self._size = self._vectors = self._deleted = 0

    def summary(self, commit: Commit) -> dict[str, str]:
        """Add the next commit to the totals, and return its snapshot summary."""
        added = {a.location: a for a in commit.files if a.adds}
        removed = {a.location: a for a in commit.files if not a.adds}
        new = [a for a in added.values() if a.location not in removed]
        gone = [a for a in removed.values() if a.location not in added]
        counts = {
            "added-data-files": len(new),
            "deleted-data-files": len(gone),
            "added-records": _sum(new),
            "deleted-records": _sum(gone),
            "added-files-size": sum(a.size or 0 for a in new),
            "removed-files-size": sum(a.size or 0 for a in gone),
            "added-dvs": sum(a.vector is not None for a in added.values()),
            "removed-dvs": sum(a.vector is not None for a in removed.values()),
            "added-position-deletes": sum(a.vector.cardinality for a in added.values() if a.vector is not None),
            "removed-position-deletes": sum(a.vector.cardinality for a in removed.values() if a.vector is not None),
        }
        out = {"operation": _operation(commit, new, gone, added)}
        out |= {name: str(count) for name, count in counts.items() if count}
        self._known = self._known and counts["added-records"] is not None and counts["deleted-records"] is not None
        if self._known:
            self._files += len(new) - len(gone)
            self._rows += (counts["added-records"] or 0) - (counts["deleted-records"] or 0)
            self._size += (counts["added-files-size"] or 0) - (counts["removed-files-size"] or 0)
            self._vectors += (counts["added-dvs"] or 0) - (counts["removed-dvs"] or 0)
            self._deleted += (counts["added-position-deletes"] or 0) - (counts["removed-position-deletes"] or 0)
            out |= {
                "total-data-files": str(self._files),
                "total-records": str(self._rows),
                "total-files-size": str(self._size),
                "total-delete-files": str(self._vectors),
                "total-position-deletes": str(self._deleted),
                "total-equality-deletes": "0",
            }
        info = commit.get("commitInfo")
        for key, name in (("operation", "delta.operation"), ("engineInfo", "delta.engine-info")):
            if isinstance(info.get(key), str):
                out[name] = info[key]
        return out


def _sum(actions: list[FileAction]) -> int | None:
    """Add up the row counts of some files; None if an action has no row count."""
    rows = [a.rows for a in actions]
    return None if None in rows else sum(r or 0 for r in rows)


def _operation(commit: Commit, new: list[FileAction], gone: list[FileAction], added: dict[str, FileAction]) -> str:
    """Return Iceberg's name for the operation of a commit."""
    changes = [a for a in commit.files if a.data_change]
    if not changes:  # the commit only rearranges rows, or changes only metadata
        return "replace"
    if new:
        return "append" if len(new) == len(added) and not gone else "overwrite"
    return "delete"
