"""Decode ORC files, and footers of Parquet and ORC, in a separate process.

Arrow's ORC library and its accessors of Parquet footers trust their input: a changed byte can crash the process, which
may be the kernel of the user's notebook. So a helper process decodes such files. If it dies, the file is reported as
damaged, and the next file gets a new process.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from iceexplore.errors import FormatError, MemoryLimitError, UnsupportedError
from iceexplore.formats._foreign import foreign
from iceexplore.storage import TemporaryFolder, temporary_room

if TYPE_CHECKING:
    from iceexplore.storage import Budget, RangeFile, Storage

__all__ = ["Questions", "orc_footer", "orc_rows", "parquet_footer", "parquet_questions"]

Questions: TypeAlias = Callable[..., tuple[dict[str, Any], pa.Schema]]

#: Number of seconds after which the library is assumed to be in an endless loop, and the helper process is ended.
_PATIENCE = 300.0
_MAX_FOOTER = 1 << 28
#: Memory limits of the process in bytes: what it needs without the rows of a file, and what decoding a footer may take.
_MEMORY = 1 << 28
_FOOTER_MEMORY = 1 << 30
#: Exit code of a process that exceeded its memory limit, as in `_worker`.
_TOO_MUCH = 77
#: Bytes of the first read, at the end of the file: most footers fit into it.
_NEAR = 64 * 1024
_SMALLEST = 12


class _Helper:
    """The helper process, started when needed; handles one request at a time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.process: subprocess.Popen[bytes] | None = None
        self.owner = 0

    def ask(self, request: dict[str, Any], location: str, memory: int = _FOOTER_MEMORY) -> tuple[dict[str, Any], bytes]:
        request["memory"] = memory
        with self.lock:
            process = self._running()
            timer = threading.Timer(_PATIENCE, process.kill)
            timer.start()
            try:
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write(json.dumps(request).encode() + b"\n")
                process.stdin.flush()
                line = process.stdout.readline()
                head = json.loads(line)
                length = head.get("length", 0)
                body = process.stdout.read(length)
                if len(body) != length:
                    raise EOFError
                if head.get("memory"):
                    self.stop()  # the next file gets a fresh process
            except (OSError, ValueError, EOFError):
                if self.stop(1.0) == _TOO_MUCH:
                    raise MemoryLimitError(f"{location} exceeds the memory limit of its reader") from None
                text = (
                    f"the file makes its reader crash, hang or take more than {memory >> 20:,} MiB of memory "
                    "(iceexplore.memory_limit('8 GiB') raises the limit)"
                )
                raise FormatError(text, location=location) from None
            finally:
                timer.cancel()
        if "error" in head:
            if head.get("memory"):
                raise MemoryLimitError(f"{location}: {head['error']}")
            if head["unsupported"]:
                raise UnsupportedError(f"{location}: {head['error']}")
            raise FormatError(f"the file cannot be read: {head['error']}", location=location)
        return head["info"], body

    def _running(self) -> subprocess.Popen[bytes]:
        if self.owner != os.getpid():  # after a fork, the pipes belong to the parent process
            self.process, self.owner = None, os.getpid()
        if self.process is None or self.process.poll() is not None:
            worker = Path(__file__).with_name("_worker.py")
            # The helper can import what iceexplore can, but nothing from the working directory (an empty entry of
            # sys.path, dropped here) or from the script's own folder (which -P keeps off the path).
            env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
            # Arrow's default allocator reserves 1 GiB at once, which counts against the process's limit.
            env["ARROW_DEFAULT_MEMORY_POOL"] = "system"
            self.process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own file
                [sys.executable, "-P", str(worker)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env
            )
        return self.process

    def stop(self, patience: float = 0.0) -> int | None:
        """End the process; return its exit code, None if there is no process."""
        process, self.process = self.process, None
        if process is None or self.owner != os.getpid():
            return None
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)  # wait, because the pipes close shortly before the process ends
        process.kill()
        code = process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        return code


_HELPER = _Helper()
atexit.register(_HELPER.stop)


def orc_rows(storage: Storage, location: str, *, kind: str, budget: Budget, file: RangeFile | None = None) -> pa.Table:
    """Return every row of an ORC file, as read by Arrow. Raises the same errors as `read_rows`."""
    limit = budget.limit
    with storage.local_path(location, kind=kind, file=file) as path:
        try:
            # Allow twice the rows' limit: ORC's reader has a stripe in memory twice, in its own vectors and in Arrow's.
            request = {"op": "orc-rows", "path": str(path), "limit": limit}
            _, body = _HELPER.ask(request, location, _MEMORY + 2 * limit)
        except MemoryLimitError:
            raise budget.refusal("the rows") from None
    with foreign("the ORC file", location), pa.ipc.open_stream(body) as stream:
        return stream.read_all()


def orc_footer(storage: Storage, location: str, file: RangeFile | None = None) -> tuple[dict[str, Any], pa.Schema]:
    """Return the contents of an ORC footer, and the schema. Only the end of the file is read."""
    return _footer(storage, location, "orc-footer", b"ORC", _orc_tail, 0, file)


def parquet_footer(storage: Storage, location: str, max_chunks: int) -> tuple[dict[str, Any], pa.Schema]:
    """Return the contents of a Parquet footer, and the schema. Only the end of the file is read."""
    return _footer(storage, location, "parquet-footer", b"PAR1", _parquet_tail, max_chunks, None)


@contextmanager
def parquet_questions(
    storage: Storage, location: str, limit: int, *, size: int | None = None, file: RangeFile | None = None
) -> Iterator[Questions]:
    """Yield a function that answers requests (operation, arguments) about one Parquet footer, which is read once."""
    with _footer_file(storage, location, b"PAR1", _parquet_tail, size, file) as path:

        def ask(op: str, **more: Any) -> tuple[dict[str, Any], pa.Schema]:
            return _asked({"op": op, "path": path, "limit": limit, "more": more}, location)

        yield ask


def _footer(
    storage: Storage,
    location: str,
    op: str,
    magic: bytes,
    length_of: Callable[[bytes], int],
    limit: int,
    file: RangeFile | None,
) -> tuple[dict[str, Any], pa.Schema]:
    with _footer_file(storage, location, magic, length_of, None, file) as path:
        return _asked({"op": op, "path": path, "limit": limit}, location)


def _asked(request: dict[str, Any], location: str) -> tuple[dict[str, Any], pa.Schema]:
    info, body = _HELPER.ask(request, location)
    with foreign("the footer", location), pa.ipc.open_stream(body) as stream:
        return info, stream.schema


@contextmanager
def _footer_file(
    storage: Storage,
    location: str,
    magic: bytes,
    length_of: Callable[[bytes], int],
    stated: int | None,
    given: RangeFile | None,
) -> Iterator[str]:
    """Yield the path of a sparse copy for the helper, with the footer but without the data."""
    with storage.open(location, kind="data-footer", size=stated) if given is None else nullcontext(given) as file:
        size = file.size
        near = min(size, _NEAR)
        file.seek(size - near)
        tail = file.read(near)
        wanted = length_of(tail) if near >= _SMALLEST else 0
        if not 0 < wanted <= min(size, _MAX_FOOTER):
            raise FormatError(
                f"a footer of {wanted:,} bytes in a file of {size:,}: damaged, truncated or another format",
                location=location,
                offset=max(0, size - 1),
                code="file-truncated",
            )
        if wanted > near:
            file.seek(size - wanted)
            tail = file.read(wanted)
        what = f"the footer of {location}"
        folder = TemporaryFolder("copy", what)
        try:
            path = os.path.join(folder.path, "footer")
            with temporary_room(what), open(path, "wb") as copy:
                copy.write(magic)
                copy.truncate(size)
                copy.seek(size - len(tail))
                copy.write(tail)
            yield path
        finally:
            folder.remove()


def _parquet_tail(end: bytes) -> int:
    """Return the size of a Parquet footer, including its length field and magic; 0 if the magic is missing."""
    return int.from_bytes(end[-8:-4], "little") + 8 if end.endswith((b"PAR1", b"PARE")) else 0


def _orc_tail(end: bytes) -> int:
    """Return the size of an ORC file tail (ORC specification, "File Tail"); 0 if it is damaged."""
    length = end[-1]
    if length + 1 > len(end):
        return 0
    numbers = _varint_fields(end[-1 - length : -1])
    return numbers.get(1, 0) + numbers.get(5, 0) + length + 1  # footerLength, metadataLength


def _varint_fields(data: bytes) -> dict[int, int]:
    """Return the varint fields of a Protocol Buffers message, up to the first unsupported one."""
    out: dict[int, int] = {}
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while at < len(data) and shift < 64:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
        return value

    while at < len(data):
        key = number()
        if key & 7 == 0:
            out[key >> 3] = number()
        elif key & 7 == 2:
            at += number()
        else:
            break
    return out
