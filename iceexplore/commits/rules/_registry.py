"""The registry of named rules that commits must keep, with the source of each. Checks and refusals use the names."""

from __future__ import annotations

from dataclasses import dataclass

from iceexplore.errors import OptionError

__all__ = ["RULES", "Rule", "rule"]


@dataclass(frozen=True)
class Rule:
    """A rule of the format, or a validation of a commit.

    Attributes
    ----------
    name
        Short, stable, in kebab case.
    text
        What must hold, in one sentence.
    source
        The document and section, or the Java class, that the rule comes from.
    """

    name: str
    text: str
    source: str


def _rules(*rules: Rule) -> dict[str, Rule]:
    return {r.name: r for r in sorted(rules, key=lambda r: r.name)}


_PROPOSAL = "V4 proposal"
_SPEC = "Iceberg spec"

#: Every rule, sorted by name.
RULES: dict[str, Rule] = _rules(
    # The V4 proposal's tree
    Rule("one-root", "A snapshot has exactly one root manifest.", f"{_PROPOSAL}, Root Manifests"),
    Rule("two-levels", "Only the root lists manifests; leaves list files.", f"{_PROPOSAL}, Why limit tree depth to 2?"),
    Rule("leaf-data-content", "A leaf data manifest lists only DATA entries.", f"{_PROPOSAL}, Single Manifest Structure"),
    Rule("leaf-delete-content", "A leaf delete manifest lists only DVs and equality deletes.", f"{_PROPOSAL}, Single Manifest Structure"),
    Rule("dv-struct", "DVs and manifest DVs have a deletion_vector struct, other entries have none.", f"{_PROPOSAL}, V4 content entry structure"),
    Rule("no-inline-data-dv", "The DV of a data file is a Puffin blob, never inline.", f"{_PROPOSAL}, Why not have inline data DVs?"),
    Rule("one-manifest-dv", "A leaf has at most one live manifest DV (two with delta encoding, of different status).", f"{_PROPOSAL}, Commit Procedure"),
    Rule("one-dv", "A data file has at most one live DV.", f"{_SPEC}, Deletion Vectors"),
    Rule("orphan-dv", "A DV references a live data file, a manifest DV a live manifest.", f"{_PROPOSAL}, Removing Data Files"),
    Rule("dv-in-range", "The positions of a DV lie within the file that it references.", f"{_SPEC}, Deletion Vectors"),
    Rule("added-is-change", "Entries that change the table's data are ADDED (or DELETED), all others EXISTING.", f"{_PROPOSAL}, Root Manifests"),
    Rule("deleted-entries", "Entries that the snapshot removed from the root are listed as DELETED.", f"{_PROPOSAL}, version_info"),
    Rule("leaf-change-by-dv", "A manifest DV records a net change to a leaf; the leaf is never removed and added again.", f"{_PROPOSAL}, Commit Procedure"),
    Rule("compaction-existing", "Compaction merges entries of earlier commits, never this commit's adds or deletes.", f"{_PROPOSAL}, Manifest Compaction"),
    Rule("manifest-stats", "Only manifests have manifest_stats, which describe the leaf as written.", f"{_PROPOSAL}, V4 content entry structure"),
    Rule("size-with-location", "file_size_in_bytes is set if and only if the entry has a separate file.", f"{_PROPOSAL}, V4 content entry structure"),
    Rule("manifest-sequence", "A manifest's sequence_number equals its file_sequence_number.", f"{_PROPOSAL}, version_info"),
    Rule("content-fields", "sort_order_id, equality_ids and first_row_id are set only for the content types that have them.", f"{_PROPOSAL}, V4 content entry structure"),
    Rule("affinity", "A delete manifest affiliated with a leaf lists only deletes for that leaf's files.", f"{_PROPOSAL}, Optional Affinity"),
    Rule("stats-cover", "The statistics of a manifest's entry cover those of its entries.", f"{_PROPOSAL}, Goals: Aggregate Metrics"),
    Rule("summaries-cover", "The partition summaries of a manifest list cover the tuples of its manifests' live entries.", f"{_SPEC}, Manifest Lists"),
    Rule("partition-rebuilds", "The partition tuple of every file can be derived from its statistics.", f"{_PROPOSAL}, How do we remove partition tuple"),
    Rule("sequence-order", "No sequence number is above the snapshot's, and no data sequence number is above the file sequence number.", f"{_SPEC}, Sequence Numbers"),
    Rule("row-ids", "Row id ranges of live data files do not overlap and lie below next-row-id.", f"{_SPEC}, Row Lineage"),
    # Operations
    Rule("operation-name", "append only adds files, replace keeps the rows, overwrite adds and removes files, delete only removes files.", f"{_SPEC}, Snapshots"),
    Rule("duplicate-file", "A table lists a file only once.", f"{_SPEC}, Manifests"),
    Rule("files-exist", "Files to remove or rewrite are live.", f"{_SPEC}, Commit Conflict Resolution and Retry"),
    Rule("whole-files", "A metadata delete removes whole files: if any row of a file may match the filter, all of its rows must match.", "Iceberg, ManifestFilterManager"),
    Rule("schema-unchanged", "The schema and the partition spec have not changed since the commit was prepared.", f"{_SPEC}, Commit Conflict Resolution and Retry"),
    Rule("no-new-conflicting-files", "No concurrent commit added data that a serializable operation should have read.", "Iceberg, MergingSnapshotProducer.validateAddedDataFiles"),
    Rule("no-new-deletes", "No concurrent commit added deletes for files that this commit replaces.", "Iceberg, MergingSnapshotProducer.validateNoNewDeletesForDataFiles"),
    Rule("data-files-still-there", "Data files that new deletes reference are still live.", "Iceberg, MergingSnapshotProducer.validateDataFilesExist"),
    Rule("no-concurrent-dv", "No concurrent commit added a DV for the same data file.", "Iceberg, MergingSnapshotProducer.validateAddedDVs"),
    Rule("deletes-need-v2", "Delete files need format version 2, DVs need version 3; version 3 and later add no position delete files.", f"{_SPEC}, Version 2, Version 3"),
    Rule("table-unchanged", "A commit replaces only the metadata file that it was built on; the number of attempts is limited.", f"{_SPEC}, Commit Conflict Resolution and Retry"),
    # The table metadata's document: snapshots, refs, properties, versions
    Rule("snapshot-id-unique", "A snapshot id is used only once.", f"{_SPEC}, Snapshots"),
    Rule("sequence-increases", "A new snapshot's sequence number is above the table's last-sequence-number; v1 has no sequence numbers.", f"{_SPEC}, Sequence Numbers"),
    Rule("row-ids-assigned", "A snapshot of v3 and later has first-row-id, the table's next-row-id, and added-rows.", f"{_SPEC}, Snapshot Row IDs"),
    Rule("snapshot-log-order", "The timestamps of the snapshot-log do not decrease, except by up to a minute of clock skew.", "Iceberg, TableMetadata"),
    Rule("main-branch", "main is a branch and is never removed.", f"{_SPEC}, Snapshot References"),
    Rule("ref-type", "Only branches take commits and fast-forwards, and a ref keeps its type.", "Iceberg, UpdateSnapshotReferencesOperation"),
    Rule("ref-retention", "A ref's retention settings are above 0; a tag has only max-ref-age-ms.", f"{_SPEC}, Snapshot References"),
    Rule("rollback-ancestor", "A rollback sets an ancestor of the current snapshot.", "Iceberg, SetSnapshotOperation.rollbackTo"),
    Rule("fast-forward-ancestor", "A branch is an ancestor of the snapshot that it is fast-forwarded to.", "Iceberg, UpdateSnapshotReferencesOperation.fastForward"),
    Rule("cherry-pick", "An append or a partition overwrite can be cherry-picked once; any other snapshot only by fast-forward.", "Iceberg, CherryPickOperation"),
    Rule("expire-referenced", "A snapshot that a ref points to does not expire.", "Iceberg, RemoveSnapshots"),
    Rule("expire-gc", "Snapshots of a table with gc.enabled=false do not expire.", "Iceberg, RemoveSnapshots"),
    Rule("reserved-property", "Table properties have no reserved names, and their values are strings.", "Iceberg, TableProperties.RESERVED_PROPERTIES"),
    Rule("format-version-rises", "The format version never decreases and is at most 4.", "Iceberg, TableMetadata.upgradeFormatVersion"),
    # Schemas, partition specs and sort orders
    Rule("schema-names", "A name in a schema change identifies one column, and no two columns share a name.", "Iceberg, SchemaUpdate"),
    Rule("reserved-columns", "No table column has the name of a metadata column.", f"{_SPEC}, Reserved Field IDs"),
    Rule("schema-conflict", "A schema change does not drop and change the same column.", "Iceberg, SchemaUpdate"),
    Rule("schema-struct", "Fields are added only to structs and moved only within theirs; a list keeps its element and a map its value.", f"{_SPEC}, Schema Evolution"),
    Rule("schema-map-key", "The key of a map does not change.", "Iceberg, SchemaUpdate"),
    Rule("type-promotion", "A type changes only by a promotion that the format version allows and that keeps partition values.", f"{_SPEC}, Schema Evolution"),
    Rule("required-columns", "A required column is added with defaults and can have values; an optional column does not become required.", f"{_SPEC}, Default values"),
    Rule("default-values", "Defaults fit the type and need format version 3; the initial default never changes.", f"{_SPEC}, Default values"),
    Rule("types-of-version", "The table's format version supports the type of every column.", f"{_SPEC}, Primitive Types"),
    Rule("identifier-fields", "Identifier fields are required primitives, not float or double, in required structs.", f"{_SPEC}, Identifier Field IDs"),
    Rule("partition-source", "The source of a partition field is a primitive that its transform accepts, outside lists and maps.", f"{_SPEC}, Partitioning"),
    Rule("partition-names", "Names of partition fields are unique and differ from other columns' names.", "Iceberg, PartitionSpec.Builder"),
    Rule("partition-fields", "A spec has each pair of source and transform once; only existing fields are removed or renamed.", "Iceberg, BaseUpdatePartitionSpec"),
    Rule("partition-ids-v1", "In v1 the field ids of a spec are 1000, 1001 and so on without a gap.", f"{_SPEC}, Partition Evolution"),
    Rule("sort-source", "The source of a sort field is a primitive that its transform accepts, outside lists and maps.", f"{_SPEC}, Sorting"),
)  # fmt: skip


def rule(name: str) -> Rule:
    """Return the rule of this name.

    Raises
    ------
    OptionError
        The rule is unknown; the message lists all rules.
    """
    if name not in RULES:
        raise OptionError(f"unknown rule {name!r}; rules: {', '.join(RULES)}")
    return RULES[name]
