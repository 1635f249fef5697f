"""Short names for a diagram, numbered in order of appearance: M1, D1, DV1."""

from __future__ import annotations

from collections.abc import Mapping

from iceexplore.manifests import ContentType

__all__ = ["SeedNames"]

_PREFIX = {
    ContentType.DATA: "D",
    ContentType.POSITION_DELETE: "DV",
    ContentType.EQUALITY_DELETE: "E",
    ContentType.DATA_MANIFEST: "M",
    ContentType.DELETE_MANIFEST: "M",
    ContentType.MANIFEST_DV: "DV",
}


class SeedNames:
    """Short names by key (a location, or a vector's position in its file); given names are used first."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._names = dict(given)
        self._taken = set(given.values())
        self._counts: dict[str, int] = {}

    def of(self, key: str, content: int | None) -> str:
        """Return the name of a key, choosing a new one if it has none yet."""
        if key not in self._names:
            # F for content types that no entry should have, but a damaged root may contain
            prefix = next((prefix for kind, prefix in _PREFIX.items() if kind == content), "F")
            name = ""
            while not name or name in self._taken:
                self._counts[prefix] = self._counts.get(prefix, 0) + 1
                name = f"{prefix}{self._counts[prefix]}"
            self._names[key] = name
            self._taken.add(name)
        return self._names[key]

    def known(self, key: str) -> str:
        """Return the name of a key if it has one, otherwise the last part of its location."""
        return self._names.get(key) or key.rpartition("/")[2]
