"""Find the data file that a delete references, even if the location in the delete differs from that of the file.

Locations are compared in four ways, one after the other: exactly as written; in canonical form; by the real file that
they resolve to, if the table has moved; and by path alone, without scheme and authority. In a moved table, two
different locations may resolve to one file (`iceexplore.storage.Storage.place`): for example, the files that were once
under ``s3://a/t`` and those under ``s3://b/t`` may now be in the same folder. If a delete were not paired with its data
file, the rows that it removes would reappear.
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
        For each delete, the location of the one data file that it references; null if it references no single file.

    Returns
    -------
    files, deletes
        Two arrays with one item per pair: the index of the data file in ``locations``, and the index of the delete in
        ``referenced``.
    otherwise
        One boolean per pair: True if the two locations differ even in canonical form (`canonical` turns ``s3a://b/x``
        into ``s3://b/x``, for example). Such locations form a pair in two cases:

        1. The table's files were moved after its metadata was written, and both locations resolve to the same file.
        2. The locations differ only in scheme or authority, as in ``s3://a/x`` and ``s3://b/x``, and there is no doubt
           which file is meant: no live data file of the snapshot is at the location that the delete references, and not
           more than one location of a live data file has the same path, ``/x``.
    """
    locations = pc.fill_null(locations, "")
    # Look up `locations` in the distinct values of `referenced`, not the other way round: there are usually fewer
    # deletes than data files, so the hash table is smaller.
    coded = referenced.dictionary_encode()
    theirs = np.asarray(pc.fill_null(coded.indices, -1)).astype(np.int64)
    ours = np.asarray(pc.fill_null(pc.index_in(locations, value_set=coded.dictionary), -1)).astype(np.int64)
    met = np.zeros(len(coded.dictionary), dtype=bool)
    met[ours[ours >= 0]] = True
    lost = np.flatnonzero(theirs >= 0)
    lost = lost[~met[theirs[lost]]]
    # Data file ``f`` and delete ``d`` form a pair if ``ours[f]`` equals ``theirs[d]``. So far, -1 occurs in both
    # arrays: in `ours`, if no delete references the data file's location; in `theirs`, if the delete references no
    # single data file. These must not form pairs. So replace each -1 in `ours` by a number that no other data file and
    # no delete has.
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
    """Find the data files of deletes that write the location differently, such as ``s3a://b/x`` for ``s3://b/x``.

    Locations are compared in canonical form, then by the real file that they resolve to (only in a moved table), then
    by path without scheme and authority (only under the conditions that `named_files` describes). In all three cases,
    the file names (the part after the last slash) must be equal. The results are written into ``ours``, ``theirs`` and
    ``otherwise``.

    Parameters
    ----------
    locations
        Locations of the data files.
    referenced
        For each delete, the location of the one data file that it references; null if it references no single file.
    lost
        Row numbers of the deletes whose data files are to be found: no data file has exactly the location that they
        reference.
    ours, theirs
        One number per data file, and one per delete: data file ``f`` and delete ``d`` are a pair if ``ours[f]`` equals
        ``theirs[d]``. If a data file is found for a delete in ``lost``, this function sets the delete's number in
        ``theirs`` to the data file's number in ``ours``. If a location occurs several times in ``locations``, it first
        gives these data files the same number in ``ours``, so that the delete is paired with all of them.
    otherwise
        One boolean per delete. It is set to True if a data file is found for the delete, but the two locations differ
        even in canonical form.
    """
    names = referenced.take(build.array(lost))
    near, lost = _alike(locations, names, lost, moved=bool(state.storage.moved))
    first: dict[str, int] = {}
    if not len(near) or not len(lost):
        return
    texts = build.to_pylist(locations.take(build.array(near)))
    # If a data file was added to the table twice, its location occurs twice in `locations`. Give both occurrences the
    # same number in `ours`. A delete is paired with all data files that have its number, so a delete that references
    # the location is paired with both.
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
    """Select the deletes that may reference a data file, and these data files, by comparing parts of locations as text.

    First, file names (the part after the last slash) are compared. A data file is kept if a location in ``names`` has
    the same file name; a delete is kept if the location that it references has the same file name as a data file. Then
    whole paths, without scheme and authority, are compared in the same way. The second step is left out if one file may
    have different paths: if the table has moved, or if a location that was kept is not normalized (for example, it
    contains ``//``).

    Parameters
    ----------
    locations
        Locations of all data files.
    names
        For each delete in ``lost``, the location of the data file that it references.
    lost
        Row numbers of the deletes for which no data file has been found yet.
    moved
        Whether the table's files have been moved since its metadata was written.

    Returns
    -------
    tuple
        The row numbers of the data files that were kept, and those of the deletes.
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
    """Return the locations of the snapshot's live data files, but only of files whose path is in ``paths``.

    A path is a location without scheme and authority, such as ``/t/x`` of ``s3://b/t/x``. The keys of the result are
    the locations in canonical form (with ``s3`` for ``s3a``, for example), so that they can be compared. The values are
    the same locations as written in the manifests. This reads all live data manifests.
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
    """Return the locations of data files, and the bounds of ``file_path`` of deletes, as intervals of paths.

    The path is the location without scheme and authority. The interval of a data file is its own path; the interval of
    a delete goes from the lower bound to the upper bound. If the intervals do not overlap, the delete does not apply to
    the data file.

    To be safe, a delete gets the widest interval, which overlaps every other, if its bounds are doubtful: one of them
    is missing, may be truncated (see ``cut``) or is not normalized (for example, it contains ``//``); the lower one is
    above the upper one; or their schemes or authorities differ. A data file whose location is not normalized gets the
    widest interval too. Every other interval of a delete includes all paths that begin with the upper bound, in case a
    writer has truncated it to a length that ``cut`` does not recognize.

    Parameters
    ----------
    locations
        Locations of the data files.
    low, high
        The lower and the upper bound of ``file_path`` of each delete; null if missing.
    cut
        A function that is called with the lower or the upper bounds, and returns which of them may be truncated.
    prefixes
        If the table has moved, its known prefixes (the folders that its locations begin with, such as
        ``s3://bucket/t``), the longest first; otherwise empty. One file may have a location under each prefix, so
        only locations under the same prefix can be compared. The comparison uses the prefix under which most of the
        data files are. Data files outside this prefix, and deletes with a bound outside it, get the widest interval.
    """
    place, lowest, highest = _places(locations, low, high)
    free = _odd(locations)
    known = bool_array(pc.equal(_head(low), _head(high))) & (lowest >= 0) & (highest >= lowest)
    known &= ~_odd(low) & ~_odd(high) & ~cut(low) & ~cut(high)
    if prefixes:
        mine, lows, highs = (_prefix_of(values, prefixes) for values in (locations, low, high))
        # A prefix is a folder that locations begin with. In a moved table, one file may have a location under each
        # prefix, so only locations under the same prefix can be compared. Use the prefix with the most data files:
        # `usual` is its index in `prefixes`. All other data files and deletes get the widest interval, which overlaps
        # every other, so that no match is missed. `mine` has the index of each data file's prefix; -1 if its location
        # is under none.
        usual = np.bincount(mine + 1, minlength=2)[1:].argmax()
        free |= mine != usual
        known &= (lows == usual) & (highs == usual)
    return Intervals(
        np.where(free, 0, place), np.where(free, END, place), np.where(known, lowest, 0), np.where(known, highest, END)
    )


def _prefix_of(values: Strings, prefixes: Sequence[str]) -> Ints:
    """Return, for each location in ``values``, the index of the first item of ``prefixes`` that the location is under.

    For example, ``s3://b/t/data/x`` is under ``s3://b/t``. Scheme and authority are ignored. The index is -1 if the
    location is under none of the prefixes.
    """
    tails = _tail(values)
    out = np.full(len(values), -1, dtype=np.int64)
    for i, prefix in enumerate(prefixes):
        out[(out < 0) & bool_array(pc.starts_with(tails, path_only(prefix).rstrip("/") + "/"))] = i
    return out


def _places(locations: Strings, low: Strings, high: Strings) -> list[Ints]:
    """Sort the paths in all three arrays together, and return the rank of each path, as one array per parameter.

    Scheme and authority are ignored. ``low`` and ``high`` are bounds of ``file_path``. A path in ``high`` ranks above
    all paths that begin with it, because some writers truncate the upper bound ``/a/x`` to ``/a`` without incrementing
    the last character, so that it is below the highest value. Null has rank -1.
    """
    # The writer may have truncated an upper bound without incrementing it. So a path that begins with the bound must
    # not rank above it. Append 0xff to the bound: no byte of a UTF-8 text is that high, so the result is above all
    # paths that begin with the bound.
    beyond = pc.binary_join_element_wise(_tail(high).cast(pa.binary()), b"\xff", b"")
    order = ranks(_tail(locations), _tail(low), beyond)
    # `ranks` returns None only for arrays that cannot be compared with each other. Here, they are strings and binary
    # values, which can be compared.
    assert order is not None
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
    """Return a mask: True if a location is null or not normalized.

    The paths of such locations cannot be compared as text: for example, ``/a/./b`` and ``/a/b`` may be the same file.

    These are not normalized: paths that contain ``//``, ``/./`` or ``/../``, or end with a slash; locations without a
    path, such as ``s3://bucket``; and ``file://`` without a third slash.
    """
    odd = bool_array(pc.match_substring_regex(_tail(values), r"//|(^|/)\.\.?(/|$)|/$|^[^/]*:"))
    odd |= bool_array(pc.match_substring_regex(values, r"^(?i:file)://[^/]")) | bool_array(values.is_null())
    out: Mask = odd
    return out
