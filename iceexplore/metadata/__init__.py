"""Table metadata: the JSON document, its parts and types, and values in their serialized forms."""

from __future__ import annotations

from iceexplore.metadata._dialect import Dialect
from iceexplore.metadata._order import ancestry, in_order
from iceexplore.metadata._partitioning import check_names, check_sources, partition_type
from iceexplore.metadata._shown import format_ms
from iceexplore.metadata._text import format_sort_order, format_spec, format_transform, spark_type_string
from iceexplore.metadata._travel import schema_at, to_ms
from iceexplore.metadata._virtual_columns import check_virtual_columns, check_virtual_source, virtual_expressions
from iceexplore.metadata.changes._others import PropertyChange, SpecChange, properties_changes, spec_changes
from iceexplore.metadata.changes._schemas import SchemaChange, is_promotion, schema_changes
from iceexplore.metadata.document._json_object import JsonObjectReader, Reporter
from iceexplore.metadata.document._locations import parse_version
from iceexplore.metadata.document._model import (
    BlobMetadata,
    Expression,
    MetadataLogEntry,
    PartitionField,
    PartitionSpec,
    PartitionStatisticsFile,
    Ref,
    Snapshot,
    SnapshotLogEntry,
    SortField,
    SortOrder,
    StatisticsFile,
    TableMetadata,
)
from iceexplore.metadata.document._name_mapping import name_mapping, parse_name_mapping
from iceexplore.metadata.document._parts import parse_sort_order, parse_spec
from iceexplore.metadata.document._relative_locations import (
    ABSOLUTE_LOCATION,
    DOT_SEGMENTS,
    relative_location,
    resolved_location,
)
from iceexplore.metadata.document._table_metadata import LATEST_FORMAT_VERSION, parse_table_metadata
from iceexplore.metadata.document._types import parse_schema, parse_type, read_schema, schema_to_json, type_to_json
from iceexplore.metadata.transforms._bucket import BucketTransform
from iceexplore.metadata.transforms._functions import SQL_FUNCTIONS, SqlFunction, apply_function, function_type
from iceexplore.metadata.transforms._identity import IdentityTransform
from iceexplore.metadata.transforms._projection import Op
from iceexplore.metadata.transforms._registry import (
    TRANSFORM_PATTERN,
    TRANSFORMS,
    apply_transform,
    human_value,
    is_known_transform,
    parse_transform,
    result_type,
)
from iceexplore.metadata.transforms._terms import resolve_function, resolve_term
from iceexplore.metadata.transforms._times import TimeTransform
from iceexplore.metadata.transforms._transform import Preimage, Transform
from iceexplore.metadata.transforms._truncate import TruncateTransform
from iceexplore.metadata.types._arrow import arrow_type
from iceexplore.metadata.types._parameters import (
    PLAIN_TYPES,
    decimal_parameters,
    fixed_length,
    is_known_type,
    is_variable_length,
    type_base,
)
from iceexplore.metadata.types._types import (
    LINEAGE_FIELDS,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    Schema,
    StructType,
    Type,
    has_nanosecond_timestamps,
)
from iceexplore.metadata.values._decimals import decimal_of, unscaled
from iceexplore.metadata.values._decode import decode_values
from iceexplore.metadata.values._defaults import default_from_json, default_to_json
from iceexplore.metadata.values._encode import encode_values
from iceexplore.metadata.values._human import format_value
from iceexplore.metadata.values._incremented import incremented
from iceexplore.metadata.values._points import point_of
from iceexplore.metadata.values._single_value import decode_value, encode_value
from iceexplore.metadata.values._stored_integers import integers_of
from iceexplore.metadata.values._temporal import INSTANT_UNITS, parse_date, time_nanos

__all__ = [
    "ABSOLUTE_LOCATION",
    "BlobMetadata",
    "BucketTransform",
    "DOT_SEGMENTS",
    "Dialect",
    "Expression",
    "INSTANT_UNITS",
    "IdentityTransform",
    "JsonObjectReader",
    "LATEST_FORMAT_VERSION",
    "LINEAGE_FIELDS",
    "ListType",
    "MapType",
    "MetadataLogEntry",
    "NestedField",
    "Op",
    "PLAIN_TYPES",
    "PartitionField",
    "PartitionSpec",
    "PartitionStatisticsFile",
    "Preimage",
    "PrimitiveType",
    "PropertyChange",
    "Ref",
    "Reporter",
    "SQL_FUNCTIONS",
    "Schema",
    "SchemaChange",
    "Snapshot",
    "SnapshotLogEntry",
    "SortField",
    "SortOrder",
    "SpecChange",
    "SqlFunction",
    "StatisticsFile",
    "StructType",
    "TRANSFORMS",
    "TRANSFORM_PATTERN",
    "TableMetadata",
    "TimeTransform",
    "Transform",
    "TruncateTransform",
    "Type",
    "ancestry",
    "apply_function",
    "apply_transform",
    "arrow_type",
    "check_names",
    "check_sources",
    "check_virtual_columns",
    "check_virtual_source",
    "decimal_of",
    "decimal_parameters",
    "decode_value",
    "decode_values",
    "default_from_json",
    "default_to_json",
    "encode_value",
    "encode_values",
    "fixed_length",
    "format_ms",
    "format_sort_order",
    "format_spec",
    "format_transform",
    "format_value",
    "function_type",
    "has_nanosecond_timestamps",
    "human_value",
    "in_order",
    "incremented",
    "integers_of",
    "is_known_transform",
    "is_known_type",
    "is_promotion",
    "is_variable_length",
    "name_mapping",
    "parse_date",
    "parse_name_mapping",
    "parse_schema",
    "parse_sort_order",
    "parse_spec",
    "parse_table_metadata",
    "parse_transform",
    "parse_type",
    "parse_version",
    "partition_type",
    "point_of",
    "properties_changes",
    "read_schema",
    "relative_location",
    "resolve_function",
    "resolve_term",
    "resolved_location",
    "result_type",
    "schema_at",
    "schema_changes",
    "schema_to_json",
    "spark_type_string",
    "spec_changes",
    "time_nanos",
    "to_ms",
    "type_base",
    "type_to_json",
    "unscaled",
    "virtual_expressions",
]
