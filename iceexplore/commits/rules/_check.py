"""The rule checker: reads a state anew and says which rules it breaks. It knows nothing of the writer."""

from __future__ import annotations

from collections.abc import Collection

from iceexplore.commits.rules._entries import RuleBreak, root_breaks, row_breaks
from iceexplore.commits.rules._parent import change_breaks
from iceexplore.commits.rules._registry import RULES, Rule, rule
from iceexplore.commits.rules._snapshot import leaf_breaks, root_file_breaks, tree_breaks
from iceexplore.commits.rules._statistics import count_breaks, cover_breaks, partition_breaks, summary_breaks
from iceexplore.commits.rules._view import LeafView, view_tree
from iceexplore.errors import FormatError, Problems
from iceexplore.graph import TableState
from iceexplore.manifests import Manifest, ManifestReader
from iceexplore.metadata import Snapshot

__all__ = ["check_rules", "checked_rules"]

_CHECKED = (
    "content-fields", "duplicate-file", "dv-in-range", "dv-struct", "leaf-data-content", "leaf-delete-content",
    "manifest-stats", "no-inline-data-dv", "one-dv", "one-root", "row-ids", "sequence-order", "size-with-location",
    "two-levels",
)  # fmt: skip
_CHECKED_OF_LISTS = ("summaries-cover",)
_CHECKED_OF_ROOTS = (
    "added-is-change", "affinity", "compaction-existing", "deleted-entries", "leaf-change-by-dv", "manifest-sequence",
    "one-manifest-dv", "orphan-dv", "partition-rebuilds", "stats-cover",
)  # fmt: skip


def checked_rules(state: TableState, snapshot: Snapshot | None = None) -> tuple[Rule, ...]:
    """The rules that `check_rules` looks at in a snapshot, sorted by name; only its root is read."""
    root = state.root(snapshot)
    if root is None:
        return ()
    v4 = root.dialect in ("v4-proposal", "v4-draft")
    return tuple(RULES[name] for name in sorted((*_CHECKED, *(_CHECKED_OF_ROOTS if v4 else _CHECKED_OF_LISTS))))


def check_rules(
    state: TableState, snapshot: Snapshot | None = None, *, relaxed: Collection[str] = ()
) -> list[RuleBreak]:
    """The rules that a snapshot breaks.

    Every manifest of the snapshot is read, and of its parent, where the table still has it: rules that compare the two
    are checked for V4 roots only. Below V4 those rules are checked that have a meaning there (files and DVs that are
    there twice, row ids, sequence numbers, counts, what leaves hold). Of the DVs of data files the cardinality is
    checked, their Puffin files are not read.

    Parameters
    ----------
    snapshot
        By default the state's.
    relaxed
        Names of rules that the layout bends on purpose: their breaks are left out.

    Returns
    -------
    list of RuleBreak
        Ordered by rule; of each manifest at most one break of each kind.

    Raises
    ------
    OptionError
        ``relaxed`` names a rule that there is not.
    IceexploreError
        A manifest or a manifest DV could not be read: then nothing can be said.
    """
    for name in relaxed:
        rule(name)
    wanted = snapshot or state.snapshot
    if wanted is None:
        return []
    metadata, problems = state.metadata, Problems()
    reader = ManifestReader(state.storage, metadata, problems)
    out: list[RuleBreak] = []
    root = reader.root(wanted)
    sequence = wanted.sequence_number

    def visit(view: LeafView, leaf: Manifest) -> None:
        out.extend(leaf_breaks(view, leaf, v4=tree_is_v4))
        out.extend(row_breaks(leaf.entries, where=leaf.location, sequence_number=sequence, old=view.old))
        out.extend(count_breaks(root, view, leaf))
        if tree_is_v4:
            out.extend(cover_breaks(root, view, leaf, metadata))
        else:
            out.extend(summary_breaks(leaf))
        if not view.old:
            out.extend(partition_breaks(leaf, metadata))

    tree_is_v4 = root.dialect in ("v4-proposal", "v4-draft")
    tree = view_tree(reader, wanted, visit)
    out += root_file_breaks(tree)
    if tree.v4:
        out += row_breaks(root.entries, where=root.location, sequence_number=sequence)
        out += root_breaks(root.entries, where=root.location, snapshot_id=wanted.snapshot_id)
        direct = reader.direct(root)
        if direct is not None:
            out += partition_breaks(direct, metadata)
        parent = metadata.snapshot(wanted.parent_snapshot_id) if wanted.parent_snapshot_id is not None else None
        if parent is not None or wanted.parent_snapshot_id is None:
            out += change_breaks(tree, None if parent is None else view_tree(reader, parent))
    out += tree_breaks(tree, metadata)
    for item in problems:
        # a whole file: single entries, and manifest DVs that make no sense, are what rules are about
        if item.severity == "error" and "#" not in item.where and item.code != "manifest-dv-invalid":
            raise FormatError(f"rules cannot be checked: {item.text}", location=item.where, code=item.code)
    seen = dict.fromkeys(b for b in out if b.rule not in relaxed)
    return sorted(seen, key=lambda b: (b.rule, b.where, b.text))
