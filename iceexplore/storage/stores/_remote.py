"""Storage that is not the local disk: fsspec file systems and PyIceberg's FileIO."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from iceexplore.errors import MissingDependencyError, StorageError, UnsupportedError
from iceexplore.storage.stores._backend import Backend, Entry, Handle, Ranges
from iceexplore.storage.stores._redirects import guard_session, traced_client

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem
    from pyarrow.fs import FileInfo
    from pyiceberg.io import FileIO, InputFile, InputStream

__all__ = ["FileIOBackend", "FsspecBackend", "remote_backend"]

# The schemes of PyIceberg's FileIO (pyiceberg.io.SCHEMA_TO_FILE_IO), which takes properties such as `s3.endpoint`.
_PYICEBERG_SCHEMES = frozenset({"s3", "gs", "oss", "hdfs", "viewfs", "abfs", "abfss", "wasb", "wasbs", "hf"})
# Requests for more bytes are checked against the file's size first: the length may come from damaged metadata.
_CHECK_ABOVE = 64 * 1024 * 1024
# Arrow's Google client retries for 15 minutes by default, even without credentials or network.
_GCS_PATIENCE = timedelta(seconds=15)


def remote_backend(
    place: str, properties: Mapping[str, str], *, check_redirect: Callable[[str, str], None] | None = None
) -> Backend:
    """Return the backend for a canonical location with a scheme.

    Parameters
    ----------
    check_redirect
        Called with a URL and the target of its redirect, before it is followed; raises to refuse.

    Raises
    ------
    MissingDependencyError
        The file system's package is not installed.
    StorageError
        No file system knows the scheme, or it cannot be set up with these properties.
    """
    scheme = place.partition("://")[0]
    given = {k: v for k, v in properties.items() if not k.startswith("iceexplore.")}
    if scheme in _PYICEBERG_SCHEMES or "py-io-impl" in given:
        return FileIOBackend(_file_io(place, given))
    import fsspec

    try:
        options: dict[str, Any] = dict(given)
        if check_redirect is not None and _is_http(fsspec.get_filesystem_class(scheme)):
            # A separate instance: the allowed hosts differ between tables.
            client = traced_client(options.get("client_kwargs"), check_redirect)
            options |= {"client_kwargs": client, "skip_instance_cache": True}
        file_system = fsspec.filesystem(scheme, **options)
    except ImportError as e:
        raise MissingDependencyError(f"{place}: {e}") from e
    except (ValueError, TypeError) as e:
        raise StorageError(f"{place}: no file system for {scheme}:// with these properties: {e}") from e
    session = getattr(file_system, "session", None)
    if check_redirect is not None and hasattr(session, "get_redirect_target"):  # requests: WebHDFS
        guard_session(session, check_redirect)
    return FsspecBackend(file_system, f"fsspec:{scheme}:{_digest(given)}")


def _is_http(kind: type) -> bool:
    return any(base.__name__ == "HTTPFileSystem" for base in kind.__mro__)


def _file_io(place: str, properties: Mapping[str, str]) -> FileIO:
    try:
        from pyiceberg.io import load_file_io

        return load_file_io(dict(properties), place)
    except ImportError as e:
        raise MissingDependencyError(f"{place}: PyIceberg's FileIO needs a package that is not installed: {e}") from e
    except ValueError as e:
        raise StorageError(f"{place}: {e}") from e


def _one_request(file_system: AbstractFileSystem) -> dict[str, int]:
    """Return options to read a whole file in one request: s3fs would request its size first and split it."""
    if not hasattr(file_system, "max_concurrency"):
        return {}
    parameters = inspect.signature(file_system._cat_file).parameters
    return {"max_concurrency": 1} if "max_concurrency" in parameters else {}


class FsspecBackend:
    """An fsspec file system."""

    def __init__(self, file_system: AbstractFileSystem, identity: str) -> None:
        self._fs = file_system
        self._whole = _one_request(file_system)
        protocol = getattr(file_system, "protocol", ())
        #: HTTP servers may ignore a range and send the whole file.
        self._may_ignore_ranges = bool({"http", "https"} & {*([protocol] if isinstance(protocol, str) else protocol)})
        self.identity = identity

    def read(self, real: str, offset: int, length: int | None) -> bytes:
        """Read bytes by one ranged request."""
        if length is None:
            return bytes(self._fs.cat_file(real, start=offset or None, **({} if offset else self._whole)))
        if length == 0:
            return b""
        if length > _CHECK_ABOVE:
            size = self.stat(real).size
            length = length if size is None else min(length, max(0, size - offset))
        data = bytes(self._fs.cat_file(real, start=offset, end=offset + length))
        if len(data) == length or not self._may_ignore_ranges or (not offset and len(data) < length):
            return data
        # Is it the whole file, or a range at the end that is shorter than requested?
        if len(data) > length or len(data) == self.stat(real).size:
            return data[offset : offset + length]
        return data

    def open(self, real: str) -> Handle:
        """Return a handle without opening: fsspec's files request the size first, and read ahead."""
        return Ranges(self, real)

    def stat(self, real: str) -> Entry:
        """Return the entry from fsspec's ``info``."""
        return self._entry(self._fs.info(real), real)

    def list(self, real: str, recursive: bool, details: bool = True) -> list[Entry]:
        """List the folder now: fsspec's cached listings are dropped first."""
        self._fs.invalidate_cache()
        if recursive:
            found = self._fs.find(real, detail=True).values()
        else:
            found = self._fs.ls(real, detail=True)
        prefix = real.partition("://")[0]
        entries = (self._entry(item, self._full(prefix, real, item["name"])) for item in found)
        return sorted((e for e in entries if e.real.rstrip("/") != real.rstrip("/")), key=lambda e: e.real)

    def _full(self, scheme: str, folder: str, name: str) -> str:
        if "://" in name:
            return name
        # The name is fsspec's form of the path: keep the folder's spelling and append the rest.
        base = str(self._fs._strip_protocol(folder)).rstrip("/")
        if name.startswith(base + "/"):
            return folder.rstrip("/") + name[len(base) :]
        return f"{scheme}://{name}"

    def _entry(self, info: Mapping[str, Any], real: str) -> Entry:
        if info.get("type") == "directory":
            return Entry(real, None, is_folder=True)
        etag = info.get("ETag") or info.get("etag")
        return Entry(real, info.get("size"), str(etag).strip('"') if etag else None, _modified(info))


class FileIOBackend:
    """A PyIceberg FileIO: the catalog's own, with its credentials, or one created from properties."""

    def __init__(self, file_io: FileIO) -> None:
        self._io = file_io
        self._bounded: dict[str, Any] = {}
        self._systems: dict[tuple[str, str], Any] = {}
        kind = type(file_io)
        self.identity = f"{kind.__module__}.{kind.__qualname__}:{_digest(getattr(file_io, 'properties', {}))}"

    def open(self, real: str) -> Handle:
        """Open an input stream, kept open because Arrow's file systems request the size (HEAD) at each opening."""
        if self._file_system(real) is not None:
            return Ranges(self, real)
        stream = self._input(real).open()
        if hasattr(stream, "read_at") and hasattr(stream, "size"):
            return _ArrowFile(stream)
        stream.close()
        return Ranges(self, real)

    def read(self, real: str, offset: int, length: int | None) -> bytes:
        """Read bytes: by one ranged request of an fsspec file system, else through an input stream."""
        file_system = self._file_system(real)
        if file_system is not None:
            return FsspecBackend(file_system, self.identity).read(real, offset, length)
        file = self._input(real)
        if length is not None and length > _CHECK_ABOVE:
            length = min(length, max(0, len(file) - offset))
        with file.open() as stream:
            if offset:
                stream.seek(offset)
            return bytes(stream.read() if length is None else stream.read(length))

    def stat(self, real: str) -> Entry:
        """Return the size, and the etag and time if the underlying file system provides them."""
        file_system, path = self._arrow(real)
        if file_system is not None:
            info = file_system.get_file_info(path)
            if info.type.name == "NotFound":
                raise FileNotFoundError(2, "does not exist", real)
            return _arrow_entry(real, info)
        return Entry(real, len(self._io.new_input(real)))

    def list(self, real: str, recursive: bool, details: bool = True) -> list[Entry]:
        """List a folder through the underlying pyarrow or fsspec file system: PyIceberg's FileIO cannot list."""
        file_system, path = self._arrow(real)
        if file_system is not None:
            from pyarrow.fs import FileSelector

            found = file_system.get_file_info(FileSelector(path, recursive=recursive))
            base = path.rstrip("/")
            entries = [_arrow_entry(real.rstrip("/") + info.path.rstrip("/")[len(base) :], info) for info in found]
            return sorted((e for e in entries if not (recursive and e.is_folder)), key=lambda e: e.real)
        file_system = self._file_system(real)
        if file_system is not None:
            return FsspecBackend(file_system, self.identity).list(real, recursive)
        raise UnsupportedError(f"{type(self._io).__name__} cannot list files, so {real} cannot be listed")

    def _file_system(self, real: str) -> AbstractFileSystem | None:
        """Return the fsspec file system of PyIceberg's FsspecFileIO; None for any other FileIO."""
        get = getattr(self._io, "get_fs", None)
        if get is None:
            return None
        scheme, _, rest = real.partition("://")
        # One file system for all threads: PyIceberg would create one per thread, with separate connections.
        key = scheme, rest.partition("/")[0]
        found = self._systems.get(key)
        return found if found is not None else self._systems.setdefault(key, get(*key))

    def _arrow(self, real: str) -> tuple[Any, str]:
        if not (hasattr(self._io, "fs_by_scheme") and hasattr(self._io, "parse_location")):
            return None, ""
        scheme, netloc, path = self._io.parse_location(real, self._io.properties)
        file_system = self._io.fs_by_scheme(scheme, netloc)
        if getattr(file_system, "type_name", "") == "gcs":
            file_system = self._bounded.setdefault(netloc, _bounded_gcs(file_system))
        return file_system, path

    def _input(self, real: str) -> InputFile:
        file_system, path = self._arrow(real)
        if getattr(file_system, "type_name", "") != "gcs":
            return self._io.new_input(real)
        from pyiceberg.io.pyarrow import PyArrowFile

        return PyArrowFile(real, path, file_system)


class _ArrowFile:
    """A file that Arrow has opened."""

    def __init__(self, stream: InputStream) -> None:
        self._stream = stream
        self.size: int | None = int(stream.size())

    def read(self, offset: int, length: int) -> bytes:
        """Read bytes by a ranged request."""
        left = max(0, (self.size or 0) - offset)
        return bytes(self._stream.read_at(min(length, left), offset)) if left else b""

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()


def _bounded_gcs(file_system: Any) -> Any:  # noqa: ANN401  rebuilt by its own pickling, which has no types
    """Return Arrow's Google file system with a time limit for retries, which PyIceberg has no property for."""
    make, (given,) = file_system.__reduce__()
    return make({**given, "retry_time_limit": given["retry_time_limit"] or _GCS_PATIENCE})


def _arrow_entry(real: str, info: FileInfo) -> Entry:
    if info.type.name == "Directory":
        return Entry(real, None, is_folder=True)
    return Entry(real, info.size, None, None if info.mtime_ns is None else info.mtime_ns // 1_000_000)


def _modified(info: Mapping[str, Any]) -> int | None:
    for name in ("LastModified", "mtime", "last_modified", "created", "updated"):
        value = info.get(name)
        if isinstance(value, datetime):
            return int(value.timestamp() * 1000)
        if isinstance(value, (int, float)):
            return int(value * 1000)
    return None


def _digest(properties: Mapping[str, Any]) -> str:
    text = "\n".join(f"{k}={v}" for k, v in sorted(properties.items()))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
