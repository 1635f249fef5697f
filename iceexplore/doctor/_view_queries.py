"""Compare the queries of a view with its schema, with the tables that they read, and with each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iceexplore.errors import IceexploreError, Problem, problem
from iceexplore.graph import TableState
from iceexplore.metadata import Schema, format_ms
from iceexplore.views import (
    ALL_COLUMNS,
    LineageSource,
    OpenSource,
    Representation,
    UnparsedQuery,
    ViewLineage,
    ViewState,
    ViewVersion,
    dialect_pairs,
    query_lineage,
    view_lineage,
)

__all__ = ["query_problems"]

#: By the type of a column, the wider types to which engines cast its values without loss. For decimals see `_is_wider`.
_WIDER = {"int": ("long",), "float": ("double",)}


def query_problems(state: ViewState, open_source: OpenSource | None, unknown: dict[str, str]) -> Iterator[Problem]:
    """Yield the problems of the queries of the selected version.

    Parameters
    ----------
    open_source
        A function that opens the tables and views that the queries read. If None, the queries are not compared with
        them.
    unknown
        Receives the parts of the view that could not be checked: the name of each, and the reason.
    """
    version = state.version
    if version is None:
        return
    queries = _Queries(state, version, f"{state.metadata_location}#version {version.version_id}", unknown)
    found = list(queries.counts(open_source is not None))
    yield from found
    if not any(one.code == "view-dialects-differ" for one in found):
        yield from queries.dialects()
    if open_source is not None:
        yield from queries.sources(open_source)


@dataclass(frozen=True)
class _Queries:
    """The queries of one version of a view, to compare them.

    Attributes
    ----------
    where
        The place that all problems of the queries have: the location of the view's metadata file, and the version.
    unknown
        Receives what could not be checked: the name of each part, and the reason.
    """

    state: ViewState
    version: ViewVersion
    where: str
    unknown: dict[str, str]

    @property
    def schema(self) -> Schema | None:
        return self.state.metadata.stored_schema(self.version)

    def counts(self, opened: bool) -> Iterator[Problem]:
        """Check that all queries read the same tables and have as many columns as the view's schema.

        Queries that cannot be parsed are left out; `unknown` gets the reason.

        Parameters
        ----------
        opened
            Whether the tables and views that the queries read will be opened. If True, the numbers of columns are not
            compared here. `sources` compares them later: it knows the tables, and thus also what ``SELECT *`` returns.
        """
        tables: dict[str, frozenset[str]] = {}
        for r in self.version.sql:
            dialect = r.dialect or "unknown dialect"
            query = query_lineage(self.version, r)
            if isinstance(query, UnparsedQuery):
                self.unknown[f"the SQL of {dialect}"] = query.why
                continue
            # Engines name their catalogs differently, so names are compared without them.
            tables[dialect] = frozenset(".".join(t.identifier).lower() for t in query.tables)
            if not opened:
                yield from self._count(dialect, [column.name for column in query.columns])
        first = next(iter(tables), "")
        for dialect, names in tables.items():
            if names != tables[first]:
                differing = ", ".join(sorted(names ^ tables[first])[:5])
                text = (
                    f"The {first} and {dialect} queries of version {self.version.version_id} read different tables: "
                    f"only one of them reads {differing}."
                )
                yield problem("view-dialects-differ", self.where, text, field="representations", found=differing)

    def _count(self, dialect: str, columns: list[str]) -> Iterator[Problem]:
        if self.schema is None or not columns or ALL_COLUMNS in columns or len(columns) == len(self.schema.fields):
            return
        text = (
            f"The {dialect} query of version {self.version.version_id} returns {len(columns):,} columns, but the "
            f"schema of this version has {len(self.schema.fields):,}."
        )
        yield problem(
            "view-columns-differ", self.where, text, field="sql", found=len(columns), expected=len(self.schema.fields)
        )

    def dialects(self) -> Iterator[Problem]:
        """Report dialects whose query differs from that of the version's first dialect.

        The syntax trees of the queries are compared, not their texts.
        """
        for pair in dialect_pairs(self.version, self.state.name):
            # A star (``SELECT *``) may or may not mean the same as a list of columns: that depends on the table.
            has_star = any(c.clause == "column" and "*" in (c.old, c.new) for c in pair.changes)
            if pair.same_query is False and not has_star:
                found = "; ".join(change.text for change in pair.changes[:3])
                text = f"The {pair.a} and {pair.b} queries of version {self.version.version_id} differ: {found}."
                yield problem("view-dialects-vary", self.where, text, field="representations")

    def sources(self, open_source: OpenSource) -> Iterator[Problem]:
        """Compare the queries with the tables and views that they read, which ``open_source`` opens.

        Report missing tables and columns, views that read each other, columns that were replaced or changed their type,
        and results that do not fit the view's schema. Queries of dialects that cannot be parsed are left out.
        """
        seen: set[tuple[str, str]] = set()
        for r in self.version.sql:
            try:
                lineage = view_lineage(self.state, r.dialect, open_source)
            except IceexploreError:  # the query cannot be parsed: `_Queries.counts` has put the reason into `unknown`
                continue
            for found in self._of_dialect(r, lineage):
                key = found.code, found.text
                if key not in seen:
                    seen.add(key)
                    yield found

    def _of_dialect(self, r: Representation, lineage: ViewLineage) -> Iterator[Problem]:
        dialect = r.dialect or "unknown dialect"
        yield from self._count(dialect, [column.name for column in lineage.outputs])
        for reader, source in lineage.walk():
            yield from self._source(reader, source)
        for source in lineage.sources:
            yield from self._changes(source)
        yield from self._types(dialect, lineage)

    def _source(self, reader: str, source: LineageSource) -> Iterator[Problem]:
        name = str(source.reference)
        if source.kind == "missing":
            text = f"{reader} reads {name}, which does not exist."
            yield problem("view-source-missing", self.where, text, field="sql", found=name)
        elif source.kind in ("failed", "not opened"):
            self.unknown[name] = "; ".join(source.notes) or "not opened"
        for column in source.missing_columns:
            text = f"{reader} reads the column {column} of {name}, which has no such column."
            yield problem("view-column-missing", self.where, text, field="sql", found=column)
        if source.is_cycle:
            text = f"{reader} reads {name}, which reads {reader}."
            yield problem("view-cycle", self.where, text, field="sql", found=name)

    def _types(self, dialect: str, lineage: ViewLineage) -> Iterator[Problem]:
        if self.schema is None or len(lineage.outputs) != len(self.schema.fields):
            return
        by_name = {str(source.reference): source for source in lineage.sources}
        for output, field in zip(lineage.outputs, self.schema.fields, strict=True):
            kind, origin = output.type, output.expression
            if output.unchanged and len(output.sources) == 1:
                origin = f"{output.sources[0].table}.{output.sources[0].column}"
                source = by_name.get(output.sources[0].table)
                wanted = output.sources[0].column.lower()
                fields = () if source is None or source.schema is None else source.schema.fields
                kind = next((str(f.type) for f in fields if f.name.lower() == wanted), None)
            expected = str(field.type)
            if kind is None or kind == expected or _is_wider(kind, expected):
                continue
            text = (
                f"The {dialect} query of version {self.version.version_id} returns {kind} for the column {field.name} "
                f"({origin}), but the schema of this version has {expected}."
            )
            yield problem("view-types-differ", self.where, text, field="schema-id", found=kind, expected=expected)

    def _changes(self, source: LineageSource) -> Iterator[Problem]:
        """Report columns that were replaced, or changed their type, since the view's version was created.

        A column was replaced if the column with its name has another field id now: the first column was dropped, and
        another one was added with its name. Only columns that the query reads are compared. If the table's schema at
        that time is not known, `unknown` gets the reason.

        Parameters
        ----------
        source
            The table that has the columns. Nothing is reported if it is a view or was not opened.
        """
        if not isinstance(source.table, TableState):
            return
        table, name = source.table, str(source.reference)
        then = _schema_at(table, self.version.timestamp_ms)
        if then is None:
            if len(table.metadata.schemas) > 1:
                self.unknown[f"changes of {name}"] = "all snapshots of the table are newer than the version of the view"
            return
        before, now = ({f.name.lower(): f for f in schema.fields} for schema in (then, table.schema))
        for column in source.reference.columns:
            old, new = before.get(column.lower()), now.get(column.lower())
            if old is None or new is None:
                continue
            since = f"since version {self.version.version_id} was created ({format_ms(self.version.timestamp_ms)})"
            if old.field_id != new.field_id:
                text = (
                    f"The column {column} of {name} has been replaced by a new column with the same name {since}: the "
                    f"old column had the field id {old.field_id}."
                )
                yield problem(
                    "view-source-changed", self.where, text, field="sql", found=new.field_id, expected=old.field_id
                )
            elif str(old.type) != str(new.type):
                text = f"The column {column} of {name} has changed its type {since}, from {old.type} to {new.type}."
                yield problem(
                    "view-source-changed", self.where, text, field="sql", found=str(new.type), expected=str(old.type)
                )


def _schema_at(table: TableState, ms: int) -> Schema | None:
    """Return the schema that a table had at a time in the past.

    This is the schema of the last snapshot that was committed at or before this time.

    Parameters
    ----------
    ms
        The time, in milliseconds since the epoch.

    Returns
    -------
    Schema or None
        None if the table has no snapshot from that time or before, or does not have the snapshot's schema.
    """
    past = [s for s in table.metadata.snapshots if s.timestamp_ms <= ms]
    if not past:
        return None
    last = max(past, key=lambda s: s.timestamp_ms)
    return next((s for s in table.metadata.schemas if s.schema_id == last.schema_id), None)


def _is_wider(kind: str, expected: str) -> bool:
    """Return whether engines cast values of the type ``kind`` to the type ``expected`` without loss.

    They cast ``int`` to ``long``, ``float`` to ``double``, and a decimal to a decimal that has the same scale and the
    same or a higher precision: for example ``decimal(9, 2)`` to ``decimal(18, 2)``.
    """
    if expected in _WIDER.get(kind, ()):
        return True
    pairs = [text.removeprefix("decimal(").rstrip(")").replace(" ", "").split(",") for text in (kind, expected)]
    if not (kind.startswith("decimal(") and expected.startswith("decimal(")):
        return False
    (precision, scale), (wider, other) = ([int(part) for part in pair] for pair in pairs)
    return scale == other and precision <= wider
