"""What a snapshot of any table holds, as plain Python: live files and which deletes apply to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.deletes import FILE_PATH_ID, read_deletion_vector, read_position_deletes
from iceexplore.graph import TableState
from iceexplore.manifests import Manifest, live
from iceexplore.metadata import Snapshot

__all__ = ["Seen", "view"]

_PARTS = frozenset({"entries", "partition", "stats"})
Place = tuple[int, tuple[tuple[str, Any], ...]]


@dataclass
class Seen:
    """What is live in a snapshot.

    Attributes
    ----------
    data, equality
        The entries by location, each with ``place`` (spec and partition tuple) and, of data, ``bounds`` of column 1.
    gone
        Deleted positions by data file: those of its vector, or else of the position delete files that apply.
    applies
        (equality delete, data file) where the one applies to the other.
    counts
        Live files by content type; ``dvs`` of them are vectors.
    """

    data: dict[str, dict[str, Any]] = field(default_factory=dict)
    equality: dict[str, dict[str, Any]] = field(default_factory=dict)
    gone: dict[str, frozenset[int]] = field(default_factory=dict)
    applies: set[tuple[str, str]] = field(default_factory=set)
    deletes: list[dict[str, Any]] = field(default_factory=list)
    dvs: int = 0


def view(t: ix.Table, snapshot: Snapshot | None, *, deletes: bool = True) -> Seen:
    """Read every manifest of a snapshot, and its vectors and position deletes (``deletes``)."""
    seen = Seen()
    state = t.state
    if snapshot is None:
        return seen
    vectors: dict[str, dict[str, Any]] = {}
    loose: list[dict[str, Any]] = []
    for leaf in state.leaves(snapshot, parts=_PARTS):
        for row in _rows(leaf, state):
            if row["content_type"] == 0:
                assert row["location"] not in seen.data, f"{row['location']} is live twice"
                seen.data[row["location"]] = row
                continue
            seen.deletes.append(row)
            if row["content_type"] == 2:
                assert row["location"] not in seen.equality, f"{row['location']} is live twice"
                seen.equality[row["location"]] = row
            elif row["deletion_vector"] is not None:
                assert row["referenced_file"] not in vectors, f"two vectors for {row['referenced_file']}"
                vectors[row["referenced_file"]] = row
            else:
                loose.append(row)
    seen.dvs = len(vectors)
    if not deletes:
        return seen
    for name, row in vectors.items():
        assert name in seen.data, f"a vector for {name}, which is not live"
        at = row["deletion_vector"]
        positions = _vector(state.storage, row["location"], at["offset"], at["size_in_bytes"])
        assert row["record_count"] == len(positions)
        assert row["place"] == seen.data[name]["place"]
        seen.gone[name] = positions
    spelled = {urlsplit(name).path: name for name in seen.data}
    for row in loose:
        for written, positions in _positions(state.storage, row["location"]).items():
            # Tables that were moved have deletes that spell their files without the scheme, or with another.
            name = written if written in seen.data else spelled.get(urlsplit(written).path, written)
            file = seen.data.get(name)
            if file is None or name in vectors or row["place"] != file["place"]:
                continue
            if file["sequence_number"] <= row["sequence_number"]:
                seen.gone[name] = seen.gone.get(name, frozenset()) | positions
    for name, row in seen.equality.items():
        spec = state.metadata.spec(row["place"][0])
        for other, entry in seen.data.items():
            here = row["place"] == entry["place"] or (spec is not None and spec.is_unpartitioned)
            if here and entry["sequence_number"] < row["sequence_number"]:
                seen.applies.add((name, other))
    return seen


def _rows(leaf: Manifest, state: TableState) -> list[dict[str, Any]]:
    partition = leaf.partition()
    tuples = [{}] * len(leaf.entries) if partition is None else build.to_pylist(partition)
    stats = leaf.stats(1)
    path = leaf.stats(FILE_PATH_ID)
    mask = live(leaf.entries).to_pylist()
    out = []
    for i, row in enumerate(leaf.entries.to_pylist()):
        if not mask[i] or row["content_type"] > 2:
            continue
        spec = state.metadata.spec(row["partition_spec_id"])
        assert spec is not None
        mine = {str(f.field_id) for f in spec.fields}
        tuple_ = tuples[i] or {}
        assert not {k for k, v in tuple_.items() if v is not None} - mine, (tuple_, mine)
        row["place"] = (spec.spec_id, tuple(sorted((k, tuple_.get(k)) for k in mine)))
        row["bounds"] = (stats.lower[i].as_py(), stats.upper[i].as_py())
        row["scope"] = (path.lower_raw[i].as_py(), path.upper_raw[i].as_py())
        out.append(row)
    return out


@lru_cache(256)
def _vector(storage: Any, location: str, offset: int, size: int) -> frozenset[int]:
    return frozenset(read_deletion_vector(storage, location, offset, size))


@lru_cache(256)
def _positions(storage: Any, location: str) -> dict[str, frozenset[int]]:
    out: dict[str, set[int]] = {}
    for row in read_position_deletes(storage, location).select(["file_path", "pos"]).to_pylist():
        out.setdefault(row["file_path"], set()).add(row["pos"])
    return {name: frozenset(positions) for name, positions in out.items()}
