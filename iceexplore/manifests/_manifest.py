"""A manifest, manifest list or root in memory."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.errors import IceexploreError, Problem, Problems, problem
from iceexplore.manifests._manifest_dv import manifest_dvs
from iceexplore.manifests.checks._claims import RootClaims
from iceexplore.manifests.column_stats._content_stats import TypedStats
from iceexplore.manifests.column_stats._maps import (
    ColumnStats,
    Contradiction,
    MapStats,
    contradictions,
    field_ids,
    map_columns,
    pairs_of,
)
from iceexplore.manifests.column_stats._partition import typed_partition
from iceexplore.manifests.column_stats._partition_v4 import rebuilt_partition
from iceexplore.manifests.decode._file import Part
from iceexplore.manifests.model._arrow import whole
from iceexplore.manifests.model._content_entry import ENTRY_SCHEMA, ContentType
from iceexplore.manifests.model._header import ManifestHeader
from iceexplore.manifests.model._reader_schema import Layout
from iceexplore.manifests.model._table_context import Meaning
from iceexplore.metadata import Dialect, Type

__all__ = ["Manifest"]

#: Rows of a file that are kept as Python values once they were asked for.
_FEW_ROWS = 1_000
#: Columns of a manifest whose statistics are compared with the root's when they are decoded: a filter has few, and
#: a table of files may have all of many thousands.
_MOST_COMPARED = 64


class Manifest:
    """One manifest, manifest list or root manifest, immutable.

    Attributes
    ----------
    location
        As the table spells it.
    dialect
        ``v1``, ``v2``, ``v3``, ``v4-java``, ``v4-proposal``, ``v4-draft``; ``inline`` for a v1 snapshot that lists its
        manifests; empty if unreadable.
    is_root
        Whether it is what a snapshot names: its entries are manifests, of V4 also files and manifest DVs.
    root_row
        Of a leaf its row in the root's entries; None for a root, its direct view and a loose file.
    header
        Schema and key-value metadata as written.
    length
        Size of the file in bytes; 0 if it could not be read.
    entries
        Table of `ENTRY_SCHEMA`, after inheritance. A row of the V4 draft that holds a file and its deletion vector is
        two entries with one ordinal.
    problems
        What was met while reading this file (lazily decoded parts may add to the reader's problems later).
    """

    def __init__(
        self,
        location: str,
        entries: pa.Table,
        *,
        dialect: str = Dialect.UNKNOWN,
        is_root: bool = False,
        header: ManifestHeader | None = None,
        length: int = 0,
        problems: tuple[Problem, ...] = (),
        layout: Layout | None = None,
        load: Callable[[str], Part] | None = None,
        meaning: Meaning | None = None,
        spec_id: int | None = None,
        report: Problems | None = None,
        root_row: int | None = None,
        stored: int | None = None,
        claims: RootClaims | None = None,
    ) -> None:
        self.location = location
        self.entries = entries
        self.dialect = Dialect(dialect)
        self.is_root = is_root
        self.header = header or ManifestHeader()
        self.length = length
        self.problems = problems
        self._layout = layout
        self._load = load
        self._meaning = meaning or Meaning()
        self._spec_id = spec_id
        self._report = Problems() if report is None else report
        self.root_row = root_row
        self._stored = len(entries) if stored is None else stored  # rows of the file
        self._contradicted: set[tuple[int, str]] = set()
        #: Of a root, what it claims of its manifests; of a leaf, what its root does.
        self.claims = claims
        self._compared: set[int] = set()
        self._few_rows: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        self._tuples_compared = False
        self._maps: dict[bool, MapStats] = {}  # by whether contradictions are noted

    def under(self, root: Manifest, row: int) -> Manifest:
        """Return this leaf as one of another root, which says the same of it; what was decoded is decoded for both."""
        other = copy.copy(self)
        other.claims, other.root_row = root.claims, row
        other._compared, other._tuples_compared = set(), False  # the other root's claims are
        return other

    def row(self, index: int, columns: Sequence[str]) -> dict[str, Any]:
        """Return some columns of one entry as Python values; those of a small file are converted once."""
        if len(self.entries) > _FEW_ROWS:
            found: dict[str, Any] = self.entries.select(columns).slice(index, 1).to_pylist()[0]
            return found
        key = tuple(columns)
        if key not in self._few_rows:
            self._few_rows[key] = self.entries.select(columns).to_pylist()
        return self._few_rows[key][index]

    @classmethod
    def empty(
        cls, location: str, problems: tuple[Problem, ...], *, is_root: bool = False, root_row: int | None = None
    ) -> Manifest:
        """A manifest of which nothing could be read."""
        return cls(location, ENTRY_SCHEMA.empty_table(), problems=problems, is_root=is_root, root_row=root_row)

    def partition(self) -> pa.StructArray | None:
        """The partition tuples: a struct whose children are named by partition field id (``"1000"``).

        Types are those of the table's spec (the one the manifest was written for), or the file's own where the spec is
        unknown or the values do not fit it. None if unpartitioned, and for a root.

        V4 has no tuples: they are rebuilt from derived columns and identity bounds, united over the specs of the
        entries; null for manifests (of a V4 root) and for entries of unpartitioned specs.
        """
        made = self._rebuilt() if self._is_v4 else self._stored_tuples()
        if not self._tuples_compared and made is not None:
            for item in self._untrue_tuples(made):
                self._report.add(item)
            self._tuples_compared = True  # last: strict problems raise each time
        return made

    def untrue_claims(self) -> list[Problem]:
        """Return what the root claims too narrowly of this manifest: its tuples and, of V4, all of its statistics."""
        if self.claims is None or self.root_row is None:
            return []
        made = self._rebuilt() if self._is_v4 else self._stored_tuples()
        out = self._untrue_tuples(made)
        if self._typed is not None:
            found = (self.claims.against_stats(self, s) for s in map(self._typed.column, self.stat_field_ids()))
            out += [item for item in found if item is not None]
        return out

    def _untrue_tuples(self, tuples: pa.StructArray | None) -> list[Problem]:
        if self.claims is None or self.root_row is None:
            return []
        return self.claims.against_tuples(self, tuples)

    def _compare_stats(self, stats: ColumnStats) -> None:
        if self.claims is None or self.root_row is None or stats.field_id in self._compared:
            return
        if len(self._compared) >= _MOST_COMPARED:
            return
        item = self.claims.against_stats(self, stats)
        if item is not None:
            self._report.add(item)
        self._compared.add(stats.field_id)

    def _stored_tuples(self) -> pa.StructArray | None:
        spec = None if self._spec_id is None else self._meaning.specs.get(self._spec_id)
        if self.is_root or self._layout is None or (spec is not None and not spec.fields):
            return None
        table = self._part("partition")
        if table is None:
            return None
        made, problems = typed_partition(table, self._layout, spec, self._meaning.types, self.location)
        for item in problems:
            self._report.add(item)
        return made

    def stats(self, field_id: int) -> ColumnStats:
        """The statistics of one column (also a nested one) or, of V4, expression, one value per entry.

        Types are those of the table's schemas and expressions; a column that is in none has (V4) the file's own type.
        Bounds are as written: where V4 leaves an upper bound out because it equals the lower one, it is null.
        """
        return next(self.stats_of([field_id]))

    def stats_of(self, field_ids: Iterable[int]) -> Iterator[ColumnStats]:
        """The statistics of some columns as `stats` gives them, in any order: those of one type are decoded at once."""
        if self._typed is None:
            yield from self._mapped.columns({i: self._meaning.types.get(i) for i in field_ids})
        else:
            yield from (found for _, found in self.stats_blocks(field_ids))

    def stats_blocks(self, field_ids: Iterable[int]) -> Iterator[tuple[Sequence[int], ColumnStats]]:
        """The statistics as `stats_of` gives them, those of columns of one type one after the other in the arrays."""
        if self._typed is not None:
            for s in map(self._typed.column, field_ids):
                for what, mask in contradictions(s.type, s.lower, s.upper, s.null_count, s.value_count):
                    self._told(s.field_id, what, int(mask.argmax()))
                self._compare_stats(s)
                yield (s.field_id,), s
        else:
            kinds = {i: self._meaning.types.get(i) for i in field_ids}
            if self._mapped.keeps(kinds):  # few values: they are decoded once, column by column
                yield from (((s.field_id,), s) for s in self._mapped.columns(kinds))
            else:
                yield from self._mapped.blocks(kinds)

    def row_stats(self, row: int, kinds: Mapping[int, Type | None]) -> tuple[list[ColumnStats], int]:
        """The statistics of one entry of v1 to v3, by field id, and its place in them; nothing is noted of them.

        Of a large manifest the other entries are not decoded.

        Parameters
        ----------
        kinds
            The types of the columns' bounds; those of others stay bytes.
        """
        pairs = self._pairs()
        ids = field_ids(pairs.slice(row, 1))
        if small := self._silent.keeps(ids):
            found = self._silent.columns({i: kinds.get(i) for i in ids})
        else:
            found = MapStats(pairs.slice(row, 1)).columns({i: kinds.get(i) for i in ids})
        return sorted(found, key=lambda s: s.field_id), row if small else 0

    @property
    def _silent(self) -> MapStats:
        if False not in self._maps:
            self._maps[False] = MapStats(self._pairs())
        return self._maps[False]

    def stat_maps(self) -> pa.Table:
        """The six statistics maps: ``column_sizes``, ``value_counts``, ``null_value_counts``, ``nan_value_counts``
        (int32 to int64), ``lower_bounds``, ``upper_bounds`` (int32 to binary). As written; of V4, which has none, made
        from the typed statistics."""
        return map_columns(self._pairs())

    def stat_field_ids(self) -> list[int]:
        """The ids of the columns (V4: and expressions) that have any statistic."""
        return field_ids(self._pairs()) if self._typed is None else self._typed.field_ids()

    @cached_property
    def dv_rows(self) -> dict[str, list[int]]:
        """Of a root: the rows of its live manifest DVs by the canonical location of their leaf."""
        return manifest_dvs(self.entries)

    def only(self, mask: pa.BooleanArray) -> Manifest:
        """The entries of a V4 root where the mask is true, as a leaf: ordinals stay those of the root."""
        return Manifest(
            self.location,
            self.entries.filter(mask),
            dialect=self.dialect,
            header=self.header,
            length=self.length,
            layout=self._layout,
            load=self._load,
            meaning=self._meaning,
            report=self._report,
            stored=self._stored,
        )

    def __len__(self) -> int:
        return int(self.entries.num_rows)

    def __repr__(self) -> str:
        kind = "root" if self.is_root else "manifest"
        return f"<Manifest {self.dialect or 'unreadable'} {kind}, {len(self)} entries, {self.location}>"

    @property
    def _is_v4(self) -> bool:
        return self._layout is not None and self._layout.shape in ("v4-proposal", "v4-draft")

    @cached_property
    def _typed(self) -> TypedStats | None:
        """The statistics of V4, by entry: one that stands for a deletion vector of the draft has none."""
        if not self._is_v4 or self._layout is None:
            return None
        table = self._part("stats")
        if table is None:
            return None
        rows = self._rows
        if rows is not None and self.dialect == "v4-draft":
            kinds = [int(ContentType.POSITION_DELETE), int(ContentType.MANIFEST_DV)]
            vector = pc.is_in(self.entries["content_type"], pa.array(kinds, pa.int32())).combine_chunks()
            rows = pc.if_else(vector, pa.scalar(None, rows.type), rows)
        return TypedStats(table, self._layout, self._meaning.types, rows)

    @property
    def _rows(self) -> pa.Array | None:
        """The rows of the file that the entries stand for; None if they are all of them."""
        if not self._is_v4 or (self.dialect != "v4-draft" and self._stored == len(self)):
            return None
        return whole(self.entries["ordinal"])

    def _rebuilt(self) -> pa.StructArray | None:
        if self._layout is None:
            return None
        kept = self._part("partition") if self._layout.partition else None
        if kept is not None and self._rows is not None:
            kept = kept.take(self._rows)
        # Statistics are decoded for it only where some spec of the table has a field that they may hold.
        partitioned = any(not spec.is_unpartitioned for spec in self._meaning.specs.values())
        made, problems = rebuilt_partition(
            self.entries, self._typed if partitioned else None, kept, self._layout, self._meaning, self.location
        )
        for item in problems:
            self._report.add(item)
        return made

    @property
    def _mapped(self) -> MapStats:
        if True not in self._maps:
            self._maps[True] = MapStats(self._pairs(), self._told)
        return self._maps[True]

    def _told(self, field_id: int, what: Contradiction, entry: int) -> None:
        """The first entry of a column with such a contradiction; a warning, for all entries are there."""
        if (field_id, what) in self._contradicted:
            return
        self._contradicted.add((field_id, what))
        place = f"{self.location}#entry {self.entries['ordinal'][entry].as_py()}"
        if what == "nulls":
            text = f"Of column {field_id} there are more nulls than values."
            item = problem("count-mismatch", place, text, field="110 null_value_counts")
        else:
            text = f"Of column {field_id} the lower bound is above the upper one: readers that prune lose its rows."
            item = problem("bounds-untrue", place, text, field="125 lower_bounds", severity="warning")
        self._report.add(item)

    def _pairs(self) -> pa.Table:
        if self._typed is not None:
            return self._typed.pairs()
        table = None if self.is_root or self._is_v4 else self._part("stats")
        return pairs_of(pa.table({"": pa.nulls(len(self))})) if table is None else table

    def _part(self, name: str) -> pa.Table | None:
        if self._load is None:
            return None
        try:
            part = self._load(name)
        except IceexploreError as error:  # it was there when the entries were read
            self._report.add_error(error, self.location)
            return None
        # A file that changed in between would misalign the columns: the rows at first are the measure.
        return part.table if part.table.num_rows == self._stored else None
