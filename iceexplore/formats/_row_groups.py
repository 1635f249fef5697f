"""Read the row groups of a Parquet file, with the stored bounds of some columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceexplore.arrow import AnyField
from iceexplore.formats._fields import field_id
from iceexplore.formats._foreign import foreign
from iceexplore.formats._helper import parquet_questions

if TYPE_CHECKING:
    from iceexplore.storage import RangeFile, Storage

__all__ = ["ChunkBounds", "ParquetLeaf", "ParquetRowGroup", "RowGroups", "read_parquet_row_groups"]

#: Maximum number of row groups times requested columns: a footer may claim any number.
_MAX_CHUNKS = 1_000_000


@dataclass(frozen=True)
class ParquetLeaf:
    """A leaf column of a file's schema.

    Attributes
    ----------
    names
        Names from the top-level column down, including the groups inside lists and maps.
    ids
        The field ids of the same fields, None where the file has none.
    at
        The index, from 0, of the top-level column that contains the leaf.
    repeated
        True inside a list or map: the number of values then differs from the number of rows.
    physical
        Parquet's physical type: ``INT32``, ``BYTE_ARRAY``, ...
    logical
        Parquet's logical type as JSON: ``{"Type": "Decimal", "precision": 9, "scale": 2}``; ``Type`` may be "None".
    length
        Length of a ``FIXED_LEN_BYTE_ARRAY``.
    """

    names: tuple[str, ...]
    ids: tuple[int | None, ...]
    at: int
    repeated: bool
    physical: str
    logical: Mapping[str, Any]
    length: int


@dataclass(frozen=True)
class ChunkBounds:
    """The footer's statistics of a column in a row group; None means unknown.

    ``lower`` and ``upper`` are the stored values: int, float, bool or bytes, according to the physical type. Bytes may
    be truncated (``is_min_value_exact``), so they need not occur in the column. Statistics whose order the format does
    not define, and the deprecated ``min`` and ``max`` of columns that have no signed order, are left out.
    """

    values: int
    nulls: int | None
    lower: Any
    upper: Any
    bloom_offset: int | None
    bloom_length: int | None


@dataclass(frozen=True)
class ParquetRowGroup:
    """A row group: row count, uncompressed bytes, file offset, and the statistics of requested leaves by leaf index."""

    rows: int
    bytes: int
    offset: int | None
    chunks: Mapping[int, ChunkBounds] = field(repr=False)


@dataclass(frozen=True)
class RowGroups:
    """The row groups of a file, and its leaf columns in order."""

    rows: int
    leaves: tuple[ParquetLeaf, ...]
    groups: tuple[ParquetRowGroup, ...]


def read_parquet_row_groups(
    storage: Storage,
    location: str,
    choose: Callable[[tuple[ParquetLeaf, ...]], Sequence[int]],
    *,
    size: int | None = None,
    file: RangeFile | None = None,
) -> RowGroups:
    """Read the row groups of a Parquet file, and the bounds of some columns; no data page is read.

    Parameters
    ----------
    choose
        Called with the file's leaves; returns the indices of those whose bounds are to be read.
    size
        File size as recorded in a manifest (see `Storage.open`).
    file
        The file if it is open already; it stays open.

    Raises
    ------
    FormatError
        Not a Parquet file, or the footer is damaged.
    UnsupportedError
        The file is encrypted, has a type that Arrow does not support, or has too many row groups.
    """
    questions = parquet_questions(storage, location, _MAX_CHUNKS, size=size, file=file)
    with questions as ask, foreign("the Parquet footer", location):
        counted, schema = ask("parquet-leaves")
        found = [leaf for at, f in enumerate(schema) for leaf in _leaves(f, (), (), at, False)]
        if len(found) != len(counted["leaves"]):
            raise ValueError(f"the schema has {len(found)} leaf columns, but the file has {len(counted['leaves'])}")
        leaves = tuple(
            ParquetLeaf(*place, physical, json.loads(logical), length)
            for place, (physical, logical, length) in zip(found, counted["leaves"], strict=True)
        )
        wanted = list(choose(leaves))
        more, _ = ask("parquet-row-groups", columns=wanted)
        groups = tuple(
            ParquetRowGroup(rows, size, offset, {i: _bounds(c) for i, c in zip(wanted, chunks, strict=True)})
            for (rows, size, offset), chunks in zip(more["groups"], more["bounds"], strict=True)
        )
    return RowGroups(counted["rows"], leaves, groups)


def _bounds(chunk: list[Any]) -> ChunkBounds:
    values, nulls, *bounds, offset, length = chunk
    lower, upper = (bytes.fromhex(b["bytes"]) if isinstance(b, dict) else b for b in bounds)
    return ChunkBounds(values, nulls, lower, upper, offset, length)


def _leaves(
    column: AnyField, names: tuple[str, ...], ids: tuple[int | None, ...], at: int, repeated: bool
) -> Iterator[tuple[tuple[str, ...], tuple[int | None, ...], int, bool]]:
    names, ids, kind = (*names, column.name), (*ids, field_id(column)), column.type
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_map(kind):
        yield from _leaves(kind.key_field, names, ids, at, True)
        yield from _leaves(kind.item_field, names, ids, at, True)
    elif pa.types.is_nested(kind):
        plain = pa.types.is_struct(kind)
        for i in range(kind.num_fields):
            yield from _leaves(kind.field(i), names, ids, at, repeated or not plain)
    else:
        yield names, ids, at, repeated
