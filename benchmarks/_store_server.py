"""A small S3 server on this machine that answers after a delay and counts requests, to measure remote stores exactly.

It keeps objects in memory and supports what the clients of Arrow, s3fs and boto3 request: GET with a range, HEAD,
listings, PUT and multipart uploads. Signatures are not checked. A single thread answers all requests; its own time
(some 10,000 requests per second) is negligible beside a delay of 50 ms. moto takes milliseconds of processor time per
request, which would be measured instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import threading
import urllib.parse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any
from xml.sax.saxutils import escape

__all__ = ["Counts", "Store", "elsewhere", "properties", "running"]

_CLOCK = formatdate(usegmt=True)


@dataclass
class Counts:
    """What was asked since the last `Store.reset`.

    Attributes
    ----------
    methods
        Requests by method; a listing is a ``LIST``.
    keys
        Requests by method and key.
    received
        Bytes of objects that were sent to clients.
    most
        Requests being answered at once, at most.
    """

    methods: Counter[str] = field(default_factory=Counter)
    keys: Counter[tuple[str, str]] = field(default_factory=Counter)
    received: int = 0
    most: int = 0

    @property
    def requests(self) -> int:
        """All of them."""
        return sum(self.methods.values())


class Store:
    """Objects by bucket and key (``bucket/key``), and the server that shows them.

    Parameters
    ----------
    delay
        Seconds before a request is answered.
    """

    def __init__(self, delay: float = 0.0) -> None:
        self.delay = delay
        self.objects: dict[str, bytes] = {}
        self.counts = Counts()
        self._parts: dict[str, dict[int, bytes]] = {}
        self._now = 0

    def reset(self) -> None:
        """Count anew."""
        self.counts = Counts()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while line := await reader.readline():
                method, target, _ = line.decode("latin-1").split(" ", 2)
                headers: dict[str, str] = {}
                while (text := (await reader.readline()).decode("latin-1").strip()) != "":
                    name, _, value = text.partition(":")
                    headers[name.lower()] = value.strip()
                if headers.get("expect"):
                    writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                body = await _body(reader, headers)
                status, more, data = await self._timed(method, target, headers, body)
                length = more.pop("Content-Length", str(len(data)))
                lines = [f"HTTP/1.1 {status}", f"Content-Length: {length}", *(f"{k}: {v}" for k, v in more.items())]
                writer.write("\r\n".join([*lines, "", ""]).encode() + (b"" if method == "HEAD" else data))
                await writer.drain()
        writer.close()

    async def _timed(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Any:
        url = urllib.parse.urlsplit(target)
        key = urllib.parse.unquote(url.path).strip("/")
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        if key == "_counts":
            counts, self.counts = self.counts, Counts()
            shown = f"{counts.requests} {counts.most} {counts.received} " + ",".join(
                f"{n}={c}" for n, c in sorted(counts.methods.items())
            )
            return "200 OK", {}, shown.encode()
        name = "LIST" if method == "GET" and ("list-type" in query or "prefix" in query) else method
        self.counts.methods[name] += 1
        self.counts.keys[name, key] += 1
        self._now += 1
        self.counts.most = max(self.counts.most, self._now)
        if self.delay:
            await asyncio.sleep(self.delay)
        self._now -= 1
        status, more, data = self._answer(name, key, query, headers, body)
        self.counts.received += len(data) if name == "GET" else 0
        return status, more, data

    def _answer(
        self, method: str, key: str, query: dict[str, str], headers: dict[str, str], body: bytes
    ) -> tuple[str, dict[str, str], bytes]:
        if method == "LIST":
            return "200 OK", {"Content-Type": "application/xml"}, self._listing(key, query)
        if method in ("GET", "HEAD"):
            found = self.objects.get(key)
            if found is None:
                return "404 Not Found", {"Content-Type": "application/xml"}, _xml("Error", Code="NoSuchKey")
            about = {"ETag": f'"{len(found):x}"', "Last-Modified": _CLOCK, "Accept-Ranges": "bytes"}
            if method == "HEAD":
                return "200 OK", {**about, "Content-Length": str(len(found))}, b""
            return _ranged(found, headers.get("range"), about)
        if method == "PUT" and "partNumber" in query:
            self._parts[query["uploadId"]][int(query["partNumber"])] = body
            return "200 OK", {"ETag": '"part"'}, b""
        if method == "PUT":
            self.objects[key] = body
            return "200 OK", {"ETag": f'"{len(body):x}"'}, b""
        if method == "POST" and "uploads" in query:
            number = f"upload{len(self._parts)}"
            self._parts[number] = {}
            return "200 OK", {"Content-Type": "application/xml"}, _xml("InitiateMultipartUploadResult", UploadId=number)
        if method == "POST" and "uploadId" in query:
            self.objects[key] = b"".join(part for _, part in sorted(self._parts[query["uploadId"]].items()))
            return "200 OK", {"Content-Type": "application/xml"}, _xml("CompleteMultipartUploadResult", ETag="whole")
        if method == "DELETE":
            self.objects.pop(key, None)
            return "204 No Content", {}, b""
        return "400 Bad Request", {}, b""

    def _listing(self, bucket: str, query: dict[str, str]) -> bytes:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        names = sorted(k.partition("/")[2] for k in self.objects if k.partition("/")[0] == bucket.strip("/"))
        names = [n for n in names if n.startswith(prefix)]
        folders: list[str] = []
        if delimiter:
            folders = sorted({prefix + n[len(prefix) :].split("/")[0] + "/" for n in names if "/" in n[len(prefix) :]})
            names = [n for n in names if "/" not in n[len(prefix) :]]
        files = "".join(
            f"<Contents><Key>{escape(n)}</Key><Size>{len(self.objects[f'{bucket}/{n}'])}</Size>"
            "<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>x</ETag></Contents>"
            for n in names
        )
        inner = "".join(f"<CommonPrefixes><Prefix>{escape(f)}</Prefix></CommonPrefixes>" for f in folders)
        count = len(names) + len(folders)
        head = f"<Name>{bucket}</Name><KeyCount>{count}</KeyCount><IsTruncated>false</IsTruncated>"
        return f"<ListBucketResult>{head}{files}{inner}</ListBucketResult>".encode()


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    """What comes with a request, without the signed frames of ``aws-chunked``."""
    if headers.get("transfer-encoding") == "chunked":
        parts = []
        while size := int((await reader.readline()).split(b";")[0], 16):
            parts.append(await reader.readexactly(size))
            await reader.readline()
        while (await reader.readline()).strip():
            pass
        data = b"".join(parts)
    else:
        data = await reader.readexactly(int(headers.get("content-length", 0)))
    if "aws-chunked" not in headers.get("content-encoding", "") and "x-amz-decoded-content-length" not in headers:
        return data
    out, at = [], 0
    while at < len(data):
        end = data.index(b"\r\n", at)
        size = int(data[at:end].split(b";")[0], 16)
        out.append(data[end + 2 : end + 2 + size])
        at = end + 2 + size + 2
        if not size:
            break
    return b"".join(out)


def _ranged(found: bytes, asked: str | None, about: dict[str, str]) -> tuple[str, dict[str, str], bytes]:
    if not asked:
        return "200 OK", about, found
    first, _, last = asked.removeprefix("bytes=").partition("-")
    begin = max(0, len(found) - int(last)) if not first else int(first)
    end = len(found) if not first or not last else min(len(found), int(last) + 1)
    if begin >= len(found):
        return "416 Range Not Satisfiable", {"Content-Type": "application/xml"}, _xml("Error", Code="InvalidRange")
    return "206 Partial Content", {**about, "Content-Range": f"bytes {begin}-{end - 1}/{len(found)}"}, found[begin:end]


def _xml(name: str, **children: str) -> bytes:
    inner = "".join(f"<{k}>{v}</{k}>" for k, v in children.items())
    return f'<?xml version="1.0"?><{name}>{inner}</{name}>'.encode()


def properties(port: int) -> dict[str, str]:
    """What PyIceberg's FileIO needs to find the server."""
    return {
        "s3.endpoint": f"http://127.0.0.1:{port}",
        "s3.access-key-id": "testing",
        "s3.secret-access-key": "testing",
        "s3.region": "us-east-1",
    }


@contextlib.contextmanager
def running(store: Store) -> Iterator[int]:
    """Serve from a thread of this process; the port."""
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(store.serve, "127.0.0.1", 0, backlog=256))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        asyncio.run_coroutine_threadsafe(_ended(server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _ended(server: asyncio.Server) -> None:
    """Take no more connections, and let go of those there are."""
    server.close()
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


@contextlib.contextmanager
def elsewhere(delay: float) -> Iterator[int]:
    """Serve from a process of its own, which takes no time from those that are measured; the port."""
    command = [sys.executable, __file__, str(delay)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.stdin.close()
            process.wait(10)


def _main() -> None:
    with running(Store(float(sys.argv[1]))) as port:
        print(port, flush=True)
        sys.stdin.read()  # until whoever started it lets go


if __name__ == "__main__":
    _main()
