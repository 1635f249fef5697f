"""The steps of the commit lab, each with the table before and after it, in lines of alternative histories.

A step runs on a copy of the simulation before it, so that undoing returns to the original, and a forked line shares the
steps before the fork. This module does not access traits: steps run in the worker thread, and are added on the thread
that owns the widget.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from iceexplore.errors import CommitConflictError, IceexploreError, OptionError
from iceexplore.widgets.commit_lab._file_operations import calls_of, operation, rival_calls
from iceexplore.widgets.commit_lab._form import Call
from iceexplore.widgets.commit_lab._layout_form import layout_calls, pending_options, start_of
from iceexplore.widgets.core._panel import TableLike

__all__ = ["Line", "RefusedError", "Session", "Step"]

#: An `iceexplore.table.Simulation`, which this package cannot import because it is in a higher layer.
Simulation = Any


class RefusedError(Exception):
    """An error for a refused operation; nothing has changed.

    Attributes
    ----------
    error
        The reason.
    orphans
        The number of orphan files that the operation's failed attempts have written.
    rival
        Whether the other writer's commit was refused.
    """

    def __init__(self, error: Exception, orphans: int = 0, *, rival: bool = False) -> None:
        self.error, self.orphans, self.rival = error, orphans, rival
        super().__init__(str(error))


@dataclass(frozen=True, eq=False)
class Step:
    """A completed operation.

    Attributes
    ----------
    id
        A unique id.
    lines
        The calls, each with the variable of its writer in the code: ``s``, or ``other`` for the other writer.
    before, after
        The simulation before and after, copies without further commits.
    twins
        The same operation in other layouts, by layout (see `Session.twin`).
    """

    id: str
    operation: str
    values: Mapping[str, Any]
    layout: Mapping[str, Any]
    rival: str
    lines: tuple[tuple[str, Call], ...]
    before: Simulation
    after: Simulation
    twins: dict[str, Twin] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The title of the operation."""
        return operation(self.operation).title


@dataclass(frozen=True, eq=False)
class Twin:
    """A step's operation on the same history in another layout; ``refused`` is the reason if it failed there."""

    before: Simulation
    after: Simulation
    refused: str = ""


@dataclass(eq=False)
class Line:
    """A sequence of steps, of which the first ``at`` are done and the others undone."""

    name: str
    start: tuple[int | None, dict[str, Any]]
    base: Simulation | None = None
    steps: list[Step] = field(default_factory=list)
    at: int = 0
    twins: dict[str, Simulation] = field(default_factory=dict)


class Session:
    """The lines of steps of one widget.

    Parameters
    ----------
    table
        The table, with ``simulate``; it is never written.
    seed
        The seed of every simulation, which makes them reproducible including all ids.
    """

    def __init__(self, table: TableLike, seed: int) -> None:
        # A simulation or a lab may change later, so its present table is used.
        self.table: TableLike = getattr(table, "table", table)
        self.seed = seed
        #: The options of an explored simulation whose first commit upgrades the table: lines begin with them.
        self.pending = pending_options(table)
        start = (None, {}) if self.pending is None else start_of(table.state, {}, self.pending)
        self.lines = [Line("main", start)]
        self.current = 0
        self._ids = itertools.count(1)

    @property
    def line(self) -> Line:
        """The current line."""
        return self.lines[self.current]

    @property
    def step(self) -> Step | None:
        """The last step done; None at the start of the line."""
        line = self.line
        return line.steps[line.at - 1] if line.at else None

    # Steps ------------------------------------------------------------------------------------------------------------

    def job(
        self, name: str, values: Mapping[str, Any], layout: Mapping[str, Any], rival: str
    ) -> Callable[[], tuple[Step, Line]]:
        """Return a function that runs the next step in the worker thread; pass its result to `take`.

        Raises
        ------
        OptionError
            There is no such operation.
        """
        operation(name)
        line, at, step = self.line, self.line.at, self.step

        def run() -> tuple[Step, Line]:
            try:
                begun = Line(line.name, line.start, line.base, line.steps[:at], at, line.twins)
                before = self._begin(begun, layout) if step is None else step.after
                calls = () if step is None else layout_calls(self.table.state, before.options, layout, self.pending)
                after, lines = _performed(before, calls, name, values, rival)
            except IceexploreError as error:
                raise error if isinstance(error, RefusedError) else RefusedError(error) from error
            made = Step(str(next(self._ids)), name, dict(values), dict(layout), rival, lines, before, after)
            begun.steps.append(made)
            begun.at += 1
            return made, begun

        return run

    def _begin(self, line: Line, layout: Mapping[str, Any]) -> Simulation:
        """Return the simulation at the start of a line of steps; a new one if the layout has changed."""
        start = start_of(self.table.state, layout, self.pending)
        if line.base is None or start != line.start:
            line.start, line.twins = start, {}
            line.base = self.simulated(start)
        return line.base

    def simulated(self, start: tuple[int | None, Mapping[str, Any]]) -> Simulation:
        """Return a new simulation of the table, in which nothing has been committed yet."""
        version, options = start
        return self.table.simulate(version, seed=self.seed, **options)

    def take(self, made: tuple[Step, Line]) -> None:
        """Add the step from `job` to the current line; undone steps are dropped."""
        self.lines[self.current] = made[1]

    def undo(self) -> None:
        """Undo the last step; raise OptionError at the start."""
        self.go(self.current, self.line.at - 1)

    def redo(self) -> None:
        """Redo the step that was undone; raise OptionError if there is none."""
        self.go(self.current, self.line.at + 1)

    def go(self, line: int, at: int) -> None:
        """Go to a step of a line.

        Raises
        ------
        OptionError
            There is no such line or step.
        """
        if not 0 <= line < len(self.lines):
            raise OptionError(f"there is no line {line}; the lines are 0 to {len(self.lines) - 1}")
        steps = len(self.lines[line].steps)
        if not 0 <= at <= steps:
            raise OptionError(f"nothing to {'undo' if at < 0 else 'redo'}: the line has {steps} steps")
        self.current, self.lines[line].at = line, at

    def fork(self, name: str = "") -> None:
        """Start another line with the steps done in this one.

        Raises
        ------
        OptionError
            The name is taken, or too long.
        """
        names = [line.name for line in self.lines]
        chosen = name.strip() or next(n for n in (f"fork {i}" for i in itertools.count(1)) if n not in names)
        if chosen in names or len(chosen) > 60:
            raise OptionError(f"{chosen[:80]!r}: give an unused name of at most 60 characters")
        line = self.line
        self.lines.append(Line(chosen, line.start, line.base, line.steps[: line.at], line.at, line.twins))
        self.current = len(self.lines) - 1

    # The same operations in another layout ----------------------------------------------------------------------------

    def twin(self, line: Line, step: Step) -> tuple[str, Twin] | None:
        """Return the other layout's name, and the step's operation there after the same history.

        If the step's layout has a root manifest, the other layout is version 3 or, if the table is version 4, version 4
        with a manifest list as Java writes it; otherwise, the other layout has a root manifest. Return None if the
        table itself has a root manifest, as it cannot go back to a list. This is called in the worker thread.
        """
        root = self.table.state.root()
        if root is not None and root.dialect.has_root_manifest:
            return None
        if not step.after.options.has_root_manifest:
            kind, start = "V4", (4, {"dialect": "v4-proposal"})
        elif not self.table.state.metadata.may_have_root_manifests:
            kind, start = "v3", (3, {})
        else:
            kind, start = "V4, list", (4, {"dialect": "v4-java"})
        at = line.twins.get(kind)
        if at is None:
            at = line.twins[kind] = self.simulated(start)
        for each in line.steps[: line.steps.index(step) + 1]:
            if kind not in each.twins:
                each.twins[kind] = _twin(at, each)
            at = each.twins[kind].after
        return kind, step.twins[kind]

    # As Python --------------------------------------------------------------------------------------------------------

    def code(self) -> str:
        """Return the steps done in the current line as Python code. ``t`` is the table."""
        version, options = self.line.start
        given = ({"format_version": version} if version else {}) | {"seed": self.seed} | options
        start = Call("simulate", (), given).code("t")
        where = repr(self.table.state.metadata_location)
        out = ["import iceexplore as ix", "", f"# t is the table, for example ix.open({where})", f"s = {start}"]
        for step in self.line.steps[: self.line.at]:
            for writer, call in step.lines:
                out.append("other = s.fork()" if call.method == "fork" else call.code(writer))
        return "\n".join(out) + "\n"


def _performed(
    before: Simulation, first: tuple[Call, ...], name: str, values: Mapping[str, Any], rival: str
) -> tuple[Simulation, tuple[tuple[str, Call], ...]]:
    """Run an operation on a copy of a simulation, and return the copy and the calls.

    Raises
    ------
    RefusedError, IceexploreError
        The operation was refused; for a conflict, the RefusedError has the number of orphan files.
    """
    after = before.copy()
    lines: list[tuple[str, Call]] = []
    for call in first:
        call.run(after)
        lines.append(("s", call))
    calls = calls_of(name, after.state, values)
    if rival:
        other, fork = after.fork(), Call("fork")
        lines.append(("s", fork))
        for call in rival_calls(rival, after.state, calls):
            try:
                call.run(other)
            except IceexploreError as error:  # the other writer's call failed, not the user's
                raise RefusedError(error, rival=True) from error
            lines.append(("other", call))
    for call in calls:
        written = len(after.writes)
        try:
            call.run(after)
        except CommitConflictError as error:
            raise RefusedError(error, len(after.writes) - written) from error
        lines.append(("s", call))
    return after, tuple(lines)


def _twin(before: Simulation, step: Step) -> Twin:
    if step.operation == "upgrade":
        return Twin(before, before, "the upgrade is omitted, so that the two layouts can be compared")
    try:
        return Twin(before, _performed(before, (), step.operation, step.values, step.rival)[0])
    except (IceexploreError, RefusedError) as error:
        return Twin(before, before, str(error))
