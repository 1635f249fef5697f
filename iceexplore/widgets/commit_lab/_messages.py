"""JSON-safe content of the commit lab for the browser: the form, the line of steps, refusals."""

from __future__ import annotations

from typing import Any

from iceexplore.graph import json_safe
from iceexplore.widgets.commit_lab._figures import conflict_figure
from iceexplore.widgets.commit_lab._file_operations import OPERATIONS, RIVALS
from iceexplore.widgets.commit_lab._form import Field
from iceexplore.widgets.commit_lab._layout_form import layout_fields
from iceexplore.widgets.commit_lab._session import RefusedError, Session
from iceexplore.widgets.core._blocks import Block
from iceexplore.widgets.core._escape_text import signs, signs_of_lines

__all__ = ["form_of", "line_of", "refusal_of"]

_MOST_FILES = 20


def form_of(session: Session) -> dict[str, Any]:
    """Return the operations possible now: ``choose``, ``layout`` and ``operations``; see `CommitPanel`."""
    state = session.table.state if session.step is None else session.step.after.state
    offered = [(o, fields) for o in OPERATIONS.values() if (fields := o.fields(state)) is not None]
    names = tuple((o.name, o.title) for o, _ in offered)
    choose = (
        Field("operation", "Operation", "choice", names[0][0], choices=names),
        Field("rival", "Concurrent writer", "choice", "", choices=RIVALS),
    )
    return {
        "choose": [field.sent("") for field in choose],
        "layout": [field.sent("layout") for field in layout_fields(session.table.state, session.pending)],
        "operations": [
            {"name": o.name, "title": o.title, "help": o.help, "fields": [field.sent(o.name) for field in fields]}
            for o, fields in offered
        ],
    }


def line_of(session: Session) -> dict[str, Any]:
    """Return the current line and its steps; see `CommitPanel.commit_line`."""
    line = session.line
    return {
        "lines": [signs(other.name) for other in session.lines],
        "ends": [other.at for other in session.lines],
        "current": session.current,
        "steps": [{"id": step.id, "title": step.title} for step in line.steps],
        "at": line.at,
        "code": json_safe(session.code()),
    }


def refusal_of(refused: RefusedError, title: str = "", rival: str = "") -> dict[str, Any]:
    """Return why a request was refused; see `CommitPanel.commit_refused`.

    Parameters
    ----------
    title, rival
        What the refused commit and the other writer's commit were to do, for the figure of a conflict.
    """
    from iceexplore.commits import RULES

    error = refused.error
    name = getattr(error, "rule", "")
    rule = RULES.get(name)
    text = str(error).removesuffix(f" [rule {name}]")[:2000]
    if refused.rival:
        text = f"The other writer's commit failed: {text}"
    files = [f for f in getattr(error, "files", ()) if f not in text]
    advice = "Nothing was committed; the table is unchanged."
    if refused.orphans:
        files_are = "orphan file" if refused.orphans == 1 else "orphan files"
        advice = f"The commit's attempts left {refused.orphans:,} {files_are}; the table is unchanged."
    law = [f"{rule.text} ({rule.source})"] if rule else []
    shown = signs_of_lines(text)
    blocks: list[Block] = [
        ["strong", [f"Refused: {name}" if rule else "Refused"]],
        ["p", [shown]],
        *(["advice", [line]] for line in (*law, *map(signs, files[:_MOST_FILES]), advice)),
    ]
    figure = None if refused.rival else conflict_figure(error, title, dict(RIVALS).get(rival, ""))
    drawn = {} if figure is None else {"figure": list(figure)}
    return {"text": shown, "rule": name, "blocks": blocks, **drawn}
