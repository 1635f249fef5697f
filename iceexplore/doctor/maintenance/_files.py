"""Tables of files: their counts and sizes by kind, and reading that refuses to leave references out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.errors import Problems
from iceexplore.graph import TableState, human_bytes, to_frame
from iceexplore.manifests import ManifestReader
from iceexplore.render import CardTable

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["bytes_of", "files_by_kind", "files_frame", "kind_table", "strict"]


def strict(state: TableState) -> TableState:
    """Return the state with a reader that raises for each manifest list or manifest that cannot be read.

    Tolerant reading shows such a manifest without entries: the files that it lists would seem to be unreferenced.
    """
    problems = Problems(strict=True)
    return replace(state, problems=problems, reader=ManifestReader(state.storage, state.metadata, problems))


def bytes_of(files: pa.Table) -> int:
    """Return the bytes of files; a location that occurs more than once counts once."""
    once = files.group_by("location").aggregate([("bytes", "max")])
    return int(pc.sum(once["bytes_max"]).as_py() or 0)


def files_by_kind(files: pa.Table) -> dict[str, tuple[int, int]]:
    """Return the number of files and their bytes by kind, in alphabetical order."""
    counted = files.group_by("kind").aggregate([("location", "count"), ("bytes", "sum")]).sort_by("kind")
    return {row["kind"]: (row["location_count"], row["bytes_sum"] or 0) for row in build.to_pylist(counted)}


def kind_table(heading: str, files: pa.Table) -> CardTable:
    """Return a card's table of the number of files and their bytes by kind."""
    rows = tuple((kind, f"{count:,}", human_bytes(size)) for kind, (count, size) in files_by_kind(files).items())
    return CardTable(heading, ("kind", "files", "size"), rows, right=frozenset({1, 2}))


def files_frame(files: pa.Table) -> pd.DataFrame:
    """Return files as a data frame, by kind and location."""
    return to_frame(files.sort_by([("kind", "ascending"), ("location", "ascending")]))
