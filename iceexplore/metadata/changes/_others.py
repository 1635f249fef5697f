"""Compare two partition specs, and two sets of properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from iceexplore.metadata._text import format_transform
from iceexplore.metadata.document._model import PartitionField, PartitionSpec, TableMetadata
from iceexplore.metadata.transforms._registry import parse_transform
from iceexplore.metadata.types._types import Schema

__all__ = ["PropertyChange", "SpecChange", "properties_changes", "spec_changes"]


@dataclass(frozen=True)
class SpecChange:
    """One change of a partition field; ``text`` is a sentence."""

    kind: Literal["added", "dropped", "moved", "renamed"]
    field_id: int
    name: str
    old: PartitionField | None
    new: PartitionField | None
    text: str


@dataclass(frozen=True)
class PropertyChange:
    """One change of a property; ``text`` is a sentence."""

    kind: Literal["added", "changed", "removed"]
    name: str
    old: str | None
    new: str | None
    text: str


def spec_changes(
    old: PartitionSpec, new: PartitionSpec, names: Schema | TableMetadata | None = None
) -> list[SpecChange]:
    """Return the changes from one spec to another; fields are matched by partition field id.

    A field with the same id but a different source or transform (v1 reused ids) counts as dropped and added;
    a field whose transform became ``void`` counts as dropped (spec, "Partition Evolution"). ``names`` resolves column
    names.
    """
    schema = Schema(0, ()) if names is None else names
    before = {f.field_id: f for f in old.fields if not parse_transform(f.transform).is_void}
    after = {f.field_id: f for f in new.fields if not parse_transform(f.transform).is_void}
    changes: list[SpecChange] = []
    for field_id, field in after.items():
        was = before.get(field_id)
        if was is None or _meaning(was) != _meaning(field):
            text = f"partition field {field.name} added: {_field_text(field, schema)}"
            changes.append(SpecChange("added", field_id, field.name, None, field, text))
        elif was.name != field.name:
            text = f"partition field {was.name} renamed to {field.name}"
            changes.append(SpecChange("renamed", field_id, field.name, was, field, text))
    for field_id, field in before.items():
        now = after.get(field_id)
        if now is None or _meaning(now) != _meaning(field):
            text = f"partition field {field.name} dropped: {_field_text(field, schema)}"
            changes.append(SpecChange("dropped", field_id, field.name, field, None, text))
    if not changes and list(before) != list(after):
        order = ", ".join(f.name for f in after.values())
        first = next(iter(after.values()))
        changes.append(
            SpecChange("moved", first.field_id, first.name, None, None, f"partition fields reordered: {order}")
        )
    return changes


def _meaning(field: PartitionField) -> tuple[object, ...]:
    return parse_transform(field.transform), field.source_ids


def _field_text(field: PartitionField, names: Schema | TableMetadata) -> str:
    return format_transform(field.transform, field.source_ids, names)


def properties_changes(old: Mapping[str, str], new: Mapping[str, str]) -> list[PropertyChange]:
    """Return the changes from one set of properties to another, by name."""
    changes: list[PropertyChange] = []
    for name in sorted({*old, *new}):
        was, now = old.get(name), new.get(name)
        if was == now:
            continue
        if was is None:
            changes.append(PropertyChange("added", name, was, now, f"{name} set to {now}"))
        elif now is None:
            changes.append(PropertyChange("removed", name, was, now, f"{name} removed, was {was}"))
        else:
            changes.append(PropertyChange("changed", name, was, now, f"{name} changed from {was} to {now}"))
    return changes
