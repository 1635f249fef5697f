"""The snapshots on a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import traitlets

from iceexplore.graph import TableState, format_ms, json_safe
from iceexplore.widgets._assets import script
from iceexplore.widgets._face import Face

__all__ = ["Timeline", "TimelinePart"]


class TimelinePart(Face):
    """The snapshots.

    Attributes
    ----------
    snapshots
        Every snapshot, oldest first.
    """

    snapshots = traitlets.List(traitlets.Dict()).tag(sync=True)

    def _first(self, selection: Mapping[str, str]) -> dict[str, Any]:
        return super()._first(selection) | {"snapshots": _snapshots(self._state)}


class Timeline(TimelinePart):
    """The snapshots of a table on a line, to travel in time."""

    _esm = script("timeline.timelineView")


def _snapshots(state: TableState) -> list[dict[str, Any]]:
    """Every snapshot, oldest first, as the slider needs it."""
    names: dict[int, list[str]] = {}
    for ref in state.metadata.refs.values():
        names.setdefault(ref.snapshot_id, []).append(json_safe(ref.name))
    unique = {s.snapshot_id: s for s in state.metadata.snapshots}
    return [
        {
            "id": str(s.snapshot_id),
            "time": format_ms(s.timestamp_ms).replace(".000 UTC", " UTC"),
            "operation": json_safe((s.operation or "")[:40]),
            "refs": sorted(names.get(s.snapshot_id, []), key=lambda n: (n != "main", n)),
        }
        for s in sorted(unique.values(), key=lambda s: (s.timestamp_ms, s.sequence_number, s.snapshot_id))
    ]
