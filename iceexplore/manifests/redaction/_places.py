"""Classify the fields of manifests for redaction, by ids and types only, never by content.

Some ids mean different things in different dialects (146 to 149, 520, 521): their types distinguish them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from enum import Enum
from typing import Any, Protocol, TypeAlias

from iceexplore.formats import FILE_FORMATS
from iceexplore.manifests.model._field_ids import (
    DRAFT_NAMES,
    FILE_NAMES,
    LIST_NAMES,
    MANIFEST_ENTRY_NAMES,
    PROPOSAL_NAMES,
    SUMMARY_NAMES,
    stats_of,
)
from iceexplore.metadata import TableMetadata, parse_transform

__all__ = [
    "AvroType",
    "FIELD_NAMES",
    "FORMATS",
    "Kind",
    "PATH_ID",
    "Place",
    "Terms",
    "ids_by_name",
    "inside",
    "kind_of_avro",
    "one_of",
    "statistic",
    "value_keys",
]

#: An Avro schema as JSON, or in the plain form of `_avro_schema.Schema`: a dictionary with a ``type``, or a union as a
#: list.
AvroType: TypeAlias = Any

#: The column of a position delete file that holds the path.
PATH_ID = 2147483546


class Terms(Protocol):
    """Rules of redaction: what is redacted, and the placeholders."""

    credentials: bool
    values: bool
    names: bool
    paths: bool
    blanks: bool
    touched: int

    def text(self, text: str) -> str:
        """Redact free text."""

    def key(self, key: str) -> str:
        """Redact the key of a map that may have any keys."""

    def secretless(self, text: str) -> str:
        """Redact the parts of a text that look like secrets."""

    def name(self, name: str) -> str:
        """Redact the name of a column or partition field."""

    def location(self, location: str) -> str:
        """Redact the location of a file."""

    def number(self, of: Hashable, value: Hashable) -> int:
        """Return a number as the placeholder for a value of the field ``of``."""


class Kind(Enum):
    """What kind of values a type has, whatever the file format."""

    NUMBER = "number"
    TEXT = "text"
    BYTES = "bytes"
    STRUCT = "struct"
    LIST = "list"


class Place(Enum):
    """The role of a field, which decides how it is redacted."""

    RECORD = "a record whose fields are known"
    KEEP = "counts, sizes, ids and other numbers that are not values"
    LOCATION = "the location of a file"
    FORMAT = "a file format"
    FILE_KEY = "the encryption key of a file"
    VECTOR = "positions"
    TUPLE = "a partition tuple"
    VALUE = "a partition value"
    BOUNDS = "bounds by column"
    SUMMARIES = "partition summaries"
    STATS = "statistics by column"
    ANY = "anything"


FORMATS = frozenset({*(f.name for f in FILE_FORMATS), "metadata"})
_NUMBERS = frozenset(
    (
        *(0, 1, 3, 4, 5, 103, 104, 105, 106, 107, 108, 109, 110, 111, 132, 133, 134, 135, 136, 137, 140, 141, 142),
        *(144, 145, 147, 148, 156, 157, 160, 161, 162, 163, 166, 168, 169),
        *(501, 502, 503, 504, 505, 506, 509, *range(512, 519), *range(520, 527)),
        2147483545,
    )
)
_LOCATIONS = frozenset({100, 143, 155, 164, 500, 2147483546})
_RECORDS = frozenset({2, 5, 147, 148, 150, 158, 159, 521})
_STATS = frozenset({146, 149, 10_000})

#: Field ids by name, for files without field ids; these names reveal nothing about a table.
ids_by_name: Mapping[str, int] = {
    name: number
    for names in (
        *DRAFT_NAMES.values(),
        *PROPOSAL_NAMES.values(),
        SUMMARY_NAMES,
        LIST_NAMES,
        FILE_NAMES,
        MANIFEST_ENTRY_NAMES,
    )
    for name, number in names.items()
} | {"file_path": 100, "referenced_data_file": 143, "pos": 2147483545, "deletion_vector": 148}
FIELD_NAMES = frozenset(ids_by_name) | frozenset(
    [
        "element",
        "key",
        "value",
        "entries",
        "manifest_entry",
        "manifest_file",
        "data_file",
        "partition_summary",
        "lower_bound",
        "upper_bound",
        "tight_bounds",
        "value_count",
        "null_count",
        "null_value_count",
        "nan_count",
        "nan_value_count",
        "average_uncompressed_length",
        "max_uncompressed_length",
        "avg_value_size_in_bytes",
        "derived_value",
        "block_size_in_bytes",
        "file_ordinal",
        "sort_columns",
        "inline_content",
        "latest_column_file_snapshot_id",
        "column_files",
        "field_ids",
        "file_path",
        "pos",
        "row",
        "schema",
        "table",
        "list",
        "array",
    ]
)


def one_of(plain: AvroType) -> AvroType:
    """Return a nullable type without null, ``union`` for a union of several types, or any other type unchanged."""
    if not isinstance(plain, list):
        return plain
    rest = [p for p in plain if p["type"] != "null"]
    return rest[0] if len(rest) == 1 else {"type": "union"}


def kind_of_avro(plain: AvroType) -> Kind:
    """Return the kind of an Avro type."""
    kind = one_of(plain)["type"]
    if kind in ("record", "union"):
        return Kind.STRUCT
    if kind in ("array", "map"):
        return Kind.LIST
    if kind in ("string", "enum"):
        return Kind.TEXT
    return Kind.BYTES if kind in ("bytes", "fixed") else Kind.NUMBER


def inside(parent: Place, field_id: int | None, kind: Kind) -> Place:
    """Return the role of a field, given the role of the struct or list that contains it."""
    if parent is Place.TUPLE:
        return Place.VALUE
    if parent is Place.KEEP and kind is not Kind.TEXT and kind is not Kind.BYTES:
        return Place.KEEP
    if parent is not Place.RECORD or field_id is None:
        return Place.ANY
    if kind is Kind.STRUCT:
        if field_id in _STATS:
            return Place.STATS
        if field_id == 102:
            return Place.TUPLE
        return Place.RECORD if field_id in _RECORDS else Place.ANY
    if kind is Kind.LIST:
        if field_id in (125, 128):
            return Place.BOUNDS
        if field_id == 507:
            return Place.SUMMARIES
        if field_id in (158, 159):
            return Place.RECORD
        return Place.KEEP if field_id in _NUMBERS else Place.ANY
    if kind is Kind.TEXT:
        if field_id in _LOCATIONS:
            return Place.LOCATION
        return Place.FORMAT if field_id in (101, 165) else Place.ANY
    if kind is Kind.BYTES:
        if field_id in (131, 149, 167, 519):
            return Place.FILE_KEY
        return Place.VECTOR if field_id in (6, 7, 146, 522) else Place.ANY
    return Place.KEEP if field_id in _NUMBERS else Place.ANY


def statistic(field_id: int | None) -> tuple[int, int] | None:
    """Return column id and offset of a V4 statistic. Offset 0 is the column's struct."""
    return None if field_id is None else stats_of(field_id)


def value_keys(metadata: TableMetadata) -> tuple[dict[int, Any], dict[int, Any], dict[int, Any]]:
    """Return the keys that identify partition values, so that a value has the same placeholder everywhere.

    Returns
    -------
    tuple
        Keys by the id of the partition field (tuples); by the id of the V4 statistics whose bounds are the value (those
        of the field's expression or, for identity transforms, of its source column); and by the source column whose
        struct has the value as ``derived_value``.
    """
    by_field: dict[int, Any] = {}
    by_stats: dict[int, Any] = {}
    derived: dict[int, Any] = {}
    expressions = {e.partition_field_id: e.expr_id for e in metadata.expressions if e.partition_field_id is not None}
    for spec in metadata.partition_specs:
        for field in spec.fields:
            source = field.source_ids[0] if len(field.source_ids) == 1 else None
            identity = parse_transform(field.transform).is_identity and source is not None
            key = ("source", source) if identity else ("field", field.field_id)
            by_field[field.field_id] = key
            if source is not None:
                if identity:
                    by_stats[source] = key
                    derived.setdefault(source, key)
                elif not parse_transform(field.transform).is_void:
                    derived[source] = key
            expression = getattr(field, "expr_id", None)
            if expression is None:
                expression = expressions.get(field.field_id)
            if expression is not None:
                by_stats[expression] = key
    return by_field, by_stats, derived
