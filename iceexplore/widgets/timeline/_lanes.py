"""Assign snapshots to lanes of the timeline: each branch's own snapshots are in one lane, main's in the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iceexplore.metadata import Ref, Snapshot

__all__ = ["Lanes", "MAX_LANES", "lanes_of"]

#: Maximum number of lanes; further chains overlap in the last lane.
MAX_LANES = 5


@dataclass(frozen=True)
class Lanes:
    """The positions of snapshots in the timeline.

    Attributes
    ----------
    lane
        The lane of each snapshot; lane 0 is the main branch's.
    parent
        The index of each snapshot's parent in the list; -1 if the parent is not in the list.
    reached
        Whether a branch or tag (or, without main, the current snapshot) reaches each snapshot; `expire_snapshots` may
        remove unreached snapshots first.
    """

    lane: list[int]
    parent: list[int]
    reached: list[bool]


def lanes_of(snapshots: Sequence[Snapshot], refs: Mapping[str, Ref], current: Snapshot | None) -> Lanes:
    """Assign snapshots, given oldest first, to lanes.

    A lane holds chains of parents. Chains are placed in this order: main's (or, without main, the current snapshot's),
    those of other branches, of tags, and of snapshots that no ref reaches. Chains that do not overlap share a lane.
    """
    place = {s.snapshot_id: i for i, s in enumerate(snapshots)}
    parent = [-1 if s.parent_snapshot_id is None else place.get(s.parent_snapshot_id, -1) for s in snapshots]
    lane = [-1] * len(snapshots)
    reached = [False] * len(snapshots)
    taken: list[bytearray] = []

    def add(head: int, by_ref: bool) -> None:
        chain = []
        at = head
        while at >= 0 and lane[at] < 0:
            lane[at] = 0  # marks the snapshot as visited, as damaged parent ids may form cycles
            chain.append(at)
            at = parent[at]
        if not chain:
            return
        low, high = min(chain), max(chain)
        number = _free(taken, low, high, len(snapshots))
        for one in chain:
            lane[one] = number
            reached[one] = by_ref

    def rank(ref: Ref) -> tuple[bool, bool, int, str]:
        return ref.name != "main", ref.type != "branch", -place.get(ref.snapshot_id, -1), ref.name

    heads = [r.snapshot_id for r in sorted(refs.values(), key=rank)]
    if "main" not in refs and current is not None:
        heads.insert(0, current.snapshot_id)
    for snapshot_id in heads:
        add(place.get(snapshot_id, -1), True)
    parents = set(parent)
    for tip in [i for i in reversed(range(len(snapshots))) if i not in parents]:
        add(tip, False)
    for rest in reversed(range(len(snapshots))):  # cycles have no tip
        add(rest, False)
    return Lanes(lane, parent, reached)


def _free(taken: list[bytearray], low: int, high: int, count: int) -> int:
    """Reserve the first lane that is free from ``low`` to ``high``; lane 0 is for the first chain only."""
    for number, places in enumerate(taken):
        if number and places.find(1, low, high + 1) < 0:
            break
    else:
        if len(taken) < MAX_LANES:
            taken.append(bytearray(count))
        number = len(taken) - 1
    taken[number][low : high + 1] = bytes([1]) * (high + 1 - low)
    return number
