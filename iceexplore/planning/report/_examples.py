"""Suggest example values and filters to users who do not know a table yet."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import PlainValue
from iceexplore.arrow import compute as pc
from iceexplore.expressions import COMPARABLE, Column, Columns, literal_sql, name_sql
from iceexplore.graph import TableState, live_manifests
from iceexplore.manifests import ContentType, EntryBatch, Manifest, bool_array, live, whole
from iceexplore.metadata import ListType, MapType, StructType, Type, format_value, type_base
from iceexplore.planning.evaluators._column_metrics import Mask, comparable

__all__ = ["Examples", "examples_of"]

_FILES = 500
#: The first manifests in a manifest list may have no live files, only entries with the status DELETED. To find a
#: manifest with live files, at most this number of manifests is read.
_MANIFESTS = 5
_COLUMNS = 200
_VALUES = 5
_LONGEST = 40
_FILTERS = 4
_TEMPORAL = frozenset(("date", "time", "timestamp", "timestamp_ns", "timestamptz", "timestamptz_ns"))


@dataclass(frozen=True)
class Examples:
    """Example values and filters of a table.

    Attributes
    ----------
    values
        By field id, up to five values of the column as SQL, ascending. They are lower or upper bounds of data files, so
        texts may be truncated.
    filters
        Up to four filters as SQL. They compare columns with their bounds, or select nulls. The tuple is empty if no
        bound can be used and no column is known to have nulls.
    """

    values: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    filters: tuple[str, ...] = ()


def examples_of(state: TableState) -> Examples:
    """Return example values and filters for a table, taken from the bounds in one data manifest.

    To limit the work, only the first 500 entries of data files in the manifest are used, and only the first 200 columns
    that have metrics. If the root manifest of a V4 table lists data files itself, these files are used instead of those
    in another manifest. For a table without data files, there are no examples.
    """
    leaf = _first_leaf(state)
    if leaf is None:
        return Examples()
    by_id = {c.field.field_id: c for c in Columns(state.schema).every()}
    ids = [i for i in leaf.stat_field_ids() if i in by_id][:_COLUMNS]
    batch = EntryBatch.of(leaf, ids)
    batch = batch.take(np.flatnonzero(_live_data(batch.entries))[:_FILES])
    values: dict[int, tuple[str, ...]] = {}
    middle: dict[int, str] = {}
    nulls: list[Column] = []
    for number, stats in batch.stats.items():
        column = by_id[number]
        found = [t for v in _bounds(stats, column.field.type) if (t := _text(v, column.field.type)) is not None]
        if found:
            values[number], middle[number] = _some(found), found[len(found) // 2]
        if pc.any(pc.greater(pc.struct_field(stats, "null_count"), 0)).as_py():
            nulls.append(column)
    chosen = [by_id[i] for i in _order(state, list(values))]
    return Examples(values, tuple(_filters(chosen, middle, nulls)))


def _first_leaf(state: TableState) -> Manifest | None:
    """Return the first data manifest that has a live data file; None if none is found.

    At most `_MANIFESTS` data manifests are read. If the root manifest of a V4 table itself lists a live data file, the
    result is instead a `Manifest` object with the root manifest's entries for files, without its entries for manifests.
    """
    root = state.root()
    if root is None:
        return None
    direct = state.reader.direct(root)
    if direct is not None and _live_data(direct.entries).any():
        return direct
    rows = live_manifests(root, {int(ContentType.DATA_MANIFEST)})[:_MANIFESTS]
    leaves = (state.reader.leaf(root, row, frozenset({"entries", "stats"})) for row in rows)
    return next((leaf for leaf in leaves if _live_data(leaf.entries).any()), None)


def _live_data(entries: pa.Table) -> Mask:
    return bool_array(pc.and_(live(entries), whole(pc.equal(entries["content_type"], int(ContentType.DATA)))))


def _bounds(stats: pa.StructArray, kind: Type) -> list[Any]:
    """Return the distinct lower and upper bounds of a column in ascending order.

    A bound has the form in which Iceberg stores it: a date, for example, is the number of days since 1970-01-01. The
    list is empty if the values of the column cannot be ordered.

    Parameters
    ----------
    stats
        The metrics of the column: one struct per file, with the fields ``lower`` and ``upper``, among others.
    kind
        The type of the column.
    """
    if isinstance(kind, StructType | ListType | MapType) or type_base(kind) not in COMPARABLE:
        return []
    both = [comparable(pc.struct_field(stats, name)) for name in ("lower", "upper")]
    found = {v for array in both for v in array.drop_null().to_pylist()}
    try:
        return sorted(found)
    except TypeError:  # a precaution: both bounds have the same Arrow type, so they should be comparable
        return []


def _text(value: PlainValue, kind: Type) -> str | None:
    """Return a stored value as a short SQL literal; None for infinity, NaN, and long or unprintable texts.

    Unlike `literal_sql`, this leaves out the type of floats, dates and times: ``1.5`` instead of ``1.5D``, and
    ``'2024-05-03'`` instead of ``DATE '2024-05-03'``. A literal is too long if it has more than `_LONGEST` characters.
    """
    base = type_base(kind)
    if isinstance(value, float):
        return str(np.float32(value) if base == "float" else value) if math.isfinite(value) else None
    if isinstance(value, int) and base == "boolean":
        return str(bool(value)).lower()
    if isinstance(value, int) and base in _TEMPORAL:
        return f"'{format_value(kind, value)}'"
    text = literal_sql(value, kind, "sql")
    return text if len(text) <= _LONGEST and text.isprintable() else None


def _some(found: Sequence[str]) -> tuple[str, ...]:
    """Return at most five items of ``found``: the first, the last, and three at regular intervals between them.

    If there are at most five, all are returned.
    """
    if len(found) <= _VALUES:
        return tuple(found)
    at = np.linspace(0, len(found) - 1, _VALUES).round().astype(int)
    return tuple(found[i] for i in at)


def _order(state: TableState, ids: list[int]) -> list[int]:
    """Sort field ids such that the columns by which users most probably filter come first.

    The source columns of partition fields come first, then the identifier fields, then the other columns in the order
    of the schema.
    """
    sources = [i for spec in state.metadata.partition_specs for f in spec.fields for i in f.source_ids]
    first = [*sources[::-1], *sorted(state.schema.identifier_field_ids)]
    place = {c.field.field_id: i for i, c in enumerate(Columns(state.schema).every())}
    return sorted(ids, key=lambda i: (first.index(i) if i in first else len(first), place[i]))


def _filters(columns: Sequence[Column], middle: Mapping[int, str], nulls: Sequence[Column]) -> Iterator[str]:
    """Yield up to four filters as SQL.

    The first filters, at most three, compare one column each, as in ``id = 5``. Each compares a column of a different
    type: of two columns of the type long, only the first is compared. All date and time types count as one type.
    Columns of the types binary and fixed are not compared.

    One more filter may follow. If there are two or three comparisons, it joins the first two with ``and``. If there are
    fewer, it tests whether the first column in ``nulls`` is null; if ``nulls`` is empty, it is left out.

    Parameters
    ----------
    columns
        The columns to compare, the preferred ones first.
    middle
        By field id, the value with which a column is compared, as SQL. It is the median of the column's known bounds.
    nulls
        The columns that have nulls in some file.
    """
    made: list[str] = []
    kinds: set[str] = set()
    for column in columns:
        base = type_base(column.field.type)
        kind = "time" if base in _TEMPORAL else base
        if kind in kinds or base in ("binary", "fixed") or len(made) == _FILTERS - 1:
            continue
        kinds.add(kind)
        sign = "=" if base in ("int", "long", "string", "boolean", "uuid") else ">="
        value = middle[column.field.field_id]
        if base.startswith("timestamp") and value[5:6] == "-":
            value = f"{value[:11]}'"  # shorten the timestamp to its date
        made.append(f"{name_sql(column.name)} {sign} {value}")
    yield from made
    if len(made) > 1:
        yield f"{made[0]} and {made[1]}"
    elif nulls:
        yield f"{name_sql(nulls[0].name)} is null"
