"""Find the live files of a table's state by location, reading leaf after leaf without a Python object per file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from typing import Any, TypeAlias, cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.commits.live_files._locate import delete_manifests, live_manifests, readable
from iceexplore.errors import OptionError, RuleError
from iceexplore.graph import TableState
from iceexplore.manifests import ContentType, EntryBatch, Manifest, concat_batches, live, whole
from iceexplore.planning import MatchedDeletes, match_deletes
from iceexplore.storage import canonical, path_only
from iceexplore.writing import foreign_frame

__all__ = [
    "LocationsLike",
    "applied_deletes",
    "files_of_vectors",
    "find_files",
    "find_named",
    "live_files",
    "live_leaves",
    "locations_of",
    "must_be_live",
    "position_files",
    "refuse_duplicates",
    "scoped_to",
]


def applied_deletes(
    state: TableState, files: EntryBatch, *, replaced: bool = True, manifests: Collection[str] | None = None
) -> MatchedDeletes:
    """Match each of the given data files with the live deletes that apply to it.

    With ``replaced``, position delete files that a deletion vector replaces are matched as well.

    Parameters
    ----------
    manifests
        Locations of the data manifests that list ``files``, if known. In the V4 draft, deletion vectors are in the same
        manifests as the data files, so that other data manifests need not be read. Other dialects ignore this argument.

    Raises
    ------
    FormatError
        A manifest with deletes cannot be read; a commit that ignores these deletes would restore deleted rows.
    """
    root, rows, names = state.root(), None, None
    if manifests is not None and root is not None and root.dialect.deletion_vectors_on_entries:
        rows = live_manifests(root.entries, (ContentType.DELETE_MANIFEST,))
        rows += _listed(root, live_manifests(root.entries, (ContentType.DATA_MANIFEST,)), manifests)
        names = build.to_pylist(root.entries["location"].take(pa.array(rows, pa.int64())))
    for _ in live_leaves(state, _DELETES, parts=("entries", "partition"), manifests=names):
        pass
    return match_deletes(state, files, replaced=replaced, manifests=rows)


def position_files(matched: MatchedDeletes) -> tuple[pa.Table, list[str | None]]:
    """Return the entries of position delete files (not DVs), and the location of the data file that each references.

    The location is None if a delete file references several data files, or if it is not known which.
    """
    entries = matched.deletes.entries
    mine = pc.and_(
        pc.equal(entries["content_type"], int(ContentType.POSITION_DELETE)), entries["deletion_vector"].is_null()
    )
    return entries.filter(mine), matched.referenced.filter(whole(mine)).to_pylist()


def scoped_to(matched: MatchedDeletes, names: Iterable[str]) -> tuple[str, ...]:
    """Return the locations of the file-scoped position delete files of some data files.

    A position delete file is file-scoped if all of its deletes are for the same data file (Java:
    ``ContentFileUtil.isFileScoped``).

    Parameters
    ----------
    matched
        The deletes to search: the result of `applied_deletes`, for example.
    names
        The locations of the data files. Scheme and host are ignored when locations are compared.
    """
    entries, referenced = position_files(matched)
    paths = {path_only(name) for name in names}
    locations = build.to_pylist(entries["location"])
    return tuple(n for n, of in zip(locations, referenced, strict=True) if of is not None and path_only(of) in paths)


def files_of_vectors(files: EntryBatch, matched: MatchedDeletes) -> dict[str, str]:
    """Map the location of each data file that has a deletion vector to the location by which the vector references it.

    The two locations may be spelled differently.
    """
    referenced = build.to_pylist(matched.referenced)
    pairs = zip(build.to_pylist(files.entries["location"]), build.to_pylist(matched.vector), strict=True)
    return {name: referenced[n] for name, n in pairs if n is not None}


_DATA = (ContentType.DATA,)
_DELETES = (ContentType.POSITION_DELETE, ContentType.EQUALITY_DELETE)


def live_leaves(
    state: TableState,
    contents: Iterable[ContentType] = _DATA,
    *,
    parts: Iterable[str] = ("entries",),
    manifests: Collection[str] | None = None,
) -> Iterator[tuple[Manifest, pa.BooleanArray]]:
    """Yield the manifests that may list files of the given types (``contents``).

    Each comes with a mask of its entries that are live and have one of these types. The files that the root lists
    directly come first, as one manifest, then the leaves.

    Parameters
    ----------
    parts
        What to decode of each leaf: "entries", and optionally "partition" and "stats".
    manifests
        Locations of the leaves to read; by default all are read.

    Raises
    ------
    FormatError
        The root or a leaf cannot be read; a commit must not build on a damaged snapshot.
    """
    wanted = frozenset(contents)
    root = state.root()
    if root is None:
        return
    kinds = {ContentType.DATA_MANIFEST} if ContentType.DATA in wanted else set()
    if wanted & set(_DELETES):
        kinds |= delete_manifests(root)
    direct = state.reader.direct(readable(root))
    rows = live_manifests(root.entries, kinds)
    if manifests is not None:
        rows = _listed(root, rows, manifests)
    types = pa.array(sorted(wanted), pa.int32())
    for leaf in chain([] if direct is None else [direct], state.reader.leaves(root, rows, parts=parts) if rows else ()):
        found = pc.and_(live(readable(leaf).entries), pc.is_in(leaf.entries["content_type"], types))
        yield leaf, cast(pa.BooleanArray, found.combine_chunks())


def _listed(root: Manifest, rows: list[int], manifests: Collection[str]) -> list[int]:
    """Return those row numbers in ``rows`` at which the root lists one of the ``manifests`` (locations)."""
    names = root.entries["location"].take(pa.array(rows, pa.int64())).to_pylist()
    return [row for row, name in zip(rows, names, strict=True) if name in manifests]


def live_files(
    state: TableState,
    contents: Iterable[ContentType] = _DATA,
    *,
    stats: bool = False,
    keep: Callable[[Manifest], Any] | None = None,
) -> EntryBatch:
    """Return the entries of a state's live files, with their partition tuples.

    Parameters
    ----------
    contents
        The content types of the files to return.
    stats
        Whether to return the files' statistics, too.
    keep
        A function that selects among the live files. It is called with each manifest and returns a mask of the
        manifest's entries: those with false or null are left out. By default, all live files are returned.
    """
    found = []
    for leaf, mask in live_leaves(state, contents, parts=_parts(stats)):
        if keep is not None:
            mask = pc.and_(mask, pc.fill_null(keep(leaf), False))
        if pc.any(mask).as_py():
            found.append(EntryBatch.of(leaf, None if stats else ()).filter(mask))
    return concat_batches(found)


def find_files(
    state: TableState,
    locations: Iterable[str],
    contents: Iterable[ContentType] = _DATA,
    *,
    stats: bool = False,
    tuples: bool = True,
    manifests: Collection[str] | None = None,
) -> tuple[EntryBatch, list[str]]:
    """Return the live files at some locations, and the locations at which no file is live (see `find_named`)."""
    found, _, missing = find_named(state, locations, contents, stats=stats, tuples=tuples, manifests=manifests)
    return found, missing


def find_named(
    state: TableState,
    locations: Iterable[str],
    contents: Iterable[ContentType] = _DATA,
    *,
    stats: bool = False,
    tuples: bool = True,
    manifests: Collection[str] | None = None,
) -> tuple[EntryBatch, list[str], list[str]]:
    """Find the live files at some locations.

    Locations are first compared exactly as they are written. Locations that are not found in this way are then compared
    in canonical form, so that ``file:/x`` finds ``/x``. If the table was moved after the metadata was written, a file
    is found both by its old location, which is in the metadata, and by its new one. Reading stops when all files are
    found.

    Parameters
    ----------
    contents
        The content types of the files to find. A file of another type counts as not found.
    stats
        Whether to return the files' statistics. If true, the partition tuples are returned, too.
    tuples
        Whether to return the files' partition tuples. Tuples and statistics are decoded only from manifests that list
        at least one of the files.
    manifests
        Locations of the leaves to read; by default all are read. Files that the root lists directly are found in any
        case.

    Returns
    -------
    EntryBatch, list[str], list[str]
        The entries of the files that were found; for each entry, its location as it was passed in ``locations``; and
        the locations at which no file is live.
    """
    missing = dict.fromkeys(locations)
    kinds, found, names = tuple(contents), [], []
    for by_meaning in (False, True):
        if not missing:
            break
        for leaf, mask in live_leaves(state, kinds, manifests=manifests):
            hit = _meant(state, leaf, missing) if by_meaning else _written(leaf, missing)
            if not hit:
                continue
            rows = np.array(sorted(hit), dtype=np.int64)
            rows = rows[np.asarray(mask)[rows]]
            for row in rows.tolist():
                missing.pop(hit[row], None)
                names.append(hit[row])
            if len(rows):
                whole_leaf = EntryBatch.of(leaf, None if stats else ()) if stats or tuples else EntryBatch(leaf.entries)
                found.append(whole_leaf.take(rows))
            if not missing:
                break
    return concat_batches(found), names, list(missing)


def must_be_live(
    state: TableState,
    locations: Iterable[str],
    contents: Iterable[ContentType] = _DATA,
    *,
    stats: bool = False,
    tuples: bool = True,
) -> tuple[EntryBatch, list[str]]:
    """Return the live files at some locations, like `find_named`, but refuse locations without a live file.

    Parameters
    ----------
    contents
        The content types of the files to find.
    stats, tuples
        Whether to return the files' statistics and partition tuples, as for `find_named`.

    Returns
    -------
    EntryBatch, list[str]
        The entries of the files; and for each entry, its location as it was passed in ``locations``.

    Raises
    ------
    RuleError
        ``files-exist``: at one of the locations, there is no live file whose type is in ``contents``.
    """
    found, names, missing = find_named(state, locations, contents, stats=stats, tuples=tuples)
    if missing:
        kinds = [t for t in (*_DATA, *_DELETES) if t not in tuple(contents)]
        others = find_files(state, missing, kinds, tuples=False)[0]
        kind = ""
        if len(others):
            first = others.entries.slice(0, 1).to_pylist()[0]
            kind = f" ({first['location']} is of type {ContentType(first['content_type']).name})"
        shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        where = "a table without a snapshot" if state.snapshot is None else f"snapshot {state.snapshot.snapshot_id}"
        raise RuleError("files-exist", f"not live in {where}: {shown}{kind}; see inspect.files()")
    return found, names


def refuse_duplicates(state: TableState, locations: Iterable[str]) -> None:
    """Refuse locations at which a data or delete file is already live.

    Raises
    ------
    RuleError
        ``duplicate-file``: at least one location is already live.
    """
    found = find_files(state, locations, (*_DATA, *_DELETES), tuples=False)[0]
    if len(found):
        names = build.to_pylist(found.entries["location"])
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        raise RuleError("duplicate-file", f"already in the table: {', '.join(names[:5])}{more}")


#: The forms in which users may give locations: one, several, or a data frame of any library with a column of locations.
LocationsLike: TypeAlias = Any


def locations_of(paths: LocationsLike, what: str = "paths") -> list[str]:
    """Return the locations from one path, several paths, or a data frame's column, as a list without duplicates.

    Parameters
    ----------
    paths
        One path, an iterable of paths, or a data frame. The column ``file_path`` of a data frame is used, or
        ``location`` if it has no ``file_path``.
    what
        The name of the user's argument, for error messages.

    Raises
    ------
    OptionError
        No location is given, one of them is not a path, or a data frame has neither of the two columns.
    """
    if isinstance(paths, str) or hasattr(paths, "__fspath__"):
        paths = [paths]
    paths = foreign_frame(paths)
    columns = paths.column_names if isinstance(paths, pa.Table) else getattr(paths, "columns", None)
    if columns is not None:  # paths is a data frame, such as that of inspect.files()
        for name in ("file_path", "location"):
            if name in list(columns):
                paths = paths[name]
                break
        else:
            has = ", ".join(map(str, columns))[:200]
            raise OptionError(f"{what}: the frame has neither a column file_path nor a column location; it has {has}")
    if isinstance(paths, (pa.Array, pa.ChunkedArray)):
        paths = paths.to_pylist()
    if isinstance(paths, (bytes, dict)) or not hasattr(paths, "__iter__"):
        raise OptionError(f"{what}={paths!r}: give locations of files")
    out = []
    for path in paths:
        text = path if isinstance(path, str) else path.__fspath__() if hasattr(path, "__fspath__") else None
        if not isinstance(text, str) or not text:
            raise OptionError(f"{what}: {path!r} is not a file location")
        out.append(text)
    if not out:
        raise OptionError(f"{what}: no files given")
    return list(dict.fromkeys(out))


def _parts(stats: bool) -> frozenset[str]:
    return frozenset({"entries", "partition", "stats"} if stats else {"entries", "partition"})


def _written(leaf: Manifest, wanted: dict[str, None]) -> dict[int, str]:
    """Find the entries of a leaf whose location is, exactly as written, a key of ``wanted``.

    Returns
    -------
    dict[int, str]
        The location of each entry that was found, by the entry's row number in the leaf. Entries that are not live
        are included.
    """
    found = pc.is_in(leaf.entries["location"], pa.array(list(wanted), pa.string()))
    rows = np.flatnonzero(np.asarray(found))
    names = build.to_pylist(leaf.entries["location"].take(build.array(rows)))
    return dict(zip(rows.tolist(), names, strict=True))


def _meant(state: TableState, leaf: Manifest, wanted: dict[str, None]) -> dict[int, str]:
    """Find the entries of a leaf whose location is a key of ``wanted``, perhaps with another spelling.

    Two locations are the same if they have the same canonical form. To save time, this is computed only for rows whose
    file name (the last part of the location) is that of a wanted location.

    Returns
    -------
    dict[int, str]
        For each row that was found, by its row number: the location as it is spelled in ``wanted``.
    """
    meaning = {}
    for text in wanted:
        meaning[canonical(text)] = text
        meaning[canonical(state.storage.unresolve(text))] = text
    names = pa.array({place.rpartition("/")[2] for place in meaning}, pa.string())
    last = pc.replace_substring_regex(leaf.entries["location"], r"(?s).*/", "")
    rows = np.flatnonzero(np.asarray(pc.fill_null(pc.is_in(last, names), False)))
    found = {}
    for row, text in zip(rows.tolist(), build.to_pylist(leaf.entries["location"].take(build.array(rows))), strict=True):
        if (given := meaning.get(canonical(text))) is not None:
            found[row] = given
    return found
