"""Create data file entries from dictionaries, which are validated before anything is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from iceexplore.commits.live_files._find import refuse_duplicates
from iceexplore.errors import OptionError, RuleError, Unchecked, nearest
from iceexplore.formats import DATA_FILE_FORMATS, DEFAULT_FORMAT, format_named, format_of_suffix
from iceexplore.graph import TableState
from iceexplore.manifests import ContentType, EntryBatch
from iceexplore.planning import partition_columns, tuples_of, typed_values
from iceexplore.storage import canonical
from iceexplore.writing import StatColumn, stat_columns, stats_arrays, virtual_columns

__all__ = ["RECORD_KEYS", "files_of_records", "refuse_half_characters", "refuse_twice"]

_REQUIRED = ("location", "record_count", "file_size_in_bytes")
_BY_COLUMN = {
    "lower_bounds": "lower",
    "upper_bounds": "upper",
    "value_counts": "value_count",
    "null_value_counts": "null_count",
    "nan_value_counts": "nan_count",
    "column_sizes": "column_size",
}
#: The keys that a dictionary for a data file may have.
RECORD_KEYS = (*_REQUIRED, "partition", "file_format", "sort_order_id", "split_offsets", *_BY_COLUMN)
_FORMATS = sorted(f.name for f in DATA_FILE_FORMATS)


def files_of_records(state: TableState, records: Sequence[Any], *, check_duplicates: bool = True) -> EntryBatch:
    """Return the entries of data files given as dictionaries.

    Parameters
    ----------
    records
        A dictionary for each file, with ``location``, ``record_count``, ``file_size_in_bytes`` and, in a partitioned
        table, ``partition``: a dictionary from names of partition fields to values (see `tuples_of`). Optional keys are
        ``file_format`` (by default derived from the location's suffix), ``sort_order_id`` and ``split_offsets``.
        Column metrics are also optional: ``lower_bounds``, ``upper_bounds``, ``value_counts``, ``null_value_counts``,
        ``nan_value_counts`` and ``column_sizes`` are dictionaries from column names to values. Virtual columns, that
        is, expressions in the metadata of a V4 table such as ``lower(x)``, are given by the names of the expressions.
    check_duplicates
        Whether to refuse locations that are already live in the table; this reads every data manifest.

    Raises
    ------
    OptionError
        A key is unknown or missing, a column is unknown, a value is invalid or has the wrong type, or the counts or
        bounds of a column contradict each other.
    RuleError
        ``duplicate-file``: a location is given twice or is already live.
    """
    for i, record in enumerate(records):
        _check(record, f"files[{i}]")
    locations = [r["location"] for r in records]
    refuse_twice(locations)
    spec = state.metadata.spec()
    if spec is None:
        raise OptionError("the table's default partition spec is missing: files cannot be added")
    partition = None
    columns = partition_columns(state.metadata, spec)
    if columns:
        lacking = [i for i, r in enumerate(records) if "partition" not in r]
        if lacking:
            names = ", ".join(c.field.name for c in columns)
            raise OptionError(f"files[{lacking[0]}] lacks 'partition': the table is partitioned by {names}")
        partition = tuples_of(columns, [r["partition"] for r in records], "partition of files")
    elif any(r.get("partition") for r in records):
        raise OptionError("a partition is given, but the table is not partitioned")
    stats = _stats(state, records)
    rows = [
        {
            "content_type": int(ContentType.DATA),
            "location": r["location"],
            "file_format": _format(r),
            "partition_spec_id": spec.spec_id,
            "sort_order_id": r.get("sort_order_id"),
            "record_count": r["record_count"],
            "file_size_in_bytes": r["file_size_in_bytes"],
            "split_offsets": r.get("split_offsets"),
        }
        for r in records
    ]
    if check_duplicates:
        refuse_duplicates(state, locations)
    return EntryBatch.of_rows(rows, stats=stats, partition=partition)


def refuse_half_characters(text: str, what: str) -> None:
    """Refuse a value that cannot be stored as a string in a metadata file; ``what`` names it in the error.

    Raises
    ------
    OptionError
        The value is not a string, or contains a lone surrogate.
    """
    if not isinstance(text, str):
        raise OptionError(f"{what}={text!r}: give a string")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise OptionError(f"{what} {text!r} contains a lone surrogate, which cannot be stored") from None


def refuse_twice(locations: Sequence[str]) -> None:
    """Refuse a list that contains a file twice, even if the two locations are spelled differently.

    Raises
    ------
    RuleError
        ``duplicate-file``: a file is given twice.
    """
    seen: dict[str, str] = {}
    for location in locations:
        place = canonical(location)
        if place in seen:
            raise RuleError("duplicate-file", f"{location} is given twice")
        seen[place] = location


def _check(record: object, where: str) -> None:
    if not isinstance(record, Mapping):
        raise OptionError(f"{where} is {record!r}: give either dictionaries or paths")
    for key in record:
        if key not in RECORD_KEYS:
            raise OptionError(f"{where}: unknown key {key!r}; {nearest(str(key), RECORD_KEYS)}")
    for key in _REQUIRED:
        if record.get(key) is None:
            raise OptionError(f"{where} lacks {key!r}; {', '.join(_REQUIRED)} are required")
    if not isinstance(record["location"], str) or not record["location"]:
        raise OptionError(f"{where}: location is {record['location']!r}: expected a non-empty string")
    refuse_half_characters(record["location"], f"{where}: location")
    for key in ("record_count", "file_size_in_bytes", "sort_order_id"):
        if (value := record.get(key)) is not None:
            _count(value, f"{where}: {key}")
    _format(record, where)
    offsets = record.get("split_offsets") or []
    for value in offsets:
        _count(value, f"{where}: split_offsets")
    if list(offsets) != sorted(offsets):
        raise OptionError(f"{where}: split_offsets must be ascending")
    for key in _BY_COLUMN:
        if not isinstance(record.get(key) or {}, Mapping):
            raise OptionError(f"{where}: {key} is {record[key]!r}: give a dictionary from column names to values")


def _count(value: Unchecked, where: str) -> None:
    if isinstance(value, bool) or not hasattr(value, "__index__") or not 0 <= value < 2**63:
        raise OptionError(f"{where} is {value!r}: expected an integer of at least 0")


def _format(record: Mapping[str, Any], where: str = "") -> str:
    given = record.get("file_format")
    if given is None:
        return (format_of_suffix(record["location"]) or DEFAULT_FORMAT).name
    known = format_named(given) if isinstance(given, str) else None
    if known is None:
        raise OptionError(f"{where}: file_format {given!r}; choose one of {', '.join(_FORMATS)}")
    return known.name


def _stats(state: TableState, records: Sequence[Mapping[str, Any]]) -> dict[int, Any]:
    columns = {v.column.field.name: v.column for v in virtual_columns(state.metadata, state.schema)}
    columns |= {".".join(c.path): c for c in stat_columns(state.metadata, state.schema)}
    rows: list[dict[int, dict[str, Any]]] = [{} for _ in records]
    bounds: dict[tuple[str, str], list[tuple[int, Any]]] = {}
    for i, record in enumerate(records):
        for key, child in _BY_COLUMN.items():
            for name, value in (record.get(key) or {}).items():
                column = columns.get(name)
                if column is None:
                    raise OptionError(f"files[{i}]: {key}: no column {name!r}; {nearest(str(name), list(columns))}")
                if value is None:
                    continue
                here = rows[i].setdefault(column.field.field_id, {})
                if child in ("lower", "upper"):
                    bounds.setdefault((name, child), []).append((i, value))
                    continue
                _count(value, f"files[{i}]: {key}[{name!r}]")
                here[child] = int(value)
    for (name, child), given in bounds.items():
        column = columns[name]
        typed = typed_values(column.type, [v for _, v in given], f"{child} bound of {name}")
        for (i, _), value in zip(given, typed, strict=True):
            rows[i][column.field.field_id][child] = value
    for i, (record, row) in enumerate(zip(records, rows, strict=True)):
        for column in columns.values():
            if (found := row.get(column.field.field_id)) is not None:
                _consistent(found, column, record["record_count"], f"files[{i}], column {'.'.join(column.path)}")
    return stats_arrays(list(columns.values()), rows)


def _consistent(found: dict[str, Any], column: StatColumn, record_count: int, where: str) -> None:
    from iceexplore.arrow import compute as pc

    if not column.repeated:
        if found.setdefault("value_count", record_count) != record_count:
            raise OptionError(f"{where}: {found['value_count']} values in {record_count} rows; both must be equal")
        missing = (found.get("null_count") or 0) + (found.get("nan_count") or 0)
        if missing > record_count:
            raise OptionError(f"{where}: {missing} null and NaN values, but only {record_count} rows")
    low, high = found.get("lower"), found.get("upper")
    if low is None or high is None:
        return
    kind = low.type
    pair = [pa.array([v], kind).cast(pa.binary()) if pa.types.is_fixed_size_binary(kind) else pa.array([v], kind)
            for v in (low, high)]  # fmt: skip
    if pc.greater(*pair)[0].as_py():
        raise OptionError(f"{where}: the lower bound {low.as_py()!r} is above the upper bound {high.as_py()!r}")
