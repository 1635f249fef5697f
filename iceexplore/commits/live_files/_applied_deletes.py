"""The deletes that apply to the data files that a commit is about."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.commits.live_files._find import live_leaves
from iceexplore.graph import TableState
from iceexplore.manifests import ContentType, EntryBatch, whole
from iceexplore.planning import MatchedDeletes, match_deletes
from iceexplore.storage import path_only

__all__ = ["applied_deletes", "files_of_vectors", "position_files", "scoped_to"]

_DELETES = (ContentType.POSITION_DELETE, ContentType.EQUALITY_DELETE)


def applied_deletes(state: TableState, files: EntryBatch) -> MatchedDeletes:
    """What `match_deletes` finds for some live data files, and the position delete files that vectors replace.

    Raises
    ------
    FormatError
        A manifest of deletes cannot be read: a commit would bring deleted rows back.
    """
    for _ in live_leaves(state, _DELETES, parts=("entries", "partition")):
        pass
    return match_deletes(state, files, replaced=True)


def position_files(matched: MatchedDeletes) -> tuple[pa.Table, list[str | None]]:
    """Entries of the position delete files, and the one data file that each names, if it does."""
    entries = matched.deletes.entries
    mine = pc.and_(
        pc.equal(entries["content_type"], int(ContentType.POSITION_DELETE)), entries["deletion_vector"].is_null()
    )
    return entries.filter(mine), matched.referenced.filter(whole(mine)).to_pylist()


def scoped_to(matched: MatchedDeletes, names: Iterable[str]) -> tuple[str, ...]:
    """Position delete files that concern one of some data files alone (Java: ``ContentFileUtil.isFileScoped``)."""
    entries, referenced = position_files(matched)
    paths = {path_only(name) for name in names}
    locations = entries["location"].to_pylist()
    return tuple(n for n, of in zip(locations, referenced, strict=True) if of is not None and path_only(of) in paths)


def files_of_vectors(files: EntryBatch, matched: MatchedDeletes) -> dict[str, str]:
    """The data files that have a deletion vector, each with its location as the vector spells it."""
    referenced = matched.referenced.to_pylist()
    pairs = zip(files.entries["location"].to_pylist(), matched.vector.to_pylist(), strict=True)
    return {name: referenced[n] for name, n in pairs if n is not None}
