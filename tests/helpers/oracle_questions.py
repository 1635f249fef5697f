"""Filters of a given table: comparisons with values of its rows, spread over the columns and the values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tests.helpers.oracle_filters import Tree


def askable(schema: pa.Schema, columns: dict[str, str]) -> dict[str, str]:
    """Return the columns that are inside structs only, not lists or maps, and whose values Arrow can compare."""
    return {name: base for name, base in columns.items() if _plain(schema, name)}


def _plain(schema: pa.Schema, name: str) -> bool:
    first, *rest = name.split(".")
    if first not in schema.names:  # a name with a dot
        return False
    kind = schema.field(first).type
    for part in rest:
        if not pa.types.is_struct(kind):
            return False
        kind = kind.field(part).type
    return not isinstance(kind, pa.BaseExtensionType)


def questions(rows: pa.Table, columns: dict[str, str], most: int) -> list[Tree]:
    """So many filters: of each column one, then of each another, ..."""
    out: list[list[Tree]] = []
    for name, base in sorted(columns.items()):
        values: Any = rows.column(name.split(".")[0])
        for part in name.split(".")[1:]:
            values = pc.struct_field(values, part)
        found = [v for v in pc.unique(values).to_pylist() if v is not None and v == v]
        found = sorted(found)[:: max(1, len(found) // 3)]
        mine: list[Tree] = [("is null", name), ("is not null", name)]
        for i, value in enumerate(found):
            mine += [("=<"[i % 2], name, value), (">", name, value), ("in", name, *found[i : i + 2])]
            mine += [("!=", name, value)] if i == 0 else []
            mine += [("like", name, value[:1])] if base == "string" and value else []
        out.append(mine[::-1])
    spread = [x[i] for i in range(max(map(len, out), default=0)) for x in out if i < len(x)]
    return spread[:most]
