"""Suggest changes to a table that let a scan with a given filter read less, and estimate how much less.

The changes may concern the sort order, partition fields and column metrics, or be compaction or other maintenance.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.expressions import ALWAYS, all_of, columns_of, computed, expression_sql
from iceexplore.graph import to_frame
from iceexplore.manifests import EntryBatch, concat_batches
from iceexplore.planning.advice._columns import Scene, column_advice
from iceexplore.planning.advice._maintenance import deletes, scattered_manifests, small_files
from iceexplore.planning.advice._ranges import by_column
from iceexplore.planning.advice._render import advice_html, advice_text
from iceexplore.planning.advice._spread import Files, Mask, Reading
from iceexplore.planning.advice._suggestion import Suggestion
from iceexplore.planning.model._groups import counted, partition_codes
from iceexplore.planning.scan._files import leaves_of, parts_of
from iceexplore.planning.scan._manifests import candidates

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from iceexplore.planning.scan._result import PlannedScan

__all__ = ["Advice", "advise"]


@dataclass(frozen=True)
class Advice:
    """Suggestions of changes that would help one filter, best first; displayed as a list.

    An estimate assumes that values are spread evenly between the bounds of each file, and that the number and size of
    files stay about the same. Columns are considered separately. Other queries are not considered: a change that helps
    one filter may slow down another.

    The tests rewrite tables as suggested and plan the same filter again: the number of files read differs from the
    estimate by at most a factor of two, or by two files. These tests cover columns that are shuffled, clustered or half
    null, with numbers, times, strings with long common prefixes, or few distinct values. The estimate may be wrong by a
    factor of ten or more where bounds do not show the distribution: one value is far more frequent than others; values
    are dense in the middle of a range that every file spans; or few strings have the prefix that the filter selects.
    `Suggestion.assumes` lists the assumptions. Bytes are assumed to be proportional to rows, although rows with nulls
    or a single value take less space, sometimes only a third.

    Attributes
    ----------
    filter
        The filter, as text.
    now
        The number of data files that the plan reads today, and their bytes.
    suggestions
        The suggested changes. The change that saves the most bytes comes first; if two changes save equal bytes, the
        one that saves more files comes before the other. Changes without an estimate come last. Changes that save too
        little are left out (`Suggestion.helps`): a change must lower the cost of reading or, if it rewrites all data
        files, lower it by more than a tenth. The cost is the number of bytes to read, plus 4 MiB for each file to open
        (the default of Iceberg's ``read.split.open-file-cost``).
    clustering
        One row per column of the filter that has bounds, unless there is no estimate for the conditions on it:

        - ``column``: the column's name.
        - ``files``: the number of live data files.
        - ``with_bounds``: how many of these files have bounds of the column.
        - ``depth``: how many files' ranges overlap on average. For the middle of each file's range, count the files
          whose ranges contain it; the depth is the average of these counts.
        - ``deepest``: the largest number of files whose ranges contain the same value.
        - ``reads``: the number of files that remain after partition pruning and after pruning by the metrics of this
          column; the metrics of other columns are ignored.
        - ``sorted``: the number of files that the plan would read if each partition were sorted by the column; null
          if no file that remains after partition pruning has bounds.
    notes
        Sentences on changes that would not help, and on conditions without an estimate, with the reasons.
    """

    filter: str
    now: Reading
    suggestions: tuple[Suggestion, ...]
    clustering: pa.Table
    notes: tuple[str, ...] = ()

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Return the suggestions as a data frame, one row each.

        The columns are attributes of `Suggestion`; instead of ``before`` and ``after``, there are ``files_before``,
        ``files_after``, ``bytes_before`` and ``bytes_after``, null where unknown.
        """
        rows = [
            {
                "kind": s.kind, "column": s.column, "title": s.title, "unit": s.unit,
                "files_before": s.before and s.before.files, "files_after": s.after and s.after.files,
                "bytes_before": s.before and s.before.bytes, "bytes_after": s.after and s.after.bytes,
                "basis": s.basis, "why": s.why, "assumes": s.assumes, "statements": list(s.statements),
            }
            for s in self.suggestions
        ]  # fmt: skip
        return to_frame(pa.Table.from_pylist(rows, schema=_SCHEMA))

    @cached_property
    def columns(self) -> pd.DataFrame:
        """Return `clustering`, which has one row per column of the filter, as a data frame."""
        return to_frame(self.clustering)

    def __len__(self) -> int:
        return len(self.suggestions)

    def __repr__(self) -> str:
        return advice_text(self.filter, self.now, self.suggestions, self.clustering, self.notes)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        html = advice_html(self.filter, self.now, self.suggestions, self.clustering, self.notes)
        return {"text/plain": repr(self), "text/html": html}


_SCHEMA = build.schema(
    [
        ("kind", pa.string()), ("column", pa.string()), ("title", pa.string()), ("unit", pa.string()),
        ("files_before", pa.int64()), ("files_after", pa.int64()), ("bytes_before", pa.int64()),
        ("bytes_after", pa.int64()), ("basis", pa.string()), ("why", pa.string()), ("assumes", pa.string()),
        ("statements", pa.list_(pa.string())),
    ]
)  # fmt: skip
_CLUSTERING = build.schema(
    [
        ("column", pa.string()), ("files", pa.int64()), ("with_bounds", pa.int64()), ("depth", pa.float64()),
        ("deepest", pa.int64()), ("reads", pa.int64()), ("sorted", pa.int64()),
    ]
)  # fmt: skip


#: Apart from partitions and column metrics, `advise` uses only these columns of manifest entries. To save memory,
#: `_counted_only` fills all other columns with nulls.
_COUNTED = frozenset({"partition_spec_id", "record_count", "file_size_in_bytes"})


def _scene(plan: PlannedScan) -> Scene:
    """Read all data manifests, and collect the data that advice on a plan is based on.

    The result has the table's live data files (for an incremental plan, only the files that the planned snapshots
    added). It also has two masks of these files: one is True for files that remain after partition pruning, the other
    for files that remain after pruning by column metrics as well.
    """
    ids = plan.filter.stats_ids
    found = []
    for scan in plan.roots:
        for leaf in leaves_of(plan.state, scan, parts_of(ids), scan.rows.tolist(), ids):
            found.append(_counted_only(EntryBatch.of(leaf, ids)).filter(candidates(scan, leaf)))
    batch = concat_batches(found)
    rows, sizes = (counted(batch, name).astype(np.float64) for name in ("record_count", "file_size_in_bytes"))
    bare = EntryBatch(batch.entries, {}, batch.partition)
    return Scene(
        metadata=plan.state.metadata,
        table=plan.state.name,
        batch=batch,
        files=Files(partition_codes(batch), rows, sizes),
        left=_judged(plan, bare),
        kept=_judged(plan, batch),
        tasks=plan.files,
        now=Reading(len(plan.files), int(counted(plan.files.files, "file_size_in_bytes").sum())),
    )


def _counted_only(batch: EntryBatch) -> EntryBatch:
    """Return a copy of a batch in which all entry columns are null, except the few in `_COUNTED` that advice needs.

    This saves memory: the file locations of a million entries alone take 100 MB. Metrics and partitions are unchanged.
    """
    rows = len(batch)
    columns = [
        batch.entries.column(f.name) if f.name in _COUNTED else pa.nulls(rows, f.type) for f in batch.entries.schema
    ]
    return EntryBatch(pa.Table.from_arrays(columns, schema=batch.entries.schema), batch.stats, batch.partition)


def advise(plan: PlannedScan) -> Advice:
    """Suggest changes to the table that would let a scan with the plan's filter read fewer files or bytes.

    This reads every data manifest, including those that the plan prunes, but no data file.
    """
    scene = _scene(plan)
    found: list[Suggestion] = []
    clustering: list[dict[str, Any]] = []
    notes: list[str] = []
    single, several = by_column(plan.filter.expression)
    if not len(scene.batch):
        notes.append("the table has no data files")
    elif not scene.now.files:
        notes.append("the plan reads no data file: there is nothing to save")
    else:
        if plan.filter.expression == ALWAYS and not plan.filter.partition:
            notes.append("without a filter, every file is read, whatever the order of the rows")
        for field_id, parts in single.items():
            seen = column_advice(scene, field_id, all_of(*parts))
            found += seen.suggestions
            clustering += [] if seen.clustering is None else [seen.clustering]
            notes += seen.notes
        for part in several:
            if any(computed(part)):
                notes.append(f"{expression_sql(part, 'sql')}: advice does not cover functions of columns")
                continue
            names = ", ".join(dict.fromkeys(columns_of(part).values()))
            notes.append(
                f"an OR over several columns ({names}) skips a file only if each of its branches excludes the file, "
                "so the effect of sorting or partitioning by one of the columns is not estimated"
            )
        found += _upkeep(plan, scene)
    ranked = tuple(sorted((s for s in found if s.helps), key=_rank))
    table = pa.Table.from_pylist(clustering, schema=_CLUSTERING)
    return Advice(plan.filter.text, scene.now, ranked, table, tuple(dict.fromkeys(notes)))


def _upkeep(plan: PlannedScan, scene: Scene) -> Iterator[Suggestion]:
    """Yield suggestions to compact small files, to rewrite deletes and to cluster manifests."""
    metadata = scene.metadata
    yield from small_files(scene.table, metadata.properties, plan.files)
    yield from deletes(scene.table, metadata.has_deletion_vectors, plan.files)
    leaves = [leaf for leaf in plan.leaves if leaf.root_row is not None]
    # A V4 root manifest may list data files directly (`root_row` is then None). They are in no manifest that clustering
    # would rewrite, so they are not counted for the suggestion to cluster manifests.
    held = sum(leaf.files for leaf in plan.leaves if leaf.root_row is None)
    kept = sum(leaf.kept_files for leaf in leaves)
    yield from scattered_manifests(
        scene.table, len(leaves), sum(1 for leaf in leaves if leaf.kept_files), sum(leaf.length for leaf in leaves),
        sum(len(scan.rows) for scan in plan.roots), kept, len(scene.batch) - held,
        prunes=bool(len(scene.left)) and not bool(scene.left.all()),
    )  # fmt: skip


def _judged(plan: PlannedScan, batch: EntryBatch) -> Mask:
    """Return a mask of the files in a batch that may have a row which matches the plan's filter.

    The filter is evaluated on the partition tuples and column metrics of the batch. If the batch has no column metrics,
    only partition tuples can exclude files.
    """
    may, _ = plan.filter.evaluate(batch, plan.state.metadata)
    return np.asarray(may).astype(np.bool_)


def _rank(s: Suggestion) -> tuple[bool, int, int]:
    """Return a sort key for a suggestion: suggestions that save the most bytes, and then the most files, come first.

    Suggestions without an estimate come last.
    """
    return (s.before is None or s.after is None, -s.bytes_saved, -s.files_saved)
