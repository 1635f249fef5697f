"""Check leaf manifests: problems found while reading them, their headers, and wrong counts that the root states."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.doctor.checks._avro_schema import schema_problems
from iceexplore.doctor.examination._examination import ColumnBounds, Examination
from iceexplore.doctor.model._hits import Hits
from iceexplore.errors import Problem, Problems, problem
from iceexplore.graph import TableState, amount
from iceexplore.manifests import ColumnStats, ContentType, Manifest, joined_stats, live, whole
from iceexplore.metadata import PrimitiveType
from iceexplore.storage import canonical

__all__ = ["check_leaves", "plain_keys"]

_PARTS = frozenset({"entries", "partition", "stats"})
#: Limits for decoding the statistics of several manifests together: the number of manifests, and the number of values
#: in their statistics.
_MOST_MANIFESTS = 256
_MOST_TOGETHER = 200_000
#: The modes (``docs/doctor.md``) of two faults, by problem code, if the faulty file is a leaf manifest.
_OF_MANIFESTS: dict[str, tuple[int, ...]] = {"file-missing": (2,), "file-truncated": (78,)}


def check_leaves(examination: Examination) -> None:
    """Report faults of every examined leaf manifest; statistics and partition tuples are decoded."""
    # Two kinds of problems are collected here: those found while `looking`, a copy of the examination, decodes
    # manifests, and those that this check itself finds. They are reported at the end, when it is known which snapshots
    # list each manifest.
    late = Problems()
    state = examination.state
    looking = examination.with_problems(late)
    listed: dict[str, tuple[int, ...]] = {}
    current = None if state.snapshot is None else state.snapshot.snapshot_id
    bare = _Bare()
    for batch in _batches(looking.leaves(_PARTS)):
        for leaf, snapshots in batch:
            key = canonical(leaf.location)
            listed[key] = tuple(dict.fromkeys((*listed.get(key, ()), *snapshots)))
            problems = (*schema_problems(leaf, state.metadata), *plain_keys(leaf), *_unsorted(leaf))
            headers = () if _is_deltas(state, leaf) else _headers(leaf, state.metadata.requires_snapshot_parts)
            for item in (*leaf.untrue_claims(), *headers, *problems):
                late.add(item)
        leaves = [leaf for leaf, _ in batch]
        starts = np.cumsum([0, *map(len, leaves)])
        data = np.concatenate([_data_with_rows(leaf) for leaf in leaves])
        shown = np.repeat([current in snapshots for _, snapshots in batch], np.diff(starts))
        measured = np.zeros(len(data), bool)
        damaged: list[tuple[int, Problem]] = []
        for ids, stats in _stats_of(leaves):
            # Decoding has reported swapped bounds and impossible null counts; this checks the bytes of the bounds.
            damaged += _damaged(leaves, starts, ids, stats)
            for values in (stats.value_count, stats.column_size, stats.lower_raw, stats.upper_raw):
                measured |= np.asarray(values.is_valid()).reshape(len(ids), len(data)).any(axis=0)
            if shown.any():
                _count_bounds(examination.metrics, ids, stats, data & shown)
        for _, item in sorted(damaged, key=lambda found: found[0]):
            late.add(item)
        for leaf, start, stop in zip(leaves, starts[:-1], starts[1:], strict=True):
            if not _is_deltas(state, leaf):
                bare.see(leaf, data[start:stop], measured[start:stop])
        examination.metrics.files += int((data & shown).sum())
        examination.metrics.bare += int((data & shown & ~measured).sum())
    roots = {canonical(root.location): (snapshot,) for snapshot, root in examination.roots.items()}
    known = {(f.code, f.where, f.field) for f in examination.findings}
    cleaned_up = _cleaned_up(examination, {canonical(i.where) for i in late if i.code == "file-missing"})
    for item in late:
        if (item.code, item.where, item.field) in known:
            continue
        place = canonical(item.where.partition("#")[0])
        of = listed.get(place) or roots.get(place) or ()
        modes = _OF_MANIFESTS.get(item.code) if place in listed else None
        if modes is not None and item.code == "file-missing" and place in cleaned_up:
            modes = (*modes, 6)
        examination.report(item, snapshots=of, modes=modes)
    for item, hits in bare.problems():
        places = [canonical(location) for location, _ in hits.entries]
        affected = dict.fromkeys(snapshot for place in places for snapshot in listed.get(place, ()))
        examination.report(item, snapshots=affected, hits=hits)


def _is_deltas(state: TableState, leaf: Manifest) -> bool:
    """Return whether Delta Lake wrote a leaf manifest.

    Delta Lake writes neither Iceberg's key-value metadata nor column metrics, so their absence is no fault then.
    """
    return state.opened.is_delta and "format-version" not in leaf.header.metadata


_Listed = tuple[Manifest, tuple[int, ...]]


def _batches(leaves: Iterable[_Listed]) -> Iterator[list[_Listed]]:
    """Yield manifests in batches, in order.

    A batch has several small manifests of v1 to v3, one large manifest, or one of V4. Decoding the statistics of small
    manifests one by one would take longer.
    """
    batch: list[_Listed] = []
    total = 0
    for one in leaves:
        values = one[0].stat_values
        if values is None or values > _MOST_TOGETHER:
            if batch:
                yield batch
            batch, total = [], 0
            yield [one]
            continue
        if batch and (total + values > _MOST_TOGETHER or len(batch) == _MOST_MANIFESTS):
            yield batch
            batch, total = [], 0
        batch.append(one)
        total += values
    if batch:
        yield batch


def _stats_of(leaves: Sequence[Manifest]) -> Iterator[tuple[Sequence[int], ColumnStats]]:
    if len(leaves) == 1:
        return leaves[0].stats_blocks(leaves[0].stat_field_ids())
    return joined_stats(leaves)


def plain_keys(manifest: Manifest) -> Iterator[Problem]:
    """Check for encryption keys (``key_metadata``) in a file that is not encrypted: anyone can read these keys.

    A file that could be read without a key is not encrypted.

    Parameters
    ----------
    manifest
        A leaf manifest, which may have keys of data and delete files (field id 131); or a manifest list or root
        manifest, which may have keys of manifests (519).
    """
    keys = pc.fill_null(pc.binary_length(manifest.entries["key_metadata"]), 0)
    hit = np.flatnonzero(np.asarray(pc.greater(keys, 0)))
    if len(hit):
        what, field = ("manifest", 519) if manifest.is_root else ("file", 131)
        text = (
            f"This file is not encrypted, but contains keys for {amount(len(hit), what)}: anyone who can read it can "
            f"decrypt what these keys protect. Readers fail if a {what} has a key in this file, but is not encrypted."
        )
        at = np.asarray(manifest.entries["ordinal"])[hit]
        place = f"{manifest.location}#entry {at[0]}"
        yield problem("key-metadata-plain", place, text, field=f"{field} key_metadata", entries=at)


def _cleaned_up(examination: Examination, gone: set[str]) -> set[str]:
    """Return the missing manifests that were probably removed by the engine that wrote them.

    An engine that wrongly assumes that its commit failed removes the files that this commit wrote (mode 6 in
    ``docs/doctor.md``). This is assumed for a snapshot if all manifests that its commit added are missing, and no
    manifest that the snapshot took over from earlier snapshots is missing.

    Parameters
    ----------
    gone
        The canonical locations of all missing manifests.

    Returns
    -------
    set of str
        The canonical locations of those that were probably removed in this way.
    """
    out: set[str] = set()
    for snapshot_id, root in examination.roots.items() if gone else ():
        own = pc.fill_null(pc.equal(root.entries["snapshot_id"], snapshot_id), False)
        names, others = (
            {canonical(name) for name in build.to_pylist(root.entries["location"].filter(mask).drop_null())}
            for mask in (own, pc.invert(own))
        )
        if names and names <= gone and not others & gone:
            out |= names
    return out


def _damaged(
    leaves: Sequence[Manifest], starts: npt.NDArray[np.int64], ids: Sequence[int], stats: ColumnStats
) -> Iterator[tuple[int, Problem]]:
    """Check for bounds (field ids 125 and 128) that are not values of their column's type.

    Bounds of lists, which some writers recorded, are not checked: no reader uses them.

    Parameters
    ----------
    starts
        The first row of each manifest in the concatenated entries, followed by the total number of rows.

    Yields
    ------
    tuple
        The index of the manifest in `leaves`, and the problem.
    """
    if not isinstance(stats.type, PrimitiveType):
        return
    rows = int(starts[-1])
    for field, damaged, raw in (
        ("125 lower_bounds", stats.lower_damaged, stats.lower_raw),
        ("128 upper_bounds", stats.upper_damaged, stats.upper_raw),
    ):
        hit = np.flatnonzero(np.asarray(pc.fill_null(damaged, False)))
        of = np.searchsorted(starts, hit % rows, side="right") - 1 if len(hit) else hit
        for number in np.unique(of).tolist():
            leaf, mine = leaves[number], hit[of == number]
            column, ordinals = ids[int(mine[0]) // rows], np.asarray(leaf.entries["ordinal"])
            places = mine % rows - starts[number]
            means = "readers fail, or skip files because of a wrong bound"
            text = f"A bound of column {column} cannot be decoded as {stats.type}: {means}."
            yield (
                number,
                problem(
                    "value-undecodable",
                    f"{leaf.location}#entry {ordinals[places[0]]}",
                    text,
                    field=field,
                    found=f"0x{(raw[int(mine[0])].as_py() or b'')[:20].hex()}",
                    expected=stats.type,
                    entries=ordinals[np.unique(places)],
                ),
            )


def _headers(leaf: Manifest, versioned: bool) -> Iterator[Problem]:
    """Check whether the key-value metadata in a manifest's header has all keys that the spec requires ("Manifests").

    Other engines fail if one of them is missing. Also check that the key ``schema`` has the table's schema, not that of
    manifest entries.

    Parameters
    ----------
    versioned
        True if the table has format version 2 or later: ``format-version`` and ``content`` are then required, too.
    """
    if leaf.is_root or not leaf.dialect or leaf.root_row is None:
        return
    keys = leaf.header.metadata
    v4 = leaf.dialect.has_root_manifest
    if v4 and not leaf.dialect.deletion_vectors_on_entries:
        return  # for manifests of the V4 proposal, reading already reports which keys the header lacks
    due = ("format-version", "content") if v4 else ("schema", "partition-spec", "partition-spec-id")
    if not v4 and versioned:
        due = (*due, "format-version", "content")
    lacking = [key for key in due if key not in keys]
    kinds = pc.fill_null(leaf.entries["content_type"], int(ContentType.DATA))
    deletes = pc.any(pc.not_equal(kinds, int(ContentType.DATA))).as_py()
    if deletes and not v4 and {"format-version", "content"} & set(lacking):
        text = (
            f"The header of a delete manifest lacks {', '.join(lacking)}: readers that need this information "
            "assume a manifest of format version 1, and read its delete files as data files."
        )
        yield problem("header-version-missing", leaf.location, text, field="format-version")
    elif lacking:
        text = f"The manifest's header lacks {', '.join(lacking)}."
        yield problem("header-incomplete", leaf.location, text, field=lacking[0])
    schema: Any = None if v4 else leaf.header.json("schema")
    fields = schema.get("fields") if isinstance(schema, dict) else None
    names = {f.get("name") for f in fields if isinstance(f, dict)} if isinstance(fields, list) else set()
    if {"status", "data_file"} <= names:
        text = "The key 'schema' of the manifest's header has the schema of manifest entries, not the table's schema."
        yield problem("file-corrupt", leaf.location, text, field="schema", severity="warning")


def _unsorted(leaf: Manifest) -> Iterator[Problem]:
    """Check for split offsets (field id 132) that are not ascending, as the spec requires ("Data File Fields").

    V4 manifests are skipped: such split offsets are reported when these manifests are read.
    """
    lists = whole(leaf.entries["split_offsets"])
    if lists.null_count == len(lists) or leaf.dialect.has_root_manifest:
        return
    rows, values = np.asarray(pc.list_parent_indices(lists)), pc.list_flatten(lists)
    falls = np.flatnonzero((np.diff(np.asarray(values)) < 0) & (np.diff(rows) == 0))
    if len(falls):
        row = int(rows[falls[0]])
        at = np.asarray(leaf.entries["ordinal"])[np.unique(rows[falls])]
        text = "The split offsets of an entry are not ascending: readers that split files at the offsets lose rows."
        place = f"{leaf.location}#entry {leaf.entries['ordinal'][row].as_py()}"
        found = lists[row].as_py()[:10]
        yield problem("split-offsets-invalid", place, text, field="132 split_offsets order", found=found, entries=at)


def _data_with_rows(leaf: Manifest) -> npt.NDArray[np.bool_]:
    """Return a mask of a manifest's entries that are live data files with rows: only these need column metrics."""
    data = pc.fill_null(pc.equal(leaf.entries["content_type"], int(ContentType.DATA)), True)
    rows = pc.greater(pc.fill_null(leaf.entries["record_count"], 1), 0)
    return np.asarray(pc.fill_null(pc.and_(pc.and_(live(leaf.entries), data), rows), False))


def _count_bounds(metrics: ColumnBounds, ids: Sequence[int], stats: ColumnStats, data: npt.NDArray[np.bool_]) -> None:
    """Count, for each column, the data files that have both bounds, and those with a value neither null nor NaN.

    Parameters
    ----------
    metrics
        The counts are added to its counters ``bounded`` and ``valued``.
    ids
        The field ids of some columns of the same type.
    stats
        The statistics of these columns: the values of all entries for the first column, then those for the second, and
        so on.
    data
        A mask of the entries to count; one item per entry.
    """
    bounded = pc.and_(stats.lower_raw.is_valid(), stats.upper_raw.is_valid())
    # A file without a count of nulls or NaNs is assumed to have none of them.
    empty = pc.add(pc.fill_null(stats.null_count, 0), pc.fill_null(stats.nan_count, 0))
    valued = pc.fill_null(pc.greater(stats.value_count, empty), False)
    for counter, mask in ((metrics.bounded, bounded), (metrics.valued, valued)):
        found = (np.asarray(mask).reshape(len(ids), len(data)) & data).sum(axis=1).tolist()
        for number, count in zip(ids, found, strict=True):
            counter[number] += count


class _Bare:
    """Collects live data files without column metrics, to report them if other data files of the table have metrics.

    If no data file has metrics, the table's writers do not record them, and nothing is reported.
    """

    def __init__(self) -> None:
        self._with = 0
        self._without: list[tuple[str, npt.NDArray[np.int64]]] = []

    def see(self, leaf: Manifest, counted: npt.NDArray[np.bool_], measured: npt.NDArray[np.bool_]) -> None:
        """Record the data files of a manifest that lack column metrics, and count those that have metrics.

        Parameters
        ----------
        counted
            A mask of the entries that need metrics: live data files with rows.
        measured
            A mask of the entries with metrics of any column.
        """
        bare = np.flatnonzero(counted & ~measured)
        self._with += int((counted & measured).sum())
        if len(bare):
            self._without.append((leaf.location, np.asarray(leaf.entries["ordinal"])[bare]))

    def problems(self) -> Iterator[tuple[Problem, Hits]]:
        """Yield one problem for all data files without column metrics, together with the entries of these files.

        Yield nothing if all data files have metrics, or none has.
        """
        if self._with and self._without:
            count = sum(len(ordinals) for _, ordinals in self._without)
            text = (
                f"{amount(count, 'data file has', 'data files have')} no column metrics at all, while "
                f"{amount(self._with, 'other of the table has', 'others of the table have')} metrics: filters cannot "
                "skip any file without metrics."
            )
            first, ordinals = self._without[0]
            item = problem(
                "metrics-missing", f"{first}#entry {ordinals[0]}", text, field="125 lower_bounds", found=count
            )
            yield item, Hits(entries=tuple(self._without))
