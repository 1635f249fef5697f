"""A manifest, manifest list or root in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from iceexplore.errors import IceexploreError, Problem, Problems
from iceexplore.manifests._content_entry import ENTRY_SCHEMA
from iceexplore.manifests._header import ManifestHeader
from iceexplore.manifests._layout import Layout
from iceexplore.manifests._partition import typed_partition
from iceexplore.manifests._source import Part
from iceexplore.manifests._stats import ColumnStats, column_stats, field_ids, map_columns, pairs_of
from iceexplore.metadata import PartitionSpec, Type

__all__ = ["Manifest", "Meaning"]


@dataclass(frozen=True)
class Meaning:
    """What a table (or a loose file's own header) says of ids: types of columns, partition specs."""

    types: Mapping[int, Type] = field(default_factory=dict)
    specs: Mapping[int, PartitionSpec] = field(default_factory=dict)


class Manifest:
    """One manifest, manifest list or root manifest, immutable.

    Attributes
    ----------
    location
        As the table spells it.
    dialect
        ``v1``, ``v2``, ``v3``, ``v4-java``; ``inline`` for a v1 snapshot that lists its manifests; empty if unreadable.
    is_root
        Whether its entries are manifests.
    header
        Schema and key-value metadata as written.
    length
        Size of the file in bytes; 0 if it could not be read.
    entries
        Table of `ENTRY_SCHEMA`, after inheritance.
    problems
        What was met while reading this file (lazily decoded parts may add to the reader's problems later).
    """

    def __init__(
        self,
        location: str,
        entries: pa.Table,
        *,
        dialect: str = "",
        is_root: bool = False,
        header: ManifestHeader | None = None,
        length: int = 0,
        problems: tuple[Problem, ...] = (),
        layout: Layout | None = None,
        load: Callable[[str], Part] | None = None,
        meaning: Meaning | None = None,
        spec_id: int | None = None,
        report: Problems | None = None,
    ) -> None:
        self.location = location
        self.entries = entries
        self.dialect = dialect
        self.is_root = is_root
        self.header = header or ManifestHeader()
        self.length = length
        self.problems = problems
        self._layout = layout
        self._load = load
        self._meaning = meaning or Meaning()
        self._spec_id = spec_id
        self._report = Problems() if report is None else report

    @classmethod
    def empty(cls, location: str, problems: tuple[Problem, ...], *, is_root: bool = False) -> Manifest:
        """A manifest of which nothing could be read."""
        return cls(location, ENTRY_SCHEMA.empty_table(), problems=problems, is_root=is_root)

    def partition(self) -> pa.StructArray | None:
        """The partition tuples: a struct whose children are named by partition field id (``"1000"``).

        Types are those of the table's spec (the one the manifest was written for), or the file's own where the spec is
        unknown or the values do not fit it. None if unpartitioned, and for a root.
        """
        table = self._part("partition")
        if self.is_root or table is None or self._layout is None:
            return None
        spec = None if self._spec_id is None else self._meaning.specs.get(self._spec_id)
        made, problems = typed_partition(table, self._layout, spec, self._meaning.types, self.location)
        for item in problems:
            self._report.add(item)
        return made

    def stats(self, field_id: int) -> ColumnStats:
        """The statistics of one column (also a nested one), one value per entry."""
        return column_stats(self._pairs(), field_id, self._meaning.types.get(field_id))

    def stat_maps(self) -> pa.Table:
        """The six statistics maps as written: ``column_sizes``, ``value_counts``, ``null_value_counts``,
        ``nan_value_counts`` (int32 to int64), ``lower_bounds``, ``upper_bounds`` (int32 to binary)."""
        return map_columns(self._pairs())

    def stat_field_ids(self) -> list[int]:
        """The ids of the columns that have any statistic."""
        return field_ids(self._pairs())

    def __len__(self) -> int:
        return int(self.entries.num_rows)

    def __repr__(self) -> str:
        kind = "root" if self.is_root else "manifest"
        return f"<Manifest {self.dialect or 'unreadable'} {kind}, {len(self)} entries, {self.location}>"

    def _pairs(self) -> pa.Table:
        table = None if self.is_root else self._part("stats")
        return pairs_of(pa.table({"": pa.nulls(len(self))})) if table is None else table

    def _part(self, name: str) -> pa.Table | None:
        if self._load is None:
            return None
        try:
            part = self._load(name)
        except IceexploreError as error:  # it was there when the entries were read
            self._report.add_error(error, self.location)
            return None
        # A file that changed in between would misalign the columns: entries are the measure.
        return part.table if part.table.num_rows == len(self) else None
