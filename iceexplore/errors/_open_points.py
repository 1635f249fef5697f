"""The points that the V4 proposal leaves open or contradicts, and iceexplore's choice for each."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["OPEN_POINTS", "OpenPoint"]


@dataclass(frozen=True)
class OpenPoint:
    """A point on which the proposal is silent, or has several answers.

    Attributes
    ----------
    id
        Short and stable, in kebab case.
    title
        The question.
    says
        Quotations from the document; empty if it is silent.
    written
        What iceexplore writes.
    read
        Other forms that iceexplore reads; empty if it reads only what it writes.
    rules
        The rules that result from this choice (keys of `RULES`).
    fields
        The fields that the point concerns, such as ``manifest.status``: a kind of entry and the field's name. Kinds are
        those of the tree's nodes, and ``manifest``, ``file`` (files and their vectors) and ``any``; ``partition``
        means the fields of the partition spec.
    draft
        The answers in the V4 draft, or in the spec on which it builds: pairs of a quotation and its source.
    """

    id: str
    title: str
    says: tuple[str, ...]
    written: str
    read: str = ""
    rules: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    draft: tuple[tuple[str, str], ...] = ()

    @property
    def answer(self) -> str:
        """What iceexplore writes, and what it reads besides."""
        return f"Written: {self.written}" + (f" Also read: {self.read}" if self.read else "")


_POINTS = (
    OpenPoint("id-147", "Two fields have the id 147 in the second table of entries.", ("147 deletion_vector struct", "147 partition_spec_id int"), "147 for deletion_vector and 148 for partition_spec_id, as in the first table.", "147 as an int is partition_spec_id.", fields=("any.partition_spec_id",)),
    OpenPoint("stats-id", "The statistics have two ids and names.", ("149 (individual fields in content_stats struct will have their own IDs)", "column_stats struct will have their own IDs)"), "149 content_stats.", "10000 column_stats, distinguished from the statistics of column 0 by its children."),
    OpenPoint("inline-dv-size", "An inline manifest DV has no file, but location is required, and a size with it.", ("Total file size in bytes. Must be defined if location is defined",), "The location of the leaf, and no size.", "A null or empty location.", ("size-with-location",), fields=("manifest-dv.location", "manifest-dv.file_size_in_bytes",)),
    OpenPoint("referenced-by-5", "The text lets a manifest DV reference a data file.", ("Location of data file that a DV references if content_type is 1 or 5.",), "The location of the leaf manifest, as in the document's figures.", "", ("referenced-file",), fields=("manifest-dv.referenced_file",)),
    OpenPoint("one-manifest-dv", "How many manifest DVs a leaf has.", ("There can be at most 1 leaf manifest DV for a given leaf manifest.", "By allowing for both an ADDED and EXISTING delete vector we can preserve the ability to map exactly what has occurred in the snapshot to changes in the Root Manifest."), "One merged DV, and the one that it replaces as DELETED (dv_encoding=\"removed\"); \"replace\" and \"delta\" on request.", "All three encodings.", ("one-manifest-dv",), fields=("manifest-dv.status", "manifest-dv.record_count",), draft=(("stored inline on the root manifest entry that references the leaf manifest", "V4 draft, Manifest Deletion Vectors (apache/iceberg#16025)"),)),
    OpenPoint("compacted-manifests", "Whether a manifest that compaction replaced is listed as DELETED.", ("Deleted entries are required when the snapshot has a non-null parent-id.",), "DELETED, with its manifest DV, as the text has it; the figures do not show such rows.", "Roots without them.", ("deleted-entries", "compaction-existing"), fields=("manifest.status",), draft=(("Writers must include DELETED entries in the manifest for the snapshot that deletes the file. The next manifest written for those entries must omit the DELETED entries.", "V4 draft, Tracked Files (apache/iceberg#16025)"),)),
    OpenPoint("deleted-manifest", "What a DELETED manifest means to a reader of changes.", ("The diff can be computed from applying m1_dv on m1 and the remaining 3 entries are the newly deleted data files.",), "Never a manifest whose entries are removed: a manifest DV removes them.", "A DELETED manifest counts as compacted; with `changes_of(..., deleted_manifests=\"removed\")`, its entries count as removed (option 1 of scenario 1).", ("leaf-change-by-dv",), fields=("manifest.status",)),
    OpenPoint("scenario-2", "Whether a rewritten manifest is ADDED or EXISTING.", ("The new root manifest file only tracks m2 as ADDED.", "two existing Data Manifests can be combined into a single Data Manifest which would also be marked as existing."), "EXISTING.", "ADDED, which is noted as a doubt.", ("added-is-change", "compaction-existing"), fields=("manifest.status",)),
    OpenPoint("identity-expressions", "Whether identity fields have expressions.", ("store new top level derived column stats structs for all partition transforms except for identity transforms since identity transforms are just the columns themselves.",), "None: specs keep identity fields in the notation of v3.", "Expressions of identity.", fields=("any.partition",)),
    OpenPoint("identity-value", "Where the value of an identity partition is in layout (a).", ("derived_value string; // for identity partitioning, never truncated", "identity transform values stored in stats must not be truncated."), "In the lower bound of the column, untruncated.", "derived_value (offset 9 in the column's struct, our id).", ("partition-rebuilds",), fields=("file.partition",)),
    OpenPoint("layout-b-ids", "Ids of partition values in layout (b).", ("partition_1001_ts_day date; // defined for data files",), "40 + 4 x (field id - 1000) in the source column's struct for the value of a file, plus 1 and 2 for the bounds of a manifest, plus 3 for a null count, which is ours. Field ids above 1039 are refused.", "", ("partition-rebuilds",), fields=("any.partition",)),
    OpenPoint("several-columns", "Transforms of several columns in layout (b), and the hash of a bucket of several columns.", ("It's an open question if and how this model would work for multi-argument transforms",), "Layout (b) refuses them. In layout (a) the hash is 31 h + hash of each column, null as 0: our choice, for the document defines none.", "Partition values as stored, whatever the hash.", fields=("any.partition",)),
    OpenPoint("tight-bounds", "Whether bounds may be truncated, and how a reader knows.", (), "tight_bounds (offset 3), which the draft has and the proposal lacks.", "Files without it: the bounds may be truncated.", draft=(("When true, `lower_bound` and `upper_bound` must be equal to the min and max values", "Iceberg spec, Content Stats"),)),
    OpenPoint("lengths", "Which columns have lengths.", ("average_uncompressed_length int; // generated for variable length types",), "Strings, binaries, geometries, geographies and variants only; 7 and 8 are the offsets, of which 8 is our choice.", draft=(("Avg value size in memory (uncompressed) in bytes over non-null values to estimate memory consumption", "Iceberg spec, Content Stats"),)),
    OpenPoint("partition-field-id", "Where an expression has its partition-field-id.", ("\"expr\": {\"source-id\": 9, \"transform\": \"day\", \"name\": \"ts_day\"}, \"partition-field-id\": 1000", "\"expr\": {\"source-ids\": [2, 3], \"transform\": \"bucket[16]\", \"name\": \"bucket_a_b\", \"partition-field-id\": 1001}"), "Beside expr, with the name.", "Inside expr, too."),
    OpenPoint("record-count", "The record count of a manifest.", ("Number of records in this file, or the cardinality of a deletion vector",), "The number of its entries.", "The number of its rows.", fields=("manifest.record_count",)),
    OpenPoint("aggregates", "Whether counts and statistics of a manifest include what its manifest DV removes.", (), "They describe the leaf as written; live counts subtract the manifest DV.", "", ("manifest-stats", "stats-cover"), fields=("manifest.added_files_count", "manifest.existing_files_count", "manifest.deleted_files_count", "manifest.added_rows_count", "manifest.existing_rows_count", "manifest.deleted_rows_count",)),
    OpenPoint("position-deletes", "Position delete files of v2, which have no entry in V4.", ("Must be defined if content type is 1 or 5.",), "They stay in their old leaves; rewriting turns them into deletion vectors, or leaves the leaf alone.", "", ("dv-struct",), fields=("position-delete.content_type",), draft=(("Position delete files must not be added to v3 tables, but existing position delete files are valid.", "Iceberg spec, Delete Formats"),)),
    OpenPoint("inheritance", "What the rows of a root inherit.", ("This enables being able to access the fields for the entry (instead of more complicated inheritance strategies that are used", "Inherited when null."), "Null snapshot ids, sequence numbers and first row ids in a leaf's entries come from the leaf's row in the root, and those in the root's rows from the snapshot.", fields=("any.snapshot_id", "any.sequence_number", "any.file_sequence_number",), draft=(("Values for these fields are inherited from manifest metadata when `null`.", "Iceberg spec, Manifest Entry Fields"),)),
    OpenPoint("unaffiliated", "How many delete manifests may be unaffiliated, and how affiliated ones are rewritten.", ("a small number of unaffiliated delete manifests can be maintained.", "Flushing the data files or DVs from the root to leaf manifests will require leaf delete manifests to be rewritten."), "Two unaffiliated ones after every commit; the delete manifests of one data manifest are merged once there are four (unaffiliated_manifests, affiliated_manifests; measured in benchmarks/results/evidence.md).", "", ("affinity",), fields=("delete-manifest.referenced_file",)),
    OpenPoint("thresholds", "When the root is flushed.", ("Ideally the time to do I/O on the root node should be close to the round trip latency of cloud storage systems.",), "At 4,000 data files and 8,000 deletes, for a round trip of 50 ms (benchmarks/flush.py); benchmarks/results/evidence.md compares the criteria.", fields=("root-manifest.entries", "root-manifest.length",)),
    OpenPoint("inline-dv-bytes", "Which manifest DVs are inline.", ("Are Manifest Delete Vectors always stored inline, Puffin, or possibly both?",), "Those of at most 4,096 bytes (inline_dv_bytes). A lower limit would save bytes, a higher one round trips (benchmarks/results/evidence.md).", "Both.", fields=("manifest-dv.inline_content", "manifest-dv.offset", "manifest-dv.size_in_bytes",), draft=(("stored inline on the root manifest entry that references the leaf manifest", "V4 draft, Manifest Deletion Vectors (apache/iceberg#16025)"),)),
)  # fmt: skip

#: Every open point, by id.
OPEN_POINTS: dict[str, OpenPoint] = {point.id: point for point in _POINTS}
