"""Real views: in folders, in SQL catalogs and in REST catalogs; nothing that exists is replaced."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.view.metadata import ViewMetadata as PyIcebergView

import iceexplore as ix
from iceexplore.labs import _create_view, _new_place
from iceexplore.labs._catalog import CatalogRow
from tests.helpers.http_answers import answering
from tests.views.view_documents import EXAMPLE_REPLACED, cleaned, version, view, write_view

COLUMNS = {"day": "date", "trips": ("long", "Number of trips")}
SQL = "SELECT day, count(*) AS trips FROM journeys GROUP BY day"
QUERY: dict[str, Any] = {"sql": SQL, "schema": COLUMNS, "dialect": "spark"}


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqlCatalog]:
    """A SQL catalog with a namespace."""
    made = SqlCatalog("prod", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/warehouse")
    made.create_namespace("db")
    yield made
    made.close()


# Folders --------------------------------------------------------------------------------------------------------------


def test_a_view_in_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "warehouse" / "db" / "daily"
    v = ix.create_view(folder, **QUERY, default_namespace="db", properties={"comment": "Trips by day"})
    assert sorted(os.listdir(folder / "metadata")) == ["v1.gz.metadata.json", "version-hint.text"]
    assert not isinstance(v, ix.ViewSimulation) and v.location == f"file://{folder}" and list(v.problems) == []
    assert (v.sql(), v.dialects, dict(v.properties)) == (SQL, ("spark",), {"comment": "Trips by day"})
    assert v.schema is not None and [(f.name, f.doc) for f in v.schema.fields] == [
        ("day", None), ("trips", "Number of trips")
    ]  # fmt: skip
    assert v.version is not None and v.version.engine == f"iceexplore {ix.__version__}"
    assert PyIcebergView.model_validate(v.metadata.raw).view_uuid == v.uuid and v.check().ok
    assert [str(v2.uuid) for v2 in (ix.open_view(folder), ix.open_view(f"file://{folder}"))] == [v.uuid, v.uuid]
    plain = ix.create_view(f"file://{tmp_path}/p", **QUERY, properties={"write.metadata.compression-codec": "none"})
    assert json.loads((tmp_path / "p/metadata/v1.metadata.json").read_text()) == plain.metadata.raw


def test_nothing_is_replaced(tmp_path: Path) -> None:
    ix.create_view(tmp_path / "v", **QUERY)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    for place, says in (
        (tmp_path / "v", r"is not empty .*ix\.open_view\(\.\.\.\) opens a view, and \.simulate\(\) tries changes"),
        (tmp_path, "is not empty"),
        (tmp_path / "v/metadata/v1.gz.metadata.json", "is a file: a new view needs a folder"),
        ("s3://bucket/v", "not a local folder"),
        (5, "give a folder"),
        ("\ud800", "lone surrogate"),
    ):
        with pytest.raises((ix.OptionError, ix.UnsupportedError), match=says):
            ix.create_view(place, **QUERY)  # type: ignore[arg-type]
    with pytest.raises(ix.OptionError, match="location= needs catalog="):
        ix.create_view(tmp_path / "w", **QUERY, location="/x")
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


def test_a_failed_creation_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: Any, **named: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for module, name in ((_new_place, "write_new"), (_create_view, "replace_file")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, full)
            with pytest.raises(ix.OptionError, match=r"cannot create a view: .*No space left"):
                ix.create_view(tmp_path / "a" / "v", **QUERY)
        assert os.listdir(tmp_path) == []
    for changes in ({"schema": {"day": "date"}}, {"sql": ""}, {"properties": {"version.history.num-entries": "0"}}):
        with pytest.raises((ix.OptionError, ix.RuleError)):
            ix.create_view(tmp_path / "a" / "v", **{**QUERY, **changes})
        assert os.listdir(tmp_path) == []


def test_a_view_with_its_history(tmp_path: Path) -> None:
    source = ix.open_view(write_view(tmp_path / "v", view([version(1), version(2, "SELECT day, trips FROM u")])))
    made = ix.create_view(tmp_path / "new", source, properties={"k": "v"})
    assert [v.version_id for v in made.versions] == [1, 2] and made.uuid != source.uuid
    assert dict(made.properties) == {"comment": "Trips by day", "k": "v"} and made.version == source.version
    made = ix.create_view(tmp_path / "earlier", source.at(1))
    assert [e.version_id for e in made.metadata.version_log] == [1, 2, 1] and made.sql() == source.at(1).sql()
    draft = ix.open_view(write_view(tmp_path / "draft", cleaned(EXAMPLE_REPLACED)))
    made = ix.create_view(tmp_path / "adopted", draft)
    assert not made.metadata.early_draft and made.sql() == draft.sql() and list(made.problems) == []
    with pytest.raises(ix.OptionError, match="give only properties="):
        ix.create_view(tmp_path / "w", source, dialect="spark")


# SQL catalogs ---------------------------------------------------------------------------------------------------------


def test_a_view_in_a_sql_catalog(catalog: SqlCatalog, tmp_path: Path) -> None:
    v = ix.create_view("db.daily", **QUERY, catalog=catalog)
    assert v.name == "db.daily" and v.location.endswith("/warehouse/db/daily") and list(v.problems) == []
    assert v.version is not None and v.version.namespace_of() == ("db",) and v.version.catalog_of() is None
    with sqlite3.connect(tmp_path / "c.db") as connection:
        rows = connection.execute("SELECT * FROM iceberg_tables").fetchall()
    (row,) = rows
    assert row == ("prod", "db", "daily", v.metadata_location, None, "VIEW")
    assert v.metadata_location.startswith(f"file://{tmp_path}/warehouse/db/daily/metadata/00000-")
    assert catalog.list_tables("db") == [], "PyIceberg knows that it is no table"
    opened = ix.open_catalog(catalog)
    assert list(opened.views["view"]) == ["db.daily"]
    second = ix.create_view("db.second", **QUERY, catalog=opened, default_catalog="c", default_namespace=("a", "b"))
    assert second.version is not None and (second.version.catalog_of(), second.version.namespace_of()) == (
        "c", ("a", "b")
    )  # fmt: skip
    placed = ix.create_view("db.placed", **QUERY, catalog=catalog, location=str(tmp_path / "elsewhere"))
    assert placed.location == f"file://{tmp_path}/elsewhere"
    copied = ix.create_view("db.copied", v.simulate(), catalog=catalog)
    assert copied.sql() == SQL and copied.uuid != v.uuid


def test_names_that_a_catalog_has(catalog: SqlCatalog, tmp_path: Path) -> None:
    ix.create("db.trips", {"id": "long"}, catalog=catalog)
    ix.create_view("db.daily", **QUERY, catalog=catalog)
    before = sorted(str(p) for p in tmp_path.rglob("*"))
    for name, says in (
        ("db.daily", r"already has a table or view db\.daily; ix\.open_view"),
        ("db.trips", r"already has a table or view db\.trips"),
        ("none.daily", r"no namespace none; create it with catalog\.create_namespace\('none'\)"),
        ("daily", r"'daily' is not a view name: give namespace and name, such as 'db\.view'"),
    ):
        with pytest.raises((ix.CatalogError, ix.OptionError), match=says):
            ix.create_view(name, **QUERY, catalog=catalog)
    with pytest.raises(ix.CatalogError, match=r"already has a table or view db\.daily"):
        ix.create("db.daily", {"id": "long"}, catalog=catalog)
    with pytest.raises(ix.CatalogError, match="is a view"):
        ix.lab("db.daily", catalog=catalog)
    assert sorted(str(p) for p in tmp_path.rglob("*")) == before


def test_a_name_that_another_writer_takes_first(
    catalog: SqlCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = CatalogRow.add

    def late(row: CatalogRow, location: str) -> None:
        real(CatalogRow(catalog, "db.daily"), "file:///other")
        real(row, location)

    monkeypatch.setattr(CatalogRow, "add", late)
    with pytest.raises(ix.CatalogError, match=r"already has a table or view db\.daily"):
        ix.create_view("db.daily", **QUERY, catalog=catalog)
    assert not (tmp_path / "warehouse").exists(), "no orphan file"


def test_a_catalog_of_the_old_schema(catalog: SqlCatalog) -> None:
    catalog._schema_version = "v0"
    with pytest.raises(ix.UnsupportedError, match="schema_version='v1'"):
        ix.create_view("db.daily", **QUERY, catalog=catalog)
    with pytest.raises(ix.UnsupportedError, match="check-and-put"):
        ix.create_view("db.daily", **QUERY, catalog=object())


# REST catalogs --------------------------------------------------------------------------------------------------------


def test_a_view_in_a_rest_catalog() -> None:
    sent: list[dict[str, Any]] = []
    served: dict[str, Any] = {}

    def answer(path: str, body: bytes = b"") -> tuple[int, str, bytes]:
        code, found = 200, served.get(path, {})
        if path == "/v1/config":
            found = {"defaults": {}, "overrides": {}, "endpoints": [
                "POST /v1/{prefix}/namespaces/{namespace}/views", "GET /v1/{prefix}/namespaces/{namespace}/views",
                "GET /v1/{prefix}/namespaces/{namespace}/views/{view}"]}  # fmt: skip
        elif body:
            request = json.loads(body)
            sent.append(request)
            where = f"{path}/{request['name']}"
            if where in served or path != "/v1/namespaces/db/views":
                kind = "AlreadyExistsException" if where in served else "NoSuchNamespaceException"
                code, found = (409 if where in served else 404), {"error": {"message": "x", "type": kind, "code": 4}}
            else:
                made = {**view(), "versions": [{**request["view-version"], "schema-id": 0}],
                        "schemas": [{**request["schema"], "schema-id": 0}], "properties": request["properties"],
                        "version-log": [{"timestamp-ms": 1, "version-id": 1}], "current-version-id": 1}  # fmt: skip
                served[where] = found = {"metadata-location": "", "metadata": made, "config": {}}
        elif path not in served:
            code, found = 404, {"error": {"message": "none", "type": "NoSuchViewException", "code": 404}}
        return code, "application/json", json.dumps(found).encode()

    with answering(answer, answer) as url:
        catalog = ix.storage.load_named("served", {"type": "rest", "uri": url})
        v = ix.create_view("db.daily", **QUERY, catalog=catalog, properties={"comment": "x"})
        assert v.sql() == SQL and dict(v.properties) == {"comment": "x"} and v.name == "db.daily"
        assert sent[0]["view-version"]["representations"] == [{"type": "sql", "sql": SQL, "dialect": "spark"}]
        assert sent[0]["view-version"]["default-namespace"] == ["db"]
        with pytest.raises(ix.CatalogError, match=r"already has a table or view db\.daily; ix\.open_view"):
            ix.create_view("db.daily", **QUERY, catalog=catalog)
        with pytest.raises(ix.CatalogError, match=r"has no namespace for none\.daily"):
            ix.create_view("none.daily", **QUERY, catalog=catalog)
        with pytest.raises(ix.UnsupportedError, match="not a history"):
            ix.create_view("db.copied", v, catalog=catalog)
