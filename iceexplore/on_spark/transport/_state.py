"""Send a table to workers: its storage and the metadata needed to read it, and a subset of a plan's tasks.

Workers import iceexplore, so it must be installed where they run.
"""

from __future__ import annotations

import hashlib
import pickle
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pyarrow as pa

from iceexplore.arrow import AnyArray, Int64s, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import Problems, UnsupportedError
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch, ManifestReader
from iceexplore.metadata import Schema, Snapshot, TableMetadata
from iceexplore.on_spark.environment._info import SessionInfo
from iceexplore.planning import FileTasks, MatchedDeletes
from iceexplore.storage import Opened, OverlayStorage, Source, Storage

__all__ = ["ShippedState", "check_reach", "ship", "taken", "taken_deletes"]

_MOST_KEPT = 8


@dataclass(frozen=True)
class ShippedState:
    """A packed table state without history, logs and statistics, small enough to be sent with every task.

    It includes the storage's credentials, so they are visible in the bytes of the query plan.
    """

    data: bytes = field(repr=False)

    def open(self) -> TableState:
        """Return the unpacked state, the same object each time in this process."""
        key = hashlib.sha256(self.data).hexdigest()
        state = _OPENED.get(key)
        if state is None:
            # Packed by `ship` on the driver, which can run any code on its workers anyway.
            parts: _Parts = pickle.loads(zlib.decompress(self.data))  # noqa: S301
            state = parts.open()
            while len(_OPENED) >= _MOST_KEPT:
                del _OPENED[next(iter(_OPENED))]
            _OPENED[key] = state
        return state


_OPENED: dict[str, TableState] = {}


@dataclass(frozen=True)
class _Parts:
    storage: Storage
    metadata: TableMetadata
    metadata_location: str
    name: str | None
    snapshot: Snapshot | None
    schema: Schema
    ref: str | None

    def open(self) -> TableState:
        problems = Problems()
        opened = Opened(
            storage=self.storage,
            metadata_location=self.metadata_location,
            document={},
            name=self.name,
            notes=(),
            problems=(),
            version=None,
            catalog_table=None,
            source=Source(self.metadata_location),
        )
        reader = ManifestReader(self.storage, self.metadata, problems)
        return TableState(opened, self.metadata, self.snapshot, self.schema, problems, reader, (), self.ref)


def ship(state: TableState, *, snapshots: Iterable[Snapshot] = ()) -> ShippedState:
    """Pack a state for workers.

    Parameters
    ----------
    snapshots
        Snapshots that workers need besides the one shown.

    Raises
    ------
    UnsupportedError
        The storage cannot be sent to another process.
    """
    kept = {s.snapshot_id: s for s in (*snapshots, *([state.snapshot] if state.snapshot is not None else []))}
    metadata = replace(
        state.metadata,
        snapshots=tuple(replace(s, summary=None) for s in kept.values()),
        snapshot_log=(),
        metadata_log=(),
        statistics=(),
        partition_statistics=(),
        refs={},
        raw={},
    )
    parts = _Parts(
        state.storage, metadata, state.metadata_location, state.opened.name, state.snapshot, state.schema, state.ref
    )
    try:
        return ShippedState(zlib.compress(pickle.dumps(parts), 1))
    except (pickle.PicklingError, TypeError, AttributeError) as e:
        raise UnsupportedError(
            f"{state.name}: its file access object cannot be sent to Spark's workers ({e}); open the table by its "
            "location (ix.open(path, properties=...)) instead of by a catalog's object"
        ) from e


#: Storages with temporary folders that DataFrames read from. They are kept until Python exits; closing a table still
#: removes its folder.
_KEPT: dict[int, Storage] = {}


def check_reach(state: TableState, info: SessionInfo) -> None:
    """Raise an error if workers cannot access the table's files; keep temporary folders of local tables alive.

    A DataFrame may be executed after its table was garbage-collected, and the temporary folder would be gone by then.

    Raises
    ------
    UnsupportedError
        The files are in a temporary folder of this machine (a simulation's overlay, an extracted zip), but Spark runs
        on other machines.
    """
    storage = state.storage
    where = None
    if isinstance(storage, OverlayStorage):
        where, how = storage.overlay_folder, "save it to a shared folder: s.save(...)"
    elif storage.is_extracted:
        where, how = storage.folder, "extract the zip to a shared folder and open that"
    if where is None:
        return
    if info.local:
        _KEPT[id(storage)] = storage
    else:
        raise UnsupportedError(
            f"{state.name}: its files are in {where}, but Spark's workers run on other machines: {how}"
        )


def taken(tasks: FileTasks, rows: Iterable[int]) -> FileTasks:
    """Return some tasks with only their own deletes and residuals, and without column metrics.

    If a position delete references its data file with another scheme or host than the manifests, it is matched to a
    file of these tasks, even if the rest of the plan has a file with exactly that location.
    """
    numbers = pa.array(list(rows), pa.int64())
    some = tasks.take(numbers)
    used = some.residual.unique()
    residuals = tuple(some.residuals[i] for i in build.to_pylist(used))
    files = EntryBatch(some.files.entries, {}, some.files.partition)
    residual = pc.index_in(some.residual, value_set=used)
    matched = taken_deletes(tasks.matched, numbers)
    return FileTasks(files, some.root_row, some.whole, residual, residuals or tasks.residuals, matched)


def taken_deletes(matched: MatchedDeletes, rows: Int64s) -> MatchedDeletes:
    """Return the deletes of some data files, without all others."""
    some = matched.take(rows)
    vectors = some.vector.drop_null()
    positions, equality = (pc.list_flatten(lists) for lists in (some.positions, some.equality))
    used = pa.concat_arrays([vectors, positions, equality]).unique()
    partition = some.deletes.partition
    return MatchedDeletes(
        EntryBatch(some.deletes.entries.take(used), {}, None if partition is None else partition.take(used)),
        pc.index_in(some.vector, value_set=used, skip_nulls=True),
        _renumbered(some.positions, used),
        _renumbered(some.equality, used),
        some.referenced.take(used) if len(some.referenced) else some.referenced,
    )


def _renumbered(lists: AnyArray, used: AnyArray) -> AnyArray:
    sizes = pc.list_value_length(lists)
    values = pc.index_in(pc.list_flatten(lists), value_set=used)
    offsets = pc.cumulative_sum(pc.cast(sizes, pa.int32()))
    starts = pa.concat_arrays([pa.array([0], pa.int32()), offsets])[: len(lists)]
    return build.list_view_array(starts, pc.cast(sizes, pa.int32()), values)
