"""The registry of rules that manifests and commits must follow, with the source of each.

Rules are checked on reading and on committing. Reading reports a violation as a `Problem` with one of the rule's
problem codes. A commit that would violate a rule is refused with a `RuleError`, and `iceexplore.commits.check_rules`
lists the rules that an existing snapshot violates. Reading and `check_rules` find violations with the same functions
(`iceexplore.manifests.rules`).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Literal

from iceexplore.errors._exceptions import OptionError

__all__ = ["RULES", "Rule", "RuleScope", "rule"]

#: What must be read to check a rule: an ``entry``; a ``manifest`` and its row in the root; all manifests of a
#: ``snapshot``; or a snapshot and its parent (``change``). Rules on a ``commit`` or on table ``metadata`` are enforced
#: by refusing operations that break them; existing snapshots are not checked. ``doctor`` rules concern data files, or
#: older forms that are still valid; only ``t.check()`` reports where they are broken.
RuleScope = Literal["entry", "manifest", "snapshot", "change", "commit", "metadata", "doctor"]


@dataclass(frozen=True)
class Rule:
    """A rule of the format, or a validation of a commit.

    Attributes
    ----------
    id
        Short, stable, in kebab case. It never changes its meaning.
    text
        The rule in one sentence.
    source
        The document and section, or the Java class, that the rule comes from.
    scope
        What must be read to check it; see `RuleScope`.
    problems
        The codes (keys of `PROBLEM_KINDS`) of the problems that report violations when manifests are read; empty if
        only `check_rules` finds them.
    only
        The kind of root for which the rule is checked; None if for both.
    quote
        The sentence quoted from the document; empty if the rule follows from several sentences.
    draft
        Whether the V4 draft also has the rule.
    draft_only
        Whether only the V4 draft has it.
    draft_quote, draft_source
        For a rule that the V4 draft shares, the draft's sentence and its source. If the draft has none, the sentence
        is from the spec on which it builds, or from Iceberg's implementation. Empty if ``quote`` is from that spec.
    """

    id: str
    text: str
    source: str
    scope: RuleScope
    problems: tuple[str, ...] = ()
    only: Literal["manifest list", "root manifest"] | None = None
    quote: str = ""
    draft: bool = False
    draft_only: bool = False
    draft_quote: str = ""
    draft_source: str = ""

    @property
    def name(self) -> str:
        """The id; this old name is deprecated."""
        warnings.warn("Rule.name is deprecated: use Rule.id", DeprecationWarning, stacklevel=2)
        return self.id

    @property
    def is_checked(self) -> bool:
        """True if `check_rules` checks the rule in a snapshot."""
        return self.scope not in ("commit", "metadata", "doctor")

    def as_in_draft(self) -> Rule:
        """Return the rule with the V4 draft's sentence and source; unchanged if none is known."""
        return replace(self, quote=self.draft_quote, source=self.draft_source) if self.draft_quote else self

    def is_followed(self, *, by_draft: bool) -> bool:
        """Return whether the rule applies to trees of the V4 draft or, if ``by_draft`` is false, to all other trees."""
        return self.draft or self.draft_only if by_draft else not self.draft_only


def _rules(*rules: Rule) -> dict[str, Rule]:
    return {r.id: r for r in sorted(rules, key=lambda r: r.id)}


_PROPOSAL = "V4 proposal"
_DRAFT = "V4 draft"
_SPEC = "Iceberg spec"
#: The source of rules that Iceberg's implementation of the draft follows, but that the draft's text does not have.
_CODE = "Iceberg, for V4"
_TRACKED = f"{_DRAFT}, Tracked Files (apache/iceberg#16025)"
_DELETES = f"{_SPEC}, Delete Formats"
_ROOT_HOLDS = "v4 root manifest (snapshot root): Data files, data manifests, delete manifests"
_LEAF_HOLDS = "v4 data manifest: Data files and their colocated deletion vectors"

#: Every rule, sorted by id.
RULES: dict[str, Rule] = _rules(
    # Manifests: checked in every snapshot
    Rule("one-root", "A snapshot has exactly one root manifest.", f"{_PROPOSAL}, Root Manifests", "snapshot", problems=("file-corrupt",), quote="Every snapshot has exactly one Root Manifest in the metadata tree", draft=True, draft_quote="In v4, a single root manifest per snapshot can directly reference data files", draft_source=f"{_DRAFT}, Manifests (apache/iceberg#16025)"),
    Rule("two-levels", "Only the root lists manifests; leaves list files.", f"{_PROPOSAL}, Why limit tree depth to 2?", "manifest", problems=("file-corrupt",), quote="They can't link to other data or delete manifest files. This enforces a hierarchy with at most two levels.", draft=True, draft_quote=f"{_ROOT_HOLDS}; {_LEAF_HOLDS}", draft_source=_TRACKED),
    Rule("leaf-data-content", "A leaf data manifest lists only DATA entries.", f"{_PROPOSAL}, Single Manifest Structure", "manifest", problems=("entry-invalid", "file-corrupt"), quote="We still maintain separate manifests for data files and DVs at the leaf level", draft=True, draft_quote=_LEAF_HOLDS, draft_source=_TRACKED),
    Rule("leaf-delete-content", "A leaf delete manifest lists only DVs and equality deletes.", f"{_PROPOSAL}, Single Manifest Structure", "manifest", problems=("entry-invalid", "file-corrupt"), quote="We still maintain separate manifests for data files and DVs at the leaf level", draft=True, draft_quote="A separate set of manifests is used for delete files and DVs, but the same manifest schema is used for both data and delete manifests.", draft_source=_DELETES),
    Rule("dv-struct", "DVs and manifest DVs have a deletion_vector struct, other entries have none.", f"{_PROPOSAL}, V4 content entry structure", "entry", problems=("entry-invalid",), quote="Must be defined if content type is 1 or 5. Must be null for all other types.", draft=True, draft_quote="May only be defined when content_type is DATA. Must be null for all other content types.", draft_source=f"{_CODE}, TrackedFile.deletionVector (apache/iceberg#15049)"),
    Rule("referenced-file", "DVs and manifest DVs have a referenced_file and a delete manifest may have one; other entries have none.", f"{_PROPOSAL}, V4 content entry structure", "entry", problems=("entry-invalid",), only="root manifest", quote="Location of data file that a DV references if content_type is 1 or 5. Location of affiliated data manifest if content_type is 4 or null if delete manifest is unaffiliated."),
    Rule("no-inline-data-dv", "The DV of a data file is a Puffin blob, never inline.", f"{_PROPOSAL}, Why not have inline data DVs?", "entry", problems=("entry-invalid",), quote="It points to a data DV blob in a Puffin files (As in V3, no in-lined delete vectors)", draft=True, draft_quote="Deletion vectors are tracked individually by file location, offset, and length within the containing file.", draft_source=_DELETES),
    Rule("one-manifest-dv", "A leaf has at most one live manifest DV (two with delta encoding, of different status).", f"{_PROPOSAL}, Commit Procedure", "manifest", problems=("manifest-dv-invalid",), only="root manifest", quote="There can be at most 1 leaf manifest DV for a given leaf manifest.", draft=True, draft_quote="stored inline on the root manifest entry that references the leaf manifest", draft_source=f"{_DRAFT}, Manifest Deletion Vectors (apache/iceberg#16025)"),
    Rule("one-dv", "A data file has at most one live DV.", f"{_SPEC}, Deletion Vectors", "snapshot", draft=True, quote="At most one deletion vector is allowed per data file in a snapshot."),
    Rule("orphan-dv", "A DV references a live data file, a manifest DV a live manifest.", f"{_PROPOSAL}, Removing Data Files", "snapshot", problems=("manifest-dv-invalid",), only="root manifest", quote="Removing a data file contained in a leaf manifest requires removing any corresponding DV to prevent orphans.", draft=True, draft_quote="When removing a data file, writers must also remove any deletion vector that applies to that data file from delete manifests.", draft_source=_DELETES),
    Rule("dv-in-range", "The positions of a DV lie within the file that it references.", f"{_SPEC}, Deletion Vectors", "snapshot", problems=("manifest-dv-invalid",), draft=True, quote="A set bit at position P indicates that the row at position P is deleted.", draft_quote="A set bit at position P indicates that the entry at position P in the referenced leaf manifest is not live.", draft_source=f"{_DRAFT}, Manifest Deletion Vectors (apache/iceberg#16025)"),
    Rule("added-is-change", "Entries that change the table's data are ADDED (or DELETED), all others EXISTING.", f"{_PROPOSAL}, Root Manifests", "change", only="root manifest", quote="Any changes to underlying data are marked as ADDED and anything which does not change the actual data of the table is marked as EXISTING."),
    Rule("deleted-entries", "Entries that the snapshot removed from the root are listed as DELETED.", f"{_PROPOSAL}, version_info", "change", only="root manifest", quote="Deleted entries are required when the snapshot has a non-null parent-id."),
    Rule("leaf-change-by-dv", "A manifest DV records a net change to a leaf; the leaf is never removed and added again.", f"{_PROPOSAL}, Commit Procedure", "change", only="root manifest", quote="Whenever a change is made to leaf manifests, it should be marked by newly added Manifest Delete Vectors."),
    Rule("compaction-existing", "Compaction merges entries of earlier commits, never this commit's adds or deletes.", f"{_PROPOSAL}, Manifest Compaction", "change", only="root manifest", quote="combining entries for new deletes produced or new data files created in the snapshot with an existing manifest to create a new manifest is not allowed."),
    Rule("manifest-stats", "Only manifests have manifest_stats, which describe the leaf as written.", f"{_PROPOSAL}, V4 content entry structure", "manifest", problems=("entry-invalid", "count-mismatch", "totals-differ", "sequence-number"), quote="Must be set if content_type is 3 or 4, otherwise must be null", draft=True, draft_quote="Must be set if content_type is DATA_MANIFEST or DELETE_MANIFEST, otherwise must be null.", draft_source=f"{_CODE}, TrackedFile.manifestInfo (apache/iceberg#15049)"),
    Rule("size-with-location", "file_size_in_bytes is set if and only if the entry has a separate file.", f"{_PROPOSAL}, V4 content entry structure", "entry", quote="Total file size in bytes. Must be defined if location is defined"),
    Rule("manifest-sequence", "A manifest's sequence_number equals its file_sequence_number.", f"{_PROPOSAL}, version_info", "manifest", only="root manifest", quote="Must be equal to file_sequence_number if type is 3 or 4.", draft=True, draft_quote="Add a check that file and data sequence numbers are equal when inheriting tracking metadata.", draft_source=f"{_CODE}, TrackingStruct (apache/iceberg#16091)"),
    Rule("content-fields", "sort_order_id, equality_ids and first_row_id are set only for the content types that have them.", f"{_PROPOSAL}, V4 content entry structure", "entry", problems=("equality-ids-invalid",), quote="Can only be set if content_type is 0."),
    Rule("known-status", "The status of an entry is EXISTING, ADDED or DELETED (0 to 2); the V4 draft adds REPLACED and MODIFIED (3 and 4).", f"{_PROPOSAL}, version_info", "entry", problems=("file-corrupt",), quote="int with meaning: 0: EXISTING 1: ADDED 2: DELETE", draft=True, draft_quote="Entry status: 0=existing, 1=added, 2=deleted, 3=replaced, 4=modified", draft_source=f"{_CODE}, Tracking.STATUS (apache/iceberg#16689)"),
    Rule("split-offsets", "The split offsets of a file are in ascending order.", f"{_PROPOSAL}, V4 content entry structure", "entry", problems=("split-offsets-invalid",), quote="Must be sorted ascending", draft=True, draft_quote="Split offsets for the data file. Must be sorted ascending.", draft_source=_TRACKED),
    Rule("manifest-keys", "The key-value metadata of a manifest has format-version, and content: data, delete or root, whichever the manifest is.", f"{_PROPOSAL}, V4 Manifest Key Value Metadata", "manifest", problems=("header-incomplete",), only="root manifest", quote="Content being tracked by manifest. Must be data, delete, or root"),
    Rule("affinity", "A delete manifest affiliated with a leaf lists only deletes for that leaf's files.", f"{_PROPOSAL}, Optional Affinity", "snapshot", problems=("entry-invalid",), only="root manifest", quote="a delete manifest can be affiliated to exactly one data manifest."),
    Rule("stats-cover", "The statistics of a manifest's entry cover those of its entries.", f"{_PROPOSAL}, Goals: Aggregate Metrics", "manifest", problems=("summary-untrue",), only="root manifest", quote="A manifest file entry gets aggregated stats of its data file contents.", draft=True, draft_quote="Lower bounds must be less than or equal to all non-null and non-NaN values and upper bounds must be greater than or equal to all non-null and non-NaN values.", draft_source=f"{_SPEC}, Field-level Metrics and Statistics"),
    Rule("summaries-cover", "The partition summaries of a manifest list cover the tuples of its manifests' live entries.", f"{_SPEC}, Manifest Lists", "manifest", problems=("summary-untrue",), only="manifest list"),
    Rule("geo-bounds", "The bounds of geometries and geographies are the corners of a box: both or none, with x and y, no coordinate of the lower one above that of the upper one (except x of geographies, which may cross the antimeridian), and those of geographies within the ranges of longitudes and latitudes.", f"{_SPEC}, Bounds for Geometry and Geography", "manifest", only="root manifest", quote="If either the X or Y dimension is missing then the bounding box itself is not produced.", draft=True),
    Rule("partition-rebuilds", "The partition tuple of every file can be derived from its statistics.", f"{_PROPOSAL}, How do we remove partition tuple", "manifest", only="root manifest", quote="readers can still derive the partition tuple from the partition spec and the columnar stats which contain the actual values."),
    Rule("sequence-order", "No sequence number is above the snapshot's, and no data sequence number is above the file sequence number.", f"{_SPEC}, Sequence Numbers", "entry", problems=("sequence-number",), draft=True, quote="All manifests, data files, and delete files created for a snapshot inherit the snapshot's sequence number."),
    Rule("row-ids", "Row id ranges of live data files do not overlap and lie below next-row-id.", f"{_SPEC}, Table Metadata Fields", "snapshot", draft=True, quote="The `next-row-id` must always be higher than any assigned row ID in the table."),
    Rule("duplicate-file", "A table lists a file only once.", f"{_SPEC}, Scan Planning", "snapshot", problems=("file-twice",), draft=True, quote="all file paths marked with \"ADDED\" or \"EXISTING\" may appear at most once across all manifest files in the snapshot"),
    # Manifests of the V4 draft only
    Rule("draft-content-types", "A manifest of the V4 draft lists data files, and its root also data and delete manifests; deletes have entries only in delete manifests from before V4.", _TRACKED, "manifest", only="root manifest", quote=f"{_ROOT_HOLDS}; {_LEAF_HOLDS}", draft_only=True),
    Rule("replaced-and-modified", "The file of a REPLACED entry, or of an entry at a replaced position, is listed by another entry, as MODIFIED in the snapshot that replaced it.", _TRACKED, "snapshot", only="root manifest", quote="the writer records a MODIFIED entry for the live version and marks the prior version as replaced, either with a REPLACED entry or in a manifest deletion vector.", draft_only=True),
    Rule("positions-of-manifests", "Only entries of manifests have deleted_positions and replaced_positions.", _TRACKED, "manifest", only="root manifest", quote="`tracking.deleted_positions` and `tracking.replaced_positions` may only be set if the tracked file is a manifest.", draft_only=True),
    Rule("positions-disjoint", "No position is both deleted and replaced by a snapshot, and the manifest DV contains the positions of both kinds.", f"{_DRAFT}, Manifest Deletion Vectors (apache/iceberg#16025)", "manifest", only="root manifest", quote="`deleted_positions` and `replaced_positions` are disjoint.", draft_only=True),
    Rule("column-file-columns", "A column file has columns of the table, and no column of another column file of its data file.", f"{_DRAFT}, Tracked Files, column_file (apache/iceberg#16025)", "manifest", only="root manifest", quote="Live field IDs stored in this column file.", draft_only=True),
    Rule("column-files-of-data", "Only entries of data files have column files, and latest_column_file_snapshot_id (160) is set on those that have some.", f"{_DRAFT}, Tracking (apache/iceberg#16285)", "manifest", only="root manifest", quote="Snapshot ID where the latest column file was added; null if there are no column files", draft_only=True),
    Rule("timestamp-order", "A snapshot of a tree of the V4 draft is later than its parent.", f"{_DRAFT}, Snapshots (apache/iceberg#16294)", "change", only="root manifest", quote="In format version 4 and above, a snapshot's `timestamp-ms` must be strictly greater than the `timestamp-ms` of its parent snapshot on the same branch.", draft_only=True),
    # The V4 draft, found by t.check()
    Rule("column-file-there", "The column files of live data files exist, and have the columns that their entries list.", f"{_DRAFT}, Tracked Files, column_file (apache/iceberg#16025)", "doctor", problems=("file-missing", "count-mismatch"), quote="Live field IDs stored in this column file.", draft_only=True),
    Rule("column-file-rows", "A column file has a row for each row of its data file, deleted ones included.", "Delta Lake, Column Updates, Column File Format (delta-io/delta#7413), which the V4 draft leaves to its proposal", "doctor", problems=("count-mismatch",), quote="It has one row for each physical row in the base file.", draft_only=True),
    Rule("manifest-dv-form", "A manifest DV is a Mumbling bitmap, and dv_cardinality (523) is not written: both older forms are read.", f"{_DRAFT}, ManifestInfo (apache/iceberg#18138)", "doctor", problems=("manifest-dv-older",), quote="The dv_cardinality field (523) is dropped since cardinality is carried in the Mumbling bitmap header", draft_only=True),
    # The V4 draft: commits
    Rule("no-new-equality-deletes", "New equality deletes are not added to a tree of the V4 draft; those of delete manifests from before V4 stay valid.", f"{_DRAFT}, Delete Formats (apache/iceberg#17783)", "commit", quote="Equality delete files must not be added to v4 tables, but existing equality delete files are valid.", draft_only=True),
    Rule("column-updates", "Columns of a data file are updated by a column file only in a tree of the V4 draft, if no partition field is derived from them, and no equality deletes or position delete files apply to the data file, whose data sequence number the update raises.", f"{_DRAFT}, Column File Tracking (apache/iceberg#16425)", "commit", quote="Adding a column file bumps the base data file's data sequence number, and that repurposed sequence number drives row lineage and change detection", draft_only=True),
    # Operations
    Rule("operation-name", "append only adds files, replace keeps the rows, overwrite adds and removes files, delete only removes files.", f"{_SPEC}, Snapshots", "commit"),
    Rule("files-exist", "Files to remove or rewrite are live.", f"{_SPEC}, Commit Conflict Resolution and Retry", "commit"),
    Rule("whole-files", "A metadata delete removes whole files: if any row of a file may match the filter, all of its rows must match.", "Iceberg, ManifestFilterManager", "commit"),
    Rule("schema-unchanged", "The schema and the partition spec have not changed since the commit was prepared.", f"{_SPEC}, Commit Conflict Resolution and Retry", "commit"),
    Rule("no-new-conflicting-files", "No concurrent commit added data that a serializable operation should have read.", "Iceberg, MergingSnapshotProducer.validateAddedDataFiles", "commit"),
    Rule("no-new-deletes", "No concurrent commit added deletes for files that this commit replaces.", "Iceberg, MergingSnapshotProducer.validateNoNewDeletesForDataFiles", "commit"),
    Rule("data-files-still-there", "Data files that the commit read, or that its deletes reference, are still live.", "Iceberg, MergingSnapshotProducer.validateDataFilesExist", "commit"),
    Rule("no-concurrent-dv", "No concurrent commit added a DV for the same data file.", "Iceberg, MergingSnapshotProducer.validateAddedDVs", "commit"),
    Rule("no-concurrent-column-files", "No concurrent commit added column files for data files that this commit updates, or rewrites with their old values.", f"{_DRAFT}, Column File Tracking (apache/iceberg#16425)", "commit", quote="This applies to rows whose values were updated in the commit", draft_only=True),
    Rule("deletes-need-v2", "Delete files need format version 2, DVs need version 3; version 3 and later add no position delete files.", f"{_SPEC}, Version 2, Version 3", "commit"),
    Rule("table-unchanged", "A commit replaces only the metadata file that it was built on; the number of attempts is limited.", f"{_SPEC}, Commit Conflict Resolution and Retry", "commit"),
    # The table metadata: snapshots, refs, properties, versions
    Rule("snapshot-id-unique", "A snapshot id is used only once.", f"{_SPEC}, Snapshots", "metadata"),
    Rule("sequence-increases", "A new snapshot's sequence number is above the table's last-sequence-number; v1 has no sequence numbers.", f"{_SPEC}, Sequence Numbers", "metadata"),
    Rule("row-ids-assigned", "A snapshot of v3 and later has first-row-id, the table's next-row-id, and added-rows.", f"{_SPEC}, Snapshot Row IDs", "metadata"),
    Rule("snapshot-log-order", "The timestamps of the snapshot-log do not decrease, except by up to a minute of clock skew.", "Iceberg, TableMetadata", "metadata"),
    Rule("main-branch", "main is a branch and is never removed.", f"{_SPEC}, Snapshot References", "metadata"),
    Rule("ref-type", "Only branches take commits and fast-forwards, and a ref keeps its type.", "Iceberg, UpdateSnapshotReferencesOperation", "metadata"),
    Rule("ref-retention", "A ref's retention settings are above 0; a tag has only max-ref-age-ms.", f"{_SPEC}, Snapshot References", "metadata"),
    Rule("rollback-ancestor", "A rollback sets an ancestor of the current snapshot.", "Iceberg, SetSnapshotOperation.rollbackTo", "metadata"),
    Rule("fast-forward-ancestor", "A branch is an ancestor of the snapshot that it is fast-forwarded to.", "Iceberg, UpdateSnapshotReferencesOperation.fastForward", "metadata"),
    Rule("cherry-pick", "An append or a partition overwrite can be cherry-picked once; any other snapshot only by fast-forward.", "Iceberg, CherryPickOperation", "metadata"),
    Rule("expire-referenced", "A snapshot that a ref points to does not expire.", "Iceberg, RemoveSnapshots", "metadata"),
    Rule("expire-gc", "Snapshots of a table with gc.enabled=false do not expire.", "Iceberg, RemoveSnapshots", "metadata"),
    Rule("reserved-property", "Table properties have no reserved names, and their values are strings.", "Iceberg, TableProperties.RESERVED_PROPERTIES", "metadata"),
    Rule("format-version-rises", "The format version never decreases and is at most 4.", "Iceberg, TableMetadata.upgradeFormatVersion", "metadata"),
    # Views
    Rule("view-columns", "The schema of a view's version has a column for each column of its query.", "View spec, Versions", "metadata"),
    Rule("view-dialects-kept", "A new version of a view has SQL for each dialect of the version before, unless replace.drop-dialect.allowed is true.", "Iceberg, ViewMetadata.Builder.checkIfDialectIsDropped", "metadata"),
    Rule("view-one-sql-per-dialect", "A version of a view has only one SQL text per dialect.", "View spec, SQL representation", "metadata"),
    Rule("view-unchanged", "A commit to a view replaces only the metadata file that it was built on; the number of attempts is limited.", "View spec, Metadata Location", "commit"),
    # Schemas, partition specs and sort orders
    Rule("schema-names", "A name in a schema change identifies one column, and no two columns share a name.", "Iceberg, SchemaUpdate", "metadata"),
    Rule("reserved-columns", "No table column has the name of a metadata column.", f"{_SPEC}, Reserved Field IDs", "metadata"),
    Rule("schema-conflict", "A schema change does not drop and change the same column.", "Iceberg, SchemaUpdate", "metadata"),
    Rule("schema-struct", "Fields are added only to structs and moved only within their struct; a list keeps its element and a map its value.", f"{_SPEC}, Schema Evolution", "metadata"),
    Rule("schema-map-key", "The key of a map does not change.", "Iceberg, SchemaUpdate", "metadata"),
    Rule("type-promotion", "A type changes only by a promotion that the format version allows and that keeps partition values.", f"{_SPEC}, Schema Evolution", "metadata"),
    Rule("required-columns", "A required column is added with defaults and does not have the type unknown, which is always null; an optional column does not become required.", f"{_SPEC}, Default values", "metadata"),
    Rule("default-values", "Defaults fit the type and need format version 3; the initial default never changes.", f"{_SPEC}, Default values", "metadata"),
    Rule("types-of-version", "The table's format version supports the type of every column.", f"{_SPEC}, Primitive Types", "metadata"),
    Rule("identifier-fields", "Identifier fields are required primitives, not float or double, in required structs.", f"{_SPEC}, Identifier Field IDs", "metadata"),
    Rule("partition-source", "The source of a partition field is a primitive that its transform accepts, outside lists and maps.", f"{_SPEC}, Partitioning", "metadata"),
    Rule("virtual-columns", "A virtual column is a function of one column outside lists and maps, with a name of its own, in a table of the V4 proposal.", f"{_PROPOSAL}, Global field ID space", "metadata", quote="including derived column for transforms or any general virtual column function"),
    Rule("partition-names", "Names of partition fields are unique and differ from other columns' names.", "Iceberg, PartitionSpec.Builder", "metadata"),
    Rule("partition-fields", "A spec has each pair of source and transform once; only existing fields are removed or renamed.", "Iceberg, BaseUpdatePartitionSpec", "metadata"),
    Rule("partition-ids-v1", "In v1 the field ids of a spec are 1000, 1001 and so on without a gap.", f"{_SPEC}, Partition Evolution", "metadata"),
    Rule("sort-source", "The source of a sort field is a primitive that its transform accepts, outside lists and maps.", f"{_SPEC}, Sorting", "metadata"),
)  # fmt: skip


def rule(name: str) -> Rule:
    """Return the rule with this id.

    Raises
    ------
    OptionError
        The rule is unknown; the message lists all rules.
    """
    if name not in RULES:
        raise OptionError(f"unknown rule {name!r}; rules: {', '.join(RULES)}")
    return RULES[name]
