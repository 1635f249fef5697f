"""Recover the entries of one lost manifest: from the manifests of other snapshots, then from the data folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.doctor.recovery._choose import Choice, Counts, choose
from iceexplore.doctor.recovery._data_folder import DataFolder, Unlisted, fits_summaries
from iceexplore.doctor.recovery._history import History, Rows, keys_of
from iceexplore.doctor.recovery._lost_manifests import LostManifest, counts_of
from iceexplore.manifests import ContentType, EntryBatch, Status, concat_batches, live
from iceexplore.metadata import Snapshot

__all__ = ["MOST_ROW_IDS", "Recovery", "recover"]

_NOTHING = Counts(0, 0)
#: Only row ids below this number are assigned. It is half of the largest signed 64-bit number, so that the sum of a row
#: id and a number of rows does not overflow.
MOST_ROW_IDS = 1 << 62


@dataclass
class Recovery:
    """The result of recovering one lost manifest.

    Attributes
    ----------
    known
        The entries of the lost manifest that can still be read, followed by those that were found in other manifests.
    found
        The entries made from files in the data folder.
    certain
        True if other manifests and the counts in the manifest list prove that the lost manifest had all entries of
        `known`; False if some of these entries may be wrong.
    missing
        The number of live entries that remain lost, and the sum of their rows; None if unknown.
    candidates
        Locations of files, some of which may be the files that remain lost.
    numbers_lost
        Whether files of `found` got the lowest possible sequence number (position deletes: the highest), because their
        real sequence numbers are unknown.
    doubtful_deletes
        The number of equality delete files that may now delete too many rows. Equality deletes apply to data files with
        a lower sequence number. The data files of `found` got the lowest possible sequence number, so that even deletes
        that are older than these files may apply to them.
    new_row_ids
        Whether files of `found` got new row ids, because the old ones are unknown.
    """

    lost: LostManifest
    known: EntryBatch
    certain: bool
    missing: Counts | None
    candidates: tuple[str, ...] = ()
    found: EntryBatch = field(default_factory=EntryBatch.empty)
    numbers_lost: bool = False
    doubtful_deletes: int = 0
    new_row_ids: bool = False

    @property
    def batch(self) -> EntryBatch:
        """All entries to write to the manifest that replaces the lost one: `known`, then `found`."""
        return concat_batches([self.known, self.found])

    @property
    def again(self) -> EntryBatch:
        """The live entries of `known` that were found in other manifests."""
        rest = self.known.take(np.arange(len(self.lost.kept), len(self.known)))
        return rest.filter(live(rest.entries))

    @property
    def from_history(self) -> Counts:
        """The number of live entries that were found in other manifests (`again`), and the sum of their rows."""
        return counts_of(self.again)

    @property
    def from_folder(self) -> Counts:
        """The number of entries made from files in the data folder (`found`), and the sum of their rows."""
        return counts_of(self.found)


def recover(history: History, folder: DataFolder, lost: LostManifest, others: Sequence[LostManifest]) -> Recovery:
    """Recover the entries of a lost manifest from other manifests, then from the files in the data folder.

    The manifest list states how many files and rows the lost manifest had. If different choices of files fit these
    numbers, a file is recovered only if all of these choices include it (see `choose`). The recovered entries are added
    to ``history``, so that the recovery of further manifests can use them.

    Parameters
    ----------
    others
        The other lost manifests, some of which may have listed the same files.
    """
    made = _from_history(history, lost, [o for o in others if _compete(o, lost)])
    if made.missing is not None and made.missing.files > 0 and not made.candidates:
        _from_folder(history, folder, made)
    whole = lost.names if made.missing == _NOTHING else ()
    history.add(made.batch, lost.snapshots, whole)
    return made


def _compete(one: LostManifest, other: LostManifest) -> bool:
    """Return whether two lost manifests may have listed the same files.

    They may if they are of the same kind (data or deletes) and partition spec, and if a snapshot lists both.
    """
    return (one.deletes, one.spec_id) == (other.deletes, other.spec_id) and bool(one.snapshots & other.snapshots)


# From the manifests of other snapshots --------------------------------------------------------------------------------


def _from_history(history: History, lost: LostManifest, rivals: list[LostManifest]) -> Recovery:
    """Recover entries that readable manifests of other snapshots list.

    Each live file of a snapshot is in one of the snapshot's manifests. So a file that was live in a snapshot, but is in
    none of its readable manifests, was in a lost manifest. Other snapshots show which files these can be:

    - The children of a snapshot S that lists the lost manifest, because their commits started from S. A file was
      certainly live in S if a child deleted it, or if a child lists it as live but did not add it.
    - The parent of the snapshot whose commit wrote the lost manifest. The files of the lost manifest's EXISTING entries
      were live in this parent.

    Parameters
    ----------
    lost
        The lost manifest.
    rivals
        The other lost manifests that may have listed the same files.
    """
    key, alive, adder, status = history.key, history.alive, history.adder, history.status
    listed = history.listed_by(lost.snapshots)
    commit = history.snapshots.get(lost.snapshot_id)
    by_commits = np.isin(adder, [lost.snapshot_id, *lost.snapshots])
    is_deleted = status == int(Status.DELETED)
    # Two kinds of files cannot have been live in the lost manifest. First: files that are live in another manifest of
    # the same snapshots. Second: files that were deleted by the commit that wrote the lost manifest, or by the commit
    # of a snapshot that lists it. A commit that deletes a file replaces the manifest in which the file was live.
    out = np.unique(key[(listed & alive) | (is_deleted & by_commits & listed)])
    pool = (key >= 0) & (history.deletes == lost.deletes) & (history.spec == lost.spec_id)
    pool &= ~listed & ~np.isin(key, out)

    proven = np.zeros(len(key), bool)
    for child in history.children(lost.snapshots):
        if child.snapshot_id not in lost.snapshots:
            mine = history.listed_by({child.snapshot_id})
            was = mine & np.where(is_deleted, adder == child.snapshot_id, alive & (adder != child.snapshot_id))
            proven |= np.isin(key, np.unique(key[was]))

    parent = None if commit is None else commit.parent_snapshot_id
    is_first = commit is not None and parent in (None, -1)
    whole = is_first or (parent is not None and history.knows_all(parent, deletes=lost.deletes))
    number = lost.sequence_number
    if whole:
        before = np.zeros(len(key), bool) if parent is None else history.listed_by({parent}) & alive
    else:
        later = history.later_than(lost.snapshots)
        removed = is_deleted & ~np.isin(adder, later) & ~proven
        older = (history.number < number) if number else proven | ~np.isin(adder, later)
        before = older & ~np.isin(key, np.unique(key[removed]))
    added = np.where(is_deleted, (history.number == number) & (number > 0), alive & (adder == lost.snapshot_id))
    if whole or (number == 0 and lost.existing == _NOTHING):
        # In v1, a DELETED entry does not show which commit added its file: its snapshot id is that of the commit that
        # deleted the file, and it has no file sequence number. But a file was added by the commit that wrote the lost
        # manifest if it was certainly in this manifest and was not live in the parent snapshot. If the manifest had no
        # EXISTING entries, this commit added all of its files.
        added |= proven & ~np.isin(key, np.unique(key[before]) if whole else ())
    added &= pool
    added_rows = history.best(added)
    existing_rows = history.best(pool & before & ~np.isin(key, np.unique(key[added])))

    of_added = _pick(history.records[added_rows], proven[added_rows], lost.added, take_all=True)
    take_all = whole and commit is not None and _removes_nothing(commit, deletes=lost.deletes)
    of_existing = _pick(history.records[existing_rows], proven[existing_rows], lost.existing, take_all=take_all)
    taken_added, taken_existing = added_rows[of_added.taken], existing_rows[of_existing.taken]
    batches = [_as(history, taken_added, Status.ADDED, lost), _as(history, taken_existing, Status.EXISTING, lost)]
    rest = existing_rows[~of_existing.taken]
    if whole and of_existing.exact and Counts(len(rest), int(history.records[rest].sum())) == lost.deleted:
        deleted = _as(history, rest, Status.DELETED, lost)
        batches.append(deleted.with_columns(snapshot_id=lost.snapshot_id))

    # The files of `added_rows` were added by the commit that wrote the lost manifest. So they were live in the commit's
    # own snapshot. If this snapshot lists the lost manifest, none of its readable manifests has these files (see
    # `pool`). So each of them was in the lost manifest or in one of the `rivals`, which are checked next.
    sure_added = len(taken_added) == len(added_rows) and lost.snapshot_id in lost.snapshots
    sure_added |= bool(proven[taken_added].all())
    sure_existing = bool(proven[taken_existing].all()) or (whole and of_existing.exact)
    if any(other.existing != _NOTHING for other in rivals):
        sure_added = not len(taken_added)
    if rivals:
        sure_existing = not len(taken_existing)
    gone = {name for one in (lost, *rivals) for name in one.names}
    alone = all(history.knows_all(s, deletes=lost.deletes, besides=gone) for s in lost.snapshots)
    certain = lost.live is not None and alone and sure_added and sure_existing
    known = concat_batches([lost.kept, *batches])
    recovered = concat_batches(batches[:2])
    missing = None if lost.live is None else lost.live - counts_of(recovered)
    doubtful = np.concatenate([added_rows[of_added.doubtful], existing_rows[of_existing.doubtful]])
    names = build.to_pylist(history.locations.take(build.array(doubtful)))
    return Recovery(lost, known, certain, missing, tuple(map(str, names)))


def _removes_nothing(commit: Snapshot, *, deletes: bool) -> bool:
    """Return whether a commit removed no data file (with ``deletes``, no delete file), according to its summary.

    If the summary has no count of removed files, it is taken as 0. The result is always False if the operation is
    neither ``append`` nor ``replace``.
    """
    name = "removed-delete-files" if deletes else "deleted-data-files"
    return commit.operation in ("append", "replace") and (commit.summary or {}).get(name, "0") == "0"


def _pick(records: Rows, proven: npt.NDArray[np.bool_], stated: Counts | None, *, take_all: bool) -> Choice:
    """Choose the files of a lost manifest among candidates, so that they have the counts in the manifest list.

    All proven candidates are taken. Among the others, `choose` takes those that complete the counts. If the proven
    candidates alone exceed the counts, all candidates are doubtful.

    Parameters
    ----------
    records
        The record count of each candidate.
    proven
        A mask of the candidates that were certainly in the lost manifest.
    stated
        The counts that the manifest list states; None if it states none.
    take_all
        Used only if ``stated`` is None: whether to take all candidates, or only the proven ones.
    """
    none = np.zeros(len(records), bool)
    if stated is None:  # v1 allows manifest lists without counts
        return Choice(proven | take_all, none, False)
    left = stated - Counts(int(proven.sum()), int(records[proven].sum()))
    if left.files < 0 or left.rows < 0:
        return Choice(none, ~none, False)
    rest = choose(records[~proven], left)
    taken, doubtful = proven.copy(), none
    taken[~proven] = rest.taken
    doubtful[~proven] = rest.doubtful
    return Choice(taken, doubtful, rest.exact)


def _as(history: History, rows: Rows, status: Status, lost: LostManifest) -> EntryBatch:
    """Return a copy of entries of the history, as entries of the lost manifest with the given status.

    The snapshot id becomes that of the commit that added the file: for ADDED, the commit that wrote the lost manifest;
    for any other status, an earlier commit, or None if it is unknown. Sequence numbers and row ids do not change.

    Parameters
    ----------
    rows
        The row numbers of the entries in the history (see `History.fetch`).
    """
    batch = history.fetch(rows)
    if not len(batch):
        return batch
    if status is Status.ADDED:
        return batch.with_columns(status=int(status), snapshot_id=lost.snapshot_id)
    # The snapshot id of a DELETED entry is that of the snapshot that deleted the file. The snapshot that added the file
    # is found by the entry's file sequence number, which is the sequence number of this snapshot.
    by_number = {s.sequence_number: s.snapshot_id for s in history.snapshots.values() if s.sequence_number}
    given = batch.entries.select(["status", "snapshot_id", "file_sequence_number"]).to_pylist()
    ids = [
        by_number.get(one["file_sequence_number"]) if one["status"] == Status.DELETED else one["snapshot_id"]
        for one in given
    ]
    return batch.with_columns(status=int(status), snapshot_id=pa.array(ids, pa.int64()))


# From the data folder -------------------------------------------------------------------------------------------------


def _from_folder(history: History, folder: DataFolder, made: Recovery) -> None:
    """Recover entries from files in the data folder that no readable manifest lists.

    It is known how many files and rows are missing (``made.missing``). `choose` searches one set of files after another
    (see `DataFolder.tiers`), until it finds a set in which only one choice of files has these numbers. These files are
    recovered.

    If there is no such set, only the last set is used. If it has fewer files than are missing, and not too many rows,
    all of its files are recovered. Otherwise some of its files are doubtful. Then no file is recovered, and the
    locations of all its files become `Recovery.candidates`.

    Parameters
    ----------
    made
        What was recovered from other manifests. The recovered files are added to it.
    """
    lost, need = made.lost, made.missing
    assert need is not None
    last: EntryBatch | None = None
    choice: Choice | None = None
    for files in folder.tiers(lost):
        last = _candidates(history, folder, lost, files, need)
        choice = choose(np.asarray(last.entries["record_count"]), need)
        if choice.exact:
            break
    if last is None or choice is None or not len(last):
        return
    if choice.doubtful.any() or not choice.taken.any():
        made.candidates = tuple(dict.fromkeys(build.to_pylist(last.entries["location"])))
        return
    found = last.filter(pa.array(choice.taken))
    made.found = _registered(history, made, found)
    # A file that a rewrite wrote stores the ids of its rows. Readers prefer them to the first row id of the file's
    # entry, so the rows of such a file keep their ids.
    names = map(str, build.to_pylist(made.found.entries["location"]))
    made.new_row_ids = made.new_row_ids and not all(map(folder.stores_row_ids, names))
    made.missing = need - counts_of(made.found)
    if made.numbers_lost and not lost.deletes:
        made.doubtful_deletes = _doubtful_deletes(history, lost)


def _candidates(
    history: History, folder: DataFolder, lost: LostManifest, files: Sequence[Unlisted], need: Counts
) -> EntryBatch:
    """Return entries for the files that the lost manifest may have listed; all other files are left out.

    For example, a file is left out if its partition is outside the partition bounds that the manifest list states for
    the lost manifest, or if the file has more rows than are missing.

    Parameters
    ----------
    files
        Files in the data folder that no readable manifest lists.
    need
        How many live entries of the lost manifest were not found in other manifests, and the sum of their rows.
    """
    batches = [b for f in files if (b := folder.entries(f, lost.spec_id, deletes=lost.deletes)) is not None]
    batch = concat_batches(batches)
    if not len(batch):
        return batch
    alive = history.alive & history.listed_by(lost.snapshots)
    fits = fits_summaries(batch, lost, history.state)
    fits &= np.asarray(pc.less_equal(batch.entries["record_count"], need.rows))
    taken = history.keys.take(build.array(np.unique(history.key[alive])))
    fits &= ~np.asarray(pc.is_in(keys_of(batch.entries), value_set=taken))
    if lost.deletes:
        data = history.locations.take(build.array(np.flatnonzero(alive & ~history.deletes)))
        named = batch.entries["referenced_file"]
        fits &= np.asarray(pc.or_(named.is_null(), pc.is_in(named, value_set=data)))
        # A data file has at most one deletion vector. So if a readable manifest lists a deletion vector for a data
        # file, the lost manifest did not list another one for it.
        vectors = history.fetch(np.flatnonzero(alive & history.deletes)).entries
        vectors = vectors.filter(vectors["deletion_vector"].is_valid())
        with_vector = pc.is_in(named, value_set=vectors["referenced_file"].combine_chunks())
        fits &= ~np.asarray(pc.and_(with_vector, batch.entries["deletion_vector"].is_valid()))
    return batch.filter(pa.array(fits))


def _registered(history: History, made: Recovery, found: EntryBatch) -> EntryBatch:
    """Return the found files as entries of the lost manifest, with sequence numbers and row ids.

    If the original sequence numbers or row ids are unknown, other ones are assigned; ``made.numbers_lost`` and
    ``made.new_row_ids`` record this.
    """
    lost = made.lost
    existing = counts_of(made.known, Status.EXISTING) - counts_of(lost.kept, Status.EXISTING)
    added_by_commit = lost.existing is not None and existing.files >= lost.existing.files
    if added_by_commit:
        # A compaction gives its new files a lower data sequence number than its commit has, so that deletes that were
        # committed while it ran apply to them. If all entries of the lost manifest are ADDED, the manifest list shows
        # this number: it is the ``min_sequence_number`` that the list states for the manifest.
        alone = counts_of(made.known, Status.EXISTING).files == 0
        number = lost.least_number if alone else lost.sequence_number
        batch = found.with_columns(
            status=int(Status.ADDED), snapshot_id=lost.snapshot_id, sequence_number=number,
            file_sequence_number=lost.sequence_number,
        )  # fmt: skip
    else:
        made.numbers_lost = lost.least_number < lost.sequence_number
        # The real sequence numbers are unknown. A position delete applies to a data file only if the delete's number is
        # not lower than the file's. So data files get the lowest possible number, and position deletes the highest. An
        # equality delete gets the lowest number, so that it deletes no row that was written after it; but some rows
        # that it had deleted may come back.
        least = lost.least_number
        kinds = found.entries["content_type"]
        named = pc.fill_null(pc.equal(kinds, int(ContentType.POSITION_DELETE)), False)
        numbers = pc.if_else(named, lost.sequence_number, least).cast(pa.int64())
        adder = next((i for i, s in history.snapshots.items() if s.sequence_number == least), lost.snapshot_id)
        batch = found.with_columns(
            status=int(Status.EXISTING), snapshot_id=adder, sequence_number=numbers, file_sequence_number=numbers
        )
    if lost.deletes or not lost.has_row_ids:
        return batch
    records = np.asarray(pc.fill_null(batch.entries["record_count"], 0)).astype(np.int64)
    gap = _row_id_gap(made) if added_by_commit and len(batch) == 1 else None
    if gap is not None and gap[1] == records[0] and gap[0] + gap[1] < MOST_ROW_IDS:
        return batch.with_columns(first_row_id=gap[0])
    start = history.next_row_id
    if not 0 <= start < MOST_ROW_IDS:
        # The row ids of the table are impossible (see `MOST_ROW_IDS`), which another finding reports. So no new row id
        # is assigned: the ``first_row_id`` of the entries stays null, so that they inherit it from the manifest.
        return batch
    history.next_row_id = start + int(records.sum())
    made.new_row_ids = True
    return batch.with_columns(first_row_id=pa.array(start + np.cumsum(records) - records, pa.int64()))


def _row_id_gap(made: Recovery) -> tuple[int, int] | None:
    """Return the row ids of the lost manifest's missing ADDED files: the first id, and the number of ids.

    The rows of a manifest's ADDED files have consecutive ids, from the manifest's ``first_row_id`` on. So the ids that
    belong to no known file are those of the missing files. For example, if the manifest added rows with the ids 100 to
    129, and its known files have the ids 100 to 109 and 120 to 129, the result is ``(110, 10)``.

    Return None if the ids of the missing files are not exactly one range. Also return None if a number is unknown that
    is needed to compute them: the manifest's ``first_row_id``, its number of added rows, or the ``first_row_id`` of a
    known ADDED file.

    Parameters
    ----------
    made
        What was recovered of the lost manifest until now.
    """
    lost = made.lost
    if lost.first_row_id is None or lost.added is None:
        return None
    own = made.known.filter(pc.equal(made.known.entries["status"], int(Status.ADDED))).entries
    starts, counts = (build.to_pylist(own[name]) for name in ("first_row_id", "record_count"))
    if None in starts:
        return None
    at = lost.first_row_id
    end = at + lost.added.rows + counts_of(lost.kept, Status.ADDED).rows
    gaps = []
    for start, count in sorted(zip(starts, counts, strict=True)):
        if start > at:
            gaps.append((at, start - at))
        at = max(at, start + count)
    if end > at:
        gaps.append((at, end - at))
    return gaps[0] if len(gaps) == 1 else None


def _doubtful_deletes(history: History, lost: LostManifest) -> int:
    """Count the equality delete files that may wrongly delete rows of the recovered data files.

    Recovered data files get the lowest sequence number of the lost manifest, because their real numbers are unknown. So
    all equality deletes with a higher number apply to them, even deletes that are older than the file. Deletes with a
    number above that of the manifest are not counted: they are certainly newer than the file.
    """
    rows = np.flatnonzero(history.alive & history.deletes & history.listed_by(lost.snapshots))
    entries = history.fetch(rows).entries
    number = pc.fill_null(entries["sequence_number"], 0)
    between = pc.and_(pc.greater(number, lost.least_number), pc.less_equal(number, lost.sequence_number))
    equality = pc.equal(entries["content_type"], int(ContentType.EQUALITY_DELETE))
    return int(pc.sum(pc.and_(between, equality).cast(pa.int64())).as_py() or 0)
