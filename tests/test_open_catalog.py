"""`ix.open_catalog`: namespaces, tables and views of catalogs and folders, lazily and within a time limit."""

from __future__ import annotations

import gzip
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog as PyIcebergCatalog
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy import text

import iceexplore as ix
from tests.storage.tables_on_disk import document, make_table

EVIL = "e\x1b[31mvil\u202e<b>"
VIEW = {"view-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "format-version": 1, "location": "/v", "versions": []}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse of three tables, one of them compressed, two views, and a folder without tables."""
    made = tmp_path_factory.mktemp("warehouse")
    for name in ("db/trips", "db/deep/stops"):
        make_table(made / name, {"v1.metadata.json": document(str(made / name))})
    make_table(made / "top", {"v1.gz.metadata.json": gzip.compress(json.dumps(document(str(made / "top"))).encode())})
    make_table(made / "db/daily", {"v1.metadata.json": VIEW})
    make_table(made / "views/weekly", {"00000-x.gz.metadata.json": gzip.compress(json.dumps(VIEW).encode())})
    (made / "notes").mkdir()
    (made / "notes" / "readme.txt").write_text("nothing")
    return made


@pytest.fixture(scope="module", params=["sql", "memory"])
def catalog(request: pytest.FixtureRequest, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> SqlCatalog:
    """The same tables in a catalog, with a nested and an empty namespace."""
    warehouse = f"file://{folder}"
    if request.param == "sql":
        made = SqlCatalog("prod", uri=f"sqlite:///{tmp_path_factory.mktemp('c')}/c.db", warehouse=warehouse)
    else:
        made = InMemoryCatalog("prod", warehouse=warehouse)
    for namespace in ("db", "db.deep", "empty"):
        made.create_namespace(tuple(namespace.split(".")))
    for name in ("db.trips", "db.deep.stops"):
        place = folder / name.replace(".", "/")
        made.register_table(tuple(name.split(".")), f"file://{place}/metadata/v1.metadata.json")
    return made


class Served:
    """A catalog as a REST server's: it has views, and answers of any kind."""

    name = "served"

    def __init__(self, tables: dict[str, list[str]], views: dict[str, list[str]] | None = None) -> None:
        self.contents = tables
        self.views = views or {}
        self.asked: list[tuple[str, ...]] = []

    def list_namespaces(self, namespace: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
        self.asked.append(namespace)
        return [] if namespace else [(name,) for name in self.contents]

    def list_tables(self, namespace: tuple[str, ...]) -> list[tuple[str, ...]]:
        return [(*namespace, name) for name in self.contents[namespace[0]]]

    def list_views(self, namespace: tuple[str, ...]) -> list[tuple[str, ...]]:
        return [(*namespace, name) for name in self.views.get(namespace[0], [])]

    def load_table(self, name: Any) -> Any:
        raise NotImplementedError(name)


def test_a_catalog_is_listed_and_opened(catalog: SqlCatalog) -> None:
    found = ix.open_catalog(catalog)
    assert found["db.trips"].name == "db.trips", "opening lists nothing"
    assert not found.listing.namespaces
    assert found.namespaces == ("db", "db.deep", "empty")
    assert found.tables.to_dict("list") == {
        "table": ["db.deep.stops", "db.trips"], "namespace": ["db.deep", "db"], "name": ["stops", "trips"]
    }  # fmt: skip
    assert found.complete
    assert found[("db", "deep", "stops")].location.endswith("/db/deep/stops")
    assert repr(found).splitlines()[:6] == [
        "Catalog prod: 3 namespaces, 2 tables", "db", "└─ trips", "db.deep", "└─ stops", "empty",
    ]  # fmt: skip
    assert {"db.trips", "db.deep.stops"} <= set(found._ipython_key_completions_())
    assert ix.open("db.trips", catalog=found).name == "db.trips"
    assert ix.check("db.trips", catalog=found).opened
    assert "is a namespace" in ix.check("db", catalog=ix.open_catalog(catalog)).findings[0].text
    report = found.check(progress=False)
    assert [(one.table, one.error) for one in report] == [("db.deep.stops", None), ("db.trips", None)]
    assert ix.check_catalog(found, progress=False).reports.keys() == report.reports.keys()
    with pytest.raises(TypeError, match=r"\.tables"):
        list(found)


def test_a_folder_is_listed_and_opened(folder: Path) -> None:
    found = ix.open_catalog(folder)
    assert found.name == str(folder)
    assert list(found.tables["table"]) == ["db/deep/stops", "db/trips", "top"]
    assert list(found.tables["location"]) == [f"{folder}/{name}" for name in found.tables["table"]]
    assert list(found.views["view"]) == ["db/daily", "views/weekly"]
    assert found.namespaces == ("db", "db/deep", "views")
    assert "├─ trips\n└─ daily  (view)" in repr(found)
    assert found["db/trips"].location == f"{folder}/db/trips"
    assert found.open(("top",)).name == "top"
    assert ix.open_catalog(folder / "top").tables["table"].tolist() == ["top"]
    assert [one.table for one in found.check(progress=False)] == ["db/deep/stops", "db/trips", "top"], "no views"
    with pytest.raises(ix.UnsupportedError, match="of a view"):
        found["db/daily"]
    with pytest.raises(ix.MetadataNotFoundError, match="trips"):
        found["db/trip"]


def test_views_of_catalogs(folder: Path, tmp_path: Path) -> None:
    found = ix.open_catalog(Served({"db": ["t"]}, {"db": ["v", "w"]}))
    assert list(found.views["view"]) == ["db.v", "db.w"]
    assert "2 views" in repr(found)
    # Java's and Rust's JDBC catalogs put views into the table that PyIceberg's SQL catalog reads.
    made = SqlCatalog("jdbc", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{folder}")
    made.create_namespace("db")
    made.register_table("db.trips", f"file://{folder}/db/trips/metadata/v1.metadata.json")
    with made.engine.begin() as connection:
        names = "catalog_name, table_namespace, table_name, metadata_location, iceberg_type"
        connection.execute(text(f"INSERT INTO iceberg_tables ({names}) VALUES ('jdbc', 'db', 'v', '/v', 'VIEW')"))
    listed = ix.open_catalog(made)
    assert (list(listed.tables["table"]), list(listed.views["view"])) == (["db.trips"], ["db.v"])
    with pytest.raises(ix.CatalogError, match=r"db\.v in catalog jdbc is a view"):
        listed["db.v"]


def test_what_cannot_be_listed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    served = Served({"a": ["t"], "b": ["u"]})
    tables = served.list_tables

    def refused(namespace: tuple[str, ...]) -> list[tuple[str, ...]]:
        if namespace == ("b",):
            raise PermissionError("403 \x1b[31m")
        return tables(namespace)

    monkeypatch.setattr(served, "list_tables", refused)
    monkeypatch.setattr(served, "list_views", lambda namespace: 1 / 0)
    found = ix.open_catalog(served)
    assert list(found.tables["table"]) == ["a.t"]
    assert found.failed["b"].startswith("PermissionError: 403")
    assert "ℹ Namespace b could not be listed: PermissionError: 403" in repr(found)
    assert "ℹ Views could not be listed: ZeroDivisionError" in repr(found)
    assert "\x1b" not in repr(found) + found._repr_html_()

    def down(namespace: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
        raise ConnectionError("refused")

    monkeypatch.setattr(served, "list_namespaces", down)
    found = ix.open_catalog(served)
    assert "It could not be listed: catalog served cannot list its namespaces" in repr(found)
    with pytest.raises(ix.CatalogError, match="refused"):
        found.tables
    monkeypatch.undo()
    assert list(found.tables["table"]) == ["a.t", "b.u"], "an error is not the end"


def test_listing_ends_in_time_and_goes_on() -> None:
    release = threading.Event()

    class Slow(Served):
        def list_tables(self, namespace: tuple[str, ...]) -> list[tuple[str, ...]]:
            if namespace == ("b",):
                release.wait(60)
            return super().list_tables(namespace)

    served = Slow({"a": ["t"], "b": ["u"], "c": ["v"]})
    found = ix.open_catalog(served, time_limit=0.7)
    begun = time.monotonic()
    assert list(found.tables["table"]) == ["a.t"]
    assert not found.complete
    assert "Not everything is listed" in repr(found)
    assert time.monotonic() - begun < 30
    report = ix.check_catalog(served, listing_limit=0.7, progress=False)
    assert ([one.table for one in report], report.complete, report.exit_code) == (["a.t"], False, 2)
    asked = served.asked.count(("b",))
    release.set()
    assert found.list_all() is found
    assert "Not everything" not in repr(found)
    assert list(found.tables["table"]) == ["a.t", "b.u", "c.v"]
    assert served.asked.count(("b",)) == asked, "nothing is listed twice"


def test_catalogs_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless(Served):
        def list_namespaces(self, namespace: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
            return [(*namespace[-1:], "a", "b"), namespace, ()]

        def list_tables(self, namespace: tuple[str, ...]) -> list[tuple[str, ...]]:
            return []

    assert ix.open_catalog(Endless({})).complete
    monkeypatch.setattr("iceexplore.storage._catalog_contents._MOST_NAMESPACES", 50)
    deep = Endless({})
    deep.list_namespaces = lambda namespace=(): [(*namespace, "n")]  # type: ignore[method-assign]
    found = ix.open_catalog(deep)
    assert (len(found.namespaces), found.complete) == (50, False)


def test_hostile_names(tmp_path: Path) -> None:
    served = Served({EVIL: [EVIL, "$x$", ""], "many": [f"t{i:04}" for i in range(300)]})
    found = ix.open_catalog(served)
    text, page = repr(found), found._repr_html_()
    assert "… 275 more" in text
    for shown in (text, page, repr(found.tables)):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
    assert "<b>" not in page
    assert "$x" not in page
    assert "script" not in page
    make_table(tmp_path / EVIL, {"v1.metadata.json": document(str(tmp_path / EVIL))})
    below = ix.open_catalog(tmp_path)
    assert list(below.tables["table"]) == [EVIL], "the value itself is unchanged"
    assert not {"\x1b", "\u202e"} & {*repr(below), *below._repr_html_()}
    assert below[EVIL].name == EVIL


@pytest.fixture
def configured(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a catalog in PyIceberg's configuration."""
    from pyiceberg import catalog

    uri = f"sqlite:///{tmp_path}/c.db"
    made = SqlCatalog("prod", uri=uri, warehouse=f"file://{folder}")
    made.create_namespace("db")
    made.register_table("db.trips", f"file://{folder}/db/trips/metadata/v1.metadata.json")
    monkeypatch.setattr(catalog._ENV_CONFIG, "config", {"catalog": {"prod": {"type": "sql", "uri": uri}}})
    monkeypatch.chdir(tmp_path)
    return "prod"


def test_opening_something_that_holds_tables_says_so(catalog: SqlCatalog, folder: Path, configured: str) -> None:
    for source in ("db", ("db",), "db.deep"):
        with pytest.raises(ix.CatalogError, match=r"is a namespace of catalog prod, not a table; it has \d table") as e:
            ix.open(source, catalog=catalog)
        assert "db.deep.stops" in str(e.value)
        assert "ix.open_catalog(catalog)" in str(e.value)
    with pytest.raises(ix.CatalogError, match="empty is a namespace of catalog prod, not a table; it has no tables"):
        ix.open("empty", catalog=catalog)
    with pytest.raises(
        ix.OptionError, match=r"catalog \(prod\), not a table; it has 2 tables: db.deep.stops, db.trips"
    ):
        ix.open(catalog)
    shown: Any
    for shown in (catalog, ix.open_catalog(catalog)):
        with pytest.raises(ix.OptionError, match=r"takes a Table: this is a catalog \(prod\).*it has 2 tables"):
            ix.widgets.explore(shown)
    with pytest.raises(ix.OptionError, match=r"this is a catalog, not a table(.|\n)*└─ trips"):
        ix.open(ix.open_catalog(catalog))
    with pytest.raises(ix.MetadataNotFoundError) as named:
        ix.open(configured)
    assert "prod is a catalog, not a table; it has 1 table: db.trips. ix.open(name, catalog='prod')" in str(named.value)
    with pytest.raises(ix.MetadataNotFoundError, match=r"nowhere does not exist"):
        ix.open("nowhere")
    with pytest.raises(ix.MetadataNotFoundError) as below:
        ix.open(folder)
    assert "a warehouse with 3 tables: top, db/trips, db/deep/stops and 2 views: " in str(below.value)
    assert f"Open one of them, such as top; ix.open_catalog({str(folder)!r}) shows all of them" in str(below.value)
    with pytest.raises(ix.MetadataNotFoundError, match="a warehouse with 1 view: weekly"):
        ix.open(folder / "views")
    assert ix.check(folder).findings[0].advice.endswith(f"ix.check_catalog('{folder}').")


def test_a_catalog_by_name(configured: str) -> None:
    assert list(ix.open_catalog(configured).tables["table"]) == ["db.trips"]
    with pytest.raises(ix.CatalogError, match="could not be loaded"):
        ix.open_catalog("no-such")


def test_wrong_arguments(catalog: PyIcebergCatalog, folder: Path) -> None:
    with pytest.raises(ix.OptionError, match="folder, not int"):
        ix.open_catalog(7)
    with pytest.raises(ix.MetadataNotFoundError):
        ix.open_catalog(folder / "nothing")
    for limit in (0, -1, "9", True, float("nan")):
        with pytest.raises(ix.OptionError, match="time_limit"):
            ix.open_catalog(folder, time_limit=limit)  # type: ignore[arg-type]
        with pytest.raises(ix.OptionError, match="listing_limit"):
            ix.check_catalog(folder, listing_limit=limit)  # type: ignore[arg-type]
    for name in (7, None, ""):
        with pytest.raises(ix.OptionError, match="name of a table"):
            ix.open_catalog(catalog).open(name)  # type: ignore[arg-type]
    with pytest.raises(ix.OptionError, match="name"):
        ix.open(folder, catalog=ix.open_catalog(catalog))
