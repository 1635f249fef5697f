"""The registry of repairs: which findings each one mends, in the order in which they are applied."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from iceexplore.doctor.model._finding import Finding
from iceexplore.doctor.repair import _document_repairs as document
from iceexplore.doctor.repair import _entry_repairs as entries
from iceexplore.doctor.repair import _lost_manifest_repairs as manifests
from iceexplore.doctor.repair._delete_paths import point_deletes_at_files
from iceexplore.doctor.repair._draft import Draft
from iceexplore.doctor.repair._step import Step
from iceexplore.storage import canonical

__all__ = ["COPIED", "REPAIRS", "Repair", "UNREPAIRABLE", "is_unreadable_metadata", "key_of"]


#: Plans a repair.
Planner = Callable[[Draft, list[Finding]], Step | Sequence[Step]]


@dataclass(frozen=True)
class Repair:
    """One repair.

    Attributes
    ----------
    pattern
        Matches the keys (`key_of`) of the findings that it mends.
    plan
        Adds its edits to a draft and returns the step or steps that describe them; none if it can do nothing, with the
        reasons in `Draft.left`.
    since
        The first format version whose tables it can mend.
    recovers, waits
        Whether it lists files of lost manifests again; and whether it waits for that, because it compares files with
        all live ones.
    """

    pattern: re.Pattern[str]
    plan: Planner
    since: int = 1
    recovers: bool = False
    waits: bool = False


def key_of(finding: Finding, lists: Collection[str]) -> str:
    """Return what repairs are chosen by: the code, the kind of place (file, list, entry, row, ref …) and the field.

    A metadata file that cannot be read is of the kind ``metadata``, or ``old-metadata`` if the table does not need it.

    Parameters
    ----------
    lists
        The canonical locations of the table's manifest lists: their entries are called rows.
    """
    kind = finding.where.rpartition("#")[2].split(" ")[0] if "#" in finding.where else "file"
    if finding.location.endswith("version-hint.text"):
        kind = "hint"
    elif is_unreadable_metadata(finding):  # if it is worse than untidy, an older one was opened in its place
        kind = "old-metadata" if finding.severity == "untidy" else "metadata"
    elif canonical(finding.location) in lists:
        kind = {"file": "list", "entry": "row"}.get(kind, kind)
    return f"{finding.code} {kind} {finding.field or ''}"


def is_unreadable_metadata(finding: Finding) -> bool:
    """Return whether a finding is a metadata file that cannot be read."""
    return finding.code in ("file-corrupt", "file-truncated") and finding.location.endswith(
        (".metadata.json", ".metadata.json.gz")
    )


def _repair(pattern: str, plan: Planner, since: int = 1, *, recovers: bool = False, waits: bool = False) -> Repair:
    return Repair(re.compile(pattern), plan, since, recovers, waits)


#: Every repair; the first whose pattern matches a finding is taken.
REPAIRS: tuple[Repair, ...] = (
    # the metadata file
    _repair(r"metadata-invalid ref .*|metadata-invalid file current-snapshot-id", document.drop_refs),
    _repair(r"metadata-invalid snapshot snapshot-id", document.drop_duplicate_snapshots),
    _repair(r"metadata-invalid \w+ (last-)?sequence-number", document.raise_last_sequence_number),
    _repair(r"metadata-invalid \w+ next-row-id|row-ids-beyond .*", document.raise_next_row_id),
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
    # manifest lists and manifests
    _repair(r"file-(missing|truncated|corrupt) list .*", entries.restore_snapshot),
    _repair(r"file-missing file .*", manifests.recover_lost_manifests, recovers=True),
    _repair(r"count-mismatch file 50\d .*|totals-differ .*|summary-(missing|untrue) .*", entries.rewrite_lists),
    _repair(r"bounds-untrue row .*|sequence-number (file|row) .*|avro-nullability list .*", entries.rewrite_lists),
    _repair(r"root-other-snapshot list .*", entries.rewrite_lists),
    _repair(r"(avro-no-field-ids|avro-nullability) .*", entries.rewrite_manifests),
    _repair(r"(header-version-missing|header-incomplete) .*", entries.rewrite_manifests),
    _repair(r"file-corrupt file 517 content", entries.set_contents),
    _repair(r"file-(corrupt|truncated) file .*|manifest-salvaged .*", manifests.complete_manifests, recovers=True),
    _repair(r"value-undecodable entry 12[58] .*", entries.rewrite_manifests),
    # entries
    _repair(r"file-missing entry .*", entries.drop_missing_files),
    _repair(r"file-twice .*", entries.drop_duplicate_files),
    _repair(r"dv-twice .*", entries.drop_surplus_vectors),
    _repair(r"file-(truncated|corrupt) entry .*", entries.drop_entries),
    _repair(r"delete-dangling entry (143 .*|3 .*)", entries.drop_dangling, waits=True),
    _repair(r"count-mismatch entry (record_count|file_size_in_bytes)", entries.set_counts),
    _repair(r"(bounds-untrue|metrics-missing) entry .*|count-mismatch entry 1\d\d .*", entries.recompute_metrics),
    _repair(r"delete-path entry (143 )?(referenced_data_file|file_path)", point_deletes_at_files, waits=True),
    _repair(r"entry-invalid entry 14[45] .*", entries.restore_vector_places),
    _repair(r"split-offsets-invalid entry .*", entries.drop_split_offsets),
    _repair(r"row-ids-twice entry .*", entries.forget_row_ids),
    _repair(r"sequence-number entry .*", entries.fill_sequence_numbers),
)  # fmt: skip

#: Codes of faults of the table's folder, which the simulated table shares and a saved copy does not have.
COPIED = frozenset(
    {"hint-invalid", "hint-stale", "hint-missing", "table-moved", "table-uuid-differs", "metadata-newer"}
)

#: Findings that no plan mends, and why.
UNREPAIRABLE: dict[str, str] = {
    "metadata-large": "Expire snapshots, and remove schemas that no snapshot uses.",
    "snapshot-lost": "Decide which of the two histories is right, and add the lost snapshot's files again.",
    "outside-roots": "Open the table with allow=, so that files outside its folder are read, and check it again.",
    "metadata-invalid": "The right value cannot be derived from the rest of the table.",
    "metadata-incomplete": "The missing value cannot be derived from the rest of the table.",
    "delete-no-effect": "Only the writer knows which rows these deletes were for; write them again for the older spec.",
    "deletes-dropped": "The deletes are in no snapshot any more; run them again.",
    "delete-path": "Rewrite the delete files with the new paths: CALL <catalog>.system.rewrite_table_path(…).",
    "delete-position": "The deleted rows are unknown; run the delete again.",
    "delete-scope": "The vector's data file is unknown; run the delete again.",
    "equality-ids-invalid": "The columns of the deletes are unknown; run the delete again.",
    "partition-untrue": "Rewrite the data file into its right partition.",
    "data-no-field-ids": "Set schema.name-mapping.default, or rewrite the data files.",
    "row-ids-reassigned": "The old row ids are in no live file any more.",
    "field-id-reserved": "Field ids are in every data file; the table has to be written again.",
    "key-metadata-plain": "Remove the key only after the file has been decrypted.",
    "manifests-fragmented": "Merge them: CALL <catalog>.system.rewrite_manifests('<table>').",
    "spec-source-dropped": "Old files keep the spec; readers tolerate it.",
}
