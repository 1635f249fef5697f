"""A place of a row: a position in a data file, and what happened to the row there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from iceexplore.reading.row_history._fate import Commit, Fate, Move, RowEvent

__all__ = ["RowPlace", "value_text"]

_WIDE = 60


@dataclass(frozen=True)
class RowPlace:
    """A row at one position of one data file.

    Attributes
    ----------
    values
        Values of the shown columns, as Python objects.
    file, position
        The data file's location as the table has it, and the row's position in it, from 0.
    row_id
        ``_row_id`` (version 3 and later, spec, "Row Lineage"); None in earlier versions.
    last_updated
        ``_last_updated_sequence_number``; None in earlier versions, too.
    added
        The snapshot that added the file.
    events
        Events of the row at this place, oldest first.
    lines
        The branches and tags whose history contains the row at this place.
    moved_from
        The previous place of the row, if a snapshot moved or updated it.
    sequence_number
        The file's data sequence number.
    """

    values: Mapping[str, Any]
    file: str
    position: int
    row_id: int | None
    last_updated: int | None
    added: Commit
    fate: Fate
    events: tuple[RowEvent, ...] = ()
    lines: tuple[str, ...] = ()
    moved_from: Move | None = None
    sequence_number: int | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """A key to recognize a place that has the same fate in several branches."""
        by = None if self.fate.by is None else self.fate.by.snapshot_id
        return self.file, self.position, self.fate.kind, by

    @property
    def text(self) -> str:
        """Place and fate in a sentence."""
        values = ", ".join(f"{k} = {value_text(v)}" for k, v in self.values.items())
        return f"{values}: {self.file}, position {self.position}, added in {self.added.text}; {self.fate.text}"


def value_text(value: object) -> str:
    """Return a value as text, shortened."""
    text = "null" if value is None else value if isinstance(value, str) else str(value)
    return text if len(text) <= _WIDE else text[: _WIDE - 1] + "…"
