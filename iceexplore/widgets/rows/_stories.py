"""The history of found rows for the browser, with links to nodes and snapshots."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.graph import TableState, direct_places, format_ms, live_manifests, travel
from iceexplore.manifests import whole
from iceexplore.widgets.core._blocks import Block, Part
from iceexplore.widgets.core._escape_text import signs
from iceexplore.widgets.tree._forest import short

if TYPE_CHECKING:
    from iceexplore.reading import RowPlace, RowPlaces

__all__ = ["condition_of", "fate_words", "find_files", "nodes_of_places", "rows_sent", "story_sent"]

#: A number, true or false, or a quoted text.
_LITERAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|true|false|'[^']*(''[^']*)*'", re.IGNORECASE)
_ROWS = 30
_EVENTS = 60
_COMMITS = 20
_LONG = 200
_UNREAD = 5


def condition_of(name: str, value: str) -> str:
    """Return ``column = value`` as a filter: literals unchanged, ``null`` as ``is null``, all else as quoted text.

    Parameters
    ----------
    name
        A column in the notation of filters.
    """
    plain = value.strip()
    if plain.casefold() == "null":
        return f"{name} is null"
    quoted = "'" + value.replace("'", "''") + "'"
    return f"{name} = {plain if _LITERAL.fullmatch(plain) else quoted}"


def find_files(state: TableState, locations: Collection[str]) -> dict[str, str]:
    """Return the node ids of files by location in the state's snapshot, reading manifests until all are found."""
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
        for row in build.to_pylist(pc.indices_nonzero(pc.and_(own, whole(pc.is_in(names, value_set=wanted))))):
            out.setdefault(names[row].as_py(), f"file:{number}:{row}")
    rows = live_manifests(root)
    leaves = state.reader.leaves(root, rows) if rows and len(out) < len(wanted) else ()
    for leaf in leaves:
        held = whole(leaf.entries["location"])
        for row in build.to_pylist(pc.indices_nonzero(pc.is_in(held, value_set=wanted))):
            out.setdefault(held[row].as_py(), f"file:{number}:{leaf.root_row}:{row}")
        if len(out) == len(wanted):
            break
    return out


def rows_sent(places: RowPlaces) -> list[Block]:
    """Return blocks: the numbers of rows that each commit deleted, moved or removed, then the history of each row."""
    story = places.story()
    shown = story.rows[:_ROWS]
    nodes = _Nodes(places.state, [p for row in shown for p in row])
    found = f"{_count(len(story.rows), 'row')} found; {_count(places.candidates, 'file')} could contain such rows."
    out: list[Block] = [["p", [found]]]
    by_commit = list(_by_commit(places, nodes))
    if by_commit:
        out += [["p", ["Rows no longer live, by commit:"]], ["list", by_commit]]
    if not places.history:
        lacking = "Rows of files that were removed before this snapshot are not included. "
        link: Part = ["set", "Search them, too", {"rows_history": True}]
        out.append(["p", [["note", lacking], link]])
    for row in shown:
        out += _row(row, nodes)
    if len(story.rows) > _ROWS:
        out.append(_note(f"The first {_ROWS} of {len(story.rows):,} rows are shown."))
    if not places.complete:
        out.append(_note("The search stopped at its limit; there may be more rows."))
    for name, why in list(places.unread.items())[:_UNREAD]:
        out.append(_note(f"{name[-_LONG:]} cannot be read: {why[:_LONG]}"))
    return out


def story_sent(places: RowPlaces, number: int) -> list[Block]:
    """Return the history of one row, given by the number of one of its places."""
    row = next(row for row in places.story().rows if any(place is places[number] for place in row))
    return _row(row, _Nodes(places.state, list(row)))


def fate_words(kind: str, count: int) -> str:
    """Return words for what became of rows: the kind of fate, or for removed rows, that their files were removed."""
    return f"removed with {'its file' if count == 1 else 'their files'}" if kind == "removed" else kind


def nodes_of_places(state: TableState, places: Sequence[RowPlace]) -> list[str | None]:
    """Return the node of each row's file: in the snapshot shown or, if it was removed, in the one that added it."""
    nodes = _Nodes(state, list(places))
    return [nodes.node(place) for place in places]


def _note(text: str) -> Block:
    return ["p", [["note", signs(text)]]]


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


class _Nodes:
    """The nodes of the files that contain some rows, by snapshot and location."""

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

    @property
    def when(self) -> str:
        """Words for the time to which fates apply: now or, if the selected snapshot is not current, that snapshot."""
        shown = self._state.snapshot
        is_current = shown is None or shown.snapshot_id == self._state.metadata.current_snapshot_id
        return "now" if is_current else "in the selected snapshot"

    def snapshot_of(self, place: RowPlace) -> int | None:
        """Return the snapshot in which to show a row's file: the one shown, or the one that added a removed file."""
        gone = any(e.kind == "gone" for e in place.events)
        if not gone and self._state.snapshot is not None:
            return self._state.snapshot.snapshot_id
        return self.known(place.added.snapshot_id)

    def known(self, snapshot: int | None) -> int | None:
        """Return a snapshot id if the metadata still has the snapshot, else None."""
        return None if snapshot is None or self._state.metadata.snapshot(snapshot) is None else snapshot

    def place(self, place: RowPlace) -> Part:
        """Return a file and position as text, linked to the node if there is one."""
        words = signs(f"{short(_name(place.file))}, position {place.position:,}")
        snapshot, node = self.snapshot_of(place), self.node(place)
        return words if node is None else ["go", words, {"snapshot": str(snapshot), "node": node}]

    def node(self, place: RowPlace) -> str | None:
        """Return the node of a row's file; None if there is none."""
        snapshot = self.snapshot_of(place)
        return None if snapshot is None else self._found[snapshot].get(place.file)

    def commit(self, by: Any) -> list[Part]:  # noqa: ANN401  a commit of a row's story, whose class is private
        """Return the time and operation of a commit, linked to its snapshot."""
        when = "" if by.timestamp_ms is None else format_ms(by.timestamp_ms).removesuffix(" UTC").removesuffix(".000")
        known = self.known(by.snapshot_id)
        words = signs((by.operation or "snapshot")[:40])
        to = {"snapshot": str(known), "node": f"snapshot:{known}"}
        return [["note", f"{when} "], words if known is None else ["go", words, to], " "]


def _by_commit(places: RowPlaces, nodes: _Nodes) -> Iterator[list[Part]]:
    """Yield what each commit did to the rows found, the oldest commit first: how many it deleted, moved or removed."""
    counts: dict[int | None, Counter[str]] = {}
    commits = {}
    for fate in (place.fate for place in places):
        if fate.by is not None and fate.kind != "live":
            commits[fate.by.snapshot_id] = fate.by
            counts.setdefault(fate.by.snapshot_id, Counter())[fate.kind] += 1
    found = sorted(commits, key=lambda i: (commits[i].timestamp_ms or -1, str(i)))
    for snapshot in found[:_COMMITS]:
        kinds = ", ".join(f"{n:,} {fate_words(kind, n)}" for kind, n in sorted(counts[snapshot].items()))
        line = [*nodes.commit(commits[snapshot]), kinds]
        if commits[snapshot].operation == "overwrite" and counts[snapshot]["deleted"]:
            line.append(["note", " (it may have added newer versions of them)"])
        yield line
    if len(found) > _COMMITS:
        yield [["note", f"and {len(found) - _COMMITS:,} more commits"]]


def _row(row: tuple[RowPlace, ...], nodes: _Nodes) -> list[Block]:
    first = row[0]
    values = ", ".join(f"{k} = {_short(v)}" for k, v in list(first.values.items())[:8])
    fates = {p.fate.kind for p in row}
    fate = "live" if "live" in fates else "unknown" if "unknown" in fates else row[-1].fate.kind
    head: list[Part] = [[f"badge {'yes' if fate == 'live' else 'no'}", fate], " ", signs(values[:400])]
    if first.row_id is not None:
        head.append(["note", f" _row_id {first.row_id}"])
    return [["h", head], ["list", list(_events(row, nodes))[:_EVENTS]]]


def _events(row: tuple[RowPlace, ...], nodes: _Nodes) -> Iterator[list[Part]]:
    found: list[tuple[tuple[int, int], list[Part]]] = []
    for n, place in enumerate(row):
        for event in place.events:
            by = event.deletes[0] if event.deletes else None
            words = {
                "added": "added in" if n == 0 else "continued in",
                "updated": "updated by a column file of",
                "deleted": "deleted in"
                if by is None
                else f"deleted by {_DELETES[by.kind]} {short(_name(by.location))} in",
                "restored": "its delete was reverted in",
                "gone": "its file was removed:",
                "back": "its file was restored:",
            }[event.kind]
            at = -1 if event.by.timestamp_ms is None else event.by.timestamp_ms
            found.append(((at, n), [*nodes.commit(event.by), signs(words), " ", nodes.place(place)]))
    found.sort(key=lambda t: t[0])
    yield from (parts for _, parts in found)
    for place in row:
        if place.fate.kind == "live":
            yield [["note", f"{nodes.when} "], ["yes", "live"], " in ", nodes.place(place)]
        elif place.fate.kind == "unknown":
            yield [
                ["note", f"{nodes.when} "],
                signs(f"unknown, {place.fate.why or ''}"[:_LONG]),
                ": ",
                nodes.place(place),
            ]


_DELETES = {"deletion-vector": "vector", "position-delete": "position deletes", "equality-delete": "equality deletes"}


def _name(location: str) -> str:
    return location.rpartition("/")[2] or location


def _short(value: object) -> str:
    text = "null" if value is None else str(value)
    return text if len(text) <= 60 else text[:59] + "…"
