"""Compare two metadata tables by value, regardless of how Arrow represents the values.

Structs are split into their leaves. Integers and strings of any width, dictionaries, and times of any unit are compared
by their meaning. Rows are matched by a key, in any order.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

__all__ = ["Difference", "KEYS", "TABLES", "differences", "leaves", "same", "types"]

#: What tells rows of a metadata table apart.
KEYS: dict[str, tuple[str, ...]] = {
    "snapshots": ("snapshot_id",),
    "history": ("made_current_at", "snapshot_id"),
    "refs": ("name",),
    "metadata_log_entries": ("file",),
    "manifests": ("path",),
    "all_manifests": ("path", "reference_snapshot_id"),
    "files": ("file_path", "record_count"),
    "data_files": ("file_path", "record_count"),
    "delete_files": ("file_path", "record_count"),
    "all_files": ("file_path", "record_count"),
    "all_data_files": ("file_path", "record_count"),
    "all_delete_files": ("file_path", "record_count"),
    "entries": ("data_file.file_path", "data_file.record_count", "status", "snapshot_id"),
    "partitions": ("spec_id", "partition.*"),
}
TABLES = list(KEYS)


@dataclass(frozen=True)
class Difference:
    """One way in which a metadata table differs.

    Attributes
    ----------
    kind
        ``raises``, ``missing`` (a column that PyIceberg lacks), ``extra`` (one that only PyIceberg has), ``rows``,
        ``values``, ``type`` (a number's width, a time's unit or zone).
    column
        Dotted path of the leaf; empty where the whole table differs.
    ours, theirs
        An example.
    """

    kind: str
    column: str
    ours: str = ""
    theirs: str = ""


def leaves(table: pa.Table) -> dict[str, list[Any]]:
    """Dotted path and comparable values of every leaf column."""
    out: dict[str, list[Any]] = {}

    def walk(path: str, column: Any) -> None:
        kind = column.type
        if pa.types.is_struct(kind):
            parts = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            for i, part in enumerate(parts.flatten()):  # type: ignore[union-attr]
                walk(f"{path}.{kind.field(i).name}", part)
        else:
            out[path] = _values(column)

    for name in table.column_names:
        walk(name, table.column(name))
    return out


def types(table: pa.Table) -> dict[str, str]:
    """Dotted path and type of every leaf, strings, dictionaries and nested ones aside: there only the values count."""
    out: dict[str, str] = {}

    def walk(path: str, kind: Any) -> None:
        if pa.types.is_struct(kind):
            for i in range(kind.num_fields):
                walk(f"{path}.{kind.field(i).name}", kind.field(i).type)
        elif not (pa.types.is_nested(kind) or pa.types.is_dictionary(kind) or _is_text(kind)):
            out[path] = str(kind)

    for field in table.schema:
        walk(field.name, field.type)
    return out


def _is_text(kind: Any) -> bool:
    return any(
        check(kind)
        for check in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_fixed_size_binary,
        )
    )


def _values(column: Any) -> list[Any]:
    kind = column.type
    if pa.types.is_timestamp(kind):
        return list(column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).to_pylist())
    return [_plain(v) for v in column.to_pylist()]


def _plain(value: Any) -> Any:
    match value:
        case float():
            return repr(value)
        case bytes() | bytearray():
            return bytes(value)
        case dict():
            return tuple((k, _plain(v)) for k, v in value.items())
        case list() | tuple():
            items = [_plain(v) for v in value]
            if all(isinstance(v, tuple) and len(v) == 2 for v in items):
                items.sort(key=repr)  # a map: its order means nothing
            return tuple(items)
        case _:
            return value


def _keys(name: str, columns: dict[str, list[Any]], rows: int) -> list[tuple[Any, ...]]:
    parts: list[list[Any]] = []
    for key in KEYS[name]:
        if key.endswith(".*"):
            parts += [values for path, values in sorted(columns.items()) if path.startswith(key[:-1])]
        elif key in columns:
            parts.append(columns[key])
    return list(zip(*parts, strict=True)) if parts else [()] * rows


def _by_key(keys: list[tuple[Any, ...]], values: list[Any]) -> dict[str, list[str]]:
    out: dict[str, list[str]] = defaultdict(list)
    for key, value in zip(keys, values, strict=True):
        out[repr(key)].append(repr(value))
    return {key: sorted(items) for key, items in out.items()}


def same(name: str, a: pa.Table, b: pa.Table, difference: Difference) -> bool:
    """Whether two tables agree in what a difference is about: the column's values, its type, or everything."""
    column = difference.column
    if difference.kind in ("raises", "rows"):
        return not [d for d in differences(name, a, b) if d.kind != "type"]
    if difference.kind == "type":
        return types(a).get(column) == types(b).get(column)
    ours, theirs = leaves(a), leaves(b)
    if column not in ours or column not in theirs:
        return (column in ours) == (column in theirs)
    keys = _keys(name, ours, a.num_rows), _keys(name, theirs, b.num_rows)
    return _by_key(keys[0], ours[column]) == _by_key(keys[1], theirs[column])


def differences(name: str, a: pa.Table, b: pa.Table) -> list[Difference]:
    """How the metadata table ``b`` (PyIceberg's) differs from ``a`` (ours)."""
    ours, theirs = leaves(a), leaves(b)
    out = []
    lacking = [c for c in a.column_names if c not in b.column_names]
    extra = [c for c in b.column_names if c not in a.column_names]
    out += [Difference("missing", c) for c in lacking] + [Difference("extra", c) for c in extra]
    inner = [p for p in ours if p not in theirs and p.partition(".")[0] not in lacking]
    out += [Difference("missing", p) for p in inner]
    out += [Difference("extra", p) for p in theirs if p not in ours and p.partition(".")[0] not in extra]
    kinds = types(a), types(b)
    changed = [p for p in kinds[0] if p in kinds[1] and kinds[0][p] != kinds[1][p]]
    out += [Difference("type", p, kinds[0][p], kinds[1][p]) for p in changed]
    keys = _keys(name, ours, a.num_rows), _keys(name, theirs, b.num_rows)
    if sorted(map(repr, keys[0])) != sorted(map(repr, keys[1])):
        out.append(Difference("rows", "", f"{a.num_rows} rows", f"{b.num_rows} rows"))
        return out
    for path in ours:
        if path not in theirs:
            continue
        mine, other = _by_key(keys[0], ours[path]), _by_key(keys[1], theirs[path])
        if mine != other:
            at = next(k for k in mine if mine[k] != other[k])
            pair = next((x, y) for x, y in zip(mine[at], other[at], strict=True) if x != y)
            out.append(Difference("values", path, *pair))
    return out
