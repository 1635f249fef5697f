"""Files merged in groups have the sums and bounds that each group has by itself, computed here value by value."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import iceexplore as ix
from iceexplore.commits import CommitWriter, Sandbox, merged_groups, start_sandbox
from iceexplore.manifests import EntryBatch, stats_type
from iceexplore.metadata import arrow_type

SCHEMA = {
    "id": "long",
    "price": "decimal(9, 2)",
    "day": "date",
    "name": "string",
    "x": "double",
    "tags": "list<string>",
}
VALUES: dict[int, Any] = {
    1: lambda r: r.randrange(-(2**40), 2**40),
    2: lambda r: Decimal(r.randrange(10**6)) / 100,
    3: lambda r: date(2020, 1, 1 + r.randrange(28)),
    4: lambda r: r.choice("äbz") * r.randrange(1, 4),
    5: lambda r: r.random() - 0.5,
}
COUNTS = ("value_count", "null_count", "nan_count", "column_size")


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    lab = ix.create(tmp_path / "t", SCHEMA, format_version=2)
    return start_sandbox(lab.state)


def _writer(sandbox: Sandbox) -> CommitWriter:
    return CommitWriter(sandbox.storage, sandbox.state, sandbox.options, 1, 1, None, 0, 1, Random(7))


def _files(sandbox: Sandbox, count: int, random: Random) -> EntryBatch:
    """Files with random statistics, of which some are unknown."""
    rows: list[dict[str, Any]] = [
        {
            "content_type": 0, "location": f"f{i}", "partition_spec_id": 0,
            "record_count": random.choice([0, 3, 10, 1000]), "file_size_in_bytes": random.randrange(10_000),
        }
        for i in range(count)
    ]  # fmt: skip
    stats = {}
    for field in sandbox.state.schema.fields:
        number = field.field_id
        element = number == 6
        kind = stats_type(pa.string() if element else arrow_type(field.type))
        values = []
        for row in rows:
            nulls = random.choice([0, row["record_count"], row["record_count"] // 2])
            one: dict[str, Any] = {"value_count": row["record_count"], "null_count": nulls, "column_size": 5}
            if random.random() < 0.1:
                one[random.choice(["value_count", "null_count"])] = None
            if number == 5:
                one["nan_count"] = 0
            if number in VALUES and nulls < row["record_count"] and random.random() < 0.9:
                ends = sorted([VALUES[number](random), VALUES[number](random)])
                one |= {"lower": ends[0], "upper": ends[1]}
            if number == 4:
                one |= {"average_length": random.choice([None, 2, 3]), "max_length": random.choice([None, 9])}
            values.append(one)
        stats[7 if element else number] = pa.array(values, kind)
    return EntryBatch.of_rows(rows, stats=stats)


def _expected(rows: list[int], left: list[int], old: list[dict[str, Any]], new: int, of: int, repeated: bool) -> Any:
    """The statistics of a file with ``new`` of the ``of`` rows that are left."""
    out: dict[str, Any] = {}
    for name in COUNTS:
        if all(o[name] is not None for o in old):
            shares = [(o[name], r, k / r if r else 1.0) for o, r, k in zip(old, rows, left, strict=True)]
            out[name] = round(sum(n * s if n == r else int(n * s) for n, r, s in shares) * (new / of))
    if not repeated and "value_count" in out:
        out |= {name: min(new, out[name]) for name in ("null_count", "nan_count") if name in out}
        out["value_count"] = new
    for name, pick in (("lower", min), ("upper", max)):
        bare = [o for o in old if o[name] is None]
        known = [o[name] for o in old if o[name] is not None]
        if known and all(o["null_count"] is not None and o["null_count"] == o["value_count"] for o in bare):
            out[name] = pick(known)
    lengths = [o["average_length"] for o in old if o["average_length"] is not None]
    out |= {"average_length": round(sum(lengths) / len(lengths))} if lengths else {}
    lengths = [o["max_length"] for o in old if o["max_length"] is not None]
    return out | ({"max_length": max(lengths)} if lengths else {})


@pytest.mark.parametrize("seed", range(4))
def test_groups_are_merged_as_one_by_one(sandbox: Sandbox, seed: int) -> None:
    random = Random(seed)
    files = _files(sandbox, 60, random)
    group = np.sort(np.array([random.randrange(12) for _ in range(60)]))
    group = np.unique(group, return_inverse=True)[1]
    many = np.array([random.randrange(1, 4) for _ in range(int(group.max()) + 1)])
    positions = {f"f{i}": range(random.choice([1, 3, 10])) for i in range(0, 60, 3)}
    made = merged_groups(sandbox.state, _writer(sandbox), files, group, positions, many, 9)
    counts: list[Any] = files.entries["record_count"].to_pylist()
    sizes: list[Any] = files.entries["file_size_in_bytes"].to_pylist()
    entries, at = made.entries.to_pylist(), 0
    for number in range(len(many)):
        mine = np.flatnonzero(group == number).tolist()
        rows = [counts[i] for i in mine]
        left = [max(0, counts[i] - len(positions.get(f"f{i}", ()))) for i in mine]
        total = sum(left)
        new = [e["record_count"] for e in entries[at : at + min(int(many[number]), total)]]
        assert sum(new) == total
        assert max(new, default=0) - min(new, default=0) <= 1
        for count in new:
            size = sum(sizes[i] * (k / r if r else 1) for i, k, r in zip(mine, left, rows, strict=True))
            assert abs(entries[at]["file_size_in_bytes"] - size * count / total) <= 1
            assert (entries[at]["sequence_number"], entries[at]["partition_spec_id"]) == (9, 0)
            for field_id, array in files.stats.items():
                stats: Any = made.stats[field_id][at].as_py()
                found = {k: v for k, v in stats.items() if v is not None}
                old: list[Any] = [array[i].as_py() for i in mine]
                assert found == _expected(rows, left, old, count, total, field_id == 7), (number, field_id)
            at += 1
    assert at == len(entries)
    assert len({e["location"] for e in entries}) == len(entries)


def test_groups_without_rows_become_no_file(sandbox: Sandbox) -> None:
    files = _files(sandbox, 2, Random(1)).with_columns(record_count=0)
    made = merged_groups(sandbox.state, _writer(sandbox), files, np.zeros(2, np.int64), {}, np.array([3]), None)
    assert len(made) == 0
