"""The room that a widget takes in the notebook: its height, the size of its text, and what is collapsed."""

from __future__ import annotations

import re
from typing import Any

import traitlets

from iceexplore.widgets.core._keys import keys_sent

__all__ = ["Height", "RoomTraits"]

#: The lowest and the greatest height in pixels, as in ``room.js``.
_LOWEST, _HIGHEST = 200, 10_000
_LENGTH = re.compile(r"(\d+(?:\.\d+)?|\.\d+)(px|em|rem|ex|ch|lh|rlh|vh|svh|lvh|dvh|vw|vmin|vmax|cm|mm|in|pt|pc)")
#: The smallest and the largest text size that the buttons set, in percent, as in ``room.js``.
_SMALLEST, _LARGEST = 85, 200
#: The traits that a cell's next run keeps, if a widget has them.
_KEPT = ("height", "text_size", "head_collapsed", "collapsed", "details_hidden")


class Height(traitlets.TraitType[str, Any]):
    """A height as a CSS length; a number means pixels, and None or ``""`` means as high as the content needs."""

    default_value = ""

    def validate(self, obj: object, value: object) -> str:
        """Return the length as text.

        Raises
        ------
        traitlets.TraitError
            The value is not a CSS length, or a number of pixels outside the limits.
        """
        if value is None or value == "":
            return ""
        text = f"{value:g}px" if isinstance(value, int | float) and not isinstance(value, bool) else value
        if isinstance(text, str) and (found := _LENGTH.fullmatch(text.strip().lower())):
            number = float(found[1])
            if _LOWEST <= number <= _HIGHEST if found[2] == "px" else 0 < number <= _HIGHEST:
                return found[0]
        raise traitlets.TraitError(
            f"height={str(value)[:100]!r} is not a height: give pixels, from {_LOWEST} to {_HIGHEST:,}, or a CSS "
            "length, such as '80vh' or '40em'"
        )


class RoomTraits(traitlets.HasTraits):
    """The traits that set how much room a widget takes. None means the last choice in the browser's session.

    Attributes
    ----------
    height
        The height of the widget as a CSS length; a number is in pixels. Empty: as high as its content needs. Dragging
        its lower edge sets it.
    text_size
        The size of texts and pictures in percent, from 85 to 200.
    head_collapsed
        Whether the line with the name, and the fields above a table, are collapsed.
    shortcuts
        The keyboard shortcuts by part of the widget, as the sheet that ``?`` opens lists them.
    """

    height = Height().tag(sync=True)
    text_size = traitlets.Int(None, allow_none=True, min=_SMALLEST, max=_LARGEST).tag(sync=True)
    head_collapsed = traitlets.Bool(None, allow_none=True).tag(sync=True)
    shortcuts: traitlets.List[Any] = traitlets.List().tag(sync=True)

    _first_room: dict[str, Any] | None = None

    @traitlets.default("shortcuts")
    def _shortcuts(self) -> list[Any]:
        return keys_sent(self.has_trait)

    def room(self) -> dict[str, Any]:
        """Return the widget's values of the traits that set its room, by name."""
        return {name: getattr(self, name) for name in _KEPT if self.has_trait(name)}

    def room_changes(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the room with which the widget was created, and what has changed since."""
        first = self._first_room or {}
        return first, {name: value for name, value in self.room().items() if value != first.get(name)}

    def begin_room(self, before: tuple[dict[str, Any], dict[str, Any]] | None) -> None:
        """Take over what the user changed in the widget of the cell's earlier run, if both began with the same room."""
        self._first_room = self.room()
        if before is not None and before[0] == self._first_room:
            for name, value in before[1].items():
                setattr(self, name, value)
