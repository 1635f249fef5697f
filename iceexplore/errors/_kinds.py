"""The registry of problem codes: the meaning, severity and remedy of each, independent of which module reports it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Effect", "PROBLEM_KINDS", "ProblemKind", "Severity"]

#: Severities: ``error``: something cannot be shown; ``warning``: it is shown, but may be wrong; ``info``: a note.
Severity = Literal["error", "warning", "info"]
#: Effects on readers of the table: they fail, return wrong rows or numbers, or are slow; ``untidy`` affects no reader.
Effect = Literal["fail", "wrong", "slow", "untidy"]


@dataclass(frozen=True)
class ProblemKind:
    """An entry of the registry: the meaning of a code, independent of which module reports it.

    Attributes
    ----------
    effect
        The effect on readers of the table; the doctor uses it as the severity of its findings.
    modes
        The ways of breaking that the code covers, by their numbers in ``docs/doctor.md``
        (`iceexplore.doctor.MODES`).
    means
        The consequence for readers, as a sentence.
    remedy
        What to do, as a sentence in the imperative.
    strict
        True if strict reading raises the problem as an error even if it is only a warning, because what is shown may
        be wrong.
    health
        True if nothing is damaged, but the table is slower or larger than necessary.
    """

    code: str
    severity: Severity
    effect: Effect
    modes: tuple[int, ...]
    title: str
    means: str
    remedy: str
    strict: bool = False
    health: bool = False

    @property
    def advice(self) -> str:
        """The consequence for readers, and the remedy."""
        return f"{self.means} {self.remedy}"


def _kinds(*kinds: ProblemKind) -> dict[str, ProblemKind]:
    return {kind.code: kind for kind in sorted(kinds, key=lambda k: k.code)}


#: Every problem code, sorted. A code never changes its meaning.
PROBLEM_KINDS: dict[str, ProblemKind] = _kinds(
    ProblemKind("access-denied", "error", "fail", (), "The storage refused access", "Readers with the same credentials fail.", "Check credentials and permissions (403)."),
    ProblemKind("avro-no-field-ids", "warning", "fail", (40,), "Avro fields have no field ids", "Readers that resolve fields by id, as the spec asks, find none and fail; iceexplore reads by name.", "Rewrite the manifests with a writer that sets field-id."),
    ProblemKind("avro-nullability", "warning", "untidy", (75,), "Required fields of a manifest may be null", "Some engines refuse the file.", "Rewrite the manifests."),
    ProblemKind("bounds-off", "info", "untidy", (), "Columns have no bounds", "Filters on them skip no file.", "If you filter by them, set write.metadata.metrics.column.* and rewrite the files: t.maintenance().rewrite_data_files(rewrite_all=True) plans it.", health=True),
    ProblemKind("bounds-untrue", "error", "wrong", (34, 61, 63), "A lower or upper bound excludes values of the column", "Readers that prune by it miss rows.", "Rewrite the file, or correct its manifest entry."),
    ProblemKind("catalog-failed", "error", "fail", (), "The catalog could not load the table", "Readers that use the catalog cannot open the table.", "Check the table's name, and the catalog's address and credentials."),
    ProblemKind("changes-untrue", "warning", "wrong", (54, 57), "A V4 root misstates what its commit changed", "Incremental readers miss changes or return rows twice.", "Rewrite the root from its parent and the files that the commit added."),
    ProblemKind("count-mismatch", "warning", "wrong", (33,), "A recorded count does not match the actual count", "Readers may skip the file or the manifest, or plan and count wrongly.", "Correct the count: t.check().repair() plans it; rewrite_manifests recomputes the counts of manifests."),
    ProblemKind("data-no-field-ids", "warning", "wrong", (42,), "A data file has no field ids", "Readers find no column and return nulls, or guess columns by position.", "Set schema.name-mapping.default, or rewrite the file."),
    ProblemKind("delete-dangling", "warning", "untidy", (45,), "A delete references a data file that does not exist", "Readers open the delete file for nothing.", "Rewrite the delete files; if the table's paths changed, rewrite the paths in its deletes too."),
    ProblemKind("delete-files-many", "info", "slow", (), "Many position delete files apply to one data file", "Readers open each of them for the data file.", "Rewrite the data files: t.maintenance().rewrite_data_files(delete_file_threshold=5) plans it.", health=True),
    ProblemKind("delete-no-effect", "warning", "wrong", (68,), "Delete files apply to no data file", "Rows that were meant to be deleted are returned.", "Rewrite the deletes for the data files' partition spec."),
    ProblemKind("delete-path", "warning", "wrong", (44,), "A delete spells its data file's path differently", "Most engines would not apply it.", "Rewrite the table's paths."),
    ProblemKind("delete-position", "error", "wrong", (48,), "A deleted position is outside its data file", "Readers may fail or delete other rows.", "Rewrite the deletes."),
    ProblemKind("delete-ratio-high", "info", "slow", (), "Many rows of data files are deleted", "Readers read rows that they throw away.", "Rewrite the data files: t.maintenance().rewrite_data_files() plans it.", health=True),
    ProblemKind("delete-scope", "warning", "wrong", (48,), "A delete cannot apply to the data file it references", "Engines may refuse the table.", "Remove or rewrite the delete."),
    ProblemKind("deletes-dropped", "error", "wrong", (69,), "A commit removed deletes that still apply", "Deleted rows are back.", "Delete the rows again, or go back to the commit's parent and run the compaction again."),
    ProblemKind("dv-twice", "error", "wrong", (47,), "A data file has several deletion vectors", "Readers apply one of them, or refuse the table.", "Merge them into one."),
    ProblemKind("entry-invalid", "warning", "fail", (52,), "A manifest entry breaks the rules of its content type", "Readers may refuse the manifest or skip entries.", "Rewrite the manifest."),
    ProblemKind("equality-deletes-costly", "info", "slow", (), "Equality deletes cost each scan more than a rewrite", "Readers compare them with every row.", "Rewrite the data files: t.maintenance().rewrite_data_files(delete_file_threshold=1) plans it.", health=True),
    ProblemKind("equality-ids-invalid", "error", "fail", (49,), "An equality delete uses columns that do not exist", "Readers refuse the table.", "Restore the column or rewrite the deletes."),
    ProblemKind("field-id-reserved", "error", "fail", (72,), "A column has a field id that must not be used", "Readers mix it up with another column.", "Write the column with a new id."),
    ProblemKind("field-id-twice", "error", "wrong", (21,), "Columns of a data file share a field id", "Readers use one of them.", "Rewrite the file."),
    ProblemKind("field-id-unknown", "warning", "untidy", (), "A data file has field ids that the table never assigned", "Readers ignore the column.", "Check whether the file belongs to this table."),
    ProblemKind("file-corrupt", "error", "fail", (10,), "A file is damaged or has an unexpected format", "Readers of the file fail, or return wrong rows.", "Restore the file or go back to a snapshot without it."),
    ProblemKind("file-missing", "error", "fail", (1,), "A file that the table references is missing", "Readers that need the file fail.", "Restore the file or go back to a snapshot without it."),
    ProblemKind("file-overwritten", "error", "wrong", (32,), "Entries of one file contradict each other", "Readers use a wrong size or count, and fail or skip rows.", "Register the file again with its correct size and counts."),
    ProblemKind("file-truncated", "error", "fail", (10,), "A file ends too early", "Readers of the file fail.", "Restore the file from a backup."),
    ProblemKind("file-twice", "error", "wrong", (31,), "A data file is live more than once", "Its rows are read once per entry.", "Remove the extra entries."),
    ProblemKind("files-small", "info", "slow", (), "Data files are small", "Readers open more files than necessary.", "Combine them: t.maintenance().rewrite_data_files() plans it.", health=True),
    ProblemKind("files-unsorted", "info", "untidy", (), "Data files are not marked as sorted by the table's order", "Engines cannot merge them without sorting, and their ranges may overlap.", "Sort them: t.maintenance().rewrite_data_files(strategy='sort') plans it.", health=True),
    ProblemKind("header-incomplete", "warning", "untidy", (84,), "A manifest's header lacks required keys, or has wrong ones", "Some engines need them and fail.", "Rewrite the manifests."),
    ProblemKind("header-version-missing", "error", "wrong", (73,), "A delete manifest's header does not identify it as one", "Engines that rely on the header return delete files as data.", "Rewrite the manifests."),
    ProblemKind("hint-invalid", "warning", "fail", (12,), "The version hint names no metadata file", "Engines that use it cannot open the table.", "Write the newest version's number to version-hint.text."),
    ProblemKind("hint-missing", "warning", "untidy", (12,), "The version hint is missing", "Some engines cannot open the table by its folder.", "Write the newest version's number to version-hint.text."),
    ProblemKind("hint-stale", "warning", "wrong", (12, 67), "The version hint names an old metadata file", "Engines that trust it return old rows, and a commit by one of them loses newer ones.", "Write the newest version's number to version-hint.text."),
    ProblemKind("key-metadata-plain", "warning", "untidy", (80,), "Keys are in a file that is not encrypted", "Readers of the metadata can decrypt the files.", "Encrypt the table again, or rewrite the manifests without key_metadata."),
    ProblemKind("last-updated-beyond", "error", "wrong", (65,), "Rows claim an update after their file was added", "Incremental readers that use _last_updated_sequence_number miss these rows.", "Rewrite the file."),
    ProblemKind("location-guessed", "warning", "untidy", (11,), "A file was found only by the end of its path", "It may be a different file.", "Compare its path with its neighbours' and pass moved= to map old locations to new ones.", strict=True),
    ProblemKind("location-invalid", "warning", "fail", (85,), "A location is invalid", "Readers may refuse the file or look for it elsewhere.", "Rewrite the metadata with absolute locations."),
    ProblemKind("manifest-dv-invalid", "error", "wrong", (51,), "A manifest deletion vector is wrong", "Readers may return removed entries, or refuse the table.", "Write the root again with one valid manifest deletion vector for each leaf: t.check().repair() plans it."),
    ProblemKind("manifest-dv-older", "info", "untidy", (85,), "Manifest deletion vectors have an older form of the draft", "iceexplore reads both forms; readers of the draft of September 2026 may refuse the older one.", "Nothing has to be done; any commit of a simulation with dialect='v4-draft' writes the root again, in the newer form."),
    ProblemKind("manifest-salvaged", "warning", "wrong", (78,), "Only part of a manifest could be read", "Entries after the damaged part are not shown, and other readers fail.", "Restore the manifest from a backup, or go back to a snapshot without it."),
    ProblemKind("manifests-fragmented", "info", "slow", (30,), "The table has many small manifests", "Every scan opens them.", "Merge them: t.maintenance().rewrite_manifests() plans it.", health=True),
    ProblemKind("memory-limit", "error", "fail", (), "Decoding a file would exceed the memory limit", "It is not shown; other readers may run out of memory.", "If you trust the file, raise the limit: iceexplore.memory_limit('8 GiB')."),
    ProblemKind("metadata-ambiguous", "warning", "wrong", (67,), "Several metadata files could be the newest", "Readers that choose another file see another table.", "Pick one with ix.open(..., version=...)."),
    ProblemKind("metadata-compression", "warning", "fail", (13,), "The name and the content of a metadata file differ in compression", "Java chooses the codec by the name and fails.", "Rename the file or rewrite it."),
    ProblemKind("metadata-files-many", "info", "untidy", (), "Old metadata files are never deleted", "The metadata folder grows with each commit.", "Set write.metadata.delete-after-commit.enabled, and delete the old ones: t.maintenance().metadata_files() plans it.", health=True),
    ProblemKind("metadata-incomplete", "info", "untidy", (71,), "The metadata file lacks optional parts that writers should fill", "Most readers work without them.", "The next commit of a correct writer fills them."),
    ProblemKind("metadata-invalid", "error", "fail", (), "Table metadata breaks the spec", "Readers may refuse the table, or choose another snapshot, schema or partition spec.", "Compare with an older metadata file: ix.open(..., version=...)."),
    ProblemKind("metadata-large", "info", "slow", (14,), "The metadata file is large", "Every reader loads it first.", "Expire snapshots, and remove unused schemas: t.maintenance().expire_snapshots(clean_expired_metadata=True) plans it.", health=True),
    ProblemKind("metadata-missing", "error", "fail", (5, 12), "The table's metadata file is missing", "Readers cannot open the table.", "Restore the metadata file, or point the catalog or the version hint to the newest one that can be read."),
    ProblemKind("metadata-newer", "warning", "wrong", (67, 5), "A newer metadata file exists", "Readers see an old state, and maintenance may remove newer files.", "Point the catalog or the version hint to the newest file."),
    ProblemKind("metadata-times", "warning", "untidy", (82,), "Times in the metadata file contradict each other", "Time travel by time may choose the wrong snapshot.", "Travel by snapshot id."),
    ProblemKind("metrics-missing", "info", "slow", (36, 64), "Data files lack column metrics", "Filters cannot skip any of these files.", "Rewrite the data files."),
    ProblemKind("ndv-untrue", "warning", "slow", (), "A recorded number of distinct values differs from its sketch", "Planners that order joins by it choose worse plans.", "Compute the statistics again: CALL <catalog>.system.compute_table_stats('<table>')."),
    ProblemKind("null-in-required", "error", "fail", (), "A required column has nulls", "Readers may fail.", "Make the column optional, or rewrite the file."),
    ProblemKind("outside-roots", "error", "fail", (11,), "A location outside the table's roots was refused", "iceexplore does not read it, as a hostile table could name any file; other readers do.", "If you trust the table: ix.open(..., allow=[...])."),
    ProblemKind("partition-skew", "info", "untidy", (), "A partition is much larger than most", "Tasks that work by partition wait for the largest.", "Add a partition field such as bucket or a finer time: t.maintenance().rewrite_data_files(output_spec_id=...) plans the rewrite to the new spec.", health=True),
    ProblemKind("partition-unknown", "warning", "wrong", (58,), "A file's partition cannot be derived from its statistics", "Readers cannot match deletes to the file, or skip it.", "Rewrite the manifest with exact values."),
    ProblemKind("partition-untrue", "error", "wrong", (38,), "Rows do not belong to the partition of their file", "Readers that prune by partition miss rows.", "Rewrite the file."),
    ProblemKind("puffin-bare-vector", "warning", "fail", (48,), "A deletion vector is not in a Puffin file", "Most engines refuse the file.", "Rewrite the deletes."),
    ProblemKind("puffin-blob-invalid", "warning", "fail", (48,), "A Puffin footer describes a blob wrongly", "Engines may skip or misread the blob.", "Rewrite the deletes, or compute the statistics again."),
    ProblemKind("ranges-overlap", "info", "slow", (), "Ranges of the sort column overlap", "Filters on it read files that have no matching rows.", "Sort the files again: t.maintenance().rewrite_data_files(strategy='sort', rewrite_all=True) plans it.", health=True),
    ProblemKind("root-other-snapshot", "error", "wrong", (66,), "A snapshot names the manifest list of another one", "Readers return the rows of another commit or attempt.", "Restore the snapshot's own list, or go back to its parent."),
    ProblemKind("row-ids-beyond", "error", "wrong", (23, 65), "Rows have row ids that the table has not assigned yet", "Future rows get the same ids.", "Rewrite the file, or raise next-row-id."),
    ProblemKind("row-ids-reassigned", "error", "wrong", (65,), "A rewrite gave its rows new row ids", "Readers that track rows by _row_id see all of them as deleted and inserted again.", "Compact again from the parent with an engine that keeps row ids."),
    ProblemKind("row-ids-twice", "error", "wrong", (23, 60, 65), "Several rows have the same row id", "Readers that track rows by _row_id confuse them.", "Rewrite one of the files."),
    ProblemKind("schemas-unused", "info", "untidy", (), "Some schemas or partition specs are unused", "Readers load them with every metadata file.", "Remove them: t.maintenance().unused_schemas_and_specs() plans it.", health=True),
    ProblemKind("sequence-number", "warning", "wrong", (28,), "Impossible sequence number", "Readers may apply deletes wrongly.", "Rewrite the manifest."),
    ProblemKind("snapshot-id-rounded", "warning", "untidy", (), "Snapshot ids were rounded", "Entries of the snapshot cannot be distinguished from older ones.", "Write the exact ids into the metadata file."),
    ProblemKind("snapshot-lost", "error", "wrong", (15, 83), "A committed snapshot was lost", "Rows of that commit are missing.", "Cherry-pick the snapshot from the older metadata file."),
    ProblemKind("snapshots-old", "info", "untidy", (), "Snapshots are older than the retention settings allow", "Their files take up space, and the metadata file grows.", "Expire them: t.maintenance().expire_snapshots() plans it.", health=True),
    ProblemKind("sort-order-untrue", "warning", "untidy", (), "Rows are not in the order that their file claims", "Engines that trust it may merge wrongly.", "Rewrite the file."),
    ProblemKind("spec-source-dropped", "warning", "untidy", (22,), "A partition spec uses a dropped column", "Some engines cannot bind the old spec.", "Upgrade them, or rewrite the data files of that spec."),
    ProblemKind("split-offsets-invalid", "warning", "fail", (37,), "Split offsets do not match the starts of row groups", "Readers that split files by them miss rows or fail.", "Rewrite the manifest entry."),
    ProblemKind("statistics-missing", "warning", "untidy", (8,), "A statistics file is missing", "Engines that use it fail or plan without it.", "Remove it from the table, or compute statistics again."),
    ProblemKind("statistics-untrue", "warning", "untidy", (8,), "A statistics file is not as large as recorded", "Engines look for its footer at the wrong offset.", "Compute statistics again."),
    ProblemKind("statistics-unused", "info", "untidy", (8,), "A statistics file belongs to no snapshot", "It serves no purpose.", "Remove it from the table."),
    ProblemKind("storage-failed", "error", "fail", (), "The storage failed", "Readers fail as long as the fault lasts.", "Try again; check the endpoint and the network."),
    ProblemKind("stored-type", "error", "fail", (), "A column is stored with a type that does not fit the table's", "Engines fail or read wrong values.", "Rewrite the file."),
    ProblemKind("summary-missing", "info", "slow", (26,), "Manifests have no partition summaries", "Filters cannot skip them.", "Run rewrite_manifests."),
    ProblemKind("summary-untrue", "warning", "wrong", (59,), "A manifest's summary is narrower than its content", "Filters skip the manifest, and rows go missing.", "Rewrite the manifests.", strict=True),
    ProblemKind("table-moved", "info", "untidy", (11,), "The table was moved, and its metadata has the old paths", "Other engines look in the old place.", "Rewrite the paths (rewrite_table_path)."),
    ProblemKind("table-uuid-differs", "warning", "untidy", (9,), "Metadata files of one table have different table-uuids", "Two tables may share the folder.", "Find out whose files these are before you remove any."),
    ProblemKind("totals-differ", "warning", "wrong", (29, 70), "Counts of live files or rows contradict each other", "Rows may be missing or reappear.", "Compare with a backup or an older snapshot.", strict=True),
    ProblemKind("udf-invalid", "error", "fail", (), "UDF metadata breaks the spec", "Engines may refuse the function.", "Create the function again, or go back to an older metadata file."),
    ProblemKind("unsupported", "warning", "untidy", (), "The table uses an unsupported feature", "Everything else is shown.", "Use a reader that supports it, or a newer iceexplore."),
    ProblemKind("value-undecodable", "warning", "wrong", (62,), "A stored value cannot be decoded as its type", "Readers may fail or prune wrongly.", "Rewrite the manifest without the value: t.check().repair() plans it."),
    ProblemKind("view-aliases", "warning", "wrong", (), "Aliases or docs of a view do not fit its columns", "Engines may name the columns wrongly or refuse the view.", "Replace the view.", strict=True),
    ProblemKind("view-column-missing", "warning", "fail", (), "A query of a view reads a column that its table does not have", "Engines refuse the view.", "Replace the view, or add the column to the table again."),
    ProblemKind("view-columns-differ", "warning", "fail", (), "The query of a view returns more or fewer columns than its schema has", "Engines that compare the two refuse the view.", "Replace the view."),
    ProblemKind("view-cycle", "warning", "fail", (), "A view reads itself through other views", "Engines refuse the view.", "Replace one of the views."),
    ProblemKind("view-dialects-differ", "warning", "wrong", (), "The dialects of a view read different tables", "Engines return different rows.", "Replace the view with the same query in each dialect."),
    ProblemKind("view-dialects-vary", "info", "untidy", (), "The dialects of a view are different syntax trees", "Engines may return different rows.", "Compare them: v.compare_dialects()."),
    ProblemKind("view-dialect-twice", "warning", "wrong", (), "A view has several SQL texts for one dialect", "Engines run different queries, because the spec allows one text for each dialect.", "Replace the view."),
    ProblemKind("view-invalid", "error", "fail", (), "View metadata breaks the spec", "Engines may refuse the view.", "Replace it, or go back to an older metadata file: ix.open_view(..., version=...)."),
    ProblemKind("view-log-differs", "warning", "wrong", (), "A view's version log contradicts its versions", "Time travel may choose the wrong version.", "Travel by version id."),
    ProblemKind("view-representation-unknown", "info", "untidy", (), "A view has representations of unknown types", "Engines that do not know the type ignore it.", "Check that the dialects that you use are stored: v.dialects."),
    ProblemKind("view-source-changed", "warning", "wrong", (), "A column that a view reads has changed since the view's version was created", "The view may return other values than intended.", "Check the query, and replace the view."),
    ProblemKind("view-source-missing", "warning", "fail", (), "A table or view that a view reads does not exist", "Engines refuse the view.", "Replace the view, or create the table again."),
    ProblemKind("view-types-differ", "warning", "fail", (), "A query of a view returns a column with a different type than the view's schema has", "Engines that compare the two refuse the view, or cast the column.", "Replace the view."),
    ProblemKind("view-version-changed", "warning", "wrong", (), "A version of a view was changed after it was created", "Engines that compare version ids do not notice the change, and time travel shows the new query for old times.", "Replace the view to create a new version."),
    ProblemKind("view-version-expired", "info", "untidy", (), "A view's version log names versions that have expired", "Time travel to their times fails.", "Travel to a version that still exists."),
    ProblemKind("view-version-ids", "warning", "untidy", (), "Version ids of a view do not increase", "Engines that take the largest id for the newest version choose the wrong one.", "Replace the view."),
    ProblemKind("view-versions-many", "info", "untidy", (), "A view keeps more versions than its properties allow", "The metadata file grows with each change.", "Raise version.history.num-entries, or replace the view with an engine that removes the oldest versions.", health=True),
)
