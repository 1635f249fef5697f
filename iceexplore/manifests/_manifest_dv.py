"""Manifest deletion vectors: the positions of a leaf manifest's entries that are removed.

They are stored in the root (content type MANIFEST_DV), inline or as a blob of a Puffin file. The encoding is a portable
32-bit roaring bitmap (V4 proposal and draft), a Mumbling bitmap (later drafts), the ``deletion-vector-v1`` blob of data
files, or that blob without its length and checksum (Delta Lake). It is recognised by the first bytes, and decoding must
consume all bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyColumn, build
from iceexplore.arrow import compute as pc
from iceexplore.deletes import (
    DV_MAGIC,
    decode_deletion_vector,
    decode_mumbling,
    encode_bitmap32,
    read_bitmap32,
    read_bitmap64,
    read_range,
)
from iceexplore.errors import FormatError, IceexploreError, Problem, Problems, problem
from iceexplore.manifests.model._arrow import whole
from iceexplore.manifests.model._content_entry import ContentType, Status, live
from iceexplore.manifests.rules._root_rows import stray_manifest_dvs
from iceexplore.manifests.rules._rows import Rows
from iceexplore.manifests.rules._values import beyond_stored
from iceexplore.storage import Storage, canonical

if TYPE_CHECKING:
    from pyroaring import BitMap, BitMap64


__all__ = [
    "apply_manifest_dvs",
    "decode_manifest_dv",
    "encode_manifest_dv",
    "manifest_dv_form",
    "manifest_dvs",
    "read_manifest_dv",
    "stray_problems",
]

_MANIFESTS = pa.array([int(ContentType.DATA_MANIFEST), int(ContentType.DELETE_MANIFEST)], pa.int32())


class Root(Protocol):
    """The attributes of a root `Manifest` that are needed to read its manifest DVs."""

    @property
    def location(self) -> str:
        """The location, for error messages."""

    @property
    def entries(self) -> pa.Table:
        """The entries, one per row."""


def read_manifest_dv(storage: Storage | None, root: Root, row: int) -> BitMap:
    """Read the positions that a manifest DV removes from its leaf.

    Parameters
    ----------
    root
        The root `Manifest`.
    row
        A row of ``root.entries`` of content type MANIFEST_DV.

    Returns
    -------
    pyroaring.BitMap
        Positions of the leaf's stored entries, including DELETED ones. It may hold far more positions than its bytes
        suggest.

    Raises
    ------
    FormatError
        The entry has neither inline content nor the location of a file with it, or the content is not a valid bitmap.
    IceexploreError
        The Puffin file is missing or cannot be read.
    """
    entry = root.entries.slice(row, 1).select(["location", "deletion_vector"]).to_pylist()[0]
    vector, where = entry["deletion_vector"] or {}, f"{root.location}#entry {row}"
    if vector.get("inline_content") is not None:
        return decode_manifest_dv(vector["inline_content"], location=where)
    offset, size = vector.get("offset"), vector.get("size_in_bytes")
    if offset is None or size is None or not entry["location"]:
        raise FormatError("the vector has neither inline content nor offset and size in a file", location=where)
    assert storage is not None
    data = read_range(storage, entry["location"], offset, size)
    return decode_manifest_dv(data, location=entry["location"], offset=offset)


def decode_manifest_dv(data: bytes, *, location: str | None = None, offset: int = 0) -> BitMap:
    """Decode a manifest DV in any encoding to a `pyroaring.BitMap`.

    Raises
    ------
    FormatError
        The bytes are in none of the encodings, or some bytes are left over.
    """
    return _encoding_of(data).decode(data, location=location, offset=offset)


def manifest_dv_form(data: bytes) -> str:
    """Return the name of a valid manifest DV's encoding, recognized in the same way as in `decode_manifest_dv`."""
    return _encoding_of(data).name


class _Decoder(Protocol):
    def __call__(self, data: bytes, *, location: str | None = None, offset: int = 0) -> BitMap: ...


class _Encoding(NamedTuple):
    """An encoding of manifest DVs: its name, how its first bytes are recognized, and the decoder."""

    name: str
    begins: Callable[[bytes], bool]
    decode: _Decoder


def _blob(data: bytes, *, location: str | None = None, offset: int = 0) -> BitMap:
    return _narrow(decode_deletion_vector(data, location, offset), location, offset)


def _bare_blob(data: bytes, *, location: str | None = None, offset: int = 0) -> BitMap:
    # Delta Lake leaves out the blob's length and CRC-32: the magic comes first and the bitmap takes all the rest.
    return _narrow(read_bitmap64(data[4:], location=location, offset=offset + 4), location, offset)


def _narrow(wide: BitMap64, location: str | None, offset: int) -> BitMap:
    from pyroaring import BitMap

    if len(wide) and wide.max() >= 1 << 32:
        raise FormatError(f"position {wide.max()} exceeds the limit of 2**32", location=location, offset=offset)
    return BitMap.deserialize(bytes(wide.serialize())[12:]) if len(wide) else BitMap()


#: The encodings, in the order in which they are tried; the last one is used for everything that the others do not
#: recognise.
_ENCODINGS = (
    _Encoding("deletion-vector-v1 without length and checksum", lambda data: data[:4] == DV_MAGIC, _bare_blob),
    _Encoding("deletion-vector-v1", lambda data: data[4:8] == DV_MAGIC, _blob),
    _Encoding("Mumbling", lambda data: data[:1] == b"\x01", decode_mumbling),
    _Encoding("portable roaring", lambda data: True, read_bitmap32),
)


def _encoding_of(data: bytes) -> _Encoding:
    return next(encoding for encoding in _ENCODINGS if encoding.begins(data))


def encode_manifest_dv(bitmap: BitMap) -> bytes:
    """Encode positions (a `pyroaring.BitMap`) as a manifest DV: portable roaring, with runs where smaller."""
    return encode_bitmap32(bitmap)


def manifest_dvs(entries: pa.Table) -> dict[str, list[int]]:
    """Return the rows of a root's live manifest DVs by the (canonical) location of their leaf.

    A manifest entry with a vector attached counts as its own DV.
    """
    alive, kind = live(entries), entries["content_type"]
    wanted = pc.fill_null(pc.equal(kind, int(ContentType.MANIFEST_DV)), False)
    bearing = pc.and_(whole(entries["deletion_vector"]).is_valid(), pc.fill_null(pc.is_in(kind, _MANIFESTS), False))
    target = pc.if_else(bearing, entries["location"], entries["referenced_file"])
    rows = np.flatnonzero(np.asarray(pc.and_(alive, pc.or_(wanted, bearing))))
    out: dict[str, list[int]] = {}
    for row, location in zip(rows.tolist(), target.take(build.array(rows)).to_pylist(), strict=True):
        if location:
            out.setdefault(canonical(location), []).append(row)
    return out


def stray_problems(entries: pa.Table, location: str) -> list[Problem]:
    """Return a problem for each manifest that has manifest DVs but is not listed in the root: they have no effect."""
    stray = np.flatnonzero(stray_manifest_dvs(Rows(entries)))
    targets = entries["referenced_file"].take(build.array(stray)).to_pylist()
    first: dict[str, int] = {}
    for row, leaf in zip(stray.tolist(), targets, strict=True):
        if leaf:
            first.setdefault(canonical(leaf), row)
    text = "A manifest DV applies to a manifest that this root does not list: it removes nothing."
    how: dict[str, Any] = {"field": "5 MANIFEST_DV", "severity": "warning"}
    return [
        problem("manifest-dv-invalid", f"{location}#entry {row}", text, found=leaf, **how)
        for leaf, row in first.items()
    ]


def apply_manifest_dvs(
    storage: Storage, root: Root, rows: list[int], ordinals: AnyColumn, stored: int, location: str
) -> tuple[AnyArray | None, list[Problem]]:
    """Apply manifest DVs to the entries of a leaf.

    Parameters
    ----------
    rows
        The rows of the leaf's live DVs in the root.
    ordinals, stored
        The entries' positions in the leaf, and the number of rows that it stores.

    Returns
    -------
    tuple
        The column ``manifest_dv``: the ordinal of the DV that removes each entry, or null (None if nothing is removed);
        and the problems. A vector that cannot be read removes nothing.
    """
    problems: list[Problem] = []
    by = np.full(stored, -1, dtype=np.int64)
    about = root.entries.select(["ordinal", "status", "content_type", "record_count"]).take(pa.array(rows)).to_pylist()
    statuses = [Status.EXISTING if entry["status"] is None else entry["status"] for entry in about]
    if len(set(statuses)) < len(statuses):
        text = f"{len(rows)} live manifest DVs of one leaf have the same status; all of them are applied."
        problems.append(problem("manifest-dv-invalid", location, text, field="5 MANIFEST_DV", found=len(rows)))
    # If two vectors remove an entry, the older one (EXISTING) removed it first: apply it last, to overwrite the other.
    for row, entry, _ in sorted(zip(rows, about, statuses, strict=True), key=lambda item: -item[2]):
        where = f"{root.location}#entry {row}"
        try:
            bitmap = read_manifest_dv(storage, root, row)
            positions = _within(bitmap, stored, where, problems)
        except IceexploreError as error:
            problems.append(Problems().add_error(error, where))
            continue
        by[positions] = entry["ordinal"]
        stated = entry["record_count"]  # for an attached vector this is the manifest's count, so it is not compared
        if entry["content_type"] == ContentType.MANIFEST_DV and stated not in (None, len(bitmap)):
            text = f"The root states {stated} removed entries for the manifest DV; it has {len(bitmap)} positions."
            field = "103 record_count"
            problems.append(problem("count-mismatch", where, text, field=field, found=stated, expected=len(bitmap)))
    if not bool((by >= 0).any()):
        return None, problems
    found = by[np.asarray(ordinals)]
    return pa.array(found, mask=found < 0), problems


def _within(bitmap: BitMap, stored: int, where: str, problems: list[Problem]) -> npt.NDArray[np.uint32]:
    """Return the positions below ``stored`` and report others, so that no more positions than entries are listed."""
    from pyroaring import BitMap

    if beyond_stored(bitmap, stored):
        text = f"The manifest DV removes position {bitmap.max()}; its leaf has {stored} entries."
        problems.append(
            problem("manifest-dv-invalid", where, text, field="deletion_vector", found=bitmap.max(), expected=stored)
        )
        bitmap = bitmap & BitMap(range(stored))
    return np.array(bitmap, dtype=np.uint32)
