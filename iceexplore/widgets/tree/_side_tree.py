"""The tree of a table before or after a change (a commit, a repair), with marks for what was added or removed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyChunkedArray, AnyColumn, DynamicArray
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError
from iceexplore.graph import Diff, TableState, Tree, TreeNode, build_tree
from iceexplore.manifests import ContentType, whole
from iceexplore.metadata import in_order
from iceexplore.render import Mark
from iceexplore.widgets.core._ids import snapshot_of_node
from iceexplore.widgets.tree._forest import add_edges, sent

__all__ = ["SideTree"]

#: The number of children shown at first, and also the number that each "more" adds.
_CHILDREN = 30
#: The number of refs and snapshots shown together, and of refs among them.
_SNAPSHOTS, _REFS = 8, 4
#: A leaf manifest is unfolded at first only if it has at most this many entries, and if the tree then has at most this
#: many nodes.
_FEW_ENTRIES = 12
_PICTURE = 60
_MANIFESTS = ("data-manifest", "delete-manifest")
_MANIFEST_TYPES = (ContentType.DATA_MANIFEST, ContentType.DELETE_MANIFEST)
#: The value of ``content`` for manifest deletion vectors in a diff. An inline vector is listed with the location of its
#: leaf manifest.
_VECTOR = "manifest DV"
_FILES = ("data-file", "position-delete", "equality-delete", "deletion-vector")


@dataclass
class SideTree:
    """The tree of the table on one side of a change.

    Attributes
    ----------
    state
        The table on this side.
    other
        The table on the other side; None before the first change, when there is nothing to compare.
    diff
        The difference from before to after; None if the tables are not compared.
    side
        Whether this is the table before or after the change.
    """

    state: TableState
    other: TableState | None
    diff: Diff | None
    side: Literal["before", "after"]

    def __post_init__(self) -> None:
        self._tree: Tree = build_tree(self.state, depth="snapshots")
        self._children: dict[tuple[str, int], list[TreeNode]] = {}
        self._limits = {"metadata": _SNAPSHOTS}  # the number of children shown, if not the default

    def first(self) -> dict[str, Any]:
        """Return the tree unfolded to the manifests, and for small changed manifests to their files.

        Only these manifests are read.
        """
        shown = self.state.snapshot
        opened = ["metadata"]
        if shown is None:
            return self.grow(opened)
        opened += [f"snapshot:{shown.snapshot_id}", f"root:{shown.snapshot_id}"]
        grown = self.grow(opened)
        count = len(grown["nodes"])
        for child in self._shown(f"root:{shown.snapshot_id}", _CHILDREN)[:_CHILDREN]:
            entries = child.child_count
            few = entries is not None and entries <= _FEW_ENTRIES and "removed" not in child.marks
            # In a comparison, unfold only manifests with changes, so that these are visible at once.
            if child.kind in _MANIFESTS and few and (self.diff is None or child.location in self.diff.read):
                count += entries or 0
                if count > _PICTURE:
                    break
                opened.append(child.id)
        return self.grow(opened)

    def find(self, node_id: str) -> TreeNode | None:
        """Return a node, shown or not; None if this side has no such node."""
        try:
            return self._tree.node(node_id)
        except OptionError:
            return None

    def grow(self, expanded: Iterable[str]) -> dict[str, Any]:
        """Return ``nodes``, ``roots`` and ``expanded`` for `treeView`; ``more:x`` shows more children of ``x``.

        Raises
        ------
        IceexploreError
            A manifest to unfold cannot be read.
        """
        opened = []
        for node_id in dict.fromkeys(expanded):
            if node_id.startswith("more:"):
                of = node_id.removeprefix("more:")
                self._limits[of] = self._limits.get(of, _CHILDREN) + _CHILDREN
            else:
                opened.append(node_id)
        nodes: dict[str, dict[str, Any]] = {}
        queue = [self._tree.node("metadata")]
        found = list(queue)
        while queue:
            node = queue.pop(0)
            children: list[str] | None = None
            if node.id in opened and node.child_count != 0:
                limit = self._limits.get(node.id, _CHILDREN)
                all_shown = self._shown(node.id, limit)
                queue += all_shown[:limit]
                found += all_shown[:limit]
                children = [c.id for c in all_shown[:limit]]
                if len(all_shown) > limit:
                    children.append(f"more:{node.id}")
                    nodes[children[-1]] = _more(node, limit)
            nodes[node.id] = sent(node, children)
        for node, marks in zip(found, self._marks(found), strict=True):
            nodes[node.id]["marks"] = sorted(marks | (node.marks & {"problem"}))
        add_edges(nodes, found, self.state)
        return {"nodes": nodes, "roots": ["metadata"], "expanded": [i for i in opened if i in nodes]}

    def _shown(self, node_id: str, limit: int) -> list[TreeNode]:
        """Return a node's children, changed ones first, and one more than the limit if there are more."""
        at = (node_id, limit)
        if at not in self._children:
            if node_id == "metadata":
                self._children[at] = self._snapshots(limit)
            else:
                changed = [self._tree.node(i) for i in self._changed_rows(node_id, limit + 1)]
                known = {node.id for node in changed}
                rest = [n for n in self._tree.children(node_id, limit=limit + 1) if n.id not in known]
                self._children[at] = [*changed, *rest][: limit + 1]
        return self._children[at]

    def _changed_rows(self, node_id: str, most: int) -> list[str]:
        """Return the root's children to show first: added and removed ones, then leaves with such entries."""
        shown = self.state.snapshot
        if self.diff is None or shown is None or node_id != f"root:{shown.snapshot_id}":
            return []
        root = self.state.root()
        if root is None:
            return []
        kinds, places = whole(root.entries["content_type"]), whole(root.entries["location"])
        is_manifest = pc.is_in(kinds, value_set=pa.array([int(k) for k in _MANIFEST_TYPES], kinds.type))
        is_vector = pc.equal(kinds, pa.scalar(int(ContentType.MANIFEST_DV), kinds.type))
        files, manifests = self.diff.files_arrow, self.diff.manifests_arrow
        manifests = manifests.filter(pc.not_equal(manifests["change"], "carried over"))
        offsets = pc.struct_field(whole(root.entries["deletion_vector"]), "offset")
        about = pc.if_else(
            is_manifest,
            _among(places, manifests.filter(pc.not_equal(manifests["content"], _VECTOR))["location"]),
            pc.if_else(
                is_vector,
                _among(
                    _joined(root.entries["referenced_file"], root.entries["record_count"]),
                    _joined(manifests["referenced_file"], manifests["removed_entries"]),
                ),
                _among(_joined(places, offsets), _joined(files["location"], files["content_offset"])),
            ),
        )
        inside = pc.and_(is_manifest, _among(places, pa.chunked_array([list(self.diff.read)], pa.string())))
        first, second = (np.flatnonzero(np.asarray(pc.fill_null(mask, False))) for mask in (about, inside))
        rows = np.concatenate([first, np.setdiff1d(second, first)])[:most].tolist()
        kind_of = is_manifest.take(pa.array(rows, pa.int64())).to_pylist()
        names = ("manifest" if m else "file" for m in kind_of)
        return [f"{name}:{shown.snapshot_id}:{row}" for name, row in zip(names, rows, strict=True)]

    def _snapshots(self, limit: int) -> list[TreeNode]:
        metadata, current = self.state.metadata, self.state.snapshot
        refs = [n for n in self._tree.children("metadata", limit=len(metadata.refs)) if n.kind in ("branch", "tag")]
        newest = in_order(metadata.snapshots, by_number=True)[::-1]
        ids = dict.fromkeys([*([] if current is None else [current.snapshot_id]), *(s.snapshot_id for s in newest)])
        snapshots = [self._tree.node(f"snapshot:{i}") for i in list(ids)[: limit + 1]]
        return [*refs[:_REFS], *snapshots, *refs[_REFS:]][: limit + 1]

    # Marks ------------------------------------------------------------------------------------------------------------

    def _marks(self, nodes: list[TreeNode]) -> list[set[Mark]]:
        """Return each node's marks, which show the effect of the change; no marks before the first change."""
        if self.other is None:
            return [set() for _ in nodes]
        changed = self._changed(nodes)
        return [self._mark(node, change) for node, change in zip(nodes, changed, strict=True)]

    def _mark(self, node: TreeNode, change: str | None) -> set[Mark]:
        assert self.other is not None
        after = self.side == "after"
        if node.kind in (*_FILES, *_MANIFESTS, "manifest-dv"):
            if change == "added" and after:
                return {"added"}
            if change == "removed":
                return {"removed"}
            return {"removed", "carried"} if "removed" in node.marks else {"carried"}
        if node.kind == "snapshot":
            same = self.other.metadata.snapshot(int(node.id.partition(":")[2])) is not None
        elif node.kind in ("branch", "tag"):
            same = node.label in self.other.metadata.refs  # a moved ref is neither added nor removed
        elif node.kind == "metadata":
            same = not after or self.state.metadata_location == self.other.metadata_location
        else:
            snapshot = snapshot_of_node(node.id)
            same = snapshot is None or self.other.metadata.snapshot(snapshot) is not None
        return set() if same else {"added"} if after else {"removed"}

    def _changed(self, nodes: list[TreeNode]) -> list[str | None]:
        """Return for each node of a file, manifest or manifest DV whether it was added or removed; None if neither."""
        out: list[str | None] = [None] * len(nodes)
        if self.diff is None:
            return out
        files, manifests = self.diff.files_arrow, self.diff.manifests_arrow
        vectors = pc.equal(manifests["content"], _VECTOR)
        for kinds, table, column, more in (
            (_FILES, files, "location", "content_offset"),
            (_MANIFESTS, manifests.filter(pc.invert(vectors)), "location", None),
            (("manifest-dv",), manifests.filter(vectors), "referenced_file", "removed_entries"),
        ):
            at = [i for i, node in enumerate(nodes) if node.kind in kinds]
            keys = pa.array([_key(nodes[i], column, more) for i in at], pa.string())
            for change in ("removed", "added"):
                mine = table.filter(pc.equal(table["change"], change))
                there = mine[column] if more is None else _joined(mine[column], mine[more])
                for i, hit in zip(at, pc.is_in(keys, value_set=whole(there)).to_pylist(), strict=True):
                    if hit:
                        out[i] = change
        updated = whole(files.filter(pc.equal(files["content"], "column file"))["referenced_file"])
        if len(updated):  # an update of columns replaces a data file's entry
            at = [i for i, node in enumerate(nodes) if node.kind == "data-file"]
            names = pa.array([nodes[i].location for i in at], pa.string())
            for i, hit in zip(at, pc.is_in(names, value_set=updated).to_pylist(), strict=True):
                if hit and out[i] is None:
                    out[i] = "added" if self.side == "after" else "removed"
        return out


def _key(node: TreeNode, column: str, more: str | None) -> str:
    fields = node.fields
    if more is None:
        return str(node.location)
    if column == "referenced_file":
        return f"{fields.get('referenced_file')}\n{fields.get('record_count')}"
    offset = (fields.get("deletion_vector") or {}).get("offset", fields.get("offset"))
    return f"{node.location}\n{'' if offset is None else offset}"


def _among(keys: AnyColumn, changed: AnyChunkedArray) -> AnyArray:
    """Return which keys are among the changed ones."""
    found = pc.is_in(keys, value_set=whole(changed))
    return whole(found) if isinstance(found, pa.ChunkedArray) else found


def _joined(names: DynamicArray, numbers: DynamicArray) -> DynamicArray:
    text = pc.fill_null(pc.cast(numbers, pa.string()), "")
    return pc.binary_join_element_wise(names, text, "\n")


def _more(node: TreeNode, limit: int) -> dict[str, Any]:
    rest = None if node.child_count is None or node.kind == "metadata" else node.child_count - limit
    label = f"+{rest:,} more" if rest and rest > 0 else "more …"
    nothing: dict[str, Any] = {
        "lines": (),
        "badge": None,
        "location": None,
        "child_count": 0,
        "headline": "",
        "partition": "",
    }
    more = replace(node, id="more", kind="more", label=label, **nothing)
    return sent(more, None)
