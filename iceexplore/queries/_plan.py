"""Prepare to run a view: choose a dialect, open the tables and views in its query, and select each table's state."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from iceexplore.errors import (
    FormatError,
    MetadataNotFoundError,
    OptionError,
    SnapshotNotFoundError,
    UnsupportedError,
)
from iceexplore.graph import SnapshotLike, TableState, resolve_state, travel
from iceexplore.metadata import Schema, to_ms, type_base
from iceexplore.views import (
    OpenSource,
    PlacedQuery,
    Representation,
    SourceVersion,
    TableReference,
    UnparsedQuery,
    ViewState,
    dialect_pairs,
    placed_query,
)

__all__ = ["SourcePlan", "ViewPlan", "plan_view"]

#: The maximum depth of views inside views, and the maximum number of tables and views in a query.
_MOST_LEVELS = 20
_MOST_SOURCES = 500


@dataclass(frozen=True)
class SourcePlan:
    """One table reference in a query, resolved to a table state or to the plan of another view."""

    reference: TableReference
    table: TableState | None = None
    view: ViewPlan | None = None

    @property
    def schema(self) -> Schema | None:
        """The columns of the table or view."""
        if self.table is not None:
            return self.table.schema
        return None if self.view is None else self.view.state.schema


@dataclass(frozen=True)
class ViewPlan:
    """A view's query, ready to be written for an engine, and its sources in the order of ``query.tables``."""

    state: ViewState
    dialect: str
    query: PlacedQuery
    sources: tuple[SourcePlan, ...]

    def notes(self) -> tuple[str, ...]:
        """Return notes on what DataFusion may compute differently, in this view and in those that it reads."""
        types: dict[str, set[str]] = {}
        for source in self.sources:
            for _, one in () if source.schema is None else source.schema.walk():
                types.setdefault(one.name.lower(), set()).add(type_base(one.type))
        inner = (note for one in self.sources if one.view is not None for note in one.view.notes())
        return tuple(dict.fromkeys((*self.query.notes(types), *inner)))


def plan_view(
    state: ViewState,
    open_source: OpenSource,
    dialect: str | None = None,
    tables_at: object = None,
    prefer: str | None = None,
) -> ViewPlan:
    """Open all tables and views that a view reads, and return the view's plan.

    Parameters
    ----------
    dialect
        The stored dialect to run. By default the only one, or any if all dialects have the same query.
    tables_at
        A time for all tables, or a snapshot for each table name; None for the current states.
    prefer
        The dialect to choose if several have the same query.

    Raises
    ------
    OptionError
        The dialect is not stored, none is given although the dialects store different queries, or an argument is
        invalid.
    UnsupportedError
        No stored query can be parsed, or views are nested too deeply.
    MetadataNotFoundError
        A table or view in the query was not found; the message says how to pass its location.
    FormatError
        A source cannot be read, or the views form a cycle.
    SnapshotNotFoundError
        A table has no state at the given snapshot, ref or time.
    """
    planner = _Planner(open_source, tables_at, prefer)
    plan = planner.plan(state, dialect, ())
    planner.refuse_unused()
    return plan


class _Planner:
    def __init__(self, open_source: OpenSource, tables_at: object, prefer: str | None) -> None:
        self._open = open_source
        self._prefer = prefer
        self._time: object = None
        self._by_name: dict[str, tuple[str, object]] = {}
        self._used: set[str] = set()
        self._read: dict[str, None] = {}
        self._found: dict[tuple[str, str], Any] = {}
        if isinstance(tables_at, Mapping):
            if not all(isinstance(name, str) for name in tables_at):
                raise OptionError("tables_at= takes states by table name: {'db.trips': 123}")
            self._by_name = {name.lower(): (name, value) for name, value in tables_at.items()}
        elif tables_at is not None:
            to_ms(tables_at)
            self._time = tables_at

    def plan(self, state: ViewState, dialect: str | None, path: tuple[str, ...]) -> ViewPlan:
        chosen, query = self._chosen(state, dialect)
        path = (*path, state.storage.place(state.metadata_location))
        sources = tuple(self._source(reference, asked, state, path) for reference, asked in query.tables)
        return ViewPlan(state, chosen.dialect or "", query, sources)

    def refuse_unused(self) -> None:
        """Refuse names in ``tables_at`` that the query does not read, because they would silently have no effect."""
        unused = [name for key, (name, _) in self._by_name.items() if key not in self._used]
        if unused:
            listed = ", ".join(self._read) or "no tables"
            raise OptionError(f"tables_at= names {unused[0]!r}, which the view does not read; it reads {listed}")

    def _chosen(self, state: ViewState, dialect: str | None) -> tuple[Representation, PlacedQuery]:
        version = state.version
        if version is None or not version.sql:
            raise UnsupportedError(f"{state.name} stores no SQL in the version that is shown, so it cannot be run")
        listed = ", ".join(map(repr, version.dialects))
        if dialect is not None:
            if not isinstance(dialect, str):
                raise OptionError(f"dialect={dialect!r}: give the name of a dialect, one of {listed}")
            found = version.representation(dialect)
            if found is None:
                raise OptionError(
                    f"{state.name} does not store its query in the dialect {dialect!r}; it stores {listed}"
                )
            stored = [found]
        else:
            for pair in dialect_pairs(version, state.name):
                if pair.same_query is False:
                    raise OptionError(
                        f"{state.name} stores different queries in {pair.a!r} and {pair.b!r} ({pair.changes[0].text}): "
                        f"choose one with dialect= ({listed}); v.compare_dialects() shows where they differ"
                    )
            found_all = (version.representation(name) for name in version.dialects)
            stored = [one for one in found_all if one is not None]
            stored.sort(key=lambda one: (one.dialect or "").lower() != self._prefer)
        reasons = []
        for one in stored:
            query = placed_query(
                one.sql or "", one.dialect, version.catalog_of(one), version.namespace_of(one), state.name
            )
            if not isinstance(query, UnparsedQuery):
                return one, query
            reasons.append(f"{one.dialect}: {query.why}")
        raise UnsupportedError(f"{state.name} cannot be run ({'; '.join(reasons)})")

    def _source(
        self, reference: TableReference, asked: SourceVersion | None, state: ViewState, path: tuple[str, ...]
    ) -> SourcePlan:
        key = (str(reference).lower(), path[-1] if reference.catalog is None else "")
        if key not in self._found:
            if len(self._found) >= _MOST_SOURCES:
                raise UnsupportedError(f"{state.name} reads more than {_MOST_SOURCES} tables and views")
            self._found[key] = self._open(reference, state)
        found = self._found[key]
        reads = f"{state.name} reads {reference}"
        if found.view is not None:
            if asked is not None:
                when = f"{asked.kind} AS OF {asked.value}"
                raise UnsupportedError(f"{reads} {when}, but it is a view: only tables can be read at another version")
            if found.view.storage.place(found.view.metadata_location) in path:
                raise FormatError(
                    f"{reads}, which reads {state.name} again: the views form a cycle",
                    location=state.metadata_location,
                )
            if len(path) >= _MOST_LEVELS:
                raise UnsupportedError(f"{reads}: views are nested in more than {_MOST_LEVELS} levels")
            return SourcePlan(reference, view=self.plan(found.view, None, path))
        if found.kind == "failed":
            raise FormatError(f"{reads}, which cannot be opened: {found.note}", location=state.metadata_location)
        if not isinstance(found.table, TableState):
            raise MetadataNotFoundError(
                f"{reads}, which is not available here: {found.note}. Give its location: "
                f"tables={{{'.'.join(reference.identifier)!r}: ...}}"
            )
        return SourcePlan(reference, table=self._at(found.table, reference, asked))

    def _at(self, table: TableState, reference: TableReference, asked: SourceVersion | None) -> TableState:
        """Return the table at the version that the query names, else the one in ``tables_at``, else the current one."""
        names = [str(reference), ".".join(reference.identifier), reference.written]
        self._read.setdefault(names[1])
        given = next((name.lower() for name in names if name.lower() in self._by_name), None)
        if given is not None:
            self._used.add(given)
        if asked is not None:
            return _state_at(table, int(asked.value) if asked.value.isdecimal() else asked.value, asked.kind)
        if given is not None:
            return _state_at(table, self._by_name[given][1])
        return table if self._time is None else travel(table, timestamp=self._time)


def _state_at(table: TableState, at: object, kind: str = "") -> TableState:
    """Return a table's state at a snapshot, snapshot id, ref or time."""
    at = getattr(at, "state", at)  # an `iceexplore.Table` is replaced by its state
    if kind == "TIMESTAMP" or isinstance(at, dt.date):
        return travel(table, timestamp=at)
    if not isinstance(at, str):
        return resolve_state(table, cast("SnapshotLike", at))
    if at in table.metadata.refs:
        return travel(table, ref=at)
    try:
        to_ms(at)
    except OptionError:
        refs = ", ".join(map(repr, table.metadata.refs)) or "none"
        raise SnapshotNotFoundError(
            f"{table.name} has no branch or tag {at!r} (it has {refs}), and {at!r} is not a time either"
        ) from None
    return travel(table, timestamp=at)
