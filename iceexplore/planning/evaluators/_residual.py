"""What is left of a filter once a file's partition is known (Java: ``ResidualEvaluator``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.expressions import ALWAYS, NEVER, And, Expression, Or, Predicate, all_of, any_of, predicates
from iceexplore.manifests import EntryBatch
from iceexplore.metadata import TableMetadata
from iceexplore.planning.evaluators._file_evaluator import FileWitnesses
from iceexplore.planning.evaluators._filter import Filter
from iceexplore.planning.evaluators._metrics_evaluator import all_masks, any_mask

__all__ = ["residuals"]

#: Codes of three per term are gathered in 64 bits; after this many terms those that occur are counted anew.
_TERMS_AT_ONCE = 20


def residuals(
    wanted: Filter, batch: EntryBatch, metadata: TableMetadata
) -> tuple[pa.Int32Array, tuple[Expression, ...]]:
    """What the partition of each file leaves to ask of its rows.

    A term that the tuple proves is true of every row (strict projection) goes, one of which it proves that it is true
    of none (inclusive projection) makes its branch `NEVER`. Statistics are not asked: `Filter.judge` says which files
    match as a whole.

    Parameters
    ----------
    batch
        Data files with their tuples.

    Returns
    -------
    tuple
        int32, one per file: its place among the expressions; and these, each once. The first is the whole filter,
        whether or not a file has it.
    """
    n = len(batch)
    terms = list(dict.fromkeys(predicates(wanted.expression)))
    witnesses = FileWitnesses(batch, metadata, statistics=False)
    codes: npt.NDArray[np.int64] = np.zeros(n, np.int64)
    told: dict[Predicate, npt.NDArray[np.int8]] = {}
    for p in terms:
        found = witnesses.tuples(p)
        if not found:
            continue
        always = any_mask((w.must() for w in found), n)
        never = ~all_masks((w.may() for w in found), n)
        told[p] = always.astype(np.int8) - (never & ~always)
        codes = codes * 3 + (told[p] + 1)
        if len(told) % _TERMS_AT_ONCE == 0:
            codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    if not told:
        return pa.array(np.zeros(n, np.int32)), (wanted.expression,)
    _, first, kind = np.unique(codes, return_index=True, return_inverse=True)
    places: dict[Expression, int] = {wanted.expression: 0}
    number = np.zeros(len(first), np.int32)
    for i, row in enumerate(first.tolist()):
        left = _left(wanted.expression, {p: int(t[row]) for p, t in told.items()})
        number[i] = places.setdefault(left, len(places))
    return pa.array(number[kind] if n else number, pa.int32()), tuple(places)


def _left(expression: Expression, told: Mapping[Any, int]) -> Expression:
    match expression:
        case And(children):
            return all_of(*(_left(c, told) for c in children))
        case Or(children):
            return any_of(*(_left(c, told) for c in children))
        case Predicate():
            sign = told.get(expression, 0)
            return ALWAYS if sign > 0 else NEVER if sign < 0 else expression
    return expression
