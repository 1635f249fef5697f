"""The partitions of a manifest's entries as text, for whole columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyScalar, build
from iceexplore.graph.tree._nodes import json_safe
from iceexplore.graph.tree._ranges import plain
from iceexplore.manifests import Manifest, whole
from iceexplore.metadata import PartitionSpec, TableMetadata, Transform, Type, parse_transform, result_type

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
    formats: dict[int, list[_Format]] = {}
    texts = []
    for row in first.tolist():
        spec_id = int(specs[row])
        if spec_id not in formats:
            formats[spec_id] = _formats(metadata.spec(spec_id), children, columns)
        texts.append("/".join([f"{name}={human(values[row])}" for name, values, human in formats[spec_id]]))
    return pa.array(texts, pa.string()).take(build.array(group.astype(np.int64)))


#: A partition field: its name, its column, and the function that formats a value.
_Format = tuple[str, AnyArray, Callable[[AnyScalar], str]]


def _formats(
    spec: PartitionSpec | None, children: dict[str, AnyArray], columns: dict[int, tuple[str, Any]]
) -> list[_Format]:
    out: list[_Format] = []
    for field in spec.fields if spec is not None else ():
        child, transform = children.get(str(field.field_id)), parse_transform(field.transform)
        if child is None or transform.is_void:
            continue
        column = columns.get(field.source_ids[0]) if field.source_ids else None
        kind = result_type(field.transform, column[1].type if column else None)

        def human(value: AnyScalar, transform: Transform = transform, kind: Type = kind) -> str:
            return transform.to_human_string(kind, plain(value) if value.is_valid else None)

        # JSON may have lone surrogates, which Arrow cannot hold.
        out.append((str(json_safe(field.name)), child, human))
    return out
