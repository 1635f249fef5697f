"""`v.inspect`: the metadata tables of a view, in pandas and Arrow."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import iceexplore as ix
from tests.views.view_documents import HOUR, START, version, view, write_view

TABLES = ["versions", "version_log", "representations", "schemas", "properties", "metadata_log"]


@pytest.fixture
def v(tmp_path: Path) -> ix.View:
    """A view of two versions, the second in two dialects, rolled back to the first."""
    made = view([version(1), version(2, {"spark": "SELECT 2", "trino": "SELECT 3"})], 1, 2, 1)
    return ix.open_view(write_view(tmp_path / "daily", made))


def test_the_tables(v: ix.View) -> None:
    assert list(v.inspect) == TABLES
    assert len(v.inspect) == 6
    assert set(TABLES) <= set(dir(v.inspect))
    for name in TABLES:
        table = v.inspect[name]
        frame, arrow = table(), getattr(v.inspect, name).arrow()
        assert list(frame.columns) == arrow.column_names
        assert arrow.schema == table.schema and len(frame) == arrow.num_rows
        assert all(isinstance(kind, pd.ArrowDtype) for kind in frame.dtypes)
        assert pa.table(table) == arrow, "the Arrow stream"
        assert all(table.columns.values()), "every column is described"
        assert name in repr(v.inspect) and name in v.inspect._repr_html_()
        assert all(column in repr(table) and column in table._repr_html_() for column in arrow.column_names)
    for unknown in ("files", "snapshots"):
        with pytest.raises(ix.OptionError, match="choose from versions, version_log"):
            v.inspect[unknown]
        with pytest.raises(AttributeError, match="choose from versions, version_log"):
            getattr(v.inspect, unknown)


def test_the_rows(v: ix.View) -> None:
    (first, second) = v.inspect.versions.arrow().to_pylist()
    assert (first["version_id"], first["is_current"], first["dialects"]) == (1, True, ["spark"])
    assert (second["version_id"], second["is_current"], second["dialects"]) == (2, False, ["spark", "trino"])
    assert first["created_at"].timestamp() * 1000 == START + HOUR
    assert (first["default_catalog"], first["default_namespace"], first["schema_id"]) == ("prod", ["db"], 1)
    assert (first["engine"], first["operation"]) == ("Spark 4.1.0", None)
    entries = v.inspect.version_log.arrow().to_pylist()
    assert [(e["version_id"], e["is_rollback"], e["is_expired"]) for e in entries] == [
        (1, False, False), (2, False, False), (1, True, False)
    ]  # fmt: skip
    stored = v.inspect.representations.arrow().to_pylist()
    assert [(r["version_id"], r["dialect"], r["sql"]) for r in stored] == [
        (1, "spark", "SELECT day, trips FROM t"), (2, "spark", "SELECT 2"), (2, "trino", "SELECT 3")
    ]  # fmt: skip
    fields = v.inspect.schemas.arrow().to_pylist()
    assert [(f["field_id"], f["name"], f["type"], f["doc"]) for f in fields] == [
        (1, "day", "date", None), (2, "trips", "long", "Number of trips")
    ]  # fmt: skip
    assert v.inspect.properties.arrow().to_pylist() == [{"key": "comment", "value": "Trips by day"}]


def test_metadata_files(v: ix.View) -> None:
    folder = Path(v.metadata_location).parent.parent
    write_view(Path(v.state.storage.folder), view([version(1), version(2), version(3)]), "v2.metadata.json")
    rows = v.inspect.metadata_log.arrow().to_pylist()
    assert [(r["number"], r["is_open"]) for r in rows] == [(1, True), (2, False)]
    assert all(r["size_in_bytes"] > 100 and r["modified_at"] is not None for r in rows)
    assert [r["file"] for r in rows] == [f"{folder}/metadata/v{i}.metadata.json" for i in (1, 2)]


def test_time_travel_changes_which_schema_is_current_only(v: ix.View) -> None:
    then = v.at(2)
    assert then.inspect.versions.arrow() == v.inspect.versions.arrow()
    assert then.inspect.schemas()["is_current"].tolist() == [True, True]
