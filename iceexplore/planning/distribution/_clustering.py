"""Measure clustering: how many data files have overlapping ranges of a column, overall and within partitions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError, nearest
from iceexplore.graph import to_frame
from iceexplore.manifests import EntryBatch, concat_batches
from iceexplore.metadata import PrimitiveType, Schema, TableMetadata
from iceexplore.planning.delete_index._codes import Ints, Mask, ranks
from iceexplore.planning.model._groups import partition_codes
from iceexplore.planning.scan._files import leaves_of, parts_of
from iceexplore.planning.scan._manifests import candidates
from iceexplore.render import Card, CardTable, card_html, card_text

if TYPE_CHECKING:
    import pandas as pd

    from iceexplore.planning.scan._result import PlannedScan

__all__ = ["Clustering", "clustering_of", "overlaps"]

#: If the table has no sort order, at most this many columns are measured by default: the first ones that have bounds.
_MOST_COLUMNS = 20


@dataclass(frozen=True, eq=False, repr=False)
class Clustering:
    """Measures of how well the data files are clustered by each column, computed from the bounds in column metrics.

    The range of a file goes from its lower to its upper bound of the column. The depth at a value is the number of
    files whose range contains the value: a query for this value cannot skip these files by their bounds. The depth of a
    file is the largest depth at any value in its range (as in Snowflake's ``average_depth``). It is 1 if no other range
    overlaps the file's range, as when the table is sorted by the column. It equals the number of files if all files
    have the same range. Bounds of long strings are truncated, so ranges may overlap although the values do not.

    Attributes
    ----------
    name
        The table's name.
    files
        The number of data files that the plan reads.
    columns
        An Arrow table with a row per measured column of the table. ``column`` is its name, ``files`` the number of
        files with both bounds, and ``constant`` the number of files whose two bounds are equal. ``average_depth`` and
        ``max_depth`` are the average and the maximum of the files' depths. ``average_overlaps`` is the average number
        of other files whose ranges overlap a file's range. ``partition_average_depth`` and ``partition_max_depth`` are
        the average and the maximum of depths that count only files of the same partition. High numbers in these two
        columns show that sorting within partitions would help. The two columns are null if no spec of the table is
        partitioned.
    notes
        Sentences about columns that were not measured. If the caller or the table's sort order chose the columns, a
        sentence names those of them that have no usable bounds. Otherwise only the first 20 columns of the schema that
        have bounds are measured, and a sentence is added if there are more.
    """

    name: str
    files: int
    columns: pa.Table
    notes: tuple[str, ...] = ()

    def to_pandas(self) -> pd.DataFrame:
        """Return `columns` as a data frame, with one row for each column whose clustering was measured."""
        return to_frame(self.columns)

    def to_dict(self) -> dict[str, Any]:
        """Return ``files``, ``columns`` (a list of dictionaries) and ``notes`` as plain Python values."""
        return {"files": self.files, "columns": build.to_pylist(self.columns), "notes": list(self.notes)}

    def card_table(self) -> CardTable:
        """Return the measures of each column as formatted texts, one row per column, for display in notebooks.

        These are the measures of `columns`, except ``constant``. Measures within partitions are left out if there are
        none.
        """
        rows = [
            (
                str(row["column"]), f"{row['files']:,}", f"{row['average_depth']:,.1f}", f"{row['max_depth']:,}",
                f"{row['average_overlaps']:,.1f}",
                *(() if self._whole else (f"{row['partition_average_depth']:,.1f}", f"{row['partition_max_depth']:,}")),
            )
            for row in build.to_pylist(self.columns)
        ]  # fmt: skip
        names = [
            "column", "files with bounds", "average depth (files per value)", "max depth (files per value)",
            "average overlaps",
        ]  # fmt: skip
        names += [] if self._whole else [
            "average depth within partitions", "max depth within partitions",
        ]  # fmt: skip
        right = frozenset(range(1, len(names)))
        return CardTable("Clustering", tuple(names), tuple(rows), code=frozenset({0}), right=right)

    @property
    def _whole(self) -> bool:
        """Return whether the table `columns` has no measures within partitions, such as ``partition_max_depth``.

        Notebooks then display no such measures. The result is true if no spec of the table is partitioned, or if
        `columns` has no rows.
        """
        return self.columns["partition_max_depth"].null_count == len(self.columns)

    def _card(self) -> Card:
        return Card(
            title=f"Clustering of {self.name}",
            facts=(("Data files", f"{self.files:,}"),),
            tables=(self.card_table(),) if len(self.columns) else (),
            notes=self.notes,
        )

    def __repr__(self) -> str:
        return card_text(self._card())

    def _repr_html_(self) -> str:
        return card_html(self._card())


_COLUMNS = build.schema(
    [
        ("column", pa.string()), ("files", pa.int64()), ("constant", pa.int64()), ("average_depth", pa.float64()),
        ("max_depth", pa.int64()), ("average_overlaps", pa.float64()), ("partition_average_depth", pa.float64()),
        ("partition_max_depth", pa.int64()),
    ]
)  # fmt: skip


def clustering_of(plan: PlannedScan, columns: Iterable[str] | None = None) -> Clustering:
    """Measure how well the data files that a plan reads are clustered by columns.

    This reads the data manifests that the plan reads, but no data file.

    Parameters
    ----------
    columns
        Names of the columns to measure; a field of a struct has a dotted name, such as ``address.city``. By default,
        the columns of the table's sort order are measured, or the first 20 columns with bounds if it has no sort order.

    Raises
    ------
    OptionError
        A name is unknown, or is that of a struct, list or map, or of a column inside a list or map.
    """
    metadata, schema = plan.state.metadata, plan.state.schema
    wanted, sure = _wanted(metadata, schema, columns)
    ids = list(wanted)
    every = sorted({*ids, *plan.filter.stats_ids})
    found = []
    for scan in plan.roots:
        for leaf in leaves_of(plan.state, scan, parts_of(every), scan.kept.tolist(), every):
            found.append(EntryBatch.of(leaf, every).filter(candidates(scan, leaf)))
    batch = concat_batches(found)
    batch = batch.filter(pa.array(np.asarray(plan.filter.evaluate(batch, metadata)[0]).astype(np.bool_)))
    group = partition_codes(batch)
    parted = any(not spec.is_unpartitioned for spec in metadata.partition_specs)
    rows: list[dict[str, Any]] = []
    without: list[str] = []
    for field_id in ids:
        row = _measured(wanted[field_id], batch.stats.get(field_id), group, parted=parted)
        if row is None:
            without.append(wanted[field_id])
        elif len(rows) < (len(ids) if sure else _MOST_COLUMNS):
            rows.append(row)
    notes = []
    if sure and without and len(batch):
        notes.append(f"No file has both bounds of these columns, or their values have no order: {', '.join(without)}.")
    if not sure and len(ids) - len(without) > len(rows):
        notes.append(
            f"The table has no sort order, so only its first {len(rows)} columns with bounds are shown; choose others "
            "with columns=."
        )
    return Clustering(plan.state.name, len(batch), pa.Table.from_pylist(rows, schema=_COLUMNS), tuple(notes))


def _wanted(metadata: TableMetadata, schema: Schema, columns: Iterable[str] | None) -> tuple[dict[int, str], bool]:
    """Return the columns whose clustering is to be measured, and whether the caller or the sort order chose them.

    Parameters
    ----------
    columns
        The names that the caller chose. If None, the columns of the table's sort order are returned or, if it has none,
        all primitive columns that are not inside a list or map.

    Returns
    -------
    names
        The columns' full names by field id.
    chosen
        True if the caller or the sort order chose the columns; False if all columns are returned because neither did.

    Raises
    ------
    OptionError
        A name is unknown, or is that of a struct, list or map, or of a column inside a list or map.
    """
    known = {name: f.field_id for name, f in _columns(schema)}
    if columns is not None:
        given = [columns] if isinstance(columns, str) else list(columns)
        for name in given:
            if name not in known:
                raise OptionError(f"{_refused(name, schema)}; {nearest(str(name), [*known])}")
        return {known[name]: name for name in given}, True
    order = next((o for o in metadata.sort_orders if o.order_id == metadata.default_sort_order_id), None)
    names = {field_id: name for name, field_id in known.items()}
    sources = [i for f in (() if order is None else order.fields) for i in f.source_ids if i in names]
    return ({i: names[i] for i in sources}, True) if sources else (names, False)


def _columns(schema: Schema) -> list[tuple[str, Any]]:
    """Return the primitive columns that are not inside a list or map, as pairs of full name and schema field."""
    repeated: list[str] = []
    out = []
    for name, f in schema.walk():
        if any(name.startswith(f"{outer}.") for outer in repeated):
            continue
        if isinstance(f.type, PrimitiveType):
            out.append((name, f))
        elif not hasattr(f.type, "fields"):
            repeated.append(name)
    return out


def _refused(name: object, schema: Schema) -> str:
    """Return why the clustering of a column cannot be measured, as the beginning of an error message.

    ``name`` is the name that the caller gave. It is not the name of a column whose clustering can be measured (see
    `_columns`).
    """
    found = next((f for full, f in schema.walk() if full == name), None)
    if found is None:
        return f"no column {name!r}"
    if isinstance(found.type, PrimitiveType):
        return f"column {name!r} is inside a list or map, so a row has several values"
    return f"column {name!r} has type {found.type}, whose values have no order"


def _measured(name: str, stats: pa.StructArray | None, group: Ints, *, parted: bool) -> dict[str, Any] | None:
    """Measure how much the files' ranges of one column overlap, and return a row of `Clustering.columns`.

    Only files with both bounds of the column are measured. The result is None if there are none, or if values of the
    column's type cannot be compared.

    Parameters
    ----------
    name
        The column's name.
    stats
        The column's metrics, one item per data file; None if no data file has metrics of the column.
    group
        One number per data file: files with the same number are in the same partition.
    parted
        Whether at least one of the table's specs is partitioned. If not, the columns with measures within partitions,
        such as ``partition_max_depth``, are null.
    """
    order = None if stats is None else ranks(*(pc.struct_field(stats, side) for side in ("lower", "upper")))
    if order is None:
        return None
    low, high = order
    known: Mask = (low >= 0) & (high >= low)
    if not known.any():
        return None
    low, high, group = low[known], high[known], group[known]
    depth, others = overlaps(low, high)
    inner = overlaps(low, high, group)[0] if parted else None
    return {
        "column": name,
        "files": len(low),
        "constant": int((low == high).sum()),
        "average_depth": float(depth.mean()),
        "max_depth": int(depth.max()),
        "average_overlaps": float(others.mean()),
        "partition_average_depth": None if inner is None else float(inner.mean()),
        "partition_max_depth": None if inner is None else int(inner.max()),
    }


def overlaps(low: Ints, high: Ints, group: Ints | None = None) -> tuple[Ints, Ints]:
    """Return the depth of each range, and the number of other ranges that overlap it.

    The ends of the ranges are given as ranks. The rank of a value is its position among all distinct values, in
    ascending order. For each rank in a range, count the ranges that contain this rank: the depth of the range is the
    highest of these counts. For example, of the ranges 0 to 2, 1 to 1 and 2 to 3, two contain rank 1, and two contain
    rank 2. So all three have depth 2. The first range overlaps two others; the second and the third overlap one each.

    Parameters
    ----------
    low, high
        The first and the last rank of each range, both inclusive; ranks are integers from 0.
    group
        The group of each range, as a number from 0; ranges of different groups do not count as overlapping. None if all
        ranges are in one group.
    """
    count = len(low)
    if group is not None:
        width = int(high.max(initial=0)) + 1
        # `low` and `high` are ranks: positions of the bounds among all distinct bounds, in ascending order. Add a
        # different offset to the ranks of each group, so that ranges of different groups never overlap. The sums have
        # gaps, which would cost memory, because the arrays below have one item for each number up to the highest. So
        # replace the distinct sums by 0, 1, 2 and so on, in the same order.
        both = np.concatenate([group * width + low, group * width + high])
        low, high = np.split(np.unique(both, return_inverse=True)[1], 2)
    size = int(high.max(initial=-1)) + 1
    starts, stops = np.bincount(low, minlength=size), np.bincount(high, minlength=size)
    begun = np.cumsum(starts)
    # `stops[r]` is the number of ranges whose last rank (in `high`) is r. So `ended[r]` is the number of ranges that
    # end at a lower rank.
    ended = np.cumsum(stops) - stops
    others = begun[high] - ended[low] - 1
    level = (begun - ended).astype(np.int64)
    out = np.zeros(count, dtype=np.int64)
    power = np.frexp((high - low + 1).astype(np.float64))[1].astype(np.int64) - 1
    for step in range(int(power.max(initial=-1)) + 1):
        # Find the largest depth in each range, with a sparse table for range maximum queries.
        #
        # The ends of the ranges are integers from 0. The depth at an integer is the number of ranges that contain it.
        # In this step, ``level[r]`` is the largest depth in the block of 2**step integers from r on: in step 1, for
        # example, at r and r + 1. `mine` selects the ranges that contain at least 2**step integers, but fewer than
        # twice as many. Two blocks, which may overlap, cover such a range: one begins where the range begins, the other
        # ends where it ends. So the largest depth in the range is the larger `level` of these two blocks.
        mine = power == step
        out[mine] = np.maximum(level[low[mine]], level[high[mine] - (1 << step) + 1])
        level = np.maximum(level[: -(1 << step)], level[1 << step :])
    return out, others.astype(np.int64)
