"""Rules for single entries of a manifest, and rules for how the entries of a root relate to each other."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.errors import RuleError
from iceexplore.errors import rule as named_rule
from iceexplore.manifests import CONTENT_NAMES, ContentType, EntryBatch, Status, bool_array, live, whole
from iceexplore.manifests.rules import (
    ENTRY_CHECKS,
    FILES,
    MANIFESTS,
    Mask,
    Rows,
    above_file_sequence,
    later_than,
    repeated,
    stray_manifest_dvs,
)
from iceexplore.metadata import Dialect

__all__ = ["RuleBreak", "flagged", "refuse_broken", "root_breaks", "row_breaks"]


@dataclass(frozen=True)
class RuleBreak:
    """One violation of a rule by a snapshot.

    Attributes
    ----------
    rule
        The id of the rule, a key of `RULES`.
    where
        Where the rule is broken: the location of a file, the first row of a manifest that breaks the rule
        (``<location>#entry 3``), or the snapshot (``snapshot 12``).
    text
        A description of the violation. If several rows of a manifest break the rule, it describes the first row and
        states how many more there are.
    count
        The number of rows that break the rule.
    rows
        The indices of these rows in the file; None if the check does not record them, for example because they are in
        several files.
    """

    rule: str
    where: str
    text: str
    count: int = field(default=1, repr=False, compare=False)
    rows: np.ndarray | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        return f"{self.rule}: {self.text} ({self.where})"


def flagged(rule: str, where: str, mask: np.ndarray, text: str, entries: pa.Table | None = None) -> list[RuleBreak]:
    """Return a list with one violation for all rows in ``mask``; an empty list if there are none.

    The violation names the first of these rows.

    Parameters
    ----------
    where
        The location of the manifest that has the rows.
    text
        What is wrong with such a row, as a sentence about the file in it, such as ``it is in the root twice``.
    entries
        The rows of the manifest. If given, the violation also names the content type and the location in the first row.
    """
    rows = np.flatnonzero(mask)
    if not len(rows):
        return []
    named_rule(rule)  # raises for an unknown rule
    first = int(rows[0])
    what = ""
    if entries is not None:
        kind = entries["content_type"][first].as_py()
        what = f"{CONTENT_NAMES.get(kind, kind)} {entries['location'][first].as_py()}: "
    more = f" (and {len(rows) - 1} more rows)" if len(rows) > 1 else ""
    return [RuleBreak(rule, f"{where}#entry {first}", f"{what}{text}{more}", len(rows), rows)]


def row_breaks(
    entries: pa.Table, *, where: str, sequence_number: int, dialect: str = Dialect.V4_PROPOSAL
) -> list[RuleBreak]:
    """Return violations of the rules that concern single entries of a manifest.

    Parameters
    ----------
    where
        Location of the manifest.
    sequence_number
        The snapshot's sequence number.
    dialect
        The manifest's dialect. Position delete files, and delete files with a sort order, are violations in V4, but not
        in a leaf that was written before V4.
    """
    r = Rows(entries, dialect)
    checks = [(check.rule, check.violated(r), check.text) for check in ENTRY_CHECKS]
    checks += [
        (
            "sequence-order",
            bool_array(later_than(entries, sequence_number)),
            f"its sequence number is above the snapshot's, {sequence_number}",
        ),
        (
            "sequence-order",
            bool_array(above_file_sequence(entries)),
            "its data sequence number is above its file sequence number",
        ),
    ]
    return [b for name, mask, text in checks for b in flagged(name, where, mask, text, entries)]


def root_breaks(entries: pa.Table, *, where: str, snapshot_id: int, own: bool = False) -> list[RuleBreak]:
    """Return violations of rules that can be checked in a V4 root alone, without its leaves and its parent.

    Parameters
    ----------
    where
        The location of the root, as the returned violations name it.
    snapshot_id
        The id of the snapshot whose root it is.
    own
        Return only violations by rows whose snapshot id is ``snapshot_id``, which are those that this snapshot added or
        marked DELETED. By default, violations by all rows are returned.
    """
    r = Rows(entries)
    files, manifests = r.is_kind(*FILES), r.is_kind(*MANIFESTS)
    vectors = r.is_kind(ContentType.MANIFEST_DV) & r.live
    mine = r.ints("snapshot_id", -1) == snapshot_id
    both = ~r.null("sequence_number") | ~r.null("file_sequence_number")
    differ = r.ints("sequence_number", -1) != r.ints("file_sequence_number", -1)
    added, deleted = r.status == Status.ADDED, r.status == Status.DELETED
    old_file = (r.status == Status.EXISTING) & files & mine
    out = []
    for name, mask, text in (
        ("manifest-sequence", manifests & both & differ, "sequence_number and file_sequence_number differ"),
        ("added-is-change", added & ~mine, "it is ADDED but has another snapshot's id"),
        ("added-is-change", old_file, "it has this snapshot's id but is EXISTING"),
        ("deleted-entries", deleted & ~mine, "it is DELETED but has another snapshot's id"),
        ("duplicate-file", _again(entries, r.live & (r.is_kind(ContentType.DATA) | manifests), "location"),
         "it is in the root twice"),
        ("one-dv", _again(entries, r.live & r.is_kind(ContentType.POSITION_DELETE), "referenced_file"),
         "its data file has another deletion vector in the root"),
    ):  # fmt: skip
        out += flagged(name, where, mask & mine if own else mask, text, entries)
    return out + _manifest_dv_breaks(r, where, vectors & mine if own else vectors)


def _again(entries: pa.Table, mask: Mask, column: str) -> Mask:
    """Return a mask of the rows in ``mask`` that repeat the value of ``column`` from an earlier row in ``mask``."""
    rows = np.flatnonzero(mask)
    out: Mask = np.zeros(len(mask), dtype=np.bool_)
    values = entries[column].take(build.array(rows))
    twice = cast(pa.StructArray, repeated(values)).field("values")
    if len(twice):
        codes = np.asarray(pc.fill_null(whole(pc.index_in(values, value_set=twice)), -1))
        first = np.unique(codes, return_index=True)[1]
        again = codes >= 0
        again[first] = False
        out[rows[again]] = True
    return out


def _manifest_dv_breaks(r: Rows, where: str, vectors: np.ndarray) -> list[RuleBreak]:
    orphan = stray_manifest_dvs(r) & vectors
    rows = np.flatnonzero(vectors)
    manifests = np.flatnonzero(r.is_kind(*MANIFESTS) & r.live)
    names = whole(r.entries["location"].take(build.array(manifests)))
    target = whole(pc.index_in(r.entries["referenced_file"].take(build.array(rows)), value_set=names))
    there = np.asarray(target.is_valid())
    at = np.asarray(target.drop_null(), dtype=np.int64)
    held = rows[there]
    # A manifest may have one manifest DV of each status: an EXISTING one, and (in the delta encoding) an ADDED one that
    # has only the newly removed positions.
    pairs = build.table({"leaf": at, "status": r.status[held]})
    twice, range_broken = np.zeros(len(vectors), np.bool_), np.zeros(len(vectors), np.bool_)
    counts = pairs.group_by(["leaf", "status"], use_threads=False).aggregate([([], "count_all")])
    double = build.to_pylist(counts.filter(pc.greater(counts["count_all"], 1))["leaf"])
    twice[held[np.isin(at, double)]] = True
    stats = build.to_pylist(r.entries["manifest_stats"].take(build.array(manifests)))
    stored = np.array([_stored(s) for s in stats], dtype=np.int64)
    if len(held):
        range_broken[held] = r.ints("record_count")[held] > stored[at]
    return [
        *flagged("orphan-dv", where, orphan, "it references no live manifest", r.entries),
        *flagged("one-manifest-dv", where, twice, "its manifest has another live DV of the same status", r.entries),
        *flagged("dv-in-range", where, range_broken, "it removes more entries than its manifest has", r.entries),
    ]


def _stored(stats: dict[str, int | None] | None) -> int:
    parts = [(stats or {}).get(f"{name}_files_count") for name in ("added", "existing", "deleted")]
    return 1 << 62 if None in parts else sum(p for p in parts if p is not None)


def refuse_broken(
    batch: EntryBatch,
    *,
    snapshot_id: int,
    sequence_number: int,
    added: EntryBatch,
    relaxed: Collection[str] = (),
    dialect: str = Dialect.V4_PROPOSAL,
) -> None:
    """Refuse a root that breaks a rule, before it is written.

    Only rows that the commit adds or changes are checked. A commit is not refused if a row that it copies unchanged
    from the parent's root breaks a rule, because this was the fault of an earlier commit.

    Parameters
    ----------
    batch
        The new root's rows.
    snapshot_id, sequence_number
        The id and the sequence number of the snapshot that the commit creates.
    added
        The files that the commit adds, in the root or in leaves.
    relaxed
        Ids of rules that the commit may break, because its layout breaks them on purpose (`LayoutOptions.relaxed`).
    dialect
        The root's dialect; only its rules are checked.

    Raises
    ------
    RuleError
        A rule is broken; the error names the first broken rule and the location.
    """
    entries = batch.entries
    own = pc.and_(pc.equal(entries["snapshot_id"], snapshot_id), live(entries))
    # These checks use their default dialect, the V4 proposal, even if the root is written in the form of the V4 draft.
    # The rows are converted to this form only after the checks. Until then, a deletion vector has a row of its own.
    found = [
        *row_breaks(added.entries, where="the added files", sequence_number=sequence_number),
        *row_breaks(entries.filter(own), where="the new root's new rows", sequence_number=sequence_number),
        *root_breaks(entries, where="the new root", snapshot_id=snapshot_id, own=True),
    ]
    for item in found:
        if item.rule not in relaxed and named_rule(item.rule).is_followed(by_draft=Dialect(dialect).is_draft):
            raise RuleError(item.rule, f"{item.where}: {item.text}")
