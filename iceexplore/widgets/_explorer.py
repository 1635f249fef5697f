"""The explorer, a widget that combines all panels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

import traitlets
from traitlets import Bunch

from iceexplore.widgets.commit_lab._panel import CommitPanel
from iceexplore.widgets.commit_lab._step_panel import StepPanel
from iceexplore.widgets.core._bundle import sent_later, sent_script
from iceexplore.widgets.core._panel import TableLike
from iceexplore.widgets.core._table_widget import TableWidget
from iceexplore.widgets.deletes._panel import DeletesPanel
from iceexplore.widgets.detail._panel import DetailPanel
from iceexplore.widgets.file_map._panel import FileMapPanel
from iceexplore.widgets.grid._panel import GridPanel
from iceexplore.widgets.navigation._history import HistoryPanel
from iceexplore.widgets.navigation._omnibox import OmniboxPanel
from iceexplore.widgets.problems._doctor_panel import DoctorPanel
from iceexplore.widgets.problems._health_panel import HealthPanel
from iceexplore.widgets.problems._panel import ProblemsPanel
from iceexplore.widgets.rows._panel import RowsPanel
from iceexplore.widgets.saved_page._save import SavedPagePanel
from iceexplore.widgets.scan_lab._panel import ScanPanel
from iceexplore.widgets.scan_lab._ranges import RangesPanel
from iceexplore.widgets.scan_lab._typing import FilterBoxPanel
from iceexplore.widgets.timeline._panel import TimelinePanel
from iceexplore.widgets.tree._panel import TreePanel

if TYPE_CHECKING:
    import pandas as pd

    from iceexplore.doctor import Report, TableHealth
    from iceexplore.graph import TreeNode
    from iceexplore.planning import ScanPlan
    from iceexplore.reading import RowPlaces
    from iceexplore.widgets.commit_lab._session import Simulation
    from iceexplore.widgets.saved_page._content import SavedPage

__all__ = ["Explorer", "explore"]

_VIEW = "explorer.explorerView"
#: The views of the tabs whose scripts are sent only when the tab is first shown, which keeps the initial script small.
_LATER = {
    "files": "fileMap.fileMapView",
    "rows": "rows.rowsView",
    "scan": "scan.scanView",
    "commit": "commit.commitView",
    "problems": "problems.problemsView",
    "deletes": "vectors.vectorsView",
}
_PARTS = {
    "tree": "Tree",
    "files": "Files",
    "rows": "Rows",
    "scan": "Scan",
    "commit": "Simulate",
    "problems": "Health",
    "deletes": "Deletes",
}


class Explorer(TableWidget):
    """A widget to explore a table in a notebook.

    All state is in plain traits, so that a view can be rendered from them without Python, and a notebook can set them:
    ``w.select("root:17", snapshot=17)``, ``w.tab = "scan"``. Files are read in a thread; `settle` waits until
    it is done.

    Attributes
    ----------
    parts
        The tabs, each as a key and a label; the label of the tab Health includes the number of findings.
    tab
        The key of the tab shown: ``tree``, ``files``, ``rows``, ``scan``, ``commit``, ``problems`` or ``deletes``.
    scripts
        The scripts that were sent later than the widget's initial script, each when its tab was first shown; by tab.
    """

    panels = (
        GridPanel,
        TreePanel,
        DetailPanel,
        TimelinePanel,
        FileMapPanel,
        HealthPanel,
        DoctorPanel,
        ProblemsPanel,
        DeletesPanel,
        StepPanel,
        CommitPanel,
        FilterBoxPanel,
        ScanPanel,
        RowsPanel,
        RangesPanel,
        SavedPagePanel,
        HistoryPanel,
        OmniboxPanel,
    )

    parts = traitlets.List([[key, words] for key, words in _PARTS.items()]).tag(sync=True)
    tab = traitlets.Unicode("tree").tag(sync=True)
    scripts = traitlets.Dict().tag(sync=True)

    view_script = sent_script(_VIEW, *_LATER.values())

    def _begin(self) -> None:
        self.observe(self._on_problems, ["problems", "doctor_report"])
        super()._begin()
        self.observe(self._on_tab, "tab")
        self._load_script()

    # The tree and its details -----------------------------------------------------------------------------------------

    @property
    def selected(self) -> TreeNode:
        """The selected node, with all known fields."""
        return self._panel(TreePanel).selected

    @property
    def selected_table(self) -> pd.DataFrame | None:
        """The table below the selected node's details, complete, as a DataFrame; None if the node has no table."""
        return self._panel(DetailPanel).selected_table

    @property
    def report(self) -> Report | None:
        """The last report of the tab Health; None before a check. In its repair plan, ``table`` is a `TableState`."""
        return self._panel(DoctorPanel).report

    @property
    def table_health(self) -> TableHealth | None:
        """The figures of the tab Health; None until they are first shown."""
        return self._panel(HealthPanel).made

    @property
    def found_problems(self) -> pd.DataFrame:
        """All problems found so far, with the columns severity, code, where, text, field, found, expected and node."""
        return self._panel(ProblemsPanel).found_problems

    # Movement ---------------------------------------------------------------------------------------------------------

    def back(self) -> None:
        """Go back to what was shown before; do nothing at the beginning of the history."""
        self._panel(HistoryPanel).go(-1)

    def forward(self) -> None:
        """Go forward again; do nothing at the end of the history."""
        self._panel(HistoryPanel).go(1)

    # Rows -------------------------------------------------------------------------------------------------------------

    @property
    def found_rows(self) -> RowPlaces | None:
        """The rows that were found in the tab Rows, and what happened to them; None before the first search."""
        return self._panel(RowsPanel).found

    # The scan lab -----------------------------------------------------------------------------------------------------

    @property
    def plan(self) -> ScanPlan | None:
        """The plan of the filter in the tab Scan; see `iceexplore.widgets.ScanLab.plan`."""
        return self._panel(ScanPanel).plan

    # The commit lab ---------------------------------------------------------------------------------------------------

    @property
    def simulation(self) -> Simulation:
        """The simulation at the step shown in the tab Simulate; see `iceexplore.widgets.CommitLab.simulation`."""
        return self._panel(CommitPanel).simulation

    def apply(
        self, operation: str, /, *, layout: Mapping[str, Any] | None = None, rival: str = "", **values: Any
    ) -> None:
        """Run an operation synchronously in the tab Simulate; see `iceexplore.widgets.CommitLab.apply`."""
        self._panel(CommitPanel).apply(operation, layout=layout, rival=rival, **values)

    def undo(self) -> None:
        """Undo the last step; raise OptionError at the start."""
        self._panel(CommitPanel).undo()

    def redo(self) -> None:
        """Redo the step that was undone; raise OptionError if there is none."""
        self._panel(CommitPanel).redo()

    def fork(self, name: str = "") -> None:
        """Start another line of steps with a copy of those done so far; raise OptionError if its name is taken."""
        self._panel(CommitPanel).fork(name)

    # A page -----------------------------------------------------------------------------------------------------------

    def save_html(
        self,
        path: str | PathLike[str],
        *,
        redact: bool | str | Iterable[str] = ("credentials",),
        max_bytes: int = 10_000_000,
        rows: int = 1_000,
        overwrite: bool = False,
    ) -> SavedPage:
        """Write tree, tables, timeline and the doctor's findings into one HTML file that works offline.

        The page makes no requests (a Content-Security-Policy forbids them) and needs no Python. It opens with the
        current selection. Content that does not fit is listed at the end of the page.

        Parameters
        ----------
        path
            The file to write.
        redact
            Any of ``credentials`` (the default: values whose key or form is that of a secret, and queries and users in
            URLs), ``values`` (bounds, partition values, defaults and everything else that may hold data; facts and
            columns stay if they are named like a count, size, id, time or kind, and summaries keep numbers), ``paths``
            (equal file names get equal replacements) and ``names`` (of the table, columns, partition fields, branches
            and tags, unknown keys; documentation). True means all, False none. ``values`` and ``names`` include paths.
        max_bytes
            Maximum bytes of data in the page; trees and tables that do not fit are left out, those of older snapshots
            and of files first.
        rows
            Maximum number of rows of each table, at least one.
        overwrite
            Whether to replace an existing file.

        Raises
        ------
        OptionError
            A redaction or a number is invalid, or no file can be written to the path, for example because its folder is
            missing.
        ExistsError
            The file exists and ``overwrite`` is false. This is also a FileExistsError.
        StorageError, AccessDeniedError
            Writing failed; an existing file is unchanged.
        """
        return self._panel(SavedPagePanel).save(path, redact, max_bytes, rows, overwrite)

    # Tabs -------------------------------------------------------------------------------------------------------------

    def _on_problems(self, change: Bunch) -> None:
        # After a check, the findings of its report are counted instead, as several problems may have one cause.
        found = sum((self.doctor_report or self.problems).get("counts", {}).values())
        words = {**_PARTS, "problems": f"Health ({found:,})"} if found else _PARTS
        self.parts = [[key, title] for key, title in words.items()]

    def _on_tab(self, change: Bunch) -> None:
        self._host.shown(self._load_script)

    def _load_script(self) -> None:
        if self.tab in _LATER and self.tab not in self.scripts:
            self.scripts = {**self.scripts, self.tab: sent_later(_LATER[self.tab], _VIEW)}


def explore(table: TableLike, **options: Any) -> Explorer:
    """Return an explorer of a table or of a table's state; `Explorer` describes the options."""
    return Explorer(table, **options)
