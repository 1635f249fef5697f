"""The meanings of fields, with the section of Iceberg's spec that defines each.

Meanings of manifest fields come from the columns of the metadata tables (`iceexplore.inspect`).
"""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass
from typing import Any

from iceexplore.errors import OPEN_POINTS, OpenPoint
from iceexplore.inspect import COLUMN_DOCS
from iceexplore.manifests import field_id
from iceexplore.metadata import Dialect

__all__ = [
    "ENTRY_KINDS",
    "Meaning",
    "PROPOSAL",
    "SECTIONS",
    "SPEC",
    "column_meaning",
    "help_sent",
    "id_of_field",
    "meaning",
    "open_points",
    "spec_name",
]

SPEC = "https://iceberg.apache.org/spec/"
#: The document of the V4 proposal; it has no links to its sections.
PROPOSAL = "https://s.apache.org/iceberg-single-file-commit"


@dataclass(frozen=True)
class Meaning:
    """A field's meaning, with the title and URL of the spec's section; both are empty if the spec has none.

    Attributes
    ----------
    id
        The field's id in the file; None for fields without one.
    """

    text: str
    section: str = ""
    id: int | None = None

    @property
    def link(self) -> str:
        """The URL of the section; empty without one."""
        if self.section == SECTIONS["proposal"]:
            return PROPOSAL
        slug = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", self.section.lower()))
        return f"{SPEC}#{slug}" if slug else ""


_METADATA = {
    "location": "the table's base location, from which writers derive the locations of new files",
    "format-version": "version of the format; readers reject versions newer than they support",
    "table-uuid": "identifies the table; assigned at its creation",
    "last-sequence-number": "the highest sequence number assigned; it orders snapshots",
    "last-updated-ms": "when the metadata was last written, milliseconds since 1970, shown in UTC",
    "last-column-id": "the highest column id assigned; no id is reused",
    "current-schema-id": "the schema that writers use",
    "current-snapshot-id": "the snapshot that readers see: the head of the branch main",
    "schemas": "number of schemas, current and earlier",
    "default-spec-id": "the partition spec that writers use",
    "partition-specs": "number of partition specs, current and earlier",
    "default-sort-order-id": "the sort order that writers may use; readers use the one recorded for each file",
    "sort-orders": "number of sort orders",
    "snapshots": "number of valid snapshots: those whose data files all exist",
    "refs": "number of branches and tags",
    "snapshot-log": "number of entries in the log of current snapshots",
    "metadata-log": "number of earlier metadata files listed",
    "statistics": "number of statistics files listed",
    "timestamp-ms": "when the file was written, milliseconds since 1970, shown in UTC",
    "metadata-file": "location of the metadata file",
}
_SNAPSHOT = {
    "snapshot-id": "a unique long, usually random",
    "parent-snapshot-id": "the snapshot on which this one is based; none for the first",
    "sequence-number": "orders the changes of the table: deletes apply to older data",
    "timestamp-ms": "when it was created, milliseconds since 1970, shown in UTC",
    "manifest-list": "the file that lists its manifests",
    "schema-id": "the table's current schema when it was created",
    "key-id": "the key that encrypts the manifest list's key metadata",
}
_SUMMARY = {
    "total-data-files": "live data files in the snapshot, as counted by its writer",
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
    "entries-processed": "manifest entries that it processed",
    "wap.id": "Write-Audit-Publish id of a staged snapshot",
    "published-wap-id": "Write-Audit-Publish id of a snapshot that was published",
    "source-snapshot-id": "the snapshot that it was cherry-picked from",
    "engine-name": "the engine that created it",
    "engine-version": "that engine's version",
}
_REF = {
    "name": "the branch's or tag's name",
    "type": "a branch moves with each commit to it, a tag does not",
    "snapshot-id": "the tagged snapshot, or the latest of the branch",
}
_RETENTION = {
    "min-snapshots-to-keep": "the minimum number of the branch's snapshots that expiration keeps",
    "max-snapshot-age-ms": "the age at which its snapshots expire, milliseconds",
    "max-ref-age-ms": "the age at which the ref expires, milliseconds; main never expires",
}
_STATISTICS = {
    "statistics-path": "location of the Puffin file",
    "file-size-in-bytes": "size of the file",
    "blob-metadata": "the statistics in it: kind, and ids of the columns",
}
_LINEAGE = {
    "next-row-id": "higher than every assigned row id; the next snapshot's first-row-id",
    "first-row-id": "the row id of the first row in its first new data file",
    "added-rows": "upper bound of the number of row ids that it assigned",
}
_OF_MANIFEST = {
    "manifest_path": "location of the manifest",
    "manifest_length": "size of the manifest, in bytes",
    "partition_spec_id": "the partition spec that its files were written with",
    "content": "whether it tracks data or delete files",
    "sequence_number": "sequence number with which the manifest was added",
    "min_sequence_number": "the lowest data sequence number of its live files",
    "added_snapshot_id": "the snapshot that added the manifest",
    "added_files_count": "its entries that are ADDED; null if unknown",
    "existing_files_count": "its entries that are EXISTING; null if unknown",
    "deleted_files_count": "its entries that are DELETED; null if unknown",
    "added_rows_count": "rows in its ADDED files",
    "existing_rows_count": "rows in its EXISTING files",
    "deleted_rows_count": "rows in its DELETED files",
    "key_metadata": "encryption key metadata",
    "first_row_id": "the row id assigned to its first file without one (v3)",
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
    "proposal": "V4 proposal, V4 content entry structure",
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
    "ordinal": "position in the file, from 0",
    "dialect": "the manifest dialect in which the file is written",
    "length": "size of the file",
    "entries": "number of entries in the file",
    "removed_by": "the manifest DV that removes it from the snapshot",
    "removed_entries": "entries that manifest DVs remove",
    "manifest_dvs": "ordinals, in the root, of the manifest DVs that remove its entries",
    "spark.app.id": "the Spark application that created it",
    "operation": "append: adds data; replace: same rows, other files; overwrite: adds and removes; delete: removes",
}
#: The names of content entry fields before version 4, in manifest lists and in manifests.
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
    "record_count": "its number of entries; some writers count the rows of its files instead",
    "sequence_number": _OF_MANIFEST["sequence_number"],
    "first_row_id": "the row id assigned to its first file without one",
}
#: Meanings by kind, because content entries of files, vectors and manifests share their fields.
_BY_KIND = {
    "data-manifest": _LEAF,
    "delete-manifest": _LEAF | {"referenced_file": "the manifest to whose files its deletes apply; null: to any"},
    "deletion-vector": {"record_count": "positions that the vector deletes"},
    "manifest-dv": {
        "record_count": "entries that the vector removes",
        "referenced_file": "the manifest whose entries it removes",
        "location": "location of its Puffin file; for an inline vector, that of the manifest",
        "inline_content": "the vector itself, if it is not in a file",
        "sequence_number": "sequence number of the snapshot that wrote it",
    },
}
_FILES = ("data-file", "position-delete", "equality-delete", "deletion-vector", "manifest-dv")
#: The kinds of nodes that are content entries.
ENTRY_KINDS = frozenset((*_MANIFESTS, *_FILES))


def spec_name(kind: str, name: str, version: int) -> str:
    """Return a node field's name in the spec of a format version; from version 4 on, the content entry's name."""
    if version >= 4:
        return name
    if kind in _MANIFESTS:
        return _MANIFEST_NAMES.get(name, name)
    return _FILE_NAMES.get(name, name) if kind in _FILES else name


def meaning(
    kind: str, name: str, version: int = 3, *, partition: bool = False, proposal: bool = False
) -> Meaning | None:
    """Return the meaning of a field for a kind of node; None if it is not known.

    Parameters
    ----------
    name
        The field's name, from `spec_name`.
    partition
        Whether the field is a partition field, of which a file's node shows the value and a manifest's node the range.
    proposal
        Whether the metadata follows the V4 proposal, whose fields the spec does not describe.
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
    name = {"offset": "content_offset", "size_in_bytes": "content_size_in_bytes"}.get(name, name)  # V4 names
    text = _BY_KIND.get(kind, {}).get(name, "") or COLUMN_DOCS.get(f"entries.{name}", "")
    text = text or COLUMN_DOCS.get(f"content_entries.{name}") or COLUMN_DOCS.get(name) or _OF_MANIFEST.get(name, "")
    if not text:
        return None
    if version >= 4:
        return Meaning(text, SECTIONS["proposal" if proposal else "v4"])
    if kind in _MANIFESTS:
        return Meaning(f"{text} (a content entry field, shown for all versions; manifest lists do not have it)")
    section = "entry" if name in _ENTRY_FIELDS else "file" if name in _FILE_FIELDS else ""
    if kind == "deletion-vector" and name.startswith("content_"):
        section = "vector"
    return Meaning(text, SECTIONS.get(section, ""))


def open_points(kind: str, name: str, *, partition: bool = False) -> list[OpenPoint]:
    """Return the points about a field of a kind of node on which the V4 proposal is silent or has several answers."""
    return _points_of({kind}, "partition" if partition else name)


def _points_of(kinds: Set[str], name: str) -> list[OpenPoint]:
    """Return the open points about a field of entries of these kinds."""
    if kinds & ENTRY_KINDS:
        kinds = kinds | {
            "any",
            *(("manifest",) if kinds & {*_MANIFESTS} else ()),
            *(("file",) if kinds & {*_FILES} else ()),
        }
    wanted = {f"{kind}.{name}" for kind in kinds}
    return [point for point in OPEN_POINTS.values() if wanted.intersection(point.fields)]


def id_of_field(kind: str, name: str, dialect: Dialect | None) -> int | None:
    """Return the field id of a content entry's field, by kind of node; None for other fields or an unknown dialect."""
    if dialect is None or kind not in ENTRY_KINDS:
        return None
    return field_id(dialect, name, manifest=kind in _MANIFESTS, vector=kind in ("deletion-vector", "manifest-dv"))


#: Columns in tables of entries that show a field under a different name.
_COLUMN_FIELDS = {
    "file": "location",
    "path": "location",
    "length": "file_size_in_bytes",
    "added_snapshot_id": "snapshot_id",
    "spec_id": "partition_spec_id",
    "partition_summaries": "partitions",
    "file_path": "location",
    "content": "content_type",
    "referenced_data_file": "referenced_file",
    "content_offset": "offset",
    "content_size_in_bytes": "size_in_bytes",
}
_COUNTS_OF_FILES = re.compile(r"(added|existing|deleted)_(?:data|delete)_files_count")
#: Columns that iceexplore adds; no file stores them.
_COLUMNS_WITHOUT_FIELD = frozenset({"deleted_rows", "removed_by", "manifest_dv", "manifest", "ordinal"})


def column_meaning(name: str, doc: str, kinds: Set[str], dialect: Dialect | None) -> tuple[Meaning, list[OpenPoint]]:
    """Return the meaning of a column in a table of entries, with the field that it shows, and the field's open points.

    Parameters
    ----------
    doc
        The description of the column.
    kinds
        The kinds of the table's rows, from `ENTRY_KINDS`.
    dialect
        The dialect of the file with the entries; None if it is not known.
    """
    if dialect is None or name in _COLUMNS_WITHOUT_FIELD:
        return Meaning(doc), []
    manifest = kinds <= {*_MANIFESTS}
    own = _COUNTS_OF_FILES.sub(r"\1_files_count", _COLUMN_FIELDS.get(name, name))
    found = field_id(dialect, own, manifest=manifest)
    points = _points_of(kinds, own) if dialect.has_root_manifest and not dialect.is_draft else []
    if found is None:
        return Meaning(doc), points
    if dialect.has_root_manifest:
        section = "v4" if dialect.is_draft else "proposal"
    elif manifest:
        section = "manifest list"
    else:
        section = "entry" if own in (*_ENTRY_FIELDS, "data_file") else "file"
    return Meaning(doc, SECTIONS[section], found), points


def help_sent(found: Meaning, points: list[OpenPoint], opened: dict[str, list[Any]]) -> list[Any]:
    """Return a meaning for the browser: text, section, URL, ids of open points; add these points to ``opened``."""
    opened |= {p.id: [p.title, list(p.says), p.answer] for p in points}
    text = found.text if found.id is None else f"{found.text}; field id {found.id}"
    return [text, found.section, found.link, *([[p.id for p in points]] if points else [])]
