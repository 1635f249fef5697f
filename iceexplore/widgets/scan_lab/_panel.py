"""The scan lab: a filter, its plan, and the reasons for reading or skipping files."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import traitlets
from traitlets import Bunch

from iceexplore.errors import OptionError
from iceexplore.graph import build_tree, json_safe
from iceexplore.widgets.core._blocks import Block
from iceexplore.widgets.core._escape_text import signs_of_lines
from iceexplore.widgets.core._panel import Panel, PanelHost, SyncedTrait, shown
from iceexplore.widgets.grid._panel import GridPanel, GridSource
from iceexplore.widgets.grid._view import TableView, looks_of
from iceexplore.widgets.scan_lab._plans import Asked, PlanCache, ShownPlan
from iceexplore.widgets.scan_lab._tables import HEAD_ROWS, TABLES, nodes_of_rows, row_of_node, table_of
from iceexplore.widgets.scan_lab._texts import advice_sent, evidence_sent, plan_sent, python_of, reasons_sent
from iceexplore.widgets.scan_lab._tree import ScanGrowth, first_unfolded, grow_scan
from iceexplore.widgets.scan_lab._typing import FilterBoxPanel
from iceexplore.widgets.tree._forest import short

if TYPE_CHECKING:
    import pandas as pd

    from iceexplore.planning import ScanPlan
    from iceexplore.widgets.grid._table import GridTable

__all__ = ["PlanTables", "ScanPanel"]

_GRID = "scan"
_RECENT = 8
_LONGEST = 100_000
#: What `ScanPanel.scan_why` shows in place of evidence: without a plan, for a delete, and for any other node.
_PLAN: dict[str, Any] = {"blocks": [["evidence", ["No plan yet: type a filter."]]]}
_DELETE: dict[str, Any] = {
    "blocks": [
        [
            "evidence",
            ["This delete applies to the files its arrows lead to, so it is read. The tab Deletes lists all deletes."],
        ]
    ]
}
_SELECT: dict[str, Any] = {"blocks": [["evidence", ["Select a manifest or a file to see why it is read or skipped."]]]}


class ScanPanel(Panel):
    """The panel that shows which files a filter reads and skips, and why. Its tables are in the grid ``"scan"``.

    Attributes
    ----------
    scan_filter
        The filter to plan, as for `iceexplore.Table.plan`; ``true`` selects all rows. If empty, nothing is planned.
    scan_columns
        The columns to read; empty for all.
    scan_row_groups
        Whether to read the footers of the remaining files and prune their row groups.
    scan_plan
        The plan as texts and ``blocks``; ``of`` is its number, ``error`` describes an invalid filter.
    scan_nodes, scan_roots, scan_expanded
        The plan's tree, with the node ids of `iceexplore.graph.Tree`.
    scan_why
        Why the selected node, ``id``, is read or skipped, as ``blocks``.
    scan_reasons
        A summary of why files are skipped: ``of``, the plan's number; and ``reasons``, each a text, the table that
        lists its files, and the filters with which the table shows only them; or ``missed``, why reasons were not
        counted.
    scan_ask
        The browser's last request of another kind: ``n``, incremented; ``want``: "examples", "advice", "count" or
        "plan" (plan again); and ``earlier``, the requests before it, as a notebook may merge several changes of
        this trait into one. The answers are in `FilterBoxPanel.scan_examples`, `scan_advice`, `scan_count` and
        `scan_plan`. The advice has ``of``, the plan's number, and ``blocks`` when it is ready, or ``missed``, why there
        is no advice.
    scan_recent
        The filters planned last, the newest first.
    scan_tab
        The tab beside the tree: "why", a table ("tasks", "skipped", "deletes", "head") or "advice".
    """

    later = ("iceexplore.planning",)

    scan_filter = SyncedTrait(traitlets.Unicode())
    scan_columns = SyncedTrait(traitlets.List(traitlets.Unicode()))
    scan_row_groups = SyncedTrait(traitlets.Bool())
    scan_plan = SyncedTrait(traitlets.Dict())
    scan_nodes = SyncedTrait(traitlets.Dict())
    scan_roots = SyncedTrait(traitlets.List(traitlets.Unicode()))
    scan_expanded = SyncedTrait(traitlets.List(traitlets.Unicode()))
    scan_why = SyncedTrait(traitlets.Dict(_PLAN))
    scan_reasons = SyncedTrait(traitlets.Dict())
    scan_ask = SyncedTrait(traitlets.Dict())
    scan_advice = SyncedTrait(traitlets.Dict())
    scan_count = SyncedTrait(traitlets.Dict())
    scan_recent = SyncedTrait(traitlets.List(traitlets.Unicode()))
    scan_tab = SyncedTrait(traitlets.Unicode("why"))

    def __init__(self, host: PanelHost) -> None:
        super().__init__(host)
        self._box = host.panel(FilterBoxPanel)
        self._plans = PlanCache(host.state_at)
        host.panel(GridPanel).add(_GRID, PlanTables(self._plans))
        self._scan: ShownPlan | None = None
        self._limits: dict[str, int] = {}
        self._applying = False

    def begin(self) -> None:
        """Plan a filter given at the start; answer requests."""
        self.host.observe(self._on_scan, "scan_filter", "scan_columns", "scan_row_groups")
        self.host.observe(self._on_expanded, "scan_expanded")
        self.host.observe_requests(self._on_ask, "scan_ask")
        self.host.observe(self._on_scan_tab, "scan_tab")
        if self.host.tab is not None:
            self.host.observe(self._on_tab, "tab")
        if self.scan_filter:
            self._plan_again()

    @property
    def plan(self) -> ScanPlan | None:
        """The plan of the current inputs, created on first access; None without a filter.

        Raises
        ------
        OptionError
            The filter or a column is invalid.
        """
        return self._plans.plan(self._asked()).plan if self.scan_filter.strip() else None

    @property
    def shown_plan(self) -> ShownPlan | None:
        """The plan that the browser shows, which may be older than `plan`."""
        return self._scan

    def _asked(self) -> Asked:
        snapshot = self.host.selection["snapshot"]
        return Asked(snapshot, self.scan_filter.strip(), tuple(self.scan_columns), self.scan_row_groups)

    # The plan ---------------------------------------------------------------------------------------------------------

    def _visible(self) -> bool:
        """Return whether the plan is visible; only a visible plan follows the selected snapshot."""
        return self.host.tab in (None, "scan")

    @shown
    def _on_tab(self, change: Bunch) -> None:
        self._follow()

    def _follow(self) -> None:
        """Plan again if the snapshot has changed, else explain the selected node; offer the snapshot's columns."""
        if not self._visible():
            return
        snapshot = self.host.selection["snapshot"]
        if self.scan_filter.strip() and self.scan_plan.get("snapshot", snapshot) != snapshot:
            self._plan_again()
        elif self.scan_why.get("id", "") != self.host.selection["node"]:
            self._explain()
        self._box.follow()

    def _plan_again(self) -> None:
        asked = self._asked()
        if not asked.filter:
            self.host.run("scan", "Planning", lambda: None, lambda _: self._clear({}))
            return

        def read() -> Generator[str, None, tuple[ShownPlan, dict[str, Any], ScanGrowth] | str]:
            try:
                found = self._plans.plan(asked)
            except OptionError as error:
                return str(error)
            yield "Explaining the plan …"
            growth = grow_scan(found.nodes, first_unfolded(found.nodes), {})
            own = self.host.state.snapshot
            python = python_of(found.plan, asked.filter, asked.row_groups, None if own is None else own.snapshot_id)
            words = {**plan_sent(found.plan), "python": json_safe(python), "tables": TABLES}
            return found, words, growth

        def show(result: tuple[ShownPlan, dict[str, Any], ScanGrowth] | str) -> None:
            about = {"filter": json_safe(asked.filter), "snapshot": asked.snapshot}
            if isinstance(result, str):
                self._clear({**about, "error": signs_of_lines(result[:_LONGEST])})
                return
            found, words, growth = result
            self._scan = found
            with self.host.hold_sync():  # one message, so that the browser never has an inconsistent plan
                self.scan_plan = {**about, **words, "of": found.number, "error": ""}
                self._apply(growth)
                recent = [asked.filter, *(f for f in self.scan_recent if f != asked.filter)]
                self.scan_recent = [json_safe(f) for f in recent if len(f) <= 1000][:_RECENT]
            self._explain()
            self._sum_up(found)
            self._advise()

        self.host.run("scan", "Planning", read, show)

    def _sum_up(self, found: ShownPlan) -> None:
        """Count the reasons why files are skipped. This reads no file that the plan has not read."""

        def read() -> Generator[str, None, list[list[Any]]]:
            from iceexplore.planning import skip_reasons

            reasons = yield from skip_reasons(found.plan)
            return reasons_sent(found.plan, reasons)

        def show(reasons: list[list[Any]]) -> None:
            self.scan_reasons = {"of": found.number, "reasons": reasons}

        self.host.run("scan-reasons", "Counting reasons", read, show)

    def _clear(self, words: dict[str, Any]) -> None:
        self._scan = None
        with self.host.hold_sync():
            self.scan_plan = words
            self._apply(ScanGrowth())
            self.scan_why, self.scan_advice, self.scan_count, self.scan_reasons = _PLAN, {}, {}, {}

    def _apply(self, growth: ScanGrowth) -> None:
        self._applying = True
        try:
            self._limits = growth.limits
            self.scan_nodes, self.scan_roots, self.scan_expanded = growth.nodes, growth.roots, growth.expanded
        finally:
            self._applying = False

    @shown
    def _on_scan(self, change: Bunch) -> None:
        self._plan_again()

    def on_selected(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """Plan for the selected snapshot, or explain the selected node."""
        if old["snapshot"] != new["snapshot"]:
            self._follow()
        elif old["node"] != new["node"] and self._visible():
            self._explain()

    @shown
    def _on_expanded(self, change: Bunch) -> None:
        found = self._scan
        if self._applying or found is None:
            return
        wanted, limits = list(self.scan_expanded), dict(self._limits)
        missing = [i for i in wanted if i.startswith("more:") or (self.scan_nodes.get(i) or {}).get("children") is None]
        if missing:
            self.host.run("scan-tree", "Reading", lambda: grow_scan(found.nodes, wanted, limits), self._apply)
        else:
            self.host.answer()

    def _explain(self) -> None:
        """Show why the selected node is read or skipped."""
        found, node = self._scan, self.host.selection["node"]
        if found is None or not node.startswith(("manifest:", "file:")):
            self.scan_why = _PLAN if found is None else {"id": node, **_SELECT}
            return

        def read() -> dict[str, Any]:
            from iceexplore.planning import node_evidence

            known = self.scan_nodes.get(node) or {}
            if known.get("applies"):
                return _DELETE
            evidence = node_evidence(found.nodes, node)
            if evidence is None:
                return _SELECT
            label = known.get("label")
            name = label or short(build_tree(found.plan.state, depth="snapshots").node(node).label)
            return {"read": evidence.read, "blocks": evidence_sent(evidence, name)}

        def show(words: dict[str, Any]) -> None:
            self.scan_why = {"id": node, **words}
            self._reveal(node)

        self.host.run("scan-why", "Reading", read, show)

    def _reveal(self, node: str) -> None:
        """Unfold the manifest of a selected file that is not in the tree yet."""
        parts = node.split(":")
        parent = ":".join(["manifest", *parts[1:3]])
        known = self.scan_nodes.get(parent)
        folded = known is not None and not known["leaf"] and parent not in self.scan_expanded
        if len(parts) == 4 and folded and node not in self.scan_nodes:
            self.scan_expanded = [*self.scan_expanded, parent]

    # Other requests ---------------------------------------------------------------------------------------------------

    @shown
    def _on_ask(self, ask: Mapping[str, Any]) -> None:
        acts: dict[str, Callable[[Mapping[str, Any]], None]] = {
            "examples": lambda _: self._box.request_examples(), "advice": self._ask_advice, "count": self._ask_count,
            "plan": lambda _: self._plan_again(),
        }  # fmt: skip
        act = acts.get(str(ask.get("want")))
        if act is None:
            raise OptionError(f"scan_ask={str(ask)[:200]}: want must be one of {', '.join(acts)}")
        act(ask)

    def on_cancelled(self, selection: Mapping[str, str]) -> None:
        """Mark missing advice and reasons as cancelled, but still explain the selected node."""
        if self.scan_advice and "blocks" not in self.scan_advice:
            self.scan_advice = {**self.scan_advice, "missed": "Cancelled."}
        if self._scan is not None and self.scan_reasons.get("of") != self._scan.number:
            self.scan_reasons = {"of": self._scan.number, "missed": "The reasons were not counted: cancelled."}
        if self._visible() and self.scan_why.get("id", "") != self.host.selection["node"]:
            self._explain()

    def _current(self) -> ShownPlan:
        if self._scan is None:
            raise OptionError("there is no plan: type a filter and press Enter")
        return self._scan

    def _on_scan_tab(self, change: Bunch) -> None:
        self.host.call(self._advise)

    def _advise(self) -> None:
        """Compute the advice for the plan if the tab Advice is shown and the advice is not known yet."""
        found, known = self._scan, self.scan_advice
        if self.scan_tab != "advice" or found is None:
            return
        if known.get("of") != found.number:
            self._ask_advice({})

    def _ask_advice(self, ask: Mapping[str, Any]) -> None:
        found = self._current()

        def look() -> list[Block] | Exception:
            try:
                return advice_sent(found.plan.advice())
            except Exception as error:
                return error

        def show(blocks: list[Block] | Exception) -> None:
            if isinstance(blocks, Exception):
                self.scan_advice = {"of": found.number, "missed": "The advice could not be computed."}
                raise blocks
            self.scan_advice = {"of": found.number, "blocks": blocks}

        self.scan_advice = {"of": found.number}
        self.host.run("scan-advice", "Looking for advice", look, show)

    def _ask_count(self, ask: Mapping[str, Any]) -> None:
        from iceexplore.reading import count_rows

        found = self._current()

        def show(text: str) -> None:
            self.scan_count = {"of": found.number, "text": signs_of_lines(text)}

        def read() -> str:
            return count_rows(found.plan.state, found.asked.filter).explain()

        self.host.run("scan-count", "Counting rows", read, show)

    def no_kernel_html(self) -> str:
        """Return the plan as HTML."""
        return "" if self._scan is None else self._scan.plan._repr_html_()


class PlanTables(GridSource):
    """The tables of plans. A table's owner is the number of its plan.

    Parameters
    ----------
    plans
        The latest plans.
    """

    def __init__(self, plans: PlanCache) -> None:
        self._plans = plans

    def frame(self, of: str, table: str) -> pd.DataFrame | GridTable:
        """Return a table of a plan."""
        found = self._plans.numbered(of)
        return table_of(found.plan, table, found.asked.filter)

    def view(self, of: str, table: str, names: Sequence[str]) -> TableView:
        """Return a view with the file name first and values with units; the table of first rows is shown as it is."""
        if table == "head":
            return TableView(every=True, head=False)
        return replace(super().view(of, table, names), looks=looks_of(names))

    def preview(self, of: str, table: str, rows: int) -> str:
        """Return a note if more rows may match than those shown."""
        return f"preview: the first {rows} that match" if table == "head" and rows >= HEAD_ROWS else ""

    def nodes(self, of: str, table: str, rows: Sequence[int]) -> Sequence[str | None]:
        """Return the node of each row's file."""
        return nodes_of_rows(self._plans.numbered(of).nodes, table, rows)

    def row(self, of: str, table: str, node: str) -> int | None:
        """Return the row that represents a file's node."""
        return row_of_node(self._plans.numbered(of).nodes, table, node)
