"""What is selected: one trait that all widgets have, so that any two can be linked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import traitlets

from iceexplore.graph import TableState

__all__ = ["Selection", "first_selection"]

_KEYS = ("snapshot", "against", "node")
_LONGEST = 10_000


class Selection(traitlets.Dict):
    """A dictionary of text, which the browser and `ipywidgets.link` can carry. What is left out is empty.

    - ``snapshot``: the snapshot shown, in digits (JavaScript cannot hold an int64);
    - ``against``: the snapshot that it is compared with; empty: none;
    - ``node``: the node selected, `iceexplore.graph.TreeNode.id`.
    """

    def validate(self, obj: Any, value: Any) -> dict[str, str]:
        """Every key, as text.

        Raises
        ------
        traitlets.TraitError
            Another key, or no text.
        """
        if not isinstance(value, Mapping) or not set(value) <= set(_KEYS):
            raise traitlets.TraitError(f"a selection has the keys {', '.join(_KEYS)}, not {str(value)[:200]}")
        for key, text in value.items():
            if not isinstance(text, str) or len(text) > _LONGEST:
                raise traitlets.TraitError(f"a selection's {key} is text, not {str(text)[:200]!r}")
        return {key: value.get(key, "") for key in _KEYS}


def first_selection(state: TableState) -> dict[str, str]:
    """A table's present snapshot."""
    shown = "" if state.snapshot is None else str(state.snapshot.snapshot_id)
    return {"snapshot": shown, "against": "", "node": f"snapshot:{shown}" if shown else "table"}
