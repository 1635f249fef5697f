"""A table's storage: reads its files, and only those inside its roots.

Security
--------
A table's metadata is untrusted: it may come from anyone. Locations in it are read only inside these roots:

1. the folder that was opened (the table's: the parent of ``metadata/``; for a lone metadata file, its folder), or
   the temporary folder that a zip was extracted to;
2. what ``allow=`` lists;
3. for a table on remote storage: its ``location`` and the locations in its properties (``write.data.path`` and the
   like), if they are in the same bucket (same scheme and authority) as its metadata file;
4. for a table from a catalog: the locations of point 3 in any bucket, and the catalog's warehouse, because the catalog
is trusted; local locations only if the metadata file itself is local.

So the metadata of a table opened from the local disk or a zip never widens what may be read there, nor causes a
network request: ``"location": "/etc"`` opens nothing. A legitimate ``write.data.path`` outside the table's folder
needs ``allow=``, as the error explains. ``..`` is resolved before the check, and a local link must lead back into a
root. A server's redirect is followed only within the scheme, host and port of the request, or into a root.
"""

from __future__ import annotations

import builtins
import hashlib
import os
import threading
import time
import urllib.parse
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from iceexplore.errors import (
    AccessDeniedError,
    FileMissingError,
    FormatError,
    IceexploreError,
    MemoryLimitError,
    OutsideRootsError,
    StorageError,
)
from iceexplore.storage._budget import allowed, shown_bytes
from iceexplore.storage._location import basename, canonical, check_host, dirname, is_absolute, is_local, join, within
from iceexplore.storage._moved import FolderIndex, Moves
from iceexplore.storage._reads import Read, ReadLog
from iceexplore.storage._roots import admitting
from iceexplore.storage._temporary import TemporaryFolder, temporary_room
from iceexplore.storage.stores._backend import Backend, Entry, LocalBackend, Ranges
from iceexplore.storage.stores._faults import short_message, translate
from iceexplore.storage.stores._range_file import RangeFile, whole_or_tail
from iceexplore.storage.stores._readers import readers_of
from iceexplore.storage.stores._redirects import origin
from iceexplore.storage.stores._remote import remote_backend

__all__ = ["FileInfo", "Storage"]

T = TypeVar("T")
_COPIED_AT_ONCE = 32 << 20
#: Recorded file sizes above this are ignored (a file on S3 has at most 5 TiB).
_LARGEST_FILE = 1 << 50
#: Bytes requested first from a remote file of unknown size.
_FIRST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file: its location as the table spells it, bytes, etag, and when it was last modified (milliseconds, UTC)."""

    location: str
    size: int | None
    etag: str | None = None
    modified_ms: int | None = None


class Storage:
    """Reads the files of one table, within its roots; every read is logged. The module's docstring defines the roots.

    Created by `open_source`. Locations are as the table spells them; `resolve` and `unresolve` translate.

    Attributes
    ----------
    identity
        Two storages with the same identity have the same bytes at the same locations; the first part of cache keys.
    reads
        Every read so far.
    roots
        The real locations (folders or files) inside which reading is allowed.
    folder
        The table's folder, a real location.
    """

    def __init__(
        self,
        folder: str,
        *,
        moves: Moves | None = None,
        allow: tuple[str, ...] = (),
        properties: Mapping[str, str] | None = None,
        backend: Backend | None = None,
        temporary: TemporaryFolder | None = None,
    ) -> None:
        self.reads = ReadLog()
        self.folder = folder
        self.metadata_folder: str | None = None
        self.index = FolderIndex(folder) if is_local(folder) else None
        #: Called if a file is found by the end of its path: with its location, the prefix as written, and the folder
        #: that replaces the prefix.
        self.on_rescue: Callable[[str, str, str], None] | None = None
        self._moves = moves or Moves()
        self._properties = dict(properties or {})
        readers_of(folder, self._properties)  # called early, to raise for an invalid number
        self._local = LocalBackend()
        self._given = backend
        self._remote: dict[str, Backend] = {}
        self._links: dict[str, str] = {}
        self._folders: dict[str, str] = {}
        self._allow = tuple(_absolute(a) for a in allow)
        self.roots: tuple[str, ...] = ()
        self._real_roots: tuple[str, ...] = ()
        self.allow_root(folder, *self._allow)
        self._closed = False
        self._remove = None if temporary is None else temporary.remove_with(self)

    @cached_property
    def identity(self) -> str:
        """The backend's identity, with a hash of the folder and of the prefixes that are known at first use."""
        text = "\n".join((self.folder, *(f"{a}\t{b}" for a, b in self._moves.pairs)))
        return (
            f"{self._backend(self.folder).identity}:{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:24]}"
        )

    @property
    def readers(self) -> int:
        """The number of concurrent reads: few for a local disk, more for a remote store, or as configured."""
        return readers_of(self.folder, self._properties)

    @property
    def is_extracted(self) -> bool:
        """True if the folder is an extracted zip, which is removed with this storage."""
        return self._remove is not None

    @property
    def moved(self) -> Mapping[str, str]:
        """The prefixes that have moved (given by the user, or found), as written, each with its current place."""
        return self._moves.shown

    @property
    def moves(self) -> Moves:
        """The known moves, which the caller may extend."""
        self._folders.clear()
        return self._moves

    def allow_root(self, *places: str) -> None:
        """Add real locations to the roots."""
        self._folders.clear()
        new = [p for p in (canonical(p) for p in places) if p not in self.roots]
        self.roots = (*self.roots, *new)
        self._real_roots = tuple(os.path.realpath(r) for r in self.roots if is_local(r))

    def set_table_folder(self, folder: str, metadata_file: str) -> None:
        """Set the storage's folder to that of the table that was found; so far, it was the folder searched."""
        self.metadata_folder = dirname(metadata_file)
        if folder != self.folder:
            self.folder = folder
            self.index = FolderIndex(folder) if is_local(folder) else None
        self.roots = ()
        self.allow_root(folder, *self._allow)

    def read_by(self, backend: Backend) -> None:
        """Use another backend from now on, configured by the table's own properties."""
        self._given = backend

    def resolve(self, location: str) -> str:
        """Return the real location: a local path, or a URI.

        Raises
        ------
        OutsideRootsError
            The location is outside the roots.
        """
        head, _, name = location.rpartition("/")
        # A table's files are in few folders, so the resolved folder is reused for all of its files except links.
        folder = self._folders.get(head) if name not in ("", ".", "..") else None
        if folder is not None:
            real = f"{folder}/{name}"
            if not (is_local(folder) and os.path.islink(real)):
                return real
        real = self._resolve(location)
        if name == basename(real) and self._closed_under(dirname(real), head):
            self._folders[head] = dirname(real)
        return real

    def closed_folder(self, written: str) -> tuple[str, frozenset[str]] | None:
        """Return the real folder of a folder as written, and the names of the links in it; None if not known yet.

        The real folder is known once one of the files in it has been resolved, if all of them may be read. A file whose
        name is not that of a link is then at ``folder/name``. Listing a folder once takes less time than checking each
        of its files.
        """
        folder = self._folders.get(written)
        return None if folder is None else (folder, _links_in(folder))

    def place(self, location: str) -> str:
        """Return the real location of a file, to compare whether two locations mean the same file.

        In a moved table, several spellings may mean the same file (two prefixes that now are the same folder, or a path
        of which only the end is known). A location outside the roots, or with a name that no file can have, is returned
        in canonical form.
        """
        try:
            return self.resolve(location) if self.moved else canonical(location)
        except (OutsideRootsError, FileMissingError):
            return canonical(location)

    @property
    def prefixes(self) -> tuple[str, ...]:
        """All known prefixes in canonical form, longest first; empty if nothing has moved."""
        return self._moves.prefixes if self.moved else ()

    def unresolve(self, real: str) -> str:
        """Return the location that the metadata has for a real one, from before the table was moved.

        The real location may be spelled as any engine does. It is returned unchanged if it is under no moved prefix.
        """
        place = canonical(real)
        found = self._moves.unapply(place)
        if found is None and "%" in place:
            found = self._moves.unapply(urllib.parse.unquote(place))
        return real if found is None else found

    def key(self, location: str) -> str:
        """Return the part of a file's cache key that identifies the storage; storages that share files share it."""
        return self.identity

    def folder_of(self, location: str) -> str:
        """Return the real folder of a file, to be listed. Raises the same errors as `resolve`."""
        return dirname(self.resolve(location))

    def read(
        self, location: str, *, kind: str, offset: int = 0, length: int | None = None, most: int | None = None
    ) -> bytes:
        """Return bytes of a file: all of it, or ``length`` bytes from ``offset``.

        Parameters
        ----------
        most
            Largest size of a file to be read as a whole; by default 512 MiB, or the memory limit where one is set. The
            size is checked before anything is read: a sparse file may have gigabytes of zeros.

        Raises
        ------
        FileMissingError, AccessDeniedError, StorageError
            The file does not exist (404), access is denied (403), or the storage failed otherwise.
        OutsideRootsError
            The location is outside the roots.
        FormatError
            ``file-truncated``: the file has fewer bytes than requested.
        MemoryLimitError
            The whole file was requested and is larger than ``most``.
        """
        real = self.resolve(location)
        if offset == 0 and length is None:
            return self._whole(location, real, kind, most)
        if offset < 0 or (length is not None and length < 0):
            raise FormatError(f"cannot read {length} bytes at {offset}: neither may be negative", location=location)
        data = self._fetch(location, real, kind, offset, length)
        if length is not None and len(data) < length:
            raise FormatError(
                f"the file ends too early: expected {length:,} bytes at {offset:,}, found {len(data):,}",
                location=location,
                offset=offset + len(data),
                code="file-truncated",
            )
        return data

    def open(self, location: str, *, kind: str, size: int | None = None) -> RangeFile:
        """Open a seekable binary file whose reads are ranged requests, each logged. Raises the same errors as `read`.

        Parameters
        ----------
        size
            File size as recorded in a manifest. The size is then not requested from a remote store: the first read, of
            the file's end, shows whether the recorded size is right, and only a wrong one leads to a request.
        """
        real = self.resolve(location)
        if is_local(real):
            found = self._file(location, real).size or 0
            return RangeFile(lambda offset, length: self._fetch(location, real, kind, offset, length), found, location)
        handle = self._ask(location, real, "stat", lambda: self._backend(real).open(real), 0)

        def fetch(offset: int, length: int) -> bytes:
            return self._ask(location, real, kind, lambda: handle.read(offset, length), offset)

        if handle.size is not None:  # opening the file has shown its size
            return RangeFile(fetch, handle.size, location, far=True, close=handle.close)
        tail = self._tail(fetch, size)
        if tail is None or size is None:
            return RangeFile(fetch, self._file(location, real).size or 0, location, far=True, close=handle.close)
        return RangeFile(fetch, size, location, far=True, tail=tail, close=handle.close)

    @staticmethod
    def _tail(fetch: Callable[[int, int], bytes], size: int | None) -> bytes | None:
        """Return the last bytes of a file if it has this size; None if it does not.

        One byte more than expected is requested, to detect a longer file.
        """
        if size is None or not 0 < size <= _LARGEST_FILE:
            return None
        length = whole_or_tail(size)
        try:
            data = fetch(size - length, length + 1)
        except FileMissingError:
            raise
        except IceexploreError:
            return None  # stores refuse a range past the end; any other failure recurs with the next request
        return data if len(data) == length else None

    @contextmanager
    def local_path(self, location: str, *, kind: str, file: RangeFile | None = None) -> Iterator[Path]:
        """Yield a local path: the file, or a temporary copy removed afterwards. Raises the same errors as `read`.

        Parameters
        ----------
        file
            The file if it is open already: the copy is made from it, and it stays open.
        """
        real = self.resolve(location)
        if is_local(real):
            entry = self._file(location, real)
            self.reads.add(Read(location, real, kind, 0, entry.size or 0, 0.0))
            yield Path(real)
            return
        what = f"a copy of {location}"
        folder = TemporaryFolder("copy", what)
        copy = os.path.join(folder.path, f"file{os.path.splitext(real)[1][:16]}")
        try:
            with (
                temporary_room(what),
                open(copy, "xb") as out,
                self.open(location, kind=kind) if file is None else nullcontext(file) as source,
            ):
                # Copy in pieces: a data file may be larger than the memory that this process should use.
                for at in range(0, source.size, _COPIED_AT_ONCE):
                    source.seek(at)
                    wanted = min(_COPIED_AT_ONCE, source.size - at)
                    if out.write(source.read(wanted)) != wanted:
                        raise FormatError(
                            f"the file ends too early: expected {source.size:,} bytes",
                            location=location,
                            offset=at,
                            code="file-truncated",
                        )
            yield Path(copy)
        finally:
            folder.remove()

    def stat(self, location: str) -> FileInfo:
        """Return size, etag and time of a file without reading it. Raises the same errors as `read`."""
        real = self.resolve(location)
        entry = self._file(location, real)
        return FileInfo(location, entry.size, entry.etag, entry.modified_ms)

    def exists(self, location: str) -> bool:
        """Return whether a file exists. A refusal (403) raises `AccessDeniedError`: the file may exist."""
        try:
            self.stat(location)
        except FileMissingError:
            return False
        return True

    def fingerprint(self, location: str) -> tuple[int, int] | None:
        """Return modification time and size of a local file, for cache keys: they change when it is edited in place.

        None for remote files, where it would cost a request: Iceberg's files are immutable, and only users who repair
        or break a table by hand edit files, in a local folder. Also None for a file that is missing or may not be read.
        """
        try:
            real = self.resolve(location)
            if not is_local(real):
                return None
            found = os.stat(real)
        except (IceexploreError, OSError, ValueError):
            return None
        return found.st_mtime_ns, found.st_size

    def list(self, location: str, *, recursive: bool = False) -> builtins.list[FileInfo]:
        """Return the files in a folder (with ``recursive``, all below it) by name. Raises the same errors as `read`."""
        found = self.entries(self.resolve(location), recursive=recursive)
        return [FileInfo(self.unresolve(e.real), e.size, e.etag, e.modified_ms) for e in found if not e.is_folder]

    def read_real(self, real: str, *, kind: str, most: int | None = None) -> bytes:
        """Return a whole file by its real location, for files found by listing. Raises the same errors as `read`."""
        self._check(real, real)
        return self._whole(self.unresolve(real), real, kind, most)

    def find(self, real: str) -> Entry | None:
        """Return the entry at a real location, None if there is none. Raises the same errors as `read` otherwise."""
        self._check(real, real)
        try:
            return self._ask(self.unresolve(real), real, "stat", lambda: self._backend(real).stat(real), 0)
        except FileMissingError:
            return None

    def entries(self, real: str, *, recursive: bool = False, details: bool = True) -> builtins.list[Entry]:
        """Return a folder's entries, without ``details`` perhaps only names. Raises the same errors as `read`."""
        self._check(real, real)
        return self._ask(
            self.unresolve(real), real, "list", lambda: self._backend(real).list(real, recursive, details), 0
        )

    def close(self) -> None:
        """Remove the extracted zip, if there is one; its table cannot be read afterwards."""
        if self._remove is not None:
            self._closed = True
            self._remove()

    def __getstate__(self) -> dict[str, object]:
        """Return the state for another process: roots, moves and properties, secrets included, with an empty log."""
        self.identity  # noqa: B018  (computed now, so that both processes share it)
        mine = {"reads": ReadLog(), "_remote": {}, "_links": {}, "_folders": {}, "_remove": None, "on_rescue": None}
        return {name: value for name, value in {**self.__dict__, **mine}.items() if name != "_free"}

    # ------------------------------------------------------------------------------------------------------------------

    def _file(self, location: str, real: str) -> Entry:
        entry = self._ask(location, real, "stat", lambda: self._backend(real).stat(real), 0)
        if entry.is_folder:
            raise FileMissingError(f"{location} is a folder, not a file")
        return entry

    def _resolve(self, location: str) -> str:
        place = canonical(location)
        real = self._moves.apply(place)
        if real is None and not is_absolute(place):
            # No prefix fits, so the location is relative to the table's location, as format version 4 allows.
            real = canonical(join(self.folder, place))
        if real is None:
            real = place
            if self._moves.shown and not self._inside(place):
                real = self._moves.apply_path(place) or self._rescued(place, location) or place
        self._check(real, location)
        return real

    def _closed_under(self, folder: str, written: str) -> bool:
        """Return whether all files in a folder may be read and, if the table was moved, are still in one folder."""
        if not self._inside(folder) or self._moves.inside(canonical(written)):
            return False
        return not is_local(folder) or any(within(os.path.realpath(folder), root) for root in self._real_roots)

    def _whole(self, location: str, real: str, kind: str, most: int | None) -> bytes:
        most = allowed(0) if most is None else most
        if is_local(real):
            self._small_enough(location, real, most)
            return self._fetch(location, real, kind, 0, None)
        # Asking for a remote file's size would cost a request, and the first bytes are nearly always the whole file.
        try:
            first = self._fetch(location, real, kind, 0, _FIRST_BYTES)
        except (FileMissingError, AccessDeniedError):
            raise
        except StorageError:  # an empty file has no first byte (HTTP 416), and some servers do not support ranges
            return self._fetch(location, real, kind, 0, None)
        if len(first) < _FIRST_BYTES:
            return first
        size = self._small_enough(location, real, most)
        if size is None or len(first) >= size:
            return first if size is not None else self._fetch(location, real, kind, 0, None)
        return first + self._fetch(location, real, kind, len(first), size - len(first))

    def _small_enough(self, location: str, real: str, most: int) -> int | None:
        """Return the size of a file to be read whole, None if unknown; raise an error if the file is too large."""
        size = self._size(real)
        if size is not None and size > most:
            raise MemoryLimitError(
                f"{location} is {shown_bytes(size)} long; files of this kind are read up to {shown_bytes(most)}. If "
                "that is the expected size, raise the limit: iceexplore.memory_limit('8 GiB')"
            )
        return size

    def _size(self, real: str) -> int | None:
        """Return a file's size, None if it cannot be determined: reading the file will then report the reason."""
        try:
            return self._backend(real).stat(real).size
        except Exception:
            return None

    def _fetch(self, location: str, real: str, kind: str, offset: int, length: int | None) -> bytes:
        return self._ask(location, real, kind, lambda: self._backend(real).read(real, offset, length), offset)

    def _ask(self, location: str, real: str, kind: str, ask: Callable[[], T], offset: int) -> T:
        if self._closed:
            raise StorageError(f"{location}: the table was closed and its extracted zip removed; open it again")
        start = time.perf_counter()
        length = 0
        took_request = True
        try:
            with nullcontext() if is_local(real) else self._slots:
                answer = ask()
            length = len(answer) if isinstance(answer, (bytes, builtins.list)) else 0
            took_request = not isinstance(answer, Ranges)
            return answer
        except Exception as e:
            raise translate(e, location, real) from e
        finally:
            if took_request:
                self.reads.add(Read(location, real, kind, offset, length, time.perf_counter() - start))

    @property
    def _slots(self) -> threading.BoundedSemaphore:
        """Semaphore that limits concurrent requests to remote stores, over all thread pools."""
        slots: threading.BoundedSemaphore | None = self.__dict__.get("_free")
        return slots or self.__dict__.setdefault("_free", threading.BoundedSemaphore(self.readers))

    def _backend(self, real: str) -> Backend:
        if is_local(real):
            return self._local
        if self._given is not None:
            return self._given
        # One backend per bucket: credentials and regions may differ.
        key = "/".join(real.split("/", 3)[:3])
        found = self._remote.get(key)
        if found is None:
            # A weak reference: the session lives until fsspec closes it, and must not keep the storage alive.
            myself = weakref.ref(self)

            def check_redirect(asked: str, target: str) -> None:
                storage = myself()
                if storage is not None:
                    storage._check_redirect(asked, target)

            found = remote_backend(real, self._properties, check_redirect=check_redirect)
            self._remote[key] = found
        return found

    def _check_redirect(self, asked: str, target: str) -> None:
        """Raise `OutsideRootsError` for a redirect to another host that is not allowed."""
        if origin(asked) == origin(target) or self._inside(canonical(target)):
            return
        scheme, host, _ = origin(target)
        place = f"{scheme}://{urllib.parse.urlsplit(target).netloc.rpartition('@')[2]}" if host else target
        secure = ", or open it over HTTPS" if (scheme, host) == ("https", origin(asked)[1]) else ""
        shown = short_message(ValueError(target.partition("?")[0]))
        error = OutsideRootsError(
            f"{asked.partition('?')[0]} redirects to {shown}, which is outside the table's roots: not followed. "
            f"If you trust that host, pass allow=[{place!r}]{secure}"
        )
        error.allow = (place,)
        raise error

    def _inside(self, real: str) -> bool:
        return any(within(real, root) for root in self.roots)

    def _check(self, real: str, location: str) -> None:
        if not self._inside(real):
            self._refuse(real, location, "")
        if is_local(real):
            linked = self._linked(real)
            if linked != real and not any(within(linked, root) for root in self._real_roots):
                self._refuse(linked, location, f" through a link at {real}")

    def _linked(self, path: str) -> str:
        folder, name = os.path.split(path)
        base = self._links.get(folder)
        if base is None:
            if len(self._links) > 10_000:
                self._links.clear()
            try:
                base = self._links[folder] = os.path.realpath(folder)
            except ValueError as error:  # a NUL, or a lone surrogate
                raise FileMissingError(f"{path!r} does not exist: no folder can have this name ({error})") from None
        full = os.path.join(base, name)
        return os.path.realpath(full) if os.path.islink(full) else full

    def _refuse(self, real: str, location: str, how: str) -> None:
        where = "" if real == location else f": it leads to {real}{how}"
        folder = admitting(real)
        error = OutsideRootsError(
            f"{location} is outside the table{where}. Readable locations: {', '.join(self.roots)}. "
            f"If you trust the table, open it with allow=[{folder!r}]; if its files have moved, pass moved={{...}}."
        )
        error.allow = (folder,)
        raise error

    def _rescued(self, place: str, location: str) -> str | None:
        found = self.index.find(place) if self.index is not None else None
        if found is None:
            return None
        # The callback may raise, so call it before recording the move: it must raise every time this guess is made. The
        # move is recorded so that `Storage.place` also matches deletes that spell the file's location differently.
        if self.on_rescue is not None:
            self.on_rescue(location, *found)
        self.moves.add(*found)
        return self._moves.apply(place)


def _absolute(place: str) -> str:
    return place if is_absolute(canonical(check_host(place))) else os.path.abspath(os.path.expanduser(place))


def _links_in(folder: str) -> frozenset[str]:
    """Return the names of a folder's symbolic links; an empty set for a remote folder or one that cannot be listed."""
    if not is_local(folder):
        return frozenset()
    try:
        with os.scandir(folder) as entries:
            return frozenset(entry.name for entry in entries if entry.is_symlink())
    except OSError:
        return frozenset()
