"""Forms of the commit lab, described in Python: the browser draws them and knows no operation."""

from __future__ import annotations

import json
import pprint
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.errors import OptionError
from iceexplore.graph import TableState, json_safe
from iceexplore.manifests import ContentType, live
from iceexplore.widgets.core._escape_text import signs

__all__ = [
    "Call",
    "Calls",
    "Field",
    "Operation",
    "Values",
    "branch_field",
    "checked_values",
    "given",
    "live_data",
]

#: Checked values of a form, by field.
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Operation:
    """An operation that the lab offers.

    Attributes
    ----------
    name
        The keyword of `CommitPart.apply`.
    title
        Its name for people.
    help
        What it does, and what to look at.
    fields
        Of a table's state: what the form asks for; the choices depend on the table. None: it cannot be done there.
    calls
        Of a state and the form's values: the calls of the simulation.
    """

    name: str
    title: str
    help: str
    fields: Callable[[TableState], tuple[Field, ...] | None]
    calls: Callable[[TableState, Values], Calls]


def given(values: Values, **defaults: Any) -> dict[str, Any]:
    """The values that are not what a method takes by default: as a call is written by hand."""
    return {name: values[name] for name, default in defaults.items() if values[name] not in (None, "", default)}


def branch_field(state: TableState) -> tuple[Field, ...]:
    """To which branch a commit goes, where there is more than one."""
    names = [name for name, ref in state.metadata.refs.items() if ref.type == "branch"]
    others = tuple((name, name) for name in dict.fromkeys(["main", *names]))
    return (Field("ref", "Branch", "choice", "main", choices=others),) if len(others) > 1 else ()


def live_data(state: TableState, count: int, where: str | None = None) -> list[str]:
    """The first live data files, or of those that may have rows which match a filter.

    Raises
    ------
    OptionError
        There is none.
    """
    found: list[str] = []
    if where:
        from iceexplore.commits import select

        chosen = select(state, where)
        for batch in (chosen.whole, chosen.part):
            found += batch.entries["location"].slice(0, count - len(found)).to_pylist()
    else:
        root = state.root()
        for leaf in () if root is None else state.reader.leaves(root):
            data = pc.equal(leaf.entries["content_type"], pa.scalar(int(ContentType.DATA), pa.int32()))
            held = leaf.entries.filter(pc.and_(live(leaf.entries), data))
            found += held["location"].slice(0, count - len(found)).to_pylist()
            if len(found) >= count:
                break
    if not found:
        text = f" may have rows that match {where}" if where else " is live: append some first"
        raise OptionError(f"no data file{text}")
    return found


Kind = Literal["int", "number", "text", "json", "choice", "flag"]
_LONGEST = 100_000
_WIDTH = 100
_LONG_HELP = 110
_MOST_CHOICES = 1000


@dataclass(frozen=True)
class Field:
    """One field of a form.

    Attributes
    ----------
    default
        What it is at first; None of a number: it may be left out.
    choices
        Values and what they are called.
    least, most
        Limits of a number.
    when
        An earlier field, and its values with which this one means something.
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
        """As the browser needs it, JSON-safe: ``of`` what it is, ``help`` in one sentence, the rest of it in ``more``.

        ``input`` are the attributes of what is typed into; it is a list where there are ``choices``. Of more than a
        thousand of these the browser offers the first; in a notebook each can be given.
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

    def checked(self, value: Any) -> Any:
        """A value as an operation takes it: of ``json`` what the text says.

        Raises
        ------
        OptionError
            It makes no sense; the message says what is accepted.
        """
        if value is None or (value == "" and self.kind in ("int", "number")):
            return self.default
        match self.kind:
            case "int" | "number":
                return self._number(value)
            case "flag":
                if not isinstance(value, bool):
                    raise OptionError(f"{self.name}={_short(value)}: true or false")
            case "choice":
                if value not in [v for v, _ in self.choices]:
                    known = ", ".join(repr(v) for v, _ in self.choices[:20])
                    raise OptionError(f"{self.name}={_short(value)}: one of {known or 'nothing: there is no choice'}")
            case "json":
                return self._parsed(value)
            case _:
                if not isinstance(value, str) or len(value) > _LONGEST:
                    raise OptionError(f"{self.name}={_short(value)}: give text")
                return value.strip()
        return value

    def _number(self, value: Any) -> Any:
        whole = self.kind == "int"
        if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
            raise OptionError(f"{self.name}={_short(value)}: give a {'whole ' if whole else ''}number")
        low, high = self.least, self.most
        if (low is not None and value < low) or (high is not None and value > high):
            limits = f"from {low:,}" if high is None else f"{low:,} to {high:,}"
            raise OptionError(f"{self.name}={value:,}: a number {limits}")
        return value

    def _parsed(self, value: Any) -> Any:
        """What a JSON text says; what is no text was given in Python."""
        if not isinstance(value, str):
            return value
        if not value.strip():
            return None
        try:
            return json.loads(value[:_LONGEST], parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise OptionError(f"{self.name}: {str(error)[:200]} in {_short(value)}; {self.help}") from error


def checked_values(fields: Iterable[Field], given: Mapping[str, Any]) -> dict[str, Any]:
    """A value for every field: those given, and defaults.

    Raises
    ------
    OptionError
        An unknown field, or a value that makes no sense.
    """
    known = {f.name: f for f in fields}
    for name in given:
        if name not in known:
            raise OptionError(f"there is no field {_short(name)}; there are {', '.join(known) or 'none'}")
    out: dict[str, Any] = {}
    for name, f in known.items():
        asked = f.when is None or out[f.when[0]] in f.when[1]
        out[name] = f.checked(given.get(name, f.default)) if asked else f.default
    return out


#: Operations that return None where there is nothing to do, and why there is nothing.
_REWRITES = {
    "compact": "no partition has more files than it would get",
    "rewrite_manifests": "the table has no manifests",
    "rewrite_position_deletes": "no position delete files to merge",
}


@dataclass(frozen=True)
class Call:
    """A call of a simulation's method: run, and written as Python."""

    method: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    def run(self, table: Any) -> Any:
        """Call the method of this table.

        Raises
        ------
        OptionError
            A rewrite found nothing to do: in a notebook it returns None, but who clicks Apply wants to know.
        """
        found = getattr(table, self.method)(*self.args, **self.kwargs)
        if found is None and self.method in _REWRITES:
            raise OptionError(f"{_REWRITES[self.method]}: there is nothing to do, and no commit was made")
        return found

    def code(self, target: str) -> str:
        """The call as Python: literals only, nothing of a name is code."""
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


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"
