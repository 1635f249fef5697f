"""Summarize a plan: its totals, the reasons why it skips files, and the card that represents it in notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyColumn
from iceexplore.arrow import compute as pc
from iceexplore.graph import amount, human_bytes
from iceexplore.manifests import whole
from iceexplore.planning.report._levels import levels_table, pruned_counts
from iceexplore.planning.report._skipped import skipped_table
from iceexplore.planning.scan._splits import delete_counts, split_counts
from iceexplore.render import Card, CardTable

if TYPE_CHECKING:
    from iceexplore.planning.scan._result import PlannedScan

__all__ = ["plan_card", "plan_totals", "reasons"]

_SHOWN_REASONS = 8
#: In a notebook, the card that represents a plan lists at most this many errors that were found in the table's
#: metadata, and at most this many warnings that a scan may return wrong rows or miss rows.
_MOST_PROBLEMS = 5
#: If a plan skips more data files than this in the manifests that it reads, the plan's card in a notebook does not give
#: the reasons: to find them, the filter would be evaluated again for each of these files.
_MOST_JUDGED = 200_000


def plan_totals(plan: PlannedScan) -> dict[str, int | None]:
    """Return the plan's totals by name, such as ``files``, the number of data files that it reads.

    ``files_in_table`` is the number of all live data files; in an incremental plan, it is the number of files that the
    planned snapshots added. ``skipped_files`` is the number of these files that the plan does not read. Both totals
    include the files in skipped manifests. As planning does not read these manifests, their file counts are taken from
    the root (the manifest list, or the root manifest of V4). Both totals are None if the root lacks one of these
    counts. They are also None if an incremental plan skips manifests, because a root does not count files by the
    snapshot that added them.

    ``row_groups`` and ``row_groups_in_files`` are left out if the plan has not checked row groups.
    """
    return plan.once("plan_totals", lambda: _plan_totals(plan))


def _plan_totals(plan: PlannedScan) -> dict[str, int | None]:
    tasks = plan.files
    entries, matched = tasks.files.entries, tasks.matched
    counts = delete_counts(matched)
    read = [leaf for leaf in plan.leaves if leaf.root_row is not None]
    pruned = [c for scan in plan.roots for c in pruned_counts(scan)]
    known = [c.files for c in pruned if c.files is not None]
    met = sum(leaf.files for leaf in plan.leaves)
    vectors = whole(matched.deletes.entries["record_count"]).take(matched.vector)
    columns: dict[str, int | None] = {
        "files": len(tasks),
        "rows": _total(entries["record_count"]),
        "bytes": _total(entries["file_size_in_bytes"]),
        "whole_files": tasks.whole.true_count,
        "splits": int(split_counts(tasks, plan.options.size).sum()),
        "files_in_table": met + sum(known) if len(known) == len(pruned) else None,
        "skipped_files": met + sum(known) - len(tasks) if len(known) == len(pruned) else None,
        "manifests": len(read),
        "manifests_in_table": sum(len(scan.rows) for scan in plan.roots),
        "delete_manifests": len(plan.read_delete_rows),
        "deletes": len(matched.deletes),
        "files_with_deletes": int((counts.count > 0).sum()),
        "delete_bytes": int(counts.bytes.sum()),
        "rows_deleted_by_vectors": _total(vectors),
        "bytes_planned": sum(r.length for r in plan.log if not r.cached and r.kind != "list"),
    }
    if plan.row_groups is not None:
        columns["row_groups"] = int(cast(pa.BooleanArray, pc.fill_null(whole(plan.row_groups["may"]), True)).true_count)
        columns["row_groups_in_files"] = len(plan.row_groups)
    return columns


def reasons(plan: PlannedScan) -> list[dict[str, Any]]:
    """Return the reasons why the plan skips manifests, files and row groups, those that exclude the most files first.

    Each reason is a dictionary with these keys (an item is a manifest, a data file or a row group):

    - ``kind``: what is skipped, one of ``manifest``, ``data file`` and ``row group``.
    - ``level``: the metadata with which planning excludes these items. It is ``manifest list`` (``root manifest`` in
      V4) for manifests, ``leaf manifest`` for data files, and ``row group`` for row groups. For data files that a V4
      root lists itself, it is ``root manifest``.
    - ``term``: the condition of the filter that excludes them; None for manifests without live files.
    - ``by``: the kind of metadata that proves that the items hold no matching rows, such as ``partition`` or
      ``bounds``.
    - ``count_all``: the number of items that are skipped for this reason.
    - ``files_sum``: the number of data files that are skipped for this reason. For manifests, this is the sum of the
      file counts in the root (the manifest list or root manifest); manifests without a count are left out. None if all
      of the manifests lack a count, or if the items are row groups.
    """
    table = skipped_table(plan).select(["level", "kind", "term", "by", "files"])
    if not len(table):
        return []
    grouped = table.group_by(["level", "kind", "term", "by"], use_threads=False).aggregate(
        [("files", "sum"), ([], "count_all")]
    )
    rows = grouped.to_pylist()
    rows.sort(key=lambda r: (-(r["files_sum"] or 0), -r["count_all"], str(r["term"])))
    return list(rows)


def plan_card(plan: PlannedScan) -> Card:
    """Build the card that represents a plan in notebooks.

    The card shows the plan's totals, the numbers of files, rows and bytes that remain after each step of pruning, the
    reasons why manifests, files and row groups are skipped, and the plan's notes and warnings.
    """
    numbers = plan_totals(plan)
    total = numbers["files_in_table"]
    of = "" if total is None else f" of {total:,}"
    facts = [
        ("Files read", f"{numbers['files']:,}{of}"),
        ("Manifests read", f"{numbers['manifests']:,} of {numbers['manifests_in_table']:,}"),
        ("Rows", f"{numbers['rows']:,}"),
        ("Bytes", human_bytes(numbers["bytes"] or 0)),
        ("Deletes", _deletes(numbers)),
        ("Planned in", f"{plan.seconds * 1000:,.0f} ms, {human_bytes(numbers['bytes_planned'] or 0)} of metadata read"),
    ]
    if plan.columns is not None:
        facts.insert(4, ("Columns", ", ".join(plan.columns)))
    if plan.files.residuals and len(plan.files):
        facts.append(("Files that match completely", f"{numbers['whole_files']:,}, as their metadata proves"))
    badges = list(plan.state.format_badges)
    if plan.state.travel:
        badges.append(plan.state.travel)
    if plan.appends is not None:
        badges.append(_stretch(plan))
    bad = [p for p in plan.state.problems.met() if p.severity == "error"]
    doubts = tuple(("warning", text, "") for text in plan.doubts[:_MOST_PROBLEMS])
    return Card(
        title=f"Scan of {plan.state.name}",
        badges=tuple(badges),
        subtitle=plan.filter.text,
        facts=tuple(facts),
        tables=tuple(t for t in (_waterfall(plan), _reasons(plan)) if t is not None),
        notes=plan.notes,
        problems=(*((p.severity, p.text, p.where) for p in bad[:_MOST_PROBLEMS]), *doubts),
    )


def _deletes(numbers: dict[str, int | None]) -> str:
    if not numbers["deletes"]:
        return "none"
    return f"{numbers['deletes']:,} for {amount(numbers['files_with_deletes'] or 0, 'file')}"


def _stretch(plan: PlannedScan) -> str:
    assert plan.appends is not None
    start = "from the oldest snapshot" if plan.appends.after is None else f"after snapshot {plan.appends.after}"
    return f"appends {start} up to snapshot {plan.appends.last.snapshot_id}"


def _waterfall(plan: PlannedScan) -> CardTable:
    rows = levels_table(plan).to_pylist()

    def text(value: int | None) -> str:
        return "?" if value is None else f"{value:,}"

    lines = tuple(
        (
            r["level"],
            "" if r["manifests"] is None else text(r["manifests"]),
            text(r["files"]),
            text(r["rows"]),
            "?" if r["bytes"] is None else human_bytes(r["bytes"]),
            "" if r["row_groups"] is None else text(r["row_groups"]),
        )
        for r in rows
    )
    heads = ("level", "manifests", "files", "rows", "bytes", "row groups")
    return CardTable("What remains after each step of pruning", heads, lines, right=frozenset({1, 2, 3, 4, 5}))


def _reasons(plan: PlannedScan) -> CardTable | None:
    pruned = sum(leaf.files - leaf.kept_files for leaf in plan.leaves)
    if pruned > _MOST_JUDGED:
        text = f"{pruned:,} data files were pruned after their manifests were read: see plan.skipped for the reasons"
        return CardTable("What is skipped, and why", ("",), ((text,),))
    found = reasons(plan)
    if not found:
        return None
    lines = tuple(
        (
            f"{r['count_all']:,} {r['kind']}{'s' if r['count_all'] != 1 else ''}",
            r["level"],
            r["term"] or "",
            r["by"] or "",
        )
        for r in found[:_SHOWN_REASONS]
    )
    left = len(found) - len(lines)
    return CardTable(
        "What is skipped, and why", ("skipped", "level", "term", "evidence"), lines,
        note=f"{left} more in plan.skipped" if left > 0 else "details in plan.skipped", code=frozenset({2}),
    )  # fmt: skip


def _total(column: AnyColumn) -> int:
    return int(np.int64(pc.sum(column).as_py() or 0)) if len(column) else 0
