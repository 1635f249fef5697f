"""A manifest, manifest list or root manifest in memory."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyListArray
from iceexplore.arrow import compute as pc
from iceexplore.errors import IceexploreError, Problem, Problems, problem
from iceexplore.manifests._manifest_dv import manifest_dvs
from iceexplore.manifests.checks._claims import RootClaims
from iceexplore.manifests.column_stats._content_stats import TypedStats
from iceexplore.manifests.column_stats._kept_columns import KeptColumns
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
from iceexplore.manifests.decode._file import Composition, Part
from iceexplore.manifests.model._arrow import whole
from iceexplore.manifests.model._content_entry import ENTRY_SCHEMA, ContentType
from iceexplore.manifests.model._field_ids import partition_part
from iceexplore.manifests.model._header import ManifestHeader
from iceexplore.manifests.model._reader_schema import ReaderSchema
from iceexplore.manifests.model._table_context import TableTypes
from iceexplore.metadata import Dialect, Type

__all__ = ["Manifest", "joined_stats"]

#: For files with at most this many rows, the rows are also cached as Python values.
_FEW_ROWS = 1_000
#: Maximum number of columns per manifest whose statistics are compared with the root's claims. Filters use few columns;
#: but the metadata table ``files`` may decode thousands, and comparing all of them would take too long.
_MOST_COMPARED = 64


class Manifest:
    """One manifest, manifest list or root manifest. Immutable.

    Attributes
    ----------
    location
        The location, as the table spells it.
    dialect
        ``v1``, ``v2``, ``v3``, ``v4-java``, ``v4-proposal``, ``v4-draft``; ``inline`` for the root of a v1 snapshot
        whose manifests are listed in the metadata file; empty if the file is unreadable.
    is_root
        True for a manifest list or root manifest: its entries are manifests and, in V4, also files and manifest DVs.
    root_row
        For a leaf, its row in the root's entries. None for a root, for the leaf-like view of a root's own files, and
        for a file that was opened without its table.
    header
        Schema and key-value metadata as written.
    length
        Size of the file in bytes; 0 if it could not be read.
    entries
        Table of `ENTRY_SCHEMA`, after inheritance. In the V4 draft, a row with a file and its deletion vector becomes
        two entries with the same ordinal.
    stored_rows
        Number of rows in the file, which may differ from the number of entries.
    composed
        For a root that was composed from a Delta table's tree and log, its `Composition`; else None.
    problems
        Problems found while reading this file. Problems in parts that are decoded later are added to the reader's list
        instead.
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
        reader_schema: ReaderSchema | None = None,
        load: Callable[[str], Part] | None = None,
        meaning: TableTypes | None = None,
        spec_id: int | None = None,
        report: Problems | None = None,
        root_row: int | None = None,
        stored: int | None = None,
        composed: Composition | None = None,
        claims: RootClaims | None = None,
        kept_columns: KeptColumns | None = None,
    ) -> None:
        self.location = location
        self.entries = entries
        self.dialect = Dialect(dialect)
        self.is_root = is_root
        self.header = header or ManifestHeader()
        self.length = length
        self.problems = problems
        self._reader_schema = reader_schema
        self._load = load
        self._meaning = meaning or TableTypes()
        self._spec_id = spec_id
        self._report = Problems() if report is None else report
        self.root_row = root_row
        self.stored_rows = len(entries) if stored is None else stored
        self.composed = composed
        self._contradicted: set[tuple[int, str]] = set()
        #: For a root, what it claims about its manifests; for a leaf, what its root claims about it.
        self.claims = claims
        self._kept_columns = kept_columns
        self._compared: set[int] = set()
        self._few_rows: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        self._tuples_compared = False
        self._maps: dict[bool, MapStats] = {}  # key: whether contradictions are reported

    def under(self, root: Manifest, row: int, report: Problems) -> Manifest:
        """Return this leaf as another root lists it, in an equal row; the two manifests share their decoded parts.

        Problems that are found later are added to ``report``.
        """
        other = copy.copy(self)
        other.claims, other.root_row = root.claims, row
        other._compared, other._tuples_compared = set(), False  # the other root's claims are not compared yet
        if report is not self._report:
            other._report, other._contradicted, other._maps = report, set(), {}
        return other

    def row(self, index: int, columns: Sequence[str]) -> dict[str, Any]:
        """Return some columns of one entry as Python values; for a small file all rows are converted once."""
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
        """Return a manifest without entries, for a file that could not be read."""
        return cls(location, ENTRY_SCHEMA.empty_table(), problems=problems, is_root=is_root, root_row=root_row)

    def partition(self) -> pa.StructArray | None:
        """Return the partition tuples: a struct whose children are named by partition field id (``"1000"``).

        Types are those of the spec that the manifest was written for, or the file's own if the spec is unknown or the
        values do not fit it. None if unpartitioned, and for a root.

        In V4, tuples that are not stored are rebuilt from statistics: of derived columns and, for identity fields, of
        the source columns. V4 tuples have the fields of all specs of the entries; they are null for manifests (in a V4
        root) and for entries of unpartitioned specs.
        """
        made = self._rebuilt() if self._is_v4 else self._stored_tuples()
        if not self._tuples_compared and made is not None:
            for item in self._untrue_tuples(made):
                self._report.add(item)
            self._tuples_compared = True  # set last: in strict reading, this call raises above, and so do later ones
        return made

    def untrue_claims(self) -> list[Problem]:
        """Return a problem for each untrue claim of the root about tuples or (V4) statistics."""
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
        if self.is_root or self._reader_schema is None or (spec is not None and not spec.fields):
            return None
        table = self._part("partition")
        if table is None:
            return None
        made, problems = typed_partition(table, self._reader_schema, spec, self._meaning.types, self.location)
        for item in problems:
            self._report.add(item)
        return made

    def stats(self, field_id: int) -> ColumnStats:
        """Return the statistics of one column (which may be nested) or V4 expression, one value per entry.

        Types come from the table's schemas and expressions; if none of them has the column, V4 statistics have the
        file's own type. Bounds are as written: if V4 omits an upper bound because it equals the lower one, it is null.
        """
        return next(self.stats_of([field_id]))

    def stats_of(self, field_ids: Iterable[int]) -> Iterator[ColumnStats]:
        """Yield `stats` of some columns, in any order: columns of one type are decoded together."""
        kinds = {i: self._meaning.types.get(i) for i in field_ids}
        if not kinds:
            return  # do not decode the statistics of a V4 manifest for nothing
        if self._typed is None:
            if self._keeps(kinds):
                assert self._kept_columns is not None
                yield from self._kept_columns.columns(kinds, lambda: self._silent, self._note_contradiction)
            else:
                yield from self._mapped.columns(kinds)
        else:
            yield from (found for _, found in self.stats_blocks(kinds))

    def _keeps(self, kinds: Mapping[int, Type | None]) -> bool:
        """Return whether to cache the statistics of these columns one by one; False if they cannot be read."""
        kept = self._kept_columns
        if kept is None or not kept.takes(len(self), kinds) or self.stored_rows != len(self):
            return False
        return kept.has(kinds) or self._part("stats") is not None

    def stats_blocks(self, field_ids: Iterable[int]) -> Iterator[tuple[Sequence[int], ColumnStats]]:
        """Yield field ids and statistics, like `stats_of`, but with several columns of one type concatenated in arrays.

        In V4 and for small manifests, each item has one column.
        """
        if self._typed is not None:
            for s in map(self._typed.column, field_ids):
                for what, mask in contradictions(s.type, s.lower, s.upper, s.null_count, s.value_count):
                    self._note_contradiction(s.field_id, what, np.flatnonzero(mask))
                self._compare_stats(s)
                yield (s.field_id,), s
        else:
            kinds = {i: self._meaning.types.get(i) for i in field_ids}
            if self._mapped.keeps(kinds):  # a small manifest: each column is decoded once and kept
                yield from (((s.field_id,), s) for s in self._mapped.columns(kinds))
            else:
                yield from self._mapped.blocks(kinds)

    def row_stats(self, row: int, kinds: Mapping[int, Type | None]) -> tuple[list[ColumnStats], int]:
        """Return the statistics of one entry (v1 to v3), sorted by field id, and the entry's index in their arrays.

        In a large manifest, only this entry is decoded. Contradictions are not reported.

        Parameters
        ----------
        kinds
            The types of the columns' bounds; bounds of other columns stay binary.
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
        """Return the six statistics maps.

        ``column_sizes``, ``value_counts``, ``null_value_counts`` and ``nan_value_counts`` map int32 to int64,
        ``lower_bounds`` and ``upper_bounds`` map int32 to binary. They are as written; in V4, which has no maps, they
        are built from the typed statistics.
        """
        return map_columns(self._pairs())

    @property
    def stat_values(self) -> int | None:
        """The number of values in the statistics of v1 to v3; None for V4, where they are columns."""
        if self._typed is not None:
            return None
        return sum(len(cast(AnyListArray, whole(column)).values) for column in self._pairs().columns)

    def stat_field_ids(self) -> list[int]:
        """Return the ids of the columns (V4: and expressions) that have any statistics."""
        return field_ids(self._pairs()) if self._typed is None else self._typed.field_ids()

    def has_column(self, name: str) -> bool:
        """Return whether the file has a field, named by ids: ``"150_523"`` is 523 in the struct 150."""
        return self._reader_schema is not None and f"f{name}" in self._reader_schema.columns

    @property
    def file_format(self) -> str:
        """The format of the file: ``parquet`` or ``avro``; ``avro`` also if the file is unreadable."""
        found = self._reader_schema
        return "avro" if found is None or found.avro is not None else "parquet"

    @property
    def partition_storage(self) -> str:
        """How a V4 manifest stores partition values: in ``derived`` columns, the ``source`` column, or a ``tuple``."""
        found = self._reader_schema
        if found is not None and found.partition:
            return "tuple"
        in_source = found is not None and any(partition_part(c.offset) is not None for c in found.stats)
        return "source" if in_source else "derived"

    @cached_property
    def dv_rows(self) -> dict[str, list[int]]:
        """The rows of a root's live manifest DVs, by the canonical location of the leaf."""
        return manifest_dvs(self.entries)

    def only(self, mask: pa.BooleanArray) -> Manifest:
        """Return the entries of a V4 root where the mask is true, as a leaf; ordinals stay those of the root."""
        return Manifest(
            self.location,
            self.entries.filter(mask),
            dialect=self.dialect,
            header=self.header,
            length=self.length,
            reader_schema=self._reader_schema,
            load=self._load,
            meaning=self._meaning,
            report=self._report,
            stored=self.stored_rows,
        )

    def with_content_types(self, kinds: AnyArray) -> Manifest:
        """Return this manifest with other content types, for a repair; what is derived from them is computed again."""
        other = copy.copy(self)
        at = self.entries.schema.get_field_index("content_type")
        other.entries = self.entries.set_column(at, self.entries.schema.field(at), kinds)
        other._few_rows = {}
        for name in ("dv_rows", "_typed"):
            other.__dict__.pop(name, None)
        return other

    def __len__(self) -> int:
        return int(self.entries.num_rows)

    def __repr__(self) -> str:
        kind = "root" if self.is_root else "manifest"
        return f"<Manifest {self.dialect or 'unreadable'} {kind}, {len(self)} entries, {self.location}>"

    @property
    def _is_v4(self) -> bool:
        return self._reader_schema is not None and self._reader_schema.shape in ("v4-proposal", "v4-draft")

    @cached_property
    def _typed(self) -> TypedStats | None:
        """The V4 statistics by entry; in the V4 draft, null for entries that are deletion vectors."""
        if not self._is_v4 or self._reader_schema is None:
            return None
        table = self._part("stats")
        if table is None:
            return None
        rows = self._rows
        if rows is not None and self.dialect == "v4-draft":
            kinds = [int(ContentType.POSITION_DELETE), int(ContentType.MANIFEST_DV)]
            vector = pc.is_in(self.entries["content_type"], pa.array(kinds, pa.int32())).combine_chunks()
            rows = pc.if_else(vector, pa.scalar(None, rows.type), rows)
        return TypedStats(table, self._reader_schema, self._meaning.types, rows, self._meaning.in_source)

    @property
    def _rows(self) -> AnyArray | None:
        """The row of each entry in the file; None if the entries are all of the file's rows, in order."""
        if not self._is_v4 or (self.dialect != "v4-draft" and self.stored_rows == len(self)):
            return None
        return whole(self.entries["ordinal"])

    def _rebuilt(self) -> pa.StructArray | None:
        if self._reader_schema is None:
            return None
        kept = self._part("partition") if self._reader_schema.partition else None
        if kept is not None and self._rows is not None:
            kept = kept.take(self._rows)
        # Decode statistics only if some spec has partition fields whose values they may hold.
        partitioned = any(not spec.is_unpartitioned for spec in self._meaning.specs.values())
        made, problems = rebuilt_partition(
            self.entries, self._typed if partitioned else None, kept, self._reader_schema, self._meaning, self.location
        )
        for item in problems:
            self._report.add(item)
        return made

    @property
    def _mapped(self) -> MapStats:
        if True not in self._maps:
            self._maps[True] = MapStats(self._pairs(), self._note_contradiction)
        return self._maps[True]

    def _note_contradiction(self, field_id: int, what: Contradiction, entries: npt.NDArray[np.int64]) -> None:
        """Report the entries with a contradiction in a column, as a warning: all entries could be read."""
        if (field_id, what) in self._contradicted:
            return
        self._contradicted.add((field_id, what))
        at = np.asarray(self.entries["ordinal"])[entries]
        place = f"{self.location}#entry {at[0]}"
        if what == "nulls":
            text = f"Column {field_id} has more nulls than values."
            item = problem("count-mismatch", place, text, field="110 null_value_counts", entries=at)
        else:
            text = (
                f"The lower bound of column {field_id} is above its upper bound: readers that use the bounds lose rows."
            )
            item = problem("bounds-untrue", place, text, field="125 lower_bounds", severity="warning", entries=at)
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
        except IceexploreError as error:  # the file was readable when the entries were read
            self._report.add_error(error, self.location)
            return None
        # If the file has changed since, its columns would not align with the entries.
        return part.table if part.table.num_rows == self.stored_rows else None


def joined_stats(manifests: Sequence[Manifest]) -> Iterator[tuple[Sequence[int], ColumnStats]]:
    """Yield statistics like `Manifest.stats_blocks`, with the entries of several manifests of a table concatenated.

    Decoding many small manifests one by one takes several times as long. When all have been yielded, contradictions are
    reported for each manifest, as `Manifest.stats_blocks` does. All manifests must be of v1 to v3, as V4 stores
    statistics as columns (then `Manifest.stat_values` is None).
    """
    found: list[tuple[int, int, Contradiction, npt.NDArray[np.int64]]] = []
    starts = np.cumsum([0, *map(len, manifests)])

    def note(field_id: int, what: Contradiction, entries: npt.NDArray[np.int64]) -> None:
        of = np.searchsorted(starts, entries, side="right") - 1
        numbers, firsts = np.unique(of, return_index=True)
        for number, rows in zip(numbers.tolist(), np.split(entries, firsts[1:]), strict=True):
            found.append((number, field_id, what, rows - starts[number]))

    pairs = pa.concat_tables([one._pairs() for one in manifests]).combine_chunks()
    types = manifests[0]._meaning.types
    yield from MapStats(pairs, note).blocks({i: types.get(i) for i in field_ids(pairs)})
    for number, field_id, what, rows in sorted(found, key=lambda item: item[:2]):
        manifests[number]._note_contradiction(field_id, what, rows)
