"""What metadata names is read only from the table's own roots: the rule is in the module `_storage`."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceexplore.errors import FileMissingError, FormatError, OutsideRootsError, StorageError
from iceexplore.storage import Storage, open_source
from tests.storage.tables_on_disk import document, make_table, snapshots


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "outside" / "secret.txt"
    path.parent.mkdir()
    path.write_text("secret")
    return path


def hostile(folder: Path, location: str, **changes: object) -> Storage:
    return open_source(make_table(folder, {"v1.metadata.json": document(location, **changes)})).storage


def refused(storage: Storage, location: str) -> None:
    for ask in (
        lambda: storage.read(location, kind="manifest"),
        lambda: storage.open(location, kind="manifest"),
        lambda: storage.stat(location),
        lambda: storage.exists(location),
        lambda: storage.list(location),
        lambda: storage.local_path(location, kind="data").__enter__(),
        lambda: storage.resolve(location),
    ):
        with pytest.raises(OutsideRootsError, match=r"allow=\[") as e:
            ask()
        assert location in str(e.value)


def test_a_path_outside_is_refused_by_name(tmp_path: Path, secret: Path) -> None:
    storage = hostile(tmp_path / "t", str(tmp_path / "t"))
    for location in (
        str(secret),
        f"file://{secret}",
        f"file:{secret}",
        f"{tmp_path}/t/../outside/secret.txt",
        "../outside/secret.txt",
        "metadata/../../outside/secret.txt",
        f"{tmp_path}/t2/x",  # a prefix of names is no folder
        "s3://bucket/x",
        "http://localhost:1/x",
    ):
        refused(storage, location)


def test_a_moved_table_does_not_climb_out_either(tmp_path: Path, secret: Path) -> None:
    storage = hostile(tmp_path / "t", "/var/lib/t", **snapshots("/var/lib/t/metadata/v1.metadata.json"))
    ups = "/.." * 20
    refused(storage, f"/var/lib/t{ups}{secret}")
    refused(storage, f"/var/lib/t/../../../..{secret}")
    refused(storage, f"hdfs://h/var/lib/t{ups}{secret}")
    refused(storage, str(secret))


@pytest.mark.parametrize("location", ["/", "file:///", "/etc", "{outside}", "{parent}", ".", ".."])
def test_the_json_opens_no_part_of_the_disk(tmp_path: Path, secret: Path, location: str) -> None:
    location = location.format(outside=secret.parent, parent=tmp_path)
    properties = dict.fromkeys(
        ("write.data.path", "write.metadata.path", "write.object-storage.path"), str(secret.parent)
    )
    storage = hostile(tmp_path / "t", location, properties=properties)
    assert storage.roots == (str(tmp_path / "t"),)
    for path in (str(secret), f"file:{secret}"):
        with contextlib.suppress(OutsideRootsError, FileMissingError):
            assert storage.read(path, kind="manifest") != b"secret"
    assert not any(r.real == str(secret) for r in storage.reads)


def test_the_opened_json_alone_gives_its_own_folder_only(tmp_path: Path, secret: Path) -> None:
    downloads = make_table(tmp_path / "downloads", {"x.metadata.json": document("/etc")}) / "metadata"
    loose = downloads.parent / "loose"
    downloads.rename(loose)
    assert open_source(loose / "x.metadata.json").storage.roots == (str(loose),)


def test_allow_admits_what_it_lists(tmp_path: Path, secret: Path) -> None:
    made = make_table(tmp_path / "t", {"v1.metadata.json": document(str(tmp_path / "t"))})
    for allow in ([str(secret.parent)], [f"file://{secret.parent}"], [str(secret)], str(secret.parent)):
        assert open_source(made, allow=allow).storage.read(f"file:{secret}", kind="other") == b"secret"
    with pytest.raises(OutsideRootsError):
        open_source(made, allow=[str(secret) + "x"]).storage.read(str(secret), kind="other")


def test_links_must_lead_back_inside(tmp_path: Path, secret: Path) -> None:
    made = make_table(tmp_path / "t", {"v1.metadata.json": document(str(tmp_path / "t"))}, {"data/real": b"x"})
    os.symlink(secret, made / "data" / "file")
    os.symlink(secret.parent, made / "data" / "folder")
    os.symlink(made / "data" / "real", made / "data" / "inside")
    storage = open_source(made).storage
    assert storage.read(f"{made}/data/inside", kind="other") == b"x"
    for location in (f"{made}/data/file", f"{made}/data/folder/secret.txt"):
        with pytest.raises(OutsideRootsError, match="through a link"):
            storage.read(location, kind="other")
    listed = {f.location.rpartition("/")[2] for f in storage.list(f"{made}/data", recursive=True)}
    assert listed == {"file", "inside", "real"}  # the linked folder is not entered
    allowed = open_source(made, allow=[str(secret.parent)]).storage
    assert allowed.read(f"{made}/data/folder/secret.txt", kind="other") == b"secret"


def test_a_table_reached_through_a_link_opens(tmp_path: Path) -> None:
    made = make_table(tmp_path / "real", {"v1.metadata.json": document(str(tmp_path / "link"))}, {"metadata/a": b"x"})
    os.symlink(made, tmp_path / "link")
    storage = open_source(tmp_path / "link").storage
    assert storage.read(f"{tmp_path}/link/metadata/a", kind="other") == b"x" and not storage.moved
    storage = open_source(made).storage
    assert storage.read(f"{tmp_path}/link/metadata/a", kind="other") == b"x" and not storage.moved


def test_lengths_are_checked_before_anything_is_allocated(tmp_path: Path) -> None:
    made = make_table(tmp_path / "t", {"v1.metadata.json": document(str(tmp_path / "t"))}, {"f": b"0123456789"})
    storage = open_source(made).storage
    assert storage.read(f"{made}/f", kind="other", offset=2, length=3) == b"234"
    assert storage.read(f"{made}/f", kind="other", offset=10, length=0) == b""
    for offset, length in ((8, 3), (0, 1 << 62), (1 << 62, 1), (11, 1)):
        with pytest.raises(FormatError, match="ends too early") as e:
            storage.read(f"{made}/f", kind="other", offset=offset, length=length)
        assert e.value.code == "file-truncated"
    for offset, length in ((-1, 3), (0, -1)):
        with pytest.raises(FormatError, match="negative"):
            storage.read(f"{made}/f", kind="other", offset=offset, length=length)


def test_what_is_no_file(tmp_path: Path) -> None:
    made = make_table(tmp_path / "t", {"v1.metadata.json": document(str(tmp_path / "t"))}, {"data/f": b""})
    os.mkfifo(made / "pipe")
    storage = open_source(made).storage
    with pytest.raises(StorageError, match="folder"):
        storage.read(f"{made}/data", kind="other")
    with pytest.raises(StorageError, match="not a regular file"):
        storage.read(f"{made}/pipe", kind="other")
    with pytest.raises(FileMissingError):
        storage.stat(f"{made}/data")
    with pytest.raises(FileMissingError):
        storage.read(f"{made}/data/f/below", kind="other")
    assert not storage.exists(f"{made}/data/none")
    for name in ("\0", "a\0b", "x" * 5000):
        with pytest.raises((StorageError, OutsideRootsError, FileMissingError)):
            storage.read(f"{made}/{name}", kind="other")


def test_open_and_local_path_are_logged(tmp_path: Path) -> None:
    made = make_table(
        tmp_path / "t", {"v1.metadata.json": document(str(tmp_path / "t"))}, {"f": bytes(range(256)) * 1000}
    )
    storage = open_source(made).storage
    storage.reads.clear()
    with storage.open(f"{made}/f", kind="data-footer") as file:
        file.seek(-4, 2)
        assert file.read() == bytes([252, 253, 254, 255])
        file.seek(1000)
        assert file.read(3) == (bytes(range(256)) * 4)[1000:1003]
        assert file.seek(0, 2) == 256_000 and file.read(5) == b""
    footers = storage.reads.of_kind("data-footer")
    assert footers[0].offset == 255_996 and footers[0].length == 4 and all(r.length <= 65_536 for r in footers)
    with storage.local_path(f"{made}/f", kind="data") as path:
        assert path == made / "f"
    assert storage.reads.of_kind("data")[0].length == 256_000
    info = storage.stat(f"file:{made}/f")
    assert info.location == f"file:{made}/f" and info.size == 256_000 and info.etag and info.modified_ms


@given(
    st.lists(
        st.sampled_from(["..", ".", "outside", "t", "secret.txt", "data", "file:", "//", "%2e%2e"]),
        min_size=1,
        max_size=8,
    )
)
def test_no_mixture_of_names_leads_out(tmp_path_factory: pytest.TempPathFactory, parts: list[str]) -> None:
    base = tmp_path_factory.getbasetemp() / "mixture"
    (base / "outside").mkdir(parents=True, exist_ok=True)
    (base / "outside" / "secret.txt").write_text("secret")
    make_table(
        base / "t", {"v1.metadata.json": document("s3://b/x/t", **snapshots("s3://b/x/t/metadata/v1.metadata.json"))}
    )
    storage = open_source(base / "t").storage
    for start in ("s3://b/x/t/", f"{base}/t/", "file:", ""):
        try:
            real = storage.resolve(start + "/".join(parts))
        except OutsideRootsError:
            continue
        assert os.path.realpath(real).startswith(os.path.realpath(base / "t"))


def test_what_was_resolved_opens_nothing_to_its_neighbours(tmp_path: Path, secret: Path) -> None:
    """Folders are remembered once a file of theirs was resolved."""
    made = make_table(tmp_path / "t", {"v1.metadata.json": document("s3://b/t")}, {"data/real": b"x"})
    storage = open_source(made, allow=[str(secret)]).storage
    assert storage.read(str(secret), kind="other") == b"secret"
    (secret.parent / "second").write_text("secret")
    refused(storage, str(secret.parent / "second"))
    assert storage.resolve("s3://b/t/data/real") == str(made / "data" / "real")
    os.symlink(secret.parent / "second", made / "data" / "later")
    for name in ("s3://b/t/data/later", "s3://b/t/data/../../outside/second"):
        with pytest.raises(OutsideRootsError):
            storage.resolve(name)
    assert storage.resolve("s3://b/t/data/..") == str(made)
    with pytest.raises(OutsideRootsError):
        storage.resolve("s3://b2")


def test_a_single_file_may_have_moved(tmp_path: Path) -> None:
    made = make_table(
        tmp_path / "t", {"v1.metadata.json": document("s3://b/t")}, {"data/a": b"a", "data/b": b"b", "x": b"x"}
    )
    storage = open_source(made, moved={"s3://b/t/data/b": str(made / "x")}).storage
    assert [storage.read(f"s3://b/t/data/{n}", kind="other") for n in "aba"] == [b"a", b"x", b"a"]
