"""The rule checker: it reads a snapshot, independently of the code that wrote it, and returns violations of rules."""

from __future__ import annotations

from collections.abc import Collection

from iceexplore.commits.rules._column_files import column_file_breaks
from iceexplore.commits.rules._draft import content_breaks, draft_breaks
from iceexplore.commits.rules._entries import RuleBreak, root_breaks, row_breaks
from iceexplore.commits.rules._geo_bounds import geo_breaks
from iceexplore.commits.rules._parent import change_breaks
from iceexplore.commits.rules._snapshot import leaf_breaks, root_file_breaks, tree_breaks
from iceexplore.commits.rules._statistics import count_breaks, cover_breaks, partition_breaks, summary_breaks
from iceexplore.commits.rules._view import LeafView, view_tree
from iceexplore.errors import RULES, FormatError, Problems, Rule, rule
from iceexplore.graph import TableState
from iceexplore.manifests import Manifest, ManifestReader
from iceexplore.metadata import Snapshot

__all__ = ["check_rules", "checked_rules"]


def checked_rules(state: TableState, snapshot: Snapshot | None = None) -> tuple[Rule, ...]:
    """Return the rules that `check_rules` checks in a snapshot, sorted by id; an empty tuple if there is no snapshot.

    Only the snapshot's root is read, because the rules depend on its form: a manifest list, a root manifest of the V4
    proposal, or one of the V4 draft. For the V4 draft, each rule quotes the draft if possible.

    Parameters
    ----------
    snapshot
        By default the state's snapshot.
    """
    root = state.root(snapshot)
    if root is None:
        return ()
    kind = "root manifest" if root.dialect.has_root_manifest else "manifest list"
    by_draft = root.dialect.is_draft
    return tuple(
        r.as_in_draft() if by_draft else r
        for r in RULES.values()
        if r.is_checked and r.only in (None, kind) and r.is_followed(by_draft=by_draft)
    )


def check_rules(
    state: TableState, snapshot: Snapshot | None = None, *, relaxed: Collection[str] = ()
) -> list[RuleBreak]:
    """Return a snapshot's violations of rules.

    Reads every manifest of the snapshot. If the snapshot has a V4 root and the table still has its parent, every
    manifest of the parent is also read, because some rules compare the two snapshots. For a snapshot with a manifest
    list, only the rules that also apply to manifest lists are checked (duplicate files and DVs, row ids, sequence
    numbers, counts, partition summaries, content of leaves). The Puffin files with the DVs of data files are not read:
    the number of rows that a DV deletes is taken from its entry.

    Parameters
    ----------
    snapshot
        By default the state's snapshot.
    relaxed
        Ids of rules that the table breaks on purpose (see `LayoutOptions.relaxed`); their violations are left out.

    Returns
    -------
    list of RuleBreak
        Sorted by rule; at most one violation of each kind per manifest.

    Raises
    ------
    OptionError
        ``relaxed`` names an unknown rule.
    IceexploreError
        A manifest or a manifest DV cannot be read, so no rule can be checked.
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
        out.extend(leaf_breaks(view, leaf))
        out.extend(row_breaks(leaf.entries, where=leaf.location, sequence_number=sequence, dialect=leaf.dialect))
        out.extend(count_breaks(root, view, leaf))
        out.extend(content_breaks(leaf))
        out.extend(column_file_breaks(leaf, metadata))
        if tree_is_v4:
            out.extend(cover_breaks(root, view, leaf, metadata))
            out.extend(geo_breaks(leaf, metadata))
        else:
            out.extend(summary_breaks(leaf))
        if not view.old:
            out.extend(partition_breaks(leaf, metadata))

    tree_is_v4 = root.dialect.has_root_manifest
    tree = view_tree(reader, wanted, visit)
    out += root_file_breaks(tree)
    if tree.v4:
        out += row_breaks(root.entries, where=root.location, sequence_number=sequence, dialect=root.dialect)
        out += root_breaks(root.entries, where=root.location, snapshot_id=wanted.snapshot_id)
        out += column_file_breaks(root, metadata)
        out += geo_breaks(root, metadata)
        direct = reader.direct(root)
        if direct is not None:
            out += partition_breaks(direct, metadata)
        parent = metadata.snapshot(wanted.parent_snapshot_id) if wanted.parent_snapshot_id is not None else None
        if root.dialect.deletion_vectors_on_entries:
            out += draft_breaks(reader, tree, parent)
        if parent is not None or wanted.parent_snapshot_id is None:
            out += change_breaks(tree, None if parent is None else view_tree(reader, parent))
    out += tree_breaks(tree, metadata)
    for item in problems:
        # Raise only for faults that make a whole file unreadable. Faults of single entries and of manifest DVs are
        # reported as violations of rules instead.
        if item.severity == "error" and "#" not in item.where and item.code != "manifest-dv-invalid":
            raise FormatError(f"rules cannot be checked: {item.text}", location=item.where, code=item.code)
    seen = dict.fromkeys(
        b for b in out if b.rule not in relaxed and RULES[b.rule].is_followed(by_draft=root.dialect.is_draft)
    )
    return sorted(seen, key=lambda b: (b.rule, b.where, b.text))
