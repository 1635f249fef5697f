"""Select data files with rows that match a filter, by partition tuples and statistics alone; no data is read.

Files in which all rows match are distinguished from files in which possibly only some rows match.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.commits.live_files._locate import live_manifests, readable
from iceexplore.errors import RuleError
from iceexplore.expressions import FilterLike
from iceexplore.graph import TableState
from iceexplore.manifests import ContentType, EntryBatch, concat_batches, live
from iceexplore.planning import Filter, make_filter, may_hold

__all__ = ["Selection", "refuse_straddling", "select"]

_PARTS = frozenset({"entries", "partition", "stats"})


@dataclass(frozen=True)
class Selection:
    """The live data files in which rows may match a filter.

    Attributes
    ----------
    filter
        The filter by which the files were selected.
    whole
        Files in which all rows match, as the metadata shows.
    part
        Files for which the metadata shows neither that all rows match nor that no row matches. Only the data could show
        which rows match.
    skipped
        How many data manifests were not read because the root shows that no file in them can match.
    manifests
        Locations of the data manifests that were read. These manifests list the selected files, except those that the
        root lists directly.
    """

    filter: Filter
    whole: EntryBatch
    part: EntryBatch
    skipped: int
    manifests: frozenset[str]

    @property
    def read(self) -> int:
        """The number of data manifests that were read."""
        return len(self.manifests)

    @property
    def text(self) -> str:
        """The filter as text, for use in messages."""
        return self.filter.text


def select(
    state: TableState, where: FilterLike | Filter | None = None, partition: Mapping[str, Any] | None = None
) -> Selection:
    """Select the data files that match a filter, by metadata alone.

    Parameters
    ----------
    where, partition
        The filter, as for `make_filter`. If neither is given, every file matches.

    Raises
    ------
    OptionError
        The filter cannot be parsed, or does not fit the schema or partition spec.
    """
    wanted = make_filter(state.metadata, state.schema, where, partition)
    whole, part = [], []
    root = state.root()
    if root is None:
        return Selection(wanted, EntryBatch.empty(), EntryBatch.empty(), 0, frozenset())
    rows = np.array(live_manifests(readable(root).entries, {ContentType.DATA_MANIFEST}), dtype=np.int64)
    kept = rows[np.asarray(may_hold(state, root, rows, wanted))]
    direct = state.reader.direct(root)
    parts = _PARTS if wanted.stats_ids else frozenset({"entries", "partition"})
    leaves = state.reader.leaves(root, kept.tolist(), parts=parts) if len(kept) else ()
    for leaf in (*([] if direct is None else [direct]), *leaves):
        batch = EntryBatch.of(readable(leaf), wanted.stats_ids)
        mine = pc.and_(live(leaf.entries), pc.equal(leaf.entries["content_type"], int(ContentType.DATA)))
        mine = mine.combine_chunks() if isinstance(mine, pa.ChunkedArray) else mine
        may, must = wanted.evaluate(batch, state.metadata)
        whole.append(batch.filter(pc.and_(mine, must)))
        part.append(batch.filter(pc.and_(mine, pc.and_(may, pc.invert(must)))))
    names = frozenset(build.to_pylist(root.entries["location"].take(build.array(kept))))
    return Selection(wanted, concat_batches(whole), concat_batches(part), len(rows) - len(kept), names)


def refuse_straddling(selection: Selection) -> None:
    """Refuse a selection that contains files of which perhaps only some rows match the filter.

    These files are in `Selection.part`. An operation that removes only whole files cannot remove them.

    Raises
    ------
    RuleError
        ``whole-files``: `Selection.part` is not empty.
    """
    if not len(selection.part):
        return
    names = build.to_pylist(selection.part.entries["location"].slice(0, 3))
    count = len(selection.part)
    raise RuleError(
        "whole-files",
        f"{count} file{'s' if count > 1 else ''} may have both rows that match {selection.text} and rows that do not: "
        f"{', '.join(names)}. Metadata deletes remove only whole files; use row_delta, or a filter that matches whole "
        "files",
    )
