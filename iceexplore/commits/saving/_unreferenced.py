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
#: Matches locations whose path is what remains if scheme and authority are removed. `_NOT_PLAIN` matches exceptions,
#: whose path the storage must determine: locations with ``.`` or ``..`` as a folder, and locations such as
#: ``file://x/y``, in which ``x/y`` is a relative path.
_PLAIN = r"^(?:[A-Za-z][A-Za-z0-9+.\-]*:(?://[^/]*)?)?/"
_NOT_PLAIN = r"/\.\.?(?:/|$)|^(?i:file)://[^/]"


def path_keys(storage: Storage, locations: AnyColumn) -> AnyArray:
    """Return the path of each location: two locations with equal paths mean the same file.

    Scheme and authority are left out, as when Iceberg looks for orphan files. If the table was moved, or if the storage
    is a simulation's overlay, the path is where the file really is, not where its location in the metadata points.
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
    except IceexploreError:  # the location may not be read, or is invalid: use its own path
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
