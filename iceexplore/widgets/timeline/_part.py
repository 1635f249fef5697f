"""The snapshots by time and branch, and what differs between two of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow.compute as pc
import traitlets

from iceexplore.graph import Diff, TableState, diff, format_ms, human_bytes, travel
from iceexplore.metadata import Snapshot, in_order
from iceexplore.widgets.core._blocks import Block
from iceexplore.widgets.core._bundle import packed, script
from iceexplore.widgets.core._escape_text import signs
from iceexplore.widgets.core._static_html import snapshots_html
from iceexplore.widgets.core._table_widget import Face, shown
from iceexplore.widgets.timeline._lanes import lanes_of
from iceexplore.widgets.tree._compare import in_age

__all__ = [
    "MAX_SNAPSHOTS",
    "Timeline",
    "TimelinePart",
]

#: What a bar can show, and how it is said of what went.
_GONE = {"rows": "deleted", "files": "removed", "bytes": "removed"}
#: The shapes that operations have (`_styles`).
_SIGNS = {"append": "●", "overwrite": "■", "delete": "▼", "replace": "◆"}


def snapshot_words(sent: Mapping[str, Any]) -> str:
    """A snapshot as the timeline has it, in a line."""
    changes = [
        _change(measure, *sent[measure]) + ("" if measure == "bytes" else f" {measure}")
        for measure in _GONE
        if any(sent[measure])
    ]
    reached = [] if sent["reached"] else ["no ref reaches it"]
    return " · ".join([sent["time"], sent["operation"] or "no operation", *changes, *reached])


def legend_sent(snapshots: Sequence[Mapping[str, Any]], left_out: int) -> dict[str, list[Block]]:
    """What the picture's signs mean, by what its bars show."""
    operations = {s["operation"] for s in snapshots}
    signs = [[["sign", sign, f"operation:{name}"], f" {name}"] for name, sign in _SIGNS.items() if name in operations]
    if operations - _SIGNS.keys():
        signs.append([["sign", "○", ""], " other"])
    notes = []
    if not all(s["reached"] for s in snapshots):
        notes.append(["hollow: no ref reaches it"])
    if left_out:
        notes.append(["1 earlier one is left out" if left_out == 1 else f"{left_out:,} earlier ones are left out"])
    out = {}
    for measure, gone in _GONE.items():
        most = max((n for s in snapshots for n in s[measure]), default=0)
        height = f"height: {measure} added ↑, {gone} ↓, log scale to {_amount(measure, most)}"
        out[measure] = [["div", parts] for parts in (*signs, *([[height]] if most else []), *notes)]
    return out


def difference_sent(rows: Sequence[Sequence[Any]], unread: int) -> list[Block]:
    """What was added and removed (`TimelinePart.comparison`), and whether that is all."""
    said: list[Block] = []
    for what, more, less in rows:
        change = ["b", _change(what, more, less)]
        said.append(["div", [change] if what == "bytes" else [change, f" {what}"]])
    if unread:
        said.append(["div", [f"▲ not all is known: {unread:,} manifests cannot be read"]])
    return said or [["div", ["nothing differs"]]]


def _change(measure: str, more: int, less: int) -> str:
    """What was added and removed, as +3 −1."""
    sides = (("+", more), ("−", less))
    return " ".join(sign + _amount(measure, n) for sign, n in sides if n)


def _amount(measure: str, n: int) -> str:
    return human_bytes(n) if measure == "bytes" else f"{n:,}"


#: Of more, the newest are sent, and those that refs name: a message stays far below 5 MB.
MAX_SNAPSHOTS = 12_000
_MAX_REFS = 20
_SAFE = 2**53 - 1
#: What a JavaScript Date holds.
_MAX_MS = 8_640_000_000_000_000
#: The keys of a summary that add up to what was added and removed (spec, "Optional Snapshot Summary Fields").
_MEASURES = {
    "rows": (("added-records",), ("deleted-records", "added-position-deletes", "added-equality-deletes")),
    "files": (("added-data-files", "added-delete-files"), ("deleted-data-files", "removed-delete-files")),
    "bytes": (("added-files-size",), ("removed-files-size",)),
}


class TimelinePart(Face):
    """The snapshots.

    A table with more than 12,000 snapshots shows the newest, and those that refs name; ``left_out`` counts the rest.

    Attributes
    ----------
    snapshots
        Oldest first: ``id``, ``time`` (text), ``ms``, ``operation``, ``refs`` (the first ``branches`` of them are
        branches), ``lane``, ``parent`` (its place in the list, or -1), ``reached`` (by a ref), and what the summary
        says was added and removed: ``rows`` (those that a delete newly marks count as removed), ``files``, ``bytes``;
        all that in ``words``.
    legend
        What the picture's signs mean, as `Block`s by ``measure``.
    scale
        ``"steps"``: one step each; ``"time"``: by when they were committed.
    measure
        What the bars' height says: ``"rows"``, ``"files"`` or ``"bytes"``.
    comparison
        What differs between ``selection``'s ``against`` and ``snapshot``: both ids, and ``rows``: what, added, removed;
        how many manifests could not be read for it (``unread``); all that as `Block`s (``said``).
    """

    snapshots = traitlets.List(traitlets.Dict()).tag(sync=True)
    left_out = traitlets.Int().tag(sync=True)
    legend = traitlets.Dict().tag(sync=True)
    scale = traitlets.Enum(["steps", "time"], "steps").tag(sync=True)
    measure = traitlets.Enum(list(_MEASURES), "rows").tag(sync=True)
    comparison = traitlets.Dict().tag(sync=True)

    def _first(self, selection: Mapping[str, str]) -> dict[str, Any]:
        sent = _snapshots(self._state)
        left_out = len({s.snapshot_id for s in self._state.metadata.snapshots}) - len(sent)
        made = {"snapshots": sent, "left_out": left_out, "legend": legend_sent(sent, left_out)}
        return super()._first(selection) | made

    def _begin(self) -> None:
        super()._begin()
        if self.selection["against"]:
            self._compare_two(self.selection)

    def _on_selected(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        super()._on_selected(old, new)
        if (old["snapshot"], old["against"]) != (new["snapshot"], new["against"]):
            self._compare_two(new)

    @shown
    def _on_cancelled(self, change: Any) -> None:
        before = self.selection
        super()._on_cancelled(change)
        if self.selection == before and self._other_pair(before):
            self.select(against="")  # what was to be compared is not, and can be asked for again

    def _other_pair(self, selection: Mapping[str, str]) -> bool:
        """Whether two snapshots are selected that `comparison` does not compare."""
        pair = (selection["against"], selection["snapshot"])
        return all(pair) and pair[0] != pair[1] and pair != tuple(map(self.comparison.get, ("against", "snapshot")))

    def _no_kernel_html(self) -> str:
        return super()._no_kernel_html() + snapshots_html(self.snapshots, self.selection["snapshot"])

    def _compare_two(self, selection: Mapping[str, str]) -> None:
        """Say what changed from the older to the newer one, where there are two to compare, whichever is shown."""
        before, after = selection["against"], selection["snapshot"]
        if not before or not after or before == after:
            self.comparison = {}
            return
        older = in_age(self._state, int(before), int(after))

        def read() -> dict[str, Any]:
            a, b = (travel(self._state, snapshot=one) for one in older)
            found = diff(a, b)
            missed = {p.where for p in self._state.problems if p.severity == "error"}
            changed = found.manifests_arrow.filter(pc.not_equal(found.manifests_arrow["change"], "carried over"))
            unread = len(missed.intersection(changed["location"].to_pylist()))
            rows = _differences(found)
            said = difference_sent(rows, unread)
            return {"against": before, "snapshot": after, "rows": rows, "unread": unread, "said": said}

        def show(found: dict[str, Any]) -> None:
            self.comparison = found

        self._do("comparison", "Comparing two snapshots", read, show)


class Timeline(TimelinePart):
    """The snapshots of a table by time and branch: pick one to travel, two to compare, or play through them.

    ``Timeline(t, selection=explorer)`` shares an explorer's selection; ``selection`` can also be linked
    (``ipywidgets.link``, ``jslink``) and observed.
    """

    _esm = packed(script("timeline.timelineView"))

    @property
    def selected(self) -> Snapshot | None:
        """The snapshot that is selected."""
        return self.snapshot


def _differences(found: Diff) -> list[list[Any]]:
    """What was added and removed, in words and numbers: no more than the manifests that were read to tell."""
    files = found.files_arrow
    is_data = pc.equal(files["content"], "data file")

    def both(chosen: Any, column: str | None) -> list[int]:
        parts = [chosen.filter(pc.equal(chosen["change"], change)) for change in ("added", "removed")]
        return [part.num_rows if column is None else pc.sum(part[column]).as_py() or 0 for part in parts]

    data, deletes = files.filter(is_data), files.filter(pc.invert(is_data))
    rows = [
        ["data files", *both(data, None)],
        ["rows", *both(data, "record_count")],
        ["bytes", *both(files, "size_in_bytes")],
        ["delete files", *both(deletes, None)],
        ["deletes", *both(deletes, "record_count")],
    ]
    changes = len(found.schema)
    if changes:
        rows.append(["schema changes", changes, 0])
    return [row for row in rows if row[1] or row[2]]


def _snapshots(state: TableState) -> list[dict[str, Any]]:
    """Snapshots, oldest first, as the timeline draws them."""
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
        summary = s.summary or {}
        for measure, sides in _MEASURES.items():
            sent[measure] = [min(sum(_count(summary.get(key)) for key in keys), _SAFE) for keys in sides]
        sent["rows"][1] = max(0, sent["rows"][1] - _gone_before(s.operation, summary))
        out.append(sent | {"words": snapshot_words(sent)})
    return out


def _gone_before(operation: str | None, summary: Mapping[str, Any]) -> int:
    """Rows that a summary counts as removed, and that were deleted before: by vectors that another one took in, or
    that went with their files. Position delete files may go long after the rows have, but where no row changes."""
    if operation != "replace" and not _count(summary.get("removed-dvs")):
        return 0
    return _count(summary.get("removed-position-deletes"))


def _name(name: str) -> str:
    return signs(name[:200])


def _count(text: Any) -> int:
    """A count of a summary; 0 where it is none that one could draw."""
    if not isinstance(text, str) or not (text.isascii() and text.isdecimal()) or len(text) > 18:
        return 0
    return int(text)
