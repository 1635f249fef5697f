"""Of files that one plan reads alone: why the other one does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.manifests import EntryBatch, whole
from iceexplore.planning.evaluators._explain import WHY_SCHEMA, explain_files
from iceexplore.planning.scan._files import leaves_of, parts_of
from iceexplore.planning.scan._manifests import candidates

if TYPE_CHECKING:
    from iceexplore.planning.scan._result import PlannedScan

__all__ = ["ABSENT_SCHEMA", "absent_from"]

_REASON = ("term", "by", "lower", "upper", "why")
ABSENT_SCHEMA = pa.schema([("absent", pa.string()), *(WHY_SCHEMA.field(name) for name in _REASON)])
_GONE = "not in its snapshot"


def absent_from(plan: PlannedScan, locations: pa.Array) -> pa.Table:
    """Why a plan does not read these data files. Its manifests are read, pruned ones too, until all are found.

    Returns
    -------
    pyarrow.Table
        Of `ABSENT_SCHEMA`, a row per location: ``absent`` is ``skipped`` with the term that decided, or ``not in its
        snapshot`` (of an incremental plan: not among the files that its appends added).
    """
    rows: list[pa.Table] = []
    places: list[np.ndarray] = []
    left = len(locations)
    for scan in plan.roots if left else ():
        for leaf in leaves_of(plan.state, scan, parts_of(plan.filter.field_ids), scan.rows.tolist()):
            at = pc.index_in(whole(leaf.entries["location"]), value_set=locations)
            mask = pc.and_(at.is_valid(), candidates(scan, leaf))
            if not mask.true_count:
                continue
            batch = EntryBatch.of(leaf, plan.filter.field_ids).filter(mask)
            rows.append(explain_files(plan.filter, batch, plan.state.metadata, np.arange(len(batch))).select(_REASON))
            places.append(np.asarray(at.filter(mask)).astype(np.int64))
            left -= len(places[-1])
            if left <= 0:
                break
    found = pa.concat_tables([pa.schema([ABSENT_SCHEMA.field(n) for n in _REASON]).empty_table(), *rows])
    back = np.full(len(locations), -1, dtype=np.int64)
    if places:
        back[np.concatenate(places)] = np.arange(len(found))
    there = pa.array(back, mask=back < 0)
    absent = pc.if_else(there.is_valid(), "skipped", _GONE)
    return pa.table([absent, *found.take(there).columns], schema=ABSENT_SCHEMA)
