"""Tables by a catalog's name, a catalog object, or PyIceberg's own Table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iceexplore.errors import AccessDeniedError, CatalogError, OptionError, OutsideRootsError
from iceexplore.storage import list_versions, open_source, open_version, reopen
from tests.helpers.http_answers import answering
from tests.storage.tables_on_disk import document, make_table


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Any]:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField

    made = SqlCatalog("prod", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/wh")
    made.create_namespace("db")
    made.create_table("db.trips", Schema(NestedField(1, "x", LongType())))
    yield made
    made.engine.dispose()


def add_row(catalog: Any, name: str = "db.trips") -> None:
    import pyarrow as pa

    catalog.load_table(name).append(pa.table({"x": pa.array([1], pa.int64())}))


def test_by_object_by_table_and_by_name(catalog: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_row(catalog)
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", f"sqlite:///{tmp_path}/c.db")
    by_properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": f"file://{tmp_path}/wh"}
    table = catalog.load_table("db.trips")
    for opened in (
        open_source("db.trips", catalog=catalog),
        open_source(("db", "trips"), catalog=catalog),
        open_source(table),
        open_source("db.trips", catalog="prod", properties=by_properties),
    ):
        assert opened.name == "db.trips" and opened.version == 1
        assert opened.metadata_location == table.metadata_location
        assert opened.document["snapshots"][0]["manifest-list"] == table.current_snapshot().manifest_list
        assert opened.storage.read(table.current_snapshot().manifest_list, kind="manifest-list")[:3] == b"Obj"
        assert not opened.storage.moved and not opened.problems
        assert opened.catalog_table is not None and "catalog" in opened.notes[0]
        assert [v.number for v in list_versions(opened)] == [0, 1]
        assert open_version(opened, 0).version == 0
    assert open_source("db.trips", catalog=catalog, version=0).version == 0


def test_refresh_asks_the_catalog_and_leaves_the_users_table(catalog: Any) -> None:
    mine = catalog.load_table("db.trips")
    by_name, by_table = open_source("db.trips", catalog=catalog), open_source(mine)
    add_row(catalog)
    assert reopen(by_name.source).version == 1
    assert reopen(by_table.source).version == 1
    assert mine.metadata_location.endswith("metadata.json") and "/00000-" in mine.metadata_location


def test_a_static_table(catalog: Any) -> None:
    from pyiceberg.table import StaticTable

    opened = open_source(StaticTable.from_metadata(catalog.load_table("db.trips").metadata_location))
    assert opened.version == 0 and reopen(opened.source).version == 0


def test_the_nearest_names(catalog: Any) -> None:
    with pytest.raises(CatalogError, match=r"no table db.trisp in catalog prod; the nearest: db.trips"):
        open_source("db.trisp", catalog=catalog)
    with pytest.raises(CatalogError, match=r"namespaces: db"):
        open_source("bd.trips", catalog=catalog)
    with pytest.raises(CatalogError, match=r"catalog 'nowhere' could not be loaded"):
        open_source("db.trips", catalog="nowhere")
    for source, wrong in ((5, catalog), ("db.trips", 5)):
        with pytest.raises(OptionError):
            open_source(source, catalog=wrong)


def test_the_catalog_vouches_for_the_places_its_json_names(catalog: Any, tmp_path: Path) -> None:
    (tmp_path / "data2").mkdir()
    (tmp_path / "data2" / "f").write_bytes(b"data")
    (tmp_path / "outside").write_bytes(b"secret")
    with catalog.load_table("db.trips").transaction() as change:
        change.set_properties(**{"write.data.path": f"file://{tmp_path}/data2"})
    storage = open_source("db.trips", catalog=catalog).storage
    assert storage.read(f"file:{tmp_path}/data2/f", kind="other") == b"data"
    with pytest.raises(OutsideRootsError):
        storage.read(f"file://{tmp_path}/outside", kind="other")
    # the same table by its folder: nobody vouches
    folder = storage.folder
    with pytest.raises(OutsideRootsError, match="allow="):
        open_source(folder).storage.read(f"file:{tmp_path}/data2/f", kind="other")


def register(catalog: Any, name: str, location: str) -> None:
    """What `register_table` does, without reading the file."""
    from pyiceberg.catalog.sql import IcebergTables
    from sqlalchemy.orm import Session

    with Session(catalog.engine) as session:
        session.add(
            IcebergTables(
                catalog_name=catalog.name,
                table_namespace="db",
                table_name=name,
                metadata_location=location,
                previous_metadata_location=None,
            )
        )
        session.commit()


def test_what_pyiceberg_cannot_parse_still_opens(catalog: Any, tmp_path: Path) -> None:
    doc = document(f"file://{tmp_path}/wh/db/v", **{"format-version": 3, "next-row-id": 0})
    doc["schemas"][0]["fields"].append({"id": 2, "name": "v", "required": False, "type": "nosuchtype"})
    made = make_table(tmp_path / "wh" / "db" / "v", {"00007-x.metadata.json": doc})
    register(catalog, "v", f"file://{made}/metadata/00007-x.metadata.json")
    with pytest.raises(Exception, match="nosuchtype"):
        catalog.load_table("db.v")
    opened = open_source("db.v", catalog=catalog)
    assert opened.version == 7 and opened.catalog_table is None and opened.name == "db.v"
    assert opened.document == doc
    assert reopen(opened.source).version == 7


def test_a_missing_metadata_file_is_reported(catalog: Any, tmp_path: Path) -> None:
    register(catalog, "gone", f"file://{tmp_path}/wh/db/gone/metadata/00001-x.metadata.json")
    with pytest.raises((CatalogError, FileNotFoundError), match=r"00001-x"):
        open_source("db.gone", catalog=catalog)


def test_a_table_whose_file_only_the_catalog_may_read(catalog: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = catalog.load_table("db.trips")

    def refuse(*args: Any) -> bytes:
        raise PermissionError(13, "no")

    monkeypatch.setattr("iceexplore.storage.stores._backend.LocalBackend.read", refuse)
    opened = open_source(table)
    assert opened.document["location"] == table.metadata.location and "as sent by the catalog" in opened.notes[0]
    assert [p.code for p in opened.problems] == ["access-denied"]
    with pytest.raises(AccessDeniedError):
        open_source(table, strict=True)


def test_a_rest_catalogs_answer_that_pyiceberg_cannot_parse(tmp_path: Path) -> None:
    """A REST catalog that answers with a type that PyIceberg does not know."""
    doc = document(f"file://{tmp_path}/t", **{"format-version": 3, "next-row-id": 0})
    doc["schemas"][0]["fields"].append({"id": 2, "name": "v", "required": False, "type": "nosuchtype"})
    make_table(tmp_path / "t", {"00003-x.metadata.json": doc})
    location = f"file://{tmp_path}/t/metadata/00003-x.metadata.json"
    answers = {
        "/v1/config": {"defaults": {}, "overrides": {}},
        "/v1/namespaces/db/tables/v": {"metadata-location": location, "metadata": doc, "config": {"token": "t"}},
    }

    missing = {"error": {"message": "none", "type": "NoSuchTableException", "code": 404}}

    def answer(path: str) -> tuple[int, str, bytes]:
        found = answers.get(path)
        return (200 if found else 404), "application/json", json.dumps(found or missing).encode()

    with answering(answer) as url:
        properties = {"type": "rest", "uri": url}
        opened = open_source("db.v", catalog="rest", properties=properties)
        assert opened.version == 3 and opened.document == doc and opened.catalog_table is None
        with pytest.raises(CatalogError, match=r"no table db.none"):
            open_source("db.none", catalog="rest", properties=properties)


@pytest.mark.parametrize(
    ("core", "datafusion", "asked", "warning"),
    [
        ("0.10.1", "55.0.0", 'datafusion<54,>=53; extra == "datafusion"', "'datafusion>=53,<54'"),
        ("0.10.1", "52.3.0", 'datafusion<54,>=53; extra == "datafusion"', "'datafusion>=53,<54'"),
        ("0.10.1", "53.0.0", 'datafusion<54,>=53; extra == "datafusion"', None),
        ("0.6.0", "55.0.0", 'datafusion (>=45) ; extra == "datafusion"', None),
        (None, "55.0.0", 'datafusion<54,>=53; extra == "datafusion"', None),
        ("0.10.1", "55.0.0", 'pandas<3; extra == "pandas"', None),
    ],
)
def test_datafusion_that_does_not_fit_pyiceberg_core_is_noted(
    catalog: Any, monkeypatch: pytest.MonkeyPatch, core: str | None, datafusion: str, asked: str, warning: str | None
) -> None:
    """Registering a PyIceberg table in such a datafusion is a segmentation fault, in libraries that are not ours."""
    from importlib.metadata import PackageNotFoundError

    from iceexplore.storage import _catalog

    def version(name: str) -> str:
        if name == "pyiceberg-core" and core is None:
            raise PackageNotFoundError(name)
        return {"pyiceberg-core": core or "", "datafusion": datafusion}[name]

    monkeypatch.setattr(_catalog, "version", version)
    monkeypatch.setattr(_catalog, "requires", lambda name: ["click<9", asked])
    _catalog.version_notes.cache_clear()
    try:
        notes = [n for n in open_source("db.trips", catalog=catalog).notes if "segmentation fault" in n]
        assert (warning is None and not notes) or (warning is not None and len(notes) == 1 and warning in notes[0])
    finally:
        _catalog.version_notes.cache_clear()
