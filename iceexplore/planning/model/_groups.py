"""Assign data files to groups by partition, partition spec, snapshot, age or size: one group number per file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyDictionaryArray, build, plain_value
from iceexplore.arrow import compute as pc
from iceexplore.graph import TableState, format_ms, human_bytes
from iceexplore.manifests import EntryBatch, whole
from iceexplore.metadata import TableMetadata, Type, format_spec, human_value
from iceexplore.planning.evaluators._partition_values import partition_columns

__all__ = ["GROUPINGS", "Groups", "counted", "partition_codes", "partition_texts"]

_DAY = 86_400_000
#: Age groups, from the youngest files to the oldest: for each group, an age in milliseconds, and the label. A file is
#: in the first group whose age is greater than that of the file; if there is none, it is in the group `_OLDER`.
_AGES = (
    (3_600_000, "under an hour"), (_DAY, "under a day"), (7 * _DAY, "under a week"), (30 * _DAY, "under 30 days"),
    (90 * _DAY, "under 90 days"), (365 * _DAY, "under a year"),
)  # fmt: skip
_OLDER = "a year or more"
_UNKNOWN = "snapshot has expired"
#: Highest number of bytes or rows that is accepted for a file. A higher number in the metadata must be wrong. It is
#: replaced by this one, so that sums over many files do not overflow.
_MOST = 2**50


@dataclass(frozen=True)
class Groups:
    """Files, divided into groups: for example, one group per partition, or one per snapshot that added files.

    Attributes
    ----------
    codes
        int64, one per file: the number of its group, which is a row number in `columns`.
    columns
        Descriptions of the groups, one row each. The first column is a text that names the group.
    """

    codes: npt.NDArray[np.int64]
    columns: pa.Table


def _by_partition(state: TableState, files: EntryBatch) -> Groups:
    """Group files by partition spec and partition tuple.

    The label of a group is a text such as ``day=2024-05-17, id_bucket=3``. To save time, each distinct partition value
    is formatted only once.
    """
    keys = _tuples(files)
    codes, firsts = _distinct(keys)
    groups = {name: array.take(firsts) for name, array in keys.items()}
    labels = np.full(len(firsts), "unpartitioned", dtype=object)
    numbers = pc.fill_null(groups["spec"], -1).to_numpy(zero_copy_only=False)
    for number in np.unique(numbers).tolist():
        spec = state.metadata.spec(number) if number >= 0 else None
        mine = np.flatnonzero(numbers == number)
        if spec is None:
            labels[mine] = "spec not known"
            continue
        parts = []
        for column in partition_columns(state.metadata, spec):
            if column.transform.is_void or column.key not in groups:
                continue
            kind = column.type if column.source is None else column.source.type
            texts = _texts(groups[column.key].take(build.array(mine)), kind, column.field.transform)
            parts.append(pc.binary_join_element_wise(f"{column.field.name}=", texts, ""))
        if parts:
            labels[mine] = pc.binary_join_element_wise(*parts, ", ").to_numpy(zero_copy_only=False)
    table = pa.table({"partition": pa.array(labels, pa.string()), "spec_id": groups["spec"]})
    return Groups(codes, table)


def partition_codes(files: EntryBatch) -> npt.NDArray[np.int64]:
    """Return, for each file, the number that identifies its partition; the numbers begin at 0.

    Files are in the same partition if they have the same partition spec and the same partition tuple. The partitions
    are numbered in ascending order of spec id, then of the partition values.
    """
    return _distinct(_tuples(files))[0]


def counted(files: EntryBatch, name: str) -> npt.NDArray[np.int64]:
    """Return the number of rows or bytes of each file, as its manifest entry states it.

    Null and negative numbers become 0. Numbers above 2⁵⁰ must be wrong, and become 2⁵⁰ so that sums do not overflow.

    Parameters
    ----------
    name
        ``record_count`` or ``file_size_in_bytes``.
    """
    return np.clip(np.asarray(pc.fill_null(whole(files.entries[name]), 0)).astype(np.int64), 0, _MOST)


def _tuples(files: EntryBatch) -> dict[str, AnyArray]:
    """Return the partition spec ids and partition values of files, as a dict of arrays with one item per file.

    The key ``spec`` has the spec ids. For the values of a partition field, the key is the field id as text.
    """
    keys = {"spec": whole(files.entries["partition_spec_id"])}
    if files.partition is not None:
        keys |= {f.name: pc.struct_field(files.partition, [i]) for i, f in enumerate(files.partition.type)}
    return keys


def _texts(values: AnyArray, kind: Type, transform: str) -> AnyArray:
    """Return partition values as text; each distinct value is formatted once."""
    encoded = pc.dictionary_encode(values, null_encoding="encode")
    words = pa.array([human_value(kind, transform, plain_value(v)) for v in encoded.dictionary], pa.string())
    return words.take(encoded.indices)


def _by_spec(state: TableState, files: EntryBatch) -> Groups:
    """Group files by the id of their partition spec."""
    specs = whole(files.entries["partition_spec_id"])
    codes, firsts = _distinct({"spec": specs})
    numbers = specs.take(firsts)
    words = [_spec_text(state.metadata, n) for n in numbers.to_pylist()]
    return Groups(codes, pa.table({"spec": pa.array(words, pa.string()), "spec_id": numbers}))


def _spec_text(metadata: TableMetadata, number: int | None) -> str:
    spec = None if number is None else metadata.spec(number)
    return "spec not known" if spec is None else f"{number}: {format_spec(spec, metadata)}"


def _by_snapshot(state: TableState, files: EntryBatch) -> Groups:
    """Group files by the snapshot that added them, from the oldest snapshot to the newest.

    Snapshots that have expired come first: the metadata no longer has their times, but they are usually the oldest.
    """
    ids = whole(files.entries["snapshot_id"])
    codes, firsts = _distinct({"snapshot": ids})
    numbers = build.to_pylist(ids.take(firsts))
    known = {s.snapshot_id: s for s in state.metadata.snapshots}
    found = [known.get(n) for n in numbers]
    words = [
        f"{n}" if s is None else f"{format_ms(s.timestamp_ms).partition('.')[0]} · {s.operation or 'no operation'}"
        for n, s in zip(numbers, found, strict=True)
    ]
    times = [None if s is None else s.timestamp_ms for s in found]
    table = pa.table(
        {
            "snapshot": pa.array([w if s else _UNKNOWN for w, s in zip(words, found, strict=True)], pa.string()),
            "snapshot_id": pa.array(numbers, pa.int64()),
            "committed": pa.array(times, pa.int64()).cast(pa.timestamp("ms", "UTC")),
            "operation": pa.array([None if s is None else s.operation for s in found], pa.string()),
        }
    )
    return _sorted(Groups(codes, table), np.array([-(2**62) if t is None else t for t in times], dtype=np.int64))


def _by_age(state: TableState, files: EntryBatch) -> Groups:
    """Group files by age, in ranges such as ``under a week``.

    The age is the time from the snapshot that added the file to the snapshot of ``state``. If ``state`` has no
    snapshot, the newest snapshot of the table is used instead. If the snapshot that added a file has expired, the
    file's age is unknown, and the file is in the group ``snapshot has expired``.
    """
    ids = whole(files.entries["snapshot_id"])
    times = {s.snapshot_id: s.timestamp_ms for s in state.metadata.snapshots}
    now = state.snapshot.timestamp_ms if state.snapshot is not None else max(times.values(), default=0)
    encoded = pc.dictionary_encode(ids, null_encoding="encode")
    limits = np.array([limit for limit, _ in _AGES])
    words = [word for _, word in _AGES] + [_OLDER, _UNKNOWN]
    places = [
        len(words) - 1 if n not in times else int(np.searchsorted(limits, max(0, now - times[n]), side="right"))
        for n in encoded.dictionary.to_pylist()
    ]
    codes = np.array(places, dtype=np.int64)[_indices(encoded)] if places else np.zeros(0, dtype=np.int64)
    return _used(codes, pa.table({"age": pa.array(words, pa.string())}))


def _by_size(state: TableState, files: EntryBatch) -> Groups:
    """Group files by size, in ranges between powers of two, such as ``1 MiB to 2 MiB``.

    Ranges without files are kept if both a smaller and a larger file exist, so that a histogram has no gaps.
    """
    sizes = counted(files, "file_size_in_bytes")
    powers = np.frexp(np.maximum(sizes, 1).astype(np.float64))[1].astype(np.int64) - 1
    low, high = (int(powers.min()), int(powers.max())) if len(powers) else (0, -1)
    every = range(low, high + 1)
    table = pa.table(
        {
            "size": pa.array([f"{_size(p)} to {_size(p + 1)}" for p in every], pa.string()),
            "from_bytes": pa.array([2**p for p in every], pa.int64()),
            "to_bytes": pa.array([2 ** min(p + 1, 62) for p in every], pa.int64()),
        }
    )
    return Groups(powers - low, table)


def _size(power: int) -> str:
    return human_bytes(2**power).replace(".0 ", " ")


#: Functions that divide data files into groups. The key of each function is the property by which it groups the files.
GROUPINGS: dict[str, Callable[[TableState, EntryBatch], Groups]] = {
    "age": _by_age,
    "partition": _by_partition,
    "size": _by_size,
    "snapshot": _by_snapshot,
    "spec": _by_spec,
}


def _distinct(keys: dict[str, AnyArray]) -> tuple[npt.NDArray[np.int64], AnyArray]:
    """Assign a number to each distinct combination of values in several arrays.

    Row i of the arrays is the combination of their values at index i. The combinations are numbered from 0 in ascending
    order: by the first array, then by the second, and so on. Null is lower than any value.

    Parameters
    ----------
    keys
        The arrays, all of the same length; the names are not used.

    Returns
    -------
    tuple
        Two arrays: for each row, the number of its combination; and for each combination, the index of its first row.
    """
    count = len(next(iter(keys.values())))
    total = np.zeros(count, dtype=np.int64)
    for array in keys.values():
        own = _ordered(array)
        total = _ordered(pa.array(total * (int(own.max(initial=0)) + 1) + own))
    firsts = np.empty(int(total.max(initial=-1)) + 1, dtype=np.int64)
    # `total` has, for each row, the id of its combination of values. `firsts` gets, for each id, the index of the first
    # row that has it. If an assignment has several values for one element, NumPy keeps the last one. So assign the row
    # indices in descending order.
    firsts[total[::-1]] = np.arange(count - 1, -1, -1)
    return total, pa.array(firsts)


def _ordered(array: AnyArray) -> npt.NDArray[np.int64]:
    """Return the rank of each value among the distinct values, from 0 for the lowest; null is lower than all others."""
    encoded = pc.dictionary_encode(array, null_encoding="encode")
    order = np.asarray(pc.array_sort_indices(encoded.dictionary, null_placement="at_start")).astype(np.int64)
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    return places[_indices(encoded)]


def _indices(encoded: AnyDictionaryArray) -> npt.NDArray[np.int64]:
    return np.asarray(encoded.indices).astype(np.int64)


def _sorted(groups: Groups, by: npt.NDArray[np.int64]) -> Groups:
    """Return groups of files, sorted in ascending order of the numbers in ``by``, which has one number per group.

    The files' group numbers, ``codes``, are renumbered to match. Groups with equal numbers in ``by`` keep their order.
    """
    order = np.argsort(by, kind="stable")
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    return Groups(places[groups.codes], groups.columns.take(build.array(order)))


def _used(codes: npt.NDArray[np.int64], columns: pa.Table) -> Groups:
    """Return the groups that have files, renumbered from 0 in the same order.

    Parameters
    ----------
    codes
        One per file: the number of its group.
    columns
        Descriptions of all groups, one row each: row n describes group n.
    """
    there, dense = np.unique(codes, return_inverse=True)
    return Groups(dense.astype(np.int64), columns.take(build.array(there)))


def partition_texts(state: TableState, files: EntryBatch) -> AnyArray:
    """Return the partition of each file as text, such as ``day=2024-05-17, id_bucket=3``.

    Fields with the transform ``void`` are left out. The text is ``unpartitioned`` if there are no other fields, and
    ``spec not known`` if the table metadata does not have the file's spec.
    """
    if not len(files):
        return pa.array([], pa.string())
    groups = GROUPINGS["partition"](state, files)
    return whole(groups.columns["partition"]).take(build.array(groups.codes))
