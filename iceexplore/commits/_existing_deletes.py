"""The deletes that apply to some data files in a state: their deletion vectors, position and equality delete files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.commits._live import live_leaves
from iceexplore.deletes import FILE_PATH_ID, read_deletion_vector, read_position_deletes
from iceexplore.graph import TableState
from iceexplore.manifests import ContentType, EntryBatch, Manifest, bool_array, concat_batches, whole

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
    from pyroaring import BitMap64

    out: dict[str, Any] = {}
    for name, entry in deletes.vectors.items():
        place = entry["deletion_vector"]
        out[name] = read_deletion_vector(state.storage, entry["location"], place["offset"], place["size_in_bytes"])
    columns = [files.entries[c].to_pylist() for c in ("location", "sequence_number", "partition_spec_id")]
    where = dict(zip(columns[0], zip(columns[1], _places(files), strict=True), strict=True))
    open_ones = pa.array([n for n in columns[0] if n not in deletes.vectors], pa.string())
    if not len(open_ones):
        return out
    rows = deletes.positions.entries.select(["location", "file_format", "sequence_number"]).to_pylist()
    for row, place in zip(rows, _places(deletes.positions), strict=True):
        table = read_position_deletes(state.storage, row["location"], row["file_format"])
        table = table.filter(pc.is_in(table["file_path"], value_set=open_ones))
        for name in table["file_path"].unique().to_pylist():
            sequence, own = where[name]
            if (row["sequence_number"] or 0) < (sequence or 0) or own != place:
                continue
            found = table.filter(pc.equal(table["file_path"], name))["pos"].to_numpy()
            out.setdefault(name, BitMap64()).update(found[found >= 0].astype(np.uint64).tolist())
    return out


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
