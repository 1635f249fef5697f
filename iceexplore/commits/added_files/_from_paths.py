"""Create manifest entries for existing files.

The entries of Parquet files can include column metrics, which are computed from the footers. From files of other
formats, only the row count is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_plus

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, PlainValue, build
from iceexplore.arrow import compute as pc
from iceexplore.commits.added_files._from_records import refuse_twice
from iceexplore.commits.live_files._find import refuse_duplicates
from iceexplore.errors import OptionError
from iceexplore.formats import DataFile, ParquetFooter, format_of_suffix, read_parquet_footer
from iceexplore.graph import TableState
from iceexplore.manifests import ContentType, EntryBatch, concat_batches
from iceexplore.metadata import (
    PartitionSpec,
    Type,
    name_mapping,
    type_base,
)
from iceexplore.planning import PartitionColumn, partition_columns, tuples_of, typed_values
from iceexplore.writing import StatColumn, bounds_as, parquet_path, stat_columns, stats_arrays

__all__ = ["entry_of_file", "files_of_paths"]

#: The values that Hive and Iceberg write in folder names for a null partition value.
_NULLS = ("__HIVE_DEFAULT_PARTITION__", "null")


@dataclass
class _Facts:
    """A column's counts and bounds over all row groups; ``bounds`` is an array [lower, upper], or None if unknown."""

    column_size: int = 0
    value_count: int = 0
    null_count: int | None = 0
    bounds: AnyArray | None = None
    open: bool = False  # whether some row group has values but no bounds


def files_of_paths(
    state: TableState, paths: Sequence[str], *, check_duplicates: bool = True, spec_id: int | None = None
) -> EntryBatch:
    """Return entries for existing Parquet files, of which only the footers are read.

    The files must be in folders that may be read (``allow=``).

    Columns are matched by field id; in a file without field ids, by the table's name mapping if there is one, otherwise
    by name. Partition values are read from folders named ``field=value``. Without such a folder, the value of a
    partition field is derived from the bounds of its source column, if all values between these bounds have the same
    partition value. NaN counts are unknown, because footers do not have them.

    Parameters
    ----------
    check_duplicates
        Whether to refuse files that are already live in the table.
    spec_id
        The id of the files' partition spec; by default the table's default spec.

    Raises
    ------
    OptionError
        A file contains none of the table's columns, or lacks a required one. A partition value is neither in a folder
        name nor clear from the bounds, or a folder name has an invalid value. The table has no such partition spec.
    RuleError
        ``duplicate-file``: a file is given twice or is already live.
    FormatError, FileMissingError, OutsideRootsError
        A file is not Parquet, or cannot be read.
    """
    refuse_twice(paths)
    spec = state.metadata.spec() if spec_id is None else state.metadata.spec(spec_id)
    if spec is None:
        which = "the table's default partition spec" if spec_id is None else f"partition spec {spec_id}"
        raise OptionError(f"{which} is missing: files cannot be added")
    columns = stat_columns(state.metadata, state.schema)
    batches = [_file(state, path, spec, columns) for path in paths]
    made = concat_batches(batches)
    locations = build.to_pylist(made.entries["location"])
    refuse_twice(locations)
    if check_duplicates:
        refuse_duplicates(state, locations)
    return made


def _file(state: TableState, path: str, spec: PartitionSpec, columns: list[StatColumn]) -> EntryBatch:
    location = state.storage.unresolve(path)
    footer = read_parquet_footer(state.storage, location)
    by_leaf = _columns_of(state, footer, columns)
    if not by_leaf:
        raise OptionError(
            f"{path} has no column of the table; its columns are {', '.join(c.path for c in footer.columns[:20])}"
        )
    there = {c.path[0] for c in by_leaf.values()}
    for f in state.schema.fields:
        if f.required and f.name not in there and f.initial_default is None:
            raise OptionError(f"{path} lacks the required column {f.name!r}")
    facts = _facts(footer, by_leaf)
    stats: dict[int, dict[str, Any]] = {}
    for column in columns:
        found = facts.get(column.field.field_id)
        if found is None:
            continue
        here: dict[str, Any] = {"column_size": found.column_size}
        if column.mode != "none":
            here |= {"value_count": found.value_count, "null_count": found.null_count}
        if column.bounded and found.bounds is not None and not found.open:
            low, high = bounds_as(column, found.bounds[0], found.bounds[1])
            here |= {"lower": low, "upper": high}
        stats[column.field.field_id] = here
    partition = None
    of_spec = partition_columns(state.metadata, spec)
    if of_spec:
        partition = _partition(state, path, location, of_spec, facts, footer.rows)
    first = footer.chunks.filter(pc.equal(footer.chunks["column"], footer.columns[0].path))
    row = {
        "content_type": int(ContentType.DATA),
        "location": location,
        "file_format": "parquet",
        "partition_spec_id": spec.spec_id,
        "record_count": footer.rows,
        "file_size_in_bytes": state.storage.stat(location).size,
        "split_offsets": sorted(build.to_pylist(first["offset"])),
    }
    return EntryBatch.of_rows([row], stats=stats_arrays(columns, [stats]), partition=partition)


def entry_of_file(state: TableState, path: str, spec_id: int, **values: Any) -> EntryBatch:
    """Return an entry for an existing data or delete file of any known format; the row count is read from the file.

    The partition values are read from folders named ``field=value``. The entry has no column metrics.

    Parameters
    ----------
    spec_id
        The id of the file's partition spec.
    values
        Values for further columns of the entry, such as ``content_type``. By default the entry is that of a data file.

    Raises
    ------
    OptionError
        The format or the partition spec is unknown, or the folder names lack a partition value.
    FormatError, FileMissingError, OutsideRootsError
        The file cannot be read.
    """
    location = state.storage.unresolve(path)
    found, spec = format_of_suffix(location), state.metadata.spec(spec_id)
    if found is None or spec is None:
        raise OptionError(f"{path}: its file format is unknown, or the table has no partition spec {spec_id}")
    with state.storage.open(location, kind="other") as file:
        facts = found.facts(DataFile(state.storage, location, file, "other"))
        size = file.size
    of_spec = partition_columns(state.metadata, spec)
    partition = _partition(state, path, location, of_spec, {}, facts.rows) if of_spec else None
    row = {
        "content_type": int(ContentType.DATA),
        "location": location,
        "file_format": found.name,
        "partition_spec_id": spec.spec_id,
        "record_count": facts.rows,
        "file_size_in_bytes": size,
    }
    return EntryBatch.of_rows([{**row, **values}], partition=partition)


def _columns_of(state: TableState, footer: ParquetFooter, columns: list[StatColumn]) -> dict[str, StatColumn]:
    """Map the path of each leaf column in a Parquet file to the table's column with the same field id or name.

    Columns of the file that the table does not have are left out. The table's name mapping is used if the file has no
    field ids.
    """
    by_id = {c.field.field_id: c for c in columns}
    if any(c.field_id is not None for c in footer.columns):
        return {c.path: by_id[c.field_id] for c in footer.columns if c.field_id in by_id}
    mapping = name_mapping(state.metadata)
    by_name = {parquet_path(c, state.schema): c for c in columns}
    if mapping is not None:
        by_name = {path: by_id[i] for path, i in _mapped("", mapping) if i in by_id}
    return {c.path: by_name[c.path] for c in footer.columns if c.path in by_name}


def _mapped(prefix: str, mapping: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, int]]:
    for item in mapping:
        for name in item.get("names", ()):
            # In Parquet, the children of lists and maps are one level deeper than in Iceberg.
            for level in ("", "list.", "key_value.") if prefix else ("",):
                path = f"{prefix}{level}{name}"
                if item.get("field-id") is not None:
                    yield path, item["field-id"]
                yield from _mapped(path + ".", item.get("fields") or ())


def _facts(footer: ParquetFooter, by_leaf: dict[str, StatColumn]) -> dict[int, _Facts]:
    out: dict[int, _Facts] = {}
    kinds = {c.path: c for c in footer.columns}
    for chunk in footer.chunks.select(
        ["column", "num_values", "null_count", "min", "max", "compressed_bytes"]
    ).to_pylist():
        column = by_leaf.get(chunk["column"])
        if column is None:
            continue
        facts = out.setdefault(column.field.field_id, _Facts())
        facts.column_size += chunk["compressed_bytes"]
        facts.value_count += chunk["num_values"]
        nulls = chunk["null_count"]
        facts.null_count = None if nulls is None or facts.null_count is None else facts.null_count + nulls
        if chunk["null_count"] == chunk["num_values"]:
            continue
        pair = _bounds(column.type, chunk["min"], chunk["max"], kinds[chunk["column"]].logical_type)
        if pair is None:
            facts.open = True
        else:
            both = pair if facts.bounds is None else pa.concat_arrays([facts.bounds, pair])
            ends = pc.min_max(both)
            facts.bounds = pa.array([ends["min"], ends["max"]], both.type)
    return out


def _bounds(kind: Type, low: str | None, high: str | None, logical: str | None) -> AnyArray | None:
    """Convert the two bounds in a Parquet footer, given as text, to an array [lower, upper] of the column's type.

    Return None if a bound is missing or cannot be converted.

    Parameters
    ----------
    kind
        The Iceberg type of the column.
    logical
        The logical type of the column in the Parquet file. For an Iceberg string, only ``String`` is accepted.
    """
    if low is None or high is None:
        return None
    base = type_base(kind)
    if base == "string" and logical != "String":
        # The file stores the strings as another Parquet type, such as plain bytes, which may be sorted differently.
        return None
    try:
        return typed_values(kind, [_value(base, low), _value(base, high)], "bound")
    except (OptionError, ValueError):
        return None


def _value(base: str, text: str) -> PlainValue:
    match base:
        case "boolean":
            return {"True": True, "False": False}[text] if text in ("True", "False") else text
        case "int" | "long":
            return int(text)
        case "float" | "double":
            return float(text)
        case "binary" | "fixed" | "uuid":
            return bytes.fromhex(text)
        case "timestamp_ns" | "timestamptz_ns":
            return np.datetime64(text.removesuffix("+00:00"), "ns")
    return text


def _partition(
    state: TableState,
    path: str,
    location: str,
    columns: list[PartitionColumn],
    facts: dict[int, _Facts],
    rows: int,
) -> pa.StructArray:
    parts = [p.partition("=") for p in location.split("/")[:-1] if "=" in p]
    folders = {unquote_plus(name): unquote_plus(value) for name, _, value in parts}
    out = []
    for column in columns:
        name = column.field.name
        if column.transform.is_void:
            out.append(tuples_of([column], [{}]))
        elif name in folders:
            text = folders[name]
            value = None if text in _NULLS else _folder_value(column, text)
            out.append(tuples_of([column], [{name: value}], f"folder {name}={text} of {path}"))
        else:
            out.append(_from_bounds(path, column, facts, rows))
    arrays = [pc.struct_field(one, [0]) for one in out]
    fields = [pa.field(c.key, a.type) for c, a in zip(columns, arrays, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=fields)


def _folder_value(column: PartitionColumn, text: str) -> PlainValue:
    import base64

    base = type_base(column.type)
    if not column.transform.keeps_type:
        return text
    try:
        match base:
            case "boolean":
                return {"true": True, "false": False}[text.lower()]
            case "int" | "long":
                return int(text)
            case "float" | "double":
                return float(text)
            case "binary" | "fixed":
                return base64.b64decode(text, validate=True)
    except (ValueError, KeyError):
        raise OptionError(f"folder {column.field.name}={text}: not a value of {column.type}") from None
    return text


def _from_bounds(path: str, column: PartitionColumn, facts: dict[int, _Facts], rows: int) -> pa.StructArray:
    """Derive a file's value of one partition field from the bounds of the field's source column.

    The partition value is null if the source column is null in every row.

    Parameters
    ----------
    path
        The file's path, for the error.
    column
        The partition field, with its source column.
    facts
        The counts and bounds of the file's columns, by field id.
    rows
        The number of rows in the file.

    Raises
    ------
    OptionError
        The partition value is unclear, for example because the two bounds have different partition values, the column
        is null in some rows only, or the footer has no bounds for the column.
    """
    name, source = column.field.name, column.source
    unknown = (
        f"{path}: its partition is ambiguous: no folder {name}=... exists, and the footer's bounds allow more than one "
        f"value for {column.field.transform} of {'a dropped column' if source is None else source.name}. "
        "Give a dictionary with its partition instead of a path"
    )
    found = None if source is None else facts.get(source.field_id)
    if source is None or found is None:
        raise OptionError(unknown)
    if found.null_count == rows and found.value_count == rows:
        return tuples_of([column], [{name: None}])
    if found.null_count != 0 or found.bounds is None or found.open:
        raise OptionError(unknown)
    floating = pa.types.is_floating(found.bounds.type)
    ends = found.bounds[0].as_py() == found.bounds[1].as_py() if floating else found.bounds[0] == found.bounds[1]
    transform = column.transform
    values = transform.apply(source.type, found.bounds)
    # The two bounds must have the same partition value. It is then the partition value of all rows if the transform
    # preserves order (bucket does not), or if the two bounds are equal. Bounds of float columns are never used: the
    # file may also contain NaN values, which are outside of the bounds and are not counted in footers.
    if floating or (not transform.preserves_order and not ends) or not values[0].is_valid or values[0] != values[1]:
        raise OptionError(unknown)
    return pa.StructArray.from_arrays([values[:1]], fields=[pa.field(column.key, values.type)])
