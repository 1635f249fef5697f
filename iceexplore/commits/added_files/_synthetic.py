"""Create synthetic data files: entries without data, with plausible statistics that fit the partitions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyColumn, Strings, build
from iceexplore.arrow import compute as pc
from iceexplore.commits.added_files._synthetic_partitions import Constraint, constraints_of
from iceexplore.commits.added_files._synthetic_values import LETTERS, Numbers, line_of, values_on
from iceexplore.commits.model._writer import CommitWriter
from iceexplore.errors import OptionError
from iceexplore.graph import TableState
from iceexplore.manifests import ENTRY_SCHEMA, ContentType, EntryBatch, Manifest, stats_type
from iceexplore.metadata import (
    PartitionSpec,
    arrow_type,
    fixed_length,
    is_known_transform,
    is_variable_length,
    type_base,
)
from iceexplore.planning import PartitionColumn, partition_columns, tuples_of
from iceexplore.reading import SYNTHETIC_FOLDER
from iceexplore.writing import StatColumn, partition_path, stat_columns, truncate_lower, truncate_upper

__all__ = [
    "Counts",
    "counts_of",
    "null_share",
    "synthetic_column_files",
    "synthetic_files",
    "synthetic_folder",
    "uuid_strings",
]

_LEAVES_READ = 4
_TUPLES = 1000
_NEW_TUPLES = 10
_MOST_FILES = 20_000_000
#: For types whose values vary in length: the length in bytes that the statistics of a column give both as the average
#: and as the maximum length of its values.
_WIDTH = {"string": LETTERS, "binary": 8}
#: The approximate size in bytes of one value of a type in a Parquet file, encoded and compressed.
_STORED = {"boolean": 0.2, "int": 3, "float": 4, "date": 1.5, "uuid": 16, "string": 6, "binary": 8}
#: Shares of null values in optional columns. Each column has the share at index ``field id % 4``.
_NULLS = (0.0, 0.0, 0.01, 0.1)
#: How far the bounds of one file may be apart, as a share of the column's range of values. For example, a column with
#: values from 0 to 1000 and the share 0.02 may have the bounds 500 and 520 in one file. A small share is typical of a
#: column by which the rows are sorted, a large one of other columns. The share of a column is that at the index
#: ``field id % 3``.
_COVERS = (0.02, 0.3, 0.95)


def synthetic_folder(table_location: str) -> str:
    """Return the folder part (with the final slash) of synthetic files' locations; nothing is ever written there."""
    return f"{table_location.rstrip('/')}/{SYNTHETIC_FOLDER}/"


@dataclass(frozen=True)
class Counts:
    """The row count and partition of each new file.

    Attributes
    ----------
    spec, columns
        The partition spec of the files, and its partition columns.
    tuples
        The distinct partition tuples of the files; None if the table is not partitioned.
    of
        For each file, the index of its partition in ``tuples``.
    rows
        For each file, the number of its rows.
    constraints
        The result of `constraints_of`: for each column from which a partition field is derived, by the column's field
        id, the values that it may have in each partition. Empty if the table is not partitioned.
    """

    spec: PartitionSpec
    columns: list[PartitionColumn]
    tuples: pa.StructArray | None
    of: Numbers
    rows: Numbers
    constraints: dict[int, Constraint]


def counts_of(
    state: TableState,
    files: int,
    rows: int | Sequence[int],
    partitions: Sequence[Any] | None,
    rng: np.random.Generator,
    now_ms: int,
) -> Counts:
    """Return the row count and partition of each file, after validating the arguments.

    Parameters
    ----------
    files
        The number of files.
    rows
        The number of rows of each file: one number for all files, or a list with one number per file.
    partitions
        The partitions to which the files are assigned in turn, as dictionaries from names of partition fields to
        values. If this is None, the files get partitions from the table's newest manifests. If these manifests have no
        usable partition, for example because their files have an older partition spec, new partitions are generated.
    rng
        The random generator for new partitions, and for values in the buckets of partitions.
    now_ms
        The time of the commit, in milliseconds since 1970. Generated dates and timestamps are up to 30 days older.

    Raises
    ------
    OptionError
        ``files`` or ``rows`` is out of range, or the length of the list ``rows`` differs from ``files``.
        ``partitions`` is empty or not a list, or is given for a table without partitions. A partition field is unknown
        or missing, or no row can have one of the partition tuples. The table's default partition spec is missing.
    """
    if isinstance(files, bool) or not 1 <= files <= _MOST_FILES:
        raise OptionError(f"files={files!r}: expected 1 to {_MOST_FILES:,}")
    each = np.asarray(rows)
    if each.dtype.kind not in "iu" or each.ndim > 1 or (each.ndim == 1 and len(each) != files) or (each < 1).any():
        raise OptionError(
            f"rows={rows!r}: expected the number of rows per file (at least 1), or a list of {files} such numbers"
        )
    spec = state.metadata.spec()
    if spec is None:
        raise OptionError("the table's default partition spec is missing: files cannot be added")
    columns = partition_columns(state.metadata, spec)
    counts = np.broadcast_to(each.astype(np.int64), (files,))
    if not columns:
        if partitions:
            raise OptionError("partitions: the table is not partitioned")
        return Counts(spec, [], None, np.zeros(files, np.int64), counts, {})
    if partitions is not None:
        if isinstance(partitions, (str, dict)) or not hasattr(partitions, "__len__") or not len(partitions):
            raise OptionError(f"partitions={partitions!r}: give a list of dictionaries, one per partition")
        tuples = tuples_of(columns, partitions)
        of = np.arange(files) % len(tuples)
    else:
        tuples = _tuples(state, columns, spec, min(files, _TUPLES), now_ms, rng)
        of = np.arange(files) % len(tuples)
    tuples = tuples.take(build.array(np.unique(of)))
    return Counts(spec, columns, tuples, of, counts, constraints_of(columns, tuples, now_ms, rng))


def _tuples(
    state: TableState,
    columns: list[PartitionColumn],
    spec: PartitionSpec,
    most: int,
    now_ms: int,
    rng: np.random.Generator,
) -> pa.StructArray:
    """Return at most ``most`` different partition tuples of ``spec``, from the table's newest manifests if possible.

    The manifests from `_newest` are read in order. The result has the partition tuples of the first manifest that lists
    files of this spec. A manifest is skipped if its tuples cannot be cast to the spec's types, or if one of them is
    impossible (no row can have it). If all manifests are skipped, at most ten new tuples are generated.

    Parameters
    ----------
    now_ms
        The time of the commit, in milliseconds since 1970. Generated dates and timestamps are up to 30 days older.
    rng
        The random generator for new tuples.
    """
    kind = pa.struct([pa.field(c.key, arrow_type(c.type)) for c in columns])
    for leaf in _newest(state):
        partition = leaf.partition()
        if partition is None:
            continue
        mine = pc.equal(leaf.entries["partition_spec_id"], spec.spec_id)
        children = {child.name: pc.struct_field(partition, [i]) for i, child in enumerate(partition.type)}
        if not all(c.key in children for c in columns):
            continue
        try:
            table = pa.table({f.name: children[f.name].cast(f.type) for f in kind}).filter(mine)
            table = table.group_by(table.column_names, use_threads=False).aggregate([]).slice(0, most).combine_chunks()
            arrays = [cast(AnyArray, table.column(f.name).chunk(0)) for f in kind] if table.num_rows else []
            if arrays:
                found = pa.StructArray.from_arrays(arrays, fields=list(kind))
                constraints_of(columns, found, now_ms, rng)
                return found
        except (OptionError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue  # this manifest's tuples cannot be cast to the spec's types, or no row can have one of them
    count = min(most, _NEW_TUPLES)
    chosen: dict[int, AnyArray] = {}
    made: list[AnyArray] = []
    for column in columns:
        if not column.sources or not is_known_transform(column.field.transform):
            made.append(build.nulls(count, arrow_type(column.type)))
            continue
        for source in column.sources:
            if source.field_id not in chosen:
                low, high = line_of(source.type, source.field_id, now_ms)
                chosen[source.field_id] = values_on(source.type, rng.integers(low, high, count, endpoint=True))
        values = [chosen[source.field_id] for source in column.sources]
        made.append(column.transform.apply_several([s.type for s in column.sources], values))
    return pa.StructArray.from_arrays(made, fields=list(kind))


def _newest(state: TableState) -> Iterator[Manifest]:
    """Yield the newest manifests of the state's snapshot, in which `_tuples` looks for partitions.

    If a V4 root lists files directly, the entries of these files are yielded first, as if they were a manifest. Then
    follow up to four data manifests: those with the highest sequence numbers, the newest first.
    """
    root = state.root()
    if root is None:
        return
    direct = state.reader.direct(root)
    kinds = root.entries["content_type"].to_numpy()
    added = pc.fill_null(root.entries["sequence_number"], 0).to_numpy()
    rows = np.flatnonzero(kinds == int(ContentType.DATA_MANIFEST))
    rows = rows[np.argsort(-added[rows], kind="stable")][:_LEAVES_READ]
    if direct is not None:
        yield direct
    for row in rows.tolist():
        yield state.reader.leaf(root, row, frozenset({"entries", "partition"}))


def synthetic_files(
    state: TableState, counts: Counts, writer: CommitWriter, rng: np.random.Generator, bytes_per_row: float | None
) -> EntryBatch:
    """Return the entries of synthetic files, computed for all files at once.

    Parameters
    ----------
    counts
        The row count and partition of each file.
    bytes_per_row
        The number of bytes per row, from which each file's size is computed. If this is None, the size is estimated
        from the types of the columns.
    """
    columns = stat_columns(state.metadata, state.schema)
    n = len(counts.of)
    stats, stored = {}, np.zeros(n, dtype=np.float64)
    sizes = {c.field.field_id: _stored_bytes(c) * counts.rows * (0.9 + 0.2 * rng.random(n)) for c in columns}
    for size in sizes.values():
        stored += size
    overhead = 4.0 + 150 * max(1, len(columns))
    factor = 1.0 if bytes_per_row is None else np.maximum(0, bytes_per_row * counts.rows) / np.maximum(stored, 1)
    for column in columns:
        share: Numbers = np.asarray(sizes[column.field.field_id] * factor).astype(np.int64)
        array = _stats(column, counts, share, rng, writer.timestamp_ms)
        if array is not None:
            stats[column.field.field_id] = array
    total = (stored * factor + overhead).astype(np.int64)
    entries = _entries(state, counts, total, rng)
    partition = None if counts.tuples is None else counts.tuples.take(build.array(counts.of))
    return EntryBatch(entries, stats, partition)


def synthetic_column_files(
    state: TableState, names: Collection[str], rows: Numbers, writer: CommitWriter
) -> tuple[list[str], Numbers, dict[int, pa.StructArray]]:
    """Create one synthetic column file for each of some data files, with new values of the named columns.

    Nothing is written: synthetic files exist only as entries without data.

    Parameters
    ----------
    names
        Names of top-level columns in the schema. Callers must not name columns from which partition fields are derived.
    rows
        The number of rows in each data file.
    writer
        The commit's writer. It provides the random generator for locations and statistics, and the time of the commit.

    Returns
    -------
    list[str], numpy.ndarray, dict[int, pyarrow.StructArray]
        The locations of the column files, their sizes in bytes, and their statistics: for each updated column, by its
        field id, one struct per column file.
    """
    spec = state.metadata.spec()
    assert spec is not None
    rng = np.random.default_rng(writer.names.getrandbits(64))
    n = len(rows)
    counts = Counts(spec, [], None, np.zeros(n, np.int64), rows, {})
    columns = [c for c in stat_columns(state.metadata, state.schema) if c.path[0] in names]
    stats: dict[int, pa.StructArray] = {}
    total = np.full(n, 4.0 + 150 * max(1, len(columns)))
    for column in columns:
        size = (_stored_bytes(column) * rows * (0.9 + 0.2 * rng.random(n))).astype(np.int64)
        total += size
        array = _stats(column, counts, size, rng, writer.timestamp_ms)
        if array is not None:
            stats[column.field.field_id] = array
    folder = synthetic_folder(state.metadata.location)
    locations = [f"{folder}{name}-columns.parquet" for name in build.to_pylist(uuid_strings(rng, n))]
    return locations, total.astype(np.int64), stats


def _entries(state: TableState, counts: Counts, sizes: Numbers, rng: np.random.Generator) -> pa.Table:
    n = len(counts.of)
    base = synthetic_folder(state.metadata.location)
    folders = [base]
    if counts.tuples is not None:
        rows = [{"partition_spec_id": counts.spec.spec_id}] * len(counts.tuples)
        unique = EntryBatch.of_rows(rows, partition=counts.tuples)
        folders = [f"{base}{partition_path(unique, i, state.metadata)}/" for i in range(len(unique))]
    names = pc.binary_join_element_wise(
        build.array(folders, pa.string()).take(build.array(counts.of)), uuid_strings(rng, n), ".parquet", ""
    )
    given: dict[str, AnyColumn] = {
        "ordinal": pa.array(np.arange(n)),
        "content_type": pa.repeat(pa.scalar(int(ContentType.DATA), pa.int32()), n),
        "location": names,
        "file_format": pa.repeat("parquet", n),
        "partition_spec_id": pa.repeat(pa.scalar(counts.spec.spec_id, pa.int32()), n),
        "sort_order_id": pa.repeat(pa.scalar(0, pa.int32()), n),
        "record_count": pa.array(counts.rows),
        "file_size_in_bytes": pa.array(sizes),
    }
    return pa.Table.from_arrays([given.get(f.name, build.nulls(n, f.type)) for f in ENTRY_SCHEMA], schema=ENTRY_SCHEMA)


def uuid_strings(rng: np.random.Generator, n: int) -> Strings:
    """Return ``n`` random UUIDs (version 4) as strings."""
    raw = rng.integers(0, 256, (n, 16), dtype=np.uint8)
    raw[:, 6] = raw[:, 6] & 0x0F | 0x40
    raw[:, 8] = raw[:, 8] & 0x3F | 0x80
    digits = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
    text = np.full((n, 36), ord("-"), dtype=np.uint8)
    places = [i for i in range(36) if i not in (8, 13, 18, 23)]
    text[:, places[0::2]] = digits[raw >> 4]
    text[:, places[1::2]] = digits[raw & 15]
    offsets = np.arange(0, (n + 1) * 36, 36, dtype=np.int32)
    return pa.StringArray.from_buffers(n, pa.py_buffer(offsets.tobytes()), pa.py_buffer(text.tobytes()))


def null_share(field_id: int) -> float:
    """Return the approximate share of null values in an optional column."""
    return _NULLS[field_id % len(_NULLS)]


def _stored_bytes(column: StatColumn) -> float:
    length = fixed_length(column.type)
    return float(length) if length is not None else float(_STORED.get(type_base(column.type), 6))


def _stats(
    column: StatColumn, counts: Counts, size: Numbers, rng: np.random.Generator, now_ms: int
) -> pa.StructArray | None:
    kind, n, number = stats_type(arrow_type(column.type)), len(counts.of), column.field.field_id
    values: dict[str, AnyArray] = {"column_size": pa.array(size)}
    if column.mode != "none":
        constraint = counts.constraints.get(number)
        total = counts.rows * 2 if column.repeated else counts.rows
        nulls = np.zeros(n, np.int64)
        if constraint is not None:
            nulls = np.where(constraint.null[counts.of], total, 0)
        elif not column.field.required:
            nulls = np.minimum(total, (total * null_share(number) * 2 * rng.random(n)).astype(np.int64))
        values |= {"value_count": pa.array(total), "null_count": pa.array(nulls)}
        left = total - nulls
        if type_base(column.type) in ("float", "double"):
            nan = np.where(left > 100, (left * 0.001 * rng.random(n)).astype(np.int64), 0)
            if constraint is not None:
                exact_nan = pc.fill_null(pc.is_nan(constraint.exact), False).to_numpy(zero_copy_only=False)
                nan = np.where(exact_nan[counts.of], left, 0)
            left = left - nan
            values["nan_count"] = pa.array(nan)
        if is_variable_length(column.type):
            width = pa.repeat(pa.scalar(_WIDTH.get(type_base(column.type), 8), pa.int64()), n)
            values |= {"average_length": width, "max_length": width}
        if column.bounded:
            lower, upper = _bounds(column, counts, left, rng, now_ms)
            tight = pc.if_else(lower.is_valid(), column.cut is None or column.cut >= LETTERS, None)
            values |= {"lower": lower, "upper": upper, "tight_bounds": tight}
    arrays = [values.get(f.name, pa.nulls(n, f.type)).cast(f.type) for f in kind]
    return pa.StructArray.from_arrays(arrays, fields=list(kind))


def _bounds(
    column: StatColumn, counts: Counts, left: Numbers, rng: np.random.Generator, now_ms: int
) -> tuple[AnyArray, AnyArray]:
    """Return the lower and the upper bound for each file; both are null for files in which ``left`` is 0.

    ``left`` is, for each file, the number of values that are neither null nor NaN.
    """
    n, of = len(counts.of), counts.of
    constraint = counts.constraints.get(column.field.field_id)
    prefix = None
    u, v = rng.random(n), rng.random(n)
    v[left <= 1] = 0
    if constraint is None:
        first, last = line_of(column.type, column.field.field_id, now_ms)
        start, stop = _within(np.full(n, first), np.full(n, last), u, v, _COVERS[column.field.field_id % 3])
    elif constraint.pools is not None:
        start, stop = _from_pools(constraint.pools, of, u, v)
        prefix = constraint.prefix
    else:
        start, stop = _within(constraint.low[of], constraint.high[of], u, v, 0.95)
        prefix = constraint.prefix
    if type_base(column.type) == "boolean":
        start, stop = np.where(left > 1, 0, start), np.where(left > 1, 1, start)
    heads = None if prefix is None else prefix.take(build.array(of))
    lower, upper = values_on(column.type, start, heads), values_on(column.type, stop, heads)
    if constraint is not None:
        exact = constraint.exact.take(build.array(of))
        lower, upper = pc.coalesce(exact, lower), pc.coalesce(exact, upper)
    if column.cut is not None:
        lower, upper = truncate_lower(lower, column.cut), truncate_upper(upper, column.cut)
    none = pa.scalar(None, lower.type)
    there = pa.array(left > 0)
    return pc.if_else(there, lower, none), pc.if_else(there, upper, none)


def _within(
    low: Numbers, high: Numbers, u: np.ndarray[Any, Any], v: np.ndarray[Any, Any], covers: float
) -> tuple[Numbers, Numbers]:
    width = np.maximum(high.astype(np.float64) - low, 0)
    span = width * covers * np.sqrt(v)
    start = np.clip(low + ((width - span) * u).astype(np.int64), low, np.maximum(low, high))
    return start, np.clip(start + span.astype(np.int64), start, np.maximum(start, high))


def _from_pools(
    pools: list[Numbers], of: Numbers, u: np.ndarray[Any, Any], v: np.ndarray[Any, Any]
) -> tuple[Numbers, Numbers]:
    sizes = np.array([len(p) for p in pools], dtype=np.int64)
    flat = np.concatenate([*pools, np.zeros(1, np.int64)])
    begin = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    size = sizes[of]
    i = (u * size).astype(np.int64)
    j = i + (v * (size - i)).astype(np.int64)
    # A partition has an empty pool if the column has only nulls or a single possible value in it. The bounds of its
    # files do not come from the pool then, but the index must be valid: use that of the extra 0 at the end of ``flat``.
    at = np.where(size > 0, begin[of], len(flat) - 1)
    return flat[at + i], flat[at + j]
