"""The columns that a scan is to read: their names checked, and what their bytes are where metadata says it."""

from __future__ import annotations

from collections.abc import Iterable

from iceexplore.errors import OptionError
from iceexplore.metadata import NestedField, Schema
from iceexplore.planning._partition_values import nearest

__all__ = ["METADATA_COLUMNS", "checked_columns", "leaf_ids"]

#: Spec, "Reserved Field IDs".
METADATA_COLUMNS = (
    "_deleted", "_file", "_last_updated_sequence_number", "_partition", "_pos", "_row_id", "_spec_id",
)  # fmt: skip


def checked_columns(schema: Schema, columns: Iterable[str] | None) -> tuple[str, ...] | None:
    """Names of columns, each once; None for all.

    Parameters
    ----------
    columns
        Names, dotted inside structs; metadata columns (``_file``, ``_pos``, ...) too.

    Raises
    ------
    OptionError
        One name instead of several, none, or one that is no column; the nearest are listed.
    """
    if columns is None:
        return None
    given = [columns] if isinstance(columns, str) else list(columns)
    if not given:
        raise OptionError("columns=[]: name at least one column, or leave columns out for all of them")
    known = [name for name, _ in schema.walk()]
    for name in given:
        if not isinstance(name, str):
            raise OptionError(f"columns: {name!r} is no name of a column")
        if name not in known and name not in METADATA_COLUMNS:
            raise OptionError(f"no column {name!r}; {nearest(name, [*known, *METADATA_COLUMNS])}")
    return tuple(dict.fromkeys(given))


def leaf_ids(schema: Schema, columns: tuple[str, ...]) -> list[int]:
    """The ids of the columns that are stored when these are read: those named, and everything inside them."""

    def wanted(name: str, field: NestedField) -> bool:
        return any(name == c or name.startswith(f"{c}.") for c in columns)

    return [f.field_id for name, f in schema.walk() if wanted(name, f)]
