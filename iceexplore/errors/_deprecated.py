"""Names that moved to another package or changed: the old import works for one release, with a warning."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["moved_names"]


def moved_names(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a package whose names moved or changed.

    Parameters
    ----------
    package
        The package that had the names.
    places
        The new package of each name; ``package:name`` if the name has changed, too.
    """

    def find(name: str) -> Any:  # noqa: ANN401  whatever has that name
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        place, _, new = places[name].partition(":")
        text = f"{package}.{name} is deprecated: import {new or 'it'} from {place}"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return getattr(importlib.import_module(place), new or name)

    return find
