"""The interface of partition transforms (spec, "Partition Transforms"); each transform is a subclass.

Code outside this folder uses the properties and methods of a transform and does not depend on its name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyColumn, PlainValue
from iceexplore.errors import OptionError
from iceexplore.metadata.transforms._projection import Op, Projection
from iceexplore.metadata.types._arrow import arrow_type
from iceexplore.metadata.types._parameters import type_base
from iceexplore.metadata.types._types import PrimitiveType, Type
from iceexplore.metadata.values._human import format_value

__all__ = ["Preimage", "Transform", "UnknownTransform", "WidthTransform", "base_in", "whole_number"]


@dataclass(frozen=True, eq=False)
class Preimage:
    """The source values of given results: for each result an interval, one value, or all values with a prefix.

    Attributes
    ----------
    low, high
        First and last stored number (days, microseconds, unscaled decimals ...); None without an interval.
    exact
        The single value of each result; null where there are several. None if no result has a single value.
    prefix
        The prefix of every string or binary value; None if it is not known.
    """

    low: np.ndarray[Any, np.dtype[np.int64]] | None = None
    high: np.ndarray[Any, np.dtype[np.int64]] | None = None
    exact: AnyArray | None = None
    prefix: AnyArray | None = None


@dataclass(frozen=True)
class Transform(ABC):
    """A partition transform: a function from a column's values to partition values; null for null.

    ``str()`` returns it in the spec's notation, ``bucket[16]``. Transforms are immutable and hashable.

    Attributes
    ----------
    name
        Name in the spec.
    spark_name
        Name of the function in Spark SQL if it differs. None if it is the same, or if Spark has none.
    aliases
        Further names that users may write.
    width_name
        The meaning of the number in brackets; None for a transform without one.
    is_known
        False for a transform that the spec (v1 to v3) does not define.
    is_identity
        True if the result is the source value.
    is_void
        True if the result is always null.
    is_time
        True if results are units of time since 1970. A spec has at most one such field per column.
    preserves_order
        True if a greater source value never has a smaller result.
    keeps_type
        True if results are values of the source's type.
    own_text
        True if results look different from other values of the result type (`to_human_string`).
    same_for_timestamps
        True if a date has the same result as the timestamps of its day, so that its column may become a timestamp.
    may_overflow
        True if Java's results for the smallest values are wrong (`wrapped_result`).
    takes_several
        True if it can be a transform of several columns (`apply_several`).
    """

    name: ClassVar[str]
    spark_name: ClassVar[str | None] = None
    aliases: ClassVar[tuple[str, ...]] = ()
    width_name: ClassVar[str | None] = None
    is_known: ClassVar[bool] = True
    is_identity: ClassVar[bool] = False
    is_void: ClassVar[bool] = False
    is_time: ClassVar[bool] = False
    preserves_order: ClassVar[bool] = False
    keeps_type: ClassVar[bool] = False
    own_text: ClassVar[bool] = False
    same_for_timestamps: ClassVar[bool] = False
    may_overflow: ClassVar[bool] = False
    takes_several: ClassVar[bool] = False

    def __str__(self) -> str:
        return self.name

    @abstractmethod
    def accepts(self, source: Type) -> bool:
        """Return whether a column of this type can be transformed."""

    @abstractmethod
    def result_type(self, source: Type | None) -> Type:
        """Return the type of results; ``source`` is None if no schema has the source column any more."""

    def apply(self, source: Type, values: AnyColumn) -> AnyArray:
        """Return the partition values of a column's values; nulls stay null.

        Parameters
        ----------
        source
            The column's type; ``values`` are of its Arrow type.

        Returns
        -------
        pyarrow.Array
            An array of the Arrow type of `result_type`.

        Raises
        ------
        OptionError
            The transform is unknown or does not accept this type, or a result does not fit the result type.
        """
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        return self._apply(source, values).cast(arrow_type(self.result_type(source)))

    def apply_several(self, sources: Sequence[Type], values: Sequence[AnyArray]) -> AnyArray:
        """Return the partition values for values of several columns; for a single column, like `apply`.

        Raises
        ------
        OptionError
            For the same reasons as `apply`, or the transform does not take several columns.
        """
        if len(values) == 1:
            return self.apply(sources[0], values[0])
        raise OptionError(f"transform {str(self)!r} is defined for one column, not for {len(values)}")

    def _apply(self, source: Type, values: AnyArray) -> AnyArray:
        """Return the results for an array, in the result type or a type that can be cast to it."""
        raise OptionError(f"transform {str(self)!r} of {source} is not supported")

    def scalar_function(self, source: Type) -> Callable[[Any], Any] | None:
        """Return the function from a stored value (days, microseconds, ...) to the stored result, without overflow.

        None if the transform is unknown, is always null, does not accept the type, or has no hash for it. The function
        also accepts numbers beyond the type's range, such as the successor of the greatest value.
        """
        return None

    def project(self, op: Op, literals: tuple[Any, ...], source: Type, *, strict: bool) -> Projection | None:
        """Return a predicate on the partition value: implied by the one on the column or, if ``strict``, implying it.

        The inclusive projection is true for the partition of every row that satisfies the predicate: where it is false,
        no row matches. The strict projection is false for the partition of every row that does not satisfy it: where it
        is true, all rows match. They follow Iceberg's ``Transform.project`` and ``projectStrict``.

        Parameters
        ----------
        literals
            Stored values of the column's type.
        strict
            Return the strict projection instead of the inclusive one.

        Returns
        -------
        Projection or None
            None if nothing can be derived.
        """
        apply = self.scalar_function(source)
        if apply is None or op in ("is-nan", "not-nan"):
            return None  # of floating-point columns only identity has a projection, and it overrides this method
        if op in ("is-null", "not-null"):
            return Projection(op, (), self.result_type(source))
        return self._project(op, literals, source, apply, strict=strict)

    def _project(
        self, op: Op, literals: tuple[Any, ...], source: Type, apply: Callable[[Any], Any], *, strict: bool
    ) -> Projection | None:
        """Return the projection of a comparison; ``apply`` is the function that transforms a literal."""
        return None

    def to_human_string(self, type_: Type, value: PlainValue) -> str:
        """Format a result as Java's ``toHumanString``, which partition paths also use; None gives ``null``.

        Parameters
        ----------
        type_
            The result type. Other types are accepted where the transform has only one result type.
        value
            A value from Arrow or `decode_value`, or the stored integer.
        """
        return format_value(type_, value)

    def parse_value(self, value: PlainValue) -> PlainValue:
        """Convert a result that a user gave, such as ``"2024-05"`` for a month, to its stored form.

        Raises
        ------
        ValueError, TypeError
            The value cannot be a result of this transform.
        """
        return value

    def preimage(self, source: Type, values: AnyArray) -> Preimage | None:
        """Return the source values of some results; for a null result, the element is arbitrary.

        None if they can only be found by trying values (bucket); the results must then be whole numbers.

        Raises
        ------
        ValueError
            There is no such result, or its source values are beyond the type's range.
        """
        return None

    def default_name(self, column: str) -> str:
        """Return the default name of a partition field on a column, as Java's ``PartitionNameGenerator``."""
        return f"{column}_{self.name}"

    def to_sql(self, column: str) -> str:
        """Format the transform of a column in Spark's syntax: ``ts``, ``days(ts)``, ``bucket(16, id)``."""
        return f"{self.spark_name or self.name}({column})"

    def refines(self, other: Transform, source: Type) -> bool:
        """Return whether this transform makes another transform of the same column redundant, because it is finer.

        Rows with the same result then have the same result of the other transform.
        """
        return False

    def wrapped_result(self, source: Type) -> int | None:
        """Return roughly the greatest of Java's wrong results for the smallest values; None if all are right."""
        return None


@dataclass(frozen=True)
class WidthTransform(Transform):
    """A transform with a number in brackets. If the number is 0, as in a damaged table, nothing is computed."""

    width: int

    def __str__(self) -> str:
        return f"{self.name}[{self.width}]"

    def to_sql(self, column: str) -> str:
        """Format the transform of a column in Spark's syntax; Spark documents the width first."""
        return f"{self.name}({self.width}, {column})"


@dataclass(frozen=True)
class UnknownTransform(Transform):
    """A transform that is not in the spec: its results are shown, but not used to prune."""

    text: str
    name: ClassVar[str] = "unknown"
    is_known: ClassVar[bool] = False

    def __str__(self) -> str:
        return self.text

    def accepts(self, source: Type) -> bool:
        """Return True, because nothing is known about accepted types."""
        return True

    def result_type(self, source: Type | None) -> Type:
        """Return ``string`` (Java: ``UnknownTransform``)."""
        return PrimitiveType("string")

    def default_name(self, column: str) -> str:
        """Return the default name of a partition field: the name of the column, ``_``, and that of the transform."""
        return f"{column}_{self.text}"

    def to_sql(self, column: str) -> str:
        """Format the transform of a column as a function call."""
        return f"{self.text}({column})"


def base_in(source: Type, accepted: frozenset[str]) -> bool:
    """Return whether a type is a primitive whose name without parameters is one of these."""
    return isinstance(source, PrimitiveType) and type_base(source) in accepted


def whole_number(value: PlainValue) -> int:
    """Return a whole number that a user gave as a number or text.

    Raises
    ------
    ValueError, TypeError
        The value is not a whole number.
    """
    if isinstance(value, bool) or (not isinstance(value, str) and value != int(value)):
        raise ValueError("not a whole number")
    return int(value)
