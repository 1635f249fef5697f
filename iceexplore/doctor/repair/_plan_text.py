"""A repair plan as text and as HTML."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Protocol

from iceexplore.doctor.model._finding import snapshots_text
from iceexplore.doctor.repair._step import Step, Unrepaired
from iceexplore.errors import visible
from iceexplore.graph import amount
from iceexplore.render import escape

__all__ = [
    "PlanLike",
    "plan_heading",
    "plan_html",
    "plan_section",
    "plan_text",
    "step_effect",
    "step_instead",
    "step_needed",
]

_WIDTH = 100
_SHOWN = 20
#: The maximum number of ids in a call that expires snapshots; if there are more, the call refers to `Step.snapshots`.
_MAX_IDS = 10


class PlanLike(Protocol):
    """The attributes of a plan that its text and HTML need."""

    @property
    def name(self) -> str: ...
    @property
    def steps(self) -> tuple[Step, ...]: ...
    @property
    def unrepaired(self) -> tuple[Unrepaired, ...]: ...
    @property
    def rows_before(self) -> int | None: ...
    @property
    def rows_after(self) -> int | None: ...


def plan_text(plan: PlanLike) -> str:
    """Return a plan as text."""
    lines = [plan_heading(plan), ""]
    for number, step in enumerate(plan.steps, 1):
        lines += [f"{number}. {step.title}  [{', '.join(step.codes)}]"]
        lines += textwrap.wrap(step.text, _WIDTH, initial_indent="   ", subsequent_indent="   ", break_on_hyphens=False)
        lines += [f"   {line}" for line in (step_needed(step), step_effect(step)) if line]
        lines += [f"   SQL: {s}" for s in step.sql] + [f"   {p}" for p in step.python]
        lines += [f"   {line}" for line in step_instead(step) or ()]
    if plan.unrepaired:
        lines += ["", "Not mended by this plan:"]
    for one in plan.unrepaired[:_SHOWN]:
        text = f"- {one.finding.text} [{one.finding.code}] {one.reason}"
        lines += textwrap.wrap(text, _WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    if len(plan.unrepaired) > _SHOWN:
        lines += [f"- and {len(plan.unrepaired) - _SHOWN:,} more"]
    return "\n".join(map(visible, lines))


def plan_html(plan: PlanLike) -> str:
    """Return a plan as HTML with a limited width, for notebooks."""
    return f'<div style="max-width:60em">{plan_section(plan)}</div>'


def plan_section(plan: PlanLike) -> str:
    """Return a plan as HTML without inline styles, for the doctor's HTML report, which does not allow them."""
    return "".join(_html(plan))


def _html(plan: PlanLike) -> Iterator[str]:
    yield f"<p><b>{escape.html(plan_heading(plan))}</b></p>"
    if plan.steps:
        yield "<ol>"
    for step in plan.steps:
        yield f"<li><b>{escape.html(step.title)}</b> <code>{escape.html(', '.join(step.codes))}</code>"
        yield f"<br>{escape.html(step.text)}"
        yield from (f"<br><i>{escape.html(line)}</i>" for line in (step_needed(step), step_effect(step)) if line)
        yield from (f"<br><code>{escape.html(s)}</code>" for s in (*step.sql, *step.python))
        if instead := step_instead(step):
            text, call = map(escape.html, instead)
            yield f"<br>{text}<br><code>{call}</code>"
        yield "</li>"
    if plan.steps:
        yield "</ol>"
    if plan.unrepaired:
        yield "<p>Not mended by this plan:</p><ul>"
        for one in plan.unrepaired[:_SHOWN]:
            yield f"<li>{escape.html(one.finding.text)} <code>{escape.html(one.finding.code)}</code> "
            yield f"{escape.html(one.reason)}</li>"
        if len(plan.unrepaired) > _SHOWN:
            yield f"<li>and {len(plan.unrepaired) - _SHOWN:,} more</li>"
        yield "</ul>"


def plan_heading(plan: PlanLike) -> str:
    """Return, as text, the number of steps and the current snapshot's number of rows before and after the repair."""
    none = "nothing can be mended" if plan.unrepaired else "nothing to mend"
    steps = {0: none, 1: "1 step"}.get(len(plan.steps), f"{len(plan.steps):,} steps")
    before, after = (("unknown" if n is None else f"{n:,}") for n in (plan.rows_before, plan.rows_after))
    return f"Repair of {plan.name}: {steps}. Rows of the current snapshot: {before} before, {after} after."


def step_needed(step: Step) -> str:
    """Return a sentence with the snapshots that a step mends, and the number of rows in them that the fault affects.

    An example is ``Needed by snapshot 17 (main); the fault affects up to 5 rows.`` The number of rows is left
    out if it is 0 or unknown. The text is empty if the step mends no snapshot, but only the metadata file itself.
    """
    if not step.snapshots:
        return ""
    rows = f"; the fault affects up to {amount(step.rows_concerned, 'row')}" if step.rows_concerned else ""
    return f"Needed by {snapshots_text(step.snapshots, step.refs)}{rows}."


def step_instead(step: Step) -> tuple[str, str] | None:
    """Return a sentence and a call of PyIceberg that expires the affected snapshots instead of repairing them.

    Return None if the snapshots cannot be expired. PyIceberg only removes the snapshots from the metadata, so the call
    also works if files of the snapshots are lost.
    """
    if not step.expirable:
        return None
    which, them = ("this snapshot", "it") if len(step.snapshots) == 1 else ("these snapshots", "them")
    ids = list(step.snapshots) if len(step.snapshots) <= _MAX_IDS else "step.snapshots"
    return (
        f"Or expire {which} with PyIceberg, as no branch or tag points to {them}:",
        f"table.maintenance.expire_snapshots().by_ids({ids}).commit()",
    )


def step_effect(step: Step) -> str:
    """Return, as text, whether the result of a step is certain, and how many rows the table gains or loses by it."""
    if not step.effective:
        return "no effect: the findings remain"
    out = ["certain" if step.certain else "a guess: check the result"]
    for count, known, unknown in (
        (step.rows_back, "come back", "rows may come back"),
        (step.rows_lost, "are no longer listed", "rows may no longer be listed"),
    ):
        if count is None:
            out.append(unknown)
        elif count:
            out.append(f"rows that {known}: {count:,}")
    return "; ".join(out)
