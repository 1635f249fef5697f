"""Deleted positions: a picture, their number, how they are stored, and their size in other encodings."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import traitlets
from traitlets import Bunch

from iceexplore.arrow import AnyChunkedArray, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError
from iceexplore.formats import PUFFIN
from iceexplore.graph import TableState, Tree, TreeNode, build_tree, json_safe, travel
from iceexplore.manifests import ContentType, Manifest, live, whole
from iceexplore.render import escape, style
from iceexplore.widgets.core._bundle import sent_script
from iceexplore.widgets.core._error_messages import unread
from iceexplore.widgets.core._escape_text import signs
from iceexplore.widgets.core._panel import Panel, PanelHost, SyncedTrait, shown
from iceexplore.widgets.core._static_html import vector_html
from iceexplore.widgets.core._table_widget import TableWidget
from iceexplore.widgets.deletes._deletes_of_node import KINDS, Deletes, deletes_of, row_groups
from iceexplore.widgets.deletes._positions import (
    MAX_LISTED,
    containers,
    encodings,
    groups,
    listed,
    picture,
    run_count,
    vector_texts,
)
from iceexplore.widgets.grid._panel import GridPanel, GridSource
from iceexplore.widgets.grid._table import ArrowTable, GridTable
from iceexplore.widgets.grid._view import TableView, looks_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DeletesPanel", "DeletionVectors"]

_POSITIONS = "positions"
_ALL = "deletes"
_ASKED = ("node", "path", "footer")
_MAX_BORDERS, _MAX_GROUPS = 2_000, 500
_LIST = build.schema(
    [
        ("node", pa.string()),
        ("kind", pa.string()),
        ("deletes", pa.int64()),
        ("bytes", pa.int64()),
        ("data_file", pa.string()),
        ("delete_file", pa.string()),
        ("sequence_number", pa.int64()),
    ]
)


class DeletesPanel(Panel):
    """The positions that the selected node deletes or, for a data file, those deleted in it.

    In the explorer, the browser requests them; in a widget without tabs they follow the selected node.

    Two grids: ``"positions"`` has the node's tables ``positions`` and ``runs`` (the first million of each), and
    ``"deletes"`` lists all deletes of a snapshot, whose id is the table's owner.

    Attributes
    ----------
    vector_of
        The browser's request: ``node``, ``path`` (one of a delete file's data files), ``footer`` (read the data file's
        footer for its row groups); and ``missed``, the reason if no answer comes: cancelled, or not readable.
    vector
        The answer, with the same ``node``, ``path`` and ``footer``; and ``kind``, ``title``, ``of``,
        ``cardinality``, ``rows``, ``runs``, ``first``, ``last``, ``picture`` (see `picture`), ``borders`` and
        ``borders_from``, ``groups``, ``containers``, ``encodings``, ``paths`` (a data file, its
        positions, the file as shown), ``notes``, and the texts of `vector_texts`; only ``notes`` if the node has no
        positions.
    """

    later = ("pyroaring",)

    vector_of = SyncedTrait(traitlets.Dict())
    vector = SyncedTrait(traitlets.Dict())

    def __init__(self, host: PanelHost) -> None:
        super().__init__(host)
        self._grid = host.panel(GridPanel)
        self._grid.add(_POSITIONS, PositionTables(self))
        self._grid.add(_ALL, DeleteTables(host, self._grid))
        self._deletes: tuple[tuple[str, str], Deletes, list[int]] | None = None
        self._tree: Tree | None = None
        self._taken_back = False

    def begin(self) -> None:
        """Answer requests; if the widget has no tabs, show the selected node's positions."""
        self.host.observe(self._on_vector_of, "vector_of")
        self._follow(self.host.selection)

    def on_selected(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """Show the newly selected node's positions if the widget has no tabs."""
        self._follow(new)

    def _follow(self, selection: Mapping[str, str]) -> None:
        if self.host.tab is None and self.vector_of.get("node") != selection["node"]:
            self.vector_of = {"node": selection["node"], "path": "", "footer": False}

    def close(self) -> None:
        """Release the positions."""
        self._deletes = None

    def no_kernel_html(self) -> str:
        """Return the key figures as HTML if the widget has no tabs."""
        return vector_html(self.vector) if self.host.tab is None else ""

    @property
    def selected(self) -> pd.DataFrame | None:
        """The first million positions of the selected node; None if it has none."""
        node = self._node_of(self.host.selection["node"])
        if node.kind not in KINDS:
            return None
        return self._grid.frame(_POSITIONS, f"{node.id}\n", "positions")

    def _node_of(self, node_id: str) -> TreeNode:
        if self._tree is None:
            self._tree = build_tree(self.host.state, depth="snapshots")
        return self._tree.node(node_id)

    def _on_vector_of(self, change: Bunch) -> None:
        if not self._taken_back:
            self._on_asked(change)

    @shown
    def _on_asked(self, change: Bunch) -> None:
        asked = {"node": self.vector_of.get("node"), "path": self.vector_of.get("path", "")}
        if not all(isinstance(text, str) for text in asked.values()):
            raise OptionError(f"vector_of={str(self.vector_of)[:200]}: give node and path as text, footer as a bool")
        self._measure(str(asked["node"]), str(asked["path"]), bool(self.vector_of.get("footer")))

    def on_cancelled(self, selection: Mapping[str, str]) -> None:
        """Withdraw the unanswered request."""
        self._take_back("Cancelled.")

    def _take_back(self, why: str) -> None:
        """Withdraw the unanswered request; if it was for the node shown, keep showing the earlier answer."""
        asked, answered = ({key: of.get(key) for key in _ASKED} for of in (self.vector_of, self.vector))
        if self.vector_of and asked != answered and "missed" not in self.vector_of:
            self._taken_back = True
            try:
                self.vector_of = answered if asked["node"] == answered["node"] else {**asked, "missed": why}
            finally:
                self._taken_back = False

    def _measure(self, node: str, path: str, footer: bool) -> None:
        asked = {"node": node, "path": path, "footer": footer}

        def read() -> Generator[str, None, dict[str, Any] | Exception]:
            try:
                return (yield from self._measured(node, path, footer))
            except Exception as error:
                return error

        def show(found: dict[str, Any] | Exception) -> None:
            if isinstance(found, Exception):
                # Record the reason with the request, as the trait `error` belongs to whichever request was last.
                self._take_back("It could not be read.")
                raise found
            self.vector = {**asked, **found}

        self.host.run("vector", "Reading deletes", read, show)

    def _measured(self, node_id: str, path: str, footer: bool) -> Generator[str, None, dict[str, Any]]:
        node = self._node_of(node_id)
        about = {"kind": node.kind, "title": json_safe(escape.visible(node.label[:300]))}
        if node.kind not in KINDS:
            note = _NONE.get(node.kind, _OTHERWISE) if self.host.selection["snapshot"] else _NO_SNAPSHOT
            return {**about, "notes": [note]}
        found = yield from deletes_of(self.host.state, node, path)
        bitmap = found.bitmap
        count = len(bitmap)
        size = found.rows
        if count and (size is None or bitmap.max() >= size):
            if size is not None:
                held = f"the manifest's {size:,} entries" if node.kind == "manifest-dv" else f"the file's {size:,} rows"
                found.notes.append(f"Position {bitmap.max():,} is beyond {held}.")
            size = int(bitmap.max()) + 1
        size = size or 0
        runs = run_count(bitmap)
        if count > MAX_LISTED:
            tables = "tables of positions and runs have" if runs > MAX_LISTED else "table of positions has"
            found.notes.append(f"The {tables} only the first {MAX_LISTED:,}.")
        edges, known = row_groups(self.host.state, found, footer)
        borders, some = edges[:-1], edges[: _MAX_GROUPS + 1] if known == "footer" else []
        if len(edges) > len(some) > 0:
            found.notes.append(f"Of {len(borders):,} row groups the first {_MAX_GROUPS:,} are listed.")
        self._deletes = ((node_id, path), found, borders)
        self._grid.forget(_POSITIONS)
        yield "Measuring …"
        other = encodings(bitmap, size, found.of)
        written = []
        if found.written is not None:
            written.append({"name": "As written", "bytes": json_safe(found.written), "note": style(node.kind).title})
        vector = {
            **about,
            "of": json_safe(escape.visible(escape.shorten(found.of, 1_000))),
            "cardinality": json_safe(count),
            "rows": json_safe(found.rows),
            "runs": json_safe(runs),
            "first": str(bitmap.min()) if count else "",
            "last": str(bitmap.max()) if count else "",
            "picture": picture(bitmap, size),
            "borders": json_safe(borders[:_MAX_BORDERS]),
            "borders_from": known,
            "groups": json_safe(groups(bitmap, some[:-1], some[-1])) if some else [],
            "containers": containers(bitmap),
            "encodings": [*written, *other],
            "paths": [[path, n, signs(path)] for p, n in found.paths for path in [str(json_safe(p))]],
            "notes": [json_safe(escape.visible(note)) for note in found.notes],
        }
        return {**vector, **vector_texts(vector)}

    def positions_of(self, node: str, path: str, table: str) -> pd.DataFrame:
        """Return a table of a node's positions or runs. This is called in the worker thread."""
        if self._deletes is None or self._deletes[0] != (node, path):
            found = _result(deletes_of(self.host.state, self._node_of(node), path))
            self._deletes = ((node, path), found, row_groups(self.host.state, found, False)[0][:-1])
        _, found, borders = self._deletes
        return listed(found.bitmap, table, borders)


class PositionTables(GridSource):
    """The tables ``positions`` and ``runs``; their owner is a node id, a line break, and a data file's path or nothing.

    Parameters
    ----------
    panel
        The panel that keeps the latest positions.
    """

    def __init__(self, panel: DeletesPanel) -> None:
        self._panel = panel

    def frame(self, of: str, table: str) -> pd.DataFrame:
        """Return the first million positions or runs."""
        node, _, path = of.partition("\n")
        return self._panel.positions_of(node, path, table)


class DeleteTables(GridSource):
    """The table of all deletes of a snapshot; its owner is the snapshot's id.

    Parameters
    ----------
    host, grid
        The widget, and its grid panel, which holds the tables.
    """

    def __init__(self, host: PanelHost, grid: GridPanel) -> None:
        self._host, self._grid = host, grid

    def frame(self, of: str, table: str) -> GridTable:
        """Return all deletes."""
        return _DeleteTable(all_deletes(self._host.state, self._host.snapshot_of(of).snapshot_id))

    def view(self, of: str, table: str, names: Sequence[str]) -> TableView:
        """Return how to show the table, with units for bytes and rows."""
        return replace(super().view(of, table, names), looks=looks_of(names))

    def nodes(self, of: str, table: str, rows: Sequence[int]) -> Sequence[str | None]:
        """Return the node of each delete."""
        return [self._ids(of, table)[row].as_py() for row in rows]

    def row(self, of: str, table: str, node: str) -> int | None:
        """Return the row of a node's delete."""
        found = pc.index(self._ids(of, table), node).as_py()
        return None if found < 0 else int(found)

    def _ids(self, of: str, table: str) -> AnyChunkedArray:
        made = self._grid.table(_ALL, of, table)
        assert isinstance(made, _DeleteTable)
        return made.ids

    def unread(self, of: str, table: str) -> str:
        """Return the reason why deletes may be missing."""
        return unread(self._host.state, self._host.snapshot_of(of)) if of else ""


class _DeleteTable(ArrowTable):
    """A table of deletes, whose rows are named by their files, with the id of each row's node."""

    def __init__(self, table: pa.Table) -> None:
        self.ids = table["node"]
        name = pc.replace_substring_regex(table["delete_file"], r"^.*/", "")
        super().__init__(table.drop_columns(["node"]).add_column(0, "file", pc.fill_null(name, "(inline)")))


def _result(steps: Generator[Any, None, Deletes]) -> Deletes:
    """Run a generator to its end and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: Deletes = end.value
            return found


_OTHERWISE = "Select a delete, or a data file, to see which positions are deleted."
_NO_SNAPSHOT = "The table has no snapshot, so nothing is deleted."
_NONE = {
    "equality-delete": "An equality delete deletes rows by value: they can only be found by reading the data.",
}


def all_deletes(table: TableState, snapshot: int) -> pa.Table:
    """Return all live deletes of a snapshot, those that delete the most first; unreadable manifests precede them.

    This reads delete manifests and, in the V4 draft, data manifests.
    """
    state = travel(table, snapshot=snapshot)
    root = state.root()
    if root is None:
        return _LIST.empty_table()
    kinds = root.entries["content_type"].to_pylist()
    manifests = {ContentType.DELETE_MANIFEST}
    if root.dialect.deletion_vectors_on_entries:
        manifests.add(ContentType.DATA_MANIFEST)
    rows = [row for row, kind in enumerate(kinds) if kind in manifests]
    parts = [_deletes_in(root, f"file:{snapshot}")]
    for leaf in state.reader.leaves(root, rows):
        if leaf.dialect:
            parts.append(_deletes_in(leaf, f"file:{snapshot}:{leaf.root_row}"))
            continue
        # A row for an unreadable manifest shows that its deletes are unknown, not absent.
        unknown = {"node": f"manifest:{snapshot}:{leaf.root_row}", "kind": "unreadable manifest"}
        parts.append(pa.Table.from_pylist([{**unknown, "delete_file": leaf.location}], _LIST))
    found = pa.concat_tables(parts)
    counts = pc.fill_null(found["deletes"], 2**63 - 1)
    return found.take(pc.sort_indices(counts, [("", "descending")]))


def _deletes_in(manifest: Manifest, prefix: str) -> pa.Table:
    """Return the live deletes among a manifest's entries, as a table of `_LIST`."""
    entries = manifest.entries
    kinds = [ContentType.POSITION_DELETE, ContentType.EQUALITY_DELETE, ContentType.MANIFEST_DV]
    chosen = pc.is_in(entries["content_type"], value_set=pa.array([int(k) for k in kinds], pa.int32()))
    rows = pc.indices_nonzero(pc.and_(chosen, live(entries)))
    some = entries.take(rows)
    size, offset = (whole(pc.struct_field(some["deletion_vector"], name)) for name in ("size_in_bytes", "offset"))
    content = whole(some["content_type"])
    is_vector = pc.or_(pc.is_valid(offset), pc.equal(some["file_format"].combine_chunks(), PUFFIN.name))
    kind = pc.case_when(
        pc.make_struct(
            pc.equal(content, int(ContentType.MANIFEST_DV)),
            pc.equal(content, int(ContentType.EQUALITY_DELETE)),
            pc.fill_null(is_vector, False),
        ),
        "manifest-dv",
        "equality-delete",
        "deletion-vector",
        "position-delete",
    )
    columns = [
        pc.binary_join_element_wise(prefix, pc.cast(rows, pa.string()), ":"),
        kind,
        some["record_count"],
        pc.coalesce(size, whole(some["file_size_in_bytes"])),
        some["referenced_file"],
        some["location"],
        some["sequence_number"],
    ]
    return build.table(columns, names=_LIST.names).cast(_LIST)


class DeletionVectors(TableWidget):
    """A widget of the deleted positions of deletion vectors, delete files, data files and manifests.

    ``DeletionVectors(t, selection=explorer)`` shows those of the explorer's selected node.
    """

    panels = (GridPanel, DeletesPanel)

    view_script = sent_script("vectors.vectorsView")

    @property
    def selected(self) -> pd.DataFrame | None:
        """The first million positions of the selected node; None if it has none."""
        return self._panel(DeletesPanel).selected
