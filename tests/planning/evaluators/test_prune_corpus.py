"""Plans of real tables: every file with a matching row, and no file that PyIceberg prunes."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

import iceexplore as ix
from iceexplore.planning import evaluate, make_filter, plan_scan
from tests.helpers.oracle_filters import columns_of, to_pyiceberg
from tests.helpers.oracle_questions import askable, questions
from tests.helpers.sampling import one_of

pytestmark = pytest.mark.corpus

#: Of larger tables the rows are not read.
_MOST = 20_000
#: Questions of each table; those of many columns are taken from all of them.
_QUESTIONS = 8
#: Its data is elsewhere; its bounds were made anonymous, and are no bounds.
_NOT = ("duckdb/column_mapping", "duckdb/moved_positional_delete_path")


def _tables() -> dict[str, dict[str, Any]]:
    folder = os.environ.get("ICEEXPLORE_CORPUS")
    return json.loads((Path(folder) / "expected.json").read_text()) if folder else {}


def _asked() -> list[str]:
    """The tables whose newest rows are few. Where nobody says how many there are, those whose rows can be read;
    what we do with the others: ``test_reading_corpus.py``."""
    out = []
    for name, expected in sorted(_tables().items()):
        if name in _NOT:
            continue
        t = ix.open(Path(os.environ["ICEEXPLORE_CORPUS"]) / name / expected["metadata"])
        rows = None if t.state.snapshot is None else expected["rows_by_snapshot"].get(str(t.state.snapshot.snapshot_id))
        if rows is None:
            with contextlib.suppress(ix.IceexploreError):
                rows = t.to_arrow(limit=_MOST + 1).num_rows
        if 0 < (rows or 0) <= _MOST:
            out.append(name)
    return out


@pytest.mark.parametrize("name", one_of(3, _asked()))
def test_files_of_real_tables(corpus: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    t = ix.open(corpus / name / _tables()[name]["metadata"])
    rows = t.to_arrow(columns=["*", "_file", "_deleted"])
    state = t._state
    read_moved(state.storage.resolve, monkeypatch)
    columns = askable(rows.schema, columns_of(state.schema))
    able = True
    for tree in questions(rows, columns, _QUESTIONS):
        where = to_pyiceberg(tree, columns)
        planned = set(plan_scan(state, where).files.files.entries["location"].to_pylist())
        hit = evaluate(make_filter(state.metadata, state.schema, where).expression, rows)
        live = pc.and_(hit, pc.invert(rows["_deleted"].combine_chunks()))
        matching = set(rows["_file"].filter(live).to_pylist())
        assert matching <= planned, tree
        theirs = by_pyiceberg(t, where) if able else None
        able = theirs is not None
        assert theirs is None or planned <= theirs, tree


def read_moved(resolve: Any, patch: pytest.MonkeyPatch) -> None:
    """PyIceberg finds files where the table was moved to, and nothing elsewhere."""
    from pyiceberg.io.pyarrow import PyArrowFileIO

    plain = PyArrowFileIO.new_input
    patch.setattr(PyArrowFileIO, "new_input", lambda self, location: plain(self, str(resolve(location))))


def by_pyiceberg(t: ix.Table, where: Any) -> set[str] | None:
    """The files that PyIceberg plans; None where it does not plan (equality deletes, newer formats, damage)."""
    from pyiceberg.table import StaticTable

    try:
        tasks = StaticTable.from_metadata(t._state.metadata_location).scan(row_filter=where).plan_files()
        return {task.file.file_path for task in tasks}
    except Exception:
        return None
