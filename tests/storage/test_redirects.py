"""A server's redirect leads to no other host, unless the person allows it."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.errors import OutsideRootsError
from iceexplore.storage import CACHE
from iceexplore.storage._storage import Storage
from iceexplore.storage.stores._redirects import origin
from iceexplore.storage.stores._remote import remote_backend

pytest.importorskip("aiohttp")
SECRET = b"internal: hunter2"


class Server:
    """Serves files of a folder, or the answers that it is given, and notes what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[str] = []
        self.redirect: Callable[[str], str | None] = lambda path: None
        self.code = 302
        self.host = ""

    @contextmanager
    def run(self) -> Iterator[Server]:
        mine = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                mine.asked.append(self.path)
                target, path = mine.redirect(self.path), mine.folder / self.path.lstrip("/").partition("?")[0]
                if target is not None:
                    self.send_response(mine.code)
                    self.send_header("Location", target)
                    body = b"elsewhere"
                elif path.is_file():
                    body = path.read_bytes()
                    self.send_response(200)
                else:
                    body = b"nothing"
                    self.send_response(404)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_HEAD = do_GET

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"http://127.0.0.1:{server.server_port}"
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "a" / "t"
    lab = ix.create(path, {"x": "long"})
    lab.append({"x": [1, 2, 3]})
    return path


@pytest.fixture
def servers(tmp_path: Path, table: Path) -> Iterator[tuple[Server, Server]]:
    (tmp_path / "b").mkdir()
    with Server(tmp_path / "a").run() as first, Server(tmp_path / "b").run() as second:
        yield first, second
    CACHE.clear()


def metadata_of(table: Path) -> str:
    return sorted(p.name for p in (table / "metadata").glob("v*.json"))[-1]


def opened(server: Server, table: Path, **more: Any) -> ix.Table:
    moved = {str(table): f"{server.host}/t", table.as_uri(): f"{server.host}/t"}
    return ix.open(f"{server.host}/t/metadata/{metadata_of(table)}", moved=moved, **more)


def test_a_table_over_http_is_read(servers: tuple[Server, Server], table: Path) -> None:
    assert opened(servers[0], table).to_arrow()["x"].to_pylist() == [1, 2, 3]


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("name", ["snap-", ".parquet"])
def test_a_redirect_to_another_host_is_refused_by_name(
    servers: tuple[Server, Server], table: Path, tmp_path: Path, code: int, name: str
) -> None:
    first, second = servers
    for place in (second.folder / "latest", second.folder / "t"):
        place.write_bytes(SECRET)
    first.code = code
    first.redirect = lambda path: f"{second.host}/latest" if name in path else None
    t = opened(first, table)
    with pytest.raises(ix.IceexploreError, match=rf"allow=\['{second.host}'\]") as error:
        t.to_arrow()
    assert "hunter2" not in str(error.value)
    assert "hunter2" not in str(list(t.problems))
    t.bundle(tmp_path / "b.zip", deletes=True)
    with zipfile.ZipFile(tmp_path / "b.zip") as bundle:
        assert not any(SECRET in bundle.read(n) for n in bundle.namelist())
    assert second.asked == []
    if name == ".parquet":
        assert isinstance(error.value, OutsideRootsError)
        assert set(t.verify()["code"]) == {"outside-roots"}
    else:
        assert {p.code for p in t.problems} == {"outside-roots"}
    assert second.asked == []


def test_the_metadata_file_itself_is_not_fetched_from_elsewhere(servers: tuple[Server, Server], table: Path) -> None:
    first, second = servers
    first.redirect = lambda path: f"{second.host}{path}"
    with pytest.raises(OutsideRootsError) as error:
        opened(first, table)
    assert error.value.allow == (second.host,)
    assert second.asked == []


def test_what_is_allowed_is_followed_and_no_host_beyond(
    servers: tuple[Server, Server], table: Path, tmp_path: Path
) -> None:
    first, second = servers
    second.folder = first.folder
    first.redirect = lambda path: f"{second.host}{path}" if ".parquet" in path else None
    assert opened(first, table, allow=second.host).to_arrow()["x"].to_pylist() == [1, 2, 3]
    assert second.asked
    with Server(tmp_path).run() as third:
        second.redirect = lambda path: f"{third.host}/x"
        with pytest.raises(OutsideRootsError, match=third.host):
            opened(first, table, allow=second.host).to_arrow()
        assert third.asked == []


def test_a_redirect_on_the_same_host_is_followed(servers: tuple[Server, Server], table: Path) -> None:
    first, _ = servers
    first.redirect = lambda path: path.replace("/t/", "/./t/") + "?again" if "?" not in path else None
    assert opened(first, table).count() == 3


@pytest.mark.parametrize(
    "target", ["//{host}/x", "http://user:pw@{host}/x", "http://[bad/x", "file:///etc/passwd", "https://127.0.0.1/x"]
)
def test_targets_of_every_spelling(servers: tuple[Server, Server], table: Path, target: str) -> None:
    first, second = servers
    text = target.format(host=second.host.removeprefix("http://"))
    first.redirect = lambda path: text if "snap-" in path else None
    t = opened(first, table)
    assert t.inspect.files.arrow().num_rows == 0
    assert t.problems and "pw" not in str(list(t.problems))
    assert second.asked == []


def test_webhdfs_asks_no_other_host(servers: tuple[Server, Server]) -> None:
    pytest.importorskip("requests")
    first, second = servers
    first.redirect = lambda path: f"{second.host}/datanode"
    host, _, port = first.host.removeprefix("http://").partition(":")
    asked: list[tuple[str, str]] = []

    def check(here: str, there: str) -> None:
        asked.append((here, there))
        raise OutsideRootsError("no")

    backend = remote_backend(f"webhdfs://{host}:{port}/t/x", {"host": host, "port": port}, check_redirect=check)
    with pytest.raises(OutsideRootsError):
        backend.read("/t/x", 0, 5)
    assert asked and asked[0][1] == f"{second.host}/datanode"
    assert second.asked == []


def test_origins() -> None:
    assert origin("http://A.example/x") == origin("http://a.example:80/y?z")
    assert origin("https://a.example/") != origin("http://a.example/")
    assert origin("http://a.example:81/") != origin("http://a.example/")
    assert origin("http://a@h/x") == origin("http://h/x")
    assert origin("http://[bad/x") != origin("http://[bad/y")


def test_a_session_does_not_keep_its_storage(servers: tuple[Server, Server]) -> None:
    import gc
    import weakref

    storage = Storage(f"{servers[0].host}/t")
    storage.find(f"{servers[0].host}/t/metadata")
    gone = weakref.ref(storage)
    del storage
    gc.collect()
    assert gone() is None
