"""What Spark's workers do for a changelog, without Spark: shares are read, shuffled by hand, and settled."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import iceexplore as ix
from iceexplore import graph
from iceexplore.on_spark import SparkColumns, _changelog, ship
from iceexplore.reading import ChangelogOptions, Output, change_files
from tests.helpers.tables.rows_table import Lab, play

LAYOUTS: list[tuple[int, dict[str, Any]]] = [(2, {}), (3, {}), (4, {}), (4, {"dialect": "v4-java"})]
PIECES = 3


def counted(table: pa.Table) -> Counter[str]:
    return Counter(repr(list(row.values())) for row in table.to_pylist())


def by_workers(t: ix.Table, end: int, **more: Any) -> Iterator[pa.Table]:
    """A changelog as the workers make it, piece by piece of the shuffle."""
    state = t._state
    options = ChangelogOptions(state, None, None, None, None, more.get("net_changes", False))
    upto = graph.resolve_state(state, end).snapshot
    changes = [c for each in change_files(state, None, upto, options.filter) for c in each]
    rows = SparkColumns([Output(f.name, (f,)) for f in options.fields], (4, 1))
    shares = _changelog._shares(changes)
    assert len(shares) == sum(map(len, changes)) or len(shares) == 256, "each file by itself"
    read = _changelog._reader(ship(state), rows, options.filter.expression)
    given = (pa.record_batch({"files": pa.array([share], pa.binary())}) for share in shares)
    table = pa.Table.from_batches([batch for one in given for batch in read(iter([one]))])
    names = [f.name for f in options.fields]
    piece = [hash(repr([row[name] for name in names])) % PIECES for row in table.to_pylist()]
    for number in range(PIECES):
        mine = table.filter(pa.array([p == number for p in piece], pa.bool_()))
        yield pa.Table.from_batches(_changelog._settler(options)(iter(mine.to_batches())), table.schema)


@pytest.mark.parametrize("seed", range(4))
def test_as_without_spark(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_changelog, "_LEAST_BYTES", 1)
    version, layout = LAYOUTS[seed]
    lab = Lab.start(version, partitioned=bool(seed % 2), **layout)
    play(lab, random.Random(seed).randrange, 6)
    end = lab.commits[-1].snapshot_id
    for more in ({}, {"net_changes": True}):
        expected = counted(lab.table.changes(None, end, rows=True, **more))  # type: ignore[call-overload]
        assert sum((counted(part) for part in by_workers(lab.table, end, **more)), Counter()) == expected
