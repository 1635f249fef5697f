"""Find the data file that a delete references, even if its location is written differently from the data file's.

Locations are compared as written, in canonical form, by the file that they lead to, and by path. In a table that has
moved, several locations may lead to one file: two prefixes may now be the same folder, or a broken path was resolved by
its last parts (`iceexplore.storage.Storage.place`). A delete must find its data file in all these cases; otherwise the
rows that it removed would reappear.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, Strings, build
from iceexplore.arrow import compute as pc
from iceexplore.graph import TableState, live_manifests
from iceexplore.manifests import ContentType, bool_array, live, whole
from iceexplore.planning.delete_index._codes import Ints, Mask, expand, ranks
from iceexplore.planning.delete_index._equality_bounds import END, Intervals
from iceexplore.storage import canonical, path_only

__all__ = ["live_places", "named_files", "path_intervals"]

_HEAD = r"^[A-Za-z][A-Za-z0-9+.\-]+:(?://[^/]*)?"


def named_files(state: TableState, locations: Strings, referenced: Strings) -> tuple[Ints, Ints, Mask]:
    """Return the pairs of a data file and a delete that references it.

    Parameters
    ----------
    locations
        Locations of the data files.
    referenced
        The data file that each delete references; null for none.

    Returns
    -------
    files, deletes
        Indices into the two arrays.
    otherwise
        For each pair, whether the location of the data file and the location in the delete differ, even in canonical
        form. Then either both lead to the same file of a moved table, or only their paths are equal, without scheme and
        authority. Equal paths make a pair only if exactly one live data file of the state has this path, and its
        location is not the referenced one.
    """
    locations = pc.fill_null(locations, "")
    # Build the hash table of `referenced`, not of `locations`: deletes are usually fewer than data files.
    coded = referenced.dictionary_encode()
    theirs = np.asarray(pc.fill_null(coded.indices, -1)).astype(np.int64)
    ours = np.asarray(pc.fill_null(pc.index_in(locations, value_set=coded.dictionary), -1)).astype(np.int64)
    met = np.zeros(len(coded.dictionary), dtype=bool)
    met[ours[ours >= 0]] = True
    lost = np.flatnonzero(theirs >= 0)
    lost = lost[~met[theirs[lost]]]
    # A data file and a delete with the same number are a pair. A data file whose location, as written, is in no delete
    # gets a number that no delete has.
    other = ours < 0
    ours[other] = len(met) + np.flatnonzero(other)
    otherwise = np.zeros(len(referenced), dtype=bool)
    if len(lost):
        _by_meaning(state, locations, referenced, lost, ours, theirs, otherwise)
    order = np.argsort(theirs, kind="stable")
    ordered = theirs[order]
    files, places = expand(np.searchsorted(ordered, ours, "left"), np.searchsorted(ordered, ours, "right"))
    return files, order[places], otherwise[order[places]]


def _by_meaning(
    state: TableState,
    locations: Strings,
    referenced: Strings,
    lost: Ints,
    ours: Ints,
    theirs: Ints,
    otherwise: Mask,
) -> None:
    """Find the data files of deletes that reference them by a location that is written differently.

    Locations are compared in canonical form, then by the file that they lead to (in a moved table), then by path. The
    file name, after the last slash, must always be the same.

    Parameters
    ----------
    locations, referenced
        See `named_files`.
    lost
        Row numbers of the deletes for which to find a data file.
    ours, theirs
        A number for each data file and for each delete. A delete whose data file is found gets the number of the data
        file: this changes ``theirs``. Data files with the same location get the same number: this changes ``ours``.
    otherwise
        One boolean per delete, set to True if the data file is found, but its canonical location is another one.
    """
    names = referenced.take(build.array(lost))
    near, lost = _alike(locations, names, lost, moved=bool(state.storage.moved))
    first: dict[str, int] = {}
    if not len(near) or not len(lost):
        return
    texts = build.to_pylist(locations.take(build.array(near)))
    # If two entries have the same location, give them the same number, so that a delete applies to both.
    for text, row in zip(texts, near.tolist(), strict=True):
        ours[row] = first.setdefault(text, int(ours[row]))
    by_place = {canonical(text): int(ours[row]) for text, row in zip(texts, near.tolist(), strict=True)}
    by_file: dict[str, int] = {}
    if state.storage.moved:
        by_file = {state.storage.place(text): int(ours[row]) for text, row in zip(texts, near.tolist(), strict=True)}
    bare: list[tuple[int, str]] = []
    for row, text in zip(lost.tolist(), build.to_pylist(referenced.take(build.array(lost))), strict=True):
        code = by_place.get(canonical(text))
        if code is None and by_file:
            code = by_file.get(state.storage.place(text))
            otherwise[row] = code is not None
        if code is None:
            bare.append((row, text))
        else:
            theirs[row] = code
    by_path = {path_only(t): int(ours[row]) for t, row in zip(texts, near.tolist(), strict=True)} if bare else {}
    bare = [(row, text) for row, text in bare if path_only(text) in by_path]
    if not bare:
        return
    places = live_places(state, {path_only(text) for _, text in bare})
    counts = Counter(map(path_only, places))
    for row, text in bare:
        path = path_only(text)
        if canonical(text) not in places and counts[path] <= 1:
            theirs[row], otherwise[row] = by_path[path], True


def _alike(locations: Strings, names: Strings, lost: Ints, *, moved: bool) -> tuple[Ints, Ints]:
    """Return the data files that some delete in ``lost`` may reference, and the deletes that may reference one.

    Both results are row numbers. A delete may reference a data file if both locations have the same file name after the
    last slash. If the table has not moved, and no path could be written differently (`_odd`), both paths must be equal.

    Parameters
    ----------
    locations
        Locations of all data files.
    names
        For each delete in ``lost``, the location of the data file that it references.
    lost
        Row numbers of deletes.
    moved
        Whether the table has moved, so that different paths may lead to the same file.
    """
    ours, theirs = _last(locations), _last(names)
    near = np.flatnonzero(bool_array(pc.is_in(ours, value_set=pc.unique(theirs))))
    far = np.flatnonzero(bool_array(pc.is_in(theirs, value_set=pc.unique(ours.take(build.array(near))))))
    spelled, named = locations.take(build.array(near)), names.take(build.array(far))
    mine, other = _tail(spelled), _tail(named)
    mixed = moved or _odd(spelled).any() or _odd(named).any()
    if not mixed:
        near = near[bool_array(pc.is_in(mine, value_set=pc.unique(other)))]
        far = far[bool_array(pc.is_in(other, value_set=pc.unique(mine)))]
    return near, lost[far]


def _last(values: Strings) -> Strings:
    """Return the part of each location after its last slash."""
    parts = pc.split_pattern(values, "/", max_splits=1, reverse=True)
    return parts.flatten().take(pa.array(np.asarray(parts.offsets)[1:] - 1))


def live_places(state: TableState, paths: Collection[str]) -> dict[str, str]:
    """Return the locations of the live data files that have one of these paths.

    The result has canonical locations as keys, and locations as written as values. This reads all data manifests.
    """
    root = state.root()
    if root is None:
        return {}
    places: dict[str, str] = {}
    wanted = frozenset(paths)
    ends = pa.array(sorted({path.rpartition("/")[2] for path in wanted}), pa.string())
    direct = state.reader.direct(root)
    rows = live_manifests(root, {int(ContentType.DATA_MANIFEST)})
    for leaf in [*([] if direct is None else [direct]), *(state.reader.leaves(root, rows) if rows else ())]:
        entries = leaf.entries
        mine = bool_array(live(entries)) & bool_array(pc.equal(entries["content_type"], int(ContentType.DATA)))
        found = whole(entries["location"].filter(pa.array(mine)).drop_null())
        found = found.filter(pc.is_in(_last(found), value_set=ends))
        places.update((canonical(text), text) for text in build.to_pylist(found) if path_only(text) in wanted)
    return places


def path_intervals(
    locations: Strings,
    low: Strings,
    high: Strings,
    cut: Callable[[AnyArray], Mask],
    prefixes: Sequence[str] = (),
) -> Intervals:
    """Return locations of data files, and bounds of ``file_path``, as intervals of paths without scheme and authority.

    Bounds exclude no data file if they are missing, possibly truncated, of different schemes, or could be written
    differently. An upper bound includes every path that begins with it.

    Parameters
    ----------
    low, high
        Bounds of the delete files.
    cut
        Function that returns which texts may be truncated.
    prefixes
        Mapped prefixes of a moved table, the longest first (`Storage.prefixes`). A file may have one location under
        each prefix. So only locations and bounds under one prefix are compared, the one with the most data files.
        Bounds under other prefixes exclude nothing, and data files under other prefixes are never excluded.
    """
    place, lowest, highest = _places(locations, low, high)
    free = _odd(locations)
    known = bool_array(pc.equal(_head(low), _head(high))) & (lowest >= 0) & (highest >= lowest)
    known &= ~_odd(low) & ~_odd(high) & ~cut(low) & ~cut(high)
    if prefixes:
        mine, lows, highs = (_prefix_of(values, prefixes) for values in (locations, low, high))
        usual = np.bincount(mine + 1, minlength=2)[1:].argmax()  # the prefix with the most data files
        free |= mine != usual
        known &= (lows == usual) & (highs == usual)
    return Intervals(
        np.where(free, 0, place), np.where(free, END, place), np.where(known, lowest, 0), np.where(known, highest, END)
    )


def _prefix_of(values: Strings, prefixes: Sequence[str]) -> Ints:
    """Return the index of the prefix that each location's path is under; -1 for none."""
    tails = _tail(values)
    out = np.full(len(values), -1, dtype=np.int64)
    for i, prefix in enumerate(prefixes):
        out[(out < 0) & bool_array(pc.starts_with(tails, path_only(prefix).rstrip("/") + "/"))] = i
    return out


def _places(locations: Strings, low: Strings, high: Strings) -> list[Ints]:
    """Return the ranks of ``locations``, of ``low`` and of ``high`` in one common order of their paths.

    Scheme and authority are ignored. A path in ``high`` ranks above all paths that begin with it. Null has rank -1.
    """
    # 0xff is above every byte of UTF-8.
    beyond = pc.binary_join_element_wise(_tail(high).cast(pa.binary()), b"\xff", b"")
    order = ranks(_tail(locations), _tail(low), beyond)
    assert order is not None  # texts are always comparable
    return order


def _tail(values: Strings) -> Strings:
    """Return the path of each location, without scheme and authority."""
    return pc.replace_substring_regex(values, _HEAD + "/", "/")


def _head(values: Strings) -> Strings:
    """Return the scheme and authority of each location, such as ``s3://bucket``.

    The result is empty if the location is only a path, and null if the location is null.
    """
    found = pc.struct_field(pc.extract_regex(values, f"(?P<head>{_HEAD})/"), "head")
    return pc.if_else(values.is_null(), pa.scalar(None, pa.string()), pc.fill_null(found, ""))


def _odd(values: Strings) -> Mask:
    """Return which locations are null, have no path, or could be written differently, such as those with ``//``."""
    odd = bool_array(pc.match_substring_regex(_tail(values), r"//|(^|/)\.\.?(/|$)|/$|^[^/]*:"))
    odd |= bool_array(pc.match_substring_regex(values, r"^(?i:file)://[^/]")) | bool_array(values.is_null())
    out: Mask = odd
    return out
