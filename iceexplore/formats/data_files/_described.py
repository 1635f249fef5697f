"""The description of a file that is opened without its table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from iceexplore.errors import FormatError

__all__ = ["Described", "Details", "Shape"]


class Shape(NamedTuple):
    """A field of a file: its id, its name, and the ids and names of its children."""

    number: int | None
    name: str
    children: list[tuple[int | None, str]]


@dataclass(frozen=True)
class Details:
    """What a file contains.

    Attributes
    ----------
    header
        Counts, codec, writer and the like.
    metadata
        The file's key-value metadata.
    records
        Reads the records to show: the rows, or for some formats the column chunks or columns.
    ids
        The field ids of the leaf columns; empty if the format does not list them.
    faults
        The faults of a file that is damaged only in part.
    """

    header: Mapping[str, Any]
    metadata: Mapping[str, str]
    records: Callable[[], pa.Table]
    ids: tuple[int | None, ...] = ()
    faults: tuple[FormatError, ...] = ()


@dataclass(frozen=True)
class Described:
    """A file described without its table.

    Attributes
    ----------
    schema
        The schema in the format's own form: parsed Avro JSON, an Arrow schema.
    details
        Reads and returns everything else. It is not called for a manifest, which is described by its entries instead.
    shapes
        The top-level fields, by which manifests are recognized; empty for formats in which no manifests are written.
    """

    schema: Any
    details: Callable[[], Details]
    shapes: tuple[Shape, ...] = ()
