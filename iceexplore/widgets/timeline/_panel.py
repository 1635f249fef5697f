"""The timeline: snapshots by time and branch, and the differences between two of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import traitlets

from iceexplore.graph import (
    SnapshotChange,
    TableState,
    amount,
    format_ms,
    human_bytes,
    snapshot_change,
)
from iceexplore.metadata import Snapshot, in_order
from iceexplore.widgets.changes._counted import Counted
from iceexplore.widgets.changes._tables import ChangeTables, compared_key
from iceexplore.widgets.core._blocks import Block
from iceexplore.widgets.core._bundle import packed, script
from iceexplore.widgets.core._escape_text import signs
from iceexplore.widgets.core._panel import Panel, PanelHost, SyncedTrait
from iceexplore.widgets.core._static_html import snapshots_html
from iceexplore.widgets.core._table_widget import TableWidget
from iceexplore.widgets.detail._panel import DetailPanel
from iceexplore.widgets.timeline._lanes import lanes_of

__all__ = [
    "MAX_SNAPSHOTS",
    "Timeline",
    "TimelinePanel",
]

#: The measures of bars, with the verb for their removal.
_GONE = {"rows": "deleted", "files": "removed", "bytes": "removed"}
#: The shapes of operations (see `_styles`).
_SIGNS = {"append": "●", "overwrite": "■", "delete": "▼", "replace": "◆"}


def snapshot_text(sent: Mapping[str, Any], change: SnapshotChange) -> str:
    """Return a one-line description of a snapshot in the timeline's form."""
    size = [_change("bytes", *change.bytes)] if any(change.bytes) else []
    reached = [] if sent["reached"] else ["not reachable from any ref"]
    return " · ".join([sent["time"], sent["operation"] or "no operation", *change.words(), *size, *reached])


def legend_sent(snapshots: Sequence[Mapping[str, Any]], left_out: int) -> dict[str, list[Block]]:
    """Return the legend of the picture for each measure of its bars."""
    operations = {s["operation"] for s in snapshots}
    signs = [[["sign", sign, f"operation:{name}"], f" {name}"] for name, sign in _SIGNS.items() if name in operations]
    if operations - _SIGNS.keys():
        signs.append([["sign", "○", ""], " other"])
    notes = []
    if not all(s["reached"] for s in snapshots):
        notes.append(["hollow: not reachable from any ref"])
    if left_out:
        notes.append([f"{left_out:,} earlier snapshot{'' if left_out == 1 else 's'} left out"])
    out = {}
    for measure, gone in _GONE.items():
        most = max((n for s in snapshots for n in s[measure]), default=0)
        scale = f" (log scale, max {_amount(measure, most)})" if most > 1 else ""  # a single unit needs no scale
        height = f"bar height: {measure} added ↑, {gone} ↓{scale}"
        out[measure] = [["div", parts] for parts in (*signs, *([[height]] if most else []), *notes)]
    return out


def difference_sent(rows: Sequence[Sequence[Any]], unread: int) -> list[Block]:
    """Return what was added and removed (`TimelinePanel.comparison`), and whether that is complete."""
    out: list[Block] = []
    for what, more, less in rows:
        change = ["b", _change(what, more, less)]
        unit = what[:-1] if more + less == 1 else what
        out.append(["div", [change] if what == "bytes" else [change, f" {unit}"]])
    if unread:
        out.append(["div", [f"▲ incomplete: {amount(unread, 'manifest')} cannot be read"]])
    return out or [["div", ["No differences"]]]


def _change(measure: str, more: int, less: int) -> str:
    """Return additions and removals as text: ``+3 −1``."""
    sides = (("+", more), ("−", less))
    return " ".join(sign + _amount(measure, n) for sign, n in sides if n)


def _amount(measure: str, n: int) -> str:
    return human_bytes(n) if measure == "bytes" else f"{n:,}"


#: Maximum number of snapshots that are sent, the newest and those that refs name, so that a message stays far below 5
#: MB.
MAX_SNAPSHOTS = 12_000
_MAX_REFS = 20
#: The maximum time of a JavaScript Date.
_MAX_MS = 8_640_000_000_000_000


class TimelinePanel(Panel):
    """The timeline of snapshots.

    For a table with more than 12,000 snapshots it shows the newest and those that refs name; ``left_out`` counts the
    rest.

    Attributes
    ----------
    snapshots
        Oldest first: ``id``, ``time`` (text), ``ms``, ``operation``, ``refs`` (the first ``branches`` of them are
        branches), ``lane``, ``parent`` (its index in the list, or -1), ``reached`` (by a ref); additions and removals
        by the summary, ``rows`` (newly deleted rows count as removed), ``files``, ``bytes``; and a description,
        ``words``.
    legend
        The legend of the picture, as `Block`s by ``measure``.
    scale
        The horizontal scale: ``"steps"`` for equal distances, ``"time"`` for the time of the commit.
    measure
        The measure of the bars' height: ``"rows"``, ``"files"`` or ``"bytes"``.
    comparison
        The difference between ``against`` and ``snapshot`` of the ``selection``: both ids; ``rows`` (what, added,
        removed); ``unread``, the number of manifests that could not be read; and all that as `Block`s, ``differences``.
    """

    snapshots = SyncedTrait(traitlets.List(traitlets.Dict()))
    left_out = SyncedTrait(traitlets.Int())
    legend = SyncedTrait(traitlets.Dict())
    scale = SyncedTrait(traitlets.Enum(["steps", "time"], "steps"))
    measure = SyncedTrait(traitlets.Enum(list(_GONE), "rows"))
    comparison = SyncedTrait(traitlets.Dict())

    def __init__(self, host: PanelHost) -> None:
        super().__init__(host)
        try:
            self._changes = host.panel(DetailPanel).tables.changes  # counted once for both
        except LookupError:
            self._changes = ChangeTables(host.state)

    def first(self, selection: Mapping[str, str]) -> dict[str, Any]:
        """Return the snapshots and their legend."""
        state = self.host.state
        sent = _snapshots(state)
        left_out = len({s.snapshot_id for s in state.metadata.snapshots}) - len(sent)
        return {"snapshots": sent, "left_out": left_out, "legend": legend_sent(sent, left_out)}

    def begin(self) -> None:
        """Compare the two selected snapshots."""
        if self.host.selection["against"]:
            self._compare_two(self.host.selection)

    def on_selected(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """Compare other snapshots."""
        if (old["snapshot"], old["against"]) != (new["snapshot"], new["against"]):
            self._compare_two(new)

    def on_cancelled(self, selection: Mapping[str, str]) -> None:
        """End a comparison that was not made."""
        if self.host.selection == selection and self._other_pair(selection):
            self.host.select(against="")  # the comparison was not made; clear it, so that it can be selected again

    def _other_pair(self, selection: Mapping[str, str]) -> bool:
        """Return whether two snapshots are selected that `comparison` does not compare."""
        pair = (selection["against"], selection["snapshot"])
        return all(pair) and pair[0] != pair[1] and pair != tuple(map(self.comparison.get, ("against", "snapshot")))

    def no_kernel_html(self) -> str:
        """Return the snapshots as HTML."""
        return snapshots_html(self.snapshots, self.host.selection["snapshot"])

    def _compare_two(self, selection: Mapping[str, str]) -> None:
        """Compare the two selected snapshots, always from the older to the newer one."""
        before, after = selection["against"], selection["snapshot"]
        if not before or not after or before == after:
            self.comparison = {}
            return

        def read() -> dict[str, Any]:
            found = self._changes.counted(int(after), compared_key(before))
            unread = len(found.unread)
            rows = _differences(found)
            blocks = difference_sent(rows, unread)
            return {"against": before, "snapshot": after, "rows": rows, "unread": unread, "differences": blocks}

        def show(found: dict[str, Any]) -> None:
            self.comparison = found

        self.host.run("comparison", "Comparing two snapshots", read, show)


class Timeline(TableWidget):
    """A widget of a table's snapshots by time and branch: select one, compare two, or play through them.

    ``Timeline(t, selection=explorer)`` shares an explorer's selection; ``selection`` can also be linked
    (``ipywidgets.link``, ``jslink``) and observed.
    """

    panels = (TimelinePanel,)

    _esm = packed(script("timeline.timelineView"))

    @property
    def selected(self) -> Snapshot | None:
        """The selected snapshot; None if there is none."""
        return self.snapshot


def _differences(found: Counted) -> list[list[Any]]:
    """Return what was added and removed, as rows of a name and two counts, from a diff that is already computed."""
    change = found.change
    rows = [
        ["data files", *change.data_files],
        ["rows", *change.rows],
        ["delete files", *change.delete_files],
        ["bytes", *change.bytes],
    ]
    changes = len(found.schema)
    if changes:
        rows.append(["schema changes", changes, 0])
    return [row for row in rows if row[1] or row[2]]


def _snapshots(state: TableState) -> list[dict[str, Any]]:
    """Return the snapshots for the timeline, oldest first."""
    metadata = state.metadata
    refs: dict[int, list[tuple[bool, bool, str]]] = {}
    for ref in metadata.refs.values():
        refs.setdefault(ref.snapshot_id, []).append((ref.name != "main", ref.type != "branch", _name(ref.name)))
    unique = {s.snapshot_id: s for s in metadata.snapshots}
    order = in_order(unique.values())
    if len(order) > MAX_SNAPSHOTS:
        newest = len(order) - MAX_SNAPSHOTS
        named = [s for s in order[:newest] if s.snapshot_id in refs][-1000:]
        order = named + order[newest + len(named) :]
    lanes = lanes_of(order, metadata.refs, metadata.snapshot())
    out = []
    for i, s in enumerate(order):
        here = sorted(refs.get(s.snapshot_id, []))[:_MAX_REFS]
        sent: dict[str, Any] = {
            "id": str(s.snapshot_id),
            "time": format_ms(s.timestamp_ms).replace(".000 UTC", " UTC"),
            "ms": max(-_MAX_MS, min(s.timestamp_ms, _MAX_MS)),
            "operation": signs((s.operation or "")[:40]),
            "refs": [name for _, _, name in here],
            "branches": sum(not tag for _, tag, _ in here),
            "lane": lanes.lane[i],
            "parent": lanes.parent[i],
            "reached": lanes.reached[i],
        }
        change = snapshot_change(s.operation, s.summary)
        sent |= {measure: [*getattr(change, measure)] for measure in _GONE}
        out.append(sent | {"words": snapshot_text(sent, change)})
    return out


def _name(name: str) -> str:
    return signs(name[:200])
