"""`ix.check` reports on tables that cannot be opened: the reason, the metadata files around it, and what to do."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

import iceexplore as ix
from iceexplore.doctor import Finding, Report
from tests.doctor.damages import healthy


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return healthy(tmp_path)


@pytest.fixture
def catalog(folder: Path, tmp_path: Path) -> SqlCatalog:
    """A catalog with the table ``db.t``, at version 6."""
    made = SqlCatalog("prod", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/warehouse")
    made.create_namespace("db")
    made.register_table("db.t", f"file://{metadata(folder, 6)}")
    return made


def metadata(folder: Path, version: int) -> Path:
    return folder / "metadata" / f"v{version}.metadata.json"


def only(report: Report) -> Finding:
    """The only finding of a report on a table that was not opened."""
    assert not report.opened
    assert not report.ok
    assert report.exit_code == 2
    assert report.snapshots == ()
    assert len(report) == 1
    (finding,) = report
    assert finding.severity == "fail"
    assert finding.advice
    assert finding.text in report.to_json() or "\\" in json.dumps(finding.text)
    assert "cannot be opened" in repr(report).splitlines()[0]
    assert report.to_html().startswith("<!doctype html>")
    assert len(report.timeline()) == 0
    return finding


def test_an_openable_table_is_checked_with_the_same_options(folder: Path) -> None:
    report = ix.check(folder, "files", snapshots="all")
    assert report.opened
    assert (report.level, len(report.snapshots), report.exit_code) == ("files", 4, 0)
    assert report.to_dict()["opened"] is True
    assert len(ix.check(folder, version=3).snapshots) == 1


def test_a_broken_table_that_opens_is_no_failure_to_open(folder: Path) -> None:
    next((folder / "metadata").glob("*snap*.avro")).unlink()
    report = ix.check(folder, snapshots="all")
    assert report.opened
    assert report.exit_code == 1


def test_the_catalog_points_to_a_deleted_metadata_file(folder: Path, catalog: SqlCatalog) -> None:
    metadata(folder, 6).unlink()
    finding = only(ix.check("db.t", catalog=catalog))
    assert (finding.code, finding.modes) == ("metadata-missing", (5,))
    assert finding.where.endswith("v6.metadata.json")
    assert "The catalog points to v6.metadata.json, which does not exist" in finding.text
    assert "5 older (v5.metadata.json, v4.metadata.json, v3.metadata.json, …)" in finding.text
    assert finding.expected == "v5.metadata.json"
    assert f"catalog.register_table('db.t', '{metadata(folder, 5)}')" in finding.advice


def test_newer_files_than_the_deleted_one_are_named(folder: Path, catalog: SqlCatalog) -> None:
    table = catalog.load_table("db.t")
    shutil.copy(metadata(folder, 6), metadata(folder, 7))
    metadata(folder, 6).unlink()
    for report in (ix.check("db.t", catalog=catalog), ix.check(metadata(folder, 6))):
        finding = only(report)
        assert finding.modes == (5,)
        assert "1 newer (v7.metadata.json), 5 older (v5.metadata.json, " in finding.text
        assert finding.expected == "v7.metadata.json"
        assert str(metadata(folder, 7)) in finding.advice
    # A catalog that sends the document: the table opens, and the pointer is a finding all the same.
    report = ix.check(table)
    assert report.opened
    assert [(f.code, f.modes, f.expected) for f in report if f.severity == "fail"] == [
        ("metadata-missing", (5,), "v7.metadata.json")
    ]


def test_nothing_is_lost_only_if_a_newer_file_can_be_read(folder: Path, catalog: SqlCatalog) -> None:
    shutil.copy(metadata(folder, 6), metadata(folder, 7))
    metadata(folder, 6).unlink()
    assert "nothing is lost: it is newer" in only(ix.check("db.t", catalog=catalog)).advice
    metadata(folder, 7).write_text("{")
    advice = only(ix.check("db.t", catalog=catalog)).advice
    assert "point the catalog to v5.metadata.json: drop the table" in advice
    assert "nothing is lost" not in advice


def test_a_repair_by_the_advice_is_clean(folder: Path, catalog: SqlCatalog) -> None:
    metadata(folder, 6).unlink()
    advice = only(ix.check("db.t", catalog=catalog)).advice
    catalog.drop_table("db.t")
    call = advice[advice.index("catalog.register_table") :].partition(")")[0] + ")"
    exec(call, {"catalog": catalog})  # what the advice tells to run
    assert ix.check("db.t", catalog=catalog).opened


def test_a_metadata_file_that_ends_too_early(folder: Path) -> None:
    path = metadata(folder, 6)
    path.write_text(path.read_text()[:100])
    finding = only(ix.check(path))
    assert finding.code == "file-truncated"
    assert finding.modes == (10,)
    assert finding.since is not None and finding.since.metadata_file == str(path)
    assert "5 older" in finding.text
    assert "go back to v5.metadata.json" in finding.advice
    # By its folder the table opens at the file before, and the damage is no trifle.
    report = ix.check(folder)
    assert report.opened
    assert [(f.severity, f.code) for f in report] == [("fail", "file-truncated")]


def test_no_metadata_file_can_be_read(folder: Path) -> None:
    for path in (folder / "metadata").glob("*.json"):
        path.write_text("{")
    finding = only(ix.check(folder))
    assert finding.code == "file-truncated"
    assert "the newest cannot be read" in finding.text


def test_the_hint_points_to_a_deleted_file_and_the_others_are_damaged(folder: Path) -> None:
    metadata(folder, 6).unlink()
    for path in (folder / "metadata").glob("*.json"):
        path.write_text("{")
    finding = only(ix.check(folder))
    assert (finding.code, finding.modes) == ("metadata-missing", (12,))
    assert "version-hint.text points to v6.metadata.json, which does not exist" in finding.text
    assert "invalid JSON" in finding.text


def test_the_hint_points_to_a_deleted_file_once(folder: Path) -> None:
    metadata(folder, 6).unlink()
    report = ix.check(folder)
    assert report.opened
    assert [(f.code, f.modes) for f in report if f.severity == "fail"] == [("hint-invalid", (12,))]


def test_all_metadata_files_are_gone(folder: Path) -> None:
    for path in (folder / "metadata").glob("*.json"):
        path.unlink()
    (folder / "metadata" / "version-hint.text").unlink()
    finding = only(ix.check(folder))
    assert finding.code == "metadata-missing"
    assert "metadata/ has no *.metadata.json" in finding.text


def test_places_without_a_table(folder: Path, tmp_path: Path, catalog: SqlCatalog) -> None:
    nothing = only(ix.check(tmp_path / "nothing"))
    assert (nothing.code, nothing.modes) == ("metadata-missing", ())
    assert "does not exist" in nothing.text
    unknown = only(ix.check("db.x", catalog=catalog))
    assert unknown.code == "catalog-failed"
    assert "the nearest: db.t" in unknown.text
    healthy(tmp_path / "w")
    warehouse = only(ix.check(tmp_path))
    assert f"ix.check_catalog('{tmp_path}')" in warehouse.advice
    junk = tmp_path / "junk.zip"
    junk.write_bytes(b"PK\x03\x04 junk")
    assert only(ix.check(junk)).code == "file-corrupt"


def test_a_wrong_call_is_not_a_finding(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ix.OptionError, match="level"):
        ix.check(tmp_path / "nothing", "everything")  # type: ignore[arg-type]
    with pytest.raises(ix.OptionError, match="file-missing"):
        ix.check(tmp_path / "nothing", only=["file-mising"])
    with pytest.raises(TypeError, match="snapshot"):
        ix.check(folder, snapshot="all")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="snapshot"):
        ix.check(tmp_path / "nothing", snapshot="all")  # type: ignore[call-arg]
    with pytest.raises(ix.SnapshotNotFoundError):
        ix.check(folder, version=17)
    with pytest.raises(ix.OptionError, match="give a path"):
        ix.check(7)


def test_control_characters_in_a_name_are_visible(tmp_path: Path) -> None:
    report = ix.check(tmp_path / "a\x1b[31mb")
    assert "\x1b" not in repr(report)
    assert "\x1b" not in report.to_html()
