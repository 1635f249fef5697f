"""Draw the deletes that apply to the shown data files of a plan, and the delete manifests that the plan skips."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.graph import human_bytes, live_manifests
from iceexplore.manifests import ContentType, Manifest, bool_array, whole
from iceexplore.planning.delete_index._delete_files import live_deletes
from iceexplore.planning.delete_index._unmatched import applied_of
from iceexplore.planning.model._tasks import MatchedDeletes
from iceexplore.planning.report._tables import deletes_table
from iceexplore.planning.report._tree_labels import amount, basename
from iceexplore.render import Mark, SceneEdge, SceneNode

if TYPE_CHECKING:
    from iceexplore.planning.scan._result import PlannedScan

__all__ = ["MOST_OF_A_FILE", "draw_deletes", "skipped_deletes"]

_KINDS = {"vector": "deletion-vector", "position": "position-delete", "equality": "equality-delete"}
#: Maximum number of edges (lines from deletes to data files) in a picture; more would clutter it. The other edges are
#: left out, but the node of a delete that applies to several data files shows their number.
_MOST_EDGES = 80
#: For each data file, at most this many position delete files, and at most this many equality delete files, are drawn.
MOST_OF_A_FILE = 200
_FOLDED: frozenset[Mark] = frozenset({"folded"})
_SKIPPED: frozenset[Mark] = frozenset({"pruned"})


def draw_deletes(plan: PlannedScan, shown: Mapping[int, str], nodes: list[SceneNode], room: int) -> list[SceneEdge]:
    """Append nodes for deletes and delete manifests to ``nodes``, and return the edges from deletes to data files.

    Parameters
    ----------
    plan
        A plan of one snapshot.
    shown
        The data files that have a node. The key is the row of the file in `tasks_table`; the value is its node id.
    nodes
        The nodes of the drawing, to which those for deletes are appended.
    room
        Maximum number of deletes that get a node each. One more node shows how many other deletes apply.
    """
    root = plan.roots[0].root
    matched = plan.files.matched
    manifests = live_manifests(root, {int(ContentType.DELETE_MANIFEST)})
    read = list(plan.read_delete_rows)
    parent, level = "root:0", 2
    if read:
        parent, level = "deletes", 3
        nodes.append(_manifests(root, read, len(matched.deletes)))
    pairs: dict[int, list[str]] = {}
    for task, node in shown.items():
        for delete in _deletes_of(matched, task):
            pairs.setdefault(delete, []).append(node)
    picked = sorted(pairs)[:room]
    edges: list[SceneEdge] = []
    for delete, record in zip(picked, _records(plan, picked), strict=True):
        name = f"delete:{delete}"
        label, path = basename(record["file_path"]), record["file_path"]
        nodes.append(SceneNode(name, record["node"], label, record["lines"], None, frozenset(), parent, level, path))
        edges += [SceneEdge(name, node, "applies-to") for node in pairs[delete]]
    applied = len(matched.deletes)
    rest = applied - len(picked)
    if rest:
        words = "more deletes apply" if picked else "deletes apply"
        nodes.append(SceneNode("deletes:more", "more", f"{rest:,} {words}", (), None, _FOLDED, parent, level))
    idle = _idle(plan) if len(plan) else 0
    if idle:
        verb = "applies" if idle == 1 else "apply"
        lines = (f"{verb} to no data file that is read", "see .unmatched_deletes for the reasons")
        label = amount(idle, "other delete" if applied else "delete")
        marks: frozenset[Mark] = _SKIPPED | _FOLDED if idle > 1 else _SKIPPED
        nodes.append(SceneNode("deletes:idle", "more", label, lines, None, marks, parent, level))
    for number, (reason, rows) in enumerate(skipped_deletes(plan, manifests, set(read)).items()):
        place = root.entries["location"][rows[0]].as_py()
        label = basename(place) if len(rows) == 1 else f"{len(rows):,} delete manifests skipped"
        marks = _SKIPPED | _FOLDED if len(rows) > 1 else _SKIPPED
        name = f"deletes:skipped:{number}"
        nodes.append(SceneNode(name, "delete-manifest", label, (reason,), None, marks, "root:0", 2, place))
    return edges[:_MOST_EDGES]


def _manifests(root: Manifest, read: list[int], applied: int) -> SceneNode:
    """Return one tree node that represents all delete manifests that were read.

    Parameters
    ----------
    root
        The manifest list or V4 root manifest.
    read
        The delete manifests that were read, as row numbers in ``root``.
    applied
        The number of deletes that apply to files of the plan.
    """
    place = root.entries["location"][read[0]].as_py()
    label = basename(place) if len(read) == 1 else amount(len(read), "delete manifest")
    line = "1 delete applies" if applied == 1 else f"{applied:,} deletes apply"
    marks = _FOLDED if len(read) > 1 else frozenset()
    return SceneNode("deletes", "delete-manifest", label, (line,), None, marks, "root:0", 2, place)


def _idle(plan: PlannedScan) -> int:
    """Count the deletes that apply to no file of the plan, although their manifests were read."""
    found = live_deletes(plan.state, manifests=plan.read_delete_rows)
    return len(found) - int(applied_of(found, plan.files.matched).sum())


def skipped_deletes(plan: PlannedScan, manifests: list[int], read: set[int]) -> dict[str, list[int]]:
    """Return the delete manifests that the plan does not read, by the reason why they are skipped.

    All manifests are given as row numbers in the root: the manifest list or, in V4, the root manifest.

    Parameters
    ----------
    plan
        A plan of one snapshot.
    manifests
        The delete manifests of the snapshot, without those that are marked as deleted in a V4 root manifest.
    read
        The delete manifests that the plan reads.

    Returns
    -------
    dict
        The key is a reason, such as ``it has no live deletes``. The value is a list of the delete manifests that are
        skipped for this reason.
    """
    root = plan.roots[0].root
    rows = [row for row in manifests if row not in read]
    if not rows:
        return {}
    if not len(plan):
        return {"no data file is read": rows}
    at = pa.array(rows, pa.int64())
    owned = bool_array(whole(root.entries["referenced_file"]).take(at).is_valid())
    stats = whole(root.entries["manifest_stats"]).take(at)
    held = pc.add(pc.struct_field(stats, "added_files_count"), pc.struct_field(stats, "existing_files_count"))
    empty = bool_array(pc.equal(held, 0))
    wanted = set(plan.delete_rows)
    out: dict[str, list[int]] = {}
    for i, row in enumerate(rows):
        if row in wanted:
            reason = "its deletes are older than every data file that is read, or are for other partitions"
        elif empty[i]:
            reason = "it has no live deletes"
        elif owned[i]:
            reason = "it belongs to one data manifest (V4), and no file of that manifest is read"
        else:
            reason = "its partitions do not match the filter"
        out.setdefault(reason, []).append(row)
    return out


def _deletes_of(matched: MatchedDeletes, task: int) -> list[int]:
    """Return the deletes that apply to one data file, as row numbers in ``matched.deletes``.

    The result has the file's deletion vector, then its position delete files, then its equality delete files. To keep
    the drawing small, it has at most `MOST_OF_A_FILE` position delete files, and at most `MOST_OF_A_FILE` equality
    delete files.

    Parameters
    ----------
    task
        The row number of the data file in ``matched`` (and in `tasks_table`).
    """
    vector = matched.vector[task].as_py()
    found = [] if vector is None else [vector]
    for lists in (matched.positions, matched.equality):
        found += build.to_pylist(lists[task].values.slice(0, MOST_OF_A_FILE))
    return found


def _records(plan: PlannedScan, picked: list[int]) -> list[dict[str, Any]]:
    """Return, for some deletes, columns of `deletes_table` and the kind and texts of their nodes.

    Parameters
    ----------
    picked
        The deletes, as rows of `deletes_table`.

    Returns
    -------
    list of dict
        One dictionary per delete: the columns ``file_path``, ``kind``, ``tasks``, ``rows`` and ``bytes`` of
        `deletes_table`; ``node``, the kind of the node; and ``lines``, the texts below the label of the node.
    """
    if not picked:
        return []
    records: list[dict[str, Any]] = (
        deletes_table(plan)
        .select(["file_path", "kind", "tasks", "rows", "bytes"])
        .take(pa.array(picked, pa.int64()))
        .to_pylist()
    )
    for record in records:
        rows = (
            "deletes by equality" if record["kind"] == "equality" else f"{amount(record['rows'] or 0, 'row')} deleted"
        )
        lines = [f"{rows} · {human_bytes(record['bytes'] or 0)}"]
        if record["tasks"] > 1:
            lines.append(f"applies to {record['tasks']:,} files")
        record |= {"node": _KINDS[record["kind"]], "lines": tuple(lines)}
    return records
