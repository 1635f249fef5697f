"""Resolve V4's relative locations, and make locations relative to a table's (spec, "Paths in Metadata")."""

from __future__ import annotations

import re

__all__ = ["ABSOLUTE_LOCATION", "DOT_SEGMENTS", "relative_location", "resolved_location"]

#: The beginning of an absolute location: a URI scheme, or a slash as in tables on a local disk.
ABSOLUTE_LOCATION = r"^(?:[A-Za-z][A-Za-z0-9+.\-]*:|/|$)"
#: Segments that relative locations must not have.
DOT_SEGMENTS = r"(?:^|/)\.{1,2}(?:/|$)"


def resolved_location(location: str, table_location: str) -> str:
    """Join a relative location to the table's location; return an absolute one unchanged.

    If the table's location is itself relative, a location that already begins with it is returned unchanged, too.
    """
    if re.match(ABSOLUTE_LOCATION, location):
        return location
    if not re.match(ABSOLUTE_LOCATION, table_location):
        own = {table_location.rstrip("/") + "/", table_location.removeprefix("./").rstrip("/") + "/"}
        if location.startswith(tuple(own)):
            return location
    # Always join with a slash, even after a slash at the end: "joined to the prefix (table location) without
    # consideration of any additional separator characters" (spec, "Path Resolution").
    return f"{table_location}/{location}"


def relative_location(location: str, table_location: str) -> str:
    """Return a location below ``table_location`` relative to it, others unchanged (spec, "Path Relativization")."""
    rest = location.removeprefix(f"{table_location}/")
    if not table_location or rest == location or re.match(ABSOLUTE_LOCATION, rest) or re.search(DOT_SEGMENTS, rest):
        return location
    return rest
