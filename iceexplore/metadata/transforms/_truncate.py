"""The transform truncate: round numbers down to a multiple of the width, and cut strings and binary values to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError
from iceexplore.metadata.transforms._projection import Op, Projection, distinct, project_ordered
from iceexplore.metadata.transforms._transform import Preimage, Transform, WidthTransform, base_in
from iceexplore.metadata.types._arrow import arrow_type
from iceexplore.metadata.types._parameters import decimal_parameters, type_base
from iceexplore.metadata.types._types import PrimitiveType, Type
from iceexplore.metadata.values._decimals import decimal_of, unscaled
from iceexplore.metadata.values._stored_integers import by_unique, integers_of

__all__ = ["TruncateTransform"]

_SOURCES = frozenset(("binary", "decimal", "int", "long", "string"))
_BITS = {"int": 32, "long": 64}


@dataclass(frozen=True)
class TruncateTransform(WidthTransform):
    """Numbers rounded down to a multiple of the width; the first characters of strings, or bytes of binary values."""

    name: ClassVar[str] = "truncate"
    width_name: ClassVar[str | None] = "width"
    preserves_order: ClassVar[bool] = True
    keeps_type: ClassVar[bool] = True
    may_overflow: ClassVar[bool] = True

    def accepts(self, source: Type) -> bool:
        """Return whether the type is int, long, decimal, string or binary."""
        return base_in(source, _SOURCES)

    def result_type(self, source: Type | None) -> Type:
        """Return the source's type; ``unknown`` without a source, as in Java (``PartitionSpec.resultType``)."""
        return PrimitiveType("unknown") if source is None else source

    def _apply(self, source: Type, values: AnyArray) -> AnyArray:
        width = self.width
        match type_base(source):
            case _ if not width:
                return super()._apply(source, values)
            case "int" | "long":
                numbers = integers_of(values)
                cut_down = build.array(numbers - np.mod(numbers, width), mask=np.asarray(values.is_null()))
                # Results below the type's lowest number wrap around, as in Java (``TruncateUtil``).
                return cut_down.cast(arrow_type(source), safe=False)
            case "string":
                return pc.utf8_slice_codeunits(values, 0, width)
            case "binary":
                return pc.binary_slice(values, 0, width)
            case "decimal":
                precision, scale = values.type.precision, values.type.scale

                def cut(value: Decimal) -> Decimal:
                    number = unscaled(value, scale)
                    down = decimal_of(number - number % width, scale)
                    if len(down.as_tuple().digits) > precision:  # Java refuses to write it (``DecimalUtil``)
                        raise OptionError(f"truncate[{width}] of {value} is {down}, which does not fit in {source}")
                    return down

                return by_unique(values, cut, values.type)
        raise OptionError(f"truncate of {source}: the transform accepts only int, long, decimal, string and binary")

    def scalar_function(self, source: Type) -> Callable[[Any], Any] | None:
        """Return the function that truncates a single value; decimals are exact even beyond 28 digits."""
        width = self.width
        match type_base(source):
            case _ if not width:
                return None
            case "int" | "long":
                return lambda value: value - value % width
            case "string" | "binary" | "fixed":
                return lambda value: value[:width]
            case "decimal":
                parameters = decimal_parameters(source)
                if parameters is None:
                    return None
                scale = parameters[1]

                def cut(value: Decimal) -> Decimal:
                    number = unscaled(value, scale)
                    return decimal_of(number - number % width, scale)

                return cut
        return None

    def _project(
        self, op: Op, literals: tuple[Any, ...], source: Type, apply: Callable[[Any], Any], *, strict: bool
    ) -> Projection | None:
        base = type_base(source)
        if base in ("string", "binary", "fixed"):
            return self._project_prefix(op, literals, source, strict)
        if base == "decimal":
            return self._project_decimal(op, literals, source, strict)
        out = project_ordered(op, literals, apply, source, strict=strict)
        # Results below the type's lowest number wrap around in Java; such partition values are ignored
        # (`wrapped_result`).
        lowest = -(1 << (_BITS[base] - 1))
        return None if out is None or any(v < lowest for v in out.literals) else out

    def _project_decimal(self, op: Op, literals: tuple[Any, ...], source: Type, strict: bool) -> Projection | None:
        """Project via the unscaled integers of decimals, because Python's decimal arithmetic rounds to 28 digits."""
        parameters = decimal_parameters(source)
        if parameters is None:
            return None
        scale = parameters[1]
        numbers = tuple(unscaled(v, scale) for v in literals)
        if any(decimal_of(n, scale) != v for n, v in zip(numbers, literals, strict=True)):
            return None  # a literal has more digits than the column's scale: no value of the column equals it
        out = project_ordered(op, numbers, lambda n: n - n % self.width, source, strict=strict)
        if out is None or any(abs(n) >= 10**38 for n in out.literals):
            return None
        return Projection(out.op, tuple(decimal_of(n, scale) for n in out.literals), source)

    def _project_prefix(self, op: Op, literals: tuple[Any, ...], source: Type, strict: bool) -> Projection | None:
        """Project to truncated text (in code points) or bytes; a result shorter than the width is the whole value."""
        width = self.width
        x = literals[0] if literals else ""
        cut, short, fits = x[:width], len(x) < width, len(x) <= width
        match op:
            case "starts-with":
                if short:
                    return Projection("starts-with", (x,), source)
                return Projection("=", (cut,), source) if fits or not strict else None
            case "not-starts-with":
                if short:
                    return Projection("not-starts-with", (x,), source)
                return Projection("!=", (cut,), source) if fits or strict else None
            case "=" | "in":
                if strict:
                    whole = tuple(v for v in literals if len(v) < width)
                    return Projection("in", whole, source) if whole else None
                return Projection(op, distinct(v[:width] for v in literals), source)
            case "!=" | "not-in":
                if strict:
                    return Projection(op, distinct(v[:width] for v in literals), source)
                whole = tuple(v for v in literals if len(v) < width)
                return Projection("not-in", whole, source) if whole else None
            case "<":
                # A value's prefix is never above the value. If x is not longer than the width, the prefix is below x if
                # and only if the value is below x.
                return Projection("<" if strict or fits else "<=", (cut,), source)
            case "<=":
                if strict:
                    return Projection("<=" if short else "<", (cut,), source)
                return Projection("<=", (cut,), source)
            case ">":
                return Projection(">" if strict or short else ">=", (cut,), source)
            case ">=":
                return Projection(">=" if not strict or fits else ">", (cut,), source)
        return None

    def preimage(self, source: Type, values: AnyArray) -> Preimage | None:
        """Return intervals for numbers; for a string or bytes, the value if shorter than the width, else the prefix."""
        base, width = type_base(source), self.width
        if width and base in _BITS:
            start = integers_of(values)
            top = (1 << (_BITS[base] - 1)) - 1
            return Preimage(start, np.minimum(start, top - width + 1) + width - 1)
        if width and base == "decimal":
            scale = (decimal_parameters(source) or (1, 0))[1]
            numbers = [0 if v is None else unscaled(v, scale) for v in values.to_pylist()]
            if any(not -(2**63) <= n < 2**63 - width for n in numbers):
                raise ValueError("synthetic decimals have at most 18 digits")
            start = np.array(numbers, dtype=np.int64)
            return Preimage(start, start + width - 1)
        if width and base in ("string", "binary"):
            text = pa.types.is_string(values.type)
            length = pc.utf8_length(values) if text else pc.binary_length(values)
            if (long := pc.fill_null(pc.greater(length, width), False)).true_count:
                raise ValueError(f"{values[long.to_pylist().index(True)].as_py()!r} is not a value of {self}")
            exact = pc.if_else(pc.less(length, width), values, pa.scalar(None, values.type))
            return Preimage(exact=exact, prefix=pc.fill_null(values, "" if text else b""))
        return None

    def default_name(self, column: str) -> str:
        """Return ``<column>_trunc_<width>``."""
        return f"{column}_trunc_{self.width}"

    def refines(self, other: Transform, source: Type) -> bool:
        """Return True for strings if this width is longer, for numbers if the other width is a multiple of this one."""
        if not isinstance(other, TruncateTransform) or not self.width or not other.width:
            return False
        if type_base(source) in ("string", "binary"):
            return self.width > other.width
        return self.width < other.width and other.width % self.width == 0

    def wrapped_result(self, source: Type) -> int | None:
        """Return the large positive result of Java for the smallest values, where it overflows (``TruncateUtil``).

        None if the width divides the smallest value, so that nothing overflows, and for types other than int and long.
        """
        bits = _BITS.get(type_base(source))
        if not self.width or bits is None:
            return None
        lowest = -(1 << (bits - 1))
        over = lowest % self.width
        return lowest - over + (1 << bits) if over else None
