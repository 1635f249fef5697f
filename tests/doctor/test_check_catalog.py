"""`ix.check_catalog`: a row per table, the worst first; what hangs or fails is a row, and a check can be resumed."""

from __future__ import annotations

import json
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog

import iceexplore as ix
from iceexplore import table as calls
from iceexplore.doctor import CatalogReport


def make(folder: Path, name: str) -> Path:
    lab = ix.create(folder / name, {"id": "long"}, format_version=2)
    lab.append({"id": [1, 2]})
    return folder / name


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """Four tables: ``fine``, ``hint`` (a stale hint), ``lost`` (no manifest list) and ``gone`` (no metadata)."""
    folder = tmp_path / "w"
    for name in ("db/fine", "db/gone", "db/lost", "hint"):
        make(folder, name)
    (folder / "hint" / "metadata" / "version-hint.text").write_text("1")
    next((folder / "db/lost/metadata").glob("*snap*.avro")).unlink()
    for path in (folder / "db/gone/metadata").glob("*.json"):
        path.write_text("{")
    (folder / "db" / "notes").mkdir()
    (folder / "db" / "notes" / "readme.txt").write_text("no table")
    return folder


def test_a_folder_is_searched_and_the_worst_table_comes_first(warehouse: Path) -> None:
    found = ix.check_catalog(warehouse)
    assert [(one.table, one.severity) for one in found] == [
        ("db/gone", "fail"),
        ("db/lost", "fail"),
        ("hint", "wrong"),
        ("db/fine", None),
    ]
    assert found.exit_code == 2
    assert found.complete
    frame = found.to_pandas()
    assert list(frame["table"]) == ["db/gone", "db/lost", "hint", "db/fine"]
    assert list(frame.columns) == [
        "table", "location", "severity", "fail", "wrong", "slow", "untidy", "first", "seconds", "error",
    ]  # fmt: skip
    assert list(frame["error"].notna()) == [True, False, False, False]
    assert frame["wrong"].sum() == 1
    assert found.reports["db/lost"].findings[0].code == "file-missing"
    assert not found.reports["db/gone"].opened
    with pytest.raises(KeyError, match="db/fine"):
        found.reports["db/fin"]
    assert (
        repr(found)
        .splitlines()[0]
        .endswith("4 tables, 1 × could not be read, 1 × readers fail, 1 × wrong rows or numbers")
    )
    page = found.to_html()
    assert "script" not in page.lower().replace("no scripts", "")
    assert page.index("db/gone") < page.index("db/lost") < page.index("db/fine")


def test_exit_codes(tmp_path: Path) -> None:
    make(tmp_path, "a")
    assert ix.check_catalog(tmp_path).exit_code == 0
    (make(tmp_path, "b") / "metadata" / "version-hint.text").write_text("1")
    assert ix.check_catalog(tmp_path).exit_code == 1
    assert ix.check_catalog(tmp_path, skip="hint-stale").exit_code == 0
    assert ix.check_catalog(tmp_path / "b").tables[0].table == "b"
    (tmp_path / "empty").mkdir()
    nothing = ix.check_catalog(tmp_path / "empty")
    assert (len(nothing), nothing.exit_code) == (0, 0)
    assert "0 tables, nothing found" in repr(nothing)


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    made = SqlCatalog("prod", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/warehouse")
    for namespace in ("a", "a.b", "c"):
        made.create_namespace(tuple(namespace.split(".")))
    for name in ("a.t1", "a.b.t2", "c.t3"):
        folder = make(tmp_path / "w", name)
        made.register_table(tuple(name.split(".")), f"file://{folder}/metadata/v2.metadata.json")
    return made


def test_a_catalog_with_nested_namespaces(catalog: SqlCatalog, tmp_path: Path) -> None:
    (tmp_path / "w" / "c.t3" / "metadata" / "v2.metadata.json").unlink()
    found = ix.check_catalog(catalog)
    assert {one.table for one in found} == {"a.t1", "a.b.t2", "c.t3"}
    assert found.tables[0].table == "c.t3"
    assert found.reports["c.t3"].findings[0].modes == (5,)
    assert found.reports["a.b.t2"].ok
    assert found.source == "prod"


def test_a_namespace_that_cannot_be_listed(catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = catalog.list_tables

    def refused(namespace: Any) -> Any:
        if namespace == ("c",):
            raise RuntimeError("403 \x1b[31m")
        return listed(namespace)

    monkeypatch.setattr(catalog, "list_tables", refused)
    found = ix.check_catalog(catalog)
    assert {one.table for one in found} == {"a.t1", "a.b.t2"}
    assert found.exit_code == 2
    assert "Namespace c could not be listed: RuntimeError: 403" in repr(found)
    assert "\x1b" not in repr(found) + found.to_html() + found.to_json()


def test_what_hangs_or_fails_is_a_row(warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check, release = calls.check, threading.Event()

    def sometimes(source: str, *args: Any, **how: Any) -> Any:
        if source.endswith("fine"):
            release.wait(60)
        if source.endswith("lost"):
            raise ZeroDivisionError("a bug")
        return check(source, *args, **how)

    monkeypatch.setattr(calls, "check", sometimes)
    begun = time.monotonic()
    found = ix.check_catalog(warehouse, time_limit=10)
    release.set()
    assert time.monotonic() - begun < 50
    errors = {one.table: one.error for one in found}
    assert errors["db/fine"] == "took longer than 10 s"
    assert errors["db/lost"] == "ZeroDivisionError: a bug"
    assert errors["hint"] is None
    assert found.exit_code == 2
    assert set(found.reports) == {"db/gone", "hint"}


def test_resuming(warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "fleet.json"
    first = ix.check_catalog(warehouse, resume=path)
    assert json.loads(path.read_text()) == json.loads(first.to_json())
    checked: list[str] = []
    check = calls.check

    def counted(source: str, *args: Any, **how: Any) -> Any:
        checked.append(Path(source).name)
        return check(source, *args, **how)

    monkeypatch.setattr(calls, "check", counted)
    make(warehouse, "new")
    shutil.rmtree(warehouse / "hint")
    again = ix.check_catalog(warehouse, resume=path)
    assert sorted(checked) == ["gone", "new"], "what could not be opened is tried again"
    assert [one.table for one in again] == ["db/gone", "db/lost", "db/fine", "new"]
    assert again.reports["db/lost"].to_dict() == first.reports["db/lost"].to_dict()
    assert again.reports["db/lost"].to_html()
    assert len(again.reports["db/lost"].timeline()) == 0


def test_a_listing_that_ends_early_forgets_nothing(
    warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "fleet.json"
    first = ix.check_catalog(warehouse, resume=path)
    shutil.rmtree(warehouse / "hint")
    monkeypatch.setattr("iceexplore.storage.Listing.complete", False)
    again = ix.check_catalog(warehouse, resume=path)
    assert [one.table for one in again] == [one.table for one in first], "hint may only not be listed yet"
    assert (again.complete, again.exit_code) == (False, 2)


def test_an_interrupted_check_can_be_resumed(warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, check = tmp_path / "fleet.json", calls.check

    def interrupted(source: str, *args: Any, **how: Any) -> Any:
        if source.endswith("hint"):
            time.sleep(60)
        return check(source, *args, **how)

    monkeypatch.setattr(calls, "check", interrupted)
    import iceexplore.doctor._tables as tables

    checked = tables._checked

    def until(*args: Any) -> Any:
        for number, one in enumerate(checked(*args)):
            yield one
            if number == 2:
                raise KeyboardInterrupt

    monkeypatch.setattr(tables, "_checked", until)
    with pytest.raises(KeyboardInterrupt):
        ix.check_catalog(warehouse, resume=path)
    kept = CatalogReport.from_dict(json.loads(path.read_text()))
    assert len(kept) == 3
    assert not kept.complete
    assert kept.exit_code == 2
    assert "Some tables are not listed" in repr(kept)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"version": 2}', '{"version": 1, "tables": 7}', "\xff", "[" * 100_000, '"x"']
)
def test_a_file_that_is_no_result(text: str, warehouse: Path, tmp_path: Path) -> None:
    path = tmp_path / "fleet.json"
    path.write_text(text)
    with pytest.raises(ix.OptionError, match=r"is not a result of check_catalog"):
        ix.check_catalog(warehouse, resume=path)
    assert path.read_text() == text


def test_wrong_options(warehouse: Path, tmp_path: Path) -> None:
    path = tmp_path / "fleet.json"
    ix.check_catalog(warehouse, resume=path)
    with pytest.raises(ix.OptionError, match="other options"):
        ix.check_catalog(warehouse, "files", resume=path)
    for how in (
        {"time_limit": 0},
        {"time_limit": "60"},
        {"time_limit": float("nan")},
        {"workers": 0},
        {"only": "nix"},
        {"snapshots": [1]},
        {"resume": tmp_path / "x" / "y"},
    ):
        with pytest.raises(ix.OptionError):
            ix.check_catalog(warehouse, **how)
    with pytest.raises(ix.OptionError, match="folder, not int"):
        ix.check_catalog(7)
    with pytest.raises(ix.MetadataNotFoundError):
        ix.check_catalog(tmp_path / "nothing")
    with pytest.raises(ix.CatalogError, match="could not be loaded"):
        ix.check_catalog("no-such-catalog")
