"""Repair lost and truncated manifests: find their files and list these again; files that are not found are left out."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.commits import start_sandbox
from iceexplore.doctor.maintenance._plan import sql_text
from iceexplore.doctor.model._finding import Finding
from iceexplore.doctor.recovery._choose import Counts
from iceexplore.doctor.recovery._data_folder import DataFolder
from iceexplore.doctor.recovery._history import History
from iceexplore.doctor.recovery._lost_manifests import LostManifest, lost_manifests
from iceexplore.doctor.recovery._recovery import MOST_ROW_IDS, Recovery, recover
from iceexplore.doctor.repair._document_repairs import assigned_row_ids, files_of, step_of
from iceexplore.doctor.repair._draft import Draft, number_in
from iceexplore.doctor.repair._entry_repairs import rewrite_manifests
from iceexplore.doctor.repair._step import Step
from iceexplore.doctor.repair._write import write_draft
from iceexplore.errors import IceexploreError
from iceexplore.formats import DEFAULT_FORMAT, Parquet, format_of_suffix
from iceexplore.graph import amount, live_manifests
from iceexplore.manifests import ContentType, EntryBatch, concat_batches, whole
from iceexplore.reading import count_rows

__all__ = ["complete_manifests", "recover_lost_manifests"]

#: The maximum number of file paths that the text of a step, or a suggested call of PyIceberg, lists. Further paths are
#: replaced by "and others" or "…".
_NAMED = 3


def recover_lost_manifests(draft: Draft, found: list[Finding]) -> list[Step]:
    """List the files of missing manifests again if other manifests list them or if they are in the data folder.

    Files that are not found are left out.
    """
    history = History(draft.state)
    names = files_of(found) | history.missing({s for f in found for s in f.snapshots})
    lost = lost_manifests(draft.state, names)
    draft.dropped_leaves |= names - {name for one in lost for name in one.names}
    return _steps(draft, found, lost, history)


def complete_manifests(draft: Draft, found: list[Finding]) -> list[Step]:
    """Write damaged manifests again, with the entries that can be read and those that can be found elsewhere."""
    names = files_of(found)
    lost = lost_manifests(draft.state, names)
    if not lost:
        return [rewrite_manifests(draft, found)]
    steps = _steps(draft, found, lost, History(draft.state))
    if names - {name for one in lost for name in one.names} or any(len(one.kept) for one in lost):
        steps.insert(0, rewrite_manifests(draft, found))
    return steps


def _recovered(draft: Draft, lost: Sequence[LostManifest], history: History) -> tuple[list[Recovery], list[str]]:
    """Recover lost manifests in the given order, and add the recovered entries to the draft.

    A lost manifest is removed from all manifest lists if none of its entries can be read or recovered. Several
    manifests that are recovered together (see `LostManifest`) are replaced by one. If the recovery assigns new row ids,
    next-row-id in the draft's metadata is raised.

    Parameters
    ----------
    history
        The entries of all readable manifests, among which the entries of lost manifests are searched for. The recovered
        entries are added to it.

    Returns
    -------
    tuple
        The recovery result of each lost manifest, in the given order. The second item is a list of sentences on why
        files in the data folder could not be examined; it is empty if all could be.
    """
    folder = DataFolder(draft.state, history)
    stated = number_in(draft.document, "next-row-id")
    # A next-row-id that is missing, negative or at least `MOST_ROW_IDS` is wrong. New row ids then start after the
    # ranges that snapshots have assigned.
    is_usable = stated is not None and 0 <= stated < MOST_ROW_IDS
    following = history.next_row_id = stated if stated is not None and is_usable else assigned_row_ids(draft)
    out = []
    for one in lost:
        made = recover(history, folder, one, [other for other in lost if other is not one])
        first, *others = one.names
        draft.dropped_leaves |= set(others)
        if len(made.batch):
            draft.recovered[first] = made.batch
        else:
            draft.dropped_leaves.add(first)
        out.append(made)
    if history.next_row_id > following:
        draft.document["next-row-id"] = history.next_row_id
    return out, folder.notes


# Steps ----------------------------------------------------------------------------------------------------------------


def _steps(draft: Draft, found: list[Finding], lost: Sequence[LostManifest], history: History) -> list[Step]:
    """Recover lost manifests, and return one to three steps that describe the result.

    A lost manifest listed files, and the manifests of other snapshots may list the same files. The first step is about
    files that other manifests list, and writes their entries again. The second step is about files that no manifest
    lists but that are in the data folder, and writes new entries for them. The third step is about files that were not
    found; the repaired table lacks them. A step without files is left out. If there are no files for any of the steps,
    only the third step is returned.
    """
    made, notes = _recovered(draft, lost, history)
    known = [one for one in made if one.from_history.files]
    in_folder = [one for one in made if one.from_folder.files]
    left = [one for one in made if one.missing is None or one.missing.files or one.missing.rows]
    out = []
    if known:
        out.append(_from_manifests(draft, found, known, made))
    if in_folder:
        out.append(_from_files(draft, found, in_folder, made))
    if left or not out:
        out.append(_left_out(draft, found, left, notes))
    return out


def _from_manifests(draft: Draft, found: list[Finding], known: list[Recovery], made: list[Recovery]) -> Step:
    """Return the step for files of lost manifests whose entries were found in manifests of other snapshots.

    Parameters
    ----------
    known
        The recovery results of the lost manifests that listed such files.
    made
        The recovery results of all lost manifests.
    """
    total = _sum(one.from_history for one in known)
    certain = all(one.certain for one in known)
    one = total.files == 1
    text = f"{_counted(total, known)} of {_manifests(known)} {'was' if one else 'were'} found in manifests of other "
    text += f"snapshots. {'This file is' if one else 'These files are'} listed again."
    if certain:
        text += (
            f" {'It' if one else 'Each'} must have been in a lost manifest: it was live in that manifest's snapshot, "
            "and no other manifest of the snapshot lists it."
        )
    else:
        text += " They match the counts in the manifest list, but a later commit may have removed some of them."
    text += " Their sequence numbers and row ids are taken from the manifests in which they were found."
    data = [one for one in known if not one.lost.deletes]
    back = _rows_back(draft, made, data, with_found=False)
    now = _of_current(draft, known)
    files = [name for one in now if not one.lost.deletes for name in build.to_pylist(one.again.entries["location"])]
    return _step(
        "List the files of lost manifests again", text + _older_only(now), found, known, certain=certain,
        rows_back=back, **(_calls(files, deletes=not files) if now else {}),
    )  # fmt: skip


def _from_files(draft: Draft, found: list[Finding], in_folder: list[Recovery], made: list[Recovery]) -> Step:
    """Return the step for files of lost manifests that are in the data folder, but that no readable manifest lists.

    Parameters
    ----------
    in_folder
        The recovery results of the lost manifests that listed such files.
    made
        The recovery results of all lost manifests.
    """
    total = _sum(one.from_folder for one in in_folder)
    recorded = f"the counts and partitions recorded for {_manifests(in_folder)}"
    if total.files == 1:
        text = (
            f"The data folder has {_counted(total, in_folder)} that no manifest lists. It matches {recorded}. So it is "
            "listed again, with metrics from its footer. But it may also be the remains of a failed commit: check its "
            "rows."
        )
    else:
        text = (
            f"The data folder has {_counted(total, in_folder)} that no manifest lists. They match {recorded}. So they "
            "are listed again, with metrics from their footers. But they may also be the remains of a failed commit: "
            "check their rows."
        )
    entries = concat_batches([one.found for one in in_folder]).entries
    kinds = np.asarray(pc.fill_null(entries["content_type"], int(ContentType.DATA)))
    others = (kinds == ContentType.DATA) & np.asarray(pc.not_equal(entries["file_format"], Parquet.name))
    if others.any():
        text += f" The metrics of {amount(int(others.sum()), 'file')} are lost: only Parquet metrics are read."
    equality = kinds == ContentType.EQUALITY_DELETE
    if equality.any():
        count = amount(int(equality.sum()), "equality delete file")
        text += f" The equality columns of {count} are taken from the key-value metadata of the files."
    if any(one.new_row_ids for one in in_folder):
        text += " Their row ids are lost and replaced by new ones. Readers that track rows by _row_id see new rows."
    if any(one.numbers_lost for one in in_folder):
        text += (
            " The sequence numbers of EXISTING entries are lost. Position delete files get the highest possible "
            "number, and thus apply to the data files that they name. Other files get the lowest possible number."
        )
        if equality.any():
            text += " With this low number, equality delete files may delete fewer rows than before."
    doubtful = sum(one.doubtful_deletes for one in in_folder)
    if doubtful:
        text += (
            f" With this low number on data files, {amount(doubtful, 'equality delete file')} may delete rows that "
            "were written after the delete."
        )
    columns = build.to_pylist(pc.unique(pc.list_flatten(whole(entries["equality_ids"]))))
    data = [one for one in in_folder if not one.lost.deletes]
    back = _rows_back(draft, made, data, with_found=True)
    now = _of_current(draft, in_folder)
    files = [name for one in now if not one.lost.deletes for name in build.to_pylist(one.found.entries["location"])]
    calls = _calls(files, deletes=not files, equality=columns if equality.all() else None) if now else {}
    return _step(
        "Re-register files that no manifest lists", text + _older_only(now), found, in_folder, certain=False,
        rows_back=back, **calls,
    )  # fmt: skip


def _left_out(draft: Draft, found: list[Finding], left: list[Recovery], notes: Sequence[str]) -> Step:
    """Return the step for files of lost manifests that were not found: the repaired table lacks them.

    Parameters
    ----------
    left
        The recovery results of the lost manifests that listed such files, or of which it is unknown whether all files
        were found. If this is empty, the text of the step states that no row is lost.
    notes
        Sentences on why files in the data folder could not be examined. They are added to the text of the step.
    """
    current = draft.state.snapshot
    mine = [one for one in left if current is not None and current.snapshot_id in one.lost.snapshots]
    data = [one for one in mine if not one.lost.deletes]
    deletes = [one for one in mine if one.lost.deletes]
    unknown = any(one.missing is None for one in data)
    lost = _sum(one.missing for one in data if one.missing is not None)
    if not left:
        text = "The manifests had no live files: no row is lost."
    elif unknown:
        text = f"The manifest lists do not state how many files were in {_manifests(left)}: some may still be missing."
    else:
        text = (
            f"Not found, and no longer listed: {_counted(_sum(one.missing for one in left), left)} of "
            f"{_manifests(left)}."
        )
    if deletes:
        text += " Delete files are lost: the rows that they had deleted come back."
    if left:
        text += _older_only(mine)
    candidates = list(dict.fromkeys(name for one in left for name in one.candidates))
    if candidates:
        shown = ", ".join(candidates[:_NAMED]) + ("" if len(candidates) <= _NAMED else " and others")
        text += (
            f" {amount(len(candidates), 'file')} may be among the lost ones, but the counts do not show which, so "
            f"none is listed again: {shown}. Look at their rows, and register the right ones."
        )
    text += "".join(f" {note}" for note in notes)
    only_deletes = bool(mine) and all(one.lost.deletes for one in mine)
    now = list(dict.fromkeys(name for one in mine for name in one.candidates))
    return _step(
        "Remove lost manifests", text, found, left, certain=not left, rows_lost=None if unknown else lost.rows,
        rows_back=None if deletes else 0, **(_calls(now, deletes=only_deletes) if mine else {}),
    )  # fmt: skip


def _step(title: str, text: str, found: list[Finding], of: list[Recovery], **values: Any) -> Step:
    made = step_of(title, text, found, **values)
    return replace(made, places=sum(len(one.lost.names) for one in of) or made.places)


def _of_current(draft: Draft, made: Iterable[Recovery]) -> list[Recovery]:
    """Return the recovery results, among those in ``made``, of lost manifests that the current snapshot lists.

    Engines can add the files of these manifests to the table again, so steps suggest calls for this. Engines cannot
    add files to older snapshots.
    """
    current = draft.state.snapshot
    return [one for one in made if current is not None and current.snapshot_id in one.lost.snapshots]


def _older_only(now: Sequence[Recovery]) -> str:
    """Return a sentence which states that only older snapshots list the lost manifests.

    If ``now`` is not empty, this would be false, and the result is an empty text.

    Parameters
    ----------
    now
        The recovery results of lost manifests that the current snapshot lists.
    """
    if now:
        return ""
    return " Only older snapshots list the lost manifests, and engines cannot repair older snapshots."


def _sum(counts: Iterable[Counts | None]) -> Counts:
    total = Counts(0, 0)
    for one in counts:
        total += one or Counts(0, 0)
    return total


def _counted(counts: Counts, of: Sequence[Recovery]) -> str:
    kinds = {one.lost.deletes for one in of}
    rows = amount(counts.rows, "delete" if kinds == {True} else "row")
    rows = rows if len(kinds) == 1 else f"{counts.rows:,} rows and deletes"
    what = "delete file" if kinds == {True} else "file"
    return f"{amount(counts.files, what)} with {rows}"


def _manifests(of: Sequence[Recovery]) -> str:
    names = [name.rpartition("/")[2] for one in of for name in one.lost.names]
    return f"the manifest {names[0]}" if len(names) == 1 else f"{len(names):,} manifests"


def _calls(
    files: Sequence[str], *, deletes: bool = False, equality: Collection[int] | None = None
) -> dict[str, tuple[str, ...]]:
    """Return the SQL statements and the API calls to suggest for adding files to a table.

    Parameters
    ----------
    files
        The locations of the files. If this is empty, the call of PyIceberg contains a placeholder.
    deletes
        Whether the files are delete files.
    equality
        For equality delete files, the ids of the columns that they compare. None for other files.

    Returns
    -------
    dict
        The values of the attributes ``sql`` and ``python`` of `Step`, with these names as keys. For delete files, there
        is no ``sql``, because the procedure ``add_files`` adds only data files. ``python`` has a call of PyIceberg, if
        all files are Parquet data files, and a call of Iceberg's Java API.
    """
    names = [repr(name) for name in files[:_NAMED]] or ["'<path>'"]
    names += ["…"] if len(files) > _NAMED else []
    if deletes:
        kind = "ofPositionDeletes()" if equality is None else f"ofEqualityDeletes({', '.join(map(str, equality))})"
        builder = f"FileMetadata.deleteFileBuilder(spec).{kind}"
        return {"python": (f"Java: table.newRowDelta().addDeletes({builder}.withInputFile(file)….build()).commit()",)}
    formats = list(dict.fromkeys((format_of_suffix(name) or DEFAULT_FORMAT).name for name in files))
    sources = [sql_text(f"`{one}`.`<folder that holds only these files>`") for one in formats or [DEFAULT_FORMAT.name]]
    added = f"PyIceberg: table.add_files([{', '.join(names)}])"
    return {
        "sql": tuple(
            f"CALL <catalog>.system.add_files(table => '<table>', source_table => {source})" for source in sources
        ),
        "python": (
            *((added,) if formats in ([], [Parquet.name]) else ()),  # add_files takes only Parquet files
            "Java: table.newAppend().appendFile(DataFiles.builder(spec).withInputFile(file)….build()).commit()",
        ),
    }


# Rows -----------------------------------------------------------------------------------------------------------------


def _rows_back(draft: Draft, made: list[Recovery], data: list[Recovery], *, with_found: bool) -> int | None:
    """Return the number of rows that the current snapshot gains by one step of the recovery of lost manifests.

    Rows that the snapshot's deletes remove are not counted. Return 0 if the current snapshot lists none of the
    manifests in ``data``, and None if the rows cannot be counted.

    Parameters
    ----------
    made
        The recovery results of all lost manifests.
    data
        The recovery results of the lost data manifests that the step is about.
    with_found
        Whether the entries that were found in other manifests have been added before: False for the step that adds
        them, True for the next step, which adds entries for files in the data folder.
    """
    current = draft.state.snapshot
    if current is None:
        return 0
    mine = [one for one in data if current.snapshot_id in one.lost.snapshots]
    if not mine:
        return 0
    if not _has_deletes(draft, made):
        return _sum(one.from_folder if with_found else one.from_history for one in mine).rows
    without = _count(draft, made, lambda one: one.known if with_found else one.lost.kept)
    after = _count(draft, made, lambda one: one.batch if with_found else one.known)
    return None if without is None or after is None else after - without


def _has_deletes(draft: Draft, made: list[Recovery]) -> bool:
    root = draft.state.root()
    if any(one.lost.deletes for one in made) or root is None:
        return True
    kinds = build.to_pylist(root.entries["content_type"].take(pa.array(live_manifests(root), pa.int64())))
    return int(ContentType.DELETE_MANIFEST) in kinds


def _count(draft: Draft, made: list[Recovery], entries: Callable[[Recovery], EntryBatch]) -> int | None:
    """Count the rows that the current snapshot would have if lost data manifests had certain entries.

    For this, a copy of the table is written to a temporary sandbox. In this copy, each lost data manifest has the
    entries that ``entries`` returns for it, and each lost delete manifest has all entries that were recovered. Rows
    that deletes remove are not counted. Return None if the copy cannot be written or read.

    Parameters
    ----------
    made
        The recovery results of all lost manifests.
    entries
        A function that takes the recovery result of a lost data manifest, and returns the entries to use for it.
    """
    trial = Draft(draft.state, copy.deepcopy(draft.document), dropped_leaves=set(draft.dropped_leaves))
    for one in made:
        batch: EntryBatch = one.batch if one.lost.deletes else entries(one)
        if len(batch):
            trial.recovered[one.lost.names[0]] = concat_batches([batch])
        else:
            trial.dropped_leaves.add(one.lost.names[0])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # these warnings are about faults that the doctor has already reported
            sandbox = start_sandbox(draft.state)
            try:
                write_draft(trial, sandbox)
                return int(count_rows(sandbox.state))
            finally:
                sandbox.storage.close()
    except IceexploreError:
        return None
