"""The files of the selected snapshot as cells by partition: while the timeline plays, they appear, age and vanish."""

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
#: Numbers stay exact in JavaScript.
_MOST_NUMBER = 2**53 - 1


class FileMapPanel(Panel):
    """The files as cells. They are read when the tab is shown, and again for each selected snapshot.

    Attributes
    ----------
    file_map
        ``of`` (the snapshot's id) and ``parent`` (that of its parent); ``title``, ``legend`` (sentences by colour);
        ``groups``: label, numbers as text, and number of cells; ``names`` (the kinds of files); and of all cells, in
        order: ``kinds``, ``changes`` (0, 1 added, 2 removed) and ``shades`` (by colour) as strings of digits, and
        ``files``, ``size``, ``rows``, ``deleted`` (per mille, -1 unknown), ``age``, ``manifest`` and ``row`` as lists:
        see `iceexplore.graph.FileCells`; ``filter``, the filter of files, and ``filters``, those that there are.
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
        self._asked: tuple[str, str] | None = None  # the snapshot and the filter that are shown, or being read

    def begin(self) -> None:
        """Read the files once they are visible."""
        if self.host.tab is not None:
            self.host.observe(self._on_tab, "tab")
        self.host.observe(self._on_tab, "file_filter")
        self._show()

    @shown
    def _on_tab(self, change: Bunch) -> None:
        self._show()

    def on_selected(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """Read the files of another snapshot."""
        if old["snapshot"] != new["snapshot"]:
            self._show()

    def on_cancelled(self, selection: Mapping[str, str]) -> None:
        """Forget what was not read, so that it can be requested again."""
        self._asked = self._shown

    def on_failed(self) -> None:
        """Forget what could not be read."""
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
    """Return cells as the browser gets them; see `FileMapPanel.file_map`."""
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
    """A widget of a snapshot's files as cells, a row per partition.

    ``FileMap(t, selection=explorer)`` follows the explorer's timeline.
    """

    panels = (FileMapPanel,)

    view_script = sent_script("fileMap.fileMapView")
