"""All places of a finding, as columns; `Finding.places` has only the first ten."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from iceexplore.arrow import AnyArray

__all__ = ["DOCUMENTS", "Found", "Hits"]

#: Suffixes of files that are not manifests and list no data files.
DOCUMENTS = (".json", ".gz", ".text")


@dataclass(frozen=True, eq=False)
class Found:
    """The wrong values of entries of one manifest, if they are whole numbers.

    `Finding.found` has only the value of the finding's first place.

    Attributes
    ----------
    manifest
        The manifest's location.
    ordinals
        The position in the manifest of each of these entries, from 0 (`ENTRY_SCHEMA`'s column ``ordinal``).
    values
        The whole number found at each of these entries.
    """

    manifest: str
    ordinals: npt.NDArray[np.int64]
    values: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Hits:
    """All places where a finding's fault was found. Entries are stored as arrays, because there may be millions.

    Attributes
    ----------
    places
        Locations of files with the fault. If only an entry of a manifest has the fault, its position is appended to the
        manifest's location, for example ``#entry 3``.
    entries
        Pairs of a manifest's location and an array of the positions, in this manifest, of the entries with the fault.
    rows
        Row numbers in ``Examination.files`` of entries with the fault. They are used during the examination only.
    files
        Locations of data files with the fault. They are used during the examination only.
    found
        The values found at entries, if they differ from entry to entry.
    complete
        False if there are further places, which are unknown.
    """

    places: tuple[str, ...] = ()
    entries: tuple[tuple[str, npt.NDArray[np.int64]], ...] = ()
    rows: tuple[npt.NDArray[np.int64], ...] = ()
    files: tuple[AnyArray, ...] = ()
    found: tuple[Found, ...] = ()
    complete: bool = True

    @classmethod
    def union(cls, several: Iterable[Hits]) -> Hits:
        """Combine the places of several findings that are merged into one finding."""
        given = list(several)
        return cls(
            places=tuple(dict.fromkeys(place for one in given for place in one.places)),
            entries=tuple(entry for one in given for entry in one.entries),
            rows=tuple(rows for one in given for rows in one.rows),
            files=tuple(files for one in given for files in one.files),
            found=tuple(found for one in given for found in one.found),
            complete=all(one.complete for one in given),
        )

    def by_file(self) -> dict[str, npt.NDArray[np.int64] | None]:
        """Return the positions of the entries with the fault in each manifest, by the manifest's location.

        If a manifest or metadata file as a whole has the fault, its value is None. The entries in `rows` and `files`
        are not included.
        """
        found: dict[str, list[int]] = {}
        wholes: dict[str, None] = {}
        for place in self.places:
            file, mark, number = place.rpartition("#entry ")
            if mark and number.isascii() and number.isdecimal() and len(number) < 19:
                found.setdefault(file, []).append(int(number))
            else:
                # In the place of a metadata file, a suffix such as "#snapshot 17" may follow the location. In all other
                # locations, "#" is a character of the file's name.
                head = place.partition("#")[0]
                wholes[head if head.endswith(DOCUMENTS) else place] = None
        arrays = {file: [np.array(numbers, np.int64)] for file, numbers in found.items()}
        for file, ordinals in self.entries:
            arrays.setdefault(file, []).append(ordinals)
        return {**{file: np.concatenate(parts) for file, parts in arrays.items()}, **wholes}
