"""The timeline of a view: the changes of its version log, and versions that the log does not name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from iceexplore.graph import format_ms
from iceexplore.views import ViewMetadata, ViewState, ViewVersion, view_clock
from iceexplore.widgets.core._escape_text import signs

__all__ = ["Entry", "entries_of", "entries_sent", "entry_of"]

#: The maximum number of entries that are sent: the newest.
MOST_ENTRIES = 1_000
_MARKS = {"again": "rolled back", "expired": "expired", "unlogged": "not in the log"}


@dataclass(frozen=True)
class Entry:
    """A time at which a version became current.

    Attributes
    ----------
    version
        The version; None if it has expired.
    mark
        ``again`` (an earlier version became current again), ``expired``, ``unlogged`` (the version log does not name
        it; the time is that of its creation), or empty.
    """

    version_id: int
    timestamp_ms: int
    version: ViewVersion | None
    mark: str


def entries_of(metadata: ViewMetadata) -> list[Entry]:
    """Return the entries, oldest first."""
    clock, _ = view_clock(metadata)
    by_id = {v.version_id: v for v in reversed(metadata.versions)}
    found: list[Entry] = []
    seen: set[int] = set()
    for one in clock:
        version = by_id.get(one.version_id)
        again = one.version_id in seen and found[-1].version_id != one.version_id
        mark = "expired" if version is None else "again" if again else ""
        found.append(Entry(one.version_id, one.timestamp_ms, version, mark))
        seen.add(one.version_id)
    unlogged = [Entry(v.version_id, v.timestamp_ms, v, "unlogged") for i, v in by_id.items() if i not in seen]
    return sorted([*found, *unlogged], key=lambda one: one.timestamp_ms) if unlogged else found


def entry_of(state: ViewState, entries: list[Entry]) -> int:
    """Return the index of the shown version's last entry, or else of the last entry; -1 if there are no entries."""
    shown = None if state.version is None else state.version.version_id
    return next((i for i in reversed(range(len(entries))) if entries[i].version_id == shown), len(entries) - 1)


def entries_sent(entries: list[Entry]) -> list[dict[str, Any]]:
    """Return the entries for the browser: ``id``, ``time``, ``mark`` (as text) and a description, ``words``."""
    sent = []
    until = ""
    for one in reversed(entries):
        time = format_ms(one.timestamp_ms).replace(".000 UTC", " UTC")
        mark = _MARKS.get(one.mark, "")
        version = one.version
        made = [] if version is None else [version.operation, version.engine, ", ".join(version.dialects)]
        current = f"created {time}" if one.mark == "unlogged" else f"current from {time} {until}"
        words = [f"Version {one.version_id}", current.strip()]
        words += [mark] if mark else []
        words += [text[:100] for text in made if text]
        if one.mark != "unlogged":
            until = f"until {time}"
        sent.append({"id": str(one.version_id), "time": time, "mark": mark, "words": signs(" · ".join(words))})
    return sent[::-1]
