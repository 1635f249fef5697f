"""Draw bars for the numbers of manifests, files, bytes and rows that remain after each step of planning.

The steps are called levels. The first level is the whole table. The root (manifest list or V4 root manifest) is then
used to prune manifests, the leaf manifests to prune data files, and, in a plan with ``row_groups``, metadata in the
data files to prune row groups. If deletes apply to the files, the last level shows the rows that remain after them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.graph import human_bytes
from iceexplore.planning.delete_index._lists import Stretches
from iceexplore.planning.distribution._table_distribution import deleted_rows
from iceexplore.planning.report._levels import (
    LEAF_LEVEL,
    ROW_GROUP_LEVEL,
    WITH_DELETES,
    levels_table,
    root_level_label,
)
from iceexplore.planning.report._skipped import skipped_table
from iceexplore.planning.report._tree_labels import amount, damage, share_of
from iceexplore.render import Bar, BarChart, BarPicture, BarRow

if TYPE_CHECKING:
    from iceexplore.planning.scan._result import PlannedScan

__all__ = ["Waterfall", "waterfall_of"]

#: If a plan skips more manifests and files than this in total, the notes do not state how many of them each comparison
#: in the filter excludes, because the filter would have to be evaluated again on the metadata of each.
_EXPLAINED = 100_000
_TERMS = 2
_AT_MOST, _ESTIMATED = "upper limit", "are estimated"
#: Names of levels (steps of planning) in the waterfall. The key is the name of the same level in the column ``level``
#: of `skipped_table`. One level is missing here: the one that this column calls ``manifest list`` or, for V4, ``root
#: manifest``. `root_level_label` returns its name in the waterfall.
_LEVELS = {"leaf manifest": LEAF_LEVEL, "row group": ROW_GROUP_LEVEL}
_KINDS = {"manifest": "manifest", "data file": "file", "row group": "row group"}
_UNITS = ("manifests", "files", "bytes", "rows", "row_groups")
_OPTIONAL = ("manifests", "row_groups")
#: The number of manifests, files, bytes, rows or row groups that remain after one step of planning (None if unknown),
#: and whether this number is inexact: an upper limit or an estimate.
_Measure: TypeAlias = tuple[int | None, bool]


@dataclass(frozen=True, repr=False)
class Waterfall(BarPicture):
    """The numbers of manifests, files, bytes and rows that remain after each step of planning, shown as bars.

    The steps are called levels. The first level is the whole table (for an incremental plan, all appended files). The
    second level shows what remains after the filter is evaluated on the manifest list or root manifest, and the third
    what remains after the filter is evaluated on the entries of the data manifests. If the plan prunes row groups, one
    more level shows what remains after that. If deletes apply to the files, the last level shows what remains after the
    deleted rows are removed.

    Attributes
    ----------
    title
        The name of the table, and the filter.
    description
        A summary of the plan.
    levels
        One row per level, with these columns:

        - ``level``: the name of the level.
        - ``manifests``, ``files``, ``rows``, ``bytes``, ``row_groups``: what remains; null where unknown.
        - ``known``: where these numbers come from, such as ``counted by reading the manifests``.
        - ``note``: how many manifests, files or row groups are skipped at this level, and because of which conditions
          of the filter, such as ``12 files skipped by id > 9``; for the level of deletes, the number of deletes.
    """

    title: str
    description: str
    levels: pa.Table

    def chart(self) -> BarChart:
        """Return a chart with one row per level, and one column each for manifests, files, bytes, rows and row groups.

        A level is a step of planning, such as pruning manifests. The solid part of a bar is the amount that remains
        after the level, and the pale part is the amount that the level removed.

        Columns and rows without content are left out:

        - the columns of manifests and of row groups, if their number is 0 or unknown at every level;
        - the row of pruning with the leaf manifests, if the number of manifests is 0 or unknown at every level;
        - all rows but the first, if the number of files is known to be 0 at every level.
        """
        records = self.levels.to_pylist()
        units = [u for u in _UNITS if u not in _OPTIONAL or any(r[u] for r in records)]
        if not any(r["manifests"] for r in records):
            records = [r for r in records if r["level"] != LEAF_LEVEL]
        if not any(r["files"] for r in records) and all(r["files"] is not None for r in records):
            records = records[:1]
        before: dict[str, _Measure] = dict.fromkeys(units, (None, False))
        rows = []
        for record in records:
            known = record["known"]
            rounded = "up to " if _AT_MOST in known else "about " if _ESTIMATED in known else ""
            inexact = {"bytes": "up to " if WITH_DELETES in known else "", "rows": rounded}
            bars = tuple(_bar(unit, record[unit], before[unit], inexact.get(unit, "")) for unit in units)
            tooltip = "\n".join(filter(None, (record["level"], record["note"], known)))
            rows.append(BarRow(record["level"], record["note"] or "", bars, tooltip))
            before = {u: before[u] if record[u] is None else (record[u], bool(inexact.get(u))) for u in units}
        heads = tuple(u.replace("_", " ") for u in units)
        return BarChart(self.title, self.description, heads, tuple(rows), "left", "skipped or deleted in this step")


def _bar(unit: str, value: int | None, before: _Measure, inexact: str) -> Bar | None:
    """Return a bar for the number of files (or bytes, ...) that remain after one step of planning (a level).

    The text of the bar is, for example, ``1,200 (33 %)``. The percentage is the number divided by that of the previous
    level. It is left out if the previous number (see ``before``) is None or inexact, or if the number did not decrease.

    Parameters
    ----------
    unit
        What is counted: ``manifests``, ``files``, ``bytes``, ``rows`` or ``row_groups``.
    value
        The number that remains after the level; None if it is unknown. In this case, the result is None for manifests
        and row groups, and an empty bar with the text ``not known`` for the other units.
    before
        The number that remains after the previous level, and whether it is inexact. If that number is unknown, the
        nearest earlier level with a known number is used instead. If there is no such level, the number is None.
    inexact
        The words before the number in the text, with a space at the end: ``"up to "`` if ``value`` is only an upper
        limit, ``"about "`` if it is an estimate; ``""`` if it is exact. For the value 0, ``"up to "`` is not shown,
        because no number is less.
    """
    if value is None:
        return None if unit in _OPTIONAL else Bar(0.0, "not known")
    text = human_bytes(value) if unit == "bytes" else f"{value:,}"
    there, before_inexact = before
    gone = max(0, there - value) if there is not None else 0
    share = f" ({share_of(value, there)})" if there and gone and not before_inexact else ""
    return Bar(float(value), ("" if inexact == "up to " and not value else inexact) + text + share, float(gone))


def waterfall_of(plan: PlannedScan, *, exact: bool = False) -> Waterfall:
    """Return bars for the manifests, files, bytes and rows that remain after each step of planning.

    If deletes apply to the files that the plan reads, the last step shows what remains after the deleted rows are
    removed.

    Parameters
    ----------
    exact
        True to also read the pruned manifests, so that the first bars, which show everything before pruning, count
        their files, rows and bytes. If False, the counts in the root (the manifest list or V4 root manifest) and in the
        snapshot's summary are used instead; a number that is in neither of them is null.
    """
    table = levels_table(plan, exact=exact)
    notes = _notes(plan, table)
    levels = table.append_column("note", pa.array(notes, pa.string()))
    applied = _deletes(plan, levels)
    if applied:
        last = dict.fromkeys(levels.column_names) | applied
        levels = pa.concat_tables([levels, pa.Table.from_pylist([last], schema=levels.schema)])
    return Waterfall(f"{plan.state.name}: {plan.filter.text}", _summary(plan, table.to_pylist()[0]), levels)


def _summary(plan: PlannedScan, first: Mapping[str, Any]) -> str:
    """Summarize the plan in a phrase, such as ``reads 3 of 12 data files, 2.4 KiB of 9.6 KiB``.

    Parameters
    ----------
    first
        The first row of `levels_table`: how many live files, rows and bytes there are before any are skipped. For an
        incremental plan, only the appended files count.
    """
    if not plan.roots and plan.appends is None:
        return "the table has no snapshot: there is nothing to read"
    count, size = len(plan), pc.sum(plan.files.files.entries["file_size_in_bytes"]).as_py() or 0
    files = (
        amount(count, "data file") if first["files"] is None else f"{count:,} of {amount(first['files'], 'data file')}"
    )
    whole = first["bytes"] is not None and WITH_DELETES not in first["known"]
    return (
        f"reads {files}, {human_bytes(size)}" + (f" of {human_bytes(first['bytes'])}" if whole else "") + damage(plan)
    )


def _notes(plan: PlannedScan, levels: pa.Table) -> list[str]:
    """Return one note per step of planning, such as ``12 files skipped by id > 9; 3 for other reasons``.

    The steps, also called levels, are the rows of ``levels``. A note counts the manifests, files or row groups that are
    skipped in its step, separately for each term of the filter (a comparison, such as ``id > 9``) that excludes them.
    It shows the two largest of these counts, and the sum of the others. It is empty if nothing is skipped.

    If the plan skips too many manifests and files to count them by term (more than `_EXPLAINED`), the notes refer to
    `ScanPlan.skipped` instead. If some manifests could not be read in full, the note of the step ``after pruning data
    files`` begins with the number of these manifests.

    Parameters
    ----------
    levels
        A table of `LEVELS_SCHEMA`: each row shows how many manifests, files, rows and bytes remain after a step.
    """
    notes = _skipped(plan, levels)
    lost = sum(1 for leaf in plan.leaves if leaf.root_row is not None and not leaf.readable)
    names = levels["level"].to_pylist()
    if lost and names:
        at = names.index(LEAF_LEVEL) if LEAF_LEVEL in names else len(names) - 1
        notes[at] = "; ".join(n for n in (f"{amount(lost, 'manifest')} cannot be read in full", notes[at]) if n)
    return notes


def _skipped(plan: PlannedScan, levels: pa.Table) -> list[str]:
    notes = [""] * levels.num_rows
    names = build.to_pylist(levels["level"])
    manifests, files = sum(len(s.pruned) for s in plan.roots), sum(f.files - f.kept_files for f in plan.leaves)
    if manifests + files > _EXPLAINED:
        skipped = {root_level_label(plan): manifests, LEAF_LEVEL: files}
        if plan.row_groups is not None:
            skipped[names[-1]] = len(plan.row_groups) - (levels["row_groups"][-1].as_py() or 0)
        return ["the plan's .skipped shows what is skipped, and why" if skipped.get(name) else "" for name in names]
    if not manifests + files and plan.row_groups is None:
        return notes
    table = skipped_table(plan).select(["level", "kind", "term", "by"])
    counts = (
        table.group_by(["level", "kind", "term", "by"], use_threads=False).aggregate([([], "count_all")]).to_pylist()
    )
    counts.sort(key=lambda r: -r["count_all"])
    for i, name in enumerate(names):
        mine = [r for r in counts if name == _LEVELS.get(r["level"], root_level_label(plan))]
        parts = [_note(r) for r in mine[:_TERMS]]
        rest = sum(r["count_all"] for r in mine[_TERMS:])
        notes[i] = "; ".join([*parts, *([f"{rest:,} for other reasons"] if rest else [])])
    return notes


def _note(record: Mapping[str, Any]) -> str:
    skipped = f"{amount(record['count_all'], _KINDS[record['kind']])} skipped"
    return f"{skipped} by {record['term']}" if record["term"] else f"{skipped}: empty"


def _deletes(plan: PlannedScan, levels: pa.Table) -> dict[str, Any]:
    """Return the numbers for the last level, ``after deletes``, as a dictionary; empty if no delete applies to a file.

    A level is a step of planning, such as pruning data files. It has a row in the table of levels, which shows what
    remains after the step. The keys of the result are names of columns of this table. ``rows`` is the number of rows
    that remain after deletion vectors and position deletes are applied, and ``known`` is a text that states how
    reliable this number is:

    - ``rows`` is None (unknown) if the plan skips row groups and any rows are deleted, because some of the deleted rows
      may be in the skipped row groups.
    - ``rows`` is an estimate (see `deleted_rows`) if the plan skips data files, and a position delete file may apply to
      several data files: some of its positions may be in the skipped files.
    - Otherwise, ``rows`` is an upper limit if equality deletes apply, because the rows that they remove are not
      subtracted.

    Parameters
    ----------
    levels
        The earlier levels: a table of `LEVELS_SCHEMA` with the additional column ``note``.
    """
    entries = plan.files.matched.deletes.entries
    if not len(entries):
        return {}
    kinds = np.asarray(pc.fill_null(entries["content_type"], -1))
    vectors = len(pc.unique(plan.files.matched.vector.drop_null()))
    equality = int((kinds == 2).sum())
    parts = [
        (vectors, "deletion vector"),
        (len(entries) - vectors - equality, "position delete file"),
        (equality, "equality delete file"),
    ]
    note = ", ".join(amount(n, word) for n, word in parts if n)
    last = levels.slice(levels.num_rows - 1).to_pylist()[0]
    gone, touched = deleted_rows(plan.files)
    rows = last["rows"] - round(float(gone.sum()))
    known = "the number of deleted rows comes from the record counts of deletion vectors and position delete files"
    whole_table = not any(len(s.pruned) for s in plan.roots) and all(f.files == f.kept_files for f in plan.leaves)
    applied = Stretches.of(plan.files.matched.positions).uses(len(entries)) > 0
    shared = not whole_table and bool((applied & ~np.asarray(pc.is_valid(plan.files.matched.referenced))).any())
    if shared:
        known = (
            f"deleted rows {_ESTIMATED}: if a position delete file may apply to several data files, its record "
            "count is divided evenly among the data files of the plan to which it may apply"
        )
    if plan.row_groups is not None and rows < last["rows"] and last["row_groups"] < len(plan.row_groups):
        rows, known = None, "the number of rows is unknown, because deleted rows may be in skipped row groups"
    elif equality and shared:
        known += "; rows removed by equality deletes are not subtracted"
    elif equality:
        known += f"; rows removed by equality deletes are not subtracted, so the number of rows is an {_AT_MOST}"
    return {
        "level": "after deletes", "files": last["files"], "bytes": last["bytes"],
        "rows": None if rows is None else max(0, rows), "known": known,
        "note": f"{note}; deletes apply to {amount(int(touched.sum()), 'file')}",
    }  # fmt: skip
