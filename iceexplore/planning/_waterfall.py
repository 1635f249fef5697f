"""What is left after each level of a plan, as bars: manifests, files, bytes and rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.graph import human_bytes
from iceexplore.planning._bar_picture import BarPicture
from iceexplore.planning._plan_levels import levels_table
from iceexplore.planning._table_layout import deleted_rows
from iceexplore.render import Bar, BarChart, BarRow

if TYPE_CHECKING:
    from iceexplore.planning._scan_plan import ScanPlan

__all__ = ["Waterfall", "waterfall_of"]

#: Where more was skipped, the terms that did it are not counted: each explanation judges again.
_EXPLAINED = 100_000
_TERMS = 2
_UNITS = ("manifests", "files", "bytes", "rows")


@dataclass(frozen=True, repr=False)
class Waterfall(BarPicture):
    """What is left after each level. Shows itself as bars.

    Attributes
    ----------
    title, description
        What was planned, and what it comes to.
    levels
        A row per level: ``level``, ``manifests``, ``files``, ``rows``, ``bytes``, ``row_groups`` (null where it is not
        known), ``known`` (where the numbers come from), ``note`` (what decided).
    """

    title: str
    description: str
    levels: pa.Table

    def chart(self) -> BarChart:
        """A row per level, a column per measure; pale is what the level took away."""
        records = self.levels.to_pylist()
        units = [*_UNITS]
        if any(r["row_groups"] is not None for r in records):
            units.append("row_groups")
        before: dict[str, int | None] = dict.fromkeys(units)
        rows = []
        for record in records:
            bars = tuple(_bar(unit, record[unit], before[unit]) for unit in units)
            tooltip = "\n".join(filter(None, (record["level"], record["note"], record["known"])))
            rows.append(BarRow(record["level"], record["note"] or "", bars, tooltip))
            before = {u: before[u] if record[u] is None else record[u] for u in units}
        heads = tuple(u.replace("_", " ") for u in units)
        return BarChart(self.title, self.description, heads, tuple(rows), "left", "skipped at this level")


def _bar(unit: str, value: int | None, before: int | None) -> Bar | None:
    if value is None:
        return Bar(0.0, "not known") if unit in ("bytes", "rows", "files") else None
    said = human_bytes(value) if unit == "bytes" else f"{value:,}"
    gone = max(0, before - value) if before is not None else 0
    share = f" ({value / before:.0%})" if before and gone else ""
    return Bar(float(value), said + share, float(gone))


def waterfall_of(plan: ScanPlan, *, exact: bool = False) -> Waterfall:
    """The levels of a plan, deletes as the last.

    Parameters
    ----------
    exact
        Read the manifests that were pruned, too, for what the root does not say of them.
    """
    table = levels_table(plan, exact=exact)
    notes = [_note(r, terms) for r, terms in zip(table.to_pylist(), _terms(plan, table), strict=True)]
    levels = table.append_column("note", pa.array(notes, pa.string()))
    applied = _deletes(plan)
    if applied:
        last = dict.fromkeys(levels.column_names) | applied
        levels = pa.concat_tables([levels, pa.Table.from_pylist([last], schema=levels.schema)])
    first, count = table.to_pylist()[0], len(plan)
    of = "" if first["files"] is None else f" of {first['files']:,}"
    said = f"{count:,}{of} data files are read"
    if first["bytes"]:
        size = pc.sum(plan.files.files.entries["file_size_in_bytes"]).as_py() or 0
        said += f", {human_bytes(size)} of {human_bytes(first['bytes'])}"
    return Waterfall(f"{plan.state.name}: {plan.filter.text}", said + ".", levels)


def _terms(plan: ScanPlan, levels: pa.Table) -> list[list[tuple[str, int]]]:
    """Per level the terms that skipped most, and how many; nothing where there is too much to explain."""
    empty: list[list[tuple[str, int]]] = [[] for _ in range(levels.num_rows)]
    skipped = sum(len(scan.pruned) for scan in plan.roots) + sum(f.files - f.kept_files for f in plan.leaves)
    if not skipped or skipped > _EXPLAINED:
        return empty
    counts = plan.skipped_arrow.group_by(["level", "term"]).aggregate([([], "count_all")]).to_pylist()
    for i, name in enumerate(levels["level"].to_pylist()):
        mine = [r for r in counts if r["term"] and (r["level"] or "").rstrip("s") in name]
        mine.sort(key=lambda r: -r["count_all"])
        empty[i] = [(r["term"], r["count_all"]) for r in mine]
    return empty


def _note(record: Mapping[str, Any], terms: list[tuple[str, int]]) -> str:
    shown = [f"{term}: {count:,} skipped" for term, count in terms[:_TERMS]]
    rest = sum(count for _, count in terms[_TERMS:])
    return "; ".join([*shown, *([f"{rest:,} by other terms"] if rest else [])])


def _deletes(plan: ScanPlan) -> dict[str, Any]:
    """The rows that deletes leave, of the files that are read; empty where there are none."""
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
    note = ", ".join(f"{n:,} {word}{'' if n == 1 else 's'}" for n, word in parts if n)
    rows = pc.sum(plan.files.files.entries["record_count"]).as_py() or 0
    gone, touched = deleted_rows(plan.files)
    known = "rows by the counts of vectors and position deletes"
    if equality:
        known += "; what equality deletes remove is not counted: at most so many rows"
    return {
        "level": "after deletes", "files": len(plan),
        "bytes": pc.sum(plan.files.files.entries["file_size_in_bytes"]).as_py() or 0,
        "rows": max(0, rows - round(float(gone.sum()))), "known": known,
        "note": f"{note} in {int(touched.sum()):,} files",
    }  # fmt: skip
