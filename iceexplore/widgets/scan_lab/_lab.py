"""The scan lab as a separate widget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iceexplore.widgets.core._bundle import sent_script
from iceexplore.widgets.core._table_widget import TableWidget
from iceexplore.widgets.grid._panel import GridPanel
from iceexplore.widgets.scan_lab._panel import ScanPanel
from iceexplore.widgets.scan_lab._ranges import RangesPanel
from iceexplore.widgets.scan_lab._typing import FilterBoxPanel

if TYPE_CHECKING:
    from iceexplore.planning import ScanPlan

__all__ = ["ScanLab"]


class ScanLab(TableWidget):
    """A widget that shows what a filter reads and skips, and why: ``ScanLab(table, scan_filter="fare > 10")``.

    ``w.scan_filter = "..."`` plans another filter, ``w.plan`` is the `iceexplore.planning.ScanPlan`.
    """

    panels = (GridPanel, FilterBoxPanel, ScanPanel, RangesPanel)

    view_script = sent_script("scan.scanView")

    @property
    def plan(self) -> ScanPlan | None:
        """The plan of the current inputs, created on first access; None without a filter.

        Raises
        ------
        OptionError
            The filter or a column is invalid.
        """
        return self._panel(ScanPanel).plan
