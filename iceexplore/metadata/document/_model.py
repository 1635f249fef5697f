"""Table metadata as immutable records with the spec's fields; ``raw`` has the JSON as written, with all other keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from iceexplore.metadata.document._json_object import signed
from iceexplore.metadata.document._relative_locations import resolved_location
from iceexplore.metadata.transforms._registry import parse_transform
from iceexplore.metadata.types._types import Schema
from iceexplore.render import card_html, card_of, card_text, line_of

__all__ = [
    "BlobMetadata",
    "Expression",
    "MetadataLogEntry",
    "PartitionField",
    "PartitionSpec",
    "PartitionStatisticsFile",
    "Ref",
    "Snapshot",
    "SnapshotLogEntry",
    "SortField",
    "SortOrder",
    "StatisticsFile",
    "TableMetadata",
]

Raw = Mapping[str, Any]


@dataclass(frozen=True)
class Expression:
    """An expression of the V4 proposal, referenced by its id from specs and statistics."""

    expr_id: int
    transform: str
    source_ids: tuple[int, ...]
    name: str | None = None
    partition_field_id: int | None = None
    raw: Raw = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class PartitionField:
    """A field of a partition spec. ``source_ids`` has several ids for a multi-argument transform."""

    field_id: int
    name: str
    transform: str
    source_ids: tuple[int, ...]

    @property
    def source_id(self) -> int:
        """The (first) source column's id."""
        return self.source_ids[0]


@dataclass(frozen=True)
class PartitionSpec:
    """A partition spec; unpartitioned if it has no fields (or only ``void`` ones)."""

    spec_id: int
    fields: tuple[PartitionField, ...]
    raw: Any = field(default=None, compare=False, repr=False)

    @property
    def is_unpartitioned(self) -> bool:
        """True if it has no field, or only void transforms (Java: ``PartitionSpec.isUnpartitioned``)."""
        return all(parse_transform(f.transform).is_void for f in self.fields)

    def __repr__(self) -> str:
        return line_of(self)


@dataclass(frozen=True)
class SortField:
    """A field of a sort order."""

    transform: str
    source_ids: tuple[int, ...]
    direction: str
    null_order: str


@dataclass(frozen=True)
class SortOrder:
    """A sort order; order id 0 means unsorted."""

    order_id: int
    fields: tuple[SortField, ...]

    def __repr__(self) -> str:
        return line_of(self)


@dataclass(frozen=True)
class Snapshot:
    """A state of the table at some time. Times are milliseconds since the epoch, UTC."""

    snapshot_id: int
    parent_snapshot_id: int | None
    sequence_number: int
    timestamp_ms: int
    manifest_list: str | None
    manifests: tuple[str, ...] | None  # v1 may inline the manifests; a manifest list wins
    summary: Mapping[str, str] | None = field(hash=False)  # a mapping has no hash, and ids distinguish snapshots
    schema_id: int | None
    first_row_id: int | None = None
    added_rows: int | None = None
    key_id: str | None = None
    raw: Raw = field(default_factory=dict, compare=False, repr=False)
    #: The table's location, if locations may be relative to it (V4).
    relative_to: str | None = field(default=None, compare=False, repr=False)

    @property
    def root_location(self) -> str | None:
        """The absolute location of the root manifest (V4 draft: ``root-manifest``) or of the manifest list."""
        named = self.raw.get("root-manifest")
        found = named if isinstance(named, str) and named else self.manifest_list
        return found if found is None or self.relative_to is None else resolved_location(found, self.relative_to)

    @property
    def operation(self) -> str | None:
        """``append``, ``replace``, ``overwrite``, ``delete``, or None where the summary has none."""
        return None if self.summary is None else self.summary.get("operation")

    def __repr__(self) -> str:
        return line_of(self)

    def __str__(self) -> str:
        return card_text(card_of(self))

    def _repr_html_(self) -> str:
        return card_html(card_of(self))


@dataclass(frozen=True)
class Ref:
    """A branch or tag."""

    name: str
    type: Literal["branch", "tag"]
    snapshot_id: int
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None


@dataclass(frozen=True)
class SnapshotLogEntry:
    """An entry of the snapshot log: the time when a snapshot became current."""

    timestamp_ms: int
    snapshot_id: int


@dataclass(frozen=True)
class MetadataLogEntry:
    """An entry of the metadata log: an earlier metadata file."""

    timestamp_ms: int
    metadata_file: str


@dataclass(frozen=True)
class BlobMetadata:
    """A blob as the table metadata describes it."""

    type: str
    snapshot_id: int
    sequence_number: int
    fields: tuple[int, ...]
    properties: Mapping[str, str]


@dataclass(frozen=True)
class StatisticsFile:
    """A Puffin file with table statistics."""

    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int
    file_footer_size_in_bytes: int
    blob_metadata: tuple[BlobMetadata, ...]
    raw: Raw = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class PartitionStatisticsFile:
    """A file with statistics per partition."""

    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int
    raw: Raw = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class TableMetadata:
    """One metadata file, v1 to v4. Missing keys are filled in as the spec says; ``raw`` is the JSON as written."""

    format_version: int
    table_uuid: str | None
    location: str
    last_sequence_number: int
    last_updated_ms: int | None
    last_column_id: int | None
    schemas: tuple[Schema, ...]
    current_schema_id: int
    partition_specs: tuple[PartitionSpec, ...]
    default_spec_id: int
    last_partition_id: int | None
    properties: Mapping[str, str]
    current_snapshot_id: int | None  # -1 and null read as None
    snapshots: tuple[Snapshot, ...]
    snapshot_log: tuple[SnapshotLogEntry, ...]
    metadata_log: tuple[MetadataLogEntry, ...]
    sort_orders: tuple[SortOrder, ...]
    default_sort_order_id: int
    refs: Mapping[str, Ref]  # always has `main` where there is a current snapshot
    statistics: tuple[StatisticsFile, ...] = ()
    partition_statistics: tuple[PartitionStatisticsFile, ...] = ()
    next_row_id: int | None = None
    encryption_keys: tuple[Raw, ...] = ()
    expressions: tuple[Expression, ...] = ()
    raw: Raw = field(default_factory=dict, compare=False, repr=False)

    def schema(self, schema_id: int | None = None) -> Schema:
        """Return the schema with this id; the current one by default, or if the id is unknown."""
        wanted = self.current_schema_id if schema_id is None else schema_id
        for s in self.schemas:
            if s.schema_id == wanted:
                return s
        for s in self.schemas:
            if s.schema_id == self.current_schema_id:
                return s
        return self.schemas[-1] if self.schemas else Schema(0, ())

    def spec(self, spec_id: int | None = None) -> PartitionSpec | None:
        """Return the partition spec with this id, by default the table's default spec; None if unknown."""
        wanted = self.default_spec_id if spec_id is None else spec_id
        return next((s for s in self.partition_specs if s.spec_id == wanted), None)

    def snapshot(self, snapshot_id: int | None = None) -> Snapshot | None:
        """Return the snapshot with this id, by default the current one; None if there is none."""
        wanted = self.current_snapshot_id if snapshot_id is None else signed(snapshot_id)
        return next((s for s in self.snapshots if s.snapshot_id == wanted), None)

    def all_fields(self) -> dict[int, tuple[str, Any]]:
        """Return each field of any schema, by id, with its full name; the current schema wins, then the newest."""
        out: dict[int, tuple[str, Any]] = {}
        for s in (self.schema(), *sorted(self.schemas, key=lambda s: -s.schema_id)):
            for field_id, pair in s.by_id().items():
                out.setdefault(field_id, pair)
        return out

    @property
    def has_deletes(self) -> bool:
        """True if this format version has delete files (from 2 on)."""
        return self.format_version >= 2

    @property
    def requires_snapshot_parts(self) -> bool:
        """True if refs, snapshot summaries and other parts that v1 may leave out are expected (from 2 on)."""
        return self.format_version >= 2

    @property
    def has_deletion_vectors(self) -> bool:
        """True if this format version has deletion vectors (from 3 on)."""
        return self.format_version >= 3

    @property
    def has_row_lineage(self) -> bool:
        """True if this format version assigns row ids (from 3 on; spec, "Row Lineage")."""
        return self.format_version >= 3

    @property
    def may_have_root_manifests(self) -> bool:
        """True if snapshots of this format version may name root manifests instead of manifest lists (from 4 on)."""
        return self.format_version >= 4

    def __repr__(self) -> str:
        return line_of(self)
