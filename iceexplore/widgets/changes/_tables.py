"""The table of the tab Changes: a row per file that was added or removed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

from iceexplore.errors import OptionError
from iceexplore.graph import TableState
from iceexplore.widgets.changes._counted import Counted, costs_much, count_changes
from iceexplore.widgets.changes._metadata_changes import MetadataChanges, MetadataHistory
from iceexplore.widgets.changes._report import changes_sent
from iceexplore.widgets.core._blocks import Block
from iceexplore.widgets.core._ids import id_of
from iceexplore.widgets.grid._table import ArrowTable
from iceexplore.widgets.tree._compare import in_age

__all__ = ["CHANGES", "COLUMN_DOCS", "ChangeTables", "compared_key", "is_changes"]

#: The key of the table of a commit's changes. The key of a comparison has the other snapshot's id (`compared_key`).
CHANGES = "changes"
_COMPARED = "compared:"
#: Maximum number of bytes of cached changes, not counting the newest.
_KEPT_BYTES = 64 << 20
_COLUMNS = (
    "location",
    "change",
    "content",
    "partition",
    "record_count",
    "size_in_bytes",
    "referenced_file",
    "content_offset",
    "file_format",
    "spec_id",
    "snapshot_id",
    "sequence_number",
)
COLUMN_DOCS = {
    "location": "location of the file; it may contain several deletion vectors",
    "change": "added or removed",
    "content": "kind of the file",
    "partition": "partition values of the file",
    "record_count": "rows of a data file, deleted positions or rows of a delete file",
    "size_in_bytes": "size of the file, or of the deletion vector in it",
    "referenced_file": "the only data file to which the delete applies",
    "content_offset": "where the deletion vector begins in its file",
    "snapshot_id": "snapshot that added the file",
    "sequence_number": "data sequence number",
}


def compared_key(against: str) -> str:
    """Return the key of the table that compares a snapshot with another one."""
    return f"{_COMPARED}{against}"


def is_changes(key: str) -> bool:
    """Return whether the table with this key lists changes."""
    return key == CHANGES or key.startswith(_COMPARED)


class ChangeTables:
    """The changes of snapshots, by the id of a snapshot and the key of a table; the last few are cached."""

    def __init__(self, state: TableState) -> None:
        self._state = state
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[int, int | None], Counted] = OrderedDict()
        self._blocks: dict[Counted, list[Block]] = {}
        self._history = MetadataHistory()
        #: Whether to read other metadata files. They contain names and values that a redacted state leaves out.
        self.reads_metadata = True

    def counted(self, snapshot: int, key: str) -> Counted:
        """Return what changed at a snapshot, or between it and the snapshot that the key names.

        Raises
        ------
        OptionError, SnapshotNotFoundError
            There is no such table or snapshot.
        """
        before = None
        if key != CHANGES:
            before = id_of(key.removeprefix(_COMPARED))
            if before is None:
                raise OptionError(f"{key[:40]!r} names no snapshot to compare with")
            before, snapshot = in_age(self._state, before, snapshot)
        with self._lock:  # called from the worker thread and from the notebook's
            at = (snapshot, before)
            if at not in self._kept:
                self._kept[at] = count_changes(self._state, snapshot, before)
            self._kept.move_to_end(at)
            sizes = [found.files.nbytes for found in self._kept.values()]
            while len(sizes) > 1 and sum(sizes[:-1]) > _KEPT_BYTES:
                self._blocks.pop(self._kept.popitem(last=False)[1], None)
                sizes.pop(0)
            return self._kept[at]

    def table(self, snapshot: int, key: str) -> ArrowTable:
        """Return a grid's table of the files that changed."""
        return ArrowTable(self.counted(snapshot, key).files.select(_COLUMNS))

    def above(self, snapshot: int, key: str) -> list[Block]:
        """Return what is shown above the table."""
        found = self.counted(snapshot, key)
        blocks = self._blocks.get(found)
        if blocks is None:
            left_out = MetadataChanges(unknown="left out of this page")
            changes = self._history.changes(self._state, found.before, found.after) if self.reads_metadata else left_out
            blocks = self._blocks[found] = changes_sent(self._state, found, changes)
        return blocks

    def missing(self, snapshot: int, key: str) -> str:
        """Return why the table may lack files; empty if it is complete."""
        many = len(self.counted(snapshot, key).unread)
        return "" if not many else f"{many:,} of the files that list them cannot be read"

    def nodes(self, snapshot: int, key: str, rows: Sequence[int]) -> list[str | None]:
        """Return the node ids of the files in these rows."""
        return self.counted(snapshot, key).nodes(rows)

    def row(self, snapshot: int, key: str, node: str) -> int | None:
        """Return the row with the file of a node; None if that file did not change."""
        return self.counted(snapshot, key).row_of(node)

    def cheap(self, snapshot: int) -> bool:
        """Return whether a commit's changes are cheap to count, so that they are shown without a request."""
        return (snapshot, None) in self._kept or not costs_much(self._state, snapshot)
