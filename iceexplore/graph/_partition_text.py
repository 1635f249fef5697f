"""The partitions of a manifest's entries as text, for whole columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.graph.tree._ranges import plain
from iceexplore.manifests import Manifest, whole
from iceexplore.metadata import PartitionSpec, TableMetadata, human_value, parse_transform, result_type

__all__ = ["partition_texts"]


def partition_texts(manifest: Manifest, metadata: TableMetadata) -> AnyArray:
    """Return the partition of each entry as text, ``month=2026-01/rider=null``; empty for an unpartitioned file.

    Each distinct tuple is formatted once, so that a hundred thousand files of a few partitions cost little.
    """
    count, tuples = len(manifest), manifest.partition()
    if tuples is None or not count or not tuples.type.num_fields:
        return pa.array([""] * count, pa.string())
    specs = np.asarray(whole(manifest.entries["partition_spec_id"]).fill_null(-1)).astype(np.int64)
    children = dict(zip((f.name for f in tuples.type), tuples.flatten(), strict=True))
    _, first, group = np.unique(specs, return_index=True, return_inverse=True)
    for child in children.values():
        encoded = child.dictionary_encode(null_encoding="encode")
        codes = np.asarray(encoded.indices).astype(np.int64)
        _, first, group = np.unique(group * (int(codes.max()) + 1) + codes, return_index=True, return_inverse=True)
    columns = metadata.all_fields()
    texts = []
    for row in first.tolist():
        spec = metadata.spec(int(specs[row]))
        texts.append("" if spec is None else _text(spec, children, row, columns))
    return pa.array(texts, pa.string()).take(build.array(group.astype(np.int64)))


def _text(spec: PartitionSpec, children: dict[str, AnyArray], row: int, columns: dict[int, tuple[str, Any]]) -> str:
    parts = []
    for field in spec.fields:
        child = children.get(str(field.field_id))
        if child is None or parse_transform(field.transform).is_void:
            continue
        column = columns.get(field.source_ids[0]) if field.source_ids else None
        kind = result_type(field.transform, column[1].type if column else None)
        value = plain(child[row]) if child[row].is_valid else None
        parts.append(f"{field.name}={human_value(kind, field.transform, value)}")
    return "/".join(parts)
