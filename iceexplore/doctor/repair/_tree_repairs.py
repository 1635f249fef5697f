"""Repairs of V4 trees whose entries contradict the format, each other, or the parent's tree.

Each repair requests that the affected snapshots be written again (`iceexplore.doctor.repair._trees`), which mends the
faults.
"""

from __future__ import annotations

from iceexplore.doctor.model._finding import Finding
from iceexplore.doctor.repair._document_repairs import files_of, step_of
from iceexplore.doctor.repair._draft import Draft
from iceexplore.doctor.repair._step import Step
from iceexplore.errors import IceexploreError
from iceexplore.manifests import read_manifest_dv
from iceexplore.metadata import Snapshot
from iceexplore.storage import canonical

__all__ = ["recompute_roots", "record_changes", "restore_values", "rewrite_manifest_dvs"]

_OTHERS = " Older snapshots with the same fault are mended, too."


def restore_values(draft: Draft, found: list[Finding]) -> Step:
    """Restore missing and damaged values of entries.

    They are taken from the parent snapshot's entry for the same file or, if the parent has none, from the file.
    """
    _write_again(draft, found)
    text = (
        "Copies missing or damaged values from the entries for the same files in the parent snapshot. If there is no "
        "such entry, reads the values from the file itself. Removes fields that the format does not allow."
    )
    guessed = any((one.field or "").startswith(("134 ", "0 ")) for one in found)
    vectors = any((one.field or "").startswith("14") and one.found == "POSITION_DELETE" for one in found)
    if guessed:
        text += (
            " A content type or status is guessed from the other fields of the entry if neither the parent nor the "
            "file provides it."
        )
    if vectors:
        text += (
            " Deletion vectors are removed if neither the parent nor their Puffin files show where they are; the rows "
            "that they deleted come back."
        )
    return step_of(
        "Restore the values of entries", text + _OTHERS, found, certain=not (guessed or vectors),
        rows_lost=None if guessed else 0, rows_back=None if guessed or vectors else 0,
    )  # fmt: skip


def rewrite_manifest_dvs(draft: Draft, found: list[Finding]) -> Step:
    """Merge the manifest DVs of each leaf manifest into one.

    A manifest DV that cannot be read is left out, and the entries that it removed are live again. They stay removed
    only if a readable manifest DV of the same leaf or a manifest DV of the parent snapshot removes them, too.
    """
    _write_again(draft, found)
    lost = any(_is_lost(draft, one) for one in found)
    text = (
        "If several manifest deletion vectors apply to the same manifest, replaces them with one that contains all "
        "their positions."
    )
    if lost:
        text += (
            " A manifest deletion vector cannot be read. It is unknown which files its commit removed with this "
            "vector, so all of them become live again: run the delete again."
        )
    return step_of(
        "Rewrite manifest deletion vectors", text + _OTHERS, found, certain=not lost, rows_back=None if lost else 0
    )


def _is_lost(draft: Draft, finding: Finding) -> bool:
    """Return whether a finding is about a manifest DV that cannot be read."""
    for snapshot in _snapshots_of(draft, finding):
        root = draft.state.reader.root(snapshot)
        for file, ordinals in finding.hits.by_file().items():
            if ordinals is None or canonical(file) != canonical(root.location):
                continue
            for row in ordinals[ordinals < len(root)].tolist():
                try:
                    read_manifest_dv(draft.state.storage, root, row)
                except IceexploreError:
                    return True
    return False


def recompute_roots(draft: Draft, found: list[Finding]) -> Step:
    """Recompute the entries of root manifests for their leaves.

    The entry for a leaf has the leaf's counts, statistics and sequence numbers. If the leaf lists deletes, its entry
    may also refer to the leaf that lists the data files (an affiliation).
    """
    # If ``found`` is POSITION_DELETE, the fault is in the entry of a deletion vector that does not name its data file.
    # This name is not in the entry for a leaf, so recomputing these entries does not restore it.
    if any(one.found == "POSITION_DELETE" for one in found):
        return restore_values(draft, found)
    _write_again(draft, found, leaves=False)
    text = (
        "Reads the manifests, and recomputes what the root manifest records about them: their counts and statistics, "
        "and the links from delete manifests to data manifests. Also recomputes the totals in the snapshot's summary."
    )
    return step_of("Recompute the root manifest", text + _OTHERS, found)


def record_changes(draft: Draft, found: list[Finding]) -> Step:
    """Correct what a root manifest records about the changes of its commit: the added and the removed files.

    These files are found by comparing the live files of the snapshot with those of its parent snapshot.
    """
    _write_again(draft, found, leaves=False)
    text = (
        "Compares the live files of the snapshot with those of its parent, and rewrites the root manifest to record "
        "exactly these changes. Scans return the same rows as before, and incremental reads now see every change."
    )
    return step_of("Record the commit's changes", text + _OTHERS, found)


def _write_again(draft: Draft, found: list[Finding], *, leaves: bool = True) -> None:
    """Add to the draft which trees must be written again to mend the findings.

    These are the trees of the snapshots that the findings affect (see `_snapshots_of`).

    Parameters
    ----------
    leaves
        Whether the leaf manifests with findings are written again, too. The tree of every snapshot that lists one of
        these leaves is then also written again.
    """
    roots = {canonical(s.root_location or "") for s in draft.state.metadata.snapshots}
    for one in found:
        draft.rewritten_roots |= {s.snapshot_id for s in _snapshots_of(draft, one)}
        for name in files_of([one]) - roots if leaves else ():
            draft.edit_leaf(name)


def _snapshots_of(draft: Draft, finding: Finding) -> list[Snapshot]:
    """Return the snapshots that a finding affects: those that it names, and the one in whose root it was found."""
    where = canonical(finding.location)
    return [
        s
        for s in draft.state.metadata.snapshots
        if s.snapshot_id in finding.snapshots or (s.root_location and canonical(s.root_location) == where)
    ]
