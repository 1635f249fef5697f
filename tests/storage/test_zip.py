from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import stat
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest

from iceexplore.errors import (
    FormatError,
    IceexploreError,
    MetadataNotFoundError,
    OutsideRootsError,
    StorageError,
    UnsupportedError,
)
from iceexplore.storage import Storage, member_name, open_source, reopen, write_zip
from tests.storage.tables_on_disk import document, make_table, snapshots

DOC = json.dumps(document("s3://b/wh/t", **snapshots("s3://b/wh/t/metadata/snap-1.avro"))).encode()
TABLE = {"metadata/v1.metadata.json": DOC, "metadata/snap-1.avro": b"list"}


def pack(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


@pytest.mark.parametrize("prefix", ["", "t/", "copy of/db/t/"])
def test_a_zip_opens_and_goes_away(tmp_path: Path, prefix: str) -> None:
    path = pack(tmp_path / "mail.zip", {prefix + k: v for k, v in TABLE.items()} | {"__MACOSX/._x": b"junk"})
    opened = open_source(path)
    storage = opened.storage
    assert storage.read("s3://b/wh/t/metadata/snap-1.avro", kind="manifest-list") == b"list"
    assert opened.name == (prefix.rstrip("/").rpartition("/")[2] or "mail")
    folder = storage.folder
    assert os.path.isdir(folder) and os.listdir(tmp_path) == ["mail.zip"]
    storage.close()
    storage.close()
    assert not os.path.exists(folder)
    with pytest.raises(StorageError, match="closed"):
        storage.read("s3://b/wh/t/metadata/snap-1.avro", kind="manifest-list")


def test_it_goes_away_with_the_table(tmp_path: Path) -> None:
    opened = open_source(pack(tmp_path / "x.zip", TABLE))
    folder = opened.storage.folder
    del opened
    gc.collect()
    assert not os.path.exists(folder)


def test_a_zip_by_content_and_a_source_that_asks_again(tmp_path: Path) -> None:
    opened = open_source(pack(tmp_path / "attachment", TABLE))
    again = reopen(opened.source)
    assert again.storage.folder != opened.storage.folder and again.storage.identity != opened.storage.identity
    (tmp_path / "no.zip").write_bytes(b"PKnonsense")
    with pytest.raises(FormatError, match="zip"):
        open_source(tmp_path / "no.zip")


def test_several_tables_are_listed_and_nothing_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    members = {f"wh/{t}/{k}": v for t in ("a", "b") for k, v in TABLE.items()}
    with pytest.raises(MetadataNotFoundError, match=r"x.zip.*2 tables.*wh/a, wh/b"):
        open_source(pack(tmp_path / "x.zip", members))
    with pytest.raises(MetadataNotFoundError, match="no Iceberg table"):
        open_source(pack(tmp_path / "y.zip", {"readme.txt": b""}))
    assert not os.listdir(tmp_path / "tmp")


@pytest.mark.parametrize(
    "name", ["/etc/x", "../x", "a/../../x", "a\\..\\..\\x", "C:/x", "C:\\x", "\\\\host\\x", "a/..", "//x"]
)
def test_names_that_lead_out_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(FormatError, match="outside"):
        open_source(pack(tmp_path / "x.zip", {**TABLE, name: b"x"}))
    assert sorted(os.listdir(tmp_path)) == ["x.zip"]


def test_links_are_refused(tmp_path: Path) -> None:
    path = pack(tmp_path / "x.zip", TABLE)
    link = zipfile.ZipInfo("data")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(link, "/etc")
    with pytest.raises(FormatError, match="link"):
        open_source(path)


def test_encrypted_zips_are_reported(tmp_path: Path) -> None:
    path = pack(tmp_path / "x.zip", TABLE)
    data = bytearray(path.read_bytes())
    at = 0
    while (at := data.find(b"PK\x01\x02", at)) != -1:
        data[at + 8] |= 1
        at += 4
    path.write_bytes(data)
    with pytest.raises(UnsupportedError, match="encrypted"):
        open_source(path)


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({"iceexplore.zip.max-files": "1"}, "2 files"),
        ({"iceexplore.zip.max-bytes": "100"}, "more than 100 bytes"),
    ],
)
def test_limits(tmp_path: Path, properties: dict[str, str], says: str) -> None:
    with pytest.raises(FormatError, match=says):
        open_source(pack(tmp_path / "x.zip", TABLE), properties=properties)


def test_a_bomb_stops(tmp_path: Path) -> None:
    path = pack(tmp_path / "x.zip", {**TABLE, "data/zeros": bytes(100 << 20)})
    assert path.stat().st_size < 200_000
    with pytest.raises(FormatError, match="200 times its size"):
        open_source(path)


def test_stated_sizes_are_not_believed(tmp_path: Path) -> None:
    # A member that says 10 bytes and inflates to 100 MB.
    raw = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = raw.compress(bytes(100 << 20)) + raw.flush()
    name = b"data/z"
    local = struct.pack("<4s5H3I2H", b"PK\x03\x04", 20, 0, 8, 0, 0x21, 0, len(body), 10, len(name), 0) + name
    central = (
        struct.pack("<4s6H3I5H2I", b"PK\x01\x02", 20, 20, 0, 8, 0, 0x21, 0, len(body), 10, len(name), 0, 0, 0, 0, 0, 0)
        + name
    )
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 1, 1, len(central), len(local) + len(body), 0)
    (tmp_path / "x.zip").write_bytes(local + body + central + end)
    with pytest.raises(IceexploreError):
        open_source(tmp_path / "x.zip", properties={"iceexplore.zip.max-bytes": "1000000"})


@pytest.mark.parametrize("names", [("a", "a"), ("a", "a/b"), ("a/b", "a")])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_names_twice(tmp_path: Path, names: tuple[str, str]) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for name in names:
            archive.writestr(name, b"x")
    with pytest.raises(FormatError, match=r"twice|as a file and as a folder"):
        open_source(tmp_path / "x.zip")


def test_a_full_disk_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = pack(tmp_path / "x.zip", TABLE)

    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.makedirs", full)
    with pytest.raises(StorageError, match="No space left"):
        open_source(path)


def test_damage_is_our_error_or_harmless(tmp_path: Path) -> None:
    good = pack(tmp_path / "x.zip", TABLE).read_bytes()
    for at in range(0, len(good), 3):
        for bad in (good[:at], good[:at] + bytes([good[at] ^ 0xFF]) + good[at + 1 :]):
            (tmp_path / "bad.zip").write_bytes(bad)
            with contextlib.suppress(IceexploreError):
                open_source(tmp_path / "bad.zip").storage.close()


def test_a_zip_gives_no_way_to_the_disk(tmp_path: Path) -> None:
    doc = json.dumps(document("/", **snapshots("/etc/passwd"))).encode()
    storage = open_source(pack(tmp_path / "x.zip", {"metadata/v1.metadata.json": doc})).storage
    for location in ("/etc/passwd", "file:///etc/passwd", str(tmp_path / "x.zip"), "../x"):
        with pytest.raises((OutsideRootsError, FileNotFoundError)):
            storage.read(location, kind="manifest-list")
    assert not any(r.real.startswith("/etc") for r in storage.reads)


# Writing --------------------------------------------------------------------------------------------------------------


def test_write_zip_is_whole_or_not_at_all(tmp_path: Path) -> None:
    def members() -> Any:
        yield "a", b"1"
        raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        write_zip(tmp_path / "x.zip", members())
    assert os.listdir(tmp_path) == []
    path = write_zip(tmp_path / "x.zip", [("a", b"1")])
    with pytest.raises(FileExistsError, match="overwrite=True"):
        write_zip(path, [("a", b"2")])
    first = path.read_bytes()
    with pytest.raises(RuntimeError):
        write_zip(path, members(), overwrite=True)
    assert path.read_bytes() == first and os.listdir(tmp_path) == ["x.zip"]
    write_zip(path, [("a", b"2")], overwrite=True)
    with zipfile.ZipFile(path) as archive:
        assert archive.read("a") == b"2"
    assert write_zip(tmp_path / "y.zip", [("a", b"1")]).read_bytes() == first  # the same members, the same bytes


def bundle(storage: Storage, location: str, documents: dict[str, bytes], path: Path) -> Path:
    return write_zip(path, [(member_name(storage, location, k), v) for k, v in documents.items()])


@pytest.mark.parametrize(
    ("location", "lists"),
    [
        ("s3://b/wh/t", "s3://b/wh/t/metadata"),
        ("{here}", "{here}/metadata"),
        ("file:{here}", "file:{here}/metadata"),
        ("gs://edited/t", "data/persistent/t/metadata"),
        ("s3://b/wh/t", "s3://b/apart/t-metadata"),
    ],
)
def test_member_names_lead_back(tmp_path: Path, location: str, lists: str) -> None:
    here = str(tmp_path / "t")
    location, lists = location.format(here=here), lists.format(here=here)
    doc = document(location, **snapshots(f"{lists}/snap-1.avro"))
    make_table(tmp_path / "t", {"00001-x.metadata.json": doc, "snap-1.avro": b"list", "m0.avro": b"manifest"})
    opened = open_source(tmp_path / "t")
    wanted = {
        opened.metadata_location: json.dumps(doc).encode(),
        f"{lists}/snap-1.avro": b"list",
        f"{lists}/m0.avro": b"manifest",
        f"{location}/stats/s.puffin": b"puffin",
        "s3://b/wh/t_data01/p=1/d-1.parquet": b"elsewhere",
    }
    path = bundle(opened.storage, location, wanted, tmp_path / "x.zip")
    with zipfile.ZipFile(path) as archive:
        assert "metadata/00001-x.metadata.json" in archive.namelist()
        assert not any(n.startswith("/") or ".." in n for n in archive.namelist())
    again = open_source(path)
    for name, data in wanted.items():
        if name != opened.metadata_location:
            assert again.storage.read(name, kind="other") == data, name


def test_a_bundle_of_a_flat_table_opens(tmp_path: Path) -> None:
    flat = tmp_path / "flat"
    flat.mkdir()
    doc = document("hdfs://h/t", **snapshots("hdfs://h/t/metadata/snap-1.avro"))
    (flat / "00001-a.metadata.json").write_text(json.dumps(doc))
    (flat / "snap-1.avro").write_bytes(b"list")
    opened = open_source(flat)
    lists = "hdfs://h/t/metadata/snap-1.avro"
    members = {opened.metadata_location: json.dumps(doc).encode(), lists: b"list"}
    again = open_source(bundle(opened.storage, "hdfs://h/t", members, tmp_path / "x.zip"))
    assert again.storage.read(lists, kind="manifest-list") == b"list"


def test_zip_in_memory_names(tmp_path: Path) -> None:
    storage = open_source(pack(tmp_path / "x.zip", TABLE)).storage
    name = member_name(storage, "s3://b/wh/t", "s3://x/../../y/./z.avro")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, b"")
    assert name == "_elsewhere/s3/x/y/z.avro"
