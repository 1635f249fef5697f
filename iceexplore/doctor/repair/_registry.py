"""The registry of repairs in the order in which they are applied, each with a pattern for the findings it mends."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from iceexplore.doctor.model._finding import Finding
from iceexplore.doctor.repair import _document_repairs as document
from iceexplore.doctor.repair import _entry_repairs as entries
from iceexplore.doctor.repair import _lost_manifest_repairs as manifests
from iceexplore.doctor.repair import _tree_repairs as trees
from iceexplore.doctor.repair._delete_paths import point_deletes_at_files
from iceexplore.doctor.repair._draft import Draft
from iceexplore.doctor.repair._step import Step
from iceexplore.storage import canonical

__all__ = ["COPIED", "REPAIRS", "Repair", "UNREPAIRABLE", "is_unreadable_metadata", "key_of"]


#: A function that adds edits to a draft so that findings are repaired, and returns the steps that describe these edits.
Planner = Callable[[Draft, list[Finding]], Step | Sequence[Step]]


@dataclass(frozen=True)
class Repair:
    """A way to repair some kinds of findings.

    Attributes
    ----------
    pattern
        Matches the keys (`key_of`) of the findings that it mends.
    plan
        A function that adds the repair's edits to a draft and returns the step or steps that describe them. If it can
        do nothing, it returns no step and puts the reasons into `Draft.left`.
    since
        The first format version whose tables it can mend.
    recovers, waits
        ``recovers``: whether the repair lists files of lost manifests again. ``waits``: whether it must come after such
        repairs, because it compares files with all live files.
    only
        ``list`` for a repair of manifest lists and their manifests, ``tree`` for a repair of V4 trees; None for both.
    """

    pattern: re.Pattern[str]
    plan: Planner
    since: int = 1
    only: Literal["list", "tree"] | None = None
    recovers: bool = False
    waits: bool = False

    def mends(self, key: str, version: int, *, in_tree: bool) -> bool:
        """Return whether the repair mends findings with this key (`key_of`) in a table of this format version.

        ``in_tree`` is true for findings about V4 trees.
        """
        fits = self.only is None or (self.only == "tree") == in_tree
        return fits and self.since <= version and self.pattern.fullmatch(key) is not None


def key_of(finding: Finding, lists: Collection[str], vectors: Collection[str] = ()) -> str:
    """Return the key of a finding: a text that is compared with `Repair.pattern` to choose the finding's repair.

    An example is ``count-mismatch entry record_count``. The three parts are the finding's code, a word for the kind of
    place that has the fault, and the finding's field, which may be empty. The second part is one of these words:

    - ``file``: a whole file, for example a manifest;
    - ``entry``, ``snapshot``, ``ref`` and others: a part of a file; the word is the one after ``#`` in `Finding.where`;
    - ``list``, ``row``, ``vector``: see the parameters;
    - ``hint``: the version hint;
    - ``metadata``: the current metadata file cannot be read, so the table was opened with an older one;
    - ``old-metadata``: a metadata file that the table does not need cannot be read.

    Parameters
    ----------
    lists
        The canonical locations of the table's manifest lists and root manifests. A finding about such a file as a
        whole has the word ``list``, and a finding about an entry in it has ``row``.
    vectors
        The places of manifest DVs in root manifests, as ``<location of the root manifest>#entry <number>``. A finding
        at such a place has the word ``vector`` instead of ``row``.
    """
    kind = finding.where.rpartition("#")[2].split(" ")[0] if "#" in finding.where else "file"
    if finding.location.endswith("version-hint.text"):
        kind = "hint"
    elif is_unreadable_metadata(finding):
        # If the current metadata file cannot be read, the table was opened with an older file; the severity of this
        # finding is worse than ``untidy``. If another metadata file cannot be read, the severity is ``untidy``.
        kind = "old-metadata" if finding.severity == "untidy" else "metadata"
    elif canonical(finding.location) in lists:
        kind = {"file": "list", "entry": "vector" if finding.where in vectors else "row"}.get(kind, kind)
    return f"{finding.code} {kind} {finding.field or ''}"


def is_unreadable_metadata(finding: Finding) -> bool:
    """Return whether a finding is about a metadata file that cannot be read."""
    return finding.code in ("file-corrupt", "file-truncated") and finding.location.endswith(
        (".metadata.json", ".metadata.json.gz")
    )


def _repair(
    pattern: str,
    plan: Planner,
    since: int = 1,
    only: Literal["list", "tree"] | None = None,
    *,
    recovers: bool = False,
    waits: bool = False,
) -> Repair:
    return Repair(re.compile(pattern), plan, since, only, recovers, waits)


def _in_tree(pattern: str, plan: Planner) -> Repair:
    return _repair(pattern, plan, 4, "tree")


def _in_list(pattern: str, plan: Planner, *, recovers: bool = False) -> Repair:
    return _repair(pattern, plan, 1, "list", recovers=recovers)


#: All repairs. A finding is mended by the first repair that matches it.
REPAIRS: tuple[Repair, ...] = (
    # repairs of the metadata file
    _repair(r"metadata-invalid ref .*|metadata-invalid file current-snapshot-id", document.drop_refs),
    _repair(r"metadata-invalid snapshot snapshot-id", document.drop_duplicate_snapshots),
    _repair(r"metadata-invalid \w+ (last-)?sequence-number", document.raise_last_sequence_number),
    _repair(r"metadata-invalid \w+ next-row-id", document.raise_next_row_id),
    _repair(r"metadata-invalid \w+ (snapshot|metadata)-log", document.sort_snapshot_log),
    _repair(r"metadata-incomplete snapshot parent-snapshot-id", document.forget_parents),
    _repair(r"metadata-invalid snapshot schema-id", document.forget_schema_ids),
    _repair(r"metadata-times .*", document.raise_last_updated),
    _repair(r"statistics-(missing|untrue|unused) .*", document.drop_statistics),
    _repair(r"(hint-invalid|hint-stale|hint-missing) .*|\S+ hint .*", document.write_hint),
    _repair(r"metadata-compression .*", document.write_document),
    _repair(r"file-(corrupt|truncated) metadata .*", document.restore_metadata),
    _repair(r"file-(corrupt|truncated) old-metadata .*", document.leave_out_metadata),
    _repair(r"table-moved .*|table-uuid-differs .*", document.copy_table),
    _repair(r"file-corrupt snapshot root-manifest", document.keep_root_manifests, 4),
    # repairs of manifest lists, root manifests and whole manifests
    _repair(r"file-(missing|truncated|corrupt) list .*", entries.restore_snapshot),
    _in_list(r"file-missing file .*", manifests.recover_lost_manifests, recovers=True),
    _in_tree(r"file-missing file .*", entries.drop_lost_manifests),
    _in_list(r"count-mismatch file 50\d .*|totals-differ .*|summary-(missing|untrue) .*", entries.rewrite_lists),
    _in_list(r"bounds-untrue row .*|sequence-number (file|row) .*|avro-nullability list .*", entries.rewrite_lists),
    _in_list(r"root-other-snapshot list .*", entries.rewrite_lists),
    _repair(r"(avro-no-field-ids|avro-nullability) .*", entries.rewrite_manifests),
    _repair(r"(header-version-missing|header-incomplete) .*", entries.rewrite_manifests),
    _repair(r"file-corrupt file 517 content", entries.set_contents),
    _in_tree(r"file-(corrupt|truncated) file .*", entries.drop_unreadable_manifests),
    _in_tree(r"manifest-salvaged .*", entries.rewrite_manifests),
    _in_list(r"file-(corrupt|truncated) file .*|manifest-salvaged .*", manifests.complete_manifests, recovers=True),
    _repair(r"value-undecodable (entry|row) 12[58] .*", entries.rewrite_manifests),
    # repairs of contradictions in V4 trees
    _in_tree(r"\S+ vector .*|manifest-dv-invalid .*", trees.rewrite_manifest_dvs),
    _in_tree(r"file-corrupt (row|entry) (0 status|134 content_type)", trees.restore_values),
    _in_tree(r"entry-invalid (row|file) 143 .*|entry-invalid row 521 .*", trees.recompute_roots),
    _in_tree(r"entry-invalid (row|entry) .*|partition-unknown .*", trees.restore_values),
    _in_tree(r"changes-untrue .*", trees.record_changes),
    _in_tree(r"count-mismatch (file|list) .*|count-mismatch row 5\d\d .*", trees.recompute_roots),
    _in_tree(r"totals-differ .*|summary-(missing|untrue) .*|sequence-number .*", trees.recompute_roots),
    _in_tree(r"root-other-snapshot .*|value-undecodable .*", trees.recompute_roots),
    # repairs of manifest entries
    _repair(r"file-missing (entry|row) .*", entries.drop_missing_files),
    _repair(r"file-twice .*", entries.drop_duplicate_files),
    _repair(r"dv-twice .*", entries.drop_surplus_vectors),
    _repair(r"file-(truncated|corrupt) (entry|row) .*", entries.drop_entries),
    _repair(r"delete-dangling (entry|row) (143 .*|3 .*)", entries.drop_dangling, waits=True),
    _repair(r"count-mismatch (entry|row) (record_count|file_size_in_bytes)", entries.set_counts),
    _repair(
        r"(bounds-untrue|metrics-missing) (entry|row) .*|count-mismatch (entry|row) 1\d\d .*", entries.recompute_metrics
    ),
    _repair(r"delete-path (entry|row) (143 )?(referenced_data_file|file_path)", point_deletes_at_files, waits=True),
    _repair(r"entry-invalid entry 14[45] .*", entries.restore_vector_places),
    _repair(r"split-offsets-invalid (entry|row) .*", entries.drop_split_offsets),
    _repair(r"row-ids-beyond .*", entries.raise_above_row_ids),
    _repair(r"row-ids-twice (entry|row) .*", entries.forget_row_ids),
    _repair(r"sequence-number entry .*", entries.fill_sequence_numbers),
)  # fmt: skip

#: Codes of faults in the table's folder: the simulated table still has them, a saved copy does not.
COPIED = frozenset(
    {"hint-invalid", "hint-stale", "hint-missing", "table-moved", "table-uuid-differs", "metadata-newer"}
)

#: Texts for findings that no repair mends, by problem code: the reason, or what the user can do instead.
UNREPAIRABLE: dict[str, str] = {
    "metadata-large": "Expire snapshots, and remove schemas that no snapshot uses.",
    "snapshot-lost": (
        "Decide which commit's changes to keep: those of the lost commit, or those of the commit that overwrote it. "
        "To restore the lost commit's changes, add its files again."
    ),
    "outside-roots": "Open the table with allow=[...] to permit reads outside its folder. Then check it again.",
    "metadata-invalid": "The correct value cannot be derived from other values in the table.",
    "metadata-incomplete": "The missing value cannot be derived from other values in the table.",
    "delete-no-effect": (
        "Only the writer of the delete files knows which rows they were meant to delete. Delete these rows again, with "
        "the partition spec of their data files."
    ),
    "deletes-dropped": "No snapshot contains these deletes any more; delete the rows again.",
    "delete-path": "Rewrite the delete files with the new paths: CALL <catalog>.system.rewrite_table_path(…).",
    "delete-position": "The deleted rows are unknown; run the delete again.",
    "delete-scope": "The data file of the deletion vector is unknown; run the delete again.",
    "equality-ids-invalid": "The equality columns of the delete files are unknown; run the delete again.",
    "partition-untrue": "Rewrite the data file into the correct partition.",
    "data-no-field-ids": "Set schema.name-mapping.default, or rewrite the data files.",
    "row-ids-reassigned": "No live file has the old row ids any more.",
    "field-id-reserved": "Field ids are stored in every data file; write the whole table again.",
    "key-metadata-plain": "Remove a key only after the file that it encrypts has been decrypted.",
    "manifests-fragmented": "Merge the manifests: CALL <catalog>.system.rewrite_manifests('<table>').",
    "spec-source-dropped": (
        "Old files still use this partition spec, so it is kept. Most readers tolerate dropped source columns."
    ),
}
