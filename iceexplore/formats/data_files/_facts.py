"""The facts of a data or delete file that verification compares with its manifest entry."""

from __future__ import annotations

from dataclasses import dataclass

from iceexplore.formats._row_groups import ParquetLeaf

__all__ = ["FileFacts"]


@dataclass(frozen=True)
class FileFacts:
    """The facts in the footer or header of a data or delete file.

    Attributes
    ----------
    format
        The name of the file's format.
    rows
        The number of rows.
    offsets
        The byte offsets of the row groups; None if they are not known.
    ids
        The field ids at all nesting levels.
    columns
        Whether the file has any columns.
    leaves
        The leaf columns with their stored types; empty for formats whose stored types are not checked.
    """

    format: str
    rows: int
    offsets: frozenset[int] | None
    ids: frozenset[int]
    columns: bool = True
    leaves: tuple[ParquetLeaf, ...] = ()
