"""Save a table completely to a folder, for example to keep or send a simulation, or to read it with an engine."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal, get_args

from iceexplore.arrow import build
from iceexplore.commits.model._writer import metadata_folder
from iceexplore.commits.saving._reachable import files_of_leaves, tree_files
from iceexplore.commits.saving._relocate import (
    Moves,
    relocated_deletes,
    relocated_document,
    relocated_manifest,
    relocated_puffin,
)
from iceexplore.errors import FileMissingError, IceexploreError, OptionError, UnsupportedError
from iceexplore.graph import TableState
from iceexplore.manifests import ContentType
from iceexplore.metadata import Snapshot, relative_location
from iceexplore.reading import is_synthetic
from iceexplore.storage import (
    OverlayStorage,
    canonical,
    folder_beside,
    is_local,
    not_written,
    parse_document,
    path_here,
    progress,
)

__all__ = ["DataFiles", "Saved", "new_folder", "save"]

#: How to handle the table's original data and delete files, which no simulation wrote; see ``data`` of `save`.
DataFiles = Literal["refer", "copy", "none"]

#: Linux's ioctl to share the blocks of a file (``linux/fs.h``).
_FICLONE = 0x40049409
_BLOCK = 1 << 20
#: The first format version in which locations may be relative to the table's location.
_RELATIVE_FROM = 4


@dataclass(frozen=True)
class Saved:
    """The result of saving a table.

    Attributes
    ----------
    path
        The folder to which the table was saved.
    location
        The table's location in the saved metadata.
    metadata_location
        Location of the current metadata file.
    files, bytes
        Number of written files, and their total bytes.
    missing
        Files that could not be read and are missing from the folder, each with the reason.
    """

    path: Path
    location: str
    metadata_location: str
    files: int
    bytes: int
    missing: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        text = f"{self.files:,} files, {self.bytes:,} bytes in {self.path}"
        return text + (f"; {len(self.missing)} could not be read; see .missing" if self.missing else "")


def save(
    state: TableState, path: str | os.PathLike[str], *, data: DataFiles = "copy", location: str | None = None
) -> Saved:
    """Write a table to a folder, completely or not at all.

    The files are first written to a hidden folder beside ``path``, which is then renamed to ``path`` in one step. If
    the process is killed, the hidden folder remains; the next save to the same ``path`` removes it if it is older than
    a day.

    These files are saved: the current metadata file, and the older ones in the metadata log that still exist; the
    manifest list or root, the manifests and the manifest DVs of every snapshot; the statistics files; and the data and
    delete files that ``data`` selects.

    Parameters
    ----------
    path
        The folder to write, which must be empty or must not exist yet.
    data
        Which data and delete files to copy to the folder. ``copy``, the default, copies those of all snapshots, so that
        the rows can be read wherever the folder is moved. (A copy shares disk blocks with the original if the file
        system supports it, but changes to the copy do not reach the original.) ``refer`` copies only the files that a
        simulation wrote, and leaves the table's original files where they are. This is fast and small, but to read the
        rows, ``iceexplore.open(path, allow=...)`` must then allow the folder with the original files. ``none`` copies
        no data and delete files. Synthetic files, which have manifest entries but no rows, are never copied.
    location
        The table's location in the saved metadata. By default this is ``path``, so that engines on this machine can
        read the table. (Spark opens it by its folder if the metadata files are named ``v<N>``, and otherwise by its
        metadata file.) If the folder will be uploaded, give the location to which it will be uploaded. Both by default
        and with a given location, the new locations of the saved files are written into the metadata files, manifest
        lists, roots, manifests and delete files that refer to them. With ``"keep"``, all saved files have the same
        bytes as the originals and so refer to the old locations: `iceexplore.open` finds the files, engines do not.

    Raises
    ------
    OptionError
        The folder is not empty, ``path`` is a URI of another storage, or ``data`` is unknown.
    UnsupportedError
        The table is a Delta table; or it has inline manifests (v1), or position delete files in an unknown format, and
        can be saved only with ``location="keep"``.
    StorageError, AccessDeniedError
        The folder cannot be written, for example because the disk is full.
    IceexploreError
        The current metadata file, or a metadata file of the state's snapshot, cannot be read.
    """
    if data not in get_args(DataFiles):
        raise OptionError(f"data={data!r}: choose one of {', '.join(get_args(DataFiles))}")
    with new_folder(path) as (building, target):
        return _Saver(state, building, target, data, location).run()


@contextmanager
def new_folder(path: str | os.PathLike[str]) -> Iterator[tuple[Path, Path]]:
    """Create a folder that appears at ``path`` only when it is complete; use it in a ``with`` statement.

    Two paths are yielded: that of a temporary folder, to which the body of the statement must write, and ``path`` as an
    absolute path. If the body ends without an error, the temporary folder is renamed to ``path``; otherwise it is
    removed.

    Raises
    ------
    OptionError
        A file or a folder that is not empty exists at ``path``, or ``path`` is a URI of another storage.
    StorageError, AccessDeniedError
        The folder cannot be written, for example because the disk is full.
    """
    try:
        target = Path(path_here(path)).expanduser().absolute()
    except OptionError as e:
        if not isinstance(path, str) or is_local(canonical(path)):
            raise
        raise OptionError(f"{e}, and location={os.fspath(path)!r} if the table is going to be there") from e
    except RuntimeError as e:  # expanduser found no home folder
        raise OptionError(f"path={os.fspath(path)!r}: give the folder to write ({e})") from e
    above = [p for p in target.parents if not os.path.lexists(p)]
    done = False
    try:
        _refuse_full(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        with folder_beside(str(target)) as building:
            yield Path(building), target
            _publish(Path(building), target)
        done = True
    except OSError as e:
        if isinstance(e, IceexploreError):  # some IceexploreErrors are OSErrors too
            raise
        raise not_written(e, str(target), str(target)) from e
    finally:
        for folder in () if done else above:
            with suppress(OSError):  # the folder was not created, or is not empty because it is in use
                folder.rmdir()


def _refuse_full(target: Path) -> None:
    if target.is_symlink() or (target.exists() and (not target.is_dir() or any(target.iterdir()))):
        raise OptionError(f"{target} exists and is not an empty folder: give a new folder")


def _publish(building: Path, target: Path) -> None:
    umask = os.umask(0)
    os.umask(umask)
    building.chmod(0o777 & ~umask)  # mkdtemp restricted the folder to the user
    if os.name == "nt" and target.exists():
        target.rmdir()  # Windows only: on Linux and macOS, os.rename replaces an empty folder
    try:
        os.rename(building, target)
    except OSError as e:
        _refuse_full(target)
        raise OptionError(f"{target} could not be created: {e}") from e


class _Saver:
    """Writes the files of a save: data files first, then manifests, manifest lists, and the metadata files."""

    def __init__(self, state: TableState, building: Path, target: Path, data: DataFiles, location: str | None) -> None:
        self.state = state
        self.storage = state.storage
        self.building = building
        self.target = target
        self.data = data
        self.keep = location == "keep"
        self.old = state.metadata.location.rstrip("/")
        self.new = self.old if self.keep else (location or str(target)).rstrip("/")
        self.apart = f"{canonical(metadata_folder(state))}/"
        self.moved = Moves()
        self.names: set[str] = set()
        self.lengths: dict[str, int] = {}
        self.paths: dict[str, tuple[str, str]] = {}
        self.missing: dict[str, str] = {}
        self.files = 0
        self.bytes = 0

    def run(self) -> Saved:
        """Write all files of the table to the temporary folder ``building``, and return the result.

        Raises the same errors as `save`.
        """
        instead = "Copy the table's folder instead: ix.open opens the copy."
        if isinstance(self.storage, OverlayStorage):
            instead = (
                "Instead, with s for the simulation: s.replay(4) shows its history as snapshots of format version 4, "
                "and ix.create('folder', s.schema).append(s.to_arrow()) writes its current rows to a new table."
            )
        self.state.refuse_delta(
            f"its snapshots are versions in a Delta log, which cannot be saved as Iceberg metadata. {instead}"
        )
        self._data_files()
        self._trees()
        current = self._documents()
        return Saved(self.target, self.new, current, self.files, self.bytes, self.missing)

    def _data_files(self) -> None:
        """Write data files, and after them position delete files, which contain the new locations of the data files."""
        if self.data == "none":
            return
        positions: dict[str, str] = {}
        wanted = {
            location: content
            for location, content in self._named_files().items()
            if not is_synthetic(location) and (self.data == "copy" or self._is_own(location))
        }
        with progress(len(wanted), "data files") as step:
            for location, content in wanted.items():
                name = self._name(location, "data")
                if content == ContentType.POSITION_DELETE:
                    positions[location] = name
                    continue
                if self._copy(location, name, "other"):
                    self.moved[location] = f"{self.new}/{name}"
                step()
            files = Moves(self.moved)
            for location, name in positions.items():
                self._delete_file(location, name, files)
                step()

    def _delete_file(self, location: str, name: str, files: Mapping[str, str]) -> None:
        try:
            new = None if self.keep else relocated_deletes(self.storage, location, files)
        except UnsupportedError:
            raise
        except IceexploreError as e:
            self.missing[location] = str(e)
            return
        if new is None:
            if not self._copy(location, name, "other"):
                return
        else:
            self._write(name, new.data)
            self.lengths[f"{self.new}/{name}"] = len(new.data)
            if new.paths is not None:
                self.paths[f"{self.new}/{name}"] = new.paths
        self.moved[location] = f"{self.new}/{name}"

    def _named_files(self) -> dict[str, int]:
        """Return the locations of the data and delete files of all snapshots, with their content types.

        If data files are not copied (``data="refer"``), only files of the overlay are returned.
        """
        snapshots = self.state.metadata.snapshots
        if self.data == "refer":
            if not isinstance(self.storage, OverlayStorage):
                return {}
            own = set(self.storage.locations())
            snapshots = tuple(s for s in snapshots if s.root_location in own)
            named = _texts(self.state, snapshots, own)
            return {f: content for f, content in named.items() if self.storage.has(f)}
        return _texts(self.state, snapshots, None)

    def _trees(self) -> None:
        metadata = self.state.metadata
        if not self.keep and any(s.manifests and not s.manifest_list for s in metadata.snapshots):
            raise UnsupportedError('a v1 snapshot lists its manifests inline; save the table with location="keep"')
        head = None if self.state.snapshot is None else self.state.snapshot.snapshot_id
        rewrite = bool(self.moved)  # if data files have new locations, manifests must be rewritten
        # The state's snapshot first: the files that it needs must be readable, while those of other snapshots may be
        # missing.
        snapshots = sorted(metadata.snapshots, key=lambda s: s.snapshot_id != head)
        with progress(len(snapshots), "snapshots") as step:
            for snapshot in snapshots:
                self._leaves(snapshot, strict=snapshot.snapshot_id == head, rewrite=rewrite)
                step()
        # A Puffin file with manifest DVs is rewritten, because it contains the locations of the manifests to which the
        # DVs apply. These may be manifests of several snapshots, so all manifests must have their new locations first.
        for snapshot in snapshots:
            for f in tree_files(self.state, snapshot):
                if f.kind == "puffin":
                    strict = snapshot.snapshot_id == head
                    self._metadata_file(f.location, f.kind, strict=strict, rewrite=True)
        # Write manifest lists and roots last, because they contain the new locations of manifests. A root may also list
        # manifests of an earlier snapshot, as entries with the status DELETED, so the manifests of all snapshots must
        # have their new locations first.
        for snapshot in snapshots:
            if snapshot.root_location:
                strict = snapshot.snapshot_id == head
                self._metadata_file(snapshot.root_location, "manifest-list", strict=strict, rewrite=True)
        paths = [s.statistics_path for s in metadata.statistics]
        for path in (*paths, *(s.statistics_path for s in metadata.partition_statistics)):
            self._metadata_file(path, "puffin", strict=False, rewrite=False)

    def _leaves(self, snapshot: Snapshot, *, strict: bool, rewrite: bool) -> None:
        files = tree_files(self.state, snapshot)
        # True for the V4 draft, whose manifests contain locations relative to the table's location. The saved table has
        # another location, so these manifests are always rewritten: files that are not copied get absolute locations.
        relative = self.state.reader.root(snapshot).dialect.deletion_vectors_on_entries
        for f in files:
            if f.kind != "manifest":
                continue
            # A manifest must be rewritten if it may list copied files. With data="copy", every manifest may. With
            # "refer", only files that the simulation wrote were copied, and only manifests that it wrote list them.
            names = relative or (rewrite and (self.data == "copy" or self._is_own(f.location)))
            self._metadata_file(f.location, f.kind, strict=strict, rewrite=names)

    def _is_own(self, location: str) -> bool:
        return isinstance(self.storage, OverlayStorage) and self.storage.has(location)

    def _metadata_file(self, location: str, kind: str, *, strict: bool, rewrite: bool) -> None:
        if location in self.moved or location in self.missing:
            return
        try:
            content = self.storage.read(location, kind=kind)
            new = content
            if rewrite and not self.keep and kind == "puffin":
                new = relocated_puffin(self.storage, location, content, self.moved) or content
            elif rewrite and not self.keep:
                new = relocated_manifest(content, location, *self._spelled(), self.paths)
        except IceexploreError as e:
            if strict:
                raise
            self.missing[location] = str(e)
            return
        name = self._name(location, "metadata")
        self.moved[location] = f"{self.new}/{name}"
        if len(new) != len(content):
            self.lengths[self.moved[location]] = len(new)
        self._write(name, new)

    def _spelled(self) -> tuple[Moves, dict[str, int]]:
        """Return the two mappings with which `relocated_manifest` replaces locations and file lengths.

        The first has the new locations of files by old ones. The second has the new lengths in bytes of the rewritten
        files whose length changed, by new location. From format version 4 on, manifests may contain locations relative
        to the table's location; both mappings then also have the relative location of each file as a key.
        """
        metadata = self.state.metadata
        if metadata.format_version < _RELATIVE_FROM:
            return self.moved, self.lengths
        short = {relative_location(name, self.new): length for name, length in self.lengths.items()}
        return self.moved.with_relative(metadata.location, self.new), {**self.lengths, **short}

    def _documents(self) -> str:
        """Write the metadata files, the current one last; return the location of the current one."""
        metadata = self.state.metadata
        log = [e.metadata_file for e in metadata.metadata_log]
        documents: dict[str, tuple[dict[str, Any], bool]] = {}
        for location in dict.fromkeys((*log, self.state.metadata_location)):
            try:
                raw = self.storage.read(location, kind="metadata")
                documents[location] = (parse_document(raw, location)[0], raw[:2] == b"\x1f\x8b")
            except IceexploreError as e:
                if location == self.state.metadata_location:
                    raise
                if not isinstance(e, FileMissingError):  # writers may delete older files (spec, "metadata-log")
                    self.missing[location] = str(e)
        for location in documents:
            self.moved[location] = f"{self.new}/{self._name(location, 'metadata')}"
        for location, (document, packed) in documents.items():
            name = self.moved[location][len(self.new) + 1 :]
            if self.keep:
                self._write(name, self.storage.read(location, kind="metadata"))
                continue
            text = json.dumps(relocated_document(document, self.new, self._spelled()[0]), ensure_ascii=False)
            encoded = text.encode("utf-8", "surrogatepass")
            self._write(name, gzip.compress(encoded, mtime=0) if packed else encoded)
        current = self.moved[self.state.metadata_location]
        number = current.rpartition("/")[2].removeprefix("v").partition(".")[0]
        hint = number if number.isdecimal() else current.rpartition("/")[2]
        self._write("metadata/version-hint.text", hint.encode())
        return current

    def _name(self, location: str, folder: str) -> str:
        """Return a unique path in the saved table, relative to its location, for the file at ``location``.

        ``folder`` is ``data`` or ``metadata``, and the path begins with it. A file that is already in this folder of
        the original table keeps its path: ``/t/data/d=1/a.parquet`` of the table ``/t`` becomes ``data/d=1/a.parquet``.
        Metadata files also keep their names if they are in the folder that the property ``write.metadata.path`` gives,
        so that engines find the current one by the version hint. Any other file is put directly into ``folder``, and a
        hash of its old location makes its name unique.
        """
        tail = location.removeprefix(self.old + "/")
        if folder == "metadata" and canonical(location).startswith(self.apart):
            tail = f"metadata/{canonical(location).removeprefix(self.apart)}"
        parts = tail.split("/")
        inside = tail != location and parts[0] == folder and not any(p in ("", ".", "..") or "\0" in p for p in parts)
        name = tail if inside else f"{folder}/{_digest(location)}-{parts[-1][-150:] or 'file'}"
        if name in self.names or any(len(p.encode("utf-8", "surrogatepass")) > 250 for p in name.split("/")):
            name = f"{folder}/{_digest(location)}"
        self.names.add(name)
        return name

    def _copy(self, location: str, name: str, kind: str) -> bool:
        path = self.building / name
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with self.storage.local_path(location, kind=kind) as source:
                try:
                    original = open(source, "rb")  # noqa: SIM115 - closed below
                except OSError as e:  # only errors of the original are caught here, not those of writing the copy
                    self.missing[location] = f"{location}: cannot be opened: {e.strerror or e}"
                    return False
                with original, path.open("xb") as copy:
                    if not _share_blocks(original, copy):
                        fault = _copy_bytes(original, copy)
                        if fault is not None:
                            self.missing[location] = f"{location}: cannot be read: {fault}"
                if location in self.missing:
                    path.unlink()
                    return False
        except IceexploreError as e:
            self.missing[location] = str(e)
            return False
        self.files += 1
        self.bytes += path.stat().st_size
        return True

    def _write(self, name: str, content: bytes) -> None:
        path = self.building / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        self.files += 1
        self.bytes += len(content)


def _share_blocks(original: BinaryIO, copy: BinaryIO) -> bool:
    """Let a copy share the original's blocks until either is written to; return False if this is not supported."""
    if sys.platform != "linux":
        return False
    import fcntl

    try:
        fcntl.ioctl(copy.fileno(), _FICLONE, original.fileno())
    except OSError:
        return False
    return True


def _copy_bytes(original: BinaryIO, copy: BinaryIO) -> str | None:
    """Copy the bytes of a file; return None, or if the original cannot be read, the reason.

    Errors of writing the copy are raised.
    """
    while True:
        try:
            block = original.read(_BLOCK)
        except OSError as e:
            return str(e.strerror or e)
        if not block:
            return None
        copy.write(block)


def _texts(state: TableState, snapshots: Iterable[Snapshot], among: set[str] | None) -> dict[str, int]:
    found = files_of_leaves(state, snapshots, among=among)
    pairs = zip(build.to_pylist(found["location"]), build.to_pylist(found["content_type"]), strict=True)
    return {name: content for name, content in pairs if name}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
