"""The Delta log: its commits as actions, and the trees that they name.

Delta's PROTOCOL.md, "Delta Log Entries"; for the action ``checkpoint`` and standalone checkpoints the RFC
``iceberg-v4-metadata.md``. Delta Lake 4.4 writes the action as an object, the RFC defines it as an array of
actions: both are read. A commit never changes, so it is read once and cached by location.
"""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any, cast

from iceexplore.delta._actions import FileAction, file_action, whole_number
from iceexplore.errors import FileMissingError, FormatError
from iceexplore.storage import CACHE, Budget, JsonValue, Storage, load_json

__all__ = [
    "Commit",
    "LogFiles",
    "Tree",
    "commit_name",
    "commit_version",
    "commits_since",
    "read_commit",
]

FOLDER = "_delta_log"
_COMMIT = re.compile(r"(\d{20})\.json")
_STANDALONE = re.compile(r"(\d{20})\.checkpoint\.parquet")
_LOCATION = re.compile(rf"(?:.*/)?{FOLDER}/(\d{{20}})\.(?:json|checkpoint\.parquet)")
#: Actions that describe the table, not its files.
_ABOUT = ("protocol", "metaData", "domainMetadata", "txn", "sidecar")
_MOST_CHECKPOINT_ROWS = 1_000_000


@dataclass(frozen=True)
class Tree:
    """A tree that a ``checkpoint`` action names.

    Attributes
    ----------
    version
        The version of the table that the root describes.
    location
        The root manifest's location, relative to the table or absolute.
    about
        The table's other actions as of the checkpoint: ``protocol``, ``metaData``, ``domainMetadata``.
    """

    version: int
    location: str
    size: int | None
    about: tuple[tuple[str, dict[str, Any]], ...] = field(repr=False)


@dataclass(frozen=True)
class Commit:
    """A commit, or a standalone checkpoint.

    Attributes
    ----------
    about
        The actions that do not concern files, as pairs of kind and content, in the file's order.
    files
        Files added and removed.
    tree
        The tree that it names, which describes an earlier version or this one.
    length
        Size of the file in bytes.
    is_checkpoint
        True for a standalone checkpoint: ``files`` are then all changes since the tree.
    """

    version: int
    location: str
    about: tuple[tuple[str, dict[str, Any]], ...] = field(repr=False)
    files: tuple[FileAction, ...] = field(repr=False)
    tree: Tree | None
    length: int
    is_checkpoint: bool = False

    def get(self, kind: str) -> dict[str, Any]:
        """Return the content of the last action of a kind; empty if the commit has none."""
        return next((body for name, body in reversed(self.about) if name == kind), {})


@dataclass(frozen=True)
class LogFiles:
    """The files of a log by version: commits, and standalone checkpoints."""

    commits: dict[int, str]
    checkpoints: dict[int, str]

    @classmethod
    def of(cls, storage: Storage, log: str) -> LogFiles:
        """List a log. Raises the same errors as `Storage.read`."""
        commits: dict[int, str] = {}
        checkpoints: dict[int, str] = {}
        for info in storage.list(log):
            name = info.location.rpartition("/")[2]
            for pattern, found in ((_COMMIT, commits), (_STANDALONE, checkpoints)):
                match = pattern.fullmatch(name)
                if match is not None:
                    found[int(match[1])] = f"{log}/{name}"
        return cls(commits, checkpoints)


def commit_name(version: int) -> str:
    """Return the name of a commit's file."""
    return f"{version:020d}.json"


def commit_version(location: str) -> int | None:
    """Return the version of a commit or standalone checkpoint by its location; None for any other file."""
    match = _LOCATION.fullmatch(location)
    return None if match is None else int(match[1])


def commits_since(storage: Storage, location: str) -> tuple[Tree | None, list[Commit]]:
    """Return the newest tree at or below a commit's version, and the commits after it up to this one, oldest first.

    Without a tree, the commits begin with version 0.

    Raises
    ------
    FileMissingError
        A commit that is needed is missing.
    IceexploreError
        A commit cannot be read.
    """
    log, version = location.rpartition("/")[0], commit_version(location) or 0
    last, found, at = version, {}, version
    tree: Tree | None = None
    least = 0
    while at >= least:
        commit = _one(storage, log, at)
        found[at] = commit
        if tree is None and commit.tree is not None and commit.tree.version <= last:
            tree = commit.tree
            least = at if commit.is_checkpoint else min(at, tree.version + 1)
        at -= 1
    after = -1 if tree is None else tree.version
    return tree, [found[v] for v in sorted(found) if v > after or found[v].is_checkpoint]


def _one(storage: Storage, log: str, version: int) -> Commit:
    location = f"{log}/{commit_name(version)}"
    try:
        return read_commit(storage, location)
    except FileMissingError as missing:
        try:
            return read_commit(storage, f"{log}/{version:020d}.checkpoint.parquet")
        except FileMissingError:
            raise FileMissingError(
                f"{location} is missing, and there is no tree of this or a later version from which to build the state"
            ) from missing


def read_commit(storage: Storage, location: str) -> Commit:
    """Read a commit or a standalone checkpoint.

    Raises
    ------
    FormatError
        The file is damaged; the message names the line.
    IceexploreError
        The file is missing, or cannot be read.
    """

    def load() -> Commit:
        data = storage.read(location, kind="metadata")
        version = commit_version(location)
        assert version is not None
        is_checkpoint = _STANDALONE.fullmatch(location.rpartition("/")[2]) is not None
        actions = list(_rows(data, location) if is_checkpoint else _lines(data, location))
        return _commit(version, location, actions, len(data), is_checkpoint)

    key = ("delta-commit", storage.key(location), location, storage.fingerprint(location))
    return CACHE.get_or_load(key, load, lambda commit: 16 * commit.length + 4096)


def _lines(data: bytes, location: str) -> Iterator[tuple[str, JsonValue, str]]:
    budget = Budget(location, len(data))
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        where = f"{location}#line {number}"
        try:
            action = load_json(line.decode("utf-8-sig" if number == 1 else "utf-8"), budget, "the commit's actions")
        except UnicodeDecodeError as error:
            raise FormatError(f"line {number} is not UTF-8: {error.reason}", location=location) from None
        except json.JSONDecodeError as error:
            text = f"line {number} is not valid JSON: {error.msg} (column {error.colno})"
            raise FormatError(text, location=location) from None
        except (ValueError, RecursionError) as error:
            raise FormatError(f"line {number} is not valid JSON: {error}", location=location) from None
        if not isinstance(action, dict):
            raise FormatError(f"line {number} is not an action: expected a JSON object", location=location)
        for kind, body in action.items():
            yield sys.intern(kind), body, where


def _rows(data: bytes, location: str) -> Iterator[tuple[str, JsonValue, str]]:
    """Yield the actions of a standalone checkpoint: each row is one action, in the column named after its kind."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(cast("IO[bytes]", io.BytesIO(data)), page_checksum_verification=True)
        rows = file.metadata.num_rows
        if rows > min(_MOST_CHECKPOINT_ROWS, 64 * len(data)):
            raise FormatError(f"the footer claims {rows} rows in a file of {len(data)} bytes", location=location)
        budget = Budget(location, len(data))
        budget.reserve(sum(file.metadata.row_group(i).total_byte_size for i in range(file.num_row_groups)), "its rows")
        for number, row in enumerate(file.read(use_threads=False).to_pylist()):
            for kind, body in row.items():
                if body is not None:
                    yield kind, _plain(body), f"{location}#row {number}"
    except (pa.ArrowException, OSError, ValueError) as error:
        raise FormatError(f"the checkpoint cannot be read: {error}", location=location) from None


def _plain(value: JsonValue) -> JsonValue:
    """Convert a value read from Parquet to its JSON form: maps become objects, and nulls are left out."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        if value and all(isinstance(item, tuple) and len(item) == 2 for item in value):
            return {key: _plain(item) for key, item in value}
        return [_plain(item) for item in value]
    return value


def _commit(
    version: int, location: str, actions: list[tuple[str, JsonValue, str]], length: int, is_checkpoint: bool
) -> Commit:
    about: list[tuple[str, dict[str, Any]]] = []
    files: list[FileAction] = []
    checkpoint: list[tuple[str, JsonValue]] = []
    for kind, body, where in actions:
        if kind in ("add", "remove"):
            files.append(file_action(kind, body, where))
        elif kind == "checkpoint":
            checkpoint += _inside(body, where)
        elif is_checkpoint and kind in ("checkpointMetadata", "contentRoot"):
            checkpoint.append((kind, body))
        elif isinstance(body, dict):
            about.append((kind, body))
    if is_checkpoint:
        checkpoint += about
    tree = _tree(checkpoint, version, location, is_checkpoint) if checkpoint else None
    return Commit(version, location, tuple(about), tuple(files), tree, length, is_checkpoint)


def _inside(body: JsonValue, where: str) -> Iterator[tuple[str, JsonValue]]:
    """Yield the actions in a ``checkpoint``, which is an array of actions or an object with a key for each kind."""
    if isinstance(body, dict):
        yield "checkpointMetadata", {"version": body.get("version")}
        for kind, item in body.items():
            if kind in ("contentRoot", *_ABOUT):
                for one in item if isinstance(item, list) else [item]:
                    yield kind, one
        return
    if not isinstance(body, list):
        raise FormatError("the checkpoint is neither an array nor an object", location=where, field="checkpoint")
    for action in body:
        if isinstance(action, dict):
            yield from action.items()


def _tree(checkpoint: list[tuple[str, JsonValue]], version: int, location: str, is_checkpoint: bool) -> Tree:
    found = {kind: body for kind, body in checkpoint if kind in ("checkpointMetadata", "contentRoot")}
    root, stated = found.get("contentRoot"), found.get("checkpointMetadata")
    path = root.get("path") if isinstance(root, dict) else None
    if not isinstance(root, dict) or not isinstance(path, str) or not path:
        raise FormatError("the checkpoint names no contentRoot", location=location, field="checkpoint.contentRoot")
    covers = whole_number(root.get("version"))
    if covers is None:
        covers = whole_number(stated.get("version")) if isinstance(stated, dict) else None
    if covers is None or covers > version:
        raise FormatError(
            f"the checkpoint in the commit of version {version} "
            f"{'states no version' if covers is None else f'describes the later version {covers}'}",
            location=location,
            field="checkpoint.version",
        )
    about = tuple((kind, body) for kind, body in checkpoint if kind in _ABOUT and isinstance(body, dict))
    return Tree(covers, path, whole_number(root.get("sizeInBytes")), about)
