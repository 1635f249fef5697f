"""The tables of a plan: files read, files and manifests skipped, deletes that apply, and the first rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError
from iceexplore.graph import to_frame
from iceexplore.manifests import whole
from iceexplore.widgets.core._ids import rows_of_node, snapshot_of_node

if TYPE_CHECKING:
    import pandas as pd

    from iceexplore.planning import PlanNodes, ScanPlan

__all__ = ["HEAD_ROWS", "TABLES", "nodes_of_rows", "row_of_node", "table_of"]

#: The keys and titles of the tables.
TABLES = [["tasks", "Files read"], ["skipped", "Skipped"], ["deletes", "Deletes"], ["head", "First rows"]]
#: The number of rows in the table of first rows.
HEAD_ROWS = 20
_TASKS = ("rows", "bytes", "deletes", "deleted_rows", "partition", "residual", "whole")
_SKIPPED = ("kind", "term", "by", "column", "lower", "upper", "files", "rows", "bytes", "why")


def table_of(plan: ScanPlan, table: str, filter_text: str) -> pd.DataFrame:
    """Return a table of a plan. Only the table of the first rows reads data files.

    Raises
    ------
    OptionError
        There is no such table.
    """
    if table == "tasks":
        return _ordered(plan.tasks_arrow, "file_path", _TASKS)
    if table == "skipped":
        return _ordered(plan.skipped_arrow, "name", _SKIPPED)
    if table == "deletes":
        return _ordered(plan.deletes_arrow, "file_path", ("kind", "tasks", "rows", "bytes"))
    if table == "head":
        from iceexplore.reading import head

        return head(plan.state, HEAD_ROWS, filter_text, plan.columns)
    raise OptionError(f"a plan has no table {table[:80]!r}; its tables are {', '.join(key for key, _ in TABLES)}")


def _ordered(table: pa.Table, location: str, first: Sequence[str]) -> pd.DataFrame:
    """Return the table with the file name first, then the most informative columns, then the others."""
    name = pc.replace_substring_regex(table[location], r"^.*/", "")
    names = [*first, *(n for n in table.column_names if n not in first)]
    return to_frame(table.select(names).add_column(0, "file", name))


def nodes_of_rows(nodes: PlanNodes, table: str, rows: Sequence[int]) -> list[str | None]:
    """Return the node ids that rows of a table represent; None for rows without a node."""
    if table == "tasks":
        files = nodes.plan.files
        at = pa.array(rows, pa.int64())
        places = zip(build.to_pylist(files.root_row.take(at)), build.to_pylist(_ordinals(nodes).take(at)), strict=True)
        return [nodes.file_id(row, ordinal) for row, ordinal in places]
    if table == "skipped":
        from iceexplore.planning import skipped_table

        records = skipped_table(nodes.plan).select(["kind", "root_row", "ordinal"]).take(pa.array(rows, pa.int64()))
        return [
            nodes.file_id(r["root_row"], r["ordinal"])
            if r["kind"] == "data file"
            else nodes.manifest_id(r["root_row"])
            if r["kind"] == "manifest"
            else None
            for r in build.to_pylist(records)
        ]
    return [None] * len(rows)


def row_of_node(nodes: PlanNodes, table: str, node: str) -> int | None:
    """Return the row of a node in the table of files read; None if there is none."""
    rows = rows_of_node(node)
    if table != "tasks" or not node.startswith("file:") or snapshot_of_node(node) is None:
        return None
    if rows is None or len(rows) not in (1, 2):
        return None
    row = rows[0] if len(rows) == 2 else None
    return nodes.task(row, nodes.ordinal(row, rows[-1]))


def _ordinals(nodes: PlanNodes) -> AnyArray:
    found: AnyArray = whole(nodes.plan.files.files.entries["ordinal"])
    return found
