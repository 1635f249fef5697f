"""Convert many locations, as written in the metadata, to the real locations of the files."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import IceexploreError
from iceexplore.storage import Storage

__all__ = ["as_bytes", "real_locations"]

#: The maximum number of locations that are converted at a time.
_AT_ONCE = 1 << 16


def real_locations(storage: Storage, locations: AnyArray) -> tuple[AnyArray, dict[str, IceexploreError]]:
    """Return the real location of each file, as `Storage.resolve` finds it, and the errors where that fails.

    Most files of a table are in few folders. Where possible, only the folder is resolved, and the names of its files
    are appended in Arrow. This is faster than resolving each file, which makes a Python object of each location.

    Parameters
    ----------
    locations
        Locations as strings, without nulls; each occurs once.

    Returns
    -------
    tuple
        Two items. The real locations, in the order of ``locations``: an array of bytes, because names of files may not
        be valid text, with null where `Storage.resolve` raised an error. These errors, by location as written, in the
        order of ``locations``.
    """
    errors: dict[str, IceexploreError] = {}
    parts: list[AnyArray] = [pa.array([], pa.binary())]
    for start in range(0, len(locations), _AT_ONCE):
        some = locations.slice(start, _AT_ONCE)
        found, failed = _resolved(storage, some)
        parts.append(found)
        errors.update({some[row].as_py(): failed[row] for row in sorted(failed)})
    return pa.concat_arrays(parts), errors


def as_bytes(place: str) -> bytes:
    """Return a path as bytes, because names of files may not be valid text."""
    return place.encode("utf-8", "surrogatepass")


def _resolved(storage: Storage, locations: AnyArray) -> tuple[AnyArray, dict[int, IceexploreError]]:
    """Return the real locations of files as bytes, and the errors that `Storage.resolve` raises.

    A file for which it raises an error has null as its real location. The key of the error is the file's index in
    ``locations``.
    """
    failed: dict[int, IceexploreError] = {}

    def resolve(row: int) -> bytes | None:
        try:
            return as_bytes(storage.resolve(str(locations[row].as_py())))
        except IceexploreError as error:
            failed[row] = error
        return None

    parts = pc.split_pattern(locations, "/", max_splits=1, reverse=True)
    ends = np.asarray(parts.offsets)
    heads = parts.flatten().take(build.array(ends[:-1])).dictionary_encode()
    names = parts.flatten().take(build.array(ends[1:] - 1))
    of = np.asarray(heads.indices)
    alone = (np.diff(ends) < 2) | np.asarray(pc.is_in(names, pa.array(["", ".", ".."])))

    folders: list[bytes | None] = [None] * len(heads.dictionary)
    links: set[bytes] = set()
    numbers, firsts, counts = np.unique(of[~alone], return_index=True, return_counts=True)
    several = counts > 1
    rows = np.flatnonzero(~alone)[firsts[several]]
    for number, row in zip(numbers[several].tolist(), rows.tolist(), strict=True):
        # `Storage.closed_folder` knows a folder only after one of its files has been resolved, and only if all of its
        # files may be read.
        resolve(row)
        known = storage.closed_folder(heads.dictionary[number].as_py())
        if known is not None:
            folders[number] = as_bytes(known[0])
            links.update(name.encode("utf-8", "surrogateescape") for name in known[1])

    # A symbolic link may lead out of its folder, so it must be resolved by itself. `links` has the names of the links
    # of all folders. So a file with the same name as a link in another folder is also resolved by itself. This takes
    # longer than necessary, but the result is right.
    folder = pa.array(folders, pa.binary()).take(build.array(of))
    bare = names.cast(pa.binary())
    alone |= np.asarray(folder.is_null()) | np.asarray(pc.is_in(bare, pa.array(sorted(links), pa.binary())))
    found = pc.binary_join_element_wise(folder, bare, pa.scalar(b"/", pa.binary()))
    rest = np.flatnonzero(alone)
    places = np.arange(len(found))
    places[rest] = len(found) + np.arange(len(rest))
    resolved = pa.array(map(resolve, rest.tolist()), pa.binary())
    return pa.concat_arrays([found, resolved]).take(build.array(places)), failed
