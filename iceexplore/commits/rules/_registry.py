"""The named rules that commits keep, and where each comes from. Checks and refusals speak of them by name."""

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
        Short, stable, kebab-case.
    text
        What must hold, one sentence.
    source
        The section that it comes from.
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
    Rule("two-levels", "Manifests stand in the root only; leaves hold files.", f"{_PROPOSAL}, Why limit tree depth to 2?"),
    Rule("leaf-data-content", "A leaf data manifest holds DATA entries only.", f"{_PROPOSAL}, Single Manifest Structure"),
    Rule("leaf-delete-content", "A leaf delete manifest holds DVs and equality deletes only.", f"{_PROPOSAL}, Single Manifest Structure"),
    Rule("dv-struct", "Exactly DVs and manifest DVs have a deletion_vector struct.", f"{_PROPOSAL}, V4 content entry structure"),
    Rule("no-inline-data-dv", "The DV of a data file is a Puffin blob, never inline.", f"{_PROPOSAL}, Why not have inline data DVs?"),
    Rule("one-manifest-dv", "A leaf has at most one live manifest DV (two with delta encoding, of different status).", f"{_PROPOSAL}, Commit Procedure"),
    Rule("one-dv", "A data file has at most one live DV.", f"{_SPEC}, Deletion Vectors"),
    Rule("orphan-dv", "A DV or manifest DV refers to something that is live.", f"{_PROPOSAL}, Removing Data Files"),
    Rule("dv-in-range", "The positions of a DV lie within what it refers to.", f"{_SPEC}, Deletion Vectors"),
    Rule("added-is-change", "What changes the table's data is ADDED (or DELETED), everything else EXISTING.", f"{_PROPOSAL}, Root Manifests"),
    Rule("deleted-entries", "What the snapshot removed from the root is there as DELETED.", f"{_PROPOSAL}, version_info"),
    Rule("leaf-change-by-dv", "A net change to a leaf is made by a manifest DV, never by removing and adding the leaf.", f"{_PROPOSAL}, Commit Procedure"),
    Rule("compaction-existing", "Compaction merges what was there before, never this commit's own adds or deletes.", f"{_PROPOSAL}, Manifest Compaction"),
    Rule("manifest-stats", "Exactly manifests have manifest_stats, and they describe the leaf as written.", f"{_PROPOSAL}, V4 content entry structure"),
    Rule("size-with-location", "file_size_in_bytes is set exactly where the entry has a file of its own.", f"{_PROPOSAL}, V4 content entry structure"),
    Rule("manifest-sequence", "A manifest's sequence_number equals its file_sequence_number.", f"{_PROPOSAL}, version_info"),
    Rule("content-fields", "sort_order_id, equality_ids and first_row_id are set only for the content types that have them.", f"{_PROPOSAL}, V4 content entry structure"),
    Rule("affinity", "A delete manifest affiliated to a leaf holds deletes of that leaf's files only.", f"{_PROPOSAL}, Optional Affinity"),
    Rule("stats-cover", "The statistics of a manifest's entry cover those of its entries.", f"{_PROPOSAL}, Goals: Aggregate Metrics"),
    Rule("summaries-cover", "The partition summaries of a manifest list cover the tuples of its manifests' live entries.", f"{_SPEC}, Manifest Lists"),
    Rule("partition-rebuilds", "The partition tuple of every file can be rebuilt from its statistics.", f"{_PROPOSAL}, How do we remove partition tuple"),
    Rule("sequence-order", "No sequence number is above the snapshot's; a file's data sequence number is not above its file sequence number's snapshot.", f"{_SPEC}, Sequence Numbers"),
    Rule("row-ids", "Row id ranges of live data files do not overlap and lie below next-row-id.", f"{_SPEC}, Row Lineage"),
    # Operations
    Rule("operation-name", "append only adds, replace keeps the rows, overwrite adds and removes, delete only removes.", f"{_SPEC}, Snapshots"),
    Rule("duplicate-file", "A file is in a table once.", f"{_SPEC}, Manifests"),
    Rule("files-exist", "Files to be removed or rewritten are live.", f"{_SPEC}, Commit Conflict Resolution and Retry"),
    Rule("whole-files", "Metadata deletes whole files: of each file that a filter may match, every row surely does.", "Iceberg, ManifestFilterManager"),
    Rule("schema-unchanged", "The schema and the spec are those that the commit was made with.", f"{_SPEC}, Commit Conflict Resolution and Retry"),
    Rule("no-new-conflicting-files", "No data was added since that a serializable operation should have seen.", "Iceberg, MergingSnapshotProducer.validateAddedDataFiles"),
    Rule("no-new-deletes", "No deletes were added since for files that this commit replaces.", "Iceberg, MergingSnapshotProducer.validateNoNewDeletesForDataFiles"),
    Rule("data-files-still-there", "Data files that new deletes refer to are still there.", "Iceberg, MergingSnapshotProducer.validateDataFilesExist"),
    Rule("no-concurrent-dv", "No other commit added a DV for the same data file.", "Iceberg, MergingSnapshotProducer.validateAddedDVs"),
    Rule("deletes-need-v2", "Delete files exist from format version 2 on, DVs from 3 on; 3 and later add no position delete files.", f"{_SPEC}, Version 2, Version 3"),
    Rule("table-unchanged", "A metadata file is replaced only by a commit that was built on it; attempts are limited.", f"{_SPEC}, Commit Conflict Resolution and Retry"),
    # The table metadata's document: snapshots, refs, properties, versions
    Rule("snapshot-id-unique", "A snapshot id is given once.", f"{_SPEC}, Snapshots"),
    Rule("sequence-increases", "A new snapshot's sequence number is above the table's last; v1 has none.", f"{_SPEC}, Sequence Numbers"),
    Rule("row-ids-assigned", "A snapshot of v3 and later has first-row-id, the table's next-row-id, and added-rows.", f"{_SPEC}, Snapshot Row IDs"),
    Rule("snapshot-log-order", "The snapshot-log does not go back in time (by more than a minute between two clocks).", "Iceberg, TableMetadata"),
    Rule("main-branch", "main is a branch and is never removed.", f"{_SPEC}, Snapshot References"),
    Rule("ref-type", "Commits and fast-forwards go to branches, and a ref keeps its type.", "Iceberg, UpdateSnapshotReferencesOperation"),
    Rule("ref-retention", "A ref's retention is above 0; a tag has max-ref-age-ms only.", f"{_SPEC}, Snapshot References"),
    Rule("rollback-ancestor", "A rollback goes to an ancestor of the current snapshot.", "Iceberg, SetSnapshotOperation.rollbackTo"),
    Rule("fast-forward-ancestor", "A branch that is fast-forwarded is an ancestor of where it goes.", "Iceberg, UpdateSnapshotReferencesOperation.fastForward"),
    Rule("cherry-pick", "An append or an overwrite of whole partitions is picked, once; anything else must be a fast-forward.", "Iceberg, CherryPickOperation"),
    Rule("expire-referenced", "A snapshot at which a ref points does not expire.", "Iceberg, RemoveSnapshots"),
    Rule("expire-gc", "Snapshots of a table with gc.enabled=false do not expire.", "Iceberg, RemoveSnapshots"),
    Rule("reserved-property", "Reserved names are no table properties, and properties are strings.", "Iceberg, TableProperties.RESERVED_PROPERTIES"),
    Rule("format-version-rises", "The format version is never lowered, and is 4 at most.", "Iceberg, TableMetadata.upgradeFormatVersion"),
    # Schemas, partition specs and sort orders
    Rule("schema-names", "A name of a change means one column, and no two columns share a name.", "Iceberg, SchemaUpdate"),
    Rule("reserved-columns", "No column of a table has the name of a metadata column.", f"{_SPEC}, Reserved Field IDs"),
    Rule("schema-conflict", "A column that is dropped is not changed at once.", "Iceberg, SchemaUpdate"),
    Rule("schema-struct", "Fields are added to structs, and moved within theirs; a list keeps its element, a map its value.", f"{_SPEC}, Schema Evolution"),
    Rule("schema-map-key", "The key of a map does not change.", "Iceberg, SchemaUpdate"),
    Rule("type-promotion", "A type changes by a promotion of the format version, which leaves partition values as they were.", f"{_SPEC}, Schema Evolution"),
    Rule("required-columns", "A required column is added with defaults and can have values; an optional one does not become required.", f"{_SPEC}, Default values"),
    Rule("default-values", "Defaults fit the type and exist from v3 on; the initial one never changes.", f"{_SPEC}, Default values"),
    Rule("types-of-version", "A column has a type of the table's format version.", f"{_SPEC}, Primitive Types"),
    Rule("identifier-fields", "Identifier fields are required primitives, not float or double, in required structs.", f"{_SPEC}, Identifier Field IDs"),
    Rule("partition-source", "The source of a partition field is a primitive outside lists and maps that its transform takes.", f"{_SPEC}, Partitioning"),
    Rule("partition-names", "Names of partition fields are unique, and no other column's.", "Iceberg, PartitionSpec.Builder"),
    Rule("partition-fields", "A spec has a source and transform once; only fields that it has are removed and renamed.", "Iceberg, BaseUpdatePartitionSpec"),
    Rule("partition-ids-v1", "In v1 the ids of a spec's fields count from 1000 without a gap.", f"{_SPEC}, Partition Evolution"),
    Rule("sort-source", "The source of a sort field is a primitive outside lists and maps that its transform takes.", f"{_SPEC}, Sorting"),
)  # fmt: skip


def rule(name: str) -> Rule:
    """The rule of this name.

    Raises
    ------
    OptionError
        There is none; the message lists those that there are.
    """
    if name not in RULES:
        raise OptionError(f"no rule {name!r}; there are {', '.join(RULES)}")
    return RULES[name]
