"""The selected snapshot's files as cells by partition: while the timeline plays, files appear, age and vanish."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import traitlets
from traitlets import Bunch

from iceexplore.errors import OptionError
from iceexplore.graph import (
    FILE_KINDS,
    CellColor,
    FileCells,
    amount,
    cell_legend,
    cell_shades,
    file_cells,
    group_note,
    live_files,
)
from iceexplore.widgets.core._bundle import sent_script
from iceexplore.widgets.core._escape_text import signs
from iceexplore.widgets.core._panel import Panel, PanelHost, SyncedTrait, shown
from iceexplore.widgets.core._static_html import file_map_html
from iceexplore.widgets.core._table_widget import TableWidget

__all__ = ["FileMap", "FileMapPanel"]

_COLORS = list(get_args(CellColor))
_MOST_LABEL = 300
#: The largest integer that JavaScript represents exactly.
_MOST_NUMBER = 2**53 - 1


class FileMapPanel(Panel):
    """The panel that shows files as cells. It reads them when the tab is shown, and again for each selected snapshot.

    Attributes
    ----------
    file_map
        What the browser shows: ``of``, the snapshot's id; ``parent``, the id of its parent; ``title``; ``legend``,
        sentences for each measure of `file_color`; ``groups``, the partitions, each with its label, its numbers as
        text, and its number of cells; ``names``, the kinds of files; ``filter``, the value of `file_filter`; and
        ``filters``, its possible values. The other keys hold one value for each cell, in order. Strings of digits:
        ``kinds`` (indexes into ``names``), ``changes`` (0 carried over, 1 added, 2 removed) and ``shades`` (a string
        for each measure). Lists of numbers, as in `iceexplore.graph.FileCells`: ``files``, ``size``, ``rows``,
        ``deleted`` (per mille; -1 if unknown), ``age``, ``manifest`` and ``row``.
    file_color
        The measure that shades the cells: ``size``, ``age`` or ``deletes``.
    file_filter
        Which files are shown: a name in `iceexplore.doctor.DELETE_GROUPS`, or all (empty).
    """

    later = ("iceexplore.doctor",)

    file_map = SyncedTrait(traitlets.Dict())
    file_color = SyncedTrait(traitlets.Enum(_COLORS, "size"))
    file_filter = SyncedTrait(traitlets.Unicode())

    def __init__(self, host: PanelHost) -> None:
        super().__init__(host)
        self._asked: tuple[str, str] | None = None  # the snapshot and the filter of the files shown or being read

    def begin(self) -> None:
        """Read the files once the tab is visible."""
        if self.host.tab is not None:
            self.host.observe(self._on_tab, "tab")
        self.host.observe(self._on_tab, "file_filter")
        self._show()

    @shown
    def _on_tab(self, change: Bunch) -> None:
        self._show()

    def on_selected(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """Read the files of the newly selected snapshot."""
        if old["snapshot"] != new["snapshot"]:
            self._show()

    def on_cancelled(self, selection: Mapping[str, str]) -> None:
        """Forget the cancelled request, so that it can be made again."""
        self._asked = self._shown

    def on_failed(self) -> None:
        """Forget the failed request, so that it can be made again."""
        self._asked = self._shown

    @property
    def _shown(self) -> tuple[str, str] | None:
        return (self.file_map["of"], self.file_map["filter"]) if self.file_map else None

    def no_kernel_html(self) -> str:
        """Return the partitions as HTML."""
        return file_map_html(self.file_map)

    def _show(self) -> None:
        snapshot, chosen = self.host.selection["snapshot"], self.file_filter
        if self.host.tab not in (None, "files") or not snapshot or (snapshot, chosen) == self._asked:
            return
        self._asked = (snapshot, chosen)

        def read() -> dict[str, Any]:
            from iceexplore.doctor import DELETE_GROUPS, files_of_group

            if chosen and chosen not in DELETE_GROUPS:
                raise OptionError(f"file_filter={chosen[:60]!r}: choose one of {', '.join(DELETE_GROUPS)}")
            state = self.host.state_at(snapshot)
            found = live_files(state)
            cells = file_cells(found.only(*files_of_group(state, chosen)) if chosen else found)
            return {**sent_cells(cells, snapshot), "filter": chosen, "filters": list(DELETE_GROUPS)}

        def show(found: dict[str, Any]) -> None:
            parent = self.host.snapshot_of(snapshot).parent_snapshot_id
            self.file_map = {**found, "parent": "" if parent is None else str(parent)}

        self.host.run("file_map", "Reading the manifests", read, show)


def sent_cells(cells: FileCells, snapshot: str) -> dict[str, Any]:
    """Return the cells in the form that the browser receives; see `FileMapPanel.file_map`."""
    files = amount(cells.total, "file")
    is_partitioned = any(group.label for group in cells.groups)
    return {
        "of": snapshot,
        "title": f"{files} in {amount(cells.partitions, 'partition')}" if is_partitioned else files,
        "legend": {color: cell_legend(cells, color) for color in _COLORS},
        "groups": [[signs(g.label[:_MOST_LABEL]) or "unpartitioned", group_note(g), g.cells] for g in cells.groups],
        "names": list(FILE_KINDS),
        "kinds": _digits(cells.kind),
        "changes": _digits(cells.change),
        "shades": {color: "".join(map(str, cell_shades(cells, color))) for color in _COLORS},
        **{name: _exact(getattr(cells, name)) for name in _NUMBERS},
    }


_NUMBERS = ("files", "size", "rows", "deleted", "age", "manifest", "row")


def _digits(values: npt.NDArray[np.int64]) -> str:
    return "".join(map(str, values.tolist()))


def _exact(values: npt.NDArray[np.int64]) -> list[int]:
    made: list[int] = np.clip(values, -1, _MOST_NUMBER).tolist()
    return made


class FileMap(TableWidget):
    """A widget that shows a snapshot's files as cells, one row per partition.

    ``FileMap(t, selection=explorer)`` follows the explorer's timeline.
    """

    panels = (FileMapPanel,)

    view_script = sent_script("fileMap.fileMapView")
