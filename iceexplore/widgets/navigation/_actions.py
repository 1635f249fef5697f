"""The actions that the omnibox offers in addition to files, snapshots and rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ACTIONS", "Action", "matching_actions", "tab_actions"]


@dataclass(frozen=True)
class Action:
    """An action: its title, additional words by which it is found, and what the browser does.

    Attributes
    ----------
    press
        The names of buttons; the browser presses the first one that the widget shows.
    set
        Traits to set before a button is pressed, by name.
    keys
        The keys that do the same as the action.
    """

    title: str
    words: str = ""
    press: tuple[str, ...] = ()
    set: Mapping[str, Any] = field(default_factory=dict)
    keys: str = ""

    def does(self) -> dict[str, Any]:
        """Return what the browser does, in the form in which it is sent."""
        return {"set": dict(self.set), "press": list(self.press)}


_TREE = {"tab": "tree"}
ACTIONS = (
    Action("Collapse or expand the timeline", "hide show room", ("Collapse the timeline", "Expand the timeline")),
    Action("Collapse or expand the head", "hide show room fields", ("Collapse the head", "Expand the head")),
    Action("Full screen, or leave it", "projector presentation", ("Full screen", "Leave full screen")),
    Action("Larger text", "size zoom font projector", ("Larger text",)),
    Action("Smaller text", "size zoom font", ("Smaller text",)),
    Action("Text size 100 %", "reset zoom font", set={"text_size": 100}),
    Action("Back", "history previous", ("Back",), keys="Alt+Left"),
    Action("Forward", "history next", ("Forward",), keys="Alt+Right"),
    Action("List the keys", "shortcuts help keyboard", ("Keys",), keys="?"),
    Action("Save the picture of the tree", "export svg png mermaid dot download", ("Save the picture",), _TREE),
    Action("Show the tree as a list, or as a picture", "rows", ("Show as a list",), _TREE),
    Action("Fit the tree", "zoom whole", ("Fit the tree",), _TREE),
    Action("Play through the history, or pause", "timeline animate", ("Play through the history", "Pause")),
    Action("Swap the compared snapshots", "difference", ("Swap: show the other snapshot, compared with this one",)),
)


def tab_actions(parts: Sequence[Sequence[str]]) -> list[Action]:
    """Return an action for each tab."""
    words = {
        "files": "file map", "rows": "filter values", "scan": "plan filter", "commit": "commit append delete",
        "problems": "check doctor health repair", "deletes": "deletion vectors positions",
    }  # fmt: skip
    return [Action(f"Go to the tab {title}", words.get(key, ""), set={"tab": key}) for key, title in parts]


def matching_actions(actions: Sequence[Action], text: str) -> list[Action]:
    """Return the actions that a text finds: each word of the text must begin a word of the action."""
    asked = text.casefold().split()
    found = []
    for action in actions:
        words = f"{action.title} {action.words}".casefold().replace(",", " ").split()
        if all(any(word.startswith(one) for word in words) for one in asked):
            found.append(action)
    return found
