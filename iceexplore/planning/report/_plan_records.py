"""Some of a plan's tasks, as records."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.expressions import expression_sql
from iceexplore.manifests import whole
from iceexplore.planning.report._tables import tasks_table

if TYPE_CHECKING:
    from iceexplore.planning.scan._result import PlannedScan

__all__ = ["task_records"]


def task_records(plan: PlannedScan, tasks: Any) -> list[dict[str, Any]]:
    """The plan's table of tasks, of some of them on end.

    Besides ``ordinal``; ``left``: what is left of the filter, if not all of it or nothing; ``row_groups`` and
    ``row_groups_read`` where they are known; ``why``: of the first row group that is skipped.
    """
    if not len(tasks):
        return []
    part = replace(plan, files=plan.files.take(pa.array(tasks, pa.int64())), row_groups=None)
    out: list[dict[str, Any]] = tasks_table(part).to_pylist()
    ordinals = part.files.files.entries["ordinal"].to_pylist()
    for record, ordinal, number in zip(out, ordinals, part.files.residual.to_pylist(), strict=True):
        left = part.files.residuals[number]
        partly = not record["whole"] and left != plan.filter.expression
        record |= {"ordinal": ordinal, "left": expression_sql(left, "sql") if partly else None, "why": None}
    if plan.row_groups is None:
        return out
    groups = plan.row_groups.filter(pc.is_in(whole(plan.row_groups["file"]), pa.array(tasks, pa.int64())))
    for record in out:
        record |= {"row_groups": 0, "row_groups_read": 0}
    for group in groups.to_pylist():
        record = out[group["file"] - int(tasks[0])]
        if group["row_group"] is None:
            continue
        record["row_groups"] += 1
        record["row_groups_read"] += group["may"] is not False
        if group["may"] is False and record["why"] is None:
            record["why"] = group
    return out
