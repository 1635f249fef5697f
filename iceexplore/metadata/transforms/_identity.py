"""The transforms identity and void: the value itself, and null."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyColumn, PlainValue, build
from iceexplore.metadata.transforms._projection import Op, Projection
from iceexplore.metadata.transforms._transform import Preimage, Transform
from iceexplore.metadata.types._arrow import arrow_type
from iceexplore.metadata.types._parameters import type_base
from iceexplore.metadata.types._types import PrimitiveType, Type

__all__ = ["IdentityTransform", "VoidTransform"]

_WITHOUT_EQUALITY = frozenset(("geography", "geometry", "variant"))


@dataclass(frozen=True)
class IdentityTransform(Transform):
    """The transform identity: the value itself."""

    name: ClassVar[str] = "identity"
    is_identity: ClassVar[bool] = True
    preserves_order: ClassVar[bool] = True
    keeps_type: ClassVar[bool] = True

    def accepts(self, source: Type) -> bool:
        """Return whether the type is a primitive other than variant and the geo types."""
        return isinstance(source, PrimitiveType) and type_base(source) not in _WITHOUT_EQUALITY

    def result_type(self, source: Type | None) -> Type:
        """Return the source's type; ``unknown`` without a source, as in Java (``PartitionSpec.resultType``)."""
        return PrimitiveType("unknown") if source is None else source

    def apply(self, source: Type, values: AnyColumn) -> AnyArray:
        """Return the values as they are."""
        return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values

    def scalar_function(self, source: Type) -> Callable[[Any], Any] | None:
        """Return the identity function."""
        return lambda value: value

    def project(self, op: Op, literals: tuple[Any, ...], source: Type, *, strict: bool) -> Projection | None:
        """Return the predicate itself."""
        return Projection(op, literals, source)

    def preimage(self, source: Type, values: AnyArray) -> Preimage | None:
        """Return each value as its only source value."""
        return Preimage(exact=values.cast(arrow_type(source)))

    def default_name(self, column: str) -> str:
        """Return the column's name."""
        return column

    def to_sql(self, column: str) -> str:
        """Return the column's name."""
        return column

    def refines(self, other: Transform, source: Type) -> bool:
        """Return True for any other transform."""
        return not other.is_identity


@dataclass(frozen=True)
class VoidTransform(Transform):
    """The transform void, which is always null and replaces a dropped field in v1 (spec, "Partition Evolution")."""

    name: ClassVar[str] = "void"
    is_void: ClassVar[bool] = True
    same_for_timestamps: ClassVar[bool] = True

    def accepts(self, source: Type) -> bool:
        """Return True for every type."""
        return True

    def result_type(self, source: Type | None) -> Type:
        """Return the source's type; ``unknown`` without a source, as in Java (``PartitionSpec.resultType``)."""
        return PrimitiveType("unknown") if source is None else source

    def _apply(self, source: Type, values: AnyArray) -> AnyArray:
        return build.nulls(len(values), arrow_type(source))

    def parse_value(self, value: PlainValue) -> PlainValue:
        """Refuse every value."""
        raise ValueError("a void field is always null")

    def default_name(self, column: str) -> str:
        """Return ``<column>_null``."""
        return f"{column}_null"
