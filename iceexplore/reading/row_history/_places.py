"""Present the places of rows: as a table, as sentences, and as histories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceexplore.arrow import AnyColumn, build
from iceexplore.graph import TableState, card_html, card_text, to_frame
from iceexplore.reading.row_history._fate import Commit
from iceexplore.reading.row_history._place import RowPlace, value_text
from iceexplore.reading.row_history._story import RowStory, story_of
from iceexplore.render import Card, CardTable

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["RowPlaces"]

_SHOWN = 50


_COLUMNS = build.schema(
    [
        ("_file", pa.string()),
        ("_pos", pa.int64()),
        ("_row_id", pa.int64()),
        ("_last_updated_sequence_number", pa.int64()),
        ("_added_snapshot_id", pa.int64()),
        ("_added_at", pa.timestamp("ms", "UTC")),
        ("_added_operation", pa.string()),
        ("_fate", pa.string()),
        ("_fate_snapshot_id", pa.int64()),
        ("_fate_at", pa.timestamp("ms", "UTC")),
        ("_fate_operation", pa.string()),
        ("_deleted_by", pa.string()),
        ("_delete_kind", pa.string()),
        ("_delete_offset", pa.int64()),
        ("_deletes", pa.int64()),
        ("_moved_to_file", pa.string()),
        ("_moved_to_pos", pa.int64()),
        ("_moved_to_guess", pa.bool_()),
        ("_lines", pa.string()),
        ("_story", pa.string()),
    ]
)


@dataclass(frozen=True, eq=False)
class RowPlaces:
    """All places where a matching row is or was. Shown as a table in a notebook.

    Attributes
    ----------
    filter
        The filter of the search, as text.
    columns
        Names of the shown columns.
    places
        In the order in which they were added, then by file and position.
    complete
        False if the search ended at its limit: there may be more.
    candidates
        Number of data files that could hold matching rows, according to metadata.
    unread
        Data files that could not be read, with the reason: their rows are unknown.
    history_from
        The oldest snapshot that was searched; earlier history is unknown.
    """

    state: TableState = field(repr=False)
    filter: str
    columns: tuple[str, ...]
    places: tuple[RowPlace, ...]
    history: bool = False
    complete: bool = True
    candidates: int = 0
    unread: Mapping[str, str] = field(default_factory=dict)
    history_from: Commit | None = None
    types: pa.Schema | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Iterator[RowPlace]:
        return iter(self.places)

    def __getitem__(self, index: int) -> RowPlace:
        return self.places[index]

    @property
    def live(self) -> tuple[RowPlace, ...]:
        """The places whose row is live in the queried state."""
        return tuple(p for p in self.places if p.fate.kind == "live")

    def to_arrow(self) -> pa.Table:
        """Return one row per place: values, ``_file``, ``_pos``, ``_row_id``, adding snapshot, fate and ``_story``.

        ``_deleted_by`` is the earliest delete, ``_deletes`` the number of deletes that delete the row.
        """
        types = self.types or pa.schema([])
        columns: dict[str, AnyColumn] = {}
        for name in self.columns:
            kind = types.field(name).type if name in types.names else None
            columns[name] = pa.array([p.values.get(name) for p in self.places], kind)
        mine = pa.Table.from_pylist([_record(p) for p in self.places], schema=_COLUMNS)
        for name in mine.column_names:
            columns[name] = mine[name]
        return build.table(columns)

    def to_pandas(self) -> pd.DataFrame:
        """Return `to_arrow` as a data frame."""
        return to_frame(self.to_arrow())

    def story(self) -> RowStory:
        """Return the history of each row across snapshots, as text and as a picture."""
        return story_of(self.places, self.state, self.filter, self.columns)

    timeline = story

    def card(self) -> Card:
        """Build the card that a notebook shows."""
        kinds: dict[str, int] = {}
        for p in self.places:
            kinds[p.fate.kind] = kinds.get(p.fate.kind, 0) + 1
        facts = [("Places", f"{len(self):,}"), *((k.capitalize(), f"{n:,}") for k, n in kinds.items())]
        facts.append(("Data files that could hold such rows", f"{self.candidates:,}"))
        several = any(len(p.lines) > 1 or p.lines != self.places[0].lines for p in self.places)
        columns = (*self.columns, "file", "pos", "row id", "added", "fate", *(("in",) if several else ()))
        rows = [self._cells(p, several) for p in self.places[:_SHOWN]]
        notes = []
        if len(self) > _SHOWN:
            notes.append(f"The first {_SHOWN} are shown; to_pandas() has all {len(self):,}.")
        if not self.complete:
            notes.append("The search ended at its limit: there may be more; limit= raises it.")
        if self.history and self.history_from is not None:
            first = self.history_from
            notes.append(f"The history in the metadata begins with {first.text}.")
        if not self.history:
            notes.append("Files removed before this state are not searched; history=True includes them.")
        problems = tuple(("error", f"a data file could not be read: {why}", name) for name, why in self.unread.items())
        tables = (CardTable("Rows", columns, tuple(rows), right=frozenset({len(self.columns) + 1})),) if rows else ()
        return Card(
            f"Rows of {self.state.name} where {self.filter}",
            facts=tuple(facts),
            tables=tables,
            notes=tuple(notes),
            problems=problems,
        )

    def _cells(self, p: RowPlace, several: bool) -> tuple[str, ...]:
        values = tuple(value_text(p.values.get(name)) for name in self.columns)
        row_id = "" if p.row_id is None else str(p.row_id)
        rest = (", ".join(p.lines),) if several else ()
        return (*values, _short(p.file), str(p.position), row_id, p.added.text, _shortened(p), *rest)

    def __repr__(self) -> str:
        return card_text(self.card())

    def _repr_html_(self) -> str:
        return card_html(self.card())


def _short(location: str) -> str:
    return location.rpartition("/")[2] or location


def _shortened(p: RowPlace) -> str:
    """Return the fate with locations shortened to their last part."""
    text = p.fate.text
    places = [d.location for d in p.fate.deletes] + ([p.fate.moved_to.file] if p.fate.moved_to else [])
    for location in places:
        text = text.replace(location, _short(location))
    return text


def _record(p: RowPlace) -> dict[str, Any]:
    fate, cause, move = p.fate, p.fate.cause, p.fate.moved_to
    by = fate.by or Commit(None)
    return {
        "_file": p.file,
        "_pos": p.position,
        "_row_id": p.row_id,
        "_last_updated_sequence_number": p.last_updated,
        "_added_snapshot_id": p.added.snapshot_id,
        "_added_at": p.added.timestamp_ms,
        "_added_operation": p.added.operation,
        "_fate": fate.kind,
        "_fate_snapshot_id": by.snapshot_id,
        "_fate_at": by.timestamp_ms,
        "_fate_operation": by.operation,
        "_deleted_by": cause.location if cause else None,
        "_delete_kind": cause.kind if cause else None,
        "_delete_offset": cause.offset if cause else None,
        "_deletes": len(fate.deletes),
        "_moved_to_file": move.file if move else None,
        "_moved_to_pos": move.position if move else None,
        "_moved_to_guess": move.guess if move else None,
        "_lines": ", ".join(p.lines),
        "_story": fate.text,
    }
