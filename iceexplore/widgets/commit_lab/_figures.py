"""Figures of the commit lab, in the style of the V4 proposal: the snapshots before and after a step, and a conflict."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from iceexplore.errors import CommitConflictError
from iceexplore.graph import TableState, seed_diagram, snapshot_numbers
from iceexplore.render import TableDiagram, TableLink, TableNode, tables_svg, tables_text
from iceexplore.widgets.core._escape_text import signs_of_lines
from iceexplore.widgets.tree._forest import short

if TYPE_CHECKING:
    from iceexplore.metadata import Snapshot

__all__ = ["Figure", "conflict_figure", "step_figure"]

#: Maximum number of rows that a figure shows for a manifest, and for a root; one more row counts the rest.
_ROWS, _CHILDREN = 6, 8
#: Maximum number of a step's commits that are drawn: the last ones.
_COMMITS = 3
_FILES = 6
#: An SVG document, the figure as text, and the document's width in pixels.
Figure: TypeAlias = tuple[str, str, float]


def step_figure(before: TableState | None, after: TableState) -> Figure | None:
    """Draw the snapshots before and after a step; files that belong to both are drawn once.

    Parameters
    ----------
    before
        The state before the step; if it is None, only the current snapshot is drawn.

    Returns
    -------
    tuple or None
        The figure; None if there is no snapshot.
    """
    now = after.snapshot
    was = None if before is None else before.snapshot
    if now is None:
        return None
    chain = _commits(after, now, was)
    kept = was is not None and was.snapshot_id != now.snapshot_id and after.metadata.snapshot(was.snapshot_id)
    snapshots = [*([was] if kept and was is not None else []), *chain]
    notes = {now.snapshot_id: "after" if before is not None else "now"}
    for other in chain[:-1]:
        notes[other.snapshot_id] = "other commit"
    if kept and was is not None:
        notes[was.snapshot_id] = "before"
    caption = "Before and after the step" if kept else "The current snapshot"
    if was is not None and before is not None and was.snapshot_id == now.snapshot_id:
        caption = "The current snapshot is unchanged"
    elif was is not None and not kept and before is not None:
        caption = "After the step; the snapshot before it has expired"
    diagram = seed_diagram(
        after,
        snapshots,
        title=after.name,
        caption=caption,
        max_rows=_ROWS,
        max_children=_CHILDREN,
        notes=notes,
        numbers=snapshot_numbers(after),
    )
    return _drawn(diagram)


def _commits(after: TableState, now: Snapshot, was: Snapshot | None) -> list[Snapshot]:
    """Return the last commits after ``was``, up to ``now``, oldest first; only ``now`` if ``was`` is no ancestor."""
    chain = [now]
    while chain[0].parent_snapshot_id is not None and was is not None:
        parent = after.metadata.snapshot(chain[0].parent_snapshot_id)
        if parent is None or len(chain) > 100:
            return [now]
        if parent.snapshot_id == was.snapshot_id:
            return chain[-_COMMITS:]
        chain.insert(0, parent)
    return [now]


def conflict_figure(error: Exception, title: str, rival: str) -> Figure | None:
    """Draw two conflicting commits that began at the same snapshot; return None if the error is not a conflict.

    Parameters
    ----------
    title, rival
        What the refused commit and the other writer's commit do.
    """
    if not isinstance(error, CommitConflictError):
        return None
    files = list(error.files)[:_FILES]
    more = len(error.files) - len(files)
    nodes = [
        TableNode("base", "snapshot", "The snapshot where both began", layer=0),
        TableNode("other", "data-manifest", "Other writer", ((rival or "another commit", "COMMITTED"),), 1),
        TableNode("own", "delete-manifest", "Yours", ((title, f"REFUSED: {error.rule}"),), 1),
    ]
    links = [TableLink("base", "other"), TableLink("base", "own")]
    for i, file in enumerate(files):
        name = short(file.rpartition("/")[2])
        rows = ((f"… {more:,} more", ""),) if more and i == len(files) - 1 else ()
        nodes.append(TableNode(f"file{i}", "data-file", name, rows, 2, tooltip=file))
        links += [TableLink("other", f"file{i}"), TableLink("own", f"file{i}")]
    caption = "Both commits concern these files" if files else f"Rule {error.rule}"
    return _drawn(TableDiagram("Conflict", caption, tuple(nodes), tuple(links)))


def _drawn(diagram: TableDiagram) -> Figure:
    svg = tables_svg(diagram)
    return str(svg), signs_of_lines(tables_text(diagram)), svg.width or 0.0
