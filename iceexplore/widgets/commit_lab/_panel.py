"""The commit lab: try operations on a simulation of the table, with trees before and after, rules, costs and code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import traitlets

from iceexplore.errors import IceexploreError, OptionError
from iceexplore.graph import json_safe
from iceexplore.render import escape
from iceexplore.widgets.commit_lab._file_operations import OPERATIONS
from iceexplore.widgets.commit_lab._messages import form_of, line_of, refusal_of
from iceexplore.widgets.commit_lab._session import Line, RefusedError, Session, Simulation, Step
from iceexplore.widgets.commit_lab._step_panel import StepPanel
from iceexplore.widgets.core._blocks import Block
from iceexplore.widgets.core._bundle import sent_script
from iceexplore.widgets.core._panel import Panel, PanelHost, SyncedTrait, shown
from iceexplore.widgets.core._table_widget import TableWidget
from iceexplore.widgets.grid._panel import GridPanel

__all__ = ["CommitLab", "CommitPanel"]

#: The seed of the simulations, which makes them reproducible including all ids.
_SEED = 1
_NEEDS_TABLE = "The commit lab needs a table instead of a table's state: ix.widgets.CommitLab(ix.open(...))."


class CommitPanel(Panel):
    """A panel to try commits. The table is never written: each step runs on a copy of a simulation.

    Attributes
    ----------
    commit_form
        The available choices: ``choose`` (the fields ``operation`` and ``rival``), ``layout`` (fields),
        ``operations`` (name, title, help, fields); or ``needs``, the reason why there are none. See
        `iceexplore.widgets.commit_lab._form.Field`.
    commit_draft
        Choices in the browser that are not applied yet: ``operation``, ``rival``, ``layout``, and, under the name of
        each operation, the values of its fields. Also ``tab``, the tab shown, and ``before`` and ``after``, the nodes
        selected in the two trees.
    commit_asked
        A request of the browser: ``n`` (incremented) and ``do``: ``show``; ``apply`` with ``operation``, ``values``,
        ``layout`` and ``rival``; ``undo``; ``redo``; ``go`` with ``line`` and ``at``; ``fork`` with ``name``; ``save``
        with ``path``. ``earlier`` are the requests before it, which the notebook may have merged into this one.
    commit_line
        ``lines`` (their names), ``ends`` (the number of steps done in each), ``current`` (the index of the current
        line), ``steps`` of that line (id, title), ``at`` (how many of them are done), and ``code``: the steps done, as
        Python.
    commit_refused
        Why the last request was refused: ``text``, ``rule``, and ``blocks`` for display, with the rule's text and
        source; for a conflict also ``figure`` (SVG, the same as text, and the width in pixels). Empty if it was not
        refused.
    commit_saved
        ``path``, where the table was saved, and ``code``, which opens it; or ``error``, why it was not saved. Also
        ``blocks``, the same for display.
    """

    later = ("iceexplore.commits", "pyarrow.parquet", "pyroaring")

    commit_form = SyncedTrait(traitlets.Dict())
    commit_draft = SyncedTrait(traitlets.Dict())
    commit_asked = SyncedTrait(traitlets.Dict())
    commit_line = SyncedTrait(traitlets.Dict())
    commit_refused = SyncedTrait(traitlets.Dict())
    commit_saved = SyncedTrait(traitlets.Dict())

    def __init__(self, host: PanelHost) -> None:
        super().__init__(host)
        self._step = host.panel(StepPanel)
        self._session = Session(host.table, _SEED) if hasattr(host.table, "simulate") else None
        self._given: dict[str, Simulation] = {}

    def first(self, selection: Mapping[str, str]) -> dict[str, Any]:
        """Return the form and the empty line of steps."""
        if self._session is None:
            return {"commit_form": {"needs": _NEEDS_TABLE}}
        if self.host.tab not in (None, "commit"):  # built with the tab, as importing `iceexplore.commits` is slow
            return {}
        return {"commit_form": form_of(self._session), "commit_line": line_of(self._session)}

    def begin(self) -> None:
        """Answer requests."""
        self.host.observe_requests(self._on_asked, "commit_asked")

    # For the notebook -------------------------------------------------------------------------------------------------

    @property
    def simulation(self) -> Simulation:
        """A copy of the simulation at the step shown; see `CommitLab.simulation`."""
        session = self._sure()
        step = session.step
        key = f"start of {session.current}" if step is None else step.id
        if key not in self._given:
            start = session.line.base if step is None else step.after
            self._given[key] = session.simulated(session.line.start) if start is None else start.copy()
        return self._given[key]

    def apply(
        self, operation: str, /, *, layout: Mapping[str, Any] | None = None, rival: str = "", **values: Any
    ) -> None:
        """Run an operation synchronously; see `CommitLab.apply`."""
        session = self._sure()
        chosen = dict(self.commit_draft.get("layout") or {}) if layout is None else dict(layout)
        chosen = {name: str(v) if name == "format_version" and v is not None else v for name, v in chosen.items()}
        try:
            session.take(session.job(operation, values, chosen, rival)())
        except RefusedError as refused:
            raise refused.error from None
        self.commit_draft = {**self.commit_draft, "layout": chosen}
        self._show_step()

    def undo(self) -> None:
        """Undo the last step; raise OptionError at the start."""
        self._sure().undo()
        self._show_step()

    def redo(self) -> None:
        """Redo the step that was undone; raise OptionError if there is none."""
        self._sure().redo()
        self._show_step()

    def fork(self, name: str = "") -> None:
        """Start another line of steps with a copy of those done so far; raise OptionError if its name is taken."""
        self._sure().fork(name)
        self._show_step()

    def close(self) -> None:
        """Release the simulations; those from `simulation` stay usable."""
        self._session = None
        self._given = {}

    # Requests of the browser ------------------------------------------------------------------------------------------

    def _sure(self) -> Session:
        if self._session is None:
            raise OptionError(_NEEDS_TABLE)
        return self._session

    @shown
    def _on_asked(self, asked: Mapping[str, Any]) -> None:
        if not asked:
            return
        self.commit_refused = {}
        try:
            self._ask(asked)
        except IceexploreError as error:
            self._refuse(RefusedError(error))

    def _ask(self, asked: Mapping[str, Any]) -> None:
        session = self._sure()
        match asked.get("do"):
            case "show":
                if not self._step.commit_after_roots:
                    self._show_step()
            case "apply":
                self._apply(asked)
            case "undo":
                self.undo()
            case "redo":
                self.redo()
            case "go":
                session.go(_whole(asked, "line"), _whole(asked, "at"))
                self._show_step()
            case "fork":
                self.fork(str(asked.get("name", "")))
            case "save":
                self._save(str(asked.get("path", "")))
            case other:
                raise OptionError(f"do={str(other)[:40]!r}: choose show, apply, undo, redo, go, fork or save")

    def _apply(self, asked: Mapping[str, Any]) -> None:
        values, layout = asked.get("values", {}), asked.get("layout", {})
        if not isinstance(values, Mapping) or not isinstance(layout, Mapping):
            raise OptionError("values and layout must be dictionaries by field")
        name = str(asked.get("operation", ""))
        job = self._sure().job(name, values, layout, str(asked.get("rival", "")))

        def run() -> tuple[Step, Line] | RefusedError:
            try:
                return job()
            except RefusedError as refused:
                return refused

        def show(made: tuple[Step, Line] | RefusedError) -> None:
            if isinstance(made, RefusedError):
                self._refuse(made, OPERATIONS[name].title, str(asked.get("rival", "")))
                return
            self._sure().take(made)
            self._show_step()

        self.host.run("commit", OPERATIONS[name].title, run, show)

    def _save(self, path: str) -> None:
        """Save the table at the step shown. Errors about the folder are shown beside its field, not with the form."""
        if not path.strip():
            self.commit_saved = _not_saved("The folder is missing. Give one that does not exist yet.")
            self.host.answer()
            return
        simulation = self.simulation
        self.commit_saved = {}

        def save() -> dict[str, Any]:
            try:
                saved = simulation.save(path.strip())
            except (IceexploreError, ValueError) as error:  # ValueError: a name with a NUL character
                return _not_saved(str(json_safe(str(error)[:1000])))
            code = json_safe(f"ix.open({str(saved.path)!r})")
            blocks: list[Block] = [["p", [json_safe(repr(saved))]], ["code", code]]
            return {"path": str(saved.path), "code": code, "blocks": blocks}

        def show(saved: dict[str, Any]) -> None:
            self.commit_saved = saved

        self.host.run("commit:save", "Saving", save, show)

    def _show_step(self) -> None:
        """Show the last step done."""
        session = self._sure()
        self.commit_refused, self.commit_saved = {}, {}
        self.commit_line, self.commit_form = line_of(session), form_of(session)
        self._step.show(session)

    def _refuse(self, refused: RefusedError, title: str = "", rival: str = "") -> None:
        self.commit_refused = refusal_of(refused, title, rival)
        self.host.answer()

    def no_kernel_html(self) -> str:
        """Return the steps as Python code in HTML."""
        if self._session is None or not self._session.line.at:
            return ""
        return f"<p>Steps of the commit lab:</p><pre>{escape.html(self._session.code())}</pre>"


def _not_saved(error: str) -> dict[str, Any]:
    return {"error": error, "blocks": [["problem is-error", [["strong", "Not saved"], error]]]}


def _whole(asked: Mapping[str, Any], name: str) -> int:
    value = asked.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise OptionError(f"{name}={str(value)[:40]!r}: give an integer")
    return value


class CommitLab(TableWidget):
    """A widget to try commits to a table: choose an operation and a layout, apply it, see the result.

    The table is never written. ``w.simulation`` is the simulation at the step shown.
    """

    panels = (GridPanel, StepPanel, CommitPanel)

    view_script = sent_script("commit.commitView")

    @property
    def simulation(self) -> Simulation:
        """A copy of the simulation at the step shown; commits to it do not affect the widget.

        Raises
        ------
        OptionError
            The widget was created from a table's state instead of a table.
        """
        return self._panel(CommitPanel).simulation

    def apply(
        self, operation: str, /, *, layout: Mapping[str, Any] | None = None, rival: str = "", **values: Any
    ) -> None:
        """Run an operation synchronously.

        Parameters
        ----------
        operation
            ``append``, ``row_delta``, ``overwrite``, ``delete``, ``compact``, ``update_columns``,
            ``rewrite_manifests``, ``rewrite_position_deletes``, ``expire_snapshots``, ``evolve_schema``,
            ``evolve_spec``, ``set_properties``, ``ref``, ``rollback``, ``upgrade`` or ``evolve_virtual_columns``.
        layout
            ``format_version`` (text) and options of `iceexplore.commits.LayoutOptions`; unchanged by default. The
            first step of a line creates the simulation with them; later steps change its layout to them.
        rival
            The commit that another writer makes first, from the same state: ``append``, ``rows``, ``delete``,
            ``compact`` or ``schema``; empty for no other writer.
        values
            Fields of the operation's form; missing ones have their defaults.

        Raises
        ------
        RuleError, CommitConflictError, OptionError
            The operation was refused, as the method of `Simulation` would refuse it; nothing has changed.
        """
        self._panel(CommitPanel).apply(operation, layout=layout, rival=rival, **values)

    def undo(self) -> None:
        """Undo the last step; raise OptionError at the start."""
        self._panel(CommitPanel).undo()

    def redo(self) -> None:
        """Redo the step that was undone; raise OptionError if there is none."""
        self._panel(CommitPanel).redo()

    def fork(self, name: str = "") -> None:
        """Start another line of steps with a copy of those done so far; raise OptionError if its name is taken."""
        self._panel(CommitPanel).fork(name)
