"""How schemas, specs, sort orders and snapshots show themselves: a line, or a card in a notebook. Never the raw record.

A record's names come from a table, so what escapes and shortens them is `render`'s.
"""

from __future__ import annotations

from datetime import UTC, datetime

from iceexplore.metadata._text import format_sort_order, format_spec
from iceexplore.metadata.document._model import PartitionSpec, Snapshot, SortOrder, TableMetadata
from iceexplore.metadata.types._types import Schema
from iceexplore.render import Card, CardTable, card_of, escape, line_of

__all__ = ["format_ms"]

#: Columns of a schema that are shown.
_MOST = 200


def format_ms(ms: int | None) -> str:
    """Milliseconds since the epoch as ``2024-01-31 12:00:00.123 UTC``; what no calendar holds, as the number."""
    if ms is None:
        return "—"
    try:
        when = datetime.fromtimestamp(ms // 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"
    return f"{when.year:04d}-{when:%m-%d %H:%M:%S}.{ms % 1000:03d} UTC"


@card_of.register
def _schema_card(schema: Schema) -> Card:
    """Id, name, type and what else there is of each field, nested ones by their full names."""
    rows: list[tuple[str, ...]] = []
    names = {f.field_id: name for name, f in schema.walk()}
    for name, f in schema.walk():
        if len(rows) == _MOST:
            break
        default = "" if f.initial_default is None else escape.shorten(repr(f.initial_default), 40)
        need = "required" if f.required else ""
        rows.append((str(f.field_id), name, escape.shorten(str(f.type), 80), need, default, f.doc or ""))
    keys = ", ".join(names.get(i, f"#{i}") for i in schema.identifier_field_ids)
    note = f"the first {_MOST}; .fields has them all" if len(names) > _MOST else ""
    table = CardTable(
        f"{len(names)} field{'' if len(names) == 1 else 's'}",
        ("id", "field", "type", "null", "default", "doc"),
        tuple(rows),
        note=note,
        right=frozenset({0}),
    )
    facts = (("Identifier", keys),) if keys else ()
    return Card(f"Schema {schema.schema_id}", facts=facts, tables=(table,))


@line_of.register
def _spec_line(spec: PartitionSpec) -> str:
    """``<PartitionSpec 2: days(#2) as started_at_day>``; ``#2`` is the column's id, which the schema names."""
    parts = [f"{format_spec(type(spec)(spec.spec_id, (f,)), Schema(0, ()))} as {f.name}" for f in spec.fields[:_MOST]]
    return escape.text(f"<PartitionSpec {spec.spec_id}: {', '.join(parts) or 'unpartitioned'}>")


@line_of.register
def _order_line(order: SortOrder) -> str:
    """``<SortOrder 1: #3 DESC NULLS LAST>``; ``#3`` is the column's id, which the schema names."""
    return escape.text(f"<SortOrder {order.order_id}: {format_sort_order(order, Schema(0, ()))}>")


@line_of.register
def _snapshot_line(snapshot: Snapshot) -> str:
    """A snapshot in one line: what it is known by, and when it did what."""
    parent = "" if snapshot.parent_snapshot_id is None else f", parent {snapshot.parent_snapshot_id}"
    number = f", sequence number {snapshot.sequence_number}" if snapshot.sequence_number else ""
    did = escape.shorten(snapshot.operation or "no operation", 40)
    return escape.text(f"<Snapshot {snapshot.snapshot_id}: {did}, {format_ms(snapshot.timestamp_ms)}{number}{parent}>")


@card_of.register
def _snapshot_card(snapshot: Snapshot) -> Card:
    """A snapshot with its summary."""
    facts = (
        ("Committed", format_ms(snapshot.timestamp_ms)),
        ("Operation", snapshot.operation),
        ("Parent", snapshot.parent_snapshot_id),
        ("Sequence number", snapshot.sequence_number),
        ("Schema", snapshot.schema_id),
        ("First row id", snapshot.first_row_id),
        ("Added rows", snapshot.added_rows),
        ("Root or manifest list", snapshot.root_location),
        ("Manifests", None if snapshot.manifests is None else len(snapshot.manifests)),
    )
    summary = tuple((k, v) for k, v in list((snapshot.summary or {}).items())[:_MOST] if k != "operation")
    tables = (CardTable("Summary", ("key", "value"), summary),) if summary else ()
    known = tuple((name, str(value)) for name, value in facts if value is not None)
    return Card(f"Snapshot {snapshot.snapshot_id}", facts=known, tables=tables)


@line_of.register
def _metadata_line(m: TableMetadata) -> str:
    """What a metadata file holds, in one line; ``.raw`` is the JSON."""
    counted = (
        (m.schemas, "schema", "schemas"),
        (m.partition_specs, "partition spec", "partition specs"),
        (m.sort_orders, "sort order", "sort orders"),
        (m.snapshots, "snapshot", "snapshots"),
        (m.refs, "ref", "refs"),
    )
    parts = ", ".join(f"{len(of)} {one if len(of) == 1 else many}" for of, one, many in counted)
    return escape.text(f"<TableMetadata v{m.format_version} of {escape.shorten(m.location, 200)}: {parts}>")
