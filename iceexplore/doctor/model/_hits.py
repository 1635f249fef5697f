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
    """The values that an examination found for the faulty entries of one manifest, for example actual file sizes.

    Only values that are whole numbers are kept. `Finding.found` has the value of only one entry, the finding's first.

    Attributes
    ----------
    manifest
        The manifest's location.
    ordinals
        The positions of the faulty entries in the manifest, from 0 (column ``ordinal`` of `ENTRY_SCHEMA`).
    values
        The value that was found for each of these entries, in the same order.
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
        Row numbers in ``Examination.files`` of entries with the fault. Only a running examination has them; at its end,
        they are converted to `entries`.
    files
        Locations of data files with the fault. Only a running examination has them; at its end, they are converted to
        `entries`, too.
    found
        For each manifest with faulty entries, the value that the examination found for each of them, for example the
        actual file size. Empty if the fault has no such values.
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
        """Combine the places of several findings, for the one finding that replaces them."""
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
                # If the place is a part of a metadata file, a suffix such as "#snapshot 17" follows the file's
                # location. In all other places, "#" is a character of the file's name.
                head = place.partition("#")[0]
                wholes[head if head.endswith(DOCUMENTS) else place] = None
        arrays = {file: [np.array(numbers, np.int64)] for file, numbers in found.items()}
        for file, ordinals in self.entries:
            arrays.setdefault(file, []).append(ordinals)
        return {**{file: np.concatenate(parts) for file, parts in arrays.items()}, **wholes}
