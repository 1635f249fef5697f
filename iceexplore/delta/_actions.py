"""Parse and check a commit's actions on files: ``add`` and ``remove``, with deletion vectors and back references.

Delta's PROTOCOL.md, "Add File and Remove File" and "Deletion Vectors"; for back references the RFC
``iceberg-v4-metadata.md``, "Backreferences".
"""

from __future__ import annotations

import json
import re
import urllib.parse
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from iceexplore.errors import FormatError
from iceexplore.storage import JsonValue

__all__ = ["BackReference", "DeltaVector", "FileAction", "file_action", "has_scheme", "whole_number"]

#: ZeroMQ's base-85 alphabet (its RFC 32), in which Delta encodes UUIDs.
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_UUID_LETTERS = 20
#: Bytes around a vector in its file, which Delta's sizeInBytes excludes: its size (four bytes before it) and a checksum
#: (four bytes after it).
_FRAME = 8
_LONGEST_STATS = 16 << 20
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")


@dataclass(frozen=True)
class DeltaVector:
    """The deletion vector of a data file.

    Attributes
    ----------
    location
        Relative to the table, or absolute.
    offset, size_in_bytes
        As in Iceberg: they include the size before the vector and the checksum after it.
    """

    location: str
    offset: int
    size_in_bytes: int
    cardinality: int


@dataclass(frozen=True)
class BackReference:
    """Points to a file's entry in a leaf manifest: the manifest's location as written, and the entry's row."""

    manifest: str
    position: int


@dataclass(frozen=True)
class FileAction:
    """An ``add`` or a ``remove``.

    Attributes
    ----------
    location
        Decoded: the log encodes it as a URL. Relative to the table, or absolute.
    partition
        Partition values as text, keyed by the column's physical name.
    stats
        The parsed statistics; numbers with a fraction are decimals.
    data_change
        False if the action only rearranges rows.
    """

    adds: bool
    location: str
    size: int | None
    partition: Mapping[str, str | None]
    rows: int | None
    stats: Mapping[str, Any] = field(repr=False)
    vector: DeltaVector | None
    first_row_id: int | None
    added_in: int | None
    back_reference: BackReference | None
    data_change: bool


def file_action(kind: str, body: JsonValue, where: str) -> FileAction:
    """Parse an ``add`` or ``remove`` action of a commit.

    Raises
    ------
    FormatError
        The action has no path, or its deletion vector or back reference is malformed.
    """
    path = body.get("path") if isinstance(body, dict) else None
    if not isinstance(path, str) or not path:
        raise FormatError(f"the action {kind!r} has no path", location=where, field=kind)
    stats = _stats(body.get("stats"))
    values = body.get("partitionValues")
    return FileAction(
        adds=kind == "add",
        location=urllib.parse.unquote(path),
        size=whole_number(body.get("size")),
        partition={k: v for k, v in values.items() if v is None or isinstance(v, str)} if _is_map(values) else {},
        rows=whole_number(stats.get("numRecords")),
        stats=stats,
        vector=_vector(body.get("deletionVector"), where),
        first_row_id=whole_number(body.get("baseRowId")),
        added_in=whole_number(body.get("defaultRowCommitVersion")),
        back_reference=_back_reference(body.get("backReference"), where),
        data_change=body.get("dataChange") is not False,
    )


def has_scheme(location: str) -> bool:
    """Return whether a location is a URI."""
    return _SCHEME.match(location) is not None


def whole_number(value: JsonValue) -> int | None:
    """Return the value if it is a non-negative integer that fits in a 64-bit column, else None."""
    return value if type(value) is int and 0 <= value < 1 << 63 else None


def _is_map(value: JsonValue) -> bool:
    return isinstance(value, dict)


def _stats(text: JsonValue) -> Mapping[str, Any]:
    """Parse the statistics, which are JSON in a string; malformed ones are ignored, because statistics are optional."""
    if not isinstance(text, str) or len(text) > _LONGEST_STATS:
        return {}
    try:
        found = json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _back_reference(body: JsonValue, where: str) -> BackReference | None:
    if body is None:
        return None
    manifest, position = (body.get(key) for key in ("manifest", "pos")) if _is_map(body) else (None, None)
    row = whole_number(position)
    if not isinstance(manifest, str) or not manifest or row is None or row >= 1 << 32:
        raise FormatError("a backReference has no manifest, or no valid pos", location=where, field="backReference")
    return BackReference(manifest, row)


def _vector(body: JsonValue, where: str) -> DeltaVector | None:
    if body is None:
        return None
    if not _is_map(body):
        raise FormatError("a deletionVector is not an object", location=where, field="deletionVector")
    kind, text = body.get("storageType"), body.get("pathOrInlineDv")
    size, cardinality = whole_number(body.get("sizeInBytes")), whole_number(body.get("cardinality"))
    if not isinstance(text, str) or not text or size is None or cardinality is None:
        raise FormatError(
            "a deletionVector lacks pathOrInlineDv, sizeInBytes or cardinality", location=where, field="deletionVector"
        )
    if kind == "u":
        location = _by_uuid(text, where)
    elif kind == "p":
        location = urllib.parse.unquote(text) if has_scheme(text) else text
    else:
        how = "inside the action, which adaptiveMetadata forbids" if kind == "i" else f"of unknown storageType {kind!r}"
        raise FormatError(f"a deletion vector is {how}", location=where, field="deletionVector.storageType")
    return DeltaVector(location, whole_number(body.get("offset")) or 0, size + _FRAME, cardinality)


def _by_uuid(text: str, where: str) -> str:
    """Return a vector file's location; ``text`` is its folder, followed by 20 letters that encode its name's UUID."""
    folder, letters = text[:-_UUID_LETTERS], text[-_UUID_LETTERS:]
    try:
        digits = [_Z85.index(letter) for letter in letters]
        data = b"".join(_word(digits[i : i + 5]) for i in range(0, len(digits), 5))
        name = f"deletion_vector_{uuid.UUID(bytes=data)}.bin"
    except (ValueError, OverflowError):
        raise FormatError(
            f"{text!r} is not an encoded UUID of a deletion vector", location=where, field="deletionVector"
        ) from None
    return f"{folder}/{name}" if folder else name


def _word(digits: list[int]) -> bytes:
    value = 0
    for digit in digits:
        value = value * 85 + digit
    return value.to_bytes(4, "big")
