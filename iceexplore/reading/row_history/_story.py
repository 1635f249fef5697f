"""Show the history of rows across snapshots, as text and as a small picture."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from iceexplore.graph import TableState, format_ms
from iceexplore.reading.row_history._fate import Commit, RowDelete, RowEvent
from iceexplore.reading.row_history._place import RowPlace, value_text
from iceexplore.render import (
    Mark,
    Mermaid,
    Scene,
    SceneEdge,
    SceneNode,
    Svg,
    Theme,
    details,
    escape,
    html_lines,
    mermaid,
    svg,
    svg_image,
    text,
)

__all__ = ["RowStory", "story_of"]

#: The maximum number of rows in a picture; the text has all of them.
_DRAWN = 12


@dataclass(frozen=True)
class RowStory:
    """The places of rows in order of time, grouped by row.

    Attributes
    ----------
    location
        The table's location.
    rows
        The places of each row, linked by ``_row_id``, by the identifier fields, or by a guessed move. In a table with
        neither, rows are distinguished only by their places.
    """

    title: str
    rows: tuple[tuple[RowPlace, ...], ...]
    location: str = ""

    def to_text(self) -> str:
        """Return a paragraph per row and a line per event, with relative file names, safe for terminals."""
        out = [self.title]
        for row in self.rows:
            lines = _paragraph(row)
            out += ["", *([line.replace(f"{self.location}/", "") for line in lines] if self.location else lines)]
        return "\n".join(escape.text(line) for line in out)

    def scene(self) -> Scene:
        """Return a few rows' picture for renderers: snapshots, the places that they added, and how these ended."""
        nodes: list[SceneNode] = []
        edges: list[SceneEdge] = []
        shown = self.rows[:_DRAWN]
        for i, row in enumerate(shown):
            _draw(nodes, edges, str(i), row)
        rest = len(self.rows) - len(shown)
        words = f"{len(shown)} of {len(self.rows)} rows" if rest else _count(len(shown), "row")
        return Scene(self.title, words, tuple(nodes), tuple(edges))

    def to_svg(self, theme: Theme = "auto") -> Svg:
        """Return the picture as a standalone SVG; ``theme`` is ``light``, ``dark``, or ``auto`` (the viewer's)."""
        return svg(self.scene(), theme=theme)

    def to_mermaid(self, max_nodes: int = 150) -> Mermaid:
        """Return the picture as a Mermaid flowchart."""
        return mermaid(self.scene(), max_nodes=max_nodes)

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        plain = self.to_text()
        pre = html_lines(plain)
        if not self.rows:
            return {"text/plain": plain, "text/html": pre}
        scene = self.scene()
        image = svg_image(svg(scene), f"{scene.title}: {text(scene)}")
        return {"text/plain": plain, "text/html": image + details("The history as text", pre, opened=True)}


def story_of(places: Sequence[RowPlace], state: TableState, where: str, columns: Collection[str]) -> RowStory:
    """Group the places by row, in order of time.

    Parameters
    ----------
    where
        The filter of the search, as text.
    columns
        The columns whose values the places have.
    """
    names = [
        f.name for f in state.schema.fields if f.field_id in state.schema.identifier_field_ids and f.name in columns
    ]
    leaders = list(range(len(places)))

    def lead(i: int) -> int:
        while leaders[i] != i:
            leaders[i] = leaders[leaders[i]]
            i = leaders[i]
        return i

    known: dict[Any, int] = {}
    spots = {(p.file, p.position): i for i, p in enumerate(places)}
    for i, p in enumerate(places):
        keys: list[Any] = [("place", p.file, p.position)]
        if p.row_id is not None:
            keys.append(("row id", p.row_id))
        elif names:
            keys.append(("identifier", repr([p.values.get(n) for n in names])))
        for key in keys:
            leaders[lead(i)] = lead(known.setdefault(key, i))
        move = p.fate.moved_to
        if move is not None and (move.file, move.position) in spots:
            leaders[lead(spots[move.file, move.position])] = lead(i)
    groups: dict[int, list[RowPlace]] = {}
    for i, p in enumerate(places):
        groups.setdefault(lead(i), []).append(p)
    title = f"Rows of {state.name} where {where}"
    rows = tuple(tuple(g) for g in groups.values())
    return RowStory(title if groups else f"{title}: none was found", rows, state.metadata.location.rstrip("/"))


def _paragraph(row: Sequence[RowPlace]) -> list[str]:
    out = [_heading(row)]
    dated: list[tuple[tuple[int, int], str]] = []
    for n, place in enumerate(row):
        several = f" [{', '.join(place.lines)}]" if any(p.lines != row[0].lines for p in row) else ""
        for event in place.events:
            when = event.by.timestamp_ms
            dated.append(((-1 if when is None else when, n), _line(event, place) + several))
    out += [f"  {words}" for _, words in sorted(dated, key=lambda t: t[0])]
    for place in row:
        if place.fate.kind in ("live", "unknown"):
            out.append(f"  {'now':23}  {place.fate.text} in {place.file}, position {place.position}")
    if all(p.fate.kind not in ("live", "unknown") for p in row):
        out.append(f"  {'now':23}  no longer live")
    return out


def _heading(row: Sequence[RowPlace]) -> str:
    first = row[0]
    same = {k: v for k, v in first.values.items() if all(repr(p.values.get(k)) == repr(v) for p in row)}
    words = ", ".join(f"{k} = {value_text(v)}" for k, v in same.items()) or "a row"
    return words if first.row_id is None else f"{words} (_row_id {first.row_id})"


def _line(event: RowEvent, place: RowPlace) -> str:
    when = "—" if event.by.timestamp_ms is None else format_ms(event.by.timestamp_ms).removesuffix(" UTC")
    where = f"{place.file}, position {place.position}"
    values = ", ".join(f"{k} = {value_text(v)}" for k, v in place.values.items())
    # Only the values after an update are known, so the line about the addition omits them.
    changed = any(e.kind == "updated" for e in place.events)
    text = {
        "added": f"appears in {where}" + ("" if changed else f" ({values})"),
        "updated": f"updated by a column file of {where} ({values})",
        "deleted": f"deleted in {where} by {event.deletes[0].text}" if event.deletes else f"deleted in {where}",
        "restored": f"back in {where}: its delete was removed",
        "gone": f"{where}: the file was removed",
        "back": f"{where}: the file is back",
    }[event.kind]
    if event.kind == "added" and place.moved_from is not None:
        text += f", from {place.moved_from.text}"
    doubt = "" if event.sure else "or before "
    return f"{when:23}  {text}, {doubt}{_snapshot(event.by)}"


def _snapshot(by: Commit) -> str:
    if by.snapshot_id is None:
        return "by an unknown snapshot"
    operation = by.operation or "no operation" if by.known else "no longer in the metadata"
    return f"snapshot {by.snapshot_id} ({operation})"


def _draw(nodes: list[SceneNode], edges: list[SceneEdge], prefix: str, row: Sequence[RowPlace]) -> None:
    """Draw one row: the snapshots that added it, its places below them, and below these what ended them."""
    drawn: set[str] = set()
    ids = {(p.file, p.position): f"{prefix}:place:{i}" for i, p in enumerate(row)}
    for i, place in enumerate(row):
        by = f"{prefix}:snapshot:{place.added.snapshot_id}"
        if by not in drawn:
            drawn.add(by)
            nodes.append(_commit_node(by, place.added, _heading(row)))
        at = f"{prefix}:place:{i}"
        marks: frozenset[Mark] = frozenset({"added"} if place.fate.kind == "live" else {"removed"})
        if place.fate.kind == "unknown":
            marks = frozenset({"problem"})
        values = tuple(f"{k} = {value_text(v)}" for k, v in list(place.values.items())[:4])
        nodes.append(
            SceneNode(
                at,
                "data-file",
                place.file.rpartition("/")[2],
                (f"position {place.position}", *values),
                badge="live" if place.fate.kind == "live" else None,
                marks=marks,
                parent=by,
                level=1,
                tooltip=place.text,
            )
        )
        ended = [e for e in place.events if e.kind in ("deleted", "gone")]
        for n, event in enumerate(ended):
            nodes.append(_end(f"{at}:end:{n}", event, at))
        move = place.fate.moved_to
        target = None if move is None else ids.get((move.file, move.position))
        if move is not None and target is not None and target != at:
            edges.append(SceneEdge(at, target, "ref", "a guess" if move.guess else "same _row_id"))
    order = {node.id: i for i, node in enumerate(nodes)}
    edges[:] = [e for e in edges if e.source in order and e.target in order]


def _commit_node(node_id: str, by: Commit, line: str) -> SceneNode:
    when = () if by.timestamp_ms is None else (format_ms(by.timestamp_ms),)
    label = f"snapshot {by.snapshot_id}" if by.snapshot_id is not None else "an unknown snapshot"
    return SceneNode(node_id, "snapshot", label, (*when, line), badge=by.operation, level=0)


def _end(node_id: str, event: RowEvent, parent: str) -> SceneNode:
    when = () if event.by.timestamp_ms is None else (format_ms(event.by.timestamp_ms),)
    if event.kind == "deleted" and event.deletes:
        delete: RowDelete = event.deletes[0]
        at = () if delete.offset is None else (f"at byte {delete.offset}",)
        label, kind, lines = delete.location.rpartition("/")[2], delete.kind, (*at, _snapshot(event.by), *when)
    else:
        label, kind, lines = "the file was removed", "snapshot", (_snapshot(event.by), *when)
    return SceneNode(node_id, kind, label, lines, parent=parent, level=2)


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"
