"""Forms and calls of registered commit operations (`iceexplore.commits.OPERATIONS`).

Kinds, defaults, choices and limits come from the registry; callers give labels, and help texts that only a form needs.
`iceexplore.commits` is imported inside functions, because importing it is slow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from iceexplore.errors import OptionError
from iceexplore.graph import TableState
from iceexplore.widgets.commit_lab._form import Call, Calls, Field, Kind, Operation, Values, branch_field

if TYPE_CHECKING:
    from iceexplore.commits import CommitOperation

__all__ = ["call", "field_of", "form", "plain_form"]

#: The form field for each kind of parameter; parameters of other kinds cannot be entered in a form.
_KINDS: dict[str, Kind] = {
    "choice": "choice",
    "filter": "text",
    "flag": "flag",
    "int": "int",
    "mapping": "json",
    "number": "number",
    "text": "text",
    "texts": "json",
    "time": "text",
}


def field_of(operation: str, parameter: str, label: str, help: str | None = None, **more: Any) -> Field:  # noqa: A002
    """Return a form's field for a parameter of a simulation's method.

    Parameters
    ----------
    help
        The field's help text; by default the parameter's help in the registry.
    more
        Further attributes of `Field`, which replace those from the registry.
    """
    from iceexplore.commits import operation as registered

    found = registered(operation).parameter(parameter)
    kind = _KINDS[found.kind]
    default = found.default
    if found.required or default in (None, ()):
        default = "" if kind in ("text", "json") else None
    choices = tuple((value, value) for value in found.choices)
    plain = Field(parameter, label, kind, default, found.help if help is None else help, choices, found.least)
    return replace(plain, **more)


def call(operation: str, /, **arguments: Any) -> Call:
    """Return a call of a simulation's method as one would write it: without arguments that are empty or the default."""
    from iceexplore.commits import operation as registered

    found = registered(operation)
    found.check(arguments, "simulation")
    parameters = found.parameters("simulation")
    defaults = {p.name: p.default for p in parameters}
    given = {name: value for name, value in arguments.items() if value not in (None, "", defaults[name])}
    by_position = []
    for p in parameters:
        if p.passed != "position" or p.name not in given:
            break
        by_position.append(given.pop(p.name))
    return Call(operation, tuple(by_position), given)


def form(
    name: str,
    help: str,  # noqa: A002 (the attribute's name)
    fields: Callable[[TableState], tuple[Field, ...] | None],
    calls: Callable[[TableState, Values], Calls],
    *,
    title: str | None = None,
) -> Operation:
    """Return a form; its title is by default that of the registered operation with the same name."""
    from iceexplore.commits import operation as registered

    return Operation(name, registered(name).title if title is None else title, help, fields, calls)


def plain_form(operation: CommitOperation) -> Operation | None:
    """Return a form that asks for all parameters that a form can have; None if a required one is not among them."""
    parameters = [p for p in operation.parameters("simulation") if p.kind != "branch"]
    asked = [p for p in parameters if p.kind in _KINDS]
    if any(p.required and p not in asked for p in parameters):
        return None
    branch = any(p.kind == "branch" for p in operation.parameters("simulation"))

    def fields(state: TableState) -> tuple[Field, ...]:
        own = (field_of(operation.name, p.name, p.name.replace("_", " ").capitalize()) for p in asked)
        return (*own, *(branch_field(state) if branch else ()))

    def calls(state: TableState, values: Values) -> Calls:
        for p in asked:
            if p.required and values[p.name] in (None, ""):
                raise OptionError(f"{p.name}: give a value. {p.help}")
        return (call(operation.name, **values),)

    return form(operation.name, operation.help, fields, calls)
