"""A repair plan for the browser: its steps as blocks, as Python and as SQL, and the trees before and after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from iceexplore.arrow import compute as pc
from iceexplore.errors import IceexploreError
from iceexplore.graph import TableState, amount, diff, json_safe
from iceexplore.widgets.core._blocks import Block, Part
from iceexplore.widgets.problems._findings import text_of
from iceexplore.widgets.tree._side_tree import SideTree
from iceexplore.widgets.tree._sides import SIDES

if TYPE_CHECKING:
    from iceexplore.doctor import RepairPlan, Step

__all__ = ["plan_sent", "python_of", "sides_of", "sql_of"]

#: Maximum number of findings to list among those that the plan does not mend.
_MAX_LEFT = 50
_SAME = "The trees are the same: the repair changes the metadata file, or files beside it."


def plan_sent(plan: RepairPlan, state: TableState, *, level: str, snapshots: str) -> dict[str, Any]:
    """Return a plan's ``headline``, ``blocks``, ``python`` and ``sql``; see `DoctorPanel`.

    Parameters
    ----------
    level, snapshots
        The options of the check that made the report; the Python code repeats them.
    """
    from iceexplore.doctor import plan_heading

    blocks = [block for number, step in enumerate(plan.steps, 1) for block in _step(number, step)]
    if plan.unrepaired:
        left: list[list[Part]] = [
            [text_of(u.finding.text), " ", ["badge", u.finding.code], " ", text_of(u.reason)]
            for u in plan.unrepaired[:_MAX_LEFT]
        ]
        if len(plan.unrepaired) > _MAX_LEFT:
            left.append([f"and {len(plan.unrepaired) - _MAX_LEFT:,} more"])
        blocks += [["h", [f"Not mended: {amount(len(plan.unrepaired), 'finding')}"]], ["list", left]]
    return {
        "headline": text_of(plan_heading(plan)),
        "blocks": blocks,
        "python": json_safe(python_of(plan, state, level=level, snapshots=snapshots)),
        "sql": json_safe(sql_of(plan)),
    }


def _step(number: int, step: Step) -> list[Block]:
    from iceexplore.doctor import step_effect, step_instead, step_needed

    codes: list[Part] = [part for code in step.codes for part in (" ", ["badge", code])]
    out: list[Block] = [["h", [f"{number}. {step.title}", *codes]], ["p", [text_of(step.text)]]]
    if needed := step_needed(step):
        out.append(["advice", [text_of(needed)]])
    out.append(["advice", [f"{amount(step.places, 'place')}; {step_effect(step)}"]])
    out += [["code", text_of(line)] for line in (*step.sql, *step.python)]
    if instead := step_instead(step):
        sentence, call = instead
        out += [["p", [sentence]], ["code", text_of(call)]]
    return out


def python_of(plan: RepairPlan, state: TableState, *, level: str, snapshots: str) -> str:
    """Return Python code that makes the same plan and saves the repaired table, with the steps' calls as comments."""
    out = [
        "import iceexplore as ix",
        "",
        f"t = ix.open({state.metadata_location!r})",
        f"plan = t.check({level!r}, snapshots={snapshots!r}).repair()",
    ]
    for number, step in enumerate(plan.steps, 1):
        out.append(f"# {number}. {step.title}")
        out += [f"#    {_one_line(call)}" for call in step.python]
    return "\n".join([*out, "plan.table.count()  # the repaired table, simulated", 'plan.save("fixed")', ""])


def sql_of(plan: RepairPlan) -> str:
    """Return the SQL statements of all steps; empty if no step has any."""
    out = []
    for number, step in enumerate(plan.steps, 1):
        if step.sql:
            out += [f"-- {number}. {step.title}", *(f"{statement};" for statement in step.sql)]
    return "\n".join([*out, ""]) if out else ""


def sides_of(plan: RepairPlan, before: TableState) -> tuple[dict[str, SideTree], dict[str, Any], str]:
    """Return the trees before and after a repair, the nodes that each shows at first, and a sentence about the trees.

    Differences are marked only if both tables can be read; a damaged table may lack manifests.
    """
    after = plan.table.state if hasattr(plan.table, "state") else plan.table
    try:
        change = diff(before, after)
        kept = pc.all(pc.equal(change.manifests_arrow["change"], "carried over"), min_count=0).as_py()
        note = _SAME if kept and not len(change.files_arrow) else ""
    except IceexploreError as error:
        change, note = None, text_of(f"The trees cannot be compared: {error}")
    trees = {
        "before": SideTree(before, after, change, "before"),
        "after": SideTree(after, before, change, "after"),
    }
    return trees, {side: trees[side].first() for side in SIDES}, note


def _one_line(text: str) -> str:
    """Return a call on one line, so that no text from a table can end the comment."""
    return " ".join(text_of(text).splitlines())
