"""Relative locations of V4, joined with the table's location.

V4 draft, ``LocationUtil.resolveLocation``: a path without URI scheme becomes ``table location + "/" + path`` and must
not have ``.`` or ``..`` segments. A path that begins with a slash is absolute, as in tables on a local disk. Some old
writers gave the table itself a relative location: locations of files that begin with it are not joined.
"""

from __future__ import annotations

import re
from typing import cast

import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyListArray, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import Problem, problem
from iceexplore.manifests.model._arrow import offsets_of, whole
from iceexplore.metadata import ABSOLUTE_LOCATION, DOT_SEGMENTS

__all__ = ["absolute", "absolute_entries", "relative"]

_ABSOLUTE, _DOTS = ABSOLUTE_LOCATION, DOT_SEGMENTS


def relative(locations: AnyArray, table_location: str | None) -> AnyArray:
    """Make locations below the table's location relative to it; with None, return all as they are.

    Spec, "Path Relativization": this is possible if a location starts with the table's, immediately followed by a
    separator. If the rest looks like an absolute location, readers would not join it, so the location stays absolute.
    """
    if table_location is None or not table_location:
        return locations
    prefix = table_location + "/"
    rest = pc.utf8_slice_codeunits(locations, len(prefix))
    odd = pc.or_(pc.match_substring_regex(rest, _ABSOLUTE), pc.match_substring_regex(rest, _DOTS))
    below = pc.and_(pc.starts_with(locations, prefix), pc.invert(odd))
    return pc.if_else(pc.fill_null(below, False), rest, locations)


def absolute(locations: AnyArray, table_location: str, where: str) -> tuple[AnyArray, list[Problem]]:
    """Join relative locations to the table's location; return the locations, and problems for those with dot segments.

    Parameters
    ----------
    where
        The file that contains the locations.
    """
    if _alike(locations):
        return locations, []
    relative = pc.invert(pc.fill_null(pc.match_substring_regex(locations, _ABSOLUTE), True))
    if not re.match(_ABSOLUTE, table_location):
        for prefix in {table_location, table_location.removeprefix("./")}:
            own = pc.fill_null(pc.starts_with(locations, prefix.rstrip("/") + "/"), False)
            relative = pc.and_(relative, pc.invert(own))
    if not relative.true_count:
        return locations, []
    # "The relative portion is joined to the prefix (table location) without consideration of any additional separator
    # characters": if the table location ends in a slash, two slashes follow (spec, "Path Resolution").
    made = pc.binary_join_element_wise(table_location, locations, "/")
    problems = []
    dotted = pc.and_(relative, pc.fill_null(pc.match_substring_regex(locations, _DOTS), False))
    for row in build.to_pylist(pc.indices_nonzero(dotted)[:10]):
        text = "A relative location has a '.' or '..' segment."
        problems.append(problem("location-invalid", f"{where}#entry {row}", text, found=locations[row].as_py()))
    return pc.if_else(relative, made, locations), problems


def _alike(locations: AnyArray) -> bool:
    """Return whether all locations begin with the first one's scheme (or slash): a fast test for the usual case."""
    if locations.null_count == len(locations):
        return True
    start = re.match(_ABSOLUTE, locations[0].as_py() or "")
    prefix = "" if start is None else start.group()
    return prefix != "" and not pc.any(pc.invert(pc.starts_with(locations, prefix))).as_py()


def absolute_entries(entries: pa.Table, table_location: str, where: str) -> tuple[pa.Table, list[Problem]]:
    """Return entries with absolute ``location``, ``referenced_file`` and ``column_files``, and problems."""
    problems: list[Problem] = []
    for name in ("location", "referenced_file"):
        given = whole(entries[name])
        made, more = absolute(given, table_location, where)
        problems += more
        if made is not given:
            entries = entries.set_column(entries.schema.get_field_index(name), entries.schema.field(name), made)
    lists = cast(AnyListArray, whole(entries["column_files"]))
    if lists.null_count < len(lists):
        items = cast(pa.StructArray, lists.values)
        fields = list(items.type)
        at = items.type.get_field_index("location")
        children = [pc.struct_field(items, [i]) for i in range(len(fields))]
        children[at], more = absolute(children[at], table_location, where)
        problems += more
        made = build.list_array(offsets_of(lists), pa.StructArray.from_arrays(children, fields=fields))
        name = "column_files"
        entries = entries.set_column(entries.schema.get_field_index(name), entries.schema.field(name), made)
    return entries, problems
