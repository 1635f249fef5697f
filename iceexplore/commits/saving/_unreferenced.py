"""Compare the files in a folder with those that a table references, by path; derive a file's kind from its name."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyColumn, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import IceexploreError
from iceexplore.formats import PUFFIN, Avro, Parquet, format_of_suffix
from iceexplore.storage import Entry, OverlayStorage, Storage, path_only

__all__ = ["file_kind", "is_referenced", "path_keys"]

_PREFIX = r"^[A-Za-z][A-Za-z0-9+.\-]*:(?://[^/]*)?"
#: Matches plain locations: an optional scheme and authority, and a path that begins with a slash, as in
#: ``s3://bucket/a/b``. The path, here ``/a/b``, is what remains without scheme and authority. `_NOT_PLAIN` matches
#: exceptions: locations with a folder ``.`` or ``..``, and locations such as ``file://x/y``, in which ``x`` is not an
#: authority, but part of the relative path ``x/y``. For exceptions, and for locations that `_PLAIN` does not match, the
#: storage determines the path.
_PLAIN = r"^(?:[A-Za-z][A-Za-z0-9+.\-]*:(?://[^/]*)?)?/"
_NOT_PLAIN = r"/\.\.?(?:/|$)|^(?i:file)://[^/]"


def path_keys(storage: Storage, locations: AnyColumn) -> AnyArray:
    """Return the path of each location; two locations with the same path are taken for the same file.

    A path has no scheme and no authority: both ``s3://bucket/a`` and ``s3a://bucket/a`` have the path ``/a``. Iceberg
    also compares such paths when it looks for orphan files. In a table that was moved, and in a simulation, a file may
    be in another place than its location in the metadata. The path is then that of the place from which ``storage``
    reads the file.
    """
    locations = locations.combine_chunks() if isinstance(locations, pa.ChunkedArray) else locations
    paths = _paths(locations)
    plain = pc.and_(
        pc.match_substring_regex(locations, _PLAIN), pc.invert(pc.match_substring_regex(locations, _NOT_PLAIN))
    )
    elsewhere = bool(storage.moved) or isinstance(storage, OverlayStorage)
    rows = np.arange(len(locations)) if elsewhere else np.flatnonzero(~np.asarray(pc.fill_null(plain, True)))
    if not len(rows):
        return paths
    odd = build.to_pylist(locations.take(pa.array(rows, pa.int64())))
    mask = np.zeros(len(locations), bool)
    mask[rows] = True
    return pc.replace_with_mask(paths, pa.array(mask), pa.array([_real_path(storage, one) for one in odd], pa.string()))


def _paths(locations: AnyArray) -> AnyArray:
    return pc.replace_substring_regex(pc.replace_substring_regex(locations, _PREFIX, ""), "/{2,}", "/")


def _real_path(storage: Storage, location: str | None) -> str | None:
    if location is None:
        return None
    try:
        return path_only(storage.resolve(location))
    except IceexploreError:  # for example, it is outside the folders that may be read: use the path as written
        return path_only(location)


def is_referenced(storage: Storage, entries: Sequence[Entry], references: AnyColumn) -> npt.NDArray[np.bool_]:
    """Return, for each file of a listing, whether it is at one of the locations in ``references``."""
    keys = _paths(pa.array([e.real for e in entries], pa.string()))
    return np.asarray(pc.is_in(keys, value_set=path_keys(storage, references)))


def file_kind(real: str) -> str:
    """Return the kind of a file, derived from its name and folder.

    The kinds are ``data`` (also delete files), ``manifest`` (also manifest lists and roots), ``metadata``, ``puffin``,
    ``temporary`` (a partially written file) and ``other``.
    """
    folder, name = os.path.split(real)
    if name.startswith(".") and name.endswith(".tmp"):
        return "temporary"
    if name.endswith(PUFFIN.suffixes):
        return "puffin"
    if os.path.basename(folder) == "metadata":
        if name.endswith((".metadata.json", ".metadata.json.gz")):
            return "metadata"
        return "manifest" if name.endswith((*Avro.suffixes, *Parquet.suffixes)) else "other"
    return "other" if format_of_suffix(name) is None else "data"
