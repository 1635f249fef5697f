"""What an operation of the commit lab is, and what several of them need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.errors import OptionError
from iceexplore.graph import TableState
from iceexplore.manifests import ContentType, live
from iceexplore.widgets.commit_lab._form import Call, Field

__all__ = ["Calls", "Operation", "Values", "branch_field", "given", "live_data"]

#: Checked values of a form, by field.
Values = Mapping[str, Any]
Calls = tuple[Call, ...]


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
