"""Splits and combined tasks: by Java's iterators and packing, written here once more as plainly as there."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceexplore.arrow import build
from iceexplore.errors import OptionError
from iceexplore.manifests import ENTRY_SCHEMA, EntryBatch
from iceexplore.planning import FileTasks, MatchedDeletes
from iceexplore.planning.delete_index._lists import Stretches
from iceexplore.planning.scan._splits import SplitOptions, combined_table, delete_counts, split_counts, split_table
from tests.helpers.tables import plan_table as lab

File = dict[str, Any]


def tasks_of(files: list[File]) -> FileTasks:
    """Data files with deletes of these bytes: ``positions`` are files, ``vector`` a vector."""
    rows: list[File] = []
    deletes: list[File] = []
    vectors: list[int | None] = []
    positions: list[list[int]] = []
    for i, f in enumerate(files):
        rows.append({"content_type": 0, "location": f"f{i}", "file_format": f.get("format", "parquet"),
                     "record_count": f.get("rows", 100), "file_size_in_bytes": f["size"],
                     "split_offsets": f.get("offsets")})  # fmt: skip
        at: list[int] = []
        for size in f.get("positions", ()):
            at.append(len(deletes))
            deletes.append({"content_type": 1, "location": f"d{len(deletes)}", "file_size_in_bytes": size})
        positions.append(at)
        vectors.append(len(deletes) if f.get("vector") is not None else None)
        if f.get("vector") is not None:
            place = {"offset": 4, "size_in_bytes": f["vector"], "inline_content": None}
            deletes.append({"content_type": 1, "location": "puffin", "file_size_in_bytes": 10**9,
                            "deletion_vector": place})  # fmt: skip
    n = len(files)
    lists = pa.list_(pa.int32())
    matched = MatchedDeletes(
        _batch(deletes), pa.array(vectors, pa.int32()), pa.array(positions, lists), pa.array([[]] * n, lists)
    )
    return FileTasks(
        _batch(rows), pa.nulls(n, pa.int64()), pa.array([False] * n, pa.bool_()), pa.array([0] * n, pa.int32()),
        matched=matched,
    )  # fmt: skip


def _batch(rows: list[File]) -> EntryBatch:
    return EntryBatch(pa.Table.from_pylist([{"ordinal": i, **r} for i, r in enumerate(rows)], schema=ENTRY_SCHEMA))


def java_splits(f: File, size: int) -> list[tuple[int, int]]:
    """``BaseContentScanTask.split``."""
    length, offsets = f["size"], f.get("offsets")
    if f.get("format", "parquet") not in ("parquet", "orc", "avro"):
        return [(0, length)]
    if offsets and offsets[-1] < length and all(a < b for a, b in pairwise(offsets)):
        return [(a, b - a) for a, b in zip(offsets, [*offsets[1:], length], strict=True)]
    return [(start, min(size, length - start)) for start in range(0, length, size)]


def java_bins(weights: list[int], size: int, lookback: int) -> list[list[int]]:
    """``BinPacking.PackingIterator``, the largest bin first."""
    bins: list[list[int]] = []
    out = []
    for item in range(len(weights)):
        for each in bins:
            if sum(weights[i] for i in each) + weights[item] <= size:
                each.append(item)
                break
        else:
            bins.append([item])
            if len(bins) > lookback:
                largest = max(bins, key=lambda each: sum(weights[i] for i in each))
                bins = [b for b in bins if b is not largest]
                out.append(largest)
    return out + bins


files_of = st.lists(
    st.fixed_dictionaries(
        {"size": st.integers(0, 400)},
        optional={
            "offsets": st.none() | st.lists(st.integers(0, 450), max_size=5),
            "format": st.sampled_from(["parquet", "orc", "avro", "puffin", "PARQUET"]).filter(str.islower),
            "positions": st.lists(st.integers(1, 60), max_size=3),
            "vector": st.integers(1, 60),
            "rows": st.integers(0, 1000),
        },
    ),
    max_size=30,
)


@given(files_of, st.integers(1, 300), st.integers(1, 5), st.integers(0, 50))
def test_splits_and_packing_are_javas(files: list[File], size: int, lookback: int, cost: int) -> None:
    table = split_table(tasks_of(files), SplitOptions(size, lookback, cost))
    wanted = [(i, start, length) for i, f in enumerate(files) for start, length in java_splits(f, size)]
    assert list(zip(*(table[n].to_pylist() for n in ("task", "start", "length")), strict=True)) == wanted
    weights = []
    for i, _, length in wanted:
        deletes = [*files[i].get("positions", ()), *([files[i]["vector"]] if "vector" in files[i] else [])]
        weights.append(max(length + sum(deletes), (1 + len(deletes)) * cost))
    assert table["weight"].to_pylist() == weights
    bins = java_bins(weights, size, lookback)
    assert table["combined"].to_pylist() == [next(n for n, b in enumerate(bins) if i in b) for i in range(len(weights))]
    combined = combined_table(table).to_pylist()
    assert [r["bytes"] for r in combined] == [sum(wanted[i][2] for i in b) for b in bins]
    assert [r["files"] for r in combined] == [len({wanted[i][0] for i in b}) for b in bins]
    assert [r["splits"] for r in combined] == [_merged([wanted[i] for i in b]) for b in bins]
    assert split_counts(tasks_of(files), size).sum() == len(wanted)


def _merged(splits: list[tuple[int, int, int]]) -> int:
    """``TableScanUtil.mergeTasks``: neighbours of a file become one."""
    count = 0
    last: tuple[int, int] | None = None
    for task, start, length in splits:
        count += last != (task, start)
        last = (task, start + length)
    return count


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4)), min_size=1, max_size=8),
    st.lists(st.integers(0, 4), min_size=10, max_size=10),
    st.booleans(),
    st.integers(1, 20),
)
def test_shared_stretches_are_added_up_as_lists_are(
    places: list[tuple[int, int]], values: list[int], cut: bool, most: int
) -> None:
    starts, sizes = (pa.array(column, pa.int32()) for column in zip(*places, strict=True))
    lists = build.list_view_array(starts, sizes, pa.array(values, pa.int32()))
    lists = lists.slice(1) if cut else lists
    found = Stretches.of(lists)
    amounts = np.array([3, 1, 4, 1, 5])
    plain = build.to_pylist(lists)
    assert found.totals(amounts).tolist() == [sum(int(amounts[v]) for v in each) for each in plain]
    assert found.uses(5).tolist() == [sum(each.count(v) for each in plain) for v in range(5)]
    shown = found.names(pa.array(list("abcde")), most).to_pylist()
    assert len(shown) == len(plain)
    fits = sum(map(len, plain)) <= most
    for each, names in zip(plain, shown, strict=True):
        wanted = ["abcde"[v] for v in each]
        assert names == (wanted if fits else wanted[: max(1, most // len(plain))])


def test_many_deletes_of_many_files_are_not_written_out() -> None:
    """As global equality deletes are: each of them applies to each file."""
    files, deletes = 20_000, 50_000
    views = build.list_view_array(
        pa.array([0] * files, pa.int32()),
        pa.array([deletes] * files, pa.int32()),
        pa.array(np.arange(deletes), pa.int32()),
    )
    batch = _batch([{"content_type": 2, "location": "d", "file_size_in_bytes": 2}])
    entries = pa.concat_tables([batch.entries] * deletes).combine_chunks()
    matched = MatchedDeletes(
        EntryBatch(entries),
        pa.nulls(files, pa.int32()),
        pa.nulls(files, pa.list_(pa.int32())).fill_null([]),  # type: ignore[arg-type, misc]
        views,
    )
    counts = delete_counts(matched)
    assert set(counts.count.tolist()) == {deletes}
    assert set(counts.bytes.tolist()) == {2 * deletes}


def test_sizes_that_a_damaged_manifest_claims_do_not_fill_memory() -> None:
    with pytest.raises(OptionError, match="give a larger split size"):
        split_table(tasks_of([{"size": 2**62, "rows": 1}]), SplitOptions())
    table = split_table(tasks_of([{"size": -5}, {"size": 2**62, "offsets": [4]}]), SplitOptions())
    assert table["task"].to_pylist() == [1]


def test_sizes_of_deletes_that_a_damaged_manifest_claims_do_not_overflow() -> None:
    tasks = tasks_of(
        [{"size": 1000, "positions": (2**63 - 1, 100)}, {"size": 1000, "vector": -7, "positions": (2**62,)}]
    )
    assert delete_counts(tasks.matched).bytes.tolist() == [2**50 + 100, 2**50]
    assert split_table(tasks, SplitOptions())["weight"].to_pylist() == [1000 + 2**50 + 100, 1000 + 2**50]


def test_options_come_from_the_table() -> None:
    made = SplitOptions.of({"read.split.target-size": "1000", "read.split.open-file-cost": "none"}, lookback=3)
    assert (made.size, made.lookback, made.open_file_cost) == (1000, 3, 4 * 1024 * 1024)
    made = SplitOptions.of({"read.split.target-size": "0", "read.split.open-file-cost": "0"})
    assert (made.size, made.open_file_cost) == (128 * 1024 * 1024, 0)
    for bad in ({"size": 0}, {"lookback": 0}, {"open_file_cost": -1}, {"size": True}):
        with pytest.raises(OptionError, match="give a whole number of at least"):
            SplitOptions.of({}, **bad)


def test_a_plans_splits_are_frames() -> None:
    plan = lab.with_deletes("v3").plan(split_size=1000)
    splits, combined = plan.splits(), plan.splits(combined=True)
    assert len(splits) == plan.totals["splits"]
    assert set(splits["file_path"]) == set(lab.planned(plan))
    assert len(combined) == splits["combined"].max() + 1
    assert combined["bytes"].sum() == splits["length"].sum()
    assert len(plan.splits(10**9, combined=True)) == 1
