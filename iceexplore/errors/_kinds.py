"""The registry of problem codes: the meaning, severity and remedy of each, independent of which module reports it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["PROBLEM_KINDS", "ProblemKind", "Severity"]

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class ProblemKind:
    """An entry of the registry: the meaning of a code, independent of which module reports it.

    Attributes
    ----------
    strict
        True where strict reading raises even a warning, because what is shown may be wrong.
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
    ProblemKind("avro-no-field-ids", "warning", "Avro fields have no field ids", "Read by name; the writer should set field-id."),
    ProblemKind("bounds-untrue", "error", "A lower or upper bound excludes values of the column", "Readers that prune by it miss rows; rewrite the file or its manifest entry."),
    ProblemKind("count-mismatch", "warning", "A recorded count does not match the actual count", "Readers may skip the file or plan it wrongly."),
    ProblemKind("data-no-field-ids", "warning", "A data file has no field ids", "Set schema.name-mapping.default, or rewrite the file."),
    ProblemKind("delete-dangling", "warning", "A delete references a data file that does not exist", "Rewrite the delete files; if the table's paths changed, rewrite the paths in its deletes too."),
    ProblemKind("delete-path", "warning", "A delete spells its data file's path differently", "Most engines would not apply it; rewrite the table's paths."),
    ProblemKind("delete-position", "error", "A deleted position is outside its data file", "Readers may fail or delete other rows; rewrite the deletes."),
    ProblemKind("delete-scope", "warning", "A delete cannot apply to the data file it references", "Engines may refuse the table; remove or rewrite the delete."),
    ProblemKind("dv-twice", "error", "A data file has several deletion vectors", "Readers apply one of them, or refuse the table; merge them."),
    ProblemKind("entry-invalid", "warning", "A manifest entry breaks the rules of its content type", "Readers may refuse the manifest or skip entries; rewrite it."),
    ProblemKind("equality-ids-invalid", "error", "An equality delete uses columns that do not exist", "Readers refuse the table; restore the column or rewrite the deletes."),
    ProblemKind("field-id-twice", "error", "Columns of a data file share a field id", "Readers use one of them; rewrite the file."),
    ProblemKind("field-id-unknown", "warning", "A data file has field ids that the table never assigned", "Check whether the file belongs to this table."),
    ProblemKind("file-corrupt", "error", "A file is damaged or has an unexpected format", "Restore the file or go back to a snapshot without it."),
    ProblemKind("file-missing", "error", "A file that the table references is missing", "Restore the file or go back to a snapshot without it."),
    ProblemKind("file-truncated", "error", "A file ends too early", "Restore the file from a backup."),
    ProblemKind("file-twice", "error", "A data file is live more than once", "Its rows are read once per entry; remove the extra entries."),
    ProblemKind("location-invalid", "warning", "A location is invalid", "Readers may refuse the file or look for it elsewhere."),
    ProblemKind("location-guessed", "warning", "A file was found only by the end of its path", "It may be a different file; compare its path with its neighbours' and pass moved= to map old locations to new ones.", strict=True),
    ProblemKind("manifest-dv-invalid", "error", "A manifest deletion vector is wrong", "Readers may return removed entries, or refuse the table."),
    ProblemKind("manifest-salvaged", "warning", "Only part of a manifest could be read", "Entries after the damaged part are not shown."),
    ProblemKind("memory-limit", "error", "Decoding a file would exceed the memory limit", "If you trust the file, raise the limit: iceexplore.memory_limit('8 GiB')."),
    ProblemKind("metadata-ambiguous", "warning", "Several metadata files could be the newest", "Pick one with ix.open(..., version=...)."),
    ProblemKind("metadata-invalid", "error", "Table metadata breaks the spec", "Compare with an older metadata file: t.at(version=...)."),
    ProblemKind("null-in-required", "error", "A required column has nulls", "Readers may fail; make the column optional, or rewrite the file."),
    ProblemKind("outside-roots", "error", "A location outside the table's roots was refused", "If you trust the table: ix.open(..., allow=[...])."),
    ProblemKind("last-updated-beyond", "error", "Rows claim an update later than their file was added", "Incremental readers that use _last_updated_sequence_number miss these rows; rewrite the file."),
    ProblemKind("partition-untrue", "error", "Rows do not belong to the partition of their file", "Readers that prune by partition miss rows; rewrite the file."),
    ProblemKind("puffin-bare-vector", "warning", "A deletion vector is not in a Puffin file", "Most engines refuse the file; rewrite the deletes."),
    ProblemKind("puffin-blob-invalid", "warning", "A Puffin footer describes a blob wrongly", "Engines may skip or misread the blob."),
    ProblemKind("row-ids-beyond", "error", "Rows have row ids that the table has not assigned yet", "Future rows get the same ids; rewrite the file, or raise next-row-id."),
    ProblemKind("row-ids-twice", "error", "Several rows have the same row id", "Readers that track rows by _row_id take them for one row; rewrite one of the files."),
    ProblemKind("sequence-number", "warning", "Impossible sequence number", "Readers may apply deletes wrongly; rewrite the manifest."),
    ProblemKind("sort-order-untrue", "warning", "Rows are not in the order that their file claims", "Engines that trust it may merge wrongly; rewrite the file."),
    ProblemKind("split-offsets-invalid", "warning", "Split offsets do not match the starts of row groups", "Readers that split files by them miss rows or fail; rewrite the manifest entry."),
    ProblemKind("storage-failed", "error", "The storage failed", "Try again; check the endpoint and the network."),
    ProblemKind("stored-type", "error", "A column is stored with a type that does not fit the table's", "Engines fail or read wrong values; rewrite the file."),
    ProblemKind("summary-untrue", "warning", "A manifest's summary is narrower than its content", "Filters skip the manifest, and rows go missing; rewrite the manifests.", strict=True),
    ProblemKind("table-uuid-differs", "warning", "Metadata files of one table have different table-uuids", "Two tables may share the folder: find out whose files these are before you remove any."),
    ProblemKind("totals-differ", "warning", "Counts of live files or rows contradict each other", "Rows may be missing or reappear; compare with a backup or an older snapshot.", strict=True),
    ProblemKind("unsupported", "warning", "The table uses an unsupported feature", "Everything else is shown."),
    ProblemKind("value-undecodable", "warning", "A stored value cannot be decoded as its type", "Readers may fail or prune wrongly."),
)
