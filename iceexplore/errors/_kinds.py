"""The registry of problem codes: what each means, whoever reports it, how severe it is, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["PROBLEM_KINDS", "ProblemKind", "Severity"]

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class ProblemKind:
    """One entry of the registry: what a code means, whoever reports it.

    Attributes
    ----------
    strict
        Strict reading raises it even where it is a warning: what is shown may be wrong, though all of it can be read.
    """

    code: str
    severity: Severity
    title: str
    advice: str
    strict: bool = False


def _kinds(*kinds: ProblemKind) -> dict[str, ProblemKind]:
    return {kind.code: kind for kind in sorted(kinds, key=lambda k: k.code)}


#: Every problem code, sorted. A code never changes its meaning.
PROBLEM_KINDS: dict[str, ProblemKind] = _kinds(
    ProblemKind("access-denied", "error", "The storage refused access", "Check credentials and permissions (403)."),
    ProblemKind("avro-no-field-ids", "warning", "Avro fields carry no field ids", "Read by name; the writer should set field-id."),
    ProblemKind("bounds-untrue", "error", "A bound leaves out values of the column", "Readers that prune lose rows; rewrite the file or its entry."),
    ProblemKind("count-mismatch", "warning", "A count does not match what it counts", "Readers may skip or misjudge the file."),
    ProblemKind("data-no-field-ids", "warning", "A data file carries no field ids", "Set schema.name-mapping.default, or rewrite the file."),
    ProblemKind("delete-dangling", "warning", "A delete is of a data file that is not there", "Rewrite the deletes; if paths changed, the deletes' too."),
    ProblemKind("delete-path", "warning", "A delete spells its data file in another way", "Most engines would not apply it; rewrite the table's paths."),
    ProblemKind("delete-position", "error", "A deleted position is outside its data file", "Readers may fail or delete other rows; rewrite the deletes."),
    ProblemKind("delete-scope", "warning", "A delete cannot apply to the data file it names", "Engines may refuse the table; remove or rewrite the delete."),
    ProblemKind("dv-twice", "error", "A data file has several deletion vectors", "Readers take one of them, or refuse the table; merge them."),
    ProblemKind("entry-invalid", "warning", "An entry breaks the rules of its content type", "Readers may refuse the manifest, or leave entries out; rewrite it."),
    ProblemKind("equality-ids-invalid", "error", "An equality delete goes by columns that are not there", "Readers refuse the table; restore the column or rewrite the deletes."),
    ProblemKind("field-id-twice", "error", "Columns of a data file share a field id", "Readers take one of them; rewrite the file."),
    ProblemKind("field-id-unknown", "warning", "A data file has columns with ids that the table never gave out", "Look whether the file belongs to this table."),
    ProblemKind("file-corrupt", "error", "A file is damaged or of another format", "Restore the file or go back to a snapshot without it."),
    ProblemKind("file-missing", "error", "A file that the table names is missing", "Restore the file or go back to a snapshot without it."),
    ProblemKind("file-truncated", "error", "A file ends too early", "Restore the file from a copy."),
    ProblemKind("file-twice", "error", "A data file is live more than once", "Its rows are read as often; remove one of the entries."),
    ProblemKind("location-invalid", "warning", "A location breaks the rules", "Readers may refuse the file or look elsewhere."),
    ProblemKind("location-guessed", "warning", "A file was found by the end of its path alone", "It may be another file; compare the path with its neighbours', and say where files are by moved=.", strict=True),
    ProblemKind("manifest-dv-invalid", "error", "A manifest deletion vector is wrong", "Readers may show entries that are removed, or refuse the table."),
    ProblemKind("manifest-salvaged", "warning", "Only part of a manifest could be read", "Entries past the damage are not shown."),
    ProblemKind("memory-limit", "error", "A file would take more memory than it may", "If you trust it, allow more: iceexplore.memory_limit('8 GiB')."),
    ProblemKind("metadata-ambiguous", "warning", "Several metadata files could be the newest", "ix.open(..., version=...) picks one."),
    ProblemKind("metadata-invalid", "error", "Table metadata breaks the spec", "Compare with an older metadata file: t.at(version=...)."),
    ProblemKind("null-in-required", "error", "A required column has nulls", "Readers may fail; make the column optional, or rewrite the file."),
    ProblemKind("outside-roots", "error", "A location outside the table's roots was refused", "If you trust the table: ix.open(..., allow=[...])."),
    ProblemKind("last-updated-beyond", "error", "Rows were last updated after their file was added", "Who follows changes by _last_updated_sequence_number misses them; write the file anew."),
    ProblemKind("partition-untrue", "error", "Rows are not in the partition that their file is in", "Readers that prune lose rows; rewrite the file."),
    ProblemKind("puffin-bare-vector", "warning", "A deletion vector stands outside a Puffin file", "Most engines refuse the file; rewrite the deletes."),
    ProblemKind("puffin-blob-invalid", "warning", "A Puffin footer describes a blob wrongly", "Engines may skip or misread the blob."),
    ProblemKind("row-ids-beyond", "error", "Rows have ids that the table has not given out", "Rows to come get the same ids; write the file anew, or raise next-row-id."),
    ProblemKind("row-ids-twice", "error", "Several rows have the same id", "Who follows rows by _row_id takes them for one; write one of the files anew."),
    ProblemKind("sequence-number", "warning", "A sequence number cannot be", "Readers may apply deletes wrongly; rewrite the manifest."),
    ProblemKind("sort-order-untrue", "warning", "Rows are not in the order that their file claims", "Engines that trust it may merge wrongly; rewrite the file."),
    ProblemKind("split-offsets-invalid", "warning", "Split offsets are not where row groups begin", "Readers that split by them lose rows or fail; rewrite the entry."),
    ProblemKind("storage-failed", "error", "The storage failed", "Try again; check endpoint and network."),
    ProblemKind("stored-type", "error", "A column is stored in a type that is not the table's", "Engines fail or read other values; rewrite the file."),
    ProblemKind("summary-untrue", "warning", "A root claims too little of what a manifest holds", "Filters leave out the manifest, and rows are missing; rewrite the manifests.", strict=True),
    ProblemKind("table-uuid-differs", "warning", "Metadata files of one table have other table-uuids", "Two tables may share the folder: look whose files these are before anything is removed."),
    ProblemKind("totals-differ", "warning", "Counts of what is live contradict each other", "Rows may be missing or come back; compare with a copy, or an older snapshot.", strict=True),
    ProblemKind("unsupported", "warning", "Something that is not supported was met", "The rest is shown."),
    ProblemKind("value-undecodable", "warning", "A stored value does not fit its type", "Readers may fail or prune wrongly."),
)
