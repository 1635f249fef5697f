"""Statistics below V4: six maps by column id, made from the columns of a batch (spec, "Data File Fields")."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.manifests.encode._fields import Pair, field, map_of
from iceexplore.metadata import PrimitiveType, Type, encode_values

__all__ = ["stat_maps"]

#: Field id, name, child of the statistics, ids of key and value, doc. In the order in which Java writes them.
_MAPS = (
    (108, "column_sizes", "column_size", 117, 118, "Map of column id to total size on disk"),
    (109, "value_counts", "value_count", 119, 120, "Map of column id to total count, including null and NaN"),
    (110, "null_value_counts", "null_count", 121, 122, "Map of column id to null value count"),
    (137, "nan_value_counts", "nan_count", 138, 139, "Map of column id to number of NaN values in the column"),
    (125, "lower_bounds", "lower", 126, 127, "Map of column id to lower bound"),
    (128, "upper_bounds", "upper", 129, 130, "Map of column id to upper bound"),
)


def stat_maps(stats: Mapping[int, pa.StructArray], types: Mapping[int, Type], rows: int) -> list[Pair]:
    """The six map columns; null in rows without any value.

    Lengths of values and ``tight_bounds`` have no place below V4. Bounds of a column in no schema are binary as they
    were read, and written as they are.
    """
    pairs = []
    for field_id, name, child, key_id, value_id, doc in _MAPS:
        is_bound = child in ("lower", "upper")
        kind = map_of(key_id, value_id, pa.binary() if is_bound else pa.int64())
        columns = {}
        for column_id in sorted(stats):
            array = pc.struct_field(stats[column_id], child)
            if is_bound and array.null_count < rows:
                array = encode_values(types.get(column_id, PrimitiveType("binary")), array)
            if array.null_count < rows:
                columns[column_id] = array
        pairs.append((field(field_id, name, kind, doc=doc), _map(columns, kind, rows)))
    return pairs


def _map(columns: Mapping[int, pa.Array], kind: pa.MapType, rows: int) -> pa.Array:
    if not columns:
        return pa.nulls(rows, kind)
    there = np.stack([np.asarray(a.is_valid()) for a in columns.values()], axis=1)  # rows × columns
    places = np.arange(len(columns))[None, :] * rows + np.arange(rows)[:, None]
    items = pa.concat_arrays(list(columns.values())).take(pa.array(places[there]))
    keys = np.broadcast_to(np.array(list(columns), np.int32), there.shape)[there]
    counts = there.sum(axis=1)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pa.MapArray.from_arrays(
        pa.array(offsets, mask=np.append(counts == 0, False)), pa.array(keys), items, type=kind
    )
