"""Compare the totals that a snapshot or a manifest list records with those that were counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import pyarrow as pa

from iceexplore.errors import Problem
from iceexplore.graph import TableState, TreeNode, amount, diff, live_manifests, snapshot_of, travel

__all__ = ["Recorded", "recorded_of"]

#: Maximum number of entries of a snapshot whose totals are counted here, once all of its manifests have been read. The
#: totals of a larger snapshot are only compared with the manifest list.
_MOST_ENTRIES = 20_000
#: The codes of problems that contradict a recorded number.
_CODES = ("totals-differ", "count-mismatch")
#: What is counted from all entries, by the key of the summary.
_COUNTED = {
    "total-data-files": "data_files",
    "total-delete-files": "delete_files",
    "total-files-size": "bytes",
}

#: The totals counted for each snapshot; they never change.
_kept: WeakKeyDictionary[TableState, dict[int, dict[str, int] | None]] = WeakKeyDictionary()


@dataclass
class Recorded:
    """How recorded numbers compare with counted ones.

    Attributes
    ----------
    text
        Whether and how the recorded numbers were checked, as a sentence; empty for nodes without recorded totals.
    counted
        Counted numbers by field, where they differ from the recorded ones.
    problems
        The problems about these differences that belong to another node, each with that node's id.
    """

    text: str = ""
    counted: dict[str, int] = field(default_factory=dict)
    problems: tuple[tuple[Problem, str], ...] = ()


def recorded_of(state: TableState, node: TreeNode) -> Recorded:
    """Return how the recorded numbers of a node compare with counted ones. Only files already read are used."""
    kind, _, rest = node.id.partition(":")
    if kind == "snapshot":
        return _of_snapshot(state, int(rest))
    if kind == "manifest":
        return _of_manifest(state, node)
    return Recorded()


def _of_snapshot(state: TableState, number: int) -> Recorded:
    snapshot = snapshot_of(state.metadata, number, state.name)
    location = state.reader.root_location(snapshot)
    if location is None or location not in state.reader.seen:
        return Recorded("Recorded in the summary; not counted yet.")
    root = state.root(snapshot)
    if root is None:
        return Recorded("Recorded in the summary; not counted, as its manifests cannot be read.")
    found = [p for p in root.problems if p.code in _CODES and p.field]
    # These problems have the recorded number as the expected one.
    out = Recorded(counted=dict(_numbers(found, "found")), problems=tuple((p, f"root:{number}") for p in found))
    rows = live_manifests(root)
    names = set(root.entries["location"].take(pa.array(rows, pa.int64())).to_pylist()) - {None}
    read = len(names & state.reader.seen)
    if any(p.severity == "error" and p.where.partition("#")[0] in {*names, location} for p in state.problems):
        out.text = "Recorded in the summary; not all could be counted, as manifests cannot be read."
    elif read < len(names):
        of = f"{read:,} of {amount(len(names), 'manifest')} read"
        out.text = f"Compared with the manifest list; entries not counted yet ({of})."
    elif (n := _entries(state, number)) is None:
        out.text = f"Compared with the manifest list, which was compared with all {amount(len(names), 'manifest')}."
    else:
        out.text = f"Counted in {'all ' if len(names) > 1 else ''}{amount(len(names), 'manifest')}."
        summary = snapshot.summary or {}
        for key, real in n.items():
            stated = summary.get(key, "")
            if stated.isdecimal() and len(stated) < 19 and int(stated) != real:
                out.counted.setdefault(key, real)
    return out


def _entries(state: TableState, number: int) -> dict[str, int] | None:
    """Return totals from all entries of a snapshot whose manifests were read; None if it has too many entries."""
    known = _kept.setdefault(state, {})
    if number not in known:
        known[number] = _count(state, number)
    return known[number]


def _count(state: TableState, number: int) -> dict[str, int] | None:
    now = travel(state, snapshot=number)
    root = now.root()
    if root is None:
        return None
    stats = root.entries["manifest_stats"].to_pylist()
    counts = [(one or {}).get(f"{status}_files_count") or 0 for one in stats for status in ("added", "existing")]
    if sum(counts) + len(root) > _MOST_ENTRIES:
        return None
    change = diff(now.showing(None, now.schema, ref=None, travel=None), now).change
    return {key: getattr(change, name)[0] for key, name in _COUNTED.items()}


def _of_manifest(state: TableState, node: TreeNode) -> Recorded:
    found = [p for p in node.problems if p.code in _CODES and p.field]
    if node.location not in state.reader.seen:
        return Recorded("Recorded in the manifest list; not counted yet.")
    if any(p.severity == "error" for p in node.problems):
        return Recorded("Recorded in the manifest list; not counted, as the manifest cannot be read.")
    # These problems have the recorded number as the one found.
    return Recorded("Compared with the manifest's entries.", dict(_numbers(found, "expected")))


def _numbers(found: list[Problem], side: str) -> Iterator[tuple[str, int]]:
    """Yield the counted numbers of problems, by the name of the field."""
    for item in found:
        text = str(getattr(item, side) or "")
        if text.isdecimal():
            yield (item.field or "").rpartition(" ")[2], int(text)
