"""Follow rows that a search has found, through a snapshot and its ancestors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from iceexplore.graph import TableState
from iceexplore.reading.columns._wanted import LAST_UPDATED, POS, ROW_ID
from iceexplore.reading.row_history._deletes import AppliedDelete, RowDeletes
from iceexplore.reading.row_history._fate import (
    Commit,
    Presence,
    RowDelete,
    RowEvent,
    Seen,
    commit_of,
    fate_of,
    timeline,
)
from iceexplore.reading.row_history._find import FoundFile, Search
from iceexplore.reading.row_history._history import Step
from iceexplore.reading.row_history._place import RowPlace

__all__ = ["Line"]

_UNREAD = "a delete file that may delete the row cannot be read"


@dataclass(frozen=True)
class _Span:
    """Presence of a data file in some consecutive steps."""

    at: int
    until: int
    presence: Presence
    deletes: tuple[int, ...] = ()
    why: str | None = None

    def goes_on(self, now: _Span) -> bool:
        return (self.presence, self.deletes, self.why) == (now.presence, now.deletes, now.why)


@dataclass(frozen=True)
class Line:
    """The snapshots that lead to one state, oldest first; the name is that of a branch or tag."""

    state: TableState
    name: str
    steps: list[Step]
    found: Search
    deletes: RowDeletes

    def places(self, presence: Mapping[str, npt.NDArray[np.bool_]] | None) -> list[RowPlace]:
        """Return the places of all rows that were found in files of this line.

        Parameters
        ----------
        presence
            The steps in which each file is live; None if only the newest step was searched: all are live in it.
        """
        commits = [commit_of(self.state.metadata, s.snapshot.snapshot_id) for s in self.steps]
        if presence is None:
            spans = {f.location: self._backwards(f) for f in self.found.files}
        else:
            spans = self._forwards(presence)
        out: list[RowPlace] = []
        for file in self.found.files:
            if any(span.presence == "live" for span in spans[file.location]):
                out += self._of_file(file, spans[file.location], commits)
        return out

    def _forwards(self, presence: Mapping[str, npt.NDArray[np.bool_]]) -> dict[str, list[_Span]]:
        """Return the presence of each file in all steps of the line."""
        out: dict[str, list[_Span]] = {name: [] for name in presence}
        for i, step in enumerate(self.steps):
            applied = self.deletes.at(step)
            doubt, unsure = self.found.doubt(step), self.deletes.doubt(step)
            for name, present in presence.items():
                if present[i]:
                    now = _Span(i, i, "live", applied.get(name, ()), unsure)
                else:
                    now = _Span(i, i, "unknown" if doubt else "absent", (), doubt)
                last = out[name][-1] if out[name] else None
                if last is not None and last.goes_on(now):
                    out[name][-1] = replace(last, until=i)
                else:
                    out[name].append(now)
        return out

    def _backwards(self, file: FoundFile) -> list[_Span]:
        """Return a live file's presence in the newest step and in the earlier steps that are needed to date deletes."""
        places = {s.snapshot.snapshot_id: i for i, s in enumerate(self.steps)}
        added = places.get(file.entry["snapshot_id"], 0)
        out: list[_Span] = []
        pending = {len(self.steps) - 1}
        while pending:
            at = max(pending)
            pending = {p for p in pending if p < at}
            step = self.steps[at]
            if at < added:
                out.append(_Span(at, at, "absent"))
                continue
            if not step.readable:
                out.append(_Span(at, at, "unknown", (), self.found.doubt(step)))
                continue
            numbers = self.deletes.at(step).get(file.location, ())
            out.append(_Span(at, at, "live", numbers, self.deletes.doubt(step)))
            # A row has been deleted at least since the first delete that applies to it. Look at the step before that,
            # too, because the row may have been deleted even earlier.
            first = np.full(file.rows.num_rows, len(self.steps))
            for number in numbers:
                mask = self.deletes.mask(number, file.location)
                if mask is not None:
                    since = places.get(self.deletes.deletes[number].entry["snapshot_id"], 0)
                    first[mask] = np.minimum(first[mask], since)
            pending |= {int(p) - 1 for p in np.unique(first) if 0 < p <= at}
        return out[::-1]

    def _of_file(self, file: FoundFile, spans: list[_Span], commits: list[Commit]) -> list[RowPlace]:
        entry = file.entry
        applied = sorted({n for span in spans for n in span.deletes})
        masks = {n: self.deletes.mask(n, file.location) for n in applied}
        known = {n: self._delete(self.deletes.deletes[n], n in spans[-1].deletes) for n in applied}
        added_by = commit_of(self.state.metadata, entry["snapshot_id"])
        number = entry["column_files_snapshot_id"]
        changed = None if number is None else commit_of(self.state.metadata, number)
        names = [f.name for f in (POS, ROW_ID, LAST_UPDATED)]
        values = file.rows.drop_columns(names).to_pylist()
        lineage = zip(*(file.rows[name].to_pylist() for name in names), strict=True)
        out = []
        for i, (position, row_id, updated) in enumerate(lineage):
            mine = {n for n, mask in masks.items() if mask is not None and mask[i]}
            seen = [self._seen(span, mine, masks) for span in spans]
            last = seen[-1].presence
            events = timeline(seen, commits, known, added_by)
            why = (spans[-1].why or _UNREAD) if last == "unknown" else None
            ended = any(e.kind in ("deleted", "gone") for e in events)
            shown = events if changed is None or ended else [*events, RowEvent("updated", changed)]
            out.append(
                RowPlace(
                    values=values[i],
                    file=file.location,
                    position=position,
                    row_id=row_id,
                    last_updated=updated,
                    added=next((e.by for e in events if e.kind == "added"), added_by),
                    fate=fate_of(events, last, [known[n] for n in sorted(mine)], why),
                    events=tuple(shown),
                    lines=(self.name,),
                    sequence_number=entry["sequence_number"],
                )
            )
        return out

    @staticmethod
    def _seen(span: _Span, mine: set[int], masks: Mapping[int, Any]) -> Seen:
        """Return the presence of one row, given the deletes that delete it."""
        deletes = tuple(n for n in span.deletes if n in mine)
        presence = span.presence
        if deletes:
            presence = "deleted"
        elif presence == "live" and (span.why or any(masks[n] is None for n in span.deletes)):
            presence = "unknown"
        return Seen(span.at, span.until, presence, deletes)

    def _delete(self, delete: AppliedDelete, live: bool) -> RowDelete:
        entry = delete.entry
        place = entry["deletion_vector"] or {}
        return RowDelete(
            kind=delete.kind,
            location=entry["location"],
            offset=place.get("offset"),
            sequence_number=entry["sequence_number"],
            by=commit_of(self.state.metadata, entry["snapshot_id"]),
            live=live,
        )
