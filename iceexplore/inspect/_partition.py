"""The partition column: one struct for all of the table's specs, like Java's ``Partitioning.partitionType``."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from iceexplore.inspect._shown import conform, shown_type
from iceexplore.manifests import Manifest
from iceexplore.metadata import PartitionSpec, TableMetadata, parse_transform

__all__ = ["PartitionUnion", "partition_union"]


@dataclass(frozen=True)
class PartitionUnion:
    """The fields of the partition struct by ascending id: ids, names and types. Empty if the table is unpartitioned."""

    ids: tuple[int, ...]
    type: pa.StructType

    def __bool__(self) -> bool:
        return bool(self.ids)

    def struct(self, leaf: Manifest) -> pa.StructArray:
        """Return a manifest's partition tuples as this struct; fields that the spec lacks are null."""
        return self.of_tuples(leaf.partition(), len(leaf))

    def of_tuples(self, own: pa.StructArray | None, count: int) -> pa.StructArray:
        """Return partition tuples of manifest entries, which name fields by id, as this struct."""
        children = {} if own is None else dict(zip((f.name for f in own.type), own.flatten(), strict=True))
        arrays = []
        for field_id, field in zip(self.ids, self.type, strict=True):
            found = children.get(str(field_id))
            arrays.append(pa.nulls(count, field.type) if found is None else conform(found, field.type))
        return pa.StructArray.from_arrays(arrays, fields=list(self.type))

    def width(self, spec: PartitionSpec | None) -> int:
        """Return how many of the fields a spec has; this distinguishes fields that it lacks from nulls (as in Java)."""
        return 0 if spec is None else len({f.field_id for f in spec.fields} & set(self.ids))


def partition_union(metadata: TableMetadata) -> PartitionUnion:
    """Return the union of all specs' fields.

    As in Java: the newest spec names a field, a void field takes the type of the transform it replaced, and a field
    whose source column is not in the current schema is left out. Unlike Java, an unknown transform is not an error (its
    values show as text), and of two fields with one name the later is called ``<name>_<id>``.
    """
    if not any(spec.fields for spec in metadata.partition_specs):  # indexing 200,000 columns takes a second
        return PartitionUnion((), pa.struct([]))
    columns = metadata.schema().by_id()
    names: dict[int, str] = {}
    types: dict[int, pa.DataType] = {}
    void: dict[int, bool] = {}
    for spec in sorted(metadata.partition_specs, key=lambda s: -s.spec_id):
        for field in spec.fields:
            source = columns.get(field.source_id) if field.source_ids else None
            if source is None:
                continue
            names.setdefault(field.field_id, field.name)
            transform = parse_transform(field.transform)
            if field.field_id in types and not (void[field.field_id] and not transform.is_void):
                continue
            void[field.field_id] = transform.is_void
            kind = shown_type(transform.result_type(source[1].type)) if transform.is_known else pa.string()
            types[field.field_id] = kind
    ids = tuple(sorted(types))
    taken: set[str] = set()
    fields = []
    for field_id in ids:
        name = names[field_id]
        while name in taken:
            name = f"{name}_{field_id}"
        taken.add(name)
        fields.append(pa.field(name, types[field_id]))
    return PartitionUnion(ids, pa.struct(fields))
