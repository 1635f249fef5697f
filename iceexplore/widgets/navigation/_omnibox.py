"""One field to find files, snapshots, rows and actions, and to go to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import traitlets
from traitlets import Bunch

from iceexplore.errors import OptionError
from iceexplore.expressions import bind_filter
from iceexplore.graph import amount
from iceexplore.widgets.core._escape_text import signs
from iceexplore.widgets.core._panel import Panel, PanelHost, SyncedTrait, shown
from iceexplore.widgets.navigation._actions import ACTIONS, Action, matching_actions, tab_actions
from iceexplore.widgets.timeline._panel import TimelinePanel
from iceexplore.widgets.tree._panel import TreePanel

__all__ = ["OmniboxPanel"]

_LONGEST = 1_000
#: Maximum number of results in each group, and of actions while the field is empty.
_MOST, _MOST_ACTIONS = 8, 12
#: Maximum number of characters shown of a file's name and of its folder (the ends of both), and of a filter.
_NAME, _FOLDER, _FILTER = 48, 32, 120
#: Operators of filters. If a text contains one of them but is not a valid filter, the error is shown.
_LIKE_FILTER = ("=", "<", ">", " in ", " is ", " like ", " between ")

#: A result: its title, a note, and what the browser does: ``set`` traits, ``select``, ``press`` a button.
Result = tuple[str, str, dict[str, Any]]


class OmniboxPanel(Panel):
    """The omnibox of the explorer.

    Files are found by the tree's search (`TreePanel`), which goes on in the background and marks them in the tree.
    Other results are found at once.

    Attributes
    ----------
    omni
        The browser's last request: ``n``, incremented, and ``text``.
    omni_found
        Python's answer: the request's ``n``; ``groups``, each a title and its results (title, note, and what to do:
        ``set`` traits, ``select``, ``press`` a button of one of these names); ``busy``, whether the search goes on; and
        ``note``, a sentence about what was searched and what was not.
    """

    omni = SyncedTrait(traitlets.Dict())
    omni_found = SyncedTrait(traitlets.Dict())

    def __init__(self, host: PanelHost) -> None:
        super().__init__(host)
        self._tree, self._line = host.panel(TreePanel), host.panel(TimelinePanel)
        self._groups: list[tuple[str, list[Result]]] = []
        self._fault = ""
        self._stopped = False

    def begin(self) -> None:
        """Answer requests, and follow the search for files."""
        self.host.observe(self._on_omni, "omni")
        self.host.observe(self._on_found, "found")

    def on_cancelled(self, selection: Mapping[str, str]) -> None:
        """Show how far the search for files got."""
        searching = self._tree.searching
        if self.omni.get("text") and searching is not None and not searching.done:
            self._stopped = True
            self._answer()

    @shown
    def _on_omni(self, change: Bunch) -> None:
        text = self.omni.get("text", "")
        if not isinstance(text, str) or len(text) > _LONGEST:
            raise OptionError(f"omni={str(self.omni)[:200]}: give n, and text of at most {_LONGEST:,} characters")
        self._stopped = False
        text = text.strip()
        rows, self._fault = self._rows(text)
        snapshots, count = self._snapshots(text)
        title = "Snapshots" if count <= _MOST else f"Snapshots, {_MOST} of {count:,}"
        self._groups = [("Rows", rows), ("Actions", self._actions(text)), (title, snapshots)]
        asked = self._tree.search
        if text != asked.get("text", ""):
            self._tree.search = {"n": asked.get("n", 0) + 1, "text": text}
        self._answer()

    def _on_found(self, change: Bunch) -> None:
        if self.omni.get("text", "").strip():
            self.host.call(self._answer)

    # Results ----------------------------------------------------------------------------------------------------------

    def _rows(self, text: str) -> tuple[list[Result], str]:
        """Return a result that finds rows if the text is a filter, and an error if the text only looks like one."""
        if not any(sign in f" {text} ".casefold() for sign in _LIKE_FILTER):
            return [], ""
        try:
            bind_filter(self.host.state.schema, text)
        except OptionError as error:
            return [], signs(str(error).partition("\n")[0][:200])
        does = {"set": {"rows_filter": text, "tab": "rows"}}
        return [(f"Find rows where {signs(text[:_FILTER])}", "opens data files", does)], ""

    def _snapshots(self, text: str) -> tuple[list[Result], int]:
        """Return the newest snapshots that match a text by number, id, operation, time or ref, and how many match."""
        words = text.casefold().split()
        if not words:
            return [], 0
        every = self._line.snapshots
        found = []
        for i in range(len(every) - 1, -1, -1):
            one = every[i]
            own = " ".join([one["id"], one["time"], one["operation"], *one["refs"]]).casefold()
            if all(word in own for word in words) or text == str(i + 1):
                found.append(i)
        # A snapshot with exactly this number or id comes before snapshots whose ids contain it.
        found.sort(key=lambda i: text not in (str(i + 1), every[i]["id"]))
        results = []
        for i in found[:_MOST]:
            one = every[i]
            title = " · ".join([f"{i + 1}/{len(every)}", *one["refs"][:3], one["operation"] or "no operation"])
            does = {"select": {"snapshot": one["id"], "node": f"snapshot:{one['id']}"}}
            results.append((title, f"{one['time']} · {one['id']}", does))
        return results, len(found)

    def _actions(self, text: str) -> list[Result]:
        widget: Any = self.host.widget
        found = matching_actions([*tab_actions(widget.parts), *ACTIONS], text)
        results = [(action.title, action.keys, action.does()) for action in found]
        chosen, snapshot = self.host.selection, self.host.snapshot
        parent = None if snapshot is None else snapshot.parent_snapshot_id
        known = parent is not None and self.host.state.metadata.snapshot(parent) is not None
        if known and matching_actions([Action("Compare with the parent", "difference previous")], text):
            does = {"select": {"against": str(parent), "node": f"snapshot:{chosen['snapshot']}"}}
            results.insert(0, ("Compare with the parent", "", does))
        if chosen["against"] and matching_actions([Action("Stop comparing", "end comparison")], text):
            results.insert(0, ("Stop comparing", "", {"select": {"against": ""}}))
        return results[: _MOST if text else _MOST_ACTIONS]

    def _files(self) -> tuple[list[Result], int]:
        """Return the first metadata and data files that the search has found so far, and how many there are."""
        hits = [hit for hit in self._tree.found.get("hits", []) if not hit.startswith(("snapshot:", "ref:"))]
        searching = self._tree.searching
        names = {} if searching is None else searching.names
        results = []
        for hit in hits[:_MOST]:
            kind = hit.partition(":")[0]
            label = self._tree.nodes.get(hit, {}).get("label", hit.partition(":")[2])
            folder, _, name = names.get(hit, label).rpartition("/")
            note = " · ".join(filter(None, [kind, _end(folder, _FOLDER)]))
            results.append((_end(name, _NAME), note, {"select": {"node": hit}}))
        return results, len(hits)

    def _answer(self) -> None:
        text = self.omni.get("text", "").strip()
        current = bool(text) and self._tree.found.get("n") == self._tree.search.get("n")
        files, count = self._files() if current else ([], 0)
        busy = bool(text) and not self._stopped and (not current or bool(self._tree.found.get("busy")))
        more = "+" if current and self._tree.found.get("more") else ""
        title = "Files" if count <= _MOST else f"Files, {_MOST} of {count:,}{more}"
        # Files come last because they arrive last: results that the user is about to choose do not move.
        groups = [group for group in (*self._groups, (title, files)) if group[1]]
        self.omni_found = {
            "n": self.omni.get("n", 0),
            "groups": [[title, [list(result) for result in results]] for title, results in groups],
            "busy": busy,
            "note": self._note(text, busy=busy, found=bool(groups)) if text else "",
        }

    def _note(self, text: str, *, busy: bool, found: bool) -> str:
        """Return sentences about what was and was not searched; if something was found, only about what is missing."""
        searching = self._tree.searching
        far = ""
        if searching is not None:
            far = f"{searching.searched:,} of {amount(searching.manifests, 'manifest')}"
        if busy:
            return f"Searching files: {far} …"
        faults = [f"Not a valid filter: {self._fault}."] if self._fault else []
        if self._stopped:
            faults.append(f"Cancelled: {far} searched.")
        if searching is not None and searching.lacks:
            faults.append(f"Incomplete: {searching.lacks}.")
        if found:
            return " ".join(faults)
        snapshots, refs = (
            amount(len(self._line.snapshots), "snapshot"),
            amount(len(self.host.state.metadata.refs), "ref"),
        )
        searched = f"Nothing found in {snapshots}, {refs}, the actions, and the names and partitions in {far}."
        missing = "Not searched: files of other snapshots, and rows (a filter such as id = 17 finds them)."
        return " ".join([searched, *faults, missing])


def _end(text: str, most: int) -> str:
    """Return the end of a name or path."""
    return signs(text if len(text) <= most else "…" + text[1 - most :])
