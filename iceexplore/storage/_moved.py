"""Moved tables: map location prefixes, as written in the metadata, to the current locations of the files."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from iceexplore.errors import OptionError, Unchecked
from iceexplore.storage._json import JsonValue
from iceexplore.storage._location import (
    basename,
    canonical,
    check_host,
    dirname,
    is_absolute,
    is_local,
    join,
    path_only,
    relative_to,
)

__all__ = ["FolderIndex", "Moves", "find_moves", "root_properties"]

#: Table properties that hold locations (Java: TableProperties; the last two are older names of the first).
ROOT_PROPERTIES = (
    "write.data.path",
    "write.metadata.path",
    "write.folder-storage.path",
    "write.object-storage.path",
)
_CHECKED_PER_KIND = 3
_COMMON = frozenset({"data", "metadata"})
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Move:
    written: str  # as spelled in the metadata
    prefix: str  # the same, canonical
    real: str
    shown: bool  # true if the table was really moved, false if only the spelling differs


def _text(given: Unchecked) -> Unchecked:
    return os.fspath(given) if isinstance(given, os.PathLike) else given


class Moves:
    """Location prefixes as written in the metadata, each mapped to its current place; the longest prefix wins."""

    def __init__(self, given: Mapping[str, str | os.PathLike[str]] | None = None) -> None:
        self._lock = threading.Lock()
        self._by_written: tuple[_Move, ...] = ()
        self._by_real: tuple[_Move, ...] = ()
        asked: Any = given or {}
        pairs = [tuple(map(_text, pair)) for pair in asked.items()] if isinstance(asked, Mapping) else [(None,)]
        if not all(isinstance(x, str) for pair in pairs for x in pair):
            like = "{'s3://bucket/t': '/data/t'}"
            raise OptionError(f"moved={given!r}: give the current place of each prefix as written, such as {like}")
        for written, real in pairs:
            place = canonical(check_host(real))
            self.add(written, place if is_absolute(place) else canonical(os.path.abspath(real)))

    def add(self, written: str, real: str) -> bool:
        """Add a prefix unless it is known; return whether it was new. ``real`` is canonical and absolute."""
        prefix = canonical(written)
        spelled = written.rstrip("/") or written
        with self._lock:
            if any(m.prefix == prefix for m in self._by_written):
                return False
            move = _Move(spelled, prefix, real, not _same_place(prefix, real))
            self._by_written = tuple(sorted((*self._by_written, move), key=lambda m: -len(m.prefix)))
            # sorted is stable: of two spellings of one folder, `unapply` returns the one that was added first, the
            # table's location.
            self._by_real = tuple(sorted((*self._by_real, move), key=lambda m: -len(m.real)))
            return True

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_lock"}  # a lock cannot be pickled

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    def apply(self, place: str) -> str | None:
        """Return the current place of a canonical location, or None where no prefix matches."""
        for move in self._by_written:
            tail = relative_to(place, move.prefix)
            if tail is not None:
                return join(move.real, tail)
        return None

    def apply_path(self, place: str) -> str | None:
        """Return the current place by the path alone, for prefixes where exactly one side has a scheme; else None.

        Tables moved by editing the metadata may contain both ``/warehouse/t`` and ``hdfs://host/warehouse/t``. Scheme
        and authority are ignored only if one side has no scheme, because equal paths in two buckets are different
        files.
        """
        for move in self._by_written:
            if is_local(place) != is_local(move.prefix):
                tail = relative_to(path_only(place), path_only(move.prefix))
                if tail is not None:
                    return join(move.real, tail)
        return None

    def inside(self, place: str) -> bool:
        """Return whether a prefix lies below a canonical folder, whose files may then be in different places now."""
        return any(relative_to(m.prefix, place) for m in self._by_written)

    def unapply(self, real: str) -> str | None:
        """Return the table's spelling of a canonical real location, or None where no prefix matches."""
        for move in self._by_real:
            tail = relative_to(real, move.real)
            if tail is not None:
                return join(move.written, tail)
        return None

    @property
    def prefixes(self) -> tuple[str, ...]:
        """Every prefix in canonical form, longest first."""
        return tuple(m.prefix for m in self._by_written)

    @property
    def shown(self) -> dict[str, str]:
        """The prefixes that have moved, each with its current place."""
        return {m.written: m.real for m in self._by_written if m.shown}

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Every prefix as written, with its current place; sorted."""
        return sorted((m.written, m.real) for m in self._by_written)


def _same_place(prefix: str, real: str) -> bool:
    if prefix == real:
        return True
    if not (is_local(prefix) and is_local(real)):
        return False
    try:
        return os.path.realpath(prefix) == os.path.realpath(real)
    except (OSError, ValueError):  # not a valid file name: a NUL, a lone surrogate
        return False


def root_properties(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the locations in table properties, by property."""
    properties = document.get("properties")
    if not isinstance(properties, dict):
        return {}
    return {k: v for k in ROOT_PROPERTIES if isinstance(v := properties.get(k), str) and v}


@dataclass
class FolderIndex:
    """An index of the folders under a local folder by name, to find copied files by the end of their paths."""

    root: str
    max_folders: int = 5_000
    max_depth: int = 6
    _by_name: dict[str, list[str]] | None = field(default=None, repr=False)

    def folders(self, name: str) -> list[str]:
        """Return the folders with this name, those nearest to the root first."""
        if self._by_name is None:
            self._by_name = self._walk()
        return self._by_name.get(name, [])

    def find(self, place: str) -> tuple[str, str] | None:
        """Find the longest end of a path that exists exactly once under the root.

        Return (prefix of ``place``, its current folder), or None. The end must begin with a distinctive folder name, or
        with a file whose name contains a UUID: every table has a folder ``data``, and many have ``p=1``, so those prove
        nothing.
        """
        head, parts = place.partition("://")[0] + "://" if "://" in place else "", path_only(place).split("/")
        if head:
            parts = [place.partition("://")[2].partition("/")[0], *parts[1:]]
        telling_file = _UUID.search(parts[-1]) is not None
        for i, name in enumerate(parts[:-1]):
            if not name or (not telling_file and (name in _COMMON or "=" in name)):
                continue
            tail = "/".join(parts[i + 1 :])
            found = [f for f in self.folders(name) if os.path.isfile(os.path.join(f, tail))]
            if len(found) == 1:
                return head + "/".join(parts[: i + 1]), found[0]
        return None

    def _walk(self) -> dict[str, list[str]]:
        by_name: dict[str, list[str]] = {}
        level, seen = [self.root], 0
        for _ in range(self.max_depth):
            below: list[str] = []
            for folder in level:
                try:
                    with os.scandir(folder) as entries:
                        names = sorted(e.name for e in entries if e.is_dir(follow_symlinks=False))
                except OSError:
                    continue
                for name in names:
                    seen += 1
                    if seen > self.max_folders:
                        return by_name
                    path = os.path.join(folder, name)
                    by_name.setdefault(name, []).append(path)
                    below.append(path)
            level = below
        return by_name


def find_moves(
    document: Mapping[str, Any],
    metadata_file: str,
    folder: str,
    moves: Moves,
    exists: Callable[[str], bool],
    index: FolderIndex | None,
) -> tuple[str, ...]:
    """Find the prefixes that have moved, by comparing table metadata with the real location of its file.

    Parameters
    ----------
    metadata_file, folder
        The current, canonical places of the metadata file and of the table's folder.
    moves
        The known moves (``moved=``, which take precedence), to which the moves found are added.
    exists
        Returns whether a real location exists; called a few times, never for a table that has not moved.
    index
        The folders of a local table; None if listing would cost requests.

    Returns
    -------
    tuple of str
        Sentences for the table's card.
    """
    location = document.get("location")
    written = location if isinstance(location, str) and location.strip() else None
    named = list(_named_files(document))
    metadata_folder = dirname(metadata_file)
    given = bool(moves.shown)
    proven = False
    if written is not None and moves.apply(canonical(written)) is None:
        here = written_is_here(written, folder)
        if not here and not given and any(dirname(canonical(w)) == metadata_folder for w in named):
            # The metadata folder is where it was written, so nothing moved; the table's folder only differs from
            # `location` (write.metadata.path).
            return ()
        moves.add(written, folder)
        if here and not any(_strays(w, moves, folder) for w in named):
            return ()
    # The names of earlier metadata files are known: if one of them is beside this file, the folder in which the
    # earlier file was written is now this folder. It can differ from the table's `location`, which is often edited.
    for path in named:
        place = canonical(path)
        now = moves.apply(place)
        if now is None and not is_absolute(place):
            now = join(folder, place)  # relative to the table, as `Storage.resolve` takes it
        if now is not None and exists(now):
            proven = True
            continue
        if not exists(join(metadata_folder, basename(place))):
            continue
        proven = True
        was = dirname(path)
        if basename(was) == "metadata" and metadata_folder != folder:
            moves.add(dirname(was), folder)
        if moves.apply(place) != join(metadata_folder, basename(place)):
            moves.add(was, metadata_folder)
    for path in root_properties(document).values():
        _find_root(path, written, folder, moves, index)
    shown = moves.shown
    if not shown:
        return ()
    how = (
        "from moved="
        if given
        else "found by the files beside the metadata file"
        if proven
        else ("assumed: none of the files that could prove it was found")
    )
    pairs = "; ".join(f"{was} is now {now}" for was, now in sorted(shown.items()))
    return (f"Moved: {pairs} ({how}).",)


def written_is_here(written: str, folder: str) -> bool:
    """Return whether a location in the metadata means the given folder.

    A relative location is relative to the working directory or, if the folder is remote, to the folder.
    """
    place = canonical(written)
    if not is_absolute(place):
        place = canonical(os.path.abspath(place)) if is_local(folder) else join(folder, place)
    return _same_place(place, folder)


def _strays(path: str, moves: Moves, folder: str) -> bool:
    now = moves.apply(canonical(path))
    return now is None or relative_to(now, folder) is None


def _find_root(path: str, location: str | None, folder: str, moves: Moves, index: FolderIndex | None) -> None:
    place = canonical(path)
    if index is None or moves.apply(place) is not None or not moves.shown:
        return
    candidates = []
    if location is not None:
        old, new = _without_common_end(canonical(location), folder)
        tail = relative_to(place, old)
        if tail is not None:
            candidates.append(join(new, tail))
    candidates += index.folders(basename(place))
    for candidate in candidates:
        if os.path.isdir(candidate):
            moves.add(path, candidate)
            return


def _without_common_end(a: str, b: str) -> tuple[str, str]:
    """Return both paths without their longest common end, so that a warehouse moved as a whole is one move."""
    while "/" in a and "/" in b and basename(a) == basename(b) and dirname(a) not in (a, "/") and dirname(b) != b:
        a, b = dirname(a), dirname(b)
    return a, b


def _named_files(document: Mapping[str, Any]) -> Iterator[str]:
    snapshots = list(_records(document.get("snapshots")))
    current = document.get("current-snapshot-id")
    snapshots.sort(key=lambda s: (s.get("snapshot-id") == current, _number(s.get("timestamp-ms"))), reverse=True)
    lists = (s.get("manifest-list") for s in snapshots)
    inline = (m for s in snapshots[:1] if isinstance(ms := s.get("manifests"), list) for m in ms)
    log = (e.get("metadata-file") for e in reversed(list(_records(document.get("metadata-log")))))
    statistics = (s.get("statistics-path") for s in _records(document.get("statistics")))
    for kind in (lists, inline, log, statistics):
        yield from islice((p for p in kind if isinstance(p, str) and p), _CHECKED_PER_KIND)


def _records(value: JsonValue) -> Iterator[dict[str, Any]]:
    return (v for v in value if isinstance(v, dict)) if isinstance(value, list) else iter(())


def _number(value: JsonValue) -> float:
    return value if isinstance(value, (int, float)) else 0
