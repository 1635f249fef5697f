"""Save the content of the explorer as an HTML page."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any

import anywidget
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.errors import IceexploreError, OptionError
from iceexplore.graph import REDACTIONS, file_cells, json_safe, live_files, live_manifests, nameless, redactions
from iceexplore.storage import place_to_write, whole_file
from iceexplore.widgets.changes._tables import CHANGES
from iceexplore.widgets.core._keys import keys_sent
from iceexplore.widgets.core._panel import Panel, PanelHost
from iceexplore.widgets.detail._panel import DetailPanel
from iceexplore.widgets.file_map._panel import sent_cells
from iceexplore.widgets.grid._page import page_of
from iceexplore.widgets.grid._panel import GridPanel
from iceexplore.widgets.problems._doctor_panel import DoctorPanel
from iceexplore.widgets.problems._findings import redacted_sent
from iceexplore.widgets.problems._health_panel import HealthPanel
from iceexplore.widgets.saved_page._content import Collected, SavedPage, collect
from iceexplore.widgets.saved_page._html import plain_html, saved_html
from iceexplore.widgets.saved_page._redact import BLANK, PageRedactor
from iceexplore.widgets.timeline._panel import TimelinePanel
from iceexplore.widgets.tree._panel import TreePanel

__all__ = ["SavedPagePanel"]

_BYTES = 10_000_000
_ROWS = 1_000
#: The doctor's report and the figures may take at most a quarter of the page's bytes.
_REPORT_SHARE = 4
_MANY_FILES = "Left out: this commit changed too many files to count them while the page was saved."
#: A page has a snapshot's file map only if the snapshot has at most this many manifests, with this many bytes in total.
_CHEAP_MANIFESTS, _CHEAP_BYTES = 200, 8 << 20
#: The traits of the scan plan that is shown.
_PLAN = ("scan_filter", "scan_plan", "scan_nodes", "scan_roots", "scan_expanded", "scan_reasons")
_NO_REPORT = "Left out to limit the size of this page: the figures of Health."
#: Traits of those parts of a page that have keyboard shortcuts.
_PLACES = frozenset({"detail", "nodes", "pages", "parts", "snapshots"})
#: Traits for requests to Python (search, export, checks). A page has none of them, and offers only what
#: needs no Python.
_ASKING = frozenset(
    {"search", "found", "wanted", "written", "doctor_asked", "health_asked", "history", "history_asked"}
    | {"omni", "omni_found"}
)


class SavedPagePanel(Panel):
    """A panel that writes the widget's tree, tables, timeline and health as a page. It has no traits and no display."""

    def __init__(self, host: PanelHost) -> None:
        super().__init__(host)
        self._grid, self._tree, self._detail = host.panel(GridPanel), host.panel(TreePanel), host.panel(DetailPanel)
        self._doctor, self._health = host.panel(DoctorPanel), host.panel(HealthPanel)
        #: A cache of the tables that several nodes have in common.
        self._shared: dict[tuple[str, int, int], dict[str, Any]] = {}

    def save(
        self, path: str | PathLike[str], redact: bool | str | Iterable[str], max_bytes: int, rows: int, overwrite: bool
    ) -> SavedPage:
        """Write the page; see `iceexplore.widgets.Explorer.save_html`."""
        kinds = redactions(redact)
        limits: tuple[tuple[str, Any, int], ...] = (("max_bytes", max_bytes, 0), ("rows", rows, 1))
        for name, number, least in limits:
            if not isinstance(number, int) or isinstance(number, bool) or number < least:
                raise OptionError(f"{name}={number!r}: give an integer, {least} or more")
        place = place_to_write(path, overwrite=overwrite)
        report, shown = self._report(kinds), self._health.made is not None
        if not kinds & {"names", "values"}:
            return self._written(place, kinds, max_bytes, rows, report, shown, overwrite=overwrite)
        widget = self.host.widget
        other = type(widget)(nameless(self.host.state, kinds))  # the same table with redacted metadata
        try:
            other._panel(DetailPanel).tables.changes.reads_metadata = False
            chosen = widget.selection
            with contextlib.suppress(IceexploreError):
                other.select(snapshot=chosen["snapshot"] or None, against=chosen["against"] or None)
            other.settle()
            panel: SavedPagePanel = other._panel(SavedPagePanel)
            return panel._written(place, kinds, max_bytes, rows, report, shown, overwrite=overwrite)
        finally:
            other.close()

    def _report(self, kinds: frozenset[str]) -> dict[str, Any]:
        """Return the redacted report of the last check, as the browser receives it; empty if there is none."""
        report, sent = self._doctor.report, self._doctor.doctor_report
        if report is None:
            return {}
        return {"id": sent["id"], **redacted_sent(report, kinds, sent, self.host.state)}

    def _written(
        self,
        place: Path,
        kinds: frozenset[str],
        max_bytes: int,
        rows: int,
        report: dict[str, Any],
        health_shown: bool,
        *,
        overwrite: bool,
    ) -> SavedPage:
        state = self.host.state
        metadata = state.metadata
        names = {name.split(".")[-1] for name, _ in metadata.all_fields().values()}
        names |= {name for name, _ in metadata.all_fields().values()}
        names |= {f.name for spec in metadata.partition_specs for f in spec.fields}
        redactor = PageRedactor(kinds, names)
        selection = self.host.selection
        health = redactor.blocks(self._health.of_page(shown=health_shown, hidden="paths" in kinds))
        size = len(json.dumps([report, health], ensure_ascii=False).encode())
        fits = not (report or health) or size <= max_bytes // _REPORT_SHARE
        made = collect(
            self._tree.forest,
            selection["snapshot"],
            self._detail.detail_of,
            self._saved_table,
            redactor,
            size=max_bytes - (size if fits else 0),
            rows=rows,
        )
        self._shared.clear()
        left_out = (*made.left_out(), *(() if fits else (_NO_REPORT,)))
        files = self._files(made, kinds)
        tree = made.trees[next(iter(made.trees))]
        traits = redactor.traits(_traits(self.host.widget))
        if kinds & {"names", "values"}:  # what summaries say about writers is free text
            traits["writers"] = [""] * len(traits["writers"])
        traits["detail"] = made.details.get(selection["node"], {})
        traits["selection"] = selection
        traits["comparison"] = redactor.traits(self.host.widget.comparison)  # the page has only this comparison
        # The tab Rows says that it needs Python, as Scan does without a plan.
        traits["parts"] = [["tree", "Tree"], ["files", "Files"], ["rows", "Rows"], ["scan", "Scan"]]
        if not kinds & {"names", "values", "paths"}:
            plan = {name: getattr(self.host.widget, name) for name in _PLAN}
            if plan["scan_plan"] and made.take("plan", plan):
                traits |= redactor.traits(plan)
        if (report or health) and fits:
            found = sum(report.get("counts", {}).values())
            traits["parts"].append(["problems", f"Health ({found:,})" if found else "Health"])
            traits |= {"doctor_report": report, "health": {"blocks": health}}
        saved = {
            "traits": {**traits, **tree},
            "trees": made.trees,
            "details": made.details,
            "tables": made.tables,
            "files": files,
        }
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        redacted = ", ".join(k for k in REDACTIONS if k in kinds)
        notes = [f"Created by iceexplore on {now}. Redacted: {redacted or 'nothing'}.", *left_out]
        text = saved_html(redactor.text(json_safe(state.name)), saved, plain=plain_html(saved), notes=notes).encode()
        with whole_file(place, overwrite=overwrite) as out:
            out.write(text)
        return SavedPage(place, len(text), tuple(sorted(kinds)), left_out)

    def _files(self, made: Collected, kinds: frozenset[str]) -> dict[str, Any]:
        """Return the file maps of those snapshots in the page whose files are cheap to read, if the maps fit."""
        out: dict[str, Any] = {}
        for snapshot in filter(None, made.trees):
            state = self.host.state_at(snapshot)
            root = state.root()
            rows = [] if root is None else live_manifests(root)
            if root is None or len(rows) > _CHEAP_MANIFESTS:
                continue
            sizes = pc.sum(root.entries["file_size_in_bytes"].take(build.array(rows, pa.int64())), min_count=0).as_py()
            if (sizes or 0) > _CHEAP_BYTES:
                continue
            parent = self.host.snapshot_of(snapshot).parent_snapshot_id
            cells = sent_cells(file_cells(live_files(state)), snapshot)
            cells["parent"] = "" if parent is None else str(parent)
            if "values" in kinds:
                cells["groups"] = [[BLANK, *numbers] for _, *numbers in cells["groups"]]
            cells = made.redactor.traits(cells)
            if made.take("files", cells):
                out[snapshot] = cells
        return out

    def _saved_table(self, of: str, key: str, rows: int) -> dict[str, Any]:
        """Return a table or text of a node for the page."""
        if key == "columns" and of.startswith("file:"):  # an entry has the same table in all snapshots
            from iceexplore.widgets.detail._manifest_tables import entry_of

            manifest, row = entry_of(self.host.state, self._tree.forest.node(of))
            at = (manifest.location, row, rows)
            if at not in self._shared:
                self._shared[at] = self._made_table(of, key, rows)
            return self._shared[at]
        kind, _, snapshot = of.partition(":")
        if key == "manifests" and kind in ("snapshot", "root"):  # a snapshot and its root have the same table
            once = (snapshot, -1, rows)  # -1: no entry has this row
            if once not in self._shared:
                self._shared[once] = self._made_table(of, key, rows)
            return self._shared[once]
        return self._made_table(of, key, rows)

    def _made_table(self, of: str, key: str, rows: int) -> dict[str, Any]:
        tables = self._detail.tables
        if key == CHANGES and not tables.changes.cheap(int(of.partition(":")[2])):
            return {"columns": [], "rows": [], "total": 0, "none": _MANY_FILES}
        text = tables.text(of, key)
        if text is not None:
            return text
        table = self._grid.table("detail", of, key)
        view = tables.view(of, key, table.names)
        page = page_of(table, 0, rows, view=view)
        nodes = list(tables.nodes(of, key, range(len(page["rows"]))))
        self._grid.forget("detail")
        columns = [
            {k: c[k] for k in ("name", "right", "head", "unit") if k in c}
            for c in (page["columns"][i] for i in page["shown"])
        ]
        made = {"columns": columns, "rows": page["rows"], "total": page["total"]}
        made |= {k: page[k] for k in ("texts", "bars") if k in page}
        first = [i for i in view.essential(table.names) if i < len(columns)]
        if len(first) < len(columns):
            made["first"] = first
        if above := tables.above(of, key):
            made["above"] = above
        if not page["total"] and (none := tables.none(of, key)):
            made["none"] = none
        if missed := tables.unread(of, key):
            made |= {"lacks": f"Rows may be missing: {missed}."} if page["total"] else {"none": f"No rows: {missed}."}
        return {**made, "nodes": nodes} if any(nodes) else made


def _traits(widget: anywidget.AnyWidget) -> dict[str, Any]:
    """Return the values of title, selection and timeline traits, and the defaults of the others, which need Python."""
    kept = {"title", "badges", "styles", "selection", *TimelinePanel.traits()}
    everybody = anywidget.AnyWidget.class_traits(sync=True)
    left = {*everybody, *_ASKING, "script"}  # the page has a script of its own, and loads no others
    own = {name: trait for name, trait in widget.traits(sync=True).items() if name not in left and name[0] != "_"}
    out = {name: getattr(widget, name) if name in kept else trait.default(widget) for name, trait in own.items()}
    return {**out, "shortcuts": keys_sent(_PLACES.__contains__)}
