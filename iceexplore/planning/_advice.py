"""What would help a filter: order, partition fields, statistics, compaction; each with what it reads now and then."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.graph import to_frame
from iceexplore.manifests import EntryBatch, concat_batches, whole
from iceexplore.metadata import TableMetadata
from iceexplore.planning._advice_axis import by_column, spans
from iceexplore.planning._advice_partition import candidates as partition_fields
from iceexplore.planning._advice_shown import advice_html, advice_text
from iceexplore.planning._advice_spread import Files, Reading, Spread
from iceexplore.planning._advice_sql import add_partition_field, call, options, sort
from iceexplore.planning._advice_upkeep import (
    Suggestion,
    amount,
    cut_bounds,
    deletes,
    missing_bounds,
    scattered_manifests,
    small_files,
)
from iceexplore.planning._expression import Expression, Predicate, all_of, predicates
from iceexplore.planning._layout_groups import partition_codes
from iceexplore.planning._partition_values import partition_columns
from iceexplore.planning._plan_leaves import leaves_of, parts_of
from iceexplore.planning._plan_roots import candidates

if TYPE_CHECKING:
    import pandas as pd

    from iceexplore.planning._scan_plan import ScanPlan

__all__ = ["Advice", "advise"]

#: What bounds never rule out, and why.
_POWERLESS = {
    "!=": "a file is skipped only if every row has this one value, which needs bounds that are equal",
    "not-in": "a file is skipped only if every row has one of these values, which needs bounds that are equal",
    "not-null": "a file is skipped only if every row is null",
    "not-nan": "a file is skipped only if every row is NaN",
    "not-starts-with": "a file is skipped only if both of its bounds begin so",
}


@dataclass(frozen=True)
class Advice:
    """What would help, the best first. Shows itself as a list.

    An estimate takes values to be spread evenly between the bounds of each file, and as many files as now of about the
    same size. It knows nothing of other queries: what helps one filter may cost another.

    Attributes
    ----------
    filter
        For whom, as text.
    now
        What the plan reads.
    suggestions
        Ranked by bytes that need not be read, then by files; those without numbers last. What adds files whose opening
        costs more than is saved (4 MiB each, Iceberg's ``read.split.open-file-cost``) is left out.
    clustering
        A row per column of the filter that has bounds: ``column``; ``files`` and ``with_bounds``; ``depth``, how many
        files' ranges lie over one another on average, and ``deepest``; ``reads``, files that the conditions on this
        column leave alone, and ``sorted``, what they would leave if each partition were sorted by it.
    """

    filter: str
    now: Reading
    suggestions: tuple[Suggestion, ...]
    clustering: pa.Table

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row per suggestion."""
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
        """`clustering` for pandas."""
        return to_frame(self.clustering)

    def __len__(self) -> int:
        return len(self.suggestions)

    def __repr__(self) -> str:
        return advice_text(self.filter, self.now, self.suggestions, self.clustering)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        html = advice_html(self.filter, self.now, self.suggestions, self.clustering)
        return {"text/plain": repr(self), "text/html": html}


_SCHEMA = pa.schema(
    [
        ("kind", pa.string()), ("column", pa.string()), ("title", pa.string()), ("unit", pa.string()),
        ("files_before", pa.int64()), ("files_after", pa.int64()), ("bytes_before", pa.int64()),
        ("bytes_after", pa.int64()), ("basis", pa.string()), ("why", pa.string()), ("assumes", pa.string()),
        ("statements", pa.list_(pa.string())),
    ]
)  # fmt: skip
_CLUSTERING = pa.schema(
    [
        ("column", pa.string()), ("files", pa.int64()), ("with_bounds", pa.int64()), ("depth", pa.float64()),
        ("deepest", pa.int64()), ("reads", pa.int64()), ("sorted", pa.int64()),
    ]
)  # fmt: skip


def advise(plan: ScanPlan) -> Advice:
    """Look for what would help a plan's filter. Reads every manifest of data files, pruned ones too; no data file."""
    return _Work(plan).advice()


class _Work:
    """The live data files of the table, and which of them the filter leaves, at each level."""

    def __init__(self, plan: ScanPlan) -> None:
        self.plan = plan
        self.metadata = plan.state.metadata
        self.table = plan.state.name
        self.batch = _every(plan)
        entries = self.batch.entries
        rows, sizes = (
            np.asarray(pc.fill_null(whole(entries[n]), 0)).astype(np.float64)
            for n in ("record_count", "file_size_in_bytes")
        )
        self.files = Files(partition_codes(self.batch), np.maximum(rows, 0.0), np.maximum(sizes, 0.0))
        bare = EntryBatch(entries, {}, self.batch.partition)
        self.left = _judged(plan, bare)
        self.kept = _judged(plan, self.batch)
        task_sizes = pc.sum(plan.files.files.entries["file_size_in_bytes"]).as_py() or 0
        self.now = Reading(len(plan.files), int(task_sizes))

    def advice(self) -> Advice:
        """Everything, ranked."""
        found: list[Suggestion] = []
        clustering: list[dict[str, Any]] = []
        single, several = by_column(self.plan.filter.expression)
        if len(self.batch):
            for field_id, parts in single.items():
                found += self.column(field_id, all_of(*parts), clustering)
        for part in several:
            names = ", ".join(dict.fromkeys(p.name for p in predicates(part)))
            found.append(
                Suggestion(
                    "filter", f"an OR over several columns ({names})",
                    "it is pruned only where each side is: no one order of the rows helps. Two scans, one a side, "
                    "may read less.",
                )
            )  # fmt: skip
        found += self.upkeep()
        ranked = sorted((s for s in found if s.helps), key=_rank)
        table = pa.Table.from_pylist(clustering, schema=_CLUSTERING)
        return Advice(self.plan.filter.text, self.now, tuple(ranked), table)

    def column(self, field_id: int, expression: Expression, clustering: list[dict[str, Any]]) -> Iterator[Suggestion]:
        """What concerns one column: order, partition fields, statistics."""
        terms = list(predicates(expression))
        name = terms[0].name
        for p in terms:
            if p.op in _POWERLESS:
                yield Suggestion("filter", f"{p.text or p.op} hardly prunes", f"{_POWERLESS[p.op]}.", column=name)
        stats = self.batch.stats.get(field_id)
        yield from missing_bounds(self.table, name, stats, self.batch, self.left, self.kept, self.now)
        spread = None if stats is None else Spread.of(stats)
        if stats is None or spread is None:
            return
        yield from cut_bounds(self.table, name, terms, stats, self.batch, self.kept, self.now)
        wanted = spans(expression, spread.axis)
        if wanted is None:
            return
        distinct = _distinct(self.metadata, field_id)
        assumes = "values are spread evenly between bounds; as many files as now in each partition"
        if distinct is None and spread.axis.step == 0:
            distinct = _by_column_size(stats)
            if any(low == high for low, high in wanted):
                guess = (
                    "few rows share a value"
                    if distinct is None
                    else f"about {distinct:,.0f} values, by the column's bytes"
                )
                assumes += f"; {guess}"
        pool, own = self.files.take(self.left), spread.take(self.left)
        alone = sum(own.touched(_each(pool), span).astype(int) for span in wanted) if len(pool.rows) else np.zeros(0)
        ordered = own.sorted(pool, wanted, distinct) if own.known.any() else None
        depth, deepest = spread.depth()
        clustering.append(
            {
                "column": name, "files": len(self.batch), "with_bounds": int(spread.known.sum()), "depth": depth,
                "deepest": deepest, "reads": int((np.asarray(alone) > 0).sum()),
                "sorted": None if ordered is None else ordered.files,
            }
        )  # fmt: skip
        if ordered is not None:
            yield Suggestion(
                "sort", f"sort by {name}",
                f"the ranges of {name} overlap {depth:,.1f} deep on average ({deepest:,} at most, in "
                f"{len(self.batch):,} files): sorted within partitions, this filter would read "
                f"{amount(ordered.files, 'file')} instead of {self.now.files:,}.",
                self.now, ordered, statements=sort(self.table, name, self.files), assumes=assumes, column=name,
            )  # fmt: skip
        yield from self.partitioning(field_id, terms[0], spread, wanted, distinct)

    def partitioning(
        self, field_id: int, term: Predicate, spread: Spread, wanted: Any, distinct: float | None
    ) -> Iterator[Suggestion]:
        """Partition fields on a column; and files of specs that lack one which the table has."""
        spec = self.metadata.spec()
        fields = [] if spec is None else partition_columns(self.metadata, spec)
        mine = [c for c in fields if c.source is not None and c.source.field_id == field_id]
        names = {c.field.transform for c in mine}
        if term.type is None:
            return
        for found in partition_fields(term.type, spread, self.files, self.left, wanted, distinct):
            count = len(self.batch)
            if found.name in names:
                old = self.old_specs(names)
                if old:
                    yield Suggestion(
                        "old-spec", "rewrite files of older specs",
                        f"{old:,} of the {self.now.files:,} files read were written before the table was partitioned "
                        f"by {found.transform.format(term.name)}.",
                        self.now, found.after, statements=(
                            call("rewrite_data_files", self.table, options=options(rewrite_all="true")),
                        ), assumes="values are spread evenly between bounds", column=term.name,
                    )  # fmt: skip
                continue
            coarser = next((c.field.name for c in mine if _finer(found.name, c.field.transform)), None)
            assumes = "values are spread evenly between bounds" + (f"; {found.assumes}" if found.assumes else "")
            made = found.transform.format(term.name)
            yield Suggestion(
                "partition", f"partition by {made}",
                f"partitioned by {made} this filter would read {amount(found.after.files, 'file')} instead of "
                f"{self.now.files:,}; the table would have about {found.files:,} data files ({count:,} now).",
                self.now, found.after, statements=add_partition_field(self.table, term.name, found.transform, coarser),
                assumes=assumes, column=term.name,
            )  # fmt: skip

    def old_specs(self, transforms: set[str]) -> int:
        """How many files that are read are of a spec without the fields that the table now has."""
        numbers = np.asarray(pc.fill_null(whole(self.plan.files.files.entries["partition_spec_id"]), -1))
        newest = self.metadata.default_spec_id
        return int((numbers != newest).sum()) if transforms else 0

    def upkeep(self) -> Iterator[Suggestion]:
        """What neglect costs."""
        plan = self.plan
        yield from small_files(self.table, self.metadata.properties, plan.files)
        yield from deletes(self.table, self.metadata.format_version, plan.files)
        leaves = [leaf for leaf in plan.leaves if leaf.root_row is not None]
        held = sum(leaf.files for leaf in plan.leaves if leaf.root_row is None)
        kept = sum(leaf.kept_files for leaf in leaves)
        yield from scattered_manifests(
            self.table, len(leaves), sum(1 for leaf in leaves if leaf.kept_files), sum(leaf.length for leaf in leaves),
            sum(len(scan.rows) for scan in plan.roots), kept, len(self.batch) - held,
            prunes=bool(len(self.left)) and not bool(self.left.all()),
        )  # fmt: skip


def _every(plan: ScanPlan) -> EntryBatch:
    """The live data files of the plan's roots, with the statistics of the filter's columns."""
    ids = plan.filter.field_ids
    found = []
    for scan in plan.roots:
        for leaf in leaves_of(plan.state, scan, parts_of(ids), scan.rows.tolist()):
            found.append(EntryBatch.of(leaf, ids).filter(candidates(scan, leaf)))
    return concat_batches(found)


def _judged(plan: ScanPlan, batch: EntryBatch) -> npt.NDArray[np.bool_]:
    may, _ = plan.filter.judge(batch, plan.state.metadata)
    return np.asarray(may).astype(np.bool_)


def _each(files: Files) -> Files:
    """Every file a group of its own."""
    return Files(np.arange(len(files.rows), dtype=np.int64), files.rows, files.bytes)


def _distinct(metadata: TableMetadata, field_id: int) -> float | None:
    """How many values a column has, from the newest statistics file that says so (spec, "Table Statistics")."""
    for statistics in reversed(metadata.statistics):
        for blob in statistics.blob_metadata:
            text = (blob.properties or {}).get("ndv", "")
            if tuple(blob.fields) == (field_id,) and text.isascii() and text.isdigit() and len(text) < 19:
                return float(text) or None
    return None


def _rank(s: Suggestion) -> tuple[bool, bool, int, int]:
    return (s.before is None or s.after is None, s.kind == "filter", -s.bytes_saved, -s.files_saved)


def _by_column_size(stats: pa.StructArray) -> float | None:
    """How many values a column seems to have: with b bits a value there are about 2 to the power of b of equal weight.

    Dictionary encoding stores a column of few values in few bits. Files of one value alone tell nothing. None where
    sizes are not known, and where there are so many values that a single one hardly counts.
    """
    lower, upper, sizes, values = (pc.struct_field(stats, n) for n in ("lower", "upper", "column_size", "value_count"))
    known = pc.and_(pc.greater(sizes, 0), pc.greater(values, 0))
    mask = pc.fill_null(pc.and_(known, pc.not_equal(lower, upper)), False)
    if not pc.any(mask).as_py():
        return None
    bits = 8.0 * np.asarray(sizes.filter(mask)).astype(np.float64) / np.asarray(values.filter(mask)).astype(np.float64)
    typical = float(np.median(bits))
    return 2.0**typical if typical < 16 else None


_UNITS = ("hour", "day", "month", "year")


def _finer(new: str, old: str) -> bool:
    """Whether one field makes another needless: a finer unit of time, more buckets never."""
    return new in _UNITS and old in _UNITS and _UNITS.index(new) < _UNITS.index(old)
