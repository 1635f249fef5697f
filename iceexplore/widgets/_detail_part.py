"""The details of the selected node: what it is, its fields, problems and tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import traitlets

from iceexplore.graph import TreeNode
from iceexplore.widgets._detail import detail_of, load_table, tables_of
from iceexplore.widgets._grid_part import GridPart
from iceexplore.widgets._grid_query import GridQuery
from iceexplore.widgets._tree_part import TreePart

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DetailPart"]

_GRID = "detail"


class DetailPart(TreePart, GridPart):
    """The details of the tree's selected node, and its tables (grid ``"detail"``).

    Attributes
    ----------
    detail
        See `iceexplore.widgets._detail.detail_of`.
    """

    detail = traitlets.Dict().tag(sync=True)

    def _first(self, selection: Mapping[str, str]) -> dict[str, Any]:
        return super()._first(selection) | {"detail": detail_of(self._forest.node(selection["node"]))}

    def _begin(self) -> None:
        super()._begin()
        self._first_page(self.selected)

    @property
    def selected_table(self) -> pd.DataFrame | None:
        """The whole table whose page is shown, as a data frame; None where what is selected has none."""
        node = self.selected
        keys = [t.key for t in tables_of(node)]
        if not keys:
            return None
        page = self.pages.get(_GRID, {})
        key = page.get("table") if page.get("of") == node.id else None
        return self._frame(_GRID, node.id, key if key in keys else keys[0])

    def _on_selected(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        super()._on_selected(old, new)
        wanted = new["node"]
        if old["node"] == wanted and self.detail.get("id") == wanted:
            return

        def show(node: TreeNode) -> None:
            self.detail = detail_of(node)
            self._first_page(node)

        self._do("detail", "Reading", lambda: self._forest.node(wanted), show)

    def _first_page(self, node: TreeNode) -> None:
        tables = tables_of(node)
        if tables:
            self._load_page(_GRID, GridQuery(node.id, tables[0].key, n=self.query.get(_GRID, {}).get("n", 0)))
        elif _GRID in self.pages:
            self.pages = {name: page for name, page in self.pages.items() if name != _GRID}

    def _grid_frame(self, grid: str, of: str, table: str) -> pd.DataFrame:
        if grid == _GRID:
            return load_table(self._state, self._forest.node(of), table)
        return super()._grid_frame(grid, of, table)
