"""Column metrics of virtual columns: expressions of a V4 table that no partition spec uses, such as ``lower(x)``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from iceexplore.arrow import AnyArray
from iceexplore.arrow import compute as pc
from iceexplore.metadata import (
    NestedField,
    Schema,
    TableMetadata,
    apply_function,
    function_type,
    is_variable_length,
    virtual_expressions,
)
from iceexplore.writing._column_metrics import StatColumn, bounds_of, stat_columns

__all__ = ["VirtualColumn", "metrics_of_values", "virtual_columns"]


@dataclass(frozen=True)
class VirtualColumn:
    """A virtual column that may have statistics.

    Attributes
    ----------
    column
        A column with the expression's id and name and the type of the results. It has the metrics mode of its source.
    source
        The column that the function takes.
    function
        The function, as expressions name it: ``lower``, ``bucket[16]``.
    """

    column: StatColumn
    source: StatColumn
    function: str

    def of(self, values: AnyArray) -> AnyArray:
        """Return the function's results for values of the source column."""
        return apply_function(self.function, [self.source.type], [values])


def virtual_columns(metadata: TableMetadata, schema: Schema) -> list[VirtualColumn]:
    """Return the virtual columns of a table whose functions are known and whose sources are in the schema.

    Those whose source is inside a list or map, or has no metrics (mode ``none``), are left out.
    """
    expressions = virtual_expressions(metadata)
    if not expressions:
        return []
    columns = {c.field.field_id: c for c in stat_columns(metadata, schema)}
    out = []
    for e in expressions:
        source = columns.get(e.source_ids[0])
        if source is None or source.repeated or source.mode == "none":
            continue
        kind = function_type(e.transform, [source.type])
        if kind is None:
            continue
        name = e.name or f"expression_{e.expr_id}"
        field = NestedField(e.expr_id, name, kind)
        out.append(VirtualColumn(StatColumn(field, (name,), False, source.mode, source.length), source, e.transform))
    return out


def metrics_of_values(column: StatColumn, values: AnyArray) -> dict[str, Any]:
    """Return counts, bounds and lengths of a column's values, as `stats_arrays` takes them."""
    low, high, nan = bounds_of(column, values)
    out: dict[str, Any] = {"value_count": len(values), "null_count": values.null_count, "nan_count": nan}
    if column.bounded and low.is_valid:
        longest = pc.max(pc.binary_length(values)).as_py() if column.cut is not None else 0
        out |= {"lower": low, "upper": high, "tight_bounds": column.cut is None or longest <= column.cut}
    if column.mode != "counts" and is_variable_length(column.type) and len(values) > values.null_count:
        lengths = pc.binary_length(values)
        out |= {"average_length": round(pc.mean(lengths).as_py()), "max_length": pc.max(lengths).as_py()}
    return out
