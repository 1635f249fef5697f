"""Repair deletes that name data files by outdated paths: write the paths of the live data files instead.

A path is outdated if no live data file has it, for example because the table was moved after the delete was written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.commits import path_keys, relocated_deletes
from iceexplore.deletes import FILE_PATH_ID, read_position_deletes, read_puffin_footer
from iceexplore.doctor.checks._deletes import respelled
from iceexplore.doctor.examination._examination import Examination
from iceexplore.doctor.model._finding import Finding
from iceexplore.doctor.repair._document_repairs import step_of
from iceexplore.doctor.repair._draft import Draft
from iceexplore.doctor.repair._step import Step
from iceexplore.errors import FileMissingError, IceexploreError, OutsideRootsError
from iceexplore.formats import PUFFIN
from iceexplore.graph import TableState, amount
from iceexplore.manifests import ContentType, EntryBatch
from iceexplore.storage import canonical

__all__ = ["point_deletes_at_files"]

#: The maximum number of bytes of all rewritten delete files, which are kept in memory until they are written.
_MOST_BYTES = 256 << 20


@dataclass
class _DeleteFile:
    """A position delete file or Puffin file, with the outdated paths of data files that it names.

    Attributes
    ----------
    moved
        For each outdated path for which `_Meant` finds exactly one live data file, the path of this file.
    unclear
        The outdated paths for which `_Meant` finds several live data files.
    deletes
        The number of deleted rows: the sum of the record counts in the file's manifest entries.
    """

    location: str
    is_puffin: bool
    moved: dict[str, str] = field(default_factory=dict)
    unclear: list[str] = field(default_factory=list)
    deletes: int = 0


def point_deletes_at_files(draft: Draft, found: list[Finding]) -> list[Step]:
    """Replace outdated paths of data files in deletes by the paths of live data files, and return the repair's steps.

    A path is outdated if no live data file has it. If exactly one live data file can be the one that was meant (see
    `_Meant.by`), the path is replaced by the path of this file. If there is none, the path stays. If there are several,
    the whole delete file stays unchanged.

    Position delete files are written again in the same format. In a deletion vector, the path of its data file changes,
    but its positions stay. If nothing can be repaired, the reason is added to ``draft.left``, and the result is empty.

    Parameters
    ----------
    draft
        The draft of the repair, to which the changes are added.
    found
        The findings to repair.
    """
    snapshots = {s for f in found for s in f.snapshots}
    chosen = [s for s in draft.state.metadata.snapshots if s.snapshot_id in snapshots]
    examination = Examination.of(draft.state, chosen or list(filter(None, [draft.state.snapshot])), "metadata")
    in_rows = any((f.field or "").endswith("file_path") for f in found)
    files = _delete_files(examination, draft.state, in_rows=in_rows)
    why = [f"{name} could be any of several live data files with that name." for one in files for name in one.unclear]
    done: list[_DeleteFile] = []
    for one in files:
        if not one.moved or one.unclear:
            continue
        try:
            _rewrite(draft, examination, one)
        except IceexploreError as error:
            why.append(f"{error}.")
        else:
            done.append(one)
    if not done:
        reason = why[0] if why else "No live data file has the same name as the data file that the deletes reference."
        draft.left |= {(f.code, f.where): reason for f in found}
        return []
    return list(_steps(found, done))


def _steps(found: list[Finding], done: list[_DeleteFile]) -> Iterable[Step]:
    files = [one for one in done if not one.is_puffin]
    vectors = [one for one in done if one.is_puffin]
    if files:
        text = (
            f"Replaces old data file paths in {amount(len(files), 'position delete file')} with the paths of live data "
            f"files. Each replaced path matches exactly one live data file. {_again(files)}"
        )
        yield step_of(
            "Rewrite position deletes", text, found, rows_lost=None,
            sql=("CALL <catalog>.system.rewrite_table_path('<table>', '<old prefix>', '<new prefix>')",),
            python=("Java: table.newRowDelta().addDeletes(rewritten).removeDeletes(old).commit()",),
        )  # fmt: skip
    if vectors:
        text = (
            "Makes these deletion vectors reference live data files. Each replaced path matches exactly one live data "
            f"file. {_again(vectors)}"
        )
        yield step_of("Correct the data file paths of deletion vectors", text, found, rows_lost=None)


def _again(files: list[_DeleteFile]) -> str:
    count = sum(one.deletes for one in files)
    return f"{amount(count, 'row that had reappeared is', 'rows that had reappeared are')} deleted again."


# Finding the live files -----------------------------------------------------------------------------------------------


def _delete_files(examination: Examination, state: TableState, *, in_rows: bool) -> list[_DeleteFile]:
    """Return the live delete files with outdated paths for which `_Meant` finds at least one live data file.

    Parameters
    ----------
    in_rows
        If True, all position delete files are read, because outdated paths may be only in their rows. If False, a
        position delete file is read only if its manifest entry has an outdated path in the column ``referenced_file``.
        Puffin files are read only in this case, too, even if ``in_rows`` is True.
    """
    entries = examination.files.entries
    rows = [examination.rows_of(s) for s in examination.snapshots]
    alive = np.unique(np.concatenate(rows)) if rows else np.zeros(0, np.int64)
    kinds = np.asarray(pc.fill_null(entries["content_type"], int(ContentType.DATA)))[alive]
    live = pc.unique(entries["location"].take(build.array(alive[kinds == int(ContentType.DATA)])))
    deletes = alive[kinds == int(ContentType.POSITION_DELETE)]
    named = entries["referenced_file"].take(build.array(deletes)).combine_chunks()
    hit = np.asarray(pc.fill_null(respelled(named, live), False))
    if in_rows:
        hit |= ~np.asarray(_is_puffin(entries))[deletes]
    meant = _Meant(state, build.to_pylist(live))
    columns = ["location", "record_count", "referenced_file"]
    some = entries.select(columns).append_column("puffin", _is_puffin(entries)).take(build.array(deletes[hit]))
    out: dict[str, _DeleteFile] = {}
    # Equal rows are grouped, because manifests of several snapshots may list the same file.
    for row in build.to_pylist(some.group_by([*columns, "puffin"], use_threads=False).aggregate([])):
        location, old = row["location"], row["referenced_file"]
        one = out.setdefault(location, _DeleteFile(location, row["puffin"]))
        one.deletes += row["record_count"] or 0
        for name in {*([] if old is None else [old]), *_names_in(state, one)}:
            target = meant.by(name)
            if len(target) == 1:
                one.moved[name] = target[0]
            elif target:
                one.unclear.append(name)
    return [one for one in out.values() if one.moved or one.unclear]


def _is_puffin(entries: pa.Table) -> AnyArray:
    formats = entries["file_format"].combine_chunks()
    return pc.fill_null(pc.equal(formats, PUFFIN.name), False)


def _names_in(state: TableState, one: _DeleteFile) -> set[str]:
    """Return the paths of the data files that a delete file names; empty if the delete file cannot be read."""
    try:
        if one.is_puffin:
            footer = read_puffin_footer(state.storage, one.location)
            return {b.referenced_data_file for b in footer.blobs if b.referenced_data_file is not None}
        return set(
            map(str, build.to_pylist(pc.unique(read_position_deletes(state.storage, one.location)["file_path"])))
        )
    except IceexploreError:
        return set()


class _Meant:
    """Finds the live data files to which an outdated path in a delete can refer (see `by`)."""

    def __init__(self, state: TableState, live: list[str]) -> None:
        self._state = state
        self._live = set(live)
        self._by_key: dict[str, list[str]] = {}
        self._by_name: dict[str, list[str]] = {}
        for location, key in zip(live, self._keys(live), strict=True):
            self._by_key.setdefault(key, []).append(location)
            self._by_name.setdefault(location.rpartition("/")[2], []).append(location)
        self._found: dict[str, list[str]] = {}

    def by(self, name: str) -> list[str]:
        """Return the locations of the live data files to which an outdated path can refer.

        If a live data file has the same path in another spelling, for example with another scheme, it is the result.
        Otherwise, the result is the live data files with the same file name. If there are several of them, only those
        are returned whose paths agree with the outdated path in the most components, counted from the end. For example,
        ``new/data/day=1/a.parquet`` agrees with ``old/data/day=1/a.parquet`` in three components.

        The result is empty if the path needs no repair, because a live data file has exactly this path, or because a
        file that is not live still exists there. It is also empty if no live data file has the same file name.

        Parameters
        ----------
        name
            The path by which a delete names its data file.
        """
        if name in self._live:
            return []
        if name not in self._found:
            self._found[name] = self._search(name)
        return self._found[name]

    def _search(self, name: str) -> list[str]:
        same = self._by_key.get(self._keys([name])[0])
        if same is not None:  # a live data file has this path in another spelling
            return same
        if self._exists(name):
            return []
        files = self._by_name.get(name.rpartition("/")[2], [])
        parts = name.split("/")
        # When a table is moved or copied, the beginnings of paths change and the ends stay the same.
        common = [_common_end(parts, one.split("/")) for one in files]
        return [one for one, n in zip(files, common, strict=True) if n == max(common)]

    def _exists(self, name: str) -> bool:
        try:
            self._state.storage.stat(name)
        except (FileMissingError, OutsideRootsError):
            return False
        return True

    def _keys(self, names: list[str]) -> list[str]:
        return cast("list[str]", build.to_pylist(path_keys(self._state.storage, pa.array(names, pa.string()))))


def _common_end(one: list[str], other: list[str]) -> int:
    """Return the number of components, counted from the end, in which two paths are the same."""
    pairs = zip(reversed(one), reversed(other), strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


# Writing --------------------------------------------------------------------------------------------------------------


def _rewrite(draft: Draft, examination: Examination, one: _DeleteFile) -> None:
    """Add edits to a draft that replace the outdated paths of one delete file, as ``one.moved`` states.

    The paths in the manifest entries of the delete file are replaced. If the file itself contains outdated paths, a new
    file with the new paths is added to the draft, too, and the entries list it instead of the old file.

    Raises
    ------
    IceexploreError
        The file cannot be read or rewritten, or all rewritten files together are too large.
    """
    made = relocated_deletes(draft.state.storage, one.location, one.moved)
    location = one.location
    if made is not None:
        if sum(map(len, draft.new_files.values())) + len(made.data) > _MOST_BYTES:
            raise IceexploreError("The delete files are too large to be rewritten here; use rewrite_table_path")
        folder, _, name = one.location.rpartition("/")
        location = draft.new_location(one.location, folder, name[name.rfind(".") :] if "." in name else "")
        draft.new_files[location] = made.data

    def edit(batch: EntryBatch) -> EntryBatch:
        mine = pc.fill_null(pc.equal(batch.entries["location"], one.location), False).combine_chunks()
        rows = np.asarray(mine)
        old = build.to_pylist(batch.entries["referenced_file"])
        named = [one.moved.get(n, n) if hit and n is not None else n for n, hit in zip(old, rows, strict=True)]
        changed: dict[str, Any] = {"referenced_file": pa.array(named, pa.string())}
        stats = dict(batch.stats)
        if made is not None:
            changed["location"] = pc.if_else(mine, location, batch.entries["location"])
            changed["file_size_in_bytes"] = pc.if_else(mine, len(made.data), batch.entries["file_size_in_bytes"])
        if made is not None and not one.is_puffin:
            kind = batch.entries.schema.field("split_offsets").type
            offsets = build.to_pylist(batch.entries["split_offsets"])
            changed["split_offsets"] = pa.array([None if m else v for m, v in zip(rows, offsets, strict=True)], kind)
        if made is not None and made.paths is not None and FILE_PATH_ID in stats:
            stats[FILE_PATH_ID] = _with_bounds(stats[FILE_PATH_ID], rows.tolist(), made.paths)
        out = batch.with_columns(**changed)
        return EntryBatch(out.entries, stats, out.partition)

    files = examination.files
    at = np.asarray(pc.fill_null(pc.equal(files.entries["location"], one.location), False))
    for leaf in np.unique(np.asarray(files.entries["leaf"])[at]).tolist():
        draft.edit_leaf(canonical(files.leaves[leaf][0]), edit)


def _with_bounds(stats: pa.StructArray, rows: list[bool], paths: tuple[str, str]) -> pa.StructArray:
    """Return metrics of the column ``file_path`` in which some entries have new lower and upper bounds.

    Entries without a lower bound do not change.

    Parameters
    ----------
    stats
        The metrics of the column, one item per entry.
    rows
        A mask of the entries to change.
    paths
        The new lower bound and the new upper bound.
    """
    as_text = pa.types.is_string(stats.type.field("lower").type)
    low, high = paths if as_text else tuple(path.encode("utf-8", "surrogatepass") for path in paths)
    made = [
        {**value, "lower": low, "upper": high} if hit and value is not None and value["lower"] is not None else value
        for hit, value in zip(rows, build.to_pylist(stats), strict=True)
    ]
    return cast(pa.StructArray, pa.array(made, stats.type))
