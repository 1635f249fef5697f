"""Run a view on this machine: this library reads the tables, and DataFusion evaluates the query.

The query is first planned over empty tables, to find the columns, rows and conditions that it needs from each table.
The rows read then replace the empty tables under the same names. The replacements have all columns, too, but columns
that the query does not need are null.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from iceexplore.errors import (
    FormatError,
    IceexploreError,
    MemoryLimitError,
    MissingDependencyError,
    UnsupportedError,
    warn_caller,
    whole_number,
)
from iceexplore.expressions import name_sql
from iceexplore.graph import TableState
from iceexplore.metadata import Schema
from iceexplore.queries._needs import Needs, is_simple, needs_of
from iceexplore.queries._plan import ViewPlan
from iceexplore.reading import arrow_fields, count_rows, to_arrow
from iceexplore.render import escape
from iceexplore.storage import memory_limit
from iceexplore.views import DATAFUSION

__all__ = ["view_to_arrow"]

_SHOWN = 400


def view_to_arrow(plan: ViewPlan, *, limit: int | None = None, max_bytes: int | None = None) -> pa.Table:
    """Run a view with DataFusion and return its rows as an Arrow table with the columns of the view's schema.

    Parameters
    ----------
    limit
        The maximum number of rows.
    max_bytes
        The maximum size of the rows read, of DataFusion's memory, and of the result, each in bytes; by default the
        limit that `memory_limit` returns.

    Raises
    ------
    UnsupportedError
        DataFusion cannot run the query: a function that it lacks, or syntax that has no equivalent.
    FormatError
        The query does not return as many columns as the view's schema has, or a file cannot be read.
    MemoryLimitError
        The rows read, an intermediate result or the result take more memory than allowed.
    """
    limit = None if limit is None else whole_number("limit", limit)
    most = memory_limit() if max_bytes is None else whole_number("max_bytes", max_bytes, least=1)
    notes = plan.notes()
    script = _Script(plan)
    for note in notes:
        warn_caller(f"{plan.state.name}: {note}")
    with _errors_of(plan, most):
        first = script.run(_context(most, 1), {name: _empty(state.schema) for name, state in script.tables.items()})
        logical = (first if limit is None else first.limit(limit)).optimized_logical_plan()
        needs = needs_of(logical, {name: (_held(s.schema), _names(s.schema)) for name, s in script.tables.items()})
        context = _context(most, 1 if is_simple(logical) else os.cpu_count() or 1)
    read = _read(script, needs, most)
    with _errors_of(plan, most):
        made = script.run(context, read)
        made = made if limit is None else made.limit(limit)
        return _collected(made, plan, most)


@dataclass(frozen=True)
class _Step:
    """The query of one view, with the name under which other queries read it; inner views come first."""

    name: str
    sql: str
    plan: ViewPlan


class _Script:
    """The queries of a view and of the views inside it, with names for the tables that they read."""

    def __init__(self, plan: ViewPlan) -> None:
        self.plan = plan
        self.tables: dict[str, TableState] = {}
        self.steps: list[_Step] = []
        # A WITH query or alias of the same name would hide a table, so the prefix must not occur in any query's text.
        texts = " ".join(_texts(plan)).lower()
        prefix = "source_"
        while prefix in texts:
            prefix += "_"
        self._prefix = prefix
        self._add(plan)

    def _add(self, plan: ViewPlan) -> str:
        names = []
        for source in plan.sources:
            if source.view is not None:
                names.append(self._add(source.view))
                continue
            name = f"{self._prefix}{len(self.tables) + len(self.steps)}"
            assert source.table is not None
            _check_columns(source.table.schema, str(source.reference), plan)
            self.tables[name] = source.table
            names.append(name)
        schemas = [source.schema for source in plan.sources if source.schema is not None]
        columns = {name for schema in schemas for name in _registered(_names(schema))}
        columns |= {field.name for schema in schemas for path, field in schema.walk() if path != field.name}
        sql = plan.query.sql(names, DATAFUSION, columns)
        name = f"{self._prefix}{len(self.tables) + len(self.steps)}"
        self.steps.append(_Step(name, sql, plan))
        return name

    def run(self, context: Any, tables: Mapping[str, pa.Table]) -> Any:  # noqa: ANN401  (DataFusion's objects)
        """Register tables, define the inner views, and return the data frame of the outermost view."""
        from datafusion import SQLOptions

        for name, table in tables.items():
            _register(context, name, table, _held(self.tables[name].schema))
        # Queries come from strangers: they may only read what is registered.
        only_select = SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)
        frame: Any = None
        for step in self.steps:
            frame = context.sql_with_options(step.sql, only_select)
            is_last = step is self.steps[-1]
            frame = _as_schema(frame, step.plan, inside=not is_last)
            if not is_last:
                context.register_view(step.name, frame)
        return frame


def _texts(plan: ViewPlan) -> Iterator[str]:
    version = plan.state.version
    yield from (r.sql or "" for r in (() if version is None else version.sql))
    for source in plan.sources:
        if source.view is not None:
            yield from _texts(source.view)


def _check_columns(schema: Schema, table: str, plan: ViewPlan) -> None:
    if not schema.fields:
        raise UnsupportedError(f"{plan.state.name} reads {table}, which has no columns")


def _context(most: int, threads: int) -> Any:  # noqa: ANN401  (DataFusion's SessionContext)
    try:
        from datafusion import RuntimeEnvBuilder, SessionConfig, SessionContext
    except ImportError as error:
        raise MissingDependencyError(
            "running a view without Spark needs datafusion: pip install 'datafusion>=51'"
        ) from error
    # DataFusion need not normalize names: the query already spells them as the schemas do. It must not spill to disk,
    # so that `most` limits everything it uses.
    config = SessionConfig().with_target_partitions(threads)
    config = config.set("datafusion.sql_parser.enable_ident_normalization", "false")
    config = config.set("datafusion.sql_parser.dialect", "PostgreSQL")
    return SessionContext(config, RuntimeEnvBuilder().with_disk_manager_disabled().with_fair_spill_pool(most))


def _held(schema: Schema) -> pa.Schema:
    """Return the Arrow schema to register for a table: lower-case names, and no metadata (DataFusion compares it)."""
    names = _registered(_names(schema))
    return pa.schema([pa.field(name, f.type) for name, f in zip(names, arrow_fields(schema.fields), strict=True)])


def _names(schema: Schema) -> list[str]:
    return [field.name for field in schema.fields]


def _registered(names: Sequence[str]) -> list[str]:
    """Return names in lower case, as queries may use any case; return all unchanged if some differ only in case."""
    lower = [name.lower() for name in names]
    return lower if len(set(lower)) == len(lower) else list(names)


def _empty(schema: Schema) -> pa.Table:
    return _held(schema).empty_table()


def _register(context: Any, name: str, table: pa.Table, schema: pa.Schema) -> None:  # noqa: ANN401
    """Register a table under a name, with all columns of a schema; columns that the table lacks are null."""
    if table.schema.names == schema.names:
        context.register_record_batches(name, [table.to_batches() or [pa.RecordBatch.from_pylist([], schema)]])
        return
    from datafusion import column, literal

    raw = f"{name}_read"
    renamed = table.rename_columns([str(schema.names.index(one)) for one in table.schema.names])
    context.register_record_batches(raw, [renamed.to_batches() or [pa.RecordBatch.from_pylist([], renamed.schema)]])
    here = set(table.schema.names)
    columns = [
        (column(f'"{i}"') if f.name in here else literal(None).cast(f.type)).alias(f.name) for i, f in enumerate(schema)
    ]
    context.register_view(name, context.table(raw).select(*columns))


def _as_schema(frame: Any, plan: ViewPlan, *, inside: bool) -> Any:  # noqa: ANN401  (DataFusion's DataFrame)
    """Cast and rename a query's columns to those of the view's schema; an inner view gets lower-case names."""
    from datafusion import column

    schema = plan.state.schema
    found: pa.Schema = frame.schema()
    if schema is None:
        return frame
    if len(found.names) != len(schema.fields):
        version = plan.state.version
        at = "" if version is None else f" of version {version.version_id}"
        raise FormatError(
            f"the {plan.dialect} query{at} of {plan.state.name} returns {len(found.names):,} columns, but the view's "
            f"schema has {len(schema.fields):,}: {_few(found.names)} instead of {_few(f.name for f in schema.fields)}",
            location=plan.state.metadata_location,
            code="view-columns-differ",
        )
    wanted = arrow_fields(schema.fields)
    names = _registered(_names(schema)) if inside else _names(schema)
    columns = []
    for have, want, name in zip(found, wanted, names, strict=True):
        quoted = have.name.replace('"', '""')
        one = column(f'"{quoted}"')
        columns.append((one if have.type == want.type else one.cast(want.type)).alias(name))
    return frame.select(*columns)


def _read(script: _Script, needs: Mapping[str, Needs], most: int) -> dict[str, pa.Table]:
    """Read what the query needs from each table; a table state that occurs several times is read once."""
    groups: dict[tuple[str, int | None], Needs] = {}
    keys = {name: _state_key(state) for name, state in script.tables.items()}
    for name, one in needs.items():
        groups[keys[name]] = groups[keys[name]].joined(one) if keys[name] in groups else one
    read: dict[tuple[str, int | None], pa.Table] = {}
    left = most
    for name, key in keys.items():
        if key in read or key not in groups:
            continue
        read[key] = _rows(script.tables[name], groups[key], left, most, script.plan)
        left -= read[key].nbytes
    return {name: read.get(key, _empty(script.tables[name].schema)) for name, key in keys.items()}


def _state_key(state: TableState) -> tuple[str, int | None]:
    snapshot = None if state.snapshot is None else state.snapshot.snapshot_id
    return f"{state.storage.place(state.metadata_location)}#{state.schema.schema_id}", snapshot


def _rows(state: TableState, needs: Needs, left: int, most: int, plan: ViewPlan) -> pa.Table:
    schema = _held(state.schema)
    every = _names(state.schema)
    names = [every[i] for i in sorted(needs.columns)]
    if not names and needs.where is None:
        count = min(int(count_rows(state)), needs.limit if needs.limit is not None else 1 << 62)
        return pa.table({schema.names[0]: pa.nulls(count)})
    held = dict(zip(every, schema.names, strict=True))
    columns = None if len(names) == len(schema) else [name_sql(name) for name in names or every[:1]]
    try:
        rows = to_arrow(state, needs.where, columns, limit=needs.limit, max_bytes=max(left, 1))
    except MemoryLimitError as error:
        raise MemoryLimitError(
            f"the rows that {plan.state.name} needs from its tables take more than {most:,} bytes of memory: allow "
            "more (max_bytes=, or iceexplore.memory_limit('8 GiB')), or run it on Spark: v.scan(spark)"
        ) from error
    wanted = pa.schema([schema.field(held[name]) for name in rows.schema.names])
    return rows.rename_columns(wanted.names).cast(wanted)


def _collected(frame: Any, plan: ViewPlan, most: int) -> pa.Table:  # noqa: ANN401  (DataFusion's DataFrame)
    """Return a data frame's rows; raise an error if they take more than ``most`` bytes."""
    batches: list[pa.RecordBatch] = []
    size = 0
    for one in frame.execute_stream():
        batch = one.to_pyarrow()
        size += batch.nbytes
        if size > most:
            raise MemoryLimitError(
                f"the rows of {plan.state.name} take more than {most:,} bytes of memory: read fewer (limit=), allow "
                "more (max_bytes=, or iceexplore.memory_limit('8 GiB')), or run it on Spark: v.scan(spark)"
            )
        if batch.num_rows:
            batches.append(batch)
    table = pa.Table.from_batches(batches, frame.schema() if not batches else None)
    schema = plan.state.schema
    if schema is None:
        return table
    return table.cast(pa.schema(arrow_fields(schema.fields)))


@contextmanager
def _errors_of(plan: ViewPlan, most: int) -> Iterator[None]:
    """Convert DataFusion's errors (plain exceptions) and its panics to errors of this library."""
    try:
        yield
    except (IceexploreError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic of DataFusion is not an Exception
        text = escape.shorten(" ".join(str(error).split()), _SHOWN)
        name = plan.state.name
        if "Resources exhausted" in text:
            raise MemoryLimitError(
                f"running {name} needs more than {most:,} bytes of memory: allow more (max_bytes=, or "
                "iceexplore.memory_limit('8 GiB')), or run it on Spark: v.scan(spark)"
            ) from error
        lacking = _after(text, "Invalid function '")
        if lacking:
            raise UnsupportedError(
                f"{name} calls {lacking}, which DataFusion does not have: run it on Spark (v.scan(spark)), or see "
                "v.sql('datafusion')"
            ) from error
        raise UnsupportedError(
            f"DataFusion cannot run {name}: {text}. Run it on Spark (v.scan(spark)), or see v.sql('datafusion')"
        ) from error


def _after(text: str, mark: str) -> str:
    return text.partition(mark)[2].partition("'")[0]


def _few(names: Any) -> str:  # noqa: ANN401  (an iterable of names)
    listed = [escape.shorten(str(name), 40) for name in names]
    return ", ".join(listed[:8]) + (" …" if len(listed) > 8 else "")
