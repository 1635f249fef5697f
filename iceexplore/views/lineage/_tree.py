"""Draw a view: its versions, their SQL, and the tables and views that they read."""

from __future__ import annotations

from collections.abc import Iterable

from iceexplore.errors import IceexploreError, OptionError, whole_number
from iceexplore.metadata import format_ms
from iceexplore.render import Mark, Scene, SceneDrawing, SceneNode, escape
from iceexplore.views._model import Representation, ViewVersion
from iceexplore.views._state import ViewState
from iceexplore.views._travel import resolve_view, view_clock
from iceexplore.views.lineage._lineage import LineageSource, OpenSource, ViewLineage, view_lineage

__all__ = ["view_tree"]

#: The maximum number of characters of SQL and of column names on a node.
_LINE = 60


def view_tree(
    state: ViewState, versions: object = None, open_source: OpenSource | None = None, max_nodes: int = 120
) -> SceneDrawing:
    """Return the tree of a view: versions, representations and what their queries read.

    Parameters
    ----------
    versions
        The versions to draw: None for the selected one, ``"all"``, a version or its id, or a list of these.
    open_source
        Opens the sources of the selected version; None: nothing is opened.
    max_nodes
        The approximate number of nodes; the rest is folded.

    Raises
    ------
    OptionError, SnapshotNotFoundError
        ``versions`` has none of these forms, or the view has no such version.
    """
    most = whole_number("max_nodes", max_nodes, least=8)
    chosen, left = _chosen(state, versions, most)
    return _Tree(state, open_source, most, left).drawing(chosen)


def _chosen(state: ViewState, versions: object, most: int) -> tuple[list[ViewState], int]:
    """Return the versions to draw, and the number of those left out: each version takes at least one node."""
    if versions is None:
        return ([] if state.version is None else [state]), 0
    if versions == "all":
        known = {v.version_id for v in state.metadata.versions}
        newest = [e.version_id for e in reversed(view_clock(state.metadata)[0]) if e.version_id in known]
        ids = list(dict.fromkeys((*newest, *(v.version_id for v in reversed(state.metadata.versions)))))
        return [resolve_view(state, i) for i in ids[:most]], len(ids[most:])
    if isinstance(versions, (str, int, ViewVersion)):
        return [resolve_view(state, versions)], 0
    if isinstance(versions, Iterable):
        items = list(versions)
        return [resolve_view(state, one) for one in items[:most]], len(items[most:])
    raise OptionError(f"versions={versions!r}: give 'all', a version, or a list of versions")


class _Tree:
    def __init__(self, state: ViewState, open_source: OpenSource | None, max_nodes: int, left: int) -> None:
        self._state = state
        self._open = open_source
        self._most = max_nodes
        self._nodes: list[SceneNode] = []
        self._left = left

    def drawing(self, chosen: list[ViewState]) -> SceneDrawing:
        m = self._state.metadata
        marks: frozenset[Mark] = frozenset({"problem"} if len(self._state.problems) else ())
        self._add("view", "view", self._state.name, (m.location,), None, marks=marks)
        for state in chosen:
            self._version(state)
        if self._left:
            label = f"+{self._left:,} more"
            self._nodes.append(SceneNode("more", "more", label, parent="view", level=1, marks=frozenset({"folded"})))
        count = len(m.versions)
        drawn = sum(node.kind == "view-version" for node in self._nodes)
        description = f"Iceberg view · {drawn:,} of {count:,} version{'' if count == 1 else 's'}"
        return SceneDrawing(Scene(self._state.name, description, tuple(self._nodes)))

    def _add(
        self,
        node_id: str,
        kind: str,
        label: str,
        lines: tuple[str, ...],
        parent: SceneNode | None,
        *,
        badge: str | None = None,
        marks: frozenset[Mark] = frozenset(),
    ) -> SceneNode | None:
        """Add a node if there is room; return it."""
        if len(self._nodes) >= self._most:
            self._left += 1
            return None
        level = 0 if parent is None else parent.level + 1
        node = SceneNode(node_id, kind, label, lines, badge, marks, None if parent is None else parent.id, level)
        self._nodes.append(node)
        return node

    def _version(self, state: ViewState) -> None:
        version = state.version
        assert version is not None
        lines = (format_ms(version.timestamp_ms), *((version.engine,) if version.engine else ()))
        is_current = version.version_id == state.metadata.current_version_id
        at = self._add(f"version:{len(self._nodes)}", "view-version", f"version {version.version_id}", lines,
                       self._nodes[0], badge="current" if is_current else None)  # fmt: skip
        if at is None:
            return
        if version.storage_table is not None:
            label = ".".join(version.storage_table)
            self._add(f"storage:{len(self._nodes)}", "table", label, ("storage table (proposal)",), at)
        for r in version.representations:
            if len(self._nodes) >= self._most:
                self._left += 1
            else:
                self._representation(state, r, at)

    def _representation(self, state: ViewState, r: Representation, parent: SceneNode) -> None:
        lineage: ViewLineage | None = None
        why = ""
        shown = state.version is not None and self._state.version is not None
        is_shown = shown and state.version == self._state.version
        if r.type == "sql":
            try:
                lineage = view_lineage(state, r.dialect, self._open if is_shown else None)
            except IceexploreError as error:
                why = str(error)
        text = " ".join((r.sql or "")[: 4 * _LINE].split())
        lines = (
            text if len(text) <= _LINE else f"{text[: _LINE - 1]}…",
            *((escape.shorten(why, 2 * _LINE),) if why else ()),
        )
        marks: frozenset[Mark] = frozenset({"problem"} if why or (lineage and lineage.notes) else ())
        node_id = f"sql:{len(self._nodes)}"
        at = self._add(node_id, "view-sql", r.dialect or r.type, lines, parent, marks=marks)
        if at is not None and lineage is not None:
            self._sources(lineage, at)

    def _sources(self, lineage: ViewLineage, parent: SceneNode) -> None:
        for source in lineage.sources:
            at = self._source(source, parent)
            if at is not None and source.lineage is not None:
                self._sources(source.lineage, at)

    def _source(self, source: LineageSource, parent: SceneNode) -> SceneNode | None:
        columns = ", ".join(source.reference.columns)
        lines = [escape.shorten(columns, _LINE)] if columns else []
        is_wrong = bool(source.notes) and source.kind != "not opened"
        lines += [escape.shorten(note, 2 * _LINE) for note in source.notes] if is_wrong else []
        kind = "view" if source.kind == "view" else "table"
        return self._add(
            f"source:{len(self._nodes)}", kind, str(source.reference), tuple(lines), parent,
            badge=None if source.kind in ("table", "view") else source.kind,
            marks=frozenset({"problem"} if is_wrong else ()),
        )  # fmt: skip
