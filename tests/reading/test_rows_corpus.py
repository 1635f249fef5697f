"""Real tables: no row is missed, none is made up, and each snapshot's changes are the difference of its states."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import iceexplore as ix
from iceexplore.arrow import compute as pc
from iceexplore.reading import to_arrow
from tests.helpers.sampling import one_of

pytestmark = pytest.mark.corpus

#: Tables of more rows are left out: every row here becomes a Python object.
_MOST = 10_000
_SNAPSHOTS = 8


def _tables() -> dict[str, dict[str, Any]]:
    """Tables of which the rows of every snapshot are known, and are few."""
    folder = os.environ.get("ICEEXPLORE_CORPUS")
    every = json.loads((Path(folder) / "expected.json").read_text()) if folder else {}
    return {
        name: facts
        for name, facts in every.items()
        if name != "duckdb/column_mapping"  # its data is beside the table's folder
        and facts["rows_by_snapshot"]
        and all(n is not None and n <= _MOST for n in facts["rows_by_snapshot"].values())
    }


TABLES = _tables()


def rows(table: pa.Table) -> Counter[str]:
    return Counter(map(repr, zip(*(c.to_pylist() for c in table.columns), strict=True)))


@pytest.mark.parametrize("name", one_of(3, sorted(TABLES)))
def test_every_live_row_has_a_place_and_changes_add_up(corpus: Path, name: str) -> None:
    t = ix.open(corpus / name / TABLES[name]["metadata"])
    if t.snapshot is not None:
        expected = TABLES[name]["rows_by_snapshot"].get(str(t.snapshot.snapshot_id))
        for history in (False, True):
            found = t.rows(None, history=history, limit=None)
            if expected is not None and not found.unread:
                assert len(found.live) == expected, (name, history)
            keys = [(p.file, p.position) for p in found]
            assert len(keys) == len(set(keys))
            assert all(p.text and p.events for p in found)
            assert found.to_arrow().num_rows == len(found)
    at = t.snapshot
    for _ in range(_SNAPSHOTS):
        parent = None if at is None or at.parent_snapshot_id is None else t.metadata.snapshot(at.parent_snapshot_id)
        if at is None or (parent is None and at.parent_snapshot_id is not None):
            break
        try:
            after = rows(to_arrow(t.state.showing(at, t.schema, ref=None, travel=None), None, None))
            before = Counter[str]()
            if parent is not None:
                before = rows(to_arrow(t.state.showing(parent, t.schema, ref=None, travel=None), None, None))
        except ix.IceexploreError:
            break  # a state that cannot be read has no difference to the next one
        found_changes = t.changes(at.snapshot_id, rows=True)
        columns = range(found_changes.num_columns - 3)
        come, gone = (
            rows(found_changes.filter(pc.equal(found_changes["_change_type"], kind)).select(columns))
            for kind in ("INSERT", "DELETE")
        )
        if at.operation == "replace":  # by what it says it changed nothing, though some do
            assert not come and not gone
        else:
            assert (come, gone) == (after - before, before - after), (name, at.snapshot_id, at.operation)
        at = parent
