"""Plans of real tables: every file with a matching row, and no file that PyIceberg prunes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

import iceexplore as ix
from iceexplore.planning import evaluate, make_filter, plan_scan
from tests.planning.oracle_filters import columns_of, to_pyiceberg
from tests.planning.oracle_questions import askable, questions

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


@pytest.mark.parametrize("name", sorted(n for n in _tables() if n not in _NOT))
def test_files_of_real_tables(corpus: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    t = ix.open(corpus / name / _tables()[name]["metadata"])
    try:
        rows = t.to_arrow(columns=["*", "_file", "_deleted"], limit=_MOST + 1)
    except ix.IceexploreError:
        pytest.skip("its rows cannot be read")
    if not 0 < rows.num_rows <= _MOST:
        pytest.skip("no rows, or too many")
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
