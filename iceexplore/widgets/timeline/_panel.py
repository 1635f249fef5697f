"""The timeline: snapshots by time and branch, and the differences between two of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import traitlets
from traitlets import Bunch

from iceexplore.graph import (
    SnapshotChange,
    TableState,
    amount,
    format_ms,
    human_bytes,
    is_secret_name,
    snapshot_change,
)
from iceexplore.metadata import Snapshot, in_order
from iceexplore.widgets.changes._counted import Counted
from iceexplore.widgets.changes._tables import ChangeTables, compared_key
from iceexplore.widgets.core._blocks import Block
from iceexplore.widgets.core._bundle import sent_script
from iceexplore.widgets.core._escape_text import signs
from iceexplore.widgets.core._panel import Panel, PanelHost, SyncedTrait
from iceexplore.widgets.core._static_html import snapshots_html
from iceexplore.widgets.core._table_widget import TableWidget
from iceexplore.widgets.detail._panel import DetailPanel
from iceexplore.widgets.problems._nodes_of_problems import places_of
from iceexplore.widgets.timeline._lanes import lanes_of

__all__ = [
    "MAX_SNAPSHOTS",
    "Timeline",
    "TimelinePanel",
]

#: The measures of the bars' height, each with the verb for what was removed.
_GONE = {"rows": "deleted", "files": "removed", "bytes": "removed"}
#: The shapes of operations (see `_styles`).
_SIGNS = {"append": "●", "overwrite": "■", "delete": "▼", "replace": "◆"}


def snapshot_text(sent: Mapping[str, Any], change: SnapshotChange) -> str:
    """Return a one-line description of a snapshot; ``sent`` is its item in `TimelinePanel.snapshots`."""
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
    """Return blocks about what was added and removed, and whether that is complete; see `TimelinePanel.comparison`."""
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
MAX_SNAPSHOTS = 10_000
_MAX_REFS = 20
#: The totals that a summary states (spec, "Optional Snapshot Summary Fields"), in the order of ``totals``.
_TOTALS = ("total-records", "total-data-files", "total-delete-files", "total-files-size")
#: Maximum length of the text about a snapshot's writer, and of the part from one entry of its summary.
_MOST_WRITER, _MOST_ENTRY = 100, 40
#: The largest integer that JavaScript represents exactly.
_MOST_NUMBER = 2**53 - 1
#: Maximum number of problems whose snapshots are marked.
_MOST_PROBLEMS = 1_000
#: The maximum time of a JavaScript Date, in milliseconds since the epoch.
_MAX_MS = 8_640_000_000_000_000


class TimelinePanel(Panel):
    """The timeline of snapshots.

    For a table with more than 10,000 snapshots it shows the newest and those that refs name; ``left_out`` counts the
    rest.

    Attributes
    ----------
    snapshots
        Oldest first, each with: ``id``; ``time`` as text; ``ms``; ``operation``; ``refs``, of which the first
        ``branches`` are branches; ``lane``; ``parent``, the parent's index in the list, or -1; ``reached``, whether a
        ref reaches it; ``rows``, ``files`` and ``bytes``, each a pair of added and removed (newly deleted rows count as
        removed), from its summary; ``totals``, the summary's totals of rows, data files, delete files and bytes, and
        the rows left after position deletes (-1 if not stated); ``words``, a description; and ``by``, an index into
        ``writers``.
    writers
        What summaries say about engines, applications and users; the user can filter snapshots by these texts.
    broken
        The snapshots in which a check found faults, or reading found problems: by id, the numbers of these as text.
    totals
        Whether the totals are drawn as curves.
    collapsed
        Whether the timeline is collapsed to one line. None: as last chosen in the browser's session or, without a
        choice, collapsed if there is at most one snapshot, or little room.
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
    writers = SyncedTrait(traitlets.List(traitlets.Unicode()))
    broken = SyncedTrait(traitlets.Dict())
    totals = SyncedTrait(traitlets.Bool(True))
    collapsed = SyncedTrait(traitlets.Bool(None, allow_none=True))

    def __init__(self, host: PanelHost) -> None:
        super().__init__(host)
        self._checked: dict[str, str] = {}
        self._met: dict[str, str] = {}
        self._marked = (-1, -1)  # the numbers of problems and of files read, when the broken snapshots were last marked
        try:
            self._changes = host.panel(DetailPanel).tables.changes  # shared, so that changes are counted only once
        except LookupError:
            self._changes = ChangeTables(host.state)

    def first(self, selection: Mapping[str, str]) -> dict[str, Any]:
        """Return the snapshots and their legend."""
        state = self.host.state
        sent, writers = _snapshots(state)
        left_out = len({s.snapshot_id for s in state.metadata.snapshots}) - len(sent)
        legend = legend_sent(sent, left_out)
        return {"snapshots": sent, "left_out": left_out, "legend": legend, "writers": writers}

    def begin(self) -> None:
        """Compare the two selected snapshots, and mark broken ones."""
        self._mark_broken()
        if hasattr(self.host.widget, "doctor_report"):
            self.host.observe(self._on_report, "doctor_report")
        if self.host.selection["against"]:
            self._compare_two(self.host.selection)

    def on_selected(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """Compare the newly selected snapshots."""
        if (old["snapshot"], old["against"]) != (new["snapshot"], new["against"]):
            self._compare_two(new)

    def on_read(self) -> None:
        """Mark the broken snapshots again if more problems have been found."""
        if self._marked != self._now():
            self._mark_broken()

    def _on_report(self, change: Bunch) -> None:
        """Mark the snapshots in which the last check found faults; those in which reading met problems stay marked."""
        self._checked = dict(change["new"].get("broken", {}))
        self.broken = self._met | self._checked

    def _now(self) -> tuple[int, int]:
        problems = len(self.host.state.problems)
        return problems, len(self.host.state.reader.seen) if problems else 0

    def _mark_broken(self) -> None:
        if not self._now()[0]:
            return
        state, snapshot = self.host.state, self.host.snapshot

        def read() -> dict[str, str]:
            try:
                return _broken(state, snapshot)
            finally:
                self._marked = self._now()

        def show(found: dict[str, str]) -> None:
            self._met = found
            self.broken = self._met | self._checked

        self._marked = self._now()
        self.host.run_silently("broken", read, show)

    def on_cancelled(self, selection: Mapping[str, str]) -> None:
        """Clear the selection of a comparison that was cancelled."""
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
    """A widget that shows a table's snapshots by time and branch: select one, compare two, or play through them.

    ``Timeline(t, selection=explorer)`` shares an explorer's selection; ``selection`` can also be linked
    (``ipywidgets.link``, ``jslink``) and observed.
    """

    panels = (TimelinePanel,)
    resizable = False

    view_script = sent_script("timeline.timelineView")

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


def _broken(state: TableState, shown: Snapshot | None) -> dict[str, str]:
    """Return the numbers of problems, as text, by snapshot.

    A problem counts for the snapshot in whose tree it is, and for the snapshot that added the damaged file.
    """
    met = [p for p in state.problems.met() if p.severity in ("error", "warning")][:_MOST_PROBLEMS]
    places = places_of(state, shown, [p.where for p in met])
    counts: dict[str, dict[str, int]] = {}
    for problem in met:
        place = places.get(problem.where)
        ids = set() if place is None else {place.snapshot, "" if place.since is None else str(place.since)}
        for one in ids - {""}:
            of = counts.setdefault(one, {"error": 0, "warning": 0})
            of[problem.severity] += 1
    return {one: ", ".join(amount(n, name) for name, n in of.items() if n) for one, of in counts.items()}


def _writer(summary: Mapping[str, str] | None, secret: dict[str, bool]) -> str:
    """Return what a summary says in words: engine, application, user; not its counts, and no secrets.

    Parameters
    ----------
    secret
        A cache that says whether a key of a summary names a secret; new keys are added to it.
    """
    words: dict[str, None] = {}
    for key, value in (summary or {}).items():
        if key == "operation" or value.lstrip("-").isdecimal():
            continue
        if key not in secret:
            secret[key] = is_secret_name(key)
        if not secret[key]:
            words[signs(value[:_MOST_ENTRY])] = None
    return " · ".join(words)[:_MOST_WRITER]


def _total(summary: Mapping[str, str] | None, key: str) -> int:
    """Return a total that a summary states; -1 if it states none, or an implausible one."""
    text = (summary or {}).get(key, "")
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else -1
    return number if number <= _MOST_NUMBER else -1


def _rows_left(summary: Mapping[str, str] | None, rows: int) -> int:
    """Return the number of rows that position deletes leave, from the summary's totals; -1 if it is unknown.

    With equality deletes it is always unknown: one of them may delete any number of rows.
    """
    deleted = _total(summary, "total-position-deletes")
    if deleted < 0 or _total(summary, "total-equality-deletes") > 0:
        return -1
    return max(rows - deleted, -1)


def _snapshots(state: TableState) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the snapshots for the timeline, oldest first, and what their summaries say about writers."""
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
    writers: dict[str, int] = {}
    secret: dict[str, bool] = {}
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
        totals = [_total(s.summary, key) for key in _TOTALS]
        sent["totals"] = [*totals, _rows_left(s.summary, totals[0])]
        sent["by"] = writers.setdefault(_writer(s.summary, secret), len(writers))
        out.append(sent | {"words": snapshot_text(sent, change)})
    return out, list(writers)


def _name(name: str) -> str:
    return signs(name[:200])
