"""Definitions that the ids in a manifest refer to, from a table's metadata or a loose file's own header."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from iceexplore.metadata import (
    Expression,
    PartitionSpec,
    TableMetadata,
    Type,
    function_type,
    parse_transform,
    result_type,
)

__all__ = ["TableTypes"]


@dataclass(frozen=True)
class TableTypes:
    """Types of columns (in V4 also of expressions) by id, partition specs, expressions.

    Attributes
    ----------
    location
        The table's location, with which relative locations of V4 are joined; None for a loose file.
    """

    types: Mapping[int, Type] = field(default_factory=dict)
    specs: Mapping[int, PartitionSpec] = field(default_factory=dict)
    expressions: Mapping[int, Expression] = field(default_factory=dict)
    location: str | None = None

    @classmethod
    def of(cls, metadata: TableMetadata) -> TableTypes:
        """Return the definitions of a table; if a column and an expression wrongly share an id, the column wins."""
        types: dict[int, Type] = {i: f.type for i, (_, f) in metadata.all_fields().items()}
        columns = dict(types)
        for expression in metadata.expressions:
            source = columns.get(expression.source_ids[0]) if expression.source_ids else None
            own = None if source is None else function_type(expression.transform, [source])
            types.setdefault(expression.expr_id, own or result_type(expression.transform, source))
        return cls(
            types,
            {s.spec_id: s for s in metadata.partition_specs},
            {e.expr_id: e for e in metadata.expressions},
            metadata.location,
        )

    @cached_property
    def in_source(self) -> Mapping[int, tuple[tuple[int, int], ...]]:
        """By expression id, where layout (b) has the values: pairs of a source column and a partition field id."""
        out: dict[int, dict[tuple[int, int], None]] = {}
        for field_ in (f for spec in self.specs.values() for f in spec.fields if len(f.source_ids) == 1):
            transform = parse_transform(field_.transform)
            if transform.is_identity or transform.is_void:
                continue
            for e in self.expressions.values():
                if (e.transform, e.source_ids) == (field_.transform, field_.source_ids):
                    out.setdefault(e.expr_id, {})[field_.source_id, field_.field_id] = None
        return {expr_id: tuple(places) for expr_id, places in out.items()}

    @property
    def unpartitioned(self) -> int | None:
        """The id of the spec without fields; None if the table has none."""
        return next((i for i, s in sorted(self.specs.items()) if s.is_unpartitioned), None)
