"""Forms of the commit lab, described in Python, so that the browser draws them without knowing the operations."""

from __future__ import annotations

import json
import pprint
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError
from iceexplore.graph import TableState, json_safe
from iceexplore.manifests import ContentType, live
from iceexplore.storage import JsonValue
from iceexplore.widgets.core._escape_text import signs
from iceexplore.widgets.core._panel import TableLike

__all__ = [
    "Call",
    "Calls",
    "Field",
    "Operation",
    "Values",
    "branch_field",
    "checked_values",
    "live_data",
]

#: Checked values of a form, by field.
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Operation:
    """An operation of the commit lab.

    Attributes
    ----------
    name
        Its name in `CommitLab.apply`.
    title
        The displayed name.
    help
        What it does, and what to look for.
    fields
        A function that returns the form's fields for a table's state, or None if the operation is not possible.
    calls
        A function that returns the simulation's calls for a state and the form's values.
    """

    name: str
    title: str
    help: str
    fields: Callable[[TableState], tuple[Field, ...] | None]
    calls: Callable[[TableState, Values], Calls]


def branch_field(state: TableState) -> tuple[Field, ...]:
    """Return a field for the branch of a commit; empty if there is only one branch."""
    names = [name for name, ref in state.metadata.refs.items() if ref.type == "branch"]
    others = tuple((name, name) for name in dict.fromkeys(["main", *names]))
    return (Field("ref", "Branch", "choice", "main", choices=others),) if len(others) > 1 else ()


def live_data(state: TableState, count: int, where: str | None = None) -> list[str]:
    """Return the first ``count`` live data files; with ``where``, only those that may contain matching rows.

    Raises
    ------
    OptionError
        There is no such data file.
    """
    found: list[str] = []
    if where:
        from iceexplore.commits import select

        chosen = select(state, where)
        for batch in (chosen.whole, chosen.part):
            found += build.to_pylist(batch.entries["location"].slice(0, count - len(found)))
    else:
        root = state.root()
        for leaf in () if root is None else state.reader.leaves(root):
            data = pc.equal(leaf.entries["content_type"], pa.scalar(int(ContentType.DATA), pa.int32()))
            held = leaf.entries.filter(pc.and_(live(leaf.entries), data))
            found += build.to_pylist(held["location"].slice(0, count - len(found)))
            if len(found) >= count:
                break
    if not found:
        text = f" may contain rows that match {where}" if where else " is live: append some first"
        raise OptionError(f"no data file{text}")
    return found


Kind = Literal["int", "number", "text", "json", "choice", "flag"]
_LONGEST = 100_000
_WIDTH = 100
_LONG_HELP = 110
_MOST_CHOICES = 1000


@dataclass(frozen=True)
class Field:
    """A field of a form.

    Attributes
    ----------
    default
        The initial value; None for a number that is optional.
    choices
        The values and their labels.
    least, most
        The limits of a number.
    when
        An earlier field, and those of its values for which this field applies.
    """

    name: str
    label: str
    kind: Kind
    default: Any
    help: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    least: float | None = None
    most: float | None = None
    when: tuple[str, tuple[str, ...]] | None = None

    def sent(self, of: str) -> dict[str, Any]:
        """Return the field for the browser, JSON-safe.

        ``of`` is the form's name, ``help`` the first sentence of a long help text, ``more`` its rest, and ``input`` the
        attributes of the input element; fields with ``choices`` are drop-down lists. Of more than a thousand choices,
        the browser gets the first thousand; notebooks can use all.
        """
        help_text, more = self.help, ""
        if len(help_text) > _LONG_HELP:
            first, _, rest = help_text.partition(". ")
            help_text, more = (first + ".", rest) if rest else (help_text, "")
        choices = [[json_safe(value), signs(label)] for value, label in self.choices[:_MOST_CHOICES]]
        return {
            "of": of,
            "name": self.name,
            "label": signs(self.label),
            "wide": not of or self.kind in ("text", "json"),
            "default": json_safe(self.default),
            "help": signs(help_text),
            "more": signs(more),
            "choices": choices if self.kind == "choice" else None,
            "input": self._input(),
            "when": None if self.when is None else [self.when[0], list(self.when[1])],
        }

    def _input(self) -> dict[str, Any]:
        plain = {"class": "input", "spellcheck": "false", "autocomplete": "off"}
        match self.kind:
            case "int" | "number":
                step = 1 if self.kind == "int" else "any"
                limits = {"min": self.least, "max": self.most, "step": step, "placeholder": json_safe(self.default)}
                return {"type": "number", **plain, **limits}
            case "flag":
                return {"type": "checkbox", "class": "check"}
            case "choice":
                return {}
            case _:
                return {"type": "text", **plain}

    def checked(self, value: JsonValue) -> JsonValue:
        """Return a validated value for an operation; JSON text is parsed.

        Raises
        ------
        OptionError
            The value is invalid; the message names what is accepted.
        """
        if value is None or (value == "" and self.kind in ("int", "number")):
            return self.default
        match self.kind:
            case "int" | "number":
                return self._number(value)
            case "flag":
                if not isinstance(value, bool):
                    raise OptionError(f"{self.name}={_short(value)}: give true or false")
            case "choice":
                if value not in [v for v, _ in self.choices]:
                    known = ", ".join(repr(v) for v, _ in self.choices[:20])
                    raise OptionError(f"{self.name}={_short(value)}: choose one of {known or 'no choices'}")
            case "json":
                return self._parsed(value)
            case _:
                if not isinstance(value, str) or len(value) > _LONGEST:
                    raise OptionError(f"{self.name}={_short(value)}: give text")
                return value.strip()
        return value

    def _number(self, value: JsonValue) -> JsonValue:
        whole = self.kind == "int"
        if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
            raise OptionError(f"{self.name}={_short(value)}: give {'an integer' if whole else 'a number'}")
        low, high = self.least, self.most
        if (low is not None and value < low) or (high is not None and value > high):
            limits = f"from {low:,}" if high is None else f"{low:,} to {high:,}"
            raise OptionError(f"{self.name}={value:,}: give a number {limits}")
        return value

    def _parsed(self, value: JsonValue) -> JsonValue:
        """Return the parsed JSON text; values given in Python are returned unchanged."""
        if not isinstance(value, str):
            return value
        if not value.strip():
            return None
        try:
            return json.loads(value[:_LONGEST], parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise OptionError(f"{self.name}: {str(error)[:200]} in {_short(value)}; {self.help}") from error


def checked_values(fields: Iterable[Field], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value for every field, given or default.

    Raises
    ------
    OptionError
        A field is unknown, or a value is invalid.
    """
    known = {f.name: f for f in fields}
    for name in given:
        if name not in known:
            raise OptionError(f"no field {_short(name)}; the fields are {', '.join(known) or 'none'}")
    out: dict[str, Any] = {}
    for name, f in known.items():
        asked = f.when is None or out[f.when[0]] in f.when[1]
        out[name] = f.checked(given.get(name, f.default)) if asked else f.default
    return out


@dataclass(frozen=True)
class Call:
    """A call of a simulation's method, which can be run and written as Python."""

    method: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    def run(self, table: TableLike) -> object:
        """Call the method of a table.

        Raises
        ------
        OptionError
            A rewrite found nothing to do. The method itself returns None then, but the lab has to report it.
        """
        from iceexplore.commits import OPERATIONS

        found = getattr(table, self.method)(*self.args, **self.kwargs)
        operation = OPERATIONS.get(self.method)  # None for `fork` and `set_layout`, which are not registered
        if found is None and operation is not None and operation.nothing:
            raise OptionError(f"{operation.nothing}: nothing to do, no commit was made")
        return found

    def code(self, target: str) -> str:
        """Return the call as Python code. All arguments are literals, so names from the table are never executed."""
        given = [("", a) for a in self.args] + [(f"{k}=", v) for k, v in self.kwargs.items()]
        line = f"{target}.{self.method}({', '.join(name + repr(value) for name, value in given)})"
        if len(line) <= _WIDTH:
            return line
        parts = []
        for name, value in given:
            text = pprint.pformat(value, width=_WIDTH - 8, sort_dicts=False).replace("\n", "\n" + " " * (4 + len(name)))
            parts.append(f"    {name}{text},\n")
        return f"{target}.{self.method}(\n{''.join(parts)})"


Calls = tuple[Call, ...]


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid JSON")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"
