"""Table diagrams in the style of the V4 proposal: ``t.tree(style="proposal")``.

The rules of the proposal's figures: snapshots, roots and the children of roots are each on one level. A manifest is a
table with a row and a status per entry; the status belongs to the reference, not to the node. A file shared by several
snapshots has one node; files inside leaves have none. Deletion vectors list their ordinals, dotted edges mean "applies
to", and edges do not cross. Unless names are given, nodes get short numbered ones (M1, D1, DV1); tooltips have the
locations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from iceexplore.arrow import compute as pc
from iceexplore.errors import IceexploreError
from iceexplore.graph._state import TableState
from iceexplore.graph.proposal._names import SeedNames
from iceexplore.graph.tree._source import NodeSource
from iceexplore.graph.tree._tree import chosen_snapshots
from iceexplore.manifests import ContentType, Manifest, Status, read_manifest_dv
from iceexplore.metadata import Snapshot
from iceexplore.render import (
    Mermaid,
    Svg,
    TableDiagram,
    TableLink,
    TableNode,
    Theme,
    details,
    html_lines,
    svg_image,
    tables_graphviz,
    tables_mermaid,
    tables_svg,
    tables_text,
)

if TYPE_CHECKING:
    from graphviz import Digraph

__all__ = ["ProposalDiagram", "build_proposal_diagram", "seed_diagram", "snapshot_numbers"]

_KINDS = {
    ContentType.DATA: ("data-file", "Data File"),
    ContentType.POSITION_DELETE: ("deletion-vector", "Delete Vector"),
    ContentType.EQUALITY_DELETE: ("equality-delete", "Equality Delete"),
    ContentType.DATA_MANIFEST: ("data-manifest", "Data Manifest"),
    ContentType.DELETE_MANIFEST: ("delete-manifest", "Delete Manifest"),
    ContentType.MANIFEST_DV: ("manifest-dv", "Manifest"),
}
_MANIFESTS = (ContentType.DATA_MANIFEST, ContentType.DELETE_MANIFEST)


class ProposalDiagram:
    """A diagram of snapshots in the style of the V4 proposal's figures. It reads files when it is first displayed."""

    def __init__(self, make: Callable[[], TableDiagram]) -> None:
        self._make = make

    @cached_property
    def diagram(self) -> TableDiagram:
        """The nodes and edges as plain data."""
        return self._make()

    def to_text(self) -> str:
        """Return the diagram as lines of text."""
        return tables_text(self.diagram)

    def to_svg(self, theme: Theme = "auto") -> Svg:
        """Return the diagram as a standalone SVG. ``theme``: ``auto`` follows the viewer, or ``light``, ``dark``."""
        return tables_svg(self.diagram, theme=theme)

    def to_mermaid(self) -> Mermaid:
        """Return the diagram as Mermaid, in the proposal's own notation."""
        return tables_mermaid(self.diagram)

    def to_graphviz(self) -> Digraph:
        """Return the diagram as a ``graphviz.Digraph``."""
        return tables_graphviz(self.diagram)

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        plain = self.to_text()
        image = svg_image(self.to_svg(), f"{self.diagram.title}: {self.diagram.caption}")
        pre = html_lines(plain)
        return {"text/plain": plain, "text/html": image + details("The figure as text", pre)}


def build_proposal_diagram(
    state: TableState,
    *,
    snapshots: Literal["current", "all"] | int | str | Iterable[int] | None = None,
    names: Mapping[str, str] | None = None,
    title: str | None = None,
    caption: str | None = None,
    max_rows: int = 12,
    max_children: int = 30,
) -> ProposalDiagram:
    """Return a diagram of some snapshots in the style of the V4 proposal's figures; see `seed_diagram`.

    Parameters
    ----------
    snapshots
        As in `build_tree`.

    Raises
    ------
    OptionError
        The form of ``snapshots`` is not accepted.
    SnapshotNotFoundError
        A snapshot does not exist; the message lists the nearest ones.
    """
    ids = set(chosen_snapshots(NodeSource(state, "short"), snapshots))
    chosen = [s for s in state.metadata.snapshots if s.snapshot_id in ids]
    return ProposalDiagram(
        lambda: seed_diagram(
            state,
            chosen,
            names=names,
            title=title,
            caption=caption,
            max_rows=max_rows,
            max_children=max_children,
            numbers=snapshot_numbers(state),
        )
    )


def snapshot_numbers(state: TableState) -> dict[int, int]:
    """Return each snapshot's number in the table's metadata, from 1, by snapshot id: the timeline shows the same."""
    ids = dict.fromkeys(s.snapshot_id for s in state.metadata.snapshots)  # without the duplicates of a broken table
    return {snapshot_id: number for number, snapshot_id in enumerate(ids, start=1)}


def seed_diagram(
    state: TableState,
    snapshots: Iterable[Snapshot],
    *,
    names: Mapping[str, str] | None = None,
    title: str | None = None,
    caption: str | None = None,
    max_rows: int = 12,
    max_children: int = 30,
    notes: Mapping[int, str] | None = None,
    numbers: Mapping[int, int] | None = None,
) -> TableDiagram:
    """Draw some snapshots of a table.

    Parameters
    ----------
    notes
        Texts to write beside the titles of snapshots, by snapshot id.
    numbers
        Numbers to write in the titles of snapshots, by snapshot id; by default, they count the drawn snapshots from 1.
    names
        Short names by location; a file without one gets the next free name of its kind.
    max_rows, max_children
        Maximum number of entries shown per manifest, and maximum number of a root's children that get nodes; a last row
        counts the rest.
    """
    chosen = list(snapshots)
    builder = _Builder(state, SeedNames(names or {}), max_rows, max_children)
    for number, snapshot in enumerate(chosen, start=1):
        note = (notes or {}).get(snapshot.snapshot_id, "")
        shown = (numbers or {}).get(snapshot.snapshot_id, number)
        builder.snapshot(snapshot, str(number), f"Snapshot {shown}{note and f' ({note})'}")
    words = f"{state.format_name} · {len(chosen)} of {len(state.metadata.snapshots)} snapshots"
    return TableDiagram(title or state.name, words if caption is None else caption, *builder.drawn())


class _Builder:
    def __init__(self, state: TableState, names: SeedNames, max_rows: int, max_children: int) -> None:
        self.state = state
        self.names = names
        self.max_rows = max_rows
        self.max_children = max_children
        self.top: list[TableNode] = []
        self.children: dict[str, TableNode] = {}
        self.links: dict[TableLink, None] = {}
        #: The node in which each data file is drawn: its own, or the node of the leaf that lists it.
        self.homes: dict[str, str] = {}
        #: (node of the delete, location that it refers to, short name of the delete); resolved once all nodes exist.
        self.refers: list[tuple[str, str, str]] = []

    def snapshot(self, snapshot: Snapshot, group: str, title: str) -> None:
        """Add a snapshot, its root, and the root's children."""
        head, root_id = f"snapshot:{snapshot.snapshot_id}", f"root:{snapshot.snapshot_id}"
        tooltip = f"snapshot {snapshot.snapshot_id}, {snapshot.operation or 'no operation'}"
        self.top.append(TableNode(head, "snapshot", title, layer=0, group=group, tooltip=tooltip))
        root = self.state.root(snapshot)
        if root is None:
            return
        is_list = not root.dialect.has_root_manifest
        kind, words = ("manifest-list", "Manifest List") if is_list else ("root-manifest", "Root Manifest")
        rows: list[tuple[str, str]] = []
        places = _first_rows(root, snapshot, self.max_children)
        shown = root.entries.take(pa.array(places, pa.int64())).to_pylist()
        for row, entry in zip(places, shown, strict=True):
            child = self._child(root, row, entry, group)
            status = _status_name(entry["status"])
            rows.append((self.names.of(_key(entry), entry["content_type"]), status))
            if child is not None:
                self.links[TableLink(root_id, child)] = None
        if len(root) > len(shown):
            rows.append((f"… {len(root) - len(shown):,} more", ""))
        node = TableNode(root_id, kind, f"{words} {_letter(int(group))}", tuple(rows), 1, group, root.location)
        self.top.append(node)
        self.links[TableLink(head, root_id)] = None

    def _child(self, root: Manifest, row: int, entry: dict[str, Any], group: str) -> str | None:
        """Return the node id of a root's entry, adding the node if new; None for a removed entry or an unknown type."""
        if entry["status"] in (Status.DELETED, Status.REPLACED) or entry["content_type"] not in _KINDS:
            return None
        content = ContentType(entry["content_type"])
        key = _key(entry)
        node_id = f"child:{key}"
        if node_id in self.children:
            return node_id
        kind, words = _KINDS[content]
        name = self.names.of(key, content)
        if content in _MANIFESTS:
            rows = self._leaf(root, row, node_id)
        else:
            rows = self._ordinals(root, row, entry, content)
            if content == ContentType.DATA:
                self.homes[entry["location"]] = node_id
            elif entry["referenced_file"]:
                short = "" if content == ContentType.MANIFEST_DV else name
                self.refers.append((node_id, entry["referenced_file"], short))
        tooltip = entry["location"] or ""
        self.children[node_id] = TableNode(node_id, kind, f"{words} {name}", rows, 2, group, tooltip)
        return node_id

    def _leaf(self, root: Manifest, row: int, node_id: str) -> tuple[tuple[str, str], ...]:
        self.homes[root.entries["location"][row].as_py()] = node_id
        leaf = self.state.reader.leaf(root, row)
        rows = []
        for entry in leaf.entries.slice(0, self.max_rows).to_pylist():
            name = self.names.of(_key(entry), entry["content_type"])
            rows.append((name, _status_name(entry["status"])))
            if entry["content_type"] == ContentType.DATA:
                self.homes.setdefault(entry["location"], node_id)
            elif entry["referenced_file"]:
                self.refers.append((node_id, entry["referenced_file"], name))
        if len(leaf) > len(rows):
            rows.append((f"… {len(leaf) - len(rows):,} more", ""))
        return tuple(rows)

    def _ordinals(
        self, root: Manifest, row: int, entry: dict[str, Any], content: ContentType
    ) -> tuple[tuple[str, str], ...]:
        """Return a vector's positions as rows of text: ordinals in a leaf, or positions in a data file."""
        if entry["deletion_vector"] is None or content == ContentType.EQUALITY_DELETE:
            return ()
        vector = entry["deletion_vector"]
        place = vector["offset"], vector["size_in_bytes"]
        where = f"{root.location}#entry {row}"
        try:
            if content == ContentType.MANIFEST_DV or None in place:  # None: the vector is inline, or reading it fails
                found = read_manifest_dv(self.state.storage, root, row)
            else:
                from iceexplore.deletes import read_deletion_vector

                # Blame the vector's file for errors, not the root, which is intact: plans refuse a root with problems.
                where = entry["location"]
                found = read_deletion_vector(self.state.storage, entry["location"], *place)
        except IceexploreError as error:
            self.state.problems.add_error(error, where)
            return (("cannot be read", ""),)
        first = [str(p) for p in _first(found, self.max_rows)]
        more = len(found) - len(first)
        return (*((p, "") for p in first), *(((f"… {more:,} more", ""),) if more else ()))

    def drawn(self) -> tuple[tuple[TableNode, ...], tuple[TableLink, ...]]:
        """Return the nodes in drawing order, and the edges."""
        applies: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for source, referenced, name in self.refers:
            target = self.homes.get(referenced)
            if target is not None and target != source:
                applies.setdefault((source, target), []).append((name, self.names.known(referenced)))
        links = list(self.links)
        for (source, target), pairs in applies.items():
            links.append(TableLink(source, target, "applies-to", _applies(pairs)))
        return (*self.top, *_ordered(self.children, list(applies))), tuple(links)


def _first_rows(root: Manifest, snapshot: Snapshot, most: int) -> list[int]:
    """Return the rows of a root to draw, in order: if there are too many, those that the snapshot wrote come first."""
    if len(root) <= most:
        return list(range(len(root)))
    own = np.asarray(pc.fill_null(pc.equal(root.entries["snapshot_id"], snapshot.snapshot_id), False))
    return sorted(np.argsort(~own, kind="stable")[:most].tolist())


def _applies(pairs: list[tuple[str, str]]) -> str:
    texts = [f"{name} applies to {other}" if name else f"applies to {other}" for name, other in pairs]
    return ", ".join(texts[:2]) + (f" and {len(texts) - 2} more" if len(texts) > 2 else "")


def _ordered(children: Mapping[str, TableNode], applies: list[tuple[str, str]]) -> list[TableNode]:
    """Sort nodes by snapshot and root order, with a vector right after its target ("M1 DV1 M2 DV2 M3 D7")."""
    followers: dict[str, list[str]] = {}
    for source, target in applies:
        if children[source].group == children[target].group:
            followers.setdefault(target, []).append(source)
    led = {source for sources in followers.values() for source in sources}
    out: dict[str, TableNode] = {}

    def add(node_id: str) -> None:
        if node_id not in out:
            out[node_id] = children[node_id]
            for follower in followers.get(node_id, ()):
                add(follower)

    for node_id in children:
        if node_id not in led:
            add(node_id)
    for node_id in children:
        add(node_id)
    return sorted(out.values(), key=lambda node: int(node.group))


def _key(entry: Mapping[str, Any]) -> str:
    """Return a key that identifies a file or vector: vectors may share a Puffin file, and inline ones have no file."""
    vector = entry["deletion_vector"]
    if vector is None:
        return str(entry["location"])
    content = vector["inline_content"]
    place = vector["offset"] if content is None else f"inline:{content.hex()[:64]}"
    return f"{entry['location']}#{place}@{entry['referenced_file']}"


def _first(bitmap: Iterable[int], limit: int) -> list[int]:
    out: list[int] = []
    for position in bitmap:
        if len(out) == limit:
            break
        out.append(int(position))
    return out


def _letter(number: int) -> str:
    """Return a number as letters: A, B, …, Z, AA, …."""
    out = ""
    while number:
        number, rest = divmod(number - 1, 26)
        out = chr(65 + rest) + out
    return out


def _status_name(status: int | None) -> str:
    """Return the name of an entry's status; its number if it is not a known one."""
    if status is None:
        return ""
    try:
        return Status(status).name
    except ValueError:
        return str(status)
