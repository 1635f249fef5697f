"""Snapshots, refs and history as sequences and mappings that display as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, TypeVar, overload

from iceexplore.arrow import build
from iceexplore.graph._frame import to_frame
from iceexplore.graph._state import TableState
from iceexplore.graph._travel import clock, format_ms
from iceexplore.metadata import Ref, Snapshot, ancestry, in_order
from iceexplore.render import Card, CardTable, card_html, card_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Records", "RefRecords", "history", "ref_records", "snapshot_records"]

T = TypeVar("T")

#: Maximum number of rows that are displayed: after years of streaming, a table may have a hundred thousand snapshots.
_MOST = 100


class Records(Sequence[T]):
    """A sequence of records that displays as a table."""

    def __init__(self, items: Sequence[T], card: Card) -> None:
        self._items = tuple(items)
        self._card = card

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return card_text(self._card)

    def _repr_html_(self) -> str:
        return card_html(self._card)


class RefRecords(Mapping[str, Ref]):
    """Branches and tags by name; displays as a table."""

    def __init__(self, refs: Mapping[str, Ref], card: Card) -> None:
        self._refs = dict(refs)
        self._card = card

    def __getitem__(self, name: str) -> Ref:
        return self._refs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._refs)

    def __len__(self) -> int:
        return len(self._refs)

    def __repr__(self) -> str:
        return card_text(self._card)

    def _repr_html_(self) -> str:
        return card_html(self._card)


def snapshot_records(state: TableState) -> Records[Snapshot]:
    """Return every snapshot, oldest first."""
    ordered = in_order(state.metadata.snapshots)
    rows = tuple(
        (
            str(s.snapshot_id),
            "—" if s.parent_snapshot_id is None else str(s.parent_snapshot_id),
            format_ms(s.timestamp_ms),
            str(s.sequence_number),
            s.operation or "—",
            "—" if s.schema_id is None else str(s.schema_id),
        )
        for s in ordered[-_MOST:]
    )
    columns = ("snapshot id", "parent", "committed", "sequence number", "operation", "schema")
    note = f"last {_MOST} shown; all: t.inspect.snapshots()" if len(ordered) > _MOST else ""
    table = CardTable(f"{len(ordered)} in total", columns, rows, note, code=frozenset({0, 1}))
    return Records(ordered, Card(f"Snapshots of {state.name}", tables=(table,)))


def ref_records(state: TableState) -> RefRecords:
    """Return the branches and tags."""

    def age(ms: int | None) -> str:
        return "—" if ms is None else f"{ms / 86_400_000:g} days"

    rows = tuple(
        (
            r.name,
            r.type,
            str(r.snapshot_id),
            age(r.max_ref_age_ms),
            "—" if r.min_snapshots_to_keep is None else str(r.min_snapshots_to_keep),
            age(r.max_snapshot_age_ms),
        )
        for r in islice(state.metadata.refs.values(), _MOST)
    )
    columns = ("name", "type", "snapshot id", "max ref age", "min snapshots to keep", "max snapshot age")
    found = len(state.metadata.refs)
    note = f"first {_MOST} shown; all: t.inspect.refs()" if found > _MOST else ""
    table = CardTable(f"{found} in total", columns, rows, note, code=frozenset({2}))
    return RefRecords(state.metadata.refs, Card(f"Branches and tags of {state.name}", tables=(table,)))


def history(state: TableState) -> pd.DataFrame:
    """Return when each snapshot became the current one, one row per change.

    Columns: made_current_at (UTC), snapshot_id, parent_id, is_current_ancestor, expired, operation, refs, and from the
    summary added_data_files, deleted_data_files, added_records, deleted_records. Times come from the snapshot-log or,
    if there is none, from the timestamps of the current snapshot and its ancestors.
    """
    import pyarrow as pa

    m = state.metadata
    by_id = {s.snapshot_id: s for s in reversed(m.snapshots)}
    ancestors = {s.snapshot_id for s in ancestry(m, m.snapshot())}
    refs: dict[int, list[str]] = {}
    for r in m.refs.values():
        refs.setdefault(r.snapshot_id, []).append(r.name)
    rows = []
    for ms, snapshot_id in clock(m)[0]:
        s = by_id.get(snapshot_id)
        summary = (s.summary if s else None) or {}
        row = {
            "made_current_at": ms,
            "snapshot_id": snapshot_id,
            "parent_id": s.parent_snapshot_id if s else None,
            "is_current_ancestor": snapshot_id in ancestors,
            "expired": s is None,
            "operation": s.operation if s else None,
            "refs": ", ".join(refs.get(snapshot_id, ())),
        }
        for key in ("added-data-files", "deleted-data-files", "added-records", "deleted-records"):
            text = summary.get(key, "")
            row[key.replace("-", "_")] = int(text) if text.isdigit() and len(text) < 19 else None
        rows.append(row)
    schema = build.schema(
        [
            ("made_current_at", pa.timestamp("ms", "UTC")),
            ("snapshot_id", pa.int64()),
            ("parent_id", pa.int64()),
            ("is_current_ancestor", pa.bool_()),
            ("expired", pa.bool_()),
            ("operation", pa.string()),
            ("refs", pa.string()),
            ("added_data_files", pa.int64()),
            ("deleted_data_files", pa.int64()),
            ("added_records", pa.int64()),
            ("deleted_records", pa.int64()),
        ]
    )
    return to_frame(pa.Table.from_pylist(rows, schema=schema))
