"""Names that no column of a table may have: those of the metadata columns (spec, "Reserved Field IDs").

Engines read ``_pos``, ``_row_id`` and so on beside a table's own columns, by these names; of a column called so they
would take the one for the other, and delete other rows than were meant. Java's ``MetadataColumns`` has the same names.
Within structs they are free.
"""

from __future__ import annotations

from iceexplore.errors import OptionError, RuleError
from iceexplore.graph import TableState
from iceexplore.metadata import Schema
from iceexplore.reading import CHANGE_FIELDS, METADATA_COLUMNS

__all__ = ["check_new_names", "refuse_reserved_columns"]

_RESERVED = frozenset([f.name for f in METADATA_COLUMNS] + [f.name for f in CHANGE_FIELDS])


def check_new_names(schema: Schema, old: Schema) -> None:
    """Refuse reserved names, but for columns that have had them: these may stay until they are renamed or dropped.

    Raises
    ------
    RuleError
        ``reserved-columns``.
    """
    had = {(f.field_id, f.name) for f in old.fields}
    for field in schema.fields:
        if field.name in _RESERVED and (field.field_id, field.name) not in had:
            raise RuleError(
                "reserved-columns",
                f"a column cannot be called {field.name!r}: Iceberg reserves {', '.join(sorted(_RESERVED))}",
            )


def refuse_reserved_columns(state: TableState) -> None:
    """Refuse to move rows of a table that has such a column: another writer made it.

    Raises
    ------
    OptionError
        The table has one.
    """
    for field in state.schema.fields:
        if field.name in _RESERVED:
            raise OptionError(
                f"column {field.name!r} of {state.name} has a name that Iceberg reserves, and rows of such a table are "
                f"not rewritten or deleted: rename it first, evolve_schema(rename={{{field.name!r}: ...}})"
            )
