"""A source that is no table: the error says what is there instead, and what to do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from iceexplore.errors import (
    AccessDeniedError,
    FormatError,
    IceexploreError,
    MetadataNotFoundError,
    OptionError,
    UnsupportedError,
)
from iceexplore.storage import open_source
from tests.storage.tables_on_disk import document, make_table


def test_a_path_that_is_not_there_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "trips").mkdir()
    with pytest.raises(MetadataNotFoundError, match=r"trisp does not exist; .* has trips"):
        open_source(tmp_path / "trisp")
    with pytest.raises(MetadataNotFoundError, match="the nearest existing folder is"):
        open_source(tmp_path / "zzz" / "yyy" / "metadata")
    with pytest.raises(MetadataNotFoundError, match=r"v9.metadata.json does not exist"):
        open_source(make_table(tmp_path / "t", {"v1.metadata.json": document("/t")}) / "metadata" / "v9.metadata.json")


def test_a_catalogs_name_without_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MetadataNotFoundError, match="pass catalog="):
        open_source("db.trips")


def test_a_warehouse_lists_its_tables(tmp_path: Path) -> None:
    for name in ("a/t1", "a/t2", "b.db/t3"):
        make_table(tmp_path / name, {"v1.metadata.json": document("/t")})
    with pytest.raises(MetadataNotFoundError, match=r"warehouse with 3 tables.*a/t1, a/t2, b.db/t3"):
        open_source(tmp_path)
    with pytest.raises(MetadataNotFoundError, match="2 tables"):
        open_source(tmp_path / "a")
    opened = open_source(tmp_path / "b.db")  # a folder around one table, as copies have
    assert opened.name == "t3" and "only table" in opened.notes[-2] + opened.notes[-1]
    assert opened.storage.roots == (str(tmp_path / "b.db" / "t3"),)


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({".hoodie/hoodie.properties": b"", "a.parquet": b""}, "Hudi"),
        ({"a.parquet": b"", "b.parquet": b""}, "2 Parquet files"),
        ({"a.csv": b"", "x": b""}, "1 CSV files"),
        ({"m0.avro": b""}, r"ix.open_file"),
        ({"x.txt": b"", "sub/y": b""}, r"It contains: sub/, x.txt"),
        ({"metadata/snap-1.avro": b""}, r"metadata/ has no .*snap-1.avro"),
        ({"other.json": b'{"a": 1}'}, "It contains: other.json"),
    ],
)
def test_what_is_there_instead(tmp_path: Path, files: dict[str, bytes], says: str) -> None:
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    with pytest.raises(MetadataNotFoundError, match=says):
        open_source(tmp_path)


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(MetadataNotFoundError, match="empty"):
        open_source(tmp_path)


@pytest.mark.parametrize(
    ("data", "says"), [(b"Obj\x01...", "Avro"), (b"PAR1....", "Parquet"), (b"PFA1....", "Puffin"), (b"ORC...", "ORC")]
)
def test_another_kind_of_file(tmp_path: Path, data: bytes, says: str) -> None:
    (tmp_path / "f").write_bytes(data)
    with pytest.raises(FormatError, match=rf"{says} file.*ix.open_file"):
        open_source(tmp_path / "f")


def test_a_view(tmp_path: Path) -> None:
    view = {"view-uuid": "u", "format-version": 1, "location": "/v", "versions": []}
    for path in (
        made := make_table(tmp_path / "v", {"v1.metadata.json": view}),
        made / "metadata" / "v1.metadata.json",
    ):
        with pytest.raises(UnsupportedError, match="metadata of a view"):
            open_source(path)


@pytest.mark.parametrize("source", [None, 5, b"/x", ["a"], object(), ""])
def test_not_a_source(source: Any) -> None:
    with pytest.raises(OptionError):
        open_source(source)


def test_odd_paths_are_our_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for source in ("\0", "x" * 5000, "nosuchscheme://a/b", "s3:/", "file:", "::", "http://"):
        with pytest.raises(IceexploreError):
            open_source(source, properties={"s3.endpoint": "http://127.0.0.1:9"})


def test_a_uri_of_nothing_is_no_working_folder_and_no_host_named_metadata() -> None:
    for source in ("file:", "file:///", "s3:/", "s3://", "http://"):
        with pytest.raises(OptionError, match="has no folder"):
            open_source(source)


def test_names_with_anything_in_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("with space", "ü 表", "a%20b", "a#b?c", "it's", "<b>", "a:b", "~x", "100%"):
        made = make_table(tmp_path / name, {"v1.metadata.json": document(str(tmp_path / name))})
        assert open_source(made).storage.folder == str(made)
        assert open_source(made.as_uri()).storage.folder == str(made)
        assert open_source(f"file:{made}").storage.folder == str(made)
    monkeypatch.chdir(tmp_path)
    assert open_source("it's").storage.folder == str(tmp_path / "it's")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert open_source("~/it's/").storage.folder == str(tmp_path / "it's")


def test_missing_permission_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_table(tmp_path / "t", {"v1.metadata.json": document("/t")})
    really = os.open

    def refuse(path: Any, *args: Any, **kwargs: Any) -> int:
        if str(path).endswith("v1.metadata.json"):
            raise PermissionError(13, "Permission denied", path)  # root, as whom tests may run, is refused nothing
        return really(path, *args, **kwargs)

    monkeypatch.setattr("os.open", refuse)
    with pytest.raises(AccessDeniedError, match=r"v1.metadata.json was refused"):
        open_source(made)
