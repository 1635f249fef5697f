"""The values of a column on a number line, and what a filter takes of it: for estimates, not for pruning."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.planning._evidence import comparable
from iceexplore.planning._expression import And, Expression, Or, Predicate, predicates

__all__ = ["Axis", "Floats", "Spans", "by_column", "spans"]

Floats: TypeAlias = npt.NDArray[np.float64]
#: Closed intervals, in order and apart from each other.
Spans: TypeAlias = tuple[tuple[float, float], ...]

#: Bytes of a text that make a number: a float holds 53 bits.
_BYTES = 6
_WEIGHTS = 256.0 ** np.arange(_BYTES - 1, -1, -1)


@dataclass(frozen=True)
class Axis:
    """How values of one column become numbers, in their order.

    Attributes
    ----------
    step
        1 where values are whole numbers (dates, times too), 0 where they are not.
    skip
        Of texts and bytes: how many leading bytes all bounds share, and no number needs.
    """

    step: float
    skip: int = 0
    binary: bool = False

    @classmethod
    def of(cls, lower: pa.Array, upper: pa.Array) -> Axis | None:
        """The axis of a column with these bounds; None for types without one, and where no bound is known."""
        kind = comparable(lower).type
        if pa.types.is_integer(kind):
            return cls(1.0)
        if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            return cls(0.0)
        if not _is_text(kind):
            return None
        lows, highs = _bytes(lower).drop_null(), _bytes(upper).drop_null()
        if not len(lows) or not len(highs):
            return None
        least, most = (pc.min_max(a)[end].as_py() for a, end in ((lows, "min"), (highs, "max")))
        shared = next(
            (i for i, (a, b) in enumerate(zip(least, most, strict=False)) if a != b), min(map(len, (least, most)))
        )
        return cls(0.0, shared, True)

    def numbers(self, values: pa.Array) -> Floats:
        """The values as numbers, NaN where one is null (or NaN)."""
        plain = comparable(values)
        if not self.binary:
            return np.asarray(plain.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
        known = _bytes(plain)
        cut = pc.binary_slice(pc.fill_null(known, b""), self.skip, self.skip + _BYTES)
        raw = np.asarray(cut.to_numpy(zero_copy_only=False).astype(f"S{_BYTES}"))
        out = raw.view(np.uint8).reshape(-1, _BYTES).astype(np.float64) @ _WEIGHTS
        return np.where(np.asarray(known.is_null()), np.nan, out)

    def number(self, value: Any) -> float:
        """One stored value as a number. A text that does not share the bounds' beginning is beyond all of them."""
        if not self.binary:
            return float(value)
        data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else bytes(value)
        return float(np.frombuffer(data[self.skip : self.skip + _BYTES].ljust(_BYTES, b"\0"), np.uint8) @ _WEIGHTS)

    def prefix(self, value: Any) -> tuple[float, float]:
        """From the first to the last text with a beginning."""
        data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else bytes(value)
        low = self.number(data)
        room = _BYTES - max(0, len(data) - self.skip)
        return (low, low + (256.0**room - 1 if room > 0 else 0.0))


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )  # fmt: skip


def _bytes(values: pa.Array) -> pa.Array:
    plain = comparable(values)
    return plain if pa.types.is_binary(plain.type) else plain.cast(pa.binary())


def by_column(expression: Expression) -> tuple[dict[int, list[Expression]], list[Expression]]:
    """The conjuncts of an expression that concern one column, by its id; and those that concern several."""
    single: dict[int, list[Expression]] = {}
    several: list[Expression] = []
    for part in expression.children if isinstance(expression, And) else (expression,):
        ids = {p.field_id for p in predicates(part)}
        if len(ids) == 1:
            single.setdefault(ids.pop(), []).append(part)
        elif ids:
            several.append(part)
    return single, several


def spans(expression: Expression, axis: Axis) -> Spans | None:
    """Where on the line matching values lie; None if that may be anywhere (``!=``, nulls, ...)."""
    match expression:
        case And(children):
            known = [s for s in (spans(c, axis) for c in children) if s is not None]
            return _common(known) if known else None
        case Or(children):
            parts = [spans(c, axis) for c in children]
            return None if any(p is None for p in parts) else _joined(s for p in parts if p is not None for s in p)
        case Predicate():
            return _of(expression, axis)
    return None


def _of(p: Predicate, axis: Axis) -> Spans | None:
    infinity = math.inf
    match p.op:
        case "=" | "in":
            return _joined((x, x) for x in (axis.number(v) for v in p.literals))
        case "<":
            return ((-infinity, axis.number(p.literals[0]) - axis.step),)
        case "<=":
            return ((-infinity, axis.number(p.literals[0])),)
        case ">":
            return ((axis.number(p.literals[0]) + axis.step, infinity),)
        case ">=":
            return ((axis.number(p.literals[0]), infinity),)
        case "starts-with":
            return (axis.prefix(p.literals[0]),) if axis.binary else None
    return None


def _joined(parts: Iterable[tuple[float, float]]) -> Spans:
    out: list[tuple[float, float]] = []
    for low, high in sorted(parts):
        if low > high:
            continue
        if out and low <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], high))
        else:
            out.append((low, high))
    return tuple(out)


def _common(parts: list[Spans]) -> Spans:
    out = parts[0]
    for other in parts[1:]:
        out = _joined((max(a, c), min(b, d)) for a, b in out for c, d in other if max(a, c) <= min(b, d))
    return out
