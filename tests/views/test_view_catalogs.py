"""Views from catalogs: PyIceberg's REST and SQL catalogs, its View objects, and what a catalog does not have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy import text

import iceexplore as ix
from tests.helpers.http_answers import answering
from tests.storage.tables_on_disk import document, make_table
from tests.views.view_documents import UUID, version, view, write_view


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table and a view."""
    made = tmp_path_factory.mktemp("warehouse")
    make_table(made / "db/trips", {"v1.metadata.json": document(f"file://{made}/db/trips")})
    write_view(made / "db/daily", view([version(1), version(2)], location=f"file://{made}/db/daily"))
    return made


@pytest.fixture(scope="module")
def rest(warehouse: Path) -> Iterator[dict[str, str]]:
    """The properties of a REST catalog with the view, one without a file, and one of which the file is gone."""
    location = f"file://{warehouse}/db/daily/metadata/v1.metadata.json"
    stored = json.loads((warehouse / "db/daily/metadata/v1.metadata.json").read_text())
    plan = {"type": "plan", "body": "AAA"}  # PyIceberg refuses representations that it does not know
    odd = view([version(1, representations=[plan, *version(1)["representations"]])], location=stored["location"])
    sent = {"metadata-location": location, "metadata": stored, "config": {}}
    endpoints = ["GET /v1/{prefix}/namespaces", "GET /v1/{prefix}/namespaces/{namespace}/tables",
                 "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
                 "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}",
                 "GET /v1/{prefix}/namespaces/{namespace}/views",
                 "GET /v1/{prefix}/namespaces/{namespace}/views/{view}",
                 "HEAD /v1/{prefix}/namespaces/{namespace}/views/{view}"]  # fmt: skip
    base = "/v1/namespaces/db"
    answers: dict[str, Any] = {
        "/v1/config": {"defaults": {}, "overrides": {}, "endpoints": endpoints},
        "/v1/namespaces": {"namespaces": [["db"]]},
        f"{base}/tables": {"identifiers": [{"namespace": ["db"], "name": "trips"}]},
        f"{base}/tables/trips": {"metadata-location": f"file://{warehouse}/db/trips/metadata/v1.metadata.json",
                                 "metadata": document(f"file://{warehouse}/db/trips"), "config": {}},
        f"{base}/views": {"identifiers": [{"namespace": ["db"], "name": name} for name in ("daily", "odd", "gone")]},
        f"{base}/views/daily": sent,
        f"{base}/views/odd": {"metadata": odd},
        f"{base}/views/gone": {**sent, "metadata-location": f"{location}.metadata.json"},
    }  # fmt: skip

    def answer(path: str) -> tuple[int, str, bytes]:
        found = answers.get(path)
        kind = "NoSuchViewException" if "/views/" in path else "NoSuchTableException"
        body = found or {"error": {"message": "none", "type": kind, "code": 404}}
        return (200 if found else 404), "application/json", json.dumps(body).encode()

    with answering(answer) as url:
        yield {"type": "rest", "uri": url}


def test_a_rest_catalog(rest: dict[str, str], warehouse: Path) -> None:
    for name in ("db.daily", ("db", "daily")):
        v = ix.open_view(name, catalog="served", properties=rest)
        assert (v.name, v.uuid, v.metadata.current_version_id) == ("db.daily", UUID, 2) and not v.problems
        assert any("v1.metadata.json, from the catalog" in note for note in v.state.notes)
    assert list(v.inspect.metadata_log()["is_open"]) == [True]
    assert v.refresh().metadata_location == v.metadata_location
    catalog = ix.open_catalog("served", properties=rest)
    assert list(catalog.views["view"]) == ["db.daily", "db.gone", "db.odd"]
    assert catalog.open_view("db.daily").uuid == UUID == ix.open_view("db.daily", catalog=catalog).uuid


def test_what_pyiceberg_cannot_parse_is_kept(rest: dict[str, str]) -> None:
    v = ix.open_view("db.odd", catalog="served", properties=rest)
    assert [r.type for r in v.versions[0].representations] == ["plan", "sql"]
    assert "Metadata: as sent by the catalog; it named no metadata file." in v.state.notes
    assert [p.code for p in v.problems] == ["view-representation-unknown"]


def test_a_metadata_file_that_is_gone_is_a_problem(rest: dict[str, str]) -> None:
    v = ix.open_view("db.gone", catalog="served", properties=rest)
    assert v.metadata.current_version_id == 2 and [p.code for p in v.problems] == ["file-missing"]
    with pytest.raises(ix.FileMissingError):
        ix.open_view("db.gone", catalog="served", properties=rest, strict=True)


def test_what_a_rest_catalog_does_not_have(rest: dict[str, str]) -> None:
    for name, says in (
        ("db.dialy", "no view db.dialy in catalog served; the nearest: db.daily"),
        ("db.trips", r"db\.trips in catalog served is a table, not a view: ix\.open\(name"),
    ):
        with pytest.raises(ix.CatalogError, match=says):
            ix.open_view(name, catalog="served", properties=rest)
    with pytest.raises(ix.CatalogError, match=r"is a view, not a table: ix\.open_view\(name"):
        ix.open("db.daily", catalog="served", properties=rest)


def test_pyicebergs_view(rest: dict[str, str]) -> None:
    loaded = load_catalog("served", **rest).load_view("db.daily")
    v = ix.open_view(loaded)
    assert (v.name, v.uuid, v.sql()) == ("db.daily", UUID, "SELECT day, trips FROM t") and not v.problems
    assert "Metadata: as sent by the catalog; PyIceberg does not say where its file is." in v.state.notes
    assert v.schema is not None and [f.name for f in v.schema.fields] == ["day", "trips"]
    with pytest.raises(ix.OptionError, match=r"this is a view, not a table: ix\.open_view\(\.\.\.\)"):
        ix.open(loaded)
    table = load_catalog("served", **rest).load_table("db.trips")
    with pytest.raises(ix.OptionError, match=r"this is a table, not a view: ix\.open\(\.\.\.\)"):
        ix.open_view(table)


def test_an_sql_catalog_that_another_engine_put_a_view_into(warehouse: Path, tmp_path: Path) -> None:
    catalog = SqlCatalog("jdbc", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{warehouse}")
    catalog.create_namespace("db")
    catalog.register_table("db.trips", f"file://{warehouse}/db/trips/metadata/v1.metadata.json")
    place = f"file://{warehouse}/db/daily/metadata/v1.metadata.json"
    with catalog.engine.begin() as connection:
        names = "catalog_name, table_namespace, table_name, metadata_location, iceberg_type"
        connection.execute(
            text(f"INSERT INTO iceberg_tables ({names}) VALUES ('jdbc', 'db', 'daily', '{place}', 'VIEW')")
        )
    v = ix.open_view("db.daily", catalog=catalog)
    assert (v.name, v.metadata.current_version_id) == ("db.daily", 2) and not v.problems
    assert ix.open_catalog(catalog).open_view("db.daily").uuid == UUID
    for name, says in (
        ("db.dayly", "no view db.dayly in catalog jdbc; the nearest: db.daily"),
        ("db.trips", "is a table, not a view"),
        ("db", "db is a namespace of catalog jdbc, not a view; it has 1 table: db.trips and 1 view: db.daily"),
        ("none.daily", "no view none.daily in catalog jdbc"),
    ):
        with pytest.raises(ix.CatalogError, match=says):
            ix.open_view(name, catalog=catalog)
    with pytest.raises(
        ix.OptionError, match=r"this is a catalog \(jdbc\), not a view; .*ix\.open_view\(name, catalog="
    ):
        ix.open_view(catalog)
    with pytest.raises(ix.OptionError, match=r"catalog\.open_view\('db\.daily'\) opens one"):
        ix.open_view(ix.open_catalog(catalog))


def test_a_catalog_without_views(warehouse: Path) -> None:
    class NoViews(InMemoryCatalog):
        def list_views(self, namespace: Any) -> list[Any]:
            raise NotImplementedError

        _schema_version = "v0"

    catalog = NoViews("plain", warehouse=f"file://{warehouse}")
    catalog._schema_version = "v0"
    with pytest.raises(ix.CatalogError, match=r"NoViews cannot load views; open db\.daily by its folder"):
        ix.open_view("db.daily", catalog=catalog)
    with pytest.raises(ix.OptionError, match="a view's name"):
        ix.open_view(5, catalog=catalog)
    with pytest.raises(ix.OptionError, match="catalog= takes a name or a PyIceberg catalog"):
        ix.open_view("db.daily", catalog=object())
