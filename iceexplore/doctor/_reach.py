"""Measure findings: how many rows, and which partitions, each finding concerns.

Both are measured in the newest examined snapshot that the finding affects. Rows are counted from the columns of
`Examination.files`. These columns have no partition tuples, so the manifests that list affected entries are read again,
once for all findings. Without findings, no manifest is read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.doctor.examination._examination import Examination
from iceexplore.doctor.model._finding import MOST_PLACES, Finding
from iceexplore.doctor.model._hits import DOCUMENTS, Hits
from iceexplore.errors import PROBLEM_KINDS, IceexploreError
from iceexplore.manifests import ENTRY_SCHEMA, ContentType, EntryBatch, Manifest, concat_batches, whole
from iceexplore.metadata import TableMetadata, parse_transform
from iceexplore.planning import partition_codes, partition_texts
from iceexplore.render import escape
from iceexplore.storage import canonical

__all__ = ["measured"]

_Longs = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]
_NONE: _Longs = np.zeros(0, np.int64)
#: Record counts above this are considered impossible.
_MOST_ROWS = 2**50
_MOST_TEXT = 200
_UNPARTITIONED = "unpartitioned"
#: Content types whose record counts are rows of the table; equality deletes count values, and manifests count entries.
_COUNTED = (int(ContentType.DATA), int(ContentType.POSITION_DELETE))
#: Codes of findings about entries that a commit removed. A finding with any other code concerns live entries only.
_OF_CHANGES = frozenset({"changes-untrue", "deletes-dropped"})
#: Codes of findings about deletes that apply to no data file: such a finding concerns 0 rows.
_OF_NOTHING = frozenset({"delete-dangling"})


def measured(examination: Examination, findings: Sequence[Finding]) -> list[Finding]:
    """Return copies of findings, with the number of rows and the partitions that each finding concerns.

    The findings in `Finding.follows` are measured, too. If reading a manifest fails, `Examination.unknown` gets the
    reason, and the number and the partitions are unknown for all findings.
    """
    flat = list(_flat(findings))
    try:
        resolver = _Resolver(examination)
        found = {id(one): resolver.reach(one) for one in flat}
        rows = [reach.rows for reach in found.values() if reach is not None]
        partitions = _Partitions.of(examination, _union(rows))
        made = {
            id(one): _measure(examination, one, reach, partitions)
            for one in flat
            if (reach := found[id(one)]) is not None
        }
    except IceexploreError as error:
        examination.cannot_know("which rows and partitions the findings affect", str(error))
        made = {}

    def final(one: Finding) -> Finding:
        rows, partitions, count = made.get(id(one), (None, (), None))
        return replace(
            one,
            rows=rows,
            partitions=partitions,
            partition_count=count,
            follows=tuple(map(final, one.follows)),
            _hits=None if PROBLEM_KINDS[one.code].health else _located(examination, one.hits),
        )

    return list(map(final, findings))


def _located(examination: Examination, hits: Hits) -> Hits:
    """Return the places of a finding in a form that stays valid after the examination.

    `Hits.rows` (row numbers in `Examination.files`) and `Hits.files` (locations of data files) are replaced by
    `Hits.entries`: the locations of the manifests, with the positions of the entries in them.
    """
    if not (hits.rows or hits.files):
        return hits
    files = examination.files
    named = [np.flatnonzero(files.alive & np.asarray(pc.is_in(files.locations, some))) for some in hits.files]
    rows = _union([*hits.rows, *named])
    if not len(rows):
        return replace(hits, rows=(), files=())
    leaf = files.leaf[rows]
    numbers, starts = np.unique(leaf, return_index=True)
    parts = np.split(files.ordinals[rows], starts[1:])
    made = [(files.leaves[number][0], part) for number, part in zip(numbers.tolist(), parts, strict=True)]
    return replace(hits, rows=(), files=(), entries=(*hits.entries, *made))


def _union(several: Iterable[_Longs]) -> _Longs:
    """Merge arrays of row numbers into one, sorted and without duplicates.

    This is five times as fast as `numpy.unique`, which hashes the numbers.
    """
    rows = np.sort(np.concatenate([_NONE, *several]))
    first = np.ones(len(rows), bool)
    first[1:] = rows[1:] != rows[:-1]
    return rows[first]


def _flat(findings: Iterable[Finding]) -> Iterator[Finding]:
    for one in findings:
        yield one
        yield from _flat(one.follows)


@dataclass(frozen=True)
class _Reach:
    """The files that a finding concerns.

    Attributes
    ----------
    rows
        Row numbers of these files in `Examination.files`, sorted and without duplicates.
    stated
        A finding may concern whole manifests, and some of these may not be readable completely. `stated` is the number
        of live rows in such manifests, from the counts in the manifest list or V4 root. It is 0 if there are no such
        manifests, and None if one of the counts is unknown.
    complete
        False if the finding also concerns files that are unknown, and therefore not in `rows`.
    partitioned
        False if the finding may concern more partitions than those of the files in `rows`, because a manifest that
        cannot be read completely may list files of other partitions. Otherwise True.
    """

    rows: _Longs
    stated: int | None
    complete: bool
    partitioned: bool


class _Resolver:
    """Finds the files that a finding concerns: those at the places that the finding lists (`Finding.hits`)."""

    def __init__(self, examination: Examination) -> None:
        self._examination = examination
        self._newest_first = [s.snapshot_id for s in reversed(examination.snapshots)]
        self._root_rows: dict[int, dict[str, int]] = {}

    @cached_property
    def _leaves(self) -> dict[str, list[int]]:
        """For the canonical location of each manifest, the indices of this manifest in `LiveFiles.leaves`.

        Usually, there is one index. A V4 manifest has several indices if manifest DVs of different roots remove
        different entries from it.
        """
        out: dict[str, list[int]] = {}
        for number, (location, _) in enumerate(self._examination.files.leaves):
            out.setdefault(canonical(location), []).append(number)
        return out

    @cached_property
    def _roots(self) -> dict[int, str]:
        return {i: canonical(root.location) for i, root in self._examination.roots.items() if root.location}

    @cached_property
    def _places_of_lists(self) -> frozenset[str]:
        return frozenset(self._roots.values())

    def reach(self, one: Finding) -> _Reach | None:
        """Return the files that a finding concerns; None if it is not about files."""
        hits = one.hits
        places = [
            (canonical(file), ordinals, file)
            for file, ordinals in hits.by_file().items()
            if ordinals is not None or not file.endswith(DOCUMENTS)
        ]
        places = [
            p for p in places if p[1] is not None or p[0] not in self._places_of_lists
        ]  # without whole manifest lists and roots: a fault of a whole list concerns no particular files
        listed = [p for p in places if p[0] in self._leaves or p[0] in self._places_of_lists]
        others = [file for key, ordinals, file in places if ordinals is None and key not in self._leaves]
        rows = np.concatenate([_NONE, *hits.rows, self._named_files([*hits.files, *_texts(others)])])
        if not listed and not len(rows):
            return None
        affected = set(one.snapshots)
        for snapshot_id in self._newest_first:
            if affected and snapshot_id not in affected:
                continue
            found = self._reach_in(snapshot_id, one, [(key, ordinals) for key, ordinals, _ in listed], rows)
            if found is not None:
                return found
        return None

    def _named_files(self, names: list[AnyArray]) -> _Longs:
        """Return the rows, in ``Examination.files``, of live files with one of the locations in ``names``."""
        files = self._examination.files
        if not sum(map(len, names)):
            return _NONE
        named = pc.is_in(files.locations, pa.concat_arrays(names))
        return np.flatnonzero(files.alive & np.asarray(named))

    def _reach_in(
        self, snapshot_id: int, one: Finding, places: list[tuple[str, _Longs | None]], rows: _Longs
    ) -> _Reach | None:
        """Return the files that a finding concerns in one snapshot; None if it concerns nothing in this snapshot.

        Parameters
        ----------
        places
            The manifests and roots that have the fault, wholly or in some entries. Each item has the canonical location
            of a manifest or root, and the positions (from 0) of its entries with the fault. If a whole manifest has the
            fault, the item has None instead of the positions.
        rows
            Row numbers, in `Examination.files`, of further entries with the fault. Entries of manifests that the
            snapshot does not list are ignored.
        """
        examination = self._examination
        files = examination.files
        listed = frozenset(examination.leaves_listed(snapshot_id))
        mine = np.zeros(len(files.leaves), bool)
        mine[list(listed)] = True
        chosen = [rows[mine[files.leaf[rows]]]]
        manifests: set[int] = set()
        for key, ordinals in places:
            leaves = [leaf for leaf in self._leaves.get(key, ()) if leaf in listed]
            if ordinals is None:
                manifests.update(leaves)
                continue
            chosen += [self._entries(leaf, ordinals) for leaf in leaves]
            if key == self._roots.get(snapshot_id):
                manifests |= self._manifests_at(examination.roots[snapshot_id], ordinals) & listed
        lost = manifests & files.lost
        chosen += [np.arange(files.starts[leaf], files.starts[leaf + 1]) for leaf in manifests - lost]
        found = self._without_vectors(_union(chosen))
        if not manifests and not len(found):
            return None
        if one.code not in _OF_CHANGES:
            found = found[files.alive[found]]
        stated = [self._stated(snapshot_id, files.leaves[leaf][0]) for leaf in lost]
        known = [count for count, _ in stated if count is not None]
        return _Reach(
            found,
            sum(known) if len(known) == len(stated) else None,
            one.hits.complete,
            not any(partitioned for _, partitioned in stated),
        )

    def _entries(self, leaf: int, ordinals: _Longs) -> _Longs:
        """Return the row numbers, in `Examination.files`, of some entries of a manifest.

        Parameters
        ----------
        leaf
            The manifest, as an index in `LiveFiles.leaves`.
        ordinals
            The positions of these entries in the manifest, from 0.
        """
        files = self._examination.files
        start, end = files.starts[leaf], files.starts[leaf + 1]
        found: _Longs = start + np.flatnonzero(np.isin(files.ordinals[start:end], ordinals))
        return found

    def _without_vectors(self, rows: _Longs) -> _Longs:
        """Remove rows of deletion vectors, so that an entry with a data file and a deletion vector counts once.

        In the V4 draft, one manifest entry may describe a data file together with its deletion vector.
        `Examination.files` then has two rows for this entry. If both are among the given rows, the deletion vector's
        row is removed. If only the deletion vector's row is among them, it is kept.

        Parameters
        ----------
        rows
            Row numbers in `Examination.files`.
        """
        files = self._examination.files
        data = files.kinds[rows] == int(ContentType.DATA)
        if data.all() or not data.any():
            return rows
        keys = (files.leaf[rows].astype(np.int64) << 40) + files.ordinals[rows]
        kept = data.copy()
        kept[~data] = ~np.isin(keys[~data], keys[data])
        left: _Longs = rows[kept]
        return left

    def _manifests_at(self, root: Manifest, ordinals: _Longs) -> set[int]:
        """Return the manifests that some entries of a root describe, as indices in `LiveFiles.leaves`.

        An entry for a manifest DV counts as the manifest whose entries this DV removes. Entries for files, which V4
        roots may have, are ignored.

        Parameters
        ----------
        root
            A manifest list or V4 root.
        ordinals
            The positions of these entries in the root, from 0.
        """
        at = np.flatnonzero(np.isin(np.asarray(root.entries["ordinal"]), ordinals))
        some = root.entries.select(["content_type", "location", "referenced_file"]).take(build.array(at))
        out: set[int] = set()
        for row in some.to_pylist():
            kind = row["content_type"]
            is_manifest = kind in (ContentType.DATA_MANIFEST, ContentType.DELETE_MANIFEST)
            name = (
                row["referenced_file"] if kind == ContentType.MANIFEST_DV else row["location"] if is_manifest else None
            )
            out.update(self._leaves.get(canonical(name), ()) if name else ())
        return out

    def _stated(self, snapshot_id: int, location: str) -> tuple[int | None, bool]:
        """Return the number of live rows in a manifest, and whether its files may be partitioned.

        Both are taken from the manifest's row in a manifest list or V4 root, without reading the manifest.

        Parameters
        ----------
        snapshot_id
            The snapshot whose manifest list or root is used.
        location
            The manifest's location.

        Returns
        -------
        int or None
            The sum of the counts of added and existing rows. It is None if a count is missing or impossible. It is also
            None for delete manifests, whose counts are not rows of the table, and for a manifest with a manifest DV,
            because the number of rows that this DV removes is unknown.
        bool
            False if the partition spec of the manifest has no fields, or only void ones. True for any other spec, and
            if the spec is unknown.
        """
        root = self._examination.roots[snapshot_id]
        key = canonical(location)
        at = self._rows_in(snapshot_id).get(key)
        if at is None:
            return None, True
        row = root.row(at, ["content_type", "partition_spec_id", "manifest_stats"])
        spec = None if row["partition_spec_id"] is None else self._metadata.spec(row["partition_spec_id"])
        partitioned = spec is None or bool(_keys(self._metadata, spec.spec_id))
        stats = row["manifest_stats"] or {}
        added, existing = (stats.get(f"{name}_rows_count") for name in ("added", "existing"))
        # The counts of a delete manifest are not rows of the table. A manifest DV removes entries, and the root does
        # not state how many rows these have.
        known = row["content_type"] == ContentType.DATA_MANIFEST and key not in root.dv_rows
        if (
            not known
            or added is None
            or existing is None
            or not 0 <= min(added, existing) <= added + existing <= _MOST_ROWS
        ):
            return None, partitioned
        return added + existing, partitioned

    def _rows_in(self, snapshot_id: int) -> dict[str, int]:
        """Return the row index of each manifest in a snapshot's manifest list or V4 root, by canonical location.

        The files that a V4 root lists directly are included. The dictionary is made once for each snapshot.
        """
        if snapshot_id not in self._root_rows:
            names = build.to_pylist(self._examination.roots[snapshot_id].entries["location"])
            self._root_rows[snapshot_id] = {canonical(name): row for row, name in enumerate(names) if name}
        return self._root_rows[snapshot_id]

    @property
    def _metadata(self) -> TableMetadata:
        return self._examination.state.metadata


def _texts(names: Iterable[str]) -> list[AnyArray]:
    """Convert locations to an Arrow array, and return a list that contains only this array.

    Text that was read from JSON may contain one half of a surrogate pair. Arrow cannot store such text, so locations
    with it are left out.
    """
    return [pa.array([name for name in names if not any("\ud800" <= sign <= "\udfff" for sign in name)], pa.string())]


# Rows -----------------------------------------------------------------------------------------------------------------


def _rows(examination: Examination, one: Finding, reach: _Reach) -> int | None:
    """Return the number of rows that a finding concerns, as defined at `Finding.rows`; None if it is unknown.

    Parameters
    ----------
    reach
        The files that the finding concerns.
    """
    if one.code in _OF_NOTHING:
        return 0
    if not reach.complete or reach.stated is None:
        return None
    files = examination.files
    kinds = files.kinds[reach.rows]
    if not np.isin(kinds, _COUNTED).all():
        return None
    at = build.array(reach.rows)
    counts = whole(files.entries["record_count"].take(at))
    if counts.null_count or len(counts) == 0:
        return None if counts.null_count else reach.stated
    ends = pc.min_max(counts).as_py()
    if ends["min"] < 0 or ends["max"] > _MOST_ROWS:
        return None
    # Each file counts once, even if several entries have its location. Several deletion vectors may be in one Puffin
    # file, so their offsets are compared, too. A deletion vector that is stored in its manifest entry has no location.
    # To be counted separately, each of them gets its own negative number instead of the number of a location.
    names = files.same[reach.rows]
    names = np.where(names < 0, -1 - np.arange(len(names)), names)
    offsets = pc.struct_field(whole(files.entries["deletion_vector"]), "offset").take(at)
    table = build.table({"name": names, "offset": offsets, "rows": counts})
    sums = table.group_by(["name", "offset"], use_threads=False).aggregate([("rows", "max")])["rows_max"]
    if float(np.asarray(sums, np.float64).sum()) > 2**62:
        return None
    return reach.stated + int(pc.sum(sums).as_py())


def _measure(
    examination: Examination, one: Finding, reach: _Reach, partitions: _Partitions
) -> tuple[int | None, tuple[str, ...], int | None]:
    """Return the values of `Finding.rows`, `Finding.partitions` and `Finding.partition_count`."""
    texts, count = partitions.of_rows(reach.rows)
    if not (reach.complete and reach.partitioned):
        count = None
    if _is_of_tuples(one):
        texts, count = (), None
    elif texts == (_UNPARTITIONED,) and count == 1:
        texts, count = (), 0
    return _rows(examination, one, reach), texts, count


# Partitions -----------------------------------------------------------------------------------------------------------


def _is_of_tuples(one: Finding) -> bool:
    """Return whether a finding is about partition tuples that are lost, damaged or impossible to decode.

    The partitions of the affected files are then unknown.
    """
    field = one.field or ""
    if one.code == "value-undecodable":
        return field == "102 partition" or field.isdecimal()
    return one.code == "partition-unknown" or (one.code, field) in (
        ("file-corrupt", "102 partition"),
        ("entry-invalid", "149 content_stats"),
    )


@dataclass(frozen=True)
class _Partitions:
    """The partition of each entry in a selection of entries from `Examination.files`.

    Attributes
    ----------
    rows
        The row numbers, in `Examination.files`, of the selected entries, sorted.
    codes
        For each item of `rows`, the index of its partition in `texts`; -1 where the partition is unknown.
    texts
        Each partition once, as text: for example ``k=a``, or ``unpartitioned``.
    """

    rows: _Longs
    codes: _Longs
    texts: AnyArray

    @classmethod
    def of(cls, examination: Examination, rows: _Longs) -> _Partitions:
        """Read the partitions of some entries.

        Parameters
        ----------
        rows
            The row numbers of these entries in `Examination.files`, which must be sorted.
        """
        if not len(rows):
            return cls(rows, rows, pa.array([], pa.string()))
        files, metadata = examination.files, examination.state.metadata
        if not any(
            _keys(metadata, spec.spec_id) for spec in metadata.partition_specs
        ):  # unpartitioned: there are no tuples to read
            specs = pc.fill_null(whole(files.entries["partition_spec_id"].take(build.array(rows))), -1)
            known = pc.is_in(specs, pa.array([s.spec_id for s in metadata.partition_specs], specs.type))
            return cls(rows, np.where(np.asarray(known), 0, -1), pa.array([_UNPARTITIONED]))
        damaged = {canonical(one.location) for one in examination.findings if _is_of_tuples(one)}
        codes = np.full(len(rows), -1, np.int64)
        leaf = files.leaf[rows]
        examples: list[EntryBatch] = []
        made = 0
        for number, manifest in examination.leaves_again(np.unique(leaf).tolist(), frozenset({"entries", "partition"})):
            first, end = np.searchsorted(leaf, [number, number + 1]).tolist()
            if len(manifest) != files.starts[number + 1] - files.starts[number]:
                continue  # the manifest was overwritten after `files` was read: its partitions stay unknown
            batch = EntryBatch(manifest.entries.select(["partition_spec_id"]), {}, manifest.partition())
            if end - first < len(batch):
                batch = batch.take(rows[first:end] - files.starts[number])
            own = partition_codes(batch)
            firsts = np.unique(own, return_index=True)[1]  # for each partition, the index of its first entry
            some = batch.take(firsts)
            unknown = _unknown(metadata, some, canonical(manifest.location) in damaged)
            codes[first:end] = np.where(unknown[own], -1, made + own)
            made += len(firsts)
            examples.append(_full(some))
        if not examples:
            return cls(rows, codes, pa.array([], pa.string()))
        texts = partition_texts(examination.state, concat_batches(examples)).dictionary_encode()
        # An unknown partition has the code -1. Used as an index, -1 selects the last item of `numbers`. This item is
        # also -1, so that the code of an unknown partition stays -1.
        numbers = np.append(np.asarray(texts.indices).astype(np.int64), -1)
        return cls(rows, numbers[codes], texts.dictionary)

    def of_rows(self, rows: _Longs) -> tuple[tuple[str, ...], int | None]:
        """Return the first ten partitions of some entries, as text, and the number of all their partitions.

        The number is None if the partition of one of these entries is unknown.

        Parameters
        ----------
        rows
            Row numbers of entries, all of which must be in `_Partitions.rows`.
        """
        codes = self.codes[np.searchsorted(self.rows, rows)]
        known, firsts = np.unique(codes[codes >= 0], return_index=True)
        first = known[np.argsort(firsts)][:MOST_PLACES]
        texts = build.to_pylist(self.texts.take(build.array(first)))
        return tuple(escape.shorten(text, _MOST_TEXT) for text in texts), len(known) if (codes >= 0).all() else None


def _keys(metadata: TableMetadata, spec_id: int) -> list[str]:
    """Return the names that a spec's fields have in Arrow partition tuples: their field ids as text.

    Void fields are left out.
    """
    spec = metadata.spec(spec_id)
    fields = () if spec is None else spec.fields
    return [str(field.field_id) for field in fields if not parse_transform(field.transform).is_void]


def _unknown(metadata: TableMetadata, batch: EntryBatch, damaged: bool) -> _Mask:
    """Return a mask of the entries whose partition is unknown.

    If partition tuples of the manifest are damaged (``damaged``), a null in a tuple may be a lost value. The partition
    of each entry with such a null is then considered unknown, too.
    """
    specs = np.asarray(pc.fill_null(whole(batch.entries["partition_spec_id"]), -1))
    out = np.zeros(len(batch), bool)
    for spec_id in np.unique(specs).tolist():
        mine = specs == spec_id
        if spec_id < 0 or metadata.spec(spec_id) is None:
            out |= mine
            continue
        keys = _keys(metadata, spec_id)
        tuples = batch.partition
        if keys and tuples is None:
            out |= mine
        elif keys and tuples is not None:
            out |= mine & np.asarray(tuples.is_null())
            for key in keys:
                at = tuples.type.get_field_index(key)
                if at < 0:
                    out |= mine
                elif damaged:
                    out |= mine & np.asarray(pc.struct_field(tuples, [at]).is_null())
    return out


def _full(batch: EntryBatch) -> EntryBatch:
    """Return a new batch with the spec ids and partition tuples of the given one; all other columns are null.

    The new batch has all columns of `ENTRY_SCHEMA`, also those that the given batch lacks. Such batches have equal
    columns, so that they can be concatenated.
    """
    columns = [
        whole(batch.entries[f.name]) if f.name == "partition_spec_id" else build.nulls(len(batch), f.type)
        for f in ENTRY_SCHEMA
    ]
    return EntryBatch(pa.Table.from_arrays(columns, schema=ENTRY_SCHEMA), {}, batch.partition)
