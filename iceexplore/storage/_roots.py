"""The locations to suggest for ``allow=``: as few as possible, and none wider than the refused files require."""

from __future__ import annotations

import re
from collections.abc import Iterable
from os import PathLike, fspath
from typing import Protocol

from iceexplore.errors import OptionError, OutsideRootsError, Unchecked
from iceexplore.storage._location import basename, dirname, within

__all__ = ["Places", "admitting", "allowed_places", "outside"]

#: The folder of a partition, as Hive and Iceberg name it; the other partitions are beside it.
_PARTITION = re.compile(r"[^=/]+=.*")
#: If there are more suggestions than this, they are merged into common parent folders.
_MOST = 8
#: Never suggested, because they are too wide: a whole disk, or all hosts of a scheme.
_TOP = re.compile(r"[/.]?|[A-Za-z][A-Za-z0-9+.-]*:/*")


def allowed_places(allow: Unchecked) -> tuple[str, ...]:
    """Return the locations given as ``allow=`` (one or several) as a tuple of strings.

    Raises
    ------
    OptionError
        The argument is neither one location nor several.
    """
    asked = [allow] if isinstance(allow, (str, PathLike)) else allow
    given = [fspath(x) if isinstance(x, PathLike) else x for x in asked] if isinstance(asked, Iterable) else [asked]
    if not all(isinstance(place, str) and place.strip() and "\0" not in place for place in given):
        raise OptionError(f"allow={allow!r}: expected locations, as strings")
    return tuple(given)


def admitting(real: str) -> str:
    """Return the place to allow for a file: its folder, or the folder above its partition folders, or only the file."""
    folder = dirname(real)
    while _PARTITION.fullmatch(basename(folder)):
        folder = dirname(folder)
    return real if _TOP.fullmatch(folder) else folder


class Places(Protocol):
    """The part of a `Storage` that says where a location is."""

    def resolve(self, location: str) -> str:
        """Return where a location is now; raise `OutsideRootsError` if it may not be read."""


def outside(storage: Places, locations: Iterable[str]) -> tuple[int, tuple[str, ...]]:
    """Return how many of the locations a storage refuses, and the fewest ``allow=`` locations that admit them."""
    count = 0
    places: set[str] = set()
    for location in locations:
        try:
            storage.resolve(location)
        except OutsideRootsError as error:
            count += 1
            places.update(error.allow)
    return count, _fewest(places)


def _fewest(places: Iterable[str]) -> tuple[str, ...]:
    """Return the places that are not inside any other; if there are too many, return common parent folders."""
    found = _outermost(places)
    while len(found) > _MOST:
        deepest = max(place.count("/") for place in found)
        above = _outermost(admitting(place) if place.count("/") == deepest else place for place in found)
        if above == found:
            break
        found = above
    return tuple(found)


def _outermost(places: Iterable[str]) -> list[str]:
    """Return the places that are not inside any other, sorted."""
    found: list[str] = []
    # In this order, everything inside a folder follows directly after it. The folder "." contains all relative places,
    # wherever they are in the order, so it comes first.
    for place in sorted(set(places), key=lambda place: (place != ".", place.replace("/", "\0"))):
        if not any(within(place, other) for other in (*found[:1], *found[-1:])):
            found.append(place)
    return sorted(found)
