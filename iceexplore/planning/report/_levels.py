"""Count the manifests, files, bytes and rows that remain after each step of planning.

The steps are called levels. First, whole manifests are pruned with the metrics in the root (the manifest list, or the
root manifest of V4). Then data files are pruned with the metrics in the remaining manifests, and then row groups with
the metrics in the footers of data files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyColumn, build
from iceexplore.arrow import compute as pc
from iceexplore.graph import Removals, amount
from iceexplore.manifests import whole
from iceexplore.planning.scan._files import count_leaf, leaves_of
from iceexplore.planning.scan._manifests import RootScan

if TYPE_CHECKING:
    from iceexplore.planning.scan._result import PlannedScan

__all__ = [
    "LEAF_LEVEL",
    "LEVELS_SCHEMA",
    "ROW_GROUP_LEVEL",
    "WHOLE_TABLE",
    "WITH_DELETES",
    "levels_table",
    "pruned_counts",
    "root_level",
    "root_level_label",
]

#: The columns of `levels_table`. The column ``known`` describes where the values in ``files``, ``rows`` and ``bytes``
#: come from, such as ``counted by reading the manifests``. If one of these values is unknown, it also states
#: which one, and why.
LEVELS_SCHEMA = build.schema(
    [
        ("level", pa.string()), ("manifests", pa.int64()), ("files", pa.int64()), ("rows", pa.int64()),
        ("bytes", pa.int64()), ("row_groups", pa.int64()), ("known", pa.string()),
    ]
)  # fmt: skip


_UNITS = ("files", "rows", "bytes")
#: Texts in the column ``level`` of `levels_table`, which has a row for each step of planning. The row with
#: `WHOLE_TABLE` counts all live files, before any are skipped (in an incremental plan, its text is ``appended``
#: instead). The row with `LEAF_LEVEL` counts the files that remain after the filter is evaluated on the entry of
#: each file. These entries are usually in leaf manifests: V4's name for the manifests below the root manifest.
WHOLE_TABLE = "whole table"
LEAF_LEVEL = "after pruning data files"
#: Text in the column ``level`` of `levels_table`, in the row that counts what remains after row groups are pruned.
ROW_GROUP_LEVEL = "after pruning row groups"
#: Part of the text in the column ``known`` of `levels_table`. It warns that the number of bytes may include those of
#: delete files. This is so if the number is ``total-files-size`` in the snapshot's summary, which counts data files and
#: delete files. If the summary states that the snapshot has no delete files, the warning is left out.
WITH_DELETES = "including those of delete files"


class Counts(NamedTuple):
    """A number of data files, with the number of their rows and their size in bytes; None where unknown.

    The files are those in one manifest, or those that remain after one step of planning (a level).
    """

    files: int | None
    rows: int | None
    bytes: int | None


def root_level(plan: PlannedScan) -> str:
    """Return ``manifest list`` or, in V4, ``root manifest``: the kind of file whose metadata prunes whole manifests.

    Texts about the plan contain these words.
    """
    return "root manifest" if any(s.root.dialect.has_root_manifest for s in plan.roots) else "manifest list"


def root_level_label(plan: PlannedScan) -> str:
    """Return the name of the step of planning that prunes whole manifests, as in column ``level`` of `levels_table`.

    The name of this step differs in V4, because a V4 root manifest may list data files itself. They are pruned
    together with the manifests that it lists.
    """
    return "after pruning in the root manifest" if root_level(plan) == "root manifest" else "after pruning manifests"


def levels_table(plan: PlannedScan, *, exact: bool = False) -> pa.Table:
    """Count the manifests, data files, rows and bytes that remain after each step of planning.

    The table has `LEVELS_SCHEMA`. Its first row counts all live files; for an incremental plan, all files that the
    planned snapshots added. The second row counts the files that remain after manifests are pruned, and the third row
    the files that remain after data files are pruned. If the plan has checked row groups, a last row counts what
    remains after row groups are pruned.

    Parameters
    ----------
    exact
        True to read the pruned manifests too, so that the first row has all its numbers. If False, the files in pruned
        manifests are counted without reading them: a number is null if it is neither in the root (the manifest list, or
        the root manifest of V4) nor in the snapshot's summary.
    """
    read = [leaf for leaf in plan.leaves if leaf.root_row is not None]
    own = [leaf for leaf in plan.leaves if leaf.root_row is None]
    rows: list[dict[str, Any]] = [_whole_table(plan, exact)]
    left = [
        sum(getattr(leaf, unit) for leaf in read) + sum(getattr(leaf, f"kept_{unit}") for leaf in own)
        for unit in _UNITS
    ]
    rows.append(
        _row(root_level_label(plan), len(read), Counts(*left), f"counted by reading the manifests{_damaged(plan)}")
    )
    entries = plan.files.files.entries
    rows.append(
        _row(
            LEAF_LEVEL,
            # The number of manifests that list at least one file to read. A manifest that could not be read in full is
            # included, because the entries that could not be read may contain such a file.
            sum(1 for leaf in read if leaf.kept_files or not leaf.readable),
            Counts(len(entries), _total(entries["record_count"]), _total(entries["file_size_in_bytes"])),
            f"counted by reading the manifests{_damaged(plan)}",
        )
    )
    if plan.row_groups is not None:
        rows[-1]["row_groups"] = len(plan.row_groups)
        rows.append(_row_group_level(plan))
    return pa.Table.from_pylist(rows, schema=LEVELS_SCHEMA)


def pruned_counts(scan: RootScan) -> list[Counts]:
    """Return how many live files and rows each pruned manifest has, according to the root that lists it.

    The root is the manifest list, or the root manifest of V4. The manifests themselves are not read. A root does not
    state the size of the files in a manifest, so the bytes are None, or 0 if there are no live files.

    In the V4 draft, a manifest DV can remove entries from a manifest. The number of removed entries is subtracted from
    the number of files; if it is unknown, the number of files is None. The root does not state how many rows the
    removed files have, so the number of rows is None, or 0 if no file remains.

    For an incremental plan, all numbers are None, because a root does not count files by the snapshot that added them.
    """
    rows = scan.pruned
    if not len(rows):
        return []
    if scan.added_by is not None:
        # The plan is incremental: it counts only the files that were added by the snapshots it covers. But a manifest
        # may also have files of other snapshots, and the manifest list (V4: root manifest) does not count files by
        # snapshot. So the numbers are unknown.
        return [Counts(None, None, None)] * len(rows)
    removals = Removals(scan.root)
    picked = scan.root.entries.select(["location", "manifest_stats"]).take(build.array(rows))
    out = []
    for record in picked.to_pylist():
        gone = removals.of(record["location"])
        files, held = (_live(record["manifest_stats"], unit) for unit in ("files", "rows"))
        if gone.rows:
            files = None if files is None or gone.entries is None else max(0, files - gone.entries)
            held = 0 if files == 0 else None
        out.append(Counts(files, held, 0 if files == 0 else None))
    return out


def _whole_table(plan: PlannedScan, exact: bool) -> dict[str, Any]:
    """Return the first row of `levels_table`, which counts all live data files, before any are skipped.

    For an incremental plan, these are all files that the planned snapshots added.

    Parameters
    ----------
    exact
        True to read the pruned manifests and count their files. If False, these manifests are not read: the counts of
        their files and rows are taken from the root (the manifest list or V4 root manifest), and the bytes from the
        snapshot's summary. A number is null if it cannot be found there.
    """
    manifests = sum(len(scan.rows) for scan in plan.roots)
    seen = [sum(getattr(leaf, unit) for leaf in plan.leaves) for unit in _UNITS]
    start = "appended" if plan.appends is not None else WHOLE_TABLE
    known = "counted by reading the manifests" + _damaged(plan)
    if exact:
        for scan in plan.roots:
            for leaf in leaves_of(plan.state, scan, frozenset({"entries"}), scan.pruned.tolist()):
                if leaf.root_row is not None:
                    seen = [a + b for a, b in zip(seen, count_leaf(scan, leaf), strict=True)]
        return _row(start, manifests, Counts(*seen), known)
    pruned = [c for scan in plan.roots for c in pruned_counts(scan)]
    if not pruned:
        return _row(start, manifests, Counts(*seen), known)
    files, held, size = (_sum([total, *values]) for total, values in zip(seen, zip(*pruned, strict=True), strict=True))
    if None not in (files, held):
        sources = [f"files and rows from the counts in the {root_level(plan)}"]
    elif plan.appends is not None:
        sources = [f"the counts in the {root_level(plan)}s do not show which snapshot added the files"]
    else:
        sources = [f"the {root_level(plan)} does not show how many files or rows some pruned manifests have"]
    if size is None:
        size, text = _summary_bytes(plan)
        sources.append(text)
    missing = [n for n, v in (("files", files), ("rows", held), ("bytes", size)) if v is None]
    if missing:
        sources.append(
            f"{' and '.join(missing)} in the pruned manifests are not known: levels(exact=True) reads these manifests"
        )
    return _row(start, manifests, Counts(files, held, size), "; ".join(sources) + _damaged(plan))


def _summary_bytes(plan: PlannedScan) -> tuple[int | None, str]:
    """Return the total size in bytes of all files in the plan's snapshot, and a text about this number.

    The size is ``total-files-size`` in the snapshot's summary, which includes delete files. It is None if the summary
    lacks it, or if the plan is incremental, as the planned snapshots did not add all these files.

    The text is for the column ``known`` of `levels_table`. It states where the size comes from, such as ``bytes from
    the snapshot's summary``. If the size is None, the text states that the manifest list (or V4 root manifest) does not
    record the sizes of data files.
    """
    summary = (plan.state.snapshot.summary if plan.state.snapshot is not None else None) or {}
    total, deletes = (_number(summary.get(f"total-{key}")) for key in ("files-size", "delete-files"))
    if plan.appends is not None or total is None:
        return None, f"the {root_level(plan)} does not record the sizes of data files"
    if deletes != 0:
        return total, f"bytes from the snapshot's summary, {WITH_DELETES}"
    return total, "bytes from the snapshot's summary"


def _row_group_level(plan: PlannedScan) -> dict[str, Any]:
    """Return the last row of `levels_table`: the files, rows and bytes that remain after row groups are pruned.

    The number of bytes is an estimate, because the footers of data files state only the uncompressed size of a row
    group. The size of each file is multiplied by a fraction: the uncompressed size of its remaining row groups, divided
    by that of all its row groups.
    """
    table = plan.row_groups
    assert table is not None
    may = np.asarray(pc.fill_null(whole(table["may"]), True))
    file = np.asarray(whole(table["file"])).astype(np.int64)
    sizes = np.asarray(pc.fill_null(whole(plan.files.files.entries["file_size_in_bytes"]), 0)).astype(np.float64)
    rows, weight = (np.asarray(pc.fill_null(whole(table[n]), 0)).astype(np.float64) for n in ("rows", "bytes"))
    every = np.bincount(file, weight, minlength=len(sizes))
    left = np.bincount(file[may], weight[may], minlength=len(sizes))
    touched = np.bincount(file[may], minlength=len(sizes)) > 0
    share = np.where(every > 0, left / np.maximum(every, 1), touched)
    counts = Counts(int(touched.sum()), int(rows[may].sum()), int(np.round(sizes * share).sum()))
    note = (
        "files and rows counted in the footers; bytes estimated from the file sizes and the uncompressed sizes of the "
        "remaining row groups"
    )
    return _row(ROW_GROUP_LEVEL, None, counts, note) | {"row_groups": int(may.sum())}


def _row(level: str, manifests: int | None, counts: Counts, known: str) -> dict[str, Any]:
    return {"level": level, "manifests": manifests, **counts._asdict(), "row_groups": None, "known": known}


def _damaged(plan: PlannedScan) -> str:
    count = sum(1 for leaf in plan.leaves if not leaf.readable)
    return f"; {amount(count, 'manifest')} could not be read in full, so some files are not counted" if count else ""


def _live(stats: dict[str, int | None] | None, unit: str) -> int | None:
    added, existing = ((stats or {}).get(f"{n}_{unit}_count") for n in ("added", "existing"))
    return None if added is None or existing is None else added + existing


def _sum(values: list[int | None]) -> int | None:
    known = [v for v in values if v is not None]
    return sum(known) if len(known) == len(values) else None


def _total(column: AnyColumn) -> int:
    return int(pc.sum(column).as_py() or 0)


def _number(text: object) -> int | None:
    return int(text) if isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) < 19 else None
