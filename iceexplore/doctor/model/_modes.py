"""The numbered ways in which tables break: what breaks, and who reported it. A number never changes its meaning."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MODES", "Mode"]


@dataclass(frozen=True)
class Mode:
    """One way for a table to break.

    Attributes
    ----------
    number
        The mode's number in ``docs/doctor.md`` and in `Finding.modes`.
    text
        What breaks, in a sentence.
    source
        The issues that report the mode, separated by commas, or the document that has the rule; empty if there is
        neither. An issue without a project, such as ``#7007``, is one of apache/iceberg.
    """

    number: int
    text: str
    source: str = ""

    @property
    def issues(self) -> tuple[str, ...]:
        """The issues in `source`, each with its project, such as ``apache/iceberg#7007``."""
        names = (name.strip() for name in self.source.split(",") if "#" in name)
        return tuple(f"apache/iceberg{name}" if name.startswith("#") else name for name in names)


def _modes(*modes: tuple[int, str] | tuple[int, str, str]) -> dict[int, Mode]:
    return {mode[0]: Mode(*mode) for mode in modes}


_PROPOSAL = "V4 proposal"

#: Every mode, by its number.
MODES: dict[int, Mode] = _modes(
    # Files that are missing, damaged or in the wrong place
    (1, "A live data file is gone.", "#7007, #2435"),
    (2, "A manifest is gone.", "#6136, #10535"),
    (3, "The manifest list of the current snapshot is gone.", "#1944, #9406"),
    (4, "Manifest lists of old snapshots are gone, so these snapshots cannot be expired.", "#9584"),
    (5, "A writer wrongly assumed that its commit had failed, and deleted the metadata file that the catalog points to.", "#7151"),
    (6, "After a timeout, a writer wrongly assumed that its commit had failed, and deleted the files of the committed snapshot.", "#12792, #12499"),
    (7, "Snapshot expiration deleted files that are still referenced.", "#13568"),
    (8, "Orphan file removal deleted live files or statistics files.", "#4194"),
    (9, "Two tables share a location.", "#17213"),
    (10, "A data file is truncated, or does not have the format that its manifest entry states.", "#8620, #10005"),
    (11, "The table was moved or copied, but its metadata has the old absolute paths.", "#3142, #1617"),
    # Metadata JSON
    (12, "The version hint is missing, stale or corrupt.", "duckdb-iceberg#29, #1443"),
    (13, "A metadata file is compressed but its name lacks .gz, or it is not compressed but its name has .gz.", "#7977"),
    (14, "The metadata file is huge.", "iceberg-python#3162"),
    (15, "Two writers committed to a file-system table at the same time, and one commit was lost.", "#970, #14857"),
    (16, "A ref names a snapshot that the table does not have."),
    (17, "Several snapshots have the same id.", "iceberg-go#1592"),
    (18, "last-sequence-number is below the sequence number of a snapshot.", "lakekeeper#949"),
    (19, "The snapshot log is out of order.", "#4144"),
    (20, "A snapshot has the parent -1, or a metadata file lists itself in its metadata-log."),
    (21, "Several columns have the same field id.", "iceberg-go#593"),
    (22, "An old partition spec uses a column that was dropped.", "#10234, #4563"),
    (23, "A v3 table has no next-row-id, or a rewrite reassigned row ids."),
    # Manifest lists
    (24, "The file counts in the manifest list are wrong, so readers skip manifests.", "risingwave#17976"),
    (25, "manifest_length in the manifest list is wrong.", "iceberg-go#438"),
    (26, "Manifests have no partition summaries, and later commits do not add them.", "iceberg-go#1309"),
    (27, "The bounds of a partition summary are the wrong way round."),
    (28, "A sequence number or min_sequence_number is wrong, so deletes are not applied.", "iceberg-go#1147, #4514"),
    (29, "The totals of snapshot summaries are wrong, and the error grows with further commits.", "iceberg-rust#2576"),
    (30, "The table has very many small manifests.", "#16336"),
    # Manifests and entries
    (31, "Several live entries list the same data file.", "#13763"),
    (32, "Several entries list one file with different sizes or row counts, because the file was overwritten.", "#8953, #7890, #9172"),
    (33, "The file size or row count in a manifest entry is wrong.", "#1980"),
    (34, "The bounds of a column are the wrong way round, so filters drop rows."),
    (35, "Counts in column metrics are impossible, such as more nulls than rows."),
    (36, "Column metrics were lost when manifests were rewritten after the partition spec had changed.", "#5641"),
    (37, "Split offsets are past the end of the file.", "#8834, #8860"),
    (38, "The partition tuple of a file does not fit the file's partition spec."),
    (39, "The key-value metadata in a manifest's Avro header is malformed.", "#13895, #17535, duckdb-iceberg#799"),
    (40, "The fields of an Avro manifest have no field ids."),
    (41, "A data manifest lists delete files, or a delete manifest lists data files.", "#11981"),
    (42, "Data files have no field ids.", "duckdb-iceberg#242"),
    (43, "An EXISTING entry has no sequence number."),
    # Deletes
    (44, "Position deletes name a data file by its old path, or with a URI scheme that differs from the one in the file's manifest entry.", "duckdb-iceberg#685, #11645"),
    (45, "Position or equality deletes apply to no live data file.", "#6126, #4127"),
    (46, "A deletion vector is live after its data file was compacted away.", "iceberg-go#1221, #13042"),
    (47, "A data file has two live deletion vectors.", "#17206, iceberg-go#1372"),
    (48, "A deletion vector is incomplete, corrupt, or not in a Puffin file, or it deletes positions past the end of its data file.", "#12088"),
    (49, "An equality delete file names no equality columns, or names a column that was dropped.", "iceberg-go#1951"),
    # V4 trees
    (50, "The manifests of a snapshot do not form a valid tree: there is not exactly one root manifest, there are more than two levels, or a manifest has an entry with a content type that its level does not allow.", _PROPOSAL),
    (51, "A manifest deletion vector is malformed, references a manifest that is not in the root manifest, is the second one of its manifest, or removes more entries than its manifest has.", _PROPOSAL),
    (52, "An entry has a deletion_vector or manifest_stats that its content type does not allow, or lacks one that its content type requires.", _PROPOSAL),
    (53, "The root manifest has wrong counts or aggregated statistics for a leaf manifest.", _PROPOSAL),
    (54, "A commit removed a file without a manifest deletion vector, by rewriting or dropping the file's leaf manifest; or it listed its new files in a manifest with the status EXISTING.", _PROPOSAL),
    (55, "The deletion vector of a data file is live, although a manifest deletion vector removes the data file.", _PROPOSAL),
    (56, "A delete manifest is affiliated with a data manifest that is not live, or that does not list all data files to which its deletes apply; or a data manifest is affiliated with a delete manifest, which is not allowed.", _PROPOSAL),
    (57, "The statuses of entries do not match what the commit changed, or a file that the commit removed has no DELETED entry.", _PROPOSAL),
    (58, "A file's partition value cannot be derived from its column statistics, because they are missing or truncated.", _PROPOSAL),
    # Added later, about all of the topics above
    (59, "The bounds of a partition summary are too narrow, so readers skip manifests.", "#15128"),
    (60, "first_row_id is negative, or ranges of row ids overlap.", "ClickHouse#118299, iceberg-go#741"),
    (61, "Bounds of UUIDs have the wrong byte order.", "ClickHouse#118366, ClickHouse#118380"),
    (62, "A bound has more or fewer bytes than its type allows.", "ClickHouse#118364, ClickHouse#116999"),
    (63, "Bounds were taken from only one of several row groups, and are too narrow.", "iceberg-rust#1519"),
    (64, "All column metrics are missing because one column has an unsupported type.", "ClickHouse#112934"),
    (65, "Rows got new row ids in an update.", "ClickHouse#119377, olake#1162, #13232, paimon#9244"),
    (66, "A snapshot names the manifest list of another commit attempt.", "#14195, #14583"),
    (67, "The version hint or the catalog points to a metadata file that is not the newest.", "ClickHouse#114324, ClickHouse#120165"),
    (68, "Delete files have a different partition spec from the data files that they target, so the deletes never apply.", "ClickHouse#109838"),
    (69, "A compaction gave its new files an older sequence number, and removed equality deletes that still apply to them.", "#10312"),
    (70, "Engines answer count(*) from totals that are wrong.", "ClickHouse#111617"),
    (71, "A snapshot has no operation or summary, or a v2 table has no refs.", "duckdb-iceberg#412, ClickHouse#106896"),
    (72, "A column has field id 0, or one in the reserved range.", "paimon#9012"),
    (73, "A delete manifest's header does not state the format version, so readers take it for a v1 manifest.", "duckdb-iceberg#1315, iceberg-go#1760"),
    (74, "The key 'schema' in a manifest's header has the schema of manifest entries instead of the table's schema.", "iceberg-rust#2791, duckdb-iceberg#1020"),
    (75, "A manifest's Avro schema lets required fields be null, or does not let optional fields be null.", "duckdb-iceberg#504, paimon#5384"),
    (76, "A partition value has the wrong type.", "Embucket#125, seaweedfs#11090"),
    (77, "Field names that Avro does not allow were escaped, and a reader does not restore the original names.", "iceberg-rust#2536"),
    (78, "A manifest lacks its last block, or ends too early.", "iceberg-go#644"),
    (79, "A column's type was widened, and a reader uses the new type to decode bounds that were written with the former type.", "trino#30544"),
    (80, "A manifest that is not encrypted has encryption key metadata, or a writer copied key metadata to files that it did not encrypt.", "#17533"),
    (81, "A snapshot's schema-id names a schema that the table does not have.", "#3849"),
    (82, "Timestamps of snapshots and logs contradict each other.", "#1109, #17360, iceberg-python#2938"),
    (83, "A metadata file lacks a snapshot that an older metadata file has."),
    (84, "A manifest's header lacks required keys."),
    (85, "A V4 entry has an unknown status, unsorted split offsets, or another value that the V4 draft does not allow.", "V4 draft"),
)  # fmt: skip
