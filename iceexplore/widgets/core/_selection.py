"""The selection, a trait that all widgets have, so that any two can be linked."""

from __future__ import annotations

from collections.abc import Mapping

import traitlets

from iceexplore.errors import OptionError, Unchecked
from iceexplore.graph import TableState

__all__ = ["Selection", "first_selection", "valid_selection"]

_KEYS = ("snapshot", "against", "node")
_LONGEST = 10_000


class Selection(traitlets.Dict):
    """A dictionary of text, which the browser and `ipywidgets.link` can carry. Missing keys become empty.

    - ``snapshot``: the id of the snapshot shown, in decimal, as JavaScript numbers cannot hold an int64;
    - ``against``: the id of the snapshot to compare with; empty for none;
    - ``node``: the id of the selected node, `iceexplore.graph.TreeNode.id`.
    """

    def validate(self, obj: object, value: object) -> dict[str, str]:
        """Return the selection with all keys.

        Raises
        ------
        traitlets.TraitError
            There is an unknown key, or a value is not text.
        """
        if not isinstance(value, Mapping) or not set(value) <= set(_KEYS):
            raise traitlets.TraitError(f"a selection has the keys {', '.join(_KEYS)}; got {str(value)[:200]}")
        for key, text in value.items():
            if not isinstance(text, str) or len(text) > _LONGEST:
                raise traitlets.TraitError(f"a selection's {key} must be text, not {str(text)[:200]!r}")
        return {key: value.get(key, "") for key in _KEYS}


def valid_selection(selection: Unchecked) -> dict[str, str]:
    """Return the selection as a dictionary; raise OptionError if it is not valid."""
    try:
        Selection().validate(None, selection)
    except traitlets.TraitError as error:
        raise OptionError(str(error)) from None
    return dict(selection)


def first_selection(state: TableState) -> dict[str, str]:
    """Return the initial selection: the state's snapshot, or the table if it has none."""
    shown = "" if state.snapshot is None else str(state.snapshot.snapshot_id)
    return {"snapshot": shown, "against": "", "node": f"snapshot:{shown}" if shown else "table"}
