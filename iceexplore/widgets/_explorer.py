"""The explorer, a widget that combines all parts."""

from __future__ import annotations

from typing import Any

import traitlets

from iceexplore.widgets.commit_lab._panel import CommitPart
from iceexplore.widgets.core._bundle import later_script, packed, script
from iceexplore.widgets.core._table_widget import shown
from iceexplore.widgets.deletes._panel import VectorsPart
from iceexplore.widgets.detail._panel import DetailPart
from iceexplore.widgets.problems._panel import ProblemsPart
from iceexplore.widgets.saved_page._save import SavedPart
from iceexplore.widgets.scan_lab._panel import ScanPart
from iceexplore.widgets.timeline._panel import TimelinePart

__all__ = ["Explorer", "explore"]

_VIEW = "explorer.explorerView"
#: Parts whose scripts are sent when their tab is first shown, which keeps the initial script small.
_LATER = {
    "scan": "scan.scanView",
    "commit": "commit.commitView",
    "problems": "problems.problemsView",
    "deletes": "vectors.vectorsView",
}
_PARTS = {"tree": "Tree", "scan": "Scan", "commit": "Commit", "problems": "Problems", "deletes": "Deletes"}


class Explorer(SavedPart, ScanPart, CommitPart, VectorsPart, ProblemsPart, TimelinePart, DetailPart):
    """A widget to explore a table in a notebook.

    All state is in plain traits, so that a view can be rendered from them without Python, and a notebook can set them:
    ``w.select("root:17", snapshot=17)``, ``w.tab = "scan"``. Files are read in a thread; `settle` waits for it.

    Attributes
    ----------
    parts
        The parts, each a key and the label of its tab; that of the problems includes their number.
    tab
        The key of the part shown: ``tree``, ``scan``, ``commit``, ``problems`` or ``deletes``.
    scripts
        The scripts of parts that have been shown and are not in the widget's initial script.
    """

    parts = traitlets.List([[key, words] for key, words in _PARTS.items()]).tag(sync=True)
    tab = traitlets.Unicode("tree").tag(sync=True)
    scripts = traitlets.Dict().tag(sync=True)

    _esm = packed(script(_VIEW, *_LATER.values()))

    def _begin(self) -> None:
        self.observe(self._on_problems, "problems")
        super()._begin()
        self.observe(self._on_tab, "tab")
        self._load_part()

    def _on_problems(self, change: Any) -> None:
        found = sum(self.problems.get("counts", {}).values())
        words = {**_PARTS, "problems": f"Problems ({found:,})"} if found else _PARTS
        self.parts = [[key, title] for key, title in words.items()]

    @shown
    def _on_tab(self, change: Any) -> None:
        self._load_part()

    def _load_part(self) -> None:
        if self.tab in _LATER and self.tab not in self.scripts:
            self.scripts = {**self.scripts, self.tab: packed(later_script(_LATER[self.tab], _VIEW))}


def explore(table: Any) -> Explorer:
    """Return the explorer of a table or a table's state."""
    return Explorer(table)
