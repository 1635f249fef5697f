"""Plans of real tables: every file with a matching row, and no file that PyIceberg prunes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import iceexplore as ix
from iceexplore.planning import evaluate, make_filter, plan_scan
from tests.planning.oracle_filters import Tree, columns_of, to_pyiceberg

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
    columns = {name: base for name, base in columns_of(state.schema).items() if in_structs(rows.schema, name)}
    able = True
    for tree in questions(rows, columns):
        where = to_pyiceberg(tree, columns)
        planned = set(plan_scan(state, where).files.files.entries["location"].to_pylist())
        hit = evaluate(make_filter(state.metadata, state.schema, where).expression, rows)
        live = pc.and_(hit, pc.invert(rows["_deleted"].combine_chunks()))
        matching = set(rows["_file"].filter(live).to_pylist())
        assert matching <= planned, tree
        theirs = by_pyiceberg(t, where) if able else None
        able = theirs is not None
        assert theirs is None or planned <= theirs, tree


def in_structs(schema: pa.Schema, name: str) -> bool:
    """Whether a column stands in structs alone, and Arrow says of it what it is."""
    first, *rest = name.split(".")
    kind = schema.field(first).type
    for part in rest:
        if not pa.types.is_struct(kind):
            return False
        kind = kind.field(part).type
    return not isinstance(kind, pa.BaseExtensionType)


def questions(rows: pa.Table, columns: dict[str, str]) -> list[Tree]:
    """Comparisons with values of the rows, spread over the columns and the values."""
    out: list[list[Tree]] = []
    for name, base in sorted(columns.items()):
        values: Any = rows.column(name.split(".")[0])
        for part in name.split(".")[1:]:
            values = pc.struct_field(values, part)
        found = [v for v in pc.unique(values).to_pylist() if v is not None and v == v]
        found = sorted(found)[:: max(1, len(found) // 3)]
        mine: list[Tree] = [("is null", name), ("is not null", name)]
        for i, value in enumerate(found):
            mine += [("=<"[i % 2], name, value), (">", name, value), ("in", name, *found[i : i + 2])]
            mine += [("!=", name, value)] if i == 0 else []
            mine += [("like", name, value[:1])] if base == "string" and value else []
        out.append(mine[::-1])
    spread = [tree for several in zip_all(out) for tree in several]
    return spread[:_QUESTIONS]


def zip_all(lists: list[list[Tree]]) -> list[list[Tree]]:
    """The first of each list, then the second of each, ..."""
    return [[x[i] for x in lists if i < len(x)] for i in range(max(map(len, lists), default=0))]


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
