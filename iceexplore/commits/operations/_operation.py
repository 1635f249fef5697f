"""Define the class of commit operations, each with a name, parameters, and a function that makes the change."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from iceexplore.commits.model._change import Change
from iceexplore.commits.transaction._committer import DocumentChange, MakeChange
from iceexplore.errors import OptionError, nearest
from iceexplore.render import Card, CardTable, card_html, card_text

__all__ = ["CommitOperation", "NO_DEFAULT", "Parameter", "ParameterKind", "TableKind"]

#: The kinds of tables that accept commits.
TableKind = Literal["simulation", "lab"]

#: The kind of values that a parameter accepts. ``files``: data files to add, as for `new_files`. ``locations``: the
#: locations of files in the table. ``rows``: rows of data, such as a data frame. ``filter``: a string or an
#: expression. ``snapshot``: a Snapshot, an id, a ref or a Table. ``session``: a Spark session.
ParameterKind = Literal[
    "branch", "choice", "files", "filter", "flag", "int", "locations", "mapping", "number", "options", "rows",
    "session", "snapshot", "snapshots", "text", "texts", "time",
]  # fmt: skip

#: The default of a required parameter.
NO_DEFAULT: Any = inspect.Parameter.empty


@dataclass(frozen=True)
class Parameter:
    """A parameter of a commit operation, and so of the operation's method in `Simulation` and `Lab`.

    Attributes
    ----------
    kind
        The kind of values that the parameter accepts, such as ``int``, ``files`` or ``choice`` (`ParameterKind`).
    help
        A description in one sentence.
    default
        The default value; `NO_DEFAULT` if the parameter is required.
    choices
        The accepted values if ``kind`` is ``choice``. None is accepted, too, if it is the default or if ``optional`` is
        True.
    optional
        Whether None is accepted in addition to ``choices``, although it is not the default.
    least
        The lowest number that is accepted; None if there is no minimum or the values are not numbers.
    since
        The first format version that allows the parameter.
    passed
        How a call passes the value: ``position`` (by position or by name), ``name`` (only by name), or ``option`` (by
        name, too, but the method has no argument for it and collects it in ``**how``).
    many
        Whether the parameter is the method's ``*name`` or ``**name``, which collects any number of arguments. Examples
        are ``*fields`` and ``**layout``.
    """

    name: str
    kind: ParameterKind
    help: str
    default: Any = NO_DEFAULT
    choices: tuple[str, ...] = ()
    optional: bool = False
    least: int | None = None
    since: int = 1
    passed: Literal["position", "name", "option"] = "position"
    many: bool = False

    @property
    def required(self) -> bool:
        """Whether a call must give a value."""
        return self.default is NO_DEFAULT and not self.many

    def __str__(self) -> str:
        if self.many:
            return ("**" if self.kind == "options" else "*") + self.name
        return self.name if self.required else f"{self.name}={self.default!r}"


@dataclass(frozen=True, repr=False)
class CommitOperation:
    """An operation that commits: a method of `Simulation`, `Lab` or both, and a form in the commit panel.

    Attributes
    ----------
    name
        The name of the method. It never changes.
    title
        A short title, as shown in menus.
    help
        The operation's effect, in one sentence.
    changes
        ``files`` (a new snapshot), ``metadata`` (only the metadata file), or ``refs`` (branches, tags, and the
        current snapshot).
    simulation, lab
        The parameters of the method in `Simulation`, and those of the method in `Lab`; None if the class does not have
        the method. They may differ: for example, ``compact`` has the parameter ``spark`` only in `Lab`.
    since
        The first format version that allows the operation.
    nothing
        Why the operation may find nothing to commit, such as "the table has no manifests"; its method then returns
        None. Empty if the operation always commits.
    adds_only
        Whether the operation only adds files, so that it does not depend on the files in the table.
    change
        The function that returns the change of files. It is called as ``change(state, writer, ...)``, with the
        arguments of the simulation's method. The functions for a lab's operations on rows are in
        `iceexplore.labs.ROW_OPERATIONS`.
    update
        The function that returns the change of the metadata document. It is called with the arguments of the method;
        an argument that is a snapshot is replaced by the snapshot's id.
    pins
        Keys of the metadata document, such as ``current-schema-id``, whose values must not change while the operation
        commits. If a concurrent commit changes one of them, this commit fails (`Committer.commit`).
    """

    name: str
    title: str
    help: str
    changes: Literal["files", "metadata", "refs"]
    simulation: tuple[Parameter, ...] | None = None
    lab: tuple[Parameter, ...] | None = None
    since: int = 1
    nothing: str = ""
    adds_only: bool = False
    change: Callable[..., Change] | None = None
    update: Callable[..., DocumentChange] | None = None
    pins: tuple[str, ...] = ()

    def parameters(self, of: TableKind) -> tuple[Parameter, ...]:
        """Return the parameters of the method in a simulation or in a lab.

        Raises
        ------
        OptionError
            This kind of table does not have the operation.
        """
        found = self.simulation if of == "simulation" else self.lab
        if found is None:
            raise OptionError(f"a {of} has no operation {self.name!r}")
        return found

    def parameter(self, name: str, of: TableKind = "simulation") -> Parameter:
        """Return a parameter by name.

        Raises
        ------
        OptionError
            There is no such parameter; the message lists the nearest names.
        """
        self.check([name], of)
        return next(p for p in self.parameters(of) if p.name == name)

    def make(self, *given: Any, **arguments: Any) -> MakeChange:
        """Return a function that `Committer.commit` calls to make the operation's change.

        The committer passes a `CommitWriter` to the function. The function calls `change` with the table's state
        (``writer.base``), the writer, and the arguments that were passed to `make`.
        """
        change = self.change
        assert change is not None, f"{self.name} changes no files"
        return lambda writer: change(writer.base, writer, *given, **arguments)

    def check(self, names: Iterable[str], of: TableKind) -> None:
        """Refuse names of arguments that the operation does not accept.

        Parameters
        ----------
        names
            The names of the arguments in a call.
        of
            The kind of table whose method is called.

        Raises
        ------
        OptionError
            The operation has no parameter with one of the names (the message lists the nearest names), or this kind of
            table does not have the operation.
        """
        known = [p.name for p in self.parameters(of)]
        for name in names:
            if name not in known:
                raise OptionError(f"{self.name} has no argument {name!r}; {nearest(name, known)}")

    def signature(self, of: TableKind) -> str:
        """Return the call with its parameters, as in Python: ``delete_where(where=None, *, partition=None)``."""
        taken = self.parameters(of)
        shown = [str(p) for p in taken if p.passed == "position"]
        named = [str(p) for p in taken if p.passed != "position"]
        mark = ["*"] if named and not any(text.startswith("*") for text in (*shown, named[0])) else []
        return f"{self.name}({', '.join(shown + mark + named)})"

    def _card(self) -> Card:
        tables = []
        for of, parameters in (("simulation", self.simulation), ("lab", self.lab)):
            rows = tuple(
                (p.name, p.kind, "" if p.default is NO_DEFAULT else repr(p.default), p.help) for p in parameters or ()
            )
            if rows:
                tables.append(CardTable(f"In a {of}", ("parameter", "kind", "default", "meaning"), rows,
                                        code=frozenset((0, 2))))  # fmt: skip
        facts = (
            ("changes", self.changes),
            ("format versions", "all" if self.since == 1 else f"{self.since} and later"),
            ("nothing to do", self.nothing and f"returns None if {self.nothing}"),
        )
        return Card(self.name, subtitle=self.help, facts=tuple(f for f in facts if f[1]), tables=tuple(tables))

    def __repr__(self) -> str:
        return card_text(self._card())

    def _repr_html_(self) -> str:
        return card_html(self._card())
