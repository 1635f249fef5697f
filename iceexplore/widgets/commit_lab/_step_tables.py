"""The tables of a step of the commit lab, and of the items of its trees: entries as written, with their fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from iceexplore.errors import OptionError
from iceexplore.graph import TableState, json_safe, live_manifests
from iceexplore.render import style
from iceexplore.widgets.changes._tables import CHANGES
from iceexplore.widgets.commit_lab._report import Report
from iceexplore.widgets.core._blocks import Block, Part
from iceexplore.widgets.core._escape_text import signs
from iceexplore.widgets.detail._node_of_state import NodeOfState
from iceexplore.widgets.detail._node_tables import JSON, tables_of
from iceexplore.widgets.grid._panel import GridSource
from iceexplore.widgets.grid._view import TableView
from iceexplore.widgets.tree._sides import SIDES

if TYPE_CHECKING:
    import pandas as pd

    from iceexplore.widgets.grid._table import GridTable

__all__ = ["StepTables"]

_TITLES = {"before": "before the step", "after": "after the step"}
#: The tables of a step whose rows are files of the tree after it.
_OF_FILES = ("written", "manifests")


class StepTables(GridSource):
    """The tables of steps, and of the items of their trees.

    The owner of a step's table is the step's id. That of an item's table is ``<step> <side> <node>``: the step's id,
    ``before`` or ``after``, and the id of the item's node. If the node is empty, or missing in the tree of this side,
    the item is the root of the current snapshot. An empty key means the item's first table.

    Parameters
    ----------
    reports
        The reports of the steps, by id.
    """

    def __init__(self, reports: Mapping[str, Report]) -> None:
        self._reports = reports

    def _report(self, step: str) -> Report:
        if step not in self._reports:
            raise OptionError(f"step {step[:40]!r} no longer exists")
        return self._reports[step]

    def _item(self, of: str, table: str) -> tuple[NodeOfState, str] | None:
        """Return an item and the key of its table; None if ``of`` is the owner of a step's table."""
        step, _, rest = of.partition(" ")
        if not rest:
            return None
        side, _, node_id = rest.partition(" ")
        if side not in SIDES:
            raise OptionError(f"{of[:80]!r}: the side must be 'before' or 'after'")
        tree = self._report(step).sides[SIDES.index(side)]
        node = tree.find(node_id or _root_of(tree.state)) or tree.find(_root_of(tree.state))
        if node is None:
            raise OptionError(f"there is no metadata {_TITLES[side]}")
        keys = [one.key for one in tables_of(node) if one.key != CHANGES]
        return NodeOfState(tree.state, node), table or [*keys, JSON][0]

    def frame(self, of: str, table: str) -> pd.DataFrame | GridTable:
        """Return a table of a step, or of an item."""
        item = self._item(of, table)
        return self._report(of).frame(table) if item is None else item[0].table(item[1])

    def text(self, of: str, table: str) -> dict[str, Any] | None:
        """Return an item's JSON."""
        item = self._item(of, table)
        return None if item is None else item[0].text(item[1])

    def nodes(self, of: str, table: str, rows: Sequence[int]) -> Sequence[str | None]:
        """Return the nodes that rows represent: those of a step's table are in the tree after the step."""
        item = self._item(of, table)
        if item is not None:
            return item[0].nodes(item[1], item[0].table(item[1]), rows)
        if table not in _OF_FILES:
            return super().nodes(of, table, rows)
        report = self._report(of)
        known = _nodes_by_location(report.after)
        locations = report.frame(table)["location"].tolist()
        return [known.get(locations[row]) for row in rows]

    def view(self, of: str, table: str, names: Sequence[str]) -> TableView:
        """Return how a table is shown."""
        item = self._item(of, table)
        if item is not None:
            return item[0].view(item[1], names, item[0].deletes)
        if table == "rules" and not self._report(of).broken:  # the column "where" would be empty
            return TableView(("rule", "result", "what must hold"))
        return super().view(of, table, names)

    def unread(self, of: str, table: str) -> str:
        """Return the reason why rows of an item's table may be missing."""
        item = self._item(of, table)
        return "" if item is None else item[0].unread(item[1])

    def docs(self, of: str, table: str) -> Mapping[str, str]:
        """Return what the spec says about the columns of an item's table."""
        item = self._item(of, table)
        return {} if item is None else item[0].docs(item[1])

    def help(self, of: str, table: str) -> tuple[Mapping[str, list[Any]], Mapping[str, list[Any]]]:
        """Return help for the columns of an item's entries, and the open points that it mentions."""
        item = self._item(of, table)
        return ({}, {}) if item is None else item[0].help(item[1])

    def above(self, of: str, table: str) -> list[Block]:
        """Return blocks that say what an item is and where, with links to its tables and to the roots of both sides."""
        item = self._item(of, table)
        if item is None:
            return []
        node, key = item[0].node, item[1]
        side = of.split(" ")[1]
        tabs = [(one.key, one.title) for one in tables_of(node) if one.key != CHANGES]
        links: list[Part] = []
        for name, title in [*tabs, (JSON, "JSON")]:
            links += [" · "] if links else []
            links.append(["b", title] if name == key else _link(title, side=side, node=node.id, table=name))
        title, label = style(node.kind).title, _plain(node.label)
        name = "" if label.startswith(title) else f" {label}"
        roots: list[Part] = ["Root: ", _link("before", side="before"), " · ", _link("after", side="after")]
        return [
            ["p", [["b", f"{title}{name}"], f", {_TITLES[side]}. ", *roots]],
            *([["p", [["code", _plain(node.location)]]]] if node.location else []),
            ["p", links],
        ]


def _plain(text: str) -> str:
    """Return a text from the table in a form that is safe to send to the browser."""
    return signs(str(json_safe(text)))


def _link(title: str, **item: str) -> Part:
    return ["set", title, {"commit_item": item}]


def _root_of(state: TableState) -> str:
    """Return the node id of the current snapshot's root or, without such a snapshot, of the metadata file."""
    return "metadata" if state.snapshot is None else f"root:{state.snapshot.snapshot_id}"


def _nodes_by_location(state: TableState) -> dict[str, str]:
    """Return the nodes of the metadata file and of the current snapshot's root and manifests, by their locations."""
    found = {state.metadata_location: "metadata"}
    root = state.root()
    if root is None or state.snapshot is None:
        return found
    snapshot = state.snapshot.snapshot_id
    found[root.location] = f"root:{snapshot}"
    locations = root.entries["location"]
    found |= {str(locations[row].as_py()): f"manifest:{snapshot}:{row}" for row in live_manifests(root)}
    return found
