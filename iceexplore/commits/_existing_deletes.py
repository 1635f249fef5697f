"""The deletes that apply to some data files in a state: their deletion vectors, position and equality delete files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.commits._live import live_leaves
from iceexplore.deletes import FILE_PATH_ID
from iceexplore.graph import TableState
from iceexplore.manifests import (
    ENTRY_SCHEMA,
    ContentType,
    EntryBatch,
    Manifest,
    bool_array,
    concat_batches,
    whole,
)
from iceexplore.planning import MatchedDeletes
from iceexplore.reading import deleted_positions

__all__ = ["Deletes", "deletes_of", "file_scope", "read_positions"]


@dataclass(frozen=True)
class Deletes:
    """Deletes that apply to some data files.

    Attributes
    ----------
    vectors
        Entries of deletion vectors, by data file.
    positions
        Entries of position delete files that may hold positions in them; `scope` says of which single file.
    equality
        Entries of equality delete files that may apply.
    """

    vectors: dict[str, dict[str, Any]] = field(default_factory=dict)
    positions: EntryBatch = field(default_factory=EntryBatch.empty)
    equality: EntryBatch = field(default_factory=EntryBatch.empty)
    scope: list[str | None] = field(default_factory=list)


def file_scope(leaf: Manifest) -> pa.Array:
    """The one data file that each position delete refers to: its ``referenced_file``, or equal bounds of ``file_path``.

    As Java's ``ContentFileUtil.referencedDataFile``; null where a file may hold deletes of several.
    """
    said = whole(leaf.entries["referenced_file"])
    if not said.null_count:
        return said
    stats = leaf.stats(FILE_PATH_ID)
    same = pc.fill_null(pc.equal(stats.lower_raw, stats.upper_raw), False)
    try:
        bound = stats.lower_raw.cast(pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:  # bounds that are no text: nothing is known
        return said
    return pc.coalesce(said, pc.if_else(same, bound, pa.scalar(None, pa.string())))


def deletes_of(state: TableState, files: EntryBatch, *, equality: bool = True) -> Deletes:
    """The deletes that may apply to some live data files (spec, "Scan Planning"); reads every manifest of deletes.

    A position delete applies where its sequence number is not below the data file's, an equality delete where it is
    above; both in the same spec and partition, but for equality deletes of an unpartitioned spec, which are global.
    """
    names = whole(files.entries["location"])
    kinds = [ContentType.POSITION_DELETE] + ([ContentType.EQUALITY_DELETE] if equality else [])
    places = _places(files)
    globals_ = {s.spec_id for s in state.metadata.partition_specs if s.is_unpartitioned}
    oldest = pc.min(files.entries["sequence_number"]).as_py() or 0
    vectors: dict[str, dict[str, Any]] = {}
    positions, scopes, equalities = [], [], []
    for leaf, live_ones in live_leaves(state, kinds, parts=frozenset({"entries", "partition"})):
        entries, mask = leaf.entries, bool_array(live_ones)
        is_equality = bool_array(pc.equal(entries["content_type"], int(ContentType.EQUALITY_DELETE)))
        is_vector = bool_array(whole(entries["deletion_vector"]).is_valid()) & ~is_equality
        mine = mask & is_vector & bool_array(pc.is_in(entries["referenced_file"], value_set=names))
        for row in entries.take(pa.array(np.flatnonzero(mine))).to_pylist():
            vectors[row["referenced_file"]] = row
        rest = mask & ~is_vector
        if not rest.any():
            continue
        sequence = np.asarray(pc.fill_null(entries["sequence_number"], 0))
        scope = file_scope(leaf)
        here = bool_array(pc.is_in(scope, value_set=names)) | np.asarray(scope.is_null())
        batch = EntryBatch.of(leaf, ())
        near = _in_places(batch, places, rest)
        specs = np.asarray(pc.fill_null(entries["partition_spec_id"], -1))
        wide = np.isin(specs, list(globals_))
        by_position = rest & ~is_equality & here & near & (sequence >= oldest)
        by_value = rest & is_equality & (near | wide) & (sequence > oldest)
        if by_position.any():
            positions.append(batch.filter(pa.array(by_position)))
            scopes += scope.filter(pa.array(by_position)).to_pylist()
        if by_value.any():
            equalities.append(batch.filter(pa.array(by_value)))
    return Deletes(vectors, concat_batches(positions), concat_batches(equalities), scopes)


def read_positions(state: TableState, files: EntryBatch, deletes: Deletes) -> dict[str, Any]:
    """The deleted positions of each data file that has any, as bitmaps: its vector, or else the position delete files.

    A deletion vector takes the place of all position delete files of its data file (spec, "Deletion Vectors").
    """
    names, sequences = (files.entries[c].to_pylist() for c in ("location", "sequence_number"))
    numbers = {name: i for i, name in enumerate(deletes.vectors)}
    vectors = EntryBatch(pa.Table.from_pylist(list(deletes.vectors.values()), schema=ENTRY_SCHEMA))
    by_place: dict[Any, list[tuple[int, int, str | None]]] = {}
    rows = deletes.positions.entries["sequence_number"].to_pylist()
    for i, (sequence, scope, place) in enumerate(zip(rows, deletes.scope, _places(deletes.positions), strict=True)):
        by_place.setdefault(place, []).append((len(vectors) + i, sequence or 0, scope))
    lists = [
        []
        if name in numbers
        else [n for n, s, scope in by_place.get(place, ()) if s >= (own or 0) and scope in (None, name)]
        for name, own, place in zip(names, sequences, _places(files), strict=True)
    ]
    matched = MatchedDeletes(
        EntryBatch(pa.concat_tables([vectors.entries, deletes.positions.entries])),
        pa.array([numbers.get(name) for name in names], pa.int32()),
        pa.array(lists, pa.list_(pa.int32())),
        pa.array([[]] * len(files), pa.list_(pa.int32())),
    )
    return deleted_positions(state, files, matched)


def _places(batch: EntryBatch) -> list[Any]:
    """Spec and tuple of each row, hashable."""
    specs = batch.entries["partition_spec_id"].to_pylist()
    tuples: Iterable[Any] = [None] * len(batch) if batch.partition is None else batch.partition.to_pylist()
    return [(s, tuple(sorted((k, _plain(v)) for k, v in (t or {}).items() if v is not None)))
            for s, t in zip(specs, tuples, strict=True)]  # fmt: skip


def _plain(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and value != value else value


def _in_places(batch: EntryBatch, places: list[Any], mask: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Which rows are of the spec and partition of one of the data files."""
    wanted = set(places)
    out = np.zeros(len(batch), dtype=bool)
    specs = {spec for spec, _ in wanted}
    rows = np.flatnonzero(mask & np.isin(np.asarray(pc.fill_null(batch.entries["partition_spec_id"], -1)), list(specs)))
    out[rows] = [p in wanted for p in _places(batch.take(pa.array(rows)))]
    return out
