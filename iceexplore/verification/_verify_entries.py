"""Whether what an entry says of order in time, and of row ids, can be: the table's own counters bound both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iceexplore.graph import TableState
from iceexplore.verification._findings import Checked, Place

__all__ = ["check_entry"]


def check_entry(state: TableState, place: Place, entry: Mapping[str, Any], out: Checked) -> None:
    """Hold sequence number and first row id against the counters of the metadata file."""
    last, number = state.metadata.last_sequence_number, entry["sequence_number"]
    if number is not None and number > last:
        text = "The file is newer than the table: deletes to come do not apply to it, or it deletes rows to come."
        out.say(
            place, "metadata-invalid", text, field="sequence_number", found=number,
            expected=f"at most last-sequence-number {last}",
        )  # fmt: skip
    first = entry["first_row_id"]
    if entry["content_type"] != 0 or first is None:
        return
    end, rows = state.metadata.next_row_id, max(entry["record_count"] or 0, 0)
    if first < 0 or (end is not None and first + rows > end):
        text = "Rows of the file have ids that the table never gave out: ids to come will be theirs too."
        expected = "0 or more" if first < 0 else f"with {rows} rows at most next-row-id {end}"
        out.say(place, "metadata-invalid", text, field="first_row_id", found=first, expected=expected)
