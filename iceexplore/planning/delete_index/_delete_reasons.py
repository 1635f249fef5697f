"""Why a delete does not apply to a data file, as sentences with the numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from iceexplore.manifests import EntryBatch
from iceexplore.metadata import human_value
from iceexplore.planning.delete_index._delete_files import path_bounds
from iceexplore.planning.delete_index._match import Matching
from iceexplore.planning.model._groups import partition_texts
from iceexplore.storage import canonical, path_only

__all__ = ["Reasons"]

Reason = tuple[str, str]


@dataclass(frozen=True, eq=False)
class Reasons:
    """Codes and sentences for deletes (rows of ``matching.found``) and data files (rows of ``matching.files``)."""

    matching: Matching

    def of_vector(self, file: int, delete: int) -> Reason:
        """A position delete, or another vector, of a data file that has a deletion vector."""
        m = self.matching
        newest = int(m.vector[file])
        place = m.found.batch.entries["location"][newest].as_py()
        if m.found.vector[delete]:
            older, newer = int(m.found.sequence[delete]), int(m.found.sequence[newest])
            return "vector", f"the newer deletion vector of sequence {newer} counts, not that of sequence {older}"
        return "vector", f"a deletion vector takes its place: {place}"

    def of_path(self, file: int, delete: int) -> Reason:
        """A position delete file whose bounds of ``file_path`` leave out a data file of its partition."""
        low, high = (b[delete].as_py() for b in path_bounds(self.matching.found.batch))
        return "file-path", f"its positions are in files from {low} to {high}"

    def of_bounds(self, file: int, delete: int) -> Reason:
        """An equality delete whose statistics show that it has no value of the data file's."""
        m = self.matching
        pair = np.array([file]), np.array([delete])
        column = next(c for c, found in m.equality_bounds.items() if found.apart(*pair)[0])
        name, f = m.state.metadata.all_fields()[column]
        ours, theirs = self._stats(m.files, file, column), self._stats(m.found.batch, delete, column)
        names = ("data file", "delete file")
        for stats, who, other in ((ours, *names), (theirs, *names[::-1])):
            if stats["null_count"] and stats["null_count"] == stats["value_count"]:
                return "bounds", f"every {name} of the {who} is null, and none of the {other} is"
        a, b = (self._range(s, f.type) for s in (theirs, ours))
        return "bounds", f"bounds of {name}, {a}, do not meet {b}"

    @staticmethod
    def _stats(batch: EntryBatch, row: int, column: int) -> dict[str, Any]:
        found: dict[str, Any] = batch.stats[column][row].as_py() or {}
        return found

    @staticmethod
    def _range(stats: dict[str, Any], kind: Any) -> str:
        values = (stats["lower"], stats["upper"])
        return " to ".join("?" if v is None else human_value(kind, "identity", v) for v in values)

    def alone(self, delete: int, live: dict[str, str]) -> Reason:
        """Why a delete is in scope of no data file of the plan.

        Parameters
        ----------
        live
            Live data files of the state: the location of each by what it means.
        """
        m = self.matching
        if m.ruled_out[delete]:
            return "filter", self._filter_sentence(delete)
        said = m.found.referenced[delete].as_py()
        if m.found.vector[delete] and said is None:
            return "no-file", "it does not say of which data file it is"
        if said is not None:
            mine = np.flatnonzero(m.named[1] == delete)
            return self._apart(int(m.named[0][mine[0]]), delete) if len(mine) else self._nowhere(said, live)
        return self._no_place(delete)

    def _filter_sentence(self, delete: int) -> str:
        m = self.matching
        said = []
        for column, stats in m.found.batch.stats.items():
            found = stats[delete].as_py()
            if found and column in (m.found.batch.entries["equality_ids"][delete].as_py() or ()):
                name, f = m.state.metadata.all_fields().get(column, (str(column), None))
                said.append(f"{name} {self._range(found, f.type)}" if f is not None else name)
        what = "" if m.filter is None else m.filter.text
        return f"the filter {what} rules it out: its rows have {', '.join(said) or 'no matching partition'}"

    def _apart(self, file: int, delete: int) -> Reason:
        """A data file that is named, in another partition or newer."""
        m = self.matching
        if m.groups[0][file] != m.groups[1][delete]:
            one = partition_texts(m.state, m.files.take([file]))
            other = partition_texts(m.state, m.found.batch.take([delete]))
            specs = [b.entries["partition_spec_id"][i].as_py() for b, i in ((m.found.batch, delete), (m.files, file))]
            return "partition", (
                f"its partition, {_place(other[0].as_py(), specs[0])}, is not that of the data file, "
                f"{_place(one[0].as_py(), specs[1])}"
            )
        return "sequence", f"its sequence {m.found.sequence[delete]} is below the data file's {m.file_sequence[file]}"

    def _nowhere(self, said: str, live: dict[str, str]) -> Reason:
        if canonical(said) in live:
            return "not-in-plan", f"its data file is not in the plan: {said}"
        others = [place for place in live if path_only(place) == path_only(said)]
        if len(others) > 1:
            return "path", f"{len(others)} live data files have the path of {said} under other schemes or hosts"
        if others:
            return "not-in-plan", f"its data file, spelled {said}, is not in the plan: {live[others[0]]}"
        return "dangling", f"its data file is not live: {said}"

    def _no_place(self, delete: int) -> Reason:
        """A delete of a partition, or of the whole table."""
        m = self.matching
        if m.is_global[delete]:
            mine, where = np.arange(len(m.files)), "the plan"
        else:
            mine, where = np.flatnonzero(m.groups[0] == m.groups[1][delete]), "its partition"
        spec = m.found.batch.entries["partition_spec_id"][delete].as_py()
        if not len(mine):
            text = _place(partition_texts(m.state, m.found.batch.take([delete]))[0].as_py(), spec)
            return "partition", f"no data file of the plan is in its partition, {text}"
        oldest, own = int(m.file_sequence[mine].min()), int(m.found.sequence[delete])
        word = "above" if m.found.equality[delete] else "at or above"
        count = f"the lowest of the {len(mine):,} data files" if len(mine) > 1 else "that of the one data file"
        return "sequence", f"its sequence {own} is not {word} {oldest}, {count} in {where}"


def _place(text: str | None, spec: int | None) -> str:
    return f"{text or 'unpartitioned'} (spec {spec})"
