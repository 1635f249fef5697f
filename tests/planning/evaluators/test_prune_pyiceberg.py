"""Against PyIceberg's plans of saved tables: of comparisons with their own bounds no file is kept that it prunes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyiceberg import expressions as ex
from pyiceberg.conversions import from_bytes
from pyiceberg.table import StaticTable

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch
from iceexplore.planning import Filter, make_filter, may_hold
from tests.planning.evaluators.test_prune_tables import made_table

COMPARISONS = (ex.LessThan, ex.LessThanOrEqual, ex.GreaterThan, ex.GreaterThanOrEqual, ex.EqualTo)
#: As many files' bounds are taken for literals, and as many literals of a column.
FILES, LITERALS = 3, 2


def ours(state: TableState, wanted: Filter) -> set[str]:
    """The data files that are kept, both levels."""
    root, kept = state.root(), set()
    assert root is not None
    for leaf in state.leaves(parts=frozenset({"entries", "partition", "stats"})):
        if leaf.root_row is not None and not may_hold(state, root, np.array([leaf.root_row]), wanted)[0].as_py():
            continue
        batch = EntryBatch.of(leaf, wanted.field_ids)
        may, _ = wanted.evaluate(batch, state.metadata)
        kept |= set(build.to_pylist(batch.entries["location"].filter(may)))
    return kept


def questions(schema: Any, files: list[Any]) -> list[Any]:
    out: list[Any] = []
    for column in schema.fields:
        values: dict[Any, None] = {}
        for file in files[:FILES]:
            for bounds in (file.lower_bounds or {}, file.upper_bounds or {}):
                if column.field_id in bounds and column.field_type.is_primitive:
                    values[from_bytes(column.field_type, bounds[column.field_id])] = None
        # PyIceberg turns an infinite literal of a float column into "beyond every float", and loses the rows.
        literals = [v for v in values if not isinstance(v, float) or abs(v) < 1e30]
        out += [kind(column.name, v) for v in literals[:LITERALS] for kind in COMPARISONS]
        out += [ex.IsNull(column.name), ex.NotNull(column.name)]
    return out


@pytest.mark.parametrize(
    ("version", "partition_by", "again"),
    [
        (1, ["kind"], None),
        (2, [], None),
        (2, ["bucket(3, id)", "truncate(1, kind)"], ["kind"]),
        (2, ["day(at)"], ["truncate(5, id)"]),
        (3, ["identity(id)"], None),
    ],
)
def test_nothing_is_kept_that_pyiceberg_prunes(
    tmp_path: Path, version: int, partition_by: list[str], again: list[str] | None
) -> None:
    table = made_table(version, partition_by, again)
    table.save(tmp_path / "t")
    state = ix.open(tmp_path / "t")._state
    library = StaticTable.from_metadata(state.metadata_location)
    tasks = {t.file.file_path: t.file for t in library.scan().plan_files()}
    assert len(tasks) >= 3
    for expression in questions(library.schema(), list(tasks.values())):
        theirs = {t.file.file_path for t in library.scan(row_filter=expression).plan_files()}
        extra = ours(state, make_filter(state.metadata, state.schema, expression)) - theirs
        # Also of times before 1970, where projections have room for what old writers wrote: there the bounds decide.
        assert not extra, (expression, extra)
