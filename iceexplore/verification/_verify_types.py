"""Whether a Parquet file stores each column in a type that stands for the table's, under a field id of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from iceexplore.formats import ParquetLeaf
from iceexplore.graph import TableState
from iceexplore.metadata import PrimitiveType, Type, type_base
from iceexplore.planning import stands_for
from iceexplore.verification._findings import Checked, Place

__all__ = ["check_types"]

#: Types that are groups of columns, or that have several forms: nothing is said of how they are stored.
_FREE = frozenset(("variant", "geometry", "geography", "unknown"))


def check_types(state: TableState, place: Place, leaves: Sequence[ParquetLeaf], out: Checked) -> None:
    """Hold the stored types against those that a field has or had; promoted ones may stay as they were written.

    Readers differ in what they do with others: some fail, some cast, some take the bytes for what they are not.
    """
    known = state.metadata.schema().by_id()
    by_id: dict[int, list[ParquetLeaf]] = defaultdict(list)
    for leaf in leaves:
        number = leaf.ids[-1]
        if number is not None:
            by_id[number].append(leaf)
    for number, found in by_id.items():
        if len(found) > 1:
            paths = ", ".join(".".join(leaf.names) for leaf in found)
            text = f"{len(found)} columns of the file have the field id {number}: readers take any of them, or fail."
            out.say(place, "field-id-twice", text, field=f"field id {number}", found=paths, expected="one column")
        if number not in known:
            continue
        name, field = known[number]
        if _fits(found[0], field.type) or any(_fits(found[0], kind) for kind in _once(state, number)):
            continue
        text = f"Column {name!r} is not stored as its type in the table is: readers fail, or read other values."
        out.say(place, "stored-type", text, field=f"{name} ({number})", found=_stored(found[0]), expected=field.type)


def _once(state: TableState, number: int) -> Iterator[Type]:
    """The types that a field has in any schema: a file may be newer than the state that is shown."""
    for schema in state.metadata.schemas:
        field = schema.find(number)
        if field is not None:
            yield field.type


def _fits(leaf: ParquetLeaf, kind: Type) -> bool:
    if not isinstance(kind, PrimitiveType):
        return False
    base = type_base(kind)
    if base in _FREE:
        return True
    if leaf.physical == "INT96":  # Hive's and Impala's timestamps
        return base.startswith("timestamp")
    return stands_for(leaf, kind)


def _stored(leaf: ParquetLeaf) -> str:
    """As Parquet has it: ``INT64``, ``INT32 Decimal(precision=9, scale=4)``."""
    logical = dict(leaf.logical)
    name = logical.pop("Type", "None")
    size = f"[{leaf.length}]" if leaf.physical == "FIXED_LEN_BYTE_ARRAY" else ""
    more = ", ".join(f"{key}={value}" for key, value in logical.items())
    return f"{leaf.physical}{size}" + ("" if name == "None" else f" {name}" + (f"({more})" if more else ""))
