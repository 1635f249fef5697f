"""The lineage of a view: the tables and columns that its query reads, directly and through other views."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.errors import IceexploreError, OptionError
from iceexplore.metadata import Schema, TableMetadata
from iceexplore.render import Card, CardTable, card_html, card_text, escape, shown_frame
from iceexplore.views._model import Representation, ViewVersion
from iceexplore.views._state import ViewState
from iceexplore.views.lineage._model import ALL_COLUMNS, OutputColumn, QueryLineage, TableReference
from iceexplore.views.lineage._resolve import TooComplexError, resolve_names
from iceexplore.views.sql._parse import UnparsedQuery, parse_query

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FoundSource", "LineageSource", "OpenSource", "ViewLineage", "query_lineage", "view_lineage"]

SourceKind = Literal["failed", "missing", "not opened", "table", "view"]

_SHOWN = 100
#: The maximum depth of views inside views, and the maximum number of sources to open.
_MOST_LEVELS = 20
_MOST_SOURCES = 500

_TABLES = build.schema(
    [
        ("table", pa.string()),
        ("kind", pa.string()),
        ("columns", pa.list_(pa.string())),
        ("read_by", pa.string()),
        ("location", pa.string()),
        ("note", pa.string()),
    ]
)
_COLUMNS = build.schema(
    [
        ("column", pa.string()),
        ("table", pa.string()),
        ("source_column", pa.string()),
        ("certain", pa.bool_()),
        ("expression", pa.string()),
    ]
)


@dataclass(frozen=True)
class FoundSource:
    """The result of looking up a source: a table's schema, a view, or the reason why neither was opened.

    Attributes
    ----------
    table
        The table's state, for packages above this one that read its history or its rows.
    """

    kind: SourceKind
    location: str | None = None
    schema: Schema | None = None
    view: ViewState | None = None
    note: str = ""
    table: object = field(default=None, repr=False)
    table_metadata: TableMetadata | None = field(default=None, repr=False)


#: Opens the source that a reference in a view's query names.
OpenSource = Callable[[TableReference, ViewState], FoundSource]


@dataclass(frozen=True)
class LineageSource:
    """A table or view that a view's query reads.

    Attributes
    ----------
    kind
        ``table`` or ``view``; ``missing`` (the catalog has no such table or view); ``failed`` (it cannot be read);
        ``not opened``.
    location
        The location of its metadata file; None if it was not opened.
    notes
        Notes on mismatches: missing columns, different types, a cycle, or the reason why it was not opened.
    lineage
        The lineage of the source, if it is a view.
    missing_columns
        Columns that the query reads, and that the source does not have.
    is_cycle
        True if the source is a view that in turn reads the view whose query names it, directly or through others.
    table
        The table's state, for packages above this one.
    """

    reference: TableReference
    kind: SourceKind
    location: str | None = None
    schema: Schema | None = field(default=None, repr=False)
    notes: tuple[str, ...] = ()
    lineage: ViewLineage | None = field(default=None, repr=False)
    missing_columns: tuple[str, ...] = ()
    is_cycle: bool = False
    table: object = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class ViewLineage:
    """The tables and columns that a version's query reads, directly and through other views.

    Attributes
    ----------
    dialect
        The dialect whose SQL was analyzed.
    sources
        A record for each table or view that the query names.
    outputs
        A record for each column of the view.
    notes
        Sentences on what could not be resolved.
    """

    state: ViewState
    dialect: str
    sources: tuple[LineageSource, ...]
    outputs: tuple[OutputColumn, ...]
    notes: tuple[str, ...] = ()

    @property
    def tables_arrow(self) -> pa.Table:
        """`tables` as an Arrow table."""
        rows = [
            {
                "table": str(source.reference),
                "kind": source.kind,
                "columns": list(source.reference.columns),
                "read_by": name,
                "location": source.location,
                "note": "; ".join(source.notes) or None,
            }
            for name, source in self.walk()
        ]
        return pa.Table.from_pylist(rows, schema=_TABLES)

    @property
    def tables(self) -> pd.DataFrame:
        """The tables and views that the view reads, directly or through others (``read_by``), with the columns read."""
        return _frame(self.tables_arrow)

    @property
    def columns_arrow(self) -> pa.Table:
        """`columns` as an Arrow table."""
        rows = [
            {
                "column": output.name,
                "table": None if one is None else one.table,
                "source_column": None if one is None else one.column,
                "certain": output.certain,
                "expression": output.expression or None,
            }
            for output in self.outputs
            for one in output.sources or (None,)
        ]
        return pa.Table.from_pylist(rows, schema=_COLUMNS)

    @property
    def columns(self) -> pd.DataFrame:
        """The columns of the view and the columns from which they are computed, one row per pair."""
        return _frame(self.columns_arrow)

    @property
    def problems(self) -> tuple[str, ...]:
        """Mismatches in the view and the views that it reads: missing tables or columns, types, cycles."""
        found = [f"{self.state.name}: {note}" for note in self.notes]
        for source in self.sources:
            found += [f"{source.reference}: {note}" for note in source.notes]
            found += [] if source.lineage is None else source.lineage.problems
        return tuple(dict.fromkeys(found))

    def walk(self) -> Iterator[tuple[str, LineageSource]]:
        """Yield all sources, including those of nested views, each with the name of the view that reads it."""
        for source in self.sources:
            yield self.state.name, source
            if source.lineage is not None:
                yield from source.lineage.walk()

    def card(self) -> Card:
        """Return the lineage as a card, for text and HTML."""
        rows = [
            (str(source.reference), source.kind, name, ", ".join(source.reference.columns), "; ".join(source.notes))
            for name, source in self.walk()
        ]
        tables = [CardTable("Reads", ("table", "", "read by", "columns", "note"), tuple(rows[:_SHOWN]), _more(rows))]
        columns = [
            (
                output.name,
                ", ".join(f"{one.table}.{one.column}" for one in output.sources) or "no column",
                "" if output.certain else "perhaps",
                escape.shorten(" ".join(output.expression.split()), 120),
            )
            for output in self.outputs
        ]
        tables.append(
            CardTable("Columns", ("column", "made of", "", "expression"), tuple(columns[:_SHOWN]), _more(columns))
        )
        at = "" if self.state.version is None else f" version {self.state.version.version_id}"
        return Card(
            f"Lineage of {self.state.name}{at}",
            badges=(self.dialect,),
            tables=tuple(table for table in tables if table.rows),
            notes=self.notes,
        )

    def __repr__(self) -> str:
        return card_text(self.card())

    def _repr_html_(self) -> str:
        return card_html(self.card())


def view_lineage(state: ViewState, dialect: str | None = None, open_source: OpenSource | None = None) -> ViewLineage:
    """Return the lineage of the selected version.

    Parameters
    ----------
    dialect
        By default the first stored one that can be parsed.
    open_source
        Opens the tables and views that the query names; None: nothing is opened.

    Raises
    ------
    OptionError
        The dialect is not stored, or no SQL can be parsed; the message says why.
    UnsupportedError
        The query has too many columns to resolve their names.
    """
    return _Trace(open_source).follow(state, dialect, ())


def query_lineage(version: ViewVersion, representation: Representation) -> QueryLineage | UnparsedQuery:
    """Return the lineage of one stored query without opening any source, or the reason why it is unknown."""
    parsed = parse_query(representation.sql or "", representation.dialect)
    if isinstance(parsed, UnparsedQuery):
        return parsed
    try:
        return resolve_names(parsed, version.catalog_of(representation), version.namespace_of(representation))
    except RecursionError:
        return UnparsedQuery("its SQL is nested too deeply")
    except TooComplexError as error:
        return UnparsedQuery(str(error))


class _Trace:
    """Follows a view into its sources, each of which is opened once."""

    def __init__(self, open_source: OpenSource | None) -> None:
        self._open = open_source
        self._found: dict[tuple[str, str], FoundSource] = {}

    def follow(self, state: ViewState, dialect: str | None, path: tuple[str, ...]) -> ViewLineage:
        chosen = _representation(state, dialect)
        version = state.version
        assert version is not None
        parsed = parse_query(chosen.sql or "", chosen.dialect)
        assert not isinstance(parsed, UnparsedQuery)
        defaults = version.catalog_of(chosen), version.namespace_of(chosen)
        try:
            first = resolve_names(parsed, *defaults)
            path = (*path, _place(state))
            sources = [self._source(reference, state, path) for reference in first.tables]
            known = {str(s.reference): [f.name for f in s.schema.fields] for s in sources if s.schema is not None}
            query = resolve_names(parsed, *defaults, known) if known else first
        except RecursionError:
            raise OptionError(f"the query of {state.name} is nested too deeply to follow its names") from None
        by_name = {str(t): t for t in query.tables}
        outputs, notes = _outputs(query, state.schema)
        found = []
        for one in sources:
            now = replace(one, reference=by_name.get(str(one.reference), one.reference))
            read = one.reference.columns if len(sources) == 1 else ()
            found.append(_compared(now, read, outputs, state.schema))
        return ViewLineage(state, chosen.dialect or "", tuple(found), outputs, (*query.notes, *notes))

    def _source(self, reference: TableReference, state: ViewState, path: tuple[str, ...]) -> LineageSource:
        if self._open is None:
            return LineageSource(reference, "not opened")
        key = (str(reference), _place(state) if reference.catalog is None else "")
        if key not in self._found:
            if len(self._found) >= _MOST_SOURCES:
                return LineageSource(
                    reference, "not opened", notes=(f"not opened: the limit of {_MOST_SOURCES} sources is reached",)
                )
            self._found[key] = self._open(reference, state)
        found = self._found[key]
        notes = (found.note,) if found.note else ()
        if found.view is None:
            return LineageSource(reference, found.kind, found.location, found.schema, notes, table=found.table)
        lineage, is_cycle = None, _place(found.view) in path
        if is_cycle:
            notes = (*notes, "a cycle: the view reads itself")
        elif len(path) >= _MOST_LEVELS:
            notes = (*notes, f"not followed: views are nested more than {_MOST_LEVELS} levels deep")
        else:
            try:
                lineage = self.follow(found.view, None, path)
            except IceexploreError as error:
                notes = (*notes, f"not followed: {error}")
        return LineageSource(
            reference, "view", found.location, found.view.schema, notes, lineage, is_cycle=is_cycle
        )  # fmt: skip


def _representation(state: ViewState, dialect: str | None) -> Representation:
    version = state.version
    stored = () if version is None else version.sql
    listed = ", ".join(repr(r.dialect) for r in stored) or "none"
    if dialect is not None:
        if not isinstance(dialect, str):
            raise OptionError(f"dialect={dialect!r}: give the name of a dialect, one of {listed}")
        found = None if version is None else version.representation(dialect)
        if found is None:
            raise OptionError(f"{state.name} does not store its query in the dialect {dialect!r}; it stores {listed}")
        stored = (found,)
    reasons = []
    for r in stored:
        parsed = parse_query(r.sql or "", r.dialect)
        if not isinstance(parsed, UnparsedQuery):
            return r
        reasons.append(f"{r.dialect}: {parsed.why}")
    raise OptionError(f"the query of {state.name} cannot be followed ({'; '.join(reasons) or 'it stores no SQL'})")


def _outputs(query: QueryLineage, schema: Schema | None) -> tuple[tuple[OutputColumn, ...], tuple[str, ...]]:
    """Name the columns as in the view's schema, which also replaces a star whose columns are unknown."""
    columns = list(query.columns)
    if schema is None:
        return tuple(columns), ()
    names = [f.name for f in schema.fields]
    stars = [i for i, column in enumerate(columns) if column.name == ALL_COLUMNS]
    if len(stars) == 1 and len(names) >= len(columns) - 1:
        at, star = stars[0], columns[stars[0]]
        inside = names[at : len(names) - (len(columns) - at - 1)]
        filled = [
            OutputColumn(name, "", tuple(replace(s, column=name if s.column == ALL_COLUMNS else s.column)
                                         for s in star.sources), certain=False, unchanged=star.unchanged)
            for name in inside
        ]  # fmt: skip
        columns[at : at + 1] = filled
        stars = []
    if stars:
        return tuple(columns), ()
    if len(columns) != len(names):
        returned = {column.name.lower() for column in columns}
        lacking = [name for name in names if name.lower() not in returned]
        text = f"The query returns {len(columns)} columns, but the view's schema has {len(names)}"
        text += f"; not returned: {', '.join(lacking[:10])}" if lacking else ""
        return tuple(columns), (f"{text}.",)
    return tuple(replace(column, name=name) for column, name in zip(columns, names, strict=True)), ()


def _compared(
    source: LineageSource, read: tuple[str, ...], outputs: tuple[OutputColumn, ...], schema: Schema | None
) -> LineageSource:
    """Return the source with notes on the columns that it lacks, or whose types differ from the view's schema.

    ``read`` are the columns that the query certainly reads from this source, whether or not the source has them.
    """
    if source.schema is None:
        return source
    fields = {f.name.lower(): f for f in source.schema.fields}
    wanted = {c.lower(): c for c in (*source.reference.columns, *read) if c != ALL_COLUMNS}
    missing = tuple(name for key, name in wanted.items() if key not in fields)
    notes = [f"has no column {name}, which the query reads" for name in missing]
    own = {} if schema is None else {f.name: f for f in schema.fields}
    for output in outputs:
        mine = [one for one in output.sources if one.table == str(source.reference)]
        if len(output.sources) != 1 or not mine or not output.unchanged or output.name not in own:
            continue
        theirs = fields.get(mine[0].column.lower())
        if theirs is not None and str(theirs.type) != str(own[output.name].type):
            notes.append(
                f"column {theirs.name} is {theirs.type}, but {output.name} of the view is {own[output.name].type}"
            )
    return replace(source, notes=(*source.notes, *notes), missing_columns=missing)


def _place(state: ViewState) -> str:
    """Return the actual location of a view's metadata file, by which copies of a view can be distinguished."""
    return state.storage.place(state.metadata_location)


def _more(rows: list[Any]) -> str:
    return f"first {_SHOWN} of {len(rows):,}" if len(rows) > _SHOWN else ""


def _frame(table: pa.Table) -> pd.DataFrame:
    import pandas as pd

    frame: pd.DataFrame = table.to_pandas(types_mapper=pd.ArrowDtype)
    return shown_frame(frame)
