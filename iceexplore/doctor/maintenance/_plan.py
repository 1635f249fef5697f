"""The base class of maintenance plans, and the parts of a plan: thresholds, cost, and calls of engines' procedures."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from iceexplore.commits import Sandbox, start_sandbox
from iceexplore.errors import OptionError
from iceexplore.expressions import Expression, computed, expression_sql
from iceexplore.graph import TableState, human_bytes
from iceexplore.render import Card, CardTable, card_html, card_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "ARGUMENT",
    "DEFAULT",
    "EngineCall",
    "MaintenanceCost",
    "PROPERTY",
    "Plan",
    "Threshold",
    "Wrap",
    "procedure_filter",
    "spark_call",
    "spark_name",
    "sql_text",
    "threshold",
]

T = TypeVar("T")
#: A function that wraps a simulation's writer as a table. It is passed as an argument, because the class `Table` is in
#: a package that imports this one.
Wrap = Callable[[Sandbox], T]

#: Where the value of a threshold comes from.
PROPERTY, DEFAULT, ARGUMENT = "table property", "default of Iceberg", "argument"

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def procedure_filter(expression: Expression) -> str:
    """Return a filter as the argument ``where`` of an engine's procedure.

    Raises
    ------
    OptionError
        The filter compares the result of a function, which the procedures do not accept.
    """
    for found in computed(expression):
        raise OptionError(f"{found.predicate.text}: procedures filter by columns, not by functions of them")
    return expression_sql(expression)


@dataclass(frozen=True)
class Threshold:
    """A limit that decides what a plan does.

    Attributes
    ----------
    name
        A table property, or an option of the procedure.
    value
        The value as text.
    source
        ``table property``, ``default of Iceberg``, ``argument``, or a description of another source.
    shown
        The value in a form that is easier to read, such as ``5 days``; empty if ``value`` is easy to read.
    """

    name: str
    value: str
    source: str
    shown: str = ""

    def __str__(self) -> str:
        return f"{self.name} = {self.value}{f' ({self.shown})' if self.shown else ''}, {self.source}"


def threshold(
    properties: Mapping[str, str],
    name: str,
    default: object,
    *,
    given: object = None,
    argument: str = "",
    show: Callable[[int], str] | None = None,
) -> Threshold:
    """Return a threshold: the argument if it was given, else the table property ``name``, else Iceberg's default.

    Parameters
    ----------
    properties
        The table's properties.
    default
        Iceberg's default.
    given, argument
        ``given``: the value of the argument; None if it was not given. ``argument``: the name of the argument.
    show
        A function that formats a whole number for display, for example as a duration.
    """
    if given is not None:
        value, source = str(given), f"{ARGUMENT} {argument}"
    elif name in properties:
        value, source = properties[name], PROPERTY
    else:
        value, source = str(default), DEFAULT
    shown = show(int(value)) if show is not None and re.fullmatch(r"-?\d{1,19}", value, re.ASCII) else ""
    return Threshold(name, value, source, shown)


@dataclass(frozen=True)
class MaintenanceCost:
    """The files and bytes that a procedure reads, writes and frees; None where unknown.

    Attributes
    ----------
    files_read, bytes_read
        Data, delete and metadata files that the engine reads.
    files_written, bytes_written
        New files.
    files_freed, bytes_freed
        Files that are deleted, now or, for rewrites, when the snapshots that need them expire.
    """

    files_read: int | None = None
    bytes_read: int | None = None
    files_written: int | None = None
    bytes_written: int | None = None
    files_freed: int | None = None
    bytes_freed: int | None = None

    def __str__(self) -> str:
        parts = []
        for what in ("read", "written", "freed"):
            files, size = getattr(self, f"files_{what}"), getattr(self, f"bytes_{what}")
            if files is None and size is None:
                continue
            counted = "" if files is None else f"{files:,} file{'' if files == 1 else 's'}"
            parts.append(", ".join(t for t in (counted, "" if size is None else human_bytes(size)) if t) + f" {what}")
        return "; ".join(parts) or "unknown"


@dataclass(frozen=True)
class EngineCall:
    """A statement or expression that runs a plan.

    Attributes
    ----------
    engine
        ``Spark SQL``, ``PyIceberg`` or ``iceexplore``.
    code
        The statement or expression.
    note
        What to know about the call, for example how its result differs from the plan; empty if there is nothing.
    """

    engine: Literal["Spark SQL", "PyIceberg", "iceexplore"]
    code: str
    note: str = ""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Plan(ABC, Generic[T]):
    """The plan of one maintenance procedure: what it would do now.

    Attributes
    ----------
    procedure
        The name of Iceberg's procedure in Spark. The removal of old metadata files has none; its name is
        ``metadata_files``.
    title
        A title to display.
    reasons
        The thresholds that decide what the plan does, each with its source.
    cost
        The files and bytes that the procedure reads, writes and frees.
    calls
        The calls that run the plan; empty if no engine would run it.
    notes
        Sentences on where the plan may be wrong or incomplete, and on why engines would refuse to run it.
    """

    procedure: ClassVar[str]
    title: ClassVar[str]

    state: TableState = field(repr=False)
    wrap: Wrap[T] = field(repr=False)
    reasons: tuple[Threshold, ...] = ()
    cost: MaintenanceCost = MaintenanceCost()
    calls: tuple[EngineCall, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    @abstractmethod
    def nothing(self) -> bool:
        """True if there is nothing to do."""

    @property
    @abstractmethod
    def text(self) -> str:
        """A sentence about what the procedure would do."""

    @abstractmethod
    def to_pandas(self) -> pd.DataFrame:
        """Return a data frame with a row per item of the plan: a file, group, manifest, snapshot, schema or spec."""

    @abstractmethod
    def _commit(self, sandbox: Sandbox) -> None:
        """Commit to a simulation what the procedure would do; this is called only if there is something to do."""

    def _details(self) -> dict[str, Any]:
        """Return the values that this kind of plan adds to the dictionary of `to_dict`; by default none."""
        return {}

    def _tables(self) -> tuple[CardTable, ...]:
        """Return the tables to display after the table of thresholds; by default none."""
        return ()

    @cached_property
    def table(self) -> T:
        """The simulated table in which the plan has been carried out, created on first use.

        The original table is not changed.
        """
        sandbox = start_sandbox(self.state)
        if not self.nothing:
            self._commit(sandbox)
        return self.wrap(sandbox)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values: text, numbers, lists and dictionaries."""
        return {
            "procedure": self.procedure,
            "title": self.title,
            "nothing": self.nothing,
            "text": self.text,
            "reasons": [asdict(r) for r in self.reasons],
            "cost": asdict(self.cost),
            "calls": [asdict(c) for c in self.calls],
            "notes": list(self.notes),
            **self._details(),
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return the plan as JSON (ASCII, so that characters in names cannot affect a terminal or a page)."""
        return json.dumps(self.to_dict(), indent=indent)

    def _card(self) -> Card:
        cost = () if self.nothing else (("Cost", str(self.cost)),)
        reasons = CardTable(
            "Thresholds",
            ("name", "value", "", "source"),
            tuple((r.name, r.value, r.shown, r.source) for r in self.reasons),
            code=frozenset({0, 1}),
        )
        calls = () if self.nothing else tuple((c.engine, c.code) for c in self.calls)
        notes = () if self.nothing else tuple(f"{c.engine}: {c.note}" for c in self.calls if c.note)
        return Card(
            title=f"{self.title}: {self.state.name}",
            badges=("nothing to do",) if self.nothing else (),
            subtitle=self.state.metadata_location,
            facts=(("Plan", self.text), *cost, *calls),
            tables=tuple(t for t in (reasons, *self._tables()) if t.rows),
            notes=(*self.notes, *notes),
        )

    def __repr__(self) -> str:
        return card_text(self._card())

    def _repr_html_(self) -> str:
        return card_html(self._card())


def spark_call(state: TableState, procedure: str, /, **arguments: str | None) -> EngineCall:
    """Return the statement that calls a procedure in Spark SQL.

    Parameters
    ----------
    arguments
        The SQL expression for each parameter of the procedure; those that are None are left out. The parameter
        ``table`` is added.
    """
    given = {"table": sql_text(_identifier(state)), **{k: v for k, v in arguments.items() if v is not None}}
    listed = ", ".join(f"{name} => {value}" for name, value in given.items())
    return EngineCall("Spark SQL", f"CALL {_catalog(state)}.system.{procedure}({listed})")


def spark_name(state: TableState) -> str:
    """Return the table's name in Spark SQL, beginning with the name of its catalog (or a placeholder)."""
    return f"{_catalog(state)}.{_identifier(state)}"


def sql_text(text: str) -> str:
    """Return a text as a string literal of Spark SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _identifier(state: TableState) -> str:
    """Return the table's identifier in its catalog; without a catalog, the last two parts of its location."""
    name = None if state.opened.catalog_table is None else state.opened.name
    parts = name.split(".") if name else [p for p in state.metadata.location.split("/") if p][-2:]
    return ".".join(p if _WORD.fullmatch(p) else "`" + p.replace("`", "``") + "`" for p in parts)


def _catalog(state: TableState) -> str:
    """Return the name of the table's PyIceberg catalog, or a placeholder; Spark may use a different catalog name."""
    catalog = getattr(state.opened.catalog_table, "catalog", None)
    name = getattr(catalog, "name", None)
    return name if isinstance(name, str) and _WORD.fullmatch(name) else "catalog_name"
