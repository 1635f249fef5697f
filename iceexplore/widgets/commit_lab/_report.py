"""The effect of a step of the commit lab: sentences, files, rules, and costs, compared with another layout."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.errors import OPEN_POINTS, OptionError, Rule
from iceexplore.graph import Diff, TableState, diff, human_bytes, to_frame
from iceexplore.storage import Write
from iceexplore.widgets.commit_lab._session import Simulation, Step, Twin
from iceexplore.widgets.core._blocks import Block, Part
from iceexplore.widgets.core._escape_text import signs
from iceexplore.widgets.tree._side_tree import SideTree

if TYPE_CHECKING:
    import pandas as pd

    from iceexplore.commits import RuleBreak

__all__ = ["Report", "bars", "compared", "costs_sent", "headline_sent"]

#: With more files, rules are checked only on request, as this reads every manifest.
_MANY_FILES = 200_000
#: The levels of files that are written and read: their kinds in the logs, and their displayed names.
_LEVELS = {
    "metadata": "table metadata",
    "manifest-list": "manifest list",
    "manifest": "manifests",
    "puffin": "manifest DVs",
    "data": "data, deletes and DVs",
}


class Report:
    """The report of a step, computed piece by piece on request, in the worker thread."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self.before: TableState = step.before.state
        self.after: TableState = step.after.state
        self._twin_costs: dict[str, dict[str, dict[str, float]]] = {}

    @cached_property
    def diff(self) -> Diff:
        """The difference between the states."""
        return diff(self.before, self.after)

    @cached_property
    def sides(self) -> tuple[SideTree, SideTree]:
        """The trees before and after."""
        return (
            SideTree(self.before, self.after, self.diff, "before"),
            SideTree(self.after, self.before, self.diff, "after"),
        )

    # In sentences -----------------------------------------------------------------------------------------------------

    def text(self) -> list[str]:
        """Return a few short sentences about the effect."""
        out = [*self._snapshot(), *self._files(), *self._document()]
        attempts = max((w.attempt or 1 for w in self.writes), default=1)
        if attempts > 1:
            out.append(
                "Another writer had committed first: the change was validated against that commit and applied on top "
                f"of it. Attempt {attempts} rewrote only the root or manifest list and the metadata file."
            )
        return [signs(line) for line in out] or ["Nothing changed: no commit was made."]

    def _snapshot(self) -> list[str]:
        was, now = self.before.snapshot, self.after.snapshot
        if now is not None and (was is None or was.snapshot_id != now.snapshot_id):
            if self.before.metadata.snapshot(now.snapshot_id) is None:
                return [f"Snapshot {now.snapshot_id}, operation {now.operation}."]
            return [f"Snapshot {now.snapshot_id} is the current one again."]
        new = [s for s in self.after.metadata.snapshots if self.before.metadata.snapshot(s.snapshot_id) is None]
        if new:
            return [f"Snapshot {s.snapshot_id}, operation {s.operation}, on another branch." for s in new[:5]]
        return ["No new snapshot: only the metadata file is new."] if self._is_new else []

    @property
    def _is_new(self) -> bool:
        return self.before.metadata_location != self.after.metadata_location

    def _files(self) -> list[str]:
        out = []
        for change, verb in (("added", "added"), ("removed", "removed")):
            words = _counted(self.diff.files_arrow, change)
            if words:
                out.append(f"{verb.capitalize()}: {', '.join(words)}.")
        manifests = self.diff.manifests_arrow
        parts = []
        for change, verb in (("added", "added"), ("removed", "removed"), ("carried over", "carried over")):
            words = _counted(manifests, change, {"data": "data manifest", "deletes": "delete manifest"})
            if words:
                parts.append(f"{', '.join(words)} {verb}")
        if parts and self._is_new:
            out.append(f"{'; '.join(parts)}.")
        own = self._own_rows()
        if own:
            entries = "entry is" if own == 1 else "entries are"
            out.append(f"{own:,} new {entries} directly in the root, without a manifest.")
        flushed = pc.and_(pc.equal(manifests["change"], "added"), pc.equal(manifests["content"], "data"))
        if self.step.operation == "append" and pc.any(flushed).as_py() and _has_root_manifest(self.after):
            limit = self.step.after.options.flush_data_files
            out.append(
                f"The root would have had more than {limit:,} data files, the limit of the layout option “Data files "
                "in the root”, so files were flushed to a manifest."
            )
        return out

    def _own_rows(self) -> int:
        """Return the number of files that the new snapshot added directly to its root."""
        now = self.after.snapshot
        if now is None or self.before.metadata.snapshot(now.snapshot_id) is not None:
            return 0
        root = self.after.root()
        direct = None if root is None else self.after.reader.direct(root)
        if direct is None:
            return 0
        mine = pc.and_(
            pc.equal(direct.entries["snapshot_id"], now.snapshot_id),
            pc.equal(direct.entries["status"], pa.scalar(1, pa.int32())),
        )
        return int(pc.sum(mine).as_py() or 0)

    def _document(self) -> list[str]:
        a, b = self.before.metadata, self.after.metadata
        out = []
        if a.format_version != b.format_version:
            out.append(f"The format version changed from {a.format_version} to {b.format_version}.")
        changes = (*self.diff.schema, *self.diff.spec, *self.diff.properties)
        out += [f"{change.text}." for change in changes[:10]]
        gone = [s for s in a.snapshots if b.snapshot(s.snapshot_id) is None]
        if gone:
            out.append(f"{len(gone):,} snapshot{'s' if len(gone) > 1 else ''} expired.")
        for name in dict.fromkeys([*a.refs, *b.refs]):
            was, now = a.refs.get(name), b.refs.get(name)
            if was is None and now is not None and name != "main":
                out.append(f"{now.type.capitalize()} {name!r} was created.")
            elif was is not None and now is None:
                out.append(f"{was.type.capitalize()} {name!r} was removed.")
        return out[:20]

    # Tables -----------------------------------------------------------------------------------------------------------

    def frame(self, table: str) -> pd.DataFrame:
        """Return a table of the step: ``files``, ``manifests``, ``rules``, ``written`` or ``plan``.

        Raises
        ------
        OptionError
            There is no such table.
        """
        match table:
            case "files":
                files = self.diff.files_arrow
                shown = ["change", "content", "file", "record_count", "size_in_bytes", "referenced_file", "location"]
                name = pc.replace_substring_regex(files["location"], r"^.*/", "")
                return to_frame(files.append_column("file", name).select(shown))
            case "manifests":
                return self.diff.manifests
            case "rules":
                return self._rules()
            case "written":
                return self._written()
            case "plan":
                from iceexplore.commits import plan_cost

                return plan_cost(self.after, cached=self.before).to_pandas()
        raise OptionError(f"a step has no table {table[:60]!r}")

    def _rules(self) -> pd.DataFrame:
        """Return all checked rules, broken ones first; for a root manifest, also what the proposal leaves open."""
        import pandas as pd

        from iceexplore.commits import checked_rules

        checked = checked_rules(self.after)
        breaks = {b.rule: b for b in reversed(self.broken)}
        rows = [
            {
                "rule": rule.id,
                "result": "broken" if rule.id in breaks else "kept",
                "what must hold": rule.text,
                "source": rule.source,
                "where": f"{breaks[rule.id].where}: {breaks[rule.id].text}" if rule.id in breaks else "",
            }
            for rule in checked
        ]
        rows.sort(key=lambda row: row["result"])
        if _of_root_manifest(checked):
            rows += [
                {
                    "rule": point.id,
                    "result": "left open",
                    "what must hold": f"{point.title} Written here: {point.written}",
                    "source": "V4 proposal",
                    "where": "",
                }
                for point in OPEN_POINTS.values()
            ]
        return pd.DataFrame(rows, columns=["rule", "result", "what must hold", "source", "where"])

    def checked(self) -> str:
        """Return a sentence about the checked and the broken rules; for very large tables, refer to the tab Rules."""
        from iceexplore.commits import checked_rules

        summary = (self.after.snapshot.summary if self.after.snapshot else None) or {}
        files = str(summary.get("total-data-files", "0"))
        if files.isdecimal() and len(files) < 19 and int(files) > _MANY_FILES:
            return f"Rules were not checked, as the table has {int(files):,} files. Open the tab Rules to check them."
        checked = checked_rules(self.after)
        count, broken = len(checked), sorted({b.rule for b in self.broken})
        more = f" The proposal leaves {len(OPEN_POINTS)} points open (tab Rules)." if _of_root_manifest(checked) else ""
        if not broken:
            return f"{count} rules checked, none broken.{more}" if count else ""
        return f"{count} rules checked, {len(broken)} broken: {', '.join(broken)}.{more}"

    @cached_property
    def broken(self) -> list[RuleBreak]:
        """The violations of rules in the tree after the step."""
        from iceexplore.commits import check_rules

        return check_rules(self.after)

    @cached_property
    def writes(self) -> list[Write]:
        """All files that the step's commits wrote, in all attempts, including those of the other writer."""
        return _writes(self.step.before, self.step.after)

    def _written(self) -> pd.DataFrame:
        import pandas as pd

        root = "root-manifest" if self.step.after.options.title == "V4" else "manifest-list"
        rows = [
            (
                root if w.kind == "manifest-list" else w.kind,
                w.location.rpartition("/")[2],
                w.length,
                w.commit,
                w.attempt,
                w.location,
            )
            for w in self.writes
        ]
        return pd.DataFrame(rows, columns=["kind", "file", "bytes", "commit", "attempt", "location"])

    @cached_property
    def costs(self) -> dict[str, dict[str, float]]:
        """The costs of the step by level; see `bars`."""
        return _costs(self.step.before, self.step.after)

    def twin_costs(self, name: str, twin: Twin) -> dict[str, dict[str, float]]:
        """Return the costs of the same operation in another layout, whose name is ``name``."""
        if name not in self._twin_costs:
            self._twin_costs[name] = _costs(twin.before, twin.after)
        return self._twin_costs[name]


def bars(report: Report, twin: tuple[str, Twin] | None) -> list[dict[str, Any]]:
    """Return the costs of a step as bars with a part per level, beside those of the same operation in another layout.

    Written files are all that the step's commits wrote, in every attempt and by every writer. Files read by planning
    are those of a planner with an empty cache. What the commits themselves read is not included, as it depends on what
    was cached before.

    Returns
    -------
    list of dict
        ``title``; ``rows`` with ``label``, ``total`` (text) and ``parts``: ``level``, ``value``, ``text``.
    """
    sides = _both(report, twin)
    titles = {
        "files": "Files written (one PUT each)",
        "bytes": "Bytes written",
        "plan_files": "Files then read by planning (one GET each)",
        "plan_bytes": "Bytes then read by planning",
    }
    out = []
    for key, title in titles.items():
        show = human_bytes if key.endswith("bytes") else _number
        rows = []
        for name, costs in sides.items():
            parts = [
                {"level": level, "value": value, "text": f"{_level(level, name)} {show(int(value))}"}
                for level, value in costs[key].items()
                if value
            ]
            rows.append({"label": name, "total": show(int(sum(costs[key].values()))), "parts": parts})
        out.append({"title": title, "rows": rows})
    return out


def costs_sent(found: list[dict[str, Any]]) -> list[Block]:
    """Return the bars as tables for the browser, scaled to the largest bar of each table."""
    out: list[Block] = []
    for bar in found:
        most = max([1, *(sum(part["value"] for part in row["parts"]) for row in bar["rows"])])
        rows = []
        for row in bar["rows"]:
            lengths = [[f"level-{part['level']}", part["value"] / most] for part in row["parts"]]
            words = " · ".join(part["text"] for part in row["parts"])
            rows.append([[row["label"]], [["bars", lengths], ["note", words]], [row["total"]]])
        look = {"kind": "cost", "label": bar["title"], "columns": ["", "", "right"]}
        out.append(["table", [["layout"], [bar["title"]], ["total"]], rows, look])
    return out


def headline_sent(report: Report) -> list[Part]:
    """Return a step's cost as a line: what its commits wrote, and what a planner with an empty cache then reads."""
    costs = report.costs
    files, size, gets, read = (int(sum(costs[key].values())) for key in ("files", "bytes", "plan_files", "plan_bytes"))
    return [
        ["b", f"{files:,} PUT{'' if files == 1 else 's'}, {human_bytes(size)} written"],
        " · ",
        ["b", f"next plan: {gets:,} GET{'' if gets == 1 else 's'}, {human_bytes(read)}"],
    ]


def compared(report: Report, twin: tuple[str, Twin] | None) -> str:
    """Return a sentence about the files that the commit wrote, in both layouts."""
    words = []
    for name, costs in _both(report, twin).items():
        files, size = (int(sum(costs[key].values())) for key in ("files", "bytes"))
        words.append(f"{name} {files:,} file{'' if files == 1 else 's'}, {human_bytes(size)}")
    text = f"Written: {'; '.join(words)}."
    if twin is not None and twin[1].refused:
        text += f" In {twin[0]} the operation was refused: {twin[1].refused.rstrip('.')}."
    return text


def _both(report: Report, twin: tuple[str, Twin] | None) -> dict[str, dict[str, dict[str, float]]]:
    options = report.step.after.options
    sides = {options.title: report.costs}
    if twin is not None and not twin[1].refused:
        sides[twin[0]] = report.twin_costs(*twin)
    return sides


def _costs(before: Simulation, after: Simulation) -> dict[str, dict[str, float]]:
    """Return files and bytes by level: written by the commits, and then read by a planner with an empty cache."""
    names = ("files", "bytes", "plan_files", "plan_bytes")
    out: dict[str, dict[str, float]] = {name: dict.fromkeys(_LEVELS, 0) for name in names}
    data = after.location.rstrip("/") + "/data/"
    for write in _writes(before, after):
        level = "data" if write.kind not in _LEVELS or write.location.startswith(data) else write.kind
        out["files"][level] += 1
        out["bytes"][level] += write.length
    from iceexplore.commits import plan_files

    for file in plan_files(after.state):
        level = file.kind if file.kind in _LEVELS else "manifest"
        out["plan_files"][level] += 1
        out["plan_bytes"][level] += file.size
    return out


def _writes(before: Simulation, after: Simulation) -> list[Write]:
    return list(after.writes)[len(before.writes) :]  # a copy's log continues that of the original


def _has_root_manifest(state: TableState) -> bool:
    root = state.root()
    return root is not None and root.dialect.has_root_manifest


def _of_root_manifest(checked: Sequence[Rule]) -> bool:
    """Return whether a rule among these applies only to root manifests, which the V4 proposal introduces."""
    return any(rule.only == "root manifest" for rule in checked)


def _counted(table: pa.Table, change: str, names: dict[str, str] | None = None) -> list[str]:
    """Return a text like ``3 data files`` for each content type of the rows with this change."""
    held = table.filter(pc.equal(table["change"], change))["content"].drop_null()
    counts = pc.value_counts(held.combine_chunks())
    out = []
    for item in build.to_pylist(counts):
        name, n = (names or {}).get(item["values"], item["values"]), item["counts"]
        out.append(f"{n:,} {name}{'s' if n > 1 else ''}")
    return out


def _level(level: str, layout: str) -> str:
    return "root" if level == "manifest-list" and layout == "V4" else _LEVELS[level]


def _number(value: int) -> str:
    return f"{value:,}"
