"""Display schemas, specs, sort orders and snapshots as a line, or as a card in a notebook.

Names in a record come from an untrusted table, so `render` escapes and shortens them.
"""

from __future__ import annotations

from datetime import UTC, datetime

from iceexplore.metadata._text import format_sort_order, format_spec
from iceexplore.metadata.document._model import PartitionSpec, Snapshot, SortOrder, TableMetadata
from iceexplore.metadata.types._types import Schema
from iceexplore.render import Card, CardTable, card_of, escape, line_of

__all__ = ["format_ms"]

#: Maximum number of rows to show in a card.
_MOST = 200


def format_ms(ms: int | None) -> str:
    """Format milliseconds since the epoch as ``2024-01-31 12:00:00.123 UTC``; out of range, as a number."""
    if ms is None:
        return "—"
    try:
        when = datetime.fromtimestamp(ms // 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"
    return f"{when.replace(tzinfo=None).isoformat(' ')}.{ms % 1000:03d} UTC"


@card_of.register
def _schema_card(schema: Schema) -> Card:
    """Return a card with one row for each field, nested ones by their full names."""
    rows: list[tuple[str, ...]] = []
    names = {f.field_id: name for name, f in schema.walk()}
    for name, f in schema.walk():
        if len(rows) == _MOST:
            break
        default = "" if f.initial_default is None else escape.shorten(repr(f.initial_default), 40)
        need = "required" if f.required else ""
        rows.append((str(f.field_id), name, escape.shorten(str(f.type), 80), need, default, f.doc or ""))
    keys = ", ".join(names.get(i, f"#{i}") for i in schema.identifier_field_ids)
    note = f"the first {_MOST}; .fields has all of them" if len(names) > _MOST else ""
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
    """Return ``<PartitionSpec 2: days(#2) as started_at_day>``, where ``#2`` is the source column's id."""
    parts = [f"{format_spec(type(spec)(spec.spec_id, (f,)), Schema(0, ()))} as {f.name}" for f in spec.fields[:_MOST]]
    return escape.text(f"<PartitionSpec {spec.spec_id}: {', '.join(parts) or 'unpartitioned'}>")


@line_of.register
def _order_line(order: SortOrder) -> str:
    """Return ``<SortOrder 1: #3 DESC NULLS LAST>``, where ``#3`` is the source column's id."""
    return escape.text(f"<SortOrder {order.order_id}: {format_sort_order(order, Schema(0, ()))}>")


@line_of.register
def _snapshot_line(snapshot: Snapshot) -> str:
    """Return a line with a snapshot's id, operation, time and parent."""
    parent = "" if snapshot.parent_snapshot_id is None else f", parent {snapshot.parent_snapshot_id}"
    number = f", sequence number {snapshot.sequence_number}" if snapshot.sequence_number else ""
    did = escape.shorten(snapshot.operation or "no operation", 40)
    return escape.text(f"<Snapshot {snapshot.snapshot_id}: {did}, {format_ms(snapshot.timestamp_ms)}{number}{parent}>")


@card_of.register
def _snapshot_card(snapshot: Snapshot) -> Card:
    """Return a card with a snapshot's fields and its summary."""
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
    """Return a line that counts the parts of a metadata file."""
    counted = (
        (m.schemas, "schema", "schemas"),
        (m.partition_specs, "partition spec", "partition specs"),
        (m.sort_orders, "sort order", "sort orders"),
        (m.snapshots, "snapshot", "snapshots"),
        (m.refs, "ref", "refs"),
    )
    parts = ", ".join(f"{len(of)} {one if len(of) == 1 else many}" for of, one, many in counted)
    return escape.text(f"<TableMetadata v{m.format_version} of {escape.shorten(m.location, 200)}: {parts}>")
