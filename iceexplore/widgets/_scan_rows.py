"""Where rows are and what became of them, for the browser: each line leads to its node and its snapshot."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.graph import TableState, direct_places, format_ms, json_safe, live_manifests, travel
from iceexplore.manifests import whole
from iceexplore.reading import RowPlace, RowPlaces

__all__ = ["condition_of", "find_files", "rows_sent"]

_ROWS = 30
_EVENTS = 60
_LONG = 200
_UNREAD = 5


def condition_of(name: str, value: str) -> str:
    """``column = value`` as a filter: numbers as they are, ``null`` as its absence, all else as a text.

    Parameters
    ----------
    name
        A column, as a filter writes it.
    """
    plain = value.strip()
    if plain.casefold() == "null":
        return f"{name} is null"
    bare = plain.casefold() in ("true", "false") or _is_number(plain)
    quoted = plain if len(plain) > 1 and plain[0] == plain[-1] == "'" else "'" + value.replace("'", "''") + "'"
    return f"{name} = {plain if bare else quoted}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text[-1:].isdecimal() and text.isascii()


def find_files(state: TableState, locations: Collection[str]) -> dict[str, str]:
    """The nodes of files by location, in the state's snapshot; manifests are read until all are found."""
    root = state.root()
    if root is None or state.snapshot is None:
        return {}
    wanted = pa.array(sorted(set(locations)), pa.string())
    out: dict[str, str] = {}
    number = state.snapshot.snapshot_id
    direct = state.reader.direct(root)
    if direct is not None:
        names = root.entries["location"]
        own = direct_places(root, direct).is_valid()
        for row in pc.indices_nonzero(pc.and_(own, whole(pc.is_in(names, value_set=wanted)))).to_pylist():
            out.setdefault(names[row].as_py(), f"file:{number}:{row}")
    rows = live_manifests(root)
    leaves = state.reader.leaves(root, rows) if rows and len(out) < len(wanted) else ()
    for leaf in leaves:
        names = whole(leaf.entries["location"])
        for row in pc.indices_nonzero(pc.is_in(names, value_set=wanted)).to_pylist():
            out.setdefault(names[row].as_py(), f"file:{number}:{leaf.root_row}:{row}")
        if len(out) == len(wanted):
            break
    return out


def rows_sent(places: RowPlaces) -> dict[str, Any]:
    """The life of each row: where it is or was, and what happened there, oldest first."""
    story = places.story()
    shown = story.rows[:_ROWS]
    nodes = _Nodes(places.state, [p for row in shown for p in row])
    notes = []
    if len(story.rows) > _ROWS:
        notes.append(f"The first {_ROWS} of {len(story.rows):,} rows are shown.")
    if not places.complete:
        notes.append("The search ended at its limit: there may be more.")
    if not places.history:
        notes.append("Files that were removed before this snapshot are not looked at.")
    for name, why in list(places.unread.items())[:_UNREAD]:
        notes.append(json_safe(f"{name[-_LONG:]} cannot be read: {why[:_LONG]}"))
    return {
        "filter": json_safe(places.filter[:_LONG]),
        "said": f"{_count(len(story.rows), 'row')}; {_count(places.candidates, 'file')} could hold such rows",
        "rows": [_row(row, nodes) for row in shown],
        "notes": notes,
    }


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


class _Nodes:
    """Nodes of files by location and snapshot."""

    def __init__(self, state: TableState, places: list[RowPlace]) -> None:
        self._state = state
        self._found: dict[int, dict[str, str]] = {}
        by_snapshot: dict[int, set[str]] = {}
        for place in places:
            snapshot = self.snapshot_of(place)
            if snapshot is not None:
                names = by_snapshot.setdefault(snapshot, set())
                names.add(place.file)
        for snapshot, names in by_snapshot.items():
            shown = state.snapshot is not None and snapshot == state.snapshot.snapshot_id
            self._found[snapshot] = find_files(state if shown else travel(state, snapshot=snapshot), names)

    def snapshot_of(self, place: RowPlace) -> int | None:
        """The snapshot in which a place's file can be looked at: the one shown, or the one that added it."""
        gone = any(e.kind == "gone" for e in place.events)
        if not gone and self._state.snapshot is not None:
            return self._state.snapshot.snapshot_id
        return self.known(place.added.snapshot_id)

    def known(self, snapshot: int | None) -> int | None:
        """A snapshot that the metadata still has."""
        return None if snapshot is None or self._state.metadata.snapshot(snapshot) is None else snapshot

    def link(self, place: RowPlace) -> dict[str, str]:
        """Where a click leads."""
        snapshot = self.snapshot_of(place)
        node = None if snapshot is None else self._found[snapshot].get(place.file)
        return {} if node is None else {"snapshot": str(snapshot), "node": node}


def _row(row: tuple[RowPlace, ...], nodes: _Nodes) -> dict[str, Any]:
    first = row[0]
    values = ", ".join(f"{k} = {_short(v)}" for k, v in list(first.values.items())[:8])
    live = any(p.fate.kind == "live" for p in row)
    unknown = not live and any(p.fate.kind == "unknown" for p in row)
    return {
        "title": json_safe(values[:400]),
        "fate": "live" if live else "not known" if unknown else "gone",
        "id": "" if first.row_id is None else str(first.row_id),
        "events": list(_events(row, nodes))[:_EVENTS],
    }


def _events(row: tuple[RowPlace, ...], nodes: _Nodes) -> Iterator[dict[str, Any]]:
    told: list[tuple[tuple[int, int], dict[str, Any]]] = []
    for n, place in enumerate(row):
        where = f"{_name(place.file)}, position {place.position:,}"
        for event in place.events:
            by = event.by.snapshot_id if nodes.known(event.by.snapshot_id) is not None else None
            words = {
                "added": "appears in" if n == 0 else "goes on in",
                "deleted": f"deleted by {_DELETES[event.deletes[0].kind]} {_name(event.deletes[0].location)} in"
                if event.deletes
                else "deleted in",
                "restored": "its delete was taken back in",
                "gone": "its file was removed:",
                "back": "its file is back:",
            }[event.kind]
            at = event.by.timestamp_ms
            told.append(
                (
                    (-1 if at is None else at, n),
                    {
                        "when": "" if at is None else format_ms(at).removesuffix(" UTC").removesuffix(".000"),
                        "operation": json_safe((event.by.operation or "")[:40]),
                        "by": "" if by is None else str(by),
                        "what": json_safe(words),
                        "where": json_safe(where),
                        "kind": event.kind,
                        **nodes.link(place),
                    },
                )
            )
    told.sort(key=lambda t: t[0])
    yield from (record for _, record in told)
    for place in row:
        if place.fate.kind in ("live", "unknown"):
            where = f"{_name(place.file)}, position {place.position:,}"
            words = "live in" if place.fate.kind == "live" else f"not known, {place.fate.why or ''}:"
            said = {"what": json_safe(words[:_LONG]), "where": json_safe(where), "kind": place.fate.kind}
            yield {"when": "now", "operation": "", "by": "", **said, **nodes.link(place)}


_DELETES = {"deletion-vector": "vector", "position-delete": "position deletes", "equality-delete": "equality deletes"}


def _name(location: str) -> str:
    return (location.rpartition("/")[2] or location)[-120:]


def _short(value: Any) -> str:
    text = "null" if value is None else str(value)
    return text if len(text) <= 60 else text[:59] + "…"
