"""Which leaf of a Parquet file holds a column of the table (spec, "Column Projection")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iceexplore.formats import ParquetLeaf
from iceexplore.metadata import NestedField, Schema, StructType

__all__ = ["MISSING", "UNCERTAIN", "leaf_of", "struct_path"]

#: The file lacks the column.
MISSING = -1
#: Readers disagree whether it has it.
UNCERTAIN = -2


def struct_path(schema: Schema, field_id: int) -> tuple[NestedField, ...]:
    """A column's fields from the top down, through structs alone; empty if it does not stand there."""

    def down(fields: Sequence[NestedField]) -> tuple[NestedField, ...]:
        for f in fields:
            if f.field_id == field_id:
                return (f,)
            below = down(f.type.fields) if isinstance(f.type, StructType) else ()
            if below:
                return (f, *below)
        return ()

    return down(schema.fields)


def leaf_of(
    leaves: Sequence[ParquetLeaf], path: Sequence[NestedField], mapping: Sequence[Mapping[str, Any]] | None
) -> int:
    """The number of the leaf that holds a column, `MISSING` or `UNCERTAIN`.

    By field id where the file has any, or else by the table's name mapping. Without either Java counts the columns
    from 1 and others go by name: a column is taken where both find the same. Whether a mapping also names the columns
    without an id of a file that has ids elsewhere is read differently, too.

    Parameters
    ----------
    path
        From `struct_path`.
    mapping
        From `iceexplore.metadata.name_mapping`.
    """
    wanted = path[-1].field_id
    if any(number is not None for leaf in leaves for number in leaf.ids):
        found = [i for i, leaf in enumerate(leaves) if leaf.ids[-1] == wanted and not leaf.repeated]
        if not found:
            doubtful = any(wanted in leaf.ids or (None in leaf.ids and not leaf.repeated) for leaf in leaves)
            return UNCERTAIN if doubtful else MISSING
        return found[0] if len(found) == 1 else UNCERTAIN
    if mapping is not None:
        names = _mapped(path, mapping)
        found = [i for i, leaf in enumerate(leaves) if _matches(leaf.names[: len(names)], names)]
        if len(found) == 1 and len(leaves[found[0]].names) == len(names):
            return found[0]
        return UNCERTAIN if found else MISSING
    for i, leaf in enumerate(leaves):
        if len(path) == 1 and leaf.names == (path[0].name,) and leaf.at == wanted - 1 and not leaf.repeated:
            return i
    return UNCERTAIN


def _mapped(path: Sequence[NestedField], mapping: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """The names that the mapping has for each field of a path."""
    names: list[list[str]] = []
    level: Sequence[Mapping[str, Any]] = mapping
    for f in path:
        mine = next((m for m in level if m.get("field-id") == f.field_id), None)
        names.append(list(mine.get("names", ())) if mine else [])
        level = mine.get("fields") or () if mine else ()
    return names


def _matches(given: Sequence[str], names: Sequence[Sequence[str]]) -> bool:
    return len(given) == len(names) and all(g in n for g, n in zip(given, names, strict=True))
