"""Compares a metadata table with Spark's: names, order, types, and every value; only the order of rows is free."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa

#: How Spark hands a variant over; no row of a metadata table has one that is not null.
VARIANT = pa.struct([pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False)])


def differences(ours: pa.Table, theirs: pa.Table, limit: int = 12) -> list[str]:
    """Where two tables differ, a line each; none if they are equal."""
    if ours.column_names != theirs.column_names:
        return [f"columns: ours {ours.column_names}, Spark's {theirs.column_names}"]
    out = [
        line
        for name in ours.column_names
        for line in _types(name, ours.schema.field(name).type, theirs.schema.field(name).type)
    ]
    if out:
        return out[:limit]
    if ours.num_rows != theirs.num_rows:
        out.append(f"rows: ours {ours.num_rows}, Spark's {theirs.num_rows}")
    mine, other = _rows(ours), _rows(theirs)
    only_mine = [r for r in mine if r not in other]
    only_other = [r for r in other if r not in mine]
    if only_mine or only_other:
        for a, b in zip(only_mine, only_other, strict=False):
            out += [f"{path}: ours {x!r}, Spark's {y!r}" for path, x, y in _values("", a, b)]
        out += [f"only ours: {r!r:.600}" for r in only_mine[len(only_other) :]]
        out += [f"only Spark's: {r!r:.600}" for r in only_other[len(only_mine) :]]
    elif mine != other:
        out.append("the same rows, but not as often")
    return out[:limit]


def _types(path: str, a: pa.DataType, b: pa.DataType) -> list[str]:
    if b == VARIANT and pa.types.is_binary(a):
        return []
    if pa.types.is_struct(a) and pa.types.is_struct(b):
        names = [a.field(i).name for i in range(a.num_fields)], [b.field(i).name for i in range(b.num_fields)]
        if names[0] != names[1]:
            return [f"{path}: fields ours {names[0]}, Spark's {names[1]}"]
        children = zip(names[0], a, b, strict=True)
        return [line for name, x, y in children for line in _types(f"{path}.{name}", x.type, y.type)]
    if pa.types.is_map(a) and pa.types.is_map(b):
        return _types(f"{path}.key", a.key_type, b.key_type) + _types(f"{path}.value", a.item_type, b.item_type)
    if pa.types.is_list(a) and pa.types.is_list(b):
        return _types(f"{path}[]", a.value_type, b.value_type)
    return [] if a == b else [f"{path}: type ours {a}, Spark's {b}"]


def _rows(table: pa.Table) -> list[Any]:
    columns = [_plain(table.column(i).combine_chunks()) for i in range(table.num_columns)]
    rows = [tuple(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]
    return sorted(rows, key=repr)


def _plain(array: Any) -> list[Any]:
    """Values that compare as they are: a float by its repr (NaN, -0.0), a time by its integer, a map sorted by key."""
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    kind, valid = array.type, array.is_valid().to_pylist()
    if kind == VARIANT:
        return list(array.to_pylist())
    if pa.types.is_struct(kind):
        names = [kind.field(i).name for i in range(kind.num_fields)]
        children = [_plain(child) for child in array.flatten()]
        return [
            tuple((n, c[i]) for n, c in zip(names, children, strict=True)) if ok else None for i, ok in enumerate(valid)
        ]
    if pa.types.is_map(kind):
        keys, items = _plain(array.keys), _plain(array.items)
        at = array.offsets.to_pylist()
        pairs = (zip(keys[a:b], items[a:b], strict=True) for a, b in pairwise(at))
        return [sorted(p, key=repr) if ok else None for p, ok in zip(pairs, valid, strict=True)]
    if pa.types.is_list(kind):
        values, at = _plain(array.values), array.offsets.to_pylist()
        return [values[a:b] if ok else None for (a, b), ok in zip(pairwise(at), valid, strict=True)]
    if pa.types.is_temporal(kind):
        array = array.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    values = array.to_pylist()
    return [repr(v) if isinstance(v, float) else v for v in values]


def _values(path: str, a: Any, b: Any) -> list[tuple[str, Any, Any]]:
    """The smallest parts in which two rows differ."""
    if a == b:
        return []
    if _named(a) and _named(b) and [n for n, _ in a] == [n for n, _ in b]:
        return [d for (n, x), (_, y) in zip(a, b, strict=True) for d in _values(f"{path}.{n}", x, y)]
    return [(path, a, b)]


def _named(value: Any) -> bool:
    if not isinstance(value, tuple):
        return False
    return all(isinstance(v, tuple) and len(v) == 2 and isinstance(v[0], str) for v in value)
