"""``schemas``, ``specs``, ``expressions``, ``sort_orders`` and ``properties``: definitions in the metadata file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from iceexplore.arrow import PlainValue, build
from iceexplore.graph import TableState
from iceexplore.inspect._log import rows_table
from iceexplore.metadata import Expression, TableMetadata, Type, default_to_json, format_transform, result_type

__all__ = [
    "EXPRESSIONS_SCHEMA",
    "PROPERTIES_SCHEMA",
    "SCHEMAS_SCHEMA",
    "SORT_ORDERS_SCHEMA",
    "SPECS_SCHEMA",
    "build_expressions",
    "build_properties",
    "build_schemas",
    "build_sort_orders",
    "build_specs",
    "expression_text",
]

SCHEMAS_SCHEMA = build.schema(
    [
        pa.field("schema_id", pa.int64()),
        pa.field("is_current", pa.bool_()),
        pa.field("field_id", pa.int64()),
        pa.field("name", pa.string()),
        pa.field("type", pa.string()),
        pa.field("required", pa.bool_()),
        pa.field("identifier", pa.bool_()),
        pa.field("doc", pa.string()),
        pa.field("initial_default", pa.string()),
        pa.field("write_default", pa.string()),
    ]
)
SPECS_SCHEMA = build.schema(
    [
        pa.field("spec_id", pa.int64()),
        pa.field("is_default", pa.bool_()),
        pa.field("field_id", pa.int64()),
        pa.field("name", pa.string()),
        pa.field("transform", pa.string()),
        pa.field("source_ids", pa.list_(pa.int64())),
        pa.field("source_columns", pa.list_(pa.string())),
        pa.field("type", pa.string()),
    ]
)
EXPRESSIONS_SCHEMA = build.schema(
    [
        pa.field("expr_id", pa.int64()),
        pa.field("expression", pa.string()),
        pa.field("name", pa.string()),
        pa.field("transform", pa.string()),
        pa.field("source_ids", pa.list_(pa.int64())),
        pa.field("type", pa.string()),
        pa.field("partition_field_id", pa.int64()),
        pa.field("used_by_specs", pa.list_(pa.int64())),
        pa.field("has_statistics", pa.bool_()),
    ]
)
SORT_ORDERS_SCHEMA = build.schema(
    [
        pa.field("order_id", pa.int64()),
        pa.field("is_default", pa.bool_()),
        pa.field("position", pa.int64()),
        pa.field("transform", pa.string()),
        pa.field("source_ids", pa.list_(pa.int64())),
        pa.field("source_columns", pa.list_(pa.string())),
        pa.field("direction", pa.string()),
        pa.field("null_order", pa.string()),
    ]
)
PROPERTIES_SCHEMA = pa.schema([pa.field("key", pa.string()), pa.field("value", pa.string())])


def build_schemas(state: TableState, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield every field of every schema, nested ones by full name."""
    rows: list[dict[str, Any]] = []
    for s in state.metadata.schemas:
        for name, field in s.walk():
            rows.append(
                {
                    "schema_id": s.schema_id,
                    "is_current": s.schema_id == state.metadata.current_schema_id,
                    "field_id": field.field_id,
                    "name": name,
                    "type": str(field.type),
                    "required": field.required,
                    "identifier": field.field_id in s.identifier_field_ids,
                    "doc": field.doc,
                    "initial_default": _json(field.type, field.initial_default),
                    "write_default": _json(field.type, field.write_default),
                }
            )
    yield rows_table(rows, schema)


def _json(kind: Type, value: PlainValue) -> str | None:
    """Return a default in its JSON single-value form (spec, Appendix D)."""
    return None if value is None else json.dumps(default_to_json(kind, value), ensure_ascii=False)


def build_specs(state: TableState, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield every field of every partition spec; an unpartitioned spec is one row without a field."""
    columns = state.metadata.all_fields()
    rows: list[dict[str, Any]] = []
    for spec in state.metadata.partition_specs:
        head = {"spec_id": spec.spec_id, "is_default": spec.spec_id == state.metadata.default_spec_id}
        for field in spec.fields:
            source = columns.get(field.source_id) if field.source_ids else None
            rows.append(
                {
                    **head,
                    "field_id": field.field_id,
                    "name": field.name,
                    "transform": field.transform,
                    "source_ids": list(field.source_ids),
                    "source_columns": [columns[i][0] if i in columns else None for i in field.source_ids],
                    "type": str(result_type(field.transform, None if source is None else source[1].type)),
                }
            )
        if not spec.fields:
            rows.append({**dict.fromkeys(schema.names), **head})
    yield rows_table(rows, schema)


def expression_text(expression: Expression, metadata: TableMetadata) -> str:
    """Return a V4 expression with its column names: ``bucket(16, id)``, ``lower(name)``."""
    return format_transform(expression.transform, expression.source_ids, metadata)


def build_expressions(state: TableState, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the expressions of the table metadata (V4), used by partition specs or for statistics only.

    ``has_statistics`` is read from the root of the state's snapshot (one read), which has statistics of its own files
    and of manifests.
    """
    if not state.metadata.expressions:
        return
    columns = state.metadata.all_fields()
    root = state.root()
    counted = set() if root is None else set(root.stat_field_ids())
    rows: list[dict[str, Any]] = []
    for e in state.metadata.expressions:
        source = columns.get(e.source_ids[0]) if e.source_ids else None
        users = [
            spec.spec_id
            for spec in state.metadata.partition_specs
            if any(f.field_id == e.partition_field_id for f in spec.fields)
        ]
        rows.append(
            {
                "expr_id": e.expr_id,
                "expression": expression_text(e, state.metadata),
                "name": e.name,
                "transform": e.transform,
                "source_ids": list(e.source_ids),
                "type": str(result_type(e.transform, None if source is None else source[1].type)),
                "partition_field_id": e.partition_field_id,
                "used_by_specs": [] if e.partition_field_id is None else users,
                "has_statistics": e.expr_id in counted,
            }
        )
    yield rows_table(rows, schema)


def build_sort_orders(state: TableState, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield every field of every sort order; the unsorted order is one row without a field."""
    columns = state.metadata.all_fields()
    rows: list[dict[str, Any]] = []
    for order in state.metadata.sort_orders:
        head = {"order_id": order.order_id, "is_default": order.order_id == state.metadata.default_sort_order_id}
        for position, field in enumerate(order.fields):
            rows.append(
                {
                    **head,
                    "position": position,
                    "transform": field.transform,
                    "source_ids": list(field.source_ids),
                    "source_columns": [columns[i][0] if i in columns else None for i in field.source_ids],
                    "direction": field.direction,
                    "null_order": field.null_order,
                }
            )
        if not order.fields:
            rows.append({**dict.fromkeys(schema.names), **head})
    yield rows_table(rows, schema)


def build_properties(state: TableState, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the table's properties, sorted by key."""
    yield rows_table([{"key": k, "value": v} for k, v in sorted(state.metadata.properties.items())], schema)
