"""The scan lab's range map: each file's range of a column, and the data to highlight files while a bound is dragged."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import traitlets
from traitlets import Bunch

from iceexplore.arrow import build
from iceexplore.errors import OptionError
from iceexplore.graph import json_safe
from iceexplore.widgets.core._escape_text import signs
from iceexplore.widgets.core._panel import Panel, PanelHost, SyncedTrait, shown
from iceexplore.widgets.scan_lab._panel import ScanPanel

if TYPE_CHECKING:
    from iceexplore.planning import LiveFiles, PlanNodes, RangeBy, RangeMap, Waterfall
    from iceexplore.render import RangeCells, Theme
    from iceexplore.widgets.scan_lab._plans import ShownPlan

__all__ = ["RangesPanel", "ranges_sent"]

_COLUMNS = 500
_BY: dict[str, RangeBy] = {"range": "range", "partition": "partition", "snapshot": "snapshot"}


class RangesPanel(Panel):
    """The panel that shows a plan's files by their ranges of a column's values (`iceexplore.planning.RangeMap`).

    Attributes
    ----------
    scan_view
        What is shown beside the reasons: "ranges" (this map) or "tree".
    scan_range_of
        ``column``, the column of the map (empty for the filter's first column), and ``by``, the order of the files:
        "range", "partition" or "snapshot".
    scan_range
        The map: ``of``, the plan's number; ``asked``, the value of `scan_range_of` that it answers; ``column`` and
        ``by``; and ``columns``, the columns to choose from. The user can drag the filter's lower and upper edge to
        stops, which have ``positions``, ``labels``, and conditions for a lower edge (``lows``) and for an upper edge
        (``highs``); ``lower`` and ``upper`` are the stops at the filter's own bounds, or null; ``rest`` has the
        filter's other conditions. The files with a range are ``cells``, as columns (`RangeCells`), with ``nodes`` and
        ``locations`` if each cell is one file, or else with ``exact`` cells for counting. The files without a range are
        ``strips``: a name, counts by verdict, and the number and bytes of the files that the other conditions do not
        rule out. ``classes`` are the names of the verdicts, ``notes`` are sentences. If there is no map, ``missed`` is
        the reason.
    scan_picture_asked, scan_picture
        A request for a picture, ``n``, ``theme`` and ``what`` ("ranges" for the map, "waterfall" for what remains after
        each level), and its answer, ``n`` and ``svg``.
    """

    scan_view = SyncedTrait(traitlets.Unicode("ranges"))
    scan_range_of = SyncedTrait(traitlets.Dict({"column": "", "by": "range"}))
    scan_range = SyncedTrait(traitlets.Dict())
    scan_picture_asked = SyncedTrait(traitlets.Dict())
    scan_picture = SyncedTrait(traitlets.Dict())

    def __init__(self, host: PanelHost) -> None:
        super().__init__(host)
        self._scan = host.panel(ScanPanel)
        self._files: dict[Any, LiveFiles] = {}
        self._snapshot = ""
        self._map: RangeMap | None = None

    def begin(self) -> None:
        """Follow the plan and the user's choices."""
        self.host.observe(self._on_change, "scan_plan", "scan_view", "scan_range_of")
        self.host.observe_requests(self._on_picture, "scan_picture_asked")

    def close(self) -> None:
        """Release the files' metadata."""
        self._files, self._map = {}, None

    @shown
    def _on_change(self, change: Bunch) -> None:
        found = self._scan.shown_plan
        if found is None:
            if self.scan_range:
                self._map, self.scan_range = None, {}
            return
        asked = self._asked()
        known = self.scan_range
        if self.scan_view == "ranges" and (known.get("of"), known.get("asked")) != (found.number, list(asked)):
            self._draw(found, *asked)

    def _asked(self) -> tuple[str, RangeBy]:
        column, by = self.scan_range_of.get("column", ""), self.scan_range_of.get("by", "range")
        if not isinstance(column, str) or not isinstance(by, str) or by not in _BY:
            raise OptionError(f"scan_range_of={str(self.scan_range_of)[:200]}: give column, and by: {', '.join(_BY)}")
        return column, _BY[by]

    def _draw(self, found: ShownPlan, column: str, by: RangeBy) -> None:
        def read() -> Generator[str, None, tuple[RangeMap | None, dict[str, Any]]]:
            from iceexplore.planning import range_columns, range_map_steps

            if self._snapshot != found.asked.snapshot:
                self._files, self._snapshot = {}, found.asked.snapshot
            known = range_columns(found.plan.state.schema)
            names = list(known)[:_COLUMNS]
            about = {"of": found.number, "asked": [column, by], "columns": [json_safe(n) for n in names]}
            try:
                # The column was perhaps chosen for another snapshot, and this one may lack it.
                made = yield from range_map_steps(
                    found.plan,
                    column if column in known else None,
                    by,
                    self._files,
                )
            except OptionError as error:
                return None, {**about, "missed": signs(str(error))}
            return made, {**about, **ranges_sent(made, found.nodes)}

        def show(result: tuple[RangeMap | None, dict[str, Any]]) -> None:
            self._map, self.scan_range = result

        self.host.run("scan-range", "Reading bounds", read, show)

    def on_cancelled(self, selection: Mapping[str, str]) -> None:
        """Show that the map was cancelled, so that the user can request it again."""
        found = self._scan.shown_plan
        if found is not None and self.scan_view == "ranges" and self.scan_range.get("of") != found.number:
            self.scan_range = {"of": found.number, "missed": "Cancelled."}

    @shown
    def _on_picture(self, asked: Mapping[str, Any]) -> None:
        plan = self._scan.shown_plan
        made: RangeMap | Waterfall | None = self._map
        if asked.get("what") == "waterfall":
            made = None if plan is None else plan.plan.waterfall()
        if made is None:
            raise OptionError("there is no picture yet: plan a filter first")
        theme: Theme = "dark" if asked.get("theme") == "dark" else "light"
        self.scan_picture = {"n": asked.get("n", 0), "svg": str(made.to_svg(theme))}

    def no_kernel_html(self) -> str:
        """Return the map as an image."""
        return "" if self._map is None else self._map._repr_mimebundle_()["text/html"]


def ranges_sent(found: RangeMap, nodes: PlanNodes) -> dict[str, Any]:
    """Return a range map in the form that the browser receives; see `RangesPanel.scan_range`."""
    from iceexplore.planning import VERDICTS, cells_of, exact_cells

    cells = cells_of(found)
    strips = []
    for kind, name in ((1, "No bounds"), (2, "Only nulls")):
        mine = found.kind == kind
        if mine.any():
            left = mine & found.open if kind == 1 else np.zeros(len(mine), np.bool_)
            counts = np.bincount(found.verdict[mine], minlength=len(VERDICTS))
            strips.append([name, counts.tolist(), int(left.sum()), int(found.bytes[left].sum())])
    sent: dict[str, Any] = {
        "column": json_safe(found.column),
        "by": found.by,
        "rest": json_safe(found.rest),
        "positions": [round(p, 5) for p in found.stops.positions],
        "labels": [signs(label) for label in found.labels],
        "lows": [json_safe(found.edge_text(i, None)) for i in range(len(found.stops))],
        "highs": [json_safe(found.edge_text(None, i)) for i in range(len(found.stops))],
        "lower": found.lower,
        "upper": found.upper,
        "cells": _columns(cells),
        **({"exact": _columns(exact_cells(found))} if cells.items is None else {}),
        "names": [[row, signs(name[:120])] for row, name in cells.names],
        "strips": strips,
        "classes": list(VERDICTS),
        "files": len(found),
        "bytes": int(found.bytes.sum()),
        "even": found.stops.even,
        "notes": [signs(note) for note in found.notes],
    }
    if cells.items is not None:
        at = build.array(cells.items)
        files = found.files
        rows, ordinals = (build.to_pylist(a.take(at)) for a in (files.root_row, files.ordinal))
        sent["nodes"] = [nodes.file_id(None if r < 0 else r, o) for r, o in zip(rows, ordinals, strict=True)]
        names = build.to_pylist(files.batch.entries["location"].take(at)) if len(files) else []
        sent["locations"] = [signs((name or "").rpartition("/")[2][-80:]) for name in names]
    return sent


def _columns(cells: RangeCells) -> dict[str, Any]:
    names = ("row", "first", "last", "state", "open", "count", "size")
    return {"rows": cells.rows, **{name: getattr(cells, name).tolist() for name in names}}
