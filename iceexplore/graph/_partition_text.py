"""The partitions of a manifest's entries as text, for whole columns."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, build, plain_value
from iceexplore.arrow import compute as pc
from iceexplore.graph.tree._nodes import json_safe
from iceexplore.manifests import Manifest, whole
from iceexplore.metadata import PartitionSpec, TableMetadata, parse_transform, result_type

__all__ = ["KnownTexts", "partition_texts"]


#: The texts of values that were formatted before, by partition field id and value; see `partition_texts`.
KnownTexts: TypeAlias = dict[int, dict[str, str]]


def partition_texts(manifest: Manifest, metadata: TableMetadata, known: KnownTexts | None = None) -> AnyArray:
    """Return the partition of each entry as text, ``month=2026-01/rider=null``; empty for an unpartitioned file.

    Each distinct value of a field is formatted once, and the texts are joined as columns, so that a hundred thousand
    files cost little, however many partitions they are in.

    Parameters
    ----------
    known
        Texts from earlier calls for manifests of the same table; they are reused, and new ones are added.
    """
    count, tuples = len(manifest), manifest.partition()
    if tuples is None or not count or not tuples.type.num_fields:
        return pa.array([""] * count, pa.string())
    texts = {} if known is None else known
    specs = np.asarray(whole(manifest.entries["partition_spec_id"]).fill_null(-1)).astype(np.int64)
    children = dict(zip((f.name for f in tuples.type), tuples.flatten(), strict=True))
    columns = metadata.all_fields()
    numbers = np.unique(specs)
    parts = []
    for spec_id in numbers.tolist():
        rows = None if len(numbers) == 1 else build.array(np.flatnonzero(specs == spec_id))
        parts.append(_of_spec(metadata.spec(spec_id), children, columns, rows, count, texts))
    if len(parts) == 1:
        return parts[0]
    order = np.argsort(np.argsort(specs, kind="stable"), kind="stable")
    return pa.concat_arrays(parts).take(build.array(order))


def _of_spec(
    spec: PartitionSpec | None,
    children: dict[str, AnyArray],
    columns: dict[int, tuple[str, Any]],
    rows: AnyArray | None,
    count: int,
    known: KnownTexts,
) -> AnyArray:
    """Return the texts of the entries of one spec; of all entries if ``rows`` is None."""
    out: list[AnyArray] = []
    for field in spec.fields if spec is not None else ():
        child, transform = children.get(str(field.field_id)), parse_transform(field.transform)
        if child is None or transform.is_void:
            continue
        column = columns.get(field.source_ids[0]) if field.source_ids else None
        kind = result_type(field.transform, column[1].type if column else None)
        encoded = (child if rows is None else child.take(rows)).dictionary_encode(null_encoding="encode")
        mine, texts = known.setdefault(field.field_id, {}), []
        # JSON may have lone surrogates, which Arrow cannot hold.
        name = str(json_safe(field.name))
        for value in encoded.dictionary:
            one = plain_value(value) if value.is_valid else None
            key = repr(one)  # 0.0 and -0.0 are equal, and have different texts
            if key not in mine:
                mine[key] = f"{name}={transform.to_human_string(kind, one)}"
            texts.append(mine[key])
        out.append(pa.array(texts, pa.string()).take(encoded.indices))
    if not out:
        return pa.array([""] * (count if rows is None else len(rows)), pa.string())
    return out[0] if len(out) == 1 else pc.binary_join_element_wise(*out, "/")
