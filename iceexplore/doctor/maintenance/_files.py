"""Count and display files by kind, and read manifests strictly, so that no reference to a file is overlooked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.errors import Problem, Problems
from iceexplore.graph import TableState, human_bytes, to_frame
from iceexplore.manifests import ManifestReader
from iceexplore.render import CardTable

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["bytes_of", "contradictions", "files_by_kind", "files_frame", "kind_table", "strict"]


#: Codes of problems that hide no entry of a manifest: files that are listed twice, and counts, totals, bounds or
#: sequence numbers that contradict the entries. Engines that expire snapshots or delete orphan files ignore them.
_COMPLETE = frozenset(
    {"bounds-untrue", "count-mismatch", "file-twice", "sequence-number", "summary-untrue", "totals-differ"}
)


class _ReadingProblems(Problems):
    """A list of problems that raises an error for each problem that may hide entries of a manifest.

    All other problems are kept in ``contradictions``.
    """

    def __init__(self) -> None:
        super().__init__(strict=True)
        self.contradictions: dict[Problem, None] = {}

    def add(self, item: Problem) -> None:
        if item.code in _COMPLETE:
            self.contradictions.setdefault(item)
        else:
            super().add(item)


def strict(state: TableState) -> TableState:
    """Return the state with a reader that raises for each manifest list or manifest that cannot be read completely.

    Tolerant reading shows such a manifest without entries: the files that it lists would seem to be unreferenced.
    """
    problems = _ReadingProblems()
    return replace(state, problems=problems, reader=ManifestReader(state.storage, state.metadata, problems))


def contradictions(state: TableState) -> tuple[str, ...]:
    """Return a note about contradictions in the metadata, such as a wrong count; an empty tuple if there are none.

    Parameters
    ----------
    state
        A state that `strict` returned. Only the files that its reader has read so far are considered.
    """
    found = list(getattr(state.problems, "contradictions", ()))
    if not found:
        return ()
    more = f" (and {len(found) - 1:,} more)" if len(found) > 1 else ""
    return (f"The metadata contradicts itself: {found[0].text}{more} Run check() before you rely on the plan.",)


def bytes_of(files: pa.Table) -> int:
    """Return the total size of files in bytes; a location that occurs more than once counts once."""
    once = files.group_by("location", use_threads=False).aggregate([("bytes", "max")])
    return int(pc.sum(once["bytes_max"]).as_py() or 0)


def files_by_kind(files: pa.Table) -> dict[str, tuple[int, int]]:
    """Return, by kind of file, the number of files and their total bytes; the kinds are in alphabetical order."""
    counted = (
        files.group_by("kind", use_threads=False).aggregate([("location", "count"), ("bytes", "sum")]).sort_by("kind")
    )
    return {row["kind"]: (row["location_count"], row["bytes_sum"] or 0) for row in build.to_pylist(counted)}


def kind_table(heading: str, files: pa.Table) -> CardTable:
    """Return a table for a card, with a row per kind of file: the number of files and their total bytes."""
    rows = tuple((kind, f"{count:,}", human_bytes(size)) for kind, (count, size) in files_by_kind(files).items())
    return CardTable(heading, ("kind", "files", "size"), rows, right=frozenset({1, 2}))


def files_frame(files: pa.Table) -> pd.DataFrame:
    """Return files as a data frame with a row per file, sorted by kind and location."""
    return to_frame(files.sort_by([("kind", "ascending"), ("location", "ascending")]))
