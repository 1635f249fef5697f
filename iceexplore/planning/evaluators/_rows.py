"""Evaluate an expression on rows with Arrow's kernels, one batch at a time."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyField, build
from iceexplore.arrow import compute as pc
from iceexplore.expressions import Computed, Expression, Predicate, columns_of
from iceexplore.formats import FIELD_ID
from iceexplore.metadata import Type, arrow_type
from iceexplore.planning.evaluators._column_metrics import Mask
from iceexplore.planning.evaluators._computed import compute
from iceexplore.planning.evaluators._metrics_evaluator import satisfied, walk

__all__ = ["evaluate"]

_PRESENCE = frozenset(("is-null", "not-null"))
_NULL_SATISFIES = frozenset(("is-null", "not-nan"))


def evaluate(expression: Expression, table: pa.Table) -> pa.BooleanArray:
    """Return which rows an expression selects.

    Parameters
    ----------
    table
        The rows. Columns are found by field id (key ``PARQUET:field_id`` in the metadata of the Arrow fields). A column
        may be inside a struct: in a row in which the struct is null, the column is null too. If a column is missing
        from the table, it is null in every row.

        Values have the Arrow type of the column's Iceberg type (`arrow_type`), or a type that Arrow can cast to this
        type without loss: for example, a dictionary, an extension type, or int32 for a column of type long.

    Returns
    -------
    pyarrow.BooleanArray
        One value per row, never null: a row for which the expression is unknown is not selected.

    Raises
    ------
    pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError
        A column's values cannot be cast to the Arrow type of its Iceberg type.
    """
    wanted = set(columns_of(expression))
    paths = _paths(table.schema, (), wanted)
    if not paths:
        return pa.array(_batch(expression, {}, [], table.num_rows))
    tops = sorted({path[0] for path in paths.values()})
    used = table.select(tops)
    paths = {field_id: (tops.index(path[0]), *path[1:]) for field_id, path in paths.items()}
    masks = [_batch(expression, paths, b.columns, b.num_rows) for b in used.to_batches()]
    return pa.array(np.concatenate(masks) if masks else np.zeros(0, np.bool_), pa.bool_())


def _paths(fields: Iterable[AnyField], path: tuple[int, ...], wanted: set[int]) -> dict[int, tuple[int, ...]]:
    """Return the paths of wanted fields, by field id; fields that are not found are left out.

    A path leads to a field through the structs that contain it, with one index for each struct and a last one for the
    field itself. For example, ``(1, 0)`` is the first child of the struct with index 1. Fields inside lists and maps
    are not found.

    Parameters
    ----------
    fields
        The fields of a table, or the children of a struct.
    path
        The path of the struct whose children are ``fields``; empty for a table. The returned paths begin with it.
    wanted
        The ids of the wanted fields.
    """
    out: dict[int, tuple[int, ...]] = {}
    for i, field in enumerate(fields):
        here = (*path, i)
        raw = (field.metadata or {}).get(FIELD_ID, b"")
        if raw.isdigit() and int(raw) in wanted:
            out.setdefault(int(raw), here)
        kind = field.type.storage_type if isinstance(field.type, pa.BaseExtensionType) else field.type
        if pa.types.is_struct(kind):
            for field_id, found in _paths(kind.fields, here, wanted).items():
                out.setdefault(field_id, found)
    return out


def _batch(expression: Expression, paths: dict[int, tuple[int, ...]], columns: list[AnyArray], rows: int) -> Mask:
    """Return a mask with one value for each row of a batch: whether the expression selects the row.

    Parameters
    ----------
    paths
        The path of each field in the batch, by field id. The first number is an index in ``columns``. For a field
        inside a struct, a child index in each struct follows, from the outermost struct to the innermost: ``(1, 0)`` is
        the first child of ``columns[1]``. A field without a path is null in every row.
    columns
        The columns of the batch.
    rows
        The number of rows of the batch.
    """
    read: dict[tuple[int, bool], AnyArray] = {}

    def column(field_id: int, kind: Type) -> AnyArray:
        path = paths.get(field_id)
        if path is None:
            return build.nulls(rows, arrow_type(kind))
        return _typed(_inside(columns[path[0]], path[1:]), kind)

    def leaf(p: Predicate | Computed) -> Mask:
        if isinstance(p, Computed):
            values = compute(p.value, rows, column, lambda e: walk(e, rows, leaf))
            found = satisfied(p.predicate, values)
            if found is None:
                expected = f"the filter expects {p.predicate.type}"
                raise pa.ArrowInvalid(f"{p.predicate.name} has the type {values.type}, but {expected}")
            return found
        path = paths.get(p.field_id)
        if path is None:
            return np.full(rows, p.op in _NULL_SATISFIES)
        key = (p.field_id, p.op in _PRESENCE)
        if key not in read:
            read[key] = _values(p, columns[path[0]], path[1:])
        found = satisfied(p, read[key])
        if found is None:
            expected = f"the filter expects {p.type}"
            raise pa.ArrowInvalid(f"column {p.name or p.field_id} has the type {read[key].type}, but {expected}")
        return found

    return walk(expression, rows, leaf)


def _values(p: Predicate, column: AnyArray, path: tuple[int, ...]) -> AnyArray:
    """Return the values that a predicate compares, cast to the type of the predicate.

    They are not cast for ``is-null`` and ``not-null``, which accept any type.

    Parameters
    ----------
    column
        A top-level column that has the values, or a struct column with the field that has them.
    path
        The child index of each struct field on the way to the values (see `_inside`); empty for ``column`` itself.
    """
    values = _inside(column, path)
    return values if p.op in _PRESENCE or p.type is None else _typed(values, p.type)


def _inside(column: AnyArray, path: tuple[int, ...]) -> AnyArray:
    """Return the values of a field inside a struct column.

    ``path`` has a child index for each struct on the way to the field: ``(0, 2)`` is the third child of the first child
    of the column. If ``path`` is empty, return the values of the column itself.
    """
    values = _plain(column)
    for i in path:
        # The result is null where the struct is null. With `StructArray.field`, the child would keep its own values.
        values = _plain(pc.struct_field(values, [i]))
    return values


def _typed(values: AnyArray, kind: Type) -> AnyArray:
    """Cast values to the Arrow type of an Iceberg type, if necessary."""
    wanted = arrow_type(kind)
    # A fixed-size binary array needs no cast: the function `satisfied`, which compares the values with the literals of
    # a predicate, converts it to variable-size binary.
    return values if values.type == wanted or pa.types.is_fixed_size_binary(values.type) else values.cast(wanted)


def _plain(values: AnyArray) -> AnyArray:
    """Convert an array of an extension type to its storage type, and a dictionary-encoded array to a plain one."""
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    return values.dictionary_decode() if isinstance(values, pa.DictionaryArray) else values
