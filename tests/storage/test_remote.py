"""Storage that is not the local disk: fsspec, PyIceberg's FileIO, S3 (a moto server in this process)."""

from __future__ import annotations

import json
import socket
import zipfile
from collections.abc import Iterator
from datetime import timedelta
from io import BytesIO
from typing import Any

import pytest

from iceexplore.errors import (
    AccessDeniedError,
    FileMissingError,
    FormatError,
    MetadataNotFoundError,
    MissingDependencyError,
    OutsideRootsError,
    StorageError,
)
from iceexplore.storage import list_versions, open_source, open_version, reopen
from iceexplore.storage.stores._faults import translate
from iceexplore.storage.stores._remote import FileIOBackend, remote_backend
from tests.helpers.http_answers import answering
from tests.storage.tables_on_disk import document, name_of, snapshots

# fsspec's memory file system: any file system that fsspec knows goes this way -----------------------------------------


@pytest.fixture
def memory() -> Iterator[Any]:
    import fsspec

    fs = fsspec.filesystem("memory")
    yield fs
    fs.rm("/", recursive=True)


def put(fs: Any, files: dict[str, bytes]) -> None:
    for path, data in files.items():
        fs.pipe_file(path, data)


def table(location: str, **changes: Any) -> bytes:
    return json.dumps(document(location, **snapshots(f"{location}/metadata/snap-1.avro"), **changes)).encode()


def test_memory(memory: Any) -> None:
    put(
        memory, {"/wh/t/metadata/v1.metadata.json": table("memory://wh/t"), "/wh/t/metadata/snap-1.avro": b"0123456789"}
    )
    for source in (
        "memory://wh/t",
        "memory://wh/t/",
        "memory://wh/t/metadata",
        "memory://wh/t/metadata/v1.metadata.json",
    ):
        opened = open_source(source)
        s = opened.storage
        assert opened.version == 1 and not s.moved and s.folder == "memory://wh/t"
        assert s.read("memory://wh/t/metadata/snap-1.avro", kind="manifest-list", offset=2, length=3) == b"234"
    s.reads.clear()
    assert s.stat("memory://wh/t/metadata/snap-1.avro").size == 10
    assert s.exists("memory://wh/t/metadata/snap-1.avro") and not s.exists("memory://wh/t/metadata/x")
    with s.open("memory://wh/t/metadata/snap-1.avro", kind="manifest") as file:
        file.seek(-2, 2)
        assert file.read() == b"89"
    with s.local_path("memory://wh/t/metadata/snap-1.avro", kind="data") as path:
        assert path.read_bytes() == b"0123456789"
    assert not path.exists()
    assert [f.location for f in s.list("memory://wh/t", recursive=True)] == [
        "memory://wh/t/metadata/snap-1.avro",
        "memory://wh/t/metadata/v1.metadata.json",
    ]
    assert {r.kind for r in s.reads} == {"stat", "manifest", "data", "list"}


def test_a_large_file_is_copied_in_pieces(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iceexplore.storage._storage._COPIED_AT_ONCE", 4)
    monkeypatch.setattr("iceexplore.storage.stores._range_file._WHOLE_BYTES", 4)  # ten bytes are a large file
    monkeypatch.setattr("iceexplore.storage.stores._range_file.TAIL_BYTES", 4)
    put(memory, {"/wh/t/metadata/v1.metadata.json": table("memory://wh/t"), "/wh/t/f": b"0123456789"})
    s = open_source("memory://wh/t").storage
    with s.local_path("memory://wh/t/f", kind="data") as path:
        assert path.read_bytes() == b"0123456789"
    assert [(r.offset, r.length) for r in s.reads.of_kind("data")] == [(0, 4), (4, 4), (8, 2)]


def test_an_unknown_host_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*given: Any, **more: Any) -> Any:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    for place in ("http://no-such-host.invalid/t.zip", "https://no-such-host.invalid/db/t"):
        with pytest.raises(StorageError, match=r"the host no-such-host\.invalid is unknown") as refused:
            open_source(place)
        assert "does not exist" not in str(refused.value)


def test_errors_are_ours(memory: Any) -> None:
    put(
        memory, {"/wh/t/metadata/v1.metadata.json": table("memory://wh/t"), "/wh/t/metadata/snap-1.avro": b"0123456789"}
    )
    s = open_source("memory://wh/t").storage
    with pytest.raises(FileMissingError, match=r"gone.avro does not exist"):
        s.read("memory://wh/t/metadata/gone.avro", kind="manifest")
    for offset, length in ((8, 3), (0, 1 << 60), (20, 1)):
        with pytest.raises(FormatError, match="ends too early"):
            s.read("memory://wh/t/metadata/snap-1.avro", kind="manifest", offset=offset, length=length)
    with pytest.raises(MetadataNotFoundError):
        open_source("memory://wh/none")
    with pytest.raises(StorageError, match="nosuch"):
        open_source("nosuch://wh/none")


def test_refresh_sees_what_came_since(memory: Any) -> None:
    put(memory, {"/wh/t/metadata/00000-a.metadata.json": table("memory://wh/t")})
    opened = open_source("memory://wh/t")
    put(
        memory,
        {"/wh/t/metadata/00001-b.metadata.json": table("memory://wh/t", **{"last-updated-ms": 1_800_000_000_000})},
    )
    assert name_of(reopen(opened.source)) == "00001-b.metadata.json"
    assert [v.number for v in list_versions(opened)] == [0, 1]
    assert open_version(opened, 1).version == 1


def test_a_remote_table_that_moved(memory: Any) -> None:
    put(memory, {"/copy/t/metadata/v1.metadata.json": table("s3://b/wh/t"), "/copy/t/metadata/snap-1.avro": b"list"})
    opened = open_source("memory://copy/t")
    assert opened.storage.moved == {"s3://b/wh/t": "memory://copy/t"}
    assert opened.storage.read("s3a://b/wh/t/metadata/snap-1.avro", kind="manifest-list") == b"list"


def test_the_same_bucket_is_trusted_and_no_other(memory: Any, tmp_path: Any) -> None:
    properties = {"write.data.path": "memory://wh/data/t", "write.metadata.path": str(tmp_path)}
    put(
        memory,
        {
            "/wh/t/metadata/v1.metadata.json": table("memory://wh/t", properties=properties),
            "/wh/data/t/f": b"data",
            "/other/f": b"x",
        },
    )
    (tmp_path / "f").write_bytes(b"local")
    s = open_source("memory://wh/t").storage
    assert s.read("memory://wh/data/t/f", kind="other") == b"data"
    for location in (
        "memory://other/f",
        "memory://wh/x",
        f"{tmp_path}/f",
        f"file:{tmp_path}/f",
        "memory://wh/t/../../other/f",
    ):
        with pytest.raises(OutsideRootsError):
            s.read(location, kind="other")
    assert open_source("memory://wh/t", allow=["memory://other"]).storage.read("memory://other/f", kind="other") == b"x"


def test_a_local_json_makes_no_request(memory: Any, tmp_path: Any) -> None:
    put(memory, {"/wh/t/metadata/snap-1.avro": b"list"})
    (tmp_path / "v1.metadata.json").write_bytes(table("memory://wh/t"))
    s = open_source(tmp_path / "v1.metadata.json").storage
    with pytest.raises(FileMissingError):
        s.read("memory://wh/t/metadata/snap-1.avro", kind="manifest-list")
    with pytest.raises(OutsideRootsError):
        s.read("memory://wh/t2/metadata/snap-1.avro", kind="manifest-list")
    # allow= and moved= say that the rest is still there
    s = open_source(
        tmp_path / "v1.metadata.json", allow=["memory://wh/t"], moved={"memory://wh/t": "memory://wh/t"}
    ).storage
    assert s.read("memory://wh/t/metadata/snap-1.avro", kind="manifest-list") == b"list"


def test_a_remote_zip(memory: Any) -> None:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("t/metadata/v1.metadata.json", table("s3://b/t"))
        archive.writestr("t/metadata/snap-1.avro", b"list")
    put(memory, {"/mail/x.zip": buffer.getvalue()})
    opened = open_source("memory://mail/x.zip")
    assert opened.storage.read("s3://b/t/metadata/snap-1.avro", kind="manifest-list") == b"list"
    opened.storage.close()


def test_the_hint_saves_listing(memory: Any) -> None:
    put(memory, {"/wh/t/metadata/version-hint.text": b"1", "/wh/t/metadata/v1.metadata.json": table("memory://wh/t")})
    opened = open_source("memory://wh/t")
    assert [r for r in opened.storage.reads if r.kind == "list"] == []
    assert [r.location.rpartition("/")[2] for r in opened.storage.reads.of_kind("metadata")] == [
        "version-hint.text",
        "v1.metadata.json",
    ]


# S3 -------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, str]]:
    """A server that speaks S3, with a table in `bucket`; its PyIceberg properties."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    properties = {
        "s3.endpoint": f"http://{host}:{port}",
        "s3.access-key-id": "testing",
        "s3.secret-access-key": "testing",
        "s3.region": "us-east-1",
    }
    client = boto3.client(
        "s3",
        endpoint_url=properties["s3.endpoint"],
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
        region_name="us-east-1",
    )
    client.create_bucket(Bucket="bucket")
    files = {
        "00000-a.metadata.json": table("s3a://bucket/wh/t"),
        "00001-b.metadata.json": table("s3a://bucket/wh/t", **{"last-updated-ms": 1_800_000_000_000}),
        "snap-1.avro": b"0123456789",
    }
    for name, data in files.items():
        client.put_object(Bucket="bucket", Key=f"wh/t/metadata/{name}", Body=data)
    yield properties
    server.stop()


@pytest.fixture(params=["pyiceberg.io.pyarrow.PyArrowFileIO", "pyiceberg.io.fsspec.FsspecFileIO"])
def properties(request: pytest.FixtureRequest, s3: dict[str, str]) -> dict[str, str]:
    return {**s3, "py-io-impl": request.param}


def test_s3_through_pyiceberg(properties: dict[str, str]) -> None:
    opened = open_source("s3://bucket/wh/t", properties=properties)
    s = opened.storage
    assert opened.version == 1 and not s.moved
    assert opened.metadata_location == "s3a://bucket/wh/t/metadata/00001-b.metadata.json"
    assert s.read("s3a://bucket/wh/t/metadata/snap-1.avro", kind="manifest-list", offset=3, length=4) == b"3456"
    assert s.read("s3n://bucket/wh/t/metadata/snap-1.avro", kind="manifest-list") == b"0123456789"
    info = s.stat("s3a://bucket/wh/t/metadata/snap-1.avro")
    assert info.size == 10
    assert [f.location.rpartition("/")[2] for f in s.list("s3a://bucket/wh/t", recursive=True)] == [
        "00000-a.metadata.json",
        "00001-b.metadata.json",
        "snap-1.avro",
    ]
    assert [v.number for v in list_versions(opened)] == [0, 1]
    with pytest.raises(FileMissingError, match=r"gone.avro"):
        s.read("s3a://bucket/wh/t/metadata/gone.avro", kind="manifest")
    assert not s.exists("s3a://bucket/wh/t/metadata/gone.avro")
    for length in (11, 1 << 60):
        with pytest.raises(FormatError, match="ends too early"):
            s.read("s3a://bucket/wh/t/metadata/snap-1.avro", kind="manifest", length=length)
    with pytest.raises(OutsideRootsError):
        s.read("s3://other/wh/t/metadata/snap-1.avro", kind="manifest")
    with pytest.raises((MetadataNotFoundError, FileMissingError)):
        open_source("s3://bucket/wh/none", properties=properties)
    with pytest.raises((MetadataNotFoundError, FileMissingError)):
        open_source("s3://nosuchbucket/t", properties=properties)
    with pytest.raises(FileMissingError, match="v9"):
        open_source("s3://bucket/wh/t/metadata/v9.metadata.json", properties=properties)


def test_secrets_do_not_show(properties: dict[str, str]) -> None:
    secret = {**properties, "s3.secret-access-key": "testing-very-secret"}
    opened = open_source("s3://bucket/wh/t/metadata/00001-b.metadata.json", properties=secret)
    assert "very-secret" not in repr(opened) + opened.storage.identity + repr(opened.source) + repr(
        opened.storage.reads
    )


# 403 is not 404 -------------------------------------------------------------------------------------------------------


def client_error(code: str, status: int) -> Exception:
    from botocore.exceptions import ClientError  # type: ignore[import-untyped]

    error: Exception = ClientError(
        {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "GetObject"
    )
    return error


def chained(outer: Exception, inner: Exception) -> Exception:
    outer.__cause__ = inner
    return outer


class HttpError(Exception):
    def __init__(self, status: int) -> None:
        self.status = status


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (client_error("AccessDenied", 403), AccessDeniedError),
        (client_error("403", 403), AccessDeniedError),
        (client_error("ExpiredToken", 400), AccessDeniedError),
        (client_error("NoSuchKey", 404), FileMissingError),
        (client_error("404", 404), FileMissingError),
        (client_error("SlowDown", 503), StorageError),
        (PermissionError(13, "Forbidden"), AccessDeniedError),
        (FileNotFoundError(2, "x"), FileMissingError),
        (NotADirectoryError(20, "x"), FileMissingError),
        (chained(OSError("failed"), client_error("AccessDenied", 403)), AccessDeniedError),
        (
            OSError("When reading information for key 'k': AWS Error ACCESS_DENIED during HeadObject operation"),
            AccessDeniedError,
        ),
        (OSError("When getting information: AWS Error UNKNOWN (HTTP status 403) during HeadObject"), AccessDeniedError),
        (OSError("AWS Error NO_SUCH_BUCKET during GetObject operation"), FileMissingError),
        (OSError("AWS Error NETWORK_CONNECTION during GetObject: curlCode: 7"), StorageError),
        (HttpError(403), AccessDeniedError),
        (HttpError(404), FileMissingError),
        (HttpError(500), StorageError),
        (TimeoutError("slow"), StorageError),
        (ValueError("embedded null byte"), StorageError),
        (chained(OSError("failed"), ModuleNotFoundError("No module named 'a.b'", name="a.b")), MissingDependencyError),
    ],
)
def test_403_is_distinguished_from_404(error: Exception, kind: type[Exception]) -> None:
    made = translate(error, "s3://b/x", "/real/x")
    assert type(made) is kind
    assert "s3://b/x" in str(made) and "/real/x" in str(made)


def test_a_refusal_is_raised_by_every_question(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    put(memory, {"/wh/t/metadata/v1.metadata.json": table("memory://wh/t"), "/wh/t/metadata/snap-1.avro": b"list"})
    s = open_source("memory://wh/t").storage

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise client_error("AccessDenied", 403)

    for name in ("cat_file", "info", "find", "ls"):
        monkeypatch.setattr(type(memory), name, refuse)
    location = "memory://wh/t/metadata/snap-1.avro"
    for ask in (
        lambda: s.read(location, kind="manifest"),
        lambda: s.stat(location),
        lambda: s.exists(location),
        lambda: s.list("memory://wh/t"),
    ):
        with pytest.raises(AccessDeniedError, match="refused"):
            ask()
    with pytest.raises(AccessDeniedError):
        open_source("memory://wh/t")


def test_s3_refuses_with_403(s3: dict[str, str]) -> None:
    """A server that answers 403 to everything, as S3 does to wrong keys."""
    body = b'<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>'
    with answering(lambda path: (403, "application/xml", body)) as url:
        for io in ("pyiceberg.io.pyarrow.PyArrowFileIO", "pyiceberg.io.fsspec.FsspecFileIO"):
            refused = {**s3, "s3.endpoint": url, "py-io-impl": io}
            for source in ("s3://bucket/t", "s3://bucket/t/metadata/v1.metadata.json"):
                with pytest.raises(AccessDeniedError, match="refused"):
                    open_source(source, properties=refused)


def test_googles_store_is_given_up_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iceexplore.storage.stores._remote._GCS_PATIENCE", timedelta(seconds=1))
    given = {
        "gcs.service.host": "http://127.0.0.1:9",
        "gcs.oauth2.token": "x",
        "gcs.oauth2.token-expires-at": "32503680000000",
    }
    backend = remote_backend("gs://b/t", given)
    assert isinstance(backend, FileIOBackend)
    assert backend._arrow("gs://b/t")[0].__reduce__()[1][0]["retry_time_limit"] == timedelta(seconds=1)
    with pytest.raises(StorageError, match="gs://b/t"):
        open_source("gs://b/t/metadata/v1.metadata.json", properties=given)


def test_no_credentials_for_googles_store() -> None:
    error = OSError("google::cloud::Status(UNAVAILABLE: Could not create a OAuth2 access token to authenticate ...)")
    assert "GOOGLE_APPLICATION_CREDENTIALS" in str(translate(error, "gs://b/x", "gs://b/x"))
