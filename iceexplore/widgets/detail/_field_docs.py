"""What fields mean, and the section of Iceberg's spec that says so.

Fields of manifests take their meaning from the columns of the metadata tables (`iceexplore.inspect`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from iceexplore.inspect import COLUMN_DOCS

__all__ = ["Meaning", "SECTIONS", "SPEC", "meaning", "spec_name"]

SPEC = "https://iceberg.apache.org/spec/"


@dataclass(frozen=True)
class Meaning:
    """A field's meaning; the title of a section of the spec, and the address of that. Both empty: the spec has none."""

    text: str
    section: str = ""

    @property
    def link(self) -> str:
        """Where the section is."""
        slug = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", self.section.lower()))
        return f"{SPEC}#{slug}" if slug else ""


_METADATA = {
    "location": "the table's base location, from which writers derive where their files go",
    "format-version": "version of the format; readers refuse a later one than they know",
    "table-uuid": "identifies the table, from its creation on",
    "last-sequence-number": "the highest sequence number given; it orders snapshots",
    "last-updated-ms": "when the metadata was written last, milliseconds since 1970, shown in UTC",
    "last-column-id": "the highest column id given; no id is given twice",
    "current-schema-id": "the schema that writers use",
    "current-snapshot-id": "the snapshot that readers see: that of the branch main",
    "schemas": "how many schemas the table had, and has",
    "default-spec-id": "the partition spec that writers use",
    "partition-specs": "how many partition specs the table had, and has",
    "default-sort-order-id": "the sort order that writers may use; readers go by that of each file",
    "sort-orders": "how many sort orders there are",
    "snapshots": "how many snapshots are kept: those whose files all exist",
    "refs": "how many branches and tags there are",
    "snapshot-log": "how many entries the log of current snapshots has",
    "metadata-log": "how many earlier metadata files are named",
    "statistics": "how many statistics files are named",
    "timestamp-ms": "when the next metadata file took its place, milliseconds since 1970, shown in UTC",
    "metadata-file": "location of that metadata file",
}
_SNAPSHOT = {
    "snapshot-id": "a unique long, usually random",
    "parent-snapshot-id": "the snapshot that this one was made from; none for the first",
    "sequence-number": "orders the changes of the table: deletes apply to what is older",
    "timestamp-ms": "when it was made, milliseconds since 1970, shown in UTC",
    "manifest-list": "the file that names its manifests",
    "schema-id": "the table's current schema when it was made",
    "key-id": "the key that encrypts the manifest list's key metadata",
}
_SUMMARY = {
    "total-data-files": "live data files in the snapshot, as its writer counted",
    "total-delete-files": "live delete files and deletion vectors in the snapshot",
    "total-records": "rows in the snapshot's data files, before deletes",
    "total-files-size": "bytes of the live files",
    "total-position-deletes": "rows in position deletes and deletion vectors",
    "total-equality-deletes": "rows in equality delete files",
    "added-data-files": "data files that it added",
    "deleted-data-files": "data files that it removed",
    "added-delete-files": "delete files and deletion vectors that it added",
    "removed-delete-files": "delete files and deletion vectors that it removed",
    "added-position-delete-files": "position delete files that it added",
    "removed-position-delete-files": "position delete files that it removed",
    "added-equality-delete-files": "equality delete files that it added",
    "removed-equality-delete-files": "equality delete files that it removed",
    "added-dvs": "deletion vectors that it added",
    "removed-dvs": "deletion vectors that it removed",
    "added-records": "rows in the files that it added",
    "deleted-records": "rows in the data files that it removed",
    "added-files-size": "bytes of the files that it added",
    "removed-files-size": "bytes of the files that it removed",
    "added-position-deletes": "positions in the deletes that it added",
    "removed-position-deletes": "positions in the deletes that it removed",
    "added-equality-deletes": "rows in the equality deletes that it added",
    "removed-equality-deletes": "rows in the equality deletes that it removed",
    "deleted-duplicate-files": "files removed that were recorded more than once",
    "changed-partition-count": "partitions with files added or removed",
    "manifests-created": "manifests that it wrote",
    "manifests-kept": "manifests that it carried over",
    "manifests-replaced": "manifests that it rewrote",
    "entries-processed": "manifest entries that it looked at",
    "wap.id": "Write-Audit-Publish id of a staged snapshot",
    "published-wap-id": "Write-Audit-Publish id of a snapshot that was published",
    "source-snapshot-id": "the snapshot that it was cherry-picked from",
    "engine-name": "the engine that made it",
    "engine-version": "that engine's version",
}
_REF = {
    "name": "the branch's or tag's name",
    "type": "a branch moves with each commit to it, a tag stays",
    "snapshot-id": "the tagged snapshot, or the latest of the branch",
}
_RETENTION = {
    "min-snapshots-to-keep": "how many of the branch's snapshots an expiry keeps at least",
    "max-snapshot-age-ms": "how old its snapshots may get before they expire, milliseconds",
    "max-ref-age-ms": "how old the ref may get before it expires, milliseconds; main never does",
}
_STATISTICS = {
    "statistics-path": "location of the Puffin file",
    "file-size-in-bytes": "size of the file",
    "blob-metadata": "the statistics in it: kind, and ids of the columns",
}
_LINEAGE = {
    "next-row-id": "higher than every row id given; the next snapshot's first-row-id",
    "first-row-id": "the row id of the first row in its first new data file",
    "added-rows": "row ids that it took, at most",
}
_OF_MANIFEST = {
    "manifest_path": "location of the manifest",
    "manifest_length": "size of the manifest, in bytes",
    "partition_spec_id": "the partition spec that its files were written with",
    "content": "whether it tracks data or delete files",
    "sequence_number": "sequence number with which the manifest was added",
    "min_sequence_number": "the lowest data sequence number of its live files",
    "added_snapshot_id": "the snapshot that added the manifest",
    "added_files_count": "its entries that are ADDED; null may be any",
    "existing_files_count": "its entries that are EXISTING; null may be any",
    "deleted_files_count": "its entries that are DELETED; null may be any",
    "added_rows_count": "rows in its ADDED files",
    "existing_rows_count": "rows in its EXISTING files",
    "deleted_rows_count": "rows in its DELETED files",
    "key_metadata": "encryption key metadata",
    "first_row_id": "the row id that its first file without one gets (v3)",
}
_PARTITION_RANGE = "smallest and largest value of this partition field among its files"

_ENTRY_FIELDS = ("status", "snapshot_id", "sequence_number", "file_sequence_number")
_FILE_FIELDS = (
    "content", "file_path", "file_format", "partition", "record_count", "file_size_in_bytes", "column_sizes",
    "key_metadata", "split_offsets", "equality_ids", "sort_order_id", "first_row_id", "referenced_data_file",
    "content_offset", "content_size_in_bytes", "lower_bounds", "upper_bounds", "value_counts",
)  # fmt: skip

SECTIONS = {
    "metadata": "Table Metadata Fields",
    "snapshot": "Snapshots",
    "summary": "Optional Snapshot Summary Fields",
    "ref": "Snapshot References",
    "retention": "Snapshot Retention Policy",
    "statistics": "Table Statistics",
    "lineage": "Row Lineage",
    "manifest list": "Manifest Lists",
    "entry": "Manifest Entry Fields",
    "file": "Data File Fields",
    "partition": "Partitioning",
    "vector": "Deletion Vectors",
    "v4": "Version 4: Metadata Structure and Representation",
}
_OF_KIND: dict[str, tuple[tuple[str, dict[str, str]], ...]] = {
    "table": (("metadata", _METADATA),),
    "metadata": (("metadata", _METADATA),),
    "snapshot": (("snapshot", _SNAPSHOT), ("summary", _SUMMARY)),
    "branch": (("ref", _REF), ("retention", _RETENTION)),
    "tag": (("ref", _REF), ("retention", _RETENTION)),
    "statistics": (("statistics", _STATISTICS),),
    "manifest-list": (("snapshot", _SNAPSHOT),),
    "data-manifest": (("manifest list", _OF_MANIFEST),),
    "delete-manifest": (("manifest list", _OF_MANIFEST),),
}
_OURS = {
    "ordinal": "place in the file, from 0",
    "dialect": "which version's manifests the file is made of",
    "length": "size of the file",
    "entries": "rows of the file",
    "removed_by": "what removes it from the snapshot",
    "removed_entries": "entries that manifest DVs remove",
    "manifest_dvs": "those manifest DVs: rows of the root",
    "spark.app.id": "the Spark application that made it",
    "operation": "append: adds rows; replace: the same rows in other files; overwrite: both; delete: removes",
}
#: Below version 4, what a field of the content entry is called in the manifest list, and in a manifest.
_MANIFEST_NAMES = {
    "location": "manifest_path",
    "file_size_in_bytes": "manifest_length",
    "snapshot_id": "added_snapshot_id",
    "content_type": "content",
}
_FILE_NAMES = {
    "location": "file_path",
    "content_type": "content",
    "referenced_file": "referenced_data_file",
    "offset": "content_offset",
    "size_in_bytes": "content_size_in_bytes",
}
_MANIFESTS = ("data-manifest", "delete-manifest")
_LEAF = {
    "record_count": "its entries; some writers count the rows of its files",
    "sequence_number": _OF_MANIFEST["sequence_number"],
    "first_row_id": "the row id that its first file without one gets",
}
#: A content entry has one shape for files, vectors and manifests: what a field means for some of them.
_BY_KIND = {
    "data-manifest": _LEAF,
    "delete-manifest": _LEAF | {"referenced_file": "the manifest whose files its deletes are for; null: of any"},
    "deletion-vector": {"record_count": "positions that the vector deletes"},
    "manifest-dv": {
        "record_count": "entries that the vector removes",
        "referenced_file": "the manifest whose entries it removes",
        "location": "location of its Puffin file; of an inline vector, that of the manifest",
        "inline_content": "the vector itself, where it stands in no file",
        "sequence_number": "that of the snapshot that wrote it",
    },
}
_FILES = ("data-file", "position-delete", "equality-delete", "deletion-vector", "manifest-dv")


def spec_name(kind: str, name: str, version: int) -> str:
    """What the spec of a format version calls a field of a node: of a content entry, the names of V4's proposal."""
    if version >= 4:
        return name
    if kind in _MANIFESTS:
        return _MANIFEST_NAMES.get(name, name)
    return _FILE_NAMES.get(name, name) if kind in _FILES else name


def meaning(kind: str, name: str, version: int = 3, *, partition: bool = False) -> Meaning | None:
    """What a field of a kind of node means; None where nobody says.

    Parameters
    ----------
    name
        As `spec_name` gives it.
    partition
        It is a field of the partition spec: a value of a file, a range of a manifest.
    """
    if partition:
        text = _PARTITION_RANGE if kind in _MANIFESTS else "the file's value of this field of the partition spec"
        return Meaning(text, SECTIONS["partition"])
    if name in _LINEAGE:
        return Meaning(_LINEAGE[name], SECTIONS["lineage"])
    if name == "operation":
        return Meaning(_OURS[name], SECTIONS["snapshot"])
    for section, fields in () if version >= 4 and kind in _MANIFESTS else _OF_KIND.get(kind, ()):
        if name in fields:
            return Meaning(fields[name], SECTIONS[section])
    if name in _OURS:
        return Meaning(_OURS[name])
    if kind not in (*_MANIFESTS, *_FILES):
        return None
    name = {"offset": "content_offset", "size_in_bytes": "content_size_in_bytes"}.get(name, name)  # of V4's vectors
    text = _BY_KIND.get(kind, {}).get(name, "") or COLUMN_DOCS.get(f"entries.{name}", "")
    text = text or COLUMN_DOCS.get(f"content_entries.{name}") or COLUMN_DOCS.get(name) or _OF_MANIFEST.get(name, "")
    if not text:
        return None
    if version >= 4:
        return Meaning(text, SECTIONS["v4"])
    if kind in _MANIFESTS:
        return Meaning(f"{text} (of the content entry, as which all versions are read; no manifest list has it)")
    section = "entry" if name in _ENTRY_FIELDS else "file" if name in _FILE_FIELDS else ""
    if kind == "deletion-vector" and name.startswith("content_"):
        section = "vector"
    return Meaning(text, SECTIONS.get(section, ""))
